#!/usr/bin/env python3
"""files.py PROGRAM - the program in a sandbox serves files, folders, tars and connections."""

import errno
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import traceback
from pathlib import Path

sys.dont_write_bytecode = True
sys.path[:0] = [str(Path(__file__).resolve().parents[2])]
from kit import inside  # noqa: E402
from kit.inside import Inside, encoded  # noqa: E402

# Leaks are looked for by ptrace, which the program forbids.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
PROGRAM = os.path.abspath(sys.argv[1])
FINE = {"code": 0, "signal": 0, "timed_out": False, "truncated": False}
ODD = [b"plain", b"a b", b"line\nfeed", b"\xff\xfe\x80", b'quote"back\\slash', b"%41", b"-dash", b"--parents", b"\x01\x7f",
       "ünïcode".encode(), b"n" * 255, b"\xff" * 255, b"...", b"a;b?c#d"]


def call(*words, data=b""):
    end, out, err = inside.run(PROGRAM, *words, data=data)
    assert not err
    return end, out


def error(*words, data=b""):
    end, out = call(*words, data=data)
    assert "error" in end, (words, end, out)
    return end["error"]


def at(folder, name=b""):
    return encoded(os.path.join(os.fsencode(folder), name) if name else folder)


def entries(out):
    return {inside.decoded(entry["name"]): entry for entry in map(json.loads, out.splitlines())}


def test_odd_names(folder):
    """Each is put, listed, read, described and removed, and is one file with that very name."""
    for name in ODD:
        assert call("put", at(folder, name), data=name) == (FINE, b"")
        assert Path(os.fsdecode(os.path.join(os.fsencode(folder), name))).read_bytes() == name
    end, out = call("list", at(folder))
    assert end == FINE and sorted(entries(out)) == sorted(ODD)
    assert sorted(os.listdir(os.fsencode(folder))) == sorted(ODD)
    for name in ODD:
        assert call("get", at(folder, name)) == (FINE, name)
        (entry,) = entries(call("stat", at(folder, name))[1]).items()
        assert entry[0] == name and entry[1]["size"] == len(name) and entry[1]["mode"] == "0644"
        assert call("remove", at(folder, name)) == (FINE, b"")
    assert os.listdir(folder) == []


def test_names_that_are_none(folder):
    for path in ("", "relative", "%", "%4", "%4g", "%00", "/a%00b", folder + "/..", ".."):
        for verb in ("get", "put", "stat", "list", "mkdir", "remove"):
            assert error(verb, path) == "EINVAL", (verb, path)
    assert error("put", at(folder, b"n" * 256)) == "ENAMETOOLONG"
    assert error("get", "/" + "a/" * 4000) == "ENAMETOOLONG"
    for words in (["get"], ["get", "/a", "/b"], ["get", "/a", "--what"], ["put", "/a", "--mode", "8"],
                  ["put", "/a", "--mode", "7777"], ["put", "/a", "--mode"], ["list", "/", "--max", "-1"],
                  ["get", "--beneath", "/", "--beneath", "/", "a"]):
        assert error(*words) == "EINVAL", words
    assert os.listdir(folder) == []


def test_megabytes(folder):
    data = os.urandom(5 << 20)
    assert call("put", at(folder, b"big"), data=data) == (FINE, b"")
    assert call("get", at(folder, b"big")) == (FINE, data)


def test_put(folder):
    path = Path(folder, "a", "b", "c")
    assert error("put", at(path)) == "ENOENT"
    assert call("put", at(path), "--parents", "--mode", "0750", data=b"1") == (FINE, b"")
    assert path.stat().st_mode & 0o7777 == 0o750
    assert call("put", at(path), data=b"") == (FINE, b"") and path.read_bytes() == b""
    assert error("put", at(path.parent), data=b"1") == "EISDIR" and error("put", at(path / "d")) == "ENOTDIR"
    # A link is replaced, and what it points to stays.
    outside = Path(folder, "outside")
    outside.write_text("mine")
    Path(folder, "link").symlink_to(outside)
    assert call("put", at(folder, b"link"), data=b"new") == (FINE, b"")
    assert outside.read_text() == "mine" and Path(folder, "link").read_text() == "new"
    assert sorted(os.listdir(folder)) == ["a", "link", "outside"]


def test_put_is_all_or_nothing(folder):
    path = Path(folder, "kept")
    path.write_text("old")
    for sent in (b"", inside.frame(inside.STDIN, b"half")):
        one = Inside(PROGRAM, "put", at(path))
        one.process.stdin.write(sent)
        one.process.stdin.close()
        assert one.process.stdout.read() == b"" and one.process.wait(inside.PATIENCE) == 1
        one.process.stdout.close()
    for sent in (b"\x02\0\0\0\0", b"\x00\xff\xff\xff\xff", inside.frame(inside.STDIN_END, b"x")):
        one = Inside(PROGRAM, "put", at(path))
        one.process.stdin.write(inside.frame(inside.STDIN, b"half") + sent)
        assert one.finish()[0]["error"] == "EPROTO"
    assert path.read_text() == "old" and os.listdir(folder) == ["kept"]


def test_full_disk(folder):
    """Told by its name, and nothing of it is left."""
    if os.getuid() != 0:
        print("skip: only root mounts a small file system")
        return
    script = ('mount -t tmpfs -o size=64k none "$1" && echo old > "$1/kept" && "$0" put "$1/kept" < "$1.frames" ; '
              'cat "$1/kept"; ls -A "$1"; mount -o remount,ro "$1"; "$0" put "$1/other" < "$1.frames"; ls -A "$1"')
    frames = b"".join(inside.frame(inside.STDIN, bytes(65536)) for _ in range(4)) + inside.frame(inside.STDIN_END)
    Path(folder, "m.frames").write_bytes(frames)
    Path(folder, "m").mkdir()
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script, PROGRAM, os.path.join(folder, "m")],
                          stdout=subprocess.PIPE, timeout=inside.PATIENCE, check=False).stdout
    assert b'"ENOSPC"' in done and b'}old\nkept\n' in done and b'"EROFS"' in done and done.endswith(b"}kept\n"), done


def test_not_allowed(folder):
    """EACCES by its name, for one who is not root."""
    if os.getuid() != 0:
        print("skip: only root becomes somebody else")
        return
    os.chmod(folder, 0o755)
    program = shutil.copy(PROGRAM, folder)
    Path(folder, "secret").touch(0o600)
    for verb, path in (("put", "new"), ("get", "secret"), ("mkdir", "d"), ("remove", "secret"), ("list", "closed")):
        os.makedirs(os.path.join(folder, "closed"), 0o700, exist_ok=True)
        one = Inside(program, verb, os.path.join(folder, path), user=65534, group=65534, extra_groups=[])
        end = one.send(inside.STDIN_END).finish()[0]
        assert end["error"] == "EACCES", (verb, end)


def test_what_is_no_file(folder):
    """Nothing waits for a FIFO, and no device is opened."""
    os.mkfifo(os.path.join(folder, "fifo"))
    assert error("get", at(folder, b"fifo")) == "EINVAL" and error("get", "/dev/zero") == "EINVAL"
    assert error("get", at(folder)) == "EISDIR" and error("get", at(folder, b"none")) == "ENOENT"
    assert error("list", at(folder, b"fifo")) == "ENOTDIR" and error("get", at(folder, b"fifo/x")) == "ENOTDIR"
    Path(folder, "loop").symlink_to("loop")
    assert error("get", at(folder, b"loop")) == "ELOOP"
    # A file of /proc is behind a magic link, and somebody else's.
    assert error("get", "/proc/self/root/etc/passwd") in ("ELOOP", "EXDEV")


def test_list(folder):
    Path(folder, "d").mkdir(mode=0o700)
    Path(folder, "f").write_text("12345")
    os.utime(os.path.join(folder, "f"), (1700000000, 1700000000))
    Path(folder, "l").symlink_to("a b\n")
    os.mkfifo(os.path.join(folder, "p"), 0o600)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.join(folder, "s"))
        found = entries(call("list", at(folder))[1])
    assert {name.decode(): entry["type"] for name, entry in found.items()} == {
        "d": "directory", "f": "file", "l": "link", "p": "fifo", "s": "socket"}
    assert found[b"f"]["size"] == 5 and found[b"f"]["mtime"] == 1700000000 and found[b"d"]["mode"] == "0700"
    assert inside.decoded(found[b"l"]["target"]) == b"a b\n" and "target" not in found[b"f"]
    assert entries(call("stat", at(folder, b"l"))[1])[b"l"]["type"] == "link"
    assert entries(call("stat", at(folder) + "/")[1])[os.fsencode(os.path.basename(folder))]["type"] == "directory"
    assert call("list", at(folder) + "/")[0] == FINE and call("list", "/")[0] == FINE


def test_list_is_bounded(folder):
    for number in range(700):
        Path(folder, f"{number:03}" + "\n" * 200).touch()
    end, out = call("list", at(folder))
    assert end == FINE and len(entries(out)) == 700
    end, out = call("list", at(folder), "--max", "99")
    assert end == {**FINE, "truncated": True} and len(entries(out)) == 99
    assert call("list", at(folder), "--max", "700")[0] == FINE


def test_make_and_remove(folder):
    assert error("mkdir", at(folder, b"a/b")) == "ENOENT"
    assert call("mkdir", "--parents", at(folder, b"a/b")) == (FINE, b"")
    assert call("mkdir", "--parents", at(folder, b"a/b")) == (FINE, b"") and error("mkdir", at(folder, b"a/b")) == "EEXIST"
    Path(folder, "f").write_text("x")
    assert error("mkdir", "--parents", at(folder, b"f")) == "ENOTDIR" and error("mkdir", "--parents", at(folder, b"f/g")) == "ENOTDIR"
    assert error("remove", at(folder, b"a")) == "ENOTEMPTY" and call("remove", at(folder, b"a/b")) == (FINE, b"")
    assert error("remove", at(folder, b"none/x")) == "ENOENT" and error("remove", "/") == "EBUSY"


def test_remove_follows_nothing(folder):
    keep = Path(folder, "keep")
    keep.mkdir()
    (keep / "file").write_text("mine")
    tree = Path(folder, "tree", "sub")
    tree.mkdir(parents=True)
    (tree / "link").symlink_to(keep)
    (tree / "file").touch()
    os.mkfifo(tree / "fifo")
    Path(folder, "link").symlink_to(keep)
    assert call("remove", "--recursive", at(folder, b"tree")) == (FINE, b"")
    assert call("remove", "--recursive", at(folder, b"link")) == (FINE, b"")
    assert (keep / "file").read_text() == "mine" and os.listdir(folder) == ["keep"]


def test_remove_deep(folder):
    """Deeper than descriptors or paths would go."""
    top = os.open(folder, os.O_RDONLY)
    now = os.dup(top)
    for _ in range(3000):
        os.mkdir("d", dir_fd=now)
        following = os.open("d", os.O_RDONLY, dir_fd=now)
        os.close(now)
        now = following
    os.close(now)
    assert call("remove", "--recursive", at(folder, b"d")) == (FINE, b"")
    assert os.listdir(top) == []
    os.close(top)


def test_fence(folder):
    """With --beneath nothing leads out, whatever the path and the links say."""
    outside = Path(folder, "outside")
    outside.mkdir()
    (outside / "secret").write_text("secret")
    fence = Path(folder, "fence")
    (fence / "in").mkdir(parents=True)
    (fence / "in" / "file").write_text("fine")
    for name, target in (("abs", "/"), ("up", "../outside"), ("file", "../outside/secret"), ("magic", "/proc/self/cwd"),
                         ("chain", "up"), ("root", "/proc/self/root"), ("in/back", "../../outside")):
        (fence / name).symlink_to(target)
    escapes = ["../outside/secret", "/etc/passwd", "abs" + str(outside) + "/secret", "up/secret", "file", "chain/secret",
               "in/../../outside/secret", "root" + str(outside) + "/secret", "in/back/secret", "..", "magic/secret",
               "%2e%2e/outside/secret", "in/..%2f../outside/secret"]
    for path in escapes:
        for verb in ("get", "put", "list", "tar", "untar", "mkdir", "remove"):
            end, out, _ = inside.run(PROGRAM, verb, "--beneath", str(fence), path, data=b"x" if verb == "put" else b"")
            if path == "file" and verb in ("put", "remove", "tar"):
                assert end == FINE and b"mine" not in out, (verb, path)  # the link itself
                (fence / "file").unlink(missing_ok=True)
                (fence / "file").symlink_to("../outside/secret")
            else:
                assert end.get("error") in ("EXDEV", "ELOOP", "EINVAL", "ENOTDIR", "EEXIST", "ENOENT"), (verb, path, end)
            assert (outside / "secret").read_text() == "secret" and os.listdir(outside) == ["secret"], (verb, path)
    assert call("get", "--beneath", str(fence), "in/file") == (FINE, b"fine")
    assert call("put", "--beneath", str(fence), "new/x/y", "--parents", data=b"z") == (FINE, b"")
    assert (fence / "new/x/y").read_text() == "z"
    assert error("put", "--beneath", str(fence), "up/x/y", "--parents", data=b"z") in ("EXDEV", "ELOOP")
    assert set(entries(call("list", "--beneath", str(fence), ".")[1])) >= {b"in", b"new", b"abs"}
    # A file with another name outside is replaced, not written through.
    os.link(outside / "secret", fence / "hard")
    assert call("put", "--beneath", str(fence), "hard", data=b"new") == (FINE, b"")
    assert (outside / "secret").read_text() == "secret"


def test_tar_round_trip(folder):
    made = Path(folder, "made")
    made.mkdir()
    for name in ODD:
        Path(os.fsdecode(os.path.join(os.fsencode(str(made)), name))).write_bytes(name * 300)
    deep = made / ("x" * 120) / ("y" * 120)
    deep.mkdir(parents=True)
    (deep / "program").write_bytes(os.urandom(100000))
    (deep / "program").chmod(0o755)
    (made / "link").symlink_to("/no/such/" + "z" * 200)
    (made / "empty").mkdir()
    os.mkfifo(made / "fifo")
    os.utime(made / "plain", (1700000000, 1700000000))
    end, data = call("tar", at(made))
    assert end == FINE and len(data) % 512 == 0
    # Somebody else's reader sees the same.
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        names = {os.fsencode(one.name) for one in tar}
        assert names == {os.fsencode(os.path.relpath(p, made)) for p in made.rglob("*")} - {b"fifo"}
        assert tar.getmember(os.path.relpath(deep / "program", made)).mode == 0o755
        assert tar.extractfile("plain").read() == b"plain" * 300
    other = Path(folder, "other")
    other.mkdir()
    assert call("untar", at(other), data=data) == (FINE, b"")
    (made / "fifo").unlink()
    done = subprocess.run(["diff", "-r", "--no-dereference", made, other], stdout=subprocess.PIPE, check=False)
    assert done.returncode == 0, done.stdout
    assert (other / "plain").stat().st_mtime == 1700000000
    # Once more over what is there.
    assert call("untar", at(other), data=data) == (FINE, b"")
    (end, data) = call("tar", at(made / "plain"))
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        assert tar.getnames() == ["plain"]


def make_tar(members, form=tarfile.GNU_FORMAT):
    """(name, type, link or content) each."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form, encoding="utf-8", errors="surrogateescape") as tar:
        for name, kind, what in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            info.mode = 0o6755
            if kind == tarfile.REGTYPE:
                info.size = len(what)
                tar.addfile(info, io.BytesIO(what))
            else:
                info.linkname = what
                tar.addfile(info)
    return out.getvalue()


def test_tars_of_others(folder):
    """Long names in the ways of GNU, of pax and of ustar; set-uid bits are not kept."""
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT):
        where = Path(folder, str(form))
        where.mkdir()
        long = "d" * 90 + "/" + "f" * 90
        assert call("untar", at(where), data=make_tar([
            ("./a", tarfile.REGTYPE, b"1"), (long, tarfile.REGTYPE, b"2"), ("l", tarfile.SYMTYPE, "q" * 90),
            ("h", tarfile.LNKTYPE, "a"), ("e/", tarfile.DIRTYPE, ""), (".", tarfile.DIRTYPE, "")], form)) == (FINE, b"")
        assert (where / "a").read_bytes() == b"1" and (where / long).read_bytes() == b"2"
        assert (where / "a").stat().st_mode & 0o7777 == 0o755 and (where / "a").samefile(where / "h")
        assert os.readlink(where / "l") == "q" * 90 and (where / "e").is_dir()


def test_tars_that_want_out(folder):
    outside = Path(folder, "outside")
    outside.mkdir()
    (outside / "file").write_text("mine")
    tries = [
        ([("../outside/file", tarfile.REGTYPE, b"x")], "EXDEV"),
        ([("/tmp/inside-absolute", tarfile.REGTYPE, b"x")], "EXDEV"),
        ([("a/../../outside/file", tarfile.REGTYPE, b"x")], "EXDEV"),
        ([("l", tarfile.SYMTYPE, "../outside"), ("l/file", tarfile.REGTYPE, b"x")], "ELOOP"),
        ([("l", tarfile.SYMTYPE, str(outside)), ("l/new", tarfile.DIRTYPE, "")], "ELOOP"),
        ([("l", tarfile.SYMTYPE, str(outside)), ("m", tarfile.SYMTYPE, "l"), ("m/new", tarfile.REGTYPE, b"")], "ELOOP"),
        ([("h", tarfile.LNKTYPE, "../outside/file")], "EXDEV"),
        ([("h", tarfile.LNKTYPE, str(outside / "file"))], "EXDEV"),
        ([("l", tarfile.SYMTYPE, "../outside"), ("h", tarfile.LNKTYPE, "l/file")], "ELOOP"),
        ([("d", tarfile.CHRTYPE, "")], "EPERM"),
        ([("d", tarfile.BLKTYPE, "")], "EPERM"),
        ([("f", tarfile.FIFOTYPE, "")], "EPERM"),
        ([("..", tarfile.DIRTYPE, "")], "EXDEV"),
        # Written through a link, or a hard link of one, it would change what is outside.
        ([("l", tarfile.SYMTYPE, "../outside/file"), ("l", tarfile.REGTYPE, b"x")], None),
        ([("l", tarfile.SYMTYPE, "../outside/file"), ("h", tarfile.LNKTYPE, "l"), ("h", tarfile.REGTYPE, b"x")], None),
        ([("l", tarfile.SYMTYPE, "../outside"), ("l", tarfile.DIRTYPE, ""), ("l/file", tarfile.REGTYPE, b"x")], None),
    ]
    for number, (members, expected) in enumerate(tries):
        where = Path(folder, f"try{number}")
        where.mkdir()
        end, _ = call("untar", at(where), data=make_tar(members))
        assert end.get("error") == expected, (members, end)
        assert os.listdir(outside) == ["file"] and (outside / "file").read_text() == "mine", members
        assert not os.path.exists("/tmp/inside-absolute")


def test_tars_that_are_none(folder):
    good = make_tar([("a", tarfile.REGTYPE, b"x" * 2000)])
    pax = make_tar([("p" * 300, tarfile.REGTYPE, b"x")], tarfile.PAX_FORMAT)

    def with_record(text):
        head = bytearray(pax[:512])
        head[124:136] = b"%011o\0" % len(text)
        head[148:156] = b" " * 8
        head[148:156] = b"%06o\0 " % sum(head)
        return bytes(head) + text + bytes(-len(text) % 512) + pax[1536:]

    for data in (b"", good[:100], good[:512], good[:1500], b"x" * 512, good[:512].replace(b"a", b"b", 1) + good[512:],
                 with_record(b"999 path=x\n"), with_record(b"0 path=x\n"), with_record(b"-1 path=x\n"),
                 with_record(b"00000000000000000005 path=x\n"), with_record(b"11 pathxxx\n"), with_record(b"10 path=x"),
                 with_record(b"12 size=-1\n\n"), with_record(b"5" * 600)):
        assert error("untar", at(folder), data=data) == "EPROTO", data[:40]
    # A name with more octets than a path may have.
    assert error("untar", at(folder), data=with_record(b"5011 path=" + b"n" * 5000 + b"\n")) == "EPROTO"


def test_connect(folder):
    del folder
    with socket.socket() as server:
        server.settimeout(inside.PATIENCE)
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        assert error("connect", str(port)) == "ECONNREFUSED"
        server.listen()
        one = Inside(PROGRAM, "connect", str(port))
        peer = server.accept()[0]
        assert one.next() == (inside.STDOUT, b"")
        data = os.urandom(1 << 20)
        one.send(inside.STDIN, b"ask\0")
        assert peer.recv(100) == b"ask\0"
        one.send(inside.STDIN_END)
        assert peer.recv(100) == b""
        peer.sendall(data)
        peer.close()
        assert one.finish() == (FINE, data, b"")
        # The gate goes: so does the connection.
        one = Inside(PROGRAM, "connect", str(port))
        peer = server.accept()[0]
        one.close()
        assert peer.recv(1) == b""
        peer.close()
    for words in ((), ("0",), ("65536",), ("x",), ("80", "81"), ("-1",)):
        assert error("connect", *words) == "EINVAL"


def test_connect_waits_for_both(folder):
    """Neither side is read faster than the other takes."""
    del folder
    with socket.socket() as server:
        server.settimeout(inside.PATIENCE)
        server.bind(("127.0.0.1", 0))
        server.listen()
        one = Inside(PROGRAM, "connect", str(server.getsockname()[1]))
        peer = server.accept()[0]
        assert one.next() == (inside.STDOUT, b"")
        peer.settimeout(0.5)
        sent = 0
        try:
            while sent < 64 << 20:
                sent += peer.send(bytes(1 << 20))
        except TimeoutError:
            pass
        assert sent < 64 << 20, "it was read where nobody took it"
        peer.close()
        assert len(one.finish()[1]) == sent


def test_without_openat2(folder):
    """Where the kernel does not have it (gVisor), the fence holds all the same."""
    filtered = shutil.which("python3") and os.path.join(os.path.dirname(__file__), "filtered.py")
    outside = Path(folder, "outside")
    outside.mkdir()
    (outside / "secret").write_text("secret")
    fence = Path(folder, "fence")
    (fence / "in").mkdir(parents=True)
    (fence / "up").symlink_to("../outside")
    (fence / "in/file").write_text("fine")

    def filtered_run(*words, data=b""):
        return Inside(sys.executable, filtered, PROGRAM, *words).send_all(data).finish()

    assert filtered_run("get", "--beneath", str(fence), "in/file") == (FINE, b"fine", b"")
    for path, expected in (("up/secret", "ELOOP"), ("../outside/secret", "EXDEV"), ("in/../../outside/secret", "EXDEV")):
        assert filtered_run("get", "--beneath", str(fence), path)[0]["error"] == expected
    assert filtered_run("put", str(fence / "in/new"), data=b"1")[0] == FINE
    assert filtered_run("put", "--parents", "--beneath", str(fence), "up/x", data=b"1")[0]["error"] == "ELOOP"
    assert filtered_run("run", "--", "echo", "a")[1] == b"a\n"


def main():
    bad = 0
    chosen = sys.argv[2:]
    tests = [(name, test) for name, test in globals().items()
             if name.startswith("test_") and (not chosen or name in chosen)]
    for name, test in tests:
        try:
            with tempfile.TemporaryDirectory() as folder:
                test(folder)
        except Exception as why:  # one that fails keeps no other from running
            traceback.print_exc()
            print(f"FAIL {name}: {why!r}", flush=True)
            bad += 1
    print(f"{len(tests) - bad} passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
