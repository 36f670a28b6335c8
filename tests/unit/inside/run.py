#!/usr/bin/env python3
"""run.py PROGRAM - the program in a sandbox runs commands: output, input, signals, time, terminals."""

import hashlib
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

sys.dont_write_bytecode = True
sys.path[:0] = [str(Path(__file__).resolve().parents[2])]
from kit import inside  # noqa: E402
from kit.inside import Inside  # noqa: E402

PROGRAM = os.path.abspath(sys.argv[1])
FOLDER = tempfile.TemporaryDirectory()
MARK = os.path.join(FOLDER.name, "mark")
# Leaks are looked for by ptrace, which the program forbids.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
FINE = {"code": 0, "signal": 0, "timed_out": False, "truncated": False}


def run(*argv, options=(), data=b"", **more):
    return inside.run(PROGRAM, "run", *options, "--", *argv, data=data, **more)


def start(*argv, options=(), **more):
    return Inside(PROGRAM, "run", *options, "--", *argv, **more)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_exit_codes():
    every = 17 if "sanitized" in PROGRAM else 1  # whose start costs more
    for code in range(0, 256, every):
        assert run("sh", "-c", f"exit {code}") == ({**FINE, "code": code}, b"", b"")


def test_signals_that_end_it():
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGPIPE):
        end, _, _ = run("sh", "-c", f"ulimit -c 0; kill -{int(number)} $$")
        assert end == {**FINE, "code": 128 + number, "signal": number}, end


def test_output_apart():
    assert run("sh", "-c", "printf out; printf err >&2") == (FINE, b"out", b"err")


def test_stdin_to_its_end():
    assert run("cat", data=b"a\0b\xff\n") == (FINE, b"a\0b\xff\n", b"")
    assert run("cat") == (FINE, b"", b"")


def test_no_such_program():
    for argv, error in ((("/no/such",), "ENOENT"), (("no such",), "ENOENT"), (("/etc/passwd",), "EACCES"),
                        (("/",), "EACCES")):
        end, out, err = run(*argv)
        assert end["error"] == error and "run the program" in end["message"] and not out + err, end


def test_odd_argv():
    argv = [b"\xff\xfe", b"", b"a\nb", b'"\\']
    assert run("printf", "%s|", *argv)[1] == b"\xff\xfe||a\nb|\"\\|"
    end, _, _ = run(b"/no/\xff\"\\\n")
    assert end["error"] == "ENOENT" and "/no/%FF%22%5C%0A" in end["message"], end


def test_folder_and_environment():
    with tempfile.TemporaryDirectory() as folder:
        end, out, _ = run("/bin/sh", "-c", "pwd; env", options=("--cwd", folder, "--env", "A=b c", "--env", "E="),
                          env={"OLD": "1", "A": "x"})
        lines = out.decode().splitlines()
        assert end == FINE and lines[0] == folder
        assert {"A=b c", "E=", "OLD=1"} <= set(lines) and "A=x" not in lines, lines
        assert any(line.startswith("PATH=") for line in lines)
    end, _, _ = run("true", options=("--cwd", "/no/such"))
    assert end["error"] == "ENOENT" and "enter the folder" in end["message"], end


def test_words_that_are_none():
    for words in (["run"], ["run", "--"], ["run", "true"], ["run", "--cwd", "--", "true"], ["run", "--timeout", "0",
                  "--", "true"], ["run", "--timeout", "-1", "--", "true"], ["run", "--tty", "24", "--", "true"],
                  ["run", "--env", "=x", "--", "true"], ["run", "--env", "x", "--", "true"], ["fly"],
                  ["run", "--output-max", "1k", "--", "true"], ["run", "--what", "x", "--", "true"]):
        one = Inside(PROGRAM, *words)
        assert one.finish()[0]["error"] == "EINVAL", words


def test_megabytes_both_ways():
    data = os.urandom(8 << 20)
    one = start("cat")
    thread = threading.Thread(target=one.send_all, args=(data,))
    thread.start()
    end, out, _ = one.finish()
    thread.join()
    assert end == FINE and hashlib.sha256(out).digest() == hashlib.sha256(data).digest()


def test_output_waits_for_its_reader():
    """Nobody reads: the program is held, and its count stays where pipes and buffers are full."""
    with tempfile.TemporaryDirectory() as folder:
        mark = os.path.join(folder, "done")
        script = f"head -c 4194304 /dev/zero; echo x > {mark}"
        one = start("sh", "-c", script)
        first = one.next()
        assert first[0] == inside.STDOUT and not os.path.exists(mark)
        # Another run takes its whole course meanwhile.
        assert run("sh", "-c", "head -c 1048576 /dev/zero | wc -c")[1].strip() == b"1048576"
        assert not os.path.exists(mark), "4 MiB went where nobody read"
        one.send(inside.STDIN_END)
        end, out, _ = one.finish()
        assert end == FINE and len(first[1]) + len(out) == 4194304 and os.path.exists(mark)


def test_input_waits_for_the_program():
    """A program that reads nothing takes no more than pipes and one buffer hold."""
    one = start("sleep", "1000")
    os.set_blocking(one.process.stdin.fileno(), False)
    sent, chunk = 0, inside.frame(inside.STDIN, bytes(65536))
    while select.select([], [one.process.stdin], [], 0.5)[1] and sent < 16 << 20:
        sent += one.process.stdin.write(chunk[sent % len(chunk):]) or 0
    assert sent < 1 << 20, sent
    one.close()


def test_both_outputs_flow():
    """A flood on one does not keep the other waiting."""
    one = start("sh", "-c", "cat /dev/zero & echo here >&2; wait")
    one.until(b"here", inside.STDERR)
    one.send(inside.SIGNAL, bytes([signal.SIGKILL]))
    end, _, _ = one.finish()
    assert end["signal"] == signal.SIGKILL, end


def test_signal_reaches_the_tree():
    script = "trap 'echo parent; wait; exit 3' USR1; sh -c 'trap \"echo child; exit 0\" USR1; echo ready; while :; do sleep 0.05; done' & wait"
    one = start("sh", "-c", script)
    one.until(b"ready")
    one.send(inside.SIGNAL, bytes([signal.SIGUSR1]))
    end, out, _ = one.finish()
    assert end["code"] == 3 and b"parent" in out and b"child" in out, (end, out)


def test_interrupt():
    one = start("sh", "-c", "trap 'exit 9' INT; echo ready; while :; do sleep 0.05; done")
    one.until(b"ready")
    assert one.send(inside.SIGNAL, b"\x02").finish()[0]["code"] == 9


TREE = """
import os, sys, time
def told(): os.write(1, b"%d\\n" % os.getpid())
told()
if not os.fork():
    os.setsid(); told()
    if not os.fork():
        os.setsid(); told()
        if not os.fork():
            import signal
            for n in range(1, 32):
                if n not in (signal.SIGKILL, signal.SIGSTOP): signal.signal(n, signal.SIG_IGN)
            os.closerange(3, 100); told(); os.close(1); os.close(2); time.sleep(1000)
        os._exit(0)
    time.sleep(1000)
time.sleep(1000)
"""


def tree(*options):
    """A run whose grandchildren have left their session, and all pids."""
    one = start(sys.executable, "-c", TREE, options=options)
    lines = b""
    while lines.count(b"\n") < 4:
        kind, data = one.next()
        if kind == inside.END:
            one.close()
            raise ValueError("it ended before")
        lines += data
    return one, [int(pid) for pid in lines.split()]


def test_time_out_ends_the_tree():
    """Longer on a machine where all four do not even start in time."""
    for milliseconds in (1500, 6000, 24000):
        try:
            one, pids = tree("--timeout", str(milliseconds))
            break
        except ValueError:
            continue
    end, _, _ = one.finish()
    assert end == {"code": 137, "signal": 9, "timed_out": True, "truncated": False}, end
    assert not any(alive(pid) for pid in pids)


def test_kill_ends_the_tree():
    one, pids = tree()
    end, _, _ = one.send(inside.SIGNAL, b"\x09").finish()
    assert end["signal"] == 9 and not end["timed_out"] and not any(alive(pid) for pid in pids)


def test_gate_gone_ends_the_tree():
    for sent in (b"", inside.frame(inside.STDIN_END), inside.frame(inside.STDIN, b"x" * 60000) * 8):
        one, pids = tree()
        os.set_blocking(one.process.stdin.fileno(), False)
        one.process.stdin.write(sent)
        one.process.stdin.close()
        assert one.process.wait(inside.PATIENCE) == 1
        one.process.stdout.close()
        assert not any(alive(pid) for pid in pids)


def test_reader_gone_ends_the_tree():
    one, pids = tree()
    one.process.stdout.close()
    assert one.process.wait(inside.PATIENCE) == 1
    one.process.stdin.close()
    assert not any(alive(pid) for pid in pids)


def test_fork_bomb_ends():
    """What forks as fast as it can is ended all the same."""
    script = "import os,time\nfor i in range(6): os.fork()\nos.write(1, b'x')\nwhile 1:\n  if not os.fork(): os.setsid()\n  else: os._exit(0)\n"
    one = start(sys.executable, "-c", script)
    one.until(b"x")
    end, _, _ = one.send(inside.SIGNAL, b"\x09").finish()
    assert "error" not in end, end


def test_background_goes_on():
    one = start("sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!")
    end, out, _ = one.finish()
    assert end == FINE and alive(int(out))
    os.kill(int(out), signal.SIGKILL)


def test_background_that_holds_the_output():
    """Its end does not wait for who inherited its output; what it wrote itself is all there."""
    one = start("sh", "-c", "sleep 1000 & head -c 50000 /dev/zero; echo $!")
    end, out, _ = one.finish()
    assert end == FINE and len(out) > 50000
    os.kill(int(out[50000:]), signal.SIGKILL)


def test_output_has_an_end():
    end, out, err = run("sh", "-c", "printf 12345678; printf abcdefgh >&2; exit 5", options=("--output-max", "10"))
    assert end == {**FINE, "code": 5, "truncated": True} and len(out) + len(err) == 10, (end, out, err)
    end, out, _ = run("sh", "-c", "head -c 5000000 /dev/zero; exit 6", options=("--output-max", "100000"))
    assert end == {**FINE, "code": 6, "truncated": True} and len(out) == 100000
    assert run("printf", "12345", options=("--output-max", "5")) == (FINE, b"12345", b"")
    assert run("printf", "1", options=("--output-max", "0")) == ({**FINE, "truncated": True}, b"", b"")


def test_frames_that_are_none():
    for sent in (b"\x04" + bytes(4), b"\x00\x00\x01\x00\x01", b"\x10\x00\x00\x00\x00", b"\xff" * 5,
                 inside.frame(inside.SIGNAL, b"\0"), inside.frame(inside.SIGNAL, b"\xc8"),
                 inside.frame(inside.SIGNAL, b""), inside.frame(inside.SIGNAL, b"\x01\x01"),
                 inside.frame(inside.RESIZE, bytes(4)), inside.frame(inside.STDIN_END, b"x"),
                 inside.frame(inside.STDIN_END) + inside.frame(inside.STDIN, b"x")):
        one = start("sh", "-c", "echo $$; exec sleep 1000")
        pid = int(one.until(b"\n"))
        one.process.stdin.write(sent)  # it lives until then
        assert one.finish()[0]["error"] == "EPROTO", sent
        assert not alive(pid)


def test_frames_in_pieces():
    one = start("cat")
    for octet in inside.frame(inside.STDIN, b"ab") + inside.frame(inside.STDIN) + inside.frame(inside.STDIN, b"c") + inside.frame(inside.STDIN_END):
        one.process.stdin.write(bytes([octet]))
    assert one.finish() == (FINE, b"abc", b"")


def test_input_that_nobody_reads():
    """A program that closes its input ends as it would; the rest is thrown away."""
    one = start("sh", "-c", "exec <&-; echo closed; while ! test -e $0; do sleep 0.05; done; exit 4", MARK)
    one.until(b"closed")
    one.send_all(bytes(1 << 20))
    Path(MARK).touch()
    assert one.finish()[0] == {**FINE, "code": 4}


def test_terminal():
    one = start("sh", "-c", "test -t 0 && test -t 1 && test -t 2 && stty size && echo up && cat && echo over",
                options=("--tty", "31x97"))
    assert b"31 97" in one.until(b"up")
    one.send(inside.STDIN, b"typed\n").until(b"typed\r\ntyped")
    end, out, err = one.send(inside.STDIN_END).finish()
    assert end == FINE and b"over" in out and err == b"", (end, out)


def test_terminal_resize():
    one = start("sh", "-c", "trap 'stty size; exit 0' WINCH; echo up; while :; do sleep 0.05; done",
                options=("--tty", "24x80"))
    one.until(b"up")
    one.send(inside.RESIZE, struct.pack(">HH", 50, 132))
    assert b"50 132" in one.finish()[1]


def test_terminal_interrupt():
    one = start("sh", "-c", "trap 'echo caught; exit 8' INT; echo up; while :; do sleep 0.05; done",
                options=("--tty", "24x80"))
    one.until(b"up")
    end, out, _ = one.send(inside.STDIN, b"\x03").finish()
    assert end["code"] == 8 and b"caught" in out


def test_terminal_megabytes():
    end, out, _ = run("sh", "-c", "stty raw; head -c 300000 /dev/zero; echo last", options=("--tty", "24x80"))
    assert end == FINE and out.count(b"\0") == 300000 and out.rstrip().endswith(b"last"), len(out)


def test_nobody_looks_into_it():
    """The program of a caller runs under the same uid and does not read the memory of ours."""
    if os.getuid() == 0:  # whose capabilities open it
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            copy = shutil.copy(PROGRAM, folder)
            one = Inside(copy, "run", "--", "sh", "-c", "cat /proc/$PPID/maps; ls /proc/$PPID/fd/", user=65534,
                         group=65534, extra_groups=[])
            end, out, err = one.send(inside.STDIN_END).finish()
    else:
        end, out, err = run("sh", "-c", "cat /proc/$PPID/maps; ls /proc/$PPID/fd/")
    assert end["code"] != 0 and out == b"" and err.count(b"ermission denied") == 2, (end, out, err)


def test_idle():
    """It reaps who has ended, and ends when it is told."""
    process = subprocess.Popen(["sh", "-c", 'sleep 0 & exec "$0" idle', PROGRAM])
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    until = time.monotonic() + inside.PATIENCE
    while "inside" not in Path(f"/proc/{process.pid}/comm").read_text() or children.read_text():
        assert time.monotonic() < until, "a zombie is left"
        time.sleep(0.01)
    process.terminate()
    # Before it listens the signal ends it, too.
    assert process.wait(inside.PATIENCE) in (0, -signal.SIGTERM)


def main():
    bad = 0
    chosen = sys.argv[2:]
    tests = [(name, test) for name, test in globals().items()
             if name.startswith("test_") and (not chosen or name in chosen)]
    for name, test in tests:
        try:
            test()
        except Exception as why:  # one that fails keeps no other from running
            traceback.print_exc()
            print(f"FAIL {name}: {why!r}", flush=True)
            bad += 1
    print(f"{len(tests) - bad} passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
