"""All suites of Sallyport, one after the other; the last line is the sum.

--quick   what a developer runs before a commit: a few minutes
--long    longer rounds of killing and measuring
SUITE     only these (the builds that they need come along)
"""

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COUNT = re.compile(r"^(\d+) passed, (\d+) failed\s*$", re.M)
MESON = re.compile(r"^(Ok|Expected Fail|Fail|Unexpected Pass|Timeout):\s+(\d+)\s*$", re.M)

GCC, SANITIZED, CLANG, FUZZ = (ROOT / name for name in (
    "build-gcc", "build-sanitized", "build-clang", "build-fuzz"))

# Requests for huge memory must be able to fail, as they do without a sanitizer.
SANITIZERS = {"ASAN_OPTIONS": "allocator_may_return_null=1:abort_on_error=1:detect_leaks=1",
              "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}


LINES_SHOWN = 60  # of a suite that failed; the log has all


def what_failed(text):
    """The tests that failed, with what they said; or the last lines, if none says so."""
    lines, shown, failing = text.strip().splitlines(), [], False
    for line in lines:
        if re.match(r"(FAIL|ok|\d+ passed)\b", line):
            failing = line.startswith("FAIL")
        if failing:
            shown.append(line)
    return (shown[:LINES_SHOWN] if shown else lines[-LINES_SHOWN:])


class Suite:
    """beside: it takes what processor time the suites behind it leave, and is waited for at the
    end."""

    def __init__(self, name, command, seconds, build=None, quick=True, env=None, beside=False):
        self.name, self.command, self.seconds = name, command, seconds
        self.build, self.quick, self.env, self.beside = build, quick, env or {}, beside


def suites(long):
    tests = ROOT / "tests"
    gcc = {"SALLYPORT": str(GCC / "gate/sallyport")}
    sanitized = {"SALLYPORT": str(SANITIZED / "gate/sallyport"), **SANITIZERS}
    meson = ["meson", "test", "--num-processes", "4", "--no-suite", "lint", "--print-errorlogs", "-C"]
    return [
        # First: what it measures depends on the disk, and nothing else runs yet.
        Suite("bench-audit", [tests / "bench/audit", *([] if long else ["--seconds", "1"])], 240, GCC,
              quick=False, env={**gcc, "PRODUCERS": str(GCC / "tests/bench/producers")}),
        Suite("unit", [*meson, GCC], 300, GCC),
        Suite("unit-sanitized", [*meson, SANITIZED, "-t", "3"], 600, SANITIZED),
        # In CI clang compiles everything for the fuzz targets, with the same warnings.
        *([Suite("unit-clang", [*meson, CLANG], 300, CLANG, quick=False)] if long else []),
        Suite("tidy", ["nice", tests / "lint/tidy", *(["--deep"] if long else []), GCC], 1200, GCC,
              quick=False, beside=True),
        Suite("cases", [tests / "cases/run"], 120, GCC, env=gcc),
        Suite("scene", [tests / "scene/run"], 300, GCC, env=gcc),
        Suite("scene-sanitized", [tests / "scene/run"], 600, SANITIZED, quick=False, env=sanitized),
        Suite("scene-unprivileged", [tests / "scene/run", "--unprivileged"], 300, GCC, quick=False,
              env=gcc),
        Suite("bench", [tests / "bench/run", *(["--seconds", "10"] if long else ["--rounds", "2"])], 300, GCC,
              quick=False, env=gcc),
        Suite("bench-fair", [tests / "bench/fair", *([] if long else ["--seconds", "1"])], 120, GCC,
              quick=False, env=gcc),
        Suite("bench-rules", [tests / "bench/rules", *(["--peers"] if long else [])], 400, GCC,
              quick=False, env={"JUDGE": str(GCC / "tests/bench/judge")}),
        Suite("fuzz", ["nice", tests / "fuzz/run", "--seconds", "600" if long else "30", "--jobs",
                       "2"], 5400 if long else 900, FUZZ, quick=False,
              env={"FUZZ_BUILD": str(FUZZ)}, beside=True),
        # Both wait for engines of their own most of the time.
        Suite("clients", [tests / "clients/run"], 700, GCC, quick=False, env=gcc, beside=True),
        Suite("e2e", [tests / "e2e/run"], 700, GCC, quick=False, env=gcc),
        Suite("conformance", [tests / "conformance/run", "--ci", *([] if long else [
            "--case", "docker-runc", "--case", "docker-runsc", "--case", "local-confined", "--case",
            "local-bare"])], 300, GCC, quick=False, env=gcc),
        # Its callers wait most of the time.
        Suite("soak", [tests / "soak/run", "--seconds", "1800" if long else "120", "--every",
                       "5" if long else "1.5"],
              2400 if long else 420, GCC, quick=False, env=gcc, beside=not long),
        Suite("differential", [tests / "differential/run", "--requests",
                               "100000" if long else "10000"], 3600 if long else 420, GCC,
              quick=False, env=gcc),
        Suite("differential-mistakes", [tests / "differential/run", "--self-test"], 240, GCC,
              quick=False, env=gcc),
        Suite("checker", [tests / "checker/run"], 300, GCC, quick=False, env=gcc),
        Suite("ship", [tests / "ship/run"], 120, GCC, quick=False, env=gcc),
        Suite("kill", [tests / "kill/run", "--seconds", "600" if long else "30"],
              900 if long else 180, GCC, quick=False, env=gcc),
        Suite("quickstart", [ROOT / "examples/quickstart", "--check"], 240, quick=False),
    ]


BUILDS = {
    GCC: (["--buildtype=debugoptimized"], {"CC": "gcc"}),
    # Where nothing is measured, half of the time that compiling takes is better spent on tests.
    # With less optimization gcc warns of what it sees no proof against; the build above has none.
    SANITIZED: (["-Doptimization=1", "-Dwerror=false", "-Ddebug=true", "-Dc_args=-g1",
                 "-Db_sanitize=address,undefined", "-Db_lundef=false"], {"CC": "gcc"}),
    CLANG: (["--buildtype=debugoptimized"], {"CC": "clang"}),
    FUZZ: (["-Doptimization=1", "-Ddebug=true", "-Dc_args=-g1", "-Dlibfuzzer=true",
            "-Db_sanitize=address,undefined", "-Db_lundef=false"], {"CC": "clang"}),
}


class Run:
    def __init__(self):
        self.passed = self.failed = 0
        self.besides = []
        self.lock = threading.Lock()
        self.logs = ROOT / "build-logs"
        self.logs.mkdir(exist_ok=True)

    def command(self, name, command, seconds, env=None):
        """Runs it, output into a log; (status, text)."""
        log = self.logs / f"{name}.log"
        with open(log, "wb") as out:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=subprocess.STDOUT, cwd=ROOT, start_new_session=True,
                                       env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1",
                                            **(env or {})})
            try:
                status = process.wait(seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 15)
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, 9)
                    process.wait()
                status = "timeout"
        return status, log.read_text(errors="replace")

    def say(self, name, good, bad, began, text):
        line = (f"{'ok  ' if not bad else 'FAIL'} {name:<20} {good} passed, {bad} failed "
                f"({time.monotonic() - began:.0f} s)")
        if bad:
            line = "\n     ".join([line, *what_failed(text)])
        with self.lock:
            self.passed += good
            self.failed += bad
            print(line, flush=True)

    def build(self, folder):
        """True if it compiles; counts as one test."""
        options, env = BUILDS[folder]
        began, name = time.monotonic(), folder.name
        status, text = 0, ""
        if not (folder / "build.ninja").exists():
            status, text = self.command(f"{name}-setup", ["meson", "setup", folder, ROOT, *options],
                                        120, env)
        if status == 0:
            status, text = self.command(name, ["ninja", "-C", folder], 600, env)
        self.say(name, int(status == 0), int(status != 0), began, text)
        return status == 0

    def lint(self):
        """Each script of tests/lint, and the layout of the C files; each counts as one test."""
        tools = {f"{path.stem} {more[-1] if more else ''}".strip(): [path, ROOT, *more]
                 for path in sorted((ROOT / "tests/lint").glob("*.sh"))
                 for more in ([["gcc"], ["clang"]] if path.name == "headers.sh" else [[]])}
        sources = subprocess.run(["git", "ls-files", "*.c", "*.h"], cwd=ROOT, capture_output=True,
                                 text=True, check=True).stdout.split()
        tools["layout"] = ["clang-format", "--dry-run", "-Werror", *sources]
        began, bad, said = time.monotonic(), 0, []
        for name, command in tools.items():
            status, text = self.command("lint", command, 120)
            if status != 0:
                bad += 1
                said.append(f"{name}:\n{text}")
        self.say("lint", len(tools) - bad, bad, began, "\n".join(said))

    def suite(self, suite):
        """One that runs beside the others is begun; beside() waits for it."""
        if suite.beside:
            self.besides.append(threading.Thread(target=self.run_suite, args=[suite]))
            self.besides[-1].start()
        else:
            self.run_suite(suite)

    def beside(self):
        for thread in self.besides:
            thread.join()

    def run_suite(self, suite):
        began = time.monotonic()
        status, text = self.command(suite.name, suite.command, suite.seconds, suite.env)
        counts = COUNT.findall(text)
        meson = dict(MESON.findall(text))
        if counts:
            good, bad = map(int, counts[-1])
        elif meson:
            good = int(meson.get("Ok", 0)) + int(meson.get("Expected Fail", 0))
            bad = sum(int(meson.get(word, 0)) for word in ("Fail", "Unexpected Pass", "Timeout"))
        else:
            good = bad = 0
        if status != 0 and bad == 0:
            bad = 1  # it failed and did not say how often
        if status == 0 and good == 0 and bad == 0:
            bad, text = 1, f"{text}\nnothing was tested"
        self.say(suite.name, good, bad, began, text)


def main(arguments):
    long, quick = "--long" in arguments, "--quick" in arguments
    named = [word for word in arguments if not word.startswith("--")]
    if set(arguments) - set(named) - {"--long", "--quick"}:
        sys.exit(__doc__)
    every = suites(long)
    names = ["lint", *(suite.name for suite in every)]
    if set(named) - set(names):
        sys.exit(f"no suite {', '.join(set(named) - set(names))}; there are: {', '.join(names)}")
    chosen = [s for s in every if (s.name in named if named else s.quick or not quick)]
    began, run = time.monotonic(), Run()
    built = {folder: run.build(folder) for folder in dict.fromkeys(s.build for s in chosen)
             if folder}
    if not named or "lint" in named:
        run.lint()
    for suite in chosen:
        if suite.build and not built[suite.build]:
            run.say(suite.name, 0, 1, time.monotonic(), f"{suite.build.name} does not compile")
        else:
            run.suite(suite)
    run.beside()
    print(f"in {time.monotonic() - began:.0f} s; logs in {run.logs.name}/")
    print(f"{run.passed} passed, {run.failed} failed", flush=True)
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
