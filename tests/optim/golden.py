#!/usr/bin/env python3
"""Writes what PyTorch's optimizers make of known gradients, in double.

    python3 tests/optim/golden.py > tests/optim/golden.h
    python3 tests/optim/golden.py adjusted > tests/optim/adjusted.h

Weights and gradients are multiples of 1/128, the same in every format; tests/optim/optimizer.c
makes them by the same formulas. The rate falls with the step, so that it shows where it enters.
"""
import sys

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

# Updates that are adjusted, of MANY parameters in two blocks of 128 and a rest: the optimizer's
# options; rate and decay of each block as factors; clip_value, clip_norm, ema.
MANY = 300
SHOWN_OF_MANY = (0, 1, 64, 127, 128, 200, 255, 256, 280, 299)
PLAIN = ((1, 1), (1, 1), (1, 1))
ADJUSTED = [
    ("sgd", "lr=0.02 momentum=0.9 weight_decay=0.03", torch.optim.SGD,
     dict(lr=0.02, momentum=0.9, weight_decay=0.03), ((0.1, 1), (1, 0), (2, 0.5)), 0, 0, 0),
    ("adamw", "lr=0.01 weight_decay=0.05", torch.optim.AdamW,
     dict(lr=0.01, eps=1e-7, weight_decay=0.05), ((0.1, 1), (1, 0), (0, 1)), 0, 0, 0.9),
    ("rmsprop", "lr=0.01", torch.optim.RMSprop, dict(lr=0.01, alpha=0.9, eps=1e-7),
     ((0.5, 1), (1, 1), (3, 1)), 0, 0, 0),
    ("sgd", "lr=0.05 weight_decay=0.03", torch.optim.SGD, dict(lr=0.05, weight_decay=0.03),
     PLAIN, 0.25, 0, 0.99),
    ("sgd", "lr=0.05 momentum=0.9", torch.optim.SGD, dict(lr=0.05, momentum=0.9), PLAIN, 0, 2.5,
     0),
    ("adam", "lr=0.01 epsilon=0.01", torch.optim.Adam, dict(lr=0.01, eps=0.01), PLAIN, 0, 0.75,
     0.999),
    ("sgd", "lr=0.05", torch.optim.SGD, dict(lr=0.05), PLAIN, 0.04, 1.5, 0),
    ("sgd", "lr=0.05", torch.optim.SGD, dict(lr=0.05), PLAIN, 0, 1000, 0),
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


def run_adjusted(optimizer, options, factors, value, norm, ema):
    """The shown weights after each of SHOWN steps, and their averages."""
    blocks = [torch.tensor([weight(i) for i in range(first, min(first + 128, MANY))],
                           dtype=torch.float64, requires_grad=True)
              for first in range(0, MANY, 128)]
    decay = options.get("weight_decay")
    groups = []
    for w, (rate, share) in zip(blocks, factors):
        group = {"params": [w], "lr": options["lr"] * rate}
        if decay:
            group["weight_decay"] = decay * share
        groups.append(group)
    update = optimizer(groups, **options)
    averages, shown = None, []
    average = torch.optim.swa_utils.get_ema_multi_avg_fn(ema)
    for step in range(1, STEPS + 1):
        for n, w in enumerate(blocks):
            w.grad = torch.tensor([gradient(n * 128 + i, step) for i in range(len(w))],
                                  dtype=torch.float64)
        if norm:
            torch.nn.utils.clip_grad_norm_(blocks, norm)
        if value:
            torch.nn.utils.clip_grad_value_(blocks, value)
        for group, (rate, _) in zip(update.param_groups, factors):
            group["lr"] = options["lr"] * rate * (200 - step) / 200
        update.step()
        now = [w.detach().clone() for w in blocks]
        if averages is None:
            averages = now
        else:
            average(averages, now, None)
        if step in SHOWN:
            every = torch.cat([w.detach() for w in blocks]).tolist()
            means = torch.cat(averages).tolist()
            shown.append([every[i] for i in SHOWN_OF_MANY] + [means[i] for i in SHOWN_OF_MANY])
    return shown


def print_rows(rows):
    for row in rows:
        cells = [f"{x!r}" for x in row]
        print("        {" + ",\n         ".join(
            ", ".join(cells[i:i + 4]) for i in range(0, len(cells), 4)) + "},")


def print_adjusted():
    print(f"enum {{ MANY = {MANY}, SHOWN_OF_MANY = {len(SHOWN_OF_MANY)}, STEPS = {STEPS}, "
          f"SHOWN = {len(SHOWN)} }};")
    print(f"static const int shown_steps[SHOWN] = {{{', '.join(map(str, SHOWN))}}};")
    print("static const int shown_of_many[SHOWN_OF_MANY] = "
          f"{{{', '.join(map(str, SHOWN_OF_MANY))}}};")
    print("static const struct adjusted {")
    print("    const char *kind, *options;")
    print("    double factors[3][2], clip_value, clip_norm, ema;")
    print("    double w[SHOWN][2 * SHOWN_OF_MANY]; /* weights, then their averages */")
    print("} adjusted[] = {")
    for kind, text, optimizer, options, factors, value, norm, ema in ADJUSTED:
        braces = ", ".join(f"{{{rate}, {share}}}" for rate, share in factors)
        print(f'    {{"{kind}", "{text}",')
        print(f"     {{{braces}}}, {value}, {norm}, {ema}, {{")
        print_rows(run_adjusted(optimizer, options, factors, value, norm, ema))
        print("    }},")
    print("};")


def main():
    print(f"/* Made by golden.py with PyTorch {torch.__version__}. */")
    print("/* clang-format off */")
    if "adjusted" in sys.argv[1:]:
        print_adjusted()
        return
    print(f"enum {{ ELEMENTS = {ELEMENTS}, STEPS = {STEPS}, SHOWN = {len(SHOWN)} }};")
    print(f"static const int shown_steps[SHOWN] = {{{', '.join(map(str, SHOWN))}}};")
    print("static const struct golden {")
    print("    const char *kind, *options;")
    print("    double w[SHOWN][ELEMENTS]; /* after each of shown_steps */")
    print("} goldens[] = {")
    for kind, text, optimizer, options in CASES:
        print(f'    {{"{kind}", "{text}", {{')
        print_rows(run(optimizer, options))
        print("    }},")
    print("};")


main()
