"""Processes: start, wait by deadline, end; only what was started here is ever ended."""

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Trouble(Exception):
    """The test could not be carried out, or found something wrong; its text says what."""


def until(what, seconds, check, pause=0.01):
    """Polls check() until it is true; for the outside world only, which sends no events."""
    deadline = time.monotonic() + seconds
    while True:
        got = check()
        if got:
            return got
        if time.monotonic() > deadline:
            raise Trouble(f"not within {seconds} s: {what}")
        time.sleep(pause)


def start(command, log, **more):
    """A process in a session of its own, its output in the file `log`."""
    with open(log, "ab") as out:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                start_new_session=True, **more)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def end(process, seconds=10):
    """Asks a process to end, and makes it; returns its status."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise Trouble(f"{process.args[0]} did not end within {seconds} s of SIGTERM") from None
    return process.returncode


def children(pid):
    """[(pid, name)] of the living direct children, oldest first."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="latin-1") as stat:
                name, _, rest = stat.read().partition("(")[2].rpartition(")")
        except OSError:
            continue
        field = rest.split()
        if int(field[1]) == pid and field[0] not in "ZX":
            found.append((int(field[19]), int(entry), name))
    return [(child, name) for _, child, name in sorted(found)]


def family(pid):
    """pid and all its living descendants."""
    found = [pid]
    for parent in found:
        found.extend(child for child, _ in children(parent))
    return found


def cpu_seconds(pids):
    """User and system time that these processes have used."""
    ticks = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", encoding="latin-1") as stat:
                field = stat.read().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(field[11]) + int(field[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_kib(pid):
    """Resident memory, without what is shared with files."""
    with open(f"/proc/{pid}/status", encoding="latin-1") as status:
        for line in status:
            if line.startswith("RssAnon:"):
                return int(line.split()[1])
    return 0


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def kill(pid, sig=signal.SIGKILL):
    try:
        os.kill(pid, sig)
    except ProcessLookupError:
        pass


def output(command, **more):
    """Runs a command that must succeed; its standard output as text."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False, **more)
    if done.returncode:
        raise Trouble(f"{' '.join(map(str, command))}: status {done.returncode}: "
                      f"{(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout


def free_port():
    """A TCP port of 127.0.0.1 that nobody listened on a moment ago."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]
