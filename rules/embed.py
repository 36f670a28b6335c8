#!/usr/bin/env python3
"""embed.py OUT HEADER ARRAY FORM FILE... - texts as a C array, in the order given.

HEADER declares `const struct ARRAY_file ARRAY_files[]` (name, text, length) and its count;
FORM is the name of an entry, with {name} and {stem} of the file.
"""

import sys
from pathlib import Path


def array(text):
    rows = [text[i:i + 24] for i in range(0, len(text), 24)]
    return "\n".join("\t" + ",".join(str(b) for b in row) + "," for row in rows)


def main(out, header, kind, form, files):
    with open(out, "w", encoding="ascii") as c:
        c.write(f'#include "{header}"\n\n')
        for i, file in enumerate(files):
            # Bytes above 127 would not fit a plain char; what is embedded is written in ASCII.
            text = file.read_bytes()
            text.decode("ascii")
            c.write(f"static const char text_{i}[] = {{\n{array(text)}\n}};\n\n")
        c.write(f"const struct {kind}_file {kind}_files[] = {{\n")
        for i, file in enumerate(files):
            name = form.format(name=file.name, stem=file.stem)
            c.write(f'\t{{"{name}", text_{i}, sizeof(text_{i})}},\n')
        c.write(f"}};\nconst size_t {kind}_file_count = {len(files)};\n")


main(*sys.argv[1:5], [Path(file) for file in sys.argv[5:]])
