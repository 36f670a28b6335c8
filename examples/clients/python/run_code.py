#!/usr/bin/env python3
"""run_code.py SOCKET CODE [INTERPRETER] - an agent's tool call: code of a model, run in a sandbox of its own.

Standard library only.  Makes a sandbox, puts the code there, runs it, reads the file that it wrote (result.txt, if
it did), and ends the sandbox, whatever happens.
"""

import http.client
import json
import socket
import sys
from pathlib import Path


class Refused(Exception):
    """What the gate does not allow, with the way out: worth showing to the model."""

    def __init__(self, status, error):
        super().__init__(f"{error['code']}: {error['message']} {error.get('hint', '')}".strip())
        self.status, self.code = status, error["code"]


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=120)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Sandbox:
    def __init__(self, path, **wanted):
        self.path = path
        self.id = json.loads(self._ask("POST", "/v1/sandboxes", json.dumps(wanted)))["id"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._ask("DELETE", f"/v1/sandboxes/{self.id}")

    def _ask(self, method, target, body=None):
        connection = Connection(self.path)
        try:
            connection.request(method, target, body, {"Content-Type": "application/json"} if body else {})
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        if answer.status >= 300:
            raise Refused(answer.status, json.loads(data)["error"])
        return data

    def put(self, name, data):
        self._ask("PUT", f"/v1/sandboxes/{self.id}/files/work/{name}", data)

    def get(self, name):
        return self._ask("GET", f"/v1/sandboxes/{self.id}/files/work/{name}")

    def run(self, *argv, timeout="30s"):
        return json.loads(self._ask("POST", f"/v1/sandboxes/{self.id}/exec",
                                    json.dumps({"argv": argv, "timeout": timeout})))


def main(path, code, interpreter="python3"):
    with Sandbox(path, lifetime="5m") as box:
        box.put("code", Path(code).read_bytes())
        done = box.run(interpreter, "/work/code")
        sys.stdout.write(done["stdout"])
        sys.stderr.write(done["stderr"])
        try:
            print("result:", box.get("result.txt").decode().strip())
        except Refused as refused:
            if refused.code != "file_not_found":
                raise
    return 124 if done["timed_out"] else done["exit_code"]


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        sys.exit(main(*sys.argv[1:]))
    except Refused as why:
        sys.exit(f"refused: {why}")
