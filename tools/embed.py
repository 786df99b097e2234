#!/usr/bin/env python3
"""Turns files into a C table of strings: embed.py OUTPUT.c TABLE ROOT FILE...

TABLE is an array of struct lk_embedded (src/base/embedded.h); a name is the file's path below
ROOT. `#include "x.cl"` of a .cl file, and of what it includes, is resolved here, against ROOT,
or against the src/ beside it where C reads the file too, so that OpenCL compilers never look
for a file. Beside it stand
the names that the file declares at its outermost level, and the macros that it defines, so that
several kernel files can be put into one program. TABLE_hash is text that changes with any of
the files.
"""
import hashlib
import re
import sys
from pathlib import Path


def text_of(path, root):
    data = path.read_bytes()
    if path.suffix not in (".cl", ".h"):
        return data

    def included(match):
        name = match.group(1).decode()
        place = root if (root / name).exists() else root.parent / "src"
        return text_of(place / name, root)

    return re.sub(rb'^#include "([^"]+)"\n', included, data, flags=re.M)


DECLARED = (rb"^(?:INLINE|BODY|\w*KERNEL|__kernel)\b[^(;{]*?(\w+)\(",
            rb"^(?:struct|union|enum) (\w+) \{",
            rb"^typedef [^;{]*?(\w+);", rb"^\} (\w+);",
            rb"^__constant [^=;]*?(\w+)(?:\[|;| =)")


def names_of(data, patterns):
    found = {name for pattern in patterns for name in re.findall(pattern, data, re.M)}
    return " ".join(sorted(name.decode() for name in found))


def main():
    output, table, root, files = sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4:]
    lines = ['#include "base/embedded.h"', ""]
    rows, digest = [], hashlib.sha256()
    for i, name in enumerate(files):
        path = Path(name)
        data = text_of(path, root)
        numbers = ",".join(map(str, data + b"\0"))
        lines.append(f"static const unsigned char data{i}[] = {{{numbers}}};")
        relative = path.resolve().relative_to(root.resolve())
        digest.update(f"{relative} {len(data)}\n".encode() + data)
        is_kernel = path.suffix == ".cl"
        declared = names_of(data, DECLARED) if is_kernel else ""
        macros = names_of(data, [rb"^[ \t]*#[ \t]*define (\w+)"]) if is_kernel else ""
        rows += [f'    {{"{relative}", (const char *)data{i}, sizeof data{i} - 1,',
                 f'     "{declared}",', f'     "{macros}"}},']
    lines += ["", f"const struct lk_embedded {table}[] = {{", *rows,
              "    {0, 0, 0, 0, 0},", "};",
              f'const char {table}_hash[] = "{digest.hexdigest()[:12]}";', ""]
    Path(output).write_text("\n".join(lines))


main()
