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


def pieces(root):
    """How many things one can be taken out of it, big ones first: see without()."""
    return sum(1 for _ in nodes(root)) - 1


def without(root, number):
    """A copy that lacks piece `number`, and all below it."""
    less = copy.deepcopy(root)
    level = [less]
    while level:
        below = []
        for node in level:
            some = node.members if isinstance(node, Obj) else node.items if isinstance(node, Arr) else []
            if number < len(some):
                del some[number]
                return less
            number -= len(some)
            below += [one[1] if isinstance(node, Obj) else one for one in some]
        level = below
    raise IndexError(number)
