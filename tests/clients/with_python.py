"""with_python.py IMAGE - Docker's library for Python at the engine of DOCKER_HOST.

Prints "ok NAME" or "FAIL NAME: why" for each check, and "done".
"""

import io
import sys
import tarfile
import time
import traceback

import docker
from tars import tar_of

APP = sys.argv[1]
client = docker.from_env(timeout=60)


def equal(what, found, wanted):
    if found != wanted:
        raise AssertionError(f"{what}: {found!r}, not {wanted!r}")


def sleeper(**more):
    return client.containers.run(APP, ["sleep", "600"], detach=True, **more)


def check_system():
    equal("ping", client.ping(), True)
    equal("version", client.version()["ApiVersion"], "1.41")
    equal("info", client.info()["ServerVersion"][:6], "20.10.")
    client.df()
    equal("negotiated", docker.from_env(version="auto").ping(), True)


def check_run():
    equal("output", client.containers.run(APP, ["echo", "hello"], remove=True), b"hello\n")
    equal("more", client.containers.run(
        APP, ["sh", "-c", "echo $A; sleep 0.2; echo err >&2"], environment={"A": "b"}, remove=True, stderr=True,
        mem_limit="64m", nano_cpus=500000000, pids_limit=50, labels={"team.a": "b"}, init=True,
        read_only=True, tmpfs={"/t": "size=1m"}, working_dir="/w", user="1000", hostname="h",
        healthcheck={"test": ["CMD", "true"], "interval": 10**9}, cap_drop=["ALL"]), b"b\nerr\n")
    try:
        client.containers.run(APP, ["sh", "-c", "exit 7"], remove=True)
    except docker.errors.ContainerError as error:
        equal("status", error.exit_status, 7)
    else:
        raise AssertionError("a failing command does not fail")


def check_exec():
    container = sleeper()
    equal("exec_run", container.exec_run(["sh", "-c", "echo out; exit 3"]), (3, b"out\n"))
    demux = container.exec_run(["sh", "-c", "echo out; echo err >&2"], demux=True)
    equal("demux", demux.output, (b"out\n", b"err\n"))
    stream = container.exec_run(["sh", "-c", "echo 1; echo 2"], stream=True)
    equal("stream", b"".join(stream.output), b"1\n2\n")
    equal("tty", container.exec_run(["echo", "t"], tty=True).output, b"t\r\n")
    container.exec_run(["touch", "/tmp/detached"], detach=True)
    found = container.exec_run(["cat"], stdin=True, socket=True)
    found.output._sock.sendall(b"typed\n")
    found.output._sock.shutdown(1)
    seen = b""
    while got := found.output._sock.recv(4096):
        seen += got
    equal("through the socket", seen[8:], b"typed\n")
    container.remove(force=True)


def check_archives():
    container = sleeper()
    equal("put_archive", container.put_archive("/w", tar_of("in", b"carried\n")), True)
    equal("inside", container.exec_run(["cat", "/w/in"]).output, b"carried\n")
    bits, stat = container.get_archive("/w/in")
    equal("stat", (stat["name"], stat["size"]), ("in", 8))
    with tarfile.open(fileobj=io.BytesIO(b"".join(bits))) as archive:
        equal("get_archive", archive.extractfile("in").read(), b"carried\n")
    equal("diff", "/w/in" in [one["Path"] for one in container.diff()], True)
    equal("export", sum(map(len, container.export())) > 100000, True)
    container.remove(force=True)


def check_logs():
    container = client.containers.run(APP, ["sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.2; done"],
                                      detach=True)
    equal("follow", b"".join(container.logs(stream=True, follow=True)), b"1\n2\n3\n")
    equal("tail", container.logs(tail=1), b"3\n")
    equal("wait", container.wait()["StatusCode"], 0)
    container.remove()


def check_attach():
    container = client.containers.create(APP, ["cat"], stdin_open=True)
    sock = container.attach_socket(params={"stdin": 1, "stdout": 1, "stream": 1})
    container.start()
    sock._sock.sendall(b"typed\n")
    equal("attach_socket", sock._sock.recv(100)[8:], b"typed\n")
    sock.close()
    container.remove(force=True)


def check_lifecycle():
    container = sleeper(name="python-a", ports={"8080/tcp": ("127.0.0.1", None)})
    container.reload()
    equal("port", container.ports["8080/tcp"][0]["HostIp"], "127.0.0.1")
    container.rename("python-b")
    container.update(mem_limit="32m", memswap_limit="64m")
    container.pause()
    container.unpause()
    equal("top", len(container.top()["Processes"]), 1)
    equal("stats", "memory_stats" in container.stats(stream=False), True)
    stats = container.stats(stream=True, decode=True)
    equal("stats stream", [bool(next(stats)["read"]) for _ in range(2)], [True, True])
    container.restart(timeout=0)
    container.stop(timeout=0)
    container.start()
    container.kill()
    equal("list", "python-b" in [one.name for one in client.containers.list(all=True)], True)
    equal("filter", client.containers.list(filters={"name": "python-b", "status": "running"}), [])
    container.remove(v=True)


def check_events():
    began = int(time.time()) - 1
    stream = client.events(decode=True, filters={"type": "container", "event": ["create", "destroy"]},
                           since=began)
    container = client.containers.create(APP, ["true"])
    container.remove()
    seen = []
    for event in stream:
        if event["id"] == container.id:
            seen.append(event["Action"])
        if seen == ["create", "destroy"]:
            break
    stream.close()


def check_networks():
    network = client.networks.create("python-net", driver="bridge", labels={"team.a": "b"},
                                     check_duplicate=True)
    container = sleeper(network="python-net")
    other = sleeper()
    network.connect(other, aliases=["second"])
    network.reload()
    equal("members", len(network.containers), 2)
    equal("list", [one.name for one in client.networks.list(names=["python-net"])], ["python-net"])
    network.disconnect(other, force=True)
    for one in (container, other):
        one.remove(force=True)
    network.remove()


def check_volumes():
    volume = client.volumes.create("python-vol", driver="local", labels={"team.a": "b"})
    client.containers.run(APP, ["touch", "/v/file"], user="0", remove=True,
                          volumes={"python-vol": {"bind": "/v", "mode": "rw"}})
    equal("kept", client.containers.run(
        APP, ["ls", "/v"], remove=True,
        mounts=[docker.types.Mount("/v", "python-vol", read_only=True)]), b"file\n")
    equal("list", [one.name for one in client.volumes.list(filters={"label": "team.a"})],
          ["python-vol"])
    volume.remove(force=True)


def check_images():
    equal("list", APP in [tag for one in client.images.list() for tag in one.tags], True)
    equal("get", client.images.get(APP).tags != [], True)
    equal("save", sum(map(len, client.images.get(APP).save())) > 100000, True)
    equal("history", bool(client.images.get(APP).history()), True)
    try:
        client.images.pull("reg.example/team/none", tag="1")
    except docker.errors.APIError as error:
        equal("the engine's own error", "reg.example" in str(error) and "profile" not in str(error), True)
    else:
        raise AssertionError("an image that is nowhere is pulled")
    try:
        client.images.get("reg.example/team/none:1")
    except docker.errors.ImageNotFound:
        return
    raise AssertionError("an image that is nowhere is found")


def check_refusals():
    for what, wanted, call in (
            ("build", "[image,", lambda: client.images.build(fileobj=io.BytesIO(
                b"FROM evil.example/miner:1"), tag="x:1")),
            ("context", "[too_large,", lambda: client.images.build(
                fileobj=io.BytesIO(tar_of("Dockerfile", b"FROM x\n" * 2000000)),
                custom_context=True)),
            ("login", "[registry,", lambda: client.login("a", "b", registry="reg.example")),
            ("search", "[registry,", lambda: client.images.search("x")),
            ("privileged", "[privileged,", lambda: client.containers.run(APP, ["id"], privileged=True))):
        try:
            call()
        except docker.errors.APIError as error:
            text = str(error.explanation)
            if error.status_code not in (403, 413) or wanted not in text:
                raise AssertionError(f"{what}: {error}") from None
        else:
            raise AssertionError(f"{what} is not refused")
    print(text)


failed = 0
for name, check in list(globals().items()):
    if not name.startswith("check_"):
        continue
    try:
        check()
        print(f"ok {name.removeprefix('check_')}", flush=True)
    except Exception:  # one broken check must not hide the others
        failed += 1
        why = traceback.format_exc().strip().replace("\n", "\\n")
        print(f"FAIL {name.removeprefix('check_')}: {why}", flush=True)
print("done")
sys.exit(1 if failed else 0)
