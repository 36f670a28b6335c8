"""Who calls in the soak, and what it must never be shown; and who troubles the gate meanwhile."""

import itertools
import json
import random
import re
import threading
import time

from kit import proc, wire
from kit.proc import Trouble

PATIENCE = 30          # seconds after which a caller counts as hung
NONE, READ, DATA, FULL = range(4)
NUMBERS = itertools.count(1)  # no name is given twice
ANSWERED = (200, 201, 204)

# `pids` is what a reload changes.
PROFILES = """
local function caller(name, visibility, quota)
	return profile(name) {
		operations = { "read", "container.run", "exec", "network.connect", "image.tag" },
		images = { "reg.example/team/*" },
		networks = { "agents" },
		isolation = { min = "process" },
		limits = { memory = "2GiB", cpus = 2, pids = 512 },
		labels = { "tier" },
		visibility = visibility,
		quota = quota,
		harden = true,
	}
end

return {
	caller("own", { "own" }),
	caller("label", { "own", { label = "tier=front" } }),
	caller("name", { "own", { name = "web-*", access = "data" } }),
	caller("all", { "own", { all = true } }),
	caller("sum", { "own" }, { containers = 1000 }),   -- what runs is counted at each start
}
"""
KINDS = ("own", "label", "name", "all", "sum")


def access(caller, name, labels):
    """What a caller may do with a container, by its profile: the second opinion on the gate's."""
    if labels.get("sallyport.owner") == caller.name:
        return FULL
    return {"own": NONE, "label": READ if labels.get("tier") == "front" else NONE,
            "name": DATA if name.startswith("web-") else NONE, "all": READ,
            "sum": NONE}[caller.kind]


class Caller(threading.Thread):
    """Its own containers, and many a look at those of others.  Errors are fine, what must not be seen is not."""

    def __init__(self, folder, number, fake, stop, pause):
        super().__init__(daemon=True)
        self.path, self.fake, self.stop, self.pause = folder / "g.sock", fake, stop, pause
        self.name, self.kind, self.uid = f"c{number}", KINDS[number % len(KINDS)], 5000 + number
        self.random = random.Random(f"{random.random()} {number}")
        self.served = self.shown = self.refused = self.troubled = 0
        self.problems = []

    def run(self):
        while not self.stop.is_set():
            try:
                self.life()
            except Trouble as trouble:
                if "in time" in str(trouble):
                    self.problems.append(f"{self.name} hangs: {trouble}")
                self.troubled += 1
            except Exception as error:  # a thread that dies unseen proves nothing
                self.problems.append(f"{self.name}: {error!r}")
            self.think()

    def think(self):
        """As people and programs do; what is asked in between is asked at once."""
        self.stop.wait(0.05 + self.random.uniform(0, 2 * self.pause))

    def ask(self, stream, method, target, body=None):
        text = json.dumps(body).encode() if body is not None else b""
        head = f"{method} /v1.41{target} HTTP/1.1\r\nHost: d\r\nContent-Length: {len(text)}\r\n"
        if text:
            head += "Content-Type: application/json\r\n"
        stream.send(head.encode() + b"\r\n" + text)
        reply = stream.reply(method)
        text = stream.body.all() if stream.body else b""
        if reply.status >= 500:
            raise Trouble(f"{method} {target}: {reply.status} {text[:200]!r}")
        self.served += 1
        return reply.status, text

    def must(self, stream, method, target, body=None):
        status, text = self.ask(stream, method, target, body)
        if status not in ANSWERED:
            self.problems.append(f"{self.name}: {method} {target}: {status} {text[:300]!r}")
            raise Trouble("not as it should be")
        return text

    def life(self):
        name = f"{self.random.choice(['web', 'db'])}-{self.name}-{next(NUMBERS)}"
        stream = wire.connect(self.path, self.uid, seconds=PATIENCE)
        try:
            made = json.loads(self.must(stream, "POST", f"/containers/create?name={name}", {
                "Image": "reg.example/team/app:1", "HostConfig": {},
                "Labels": self.random.choice([{}, {"tier": "front"}, {"tier": "back"}])}))["Id"]
            if self.random.random() < 0.3:
                self.connect(stream, made)
            self.must(stream, "POST", f"/containers/{made}/start")
            self.think()
            self.work(stream, made, name)
            self.look(stream, made)
            for _ in range(4):
                self.try_another(stream)
            self.think()
            self.must(stream, "GET", f"/containers/{made}/logs?stdout=1")
            self.must(stream, "POST", f"/containers/{made}/stop")
            self.must(stream, "DELETE", f"/containers/{made}")
        finally:
            stream.sock.close()
            self.fake.clean_up(name)

    def connect(self, stream, made):
        self.must(stream, "POST", "/networks/agents/connect", {"Container": made})

    def work(self, stream, made, name):
        """What an engine tells of, beside containers that come and go."""
        what = self.random.random()
        if what < 0.3:
            self.connect(stream, made)
        elif what < 0.6:
            self.must(stream, "POST", "/images/reg.example/team/app:1/tag?"
                      f"repo={self.name}/app&tag={name}")
        for _ in range(self.random.randrange(3)):
            command = json.loads(self.must(stream, "POST", f"/containers/{made}/exec",
                                           {"Cmd": ["true"]}))["Id"]
            self.must(stream, "POST", f"/exec/{command}/start", {"Detach": True})

    def look(self, stream, made):
        """Lists and events: with one's own, without what is hidden."""
        rows = [(row["Id"], row["Names"][0][1:], row["Labels"])
                for row in json.loads(self.must(stream, "GET", "/containers/json?all=1"))]
        if made not in [ident for ident, _, _ in rows]:
            self.problems.append(f"{self.name} does not see its own")
        if self.random.random() < 0.2:
            for line in self.must(stream, "GET", "/events").splitlines():
                actor = json.loads(line)["Actor"]
                rows.append((actor["ID"], actor["Attributes"]["name"], actor["Attributes"]))
        for ident, name, labels in rows:
            self.shown += 1
            # By what the engine knows, not by what was shown.
            truth = {**labels, "sallyport.owner": self.fake.owners[ident]}
            if access(self, name, truth) == NONE:
                self.problems.append(f"{self.name} ({self.kind}) is shown {name} {labels}")

    def try_another(self, stream):
        rows = [row for row in self.fake.rows() if row[2].get("sallyport.owner") != self.name]
        if not rows:
            return
        ident, name, labels = self.random.choice(rows)
        has = access(self, name, labels)
        method, what, needs, body = self.random.choice([
            ("GET", "/json", READ, None), ("GET", "/logs?stdout=1", DATA, None),
            ("POST", "/stop", FULL, None), ("POST", "/start", FULL, None),
            ("POST", "/kill", FULL, None), ("DELETE", "?force=1", FULL, None),
            ("POST", "/exec", FULL, {"Cmd": ["true"]})])
        ident = self.random.choice([ident, ident[:12], name])
        status, text = self.ask(stream, method, f"/containers/{ident}{what}", body)
        # Somebody may have removed it meanwhile, so that "not found" is always an answer.
        right = status == 404 or (has != NONE and status == (200 if has >= needs else 403))
        self.refused += status != 200
        if not right:
            self.problems.append(f"{self.name} ({self.kind}): {method} {what} of {name} {labels}: {status} "
                                 f"{text[:200]!r}")


class Chaos(threading.Thread):
    """Reloads, deaths of workers and of the watcher, absences of the engine, and somebody who goes
    past the gate."""

    def __init__(self, guard, fake, stop, every):
        super().__init__(daemon=True)
        self.guard, self.fake, self.stop, self.every = guard, fake, stop, every
        self.random = random.Random(random.random())
        self.done = {"reload": 0, "worker": 0, "watcher": 0, "absence": 0, "restart": 0, "intruder": 0}
        self.problems, self.intruders = [], []

    def run(self):
        coming = []  # each as often as the others
        while not self.stop.wait(self.random.uniform(0.2, 1.8) * self.every):
            coming = coming or self.random.sample([*self.done, "reload"], len(self.done) + 1)
            what = coming.pop()
            try:
                getattr(self, what)()
                self.done[what] += 1
            except Exception as error:
                self.problems.append(f"{what}: {error!r}")

    def reload(self):
        pids = 500 + self.done["reload"] % 7
        profiles = self.guard.profiles / "main.lua"
        profiles.write_text(re.sub(r"pids = \d+", f"pids = {pids}", profiles.read_text()))
        status, out, errors = self.guard.run("reload", "--config", self.guard.config)
        # A worker that is killed while a reload starts others can end that reload: the old rules stay.
        if status and "worker" not in out + errors:
            self.problems.append(f"reload: {status} {out}{errors}")

    def kill_one(self, role):
        pids = self.guard.role(role)
        if pids:
            proc.kill(self.random.choice(pids))

    def worker(self):
        self.kill_one("worker")

    def watcher(self):
        self.kill_one("watcher")

    def absence(self):
        self.fake.away(self.random.uniform(0, 0.3), forgets=False)

    def restart(self):
        self.fake.away(self.random.uniform(0, 0.3), forgets=True)

    def intruder(self):
        """Past the gate; told to a watcher before anything else happens."""
        name = f"intruder-{next(NUMBERS)}"
        proc.until("a watcher follows", PATIENCE, lambda: self.fake.history.watchers)
        self.fake.past_the_gate(name)
        self.intruders.append(name)
