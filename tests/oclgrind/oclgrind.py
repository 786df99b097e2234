#!/usr/bin/env python3
"""Runs every kernel under Oclgrind: oclgrind.py PROGRAM CL_FOLDER cpu|gpu.

Fails when the program does, when Oclgrind reports anything, or when a kernel of CL_FOLDER never
ran. Exits with 77 where Oclgrind is not installed.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools/static"))
from rows import kernel_classes  # noqa: E402

SKIPPED = 77
KERNEL = re.compile(r"\b(?:\w*KERNEL|__kernel)\s+void\s+(\w+)\s*\(")
RAN = re.compile(r"Instructions executed for kernel '(\w+)'")

# Oclgrind 21.10 simulates what clang gives it, but not all that its optimizer makes: it knows
# no llvm.prefetch, no llvm.usub.sat, nor the marks that inlining a function with a noalias
# parameter leaves, and widens a vector's true to -1. So nothing is optimized, which
# --uninitialized demands anyway, and nothing inlined. Networks have their memory filled with
# zeros: there is nothing uninitialized in it to be found. A GPU's batch tile has 32 lanes, or
# as many as a work-group may: 4 show all in an eighth of the time, but for blocks of matrices.
COMMON = ["--data-races", "--inst-counts", "--build-options",
          "-cl-opt-disable -Dalways_inline= -D__builtin_prefetch(...)="]  # fmt: skip
COUNTS = re.compile(r"^\d+ warnings? generated\.$", re.M)
FOUR = ["--max-wgsize", "4"]
LOCAL = ["--local-mem-size", "1048576"]  # products of matrices ask for much of it on CPUs
PARTS = {
    "cpu": {"operations": ["--uninitialized", *LOCAL, *FOUR], "networks": FOUR},
    "gpu": {"operations": ["--uninitialized", *FOUR], "networks": FOUR,
            "wide": ["--uninitialized", "--max-wgsize", "64"],
            "endings": ["--max-wgsize", "64"]},
}  # fmt: skip


# What never runs here: kernels between those of clFFT and CLBlast, which need larger
# work-groups.
BEYOND = "products/library/"
LEFT_OUT = "left out: products/library (between the kernels of clFFT and CLBlast)"


# What the cases reach in one class alone: walks over all steps in one launch, and sums of a
# layer norm's fused gradients, are for CPUs; of small sizes CPUs need no other. Convolutions
# with strides have a kernel of their own on CPUs, weight gradients of depthwise ones have one
# in either class; bias gradients of matrices have one on GPUs, as have softmax of many channels
# and what comes behind sums, which on CPUs only those of libraries leave to it.
ONE_CLASS = {
    "dense_bias": "gpu", "ending_finish": "gpu",
    "attention_all": "cpu", "attention_keys": "gpu", "attention_queries": "gpu",
    "attention_group_forward": "gpu", "attention_group_keys": "gpu",
    "attention_group_queries": "gpu",
    "conv2d_strided": "cpu", "conv2d_depthwise_weights": "cpu",
    "layer_norm_total_lanes": "cpu", "recurrent_forward": "cpu", "recurrent_backward": "cpu",
    "layer_norm_total": "gpu", "recurrent_begin": "gpu", "recurrent_step": "gpu",
    "recurrent_gates": "gpu", "recurrent_end": "gpu", "recurrent_candidate": "gpu",
    "recurrent_reset": "gpu", "sliced_softmax_forward": "gpu", "sliced_softmax_backward": "gpu",
    "sliced_logits_forward": "gpu", "sliced_logits_backward": "gpu",
}  # fmt: skip


def is_wanted(source, kernel_class, classes):
    """Whether a kernel file is for this class, and can run here."""
    kinds = classes.get(source.removesuffix(".cl"), {kernel_class})
    return kernel_class in kinds and not source.startswith(BEYOND)


def environment(kernel_class, cache):
    """Oclgrind's compiler is not safe in several threads; small vectors are enough."""
    changes = {
        "LOCKSTEP_CLASS": kernel_class,
        "LOCKSTEP_VECTOR": "4",
        "LOCKSTEP_BUILD_THREADS": "1",
        "LOCKSTEP_CACHE": str(cache),
    }
    return {**os.environ, **changes, "LOCKSTEP_DEVICE": "0"}


def run(program, part, options, kernel_class, folder):
    """The names of the kernels that ran, and what was wrong.

    A log file would be emptied by every context that the program creates; standard error has
    the compiler's counts in it, too.
    """
    command = ["oclgrind", "--log", "/dev/stderr", *COMMON, *options, program, part]
    done = subprocess.run(
        command, env=environment(kernel_class, folder / part), capture_output=True, text=True
    )
    wrong = COUNTS.sub("", done.stderr)
    if "Oclgrind" not in done.stdout:
        wrong += "\nthe program ran on another device"
    if done.returncode != 0:
        wrong += f"\nexit status {done.returncode}"
    return set(RAN.findall(done.stdout)), wrong.strip()


def main(program, kernels, kernel_class):
    if not shutil.which("oclgrind"):
        print("skipped: Oclgrind is not installed")
        return SKIPPED
    classes = kernel_classes(Path(kernels).resolve().parent)
    known = {
        name
        for path in Path(kernels).rglob("*.cl")
        if is_wanted(path.relative_to(kernels).as_posix(), kernel_class, classes)
        for name in KERNEL.findall(path.read_text())
        if ONE_CLASS.get(name, kernel_class) == kernel_class
    }
    assert len(known) > 30, f"only {len(known)} kernels found in {kernels}"
    failed, ran = False, set()
    print(LEFT_OUT)
    with tempfile.TemporaryDirectory() as folder:
        for part, options in PARTS[kernel_class].items():
            names, wrong = run(program, part, options, kernel_class, Path(folder))
            ran |= names
            print(f"{part}: {len(names)} kernels: {wrong[:8000] or 'nothing found'}")
            failed |= bool(wrong)
    for name in sorted(known - ran):
        print(f"kernel {name} never ran: give it a case in tests/oclgrind/kernels.c")
    return 1 if failed or known - ran else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
