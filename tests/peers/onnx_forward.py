#!/usr/bin/env python3
"""Predictions of a run beside onnxruntime on the model exported of it, in turns:

  python3 tests/peers/onnx_forward.py build/src/liblockstep.so RUN MODEL.onnx... --batch 16 32

Each round computes a batch with each of them as often as fits into --seconds. Prints the median
images/s of all rounds, and the median of the rounds' ratios: ours to the best of the others.
onnxruntime gets floats as the first layer reads them, a library call of ours pixels."""
import argparse
import ctypes
import statistics
import time

import numpy
import onnxruntime

parser = argparse.ArgumentParser()
parser.add_argument('library')
parser.add_argument('run')
parser.add_argument('models', nargs='+')
parser.add_argument('--batch', type=int, nargs='+', default=[16])
parser.add_argument('--rounds', type=int, default=5)
parser.add_argument('--seconds', type=float, default=2)
parser.add_argument('--threads', type=int, default=2)
wanted = parser.parse_args()
lockstep = ctypes.CDLL(wanted.library)


def ours(batch):
    """A function that computes a batch once."""
    predictor, shape, classes = ctypes.c_void_p(), (ctypes.c_int64 * 3)(), ctypes.c_int()
    status = lockstep.lk_predictor_open(wanted.run.encode(), None, ctypes.c_int64(batch),
                                        ctypes.byref(predictor))
    if status:
        lockstep.lk_last_error.restype = ctypes.c_char_p
        raise SystemExit(f'lk_predictor_open: {status}')
    lockstep.lk_predictor_shape(predictor, shape, ctypes.byref(classes))
    images = numpy.random.default_rng(1).integers(0, 256, (batch, *shape), numpy.uint8)
    found = numpy.zeros((batch, classes.value), numpy.float32)

    def once():
        assert lockstep.lk_predictor_run(predictor, ctypes.c_int64(batch),
                                         images.ctypes.data_as(ctypes.c_void_p),
                                         found.ctypes.data_as(ctypes.c_void_p)) == 0
    return once, lambda: lockstep.lk_predictor_close(predictor)


def theirs(path, batch):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = wanted.threads
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=['CPUExecutionProvider'])
    given = session.get_inputs()[0]
    image = numpy.random.default_rng(1).normal(size=(batch, *given.shape[1:]))
    feed = {given.name: image.astype(numpy.float32)}
    return lambda: session.run(None, feed)


def rate(once, batch):
    count, start = 0, time.perf_counter()
    while count == 0 or time.perf_counter() - start < wanted.seconds:
        once()
        count += batch
    return count / (time.perf_counter() - start)


for batch in wanted.batch:
    mine, close = ours(batch)
    turns = {'lockstep': mine, **{m: theirs(m, batch) for m in wanted.models}}
    for once in turns.values():
        once()
    rounds = [{name: rate(once, batch) for name, once in turns.items()}
              for _ in range(wanted.rounds)]
    for name in turns:
        print(f'batch {batch}: {name}: {statistics.median(r[name] for r in rounds):.1f} /s')
    ratios = [r['lockstep'] / max(r[m] for m in wanted.models) for r in rounds]
    print(f'batch {batch}: {statistics.median(ratios):.2f} times the best of the others '
          f'({min(ratios):.2f} to {max(ratios):.2f})', flush=True)
    close()
