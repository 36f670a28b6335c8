"""A private engine, a gate before it, and docker clients that know only the gate."""

import fcntl
import os
import pty
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from kit import dockerd, gate, proc, wire
from kit.proc import Trouble

APP = "reg.example/team/app:1"
PATIENCE = 60

CONFIG = """
log {{ dir = "{dir}/log" }}
profiles {{ "{dir}/profiles", "{ref}" }}
backend "engine" {{ kind = "docker", address = "unix://{engine}", files = "same_host" }}
identity "sandboxed" {{ uid = 0, profile = "sandboxed", owner = "sandboxed" }}
identity "plain" {{ uid = 0, profile = "plain", owner = "plain" }}
identity "seen-process" {{ uid = 0, profile = "seen-process" }}
identity "seen-kernel" {{ uid = 0, profile = "seen-kernel" }}
identity "race-process" {{ uid = 0, profile = "race-process" }}
identity "race-kernel" {{ uid = 0, profile = "race-kernel" }}
identity "agent" {{ uid = 0, profile = "ref" }}
listener "runsc" {{ socket = "{dir}/runsc.sock", mode = "0666", backend = "engine", identities = {{ "sandboxed" }} }}
listener "runc" {{ socket = "{dir}/runc.sock", mode = "0666", backend = "engine", identities = {{ "plain" }} }}
listener "attested-runc" {{ socket = "{dir}/attested-runc.sock", mode = "0666", backend = "engine", identities = {{ "seen-process" }} }}
listener "attested-runsc" {{ socket = "{dir}/attested-runsc.sock", mode = "0666", backend = "engine", identities = {{ "seen-kernel" }} }}
listener "race-runc" {{ socket = "{dir}/race-runc.sock", mode = "0666", backend = "engine", identities = {{ "race-process" }} }}
listener "race-runsc" {{ socket = "{dir}/race-runsc.sock", mode = "0666", backend = "engine", identities = {{ "race-kernel" }} }}
listener "liar" {{ socket = "{dir}/liar.sock", mode = "0666", backend = "engine", identities = {{ "sandboxed" }} }}
identity "staying" {{ uid = 0, profile = "staying", owner = "staying" }}
listener "stay" {{ socket = "{dir}/stay.sock", mode = "0666", backend = "engine", identities = {{ "staying" }} }}
identity "tight" {{ uid = 0, profile = "tight", owner = "tight" }}
listener "tight" {{ socket = "{dir}/tight.sock", mode = "0666", backend = "engine", identities = {{ "tight" }} }}
identity "pinned" {{ uid = 0, profile = "pinned", owner = "pinned" }}
listener "pin" {{ socket = "{dir}/pin.sock", mode = "0666", backend = "engine", identities = {{ "pinned" }} }}
listener "ref" {{ socket = "{dir}/ref.sock", mode = "0666", backend = "engine", identities = {{ "agent" }} }}
"""

PROFILES = """
local operations = { "read", "container.run", "container.copy", "container.rename", "exec", "image.pull",
                     "volume.use" }

-- What was started must have been seen; or somebody else may move what is mounted.
local function looked_at(name, min, settings)
	settings.isolation = { min = min, runtimes = min == "kernel" and { "runsc" } or nil,
		attested = settings.attested }
	settings.attested = nil
	settings.images = { "reg.example/team/*" }
	settings.mounts = { { "/srv/ws", "rw" } }
	settings.egress = {}
	settings.limits = { memory = "1GiB", cpus = 2, pids = 256 }
	settings.operations = operations
	settings.harden = true
	return profile(name)(settings)
end

return {
	looked_at("seen-process", "process", { attested = true }),
	looked_at("seen-kernel", "kernel", { attested = true }),
	looked_at("race-process", "process", { movable_mounts = true }),
	looked_at("race-kernel", "kernel", { movable_mounts = true }),
	profile "sandboxed" {
		doc = "The end-to-end tests, in gVisor.",
		isolation = { min = "kernel", runtimes = { "runsc" } },
		images = { "reg.example/team/*" },
		mounts = { { "/srv/ws", "rw" } },
		egress = {},
		limits = { memory = "1GiB", cpus = 2, pids = 256 },
		operations = operations,
		harden = true,
	},
	profile "plain" {
		doc = "The end-to-end tests, in ordinary containers.",
		isolation = { min = "process" },
		images = { "reg.example/team/*" },
		mounts = { { "/srv/ws", "rw" } },
		egress = {},
		limits = { memory = "1GiB", cpus = 2, pids = 256 },
		operations = operations,
		harden = true,
	},
	profile "staying" {
		doc = "The end-to-end tests, in gVisor by a name of its own; the engine restarts what ends.",
		isolation = { min = "kernel", runtimes = { "box" } },
		images = { "reg.example/team/*" },
		egress = {},
		limits = { memory = "1GiB", cpus = 2, pids = 256 },
		restart = { "always" },
		operations = operations,
		harden = true,
	},
	profile "tight" {
		doc = "The end-to-end tests, under a filter of system calls.",
		extends = "plain",
		seccomp = "tight-python",
	},
	profile "pinned" {
		doc = "The end-to-end tests, made of exactly the image that was judged.",
		extends = "plain",
		images = { "reg.example/team/app:1" },
		pin = true,
	},
}
"""


class Done:
    """How a command ended."""

    def __init__(self, command, status, out, errors):
        self.command = " ".join(map(str, command))
        self.status, self.out, self.errors = status, out, errors

    def __str__(self):
        return (f"$ {self.command}\nstatus {self.status}\nout: {self.out[-1500:]!r}\n"
                f"errors: {self.errors[-1500:]!r}")

    def want(self, status=0, out=None, errors=None):
        """Raises unless it ended like this; out and errors are texts that must be there."""
        if self.status != status:
            raise Trouble(f"status {self.status}, not {status}\n{self}")
        if out is not None and out not in self.out:
            raise Trouble(f"no {out!r} in the output\n{self}")
        if errors is not None and errors not in self.errors:
            raise Trouble(f"no {errors!r} in what it said\n{self}")
        return self


class Client:
    """One docker program at one listener."""

    def __init__(self, program, version, runtime, path, home):
        self.program, self.version, self.runtime, self.path = program, version, runtime, path
        self.env = {"PATH": os.environ["PATH"], "HOME": str(home), "DOCKER_CONFIG": str(home),
                    "DOCKER_HOST": f"unix://{path}", "TERM": "dumb"}
        self.made = 0

    @property
    def name(self):
        return f"docker {self.version}, {self.runtime}"

    def docker(self, *arguments, stdin=b"", **env):
        command = [self.program, *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=PATIENCE,
                              check=False, env={**self.env, **env})
        return Done(command, done.returncode, done.stdout.decode(errors="replace"),
                    done.stderr.decode(errors="replace"))

    def start(self, *arguments, **more):
        """A docker command that goes on; its output comes by a pipe."""
        return subprocess.Popen([self.program, *arguments], env=self.env, start_new_session=True,
                                stdin=more.pop("stdin", subprocess.DEVNULL),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)

    def sleeper(self, *arguments, command=("sleep", "600"), options=()):
        """A container of one's own that runs; its name."""
        self.made += 1
        name = f"{Path(self.path).stem}-{self.version.replace('.', '-')}-{self.made}"
        self.docker("run", "-d", "--name", name, *options, *arguments, APP, *command).want()
        return name

    def terminal(self, *arguments, say, wait_for):
        """Runs docker on a terminal: waits for a text, types `say`, returns (status, all output)."""
        pid, fd = pty.fork()
        if pid == 0:
            os.execve(self.program, [self.program, *arguments], self.env)
        seen, deadline, said = b"", time.monotonic() + PATIENCE, False
        while True:
            ready, _, _ = select.select([fd], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                os.kill(pid, 9)
                os.waitpid(pid, 0)
                raise Trouble(f"on a terminal, docker {' '.join(arguments)} hangs after {seen!r}")
            try:
                got = os.read(fd, 4096)
            except OSError:
                break
            if not got:
                break
            seen += got
            if not said and wait_for in seen:
                os.write(fd, say)
                said = True
        _, status = os.waitpid(pid, 0)
        os.close(fd)
        return os.waitstatus_to_exitcode(status), seen.decode(errors="replace")


def lines_of(process):
    """Reads a process's output line by line, with a limit on each."""
    fd, seen = process.stdout.fileno(), b""
    while True:
        while b"\n" not in seen:
            ready, _, _ = select.select([fd], [], [], PATIENCE)
            if not ready:
                raise Trouble(f"{process.args}: no line in time; so far {seen!r}")
            got = os.read(fd, 65536)
            if not got:
                return
            seen += got
        line, _, seen = seen.partition(b"\n")
        yield line.decode(errors="replace")


def with_own(place):
    """A test that gets a place of its own before the world's engine, which is cleared up behind it."""
    def decorate(test):
        def play(world):
            own = place(world)
            try:
                test(own)
            finally:
                own.end()
        play.__name__ = test.__name__
        return play
    return decorate


class World:
    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="sp-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.engine = dockerd.Dockerd(self.folder / "d")
        # A program with gVisor's name that is runc.
        liar = self.folder / "lib/runsc"
        liar.parent.mkdir()
        shutil.copy("/usr/sbin/runc", liar)
        self.engine.runtimes["liar"] = {"path": str(liar)}
        self.engine.runtimes["box"] = self.engine.runtimes["runsc"]
        self.turn = None
        self.made = []  # host folders that did not exist before
        ref = proc.ROOT / "tests/profiles/ref.lua"
        self.gate = gate.Gate(self.folder, CONFIG.format(
            dir=self.folder, engine=self.engine.socket, ref=ref), {"e2e": PROFILES})
        self.more = []  # gates that single tests started
        self.home = self.folder / "home"
        self.home.mkdir()

    def start(self):
        self.make_workspace()
        self.engine.start().import_images()
        for name in ("agents", "prod-db"):
            self.direct("network", "create", "--internal", name).want()
        self.gate.start(*(self.folder / f"{name}.sock" for name in (
            "runsc", "runc", "pin", "tight", "ref", "attested-runc", "attested-runsc", "race-runc", "race-runsc",
            "liar", "stay")))
        return self

    def make_workspace(self):
        # /srv/ws is the same for every run on this host, so they go one after the other.
        self.turn = open("/tmp/sallyport-srv-ws.lock", "w", encoding="utf-8")
        fcntl.flock(self.turn, fcntl.LOCK_EX)
        for path in ("/srv", "/srv/ws", "/srv/ws/a", "/srv/ws-evil"):
            if not os.path.exists(path):
                os.mkdir(path)
                self.made.append(path)
        os.chmod("/srv/ws/a", 0o1777)
        if not os.path.lexists("/srv/ws/link"):
            os.symlink("/etc", "/srv/ws/link")
            self.made.append("/srv/ws/link")

    def stop(self):
        for guard in (self.gate, *self.more):
            guard.kill()
        self.engine.stop()
        for path in reversed(self.made):
            if os.path.islink(path):
                os.unlink(path)
            else:
                proc.output(["rm", "-r", path])
        proc.output(["rm", "-rf", self.folder])
        if self.turn:
            self.turn.close()

    def direct(self, *arguments):
        """A docker command past the gate."""
        command = self.engine.docker(*arguments)
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=PATIENCE)
        return Done(command, done.returncode, done.stdout, done.stderr)

    def direct_start(self, ident):
        """A start past the gate, by the same means as ask()."""
        head, answer = wire.ask(self.engine.socket, "POST", f"/v1.41/containers/{ident}/start",
                                (), None, seconds=PATIENCE)
        if head.status != 204:
            raise Trouble(f"start: {head.status} {answer}")

    def ask(self, listener, method, target, headers=(), body=None):
        return wire.ask(self.folder / f"{listener}.sock", method, target, headers, body,
                        seconds=PATIENCE)

    def clients(self):
        """Every docker program of this machine, at both listeners."""
        found = {}
        for program in ("/usr/bin/docker", "/usr/local/bin/docker"):
            if os.access(program, os.X_OK):
                version = proc.output([program, "--version"]).split()[2].rstrip(",")
                found.setdefault(version.partition("+")[0], program)
        return [Client(program, version, runtime, self.folder / f"{runtime}.sock", self.home)
                for version, program in found.items() for runtime in ("runc", "runsc")]
