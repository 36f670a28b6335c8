"""Quotas at a real engine: what it shows is what counts, however many ask at once.  Each test gets the world."""

import concurrent.futures
import json
import tempfile
from pathlib import Path

from kit import gate, proc
from kit.proc import Trouble
from world import APP, Client, with_own

CONFIG = """
log {{ dir = "{dir}/log" }}
profiles {{ "{dir}/profiles" }}
backend "engine" {{ kind = "docker", address = "unix://{engine}", files = "same_host" }}
identity "many" {{ uid = 0, profile = "many" }}
listener "many" {{ socket = "{dir}/many.sock", mode = "0666", backend = "engine", identities = {{ "many" }} }}
identity "space" {{ uid = 0, profile = "space" }}
listener "space" {{ socket = "{dir}/space.sock", mode = "0666", backend = "engine", identities = {{ "space" }} }}
limits {{ workers = 4, connections_per_uid = 1000 }}
"""

PROFILES = """
local function quoted(name, quota)
	return profile(name) {
		isolation = { min = "process" },
		images = { "reg.example/team/*" },
		limits = { memory = "64MiB", cpus = 1, pids = 64 },
		operations = { "read", "container.run", "container.update", "container.commit", "volume.use" },
		quota = quota,
		harden = true,
	}
end

return {
	quoted("many", { containers = 5, memory = "320MiB", cpus = 5, pids = 320 }),
	quoted("space", { volume_count = 2, volumes = "1MiB", images = 1 }),
}
"""


class Quoted:
    """A gate of its own before the world's engine, with a docker client at each listener."""

    def __init__(self, world):
        self.world, self.folder = world, Path(tempfile.mkdtemp(prefix="sp-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.gate = gate.Gate(self.folder, CONFIG.format(dir=self.folder, engine=world.engine.socket),
                              {"quoted": PROFILES})
        world.more.append(self.gate)
        self.gate.start(self.folder / "many.sock", self.folder / "space.sock")
        first = world.clients()[0]
        self.many, self.space = (Client(first.program, first.version, "runc", self.folder / f"{name}.sock",
                                        world.home) for name in ("many", "space"))

    def running(self, owner="many"):
        done = self.world.direct("ps", "-q", "--filter", f"label=sallyport.owner={owner}")
        return done.want().out.split()

    def end(self):
        for owner in ("many", "space"):
            for kind, remove in (("ps", ("rm", "-fv")), ("volume", ("volume", "rm"))):
                looked = (kind, "-aq") if kind == "ps" else (kind, "ls", "-q")
                found = self.world.direct(*looked, "--filter", f"label=sallyport.owner={owner}").out.split()
                if found:
                    self.world.direct(*remove, *found)
        if self.gate.stop():
            raise Trouble(f"the gate did not end cleanly: {self.gate.said()[-500:]}")
        proc.output(["rm", "-rf", self.folder])


quoted = with_own(Quoted)


@quoted
def test_of_64_docker_runs_at_once_five_run(own):
    def run(_):
        return own.many.docker("run", "-d", APP, "sleep", "600")
    with concurrent.futures.ThreadPoolExecutor(64) as crowd:
        done = list(crowd.map(run, range(64)))
    good = [one for one in done if one.status == 0]
    if len(good) != 5 or len(own.running()) != 5:
        raise Trouble(f"{len(good)} were told that they run, {len(own.running())} do\n{done[0]}")
    for one in done:
        if one.status:
            one.want(status=one.status, errors="quota_exceeded")
    # Frozen ones take their share; what is stopped, removed or ends by itself gives it back at once.
    own.many.docker("pause", own.running()[0]).want()
    own.many.docker("run", "-d", APP, "sleep", "600").want(125, errors="quota_exceeded")
    own.many.docker("unpause", own.running()[0]).want()
    for give_back in (("stop", "-t", "0"), ("rm", "-f"), ("kill",)):
        own.many.docker(*give_back, own.running()[0]).want()
        for _ in range(3):
            own.many.docker("run", "--rm", APP, "true").want()
        own.many.docker("run", "-d", APP, "sleep", "600").want()
        own.many.docker("run", "-d", APP, "sleep", "600").want(125, errors="quota_exceeded")


@quoted
def test_what_runs_past_the_gate_counts_and_an_update_too(own):
    labels = ("--label", "sallyport.owner=many")
    own.world.direct("run", "-d", *labels, "-m", "256m", "--cpus", "1", "--pids-limit", "64", APP, "sleep", "600").want()
    own.many.docker("run", "-d", "-m", "64m", APP, "sleep", "600").want()
    own.many.docker("run", "-d", "-m", "32m", APP, "sleep", "600").want(
        125, errors="320MiB of memory and asks for 32MiB")
    mine = own.running()[0]
    own.many.docker("update", "-m", "32m", "--memory-swap", "64m", mine).want()
    own.many.docker("run", "-d", "-m", "32m", APP, "sleep", "600").want()
    own.many.docker("update", "-m", "64m", "--memory-swap", "128m", mine).want(1, errors="quota_exceeded")
    own.world.direct("run", "-d", *labels, APP, "sleep", "600").want()
    own.many.docker("run", "-d", "-m", "8m", APP, "sleep", "600").want(125, errors="runs without a limit")


@quoted
def test_volumes_and_images_count_as_the_engine_tells_their_size(own):
    own.space.docker("volume", "create", "first").want()
    own.space.docker("run", "--rm", "-v", "first:/v", APP, "true").want()
    own.space.docker("volume", "create", "second").want()
    own.space.docker("volume", "create", "third").want(1, errors="has 2 volumes and asks for 1")
    own.space.docker("volume", "create", "first").want()  # it is there
    made = own.space.docker("create", "-v", "first:/v", APP, "true").want().out.strip()
    folder = own.world.direct("volume", "inspect", "-f", "{{.Mountpoint}}", "first").want().out.strip()
    (Path(folder) / "much").write_bytes(bytes(2 << 20))
    proc.until("the engine tells the new size", 20, lambda: own.space.docker("start", made).status, pause=0.5)
    own.space.docker("start", made).want(1, errors="in volumes, the profile allows 1MiB")
    own.space.docker("commit", made, "made:1").want(1, errors="in images, the profile allows 1 bytes")


@quoted
def test_the_log_has_what_was_counted(own):
    own.many.docker("run", "-d", "--name", "counted", APP, "sleep", "600").want()
    own.many.docker("run", "-d", "-m", "6m", APP, "sleep", "600").want()
    starts = [r for r in own.gate.records() if r.get("op") == "container.start" and r["type"] == "decision"]
    facts = starts[-1]["facts"]["quota"]
    if facts["used"] != {"containers": 1, "memory": 64 << 20, "nano_cpus": 10 ** 9, "pids": 64} or (
            facts["asked"]["memory"] != 6 << 20 or facts["by"] != ["counted"]):
        raise Trouble(f"the record says {json.dumps(facts)}")
