"""lockstep import makes of ONNX models what computes the same, and refuses others by name."""
import importlib.util
import os
import re
import resource
import struct
import subprocess
import sys
import unittest

import packages

packages.want('onnx', 'onnxruntime')
import npy
import program  # takes the program's name from the arguments
from recorded import RecordedTest

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'onnx_models')
NAMES = 'layers', 'arranged', 'functions', 'last'


def varint(value):
    value &= (1 << 64) - 1
    made = b''
    while value > 127:
        made += bytes([value & 127 | 128])
        value >>= 7
    return made + bytes([value])


def message(*fields):
    """Fields (number, value): whole numbers, or texts and messages."""
    made = bytearray()  # which grows in place
    for number, value in fields:
        if isinstance(value, int):
            made += varint(number << 3) + varint(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            made += varint(number << 3 | 2) + varint(len(value)) + value
    return bytes(made)


def port(name, *dims):
    shape = message(*((1, message((1, d) if d else (2, 'n'))) for d in dims))
    return message((1, name), (2, message((1, message((1, 1), (2, shape))))))


def node(op, inputs, outputs, *attributes, domain=''):
    """Attributes: a whole number, a list of them, or the bytes of a graph."""
    listed = [(5, message((1, n), (20, 2), (3, v)) if isinstance(v, int) else
               message((1, n), (20, 5), (6, v)) if isinstance(v, bytes) else
               message((1, n), (20, 7), *((8, i) for i in v))) for n, v in attributes]
    return message(*((1, i) for i in inputs), *((2, o) for o in outputs), (3, 'node_' + op),
                   (4, op), *listed, (7, domain))


def model(nodes, *more, inputs=(port('x', 0, 3, 8, 8),), outputs=('y',), opset=17):
    graph = message(*((1, n) for n in nodes), (2, 'g'), *((11, i) for i in inputs),
                    *((12, port(o)) for o in outputs), *more)
    return message((1, 8), (7, graph), (8, message((1, ''), (2, opset))))


def constant(name, values, dims=None):
    """Whole numbers of 64 bits."""
    return (5, message(*((1, d) for d in ([len(values)] if dims is None else dims)), (2, 7),
                       (7, b''.join(varint(v) for v in values)), (8, name)))


@unittest.skipUnless(os.environ.get('LOCKSTEP_ONNX') == 'yes', 'built without protobuf-c')
class OnnxTest(RecordedTest):
    def compare(self, folder, name):
        self.run_program('import', f'{folder}/{name}.onnx', '-o', name)
        self.compute_recorded(name, f'{folder}/{name}', 1e-4)

    def refuse(self, said, content):
        self.put('m.onnx', content)
        self.refused(3, said, 'import', 'm.onnx', '-o', 'no')
        self.assertFalse(os.path.exists(self.path('no')))


class Computes(OnnxTest):
    def test_recurrent_models_of_other_programs(self):
        for name in 'torch_gru', 'keras_lstm', 'keras_gru', 'keras_rnn':
            self.compare(MODELS, name)

    def test_masks_become_lengths(self):
        """What is padded, a sample without tokens and one without padding; of layers on one
        another, those of both directions, and a mean over the steps that count."""
        for name, count in ('lstm', 3), ('gru', 4), ('rnn', None):
            self.run_program('import', f'{MODELS}/masked_{name}.onnx', '-o', name)
            with open(self.path(name + '/model.yaml')) as file:
                text = file.read()
            self.assertIn('tokens: {shape: [7], type: int32}\n'
                          '  tokens_length: {shape: [], type: int32}\n', text)
            layers = re.findall(r'from: \[[\w/]+, tokens_length\], (\w+):', text)
            self.assertEqual(layers, [name] * (1 if name == 'lstm' else 2))
            if count:
                self.assertEqual(text.count('{name:'), count)
            self.assertNotIn('ReverseSequence', text)
            self.compute_recorded(name, f'{MODELS}/masked_{name}', 1e-5, '--math', 'strict')

    def test_masked_layers_are_trained(self):
        self.run_program('import', f'{MODELS}/masked_gru.onnx', '-o', 'gru')
        with open(self.path('gru/model.yaml')) as file:
            text = file.read()
        entry = re.search(r'^output:\n  \w+: (.*)\n', text, re.M)
        self.put('trained.yaml', text.replace(entry[0], (
            f'  - {{name: p, from: {entry[1]}, softmax: }}\noutput:\n  y: p\n')))
        os.mkdir(self.path('set'))
        for name, dims, values in (
                ('ids', (2, 7), [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 0, 0]),
                ('lengths', (2,), [7, 2]), ('labels', (2,), [0, 2])):
            npy.write(self.path(f'set/{name}_train.npy'), '<i4', dims, values)
        self.run_program('train', 'trained.yaml', '--weights', 'gru/weights.safetensors',
                         '--data', 'npy:set,fields=tokens:ids,tokens.length:lengths,'
                         'label=labels', '--batch-size', '2', '--steps', '20', '--optimizer',
                         'adam', '--lr', '0.05', '--run', 'run', '--no-progress')
        losses = [e['loss'] for e in self.events('run', 'step')]
        self.assertLess(losses[-1], 0.8 * losses[0])

    def test_samples_between_time_steps_and_channels(self):
        self.run_program('import', f'{MODELS}/torch_attention.onnx', '-o', 'attention')
        with open(self.path('attention/model.yaml')) as file:
            text = file.read()
        self.assertIn('x0: {shape: [10, 16], type: float32}', text)
        self.assertEqual(text.count('matmul: {'), 2)
        self.assertGreaterEqual(text.count('dense: {'), 3)

    def test_weights_of_whole_arrays(self):
        """A layer's weights are trained however it is computed, other constants are not."""
        floats = [(5, message(*((1, d) for d in dims), (2, 1), (8, name),
                              (9, struct.pack(f'<{len(values)}f', *values))))
                  for name, dims, values in (('w', (2, 1, 2), [1, 2, 3, 4]),
                                             ('b', (2,), [5, 6]), ('t', (2, 2), [0, 1, 2, 3]))]
        self.put('m.onnx', model([node('Unsqueeze', ['x', 'a'], ['u']),
                                  node('Conv', ['u', 'w', 'b'], ['v']),
                                  node('Mul', ['v', 't'], ['y'])], constant('a', [1]), *floats,
                                 inputs=[port('x', 0, 3)]))
        self.run_program('import', 'm.onnx', '-o', 'm')
        with open(self.path('m/model.yaml')) as file:
            entries = re.findall(r'constant: {count: (\d)}(.*)}', file.read())
        self.assertEqual(entries, [('4', ''), ('2', ''), ('4', ', trainable: false')])

    def rows(self, nodes, batch, expected, *constants):
        """Imports a model of rows of three, and computes it on two of them."""
        self.put('m.onnx', model(nodes, *constants, inputs=[port('x', batch, 3)]))
        self.run_program('import', 'm.onnx', '-o', 'm', '--force')
        npy.write(self.path('x.npy'), '<f4', (2, 3), [1, 2, 3, 4, 5, 7])
        done = self.run_program('run', 'm', '--input', 'x=x.npy', '--output', 'values',
                                '--force')
        file = re.search(r'^(.*\.npy) ', done.stdout, re.M)[1]
        self.assertEqual(list(npy.read(self.path(file))[1]), expected)

    def test_places_counted_from_those_of_the_first_sample(self):
        row = node('Reshape', ['x', 'all'], ['row'])
        take = node('Gather', ['row', 'places'], ['y'])
        back = [3, 2, 1, 7, 5, 4]
        self.rows([node('Shape', ['x'], ['n1'], ('end', 1)), node('Squeeze', ['n1'], ['n']),
                   node('Range', ['zero', 'n', 'one'], ['r']),
                   node('Mul', ['r', 'three'], ['r3']),
                   node('Unsqueeze', ['r3', 'last'], ['column']),
                   node('Add', ['column', 'back'], ['places']), row, take], 0, back,
                  constant('zero', [0], []), constant('one', [1], []),
                  constant('three', [3], []), constant('last', [1]),
                  constant('back', [2, 1, 0], [1, 3]), constant('all', [-1]))
        self.rows([row, take], 2, back, constant('all', [-1]),
                  constant('places', [2, 1, 0, 5, 4, 3], [2, 3]))
        for places in [2, 1, 0, 2, 1, 0], [2, 1, 0, 5, 4, 2]:  # of other samples
            self.refuse("node 'node_Gather' (Gather)", model(
                [row, take], constant('all', [-1]), constant('places', places, [2, 3]),
                inputs=[port('x', 2, 3)]))

    def test_places_named_by_samples_and_columns(self):
        """As PyTorch's exporters write a mask that is read by two indices."""
        back, taken = [3, 2, 1, 7, 5, 4], node('GatherND', ['x', 'places'], ['y'])
        count = [node('Shape', ['x'], ['n1'], ('end', 1)), node('Squeeze', ['n1'], ['n']),
                 node('Range', ['zero', 'n', 'one'], ['r']),
                 node('Unsqueeze', ['r', 'last'], ['column']),
                 node('Max', ['column', 'back'], ['both'])]
        constants = (constant('zero', [0], []), constant('one', [1], []),
                     constant('last', [-1]), constant('back', [2, 1, 0], [1, 3]))
        shape = [node('Shape', ['both'], ['shape'])]
        for name in 'column', 'back':
            shape += [node('Expand', [name, 'shape'], ['all_' + name]),
                      node('Unsqueeze', ['all_' + name, 'last'], ['each_' + name])]
        shape += [node('Concat', ['each_column', 'each_back'], ['places'], ('axis', -1))]
        self.rows(count + shape + [taken], 0, back, *constants)
        self.refuse("node 'node_Gather' (Gather): it computes with the numbers of samples",
                    model(count + [node('Gather', ['x', 'both'], ['y'], ('axis', 1))],
                          *constants, inputs=[port('x', 0, 3)]))
        places = [0, 2, 0, 1, 0, 0, 1, 2, 1, 1, 1, 0]
        self.rows([taken], 2, back, constant('places', places, [2, 3, 2]))
        for at, other in (6, 0), (1, 1), (6, -1):  # of other samples, or other columns
            wrong = [*places[:at], other, *places[at + 1:]]
            self.refuse("node 'node_GatherND' (GatherND)", model(
                [taken], constant('places', wrong, [2, 3, 2]), inputs=[port('x', 2, 3)]))

    def test_places_in_a_column_of_all_samples(self):
        column = [node('Flatten', ['x'], ['column'], ('axis', 2)),
                  node('Gather', ['column', 'places'], ['found']),
                  node('Flatten', ['found'], ['y'])]
        self.rows(column, 2, [3, 2, 1, 7, 5, 4],
                  constant('places', [2, 1, 0, 5, 4, 3], [2, 3]))
        for places in [2, 1, 0, 5, 4, 2], [-1, 1, 0, 2, 4, 3]:
            self.refuse("node 'node_Gather' (Gather)", model(
                column, constant('places', places, [2, 3]), inputs=[port('x', 2, 3)]))

    def test_tokens_that_are_clipped(self):
        """As PyTorch's clamp writes it; where a row would be another one it is refused."""
        tokens = message((1, 't'), (2, message((1, message((1, 7), (2, message(
            (1, message((2, 'n'))), (1, message((1, 3))))))))))
        table = (5, message((1, 4), (1, 2), (2, 1), (8, 'table'),
                            (9, struct.pack('<8f', *range(8)))))
        bounds = [table, constant('low', [0], []), constant('high', [3], []),
                  constant('near', [2], [])]
        rows = node('Gather', ['table', 'safe'], ['y'])
        npy.write(self.path('t.npy'), '<i4', [2, 3], [0, 3, 1, 2, 9, -4])
        ways = [[node('Clip', inputs, ['safe'])] for inputs in
                (['t', 'low', 'high'], ['t', '', 'high'], ['t', 'low'])]
        ways.append([node('Max', ['t', 'low'], ['m']), node('Min', ['m', 'high'], ['safe'])])
        for way in ways:
            self.put('m.onnx', model([*way, rows], *bounds, inputs=[tokens]))
            self.run_program('import', 'm.onnx', '-o', 'net', '--force')
            self.run_program('run', 'net', '--input', 't=t.npy', '--output', 'values',
                             '--force')
            shape, numbers = npy.read(self.path('values/' + os.listdir(self.path('values'))[0]))
            self.assertEqual(shape, (2, 3, 2))
            self.assertEqual(numbers, [0, 1, 6, 7, 2, 3, 4, 5, 0, 0, 0, 0])
        self.refuse('rows of a constant table for tokens', model(
            [node('Clip', ['t', 'low', 'near'], ['safe']), rows], *bounds, inputs=[tokens]))

    def test_outputs_that_are_inputs_in_another_shape(self):
        x = [i / 8 for i in range(2 * 60)]
        turned = [x[n * 60 + c * 20 + p] for n in range(2) for p in range(20) for c in range(3)]
        npy.write(self.path('x.npy'), '<f4', [2, 5, 4, 3], turned)
        for nodes, shape, wanted in (
                ([node('Flatten', ['x'], ['y'])], (2, 60), x),
                ([node('Reshape', ['x', 's'], ['y'])], (2, 12, 5), x),
                ([node('Transpose', ['x'], ['y'], ('perm', [0, 2, 3, 1]))], (2, 5, 4, 3),
                 turned),
                ([node('Identity', ['x'], ['y'])], (2, 5, 4, 3), turned)):
            self.put('m.onnx', model(nodes, constant('s', [0, 12, 5]),
                                     inputs=[port('x', 0, 3, 5, 4)]))
            self.run_program('import', 'm.onnx', '-o', 'net', '--force')
            self.run_program('run', 'net', '--input', 'x=x.npy', '--output', 'values',
                             '--force')
            file, = os.listdir(self.path('values'))
            found = npy.read(self.path('values/' + file))
            self.assertEqual((tuple(found[0]), found[1]), (shape, wanted))
        self.put('m.onnx', model([node('Relu', ['x'], ['y'])], outputs=('y', 'x')))
        self.run_program('import', 'm.onnx', '-o', 'net', '--force')
        with open(self.path('net/model.yaml')) as file:
            self.assertIn('output:\n  _y: node_Relu\n', file.read())

    def test_sequences_backwards(self):
        """As TensorFlow's converter turns the time steps of a second direction."""
        turned = [node('Transpose', ['x'], ['steps'], ('perm', [1, 0])),
                  node('ReverseSequence', ['steps', 'lengths'], ['turned']),
                  node('Transpose', ['turned'], ['y'], ('perm', [1, 0]))]
        self.rows([node('Shape', ['x'], ['n1'], ('end', 1)),
                   node('Expand', ['three', 'n1'], ['lengths']), *turned], 0,
                  [3, 2, 1, 7, 5, 4], constant('three', [3], []))
        self.rows(turned, 2, [2, 1, 3, 5, 4, 7], constant('lengths', [2, 2]))
        for lengths, axes in ([2, 3], [1, 0]), ([2, 2, 2], [0, 1]):
            turn = node('ReverseSequence', ['steps', 'lengths'], ['turned'],
                        ('batch_axis', axes[0]), ('time_axis', axes[1]))
            self.refuse("node 'node_ReverseSequence' (ReverseSequence)", model(
                [turned[0], turn, turned[2]], constant('lengths', lengths),
                inputs=[port('x', 2, 3)]))

    def test_constants_repeated_for_each_sample_of_a_fixed_batch(self):
        values = [3, 1, 2]
        floats = message((1, 2), (1, 3), (2, 1), (4, struct.pack('<6f', *values, *values)),
                         (8, 'c'))
        self.rows([node('Add', ['x', 'c'], ['y'])], 2, [4, 3, 5, 7, 6, 9], (5, floats))
        floats = message((1, 2), (1, 3), (2, 1), (4, struct.pack('<6f', *range(6))), (8, 'c'))
        self.refuse("node 'node_Add' (Add)", model(
            [node('Add', ['x', 'c'], ['y'])], (5, floats), inputs=[port('x', 2, 3)]))

    def test_a_norm_whose_epsilon_is_nearly_nothing(self):
        """1e-12, of which float32 has a little less."""
        epsilon = message((5, message((1, 'epsilon'), (20, 1)) + b'\x15' +
                           struct.pack('<f', 1e-12)))
        ones = [(5, message((1, 3), (2, 1), (4, struct.pack('<3f', 1, 1, 1)), (8, name)))
                for name in 'sbmv']
        self.put('m.onnx', model(
            [node('BatchNormalization', ['x', *'sbmv'], ['y']) + epsilon], *ones))
        self.run_program('import', 'm.onnx', '-o', 'm')
        with open(self.path('m/model.yaml')) as file:
            self.assertIn('batch_norm: {', file.read())

    def test_recorded_models(self):
        for name in NAMES:
            self.compare(MODELS, name)

    @unittest.skipUnless(importlib.util.find_spec('onnxruntime') and
                         importlib.util.find_spec('onnx'), 'needs onnx and onnxruntime')
    def test_what_onnxruntime_computes_now(self):
        subprocess.run([sys.executable, os.path.join(MODELS, 'make.py'), self.folder],
                       check=True)
        for name in NAMES:
            self.compare(self.folder, name)


class Trains(OnnxTest):
    def test_steps_are_those_of_pytorch(self):
        """All weights of layers are trained, norms and attention among them."""
        for name, more in (('images', ['--pipeline', 'normalize -1..1']), ('texts', [])):
            place = f'{MODELS}/steps_{name}'
            self.run_program('import', place + '.onnx', '-o', name)
            with open(self.path(name + '/model.yaml')) as file:
                text = file.read()
            end = re.search(r'^output:\n  _y: (.*)\n', text, re.M)
            self.put('trained.yaml', text.replace(end[0], (
                f'  - {{name: p, from: {end[1]}, softmax: }}\noutput:\n  _y: p\n')))
            self.run_program('train', 'trained.yaml', '--weights',
                             name + '/weights.safetensors', '--data',
                             f'npy:{place}.x.npy,{place}.c.npy', '--batch-size', '16',
                             '--steps', '5', '--optimizer', 'sgd', '--lr', '0.25', '--run',
                             name + '_run', '--no-progress', *more)
            losses = npy.read(place + '.losses.npy')[1]
            self.assertLess(losses[-1], losses[0])
            found = [e['loss'] for e in self.events(name + '_run', 'step')]
            self.assertEqual(len(found), len(losses))
            for mine, theirs in zip(found, losses):
                self.assertAlmostEqual(mine, theirs, delta=2e-5)


class Refusals(OnnxTest):
    def refuse_soon(self, said, content):
        """In little time of processors, starting the program included."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.refuse(said, content)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertLess(after.ru_utime - before.ru_utime, 1)

    def test_many_loops_without_bodies(self):
        self.refuse_soon('(Loop)', model(
            [node('Loop', ['n', '', 'x'], [f'y{i}']) for i in range(32768)],
            constant('n', [3], []), outputs=['y32767']))

    def test_many_values_that_loops_may_ask_for(self):
        """64 loops, each with 120 counters that begin from the last of many constants."""
        counters = range(120)
        body = message(
            *((1, node('Add', [f'a{i}', 'one'], [f'b{i}'])) for i in counters), constant(
                'one', [1], []), (11, port('step')), (11, port('on')),
            *((11, port(f'a{i}')) for i in counters), (12, port('on')),
            *((12, port(f'b{i}')) for i in counters), (12, port('b0')))
        loops = [node('Loop', ['zero', '', *['zero'] * 120],
                      [f'{n}_{i}' for i in range(121)], ('body', body)) for n in range(64)]
        others = [node('Relu', ['x'], [f'r{i}']) for i in range(32000)]
        self.refuse_soon('(Loop)', model(
            others + loops, *(constant(f'c{i}', [0], []) for i in range(32000)),
            constant('zero', [0], []), outputs=['63_0']))

    def test_many_guards_of_large_tables(self):
        """Each asks whether a token has a row, of which there are 2^20."""
        tokens = message((1, 't'), (2, message((1, message((1, 7), (2, message(
            (1, message((2, 'n'))), (1, message((1, 3))))))))))
        table = (5, message((1, 1 << 20), (1, 1), (2, 1), (8, 'table'), (9, bytes(4 << 20))))
        nodes = [node('Clip', ['t', 'low', 'high'], ['safe']),
                 node('Equal', ['t', 'safe'], ['known']),
                 node('Reshape', ['known', 'column'], ['mask']),
                 node('Gather', ['table', 'safe'], ['rows'])]
        guards = [node('Where', ['mask', 'rows', 'low'], [f'y{i}']) for i in range(200)]
        self.refuse_soon('no node makes', model(
            nodes + guards, table, constant('low', [0], []), constant('column', [0, 3, 1]),
            constant('high', [(1 << 20) - 1], []), inputs=[tokens]))

    def test_what_is_not_supported(self):
        for nodes, said in (
                ([node('Magic', ['x'], ['y'])], ["node 'node_Magic' (Magic)", 'not supported']),
                ([node('Relu', ['x'], ['y'], domain='com.microsoft')], "'com.microsoft'"),
                ([node('Relu', ['x'], ['y'], ('new', 1))], "attribute 'new' is not supported"),
                ([node('Relu', ['z'], ['y'])], "reads 'z', which nothing before it makes"),
                ([node('Relu', ['y'], ['y'])], "reads 'y', which nothing before it makes"),
                ([node('Relu', ['b'], ['a']), node('Relu', ['a'], ['b']),
                  node('Add', ['a', 'x'], ['y'])], "reads 'b', which nothing before"),
                ([node('Relu', ['x'], ['y']), node('Tanh', ['x'], ['y'])], "'y' is made twice"),
                ([node('Relu', [''], ['y'])], 'input 0 is left out'),
                ([node('ReduceSum', ['x'], ['y'], ('axes', [0]))], 'several samples'),
                ([node('Transpose', ['x'], ['y'], ('perm', [0, 1, 9, 3]))], 'axis 9'),
                ([node('Conv', ['x', 'x'], ['y'])], "input 1, 'x', is computed"),
                ([node('MaxPool', ['x'], ['y'], ('kernel_shape', [2]))],
                 "'kernel_shape' has 1 numbers, expected 2"),
                ([node('MaxPool', ['x'], ['y'], ('kernel_shape', [0, 2]))], 'of at most 4096'),
                ([node('Concat', ['x', 'x'], ['y'], ('axis', 0))], 'along axis 0'),
                ([node('Softmax', ['x'], ['y'], ('axis', 0))], 'over axis 0'),
                ([node('Gather', ['rows', 'x'], ['y'])], 'rows of a constant table for tokens'),
                ([node('Gather', ['x', 'far'], ['y'], ('axis', 1))], 'part 3..4 of an axis'),
                ([node('Shape', ['x'], ['y'])], "'y' (output): it is a constant"),
                ([node('Relu', ['x'], ['z'])], "no node makes output 'y'")):
            self.refuse(said, model(nodes, constant('rows', [1, 2], [1, 2]),
                                    constant('far', [(1 << 63) - 1])))

    def test_shapes_that_lie(self):
        for values, said in (([0, 5, 5], 'another number of them'), ([2, -1], 'stay the batch'),
                             ([0, 1 << 40, 1 << 40], 'cannot have'), ([0, -5], 'cannot have'),
                             ([-1], 'along no axis of their own')):
            self.refuse(said, model([node('Reshape', ['x', 's'], ['y'])],
                                    constant('s', values)))
        self.refuse('far more elements', model(
            [node('ConstantOfShape', ['s'], ['c']), node('Add', ['x', 'c'], ['y'])],
            constant('s', [1 << 20, 1 << 20])))
        self.refuse('length of the batch', model(
            [node('Shape', ['x'], ['n']), node('Add', ['n', 's'], ['m']),
             node('Reshape', ['x', 'm'], ['y'])], constant('s', [2])))

    def test_files(self):
        self.refuse('no ONNX model', b'\x08\x08\x3a\x7f')
        self.refuse('leaves a length open', model([node('Relu', ['x'], ['y'])],
                                                  inputs=[port('x', 0, 3, 0, 0)]))
        self.refuse('0 axes', model([node('Relu', ['x'], ['y'])], inputs=[port('x')]))


if __name__ == '__main__':
    program.main()
