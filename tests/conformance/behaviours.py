"""What a sandbox does, whatever it runs on.  Each test gets a case with a sandbox that others use as well."""

import concurrent.futures
import hashlib
import io
import os
import socket
import subprocess
import tarfile
import threading
import urllib.parse

from api import PATIENCE, octets, read_chunks, read_head, rows_of
from backends import LEVELS, SECRET
from kit import proc


def equal(want, have):
    assert want == have, f"{want!r} is wanted, and it is {have!r}"


def ended(done):
    return done["exit_code"], done["signal"], done["timed_out"]


# --- commands ---

def test_exit_codes(case):
    for code in (0, 255) if case.slow else (0, 1, 42, 127, 255):
        equal((code, None, False), ended(case.box.sh(f"exit {code}")))


def test_death_by_signal(case):
    equal((137, 9, False), ended(case.box.sh("kill -9 $$")))
    equal((143, 15, False), ended(case.box.sh("kill -15 $$")))


def test_output_apart(case):
    done = case.box.sh("printf out; printf err >&2")
    equal((b"out", b"err"), (done["stdout"], done["stderr"]))


def test_no_such_program(case):
    for argv in (["/no/such"], ["nothing-of-that-name"], ["/etc"]):
        answer = case.api.ask("POST", case.box.path + "/exec", {"argv": argv})
        equal((422, "exec_failed"), (answer.status, answer.code))


def test_words_arrive_as_they_are(case):
    words = ["", "a b", "$HOME", "*", "'\"\\", "ünï", "line\nfeed", "-n", "--"]
    done = case.box.sh('for w; do printf "%s|" "$w"; done', *words)
    equal("|".join(words).encode() + b"|", done["stdout"])


def test_folder_and_environment(case):
    done = case.box.sh('pwd; echo "$A"', cwd="/tmp", env={"A": "b c"})
    equal(b"/tmp\nb c\n", done["stdout"])


def test_stdin_to_its_end(case):
    equal(b"in\n", case.box.run("cat", stdin="in\n")["stdout"])
    equal(b"", case.box.run("cat")["stdout"])


def feed(case, path, data):
    for at in range(0, len(data), 1 << 20):
        case.api.ask("POST", path + "/stdin", data[at:at + (1 << 20)]).want(204)
    case.api.ask("POST", path + "/stdin?eof=true").want(204)


def test_megabytes_both_ways(case):
    """Binary, and with both directions at once."""
    data, got, feeder = os.urandom(3 << 20), hashlib.sha256(), None
    for row in case.box.rows("cat", stdin_stream=True):
        if row["type"] == "started":
            feeder = threading.Thread(target=feed, args=(case, f"{case.box.path}/exec/{row['id']}", data))
            feeder.start()
        elif row["type"] == "stdout":
            got.update(octets(row, "data", "encoding"))
    feeder.join(PATIENCE)
    equal(("exit", 0), (row["type"], row["exit_code"]))
    equal(hashlib.sha256(data).hexdigest(), got.hexdigest())


def test_output_comes_while_it_runs(case):
    rows = case.box.rows("sh", "-c", "echo first; read go; echo $go", stdin_stream=True)
    path, seen = None, []
    for row in rows:
        if row["type"] == "started":
            path = f"{case.box.path}/exec/{row['id']}"
        elif row["type"] == "stdout":
            seen.append(octets(row, "data", "encoding"))
            if b"".join(seen) == b"first\n":
                case.api.ask("POST", path + "/stdin?eof=true", b"go\n").want(204)
    equal(b"first\ngo\n", b"".join(seen))


def running(case, mark):
    """Pids in sight of the sandbox whose command line holds the mark (which no command of ours does)."""
    text = case.box.sh("for f in /proc/[0-9]*/cmdline; do echo; echo $f; cat $f 2>/dev/null; done | tr '\\0' ' '")["stdout"]
    return text.count(mark.encode())


def mark_of(case, number):
    """An argument of sleep that nobody else has: seconds that differ by case."""
    return str(100000 + 1000 * (sum(map(ord, case.name)) % 800) + number)


def test_time_out_ends_grandchildren(case):
    mark = mark_of(case, 1)
    done = case.box.sh(f"(setsid sleep {mark} &) ; (setsid sh -c 'sleep {mark}; :' &) ; sleep {mark}", timeout="1500ms")
    equal((True, 9), (done["timed_out"], done["signal"]))
    equal(0, running(case, mark))


def test_kill_ends_grandchildren(case):
    mark = mark_of(case, 2)
    path = case.box.begin("sh", "-c", f"(setsid sleep {mark} &); echo begun; sleep {mark}")
    with case.api.connect("GET", path + "/output") as file:
        read_head(file)
        for row in rows_of(read_chunks(file)):
            if row["type"] == "stdout":
                case.api.ask("POST", path + "/kill", {"signal": "KILL"}).want(204)
    equal(("exit", 9), (row["type"], row["signal"]))
    equal(0, running(case, mark))


def test_a_signal_arrives(case):
    path = case.box.begin("sh", "-c", "trap 'echo caught; exit 7' TERM; echo begun; while :; do sleep 0.1; done")
    with case.api.connect("GET", path + "/output") as file:
        read_head(file)
        said = b""
        for row in rows_of(read_chunks(file)):
            if row["type"] == "stdout":
                said += octets(row, "data", "encoding")
                if said == b"begun\n":
                    case.api.ask("POST", path + "/kill", {"signal": "TERM"}).want(204)
    equal((7, b"begun\ncaught\n"), (row["exit_code"], said))


def test_who_hangs_up_ends_it(case):
    mark = mark_of(case, 3)
    rows = case.box.rows("sh", "-c", f"echo begun; sleep {mark}")
    while next(rows)["type"] != "stdout":
        pass
    rows.close()
    proc.until("the command ends", PATIENCE, lambda: running(case, mark) == 0, 0.1)


def test_terminal(case):
    """Where the sandbox has terminals; else it is told that there is none."""
    answer = case.api.ask("POST", case.box.path + "/exec", {"argv": ["sh", "-c", "test -t 0 && stty size"],
                                                            "tty": {"rows": 31, "cols": 97}})
    assert answer.status == 200, answer.body
    equal("31 97", answer.json["stdout"].strip())


def test_many_at_once(case):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda n: case.box.sh(f"echo {n}; cat", stdin=f"in {n}")["stdout"], range(8)))
    equal([f"{n}\nin {n}".encode() for n in range(8)], said)


# --- files ---

ODD = ["a b", "ünïcode ☃", "-dash", "q?u#e&r=y;", "'\"", "n" * 255, "...", ".hidden", "star*", "$HOME", "plus+"]


def test_files_with_odd_names(case):
    folder, odd = "/work/odd", ODD[::4] if case.slow else ODD
    for name in odd:
        path = case.box.file(f"{folder}/{urllib.parse.quote(name, safe='')}")
        case.api.ask("PUT", path, name.encode()).want(204)
        equal(name.encode(), case.api.ask("GET", path).want(200).body)
    listed = case.api.ask("GET", case.box.file(folder + "/")).want(200).json
    equal(sorted(odd), sorted(one["name"] for one in listed["entries"]))
    assert not listed["truncated"]
    equal(sorted(odd), sorted(case.box.sh('cd "$1" && for n in * .[!.]* ...; do test -e "$n" && echo "$n"; done', folder)["stdout"].decode()
                              .splitlines()))
    for name in odd:
        case.api.ask("DELETE", case.box.file(f"{folder}/{urllib.parse.quote(name, safe='')}")).want(204)
    equal([], case.api.ask("GET", case.box.file(folder + "/")).json["entries"])


def test_a_file_is_what_was_sent(case):
    data = os.urandom(2 << 20)
    path = case.box.file("/work/made/for/it/data.bin")
    case.api.ask("PUT", path + "?mode=0750", data).want(204)
    equal(data, case.api.ask("GET", path).want(200).body)
    entry, = case.api.ask("GET", case.box.file("/work/made/for/it/")).json["entries"]
    equal(("data.bin", "file", len(data), "0750"), tuple(entry[key] for key in ("name", "type", "size", "mode")))
    equal(hashlib.sha256(data).hexdigest().encode(), case.box.run("sha256sum", "/work/made/for/it/data.bin")["stdout"].split()[0])
    case.api.ask("DELETE", case.box.file("/work/made") + "?recursive=true").want(204)
    answer = case.api.ask("GET", path)
    equal((404, "file_not_found"), (answer.status, answer.code))


def test_a_tar_goes_in_and_out(case):
    """With names that no URL of the API can say."""
    names = {b"plain": b"1", b"\xff\xfe": b"2", b"line\nfeed": b"3", b"d/" + b"x" * 200: b"4", b"100%": b"5"}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", errors="surrogateescape") as tar:
        for name, content in names.items():
            info = tarfile.TarInfo(os.fsdecode(name))
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        info = tarfile.TarInfo("link")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(info)
    case.box.run("mkdir", "-p", "/work/tar")
    case.api.ask("PUT", case.box.path + "/tar?path=/work/tar", out.getvalue()).want(204)
    back = case.api.ask("GET", case.box.path + "/tar?path=/work/tar").want(200)
    with tarfile.open(fileobj=io.BytesIO(back.body), errors="surrogateescape") as tar:
        found = {os.fsencode(one.name): tar.extractfile(one).read() for one in tar if one.isfile()}
        equal("/etc/passwd", tar.getmember("link").linkname)
    equal(names, found)


# --- what must not be reached ---

def test_no_way_out_by_paths(case):
    """Dot-dot, absolute, encoded twice, by links of each kind: nothing of the host comes out, or gets in."""
    secret = str(case.place.secret)
    case.box.sh('rm -rf /work/f; mkdir /work/f; cd /work/f; ln -s "$1" link; ln -s / root; ln -s ../../../../../.. up;'
                'ln -s /proc/self/root magic; ln -s /proc/1/root one; ln -s /proc/self/fd/0 fd; ln "$1" hard 2>/dev/null', secret)
    tries = [f"/work/f/../../../../../../..{secret}", f"/work/f/%2e%2e/%2e%2e/%2e%2e{secret}",
             f"/work/f/..%2f..%2f..{secret}", f"/work/f/%252e%252e/{secret}", f"//{secret}", secret, "/work/f/link",
             f"/work/f/root{secret}", f"/work/f/up{secret}", f"/work/f/magic{secret}", f"/work/f/one{secret}", "/work/f/fd",
             "/work/f/hard", f"/proc/self/root{secret}", f"/proc/1/root{secret}", f"/proc/1/cwd{secret}"]
    for path in tries[::3] if case.slow else tries:
        url = case.box.file(path) if path[1] != "/" else f"{case.box.path}/files/{path}"
        answer = case.api.ask("GET", url)
        assert answer.status >= 400 and SECRET.encode() not in answer.body, (path, answer.status, answer.body[:200])
        answer = case.api.ask("PUT", url, b"changed")
        equal(SECRET, case.place.secret.read_text())
        case.api.ask("DELETE", url)
        equal(SECRET, case.place.secret.read_text())


def test_no_files_of_the_host(case):
    done = case.box.sh('cat "$1" /proc/1/root"$1" /proc/self/root"$1" 2>/dev/null; ls "${1%/*}"', str(case.place.secret))
    assert SECRET.encode() not in done["stdout"] and b"secret" not in done["stdout"], done


def test_the_environment_is_clean(case):
    said = case.box.run("env", env={"MINE": "1"})["stdout"].decode()
    assert SECRET not in said, said
    names = {line.partition("=")[0] for line in said.splitlines()}
    assert "MINE" in names and names <= {"MINE", "PATH", "HOME", "HOSTNAME", "PWD", "SHLVL", "TERM", "container", "LANG"}, names


def test_no_network(case):
    with socket.socket() as server:
        server.bind(("0.0.0.0", 0))
        server.listen()
        port = str(server.getsockname()[1])
        addresses = ["127.0.0.1", *host_addresses()]
        done = case.box.sh('p=$1; shift; for a; do nc -w 2 "$a" "$p" </dev/null && echo "reached $a"; done', port, *addresses)
        server.settimeout(0)
        try:
            server.accept()[0].close()
            reached = True
        except BlockingIOError:
            reached = False
    assert not reached and b"reached" not in done["stdout"], done


def host_addresses():
    return [line.split()[3].partition("/")[0] for line in
            proc.output(["ip", "-o", "-4", "address"]).splitlines() if " lo " not in line][:2]


def test_no_other_sandbox_is_seen(case):
    other = case.api.make()
    mark = mark_of(case, 4)
    try:
        other.begin("sleep", mark)
        other.sh("echo theirs > /work/theirs; echo theirs > /tmp/theirs")
        equal(0, running(case, mark))
        equal(b"", case.box.sh("cat /work/theirs /tmp/theirs 2>/dev/null")["stdout"])
    finally:
        other.end().want(204)


def test_root_is_nobodys(case):
    done = case.box.sh('id -u; touch /made /etc/made /usr/made /bin/made 2>/dev/null; ls -d /made /etc/made /usr/made /bin/made')
    assert done["stdout"].split()[0] != b"0" and b"made" not in done["stdout"], done


# --- limits ---

def test_the_disk_has_an_end(case):
    box = case.api.make(limits={"disk": "4MiB"})
    try:
        done = box.sh("head -c 20000000 /dev/zero > /work/big; s=$?; wc -c < /work/big; exit $s")
        assert done["exit_code"] != 0 and int(done["stdout"]) <= 5 << 20, done
        answer = case.api.ask("PUT", box.file("/work/bigger"), bytes(8 << 20))
        equal((413, "too_large"), (answer.status, answer.code))
        equal(1, box.sh("ls /work/bigger 2>/dev/null")["exit_code"] and 1)
    finally:
        box.end().want(204)


def test_output_has_an_end(case):
    done = case.box.sh("head -c 3000000 /dev/zero; exit 5", output="64KiB")
    equal((5, True, 65536), (done["exit_code"], done["truncated"], len(done["stdout"])))


def test_processes_have_an_end(case):
    if not case.cgroups:
        return "gVisor is run without cgroups here"
    box = case.api.make(limits={"pids": 24})
    try:
        done = box.sh("i=0; while [ $i -lt 60 ]; do sleep 30 & i=$((i+1)); done; echo all", timeout="20s")
        assert b"all" not in done["stdout"] or b"fork" in done["stderr"], done
    finally:
        box.end().want(204)


def test_memory_has_an_end(case):
    if not case.cgroups:
        return "gVisor is run without cgroups here"
    box = case.api.make(limits={"memory": "48MiB", "disk": "4MiB"})
    try:
        done = box.sh("head -c 200000000 /dev/zero | tail -c 190000000 | wc -c", timeout="30s")
        assert done["stdout"].strip() != b"190000000", done
    finally:
        box.end().want(204)


def test_processors_have_an_end(case):
    if not case.cgroups:
        return "gVisor is run without cgroups here"
    box = case.api.make(limits={"cpus": 0.2})
    try:
        # Its own account of the time that it had in two seconds.
        done = box.sh("(while :; do :; done) & sleep 2; kill $!; wait $! 2>/dev/null; times", timeout="50s")
        text = done["stdout"].decode().split()
        used = sum(float(t.split("m")[0]) * 60 + float(t.split("m")[1].rstrip("s")) for t in text[2:4])
        assert used < 1.2, text
    finally:
        box.end().want(204)


# --- lives ---

def test_destroyed_is_gone(case):
    mark = mark_of(case, 5)
    box = case.api.make()
    box.begin("sh", "-c", f"(setsid sleep {mark} &); sleep {mark}")
    proc.until("it runs", PATIENCE, lambda: box.sh("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")["stdout"].count(mark.encode()), 0.05)
    box.end().want(204)
    for method, path, body in (("GET", box.path, None), ("POST", box.path + "/exec", {"argv": ["true"]}),
                               ("GET", box.file("/work/"), None), ("DELETE", box.path, None)):
        answer = case.api.ask(method, path, body)
        equal((404, "sandbox_not_found"), (answer.status, answer.code))
    assert box.id not in [one["id"] for one in case.api.ask("GET", "/v1/sandboxes").json["sandboxes"]]
    found = subprocess.run(["grep", "-al", mark, "/dev/null", *(f"/proc/{pid}/cmdline" for pid in os.listdir("/proc")
                                                               if pid.isdigit())], capture_output=True, text=True, check=False)
    assert not [line for line in found.stdout.splitlines() if line.startswith("/proc/")], found.stdout
    assert not [one for one in case.place.left_behind() if box.id in one]


def test_lifetime(case):
    box = case.api.make(lifetime="2s")
    proc.until("it ends by itself", PATIENCE, lambda: case.api.ask("GET", box.path).status == 404, 0.2)


def test_what_it_says_of_itself(case):
    """The level is what the case must reach, and the answer names the backend."""
    shown = case.api.ask("GET", case.box.path).want(200).json
    equal((case.level, case.engine, "running"), (shown["isolation"]["level"], shown["backend"], shown["state"]))


def test_below_the_minimum_it_is_refused(case):
    for level in LEVELS[LEVELS.index(case.level) + 1:]:
        answer = case.api.ask("POST", "/v1/sandboxes", {"profile": f"{case.name}-{level}"})
        if case.kind == "docker" and level == "kernel":
            # The engine has gVisor as well: it is taken, and said.
            if answer.status == 201:
                equal("kernel", answer.json["isolation"]["level"])
                case.api.ask("DELETE", f"/v1/sandboxes/{answer.json['id']}").want(204)
                continue
        # Of one backend alone the answer is what its worker says; of more, what each lacks.
        equal(403, answer.status)
        assert answer.code in ("no_backend", "runtime", "isolation"), answer.body
        for why in answer.json["error"].get("backends", []):
            assert why["backend"] == case.engine and why["why"], why
