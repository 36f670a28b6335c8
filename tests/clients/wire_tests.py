"""What streams and uploads must bear on the way to a real engine; each test gets the place."""

import hashlib
import io
import json
import subprocess
import tarfile
import threading
import time

from kit import proc, wire
from kit.ids import covers
from kit.proc import Trouble
from place import APP, DECISION

# Several times the longest of the hasty gate's timers.
SILENCE = 5.0

BIG = 512 << 20
# What the processes of a gate may grow by, together, while BIG passes; in KiB.
FLAT = 16 << 10


def frame(stream):
    """The next frame of an output that is multiplexed: (stream, bytes)."""
    head = stream.body.exact(8)
    return head[0], stream.body.exact(int.from_bytes(head[4:], "big"))


def made(place, command, **more):
    """A container of the clients' own; its id."""
    body = {"Image": APP, "Cmd": command, **more}
    head, reply = place.ask("POST", "/v1.41/containers/create", [("Content-Type", "application/json")],
                            json.dumps(body).encode())
    if head.status != 201:
        raise Trouble(f"create: {head.start} {reply!r}")
    return json.loads(reply)["Id"]


def started(place, command, **more):
    ident = made(place, command, **more)
    want(place, "POST", f"/v1.41/containers/{ident}/start", 204)
    return ident


def want(place, method, target, status, body=None):
    headers = [("Content-Type", "application/json")] if body is not None else []
    head, reply = place.ask(method, target, headers, body)
    if head.status != status:
        raise Trouble(f"{method} {target}: {head.start} {reply[:1000]!r}")
    return reply


def opened(path, request, status, body=b""):
    """A stream whose reply has begun."""
    stream = wire.connect(path, seconds=30)
    head = request + f"\nHost: d\nContent-Length: {len(body)}\n"
    if body:
        head += "Content-Type: application/json\n"
    stream.send(head.replace("\n", "\r\n").encode() + b"\r\n" + body)
    reply = stream.reply("POST")
    if reply.status != status:
        raise Trouble(f"{request}: {reply.start} {stream.body.all()!r}")
    return stream


@covers("I05")
def test_hijack_without_upgrade(place):
    """Older clients: output comes as it is made; input needs an upgrade, and the refusal says so."""
    ident = started(place, ["sleep", "600"])
    script = "echo one; while [ ! -e /tmp/go ]; do sleep 0.05; done; echo two >&2"
    exec_id = json.loads(want(place, "POST", f"/v1.41/containers/{ident}/exec", 201, json.dumps(
        {"AttachStdout": True, "AttachStderr": True, "Cmd": ["sh", "-c", script]}).encode()))["Id"]
    stream = opened(place.socket, f"POST /v1.41/exec/{exec_id}/start HTTP/1.1", 200,
                    b'{"Detach":false,"Tty":false}')
    if frame(stream) != (1, b"one\n"):
        raise Trouble("the first line did not come by itself")
    go = json.loads(want(place, "POST", f"/v1.41/containers/{ident}/exec", 201,
                         b'{"Cmd":["touch","/tmp/go"]}'))["Id"]
    want(place, "POST", f"/v1.41/exec/{go}/start", 200, b'{"Detach":true}')
    if frame(stream) != (2, b"two\n") or stream.body.some():
        raise Trouble("the second line did not come, or something behind it did")
    for target, body in ((f"/containers/{ident}/attach?stream=1&stdin=1&stdout=1", None),
                         (f"/exec/{input_exec(place, ident)}/start", b"{}")):
        head, reply = place.ask("POST", f"/v1.41{target}",
                                [("Content-Type", "application/json")] if body else [], body)
        if head.status < 400 or b"Upgrade: tcp" not in reply:
            raise Trouble(f"{target}: {head.start} {reply!r}")
        place.refused(reply.decode(), "upgrade")
    want(place, "DELETE", f"/v1.41/containers/{ident}?force=1", 204)


def input_exec(place, ident):
    return json.loads(want(place, "POST", f"/v1.41/containers/{ident}/exec", 201,
                           b'{"AttachStdin":true,"AttachStdout":true,"Cmd":["cat"]}'))["Id"]


@covers("I09")
def test_silent_streams(place):
    """Nothing is cut that both sides keep open: five silent streams, each through short timers."""
    path = place.hasty.folder / "gate.sock"
    ident = started(place, ["sh", "-c", "read line; echo got $line; read line"], OpenStdin=True)
    upgrade = "\nConnection: Upgrade\nUpgrade: tcp"
    base = f"/v1.41/containers/{ident}"
    exec_id = input_exec(place, ident)
    filters = "%7B%22event%22%3A%5B%22die%22%5D%2C%22container%22%3A%5B%22" + ident + "%22%5D%7D"
    events = opened(path, f"GET /v1.41/events?filters={filters} HTTP/1.1", 200)
    logs = opened(path, f"GET {base}/logs?follow=1&stdout=1 HTTP/1.1", 200)
    wait = opened(path, f"POST {base}/wait HTTP/1.1", 200)
    attach = opened(path, f"POST {base}/attach?stream=1&stdin=1&stdout=1 HTTP/1.1{upgrade}", 101)
    command = opened(path, f"POST /v1.41/exec/{exec_id}/start HTTP/1.1{upgrade}", 101, b"{}")
    time.sleep(SILENCE)  # the silence is what is tested
    command.send(b"typed\n")
    if command.exact(14)[8:] != b"typed\n":
        raise Trouble("exec is deaf after the silence")
    attach.send(b"hello\n")
    if attach.exact(18)[8:] != b"got hello\n":
        raise Trouble("attach is deaf after the silence")
    if frame(logs) != (1, b"got hello\n"):
        raise Trouble("logs are deaf after the silence")
    attach.send(b"end\n")
    if json.loads(wait.body.all())["StatusCode"] != 0:
        raise Trouble("wait says something else")
    if b'"die"' not in events.body.some():
        raise Trouble("events are deaf after the silence")
    before = connections(path)
    events.sock.close()  # alone: nothing that the others do helps the gate to notice it
    proc.until("the gate lets go of one who hung up", 1, lambda: connections(path) < before)
    for stream in (logs, wait, attach, command):
        stream.sock.close()
    proc.until("the gate lets go of who hung up", 3, lambda: not connections(path))
    want(place, "DELETE", f"/v1.41/containers/{ident}?force=1", 204)


def connections(path):
    """How many are open on a listening socket, on its side."""
    with open("/proc/net/unix", encoding="utf-8") as table:
        rows = [line.split() for line in table]
    return sum(row[-1] == str(path) and row[5] == "03" for row in rows)


@covers("I11")
def test_stats(place):
    ident = started(place, ["sleep", "600"])
    base = f"/v1.41/containers/{ident}/stats"
    for query in ("?stream=false", "?stream=false&one-shot=1", "?stream=0&one-shot=true"):
        if json.loads(want(place, "GET", base + query, 200))["id"] != ident:
            raise Trouble(query)
    stream = opened(place.socket, f"GET {base}?stream=1 HTTP/1.1", 200)
    for _ in range(3):
        if json.loads(stream.body.some())["id"] != ident:
            raise Trouble("a piece of the stream is no whole document")
    stream.sock.close()
    want(place, "DELETE", f"/v1.41/containers/{ident}?force=1", 204)


@covers("I17")
def test_archive_heads(place):
    """What docker cp reads in a head comes through, and nothing comes behind it."""
    ident = made(place, ["true"])
    stream = wire.connect(place.socket)
    for _ in range(3):
        stream.send(f"HEAD /v1.41/containers/{ident}/archive?path=/etc/passwd HTTP/1.1\r\n"
                    "Host: d\r\n\r\nGET /_ping HTTP/1.1\r\nHost: d\r\n\r\n".encode())
        head = stream.reply("HEAD")
        if head.status != 200 or not head.get("X-Docker-Container-Path-Stat"):
            raise Trouble(f"{head.start} {head.fields}")
        if stream.reply().status != 200 or stream.body.all() != b"OK":
            raise Trouble("the next reply")
    stream.sock.close()
    want(place, "DELETE", f"/v1.41/containers/{ident}?force=1", 204)


def test_both_types_of_archives(place):
    """PUT under each type that clients send, and none; a build is refused for what it lacks, not its type."""
    ident = made(place, ["true"])
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("file"))
    for kind in ("application/x-tar", "application/tar", "application/octet-stream", None):
        headers = [("Content-Type", kind)] if kind else []
        head, reply = place.ask("PUT", f"/v1.41/containers/{ident}/archive?path=/w", headers,
                                buffer.getvalue())
        if head.status != 200:
            raise Trouble(f"{kind}: {head.start} {reply!r}")
        if kind in ("application/x-tar", "application/tar"):
            head, reply = place.ask("POST", "/v1.41/build?t=x", headers, buffer.getvalue())
            place.refused(reply.decode(), "build_file")
    want(place, "DELETE", f"/v1.41/containers/{ident}?force=1", 204)


class Memory:
    """Watches what the processes of the gate hold, while something goes on."""

    def __init__(self, gate):
        self.gate, self.over = gate, threading.Event()
        self.before = self.now()
        self.peak = self.before
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def now(self):
        return sum(proc.memory_kib(pid) for pid in proc.family(self.gate.process.pid))

    def watch(self):
        while not self.over.wait(0.05):
            self.peak = max(self.peak, self.now())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, kind, *_):
        self.over.set()
        self.thread.join()
        self.peak = max(self.peak, self.now())
        if kind is None and self.peak - self.before > FLAT:
            raise Trouble(f"the gate grew from {self.before} to {self.peak} KiB")


def tar_head(name, size):
    entry = tarfile.TarInfo(name)
    entry.size = size
    return entry.tobuf()


def zeros(size):
    block = bytes(1 << 20)
    while size:
        yield block[:min(size, len(block))]
        size -= min(size, len(block))


def big_layer():
    """A layer with one large file, in pieces."""
    yield tar_head("big", BIG)
    yield from zeros(BIG)
    yield bytes(1024)


def big_image(name):
    """What docker save would write of an image with that layer, in pieces."""
    digest = hashlib.sha256()
    for piece in big_layer():
        digest.update(piece)
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {"Cmd": ["true"]},
                         "rootfs": {"type": "layers",
                                    "diff_ids": [f"sha256:{digest.hexdigest()}"]}}).encode()
    manifest = json.dumps([{"Config": "config.json", "RepoTags": [name],
                            "Layers": ["layer.tar"]}]).encode()
    yield tar_head("layer.tar", 512 + BIG + 1024)
    yield from big_layer()
    for file, text in (("config.json", config), ("manifest.json", manifest)):
        yield tar_head(file, len(text))
        yield text + bytes(-len(text) % 512)
    yield bytes(1024)


def feed(process, pieces):
    try:
        for piece in pieces:
            process.stdin.write(piece)
        process.stdin.close()
    except BrokenPipeError:
        pass  # its status and words say why


@covers("I12", "I13")
def test_large_upload_and_slow_download(place):
    """Half a gigabyte of unknown length up, down to a reader who takes his time, and saved again."""
    client, image = place.clients()[0], "reg.example/team/big:1"
    with Memory(place.gate):
        process = subprocess.Popen([client.program, "load"], env=client.env, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        feed(process, big_image(image))
        said = process.stdout.read().decode()
        if process.wait(60) or "Loaded image" not in said:
            raise Trouble(f"load: status {process.returncode}: {said}")
    ident = json.loads(want(place, "POST", "/v1.41/containers/create", 201, json.dumps(
        {"Image": image}).encode()))["Id"]
    with Memory(place.gate):
        process = subprocess.Popen([client.program, "cp", f"{ident}:/big", "-"], env=client.env,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)
        taken = 0
        for _ in range(30):  # slowly: a tenth of a second between pieces
            taken += len(process.stdout.read(1 << 20))
            time.sleep(0.1)
        while piece := process.stdout.read(1 << 20):
            taken += len(piece)
        if process.wait(60) or taken < BIG:
            raise Trouble(f"cp: status {process.returncode} after {taken} bytes")
    want(place, "DELETE", f"/v1.41/containers/{ident}?force=1", 204)
    with Memory(place.gate):
        process = subprocess.Popen([client.program, "save", image], env=client.env,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)
        taken = 0
        while piece := process.stdout.read(1 << 20):
            taken += len(piece)
        if process.wait(60) or taken < BIG:
            raise Trouble(f"save: status {process.returncode} after {taken} bytes")


def test_large_copy_into_a_container(place):
    client, ident = place.clients()[-1], made(place, ["true"])
    with Memory(place.gate):
        process = subprocess.Popen([client.program, "cp", "-", f"{ident}:/w"], env=client.env,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        feed(process, big_layer())
        said = process.stdout.read().decode()
        if process.wait(60):
            raise Trouble(f"cp: status {process.returncode}: {said}")
    head, _ = place.ask("HEAD", f"/v1.41/containers/{ident}/archive?path=/w/big")
    if head.status != 200:
        raise Trouble(f"the copy: {head.start}")
    want(place, "DELETE", f"/v1.41/containers/{ident}?force=1", 204)


def test_receipts(place):
    """What clients were told is on record: every decision that a refusal of these tests named."""
    records = place.gate.records()
    ids = {record.get("id") for record in records}
    named = {found for record in records for found in DECISION.findall(json.dumps(record.get("of", "")))}
    if not named or not named <= ids:
        raise Trouble(f"outcomes of decisions that are not there: {sorted(named - ids)[:5]}")
    verdicts = {record["verdict"] for record in records if "verdict" in record}
    if verdicts != {"allow", "deny"}:
        raise Trouble(f"verdicts: {verdicts}")
