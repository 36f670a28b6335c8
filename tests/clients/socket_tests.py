"""What containers have for a socket, whatever happens to the gate; each test gets the place."""

import json
import os
import socket
import subprocess
import sys

from kit import proc
from kit.ids import covers
from kit.proc import Trouble
from place import APP, PYTHON

# In a container: asks whoever listens on the socket for a ping, prints the status.
PING = """
import socket
with socket.socket(socket.AF_UNIX) as gate:
    gate.settimeout(60)
    gate.connect("/var/run/docker.sock")
    gate.sendall(b"GET /_ping HTTP/1.0\\r\\n\\r\\n")
    print(gate.recv(100).split()[1].decode())
"""

# As a service manager does: the descriptor comes in as number 3, meant for the process that runs then.
PASS = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(sys.argv[2], sys.argv[2:])
"""


class Manager:
    """A service manager that keeps what it is given."""

    def __init__(self, folder):
        self.path = folder / "notify"
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(str(self.path))
        self.sock.settimeout(20)
        self.kept = None

    def start(self, gate, path):
        gate.output.unlink(missing_ok=True)
        gate.more = {"env": {**os.environ, "NOTIFY_SOCKET": str(self.path)}}
        gate.before = []
        if self.kept is not None:
            gate.before = [sys.executable, "-c", PASS, str(self.kept)]
            gate.more["pass_fds"] = (self.kept,)
        gate.start(path)
        while True:
            said, fds, _, _ = socket.recv_fds(self.sock, 1000, 1)
            if fds and b"FDNAME=ryuk" in said and self.kept is None:
                self.kept = fds[0]
            elif fds:
                os.close(fds[0])
            if b"READY=1" in said:
                break
        if self.kept is None:
            raise Trouble("the gate gave nothing to keep")

    def forget(self):
        os.close(self.kept)
        self.kept = None


def pinged(place, name, status="200"):
    place.direct("exec", name, PYTHON, "-c", PING).want(out=status)


@covers("I20")
def test_docker_in_a_container(place):
    """A job's container uses docker: what it starts is the job's, and it sees and may do no more."""
    image = place.with_program("docker-cli:1", "/usr/bin/docker", config={"Cmd": ["sleep", "600"]})
    place.run("docker", "create", "--name", "of-another", APP).want()
    place.run("docker", "run", "-d", "--name", "job", "-v", "/var/run/docker.sock:/var/run/docker.sock:ro", image,
              env={"DOCKER_HOST": f"unix://{place.gate.folder}/tests.sock"}).want()

    def inside(*arguments):
        return place.direct("exec", "job", "docker", *arguments)

    if inside("ps", "-a", "--format", "{{.Names}}").want().out != "job\n":
        raise Trouble("what belongs to others is seen")
    inside("rm", "-f", "of-another").want(errors="o such container")
    place.direct("inspect", "of-another").want()
    inside("run", "--rm", "busybox:latest", "echo", "from-inside").want(out="from-inside\n")
    inside("run", "-d", "--name", "inner", "-v", "/var/run/docker.sock:/s", "busybox:latest", "sleep", "600").want()
    inside("exec", "inner", "ls", "/s").want(out="/s\n")
    found = json.loads(place.direct("inspect", "inner").want().out)[0]
    if found["Config"]["Labels"]["sallyport.owner"] != "tests" or (
            found["HostConfig"]["Binds"] != [f"{place.gate.folder}/own/ryuk.sock:/s"]):
        raise Trouble(f"inner is {found}")
    for options, reason in ((("--privileged",), "privileged"), (("-v", "/:/host"), "bind"),
                            (("-v", f"{place.gate.folder}/own:/own"), "bind_protected"),
                            (("-v", "/run:/run"), "bind_protected")):
        place.refused(inside("run", "--rm", *options, "busybox:latest", "id").want(125).errors, reason)
    inside("rm", "-f", "inner").want(out="inner\n")
    place.direct("rm", "-f", "job", "of-another").want()


def ping_later(place, name):
    return subprocess.Popen(place.engine.docker("exec", name, PYTHON, "-c", PING), stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@covers("I20")
def test_a_socket_in_a_container_outlives_workers_and_the_gate(place):
    one = place.make_gate("o", "workers = 1")
    own, manager = one.folder / "own/ryuk.sock", Manager(one.folder)
    name = "holds-the-socket"
    try:
        manager.start(one, one.folder / "tests.sock")
        done = place.run("docker", "run", "-d", "--name", name, "-v", "/var/run/docker.sock:/var/run/docker.sock",
                         "-u", "1000:1000", place.ryuk(), PYTHON, "-c", "import time; time.sleep(600)",
                         env={"DOCKER_HOST": f"unix://{one.folder}/tests.sock"}).want()
        pinged(place, name)
        (worker,) = one.role("worker")
        proc.kill(worker)
        proc.until("another worker serves", 20, lambda: one.role("worker") not in ([], [worker]))
        pinged(place, name)
        inode = own.stat().st_ino
        if one.stop():
            raise Trouble(one.said())
        waits = ping_later(place, name)  # the manager's socket takes it, and keeps it waiting
        manager.start(one, one.folder / "tests.sock")
        if waits.communicate(timeout=60)[0] != "200\n" or own.stat().st_ino != inode:
            raise Trouble("who asked while the gate was away is not served by the next one")
        pinged(place, name)
        manager.forget()
        if one.stop() or not own.is_socket():
            raise Trouble("the socket's file is gone; an engine would make a folder in its place")
        place.direct("exec", name, PYTHON, "-c", PING).want(1, errors="ConnectionRefused")
        manager.start(one, one.folder / "tests.sock")
        place.direct("exec", name, PYTHON, "-c", PING).want(1, errors="ConnectionRefused")
        place.direct("restart", "-t", "0", name).want()
        pinged(place, name)
        place.direct("rm", "-f", done.out.strip()).want()
        if one.stop():
            raise Trouble(one.said())
    finally:
        one.kill()
