"""Models with blocks, and with layers that share weights: what runs of them end with."""
import json
import struct
from pathlib import Path

import program
from program import ProgramTest

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
