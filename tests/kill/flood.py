"""A flood of requests above a rate, over several workers, while one of them is killed and rules are read anew.

Each refusal that a caller saw must be in the log, with a record of its own or in the sum of a
`suppressed` record, exactly; the log must not grow with the flood; and another caller is served
meanwhile.
"""

import json
import re
import threading
import time
from pathlib import Path

from kit import engine, gate, proc, wire
from kit.proc import Trouble

FLOODERS, REFUSALS = 12, 12000
ON_ONE = 100  # requests on one connection: so all workers come to have some of them
CALM = 2002
WORKERS = 3

CONFIG = """
log {{ dir = "{dir}/log", claim_ms = 1000 }}
profiles {{ "{dir}/profiles" }}
backend "engine" {{ kind = "docker", address = "unix://{dir}/e.sock" }}
identity "flood" {{ uid = 0, profile = "main" }}
identity "calm" {{ uid = {calm}, profile = "calm" }}
listener "main" {{ socket = "{dir}/g.sock", mode = "0666", backend = "engine", identities = {{ "flood", "calm" }} }}
listener "metrics" {{ socket = "{dir}/m.sock", mode = "0666", metrics = true }}
limits {{ workers = {workers}, connections_per_uid = 1000 }}
"""

PROFILES = {
    "main": 'return profile "main" { operations = { "read", "volume.create" }, rate = { ["volume.create"] = "20/h" } }',
    "calm": 'return profile "calm" { operations = { "read", "volume.create" } }',
}


class Engine:
    """Makes every volume that it is asked for."""

    def __init__(self, path):
        self.model = engine.Model()
        self.server = wire.Server(path, self.serve)

    def serve(self, sock):
        engine.serve(wire.Stream(sock, 3600), self.answer)

    def answer(self, head, body):
        if head.method == "POST":
            name = json.loads(body)["Name"]
            return engine.reply(201, {"Name": name, "Driver": "local", "Mountpoint": f"/v/{name}", "Labels": {}})
        return engine.reply(*(self.model.answer(head.method, head.target) or (200, [])))


class Caller(threading.Thread):
    """Asks until it is told to stop, on a connection that is made anew when it breaks."""

    def __init__(self, path, number, uid=None):
        super().__init__(daemon=True)
        self.path, self.number, self.uid = path, number, uid
        self.counted, self.ids, self.cut, self.over, self.wrong = {}, [], 0, threading.Event(), None
        self.pace = 0

    def run(self):
        stream, n = None, 0
        while not self.over.is_set():
            n += 1
            body = json.dumps({"Name": f"v{self.number}-{n}"}).encode()
            try:
                stream = stream or wire.connect(self.path, self.uid, 30)
                stream.send(b"POST /v1.41/volumes/create HTTP/1.1\r\nHost: docker\r\nContent-Type: application/json\r\n"
                            b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                head = stream.reply("POST")
                stream.body.all()
            except (Trouble, OSError) as trouble:
                if "in time" in str(trouble):
                    self.wrong = f"hung: {trouble}"
                    return
                self.cut += 1
                stream = None
                continue
            self.counted[head.status] = self.counted.get(head.status, 0) + 1
            if head.status == 429:
                self.ids.append(head.get("sallyport-id") or head.get("sallyport-audit"))
            if n % ON_ONE == 0:
                stream.sock.close()
                stream = None
            if self.pace:
                self.over.wait(self.pace)


def refused(callers):
    return sum(c.counted.get(429, 0) for c in callers)


def kill_one_that_works(guard, callers):
    """Kills workers, until one had callers; of those that there are now one has."""
    before = sum(c.cut for c in callers)
    for pid in guard.role("worker"):
        proc.kill(pid)
        proc.until("another worker", 20,
                   lambda p=pid: p not in guard.role("worker") and len(guard.role("worker")) == WORKERS)
        if sum(c.cut for c in callers) > before:
            return
    proc.until("a caller has lost its worker", 20, lambda: sum(c.cut for c in callers) > before)


def flood(guard, path):
    """The callers of the flood, and another one."""
    callers = [Caller(path, n) for n in range(FLOODERS)]
    calm = Caller(path, FLOODERS, CALM)
    calm.pace = 0.1
    for caller in [*callers, calm]:
        caller.start()
    harms = [lambda: kill_one_that_works(guard, callers), lambda: guard.run("reload", "--config", guard.config)]
    for part, harm in enumerate(harms, 1):
        proc.until(f"part {part} of the flood", 120, lambda p=part: refused(callers) >= p * REFUSALS // 3)
        served = calm.counted.get(201, 0)
        harm()
        proc.until("another caller is served", 30, lambda s=served: calm.counted.get(201, 0) > s)
    proc.until("the flood", 120, lambda: refused(callers) >= REFUSALS)
    for caller in [*callers, calm]:
        caller.over.set()
    for caller in [*callers, calm]:
        caller.join(60)
        if caller.is_alive() or caller.wrong:
            raise Trouble(f"caller {caller.number}: {caller.wrong or 'waits for ever'}")
    return callers, calm


def held_against(records, callers, seconds):
    """What is wrong with the log of a flood of so many seconds."""
    whole = [r for r in records if r["type"] == "decision" and r.get("reason") == "rate"]
    sums = [r for r in records if r["type"] == "suppressed"]
    seen, cut = refused(callers), sum(c.cut for c in callers)
    logged = len(whole) + sum(r["count"] for r in sums)
    print(f"{seen} answers with 429 in {seconds:.0f} s, {cut} requests without an answer; {len(whole)} records "
          f"and {len(sums)} sums of {logged - len(whole)}")
    # A worker that is killed may have counted what it could not answer any more.
    if not seen <= logged <= seen + cut:
        yield f"{seen} refusals were seen, {cut} requests had no answer, {logged} refusals are on record"
    if len({r["id"] for r in sums}) != len(sums):
        yield "a sum is there twice"
    # In each second one whole and one sum; at the ends of workers windows end early, and begin in several at once.
    if len(whole) + len(sums) > 2 * (seconds + 2) + 8 * WORKERS:
        yield f"{len(whole)} records and {len(sums)} sums in {seconds:.0f} s"
    nameless = sum(i is None for c in callers for i in c.ids)
    if nameless:
        yield f"{nameless} callers were refused without being told of a record"
    known = {r["id"] for r in sums} | {f"{r['log']};{r['seq']};{r['h']}" for r in whole}
    lost = [i for c in callers for i in c.ids if i and i not in known]
    if lost:
        yield f"{len(lost)} callers were told of records that are not there, such as {lost[0]}"
    for r in sums:
        if (r["reason"], r["class"], r["actor"]["identity"], r["pol"]["profile"]) != \
                ("rate", "host", "flood", "main") or not r["first_t"] <= r["last_t"] <= r["t"]:
            yield f"an odd sum: {r}"


def refusals_counted(folder):
    _, text = wire.ask(folder / "m.sock", "GET", "/metrics")
    return int(re.search(rb"^sallyport_rate_refused_total (\d+)$", text, re.MULTILINE)[1])


def metrics_wrong(folder, callers):
    """An answer comes before it is counted; who died between did not count it."""
    seen, cut = refused(callers), sum(c.cut for c in callers)
    proc.until("metrics have counted", 20, lambda: refusals_counted(folder) >= seen - FLOODERS)
    if refusals_counted(folder) > seen + cut:
        yield f"{seen} refusals were seen, {refusals_counted(folder)} are in /metrics"


def rounds(folder):
    guard = gate.Gate(folder, CONFIG.format(dir=folder, calm=CALM, workers=WORKERS), PROFILES)
    fake = Engine(Path(folder) / "e.sock")
    fake.server.start()
    path = Path(folder) / "g.sock"
    try:
        guard.start(path)
        began = time.monotonic()
        callers, calm = flood(guard, path)
        seconds = time.monotonic() - began
        problems = list(metrics_wrong(Path(folder), callers))
        if guard.stop():
            raise Trouble(f"the gate did not end cleanly: {guard.said()[-500:]}")
        problems += list(held_against(guard.records(), callers, seconds))
        if calm.counted.get(429):
            problems.append(f"another caller was refused: {calm.counted}")
    finally:
        guard.kill()
        fake.server.stop()
    return problems
