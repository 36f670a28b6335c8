// dockerode.js IMAGE - dockerode at the engine of DOCKER_HOST; prints like with_python.py.
"use strict";

const Docker = require("dockerode");
const { PassThrough } = require("stream");

const APP = process.argv[2];
const docker = new Docker();

function equal(what, found, wanted) {
	if (JSON.stringify(found) !== JSON.stringify(wanted))
		throw new Error(`${what}: ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`);
}

function text(stream) {
	return new Promise((resolve, reject) => {
		let seen = "";
		stream.on("data", (piece) => (seen += piece));
		stream.on("end", () => resolve(seen));
		stream.on("close", () => resolve(seen));
		stream.on("error", reject);
	});
}

// What came on standard output, taken out of the frames.
async function output(stream) {
	const out = new PassThrough(), errors = new PassThrough();
	docker.modem.demuxStream(stream, out, errors);
	stream.on("end", () => out.end());
	stream.on("close", () => out.end());
	return text(out);
}

async function sleeper(more) {
	const container = await docker.createContainer({ Image: APP, Cmd: ["sleep", "600"], ...more });
	await container.start();
	return container;
}

async function refusal(what, promise) {
	try {
		await promise;
	} catch (error) {
		if (error.statusCode !== 403)
			throw error;
		return error.message;
	}
	throw new Error(`${what} is not refused`);
}

const checks = {
	async system() {
		equal("ping", (await docker.ping()).toString(), "OK");
		equal("version", (await docker.version()).ApiVersion, "1.41");
		equal("info", (await docker.info()).OSType, "linux");
		await docker.df();
	},

	async run() {
		const out = new PassThrough();
		const seen = text(out);
		const [data, container] = await docker.run(APP, ["sh", "-c", "echo hello; exit 7"], out,
			{ Tty: true, HostConfig: { Memory: 64 << 20 } });
		out.end();
		equal("status", data.StatusCode, 7);
		equal("output", await seen, "hello\r\n");
		await container.remove();
	},

	async exec() {
		const container = await sleeper();
		let exec = await container.exec({ Cmd: ["sh", "-c", "echo out; exit 3"], AttachStdout: true, AttachStderr: true });
		equal("output", await output(await exec.start({ hijack: false, stdin: false })), "out\n");
		equal("status", (await exec.inspect()).ExitCode, 3);
		exec = await container.exec({ Cmd: ["cat"], AttachStdin: true, AttachStdout: true });
		const stream = await exec.start({ hijack: true, stdin: true });
		const seen = output(stream);
		stream.end("typed\n");
		equal("input", await seen, "typed\n");
		await container.remove({ force: true });
	},

	async attach() {
		const container = await docker.createContainer({ Image: APP, Cmd: ["cat"], OpenStdin: true, StdinOnce: true, AttachStdin: true });
		const stream = await container.attach({ stream: true, stdin: true, stdout: true, stderr: true, hijack: true });
		const seen = output(stream);
		await container.start();
		stream.end("typed\n");
		equal("output", await seen, "typed\n");
		equal("wait", (await container.wait()).StatusCode, 0);
		await container.remove({ v: true });
	},

	async logs_and_stats() {
		const container = await docker.createContainer({ Image: APP, Cmd: ["sh", "-c", "echo 1; sleep 0.3; echo 2; sleep 600"], Tty: true });
		await container.start();
		const stream = await container.logs({ follow: true, stdout: true, stderr: true });
		await new Promise((resolve) => {
			let seen = "";
			stream.on("data", (piece) => (seen += piece).includes("2") && resolve());
		});
		stream.destroy();
		equal("stats", (await container.stats({ stream: false })).id, container.id);
		equal("top", (await container.top()).Processes.length > 0, true);
		await container.remove({ force: true });
	},

	async archives() {
		const container = await sleeper();
		const archive = await container.getArchive({ path: "/etc/passwd" });
		const pieces = [];
		for await (const piece of archive)
			pieces.push(piece);
		await container.putArchive(Buffer.concat(pieces), { path: "/w" });
		const exec = await container.exec({ Cmd: ["cat", "/w/passwd"], AttachStdout: true });
		const seen = await output(await exec.start({}));
		equal("carried", seen.includes("agent:x:1000"), true);
		equal("stat", !!(await container.infoArchive({ path: "/w" })).headers["x-docker-container-path-stat"], true);
		await container.remove({ force: true });
	},

	async networks_and_volumes() {
		const network = await docker.createNetwork({ Name: "node-net", CheckDuplicate: true, Labels: { "team.a": "b" } });
		const volume = await docker.createVolume({ Name: "node-vol" });
		const container = await sleeper({ HostConfig: { NetworkMode: "node-net", Binds: ["node-vol:/v"] } });
		const other = await sleeper();
		await network.connect({ Container: other.id, EndpointConfig: { Aliases: ["second"] } });
		equal("members", Object.keys((await network.inspect()).Containers).length, 2);
		await network.disconnect({ Container: other.id, Force: true });
		await container.remove({ force: true });
		await other.remove({ force: true });
		await network.remove();
		equal("volumes", (await docker.listVolumes()).Volumes.some((one) => one.Name === "node-vol"), true);
		await volume.remove();
	},

	async events() {
		const stream = await docker.getEvents({ filters: { event: ["create"] } });
		const first = new Promise((resolve) => stream.once("data", (line) => resolve(JSON.parse(line))));
		const container = await docker.createContainer({ Image: APP });
		equal("event", (await first).id, container.id);
		stream.destroy();
		await container.remove();
	},

	async images() {
		equal("list", (await docker.listImages()).some((one) => (one.RepoTags || []).includes(APP)), true);
		equal("inspect", (await docker.getImage(APP).inspect()).RepoTags.includes(APP), true);
	},

	async refusals() {
		const { Readable } = require("stream");
		equal("build", /\[build_file,/.test(await refusal("build",
			docker.buildImage(Readable.from([Buffer.alloc(32 << 20)]), { t: "x:1" }))), true);
		console.log(await refusal("privileged", docker.createContainer({ Image: APP, HostConfig: { Privileged: true } })));
	},
};

async function main() {
	let failed = 0;
	for (const [name, check] of Object.entries(checks)) {
		try {
			await check();
			console.log(`ok ${name}`);
		} catch (error) {
			failed++;
			console.log(`FAIL ${name}: ${String(error.stack).replaceAll("\n", "\\n")}`);
		}
	}
	console.log("done");
	process.exit(failed ? 1 : 0);
}

main();
