"""Finds the main loop in a listing of instructions and counts what it does."""
from typing import NamedTuple


class Instruction(NamedTuple):
    name: str
    target: str = ""  # a label that it may go on at
    falls: bool = True  # or with the next instruction


class Share(NamedTuple):
    sums: int  # multiply-adds
    all: int


def reach(edges, start, stop):
    """The places that can be reached from `start`, not going on at `stop`."""
    seen, left = {start}, [start]
    while left:
        at = left.pop()
        if at == stop:
            continue
        for to in edges[at]:
            if to not in seen:
                seen.add(to)
                left.append(to)
    return seen


def edges_of(code, labels):
    after = [[] for _ in code]
    for i, instruction in enumerate(code):
        if instruction.target in labels:
            after[i].append(labels[instruction.target])
        if instruction.falls:
            after[i].append(i + 1)
        after[i] = [to for to in after[i] if to < len(code)]
    return after


def jumps_back(after):
    """The (end, head) of loops: steps of a walk from the first place to one it came through."""
    state, way = [""] * len(after), [(0, iter(after[0]))]
    state[0] = "on the way"
    while way:
        at, rest = way[-1]
        to = next(rest, None)
        if to is None:
            state[at] = "done"
            way.pop()
        elif state[to] == "on the way":
            yield at, to
        elif not state[to]:
            state[to] = "on the way"
            way.append((to, iter(after[to])))


def natural_loops(code, labels):
    """The places of each loop: what can reach its end without passing its head."""
    after = edges_of(code, labels)
    before = [[] for _ in code]
    for at, places in enumerate(after):
        for to in places:
            before[to].append(at)
    for end, head in jumps_back(after):
        inside = reach(before, end, head)
        if head == 0 or 0 not in inside:
            yield inside


def main_loop(code, labels, weight):
    """The share of multiply-adds in the smallest loop that does most of them.

    weight(name) is (multiply-adds, operations) of an instruction, (0, 0) for what only waits.
    """
    found = []
    for inside in natural_loops(code, labels):
        pairs = [weight(code[i].name) for i in inside]
        found.append(Share(sum(p[0] for p in pairs), sum(p[1] for p in pairs)))
    most = max((share.sums for share in found), default=0)
    if most == 0:
        return None
    return min((s for s in found if s.sums >= 0.9 * most), key=lambda share: share.all)
