"""lockstep export writes models as ONNX that compute the same: read again by lockstep import,
and by onnxruntime where it is there."""
import importlib.util
import os
import random
import re
import unittest

import npy
import packages

packages.want('onnx', 'onnxruntime')
import program  # takes the program's name from the arguments
from program import DATA, ProgramTest

IMAGES = """input: [28, 28, 1]
layers:
  - {name: c1, conv2d: {filters: 8, kernel: 3, stride: 2, padding: same, activation: relu}}
  - {name: c2, conv2d: {filters: 8, kernel: [3, 1], groups: 8, dilation: 2,
                        padding: [1, 2, 0, 1], bias: false}}
  - {name: n2, batch_norm: {activation: relu6}}
  - {name: p2, max_pool: {size: 3, stride: 2, padding: same}}
  - {name: s1, global_average_pool: }
  - {name: s2, dense: {units: 8, activation: sigmoid}}
  - {name: m1, from: [p2, s2], multiply: }
  - {name: c3, from: p2, conv2d: {filters: 8, kernel: 1, padding: valid}}
  - {name: a0, from: [p2, s2], add: {relu: true}}
  - {name: a1, from: [m1, c3, a0, s2], add: {activation: leaky_relu}}
  - {name: v1, average_pool: {size: 2, stride: 1, padding: 1, count_padding: true}}
  - {name: v2, average_pool: {size: 3, stride: 2, padding: same}}
  - {name: u1, upsample: {size: 2, interpolation: bilinear}}
  - {name: u2, upsample: {size: [1, 2]}}
  - {name: d1, pad: {padding: [1, 0, 2, 1], mode: reflect}}
  - {name: d2, pad: {padding: 1}}
  - {name: k1, crop: {cropping: [1, 0, 1, 0]}}
  - {name: l1, slice: {h: [1, 0], c: [2, -1]}}
  - {name: t1, conv2d_transpose: {filters: 4, kernel: 3, stride: 2, padding: 1,
                                  output_padding: 1}}
  - {name: j1, from: [t1, t1], concat: {axis: c}}
  - {name: o1, local_response_norm: {size: 3}}
  - {name: g1, group_norm: {groups: 8}}
  - {name: r1, prelu: }
  - {name: q1, dropout: {rate: 0.5}}
  - {name: z1, global_max_pool: }
  - {name: y1, dense: {units: 10}}
  - softmax
"""
FUNCTIONS = ['tanh', 'softsign', 'softplus', 'exp', 'abs', 'selu', 'elu', 'hard_sigmoid',
             'hard_swish', 'silu', 'mish', 'square', 'gelu', 'gelu_tanh', 'leaky_relu', 'relu6']


def functions():
    """Each of a dense layer of its own, with their numbers side by side."""
    text = 'input: [28, 28, 1]\nlayers:\n  - {name: f, flatten: }\n'
    for i, name in enumerate(FUNCTIONS):
        text += (f'  - {{name: d{i}, from: f, dense: {{units: 6}}}}\n'
                 f'  - {{name: f{i}, {name}: }}\n')
    text += '  - {name: low, from: d0, clipped_relu: {slope: 0.25, max: 1}}\n'
    text += '  - {name: top, from: d1, clipped_relu: {max: 0.5}}\n'
    text += '  - {name: line, from: d2, rescale: {scale: 0.5, shift: -0.25}}\n'
    text += '  - {name: norm, from: d3, layer_norm: {center: false}}\n'
    text += '  - {name: gate, from: [d4, d5], add: {relu: true}}\n'
    text += '  - {name: a, from: [f0, f1, f2, f3, f4, f5, f6, f7], concat: {axis: c}}\n'
    text += '  - {name: b, from: [f8, f9, f10, f11, f12, f13, f14, f15], concat: {axis: c}}\n'
    text += '  - {name: c, from: [low, top, line, norm, gate], concat: {axis: c}}\n'
    text += '  - {name: all, from: [a, b, c], concat: {axis: c}}\n'
    return text + '  - {dense: {units: 10}}\n  - softmax\n'


@unittest.skipUnless(os.environ.get('LOCKSTEP_ONNX') == 'yes', 'built without protobuf-c')
class ExportTest(ProgramTest):
    def train(self, text, *options):
        self.put('m.yaml', text)
        self.run_program('train', 'm.yaml', '--data', DATA, '--batch-size', '16', '--steps',
                         '2', '--run', 'run', '--no-progress', *options, timeout=600)
        numbers = random.Random(5)
        npy.write(self.path('x.npy'), '<f4', [3, 28, 28, 1],
                  [numbers.gauss(0, 1) for _ in range(3 * 784)])

    def values(self, model):
        done = self.run_program('run', model, '--input', 'image=x.npy', '--output',
                                model + '_values', '--force', timeout=600)
        return npy.read(self.path(re.findall(r'^(.*\.npy) ', done.stdout, re.M)[0]))[1]

    def check(self, found, expected):
        self.assertEqual(len(found), len(expected))
        self.assertGreater(max(expected) - min(expected), 1e-3)
        self.assertLess(max(abs(a - b) for a, b in zip(found, expected)), 1e-4)

    def check_elsewhere(self, name, expected):
        if not (importlib.util.find_spec('onnxruntime') and importlib.util.find_spec('onnx')):
            return
        import numpy
        import onnx
        import onnxruntime
        onnx.checker.check_model(self.path(name), full_check=True)
        session = onnxruntime.InferenceSession(self.path(name),
                                               providers=['CPUExecutionProvider'])
        feed = {session.get_inputs()[0].name:
                numpy.load(self.path('x.npy')).transpose(0, 3, 1, 2)}
        self.check(session.run(None, feed)[0].ravel().tolist(), expected)

    def round(self, text, *options):
        self.train(text)
        expected = self.values('run')
        self.run_program('export', 'run', '-o', 'm.onnx', *options)
        self.check_elsewhere('m.onnx', expected)
        self.run_program('import', 'm.onnx', '-o', 'net')
        self.check(self.values('net'), expected)


class Exports(ExportTest):
    def test_operations_on_images(self):
        self.round(IMAGES, '--opset', '13')

    def test_functions(self):
        self.round(functions(), '--format', 'onnx', '--opset', '20', '--batch', '3')

    def test_refusals(self):
        self.train('input: [28, 28, 1]\nlayers:\n  - {local_response_norm: {size: 2}}\n'
                   '  - flatten\n  - {dense: {units: 10}}\n  - softmax\n')
        export = 'export', 'run', '-o', 'm.onnx'
        self.refused(3, ["'local_response_norm_1'", "an even 'size'"], *export)
        self.train('input: [28, 28, 1]\nlayers:\n  - {reshape: {shape: [28, 28]}}\n'
                   '  - {local_response_norm: {size: 3}}\n  - flatten\n'
                   '  - {dense: {units: 10}}\n  - softmax\n', '--fresh')
        self.refused(3, ["'local_response_norm_1'", 'of sequences'], *export)
        self.refused(2, "'--batch' needs", *export, '--batch', '-1')
        self.refused(2, "'--opset' needs", *export, '--opset', 'new')
        self.refused(2, 'expected 13 to 28', *export, '--opset', '7')
        self.assertFalse(os.path.exists(self.path('m.onnx')))


if __name__ == '__main__':
    program.main()
