"""Callers in containers of a real engine, by a socket that is mounted there and over the bridge."""

import json
import subprocess
import tempfile
from pathlib import Path

from kit import gate, proc, wire
from kit.proc import Trouble
from world import APP, PATIENCE

CONFIG = """
log {{ dir = "{dir}/log" }}
profiles {{ "{dir}/profiles" }}
backend "engine" {{ kind = "docker", address = "unix://{engine}", files = "same_host" }}
identity "proxy" {{ container = "name:edge-*", profile = "view" }}
identity "labelled" {{ container = "label:role=runner", profile = "view" }}
identity "made" {{ container = "name:child-*", made_by = "maker", profile = "view" }}
identity "maker" {{ container = "none", uid = 0, profile = "make" }}
listener "main" {{ socket = "{dir}/s/g.sock", mode = "0666", identities = {{ "proxy", "labelled", "made", "maker" }} }}
listener "bridge" {{ tcp = "{gateway}:{port}", plaintext = true, identities = {{ "proxy", "labelled" }} }}
network {{ plaintext = true }}
"""

PROFILES = """
return {
	profile "view" { operations = { "read" }, visibility = "all" },
	profile "make" {
		images = { "reg.example/team/*" }, operations = { "container.create" }, users = "any", labels = { "role" },
	},
}
"""

# Prints who the gate took it for: its refusal's code, or the id of the record.
ASK = """
import json, socket, sys
place = sys.argv[1]
if place.startswith("/"):
    s = socket.socket(socket.AF_UNIX); s.connect(place)
else:
    host, port = place.split(":"); s = socket.create_connection((host, int(port)))
s.sendall(b"GET /v1.41/version HTTP/1.1\\r\\nHost: d\\r\\nConnection: close\\r\\n\\r\\n")
data = b""
while block := s.recv(65536):
    data += block
print(data.decode())
"""


class Place:
    """A gate of its own, whose sockets' folder containers mount, with this host's Python."""

    def __init__(self, world):
        self.world = world
        self.folder = Path(tempfile.mkdtemp(prefix="sp-", dir="/tmp"))
        self.folder.chmod(0o755)
        (self.folder / "s").mkdir(mode=0o755)
        (self.folder / "s/ask.py").write_text(ASK, encoding="utf-8")
        self.port = proc.free_port()
        inspected = json.loads(world.direct("network", "inspect", "bridge").want().out)
        self.gateway = inspected[0]["IPAM"]["Config"][0]["Gateway"]
        self.gate = gate.Gate(self.folder, CONFIG.format(
            dir=self.folder, engine=world.engine.socket, gateway=self.gateway, port=self.port),
            {"e2e": PROFILES})
        world.more.append(self.gate)
        self.gate.start(self.folder / "s/g.sock")
        self.names = []

    @property
    def mounts(self):
        folders = [f"{self.folder}/s", "/usr", "/lib", "/lib64"]
        return [word for folder in folders for word in ("-v", f"{folder}:{folder}:ro")]

    def run(self, name, *options, to=None):
        """A container made past the gate that asks it once; what it was told."""
        to = to or f"{self.folder}/s/g.sock"
        return self.world.direct("run", "--rm", "--name", name, *self.mounts, *options, APP,
                                 "/usr/bin/python3", f"{self.folder}/s/ask.py", to).want().out

    def recorded(self, **want):
        """The newest record whose members are as said, by path with '_' for '.'."""
        for record in reversed(self.gate.records()):
            if all(_at(record, path) == value for path, value in want.items()):
                return record
        raise Trouble(f"no record with {want}: {self.gate.records()[-3:]}")

    def end(self):
        status = self.gate.stop()
        self.world.more.remove(self.gate)
        proc.output(["rm", "-rf", self.folder])
        if status:
            raise Trouble(f"the gate ended with status {status}")


def _at(record, path):
    for name in path.split("_"):
        record = record.get(name, {}) if isinstance(record, dict) else None
    return record


def want(text, answer):
    if text not in answer:
        raise Trouble(f"no {text!r} in {answer[:600]!r}")


def test_a_caller_in_a_container_is_known_by_it_on_a_mounted_socket(world):
    place = Place(world)
    try:
        want("200 OK", place.run("edge-1"))
        record = place.recorded(actor_identity="proxy")
        assert _at(record, "actor_container_name") == "edge-1", record
        assert _at(record, "actor_container_image") == APP, record
        assert _at(record, "actor_auth_method") == "container", record
        want("200 OK", place.run("edge-2", "--pid", "host"))
        want("200 OK", place.run("other", "--label", "role=runner"))
        # Neither is anybody, though both run as the same user, and one shares a neighbour's processes.
        want("identity_unknown", place.run("stranger"))
        world.direct("run", "-d", "--name", "edge-3", APP, "sleep", "60").want()
        want("identity_unknown", place.run("guest", "--pid", "container:edge-3"))
        world.direct("rm", "-f", "edge-3").want()
        # Below the control groups of another container, and in the namespace that it has: the host's.
        other = world.direct("run", "-d", "--name", "edge-6", "--pid", "host", APP, "sleep", "60").want().out.strip()
        want("200 OK", place.run("edge-7", "--pid", "host"))
        want("identity_unknown", place.run("parasite", "--pid", "host", "--cgroup-parent", f"/docker/{other}"))
        world.direct("rm", "-f", "edge-6").want()
        # A process of the host is in none.
        ask = subprocess.run(["python3", "-c", ASK, f"{place.folder}/s/g.sock"], check=True, text=True,
                             capture_output=True, timeout=PATIENCE).stdout
        want("[operation, ", ask)
        place.recorded(actor_identity="maker")
    finally:
        place.end()


def test_who_makes_a_container_through_the_gate_becomes_nobody_else_by_its_name(world):
    place = Place(world)
    try:
        for name, code in (("edge-forged", "identity_unknown"), ("child-1", "200 OK")):
            body = json.dumps({"Image": APP, "Labels": {"role": "runner"}, "Cmd": ["sleep", "60"],
                               "HostConfig": {"NetworkMode": "none", "Memory": 67108864}}).encode()
            head, answer = wire.ask(f"{place.folder}/s/g.sock", "POST", f"/v1.41/containers/create?name={name}",
                                    (("Content-Type", "application/json"),), body)
            if head.status != 201:
                raise Trouble(f"create: {head.status} {answer}")
            # What it may mount is its own business; here it gets the socket past the gate, by its labels alone.
            made = json.loads(world.direct("inspect", name).want().out)[0]["Config"]["Labels"]
            world.direct("rm", "-f", name).want()
            labels = [word for key, value in made.items() for word in ("--label", f"{key}={value}")]
            want(code, place.run(name, *labels))
        place.recorded(actor_container_name="edge-forged", actor_container_owner="maker", verdict="deny")
        place.recorded(actor_identity="made", actor_container_owner="maker")
    finally:
        place.end()


def test_a_caller_over_the_bridge_is_known_by_its_address(world):
    place = Place(world)
    at = f"{place.gateway}:{place.port}"
    try:
        want("200 OK", place.run("edge-4", to=at))
        record = place.recorded(actor_identity="proxy", listener="bridge")
        assert _at(record, "actor_container_name") == "edge-4", record
        want("identity_unknown", place.run("passer-by", to=at))
        # On the host's network it is one of all that have the gate's own address.
        want("container_unknown", place.run("edge-5", "--network", "host", to=at))
    finally:
        place.end()
