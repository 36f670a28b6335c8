"""HTTP/1.1 as bytes on a socket: just enough to say odd things and to see exactly what comes back."""

import ctypes
import os
import socket
import ssl
import threading
from contextlib import contextmanager

from kit.proc import Trouble

NO_BODY = {204, 304}


class Closed(Trouble):
    """The other side has closed the connection."""


class Head:
    def __init__(self, text):
        lines = text.split("\r\n")
        self.start = lines[0]
        self.fields = []
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.fields.append((name.strip().lower(), value.strip()))

    def get(self, name):
        """The field's value, several joined with ', '; None if it is absent."""
        found = [value for field, value in self.fields if field == name.lower()]
        return ", ".join(found) if found else None

    @property
    def status(self):
        return int(self.start.split(" ")[1])

    @property
    def method(self):
        return self.start.split(" ")[0]

    @property
    def target(self):
        return self.start.split(" ")[1]


class Stream:
    """A connected socket that is read in pieces of one's own choice."""

    def __init__(self, sock, seconds=10):
        self.sock = sock
        self.buffer = bytearray()
        self.at_end = False
        self.body = None
        sock.settimeout(seconds)

    def fill(self, size=65536):
        """Reads something more; False at the end."""
        if self.at_end:
            return False
        try:
            got = self.sock.recv(size)
        except TimeoutError:
            raise Trouble(f"nothing more came in time; so far: {bytes(self.buffer[:200])!r}") from None
        except (ConnectionResetError, BrokenPipeError, OSError):
            got = b""
        if not got:
            self.at_end = True
        self.buffer += got
        return bool(got)

    def take(self, count):
        taken = bytes(self.buffer[:count])
        del self.buffer[:count]
        return taken

    def exact(self, count):
        while len(self.buffer) < count:
            if not self.fill():
                raise Closed(f"closed after {len(self.buffer)} of {count} bytes: "
                             f"{bytes(self.buffer[:200])!r}")
        return self.take(count)

    def line(self):
        while b"\n" not in self.buffer:
            if not self.fill():
                raise Closed(f"closed in a line: {bytes(self.buffer[:200])!r}")
        return self.take(self.buffer.index(b"\n") + 1).rstrip(b"\r\n")

    def head(self):
        while b"\r\n\r\n" not in self.buffer:
            if not self.fill():
                raise Closed("closed before a head" if not self.buffer else
                             f"closed in a head: {bytes(self.buffer[:200])!r}")
        text = self.take(self.buffer.index(b"\r\n\r\n") + 4)[:-4].decode("latin-1")
        return Head(text)

    def request(self):
        """The next request's head; its body is then read with self.body."""
        head = self.head()
        self.body = Body(self, head, to_end=False)
        return head

    def reply(self, method="GET"):
        """The next reply's head; its body is then read with self.body."""
        head = self.head()
        if method == "HEAD" or head.status in NO_BODY or head.status < 200:
            self.body = None
        else:
            self.body = Body(self, head, to_end=True)
        return head

    def send(self, data):
        try:
            self.sock.sendall(data)
        except TimeoutError:
            raise Trouble(f"could not send {len(data)} bytes in time") from None
        except OSError as error:
            raise Closed(f"cannot send: {error.strerror}") from None


class Body:
    """A message's body, decoded as it comes."""

    def __init__(self, stream, head, to_end):
        self.stream = stream
        self.chunked = (head.get("transfer-encoding") or "").lower() == "chunked"
        length = head.get("content-length")
        self.left = 0 if self.chunked else int(length) if length is not None else (
            None if to_end else 0)
        self.done = self.left == 0 and not self.chunked

    def some(self, most=65536):
        """Some decoded bytes; b"" at the end."""
        if self.done:
            return b""
        if self.chunked and self.left == 0:
            self.left = int(self.stream.line().split(b";")[0], 16)
            if self.left == 0:
                while self.stream.line():
                    pass
                self.done = True
                return b""
        if not self.stream.buffer and not self.stream.fill():
            if self.left is None:
                self.done = True
                return b""
            raise Closed("closed in the middle of a body")
        got = self.stream.take(most if self.left is None else min(most, self.left))
        if self.left is not None:
            self.left -= len(got)
            if self.left == 0:
                if self.chunked:
                    self.stream.exact(2)
                else:
                    self.done = True
        return got

    def exact(self, count):
        got = bytearray()
        while len(got) < count:
            some = self.some(count - len(got))
            if not some:
                raise Closed(f"the body ends after {bytes(got[:200])!r}, {count} bytes were expected")
            got += some
        return bytes(got)

    def all(self, cap=64 << 20):
        got = bytearray()
        while some := self.some():
            got += some
            if len(got) > cap:
                raise Trouble("an endless body")
        return bytes(got)


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


_libc = ctypes.CDLL(None, use_errno=True)
_SETRESUID, _SETRESGID = {"x86_64": (117, 119), "aarch64": (147, 149)}.get(os.uname().machine,
                                                                         (None, None))


@contextmanager
def as_user(uid):
    """This thread's effective user for a while: the raw system call changes no other thread."""
    if uid is None or uid == os.geteuid():
        yield
        return
    if _SETRESUID is None or os.getuid() != 0:
        raise Trouble("taking another user needs root")
    for call, value in ((_SETRESGID, uid), (_SETRESUID, uid)):
        if _libc.syscall(call, -1, value, -1):
            raise Trouble(f"cannot become user {uid}")
    try:
        yield
    finally:
        for call in (_SETRESUID, _SETRESGID):
            if _libc.syscall(call, -1, 0, -1):
                os._exit(70)


class Tls:
    """A socket with TLS on it whose sides can be closed one by one, which Python's own cannot."""

    def __init__(self, sock, context, name):
        self.sock = sock
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname=name)
        self._do(self.tls.do_handshake)

    def _flush(self):
        while data := self.outgoing.read():
            self.sock.sendall(data)

    def _do(self, call, *args):
        while True:
            try:
                return call(*args)
            except ssl.SSLWantReadError:
                self._flush()
                data = self.sock.recv(65536)
                if data:
                    self.incoming.write(data)
                else:
                    self.incoming.write_eof()
            finally:
                try:
                    self._flush()  # an alert, also
                except OSError:
                    pass

    def recv(self, size):
        try:
            return self._do(self.tls.read, size)
        except ssl.SSLZeroReturnError:
            return b""

    def sendall(self, data):
        for at in range(0, len(data), 65536):
            self._do(self.tls.write, data[at:at + 65536])

    def send(self, data):
        self.sendall(data)
        return len(data)

    def shutdown(self, how):
        """SHUT_WR: says that no more comes (close_notify), on a connection that stays."""
        try:
            self.tls.unwrap()
        except ssl.SSLError:
            pass
        self._flush()
        if how == socket.SHUT_RDWR:
            self.sock.shutdown(how)

    def __getattr__(self, name):
        return getattr(self.sock, name)


def tls_context(folder, cert=None, version=None, ca="ca"):
    """A client's: folder holds what kit/authority.py makes; version: "1.1", "1.2" or "1.3" alone."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(f"{folder}/{ca}.pem")
    if cert:
        context.set_ciphers("DEFAULT@SECLEVEL=0")  # a weak one must be refused by the gate
        context.load_cert_chain(f"{folder}/{cert}.pem", f"{folder}/{cert}.key")
    if version:
        context.set_ciphers("DEFAULT@SECLEVEL=0")
        wanted = getattr(ssl.TLSVersion, f"TLSv{version.replace('.', '_')}")
        context.minimum_version = context.maximum_version = wanted
    return context


def connect(path, uid=None, seconds=10, tls=None):
    """path: of a unix socket, tcp://127.0.0.1:PORT, or tls://... with a context;
    FROM@ before the host says which address it comes from."""
    tcp = str(path).startswith(("tcp://", "tls://"))
    sock = socket.socket(socket.AF_INET if tcp else socket.AF_UNIX)
    sock.settimeout(seconds)
    try:
        with as_user(uid):
            if tcp:
                source, _, place = str(path)[len("tcp://"):].rpartition("@")
                host, port = place.rsplit(":", 1)
                if source:
                    sock.bind((source, 0))
                sock.connect((host, int(port)))
            else:
                sock.connect(str(path))
    except OSError as error:
        sock.close()
        raise Trouble(f"cannot connect to {path}: {error.strerror}") from None
    if tls:
        sock = Tls(sock, tls, "localhost")
    return Stream(sock, seconds)


def ask(path, method, target, headers=(), body=None, uid=None, seconds=10):
    """One exchange on a connection of its own: (head, body)."""
    stream = connect(path, uid, seconds)
    try:
        lines = [f"{method} {target} HTTP/1.1", "Host: docker", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in headers]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        stream.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b""))
        head = stream.reply(method)
        return head, stream.body.all() if stream.body else b""
    finally:
        stream.sock.close()


class Server:
    """Accepts on a unix socket, or at tcp://ADDRESS:PORT, and hands each connection to a thread.

    tls: an ssl.SSLContext; who does not shake hands with it is sent away.
    """

    def __init__(self, path, handle, tls=None):
        self.path, self.handle, self.tls = str(path), handle, tls
        self.lock = threading.Lock()
        self.open = set()
        self.listener = None

    def start(self):
        if self.path.startswith("tcp://"):
            host, port = self.path.removeprefix("tcp://").rsplit(":", 1)
            self.listener = socket.create_server((host, int(port)), backlog=256)
        else:
            if os.path.exists(self.path):
                os.unlink(self.path)
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(self.path)
            os.chmod(self.path, 0o666)
            self.listener.listen(256)
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()
        return self

    def _accept(self, listener):
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with self.lock:
                if listener is not self.listener:
                    sock.close()
                    return
                self.open.add(sock)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        try:
            if self.tls:
                sock = self._shake_hands(sock)
            if sock:
                self.handle(sock)
        finally:
            with self.lock:
                self.open.discard(sock)
            if sock:
                sock.close()

    def _shake_hands(self, plain):
        try:
            sock = self.tls.wrap_socket(plain, server_side=True)
        except OSError:
            plain.close()
            return None
        with self.lock:
            self.open.discard(plain)
            self.open.add(sock)
        return sock

    def stop(self):
        """Closes the listener and every connection, as an engine that dies does."""
        with self.lock:
            listener, self.listener = self.listener, None
            victims = list(self.open)
        if listener:
            try:
                listener.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            listener.close()
            if os.path.exists(self.path):
                os.unlink(self.path)
        for sock in victims:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
