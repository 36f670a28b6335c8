"""The world that the cases speak of, as a facts file for `sallyport check --facts`."""

from kit import engine

ME = "agent"

CONFIG = """
log {{ dir = "{log}" }}
profiles {{ "{profile}" }}
backend "engine" {{ kind = "{kind}", address = "unix://{engine}", files = "same_host" }}
identity "agent" {{ uid = {uid}, profile = "ref" }}
listener "ref" {{ socket = "{socket}", mode = "0666", backend = "engine", identities = {{ "agent" }} }}
"""


def model():
    """Containers and volumes of the caller, and of others."""
    found = engine.Model()
    image = "reg.example/team/app:1"
    good = {"Image": image, "User": "1000:1000", "HostConfig": {
        "Runtime": "runsc", "NetworkMode": "none", "CapDrop": ["ALL"], "Memory": 1 << 30,
        "MemorySwap": 1 << 30, "NanoCpus": 1000000000, "PidsLimit": 100,
        "SecurityOpt": ["no-new-privileges"]}}
    for name, owner, host in (("mine", ME, {}), ("mine-but-privileged", ME, {"Privileged": True}),
                              ("db", None, {}), ("traefik", None, {}), ("old-priv", None, {
                                  "Privileged": True}), ("hers", "other", {}),
                              ("gate", None, {})):
        labels = {"sallyport.owner": owner} if owner else {}
        if name == "gate":
            labels = {"sallyport.self": "yes"}
        create = {**good, "Labels": labels, "HostConfig": {**good["HostConfig"], **host}}
        found.add_container(engine.long_id(name), name, create, running=True)
    found.execs["feed" * 16] = {"ID": "feed" * 16, "Running": False,
                                "ContainerID": engine.long_id("hers"),
                                "ProcessConfig": {"entrypoint": "sh", "arguments": []}}
    found.networks[engine.long_id("network prod-db")] = {
        "Name": "prod-db", "Id": engine.long_id("network prod-db"), "Scope": "local",
        "Driver": "bridge", "Internal": False, "Labels": {}, "Options": {}, "Containers": {}}
    for name, owner, options in (("own-data", ME, None), ("other-data", "other", None),
                                 ("bindvol", ME, {"type": "none", "o": "bind", "device": "/"})):
        found.volumes[name] = {"Name": name, "Driver": "local", "Scope": "local",
                               "Mountpoint": f"/var/lib/docker/volumes/{name}/_data",
                               "Labels": {"sallyport.owner": owner}, "Options": options,
                               "CreatedAt": "2024-01-01T00:00:00Z"}
    return found


# Beside those of kit/engine.py: what is less than its name, or than it seems.
RUNTIMES = {
    "krun": {"path": "/usr/bin/krun"},
    "kata-debug": {"runtimeType": "io.containerd.kata-qemu-debug.v2"},
    "kata-own": {"runtimeType": "io.containerd.kata.v2",
                 "options": {"ConfigPath": "/etc/kata.toml"}},
    "runsc-conf": {"runtimeType": "io.containerd.runsc.v1",
                   "options": {"ConfigPath": "/etc/runsc.toml"}},
    "runsc-uds": {"path": "/usr/bin/runsc", "runtimeArgs": ["--host-uds=open"]},
    "runsc-new": {"path": "/usr/bin/runsc", "runtimeArgs": ["--brand-new"]},
    "wrapped": {"path": "/usr/local/bin/runsc.sh"},
    "nvidia": {"path": "nvidia-container-runtime", "runtimeArgs": []},
    "shim-of-runc": {"runtimeType": "io.containerd.runc.v2",
                     "options": {"BinaryName": "/usr/bin/crun"}},
}


def facts():
    """The same as a facts file."""
    now = model()
    images = {}
    for name in engine.IMAGES:
        status, document = now.answer("GET", f"/images/{name}/json")
        if status == 200:
            for alias in (name, f"docker.io/library/{name}", name.removesuffix(":latest"),
                          document["Id"], f"library/{name}",
                          f"index.docker.io/library/{engine.repo_digest(name)}"):
                images[alias] = document
    containers = {}
    for ident, document in now.containers.items():
        containers[ident] = containers[document["Name"][1:]] = document
    networks = {}
    for ident, document in now.networks.items():
        networks[ident] = networks[document["Name"]] = document
    folder = {"kind": "directory"}
    info = dict(now.info, Runtimes=dict(now.info["Runtimes"], **RUNTIMES))
    return {
        "info": info, "version": now.version, "images": images, "containers": containers,
        "networks": networks, "volumes": now.volumes, "execs": now.execs,
        "counters": {"containers": 2, "memory": 2 << 30, "nano_cpus": 2000000000,
                     "volume_count": 3, "images": 1 << 30},
        "files": {"/": folder, "/srv": folder, "/srv/ws": folder, "/srv/ws/a": folder,
                  "/srv/ws-evil": folder, "/etc": folder, "/etc/apt": folder, "/root": folder,
                  "/run": folder, "/var": folder, "/var/lib": folder, "/var/lib/docker": folder,
                  "/var/lib/docker/volumes": folder,
                  "/var/run": {"kind": "symlink", "target": "/run"},
                  "/run/docker.sock": {"kind": "socket"},
                  "/srv/ws/link": {"kind": "symlink", "target": "/etc"}},
    }


def podman_facts():
    """The same world as a Podman service shows it that starts everything with gVisor."""
    found = facts()
    runtime = {"name": "/usr/bin/runsc", "path": "/usr/bin/runsc", "version": "runsc version 1"}
    containers = {}
    for name, document in found["containers"].items():
        host = dict(document["HostConfig"])
        shown = host.pop("Runtime", "")
        containers[name] = {
            **document, "HostConfig": host, "Pod": "", "Rootfs": "", "BoundingCaps": None,
            "Image": document["Image"].removeprefix("sha256:"),
            "OCIRuntime": runtime["name"] if shown in ("runsc", "") else shown}
    return {**found, "containers": containers,
            "version": {"Version": "4.3.1", "ApiVersion": "1.41", "MinAPIVersion": "1.24",
                        "Components": [{"Name": "Podman Engine", "Version": "4.3.1"}]},
            "info": {"host": {"cgroupVersion": "v1", "cpus": 16, "logDriver": "k8s-file",
                              "ociRuntime": runtime,
                              "security": {"rootless": False, "seccompEnabled": True}}}}
