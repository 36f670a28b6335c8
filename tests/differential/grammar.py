"""Request number N of a seed: always the same one, whatever was asked before."""

import random
import re
import urllib.parse

import mutate
import prepared
import text
import values

# Networks are few and dear, and engines run out of addresses: one request in fifty, 200 a run.
NETWORK_EVERY, NETWORKS_MAX = 50, 200
KINDS = [("create", 62), ("volume", 10), ("exec", 12), ("pull", 5), ("update", 3),
         ("rename", 2), ("start", 1), ("restart", 0.5), ("connect", 1), ("disconnect", 0.5),
         ("exec start", 1)]
SCHEMA = {"create": "CONFIG", "volume": "VOLUME", "exec": "EXEC", "network": "NETWORK"}
# Of each schema: what is nearly always there, and how often anything else is.
ALWAYS = {"CONFIG": {"Image": 0.98, "HostConfig": 0.85, "NetworkingConfig": 0.08},
          "VOLUME": {"Name": 0.95}, "EXEC": {"Cmd": 0.97}, "NETWORK": {"Name": 0.98}}
SOMETIMES = {"CONFIG": 0.05, "UPDATE": 0.15, "HOST": 0.045, "VOLUME": 0.4, "EXEC": 0.2, "NETWORK": 0.2,
             "NETWORKING": 0.9}


class Request:
    def __init__(self, kind):
        self.kind, self.group = kind, "plain"
        self.method, self.version, self.path, self.query = "POST", "/v1.41", "", ""
        self.headers = []
        self.type = "application/json"
        self.tree = None  # what the body is made of; None: the body stands as it is
        self.body = b""
        self.fresh = ""
        self.base = None   # what is made beside the gate before the request
        self.chunked = False

    @property
    def target(self):
        return f"{self.version}{self.path}" + (f"?{self.query}" if self.query else "")

    def document(self):
        return self.tree.text().encode("utf-8", "surrogatepass") if self.tree else self.body

    def bytes(self):
        body = self.document()
        lines = [f"{self.method} {self.target} HTTP/1.1", "Host: docker"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        if self.type and self.kind != "pull":
            lines.append(f"Content-Type: {self.type}")
        if self.chunked:
            lines.append("Transfer-Encoding: chunked")
            half = len(body) // 2
            body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (
                body[:half], body[half:]) if part) + b"0\r\n\r\n"
        else:
            lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join(lines).encode("utf-8") + b"\r\n\r\n" + body


def _body(rng, w, schemas, schema):
    found = {}
    for field in schemas[schema]:
        chance = ALWAYS.get(schema, {}).get(field.name, SOMETIMES.get(schema, 0.3))
        if rng.random() > chance:
            continue
        if field.of in ("HOST", "NETWORKING"):
            found[field.name] = _body(rng, w, schemas, field.of)
        else:
            found[field.name] = values.make(rng, w, schemas, schema, field)
    # Most of what is tried should come to life, or nothing is compared.
    if schema == "CONFIG" and "Image" in found and rng.random() < 0.8:
        found["Image"] = "busybox:latest"
    return found


def _pull(rng, w, request):
    name = rng.choice([f"{w.registry}/{w.fresh}/app"] * 6 + [f"{w.registry}/{w.fresh}",
                      f"{w.registry}/{w.fresh}/App", f"{w.registry}/../{w.fresh}", f"{w.registry}/"])
    tag = rng.choice(["1", "latest", "sha256:" + "ab" * 32, "a b", "", "1:2", ":1", "@x", "../1"])
    keys = [("fromImage", name)]
    if rng.random() < 0.8:
        keys.append(("tag", tag))
    elif rng.random() < 0.6:
        keys[0] = ("fromImage", name + rng.choice([":1", "@sha256:" + "cd" * 32, ":1@x", "@", ":"]))
    if rng.random() < 0.1:
        keys.append(("platform", rng.choice(["", "linux/amd64", "x"])))
    if rng.random() < 0.2:
        keys = [("fromSrc", f"http://{w.registry}/{w.fresh}.tar"), ("repo", f"df/{w.fresh}")]
    request.path = "/images/create"
    request.query = "&".join(f"{key}={urllib.parse.quote(value, safe='/:')}" for key, value in keys)
    request.type = ""
    if rng.random() < 0.25:
        request.group = "query"
        request.query = mutate.query(rng, "tag", "1") + f"&fromImage={name}"


def _head(rng, w, request):
    """Changes of what stands around the body; the group's name, or None."""
    which = rng.choice(["path", "version", "query", "type", "method", "header", "chunked", "bytes"])
    if which == "path":
        request.path = mutate.path(rng, request.path)
    elif which == "version":
        request.version = mutate.version(rng)
    elif which == "query":
        request.query = mutate.query(rng, "name", w.fresh)
    elif which == "type":
        request.type = rng.choice(mutate.CONTENT_TYPES)
    elif which == "method":
        request.method = rng.choice(["post", "PUT", "PATCH", "OPTIONS", "Post", "GET", "HEAD"])
    elif which == "header":
        request.headers.append(rng.choice([
            ("Content-Type", "application/x-www-form-urlencoded"), ("X-Registry-Auth", "e30="),
            ("Content-Encoding", "gzip"), ("Expect", "100-continue"), ("Host", "other"),
            ("X-HTTP-Method-Override", "DELETE"), ("Upgrade", "h2c"), ("Api-Version", "1.24")]))
    elif which == "chunked":
        request.chunked = True
    else:
        request.body, request.tree = mutate.bytes_around(rng, request.document()), None
    request.group = which


def make(seed, number, w, schemas):
    rng = random.Random(f"{seed}:{number}")
    kind = rng.choices([name for name, _ in KINDS], [weight for _, weight in KINDS])[0]
    if number % NETWORK_EVERY == 0 and number < NETWORK_EVERY * NETWORKS_MAX:
        kind = "network"
    request = Request(kind)
    request.fresh = w.fresh = f"df{number}"
    if kind == "pull":
        _pull(rng, w, request)
        return request
    if kind in prepared.KINDS:
        document = prepared.make(rng, w, request, lambda schema: _body(rng, w, schemas, schema))
        request.tree = None if document is None else text.of(document)
        return request
    request.path = {"create": "/containers/create", "volume": "/volumes/create",
                    "network": "/networks/create", "exec": f"/containers/{w.mine}/exec"}[kind]
    if kind == "create" and rng.random() < 0.3:
        request.query = f"name={w.fresh}"
    if rng.random() < 0.1:
        request.version = rng.choice(["", "/v1.24", "/v1.30", "/v1.40", "/v1.39"])
    request.tree = text.of(_body(rng, w, schemas, SCHEMA[kind]))
    chance = rng.random()
    if chance < 0.4 and request.tree.members:
        name = rng.choice(list(mutate.TREE))
        mutate.TREE[name](rng, request.tree)
        request.group = name
    elif chance < 0.55:
        _head(rng, w, request)
    return request


def name_of(request):
    """The container's name as the query asks for it, if it can be told."""
    found = re.search(r"(?:^|&)name=([\w.-]+)", request.query)
    return found[1] if found else None
