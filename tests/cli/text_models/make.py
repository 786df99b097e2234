#!/usr/bin/env python3
"""Makes weights of PyTorch for models of text, and what it computes of them: make.py FOLDER

Needs torch. Beside NAME.safetensors there are NAME.x.npy, the tokens, NAME.n.npy, their lengths
where the model takes such, and NAME.y.npy. The models are those of ../text_weights.py.
"""
import json
import struct
import sys

import numpy as np
import torch
from torch import nn

WORDS, STEPS = 11, 7


class Stack(nn.Module):
    """Every kind of layer once; without lengths."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(WORDS, 6)
        self.conv = nn.Conv1d(6, 5, 3, padding=1)
        self.long = nn.LSTM(5, 4, batch_first=True)
        self.gated = nn.GRU(4, 5, batch_first=True)
        self.norm = nn.LayerNorm(5)
        self.plain = nn.RNN(5, 3, batch_first=True)
        self.out = nn.Linear(3, 2)

    def forward(self, tokens, lengths):
        x = self.conv(self.table(tokens).transpose(1, 2)).transpose(1, 2)
        x = self.norm(self.gated(self.long(x)[0])[0])
        return self.out(self.plain(x)[0][:, -1])


class Cells(nn.Module):
    """Modules of one step, whose arrays have other names."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(WORDS, 6)
        self.long, self.gated = nn.LSTMCell(6, 4), nn.GRUCell(4, 3)

    def forward(self, tokens, lengths):
        x, state, h = self.table(tokens), None, None
        for t in range(STEPS):
            state = self.long(x[:, t], state)
            h = self.gated(state[0], h)
        return h


class BothWays(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 6)
        self.lstm = nn.LSTM(6, 5, batch_first=True, bidirectional=True)
        self.dense_1 = nn.Linear(10, 3)

    def forward(self, tokens, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(self.embedding(tokens), lengths, True, False)
        h, _ = self.lstm(packed)[1]
        return torch.softmax(self.dense_1(torch.cat([h[0], h[1]], 1)), 1)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 12, .1, 'gelu', batch_first=True,
                                           norm_first=True)
        self.embedding = nn.Embedding(WORDS, 8)
        self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8), False)
        self.classifier = nn.Linear(8, 3)

    def forward(self, tokens, lengths):
        t, i = torch.arange(STEPS)[:, None], torch.arange(4)
        angle = t / 10000. ** (i / 4)
        position = torch.stack([angle.sin(), angle.cos()], 2).reshape(STEPS, 8)
        hidden = torch.arange(STEPS)[None] >= lengths[:, None]
        x = self.encoder(self.embedding(tokens) + position, src_key_padding_mask=hidden)
        x = (x * ~hidden[:, :, None]).sum(1) / lengths[:, None]
        return torch.softmax(self.classifier(x), 1)


def write_safetensors(path, arrays):
    header, data = {'__metadata__': {'format': 'pt'}}, b''
    for name, array in arrays.items():
        content = array.numpy().astype('<f4').tobytes()
        header[name] = {'dtype': 'F32', 'shape': list(array.shape),
                        'data_offsets': [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as file:
        file.write(struct.pack('<Q', len(text)) + text + data)


def main(folder):
    torch.manual_seed(1)
    for make, name, steps in (Stack, 'stack', STEPS), (Cells, 'cells', STEPS), \
            (BothWays, 'both-ways', 64), (Encoder, 'encoder', 128):
        model, path = make().eval(), f'{folder}/{name}'
        with torch.no_grad():
            for array in model.parameters():
                array.copy_((torch.rand_like(array) - .4) * 1.5)
            tokens = torch.randint(WORDS, (3, STEPS))
            lengths = torch.tensor([STEPS, 1, 4])
            y = model(tokens, lengths)
        write_safetensors(f'{path}.safetensors', model.state_dict())
        padded = nn.functional.pad(tokens, (0, steps - STEPS))
        np.save(f'{path}.x.npy', padded.numpy().astype('i4'))
        np.save(f'{path}.n.npy', lengths.numpy().astype('i4'))
        np.save(f'{path}.y.npy', y.numpy())


if __name__ == '__main__':
    main(sys.argv[1])
