#!/usr/bin/env python3
"""Turns pages of the manual into a C table: pages.py OUTPUT.c FILE.scd..., called by meson."""
import sys
from pathlib import Path


def main():
    output, files = sys.argv[1], sys.argv[2:]
    lines, rows = ['#include "help/pages.h"', ""], []
    for i, name in enumerate(files):
        page = Path(name)
        numbers = ",".join(map(str, page.read_text("ascii").encode() + b"\0"))
        lines.append(f"static const char page{i}[] = {{{numbers}}};")
        rows.append(f'    {{"{page.stem}", page{i}}},')
    lines += ["", "const struct help_page help_pages[] = {", *rows, "    {0}};", ""]
    Path(output).write_text("\n".join(lines))


main()
