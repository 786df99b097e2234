"""An image and numbers that come together, from one record: read, kept, batched, trained on
several devices, judged and predicted."""
import json
import os
import random

import program
import records
from program import ProgramTest, png

MODEL = """name: two
input: {image: [8, 8, 1], numbers: [2]}
classes: 4
layers:
  - {flatten: , from: image}
  - {dense: {units: 8, activation: tanh}, name: seen}
  - {dense: {units: 8, activation: tanh}, name: known, from: numbers}
  - {add: , from: [seen, known]}
  - dense: {units: 16, activation: relu}
  - dense: {units: $classes}
  - softmax
"""
SPEC = 'tfrecord:cells,image=photo,fields=size,weight,label=kind'
STAGES = 'rotate 5 | flip horizontal | normalize -1..1 | standardize'
KINDS = [b'dark light', b'dark heavy', b'bright light', b'bright heavy']


class TwoInputs(ProgramTest):
    """The class is of both: the image tells dark from bright, the weight light from heavy."""

    def setUp(self):
        super().setUp()
        self.put('two.yaml', MODEL)
        os.mkdir(self.path('cells'))
        chance = random.Random(4)
        for part, count in ('train', 320), ('test', 80):
            records.write_file(self.path(f'cells/{part}.tfrecord'),
                               [self.record(chance) for _ in range(count)])

    @staticmethod
    def record(chance, broken=False):
        bright, heavy = chance.randrange(2), chance.randrange(2)
        shade = 150 * bright + chance.randrange(80)
        photo = png(12, 10, lambda x, y: shade + (7 * x + 5 * y) % 20)
        return records.make_example({
            'photo': photo[:40] if broken else photo, 'size': [chance.uniform(10, 20)],
            'weight': [50.0 + 100 * heavy + chance.gauss(0, 10)],
            'kind': KINDS[2 * bright + heavy]})

    def teach(self, run, *more, data=SPEC, **options):
        return self.run_program('train', 'two.yaml', '--data', data, '--pipeline', STAGES,
                                '--batch-size', '32', '--shards', '2', '--lr', '0.02', '--run',
                                run, *more,
                                **options)

    def test_trains(self):
        self.teach('run', '--epochs', '12')
        found = json.loads(self.run_program('eval', 'run', '--json').stdout)
        self.assertGreater(found['accuracy'], 0.95)
        self.assertEqual([c['name'] for c in found['classes']],
                         sorted(k.decode() for k in KINDS))
        said = json.loads(self.run_program(
            'predict', 'run', SPEC.replace(',label=kind', ''), '--json').stdout)
        self.assertEqual(len(said), 80)
        both = {s['predictions'][0]['name'] for s in said}
        self.assertEqual(len(both), 4)

    def test_same_bits(self):
        """On two devices, with samples kept in memory or in a file, and after going on."""
        self.teach('one', '--epochs', '3')
        self.teach('two', '--epochs', '3', '--device', '0*2', '--split', 'all')
        self.teach('memory', '--epochs', '3', data=SPEC + ',cache=memory')
        for _ in range(2):  # it is made, then it is there
            self.teach('file', '--epochs', '3', '--fresh', data=SPEC + ',cache=kept')
        self.teach('parts', '--epochs', '3', '--steps', '17')
        self.teach('parts', '--epochs', '3')
        hashes = [self.sha256(run) for run in ('one', 'two', 'memory', 'file', 'parts')]
        self.assertEqual(len(set(hashes)), 1, hashes)

    def test_broken(self):
        """Another record stands in for a broken one with its image and its numbers."""
        chance = random.Random(9)
        made = [self.record(chance, broken=i == 5) for i in range(64)]
        records.write_file(self.path('cells/train.tfrecord'), made)
        done = self.run_program('data', SPEC + ',max_bad=1', '--json')
        self.assertEqual([bad['sample'] for bad in json.loads(done.stdout)['parts'][0]['bad']],
                         [5])
        self.teach('run', '--steps', '2', data=SPEC + ',max_bad=1')
        self.refused(3, 'broken', 'train', 'two.yaml', '--data', SPEC + ',max_bad=0',
                     '--pipeline', STAGES, '--steps', '4')

    def test_limits_at_reading(self):
        """A target that the loss does not take is found with the sample, as labels of samples
        that are decoded are not read beforehand."""
        self.put('unit.yaml', MODEL.replace('  - dense: {units: $classes}\n  - softmax\n',
                                            '  - dense: {units: 2}\n  - sigmoid\n'
                                            'loss: binary_cross_entropy\n'))
        chance = random.Random(2)
        made = [records.make_example({
            'photo': png(8, 8, lambda x, y: 9), 'size': [1.0], 'weight': [chance.random()],
            'both': [0.5, 1.5 if i == 19 else 1.0]}) for i in range(64)]
        records.write_file(self.path('some.tfrecord'), made)
        self.refused(3, "of sample 19 is 1.5; binary_cross_entropy of output 'sigmoid_1' takes "
                     '0..1', 'train', 'unit.yaml', '--data', 'tfrecord:some.tfrecord,'
                     'image=photo,fields=size,weight,label=both', '--batch-size', '32',
                     '--epochs', '1')

    def test_refusals(self):
        for said, data in (
                ("the key 'photo' holds bytes, no numbers; image=photo reads an image",
                 'tfrecord:cells,fields=photo'),
                ("'image' is the field of image=", 'tfrecord:cells,image=photo,'
                 'fields=image:size'),
                ("no image under the key 'foto'", 'tfrecord:cells,image=foto,fields=size')):
            self.assertIn(said, self.run_program('data', data, status=2 if 'field of' in said
                                                 else 3).stderr)
        self.refused(3, "the field 'numbers' cannot be converted", 'convert',
                     'tfrecord:cells,image=photo,fields=size', 'tfrecord:out')


if __name__ == '__main__':
    program.main()
