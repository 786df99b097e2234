#!/usr/bin/env python3
"""Makes models of ONNX as other programs export them: onnx_exports.py torch|steps|keras FOLDER.
Needs PyTorch, or TensorFlow, Keras 3 and tf2onnx. tests/cli/onnx_models has what they made
once."""
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


if __name__ == '__main__':
    makers = {'torch': torch_models, 'steps': torch_steps, 'keras': keras_models}
    makers[sys.argv[1]](sys.argv[2])
