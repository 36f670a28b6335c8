"""Programs of this host, in sandboxes of the gate's own keeper: kind = "local". No engine takes part."""

import concurrent.futures
import contextlib
import hashlib
import io
import json
import os
import shutil
import socket
import struct
import tarfile
import tempfile
from pathlib import Path
from urllib.parse import quote

from kit import gate, proc, wire
from kit.proc import Trouble, until

NOBODY = 65534
MANY = hashlib.shake_256(b"bytes").digest(3 << 20)

CONFIG = """
log {{ dir = "{dir}/log" }}
profiles {{ "{dir}/profiles" }}
limits {{ workers = 2 }}
backend "host" {{ kind = "local", address = "unix://{dir}/keeper.sock", state = "{dir}/state", files = "same_host",
                  bare = true, sandboxes = 6, execs = 40 }}
{listeners}
"""

PROFILES = """
local operations = { "read", "container.run", "exec", "container.copy" }
local limits = { memory = "256MiB", pids = 64, cpus = 1 }

return {
	profile "tools" { host_tools = "confined", harden = true, limits = limits, operations = operations,
		mounts = { { "/srv/local-e2e", "ro" } } },
	profile "seen" { host_tools = "confined", harden = true, limits = limits, operations = operations,
		isolation = { min = "process", attested = ATTESTED } },
	profile "none" { harden = true, operations = operations },
	profile "kernel" { host_tools = "confined", isolation = { min = "kernel" }, harden = true, operations = operations },
	profile "bare" { host_tools = "bare", isolation = { min = "none" }, networks = { "default" },
		operations = operations },
	profile "nearly" { host_tools = "bare", networks = { "default" }, operations = operations },
}
"""
NAMES = ("tools", "seen", "none", "kernel", "bare", "nearly")


class Answer:
    def __init__(self, head, body):
        self.status, self.head, self.body = head.status, head, body

    @property
    def json(self):
        return json.loads(self.body)

    def want(self, status, *texts):
        if self.status != status or not all(text.encode() in self.body for text in texts):
            raise Trouble(f"{self.status}, not {status} with {texts}: {self.body[:1500]!r}")
        return self


def frames(data):
    """{1: stdout, 2: stderr} of multiplexed output."""
    found = {1: b"", 2: b""}
    while data:
        stream, length = struct.unpack(">BxxxI", data[:8])
        found[stream] += data[8:8 + length]
        data = data[8 + length:]
    return found


class Sandbox:
    def __init__(self, local, ident):
        self.local, self.id = local, ident

    def api(self, method, rest, body=None, **more):
        return self.local.api(method, f"/containers/{self.id}{rest}", body, **more)

    def prepare(self, *argv, stdin=False, **more):
        body = {"Cmd": list(argv), "AttachStdout": True, "AttachStderr": True, "AttachStdin": stdin, **more}
        return self.api("POST", "/exec", body).want(201).json["Id"]

    def exec(self, *argv, stdin=None, **more):
        """(exit code, stdout, stderr)"""
        ident = self.prepare(*argv, stdin=stdin is not None, **more)
        if stdin is None:
            out = self.local.api("POST", f"/exec/{ident}/start", {}).want(200).body
        else:
            out = self.talk(ident, stdin)
        code = self.local.api("GET", f"/exec/{ident}/json").want(200).json["ExitCode"]
        return code, frames(out)[1], frames(out)[2]

    def talk(self, ident, stdin):
        stream = wire.connect(self.local.socket, seconds=30)
        with contextlib.closing(stream.sock), concurrent.futures.ThreadPoolExecutor(1) as pool:
            stream.send(f"POST /v1.41/exec/{ident}/start HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
                        "Upgrade: tcp\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}".encode())
            if stream.head().status != 101:
                raise Trouble("the command's connection was not upgraded")

            def say():
                stream.sock.sendall(stdin)
                stream.sock.shutdown(socket.SHUT_WR)

            said = pool.submit(say)
            got = bytearray(stream.take(len(stream.buffer)))
            while some := stream.sock.recv(1 << 16):
                got += some
            said.result()
            return bytes(got)

    def put(self, folder, **files):
        text = io.BytesIO()
        with tarfile.open(fileobj=text, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for name, data in files.items():
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = len(data), 0o640
                tar.addfile(entry, io.BytesIO(data))
        return self.local.api("PUT", f"/containers/{self.id}/archive?path={quote(folder)}", raw=text.getvalue())

    def get(self, path):
        got = self.api("GET", f"/archive?path={quote(path)}").want(200).body
        with tarfile.open(fileobj=io.BytesIO(got)) as tar:
            return {m.name: tar.extractfile(m).read() for m in tar.getmembers() if m.isfile()}

    def end(self):
        self.api("DELETE", "?force=1").want(204)


class Local:
    def __init__(self, folder, uid):
        self.folder, self.name = Path(folder), "tools"
        listeners = "\n".join(f'listener "{n}" {{ socket = "{folder}/{n}.sock", mode = "0666", otherwise = "{n}" }}'
                              for n in NAMES)
        profiles = PROFILES.replace("ATTESTED", "true" if uid is None else "false")
        self.gate = gate.Gate(folder, CONFIG.format(dir=folder, listeners=listeners), {"all": profiles}, uid=uid)

    @property
    def socket(self):
        return self.folder / f"{self.name}.sock"

    def api(self, method, target, body=None, raw=None):
        kind = "application/x-tar" if raw is not None else "application/json"
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        headers = [] if data is None else [("Content-Type", kind)]
        return Answer(*wire.ask(self.socket, method, f"/v1.41{target}", headers, data, seconds=30))

    def create(self, *argv, name="", host=None, **more):
        body = {"Image": "host", "Cmd": list(argv or ("sleep", "600")), **more,
                "HostConfig": {"Tmpfs": {"/work": "size=16m"}, **(host or {})}}
        return self.api("POST", f"/containers/create?name={name}" if name else "/containers/create", body)

    def sandbox(self, *argv, **more):
        made = Sandbox(self, self.create(*argv, **more).want(201).json["Id"])
        made.api("POST", "/start").want(204)
        return made

    def keeper(self):
        return self.gate.role("keeper")[0]


@contextlib.contextmanager
def started(uid=None):
    folder = tempfile.mkdtemp(prefix="sp-local-")
    os.chmod(folder, 0o755)
    local = Local(folder, uid)
    try:
        local.gate.start()
        yield local
        if status := local.gate.stop():
            raise Trouble(f"the gate ended with status {status}: {local.gate.said()}")
    finally:
        local.gate.kill()
        shutil.rmtree(folder)


def works(local):
    """What commands, files and bounds come to, whoever started the gate."""
    box = local.sandbox(Env=["MINE=1"])
    if (got := box.exec("sh", "-c", "echo out; echo err >&2; exit 7")) != (7, b"out\n", b"err\n"):
        raise Trouble(f"a command: {got}")
    if (got := box.exec("sh", "-c", "kill -9 $$"))[0] != 137:
        raise Trouble(f"a command that is killed: {got}")
    code, out, _ = box.exec("cat", stdin=MANY)
    if code or out != MANY:
        raise Trouble(f"{len(out)} bytes came back of {len(MANY)}, code {code}")
    want_walls(box)
    want_files(box)
    ident = box.prepare("no-such-program")
    local.api("POST", f"/exec/{ident}/start", {}).want(400, "no-such-program")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda i: box.exec("sh", "-c", f"echo {i}; exit {i}"), range(16)))
    if got != [(i, f"{i}\n".encode(), b"") for i in range(16)]:
        raise Trouble(f"commands at once: {got}")
    box.end()
    box.api("GET", "/json").want(404)
    if left := local.api("GET", "/containers/json?all=1").want(200).json:
        raise Trouble(f"what was removed is still listed: {left}")


def want_walls(box):
    code, out, _ = box.exec("sh", "-c", "env | sort; echo --; ls /; echo --; tail -n +3 /proc/net/dev | cut -d: -f1;"
                                        "echo --; grep -E 'NoNewPrivs|Seccomp:|CapBnd' /proc/self/status; ls /proc | grep -c '^[0-9]'")
    env, root, devices, status = (part.split() for part in out.decode().split("--"))
    if set(env) - {"MINE=1", "HOME=/tmp", "PATH=/usr/local/bin:/usr/bin:/bin", "PWD=/"}:
        raise Trouble(f"variables of somebody else's: {env}")
    if code or set(root) & {"root", "home", "var", "run", "boot"} or devices != ["lo"]:
        raise Trouble(f"the host is seen: {root}, {devices}")
    if status[1] != "0000000000000000" or status[3] != "1" or status[5] != "2" or int(status[6]) > 20:
        raise Trouble(f"the walls are not what they are said to be: {status}")
    if box.exec("sh", "-c", "touch /usr/x || touch /x")[0] == 0:
        raise Trouble("the root can be written")
    if box.exec("sh", "-c", "head -c 30000000 /dev/zero >/work/x")[0] == 0:
        raise Trouble("a place in memory has no end")
    box.exec("rm", "/work/x")


def want_files(box):
    names = {"a b": b"1", "-x": b"", "ä\u2603": MANY[:70000], "d/e %41;": b"deep"}
    box.put("/work", **names).want(200)
    found = box.get("/work")
    if {k.partition("/")[2]: v for k, v in found.items()} != names:
        raise Trouble(f"files came back otherwise: {sorted(found)}")
    if box.exec("sha256sum", "/work/ä\u2603")[1].decode().split()[0] != hashlib.sha256(MANY[:70000]).hexdigest():
        raise Trouble("the sandbox sees another file")
    box.exec("ln", "-s", "/etc/shadow", "/work/link")
    if box.api("GET", "/archive?path=/work/link/x").status == 200 or "shadow" in str(box.get("/work")):
        raise Trouble("a link leads out")
    box.api("DELETE", "/archive?path=/work/d&recursive=1").want(204)
    if "/work/d" in str(box.exec("ls", "-d", "/work/d")[1]):
        raise Trouble("what was removed is still there")
    box.put("/proc", x=b"").want(403)
    box.put("/work/none", x=b"").want(404)


def refusals(local):
    """Each is decided by the rules, and on record."""
    for name, host, reason in (("none", {}, "host_tools_not_granted"), ("kernel", {}, "runtime"),
                               ("tools", {"Runtime": "bare", "NetworkMode": "default"}, "host_tools_not_granted"),
                               ("tools", {"NetworkMode": "host"}, "network"),
                               ("tools", {"Privileged": True}, "privileged"),
                               ("tools", {"Binds": ["/etc:/x:ro"]}, "bind"),
                               ("tools", {"Binds": [f"{local.folder}/state:/x:ro"]}, "bind_protected"),
                               ("nearly", {"Runtime": "bare"}, "runtime")):
        local.name = name
        local.create(host=host).want(403, reason)
        last = [r for r in local.gate.records() if r.get("op") == "container.create"][-1]
        if reason not in json.dumps(last):
            raise Trouble(f"{reason} of {name} is not on record: {last}")
    local.name = "tools"
    # What the keeper has no way to keep it refuses, though the rules would let it pass.
    local.create(Hostname="a_b").want(400, "Hostname")
    local.create(Healthcheck={"Interval": 1}).want(400, "Healthcheck")


def test_the_host_runs_tools_in_sandboxes(_world):
    with started() as local:
        works(local)
        refusals(local)
        local.name = "seen"
        box = local.sandbox()
        found = [r for r in local.gate.records() if "attestation" in json.dumps(r)]
        if not found or '"level": "process"' not in json.dumps(found[-1]):
            raise Trouble(f"what runs was not seen: {found[-1:]}")
        box.end()


def test_the_host_runs_tools_without_a_privileged_gate(_world):
    with started(NOBODY) as local:
        works(local)


def test_bare_tools_are_just_programs(_world):
    with started() as local:
        local.name = "bare"
        box = Sandbox(local, local.create(host={"Runtime": "bare", "Tmpfs": {}}).want(201).json["Id"])
        box.api("POST", "/start").want(204)
        code, out, _ = box.exec("sh", "-c", "id -un; pwd; ls /etc/passwd; setsid sleep 777 & sleep 0.1; pgrep -f 'sleep 777'")
        words = out.decode().split()
        if code or words[0] != "sallyport-keeper" or words[2] != "/etc/passwd":
            raise Trouble(f"a bare program: {code} {out}")
        box.put("/", here=b"text").want(200)
        if box.exec("cat", "here")[1] != b"text":
            raise Trouble("its files are elsewhere")
        box.end()
        until("what it left behind is gone", 10, lambda: not proc.alive(int(words[-1])))
        if list((local.folder / "state").iterdir()):
            raise Trouble("its folder is still there")


def test_bounds_of_local_sandboxes_hold(_world):
    with started() as local:
        boxes = [local.sandbox() for _ in range(6)]
        local.create().want(429, "as many")
        box = boxes[0]
        code, out, _ = box.exec("sh", "-c", "for i in $(seq 100); do sleep 5 & done; echo; jobs | wc -l")
        if b"100" in out:
            raise Trouble("there are more processes than were asked for")
        box = boxes[1]
        if (got := box.exec("sh", "-c", "head -c 600000000 /dev/zero | tail"))[0] != 137:
            raise Trouble(f"there is no limit of memory: {got[0]} {got[2]}")
        box.api("POST", "/stop?t=0").want(204)
        if box.api("GET", "/json").json["State"]["Running"]:
            raise Trouble("it was stopped, and runs")
        box.api("POST", "/exec", {"Cmd": ["true"]}).want(409)
        mark = Path("/srv/local-e2e")
        mark.mkdir(exist_ok=True)
        (mark / "file").write_text("of the host")
        try:
            boxes[1].end()
            box = local.sandbox(host={"Binds": ["/srv/local-e2e:/data:ro"]})
            if box.exec("sh", "-c", "cat /data/file; touch /data/x")[:2] != (1, b"of the host"):
                raise Trouble("a folder that was granted is not there, or can be written")
        finally:
            shutil.rmtree(mark)


def test_a_dead_keeper_takes_its_sandboxes_along(_world):
    with started() as local:
        box = local.sandbox("sh", "-c", "sleep 876 & sleep 876")
        pid = box.api("GET", "/json").want(200).json["State"]["Pid"]
        groups = {str(p) for p in Path("/sys/fs/cgroup").rglob("box-" + box.id[:12])}
        first = local.keeper()
        proc.kill(first)
        until("its sandbox is gone", 10, lambda: not proc.alive(pid))
        until("another keeper serves", 10, lambda: local.gate.role("keeper") not in ([], [first])
              and local.api("GET", "/containers/json?all=1").status == 200)
        if local.api("GET", "/containers/json?all=1").json:
            raise Trouble("a new keeper knows of an old sandbox")
        if left := [p for p in groups if Path(p).exists()]:
            raise Trouble(f"control groups were left: {left}")
        box = local.sandbox()
        pid = box.api("GET", "/json").want(200).json["State"]["Pid"]
        if local.gate.stop():
            raise Trouble("the gate did not end well")
        until("its sandbox is gone as well", 10, lambda: not proc.alive(pid))
        if (local.folder / "keeper.sock").exists():
            raise Trouble("its socket is still there")
        local.gate.output.unlink()
        local.gate.start()
        works(local)
