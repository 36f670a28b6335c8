#!/usr/bin/env python3
"""check.py [--from FILE] [--key VKEY] [--receipt LOG;SEQ;HASH]... [--absent TEXT]... DIR - checks an audit log.

A second reader of audit/FORMAT.md, which shares no code with the gate: what it
and `sallyport audit verify` both find right was not made right by one mistake.
Needs Python's cryptography for Ed25519.

What is held against the log, by the names that the invariants of audit logs have here:
I1  what came out well was allowed by an earlier record
I2  each allowed decision has at most one outcome, a denied one none
I3  numbers without gaps
I4  receipts name records that are there
I5  the tree of every checkpoint is that of the records before it, and is signed
I6  texts that must not be there are not there
I7  while there was no room but the reserve nothing was allowed; with little room, only what ends something
I8  each line is one JSON object, with nothing raw in it
"""

import argparse
import base64
import hashlib
import json
import re
import sys
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

LINE_MAX = 65535
ZERO = "0" * 64
TYPES = {"log_open", "log_seal", "gate_start", "gate_stop", "gate_recover", "log_alarm", "policy_load",
         "policy_reject", "decision", "outcome", "outcome_unknown", "read", "malformed", "worker_lost",
         "checkpoint", "key_rotate", "clock_step", "log_read", "log_prune", "log_erase", "adopt", "rejudged", "admin",
         "observed", "observed_gap", "approval", "observed_sum", "suppressed", "sandbox"}
HEAD = re.compile(rb'\{"v":1,"log":"([A-Za-z0-9._/:+-]+)","seq":(0|[1-9]\d*),"ep":(0|[1-9]\d*),'
                  rb'"t":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z)","mono":(0|[1-9]\d*),"type":"([a-z_]+)"')
TAIL = re.compile(rb',"prev":"([0-9a-f]{64})","h":"([0-9a-f]{64})"\}')
ENDING = {"container.stop", "container.kill", "container.remove", "container.pause", "container.wait",
          "container.prune", "image.remove", "image.prune", "network.remove", "network.disconnect",
          "network.prune", "volume.remove", "volume.prune"}
RAW = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class Wrong(Exception):
    """What is wrong with a log, and where."""


def sha(data):
    return hashlib.sha256(data).digest()


def node(left, right):
    return sha(b"\x01" + left + right)


class Tree:
    """Full subtrees from left to right: pairs of size and root."""

    def __init__(self, edge=()):
        self.parts = list(edge)

    @classmethod
    def of_edge(cls, size, hashes):
        sizes = [1 << bit for bit in range(63, -1, -1) if size >> bit & 1]
        if len(sizes) != len(hashes):
            raise Wrong("the edge does not fit the number of records")
        return cls(zip(sizes, map(bytes.fromhex, hashes)))

    def add(self, leaf):
        size = 1
        while self.parts and self.parts[-1][0] == size:
            leaf, size = node(self.parts.pop()[1], leaf), size * 2
        self.parts.append((size, leaf))

    def size(self):
        return sum(size for size, _ in self.parts)

    def root(self):
        if not self.parts:
            return sha(b"")
        root = self.parts[-1][1]
        for _, left in reversed(self.parts[:-1]):
            root = node(left, root)
        return root

    def edge(self):
        return [root.hex() for _, root in self.parts]


class Key:
    """A public key as it stands in log_open: NAME+ID+base64(1, key)."""

    def __init__(self, text):
        self.text = text
        self.name, ident, data = text.split("+", 2)
        data = base64.b64decode(data, validate=True)
        if len(data) != 33 or data[0] != 1:
            raise Wrong(f"{text} is no Ed25519 key")
        self.id = sha(self.name.encode() + b"\n" + data)[:4]
        if self.id.hex() != ident:
            raise Wrong(f"{text} does not have its own id")
        self.key = Ed25519PublicKey.from_public_bytes(data[1:])

    def signed(self, text, signature):
        data = base64.b64decode(signature, validate=True)
        if data[:4] != self.id:
            return False
        try:
            self.key.verify(data[4:], text.encode())
        except InvalidSignature:
            return False
        return True


class Note:
    """A signed checkpoint."""

    def __init__(self, origin, size, root, signatures):
        self.origin, self.size, self.root, self.signatures = origin, size, root, signatures

    @staticmethod
    def text_of(origin, size, root):
        return f"{origin}\n{size}\n{base64.b64encode(root).decode()}\n"

    def signed_by(self, key):
        text = self.text_of(self.origin, self.size, self.root)
        return any(name == key.name and key.signed(text, signature)
                   for name, signature in self.signatures)

    @classmethod
    def all_in(cls, text):
        """The notes of a file, one behind the other."""
        found = []
        while text:
            match = re.match(r"([^\n]+)\n(\d+)\n([^\n]+)\n\n((?:— [^\n]+ [^\n]+\n)+)", text)
            if not match:
                raise Wrong(f"no checkpoint: {text[:60]!r}")
            signatures = [line[2:].split(" ") for line in match[4].splitlines()]
            found.append(cls(match[1], int(match[2]), base64.b64decode(match[3]), signatures))
            text = text[match.end():]
        return found


def pairs_once(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Wrong("a member comes twice")
    return members


class Checker:
    def __init__(self, folder, notes=(), receipts=(), absent=()):
        self.folder, self.absent = Path(folder), [text.encode() for text in absent]
        self.notes, self.receipts = list(notes), {int(r.split(";")[1]): r for r in receipts}
        self.tree, self.keys, self.tile = Tree(), [], []
        self.seq, self.prev, self.epoch, self.mono = 0, ZERO, 0, 0
        self.log, self.last, self.segment_first = None, None, 0
        self.open, self.known, self.orphans = {}, set(), 0
        self.pruned_to, self.first_edge, self.first_seq = 0, None, 0
        self.records, self.stopped, self.counts = 0, False, {}
        self.low = self.full = False

    def want(self, good, why):
        if not good:
            raise Wrong(why)

    # --- one line ---

    def line(self, raw):
        self.want(len(raw) <= LINE_MAX, "longer than a line may be")
        head, tail = HEAD.match(raw), TAIL.fullmatch(raw[-146:])
        self.want(head and tail, "not the form of a line")
        leaf = sha(b"\0" + raw[:-72])
        self.want(leaf.hex().encode() == tail[2], "its hash is another")
        text = raw.decode()
        self.want(not RAW.search(text), "I8: raw control characters")
        for absent in self.absent:
            self.want(absent not in raw, f"I6: it holds {absent!r}")
        record = json.loads(text, object_pairs_hook=pairs_once, parse_float=float)
        self.want(list(record)[-2:] == ["prev", "h"], "prev and h are not last")
        self.place(record)
        self.by_type(record)
        if self.receipts.get(self.seq):
            self.want(self.receipts[self.seq] == f"{self.log};{self.seq};{record['h']}",
                      "I4: not the record of the receipt")
        self.take(record, leaf)

    def place(self, record):
        if self.records == 0:
            self.log = record["log"]
            if self.seq:
                self.prev, self.epoch = record["prev"], record["ep"]
        self.want(record["log"] == self.log, "of another log")
        self.want(record["seq"] == self.seq, f"I3: it has the number {record['seq']}")
        self.want(record["prev"] == self.prev, "it does not follow the record before")
        self.want(record["type"] in TYPES, f"unknown type {record['type']}")
        first = self.seq == self.segment_first
        self.want(first == (record["type"] == "log_open"), "log_open begins a segment, and nothing else")
        self.want(first or self.last != "log_seal", "behind log_seal")
        if record["ep"] == self.epoch:
            self.want(record["mono"] >= self.mono, "before the record before")
            self.want(not self.stopped, "behind gate_stop")
        else:
            self.want(record["ep"] == self.epoch + 1 and record["type"] in ("gate_start", "log_open"),
                      "an epoch that does not begin so")

    def by_type(self, record):
        handler = getattr(self, "on_" + record["type"], None)
        if handler:
            handler(record)
        self.stopped = record["type"] == "gate_stop"

    def take(self, record, leaf):
        for note in [note for note in self.notes if note.size == self.seq]:
            self.agree(note)
        self.tree.add(leaf)
        self.tile.append(leaf)
        if self.seq % 256 == 255:
            self.check_tile(self.seq // 256)
        self.seq, self.prev, self.epoch, self.mono = (self.seq + 1, record["h"], record["ep"],
                                                      record["mono"])
        self.last, self.records = record["type"], self.records + 1
        self.counts[self.last] = self.counts.get(self.last, 0) + 1

    # --- what types say ---

    def on_log_open(self, record):
        if self.records == 0 and self.seq:
            self.tree = Tree.of_edge(self.seq, record["edge"])
            self.first_edge, self.first_seq = self.tree.root(), self.seq
            self.orphans = record.get("open", 0)
        elif self.seq:
            self.want(record["edge"] == self.tree.edge(), "I5: another edge of the tree")
            self.want(record.get("head") == self.prev, "head is not the hash before")
        if "key" in record:
            self.want(not self.keys or self.keys[-1].text == record["key"], "another key")
            if not self.keys:
                self.keys.append(Key(record["key"]))
        else:
            self.want(not self.keys, "no key")

    def on_log_seal(self, record):
        self.want(record["count"] == self.seq - self.segment_first + 1, "it counts other records")
        self.want(record["root"] == self.tree.root().hex(), "I5: another root")

    def on_checkpoint(self, record):
        root = self.tree.root()
        self.want(record["size"] == self.seq and record["root"] == root.hex(), "I5: another tree")
        self.want(self.keys and record["key"] == self.keys[-1].id.hex(), "I5: another key")
        self.want(self.keys[-1].signed(Note.text_of(self.log, self.seq, root), record["sig"]),
                  "I5: not signed")

    def on_key_rotate(self, record):
        text, key = f"{self.log}\nkey rotation\n{record['key']}\n", Key(record["key"])
        self.want(self.keys[-1].signed(text, record["sig"]) and key.signed(text, record["proof"]),
                  "I5: the new key is not signed")
        self.keys.append(key)

    def on_log_prune(self, record):
        self.pruned_to = max(self.pruned_to, record["size"])
        if record["size"] == self.first_seq and self.first_edge:
            self.want(record["root"] == self.first_edge.hex(), "it pruned other records")

    def on_gate_start(self, _):
        self.low = self.full = False  # the alarm is told again if it still is so

    def on_log_alarm(self, record):
        if record.get("cause") == "space_low":
            self.low = "ended" not in record
        elif record.get("cause") == "space_reserve":
            self.full = "ended" not in record

    def on_decision(self, record):
        self.want(record.get("verdict") in ("allow", "deny", "ask"), "no verdict")
        self.want(record["id"] not in self.known, "I2: its id was there before")
        self.known.add(record["id"])
        if record["verdict"] == "allow":
            self.want(not self.full, "I7: allowed without room")
            self.want(not self.low or record.get("op") in ENDING, "I7: allowed with too little room")
            self.open[record["id"]] = record.get("op")

    def on_outcome(self, record):
        if record["of"] not in self.open and self.orphans:
            self.orphans -= 1
            return
        self.want(record["of"] in self.open, "I1, I2: an outcome of nothing that was allowed and is open")
        del self.open[record["of"]]

    on_outcome_unknown = on_outcome

    # --- the rest ---

    def agree(self, note):
        self.want(note.origin == self.log, f"a checkpoint of the log {note.origin}")
        self.want(note.root == self.tree.root(), "I5: the records before it are not those of a checkpoint")

    def check_tile(self, number):
        leaves, self.tile = self.tile[-256:], []
        digits = f"{number:0{-(-len(str(number)) // 3) * 3}d}"
        groups = [digits[i:i + 3] for i in range(0, len(digits), 3)]
        path = self.folder.joinpath("tile", "0", *[f"x{g}" for g in groups[:-1]], groups[-1])
        if len(leaves) == 256 and path.exists():
            self.want(path.read_bytes() == b"".join(leaves), f"{path.name} is not the tile of these records")

    def segment(self, path, newest):
        self.segment_first = int(path.stem)
        if self.records == 0:
            self.seq = self.segment_first
        self.want(self.segment_first == self.seq, f"I3: it begins with {self.segment_first}")
        body, zero, rest = path.read_bytes().partition(b"\0")
        self.want(newest or not zero, "zeros in a finished segment")
        if newest and body and not body.endswith(b"\n"):
            raise Wrong("the last line is not whole")
        self.want(not rest.strip(b"\0"), "something behind the last line")
        for raw in body.split(b"\n")[:-1]:
            self.line(raw)
        self.want(newest or self.last == "log_seal", "it does not end with log_seal")

    def check(self):
        """Raises Wrong; returns how many records there are of each type."""
        own = self.folder / "checkpoint"
        self.notes += Note.all_in(own.read_text()) if own.exists() else []
        paths = sorted(path for path in self.folder.glob("*.log") if re.fullmatch(r"\d{20}", path.stem))
        if not paths:
            raise Wrong(f"no segments in {self.folder}")
        for path in paths:
            try:
                self.segment(path, path == paths[-1])
            except (Wrong, ValueError, KeyError) as wrong:
                raise Wrong(f"{path.name}, record {self.seq}: {wrong!r}") from wrong
        self.finish()
        return self.counts

    def finish(self):
        for note in self.notes:
            if note.size == self.seq:
                self.agree(note)
            self.want(note.size <= self.seq, f"the log ends at {self.seq}, a checkpoint at {note.size}")
            self.want(any(note.signed_by(key) for key in self.keys), "I5: a checkpoint of another key")
        for seq in self.receipts:
            self.want(seq < self.seq, f"I4: the log ends before the receipt's record {seq}")
        self.want(self.pruned_to >= self.first_seq, "the first records are missing")


def check(folder, **more):
    return Checker(folder, **more).check()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="notes", type=Path)
    parser.add_argument("--key")
    parser.add_argument("--receipt", action="append", default=[])
    parser.add_argument("--absent", action="append", default=[])
    parser.add_argument("--closed", action="store_true", help="every allowed decision must have come to its end")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    notes = Note.all_in(options.notes.read_text()) if options.notes else []
    checker = Checker(options.folder, notes, options.receipt, options.absent)
    try:
        counts = checker.check()
        if options.key and options.key not in [key.text for key in checker.keys]:
            raise Wrong("not signed by that key")
        if options.closed and checker.open:
            raise Wrong(f"I2: {len(checker.open)} allowed decisions without an outcome")
    except Wrong as wrong:
        print(f"{options.folder}: {wrong}")
        return 1
    print(f"{options.folder}: {checker.records} records, {len(checker.open)} open; {counts}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
