"""Images that real clients build through the gate, with the classic builder and with BuildKit."""

import json
import tarfile
from pathlib import Path

from kit.ids import covers
from kit.proc import Trouble
from place import APP

PY = """
import io, sys, docker
client = docker.from_env()
image, log = client.images.build(path=sys.argv[1], tag="mine/python:1", gzip=sys.argv[2] == "gzip", rm=True)
print(image.labels.get("sallyport.image.owner"), client.containers.run("mine/python:1", "cat /tmp/made", remove=True))
try:
    client.images.build(fileobj=io.BytesIO(b"FROM evil.example/miner:1"), tag="mine/python:2")
except (docker.errors.BuildError, docker.errors.APIError) as error:
    print("refused", error)
"""


def folder_of(place, name, dockerfile, **files):
    folder = place.folder / name
    folder.mkdir()
    (folder / "Dockerfile").write_text(dockerfile)
    for path, content in files.items():
        target = folder / path.replace("__", "/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return folder


def images(place):
    return set(place.direct("images", "-aq").want().out.split())


def builders(place, **more):
    return {"DOCKER_HOST": f"unix://{place.gate.folder}/builders.sock", "DOCKER_BUILDKIT": "0",
            "COMPOSE_DOCKER_CLI_BUILD": "0", **more}


def clients(place):
    return [(client.version, lambda *words, _c=client, **env: _c.docker(*words, **builders(place, **env)))
            for client in place.clients()]


@covers("I18")
def test_builds_by_the_docker_client(place):
    folder = folder_of(place, "cli", f"FROM {APP}\nCOPY a /a\nRUN cat /a > /tmp/made && id -u >> /tmp/made\n",
                       a=b"made-by-a-build\n", zz__big=bytes(9 << 20))
    for version, docker in clients(place):
        name = f"mine/cli-{version}"
        for more in ((), ("--compress", "--no-cache")):
            docker("build", *more, "-t", name, str(folder)).want(out="Successfully tagged")
            docker("run", "--rm", name, "cat", "/tmp/made").want(out="made-by-a-build\n1000\n")
        labels = json.loads(place.direct("inspect", name).want().out)[0]["Config"]["Labels"]
        if labels["sallyport.image.owner"] != "builders" or labels["sallyport.owner"]:
            raise Trouble(f"labels are {labels}")
        if not [one for one in place.gate.records() if one.get("id") == labels["sallyport.image.decision"]]:
            raise Trouble("the decision that the image names is not on record")
    if place.direct("ps", "-aq", "--filter", "label=sallyport.image.owner").want().out:
        raise Trouble("a container of a step is left")


def test_what_a_build_may_not(place):
    cases = {
        "from": ("FROM busybox:latest\n", "image", ()),
        "copy": (f"FROM {APP}\nCOPY --from=busybox:latest /bin /b\n", "image", ()),
        "url": (f"FROM {APP}\nADD http://169.254.169.254/x /x\n", "import_url", ()),
        "name": (f"FROM {APP}\n", "image_retag", ("-t", APP)),
        "taken": (f"FROM {APP}\n", "image_retag", ("-t", "busybox:latest")),
        "network": (f"FROM {APP}\nRUN id\n", "namespace", ("--network", "host")),
        "memory": (f"FROM {APP}\nRUN id\n", "limits", ("--memory", "8g")),
        "label": (f"FROM {APP}\nLABEL sallyport.owner=other\n", "label", ()),
        "absent": ("FROM reg.example/team/nowhere:1\n", "image_absent", ()),
        "pull": (f"FROM {APP}\n", "build", ("--pull",)),
    }
    for name, (dockerfile, reason, options) in cases.items():
        folder = folder_of(place, f"deny-{name}", dockerfile)
        before = images(place)
        for _, docker in clients(place):
            done = docker("build", *options, str(folder)).want(1)
            if reason == "image_absent":  # told as the engine tells it
                done.want(1, errors="No such image: reg.example/team/nowhere:1")
            else:
                place.refused(done.errors, reason)
        if images(place) != before:
            raise Trouble(f"{name}: an image was made: {images(place) ^ before}")


@covers("F11")
def test_two_dockerfiles_in_one_archive(place):
    """The engine would take the second; it does not get as far."""
    archive = place.folder / "two.tar"
    folder = folder_of(place, "two", f"FROM {APP}\n", filler=bytes(3 << 20))
    evil = folder_of(place, "two-evil", "FROM busybox:latest\nRUN echo evil\n")
    with tarfile.open(archive, "w", format=tarfile.USTAR_FORMAT) as tar:
        tar.add(folder / "Dockerfile", "Dockerfile")
        tar.add(folder / "filler", "filler")
        tar.add(evil / "Dockerfile", "./Dockerfile")
    before = images(place)
    for _, docker in clients(place):
        docker("build", "-", stdin=archive.read_bytes()).want(1, errors="the Dockerfile comes twice")
    if images(place) != before:
        raise Trouble(f"an image was made: {images(place) ^ before}")


def test_a_folder_before_the_dockerfile(place):
    """A large one is held up to a cap, with a way out."""
    folder = folder_of(place, "heavy", f"FROM {APP}\nCOPY Dockerfile /d\n", **{".git__pack": b""})
    docker = clients(place)[0][1]
    with open(folder / ".git/pack", "wb") as pack:
        pack.truncate(20 << 20)
    docker("build", "-t", "mine/heavy", str(folder)).want(out="Successfully tagged")
    with open(folder / ".git/pack", "wb") as pack:
        pack.truncate(80 << 20)
    done = docker("build", str(folder)).want(1)
    place.refused(done.errors, "build_size")
    if ".dockerignore" not in done.errors:
        raise Trouble(f"nobody says what to do\n{done}")
    (folder / ".dockerignore").write_text(".git\n")
    docker("build", "-t", "mine/heavy", str(folder)).want(out="Successfully tagged")


def test_builds_by_compose(place):
    folder = folder_of(place, "composed", f"ARG BASE={APP}\nFROM $BASE\nARG WORD\nRUN echo $WORD > /tmp/made\n")
    (folder / "docker-compose.yml").write_text(
        'version: "2.4"\nservices: {one: {build: {context: ., args: {WORD: "word-of-secret"}}, '
        'command: ["cat", "/tmp/made"]}}\n')

    def compose(*words):
        return place.run("docker-compose", "--no-ansi", *words, cwd=folder, env=builders(place))

    compose("up", "--build").want(out="word-of-secret")
    compose("down", "--rmi", "all").want()
    if "word-of-secret" in json.dumps(place.gate.records()):
        raise Trouble("the value of a build argument is on record")


def test_builds_by_python(place):
    folder = folder_of(place, "py", f"FROM {APP}\nRUN echo by-python > /tmp/made\n", b=bytes(1 << 20))
    for how in ("plain", "gzip"):
        done = place.run("/usr/bin/python3", "-c", PY, str(folder), how, env=builders(place)).want()
        if "builders b'by-python\\n'" not in done.out or "refused" not in done.out:
            raise Trouble(f"{how}: {done}")


def test_buildkit(place):
    """Refused with a way out; where a profile says opaque it works, and the record says so."""
    folder = folder_of(place, "kit", f"FROM {APP}\nRUN echo by-buildkit > /tmp/made\n")
    program = "/usr/bin/docker"
    (client,) = [one for one in place.clients() if one.program == program]
    env = {"DOCKER_BUILDKIT": "1"}
    done = client.docker("build", "-t", "mine/kit", str(folder), **builders(place, **env)).want(1)
    if "403" not in done.errors:  # this client shows the status alone, not what it was told
        raise Trouble(f"not refused\n{done}")
    env["DOCKER_HOST"] = f"unix://{place.gate.folder}/tunnels.sock"
    client.docker("build", "--progress", "plain", "-t", "mine/kit", str(folder), **env).want(errors="naming to")
    seen = [one for one in place.gate.records() if (one.get("facts") or {}).get("workload", {}).get("opaque")]
    if {one["op"] for one in seen if one["verdict"] == "allow"} != {"system.session", "image.build"}:
        raise Trouble(f"on record: {seen}")
    if not Path(place.gate.folder / "tunnels.sock").exists():
        raise Trouble("the gate is gone")
