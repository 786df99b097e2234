#!/usr/bin/env python3
"""How long a training step waits for its samples:

    input_wait.py PROGRAM FOLDER [OPTION...]

trains the ConvNet for images of 96x96x3 on a folder of images, batch 64, three epochs, with the
further options of `lockstep train`, and prints of the last two epochs the median step, the mean
time of reading a batch and its share, of each device.
"""
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path


def main():
    program, folder, *options = sys.argv[1:]
    with tempfile.TemporaryDirectory() as place:
        subprocess.run([program, 'train', 'fashion-convnet', '--set', 'input=[96,96,3]',
                        '--set', 'classes=6', '--data', 'folder:' + folder, '--val', 'off',
                        '--batch-size', '64', '--epochs', '3', '--run', place + '/run',
                        '--quiet', *options], check=True, stdout=subprocess.DEVNULL)
        lines = Path(place, 'run', 'metrics.jsonl').read_text().splitlines()
    steps = [e for e in map(json.loads, lines) if e['event'] == 'step' and e['epoch'] > 0]
    for number in range(len(steps[0]['devices'])):
        there = [e for e in steps if e['devices'][number]]
        read = [e['devices'][number]['input_ms'] for e in there]
        taken = [e['step_ms'] for e in there]
        print(f'device {number}: {statistics.median(taken):.1f} ms a step, input '
              f'{statistics.mean(read):.2f} ms, {100 * sum(read) / sum(taken):.2f} %')


main()
