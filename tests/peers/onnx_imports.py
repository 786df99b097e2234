#!/usr/bin/env python3
"""Models as PyTorch, Keras and TensorFlow export them, imported, computed and trained.

onnx_imports.py make FOLDER NAME...             NAME.onnx, and an input NAME.x0.npy
onnx_imports.py check LOCKSTEP FOLDER NAME...   import, and compare with onnxruntime
onnx_imports.py train LOCKSTEP FOLDER NAME...   some steps of training: the loss falls
onnx_imports.py steps LOCKSTEP FOLDER NAME...   weights after steps of SGD beside PyTorch's

A name is MODEL:EXPORTER, where the exporter is torch (torch.onnx with TorchScript), norms (the
same, which keeps batch norms apart), dynamo (torch.onnx with torch.export), keras (Keras 3's
export) or tf2onnx; all: all of them. make needs PyTorch, torchvision and transformers, or
TensorFlow, Keras and tf2onnx; the others onnx and onnxruntime, and steps PyTorch. It
fails where one of the names does: check beyond a difference of 1e-3.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import time

import numpy as np

CNNS = {'resnet18': 64, 'resnet50': 64, 'mobilenet_v2': 64, 'mobilenet_v3_small': 64,
        'efficientnet_b0': 64, 'densenet121': 64, 'inception_v3': 96, 'squeezenet1_1': 64,
        'convnext_tiny': 64}
TEXTS = 'lstm', 'gru', 'rnn', 'bilstm'
TORCH = [*CNNS, 'vit_tiny', 'bert', *TEXTS]
KERAS = ['keras_lstm', 'keras_gru', 'keras_rnn', 'keras_bilstm', 'keras_mobilenet',
         'keras_resnet', 'keras_efficientnet', 'keras_densenet', 'keras_convnet']
CLASSES, WORDS, LENGTH, BATCH = 10, 50, 12, 4
MOST_APART = 1e-3


def all_names():
    return ([f'{m}:{e}' for e in ('torch', 'dynamo') for m in TORCH] +
            [f'{m}:{e}' for e in ('keras', 'tf2onnx') for m in KERAS])


# --- PyTorch ------------------------------------------------------------------------------

def torch_text(kind):
    import torch
    from torch import nn

    class Text(nn.Module):
        def __init__(self):
            super().__init__()
            two = kind == 'bilstm'
            layer = {'lstm': nn.LSTM, 'gru': nn.GRU, 'rnn': nn.RNN, 'bilstm': nn.LSTM}[kind]
            self.table = nn.Embedding(WORDS, 16)
            self.layer = layer(16, 32, batch_first=True, bidirectional=two)
            self.top = nn.Linear(64 if two else 32, CLASSES)

        def forward(self, tokens):
            return self.top(self.layer(self.table(tokens))[0][:, -1])

    return Text(), torch.randint(1, WORDS, (BATCH, LENGTH))


def torch_model(name):
    """The model, in training mode as it was made, and its input."""
    import torch
    import torchvision
    torch.manual_seed(1)
    if name in TEXTS:
        return torch_text(name)
    if name == 'vit_tiny':
        model = torchvision.models.VisionTransformer(
            image_size=64, patch_size=16, num_layers=12, num_heads=3, hidden_dim=192,
            mlp_dim=768, num_classes=CLASSES)
        torch.nn.init.normal_(model.heads.head.weight, std=0.05)
        return model, torch.randn(BATCH, 3, 64, 64)
    if name == 'bert':
        import transformers
        made = transformers.BertForSequenceClassification(transformers.BertConfig(
            vocab_size=WORDS, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=128, max_position_embeddings=32, num_labels=CLASSES,
            attn_implementation='eager'))

        class Bert(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.bert = made

            def forward(self, tokens):
                return self.bert(input_ids=tokens).logits

        return Bert(), torch.randint(1, WORDS, (BATCH, LENGTH))
    more = {'init_weights': True, 'aux_logits': False} if name == 'inception_v3' else {}
    model = getattr(torchvision.models, name)(num_classes=CLASSES, **more)
    return model, torch.randn(BATCH, 3, CNNS[name], CNNS[name])


def settle_norms(model, x):
    """Averages of norms that are those of the data, so that values stay in a sensible range."""
    import torch
    if any(isinstance(m, torch.nn.BatchNorm2d) for m in model.modules()):
        for m in model.modules():
            if isinstance(m, torch.nn.BatchNorm2d):
                m.momentum = None
        model.train()
        with torch.no_grad():
            for _ in range(2):
                model(torch.randn_like(x))
    model.eval()


def make_torch(folder, name, exporter):
    import torch
    model, x = torch_model(name)
    settle_norms(model, x)
    place = os.path.join(folder, f'{name}_{exporter}')
    torch.save(model.state_dict(), os.path.join(folder, name + '.pt'))
    names = {'input_names': ['x0'], 'output_names': ['y0']}
    with torch.no_grad():
        if exporter != 'dynamo':
            kind = torch.onnx.TrainingMode
            torch.onnx.export(model, (x,), place + '.onnx', dynamo=False, opset_version=17,
                              training=kind.PRESERVE if exporter == 'norms' else kind.EVAL,
                              dynamic_axes={'x0': {0: 'n'}, 'y0': {0: 'n'}}, **names)
        else:
            torch.onnx.export(model, (x,), place + '.onnx', dynamo=True,
                              dynamic_shapes=({0: torch.export.Dim('n')},), **names)
        np.save(place + '.x0.npy', x.numpy())


# --- Keras --------------------------------------------------------------------------------

def keras_model(name):
    import keras
    layers = keras.layers
    keras.utils.set_random_seed(1)
    kind = name.split('_')[1]
    if kind in ('lstm', 'gru', 'rnn', 'bilstm'):
        layer = {'lstm': layers.LSTM, 'gru': layers.GRU, 'rnn': layers.SimpleRNN,
                 'bilstm': layers.LSTM}[kind](32)
        layer = layers.Bidirectional(layer) if kind == 'bilstm' else layer
        tokens = keras.Input((LENGTH,), dtype='int32')
        y = layer(layers.Embedding(WORDS, 16)(tokens))
        model = keras.Model(tokens, layers.Dense(CLASSES)(y))
        return model, np.random.randint(1, WORDS, (BATCH, LENGTH)).astype(np.int32)
    x = np.random.standard_normal((BATCH, 64, 64, 3)).astype(np.float32)
    more = {'weights': None, 'classes': CLASSES, 'input_shape': (64, 64, 3)}
    if kind == 'convnet':
        model = keras.Sequential([
            keras.Input((64, 64, 3)), layers.Conv2D(16, 3, strides=2, activation='relu'),
            layers.BatchNormalization(), layers.MaxPooling2D(2),
            layers.SeparableConv2D(32, 3, padding='same', activation='relu'),
            layers.GlobalAveragePooling2D(), layers.Dropout(0.1),
            layers.Dense(CLASSES, activation='softmax')])
    else:
        applications = keras.applications
        model = {'mobilenet': applications.MobileNetV2, 'resnet': applications.ResNet50,
                 'efficientnet': applications.EfficientNetB0,
                 'densenet': applications.DenseNet121}[kind](**more)
        x = x * 50 + 100 if kind == 'efficientnet' else x
    return model, x


def make_keras(folder, name, exporter):
    model, x = keras_model(name)
    model(x)
    place = os.path.join(folder, f'{name}_{exporter}.onnx')
    if exporter == 'keras':
        model.export(place, format='onnx', verbose=False)
    else:
        import tensorflow as tf
        import tf2onnx
        spec = [tf.TensorSpec([None, *x.shape[1:]], tf.as_dtype(x.dtype), name='x0')]
        tf2onnx.convert.from_function(tf.function(lambda x0: model(x0, training=False)), spec,
                                      opset=17, output_path=place)
    np.save(place[:-5] + '.x0.npy', x)


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


def check(program, folder, file):
    """(layers, the largest difference relative to the largest value, seconds of the import)"""
    import onnxruntime
    begin = time.time()
    to = import_model(program, folder, file)
    seconds = time.time() - begin
    x = np.load(os.path.join(folder, file + '.x0.npy'))
    session = onnxruntime.InferenceSession(os.path.join(folder, file + '.onnx'),
                                           providers=['CPUExecutionProvider'])
    first = session.get_inputs()[0]
    given = x.astype(np.int64 if 'int64' in first.type else
                     np.int32 if 'int32' in first.type else np.float32)
    expected = session.run(None, {first.name: given})[0]
    (name, _, _), = inputs_of(to)
    is_first = x.ndim == 4 and x.shape[1] == 3
    ours = np.ascontiguousarray(x.transpose(0, 2, 3, 1) if is_first else x)
    ours = ours.astype(np.int32) if ours.dtype.kind == 'i' else ours
    np.save(os.path.join(to, 'x.npy'), ours)
    said = run(program, 'run', to, '--input', f'{name}={to}/x.npy', '--output', to + '/values',
               '--force')
    found = np.load(re.search(r'^(.*\.npy) ', said, re.M)[1])
    with open(os.path.join(to, 'model.yaml'), encoding='utf-8') as text:
        layers = len(re.findall(r'^ *- \{name', text.read(), re.M))
    if found.shape != expected.shape:
        raise RuntimeError(f'shape {found.shape}, expected {expected.shape}')
    apart = float(abs(found - expected).max() / abs(expected).max())
    if not apart <= MOST_APART:
        raise RuntimeError(f'difference {apart:.1e}, expected at most {MOST_APART}')
    return layers, apart, seconds


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
    (name, shape, kind), = inputs_of(to)
    shape = [int(n) for n in shape.split(',')]
    y = (np.arange(count) % CLASSES).astype(np.int32)
    if kind == 'int32':
        x = numbers.integers(1, WORDS, (count, *shape)).astype(np.int32)
        x[:, ::3] = y[:, None] + 1
    else:
        of_class = numbers.integers(0, 256, (CLASSES, *shape))
        x = (numbers.integers(0, 128, (count, *shape)) + of_class[y] // 2).astype(np.uint8)
    np.save(os.path.join(to, 'data.npy'), x)
    np.save(os.path.join(to, 'labels.npy'), y)
    return f'npy:{to}/data.npy,{to}/labels.npy', x, y


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
    model, _ = torch_model(name)
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('what', choices=['make', 'check', 'train', 'steps'])
    parser.add_argument('rest', nargs='+')
    asked = parser.parse_args()
    program = os.path.abspath(asked.rest.pop(0)) if asked.what != 'make' else None
    folder, *names = asked.rest
    names = all_names() if names == ['all'] else names
    failed = 0
    for name in names:
        model, exporter = name.split(':')
        file = f'{model}_{exporter}'
        try:
            if asked.what == 'make':
                (make_torch if model in TORCH else make_keras)(folder, model, exporter)
                said = 'made'
            elif asked.what == 'check':
                said = ('layers %d, difference %.1e, import %.1f s' %
                        check(program, folder, file))
            elif asked.what == 'steps':
                said = steps(program, folder, file)
            else:
                said = 'loss %.3f -> %.3f' % train(program, folder, file)
        except Exception as error:  # pylint: disable=broad-except
            said = f'{type(error).__name__}: {str(error)[-500:]}'
            failed += 1
        print(f'{name}: {said}', flush=True)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
