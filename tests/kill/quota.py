"""Quotas under load: many callers of one owner at once, on several workers, while workers die and rules change.

The engine takes its time with every start, and says at each moment how much runs. It must never be
more than the quota; and of many who ask at once exactly so many must get it as there is room for.
"""

import json
import random
import re
import threading
import time
import urllib.parse
from pathlib import Path

from kit import engine, gate, proc, wire
from kit.proc import Trouble

MIB = 1 << 20
ROOM = 5  # containers
MEMORY = 1000 * MIB
CROWD = 64

CONFIG = """
log {{ dir = "{dir}/log", claim_ms = 1000 }}
profiles {{ "{dir}/profiles" }}
backend "engine" {{ kind = "docker", address = "unix://{dir}/e.sock" }}
identity "load" {{ uid = 0, profile = "main" }}
listener "main" {{ socket = "{dir}/g.sock", mode = "0666", backend = "engine", identities = {{ "load" }} }}
limits {{ workers = 4, connections_per_uid = 1000, engine_ms = 3000 }}
"""

PROFILE = """
return profile "main" {
	operations = { "read", "container.run", "container.update" },
	images = { "reg.example/team/*" },
	isolation = { min = "process" },
	limits = { memory = "2GiB", cpus = 2, pids = 512 },
	quota = { containers = %d, memory = %d },
	harden = true,
}
"""


class Engine:
    """Starts take a while; `peak` is the most that ever ran at once."""

    def __init__(self, path):
        self.model, self.lock = engine.Model(), threading.RLock()
        self.server = wire.Server(path, self.serve)
        self.number = self.lists = self.starts = 0
        self.peak = self.peak_memory = 0
        self.slow = (0.01, 0.05)
        self.ends = 0  # seconds after which what runs ends by itself and is removed, at most

    def running(self):
        with self.lock:
            return [c for c in self.model.containers.values() if c["State"]["Running"]]

    def memory(self):
        return sum(c["HostConfig"]["Memory"] for c in self.running())

    def look(self):
        with self.lock:
            self.peak = max(self.peak, len(self.running()))
            self.peak_memory = max(self.peak_memory, self.memory())

    def serve(self, sock):
        engine.serve(wire.Stream(sock, 3600), self.answer)

    def answer(self, head, body):
        path, _, query = head.target.partition("?")
        path = re.sub(r"^/v[\d.]+(?=/)", "", path)
        if head.method == "GET":
            with self.lock:
                if path == "/containers/json":
                    self.lists += 1
                    return engine.reply(200, self.rows(urllib.parse.parse_qs(query)))
                return engine.reply(*self.model.answer(head.method, head.target))
        if path == "/containers/create":
            return self.create(json.loads(body))
        match = re.fullmatch(r"/containers/([0-9a-f]{64})(?:/(\w+))?", path)
        found = self.model.containers.get(match[1]) if match else None
        if not found:
            return engine.reply(404, {"message": f"{head.method} {path}: there is none"})
        return self.change(found, match[2] or "remove", body)

    def rows(self, query):
        want = json.loads(query.get("filters", ["{}"])[0])
        labels = [word.split("=", 1) for word in want.get("label", {})]
        return [{"Id": c["Id"], "Names": [c["Name"]], "Labels": c["Config"]["Labels"], "State": "running"}
                for c in self.running()
                if all(c["Config"]["Labels"].get(name) == value for name, value in labels)]

    def create(self, create):
        with self.lock:
            self.number += 1
            name = f"q{self.number}"
            ident = engine.long_id(name)
            self.model.add_container(ident, name, create)
        return engine.reply(201, {"Id": ident, "Warnings": []})

    def change(self, found, what, body):
        if what in ("start", "restart"):
            if what == "restart":
                self.put(found, False)
            time.sleep(random.uniform(*self.slow))
            self.put(found, True)
            with self.lock:
                self.starts += 1
            if self.ends:
                threading.Timer(random.uniform(0, self.ends), self.end, [found]).start()
        elif what == "update":
            time.sleep(random.uniform(*self.slow))
            with self.lock:
                found["HostConfig"].update(json.loads(body))
            self.look()
            return engine.reply(200, {"Warnings": []})
        elif what == "remove":
            self.end(found)
        else:
            self.put(found, False)
        return b"HTTP/1.1 204 No Content\r\nApi-Version: 1.41\r\n\r\n"

    def put(self, found, runs):
        with self.lock:
            if runs and not found["State"]["Running"]:
                found["State"]["StartedAt"] = f"2024-01-01T00:00:00.{time.monotonic_ns()}Z"
            found["State"].update(Running=runs, Status="running" if runs else "exited")
        self.look()

    def end(self, found):
        with self.lock:
            found["State"].update(Running=False)
            self.model.containers.pop(found["Id"], None)

    def clear(self):
        for found in list(self.model.containers.values()):
            self.end(found)
        self.peak = self.peak_memory = 0


class World:
    def __init__(self, folder):
        self.folder, self.path = Path(folder), Path(folder) / "g.sock"
        self.engine = Engine(self.folder / "e.sock")
        self.engine.server.start()
        self.guard = gate.Gate(self.folder, CONFIG.format(dir=folder), {"main": PROFILE % (ROOM, MEMORY)})
        self.guard.start(self.path)

    def ask(self, method, target, document=None):
        """(status, text); (0, why) where there was no answer"""
        headers = [("Content-Type", "application/json")] if document is not None else []
        body = json.dumps(document) if document is not None else None
        try:
            head, text = wire.ask(self.path, method, target, headers, body.encode() if body else None,
                                  seconds=60)
        except (Trouble, OSError) as trouble:
            if "in time" in str(trouble):
                raise
            return 0, str(trouble)
        return head.status, text.decode() if isinstance(text, bytes) else text

    def create(self, mib=100):
        status, text = self.ask("POST", "/v1.41/containers/create", {
            "Image": "reg.example/team/app:1", "HostConfig": {"Memory": mib * MIB}})
        return json.loads(text)["Id"] if status == 201 else (status, text)

    def start(self, ident):
        return self.ask("POST", f"/v1.41/containers/{ident}/start")

    def crowd(self, work, items):
        """work(item) for all at the same moment; what each came to."""
        barrier, results = threading.Barrier(len(items)), [None] * len(items)
        failed = []

        def one(n):
            barrier.wait()
            try:
                results[n] = work(items[n])
            except Exception as trouble:  # pylint: disable=broad-except
                failed.append(f"caller {n}: {trouble!r}")
        threads = [threading.Thread(target=one, args=(n,), daemon=True) for n in range(len(items))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
            if thread.is_alive():
                raise Trouble("a caller waits for ever")
        if failed:
            raise Trouble("; ".join(failed[:5]))
        return results

    def expect(self, what, got, want):
        if got != want:
            raise Trouble(f"{what}: {got}, and should be {want}")

    def never_more(self):
        if self.engine.peak > ROOM or self.engine.peak_memory > MEMORY:
            raise Trouble(f"{self.engine.peak} containers with {self.engine.peak_memory // MIB} MiB ran at once")


def statuses(results):
    counted = {}
    for status, _ in results:
        counted[status] = counted.get(status, 0) + 1
    return counted


def exactly_so_many(world):
    """64 made before, started at once: 5 run, 59 are told why not"""
    for _ in range(3):
        made = [world.create() for _ in range(CROWD)]
        results = world.crowd(world.start, made)
        world.expect("starts", statuses(results), {204: ROOM, 403: CROWD - ROOM})
        world.expect("running", len(world.engine.running()), ROOM)
        for status, text in results:
            if status == 403 and ("quota_exceeded" not in text or "5 running containers" not in text):
                raise Trouble(f"refused with {text}")
        world.never_more()
        world.engine.clear()


def made_and_started(world):
    """64 that each make one and start it at once: 5 run"""
    def run(_):
        ident = world.create()
        return world.start(ident) if isinstance(ident, str) else ident
    results = world.crowd(run, list(range(CROWD)))
    world.expect("came to run", statuses(results).get(204), ROOM)
    world.expect("running", len(world.engine.running()), ROOM)
    world.never_more()
    world.engine.clear()


def sums_of_memory(world):
    """containers of 300 MiB in 1000 MiB: 3; a smaller one fits beside them"""
    made = [world.create(300) for _ in range(16)]
    world.expect("starts", statuses(world.crowd(world.start, made)), {204: 3, 403: 13})
    world.expect("one more of 300", world.create(300)[0], 403)
    world.expect("one of 100", world.start(world.create(100))[0], 204)
    run = [c["Id"] for c in world.engine.running()]
    results = world.crowd(lambda ident: world.ask("POST", f"/v1.41/containers/{ident}/update",
                                                  {"Memory": 375 * MIB, "MemorySwap": 750 * MIB}), run[:3])
    world.expect("three that would grow, where nothing is left", statuses(results), {403: 3})
    world.never_more()
    world.engine.clear()


def churn(world):
    """what ends by itself frees its share at once; stopped, removed and restarted ones, too"""
    world.engine.ends = 0.05
    stop = time.monotonic() + 4

    def live(n):
        ran = 0
        while time.monotonic() < stop:
            ident = world.create()
            if not isinstance(ident, str):
                continue
            if world.start(ident)[0] != 204:
                world.ask("DELETE", f"/v1.41/containers/{ident}?force=1")
                continue
            ran += 1
            if n % 3 == 0:
                world.ask("POST", f"/v1.41/containers/{ident}/restart")
            elif n % 3 == 1:
                world.ask("POST", f"/v1.41/containers/{ident}/stop")
        return ran, ""
    results = world.crowd(live, list(range(16)))
    world.engine.ends = 0
    world.never_more()
    if sum(ran for ran, _ in results) < 40:
        raise Trouble(f"hardly anything ran: {results}")
    time.sleep(0.1)  # the timers of the engine
    world.engine.clear()


def workers_die(world):
    """while workers are killed and rules read anew nothing runs above; what was sent is not forgotten"""
    world.engine.slow = (0.05, 0.4)
    made = [world.create() for _ in range(CROWD // 4)]
    over, stop = threading.Event(), time.monotonic() + 5

    def trouble():
        while not over.is_set():
            pids = world.guard.role("worker")
            if pids:
                proc.kill(random.choice(pids))
            time.sleep(random.uniform(0.05, 0.3))
            if random.random() < 0.3:
                world.guard.run("reload", "--config", world.guard.config)

    def live(ident):
        while time.monotonic() < stop:
            if world.start(ident)[0] == 204 and random.random() < 0.7:
                world.ask("POST", f"/v1.41/containers/{ident}/stop")
        return 0, ""
    killer = threading.Thread(target=trouble, daemon=True)
    killer.start()
    world.crowd(live, made)
    over.set()
    killer.join(30)
    world.never_more()

    def full():
        for ident in made:  # whoever got no answer asks again
            if len(world.engine.running()) < ROOM:
                world.start(ident)
        return len(world.engine.running()) == ROOM
    proc.until("as many run as may", 20, full, pause=0.2)
    world.never_more()
    world.engine.slow = (0.01, 0.05)


def a_new_gate(world):
    """another gate knows what runs"""
    world.expect("running before", len(world.engine.running()), ROOM)
    if world.guard.stop():
        raise Trouble(f"the gate did not end cleanly: {world.guard.said()[-500:]}")
    world.guard.output = world.folder / "second.out"
    world.guard.start(world.path)
    world.expect("one more", world.create()[0], 403)
    world.engine.end(world.engine.running()[0])
    results = world.start(world.create())
    world.expect("in its place", results[0], 204)
    world.never_more()
    world.engine.clear()


def an_engine_that_is_killed(world):
    """a start without an answer counts until it is known; when its container is gone it is known"""
    world.engine.slow = (1, 1)
    made = [world.create() for _ in range(ROOM)]
    threading.Timer(0.5, world.engine.server.stop).start()
    results = world.crowd(world.start, made)
    if not set(statuses(results)) <= {0, 502, 503, 504}:
        raise Trouble(f"answered all the same: {statuses(results)}")
    world.engine.slow = (0.01, 0.05)
    for ident in made:  # it died before it had done anything
        world.engine.put(world.engine.model.containers[ident], False)
    world.engine.server.start()
    proc.until("the engine is seen again", 10, lambda: world.ask("GET", "/v1.41/containers/json")[0] == 200)
    status, text = world.create()  # not one of these five was seen to run, and all count
    world.expect("while nobody knows", (status, "quota_exceeded" in text), (403, True))
    for ident in made[1:]:
        proc.until("it is removed", 10, lambda i=ident: world.ask("DELETE", f"/v1.41/containers/{i}")[0] in (204, 404))
    world.expect("the same again", world.start(made[0])[0], 204)
    for _ in range(ROOM - 1):
        world.expect("others", world.start(world.create())[0], 204)
    world.expect("one too many", world.create()[0], 403)
    world.never_more()
    world.engine.clear()


STEPS = [exactly_so_many, made_and_started, sums_of_memory, churn, workers_die, a_new_gate,
         an_engine_that_is_killed]


def rounds(folder):
    """Problems, as texts; prints what was played."""
    world = World(folder)
    step = None
    try:
        for step in STEPS:
            began = time.monotonic()
            step(world)
            print(f"ok   quota: {step.__doc__} ({time.monotonic() - began:.1f} s)", flush=True)
        if world.guard.stop():
            return [f"the gate did not end cleanly: {world.guard.said()[-500:]}"]
    except Trouble as trouble:
        return [f"quota: {step.__doc__}: {trouble}"]
    finally:
        world.guard.kill()
        world.engine.server.stop()
    return []
