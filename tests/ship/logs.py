"""Logs as a gate writes them (audit/FORMAT.md), made quickly: lines, chain, segments, room in front."""

import hashlib
import json
import os
from datetime import datetime, timedelta, timezone
from pathlib import Path

ZERO = "0" * 64
ROOM = 65536  # bytes of zeros behind the last line of the newest segment
BEGIN = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)


class Log:
    """segment: records in one file, log_open and log_seal with them."""

    def __init__(self, folder, origin="gate.example/host7", segment=1000, number=0):
        self.folder, self.origin, self.segment = Path(folder), origin, segment
        self.folder.mkdir(exist_ok=True)
        self.seq, self.prev, self.lines, self.path, self.at = number, ZERO, [], None, 0
        self.open_segment()
        self.write({"type": "gate_start", "text": "sallyport of the tests"})

    def line(self, body):
        body = json.dumps(body, separators=(",", ":"), ensure_ascii=False)[1:-1]
        t = (BEGIN + timedelta(seconds=self.seq)).strftime("%Y-%m-%dT%H:%M:%S.123456789Z")
        text = (f'{{"v":1,"log":"{self.origin}","seq":{self.seq},"ep":1,"t":"{t}","mono":{self.seq + 1},'
                f'{body},"prev":"{self.prev}"').encode()
        self.prev = hashlib.sha256(b"\0" + text).hexdigest()
        self.seq += 1
        return text + f',"h":"{self.prev}"}}\n'.encode()

    def put(self, body):
        line = self.line(body)
        self.lines.append(line)
        with open(self.path, "r+b") as file:
            file.seek(self.at)
            file.write(line)
            self.at += len(line)
            if file.seek(0, os.SEEK_END) < self.at + 1:
                file.truncate(self.at + ROOM)

    def open_segment(self):
        self.first = self.seq
        self.path = self.folder / f"{self.seq:020d}.log"
        self.path.write_bytes(b"\0" * ROOM)
        self.at = 0
        self.put({"type": "log_open"})

    def write(self, body):
        if self.seq - self.first >= self.segment - 1:
            self.put({"type": "log_seal", "count": self.seq - self.first + 1})
            os.truncate(self.path, self.at)
            self.open_segment()
        self.put(body)

    def decide(self, count, verdict="allow", **more):
        """count decisions; each that is allowed with its outcome."""
        for _ in range(count):
            name = f"01900000-0000-7000-8000-{self.seq:012x}"
            body = {"type": "decision", "id": name, "listener": "agents",
                    "actor": {"identity": more.get("identity", "agent-7"), "owner": "team-a"},
                    "op": "container.create", "class": "launch",
                    "req": {"method": "POST", "path": "/containers/create"},
                    "res": [{"type": "image", "name": "python:3.12"}],
                    "pol": {"profile": "main", "rule": "privileges"}, "verdict": verdict}
            if verdict == "deny":
                body["reason"] = "privileged"
            if "exceptions" in more:
                body["exceptions"] = more["exceptions"]
            self.write(body)
            if verdict == "allow":
                self.write({"type": "outcome", "id": f"o-{self.seq}", "of": name, "op": "container.create",
                            "outcome": {"status": "ok", "http": 201}})

    def records(self):
        return [line[:-1] for line in self.lines]
