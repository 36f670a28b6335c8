"""What a scripted engine answers when nobody scripted anything else: a small, truthful Docker 20.10."""

import copy
import hashlib
import json
import re
import urllib.parse

from kit.proc import Trouble

API = "1.41"

IMAGES = {
    "reg.example/team/app:1": "1000:1000",
    "busybox:latest": "",
    "alpine:latest": "1000:1000",
    "evil.example/miner:1": "",
    "reg.example/team/rootly:1": "",
    "reg.example/team/homemade:1": "1000:1000",
}

# Made, loaded or only named on that machine; all others came from the registry of their name.
LOCAL = {"reg.example/team/homemade:1"}

INFO = {
    "ID": "SCEN:SCEN", "Containers": 0, "ContainersRunning": 0, "ContainersPaused": 0,
    "ContainersStopped": 0, "Images": 4, "Driver": "overlay2", "LoggingDriver": "json-file",
    "CgroupDriver": "cgroupfs", "CgroupVersion": "1", "KernelVersion": "6.1.0",
    "OperatingSystem": "Debian GNU/Linux 12 (bookworm)", "OSType": "linux",
    "Architecture": "x86_64", "NCPU": 2, "MemTotal": 8 << 30, "DockerRootDir": "/var/lib/docker",
    "Name": "scene", "ServerVersion": "20.10.24", "ExperimentalBuild": False,
    "Runtimes": {
        "io.containerd.runc.v2": {"path": "runc"},
        "runc": {"path": "runc"},
        "runsc": {"path": "/usr/bin/runsc", "runtimeArgs": [
            "--network=none", "--platform=ptrace", "--ignore-cgroups"]},
        "gvisor": {"path": "/usr/sbin/runc"},
        "runsc-host": {"path": "/usr/bin/runsc", "runtimeArgs": ["--network=host"]},
    },
    "DefaultRuntime": "runc", "InitBinary": "docker-init", "LiveRestoreEnabled": False,
    "SecurityOptions": ["name=seccomp,profile=default"], "Isolation": "",
    "Swarm": {"NodeID": "", "LocalNodeState": "inactive"},
}

VERSION = {
    "Platform": {"Name": ""}, "Version": "20.10.24", "ApiVersion": API, "MinAPIVersion": "1.12",
    "GitCommit": "5d6db84", "GoVersion": "go1.19.8", "Os": "linux", "Arch": "amd64",
    "KernelVersion": "6.1.0",
    "Components": [{"Name": "Engine", "Version": "20.10.24", "Details": {
        "ApiVersion": API, "MinAPIVersion": "1.12", "Os": "linux", "Arch": "amd64"}}],
}

HOST_CONFIG = {
    "Binds": None, "ContainerIDFile": "", "LogConfig": {"Type": "json-file", "Config": {}},
    "NetworkMode": "default", "PortBindings": {}, "RestartPolicy": {"Name": "no",
                                                                    "MaximumRetryCount": 0},
    "AutoRemove": False, "VolumeDriver": "", "VolumesFrom": None, "CapAdd": None, "CapDrop": None,
    "CgroupnsMode": "host", "Dns": [], "DnsOptions": [], "DnsSearch": [], "ExtraHosts": None,
    "GroupAdd": None, "IpcMode": "private", "Cgroup": "", "Links": None, "OomScoreAdj": 0,
    "PidMode": "", "Privileged": False, "PublishAllPorts": False, "ReadonlyRootfs": False,
    "SecurityOpt": None, "UTSMode": "", "UsernsMode": "", "ShmSize": 67108864, "Runtime": "runc",
    "ConsoleSize": [0, 0], "Isolation": "", "CpuShares": 0, "Memory": 0, "NanoCpus": 0,
    "CgroupParent": "", "BlkioWeight": 0, "BlkioWeightDevice": [], "BlkioDeviceReadBps": None,
    "BlkioDeviceWriteBps": None, "BlkioDeviceReadIOps": None, "BlkioDeviceWriteIOps": None,
    "CpuPeriod": 0, "CpuQuota": 0, "CpuRealtimePeriod": 0, "CpuRealtimeRuntime": 0,
    "CpusetCpus": "", "CpusetMems": "", "Devices": [], "DeviceCgroupRules": None,
    "DeviceRequests": None, "KernelMemory": 0, "KernelMemoryTCP": 0, "MemoryReservation": 0,
    "MemorySwap": 0, "MemorySwappiness": None, "OomKillDisable": False, "PidsLimit": None,
    "Ulimits": None, "CpuCount": 0, "CpuPercent": 0, "IOMaximumIOps": 0, "IOMaximumBandwidth": 0,
    "MaskedPaths": ["/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
                    "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi",
                    "/sys/firmware"],
    "ReadonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
}

CONFIG = {
    "Hostname": "0123456789ab", "Domainname": "", "User": "", "AttachStdin": False,
    "AttachStdout": False, "AttachStderr": False, "Tty": False, "OpenStdin": False,
    "StdinOnce": False, "Env": ["PATH=/bin"], "Cmd": ["sh"], "Image": "", "Volumes": None,
    "WorkingDir": "", "Entrypoint": None, "OnBuild": None, "Labels": {},
}


def image_id(name):
    return "sha256:" + hashlib.sha256(name.encode()).hexdigest()


def repo_digest(name):
    digest = hashlib.sha256(b"manifest " + name.encode()).hexdigest()
    return f"{name.rpartition(':')[0]}@sha256:{digest}"


def long_id(name):
    """A full object id made of a short word, so that scenes can name it."""
    return hashlib.sha256(b"object " + name.encode()).hexdigest()


class Model:
    """Objects by their full ids; answer() is what the API says of them."""

    def __init__(self):
        self.info, self.version = copy.deepcopy(INFO), copy.deepcopy(VERSION)
        self.containers, self.execs, self.volumes = {}, {}, {}
        self.networks = {}
        for name in ("none", "host", "bridge", "agents"):
            driver = "bridge" if name == "agents" else {"none": "null"}.get(name, name)
            self.networks[long_id("network " + name)] = {
                "Name": name, "Id": long_id("network " + name), "Scope": "local",
                "Driver": driver, "Internal": False, "Labels": {}, "Options": {},
                "Containers": {}, "Created": "2024-01-01T00:00:00Z"}

    def add_container(self, ident, name, create, running=False):
        """What inspect says of a container that the body `create` made."""
        host = {**HOST_CONFIG, **{k: v for k, v in (create.get("HostConfig") or {}).items()
                                  if v is not None}}
        host["Runtime"] = host["Runtime"] or "runc"
        host["NetworkMode"] = host["NetworkMode"] or "default"
        config = {**CONFIG, **{k: v for k, v in create.items()
                               if k not in ("HostConfig", "NetworkingConfig") and v is not None}}
        image = self._find_image(config["Image"])
        if image and not config["User"]:
            config["User"] = IMAGES[image]
        self.containers[ident] = {
            "Id": ident, "Created": "2024-01-01T00:00:00Z", "Path": "sh", "Args": [],
            "State": {"Status": "running" if running else "created", "Running": running,
                      "Paused": False, "Restarting": False, "OOMKilled": False, "Dead": False,
                      "Pid": 4242 if running else 0, "ExitCode": 0, "Error": "",
                      "StartedAt": "2024-01-01T00:00:00Z", "FinishedAt": "0001-01-01T00:00:00Z"},
            "Image": image_id(image or ""), "Name": "/" + name, "RestartCount": 0,
            "Driver": "overlay2", "Platform": "linux", "MountLabel": "", "ProcessLabel": "",
            "AppArmorProfile": "", "ExecIDs": None, "HostConfig": host, "Config": config,
            "GraphDriver": {"Name": "overlay2", "Data": None}, "Mounts": _mounts(host),
            "NetworkSettings": {"Networks": {host["NetworkMode"]: {
                "NetworkID": long_id("network " + host["NetworkMode"])}}, "Ports": {}},
        }
        return self.containers[ident]

    def find_container(self, name):
        for ident, container in self.containers.items():
            if ident == name or container["Name"] == "/" + name or (
                    len(name) >= 4 and ident.startswith(name)):
                return container
        return None

    @staticmethod
    def _find_image(name):
        name, _, digest = urllib.parse.unquote(name).partition("@")
        short = name.removeprefix("docker.io/").removeprefix("library/")
        for known in IMAGES:
            named = short in (known, known.removesuffix(":latest")) or (
                digest and short == known.rpartition(":")[0])
            if name == image_id(known) or named and digest in ("", repo_digest(known).partition("@")[2]):
                return known
        return None

    def answer(self, method, target, body=b""):
        """(status, document) of a call that only looks; None for anything else."""
        path = re.sub(r"^/v\d+\.\d+(?=/)", "", target.partition("?")[0])
        if method not in ("GET", "HEAD"):
            return None
        if path == "/_ping":
            return 200, "OK"
        if path in ("/info", "/version"):
            return 200, self.info if path == "/info" else self.version
        for pattern, look in (
                (r"/containers/([^/]+)/json", self._container),
                (r"/images/(.+)/json", self._image),
                (r"/networks/([^/]+)", self._network),
                (r"/volumes/([^/]+)", self._volume),
                (r"/exec/([^/]+)/json", self._exec)):
            match = re.fullmatch(pattern, path)
            if match:
                return look(urllib.parse.unquote(match[1]))
        return None

    def running(self, target):
        """What a list of what runs says: rows, of all, or of the ids that are asked for."""
        query = dict(urllib.parse.parse_qsl(target.partition("?")[2]))
        ids = json.loads(query.get("filters", "{}")).get("id")
        return [{"Id": ident, "Names": [c["Name"]], "Labels": c["Config"]["Labels"],
                 "State": c["State"]["Status"]}
                for ident, c in self.containers.items()
                if c["State"]["Running"] and (not ids or ident in ids)]

    def listed(self):
        """What /containers/json?all=1 says."""
        return [{"Id": ident, "Names": [one["Name"]], "Image": one["Config"]["Image"],
                 "Labels": one["Config"]["Labels"], "State": one["State"]["Status"],
                 "Created": one.get("CreatedAt", 1704067200)}
                for ident, one in self.containers.items()]

    def _container(self, name):
        found = self.find_container(name)
        return (200, found) if found else (404, {"message": f"No such container: {name}"})

    def _image(self, name):
        known = self._find_image(name)
        if not known:
            return 404, {"message": f"No such image: {name}"}
        digests = [] if known in LOCAL else [repo_digest(known)]
        return 200, {"Id": image_id(known), "RepoTags": [known], "RepoDigests": digests,
                     "Created": "2024-01-01T00:00:00Z", "Os": "linux", "Architecture": "amd64",
                     "Size": 1980000, "Config": {**CONFIG, "User": IMAGES[known]}}

    def _network(self, name):
        for ident, network in self.networks.items():
            if name in (ident, network["Name"]):
                return 200, network
        return 404, {"message": f"network {name} not found"}

    def _volume(self, name):
        found = self.volumes.get(name)
        return (200, found) if found else (404, {"message": f"get {name}: no such volume"})

    def _exec(self, name):
        found = self.execs.get(name)
        return (200, found) if found else (404, {"message": f"No such exec instance: {name}"})


def _mounts(host):
    found = []
    for bind in host.get("Binds") or []:
        source, target, *options = bind.split(":")
        found.append({"Type": "bind" if source.startswith("/") else "volume", "Source": source,
                      "Destination": target, "Mode": "".join(options), "RW": "ro" not in options,
                      "Propagation": "rprivate"})
    for mount in host.get("Mounts") or []:
        found.append({"Type": mount.get("Type"), "Source": mount.get("Source", ""),
                      "Destination": mount.get("Target"), "Mode": "",
                      "RW": not mount.get("ReadOnly"), "Propagation": "rprivate"})
    return found


def is_watcher(head):
    """The gate's own process that follows events, which it does beside all that callers want."""
    return head.get("user-agent") == "sallyport-watcher" and "/events" in head.target


def is_roll_call(head):
    """The same process, which asks what runs, to judge it again."""
    return head.get("user-agent") == "sallyport-watcher" and "/containers/json" in head.target


def is_pulse(head):
    """The same process asks every other second whether an engine is well."""
    return head.get("user-agent") == "sallyport-pulse"


def is_comparison(head):
    """The same process, which holds all there is against what it has seen."""
    return is_roll_call(head) and head.target.endswith("?all=1")


def begin_events(stream, first=b""):
    # Now, since who sends while it is changed may lose what is sent.
    stream.sock.settimeout(None)
    stream.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                b"Transfer-Encoding: chunked\r\n\r\n" + first)


def wait_for_end(stream):
    """The stream of events stays open until the gate hangs up."""
    try:
        while stream.fill():
            pass
    except (Trouble, OSError):
        pass


def hold_events(stream):
    """Nothing happens here."""
    try:
        begin_events(stream)
    except OSError:
        return
    wait_for_end(stream)


def serve(stream, answer):
    """One connection: answer(head, body) gives the bytes of each reply; events there are none."""
    try:
        while True:
            head = stream.request()
            body = stream.body.all() if stream.body else b""
            if is_watcher(head):
                hold_events(stream)
                return
            stream.send(answer(head, body))
    except (Trouble, OSError):
        return


def reply(status, document, head_only=False, more=(), api=API):
    """The bytes of a complete reply, with the headers that dockerd sends."""
    if isinstance(document, str):
        kind, body = "text/plain; charset=utf-8", document.encode("latin-1")
    else:
        kind, body = "application/json", json.dumps(document).encode() + b"\n"
    fields = [f"HTTP/1.1 {status} X", f"Api-Version: {api}", "Docker-Experimental: false",
              "Ostype: linux", "Server: Docker/20.10.24 (linux)", f"Content-Type: {kind}",
              f"Content-Length: {len(body)}", *more]
    return "\r\n".join(fields).encode("latin-1") + b"\r\n\r\n" + (b"" if head_only else body)
