"""What the engine shows of an object beside the facts that the gate judged.

Both sides are turned into a set of claims, ("cap add", "SYS_ADMIN"), by code that
shares nothing with the adapter.  A claim that one side makes alone is a difference.
"""

import posixpath

HEX = set("0123456789abcdef")
PLAIN = {"", "ro", "rw", "cached", "delegated", "consistent", "nocopy", "default"}
SPACES = (("PidMode", "pid"), ("IpcMode", "ipc"), ("UTSMode", "uts"), ("UsernsMode", "user"),
          ("CgroupnsMode", "cgroup"))
SETTINGS = ("IPAMConfig", "Links", "Aliases", "MacAddress", "DriverOpts", "GwPriority")
ENDLESS = ("Memory", "NanoCpus", "CpuQuota", "PidsLimit")
NUMBERS = ("CpuRealtimePeriod", "CpuRealtimeRuntime", "BlkioWeight", "KernelMemory",
           "KernelMemoryTCP")
DEVICES = ("BlkioWeightDevice", "BlkioDeviceReadBps", "BlkioDeviceWriteBps", "BlkioDeviceReadIOps",
           "BlkioDeviceWriteIOps")

# Fields of an inspected container that claims speak of; all others must be what the request says.
CLAIMED = {
    "Binds", "Mounts", "NetworkMode", "PortBindings", "CapAdd", "CapDrop", "SecurityOpt", "MaskedPaths",
    "ReadonlyPaths", "PidMode", "IpcMode", "UTSMode", "UsernsMode", "CgroupnsMode", "Runtime",
    "MemorySwap", "ShmSize", "VolumesFrom", "Image", "Env", "Labels", "Hostname", "User", "LogConfig",
    "RestartPolicy", "Links", "Tmpfs", "ConsoleSize"}


def is_anonymous(name):
    return len(name) == 64 and set(name) <= HEX


def neutral(value):
    """null, false, 0, "", [] and {}; and objects of nothing else."""
    if isinstance(value, dict):
        return all(neutral(one) for one in value.values())
    return not value


def plain(value):
    """Without members that say nothing, so that two spellings of one wish are equal."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items() if not neutral(one)}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value


def clean(path):
    path = posixpath.normpath(path or "/")
    return path[1:] if path.startswith("//") else path


def capability(name):
    return name.upper().removeprefix("CAP_")


def option(text):
    """As the engine takes a security option apart."""
    if "=" in text:
        name, _, value = text.partition("=")
    else:
        name, _, value = text.partition(":")
    return name, value


def link(text):
    """Container and alias; the engine writes /name:/own name/alias."""
    name, _, alias = text.partition(":")
    return name.lstrip("/"), alias.rpartition("/")[2] or name.lstrip("/")


def is_yes(value):
    return value in ("", "1", "t", "T", "true", "True", "TRUE")


# Labels by which the gate knows a container: whose it is, by which decision and profile, and how held.
OF_THE_GATE = ("sallyport.owner", "sallyport.decision", "sallyport.profile",
               "sallyport.isolation", "sallyport.listener")


class Oracle:
    def __init__(self, baseline, images, root, volume):
        """baseline: an inspected container of an empty request; images: their Config by id;
        root: the engine's own folder; volume(name): its document."""
        self.host, self.config = baseline["HostConfig"], baseline["Config"]
        self.images, self.root, self.volume = images, str(root), volume
        self.image_env = {one.partition("=")[0] for one in self.config["Env"]}
        self.own_networks = {}  # names by id: the gate sends a caller's own by id, and judges names

    # --- the engine's side ---

    def of_container(self, doc, named):
        """named: the request asked for a name."""
        # What an engine leaves out says nothing.
        host = {**dict.fromkeys(self.host), **doc["HostConfig"]}
        for key, value in host.items():
            if isinstance(value, list):
                host[key] = [one for one in value if one is not None]
        doc = {**doc, "HostConfig": host}
        config = doc["Config"]
        out = {("image", doc["Image"]), ("runtime", host["Runtime"] or ""),
               ("user", config["User"] or self.images.get(doc["Image"], {}).get("User") or "root"),
               ("restart", (host["RestartPolicy"] or {}).get("Name") or "no")}
        for key, claim in (("Privileged", "privileged"), ("ReadonlyRootfs", "read only"),
                           ("PublishAllPorts", "publish all"), ("Init", "init"),
                           ("AutoRemove", "auto remove")):
            if host.get(key):
                out.add((claim,))
        for key, claim in (("CapAdd", "cap add"), ("CapDrop", "cap drop")):
            out |= {(claim, capability(one)) for one in host[key] or []}
        out |= self._security(host) | self._spaces(host) | self._network(doc)
        out |= self._mounts(doc) | self._limits(host)
        out |= {("group", one) for one in host["GroupAdd"] or []}
        out |= {("volumes from", one.partition(":")[0]) for one in host["VolumesFrom"] or []}
        for key, claim in (("Sysctls", "sysctl"), ("StorageOpt", "storage option"),
                           ("Annotations", "annotation")):
            out |= {(claim, one) for one in host.get(key) or {}}
        out |= self._log(host) | self._config(doc, config)
        if named:
            out.add(("name", doc["Name"].lstrip("/")))
        return out

    def _security(self, host):
        out = set()
        adds = host["Privileged"] or host["PidMode"] == "host" or host["IpcMode"] == "host"
        last = None
        for text in host["SecurityOpt"] or []:
            name, value = option(text)
            if name == "no-new-privileges":
                last = is_yes(value)
                if last:
                    continue
            if not (adds and text == "label=disable"):
                out.add(("security", name, value))
        if last:
            out.add(("no new privileges",))
        if not host["Privileged"] and any(host[key] != self.host[key] for key in (
                "MaskedPaths", "ReadonlyPaths")):
            out.add(("proc paths",))
        return out

    def _spaces(self, host):
        out = set()
        for key, name in SPACES:
            mode = host.get(key) or ""
            if mode.startswith("container:"):
                out.add(("namespace", name, "container", mode.partition(":")[2]))
            elif mode not in ("", self.host.get(key)):
                out.add(("namespace", name, mode, ""))
        mode = host["NetworkMode"]
        if mode.startswith("container:"):
            out.add(("namespace", "network", "container", mode.partition(":")[2]))
        elif mode == "host":
            out.add(("namespace", "network", "host", ""))
        return out

    def _network(self, doc):
        host, out = doc["HostConfig"], set()
        mode = host["NetworkMode"]
        mode = "container" if mode.startswith("container:") else \
            "default" if mode in ("", "bridge", "default") else self.own_networks.get(mode, mode)
        out.add(("network", mode))
        for name, point in (doc["NetworkSettings"]["Networks"] or {}).items():
            name = "default" if name in ("bridge", "default") else name
            out |= self._endpoint(name, mode, {
                key: value for key, value in (point or {}).items() if key != "Aliases" or any(
                    not doc["Id"].startswith(alias) for alias in value or [])})
        if doc["Config"].get("MacAddress"):
            out |= {("endpoint", mode, "MacAddress")}
        for port, found in (host["PortBindings"] or {}).items():
            out |= {("port", port, one.get("HostIp", ""), one.get("HostPort", ""))
                    for one in found or [{}]}
        for key in ("Dns", "DnsOptions", "DnsSearch", "ExtraHosts"):
            out |= {("host name", one) for one in host[key] or []}
        return out | {("link", *link(one)) for one in host["Links"] or []}

    @staticmethod
    def _endpoint(name, mode, point):
        out = {("endpoint", name, key) for key in SETTINGS if not neutral(point.get(key))}
        return out | ({("endpoint", name, "")} if name != mode else set())

    def _mounts(self, doc):
        host, out = doc["HostConfig"], set()
        for one in doc["Mounts"] or []:
            target, name = clean(one["Destination"]), one.get("Name") or ""
            source = one["Source"] if one["Type"] == "bind" else \
                "" if is_anonymous(name) else name
            out.add(("mount", one["Type"], source, target, not one["RW"]))
            if one["Type"] != "bind":
                out |= {("mount option", target, word) for word in (one.get("Mode") or "").split(",")
                        if one["Type"] == "volume" and word not in PLAIN | {"z"}}
            else:
                words, moves = set((one.get("Mode") or "").split(",")), one.get("Propagation") or ""
                # rslave is the engine's own choice where its folder lies below the source.
                if moves != "rslave" or not (self.root + "/").startswith(source.rstrip("/") + "/"):
                    words.add(moves)
                out |= {("mount option", target, word) for word in words - PLAIN - {"rprivate"}}
            if one["Type"] == "volume":
                if (one.get("Driver") or "local") != "local":
                    out.add(("mount driver", target, one["Driver"]))
                if name and (self.volume(name) or {}).get("Options"):
                    out.add(("mount driver options", target))
        for target, words in (host.get("Tmpfs") or {}).items():
            out.add(("mount", "tmpfs", "", clean(target), "ro" in words.split(",")))
        for one in host.get("Mounts") or []:
            out |= self._long_form(one)
        return out

    @staticmethod
    def _long_form(one):
        target, out = clean(one["Target"]), set()
        options = one.get("BindOptions") or {}
        out |= {("mount option", target, key) for key in ("NonRecursive", "CreateMountpoint")
                if options.get(key)}
        config = (one.get("VolumeOptions") or {}).get("DriverConfig") or {}
        if config.get("Options"):
            out.add(("mount driver options", target))
        size = (one.get("TmpfsOptions") or {}).get("SizeBytes") or 0
        if one["Type"] == "tmpfs" and size > 0:
            out.add(("mount size", target, size))
        return out

    def _limits(self, host):
        out = set()
        memory, swap = host["Memory"], host["MemorySwap"]
        if memory > 0:
            out.add(("memory", memory))
        if swap and swap != 2 * memory and memory < 1 << 62:
            out.add(("swap", swap if swap > 0 else -1))
        if (host["PidsLimit"] or 0) > 0:
            out.add(("pids", host["PidsLimit"]))
        if host["ShmSize"] != self.host["ShmSize"]:
            out.add(("shm", host["ShmSize"]))
        if host["NanoCpus"] > 0:
            out.add(("cpus", host["NanoCpus"]))
        elif host["CpuQuota"] > 0:
            share = host["CpuQuota"] / (host["CpuPeriod"] or 100000)
            if share < 1e9:
                out.add(("cpus", int(share * 1e9)))
        if host["CgroupParent"]:
            out.add(("cgroup parent", host["CgroupParent"]))
        out |= {("lifted", key, str(host[key])) for key in ENDLESS if (host[key] or 0) < 0}
        out |= {("lifted", key, str(host[key])) for key in NUMBERS if host.get(key)}
        out |= {("lifted", key, one.get("Path") or "") for key in DEVICES for one in host[key] or []}
        out |= {("lifted", "Ulimits", f"{one['Name']}={one['Soft']}:{one['Hard']}")
                for one in host["Ulimits"] or []}
        if host["OomKillDisable"]:
            out.add(("lifted", "OomKillDisable", "true"))
        if host["OomScoreAdj"] < 0:
            out.add(("lifted", "OomScoreAdj", str(host["OomScoreAdj"])))
        out |= {("device", f"{d['PathOnHost']}:{d['PathInContainer']}:{d['CgroupPermissions']}")
                for d in host["Devices"] or []}
        out |= {("device", one) for one in host["DeviceCgroupRules"] or []}
        out |= {("device", f"{d['Driver'] or ''}:{','.join(d['DeviceIDs'] or [])}:{d['Count']}")
                for d in host["DeviceRequests"] or []}
        return out

    def _log(self, host):
        log = host["LogConfig"]
        out = {("log option", key) for key in log["Config"] or {}}
        return out | ({("log", log["Type"])} if log["Type"] != self.host["LogConfig"]["Type"] else set())

    def _config(self, doc, config):
        out = {("label", one) for one in config["Labels"] or {}
               if one not in OF_THE_GATE}
        out |= {("env", name) for name in (one.partition("=")[0] for one in config["Env"] or [])
                if name not in self.image_env}
        if config["Hostname"] and not doc["Id"].startswith(config["Hostname"]) \
                and doc["HostConfig"]["NetworkMode"] != "host":
            out.add(("hostname", config["Hostname"]))
        test = (config.get("Healthcheck") or {}).get("Test") or []
        if test and test[0] not in ("", "NONE"):
            out.add(("healthcheck",))
        if config["Entrypoint"]:
            out.add(("entrypoint",))
        return out

    # --- the gate's side ---

    def of_facts(self, w):
        """w: facts.workload of the record."""
        get = lambda *path: _walk(w, path)
        out = {("image", get("image", "id")), ("runtime", get("isolation", "runtime")),
               ("user", get("user", "effective")), ("restart", get("restart")),
               ("network", get("network", "mode"))}
        for path, claim in ((("privileged",), "privileged"), (("read_only",), "read only"),
                            (("network", "publish_all"), "publish all"), (("init",), "init"),
                            (("auto_remove",), "auto remove"),
                            (("no_new_privileges",), "no new privileges"),
                            (("command", "healthcheck"), "healthcheck"),
                            (("command", "entrypoint_given"), "entrypoint")):
            if get(*path):
                out.add((claim,))
        out |= {("cap add", one["name"]) for one in get("capabilities", "add")}
        out |= {("cap drop", one) for one in get("capabilities", "drop")}
        out |= {("security", one["name"], one["value"]) for one in get("security")}
        if get("proc_paths") != "default" and not get("privileged"):
            out.add(("proc paths",))
        for one in get("namespaces"):
            mode, target = one["mode"], one.get("target", "")
            key = {name: key for key, name in SPACES}.get(one["name"])
            if not key or mode != self.host.get(key):
                out.add(("namespace", one["name"], mode, target))
        for one in get("network", "endpoints"):
            out |= {("endpoint", one["name"], key) for key in one["settings"]}
            if one["name"] != get("network", "mode"):
                out.add(("endpoint", one["name"], ""))
        out |= {("port", one["port"], one["address"], one["host_port"])
                for one in get("network", "ports")}
        out |= {("host name", one["value"]) for one in get("network", "hosts")}
        out |= {("link", *link(one["value"])) for one in get("network", "links")}
        out |= {("group", one["name"]) for one in get("user", "groups")}
        out |= {("volumes from", one["name"]) for one in get("volumes_from")}
        out |= {("device", one["value"]) for one in get("devices")}
        out |= {("sysctl", one["name"]) for one in get("sysctls")}
        out |= {("storage option", one) for one in get("storage_options")}
        out |= {("annotation", one) for one in get("annotations")}
        out |= {("label", one["name"]) for one in get("labels")
                if one["field"].startswith("Labels.")
                and one["name"] not in OF_THE_GATE}
        out |= {("env", one) for one in get("env") if one not in self.image_env}
        out |= {("log option", one) for one in get("log", "options")}
        if get("log", "driver") and get("log", "driver") != self.host["LogConfig"]["Type"]:
            out.add(("log", get("log", "driver")))
        for key in ("hostname", "name"):
            if w.get(key):
                out.add((key, w[key]))
        return out | self._mounts_judged(get("mounts")) | self._limits_judged(w)

    @staticmethod
    def _mounts_judged(mounts):
        out = set()
        for one in mounts:
            if one["field"] == "HostConfig.VolumeDriver":
                continue
            target = clean(one["target"])
            short = one["field"].startswith("HostConfig.Tmpfs")
            out.add(("mount", one["kind"], one.get("source", ""), target, one["read_only"]))
            if one["kind"] != "tmpfs":
                out |= {("mount option", target, word) for word in one["options"]
                        if word not in PLAIN | {"rprivate"}}
            if one.get("driver"):
                out.add(("mount driver", target, one["driver"]))
            if one.get("driver_options"):
                out.add(("mount driver options", target))
            if one.get("tmpfs_bytes") and not short:
                out.add(("mount size", target, one["tmpfs_bytes"]))
        return out

    def _limits_judged(self, w):
        out = set()
        limits = w["limits"]
        for key, claim in (("memory", "memory"), ("pids", "pids"), ("nano_cpus", "cpus")):
            if key in limits:
                out.add((claim, limits[key]))
        if limits.get("shm", self.host["ShmSize"]) != self.host["ShmSize"]:
            out.add(("shm", limits["shm"]))
        if "swap" in limits and limits["swap"] != 2 * limits.get("memory", 0):
            out.add(("swap", limits["swap"]))
        if w.get("cgroup_parent"):
            out.add(("cgroup parent", w["cgroup_parent"]))
        for one in limits["lifted"]:
            field = one["field"].removeprefix("HostConfig.").partition("[")[0]
            out.add(("lifted", field, one["value"]))
        return out

    # --- together ---

    def container(self, doc, workload, request):
        """Differences as (label, text); request: the document as Python's own parser reads it."""
        made = self.of_container(doc, "name" in workload)
        judged = self.of_facts(workload)
        hidden = {one["name"] for one in workload["namespaces"] if one.get("mine") is False}
        made = {claim[:3] if claim[0] == "namespace" and claim[1] in hidden else claim for claim in made}
        judged = {claim[:3] if claim[0] == "namespace" and claim[1] in hidden else claim
                  for claim in judged}
        judged = {claim for claim in judged if claim in made or not self.is_idle(claim, doc)}
        return both("", made, judged) + self._unexplained(doc, request) + self._values(doc, request)

    @staticmethod
    def is_idle(claim, doc):
        """Judged although this engine does nothing with it, which is no less safe."""
        host = doc["HostConfig"]
        return (claim[0] == "annotation" and "Annotations" not in host
                or claim[0] == "endpoint" and claim[1].startswith("container:")
                or claim[0] == "endpoint" and claim[2] == "GwPriority"
                or claim[0] == "endpoint" and doc["Config"].get("NetworkDisabled")
                or claim[0] == "endpoint" and host["NetworkMode"].startswith("container:")
                or claim[0] == "link" and host["NetworkMode"] not in ("", "default", "bridge")
                or claim[0] == "mount option" and claim[2] == "CreateMountpoint"
                or claim[0] == "lifted" and (claim[1] == "PidsLimit" or neutral(host.get(claim[1])))
                or claim[0] == "entrypoint" and not doc["Config"]["Entrypoint"]
                or claim == ("security", "label", "disable")
                or claim[0] == "mount option" and claim[2] == "z")

    def _unexplained(self, doc, request):
        """What no claim speaks of must be the engine's default, or what the request says."""
        found = []
        for where, base, asked in (("HostConfig", self.host, request.get("HostConfig") or {}),
                                   ("Config", self.config, request)):
            for key, value in doc[where].items():
                wish = asked.get(key)
                if key == "WorkingDir" and wish:
                    wish = clean(wish)
                wish = [wish] if isinstance(wish, str) and isinstance(value, list) else wish
                if key in CLAIMED or (neutral(value) and neutral(base.get(key))) \
                        or value == base.get(key) or plain(value) == plain(wish):
                    continue
                if key == "Cmd" and neutral(wish) \
                        and value == self.images.get(doc["Image"], {}).get("Cmd"):
                    continue
                if key == "MacAddress" and value in _addresses(request):
                    continue
                if neutral(value) and (neutral(wish) or key in ("Cmd", "OomKillDisable",
                                                                "MemorySwappiness")):
                    continue
                found.append((f"{where}.{key}: is not what was asked for",
                              f"{where}.{key} is {value!r}, the request says {wish!r}"))
        return found

    def _values(self, doc, request):
        """Claims speak of names; their values must be those of the request."""
        host, asked = doc["HostConfig"], request.get("HostConfig") or {}
        found = []
        log = asked.get("LogConfig") or {}
        for where, made, wish in (
                ("Labels", doc["Config"]["Labels"], request.get("Labels")),
                ("Tmpfs", host.get("Tmpfs"), asked.get("Tmpfs")),
                ("LogConfig.Config", host["LogConfig"]["Config"], log.get("Config"))):
            for key, value in (made or {}).items():
                if key not in OF_THE_GATE \
                        and (wish or {}).get(key) != value:
                    found.append((f"{where}: another value", f"{where}.{key} is {value!r}"))
        given = set(self.config["Env"]) | set(request.get("Env") or [])
        found += [("Env: another value", repr(one)) for one in doc["Config"]["Env"] or []
                  if one not in given]
        return found

    @staticmethod
    def owned(labels, decision, owner):
        labels = labels or {}
        if labels.get("sallyport.owner") == owner and labels.get("sallyport.decision") == decision:
            return []
        return [("the gate's labels: absent", repr(labels))]


def volume(doc, workload):
    made = {("driver", doc["Driver"])} | {("option", one) for one in doc["Options"] or {}}
    made |= {("label", one) for one in doc["Labels"] or {} if one != "com.docker.volume.anonymous"}
    judged = {("driver", workload["volume"]["driver"])}
    judged |= {("option", one) for one in workload["volume"]["options"]}
    judged |= {("label", one["name"]) for one in workload["labels"]}
    judged |= {("label", "sallyport.owner"), ("label", "sallyport.decision")}
    if workload.get("name"):
        made.add(("name", doc["Name"]))
        judged.add(("name", workload["name"]))
    return both("volume", made, judged)


def network(doc, workload):
    # A bridge knows no Attachable: the engine keeps the word and does nothing with it.
    options = {f for f in ("Ingress", "ConfigOnly", "EnableIPv6") if doc.get(f)}
    if doc["Scope"] != "local":
        options.add("Scope")
    # A network that is only a pattern for others has no driver.
    driver = workload["net"]["driver"] if doc["ConfigOnly"] else doc["Driver"]
    made = {("driver", driver), ("internal", doc["Internal"]), ("name", doc["Name"])}
    made |= {("option", one) for one in options | set(doc["Options"] or {})}
    made |= {("label", one) for one in doc["Labels"] or {}}
    judged = {("driver", workload["net"]["driver"]), ("internal", workload["net"]["internal"]),
              ("name", workload["name"])}
    judged |= {("option", one) for one in workload["net"]["options"]
               if not one.startswith("IPAM.") and one not in ("EnableIPv4",)}
    judged |= {("label", one["name"]) for one in workload["labels"]}
    judged |= {("label", "sallyport.owner"), ("label", "sallyport.decision")}
    return both("network", made, judged)


def execution(doc, workload, request):
    process, exec_ = doc["ProcessConfig"], workload["exec"]
    made = {("privileged", bool(process.get("privileged"))), ("user", process.get("user") or ""),
            ("program", process["entrypoint"])}
    judged = {("privileged", exec_["privileged"]), ("user", exec_["user"]),
              ("program", exec_["program"])}
    command = request.get("Cmd")
    command = [command] if isinstance(command, str) else command
    if [process["entrypoint"], *(process["arguments"] or [])] != command:
        made.add(("command", process["entrypoint"], *(process["arguments"] or [])))
    if bool(process["tty"]) != bool(request.get("Tty")):
        made.add(("tty", process["tty"]))
    return both("exec", made, judged)


def both(what, made, judged):
    found = []
    for side, claims in (("engine has", made - judged), ("facts have", judged - made)):
        found += [(f"{what} {claim[0]}: only the {side} it".lstrip(), repr(claim))
                  for claim in sorted(claims, key=repr)]
    return found


def _addresses(request):
    """Hardware addresses of end points, which newer engines repeat beside them."""
    points = _walk(request, ("NetworkingConfig", "EndpointsConfig")) or {}
    return [one.get("MacAddress") for one in points.values() if one]


def _walk(tree, path):
    for step in path:
        tree = tree.get(step) if isinstance(tree, dict) else None
    return tree if tree is not None else []
