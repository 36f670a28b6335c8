#!/usr/bin/env python3
"""evidence.py PROGRAM - `audit evidence` and its verify.py, over signed logs that are made here.

Signatures are made by another library than the ones that check them.
"""

import base64
import contextlib
import hashlib
import importlib.util
import io
import json
import random
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ROOT = Path(__file__).resolve().parents[3]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/checker"))
import check  # noqa: E402

ORIGIN = "gate.example/host+7"
BEGIN = datetime(2026, 1, 31, tzinfo=timezone.utc)
CONFIG = """
log {{ dir = "{dir}/log", origin = "gate.example/host+7", anchors = {{ "{dir}/anchor" }} }}
profiles {{ "{dir}/profiles" }}
backend "engine" {{ kind = "docker", address = "unix://{dir}/e.sock" }}
identity "agent-7" {{ uid = 1001, profile = "agent" }}
listener "agents" {{ socket = "{dir}/g.sock", mode = "0666", backend = "engine", identities = {{ "agent-7" }} }}
"""
BASE = 'return profile "base" { operations = { "container.run", "exec" }, isolation = { min = "process" } }\n'
AGENT = 'return profile "agent" { extends = "base", operations = { "container.run" } }\n'
failed = []


def want(label, expected, got):
    if expected != got:
        failed.append(label)
        print(f"{label}: {str(got)[:600]!r}, should be {expected!r}")


def text_key(key):
    data = b"\1" + key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    name = ORIGIN.replace("+", "_")
    return f"{name}+{check.sha(name.encode() + chr(10).encode() + data)[:4].hex()}+{base64.b64encode(data).decode()}"


class Log:
    """A signed log as audit/FORMAT.md has it; a minute between two records."""

    def __init__(self, folder, segment=60, seed=1, rotate_at=None, tiled=False):
        self.folder, self.segment, self.rotate_at, self.tiled = folder, segment, rotate_at, tiled
        self.folder.mkdir()
        self.seq, self.prev, self.tree, self.notes, self.lines = 0, check.ZERO, check.Tree(), {}, []
        self.random, self.open = random.Random(seed), False
        self.key = self.new_key()
        self.open_segment()
        self.write({"type": "gate_start", "text": "sallyport of the tests", "tsync": "synced"})

    def new_key(self):
        return Ed25519PrivateKey.from_private_bytes(self.random.randbytes(32))

    def sign(self, key, text):
        ident = bytes.fromhex(text_key(key).split("+")[1])
        return base64.b64encode(ident + key.sign(text.encode())).decode()

    def put(self, body):
        t = (BEGIN + timedelta(minutes=self.seq)).strftime("%Y-%m-%dT%H:%M:%S.000000001Z")
        body = json.dumps(body, separators=(",", ":"))[1:-1]
        text = (f'{{"v":1,"log":"{ORIGIN}","seq":{self.seq},"ep":1,"t":"{t}","mono":{self.seq + 1},{body},'
                f'"prev":"{self.prev}"').encode()
        leaf = check.sha(b"\0" + text)
        self.prev = leaf.hex()
        self.lines.append(text + f',"h":"{self.prev}"}}'.encode())
        with open(self.path, "ab") as file:
            file.write(self.lines[-1] + b"\n")
        self.tree.add(leaf)
        self.seq += 1
        if self.tiled and self.seq % 256 == 0:
            self.tile()

    def tile(self):
        folder = self.folder / "tile/0"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.seq // 256 - 1:03d}").write_bytes(
            b"".join(bytes.fromhex(line[-66:-2].decode()) for line in self.lines[-256:]))

    def open_segment(self):
        self.first, self.path = self.seq, self.folder / f"{self.seq:020d}.log"
        body = {"type": "log_open", "id": "o"}
        if self.seq:
            body.update(edge=self.tree.edge(), head=self.prev, **({"open": 1} if self.open else {}))
        self.put({**body, "key": text_key(self.key)})

    def write(self, body):
        if self.seq - self.first >= self.segment - 3:
            if self.rotate_at is not None and self.seq >= self.rotate_at:
                self.rotate()
            self.checkpoint()
            self.put({"type": "log_seal", "count": self.seq - self.first + 1, "root": self.tree.root().hex()})
            self.open_segment()
        self.put(body)
        if body["type"] in ("decision", "outcome"):
            self.open = body.get("verdict") == "allow"

    def note(self):
        text = check.Note.text_of(ORIGIN, self.seq, self.tree.root())
        signature = self.sign(self.key, text)
        self.notes[self.seq] = f"{text}\n\u2014 {text_key(self.key).split('+')[0]} {signature}\n"
        return signature

    def checkpoint(self):
        signature = self.note()
        self.put({"type": "checkpoint", "size": self.seq, "root": self.tree.root().hex(),
                  "key": text_key(self.key).split("+")[1], "sig": signature})

    def rotate(self):
        self.rotate_at, new = None, self.new_key()
        text = f"{ORIGIN}\nkey rotation\n{text_key(new)}\n"
        self.put({"type": "key_rotate", "key": text_key(new), "sig": self.sign(self.key, text),
                  "proof": self.sign(new, text)})
        self.key = new

    def work(self, count):
        for _ in range(count):
            n, name = self.seq, f"01900000-0000-7000-8000-{self.seq:012x}"
            verdict = "deny" if n % 7 == 0 else "allow"
            body = {"type": "decision", "id": name, "listener": "agents",
                    "actor": {"identity": "agent-7", "owner": "team-a"}, "op": "container.create",
                    "class": "launch", "res": [{"type": "image", "name": "<b>python\u202e"}],
                    "pol": {"profile": "agent", "rule": "privileges"}, "verdict": verdict}
            if verdict == "deny":
                self.write({**body, "reason": "privileged"})
                continue
            self.write({**body, "mut": [{"field": "User"}], "facts": [[[]]] * 20})
            self.write({"type": "outcome", "of": name, "op": "container.create", "outcome": {"status": "ok"}})

    def end(self):
        """The newest checkpoint, as the gate leaves it; some room behind the last record."""
        self.note()
        (self.folder / "checkpoint").write_text(self.notes[self.seq])
        self.put({"type": "log_read", "text": "audit tail", "actor": {"auth": {"uid": 0}}})
        with open(self.path, "ab") as file:
            file.write(bytes(5000))
        return self


def minute(n):
    return (BEGIN + timedelta(minutes=n)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Place:
    def __init__(self, program, folder):
        self.program, self.dir, self.count = program, folder, 0
        (folder / "profiles").mkdir()
        (folder / "profiles/base.lua").write_text(BASE)
        (folder / "profiles/agent.lua").write_text(AGENT)
        (folder / "config").write_text(CONFIG.format(dir=folder))
        (folder / "verify.py").write_bytes(self.run("audit", "evidence", "--verifier")[1])
        loader = importlib.util.spec_from_file_location("verify", folder / "verify.py")
        self.verifier = importlib.util.module_from_spec(loader)
        loader.loader.exec_module(self.verifier)

    def run(self, *words):
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, check=False, timeout=60,
                              stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout, done.stderr.decode()

    def make(self, *words, begin=0, end=10 ** 6, status=0, name=None):
        self.count += 1
        out = self.dir / (name or f"{self.count}.tar")
        got, _, said = self.run("audit", "evidence", "--from", minute(begin), "--to", minute(end), "-o", out,
                                *(words if "--for" in words else ("--for", "pci", *words)))
        want(f"evidence {words}: {said}", status, got)
        return out if status == 0 else said

    def verify(self, archive, *words):
        """Its exit status, and what it said."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = self.verifier.main([*map(str, words), str(archive)])
        return status, out.getvalue()

    def expect(self, label, archive, pattern, *words):
        status, said = self.verify(archive, *words)
        want(f"{label}: status", 1 if pattern else 0, status)
        wrongs = [line for line in said.splitlines() if line.startswith("WRONG ")]
        want(f"{label}: {pattern!r} in {wrongs}", True, not pattern or any(pattern in line for line in wrongs))
        return said


def members(archive):
    with tarfile.open(archive) as tar:
        return {m.name.split("/", 1)[1]: (m.offset_data, m.size, tar.extractfile(m).read()) for m in tar}


def forge(place, archive, change, sums=True, name="forged.tar"):
    """An archive after change(files); with sums its list of hashes is made to fit, as a forger would."""
    with tarfile.open(archive) as tar:
        folder = tar.getmembers()[0].name.split("/", 1)[0]
    files = {name: data for name, (_, _, data) in members(archive).items()}
    change(files)
    if sums:
        files.pop("SHA256SUMS")
        files["SHA256SUMS"] = "".join(f"{hashlib.sha256(data).hexdigest()}  {inner}\n"
                                      for inner, data in files.items()).encode()
    out = io.BytesIO()
    for inner, data in files.items():
        out.write(header(folder, inner, len(data)) + data + bytes(-len(data) % 512))
    out.write(bytes(1024))
    out.write(bytes(-out.tell() % 10240))
    path = place.dir / name
    path.write_bytes(out.getvalue())
    return path


def header(folder, name, size):
    fields = (name.encode().ljust(100, b"\0") + (b"0000755\0" if name.endswith(".py") else b"0000644\0")
              + b"0000000\0" * 2 + b"%011o\0" % size + b"0" * 11 + b"\0" + b" " * 8 + b"0" + bytes(100)
              + b"ustar\0" + b"00" + bytes(80) + folder.encode().ljust(155, b"\0") + bytes(12))
    return fields[:148] + b"%06o\0 " % sum(fields) + fields[156:]


def without_a_record(files):
    name = sorted(inner for inner in files if inner.startswith("log/"))[1]
    lines = files[name].splitlines(True)
    files[name] = b"".join(lines[:20] + lines[21:])


def chained_anew_without_a_record(files):
    """Each hash is right again; the tree is another."""
    prev, lines, dropped = None, {}, False
    for name in sorted(inner for inner in files if inner.startswith("log/")):
        lines[name] = []
        for line in files[name].splitlines():
            if len(lines[name]) == 20 and not dropped:
                dropped = True
                continue
            head, _, rest = line.partition(b'"seq":')
            seq = int(rest.split(b",", 1)[0]) - dropped
            text = head + b'"seq":%d' % seq + rest[rest.index(b","):-146]
            text += b',"prev":"' + (prev.encode() if prev else line[-138:-74]) + b'"'
            prev = hashlib.sha256(b"\0" + text).hexdigest()
            lines[name].append(text + f',"h":"{prev}"}}\n'.encode())
    files.update({name: b"".join(all_lines) for name, all_lines in lines.items()})


def another_sample(files):
    """A record that the seed did not choose, with its number; its line is truly the log's."""
    names = sorted(inner for inner in files if inner.endswith(".record"))
    one, other = names[3], names[8]
    files[one] = files[other]
    files[one.replace("record", "proof")] = files[other.replace("record", "proof")]


def a_nicer_sample(files):
    """summary.json names another record in a place of one; its record and proof are good."""
    summary = json.loads(files["summary.json"])
    control = max(summary["controls"], key=lambda row: row["count"])
    used = sorted({seq for row in summary["controls"] for seq in row["samples"]} - set(control["samples"]))
    control["samples"][0] = used[0]
    files["summary.json"] = json.dumps(summary).encode()


def edit(name, old, new):
    def change(files):
        assert old in files[name], (name, old)
        files[name] = files[name].replace(old, new, 1)
    return change


def drop(name):
    return lambda files: files.pop(name)


def put(name, data):
    return lambda files: files.update({name: data})


# --- tests ---

def whole_log(place):
    log = Log(place.dir / "log", rotate_at=250)
    _, out, _ = place.run("profile", "list", "--config", place.dir / "config", "--json")
    place.hashes = {row["name"]: row["sha256"] for row in json.loads(out)}
    place.load = ("generation 12ab; profiles " + " ".join(f"{k}:{v[:12]}" for k, v in place.hashes.items())
                  + "; bundle acme of 2026-01-01, commit c0ffee, author ann, approver bob, ticket SEC-1, signed by acme"
                  + "".join(f"; bundle b{n} of 2026-01-01, commit {n:064}, signed by acme" for n in range(60)))
    log.write({"type": "policy_load", "text": "generation 11; profiles agent:000011112222"})
    log.write({"type": "policy_load", "text": place.load})
    log.write({"type": "policy_load", "text": place.load})
    log.work(60)
    log.write({"type": "gate_recover", "text": "a torn tail was trimmed", "bytes": 12, "file": "torn/1.bin"})
    log.write({"type": "gate_recover", "text": "damage was accepted: a new log begins", "cause": "x", "file": "aside"})
    log.write({"type": "observed_sum", "seen": 9, "decided": 5, "by_engine": 3, "unexplained": 1})
    log.write({"type": "observed_gap", "cause": "away"})
    log.write({"type": "log_alarm", "cause": "anchor", "text": "<script>alert(1)</script>\u001b[2J"})
    log.work(130)
    sizes = sorted(log.notes)
    (place.dir / "anchor").write_text("".join(log.notes[size] for size in sizes[:-1]))
    log.end()
    return log


def a_good_archive_is_found_good(place, log):
    archive = place.make("--config", place.dir / "config", "--rules", place.dir / "profiles", begin=-100)
    key = next(iter(json.loads(line)["key"] for line in log.lines if b'"log_open"' in line))
    said = place.expect("good", archive, None, "--key", key, "--anchor", place.dir / "anchor")
    for text in ("records    ", "the source of each profile", "9 seen, 5 decided, 3 the engine's own, 1 unexplained",
                 f"signed     {log.seq - 1} records by {text_key(log.key)}"):
        want(text, text != "the source of each profile", text in said)  # generation 11's is nowhere
    want("which", True, "no source of agent:000011112222\n" in said)
    files = members(archive)
    page = files["index.html"][2].decode()
    want("escaped", (False, False, False), ("<script>" in page, "\x1b" in page, "<b>python" in page))
    want("no script", False, "src=" in page or "http://" in page or "https://" in page)
    done = files["completeness.txt"][2].decode()
    for text in ("torn tails that were trimmed                              1", "unexplained      ",
                 "times damage was accepted                                 1"):
        want(text, True, text in done)
    want("bundle", True, "commit c0ffee, author ann, approver bob, ticket SEC-1" in files["rules.txt"][2].decode())
    anchor = sorted(log.notes)[-3]  # the newest is of the log's end, the one before was not published
    unsure = files["cannot-exclude.txt"][2].decode()
    want("anchor", True, f"is of {anchor} records" in unsure and f"{anchor} to {log.seq - 2}, so" in unsure)
    with tarfile.open(archive) as tar:
        tar.extractall(place.dir / "folder", filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(
            place.dir / "folder")
    folder = next((place.dir / "folder").iterdir())
    place.expect("as a folder", folder, None, "--every-signature")
    subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=folder, check=True)
    (folder / "more").write_text("x")
    place.expect("a file more in the folder", folder, "more: is in the archive, and SHA256SUMS does not list it")
    return archive


def any_flipped_byte_is_named(place, archive):
    data, files = bytearray(archive.read_bytes()), members(archive)
    path = place.dir / "flipped.tar"
    chosen = random.Random(5)
    spots = [(name, at + chosen.randrange(size)) for name, (at, size, _) in files.items()
             if size and name != "SHA256SUMS" and (not name.startswith(("controls/", "samples/")) or chosen.random() < 0.02)]
    for name, at in spots:
        data[at] ^= 1
        path.write_bytes(data)
        data[at] ^= 1
        place.expect(f"byte {at}", path, f"WRONG {name}: was altered")
    for label, at in (("a header", files["checkpoint"][0] - 500), ("padding", sum(files["anchor"][:2])), ("the end", len(data) - 1)):
        data[at] ^= 1
        path.write_bytes(data)
        data[at] ^= 1
        place.expect(label, path, "something stands behind its end" if label == "padding" else "as it was written")
    path.write_bytes(data + b"x")
    place.expect("behind the end", path, "the archive's end is not as it was written")


def forgeries_are_named(place, archive, log):
    segment = sorted(name for name in members(archive) if name.startswith("log/"))
    outsider = Log(place.dir / "outsider", seed=2).end()
    unseeded = [int(name[8:-7]) for name in members(archive) if name.endswith(".record")]
    for label, change, pattern, sums in (
            ("an unlisted file", put("more.txt", b"x"), "more.txt: is in the archive, and SHA256SUMS does not list", False),
            ("a file is gone", drop("rules.txt"), "rules.txt: is missing", False),
            ("a record is dropped", without_a_record, f"log: {segment[1]}: record", True),
            ("a record is dropped, chained anew", chained_anew_without_a_record, f"log: {segment[0]}: record", True),
            ("a record is altered", edit(segment[0], b"agent-7", b"agent-8"), f"log: {segment[0]}: record", True),
            ("the last segment is gone", drop(segment[-1]), "the archive has the records", True),
            ("the first segment is gone", drop(segment[0]), "the archive has the records", True),
            ("a middle segment is gone", drop(segment[2]), f"log: {segment[3]}: record", True),
            ("a sample is another", another_sample, "is not the record of that number", True),
            ("a sample was chosen", a_nicer_sample, "its samples are not those that the seed chooses", True),
            ("a sample is gone", drop(f"samples/{unseeded[0]}.record"), "its record is missing", True),
            ("a proof is broken", edit(f"samples/{unseeded[1]}.proof", b"index ", b"index 1"), "no proof of this record", True),
            ("a sample more", put("samples/7777.record", b"x"), "is a sample of nothing", True),
            ("a rule is changed", edit("rules/in-force/000-agent.lua", b"container.run", b"container.copy"),
             "rules/in-force/000-agent.lua: is not the source of the profile agent", True),
            ("a standard check is changed", edit("rules/prelude/images.lua", b"--", b"- -"), "is not the source of", True),
            ("rules in force are others", edit("summary.json", b"commit c0ffee", b"commit c0ffeX"),
             "the rules in force are not those that the records name", True),
            ("a number is nicer", edit("summary.json", b'"unexplained":1', b'"unexplained":0'), "period.unexplained is 0", True),
            ("a count is nicer", edit("summary.json", b'"count":', b'"count":1'), "it counts 1", True),
            ("a period is longer", edit("summary.json", b'"to":"2027', b'"to":"2025'), "period.records", True),
            ("another's checkpoint", put("checkpoint", (outsider.folder / "checkpoint").read_bytes()), "WRONG checkpoint:", True),
            ("another's anchor", put("anchor", (outsider.folder / "checkpoint").read_bytes()), "WRONG anchor:", True),
            ("a summary too deep", put("summary.json", b"[" * 100000), "cannot be read", True),
            ("a name that leads out", put("../../etc/cron.d/x", b"x"), "/../../etc/cron.d/x: is no name that an archive has", True),
            ("a line without an end", put(segment[0], b"x" * (3 << 20)), "it has a line of more than 65535 bytes", True),
            ("another key", put("keys/checkpoint.vkey", text_key(outsider.key).encode()), "it is not the key that signs", True)):
        place.expect(label, forge(place, archive, change, sums), pattern)
    outside = place.dir / "outside.tar"
    data = b"".join(header("/etc", inner, len(data)) + data + bytes(-len(data) % 512)
                    for inner, (_, _, data) in members(archive).items())
    outside.write_bytes(data + bytes(1024 + -(len(data) + 1024) % 10240))
    place.expect("a folder that leads out", outside, "/etc/README.txt: is no name that an archive has")
    title = forge(place, archive, edit("summary.json", b'"framework_title":"', b'"framework_title":"\\u001b[8m\\u202e\\n'))
    said = place.expect("a title that hides what follows", title, None)
    want("it is shown", (False, True), ("\x1b" in said, "of \\x1b[8m\\u202e\\n" in said))
    sums = hashlib.sha256(members(archive)["SHA256SUMS"][2]).hexdigest()
    page = forge(place, archive, edit("completeness.txt", b"torn", b"worn"))
    place.expect("a page, with sums made anew", page, None)
    place.expect("the hash that was printed tells", page, "SHA256SUMS: is not the one that --sums names", "--sums", sums)
    place.expect("the true one has it", archive, None, "--sums", sums)
    place.expect("a key that was given", archive, "not signed by the key that was given", "--key", text_key(outsider.key))
    status, said = place.verify(archive, "--key", place.dir / "absent.vkey")
    want("a key that is in no file", (2, True), (status, "--key names no key" in said))
    receipt = f"{ORIGIN};50;{json.loads(log.lines[50])['h']}"
    place.expect("a receipt", archive, None, "--receipt", receipt)
    place.expect("a receipt of another", archive, "record 50 is another", "--receipt", receipt.replace(";50;", ";50;0")[:-1])
    place.expect("a receipt beyond", archive, "is not in this archive", "--receipt", receipt.replace(";50;", ";50000;"))


def a_log_written_anew_needs_an_anchor(place):
    """Root has the key: all is signed, and only what was kept elsewhere tells."""
    anew = Log(place.dir / "anew", seed=1)
    anew.work(90)
    archive = place.make(anew.end().folder)
    said = place.expect("nothing tells", archive, None)
    want("it says so", True, "none: root on the host could have written anew all" in said)
    kept = place.dir / "kept"
    other = Log(place.dir / "true", seed=1)
    other.write({"type": "worker_lost", "text": "this was the truth"})
    other.work(60)
    kept.write_text("".join(other.notes.values()))
    want("the sizes meet", True, bool(set(other.notes) & set(anew.notes)))
    place.expect("the anchor tells", archive, "the log was written anew", "--anchor", kept)
    kept.write_text("".join(anew.notes.values()))
    place.expect("the true anchor agrees", archive, None, "--anchor", kept)
    # Cut at an older checkpoint, whose file was put back: the anchor knows of more.
    cut, size = place.dir / "cut", sorted(anew.notes)[-2]
    shutil.copytree(anew.folder, cut)
    lines = anew.lines[:size + 1]
    first = max(int(path.stem) for path in cut.glob("*.log") if int(path.stem) < len(lines))
    for path in cut.glob("*.log"):
        if int(path.stem) > first:
            path.unlink()
    (cut / f"{first:020d}.log").write_bytes(b"".join(line + b"\n" for line in lines[first:]))
    (cut / "checkpoint").write_text(anew.notes[size])
    said = place.expect("cut", place.make(cut), None, "--anchor", kept)
    want("a newer anchor is told of", True, f"its newest is of {anew.seq - 1} records" in said)
    said = place.make(cut, "--anchor", kept, status=1)
    want("the anchor's file tells", True, "the log is not whole" in said and "the log ends here" in said)


def the_same_gives_the_same(place, log):
    words = ("--config", place.dir / "config", "--seed", "my-own")
    one, two = place.make(*words).read_bytes(), place.make(*words).read_bytes()
    want("bytes", True, one == two)
    copied = place.dir / "copy of the log"
    shutil.copytree(log.folder, copied)
    three, four = place.make(log.folder), place.make(copied)
    want("wherever it lies", True, three.read_bytes() == four.read_bytes())
    want("another seed, other samples", True, set(members(three)) != set(members(place.make(log.folder, "--seed", "x"))))


def a_part_of_the_log_is_enough(place, log):
    """Segments of the middle: what is before and behind them is tied to the checkpoint."""
    first = [int(path.stem) for path in sorted(log.folder.glob("*.log"))]
    begin, end = first[2] + 20, first[3] + 20

    def names_of(*numbers):
        return [f"log/{first[n]:020d}.log" for n in numbers]
    for framework in ("pci", "soc2", "iso27001"):
        archive = place.make(log.folder, "--for", framework, "--anchor", place.dir / "anchor", begin=begin, end=end)
        names = sorted(name for name in members(archive) if name.startswith("log/"))
        want("segments", names_of(2, 3), names)
        said = place.expect(framework, archive, None, "--anchor", place.dir / "anchor")
        want("records", True, f"{end - begin} in the period" in said)
        want("the newer key", True, b"key_rotate" in members(archive)["keys/rotations"][2])
    place.expect("growth", forge(place, archive, edit("proofs/archive", b"\n", b"\nAAAA")), "has not grown from")
    place.expect("without the newer key", forge(place, archive, put("keys/rotations", b"")), "not signed by the log's key")
    place.expect("before", forge(place, archive, drop(names_of(2)[0])), "the archive has the records")
    # The neighbours come along where else nothing would show that there is no more.
    archive = place.make(log.folder, begin=first[3], end=first[4])
    want("neighbours", names_of(2, 3, 4),
         sorted(name for name in members(archive) if name.startswith("log/")))
    place.expect("edges", archive, None)


def signed_bundles_come_along(place, log):
    """As rules in force, and as rules of before."""
    bundle, config = place.dir / "rules.bundle", place.dir / "signed-config"
    _, out, _ = place.run("bundle", "key", "acme", "--out", place.dir / "acme.key")
    key = out.decode().split('keys = { "')[1].split('"')[0]
    status, _, said = place.run("bundle", "build", "--key", place.dir / "acme.key", "--out", bundle, "--commit", "c0ffee",
                                "--author", "ann", "--approver", "bob", "--ticket", "SEC-1", place.dir / "profiles")
    want(f"bundle build: {said}", 0, status)
    text = (place.dir / "config").read_text()
    config.write_text(text.replace(f'"{place.dir}/profiles"', f'"{bundle}"')
                      + f'\nrules {{ signed = true, keys = {{ "{key}" }} }}\n')
    archive = place.make("--config", config, "--rules", bundle)
    names = [name for name in members(archive) if name.startswith("rules/") and "prelude" not in name]
    want("files", ["rules/in-force/000-agent.lua", "rules/in-force/001-base.lua", "rules/bundles/000-rules.bundle",
                   "rules/bundles/001-rules.bundle", "rules/given/000-agent.lua", "rules/given/001-base.lua"], names)
    said = place.expect("signed", archive, None)
    want("who", True, "commit c0ffee, author ann, approver bob, ticket SEC-1" in said)
    for label, old, new in (("who approved", b"bob", b"eve"), ("a file", b"container.run", b"container.rum")):
        place.expect(label, forge(place, archive, edit(names[2], old, new)), f"WRONG {names[2]}: it")


def what_was_pruned_is_said(place, log):
    """The tiles are all there is of what was removed."""
    pruned = Log(place.dir / "pruned", tiled=True)
    pruned.work(150)
    firsts = [int(path.stem) for path in sorted(pruned.folder.glob("*.log"))]
    tree = check.Tree()
    for line in pruned.lines[:firsts[2]]:
        tree.add(bytes.fromhex(json.loads(line)["h"]))
    pruned.write({"type": "log_prune", "count": 2, "size": firsts[2], "root": tree.root().hex()})
    pruned.end()
    for first in firsts[:2]:
        (pruned.folder / f"{first:020d}.log").unlink()
    archive = place.make(pruned.folder, begin=-100)
    said = place.expect("pruned", archive, None)
    want("the verifier says it", True, f"records before {firsts[2]} were removed" in said)
    done = members(archive)["completeness.txt"][2].decode()
    want("the page says it", True, f"RECORDS ARE MISSING AT ITS BEGINNING: 0 to {firsts[2] - 1}" in done)
    # Its log_prune came later: for all that this archive shows, whoever had it may have left the records out.
    said = place.expect("no word of it", place.make(pruned.folder, begin=-100, end=firsts[3] - 5), None)
    want("it says so", True, f"records before {firsts[2]} are not here, and no record here says that the log" in said)
    # An anchor of what is not there any more is tied to the checkpoint all the same.
    old = sorted(pruned.notes)[1]
    (place.dir / "old-anchor").write_text(pruned.notes[old])
    archive = place.make(pruned.folder, "--anchor", place.dir / "old-anchor", begin=-100)
    want("growth", f"old {old}", members(archive)["proofs/anchor"][2].decode().split("\n")[0])
    place.expect("an old anchor", archive, None, "--anchor", place.dir / "old-anchor")
    sorted(pruned.folder.glob("*.log"))[0].unlink()
    want("unsaid", True, "no log_prune says so" in place.make(pruned.folder, status=1))


def memory_does_not_grow_with_the_log(place):
    """An archive of 11 MB of log, with 10 MiB of memory to write to; of any log it takes less than six."""
    if b"__asan_init" in Path(place.program).read_bytes():
        return  # the sanitizer needs more than the program
    long = Log(place.dir / "long", segment=5000, tiled=True)
    long.work(12000)
    long.end()
    want("long", True, sum(len(line) for line in long.lines) > 10 << 20)
    done = subprocess.run([place.program, "audit", "evidence", long.folder, "--for", "pci", "--from", minute(-100), "--to",
                           minute(10 ** 6), "-o", place.dir / "long.tar"], capture_output=True, check=False,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (10 << 20, 10 << 20)))
    want(f"within the limit: {done.stderr}", 0, done.returncode)


def a_key_is_not_followed_backwards(place, log):
    """Who has no key of the log lets one of his own announce it: its proof stands in every copy of the log."""
    true = next(json.loads(line) for line in log.lines if b'"type":"key_rotate"' in line)
    his = Log(place.dir / "his", seed=3)
    his.work(90)
    statement = f"{ORIGIN}\nkey rotation\n{true['key']}\n"
    announced = {"type": "key_rotate", "key": true["key"], "sig": his.sign(his.key, statement), "proof": true["proof"]}
    archive = place.make(his.end().folder)

    def announce(files):
        files["keys/rotations"] = json.dumps({"seq": his.seq + 9, **announced}).encode() + b"\n"
        files["keys/checkpoint.vkey"] = true["key"].encode() + b"\n"
    place.expect("another's records under the log's key", forge(place, archive, announce), "not signed by the log's key",
                 "--key", true["key"])
    folder = place.dir / "his with a rotation"
    shutil.copytree(his.folder, folder)
    his.path = folder / his.path.name
    his.path.write_bytes(his.path.read_bytes().rstrip(b"\0"))
    his.put(announced)
    want("it verifies by itself", 0, place.run("audit", "verify", folder)[0])
    status, said, _ = place.run("audit", "verify", folder, "--key", true["key"])
    want(f"audit verify: {said}", (1, True), (status, b"not signed by the key that was given" in said))
    for key in (true["key"], json.loads(log.lines[0])["key"]):
        want("the true log", 0, place.run("audit", "verify", log.folder, "--key", key)[0])


def mistakes_are_told(place, log):
    for words, status, text in (
            (("--for", "pcii"), 2, "--for takes pci, soc2 or iso27001, not 'pcii' (did you mean 'pci'?)"),
            (("--seed", "two words"), 2, "a seed is of printable letters"),
            (("--anchor", place.dir / "config"), 2, "the anchor: "),
            (("--anchor", place.dir / "outsider/checkpoint"), 1, "the log is not whole"),
            (("--rules", place.dir / "none"), 2, "none")):
        want(words, True, text in place.make(log.folder, *words, status=status))
    said = place.make(log.folder, begin=10 ** 5, end=10 ** 6, status=1, name="empty.tar")
    want("empty", True, "there is no record from" in said and "the log has records 0 to" in said)
    want("nothing stays", False, (place.dir / "empty.tar").exists())
    want("nothing is written over", True, "File exists" in place.make(log.folder, status=2, name="1.tar"))
    altered = place.dir / "altered"
    shutil.copytree(log.folder, altered)
    path = sorted(altered.glob("*.log"))[1]
    path.write_bytes(path.read_bytes().replace(b"agent-7", b"agent-8", 1))
    want("altered", True, "the log" in place.make(altered, status=1, name="altered.tar"))
    unsigned = place.dir / "unsigned"
    shutil.copytree(log.folder, unsigned)
    (unsigned / "checkpoint").unlink()
    want("unsigned", True, "has no checkpoint yet" in place.make(unsigned, status=2))
    want("no folder", 2, place.run("audit", "evidence", "--for", "pci", "--from", "7d")[0])
    want("no period", 2, place.run("audit", "evidence", "--for", "pci", log.folder)[0])
    want("not an archive", 1, place.verify(place.dir / "config")[0])
    want("nothing there", 2, place.verify(place.dir / "nothing")[0])


def main(program):
    with tempfile.TemporaryDirectory(prefix="sp-evidence-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        place = Place(program, folder)
        log = whole_log(place)
        archive = a_good_archive_is_found_good(place, log)
        any_flipped_byte_is_named(place, archive)
        forgeries_are_named(place, archive, log)
        a_log_written_anew_needs_an_anchor(place)
        a_key_is_not_followed_backwards(place, log)
        the_same_gives_the_same(place, log)
        a_part_of_the_log_is_enough(place, log)
        signed_bundles_come_along(place, log)
        what_was_pruned_is_said(place, log)
        memory_does_not_grow_with_the_log(place)
        mistakes_are_told(place, log)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
