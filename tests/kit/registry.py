"""A registry on the loopback address, and the proxy by which an engine finds it under any name.

An engine with HTTP_PROXY set to `url` asks it for http://reg.example/v2/...: so images come from
reg.example without that name meaning anything to the machine. What is pushed can be pulled.
"""

import gzip
import hashlib
import http.server
import json
import re
import threading

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG = "application/vnd.docker.container.image.v1+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"


def digest_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Registry:
    def __init__(self):
        self.blobs = {}      # digest: bytes
        self.manifests = {}  # (repository with its host, tag or digest): (type, bytes)
        self.uploads = {}
        outer = self

        class Handler(_Handler):
            registry = outer

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def start(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def blob(self, data):
        digest = digest_of(data)
        self.blobs[digest] = data
        return digest

    def offer(self, name, archive, config):
        """Puts an image of one layer, an archive as bytes, under host/repository:tag."""
        packed = gzip.compress(archive, 1, mtime=0)
        about = json.dumps({
            "architecture": "amd64", "os": "linux", "created": "2024-01-01T00:00:00Z",
            "config": config, "rootfs": {"type": "layers", "diff_ids": [digest_of(archive)]},
            "history": [{"created": "2024-01-01T00:00:00Z", "created_by": name}],
        }).encode()
        manifest = json.dumps({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": {"mediaType": CONFIG, "size": len(about), "digest": self.blob(about)},
            "layers": [{"mediaType": LAYER, "size": len(packed), "digest": self.blob(packed)}],
        }).encode()
        repository, _, tag = name.rpartition(":")
        return self.put(repository, tag, MANIFEST, manifest)

    def put(self, repository, reference, kind, manifest):
        digest = digest_of(manifest)
        for key in (reference, digest):
            self.manifests[repository, key] = (kind, manifest)
        return digest


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    registry = None

    def log_message(self, *_):
        pass

    def say(self, status, headers=None, body=b""):
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def place(self):
        """(host/repository, "manifests" | "blobs", reference); what is asked without a proxy is docker.io."""
        found = re.match(r"(?:http://([^/]+))?/v2/(.+)/(manifests|blobs)/([^?]+)", self.path)
        if not found:
            return None
        host = found[1] or "docker.io"
        return f"{host}/{found[2]}", found[3], found[4]

    def body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            data = b""
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return data
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def do_CONNECT(self):
        """Who tries TLS first is answered in plain text, and tries again without."""
        self.say(200)
        self.connection.recv(1)
        self.wfile.write(b"HTTP/1.0 400 Bad Request\r\n\r\n")
        self.close_connection = True

    def do_GET(self):
        place = self.place()
        if not place:
            self.say(200, {"Docker-Distribution-Api-Version": "registry/2.0"}, b"{}")
        elif place[1] == "manifests" and (place[0], place[2]) in self.registry.manifests:
            kind, data = self.registry.manifests[place[0], place[2]]
            self.say(200, {"Content-Type": kind, "Docker-Content-Digest": digest_of(data)}, data)
        elif place[1] == "blobs" and place[2] in self.registry.blobs:
            self.say(200, {"Content-Type": "application/octet-stream",
                           "Docker-Content-Digest": place[2]}, self.registry.blobs[place[2]])
        else:
            self.say(404, {"Content-Type": "application/json"},
                     b'{"errors":[{"code":"MANIFEST_UNKNOWN","message":"not here"}]}')

    do_HEAD = do_GET

    def do_POST(self):
        self.body()
        key = f"u{len(self.registry.uploads)}"
        self.registry.uploads[key] = b""
        self.say(202, {"Location": self.path.partition("?")[0].rstrip("/") + "/" + key,
                       "Range": "0-0", "Docker-Upload-UUID": key})

    def do_PATCH(self):
        key = self.path.partition("?")[0].rpartition("/")[2]
        self.registry.uploads[key] += self.body()
        self.say(202, {"Location": self.path, "Docker-Upload-UUID": key,
                       "Range": f"0-{len(self.registry.uploads[key]) - 1}"})

    def do_PUT(self):
        place, data = self.place(), self.body()
        if place[1] == "manifests":
            digest = self.registry.put(place[0], place[2], self.headers["Content-Type"], data)
        else:
            key = self.path.partition("?")[0].rpartition("/")[2]
            digest = self.registry.blob(self.registry.uploads.pop(key, b"") + data)
        self.say(201, {"Docker-Content-Digest": digest, "Location": self.path})
