"""A private Podman service: own socket, storage, networks and runtime in one short folder; ends what it started."""

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from kit import dockerd, proc

CONTAINERS = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
log_driver = "k8s-file"

[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "{folder}/tmp"

[network]
network_backend = "cni"
network_config_dir = "{folder}/networks"
"""

STORAGE = """
[storage]
driver = "overlay"
graphroot = "{folder}/data"
runroot = "{folder}/run"
"""

# What an argument makes of the service's runtime; podman tells the program, and no flags.
GVISOR = ("--runtime", "/usr/bin/runsc", "--runtime-flag=network=none", "--runtime-flag=platform=ptrace",
          "--runtime-flag=ignore-cgroups")

# name: (user, command), as in dockerd.IMAGES; all are imported, since podman asks registries by TLS alone.
IMAGES = ("reg.example/team/app:1", "reg.example/team/rootly:1", "evil.example/miner:1")


class Podman:
    def __init__(self, folder=None, gvisor=False, group=None):
        """folder: made if it is absent; short. gvisor: every container is a sandbox of gVisor's. group:
        whose members may open the socket, beside root."""
        self.folder = Path(folder or tempfile.mkdtemp(prefix="sp-pod-", dir="/tmp"))
        self.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        self.socket, self.pidfile = self.folder / "podman.sock", self.folder / "pid"
        self.gvisor, self.group, self.process = gvisor, group, None

    def environment(self):
        return {**os.environ, "CONTAINERS_CONF": str(self.folder / "containers.conf"),
                "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"),
                "CONTAINERS_REGISTRIES_CONF": str(self.folder / "registries.conf")}

    def start(self, seconds=60):
        for name, text in (("containers.conf", CONTAINERS), ("storage.conf", STORAGE),
                           ("registries.conf", "unqualified-search-registries = []\n")):
            (self.folder / name).write_text(text.format(folder=self.folder))
        self.socket.unlink(missing_ok=True)
        self.process = proc.start(
            ["podman", *(GVISOR if self.gvisor else ()), "system", "service", "--time=0",
             f"unix://{self.socket}"], self.folder / "log", env=self.environment())
        self.pidfile.write_text(str(self.process.pid))
        try:
            proc.until("the private podman answers", seconds, self._answers, pause=0.05)
        except proc.Trouble as trouble:
            log = (self.folder / "log").read_text(errors="replace")[-3000:]
            self.stop()
            raise proc.Trouble(f"{trouble}\n{log}") from None
        if self.group:
            shutil.chown(self.socket, group=self.group)
            self.socket.chmod(0o660)
        return self

    def _answers(self):
        if self.process.poll() is not None:
            raise proc.Trouble(f"podman ended with status {self.process.returncode}")
        return dockerd.ping(self.socket)

    def restart(self, gvisor=None):
        """Ends the service and starts it anew, perhaps with the other runtime; containers stay."""
        self.gvisor = self.gvisor if gvisor is None else gvisor
        proc.end(self.process, 30)
        return self.start()

    def podman(self, *arguments):
        """A command line of podman itself that works on the same storage, past the service."""
        return ["podman", *(GVISOR if self.gvisor else ()), *arguments]

    def run(self, *arguments, check=True):
        done = subprocess.run(self.podman(*arguments), env=self.environment(), capture_output=True,
                              text=True, check=False, timeout=60)
        if check and done.returncode:
            raise proc.Trouble(f"podman {' '.join(arguments)}: {done.stderr[-1000:]}")
        return done.stdout

    def docker(self, *arguments, client="/usr/bin/docker"):
        """A command line of the docker client that talks to this service directly."""
        return [client, "-H", f"unix://{self.socket}", *arguments]

    def import_images(self):
        with tempfile.TemporaryDirectory(prefix="sp-root-") as root:
            archive = Path(root) / "root.tar"
            dockerd.make_root(Path(root) / "root")
            proc.output(["tar", "-C", Path(root) / "root", "--owner=0", "--group=0", "-cf",
                         archive, "."])
            for name in IMAGES:
                user, command = dockerd.IMAGES[name]
                said = [f"USER {user}"] if user else []
                said += ["ENV PATH=/bin", "CMD [" + ", ".join(f'"{w}"' for w in command) + "]"]
                changes = [word for one in said for word in ("-c", one)]
                proc.output(self.docker("import", *changes, str(archive), name))
        return self

    def stop(self):
        """Ends the service and what runs in it, and removes its folder; also of another process."""
        pid = self.process.pid if self.process else self._pid_of_file()
        if pid and proc.alive(pid):
            self.run("rm", "-f", "-a", "-t", "0", check=False)
            self.run("network", "prune", "-f", check=False)
            if self.process:
                proc.end(self.process, 30)
            else:
                os.kill(pid, signal.SIGTERM)
                proc.until("podman ends", 30, lambda: not proc.alive(pid), pause=0.05)
        proc.until("nothing of this podman runs", 30, self._end_leftovers, pause=0.05)
        for mount in self._mounts():
            subprocess.run(["umount", "-l", mount], check=False, capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end_leftovers(self):
        """Monitors, and what cleans up behind them, outlive the service; true if there are none."""
        mark, none = os.fsencode(self.folder) + b"/", True
        for entry in os.listdir("/proc"):
            try:
                command = Path(f"/proc/{entry}/cmdline").read_bytes() if entry.isdigit() else b""
            except OSError:
                continue
            if mark in command and int(entry) != os.getpid() and (b"conmon" in command or b"podman" in command
                                                                  or b"runsc" in command or b"runc" in command):
                none = False
                proc.kill(int(entry))
        return none

    def _pid_of_file(self):
        """The pid in the file, if that process is the service of this folder."""
        try:
            pid = int(self.pidfile.read_text())
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError):
            return None
        return pid if os.fsencode(self.socket) in command else None

    def _mounts(self):
        with open("/proc/self/mounts", encoding="utf-8") as mounts:
            points = [line.split()[1] for line in mounts]
        return sorted((p for p in points if p.startswith(f"{self.folder}/")), reverse=True)
