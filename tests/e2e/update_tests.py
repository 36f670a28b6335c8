"""Updates at a real engine: Watchtower's calls, made of what inspect shows.  Each test gets the world."""

import copy
import json
import tempfile
from pathlib import Path

from kit import gate, proc, wire
from kit.proc import Trouble
from world import APP, with_own

CONFIG = """
log {{ dir = "{dir}/log" }}
profiles {{ "{dir}/profiles" }}
updates {{ memory = "{dir}/updates" }}
backend "engine" {{ kind = "docker", address = "unix://{engine}", files = "same_host" }}
identity "watchtower" {{ uid = 0, profile = "watchtower" }}
listener "watchtower" {{ socket = "{dir}/w.sock", mode = "0666", backend = "engine", identities = {{ "watchtower" }} }}
"""

PROFILES = """
return profile "watchtower" {
	operations = { "read", "container.stop", "container.kill", "container.remove", "container.rename",
		"container.create", "container.start", "network.connect", "network.disconnect" },
	images = { "reg.example/team/*" },
	visibility = { { label = "updated=yes", access = "full" } },
	update = true,
}
"""


class Updated:
    """A gate of its own before the world's engine."""

    def __init__(self, world):
        self.world, self.folder = world, Path(tempfile.mkdtemp(prefix="sp-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.gate = gate.Gate(self.folder, CONFIG.format(dir=self.folder, engine=world.engine.socket),
                              {"updated": PROFILES})
        world.more.append(self.gate)
        self.gate.start(self.folder / "w.sock")

    def ask(self, status, method, target, body=None):
        headers = [("Content-Type", "application/json")] if body is not None else []
        head, said = wire.ask(self.folder / "w.sock", method, target, headers,
                              json.dumps(body).encode() if body is not None else None, seconds=60)
        if head.status != status:
            raise Trouble(f"{method} {target}: {head.status}, not {status}: {said[:1500]}")
        return json.loads(said) if said[:1] in b"{[" and said else None

    def end(self):
        found = self.world.direct("ps", "-aq", "--filter", "label=updated=yes").out.split()
        if found:
            self.world.direct("rm", "-fv", *found)
        self.world.direct("volume", "rm", "-f", "updated")
        self.world.direct("network", "rm", "updated")
        if self.gate.stop():
            raise Trouble(f"the gate did not end cleanly: {self.gate.said()[-500:]}")
        proc.output(["rm", "-rf", self.folder])


updated = with_own(Updated)


def create_body(shown, image):
    """As Watchtower makes it: what the container was shown to have, without what is the image's."""
    config, brought = copy.deepcopy(shown["Config"]), image.get("Config") or {}
    for key in ("WorkingDir", "User"):
        if config.get(key) == (brought.get(key) or ""):
            config[key] = ""
    if config.get("Entrypoint") == brought.get("Entrypoint"):
        config["Entrypoint"] = None
        if config.get("Cmd") == brought.get("Cmd"):
            config["Cmd"] = None
    config["Env"] = [one for one in config["Env"] or [] if one not in (brought.get("Env") or [])]
    for name, value in (brought.get("Labels") or {}).items():
        if config["Labels"].get(name) == value:
            del config["Labels"][name]
    return {**config, "HostConfig": copy.deepcopy(shown["HostConfig"])}


def recreate(own, name, change=lambda body: None, create=201):
    """Watchtower's calls for one container."""
    shown = own.ask(200, "GET", f"/containers/{name}/json")
    image = own.ask(200, "GET", f"/images/{shown['Image']}/json")
    endpoints = copy.deepcopy(shown["NetworkSettings"]["Networks"])
    for endpoint in endpoints.values():
        endpoint["Aliases"] = [one for one in endpoint.get("Aliases") or [] if one != shown["Id"][:12]]
    body = create_body(shown, image)
    first = dict(list(endpoints.items())[:1])
    body["NetworkingConfig"] = {"EndpointsConfig": first}
    own.ask(204, "POST", f"/containers/{shown['Id']}/kill?signal=SIGKILL")
    own.ask(204, "DELETE", f"/containers/{shown['Id']}?force=1")
    own.ask(404, "GET", f"/containers/{shown['Id']}/json")
    change(body)
    made = own.ask(create, "POST", f"/containers/create?name={name}", body)
    if create != 201:
        return made
    for network in first if shown["HostConfig"]["NetworkMode"] != "none" else ():
        own.ask(200, "POST", f"/networks/{network}/disconnect", {"Container": made["Id"], "Force": True})
    for network, endpoint in endpoints.items() if shown["HostConfig"]["NetworkMode"] != "none" else ():
        own.ask(200, "POST", f"/networks/{network}/connect", {"Container": made["Id"], "EndpointConfig": endpoint})
    own.ask(204, "POST", f"/containers/{made['Id']}/start")
    return own.ask(200, "GET", f"/containers/{name}/json")


WEB = ("run", "-d", "--name", "updated-web", "-l", "updated=yes", "-l", "team=shop", "-e", "MODE=quick",
       "-v", "updated:/data", "-m", "64m", "--cap-add", "NET_BIND_SERVICE", "--restart", "always")


@updated
def test_watchtowers_calls_make_a_container_again_as_it_was(own):
    networked = own.world.direct("network", "create", "updated").status == 0
    own.world.direct(*WEB, "--network", "updated" if networked else "none",
                     *(("--network-alias", "shop") if networked else ()), APP, "sleep", "600").want()
    before = own.ask(200, "GET", "/containers/updated-web/json")
    for _ in range(2):  # and what was made again is made again
        after = recreate(own, "updated-web")
        if after["Id"] == before["Id"] or not after["State"]["Running"]:
            raise Trouble(f"it was not made again, or does not run: {after['State']}")
        for key in ("Binds", "Memory", "CapAdd", "RestartPolicy", "NetworkMode", "Privileged"):
            if after["HostConfig"][key] != before["HostConfig"][key]:
                raise Trouble(f"{key} is {after['HostConfig'][key]}, and was {before['HostConfig'][key]}")
        if networked and "shop" not in after["NetworkSettings"]["Networks"]["updated"]["Aliases"]:
            raise Trouble(f"its name on the network is lost: {after['NetworkSettings']['Networks']}")
        labels = after["Config"]["Labels"]
        if "MODE=quick" not in after["Config"]["Env"] or labels.get("team") != "shop":
            raise Trouble(f"environment or labels are lost: {after['Config']}")
        if "sallyport.owner" in labels or "sallyport.decision" not in labels:
            raise Trouble(f"what was nobody's must stay nobody's: {labels}")


@updated
def test_what_an_update_may_not_make_again_is_not_taken_away(own):
    own.world.direct("run", "-d", "--name", "updated-root", "-l", "updated=yes", "--privileged", "--network", "none",
                     APP, "sleep", "600").want()
    for method, target in (("POST", "/containers/updated-root/kill?signal=SIGKILL"),
                           ("POST", "/containers/updated-root/stop?t=0"),
                           ("POST", "/containers/updated-root/rename?name=updated-x"),
                           ("DELETE", "/containers/updated-root?force=1")):
        said = own.ask(403, method, target)["message"]
        if "update_would_not_return" not in said or "privileged" not in said:
            raise Trouble(said)
    if not own.ask(200, "GET", "/containers/updated-root/json")["State"]["Running"]:
        raise Trouble("it does not run any more")
    # A volume without a name would go with `v`.
    own.world.direct("run", "-d", "--name", "updated-data", "-l", "updated=yes", "-v", "/data", "--network", "none",
                     APP, "sleep", "600").want()
    said = own.ask(403, "DELETE", "/containers/updated-data?force=1&v=1")["message"]
    if "volumes without a name" not in said:
        raise Trouble(said)
    own.ask(204, "POST", "/containers/updated-data/stop?t=0")


@updated
def test_a_restart_of_the_gate_in_between_forgets_nothing_and_nothing_is_added(own):
    own.world.direct(*WEB, "--network", "none", APP, "sleep", "600").want()

    def more(body):
        body["HostConfig"]["PidMode"] = "host"
        own.gate.stop()
        own.gate.output.unlink()
        own.gate.start(own.folder / "w.sock")

    said = recreate(own, "updated-web", more, create=403)["message"]
    if "update_looser" not in said or "PidMode" not in said:
        raise Trouble(said)
    said = own.ask(403, "POST", "/containers/create?name=updated-other", {"Image": APP})["message"]
    if "update_unknown" not in said:
        raise Trouble(said)
    made = own.ask(201, "POST", "/containers/create?name=updated-web",
                   {"Image": APP, "Env": ["MODE=quick"], "Cmd": ["sleep", "600"], "Labels": {"updated": "yes"},
                    "HostConfig": {"Binds": ["updated:/data"], "NetworkMode": "none", "Memory": 67108864}})
    own.ask(204, "POST", f"/containers/{made['Id']}/start")
