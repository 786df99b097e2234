#!/usr/bin/env python3
"""Models as PyTorch, Keras and TensorFlow export them, imported, computed and trained.

onnx_imports.py make FOLDER NAME...               NAME.onnx, and inputs NAME.x0.npy, ...
onnx_imports.py check LOCKSTEP FOLDER NAME...     import, and compare with onnxruntime
onnx_imports.py compute LOCKSTEP FOLDER NAME...   the same of lockstep run NAME.onnx
onnx_imports.py train LOCKSTEP FOLDER NAME...     some steps of training: the loss falls
onnx_imports.py steps LOCKSTEP FOLDER NAME...     weights after steps of SGD beside PyTorch's

A name is MODEL:EXPORTER, where the exporter is torch (torch.onnx with TorchScript), norms (the
same, which keeps batch norms apart), dynamo (torch.onnx with torch.export), keras (Keras 3's
export) or tf2onnx, each with -fixed behind it for a file that has the number of samples; all:
all of them with an open number, fixed: with a fixed one. make needs what onnx_models.py says;
the others onnx and onnxruntime, and steps PyTorch. It fails where one of the names does: check
and compute beyond a difference of 1e-4 of the largest number.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import time

import numpy as np

import onnx_models
from onnx_models import CLASSES, KERAS, PADDED, TORCH, WORDS

MOST_APART = 1e-4


def all_names(more=''):
    """All but those that an exporter cannot write."""
    return ([f'{m}:torch{more}' for m in TORCH if m != 'encoder_mask'] +
            [f'{m}:dynamo{more}' for m in TORCH if m not in PADDED] +
            [f'{m}:{e}{more}' for e in ('keras', 'tf2onnx') for m in KERAS])


# --- beside onnxruntime -------------------------------------------------------------------

def run(program, *arguments, folder='.'):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False,
                          cwd=folder)
    if done.returncode:
        raise RuntimeError(f'{arguments[0]}: {done.stderr.strip()[-400:]}')
    return done.stdout


def inputs_of(folder):
    """Names of the inputs of an imported model, with their shapes and types."""
    with open(os.path.join(folder, 'model.yaml'), encoding='utf-8') as file:
        return re.findall(r'^  ([\w/-]+): \{shape: \[([\d, ]*)\], type: (\w+)', file.read(),
                          re.M)


def import_model(program, folder, file):
    to = os.path.join(folder, file + '.imported')
    run(program, 'import', os.path.join(folder, file + '.onnx'), '-o', to, '--force')
    return to


def expected_of(folder, file):
    """The inputs as onnxruntime takes them, by their names, and its first output."""
    import onnxruntime
    session = onnxruntime.InferenceSession(os.path.join(folder, file + '.onnx'),
                                           providers=['CPUExecutionProvider'])
    types = {'tensor(int64)': np.int64, 'tensor(int32)': np.int32, 'tensor(bool)': bool}
    given = {each.name: np.load(os.path.join(folder, f'{file}.x{i}.npy')).astype(
        types.get(each.type, np.float32)) for i, each in enumerate(session.get_inputs())}
    return given, session.run(None, given)[0]


def computed(program, to, what, given):
    """The first output that lockstep run writes."""
    run(program, 'run', what, *given, '--output', to + '/values', '--force', '--math', 'strict')
    found, = os.listdir(to + '/values')
    return np.load(f'{to}/values/{found}')


def difference(found, expected):
    """The largest one, as a part of the largest number."""
    if found.shape != expected.shape:
        raise RuntimeError(f'shape {found.shape}, expected {expected.shape}')
    apart = float(abs(found - expected).max() / abs(expected).max())
    if not apart <= MOST_APART:
        raise RuntimeError(f'difference {apart:.1e}, expected at most {MOST_APART}')
    return apart


def check(program, folder, file):
    """(layers, the largest difference relative to the largest value, seconds of the import)"""
    begin = time.time()
    to = import_model(program, folder, file)
    seconds = time.time() - begin
    arrays, expected = expected_of(folder, file)
    given = []
    inputs, values = inputs_of(to), list(arrays.values())
    if inputs[-1][0] == inputs[0][0] + '_length':  # of tokens that a mask was made of
        values.append((values[0] != 0).sum(1))
    for (name, _, kind), x in zip(inputs, values, strict=True):
        is_first = x.ndim == 4 and x.shape[1] == 3
        x = np.ascontiguousarray(x.transpose(0, 2, 3, 1) if is_first else x)
        np.save(f'{to}/{name}.npy', x.astype(np.int32 if kind == 'int32' else np.float32))
        given += ['--input', f'{name}={to}/{name}.npy']
    found = computed(program, to, to, given)
    with open(os.path.join(to, 'model.yaml'), encoding='utf-8') as text:
        layers = len(re.findall(r'^ *- \{name', text.read(), re.M))
    return layers, difference(found, expected), seconds


def compute(program, folder, file):
    """(the largest difference, seconds)"""
    to = os.path.join(folder, file + '.computed')
    os.makedirs(to, exist_ok=True)
    arrays, expected = expected_of(folder, file)
    given = []
    for i, (name, x) in enumerate(arrays.items()):
        np.save(f'{to}/x{i}.npy', x)
        given += ['--input', f'{name}={to}/x{i}.npy']
    begin = time.time()
    found = computed(program, to, os.path.join(folder, file + '.onnx'), given)
    return difference(found, expected), time.time() - begin


# --- training -----------------------------------------------------------------------------

def trained_text(to):
    """A copy of the imported text that ends in probabilities, for cross-entropy."""
    with open(os.path.join(to, 'model.yaml'), encoding='utf-8') as file:
        text = file.read()
    output = re.search(r'^output:\n  ([\w/-]+): ([\w/-]+)\n', text, re.M)
    if not re.search(r'name: %s, softmax' % re.escape(output[2]), text):
        text = text.replace(output[0], f'  - {{name: probabilities, softmax: , '
                            f'from: {output[2]}}}\noutput:\n  {output[1]}: probabilities\n')
    path = os.path.join(to, 'trained.yaml')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    return path


def write_data(to, count):
    """Samples with classes that a net can learn: each has a sample of its own."""
    numbers = np.random.default_rng(5)
    (name, shape, kind), *lengths = inputs_of(to)
    shape = [int(n) for n in shape.split(',')]
    y = (np.arange(count) % CLASSES).astype(np.int32)
    if kind == 'int32':
        x = numbers.integers(1, WORDS, (count, *shape)).astype(np.int32)
        x[:, ::3] = y[:, None] + 1
    else:
        of_class = numbers.integers(0, 256, (CLASSES, *shape))
        x = (numbers.integers(0, 128, (count, *shape)) + of_class[y] // 2).astype(np.uint8)
    if lengths:
        n = numbers.integers(4, shape[0] + 1, count).astype(np.int32)
        x *= np.arange(shape[0]) < n[:, None]
        np.save(os.path.join(to, 'lengths_train.npy'), n)
    np.save(os.path.join(to, 'data_train.npy'), x)
    np.save(os.path.join(to, 'labels_train.npy'), y)
    fields = f'{name}:data,{name}.length:lengths,label=labels'
    return (f'npy:{to},fields={fields}' if lengths else
            f'npy:{to}/data_train.npy,{to}/labels_train.npy'), x, y


def fit(program, to, data, batch, steps, optimizer, rate):
    """Losses of the steps; the run is in the folder's run."""
    is_image = inputs_of(to)[0][2] == 'uint8'
    run(program, 'train', trained_text(to), '--weights', to + '/weights.safetensors', '--data',
        data, '--batch-size', str(batch), '--steps', str(steps), '--lr', rate, '--optimizer',
        optimizer, '--run', to + '/run', '--fresh', '--no-progress',
        *(['--pipeline', 'normalize -1..1'] if is_image else []))
    with open(to + '/run/metrics.jsonl', encoding='utf-8') as lines:
        return [e['loss'] for e in map(json.loads, lines) if e['event'] == 'step']


def train(program, folder, file):
    """The mean loss of the first two steps of twenty, and of the last four."""
    to = import_model(program, folder, file)
    data, _, _ = write_data(to, 32)
    losses = fit(program, to, data, 16, 20, 'adam', '0.0003')
    first, last = np.mean(losses[:2]), np.mean(losses[-4:])
    if not last < first:
        raise RuntimeError(f'loss {first:.3f} -> {last:.3f} does not fall')
    return first, last


# --- steps beside PyTorch -----------------------------------------------------------------

def layouts(array):
    """How an array of PyTorch may lie here."""
    yield array
    if array.ndim == 2:
        yield array.T
    if array.ndim == 4:
        yield array.transpose(1, 2, 3, 0)


def peer_of(folder, name, exporter):
    """PyTorch's model as it was exported: convolutions have taken in their norms, unless the
    exporter was asked to keep them."""
    import torch
    model, _ = onnx_models.torch_model(name)
    model.load_state_dict(torch.load(os.path.join(folder, name + '.pt')))
    model.eval()
    if exporter == 'norms':
        return model.train()
    if any(isinstance(m, torch.nn.BatchNorm2d) for m in model.modules()):
        from torch.fx.experimental.optimization import fuse
        return fuse(model)
    return model


def steps(program, folder, file):
    """Weights after one step and two of plain SGD: how far their changes are from PyTorch's.
    A relu whose input is 0 but for rounding opens on one side alone, which single elements
    show far more than the norm does."""
    import torch
    from safetensors.numpy import load_file
    name, exporter = file.rsplit('_', 1)
    to = import_model(program, folder, file)
    data, x, y = write_data(to, 16)
    model = peer_of(folder, name, exporter)
    given = (torch.tensor(np.ascontiguousarray(x.transpose(0, 3, 1, 2))).float() / 127.5 - 1
             if x.ndim == 4 else torch.tensor(x).long())
    before = load_file(to + '/weights.safetensors')
    first = {k: p.detach().numpy().copy() for k, p in model.named_parameters()}
    alike = {ours: [(theirs, i) for theirs, b in first.items() for i, c in
                    enumerate(layouts(b)) if a.shape == c.shape and
                    abs(a - c).max() <= 1e-6 * max(1e-3, abs(c).max())]
             for ours, a in before.items()}
    pairs = {ours: found[0] for ours, found in alike.items() if len(found) == 1}
    model.requires_grad_(True)  # of new biases fuse() has it off
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    said = []
    for count in (1, 2):
        ours_losses = fit(program, to, data, 16, count, 'sgd', '0.01')
        run(program, 'export', to + '/run', '-o', to + '/after.safetensors', '--format',
            'safetensors', '--force')
        after = load_file(to + '/after.safetensors')
        while len(said) < count:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(given), torch.tensor(y).long())
            loss.backward()
            optimizer.step()
            said.append(float(loss))
        worst, where, apart, all_of = 0, '', 0, 0
        now = dict(model.named_parameters())
        for ours, (theirs, i) in pairs.items():
            wanted = list(layouts(now[theirs].detach().numpy() - first[theirs]))[i]
            found = after[ours] - before[ours]
            error = abs(found - wanted).max() / max(abs(wanted).max(), 1e-12)
            apart += float(((found - wanted) ** 2).sum())
            all_of += float((wanted ** 2).sum())
            if error > worst:
                worst, where = error, f'{ours} ({theirs})'
        print(f'  {file}: {count} steps, losses {ours_losses[-1]:.6f} and {said[-1]:.6f}, '
              f'{len(pairs)} arrays of {len(first)}, changes differ by '
              f'{(apart / all_of) ** 0.5:.1e} of their norm; most, {worst:.1e} of the largest '
              f'of an array, in {where}', flush=True)
    missing = sorted(set(first) - {theirs for theirs, _ in pairs.values()})
    return f'not compared: {", ".join(missing) or "none"}'


def do(what, program, folder, model, exporter):
    """What it says of the model."""
    file = f'{model}_{exporter}'
    if what == 'make':
        onnx_models.make(folder, model, exporter)
        return 'made'
    if what == 'check':
        return 'layers %d, difference %.1e, import %.1f s' % check(program, folder, file)
    if what == 'compute':
        return 'difference %.1e, %.1f s' % compute(program, folder, file)
    if what == 'steps':
        return steps(program, folder, file)
    return 'loss %.3f -> %.3f' % train(program, folder, file)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('what', choices=['make', 'check', 'compute', 'train', 'steps'])
    parser.add_argument('rest', nargs='+')
    asked = parser.parse_args()
    program = os.path.abspath(asked.rest.pop(0)) if asked.what != 'make' else None
    folder, *names = asked.rest
    names = {'all': all_names(), 'fixed': all_names('-fixed')}.get(names[0], names)
    failed = 0
    for name in names:
        try:
            said = do(asked.what, program, folder, *name.split(':'))
        except Exception as error:  # pylint: disable=broad-except
            said = f'{type(error).__name__}: {str(error)[-500:]}'
            failed += 1
        print(f'{name}: {said}', flush=True)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
