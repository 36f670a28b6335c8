"""What the host's kernel shows of a container that was started, with real runtimes; each test gets the world."""

import ctypes
import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

from kit import proc
from kit.proc import Trouble
from world import APP

JSON = [("Content-Type", "application/json")]
RENAME_EXCHANGE, AT_FDCWD = 2, -100


def attestation_of(world, listener, ident, op="container.start"):
    """The newest outcome of an operation on this container, when it is on disk."""
    def found():
        decisions = [r for r in world.gate.records() if r.get("op") == op
                     and r["type"] == "decision" and r["listener"] == listener
                     and r["res"][0]["id"] == ident]
        outcomes = {r.get("of"): r for r in world.gate.records() if r["type"] == "outcome"}
        return decisions and outcomes.get(decisions[-1]["id"])
    return proc.until(f"the outcome of {op} {ident[:12]}", 10, found)


def make(world, listener, body, name=None):
    target = "/v1.41/containers/create" + (f"?name={name}" if name else "")
    head, answer = world.ask(listener, "POST", target, JSON, json.dumps(body).encode())
    if head.status != 201:
        raise Trouble(f"create: {head.status} {answer}")
    return json.loads(answer)["Id"]


def start(world, listener, ident):
    head, answer = world.ask(listener, "POST", f"/v1.41/containers/{ident}/start")
    return head.status, answer.decode(errors="replace")


def pid_of(world, ident):
    return int(world.direct("inspect", "-f", "{{.State.Pid}}", ident).want().out)


def sleeper(binds=(), **host):
    return {"Image": APP, "Cmd": ["sleep", "600"], "HostConfig": {"Binds": list(binds), **host}}


def want(what, got, wanted):
    if got != wanted:
        raise Trouble(f"{what}: {got!r}, not {wanted!r}")


def looked_at(world, listener, level, owner):
    ident = make(world, listener, sleeper(["/srv/ws/a:/w", "/srv/ws:/r:ro"]))
    status, answer = start(world, listener, ident)
    if status != 204:
        raise Trouble(f"start: {status} {answer}")
    seen = attestation_of(world, listener, ident)["attestation"]
    for key, value in (("level", level), ("state", "seen"), ("by", "resolver"), ("seccomp", 2),
                       ("pid", pid_of(world, ident)), ("unknown", None), ("differs", None)):
        want(f"{owner}: {key}", seen.get(key), value)
    for mount in seen["mounts"]:
        real = os.stat({"/w": "/srv/ws/a", "/r": "/srv/ws"}[mount["target"]])
        want(mount["target"], mount["ino"], real.st_ino)
        want(mount["target"], mount["dev"],
             f"{os.major(real.st_dev)}:{os.minor(real.st_dev)}")
    for op, arguments in (("container.restart", "restart?t=0"), ("container.unpause", "unpause")):
        if op == "container.unpause":
            world.direct("pause", ident).want()
        head, answer = world.ask(listener, "POST", f"/v1.41/containers/{ident}/{arguments}")
        want(f"{op} {answer}", head.status, 204)
        again = attestation_of(world, listener, ident, op)["attestation"]
        want(f"{op}: level", again["level"], level)
        want(f"{op}: pid", again["pid"], pid_of(world, ident))
    world.direct("rm", "-f", ident).want()
    return seen


def test_ordinary_containers_are_attested(world):
    """runc: privileges, namespaces, limits and mounts are those that were judged, as the kernel has them."""
    seen = looked_at(world, "attested-runc", "process", "runc")
    want("no_new_privs", seen["no_new_privs"], True)
    want("capabilities", seen["caps"]["bnd"], "0")
    want("memory", seen["cgroup"]["memory"], 1 << 30)
    want("not shown", seen["not_shown"], ["runtime"])
    for name in ("mnt", "pid", "net", "ipc", "uts"):
        want(name, seen["namespaces"][name]["host"], False)


def test_sandboxes_are_attested(world):
    """runsc: the process is the sandbox of the runtime's own program; what it hides is listed, not denied."""
    seen = looked_at(world, "attested-runsc", "kernel", "runsc")
    runsc = os.stat("/usr/bin/runsc")
    want("program", (seen["runtime"]["same"], seen["runtime"]["ino"]), (True, runsc.st_ino))
    if "--network=none" not in seen["flags"] or "limits" not in seen["not_shown"]:
        raise Trouble(f"flags {seen['flags']}, not shown {seen['not_shown']}")


def test_short_lived_containers_are_no_error(world):
    """A container that is over before anybody could look is not held against its caller."""
    for listener in ("attested-runc", "attested-runsc"):
        ident = make(world, listener, {"Image": APP, "Cmd": ["true"], "HostConfig": {}})
        status, answer = start(world, listener, ident)
        want(f"start under {listener} {answer}", status, 204)
        seen = attestation_of(world, listener, ident)["attestation"]
        if seen["state"] not in ("seen", "ended"):
            raise Trouble(f"state {seen}")
        world.direct("rm", "-f", ident).want()


def test_a_runtime_whose_program_lies_is_killed(world):
    """A program called runsc that is runc passes for gVisor until something runs under it."""
    ident = make(world, "liar", sleeper(Runtime="liar"))
    status, answer = start(world, "liar", ident)
    if status != 403 or "attestation_failed" not in answer or "HostConfig.Runtime" not in answer:
        raise Trouble(f"start: {status} {answer}")
    want("it was killed", pid_of(world, ident), 0)
    outcome = attestation_of(world, "liar", ident)
    want("reason", outcome["reason"], "attestation_failed")
    want("level", outcome["attestation"]["level"], "process")
    if "killed" not in outcome["outcome"]["err"] or ident[:12] not in world.gate.said():
        raise Trouble(f"{outcome} / {world.gate.said()[-500:]}")
    world.direct("rm", "-f", ident).want()


class Swapper(threading.Thread):
    """Puts a link into the place of a directory and back, again and again."""

    def __init__(self, one, other):
        super().__init__(daemon=True)
        self.names = [os.fsencode(one), os.fsencode(other)]
        self.over = threading.Event()
        self.libc = ctypes.CDLL(None, use_errno=True)

    def run(self):
        while not self.over.wait(random.uniform(0.0005, 0.04)):
            if self.libc.renameat2(AT_FDCWD, self.names[0], AT_FDCWD, self.names[1],
                                   RENAME_EXCHANGE):
                raise OSError(ctypes.get_errno(), "renameat2")

    def __exit__(self, *_):
        self.over.set()
        self.join()

    def __enter__(self):
        self.start()
        return self


def workload_of(pid):
    """The process that has the container's mounts: for gVisor the gofer beside the sandbox."""
    command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    if command[0] != b"runsc-sandbox":
        return pid
    with open(f"/proc/{pid}/stat", encoding="latin-1") as stat:
        parent = int(stat.read().rpartition(")")[2].split()[1])
    for child, _ in proc.children(parent):
        if Path(f"/proc/{child}/cmdline").read_bytes().startswith(b"runsc-gofer\0"):
            return child
    raise Trouble(f"no gofer beside {pid}")


def race(world, listener, rounds=400, seconds=75, wanted=3):
    """
    Starts a container over and over while its source is swapped.  Whatever the gate
    lets run must have the directory that was granted; the rest must be dead.
    """
    place, link = Path("/srv/ws/a/race"), Path("/srv/ws/a/race.link")
    place.mkdir()
    os.chown(place, 1000, 1000)  # its owner may rename it in a sticky directory
    link.symlink_to("/srv/ws-evil")
    granted, evil = place.stat().st_ino, os.stat("/srv/ws-evil").st_ino
    seen = {"refused": 0, "right": 0, "undone": 0, "engine": 0, "over": 0}
    ident = make(world, listener, sleeper([f"{place}:/w"]))
    until = time.monotonic() + seconds
    try:
        with Swapper(place, link):
            for _ in range(rounds):
                if seen["undone"] >= wanted or time.monotonic() > until:
                    break
                seen[one_round(world, listener, ident, granted, evil)] += 1
    finally:
        world.direct("rm", "-f", ident)
        for path in (place, link):
            path.unlink() if path.is_symlink() else path.rmdir()
    print(f"     {listener}: {seen}", file=sys.stderr)
    if not seen["undone"]:
        raise Trouble(f"the race was never won, so nothing is proven: {seen}")


def one_round(world, listener, ident, granted, evil):
    status, answer = start(world, listener, ident)
    pid = pid_of(world, ident)
    if status == 204 and pid:
        found = os.stat(f"/proc/{workload_of(pid)}/root/w").st_ino
        world.direct("kill", ident)
        proc.until("the container ends", 20, lambda: not pid_of(world, ident))
        if found != granted:
            raise Trouble(f"it runs with inode {found} (evil is {evil}), not {granted}")
        return "right"
    if pid:
        raise Trouble(f"{status} {answer}, and it runs on")
    if "attestation_failed" in answer:
        return "undone"
    if status == 204:
        return "over"
    return "refused" if status == 403 else "engine"


def test_a_race_that_is_won_is_undone_runc(world):
    race(world, "race-runc")


def test_a_race_that_is_won_is_undone_runsc(world):
    race(world, "race-runsc")


def test_what_attestation_costs(world):
    """Side by side: starts past the gate, and through it; printed, and bounded generously."""
    took = {"direct": [], "gate": []}
    for _ in range(8):
        for how in took:
            ident = make(world, "attested-runc", sleeper())
            began = time.monotonic()
            if how == "direct":
                world.direct_start(ident)
            else:
                want("start", start(world, "attested-runc", ident)[0], 204)
            took[how].append(time.monotonic() - began)
            subprocess.run(world.engine.docker("rm", "-f", ident), check=True,
                           capture_output=True)
    middle = {how: sorted(times)[len(times) // 2] * 1000 for how, times in took.items()}
    print(f"     a start takes {middle['direct']:.0f} ms, through the gate {middle['gate']:.0f} ms",
          file=sys.stderr)
    if middle["gate"] > middle["direct"] + 250:
        raise Trouble(f"{middle}")
