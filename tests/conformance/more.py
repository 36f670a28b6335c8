"""More behaviours: what is tried with programs of the repository, and from a terminal."""

import json
import os
import select
import signal
import subprocess
import tempfile
from pathlib import Path

from api import PATIENCE
from behaviours import equal, mark_of, running
from kit import gate, proc

EXAMPLES = proc.ROOT / "examples/clients"
CODE = 'echo "out $((6 * 7))"; echo 42 > /work/result.txt; echo err >&2; exit 3\n'

# Ways that are open where a sandbox is no more than that, and why.
ENGINE = {"io-uring": "the filter of these engines lets it through", "vsock": "likewise"}
GVISOR = dict.fromkeys(("unshare-user", "unshare-mount", "clone-user", "io-uring", "seccomp", "kernel-log", "devices"),
                       "the kernel is gVisor's own, and what it gives reaches no further")
PODMAN = {**ENGINE, **dict.fromkeys(("unshare-user", "clone-user", "keyctl"), "Podman's own filter lets it through")}
OPEN = {"docker-runc": ENGINE, "docker-runsc": GVISOR, "podman-runc": PODMAN, "podman-runsc": GVISOR}


def run(command, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, timeout=PATIENCE, check=False, **more)


def clients(folder):
    """The examples, each tried where its language is."""
    yield "python", [os.sys.executable, EXAMPLES / "python/run_code.py"]
    yield "javascript", ["node", EXAMPLES / "javascript/run_code.mjs"]
    built = Path(folder) / "run_code"
    done = run(["go", "build", "-o", built, EXAMPLES / "go/run_code.go"],
               env={**os.environ, "GOCACHE": f"{folder}/cache", "GOFLAGS": "-mod=mod", "GO111MODULE": "off"})
    equal(0, done.returncode)
    yield "go", [built]


def test_clients(case):
    """An agent's tool call in each language; once is enough for what does not depend on the backend."""
    if case.name not in ("docker-runc", "local-confined"):
        return "tried with docker-runc and local-confined"
    with tempfile.TemporaryDirectory() as folder:
        code = Path(folder) / "code"
        code.write_text(CODE)
        for name, command in clients(folder):
            done = run([*command, case.api.path, code, "sh"])
            equal((name, 3, b"out 42\nresult: 42\n", b"err\n"), (name, done.returncode, done.stdout, done.stderr))
            done = run([*command, case.api.path, code, "no-such-interpreter"])
            assert done.returncode == 1 and b"refused: exec_failed" in done.stderr, (name, done)
    return None


def sallyport(case, verb, *words, **more):
    return run([gate.binary(), "sandbox", verb, "--socket", case.api.path, *words], **more)


def test_from_a_terminal(case):
    """The verbs of `sallyport sandbox`."""
    done = sallyport(case, "create", "--label", "by=verb", "--env", "A=b c", "--memory", "128MiB", "--cpus", "0.5")
    assert done.returncode == 0, done
    ident = done.stdout.decode().strip()
    try:
        listed = json.loads(sallyport(case, "ls", "--label", "by=verb", "--json").stdout)
        equal([ident], [one["id"] for one in listed["sandboxes"]])
        shown = run([gate.binary(), "sandbox", "ls", "--config", case.place.gate.config, "--listener", case.name])
        assert ident.encode() in shown.stdout, shown
        done = sallyport(case, "exec", "--env", "B=2", ident, "--", "sh", "-c", "cat; echo $A $B; echo no >&2; exit 9", input=b"in\xff\n")
        equal((9, b"in\xff\nb c 2\n", b"no\n"), (done.returncode, done.stdout, done.stderr))
        done = sallyport(case, "exec", ident, "--", "nothing-of-that-name")
        assert done.returncode == 125 and b"nothing-of-that-name" in done.stderr, done
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "in"
            (made / "deep").mkdir(parents=True)
            (made / "deep/file").write_bytes(bytes(300000))
            (made / "link").symlink_to("/etc/passwd")
            equal(0, sallyport(case, "put", made / "deep/file", f"{ident}:/work/one", "--mode", "0700").returncode)
            equal(0, sallyport(case, "exec", "-n", ident, "--", "mkdir", "/work/all").returncode)
            equal(0, sallyport(case, "put", made, f"{ident}:/work/all").returncode)
            equal(0, sallyport(case, "get", f"{ident}:/work/all/", Path(folder) / "out").returncode)
            equal(0, run(["diff", "-r", "--no-dereference", made, Path(folder) / "out"]).returncode)
            equal(bytes(300000), sallyport(case, "get", f"{ident}:/work/one", "-").stdout)
            done = sallyport(case, "get", f"{ident}:/work/none", "-")
            assert done.returncode == 1 and b"file_not_found" in done.stderr, done
        equal(0, sallyport(case, "extend", "--lifetime", "5m", ident).returncode)
        equal(0, sallyport(case, "denials", ident).returncode)
        done = sallyport(case, "extend", "--lifetime", "9d", ident)
        assert done.returncode == 1 and b"above_profile" in done.stderr, done
    finally:
        equal(0, sallyport(case, "rm", ident).returncode)
    done = sallyport(case, "exec", ident, "--", "true")
    assert done.returncode == 125 and b"sandbox_not_found" in done.stderr, done


def line_of(process):
    assert select.select([process.stdout], [], [], PATIENCE)[0], "it says nothing"
    return process.stdout.readline()


def test_ctrl_c(case):
    """The first interrupts, the second kills."""
    mark = mark_of(case, 6)
    script = f"trap 'echo caught' INT; (trap '' INT; sleep {mark}) & echo begun; while :; do sleep 0.1; done"
    process = subprocess.Popen([str(word) for word in (gate.binary(), "sandbox", "exec", "-n", "--socket",
                                                       case.api.path, case.box.id, "--", "sh", "-c", script)],
                               stdout=subprocess.PIPE, bufsize=0)
    try:
        equal(b"begun\n", line_of(process))
        process.send_signal(signal.SIGINT)
        equal(b"caught\n", line_of(process))
        process.send_signal(signal.SIGINT)
        equal(137, process.wait(PATIENCE))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    equal(0, running(case, mark))


def test_it_describes_itself(case):
    """The document that the server gives is the one of the source."""
    told = case.api.ask("GET", "/v1/openapi.json").want(200)
    equal((proc.ROOT / "proxy/sandbox/openapi.json").read_bytes(), told.body)


def test_ways_out(case):
    """Every way that tests/conformance/probes knows."""
    probe = "/bin/probe"
    if case.kind == "local":
        probe = str(case.place.tools / "probe")
    done = case.box.run(probe, "all", timeout="60s")
    rows = [line.split(None, 2) for line in done["stdout"].decode(errors="replace").splitlines()]
    assert len(rows) > 30, done
    # A descriptor that one of the ways before has left open is told alone.
    found = {name: why for name, verdict, why in rows if verdict == "open" and name != "descriptors"}
    done = case.box.run(probe, "descriptors")
    equal(b"closed", done["stdout"][:6])
    equal({}, {name: why for name, why in found.items() if name not in OPEN.get(case.name, {})})
    for name, word in (("host-files", str(case.place.secret)), ("engine-socket", str(case.place.folder / "gate.conf"))):
        done = case.box.run(probe, name, word)
        assert not done["stdout"].startswith(b"open"), done
