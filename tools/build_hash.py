#!/usr/bin/env python3
"""Writes a C file with a text that changes with any source of the library:

    build_hash.py OUTPUT.c DEPENDENCIES ROOT

DEPENDENCIES is made for ninja: the files that it has read, and the meson.build files, which
tell of new ones.
"""
import hashlib
import sys
from pathlib import Path

SUFFIXES = {".c", ".h", ".cl", ".in", ".yaml"}


def main(output, dependencies, root):
    files = [p for room in ("cl", "include", "src") for p in Path(root, room).rglob("*")]
    sources = sorted(p for p in files if p.suffix in SUFFIXES)
    digest = hashlib.sha256()
    for path in sources:
        data = path.read_bytes()
        digest.update(f"{path.relative_to(root)} {len(data)}\n".encode() + data)
    Path(output).write_text('#include "base/build.h"\n\n'
                            f'const char lk_build[] = "{digest.hexdigest()[:12]}";\n')
    read = sources + [p for p in files if p.name == "meson.build"]
    names = " ".join(str(p).replace(" ", "\\ ") for p in read)
    Path(dependencies).write_text(f"{output}: {names}\n")


main(*sys.argv[1:])
