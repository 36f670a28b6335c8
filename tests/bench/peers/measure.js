// measure.js FACTS CERBOS-PROGRAM FOLDER - the same question put to cedar-wasm and to a cerbos server, and the
// median time of an answer, as JSON.  The policies say what the profile of tests/bench/rules says of a create.
"use strict";
const fs = require("fs"), http = require("http"), path = require("path"), { spawn } = require("child_process");

const [factsFile, program, folder] = process.argv.slice(2);
const facts = JSON.parse(fs.readFileSync(factsFile));
const w = facts.workload;

function median(times) {
  times.sort((a, b) => (a < b ? -1 : 1));
  return Number(times[times.length >> 1]);
}

function cedar() {
  const { isAuthorized } = require("@cedar-policy/cedar-wasm/nodejs");
  const policy = `
permit(principal, action == Action::"container.create", resource)
when {
  !context.privileged && context.image like "reg.example/team/*" && context.added == [] &&
  (context.network == "none" || context.network == "agents") && context.memory <= 2147483648 && context.pids <= 512 &&
  !context.root && context.level == "kernel" && context.restart == "no" && context.devices == [] &&
  context.mount like "/srv/ws/*" && context.security == [] && context.namespaces == [] && context.sysctls == []
};`;
  const context = {
    privileged: w.privileged, image: w.image.name, added: w.capabilities.add, network: w.network.mode,
    memory: w.limits.memory, pids: w.limits.pids, root: w.user.root, level: w.isolation.level, restart: w.restart,
    devices: w.devices, mount: w.mounts[0].source, security: w.security, namespaces: w.namespaces, sysctls: w.sysctls,
  };
  const call = {
    principal: { type: "User", id: facts.identity.name }, action: { type: "Action", id: "container.create" },
    resource: { type: "Engine", id: "engine" }, context, policies: { staticPolicies: policy }, entities: [],
  };
  const times = [];
  for (let i = 0; i < 2200; i++) {
    const began = process.hrtime.bigint();
    const answer = isAuthorized(call);
    if (i >= 200) times.push(process.hrtime.bigint() - began);
    if (answer.type !== "success" || answer.response.decision !== "allow") throw new Error(JSON.stringify(answer));
  }
  return median(times);
}

const RULES = `apiVersion: api.cerbos.dev/v1
resourcePolicy:
  version: default
  resource: engine
  rules:
    - actions: ["container.create"]
      effect: EFFECT_ALLOW
      roles: ["*"]
      condition:
        match:
          all:
            of:
              - expr: "!R.attr.privileged"
              - expr: R.attr.image.name.startsWith("reg.example/team/")
              - expr: size(R.attr.capabilities.add) == 0
              - expr: R.attr.network.mode in ["none", "agents"]
              - expr: R.attr.limits.memory <= 2147483648.0 && R.attr.limits.pids <= 512.0
              - expr: "!R.attr.user.root"
              - expr: R.attr.isolation.level == "kernel"
              - expr: R.attr.restart == "no"
              - expr: size(R.attr.devices) == 0 && size(R.attr.security) == 0 && size(R.attr.namespaces) == 0 && size(R.attr.sysctls) == 0
              - expr: R.attr.mounts.all(m, m.source.startsWith("/srv/ws/"))
`;

function ask(agent, port, body) {
  return new Promise((done, fail) => {
    const request = http.request({ agent, port, host: "127.0.0.1", method: "POST", path: "/api/check/resources",
      headers: { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) } }, (reply) => {
      let text = "";
      reply.on("data", (part) => (text += part));
      reply.on("end", () => done(text));
    });
    request.on("error", fail);
    request.end(body);
  });
}

async function cerbos() {
  const policies = path.join(folder, "policies"), config = path.join(folder, "cerbos.yaml");
  const port = 20000 + (process.pid % 20000);
  fs.mkdirSync(policies);
  fs.writeFileSync(path.join(policies, "engine.yaml"), RULES);
  fs.writeFileSync(config, `server:\n  httpListenAddr: "127.0.0.1:${port}"\n  grpcListenAddr: "127.0.0.1:${port + 1}"\n` +
    `storage:\n  driver: disk\n  disk:\n    directory: ${policies}\ntelemetry:\n  disabled: true\n`);
  const server = spawn(program, ["server", "--config", config], { stdio: "ignore" });
  const body = JSON.stringify({ requestId: "1", principal: { id: facts.identity.name, roles: ["user"] },
    resources: [{ actions: ["container.create"], resource: { kind: "engine", id: "engine", attr: w } }] });
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 }), times = [];
  try {
    for (let tries = 0; ; tries++) {
      try { await ask(agent, port, body); break; } catch (error) {
        if (tries > 200) throw error;
        await new Promise((done) => setTimeout(done, 50));
      }
    }
    for (let i = 0; i < 700; i++) {
      const began = process.hrtime.bigint();
      const text = await ask(agent, port, body);
      if (i >= 200) times.push(process.hrtime.bigint() - began);
      if (!text.includes("EFFECT_ALLOW")) throw new Error(text);
    }
  } finally {
    agent.destroy();
    server.kill("SIGTERM");
  }
  return median(times);
}

(async () => {
  console.log(JSON.stringify({ cedar_ns: cedar(), cerbos_ns: await cerbos() }));
})().catch((error) => { console.error(String(error)); process.exit(1); });
