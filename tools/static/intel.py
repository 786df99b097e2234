"""What Intel's compiler makes of a kernel: ocloc, whose patch tokens say how it runs."""
import re
import struct

from toolbox import Result, find_tool, run

CHIPS = ["skl", "tgllp", "dg2"]
FEW = ["dg2"]
LOCAL, SCRATCH, ENVIRONMENT = 15, 18, 23  # patch tokens


def tokens_of(shown, kernel):
    """{token: its 32-bit words} of a kernel in what `ocloc disasm` wrote."""
    part = shown.split(f"KernelName {kernel}\n")[1].split("KernelBinaryHeader")[0]
    found = {}
    for token, words in re.findall(r"Token (\d+)\n\s*\d+ Size \d+\n\s*Hex ([0-9a-f ]*)", part):
        data = bytes(int(byte, 16) for byte in words.split())
        found[int(token)] = struct.unpack(f"<{len(data) // 4}I", data[:len(data) // 4 * 4])
    return found


def describe(shown, kernel):
    tokens = tokens_of(shown, kernel)
    size = re.search(rf"KernelUnpaddedSize (\d+)\n\s*KernelName {kernel}\n", shown)
    return {"spills": tokens.get(SCRATCH, (0, 0))[1], "local": tokens.get(LOCAL, (0, 0))[1],
            "note": f"SIMD{tokens[ENVIRONMENT][3]}", "size": int(size[1])}  # fmt: skip


def measure(job, folder, chips):
    return [result for chip in chips for result in compile_for(job, folder / chip, chip)]


def compile_for(job, folder, chip):
    ocloc = find_tool("ocloc")
    folder.mkdir()
    file = folder / "kernel.cl"
    file.write_text(job.text())
    options = " ".join(["-cl-std=CL1.2", *job.definitions()])
    done = run([ocloc, "compile", "-file", file, "-device", chip, "-out_dir", folder, "-output",
                "kernel", "-options", options])  # fmt: skip
    said = (done.stdout + done.stderr).replace("Build succeeded.", "").strip()
    binary = next(folder.glob("kernel_*.bin"), None)
    if said or not binary:
        return [Result("intel", chip, job, job.source, wrong=said or "no binary")]
    run([ocloc, "disasm", "-file", binary, "-device", chip, "-dump", folder / "dump"])
    shown = (folder / "dump/PTM.txt").read_text()
    names = job.pick(re.findall(r"KernelName (\w+)", shown))
    return [Result("intel", chip, job, k, **describe(shown, k)) for k in names]
