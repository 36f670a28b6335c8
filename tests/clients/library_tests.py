"""Programs that speak Docker by libraries; each test gets the place."""

import json
import os
import re
import shutil
import socket
import subprocess

from e2e.world import Done, lines_of
from kit import proc, wire
from kit.ids import covers
from kit.proc import Trouble
from place import APP, HERE

LINE = re.compile(r"^(ok|FAIL) ([^:\n]+)(?:: (.*))?$", re.M)

COMPOSE = f"""
version: "2.4"
services:
  web:
    image: {APP}
    command: [httpd, -f, -p, "8080", -h, /data]
    user: "0"
    ports: ["127.0.0.1::8080"]
    volumes: ["data:/data"]
    networks: [inner]
    restart: unless-stopped
    mem_limit: 64m
    environment: {{MODE: test}}
    healthcheck: {{test: [CMD, "true"], interval: 1s, timeout: 1s, retries: 3}}
  client:
    image: {APP}
    command: [sh, -c, "echo client is up; sleep 600"]
    networks: {{inner: {{aliases: [other-name]}}}}
    depends_on: {{web: {{condition: service_healthy}}}}
  tool:
    image: {APP}
    networks: [inner]
volumes: {{data: {{}}}}
networks: {{inner: {{driver: bridge}}}}
"""


def checks_of(done):
    """What a program of many checks printed: [(name, trouble or None)]."""
    found = LINE.findall(done.out)
    if done.status not in (0, 1) or not found or (done.status == 0) != all(
            word == "ok" for word, _, _ in found) or "\ndone\n" not in done.out:
        raise Trouble(f"the program broke down\n{done}")
    return [(name, None if word == "ok" else why.replace("\\n", "\n")) for word, name, why in found]


def test_compose(place):
    folder = place.folder / "project"
    folder.mkdir()
    (folder / "docker-compose.yml").write_text(COMPOSE)

    def compose(*arguments):
        return place.run("docker-compose", "--no-ansi", *arguments, cwd=folder,
                         env={"COMPOSE_INTERACTIVE_NO_CLI": "1"})

    compose("up", "-d", "client").want(errors="Creating project_client_1 ... done")
    listed = compose("ps").want().out
    if listed.count(" Up ") != 2 or "(healthy)" not in listed:
        raise Trouble(f"compose ps: {listed}")
    compose("exec", "-T", "web", "sh", "-c", "echo from-volume > /data/file").want()
    compose("exec", "-T", "client", "sh", "-c",
            r"printf 'GET /file HTTP/1.0\r\n\r\n' | nc web 8080; exit 4").want(4, out="from-volume")
    compose("logs", "client").want(out="client is up")
    compose("stop", "-t", "0", "client").want()
    compose("up", "-d", "-t", "0", "--force-recreate", "client").want()
    compose("run", "--rm", "-T", "tool", "echo", "one-off").want(out="one-off")
    # A second container of a service that is up gets legacy links to the first.
    done = compose("run", "--rm", "-T", "client", "echo", "one-off").want(1, errors="Use a network")
    place.refused(done.errors, "link")
    compose("down", "-v", "-t", "0").want(errors="Removing network project_inner")
    left = place.direct("ps", "-aq", "--filter", "label=com.docker.compose.project").want().out
    left += place.direct("volume", "ls", "-q", "--filter", "name=project_data").want().out
    if left:
        raise Trouble(f"down left {left}")


def test_compose_with_pinned_images(place):
    folder = place.folder / "pinned"
    folder.mkdir()
    (folder / "docker-compose.yml").write_text(COMPOSE)

    def compose(*arguments):
        return place.run("docker-compose", "--no-ansi", *arguments, cwd=folder, env={
            "COMPOSE_INTERACTIVE_NO_CLI": "1", "DOCKER_HOST": f"unix://{place.gate.folder}/pinned.sock"})

    compose("up", "-d", "client").want(errors="Creating pinned_client_1 ... done")
    ids = compose("ps", "-q").want().out.split()
    for one in ids:
        config, host = (json.loads(place.direct("inspect", "-f", "{{json .%s}}" % part, one).want().out)
                        for part in ("Config", "HostConfig"))
        if not config["Image"].startswith(APP + "@sha256:") or config["Labels"]["team.kind"] != "pinned":
            raise Trouble(f"not pinned, or without its label: {config}")
        if not host["Init"] or host["LogConfig"] != {"Type": "json-file", "Config": {"max-file": "3", "max-size": "10m"}}:
            raise Trouble(f"not as the profile adds it: {host}")
    again = compose("up", "-d", "client").want().errors
    if "reating" in again or compose("ps", "-q").want().out.split() != ids or len(ids) != 2:
        raise Trouble(f"up made containers anew, of {ids}: {again}")
    if compose("ps").want().out.count(" Up ") != 2:
        raise Trouble("compose ps does not find them")
    name, tag = APP.rsplit(":", 1)
    images = compose("images").want().out
    if images.count("pinned_") != 2 or name not in images or f" {tag} " not in images:
        raise Trouble(f"compose images: {images}")
    compose("down", "-v", "-t", "0").want(errors="Removing network pinned_inner")


@covers("I19")
def test_compose_with_a_build(place):
    folder = place.folder / "built"
    folder.mkdir()
    (folder / "docker-compose.yml").write_text('version: "2.4"\nservices: {one: {build: .}}\n')
    (folder / "Dockerfile").write_text(f"FROM {APP}\n")
    # It may build, but what it built is not on its list; see build_tests.py for a profile with own_images.
    done = place.run("docker-compose", "--no-ansi", "up", "--build", "-d", cwd=folder,
                     env={"COMPOSE_DOCKER_CLI_BUILD": "0"}).want(1, out="Successfully built")
    place.refused(done.errors.partition("refused container.create")[2], "image")


def test_python(place):
    python = "/usr/bin/python3"  # whose library is the distribution's package
    done = place.run(python, str(HERE / "with_python.py"), APP, cwd=place.folder)
    yield from checks_of(done)
    place.refused(done.out, "privileged")


def packages(place):
    """The folder with dockerode and testcontainers, fetched once a run."""
    folder = place.folder / "node"
    if not folder.exists():
        folder.mkdir()
        for name in ("package.json", "dockerode.js", "testcontainers.js"):
            shutil.copy(HERE / name, folder)
        fetch(place, folder)
    return folder


def fetch(place, folder):
    """A registry may be slow or refuse once; three tries tell that from one that is not there."""
    for _ in range(3):
        try:
            done = place.run("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts",
                             "--loglevel=error", cwd=folder, seconds=120, env=npm_settings())
        except Trouble as trouble:
            done, status = trouble, 1
        else:
            status = done.status
        if not status:
            return
    raise Trouble(f"npm cannot fetch the packages\n{done}")


def npm_settings():
    """npm's own settings of whoever runs the tests: where the registry is, and the like."""
    return {name: value for name, value in os.environ.items()
            if name.lower().startswith(("npm_config_", "http_proxy", "https_proxy", "no_proxy",
                                        "node_extra_ca")) or name == "HOME"}


def test_dockerode(place):
    done = place.run("node", "dockerode.js", APP, cwd=packages(place))
    yield from checks_of(done)
    place.refused(done.out, "privileged")


TESTCONTAINERS = {"TESTCONTAINERS_HOST_OVERRIDE": "127.0.0.1", "APP": APP}


def test_testcontainers(place):
    done = place.run("node", "testcontainers.js", cwd=packages(place),
                     env={**TESTCONTAINERS, "TESTCONTAINERS_RYUK_DISABLED": "true"})
    yield from checks_of(done)


def ryuk_takes(place, helper, line):
    """Says a line to the helper as testcontainers does; its answer."""
    address = place.direct("port", helper, "8080").want().out.split()[0]
    with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), 20) as stream:
        stream.sendall(line + b"\r\n")
        return stream.recv(100)


def labelled(place, label):
    """Containers, networks and volumes with a label: their names, past the gate."""
    found = place.direct("ps", "-a", "--filter", f"label={label}", "--format", "{{.Names}}").want().out
    for kind in ("network", "volume"):
        found += place.direct(kind, "ls", "--filter", f"label={label}", "--format", "{{.Name}}").want().out
    return found.split()


def leave_behind(place, others):
    """Runs the tests, and leaves a session behind: its label, what it left, and what tests and helper said."""
    tests = f"unix://{place.gate.folder}/tests.sock"
    env = place.env(**{**TESTCONTAINERS, "APP": "busybox:latest", "DOCKER_HOST": tests})
    with subprocess.Popen(["node", "testcontainers.js", "--leave"], cwd=packages(place), env=env,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        out = ""
        for line in lines_of(process):
            out += line + "\n"
            if line.startswith("session "):
                break
        session = f"org.testcontainers.session-id={out.split()[-1]}"
        (helper,) = place.direct("ps", "-q", "--filter", "label=org.testcontainers.ryuk=true",
                                 "--filter", f"label={session}").want().out.split()
        (mount,) = json.loads(place.direct("inspect", helper).want().out)[0]["Mounts"]
        if mount["Source"] != f"{place.gate.folder}/own/ryuk.sock":
            raise Trouble(f"the helper has {mount}")
        if ryuk_takes(place, helper, f"label={others}".encode()) != b"ACK\n":
            raise Trouble("the helper does not take a filter")
        place.run("docker", "volume", "create", "--label", session, f"{place.folder.name}-left",
                  env={"DOCKER_HOST": tests}).want()
        left = labelled(place, session)
        with subprocess.Popen(place.engine.docker("logs", "-f", helper), stdout=subprocess.PIPE,
                              text=True) as logs:  # it is removed when it has done its work
            out += process.communicate(timeout=60)[0].decode()
            said = logs.communicate(timeout=60)[0]
    return session, left, Done(["testcontainers.js"], process.returncode, out, ""), said


@covers("I20")
def test_testcontainers_with_ryuk(place):
    """Unchanged: its helper gets the gate's socket, and removes what the session left, and only that."""
    place.ryuk()
    others = f"team.shared={place.folder.name}"
    place.direct("create", "--name", "of-nobody", "-l", others, APP).want()
    place.run("docker", "create", "--name", "of-another", "-l", others, APP).want()
    session, left, done, said = leave_behind(place, others)
    yield from checks_of(done)
    if len(left) != 4:  # the helper itself among them
        raise Trouble(f"the session left {left}")
    proc.until("the helper is gone", 20, lambda: not labelled(place, session), pause=0.1)
    if said.count("removed ") != 3:
        raise Trouble(f"of {left} the helper removed\n{said}")
    if sorted(labelled(place, others)) != ["of-another", "of-nobody"]:
        raise Trouble(f"the helper removed what belongs to others\n{said}")
    place.direct("rm", "-f", "of-nobody", "of-another").want()


@covers("I20")
def test_ryuk(place):
    """The helper that wants the engine's socket: refused, and the reason reaches the user."""
    ryuk = "reg.example/team/ryuk:1"
    place.direct("tag", APP, ryuk).want()
    for path in (place.engine.socket, "/var/run/docker.sock", place.socket):
        done = place.run("node", "testcontainers.js", "--only-start", cwd=packages(place),
                         env={**TESTCONTAINERS, "RYUK_CONTAINER_IMAGE": ryuk,
                              "TESTCONTAINERS_DOCKER_SOCKET_OVERRIDE": str(path)}).want(1)
        if f"HostConfig.Binds[0] = {path}" not in done.out:
            raise Trouble(f"the bind is not named\n{done}")
        place.refused(done.out, "bind_protected")


@covers("I21")
def test_buildx(place):
    """What buildx's docker-container driver makes first."""
    body = json.dumps({"Image": "reg.example/team/buildkit:1", "Env": [], "HostConfig": {
        "Privileged": True, "Init": True, "Mounts": [{
            "Type": "volume", "Source": "buildx_state", "Target": "/var/lib/buildkit"}]}})
    place.direct("tag", APP, "reg.example/team/buildkit:1").want()
    head, reply = place.ask("POST", "/v1.41/containers/create?name=buildx",
                            [("Content-Type", "application/json")], body.encode())
    if head.status != 403 or b"HostConfig.Privileged" not in reply:
        raise Trouble(f"{head.start} {reply!r}")
    place.refused(reply.decode(), "privileged")
    for target in ("/grpc", "/session"):
        stream = wire.connect(place.socket)
        stream.send(f"POST {target} HTTP/1.1\r\nHost: d\r\nConnection: Upgrade\r\n"
                    "Upgrade: h2c\r\n\r\n".encode())
        head = stream.reply("POST")
        reply = stream.body.all()
        stream.sock.close()
        if head.status != 403 or b"DOCKER_BUILDKIT=0" not in reply and b"builder" not in reply:
            raise Trouble(f"{target}: {head.start} {reply!r}")
        place.refused(reply.decode(), "buildkit")

