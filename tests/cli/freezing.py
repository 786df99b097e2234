"""Freezing the first entries of a model, and keeping what they compute."""
import glob
import json
import os
import signal
import struct
import subprocess
import time
from pathlib import Path

import program
from program import PROGRAM, ProgramTest

# Pooling that nothing absorbs, batch norm and dropout among what is frozen; a fork at the cut.
NET = """name: net
input: [28, 28, 1]
classes: 10
layers:
  - {name: c1, conv2d: {filters: 4, kernel: 3, stride: 2, bias: false}}
  - {name: n1, batch_norm: {activation: relu}}
  - max_pool: {size: 2}
  - {name: c2, conv2d: {filters: 8, kernel: 3, padding: same}}
  - {name: c3, conv2d: {filters: 8, kernel: 1, activation: relu}}
  - {from: [c2, c3], add: }
  - {name: n2, batch_norm: }
  - {name: drop, dropout: {rate: 0.25}}
  - flatten
  - {name: head, dense: {units: $classes}}
  - softmax
"""
AUGMENT = ['--augment', 'flip=horizontal padding=2 rotate=10 brightness=0.2']


class Freezing(ProgramTest):
    def setUp(self):
        super().setUp()
        self.put('net.yaml', NET)

    def command(self, *arguments, count=300):
        return ['train', 'net.yaml', '--data', f'synthetic:digits,count={count}',
                '--batch-size', '64', '--shards', '4', '--set', 'validation=off',
                '--set', 'tune=off', *arguments]

    def train(self, run, *arguments, freeze=('--freeze-until', 'c2'), **more):
        self.run_program(*self.command('--run', run, *freeze, *arguments), **more)
        return self.sha256(run)

    def tensors(self, run, step):
        """The arrays of a checkpoint, as bytes."""
        data = Path(self.path(f'{run}/checkpoints/step-{step:08}.safetensors')).read_bytes()
        size, = struct.unpack('<Q', data[:8])
        header = json.loads(data[8:8 + size])
        return {name: data[8 + size + about['data_offsets'][0]:
                           8 + size + about['data_offsets'][1]]
                for name, about in header.items() if name != '__metadata__'}

    def test_frozen_arrays_stay_to_the_bit(self):
        self.train('run', '--epochs', '2', '--checkpoint-every', '5')
        first, last = self.tensors('run', 5), self.tensors('run', 10)
        parameters = [n for n in first if not n.startswith('optimizer.')]
        frozen = [n for n in parameters if n.split('.')[0] in ('c1', 'n1', 'c2')]
        self.assertEqual(len(frozen), 7, parameters)
        for name in parameters:
            (self.assertEqual if name in frozen else self.assertNotEqual)(
                first[name], last[name], name)
            has_state = any(n.startswith('optimizer.') and n.endswith('.' + name) for n in last)
            is_tracked = name.startswith('n2.') and name.split('.')[1].startswith('moving_')
            self.assertEqual(has_state, name not in frozen and not is_tracked, (name, [*last]))

    def test_a_run_goes_on_with_the_same_freezing_only(self):
        self.train('run', '--epochs', '1')
        self.refused(2, 'is frozen there, not here', *self.command('--run', 'run'))
        self.refused(2, 'is frozen here, not there',
                     *self.command('--run', 'run', '--freeze-until', 'n2'))
        # the same by other words
        split = self.train('run', '--epochs', '2', freeze=('--train-last', '3'))
        self.assertEqual(split, self.train('whole', '--epochs', '2'))
        text = self.run_program('summary', 'run', '--json').stdout
        self.assertEqual([e['name'] for e in json.loads(text)['layers'] if e['frozen']],
                         ['c1', 'n1', 'c2'])
        found = json.loads(self.run_program('eval', 'run', '--data',
                                            'synthetic:digits,count=50', '--json').stdout)
        self.assertGreater(found['samples'], 0)

    def test_refuses_what_cannot_be_frozen(self):
        for status, said, *freeze in [
                (3, "is named 'c9'; did you mean 'c1'?", '--freeze-until', 'c9'),
                (3, 'has 6', '--train-last', '7'),
                (3, 'nothing is left to train', '--freeze-until', 'head'),
                (2, 'exclude one another', '--freeze-until', 'c1', '--train-last', '1')]:
            self.refused(status, said, *self.command(*freeze))

    def test_summary(self):
        text = self.run_program('summary', 'net.yaml', '--freeze-until', 'c2').stdout
        self.assertEqual(text.count('  frozen\n'), 3, text)
        self.assertIn('frozen), ', text)
        self.assertIn('with nothing frozen it would take ', text)
        with_, without = (json.loads(self.run_program(
            'summary', 'net.yaml', '--json', *more).stdout)
            for more in (['--train-last', '1'], []))
        self.assertEqual(with_['memory_unfrozen'], without['memory'])
        self.assertIsNone(without['memory_unfrozen'])
        for use in 'gradients', 'optimizer', 'activations', 'total':
            self.assertLess(with_['memory'][use], without['memory'][use], use)
        self.assertEqual(with_['frozen_parameters'] + with_['trainable_parameters'],
                         with_['parameters'])

    def test_features_change_no_bit(self):
        for precision in 'float', 'mixed':
            options = ['--epochs', '3', '--precision', precision]
            whole = self.train('whole-' + precision, *options)
            cached = [('memory',), ('f.feats',), ('f.feats',),
                      ('memory', '--device', '0*2', '--split', 'equal')]
            for i, (where, *more) in enumerate(cached):
                self.assertEqual(self.train(f'{precision}-{i}', *options, '--cache-features',
                                            where, *more), whole, (precision, where, more))
        before = os.stat(self.path('f.feats'))
        done = self.run_program(*self.command('--freeze-until', 'c2', '--precision', 'mixed',
                                              '--cache-features', 'f.feats', '--epochs', '1'))
        self.assertIn("features are there, in 'f.feats'", done.stderr)
        self.assertEqual(os.stat(self.path('f.feats')).st_ino, before.st_ino)

    # The frozen part on both devices, the head on one or on both; features of both places.
    PLACES = [('0*2', 'auto'), ('0*2', 'c1=0,c2=1'), ('0*2', 'c1=0,n2=1'),
              ('0*2', 'c1=1,head=0'), ('0*4', 'c1=0,c2=1'),
              ('0*2', 'c1=0,c2=1,c3=0,add_1=1')]

    def test_features_of_groups_change_no_bit(self):
        """Devices of a group compute features of their places, and train the head."""
        for precision in 'float', 'mixed':
            options = ['--epochs', '2', '--precision', precision]
            whole = self.train('whole-' + precision, *options)
            for i, (devices, place) in enumerate(self.PLACES):
                self.assertEqual(self.train(
                    f'{precision}-{i}', *options, '--device', devices, '--place', place,
                    '--cache-features', 'memory'), whole, (precision, devices, place))
        # a file is that of all places, and of one device
        self.train('file', '--epochs', '1', '--device', '0*2', '--place', 'c1=0,c2=1',
                   '--cache-features', 'f.feats')
        for more in [], ['--device', '0*2', '--place', 'auto']:
            done = self.run_program(*self.command('--freeze-until', 'c2', '--epochs', '1',
                                                  '--cache-features', 'f.feats', *more))
            self.assertIn("features are there, in 'f.feats'", done.stderr)

    def test_validation_of_features(self):
        """Each evaluation finds what one of the whole model does."""
        found = {}
        for run, *cache in [('whole',), ('cached', '--cache-features', 'memory'),
                            ('two', '--cache-features', 'f.feats', '--device', '0*2'),
                            ('group', '--cache-features', 'memory', '--device', '0*2',
                             '--place', 'c1=0,c2=1')]:
            self.train(run, '--epochs', '3', *cache, '--set',
                       'validation=synthetic:digits,count=200,seed=5')
            found[run] = [(e['loss'], e['accuracy']) for e in self.events(run, 'eval')]
            self.assertEqual(len(found[run]), 3)
        self.assertEqual(found['cached'], found['whole'])
        self.assertEqual(found['two'], found['whole'])
        self.assertEqual(found['group'], found['whole'])

    def test_auto_divides_both_parts_without_a_circle(self):
        """Where the frozen part and the head are both divided, validation runs the whole."""
        self.put('net.yaml', 'input: [28, 28, 1]\nlayers:\n  - flatten\n' + ''.join(
            f'  - {{name: d{i}, dense: {{units: 48, activation: relu}}}}\n' for i in range(6)) +
            '  - dense: {units: 10}\n  - softmax\n')
        options = ['--epochs', '1', '--set', 'validation=synthetic:digits,count=200,seed=5']
        freeze = ['--freeze-until', 'd2']
        whole = self.train('whole', *options, freeze=freeze)
        for devices in '0*2', '0*3':
            self.assertEqual(self.train(devices, *options, '--device', devices, '--place',
                                        'auto', '--cache-features', 'memory', freeze=freeze),
                             whole, devices)
            self.assertEqual(self.events(devices, 'eval')[-1]['loss'],
                             self.events('whole', 'eval')[-1]['loss'])
            [device] = self.events(devices, 'step')[-1]['devices']
            self.assertGreater(sum(p['compute_ms'] > 0 for p in device['places']), 1)

    def test_going_on_with_and_without_features(self):
        whole = self.train('whole', '--epochs', '4')
        self.train('run', '--steps', '7', '--cache-features', 'memory')
        self.train('run', '--steps', '12')
        self.assertEqual(self.train('run', '--epochs', '4', '--cache-features', 'f.feats'),
                         whole)

    def test_variants_of_each_sample(self):
        cache = ['--cache-features', 'memory', *AUGMENT]
        self.refused(2, 'samples are changed by chance',
                     *self.command('--freeze-until', 'c2', *cache))
        self.refused(2, 'is for --cache-features',
                     *self.command('--freeze-until', 'c2', '--cache-augmentations', '2'))
        # as many variants as epochs are those that the epochs would draw
        whole = self.train('whole', '--epochs', '3', *AUGMENT)
        three = [*cache, '--cache-augmentations', '3']
        self.assertEqual(self.train('three', '--epochs', '3', *three), whole)
        # with fewer the first one comes again
        two = [*cache, '--cache-augmentations', '2']
        again = self.train('two', '--epochs', '3', *two)
        self.assertNotEqual(again, whole)
        self.train('split', '--epochs', '2', *two)
        self.refused(2, 'checkpoint has cache_augmentations 2, asked for is 3',
                     *self.command('--run', 'split', '--freeze-until', 'c2', '--epochs', '3',
                                   *three))
        self.assertEqual(self.train('split', '--epochs', '3', *two, '--cache-features',
                                    'k.feats'), again)

    def test_files_of_others_are_left_alone(self):
        self.refused(3, 'is no cache of features and is left alone', *self.command(
            '--freeze-until', 'c2', '--cache-features', 'net.yaml', '--quiet'))
        self.assertEqual(Path(self.path('net.yaml')).read_text(), NET)
        self.train('one', '--epochs', '1', '--cache-features', 'f.feats')
        # other weights in the frozen part: made anew, and right
        whole = self.train('two', '--epochs', '1', '--seed', '3')
        self.assertEqual(self.train('three', '--epochs', '1', '--seed', '3',
                                    '--cache-features', 'f.feats'), whole)
        done = self.run_program(*self.command('--freeze-until', 'c2', '--cache-features',
                                              'f.feats', '--seed', '4', '--epochs', '1'))
        self.assertIn('the file is of other samples, weights or kernels', done.stderr)
        self.run_program(*self.command('--freeze-until', 'c2', '--cache-features', 'f.feats',
                                       '--seed', '3', '--epochs', '1'))
        # another head has use for it
        self.put('net.yaml', NET.replace('rate: 0.25', 'rate: 0.5'))
        done = self.run_program(*self.command('--freeze-until', 'c2', '--cache-features',
                                              'f.feats', '--seed', '3', '--epochs', '1'))
        self.assertIn('features are there', done.stderr)

    def test_another_text_of_the_frozen_part(self):
        """What has the same operations and weights, but other inputs or shapes between."""
        text = NET.replace('- {name: c3', '- reshape: {shape: [%s]}\n  - {name: c3').replace(
            'from: [c2, c3], add: ', 'name: s, square: ')
        for number, (image, shape) in enumerate((
                ('[28, 28, 1]', '6, 6, 8'),
                ('{image: {shape: [28, 28, 1], scale: 0.004}}', '6, 6, 8'),
                ('{image: {shape: [28, 28, 1], scale: 0.004, shift: 1}}', '6, 6, 8'),
                ('{image: {shape: [28, 28, 1], scale: 0.004, shift: 1}}', '4, 9, 8'))):
            self.put('net.yaml', (text % shape).replace('[28, 28, 1]', image))
            freeze = ('--freeze-until', 's', '--epochs', '1')
            self.assertEqual(
                self.train(f'kept{number}', '--cache-features', 'f.feats', freeze=freeze),
                self.train(f'whole{number}', freeze=freeze))

    def test_weights_of_another_frozen_entry(self):
        for owner in 'a', 'b':
            self.put('net.yaml', f"""name: net
input: [28, 28, 1]
layers:
  - {{name: a, conv2d: {{filters: 4, kernel: 3}}}}
  - {{name: b, from: image, conv2d: {{filters: 4, kernel: 3}}}}
  - {{name: t, from: image, tanh: }}
  - {{name: c, from: t, weights: {owner}, conv2d: {{filters: 4, kernel: 3}}}}
  - {{name: j, from: [a, b, c], concat: {{axis: c}}}}
  - flatten
  - dense: {{units: 10}}
  - softmax
""")
            freeze = ('--freeze-until', 'j', '--epochs', '1')
            self.assertEqual(
                self.train(f'kept_{owner}', '--cache-features', 'f.feats', freeze=freeze),
                self.train(f'whole_{owner}', freeze=freeze))

    def test_a_damaged_file(self):
        self.train('one', '--epochs', '1', '--cache-features', 'f.feats')
        path = Path(self.path('f.feats'))
        data = path.read_bytes()
        middle = len(data) // 2
        path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1:])
        self.refused(3, 'are not what was written there', *self.command(
            '--freeze-until', 'c2', '--cache-features', 'f.feats', '--epochs', '1', '--quiet'))
        path.write_bytes(data[:middle])  # cut short: made anew
        self.assertEqual(self.train('two', '--epochs', '1', '--cache-features', 'f.feats'),
                         self.sha256('one'))

    def test_nothing_to_keep(self):
        self.refused(2, 'no frozen parameters come before', *self.command(
            '--cache-features', 'memory', '--quiet'))
        # dropout in front of all: its values differ in each epoch
        self.put('net.yaml', NET.replace('layers:\n', 'layers:\n  - dropout: {rate: 0.1}\n'))
        self.refused(2, 'no frozen parameters come before', *self.command(
            '--freeze-until', 'c2', '--cache-features', 'memory', '--quiet'))

    def computing_features(self):
        """A training that has begun to."""
        self.put('net.yaml', NET.replace('filters: 4, kernel: 3, stride: 2',
                                         'filters: 64, kernel: 5, padding: same')
                 .replace('filters: 8', 'filters: 64'))
        running = subprocess.Popen(
            [PROGRAM, *self.command('--freeze-until', 'c2', '--cache-features', 'f.feats',
                                    '--run', 'run', '--epochs', '1', count=40000)],
            cwd=self.folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
            env=self.environment())
        self.addCleanup(running.stderr.close)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        # Its file is there from the first features on; they take a second and more.
        while running.poll() is None and not glob.glob(self.path('f.feats.*')):
            time.sleep(0.005)
        return running

    def test_killed_while_features_are_computed(self):
        """The next run removes what was left, and nothing else that looks like it."""
        running = self.computing_features()
        running.kill()
        running.wait()
        self.put(f'f.feats.{os.getpid()}-0.tmp', 'of one who lives')
        self.put('f.feats.tmp', 'mine')
        names = set(os.listdir(self.folder))
        self.assertEqual(len([n for n in names if n.startswith('f.feats')]), 3)
        self.run_program(*self.command('--freeze-until', 'c2', '--cache-features', 'f.feats',
                                       '--epochs', '1'))
        left = [n for n in names if n.startswith(f'f.feats.{running.pid}-')]
        self.assertEqual(names - set(os.listdir(self.folder)), set(left))
        self.assertEqual(len(left), 1)

    def test_interrupted_while_features_are_computed(self):
        running = self.computing_features()
        running.send_signal(signal.SIGINT)
        said = running.stderr.read()
        self.assertEqual(running.wait(timeout=60), 130, said)
        self.assertIn('interrupted while features were computed', said)
        self.assertFalse(os.path.exists(self.path('f.feats')))
        self.assertEqual(os.listdir(self.path('run/checkpoints')),
                         ['step-00000000.safetensors'])
        done = self.run_program(*self.command('--freeze-until', 'c2', '--run', 'run', '--steps',
                                              '1', '--epochs', '1', count=40000))
        self.assertIn('steps       1\n', done.stdout)


program.main()
