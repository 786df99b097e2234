"""Weights of other programs: listed, taken by training and evaluation, written for others."""
import json
import os
import struct
import unittest

import npy
from program import DATA, ProgramTest, png

NET = """name: net
input: [28, 28, 1]
layers:
  - {name: conv, conv2d: {filters: 4, kernel: 3, stride: 2, bias: false}}
  - {name: norm, batch_norm: {activation: relu}}
  - {name: deep, conv2d: {filters: 8, kernel: 3, groups: 4}}
  - flatten
  - {name: head, dense: {units: 10}}
  - softmax
"""
ARRAYS = 9  # of this model


def read_safetensors(path):
    """{name: (dtype, shape, bytes)} and the metadata."""
    with open(path, 'rb') as file:
        header = json.loads(file.read(struct.unpack('<Q', file.read(8))[0]))
        data = file.read()
    metadata = header.pop('__metadata__', {})
    return {name: (about['dtype'], about['shape'], data[slice(*about['data_offsets'])])
            for name, about in header.items()}, metadata


def write_safetensors(path, arrays, metadata=None):
    header, data = {'__metadata__': metadata} if metadata else {}, b''
    for name, (dtype, shape, content) in arrays.items():
        header[name] = {'dtype': dtype, 'shape': shape,
                        'data_offsets': [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    with open(path, 'wb') as file:
        file.write(struct.pack('<Q', len(text)) + text + data)


def floats(content):
    return struct.unpack(f'<{len(content) // 4}f', content)


def vector(count, value=0.5):
    return ('F32', [count], struct.pack('<f', value) * count)


class WeightsTest(ProgramTest):
    """A run that has trained 3 steps is there as "base"."""

    def setUp(self):
        super().setUp()
        self.put('net.yaml', NET)
        self.train_net('--run', 'base', '--steps', '3')

    def train_net(self, *arguments, model='net.yaml', **more):
        return self.run_program('train', model, '--data', DATA, '--batch-size', '32',
                                *arguments, **more)

    def export(self, name, *arguments, **more):
        return self.run_program('export', 'base', '-o', name, *arguments, **more)

    def after_a_step(self, run, *arguments, **more):
        """The hash of a run of one step that begins as the arguments say; what it said."""
        done = self.train_net('--run', run, '--steps', '1', *arguments, **more)
        return self.sha256(run), done.stderr


class Listing(WeightsTest):
    def test_figures(self):
        write_safetensors(self.path('w.safetensors'),
                          {'a': ('F32', [2, 2], struct.pack('<4f', 1, 2, 3, 6)),
                           'n': ('I64', [], struct.pack('<q', 7))})
        told = json.loads(self.run_program('weights', 'w.safetensors', '--json').stdout)
        self.assertEqual(told['format'], 'safetensors')
        a, n = told['arrays']
        self.assertEqual((a['name'], a['shape'], a['type'], a['mean']), ('a', [2, 2], 'F32', 3))
        self.assertAlmostEqual(a['deviation'], 3.5 ** 0.5)
        self.assertEqual((n['shape'], n['type'], n['mean'], n['deviation']), ([], 'I64', 7, 0))
        text = self.run_program('weights', 'w.safetensors').stdout
        self.assertIn('\na     [2, 2]                F32            3      1.871\n', text)
        self.assertTrue(text.endswith('\nsafetensors, 2 arrays, 5 numbers\n'))

    def test_a_long_name_fills_its_own_line_only(self):
        name = 'x' * 5000
        write_safetensors(self.path('w.safetensors'),
                          {name: ('F32', [1], struct.pack('<f', 1)),
                           'nan': ('F32', [2], struct.pack('<2f', float('inf'), 1))})
        lines = self.run_program('weights', 'w.safetensors').stdout.split('\n')
        self.assertEqual(lines[1:3], [name, '    [1]  F32   1  0'])
        self.assertLess(len(lines[3]), 160)
        self.assertEqual(lines[3].split(), ['nan', '[2]', 'F32', 'inf', 'nan'])

    def test_no_control_characters_in_what_export_prints(self):
        done = self.export('a\x1b[31m', '--format', 'safetensors')
        self.assertNotIn('\x1b', done.stdout)

    def test_refuses(self):
        self.refused(2, 'needs one FILE', 'weights')
        self.refused(3, 'nothing.pt', 'weights', 'nothing.pt')
        self.put('text', 'no weights at all')
        self.refused(3, "'text'", 'weights', 'text')


class RoundTrip(WeightsTest):
    def test_all_formats_are_the_same_to_the_bit(self):
        expected, said = self.after_a_step('from-run', '--init-from', 'base')
        self.assertIn(f"{ARRAYS} of {ARRAYS} parameters, by our names", said)
        self.assertNotEqual(expected, self.after_a_step('from-seed')[0])
        for i, (name, names, format_) in enumerate([
                ('a.safetensors', 'lockstep', 'safetensors'),
                ('b.safetensors', 'pytorch', 'safetensors'),
                ('c.safetensors', 'keras', 'safetensors'),
                ('d.h5', 'keras', 'keras-h5'), ('e.weights.h5', 'keras', 'keras-h5')]):
            if not self.writes(name, '--format', format_, '--names', names):
                continue
            found, said = self.after_a_step(f'run{i}', '--weights', name)
            self.assertEqual(found, expected, f'{name}: {said}')
            self.assertIn(f'{ARRAYS} of {ARRAYS} parameters, by', said)

    def test_a_layer_that_no_output_needs(self):
        """It is in no replica, and is missed by nobody."""
        self.put('net.yaml', """name: net
input: [4]
layers:
  - {name: a, dense: {units: 3}}
  - {name: b, from: numbers, dense: {units: 2}}
  - {name: c, from: a, dense: {units: 2}}
  - softmax
""")
        self.put('d.csv', 'a,b,c,d,y\n1,2,3,4,0\n2,1,0,1,1\n3,3,1,2,0\n0,1,2,2,1\n')
        train = ['train', 'net.yaml', '--data', 'csv:d.csv,fields=a+b+c+d,label=y',
                 '--batch-size', '2', '--steps', '2']
        self.run_program(*train, '--run', 'first')
        self.run_program('export', 'first', '-o', 'first.onnx')
        self.run_program('export', 'first', '--format', 'safetensors', '-o', 'w.safetensors')
        found = set()
        for how in ['--init-from', 'first'], ['--weights', 'w.safetensors']:
            said = self.run_program(*train, *how, '--run', 'second', '--fresh').stderr
            self.assertIn('4 of 6 parameters, by our names', said)
            found.add(self.sha256('second'))
        self.assertEqual(len(found), 1)

    def writes(self, *arguments):
        """Exports; False where the program was built without libhdf5."""
        try:
            self.export(*arguments)
        except AssertionError as error:
            if 'built without libhdf5' not in str(error):
                raise
            return False
        return True

    def test_layouts(self):
        """Which number of ours is where in an array of others."""
        self.export('own.safetensors', '--format', 'safetensors')
        self.export('torch.safetensors', '--format', 'safetensors', '--names', 'pytorch')
        own, about = read_safetensors(self.path('own.safetensors'))
        torch, metadata = read_safetensors(self.path('torch.safetensors'))
        self.assertEqual(about['format'], 'lockstep-weights-1')
        self.assertEqual(metadata['format'], 'pt')
        self.assertEqual(own['conv.weight'][1], [1, 3, 3, 4])
        self.assertEqual(torch['conv.weight'][1], [4, 1, 3, 3])
        ours, theirs = (floats(a['conv.weight'][2]) for a in (own, torch))
        for k in range(4):
            for tap in range(9):
                self.assertEqual(ours[tap * 4 + k], theirs[k * 9 + tap])
        self.assertEqual(torch['norm.running_var'][2], own['norm.moving_variance'][2])
        ours, theirs = (floats(a['head.weight'][2]) for a in (own, torch))
        self.assertEqual(ours[5 * 10 + 3], theirs[3 * (len(theirs) // 10) + 5])

    def test_slopes_of_channels(self):
        """Keras's PReLU(shared_axes=[1, 2]) has [1, 1, c]."""
        self.put('p.yaml', NET.replace('  - flatten', '  - {name: act, prelu: }\n  - flatten'))
        self.train_net('--run', 'sloped', '--steps', '2', model='p.yaml')
        self.run_program('export', 'sloped', '-o', 'p.safetensors', '--format', 'safetensors',
                         '--names', 'keras')
        told = json.loads(self.run_program('weights', 'p.safetensors', '--json').stdout)
        shapes = {a['name']: a['shape'] for a in told['arrays']}
        self.assertEqual([s for n, s in shapes.items() if 'alpha' in n], [[1, 1, 8]])
        found = [json.loads(self.run_program('eval', *words, '--json', '--data', DATA).stdout)
                 for words in (['sloped'], ['p.yaml', '--weights', 'p.safetensors'])]
        self.assertEqual(found[0]['loss'], found[1]['loss'])

    def test_a_file_may_stand_for_a_run(self):
        self.export('own.safetensors', '--format', 'safetensors')
        arguments = ['--json', '--data', DATA]
        expected, found = (json.loads(self.run_program('eval', *words, *arguments).stdout)
                           for words in (['base'],
                                         ['net.yaml', '--weights', 'own.safetensors']))
        self.assertEqual(found['loss'], expected['loss'])
        self.assertEqual(found['confusion'], expected['confusion'])
        self.train_net('--run', 'other', '--steps', '1')
        found = json.loads(self.run_program('eval', 'other', '--weights', 'own.safetensors',
                                            *arguments).stdout)
        self.assertEqual(found['loss'], expected['loss'])

    def test_export_refuses(self):
        self.refused(2, "model 'net' has no names 'torchvision': there are lockstep", 'export',
                     'base', '--format', 'safetensors', '-o', 'x', '--names', 'torchvision')
        self.refused(2, 'needs --output', 'export', 'base', '--format', 'safetensors')
        self.refused(2, "'--format' needs", 'export', 'base', '-o', 'x')
        self.refused(2, 'names of pytorch', 'export', 'base', '--format', 'keras-h5', '-o', 'x',
                     '--names', 'pytorch')
        self.refused(3, 'no-run', 'export', 'no-run', '--format', 'safetensors', '-o', 'x')
        self.assertFalse(os.path.exists(self.path('x')))


class WhatFits(WeightsTest):
    def setUp(self):
        super().setUp()
        self.export('torch.safetensors', '--format', 'safetensors', '--names', 'pytorch')
        self.arrays, _ = read_safetensors(self.path('torch.safetensors'))

    def put_weights(self, name, **changes):
        """The weights with other arrays, or without those that are None."""
        arrays = {**self.arrays, **{key.replace('__', '.'): a for key, a in changes.items()}}
        write_safetensors(self.path(name), {k: a for k, a in arrays.items() if a},
                          {'format': 'pt'})

    def refuses(self, said, *arguments, model='net.yaml'):
        self.refused(3, said, 'train', model, '--data', DATA, '--run', 'new', *arguments)
        self.assertFalse(os.path.exists(self.path('new')))  # nothing is there by half

    def test_names_what_is_missing(self):
        self.put_weights('w', norm__running_mean=None)
        self.refuses(['norm.moving_mean', 'missing', '--skip-mismatch'], '--weights', 'w')
        said = self.after_a_step('new', '--weights', 'w', '--skip-mismatch')[1]
        self.assertIn('left as initialized, missing from the file: norm.moving_mean', said)

    def test_names_both_shapes(self):
        self.put_weights('w', deep__bias=vector(7))
        self.refuses("'deep.bias' is [7], for deep.bias [8] is expected", '--weights', 'w')
        self.put_weights('w', head__weight=('F32', [10, 12], bytes(480)))
        self.refuses('[10, 12], for head.weight [10, 968] is expected', '--weights', 'w')

    def test_names_what_is_too_much(self):
        self.put_weights('w', conv__bias=vector(4))  # of a layer that has no bias here
        self.refuses(["the model has no 'conv.bias' [4]"], '--weights', 'w')
        said = self.after_a_step('new', '--weights', 'w', '--skip-mismatch')[1]
        self.assertIn("not used of the file: 'conv.bias' [4]", said)

    def test_another_head(self):
        """Of the file, or none in the file: a line each, and no error."""
        self.put_weights('w', head__weight=None, head__bias=None, zz__weight=vector(3))
        said = self.after_a_step('new', '--weights', 'w')[1]
        self.assertIn('a new head, as initialized: head.weight, head.bias', said)
        self.assertIn("not used of the file: 'zz.weight' [3]", said)
        self.put('frozen.yaml', NET.replace('units: 10}}', 'units: 10}, trainable: false}'))
        self.refused(3, 'head.weight', 'train', 'frozen.yaml', '--data', DATA, '--weights',
                     'w')
        self.refused(3, 'head.weight', 'eval', 'net.yaml', '--weights', 'w', '--data', DATA)

    def test_a_head_of_another_name(self):
        """Of the very shape of ours, and nothing else is left over: it is ours."""
        expected = self.after_a_step('plain', '--weights', 'torch.safetensors')[0]
        other = {'head__weight': None, 'head__bias': None,
                 'zz__fc__weight': self.arrays['head.weight'],
                 'zz__fc__bias': self.arrays['head.bias']}
        self.put_weights('w', **other)
        found, said = self.after_a_step('renamed', '--weights', 'w')
        self.assertEqual(found, expected)
        self.assertIn('9 of 9 parameters, by the names of pytorch, 2 of them in order, by '
                      'shape\nlockstep:   head.weight <- zz.fc.weight [10, 968]', said)
        missing = ["missing from it: head.weight [10, 968], perhaps 'zz.fc.weight'",
                   "'train' and 'eval' take what fits with --skip-mismatch"]
        self.refuses(missing, '--weights', 'w,by=name')
        self.put_weights('w', zz__more=vector(3), **other)  # and something else is
        self.refuses(missing, '--weights', 'w')
        said = self.after_a_step('new', '--weights', 'w', '--skip-mismatch')[1]
        self.assertIn('head.weight', said)

    def test_counters_and_prefixes_are_passed_over(self):
        expected = self.after_a_step('plain', '--weights', 'torch.safetensors')[0]
        arrays = {'module.' + name: a for name, a in self.arrays.items()}
        arrays['module.norm.num_batches_tracked'] = ('I64', [], bytes(8))
        write_safetensors(self.path('w'), arrays, {'format': 'pt'})
        found, said = self.after_a_step('prefixed', '--weights', 'w')
        self.assertEqual(found, expected)
        self.assertNotIn('num_batches', said)

    def test_in_order(self):
        """Where no name fits, with a table of what went where; not if names are asked for."""
        expected = self.after_a_step('plain', '--weights', 'torch.safetensors')[0]
        write_safetensors(self.path('w'), {f'x{i}': a for i, a in
                                           enumerate(self.arrays.values())}, {'format': 'pt'})
        found, said = self.after_a_step('ordered', '--weights', 'w')
        self.assertEqual(found, expected)
        self.assertIn('in order, by shape', said)
        self.assertIn('  norm.beta <- x2 [4]', said)
        found, said = self.after_a_step('asked', '--weights', 'torch.safetensors,by=order')
        self.assertEqual(found, expected)
        self.assertIn('conv.weight <- conv.weight [4, 1, 3, 3]', said)
        self.refuses('nothing that fits', '--weights', 'w,by=name')
        self.refused(2, ",by=chance", 'train', 'net.yaml', '--data', DATA, '--weights',
                     'w,by=chance')

    def test_order_would_do(self):
        """Names that tell something else: the message says that the order fits."""
        names = {'conv.weight': 'deep.weight', 'deep.weight': 'conv.weight'}
        write_safetensors(self.path('w'), {names.get(name, name): a
                                           for name, a in self.arrays.items()},
                          {'format': 'pt'})
        self.refuses(["',by=order' behind the file's name would take all of it"], '--weights',
                     'w')
        expected = self.after_a_step('plain', '--weights', 'torch.safetensors')[0]
        self.assertEqual(self.after_a_step('run', '--weights', 'w,by=order')[0], expected)

    def test_another_number_of_classes(self):
        model = NET.replace('units: 10', 'units: 12')
        self.put('twelve.yaml', model)
        self.refuses('for head.weight [968, 12] is expected', '--init-from', 'base',
                     model='twelve.yaml')
        said = self.after_a_step('new', '--init-from', 'base', '--skip-mismatch',
                                 model='twelve.yaml')[1]
        self.assertIn('7 of 9 parameters', said)

    def test_an_empty_name_is_no_file(self):
        for option in ('--weights', '--init-from'):
            self.refused(2, f"'{option}' needs", 'train', 'net.yaml', '--data', DATA, option,
                         '')
        self.refused(2, "'--weights' needs", 'eval', 'net.yaml', '--data', DATA, '--weights=')
        self.refused(2, "'--weights' needs", 'run', 'base', '--input', 'x.npy', '--output', 'y',
                     '--weights', '')

    def test_settings_exclude_one_another(self):
        self.refused(2, 'exclude one another', 'train', 'net.yaml', '--data', DATA, '--weights',
                     'w', '--init-from', 'base')
        self.refused(2, 'is for --weights', 'train', 'net.yaml', '--data', DATA,
                     '--skip-mismatch')


TOWERS = """name: towers
input: [28, 28, 1]
layers:
  - {name: a, conv2d: {filters: 2, kernel: 3, stride: 2}}
  - {name: b, conv2d: {filters: 2, kernel: 3, stride: 2}}
  - {name: mid, conv2d: {filters: 2, kernel: 1}}
  - {name: c, conv2d: {filters: 2, kernel: 3}}
  - {name: d, conv2d: {filters: 2, kernel: 3}}
  - flatten
  - {name: head, dense: {units: 10}}
  - softmax
"""
TOWERS_SHAPES = {'a': [3, 3, 1, 2], 'b': [3, 3, 2, 2], 'mid': [1, 1, 2, 2], 'c': [3, 3, 2, 2],
                 'd': [3, 3, 2, 2], 'head': [8, 10]}


class Nested(ProgramTest):
    """Models within models, as Keras 3 names their arrays. Each array has one value."""

    def put_towers(self, names):
        arrays = {}
        for value, (layer, shape) in enumerate(TOWERS_SHAPES.items()):
            path = f'layers/{names[layer]}/vars/'
            count = shape[0] * shape[1] * (shape[2] * shape[3] if len(shape) == 4 else 1)
            arrays[path + '0'] = ('F32', shape, vector(count, value)[2])
            arrays[path + '1'] = vector(shape[-1], value + 0.5)
        self.put('net.yaml', TOWERS)
        write_safetensors(self.path('w'), dict(sorted(arrays.items())))
        return ['train', 'net.yaml', '--data', DATA, '--weights', 'w', '--steps', '1', '--run',
                'r', '--batch-size', '32']

    def expect_all(self, arguments):
        """A step of Adam moves no value by more than its rate, 0.001."""
        said = self.run_program(*arguments).stderr
        self.assertIn('12 of 12 parameters, by the names of keras-3', said)
        self.run_program('export', 'r', '-o', 'out', '--format', 'safetensors')
        arrays = read_safetensors(self.path('out'))[0]
        for value, layer in enumerate(TOWERS_SHAPES):
            for i, part in enumerate(('weight', 'bias')):
                for x in floats(arrays[f'{layer}.{part}'][2]):
                    self.assertAlmostEqual(x, value + i / 2, delta=0.01)
        return said

    def test_each_model_counts_by_itself(self):
        said = self.expect_all(self.put_towers(
            {'a': 'sequential/layers/conv2d', 'b': 'sequential/layers/conv2d_1',
             'mid': 'conv2d', 'c': 'sequential_1/layers/conv2d',
             'd': 'sequential_1/layers/conv2d_1', 'head': 'dense'}))
        self.assertNotIn('by shape', said)

    def test_models_beside_one_another(self):
        """The first layers of both could be either's: nothing decides."""
        self.refused(3, ['does not fit', 'missing from it: '], *self.put_towers(
            {'a': 'conv2d', 'b': 'sequential/layers/conv2d', 'mid': 'conv2d_1',
             'c': 'sequential_1/layers/conv2d', 'd': 'sequential_1/layers/conv2d_1',
             'head': 'dense'}))

    def test_nothing_decides(self):
        """The second layer could be of the outer model or of the inner one."""
        self.refused(3, ['does not fit', 'missing from it: '], *self.put_towers(
            {'a': 'conv2d', 'b': 'conv2d_1', 'mid': 'conv2d_2', 'd': 'conv2d_3',
             'c': 'sequential/layers/conv2d', 'head': 'dense'}))


class Norms(WeightsTest):
    def test_by_other_names(self):
        """Two of them last are no new head, where the file has what fits them."""
        self.put('net.yaml', 'name: net\ninput: [4]\nlayers:\n'
                 '  - {name: p, dense: {units: 4}}\n  - {name: q, dense: {units: 4}}\n'
                 '  - {name: r, dense: {units: 4}}\n'
                 '  - {name: u, batch_norm: {scale: false, center: false}}\n'
                 '  - {name: v, layer_norm: {}}\n')
        arrays = {}
        for name in 'p', 'q', 'r':
            arrays |= {name + '.weight': ('F32', [4, 4], vector(16)[2]),
                       name + '.bias': vector(4)}
        norm = {'running_mean': vector(4), 'running_var': vector(4)}  # affine=False
        last = {'weight': vector(4), 'bias': vector(4)}
        for first, second, status in ('u', 'v', 0), ('n', 'm', 3), ('u', 'm', 0):
            write_safetensors(self.path('w'), {
                **arrays, **{f'{first}.{k}': v for k, v in norm.items()},
                **{f'{second}.{k}': v for k, v in last.items()}}, {'format': 'pt'})
            npy.write(self.path('x.npy'), '<f4', (1, 4), [1, 0, 0, 0])
            done = self.run_program('run', 'net.yaml', '--input', 'x.npy', '--weights', 'w',
                                    '--output', 'o', '--force', status=status)
            self.assertIn("perhaps 'n.running_mean'" if status else '10 of 10 parameters',
                          done.stderr)

    def test_what_is_not_trained(self):
        """gamma stays 1 and beta 0 where they are told to, whatever the optimizer."""
        self.put('net.yaml', 'name: net\ninput: {image: {shape: [28, 28, 1]}}\nlayers:\n'
                 '  - flatten\n  - {name: a, batch_norm: {scale: false}}\n  - relu\n'
                 '  - {name: b, batch_norm: {center: false}}\n'
                 '  - {name: out, dense: {units: 10}}\n  - softmax\n')
        one = ['--optimizer', 'sgd', '--lr', '0.5', '--shards', '2']
        for i, options in enumerate((['--optimizer', 'adamw weight_decay=0.5'], one,
                                     [*one, '--device', '0*2'], ['--precision', 'mixed'])):
            run = f'run{i}'
            self.run_program('train', 'net.yaml', '--data', DATA, '--batch-size', '32',
                             '--steps', '5', '--run', run, *options)
            self.run_program('export', run, '-o', run + '.st', '--format', 'safetensors')
            arrays = read_safetensors(self.path(run + '.st'))[0]
            self.assertEqual(set(floats(arrays['a.gamma'][2])), {1.0})
            self.assertEqual(set(floats(arrays['b.beta'][2])), {0.0})
            for moved in 'a.beta', 'b.gamma':
                self.assertGreater(len(set(floats(arrays[moved][2]))), 100)
        self.assertEqual(self.sha256('run1'), self.sha256('run2'))


class GoingOn(WeightsTest):
    def test_a_run_goes_on_from_its_checkpoint(self):
        """Weights are for its beginning, whatever has become of them since."""
        options = ['--weights', 'w.safetensors']
        self.export('w.safetensors', '--format', 'safetensors')
        self.train_net('--run', 'whole', '--steps', '2', *options)
        self.train_net('--run', 'cut', '--steps', '1', *options)
        os.remove(self.path('w.safetensors'))
        said = self.train_net('--run', 'cut', '--steps', '2', *options).stderr
        self.assertNotIn('weights of', said)
        self.assertEqual(self.sha256('cut'), self.sha256('whole'))
        with open(self.path('cut/config.yaml')) as file:
            self.assertIn('weights: "w.safetensors"', file.read())

    def test_devices(self):
        expected = self.after_a_step('one', '--init-from', 'base', '--shards', '2')[0]
        found = self.after_a_step('two', '--init-from', 'base', '--shards', '2', '--device',
                                  '0*2')[0]
        self.assertEqual(found, expected)


@unittest.skipUnless(os.path.isdir(os.path.join(os.environ.get('LOCKSTEP_DATA', ''),
                                                'pretrained')), 'no pretrained weights here')
class Pretrained(ProgramTest):
    """Files that other people published."""

    def take(self, model, file, *said):
        path = os.path.join(os.environ['LOCKSTEP_DATA'], 'pretrained', file)
        for i in range(8):
            os.makedirs(self.path(f'photos/{i % 2}'), exist_ok=True)
            self.put(f'photos/{i % 2}/{i}.png',
                     png(32, 32, lambda x, y: (8 * x, 8 * y, 30 * i)))
        done = self.run_program('train', model, '--set', 'classes=2', '--set', 'input=32,32,3',
                                '--data', 'folder:photos', '--batch-size', '4', '--steps', '1',
                                '--val', 'off', '--weights', path, timeout=600)
        for text in said:
            self.assertIn(text, done.stderr)

    def test_mobilenet(self):
        self.take('mobilenet-v2', 'mobilenet-v2-imagenet.pt',
                  '260 of 262 parameters, by the names of pytorch-port',
                  'a new head, as initialized: dense_1.weight, dense_1.bias',
                  'images are normalized as the weights expect: torchvision')

    def test_vgg16(self):
        self.take('vgg16', 'vgg16-hed.weights.h5', '26 of 28 parameters, by the names of hed',
                  "not used of the file: 'dsn1/vars/0' [1, 1, 64, 1]",
                  'images are normalized as the weights expect: keras-caffe')


if __name__ == '__main__':
    unittest.main()
