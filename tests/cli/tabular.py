"""Numbers in, classes and numbers out: tables trained on, several outputs, what is refused."""
import csv
import json
import os
import random
import struct

import program
from program import ProgramTest

SPECIES = ['adelie', 'chinstrap', 'gentoo']
COLUMNS = ['flipper', 'culmen', 'depth', 'species', 'mass', 'heavy']
FIELDS = 'csv:penguins,fields=flipper,culmen,depth,'

CLASSES = """name: penguins
input: [3]
classes: 3
layers:
  - dense: {units: 16, activation: relu}
  - dense: {units: $classes}
  - softmax
metrics: [accuracy, {top_k: {k: 2}}, recall]
"""

MASS = """name: mass
input: [3]
layers:
  - dense: {units: 16, activation: relu}
  - dense: {units: 1}
loss: mean_squared_error
metrics: [mean_absolute_error, root_mean_squared_error]
"""

BOTH = """name: both
input: {numbers: [3]}
layers:
  - {dense: {units: 24, activation: relu}, name: body}
  - {dense: {units: 3}, name: s}
  - {softmax: , name: species_p}
  - {dense: {units: 1}, name: mass_y, from: body}
  - {dense: {units: 1}, name: h, from: body}
  - {sigmoid: , name: heavy_p}
output: {species: species_p, mass: mass_y, heavy: heavy_p}
loss: {species: cross_entropy, mass: {huber: {delta: 50, weight: 0.001}},
       heavy: binary_cross_entropy}
metrics: {heavy: [accuracy, auc]}
"""


def draw(chance):
    """Species differ in all measures; the mass is nearly a linear function of them."""
    kind = chance.randrange(3)
    flipper = 180 + 20 * kind + chance.gauss(0, 6)
    mass = 3000 + 700 * kind + 20 * (flipper - 200) + chance.gauss(0, 60)
    return [flipper, 38 + 5 * (kind == 1) + 8 * (kind == 2) + chance.gauss(0, 2),
            18 - 3 * (kind == 2) + chance.gauss(0, 1), SPECIES[kind], mass,
            'yes' if mass > 3900 else 'no']


class TabularTest(ProgramTest):
    def setUp(self):
        super().setUp()
        chance = random.Random(3)
        os.mkdir(self.path('penguins'))
        for part, count in ('train', 600), ('test', 150):
            with open(self.path(f'penguins/{part}.csv'), 'w', newline='') as file:
                writer = csv.writer(file)
                writer.writerow(COLUMNS)
                writer.writerows(draw(chance) for _ in range(count))
        self.put('classes.yaml', CLASSES)
        self.put('mass.yaml', MASS)
        self.put('both.yaml', BOTH)

    def teach(self, model, data, run, *more):
        return self.run_program('train', model, '--data', FIELDS + data, '--pipeline',
                                'standardize', '--batch-size', '64', '--lr', '0.05', '--run',
                                run, *more)

    def judged(self, run, *more):
        return json.loads(self.run_program('eval', run, '--json', *more).stdout)

    def test_classes(self):
        self.teach('classes.yaml', 'label=species', 'run', '--epochs', '8')
        found = self.judged('run')
        self.assertGreater(found['accuracy'], 0.93)
        self.assertEqual([c['name'] for c in found['classes']], SPECIES)
        metrics = found['outputs'][0]['metrics']
        self.assertEqual(metrics['accuracy'], found['accuracy'])
        self.assertGreater(metrics['top_k(k=2)'], 0.99)
        self.assertEqual(self.events('run', 'eval')[-1]['outputs']['softmax_1']['metrics'],
                         metrics)

    def test_regression(self):
        """Raw numbers would not do: the columns' sizes differ by far. The run keeps what it was
        trained with, so that samples without labels can be predicted."""
        self.teach('mass.yaml', 'label=mass,label_type=number', 'run', '--epochs', '150')
        found = self.judged('run')
        self.assertIsNone(found['accuracy'])
        self.assertLess(found['outputs'][0]['metrics']['mean_absolute_error'], 150)
        with open(self.path('penguins/test.csv')) as file:
            masses = [float(row['mass']) for row in csv.DictReader(file)]
        done = self.run_program('predict', 'run', FIELDS[:-1], '--json')
        said = [sample['predictions'][0] for sample in json.loads(done.stdout)]
        self.assertEqual(len(said), 150)
        mean = sum(abs(a - b) for a, b in zip(said, masses)) / 150
        self.assertAlmostEqual(mean, found['outputs'][0]['metrics']['mean_absolute_error'],
                               delta=1e-3)

    def test_several_outputs(self):
        """Bits are the same on two devices and after going on; each output has its figures."""
        data = 'label=species:species,mass:mass,heavy:heavy'
        self.teach('both.yaml', data, 'one', '--epochs', '12')
        self.teach('both.yaml', data, 'two', '--epochs', '12', '--device', '0*2', '--split',
                   'all')
        self.teach('both.yaml', data, 'parts', '--epochs', '12', '--steps', '37')
        self.teach('both.yaml', data, 'parts', '--epochs', '12', '--steps', '120')
        self.assertEqual(len({self.sha256(run) for run in ('one', 'two', 'parts')}), 1)
        found = self.judged('one')
        outputs = {o['name']: o for o in found['outputs']}
        self.assertEqual(list(outputs), ['species', 'mass', 'heavy'])
        self.assertAlmostEqual(found['loss'], sum(o['weight'] * o['loss']
                                                  for o in outputs.values()), places=5)
        self.assertEqual(outputs['mass']['weight'], 0.001)
        self.assertGreater(outputs['species']['metrics']['accuracy'], 0.8)
        self.assertGreater(outputs['heavy']['metrics']['auc'], 0.95)
        said = self.run_program('predict', 'one', FIELDS[:-1]).stdout.splitlines()
        self.assertEqual(len(said), 150)
        self.assertRegex(said[0], r'^sample 0: species [a-z]+, probability [\d.]+; '
                                  r'mass [-\d.e+]+; heavy [-\d.e]+$')

    def test_changed_loss(self):
        """A run goes on with what it was begun for alone."""
        self.teach('mass.yaml', 'label=mass,label_type=number', 'run', '--steps', '5')
        self.put('mass.yaml', MASS.replace('loss: mean_squared_error', 'loss: huber'))
        self.refused(2, 'holds another model', 'train', 'mass.yaml', '--data',
                     FIELDS + 'label=mass,label_type=number', '--pipeline', 'standardize',
                     '--batch-size', '64', '--run', 'run', '--steps', '10')

    def test_arrays(self):
        """A class for each step of a sequence, some masked, from arrays of numpy's format."""
        chance = random.Random(5)
        x = [[chance.uniform(-1, 1) for _ in range(8)] for _ in range(256)]
        y = [[-1 if i % 7 == 0 else int(v > 0) for i, v in enumerate(row, n)]
             for n, row in enumerate(x)]
        os.mkdir(self.path('steps'))
        for part in 'train', 'test':
            self.put(f'steps/x_{part}.npy', array('<f4', 'f', (256, 8, 1), x))
            self.put(f'steps/y_{part}.npy', array('<i8', 'q', (256, 8), y))
        self.put('steps.yaml', 'name: steps\ninput: [8, 1]\nlayers:\n'
                               '  - dense: {units: 8, activation: tanh}\n'
                               '  - dense: {units: 2}\n  - softmax\nloss: cross_entropy\n')
        self.run_program('train', 'steps.yaml', '--data', 'npy:steps', '--batch-size', '32',
                         '--lr', '0.05', '--epochs', '10', '--run', 'run')
        self.assertGreater(self.judged('run')['accuracy'], 0.95)

    def test_smoothed_vectors(self):
        """A weight for each class is smoothed as a class is; a class for each step is not, and
        that is said."""
        chance = random.Random(8)
        x = [[chance.uniform(-1, 1) for _ in range(3)] for _ in range(96)]
        y = [chance.randrange(3) for _ in x]
        self.put('x.npy', array('<f4', 'f', (96, 3), x))
        self.put('class.npy', array('<i8', 'q', (96,), [y]))
        self.put('vector.npy', array('<f4', 'f', (96, 3),
                                     [[float(k == c) for k in range(3)] for c in y]))
        self.put('vectors.yaml', CLASSES.replace('metrics: [accuracy, {top_k: {k: 2}}, recall]',
                                                 'loss: {cross_entropy: {target: numbers}}'))
        losses = {}
        for name, model in (('class', 'classes.yaml'), ('vector', 'vectors.yaml')):
            for smoothing in 0, 0.3:
                run = f'{name}{smoothing}'
                self.run_program('train', model, '--data', f'npy:x.npy,{name}.npy',
                                 '--batch-size', '32', '--steps', '6', '--run', run,
                                 '--pipeline', f'one_hot smoothing={smoothing}')
                losses[run] = [e['loss'] for e in self.events(run, 'step')]
        for smoothing in '0', '0.3':
            for a, b in zip(losses['class' + smoothing], losses['vector' + smoothing]):
                self.assertAlmostEqual(a, b, places=5)
        self.assertNotAlmostEqual(losses['class0'][-1], losses['class0.3'][-1], places=4)
        self.put('steps.npy', array('<i8', 'q', (96, 3), [[c, 0, 1] for c in y]))
        self.put('steps.yaml', 'name: steps\ninput: [3]\nlayers:\n'
                               '  - reshape: {shape: [3, 1]}\n  - dense: {units: 3}\n'
                               '  - softmax\nloss: cross_entropy\n')
        self.refused(2, "predicts a class for each step, whose labels cannot be smoothed",
                     'train', 'steps.yaml', '--data', 'npy:x.npy,steps.npy', '--steps', '1',
                     '--pipeline', 'one_hot smoothing=0.1')

    def test_targets_within_limits(self):
        """What a loss is not defined for is refused before the first step."""
        self.put('units.yaml', 'name: units\ninput: [3]\nlayers:\n  - dense: {units: 2}\n'
                               '  - sigmoid\nloss: binary_cross_entropy\n')
        rows = [[0.5, 1.0] for _ in range(64)]
        self.put('x.npy', array('<f4', 'f', (64, 3), [[1, 2, 3]] * 64))
        train = ['train', 'units.yaml', '--batch-size', '32', '--run', 'run', '--steps', '2',
                 '--data']
        for wrong in 3, -0.25:
            rows[41][1] = wrong
            self.put('y.npy', array('<f4', 'f', (64, 2), rows))
            self.refused(3, f"label 'label' of sample 41 is {wrong:g}; binary_cross_entropy of "
                         "output 'sigmoid_1' takes 0..1", *train, 'npy:x.npy,y.npy')
            self.assertFalse(os.path.exists(self.path('run/metrics.jsonl')))
        rows[41][1] = 0
        self.put('y.npy', array('<f4', 'f', (64, 2), rows))
        self.run_program(*train, 'npy:x.npy,y.npy')
        rows[63][0] = 2
        self.put('z.npy', array('<f4', 'f', (64, 2), rows))
        self.refused(3, 'of sample 63 is 2', 'eval', 'run', '--data', 'npy:x.npy,z.npy')

    def test_what_is_read(self):
        """Numbers that the model does not read are no part of the run, nor is a label that has
        an input's name; several inputs do not share a field unasked."""
        self.put('part.yaml', CLASSES.replace('input: [3]', 'input: {x: [2]}'))
        data = 'csv:penguins,fields=x:flipper+culmen,rest:depth,label=species'
        self.run_program('train', 'part.yaml', '--data', data, '--pipeline', 'standardize',
                         '--batch-size', '64', '--lr', '0.05', '--epochs', '8', '--run', 'run')
        other = 'csv:penguins,fields=x:flipper+culmen,label=species'
        self.assertEqual(self.judged('run')['loss'],
                         self.judged('run', '--data', other)['loss'])
        # Another run that begins with its weights standardizes as it did.
        done = self.run_program('train', '--init-from', 'run', '--lr', '1e-20', '--steps', '1',
                                '--optimizer', 'sgd', '--batch-size', '64', '--run', 'next')
        self.assertIn("numbers are standardized as in 'run'", done.stderr)
        self.assertAlmostEqual(self.events('next', 'eval')[-1]['loss'],
                               self.events('run', 'eval')[-1]['loss'], 5)
        self.run_program('train', '--init-from', 'run', '--lr', '1e-20', '--steps', '2',
                         '--optimizer', 'sgd', '--batch-size', '64', '--run', 'next')
        self.put('label.yaml', CLASSES.replace('input: [3]', 'input: {label: [1]}'))
        self.refused(3, "field 'numbers' of data", 'train', 'label.yaml', '--data',
                     'csv:penguins,fields=flipper,culmen,label=heavy', '--steps', '1')
        self.put('two.yaml', CLASSES.replace(
            'input: [3]', 'input: {left: [3], right: [3]}').replace(
                'layers:\n', 'layers:\n  - {add: , from: [left, right]}\n'))
        self.refused(3, "no field for input 'left'", 'train', 'two.yaml', '--data',
                     FIELDS + 'label=species', '--steps', '1')
        self.refused(2, 'one_hot is for an output that predicts one class', 'train',
                     'mass.yaml', '--data', FIELDS + 'label=mass,label_type=number',
                     '--pipeline', 'one_hot smoothing=0.1', '--steps', '1')
        self.refused(3, "is one of 3 classes, mean_squared_error of output 'dense_2' takes a "
                     'number', 'train', 'mass.yaml', '--data', FIELDS + 'label=species',
                     '--steps', '1')

    def test_measures_once(self):
        """What training and evaluation standardize by is measured in one pass over the data."""
        self.put('flat.csv', 'a,b,c\n' + ''.join(f'{i},7,{i % 3}\n' for i in range(90)))
        self.put('flat.yaml', CLASSES.replace('input: [3]', 'input: [2]'))
        done = self.run_program('train', 'flat.yaml', '--data', 'csv:flat.csv,fields=a,b,'
                                'label=c', '--pipeline', 'standardize', '--batch-size', '30',
                                '--val', 'csv:flat.csv,fields=a,b,label=c', '--steps', '3',
                                '--run', 'run')
        self.assertEqual(done.stderr.count("number 1 of 'numbers' is 7 in all samples"), 1)

    def test_lengths(self):
        """A field that tells another's length is an input like others."""
        chance = random.Random(7)
        os.mkdir(self.path('lines'))
        for part in 'train', 'test':
            lines = ['x' * chance.randint(1, 16) for _ in range(200)]
            self.put(f'lines/{part}.txt', ''.join(
                f'{"long" if len(line) > 8 else "short"}\t{line}\n' for line in lines))
        self.put('length.yaml', 'name: length\ninput: {tokens_length: {shape: [1], type: '
                                'float32, scale: 0.125, shift: -1}}\nlayers:\n'
                                '  - dense: {units: 2}\n  - softmax\n')
        self.run_program('train', 'length.yaml', '--data', 'text:lines,length=16', '--lr',
                         '0.2', '--batch-size', '20', '--epochs', '20', '--run', 'run')
        self.assertGreater(self.judged('run')['accuracy'], 0.95)

    def test_refusals(self):
        train = ['train', 'classes.yaml', '--batch-size', '64', '--steps', '1', '--data']
        for said, data in (
                ("label 'label' of data 'penguins' is float32 []",
                 FIELDS + 'label=mass,label_type=number'),
                ("there are: mass float32 [], weight float32 []",
                 FIELDS + 'label=mass:mass,weight:mass'),
                ("field 'numbers' of data 'penguins' is float32 [2], model 'penguins' expects "
                 "float32 [3]", 'csv:penguins,fields=flipper,culmen,label=species'),
                ("there are: none", FIELDS[:-1])):
            self.refused(3, said, *train, data)
        self.refused(3, 'float32 [3]', 'train', 'classes.yaml', '--data',
                     'synthetic:digits,count=64', '--steps', '1')
        for said, old, new in (
                ("there is no metric 'meen_squared_error'; did you mean 'mean_squared_error'?",
                 'loss: mean_s', 'loss: meen_s'),
                ('accuracy is a metric, but nothing to train for', 'loss: mean_squared_error',
                 'loss: accuracy'),
                ('mass.yaml:7: auc is not defined for an output that predicts numbers',
                 'metrics: [mean_absolute_error', 'metrics: [auc'),
                ('mass.yaml:6: cross_entropy takes a probability for each class',
                 'loss: mean_squared_error', 'loss: cross_entropy')):
            self.assertIn(old, MASS)
            self.put('mass.yaml', MASS.replace(old, new))
            self.refused(3, said, 'train', 'mass.yaml', '--data',
                         FIELDS + 'label=mass,label_type=number', '--steps', '1')


def array(kind, code, shape, rows):
    """A file as numpy.save() writes it."""
    header = repr({'descr': kind, 'fortran_order': False, 'shape': shape}).encode()
    header += b' ' * (63 - (10 + len(header)) % 64) + b'\n'
    values = [value for row in rows for value in row]
    return (b'\x93NUMPY\x01\0' + struct.pack('<H', len(header)) + header +
            struct.pack(f'<{len(values)}{code}', *values))


if __name__ == '__main__':
    program.main()
