"""What people do with the docker command; each test gets a client and the place."""

import io
import json
import subprocess
import tarfile
import time
import urllib.request

from e2e.world import lines_of
from kit import proc
from kit.ids import covers
from kit.proc import Trouble
from place import APP
from tars import tar_of


def equal(what, found, wanted):
    if found != wanted:
        raise Trouble(f"{what}: {found!r}, not {wanted!r}")


def name_of(client, word):
    return f"{word}-{client.version.replace('.', '-')}"


def test_run(client, _place):
    done = client.docker("run", "--rm", "-e", "A=b", "-w", "/w", "--hostname", "host-a", "--label",
                         "team.what=test", "-m", "64m", "--cpus", "0.5", "--pids-limit", "50",
                         "--read-only", "--init", "--shm-size", "8m", "--stop-signal", "INT",
                         "--tmpfs", "/t:size=1m", "-u", "1000:1000", APP, "sh", "-c",
                         "echo $A $(pwd) $(hostname) $(id -u); echo oops >&2; exit 7").want(7)
    equal("output", done.out, "b /w host-a 1000\n")
    equal("errors", done.errors, "oops\n")


def test_run_on_a_terminal(client, _place):
    status, seen = client.terminal("run", "--rm", "-it", APP, "sh",
                                   say=b"stty size; echo $((6*7))-ok; exit 3\n", wait_for=b"$ ")
    if status != 3 or "42-ok" not in seen:
        raise Trouble(f"status {status}, seen {seen!r}")


@covers("I08")
def test_exec_as_it_comes(client, _place):
    """Without and with input, without and with a terminal: peers lose the output of the first."""
    name = client.sleeper()
    client.docker("exec", name, "ls", "/").want(out="etc\n")
    client.docker("exec", "-i", name, "ls", "/").want(out="etc\n")
    client.docker("exec", "-d", name, "touch", "/tmp/detached").want()
    client.docker("exec", "-e", "A=b", "-w", "/tmp", "-u", "1000", name, "sh", "-c",
                  "echo $A $(pwd) $(id -u); exit 9").want(9, out="b /tmp 1000\n")
    status, seen = client.terminal("exec", "-t", name, "ls", "/", say=b"", wait_for=b"etc")
    if status or "etc" not in seen:
        raise Trouble(f"exec -t: status {status}, seen {seen!r}")
    client.docker("rm", "-f", name).want()


def binary(client, *arguments):
    """Standard output as bytes."""
    return subprocess.run([client.program, *arguments], env=client.env, capture_output=True,
                          check=True, timeout=60).stdout


@covers("I17")
def test_copy(client, place):
    name, home = client.sleeper(), place.home / f"copy-{client.version}"
    (home / "tree/below").mkdir(parents=True)
    (home / "tree/one").write_text("1\n")
    (home / "tree/below/two").write_text("2\n")
    client.docker("cp", str(home / "tree/one"), f"{name}:/w/one").want()
    client.docker("cp", str(home / "tree"), f"{name}:/w/").want()
    client.docker("exec", name, "cat", "/w/one", "/w/tree/below/two").want(out="1\n2\n")
    client.docker("cp", f"{name}:/w/tree", str(home / "back")).want()
    equal("a directory that was carried back", (home / "back/below/two").read_text(), "2\n")
    client.docker("cp", "-", f"{name}:/w", stdin=tar_of("three", b"3\n")).want()
    client.docker("exec", name, "cat", "/w/three").want(out="3\n")
    with tarfile.open(fileobj=io.BytesIO(binary(client, "cp", f"{name}:/w/three", "-"))) as archive:
        equal("the tar that cp writes", archive.extractfile("three").read(), b"3\n")
    client.docker("cp", f"{name}:/nothing", str(home)).want(1, errors="/nothing")
    client.docker("rm", "-f", name).want()


@covers("I11")
def test_stats(client, place):
    name = client.sleeper(options=("-m", "64m"))
    client.docker("stats", "--no-stream", "--format", "{{.Name}} {{.PIDs}}", name).want(out=f"{name} 1")
    process = client.start("stats", "--format", "{{.Name}}", name)
    seen = 0
    for line in lines_of(process):
        seen += name in line
        if seen == 3:
            break
    process.kill()  # newer clients do not listen to less
    process.wait(20)
    client.docker("top", name).want(out="sleep")
    client.docker("top", name, "aux").want(out="sleep 600")
    place.refused(client.docker("top", name, "e").want(1).errors, "top_args")
    client.docker("rm", "-f", name).want()


def test_logs(client, _place):
    name = client.sleeper(command=("sh", "-c", "for i in 1 2 3; do echo out $i; done; echo err >&2; "
                                   "touch /tmp/said; sleep 600"))
    proc.until("it has spoken", 20, lambda: client.docker(
        "exec", name, "ls", "/tmp/said").status == 0)
    done = client.docker("logs", name).want(out="out 1\nout 2\nout 3\n", errors="err")
    equal("standard error", done.errors, "err\n")
    equal("the tail", client.docker("logs", "-n", "1", name).want().out.count("\n") +
          client.docker("logs", "-n", "1", name).errors.count("\n"), 1)
    client.docker("logs", "-t", "--since", "1h", "--until", "2000-01-01T00:00:00", name).want()
    client.docker("logs", "-t", "--details", "--since", "10m", name).want(out="Z ")
    client.docker("rm", "-f", name).want()


def test_lifecycle(client, _place):
    name, other = client.sleeper(), name_of(client, "renamed")
    client.docker("rename", name, other).want()
    client.docker("update", "-m", "32m", "--memory-swap", "64m", "--restart", "on-failure:3",
                  other).want(out=other)
    host = json.loads(client.docker("inspect", other).want().out)[0]["HostConfig"]
    equal("updated", (host["Memory"], host["RestartPolicy"]["Name"]), (32 << 20, "on-failure"))
    client.docker("exec", other, "touch", "/tmp/new").want()
    client.docker("diff", other).want(out="A /tmp/new")
    client.docker("pause", other).want()
    client.docker("ps", "--filter", "status=paused").want(out=other)
    client.docker("unpause", other).want()
    waiting = client.start("wait", other)
    client.docker("stop", "-t", "0", other).want()
    out, _ = waiting.communicate(timeout=60)
    equal("wait", out, b"137\n")
    client.docker("start", other).want()
    client.docker("restart", "-t", "0", other).want()
    client.docker("kill", "-s", "KILL", other).want()
    with tarfile.open(fileobj=io.BytesIO(binary(client, "export", other))) as archive:
        archive.getmember("etc/passwd")
    client.docker("rm", "-v", other).want(out=other)


def test_ports(client, _place):
    # On a network of its own: engines side by side give addresses of docker0 out twice.
    name, network = name_of(client, "web"), name_of(client, "ports")
    client.docker("network", "create", network).want()
    client.docker("run", "-d", "--name", name, "--network", network, "-p", "127.0.0.1::8080",
                  "--expose", "9090", APP, "httpd", "-f", "-p", "8080", "-h", "/etc").want()
    where = client.docker("port", name, "8080").want().out.strip()
    proc.until("the published port answers", 20, lambda: fetch(f"http://{where}/passwd"), pause=0.05)
    if b"agent" not in fetch(f"http://{where}/passwd"):
        raise Trouble("the published port leads somewhere else")
    client.docker("rm", "-f", name).want()
    client.docker("network", "rm", network).want()
    client.docker("run", "--rm", "-P", "--expose", "8080", APP, "true").want()


def fetch(address):
    try:
        with urllib.request.urlopen(address, timeout=5) as reply:
            return reply.read()
    except OSError:
        return b""


def test_volumes(client, place):
    volume = name_of(client, "volume")
    client.docker("volume", "create", "--label", "team.a=b", volume).want(out=volume)
    client.docker("run", "--rm", "-u", "0", "-v", f"{volume}:/v", "-v", f"{place.share}:/s:ro", APP, "sh", "-c",
                  "echo kept > /v/file").want()
    client.docker("run", "--rm", "--mount", f"type=volume,src={volume},dst=/v,readonly", APP, "cat",
                  "/v/file").want(out="kept\n")
    client.docker("run", "--rm", "-v", "/anonymous", "--mount", "type=tmpfs,dst=/t,tmpfs-size=1m",
                  "--mount", f"type=bind,src={place.share},dst=/s", APP, "ls", "-d", "/t",
                  "/s").want(out="/t\n")
    client.docker("volume", "ls", "-q", "--filter", "label=team.a").want(out=volume)
    equal("inspect", json.loads(client.docker("volume", "inspect", volume).want().out)[0]["Name"],
          volume)
    client.docker("volume", "rm", volume).want(out=volume)


def test_networks(client, _place):
    network = name_of(client, "network")
    client.docker("network", "create", "--label", "team.a=b", network).want()
    try:
        server = client.sleeper(command=("httpd", "-f", "-p", "8080", "-h", "/etc"),
                                options=("--network", network, "--network-alias", "server"))
        other = client.sleeper()
        client.docker("network", "connect", "--alias", "second", network, other).want()
        client.docker("exec", "-i", other, "nc", "server", "8080",
                      stdin=b"GET /passwd HTTP/1.0\r\n\r\n").want(out="agent:x:1000")
        found = json.loads(client.docker("network", "inspect", network).want().out)[0]
        equal("members", sorted(one["Name"] for one in found["Containers"].values()),
              sorted((server, other)))
        client.docker("network", "ls", "--filter", f"name={network}", "-q").want(out=found["Id"][:12])
        client.docker("network", "disconnect", network, other).want()
        client.docker("network", "disconnect", "-f", network, server).want()
        client.docker("rm", "-f", server, other).want()
    finally:
        client.docker("network", "rm", network).want(out=network)


def test_events(client, _place):
    name = name_of(client, "event")
    process = client.start("events", "--filter", f"container={name}", "--filter", "type=container",
                           "--filter", "event=create", "--filter", "event=destroy",
                           "--format", "{{.Action}} {{.Actor.Attributes.name}}")
    began = str(int(time.time()) - 1)
    client.docker("create", "--name", name, APP).want()
    client.docker("rm", name).want()
    # The stream may have begun after the first event; --since sees both.
    done = client.docker("events", "--since", began, "--until",
                         str(int(time.time()) + 1), "--filter",
                         f"container={name}", "--format", "{{.Action}}").want()
    if "create\n" not in done.out or "destroy\n" not in done.out:
        raise Trouble(f"events of the past\n{done}")
    seen = lines_of(process)
    while next(seen) != f"destroy {name}":
        pass
    process.terminate()
    process.wait(20)


def test_looking(client, _place):
    name = client.sleeper(options=("--label", "team.role=looked-at"))
    client.docker("ps", "-a", "-s", "--no-trunc", "--filter", "label=team.role=looked-at", "--filter",
                  "status=running", "-n", "5").want(out=name)
    client.docker("inspect", "--size", "--type", "container", name).want(out="SizeRw")
    client.docker("inspect", APP).want(out='"RepoTags"')
    client.docker("image", "inspect", APP).want(out='"RepoTags"')
    client.docker("images", "--digests", "--filter", "dangling=false").want(out="reg.example/team/app")
    client.docker("history", APP).want(out=APP)
    client.docker("network", "inspect", "bridge").want(1, errors="network")  # others are in it
    client.docker("system", "df").want(out="Containers")
    client.docker("system", "df", "-v").want(out=name)
    client.docker("info").want(out="Server Version: 20.10")
    client.docker("version", "--format", "{{.Server.APIVersion}}").want(out="1.41")
    client.docker("rm", "-f", name).want()


def test_images(client, place):
    """Images are loaded, saved and removed."""
    saved = place.home / "image.tar"
    if not saved.exists():
        place.direct("tag", APP, "reg.example/team/saved:1").want()
        place.direct("save", "-o", str(saved), "reg.example/team/saved:1").want()
    client.docker("rmi", "reg.example/team/saved:1").want(out="Untagged")
    client.docker("load", "-i", str(saved)).want(out="Loaded image")
    client.docker("rmi", "reg.example/team/saved:1").want()
    client.docker("load", "-q", stdin=saved.read_bytes()).want(out="reg.example/team/saved:1")
    with tarfile.open(fileobj=io.BytesIO(binary(client, "save", APP))) as archive:
        equal("what is saved", json.load(archive.extractfile("manifest.json"))[0]["RepoTags"], [APP])
    passed = client.docker("pull", "reg.example/team/none:1").want(1)
    if "reg.example" not in passed.errors or "profile" in passed.errors:
        raise Trouble(f"the engine's own error does not come through\n{passed}")
    place.refused(client.docker("pull", "evil.example/miner:2").want(1).errors, "image")


def test_refusals(client, place):
    """What this version does not pass is told so that a person knows what to do."""
    home = place.home / f"build-{client.version}"
    home.mkdir()
    (home / "Dockerfile").write_text(f"FROM {APP}\nCOPY big /big\n")
    with open(home / "big", "wb") as big:
        big.truncate(48 << 20)  # more than any buffer on the way holds
    done = client.docker("build", "-t", "reg.example/team/built:1", str(home), DOCKER_BUILDKIT="0").want(1)
    place.refused(done.errors, "image_retag")
    (home / "big").unlink()
    done = client.docker("search", "busybox").want(1)
    place.refused(done.errors, "registry")
    done = client.docker("login", "-u", "someone", "-p", "word-of-secret", "reg.example").want(1)
    place.refused(done.errors, "registry")
    if "word-of-secret" in json.dumps(place.gate.records()[-50:]):
        raise Trouble("the password is on record")
    for options, reason in (
            (("-v", "/var/run/docker.sock:/var/run/docker.sock"), "bind_protected"),
            (("--privileged",), "privileged"), (("--pid", "host"), "namespace"),
            (("-l", "traefik.enable=true"), "label")):
        done = client.docker("run", "--rm", *options, APP, "id").want(125)
        if "Error response from daemon: " not in done.errors:
            raise Trouble(f"{options}: {done}")
        place.refused(done.errors, reason)
    done = client.docker("run", "-d", "--restart", "always", APP, "id").want(125)
    place.refused(done.errors, "restart")
