"""lockstep export writes models of sequences, and what images need before the first layer, as
ONNX: onnxruntime computes the same as lockstep run."""
import importlib.util
import os
import random
import re
import unittest

import npy
import packages

packages.want('onnx', 'onnxruntime')
import program  # takes the program's name from the arguments
from program import ProgramTest

STEPS, WORDS, SAMPLES = 12, 20, 24

# Every operation on time steps; what it gives becomes part of `all`.
LAYERS = """
  - {name: e, from: tokens, embedding: {vocabulary: 20, units: 8}}
  - {name: p, position: {kind: sines}}
  - {name: r, rotary: {heads: 2}}
  - {name: l, layer_norm: {epsilon: 1e-5}}
  - {name: c1, from: p, conv1d: {filters: 6, kernel: 3, stride: 2, activation: relu}}
  - {name: c1_y, last_step: }
  - {name: c2, from: r, conv1d: {filters: 8, kernel: 2, dilation: 2, padding: causal}}
  - {name: c2_y, global_max_pool1d: }
  - {name: m1, from: l, max_pool1d: {size: 3, stride: 2, padding: same}}
  - {name: m1_y, flatten: }
  - {name: a1, from: l, average_pool1d: {size: 3, stride: 1, padding: same}}
  - {name: a1_y, flatten: }
  - {name: v1, from: e, reverse_steps: }
  - {name: v1_y, flatten: }
  - {name: b1, from: e, dense: {units: 5}}
  - {name: b1_y, global_average_pool1d: }
  - {name: lb, from: e, lstm: {units: 4, return_sequences: true, go_backwards: true}}
  - {name: lb_y, flatten: }
  - {name: g1, from: e, gru: {units: 3, reset_after: false}}
  - {name: g2, from: e, gru: {units: 3, return_sequences: true, return_state: true}}
  - {name: g2_y, flatten: }
  - {name: ls, from: e, lstm: {units: 4, return_state: true}}
  - {name: first, slice: {t: [1, 0]}}
  - {name: ls_y, from: [e, first], lstm: {units: 4, use_bias: false}}
  - {name: n1, from: e, rnn: {units: 3, go_backwards: true}}
  - {name: q, from: p, dense: {units: 24}}
  - {name: s1, attention: {heads: 2, causal: true}}
  - {name: s1_y, flatten: }
  - {name: s2, from: [p, c2, c2], attention: {heads: 2}}
  - {name: s2_y, flatten: }
"""
ENDS = """
  - {name: x1, from: [c1_y, c2_y, m1_y, a1_y, v1_y, b1_y], concat: }
  - {name: x2, from: [lb_y, g1, g2_y, ls_y, n1, s1_y, s2_y], concat: }
  - {name: all, from: [x1, x2], concat: }
  - {dense: {units: 6}}
  - softmax
output: softmax_1
"""
ARRAYS = """input: [28, 28, 1]
layers:
  - {name: f, flatten: }
  - {name: a, dense: {units: 12}}
  - {name: b, from: f, dense: {units: 12}}
"""
ONE = ['sin', 'atan', 'asinh', 'erf', 'floor', 'round', 'truncate', 'sign', 'clip', 'swish',
       'celu', 'scaled_elu', 'threshold', 'shrink', 'is_true', 'not', 'is_nan', 'is_infinite']
TWO = ['sum', 'difference', 'product', 'smaller', 'larger', 'less', 'less_equal', 'equal',
       'and', 'or', 'xor', 'slope']
REDUCES = ['sum', 'mean', 'largest', 'smallest', 'log_sum_exp', 'largest_place']
PIXELS = """input: [28, 28, 1]
layers:
  - {name: c1, conv2d: {filters: 8, kernel: 3, padding: same, bias: false}}
  - {name: n1, batch_norm: {activation: relu}}
  - {name: c2, conv2d: {filters: 8, kernel: 3, stride: 2, groups: 4}}
  - {name: n2, batch_norm: {epsilon: 1e-3}}
  - {name: c3, conv2d: {filters: 8, kernel: 1, activation: relu}}
  - {name: n3, batch_norm: {}}
  - {name: s, from: [n2, n3], add: }
  - global_average_pool
  - {dense: {units: 10}}
  - softmax
"""


def arrays():
    """Functions of elements side by side, products and sums of them."""
    text, names = ARRAYS, []
    for i, name in enumerate(ONE + TWO):
        of = 'a' if name in ONE else '[a, b]'
        text += f'  - {{name: m{i}, from: {of}, math: {{function: {name}}}}}\n'
        names.append(f'm{i}')
    for i, name in enumerate(REDUCES):
        text += (f'  - {{name: r{i}, from: a, reduce: {{function: {name}, length: 4, '
                 'inner: 3}}\n')
        names.append(f'r{i}')
    text += '  - {name: t, from: [a, b], matmul: {rows: 2, inner: 3, columns: 2}}\n'
    names.append('t')
    for i in range(0, len(names), 8):
        of = ', '.join(names[i:i + 8])
        text += f'  - {{name: j{i}, from: [{of}], concat: {{axis: c}}}}\n'
    joined = ', '.join(f'j{i}' for i in range(0, len(names), 8))
    return text + f'  - {{name: all, from: [{joined}], concat: {{axis: c}}}}\n' \
                  '  - {dense: {units: 10}}\n  - softmax\n'


@unittest.skipUnless(os.environ.get('LOCKSTEP_ONNX') == 'yes', 'built without protobuf-c')
@unittest.skipUnless(importlib.util.find_spec('onnxruntime') and
                     importlib.util.find_spec('onnx'), 'needs onnx and onnxruntime')
class Steps(ProgramTest):
    def train(self, text, data, *more):
        self.put('m.yaml', text)
        self.run_program('train', 'm.yaml', '--data', data, '--batch-size', '16', '--steps',
                         '2', '--run', 'run', '--no-progress', *more, timeout=900)

    def texts(self):
        words = random.Random(3)
        some = ['red', 'blue', 'sky', 'tree', 'ant']
        self.put('texts.txt', ''.join(
            f'{"abcdef"[i % 6]}\t' + ' '.join(words.choices(some, k=1 + i % 15)) + '\n'
            for i in range(60)))
        return f'text:texts.txt,unit=word,length={STEPS},val=0.2'

    def check(self, inputs, tap, *options):
        """Model file and run give the same; inputs: name: (type, shape, values), and
        another shape in ONNX."""
        import numpy
        import onnx
        import onnxruntime
        given, feed = [], {}
        for name, (dtype, shape, values, *other) in inputs.items():
            npy.write(self.path(name + '.npy'), dtype, shape, values)
            given += ['--input', f'{name}={name}.npy']
            feed[name] = numpy.array(values, dtype).reshape(*other or [shape])
        done = self.run_program('run', 'run', *given, '--output', 'values', '--force',
                                *(['--tap', tap] if tap else []), timeout=900)
        self.run_program('export', 'run', '-o', 'm.onnx', *options)
        onnx.checker.check_model(self.path('m.onnx'), full_check=True)
        model = onnx.load(self.path('m.onnx'))
        if tap:
            model.graph.output.append(onnx.helper.make_tensor_value_info(
                tap, onnx.TensorProto.FLOAT, None))
        session = onnxruntime.InferenceSession(model.SerializeToString(),
                                               providers=['CPUExecutionProvider'])
        for name, found in zip([o.name for o in session.get_outputs()],
                               session.run(None, feed)):
            expected = numpy.load(self.path(f'values/{name}.npy'))
            self.assertEqual(found.shape, expected.shape, name)
            self.assertGreater(expected.max() - expected.min(), 1e-3, name)
            self.assertLess(abs(found - expected).max(), 1e-4, name)
        self.assertIn('softmax_1', done.stdout)
        return model

    def tokens(self, lengths):
        numbers = random.Random(7)
        tokens = [numbers.randrange(-1, WORDS + 2) for _ in range(SAMPLES * STEPS)]
        inputs = {'tokens': ('<i4', [SAMPLES, STEPS], tokens)}
        if lengths:
            inputs['tokens_length'] = ('<i4', [SAMPLES],
                                       [i % (STEPS + 1) for i in range(SAMPLES)])
        return inputs

    def model(self, more=''):
        return f'input: {{tokens: {{shape: [{STEPS}], type: int32{more}}}}}\nlayers:' + \
            LAYERS + ENDS

    def test_steps_with_lengths(self):
        self.train(self.model(', length: true'), self.texts())
        self.check(self.tokens(True), 'all')
        self.check(self.tokens(True), 'all', '--opset', '28', '--batch', str(SAMPLES))

    def test_steps_without_lengths(self):
        self.train(self.model(), self.texts())
        self.check(self.tokens(False), 'all', '--opset', '18')

    def test_arrays(self):
        self.train(arrays(), 'synthetic:digits,count=64')
        numbers = random.Random(5)
        images = [numbers.gauss(0, 1) for _ in range(5 * 784)]
        # one channel: both orders of axes have the same numbers
        self.check({'image': ('<f4', [5, 28, 28, 1], images, [5, 1, 28, 28])}, 'all')

    def test_pixels_and_folded_norms(self):
        self.train(PIXELS, 'synthetic:digits,count=64')
        numbers = random.Random(5)
        pixels = {'image': ('|u1', [9, 28, 28, 1],
                            [numbers.randrange(256) for _ in range(9 * 784)])}
        plain = self.check(pixels, None, '--preprocess')
        folded = self.check(pixels, None, '--preprocess', '--fold')
        kinds = [[node.op_type for node in m.graph.node] for m in (plain, folded)]
        self.assertEqual(kinds[0].count('BatchNormalization'), 3)
        # the third reads a relu
        self.assertEqual(kinds[1].count('BatchNormalization'), 1)
        self.assertEqual(kinds[0].count('Conv'), kinds[1].count('Conv'))

    def test_pixels_of_presets(self):
        """What normalize does is in the graph; read again, it is few layers."""
        numbers = random.Random(5)
        pixels = [numbers.randrange(256) for _ in range(16 * 12 * 12 * 3)]
        npy.write(self.path('images.npy'), '|u1', [16, 12, 12, 3], pixels)
        npy.write(self.path('labels.npy'), '<i4', [16], [i % 10 for i in range(16)])
        for preset, more in (('torchvision', 1), ('keras-tf', 1), ('keras-caffe', 5)):
            self.train(PIXELS.replace('28, 28, 1', '12, 12, 3'),
                       'npy:images.npy,labels.npy', '--pipeline', f'normalize {preset}',
                       '--fresh')
            given = {'image': ('|u1', [16, 12, 12, 3], pixels)}
            self.check(given, None, '--preprocess')
            layers = []
            for options in [], ['--preprocess']:
                self.run_program('export', 'run', '-o', 'm.onnx', '--force', *options)
                said = self.run_program('import', 'm.onnx', '-o', 'back', '--force').stdout
                layers.append(int(re.search(r'(\d+) layers', said)[1]))
            self.assertEqual(layers[1], layers[0] + more, preset)
            floats = self.path('floats.npy')
            npy.write(floats, '<f4', [16, 12, 12, 3], pixels)
            for model, x in (('run', 'images.npy'), ('back', 'floats.npy')):
                self.run_program('run', model, '--input', f'image={x}', '--output', model +
                                 '_values', '--force')
            ours, theirs = (npy.read(self.path(f'{m}_values/softmax_1.npy'))[1]
                            for m in ('run', 'back'))
            self.assertLess(max(abs(a - b) for a, b in zip(ours, theirs)), 1e-4, preset)


WORDS_OF_TEXTS = ['red', 'blue', 'green', 'sky', 'tree', 'ant']
RECURRENT = ['width=12', 'units=9']
TEXTS = {'text-cnn': ['width=12', 'filters=7'], 'text-lstm': RECURRENT,
         'text-gru': RECURRENT, 'text-bilstm': RECURRENT, 'two-branch-text': RECURRENT,
         'transformer-encoder': ['width=16', 'heads=2', 'blocks=2', 'wide=24'],
         'gpt-small': ['width=16', 'heads=2', 'blocks=2', 'length=40']}


@unittest.skipUnless(os.environ.get('LOCKSTEP_ONNX') == 'yes', 'built without protobuf-c')
class Texts(ProgramTest):
    """The zoo's models of texts are read again, for arrays and as models."""

    def train(self, model):
        chance = random.Random(3)
        texts = [' '.join(chance.choices(WORDS_OF_TEXTS, k=1 + i % 30)) for i in range(90)]
        self.put('texts.txt', ''.join(f'{"abcdef"[i % 6]}\t{text}\n'
                                      for i, text in enumerate(texts)))
        self.put('book.txt', ' '.join(texts))
        data = {'gpt-small': 'text:book.txt,unit=char,val=0.1',
                'two-branch-text': 'text:texts.txt,unit=word,val=0.2,pairs=40'}
        sizes = [word for size in TEXTS[model] for word in ('--set', size)]
        self.run_program('train', model, '--data',
                         data.get(model, 'text:texts.txt,unit=word,val=0.2'), '--batch-size',
                         '16', '--steps', '2', '--lr', '0.01', '--run', 'run', '--fresh',
                         '--no-progress', *sizes, timeout=900)

    def draw(self, model):
        """Tokens, some of which have no row, and lengths, some of which are none."""
        chance = random.Random(7)
        steps = {'transformer-encoder': 128, 'gpt-small': 40}.get(model, 64)
        given = []
        for name in ['a', 'b'] if model == 'two-branch-text' else ['tokens']:
            npy.write(self.path(name + '.npy'), '<i4', [8, steps],
                      [chance.randrange(-1, 9) for _ in range(8 * steps)])
            npy.write(self.path(name + '_length.npy'), '<i4', [8],
                      [0, steps, steps + 5, -2] + [chance.randrange(1, steps) for _ in '1234'])
            for file in name, name + '_length':
                given += ['--input', f'{file}={file}.npy']
        return given

    def values(self, model, given, values):
        self.run_program('run', model, *given, '--output', values, '--force', timeout=900)
        files = os.listdir(self.path(values))
        self.assertEqual(len(files), 1, files)
        return npy.read(self.path(os.path.join(values, files[0])))

    def test_zoo(self):
        for model in TEXTS:
            self.train(model)
            given = self.draw(model)
            shape, expected = self.values('run', given, model)
            self.run_program('export', 'run', '-o', 'm.onnx')
            self.run_program('import', 'm.onnx', '-o', 'net', '--force')
            for way in 'm.onnx', 'net':
                other, found = self.values(way, given, f'{model}_{way}')
                self.assertEqual(other, shape, (model, way))
                self.assertLess(max(abs(a - b) for a, b in zip(found, expected)), 1e-5,
                                (model, way))


if __name__ == '__main__':
    program.main()
