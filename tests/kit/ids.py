"""tests/cases/ids and reasons: which suite proves which case, and gives which reason code.

Each suite holds what ran against the lists.  A line of a list is `ID WHERE...`, and what it is about behind a `#`.  WHERE is

    SUITE or SUITE:N   at least one (N) of the suite's tests has the id in its name
    FILE.c:TEST        a unit test; that meson runs it is looked up in its file
    later              nothing yet; the text behind the `#` says why

A suite's tests are called ID or ID.N where they are cases, `case=ID` at the client of a scene,
`covers ID...` in a scene, @covers("ID") at a function.
"""

import collections
import re
from pathlib import Path

from kit.proc import ROOT, Trouble
from kit.records import reasons

LIST = ROOT / "tests/cases/ids"
REASONS = ROOT / "tests/cases/reasons"
SOURCES = ("backends", "rules", "proxy", "gate")
SUITES = ("cases", "scene", "e2e", "clients")
SUITE = re.compile(rf"({'|'.join(SUITES)})(?::(\d+))?")
UNIT = re.compile(r"([\w/.-]+\.c):(\w+)")


def covers(*ids):
    """Decorates a test function with the ids that it proves."""
    def mark(function):
        function.covers = ids
        return function
    return mark


def named(name, ids):
    """The test's name with its ids, as it is printed."""
    return f"{name} [{', '.join(sorted(set(ids)))}]" if ids else name


def read(path=LIST):
    """{id: ([where], text)}"""
    found = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        line, _, text = line.partition("#")
        words = line.split()
        if not words:
            continue
        if len(words) < 2 or words[0] in found:
            raise Trouble(f"{path}: cannot read, or again: {line}")
        found[words[0]] = (words[1:], text.strip())
    return found


def missing(suite, ran, path=LIST):
    """What the list wants of a suite that ran, and did not; ran: the ids of its tests, one each."""
    count = collections.Counter(re.sub(r"\.\d+$", "", one) for one in ran)
    problems = []
    for ident, (places, _) in read(path).items():
        for where in places:
            match = SUITE.fullmatch(where)
            if match and match[1] == suite and count[ident] < int(match[2] or 1):
                problems.append(f"{ident}: {count[ident]} of {match[2] or 1} tests")
    return problems


def complaint(suite, ran, path=LIST):
    """The same as one text, or None."""
    problems = missing(suite, ran, path)
    return f"{path.relative_to(ROOT)} wants of {suite}: {'; '.join(problems)}" if problems else None


def want(suite, ran):
    """Raises if something of the list did not run; for suites whose tests are functions."""
    if problem := complaint(suite, ran):
        raise Trouble(problem)


def check_reasons():
    """Every reason code has its line, and what is said to come later comes from nowhere yet."""
    listed, known = read(REASONS), reasons()
    if set(listed) != set(known):
        return f"no test: {sorted(set(known) - set(listed))}; no such code: {sorted(set(listed) - set(known))}"
    for code, (places, _) in listed.items():
        for unit in filter(None, map(UNIT.fullmatch, places)):
            text = (ROOT / "tests/unit" / unit[1]).read_text(encoding="utf-8")
            if not re.search(rf'REASON_{code}\b|[" ]{code}[" ]', text):
                return f"{code}: {unit[1]} does not name it"
        if places == ["later"]:
            for path in (path for folder in SOURCES for path in (ROOT / folder).rglob("*")):
                if path.suffix in (".c", ".lua") and re.search(
                        rf'REASON_{code}\b|(refuse|deny)\("{code}"', path.read_text(encoding="utf-8")):
                    return f"{code}: {path.relative_to(ROOT)} gives it, so it needs a test"
    return check_list(REASONS)


def check_list(path=LIST):
    """Every line can be held against something; what is wrong, or None."""
    for ident, (places, text) in read(path).items():
        for where in places:
            unit = UNIT.fullmatch(where)
            if unit:
                file = ROOT / "tests/unit" / unit[1]
                if not file.exists() or f"cmocka_unit_test({unit[2]})" not in file.read_text(encoding="utf-8"):
                    return f"{ident}: there is no test {where}"
            elif where == "later":
                if not text or places != ["later"]:
                    return f"{ident}: say why it comes later"
            elif not SUITE.fullmatch(where):
                return f"{ident}: {where} is no suite"
    return None


def tests_of(module):
    """What a module of tests has: (name, function), with the ids that each covers."""
    return [(named(name.removeprefix("test_").replace("_", " "), getattr(function, "covers", ())), function)
            for name, function in vars(module).items() if name.startswith("test_")]
