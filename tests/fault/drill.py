#!/usr/bin/env python3
"""Trains while devices fail: drill.py PROGRAM LAYER [all]

Every row of the table is one kind of fault in one OpenCL function; it strikes at places spread
over a whole run, on lists of two and three devices. The run must end as if nothing had been:
the same parameters bit for bit, each step once, each sample counted once. Where no device is
left, it must end with status 4 and a checkpoint that a later run goes on from to the same
parameters. Without `all`, a sample of the table.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUN = """model:
  name: drill
  input: [28, 28, 1]
  layers:
    - average_pool: {size: 4}
    - conv2d: {filters: 4, kernel: 3}
    - batch_norm: {activation: relu}
    - flatten
    - dropout: {rate: 0.25}
    - dense: {units: 10}
    - softmax
data: synthetic:digits,count=200
train:
  epochs: 2
  batch_size: 32
  shards: 8
  split: all
  seed: 5
"""
SAMPLES, STEPS = 400, 14  # 7 batches an epoch, the last one of 8 samples
HANG_SECONDS = "1"
NO_DEVICE = 4
PLACES = 20

# name: (call, what the fault is, whether it must be noticed). One that must not be may slow a
# run down, but not cost a device; a long delay costs one where it is within a step.
MAY_BE = None
FAULTS = {
    "no_context": ("clCreateContext", "kind=error,code=-2", True),
    "no_queue": ("clCreateCommandQueue", "kind=error,code=-6", True),
    "no_memory": ("clCreateBuffer", "kind=error,code=-4", True),
    "buffer_too_large": ("clCreateBuffer", "kind=error,code=-61", True),
    "build_fails": ("clBuildProgram", "kind=error,code=-11,times=0", True),
    "build_loses_device": ("clBuildProgram", "kind=error,code=-36,sticky=1", True),
    "no_kernel": ("clCreateKernel", "kind=error,code=-5", True),
    "argument_fails": ("clSetKernelArg", "kind=error,code=-6", True),
    "launch_fails": ("clEnqueueNDRangeKernel", "kind=error,code=-5", True),
    "launch_loses_device": ("clEnqueueNDRangeKernel", "kind=error,code=-36,sticky=1", True),
    "launch_finds_no_device": ("clEnqueueNDRangeKernel", "kind=error,code=-2,sticky=1", True),
    "write_fails": ("clEnqueueWriteBuffer", "kind=error,code=-5", True),
    "read_loses_device": ("clEnqueueReadBuffer", "kind=error,code=-36,sticky=1", True),
    "map_fails": ("clEnqueueMapBuffer", "kind=error,code=-12", True),
    "unmap_loses_device": ("clEnqueueUnmapMemObject", "kind=error,code=-36,sticky=1", True),
    "marker_fails": ("clEnqueueMarkerWithWaitList", "kind=error,code=-5", True),
    "barrier_fails": ("clEnqueueBarrierWithWaitList", "kind=error,code=-5", True),
    "flush_loses_device": ("clFlush", "kind=error,code=-36,sticky=1", True),
    "finish_fails": ("clFinish", "kind=error,code=-5", True),
    "wait_fails": ("clWaitForEvents", "kind=error,code=-14", True),
    "kernel_fails": ("clEnqueueNDRangeKernel", "kind=event_error,code=-5", True),
    "upload_fails": ("clEnqueueWriteBuffer", "kind=event_error,code=-5", True),
    "map_ends_in_error": ("clEnqueueMapBuffer", "kind=event_error,code=-14", True),
    "launch_hangs": ("clEnqueueNDRangeKernel", "kind=hang", True),
    "wait_hangs": ("clWaitForEvents", "kind=hang", True),
    "kernel_hangs": ("clEnqueueNDRangeKernel", "kind=hang_event", True),
    "map_hangs": ("clEnqueueMapBuffer", "kind=hang_event", True),
    "sum_is_corrupt": ("clEnqueueMapBuffer", "kind=corrupt,bytes=1024", True),
    "sum_has_nan": ("clEnqueueMapBuffer", "kind=nan,bytes=1024", True),
    "result_is_corrupt": ("clEnqueueUnmapMemObject", "kind=corrupt,bytes=1024", True),
    "launch_is_late": ("clEnqueueNDRangeKernel", "kind=delay,ms=150", False),
    "launch_is_too_late": ("clEnqueueNDRangeKernel", "kind=delay,ms=1500", MAY_BE),
    "wait_is_too_late": ("clWaitForEvents", "kind=delay,ms=1500", MAY_BE),
    "times_hang": ("clGetEventProfilingInfo", "kind=hang", True),
    "no_times": ("clGetEventProfilingInfo", "kind=error,code=-7,times=0", False),
}
NAMES = {-2: "CL_DEVICE_NOT_AVAILABLE", -4: "CL_MEM_OBJECT_ALLOCATION_FAILURE",
         -5: "CL_OUT_OF_RESOURCES", -6: "CL_OUT_OF_HOST_MEMORY",
         -11: "CL_BUILD_PROGRAM_FAILURE", -12: "CL_MAP_FAILURE",
         -14: "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",
         -36: "CL_INVALID_COMMAND_QUEUE", -61: "CL_INVALID_BUFFER_SIZE"}  # fmt: skip


class Run:
    """One run of the program in a folder of its own, and all that it said, in its order."""

    def __init__(self, folder, devices, fault="", fresh=True, **more):
        self.folder, self.devices, self.fault = Path(folder), devices, fault
        (self.folder / "drill.yaml").write_text(RUN)
        command = [PROGRAM, "train", "drill.yaml", "--run", "run", "--device", devices,
                   "--log-format", "jsonl"] + ["--fresh"] * fresh  # fmt: skip
        start = time.monotonic()
        try:
            done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL,
                                  env=environment(LOCKSTEP_FAULT=fault, **more), timeout=200,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.status, said = done.returncode, done.stdout
        except subprocess.TimeoutExpired as late:
            self.status, said = "none after 200 s", late.stdout or b""
        self.seconds = time.monotonic() - start
        self.lines = said.decode(errors="replace").splitlines()

    def messages(self):
        return [line for line in self.lines if line.startswith("lockstep: ")]

    def struck(self):
        return any(line.startswith("fault: call") for line in self.lines)

    def struck_in_time(self):
        """Before the run had ended and only cleaned up."""
        ends = [i for i, line in enumerate(self.lines) if '"event": "end"' in line]
        faults = [i for i, line in enumerate(self.lines) if line.startswith("fault: call")]
        return bool(faults) and (not ends or faults[0] < ends[0])

    def events(self, kind):
        path = self.folder / "run/metrics.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [event for event in map(json.loads, lines) if event["event"] == kind]

    def hash(self):
        ends = self.events("end")
        return ends[-1]["parameters_sha256"] if ends else None

    def ledger(self):
        """What is wrong with the steps of the whole run: each once, each sample once."""
        steps = self.events("step")
        found, samples = [s["step"] for s in steps], sum(s["samples"] for s in steps)
        if found != list(range(1, STEPS + 1)):
            yield f"steps {found}"
        if samples != SAMPLES:
            yield f"{samples} samples, {SAMPLES} expected"


def environment(**more):
    kept = {k: v for k, v in os.environ.items()
            if not k.startswith("LOCKSTEP_") or k == "LOCKSTEP_CACHE"}  # fmt: skip
    return kept | {"OPENCL_LAYERS": LAYER, "LOCKSTEP_HANG_SECONDS": HANG_SECONDS} | more


def judge(run, wanted, device, cause, is_noticed):
    """What is wrong with a run that a fault struck and that must have gone on."""
    if run.status != 0:
        yield f"exit status {run.status}"
        return
    if run.hash() != wanted:
        yield f"parameters {run.hash()}, {wanted} without the fault"
    yield from run.ledger()
    told = [m for m in run.messages() if f"device {device}" in m and re.search(cause, m)]
    if is_noticed and run.struck_in_time() and not told:
        yield f"no message names device {device} and {cause}"
    if is_noticed is False and any("is lost" in m for m in run.messages()):
        yield "a device was given up"


def run_cold(devices, fault=""):
    """A run that may compile kernels first: what a device computes alone needs some more."""
    with tempfile.TemporaryDirectory(prefix="lockstep-drill-") as folder:
        counts = Path(folder) / "counts"
        run = Run(folder, devices, fault, LOCKSTEP_FAULT_COUNT=str(counts),
                  LOCKSTEP_HANG_SECONDS="60")
        wrong = [f"exit status {run.status}"] if run.status else list(run.ledger())
        if wrong:
            sys.exit("\n".join([*run.lines, f"{devices}, '{fault}': {wrong}"]))
        return run.hash(), counts.read_text()


class Whole:
    """The undisturbed run of a device list: its parameters, and how many calls it makes."""

    def __init__(self, devices, alone):
        self.list, self.hash = devices, alone
        self.count = int(devices.split("*")[1])
        found, counts = run_cold(devices)
        if found != alone:
            sys.exit(f"{devices}: parameters {found}, one device has {alone}")
        self.calls = {}
        for line in counts.splitlines():
            device, call, count = line.split()
            self.calls[call, int(device)] = int(count)
        lost = [f"call=clEnqueueNDRangeKernel,device={device},nth=50,kind=error,sticky=1"
                for device in range(1, self.count)]  # fmt: skip
        for count in range(1, self.count):
            run_cold(devices, ";".join(lost[:count]))

    def places(self, call, most):
        """(device, nth) pairs, in turn on each device and spread over its whole run."""
        of = {device: self.calls.get((call, device), 0) for device in range(self.count)}
        every = [(device, nth) for device, n in of.items() for nth in range(1, n + 1)]
        if len(every) <= most:
            return every
        callers = [device for device, n in of.items() if n]
        chosen = []
        for i in range(most):
            device, share = callers[i % len(callers)], i / (most - 1) if most > 1 else 0.5
            chosen.append((device, 1 + int((of[device] - 1) * share)))
        return chosen


def report(name, run, wrong):
    if not wrong:
        return True
    print(f"{name}: {'; '.join(wrong)}\n  OPENCL_LAYERS={LAYER} LOCKSTEP_FAULT='{run.fault}' "
          f"LOCKSTEP_HANG_SECONDS={HANG_SECONDS} {PROGRAM} train drill.yaml --run run "
          f"--device '{run.devices}'", flush=True)  # fmt: skip
    for line in [line for line in run.lines if not line.startswith("{")][-12:]:
        print("  |", line)
    return False


def drill(name, whole, device, nth):
    """One fault on one device; the others go on. Shards move from device to device by their
    speed, so the device may make fewer calls than in the undisturbed run: then it strikes
    earlier."""
    call, what, is_noticed = FAULTS[name]
    code = re.search(r"code=(-\d+)", what)
    slow = re.search("hang|delay", what)
    cause = NAMES.get(int(code[1])) if code else "does not answer" if slow else "."
    if "event_error" in what:  # what waited for the command may tell first
        cause = f"{cause}|{NAMES[-14]}"
    if is_noticed and nth > 0.8 * whole.calls[call, device]:
        is_noticed = MAY_BE  # nobody may need the device's last results
    for place in (nth, nth // 2, nth // 4):
        with tempfile.TemporaryDirectory(prefix="lockstep-drill-") as folder:
            run = Run(folder, whole.list, f"call={call},nth={place},device={device},{what}")
            wrong = list(judge(run, whole.hash, device, cause, is_noticed))
            if run.struck() or place <= 1:
                break
    return report(name, run, wrong if run.struck() else [*wrong, "the fault never struck"])


def judge_last(run, whole):
    """What is wrong with a run whose devices all failed, and with going on from it."""
    if run.status != NO_DEVICE:
        yield f"exit status {run.status}, {NO_DEVICE} expected"
    if run.seconds > 10 and "hang" not in run.fault:
        yield f"took {run.seconds:.1f} s"
    saved = sorted((run.folder / "run/checkpoints").glob("*.safetensors"))
    steps = run.events("step")
    last = steps[-1]["step"] if steps else 0
    if steps and not saved:
        yield f"no checkpoint after step {last}"
    if saved:
        done = subprocess.run([PROGRAM, "eval", saved[-1]], cwd=run.folder,
                              env=environment(), capture_output=True, timeout=60)
        if done.returncode != 0:
            yield f"{saved[-1].name} cannot be evaluated: {done.stderr.decode()}"
    after = Run(run.folder, run.devices, fresh=False)
    if after.status != 0 or after.hash() != whole.hash:
        yield f"going on: exit status {after.status}, parameters {after.hash()}"
    yield from after.ledger()


def drill_all(whole, share, hangs):
    """Every device is lost, at about `share` of its run, in a way of its own."""
    ways = [("clEnqueueNDRangeKernel", "kind=error,code=-36,sticky=1"),
            ("clWaitForEvents", "kind=hang" if hangs else "kind=error,code=-5"),
            ("clEnqueueNDRangeKernel", "kind=event_error,code=-5,sticky=1")]  # fmt: skip
    faults = []
    for device in range(whole.count):
        call, what = ways[device]
        nth = max(1, int(whole.calls[call, device] * share))
        faults.append(f"call={call},nth={nth},device={device},{what}")
    with tempfile.TemporaryDirectory(prefix="lockstep-drill-") as folder:
        run = Run(folder, whole.list, ";".join(faults))
        return report("all_lost", run, list(judge_last(run, whole)))


def main(everything):
    most = PLACES if everything else 1
    failed = 0
    alone, _ = run_cold("0")
    wholes = [Whole("0*2", alone), Whole("0*3", alone)]
    for name, (call, _, _) in FAULTS.items():
        for whole in wholes if everything else wholes[len(name) % 2 :][:1]:
            places = whole.places(call, most)
            good = [drill(name, whole, *place) for place in places]
            failed += good.count(False)
            print(f"{name:24} {whole.list}  {good.count(True)} of {len(good)}", flush=True)
    for whole in wholes:
        shares = [i / most for i in range(most)] if everything else [0.6]
        good = [drill_all(whole, share, i % 2 == 1) for i, share in enumerate(shares)]
        failed += good.count(False)
        print(f"{'all_lost':24} {whole.list}  {good.count(True)} of {len(good)}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    PROGRAM, LAYER = map(os.path.abspath, sys.argv[1:3])
    sys.exit(main("all" in sys.argv[3:]))
