"""Stands in for Testcontainers' helper Ryuk, of which no image can be fetched where the tests run.

It asks the engine at /var/run/docker.sock for what version 0.11 asks for: negotiates a
version, takes filters line by line on port 8080 and answers ACK to each, and when the last of
its callers has been gone for a while it lists containers, networks, volumes and images by the
filters and removes them.
"""

import http.client
import json
import os
import socket
import sys
import threading
import time
import urllib.parse

# What there is, how it is listed and removed; "containers" are all, also those that have ended.
KINDS = {"containers": ("/containers/json?all=1&", "/containers/{}?force=1&v=1", "Id"),
         "networks": ("/networks?", "/networks/{}", "Id"),
         "volumes": ("/volumes?", "/volumes/{}?force=1", "Name"),
         "images": ("/images/json?", "/images/{}?noprune=0", "Id")}
PATIENCE = float(os.environ.get("RYUK_RECONNECTION_TIMEOUT", "10s").rstrip("s"))


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect("/var/run/docker.sock")


def ask(method, target):
    connection = Connection("docker")
    connection.request(method, target)
    reply = connection.getresponse()
    body = reply.read()
    if reply.status >= 300 and reply.status != 404:
        sys.exit(f"{method} {target}: {reply.status} {body.decode()}")
    return reply, json.loads(body) if body[:1] in (b"{", b"[") else None


class Callers:
    def __init__(self):
        self.lock, self.filters = threading.Lock(), []
        self.open, self.left = 0, time.monotonic()

    def serve(self, stream):
        with self.lock:
            self.open += 1
        with stream, stream.makefile("rb") as lines:
            for line in lines:
                labels = urllib.parse.parse_qs(line.decode().strip()).get("label", [])
                with self.lock:
                    if labels:
                        self.filters.append(labels)
                stream.sendall(b"ACK\n")
        with self.lock:
            self.open -= 1
            self.left = time.monotonic()

    def all_gone(self):
        with self.lock:
            return self.filters and not self.open and time.monotonic() - self.left > PATIENCE


def remove(base, labels):
    wanted = urllib.parse.urlencode({"filters": json.dumps({"label": dict.fromkeys(labels, True)})})
    for kind, (listing, removal, key) in KINDS.items():
        _, found = ask("GET", base + listing + wanted)
        found = (found["Volumes"] if kind == "volumes" else found) or []
        for one in found:
            if (one.get("Labels") or {}).get("org.testcontainers.ryuk") != "true":
                ask("DELETE", base + removal.format(one[key]))
                print("removed", kind, one[key], flush=True)


def main():
    reply, _ = ask("HEAD", "/_ping")
    base = "/v" + reply.getheader("Api-Version")
    ask("GET", base + "/info")
    callers = Callers()
    server = socket.create_server(("", 8080))
    print("Started", flush=True)

    def accept():
        while True:
            threading.Thread(target=callers.serve, args=(server.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    while not callers.all_gone():
        time.sleep(0.1)
    for labels in callers.filters:
        remove(base, labels)


main()
