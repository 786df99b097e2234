"""Loops over time steps of ONNX models become recurrent layers where they compute the same."""
import importlib.util
import os
import shutil
import unittest

import packages

packages.want('onnx', 'onnxruntime')
import program
from from_onnx import MODELS, OnnxTest


@unittest.skipUnless(importlib.util.find_spec('onnx'), 'needs onnx')
class LoopTest(OnnxTest):
    """Models as tf2onnx writes them, changed: what computes the same is a layer still, and what
    computes something else is refused."""

    def load(self, name, loop=0):
        import onnx
        self.name = name
        self.model = onnx.load(f'{MODELS}/{name}.onnx')
        self.loop = self.nodes(self.model.graph, 'Loop')[loop]
        self.body, = [a.g for a in self.loop.attribute if a.name == 'body']

    @staticmethod
    def nodes(graph, op):
        return [n for n in graph.node if n.op_type == op]

    @staticmethod
    def drop(graph, *nodes):
        for n in nodes:
            graph.node.remove(n)

    def add(self, graph, place, op, inputs, output):
        import onnx
        graph.node.insert(place, onnx.helper.make_node(op, inputs, [output]))

    def constant(self, graph, name, values):
        """Replaces one, or adds it."""
        import onnx
        made = onnx.numpy_helper.from_array(values, name)
        for c in graph.initializer:
            if c.name == name:
                c.CopyFrom(made)
                return
        graph.initializer.append(made)

    def value(self, graph, name):
        import onnx
        found, = [c for c in graph.initializer if c.name == name]
        return onnx.numpy_helper.to_array(found).copy()

    def fill(self, graph, name, number):
        import numpy
        self.constant(graph, name, numpy.full_like(self.value(graph, name), number))

    def not_taken(self, said='(Loop)'):
        self.refuse(said, self.model.SerializeToString())

    def taken(self, what):
        """It is imported, and computes what the model as it was recorded does."""
        self.put('m.onnx', self.model.SerializeToString())
        self.run_program('import', 'm.onnx', '-o', what)
        self.compute_recorded(what, f'{MODELS}/{self.name}', 1e-4)


class Loops(LoopTest):
    def test_fewer_steps(self):
        self.load('keras_gru')
        self.fill(self.model.graph, self.loop.input[0], 9)
        self.not_taken('(GRU): a loop over some of 10 steps')
        self.refused(3, 'a loop over some of 10 steps', 'run', 'm.onnx', '--input',
                     f'{MODELS}/keras_gru.x0.npy', '--output', 'no')

    def test_two_less_z_in_place_of_one(self):
        self.load('keras_gru')
        self.fill(self.body, self.nodes(self.body, 'Sub')[0].input[0], 2)
        self.not_taken()

    def test_a_state_from_ones(self):
        import numpy
        self.load('keras_gru')
        begin, = [n for n in self.nodes(self.model.graph, 'Expand')
                  if n.output[0] in self.loop.input]
        begin.input[0] = 'ones'
        self.constant(self.model.graph, 'ones', numpy.ones((), numpy.float32))
        self.not_taken()

    def count_by_loop(self):
        """keras_rnn without a counter of its own: the step is the loop's."""
        self.load('keras_rnn')
        counter, step = self.body.input[2].name, self.body.input[0].name
        more, = [n for n in self.nodes(self.body, 'Add') if counter in n.input]
        cast, = [n for n in self.nodes(self.body, 'Cast') if more.output[0] in n.input]
        less, = [n for n in self.nodes(self.body, 'Less') if cast.output[0] in n.input]
        last, = self.nodes(self.body, 'And')
        last.input[1] = last.input[0]
        self.drop(self.body, more, cast, less)
        del self.body.input[2], self.body.output[1], self.loop.input[2], self.loop.output[0]
        gather, = self.nodes(self.body, 'Gather')
        gather.input[1] = step
        return gather, step

    def test_steps_by_the_number_of_the_loop(self):
        self.count_by_loop()
        self.taken('forward')

    def test_steps_backwards(self):
        import numpy
        gather, step = self.count_by_loop()
        self.constant(self.body, 'nine', numpy.array(9))
        self.add(self.body, 0, 'Sub', ['nine', step], 'back')
        gather.input[1] = 'back'
        self.not_taken()

    def test_the_same_step_each_time(self):
        import numpy
        gather, _ = self.count_by_loop()
        self.constant(self.body, 'three', numpy.array(3))
        gather.input[1] = 'three'
        self.not_taken()

    def test_another_end(self):
        import numpy
        _, step = self.count_by_loop()
        self.constant(self.body, 'two', numpy.array(2))
        self.add(self.body, 0, 'Mul', ['two', step], 'twice')
        cast, = self.nodes(self.body, 'Cast')
        cast.input[0] = 'twice'
        self.not_taken()

    def test_gates_of_other_biases(self):
        self.load('keras_gru')
        product, = [n for n in self.nodes(self.body, 'MatMul')
                    if n.input[0] == self.body.input[3].name]
        bias = self.nodes(self.body, 'Squeeze')[0].output[0]  # of x, not of the state
        self.nodes(self.body, 'Slice')[-1].input[0] = 'other'
        place = [n.output[0] for n in self.body.node].index(bias) + 1
        self.add(self.body, place, 'Add', [product.output[0], bias], 'other')
        self.not_taken()

    def test_a_bias_of_samples(self):
        self.load('keras_rnn')
        name = self.loop.input[5]
        bias = self.value(self.model.graph, name)
        self.constant(self.model.graph, name, bias.reshape(1, -1))
        self.taken('row')
        self.constant(self.model.graph, name, bias.reshape(-1, 1))
        self.not_taken()

    def join_products(self, **attributes):
        """Products and what is added to them as Gemm, which a fixed batch is written with."""
        import onnx
        for product in self.nodes(self.body, 'MatMul'):
            name, = product.output
            adds, = [n for n in self.body.node if name in n.input]
            if adds.op_type != 'Add':
                continue
            other, = [i for i in adds.input if i != name]
            place = list(self.body.node).index(adds)
            self.body.node.insert(place, onnx.helper.make_node(
                'Gemm', [*product.input, other], adds.output, **attributes))
            self.drop(self.body, product, adds)
        self.assertTrue(self.nodes(self.body, 'Gemm'))

    def test_products_that_add_their_biases(self):
        for name in 'keras_gru', 'keras_rnn':
            self.load(name)
            self.join_products(transA=0, alpha=1.0)
            self.taken(name)
            for attribute in {'alpha': 2.0}, {'beta': 0.5}, {'transB': 1}:
                self.load(name)
                self.join_products(**attribute)
                self.not_taken()

    def test_a_gate_that_ends_early(self):
        self.load('keras_gru')
        for end, is_taken in (48, True), (47, False):
            ends = self.nodes(self.body, 'Slice')[0].input[2]
            values = self.value(self.body, ends)
            values[1] = end
            self.constant(self.body, ends, values)
            if is_taken:
                self.taken('whole')
            else:
                self.not_taken()

    def test_functions_of_others(self):
        self.load('keras_gru')
        self.loop.domain = self.nodes(self.body, 'Tanh')[0].domain = 'ai.onnx'
        self.taken('own')
        self.nodes(self.body, 'Tanh')[0].domain = 'com.acme'
        self.not_taken()

    def test_an_output_without_a_name(self):
        self.load('keras_rnn')
        graph = self.model.graph
        self.drop(graph, graph.node[-3], graph.node[-2])  # the last of the states of all steps
        graph.node[-1].input[0] = self.loop.output[1]
        self.loop.output[5] = ''
        self.taken('last_state')


class Masks(LoopTest):
    def maker(self, graph, name):
        found, = [n for n in graph.node if name in n.output]
        return found

    def choices(self):
        """The sums of what counts and of what is kept, by the state that they are of: the one
        before the output's is h."""
        made = {}
        for i in range(3, 6):
            name = self.body.output[i - 1].name
            while self.maker(self.body, name).op_type == 'Identity':
                name = self.maker(self.body, name).input[0]
            made['yhc'[i - 3]] = self.maker(self.body, name)
        return made

    def parts(self, choice):
        """Its two products: of what counts, and of what is kept."""
        products = [self.maker(self.body, name) for name in choice.input]
        kept = [p for p in products if any(
            self.maker(self.body, self.maker(self.body, n).input[0]).op_type == 'Not'
            for n in p.input if n not in [i.name for i in self.body.input] and
            self.maker(self.body, n).op_type == 'Cast')]
        return [p for p in products if p not in kept] + kept

    def test_choices_by_where(self):
        self.load('masked_lstm')
        for choice in self.choices().values():
            now, old = self.parts(choice)
            of = [[n for n in p.input if n in states or
                   self.maker(self.body, n).op_type != 'Cast'][0] for p, states in (
                       (now, []), (old, [i.name for i in self.body.input]))]
            cast, = [self.maker(self.body, n) for n in now.input if n != of[0]]
            choice.op_type = 'Where'
            choice.input[:] = [cast.input[0], *of]
        self.taken('where')

    def test_another_state_that_stays(self):
        states = {'h': 4, 'c': 5}
        for which, other in ('h', 5), ('c', 4), ('c', 3), ('y', 5):
            self.load('masked_lstm')
            kept = self.parts(self.choices()[which])[1]
            own = self.body.input[states.get(which, 3)].name
            kept.input[list(kept.input).index(own)] = self.body.input[other].name
            self.not_taken()

    def test_gates_in_another_order(self):
        self.load('masked_lstm')
        split, = self.nodes(self.body, 'Split')
        split.output[:] = [split.output[i] for i in (1, 0, 2, 3)]
        self.not_taken()

    def test_another_function(self):
        self.load('masked_lstm')
        self.nodes(self.body, 'Tanh')[-1].op_type = 'Sigmoid'
        self.not_taken()

    def test_states_from_ones(self):
        import numpy
        import onnx
        one = onnx.numpy_helper.from_array(numpy.ones(1, numpy.float32))
        for name, loop in ('masked_lstm', 0), ('masked_rnn', 0), ('masked_rnn', 1):
            self.load(name, loop)
            begin, = [n for n in self.nodes(self.model.graph, 'ConstantOfShape')
                      if n.output[0] in self.loop.input]
            begin.attribute[0].t.CopyFrom(one)
            self.not_taken()

    def test_masks_of_something_else(self):
        import numpy
        self.load('masked_lstm')
        equal, = self.nodes(self.model.graph, 'Equal')
        self.constant(self.model.graph, 'one', numpy.array(1, numpy.int32))
        equal.input[1] = 'one'
        self.not_taken()
        self.load('masked_lstm')
        equal, = self.nodes(self.model.graph, 'Equal')
        inverse, = [n for n in self.nodes(self.model.graph, 'Not')
                    if n.input[0] == equal.output[0]]
        inverse.op_type = 'Identity'
        self.not_taken()

    def test_a_mask_of_samples_along_time(self):
        """Which has the right shape where there are as many samples as time steps."""
        self.load('masked_lstm')
        turn, = [n for n in self.nodes(self.model.graph, 'Transpose')
                 if self.maker(self.model.graph, n.input[0]).op_type == 'Unsqueeze']
        turn.op_type = 'Identity'
        del turn.attribute[:]
        self.not_taken()

    def test_steps_in_another_order_than_their_mask(self):
        for what in 'x', 'mask':
            self.load('masked_rnn', 1)
            turns = {n.output[0]: n for n in self.nodes(self.model.graph, 'ReverseSequence')}
            takes = [n for n in self.nodes(self.body, 'Gather') if n.input[0] in turns]
            self.assertEqual(len(takes), 2)
            for take in takes:
                is_mask = [n for n in self.nodes(self.body, 'Not')
                           if n.input[0] == take.output[0]]
                if bool(is_mask) == (what == 'mask'):
                    take.input[0] = turns[take.input[0]].input[0]
            if what == 'x':
                self.not_taken()
                continue
            self.put('m.onnx', self.model.SerializeToString())
            self.run_program('run', 'm.onnx', '--input', f'{MODELS}/masked_rnn.x0.npy',
                             '--output', 'values')
            for given in '0', '1':
                shutil.copy(f'{MODELS}/masked_rnn.x{given}.npy',
                            self.path(f'turned.x{given}.npy'))
            file, = os.listdir(self.path('values'))
            os.rename(self.path('values/' + file), self.path('turned.y0.npy'))
            self.run_program('import', 'm.onnx', '-o', 'x_is_turned')
            self.compute_recorded('x_is_turned', self.path('turned'), 1e-5)

    def test_some_steps_turned(self):
        import numpy
        self.load('masked_rnn', 1)
        for turn in self.nodes(self.model.graph, 'ReverseSequence')[:2]:
            expand = self.maker(self.model.graph, turn.input[1])
            expand.input[0] = 'six'
        self.constant(self.model.graph, 'six', numpy.array(6))
        self.not_taken()

    def test_fewer_steps(self):
        self.load('masked_lstm')
        self.fill(self.model.graph, self.loop.input[0], 6)
        self.not_taken()
        self.refused(3, 'a loop over some of 7 steps', 'run', 'm.onnx', '--input',
                     f'{MODELS}/masked_lstm.x0.npy', '--output', 'no')

    def test_a_name_that_is_taken(self):
        import numpy
        self.load('masked_lstm')
        self.constant(self.model.graph, 'tokens_length', numpy.array(1))
        self.not_taken()

    def test_products_that_add_gates(self):
        """As a fixed batch is written: the candidate of a GRU that resets before its product,
        in one Gemm with what comes of x; times 2 it is none."""
        import onnx
        for more, is_taken in ({}, True), ({'beta': 2.0}, False):
            self.load('masked_gru')
            product, = [n for n in self.nodes(self.body, 'MatMul')
                        if n.input[0] in [o for m in self.nodes(self.body, 'Mul')
                                          for o in m.output]]
            adds, = [n for n in self.nodes(self.body, 'Add') if product.output[0] in n.input]
            gate, = [i for i in adds.input if i != product.output[0]]
            self.body.node.insert(list(self.body.node).index(adds), onnx.helper.make_node(
                'Gemm', [*product.input, gate], adds.output, **more))
            self.drop(self.body, product, adds)
            if is_taken:
                self.taken('gemm')
            else:
                self.not_taken()

    def test_the_state_before_its_product(self):
        """Of a GRU that resets so; a part of its matrix that is not the candidate's."""
        self.load('masked_gru')
        slices = [n for n in self.nodes(self.body, 'Slice')
                  if n.input[0] in [i.name for i in self.body.input]]
        candidate, = [n for n in slices if self.value(self.body, n.input[1])[1] == 8]
        self.constant(self.body, candidate.input[1], self.value(
            self.body, candidate.input[1]) - [0, 4])
        self.constant(self.body, candidate.input[2], self.value(
            self.body, candidate.input[1]) + [2**31 - 1, 4])
        self.not_taken()


if __name__ == '__main__':
    program.main()
