"""A C2SP witness (tlog-witness, tlog-cosignature) over HTTPS: what it saw of a log it holds it to."""

import base64
import hashlib
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import check

NAME = "witness.example/w1"


def grown(old_size, old_root, size, root, proof):
    """RFC 9162, section 2.1.4.2: is the tree of `size` one that has grown from the old one?"""
    if old_size == 0 or old_size == size:
        return not proof and (old_size == 0 or old_root == root)
    path = list(proof)
    if old_size & (old_size - 1) == 0:
        path.insert(0, old_root)
    if not path:
        return False
    fn, sn = old_size - 1, size - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    fr = sr = path[0]
    for node in path[1:]:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            fr, sr = hashlib.sha256(b"\1" + node + fr).digest(), hashlib.sha256(b"\1" + node + sr).digest()
            while fn and not fn & 1:
                fn, sn = fn >> 1, sn >> 1
        else:
            sr = hashlib.sha256(b"\1" + sr + node).digest()
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and fr == old_root and sr == root


class Witness:
    def __init__(self, context, log_key):
        self.key, self.log_key = Ed25519PrivateKey.generate(), log_key
        self.size, self.root, self.asked = 0, b"", []
        public = self.key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        self.id = hashlib.sha256(NAME.encode() + b"\n\x04" + public).digest()[:4]
        self.vkey = NAME + "+" + self.id.hex() + "+" + base64.b64encode(b"\x04" + public).decode()
        witness = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                status, answer = witness.answer(self.path, body)
                witness.asked.append(status)
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.server.handle_error = lambda *_: None
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, path, body):
        if path != "/w/add-checkpoint":
            return 404, b""
        head, note_text = body.split("\n\n", 1)
        lines = head.split("\n")
        old = int(lines[0].removeprefix("old "))
        note = check.Note.all_in(note_text)[0]
        if not note.signed_by(self.log_key):
            return 403, b"no key that is known"
        if old != self.size:
            return 409, f"{self.size}\n".encode()
        if not grown(old, self.root, note.size, note.root, [base64.b64decode(line) for line in lines[1:]]):
            return 422, b"no proof"
        self.size, self.root = note.size, note.root
        now = int(time.time())
        text = check.Note.text_of(note.origin, note.size, note.root)
        signature = self.key.sign(f"cosignature/v1\ntime {now}\n{text}".encode())
        line = base64.b64encode(self.id + struct.pack(">Q", now) + signature).decode()
        return 200, f"\u2014 {NAME} {line}\n".encode()

    def end(self):
        self.server.shutdown()
        self.server.server_close()
