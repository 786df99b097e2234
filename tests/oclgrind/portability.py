#!/usr/bin/env python3
"""Trains on another device and compares the losses: portability.py PROGRAM WHERE.

WHERE is a key of PLACES. Exits with 77 where that device cannot be had.
"""
import os
import subprocess
import sys

SKIPPED = 77
TOLERANCE = 1e-4

# llvmpipe ends the loops of a work-item without a word after 65,535 iterations in all.
MESA = {"RUSTICL_ENABLE": "llvmpipe,swrast", "platform": "rusticl"}
PLACES = {
    "gpu_kernels": {"LOCKSTEP_CLASS": "gpu"},
    "vector_4": {"LOCKSTEP_CLASS": "cpu", "LOCKSTEP_VECTOR": "4"},
    "vector_8": {"LOCKSTEP_CLASS": "cpu", "LOCKSTEP_VECTOR": "8"},
    "vector_16": {"LOCKSTEP_CLASS": "cpu", "LOCKSTEP_VECTOR": "16"},
    "part_of_device": {"LOCKSTEP_DEVICE": "0/2"},
    "pocl_basic": {"POCL_DEVICES": "basic", "platform": "Portable Computing Language"},
    "rusticl_cpu_kernels": {"LOCKSTEP_CLASS": "cpu", **MESA},
    "rusticl_gpu_kernels": {"LOCKSTEP_CLASS": "gpu", **MESA},
}


def call(program, part, changes):
    env = {**os.environ, **changes}
    return subprocess.run([program, part], env=env, capture_output=True, text=True)


def losses(program, changes):
    """The program's lines: {"adam 1": 1.199, ...}; None: there is no such device."""
    done = call(program, "networks", changes)
    print(done.stdout.partition("\n")[0])
    if done.returncode == SKIPPED:
        print(done.stderr.strip())
        return None
    if done.returncode != 0:
        sys.exit(f"exit status {done.returncode}: {done.stderr[-4000:]}")
    words = [line.split() for line in done.stdout.splitlines() if not line.startswith("#")]
    return {" ".join(line[:2]): float(line[2]) for line in words}


def find_device(program, changes, platform):
    """The number of the platform's first device; None: it has none."""
    for index in range(16):
        found = call(program, "device", {**changes, "LOCKSTEP_DEVICE": str(index)})
        if found.returncode != 0:
            return None
        if found.stdout.startswith(f"# {platform},"):
            return str(index)
    return None


def main(program, where):
    changes = dict(PLACES[where])
    platform = changes.pop("platform", None)
    if platform:
        changes["LOCKSTEP_DEVICE"] = find_device(program, changes, platform)
        if changes["LOCKSTEP_DEVICE"] is None:
            print(f"skipped: no device of platform {platform}")
            return SKIPPED
    expected, found = losses(program, {}), losses(program, changes)
    if expected is None or found is None:
        print("skipped: no such device")
        return SKIPPED
    assert len(expected) >= 9 and found.keys() == expected.keys(), (expected, found)
    wrong = [step for step in expected if not abs(found[step] - expected[step]) <= TOLERANCE]
    for step in expected:
        mark = "   <- wrong" if step in wrong else ""
        print(f"{step:12} {expected[step]:.9f} {found[step]:.9f}{mark}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
