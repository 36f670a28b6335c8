"""The engine of the soak: keeps containers, tells everybody everything, and remembers whose each one was.

What happens in it is told as Docker tells it, to whoever follows its events, and kept for who
comes later; `told` is the number of what somebody must have asked for, `lost` of what no
watcher can have been told.
"""

import bisect
import collections
import json
import re
import threading
import time
import urllib.parse

from kit import engine, wire
from kit.proc import Trouble

HISTORY = 256  # of its events dockerd keeps so many
ASKED_FOR = {"create", "start", "exec_create", "exec_start", "tag", "connect"}
NETWORK = engine.long_id("network agents")


class History:
    """What happened, in order; the callers' lock is held by whoever calls."""

    def __init__(self):
        self.kept = collections.deque(maxlen=HISTORY)  # (when, line)
        self.asked_for = []                            # when, of all that counts
        self.lost, self.lost_until, self.last = 0, 0, 0
        self.watchers = []

    def add(self, kind, action, ident, attributes):
        self.last = max(time.time_ns(), self.last + 1)
        line = json.dumps({"Type": kind, "Action": action, "scope": "local",
                           "Actor": {"ID": ident, "Attributes": attributes},
                           "time": self.last // 10**9, "timeNano": self.last}).encode() + b"\n"
        if action.partition(":")[0] in ASKED_FOR:
            self.asked_for.append(self.last)
        self.kept.append((self.last, line))
        for stream in list(self.watchers):
            try:
                stream.send(wire.chunk(line))
            except Trouble:
                self.watchers.remove(stream)
        return self.last

    def follow(self, stream, since):
        """Whoever asks is told what is kept from then on, and all that comes."""
        since = since or self.last + 1
        first = b"".join(wire.chunk(line) for when, line in self.kept if when >= since)
        oldest = self.kept[0][0] if self.kept else self.last + 1
        self.lost += sum(when > self.lost_until for when in self.asked_for[
            bisect.bisect_left(self.asked_for, since):bisect.bisect_left(self.asked_for, oldest)])
        self.lost_until = max(self.lost_until, oldest - 1)
        engine.begin_events(stream, first)
        self.watchers.append(stream)

    def away(self, forgets):
        self.watchers.clear()
        if forgets:
            self.kept.clear()


class Engine:
    def __init__(self, path):
        self.model, self.lock = engine.Model(), threading.Lock()
        self.history = History()
        self.server = wire.Server(path, self.serve)
        self.owners, self.wrong, self.changes, self.number = {}, [], 0, 0
        self.made = set()  # commands in containers, of which some are gone

    def serve(self, sock):
        stream = wire.Stream(sock, 3600)
        try:
            while True:
                head = stream.request()
                if engine.is_watcher(head):
                    self.follow(stream, head)
                    return
                if engine.is_pulse(head):
                    stream.send(engine.reply(200, []))
                    continue
                self.answer(stream, head, stream.body.all())
        except (Trouble, OSError):
            return

    def follow(self, stream, head):
        since = urllib.parse.parse_qs(head.target.partition("?")[2]).get("since", ["0"])[0]
        seconds, _, rest = since.partition(".")
        with self.lock:
            self.history.follow(stream, int(seconds) * 10**9 + int(rest or 0))
        engine.wait_for_end(stream)

    def away(self, seconds, forgets):
        """It goes and comes back; forgets: with nothing in mind of what happened before."""
        self.server.stop()
        with self.lock:
            self.history.away(forgets)
        time.sleep(seconds)
        self.server.start()

    def rows(self):
        """(id, name, labels) of all containers."""
        with self.lock:
            return [(ident, one["Name"][1:], one["Config"]["Labels"])
                    for ident, one in self.model.containers.items()]

    def answer(self, stream, head, body):
        with self.lock:
            known = self.model.answer(head.method, head.target)
            text = known and engine.reply(*known, head_only=head.method == "HEAD")
            if not known and head.target.partition("?")[0].endswith("/containers/json"):
                rows = self.model.running(head.target) if (
                    engine.is_roll_call(head) and not engine.is_comparison(head)
                ) else self.model.listed()
                text = engine.reply(200, rows)
        if text:
            stream.send(text)
            return
        path = re.sub(r"^/v[\d.]+(?=/)", "", head.target.partition("?")[0])
        if path == "/events":
            self.stream(stream, [json.dumps(event(*row)).encode() + b"\n" for row in self.rows()], 0.5)
        elif path.endswith("/logs"):
            self.stream(stream, [path.split("/")[2].encode()], 0)
        else:
            with self.lock:
                self.changes += 1
                answer = self.change(head, path, body)
            stream.send(answer)

    @staticmethod
    def stream(stream, parts, pause):
        stream.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
                    b"Content-Type: application/json\r\n\r\n" + b"".join(map(wire.chunk, parts)))
        time.sleep(pause)  # long enough to be open over some reloads
        stream.send(b"0\r\n\r\n")

    # --- what changes it; the lock is held ---

    def happens(self, action, ident, **more):
        one = self.model.containers[ident]
        return self.history.add("container", action, ident, {
            **(one["Config"]["Labels"] or {}), "name": one["Name"][1:],
            "image": one["Config"]["Image"], **more})

    def create(self, name, create):
        self.number += 1
        ident = engine.long_id(f"{name} {self.number}")
        one = self.model.add_container(ident, name, create)
        self.owners[ident] = (create.get("Labels") or {}).get("sallyport.owner", "")
        one["CreatedAt"] = self.happens("create", ident) // 10**9
        return ident

    def past_the_gate(self, name):
        """Somebody who needs no gate makes a container."""
        with self.lock:
            return self.create(name, {"Image": "evil.example/miner:1"})

    def remove(self, ident):
        if self.model.containers[ident]["State"]["Running"]:
            self.end(ident, "kill")
        self.happens("destroy", ident)
        del self.model.containers[ident]
        for command in [name for name, one in self.model.execs.items() if one["ContainerID"] == ident]:
            del self.model.execs[command]

    def clean_up(self, name):
        """Somebody removes what a caller could not, or lists would grow for ever."""
        with self.lock:
            for ident in [ident for ident, one in self.model.containers.items()
                          if one["Name"] == "/" + name]:
                self.remove(ident)

    def begin(self, ident):
        state = self.model.containers[ident]["State"]
        if state["Running"]:
            return 304
        for network in self.model.containers[ident]["NetworkSettings"]["Networks"]:
            self.history.add("network", "connect", engine.long_id("network " + network), {
                "container": ident, "name": network, "type": "bridge"})
        when = self.happens("start", ident)
        state.update(Running=True, Status="running", StartedAt=time.strftime(
            "%Y-%m-%dT%H:%M:%S", time.gmtime(when // 10**9)) + f".{when % 10**9:09}Z")
        return 204

    def end(self, ident, how):
        state = self.model.containers[ident]["State"]
        if not state["Running"]:
            return 304 if how == "stop" else 409
        for action in ("kill", "die", *(["stop"] if how == "stop" else [])):
            self.happens(action, ident)
        state.update(Running=False, Status="exited")
        return 204

    def change(self, head, path, body):
        match = re.fullmatch(r"/(containers|exec|images|networks)/([^/]+)(?:/(\w+))?", path)
        if "sallyport-watcher" in (head.get("user-agent") or ""):
            return self.never(head, path)
        if path == "/containers/create":
            name = urllib.parse.parse_qs(head.target.partition("?")[2])["name"][0]
            return engine.reply(201, {"Id": self.create(name, json.loads(body)), "Warnings": []})
        kind, ident, verb = match.groups() if match else ("", "", "")
        if kind == "containers" and self.owners.get(ident):
            return self.change_container(head, ident, verb)
        if kind == "exec" and verb == "start" and ident in self.made:
            return self.start_exec(ident)
        if kind == "images" and verb == "tag":
            query = dict(urllib.parse.parse_qsl(head.target.partition("?")[2]))
            self.history.add("image", "tag", ident, {"name": f"{query['repo']}:{query['tag']}"})
            return b"HTTP/1.1 201 Created\r\nApi-Version: 1.41\r\nContent-Length: 0\r\n\r\n"
        if kind == "networks" and verb == "connect":
            return self.connect(ident, json.loads(body)["Container"])
        return self.never(head, path)

    def start_exec(self, ident):
        if ident not in self.model.execs:
            return engine.reply(404, {"message": f"No such exec instance: {ident}"})
        self.happens("exec_start: true", self.model.execs[ident]["ContainerID"], execID=ident)
        return engine.reply(200, "")

    def never(self, head, path):
        self.wrong.append(f"{head.method} {path} should never have come")
        return engine.reply(404, {"message": "no"})

    def change_container(self, head, ident, verb):
        if ident not in self.model.containers:
            return engine.reply(404, {"message": f"No such container: {ident}"})
        if head.method == "DELETE":
            self.remove(ident)
            status = 204
        elif verb == "exec":
            self.number += 1
            made = engine.long_id(f"exec {self.number}")
            self.made.add(made)
            self.model.execs[made] = {"ID": made, "ContainerID": ident, "Running": False,
                                      "ProcessConfig": {"entrypoint": "true", "arguments": []}}
            self.happens("exec_create: true", ident, execID=made)
            return engine.reply(201, {"Id": made})
        else:
            status = self.begin(ident) if verb == "start" else self.end(ident, verb)
        if status == 409:
            return engine.reply(409, {"message": f"Container {ident} is not running"})
        return b"HTTP/1.1 %d X\r\nApi-Version: 1.41\r\n\r\n" % status

    def connect(self, network, ident):
        one = self.model.containers.get(ident)
        if network != NETWORK or not one:
            return engine.reply(404, {"message": "not found"})
        networks = one["NetworkSettings"]["Networks"]
        if one["State"]["Running"]:  # of one that does not run it is done with its start
            self.history.add("network", "connect", network, {
                "container": ident, "name": "agents", "type": "bridge"})
        networks["agents"] = {"NetworkID": network}
        return b"HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Length: 0\r\n\r\n"


def event(ident, name, labels):
    return {"Type": "container", "Action": "create", "scope": "local", "time": 1, "timeNano": 1,
            "Actor": {"ID": ident, "Attributes": {**(labels or {}), "name": name, "image": "i"}}}
