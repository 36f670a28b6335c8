"""What records are brought to: a database, and peers that a test can make slow, wrong or absent."""

import os
import pwd
import re
import shutil
import socket
import ssl
import struct
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from kit import proc
from kit.proc import Trouble

NOBODY = pwd.getpwnam("nobody")


class Postgres:
    """A cluster of its own on a unix socket, under an unprivileged user."""

    def __init__(self, folder):
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
        if not found:
            raise Trouble("no PostgreSQL here: tests/install")
        self.bin, self.folder = found[-1], Path(folder)
        self.folder.mkdir()
        self.as_root = os.getuid() == 0
        if self.as_root:
            os.chown(self.folder, NOBODY.pw_uid, NOBODY.pw_gid)
        self.run("initdb", "-D", self.folder / "data", "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8",
                 "--locale=C")
        self.start()

    def run(self, program, *arguments):
        who = {"user": NOBODY.pw_uid, "group": NOBODY.pw_gid, "extra_groups": []} if self.as_root else {}
        done = subprocess.run([self.bin / program, *map(str, arguments)], stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, cwd="/", **who)
        if done.returncode:
            raise Trouble(f"{program}: {done.stdout}")
        return done.stdout

    def start(self):
        options = f"-c listen_addresses='' -c unix_socket_directories='{self.folder}' -c fsync=off -c max_connections=20"
        self.run("pg_ctl", "-D", self.folder / "data", "-l", self.folder / "server.log", "-w", "-o", options, "start")

    def stop(self, how="immediate"):
        self.run("pg_ctl", "-D", self.folder / "data", "-m", how, "-w", "stop")

    def connection(self, base="audit", user="postgres"):
        return f"host={self.folder} dbname={base} user={user}"

    def ask(self, sql, base="audit", user="postgres"):
        """Rows of texts."""
        out = self.run("psql", "-h", self.folder, "-U", user, "-d", base, "-XAtq", "-F", "\t", "-v", "ON_ERROR_STOP=1",
                       "-c", sql)
        return [line.split("\t") for line in out.splitlines()]

    def fresh(self):
        self.ask("DROP DATABASE IF EXISTS audit WITH (FORCE)", "postgres")
        self.ask("CREATE DATABASE audit", "postgres")


class Datagrams:
    """A unix socket that takes datagrams; it reads only while it is told to."""

    def __init__(self, path):
        self.path, self.got = Path(path), []
        self.path.unlink(missing_ok=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.path))
        self.socket.settimeout(0.1)
        self.ended, self.thread = threading.Event(), None

    def has_some(self):
        """Something was sent and not read yet."""
        try:
            return bool(self.socket.recv(1, socket.MSG_PEEK))
        except TimeoutError:
            return False

    def read(self):
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        return self

    def _read(self):
        while True:
            try:
                self.got.append(self.socket.recv(1 << 20))
            except TimeoutError:
                if self.ended.is_set():
                    return
            except OSError:
                return

    def end(self):
        """All that was sent has been read then."""
        self.ended.set()
        if self.thread:
            self.thread.join(10)
        self.socket.close()
        self.path.unlink(missing_ok=True)


class Stream:
    """A TLS server that takes octet-counted messages; breaks after so many bytes of a connection."""

    def __init__(self, context, port=0):
        self.context, self.got, self.connections = context, [], 0
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("127.0.0.1", port))
        self.socket.listen(5)
        self.port = self.socket.getsockname()[1]
        self.break_after = None
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        while True:
            try:
                plain, _ = self.socket.accept()
            except OSError:
                return
            self.connections += 1
            plain.settimeout(30)
            try:
                with self.context.wrap_socket(plain, server_side=True) as tls:
                    self._take(tls)
            except (OSError, ssl.SSLError):
                pass
            finally:
                plain.close()

    def _take(self, tls):
        data, total = b"", 0
        while True:
            piece = tls.recv(65536)
            if not piece:
                return
            total += len(piece)
            data += piece
            while (match := re.match(rb"([1-9][0-9]*) ", data)) and len(data) >= match.end() + int(match[1]):
                end = match.end() + int(match[1])
                self.got.append(data[match.end():end])
                data = data[end:]
            if self.break_after and total > self.break_after:
                self.break_after = None
                # At once, with what was not read lost: a reset.
                tls.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return

    def end(self):
        self.socket.close()


class Web:
    """Answers POSTs with the statuses that it is given, then with 204."""

    def __init__(self, context):
        self.got, self.heads, self.statuses = [], [], []
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                web.heads.append((self.path, dict(self.headers)))
                status = web.statuses.pop(0) if web.statuses else 204
                if status // 100 == 2:
                    web.got.append(body)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.server.handle_error = lambda *_: None
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self):
        self.server.shutdown()
        self.server.server_close()


def entry(data):
    """A datagram of journald's own protocol as {field: bytes}."""
    fields = {}
    while data:
        name, _, rest = data.partition(b"\n")
        size = struct.unpack("<Q", rest[:8])[0]
        fields[name.decode()] = rest[8:8 + size]
        if rest[8 + size:9 + size] != b"\n":
            raise Trouble(f"field {name} does not end")
        data = rest[9 + size:]
    return fields


def remove(folder):
    shutil.rmtree(folder, ignore_errors=True)


__all__ = ["Postgres", "Datagrams", "Stream", "Web", "entry", "remove", "proc"]
