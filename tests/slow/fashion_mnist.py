"""The whole job on the real Fashion-MNIST: python3 fashion_mnist.py PROGRAM. Exit status 77, a
skipped test, where $LOCKSTEP_DATA/fashion-mnist is not there. Takes some minutes."""
import json
import os
import statistics
import sys

import program
from program import ProgramTest

FOLDER = os.path.join(os.environ.get('LOCKSTEP_DATA', ''), 'fashion-mnist')


class FashionMnist(ProgramTest):
    def train(self, seed, epochs):
        """Trains the run of that seed on to `epochs`; the accuracy on the test images."""
        run = f'run{seed}'
        self.run_program('train', 'fashion-convnet', '--data', 'idx:' + FOLDER, '--run', run,
                         '--epochs', str(epochs), '--seed', str(seed), timeout=3600)
        found = [event['accuracy'] for event in self.events(run, 'eval')]
        self.assertEqual(len(found), epochs)
        self.check_eval(run, found[-1])
        print(f'seed {seed}: accuracy', *(f'{a:.4f}' for a in found), file=sys.stderr)
        return found[-1]

    def check_eval(self, run, accuracy):
        """The checkpoint alone gives the same number of right answers."""
        found = json.loads(self.run_program('eval', run, '--json').stdout)
        self.assertEqual(found['samples'], 10000)
        self.assertEqual(round(10000 * found['accuracy']), round(10000 * accuracy))

    def test_accuracy(self):
        """Measured: 0.8776, 0.8655, 0.8707 after 5 epochs, 0.8992, 0.8994, 0.9031 after 15."""
        seeds = 0, 1, 2
        self.assertGreaterEqual(statistics.median(self.train(s, 5) for s in seeds), 0.865)
        after15 = [self.train(s, 15) for s in seeds]
        self.assertGreaterEqual(statistics.median(after15), 0.895)
        self.assertGreaterEqual(max(after15), 0.9)


if __name__ == '__main__':
    if not os.path.isdir(FOLDER):
        print('fashion-mnist is not in $LOCKSTEP_DATA: nothing was trained')
        sys.exit(77)
    program.main()
