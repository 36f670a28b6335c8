"""Reads a scene: what stands in the file, with nothing carried out yet."""

import re

from kit.proc import Trouble

TOKEN = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|(#.*$)|([^\s"]+))')
ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|.)")
LETTERS = {"r": "\r", "n": "\n", "t": "\t", "0": "\0", '"': '"', "\\": "\\"}


class Word(str):
    """A token; quoted ones are never keywords."""

    quoted = False


def _unescape(match):
    code = match[1]
    if code[0] == "x" and len(code) == 3:
        return chr(int(code[1:], 16))
    return LETTERS.get(code, "\\" + code)  # what is no escape is left alone, for regexes


def words(line):
    """The tokens of a line; "..." takes C escapes, # begins a comment."""
    found, at = [], 0
    while at < len(line) and line[at:].strip():
        match = TOKEN.match(line, at)
        if not match:
            raise Trouble(f"cannot read: {line[at:]}")
        at = match.end()
        if match[2] is not None:
            break
        word = Word(match[3] if match[1] is None else ESCAPE.sub(_unescape, match[1]))
        word.quoted = match[1] is not None
        found.append(word)
    return found


class Statement:
    def __init__(self, number, text):
        self.number, self.text = number, text
        self.payload = []

    def __str__(self):
        return f"line {self.number}: {self.text.strip()}"

    def message(self, values):
        """The payload as ([header lines], body or None): a blank line stands between."""
        lines = [fill(line, values) for line in self.payload]
        while lines and not lines[-1]:
            lines.pop()
        if "" not in lines:
            return lines, None
        cut = lines.index("")
        return lines[:cut], "\n".join(lines[cut + 1:])


class Block:
    def __init__(self, kind, name, options, number):
        self.kind, self.name, self.options, self.number = kind, name, options, number
        self.lines = []       # as they stand, without their first tab
        self.statements = []

    @property
    def text(self):
        return "\n".join(self.lines) + "\n"

    def read_statements(self):
        for offset, line in enumerate(self.lines):
            if line.startswith("\t") or (not line.strip() and self.statements):
                if not self.statements:
                    raise Trouble(f"line {self.number + 1 + offset}: belongs to no statement")
                self.statements[-1].payload.append(line[1:])
            elif line.strip() and not line.lstrip().startswith("#"):
                self.statements.append(Statement(self.number + 1 + offset, line))


def fill(text, values):
    """${name} -> its value."""
    def value(match):
        if match[1] not in values:
            raise Trouble(f"no value for ${{{match[1]}}}")
        return str(values[match[1]])
    return re.sub(r"\$\{([\w.]+)\}", value, text)


class Scene:
    """title, needs, and blocks in the order of the file."""

    VERBATIM = {"rules", "gate"}
    KINDS = VERBATIM | {"upstream", "client", "operator", "audit"}

    def __init__(self, path):
        self.path = path
        self.title, self.needs, self.covers, self.blocks = "", [], [], []
        block = None
        for number, line in enumerate(path.read_text(encoding="latin-1").splitlines(), 1):
            if block:
                if line == "}":
                    block = None
                else:
                    block.lines.append(line.removeprefix("\t"))
                continue
            found = words(line)
            if not found:
                continue
            if found[0] == "scene" and len(found) == 2:
                self.title = str(found[1])
            elif found[0] == "needs":
                self.needs += found[1:]
            elif found[0] == "covers":
                self.covers += map(str, found[1:])
            elif found[0] in self.KINDS and found[-1] == "{":
                rest = found[1:-1]
                name = rest.pop(0) if rest and "=" not in rest[0] else str(found[0])
                options = dict(word.split("=", 1) for word in rest)
                block = Block(str(found[0]), str(name), options, number)
                self.blocks.append(block)
            else:
                raise Trouble(f"{path.name}:{number}: cannot read: {line}")
        if block:
            raise Trouble(f"{path.name}: the block of line {block.number} does not end")
        if not self.title:
            raise Trouble(f"{path.name}: no scene \"...\"")
        self.covers += [block.options["case"] for block in self.of("client") if "case" in block.options]
        for block in self.blocks:
            if block.kind not in self.VERBATIM:
                block.read_statements()

    def of(self, kind):
        return [block for block in self.blocks if block.kind == kind]
