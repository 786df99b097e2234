"""Two one-core halves of a device as `lockstep scale` predicts them from one half alone, beside
a real run on both: python3 scale.py PROGRAM. Wants a machine with nothing else to do; exit
status 77, a skipped test, where the first device has one core or cannot be cut."""
import json
import os
import statistics
import struct
import subprocess
import sys

import program
from program import PROGRAM, ProgramTest

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
                         '--batch-size', str(BATCH), '--json', 'scale.json')
        with open(self.path('scale.json')) as file:
            return json.load(file)['rows'][0]['step_ms']

    def trained(self):
        self.run_program('train', 'fashion-convnet', '--data', 'idx:data', '--val', 'off',
                         '--device', '0/2', '--set', 'split=equal', '--batch-size', str(BATCH),
                         '--epochs', '99', '--steps', str(STEPS), '--run', 'run', '--fresh')
        steps = self.events('run', 'step')[WARM_UP:]
        return statistics.median(step['step_ms'] for step in steps)

    def test_convnet(self):
        self.make_data()
        self.predicted()  # builds kernels
        ratios = []
        for _ in range(ROUNDS):
            predicted, trained = self.predicted(), self.trained()
            ratios.append(predicted / trained)
            print(f'predicted {predicted:.2f} ms, trained {trained:.2f} ms: '
                  f'{100 * ratios[-1] - 100:+.1f} %', file=sys.stderr)
        middle = statistics.median(ratios)
        print(f'median {100 * middle - 100:+.1f} %', file=sys.stderr)
        self.assertLess(abs(middle - 1), 0.1)


def can_be_cut():
    found = subprocess.run([PROGRAM, 'devices', '--json'], capture_output=True, check=True)
    return json.loads(found.stdout)['devices'][0]['compute_units'] > 1


if __name__ == '__main__':
    if not can_be_cut():
        print('the first device cannot be cut in two: nothing was compared')
        sys.exit(77)
    program.main()
