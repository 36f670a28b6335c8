"""The docker program at a listener with mutual TLS, with what examples/mutual-tls makes.  Each test gets the world."""

import subprocess

from kit import gate, proc
from kit.proc import Trouble
from world import APP, Client, Done, lines_of

CONFIG = """
log {{ dir = "{dir}/log" }}
profiles {{ "{dir}/profiles" }}
backend "engine" {{ kind = "docker", address = "unix://{engine}", files = "same_host" }}
identity "ci-1" {{ cert = "cn:ci-1", profile = "plain", owner = "ci" }}
listener "local" {{ socket = "{dir}/g.sock", backend = "engine", otherwise = "plain" }}
listener "network" {{ tcp = "0.0.0.0:{port}", backend = "engine", identities = {{ "ci-1" }},
	tls = {{ cert = "{dir}/tls/server.pem", key = "{dir}/tls/server.key", ca = "{dir}/tls/ca.pem" }} }}
"""

PROFILES = """
return profile "plain" {
	isolation = { min = "process" },
	images = { "reg.example/team/*" },
	egress = {},
	limits = { memory = "1GiB", cpus = 2, pids = 256 },
	operations = { "read", "container.run", "exec" },
	harden = true,
}
"""


class Remote(Client):
    """A docker program that knows only the address, and a folder with certificates."""

    def __init__(self, client, port, certs):
        super().__init__(client.program, client.version, "tls", certs, client.env["HOME"])
        self.env.update({"DOCKER_HOST": f"tcp://127.0.0.1:{port}", "DOCKER_TLS_VERIFY": "1",
                         "DOCKER_CERT_PATH": str(certs)})


def recipe(folder, *clients):
    return proc.output([proc.ROOT / "examples/mutual-tls", folder, "127.0.0.1", *clients])


def guarded(world):
    """A gate with the recipe's certificates, once a run: (gate, folder, port)."""
    if not hasattr(world, "tls"):
        folder, port = world.folder / "t", proc.free_port()
        folder.mkdir(mode=0o755)
        said = recipe(folder / "tls", "ci-1", "stranger")
        if 'cert = "cn:ci-1"' not in said:
            raise Trouble(f"the recipe does not say what to configure: {said}")
        guard = gate.Gate(folder, CONFIG.format(dir=folder, engine=world.engine.socket, port=port),
                          {"main": PROFILES})
        world.more.append(guard.start(folder / "g.sock"))
        world.tls = guard, folder, port
    return world.tls


def all_came_out(guard, operation):
    """Nothing of the kind is still going on."""
    of_kind = [r for r in guard.records() if r.get("op") == operation and r.get("verdict") != "deny"]
    decided = {r["id"] for r in of_kind if r["type"] == "decision"}
    return decided and decided == {r["of"] for r in of_kind if r["type"] == "outcome"}


def test_docker_with_tlsverify_runs_execs_and_follows(world):
    guard, folder, port = guarded(world)
    for client in {one.program: one for one in world.clients()}.values():
        docker = Remote(client, port, folder / "tls/ci-1")
        docker.docker("version").want()
        docker.docker("run", "--rm", APP, "echo", "over TLS").want(out="over TLS")
        name = docker.sleeper()
        # The end of the input must arrive, and what is said behind it come back.
        docker.docker("exec", "-i", name, "sh", "-c", "cat; echo behind", stdin=b"x" * 300000).want(
            out="xxbehind")
        docker.docker("run", "--rm", "--privileged", APP, "true").want(125, errors="privileged")
        follower = docker.start("exec", name, "sh", "-c", "echo one; sleep 600")
        try:
            if next(lines_of(follower)) != "one":
                raise Trouble("the exec's first line did not come")
        finally:
            follower.kill()
            follower.communicate()
        proc.until("the outcome of the exec whose caller left", 30, lambda: all_came_out(guard, "exec.start"))
        docker.docker("rm", "-f", name).want()


def test_docker_without_a_certificate_of_its_own_gets_nowhere(world):
    guard, folder, port = guarded(world)
    client = world.clients()[0]
    stranger = Remote(client, port, folder / "tls/stranger")
    stranger.docker("ps").want(1, errors="identity_unknown")
    command = [client.program, "--tlsverify", "--tlscacert", folder / "tls/ca.pem", "-H",
               f"tcp://127.0.0.1:{port}", "version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60,
                          env={"PATH": client.env["PATH"], "HOME": client.env["HOME"]})
    Done(command, done.returncode, done.stdout, done.stderr).want(1, errors="certificate required")
    if not any(r.get("reason") == "client_certificate" for r in guard.records()):
        raise Trouble("nothing on record of the client without a certificate")


def test_a_renewed_certificate_is_taken_while_docker_streams(world):
    guard, folder, port = guarded(world)
    docker = Remote(world.clients()[0], port, folder / "tls/ci-1")
    docker.made = 100  # names of another test are taken
    name = docker.sleeper()
    follower = docker.start("exec", "-i", name, "cat", stdin=subprocess.PIPE)
    lines = lines_of(follower)
    follower.stdin.write(b"before\n")
    follower.stdin.flush()
    if next(lines) != "before":
        raise Trouble("the stream is not there")
    before = (folder / "tls/server.pem").read_bytes()
    recipe(folder / "tls", "ci-1")
    if (folder / "tls/server.pem").read_bytes() == before:
        raise Trouble("the recipe did not renew the certificate")
    status, out, errors = guard.run("reload", "--config", guard.config)
    if status:
        raise Trouble(f"reload: {out}{errors}")
    docker.docker("ps", "-q").want()
    follower.stdin.write(b"after\n")
    follower.stdin.close()
    if next(lines) != "after" or follower.wait(30):
        raise Trouble("the stream did not live on")
    docker.docker("rm", "-f", name).want()
