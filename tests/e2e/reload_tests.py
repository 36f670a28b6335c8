"""Rules that change while requests come."""

import itertools
import json
import tempfile
import threading
from pathlib import Path

from kit import gate, proc, wire
from kit.ids import covers
from kit.proc import Trouble
from world import APP, PATIENCE

CONFIG = """
log {{ dir = "{dir}/log" }}
profiles {{ "{dir}/profiles" }}
backend "engine" {{ kind = "docker", address = "unix://{engine}", files = "same_host" }}
identity "me" {{ uid = 0, profile = "changing", owner = "reload" }}
listener "main" {{ socket = "{dir}/g.sock", mode = "0666", backend = "engine", identities = {{ "me" }} }}
limits {{ connections_per_uid = 400 }}
"""

PROFILE = """
return profile "changing" {{
	doc = "For a test: one restart policy and one capability at a time.",
	images = {{ "{image}" }}, users = "any", restart = {{ "{restart}" }}, capabilities = {{ "{capability}" }},
	operations = {{ "container.create", "container.remove" }},
}}
"""

# What each version allows; a request with a half of each is for neither.
VERSIONS = (("always", "CHOWN"), ("unless-stopped", "KILL"))
MIXED = ((VERSIONS[0][0], VERSIONS[1][1]), (VERSIONS[1][0], VERSIONS[0][1]))
CLIENTS, RELOADS, BETWEEN = 100, 4, 150


def profile(version):
    restart, capability = VERSIONS[version]
    return PROFILE.format(image=APP, restart=restart, capability=capability)


def create(path, form):
    """One request with a connection of its own; the number of its record, and the container's id."""
    body = json.dumps({"Image": APP, "HostConfig": {
        "NetworkMode": "none", "RestartPolicy": {"Name": form[0]}, "CapAdd": [form[1]]}}).encode()
    stream = wire.connect(path, seconds=PATIENCE)
    stream.send(b"POST /v1.41/containers/create HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    head = stream.reply()
    said = json.loads(stream.body.all())
    stream.sock.close()
    return int(head.get("sallyport-audit").split(";")[1]), said.get("Id")


class Client(threading.Thread):
    """Asks until the last reload is done; now and then for what one of the versions allows."""

    def __init__(self, path, number, enough):
        super().__init__(daemon=True)
        self.path, self.number, self.enough = path, number, enough
        self.asked, self.made, self.trouble = {}, [], None

    def run(self):
        forms = itertools.cycle(MIXED if self.number % 10 else (*MIXED, *VERSIONS))
        try:
            while not self.enough.is_set():
                form = next(forms)
                number, ident = create(self.path, form)
                self.asked[number] = form
                self.made += [ident] if ident else []
        except Exception as error:  # noqa: BLE001 - it must reach the test
            self.trouble = f"{type(error).__name__}: {error}"


def judged(log, asked):
    """{version's hash: {form: {(verdict, fields that are objected to)}}}"""
    found, missing = {}, dict(asked)
    for path in sorted(log.glob("*.log")):
        for record in gate.read_records(path)[0]:
            form = missing.pop(record.get("seq"), None)
            if form:
                fields = sorted({one["field"].partition("[")[0] for one in record.get("violations", [])})
                found.setdefault(record["pol"]["profile_sha256"], {}).setdefault(form, set()).add(
                    (record["verdict"], *fields))
    if missing:
        raise Trouble(f"{len(missing)} replies name no record")
    return found


def expected(version):
    restart, capability = ("deny", "HostConfig.RestartPolicy.Name"), ("deny", "HostConfig.CapAdd")
    return {VERSIONS[version]: {("allow",)},
            VERSIONS[1 - version]: {("deny", "HostConfig.CapAdd", "HostConfig.RestartPolicy.Name")},
            MIXED[version]: {capability}, MIXED[1 - version]: {restart}}


def are_the_versions(found):
    """One of each, and of both at least what neither allows."""
    return len(found) == 2 and any(
        all(some.get(form, outcomes if form in VERSIONS else None) == outcomes
            for version, some in enumerate(order) for form, outcomes in expected(version).items())
        for order in (found, found[::-1]))


def replies(clients):
    trouble = next((one.trouble for one in clients if one.trouble), None)
    if trouble:
        raise Trouble(f"a client was not served: {trouble}")
    return sum(len(one.asked) for one in clients)


@covers("J11")
def test_creates_while_rules_change(world):
    """A hundred clients and rules that change: nobody is dropped, each is judged by one whole version."""
    with tempfile.TemporaryDirectory(prefix="sp-reload-", dir="/tmp") as name:
        folder, enough, clients = Path(name), threading.Event(), []
        folder.chmod(0o755)
        guard = gate.Gate(folder, CONFIG.format(dir=folder, engine=world.engine.socket),
                          {"changing": profile(0)})
        try:
            guard.start(folder / "g.sock")
            clients = [Client(folder / "g.sock", number, enough) for number in range(CLIENTS)]
            for one in clients:
                one.start()
            for number in range(1, RELOADS + 1):
                (folder / "new").write_text(profile(number % 2))
                (folder / "new").replace(folder / "profiles/changing.lua")
                proc.output([guard.program, "reload", "--config", guard.config])
                seen = replies(clients)
                proc.until("requests come under the new rules", PATIENCE,
                           lambda seen=seen: replies(clients) >= seen + BETWEEN, pause=0.02)
            enough.set()
            for one in clients:
                one.join(PATIENCE)
            troubles = sorted({one.trouble for one in clients if one.trouble})
            if troubles or any(one.is_alive() for one in clients):
                raise Trouble(f"clients were not served: {troubles[:3]}")
            if status := guard.stop():
                raise Trouble(f"the gate ended with status {status}: {guard.said()[-2000:]}")
            found = judged(guard.log, {k: v for one in clients for k, v in one.asked.items()})
            if not are_the_versions(list(found.values())):
                raise Trouble(f"judged by something else than two versions: {found}")
        finally:
            enough.set()
            guard.kill()
            made = [ident for one in clients for ident in one.made]
            proc.output(world.engine.docker("rm", "-f", *made) if made else ["true"])
