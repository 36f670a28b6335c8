"""A private Docker engine: own socket, data and runtimes in one short folder; ends what it started."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

from kit import proc
from kit.registry import Registry

RUNTIMES = {
    "runsc": {"path": "/usr/bin/runsc",
              "runtimeArgs": ["--network=none", "--platform=ptrace", "--ignore-cgroups"]},
    # The name of a sandbox with an ordinary runtime behind it: the gate must see through it.
    "gvisor": {"path": "/usr/sbin/runc"},
}

# name: (user, command); all hold the same static busybox, and come from a registry of the tests
IMAGES = {
    "busybox:latest": (None, ["sh"]),
    "alpine:latest": ("1000:1000", ["sh"]),
    "reg.example/team/app:1": ("1000:1000", ["sleep", "600"]),
    "evil.example/miner:1": (None, ["sh"]),
    "reg.example/team/rootly:1": (None, ["sh"]),
}

# A name as it would be on a list, given on this machine to something that no registry has.
LOCAL = "reg.example/team/homemade:1"


def ping(path, timeout=2):
    """Does an engine answer on this socket?"""
    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(timeout)
            sock.connect(str(path))
            sock.sendall(b"GET /_ping HTTP/1.0\r\nHost: engine\r\n\r\n")
            return b" 200 " in sock.recv(64)
    except OSError:
        return False


def make_bridge():
    """A bridge that is nobody else's; its name."""
    for number in range(256):
        name = f"spbridge{number}"
        if subprocess.run(["ip", "link", "add", name, "type", "bridge"], check=False,
                          capture_output=True).returncode == 0:
            proc.output(["ip", "address", "add", f"10.213.{number}.1/24", "dev", name])
            proc.output(["ip", "link", "set", name, "up"])
            return name
    raise proc.Trouble("no bridge can be made")


class Dockerd:
    command = ("dockerd",)
    settings = {}  # of the engine's configuration, beside what all have

    def __init__(self, folder=None, own_bridge=False):
        """folder: where it lives, made if it is absent; short, since socket paths are (107 bytes).

        own_bridge: engines side by side share docker0, and give its addresses out twice; with
        a bridge of its own, ports published on the default network lead where they should.
        """
        self.own_bridge, self.bridge = own_bridge, None
        self.folder = Path(folder or tempfile.mkdtemp(prefix="sp-engine-", dir="/tmp"))
        self.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        self.socket = self.folder / "docker.sock"
        self.pidfile = self.folder / "pid"
        self.process = None
        self.runtimes = dict(RUNTIMES)
        self.registry = Registry()

    def _configuration(self):
        """The registry is all registries: a proxy to names of hosts, a mirror to Docker Hub."""
        hosts = {name.split("/")[0] for name in IMAGES if "." in name.split("/")[0]}
        if self.own_bridge and not self.bridge:
            self.bridge = make_bridge()
        return {"runtimes": self.runtimes, "insecure-registries": sorted(hosts),
                "registry-mirrors": [self.registry.url],
                **({"bridge": self.bridge} if self.bridge else {}), **self.settings}

    def start(self, seconds=60):
        self.registry.start()
        return self._run(seconds)

    def restart(self, seconds=60):
        """Ends it in order and starts it anew, with its runtimes as they are now and its containers."""
        proc.end(self.process, 30)
        self._end_leftovers()
        return self._run(seconds)

    def reload(self):
        """Has it read its configuration, with its runtimes as they are now, while it runs."""
        (self.folder / "daemon.json").write_text(json.dumps(self._configuration()))
        self.process.send_signal(signal.SIGHUP)

    def _run(self, seconds):
        # The state of a dead engine would hang the next one.
        exec_root = Path(tempfile.mkdtemp(prefix="x", dir=self.folder))
        config = self.folder / "daemon.json"
        config.write_text(json.dumps(self._configuration()))
        proxy = {name: self.registry.url for name in ("HTTP_PROXY", "HTTPS_PROXY")}
        for stale in (self.socket, self.pidfile):
            stale.unlink(missing_ok=True)
        self.process = proc.start(
            [*self.command, "--config-file", config, "--host", f"unix://{self.socket}",
             "--data-root", self.folder / "data", "--exec-root", exec_root,
             "--pidfile", self.pidfile], self.folder / "log", env={**os.environ, **proxy})
        try:
            proc.until("the private dockerd answers", seconds, self._answers, pause=0.05)
        except proc.Trouble as trouble:
            log = (self.folder / "log").read_text(errors="replace")[-3000:]
            self.stop()
            raise proc.Trouble(f"{trouble}\n{log}") from None
        return self

    def _answers(self):
        if self.process.poll() is not None:
            raise proc.Trouble(f"dockerd ended with status {self.process.returncode}")
        return ping(self.socket)

    def stop(self):
        """Ends the engine and removes its folder; also one that another process started."""
        pid = self.process.pid if self.process else self._pid_of_file()
        if pid and proc.alive(pid):
            self._remove_objects()
            if self.process:
                proc.end(self.process, 30)
            else:
                proc.kill(pid, 15)
                proc.until("dockerd ends", 30, lambda: not proc.alive(pid), pause=0.05)
        self._end_leftovers()
        self._remove_bridge()
        for mount in self._mounts():
            subprocess.run(["umount", "-l", mount], check=False, capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _pid_of_file(self):
        """The pid in the file, if that process is the engine of this folder."""
        try:
            pid = int(self.pidfile.read_text())
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError):
            return None
        return pid if os.fsencode(self.socket) in command else None

    def _remove_objects(self):
        """Containers, and networks: the bridges of these would stay on the host."""
        ids = subprocess.run(self.docker("ps", "-aq"), capture_output=True, text=True,
                             check=False).stdout.split()
        if ids:
            subprocess.run(self.docker("rm", "-f", "-v", *ids), capture_output=True, check=False)
        subprocess.run(self.docker("network", "prune", "-f"), capture_output=True, check=False)

    def _remove_bridge(self):
        try:
            bridge = json.loads((self.folder / "daemon.json").read_text()).get("bridge")
        except (OSError, ValueError):
            return
        if bridge:
            subprocess.run(["ip", "link", "delete", bridge], check=False, capture_output=True)

    def _end_leftovers(self):
        """Shims and runtimes that outlived the engine; they name its folder in their command line."""
        mark = os.fsencode(self.folder) + b"/x"
        for entry in os.listdir("/proc"):
            try:
                if entry.isdigit() and mark in Path(f"/proc/{entry}/cmdline").read_bytes():
                    proc.kill(int(entry))
            except OSError:
                continue

    def _mounts(self):
        with open("/proc/self/mounts", encoding="utf-8") as mounts:
            points = [line.split()[1] for line in mounts]
        return sorted((p for p in points if p.startswith(f"{self.folder}/")), reverse=True)

    def docker(self, *arguments, client="/usr/bin/docker"):
        """A command line of the docker client that talks to this engine directly."""
        return [client, "-H", f"unix://{self.socket}", *arguments]

    def import_images(self):
        """Pulls IMAGES from the registry, made of the machine's static busybox, and makes LOCAL here."""
        with tempfile.TemporaryDirectory(prefix="sp-root-") as root:
            archive = Path(root) / "root.tar"
            make_root(Path(root) / "root")
            proc.output(["tar", "-C", Path(root) / "root", "--owner=0", "--group=0", "-cf",
                         archive, "."])
            for name, (user, command) in IMAGES.items():
                self.registry.offer(full_name(name), archive.read_bytes(), {
                    "Cmd": command, "Env": ["PATH=/bin"], **({"User": user} if user else {})})
                proc.output(self.docker("pull", "-q", name))
            proc.output(self.docker("import", "-c", "USER 1000:1000", "-c", "ENV PATH=/bin",
                                    "-c", 'CMD ["sleep", "600"]', str(archive), LOCAL))
        return self


def full_name(name):
    """With registry and repository, as a registry is asked for it."""
    if "." in name.split("/")[0] and "/" in name:
        return name
    return f"docker.io/{name}" if "/" in name else f"docker.io/library/{name}"


def make_root(folder):
    """A root file system of one static program."""
    for name in ("bin", "etc", "root", "proc", "sys", "dev", "srv", "w"):
        (folder / name).mkdir(parents=True)
    for name in ("tmp", "w"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name).chmod(0o1777)
    shutil.copy("/bin/busybox", folder / "bin/busybox")
    for name in proc.output(["/bin/busybox", "--list"]).split():
        if name != "busybox":
            (folder / "bin" / name).symlink_to("busybox")
    (folder / "etc/passwd").write_text(
        "root:x:0:0:root:/root:/bin/sh\nagent:x:1000:1000:agent:/tmp:/bin/sh\n")
    (folder / "etc/group").write_text("root:x:0:\nagent:x:1000:\n")
