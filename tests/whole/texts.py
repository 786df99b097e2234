#!/usr/bin/env python3
"""Records 20 steps of the zoo's models of texts in PyTorch, in double: the losses under Adam,
with sequences of every length, and other tokens behind each length, which nobody may see.

usage: texts.py > texts.h

Weights, tokens and labels come from one 32-bit generator that tests/whole/texts.c has as well,
so nothing but these numbers needs to be stored. Weights are drawn in the order of the models'
layers and in this project's layout ([in][out]), rounded to float. Nothing is dropped.
"""
import math
import sys

import numpy as np
import torch
from torch.nn.utils.rnn import pack_padded_sequence

STEPS, BATCH, LENGTH, VOCABULARY, CLASSES = 20, 48, 12, 50, 6
WIDTH, UNITS, FILTERS, HEADS, BLOCKS, WIDE, HIDDEN = 16, 20, 10, 2, 2, 40, 10
f = torch.nn.functional


class Generator:
    """x <- x * 1664525 + 1013904223 mod 2^32; the upper 16 bits are drawn."""

    def __init__(self):
        self.x = 1
        self.drawn = []

    def draw(self):
        self.x = (self.x * 1664525 + 1013904223) & 0xFFFFFFFF
        return self.x >> 16

    def parameter(self, shape, to_weight):
        draws = [to_weight(self.draw() / 65536.0) for _ in range(math.prod(shape))]
        made = np.array(draws, np.float32).astype(np.float64).reshape(shape)
        self.drawn.append(torch.tensor(made, requires_grad=True))
        return self.drawn[-1]

    def weight(self, *shape):
        limit = math.sqrt(3.0 * shape[-1] / math.prod(shape))
        return self.parameter(shape, lambda u: (u * 2 - 1) * limit)

    def bias(self, count):
        return self.parameter((count,), lambda u: (u - 0.5) * 0.2)

    def gain(self, count):
        return self.parameter((count,), lambda u: 0.5 + u)

    def dense(self, c, k):
        return self.weight(c, k), self.bias(k)

    def batch(self):
        """Each token tells something of the next one, and the first the class."""
        tokens, lengths = [], []
        for _ in range(BATCH):
            lengths.append(self.draw() % LENGTH + 1)
            row = [self.draw() % VOCABULARY]
            for _ in range(LENGTH - 1):
                row.append((row[-1] * 3 + self.draw() % 4) % VOCABULARY)
            tokens.append(row)
        return torch.tensor(tokens), torch.tensor(lengths)


def linear(x, layer):
    return x @ layer[0] + layer[1]


def there(lengths):
    return torch.arange(LENGTH)[None] < lengths[:, None]


class Classifier:
    def __init__(self, g):
        self.embedding = g.weight(VOCABULARY, WIDTH)
        self.dense = g.dense(self.make(g), CLASSES)

    def loss(self, tokens, lengths):
        found = linear(self.features(f.embedding(tokens, self.embedding), lengths), self.dense)
        return f.cross_entropy(found, tokens[:, 0] % CLASSES)


class Recurrent(Classifier):
    """PyTorch's own layer of one direction, with weights that are this project's turned."""
    WAYS = ('ahead',)

    def make(self, g):
        self.layers = [self.layer(g) for _ in self.WAYS]
        return UNITS * len(self.WAYS)

    def layer(self, g):
        w, u, b = g.weight(WIDTH, 4 * UNITS), g.weight(UNITS, 4 * UNITS), g.bias(4 * UNITS)
        cell = torch.nn.LSTM(WIDTH, UNITS, batch_first=True)
        return cell, lambda: {'weight_ih_l0': w.T, 'weight_hh_l0': u.T, 'bias_ih_l0': b,
                              'bias_hh_l0': torch.zeros_like(b)}

    def features(self, x, lengths):
        found = []
        for way, (cell, weights) in zip(self.WAYS, self.layers):
            if way == 'back':  # each text turned around, as far as it goes
                t = torch.arange(LENGTH)[None]
                at = torch.where(there(lengths), lengths[:, None] - 1 - t, t)
                x = x.gather(1, at[:, :, None].expand_as(x))
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            state = torch.func.functional_call(cell, weights(), (packed,))[1]
            found.append((state[0] if isinstance(state, tuple) else state)[0])
        return torch.cat(found, 1)


class Both(Recurrent):
    WAYS = ('ahead', 'back')


class Gated(Recurrent):
    """Gates are z, r, h here, and r, z, n in PyTorch."""

    def layer(self, g):
        made = [g.weight(WIDTH, 3 * UNITS), g.weight(UNITS, 3 * UNITS), g.bias(3 * UNITS),
                g.bias(3 * UNITS)]
        cell = torch.nn.GRU(WIDTH, UNITS, batch_first=True)
        names = 'weight_ih_l0', 'weight_hh_l0', 'bias_ih_l0', 'bias_hh_l0'

        def weights():
            turned = [torch.cat([w.chunk(3, -1)[i] for i in (1, 0, 2)], -1) for w in made]
            return dict(zip(names, [w.T if w.dim() == 2 else w for w in turned]))
        return cell, weights


class Convolutions(Classifier):
    def make(self, g):
        self.convs = [(g.weight(size, WIDTH, FILTERS), g.bias(FILTERS)) for size in (3, 4, 5)]
        return 3 * FILTERS

    def features(self, x, lengths):
        mask = there(lengths)[:, :, None]
        x = (x * mask).transpose(1, 2)
        found = []
        for w, b in self.convs:
            size = w.shape[0]
            padded = f.pad(x, ((size - 1) // 2, size // 2))
            y = f.relu(f.conv1d(padded, w.permute(2, 1, 0), b)).transpose(1, 2)
            found.append(y.masked_fill(~mask, -math.inf).amax(1))
        return torch.cat(found, 1)


class Blocks:
    def __init__(self, g, wide):
        self.blocks = [(g.gain(WIDTH), g.bias(WIDTH), g.dense(WIDTH, 3 * WIDTH),
                        g.dense(WIDTH, WIDTH), g.gain(WIDTH), g.bias(WIDTH),
                        g.dense(WIDTH, wide), g.dense(wide, WIDTH)) for _ in range(BLOCKS)]
        self.norm = g.gain(WIDTH), g.bias(WIDTH)

    def run(self, x, seen):
        def norm(x, gain, bias):
            return f.layer_norm(x, (WIDTH,), gain, bias, 1e-5)

        def heads(x):
            return x.unflatten(2, (HEADS, WIDTH // HEADS)).transpose(1, 2)

        for gain_a, bias_a, qkv, joined, gain_b, bias_b, wide, narrow in self.blocks:
            q, k, v = map(heads, linear(norm(x, gain_a, bias_a), qkv).chunk(3, 2))
            y = f.scaled_dot_product_attention(q, k, v, seen[:, None])
            x = x + linear(y.transpose(1, 2).flatten(2), joined)
            x = x + linear(f.gelu(linear(norm(x, gain_b, bias_b), wide)), narrow)
        return norm(x, *self.norm)


class Encoder(Classifier):
    def make(self, g):
        self.blocks = Blocks(g, WIDE)
        return WIDTH

    def features(self, x, lengths):
        t, c = torch.arange(LENGTH)[:, None], torch.arange(WIDTH)[None]
        angle = t * 10000.0 ** (-(c - c % 2) / WIDTH)
        x = x + torch.where(c % 2 == 0, angle.sin(), angle.cos())
        mask = there(lengths)
        y = self.blocks.run(x, mask[:, None, :])
        return (y * mask[:, :, None]).sum(1) / lengths[:, None]


class Decoder:
    """The loss of a sample is the mean over its time steps that have a label: 0 of none."""

    def __init__(self, g):
        self.embedding = g.weight(VOCABULARY, WIDTH)
        self.position = g.weight(LENGTH, WIDTH)
        self.blocks = Blocks(g, 4 * WIDTH)
        self.head = g.weight(WIDTH, VOCABULARY)

    def loss(self, tokens, lengths):
        t = torch.arange(LENGTH)
        seen = (t[None, :] <= t[:, None])[None]
        x = f.embedding(tokens, self.embedding) + self.position
        found = self.blocks.run(x, seen) @ self.head
        after = torch.where(t[None, 1:] < lengths[:, None], tokens[:, 1:], -1)
        each = f.cross_entropy(found[:, :-1].transpose(1, 2), after, ignore_index=-1,
                               reduction='none')
        return (each.sum(1) / (after >= 0).sum(1).clamp(min=1)).mean()


class Branches(Recurrent):
    """Two texts by the same layers: does the first begin with the lesser token?"""

    def __init__(self, g):
        self.embedding = g.weight(VOCABULARY, WIDTH)
        self.hidden = g.dense(2 * self.make(g), HIDDEN)
        self.head = g.dense(HIDDEN, 1)

    def loss(self, *batches):
        both = [self.features(f.embedding(t, self.embedding), n) for t, n in batches]
        found = linear(f.relu(linear(torch.cat(both, 1), self.hidden)), self.head)[:, 0]
        one, two = [tokens[:, 0] for tokens, _ in batches]
        return f.binary_cross_entropy_with_logits(found, (one < two).double())


def losses(kind):
    g = Generator()
    model = kind(g)
    optimizer = torch.optim.Adam(g.drawn, lr=0.01, betas=(0.9, 0.999), eps=1e-7)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model.loss(g.batch(), g.batch()) if kind is Branches else model.loss(*g.batch())
        loss.backward()
        optimizer.step()
        yield loss.item()


def main():
    torch.set_default_dtype(torch.float64)
    print("/* Made by texts.py with PyTorch", torch.__version__, "in double. */")
    sizes = {"STEPS": STEPS, "BATCH": BATCH, "LENGTH": LENGTH, "VOCABULARY": VOCABULARY,
             "CLASSES": CLASSES}
    print("enum {")
    for name, size in sizes.items():
        print(f"    TEXTS_{name} = {size},")
    print("};")
    for name, kind in (("lstm", Recurrent), ("bilstm", Both), ("gru", Gated),
                       ("cnn", Convolutions), ("encoder", Encoder), ("gpt", Decoder),
                       ("branches", Branches)):
        print(f"static const double {name}_losses[TEXTS_STEPS] = {{")
        for value in losses(kind):
            print(f"    {value:.15g},")
        print("};")


sys.exit(main())
