"""An agent platform that makes a socket for each agent, with the script of examples/."""

import os
import subprocess
import tempfile
from pathlib import Path

from kit import gate, proc
from kit.proc import Trouble
from world import APP, PATIENCE

CONFIG = """
log {{ dir = "{dir}/log" }}
profiles {{ "{dir}/profiles" }}
backend "engine" {{ kind = "docker", address = "unix://{engine}", files = "same_host" }}
identity "nobody" {{ uid = 2999, profile = "agent" }}
listener "main" {{ socket = "{dir}/g.sock", mode = "0600", backend = "engine", identities = {{ "nobody" }} }}
admin {{ socket = "{dir}/admin.sock", group = "games", operate = {{ "games" }},
        sockets = "{dir}/agents", state = "{dir}/state" }}
"""

PROFILE = f"""
return profile "agent" {{
	doc = "For a test: ordinary containers without a network.",
	images = {{ "{APP}" }}, users = "any", egress = {{}},
	operations = {{ "read", "container.run", "container.logs" }},
	harden = true,
}}
"""

PLATFORM, AGENT = {"user": 2050, "group": 60, "extra_groups": []}, {"group": 1, "extra_groups": []}


class Platform:
    """Runs the script as a user who may operate, and docker as an agent."""

    def __init__(self, folder, guard):
        self.folder, self.guard = folder, guard
        self.homes = folder / "homes"
        self.homes.mkdir()

    def script(self, *words, status=0):
        env = {"PATH": os.environ["PATH"], "SALLYPORT": str(self.guard.program),
               "SALLYPORT_ADMIN": f"{self.folder}/admin.sock", "SALLYPORT_AGENTS": f"{self.folder}/agents"}
        done = subprocess.run([proc.ROOT / "examples/agent-sockets", *words], capture_output=True, text=True,
                              check=False, timeout=PATIENCE, env=env, cwd="/", **PLATFORM)
        if done.returncode != status:
            raise Trouble(f"agent-sockets {words}: status {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    def docker(self, host, uid, *words, status=0):
        home = self.homes / str(uid)
        home.mkdir(exist_ok=True)
        os.chown(home, uid, 1)
        name, _, value = host.partition("=")
        done = subprocess.run(["/usr/bin/docker", *words], capture_output=True, text=True, check=False,
                              timeout=PATIENCE, cwd="/", user=uid, **AGENT,
                              env={"PATH": os.environ["PATH"], "HOME": str(home), name: value})
        if (done.returncode == 0) != (status == 0):
            raise Trouble(f"docker {words}: status {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout.strip() if status == 0 else done.stderr


def play(world, platform):
    seven = platform.script("start", "agent-7", "daemon", "1h")
    eight = platform.script("start", "agent-8", "daemon")
    ident = platform.docker(seven, 2007, "run", "-d", "--name", "agent-7s", APP, "sleep", "600")
    if platform.docker(seven, 2007, "ps", "--no-trunc", "-q") != ident:
        raise Trouble("the agent does not see its container")
    if platform.docker(eight, 2008, "ps", "-aq"):
        raise Trouble("another agent sees it")
    platform.docker(eight, 2008, "logs", "agent-7s", status=1)
    label = world.direct("inspect", "-f", '{{index .Config.Labels "sallyport.owner"}}', "agent-7s").want().out
    if label.strip() != "agent-7":
        raise Trouble(f"it belongs to {label}")
    if "agent-8" not in platform.script("list"):
        raise Trouble("the list lacks a socket")
    platform.script("stop", "agent-7")
    platform.docker(seven, 2007, "ps", status=1)
    platform.docker(eight, 2008, "ps")


def test_an_agent_works_on_a_socket_of_its_own(world):
    """The docker CLI as an agent, on a socket that the platform made and ends."""
    with tempfile.TemporaryDirectory(prefix="sp-agent-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        guard = gate.Gate(folder, CONFIG.format(dir=folder, engine=world.engine.socket), {"agent": PROFILE})
        try:
            guard.start(folder / "g.sock")
            play(world, Platform(folder, guard))
            if status := guard.stop():
                raise Trouble(f"the gate ended with status {status}: {guard.said()[-2000:]}")
        finally:
            guard.kill()
            proc.output(world.engine.docker("rm", "-f", "agent-7s"))
