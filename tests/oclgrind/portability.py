#!/usr/bin/env python3
"""Trains on another device and compares the losses, then runs operations' tests there:

    portability.py PROGRAM WHERE [TEST...] [once TEST...]

WHERE is a key of PLACES. Tests after the word `once` run each kernel once. Exits with 77 where
that device cannot be had, and says which.
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
TOLERANCE = 1e-4
HANGS = 240  # seconds; the longest takes 60 beside much other work

# llvmpipe ends the loops of a work-item without a word after 65,535 iterations in all.
MESA = {"RUSTICL_ENABLE": "llvmpipe,swrast", "platform": "rusticl"}
# Debian's Clover calls itself 1.1, and takes 1.2 when told to. Its class is that of GPUs.
CLOVER = {"LP_CL": "1", "CLOVER_PLATFORM_VERSION_OVERRIDE": "1.2",
          "CLOVER_DEVICE_VERSION_OVERRIDE": "1.2", "CLOVER_DEVICE_CLC_VERSION_OVERRIDE": "1.2",
          "platform": "Clover", "networks": "float_networks"}  # fmt: skip
INTEL = {"platform": "Intel(R) OpenCL"}
# 16 KiB of local memory and work-groups of 64; the path is "" where layers cannot be had.
SMALL = {"OPENCL_LAYERS": os.environ.get("LOCKSTEP_SMALL_LAYER", "")}
# Compiling sums by sub-groups, Intel's compiler reads memory that it has freed. It dies each
# time where malloc overwrites that (MALLOC_PERTURB_, set by meson), else one time in some ten.
SUBGROUPS = {"LOCKSTEP_SUBGROUPS": "1", "MALLOC_PERTURB_": "0"}
NO_SHUFFLES = {"LOCKSTEP_SUBGROUPS": "0"}
PLACES = {
    "gpu_kernels": {"LOCKSTEP_CLASS": "gpu"},
    "vector_4": {"LOCKSTEP_CLASS": "cpu", "LOCKSTEP_VECTOR": "4"},
    "vector_8": {"LOCKSTEP_CLASS": "cpu", "LOCKSTEP_VECTOR": "8"},
    "vector_16": {"LOCKSTEP_CLASS": "cpu", "LOCKSTEP_VECTOR": "16"},
    "part_of_device": {"LOCKSTEP_DEVICE": "0/2"},
    "pocl_basic": {"POCL_DEVICES": "basic", "platform": "Portable Computing Language"},
    "small_cpu_kernels": {"LOCKSTEP_CLASS": "cpu", **SMALL},
    "small_cpu_conv2d": {"LOCKSTEP_CLASS": "cpu", **SMALL},
    "small_gpu_kernels": {"LOCKSTEP_CLASS": "gpu", **SMALL},
    "rusticl_cpu_kernels": {"LOCKSTEP_CLASS": "cpu", **MESA},
    "rusticl_gpu_kernels": {"LOCKSTEP_CLASS": "gpu", **MESA},
    "clover_gpu_kernels": CLOVER,
    "intel_cpu_kernels": {"LOCKSTEP_CLASS": "cpu", **INTEL},
    "intel_gpu_kernels": {"LOCKSTEP_CLASS": "gpu", **INTEL, **SUBGROUPS},
}


def use_intel(changes, folder):
    """Intel's CPU runtime, where it is installed, or a folder of Python packages has it."""
    places = [os.environ.get("LOCKSTEP_INTEL_OPENCL", ""), sys.prefix + "/lib",
              os.path.expanduser("~/.cache/lockstep/intel-opencl/lib")]  # fmt: skip
    found = next((p for p in places if p and Path(p, "libintelocl.so").exists()), None)
    vendors = Path(os.environ.get("OCL_ICD_VENDORS", "/etc/OpenCL/vendors"))
    if found and vendors.is_dir():
        for file in vendors.glob("*.icd"):
            Path(folder, file.name).write_text(file.read_text())
        Path(folder, "intel.icd").write_text(f"{found}/libintelocl.so\n")
        changes["OCL_ICD_VENDORS"] = folder
        changes["LD_LIBRARY_PATH"] = os.environ.get("LD_LIBRARY_PATH", "")
    elif not found:
        print("Intel's runtime: python3 -m venv ~/.cache/lockstep/intel-opencl, and with its "
              "pip install intel-opencl-rt intel-cmplr-lib-rt")


def call(program, part, changes):
    """Once more, twice at most, where the driver's compiler died in a pass of its own, or has
    not ended: Clover registers LLVM's targets whenever it compiles, and two threads that do
    so make their list a ring, in which TargetRegistry::lookupTarget() goes round for ever."""
    env = {**os.environ, **changes}
    for _ in range(3):
        try:
            done = subprocess.run([program, part], env=env, capture_output=True, text=True,
                                  timeout=HANGS)
        except subprocess.TimeoutExpired:
            print(f"# {part} has not ended in {HANGS} s")
            continue
        if done.returncode >= 0 or 'Running pass "' not in done.stderr:
            return done
        print(f"# the driver's compiler ended with signal {-done.returncode}")
    sys.exit(f"{part}: the driver's compiler has failed three times")


def losses(program, changes, networks):
    """The program's lines: {"adam 1": 1.199, ...}; None: there is no such device."""
    found = {}
    for part in networks, "wide_network":
        done = call(program, part, changes)
        print(done.stdout.partition("\n")[0])
        if done.returncode == SKIPPED:
            print(done.stderr.strip())
            return None
        if done.returncode != 0:
            sys.exit(f"exit status {done.returncode}: {done.stderr[-4000:]}")
        words = [line.split() for line in done.stdout.splitlines() if not line.startswith("#")]
        found.update((" ".join(line[:2]), float(line[2])) for line in words)
    return found


def find_device(program, changes, platform):
    """The number of the platform's first device; None: it has none."""
    for index in range(16):
        found = call(program, "device", {**changes, "LOCKSTEP_DEVICE": str(index)})
        if found.returncode != 0:
            return None
        if found.stdout.startswith(f"# {platform},"):
            return str(index)
    return None


def shuffles(program, changes):
    """Whether the device sums over lanes by way of its sub-groups."""
    return ", no sub-groups" not in call(program, "device", changes).stdout


def compare(program, changes, networks):
    """Whether the device trains as the standard one does, and to the same bits with sub-groups
    as without; None: it is not there."""
    expected = losses(program, {}, networks)
    found = losses(program, changes, networks)
    if expected is None or found is None:
        return None
    assert len(expected) >= 9 and found.keys() == expected.keys(), (expected, found)
    wrong = [s for s in expected if not abs(found[s] - expected[s]) <= TOLERANCE]
    for step in expected:
        mark = "   <- wrong" if step in wrong else ""
        print(f"{step:12} {expected[step]:.9f} {found[step]:.9f}{mark}")
    if not shuffles(program, changes):
        return not wrong
    plain = losses(program, {**changes, **NO_SHUFFLES}, networks)
    print("sums over lanes without sub-groups: " + ("equal" if plain == found else "NOT equal"))
    return not wrong and plain == found


def run_tests(tests, changes):
    """An operation's test chooses classes of kernels itself, and says what it leaves out."""
    right = True
    env = {**os.environ, **changes}
    env.pop("LOCKSTEP_CLASS", None)
    for test in tests:
        if test == "once":
            env["LOCKSTEP_TEST_ONCE"] = "1"
            continue
        done = subprocess.run([test], env=env, capture_output=True, text=True, errors="replace")
        lines = (done.stdout + done.stderr).splitlines()
        print(f"{Path(test).name}: {'passed' if done.returncode == 0 else 'FAILED'}")
        said = ("skipped: ",) if done.returncode == 0 else ("skipped: ", "ERROR", "not ok")
        print(*(x[:300] for x in lines if any(word in x for word in said)), sep="\n")
        right &= done.returncode == 0
    return right


def main(program, where, *tests):
    changes = dict(PLACES[where])
    platform = changes.pop("platform", None)
    networks = changes.pop("networks", "networks")
    with tempfile.TemporaryDirectory() as folder:
        if where.startswith("intel"):
            use_intel(changes, folder)
        if changes.get("OPENCL_LAYERS") == "":
            print("skipped: no CL/cl_layer.h to build layers of OpenCL with")
            return SKIPPED
        if platform:
            changes["LOCKSTEP_DEVICE"] = find_device(program, changes, platform)
            if changes["LOCKSTEP_DEVICE"] is None:
                print(f"skipped: no device of platform {platform}")
                return SKIPPED
        right = compare(program, changes, networks)
        if right is None:
            print(f"skipped: no such device: {where}")
            return SKIPPED
        return 0 if run_tests(tests, changes) and right else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
