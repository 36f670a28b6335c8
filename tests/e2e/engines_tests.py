"""Two engines behind two listeners: one on a unix socket, one that listens on TCP and wants certificates on both sides.

Each test gets the world.  The second engine and the gate before both are started once a run; the
last of these restarts that engine.
"""

import json
import os
import socket
import struct

from kit import dockerd, gate, proc, wire
from kit.proc import Trouble
from tls_tests import recipe
from world import APP, PATIENCE, Client, Done

CONFIG = """
log {{ dir = "{dir}/log" }}
profiles {{ "{dir}/profiles" }}
adopted {{ ledger = "{dir}/adopted.json" }}
backend "one" {{ kind = "docker", address = "unix://{one}", files = "same_host" }}
backend "two" {{ kind = "docker", address = "tcp://127.0.0.1:{port}",
	tls = {{ ca = "{dir}/tls/ca.pem", cert = "{dir}/tls/gate/cert.pem", key = "{dir}/tls/gate/key.pem" }} }}
backend "again" {{ kind = "docker", address = "unix://{two}", files = "same_host" }}
identity "alice" {{ uid = 0, profile = "plain", own_socket = "own" }}
listener "one" {{ socket = "{dir}/s/one.sock", mode = "0666", backend = "one", identities = {{ "alice" }} }}
listener "two" {{ socket = "{dir}/s/two.sock", mode = "0666", backend = "two", identities = {{ "alice" }} }}
listener "again" {{ socket = "{dir}/s/again.sock", mode = "0666", backend = "again", identities = {{ "alice" }} }}
listener "own" {{ socket = "{dir}/s/own.sock", mode = "0666", backend = "one", as = "alice" }}
"""

PROFILES = """
return profile "plain" {
	isolation = { min = "process" },
	images = { "reg.example/team/*" },
	mounts = { { "/tmp", "rw" } },
	egress = {},
	limits = { memory = "1GiB", cpus = 2, pids = 256 },
	operations = { "read", "container.run", "exec" },
	own_socket = true,
	harden = true,
}
"""


class Second(dockerd.Dockerd):
    """An engine beside the world's, on TCP with TLS as well; it knows images by the same registry."""

    def __init__(self, folder, world, certs, port):
        super().__init__(folder, own_bridge=True)
        self.registry = world.engine.registry
        self.command = ("dockerd", "--tlsverify", "--tlscacert", certs / "ca.pem", "--tlscert", certs / "server.pem",
                        "--tlskey", certs / "server.key", "--host", f"tcp://127.0.0.1:{port}")

    def direct(self, *arguments):
        return proc.output(self.docker(*arguments)).strip()

    kill = dockerd.Dockerd.stop  # as gates are ended where a run is given up


class Pair:
    def __init__(self, world):
        self.folder = world.folder / "e"
        (self.folder / "s").mkdir(parents=True)
        self.folder.chmod(0o755)
        port = proc.free_port()
        self.address = f"tcp://127.0.0.1:{port}"
        recipe(self.folder / "tls", "gate")
        self.engine = Second(self.folder / "d", world, self.folder / "tls", port)
        self.gate = gate.Gate(self.folder, CONFIG.format(
            dir=self.folder, one=world.engine.socket, two=self.engine.socket, port=port), {"main": PROFILES})
        world.more += [self.gate, self.engine]
        self.engine.start()
        self.engine.direct("pull", "-q", APP)
        self.gate.start(*(self.folder / f"s/{name}.sock" for name in ("one", "two", "again", "own")))
        like = world.clients()[0]
        self.one, self.two, self.again = (Client(like.program, like.version, name, self.folder / f"s/{name}.sock",
                                                 world.home) for name in ("one", "two", "again"))

    def run(self, *arguments):
        status, out, errors = self.gate.run(*arguments)
        return Done(arguments, status, out, errors)


def pair(world):
    if not hasattr(world, "pair"):
        world.pair = Pair(world)
    return world.pair


def test_two_engines_behind_two_listeners_do_not_mix(world):
    """Names, ids, what is adopted, and paths that lead around the gate: each engine has its own."""
    both = pair(world)
    ids = [client.docker("run", "-d", "--name", "twin", APP, "sleep", "600").want().out.strip()
           for client in (both.one, both.two)]
    for client, mine, other in ((both.one, *ids), (both.two, *reversed(ids))):
        client.docker("inspect", "-f", "{{.Id}}", "twin").want(out=mine)
        client.docker("inspect", other).want(1, errors="No such object")
        client.docker("stop", other).want(1, errors="No such container")
        if client.docker("ps", "-q", "--no-trunc").want().out.split() != [mine]:
            raise Trouble(f"a list shows more or less than {mine}")
    both.two.docker("rm", "-f", "twin").want()
    both.one.docker("exec", "twin", "echo", "still here").want(out="still here")
    both.one.docker("rm", "-f", "twin").want()


def test_what_is_adopted_on_one_engine_is_nobodys_on_the_other(world):
    both = pair(world)
    world.direct("run", "-d", "--name", "older", APP, "sleep", "600").want()
    both.engine.direct("run", "-d", "--name", "older", APP, "sleep", "600")
    both.run("adopt", "--config", both.gate.config, "--owner", "alice", "--filter", "name=older").want(
        2, errors="--backend NAME")
    # Over TCP and TLS, with the gate's own certificate.
    both.run("adopt", "--config", both.gate.config, "--owner", "alice", "--filter", "name=older",
             "--backend", "two").want(out="older")
    if status := both.gate.stop():
        raise Trouble(f"the gate ended with status {status}")
    both.gate.output.unlink()
    both.gate.start()
    both.two.docker("stop", "-t", "0", "older").want(out="older")
    both.one.docker("stop", "-t", "0", "older").want(1, errors="No such container")
    # The same engine by another name is another one: the ledger says of which it speaks.
    both.again.docker("inspect", "older").want(1, errors="No such object")
    world.direct("rm", "-f", "older").want()
    both.engine.direct("rm", "-f", "older")


def test_no_engine_leads_around_the_other(world):
    """Each engine's socket, and the one that stands for it, is out of reach for containers of the other."""
    both = pair(world)
    for client, paths in ((both.one, (both.engine.socket, both.folder / "s", both.folder / "s/two.sock")),
                          (both.two, ("/var/run/docker.sock", world.engine.socket, both.folder / "s/own.sock")),
                          (both.again, ("/var/run/docker.sock", both.engine.socket, both.folder / "s/own.sock"))):
        for path in paths:
            client.docker("run", "--rm", "-v", f"{path}:/x", APP, "true").want(125, errors="bind_protected")
    name = both.one.sleeper("-v", "/var/run/docker.sock:/x")
    both.one.docker("inspect", "-f", "{{.HostConfig.Binds}}", name).want(out="own.sock:/x")
    both.one.docker("rm", "-f", name).want()


def frames(stream):
    """The next piece of a multiplexed stream: (which, data); None at its end."""
    if not stream.buffer and not stream.fill():
        return None
    kind, size = struct.unpack(">BxxxL", stream.exact(8))
    return kind, stream.exact(size)


def attached(both, name, *command):
    """An exec's raw stream through the gate, whose sides can be closed one by one."""
    path = both.folder / "s/two.sock"
    body = json.dumps({"AttachStdin": True, "AttachStdout": True, "AttachStderr": True, "Cmd": command}).encode()
    head, answer = wire.ask(path, "POST", f"/v1.41/containers/{name}/exec",
                            [("Content-Type", "application/json")], body, seconds=PATIENCE)
    if head.status != 201:
        raise Trouble(f"exec: {head.status} {answer}")
    stream = wire.connect(path, seconds=PATIENCE)
    say = b'{"Detach":false,"Tty":false}'
    ident = json.loads(answer)["Id"]
    stream.send(f"POST /v1.41/exec/{ident}/start HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\n"
                f"Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: {len(say)}\r\n\r\n".encode() + say)
    if (head := stream.reply()).status != 101:
        raise Trouble(f"exec start: {head.start}")
    return stream


def test_an_engine_that_wants_certificates_carries_commands_both_ways(world):
    both = pair(world)
    both.two.docker("run", "--rm", APP, "echo", "over TLS").want(out="over TLS")
    both.two.docker("run", "--rm", "--privileged", APP, "true").want(125, errors="privileged")
    # Attached to a container from its beginning; the input's end must arrive, and what is said behind it come back.
    both.two.docker("run", "--rm", "-i", APP, "sh", "-c", "cat; echo behind", stdin=b"x" * 300000).want(out="xxbehind")
    name = both.two.sleeper()
    # The caller closes its side first, and goes on reading.
    stream = attached(both, name, "sh", "-c", "echo ready; wc -c; echo behind")
    if frames(stream) != (1, b"ready\n"):
        raise Trouble("the command did not begin")
    stream.send(b"y" * 500000)
    stream.sock.shutdown(socket.SHUT_WR)
    seen = b"".join(data for _, data in iter(lambda: frames(stream), None))
    if seen != b"500000\nbehind\n":
        raise Trouble(f"behind the input's end: {seen!r}")
    # The engine's side ends first, while the caller could say more.
    stream = attached(both, name, "sh", "-c", "read word; echo got $word; exit 3")
    stream.send(b"this\n")
    if (seen := frames(stream)) != (1, b"got this\n") or (seen := frames(stream)) is not None:
        raise Trouble(f"before its end the engine said {seen!r}")
    stream.sock.close()
    both.two.docker("rm", "-f", name).want()


def test_the_doctor_asks_an_engine_over_tls(world):
    both = pair(world)
    done = both.run("doctor", "--config", both.gate.config)
    if f"{both.address}: runtime 'runsc' is" not in done.out:
        raise Trouble(f"the doctor does not tell of it: {done}")


def test_an_engine_that_restarts_with_a_new_socket_is_found_again(world):
    """Both ways to it: its unix socket is another file by then, its TLS session another one."""
    both = pair(world)
    kept = both.folder / "kept"
    os.link(both.engine.socket, kept)  # so that the number cannot come back
    before = os.stat(both.engine.socket).st_ino
    stays = both.again.sleeper()
    both.again.docker("stop", "-t", "0", stays).want()  # the engine would give it ten seconds
    both.engine.restart()
    if os.stat(both.engine.socket).st_ino == before:
        raise Trouble("it is the same socket")
    for client in (both.two, both.again):
        proc.until("the engine is reached again", PATIENCE, lambda c=client: c.docker("ps", "-q").status == 0)
        client.docker("start", stays).want(out=stays)
        client.docker("exec", stays, "echo", "back").want(out="back")
        client.docker("run", "--rm", APP, "echo", "anew").want(out="anew")
    both.again.docker("rm", "-f", stays).want()
    restarted = {r["backend"] for r in both.gate.records() if r.get("op") == "container.start" and
                 r["type"] == "decision" and r.get("verdict") == "allow"}
    if not {"two", "again"} <= restarted:
        raise Trouble(f"starts on record at {restarted} alone")
