"""A caller of the sandbox API, by its socket alone."""

import base64
import json
import socket

PATIENCE = 60  # seconds; when nothing has come for so long the test has failed


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        return self.json["error"]["code"]

    def want(self, *statuses):
        assert self.status in statuses, f"{self.status}, not {statuses}: {self.body[:1500]!r}"
        return self


def read_head(file):
    line = file.readline()
    if not line:
        raise EOFError("no answer")
    headers = {}
    while (field := file.readline().strip()):
        name, _, value = field.decode().partition(":")
        headers[name.lower()] = value.strip()
    return int(line.split()[1]), headers


def read_chunks(file):
    while (size := int(file.readline(), 16)):
        yield file.read(size)
        file.readline()


class Api:
    def __init__(self, path, token=None):
        self.path, self.token = str(path), token

    def connect(self, method, target, body=None, headers=()):
        """The connection's file, with the request sent."""
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {target} HTTP/1.1", "Host: gate", "Connection: close",
                 f"Content-Length: {len(data)}", *headers]
        if self.token:
            lines.append(f"Authorization: Bearer {self.token}")
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(PATIENCE)
        sock.connect(self.path)
        try:
            sock.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
        except BrokenPipeError:
            pass  # it was answered before all was sent
        file = sock.makefile("rb")
        sock.close()  # the file holds it
        return file

    def ask(self, method, target, body=None, headers=()):
        with self.connect(method, target, body, headers) as file:
            status, headers = read_head(file)
            if headers.get("transfer-encoding") == "chunked":
                return Answer(status, headers, b"".join(read_chunks(file)))
            length = headers.get("content-length")
            return Answer(status, headers, file.read() if length is None and status != 204 else
                          file.read(int(length or 0)))

    def make(self, **wanted):
        return Sandbox(self, self.ask("POST", "/v1/sandboxes", wanted).want(201).json)


def octets(tree, key, encoding):
    """What was said, whichever way it was written."""
    return base64.b64decode(tree[key]) if tree[encoding] == "base64" else tree[key].encode()


class Sandbox:
    def __init__(self, api, made):
        self.api, self.made, self.id = api, made, made["id"]
        self.path = f"/v1/sandboxes/{self.id}"

    def run(self, *argv, **more):
        """A command that ends: its answer, with stdout and stderr as octets."""
        got = self.api.ask("POST", self.path + "/exec", {"argv": argv, **more}).want(200).json
        return {**got, "stdout": octets(got, "stdout", "stdout_encoding"),
                "stderr": octets(got, "stderr", "stderr_encoding")}

    def sh(self, script, *argv, **more):
        return self.run("sh", "-c", script, "sh", *argv, **more)

    def begin(self, *argv, **more):
        """A command that runs by itself; its path."""
        made = self.api.ask("POST", self.path + "/exec", {"argv": argv, "detach": True, **more}).want(202).json
        return f"{self.path}/exec/{made['id']}"

    def rows(self, *argv, **more):
        """A command whose output is a stream: yields its rows, the first of which tells its id."""
        with self.api.connect("POST", self.path + "/exec", {"argv": argv, **more},
                              ["Accept: application/x-ndjson"]) as file:
            status, headers = read_head(file)
            assert status == 200, (status, headers)
            yield from rows_of(read_chunks(file))

    def file(self, path):
        return f"{self.path}/files/{path.lstrip('/')}"

    def end(self):
        return self.api.ask("DELETE", self.path)


def rows_of(pieces):
    text = b""
    for piece in pieces:
        text += piece
        while b"\n" in text:
            line, _, text = text.partition(b"\n")
            yield json.loads(line)
    assert not text, text[:100]
