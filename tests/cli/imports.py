"""lockstep import makes models that compute what Keras computes, and refuses others by name."""
import importlib.util
import json
import os
import re
import subprocess
import sys
import unittest

import program
from recorded import RecordedTest

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'keras_models')


class ImportTest(RecordedTest):
    def text(self, folder='net'):
        with open(self.path(folder + '/model.yaml')) as file:
            return file.read()

    def compare(self, folder, name, ending, to='net'):
        """The values of an imported model are those that Keras has computed."""
        self.run_program('import', f'{folder}/{name}{ending}', '-o', to, '--force')
        self.compute_recorded(to, f'{folder}/{name}', 1e-5, '--force')

    def layers(self, *layers, shape=(None, 8, 6, 2), **more):
        """A Sequential model of Keras 2 as JSON, in m.json."""
        first = {'class_name': 'InputLayer',
                 'config': {'batch_input_shape': shape, 'name': 'in'}}
        listed = [first] + [{'class_name': c, 'config': {'name': f'l{i}', **o}}
                            for i, (c, o) in enumerate(layers)]
        self.put('m.json', json.dumps({'class_name': 'Sequential', 'keras_version': '2.11.0',
                                       'config': {'name': 's', 'layers': listed}, **more}))

    def refuse(self, said, *arguments, status=3):
        self.refused(status, said, 'import', 'm.json', '-o', 'no', *arguments)
        self.assertFalse(os.path.exists(self.path('no')))


class Computes(ImportTest):
    def test_recorded_models(self):
        for name in ('sequential', 'functional', 'nested', 'decoder', 'arranged', 'bounded',
                     'fixed'):
            self.compare(MODELS, name, '.safetensors', name)

    def test_weights_by_the_names_of_keras(self):
        """What an import has taken in the order of the configuration is found by names alone,
        in separable convolutions and behind functions of their own too."""
        for name in 'sequential', 'functional', 'arranged', 'decoder':
            weights = f'{MODELS}/{name}.safetensors'
            self.run_program('import', weights, '-o', name)
            os.remove(self.path(name + '/weights.safetensors'))
            self.compute_recorded(name, f'{MODELS}/{name}', 1e-5, '--force', '--weights',
                                  weights)

    def test_a_layer_without_one_of_its_arrays(self):
        """Keras 3 numbers them: which one is missing is not to be known."""
        weights = f'{MODELS}/decoder.safetensors'  # a batch norm without gamma
        self.run_program('import', weights, '-o', 'net')
        text = self.text()
        self.assertIn(', scale: false}', text)
        self.put('net/model.yaml', text.replace(', scale: false', ''))
        self.refused(3, ['missing from it: batch_normalization.gamma [60], '
                         'batch_normalization.beta [60]'], 'run', 'net', '--input',
                     f'{MODELS}/decoder.x0.npy', '--output', 'o', '--weights', weights)

    def compare_file(self, name, ending):
        """Of a format that needs a library."""
        archive = os.path.join(MODELS, name + ending)
        done = subprocess.run([program.PROGRAM, 'weights', archive], capture_output=True,
                              text=True, env=self.environment())
        if 'built without' in done.stderr:
            self.skipTest(done.stderr)
        self.compare(MODELS, name, ending)

    def test_an_archive(self):
        self.compare_file('sequential', '.keras')

    def test_models_in_models_of_a_single_file(self):
        self.compare_file('towers', '.h5')
        self.compare_file('shared', '.h5')

    def test_layers_that_only_names_tell_apart(self):
        """A .h5 file has them; one of weights alone has them beside the layers' numbers."""
        self.run_program('import', f'{MODELS}/alike.h5', '-o', 'net')
        self.compute_recorded('net', f'{MODELS}/alike', 1e-5)
        os.remove(self.path('net/weights.safetensors'))
        for file, said in ('alike.h5', 'keras'), ('alike.weights.h5', 'keras-3'):
            done = self.compute_recorded('net', f'{MODELS}/alike', 1e-5, '--force', '--weights',
                                         f'{MODELS}/{file}')
            self.assertIn(f'by the names of {said}\n', done.stderr)

    def test_names_that_nobody_gave(self):
        """Keras counts dense, dense_1, and we dense_1, dense_2: the order decides."""
        for names in ('', ''), ('name: dense, ', ''), ('name: dense, ', 'name: dense_1, '):
            os.makedirs(self.path('net'), exist_ok=True)
            self.put('net/model.yaml', 'name: net\ninput:\n  x: {shape: [4], type: float32}\n'
                     f'layers:\n  - {{{names[0]}dense: {{units: 4}}}}\n  - tanh\n'
                     f'  - {{{names[1]}dense: {{units: 4}}}}\n')
            for file in 'plain.h5', 'plain.weights.h5':
                self.compute_recorded('net', f'{MODELS}/plain', 1e-5, '--force', '--weights',
                                      f'{MODELS}/{file}')
        self.run_program('import', f'{MODELS}/plain.h5', '-o', 'net', '--force')
        self.compute_recorded('net', f'{MODELS}/plain', 1e-5, '--force')

    def test_a_mask_that_is_forgotten(self):
        """Keras's operations on tensors, as x * 2, do not hand masks on; its Dense does."""
        def layer(name, class_name, module, inputs, **config):
            args = [i if isinstance(i, float) else
                    {'class_name': '__keras_tensor__', 'config': {'keras_history': [i, 0, 0]}}
                    for i in inputs]
            return {'class_name': class_name, 'module': module, 'name': name,
                    'config': {'name': name, **config},
                    'inbound_nodes': [{'args': args, 'kwargs': {}}] if inputs else []}
        for between, said in ((layer('b', 'Multiply', 'keras.src.ops.numpy', ['e', 2.0]),
                               'which it leaves out of account'),
                              (layer('b', 'Dense', 'keras.layers', ['e'], units=4), None)):
            layers = [layer('x', 'InputLayer', 'keras.layers', [], batch_shape=[None, 7],
                            dtype='int32'),
                      layer('e', 'Embedding', 'keras.layers', ['x'], input_dim=9, output_dim=4,
                            mask_zero=True),
                      between, layer('l', 'GlobalAveragePooling1D', 'keras.layers', ['b'])]
            self.put('m.json', json.dumps({
                'class_name': 'Functional', 'module': 'keras', 'keras_version': '3.15.1',
                'config': {'name': 'm', 'layers': layers, 'input_layers': [['x', 0, 0]],
                           'output_layers': [['l', 0, 0]]}}))
            if said:
                self.refuse(said)
            else:
                self.run_program('import', 'm.json', '-o', 'net', '--force')
                self.assertIn('length: true', self.text())

    def test_a_name_that_two_layers_have(self):
        """Of two models, so that nothing tells which of them it is: refused, not guessed."""
        self.run_program('import', f'{MODELS}/alike.h5', '-o', 'net')
        with open(f'{MODELS}/alike.weights.h5', 'rb') as file:
            content = file.read()
        self.assertEqual(content.count(b'deep'), 1)
        for old, new in (b'\0e\0', b'\0f\0'), (b'\0f\0', b'\0e\0'):
            self.assertEqual(content.count(old), 1)
            with open(self.path('w.h5'), 'wb') as file:
                file.write(content.replace(old, new))
            self.refused(3, 'missing from it: ', 'run', 'net', '--input',
                         f'{MODELS}/alike.x0.npy', '--output', 'o', '--weights', 'w.h5')

    @unittest.skipUnless(importlib.util.find_spec('keras'), 'needs keras')
    def test_what_keras_makes_now(self):
        subprocess.run([sys.executable, os.path.join(MODELS, 'make.py'), self.folder],
                       check=True)
        # a norm that is two here, numbers that the file of weights does not have
        by_hand = 'bounded', 'fixed'
        for name in ('sequential', 'functional', 'nested', 'decoder', 'arranged', 'bounded',
                     'towers', 'fixed', 'alike'):
            self.compare(self.folder, name, '.keras', name)
            self.compare(self.folder, name, '.h5', name)
            for ending in ('.keras', '.h5', '.weights.h5') if name not in by_hand else ():
                self.compute_recorded(name, f'{self.folder}/{name}', 1e-5, '--force',
                                      '--weights', f'{self.folder}/{name}{ending}')


class Text(ImportTest):
    def test_keras_2(self):
        self.layers(('Conv2D', {'filters': 4, 'kernel_size': [3, 3], 'padding': 'same',
                                'activation': 'relu', 'trainable': False}),
                    ('Activation', {'activation': 'hard_sigmoid'}),
                    ('LeakyReLU', {'alpha': 0.25}), ('Flatten', {}),
                    ('Dense', {'units': 3, 'activation': 'softmax'}))
        self.assertIn('no weights', self.run_program('import', 'm.json', '-o', 'net').stdout)
        text = self.text()
        for line in ('  in: {shape: [8, 6, 2], type: uint8, scale: 1}\n',
                     'padding: same, activation: relu}, trainable: false}\n',
                     '  - {name: l1, hard_sigmoid: }\n', 'leaky_relu: {alpha: 0.25}',
                     '  - {name: l4, dense: {units: 3, activation: softmax}}\n',
                     'output:\n  l4: l4\n'):
            self.assertIn(line, text)
        self.assertFalse(os.path.exists(self.path('net/weights.safetensors')))
        self.run_program('summary', 'net/model.yaml')
        self.refused(3, 'is there already', 'import', 'm.json', '-o', 'net')

    def test_the_oldest_sequential_models(self):
        layer = {'class_name': 'Dense', 'config': {'name': 'd', 'units': 3,
                                                   'batch_input_shape': [None, 5]}}
        self.put('m.json', json.dumps({'class_name': 'Sequential', 'config': [layer]}))
        self.run_program('import', 'm.json', '-o', 'net')
        self.assertIn('dense: {units: 3}', self.text())

    def test_what_is_dropped_together(self):
        self.layers(('SpatialDropout2D', {'rate': 0.25}),
                    ('Dropout', {'rate': 0.5, 'noise_shape': [None, 1, 1, None]}),
                    ('Dropout', {'rate': 0.5, 'noise_shape': [None, 1, 1, 1]}),
                    ('Dropout', {'rate': 0.5, 'noise_shape': [None, 8, 6, 2]}),
                    ('Flatten', {}), ('Dense', {'units': 3}),
                    ('Dropout', {'rate': 0.5, 'noise_shape': [None, 1]}))
        self.run_program('import', 'm.json', '-o', 'net')
        found = re.findall(r'dropout: \{([^}]*)', self.text())
        self.assertEqual(found, ['rate: 0.25, per: channel', 'rate: 0.5, per: channel',
                                 'rate: 0.5, per: sample', 'rate: 0.5',
                                 'rate: 0.5, per: sample'])

    def test_names_become_ours(self):
        self.layers(('ReLU', {'name': 'é: [x]'}), ('ReLU', {'name': 'true'}),
                    ('ReLU', {'name': 'n' * 500}), ('ReLU', {'name': 'n' * 501}))
        self.run_program('import', 'm.json', '-o', 'net')
        names = re.findall(r'^  - \{name: ([^,]*),', self.text(), re.M)
        self.assertEqual(names[1], '_true')
        self.assertEqual(len(set(names)), 4)
        for name in names:
            self.assertRegex(name, r'^\w[\w/-]*$')

    def test_open_sizes(self):
        self.layers(('ReLU', {}), shape=(None, None, None, 3))
        self.refuse('--size HEIGHTxWIDTH')
        self.run_program('import', 'm.json', '-o', 'net', '--size', '5x7')
        self.assertIn('shape: [5, 7, 3]', self.text())


class Refusals(ImportTest):
    def test_layers(self):
        for layer, options, said in (
                ('Lambda', {'function': 'x'}, "class 'Lambda' are not supported"),
                ('Mine>Layer', {}, "class 'Mine>Layer'"),
                ('Conv2D', {'filters': 2, 'kernel_size': 3, 'padding': 'causal'}, 'causal'),
                ('Conv2D', {'filters': 2, 'kernel_size': 3, 'data_format': 'channels_first'},
                 'channels_first'),
                ('Conv2D', {'filters': 2, 'kernel_size': 3, 'new': 1}, "'new' is 1"),
                ('Conv2D', {'filters': 'x', 'kernel_size': 3}, "'filters' is \"x\""),
                ('Conv2D', {'filters': 2, 'kernel_size': 3, 'dtype': 'float64'}, 'float64'),
                ('SeparableConv2D', {'filters': 2, 'kernel_size': 3, 'groups': 2},
                 "'groups' is 2"),
                ('BatchNormalization', {'axis': 1}, "'axis' is 1"),
                ('BatchNormalization', {'renorm': True}, "'renorm'"),
                ('Activation', {'activation': 'tanh_shrink'}, "'tanh_shrink' is not supported"),
                ('ReLU', {'threshold': 1.5}, "'threshold' is 1.5"),
                ('Reshape', {'target_shape': [2, 6, 8]}, 'would change their order'),
                ('Flatten', {}, 'flattened image'),
                ('Dropout', {'rate': 0.5, 'noise_shape': [1, 2]}, 'noise_shape'),
                ('Dropout', {'rate': 0.5, 'noise_shape': [None, 1, 6, 2]}, 'noise_shape'),
                ('SpatialDropout1D', {'rate': 0.5}, 'channels of sequences'),
                ('Normalization', {'mean': [1, 2], 'variance': [1, 2]}, 'the model alone'),
                ('Normalization', {'mean': [1, 2, 3]}, "'mean' is expected to have 2 numbers"),
                ('Normalization', {'mean': [1, None]}, 'something else than numbers'),
                ('Rescaling', {'scale': [1, 2]}, 'the model alone')):
            self.layers((layer, options))
            self.refuse([said, f'({layer})'] if layer != 'Flatten' else said)

    def test_a_class_of_someone_else(self):
        self.put('m.json', json.dumps(
            {'module': 'keras', 'class_name': 'Sequential', 'config': {'name': 's', 'layers': [
                {'module': 'keras.layers', 'class_name': 'InputLayer',
                 'config': {'batch_shape': [None, 4], 'name': 'i'}},
                {'module': 'theirs', 'class_name': 'Dense', 'registered_name': 'theirs>Dense',
                 'config': {'name': 'd', 'units': 3}}]}}))
        self.refuse("class 'Dense' is not Keras's own")

    def functional(self, *layers, outputs=(('a', 0, 0),)):
        listed = [{'class_name': 'InputLayer', 'name': 'i', 'inbound_nodes': [],
                   'config': {'batch_input_shape': [None, 4], 'name': 'i'}}]
        listed += [{'class_name': 'ReLU', 'name': n, 'config': {'name': n}, 'inbound_nodes': c}
                   for n, c in layers]
        self.put('m.json', json.dumps(
            {'class_name': 'Functional', 'config': {
                'name': 'f', 'layers': listed, 'input_layers': [['i', 0, 0]],
                'output_layers': [list(o) for o in outputs]}}))

    def test_graphs(self):
        self.functional(('a', [[['b', 0, 0, {}]]]), ('b', [[['a', 0, 0, {}]]]))
        self.refuse('depends on itself')
        self.functional(('a', [[['x', 0, 0, {}]]]))
        self.refuse("no layer is named 'x'")
        self.functional(('a', [[['i', 0, 0, {'training': True}]]]))
        self.refuse("argument 'training'")
        self.functional(('a', [[['i', 0, 5, {}]]]))
        self.refuse('depends on itself, or is not there')
        self.functional(('a', [[['i', 0, 0, {}]]]), outputs=(('a', 3, 0),))
        self.refuse('an output that is not there')
        self.functional(('b', [[['a', 0, 0, {}]]]), ('a', [[['i', 0, 0, {}]]]),
                        outputs=(('b', 0, 0),))
        self.run_program('import', 'm.json', '-o', 'late')

    def test_hostile_json(self):
        for text, said in (('{"a": ' + '[' * 100000, 'deep'),
                           ('{"a": [' + '0,' * 400000, 'values'),
                           ('{"class_name": "Sequential"', 'line 1'), ('{}', 'found'),
                           ('{"class_name": "Sequential", "config": {"layers": []}}',
                            "'layers'"),
                           (' ' * (5 << 20) + '{}', '')):
            self.put('m.json', text)
            self.refuse(said)
        inner = {'class_name': 'ReLU', 'config': {'name': 'r'}}
        for i in range(14):
            inner = {'class_name': 'Sequential', 'config': {'name': f'm{i}', 'layers': [inner]}}
        inner['config']['layers'].insert(0, {'class_name': 'InputLayer', 'config': {
            'batch_input_shape': [None, 4], 'name': 'i'}})
        self.put('m.json', json.dumps(inner))
        self.refuse('nested deeper')

    def test_arrays_that_do_not_fit(self):
        with open(os.path.join(MODELS, 'decoder.safetensors'), 'rb') as file:
            content = file.read()
        self.put('m.json', content.replace(b'layers/dense/vars/1', b'layers/dense/vars/7'))
        self.refused(3, ["layer 'dense'", "no array 'bias'"], 'import', 'm.json', '-o', 'no')
        self.put('m.json', content.replace(b'"shape": [10, 60]', b'"shape": [60, 10]'))
        self.refused(3, ['is [60, 10], the model expects [10, 60]'], 'import', 'm.json', '-o',
                     'no')
        self.assertFalse(os.path.exists(self.path('no')))


if __name__ == '__main__':
    program.main()
