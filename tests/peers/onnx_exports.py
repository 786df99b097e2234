#!/usr/bin/env python3
"""Makes models of ONNX as other programs export them: onnx_exports.py torch|keras FOLDER. Needs
PyTorch, or TensorFlow, Keras 3 and tf2onnx. tests/cli/onnx_models has what they made once."""
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


def keras_models(folder):
    import keras
    keras.utils.set_random_seed(1)
    tokens = keras.Input((10,), dtype='int32')
    y = keras.layers.LSTM(16)(keras.layers.Embedding(50, 12)(tokens))
    model = keras.Model(tokens, keras.layers.Dense(5)(y))
    x = np.random.randint(1, 50, (2, 10)).astype(np.int32)
    model.export(f'{folder}/keras_lstm.onnx', format='onnx', verbose=False)
    np.save(f'{folder}/keras_lstm.x0.npy', x)
    np.save(f'{folder}/keras_lstm.y0.npy', np.array(model(x, training=False)))


if __name__ == '__main__':
    {'torch': torch_models, 'keras': keras_models}[sys.argv[1]](sys.argv[2])
