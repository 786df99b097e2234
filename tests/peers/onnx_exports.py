#!/usr/bin/env python3
"""Makes models of ONNX as other programs export them: onnx_exports.py WHAT FOLDER, where WHAT
is torch, steps, keras or masks. Needs PyTorch, or TensorFlow, Keras 3 and tf2onnx.
tests/cli/onnx_models has what they made once."""
import sys

import numpy as np


def torch_models(folder):
    import torch
    from torch import nn

    class Gru(nn.Module):
        def __init__(self):
            super().__init__()
            self.e = nn.Embedding(50, 12)
            self.r = nn.GRU(12, 16, batch_first=True, bidirectional=True)
            self.l = nn.Linear(32, 5)

        def forward(self, x):
            state = self.r(self.e(x))[1]
            return self.l(torch.cat([state[-2], state[-1]], 1))

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.MultiheadAttention(16, 4)
            self.l = nn.Linear(16, 16)

        def forward(self, x):
            y = x.transpose(0, 1)
            return self.l(self.a(y, y, y, need_weights=False)[0]).transpose(0, 1)

    torch.manual_seed(1)
    for name, model, x in (('gru', Gru(), torch.randint(1, 50, (2, 10))),
                           ('attention', Attention(), torch.randn(2, 10, 16))):
        model.eval()
        place = f'{folder}/torch_{name}'
        torch.onnx.export(model, (x,), place + '.onnx', dynamo=False, input_names=['x0'],
                          output_names=['y'], opset_version=17,
                          dynamic_axes={'x0': {0: 'n'}, 'y': {0: 'n'}})
        x32 = x.numpy().astype(np.int32 if name == 'gru' else np.float32)
        np.save(place + '.x0.npy', x32)
        np.save(place + '.y0.npy', model(x).detach().numpy())


def torch_steps(folder):
    """Nets before training, samples x and classes c, and the losses of steps of SGD."""
    import torch
    from torch import nn

    class Images(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(
                nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
                nn.Conv2d(8, 8, 3, stride=2, padding=1, groups=8), nn.ReLU6(),
                nn.Conv2d(8, 16, 1), nn.Hardswish())
            self.top = nn.Linear(16, 5)

        def forward(self, x):
            return self.top(self.layers(x).mean([2, 3]))

    class Texts(nn.Module):
        def __init__(self):
            super().__init__()
            self.e = nn.Embedding(20, 12)
            self.n = nn.LayerNorm(12)
            self.a = nn.MultiheadAttention(12, 2, batch_first=True)
            self.r = nn.LSTM(12, 8, bias=False, batch_first=True)  # PyTorch has two
            self.l = nn.Linear(8, 5)

        def forward(self, x):
            y = self.e(x)
            z = self.n(y)
            y = y + self.a(z, z, z, need_weights=False)[0]
            return self.l(self.r(y)[0][:, -1])

    torch.manual_seed(2)
    classes = torch.arange(16) % 5
    pixels = torch.randint(0, 256, (16, 3, 8, 8), dtype=torch.uint8)
    for name, model, x in (('images', Images(), pixels.float() / 127.5 - 1),
                           ('texts', Texts(), torch.randint(1, 20, (16, 6)))):
        place = f'{folder}/steps_{name}'
        model.eval()
        torch.onnx.export(model, (x[:2],), place + '.onnx', dynamo=False, opset_version=17,
                          training=torch.onnx.TrainingMode.PRESERVE, input_names=['x0'],
                          output_names=['y'], dynamic_axes={'x0': {0: 'n'}, 'y': {0: 'n'}})
        np.save(place + '.x.npy', pixels.permute(0, 2, 3, 1).numpy() if x.dim() == 4 else
                x.numpy().astype(np.int32))
        np.save(place + '.c.npy', classes.numpy().astype(np.int32))
        model.train()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.25)
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), classes)
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
        np.save(place + '.losses.npy', np.array(losses, np.float32))


def keras_models(folder):
    """GRU and SimpleRNN become loops, whose body is a step."""
    import keras
    layers = keras.layers
    for name, layer in (('lstm', layers.LSTM), ('gru', layers.GRU), ('rnn', layers.SimpleRNN)):
        keras.utils.set_random_seed(1)
        tokens = keras.Input((10,), dtype='int32')
        y = layer(16, **({} if name == 'lstm' else {'bias_initializer': 'random_normal'}))(
            layers.Embedding(50, 12)(tokens))
        model = keras.Model(tokens, layers.Dense(5)(y))
        x = np.random.randint(1, 50, (2, 10)).astype(np.int32)
        place = f'{folder}/keras_{name}'
        np.save(place + '.x0.npy', x)
        np.save(place + '.y0.npy', np.array(model(x, training=False)))
        model.export(place + '.onnx', format='onnx', verbose=False)


def shorten(graph, names):
    """Numbers in place of the names of nodes and values; those of inputs stay."""
    def short(name):
        return names.setdefault(name, f'v{len(names)}') if name else name

    if not names:
        names.update((each.name, each.name) for each in graph.input)
    for each in (*graph.initializer, *graph.input, *graph.output):
        each.name = short(each.name)
    for node in graph.node:
        node.name = short(node.name)
        node.input[:] = [short(name) for name in node.input]
        node.output[:] = [short(name) for name in node.output]
        for attribute in node.attribute:
            if attribute.HasField('g'):
                shorten(attribute.g, names)
    del graph.value_info[:]


def masked_models(folder):
    """Layers behind mask_zero, which become loops that choose between new and old states: of
    Keras's export and of tf2onnx. x0 is padded at its end, to x1 tokens; holes has zeros
    anywhere, and values are of it. Files are half as large with short names."""
    import keras
    import onnx
    import tensorflow as tf
    import tf2onnx
    layers, length, words = keras.layers, 7, 12
    wide = keras.initializers.RandomNormal(stddev=0.5, seed=4)

    def layer(kind, units=4, **options):
        return kind(units, bias_initializer=wide, **options)

    def two_ways(x):
        y = layers.Bidirectional(layer(layers.SimpleRNN, 3, return_sequences=True))(x)
        return layers.GlobalAveragePooling1D()(y)

    nets = {'lstm': layer(layers.LSTM), 'rnn': two_ways, 'gru': lambda x: layer(layers.GRU)(
        layer(layers.GRU, reset_after=False, return_sequences=True)(x))}
    lengths = np.array([length, 1, 4, 0, 2], np.int32)
    for name, net in nets.items():
        keras.utils.set_random_seed(1)
        tokens = keras.Input((length,), dtype='int32', name='tokens')
        table = layers.Embedding(words, 3, mask_zero=True, embeddings_initializer=wide)
        model = keras.Model(tokens, layers.Dense(3)(net(table(tokens))), name='m')
        count = lengths if name != 'rnn' else np.maximum(lengths, 1)  # 0 / 0 is no number
        numbers = np.random.default_rng(3)
        x0 = numbers.integers(1, words, (5, length)) * (np.arange(length) < count[:, None])
        x = numbers.integers(1, words, (5, length)) * numbers.integers(0, 2, (5, length))
        place = f'{folder}/masked_{name}'
        for to, of, given in (('x0', 'y0', x0), ('holes', 'values', x)):
            np.save(f'{place}.{to}.npy', given.astype(np.int32))
            np.save(f'{place}.{of}.npy', np.array(model(given.astype(np.int32))))
        np.save(place + '.x1.npy', count)
        if name == 'lstm':
            model.export(place + '.onnx', format='onnx', verbose=False)
        else:
            tf2onnx.convert.from_function(
                tf.function(lambda x, model=model: model(x, training=False)),
                [tf.TensorSpec([None, length], tf.int32, name='tokens')], opset=17,
                output_path=place + '.onnx')
        file = onnx.load(place + '.onnx')
        shorten(file.graph, {})
        onnx.save(file, place + '.onnx')


if __name__ == '__main__':
    makers = {'torch': torch_models, 'steps': torch_steps, 'keras': keras_models,
              'masks': masked_models}
    makers[sys.argv[1]](sys.argv[2])
