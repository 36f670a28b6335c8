"""A private engine, a gate before it with a permissive profile, and a second gate with short timers."""

import os
import re
import subprocess
import tempfile
from pathlib import Path

from e2e.world import PATIENCE, Client, Done
from kit import dockerd, gate, proc, wire
from kit.proc import Trouble

APP = "reg.example/team/app:1"
RYUK = "testcontainers/ryuk:0.11.0"
PYTHON = os.path.realpath("/usr/bin/python3")
HERE = Path(__file__).resolve().parent
DECISION = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")

CONFIG = """
log {{ dir = "{dir}/log" }}
profiles {{ "{dir}/profiles" }}
backend "engine" {{ kind = "docker", address = "unix://{engine}", files = "same_host" }}
identity "clients" {{ uid = 0, profile = "clients" }}
identity "tests" {{ uid = 0, profile = "testcontainers", own_socket = "ryuk" }}
listener "clients" {{ socket = "{dir}/gate.sock", mode = "0666", backend = "engine", identities = {{ "clients" }} }}
listener "tests" {{ socket = "{dir}/tests.sock", mode = "0666", identities = {{ "tests" }} }}
identity "builders" {{ uid = 0, profile = "builders" }}
identity "tunnels" {{ uid = 0, profile = "tunnels" }}
listener "builders" {{ socket = "{dir}/builders.sock", mode = "0666", backend = "engine", identities = {{ "builders" }} }}
listener "tunnels" {{ socket = "{dir}/tunnels.sock", mode = "0666", backend = "engine", identities = {{ "tunnels" }} }}
identity "pinned" {{ uid = 0, profile = "pinned" }}
listener "pinned" {{ socket = "{dir}/pinned.sock", mode = "0666", backend = "engine", identities = {{ "pinned" }} }}
listener "ryuk" {{ socket = "{dir}/own/ryuk.sock", mode = "0666", as = "tests" }}
limits {{ {limits} }}
"""

# How long a stream must be silent below: several times the longest of these.
SHORT_TIMERS = "head_ms = 300, body_ms = 300, engine_ms = 1500"


class Place:
    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="sp-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.home = self.folder / "home"
        self.share = self.folder / "share"
        for made in (self.home, self.share):
            made.mkdir()
        self.engine = dockerd.Dockerd(self.folder / "d", own_bridge=True)
        self.gate = self.make_gate("g", "workers = 2")
        self.hasty = self.make_gate("h", f"workers = 1, {SHORT_TIMERS}")
        self.socket = self.gate.folder / "gate.sock"

    def make_gate(self, name, limits):
        folder = self.folder / name
        folder.mkdir(mode=0o755)
        (folder / "own").mkdir(mode=0o700)
        example = (proc.ROOT / "rules/profiles/testcontainers.lua").read_text()
        # Several gates share this engine and their owners' names: none may stop what another has let start.
        example = example.replace("harden       = true,", 'harden       = true,\n\trunning      = "report",')
        if 'running      = "report"' not in example:
            raise proc.Trouble("testcontainers.lua has another layout")
        profile = (HERE / "profile.lua").read_text().replace("@SHARE@", str(self.share))
        return gate.Gate(folder, CONFIG.format(dir=folder, engine=self.engine.socket,
                                               limits=limits), {"clients": profile, "builders": (HERE / "builders.lua").read_text(),
                                                               "testcontainers": example,
                                                               "pinned": (HERE / "pinned.lua").read_text()})

    def start(self):
        self.engine.start().import_images()
        for one in (self.gate, self.hasty):
            one.start(one.folder / "gate.sock")
        return self

    def stop(self):
        for one in (self.gate, self.hasty):
            one.kill()
        self.engine.stop()
        proc.output(["rm", "-rf", self.folder])

    def ryuk(self):
        """The image that testcontainers asks for: ryuk.py and the distribution's Python."""
        return self.with_program(RYUK, PYTHON, f"/usr/lib/{Path(PYTHON).name}", config={
            "Cmd": [PYTHON, "/ryuk.py"], "Env": ["RYUK_RECONNECTION_TIMEOUT=1s"],
            "Labels": {"org.testcontainers.ryuk": "true"}})

    def with_program(self, image, program, *more, config=None):
        """Offers in the registry, once, and pulls an image of busybox, ryuk.py, a program of this machine and what it needs."""
        if self.direct("image", "inspect", image).status:
            libraries = re.findall(r"(/\S+) \(0x", proc.output(["ldd", program]))
            root, archive = self.folder / "root", self.folder / "image.tar"
            proc.output(["rm", "-rf", root])
            dockerd.make_root(root)
            # Of a file that is here and there the last one counts.
            proc.output(["tar", "-chf", archive, "--exclude=test", "--exclude=dist-packages",
                         "-C", HERE, "ryuk.py", "-C", "/", *(path[1:] for path in (
                             program, *more, *libraries))])
            proc.output(["tar", "-rf", archive, "--owner=0", "--group=0", "-C", root, "."])
            config = dict(config or {})
            config["Env"] = ["PATH=/bin:/usr/bin", *config.get("Env", ())]
            self.engine.registry.offer(dockerd.full_name(image), archive.read_bytes(), config)
            self.direct("pull", image).want()
        return image

    def clients(self):
        """Every docker program of this machine."""
        found = {}
        for program in ("/usr/bin/docker", "/usr/local/bin/docker"):
            if os.access(program, os.X_OK):
                version = proc.output([program, "--version"]).split()[2].rstrip(",")
                found.setdefault(version.partition("+")[0], program)
        return [Client(program, version, "gate", self.socket, self.home)
                for version, program in found.items()]

    def direct(self, *arguments):
        """A docker command past the gate."""
        return self.run(*self.engine.docker(*arguments))

    def env(self, **more):
        """What a command gets that is to see the gate as its engine."""
        return {"PATH": os.environ["PATH"], "HOME": str(self.home),
                "DOCKER_HOST": f"unix://{self.socket}", **more}

    def run(self, *command, seconds=PATIENCE, **more):
        """A command that sees the gate as its engine; Done."""
        env = self.env(**more.pop("env", {}))
        try:
            done = subprocess.run(command, capture_output=True, check=False, timeout=seconds,
                                  env=env, stdin=subprocess.DEVNULL, **more)
        except subprocess.TimeoutExpired as late:
            raise Trouble(f"{' '.join(map(str, command))} hangs after "
                          f"{(late.stdout or b'')[-2000:]!r} {(late.stderr or b'')[-2000:]!r}") from None
        return Done(command, done.returncode, done.stdout.decode(errors="replace"),
                    done.stderr.decode(errors="replace"))

    def ask(self, method, target, headers=(), body=None):
        return wire.ask(self.socket, method, target, headers, body, seconds=PATIENCE)

    def record(self, ident):
        """The decision on disk with this id; records of reads take a few milliseconds."""
        def look():
            return [one for one in self.gate.records() if one.get("id") == ident]
        return proc.until(f"the record {ident} is on disk", 10, look, pause=0.05)[0]

    def refused(self, text, reason):
        """Raises unless text tells a refusal that is on record, denied for this reason."""
        found = DECISION.search(text)
        if not found:
            raise Trouble(f"no id of a decision in {text[-1500:]!r}")
        record = self.record(found[0])
        reasons = [violation["reason"] for violation in record.get("violations", [])]
        if record.get("verdict") != "deny" or reason not in reasons:
            raise Trouble(f"the record says {record.get('verdict')} for {reasons}, not {reason}\n"
                          f"{text[-1500:]}")
