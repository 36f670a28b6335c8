"""What happens past the gate is found, and nothing of what the gate did."""

import tempfile
from pathlib import Path

from kit import gate, proc
from world import PATIENCE

CONFIG = """
log {{ dir = "{dir}/log" }}
profiles {{ "{dir}/profiles" }}
backend "engine" {{ kind = "docker", address = "unix://{engine}", files = "same_host", observe = "alarm" }}
listener "main" {{ socket = "{dir}/g.sock", mode = "0666", backend = "engine", otherwise = "observed" }}
"""

PROFILE = """
return profile "observed" {
	doc = "For a test: all that is observed.",
	isolation = { min = "process" }, images = { "reg.example/team/*" }, users = "any", own_images = true,
	operations = { "read", "container.run", "exec", "image.tag", "image.build", "network.use" },
	networks = { "*" }, healthchecks = true, restart = { "no", "always" },
}
"""
APP = "reg.example/team/app:1"
PAST = [("container.create", "op-past"), ("container.start", "op-past"), ("exec.create", "op-past"),
        ("exec.start", "op-past"), ("image.tag", "op-past:1"), ("network.connect", "op-net")]


def observed(guard):
    return [(r["op"], r["res"][0]["name"]) for r in guard.records() if r["type"] == "observed"]


def ask(folder, *arguments):
    return proc.output(["/usr/bin/docker", "-H", f"unix://{folder}/g.sock", *arguments])


def through(folder):
    """Each kind of thing, and what an engine does by itself."""
    ask(folder, "run", "-d", "--name", "op-mine", "--health-cmd", "true", "--health-interval", "1s",
        APP, "sleep", "300")
    ask(folder, "exec", "op-mine", "true")
    ask(folder, "network", "create", "op-net")
    ask(folder, "network", "connect", "op-net", "op-mine")
    ask(folder, "tag", APP, "op-other:1")
    ask(folder, "restart", "-t", "0", "op-mine")
    ask(folder, "run", "-d", "--name", "op-again", "--restart", "always", APP, "sleep", "1")


def past(engine):
    for arguments in (("run", "-d", "--name", "op-past", APP, "sleep", "300"),
                      ("exec", "op-past", "echo", "hunter2"), ("tag", APP, "op-past:1"),
                      ("network", "connect", "op-net", "op-past")):
        proc.output(engine.docker(*arguments))


def test_what_happens_past_the_gate_is_found(world):
    engine = world.engine
    with tempfile.TemporaryDirectory(prefix="sp-observe-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        guard = gate.Gate(folder, CONFIG.format(dir=folder, engine=engine.socket), {"observed": PROFILE})
        try:
            guard.start(folder / "g.sock")
            through(folder)
            proc.until("the engine restarted it by itself", PATIENCE, lambda: int(proc.output(engine.docker(
                "inspect", "-f", "{{.RestartCount}}", "op-again"))) >= 2)
            if found := observed(guard):
                raise proc.Trouble(f"decided, and observed all the same: {found}")
            past(engine)
            proc.until("all of it is on record", PATIENCE, lambda: len(observed(guard)) >= len(PAST))
            if sorted(observed(guard)) != sorted(PAST):
                raise proc.Trouble(f"observed: {observed(guard)}")
            guard.stop()
            if "hunter2" in "".join(map(str, guard.records())):
                raise proc.Trouble("a command is on record")
            sums = [r for r in guard.records() if r["type"] == "observed_sum"]
            if sum(r.get("unexplained", 0) for r in sums) != len(PAST) or not sum(
                    r.get("by_engine", 0) for r in sums):
                raise proc.Trouble(f"sums: {sums}")
        finally:
            guard.kill()
            for word in ("op-mine", "op-again", "op-past"):
                proc.output(engine.docker("rm", "-f", word))
            for word in ("op-other:1", "op-past:1"):
                proc.output(engine.docker("rmi", word))
            proc.output(engine.docker("network", "rm", "op-net"))
