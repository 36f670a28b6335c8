"""What must pass or be refused on the wire with a real engine; each test gets the world."""

import json
import os
import re
from pathlib import Path

from kit import cases, proc, wire
from kit.ids import covers
from kit.proc import Trouble
from world import APP

CREATE = json.dumps({"Image": APP, "Cmd": ["sh", "-c", "echo inside; cat"], "OpenStdin": True,
                     "AttachStdin": True, "AttachStdout": True, "StdinOnce": True,
                     "HostConfig": {}}).encode()
JSON = [("Content-Type", "application/json")]


def say(stream, text, body=b""):
    head = text.replace("\n", "\r\n") + f"\r\nHost: d\r\nContent-Length: {len(body)}\r\n"
    if body:
        head += "Content-Type: application/json\r\n"
    stream.send(head.encode() + b"\r\n" + body)


@covers("I01")
def test_first_move(world):
    """HEAD /_ping: a length is named, no body follows, the next request is answered."""
    stream = wire.connect(world.folder / "runc.sock")
    say(stream, "HEAD /_ping HTTP/1.1")
    head = stream.reply("HEAD")
    if head.status != 200 or not all(map(head.get, ("Api-Version", "Docker-Experimental", "Ostype"))):
        raise Trouble(f"HEAD /_ping: {head.start} {head.fields}")
    say(stream, "GET /_ping HTTP/1.1")
    if stream.reply().status != 200 or stream.body.all() != b"OK":
        raise Trouble("GET /_ping on the same connection")
    stream.sock.close()


@covers("I15", "I07", "I04")
def test_attach_on_a_used_connection(world):
    """ping, create and attach on one connection; input before the 101; both ends closed in turn."""
    stream = wire.connect(world.folder / "runc.sock", seconds=60)
    say(stream, "GET /_ping HTTP/1.1")
    if stream.reply().status != 200 or stream.body.all() != b"OK":
        raise Trouble("ping")
    say(stream, "POST /v1.41/containers/create HTTP/1.1", CREATE)
    if (head := stream.reply()).status != 201:
        raise Trouble(f"create: {head.start} {stream.body.all()}")
    ident = json.loads(stream.body.all())["Id"]
    stream.send(f"POST /v1.41/containers/{ident}/attach?stream=1&stdin=1&stdout=1 HTTP/1.1\r\n"
                "Host: d\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n"
                "early\n".encode())
    if (head := stream.reply()).status != 101:
        raise Trouble(f"attach: {head.start}")
    status = world.ask("runc", "POST", f"/v1.41/containers/{ident}/start")[0].status
    if status != 204:
        raise Trouble(f"start: {status}")
    stream.send(b"late\n")
    stream.sock.shutdown(1)
    seen = b""
    while stream.buffer or stream.fill():
        seen += stream.take(65536)
    for text in (b"inside\n", b"early\n", b"late\n"):
        if text not in seen:
            raise Trouble(f"{text!r} is missing in {seen!r}")
    world.ask("runc", "DELETE", f"/v1.41/containers/{ident}?force=1")


@covers("I06")
def test_refused_upgrade(world):
    """The engine's refusal of an upgrade is plain HTTP, and the connection goes on."""
    stream = wire.connect(world.folder / "runc.sock")
    stream.send(b"POST /v1.41/containers/nosuch/attach?stream=1 HTTP/1.1\r\nHost: d\r\n"
                b"Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n")
    head = stream.reply()
    if head.status != 404 or "message" not in json.loads(stream.body.all()):
        raise Trouble(f"attach to nothing: {head.start}")
    say(stream, "GET /_ping HTTP/1.1")
    if stream.reply().status != 200:
        raise Trouble("the connection is no longer HTTP")
    stream.sock.close()


@covers("I14")
def test_expect_continue(world):
    stream = wire.connect(world.folder / "runc.sock", seconds=5)
    stream.send(b"POST /v1.41/containers/create HTTP/1.1\r\nHost: d\r\nExpect: 100-continue\r\n"
                b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(CREATE))
    head = stream.reply("POST")
    if head.status != 100:
        raise Trouble(f"Expect: {head.start}")
    stream.send(CREATE)
    head = stream.reply("POST")
    if head.status != 201:
        raise Trouble(f"after 100: {head.start} {stream.body.all()}")
    ident = json.loads(stream.body.all())["Id"]
    world.ask("runc", "DELETE", f"/v1.41/containers/{ident}?force=1")


@covers("I16")
def test_old_http(world):
    stream = wire.connect(world.folder / "runc.sock")
    stream.send(b"GET /_ping HTTP/1.0\r\n\r\n")
    if stream.reply().status != 200 or stream.body.all() != b"OK" or stream.fill():
        raise Trouble("HTTP/1.0 without Host")


@covers("I23")
def test_version_is_negotiated(world):
    """Versions in replies are never above what the gate knows; both forms of the path work."""
    engine = json.loads(wire.ask(world.engine.socket, "GET", "/version")[1])["ApiVersion"]
    for path in ("/version", "/v1.41/version"):
        head, body = world.ask("runc", "GET", path)
        if head.status != 200:
            raise Trouble(f"{path}: {head.start}")
        found = json.loads(body)["ApiVersion"]
        if tuple(map(int, found.split("."))) > tuple(map(int, engine.split("."))):
            raise Trouble(f"{path} says {found}, the engine {engine}")
    head, body = world.ask("runc", "GET", "/v1.99/containers/json")
    if head.status != 400 or "version" not in json.loads(body)["message"]:
        raise Trouble(f"an unknown version: {head.start} {body}")


@covers("I22")
def test_denial_is_readable(world):
    head, body = world.ask("runc", "POST", "/v1.41/containers/create", JSON, json.dumps(
        {"Image": APP, "HostConfig": {"Privileged": True}}).encode())
    message = json.loads(body)["message"]
    if head.status != 403 or head.get("Content-Type") != "application/json":
        raise Trouble(f"{head.start} {head.fields}")
    found = re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}", message)
    if not found:
        raise Trouble(f"no decision id in {message!r}")
    if not any(record.get("id") == found[0] for record in world.gate.records()):
        raise Trouble(f"no record {found[0]}")


@covers("I02")
def test_cases(world):
    """Every case with the real engine behind the gate: same answers, and nothing is made."""
    before = world.direct("ps", "-aq").want().out
    problems = []
    for case in cases_here(world):
        for volume in ("own-data", "other-data", "bindvol"):
            if f'"{volume}' in "".join(case.lines):
                make_volume(world, volume)
        problem = one_case(world, case)
        if problem:
            problems.append(f"{case.id} {case.title}: {problem}")
    after = world.direct("ps", "-aq").want().out
    if after != before:
        problems.append("containers were made by cases that are denied")
    if problems:
        raise Trouble("\n".join(problems))


def cases_here(world):
    """What can be asked of an engine as it comes, and every known way past a gate."""
    values = {"dir": world.folder, "log": world.folder / "log", "socket": world.folder / "ref.sock"}
    known = [case for case in cases.read(proc.ROOT / "tests/cases/docker.cases", **values)
             if case.id[0] in "ABPI"]
    return known + cases.read(proc.ROOT / "tests/cases/vectors.cases", **values)


def make_volume(world, name):
    owner = "other" if name == "other-data" else "agent"
    options = ["-o", "type=none", "-o", "o=bind", "-o", "device=/srv"] if name == "bindvol" else []
    world.direct("volume", "create", "--label", f"sallyport.owner={owner}", *options, name).want()


def one_case(world, case):
    stream = wire.connect(world.folder / "ref.sock", seconds=20)
    try:
        stream.send(case.request)
        head = stream.reply(case.request.split(b" ")[0].decode())
        body = stream.body.all() if stream.body else b""
    finally:
        stream.sock.close()
    if case.verdict == "allow" and case.request.startswith(b"GET "):
        return None if head.status == 200 else f"{head.start} {body[:400]!r}"
    if case.verdict == "allow":
        if head.status != 201:
            return f"{head.start} {body[:400]!r}"
        ident = json.loads(body)["Id"]
        gone = world.ask("ref", "DELETE", f"/v1.41/containers/{ident}?force=1")[0].status
        return None if gone == 204 else f"made, and then not removed: {gone}"
    found = re.search(rb"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}", body)
    if head.status < 400 or not found:
        return f"{head.start} {body[:400]!r}"
    # Of what only reads, the record may come behind the answer.
    record = proc.until(f"there is a record {found[0]}", 10, lambda: [
        one for one in world.gate.records() if one.get("id") == found[0].decode()])[0]
    reasons = [violation["reason"] for violation in record.get("violations", [])]
    return cases.verdict_problem(case, record["verdict"], reasons)


@covers("B05")
def test_link_swapped_after_create(world):
    """A bind source that becomes a link between create and start is seen at start."""
    folder = Path("/srv/ws/swap")
    if folder.is_symlink():
        folder.unlink()
    folder.mkdir(exist_ok=True)
    head, body = world.ask("runc", "POST", "/v1.41/containers/create", JSON, json.dumps(
        {"Image": APP, "HostConfig": {"Binds": ["/srv/ws/swap:/w"]}}).encode())
    if head.status != 201:
        raise Trouble(f"create: {head.start} {body!r}")
    ident = json.loads(body)["Id"]
    folder.rmdir()
    os.symlink("/etc", folder)
    try:
        head, body = world.ask("runc", "POST", f"/v1.41/containers/{ident}/start")
        if head.status != 403 or b"[bind_symlink," not in body:
            raise Trouble(f"start: {head.start} {body!r}")
    finally:
        folder.unlink()
        world.ask("runc", "DELETE", f"/v1.41/containers/{ident}?force=1")
