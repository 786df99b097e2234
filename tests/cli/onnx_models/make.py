#!/usr/bin/env python3
"""Makes models of ONNX, inputs for them and the outputs that onnxruntime computes: make.py
FOLDER. Needs numpy, onnx and onnxruntime. Images in .npy files have their channels last, as
lockstep run takes and gives them."""
import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

node = helper.make_node
rng = np.random.default_rng(20)


def weights(*shape):
    fan = max(1, int(np.prod(shape[1:])))
    return (rng.standard_normal(shape) / np.sqrt(fan)).astype(np.float32)


def numbers(*values):
    return np.array(values, np.int64)


def save(folder, name, nodes, inputs, outputs, constants, opset=17, outside=False):
    """inputs, outputs: name -> shape, None an open batch; constants: name -> array."""
    def ports(shapes):
        return [helper.make_tensor_value_info(n, TensorProto.FLOAT,
                                              ['n', *s[1:]] if s[0] is None else s)
                for n, s in shapes.items()]
    graph = helper.make_graph(nodes, name, ports(inputs), ports(outputs),
                              [numpy_helper.from_array(np.asarray(v), k)
                               for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', opset)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    place = os.path.join(folder, name)
    onnx.save(model, place + '.onnx', save_as_external_data=outside, size_threshold=100,
              location=name + '.data')
    feeds = {n: rng.standard_normal([s[0] or 3, *s[1:]]).astype(np.float32)
             for n, s in inputs.items()}
    session = onnxruntime.InferenceSession(place + '.onnx', providers=['CPUExecutionProvider'])
    for kind, values in (('x', feeds.values()), ('y', session.run(None, feeds))):
        for i, value in enumerate(values):
            if value.ndim == 4 and name != 'last':
                value = value.transpose(0, 2, 3, 1)
            np.save(f'{place}.{kind}{i}.npy', np.ascontiguousarray(value))


def layers(folder):
    """Convolutions, pools, norms and products, with an open batch and folded shapes."""
    save(folder, 'layers', [
        node('Conv', ['x', 'w1', 'b1'], ['c1'], name='/a/conv', strides=[2, 1],
             pads=[1, 0, 2, 1], kernel_shape=[3, 3]),
        node('BatchNormalization', ['c1', 'g', 'be', 'mu', 'va'], ['n1'], epsilon=1e-3),
        node('Clip', ['n1', 'low', 'high'], ['r1']),
        node('Conv', ['r1', 'w2'], ['c2'], group=8, auto_pad='SAME_LOWER', strides=[2, 2]),
        node('LeakyRelu', ['c2'], ['s2'], alpha=0.2),
        node('MaxPool', ['s2'], ['p2'], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
        node('GlobalAveragePool', ['s2'], ['e0']), node('Conv', ['e0', 'w3'], ['e1']),
        node('Sigmoid', ['e1'], ['e2']), node('Mul', ['s2', 'e2'], ['m']),
        node('Add', ['m', 's2'], ['a']),
        node('AveragePool', ['a'], ['ap'], kernel_shape=[3, 3], strides=[2, 2],
             pads=[1, 1, 1, 1], count_include_pad=1),
        node('ConvTranspose', ['ap', 'w6', 'b1'], ['ct'], strides=[2, 2], pads=[1, 1, 0, 0],
             output_padding=[1, 0]),
        node('Shape', ['ap'], ['shape']), node('Gather', ['shape', 'zero'], ['n0']),
        node('Unsqueeze', ['n0', 'axis'], ['n1u']),
        node('Concat', ['n1u', 'rest'], ['flat'], axis=0),
        node('Reshape', ['ap', 'flat'], ['f']),
        node('Gemm', ['f', 'w4', 'b4'], ['ge'], transB=1, alpha=0.5),
        node('Mul', ['ge', 'two'], ['g2']), node('MatMul', ['g2', 'w5'], ['mm']),
        node('Add', ['b5', 'mm'], ['mb']), node('Softmax', ['mb'], ['y'], axis=-1)],
        {'x': [None, 3, 11, 9]}, {'y': [None, 5], 'p2': [None, 8, 1, 2], 'ct': [None, 8, 5, 4]},
        dict(w1=weights(8, 3, 3, 3), b1=weights(8), g=weights(8) + 1, be=weights(8),
             mu=weights(8), va=np.abs(weights(8)) + np.float32(.5), low=np.float32(-.3),
             high=np.float32(.9), w2=weights(8, 1, 3, 3), w3=weights(8, 8, 1, 1),
             w6=weights(8, 8, 3, 3), zero=np.int64(0), axis=numbers(0), rest=numbers(-1),
             w4=weights(7, 32), b4=weights(7), two=np.float32(2), w5=weights(7, 5),
             b5=weights(5)))


def arranged(folder):
    """What moves values, and arithmetic with constants; numbers in a file of their own."""
    save(folder, 'arranged', [
        node('Split', ['x', 'halves'], ['l', 'r'], axis=1), node('Relu', ['l'], ['l1']),
        node('Slice', ['r', 'start', 'end', 'rows'], ['r1']),
        node('Pad', ['r1', 'pads'], ['r2'], mode='reflect'),
        node('Concat', ['l1', 'r2'], ['j'], axis=1), node('Mul', ['j', 'scale'], ['j1']),
        node('Sub', ['one', 'j1'], ['j2']), node('Div', ['j2', 'scale'], ['j3']),
        node('Resize', ['j3', '', 'factors'], ['big'], mode='linear'),
        node('Transpose', ['big'], ['turned'], perm=[0, 2, 3, 1]),
        node('Add', ['turned', 'shift'], ['t1']),
        node('Transpose', ['t1'], ['back'], perm=[0, 3, 1, 2]),
        node('ReduceMean', ['back'], ['v'], axes=[2, 3], keepdims=0),
        node('Unsqueeze', ['v', 'places'], ['v1']), node('Squeeze', ['v1', 'places'], ['v2']),
        node('Identity', ['v2'], ['v3']), node('Dropout', ['v3'], ['v4']),
        node('Transpose', ['matrix'], ['m1'], perm=[1, 0]),
        node('MatMul', ['v4', 'm1'], ['y'])],
        {'x': [2, 4, 5, 6]}, {'y': [2, 20], 'j3': [2, 4, 5, 6]},
        dict(halves=numbers(2, 2), start=numbers(1), end=numbers(-1), rows=numbers(2),
             pads=numbers(0, 0, 1, 0, 0, 0, 1, 0), scale=weights(4, 1, 1) + 2,
             one=np.float32(1), factors=np.array([1, 1, 2, 3], np.float32), shift=weights(4),
             places=numbers(2, 3), matrix=weights(20, 4)), outside=True)


def functions(folder):
    """Functions of one number; sums and products of values."""
    names = ['Sigmoid', 'Tanh', 'Softplus', 'Softsign', 'Exp', 'Abs', 'Neg', 'Elu', 'Selu',
             'HardSigmoid', 'HardSwish', 'LeakyRelu', 'Gelu', 'Mish']
    nodes = [node(n, ['x'], [n]) for n in names]
    nodes += [node('Clip', ['x', '', 'high'], ['top']), node('Clip', ['x', 'low'], ['bottom']),
              node('PRelu', ['x', 'slopes'], ['prelu']), node('Pow', ['x', 'two'], ['square']),
              node('LayerNormalization', ['x', 'g', 'b'], ['norm'])]
    every = names + ['top', 'bottom', 'prelu', 'square', 'norm']
    nodes += [node('Sum', every[:6], ['s0']), node('Sum', ['s0', *every[6:12]], ['s1']),
              node('Sum', ['s1', *every[12:]], ['s2']), node('Sub', ['s2', 'x'], ['s3']),
              node('Mul', ['s3', 'x'], ['y'])]
    save(folder, 'functions', nodes, {'x': [None, 9]}, {'y': [None, 9]},
         dict(high=np.float32(.5), low=np.float32(.25), slopes=weights(9), two=np.float32(2),
              g=weights(9), b=weights(9)), opset=20)


def last(folder):
    """Channels come last in input and output, and first between, as converters write."""
    save(folder, 'last', [
        node('Transpose', ['x'], ['t'], perm=[0, 3, 1, 2]),
        node('Conv', ['t', 'w'], ['c'], pads=[1, 1, 1, 1]),
        node('Transpose', ['c'], ['u'], perm=[0, 2, 3, 1]), node('Add', ['u', 'b'], ['a']),
        node('Relu', ['a'], ['y'])],
        {'x': [None, 4, 5, 3]}, {'y': [None, 4, 5, 6]},
        dict(w=weights(6, 3, 3, 3), b=weights(6)))


if __name__ == '__main__':
    for make in layers, arranged, functions, last:
        make(sys.argv[1])
