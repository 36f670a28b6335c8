#!/usr/bin/env python3
"""embed.py OUT FILE... - the standard checks as C arrays, in the order given."""

import os
import sys


def array(text):
    rows = [text[i:i + 24] for i in range(0, len(text), 24)]
    return "\n".join("\t" + ",".join(str(b) for b in row) + "," for row in rows)


def main(out, files):
    with open(out, "w", encoding="ascii") as c:
        c.write('#include "rules/engine_priv.h"\n\n')
        for i, name in enumerate(files):
            with open(name, "rb") as f:
                text = f.read()
            # Bytes above 127 would not fit a plain char; the checks are written in ASCII.
            text.decode("ascii")
            c.write("static const char text_%d[] = {\n%s\n};\n\n" % (i, array(text)))
        c.write("const struct prelude_file prelude_files[] = {\n")
        for i, name in enumerate(files):
            c.write('\t{"prelude/%s", text_%d, sizeof(text_%d)},\n' % (os.path.basename(name), i, i))
        c.write("};\nconst size_t prelude_file_count = %d;\n" % len(files))


main(sys.argv[1], sys.argv[2:])
