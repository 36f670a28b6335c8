// testcontainers.js [--only-start] [--leave] - testcontainers at the engine of DOCKER_HOST; prints like with_python.py.
//
// --leave: starts a container on a network and does not stop them, prints "session ID", and ends when its input does.
"use strict";

const { GenericContainer, Network, Wait } = require("testcontainers");

const APP = process.env.APP;

function equal(what, found, wanted) {
	if (found !== wanted)
		throw new Error(`${what}: ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`);
}

// The engine listens on the port before the program in the container does.
async function served(address) {
	for (let left = 100; ; left--) {
		try {
			return await (await fetch(address)).text();
		} catch (error) {
			if (!left)
				throw error;
			await new Promise((resolve) => setTimeout(resolve, 50));
		}
	}
}

const checks = {
	async start() {
		const container = await new GenericContainer(APP).withCommand(["sleep", "600"]).start();
		equal("exec", (await container.exec(["echo", "out"])).output, "out\n");
		await container.stop();
	},

	async port_and_log() {
		// On a network of its own: engines side by side give addresses of docker0 out twice.
		const network = await new Network().start();
		const container = await new GenericContainer(APP)
			.withNetwork(network)
			.withCommand(["sh", "-c", "echo ready; exec httpd -f -p 8080 -h /w"])
			.withExposedPorts(8080)
			.withCopyContentToContainer([{ content: "carried", target: "/w/file" }])
			.withEnvironment({ A: "b" })
			.withLabels({ "org.testcontainers.team": "b" })
			.withWaitStrategy(Wait.forAll([Wait.forLogMessage("ready"), Wait.forListeningPorts()]))
			.start();
		equal("what is served", await served(`http://127.0.0.1:${container.getMappedPort(8080)}/file`), "carried");
		await container.stop({ remove: true, removeVolumes: true });
		await network.stop();
	},

	async health() {
		const container = await new GenericContainer(APP)
			.withCommand(["sleep", "600"])
			.withHealthCheck({ test: ["CMD-SHELL", "true"], interval: 300, timeout: 1000, retries: 5, startPeriod: 100 })
			.withWaitStrategy(Wait.forHealthCheck())
			.start();
		await container.stop();
	},

	async network() {
		const network = await new Network().start();
		const server = await new GenericContainer(APP).withCommand(["httpd", "-f", "-p", "8080", "-h", "/etc"])
			.withNetwork(network).withNetworkAliases("server").start();
		const client = await new GenericContainer(APP).withCommand(["sleep", "600"]).withNetwork(network).start();
		const seen = await client.exec(["sh", "-c", "printf 'GET /passwd HTTP/1.0\\r\\n\\r\\n' | nc server 8080"]);
		equal("heard by its alias", seen.output.includes("agent"), true);
		await client.stop();
		await server.stop();
		await network.stop();
	},
};

// What Ryuk is for: nobody stops this.
async function leave() {
	const network = await new Network().start();
	const container = await new GenericContainer(APP).withCommand(["sleep", "600"]).withNetwork(network).start();
	console.log(`session ${container.getLabels()["org.testcontainers.session-id"]}`);
	process.stdin.resume();
	await new Promise((resolve) => process.stdin.on("end", resolve));
}

async function main() {
	let failed = 0;
	const only = process.argv.includes("--only-start");
	for (const [name, check] of Object.entries(checks)) {
		if (only && name !== "start")
			continue;
		try {
			await check();
			console.log(`ok ${name}`);
		} catch (error) {
			failed++;
			console.log(`FAIL ${name}: ${String(error.stack).replaceAll("\n", "\\n")}`);
		}
	}
	if (process.argv.includes("--leave"))
		await leave();
	console.log("done");
	process.exit(failed ? 1 : 0);
}

main();
