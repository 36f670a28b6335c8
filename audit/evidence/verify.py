#!/usr/bin/env python3
"""verify.py [--key KEY] [--sums HASH] [--anchor FILE] [--receipt LOG;SEQ;HASH]... [--every-signature] ARCHIVE

Checks an archive that `sallyport audit evidence` made: a tar file, or the folder that it was
unpacked to. Needs Python 3.8 and its standard library, no network and no gate.

--key               the log's public key (NAME+ID+KEY, or a file with it) as you were given it
--sums              the hash of SHA256SUMS, as it was printed when the archive was made
--anchor            a file of checkpoints that you kept elsewhere; the log must have grown from them
--receipt           a Sallyport-Audit reply header that a caller kept
--every-signature   of checkpoints on record, not only of the last in each segment (slow)

Exit status: 0 all is right, 1 something is wrong and named, 2 it cannot be read.
"""

import argparse
import base64
import binascii
import functools
import hashlib
import json
import os
import re
import sys

ZERO = "0" * 64
HEAD = re.compile(rb'\{"v":1,"log":"([A-Za-z0-9._/:+-]+)","seq":(0|[1-9]\d*),"ep":(0|[1-9]\d*),'
                  rb'"t":"([^"\\]*)","mono":(0|[1-9]\d*),"type":"([a-z_]+)"')
TAIL = re.compile(rb',"prev":"([0-9a-f]{64})","h":"([0-9a-f]{64})"\}')
SEGMENT = re.compile(r"log/(\d{20})\.log")
DASH = "\u2014 "
SUMS = "SHA256SUMS"
PART = r"(?!\.{1,2}(?:/|$))[A-Za-z0-9._-]+"
FOLDER, NAME = re.compile(PART), re.compile(rf"{PART}(?:/{PART})*")
LINE_MAX = 65535
DEPTH_MAX = 32  # what is nested deeper is not read by the gate, so no control counts it


class Wrong(Exception):
    """What is wrong."""


class Unusable(Exception):
    """What was given beside the archive is of no use."""


def printable(text):
    """What a file says cannot move the cursor, hide a line or begin one of its own."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def sha(data):
    return hashlib.sha256(data).digest()


def unbase64(text):
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


# --- Ed25519 (RFC 8032), to verify only: nothing here is secret ---

P = 2 ** 255 - 19
ORDER = 2 ** 252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT_OF_MINUS_ONE = pow(2, (P - 1) // 4, P)


def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def times_both(a, p, b, q):
    """a times p, plus b times q."""
    table, result = (None, p, q, add(p, q)), (0, 1, 1, 0)
    for bit in range(255, -1, -1):
        result = add(result, result)
        which = (a >> bit & 1) + 2 * (b >> bit & 1)
        if which:
            result = add(result, table[which])
    return result


def point_of(data):
    """The point of 32 bytes, or None."""
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT_OF_MINUS_ONE % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


BASE = point_of((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


@functools.lru_cache(maxsize=4096)
def ed25519(key, text, signature):
    public, r = point_of(key), point_of(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if len(signature) != 64 or public is None or r is None or s >= ORDER:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + text).digest(), "little") % ORDER
    minus = (P - public[0], public[1], 1, P - public[3])  # r should be s * BASE - h * public
    got = times_both(s, BASE, h, minus)
    return (got[0] - r[0] * got[2]) % P == 0 and (got[1] - r[1] * got[2]) % P == 0


class Key:
    """NAME+ID+base64(1, key), as Go's sumdb/note writes it."""

    def __init__(self, text):
        parts = text.split("+", 2)
        data = unbase64(parts[2]) if len(parts) == 3 else b""
        if len(data) != 33 or data[0] != 1 or sha(parts[0].encode() + b"\n" + data)[:4].hex() != parts[1]:
            raise Wrong(f"{text!r} is no key")
        self.text, self.name, self.id, self.bytes = text, parts[0], data and parts[1], data[1:]

    def signed(self, text, signature):
        data = unbase64(signature)
        return data[:4].hex() == self.id and ed25519(self.bytes, text.encode(), data[4:])


class Note:
    """A checkpoint: origin, size, root, signatures."""

    FORM = re.compile(r"([^\n]+)\n(\d{1,19})\n([^\n]+)\n\n((?:" + DASH + r"[^\n ]+ [^\n]+\n)+)")

    def __init__(self, match):
        self.origin, self.size, self.root = match[1], int(match[2]), unbase64(match[3])
        self.text = match[0][:match.end(3) - match.start() + 1]
        self.signatures = [line[2:].split(" ") for line in match[4].splitlines()]

    @classmethod
    def read(cls, text, what):
        match = cls.FORM.fullmatch(text)
        if not match:
            raise Wrong(f"{what} is no checkpoint")
        return cls(match)

    @classmethod
    def read_all(cls, text, what):
        found, at = [], 0
        while at < len(text):
            match = cls.FORM.match(text, at)
            if not match:
                raise Wrong(f"{what} holds something that is no checkpoint, at byte {at}")
            found.append(cls(match))
            at = match.end()
        return found

    @staticmethod
    def text_of(origin, size, root):
        return f"{origin}\n{size}\n{base64.b64encode(root).decode()}\n"

    def signed_by(self, keys):
        return any(name == key.name and key.signed(self.text, signature)
                   for name, signature in self.signatures for key in keys)


# --- the tree (RFC 6962) ---

def node(left, right):
    return sha(b"\x01" + left + right)


class Tree:
    def __init__(self, size=0, edge=()):
        sizes = [1 << bit for bit in range(63, -1, -1) if size >> bit & 1]
        if len(sizes) != len(edge):
            raise Wrong("the edge does not fit the number of records")
        self.parts = list(zip(sizes, map(bytes.fromhex, edge)))

    def add(self, leaf):
        size = 1
        while self.parts and self.parts[-1][0] == size:
            leaf, size = node(self.parts.pop()[1], leaf), size * 2
        self.parts.append((size, leaf))

    def root(self):
        if not self.parts:
            return sha(b"")
        root = self.parts[-1][1]
        for _, left in reversed(self.parts[:-1]):
            root = node(left, root)
        return root

    def edge(self):
        return [root.hex() for _, root in self.parts]


def included(leaf, index, size, path, root):
    at, last = index, size - 1
    for other in path:
        if last == 0:
            return False
        if at & 1 or at == last:
            leaf = node(other, leaf)
            while at and not at & 1:
                at, last = at >> 1, last >> 1
        else:
            leaf = node(leaf, other)
        at, last = at >> 1, last >> 1
    return index < size and last == 0 and leaf == root


def grown(old, old_root, new, new_root, path):
    if old == new or old == 0:
        return not path and (old == 0 or old_root == new_root)
    path = [old_root, *path] if old & (old - 1) == 0 else path
    at, last = old - 1, new - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    if old > new or not path:
        return False
    first = second = path[0]
    for other in path[1:]:
        if last == 0:
            return False
        if at & 1 or at == last:
            first, second = node(other, first), node(other, second)
            while at and not at & 1:
                at, last = at >> 1, last >> 1
        else:
            second = node(second, other)
        at, last = at >> 1, last >> 1
    return last == 0 and first == old_root and second == new_root


# --- the archive ---

def tar_header(folder, name, size):
    """The one header that a file of this name and size has."""
    mode = 0o755 if name.endswith(".py") else 0o644
    head = bytearray(512)
    for at, text in ((0, name.encode()), (100, b"%07o" % mode), (108, b"0000000"), (116, b"0000000"),
                     (124, b"%011o" % size), (136, b"0" * 11), (148, b" " * 8), (156, b"0"), (257, b"ustar"),
                     (263, b"00"), (345, folder.encode())):
        head[at:at + len(text)] = text
    head[148:155] = b"%06o\0" % sum(head)
    return bytes(head)


class Archive:
    """Files by their names below the archive's one folder: a tar file, or a folder."""

    def __init__(self, path, complain):
        self.path, self.complain, self.places, self.file = path, complain, {}, None
        if os.path.isdir(path):
            self.walk("")
        else:
            self.file = open(path, "rb")
            self.read_tar()

    def walk(self, below):
        for name in sorted(os.listdir(os.path.join(self.path, below))):
            inner = f"{below}{name}"
            full = os.path.join(self.path, inner)
            if os.path.islink(full) or not (os.path.isdir(full) or os.path.isfile(full)):
                self.complain(inner, "is neither a file nor a folder")
            elif os.path.isdir(full):
                self.walk(inner + "/")
            else:
                self.places[inner] = (0, os.path.getsize(full))

    def read_tar(self):
        folder, at, end = None, 0, os.fstat(self.file.fileno()).st_size
        while True:
            self.file.seek(at)
            head = self.file.read(512)
            if len(head) < 512 or not head.strip(b"\0"):
                break
            name = head[:100].rstrip(b"\0").decode("ascii", "replace")
            prefix = head[345:500].rstrip(b"\0").decode("ascii", "replace")
            folder = prefix if folder is None else folder
            if not re.fullmatch(rb"[0-7]{11}\0", head[124:136]):
                raise Wrong(f"{name!r}: its header, at byte {at}, cannot be read: what follows is not checked")
            size = int(head[124:135], 8)
            if prefix != folder or head != tar_header(folder, name, size):
                self.complain(name, "its header in the tar file is not as it was written")
            if not FOLDER.fullmatch(folder) or not NAME.fullmatch(name):
                self.complain(f"{folder}/{name}", "is no name that an archive has: do not unpack it")
            if name in self.places:
                self.complain(name, "comes twice")
            self.places[name] = (at + 512, size)
            padding = -size % 512
            self.file.seek(at + 512 + size)
            if at + 512 + size + padding > end:
                raise Wrong(f"{name}: the archive ends within it")
            if self.file.read(padding).strip(b"\0"):
                self.complain(name, "something stands behind its end")
            at += 512 + size + padding
        self.file.seek(at)
        rest = self.file.read(20480)
        if rest.strip(b"\0") or len(rest) < 1024 or (at + len(rest)) % 10240 or self.file.read(1):
            self.complain(os.path.basename(self.path), "the archive's end is not as it was written")

    def pieces(self, name):
        at, left = self.places[name]
        file = self.file or open(os.path.join(self.path, name), "rb")
        try:
            while left:
                file.seek(at)
                piece = file.read(min(left, 1 << 20))
                if not piece:
                    return
                at, left = at + len(piece), left - len(piece)
                yield piece
        finally:
            if file is not self.file:
                file.close()

    def read(self, name):
        if name not in self.places:
            raise Wrong("is missing")
        return b"".join(self.pieces(name))

    def lines(self, name):
        rest = b""
        for piece in self.pieces(name):
            *whole, rest = (rest + piece).split(b"\n")
            yield from whole
            if len(rest) > LINE_MAX:
                raise Wrong(f"it has a line of more than {LINE_MAX} bytes")
        if rest:
            raise Wrong("its last line is not ended")


# --- controls ---

def too_deep(raw):
    if raw.count(b"{") + raw.count(b"[") <= DEPTH_MAX:
        return False
    deep = most = 0
    inside = escaped = False
    for c in raw:
        if inside:
            inside, escaped = escaped or c != 34, c == 92 and not escaped
        elif c == 34:
            inside = True
        elif c in b"{[":
            deep += 1
            most = max(most, deep)
        elif c in b"}]":
            deep -= 1
    return most > DEPTH_MAX


def value_of(record, key):
    if key == "status":
        outcome = record.get("outcome")
        return outcome.get("status", "") if isinstance(outcome, dict) else ""
    value = record.get(key, "")
    return value if isinstance(value, str) else ""


def matches(query, record):
    """Whether a record answers a query: see controls/ID.txt for its form."""
    for alternative in query.split(" | "):
        types, *words = alternative.split(" ")
        if record["type"] not in types.split(","):
            continue
        for word in words:
            key, value = word.split("=", 1)
            if key == "has":
                good = value in record
            elif value.endswith("*"):
                good = value_of(record, key).startswith(value[:-1])
            else:
                good = value_of(record, key) == value
            if not good:
                break
        else:
            return True
    return False


class Control:
    def __init__(self, row, seed, most):
        self.id, self.query, self.said, self.said_count = row["id"], row["query"], row["samples"], row["count"]
        self.prefix, self.most, self.count, self.best = f"{seed}\n{self.id}\n", most, 0, []

    def take(self, record):
        if not matches(self.query, record):
            return
        self.count += 1
        rank = sha((self.prefix + record["h"]).encode())
        if len(self.best) < self.most or rank < self.best[-1][0]:
            self.best = sorted([*self.best, (rank, record["seq"])])[:self.most]


# --- the log ---

class Log:
    """Reads the archived segments, line by line."""

    def __init__(self, check):
        self.check, self.summary, self.archive = check, check.summary, check.archive
        self.tree, self.keys, self.seq, self.prev = Tree(), [], 0, ZERO
        self.epoch = self.mono = self.segment_first = self.records = 0
        self.last_type, self.pending = None, None
        self.wanted_roots, self.roots = {}, {}
        self.first_time = self.last_time = None
        self.pruned = 0

    def want(self, good, why):
        if not good:
            raise Wrong(f"record {self.seq}: {why}")

    def read(self):
        names = sorted(name for name in self.archive.places if SEGMENT.fullmatch(name))
        if not names:
            raise Wrong("there are no segments")
        for name in names:
            self.segment_first = int(SEGMENT.fullmatch(name)[1])
            if name == names[0]:
                self.seq = self.segment_first
            try:
                self.want(self.segment_first == self.seq, f"the segment begins with {self.segment_first}")
                for raw in self.archive.lines(name):
                    self.line(raw)
                self.want(name == names[-1] or self.last_type == "log_seal", "the segment does not end with log_seal")
                self.signature()
            except (Wrong, KeyError, ValueError, TypeError, AttributeError) as wrong:
                raise Wrong(f"{name}: {wrong if isinstance(wrong, Wrong) else repr(wrong)}") from None
        self.note_root()

    def note_root(self):
        if self.seq in self.wanted_roots:
            self.roots[self.seq] = self.tree.root()

    def line(self, raw):
        head, tail = HEAD.match(raw), TAIL.fullmatch(raw[-146:])
        self.want(head and tail and len(raw) <= LINE_MAX, "it has not the form of a line")
        leaf = sha(b"\0" + raw[:-72])
        self.want(leaf.hex().encode() == tail[2], "it was altered: its hash is another")
        self.place(head, tail)
        kind, time = head[6].decode(), head[4].decode()
        self.note_root()
        if kind in ("log_open", "log_seal", "checkpoint", "key_rotate", "log_prune"):
            getattr(self, kind)(json.loads(raw))
        self.check.record(raw, self.seq, kind, time)
        self.first_time, self.last_time = self.first_time or time, time
        self.tree.add(leaf)
        self.prev, self.epoch, self.mono, self.last_type = tail[2].decode(), int(head[3]), int(head[5]), kind
        self.seq += 1
        self.records += 1

    def place(self, head, tail):
        if self.records == 0 and self.seq:
            self.prev, self.epoch = tail[1].decode(), int(head[3])
        self.want(int(head[2]) == self.seq, f"another number stands in its place: {int(head[2])}")
        self.want(tail[1].decode() == self.prev, "it does not follow the record before")
        self.want(head[1].decode() == self.summary["log"], "it is of another log")
        first, begins = self.seq == self.segment_first, head[6] == b"log_open"
        self.want(first == begins, "log_open begins a segment, and nothing else does")
        self.want(first or self.last_type != "log_seal", "it stands behind log_seal")
        epoch = int(head[3])
        self.want(epoch == self.epoch or (epoch == self.epoch + 1 and (begins or head[6] == b"gate_start")),
                  "its epoch does not follow")
        self.want(epoch != self.epoch or int(head[5]) >= self.mono, "its time is before that of the record before")

    def log_open(self, record):
        if self.records == 0 and self.seq:
            self.tree = Tree(self.seq, record["edge"])
            self.note_root()
        elif self.seq:
            self.want(record.get("edge") == self.tree.edge(), "it says another edge of the tree")
        self.want("key" in record, "it names no key")
        self.want(not self.keys or self.keys[-1].text == record["key"], "another key signs, and none said so")
        self.keys = self.keys or [Key(record["key"])]

    def log_seal(self, record):
        self.want(record["count"] == self.seq - self.segment_first + 1, "it counts other records")
        self.want(record["root"] == self.tree.root().hex(), "it says another root")

    def checkpoint(self, record):
        root = self.tree.root()
        self.want(record["size"] == self.seq and record["root"] == root.hex(), "it is not of the records before it")
        self.want(self.keys and record["key"] == self.keys[-1].id, "it is of another key")
        self.pending = (self.seq, Note.text_of(self.summary["log"], self.seq, root), record["sig"], self.keys[-1])
        if self.check.every_signature:
            self.signature()

    def signature(self):
        """Of the newest checkpoint on record; its tree is that of all before, whose roots were compared."""
        if self.pending:
            seq, text, signature, key = self.pending
            if not key.signed(text, signature):
                raise Wrong(f"record {seq}: the checkpoint is not signed by the log's key")
            self.check.signatures += 1
        self.pending = None

    def key_rotate(self, record):
        self.keys.append(rotate(self.summary["log"], self.keys[-1], record))

    def log_prune(self, record):
        root = self.roots.get(record["size"])
        self.want(root is None or root.hex() == record["root"], "it names another root")
        self.pruned = max(self.pruned, record["size"])


def rotate(log, key, record):
    text, new = f"{log}\nkey rotation\n{record['key']}\n", Key(record["key"])
    if not key.signed(text, record["sig"]) or not new.signed(text, record["proof"]):
        raise Wrong(f"record {record['seq']}: the new key is not signed by the one before")
    return new


# --- all of it ---

class Check:
    def __init__(self, options):
        self.options, self.every_signature, self.wrongs, self.notes = options, options.every_signature, [], []
        self.archive = Archive(options.archive, self.wrong)
        self.signatures, self.types, self.records, self.first, self.last = 0, {}, 0, None, None
        self.sums = dict.fromkeys(("torn_tails", "accepted_damage", "unclean_ends", "seen", "decided", "by_engine",
                                   "unexplained", "garbage", "behind_anchor"), 0)
        self.loads, self.before, self.sampled, self.receipts = {}, None, {}, {}
        self.summary, self.controls, self.log, self.head, self.anchor = {}, [], None, None, None

    def wrong(self, name, what):
        self.wrongs.append(f"{name}: {what}")

    def step(self, name, function, *arguments):
        """What is wrong there is noted, and the rest is checked nevertheless."""
        try:
            return function(*arguments)
        except (Wrong, KeyError, ValueError, TypeError, IndexError, AttributeError, RecursionError) as wrong:
            self.wrong(name, wrong if isinstance(wrong, Wrong) else f"cannot be read: {wrong!r}")
            return None

    def text(self, name):
        return self.archive.read(name).decode("utf-8")

    def run(self):
        self.step(SUMS, self.check_sums)
        self.summary = self.step("summary.json", self.read_summary)
        if self.summary is None:
            self.summary = {}
        else:
            self.step("summary.json", self.check_all)

    def check_all(self):
        self.head = self.step("checkpoint", lambda: Note.read(self.text("checkpoint"), "it"))
        if self.summary["anchor"]:
            self.anchor = self.step("anchor", lambda: Note.read(self.text("anchor"), "it"))
        outside = self.step("--anchor", self.read_outside) or []
        self.log = Log(self)
        self.log.wanted_roots = {note.size for note in [self.head, self.anchor, *outside] if note}
        self.log.wanted_roots.add(self.summary["archive"]["first"])
        for receipt in self.options.receipt:
            self.step("--receipt", self.take_receipt, receipt)
        self.step("log", self.log.read)
        if not any(wrong.startswith("log: ") for wrong in self.wrongs):
            self.step("checkpoint", self.check_head)
            self.step("anchor", self.check_anchor)
            self.step("--anchor", self.check_outside, outside)
            self.step("--receipt", self.check_receipts)
            self.step("keys/checkpoint.vkey", self.check_key)
            self.step("summary.json", self.check_numbers)
            self.check_controls()
            self.step("rules", self.check_rules)
        self.check_samples()

    # --- files ---

    def check_sums(self):
        listed = {}
        if self.options.sums and sha(self.archive.read(SUMS)).hex() != self.options.sums:
            self.wrong(SUMS, "is not the one that --sums names: the archive is not as it was made")
        for line in self.text(SUMS).splitlines():
            digest, name = line[:64], line[66:]
            if not re.fullmatch(r"[0-9a-f]{64}  [A-Za-z0-9._/-]+", line) or name in listed:
                raise Wrong(f"a line that is none: {line[:100]!r}")
            listed[name] = digest
        for name in sorted(set(self.archive.places) - set(listed) - {SUMS}):
            self.wrong(name, f"is in the archive, and {SUMS} does not list it")
        for name, digest in listed.items():
            if name not in self.archive.places:
                self.wrong(name, "is missing")
                continue
            got = hashlib.sha256()
            for piece in self.archive.pieces(name):
                got.update(piece)
            if got.hexdigest() != digest:
                self.wrong(name, f"was altered: its hash is not the one in {SUMS}")

    def read_summary(self):
        summary = json.loads(self.text("summary.json"))
        if summary["format"] != "sallyport-evidence 1":
            raise Wrong("it is of a form that this verifier does not know")
        self.controls = [Control(row, summary["seed"], summary["samples_each"]) for row in summary["controls"]]
        for name in self.archive.places:
            match = re.fullmatch(r"samples/(\d+)\.record", name)
            if match:
                self.sampled[int(match[1])] = self.archive.read(name)
        return summary

    # --- records ---

    def record(self, raw, seq, kind, time):
        if seq in self.sampled and self.sampled[seq] != raw + b"\n":
            self.wrong(f"samples/{seq}.record", "is not the record of that number")
        if seq in self.receipts and self.receipts[seq] != TAIL.fullmatch(raw[-146:])[2].decode():
            self.wrong("--receipt", f"record {seq} is another: the log was written anew, or it is of another log")
        inside = self.summary["from"] <= time < self.summary["to"]
        if not inside and (self.records or kind != "policy_load"):
            return
        record = json.loads(raw) if not too_deep(raw) else {"type": kind, "seq": seq, "h": raw[-66:-2].decode()}
        if not inside:
            self.before = record.get("text", "")
            return
        self.first, self.last = seq if self.first is None else self.first, seq
        self.records += 1
        self.types[kind] = self.types.get(kind, 0) + 1
        if not self.anchor or seq >= self.anchor.size:
            self.sums["behind_anchor"] += 1
        self.count(record)
        for control in self.controls:
            control.take(record)

    def count(self, record):
        if record["type"] == "gate_recover":
            kind = "torn_tails" if record.get("bytes") else "accepted_damage" if record.get("file") else "unclean_ends"
            self.sums[kind] += 1
        elif record["type"] == "observed_sum":
            for name in ("seen", "decided", "by_engine", "unexplained", "garbage"):
                self.sums[name] += record.get(name, 0)
        elif record["type"] == "policy_load":
            self.loads.setdefault(record.get("text", ""), record["seq"])

    # --- what is signed ---

    def all_keys(self):
        keys = list(self.log.keys)
        for line in self.text("keys/rotations").splitlines():
            record = json.loads(line)
            if record["seq"] < self.log.seq or record["type"] != "key_rotate":
                raise Wrong("keys/rotations holds something else than changes of the key behind the archive")
            keys.append(rotate(self.summary["log"], keys[-1], record))
        return keys

    def proof(self, name, index=None):
        text, gap, note = self.text(name).partition("\n\n")
        first, *hashes = text.split("\n")
        if index is not None:
            if first != "c2sp.org/tlog-proof@v1" or hashes.pop(0) != f"index {index}":
                raise Wrong("it is no proof of this record")
        if not gap or note != self.text("checkpoint"):
            raise Wrong("it is of another checkpoint")
        return first, [unbase64(one) for one in hashes if one]

    def follows(self, size, root, name):
        """Whether the checkpoint's tree has grown from one."""
        if size == self.head.size:
            if root != self.head.root:
                raise Wrong("the records are not those that the checkpoint was signed over")
            return
        first, path = self.proof(name)
        if first != f"old {size}" or not grown(size, root, self.head.size, self.head.root, path):
            raise Wrong(f"{name}: the checkpoint has not grown from these {size} records")

    def check_head(self):
        if not self.head:
            return
        said = self.summary["checkpoint"]
        if self.head.origin != self.summary["log"] or (self.head.size, self.head.root.hex()) != (said["size"], said["root"]):
            raise Wrong("it is not the one that summary.json names")
        # By the last key alone: a key that announces another says nothing of itself by that.
        if not self.head.signed_by(self.all_keys()[-1:]):
            raise Wrong("it is not signed by the log's key")
        if self.summary["archive"]["end"] != self.log.seq or self.summary["archive"]["first"] != self.log.seq - self.log.records:
            raise Wrong(f"the archive has the records {self.log.seq - self.log.records} to {self.log.seq - 1}, which is not what was put in")
        self.follows(self.log.seq, self.log.tree.root(), "proofs/archive")
        if not self.log.first_time < self.summary["from"] and self.log.seq > self.log.records:
            first = self.log.seq - self.log.records
            self.notes.append(f"records before {first} " + (
                "were removed from the log, as a log_prune record here says" if self.log.pruned >= first else
                "are not here, and no record here says that the log removed them: who made this archive, or had it "
                "since, may have left them out") + "; some may be of the period")
        if self.log.last_time < self.summary["to"] and self.log.seq < self.head.size:
            raise Wrong("the log goes on in the period, and these records are not here")

    def check_anchor(self):
        if not self.summary["anchor"] or not self.anchor or not self.head:
            return
        if self.anchor.origin != self.summary["log"] or self.anchor.size != self.summary["anchor"]["size"]:
            raise Wrong("it is not the one that summary.json names")
        if not self.anchor.signed_by(self.all_keys()) and self.log.seq - self.log.records < self.anchor.size:
            raise Wrong("it is not signed by the log's key")
        self.agree(self.anchor, "proofs/anchor")

    def agree(self, note, name):
        if note.size in self.log.roots and self.log.roots[note.size] != note.root:
            raise Wrong(f"the records are not those of the checkpoint of {note.size}: the log was written anew")
        if note.size == self.head.size and note.root != self.head.root:
            raise Wrong(f"there are two checkpoints of {note.size} records: the log was forked")
        if name:
            self.follows(note.size, note.root, name)

    def read_outside(self):
        if not self.options.anchor:
            return []
        with open(self.options.anchor, encoding="utf-8") as file:
            return Note.read_all(file.read(), self.options.anchor)

    def check_outside(self, outside):
        compared = 0
        for note in outside:
            known = note.size in self.log.roots or (self.head and note.size == self.head.size)
            if note.origin != self.summary["log"]:
                raise Wrong(f"it is of the log {note.origin}")
            if not known and not (self.anchor and note.size == self.anchor.size):
                continue
            if not note.signed_by(self.all_keys()):
                raise Wrong(f"its checkpoint of {note.size} records is not signed by the log's key")
            self.agree(note, None)
            if self.anchor and note.size == self.anchor.size and note.root != self.anchor.root:
                raise Wrong(f"there are two checkpoints of {note.size} records: the log was forked")
            compared += 1
        if self.options.anchor:
            self.notes.append(f"{compared} of {len(outside)} checkpoints of {self.options.anchor} are of trees that "
                              "this archive shows, and agree")
            beyond = max((note.size for note in outside), default=0)
            if self.head and beyond > self.head.size:
                self.notes.append(f"its newest is of {beyond} records, and this archive's of {self.head.size}: it was taken "
                                  "later, or the log was cut before the archive was made")
            if not compared:
                raise Wrong("none of its checkpoints is of a tree that this archive shows")

    def take_receipt(self, receipt):
        parts = receipt.strip().split(";")
        if len(parts) != 3 or parts[0] != self.summary["log"]:
            raise Wrong(f"{receipt!r} is none of this log")
        self.receipts[int(parts[1])] = parts[2]

    def check_receipts(self):
        for seq in self.receipts:
            if not self.log.seq - self.log.records <= seq < self.log.seq:
                raise Wrong(f"record {seq} is not in this archive")

    def check_key(self):
        said = Key(self.text("keys/checkpoint.vkey").strip()).text
        given = self.options.key
        if given and "+" not in given:
            try:
                with open(given, encoding="utf-8") as file:
                    given = file.readline().strip()
            except (OSError, UnicodeDecodeError) as trouble:
                raise Unusable(f"--key names no key (NAME+ID+KEY) and no file with one: {trouble}") from None
        known = [key.text for key in self.all_keys()]
        if said != known[-1]:
            raise Wrong("it is not the key that signs")
        if given and given not in known:
            raise Wrong("the log is not signed by the key that was given")
        if not given:
            self.notes.append("no --key was given: compare the key above with the one that you were given elsewhere")
        if not self.options.sums:
            self.notes.append("no --sums was given: pages of text, and which controls are asked by which queries, may have "
                              "been written anew; the records were not")
        if not self.options.anchor:
            self.notes.append("no --anchor was given: the anchor in the archive is what the host said of it")

    # --- numbers, samples, rules ---

    def check_numbers(self):
        period = self.summary["period"]
        got = {"records": self.records, "first": self.first, "last": self.last, "types": self.types, **self.sums}
        for name, value in got.items():
            if period.get(name) != value:
                self.wrong("summary.json", f"period.{name} is {period.get(name)}, and the records say {value}")
        loads = [[row["seq"], row["text"]] for row in self.summary["loads"] if not row["before"]]
        if loads != [[seq, text] for text, seq in self.loads.items()][:len(loads)] or (
                len(loads) < min(256 - 1, len(self.loads))):
            self.wrong("summary.json", "the rules in force are not those that the records name")
        before = [row["text"] for row in self.summary["loads"] if row["before"]]
        if self.before is not None and before != [self.before]:
            self.wrong("summary.json", "the rules in force when the period began are not those that a record names")
        if self.before is None and before:
            self.notes.append("the record of the rules that were in force when the period began is before this archive")

    def check_controls(self):
        for control in self.controls:
            name = f"controls/{control.id}.txt"
            if control.count != control.said_count:
                self.wrong(name, f"it counts {control.said_count} records, and there are {control.count}")
            if [seq for _, seq in control.best] != control.said:
                self.wrong(name, "its samples are not those that the seed chooses")

    def check_samples(self):
        chosen = {seq for control in self.controls for seq in control.said}
        for seq in sorted(set(self.sampled) - chosen):
            self.wrong(f"samples/{seq}.record", "is a sample of nothing")
        for name in self.archive.places:
            match = re.fullmatch(r"samples/(\d+)\.proof", name)
            if name.startswith("samples/") and name not in {f"samples/{seq}.record" for seq in chosen} and not (
                    match and int(match[1]) in chosen):
                self.wrong(name, "is a sample of nothing")
        for seq in sorted(chosen):
            self.step(f"samples/{seq}.proof", self.check_sample, seq)

    def check_sample(self, seq):
        line = self.sampled.get(seq)
        if line is None:
            raise Wrong("its record is missing")
        head = HEAD.match(line)
        if not head or int(head[2]) != seq or not line.endswith(b"}\n"):
            raise Wrong("the record beside it is another")
        _, path = self.proof(f"samples/{seq}.proof", seq)
        if not self.head or not included(sha(b"\0" + line[:-73]), seq, self.head.size, path, self.head.root):
            raise Wrong("the record is not in the checkpoint")

    def check_rules(self):
        rules, known = self.summary["rules"] or {"prelude": [], "profiles": []}, {}
        start = sha(b"")
        for name in rules["prelude"]:
            start = sha(start + sha(name[len("rules/"):].encode() + self.archive.read(name)))
        for profile in rules["profiles"]:
            h = start
            for name in profile["files"]:
                h = sha(h + sha(self.archive.read(name)))
            h = sha(h + profile["name"].encode()).hex()
            if h != profile["sha256"]:
                self.wrong(profile["files"][-1], f"is not the source of the profile {profile['name']} with the hash "
                           f"{profile['sha256'][:12]}")
            known[(profile["name"], h[:12])] = True
        for name in rules.get("bundles", []):
            self.step(name, self.check_bundle, self.archive.read(name), [Key(key) for key in rules["keys"]])
        self.missing, self.named = [], 0
        for row in self.summary["loads"]:
            match = re.search(r"; profiles((?: [^ ;]+)*)", row["text"])
            for word in match[1].split() if match else []:
                self.named += 1
                if tuple(word.rsplit(":", 1)) not in known and word not in self.missing:
                    self.missing.append(word)

    def check_bundle(self, data, keys):
        """A signed bundle of rules: see rules.txt for what its manifest says."""
        text, _, rest = data.decode("utf-8").partition("\n\n")
        signatures, _, files = rest.partition("\n\n")
        rows = [line[2:].split(" ") for line in signatures.split("\n") if line.startswith(DASH)]
        if not any(name == key.name and key.signed(text + "\n", signature) for name, signature in rows for key in keys):
            raise Wrong("it is not signed by a key that the configuration trusts")
        head, manifest = text.split("\n")
        left = files.encode()
        for row in json.loads(manifest)["files"]:
            if sha(left[:row["bytes"]]).hex() != row["sha256"]:
                raise Wrong(f"its file {row['name']} is not the one that was signed")
            left = left[row["bytes"]:]
        if left or head != "sallyport-rules 1":
            raise Wrong("it is no bundle of rules")
        said = json.loads(manifest)
        self.notes.append("bundle " + ", ".join(f"{key} {said[key]}" for key in ("name", "made", "commit", "author",
                                                                                 "approver", "ticket") if said.get(key)))

    # --- what is said ---

    def say(self):
        if self.log and self.log.records and self.log.keys:
            rows = [
                ("log", self.summary["log"]),
                ("period", f"{self.summary['from']} to {self.summary['to']}"),
                ("records", f"{self.records} in the period; the archive has {self.log.seq - self.log.records} to "
                 f"{self.log.seq - 1}, and {self.signatures} signatures of checkpoints on record were checked"),
                ("signed", f"{self.head.size} records by {self.log.keys[-1].text}" if self.head else "nobody"),
                ("anchor", f"{self.anchor.size} records; {self.sums['behind_anchor']} records of the period are behind it"
                 if self.anchor else f"none: root on the host could have written anew all {self.records} records"),
                ("observed", "{seen} seen, {decided} decided, {by_engine} the engine's own, {unexplained} unexplained".format(
                    **self.sums)),
                ("controls", f"{len(self.controls)} of {self.summary.get('framework_title')}, {len(self.sampled)} records "
                 f"sampled by the seed {self.summary['seed']}"),
                ("rules", "no source of " + ", ".join(self.missing) if getattr(self, "missing", None) else
                 "the source of each profile that was in force is here" if getattr(self, "named", 0) else
                 "no record says which were in force")]
            for name, text in rows:
                print(f"  {name:<10} {printable(text)}")
        for note in self.notes:
            print(f"  note       {printable(note)}")
        for wrong in self.wrongs[:100]:
            print(f"WRONG {printable(wrong)}")
        if len(self.wrongs) > 100:
            print(f"WRONG and {len(self.wrongs) - 100} more")
        if not self.wrongs:
            print("All that can be checked from these files is right. What cannot: cannot-exclude.txt")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--key")
    parser.add_argument("--sums")
    parser.add_argument("--anchor")
    parser.add_argument("--receipt", action="append", default=[])
    parser.add_argument("--every-signature", action="store_true")
    parser.add_argument("archive")
    options = parser.parse_args(arguments)
    print(options.archive)
    try:
        check = Check(options)
        check.run()
    except Wrong as wrong:
        print(f"WRONG {printable(str(wrong))}")
        return 1
    except Unusable as trouble:
        print(trouble)
        return 2
    except OSError as error:
        print(f"it cannot be read: {error}")
        return 2
    check.say()
    return 1 if check.wrongs else 0


if __name__ == "__main__":
    sys.exit(main())
