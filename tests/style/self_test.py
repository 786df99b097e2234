"""Small trees that break one rule each, and some that break none, for style.py --self-test."""

HEADER = '/* Numbers. Floor 0. */\n#include "base/fail.h"\n'
MANY = "x = 1;\n"


def function(signature, lines=1):
    return f"{signature}\n{{\n{'    f();' + chr(10)}" + "    g();\n" * (lines - 1) + "}\n"


def comment(lines):
    return "/* a\n" + " * b\n" * (lines - 2) + " * c */\n"


LISTED = {
    "src/ops/meson.build": "op_files = {\n  'gelu': ['gelu'],\n}\n",
    "src/ops/gelu.c": 'static int x = lk_op_kernel(setup, "ops/gelu");\n',
    "cl/ops/gelu.cl": "/* gelu */\n",
    "tests/ops/gelu.c": "/* Cases. */\n",
}


# A file's path, its text, and what is said of it.
BAD = [
    ("src/device/a.c", '#include "tensor/tensor.h"\n', "device (floor 1) includes up"),
    ("src/base/a.c", "#include <lockstep/graph.h>\n", "base (floor 0) includes up"),
    ("src/ops/a.c", '#include "optim/lr_schedule.h"\n', "ops (floor 4) includes sideways"),
    ("src/io/a.c", "#include <lockstep/device.h>\n", "io (floor 1) includes sideways"),
    ("include/lockstep/data.h", "/* D. Floor 4. */\n#include <lockstep/model.h>\n", "up"),
    ("src/train/a.c", '#include "bench/probe.h"\n', "train (floor 8) includes up"),
    ("src/train/a.c", '#include "attic/box.h"\n', "'attic' is no room"),
    ("src/train/a.c", "#include <lockstep/lockstep.h>\n", "is for programs"),
    ("src/base/a.c", '#include "fail.h"\n', "without its room"),
    ("src/io/a.c", '#include "io/image/b.h"\n', "'io' includes up within its hall"),
    ("src/io/image/a.c", '#include "io/records/b.h"\n', "'image' includes sideways"),
    ("src/io/image/a.c", '#include "io/attic/b.h"\n', "'io/attic' is no room"),
    ("src/io/image/a.c", '#include "tensor/b.h"\n', "io (floor 1) includes up"),
    ("include/lockstep/a.h", '/* A. */\n#include "base/fail.h"\n', "a public header includes"),
    ("tools/a.c", '#include "base/fail.h"\n', "may see include/lockstep only"),
    ("cl/a.cl", '/* a */\n#include "b.cl"\n', "not lib/"),
    ("cl/ops/a.cl", '/* a */\n#include "optim/b.cl"\n', "not lib/"),
    ("cl/ops/a.cl", '/* a */\n#include "optim/b.h"\n', "not lib/"),
    ("cl/ops/a.cl", "/* a */\n#define A(x, ...) x\n", "any number of arguments"),
    ("src/ops/args.h", "/* A. Floor 4. */\nstruct a {\n    lk_int x, y;\n    int z;\n};\n",
     "is not an lk_int"),
    ("src/ops/args.h", "/* A. Floor 4. */\nstruct a {\n    lk_int x, *y;\n};\n",
     "is not an lk_int"),
    ("src/graph/a.c", "#include <CL/cl.h>\n", "belongs to src/device/opencl.h alone"),
    ("src/device/a.c", "# include <clblast_c.h>\n", "src/device/library/blas.c alone"),
    ("src/model/a.c", "#include <jansson.h>\n",
     "belongs to src/data/text/file.c, src/io/arrays/keras.c, "),
    ("tools/a.c", "#include <zlib.h>\n", "belongs to src/io/gzip.c alone"),
    ("src/io/a.c", "#include <hdf5.h>\n", "belongs to src/io/arrays/hdf5_write.c alone"),
    ("src/base/a.c", "#include <threads.h>\n", "<threads.h> is not a known header"),
    ("src/io/a.c", function("static void f(void)").replace("f();", 'printf("x");'),
     "printf is called"),
    ("src/io/a.c", function("static void f(void)").replace("f();", "fputs(x, stderr);"),
     "stderr is named"),
    ("src/io/a.c", function("static void f(void)").replace("f();", "exit (1);"),
     "exit is called"),
    ("src/io/a.c", function("static void f(void)").replace("f();", "abort();"),
     "abort is called"),
    ("src/ops/a.c", "static cl_mem x;\n", "'cl_mem' outside src/device"),
    ("tests/ops/a.c", "static cl_int x;\n", "'cl_int' outside src/device"),
    ("src/ops/a.c", MANY * 600, "601 lines, at most 600"),
    ("src/ops/a.h", "/* A. Floor 4. */\n" + MANY * 200, "201 lines, at most 200"),
    ("cl/a.cl", "/* a */\n" + MANY * 300, "301 lines, at most 300"),
    ("src/ops/a.c", function("static int f(int x)", 61), "a function of 61 lines"),
    ("src/ops/a.c", "x" * 97 + "\n", "97 columns"),
    ("tests/ops/a.py", "x" * 97 + "\n", "97 columns"),
    ("src/ops/a.c", "\tx;\n", "a tab"),
    ("src/ops/a.c", "x; \n", "blanks at the end"),
    ("src/ops/a.c", "x;", "one newline"),
    ("src/ops/a.c", "x;\n\n", "one newline"),
    ("src/ops/utils.c", "x;\n", "name says nothing"),
    ("tests/helper.h", "/* H. */\n", "name says nothing"),
    ("src/ops/a.c", function("int f(void)"), "'f' is seen outside its file"),
    ("src/ops/a.c", "const struct lk_op *\n" + function("find(const char *name,\n     int x)"),
     "'find' is seen outside its file"),
    ("src/ops/a.h", "#define A\n", "does not open with a comment"),
    ("cl/a.cl", "int x;\n", "does not open with a comment"),
    ("src/ops/a.h", "/* A. Floor 3. */\n", "does not say 'Floor 4'"),
    ("include/lockstep/status.h", "/* S. */\n", "does not say 'Floor 0'"),
    ("src/base/a.h", HEADER + comment(9), "a comment of 9 lines, at most 8"),
    ("src/base/a.h", comment(15).replace("c */", "Floor 0 */"), "15 lines, at most 14"),
    ("include/lockstep/data.h", "/* D. Floor 4. */\n\nLK_API int lk_a(void);\n",
     "a public function without a comment"),
    ("src/ops/a.c", "/* TO" + "DO */\n", "is unfinished"),
    ("README.md", "see /" + "work/shared\n", "one machine's place"),
    ("tools/run.sh", "cd /" + "home/me\n", "one machine's place"),
]  # fmt: skip

LANE = "struct lk_lane x;\n"
GLOSSARY = "| word | meaning | where |\n|---|---|---|\n| lane | m | `struct lk_lane` |\n"
BAD_TREES = [
    ({**LISTED, "src/ops/gelu.c": None}, "src/ops/gelu.c is missing"),
    ({**LISTED, "tests/ops/gelu.c": None}, "tests/ops/gelu.c is missing"),
    ({**LISTED, "cl/ops/gelu.cl": None}, "cl/ops/gelu.cl is missing"),
    ({"src/ops/a.c": "/* A: see ops/b.h. */\n"}, "there is no file 'ops/b.h'"),
    ({"src/ops/a.c": "x;\n", "tests/README.md": "`src/ops/b.c`\n"}, "no file 'src/ops/b.c'"),
    ({"src/ops/a.c": MANY * 200, "src/ops/b.c": MANY * 300, "src/ops/c.c": MANY}, "median"),
    ({"src/README.md": GLOSSARY + "| old, lane (of a tile) | m | |\n", "src/ops/a.c": LANE},
     "has 'lane' twice"),
    ({"src/README.md": GLOSSARY + "| tile | m | `lk_tile()` |\n", "src/ops/a.c": LANE},
     "names 'lk_tile'"),
]

# Trees as they are: nothing is added to them.
SMALL = {f"tests/{i}.c": "x;\n" for i in range(30)}
README = {"src/io/README.md": "# io\n"}
BAD_ROOMS = [
    ({**README, "src/io/a.c": "x;\n"}, "does not open with a comment"),
    ({**README, "src/io/a.c": "\n/* A. */\n"}, "does not open with a comment"),
    ({"src/io/a.c": "/* A. */\n"}, "has no README.md"),
    ({"src/io/image/a.c": "/* A. */\n"}, "has no README.md"),
    ({**README, **{f"src/io/{i}.c": "/* A. */\n" for i in range(21)}},
     "21 .c files, at most 20"),
    ({**README, **SMALL, **{f"src/io/{i}.c": "/* A. */\n" + MANY * 599 for i in range(6)}},
     "3600 lines, at most 3000"),
]  # fmt: skip
GOOD_ROOMS = [
    {**README, "src/io/a.c": "/* A. */\nx;\n", "src/io/image/b.c": "/* B. */\n"},
    {**README, **{f"src/io/{i}.c": "/* A. */\n" for i in range(20)},
     **{f"src/io/image/{i}.c": "/* A. */\n" for i in range(20)}},
]  # fmt: skip

GOOD = [
    {
        "src/train/a.c": '#include "train/b.h"\n#include "model/c.h"\n#include <stdio.h>\n'
        '#include <lockstep/train.h>\n#include "base/fail.h"\n',
        "include/lockstep/status.h": "/* S. Floor 0. */\n/* Says so. */\n"
        "LK_API int lk_a(void);\nLK_API int\nlk_b(int x);\n",
        "include/lockstep/lockstep.h": "/* All. */\n#include <lockstep/train.h>\n",
    },
    {
        "src/device/opencl.h": "/* CL. Floor 1. */\n#include <CL/cl.h>\nextern cl_int x;\n",
        "src/base/log.c": function("void lk_log(void)").replace("f();", "fprintf(stderr, x);"),
        "src/base/a.c": '/* printf() and exit() are for cl_programs */\nx = "abort()";\n'
        + function("static int f(void)", 60)
        + function("enum lk_status\nlk_find(int x)").replace("f();", 'fprintf(file, "x");'),
        "src/io/helper_bits.c": "x = '\"'; /* \" */ f(y);\n",
        "src/base/b.h": HEADER + comment(8),
        "src/base/c.h": comment(14).replace("c */", "Floor 0 */"),
    },
    {"src/io/image/a.c": '#include "io/file.h"\n#include "io/image/b.h"\n'},
    {"tools/page/a.c": '#include "page/page.h"\n#include "command.h"\n'},
    {"tools/a.c": "#include <lockstep/lockstep.h>\n" + function("int main(void)")},
    {"tests/io/gzip.c": '#include "io/gzip.h"\n#include <zlib.h>\n#include <cmocka.h>\n'},
    {"cl/ops/a.cl": '/* a */\n#include "lib/real.cl"\n#include "ops/b.cl"\n'},
    {"cl/optim/a.cl": '/* a */\n#include "lib/real.cl"\n#include "ops/b_table.h"\n'},
    {"tests/ops/golden.h": "/* G. */\n" + MANY * 300, "a.c": MANY, "b.c": MANY},
    {**LISTED, "src/ops/gelu.c": "static int x;\n", "cl/ops/gelu.cl": None},
    LISTED,
    {"src/io/image/a.c": "/* As io/b.c and image/a.c, after linux/lib/c.c; ops/NAME.c. */\n",
     "src/io/b.c": "x;\n", "tests/README.md": "`io/b.c`, src/io/c.c\n"},
    {"src/README.md": GLOSSARY + "| dead lane | m | x |\n", "src/ops/a.c": LANE},
]


def furnish(tree):
    """The tree with what the rules of rooms ask for, which other rules do not look at."""
    made = {}
    for path, text in tree.items():
        parts = path.split("/")
        if parts[0] == "src" and len(parts) > 2:
            made[f"src/{parts[1]}/README.md"] = "# A room\n"
        if parts[0] == "src" and path.endswith(".c") and text is not None:
            made[path] = text if text.startswith("/*") else "/* A. */\n" + text
        else:
            made[path] = text
    return made


def self_test(check):
    trees = [({path: text, "tests/x.c": "x;\n", "tests/y.c": "y;\n"}, said)
             for path, text, said in BAD]  # fmt: skip
    wrong = 0
    trees = [(furnish(tree), said) for tree, said in trees + BAD_TREES] + BAD_ROOMS
    good = [furnish(tree) for tree in GOOD] + GOOD_ROOMS
    for tree, said in trees:
        broken = check({path: text for path, text in tree.items() if text is not None})
        if len(broken) != 1 or said not in broken[0][2]:
            print(f"expected '{said}' alone for {list(tree)[0]}, found {broken}")
            wrong += 1
    for tree in good:
        broken = check({path: text for path, text in tree.items() if text is not None})
        if broken:
            print(f"expected nothing, found {broken}")
            wrong += 1
    print(f"{len(trees) + len(good)} trees, {wrong} judged wrongly")
    return 1 if wrong else 0
