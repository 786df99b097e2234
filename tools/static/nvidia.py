"""What NVIDIA's assembler makes of a kernel: clang to PTX, ptxas to machine code."""
import re

from loops import Instruction, main_loop
from toolbox import Result, find_tool, run

CHIPS = {"sm_80": 164 * 1024, "sm_90": 228 * 1024}  # local memory of a compute unit, bytes
FEW = ["sm_90"]
PTX = ["-target", "nvptx64--nvidiacl", "-Xclang", "-target-cpu", "-Xclang", "sm_80", "-Xclang",
       "-target-feature", "-Xclang", "+ptx70"]  # fmt: skip
SASS = re.compile(r"\s*/\*[0-9a-f]+\*/\s+(?:\{\s*)?(@!?U?P\w+\s+)?([A-Z][\w.]*)(.*?);")
BITCODE = "nvptx64--nvidiacl.bc"


def sass(listing):
    code, labels = [], {}
    for line in listing.splitlines():
        label = re.match(r"\s*(\.L\w+):", line)
        if label:
            labels[label[1]] = len(code)
        found = SASS.match(line)
        if not found:
            continue
        condition, name, rest = found.groups()
        target = re.search(r"`\((\.L\w+)\)", rest) if name.startswith("BRA") else None
        ends = name.split(".")[0] in ("BRA", "EXIT", "RET", "BRX")
        code.append(Instruction(name, target[1] if target else "", bool(condition) or not ends))
    return code, labels


def ptx(text):
    code, labels = [], {}
    for line in text.splitlines():
        label = re.match(r"(\$L\w+):", line)
        if label:
            labels[label[1]] = len(code)
        found = re.match(r"\s+(@!?%\w+\s+)?([a-z][\w.]*)\s*(.*);", line)
        if not found or found[2].startswith("."):
            continue
        target = re.search(r"(\$L\w+)", found[3]) if found[2].startswith("bra") else None
        ends = found[2].split(".")[0] in ("bra", "ret", "exit")
        falls = bool(found[1]) or not ends
        code.append(Instruction(found[2], target[1] if target else "", falls))
    return code, labels


def weight(name):
    """PTX's moves and conversions of addresses become no instructions; products of matrix units
    count as one."""
    if name.startswith(("FFMA", "fma.", "HMMA", "mma.")):
        return 1, 1
    return 0, int(name != "NOP" and not name.startswith(("mov.", "cvta.")))


def occupancy(registers, items, local, chip):
    """Groups that a compute unit holds, and warps that each of its four schedulers gets."""
    warps = (items + 31) // 32
    by_registers = 65536 // (-(-max(registers, 1) // 8) * 8 * 32 * warps)
    by_local = CHIPS[chip] // (local + 1024)
    groups = min(by_registers, by_local, 64 // warps, 32)
    return groups, groups * warps / 4


def measure(job, folder, chips):
    """A Result for each chip and kernel."""
    text = folder / "kernel.ptx"
    said = job.clang(PTX, BITCODE, ["-DFP_FAST_FMAF=1"], text)
    if said:
        return [Result("nvidia", "sm_80", job, job.source, wrong=said)]
    if not find_tool("ptxas"):
        return [
            Result("nvidia", "PTX", job, kernel, share=ptx_share(text, kernel), note="PTX only")
            for kernel in kernels_of(job, text)
        ]
    return [result for chip in chips for result in assemble(job, folder, text, chip)]


def kernels_of(job, text):
    return job.pick(re.findall(r"\.entry (\w+)", text.read_text()))


def ptx_share(text, kernel):
    shown = text.read_text()
    code, labels = ptx(shown[shown.index(f".entry {kernel}(") :].split("\n}")[0])
    return main_loop(code, labels, weight)


def assemble(job, folder, text, chip):
    binary = folder / f"{chip}.cubin"
    done = run([find_tool("ptxas"), f"-arch={chip}", "-v", text, "-o", binary])
    if done.returncode != 0:
        return [Result("nvidia", chip, job, job.source, wrong=done.stderr)]
    disassembler = find_tool("nvdisasm")
    shown = run([disassembler, "-c", binary]).stdout if disassembler else ""
    parts = re.split(r"^\s*\.section\s+\.text\.(\w+).*$", shown, flags=re.M)
    listings = dict(zip(parts[1::2], parts[2::2]))
    results = []
    for kernel in kernels_of(job, text):
        part = done.stderr[done.stderr.index(f"'{kernel}'") :].split("Compiling")[0]

        def number(pattern):
            found = re.search(pattern, part)
            return int(found[1]) if found else 0

        result = Result("nvidia", chip, job, kernel, registers=number(r"Used (\d+) registers"),
                        spills=number(r"(\d+) bytes spill stores"),
                        local=number(r"(\d+) bytes smem"))  # fmt: skip
        groups, waves = occupancy(result.registers, job.items, result.local, chip)
        share, size = ptx_share(text, kernel), 0
        if kernel in listings:
            code, labels = sass(listings[kernel])
            share, size = main_loop(code, labels, weight), 16 * len(code)
        note = "" if disassembler else "share of PTX"
        results.append(result._replace(groups=groups, waves=waves, share=share, size=size,
                                       note=note))  # fmt: skip
    return results
