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
    def train(self, epochs, seed):
        """Accuracy on the 10,000 test images after each epoch, at the defaults of the job."""
        self.run_program('train', 'fashion-convnet', '--data', 'idx:' + FOLDER, '--run', 'run',
                         '--fresh', '--epochs', str(epochs), '--seed', str(seed), timeout=3600)
        found = [event['accuracy'] for event in self.events('run', 'eval')]
        self.assertEqual(len(found), epochs)
        print(f'seed {seed}: accuracy', *(f'{a:.4f}' for a in found), file=sys.stderr)
        return found

    def check_eval(self, accuracy):
        """The checkpoint alone gives the same number of right answers."""
        found = json.loads(self.run_program('eval', 'run', '--json').stdout)
        self.assertEqual(found['samples'], 10000)
        self.assertEqual(round(10000 * found['accuracy']), round(10000 * accuracy))

    def test_5_epochs(self):
        last = []
        for seed in 0, 1, 2:
            last.append(self.train(5, seed)[-1])
            self.check_eval(last[-1])
        self.assertGreaterEqual(statistics.median(last), 0.865)

    def test_15_epochs(self):
        last = self.train(15, 0)[-1]
        self.check_eval(last)
        self.assertGreaterEqual(last, 0.9)


if __name__ == '__main__':
    if not os.path.isdir(FOLDER):
        print('fashion-mnist is not in $LOCKSTEP_DATA: nothing was trained')
        sys.exit(77)
    program.main()
