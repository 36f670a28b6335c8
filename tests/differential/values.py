"""Values for fields: what clients send, what attackers would, and what nobody does.

No driver that is not there: the engine looks for a plugin for 15 seconds, and all wait.
"""

CAPS = ["NET_RAW", "cap_chown", "CAP_SYS_ADMIN", "SYS_PTRACE", "ALL", "all", "MKNOD", "NET_ADMIN",
        "sYs_AdMiN", "CAP_NET_BIND_SERVICE", "NOSUCH", "", "CAP_", "CAP_CAP_CHOWN"]
USERS = ["", "0", "root", "1000", "1000:1000", "0:0", "agent", "1000:root", "+0", "00", "-1",
         "65534:65534", ":0", "0:", "4294967296", "nobody", "1000:1000:0", " 0"]
INTS = [0, 1, 2, 7, 100, 1000, 1 << 20, 1 << 26, 1 << 30, -1, -2, (1 << 63) - 1, -(1 << 63), 999]
STRINGS = ["", "a", "x y", "host", "none", "default", "private", "0", "ü", "a/b", "../x", "a:b",
           "a=b", "\u017f", "\n"]
PATHS = ["/data", "/data/", "/w", "/w/../etc", "/a//b", "/./c", "data", "/", "/proc", "/tmp", ""]
PORTS = ["80/tcp", "80", "53/udp", "8000-8002/tcp", "9/sctp", "80/TCP", "x", "0/tcp", "70000/tcp",
         "80/tcp/x", ""]


class World:
    """What exists beside the requests; values name it."""

    def __init__(self, folder, mine, hers, registry):
        self.folder = str(folder)        # of binds: a/, link -> /etc, file
        self.mine, self.hers = mine, hers  # full ids of containers
        self.registry = registry         # host:port


def sources(w):
    base = w.folder
    return [base, f"{base}/a", f"{base}/./a/../a/", f"{base}//a", f"{base}/link", f"{base}/file",
            f"{base}/missing", f"{base}/link/ssl", "/etc", "/", "/var/run/docker.sock", "/proc/1/root",
            f"{base}/../../etc", "/tmp/..", "relative", "//etc", f"/.{base}/a"]


def volumes(w):
    return ["df-mine", "df-hers", "df-options", w.fresh, w.fresh + "-2", "", "df-mine/..", "a b"]


def modes(w):
    return ["", "host", "none", "private", "shareable", "container:df-mine", "container:df-hers",
            f"container:{w.mine}", f"container:{w.mine[:12]}", "container:", "container:absent",
            "HOST", "default", "host ", f"container:{w.mine[:12]}:x"]


def likely(w):
    """Sources and targets with which a container comes to life: with all others few do."""
    base = w.folder
    return ([f"{base}/a", f"{base}/./a/../a/", f"{base}//a", f"{base}/link", f"{base}/file", "/etc", "df-mine",
             w.fresh], ["/data", "/data/", "/w/../etc", "/a//b", "/./c"])


def binds(rng, w):
    if rng.random() < 0.6:
        sources_, targets = likely(w)
        word = rng.choice(["", "", ":ro", ":rw", ":z", ":rslave", ":rshared", ":rprivate", ":ro,z"])
        return f"{rng.choice(sources_)}:{rng.choice(targets)}{word}"
    word = rng.choice(["ro", "rw", "", "z", "Z", "ro,z", "rslave", "rshared", "rprivate", "private",
                       "nocopy", "cached", "ro,rw", "RO", "ro,ro", "noexec", "bind", "volume-nocopy",
                       "rw,rslave", "copy"])
    source = rng.choice(sources(w) if rng.random() < 0.6 else volumes(w))
    target = rng.choice(PATHS)
    parts = [source, target] if source else [target]
    if word:
        parts.append(word)
    if rng.random() < 0.03:
        parts.append("x")
    return ":".join(parts)


def security(w):
    return ["no-new-privileges", "no-new-privileges:true", "no-new-privileges=false",
            "no-new-privileges=0", "no-new-privileges:1", "seccomp=unconfined", "seccomp:unconfined",
            "apparmor=unconfined", "label=disable", "label:disable", "disable", "label=type:x_t",
            "label=user:u", "apparmor:docker-default", "seccomp={}", "systempaths=unconfined",
            "seccomp=builtin", "no-new-privileges ", "NO-NEW-PRIVILEGES", "label:level:s0",
            "writable-cgroups", "a=b:c", "a:b=c", "=", ":", "seccomp", "apparmor", "credentialspec=x"]


def networks(w):
    return ["", "default", "bridge", "host", "none", "df-net", "df-hers", w.net, w.net[:12],
            "container:df-mine", f"container:{w.mine}", "container:df-hers", "absent", "HOST",
            "Bridge", "none ", "bridge\u0000", f"container:{w.mine[:12]}", "container:df-mine:x"]


def images(w):
    return ["busybox:latest", "busybox", "busybox", "library/busybox", "docker.io/busybox",
            "docker.io/library/busybox:latest", "alpine", "alpine:latest", w.image, w.image[7:],
            w.image[7:19], f"busybox@{w.image}", "reg.example/team/app:1", "BUSYBOX", "absent",
            "index.docker.io/library/busybox", "busybox:", "", "busybox latest", "./busybox",
            "busybox/", "docker.io/library/../busybox", "reg.example/team/rootly:1"]


def mount(rng, w):
    if rng.random() < 0.4:
        sources_, targets = likely(w)
        source = rng.choice(sources_)
        return {"Type": "bind" if source.startswith("/") else "volume", "Source": source,
                "Target": rng.choice(targets), **rng.choice([
                    {}, {}, {"ReadOnly": True}, {"ReadOnly": False}])}
    kind = rng.choice(["bind", "volume", "tmpfs", "bind", "volume", "tmpfs", "image", "npipe",
                       "cluster", "Bind", ""])
    ret = {"Type": kind, "Target": rng.choice(PATHS)}
    if kind == "bind" or rng.random() < 0.1:
        ret["Source"] = rng.choice(sources(w))
    elif kind in ("volume", "image"):
        ret["Source"] = rng.choice(volumes(w) if kind == "volume" else images(w))
    if rng.random() < 0.4:
        ret["ReadOnly"] = rng.random() < 0.5
    if rng.random() < 0.1:
        ret["Consistency"] = rng.choice(["default", "cached", "x"])
    if rng.random() < 0.5:
        name, options = rng.choice([
            ("BindOptions", {"Propagation": rng.choice(["rprivate", "rshared", "slave", "x", ""])}),
            ("BindOptions", {"NonRecursive": True}),
            ("BindOptions", {"CreateMountpoint": True}),
            ("VolumeOptions", {"NoCopy": True}),
            ("VolumeOptions", {"Labels": {"a": "b", "sallyport.owner": "hers"}}),
            ("VolumeOptions", {"DriverConfig": {"Name": rng.choice(["local", ""])}}),
            ("VolumeOptions", {"DriverConfig": {"Name": "local", "Options": {
                "type": "none", "o": "bind", "device": w.folder + "/a"}}}),
            ("VolumeOptions", {"Subpath": "../.."}),
            ("TmpfsOptions", {"SizeBytes": rng.choice(INTS), "Mode": rng.choice([0o1777, 0, 7])}),
            ("TmpfsOptions", {"SizeBytes": 1 << 20}),
            ("TmpfsOptions", {"Options": [["exec"], ["uid", "0"]]}),
            ("ImageOptions", {"Subpath": "x"})])
        if rng.random() < 0.15 or name.lower().startswith(kind.lower() or "?"):
            ret[name] = options
    return ret


def tmpfs(rng):
    return rng.choice(["", "size=64m", "rw,size=1m,mode=1777", "ro", "exec", "size=50%", "suid,dev",
                       "size=1g,size=2m", "noexec,nosuid,nodev", "mode=x", "uid=0", "size=1K",
                       "nr_inodes=9", "ro,size=4096", "mpol=local", "size=", "SIZE=1m"])


def labels(rng):
    return {rng.choice(["a", "com.docker.compose.project", "traefik.enable", "sallyport.owner",
                        "SALLYPORT.owner", "sallyport.decision", "sallyport.x", "", "ü", "k=v",
                        "maintainer"]): rng.choice(STRINGS) for _ in range(rng.randint(0, 3))}


def device(rng):
    return {"PathOnHost": rng.choice(["/dev/null", "/dev/zero", "/dev/kvm", "/dev/../dev/null", "",
                                      "/nosuch", "/dev/mapper"]),
            "PathInContainer": rng.choice(["/dev/x", "", "/dev/null", "x"]),
            "CgroupPermissions": rng.choice(["rwm", "r", "", "rwx"])}


def device_request(rng):
    return {"Driver": rng.choice(["", "nvidia", "cdi"]), "Count": rng.choice([0, 1, -1]),
            "DeviceIDs": rng.choice([[], ["0"], ["GPU-1", "2"]]),
            "Capabilities": rng.choice([[], [["gpu"]], [["gpu", "nvidia"], ["x"]]]),
            "Options": rng.choice([{}, {"a": "b"}])}


def endpoint(rng, w):
    ret = {}
    for name, choice in (
            ("IPAMConfig", [{}, None, {"IPv4Address": "10.231.7.9"}, {"LinkLocalIPs": ["169.254.3.4"]}]),
            ("Links", [[], ["df-mine:db"]]), ("Aliases", [[], ["web"], ["db", "web"], None]),
            ("MacAddress", ["", "02:42:ac:11:00:09"]), ("NetworkID", ["", "x"]),
            ("DriverOpts", [{}, None, {"a": "b"}]), ("IPAddress", ["", "10.0.0.9"]),
            ("GwPriority", [0, 7]), ("Gateway", [""]), ("IPPrefixLen", [0, 16])):
        if rng.random() < 0.2:
            ret[name] = rng.choice(choice)
    return ret


def known(rng, w, schema, name):
    """A value for this field, or None where its type says enough."""
    key = f"{schema}.{name}"
    some = lambda choice, most=3: [rng.choice(choice) for _ in range(rng.randint(0, most))]
    one = {
        "CONFIG.Image": lambda: rng.choice(images(w)),
        "CONFIG.User": lambda: rng.choice(USERS), "EXEC.User": lambda: rng.choice(USERS),
        "CONFIG.Env": lambda: some(["A=1", "B=", "C", "PATH=/x", "LD_PRELOAD=/x", "A=2", "=x", "ü=1",
                                    "D=a=b", ""]),
        "CONFIG.Volumes": lambda: {p: {} for p in some(PATHS, 2)},
        "CONFIG.ExposedPorts": lambda: {p: {} for p in some(PORTS, 2)},
        "CONFIG.Labels": lambda: labels(rng), "VOLUME.Labels": lambda: labels(rng),
        "NETWORK.Labels": lambda: labels(rng),
        "CONFIG.Healthcheck": lambda: {
            "Test": rng.choice([[], ["NONE"], ["CMD", "true"], ["CMD-SHELL", "id"], ["", "x"],
                                ["none"], ["cmd", "x"]]), "Interval": rng.choice([0, 10 ** 9])},
        "CONFIG.MacAddress": lambda: rng.choice(["", "02:42:ac:11:00:07", "x"]),
        "CONFIG.Hostname": lambda: rng.choice(["", "h", "a.b.c", "-x", "a b"]),
        "CONFIG.StopSignal": lambda: rng.choice(["", "SIGTERM", "9", "KILL", "x"]),
        "CONFIG.WorkingDir": lambda: rng.choice(PATHS), "EXEC.WorkingDir": lambda: rng.choice(PATHS),
        "HOST.Binds": lambda: [binds(rng, w) for _ in range(rng.randint(0, 2))],
        "HOST.Mounts": lambda: [mount(rng, w) for _ in range(rng.randint(0, 2))],
        "HOST.Tmpfs": lambda: {p: tmpfs(rng) for p in some(PATHS, 2)},
        "HOST.CapAdd": lambda: some(CAPS), "HOST.CapDrop": lambda: some(CAPS),
        "HOST.SecurityOpt": lambda: some(security(w), 2),
        "HOST.NetworkMode": lambda: rng.choice(networks(w)),
        "HOST.PidMode": lambda: rng.choice(modes(w)), "HOST.IpcMode": lambda: rng.choice(modes(w)),
        "HOST.UTSMode": lambda: rng.choice(["", "host", "private", "HOST", "container:df-mine"]),
        "HOST.UsernsMode": lambda: rng.choice(["", "host", "private", "x"]),
        "HOST.CgroupnsMode": lambda: rng.choice(["", "host", "private", "x"]),
        "HOST.Runtime": lambda: rng.choice(["", "runc", "runsc", "gvisor", "io.containerd.runc.v2",
                                            "nosuch", "RUNC", "/usr/sbin/runc", "runc "]),
        "HOST.VolumesFrom": lambda: some(["df-mine", "df-hers:ro", "df-mine:rw", "absent", "", ":ro",
                                          "df-mine:x"], 2),
        "HOST.VolumeDriver": lambda: rng.choice(["", "local"]),
        "HOST.Devices": lambda: [device(rng) for _ in range(rng.randint(0, 2))],
        "HOST.DeviceCgroupRules": lambda: some(["c 1:3 rwm", "b *:* rwm", "a", "x"], 2),
        "HOST.DeviceRequests": lambda: [device_request(rng) for _ in range(rng.randint(0, 1))],
        "HOST.Sysctls": lambda: {rng.choice(["net.ipv4.ip_forward", "kernel.msgmax", "x", ""]): "1"},
        "HOST.RestartPolicy": lambda: {"Name": rng.choice(["", "no", "always", "unless-stopped",
                                                           "on-failure", "Always"]),
                                       "MaximumRetryCount": rng.choice([0, 0, 3, -1])},
        "HOST.LogConfig": lambda: rng.choice([
            {}, {"Type": "json-file"}, {"Type": "json-file", "Config": {"max-size": "1m"}},
            {"Type": "local"}, {"Type": "none"}, {"Config": {"max-file": "2"}},
            {"Type": "syslog", "Config": {"syslog-address": "udp://127.0.0.1:9"}}, {"Type": ""}]),
        "HOST.PortBindings": lambda: {p: rng.choice([[], None, [{"HostIp": "", "HostPort": ""}],
                                                     [{"HostIp": "127.0.0.1", "HostPort": "18080"}],
                                                     [{"HostPort": "18081"}, {"HostPort": "x"}]])
                                      for p in some(PORTS, 2)},
        "HOST.ExtraHosts": lambda: some(["a:1.2.3.4", "b:host-gateway", "c", ":1", "d:::1"], 2),
        "HOST.Dns": lambda: some(["127.0.0.1", "10.0.0.1", "x", "::1"], 2),
        "HOST.DnsSearch": lambda: some(["example", ".", "a b"], 1),
        "HOST.DnsOptions": lambda: some(["ndots:1", "x"], 1),
        "HOST.Links": lambda: some(["df-mine:db", "df-mine", "absent:x", ""], 1),
        "HOST.GroupAdd": lambda: some(["0", "1000", "root", "docker", "x"], 2),
        "HOST.CgroupParent": lambda: rng.choice(["", "/", "/x", "x", "../x"]),
        "HOST.StorageOpt": lambda: rng.choice([{}, {"size": "1G"}, {"x": "y"}]),
        "HOST.Ulimits": lambda: [{"Name": rng.choice(["nofile", "core", "x", "", "NOFILE"]),
                                  "Soft": rng.choice([0, 1024, -1]), "Hard": rng.choice([2048, -1])}
                                 for _ in range(rng.randint(0, 2))],
        "HOST.MaskedPaths": lambda: rng.choice([[], None, ["/proc/kcore"], ["/x"]]),
        "HOST.ReadonlyPaths": lambda: rng.choice([[], None, ["/proc/sys"], ["/x"]]),
        "HOST.Memory": lambda: rng.choice([0, 1 << 26, 1 << 30, -1, 1, 1 << 40]),
        "HOST.MemorySwap": lambda: rng.choice([0, -1, 1 << 26, 1 << 30, 1 << 31, -2]),
        "HOST.MemoryReservation": lambda: rng.choice([0, 1 << 24, 1 << 30]),
        "HOST.MemorySwappiness": lambda: rng.choice([-1, 0, 60, 101]),
        "HOST.NanoCpus": lambda: rng.choice([0, 10 ** 9, 5 * 10 ** 8, 10 ** 12, -1]),
        "HOST.CpuPeriod": lambda: rng.choice([0, 100000, 1000]),
        "HOST.CpuQuota": lambda: rng.choice([0, 50000, -1, 1000]),
        "HOST.CpuShares": lambda: rng.choice([0, 2, 512, 1024, -1]),
        "HOST.PidsLimit": lambda: rng.choice([0, -1, 100, 1, -2]),
        "HOST.ShmSize": lambda: rng.choice([0, 1 << 20, 1 << 26, -1]),
        "HOST.OomScoreAdj": lambda: rng.choice([0, 500, -500, 1000, -1001]),
        "HOST.BlkioWeight": lambda: rng.choice([0, 10, 500, 5]),
        "HOST.CpusetCpus": lambda: rng.choice(["", "0", "0-1", "99"]),
        "HOST.CpusetMems": lambda: rng.choice(["", "0", "9"]),
        "HOST.KernelMemory": lambda: rng.choice([0, 0, 1 << 26]),
        "HOST.ConsoleSize": lambda: rng.choice([[0, 0], [24, 80], [1], []]),
        "NETWORKING.EndpointsConfig": lambda: {n: endpoint(rng, w) for n in some(networks(w)[1:13], 1)},
        "EXEC.Cmd": lambda: rng.choice([["true"], ["sh", "-c", "id"], [], "true", ["", "x"], [" sh"]]),
        "EXEC.Env": lambda: some(["A=1", "LD_PRELOAD=/x", "B", "PATH=/x", "=x"]),
        "VOLUME.Name": lambda: rng.choice([w.fresh, w.fresh, w.fresh, w.fresh, "", "df-hers", "a b", "../x"]),
        "VOLUME.Driver": lambda: rng.choice(["", "local"]),
        "VOLUME.DriverOpts": lambda: rng.choice([
            {}, {"type": "tmpfs", "device": "tmpfs"}, {"o": "size=1m", "type": "tmpfs", "device": "x"},
            {"type": "none", "o": "bind", "device": w.folder + "/a"}, {"x": "y"}, {"size": "1"}]),
        "NETWORK.Name": lambda: rng.choice([w.fresh, w.fresh, w.fresh, "df-net", "", "host", "a/b"]),
        "NETWORK.Driver": lambda: rng.choice(["", "bridge"]),
        "NETWORK.Scope": lambda: rng.choice(["", "local", "swarm", "x"]),
        "NETWORK.IPAM": lambda: rng.choice([{}, {"Driver": "default"},
                                            {"Config": [{"Subnet": "10.232.0.0/24"}]}, {"Options": {"a": "b"}}]),
        "NETWORK.Options": lambda: rng.choice([{}, {"com.docker.network.bridge.enable_icc": "false"},
                                               {"a": "b"}]),
        "NETWORK.Ingress": lambda: rng.random() < 0.05, "NETWORK.ConfigOnly": lambda: rng.random() < 0.05,
    }.get(key)
    return one() if one else None


def make(rng, w, schemas, schema, field):
    """A value for a field of any schema."""
    value = known(rng, w, schema, field.name)
    if value is not None:
        return value
    some = lambda choice, most=2: [rng.choice(choice) for _ in range(rng.randint(0, most))]

    def below(chance=0.5):
        return {one.name: make(rng, w, schemas, field.of, one) for one in schemas.get(field.of, [])
                if rng.random() < chance}

    return {
        "BOOL": lambda: rng.random() < 0.5, "INT": lambda: rng.choice(INTS),
        "STRING": lambda: rng.choice(STRINGS), "STRINGS": lambda: some(STRINGS),
        "COMMAND": lambda: rng.choice([["true"], "true", [], ["sh", "-c", "id"]]),
        "INTS": lambda: some(INTS), "STRING_LISTS": lambda: [some(STRINGS) for _ in range(2)],
        "STRING_MAP": lambda: {k: rng.choice(STRINGS) for k in some(STRINGS)},
        "SET": lambda: {k: {} for k in some(STRINGS)},
        "OBJECT": below, "LIST": lambda: [below() for _ in range(rng.randint(0, 2))],
        "MAP": lambda: {k: below() for k in some(STRINGS)},
        "LIST_MAP": lambda: {k: [below()] for k in some(STRINGS)},
    }[field.kind]()
