#!/usr/bin/env python3
"""access.py PROGRAM - `audit access-review`: grants of a configuration held against a log that is made here."""

import csv
import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "ship"))
from logs import Log  # noqa: E402

CONFIG = """
log {{ dir = "{dir}/log", origin = "gate.example/host7" }}
profiles {{ "{dir}/profiles" }}
backend "engine" {{ kind = "docker", address = "unix://{dir}/e.sock" }}
identity "agent-7" {{ uid = 1001, owner = "team-a", profile = "agent" }}
identity "idle" {{ uid = 1002, profile = "agent" }}
identity "unheard" {{ uid = 1003, profile = "agent" }}
listener "agents" {{ socket = "{dir}/g.sock", mode = "0666", backend = "engine",
                     identities = {{ "agent-7", "idle" }}, otherwise = "looks" }}
"""
PROFILES = """
return {
	profile "agent" {
		isolation = { min = "process" },
		images = { "docker.io/library/python:3.12", "ghcr.io/acme/**" },
		mounts = { { "/srv/{identity.name}", "rw" }, { "/srv/data", "ro" } },
		networks = { "app", "other" }, capabilities = { "NET_ADMIN", "CHOWN" }, ports = { "127.0.0.1" },
		operations = { "container.run", "exec" },
		exception { rule = "image", value = "redis:*", when = { ["identity.name"] = "agent-*" },
			owner = "ann", ticket = "SEC-12", reason = "until it has moved", expires = "2026-02-10" },
		exception { rule = "image", value = "mysql:*", when = { ["identity.name"] = "agent-*" },
			owner = "ann", ticket = "SEC-11", reason = "it was needed", expires = "2026-01-10" },
		exception { rule = "image", value = "nats:*", when = { ["identity.name"] = "agent-*" },
			owner = "ann", ticket = "SEC-13", reason = "it is needed", expires = "2027-01-10" },
	},
	profile "looks" { operations = { "container.list" }, isolation = { min = "process" } },
}
"""
WORKLOAD = {"image": {"name": "docker.io/library/python", "tag": "3.12"}, "network": {"mode": "app", "ports": [
    {"port": "80/tcp", "address": "127.0.0.1"}]}, "capabilities": {"add": [{"name": "CHOWN"}]}, "mounts": [
        {"kind": "bind", "source": "/srv/agent-7/work", "read_only": False},
        {"kind": "bind", "source": "/srv/data", "read_only": False}]}
EXCEPTIONS = [{"rule": "image", "owner": "ann", "ticket": "SEC-12", "expires": "2026-02-10"}]
failed = []


def want(label, expected, got):
    if expected != got:
        failed.append(label)
        print(f"{label}: {got!r}, should be {expected!r}")


def decision(log, verdict="allow", identity="agent-7", kind="decision", op="container.create", **more):
    actor = {"identity": identity, "owner": "team-a"} if identity else {"owner": "uid-7@agents"}
    body = {"type": kind, "id": f"d-{log.seq}", "listener": "agents", "actor": actor, "op": op,
            "class": "read" if kind == "read" else "exec" if op.startswith("exec") else "launch",
            "pol": {"profile": "agent", "rule": "settings"}, "verdict": verdict, **more}
    log.write(body)


def make(folder):
    log = Log(folder)
    decision(log, facts={"workload": WORKLOAD}, exceptions=EXCEPTIONS)
    decision(log, facts={"workload": WORKLOAD})
    decision(log, op="exec.create")
    decision(log, "deny", facts={"workload": {"image": {"name": "ghcr.io/acme/x", "tag": "1"}}})
    decision(log, identity="", kind="read", op="container.list")
    decision(log, identity="gone", op="container.create")
    log.write({"type": "admin", "id": "a", "actor": {"auth": {"uid": 0}}, "op": "reload",
               "pol": {"rule": "operate,audit"}, "verdict": "allow"})
    for n in range(260):
        decision(log, identity=f"many-{n}", op="exec.create")
    return log


def grants(subject):
    return {(g["kind"], g.get("ticket") or g["grant"]): (g["used"], g["flag"]) for g in subject["grants"]}


def main(program):
    with tempfile.TemporaryDirectory(prefix="sp-access-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "profiles").mkdir()
        (folder / "profiles/all.lua").write_text(PROFILES)
        (folder / "config").write_text(CONFIG.format(dir=folder))
        make(folder / "log")

        def run(*more, status=0):
            done = subprocess.run([program, "audit", "access-review", "--config", folder / "config", "--from",
                                   "2026-01-31", "--to", "2026-02-01", *more], capture_output=True, text=True,
                                  timeout=60, check=False)
            want(f"status of {more}", status, done.returncode)
            return done.stdout + done.stderr

        review = json.loads(run("--json"))
        by_name = {s["name"]: s for s in review["subjects"]}
        agent = by_name["agent-7"]
        want("who", ("team-a", "agent", "uid 1001", "agents", "process", ""),
             tuple(agent[k] for k in ("owner", "profile", "known_by", "listeners", "isolation", "flag")))
        want("did", (3, 1, 2, 1), tuple(agent[k] for k in ("allowed", "refused", "launches", "commands")))
        seen = grants(agent)
        for key, expected in {
                ("operation", "container.create"): (2, ""), ("operation", "container.kill"): (0, "never used"),
                ("image", "docker.io/library/python:3.12"): (2, ""), ("image", "ghcr.io/acme/**"): (0, "never used"),
                ("mount", "/srv/{identity.name} rw"): (2, ""), ("mount", "/srv/data ro"): (0, "never used"),
                ("network", "app"): (2, ""), ("network", "other"): (0, "never used"),
                ("capability", "CHOWN"): (2, ""), ("capability", "NET_ADMIN"): (0, "never used"),
                ("port", "127.0.0.1"): (2, ""), ("exception", "SEC-12"): (1, "ends in 10 days"),
                ("exception", "SEC-11"): (0, "has ended"), ("exception", "SEC-13"): (0, "never used")}.items():
            want(key, expected, seen.get(key))
        want("idle", "not used", by_name["idle"]["flag"])
        want("unheard", "no listener takes it", by_name["unheard"]["flag"])
        want("others", (1, ""), (by_name["(others at agents)"]["allowed"], by_name["(others at agents)"]["flag"]))
        want("gone", ("unknown", "not in the configuration"), (by_name["gone"]["kind"], by_name["gone"]["flag"]))
        want("bounded", 200, sum(s["kind"] == "unknown" for s in review["subjects"]) - 1)
        want("the rest", 61, by_name["(more)"]["allowed"])
        want("role", (1, "root and who starts the gate"),
             (by_name["(admin: operate)"]["allowed"], by_name["(admin: operate)"]["known_by"]))
        want("nobody approves", "nobody", by_name["(admin: approve)"]["known_by"])
        rows = list(csv.DictReader(io.StringIO(run("--csv"))))
        want("csv", ["2", "2026-01-31T12:00:03.123456789Z", ""],
             [[r["used"], r["last_used"], r["flag"]] for r in rows
              if r["subject"] == "agent-7" and r["kind"] == "mount"][0])
        text = run()
        for line in ("agent-7", "idle   (not used)", "  mount       /srv/{identity.name} rw ", "ends in 10 days",
                     "  isolation  at least process; egress by its networks; sees what visibility says",
                     "  did        3 allowed, 1 refused; 2 launches, 1 commands; last 2026-01-31T12:00:05Z"):
            want(line, True, line in text)
        want("either", True, "either --json or --csv" in run("--json", "--csv", status=2))
        want("period", True, "ends before it begins" in run("--from", "2026-03-01", status=2))
        want("no log", True, "No such file" in run(folder / "none", status=2))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
