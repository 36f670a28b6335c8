"""Requests about objects that stand already: each gets an object of its own, made beside the gate.

What the gate judged then is what the engine shows of the object, and what the engine has
afterwards is what the request says.
"""

import json
import urllib.parse

import values

KINDS = ("update", "rename", "start", "restart", "connect", "disconnect", "exec start")
OWN = {"sallyport.owner": "me"}
NAMES = ["{f}-b", "{f}.c", "{f}_d", "a b", "-{f}", "{f}/x", "", "{f}\u00fc", "/{f}-b", "df-mine", "x"]


def make(rng, w, request, body):
    """Fills a request in; body(schema) makes a random one."""
    kind, name = request.kind, w.fresh
    request.base = {"Image": "busybox:latest", "Cmd": ["sleep", "1000000"], "Labels": OWN}
    request.path = f"/containers/{name}/{kind}"
    request.type = ""
    if kind == "update":
        request.base["HostConfig"] = rng.choice([{}, {"Memory": 1 << 26}, {"PidsLimit": 9}, {
            "Memory": 1 << 26, "MemorySwap": 1 << 27, "NanoCpus": 10 ** 9}])
        request.type = "application/json"
        return body("UPDATE")
    if kind == "rename":
        request.query = "name=" + urllib.parse.quote(rng.choice(NAMES).format(f=name))
    elif kind in ("start", "restart"):
        # As somebody else might have made it, without the gate.
        request.base = {**body("CONFIG"), **request.base}
        (request.base.get("HostConfig") or {}).pop("RestartPolicy", None)
    elif kind in ("connect", "disconnect"):
        request.path, request.type = f"/networks/df-net/{kind}", "application/json"
        return {"Container": name, **({"EndpointConfig": values.endpoint(rng, w)} if kind == "connect"
                                      and rng.random() < 0.8 else {}),
                **({"Force": rng.random() < 0.5} if kind == "disconnect" else {})}
    elif kind == "exec start":
        request.base = {"Cmd": [rng.choice(["true", "id"])], "User": rng.choice(["", "1000", "0"]),
                        "Privileged": rng.random() < 0.3}
        request.type = "application/json"
        return {"Detach": True, **rng.choice([{}, {"Tty": False}, {"Tty": None}])}
    return None


def prepare(request, engine, w_mine):
    """Makes the object; its inspected document, or None if the engine would not."""
    if request.kind == "exec start":
        status, made = engine.ask("POST", f"/containers/{w_mine}/exec", request.base)
        if status != 201:
            return None
        request.ident, request.path = made["Id"], f"/exec/{made['Id']}/start"
        return engine.ask("GET", f"/exec/{made['Id']}/json")[1]
    status, made = engine.ask("POST", f"/containers/create?name={request.fresh}", request.base)
    if status != 201:
        return None
    request.ident = made["Id"]
    if request.kind == "disconnect":
        engine.ask("POST", "/networks/df-net/connect", {"Container": made["Id"]})
    return engine.ask("GET", f"/containers/{made['Id']}/json")[1]


def clean(request, engine):
    if request.kind != "exec start" and getattr(request, "ident", None):
        engine.ask("DELETE", f"/containers/{request.ident}?force=1&v=1")


class Check:
    """One function a kind; (label, text) of each difference."""

    def __init__(self, oracle, engine, both):
        self.oracle, self.engine, self.both = oracle, engine, both
        self.net = ""  # id of df-net

    def __call__(self, request, before, status, workload):
        if request.kind == "exec start":
            return self._exec(request, workload)
        after = self.engine.ask("GET", f"/containers/{request.ident}/json")[1]
        kind = {"restart": "start", "disconnect": "connect"}.get(request.kind, request.kind)
        return getattr(self, "_" + kind)(request, before, after, status, workload)

    def _start(self, request, before, after, status, workload):
        made = {one for one in self.oracle.of_container(before, False) if one[0] != "name"}
        judged = {one for one in self.oracle.of_facts(workload) if one[0] != "name"}
        judged = {one for one in judged if one in made or not self.oracle.is_idle(one, before)}
        # An existing container shows its image's as its own: what was asked for was judged at create.
        made -= {("entrypoint",), ("healthcheck",)}
        # The gate calls networks by their names.
        made = {tuple("df-net" if word == self.net else word for word in one) for one in made}
        # Where none is named the engine takes its own, and names it from the start on.
        if ("runtime", "") in made:
            made = made - {("runtime", "")} | {("runtime", self.oracle.host["Runtime"])}
        return self.both(request.kind, made, judged)

    def _update(self, request, before, after, status, workload):
        wish = json.loads(request.document())
        found = []
        for key, value in after["HostConfig"].items():
            old, new = before["HostConfig"].get(key), wish.get(key)
            # The engine sets MemorySwap beside Memory, and counts one limit in the words of another.
            if value in (old, new) or key == "MemorySwap" and value in (-1, 2 * after["HostConfig"]["Memory"]):
                continue
            # Each negative number of processes is none for the engine.
            if key == "PidsLimit" and (new or 0) < 0 and not value and any(
                    one["field"] == "HostConfig.PidsLimit" for one in workload["limits"]["lifted"]):
                continue
            if key == "RestartPolicy" and (value or {}).get("Name") == (new or {}).get("Name"):
                continue
            found.append((f"update {key}: is not what was asked for", f"{old!r}, asked {new!r}, is {value!r}"))
        if status == 200:
            for key, new in wish.items():
                if new and key in after["HostConfig"] and after["HostConfig"][key] == before["HostConfig"][key] \
                        and after["HostConfig"][key] != new and key in ("Memory", "PidsLimit", "NanoCpus",
                                                                        "CpuShares", "CpusetCpus"):
                    found.append((f"update {key}: was asked for and is not", f"{new!r}"))
        limits = workload["limits"] if status == 200 else {}
        host = after["HostConfig"]
        for fact, key in (("memory", "Memory"), ("pids", "PidsLimit"), ("nano_cpus", "NanoCpus")):
            if limits.get(fact) and (host[key] or 0) > 0 and limits[fact] != host[key]:
                found.append((f"update {fact}: judged as something else",
                              f"judged {limits[fact]}, is {host[key]}"))
        return found

    def _rename(self, request, before, after, status, workload):
        wish = urllib.parse.unquote(request.query.partition("=")[2]).lstrip("/")
        is_ = after["Name"].lstrip("/")
        if status == 204 and is_ != wish or status != 204 and after["Name"] != before["Name"]:
            return [("rename: another name", f"asked {wish!r}, is {is_!r}")]
        return []

    def _connect(self, request, before, after, status, workload):
        point = after["NetworkSettings"]["Networks"].get("df-net")
        if request.kind == "disconnect":
            return [("disconnect: still there", "")] if status == 200 and point else []
        if status != 200:
            return []
        wish = json.loads(request.document()).get("EndpointConfig") or {}
        if not point:
            return [("connect: is not there", "")]
        found = []
        for key in ("Aliases", "Links", "DriverOpts", "IPAMConfig"):
            have, want = point.get(key) or None, wish.get(key) or None
            if key == "Aliases":  # the engine adds the id
                have = [one for one in have or [] if not request.ident.startswith(one)] or None
            if have != want:
                found.append((f"connect {key}: is not what was asked for", f"asked {want!r}, is {have!r}"))
        judged = {one for end in workload["network"]["endpoints"] for one in end["settings"]}
        asked = {key for key in ("Aliases", "Links", "DriverOpts", "IPAMConfig", "MacAddress") if wish.get(key)}
        return found + self.both("connect", asked, judged & {*asked, "Aliases", "Links", "DriverOpts"})

    def _exec(self, request, workload):
        doc = self.engine.ask("GET", f"/exec/{request.ident}/json")[1]
        if not doc.get("Running") and doc.get("ExitCode") is None:
            return []
        process, exec_ = doc["ProcessConfig"], (workload or {}).get("exec") or {}
        made = {("privileged", bool(process.get("privileged"))), ("user", process.get("user") or ""),
                ("program", process["entrypoint"])}
        judged = {("privileged", exec_.get("privileged")), ("user", exec_.get("user")),
                  ("program", exec_.get("program"))}
        return self.both("exec start", made, judged)
