#!/usr/bin/env python3
"""One device against the same cores as several:

    devices.py PROGRAM MODEL DATA BATCH STEPS LIST...

trains MODEL on each list of devices in turn, three rounds, and prints the median step of each
(without the first third) beside the first list's.
"""
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS = 3


def step_ms(program, model, data, batch, steps, devices):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, 'train', model, '--data', data, '--batch-size', batch,
                        '--device', devices, '--split', 'equal', '--steps', steps,
                        '--epochs', '1000', '--val', 'off', '--run', folder + '/run',
                        '--quiet'], check=True, stdout=subprocess.DEVNULL)
        lines = Path(folder, 'run', 'metrics.jsonl').read_text().splitlines()
    found = [e['step_ms'] for e in map(json.loads, lines) if e['event'] == 'step']
    return statistics.median(found[len(found) // 3:])


def main():
    program, model, data, batch, steps, *lists = sys.argv[1:]
    found = {devices: [] for devices in lists}
    for _ in range(ROUNDS):
        for devices in lists:
            found[devices].append(step_ms(program, model, data, batch, steps, devices))
    first = statistics.median(found[lists[0]])
    for devices, rounds in found.items():
        step = statistics.median(rounds)
        print(f'{devices:8} {step:8.2f} ms a step  {1e3 * int(batch) / step:9.0f} samples/s'
              f'  {100 * first / step:6.1f} % of {lists[0]}   rounds '
              + ' '.join(f'{s:.2f}' for s in rounds))


main()
