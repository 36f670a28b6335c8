"""What the suite runs against: one gate, with a listener of the sandbox API for each case."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from api import Api
from kit import dockerd, gate, proc
from kit.dockerd import Dockerd
from kit.podman import Podman

APP = "reg.example/team/conform:1"
LEVELS = ("none", "process", "kernel", "vm")
SECRET = "of-the-host-alone"  # in a file of the host, and in the gate's environment

GATE = """
log {{ dir = "{dir}/log" }}
profiles {{ "{dir}/profiles" }}
sandboxes {{ state = "{dir}/state", inside = "{helper}/inside", max = 400, owner_max = 400 }}
"""
CASE = """
identity "{name}" {{ uid = 0, profile = "{name}" }}
listener "{name}" {{ socket = "{dir}/{name}.sock", mode = "0666", sandboxes = {{ "{backend}" }},
	identities = {{ "{name}" }} }}
"""
BACKEND = """
backend "{name}" {{ kind = "{kind}", address = "unix://{address}", files = "same_host"{more} }}
"""
# A place in memory runs no programs, and the keeper's one image has those of the host alone: the probe is one of them.
KEEPER = """, state = "{dir}/keeper", bare = true,
	read_only = {{ "/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/alternatives", "/etc/ld.so.cache", "{tools}" }}"""
PROFILE = """
	profile "{name}" {{
		{isolation}images = {{ {image} }},
		{network},
		limits = {{ memory = "256MiB", cpus = 1, pids = 128 }},
		operations = {{ "read", "container.run", "exec", "container.copy" }},
		sandbox = {{ image = {image}, lifetime = "10m", disk = "16MiB", output = "4MiB" }},{more}
		harden = true,
	}},
"""


class Case:
    """One backend with one runtime.

    engine: which of the engines it needs; level: what it must reach; cgroups: whether limits of memory, processors
    and processes reach what runs (gVisor of the tests is started with --ignore-cgroups); alone: whether processes of
    other sandboxes are out of sight; slow: each command takes long to begin, so that fewer ways to say the same are
    tried; served: False where the API does not serve the mode itself, and what it gives must be the tighter one.
    """

    def __init__(self, name, engine, kind, level, image=APP, more="", cgroups=True, alone=True,
                 slow=False, served=True):
        self.name, self.engine, self.kind, self.level = name, engine, kind, level
        self.image, self.more, self.cgroups, self.alone, self.slow = image, more, cgroups, alone, slow
        self.served = served
        self.api = self.box = self.place = None

    def of_this_version(self):
        return (proc.ROOT / "backends" / self.kind).is_dir()

    def profiles(self):
        isolation = f'isolation = {{ min = "{self.level}" }},\n\t\t' if self.level != "none" else ""
        text = PROFILE.format(name=self.name, isolation=isolation, image=f'"{self.image}"', more=self.more,
                              network="egress = {}" if self.served else 'networks = { "default" }')
        for level in LEVELS[LEVELS.index(self.level) + 1:]:
            text += f'\tprofile "{self.name}-{level}" {{ extends = "{self.name}", isolation = {{ min = "{level}" }} }},\n'
        return text


# Podman's images are imported here, and come from no registry.
LOCAL = f'\n\t\tlocal_images = {{ "{APP}" }},'
CASES = [
    Case("docker-runc", "docker", "docker", "process"),
    Case("docker-runsc", "docker", "docker", "kernel", cgroups=False),
    Case("podman-runc", "podman", "podman", "process", more=LOCAL, slow=True),
    Case("podman-runsc", "podman-gvisor", "podman", "kernel", more=LOCAL, cgroups=False, slow=True),
    Case("local-confined", "keeper", "local", "process", image="host", more='\n\t\thost_tools = "confined",'),
    # The API serves no runtime without walls: there is nowhere to put its helper, nor a /work and a /tmp of one's own.
    # A profile that grants it gets walls all the same, and that is all that this case is about.
    Case("local-bare", "keeper", "local", "none", image="host", served=False,
         more='\n\t\thost_tools = "bare", isolation = { min = "none" },'),
]


def archive_of(folder, probe):
    """An image's files: the one program of the tests' images, and the probe."""
    dockerd.make_root(folder / "root")
    shutil.copy(probe, folder / "root/bin/probe")
    proc.output(["tar", "-C", folder / "root", "--owner=0", "--group=0", "-cf", folder / "root.tar", "."])
    return folder / "root.tar"


class Place:
    """The engines that there are, started side by side, and the gate before them."""

    def __init__(self, cases):
        self.cases = cases
        self.folder = Path(tempfile.mkdtemp(prefix="sp-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.helper = Path(tempfile.mkdtemp(prefix="sp-", dir="/srv"))
        self.helper.chmod(0o755)
        self.tools = Path(tempfile.mkdtemp(prefix="sp-", dir="/srv"))
        self.tools.chmod(0o755)
        self.secret = self.helper / "secret"
        self.secret.write_text(SECRET)
        self.engines, self.gate, self.socket = {}, None, None
        for case in cases:
            case.place, case.api = self, Api(self.folder / f"{case.name}.sock")

    def start(self):
        gate.make_users()
        built = gate.binary().parent.parent
        shutil.copy(built / "proxy/sandbox/inside/inside", self.helper / "inside")
        self.probe = built / "tests/conformance/probes/probe"
        shutil.copy(self.probe, self.tools / "probe")
        with tempfile.TemporaryDirectory() as root:
            self._start_engines(archive_of(Path(root), self.probe))
        text = GATE.format(dir=self.folder, helper=self.helper)
        for engine in {case.engine for case in self.cases}:
            case = next(case for case in self.cases if case.engine == engine)
            socket = self.engines[engine].socket if engine in self.engines else self.folder / "keeper.sock"
            more = KEEPER.format(dir=self.folder, tools=self.tools) if engine == "keeper" else ""
            text += BACKEND.format(name=engine, kind=case.kind, address=socket, more=more)
        for case in self.cases:
            text += CASE.format(dir=self.folder, name=case.name, backend=case.engine)
        profiles = "return {\n" + "".join(case.profiles() for case in self.cases) + "}\n"
        self.gate = gate.Gate(self.folder, text, {"conformance": profiles})
        self.gate.more["env"] = {**os.environ, "SECRET_OF_THE_HOST": SECRET}
        self.gate.start(*(case.api.path for case in self.cases), seconds=60)
        return self

    def _start_engines(self, archive):
        wanted = {case.engine for case in self.cases}
        if "docker" in wanted:
            engine = self.engines["docker"] = Dockerd().start()
            engine.registry.offer(APP, archive.read_bytes(), {"Cmd": ["sh"], "Env": ["PATH=/bin"]})
            proc.output(engine.docker("pull", "-q", APP))
        for name in wanted & {"podman", "podman-gvisor"}:
            engine = self.engines[name] = Podman(gvisor=name != "podman", group="sallyport-worker").start()
            proc.output(engine.docker("import", "-c", "ENV PATH=/bin", "-c", 'CMD ["sh"]', archive, APP))

    def left_behind(self):
        """What of sandboxes is still there, by the engines' own word."""
        left = []
        for engine in self.engines.values():
            done = subprocess.run(engine.docker("ps", "-aq", "--filter", "name=sbx-"), capture_output=True, text=True,
                                  check=False)
            left += done.stdout.split()
        if any(case.engine == "keeper" for case in self.cases):
            left += Api(self.folder / "keeper.sock").ask("GET", "/containers/json?all=1").want(200).json
        return left

    def stop(self):
        try:
            if self.gate and self.gate.process:
                self.gate.stop()
        finally:
            if self.gate:
                self.gate.kill()
            for engine in self.engines.values():
                engine.stop()
            proc.output(["rm", "-rf", self.folder, self.helper, self.tools])


def there(case):
    """None, or why the case cannot run here."""
    if os.getuid() != 0:
        return "it needs root"
    if not case.of_this_version():
        return f"this version has no backend of kind {case.kind}"
    needed = {"docker": ["dockerd"], "podman": ["podman"], "podman-gvisor": ["podman", "runsc"], "keeper": []}[case.engine]
    missing = [name for name in needed + (["runsc"] if "runsc" in case.name else []) if not shutil.which(name)]
    return f"{', '.join(missing)} is not installed" if missing else None


