"""Several callers of different profiles at one real engine: each sees and touches what its profile says, and nothing else.

They differ in `visibility` alone, so that nothing but ownership can make the difference.  Objects
that were made past the gate belong to nobody until they are adopted.  Each test gets the world.
"""

import json
import time
import urllib.parse

from kit import gate, wire
from kit.proc import Trouble
from world import APP

JSON = [("Content-Type", "application/json")]
API = "/v1.41"
NONE, READ, DATA, FULL = range(4)

CONFIG = """
log {{ dir = "{dir}/log" }}
profiles {{ "{dir}/profiles" }}
backend "engine" {{ kind = "docker", address = "unix://{engine}", files = "same_host" }}
identity "alice" {{ uid = 5001, profile = "alice" }}
identity "bob" {{ uid = 5002, profile = "bob" }}
identity "carol" {{ uid = 5003, profile = "carol" }}
identity "dave" {{ uid = 5004, profile = "dave" }}
identity "erin" {{ uid = 5005, profile = "erin" }}
listener "main" {{ socket = "{dir}/g.sock", mode = "0666", backend = "engine",
	identities = {{ "alice", "bob", "carol", "dave", "erin" }} }}
adopted {{ ledger = "{dir}/adopted.json" }}
self {{ container = "the-gate" }}
"""

PROFILES = """
local function caller(name, visibility)
	return profile(name) {
		isolation = { min = "process" },
		images = { "reg.example/team/*" },
		limits = { memory = "1GiB", cpus = 2, pids = 256 },
		networks = { name .. "-*", "web-" .. name .. "-*" },
		labels = { "tier" },
		operations = { "read", "container.run", "container.copy", "container.export", "container.rename",
			"container.update", "container.prune", "exec", "volume.use", "volume.prune", "network.use",
			"network.prune" },
		visibility = visibility,
		harden = true,
	}
end

return {
	caller("alice", { "own" }),
	caller("bob", { "own", { label = "tier=front" } }),
	caller("carol", { "own", { name = "web-*", access = "data" } }),
	caller("dave", { "own", { all = true } }),
	caller("erin", { "own", { all = true, access = "full" } }),
}
"""

CALLERS = {"alice": 5001, "bob": 5002, "carol": 5003, "dave": 5004}
ERIN = 5005  # may do with everybody's what its operations grant; only the gate's own stops it

# What looks, what reads what is inside, and all the rest, by what it takes.
LOOKS = (("GET", "json", None), ("GET", "changes", None))
INSIDE = (("GET", "logs?stdout=1", None), ("GET", "archive?path=/etc/passwd", None),
          ("HEAD", "archive?path=/etc/passwd", None), ("GET", "export", None))
TOUCHES = (("POST", "start", None), ("POST", "stop?t=0", None), ("POST", "restart?t=0", None),
           ("POST", "kill", None), ("POST", "pause", None), ("POST", "unpause", None),
           ("POST", "wait", None), ("POST", "resize?h=9&w=9", None), ("POST", "rename?name=taken", None),
           ("POST", "update", {"Memory": 64 << 20}), ("POST", "exec", {"Cmd": ["id"]}),
           ("POST", "attach?stream=1&stdout=1", None))


class Thing:
    """An object of the engine; owner is None if no caller made it."""

    def __init__(self, kind, name, ident, owner, label):
        self.kind, self.name, self.ident, self.owner, self.label = kind, name, ident, owner, label

    def access(self, caller):
        if caller == self.owner:
            return FULL
        return {"bob": READ if self.label else NONE,
                "carol": DATA if self.name.startswith("web-") else NONE,
                "dave": READ}.get(caller, NONE)

    def names(self):
        return {self.name} if self.kind == "volumes" else {self.name, self.ident, self.ident[:12]}


class Callers:
    """A gate of their own before the engine of the world, and what they made."""

    def __init__(self, world):
        self.world, self.folder = world, world.folder / "c"
        self.folder.mkdir(mode=0o755)
        self.gate = gate.Gate(self.folder, CONFIG.format(dir=self.folder, engine=world.engine.socket),
                              {"main": PROFILES})
        self.gate.start(self.folder / "g.sock")
        self.things = []
        self.began = time.time()
        for name in CALLERS:
            self.make(name)
        self.old = self.past_the_gate()
        self.things += self.old

    def ask(self, caller, method, target, body=None):
        data = None if body is None else json.dumps(body).encode()
        head, got = wire.ask(self.folder / "g.sock", method, API + target, JSON if data else (), data,
                             CALLERS[caller], seconds=60)
        try:
            return head.status, json.loads(got)
        except ValueError:
            return head.status, got

    def must(self, status, caller, method, target, body=None):
        found, document = self.ask(caller, method, target, body)
        if found != status:
            raise Trouble(f"{caller}: {method} {target}: {found}, not {status}: {document}")
        return document

    def engine(self, method, target):
        head, got = wire.ask(self.world.engine.socket, method, API + target, seconds=60)
        if head.status >= 300:
            raise Trouble(f"{method} {target}: {head.status} {got}")
        return json.loads(got) if got else None

    def container(self, owner, name, label=False, run=False):
        body = {"Image": APP, "Cmd": ["sh", "-c", "echo said by $(hostname); sleep 600"],
                "Labels": {"tier": "front"} if label else {},
                "HostConfig": {"NetworkMode": f"{owner}-net"}}
        ident = self.must(201, owner, "POST", f"/containers/create?name={name}", body)["Id"]
        if run:
            self.must(204, owner, "POST", f"/containers/{ident}/start")
        return Thing("containers", name, ident, owner, label)

    def volume(self, owner, name, label=False):
        self.must(201, owner, "POST", "/volumes/create",
                  {"Name": name, "Labels": {"tier": "front"} if label else {}})
        return Thing("volumes", name, name, owner, label)

    def network(self, owner, name, label=False):
        body = {"Name": name, "Internal": True, "CheckDuplicate": True,
                "Labels": {"tier": "front"} if label else {}}
        return Thing("networks", name, self.must(201, owner, "POST", "/networks/create", body)["Id"],
                     owner, label)

    def make(self, who):
        """One object of each kind for the label, for the name, and for nobody else."""
        self.things += [self.network(who, f"{who}-net"), self.network(who, f"{who}-seen", label=True),
                        self.network(who, f"web-{who}-net"),
                        self.volume(who, f"{who}-data"), self.volume(who, f"{who}-front", label=True),
                        self.volume(who, f"web-{who}-data"),
                        self.container(who, f"{who}-plain"),
                        self.container(who, f"{who}-front", label=True, run=who == "alice"),
                        self.container(who, f"web-{who}", run=who == "alice")]

    def past_the_gate(self):
        direct = self.world.direct
        made = [("networks", direct("network", "create", "--internal", "old-net")),
                ("volumes", direct("volume", "create", "old-data")),
                ("containers", direct("run", "-d", "--name", "old", "--net", "none", "-m", "64m",
                                      "--cpus", "1", "--pids-limit", "50", APP,
                                      "sh", "-c", "echo old; exec sleep 600"))]
        return [Thing(kind, {"networks": "old-net", "volumes": "old-data", "containers": "old"}[kind],
                      done.want().out.strip(), None, False) for kind, done in made]

    def of(self, kind):
        return [thing for thing in self.things if thing.kind == kind]

    def shown(self, caller, kind):
        """Names of what a caller is shown by its list."""
        rows = self.must(200, caller, "GET", {"containers": "/containers/json?all=1"}.get(kind, f"/{kind}"))
        rows = rows["Volumes"] if kind == "volumes" else rows
        return {row["Names"][0].lstrip("/") if kind == "containers" else row["Name"] for row in rows or []}

    def reload(self):
        status, out, errors = self.gate.run("reload", "--config", self.gate.config)
        if status:
            raise Trouble(f"reload: status {status}: {out}{errors}")


def of(world):
    if not hasattr(world, "callers"):
        world.callers = Callers(world)
        world.more.append(world.callers.gate)
    return world.callers


def expect(callers, caller, thing, needs, method, target, body=None):
    """Absent, refused or done, as the caller's access to the thing says."""
    status, document = callers.ask(caller, method, target, body)
    has = thing.access(caller)
    where = f"{caller}, {method} {target} of {thing.name}: {status} {document if status != 200 else ''}"
    if has == NONE:
        if status != 404:
            raise Trouble(f"not as if it were not there: {where}")
    elif has < needs:
        if status != 403 or method != "HEAD" and "[read_only" not in document["message"]:
            raise Trouble(f"not refused: {where}")
    elif status in (403, 404):
        raise Trouble(f"refused: {where}")


# --- lists ---

def check_lists(callers):
    for caller in CALLERS:
        for kind in ("containers", "volumes", "networks"):
            here = {thing.name for thing in callers.of(kind)}
            want = {thing.name for thing in callers.of(kind) if thing.access(caller)}
            found = callers.shown(caller, kind)
            # Who sees all sees also what the other tests made.
            if found & here != want or (caller != "dave" and found != want):
                raise Trouble(f"{caller} is shown the {kind} {sorted(found)}, and should be {sorted(want)}")


def test_lists_show_each_caller_its_own_and_what_its_profile_shows(world):
    check_lists(of(world))


def test_filters_show_no_more(world):
    callers = of(world)
    for caller in CALLERS:
        for thing in callers.of("containers"):
            for filters in ({"name": [thing.name]}, {"id": [thing.ident]}):
                asked = wire_filters(filters)
                rows = callers.must(200, caller, "GET", f"/containers/json?all=1&filters={asked}")
                if (thing.ident in [row["Id"] for row in rows]) != (thing.access(caller) > NONE):
                    raise Trouble(f"{caller} filters by {filters}: {[row['Names'] for row in rows]}")
        owned = callers.must(200, caller, "GET", "/containers/json?all=1&filters=" + wire_filters(
            {"label": ["sallyport.owner=alice"]}))
        want = {t.name for t in callers.of("containers") if t.owner == "alice" and t.access(caller)}
        if {row["Names"][0].lstrip("/") for row in owned} != want:
            raise Trouble(f"{caller} filters by alice's label: {[row['Names'] for row in owned]}")


def wire_filters(filters):
    return urllib.parse.quote(json.dumps(filters))


def test_df_shows_what_lists_show(world):
    callers = of(world)
    for caller in CALLERS:
        df = callers.must(200, caller, "GET", "/system/df")
        for kind, key, name in (("containers", "Containers", "Id"), ("volumes", "Volumes", "Name")):
            found = {row[name] for row in df.get(key) or []}
            here = {thing.ident for thing in callers.of(kind)}
            want = {thing.ident for thing in callers.of(kind) if thing.access(caller)}
            if found & here != want or (caller != "dave" and found != want):
                raise Trouble(f"{caller}: df shows the {kind} {found}, and should show {want}")


def test_events_tell_of_what_is_shown_only(world):
    callers = of(world)
    span = f"since={int(callers.began) - 1}&until={int(time.time()) + 1}"
    told = wire.ask(world.engine.socket, "GET", f"{API}/events?{span}", seconds=60)[1]
    happened = {row["Actor"]["ID"] for row in map(json.loads, told.splitlines())}
    for caller in CALLERS:
        head, got = wire.ask(callers.folder / "g.sock", "GET", f"{API}/events?{span}", uid=CALLERS[caller],
                             seconds=60)
        found = {row["Actor"]["ID"] for row in map(json.loads, got.splitlines())}
        for thing in callers.things:
            told = thing.ident in found
            if told and thing.access(caller) == NONE:
                raise Trouble(f"{caller} hears of {thing.name}")
            if thing.kind == "containers" and thing.ident in happened and not told and thing.access(caller):
                raise Trouble(f"{caller} does not hear of {thing.name}")
        if head.status != 200 or caller == "alice" and found - {t.ident for t in callers.things}:
            raise Trouble(f"{caller}: {head.status}, hears of {found}")


# --- one object ---

def test_who_may_look(world):
    callers = of(world)
    for caller in CALLERS:
        for thing in callers.things:
            for name in thing.names():
                what = f"/containers/{name}/json" if thing.kind == "containers" else f"/{thing.kind}/{name}"
                expect(callers, caller, thing, READ, "GET", what)


def test_what_is_not_shown_is_answered_like_what_is_not_there(world):
    callers = of(world)
    for kind, tail in (("containers", "/json"), ("networks", ""), ("volumes", "")):
        for thing in callers.of(kind):
            if thing.access("alice"):
                continue
            status, document = callers.ask("alice", "GET", f"/{kind}/{thing.name}{tail}")
            absent = "q" * len(thing.name)
            other, like = callers.ask("alice", "GET", f"/{kind}/{absent}{tail}")
            if (status, document["message"]) != (other, like["message"].replace(absent, thing.name)):
                raise Trouble(f"{thing.name}: {status} {document}; what is not there: {other} {like}")


def test_who_may_read_what_is_inside(world):
    callers = of(world)
    for caller in CALLERS:
        for thing in callers.of("containers"):
            for calls, needs in ((LOOKS, READ), (INSIDE, DATA)):
                for method, what, body in calls:
                    expect(callers, caller, thing, needs, method, f"/containers/{thing.name}/{what}", body)
    logs = callers.must(200, "carol", "GET", "/containers/web-alice/logs?stdout=1")
    if b"said by" not in logs:
        raise Trouble(f"carol reads {logs!r}")


def test_who_may_see_what_runs(world):
    callers = of(world)
    running = [thing for thing in callers.of("containers") if thing.name in ("web-alice", "alice-front", "old")]
    for caller in CALLERS:
        for thing in running:
            for what in ("top", "stats?stream=0&one-shot=1"):
                expect(callers, caller, thing, READ, "GET", f"/containers/{thing.ident}/{what}")


def test_nobody_touches_what_is_not_its_own(world):
    callers = of(world)
    before = states(callers)
    for caller in CALLERS:
        for thing in callers.of("containers"):
            if caller == thing.owner:
                continue
            for method, what, body in TOUCHES:
                expect(callers, caller, thing, FULL, method, f"/containers/{thing.name}/{what}", body)
            expect(callers, caller, thing, FULL, "DELETE", f"/containers/{thing.ident}?force=1")
            expect(callers, caller, thing, FULL, "DELETE", f"/containers/{thing.ident[:12]}?force=1")
        for thing in callers.of("volumes") + callers.of("networks"):
            if caller != thing.owner:
                expect(callers, caller, thing, FULL, "DELETE", f"/{thing.kind}/{thing.ident}")
    if states(callers) != before:
        raise Trouble(f"something was touched: {before} before, {states(callers)} after")


def states(callers):
    """{id: what of it would change if somebody touched it}, asked past the gate."""
    found = {}
    for thing in callers.of("containers"):
        shown = callers.engine("GET", f"/containers/{thing.ident}/json")
        found[thing.ident] = (shown["Name"], shown["State"]["Status"], shown["State"]["StartedAt"],
                              shown["HostConfig"]["Memory"], shown["ExecIDs"] or [],
                              sorted(shown["NetworkSettings"]["Networks"]))
    for thing in callers.of("volumes") + callers.of("networks"):
        found[thing.ident] = callers.engine("GET", f"/{thing.kind}/{thing.ident}")["Name"]
    return found


def test_an_exec_is_its_containers(world):
    callers = of(world)
    (web,) = [thing for thing in callers.things if thing.name == "web-alice"]
    made = callers.must(201, "alice", "POST", "/containers/web-alice/exec",
                        {"Cmd": ["sh", "-c", "echo inside"], "AttachStdout": True})["Id"]
    for caller in ("bob", "carol", "dave"):
        expect(callers, caller, web, READ, "GET", f"/exec/{made}/json")
        expect(callers, caller, web, FULL, "POST", f"/exec/{made}/start", {"Detach": True})
        expect(callers, caller, web, FULL, "POST", f"/exec/{made}/resize?h=9&w=9")
    if b"inside" not in callers.must(200, "alice", "POST", f"/exec/{made}/start", {}):
        raise Trouble("alice's exec says nothing")


def test_networks_connect_what_is_ones_own(world):
    callers = of(world)
    for caller in CALLERS:
        mine, own = f"{caller}-plain", f"web-{caller}-net"
        callers.must(200, caller, "POST", f"/networks/{own}/connect", {"Container": mine})
        for thing in callers.of("containers"):
            if caller != thing.owner:
                for verb in ("connect", "disconnect"):
                    refused(callers, caller, f"/networks/{own}/{verb}", {"Container": thing.name},
                            "read_only" if thing.access(caller) else None)
        for thing in callers.of("networks"):
            if caller != thing.owner:
                refused(callers, caller, f"/networks/{thing.ident}/connect", {"Container": mine}, "network")
                if thing.access(caller):  # passed on: the engine says that it is not on it
                    callers.must(500, caller, "POST", f"/networks/{thing.ident}/disconnect",
                                 {"Container": mine})
                else:
                    callers.must(404, caller, "POST", f"/networks/{thing.ident}/disconnect",
                                 {"Container": mine})
        shown = callers.engine("GET", f"/containers/{mine}/json")["NetworkSettings"]["Networks"]
        if set(shown) != {own, f"{caller}-net"}:
            raise Trouble(f"{mine} is on {set(shown)}")
    for caller in CALLERS:
        callers.must(200, caller, "POST", f"/networks/web-{caller}-net/disconnect",
                     {"Container": f"{caller}-plain", "Force": True})


def refused(callers, caller, target, body, reason):
    """With that reason; None: as if what the body names did not exist."""
    status, document = callers.ask(caller, "POST", target, body)
    if status != (403 if reason else 404) or reason and f"[{reason}," not in document["message"]:
        raise Trouble(f"{caller}: POST {target} {body}: {status} {document}, and should be {reason}")


def test_nothing_of_others_is_mounted_joined_or_overwritten(world):
    callers = of(world)
    for caller in CALLERS:
        for thing in callers.things:
            if caller == thing.owner:
                continue
            uses = {"volumes": (("volume_owner", {"Binds": [f"{thing.name}:/w"]}),
                                ("volume_owner", {"Mounts": [{"Type": "volume", "Source": thing.name,
                                                              "Target": "/w"}]})),
                    "networks": (("network", {"NetworkMode": thing.name}), ("network", {"NetworkMode": thing.ident})),
                    "containers": (("namespace_join", {"NetworkMode": f"container:{thing.name}"}),
                                   ("namespace_join", {"PidMode": f"container:{thing.ident}"}),
                                   ("namespace_join", {"IpcMode": f"container:{thing.name}"}),
                                   ("volumes_from", {"VolumesFrom": [thing.name]}),
                                   ("link", {"Links": [f"{thing.name}:x"]}))}
            for reason, host in uses[thing.kind]:
                refused(callers, caller, "/containers/create", {"Image": APP, "HostConfig": host}, reason)
        refused(callers, caller, "/volumes/create", {"Name": "old-data"}, "volume_owner")


# --- what removes by the dozen ---

def test_prune_removes_the_callers_own_alone(world):
    callers = of(world)
    for caller in ("dave", "bob", "carol", "alice"):
        spare = [callers.container(caller, f"{caller}-spare"), callers.volume(caller, f"{caller}-spare"),
                 callers.network(caller, f"{caller}-spare")]
        others = {thing.ident for thing in callers.things if thing.owner != caller}
        for kind, key in (("containers", "ContainersDeleted"), ("volumes", "VolumesDeleted"),
                          ("networks", "NetworksDeleted")):
            gone = callers.must(200, caller, "POST", f"/{kind}/prune")[key] or []
            (mine,) = [thing for thing in spare if thing.kind == kind]
            if mine.ident not in gone and mine.name not in gone:
                raise Trouble(f"{caller} pruned {kind}, and {mine.name} is still there: {gone}")
            callers.things = [thing for thing in callers.things if thing.kind != kind
                              or thing.ident not in gone and thing.name not in gone]
        left = states(callers)  # fails if one of them is gone
        if not others <= set(left):
            raise Trouble(f"{caller} pruned {others - set(left)}")
    check_lists(callers)


# --- the gate's own ---

def test_the_gates_own_container_is_out_of_reach(world):
    callers = of(world)
    made = callers.must(201, "alice", "POST", "/containers/create?name=not-yet", {"Image": APP})["Id"]
    world.direct("rename", made, "the-gate").want()
    for method, what, body in (*INSIDE, *TOUCHES):
        status, document = callers.ask("alice", method, f"/containers/{made}/{what}", body)
        if status != 403 or method != "HEAD" and "[gate_self" not in document["message"]:
            raise Trouble(f"alice: {method} {what} of the gate's own: {status} {document}")
    callers.must(403, "alice", "DELETE", f"/containers/{made}?force=1")
    callers.must(200, "alice", "GET", "/containers/the-gate/json")
    world.direct("rm", "-f", made).want()


def test_a_gate_in_a_container_finds_itself(world):
    """What it runs in, mounts and is connected to cannot be touched through it; other things can."""
    folder = world.folder / "in"
    folder.mkdir(mode=0o755)
    guard = gate.Gate(folder, CONFIG.format(dir=folder, engine=world.engine.socket).replace(
        'self { container = "the-gate" }\n', ""), {"main": PROFILES})
    world.more.append(guard)
    world.direct("network", "create", "--internal", "front").want()
    world.direct("volume", "create", "keep").want()
    shared = ["/usr:/usr", "/usr/lib:/lib", "/usr/lib64:/lib64", "/etc/passwd:/etc/passwd",
              "/etc/group:/etc/group", f"{guard.program}:{guard.program}"]
    guard.before = world.engine.docker(
        "run", "--name", "sallyport", "--user", "0:0", "--net", "front", "--cap-add", "SYS_PTRACE",
        "--cap-add", "DAC_READ_SEARCH", "-v", "keep:/keep", "-v", f"{folder}:{folder}",
        "-v", f"{world.engine.folder}:{world.engine.folder}",
        *(word for path in shared for word in ("-v", f"{path}:ro")), APP)
    guard.start(folder / "g.sock", seconds=60)

    def ask(method, target, body=None):
        data = None if body is None else json.dumps(body).encode()
        head, got = wire.ask(folder / "g.sock", method, API + target, JSON if data else (), data,
                             ERIN, seconds=60)
        return head.status, got

    for method, what, body in (*INSIDE, *TOUCHES):
        status, got = ask(method, f"/containers/sallyport/{what}", body)
        if status != 403 or method != "HEAD" and b"[gate_self" not in got:
            raise Trouble(f"{method} {what} of the gate's own: {status} {got}")
    for kind, name in (("containers", "sallyport"), ("networks", "front"), ("volumes", "keep")):
        status, got = ask("DELETE", f"/{kind}/{name}")
        if status != 403 or b"[gate_self" not in got:
            raise Trouble(f"DELETE /{kind}/{name}: {status} {got}")
    status, got = ask("GET", "/containers/sallyport/json")
    if status != 200 or not json.loads(got)["State"]["Running"]:
        raise Trouble(f"the gate's own container: {status} {got}")
    world.direct("network", "create", "--internal", "back").want()
    world.direct("volume", "create", "throw-away").want()
    for target in ("/networks/back", "/volumes/throw-away"):
        status, got = ask("DELETE", target)
        if status != 204:
            raise Trouble(f"what is not the gate's: {target}: {status} {got}")
    if status := guard.stop():
        raise Trouble(f"the gate ended with status {status}: {guard.said()}")
    world.more.remove(guard)
    world.direct("rm", "-f", "sallyport").want()


# --- what is older than the gate ---

def test_what_is_older_is_adopted(world):
    """Nobody's until it is adopted; then its owner's, after a restart, and through reloads."""
    callers = of(world)
    guard, ledger = callers.gate, callers.folder / "adopted.json"
    status, out, errors = guard.run("adopt", "--config", guard.config, "--owner", "alice",
                                    "--filter", "name=old*")
    if status or out.count("belongs to alice") != 3:
        raise Trouble(f"adopt: {status} {out}{errors}")
    callers.reload()
    check_lists(callers)  # a reload goes on with the ledger that was read at the start
    if status := guard.stop():
        raise Trouble(f"the gate ended with status {status}: {guard.said()}")
    guard.output.unlink()
    guard.start(callers.folder / "g.sock")
    for thing in callers.old:
        thing.owner = "alice"
    check_adopted(callers)
    records = {record["res"][0]["id"]: record for record in guard.records() if record["type"] == "adopt"}
    if set(records) != {thing.ident for thing in callers.old} or any(
            record["actor"]["owner"] != "alice" for record in records.values()):
        raise Trouble(f"the log has of adoptions: {records}")
    kept = json.loads(ledger.read_text())
    ledger.unlink()
    callers.reload()
    check_adopted(callers)
    status, out, errors = guard.run("adopt", "rebuild", "--config", guard.config)
    if status or json.loads(ledger.read_text()) != kept:
        raise Trouble(f"rebuilt: {status} {out}{errors}; {ledger.read_text()}, and was {kept}")
    callers.must(204, "alice", "DELETE", "/containers/old?force=1&v=1")
    callers.must(204, "alice", "DELETE", "/volumes/old-data")
    callers.things = [thing for thing in callers.things if thing.name not in ("old", "old-data")]
    # Made anew under that name it is another volume, and nobody's.
    world.direct("volume", "create", "old-data").want()
    callers.must(404, "alice", "GET", "/volumes/old-data")
    check_lists(callers)


def check_adopted(callers):
    check_lists(callers)
    if b"old" not in callers.must(200, "alice", "GET", "/containers/old/logs?stdout=1"):
        raise Trouble("alice reads nothing of what she adopted")
    made = callers.must(201, "alice", "POST", "/containers/old/exec",
                        {"Cmd": ["echo", "inside"], "AttachStdout": True})["Id"]
    if b"inside" not in callers.must(200, "alice", "POST", f"/exec/{made}/start", {}):
        raise Trouble("an exec in what was adopted says nothing")
    for thing in callers.old:
        what = f"/containers/{thing.ident}/json" if thing.kind == "containers" else f"/{thing.kind}/{thing.ident}"
        for caller in CALLERS:
            expect(callers, caller, thing, READ, "GET", what)
    for caller in ("bob", "carol", "dave"):
        (old,) = [thing for thing in callers.old if thing.kind == "containers"]
        expect(callers, caller, old, FULL, "POST", "/containers/old/stop")
