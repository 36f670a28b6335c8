"""The sandbox API before a real engine: a gate of its own, whose helper is the one that was built."""

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

from kit import gate, proc
from kit.proc import Trouble
from world import APP, PATIENCE, with_own

CONFIG = """
log {{ dir = "{dir}/log" }}
profiles {{ "{dir}/profiles" }}
backend "engine" {{ kind = "docker", address = "unix://{engine}", files = "same_host" }}
backend "again" {{ kind = "docker", address = "unix://{engine}", files = "same_host" }}
identity "agent" {{ uid = 0, profile = "box" }}
identity "other" {{ uid = 2001, profile = "box" }}
identity "few" {{ token = "sha256:{token}", profile = "few" }}
sandboxes {{ state = "{dir}/state", inside = "{helper}/inside", owner_max = 24 }}
listener "api" {{ socket = "{dir}/api.sock", mode = "0666", sandboxes = {{ "engine", "again" }},
	identities = {{ "few", "agent", "other" }} }}
listener "docker" {{ socket = "{dir}/docker.sock", mode = "0666", backend = "engine", identities = {{ "agent" }} }}
"""

PROFILES = """
return {
	profile "box" {
		isolation = { min = "process" },
		images = { "reg.example/team/*" },
		egress = {},
		limits = { memory = "1GiB", cpus = 2, pids = 256 },
		operations = { "read", "container.run", "exec", "container.copy" },
		sandbox = { image = "reg.example/team/app:1", lifetime = "10m", idle = "5m", disk = "32MiB" },
		harden = true,
	},
	profile "gvisor" { extends = "box", isolation = { min = "kernel" } },
	profile "machine" { extends = "box", isolation = { min = "vm" } },
	profile "blind" { extends = "box", operations = { "read", "container.run", "exec" } },
	profile "few" {
		images = { "reg.example/team/*" },
		egress = {},
		limits = { memory = "1GiB", cpus = 2, pids = 256 },
		operations = { "read", "container.run", "exec" },
		rate = { ["container.create"] = "1/h" },
		harden = true,
	},
}
"""

TOKEN = "a-token-of-the-tests-that-is-long-enough"

# For callers of another user.
ASK = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall((f"{sys.argv[2]} {sys.argv[3]} HTTP/1.1\\r\\nHost: g\\r\\nConnection: close\\r\\n"
           "Content-Length: 0\\r\\n\\r\\n").encode())
print(s.makefile("rb").read().decode())
"""


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    def want(self, status):
        if self.status != status:
            raise Trouble(f"{self.status} and not {status}: {self.body[:1500]!r}")
        return self


class Place:
    """Calls are made as root, who is `agent`."""

    def __init__(self, world):
        self.world = world
        self.folder = Path(tempfile.mkdtemp(prefix="sp-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.helper = Path(tempfile.mkdtemp(prefix="sp-", dir="/srv"))
        self.helper.chmod(0o755)
        built = gate.binary().parent.parent / "proxy/sandbox/inside/inside"
        shutil.copy(built, self.helper / "inside")
        (self.helper / "inside").chmod(0o755)
        self.gate = gate.Gate(self.folder, CONFIG.format(
            dir=self.folder, engine=world.engine.socket, helper=self.helper,
            token=hashlib.sha256(TOKEN.encode()).hexdigest()), {"e2e": PROFILES})
        world.more.append(self.gate)
        self.gate.start(self.folder / "api.sock")

    def nothing_is_left(self):
        self.gate.stop()
        left = self.world.direct("ps", "-aq", "--filter", "name=sbx-").want().out.split()
        if left or os.listdir(self.folder / "state"):
            raise Trouble(f"left behind: {left}, {os.listdir(self.folder / 'state')}")

    def end(self):
        self.gate.kill()
        for name in self.world.direct("ps", "-aq", "--filter", "name=sbx-").out.split():
            self.world.direct("rm", "-f", name)
        proc.output(["rm", "-rf", self.folder, self.helper])

    def start_again(self):
        self.gate.output.unlink()  # it has said before that it is ready
        self.gate.start(self.folder / "api.sock")

    def connect(self):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(PATIENCE)
        sock.connect(str(self.folder / "api.sock"))
        return sock

    def send(self, sock, method, path, body=None, headers=()):
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: gate", "Connection: close",
                 f"Content-Length: {len(data)}", *headers]
        sock.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + data)

    def ask(self, method, path, body=None, headers=()):
        with self.connect() as sock:
            self.send(sock, method, path, body, headers)
            return read_answer(sock.makefile("rb"))

    def make(self, **wanted):
        return self.ask("POST", "/v1/sandboxes", wanted).want(201).json["id"]

    def run(self, ident, *argv, **more):
        return self.ask("POST", f"/v1/sandboxes/{ident}/exec", {"argv": argv, **more}).want(200).json

    def drop(self, ident):
        self.ask("DELETE", f"/v1/sandboxes/{ident}").want(204)

    def code(self, method, path, body=None, headers=()):
        answer = self.ask(method, path, body, headers)
        return answer.status, answer.json["error"]["code"]

    def exists(self, ident):
        return self.world.direct("inspect", ident).status == 0


def read_answer(file):
    status = int(file.readline().split()[1])
    headers = {}
    while (line := file.readline().strip()):
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while (size := int(file.readline(), 16)):
            body += file.read(size)
            file.readline()
        return Answer(status, headers, body)
    return Answer(status, headers, file.read(int(headers.get("content-length", 0))))


def equal(what, want, have):
    if want != have:
        raise Trouble(f"{what}: {want!r} is wanted, and it is {have!r}")


@with_own(Place)
def test_a_sandbox_is_made_used_and_ended(place):
    made = place.ask("POST", "/v1/sandboxes", {"labels": {"job": "7"}, "env": {"A": "box", "B": "box"},
                                               "limits": {"memory": "64MiB", "pids": 32},
                                               "files": [{"path": "/work/in/a", "content": "hello\n"}]}).want(201).json
    ident = made["id"]
    equal("isolation", {"level": "process", "runtime": "runc"}, made["isolation"])
    inspected = json.loads(place.world.direct("inspect", ident).want().out)[0]
    host = inspected["HostConfig"]
    for key, want in {"NetworkMode": "none", "ReadonlyRootfs": True, "Memory": 64 << 20, "MemorySwap": 64 << 20,
                      "NanoCpus": 10 ** 9, "PidsLimit": 32, "CapDrop": ["ALL"], "Privileged": False}.items():
        equal(key, want, host[key])
    equal("user", "65534:65534", inspected["Config"]["User"])
    done = place.run(ident, "sh", "-c", "cat; pwd; cat in/a; echo $A $B; echo no >&2; exit 3", stdin="in\n",
                     env={"B": "exec"})
    equal("what it said", ("in\n/work\nhello\nbox exec\n", "no\n", 3, None, False),
          tuple(done[key] for key in ("stdout", "stderr", "exit_code", "signal", "timed_out")))
    done = place.run(ident, "sh", "-c", "printf '\\377'")
    equal("octets", ("/w==", "base64"), (done["stdout"], done["stdout_encoding"]))
    done = place.run(ident, "sh", "-c", "sleep 60 & sleep 60", timeout="200ms")
    equal("its time", (True, 9), (done["timed_out"], done["signal"]))
    equal("no such program", (422, "exec_failed"),
          place.code("POST", f"/v1/sandboxes/{ident}/exec", {"argv": ["nothing-of-that-name"]}))
    equal("no way out", 1, place.run(ident, "sh", "-c", "echo > /etc/x")["exit_code"])
    equal("no network", ["lo"], place.run(ident, "ls", "/sys/class/net")["stdout"].split())
    # Octets go in and out as they are; a path that leads nowhere is told as such.
    octets = os.urandom(300000)
    path = f"/v1/sandboxes/{ident}/files/work/d/x%20y"
    place.ask("PUT", path + "?mode=0600", octets).want(204)
    equal("a file", octets, place.ask("GET", path).want(200).body)
    listed = place.ask("GET", f"/v1/sandboxes/{ident}/files/work/d/").want(200).json["entries"]
    equal("a folder", [("x y", "file", 300000, "0600")],
          [tuple(one[key] for key in ("name", "type", "size", "mode")) for one in listed])
    place.ask("DELETE", path).want(204)
    equal("gone", (404, "file_not_found"), place.code("GET", path))
    shown = place.ask("GET", "/v1/sandboxes?label=job=7").want(200).json["sandboxes"]
    equal("by label", [ident], [one["id"] for one in shown])
    equal("by another", [], place.ask("GET", "/v1/sandboxes?label=job=8").json["sandboxes"])
    # What the workers put on record names the program, and the API what it did.
    place.drop(ident)
    equal("it is gone", False, place.exists(ident))
    records = place.gate.records()
    programs = {one["facts"]["workload"]["exec"]["program"] for one in records
                if one.get("op") == "exec.create" and "facts" in one and one["verdict"] == "allow"}
    if not {"sh", "ls", "nothing-of-that-name"} <= programs:
        raise Trouble(f"programs on record: {programs}")
    ops = [(one["op"], one["verdict"]) for one in records if one["type"] == "sandbox"]
    for op in ("sandbox.create", "sandbox.destroy"):
        if (op, "allow") not in ops:
            raise Trouble(f"{op} is not on record: {ops}")
    place.nothing_is_left()


@with_own(Place)
def test_what_is_refused_says_why(place):
    answer = place.ask("POST", "/v1/sandboxes", {"profile": "machine"}).want(403).json["error"]
    equal("no backend", "no_backend", answer["code"])
    equal("each says why", [("engine", "runtime"), ("again", "runtime")],
          [(one["backend"], one["why"][0]["reason"]) for one in answer["backends"]])
    answer = place.ask("POST", "/v1/sandboxes", {"image": "evil.example/miner:1", "backend": "engine"})
    equal("an image", ["image"], [one["reason"] for one in answer.want(403).json["error"]["violations"]])
    for body, want in (({"profile": "few"}, (403, "profile_not_stricter")),
                       ({"imagee": "x"}, (400, "unknown_field")),
                       ({"limits": {"disk": "64MiB"}}, (403, "above_profile")),
                       ({"lifetime": "11m"}, (403, "above_profile")),
                       ({"backend": "nowhere"}, (422, "invalid"))):
        equal(f"{body}", want, place.code("POST", "/v1/sandboxes", body))
    ident = place.make(profile="blind")
    there = f"/v1/sandboxes/{ident}"
    # A profile that lets commands run and nothing be copied.
    equal("a copy", (403, "archive"), place.code("GET", there + "/files/etc/passwd"))
    equal("it was denied", ["archive"],
          [one["code"] for one in place.ask("GET", there + "/denials").json["denials"]])
    equal("nobody's", (404, "sandbox_not_found"), place.code("GET", there + "x"))
    equal("no path", (404, "not_found"), place.code("GET", "/v1/sandbox"))
    equal("no method", (405, "method_not_allowed"), place.code("PUT", there))
    others = subprocess.run(["/usr/bin/python3", "-c", ASK, str(place.folder / "api.sock"), "GET", there],
                            capture_output=True, text=True, check=True, user=2001, group=2001, extra_groups=[],
                            cwd="/", timeout=PATIENCE).stdout
    if "404" not in others.split("\n")[0] or "sandbox_not_found" not in others:
        raise Trouble(f"another's sandbox: {others}")
    nobody = subprocess.run(["/usr/bin/python3", "-c", ASK, str(place.folder / "api.sock"), "GET", "/v1/sandboxes"],
                            capture_output=True, text=True, check=True, user=2002, group=2002, extra_groups=[],
                            cwd="/", timeout=PATIENCE).stdout
    if " 401 " not in nobody.split("\n")[0]:
        raise Trouble(f"nobody: {nobody}")
    equal("a wrong token", 401, place.ask("GET", "/v1/sandboxes", headers=["Authorization: Bearer x"]).status)
    # A rate of the profile comes through, with the time to wait.
    token = [f"Authorization: Bearer {TOKEN}"]
    mine = place.ask("POST", "/v1/sandboxes", {"image": APP}, token).want(201).json["id"]
    again = place.ask("POST", "/v1/sandboxes", {"image": APP}, token).want(429)
    if int(again.headers["retry-after"]) < 60:
        raise Trouble(f"Retry-After: {again.headers}")
    # The helper is the gate's own to mount, and the header that says for whom, too.
    body = json.dumps({"Image": APP, "HostConfig": {"NetworkMode": "none", "Binds": [
        f"{place.helper}/inside:/.sallyport/inside:ro"]}})
    _, told, _ = place.gate.run(
        "check", "--config", place.gate.config, "--listener", "docker", "--identity", "agent", "-",
        stdin="POST /v1.41/containers/create HTTP/1.1\r\nHost: d\r\nSallyport-For: {\"listener\":\"api\"}\r\n"
              f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}")
    if '"reason":"bind"' not in told:
        raise Trouble(f"the helper, for others: {told}")
    place.drop(ident)
    place.ask("DELETE", f"/v1/sandboxes/{mine}", headers=token).want(204)
    codes = {one["reason"] for one in place.gate.records() if one["type"] == "sandbox" and one["verdict"] == "deny"}
    missing = {"no_backend", "unknown_field", "above_profile", "sandbox_not_found", "not_found"} - codes
    if missing:
        raise Trouble(f"not on record: {missing}")
    place.nothing_is_left()


@with_own(Place)
def test_lifetimes_hold_over_a_restart(place):
    kept, over, gone = place.make(), place.make(), place.make()
    expires = place.ask("GET", f"/v1/sandboxes/{kept}").json["expires"]
    place.run(kept, "sh", "-c", "echo kept > /work/x")
    equal("beyond its bound", (403, "above_profile"),
          place.code("PATCH", f"/v1/sandboxes/{over}", {"lifetime": "11m"}))
    place.ask("PATCH", f"/v1/sandboxes/{over}", {"lifetime": "1s"}).want(200)
    place.gate.stop()
    place.world.direct("rm", "-f", gone).want()
    place.start_again()
    # Its time was over while nobody was there, or is now; the other had ended past the gate.
    proc.until("one is left", 30, lambda: [kept] == [
        one["id"] for one in place.ask("GET", "/v1/sandboxes").json["sandboxes"]], 0.2)
    proc.until("the one whose time is over ends", 30, lambda: not place.exists(over), 0.2)
    equal("the end of the one that is left", expires, place.ask("GET", f"/v1/sandboxes/{kept}").want(200).json["expires"])
    equal("what it has", "kept\n", place.run(kept, "cat", "/work/x")["stdout"])
    equal("its commands of before", ["cat"], [
        one["program"] for one in place.ask("GET", f"/v1/sandboxes/{kept}/exec").json["execs"]])
    # Nobody uses it: it ends.
    idle = place.make(idle="1s")
    proc.until("an idle one ends", 30, lambda: not place.exists(idle), 0.2)
    place.drop(kept)
    ended = [one["op"] for one in place.gate.records() if one["type"] == "sandbox"]
    for op in ("sandbox.extend", "sandbox.gone", "sandbox.idle"):
        if op not in ended:
            raise Trouble(f"{op} is not on record: {ended}")
    place.nothing_is_left()


@with_own(Place)
def test_a_command_whose_worker_dies_is_lost_and_told(place):
    ident = place.make()
    with place.connect() as sock:
        place.send(sock, "POST", f"/v1/sandboxes/{ident}/exec", {"argv": ["sh", "-c", "echo begun; sleep 300"]},
                   ["Accept: application/x-ndjson"])
        file = sock.makefile("rb")
        while b"begun" not in file.readline():
            pass
        for pid in place.gate.role("worker"):
            os.kill(pid, signal.SIGKILL)
        rest = file.read()
    if b'"error"' not in rest or b"exec_lost" not in rest:
        raise Trouble(f"what was told: {rest!r}")
    equal("the sandbox goes on", "on\n", place.run(ident, "echo", "on")["stdout"])
    # Its processes have gone with the connection.
    proc.until("nothing is left of the command", 20, lambda: "sleep" not in place.run(ident, "ps")["stdout"], 0.2)
    states = {one["program"]: one["state"] for one in place.ask("GET", f"/v1/sandboxes/{ident}/exec").json["execs"]}
    equal("its state", "lost", states["sh"])
    # The process of the API itself dies: the sandbox is there again, its commands are not.
    for pid in place.gate.role("sandbox"):
        os.kill(pid, signal.SIGKILL)
    proc.until("it serves again", 20, lambda: answers(place, ident), 0.1)
    equal("still there", "on\n", place.run(ident, "echo", "on")["stdout"])
    place.drop(ident)
    place.nothing_is_left()


def answers(place, ident):
    try:
        return place.ask("GET", f"/v1/sandboxes/{ident}").status == 200
    except (OSError, IndexError):
        return False


@with_own(Place)
def test_commands_that_go_on_by_themselves(place):
    ident = place.make()
    there = f"/v1/sandboxes/{ident}/exec"
    reader = place.ask("POST", there, {"argv": ["sh", "-c", "read a; echo got $a; cat"], "detach": True,
                                       "stdin_stream": True}).want(202).json["id"]
    equal("it runs", "running", place.ask("GET", f"{there}/{reader}").json["state"])
    place.ask("POST", f"{there}/{reader}/stdin", b"one\n").want(204)
    place.ask("POST", f"{there}/{reader}/stdin?eof=true", b"two\n").want(204)
    lines = [json.loads(one) for one in place.ask("GET", f"{there}/{reader}/output").want(200).body.splitlines()]
    equal("its output", ("got one\ntwo\n", "exit", 0),
          ("".join(one["data"] for one in lines[:-1]), lines[-1]["type"], lines[-1]["exit_code"]))
    equal("again, since it is kept", len(lines), len(place.ask("GET", f"{there}/{reader}/output").body.splitlines()))
    equal("too late", 409, place.ask("POST", f"{there}/{reader}/stdin", b"three\n").status)
    stuck = place.ask("POST", there, {"argv": ["sleep", "300"], "detach": True}).want(202).json["id"]
    place.ask("POST", f"{there}/{stuck}/kill").want(204)
    proc.until("it is killed", 20, lambda: place.ask("GET", f"{there}/{stuck}").json["state"] == "ended", 0.05)
    equal("by what", 9, place.ask("GET", f"{there}/{stuck}").json["signal"])
    polite = place.ask("POST", there, {"argv": ["sh", "-c", "trap 'exit 5' TERM; echo up; while :; do sleep 0.1; done"],
                                       "detach": True}).want(202).json["id"]
    with place.connect() as sock:
        place.send(sock, "GET", f"{there}/{polite}/output")
        file = sock.makefile("rb")
        while b"up" not in file.readline():
            pass
        place.ask("POST", f"{there}/{polite}/kill", {"signal": "TERM"}).want(204)
        if b'"exit_code":5' not in file.read():
            raise Trouble("it did not end by itself")
    shell = place.ask("POST", there, {"argv": ["sh", "-c", "stty size; read x; stty size"], "detach": True,
                                      "tty": {"rows": 5, "cols": 50}, "stdin_stream": True}).want(202).json["id"]
    place.ask("POST", f"{there}/{shell}/resize", {"rows": 6, "cols": 60}).want(204)
    place.ask("POST", f"{there}/{shell}/stdin", b"\n").want(204)
    text = b"".join(json.loads(one).get("data", "").encode() for one in
                    place.ask("GET", f"{there}/{shell}/output").body.splitlines())
    if b"6 60" not in text:
        raise Trouble(f"the terminal: {text!r}")
    # Whoever hangs up takes the command along.
    with place.connect() as sock:
        place.send(sock, "POST", there, {"argv": ["sleep", "301"]})
        proc.until("it runs", 20, lambda: "sleep 301" in place.run(ident, "ps")["stdout"], 0.1)
    proc.until("it has ended", 20, lambda: "sleep 301" not in place.run(ident, "ps")["stdout"], 0.1)
    # More output than the sandbox allows is cut, and the answer says so.
    cut = place.run(ident, "sh", "-c", "head -c 100000 /dev/zero; exit 4", output=10000)
    equal("cut", (10000, True, 4), (len(cut["stdout"]), cut["truncated"], cut["exit_code"]))
    place.drop(ident)
    place.nothing_is_left()


@with_own(Place)
def test_a_sandbox_for_each_command_and_a_reload(place):
    ident = place.make(per_call=True, env={"A": "b"}, files=[{"path": "/work/d/a", "content": "begins so"}])
    equal("the first", "begins sob\n", place.run(ident, "sh", "-c", "cat d/a; echo $A > d/a; cat d/a")["stdout"])
    equal("the second begins as the first did", "begins so", place.run(ident, "cat", "d/a")["stdout"])
    equal("one is seen", [ident], [one["id"] for one in place.ask("GET", "/v1/sandboxes").json["sandboxes"]])
    equal("nothing to come back to", 409,
          place.ask("POST", f"/v1/sandboxes/{ident}/exec", {"argv": ["true"], "detach": True}).status)
    proc.until("theirs have ended", 20, lambda: 1 == len(place.world.direct(
        "ps", "-aq", "--filter", "name=sbx-").want().out.split()), 0.1)
    place.drop(ident)
    # What was begun under rules of before goes on; what comes is judged by the new ones.
    ident = place.make()
    with place.connect() as sock:
        place.send(sock, "POST", f"/v1/sandboxes/{ident}/exec",
                   {"argv": ["sh", "-c", "echo begun; while [ ! -e /work/go ]; do sleep 0.1; done; echo done"]},
                   ["Accept: application/x-ndjson"])
        file = sock.makefile("rb")
        while b"begun" not in file.readline():
            pass
        rules = place.gate.profiles / "e2e.lua"
        rules.write_text(rules.read_text().replace(
            'operations = { "read", "container.run", "exec", "container.copy" }',
            'operations = { "read", "container.run", "exec", "container.archive.get" }'))
        status, out, errors = place.gate.run("reload", "--config", place.gate.config)
        if status:
            raise Trouble(f"reload: {out}{errors}")
        equal("a copy", (403, "archive"), place.code("PUT", f"/v1/sandboxes/{ident}/files/work/x", b"x"))
        equal("another command", 0, place.run(ident, "touch", "/work/go")["exit_code"])
        rest = file.read()
    if b"done" not in rest or b'"exit_code":0' not in rest:
        raise Trouble(f"it did not go on: {rest!r}")
    place.drop(ident)
    place.nothing_is_left()


@with_own(Place)
def test_twenty_at_once_and_keys_that_come_twice(place):
    key = ["Idempotency-Key: once"]
    first = place.ask("POST", "/v1/sandboxes", {"labels": {"a": "b"}}, key).want(201).json["id"]
    equal("the same", first, place.ask("POST", "/v1/sandboxes", {"labels": {"a": "b"}}, key).want(201).json["id"])
    equal("another", (409, "key_reused"), place.code("POST", "/v1/sandboxes", {}, key))
    place.drop(first)
    wrong = []

    def one(number):
        try:
            ident = place.make()
            equal("its word", f"{number}\n", place.run(ident, "echo", str(number))["stdout"])
            place.drop(ident)
        except Exception as trouble:  # told below, by the test's own thread
            wrong.append(f"{number}: {trouble}")

    threads = [threading.Thread(target=one, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise Trouble("; ".join(wrong))
    place.nothing_is_left()
