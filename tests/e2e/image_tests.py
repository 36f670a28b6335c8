"""Where an image came from, with a real engine: what can be given a granted name on this machine."""

import io
import json
import os
import subprocess
import tarfile

from kit import dockerd
from kit.proc import Trouble
from world import APP

MINER = "evil.example/miner:1"
JSON = [("Content-Type", "application/json")]


def create(world, image, listener="runc"):
    """(status, document) of a create through the gate."""
    body = json.dumps({"Image": image, "Cmd": ["true"]}).encode()
    head, got = world.ask(listener, "POST", "/v1.41/containers/create", JSON, body)
    return head.status, json.loads(got)


def refused(world, image, reason="image_local"):
    status, document = create(world, image)
    if status != 403 or f"[{reason}," not in document["message"]:
        raise Trouble(f"{image} is not refused for {reason}: {status} {document}")


def granted(world, image, listener="runc"):
    status, document = create(world, image, listener)
    if status != 201:
        raise Trouble(f"{image} is refused: {status} {document}")
    return document["Id"]


def archive_of(world, image):
    """{name: bytes} of what docker save writes."""
    done = subprocess.run(world.engine.docker("save", image), capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        return {member.name: archive.extractfile(member).read()
                for member in archive if member.isfile()}


def load(world, files):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return subprocess.run(world.engine.docker("load"), input=packed.getvalue(),
                          capture_output=True, check=False)


def test_what_was_fetched_is_granted(world):
    granted(world, APP)
    app = world.direct("image", "inspect", APP, "-f", "{{.Id}}").want().out.strip()
    granted(world, app)
    granted(world, app.removeprefix("sha256:")[:12])
    granted(world, world.direct("image", "inspect", APP, "-f",
                                "{{index .RepoDigests 0}}").want().out.strip())


def test_what_was_made_here_is_not(world):
    refused(world, dockerd.LOCAL)
    refused(world, world.direct("image", "inspect", dockerd.LOCAL, "-f",
                                "{{.Id}}").want().out.strip())


def test_a_tag_makes_no_origin(world):
    world.direct("tag", MINER, "reg.example/team/tagged:1").want()
    refused(world, "reg.example/team/tagged:1")
    refused(world, world.direct("image", "inspect", MINER, "-f", "{{.Id}}").want().out.strip())
    # Fetched by its digest, and named afterwards.
    digest = world.direct("image", "inspect", MINER, "-f", "{{index .RepoDigests 0}}").want().out.strip()
    world.direct("pull", digest).want()
    world.direct("tag", digest, "reg.example/team/by-digest:1").want()
    refused(world, "reg.example/team/by-digest:1")
    # Even over a name that was fetched, for as long as it lasts.
    world.direct("tag", MINER, APP).want()
    try:
        refused(world, APP)
    finally:
        world.direct("pull", APP).want()
    granted(world, APP)


def test_commit_and_build_make_no_origin(world):
    made = world.direct("create", APP).want().out.strip()
    world.direct("commit", made, "reg.example/team/committed:1").want()
    refused(world, "reg.example/team/committed:1")
    subprocess.run(world.engine.docker("build", "-t", "reg.example/team/built:1", "-"),
                   input=f"FROM {APP}\nLABEL sallyport.image={APP}\n".encode(), check=True,
                   capture_output=True, env={**os.environ, "DOCKER_BUILDKIT": "0"})
    refused(world, "reg.example/team/built:1")


def test_no_archive_forges_an_origin(world):
    """Whatever names and digests an archive claims: nothing that it brings is granted."""
    files = archive_of(world, MINER)
    manifest = json.loads(files["manifest.json"])[0]
    digest = "sha256:" + "ab" * 32
    claims = ({"RepoTags": ["reg.example/team/loaded:1"]},
              {"RepoTags": [f"reg.example/team/loaded:2@{digest}"]},
              {"RepoTags": [f"reg.example/team/loaded@{digest}"]},
              {"RepoTags": ["reg.example/team/loaded:3"],
               "RepoDigests": [f"reg.example/team/loaded@{digest}"]})
    for claim in claims:
        load(world, {**files, "manifest.json": json.dumps([{**manifest, **claim}]).encode()})
    for name in ("loaded:1", "loaded:3"):
        refused(world, f"reg.example/team/{name}")
    for name in (f"loaded:2@{digest}", f"loaded@{digest}"):
        status, document = create(world, f"reg.example/team/{name}")
        if (status, "No such image") != (404, document["message"][:13]) and (
                status != 403 or "[image" not in document["message"]):
            raise Trouble(f"{name}: {status} {document}")


def test_a_pinned_image_stays_what_it_was(world):
    """The digest is sent; people still read the name; the name may move on, the container starts."""
    made = granted(world, APP, "pin")
    shown = world.direct("inspect", made, "-f", "{{.Config.Image}} {{.Image}}").want().out.split()
    if not shown[0].startswith(APP + "@sha256:"):
        raise Trouble(f"what was made of {APP} is of {shown[0]}")
    world.direct("ps", "-a", "--no-trunc", "--format", "{{.ID}} {{.Image}}").want(out=f"{made} {APP}")
    world.direct("tag", MINER, APP).want()
    try:
        head, got = world.ask("pin", "POST", f"/v1.41/containers/{made}/start")
    finally:
        world.direct("pull", APP).want()
    if head.status != 204:
        raise Trouble(f"start of a pinned container: {head.status} {got}")
