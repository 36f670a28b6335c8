"""Who takes part in a scene, and what each can be told to do.  README in this folder: scene/run --help."""

import json
import os
import re
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import tarfile
import threading
import time

from kit import certs, engine, proc, wire
from kit.proc import Trouble
from script import fill, words
from ship.takers import Datagrams, Postgres, Web

PATIENCE = 15  # seconds that anybody waits for anything


class Stage:
    """What all peers of one scene share: values, signals, the gate, the transcript."""

    def __init__(self, values, gate=None):
        self.values, self.gate = values, gate
        self.lock = threading.Condition()
        self.signals = set()
        self.failed = None
        self.began = time.monotonic()
        self.transcript = []
        self.made = None  # certificates, once somebody wants them
        self.receipts = []  # Sallyport-Audit headers, held against the log at the end

    def certs(self):
        """Certificates of the scene's folder: `good` is the engine's, `own` the gate's, others are not."""
        if not self.made:
            folder = self.values["dir"] / "tls"
            self.made = certs.Certs(folder).issue("good", "DNS:engine.test,IP:127.0.0.1").issue(
                "own", "DNS:gate.test").issue("stranger", "DNS:engine.test,IP:127.0.0.1", ca="other-ca")
            self.made.issue("misnamed", "DNS:elsewhere.test").issue("late", "IP:127.0.0.1", days=-1)
        return self.made

    def note(self, who, what):
        with self.lock:
            self.transcript.append((time.monotonic() - self.began, who, what))

    def reasons(self):
        """The reason codes that callers were told, and that stand in the log."""
        told = re.findall(r"\[([a-z_]+), rule ", "\n".join(what for _, _, what in self.transcript))
        return [*told, *(self.gate.reasons if self.gate else ())]

    def fail(self, why):
        with self.lock:
            self.failed = self.failed or why
            self.lock.notify_all()

    def signal(self, name):
        with self.lock:
            self.signals.add(name)
            self.lock.notify_all()

    def wait(self, what, check, seconds=PATIENCE):
        """Waits under the lock until check() is true, the scene fails, or time is up."""
        deadline = time.monotonic() + seconds
        with self.lock:
            while not (got := check()):
                if self.failed:
                    raise Trouble("given up, since another peer failed")
                if not self.lock.wait(min(1, deadline - time.monotonic())) and (
                        time.monotonic() > deadline):
                    raise Trouble(f"not within {seconds} s: {what}")
            return got


def shown(data, cap=300):
    text = data.decode("latin-1") if isinstance(data, (bytes, bytearray)) else str(data)
    text = text.encode("unicode_escape").decode().replace("\\r\\n", "\\r\\n ")
    return text if len(text) <= cap else f"{text[:cap]}... ({len(data)} bytes)"


def at(document, path):
    """document.a.0.b; a dot in a name is written \\. there; a missing member is None."""
    for key in re.split(r"(?<!\\)\.", path):
        key = key.replace("\\.", ".")
        if isinstance(document, list) and key.isdigit() and int(key) < len(document):
            document = document[int(key)]
        elif isinstance(document, dict):
            document = document.get(key)
        else:
            return None
    return document


def plain(value):
    """A JSON value as scenes write it: strings bare, the rest as JSON."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def compare(what, got, test):
    """test: ['value'], ['=', 'value'], ['~', 'regex'] or ['absent']."""
    if test and test[0] == "~" and not test[0].quoted:
        if got is None or not re.search(test[1], got, re.S):
            raise Trouble(f"{what} is {got!r}, which does not match {str(test[1])!r}")
        return
    if test and test[0] == "absent" and not test[0].quoted:
        if got is not None:
            raise Trouble(f"{what} is {got!r}, and should be absent")
        return
    want = test[1] if test and test[0] == "=" and not test[0].quoted else test[0]
    if got != want:
        raise Trouble(f"{what} is {got!r}, not {str(want)!r}")


def record_matches(record, conditions):
    for condition in conditions:
        match = re.match(r"([^=~]+)(~|=)(.*)", condition, re.S)
        if not match:
            raise Trouble(f"cannot read the condition {condition}")
        value = at(record, match[1])
        value = None if value is None else plain(value)
        if match[2] == "=" and (value if value is not None else "absent") != match[3]:
            return False
        if match[2] == "~" and not (value is not None and re.search(match[3], value)):
            return False
    return True


def joined(tokens):
    """key="quoted value" comes as two tokens; puts them together again."""
    found = []
    for token in tokens:
        if token.quoted and found and found[-1][-1:] in "=~":
            found[-1] += token
        else:
            found.append(str(token))
    return found


class Peer(threading.Thread):
    def __init__(self, stage, block):
        super().__init__(name=f"{block.name}", daemon=True)
        self.stage, self.block, self.who = stage, block, block.name
        self.stream = None
        self.head = None
        self.done_statements = 0

    def run(self):
        try:
            for statement in self.block.statements:
                self.stage.note(self.who, f"| {statement.text.strip()}")
                self.perform(statement)
                self.done_statements += 1
            self.finish()
        except Exception as trouble:  # whatever it is, the scene must not hang
            now = self.block.statements[min(self.done_statements, len(self.block.statements) - 1)]
            what = trouble if isinstance(trouble, (Trouble, OSError)) else repr(trouble)
            self.stage.note(self.who, f"FAILED: {what}")
            self.stage.fail(f"{self.who}, {now}: {what}")

    def finish(self):
        pass

    def perform(self, statement):
        tokens = words(fill(statement.text, self.stage.values))
        verb = tokens[0].replace("-", "_")
        method = getattr(self, f"do_{verb}", None)
        if not method:
            raise Trouble(f"a {self.block.kind} cannot {tokens[0]}")
        method(tokens[1:], statement)

    # Order between peers.

    def do_signal(self, args, _):
        self.stage.signal(args[0])

    def do_wait(self, args, _):
        self.stage.wait(f"signal {args[0]}", lambda: args[0] in self.stage.signals)

    # The log, as it is on disk at this moment.

    def do_log(self, args, _):
        """log record k=v...: it is there now.  log await k=v...: it comes.  log no-record k=v..."""
        conditions = joined(args[1:])
        def found():
            return any(record_matches(record, conditions) for record in self.stage.gate.records())
        if args[0] == "await":
            proc.until(f"a record {' '.join(conditions)}", PATIENCE, found)
        elif found() != (args[0] == "record"):
            raise Trouble(f"{'no' if args[0] == 'record' else 'a'} record {' '.join(conditions)} "
                          "in the log")

    # What any connection can do.

    def do_let(self, args, _):
        """let NAME = json PATH [~ REGEX] | header NAME | start [~ REGEX]; of a regex its first group"""
        if args[2] == "start":
            args, value = [*args[:3], "", *args[3:]], self.head.start
        elif args[2] == "header":
            value = self.head.get(args[3])
        else:
            value = at(json.loads(self.whole_body()), args[3])
        if value is None:
            raise Trouble(f"nothing to keep as {args[0]}")
        if len(args) > 5 and args[4] == "~":
            found = re.search(args[5], value)
            if not found:
                raise Trouble(f"'{value}' has nothing to keep as {args[0]}")
            value = found[1]
        self.stage.values[str(args[0])] = plain(value)

    def whole_body(self):
        if getattr(self, "body_of", None) is not self.head:
            self.body_of = self.head
            self.body_text = self.stream.body.all() if self.stream.body else b""
            self.stage.note(self.who, f"< body {shown(self.body_text)}")
        return self.body_text

    def do_recv(self, args, statement):
        if args[0].isupper() or args[0] in ("head", "status"):
            self.recv_head(args, statement)
            return
        what, test = args[0], args[1:]
        if what == "header":
            compare(f"header {test[0]}", self.head.get(test[0]), test[1:])
        elif what == "body":
            compare("the body", self.whole_body().decode("latin-1"), test)
        elif what == "json":
            value = at(json.loads(self.whole_body() or b"null"), test[0])
            compare(f"json {test[0]}", None if value is None else plain(value), test[1:])
        elif what == "data":
            self.expect(self.stream.body.exact(len(test[0])), test[0])
        elif what == "raw":
            self.expect(self.stream.exact(len(test[0])), test[0])
        elif what == "bytes":
            self.recv_bytes(int(test[0]), self.stream.body.some)
        elif what == "raw-bytes":
            self.recv_bytes(int(test[0]), self.raw_some)
        elif what == "until":
            self.recv_until(test[0].encode("latin-1"))
        elif what == "rest-of-body":
            self.stream.body.all()
        elif what == "through":
            self.recv_through(test[0].encode("latin-1"))
        elif what == "seen":
            self.recv_seen(test[0].encode("latin-1"))
        elif what == "not-seen":
            if test[0].encode("latin-1") in self.seen:
                raise Trouble(f"{shown(test[0])} is in {shown(self.seen)}")
        elif what == "end":
            rest = self.stream.body.all() if self.stream.body else b""
            if rest:
                raise Trouble(f"the body goes on: {shown(rest)}")
        elif what == "eof":
            if self.stream.buffer or self.stream.fill():
                raise Trouble(f"not closed, but: {shown(self.stream.buffer)}")
        elif what == "rest":
            while self.stream.fill():
                pass
            self.stage.note(self.who, f"< {shown(self.stream.take(len(self.stream.buffer)))}")
        elif what == "broken":
            self.recv_broken()
        else:
            raise Trouble(f"cannot recv {what}")

    def expect(self, got, want):
        self.stage.note(self.who, f"< {shown(got)}")
        if got != want.encode("latin-1"):
            raise Trouble(f"got {shown(got)}, not {shown(want)}")

    def raw_some(self, most):
        if not self.stream.buffer and not self.stream.fill(most):
            return b""
        return self.stream.take(most)

    def recv_bytes(self, count, some):
        left = count
        while left:
            got = some(min(left, 65536))
            if not got:
                raise Trouble(f"it ends {left} bytes too early")
            left -= len(got)

    def recv_until(self, mark, cap=64 << 20):
        """Takes the body up to and with mark; `recv seen` then looks at what was taken."""
        seen = bytearray()
        while not seen.endswith(mark):
            some = self.stream.body.some(1 if len(seen) < 65536 else 65536)
            if not some:
                raise Trouble(f"the body ends before {shown(mark)}: {shown(seen[-300:])}")
            seen += some
            if len(seen) > cap:
                raise Trouble(f"no {shown(mark)} within {cap} bytes")
        self.seen = bytes(seen)
        self.stage.note(self.who, f"< {shown(self.seen)}")

    def recv_through(self, mark, cap=64 << 20):
        """Takes the body until mark is somewhere in it, however it came in pieces."""
        seen = bytearray(self.seen) if getattr(self, "through_of", None) is self.head else bytearray()
        self.through_of = self.head
        while mark not in seen:
            some = self.stream.body.some(65536)
            if not some or len(seen) > cap:
                raise Trouble(f"the body ends before {shown(mark)}: {shown(seen[-300:])}")
            seen += some
        self.seen = bytes(seen)

    def recv_seen(self, text):
        if text not in self.seen:
            raise Trouble(f"{shown(text)} is not in {shown(self.seen)}")

    def recv_broken(self):
        """The message does not come to its end: the connection closes first."""
        try:
            rest = self.stream.body.all()
        except wire.Closed:
            return
        raise Trouble(f"the body came to a proper end: {shown(rest)}")

    def put(self, data):
        self.stage.note(self.who, f"> {shown(data)}")
        self.stream.send(data)

    def do_send(self, args, statement):
        what = args[0]
        if what == "raw":
            self.put("".join(args[1:]).encode("latin-1"))
        elif what == "chunk":
            self.put(wire.chunk("".join(args[1:]).encode("latin-1")))
        elif what == "last-chunk":
            self.put(b"0\r\n\r\n")
        elif what in ("bytes", "chunks"):
            self.send_bytes(int(args[1]), what == "chunks")
        elif what == "fill":
            self.send_fill(int(args[1]))
        elif what in ("entry", "link", "folder", "big-entry", "archive-end"):
            self.send_tar(what, args[1:])
        else:
            self.send_head(args, statement)

    def send_bytes(self, count, chunked):
        self.stage.note(self.who, f"> {count} bytes")
        block = b"0123456789abcde\n" * 4096
        while count:
            piece = block[:min(count, len(block))]
            self.stream.send(wire.chunk(piece) if chunked else piece)
            count -= len(piece)

    def send_tar(self, what, args):
        """send entry NAME TEXT | link NAME TARGET | folder NAME | big-entry NAME BYTES | archive-end: a chunk
        of an upload that is a tar archive"""
        info = tarfile.TarInfo(args[0] if args else "")
        content = b""
        if what == "archive-end":
            self.put(wire.chunk(bytes(1024)) + b"0\r\n\r\n")
            return
        if what == "entry":
            content = "".join(args[1:]).encode("latin-1")
        elif what == "big-entry":
            content = b"0123456789abcde\n" * (int(args[1]) // 16)
        elif what == "link":
            info.type, info.linkname = tarfile.SYMTYPE, args[1]
        else:
            info.type = tarfile.DIRTYPE
        info.size = len(content)
        self.stage.note(self.who, f"> {what} {info.name}, {len(content)} bytes")
        self.stream.send(wire.chunk(info.tobuf(tarfile.PAX_FORMAT) + content + bytes(-len(content) % 512)))

    def send_fill(self, limit):
        """Sends chunks until nobody takes any more; more than limit is a failure."""
        sent, piece = 0, wire.chunk(b"0123456789abcde\n" * 1024)
        self.stream.sock.settimeout(0.5)
        try:
            while sent < limit:
                at_once = self.stream.sock.send(piece)
                sent += at_once
                while at_once < len(piece):  # a chunk is never left half sent, if it can be helped
                    at_once += self.stream.sock.send(piece[at_once:])
        except TimeoutError:
            self.stage.note(self.who, f"> {sent} bytes, then no more room")
            return
        finally:
            self.stream.sock.settimeout(PATIENCE)
        raise Trouble(f"{sent} bytes were taken without anybody reading them")

    def do_half_close(self, _args, _):
        self.stream.sock.shutdown(socket.SHUT_WR)

    def do_close(self, _args, _):
        self.stage.note(self.who, "closes")
        try:
            self.stream.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.stream.sock.close()


def message(first, lines, body, more=()):
    """A head and its body; the length is added unless the lines say how it is framed."""
    names = {line.partition(":")[0].strip().lower() for line in lines}
    lines = [first, *lines]
    for name, value in more:
        if name.lower() not in names:
            lines.append(f"{name}: {value}")
    if body is not None and not names & {"content-length", "transfer-encoding"}:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n" + (body or "")).encode("latin-1")


class Client(Peer):
    """client NAME [to=SOCKET] [uid=N]; to=tls://127.0.0.1:${port} [cert=NAME] [tls=1.2] [ca=NAME]"""

    def __init__(self, stage, block):
        super().__init__(stage, block)
        self.path = fill(block.options.get("to", "${gate.sock}"), stage.values)
        self.uid = int(block.options["uid"]) if "uid" in block.options else None
        self.cert = block.options.get("cert")
        self.methods = []

    def perform(self, statement):
        if self.stream is None and words(statement.text)[0] in ("send", "recv"):
            self.do_connect([], statement)
        super().perform(statement)

    def do_connect(self, _args, _):
        tls = None
        if str(self.path).startswith("tls://"):
            options = self.block.options
            tls = wire.tls_context(self.stage.values["tls"], self.cert, options.get("tls"),
                                   options.get("ca", "ca"))
        self.stream = wire.connect(self.path, self.uid, PATIENCE, tls)
        self.methods = []

    def do_show(self, args, _):
        """show NAME: the next connections come with this certificate"""
        self.cert = str(args[0]) if args[0] != "nothing" else None

    def do_refused(self, args, statement):
        """refused [REGEX]: the handshake fails, here or over there, and the words for it match"""
        try:
            self.do_connect(args, statement)
            self.stream.sock.sendall(b"GET /_ping HTTP/1.1\r\nHost: docker\r\n\r\n")
            got = self.stream.sock.recv(1)
        except OSError as error:
            self.stage.note(self.who, f"refused: {error}")
            if args and not re.search(args[0], str(error), re.I):
                raise Trouble(f"refused with '{error}', which does not match {args[0]}") from None
            self.stream = None
            return
        raise Trouble(f"let in: {got!r}")

    def do_renegotiate(self, args, _):
        """renegotiate: another handshake on a connection of TLS 1.2 ends it; needs cert="""
        files = f"{self.stage.values['tls']}/{self.cert}"
        done = subprocess.run(
            ["openssl", "s_client", "-tls1_2", "-connect", str(self.path)[len("tls://"):], "-CAfile",
             f"{self.stage.values['tls']}/ca.pem", "-cert", f"{files}.pem", "-key", f"{files}.key"],
            input="R\nGET /_ping HTTP/1.0\r\n\r\n", capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.stage.note(self.who, shown(done.stdout[-200:] + done.stderr[-600:], 1000))
        if "RENEGOTIATING" not in done.stderr + done.stdout:
            raise Trouble("openssl did not renegotiate")
        if "200 OK" in done.stdout:
            raise Trouble("let in behind a renegotiation")

    def do_serial(self, args, _):
        """serial NAME: the gate showed this certificate"""
        shown = self.stream.sock.tls.getpeercert(binary_form=True)
        with open(f"{self.stage.values['tls']}/{args[0]}.pem", encoding="ascii") as file:
            wanted = ssl.PEM_cert_to_DER_cert(file.read())
        if shown != wanted:
            raise Trouble(f"the gate does not show {args[0]}.pem")

    def send_head(self, args, statement):
        """send [head] METHOD TARGET [1.0]; `head` adds no framing"""
        bare = args[0] == "head"
        method, target, *version = args[1:] if bare else args
        lines, body = statement.message(self.stage.values)
        version = version[0] if version else "1.1"
        more = () if bare or version == "1.0" else (("Host", "docker"),)
        data = message(f"{method} {target} HTTP/{version}", lines, body, more)
        self.methods.append(method)
        self.sent = data
        try:
            self.put(data)
        except (BrokenPipeError, ConnectionResetError):
            following = self.block.statements[self.done_statements + 1:][:1]
            if not following or not following[0].text.strip().endswith(" after closed"):
                raise

    def reply_after_closed(self, method, deadline):
        """A connection that ends without an answer is made again, and the request sent again."""
        while True:
            try:
                return self.stream.reply(method)
            except (wire.Closed, ConnectionResetError) as closed:
                if time.monotonic() > deadline or self.stream.buffer:
                    raise
                self.stage.note(self.who, f"{closed}: once more")
            self.do_connect([], None)
            self.methods = [method]
            try:
                self.put(self.sent)
            except (BrokenPipeError, ConnectionResetError) as closed:
                self.stage.note(self.who, f"{closed}")

    def recv_head(self, args, _statement):
        """recv status N [after M]: an interim reply must be named to be taken; after M: as long as
        the answer is M the request is sent again; after closed: as long as there is none"""
        deadline = time.monotonic() + PATIENCE
        if self.head:
            self.whole_body()  # the next reply stands behind it
        while True:
            method = self.methods[0] if self.methods else "GET"
            self.head = (self.reply_after_closed(method, deadline) if args[2:] == ["after", "closed"]
                         else self.stream.reply(method))
            self.stage.note(self.who, f"< {self.head.start} {dict(self.head.fields)}")
            if args[2:] == ["after", str(self.head.status)] and time.monotonic() < deadline:
                self.whole_body()
                self.put(self.sent)
                continue
            if self.head.status >= 200 or str(self.head.status) == args[1]:
                break
        if self.head.status >= 200 and self.methods:
            self.methods.pop(0)
        receipt = self.head.get("Sallyport-Audit")
        if receipt:
            self.stage.receipts.append(receipt)
        if str(self.head.status) != args[1]:
            body = b""
            try:
                body = self.whole_body()
            except Trouble:
                pass
            raise Trouble(f"status {self.head.status}, not {args[1]}: {shown(body)}")

    def do_reset(self, _args, _):
        """Closes in the rudest way: what was not read is thrown away."""
        self.stream.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.stream.sock.close()


class Request:
    def __init__(self, stream, head):
        self.stream, self.head = stream, head
        self.answered = threading.Event()


class Upstream(Peer):
    """upstream NAME [listen=SOCKET] [tls=CERTIFICATE] [state=absent]: an engine that says only what it
    is told, beside answers that only tell what it has (kit/engine.py)."""

    def __init__(self, stage, block):
        super().__init__(stage, block)
        path = fill(block.options.get("listen", "${engine.sock}"), stage.values)
        self.model = engine.Model()
        self.answers = []  # (method, pattern, status, lines, body)
        self.queue = []
        self.now = None
        self.last_event, self.watched_by = 0, []
        self.watchers, self.past = [], []  # streams of events; what those to come are told first
        self.wedged = False
        self.processes = []  # that it pretends to have started
        self.late = {}  # by container: how often its state is asked for until the engine knows of its end
        tls = stage.certs().server(block.options["tls"]) if "tls" in block.options else None
        self.server = wire.Server(path, self.serve, tls)
        for statement in block.statements:
            tokens = words(statement.text)
            if tokens[0] in ("answer", "container", "containers", "info"):
                self.perform(statement)  # true from the beginning
            elif tokens[0] == "created":
                stage.values[f"{tokens[1]}.id"] = engine.long_id(tokens[1])
        if block.options.get("state") != "absent":
            self.server.start()

    # Standing answers.

    def do_answer(self, args, statement):
        """answer METHOD TARGET STATUS: to every such request, whenever it comes"""
        entry = (args[0], args[1], args[2], *statement.message(self.stage.values))
        if entry not in self.answers:
            self.answers.append(entry)

    def do_container(self, args, statement):
        """container NAME [owner=O] [image=I] [running=yes] [as=plain] [+ JSON of its create body]"""
        options = dict(word.split("=", 1) for word in joined(args[1:]))
        _, body = statement.message(self.stage.values)
        create = json.loads(body or "\n".join(statement.payload) or "{}")
        create.setdefault("Image", options.get("image", "reg.example/team/app:1"))
        if "owner" in options:
            create.setdefault("Labels", {})["sallyport.owner"] = options["owner"]
        ident = engine.long_id(args[0])
        self.stage.values[f"{args[0]}.id"] = ident
        if ident not in self.model.containers:
            made = self.model.add_container(ident, args[0], create, options.get("running") == "yes")
            if "as" in options:
                made["State"]["Pid"] = self.made_process(options["as"])

    def do_containers(self, args, statement):
        """containers NUMBER ... as of one container: so many more, with names of their own"""
        for number in range(int(args[0])):
            self.do_container([f"many-{number}", *args[1:]], statement)

    def do_event(self, args, statement):
        """event + JSON: the engine says so to whoever follows its events, now and to come"""
        line = " ".join("\n".join(statement.payload).split()).encode() + b"\n"
        self.stage.wait("a watcher", lambda: self.watchers)
        with self.stage.lock:
            self.past.append((1 << 63, line))
        self.tell(line)

    def do_points(self, args, _):
        """points RUNTIME PATH [ARGUMENT...]: from now on the engine's runtime of that name is this program"""
        self.model.info["Runtimes"][args[0]] = {"path": args[1], "runtimeArgs": list(args[2:])}

    def do_info(self, args, statement):
        """info + JSON: members of /info that differ"""
        self.model.info.update(json.loads("\n".join(statement.payload)))

    def do_info_now(self, args, statement):
        """info-now + JSON: the same, but from here on"""
        self.do_info(args, statement)

    # Connections.

    def serve(self, sock):
        stream = wire.Stream(sock, PATIENCE * 4)
        while True:
            try:
                head = stream.request()
            except Trouble:
                return
            if self.wedged and not head.target.endswith("/_ping"):
                self.stage.note(self.who, f"< {head.start} (and no answer)")
                stream.sock.settimeout(None)
                engine.wait_for_end(stream)
                return
            if engine.is_watcher(head):
                self.tell_events(stream, head)
                return
            if engine.is_comparison(head):
                self.stage.note(self.who, f"< {head.start} (the watcher's: answered by itself)")
                stream.send(engine.reply(200, self.model.listed()))
                continue
            if engine.is_roll_call(head) and not self.expects(head):
                self.stage.note(self.who, f"< {head.start} (what runs: answered by itself)")
                stream.send(engine.reply(200, self.model.running(head.target)))
                continue
            if engine.is_pulse(head):
                try:
                    stream.send(engine.reply(200, [], api=self.model.version["ApiVersion"]))
                except Trouble:
                    return
                continue
            if not self.stand(stream, head):
                request = Request(stream, head)
                self.stage.note(self.who, f"< {head.start} {dict(head.fields)}")
                with self.stage.lock:
                    self.queue.append(request)
                    self.stage.lock.notify_all()
                request.answered.wait()
            if (head.get("connection") or "").lower() == "close":
                return

    def tell_events(self, stream, head):
        """The gate follows what happens, in every scene; `event` says what that is."""
        self.stage.note(self.who, f"< {head.start} (the watcher's)")
        since = re.search(r"since=(\d+)\.(\d+)", head.target)
        first = int(since[1]) * 10**9 + int(since[2]) if since else 1 << 63
        try:
            with self.stage.lock:
                told = [wire.chunk(line) for at, line in self.past if at >= first]
                engine.begin_events(stream, b"".join(told))
                self.watchers.append(stream)
                self.stage.lock.notify_all()
        except (OSError, Trouble):
            return
        engine.wait_for_end(stream)
        with self.stage.lock:
            self.watchers.remove(stream)

    def expects(self, head):
        """The script has its own answer."""
        return any(self.fits(words(statement.text)[1:], head)
                   for statement in self.block.statements[self.done_statements:]
                   if re.match(r"\s*recv (head )?[A-Z]", statement.text))

    def stand(self, stream, head):
        if self.expects(head):
            return False
        for method, pattern, status, lines, body in self.answers:
            if self.fits([method, pattern], head):
                if stream.body:
                    stream.body.all()
                stream.send(message(f"HTTP/1.1 {status} X", lines, body or "", ()))
                return True
        self.learn(head.target)
        found = self.model.answer(head.method, head.target)
        if found is None and head.get("user-agent") == "sallyport-command":
            found = 200, []  # a list, for `doctor`
        if found is None:
            return False
        self.stage.note(self.who, f"< {head.start} (answered {found[0]} by itself)")
        try:
            stream.send(engine.reply(*found, head_only=head.method == "HEAD"))
        except wire.Closed:
            pass  # whoever asked was killed
        return True

    def learn(self, target):
        """Asked often enough, the engine knows that a container that was started `as=late` is over"""
        for ident in list(self.late):
            if f"/containers/{ident}/json" in target:
                self.late[ident] -= 1
                if self.late[ident] < 0:
                    del self.late[ident]
                    self.model.containers[ident]["State"].update(Running=False, Status="exited", Pid=0)

    def fits(self, tokens, head):
        """METHOD TARGET: * stands for anything; without version or query, these do not matter"""
        if tokens[0] == "head":
            tokens = tokens[1:]
        method, pattern = tokens[0], fill(tokens[1], self.stage.values)
        target = head.target
        if not re.match(r"/v\d", pattern):
            target = re.sub(r"^/v\d+\.\d+(?=/)", "", target)
        if "?" not in pattern:
            target = target.partition("?")[0]
        return method == head.method and re.fullmatch(
            ".*".join(map(re.escape, pattern.split("*"))), target)

    # What the script says.

    def recv_head(self, args, _statement):
        """recv METHOD TARGET: the next request, body and all; recv head ...: its head only"""
        request = self.stage.wait(f"a request {' '.join(args)}",
                                  lambda: self.queue and self.queue.pop(0))
        self.now, self.stream, self.head = request, request.stream, request.head
        if not self.fits(args, self.head):
            raise Trouble(f"the next request is {self.head.start}")
        if args[0] != "head":
            self.whole_body()

    def send_head(self, args, statement):
        """send STATUS: a complete reply; send head STATUS: its head only"""
        bare = args[0] == "head"
        status = args[1] if bare else args[0]
        lines, body = statement.message(self.stage.values)
        if not bare and body is None and status not in ("204", "304"):
            body = ""
        self.put(message(f"HTTP/1.1 {status} X", lines, body,
                         () if bare else (("Api-Version", engine.API),)))
        if not bare:
            self.do_finish([], statement)

    def do_finish(self, _args, _):
        """The reply is complete: the connection may carry the next request."""
        self.now.answered.set()

    def do_created(self, args, statement):
        """created NAME [from=I] [name=N] [+ JSON for HostConfig]: as an engine does; from: another image
        by then; name: what it is called, if not NAME"""
        create = json.loads(self.whole_body())
        options = dict(word.split("=", 1) for word in joined(args[1:]))
        if statement.payload:
            create.setdefault("HostConfig", {}).update(json.loads("\n".join(statement.payload)))
        ident = engine.long_id(args[0])
        self.model.add_container(ident, options.get("name", args[0]), create)
        if "from" in options:
            self.model.containers[ident]["Image"] = engine.image_id(options["from"])
        self.put(engine.reply(201, {"Id": ident, "Warnings": []}))
        self.do_finish([], statement)

    def do_running(self, args, _):
        """running NAME [as=plain|ended|late]: from now on inspect says so, with the pid of a process that
        the scene made: an ordinary one of ours, or one that is over; late: the engine knows of its end only
        when it has been asked some times"""
        options = dict(word.split("=", 1) for word in joined(args[1:]))
        pid = self.made_process(options["as"]) if "as" in options else 0
        self.model.containers[engine.long_id(args[0])]["State"].update(
            Running=True, Status="running", Pid=pid)
        if options.get("as") == "late":
            self.late[engine.long_id(args[0])] = 4

    def made_process(self, kind):
        process = subprocess.Popen(["sleep", str(PATIENCE * 4)] if kind == "plain" else ["true"],
                                   stdin=subprocess.DEVNULL)
        if kind == "plain":
            self.processes.append(process)
        else:
            process.wait()
        return process.pid

    def do_ended(self, args, _):
        """ended NAME: from now on inspect and the lists say that it does not run"""
        self.model.containers[engine.long_id(args[0])]["State"].update(
            Running=False, Status="exited", Pid=0)

    def do_renamed(self, args, _):
        """renamed NAME TO: the container has another name from now on"""
        self.model.containers[engine.long_id(args[0])]["Name"] = "/" + args[1]

    def do_forget(self, args, _):
        """forget NAME: the container is gone"""
        del self.model.containers[engine.long_id(args[0])]

    def do_watched(self, args, _):
        """The gate follows what happens from here on; anew: by another connection than before"""
        before = list(self.watchers) if not args else self.watched_by
        self.stage.wait("a watcher of the events",
                        lambda: [one for one in self.watchers if not args or one not in before])
        self.watched_by = list(self.watchers)

    def do_made(self, args, _):
        """made NAME: the container is new, as the engine's list says"""
        self.model.containers[engine.long_id(args[0])]["CreatedAt"] = int(time.time()) + 1

    def do_happens(self, args, _):
        """happens ACTION NAME [of=TYPE] [id=ID] [key=value...] [at=SECONDS] [unseen]: it has happened;
        a container's id and labels are filled in.  happens raw "BYTES": they are sent as they are;
        happens many N NAME: so many of them at once; happens long N: a line of so many bytes"""
        if args[0] == "raw":
            self.tell("".join(args[1:]).encode("latin-1"))
            return
        if args[0] == "long":
            for _ in range(int(args[1]) // 10000):
                self.tell(b"x" * 10000)
            self.tell(b"\n")
            return
        if args[0] == "many":
            self.tell(b"".join(self.event_line(["create", f"{args[2]}{n}"])
                               for n in range(int(args[1]))))
            return
        line = self.event_line(args)
        if "unseen" not in args:
            self.tell(line)

    def event_line(self, args):
        options = dict(word.split("=", 1) for word in joined(args[2:]) if "=" in word)
        kind, name = options.pop("of", "container"), str(args[1])
        shift, ident = options.pop("at", "0"), options.pop("id", None)
        attributes = {"name": name}
        if kind == "container":
            ident = ident or engine.long_id(name)
            found = self.model.containers.get(ident)
            if found:
                attributes.update(found["Config"]["Labels"] or {}, image=found["Config"]["Image"])
        now = max(time.time_ns(), self.last_event + 1) + int(float(shift) * 10**9)
        self.last_event = now
        attributes.update(options)
        line = json.dumps({"Type": kind, "Action": str(args[0]), "scope": "local",
                           "Actor": {"ID": ident or name, "Attributes": attributes},
                           "time": now // 10**9, "timeNano": now}).encode() + b"\n"
        with self.stage.lock:
            self.past.append((now, line))
        return line

    def tell(self, line):
        with self.stage.lock:
            watchers = list(self.watchers)
        self.stage.note(self.who, f"event {shown(line)} to {len(watchers)}")
        for stream in watchers:
            try:
                stream.send(wire.chunk(line))
            except Trouble as trouble:
                self.stage.note(self.who, f"event not told: {trouble}")

    def do_down(self, _args, _):
        """The engine dies: no socket, no connections."""
        self.server.stop()
        self.release()

    def do_up(self, _args, _):
        self.server.start()

    def do_wedge(self, args, _):
        """wedge: from now on it answers pings and nothing else; wedge over: it is well again"""
        self.wedged = args != ["over"]

    def do_version(self, args, _):
        """version X: the newest that it speaks, from now on"""
        self.model.version["ApiVersion"] = str(args[0])

    def do_end(self, _args, _):
        if self.queue:
            raise Trouble(f"something more came: {self.queue[0].head.start}")

    def do_close(self, args, statement):
        super().do_close(args, statement)
        self.now.answered.set()

    def end_processes(self):
        for process in self.processes:
            process.kill()
            process.wait()

    def release(self):
        for request in [self.now, *self.queue]:
            if request:
                request.answered.set()

    def leftovers(self):
        return [request.head.start for request in self.queue]


class Operator(Peer):
    """operator: has the gate itself in hand"""

    def __init__(self, stage, block):
        super().__init__(stage, block)
        self.marks = {}

    def do_kill(self, args, _):
        """kill [every] ROLE: SIGKILL to one process of that role, or to all"""
        role = str(args[-1])
        pids = self.stage.gate.role(role)
        if not pids:
            raise Trouble(f"there is no {role}")
        self.marks[role] = set(pids)
        victims = pids if args[0] == "every" else pids[:1]
        for pid in victims:
            proc.kill(pid)
        for pid in victims:
            proc.until(f"{role} {pid} is gone", PATIENCE, lambda p=pid: not proc.alive(p))

    def do_hold(self, args, statement):
        """hold ROLE: killed, and nobody puts another one into its place until `release ROLE`"""
        proc.kill(self.stage.gate.process.pid, 19)
        self.do_kill(args, statement)

    def do_release(self, args, statement):
        proc.kill(self.stage.gate.process.pid, 18)
        self.do_await(args, statement)

    def do_freeze(self, args, _):
        """freeze ROLE: it hangs, until `thaw ROLE`"""
        for pid in self.stage.gate.role(str(args[0])):
            proc.kill(pid, 19)

    def do_thaw(self, args, _):
        for pid in self.stage.gate.role(str(args[0])):
            proc.kill(pid, 18)

    def do_await(self, args, _):
        """await ROLE: after kill, a new one has taken its place"""
        before = self.marks[str(args[0])]
        proc.until(f"a new {args[0]}", PATIENCE,
                   lambda: set(self.stage.gate.role(args[0])) - before)

    def do_memory(self, args, _):
        """memory mark [ROLE]; memory within KIB [ROLE]: no worker, or no such process, has grown by more since;
        memory below KIB [ROLE]: none is larger"""
        role = str(args[1 + (args[0] != "mark")]) if len(args) > 1 + (args[0] != "mark") else "worker"
        now = {pid: proc.memory_kib(pid) for pid in self.stage.gate.role(role)}
        if not now:
            raise Trouble(f"there is no {role}")
        if args[0] == "mark":
            self.marks["memory"] = now
            return
        for pid, size in now.items():
            if args[0] == "below" and size > int(args[1]):
                raise Trouble(f"{role} {pid} takes {size} KiB")
            if args[0] == "below":
                continue
            if pid not in self.marks["memory"]:
                raise Trouble(f"{role} {pid} was not there when it was marked")
            grown = size - self.marks["memory"][pid]
            self.stage.note(self.who, f"{role} {pid} grew by {grown} KiB")
            if grown > int(args[1]):
                raise Trouble(f"a {role} grew by {grown} KiB")

    def do_change(self, args, _):
        """change config|PROFILES "OLD" "NEW": in the text of that file"""
        gate = self.stage.gate
        path = gate.config if args[0] == "config" else gate.profiles / f"{args[0]}.lua"
        text = path.read_text(encoding="latin-1")
        if str(args[1]) not in text:
            raise Trouble(f"{path.name} does not hold {args[1]}")
        path.write_text(text.replace(str(args[1]), str(args[2])), encoding="latin-1")

    def do_copy(self, args, _):
        """copy FROM TO: in the folder of certificates"""
        shutil.copyfile(*(f"{self.stage.values['tls']}/{name}" for name in args[:2]))

    def do_mode(self, args, _):
        """mode OCTAL NAME: of a file in the folder of certificates, or of any by its path"""
        os.chmod(args[1] if args[1].startswith("/") else f"{self.stage.values['tls']}/{args[1]}", int(args[0], 8))

    def do_said(self, args, _):
        """said REGEX: stands in the gate's own log"""
        proc.until(f"the gate says {args[0]}", PATIENCE, lambda: re.search(args[0], self.stage.gate.said()))

    def do_run_until(self, args, _):
        """run-until REGEX COMMAND...: again and again, until its output matches"""
        def matches():
            self.last = self.stage.gate.run(*args[1:])
            return re.search(args[0], self.last[1], re.S)
        proc.until(f"{' '.join(args[1:])} says {args[0]}", PATIENCE, matches)
        self.stage.note(self.who, shown(self.last[1]))

    def do_run(self, args, _):
        """run STATUS COMMAND...: a command of the program; its output is then `recv body`.

        A reload does not wait for the watcher and the admin process: `run 0 status` does."""
        def ready():
            self.last = self.stage.gate.run(*args[1:])
            return args[:2] != ["0", "status"] or self.last[0] == 0 or "not ready" not in self.last[1]
        proc.until(f"{' '.join(args[1:])} says that the gate is ready", PATIENCE, ready)
        self.ran(args[0], *self.last)

    def ran(self, wanted, status, out, errors):
        self.stage.note(self.who, f"status {status}: {shown(out)} {shown(errors)}")
        if str(status) != wanted:
            raise Trouble(f"status {status}, not {wanted}: {shown(out + errors)}")
        self.head = self.body_of = object()
        self.body_text = (out or errors).encode()

    @staticmethod
    def as_user(who, command):
        """who: UID:GID, or UID:GID,GROUP,..."""
        uid, groups = str(who).split(":")
        gid, *more = map(int, groups.split(","))
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False,
                              timeout=60, user=int(uid), group=gid, extra_groups=more)
        return done.returncode, done.stdout, done.stderr

    def do_run_as(self, args, _):
        """run-as UID:GID[,GROUP...] STATUS COMMAND...: as that user"""
        self.ran(args[1], *self.as_user(args[0], [self.stage.gate.program, *args[2:]]))

    def do_ask(self, args, _):
        """ask UID PATH "BYTES"...: sends them to that socket as that user; the answer is then `recv body`"""
        self.stream = wire.connect(args[1], int(args[0]), PATIENCE)
        self.put("".join(args[2:]).encode("latin-1"))
        while self.stream.fill():
            pass
        self.ran("0", 0, self.stream.take(len(self.stream.buffer)).decode(errors="replace"), "")

    def do_stop(self, args, _):
        """stop ROLE: it is there and does nothing, until `continue ROLE`"""
        proc.kill(self.stage.gate.role(str(args[0]))[0], signal.SIGSTOP)

    def do_continue(self, args, _):
        proc.kill(self.stage.gate.role(str(args[0]))[0], signal.SIGCONT)

    def do_restart(self, args, _):
        """restart [SECONDS]: the gate ends, its log is verified, and it starts again, not before so long"""
        began = time.monotonic()
        status = self.stage.gate.stop()
        if status:
            raise Trouble(f"the gate ended with status {status}")
        self.stage.gate.output.unlink()
        proc.until("it is time", 60, lambda: time.monotonic() - began >= int(args[0] if args else 0))
        self.stage.gate.start()

    def do_gone(self, args, _):
        """gone PATH: nothing stands there, now or soon"""
        proc.until(f"{args[0]} is gone", PATIENCE, lambda: not os.path.lexists(str(args[0])))

    def do_there(self, args, _):
        """there PATH MODE [GID]: a socket with that mode and group"""
        info = os.lstat(str(args[0]))
        if not stat.S_ISSOCK(info.st_mode) or f"{info.st_mode & 0o7777:04o}" != args[1]:
            raise Trouble(f"{args[0]} has mode {info.st_mode:o}")
        if len(args) > 2 and str(info.st_gid) != args[2]:
            raise Trouble(f"{args[0]} has group {info.st_gid}")

    def do_folder(self, args, _):
        """folder MODE PATH: makes it, the gate's own, with that mode whatever the umask"""
        os.mkdir(str(args[1]))
        os.chown(str(args[1]), self.stage.values["uid"], -1)
        os.chmod(str(args[1]), int(args[0], 8))

    def do_fill(self, args, _):
        """fill PATH LEFT: with a file of zeros, until the file system there has no more than LEFT bytes"""
        with open(str(args[0]), "wb") as file:
            while (left := (room := os.fstatvfs(file.fileno())).f_bavail * room.f_bsize) > int(args[1]):
                file.write(bytes(min(65536, left - int(args[1]))))
                file.flush()

    def do_remove(self, args, _):
        """remove PATH: a file, or an empty folder"""
        (os.rmdir if os.path.isdir(str(args[0])) else os.unlink)(str(args[0]))

    def do_link(self, args, _):
        """link TARGET PATH"""
        os.symlink(str(args[0]), str(args[1]))


class Audit:
    """audit: what must stand in the log once everything is over"""

    ABOUT_REQUESTS = {"decision", "outcome", "outcome_unknown", "read", "malformed"}
    TOOLS = {"query": ("table", "csv", "json"), "export": ("ocsf", "ecs", "cef"), "report": ("text", "json", "html")}

    def __init__(self, stage, block, records):
        self.stage, self.block, self.made, self.told = stage, block, {}, {}
        self.all = records
        self.left = [r for r in records if r.get("type") in self.ABOUT_REQUESTS]
        self.last = None

    def check(self):
        for statement in self.block.statements:
            try:
                args = words(fill(statement.text, self.stage.values))
                self.statement(args[0], joined(args[1:]))
            except Trouble as trouble:
                raise Trouble(f"audit, {statement}: {trouble}") from None

    def statement(self, verb, conditions):
        """record k=v...: takes the first such record; then k=v...: one behind the last taken;
        some k=v...: of any type, taken or not; no k=v...: there is none; without "text": nowhere in the files, nor in what is made of them; nowhere "text": nor in what leaves the machine and in the gate's own log;
        end: all are taken"""
        if verb in ("record", "then"):
            found = [r for r in self.left if record_matches(r, conditions)
                     and (verb == "record" or r["seq"] > self.last["seq"])]
            if not found:
                raise Trouble("no such record left among:\n" + self.listed(self.left))
            self.last = found[0]
            self.left.remove(self.last)
        elif verb == "some":
            if not any(record_matches(r, conditions) for r in self.all):
                raise Trouble("no such record among:\n" + self.listed(self.all))
        elif verb == "no":
            found = [r for r in self.all if record_matches(r, conditions)]
            if found:
                raise Trouble("there is:\n" + self.listed(found))
        elif verb == "end":
            if self.left:
                raise Trouble("more records:\n" + self.listed(self.left))
        elif verb in ("without", "nowhere"):
            text = conditions[0].encode("latin-1")
            for path in (path for path in self.stage.gate.log.rglob("*") if path.is_file()):
                if text in path.read_bytes():
                    raise Trouble(f"{path.name} holds {shown(conditions[0])}")
            for name, made in {**self.made_of_it(), **(self.told_of_it() if verb == "nowhere" else {})}.items():
                if text in made:
                    raise Trouble(f"{name} holds {shown(conditions[0])}")
        elif verb != "verify":  # that is done for every scene
            raise Trouble(f"the log cannot {verb}")

    def made_of_it(self):
        """What the tools for auditors make of the log, and their index: bytes by name."""
        gate = self.stage.gate
        index = gate.folder / "index.sqlite"
        if not self.made:
            for name, forms in self.TOOLS.items():
                for form in forms:
                    more = ["--index", index] if name == "query" else []
                    status, out, errors = gate.run("audit", name, gate.log, "--format", form, *more)
                    if status or not out:
                        raise Trouble(f"audit {name} --format {form}: status {status}: {errors}")
                    self.made[f"audit {name} --format {form}"] = out.encode()
            self.made["query's index"] = index.read_bytes()
        return self.made

    def told_of_it(self):
        """What goes to others of the log, and what the gate itself says: bytes by name."""
        gate = self.stage.gate
        if not self.told:
            status, denials, errors = gate.run("denials", "--log", gate.log)
            if status or not denials:
                raise Trouble(f"denials: status {status}: {errors}")
            self.told = {"denials": denials.encode(), "the archive of evidence": self._evidence(gate),
                         **self._shipped(gate), "the gate's own log": gate.output.read_bytes()}
        return self.told

    @staticmethod
    def _evidence(gate):
        archive = gate.folder / "evidence.tar"
        status, _, errors = gate.run("audit", "evidence", gate.log, "--for", "pci", "--from", "1d", "--out", archive)
        if status:
            raise Trouble(f"audit evidence: status {status}: {errors}")
        whole = archive.read_bytes()
        if b"manifest" not in whole.lower():
            raise Trouble("the archive of evidence has no manifest that could be read as it is")
        return whole

    @staticmethod
    def _shipped(gate):
        """What sinks of each kind get, with the parameters that are made for them: bytes by name."""
        datagrams = {kind: Datagrams(gate.folder / f"{kind}.sock").read() for kind in ("syslog", "journald")}
        for taker in datagrams.values():
            os.chmod(taker.path, 0o666)  # the gate may run as somebody else
        pki = certs.Certs(gate.folder / "sinks-pki").issue("server", "IP:127.0.0.1")
        web, database = Web(pki.server("server", demands_client=False)), Postgres(gate.folder / "pg")
        database.fresh()
        sinks = [f'kind = "{kind}", address = "unix://{taker.path}"' for kind, taker in datagrams.items()]
        sinks.append(f'kind = "https", url = "https://127.0.0.1:{web.port}/", ca = "{pki.folder}/ca.pem"')
        sinks.append(f'kind = "postgres", connection = "{database.connection()}"')
        config = gate.folder / "ship.conf"
        config.write_text(gate.config.read_text(encoding="latin-1") + "".join(
            f'\nsink "taker{n}" {{ {keys}, state = "{gate.folder}/taker.state" }}' for n, keys in enumerate(sinks)) + "\n",
            encoding="latin-1")
        try:
            status, _, errors = gate.run("audit", "ship", "--config", config, "--once")
            rows = database.ask("SELECT r, encode(line, 'escape') FROM sallyport.record r")
            got = {"what the database got": "\n".join(map(str, rows)).encode(), "what the collector got": b"".join(web.got),
                   **{f"what {kind} got": b"\n".join(taker.got) for kind, taker in datagrams.items()}}
        finally:
            for taker in (*datagrams.values(), web):
                taker.end()
            database.stop()
        if status or not all(b"image.pull" in text for text in got.values()):
            raise Trouble(f"audit ship: status {status}: {errors}; {({name: len(text) for name, text in got.items()})}")
        return got

    @staticmethod
    def listed(records):
        return "\n".join("    " + shown(plain(r), 900) for r in records)
