"""Filters of system calls by name, at a real engine with runc; each test gets the world."""

import json
import os
import sys
from pathlib import Path

from attest_tests import JSON, attestation_of, make, sleeper, start, want
from kit import proc
from kit.proc import Trouble
from world import APP, PATIENCE

PROFILES = proc.ROOT / "rules/seccomp"
# A named pipe is what the engine's own filter lets anybody make, and tight-python does not.
SCRIPT = "mkfifo /w/pipe 2>/w/said && echo made >/w/said; echo alive >>/w/said"

# What engines allow since later versions than the oldest that is served.
NEWER = {"cachestat", "fchmodat2", "futex_requeue", "futex_wait", "futex_wake", "map_shadow_stack", "pkey_alloc",
         "pkey_free", "pkey_mprotect"}

PYTHON = r"""
import asyncio, ctypes, errno, json, os, socket, subprocess, sys, tempfile, threading, multiprocessing, shutil, time, hashlib
done = []
worker = threading.Thread(target=lambda: done.append(sum(range(1000)))); worker.start(); worker.join()
assert done == [499500]
assert subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, check=True).stdout == b"42\n"
with tempfile.TemporaryDirectory(dir="/tmp") as place:
    with open(place + "/a", "w") as f: f.write("x" * 100000)
    shutil.copy2(place + "/a", place + "/b"); os.rename(place + "/b", place + "/c"); os.symlink("c", place + "/d")
    assert sorted(os.listdir(place)) == ["a", "c", "d"] and os.stat(place + "/d").st_size == 100000
async def main():
    server = await asyncio.start_server(lambda r, w: (w.write(b"hello"), w.close()), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    assert await reader.read() == b"hello"
    inner = await asyncio.create_subprocess_exec(sys.executable, "-c", "pass"); assert await inner.wait() == 0
asyncio.run(main())
ours, theirs = multiprocessing.Pipe()
child = multiprocessing.get_context("fork").Process(target=lambda: theirs.send(hashlib.sha256(b"x").hexdigest()))
child.start(); assert len(ours.recv()) == 64; child.join()
libc = ctypes.CDLL(None, use_errno=True)
def refused(name, *arguments):
    ctypes.set_errno(0)
    assert getattr(libc, name)(*arguments) == -1 and ctypes.get_errno() == errno.EPERM, name
refused("unshare", 0x10000000); refused("mknod", b"/tmp/p", 0o10600, 0); refused("ptrace", 0, 0, 0, 0)
for family in (socket.AF_NETLINK, socket.AF_PACKET, socket.AF_VSOCK):
    try: socket.socket(family, socket.SOCK_RAW); raise SystemExit(f"a socket of {family}")
    except PermissionError: pass
print("all of it")
"""

NODE = r"""
const fs = require('fs'), http = require('http'), { execFileSync } = require('child_process'), { Worker } = require('worker_threads');
fs.writeFileSync('/tmp/a', 'x'.repeat(1000)); fs.copyFileSync('/tmp/a', '/tmp/b'); fs.watch('/tmp').close();
if (execFileSync(process.execPath, ['-e', 'console.log(6*7)']).toString() !== '42\n') throw new Error('child');
new Worker('require("worker_threads").parentPort.postMessage(1)', { eval: true }).on('message', () => {
  const server = http.createServer((q, s) => s.end('hello')).listen(0, '127.0.0.1', () =>
    http.get({ port: server.address().port }, (s) => { s.resume(); s.on('end', () => { server.close(); console.log('all of it'); }); }));
});
"""


def said(ident, world):
    return proc.until(f"{ident[:12]} has ended", PATIENCE, lambda: world.direct(
        "inspect", "-f", "{{.State.Running}}", ident).want().out.strip() == "false"
        and Path("/srv/ws/a/said").read_text(encoding="utf-8"))


def run_script(world, listener):
    for name in ("said", "pipe"):
        Path("/srv/ws/a", name).unlink(missing_ok=True)
    ident = make(world, listener, {"Image": APP, "Cmd": ["sh", "-c", SCRIPT],
                                   "HostConfig": {"Binds": ["/srv/ws/a:/w"]}})
    status, answer = start(world, listener, ident)
    want(f"start {answer}", status, 204)
    text = said(ident, world)
    world.direct("rm", "-f", ident).want()
    return text


def test_a_filter_by_name_is_sent_and_holds(world):
    """Under tight-python a call that the engine's own filter lets through fails, and the rest works."""
    want("without it", run_script(world, "runc"), "made\nalive\n")
    text = run_script(world, "tight")
    if "not permitted" not in text.lower() or not text.endswith("alive\n"):
        raise Trouble(f"under tight-python: {text!r}")


def test_a_filter_by_name_is_on_record_by_its_hash(world):
    """The engine has the whole filter, the record its name and hash; the kernel shows that there is one."""
    ident = make(world, "tight", sleeper())
    options = json.loads(world.direct("inspect", "-f", "{{json .HostConfig.SecurityOpt}}", ident).want().out)
    filters = [o.partition("=")[2] for o in options if o.startswith("seccomp=")]
    want("filters", len(filters), 1)
    made = json.loads(filters[0])
    want("its default", made["defaultAction"], "SCMP_ACT_ERRNO")
    want("python is no mount", any("mount" in rule["names"] for rule in made["syscalls"]), False)
    status, answer = start(world, "tight", ident)
    want(f"start {answer}", status, 204)
    want("the kernel's word", attestation_of(world, "tight", ident)["attestation"]["seccomp"], 2)
    records = [r for r in world.gate.records() if r.get("op") == "container.create"
               and r["type"] == "decision" and r["listener"] == "tight"]
    text = json.dumps(records[-1])
    if "tight-python@sha256:" not in text or "getsockname" in text:
        raise Trouble(text)
    world.direct("rm", "-f", ident).want()


def test_a_filter_of_ones_own_may_only_be_tighter(world):
    """What a caller sends itself passes if it allows no more, is sent as the gate writes it, and is refused else."""
    shell = json.loads((PROFILES / "tight-shell.json").read_text(encoding="utf-8"))
    for rule in shell["syscalls"]:
        rule.pop("comment", None)
    shell.pop("comment")
    body = sleeper(SecurityOpt=["seccomp=" + json.dumps(shell, indent=2)])
    ident = make(world, "runc", body)
    status, answer = start(world, "runc", ident)
    want(f"start {answer}", status, 204)
    sent = world.direct("inspect", "-f", "{{json .HostConfig.SecurityOpt}}", ident).want().out
    want("white space is ours", "\\n" in sent, False)
    world.direct("rm", "-f", ident).want()
    for listener in ("runc", "tight"):
        for text in ('{"defaultAction":"SCMP_ACT_ALLOW"}',
                     '{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["unshare"],"action":"SCMP_ACT_ALLOW"}]}'):
            head, answer = world.ask(listener, "POST", "/v1.41/containers/create", JSON,
                                     json.dumps(sleeper(SecurityOpt=[f"seccomp={text}"])).encode())
            want(f"{listener}: {answer}", head.status, 403)
            if b"allows more than" not in answer:
                raise Trouble(answer)


def program(world, profile, *command):
    """A program of this host in a container under a shipped profile, past the gate."""
    folders = {Path(path) for path in ("/usr", "/lib", "/lib64", sys.base_prefix) if os.path.isdir(path)}
    binds = [word for f in sorted(folders) if not any(o in f.parents for o in folders)
             for word in ("-v", f"{f}:{f}:ro")]
    return world.direct("run", "--rm", "--network", "none", "--tmpfs", "/tmp", "--security-opt",
                        f"seccomp={PROFILES / profile}.json", *binds, APP, *command).want(0)


def test_python_runs_under_tight_python(world):
    """Threads, subprocesses, files, sockets, asyncio; and what the profile is there to refuse."""
    interpreter = next(path for path in ("/usr/bin/python3", sys.executable) if os.access(path, os.X_OK))
    want("python", program(world, "tight-python", interpreter, "-c", PYTHON).out, "all of it\n")


def test_node_runs_under_tight_node(world):
    """Files, watching, children, workers and a server of HTTP."""
    want("node", program(world, "tight-node", os.path.realpath("/usr/bin/node"), "-e", NODE).out, "all of it\n")


def test_the_account_of_the_engines_default_is_true(world):
    """rules/seccomp/default.json allows nothing that dockerd does not give runc where nothing is said, but for what
    engines allow since later versions."""
    ident = make(world, "runc", sleeper())
    status, answer = start(world, "runc", ident)
    want(f"start {answer}", status, 204)
    found = [p for p in Path(world.engine.folder).rglob("config.json") if ident in str(p)]
    if not found:
        raise Trouble(f"no bundle of {ident} below {world.engine.folder}")
    spec = json.loads(found[0].read_text(encoding="utf-8"))["linux"]["seccomp"]
    world.direct("rm", "-f", ident).want()
    theirs = {name for rule in spec["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    ours = {name for rule in json.loads((PROFILES / "default.json").read_text(encoding="utf-8"))["syscalls"]
            if rule["action"] == "SCMP_ACT_ALLOW" and "caps" not in rule.get("includes", {})
            and machine in rule.get("includes", {}).get("arches", [machine]) for name in rule["names"]}
    want("allowed here alone", ours - theirs - NEWER, set())
    want("most of it is in both", len(ours & theirs) > 300, True)
