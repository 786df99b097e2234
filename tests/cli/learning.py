"""That training learns: on real images, and at batch sizes that fit nothing."""
import glob
import math
import os
import shutil
import statistics
import unittest

import program
from program import MODEL, ProgramTest

FASHION_MNIST = os.path.join(os.environ.get('LOCKSTEP_DATA', ''), 'fashion-mnist')
NET = MODEL.replace('  - flatten', '  - conv2d: {filters: 8, kernel: 3, activation: relu}\n'
                                   '  - max_pool: {size: 2}\n  - flatten')


class RealImages(ProgramTest):
    @unittest.skipUnless(os.path.isdir(FASHION_MNIST), 'no fashion-mnist in $LOCKSTEP_DATA')
    def test_fashion_mnist(self):
        """Half an epoch of the ConvNet. Measured for four seeds: 0.723 to 0.742."""
        self.run_program('train', 'fashion-convnet', '--data', 'idx:' + FASHION_MNIST, '--run',
                         'run', '--steps', '60')
        found, = self.events('run', 'eval')
        self.assertGreater(found['accuracy'], 0.68)
        self.assertLess(found['loss'], 0.85)
        self.assertEqual(self.events('run', 'step')[-1]['step'], 60)


class BatchSizes(ProgramTest):
    def setUp(self):
        super().setUp()
        self.put('net.yaml', NET)

    def losses(self, size, count, epochs, *arguments):
        """Of each step of a training on that many samples."""
        self.run_program('train', 'net.yaml', '--data', f'synthetic:digits,count={count}',
                         '--batch-size', str(size), '--epochs', str(epochs), '--run',
                         f'run{size}', *arguments)
        found = [e['loss'] for e in self.events(f'run{size}', 'step')]
        self.assertEqual(len(found), epochs * math.ceil(count / size))
        return found

    def check_learning(self, *arguments):
        found = self.losses(*arguments)
        self.assertAlmostEqual(found[0], math.log(10), delta=1)
        quarter = len(found) // 4
        self.assertLess(statistics.mean(found[-quarter:]), found[0] * 0.6)
        self.assertGreater(self.events(f'run{arguments[0]}', 'eval')[-1]['accuracy'], 0.4)

    def test_1(self):
        self.check_learning(1, 400, 2)

    def test_17(self):
        self.check_learning(17, 503, 6)  # the last batch has 10 samples

    def test_511(self):
        self.check_learning(511, 1200, 12, '--lr', '0.01')  # the last batch has 178

    def test_unbounded_functions(self):
        """Where a lane has no sample x is 0, whatever a function makes of that."""
        rows = [f'{-1 - i % 7 / 100},{-1 + i % 5 / 100},{i % 3}' for i in range(20)]
        self.put('rows.csv', '\n'.join(['a,b,size', *rows, '']))
        for name, norm in ('plain', ''), ('norm', '- batch_norm'):
            self.put('net.yaml', f"""name: net
input: {{x: [2]}}
layers:
  - {{name: steep, rescale: {{scale: 100, shift: 100}}}}
  - exp
  {norm}
  - {{name: size, dense: {{units: 1}}}}
output: size
loss: huber
""")
            self.run_program('train', 'net.yaml', '--data', 'csv:rows.csv,fields=x:a+b,'
                             'label=size:size', '--batch-size', '16', '--steps', '5', '--run',
                             name, '--val', 'off', '--lr', '0.001')
            for event in self.events(name, 'step'):
                self.assertLess(event['loss'], 100)

    def test_losses_behind_another_shape(self):
        """A loss that reads what a function makes in another shape is no part of it."""
        rows = [f'{i % 7},{i % 5},{i % 4}' for i in range(20)]
        self.put('rows.csv', '\n'.join(['a,b,kind', *rows, '']))
        self.put('net.yaml', """name: net
input: {x: [2]}
layers:
  - dense: {units: 4}
  - reshape: {shape: [2, 2]}
  - softmax
  - {name: kind, flatten: }
output: kind
loss: cross_entropy
""")
        self.run_program('train', 'net.yaml', '--data', 'csv:rows.csv,fields=x:a+b,'
                         'label=kind:kind', '--steps', '2', '--run', 'run', '--val', 'off')

    def test_missing_samples(self):
        """What a batch has no samples for weighs nothing: the same samples, the same losses."""
        for count in 1, 17, 65:
            wanted = self.losses(count, count, 20)
            for size in 80, 511:
                found = self.losses(size, count, 20)
                for a, b in zip(found, wanted, strict=True):
                    self.assertAlmostEqual(a, b, delta=1e-4 * max(wanted))
            for name in glob.glob(self.path('run*')):
                shutil.rmtree(name)


if __name__ == '__main__':
    program.main()
