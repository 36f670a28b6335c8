"""The log of the soak, read as it grows: every decision came to one end, nobody was allowed to change
what is not his own, and what happened in the engine was held against that."""

from kit import gate

SUMS = {"seen": "seen", "decided": "judged", "by_engine": "by_engine", "unexplained": "unexplained"}
HARMLESS_GAPS = {"history", "list"}  # the engine has forgotten, or was away when it was asked


class Story:
    def __init__(self, folder, owners):
        self.folder, self.owners = folder, owners
        self.offsets, self.open = {}, {}
        self.decisions, self.observed = 0, []
        self.sums = dict.fromkeys(SUMS.values(), 0)
        self.gaps, self.problems = {}, []

    def read(self):
        """What came since; True while some decision has no outcome."""
        for path in sorted(self.folder.glob("*.log")):
            while True:
                found, end = gate.read_records(path, self.offsets.get(path, 0))
                self.offsets[path] = end
                for record in found:
                    self.take(record)
                if not found:
                    break
        return bool(self.open)

    def take(self, record):
        kind = record["type"]
        if kind in ("outcome", "outcome_unknown"):
            if self.open.pop(record["of"], None) is None:
                self.problems.append(f"an outcome ({kind}) of {record['of']} too many")
        elif kind == "decision" and record["verdict"] == "allow":
            self.decisions += 1
            self.open[record["id"]] = record["op"]
            self.look_whose(record)
        elif kind == "observed":
            self.observed.append(record)
        elif kind == "observed_sum":
            for name, ours in SUMS.items():
                self.sums[ours] += record.get(name, 0)
        elif kind == "observed_gap":
            self.gaps[record["cause"]] = self.gaps.get(record["cause"], 0) + 1
            if record["cause"] not in HARMLESS_GAPS:
                self.problems.append(f"a gap: {record}")

    def look_whose(self, record):
        owner = self.owners.get(record["res"][0].get("id")) if record.get("res") else None
        if owner is not None and owner != record["actor"]["owner"] and record["op"] != "container.logs":
            self.problems.append(f"{record['actor']['owner']} was allowed {record['op']} of what is {owner}'s")

    def judge(self, intruders):
        """What is wrong in the end."""
        found = list(self.problems)
        found += [f"decision {ident} ({op}) has no outcome" for ident, op in self.open.items()]
        names = [record["res"][0].get("name", "") if record.get("res") else "" for record in self.observed]
        for name in intruders:
            if names.count(name) != 1:
                found.append(f"{name}, made past the gate, is on record {names.count(name)} times")
        found += [f"unexplained: {record}" for record, name in zip(self.observed, names)
                  if name not in intruders]
        return found
