"""The gate under test: its configuration, its processes, its log."""

import json
import os
import pwd
import re
import signal
import subprocess
from pathlib import Path

from checker import check
from kit import proc, records
from kit.proc import Trouble

USERS = ("sallyport-worker", "sallyport-audit", "sallyport-resolve", "sallyport-admin",
         "sallyport-sandbox", "sallyport-keeper")


def binary():
    """The program under test: $SALLYPORT, or the newest build in the tree."""
    given = os.environ.get("SALLYPORT")
    if given:
        return Path(given).resolve()
    built = [path for path in proc.ROOT.glob("build*/gate/sallyport") if os.access(path, os.X_OK)]
    if not built:
        raise Trouble("no build/gate/sallyport here; build it, or set SALLYPORT")
    return max(built, key=lambda path: path.stat().st_mtime)


def in_memory(folder):
    """Temporary files may lie on a tmpfs, where the gate would rather have no log."""
    return proc.output(["stat", "-f", "-c", "%T", str(folder)]).strip() in ("tmpfs", "ramfs")


def make_users():
    """The gate's own system users, as a package would make them; needs root."""
    for name in USERS:
        try:
            pwd.getpwnam(name)
        except KeyError:
            proc.output(["useradd", "--system", "--no-create-home", "--shell",
                         "/usr/sbin/nologin", name])


def read_records(path, offset=0):
    """The records of a segment from offset on, and where they end.

    It is padded in advance, and may be written to while it is read: what does not
    parse yet comes later.
    """
    data = bytearray()
    with open(path, "rb") as file:
        file.seek(offset)
        while block := file.read(1 << 18):
            data += block
            if b"\n" not in block:
                break
    found = []
    for line in data.split(b"\n")[:-1]:
        try:
            found.append(json.loads(line.decode()))
        except ValueError:
            break
        offset += len(line) + 1
    return found, offset


class Gate:
    def __init__(self, folder, config, profiles=None, uid=None, program=None):
        """config: the text of a configuration file; profiles: {file name: text} for its folder.

        uid: start it as this user; by default as who we are, which for root means that
        every process of the gate gets a user of its own.
        """
        self.folder = Path(folder)
        self.program = program or binary()
        self.config = self.folder / "gate.conf"
        self.profiles = self.folder / "profiles"
        self.log = self.folder / "log"
        self.output = self.folder / "gate.out"
        self.uid = uid
        self.before = []  # what goes before the program, to start it through something else
        self.more = {}    # for the start of its process
        self.process = None
        self.reasons = set()  # codes that its log names, once it has been stopped
        self.profiles.mkdir(exist_ok=True)
        for name, text in (profiles or {}).items():
            (self.profiles / f"{name}.lua").write_text(text, encoding="latin-1")
        if in_memory(self.folder) and "unsafe_fs" not in config:
            config = re.sub(r"\blog\s*\{", "log { unsafe_fs = true,", config, count=1)
        self.config.write_text(config, encoding="latin-1")
        if uid is not None:
            os.chown(self.folder, uid, uid)
        elif os.getuid() == 0:
            make_users()

    def start(self, *sockets, seconds=20):
        who = {} if self.uid is None else {"user": self.uid, "group": self.uid, "extra_groups": []}
        self.process = proc.start([*self.before, self.program, "serve", "--config", self.config],
                                  self.output, **who, **self.more)
        proc.until("the gate is ready", seconds, self._ready)
        for path in sockets:
            if not Path(path).is_socket():
                raise Trouble(f"the gate is ready and there is no socket {path}")
        return self

    def _ready(self):
        if self.process.poll() is not None:
            raise Trouble(f"the gate ended with status {self.process.returncode}: {self.said()}")
        return ": ready\n" in self.said()

    def said(self):
        try:
            return self.output.read_text(errors="replace")[-4000:]
        except OSError:
            return ""

    def stop(self, seconds=15):
        """Asks the gate to end; its exit status.

        Processes that it left behind are an error, and so is a log that does not verify or
        holds a record that is not as audit/record.def says.
        """
        if not self.process:
            return 0
        members = proc.family(self.process.pid)
        status = proc.end(self.process, seconds)
        for pid in members[1:]:
            proc.until(f"process {pid} of the gate ends", 5, lambda p=pid: not proc.alive(p))
        self.process = None
        self.verify()
        self.reasons |= records.check_log(self.log)
        try:
            check.check(self.log)  # a second reader, by FORMAT.md alone
        except check.Wrong as wrong:
            raise Trouble(f"tests/checker/check.py: {wrong}") from wrong
        return status

    def kill(self):
        """Ends what is left, whatever it does; for cleaning up after a failure."""
        if self.process:
            for pid in reversed(proc.family(self.process.pid)):
                proc.kill(pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def role(self, name):
        """pids of the living processes of one role: worker, audit, resolve."""
        found = []
        for pid, comm in proc.children(self.process.pid):
            if name in comm:
                found.append(pid)
        return found

    def records(self):
        """All records that are on disk now, in order."""
        found = []
        for path in sorted(self.log.glob("*.log")):
            found += read_records(path)[0]
        return found

    def run(self, *arguments, stdin=None):
        """A command of the program, as the gate's own user: (status, stdout, stderr)."""
        who = {} if self.uid is None else {"user": self.uid, "group": self.uid, "extra_groups": []}
        done = subprocess.run([self.program, *map(str, arguments)], input=stdin,
                              capture_output=True, text=True, check=False, timeout=60, **who)
        return done.returncode, done.stdout, done.stderr

    def verify(self):
        """Raises unless `sallyport audit verify` finds the log whole."""
        status, out, errors = self.run("audit", "verify", self.log)
        if status:
            raise Trouble(f"audit verify: status {status}: {out}{errors}")
        return out
