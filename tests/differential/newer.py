"""Docker 26.1 beside the machine's own engine: Debian 13 in a folder, made once and kept."""

import subprocess
from pathlib import Path

from kit import dockerd, proc

ROOT = Path("/var/tmp/sallyport-trixie")


def make_root(root):
    """A minute of downloading; needs debootstrap."""
    unfinished = root.with_name(root.name + ".new")
    subprocess.run(["rm", "-rf", "--one-file-system", unfinished], check=True)
    proc.output(["debootstrap", "--variant=minbase", "trixie", unfinished])
    policy = unfinished / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    proc.output(["chroot", unfinished, "apt-get", "install", "-y", "-q", "--no-install-recommends",
                 "docker.io", "iptables"])
    unfinished.rename(root)


class Newer(dockerd.Dockerd):
    """Sees the machine's /tmp, so that paths mean the same to the gate and to it."""

    mounts = (("--bind", "{root}", "{root}"), ("--rbind", "/proc", "{root}/proc"),
              ("--rbind", "/dev", "{root}/dev"), ("--rbind", "/sys", "{root}/sys"),
              ("--rbind", "/tmp", "{root}/tmp"))

    def __init__(self, root=ROOT):
        super().__init__()
        self.root = root
        self.command = ("chroot", str(root), "dockerd")

    def start(self, seconds=60):
        if not self.root.exists():
            make_root(self.root)
        for kind, source, target in self.mounts:
            proc.output(["mount", kind, source.format(root=self.root), target.format(root=self.root)])
            proc.output(["mount", "--make-rprivate", target.format(root=self.root)])
        return super().start(seconds)

    def stop(self):
        super().stop()
        for _ in range(8):  # one on top of the other, if another run was broken off
            subprocess.run(["umount", "-R", "-l", self.root], check=False, capture_output=True)
