"""Training speed of PyTorch on a GPU, TF32 off and on: prints "... N /s" (images) a line."""
import argparse
import statistics
import time

import torch
from torch import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument('models', nargs='*',
                    default=['fashion-convnet:512', 'vgg16:64', 'resnet50:64'])
parser.add_argument('--steps', type=int, default=20, help='that are timed, after three')
parser.add_argument('--cpu', action='store_true', help='there is no GPU: to try the script')
options = parser.parse_args()


def convnet():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3), nn.ReLU(),
        nn.Flatten(), nn.Linear(576, 64), nn.ReLU(), nn.Linear(64, 10)), (1, 28, 28), 10


def vgg16():
    layers, channels = [], 3
    for width, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
            channels = width
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512 * 49, 4)), (3, 224, 224), 4


class Block(nn.Module):
    """Three convolutions, and one beside them where the shape changes."""

    def __init__(self, channels, width, stride):
        super().__init__()
        def conv(c, k, size, step=1):
            return [nn.Conv2d(c, k, size, step, size // 2, bias=False), nn.BatchNorm2d(k)]
        self.path = nn.Sequential(
            *conv(channels, width, 1), nn.ReLU(), *conv(width, width, 3, stride), nn.ReLU(),
            *conv(width, 4 * width, 1))
        self.skip = nn.Sequential(*(conv(channels, 4 * width, 1, stride)
                                    if channels != 4 * width else []))

    def forward(self, x):
        return torch.relu(self.path(x) + self.skip(x))


def resnet50():
    layers, channels = [], 64
    for width, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for i in range(count):
            layers.append(Block(channels, width, 2 if i == 0 and width > 64 else 1))
            channels = 4 * width
    return nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
        nn.MaxPool2d(3, 2, 1), *layers,
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)), (3, 224, 224), 1000


def wait():
    if not options.cpu:
        torch.cuda.synchronize()


def measure(name, batch, tf32):
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    place = 'cpu' if options.cpu else 'cuda'
    models = {'fashion-convnet': convnet, 'vgg16': vgg16, 'resnet50': resnet50}
    net, shape, classes = models[name]()
    net = net.to(place)
    images = torch.rand(batch, *shape, device=place)
    labels = torch.randint(0, classes, (batch,), device=place)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.001)
    criterion = nn.CrossEntropyLoss()
    seconds = []
    for _ in range(options.steps + 3):
        wait()
        start = time.perf_counter()
        optimizer.zero_grad()
        criterion(net(images), labels).backward()
        optimizer.step()
        wait()
        seconds.append(time.perf_counter() - start)
    where = 'cpu' if options.cpu else torch.cuda.get_device_name()
    print(f'torch {torch.__version__}, {where}, {name}, batch {batch}, TF32 '
          f'{"on" if tf32 else "off"}: {batch / statistics.median(seconds[3:]):.1f} /s',
          flush=True)


for model in options.models:
    for tf32 in (False, True):
        measure(model.split(':')[0], int(model.split(':')[1]), tf32)
