"""The log that a gate left behind, checked by code that shares nothing with the gate's.

The members and their order come from audit/record.def, reason codes from rules/reasons.def (those of the
admin socket from gate/admin_answers.def);
hashes are computed anew.
"""

import hashlib
import json
import re

from kit.proc import ROOT, Trouble

FRAME = ("v", "log", "seq", "ep", "t", "mono")
ZERO = "0" * 64
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
ENTRY = re.compile(r'^(STR|UINT|NUM_IF|JSON|TRUE|BEGIN|LIST|ONE|END|END_LIST)\((?:"(\w+)")?', re.M)
WORDS = {"verdict": {"allow", "deny", "ask"}, "would": {"allow", "deny", "ask"},
         "outcome.status": {"ok", "fail", "aborted", "denied", "unknown", "report", "stop"}, "outcome.client": {"gone"}}


def schema():
    """[(name, kind, members)] in their order, of audit/record.def."""
    stack = [[]]
    for kind, name in ENTRY.findall((ROOT / "audit/record.def").read_text(encoding="utf-8")):
        if kind in ("END", "END_LIST"):
            stack.pop()
            continue
        members = []
        stack[-1].append((name, kind, members))
        if kind in ("BEGIN", "LIST"):
            stack.append(members)
    return stack[0]


def reasons():
    text = (ROOT / "rules/reasons.def").read_text(encoding="utf-8")
    return re.findall(r"^REASON\((\w+),", text, re.M)


def sandbox_codes():
    """Refusals that the sandbox API makes by itself."""
    text = (ROOT / "proxy/sandbox/codes.def").read_text(encoding="utf-8")
    return re.findall(r"^CODE\((\w+),", text, re.M)


def admin_answers():
    """Why something that was asked over the admin socket was not done."""
    text = (ROOT / "gate/admin_answers.def").read_text(encoding="utf-8")
    return re.findall(r"^ADMIN_ANSWER\((\w+),", text, re.M)


SCHEMA, REASONS, ADMIN = schema(), set(reasons()), set(admin_answers())
SANDBOX = set(sandbox_codes())


def lines(folder):
    """The lines of all segments, as bytes, without the room that is kept behind the newest."""
    for path in sorted(folder.glob("*.log")):
        rest = b""
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                *whole, rest = (rest + block).split(b"\n")
                yield from whole
                if block.endswith(b"\0"):
                    break
        if rest.strip(b"\0"):
            yield rest


def _member(name, kind, members, value, where):
    if kind == "STR":
        good = isinstance(value, str) and value
    elif kind in ("UINT", "NUM_IF"):
        good = type(value) is int and (value > 0 or kind == "NUM_IF")
    elif kind == "TRUE":
        good = value is True
    elif kind == "ONE":
        good = isinstance(value, list) and len(value) == 1 and isinstance(value[0], str)
    elif kind == "JSON":
        good = value not in (None, "", [], {})
    else:
        inner = value[0] if kind == "LIST" and isinstance(value, list) and len(value) == 1 else value
        return _members(members, inner, where)
    if not good or where in WORDS and value not in WORDS[where]:
        return f"{where} is {json.dumps(value)[:200]}"
    return None


def _members(schema_, found, where=""):
    if not isinstance(found, dict) or not found:
        return f"{where or 'the record'} is no object, or an empty one"
    order = [name for name, _, _ in schema_ if name in found]
    if list(found) != order:
        return f"{where or 'the record'} has {list(found)}, and should have {order}"
    for name, kind, members in schema_:
        if name in found:
            problem = _member(name, kind, members, found[name], f"{where}.{name}".lstrip("."))
            if problem:
                return problem
    return None


def _codes(record):
    """Reason codes that a record names."""
    codes = {record["reason"]} if "reason" in record else set()
    for list_ in ("violations", "warnings"):
        codes |= {one["reason"] for one in record.get(list_, []) if "reason" in one}
    return codes


def _known(kind):
    return {"admin": ADMIN, "sandbox": REASONS | SANDBOX}.get(kind, REASONS)


def check(line, seq, prev):
    """(record, its hash, what is wrong or None) of one line."""
    try:
        record = json.loads(line.decode("utf-8"))
    except ValueError as error:
        return None, prev, f"is no JSON: {error}"
    digest = hashlib.sha256(b"\0" + line[:-72]).hexdigest()
    inner = {key: value for key, value in record.items() if key not in (*FRAME, "prev", "h")}
    keys = list(record)
    problem = None
    if tuple(keys[:6]) != FRAME or keys[-2:] != ["prev", "h"]:
        problem = f"its frame is {keys[:6]}, {keys[-2:]}"
    elif record["seq"] != seq or record["v"] != 1:
        problem = f"its number is {record['seq']}, not {seq}"
    elif record["prev"] != prev or record["h"] != digest:
        problem = "its hash is not what its bytes and the record before give"
    elif not TIME.fullmatch(record["t"]) or not UUID.fullmatch(record.get("id", "")):
        problem = f"time or id: {record['t']}, {record.get('id')}"
    elif _codes(record) - _known(record["type"]):
        problem = f"it names {_codes(record)}, of which not all are on the list of reasons"
    return record, digest, problem or _members(SCHEMA, inner)


def check_log(folder):
    """Raises on the first record that is not as it must be; the reason codes that were met."""
    seq, prev, met = 0, ZERO, set()
    for line in lines(folder):
        if prev == ZERO and b',"type":"log_open",' in line and b',"edge":[' in line:
            seq, prev = (json.loads(line)[key] for key in ("seq", "prev"))  # what was before is pruned
        record, prev, problem = check(line, seq, prev)
        if problem:
            raise Trouble(f"record {seq} of {folder}: {problem}\n{line[:2000]!r}")
        met |= _codes(record) & REASONS
        seq += 1
    if not seq:
        raise Trouble(f"{folder} holds no record")
    return met
