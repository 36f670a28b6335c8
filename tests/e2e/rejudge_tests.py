"""What an engine brings back by itself is judged again; these restart the engine, so they are the last."""

import json

from attest_tests import attestation_of, make, start, want
from kit import proc
from kit.proc import Trouble
from world import APP

SECONDS = 20  # some, on a busy machine


def record(world, ident, **wanted):
    """The newest such record about this container."""
    found = [r for r in world.gate.records() if r.get("res", [{}])[0].get("id") == ident
             and all(r.get(key) == value for key, value in wanted.items())]
    return found and found[-1]


def outcome(world, ident, op):
    """How the gate's own doing came out; its decision is by the gate, and stands before it."""
    decision = proc.until(f"{op} of {ident[:12]}", SECONDS, lambda: record(
        world, ident, type="decision", op=op))
    want("who", decision["actor"], {"identity": "gate", "auth": {"method": "self"}})
    return proc.until(f"the outcome of {op}", SECONDS, lambda: [
        r for r in world.gate.records() if r["type"] == "outcome" and r.get("of") == decision["id"]])[0]


STAYS = {"Image": APP, "Cmd": ["sleep", "600"], "HostConfig": {"RestartPolicy": {"Name": "always"}}}


def runs_in_gvisor(world):
    ident = make(world, "stay", STAYS)
    status, answer = start(world, "stay", ident)
    want(f"start {answer}", status, 204)
    want("level", attestation_of(world, "stay", ident)["attestation"]["level"], "kernel")
    return ident


def is_ended(world, ident):
    """It does not run, and its engine does not start it again by itself."""
    shown = json.loads(world.direct("inspect", ident).want().out)[0]
    return not shown["State"]["Running"] and shown["HostConfig"]["RestartPolicy"]["Name"] == "no"


def is_stopped(world, ident, cause, why, level):
    found = proc.until("a finding", SECONDS, lambda: record(world, ident, type="rejudged"))
    want("finding", (found["cause"], found["outcome"]["status"], found["reason"],
                     found["actor"]["owner"]), (cause, "stop", "runtime", "staying"))
    want("why", found["text"], 'it was made with the isolation "kernel", and ' + why)
    # Caught between the engine's start and its own, it has no process to be looked at yet; what has
    # run all the time has one.
    ended = found["attestation"]["state"] == "ended" and cause == "reconnect"
    want(f"seen {found}", found["attestation"]["level"], "unknown" if ended else level)
    killed = outcome(world, ident, "container.kill")
    # Docker 20.10 misses the end of a gVisor sandbox now and then: after 10 s it says that what it
    # killed could not be killed, and for a moment it cannot be updated. What counts is the end.
    if killed["outcome"]["status"] != "ok" and killed["outcome"]["http"] != 500:
        raise Trouble(f"kill: {killed}")
    proc.until("it is stopped for good", SECONDS, lambda: is_ended(world, ident))
    world.direct("rm", "-f", ident).want()


def test_what_runs_when_an_engine_gives_the_runtimes_name_away_is_stopped(world):
    """The engine reads its configuration anew: what the name means now, the next start would be under."""
    ident = runs_in_gvisor(world)
    world.engine.runtimes["box"] = {"path": "/usr/sbin/runc"}
    world.engine.reload()
    is_stopped(world, ident, "engine_reload", 'the engine now says "process"', "process")
    world.engine.runtimes["box"] = world.engine.runtimes["runsc"]
    world.engine.reload()


def test_what_an_engine_brings_back_under_a_weaker_runtime_is_stopped(world):
    """Made under runsc with restart=always; the runtime's name is given to runc; the engine restarts."""
    ident = runs_in_gvisor(world)
    world.engine.runtimes["box"] = {"path": "/usr/sbin/runc"}
    world.engine.restart()
    is_stopped(world, ident, "reconnect", 'the engine now says "process"', "process")
