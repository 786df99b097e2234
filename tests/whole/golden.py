#!/usr/bin/env python3
"""Records the losses of 20 Adam steps of the Fashion-MNIST ConvNet in PyTorch, in double.

usage: golden.py > golden.h

Weights, images and labels come from one 32-bit generator that tests/whole/golden.c has as well,
so nothing but these losses needs to be stored. Weights are drawn in this project's layout:
convolutions [c][r][s][k], dense [in][out], rounded to float.
"""
import math
import sys

import numpy as np
import torch

STEPS, BATCH = 20, 48


class Generator:
    """x <- x * 1664525 + 1013904223 mod 2^32; the upper 16 bits are drawn."""

    def __init__(self, seed):
        self.x = seed

    def draw(self):
        self.x = (self.x * 1664525 + 1013904223) & 0xFFFFFFFF
        return self.x >> 16


def weights(generator, shape, fan_in, fan_out):
    limit = math.sqrt(6.0 / (fan_in + fan_out))
    draws = [(generator.draw() / 65536.0 * 2 - 1) * limit for _ in range(math.prod(shape))]
    return torch.tensor(np.array(draws, np.float32).astype(np.float64).reshape(shape))


def main():
    torch.set_default_dtype(torch.float64)
    g = Generator(1)
    parameters = []
    for c, k in ((1, 32), (32, 64), (64, 64)):
        w = weights(g, (c, 3, 3, k), 9 * c, 9 * k).permute(3, 0, 1, 2).contiguous()
        parameters += [w, torch.zeros(k)]
    for c, k in ((576, 64), (64, 10)):
        parameters += [weights(g, (c, k), c, k).T.contiguous(), torch.zeros(k)]
    parameters = [p.requires_grad_() for p in parameters]
    w1, b1, w2, b2, w3, b3, w4, b4, w5, b5 = parameters
    # PyTorch's Adam, written out: its epsilon placement is ours.
    optimizer = torch.optim.Adam(parameters, lr=0.001, betas=(0.9, 0.999), eps=1e-7)
    print("/* Made by golden.py with PyTorch", torch.__version__, "in double. */")
    print(f"enum {{ GOLDEN_STEPS = {STEPS}, GOLDEN_BATCH = {BATCH} }};")
    print("static const double golden_losses[GOLDEN_STEPS] = {")
    f = torch.nn.functional
    for _ in range(STEPS):
        pixels = [[g.draw() % 256 for _ in range(784)] for _ in range(BATCH)]
        labels = torch.tensor([g.draw() % 10 for _ in range(BATCH)])
        for row, label in zip(pixels, labels):  # something to learn: a bright row by the label
            row[28 * (2 * int(label) + 4) : 28 * (2 * int(label) + 5)] = [255] * 28
        x = torch.tensor(pixels, dtype=torch.float64).reshape(BATCH, 1, 28, 28) * (1 / 255)
        optimizer.zero_grad()
        y = f.max_pool2d(f.relu(f.conv2d(x, w1, b1)), 2)
        y = f.max_pool2d(f.relu(f.conv2d(y, w2, b2)), 2)
        y = f.relu(f.conv2d(y, w3, b3)).flatten(1)
        y = f.linear(f.relu(f.linear(y, w4, b4)), w5, b5)
        loss = f.cross_entropy(y, labels)
        loss.backward()
        optimizer.step()
        print(f"    {loss.item():.15g},")
    print("};")


sys.exit(main())
