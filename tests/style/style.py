#!/usr/bin/env python3
"""Holds the house to its plan: style.py ROOT prints FILE:LINE: RULE for each break, then fails.

style.py --self-test gives every rule a small tree that breaks it and one that does not.
"""
import re
import statistics
import sys
from pathlib import Path

from self_test import self_test

# The floors: a room includes headers of its own and of rooms on lower floors, no others.
FLOORS = {
    "base": 0,
    "device": 1, "io": 1,
    "tensor": 2,
    "products": 3,
    "metrics": 4, "ops": 4, "optim": 4, "mirror": 4, "data": 4,
    "graph": 5,
    "model": 6,
    "team": 7,
    "train": 8,
    "bench": 9, "serve": 9,
}  # fmt: skip

# A hall is a room cut into smaller ones, "src/data/sources": these in their order, the lowest
# first, "" for what lies in the hall itself. Those of one row do not include one another.
HALLS = {
    "bench": [[""], ["scale", "selftest"]],
    "data": [["text"], ["sources"], ["drawn", "images", "stages", "tables"], [""],
             ["batches", "convert", "survey"]],
    "device": [[""], ["library", "program"], ["open"]],
    "graph": [["memory", "nodes"], [""], ["check", "crossing", "forward", "planes", "tune"],
              ["place"]],
    "io": [[""], ["hdf5", "image", "onnx", "records"], ["arrays"]],
    "model": [["yaml"], [""], ["checkpoint", "place", "text"], ["naming", "zoo"], ["foreign"],
              ["import"], ["keras", "onnx", "onnx_export"], ["keras_layers", "onnx_arrays",
               "onnx_loops", "onnx_operators"], ["onnx_layers", "onnx_samples"]],
    "ops": [[""], ["arrange", "array", "attention", "norm", "probe", "recurrent", "sequence",
                   "weighted"]],
    "products": [["kernel"], ["direct", "library", "planes"], ["gpu"], ["matrix", "winograd"],
                 [""]],
    "serve": [["config", "http"], ["models"], ["rest"], [""]],
    "team": [["stepper"], ["workers"], ["lockstep", "async"], [""]],
    "train": [["logs"], ["callbacks", "evaluation", "tuning"], ["place", "settings"], ["run"],
              [""], ["compute", "predict", "resume", "sweep", "validate"]],
}

# Rooms of the program, below tools/.
TOOL_ROOMS = {"bench", "data", "help", "page", "report", "sweep", "terminal", "train",
              "watch"}

# Whose front door a public header is, where it has not the room's name. lockstep.h is all.
DOORS = {"accuracy": "bench", "batches": "data", "callback": "train", "compute": "train",
         "convert": "data", "field": "data", "file": "io", "import": "model", "place": "model",
         "predict": "train",
         "progress": "base", "reference": "train", "scale": "bench", "settings": "train",
         "status": "base", "survey": "data", "sweep": "train", "text": "data", "tune": "graph",
         "weights": "model"}  # fmt: skip

# A library's header -> the files that may know it. Tests may use a library as an oracle.
LIBRARIES = {
    "CL/": ["src/device/opencl.h"],
    "clblast_c.h": ["src/device/library/blas.c"],
    "emmintrin.h": ["src/mirror/tree_sum.c"],
    "immintrin.h": ["src/io/image/resize_avx2.c"],
    "clFFT.h": ["src/device/library/fft.c"],
    "Random123/": ["src/base/random.c"],
    "zlib.h": ["src/io/gzip.c"],
    "zip.h": ["src/io/arrays/zip.c"],
    "openssl/": ["src/io/sha256.c"],
    "curl/": ["src/io/download.c"],
    "stb_image.h": ["src/io/image/image.c"],
    "turbojpeg.h": ["src/io/image/image.c"],
    "hdf5.h": ["src/io/arrays/hdf5_write.c"],
    "asm/socket.h": ["src/serve/http/listen.c"],
    "linux/filter.h": ["src/serve/http/listen.c"],
    "microhttpd.h": ["src/serve/http/http.c"],
    "utf8proc.h": ["src/data/text/unicode.c"],
    "onnx.pb-c.h": ["src/io/onnx/memory.h"],
    "yaml.h": ["src/model/yaml/yaml.c"],
    "mpi.h": ["src/mirror/mpi.c"],
    "jansson.h": ["src/data/text/file.c", "src/io/arrays/keras.c", "src/io/safetensors.c",
                  "src/io/safetensors_write.c", "src/model/checkpoint/bundle.c",
                  "src/model/classes.c", "src/model/keras/keras.h", "src/train/run/folder.c",
                  "tools/terminal/json.h"],
}  # fmt: skip

# Headers of C11 and POSIX; sys/file.h for flock(); malloc.h and sys/syscall.h of glibc and
# Linux, for what is asked of them alone.
SYSTEM = set(
    """assert ctype dirent errno fcntl float ftw glob inttypes langinfo limits locale malloc
    math netdb poll pthread sched semaphore setjmp signal spawn stdalign stdarg
    stdatomic stdbool stddef stdint stdio stdlib string strings sys/file sys/ioctl
    sys/mman sys/resource sys/socket sys/stat sys/statvfs sys/syscall sys/time sys/types
    sys/wait termios time unistd wchar""".split()
)

LINES = {".c": 600, ".h": 200, ".cl": 300}
MEDIAN_LINES = 200
ROOM_FILES = 20  # .c files of a room, those of smaller rooms in it not counted
ROOM_LINES = 3000  # of its .c and .h files
FUNCTION_LINES = 60
COLUMNS = 96
COMMENT_LINES = 8  # of a header's comment; the one that opens it:
OPENING_LINES = 14
TEXT_SUFFIXES = {".c", ".h", ".cl", ".py", ".sh", ".build", ".in", ".md", ".yaml", ".yml", ""}

VARIADIC = re.compile(r"^\s*#\s*define\s+\w+\([^)]*\.\.\.", re.M)
LOUD = re.compile(r"\b(v?printf|puts|putchar|perror|exit|_exit|_Exit|quick_exit|abort)\s*\(")
STREAM = re.compile(r"\b(stdout|stderr)\b")
CL_TYPE = re.compile(r"\bcl_[a-z]\w*")
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX|HA" + r"CK)\b")
PLACES = re.compile("/" + "work/|/" + "tmp/peers|/" + "home/[a-z]")
SPOKEN_PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*/[\w-]+\.(?:c|h|cl|py|md|yaml|build)\b")
VAGUE = re.compile(r"^(utils?|commons?|misc|helpers?)$")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
TOKEN = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
COMMENT = re.compile(r"/\*.*?\*/", re.S)
OPENING = re.compile(r"\A/\*.*?\*/", re.S)


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def code_of(text):
    """The text with comments and the inside of strings blank, every line where it was."""

    def blank(match):
        inside = re.sub(r"[^\n]", " ", match.group()[1:-1])
        return match.group()[0] + inside + match.group()[-1] if inside else match.group()

    def gone(match):
        token = match.group()
        return blank(match) if token[0] in "\"'" else re.sub(r"[^\n]", " ", token)

    return TOKEN.sub(gone, text)


def room_of(path):
    """The room of a source file or a public header; None: no room, may include all of them."""
    parts = path.split("/")
    if parts[0] == "src" and len(parts) in (3, 4):
        return parts[1]
    if path.startswith("include/lockstep/"):
        stem = Path(path).stem
        return None if stem == "lockstep" else DOORS.get(stem, stem)
    return None


def small_room(path):
    """Of a path below src/: the smaller room of its hall; "": in the hall itself."""
    parts = path.split("/")
    return parts[1] if len(parts) > 2 else ""


def check_hall(path, header):
    """A file of src/ includes `header` of its own hall."""
    hall = header.split("/")[0]
    if not path.startswith(f"src/{hall}/") or hall not in HALLS:
        return []
    here, there = small_room(path.removeprefix("src/")), small_room(header)
    level = {room: i for i, row in enumerate(HALLS[hall]) for room in row}
    for room in here, there:
        if room not in level:
            return [f"'{hall}/{room}' is no room"]
    if here != there and level[there] >= level[here]:
        way = "up" if level[there] > level[here] else "sideways"
        return [f"'{here or hall}' includes {way} within its hall: '{header}'"]
    return []


def entered_room(header, quoted):
    if not quoted and header.startswith("lockstep/"):
        return room_of("include/" + header)
    return header.split("/")[0] if quoted and "/" in header else None


def check_include(path, header, quoted):
    area, room = path.split("/")[0], room_of(path)
    if area == "cl":
        folder = path.removeprefix("cl/").rpartition("/")[0]
        read_by_c = header.endswith(("_table.h", "/args.h"))
        shared = header.startswith("lib/") or read_by_c
        if shared or header.rpartition("/")[0] == folder != "":
            return []
        return [f"a kernel includes '{header}', not lib/ nor a piece beside it"]
    if area not in ("src", "include", "tools"):
        return []
    if quoted and area == "tools":
        if "/" not in header or header.split("/")[0] in TOOL_ROOMS:
            return []
        return [f"a program includes '{header}': it may see include/lockstep only"]
    if quoted and area == "src" and "/" not in header:
        return [f"'{header}' is included without its room"]
    if quoted and area == "include":
        return [f"a public header includes '{header}'"]
    entered = entered_room(header, quoted)
    if entered is not None and entered not in FLOORS:
        return [f"'{entered}' is no room"]
    if room and entered and room != entered and FLOORS[entered] >= FLOORS[room]:
        way = "up" if FLOORS[entered] > FLOORS[room] else "sideways"
        return [f"{room} (floor {FLOORS[room]}) includes {way}: '{header}'"]
    if quoted and area == "src":
        broken = check_hall(path, header)
        if broken:
            return broken
    if room and header == "lockstep/lockstep.h":
        return [f"'{header}' is for programs"]
    if quoted or header.startswith("lockstep/") or header.removesuffix(".h") in SYSTEM:
        return []
    owners = next((files for name, files in LIBRARIES.items() if header.startswith(name)), None)
    if not owners:
        return [f"<{header}> is not a known header"]
    return [] if path in owners else [f"<{header}> belongs to {', '.join(owners)} alone"]


def check_includes(path, text):
    for number, line in enumerate(text.split("\n"), 1):
        match = INCLUDE.match(line)
        if match:
            for rule in check_include(path, match[2], match[1] == '"'):
                yield number, rule


def functions(code):
    """(line, signature, lines) of each definition, as .clang-format lays them out."""
    lines = code.split("\n")
    for at, line in enumerate(lines):
        if line != "{":
            continue
        top = at
        while top > 0 and re.search(r"^[^#].*[^\s;}]\s*$|^[^#\s;}]$", lines[top - 1]):
            top -= 1
        end = next((i for i in range(at, len(lines)) if lines[i] == "}"), len(lines) - 1)
        yield top + 1, " ".join(lines[top:at]), end - at - 1


def check_functions(path, code):
    for line, signature, lines in functions(code):
        name = re.search(r"(\w+)\s*\(", signature)
        if lines > FUNCTION_LINES:
            yield line, f"a function of {lines} lines, at most {FUNCTION_LINES}"
        if (path.startswith("src/") and name and not re.search(r"\bstatic\b", signature)
                and not name[1].startswith("lk_")):  # fmt: skip
            yield line, f"'{name[1]}' is seen outside its file but does not begin with lk_"


def check_quiet(path, code):
    if not path.startswith("src/") or path == "src/base/log.c":
        return
    for pattern, what in ((LOUD, "is called"), (STREAM, "is named")):
        for match in pattern.finditer(code):
            yield line_of(code, match.start()), f"{match[1]} {what} inside the library"


def check_opencl(path, code):
    if path.startswith(("src/device/", "tests/device/", "tests/fault/")):
        return
    for match in CL_TYPE.finditer(code):
        yield line_of(code, match.start()), f"'{match[0]}' outside src/device"


def check_args(path, code):
    """Structs that kernels take by value lie alike in C and OpenCL C: all of one type."""
    if not path.endswith("/args.h"):
        return
    for struct in re.finditer(r"^struct \w+ \{(.*?)^\};", code, re.M | re.S):
        for member in re.finditer(r"[^;]+;", struct[1]):
            if not re.match(r"\s*(lk_int \w+(, \w+)*;|\w+\(\w+\)\s*;?)", member[0]):
                line = line_of(code, struct.start(1) + member.start() + 1)
                yield line, "a member of a kernel's struct is not an lk_int"


def check_macros(path, code):
    """NVIDIA's compiler of kernels knows no macros of any number of arguments."""
    if path.endswith((".cl", "/args.h", "_table.h")):
        for match in VARIADIC.finditer(code):
            yield line_of(code, match.start()), "a macro of any number of arguments in a kernel"


def check_header(path, text):
    opening = OPENING.match(text)
    if not opening:
        yield 1, "does not open with a comment"
    room = room_of(path)
    if opening and room in FLOORS:
        said = re.search(r"\bFloor (\d)\b", opening[0])
        if not said or int(said[1]) != FLOORS[room]:
            yield 1, f"the opening comment does not say 'Floor {FLOORS[room]}'"
    for match in COMMENT.finditer(text):
        lines = match[0].count("\n") + 1
        most = OPENING_LINES if match.start() == 0 else COMMENT_LINES
        if lines > most:
            yield line_of(text, match.start()), f"a comment of {lines} lines, at most {most}"


def check_public(path, text):
    """Each declaration stands below its comment, or right below one that does."""
    if not path.startswith("include/"):
        return
    before, is_open = "", False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("LK_API"):
            if not is_open and not before.endswith("*/"):
                yield number, "a public function without a comment above it"
            is_open = True
        elif not line:
            is_open = False
        before = line


def check_layout(path, text):
    suffix, lines = Path(path).suffix, text.split("\n")
    golden = Path(path).stem == "golden"  # recorded numbers
    if len(lines) - 1 > LINES.get(suffix, len(lines)) and not golden:
        yield 1, f"{len(lines) - 1} lines, at most {LINES[suffix]}"
    if text and (not text.endswith("\n") or text.endswith("\n\n")):
        yield len(lines), "does not end with one newline"
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS and suffix != ".md":
            yield number, f"{len(line)} columns, at most {COLUMNS}"
        if "\t" in line:
            yield number, "a tab"
        if line != line.rstrip():
            yield number, "blanks at the end"


def check_words(path, text):
    if VAGUE.match(Path(path).stem):
        yield 1, "the file's name says nothing"
    for pattern, what in ((UNFINISHED, "is unfinished"), (PLACES, "is one machine's place")):
        for match in pattern.finditer(text):
            yield line_of(text, match.start()), f"'{match[0]}' {what}"


def check_file(path, text):
    suffix = Path(path).suffix
    yield from check_layout(path, text)
    yield from check_words(path, text)
    if suffix in (".c", ".h", ".cl"):
        yield from check_includes(path, text)
        yield from check_macros(path, code_of(text))
    if suffix in (".c", ".h"):
        code = code_of(text)
        yield from check_functions(path, code)
        yield from check_quiet(path, code)
        yield from check_opencl(path, code)
        yield from check_args(path, code)
    if suffix == ".h":
        yield from check_header(path, text)
        yield from check_public(path, text)
    opens = suffix == ".cl" or (suffix == ".c" and path.startswith("src/"))
    if opens and not OPENING.match(text):
        yield 1, "does not open with a comment"


def check_rooms(tree):
    """Every room of src/ has a README.md, and no folder in it is too large."""
    folders = {}
    for path, text in tree.items():
        if re.match(r"src/.+\.[ch]$", path):
            folders.setdefault(str(Path(path).parent), []).append((path, text.count("\n")))
    for room in sorted({"/".join(folder.split("/")[:2]) for folder in folders}):
        if f"{room}/README.md" not in tree:
            yield room, 0, "has no README.md"
    for folder, files in folders.items():
        count = sum(path.endswith(".c") for path, _ in files)
        lines = sum(lines for _, lines in files)
        if count > ROOM_FILES:
            yield folder, 0, f"{count} .c files, at most {ROOM_FILES}"
        if lines > ROOM_LINES:
            yield folder, 0, f"{lines} lines, at most {ROOM_LINES}"


def check_operations(tree):
    """Every file of the list of operations has its test, and its kernels where it runs any."""
    listing = "src/ops/meson.build"
    for match in re.finditer(r"^  '([\w/]+)': \[", tree.get(listing, ""), re.M):
        stem, line = match[1], line_of(tree[listing], match.start())
        source = tree.get(f"src/ops/{stem}.c", "")
        if not source:
            yield listing, line, f"src/ops/{stem}.c is missing"
        if f"tests/ops/{stem}.c" not in tree:
            yield listing, line, f"tests/ops/{stem}.c is missing"
        for kernels in re.findall(r'lk_op_kernel\(\w+,\s*"(ops/[\w/]+)"', source):
            if f"cl/{kernels}.cl" not in tree:
                yield listing, line, f"cl/{kernels}.cl is missing"


def check_paths(tree):
    """A file that a README (in `...`) or a comment names exists: as said from the root, from
    src/ or its likes, or from a folder round the one that names it. NAME stands for any."""
    folders = {str(parent) for path in tree for parent in Path(path).parents}
    for path, text in tree.items():
        suffix = Path(path).suffix
        if suffix not in (".md", ".c", ".h", ".cl"):
            continue
        roots = ["src", "cl", "include", "tests", *(str(p) for p in Path(path).parents)]
        for span in (re.finditer(r"`[^`\n]+`", text) if suffix == ".md"
                     else COMMENT.finditer(text)):  # fmt: skip
            for match in SPOKEN_PATH.finditer(span[0]):
                said = match[0]
                places = [(Path(root) / said).as_posix() for root in roots]
                known = any((Path(root) / said.split("/")[0]).as_posix() in folders
                            for root in roots)  # fmt: skip
                if known and "NAME" not in said and not any(p in tree for p in places):
                    yield path, line_of(text, span.start()), f"there is no file '{said}'"


def check_glossary(tree):
    """The glossary has each word once, and the names in its last column are in the code."""
    page = "src/README.md"
    seen, code = set(), None
    for number, line in enumerate(tree.get(page, "").split("\n"), 1):
        row = re.match(r"\| ([^|]+) \| [^|]+ \|([^|]*)\|$", line)
        if not row or row[1] == "word":
            continue
        for word in re.sub(r"\([^)]*\)", "", row[1]).split(","):
            if word.strip() in seen:
                yield page, number, f"the glossary has '{word.strip()}' twice"
            seen.add(word.strip())
        if code is None:
            code = set(re.findall(r"\w+", " ".join(
                text for path, text in tree.items()
                if path.startswith(("src/", "include/")) and path.endswith((".c", ".h")))))
        for name in re.findall(r"\b(?:lk|LK)_\w+", row[2]):
            if name not in code:
                yield page, number, f"the glossary names '{name}', which is not in the code"


def check_median(tree):
    lines = [text.count("\n") for path, text in tree.items() if Path(path).suffix in LINES]
    if lines and statistics.median(lines) >= MEDIAN_LINES:
        median = int(statistics.median(lines))
        yield ".", 0, f"the median file has {median} lines, under {MEDIAN_LINES} expected"


def check(tree):
    """All breaks of a tree {path: text}, sorted: (path, line, rule)."""
    broken = [(path, *found) for path, text in tree.items() for found in check_file(path, text)]
    broken.extend([*check_rooms(tree), *check_paths(tree), *check_glossary(tree)])
    return sorted([*broken, *check_operations(tree), *check_median(tree)])


def read_tree(root):
    """The text files a person wrote: no builds, no runs, no corpus, no LICENSE."""
    tree, folders = {}, [root]
    while folders:
        for entry in sorted(folders.pop().iterdir()):
            if entry.is_symlink() or entry.name in (".git", "__pycache__", "out", "runs"):
                continue
            if entry.is_dir():
                if not entry.name.startswith("build") and entry.name != "corpus":
                    folders.append(entry)
            elif entry.suffix in TEXT_SUFFIXES and entry.name != "LICENSE":
                tree[entry.relative_to(root).as_posix()] = entry.read_text(encoding="utf-8")
    return tree


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test(check)
    tree = read_tree(Path(sys.argv[1]))
    broken = check(tree)
    for path, line, rule in broken:
        print(f"{path}:{line}: {rule}")
    print(f"{len(tree)} files, {len(broken)} breaks of the house's rules")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
