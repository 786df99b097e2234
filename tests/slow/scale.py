"""Two one-core halves of a device as `lockstep scale` predicts them from one half alone, beside
a real run on both: that mirror a model, or are the two places of one. python3 scale.py PROGRAM.
Wants a machine with nothing else to do; exit status 77, a skipped test, where the first device
has one core or cannot be cut. The stages are compared on $LOCKSTEP_DATA/trashnet."""
import json
import os
import statistics
import struct
import subprocess
import sys
import unittest

import program
from program import PROGRAM, ProgramTest

TRASHNET = os.path.join(os.environ.get('LOCKSTEP_DATA', ''), 'trashnet')
ROUNDS, STEPS, WARM_UP, BATCH, SAMPLES = 7, 70, 10, 512, 8192


class Scale(ProgramTest):
    def make_data(self):
        """MNIST's format: reading a batch is a copy, so that samples are there in time."""
        os.mkdir(self.path('data'))
        for part, count in ('train', SAMPLES), ('t10k', 16):
            self.put(f'data/{part}-images-idx3-ubyte',
                     struct.pack('>4i', 2051, count, 28, 28) + os.urandom(count * 784))
            self.put(f'data/{part}-labels-idx1-ubyte', struct.pack('>2i', 2049, count) +
                     bytes(i % 10 for i in range(count)))

    def predicted(self):
        self.run_program('scale', 'fashion-convnet', '--device', '0/2', '--devices', '2',
                         '--batch-size', str(BATCH), '--data', 'idx:data', '--json',
                         'scale.json')
        with open(self.path('scale.json')) as file:
            return json.load(file)['rows'][0]['step_ms']

    def trained(self):
        self.run_program('train', 'fashion-convnet', '--data', 'idx:data', '--val', 'off',
                         '--device', '0/2', '--set', 'split=equal', '--batch-size', str(BATCH),
                         '--epochs', '99', '--steps', str(STEPS), '--run', 'run', '--fresh')
        steps = self.events('run', 'step')[WARM_UP:]
        return statistics.median(step['step_ms'] for step in steps)

    def compare(self, rounds, predict, train):
        predict()  # builds kernels
        ratios = []
        for _ in range(rounds):
            predicted, trained = predict(), train()
            ratios.append(predicted / trained)
            print(f'predicted {predicted:.2f} ms, trained {trained:.2f} ms: '
                  f'{100 * ratios[-1] - 100:+.1f} %', file=sys.stderr)
        middle = statistics.median(ratios)
        print(f'median {100 * middle - 100:+.1f} %', file=sys.stderr)
        self.assertLess(abs(middle - 1), 0.1)

    def compare_group(self, model, *options, steps, rounds=3):
        def predict():
            self.run_program('scale', model, *options, '--place', 'auto', '--device', '0/2',
                             '--json', 'scale.json')
            with open(self.path('scale.json')) as file:
                return json.load(file)['step_ms']

        def train():
            self.run_program('train', model, *options, '--place', 'auto', '--device', '0/2',
                             '--val', 'off', '--epochs', '99', '--steps', str(steps), '--run',
                             'run', '--fresh')
            taken = self.events('run', 'step')[steps // 3:]
            return statistics.median(step['step_ms'] for step in taken)

        self.compare(rounds, predict, train)

    def test_convnet(self):
        self.make_data()
        self.compare(ROUNDS, self.predicted, self.trained)

    def test_branches(self):
        self.compare_group('two-branch', '--data', 'synthetic:pairs', '--batch-size', '512',
                           steps=24)

    def test_short_stages(self):
        """Steps of 20 ms, where what a place waits for the other one counts."""
        self.make_data()
        self.compare_group('fashion-convnet', '--data', 'idx:data', '--batch-size', str(BATCH),
                           steps=STEPS, rounds=ROUNDS)

    @unittest.skipUnless(os.path.isdir(TRASHNET), 'no $LOCKSTEP_DATA/trashnet')
    def test_stages(self):
        """Few samples of a shard, in plane tiles; and more of them."""
        for size in ('16', '8'), ('64', '8'):
            self.compare_group('vgg16', '--data', f'folder:{TRASHNET},size=96x96',
                               '--batch-size', size[0], '--shards', size[1], steps=9)


def can_be_cut():
    found = subprocess.run([PROGRAM, 'devices', '--json'], capture_output=True, check=True)
    return json.loads(found.stdout)['devices'][0]['compute_units'] > 1


if __name__ == '__main__':
    if not can_be_cut():
        print('the first device cannot be cut in two: nothing was compared')
        sys.exit(77)
    program.main()
