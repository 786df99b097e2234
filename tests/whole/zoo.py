#!/usr/bin/env python3
"""Records one training step of each zoo model in PyTorch, in double: the loss of a small batch
of small images, and of the gradient of every parameter its length and its product with a vector
of random numbers, both of which any wrong element changes.

usage: zoo.py [MODEL ...]      writes zoo/MODEL.txt beside this script

Weights, images and labels are drawn from their names, which zoo.c does as well, so nothing but
these numbers needs to be stored. Models that torchvision has are taken from there; xception
and amoebanet-d are written down here, with the names that their layers have in the zoo. Nothing
is dropped by chance, neither elements nor blocks.
"""
import math
import sys
from pathlib import Path

import numpy as np
import torch
import torchvision

f = torch.nn.functional
BATCH, CLASSES = 4, 10
HERE = Path(__file__).parent / 'zoo'

# Zoo name: torchvision's, height and width of images.
TORCHVISION = {
    'densenet121': ('densenet121', 64), 'efficientnet-b0': ('efficientnet_b0', 64),
    'inception-v3': ('inception_v3', 91), 'mobilenet-v2': ('mobilenet_v2', 64),
    'mobilenet-v3-large': ('mobilenet_v3_large', 64), 'resnet18': ('resnet18', 64),
    'resnet50': ('resnet50', 64), 'squeezenet': ('squeezenet1_0', 64), 'vgg16': ('vgg16', 32),
    'vgg19': ('vgg19', 32)}


def draw(name, count):
    """Numbers in 0..2^32-1: the name's FNV-1a sum and a count, mixed as in MurmurHash3."""
    seed = 2166136261
    for byte in name.encode():
        seed = (seed ^ byte) * 16777619 & 0xFFFFFFFF
    x = np.arange(count, dtype=np.uint32) * np.uint32(2654435761) + np.uint32(seed)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
    return x ^ (x >> np.uint32(16))


def fractions(name, shape):
    return (draw(name, math.prod(shape)) >> np.uint32(8)).reshape(shape) / 2.0**24


def initial(name, shape):
    """Weights of several axes are spread as rectifiers need it; of a vector, those of a
    normalization are near 1, and biases near 0."""
    u = fractions(name, shape)
    if len(shape) > 1:
        made = (u * 2 - 1) * math.sqrt(6.0 / (math.prod(shape) // shape[0]))
    else:
        made = 0.5 + u if name.endswith('weight') else (u - 0.5) * 0.2
    return torch.tensor(made, requires_grad=True)


def batch(size):
    pixels = (draw('images', BATCH * size * size * 3) >> np.uint32(24)).astype(np.float64)
    labels = (draw('labels', BATCH) >> np.uint32(8)).astype(np.int64) % CLASSES
    images = torch.tensor(pixels.reshape(BATCH, size, size, 3)).permute(0, 3, 1, 2)
    return (images * (1 / 255)).contiguous(), torch.tensor(labels)


# --- torchvision -----------------------------------------------------------------------------


class Head(torch.nn.Module):
    """VGG16 as the zoo has it of itself: one dense layer behind the convolutions."""

    def __init__(self, features):
        super().__init__()
        self.features = features
        self.dense_1 = torch.nn.Linear(512, CLASSES)

    def forward(self, x):
        return self.dense_1(self.features(x).flatten(1))


def from_torchvision(name):
    more = {'aux_logits': False, 'init_weights': False} if name == 'inception_v3' else {}
    model = getattr(torchvision.models, name)(weights=None, num_classes=CLASSES, **more)
    if name == 'vgg16':
        model = Head(model.features)
    if name == 'vgg19':  # of images of 32x32 one pixel is left
        model.avgpool = torch.nn.Identity()
        model.classifier[0] = torch.nn.Linear(512, 4096)
    for module in model.modules():
        if isinstance(module, (torch.nn.Dropout, torchvision.ops.StochasticDepth)):
            module.p = 0.0
    model.double().train()
    drawn = {key: initial(key, tuple(p.shape)) for key, p in model.named_parameters()}
    return drawn, lambda x: torch.func.functional_call(model, drawn, (x,))


# --- written down here -----------------------------------------------------------------------


class Written:
    """Layers by name; their parameters are drawn when they are first used."""

    def __init__(self):
        self.drawn = {}

    def get(self, name, *shape):
        if name not in self.drawn:
            self.drawn[name] = initial(name, shape)
        return self.drawn[name]

    @staticmethod
    def pad(x, size, stride, value=0.0):
        """As much as TensorFlow's "same" does: the odd pixel at the bottom and on the right."""
        sides = []
        for length, s in ((x.shape[3], size[1]), (x.shape[2], size[0])):
            total = max((math.ceil(length / stride) - 1) * stride + s - length, 0)
            sides += [total // 2, total - total // 2]
        return f.pad(x, sides, value=value)

    def conv(self, x, name, filters, size=(1, 1), stride=1, groups=1, padded=True):
        w = self.get(name + '.weight', filters, x.shape[1] // groups, *size)
        return f.conv2d(self.pad(x, size, stride) if padded else x, w, stride=stride,
                        groups=groups)

    def norm(self, x, name):
        c = x.shape[1]
        return f.batch_norm(x, None, None, self.get(name + '.weight', c),
                            self.get(name + '.bias', c), True, 0, 1e-3)

    def max_pool(self, x, size, stride):
        return f.max_pool2d(self.pad(x, (size, size), stride, -math.inf), size, stride)

    def mean_pool(self, x, size, stride):
        """Of the pixels that are there."""
        ones = self.pad(torch.ones_like(x), (size, size), stride)
        return (f.avg_pool2d(self.pad(x, (size, size), stride), size, stride)
                / f.avg_pool2d(ones, size, stride))

    def classify(self, x):
        x = x.mean((2, 3))
        return f.linear(x, self.get('dense_1.weight', CLASSES, x.shape[1]),
                        self.get('dense_1.bias', CLASSES))


class Xception(Written):
    def separable(self, x, name, filters):
        x = self.conv(x, name + '_deep', x.shape[1], (3, 3), groups=x.shape[1])
        return self.norm(self.conv(x, name + '_wide', filters), name + '_norm')

    def halve(self, x, name, inner, filters, relu=True):
        y = self.separable(f.relu(x) if relu else x, name + '_1', inner)
        y = self.max_pool(self.separable(f.relu(y), name + '_2', filters), 3, 2)
        return y + self.norm(self.conv(x, name + '_skip', filters, stride=2),
                             name + '_skip_norm')

    def run(self, x):
        for name, filters, stride in (('conv1', 32, 2), ('conv2', 64, 1)):
            x = self.conv(x, name, filters, (3, 3), stride, padded=False)
            x = f.relu(self.norm(x, name + '_norm'))
        x = self.halve(x, 'block1', 128, 128, relu=False)
        x = self.halve(x, 'block2', 256, 256)
        x = self.halve(x, 'block3', 728, 728)
        for block in range(4, 12):
            y = x
            for i in (1, 2, 3):
                y = self.separable(f.relu(y), f'block{block}_{i}', 728)
            x = x + y
        x = self.halve(x, 'block12', 728, 1024)
        x = f.relu(self.separable(x, 'conv3', 1536))
        return self.classify(f.relu(self.separable(x, 'conv4', 2048)))


class AmoebaNet(Written):
    """6 normal cells, 64 filters. A cell adds five pairs: (operation, state), of states 0 and 1
    what it reads. source: Real et al. (2018), figure 4; Huang et al., GPipe (2018)"""

    CELLS, FILTERS = 6, 64
    NORMAL = (
        (('conv', 1), ('max3', 1)), (('none', 1), ('conv7', 0)), (('conv', 0), ('conv7', 0)),
        (('max3', 2), ('none', 2)), (('mean3', 1), ('conv', 5)))
    REDUCTION = (
        (('max2', 0), ('max3', 0)), (('none', 2), ('conv3', 1)), (('conv7', 2), ('max3', 2)),
        (('none', 3), ('max2', 1)), (('mean3', 2), ('conv', 3)))

    def relu_conv(self, x, name, filters, size=(1, 1), stride=1):
        return self.norm(self.conv(f.relu(x), name, filters, size, stride), name + '_norm')

    def row(self, x, name, filters, sizes, stride):
        for part, size in zip('abcd', sizes):
            x = self.relu_conv(x, f'{name}_{part}', filters if part == 'abcd'[len(sizes) - 1]
                               else filters // 4, size, stride if size == (3, 3) else 1)
        return x

    def halve(self, x, name, filters):
        x = f.relu(x)
        even = self.conv(x, name + '_even', filters // 2, stride=2)
        odd = self.conv(f.pad(x[:, :, 1:, 1:], (0, 1, 0, 1)), name + '_odd', filters // 2,
                        stride=2)
        return self.norm(torch.cat([even, odd], 1), name + '_norm')

    def operate(self, kind, x, name, filters, stride):
        if kind == 'none':
            return x
        if kind == 'conv':
            return self.relu_conv(x, name, filters)
        if kind == 'conv3':
            return self.row(x, name, filters, ((1, 1), (3, 3), (1, 1)), stride)
        if kind == 'conv7':
            return self.row(x, name, filters, ((1, 1), (1, 7), (7, 1), (1, 1)), 1)
        if kind == 'mean3':
            return self.mean_pool(x, 3, stride)
        return self.max_pool(x, int(kind[3:]), stride)

    def cell(self, last, skip, name, filters, reduces):
        is_halved = skip.shape[2] != last.shape[2]
        states = [self.relu_conv(last, name + '_0', filters),
                  self.halve(skip, name + '_1_h', filters) if is_halved
                  else self.relu_conv(skip, name + '_1', filters)]
        for i, pair in enumerate(self.REDUCTION if reduces else self.NORMAL):
            states.append(sum(
                self.operate(kind, states[at], f'{name}_{i + 2}{letter}', filters,
                             2 if reduces and at < 2 else 1)
                for letter, (kind, at) in zip('ab', pair)))
        return torch.cat([states[i] for i in ((4, 5, 6) if reduces else (0, 3, 4, 6))], 1)

    def run(self, x):
        filters, each, number = self.FILTERS, self.CELLS // 3, 0
        x = self.norm(self.conv(x, 'stem', filters // 4, (3, 3), 2), 'stem_norm')
        plan = [(filters // 2, True), (filters, True), *[(filters, False)] * each]
        for times in (2, 4):
            plan += [(times * filters, True), *[(times * filters, False)] * each]
        skip = last = x
        for number, (width, reduces) in enumerate(plan, 1):
            skip, last = last, self.cell(last, skip, f'cell{number}', width, reduces)
        return self.classify(last)


# --- recording -------------------------------------------------------------------------------


def record(name):
    if name in TORCHVISION:
        theirs, size = TORCHVISION[name]
        drawn, run = from_torchvision(theirs)
    else:
        size = 64
        written = Xception() if name == 'xception' else AmoebaNet()
        drawn, run = written.drawn, written.run
    x, labels = batch(size)
    loss = f.cross_entropy(run(x), labels)
    loss.backward()
    with open(HERE / f'{name}.txt', 'w') as file:
        print('loss', f'{loss.item():.13g}', file=file)
        for key, parameter in drawn.items():
            gradient = parameter.grad.numpy().ravel()
            sides = fractions('side of ' + key, gradient.shape) * 2 - 1
            print(key, f'{np.linalg.norm(gradient):.10g} {gradient @ sides:.10g}', file=file)
    print(name, loss.item(), len(drawn))


if __name__ == '__main__':
    torch.set_default_dtype(torch.float64)
    for model in sys.argv[1:] or [*TORCHVISION, 'xception', 'amoebanet-d']:
        record(model)
