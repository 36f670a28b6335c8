#!/usr/bin/env python3
"""fetch.py PROGRAM - bundles of rules over HTTPS: what is new and signed is kept, and nothing else."""

import http.server
import re
import ssl
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

sys.dont_write_bytecode = True
sys.path[:0] = [str(Path(__file__).resolve().parents[2])]
from kit import authority  # noqa: E402

program, failed = sys.argv[1], 0


class Server(http.server.BaseHTTPRequestHandler):
    body, status, asked, tagged = b"", 200, [], True

    def do_GET(self):
        Server.asked.append((self.path, self.headers.get("If-None-Match")))
        Server.asked[-1] += (self.headers.get("Host"),)
        tag = f'"{hash(Server.body) & 0xffffff:x}"'
        if Server.tagged and Server.status == 200 and self.headers.get("If-None-Match") == tag:
            self.send_response(304)
            self.end_headers()
            return
        self.send_response(Server.status)
        if Server.tagged:
            self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(Server.body)))
        self.end_headers()
        self.wfile.write(Server.body)

    def log_message(self, *_):
        pass


def run(*words):
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


def check(label, found, want, text=""):
    global failed
    if found[0] != want or text not in found[1]:
        failed += 1
        print(f"{label}: status {found[0]}, not {want} with '{text}': {found[1]}")


def bundle(folder, name, key, rules):
    (folder / f"{name}.lua").write_text(rules)
    check(f"build {name}", run("bundle", "build", "--key", folder / key, "--out", folder / name,
                               "--name", name, folder / f"{name}.lua"), 0)
    return (folder / name).read_bytes()


def serve(folder, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{certificate}.pem", folder / f"{certificate}.key")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def main(folder):
    trusted = authority.Authority(folder, "trusted")
    trusted.issue("right", alternative=["ip:127.0.0.1"], use="server")
    trusted.issue("other", alternative=["dns:other.example"], use="server")
    authority.Authority(folder, "stranger")
    key = re.search(r'keys = { "(.*)" }', run("bundle", "key", "acme", "--out", folder / "key")[1])[1]
    run("bundle", "key", "acme", "--out", folder / "forged.key")
    first = bundle(folder, "one", "key", 'return profile "a" { operations = { "read" } }\n')
    second = bundle(folder, "two", "key", 'return profile "a" { operations = { } }\n')
    forged = bundle(folder, "forged", "forged.key", 'return profile "a" { operations = { "host" } }\n')
    port, kept = serve(folder, "right"), folder / "kept.bundle"

    def fetch(port=port, ca="trusted", target="/rules", scheme="https"):
        return run("bundle", "fetch", "--url", f"{scheme}://127.0.0.1:{port}{target}", "--to", kept,
                   "--key", key, "--ca", folder / f"{ca}.pem")

    def same(label, found, want):
        check(f"{label}: {found!r}, not {want!r}", (found == want, ""), True)

    Server.body = first
    check("another authority", fetch(ca="stranger"), 2, "certificate")
    same("nothing was kept", kept.exists(), False)
    check("new", fetch(), 0, "signed by acme")
    same("it is kept", kept.read_bytes(), first)
    check("not new", fetch(), 1)
    same("the tag was sent", Server.asked[-1][1] is not None, True)
    same("and to whom", Server.asked[-1][2], f"127.0.0.1:{port}")
    for label, body, status, text in (
            ("forged", forged, 200, "none of the known keys has signed it"),
            ("changed", first.replace(b"read", b"host"), 200, "is not what was signed"),
            ("no bundle", b"<html>", 200, "no bundle of rules"), ("nothing", b"", 200, "no bundle of rules"),
            ("too large", b"x" * (17 << 20), 200, "larger than"),
            ("an error", b"", 500, "status 500"), ("gone", b"", 404, "status 404"),
            ("somewhere else", b"", 302, "status 302")):
        Server.body, Server.status = body, status
        check(label, fetch(), 2, text)
        same(f"{label}: the last good one is kept", kept.read_bytes(), first)
    Server.body, Server.status = second, 200
    check("a newer one", fetch(), 0, "signed by acme")
    same("it is kept", kept.read_bytes(), second)
    Server.tagged = False
    check("the same without a tag", fetch(), 1)
    Server.body = first
    check("another without a tag", fetch(), 0, "signed by acme")
    same("it is kept", kept.read_bytes(), first)
    Server.tagged = True
    (folder / "kept.bundle.etag").mkdir()
    Server.body = second
    check("its tag cannot be written", fetch(), 0, "is kept, but not its tag")
    same("it is kept", kept.read_bytes(), second)
    check("the same, for which there is no tag", fetch(), 1)
    (folder / "kept.bundle.etag").rmdir()
    for odd in (f"{port}x", f"+{port}", "0", "65536", f"{port + 65536}", f"0{port}", "", "-1"):
        check(f"port {odd!r}", fetch(port=odd), 2, "no port between 1 and 65535")
    check("of another name", fetch(port=serve(folder, "other")), 2, "certificate")
    check("without TLS", fetch(scheme="http"), 2, "is no URL")
    check("a split head", fetch(target="/x HTTP/1.1\r\nX: y"), 2, "printable")
    check("nobody there", fetch(port=1), 2, "refused")
    kept.unlink()
    check("lost here, so new", fetch(), 0, "signed by acme")


with tempfile.TemporaryDirectory(prefix="sp-") as name:
    main(Path(name))
sys.exit(failed > 0)
