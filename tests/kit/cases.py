"""Reads tests/cases/*.cases: a request, and what a correct gate says of it."""

import gzip
import io
import re
import shlex
import tarfile
from pathlib import Path

from kit.proc import Trouble

CREATE = "POST /v1.41/containers/create"
IMAGE = "reg.example/team/app:1"
METHOD = re.compile(r"^[A-Za-z]+ /|^[A-Z]+ \S+$|^POST http")
BYTE = re.compile(rb"\\x([0-9a-f]{2})")
VALUE = re.compile(r"\$\{(?:repeat (\d+) (.*?)|(\w+))\}")


def archive(lines):
    """@file NAME [MODE] with its lines, @folder NAME, @link and @hard NAME TARGET, @device and @pipe
    NAME; @gzip packs it all."""
    made, entries = io.BytesIO(), []
    for line in lines:
        if line.startswith("@"):
            entries.append((line[1:].split(), []))
        else:
            entries[-1][1].append(line + "\n")
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for (kind, *words), text in entries:
            if kind == "gzip":
                continue
            entry = tarfile.TarInfo(words[0])
            entry.type = {"file": tarfile.REGTYPE, "folder": tarfile.DIRTYPE, "link": tarfile.SYMTYPE,
                          "hard": tarfile.LNKTYPE, "device": tarfile.CHRTYPE,
                          "pipe": tarfile.FIFOTYPE}[kind]
            if kind == "file" and len(words) > 1:
                entry.mode = int(words[1], 8)
            elif len(words) > 1:
                entry.linkname = words[1]
            content = "".join(text).encode()
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    packed = any(words == ["gzip"] for words, _ in entries)
    return gzip.compress(made.getvalue()) if packed else made.getvalue()


class Case:
    def __init__(self, line, values):
        found = shlex.split(line)
        if len(found) != 4 or found[1] not in ("allow", "deny"):
            raise Trouble(f"cannot read the case: {line}")
        self.id, self.verdict, reasons, self.title = found
        self.reasons = set() if reasons == "-" else set(reasons.split("|"))
        self.lines, self.values = [], values

    def _fill(self, text):
        """${repeat N TEXT}, and ${NAME} of what the suite has."""
        def value(match):
            if match[1]:
                return match[2] * int(match[1])
            if match[3] not in self.values:
                raise Trouble(f"{self.id}: no value for {match[0]}")
            return str(self.values[match[3]])
        return VALUE.sub(value, text)

    @property
    def request(self):
        """The request's bytes, without anything that frames it left out."""
        lines = [self._fill(line) for line in self.lines]
        first = lines.pop(0) if lines and METHOD.match(lines[0]) else CREATE
        headers = []
        while lines and re.match(r"^[\w-]+: ", lines[0]):
            headers.append(lines.pop(0))
        body = "".join(lines)
        if first == CREATE and not self.lines[0].startswith("POST") and not re.search(
                r'"image"', body, re.I):
            body = body.replace("{", f'{{"Image":"{IMAGE}",', 1).replace(",}", "}", 1)
        body = BYTE.sub(lambda found: bytes.fromhex(found[1].decode()), body.encode("utf-8"))
        if lines and lines[0].startswith("@"):
            body = archive(lines)
            headers.append("Content-Type: application/x-tar")
        names = {header.partition(":")[0].lower() for header in headers}
        if "content-type: none" in map(str.lower, headers):
            headers.remove("Content-Type: none")
        elif body and "content-type" not in names:
            headers.append("Content-Type: application/json")
        if body or first.split()[0] in ("POST", "PUT", "post"):
            headers.append(f"Content-Length: {len(body)}")
        head = "\r\n".join([f"{first} HTTP/1.1", "Host: docker", *headers])
        return head.encode("utf-8") + b"\r\n\r\n" + body


def read(path, **values):
    """values: what ${NAME} stands for."""
    found = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.startswith("\t") and found:
            found[-1].lines.append(line[1:])
        elif line.strip() and not line.startswith("#"):
            found.append(Case(line, values))
    if len({case.id for case in found}) != len(found):
        raise Trouble(f"{path}: an id comes twice")
    return found


def verdict_problem(case, verdict, reasons):
    """What is wrong with an answer, or None."""
    if verdict != case.verdict:
        return f"{verdict} ({', '.join(reasons) or 'no reason'}), and should be {case.verdict}"
    if case.verdict == "deny" and not case.reasons & set(reasons):
        return f"denied for {', '.join(reasons)}, not for {' or '.join(sorted(case.reasons))}"
    return None
