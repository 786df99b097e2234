"""Models with blocks, and with layers that share weights: what runs of them end with."""
import json
import random
import struct
from pathlib import Path

import program
from program import ProgramTest
from weights import floats, read_safetensors, write_safetensors

# Two branches of one tower, one of them with noise, and layers used two and three times.
SIAMESE = """input: [28, 28, 1]
classes: 10
blocks:
  tower:
    parameters: {filters: 8}
    layers:
      - {name: $name_conv, conv2d: {filters: $filters, kernel: 3, activation: relu}}
      - max_pool: {size: 2}
      - {name: $name_mix, conv2d: {filters: $filters, kernel: 3, padding: same}}
      - {name: $name_again, weights: $name_mix,
         conv2d: {filters: $filters, kernel: 3, padding: same}}
      - flatten
      - {name: $name, dense: {units: 32}}
layers:
  - {name: left, tower: }
  - {name: noisy, from: image, dropout: {rate: 0.25}}
  - {name: right, tower: , weights: left}
  - {name: both, from: [left, right], multiply: }
  - {name: loop, dense: {units: 32, activation: relu}}
  - {name: loop$(1+number), weights: loop, dense: {units: 32, activation: relu}, repeat: 2}
  - {name: classes, dense: {units: $classes}}
  - softmax
"""
OWNED = ['left_conv', 'left_mix', 'left', 'loop', 'classes']

# The same without blocks, as an older version would have written it.
WRITTEN_OUT = """input: [28, 28, 1]
layers:
  - {name: a1, conv2d: {filters: 4, kernel: 3}}
  - {name: a2, conv2d: {filters: 8, kernel: 3}}
  - flatten
  - dense: {units: 10}
  - softmax
"""
WITH_BLOCKS = """input: [28, 28, 1]
classes: 10
blocks:
  convs:
    layers:
      - {name: $name$number, conv2d: {filters: $(4*number), kernel: 3}, repeat: 2}
      - flatten
layers:
  - {name: a, convs: }
  - dense: {units: $classes}
  - softmax
"""

# A language model that reads and predicts by one table.
TIED = """input: {tokens: {shape: [8], type: int32, length: true}}
vocabulary: 32
layers:
  - {name: words, embedding: {vocabulary: $vocabulary, units: 12}}
  - {name: body, dense: {units: 12, activation: relu}}
  - {name: head, weights: words, dense_transpose: {units: $vocabulary}}
  - softmax
loss: cross_entropy
"""


class Tied(ProgramTest):
    def setUp(self):
        super().setUp()
        self.put('tied.yaml', TIED)
        self.put('apart.yaml', TIED.replace('weights: words, ', ''))
        self.put('book.txt', 'one two three four five six seven. ' * 20)

    def train_on_book(self, run, model, *arguments):
        self.run_program('train', model, '--data', 'text:book.txt,unit=char', '--batch-size',
                         '8', '--shards', '2', '--run', run, *arguments)

    def weights(self, run, name):
        self.run_program('export', run, '-o', f'{run}.safetensors', '--format', 'safetensors')
        arrays = read_safetensors(self.path(f'{run}.safetensors'))[0]
        return floats(arrays[name][2]) if name in arrays else None

    def test_gradients_of_both_uses_add_up(self):
        """One step from the same numbers: the one table moves by what both would."""
        chance = random.Random(1)
        arrays = {name: ('F32', shape, struct.pack(f'<{count}f', *(
                      chance.uniform(-0.5, 0.5) for _ in range(count))))
                  for name, shape, count in (('words.weight', [32, 12], 384),
                                             ('body.weight', [12, 12], 144),
                                             ('body.bias', [12], 12))}
        before = floats(arrays['words.weight'][2])
        write_safetensors(self.path('tied.in.safetensors'), arrays)
        arrays['head.weight'] = arrays['words.weight']
        write_safetensors(self.path('apart.in.safetensors'), arrays)
        for run in 'tied', 'apart':
            self.train_on_book(run, f'{run}.yaml', '--steps', '1', '--optimizer', 'sgd', '--lr',
                               '1', '--weights', f'{run}.in.safetensors')
        self.assertIsNone(self.weights('tied', 'head.weight'))
        both = self.weights('tied', 'words.weight')
        moved = [[after - b for after, b in zip(self.weights('apart', name), before)]
                 for name in ('words.weight', 'head.weight')]
        self.assertGreater(min(max(map(abs, m)) for m in moved), 1e-3)
        for i, after in enumerate(both):
            self.assertAlmostEqual(after - before[i], moved[0][i] + moved[1][i], 5)

    def test_the_same_bits(self):
        for run, device in ('one', '0'), ('two', '0*2'):
            self.train_on_book(run, 'tied.yaml', '--steps', '40', '--optimizer', 'adam', '--lr',
                               '0.02', '--device', device)
        self.assertEqual(self.sha256('one'), self.sha256('two'))
        self.train_on_book('one', 'tied.yaml', '--steps', '60')
        done = self.run_program('generate', 'one', '--prompt', 'se', '--length', '4',
                                '--temperature', '0').stdout
        self.assertEqual(len(done), 5)

    def test_a_zoo_model_has_one_table_where_asked(self):
        small = [word for setting in ('width=16', 'heads=2', 'blocks=1', 'length=16')
                 for word in ('--set', setting)]
        for run, tied, device in ('apart', 'false', '0'), ('tied', 'true', '0'), \
                ('halves', 'true', '0/2'):
            self.train_on_book(run, 'gpt-small', *small, '--set', f'tied={tied}', '--steps',
                               '10', '--device', device)
        self.assertEqual(self.sha256('tied'), self.sha256('halves'))
        self.assertIsNotNone(self.weights('apart', 'head.weight'))
        self.assertIsNone(self.weights('tied', 'head.weight'))
        for run in 'tied', 'whole':
            self.train_on_book(run, 'gpt-small', *small, '--set', 'tied=true', '--steps', '20')
        self.assertEqual(self.sha256('tied'), self.sha256('whole'))
        done = self.run_program('generate', 'tied', '--prompt', 'se', '--length', '4').stdout
        self.assertEqual(len(done), 5)

    def test_refusals(self):
        for entry, said in (
                ('dense: {units: $vocabulary}', "'head' is dense, 'words', whose weights"),
                ('dense_transpose: {units: 5}', "'head.weight' is [5, 12], 'words.weight' is "
                                                '[32, 12]')):
            self.put('bad.yaml', TIED.replace('dense_transpose: {units: $vocabulary}', entry))
            self.refused(3, said, 'summary', 'bad.yaml')


class Sharing(ProgramTest):
    OPTIONS = ['--data', 'synthetic:digits,count=500', '--batch-size', '64', '--shards', '4',
               '--set', 'validation=off']

    def setUp(self):
        super().setUp()
        self.put('siamese.yaml', SIAMESE)

    def bits(self, run, model, *arguments):
        self.run_program('train', model, *self.OPTIONS, '--run', run, *arguments)
        return self.sha256(run)

    def header(self, run):
        path = sorted(Path(self.path(run + '/checkpoints')).glob('*.safetensors'))[-1]
        data = path.read_bytes()
        return json.loads(data[8:8 + struct.unpack('<Q', data[:8])[0]])

    def test_devices(self):
        """A whole device, two replicas, two halves, and a run that changes on the way."""
        whole = self.bits('whole', 'siamese.yaml', '--steps', '8', '--device', '0')
        self.assertEqual(self.bits('twice', 'siamese.yaml', '--steps', '8', '--device', '0*2'),
                         whole)
        self.assertEqual(self.bits('halves', 'siamese.yaml', '--steps', '8', '--device', '0/2'),
                         whole)
        self.assertNotEqual(
            self.bits('parts', 'siamese.yaml', '--steps', '4', '--device', '0/2'), whole)
        self.assertEqual(self.bits('parts', 'siamese.yaml', '--steps', '8', '--device', '0'),
                         whole)
        arrays = [name for name in self.header('whole')
                  if name != '__metadata__' and not name.startswith('optimizer.')]
        self.assertEqual(arrays, [f'{layer}.{what}' for layer in OWNED
                                  for what in ('weight', 'bias')])
        self.assertIn('accuracy', self.run_program('eval', 'whole').stdout)

    def test_summary(self):
        shown = self.run_program('summary', 'siamese.yaml').stdout
        lines = {line.split()[0]: line for line in shown.splitlines() if line}
        self.assertIn(' weights of left_conv', lines['right_conv'])
        self.assertIn(' weights of left_mix', lines['right_again'])
        self.assertIn(' weights of loop', lines['loop3'])
        self.assertRegex(lines['right'], r' 0 .* weights of left$')
        count = 80 + 584 + (13 * 13 * 8 + 1) * 32 + 33 * 32 + 33 * 10
        self.assertIn(f'{count:,} ({count:,} trainable)', lines['parameters'])

    def test_other_words(self):
        """A run goes on with another text of the same graph, and with no other graph."""
        self.put('old.yaml', WRITTEN_OUT)
        self.put('new.yaml', WITH_BLOCKS)
        self.put('other.yaml', WITH_BLOCKS.replace('repeat: 2', 'repeat: 3'))
        whole = self.bits('whole', 'old.yaml', '--steps', '8')
        self.bits('parts', 'old.yaml', '--steps', '4')
        self.assertEqual(self.bits('parts', 'new.yaml', '--steps', '8'), whole)
        self.assertEqual(self.header('parts')['__metadata__']['model_text'], WITH_BLOCKS)
        self.refused(2, 'holds another model', 'train', 'other.yaml', *self.OPTIONS,
                     '--run', 'parts', '--steps', '9')


if __name__ == '__main__':
    program.main()
