"""The compilers that are here, and what they are asked to compile."""
import functools
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "clang": "clang-19 libclang-cpp19 libclang-common-19-dev libllvm19 libclc-19 libclc-19-dev",
    "ocloc": "intel-opencl-icd libigc1 libigdfcl1 libigdgmm12 libopencl-clang14 "
             "libllvmspirvlib14 libclang-cpp14 libllvm14",
}  # fmt: skip


def tools_folder():
    """No part of $LOCKSTEP_CACHE, which one empties for runs from a cold start."""
    default = os.path.expanduser("~/.cache/lockstep/gpu-compilers")
    return Path(os.environ.get("LOCKSTEP_GPU_COMPILERS", default))


def run(words):
    libraries = [str(p) for p in tools_folder().glob("usr/lib/*-linux-gnu")]
    path = ":".join(libraries + [os.environ.get("LD_LIBRARY_PATH", "")]).strip(":")
    own = str(words[0]).startswith(str(tools_folder()))
    env = {**os.environ, "LD_LIBRARY_PATH": path} if own and path else None
    return subprocess.run([str(w) for w in words], env=env, capture_output=True, text=True)


@functools.cache
def find_tool(name):
    for place in [tools_folder(), Path("/usr/local/cuda/bin")]:
        for path in [*place.glob(name), *place.glob("usr/bin/" + name)]:
            return path
    found = shutil.which(name)
    return Path(found) if found else None


def fetch():
    """Unpacks the compilers' Debian packages below tools_folder(): nothing is installed. Not
    every release has all."""
    folder = tools_folder()
    folder.mkdir(parents=True, exist_ok=True)
    for tool, names in PACKAGES.items():
        with tempfile.TemporaryDirectory() as packages:
            done = subprocess.run(["apt-get", "download", *names.split()], cwd=packages)
            if done.returncode != 0:
                print(f"no {tool}: its Debian packages could not be fetched")
                continue
            for package in Path(packages).glob("*.deb"):
                subprocess.run(["dpkg", "-x", package, folder], check=True)


class Compiler(NamedTuple):
    clang: Path
    bitcode: Path  # a folder of libclc


TRIAL = ["-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header"]


def works(compiler):
    """clang refuses a libclc of a later version."""
    file = compiler.bitcode / "nvptx64--nvidiacl.bc"
    link = ["-Xclang", "-mlink-builtin-bitcode", "-Xclang", file]
    command = [compiler.clang, *TRIAL, "-target", "nvptx64--nvidiacl", *link, "-S", "-o",
               "/dev/null", "/dev/null"]  # fmt: skip
    return file.exists() and run(command).returncode == 0


@functools.cache
def compilers():
    """Newest first."""
    own = tools_folder()
    pairs = [(path, own / "usr/lib/clc") for path in own.glob("usr/lib/llvm-*/bin/clang")]
    for version in range(21, 13, -1):
        path = shutil.which(f"clang-{version}")
        if path:
            pairs.append((Path(path), Path("/usr/lib/clc")))
    return [pair for pair in (Compiler(*p) for p in pairs) if works(pair)]


@dataclass(frozen=True)
class Job:
    source: str
    kernels: tuple  # those to tell of; (): all there are
    options: str
    items: int = 32
    what: str = ""  # "weights 128x128x8"; of one word or none: no product of matrices
    vendors: tuple = ("nvidia", "amd", "intel")  # that ship it
    is_default: tuple = ()  # vendors whose first tile it is

    def is_product(self):
        return " " in self.what

    def text(self):
        def included(match):
            below = "cl" if (ROOT / "cl" / match[1]).exists() else "src"  # C reads it, too
            return re.sub(INCLUDE, included, (ROOT / below / match[1]).read_text())

        return re.sub(INCLUDE, included, (ROOT / "cl" / self.source).read_text())

    def pick(self, there):
        return [name for name in there if name in self.kernels or not self.kernels]

    def definitions(self):
        numbers = "-DREAL=float -DREAL_BYTES=4 -DLANES=32 -DVECTOR=1 "
        return (numbers + self.options).split()

    @staticmethod
    def has(bitcode):
        return any((c.bitcode / bitcode).exists() for c in compilers())

    def clang(self, target, bitcode, more, to):
        """Compiles; what the compiler said."""
        compiler = next(c for c in compilers() if (c.bitcode / bitcode).exists())
        file = to.parent / "kernel.cl"
        file.write_text(self.text())
        done = run([compiler.clang, *TRIAL, *target, "-Xclang", "-mlink-builtin-bitcode",
                    "-Xclang", compiler.bitcode / bitcode, *self.definitions(), *more, "-O3",
                    "-S", file, "-o", to])  # fmt: skip
        return done.stderr


INCLUDE = re.compile(r'^#include "([^"]+)"\n', re.M)


class Result(NamedTuple):
    vendor: str
    chip: str
    job: Job
    kernel: str
    registers: int = 0
    spills: int = 0  # bytes
    local: int = 0  # bytes
    groups: int = 0  # of a compute unit at once
    waves: float = 0  # of a scheduler at once
    size: int = 0  # bytes of code
    share: tuple = None  # of multiply-adds in the main loop
    note: str = ""
    wrong: str = ""

    def percent(self):
        return 100 * self.share.sums / self.share.all if self.share else 0
