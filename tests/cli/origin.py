"""stop_on_nan names the entry of a model with which numbers that are not finite began."""
import program
from program import DATA, ProgramTest

DEVICES = {'one': [], 'mirrored': ['--device', '0*2'], 'halves': ['--device', '0/2'],
           'accumulating': ['--set', 'accumulate=2'],
           'group': ['--device', '0*2', '--place', 'auto'],
           'behind': ['--device', '0*2', '--place', 'low=0,high=0,last=1'],
           'two groups': ['--device', '0*4', '--place', 'low=0,high=1']}
# Weights that are too large after a step: the values behind them are the first.
STEEP = """name: steep
input: [28, 28, 1]
layers:
  - {name: low, conv2d: {filters: 8, kernel: 3}}
  - max_pool: {size: 4}
  - {name: high, conv2d: {filters: 8, kernel: 3}}
  - flatten
  - dense: {units: 64}
  - {name: last, dense: {units: 10}}
  - softmax
"""
# The slope of the root is infinite at 0, its value is 0.
ROOT = """name: root
input: [28, 28, 1]
layers:
  - {name: low, conv2d: {filters: 8, kernel: 3}}
  - {name: square, math: {function: product}, from: [low, low]}
  - {name: high, math: {function: sqrt}}
  - flatten
  - {name: last, dense: {units: 10}}
  - softmax
"""
# Squares of what is a number too large in one sample, before the first update.
SQUARE = """name: square
input: [2]
layers:
  - {name: low, dense: {units: 4}}
  - {name: high, math: {function: product}, from: [low, low]}
  - {name: last, dense: {units: 2}}
  - softmax
"""
# Two branches of one sum, of which one is calm.
BRANCHES = """name: branches
input: [28, 28, 1]
layers:
  - {name: calm, average_pool: {size: 4}}
  - {name: low, conv2d: {filters: 1, kernel: 4, stride: 4}, from: image}
  - {name: high, math: {function: sinh}}
  - {name: sum, add: , from: [calm, high]}
  - flatten
  - {name: last, dense: {units: 10}}
  - softmax
"""
WORDS = """name: words
input: {tokens: {shape: [12], type: int32, length: true}}
layers:
  - {name: low, embedding: {vocabulary: 256, units: 8}}
  - {name: high, math: {function: sinh}}
  - {name: last, lstm: {units: 8}}
  - dense: {units: 2}
  - softmax
"""


class Origin(ProgramTest):
    def train(self, model, *options, data=DATA):
        done = self.run_program(
            'train', model, '--data', data, '--batch-size', '32', '--steps', '64',
            '--optimizer', 'sgd', '--lr', '1e6', '--val', 'off', '--shards', '4', '--callback',
            'stop_on_nan', '--run', 'run', '--fresh', *options, status=3)
        self.assertIn('not finite', done.stderr)
        return done.stderr

    def test_values(self):
        """That steps are repeated for it is the same on all devices."""
        self.put('steep.yaml', STEEP)
        self.put('branches.yaml', BRANCHES)
        self.put('words.yaml', WORDS)
        self.put('lines.txt', ''.join(f'{"even" if i % 2 else "odd"}\tw{i % 40} w{i % 7} of\n'
                                      for i in range(200)))
        for model in 'steep', 'branches', 'words':
            data = 'text:lines.txt' if model == 'words' else DATA
            for name in DEVICES if model == 'steep' else ('one', 'halves', 'behind'):
                with self.subTest(model, devices=name):
                    options = DEVICES[name]
                    self.assertRegex(self.train(model + '.yaml', *options, data=data),
                                     r"in step \d it began with \d+ of \d+ values of 'high'")

    def test_gradients(self):
        self.put('root.yaml', ROOT)
        for name, options in DEVICES.items():
            with self.subTest(name):
                self.assertRegex(self.train('root.yaml', *options),
                                 r"in step 1 it began with \d+ of \d+ gradients that come from "
                                 r"'high'")

    def test_one_sample(self):
        """Whichever micro-batch it is in, of those that are on their way at a time."""
        self.put('square.yaml', SQUARE)
        rows = [f'{i / 8},{1 - i / 8},{"yes" if i % 2 else "no"}\n' for i in range(8)]
        rows[3] = '3e30,-1e30,yes\n'
        self.put('rows.csv', 'a,b,kind\n' + ''.join(rows))
        for name in 'halves', 'behind', 'two groups':
            for seed in range(3):
                with self.subTest(name, seed=seed):
                    said = self.train('square.yaml', *DEVICES[name], '--batch-size', '8',
                                      '--shards', '8', '--seed', str(seed),
                                      data='csv:rows.csv,fields=a,b,label=kind')
                    self.assertRegex(said, r"in step 1 it began with [1-4] of \d+ values of "
                                           r"'high'")


if __name__ == '__main__':
    program.main()
