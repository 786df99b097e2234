"""Models of the zoo take size, channels and classes from the data, and the parts of a data set
are used for what they are there for."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ProgramTest, main, png  # noqa: E402

SHORT = ['--steps', '1', '--batch-size', '8', '--tune', 'off']


class Photographs(ProgramTest):
    def setUp(self):
        """Colours, 12x10, in three classes and three parts: so many of each class."""
        super().setUp()
        for part, count in ('train', 10), ('val', 2), ('test', 3):
            for kind in range(3):
                os.makedirs(self.path(f'set/{part}/kind{kind}'))
                for i in range(count):
                    self.put(f'set/{part}/kind{kind}/{i}.png',
                             png(12, 10, lambda x, y: [80 * kind, 20 * i, 5 * x]))

    def config(self, run):
        with open(self.path(run + '/config.yaml')) as file:
            lines = file.read().split('\n')
        return dict(line.strip().split(': ', 1) for line in lines if ': ' in line)

    def expect(self, data, size, classes, *arguments, model='mlp'):
        done = self.run_program('train', model, '--data', data, *SHORT, '--run', 'run',
                                '--fresh', *arguments)
        config = self.config('run')
        self.assertEqual((config['input'], config['classes']), (f'[{size}]', str(classes)))
        return done.stderr


class FitTest(Photographs):
    def test_takes_what_the_data_has(self):
        said = self.expect('folder:set', '28,28,3', 3)
        line = ('mlp is made for the data: 28x28x3 and 3 classes, in place of its own 28x28x1 '
                'and 10; images are scaled to this size')
        self.assertEqual(said.count(line), 1, said)
        said = self.expect('folder:set,size=10x12', '10,12,3', 3)
        self.assertIn('10x12x3 and 3 classes', said)
        self.assertNotIn('scaled', said)
        self.expect('folder:set,channels=1', '28,28,1', 3)
        self.expect('folder:set', '9,9,3', 3, '--pipeline', 'crop 9x9 padding=2')
        self.expect('folder:set', '8,7,3', 3, '--pipeline', 'resize 8x7')
        self.expect('folder:set', '6,6,3', 3, '--pipeline', 'resize 8x7 | crop 6x6')
        self.expect('folder:set,cache=memory', '28,28,3', 3, '--cache', 'memory')
        said = self.expect('synthetic:digits,count=40', '28,28,1', 10)
        self.assertNotIn('made for the data', said)

    def test_takes_nothing_that_is_told(self):
        self.assertIn('9x9x3 and 3', self.expect('folder:set', '9,9,3', 3, '--set',
                                                 'input=[9,9,3]'))
        said = self.expect('folder:set', '9,9,1', 5, '--set', 'input=[9,9,1]', '--set',
                           'classes=5')
        self.assertNotIn('made for the data', said)
        self.put('run.yaml', 'model: mlp\ninput: [5, 5, 3]\nclasses: 4\ndata: "folder:set"\n')
        self.run_program('train', 'run.yaml', *SHORT, '--run', 'file')
        self.assertEqual(self.config('file')['input'], '[5,5,3]')

    def test_leaves_files_as_they_are(self):
        """A model file is refused where it does not fit."""
        self.put('two.yaml', 'input: [28, 28, 3]\nclasses: 2\nlayers: [flatten, '
                             'dense: {units: $classes}, softmax]\n')
        self.refused(3, "has 3 classes, model 'two' predicts 2", 'train', 'two.yaml', '--data',
                     'folder:set', *SHORT)

    def test_parameters_of_a_text(self):
        """Each is a setting of its own, which run files and runs keep."""
        def parameters(*arguments):
            return json.loads(self.run_program('summary', *arguments, '--json').stdout)[
                'parameters']
        self.put('net.yaml', 'input: [12, 10, 3]\nclasses: 3\n'
                             'parameters: {wide: 5, top: true}\nlayers: [flatten, '
                             '{dense: {units: $wide}, when: $top}, '
                             'dense: {units: $classes}, softmax]\n')
        self.assertEqual(parameters('net.yaml'), 361 * 5 + 18)
        self.assertEqual(parameters('net.yaml', '--set', 'wide=7'), 361 * 7 + 24)
        self.assertEqual(parameters('net.yaml', '--set', 'top=false'), 361 * 3)
        twice = '--set wide=7 --set top=false --set wide=9 --set top=true'.split()
        self.assertEqual(parameters('net.yaml', *twice), 361 * 9 + 30)
        self.run_program('train', 'net.yaml', '--data', 'folder:set', *SHORT, '--set', 'wide=7',
                         '--run', 'wide')
        self.assertEqual(self.config('wide')['parameters'], '"wide=7"')
        self.assertEqual(parameters('wide'), 361 * 7 + 24)
        self.run_program('train', 'wide/config.yaml', '--steps', '2')
        self.assertEqual(self.events('wide', 'step')[-1]['step'], 2)
        self.put('run.yaml', 'model: net.yaml\nparameters: {wide: 6}\ndata: "folder:set"\n')
        self.assertEqual(parameters('run.yaml'), 361 * 6 + 21)
        self.refused(2, "unknown option 'wid'", 'summary', 'net.yaml', '--set', 'wid=1')
        self.refused(2, "parameter 'wide': a word or a number", 'summary', 'net.yaml', '--set',
                     'wide=1 2')
        self.refused(3, "units", 'summary', 'net.yaml', '--set', 'wide=narrow')
        for bad, said in (('[1]', 'is a map'), ('{name: 1}', "'name' is no name"),
                          ('{a: [1]}', "parameter 'a' has one value"),
                          ('{a: }', "parameter 'a' has one value")):
            self.put('bad.yaml', f'input: [2]\nparameters: {bad}\nlayers: [softmax]\n')
            self.refused(3, ['bad.yaml:2: ', said], 'summary', 'bad.yaml')

    def test_the_head_of_a_zoo_model(self):
        for model, top, head in (('vgg16', 'true', 'predictions'),
                                 ('squeezenet', 'true', 'conv10'),
                                 ('resnet18', 'false', 'head')):
            done = self.run_program('summary', model, '--set', 'classes=6', '--set',
                                    f'top={top}', '--batch-size', '1', '--json')
            layers = {layer['name']: layer for layer in json.loads(done.stdout)['layers']}
            self.assertEqual(layers[head]['shape'][-1], 6)

    def test_a_shape_that_does_not_fit(self):
        self.refused(3, ["model 'vgg16' for 9x9x3 and 3 classes", 'vgg16.yaml:'], 'train',
                     'vgg16', '--data', 'folder:set,size=9x9', *SHORT)

    def test_goes_on_with_what_it_had(self):
        """A run of a program that left the model as it was goes on with that."""
        command = ['train', 'mlp', '--data', 'folder:set', '--batch-size', '8', '--tune', 'off',
                   '--run', 'old']
        self.run_program(*command, '--set', 'input=[28,28,1]', '--set', 'classes=10', '--steps',
                         '2')
        with open(self.path('old/config.yaml')) as file:
            text = file.read()
        self.put('old/config.yaml', text.replace('[28,28,1]', '[0,0,0]').replace(
            'classes: 10', 'classes: 0'))
        done = self.run_program(*command, '--steps', '3')
        self.assertIn('going on after step 2', done.stderr)
        self.assertEqual(self.config('old')['input'], '[28,28,1]')
        self.run_program(*command, '--steps', '1', '--fresh')
        self.assertEqual(self.config('old')['input'], '[28,28,3]')

class PartsTest(Photographs):
    def samples(self, *arguments):
        done = self.run_program('eval', 'run', *arguments)
        return int(done.stdout.split('\n')[0].split()[1])

    def test_val_validates_and_test_waits(self):
        self.expect('folder:set', '28,28,3', 3)
        self.assertEqual(self.samples(), 6)
        self.assertEqual(self.samples('--part', 'val'), 6)
        self.assertEqual(self.samples('--part', 'test'), 9)
        self.assertEqual(self.samples('--part', 'train'), 30)
        self.assertEqual(self.samples('--data', 'folder:set'), 9)
        self.refused(2, 'train, val or test', 'eval', 'run', '--part', 'all')

    def test_the_test_part_validates_where_there_is_no_other(self):
        os.rename(self.path('set/val'), self.path('set/.hidden'))
        self.expect('folder:set', '28,28,3', 3)
        self.assertEqual(self.samples(), 9)
        self.refused(3, "has no validation part", 'eval', 'run', '--part', 'val')

    def test_holds_out(self):
        self.expect('folder:set/train,val=0.2', '28,28,3', 3)
        first = self.run_program('eval', 'run').stdout
        self.assertEqual(self.samples(), 6)
        self.assertEqual(self.samples('--part', 'train'), 24)
        self.expect('folder:set/train,val=0.2', '28,28,3', 3, '--seed', '5')
        self.assertEqual(self.samples(), 6)
        classes = [line.split()[:2] for line in first.split('\n') if line.startswith('kind')]
        self.assertEqual(classes, [[f'kind{i}', '2'] for i in range(3)])


if __name__ == '__main__':
    main()
