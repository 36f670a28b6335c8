"""The adapter's own table of fields: what the generator makes bodies of."""

import re

from kit import proc

TABLE = proc.ROOT / "backends/docker/fields.def"
ROW = re.compile(r"^\s*(FIELD|PART|DENIED|RESOURCES)\(([^)]*)\)")


class Field:
    def __init__(self, name, kind, of=None):
        self.name, self.kind, self.of = name, kind, of


def read(path=TABLE):
    """{schema: [Field]}"""
    schemas, shared, in_macro = {}, [], False
    for line in path.read_text().splitlines():
        if line.startswith("#define RESOURCES"):
            in_macro = True
            continue
        found = ROW.match(line)
        if found:
            words = [word.strip() for word in found[2].split(",")]
            if found[1] == "RESOURCES":
                schemas.setdefault(words[0], []).extend(shared)
            else:
                field = Field(words[1], words[2], words[3] if found[1] == "PART" else None)
                (shared if in_macro else schemas.setdefault(words[0], [])).append(field)
        if in_macro and not line.rstrip().endswith("\\"):
            in_macro = False
    if len(schemas) < 20 or len(schemas["HOST"]) < 60:
        raise proc.Trouble(f"{path} cannot be read as it was")
    return schemas
