#!/usr/bin/env python3
"""Writes golden.h: what PyTorch's optimizers make of known gradients, in double.

    python3 tests/optim/golden.py > tests/optim/golden.h

Weights and gradients are multiples of 1/128, the same in every format; tests/optim/optimizer.c
makes them by the same formulas. The rate falls with the step, so that it shows where it enters.
"""
import torch

ELEMENTS, STEPS, SHOWN = 37, 100, (1, 10, 100)
CASES = [
    ("sgd", "lr=0.05", torch.optim.SGD, dict(lr=0.05)),
    ("sgd", "lr=0.05 weight_decay=0.03", torch.optim.SGD, dict(lr=0.05, weight_decay=0.03)),
    ("sgd", "lr=0.02 momentum=0.9", torch.optim.SGD, dict(lr=0.02, momentum=0.9)),
    ("sgd", "lr=0.02 momentum=0.8 nesterov=true weight_decay=0.01", torch.optim.SGD,
     dict(lr=0.02, momentum=0.8, nesterov=True, weight_decay=0.01)),
    ("rmsprop", "", torch.optim.RMSprop, dict(lr=0.001, alpha=0.9, eps=1e-7)),
    ("rmsprop", "lr=0.01 rho=0.95 momentum=0.5 epsilon=0.001", torch.optim.RMSprop,
     dict(lr=0.01, alpha=0.95, momentum=0.5, eps=0.001)),
    ("rmsprop", "lr=0.01 centered=true", torch.optim.RMSprop,
     dict(lr=0.01, alpha=0.9, centered=True, eps=1e-7)),
    ("rmsprop", "lr=0.01 rho=0.8 momentum=0.9 centered=true epsilon=0.01",
     torch.optim.RMSprop,
     dict(lr=0.01, alpha=0.8, momentum=0.9, centered=True, eps=0.01)),
    ("adam", "", torch.optim.Adam, dict(lr=0.001, eps=1e-7)),
    ("adam", "lr=0.02 beta_1=0.8 beta_2=0.95 epsilon=0.1", torch.optim.Adam,
     dict(lr=0.02, betas=(0.8, 0.95), eps=0.1)),
    ("adamw", "lr=0.01 weight_decay=0.05", torch.optim.AdamW,
     dict(lr=0.01, eps=1e-7, weight_decay=0.05)),
]


def weight(i):
    return ((i * 53 + 17) % 257 - 128) / 128


def gradient(i, step):
    return ((i * 37 + step * step * 101 + i * step * 13) % 257 - 120) / 128


def run(optimizer, options):
    w = torch.tensor([weight(i) for i in range(ELEMENTS)], dtype=torch.float64,
                     requires_grad=True)
    update = optimizer([w], **options)
    shown = []
    for step in range(1, STEPS + 1):
        w.grad = torch.tensor([gradient(i, step) for i in range(ELEMENTS)], dtype=torch.float64)
        update.param_groups[0]["lr"] = options["lr"] * (200 - step) / 200
        update.step()
        if step in SHOWN:
            shown.append(w.detach().tolist())
    return shown


def main():
    print(f"/* Made by golden.py with PyTorch {torch.__version__}. */")
    print("/* clang-format off */")
    print(f"enum {{ ELEMENTS = {ELEMENTS}, STEPS = {STEPS}, SHOWN = {len(SHOWN)} }};")
    print(f"static const int shown_steps[SHOWN] = {{{', '.join(map(str, SHOWN))}}};")
    print("static const struct golden {")
    print("    const char *kind, *options;")
    print("    double w[SHOWN][ELEMENTS]; /* after each of shown_steps */")
    print("} goldens[] = {")
    for kind, text, optimizer, options in CASES:
        print(f'    {{"{kind}", "{text}", {{')
        for row in run(optimizer, options):
            cells = [f"{x!r}" for x in row]
            print("        {" + ",\n         ".join(
                ", ".join(cells[i:i + 4]) for i in range(0, len(cells), 4)) + "},")
        print("    }},")
    print("};")


main()
