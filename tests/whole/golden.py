#!/usr/bin/env python3
"""Records 20 steps of two networks in PyTorch, in double: the losses of the Fashion-MNIST
ConvNet under Adam, and those of a network with batch normalization under SGD, with its moving
averages.

usage: golden.py > golden.h

Weights, images and labels come from one 32-bit generator that tests/whole/golden.c has as well,
so nothing but these numbers needs to be stored. Weights are drawn in this project's layout:
convolutions [c][r][s][k], dense [in][out], rounded to float.
"""
import math
import sys

import numpy as np
import torch

STEPS, BATCH, SHARDS = 20, 48, 2
f = torch.nn.functional


class Generator:
    """x <- x * 1664525 + 1013904223 mod 2^32; the upper 16 bits are drawn."""

    def __init__(self, seed):
        self.x = seed

    def draw(self):
        self.x = (self.x * 1664525 + 1013904223) & 0xFFFFFFFF
        return self.x >> 16

    def weights(self, shape, fan_in, fan_out):
        limit = math.sqrt(6.0 / (fan_in + fan_out))
        draws = [(self.draw() / 65536.0 * 2 - 1) * limit for _ in range(math.prod(shape))]
        return torch.tensor(np.array(draws, np.float32).astype(np.float64).reshape(shape))

    def conv(self, c, k):
        return self.weights((c, 3, 3, k), 9 * c, 9 * k).permute(3, 0, 1, 2).contiguous()

    def dense(self, c, k):
        return self.weights((c, k), c, k).T.contiguous()

    def batch(self):
        pixels = [[self.draw() % 256 for _ in range(784)] for _ in range(BATCH)]
        labels = torch.tensor([self.draw() % 10 for _ in range(BATCH)])
        for row, label in zip(pixels, labels):  # something to learn: a bright row by the label
            row[28 * (2 * int(label) + 4) : 28 * (2 * int(label) + 5)] = [255] * 28
        images = torch.tensor(pixels, dtype=torch.float64).reshape(BATCH, 1, 28, 28)
        return images * (1 / 255), labels


class ConvNet:
    def __init__(self, g):
        self.parameters = []
        for c, k in ((1, 32), (32, 64), (64, 64)):
            self.parameters += [g.conv(c, k), torch.zeros(k)]
        for c, k in ((576, 64), (64, 10)):
            self.parameters += [g.dense(c, k), torch.zeros(k)]

    def optimizer(self):
        return torch.optim.Adam(self.parameters, lr=0.001, betas=(0.9, 0.999), eps=1e-7)

    def run(self, x):
        w1, b1, w2, b2, w3, b3, w4, b4, w5, b5 = self.parameters
        y = f.max_pool2d(f.relu(f.conv2d(x, w1, b1)), 2)
        y = f.max_pool2d(f.relu(f.conv2d(y, w2, b2)), 2)
        y = f.relu(f.conv2d(y, w3, b3)).flatten(1)
        return f.linear(f.relu(f.linear(y, w4, b4)), w5, b5)


class Normalized:
    """The model of golden.c's text. Every shard is normalized alone; what a step adds to the
    moving averages is the mean of what its shards have found."""

    MOMENTUM, EPSILON = 0.9, 1e-3

    def __init__(self, g):
        one, zero = torch.ones, torch.zeros
        self.parameters = [g.conv(1, 8), one(8), zero(8), g.conv(8, 20), one(20), zero(20)]
        self.parameters += [g.dense(20 * 36, 10), zero(10)]
        self.moving = [zero(8), one(8), zero(20), one(20)]

    def optimizer(self):
        return torch.optim.SGD(self.parameters, lr=0.002, momentum=0.9)

    def normalize(self, x, gamma, beta, at):
        parts = x.chunk(SHARDS)
        means = [p.mean((0, 2, 3)) for p in parts]
        variances = [p.transpose(0, 1).flatten(1).var(1) for p in parts]
        for k, found in ((at, means), (at + 1, variances)):
            mean = sum(found).detach() / SHARDS
            self.moving[k] = self.MOMENTUM * self.moving[k] + (1 - self.MOMENTUM) * mean
        return torch.cat([f.batch_norm(p, None, None, gamma, beta, True, 0, self.EPSILON)
                          for p in parts])  # fmt: skip

    def run(self, x):
        w1, g1, b1, w2, g2, b2, w3, b3 = self.parameters
        y = f.max_pool2d(f.relu(self.normalize(f.conv2d(x, w1), g1, b1, 0)), 2)
        y = self.normalize(f.conv2d(y, w2, stride=2), g2, b2, 2)
        return f.linear(y.flatten(1), w3, b3)


def losses(model, g):
    for parameter in model.parameters:
        parameter.requires_grad_()
    optimizer = model.optimizer()
    for _ in range(STEPS):
        x, labels = g.batch()
        optimizer.zero_grad()
        loss = f.cross_entropy(model.run(x), labels)
        loss.backward()
        optimizer.step()
        yield loss.item()


def write(name, size, values):
    print(f"static const double {name}[{size}] = {{")
    for value in values:
        print(f"    {value:.15g},")
    print("};")


def main():
    torch.set_default_dtype(torch.float64)
    print("/* Made by golden.py with PyTorch", torch.__version__, "in double. */")
    sizes = {"STEPS": STEPS, "BATCH": BATCH, "SHARDS": SHARDS}
    print("enum {", ", ".join(f"GOLDEN_{name} = {n}" for name, n in sizes.items()), "};")
    g = Generator(1)
    write("golden_losses", "GOLDEN_STEPS", losses(ConvNet(g), g))
    g = Generator(1)
    model = Normalized(g)
    write("normalized_losses", "GOLDEN_STEPS", losses(model, g))
    print("/* Means and variances of the first layer, then of the second: the sum of each. */")
    write("normalized_moving", "4", (m.sum().item() for m in model.moving))


sys.exit(main())
