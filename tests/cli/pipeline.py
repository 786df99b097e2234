"""Pipelines: written in order, refused by line, the same bits on whatever computes them."""
import json
import os
import random

import program
from program import ProgramTest, png

NET = """name: net
input: [12, 12, 3]
layers:
  - conv2d: {filters: 8, kernel: 3, activation: relu}
  - flatten
  - dense: {units: 3}
  - softmax
"""
STAGES = """
  - resize: 16x16
  - rotate: 10
  - crop: {size: 12x12, padding: 2}
  - flip: both
  - saturation: 0.5
  - brightness: 0.3
  - contrast: 0.4
  - normalize: {mean: [0.5, 0.4, 0.3], std: [0.2, 0.25, 0.3]}
  - batch: {size: 24, drop_remainder: true}
  - repeat: 3
  - prefetch: {batches: 3, threads: 2}
"""
TEXT = ('resize 16x16 | rotate 10 | crop 12x12 padding=2 | flip both | saturation 0.5 | '
        'brightness 0.3 | contrast 0.4 | normalize mean=[0.5,0.4,0.3] std=[0.2,0.25,0.3]')


class PipelineTest(ProgramTest):
    def setUp(self):
        """Three classes of coloured noise; 100 and 20 of them."""
        super().setUp()
        self.put('net.yaml', NET)
        chance = random.Random(1)
        for part, count in ('train', 100), ('test', 20):
            for i in range(count):
                folder = self.path(f'set/{part}/{"abc"[i % 3]}')
                os.makedirs(folder, exist_ok=True)
                self.put(f'{folder}/{i:03}.png', png(20, 17, lambda x, y: [
                    chance.randrange(256) // (1 + (c != i % 3)) for c in range(3)]))

    def train(self, run, *arguments, model='net.yaml', **more):
        done = self.run_program('train', model, '--data', 'folder:set', '--run', run,
                                *arguments, **more)
        return self.sha256(run) if done.returncode == 0 else done

    def put_run(self, name, stages, more=''):
        self.put(name, f'model: net.yaml\ndata: folder:set\npipeline:{stages}{more}')


class Written(PipelineTest):
    def test_in_a_run_file(self):
        """A list in YAML is what the text on the command line is."""
        self.put_run('run.yaml', STAGES)
        listed = self.train('listed', model='run.yaml')
        said = self.train('said', '--pipeline', TEXT + ' | batch 24 drop_remainder=true',
                          '--epochs', '3')
        self.assertEqual(listed, said)
        steps = self.events('listed', 'step')
        self.assertEqual([e['samples'] for e in steps], [24] * 12)
        with open(self.path('listed/config.yaml')) as file:
            config = file.read()
        for line in ('pipeline: "resize size=16x16 | rotate degrees=10 | ', 'prefetch: 3',
                     'eval_pipeline: "resize size=16x16 | center_crop size=12x12 | normalize',
                     'batch_size: 24', 'drop_remainder: true', 'epochs: 3', 'data_threads: 2'):
            self.assertIn(line, config)
        self.assertEqual(self.train('again', model='listed/config.yaml'), listed)

    def test_shorthand(self):
        """--augment says the same as its stages; each stage changes the result."""
        base = '--batch-size', '25', '--epochs', '1'
        short = self.train('short', *base, '--augment',
                           'saturation=0.5 flip=horizontal brightness=0.2 padding=1 rotate=5')
        self.assertEqual(short, self.train(
            'long', *base, '--pipeline', 'rotate 5 | crop padding=1 | flip horizontal | '
                                         'brightness 0.2 | saturation 0.5'))
        found = {short, self.train('none', *base)}
        for stage in ('flip vertical', 'brightness 0.2', 'contrast 0.2', 'saturation 0.2',
                      'saturation 0.2 | contrast 0.2', 'contrast 0.2 | saturation 0.2',
                      'normalize -1..1'):
            found.add(self.train(stage.replace(' ', '').replace('|', ''), *base, '--pipeline',
                                 stage))
        self.assertEqual(len(found), 9)

    def test_named(self):
        """Stages that are always there may be named."""
        base = '--batch-size', '25', '--epochs', '1'
        self.assertEqual(
            self.train('named', *base, '--pipeline',
                       'list | shuffle | read | decode | resize | flip both | sparse'),
            self.train('implied', *base, '--pipeline', 'flip both'))

    def test_parts(self):
        """A crop before resize is one of the image; validation and `eval` take its middle."""
        base = '--batch-size', '25', '--epochs', '2', '--shards', '4'
        self.put_run('run.yaml', '''
  - decode
  - crop: 14x11
  - resize: 12x12
  - flip: both
  - batch: 25
  - repeat: 2
''')
        one = self.train('one', '--shards', '4', model='run.yaml')
        text = 'crop 14x11 | resize 12x12 | flip both'
        for name, more in {'threads': ('--data-threads', '5'),
                           'none': ('--data-threads', '0'),
                           'twice': ('--device', '0*2')}.items():
            self.assertEqual(self.train(name, *base, '--pipeline', text, *more), one, name)
        self.assertNotEqual(self.train('middle', *base, '--pipeline',
                                       'center_crop 14x11 | resize | flip both'), one)
        self.assertEqual(self.sha256('middle'),
                         self.train('kept', *base, '--cache', 'memory', '--pipeline',
                                    'center_crop 14x11 | resize | flip both'))
        self.assertNotEqual(self.train('whole', *base, '--pipeline', 'flip both'), one)
        with open(self.path('one/config.yaml')) as file:
            self.assertIn('eval_pipeline: "center_crop size=14x11 | resize size=12x12"',
                          file.read())
        done = self.run_program('eval', 'one', '--json')
        self.assertAlmostEqual(json.loads(done.stdout)['loss'],
                               self.events('one', 'eval')[-1]['loss'], places=6)
        self.refused(2, 'cropped by chance before resize', 'train', 'net.yaml', '--data',
                     'folder:set', '--pipeline', text, '--cache', 'memory')

    def test_one_hot(self):
        """Labels as vectors give the bits that numbers give, unless they are smoothed."""
        base = '--batch-size', '25', '--epochs', '2', '--shards', '4'
        plain = self.train('plain', *base)
        for name, more in {'hot': (), 'twice': ('--device', '0*2', '--split', 'equal')}.items():
            self.assertEqual(self.train(name, *base, '--pipeline', 'one_hot', *more), plain)
            self.assertEqual(*[[(e['loss'], e['accuracy']) for e in self.events(run, 'step')]
                               for run in ('plain', name)])
        self.put_run('run.yaml', '\n  - one_hot: {smoothing: 0.2}\n  - batch: 25\n'
                                 '  - repeat: 2\n')
        self.assertNotEqual(self.train('smooth', model='run.yaml'), plain)
        first = self.events('smooth', 'step')[0], self.events('plain', 'step')[0]
        self.assertEqual(first[0]['accuracy'], first[1]['accuracy'])
        self.assertNotEqual(first[0]['loss'], first[1]['loss'])

    def test_refusals(self):
        head = '\n  - resize: 16x16\n  - flip: both\n'
        cases = {head + '  - crop: 12x12': ("run.yaml:6: pipeline: stage 'crop' cannot stand "
                                            "behind 'flip'; the order is list, "),
                 head + '  - flop: both': "run.yaml:6: pipeline: unknown stage 'flop'; did you "
                                          "mean 'flip'?",
                 head + '  - flip: both': "run.yaml:6: pipeline: stage 'flip' is there twice",
                 '\n  - rotate': "run.yaml:4: pipeline: stage 'rotate': option 'degrees' is "
                                 'missing',
                 '\n  - {rotate: 3, flip: both}': 'run.yaml:4: a stage is a name or',
                 '\n  - crop: {pad: 3}': "run.yaml:4: pipeline: stage 'crop': unknown option "
                                         "'pad'",
                 '\n  - crop: 11x11': 'the pipeline crops to 11x11, the model takes images of '
                                      '12x12',
                 '\n  - resize: 9x9': "data 'set' has images of 9x9x3"}
        for stages, said in cases.items():
            with self.subTest(stages):
                self.put_run('run.yaml', stages + '\n')
                done = self.run_program('train', 'run.yaml', '--run', 'refused',
                                        status=2 if '11x11' in said else 3)
                self.assertIn(said, done.stderr)
        self.put_run('run.yaml', '\n  - flip: both\n', 'eval_pipeline:\n  - flip: both\n')
        self.refused(3, "run.yaml:6: pipeline: stage 'flip' is for training", 'train',
                     'run.yaml')
        self.refused(2, 'only image files are resized', 'train', 'tiny.yaml', '--data',
                     program.DATA, '--pipeline', 'resize 32x32', '--val', 'off')

    def test_one_list_of_stages(self):
        """Two options for it exclude one another; those of a run file are replaced, aloud."""
        self.refused(2, 'two names of one list', 'train', 'fashion-convnet', '--data',
                     'synthetic:digits,count=64', '--augment', 'flip=both', '--pipeline',
                     'standardize', '--steps', '1')
        self.put('stages.yaml', 'model: fashion-convnet\ndata: synthetic:digits,count=64\n'
                 'pipeline: normalize 0..1\ntrain: {steps: 1, batch_size: 8}\n')
        said = 'of the run file or the environment are replaced'
        self.assertIn(said, self.run_program('train', 'stages.yaml', '--augment',
                                             'flip=both').stderr)
        self.assertNotIn(said, self.run_program('train', 'stages.yaml').stderr)

    def test_resume(self):
        """Another pipeline is another run; another spelling of it is not."""
        options = '--batch-size', '50', '--epochs'
        self.train('run', *options, '1', '--augment', 'flip=both brightness=0.5')
        for other in [], ['--augment', 'flip=both'], ['--pipeline', 'flip both | contrast 0.5']:
            self.refused(2, "checkpoint has pipeline 'flip axis=both | brightness amount=0.5'",
                         'train', 'net.yaml', '--data', 'folder:set', '--run', 'run', *options,
                         '2', *other)
        self.refused(2, 'drop_remainder', 'train', 'net.yaml', '--data', 'folder:set', '--run',
                     'run', '--pipeline', 'flip both | brightness 0.5 | batch 50 '
                     'drop_remainder=true | repeat 2')
        resumed = self.train('run', *options, '2', '--pipeline', 'flip both | brightness 0.50')
        self.assertEqual(resumed, self.train('whole', *options, '2', '--augment',
                                             'flip=both brightness=0.5'))

    def test_order_of_channels(self):
        """`order: bgr` trains to the bits that images with red and blue exchanged give; the
        checkpoint has it, so that `eval` and `predict` need not be told."""
        chance = random.Random(2)
        for i in range(24):
            colours = [[chance.randrange(256) // (1 + (c != i % 3)) for c in range(3)]
                       for _ in range(144)]
            for name, step in ('colours', 1), ('exchanged', -1):
                for part in 'train', 'test':
                    folder = self.path(f'{name}/{part}/{"abc"[i % 3]}')
                    os.makedirs(folder, exist_ok=True)
                    self.put(f'{folder}/{i:03}.png',
                             png(12, 12, lambda x, y: colours[12 * y + x][::step]))
        self.put('run.yaml', '''model: net.yaml
data: folder:colours
batch_size: 8
epochs: 3
pipeline:
  - flip: both
  - normalize: {order: bgr, mean: [103.939, 116.779, 123.68], scale: 1}
''')
        def train(run, *words):
            self.run_program('train', *words, '--run', run)
            return self.sha256(run)
        base = 'net.yaml', '--batch-size', '8', '--epochs', '3', '--data'
        listed = train('listed', 'run.yaml')
        self.assertEqual(listed, train('preset', *base, 'folder:colours', '--augment',
                                       'flip=both normalize=keras-caffe'))
        self.assertEqual(listed, train(
            'there', *base, 'folder:exchanged', '--pipeline',
            'flip both | normalize scale=1 mean=[103.939, 116.779, 123.68]'))
        self.assertNotEqual(listed, train(
            'other', *base, 'folder:colours', '--pipeline',
            'flip both | normalize scale=1 mean=[103.939, 116.779, 123.68]'))
        with open(self.path('listed/config.yaml')) as file:
            self.assertIn('eval_pipeline: "normalize scale=1 mean=[103.939, 116.779, 123.68] '
                          'std=[1, 1, 1] order=bgr"', file.read())
        for run, name in ('listed', 'colours'), ('there', 'exchanged'):
            found = json.loads(self.run_program('eval', run, '--json').stdout)
            self.assertAlmostEqual(found['loss'], self.events('listed', 'eval')[-1]['loss'],
                                   places=6)
        def predict(run, name):
            said = json.loads(self.run_program('predict', run, f'{name}/test', '--json').stdout)
            return json.dumps(said).replace(name, '')
        self.assertEqual(predict('listed', 'colours'), predict('there', 'exchanged'))
        self.assertNotEqual(predict('listed', 'colours'), predict('listed', 'exchanged'))

    def test_evaluation_normalizes(self):
        """`eval` sees what validation saw: the same figures, and others without it."""
        self.train('run', '--pipeline', TEXT, '--batch-size', '20', '--epochs', '4')
        event = self.events('run', 'eval')[-1]
        done = self.run_program('eval', 'run', '--json')
        self.assertAlmostEqual(json.loads(done.stdout)['loss'], event['loss'], places=6)
        self.train('other', '--pipeline', TEXT, '--batch-size', '20', '--epochs', '4', '--set',
                   'eval_pipeline=resize 16x16')
        self.assertEqual(self.sha256('run'), self.sha256('other'))
        self.assertNotAlmostEqual(self.events('other', 'eval')[-1]['loss'], event['loss'],
                                  places=3)


class Cached(PipelineTest):
    def test_cache(self):
        """Memory, a file and none give the same bits; a file is used, and made anew."""
        base = '--augment', 'flip=both', '--batch-size', '25', '--epochs', '2'
        none = self.train('none', *base)
        self.assertEqual(self.train('memory', *base, '--cache', 'memory'), none)
        self.put_run('run.yaml', """
  - cache: kept.cache
  - crop
  - flip: both
  - batch: 25
  - repeat: 2
""")
        self.assertEqual(self.train('file', model='run.yaml'), none)
        files = sorted(name for name in os.listdir(self.folder) if 'kept' in name)
        self.assertEqual(files, ['kept.cache', 'kept.cache.test'])
        stamps = [os.stat(self.path(name)).st_ino for name in files]
        self.assertEqual(self.train('again', model='run.yaml'), none)
        self.assertEqual([os.stat(self.path(name)).st_ino for name in files], stamps)
        with open(self.path('kept.cache'), 'r+b') as file:
            file.truncate(9999)
        self.assertEqual(self.train('anew', model='run.yaml'), none)
        self.put('letter.txt', 'a letter')
        self.refused(3, "letter.txt' is no cache", 'train', 'net.yaml', '--data',
                     'folder:set,cache=letter.txt')
        done = self.run_program('train', 'net.yaml', '--data', 'folder:set', *base, '--cache',
                                'no/where', '--run', 'without')
        self.assertIn("samples are not kept in 'no/where'", done.stderr)
        self.assertEqual(self.sha256('without'), none)


class SameBits(PipelineTest):
    def test_devices_and_threads(self):
        base = ('--pipeline', TEXT, '--batch-size', '24', '--shards', '8', '--epochs', '2',
                '--val', 'off')
        one = self.train('one', *base)
        cases = {'halves': ('--device', '0/2'), 'twice': ('--device', '0*2'),
                 'weighted': ('--device', '0*3', '--split', '5:1:2'),
                 'alone': ('--data-threads', '0'), 'threads': ('--data-threads', '5')}
        for name, options in cases.items():
            with self.subTest(name):
                self.assertEqual(self.train(name, *base, *options), one)
        copied = self.train('copied', *base, '--device', '0*2',
                            environment={'LOCKSTEP_SHARED': 'copy'})
        self.assertEqual(copied, one)

    def test_resumed(self):
        base = '--pipeline', TEXT, '--batch-size', '24', '--shards', '4', '--epochs', '4'
        one = self.train('one', *base)
        self.train('cut', *base, '--steps', '7')
        self.assertEqual(self.train('cut', *base, '--device', '0*2'), one)


if __name__ == '__main__':
    program.main()
