"""Training speed of PyTorch on the ConvNet of Fashion-MNIST: prints "... N /s" (images)."""
import argparse
import os
import statistics
import time

import torch
from torch import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument('--batch-size', type=int, default=512)
parser.add_argument('--steps', type=int, default=30, help='that are timed, after two')
parser.add_argument('--threads', type=int, default=len(os.sched_getaffinity(0)))
parser.add_argument('--channels-last', action='store_true', help='images as n, h, w, c')
parser.add_argument('--compile', action='store_true', help='by torch.compile')
options = parser.parse_args()

torch.set_num_threads(options.threads)
torch.manual_seed(0)
layout = torch.channels_last if options.channels_last else torch.contiguous_format
net = nn.Sequential(
    nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(64, 64, 3), nn.ReLU(),
    nn.Flatten(), nn.Linear(576, 64), nn.ReLU(), nn.Linear(64, 10),
).to(memory_format=layout)
images = torch.rand(options.batch_size, 1, 28, 28).to(memory_format=layout)
labels = torch.randint(0, 10, (options.batch_size,))
optimizer = torch.optim.Adam(net.parameters(), lr=0.001, eps=1e-7)
criterion = nn.CrossEntropyLoss()
model = torch.compile(net) if options.compile else net

seconds = []
for _ in range(options.steps + 2):
    start = time.perf_counter()
    optimizer.zero_grad()
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
    loss.item()  # waits
    seconds.append(time.perf_counter() - start)

rate = options.batch_size / statistics.median(seconds[2:])
print(f'torch {torch.__version__}, batch {options.batch_size}, {options.threads} threads: '
      f'{rate:.1f} /s')
