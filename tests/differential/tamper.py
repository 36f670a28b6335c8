"""Mistakes put between the gate and the comparison: each must be found, and found small.

A mistake changes what the engine shows (doc), as if rendering had lost a field, or the facts
that were judged (w), as if reading had.  It answers whether there was anything to change.
"""


def _host(key, value=None):
    def change(doc, _w):
        had = doc["HostConfig"].get(key)
        doc["HostConfig"][key] = value
        return bool(had) and had != value
    return change


def _privileged(_doc, w):
    was, w["privileged"] = w["privileged"], False
    return was


def _capability(_doc, w):
    return bool(w["capabilities"]["add"]) and bool(w["capabilities"]["add"].pop())


def _mount(_doc, w):
    return bool(w["mounts"]) and bool(w["mounts"].pop())


def _read_only(_doc, w):
    binds = [one for one in w["mounts"] if one["kind"] == "bind" and not one["read_only"]]
    for one in binds:
        one["read_only"] = True
    return bool(binds)


def _network(_doc, w):
    if w["network"]["mode"] in ("none", "default"):
        return False
    w["network"]["mode"] = "none"
    return True


def _root(doc, w):
    was, doc["Config"]["User"] = doc["Config"]["User"], "0"
    return was not in ("0", "")


def _environment(doc, _w):
    doc["Config"]["Env"].append("LD_PRELOAD=/tampered")
    return True


# What is lost or changed, how, and a word that the smallest request must still have.
MISTAKES = (
    ("facts: not privileged", _privileged, "Privileged"),
    ("facts: a capability is lost", _capability, "CapAdd"),
    ("facts: a mount is lost", _mount, "Binds|Mounts|Tmpfs|Volumes"),
    ("facts: a bind is read-only", _read_only, "Binds|Mounts"),
    ("facts: another network", _network, "NetworkMode|EndpointsConfig"),
    ("sent: no devices", _host("Devices", []), "Devices"),
    ("sent: no limit of processes", _host("PidsLimit"), "PidsLimit"),
    ("sent: no capabilities dropped", _host("CapDrop"), "CapDrop"),
    ("sent: another user", _root, "User|alpine|team"),
    ("sent: one more variable", _environment, ""),
)
