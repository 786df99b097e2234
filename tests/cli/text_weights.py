"""Weights of PyTorch's and Keras's recurrent layers, embeddings and attention: models with them
compute what those programs computed (text_models/), and write the same bits back."""
import json
import os
import re
import unittest

import npy
from program import ProgramTest
from weights import read_safetensors, write_safetensors

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'text_models')

STACK = """name: stack
input: {tokens: {shape: [7], type: int32}}
layers:
  - {name: table, embedding: {vocabulary: 11, units: 6}}
  - {name: conv, conv1d: {filters: 5, kernel: 3, padding: same}}
  - {name: long, lstm: {units: 4, return_sequences: true}}
  - {name: gated, gru: {units: 5, return_sequences: true}}
  - {name: norm, layer_norm: {epsilon: 1e-5}}
  - {name: plain, rnn: {units: 3}}
  - {name: out, dense: {units: 2}}
output: out
"""
CELLS = """name: cells
input: {tokens: {shape: [7], type: int32}}
layers:
  - {name: table, embedding: {vocabulary: 11, units: 6}}
  - {name: long, lstm: {units: 4, return_sequences: true}}
  - {name: gated, gru: {units: 3}}
output: gated
"""
BOTH_WAYS = ['text-bilstm', '--set', 'vocabulary=11', '--set', 'width=6', '--set', 'units=5',
             '--set', 'classes=3']
DIRECTIONS = """name: directions
input: {tokens: {shape: [64], type: int32, length: true}}
layers:
  - {name: embedding, embedding: {vocabulary: 11, units: 6}}
  - {name: lstm, lstm: {units: 5, bidirectional: concat}}
  - {name: dense_1, dense: {units: 3}}
  - softmax
"""
# As Keras's model masked, which make_keras.py made.
MASKED = """name: masked
input: {tokens: {shape: [7], type: int32, length: true}}
layers:
  - {name: words, embedding: {vocabulary: 11, units: 6}}
  - {name: x, lstm: {units: 4, return_sequences: true, bidirectional: true}}
  - {name: a, gru: {units: 3, bidirectional: sum}}
  - {name: b, from: x, global_average_pool1d: }
  - {from: [a, b], concat: }
  - dense: {units: 4}
"""
ENCODER = ['transformer-encoder', '--set', 'vocabulary=11', '--set', 'width=8', '--set',
           'heads=2', '--set', 'blocks=2', '--set', 'wide=12', '--set', 'classes=3']


class TextWeightsTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.put('stack.yaml', STACK)
        self.put('cells.yaml', CELLS)
        self.put('directions.yaml', DIRECTIONS)
        self.put('masked.yaml', MASKED)

    def values(self, model, weights, name, has_length, to='values'):
        """What the model computes, and what the run said."""
        tokens = f'tokens={MODELS}/{name}.x.npy'
        lengths = ['--input', f'tokens_length={MODELS}/{name}.n.npy'] if has_length else []
        done = self.run_program('run', *model, '--weights', weights, '--input', tokens,
                                *lengths, '-o', to, '--force')
        file = os.path.join(self.path(to), os.listdir(self.path(to))[0])
        return npy.read(file)[1], done.stderr

    def compare(self, model, name, names, has_length=False):
        found, said = self.values(model, f'{MODELS}/{name}.safetensors', name, has_length)
        self.assertIn(names, said)
        wanted = npy.read(f'{MODELS}/{name}.y.npy')[1]
        self.assertEqual(len(found), len(wanted))
        self.assertGreater(max(wanted) - min(wanted), 1e-2)
        self.assertLess(max(abs(a - b) for a, b in zip(found, wanted)), 1e-5)


class Torch(TextWeightsTest):
    def test_every_kind_of_layer(self):
        self.compare(['stack.yaml'], 'stack', 'by the names of pytorch')

    def test_modules_of_one_step(self):
        self.compare(['cells.yaml'], 'cells', 'by the names of pytorch')

    def test_no_gru_that_resets_before(self):
        """PyTorch has none: its two biases are not the parts of our one."""
        for name, units in ('cells', '3'), ('stack', '5'):
            text = {'cells': CELLS, 'stack': STACK}[name]
            self.put('before.yaml', text.replace(f'units: {units}',
                                                 f'units: {units}, reset_after: false'))
            for by in '', ',by=name', ',by=order':
                with self.subTest(name=name, by=by):
                    self.refused(3, "PyTorch's gru resets after the product", 'run',
                                 'before.yaml', '--weights',
                                 f'{MODELS}/{name}.safetensors{by}', '--input',
                                 f'tokens={MODELS}/{name}.x.npy', '-o', 'out')
                    self.assertFalse(os.path.exists(self.path('out')))

    def test_both_directions(self):
        self.compare(BOTH_WAYS, 'both-ways', 'by the names of torch', True)

    def test_both_directions_of_one_entry(self):
        self.compare(['directions.yaml'], 'both-ways', 'by the names of pytorch', True)

    def test_encoder(self):
        self.compare(ENCODER, 'encoder', 'by the names of torch', True)

    def test_in_order(self):
        """Names that tell nothing: the second bias is added all the same."""
        with open(f'{MODELS}/both-ways.safetensors', 'rb') as file:
            content = file.read()
        for at, by in (b'"embedding.', b'"abcdefghi.'), (b'"lstm.', b'"unit.'), \
                (b'"dense_1.', b'"scoring.'):
            content = content.replace(at, by)
        with open(self.path('other.safetensors'), 'wb') as file:
            file.write(content)
        found, said = self.values(BOTH_WAYS, 'other.safetensors', 'both-ways', True)
        self.assertIn('in order, by shape', said)
        wanted = npy.read(f'{MODELS}/both-ways.y.npy')[1]
        self.assertLess(max(abs(a - b) for a, b in zip(found, wanted)), 1e-5)


class Imports(TextWeightsTest):
    """Models of Keras, whose text is made as well."""

    def compare(self, name):
        self.run_program('import', f'{MODELS}/{name}.safetensors', '-o', name)
        with open(self.path(f'{name}/model.yaml')) as file:
            text = file.read()
        tokens = re.search(r'^  (\w+): \{shape: \[7\], type: int32(, length: true)?\}', text,
                           re.M)
        self.assertTrue(tokens, text)
        lengths = ['--input', f'{tokens[1]}_length={MODELS}/{name}.n.npy'] if tokens[2] else []
        self.run_program('run', name, '--input', f'{tokens[1]}={MODELS}/{name}.x.npy', *lengths,
                         '-o', 'values', '--force')
        file, = os.listdir(self.path('values'))
        found = npy.read(os.path.join(self.path('values'), file))[1]
        wanted = npy.read(f'{MODELS}/{name}.y.npy')[1]
        self.assertEqual(len(found), len(wanted))
        self.assertGreater(max(wanted) - min(wanted), 1e-2)
        self.assertLess(max(abs(a - b) / max(1, abs(b)) for a, b in zip(found, wanted)), 1e-5)

    def test_cells(self):
        self.compare('recurrent')

    def test_masks_and_directions(self):
        self.compare('masked')

    def test_both_directions_of_one_entry(self):
        """The same arrays into a text with `bidirectional`: the counts of a Keras 3 file."""
        tokens = [f'tokens={MODELS}/masked.x.npy', '--input',
                  f'tokens_length={MODELS}/masked.n.npy']
        done = self.run_program('run', 'masked.yaml', '--weights',
                                f'{MODELS}/masked.safetensors', '--input', *tokens, '-o',
                                'values')
        self.assertIn('by the names of keras-3', done.stderr)
        file, = os.listdir(self.path('values'))
        found = npy.read(os.path.join(self.path('values'), file))[1]
        wanted = npy.read(f'{MODELS}/masked.y.npy')[1]
        self.assertEqual(len(found), len(wanted))
        self.assertLess(max(abs(a - b) / max(1, abs(b)) for a, b in zip(found, wanted)), 1e-5)

    def test_both_directions_make_the_imported_graph(self):
        """What an import writes node by node is the graph of one entry: a run of the one goes
        on with the text of the other."""
        cell = {'class_name': 'GRU', 'config': {'units': 3, 'return_sequences': True}}
        listed = [{'class_name': 'Embedding', 'config': {
                      'name': 'e', 'input_dim': 9, 'output_dim': 4, 'mask_zero': True,
                      'batch_input_shape': [None, 7]}},
                  {'class_name': 'Bidirectional', 'config': {
                      'name': 'both', 'layer': cell, 'merge_mode': 'sum'}},
                  {'class_name': 'LSTM', 'config': {'name': 'l', 'units': 2}}]
        self.put('m.json', json.dumps({'class_name': 'Sequential', 'keras_version': '2.11.0',
                                       'config': {'name': 's', 'layers': listed}}))
        self.run_program('import', 'm.json', '-o', 'made')
        with open(self.path('made/model.yaml')) as file:
            text = file.read()
        lines = [line for line in text.splitlines() if re.search(r'name: both(_|,)', line)]
        self.assertEqual(len(lines), 3, text)
        one = re.sub('both_forward', 'both', lines[0])
        one = re.sub(r'gru: \{', 'gru: {bidirectional: sum, ', one)
        text = text.replace('\n'.join(lines), one)
        self.assertEqual(text.count('both'), 1, text)
        self.put('one.yaml', text)
        shown = [re.sub(r'^model .*', '', self.run_program('summary', model).stdout)
                 for model in ('made/model.yaml', 'one.yaml')]
        self.assertIn('both_backward', shown[0])
        self.assertEqual(*shown)

    def test_cells_as_keras_2_names_them(self):
        arrays, metadata = read_safetensors(f'{MODELS}/recurrent.safetensors')
        for number, word in enumerate(('kernel', 'recurrent_kernel', 'bias')):
            arrays[f'lstm/lstm_cell_3/{word}:0'] = arrays.pop(f'layers/lstm/cell/vars/{number}')
        write_safetensors(self.path('m.safetensors'), arrays, metadata)
        self.run_program('import', f'{MODELS}/recurrent.safetensors', '-o', 'new')
        self.run_program('import', 'm.safetensors', '-o', 'old')
        with open(self.path('new/weights.safetensors'), 'rb') as new, \
                open(self.path('old/weights.safetensors'), 'rb') as old:
            self.assertEqual(new.read(), old.read())

    def test_dropout(self):
        cell = {'units': 3, 'dropout': 0.25, 'recurrent_dropout': 0.125}
        listed = [{'class_name': 'Embedding', 'config': {
                      'name': 'e', 'input_dim': 9, 'output_dim': 4,
                      'batch_input_shape': [None, 7]}},
                  {'class_name': 'LSTM', 'config': {'name': 'l', **cell}}]
        self.put('m.json', json.dumps({'class_name': 'Sequential', 'keras_version': '2.11.0',
                                       'config': {'name': 's', 'layers': listed}}))
        self.run_program('import', 'm.json', '-o', 'made')
        with open(self.path('made/model.yaml')) as file:
            text = file.read()
        self.assertRegex(text, r'lstm: .*\bdropout: 0\.25\b')
        self.assertRegex(text, r'lstm: .*\brecurrent_dropout: 0\.125\b')

    def test_dropout_of_attention(self):
        arrays, metadata = read_safetensors(f'{MODELS}/attention.safetensors')
        for rate in '0.25', '0.5':
            metadata['model_config'] = metadata['model_config'].replace(
                '"dropout": 0.0', f'"dropout": {rate}', 1)
        write_safetensors(self.path('m.safetensors'), arrays, metadata)
        self.run_program('import', 'm.safetensors', '-o', 'made')
        with open(self.path('made/model.yaml')) as file:
            self.assertEqual(re.findall(r'attention: .*\bdropout: ([\d.]+)', file.read()),
                             ['0.25', '0.5'])

    def test_refusals(self):
        embedding = ('Embedding', {'input_dim': 9, 'output_dim': 4, 'mask_zero': True})
        for layers, said in (
                ([('LSTM', {'units': 3, 'recurrent_activation': 'hard_sigmoid'})],
                 "'recurrent_activation' is hard_sigmoid"),
                ([('GRU', {'units': 3, 'stateful': True})], "'stateful'"),
                ([('LSTM', {'units': 3, 'return_state': True})], "'return_state'"),
                ([('Conv1D', {'filters': 2, 'kernel_size': 3})], 'with a mask'),
                ([('Flatten', {})], 'with a mask'),
                ([('TimeDistributed', {'layer': {'class_name': 'Flatten', 'config': {}}})],
                 'not supported for each time step'),
                ([('Bidirectional', {'layer': {'class_name': 'LSTM', 'config': {'units': 3}},
                                     'merge_mode': 'ave'})], "'merge_mode' is ave"),
                ([('Bidirectional', {'layer': {'class_name': 'Dense', 'config': {'units': 3}},
                                     'merge_mode': 'sum'})], "class 'Dense', expected LSTM")):
            listed = [{'class_name': c, 'config': {'name': f'l{i}', **o}}
                      for i, (c, o) in enumerate([embedding] + layers)]
            listed[0]['config']['batch_input_shape'] = [None, 7]
            self.put('m.json', json.dumps(
                {'class_name': 'Sequential', 'keras_version': '2.11.0',
                 'config': {'name': 's', 'layers': listed}}))
            self.refused(3, said, 'import', 'm.json', '-o', 'no')

    def test_windows(self):
        self.compare('windows')

    def test_attention(self):
        self.compare('attention')

    def test_attention_by_names(self):
        """What the import has taken in the order of the configuration, and again by --weights,
        from the names of Keras 3 and of Keras 2."""
        arrays, metadata = read_safetensors(f'{MODELS}/attention.safetensors')
        self.compare('attention')
        with open(self.path('values/' + os.listdir(self.path('values'))[0]), 'rb') as file:
            imported = file.read()
        os.remove(self.path('attention/weights.safetensors'))
        place = re.compile(r'layers/(\w+)/(?:(\w+)_dense/)?vars/(\d)')
        older = {self.older(*place.match(name).groups()): array
                 for name, array in arrays.items()}
        self.assertEqual(len(older), 15)
        for names in arrays, older:
            write_safetensors(self.path('w'), names, {})
            done = self.run_program('run', 'attention', '--input',
                                    f'input_layer={MODELS}/attention.x.npy', '-o', 'values',
                                    '--force', '--weights', 'w')
            self.assertIn('15 of 15 parameters, by the names of keras', done.stderr)
            with open(self.path('values/' + os.listdir(self.path('values'))[0]), 'rb') as file:
                self.assertEqual(file.read(), imported)

    @staticmethod
    def older(layer, part, number):
        """The name that Keras 2 gives an array."""
        words = (['embeddings'] if layer == 'embedding' else ['kernel', 'bias'] if part
                 else ['gamma', 'beta'])
        within = {'output': 'attention_output', None: ''}.get(part, part)
        return '/'.join(filter(None, (layer, within, words[int(number)] + ':0')))


class RoundTrip(TextWeightsTest):
    """What a run has trained, written for other programs and read again."""

    NET = """name: net
input: {tokens: {shape: [6], type: int32, length: true}}
classes: 3
vocabulary: 20
layers:
  - {name: table, embedding: {vocabulary: $vocabulary, units: 5}}
  - {name: long, lstm: {units: 4, return_sequences: true}}
  - {name: gated, gru: {units: 5, return_sequences: true}}
  - {name: plain, rnn: {units: 3}}
  - {name: out, dense: {units: $classes}}
  - softmax
"""

    def setUp(self):
        super().setUp()
        self.put('net.yaml', self.NET)
        os.makedirs(self.path('set'))
        for part in 'train', 'test':
            self.put(f'set/{part}.txt', ''.join(
                f'{c}\tsome {c} {word} {c}\n' for c in ('red', 'blue', 'green')
                for word in ('apple', 'sky', 'tree', 'house')))
        self.train_net('--run', 'base', '--steps', '3')

    def train_net(self, *arguments):
        return self.run_program('train', 'net.yaml', '--data', 'text:set,unit=word,length=6',
                                '--batch-size', '4', '--lr', '0.5', *arguments)

    def exports(self, *arguments):
        """False where the program was built without libhdf5."""
        try:
            self.run_program('export', 'base', '-o', *arguments)
        except AssertionError as error:
            if 'built without libhdf5' not in str(error):
                raise
            return False
        return True

    def test_the_same_bits(self):
        self.train_net('--run', 'next', '--steps', '1', '--init-from', 'base')
        for i, (name, names, format_) in enumerate([
                ('a.safetensors', 'lockstep', 'safetensors'),
                ('b.safetensors', 'pytorch', 'safetensors'),
                ('c.safetensors', 'keras', 'safetensors'),
                ('d.safetensors', 'keras-3', 'safetensors'),
                ('e.h5', 'keras', 'keras-h5'), ('f.weights.h5', 'keras', 'keras-h5')]):
            if not self.exports(name, '--format', format_, '--names', names):
                continue
            done = self.train_net('--run', f'run{i}', '--steps', '1', '--weights', name)
            self.assertEqual(self.sha256(f'run{i}'), self.sha256('next'), name)
            self.assertIn('13 of 13 parameters, by', done.stderr)

    def test_names_and_shapes(self):
        """Both biases of PyTorch's layers, of Keras's gru as one array; order of gates."""
        self.exports('own.safetensors', '--format', 'safetensors')
        self.exports('torch.safetensors', '--format', 'safetensors', '--names', 'pytorch')
        self.exports('keras.safetensors', '--format', 'safetensors', '--names', 'keras-3')
        own, torch, keras = (read_safetensors(self.path(f'{n}.safetensors'))[0]
                             for n in ('own', 'torch', 'keras'))
        self.assertEqual(torch['long.weight_ih_l0'][1], [16, 5])
        self.assertEqual(torch['long.bias_ih_l0'][2], own['long.bias'][2])
        self.assertEqual(torch['long.bias_hh_l0'][2], bytes(4 * 16))
        z, r, n = (own['gated.bias'][2][i:i + 20] for i in (0, 20, 40))
        self.assertEqual(torch['gated.bias_ih_l0'][2], r + z + n)
        self.assertNotEqual(z, r)
        both = keras['layers/gru/cell/vars/2']
        self.assertEqual(both[1], [2, 15])
        self.assertEqual(both[2], own['gated.bias'][2] + own['gated.recurrent_bias'][2])
        self.assertEqual(keras['layers/embedding/vars/0'][1], [20, 5])
        self.assertEqual(len(torch), 13 + 2)
        self.assertEqual(len(keras), 13 - 1)

    def test_vocabulary(self):
        """It lies beside the weights, and data can be read by it."""
        export = ['export', 'base', '--format', 'safetensors', '-o', 'out.safetensors']
        done = self.run_program(*export)
        self.assertEqual(done.stdout, 'out.safetensors\n'
                         'out.vocabulary.json: the vocabulary of its texts\n')
        with open(self.path('out.vocabulary.json'), encoding='utf-8') as file:
            there = file.read()
        found = json.loads(there)
        self.assertEqual([found['unit'], found['truncate']], ['word', 'end'])
        self.assertEqual(' '.join(found['words']),
                         'some red green blue tree sky house apple')
        self.run_program(*export)  # the same vocabulary may stay
        self.put('out.vocabulary.json', there + ' ')
        os.remove(self.path('out.safetensors'))
        self.refused(2, "'out.vocabulary.json' is there already", *export)
        self.assertFalse(os.path.exists(self.path('out.safetensors')))
        self.put('out.vocabulary.json', '["mine"]')
        self.refused(2, "'out.vocabulary.json' is there already", *export)
        self.run_program(*export, '--force')
        with open(self.path('out.vocabulary.json'), encoding='utf-8') as file:
            self.assertEqual(file.read(), there)
        data = 'text:set/train.txt,vocabulary=out.vocabulary.json'
        self.assertIn('vocabulary: 10 tokens', self.run_program('data', data).stdout)

    def test_no_names_for_a_gru_that_resets_before(self):
        self.exports('torch.safetensors', '--format', 'safetensors', '--names', 'pytorch')
        self.put('net.yaml', self.NET.replace('gru: {', 'gru: {reset_after: false, '))
        self.refused(3, "'gated.weight_ih_l0' is no gated.weight: PyTorch's gru", 'train',
                     'net.yaml', '--data', 'text:set,unit=word,length=6', '--steps', '1',
                     '--weights', 'torch.safetensors', '--skip-mismatch')
        self.train_net('--run', 'before', '--steps', '1')
        self.refused(2, "'gated.weight' has no name of 'pytorch': PyTorch's gru resets after",
                     'export', 'before', '--format', 'safetensors', '--names', 'pytorch', '-o',
                     'x.safetensors')
        self.assertFalse(os.path.exists(self.path('x.safetensors')))
        self.run_program('export', 'before', '-o', 'x.safetensors', '--format', 'safetensors',
                         '--names', 'keras')
        self.train_net('--run', 'again', '--steps', '1', '--weights', 'x.safetensors')
        self.train_net('--run', 'next', '--steps', '1', '--init-from', 'before')
        self.assertEqual(self.sha256('again'), self.sha256('next'))

    def train_directions(self, run, *arguments):
        """A net of a stack of both directions; of one entry, or written out."""
        text = """name: both
input: {tokens: {shape: [6], type: int32, length: true}}
classes: 3
vocabulary: 20
layers:
  - {name: table, embedding: {vocabulary: $vocabulary, units: 5}}
  - {name: lower, lr_scale: 0.5, l2: 0.01, gru: {units: 4, return_sequences: true,
     bidirectional: sum, dropout: 0.25}}
  - {name: upper, lstm: {units: 3, bidirectional: concat}}
  - {name: out, dense: {units: $classes}}
  - softmax
"""
        by_hand = text
        for name, at, before, join in ('lower', 'table', 'lr_scale: 0.5, l2: 0.01, ', 'add'), \
                ('upper', 'lower', '', 'concat'):
            cell, inner = re.search(rf'name: {name}, .*?(gru|lstm): {{(.*?)}}', by_hand,
                                    re.S).groups()
            inner = re.sub(r'\s*bidirectional: \w+,?', '', inner).strip().rstrip(',')
            entries = ''.join(
                f'  - {{name: {name}_{way}, from: {at}, {before}{cell}: {{{inner}{more}}}}}\n'
                for way, more in (('forward', ''), ('backward', ', go_backwards: true')))
            entries += (f'  - {{name: {name}, from: [{name}_forward, {name}_backward], '
                        f'{join}: }}\n')
            by_hand = re.sub(rf'  - {{name: {name}, .*?}}}}\n', entries, by_hand, flags=re.S)
        self.assertNotIn('bidirectional', by_hand)
        self.put('one.yaml', text)
        self.put('by_hand.yaml', by_hand)
        which, *more = arguments
        return self.run_program('train', which, '--data', 'text:set,unit=word,length=6',
                                '--batch-size', '4', '--shards', '2', '--lr', '0.5', '--run',
                                run, *more)

    def test_both_directions(self):
        """One entry or three: the same bits, on two devices too, and arrays of other programs
        in which both directions are one layer."""
        self.train_directions('one', 'one.yaml', '--steps', '3')
        self.train_directions('hand', 'by_hand.yaml', '--steps', '3')
        self.train_directions('two', 'one.yaml', '--steps', '3', '--device', '0*2')
        self.assertEqual(self.sha256('one'), self.sha256('hand'))
        self.assertEqual(self.sha256('one'), self.sha256('two'))
        self.train_directions('hand', 'one.yaml', '--steps', '5')
        self.train_directions('next', 'one.yaml', '--steps', '1', '--init-from', 'one')
        for names, array in (('pytorch', 'upper.weight_ih_l0_reverse'),
                             ('keras', 'upper/backward_lstm/lstm_cell/kernel'),
                             ('keras-3', 'layers/bidirectional_1/backward_layer/cell/vars/0')):
            file = f'{names}.safetensors'
            self.run_program('export', 'one', '-o', file, '--format', 'safetensors', '--names',
                             names)
            self.assertIn(array, read_safetensors(self.path(file))[0])
            done = self.train_directions(f'of-{names}', 'one.yaml', '--steps', '1', '--weights',
                                         file)
            self.assertEqual(self.sha256(f'of-{names}'), self.sha256('next'), names)
            self.assertIn(f'by the names of {names}', done.stderr)


if __name__ == '__main__':
    unittest.main()
