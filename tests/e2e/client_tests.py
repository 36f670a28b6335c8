"""What people do with the docker client, through the gate; each test gets a client and the world."""

import hashlib
import json
import os
import subprocess
import time

from kit import wire
from kit.ids import covers
from kit.proc import Trouble, until
from world import APP, lines_of

MEGABYTE = hashlib.shake_256(b"input").digest(1 << 20)


def test_run(client, _world):
    client.docker("run", "--rm", APP, "echo", "hello").want(out="hello\n")
    client.docker("run", "--rm", APP, "sh", "-c", "echo oops >&2; exit 7").want(7, errors="oops")


def test_run_is_held(client, _world):
    name = client.sleeper()
    found = json.loads(client.docker("inspect", name).want().out)[0]
    host = found["HostConfig"]
    wanted = {"NetworkMode": "none", "CapDrop": ["ALL"], "Privileged": False}
    for key, value in wanted.items():
        if host[key] != value:
            raise Trouble(f"{key} is {host[key]}, not {value}")
    if "no-new-privileges" not in str(host["SecurityOpt"]):
        raise Trouble(f"SecurityOpt is {host['SecurityOpt']}")
    if not 0 < host["Memory"] <= 1 << 30 or not 0 < host["PidsLimit"] <= 256:
        raise Trouble(f"Memory {host['Memory']}, PidsLimit {host['PidsLimit']}")
    if client.runtime == "runsc" and host["Runtime"] != "runsc":
        raise Trouble(f"Runtime is {host['Runtime']}")
    kernel = client.docker("exec", name, "uname", "-r").want().out.strip()
    if (kernel == "4.4.0") != (client.runtime == "runsc"):
        raise Trouble(f"the kernel inside is {kernel}")
    client.docker("rm", "-f", name).want()


def test_run_on_a_terminal(client, _world):
    status, seen = client.terminal("run", "--rm", "-it", APP, "sh", say=b"echo $((6*7))-ok; exit 3\n",
                                   wait_for=b"$ ")
    if status != 3 or "42-ok" not in seen:
        raise Trouble(f"status {status}, seen {seen!r}")


@covers("I03")
def test_run_with_input(client, _world):
    done = client.docker("run", "--rm", "-i", APP, "sha256sum", stdin=MEGABYTE).want()
    if hashlib.sha256(MEGABYTE).hexdigest() not in done.out:
        raise Trouble(f"not all of the input arrived\n{done}")
    client.docker("run", "--rm", "-i", APP, "cat", stdin=b"early input\n").want(out="early input\n")


@covers("I04")
def test_exec(client, _world):
    name = client.sleeper()
    client.docker("exec", name, "echo", "out").want(out="out\n")
    client.docker("exec", name, "sh", "-c", "exit 5").want(5)
    client.docker("exec", "-i", name, "cat", stdin=b"x").want(out="x")
    client.docker("exec", "-i", name, "wc", "-c", stdin=MEGABYTE).want(out=f"{len(MEGABYTE)}")
    status, seen = client.terminal("exec", "-it", name, "sh", say=b"echo $((40+2))-exec; exit 4\n",
                                   wait_for=b"$ ")
    if status != 4 or "42-exec" not in seen:
        raise Trouble(f"on a terminal: status {status}, seen {seen!r}")
    client.docker("rm", "-f", name).want()


def test_attach(client, _world):
    name = client.sleeper(command=("sh", "-c", "read line; echo got $line"), options=("-i",))
    process = client.start("attach", name, stdin=subprocess.PIPE)
    process.stdin.write(b"typed\n")
    process.stdin.flush()
    # The client itself drops output when its input ends first, gate or no gate.
    if next(lines_of(process)) != "got typed":
        raise Trouble("attach: no answer to what was typed")
    process.stdin.close()
    if process.wait(60) != 0:
        raise Trouble(f"attach: status {process.returncode}")
    client.docker("rm", "-f", name).want()


def test_logs(client, _world):
    # By a signal: an exec whose container ends meanwhile is left open by the engine on gVisor, gate or no gate.
    name = client.sleeper(command=("sh", "-c", "trap 'echo two; exit 0' TERM; echo one; "
                                               "while :; do sleep 0.05; done"))
    process = client.start("logs", "-f", name)
    lines = lines_of(process)
    if next(lines) != "one":
        raise Trouble("the first line of the log did not come")
    client.docker("kill", "-s", "TERM", name).want()
    if next(lines) != "two":
        raise Trouble("the second line of the log did not come")
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        running = client.docker("inspect", "-f", "{{.State.Running}}", name).out.strip()
        raise Trouble(f"logs -f does not end; the container runs: {running}") from None
    if process.returncode != 0:
        raise Trouble(f"logs -f ended with {process.returncode}")
    client.docker("logs", "--tail", "1", name).want(out="two")
    client.docker("rm", "-f", name).want()


def test_events(client, world):
    """An event comes through the gate within 100 ms of coming from the engine itself."""
    streams = [wire.connect(path, seconds=60) for path in (world.engine.socket, client.path)]
    for stream in streams:
        stream.send(b"GET /v1.41/events?filters=%7B%22event%22%3A%5B%22kill%22%5D%7D HTTP/1.1\r\n"
                    b"Host: d\r\n\r\n")
        if stream.reply().status != 200:
            raise Trouble("events are refused")
    name = client.sleeper()
    client.docker("kill", name).want()
    times = []
    for stream in streams:
        stream.body.exact(len(b"{"))
        times.append(time.monotonic())
        stream.sock.close()
    if times[1] - times[0] > 0.1:
        raise Trouble(f"the event came {times[1] - times[0]:.3f} s late")
    process = client.start("events", "--filter", "event=destroy")
    lines = lines_of(process)
    second = client.sleeper()
    until("the client listens", 20, lambda: process.poll() is None)
    client.docker("rm", "-f", second).want()
    client.docker("rm", "-f", name).want()
    if "container destroy" not in next(lines):
        raise Trouble("docker events showed nothing")
    process.terminate()
    process.wait(20)


def test_looking(client, world):
    world.direct("run", "-d", "--name", "foreign", "--network", "none", "busybox", "sleep",
                 "600").want()
    try:
        name = client.sleeper()
        listed = client.docker("ps", "--format", "{{.Names}}").want(out=name).out
        if "foreign" in listed:
            raise Trouble(f"ps shows what belongs to somebody else: {listed}")
        client.docker("inspect", "foreign").want(1, errors="o such")
        client.docker("exec", "foreign", "id").want(1, errors="o such")
        client.docker("rm", "-f", "foreign")
        world.direct("inspect", "foreign").want()
        client.docker("stats", "--no-stream", name).want(out=name)
        client.docker("images").want(out="reg.example/team/app")
        client.docker("info").want(out="Server Version")
        client.docker("version").want()
        client.docker("network", "ls").want()
        client.docker("volume", "ls").want()
        if client.runtime == "runc":
            client.docker("top", name).want(out="sleep")
        client.docker("rm", "-f", name).want()
    finally:
        world.direct("rm", "-f", "foreign")


@covers("I17")
def test_copy(client, world):
    name = client.sleeper()
    source = world.home / "in.txt"
    source.write_text("carried\n")
    source.chmod(0o644)
    client.docker("cp", str(source), f"{name}:/w/in.txt").want()
    client.docker("exec", name, "cat", "/w/in.txt").want(out="carried\n")
    target = world.home / "out.txt"
    client.docker("cp", f"{name}:/w/in.txt", str(target)).want()
    if target.read_text() != "carried\n":
        raise Trouble("the copy is not what it was")
    target.unlink()
    client.docker("rm", "-f", name).want()


def test_lifecycle(client, _world):
    name = client.sleeper(command=("sh", "-c", "trap 'exit 9' TERM; while :; do sleep 0.1; done"))
    waiting = client.start("wait", name)
    client.docker("stop", "-t", "20", name).want(out=name)
    out, _ = waiting.communicate(timeout=60)
    if out.strip() not in (b"9", b"143"):
        raise Trouble(f"wait says {out!r}")
    client.docker("start", name).want()
    client.docker("restart", "-t", "0", name).want()
    client.docker("rename", name, f"{name}-b").want()
    client.docker("kill", f"{name}-b").want()
    client.docker("rm", f"{name}-b").want()
    client.docker("create", "--name", name, APP, "echo", "later").want()
    client.docker("start", "-a", name).want(out="later\n")
    client.docker("rm", name).want()


def test_pull(client, _world):
    refused = client.docker("pull", "evil.example/miner:2").want(1)
    if "evil.example/miner" not in refused.errors or "image" not in refused.errors:
        raise Trouble(f"the refusal does not say why\n{refused}")
    passed = client.docker("pull", "reg.example/team/none:1").want(1)
    if "reg.example" not in passed.errors or "profile" in passed.errors:
        raise Trouble(f"the engine's own error does not come through\n{passed}")


DENIED = {
    "--privileged": (("--privileged",), "HostConfig.Privileged"),
    "-v /:/host": (("-v", "/:/host"), "HostConfig.Binds[0]"),
    "-v docker.sock": (("-v", "/var/run/docker.sock:/var/run/docker.sock"), "HostConfig.Binds[0]"),
    "--network host": (("--network", "host"), "HostConfig.NetworkMode"),
    "--pid host": (("--pid", "host"), "HostConfig.PidMode"),
    "--cap-add": (("--cap-add", "SYS_ADMIN"), "HostConfig.CapAdd[0]"),
    "--device": (("--device", "/dev/kmsg"), "HostConfig.Devices[0]"),
    "--security-opt": (("--security-opt", "seccomp=unconfined"), "HostConfig.SecurityOpt"),
    "--user root": (("--user", "root"), "User"),
}


def test_denials(client, world):
    before = world.direct("ps", "-aq").want().out
    for name, (options, field) in DENIED.items():
        done = client.docker("run", "--rm", *options, APP, "id").want(125)
        if "Error response from daemon: " not in done.errors or field not in done.errors:
            raise Trouble(f"{name}: the denial does not reach the terminal as it should\n{done}")
    done = client.docker("run", "--rm", "evil.example/miner:1", "id").want(125)
    if "evil.example/miner" not in done.errors or "Image" not in done.errors:
        raise Trouble(f"the image: {done}")
    if world.direct("ps", "-aq").want().out != before:
        raise Trouble("something was made although it was denied")


@covers("I23")
def test_versions(client, _world):
    for version in ("1.40", "1.41"):
        client.docker("ps", DOCKER_API_VERSION=version).want()
    done = client.docker("ps", DOCKER_API_VERSION="1.12")
    if done.status == 0:
        raise Trouble(f"an API version from the stone age is served\n{done}")


def test_volumes(client, _world):
    name = f"vol-{client.runtime}-{os.getpid()}"
    client.docker("volume", "create", name).want(out=name)
    client.docker("volume", "ls").want(out=name)
    client.docker("run", "--rm", "-v", f"{name}:/tmp/v", APP, "ls", "-d", "/tmp/v").want(out="/tmp/v")
    client.docker("volume", "create", "-o", "type=none", "-o", "o=bind", "-o", "device=/",
                  f"{name}-b").want(1, errors="driver")
    client.docker("run", "--rm", "-v", "/srv/ws/a:/w/a", APP, "touch", "/w/a/made").want()
    if not os.path.exists("/srv/ws/a/made"):
        raise Trouble("the granted bind does not lead to the host")
    os.unlink("/srv/ws/a/made")
    client.docker("run", "--rm", "-v", "/srv/ws/link:/w/l", APP, "ls").want(125, errors="/srv/ws/link")
    client.docker("volume", "rm", name).want()
