#!/usr/bin/env python3
"""Steps of PyTorch with the zoo's models of texts, for figures side by side with
`lockstep bench MODEL`:

    torch_text.py MODEL [--batch-size N] [--width N] [--threads N] [--seconds S] [--plain-adam]
                  [--gpu]

MODEL: text-lstm, text-bilstm, transformer-encoder; vocabulary 20,000, 6 classes, texts as long
as the model takes them, Adam; --width N is that of the embedding and of what follows it. Prints
sequences per second, of medians. Adam's fused form is used unless it is --plain-adam: measure
both, and count the faster one.

The nets of text_nets.py know texts of any length, step by step; these here are what is fastest
in PyTorch for texts that are all as long: its own LSTM, and attention without a mask. On a GPU
TF32 stays off, as PyTorch has it for products of matrices.
"""
import argparse
import statistics
import time

import torch
from torch import nn

VOCABULARY, CLASSES = 20000, 6


class Recurrent(nn.Module):
    def __init__(self, width, both):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.lstm = nn.LSTM(width, width, batch_first=True, bidirectional=both)
        self.dense = nn.Linear(width * (1 + both), CLASSES)

    def forward(self, x):
        _, (h, _) = self.lstm(self.embedding(x))
        return self.dense(torch.cat(list(h), 1))


class Encoder(nn.Module):
    """Layers are normalized before they are computed."""

    def __init__(self, width, steps):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.register_buffer("position", torch.randn(steps, width))
        self.drop = nn.Dropout(0.1)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(9))
        self.inner = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(4))
        self.joined = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        self.wide = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(4))
        self.narrow = nn.ModuleList(nn.Linear(4 * width, width) for _ in range(4))
        self.dense = nn.Linear(width, CLASSES)

    def forward(self, x):
        y = self.drop(self.embedding(x) + self.position)
        for i in range(4):
            parts = self.inner[i](self.norms[2 * i](y)).chunk(3, -1)
            heads = [p.unflatten(-1, (4, -1)).transpose(1, 2) for p in parts]
            seen = nn.functional.scaled_dot_product_attention(*heads)
            y = y + self.drop(self.joined[i](seen.transpose(1, 2).flatten(2)))
            wide = nn.functional.gelu(self.wide[i](self.norms[2 * i + 1](y)))
            y = y + self.drop(self.narrow[i](wide))
        return self.dense(self.norms[8](y).mean(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=["text-lstm", "text-bilstm", "transformer-encoder"])
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--width", type=int)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--plain-adam", action="store_true")
    parser.add_argument("--gpu", action="store_true")
    a = parser.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    steps = 128 if a.model == "transformer-encoder" else 64
    net = (Encoder(a.width or 256, steps) if a.model == "transformer-encoder"
           else Recurrent(a.width or 128, a.model == "text-bilstm"))  # fmt: skip
    place = "cuda" if a.gpu else "cpu"
    net = net.to(place)
    torch.backends.cudnn.allow_tf32 = False
    adam = torch.optim.Adam(net.parameters(), 1e-3, **({} if a.plain_adam else {"fused": True}))
    loss = nn.CrossEntropyLoss()
    x = torch.randint(0, VOCABULARY, (a.batch_size, steps), device=place)
    labels = torch.randint(0, CLASSES, (a.batch_size,), device=place)
    took, until = [], time.perf_counter() + a.seconds
    while len(took) < 6 or time.perf_counter() < until:
        start = time.perf_counter()
        adam.zero_grad()
        loss(net(x), labels).backward()
        adam.step()
        if a.gpu:
            torch.cuda.synchronize()
        took.append(time.perf_counter() - start)
    took = took[2:]
    print(f"torch {torch.__version__} {a.model} width {a.width or 'usual'} batch "
          f"{a.batch_size} {'GPU' if a.gpu else f'{a.threads} threads'}: "
          f"{a.batch_size / statistics.median(took):.0f} sequences/s "
          f"(best {a.batch_size / min(took):.0f}, {len(took)} steps)")  # fmt: skip


if __name__ == "__main__":
    main()
