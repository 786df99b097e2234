"""Training speed of PyTorch on a GPU, TF32 off and on, or on a CPU: prints "... N /s" (images)
a line, in both layouts of images. mobilenet-v2 and efficientnet-b0 need torchvision."""
import argparse
import statistics
import time

import torch
from torch import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument('models', nargs='*',
                    default=['fashion-convnet:512', 'vgg16:64', 'resnet50:64'])
parser.add_argument('--steps', type=int, default=20, help='that are timed, after three')
parser.add_argument('--cpu', action='store_true', help='on the CPU')
parser.add_argument('--threads', type=int, default=0, help='of the CPU; 0: as PyTorch likes')
options = parser.parse_args()
if options.threads:
    torch.set_num_threads(options.threads)


def convnet():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3), nn.ReLU(),
        nn.Flatten(), nn.Linear(576, 64), nn.ReLU(), nn.Linear(64, 10)), (1, 28, 28), 10


def vgg16(frozen=0):
    layers, channels = [], 3
    for width, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
            channels = width
        layers.append(nn.MaxPool2d(2))
    for layer in [layer for layer in layers if isinstance(layer, nn.Conv2d)][:frozen]:
        layer.requires_grad_(False)
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512 * 49, 4)), (3, 224, 224), 4


def vgg16tail():
    """All but the last block and the head stay as they are."""
    return vgg16(frozen=10)


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


def separable(channels, filters):
    return [nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False),
            nn.Conv2d(channels, filters, 1, bias=False), nn.BatchNorm2d(filters)]


class Separables(nn.Module):
    """What Xception repeats: separable convolutions beside a skip. Source: Chollet 2016."""

    def __init__(self, widths, begins_with_relu=True, pools=True):
        super().__init__()
        path = []
        for channels, filters in zip(widths, widths[1:]):
            path += [nn.ReLU()] + separable(channels, filters)
        self.path = nn.Sequential(*path[0 if begins_with_relu else 1:],
                                  *([nn.MaxPool2d(3, 2, 1)] if pools else []))
        self.skip = nn.Sequential(nn.Conv2d(widths[0], widths[-1], 1, 2, bias=False),
                                  nn.BatchNorm2d(widths[-1])) if pools else nn.Identity()

    def forward(self, x):
        return self.path(x) + self.skip(x)


def xception():
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, 2, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 64, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
        Separables([64, 128, 128], begins_with_relu=False), Separables([128, 256, 256]),
        Separables([256, 728, 728]), *[Separables([728] * 4, pools=False) for _ in range(8)],
        Separables([728, 728, 1024]), *separable(1024, 1536), nn.ReLU(),
        *separable(1536, 2048), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)), (3, 299, 299), 1000


def from_torchvision(name):
    def make():
        import torchvision
        return getattr(torchvision.models, name)(), (3, 224, 224), 1000
    return make


def wait():
    if not options.cpu:
        torch.cuda.synchronize()


def measure(name, batch, tf32, layout):
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    place = 'cpu' if options.cpu else 'cuda'
    models = {'fashion-convnet': convnet, 'vgg16': vgg16, 'vgg16tail': vgg16tail,
              'resnet50': resnet50, 'xception': xception,
              'mobilenet-v2': from_torchvision('mobilenet_v2'),
              'efficientnet-b0': from_torchvision('efficientnet_b0')}
    net, shape, classes = models[name]()
    net = net.to(place, memory_format=layout)
    images = torch.rand(batch, *shape, device=place).to(memory_format=layout)
    labels = torch.randint(0, classes, (batch,), device=place)
    trained = [parameter for parameter in net.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=0.001)
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
    words = [f'torch {torch.__version__}', where, name, f'batch {batch}',
             str(layout).rsplit('.', maxsplit=1)[-1]]
    if not options.cpu:
        words.append('TF32 on' if tf32 else 'TF32 off')
    print(f'{", ".join(words)}: {batch / statistics.median(seconds[3:]):.1f} /s', flush=True)


for model in options.models:
    for use_tf32 in (False,) if options.cpu else (False, True):
        for memory_format in (torch.contiguous_format, torch.channels_last):
            measure(model.split(':')[0], int(model.split(':')[1]), use_tf32, memory_format)
