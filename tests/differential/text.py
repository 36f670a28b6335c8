"""JSON as it is written, not as it is meant: key spellings, duplicates and bad numbers survive.

A node is one of
    Obj([[key text, node], ...])    key text: with its quotes and escapes
    Arr([node, ...])
    Raw(text)                       whatever stands for a scalar
"""

import copy
import json


class Obj:
    def __init__(self, members):
        self.members = members

    def text(self):
        return "{" + ",".join(f"{key}:{node.text()}" for key, node in self.members) + "}"


class Arr:
    def __init__(self, items):
        self.items = items

    def text(self):
        return "[" + ",".join(node.text() for node in self.items) + "]"


class Raw:
    def __init__(self, raw):
        self.raw = raw

    def text(self):
        return self.raw


def of(value):
    """A node for a plain value."""
    if isinstance(value, dict):
        return Obj([[json.dumps(key, ensure_ascii=False), of(one)] for key, one in value.items()])
    if isinstance(value, list):
        return Arr([of(one) for one in value])
    return Raw(json.dumps(value, ensure_ascii=False))


def nodes(node):
    """The node and all below it, from the top."""
    yield node
    if isinstance(node, Obj):
        for _, one in node.members:
            yield from nodes(one)
    elif isinstance(node, Arr):
        for one in node.items:
            yield from nodes(one)


def objects(root):
    return [node for node in nodes(root) if isinstance(node, Obj) and node.members]


def smaller(root):
    """Copies of the tree with one thing less each, big pieces first."""
    for place, node in enumerate(nodes(root)):
        count = len(node.members) if isinstance(node, Obj) else \
            len(node.items) if isinstance(node, Arr) else 0
        for i in range(count):
            less = copy.deepcopy(root)
            same = next(one for k, one in enumerate(nodes(less)) if k == place)
            del (same.members if isinstance(same, Obj) else same.items)[i]
            yield less
