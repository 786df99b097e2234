#!/usr/bin/env python3
"""Records what PyTorch says of each loss, in double: of every sample the loss, the share of
right answers and the gradients.

usage: golden.py > golden.h

Of each there are arrays NAME_x, NAME_t, NAME_y, NAME_dx and NAME_dt (where targets are labels,
one zero), and a row ROW(NAME, operation, options, shape of x, shape of targets, classes).
"""
import sys

import torch

SAMPLES, UNITS, STEPS = 6, 5, 4
f = torch.nn.functional


class Generator:
    """x <- x * 1664525 + 1013904223 mod 2^32, of which the upper 16 bits are drawn."""

    def __init__(self):
        self.x = 1

    def draw(self):
        self.x = (self.x * 1664525 + 1013904223) & 0xFFFFFFFF
        return self.x >> 16

    def shares(self, *shape):
        return self.fill(shape, lambda: (self.draw() % 63 + 1) / 64)

    def numbers(self, *shape):
        return self.fill(shape, lambda: (self.draw() % 257 - 128) / 32)

    def signs(self, *shape):
        return self.fill(shape, lambda: self.draw() % 2 * 2 - 1)

    def labels(self, *shape):
        """Of steps some are -1, but never the first."""
        found = self.fill(shape, lambda: self.draw() % UNITS)
        for n in range(shape[0] if len(shape) == 2 else 0):
            for t in range(1, shape[1]):
                if (n + 2 * t) % 5 == 0:
                    found[n, t] = -1
        return found

    @staticmethod
    def fill(shape, draw):
        count = 1
        for length in shape:
            count *= length
        return torch.tensor([float(draw()) for _ in range(count)]).reshape(shape)


def hinge(p, t):
    return torch.clamp(1 - p * t, min=0).mean()


def log_likelihood(p, labels):
    return f.nll_loss(torch.log(p), labels, ignore_index=-1)


def logits(x, labels):
    return f.cross_entropy(x, labels, ignore_index=-1)


def no_answer(p, t):
    return torch.zeros(())


def beyond(limit, middle):
    return lambda p, t: ((p > limit) == (t > middle)).double().mean()


def classes(p, labels):
    living = labels >= 0
    return (p.argmax(-1) == labels)[living].double().mean()


def losses(g):
    """(name, options, loss, share of right answers, predictions, targets)"""
    units, rows = (SAMPLES, UNITS), (SAMPLES, STEPS, UNITS)
    yield ("binary_cross_entropy", "", f.binary_cross_entropy, beyond(0.5, 0.5),
           g.shares(*units), g.shares(*units))  # fmt: skip
    yield ("sigmoid_binary_cross_entropy", "", f.binary_cross_entropy_with_logits,
           beyond(0, 0.5), g.numbers(*units), g.shares(*units))  # fmt: skip
    yield "mean_squared_error", "", f.mse_loss, no_answer, g.numbers(*units), g.numbers(*units)
    yield "mean_absolute_error", "", f.l1_loss, no_answer, g.numbers(*units), g.numbers(*units)
    yield ("huber", "delta=1.5", lambda p, t: f.huber_loss(p, t, delta=1.5), no_answer,
           g.numbers(*units), g.numbers(*units))  # fmt: skip
    yield "hinge", "", hinge, beyond(0, 0), g.numbers(*units), g.signs(*units)
    yield "cross_entropy", "", log_likelihood, classes, g.shares(*units), g.labels(SAMPLES)
    yield ("cross_entropy", "", log_likelihood, classes, g.shares(*rows),
           g.labels(SAMPLES, STEPS))  # fmt: skip
    yield "softmax_cross_entropy", "", logits, classes, g.numbers(*units), g.labels(SAMPLES)
    yield ("softmax_cross_entropy", "", logits, classes, g.numbers(*rows),
           g.labels(SAMPLES, STEPS))  # fmt: skip


def write(name, values):
    values = values.detach().double().flatten().tolist()
    print(f"static const double {name}[] = {{")
    for i in range(0, len(values), 3):
        print("    " + " ".join(f"{v:.17g}," for v in values[i : i + 3]))
    print("};")


def record(number, name, options, loss, answer, x, targets):
    """Writes the arrays, and returns the row."""
    is_labels = targets.dim() < x.dim()
    t = targets.long() if is_labels else targets.clone().requires_grad_()
    x.requires_grad_()
    y = []
    for n in range(SAMPLES):
        found = loss(x[n], t[n])
        found.backward()
        y += [found.detach(), answer(x[n], t[n]).double()]
    row = f"golden_{number}"
    write(f"{row}_x", x)
    write(f"{row}_t", targets)
    write(f"{row}_y", torch.stack(y))
    write(f"{row}_dx", x.grad)
    write(f"{row}_dt", torch.zeros(1) if is_labels else t.grad)
    shapes = [shape_of(values) for values in (x, targets)]
    return f'ROW({row}, "{name}", "{options}", {shapes[0]}, {shapes[1]}, {UNITS * is_labels})'


def shape_of(values):
    """Of one sample, as test cases have it."""
    lengths = ", ".join(map(str, values.shape[1:]))
    return f"OP_SHAPE({lengths})" if lengths else "{0}"


def main():
    torch.set_default_dtype(torch.float64)
    print("/* Made by golden.py with PyTorch", torch.__version__.split("+")[0], "in double. */")
    print(f"enum {{ GOLDEN_SAMPLES = {SAMPLES} }};")
    rows = [record(number, *loss) for number, loss in enumerate(losses(Generator()))]
    print("#define GOLDENS(ROW)", *(f"    {row}" for row in rows), sep=" \\\n")


sys.exit(main())
