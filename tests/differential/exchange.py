"""One request through the gate, the same beside it, and what the engine has afterwards."""

import json
import re

import prepared
from kit import wire
from kit.proc import Trouble

OWNER = "me"

# The request could not be read in one way; what the engine does with it is written down.
UNREADABLE = {
    "malformed", "framing", "header", "method", "path", "version", "query", "unknown_endpoint",
    "content_type", "upgrade", "json_empty", "json_syntax", "json_encoding", "json_duplicate",
    "json_limit", "json_trailing", "json_type", "json_key_case", "json_unknown", "flat_hostconfig"}


# Granted by their name alone.
WITHOUT_FACTS = {"rename", "disconnect"}


class Log:
    """The gate's records, read as they are written."""

    def __init__(self, folder):
        self.folder, self.file, self.found = folder, None, {}
        self.segments = []

    def _read(self):
        """Takes what is whole; a segment is padded in advance, and its last line may come in parts."""
        if not self.file:
            self._next()
        at, data = self.file.tell(), b""
        while block := self.file.read(1 << 16):
            data += block
            if b"\n" not in block:
                break
        end = data.rfind(b"\n") + 1
        self.file.seek(at + end)
        for line in data[:end].splitlines():
            number = re.search(rb'"seq":(\d+)', line[:200])
            if number:
                self.found[int(number[1])] = line
        if not end:
            self._next()

    def _next(self):
        fresh = [path for path in sorted(self.folder.glob("*.log")) if path not in self.segments]
        if fresh:
            self.segments.append(fresh[0])
            self.file = open(fresh[0], "rb")

    def record(self, number):
        for _ in range(50):
            if number in self.found:
                line = self.found.pop(number)
                for old in [key for key in self.found if key < number - 4000]:
                    del self.found[old]
                return json.loads(line)
            self._read()
        raise Trouble(f"the log has no record {number}")


class Side:
    """A connection that is kept while it lasts."""

    def __init__(self, path):
        self.path, self.stream = path, None

    def send(self, data, method="POST"):
        """(head, body); (None, b"") if it was closed without a word."""
        fresh = self.stream is None
        if fresh:
            self.stream = wire.connect(self.path, seconds=60)
        try:
            self.stream.send(data)
            head = self.stream.reply(method)
            while head.status == 100:
                head = self.stream.reply(method)
            body = self.stream.body.all() if self.stream.body else b""
        except wire.Closed:
            self.close()
            return (None, b"") if fresh else self.send(data, method)
        if (head.get("connection") or "").lower() == "close" or self.stream.at_end:
            self.close()
        return head, body

    def ask(self, method, target, document=None):
        """(status, parsed body) of a plain request."""
        body = b"" if document is None else json.dumps(document).encode()
        head, got = self.send(
            f"{method} {target} HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode() + body, method)
        if head is None:
            raise Trouble(f"{method} {target}: no answer from {self.path}")
        try:
            return head.status, json.loads(got) if got else None
        except ValueError:
            return head.status, None

    def close(self):
        if self.stream:
            self.stream.sock.close()
            self.stream = None


class Result:
    def __init__(self):
        self.reason = ""         # why the gate refused it; "" if it did not
        self.forwarded = self.made = False
        self.differences = []    # (label, text)
        self.beside = None       # what the engine did with the caller's own bytes


class Exchange:
    def __init__(self, gate, engine, log, oracle, registry, compare):
        self.gate, self.engine, self.log = Side(gate), Side(engine), Log(log)
        self.engine_path, self.oracle, self.registry = engine, oracle, registry
        self.compare = compare   # the module that compares what is no container
        self.prepared = prepared.Check(oracle, self.engine, compare.both)
        self.tamper = None       # a mistake of tamper.py; it answers whether it changed anything
        self.tampered = False
        self.mine = ""           # a running container of the gate's caller

    def run(self, request):
        if request.kind not in prepared.KINDS:
            return self._run(request, None)
        try:
            before = prepared.prepare(request, self.engine, self.mine)
            return self._run(request, before) if before else Result()
        finally:
            prepared.clean(request, self.engine)

    def _run(self, request, before):
        result = Result()
        head, body = self.gate.send(request.bytes(), request.method)
        record = self._record(head)
        if record is None:
            result.reason = "malformed"
        elif record.get("verdict") != "allow":
            result.reason = record.get("reason") or record["type"]
        else:
            result.forwarded = True
            self._look(request, head, body, record, result, before)
        if result.reason in UNREADABLE:
            result.beside = self._send_beside(request)
            if request.group == "plain" and "\\u0000" not in request.document().decode("utf-8", "replace") \
                    and request.kind != "pull":
                result.differences.append((f"a plain request is refused: {result.reason}",
                                           json.dumps(record.get("violations") if record else None)))
        return result

    def _record(self, head):
        receipt = head and head.get("sallyport-audit")
        return self.log.record(int(receipt.split(";")[1])) if receipt else None

    # --- what was made through the gate ---

    def _look(self, request, head, body, record, result, before):
        document = _parsed(request.document())
        workload = (record.get("facts") or {}).get("workload")
        refused = re.findall(r"- (\S+?)(?: = .*?)?: (.*?) \[not_as_judged", body.decode("utf-8", "replace"))
        if refused and document.get("Image"):
            result.differences = [(f"not as judged: {re.sub('[0-9]+', 'N', field)}", text)
                                  for field, text in refused]
        elif workload is None and request.kind not in WITHOUT_FACTS and not record.get("trunc"):
            result.differences = [("allowed without facts", json.dumps(record)[:500])]
        elif request.kind in prepared.KINDS:
            result.made = head.status < 300
            result.differences = self.prepared(request, before, head.status, workload)
        elif request.kind == "pull":
            result.made = True
            result.differences = self._pulled(request, workload)
        elif head.status in (200, 201) and workload is not None:
            result.made = True
            made = json.loads(body)
            try:
                result.differences = getattr(self, f"_made_{request.kind}")(
                    made, workload, document, record)
            finally:
                self._remove(request.kind, made)
        if request.fresh in str(document):
            self._remove_volumes(request)

    def _made_create(self, made, workload, document, record):
        status, doc = self.engine.ask("GET", f"/containers/{made['Id']}/json")
        if status != 200:
            return [("what was made is not there", made["Id"])]
        self.tampered = bool(self.tamper and self.tamper(doc, workload))
        found = self.oracle.container(doc, workload, document)
        found += self.oracle.owned(doc["Config"]["Labels"], record["id"], OWNER)
        for mount in workload["mounts"]:
            if mount["kind"] == "volume" and mount.get("source") and mount.get("exists") is False:
                volume = self.engine.ask("GET", f"/volumes/{mount['source']}")[1] or {}
                # Options that rules refuse cannot be said in the form that has labels.
                if "driver" not in mount and set(mount["options"]) <= {"nocopy"}:
                    found += self.oracle.owned(volume.get("Labels"), record["id"], OWNER)
        return found

    def _made_volume(self, made, workload, document, record):
        doc = self.engine.ask("GET", f"/volumes/{made['Name']}")[1]
        return self.compare.volume(doc, workload) + self.oracle.owned(
            doc["Labels"], record["id"], OWNER)

    def _made_network(self, made, workload, document, record):
        doc = self.engine.ask("GET", f"/networks/{made['Id']}")[1]
        return self.compare.network(doc, workload) + self.oracle.owned(
            doc["Labels"], record["id"], OWNER)

    def _made_exec(self, made, workload, document, record):
        doc = self.engine.ask("GET", f"/exec/{made['Id']}/json")[1]
        return self.compare.execution(doc, workload, document)

    def _pulled(self, request, workload):
        pull = workload["pull"]
        asked = self.registry.asked(request.fresh)
        if pull.get("import"):
            wanted = [pull["url"].partition(self.registry.address)[2]] if "url" in pull else []
        else:
            name = pull["name"].removeprefix(self.registry.address + "/")
            wanted = [f"{name} {pull['tag']}" if "tag" in pull else name]
        odd = [one for one in asked if one not in wanted and not one.endswith("/tags/list")]
        return [("pull: the engine asks for something else", f"{odd}, judged {wanted}")] if odd else []

    # --- the same without the gate ---

    def _send_beside(self, request):
        side = Side(self.engine_path)
        head, body = side.send(request.bytes(), request.method)
        side.close()
        if head is None:
            return {"engine": "closed"}
        said = {"engine": head.status}
        try:
            made = json.loads(body)
        except ValueError:
            made = None
        if head.status == 201 and isinstance(made, dict):
            said["effect"] = self._effect(request.kind, made)
            self._remove(request.kind, made)
            self._remove_volumes(request)
        elif isinstance(made, dict) and head.status >= 400:
            said["message"] = str(made.get("message"))[:200]
        elif head.get("location"):
            said["location"] = head.get("location")
        return said

    def _effect(self, kind, made):
        """What of the request was honoured: claims beyond those of an empty one."""
        if kind == "create" and "Id" in made:
            status, doc = self.engine.ask("GET", f"/containers/{made['Id']}/json")
            if status == 200:
                return sorted(" ".join(map(str, claim))
                              for claim in self.oracle.of_container(doc, True)
                              if claim[0] not in ("image", "runtime", "user", "restart", "name"))
        return sorted(f"{key}={made[key]}" for key in ("Driver", "Options", "Name") if made.get(key))

    # --- cleaning up ---

    def _remove(self, kind, made):
        if kind == "create" and "Id" in made:
            self.engine.ask("DELETE", f"/containers/{made['Id']}?force=1&v=1")
        elif kind == "volume" and made.get("Name", "").startswith("df-") is False:
            self.engine.ask("DELETE", f"/volumes/{made['Name']}?force=1")
        elif kind == "network" and "Id" in made:
            self.engine.ask("DELETE", f"/networks/{made['Id']}")

    def _remove_volumes(self, request):
        if request.kind in ("create", "volume"):
            for name in (request.fresh, request.fresh + "-2"):
                if name in request.document().decode("utf-8", "replace"):
                    self.engine.ask("DELETE", f"/volumes/{name}?force=1")


def _parsed(body):
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
