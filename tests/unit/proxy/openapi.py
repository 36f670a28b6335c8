#!/usr/bin/env python3
"""openapi.py ROOT - the document of the sandbox API names each route of the server, each code, and no other."""

import json
import re
import sys
from pathlib import Path

root = Path(sys.argv[1]) / "proxy/sandbox"
document = json.loads((root / "openapi.json").read_text())
bad = []


def same(what, server, said):
    for one in sorted(server - said):
        bad.append(f"{what} {one} is not in openapi.json")
    for one in sorted(said - server):
        bad.append(f"{what} {one} is in openapi.json, and the server does not have it")


rows = re.findall(r'\{"([A-Z]+)", "(/[^"]*)"', (root / "routes.c").read_text())
assert len(rows) > 15, rows
same("route", {(method, path.replace("/*", "/{path}")) for method, path in rows},
     {(method.upper(), path) for path, methods in document["paths"].items() for method in methods})
codes = re.findall(r"^CODE\((\w+), (\d+),", (root / "codes.def").read_text(), re.M)
assert len(codes) > 10, codes
same("code", {f"{name} {status}" for name, status in codes},
     {f"{name} {status}" for name, status in document["x-codes"].items()})

# What it refers to is there, and each parameter of a path is described.
text = json.dumps(document)
for name in set(re.findall(r'"#/components/schemas/(\w+)"', text)) - set(document["components"]["schemas"]):
    bad.append(f"schema {name} is not there")
for path, methods in document["paths"].items():
    for method, operation in methods.items():
        described = {one["name"] for one in operation.get("parameters", []) if one["in"] == "path"}
        if described != set(re.findall(r"\{(\w+)\}", path)):
            bad.append(f"{method} {path} describes {described}")

# Fields of requests are those that the server reads, and no other.
source = (root / "request.c").read_text()
for function, schema in (("request_create", "Create"), ("request_exec", "Exec"), ("read_limits", "Limits")):
    found = re.search(r"%s\(.*?known\[\] = \{(.*?)\};" % function, source, re.S)
    if not found:
        bad.append(f"request.c: {function}() has no list of fields")
        continue
    same(f"{schema}'s field", set(re.findall(r'\{"(\w+)"', found[1])), set(document["components"]["schemas"][schema]["properties"]))
print("\n".join(bad) or "openapi.json is what the server does")
sys.exit(1 if bad else 0)
