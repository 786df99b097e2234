"""What AMD's compiler makes of a kernel: clang's back end, whose assembly says all of it."""
import re

from loops import Instruction, main_loop
from toolbox import Result

CHIPS = {
    "gfx900": "amdgcn--amdhsa",
    "gfx906": "amdgcn--amdhsa",
    "gfx90a": "amdgcn-mesa-mesa3d",
    "gfx1030": "amdgcn-mesa-mesa3d",
    "gfx1100": "amdgcn-mesa-mesa3d",
}
FEW = ("gfx90a", "gfx1100")
WAITS = ("s_waitcnt", "s_nop", "s_delay_alu", "s_clause")


def assembly(text):
    code, labels = [], {}
    for line in text.splitlines():
        label = re.match(r"(\.LBB\w+):", line)
        if label:
            labels[label[1]] = len(code)
        found = re.match(r"\s+([a-z]\w+)\s*(.*)", line)
        if not found:
            continue
        target = re.search(r"(\.LBB\w+)", found[2]) if "branch" in found[1] else None
        falls = found[1] not in ("s_branch", "s_endpgm", "s_setpc_b64")
        code.append(Instruction(found[1], target[1] if target else "", falls))
    return code, labels


def weight(name):
    """Waits are no work; packed and dual instructions are two."""
    if name.startswith(WAITS):
        return 0, 0
    two = 2 if name.startswith(("v_pk_", "v_dual_")) else 1
    return (two if re.match(r"v_(pk_|dual_)?(fma|fmac|mac)", name) else 0), two


def number(text, name):
    found = re.search(rf"; {name}: (\d+)", text)
    return int(found[1]) if found else 0


def measure(job, folder, chips):
    return [
        result
        for chip in chips
        if job.has(bitcode(job, chip))
        for result in compile_for(job, folder, chip)
    ]


def bitcode(job, chip):
    """Older libraries have one file for the ABI of ROCm, newer ones one for each chip."""
    names = [f"{chip}-amdgcn-mesa-mesa3d.bc", f"{CHIPS[chip]}.bc"]
    return next((name for name in names if job.has(name)), names[0])


def compile_for(job, folder, chip):
    name = bitcode(job, chip)
    target = "amdgcn-mesa-mesa3d" if "mesa" in name else CHIPS[chip]
    text = folder / f"{chip}.s"
    said = job.clang(["-target", target, f"-mcpu={chip}", "-nogpulib"], name, [], text)
    if said:
        return [Result("amd", chip, job, job.source, wrong=said)]
    shown = text.read_text()
    kernels = job.pick(re.findall(r"^(\w+): +; @", shown, re.M))
    return [describe(job, chip, kernel, shown) for kernel in kernels]


def describe(job, chip, kernel, shown):
    start = re.search(rf"^{kernel}:", shown, re.M).start()
    end = shown.index(".Lfunc_end", start)
    notes = shown[end : end + 8000].split("\n\t.text")[0]
    waves = number(notes, "Occupancy")
    items = -(-job.items // (32 if chip.startswith("gfx1") else 64))
    return Result("amd", chip, job, kernel, registers=number(notes, "NumVgprs"),
                  spills=number(notes, "ScratchSize"), local=number(notes, "LDSByteSize"),
                  size=number(notes, "codeLenInByte"), waves=waves,
                  groups=max(1, 4 * waves // items),
                  share=main_loop(*assembly(shown[start:end]), weight))  # fmt: skip
