"""How images are normalized for weights that others, or other runs, have trained."""
import json
import os
import unittest

from program import ProgramTest, png

NET = """name: net
input: [16, 16, 3]
layers:
  - {name: conv, conv2d: {filters: 4, kernel: 3, stride: 2}}
  - flatten
  - {name: head, dense: {units: 2}}
  - softmax
"""
TORCHVISION = 'normalize torchvision'
TAKEN = 'images are normalized as the weights expect: torchvision'


class ImagesTest(ProgramTest):
    """Photographs of two classes are there, a quarter of them to be tested with."""

    def setUp(self):
        super().setUp()
        self.put('net.yaml', NET)
        for i in range(8):
            part = 'test' if i >= 6 else 'train'
            os.makedirs(self.path(f'photos/{part}/{i % 2}'), exist_ok=True)
            self.put(f'photos/{part}/{i % 2}/{i}.png',
                     png(32, 32, lambda x, y: (8 * x, 8 * y, 30 * i)))

    def train(self, run, *arguments, model='net.yaml', steps='1'):
        """What a run of a few steps has said."""
        return self.run_program('train', model, '--data', 'folder:photos', '--batch-size', '4',
                                '--run', run, '--steps', steps, *arguments).stderr

    def setting(self, run, name):
        with open(self.path(run + '/config.yaml')) as file:
            return [line for line in file if line.startswith(name + ':')]


class OfRuns(ImagesTest):
    def test_a_run_tells(self):
        """What its images were is taken over; where other images are asked for, a warning says
        that they differ, and images that are the same have none."""
        self.train('a', '--pipeline', 'normalize keras-tf')
        said = self.train('taken', '--init-from', 'a')
        self.assertIn("images are normalized as in 'a': normalize scale=", said)
        self.assertNotIn('warning', said)
        self.train('typed', '--init-from', 'a', '--pipeline', 'normalize keras-tf')
        self.assertEqual(self.sha256('taken'), self.sha256('typed'))
        said = self.train('other', '--init-from', 'a', '--pipeline', 'normalize 0..1')
        self.assertIn("those of 'a' are trained on images with values -1 to 1, red first; here "
                      'they are 0 to 1, red first', said)
        self.assertNotIn('images are normalized', said)
        self.assertNotEqual(self.sha256('other'), self.sha256('typed'))
        for i, same in enumerate(['normalize -1..1', 'flip both | normalize keras-tf']):
            said = self.train(f'same{i}', '--init-from', 'a', '--pipeline', same)
            self.assertNotIn('warning', said)

    def test_nothing_is_taken(self):
        """Of a run that did not normalize, of a file that tells nothing, for an input with a
        scale of its own."""
        self.train('a')
        self.put('scaled.yaml', NET.replace('[16, 16, 3]', '{shape: [16, 16, 3], scale: 0.01}'))
        self.train('b', '--pipeline', TORCHVISION)
        for run, model, *options in [
                ('of-a', 'net.yaml', '--init-from', 'a'),
                ('of-a-file', 'net.yaml', '--weights',
                 'b/checkpoints/step-00000001.safetensors'),
                ('scaled', 'scaled.yaml', '--init-from', 'b')]:
            self.assertNotIn('images are normalized', self.train(run, *options, model=model))
            self.assertEqual(self.setting(run, 'pipeline'), ['pipeline: ""\n'])


class TakenOver(ImagesTest):
    """What else a run takes from the one with whose weights it begins."""

    def begin(self, run, *arguments, **more):
        return self.run_program('train', *arguments, '--batch-size', '4', '--steps', '1',
                                '--run', run, **more).stderr

    def test_data_and_model(self):
        self.train('a', '--set', 'max_bad=3', '--val', 'folder:photos,part=train')
        self.train('typed', '--init-from', 'a', '--val', 'folder:photos,part=train')
        data = 'data folder:photos, validation folder:photos,part=train'
        for run, start, said in [
                ('b', ['net.yaml', '--init-from', 'a'], data),
                ('c', ['--init-from', 'a'], 'model net.yaml, ' + data),
                ('d', ['--init-from', 'a/checkpoints/step-00000001.safetensors'], data)]:
            self.assertIn(said, self.begin(run, *start))
            self.assertEqual(self.sha256(run), self.sha256('typed'))
            self.assertEqual(self.setting(run, 'data'), self.setting('a', 'data'))
            self.assertEqual(self.setting(run, '  max_bad'), self.setting('a', '  max_bad'))
        said = self.begin('e', '--init-from', 'a', '--val', 'off')
        self.assertIn('data folder:photos, validation off', said)
        said = self.begin('f', 'net.yaml', '--init-from', 'a', '--data', 'folder:photos')
        self.assertNotIn('taken over', said)
        self.assertEqual(self.setting('f', 'validation'), ['validation: ""\n'])

    def test_a_model_of_the_zoo(self):
        """It is made for what it was made for there; another model is not."""
        self.train('a', '--set', 'input=[32,32,3]', '--set', 'classes=3', model='squeezenet')
        self.begin('b', 'squeezenet', '--init-from', 'a')
        for name in 'input', 'classes':
            self.assertEqual(self.setting('b', name), self.setting('a', name))
        said = self.refused(3, 'nothing that fits', 'train', 'mobilenet-v2', '--init-from', 'a')
        self.assertIn('224x224x3 and 2 classes', said.stderr)

    def test_refuses(self):
        self.train('a')
        os.rename(self.path('a/config.yaml'), self.path('a/other.yaml'))
        for words, what in (['net.yaml'], 'data'), ([], 'model'):
            self.refused(2, f"no {what} is named, and 'a' has no config.yaml", 'train', *words,
                         '--init-from', 'a')
        self.refused(2, 'needs one MODEL', 'train', '--data', 'folder:photos')


class OfFiles(ImagesTest):
    """A file of weights is there that has torchvision's names."""

    def setUp(self):
        super().setUp()
        self.train('base')
        self.run_program('export', 'base', '-o', 'w', '--format', 'safetensors', '--names',
                         'torchvision')

    def train(self, run, *arguments, model='squeezenet', **more):
        options = ['--set', 'input=[32,32,3]'] if model == 'squeezenet' else []
        return super().train(run, *options, *arguments, model=model, **more)

    def test_as_if_it_had_been_typed(self):
        said = self.train('taken', '--weights', 'w')
        self.assertEqual(said.count(TAKEN), 1)
        self.assertNotIn('warning', said)
        self.train('typed', '--weights', 'w', '--pipeline', TORCHVISION)
        self.assertEqual(self.sha256('taken'), self.sha256('typed'))
        for name in 'pipeline', 'eval_pipeline':
            self.assertEqual(len(self.setting('taken', name)), 1)
            self.assertEqual(self.setting('taken', name), self.setting('typed', name))

    def test_beside_other_stages(self):
        self.assertIn(TAKEN, self.train('taken', '--weights', 'w', '--augment',
                                        'flip=horizontal', '--device', '0*2', '--shards', '2'))
        self.train('typed', '--weights', 'w', '--shards', '2', '--augment',
                   'flip=horizontal normalize=torchvision')
        self.assertEqual(self.sha256('taken'), self.sha256('typed'))

    def test_what_is_typed_wins(self):
        for i, option in enumerate(['pipeline', 'eval_pipeline']):
            said = self.train(f'run{i}', '--weights', 'w', '--set', option + '=normalize 0..1')
            self.assertNotIn(TAKEN, said)
            self.assertIn('-2.118 to 2.64, red first; here they are 0 to 1, red first; '
                          "--augment 'normalize=torchvision'", said)

    def test_a_run_goes_on_with_it(self):
        """Though nobody has typed it, and whatever has become of the weights."""
        self.train('whole', '--weights', 'w', steps='2')
        self.train('cut', '--weights', 'w')
        os.remove(self.path('w'))
        self.train('cut', '--weights', 'w', steps='2')
        self.assertEqual(self.sha256('cut'), self.sha256('whole'))

    def test_evaluation(self):
        """Of a run that took it over, and of the same weights by themselves."""
        options = '--lr', '0'  # moving averages move, and are exported too
        self.train('taken', '--weights', 'w', *options)
        self.run_program('export', 'taken', '-o', 'v', '--format', 'safetensors', '--names',
                         'torchvision')
        loss = self.loss('taken')
        alone = 'squeezenet', '--weights', 'v', '--set', 'input=[32,32,3]', '--data', \
            'folder:photos'
        self.assertEqual(self.loss(*alone), loss)
        self.assertNotEqual(self.loss(*alone, '--set', 'pipeline=normalize 0..1'), loss)

    def loss(self, *arguments):
        return json.loads(self.run_program('eval', *arguments, '--json').stdout)['loss']

    def test_features(self):
        """Those that were computed of other images are not taken."""
        head = '--weights', 'w', '--train-last', '1'
        self.train('plain', *head, steps='2')
        self.train('other', *head, '--pipeline', 'normalize 0..1', '--cache-features', 'f')
        self.train('kept', *head, '--cache-features', 'f', steps='2')
        self.assertEqual(self.sha256('kept'), self.sha256('plain'))
        self.assertIn(TAKEN, self.train('again', *head, '--cache-features', 'f', steps='2'))
        self.assertEqual(self.sha256('again'), self.sha256('plain'))


if __name__ == '__main__':
    unittest.main()
