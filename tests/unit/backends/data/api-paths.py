#!/usr/bin/env python3
"""api-paths.py DOCUMENT... > api-paths.tsv - methods and paths of the engine's API documents.

The documents are those of github.com/moby/moby (api/docs/v1.41.yaml, v1.47.yaml, and api/swagger.yaml
at 1.56).  A line is METHOD, PATH with {} for each name, and the versions whose document has it.
"""

import re
import sys
from pathlib import Path


def paths(text):
    """(method, path) of each operation, by the indentation that all documents share."""
    inside, path = False, None
    for line in text.splitlines():
        if re.match(r"\S", line):
            inside = line.startswith("paths:")
        elif inside and (found := re.match(r"  (/\S*):\s*$", line)):
            path = re.sub(r"\{[^}]*\}", "{}", found[1])
        elif inside and (found := re.match(r"    (get|head|post|put|delete):\s*$", line)):
            yield found[1].upper(), path


def main(names):
    versions = {}
    for name in names:
        text = Path(name).read_text()
        version = re.search(r'^basePath: "/v(1\.\d+)"', text, re.M)[1]
        for one in paths(text):
            versions.setdefault(one, []).append(version)
    for (method, path), known in sorted(versions.items(), key=lambda item: item[0][::-1]):
        print(method, path, " ".join(known), sep="\t")


if __name__ == "__main__":
    main(sys.argv[1:])
