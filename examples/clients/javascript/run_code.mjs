#!/usr/bin/env node
// run_code.mjs SOCKET CODE [INTERPRETER] - an agent's tool call: code of a model, run in a sandbox of its own.
//
// Node's own modules only.  Makes a sandbox, puts the code there, runs it, reads the file that it
// wrote (result.txt, if it did), and ends the sandbox, whatever happens.

import { readFileSync } from "node:fs";
import { request } from "node:http";

// What the gate does not allow, with the way out: worth showing to the model.
class Refused extends Error {
  constructor(status, error) {
    super([`${error.code}: ${error.message}`, error.hint].filter(Boolean).join(" "));
    this.status = status;
    this.code = error.code;
  }
}

function ask(socketPath, method, path, body) {
  return new Promise((resolve, reject) => {
    const headers = body === undefined ? {} : { "Content-Length": Buffer.byteLength(body) };
    const call = request({ socketPath, method, path, headers, agent: false }, (answer) => {
      const pieces = [];
      answer.on("data", (piece) => pieces.push(piece));
      answer.on("error", reject);
      answer.on("end", () => {
        const data = Buffer.concat(pieces);
        if (answer.statusCode >= 300) reject(new Refused(answer.statusCode, JSON.parse(data).error));
        else resolve(data);
      });
    });
    call.on("error", reject);
    call.end(body);
  });
}

async function main(socket, code, interpreter = "python3") {
  const made = JSON.parse(await ask(socket, "POST", "/v1/sandboxes", JSON.stringify({ lifetime: "5m" })));
  const box = `/v1/sandboxes/${made.id}`;
  try {
    await ask(socket, "PUT", `${box}/files/work/code`, readFileSync(code));
    const wanted = { argv: [interpreter, "/work/code"], timeout: "30s" };
    const done = JSON.parse(await ask(socket, "POST", `${box}/exec`, JSON.stringify(wanted)));
    process.stdout.write(done.stdout);
    process.stderr.write(done.stderr);
    try {
      const result = await ask(socket, "GET", `${box}/files/work/result.txt`);
      console.log("result:", result.toString().trim());
    } catch (why) {
      if (why.code !== "file_not_found") throw why;
    }
    return done.timed_out ? 124 : done.exit_code;
  } finally {
    await ask(socket, "DELETE", box);
  }
}

if (process.argv.length < 4) {
  console.error("usage: run_code.mjs SOCKET CODE [INTERPRETER]");
  process.exitCode = 2;
} else {
  main(...process.argv.slice(2)).then(
    (status) => (process.exitCode = status),
    (why) => {
      console.error(why instanceof Refused ? `refused: ${why.message}` : why);
      process.exitCode = 1;
    },
  );
}
