"""lockstep run computes ONNX files on arrays, and tells whether what comes out is right."""
import concurrent.futures
import importlib.util
import os
import struct
import subprocess
import sys
import unittest
import warnings

import packages

packages.want('onnx', 'numpy')
import from_onnx as make
import npy
import program

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'peers'))
import onnx_cases

# Of ONNX's own cases: each way of computing a few times.
CASES = (
    'test_abs', 'test_add_bcast', 'test_argmax_keepdims_example_select_last_index',
    'test_attention_4d', 'test_attention_4d_gqa_expanded', 'test_averagepool_3d_default',
    'test_basic_conv_without_padding',
    'test_batchnorm_example', 'test_bitshift_right_int8_shift_ge_width',
    'test_bitwise_xor_i16_4d', 'test_cumprod_2d_axis_0', 'test_dequantizelinear_axis',
    'test_dynamicquantizelinear', 'test_lppool_2d_dilations',
    'test_qlinearmatmul_3D_uint8_float32', 'test_quantizelinear_axis',
    'test_reduce_max_empty_set', 'test_split_zero_size_splits_opset18',
    'test_top_k_smallest', 'test_cast_FLOAT_to_FLOAT16', 'test_clip_example',
    'test_concat_3d_axis_1', 'test_conv_with_strides_and_asymmetric_padding',
    'test_convtranspose_1d', 'test_cumsum_2d_axis_0', 'test_depthtospace_example',
    'test_einsum_batch_matmul', 'test_expand_dim_changed', 'test_gather_elements_1',
    'test_gathernd_example_float32', 'test_gelu_default_1_expanded',
    'test_gemm_all_attributes', 'test_group_normalization_example', 'test_gru_defaults',
    'test_hardmax_axis_1', 'test_instancenorm_example', 'test_isinf',
    'test_layer_normalization_4d_axis2', 'test_lrn', 'test_lstm_with_peepholes',
    'test_matmul_4d', 'test_maxpool_2d_ceil',
    'test_maxpool_with_argmax_2d_precomputed_strides', 'test_mod_mixed_sign_float32',
    'test_nllloss_NCd1d2_with_weight', 'test_pow_bcast_array', 'test_prelu_broadcast',
    'test_range_float_type_positive_delta',
    'test_reduce_log_sum_exp_default_axes_keepdim_random', 'test_reflect_pad',
    'test_resize_upsample_scales_cubic', 'test_reversesequence_batch', 'test_scatternd_add',
    'test_sce_mean_weight_ii', 'test_selu', 'test_slice_neg_steps', 'test_softmax_axis_0',
    'test_split_equal_parts_1d_opset18', 'test_tile', 'test_transpose_all_permutations_2',
    'test_tril_neg', 'test_where_example', 'test_Conv3d_groups', 'test_Softmax',
    'test_operator_mm', 'test_operator_permute2')


def tensor(dims, values):
    """A tensor of floats in a file of its own."""
    return make.message(*((1, d) for d in dims), (2, 1),
                        (9, struct.pack(f'<{len(values)}f', *values)))


@unittest.skipUnless(os.environ.get('LOCKSTEP_ONNX') == 'yes', 'built without protobuf-c')
class RunTest(program.ProgramTest):
    def case(self, nodes, inputs, outputs, *more, ports=None):
        """A model in m.onnx and its arrays in `data`."""
        os.makedirs(self.path('data'), exist_ok=True)
        ports = ports or [make.port('x', *inputs[0][0])]
        self.put('m.onnx', make.model(nodes, *more, inputs=ports))
        for kind, arrays in (('input', inputs), ('output', outputs)):
            for i, (dims, values) in enumerate(arrays):
                self.put(f'data/{kind}_{i}.pb', tensor(dims, values))

    def compare(self, *more, status=0):
        return self.run_program('run', 'm.onnx', '--compare', 'data', *more, status=status)


class Compares(RunTest):
    def test_three_answers(self):
        node = make.node('Relu', ['x'], ['y'])
        self.case([node], [([2, 3], [-1, 2, -3, 4, -5, 6])],
                  [([2, 3], [0, 2, 0, 4, 0, 6])])
        self.assertIn('near', self.compare().stdout)
        self.put('data/output_0.pb', tensor([2, 3], [0, 2, 0, 4, 0.25, 6]))
        said = self.compare(status=1).stdout
        self.assertIn("'y' differs in 1 of 6 elements, most by 0.25 at [1, 1]", said)
        self.assertIn('0, expected 0.25', said)
        self.compare('--atol', '0.3')
        self.put('data/output_0.pb', tensor([3, 2], [0, 2, 0, 4, 0, 6]))
        self.assertIn('shape [2, 3], expected [3, 2]', self.compare(status=1).stdout)
        self.case([make.node('Magic', ['x'], ['y'])], [([1], [1])], [([1], [1])])
        self.refused(3, "node 'node_Magic' (Magic)", 'run', 'm.onnx', '--compare', 'data')

    def test_numbers_that_are_none(self):
        inf, nan = float('inf'), float('nan')
        self.case([make.node('Sqrt', ['x'], ['y'])], [([4], [4, -1, inf, 0])],
                  [([4], [2, nan, inf, 0])])
        self.compare()
        self.put('data/output_0.pb', tensor([4], [2, nan, 5, 0]))
        self.assertIn('most by inf at [2]', self.compare(status=1).stdout)
        self.put('data/output_0.pb', tensor([4], [2, 0, inf, inf]))
        self.assertIn('differs in 2 of 4', self.compare(status=1).stdout)

    def test_no_axis_is_a_batch(self):
        self.case([make.node('ReduceSum', ['x', 'a'], ['y'], ('keepdims', 0))],
                  [([2, 3], [1, 2, 3, 4, 5, 6])], [([3], [5, 7, 9])], make.constant('a', [0]))
        self.compare()
        self.case([make.node('Exp', ['x'], ['y'])], [([], [0])], [([], [1])])
        self.compare()

    def test_weights_that_are_one_number(self):
        """More of them than any constant that is written out may have."""
        value = make.message((5, make.message((1, 'value'), (20, 4), (5, tensor([1], [0.5])))))
        self.case([make.node('ConstantOfShape', ['s'], ['w']) + value,
                   make.node('Gemm', ['x', 'w'], ['y'])],
                  [([1, 4096], [0.25, 2] + [0] * 4094)], [([1, 2048], [1.125] * 2048)],
                  make.constant('s', [4096, 2048]))
        self.compare()

    def test_one_matrix_for_many(self):
        """Repeated for each it would be larger than any array may be."""
        value = make.message((5, make.message((1, 'value'), (20, 4), (5, tensor([1], [0.5])))))
        rows = [v for i in range(9) for v in [i, 2] + [0] * 1398]
        self.case([make.node('ConstantOfShape', ['s'], ['w']) + value,
                   make.node('MatMul', ['x', 'w'], ['y'])], [([3, 3, 1, 1400], rows)],
                  [([3, 3, 1, 1400], [i / 2 + 1 for i in range(9) for _ in range(1400)])],
                  make.constant('s', [1, 1400, 1400]))
        self.compare()

    def test_resizing_as_the_writer_does(self):
        """By scales that make no whole length PyTorch computes otherwise than ONNX has it."""
        near = ('coordinate_transformation_mode', 'asymmetric'), ('nearest_mode', 'floor')
        corners = ('coordinate_transformation_mode', 'align_corners'), ('mode', 'linear')
        for writer, places, scale, length, wanted in (
                ('pytorch', corners, 1.5, 9, [i * 8 / 12 for i in range(13)]),
                ('another', corners, 1.5, 9, [i * 8 / 12.5 for i in range(13)]),
                ('pytorch', near, 0.3, 20, [0, 3, 6, 10, 13, 16]),
                ('another', near, 0.3, 20, [0, 3, 6, 9, 13, 16])):
            said = [make.message((1, name), (20, 3), (4, text)) for name, text in places]
            resize = (make.node('Resize', ['x', '', 's'], ['y']) +
                      b''.join(make.message((5, s)) for s in said))
            scales = (5, make.message((1, 2), (2, 1), (8, 's'),
                                      (9, struct.pack('<2f', 1, scale))))
            self.case([resize], [([1, length], list(range(length)))],
                      [([1, len(wanted)], wanted)], scales)
            with open(self.path('m.onnx'), 'ab') as file:
                file.write(make.message((2, writer)))
            self.compare()

    def convolve(self, shape, filters, more, wanted, *constants, batch=0):
        """A convolution 3 x 3 of a batch, 0: an open one, and what nodes behind it make of its
        output c; wanted(c): what that should be."""
        import numpy
        os.makedirs(self.path('data'), exist_ok=True)
        draw = numpy.random.default_rng(3)
        x = draw.normal(size=shape).astype('float32')
        w = draw.normal(size=(filters, shape[1], 3, 3)).astype('float32')
        c = sum(numpy.einsum('fc,nchw->nfhw', w[:, :, i, j],
                             x[:, :, i:shape[2] - 2 + i, j:shape[3] - 2 + j])
                for i in range(3) for j in range(3))
        kernel = (5, make.message(*((1, d) for d in w.shape), (2, 1), (8, 'w'),
                                  (9, w.tobytes())))
        self.put('m.onnx', make.model([make.node('Conv', ['x', 'w'], ['c'])] + more, kernel,
                                      *constants,
                                      inputs=[make.port('x', batch, *shape[1:])]))
        for name, array in ('input', x), ('output', wanted(c)):
            self.put(f'data/{name}_0.pb', make.message(
                *((1, d) for d in array.shape), (2, 1),
                (9, array.astype('<f4').tobytes())))

    @unittest.skipUnless(importlib.util.find_spec('numpy'), 'needs the package numpy')
    def test_convolutions_of_a_batch(self):
        """All windows of all samples in a table are more than any array may have."""
        import numpy
        self.convolve([8, 16, 130, 130], 4, [make.node('Relu', ['c'], ['y'])],
                      lambda c: numpy.maximum(c, 0))
        self.compare()
        self.compare('--batch-size', '3')
        self.convolve([8, 16, 130, 130], 4, [make.node('Reshape', ['c', 'l'], ['y'])],
                      lambda c: c.reshape(8, 1024, 64), make.constant('l', [8, 1024, -1]),
                      batch=8)
        self.compare('--batch-size', '3')
        self.refused(3, "input 'x' takes an array of another shape", 'run', 'm.onnx',
                     '--input', 'x=data/output_0.pb', '--output', 'no')
        self.convolve([3, 2, 9, 9], 4, [make.node('ReduceSum', ['c', 'a'], ['s']),
                                        make.node('Sub', ['c', 's'], ['y'])],
                      lambda c: c - c.sum(0, keepdims=True), make.constant('a', [0]))
        self.compare()
        self.convolve([2, 512, 66, 66], 4, [make.node('ReduceSum', ['c', 'a'], ['s']),
                                            make.node('Sub', ['c', 's'], ['y'])],
                      lambda c: c - c.sum(0, keepdims=True), make.constant('a', [0]))
        self.refused(3, 'of fewer samples at a time', 'run', 'm.onnx', '--compare', 'data')

    def test_files_that_lie(self):
        node = make.node('Relu', ['x'], ['y'])
        self.case([node], [([2], [1, 2])], [([2], [1, 2])])
        for name, content, said in (
                ('input_0.pb', b'\xff\xff', 'no tensor'),
                ('input_0.pb', tensor([3], [1, 2]), 'its shape needs'),
                ('input_0.pb', tensor([1 << 40, 1 << 40], []), 'elements'),
                ('input_0.pb', tensor([3], [1, 2, 3]), 'another shape'),
                ('output_1.pb', tensor([2], [1, 2]), 'arrays to compare with'),
                ('input_1.pb', tensor([2], [1, 2]), 'more arrays')):
            path = self.path(f'data/{name}')
            kept = None
            if os.path.exists(path):
                with open(path, 'rb') as file:
                    kept = file.read()
            self.put(f'data/{name}', content)
            self.refused(3, said, 'run', 'm.onnx', '--compare', 'data')
            if kept is None:
                os.remove(path)
            else:
                self.put(f'data/{name}', kept)
        os.remove(self.path('data/input_0.pb'))
        self.refused(3, "input 'x' is missing", 'run', 'm.onnx', '--compare', 'data')

    def test_models_that_lie(self):
        x = [([2, 3], [1, 2, 3, 4, 5, 6])]
        for nodes, said, more in (
                ([make.node('Reshape', ['x', 's'], ['y'])], 'cannot have', [-5, 2]),
                ([make.node('Reshape', ['x', 's'], ['y'])], 'others', [4, 2]),
                ([make.node('Expand', ['x', 's'], ['y'])], '2^24', [1 << 40, 2, 3]),
                ([make.node('Tile', ['x', 's'], ['y'])], '2^24', [1 << 24, 1 << 24]),
                ([make.node('Gather', ['x', 's'], ['y'])], 'index 7', [7]),
                ([make.node('Transpose', ['x'], ['y'], ('perm', [0, 0]))], 'no order', [0]),
                ([make.node('Slice', ['x', 's', 's', 's', 's'], ['y'])], 'steps of 0', [0]),
                ([make.node('Pad', ['x', 's'], ['y'])], 'padding', [1 << 60, 0, 0, 0]),
                ([make.node('MatMul', ['x', 'x'], ['y'])], 'do not go together', [0]),
                ([make.node('Add', ['y', 'x'], ['y'])], 'nothing before', [0])):
            self.case(nodes, x, x, make.constant('s', more))
            self.refused(3, said, 'run', 'm.onnx', '--compare', 'data')


class Writes(RunTest):
    def test_outputs_of_tensors(self):
        self.case([make.node('Transpose', ['x'], ['y'], ('perm', [1, 0]))],
                  [([2, 3], [1, 2, 3, 4, 5, 6])], [])
        self.run_program('run', 'm.onnx', '--input', 'x=data/input_0.pb', '--output', 'out')
        with open(self.path('out/y.npy'), 'rb') as file:
            content = file.read()
        self.assertIn(b"'shape': (3, 2)", content)
        self.assertEqual(struct.unpack('<6f', content[-24:]), (1, 4, 2, 5, 3, 6))
        self.refused(3, 'there already', 'run', 'm.onnx', '--input', 'data/input_0.pb',
                     '--output', 'out')
        self.run_program('run', 'm.onnx', '--input', 'data/input_0.pb', '--output', 'out',
                         '--force')
        self.refused(2, 'no input', 'run', 'm.onnx', '--input', 'z=data/input_0.pb', '--output',
                     'out')

    def test_needs_onnx(self):
        self.refused(2, 'FILE.onnx', 'run', 'mlp', '--compare', 'data')


class Recurrent(RunTest):
    def test_models_of_other_programs(self):
        """Loops over time steps, and layers that name the functions that are standard."""
        for name in 'keras_lstm', 'keras_gru', 'keras_rnn':
            place = f'{make.MODELS}/{name}'
            self.run_program('run', place + '.onnx', '--input', place + '.x0.npy', '--output',
                             name)
            file, = os.listdir(self.path(name))
            (shape, found), (expected, wanted) = (
                npy.read(self.path(f'{name}/{file}')), npy.read(place + '.y0.npy'))
            self.assertEqual(tuple(shape), tuple(expected))
            for a, b in zip(found, wanted):
                self.assertAlmostEqual(a, b, delta=1e-5)

    def test_masks_of_time_steps(self):
        """Those of what is padded, and any others."""
        for name in 'lstm', 'gru', 'rnn':
            place = f'{make.MODELS}/masked_{name}'
            for given, expected in ('x0', 'y0'), ('holes', 'values'):
                self.run_program('run', place + '.onnx', '--input', f'{place}.{given}.npy',
                                 '--output', name + given)
                file, = os.listdir(self.path(name + given))
                found = npy.read(self.path(f'{name}{given}/{file}'))[1]
                wanted = npy.read(f'{place}.{expected}.npy')[1]
                self.assertEqual(len(found), len(wanted))
                for a, b in zip(found, wanted):
                    self.assertAlmostEqual(a, b, delta=1e-5)

    def test_functions_by_name(self):
        def layer(*names):
            said = make.message((1, 'activations'), (20, 8), *((9, n) for n in names))
            return make.node('RNN', ['x', 'w', 'r'], ['y']) + make.message((5, said))

        inputs = [([2, 1, 1], [1, -0.5]), ([1, 1, 1], [2]), ([1, 1, 1], [3])]
        ports = [make.port(n, *dims) for n, (dims, _) in zip('xwr', inputs)]
        self.case([layer('Relu')], inputs, [([2, 1, 1, 1], [2, 5])], ports=ports)
        self.compare()
        for names, said in ((['Elu'], "its function 'Elu'"),
                            (['Tanh', 'Tanh'], 'other functions')):
            self.case([layer(*names)], inputs, [], ports=ports)
            self.refused(3, said, 'run', 'm.onnx', '--compare', 'data')


class Suite(RunTest):
    @unittest.skipUnless(importlib.util.find_spec('onnx'), 'needs the package onnx')
    def test_cases_of_onnx(self):
        warnings.simplefilter('ignore')
        names = set(CASES)
        cases = [c for c in onnx_cases.list_cases(self.folder, names) if c[1] in names]
        self.assertGreater(len(cases), len(CASES) // 2)
        os.environ.update(self.environment())
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = list(pool.map(lambda c: onnx_cases.run_case(program.PROGRAM, c), cases))
        self.assertEqual([r for r in results if r[2] != 'passed'], [])


if __name__ == '__main__':
    program.main()
