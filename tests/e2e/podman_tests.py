"""Podman behind the gate: both trees, with runc and with gVisor, by the clients of both."""

import json
import os
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

from kit import gate, podman, proc, wire
from kit.proc import Trouble
from world import PATIENCE, Done

APP = podman.IMAGES[0]
GROUP = "sallyport-worker"

CONFIG = """
log {{ dir = "{dir}/log" }}
profiles {{ "{dir}/profiles" }}
backend "runc" {{ kind = "podman", address = "unix://{runc}", files = "same_host", observe = "alarm" }}
backend "gvisor" {{ kind = "podman", address = "unix://{gvisor}", files = "same_host" }}
backend "wrong" {{ kind = "docker", address = "unix://{runc}", files = "same_host" }}
backend "engine" {{ kind = "podman", address = "unix://{engine}", files = "same_host" }}
identity "process" {{ uid = 0, profile = "process" }}
identity "kernel" {{ uid = 0, profile = "kernel" }}
listener "runc" {{ socket = "{dir}/runc.sock", mode = "0666", backend = "runc", identities = {{ "process" }} }}
listener "weak" {{ socket = "{dir}/weak.sock", mode = "0666", backend = "runc", identities = {{ "kernel" }} }}
listener "gvisor" {{ socket = "{dir}/gvisor.sock", mode = "0666", backend = "gvisor", identities = {{ "kernel" }} }}
listener "wrong" {{ socket = "{dir}/wrong.sock", mode = "0666", backend = "wrong", identities = {{ "process" }} }}
listener "engine" {{ socket = "{dir}/engine.sock", mode = "0666", backend = "engine", identities = {{ "process" }} }}
"""

PROFILES = """
local function made(name, min, runtimes)
	return profile(name) {
		doc = "The end-to-end tests of Podman.",
		isolation = { min = min, runtimes = runtimes },
		images = { "reg.example/team/*" }, local_images = { "reg.example/team/*" },
		egress = {}, limits = { memory = "1GiB", cpus = 2, pids = 256 },
		quota = { containers = 2 },
		operations = { "read", "container.run", "container.copy", "exec", "image.pull", "volume.use" },
		harden = true,
	}
end

return { made("process", "process"), made("kernel", "kernel", { "runsc" }) }
"""


class Place:
    """Two services, one with gVisor, and a gate before both."""

    def __init__(self, world):
        self.world = world
        self.folder = Path(tempfile.mkdtemp(prefix="sp-pod-", dir="/tmp"))
        self.folder.chmod(0o755)
        gate.make_users()
        self.runc = podman.Podman(self.folder / "r", group=GROUP)
        self.gvisor = podman.Podman(self.folder / "g", gvisor=True, group=GROUP)
        self.gate = None

    def start(self):
        makers = [threading.Thread(target=lambda s=service: s.start().import_images())
                  for service in (self.runc, self.gvisor)]
        for maker in makers:
            maker.start()
        for maker in makers:
            maker.join()
        self.gate = gate.Gate(self.folder, CONFIG.format(
            dir=self.folder, runc=self.runc.socket, gvisor=self.gvisor.socket,
            engine=self.world.engine.socket), {"podman": PROFILES})
        self.gate.start(self.folder / "runc.sock", self.folder / "gvisor.sock")
        return self

    def end(self):
        if self.gate:
            self.gate.kill()
        self.runc.stop()
        self.gvisor.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, command, stdin):
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=PATIENCE, check=False,
                              env={"PATH": os.environ["PATH"], "HOME": str(self.folder)})
        return Done(command, done.returncode, done.stdout.decode(errors="replace"),
                    done.stderr.decode(errors="replace"))

    def docker(self, listener, *arguments, stdin=b""):
        return self._run(["/usr/bin/docker", "-H", f"unix://{self.folder}/{listener}.sock", *arguments], stdin)

    def podman(self, listener, *arguments, stdin=b""):
        return self._run(["podman", "--remote", "--url", f"unix://{self.folder}/{listener}.sock",
                          *arguments], stdin)

    def ask(self, listener, method, target, body=None):
        """(status, JSON) of a request without a client."""
        said = None if body is None else json.dumps(body).encode()
        head, answer = wire.ask(self.folder / f"{listener}.sock", method, target,
                                [("Content-Type", "application/json")] if said else (), said,
                                seconds=PATIENCE)
        return head.status, json.loads(answer) if answer.strip() else None


LISTENERS = {"runc": "runc", "gvisor": "/usr/bin/runsc"}


def check_docker(place, listener):
    """The docker client: run, input, exec, copy, volumes, stop and start."""
    run, kernel = lambda *a, **k: place.docker(listener, *a, **k), os.uname().release
    shown = run("run", "--rm", APP, "uname", "-r").want().out.strip()
    if (shown == kernel) != (listener == "runc"):
        raise Trouble(f"{listener}: the kernel in it is {shown}, the host's is {kernel}")
    run("run", "--rm", "-i", APP, "cat", stdin=b"given\n").want(out="given")
    run("run", "-d", "--name", "w", APP, "sleep", "300").want()
    run("exec", "w", "id").want(out="uid=1000")
    run("exec", "-i", "w", "cat", stdin=b"through\n").want(out="through")
    run("exec", "w", "sh", "-c", "exit 7").want(7)
    run("rm", "-f", "w").want()
    if listener == "gvisor":
        return
    run("run", "--rm", "-v", "data:/data", APP, "true").want(125, errors="docker volume create data")
    run("volume", "create", "data").want()
    run("run", "--rm", "-v", "data:/data", APP, "ls", "/data").want()
    run("volume", "rm", "data").want()


def check_podman(place, listener):
    """Podman's own client, in its own tree."""
    run = lambda *a, **k: place.podman(listener, *a, **k)  # noqa: E731
    run("run", "--rm", "--memory", "64m", "--cap-drop", "all", "--read-only", "-e", "A=told", APP, "sh", "-c",
        "echo $A").want(out="told")
    run("run", "--rm", "-i", APP, "cat", stdin=b"given\n").want(out="given")
    if listener == "gvisor":
        return
    run("run", "-d", "--name", "p", APP, "sleep", "300").want()
    run("exec", "p", "id").want(out="uid=1000")
    run("exec", "p", "sh", "-c", "exit 7").want(7)
    run("exec", "-i", "p", "cat", stdin=b"x").want(125, errors="upgrade")
    run("ps").want(out=" p")
    run("inspect", "p").want(out=LISTENERS[listener])
    run("rm", "-f", "-t", "0", "p").want()
    run("volume", "create", "own").want()
    run("volume", "ls").want(out="own")
    run("volume", "rm", "own").want()
    run("run", "--rm", "--privileged", APP, "id").want(125, errors="privileged")
    run("run", "--rm", "--security-opt", "unmask=ALL", APP, "id").want(125, errors="unmask")
    run("run", "--rm", "--rootfs", "/", "id").want(125, errors="rootfs")
    run("run", "--rm", "-v", "/etc:/e", APP, "id").want(125, errors="bind")
    run("pod", "create").want(125, errors="libpod")


def check_sandbox(place, listener):
    """What the process of sandboxes asks for: locked down from the first request on, over the compatible tree."""
    status, made = place.ask(listener, "POST", "/v1.41/containers/create?name=box", {
        "Image": APP, "Cmd": ["sleep", "300"], "User": "65534:65534", "Labels": {},
        "HostConfig": {"NetworkMode": "none", "ReadonlyRootfs": True, "Init": False, "CapDrop": ["ALL"],
                       "SecurityOpt": ["no-new-privileges"], "Memory": 64 << 20, "PidsLimit": 64,
                       "NanoCpus": 500000000, "Tmpfs": {"/tmp": "size=1048576,noexec,nosuid,nodev"}}})
    if status != 201:
        raise Trouble(f"create: {status} {made}")
    status, answer = place.ask(listener, "POST", f"/v1.41/containers/{made['Id']}/start")
    if status != 204:
        raise Trouble(f"start: {status} {answer}")
    status, shown = place.ask(listener, "GET", f"/v4.0.0/libpod/containers/{made['Id']}/json")
    if status != 200 or shown["OCIRuntime"] != LISTENERS[listener]:
        raise Trouble(f"inspect: {status} {shown}")
    status, answer = place.ask(listener, "DELETE", f"/v1.41/containers/{made['Id']}?force=1&v=1")
    if status != 204:
        raise Trouble(f"remove: {status} {answer}")


def check_isolation(place):
    """The level is that of what the service runs, whatever a request or a name says."""
    place.docker("weak", "run", "--rm", APP, "id").want(125, errors="isolation")
    place.docker("weak", "run", "--rm", "--runtime", "runsc", APP, "id").want(125, errors="starts everything with runc")
    place.docker("wrong", "run", "--rm", APP, "id").want(125, errors='kind = \\"podman\\"'.replace("\\", ""))
    place.docker("engine", "run", "--rm", APP, "id").want(125, errors="not Podman")
    # Made while the service had runc: it is not started behind a service that has gVisor now.
    status, made = place.ask("runc", "POST", "/v1.41/containers/create?name=older", {"Image": APP, "Cmd": ["sleep", "9"]})
    if status != 201:
        raise Trouble(f"create: {status} {made}")
    place.runc.restart(gvisor=True)
    target = f"/v1.41/containers/{made['Id']}/start"
    # Until the gate has met the new service, it is told that there is none.
    proc.until("it is not there for somebody else", PATIENCE,
               lambda: place.ask("weak", "POST", target)[0] == 404, pause=0.1)
    proc.until("the gate has met the new service", PATIENCE,
               lambda: place.ask("runc", "GET", "/v1.41/containers/json")[0] == 200, pause=0.1)
    status, answer = place.ask("runc", "POST", target)
    if status != 403 or "runtime" not in answer["message"]:
        raise Trouble(f"a container of the runtime of before: {status} {answer}")
    place.runc.restart(gvisor=False)


def check_past(place):
    """What is made and started past the gate is on record; what went through it is not."""
    def observed():
        return [(r["op"], r["res"][0]["name"]) for r in place.gate.records()
                if r["type"] == "observed" and r["backend"] == "runc"]

    place.docker("runc", "run", "-d", "--name", "mine", APP, "sleep", "300").want()
    proc.output(place.runc.docker("run", "-d", "--name", "past", "--network", "none", APP, "sleep", "300"))
    wanted = {("container.create", "past"), ("container.start", "past")}
    proc.until("it is on record", PATIENCE, lambda: wanted <= set(observed()))
    if more := set(observed()) - wanted:
        raise Trouble(f"observed besides: {more}")


def check_owners(place):
    """Nobody sees or touches what is not the caller's; a quota counts what runs."""
    proc.output(place.gvisor.docker("create", "--name", "others", "--network", "none", APP, "sleep", "300"))
    for client in (place.docker, place.podman):
        if "others" in client("gvisor", "ps", "-a").want().out:
            raise Trouble("what is nobody's is listed")
        client("gvisor", "start", "others").want(125 if client == place.podman else 1, errors="o such container")
    for number in range(2):
        place.docker("gvisor", "run", "-d", "--name", f"q{number}", APP, "sleep", "300").want()
    place.docker("gvisor", "run", "-d", APP, "sleep", "300").want(125, errors="quota_exceeded")


def test_podman_with_runc_and_with_gvisor(world):
    place = Place(world)
    try:
        place.start()
        check_past(place)
        for listener in LISTENERS:
            check_sandbox(place, listener)
            check_docker(place, listener)
            check_podman(place, listener)
        check_owners(place)
        check_isolation(place)
        if status := place.gate.stop():
            raise Trouble(f"the gate ended with status {status}: {place.gate.said()[-2000:]}")
    except Trouble as trouble:
        raise Trouble(f"{trouble}\nthe gate said: {place.gate.said()[-600:] if place.gate else ''}") from None
    finally:
        place.end()
