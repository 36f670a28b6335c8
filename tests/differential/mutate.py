"""What is done to a valid request so that two parsers might read it in two ways."""

import copy
import json
import re

import text

FOLDS = {"s": "\u017f", "k": "\u212a", "S": "\u017f", "K": "\u212a"}
NUMBERS = ["1e2", "1E0", "100.0", "1.0", "-0", "0.0", "-0.0", "1e-1", "9223372036854775807",
           "9223372036854775808", "-9223372036854775809", "1e19", "1e400", "00", "01", "+1", "0x10",
           "1_000", ".5", "5.", "NaN", "Infinity", "\u0661", "18446744073709551617"]
ODD = ["null", "true", "false", '""', "0", "[]", "{}", '"true"', "[null]", '{"a":null}', '"\\u0000"',
       '"\\ud800"', "tru", "'a'", '"\x01"', "[[]]", '["x",]', "[1]", '"1"']


def _member(rng, root):
    every = text.objects(root)
    node = rng.choice(every)
    # The deeper ones are many; those that matter most stand near the top.
    if rng.random() < 0.5:
        node = rng.choice(every[:3])
    return node, rng.randrange(len(node.members))


def _replace_letter(rng, key, able, change):
    places = [i for i, c in enumerate(key) if 0 < i < len(key) - 1 and able(c)]
    if not places or "\\" in key:
        return key
    i = rng.choice(places)
    return key[:i] + change(key[i]) + key[i + 1:]


def key_case(rng, root):
    node, i = _member(rng, root)
    key = node.members[i][0]
    node.members[i][0] = rng.choice([key.lower(), key.upper(), _replace_letter(
        rng, key, str.isalpha, str.swapcase)])


def key_fold(rng, root):
    able = [(node, i) for node in text.objects(root) for i, (key, _) in enumerate(node.members)
            if any(c in FOLDS for c in key)]
    if able:
        node, i = rng.choice(able)
        node.members[i][0] = _replace_letter(rng, node.members[i][0], lambda c: c in FOLDS,
                                             lambda c: FOLDS[c])


def key_escape(rng, root):
    node, i = _member(rng, root)
    node.members[i][0] = _replace_letter(rng, node.members[i][0], lambda c: ord(c) < 0x10000,
                                         lambda c: f"\\u{ord(c):04{rng.choice('xX')}}")


def duplicate(rng, root):
    node, i = _member(rng, root)
    key, value = node.members[i]
    again = rng.choice([copy.deepcopy(value), text.Raw("null"), text.Raw("true"), text.Obj([]),
                        text.Raw(rng.choice(ODD))])
    other = rng.choice([key, key, key.lower(), _replace_letter(
        rng, key, str.isascii, lambda c: f"\\u{ord(c):04x}")])
    node.members.insert(rng.randint(0, len(node.members)), [other, again])


def twin(rng, root):
    """A second HostConfig (or the like) with the dangerous half in it."""
    other = text.of({"Privileged": True, "Binds": ["/:/host"]})
    root.members.insert(rng.randint(0, len(root.members)), [rng.choice(
        ['"HostConfig"', '"hostConfig"', '"HOSTCONFIG"', '"Host\\u0043onfig"', '"Ho\u017ftConfig"']),
        other])


def flat(rng, root):
    root.members.insert(rng.randint(0, len(root.members)), rng.choice([
        ['"Privileged"', text.Raw("true")], ['"Binds"', text.of(["/:/host"])],
        ['"CapAdd"', text.of(["ALL"])], ['"PidMode"', text.Raw('"host"')],
        ['"NetworkMode"', text.Raw('"host"')], ['"Memory"', text.Raw("9")],
        ['"privileged"', text.Raw("true")], ['"Binds"', text.Raw("[]")]]))


def retype(rng, root):
    node, i = _member(rng, root)
    old = node.members[i][1]
    node.members[i][1] = rng.choice([
        text.Raw(rng.choice(ODD)), text.Raw(json.dumps(old.text())), text.Arr([old]),
        text.Obj([['"a"', old]]), text.Raw("null")])


def number(rng, root):
    places = [(node, i) for node in text.objects(root) for i, (_, one) in enumerate(node.members)
              if isinstance(one, text.Raw) and re.fullmatch(r"-?\d+", one.raw)]
    if not places:
        root.members.append(['"StopTimeout"', text.Raw(rng.choice(NUMBERS))])
        return
    node, i = rng.choice(places)
    node.members[i][1] = text.Raw(rng.choice(NUMBERS))


def order(rng, root):
    for node in text.objects(root):
        rng.shuffle(node.members)


def unknown(rng, root):
    node = rng.choice(text.objects(root)[:4])
    name = rng.choice(["NewThing", "Privilege", "privileged ", "", "hostconfig.Binds", "Bindings",
                       "CapabilityAdd", "GPUs", "__proto__", "Privileged\u0000", "Umask"])
    node.members.insert(rng.randint(0, len(node.members)),
                        [json.dumps(name, ensure_ascii=rng.random() < 0.5), text.Raw(rng.choice(ODD))])


def neutral(rng, root):
    node, i = _member(rng, root)
    node.members[i][1] = text.Raw(rng.choice(["null", "false", "0", '""', "[]", "{}", "[null]"]))


def nest(rng, root):
    deep = rng.choice([5, 30, 31, 32, 33, 200, 10001])
    node, i = _member(rng, root)
    node.members[i][1] = text.Raw("[" * deep + "]" * deep)


TREE = {"key-case": key_case, "key-fold": key_fold, "key-escape": key_escape, "duplicate": duplicate,
        "twin": twin, "flat": flat, "type": retype, "number": number, "order": order,
        "unknown": unknown, "neutral": neutral, "nest": nest}


def bytes_around(rng, body):
    """The document, with something before, behind or in it."""
    return rng.choice([
        lambda: b"\xef\xbb\xbf" + body, lambda: body + b"{}", lambda: body + b"\n{\"HostConfig\":{}}",
        lambda: body + b"\x00", lambda: b"  " + body + b"\r\n\t ", lambda: body[:-1], lambda: b"",
        lambda: b"[" + body + b"]", lambda: b"null", lambda: body.replace(b":", b" : ", 1),
        lambda: body.replace(b"a", b"\xff", 1), lambda: body.replace(b'"', b"'"),
        lambda: body.replace(b",", b",,", 1), lambda: body.replace(b"{", b"{/**/", 1),
        lambda: body.replace(b"}", b",}", 1), lambda: body + b" " * 9000,
        lambda: body.replace(b"e", b"\xc0\xa5", 1), lambda: body.decode().encode("utf-16"),
        lambda: b'"' + body.replace(b'"', b'\\"') + b'"'])()


def path(rng, where):
    """Other spellings of a path; the engine cleans, decodes or refuses them."""
    head, tail = where[:1], where[1:]
    half = rng.randrange(len(tail))
    return rng.choice([
        lambda: "/" + where, lambda: where + "/", lambda: head + "./" + tail,
        lambda: head + "x/../" + tail, lambda: where.replace("/", "//", 2),
        lambda: where[:-1] + f"%{ord(where[-1]):02x}", lambda: where[:-1] + f"%25{ord(where[-1]):02x}",
        lambda: head + tail.replace("/", "%2f", 1), lambda: head + tail.replace("/", "%2F", 1),
        lambda: where.upper(), lambda: where.capitalize(), lambda: where + ";x=1",
        lambda: where + "%00", lambda: where + "%0a", lambda: where + "#x", lambda: "\\" + tail,
        lambda: head + tail[:half] + "%" + tail[half:], lambda: head + "%2e%2e/" + tail,
        lambda: "http://docker" + where, lambda: where + "%20", lambda: where + "?" + "?",
        lambda: where.replace("create", "cr\u00e9ate"), lambda: where + "/.", lambda: where + "/..",
        lambda: tail])()


def version(rng):
    return rng.choice(["/v1.24", "/v1.30", "/v1.39", "/v1.40", "/v1.41", "/v1.42", "/v1.56", "/v1.57",
                       "/v1.12", "/v1.23", "/v01.41", "/v1.041", "/v1.41.", "/v1.41.0", "/V1.41",
                       "/v1", "/v2.0", "/v1.4100", "/v", "/v1.", "/v1.41a", "/v-1.41", ""])


def query(rng, key, value):
    """Spellings of one query key; most must not pass."""
    return rng.choice([
        f"{key}={value}&{key}=other", f"{key.capitalize()}={value}", f"{key};x={value}",
        f"%{ord(key[0]):02x}{key[1:]}={value}", f"{key}=%{ord(value[0]) if value else 0x61:02x}",
        f"{key}[]={value}", f"{key}", f"{key}=", f"={value}", "&", f"{key}={value}&", "x=1",
        f"{key}={value}&HostConfig=%7B%22Privileged%22%3Atrue%7D", f"{key}={value}%00",
        f"{key}=a+b", f"{key}=a%2bb", f"{key}={value}&%6{key[0]}=1", f"a;{key}={value}", "platform=",
        f"{key}={value}&platform=linux%2Famd64", f"%zz={value}", f"{key}={value};a=b"])


CONTENT_TYPES = ["application/json", "application/json; charset=utf-8", "Application/JSON",
                 "application/json;charset=utf-16", "text/plain", "", "application/x-www-form-urlencoded",
                 "application/jsonx", "application/json, text/plain", "multipart/form-data; boundary=x",
                 " application/json", "application/x-tar"]
