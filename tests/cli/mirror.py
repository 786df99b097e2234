"""One model on several devices: the same parameters, bit for bit, whoever computes what."""
import json
import math

import program
from program import ProgramTest

# All that sums over samples or draws numbers, and more parameters than one bucket holds.
NET = """name: net
input: [28, 28, 1]
layers:
  - conv2d: {filters: 8, kernel: 3, activation: relu}
  - batch_norm
  - max_pool: {size: 2}
  - dropout: {rate: 0.25}
  - flatten
  - dense: {units: 256, activation: relu}
  - dropout
  - dense: {units: 10}
  - softmax
"""
SAMPLES, BATCH = 1036, 96  # the last batch of an epoch has 76 samples: one shard is not full


# All that moves values, with sums over the pixels that a number counts for.
ARRANGED = """name: arranged
input: [28, 28, 1]
layers:
  - pad: {padding: 2, mode: reflect}
  - {name: wide, conv2d: {filters: 8, kernel: 3, stride: 2, activation: relu}}
  - {name: small, max_pool: {size: 3}}
  - {name: large, upsample: {size: 3, interpolation: bilinear}}
  - {from: wide, global_average_pool: }
  - {name: gain, dense: {units: 8, activation: sigmoid}}
  - {name: bent, from: [gain, large], multiply: }
  - {name: half, slice: {c: [2, -2], h: [1, 0]}}
  - {name: other, from: wide, slice: {c: [4, 0], h: [0, -1]}}
  - {from: [half, other, half], concat: }
  - crop: {cropping: 2}
  - conv2d: {filters: 12, kernel: 3, stride: 2}
  - {name: both, upsample: {size: 2}}
  - {from: both, global_max_pool: }
  - {name: shift, dense: {units: 12, activation: tanh}}
  - {from: [both, shift], add: {activation: relu}}
  - pad: {padding: [0, 1], channels: [1, 0]}
  - flatten
  - dense: {units: 10}
  - softmax
"""

# Sequences of several lengths, through every kind of recurrent layer and both directions.
TEXT = """name: text
input: {tokens: {shape: [24], type: int32, length: true}}
classes: 4
layers:
  - {name: words, embedding: {vocabulary: 256, units: 12}}
  - {name: ahead, from: words, lstm: {units: 16, return_sequences: true}}
  - {name: back, from: words, gru: {units: 16, return_sequences: true, go_backwards: true}}
  - {from: [ahead, back], concat: {axis: c}}
  - rnn: {units: 20, return_sequences: true}
  - gru: {units: 16, reset_after: false}
  - dense: {units: 4}
  - softmax
"""


class Mirror(ProgramTest):
    OPTIONS = ['net.yaml', '--data', f'synthetic:digits,count={SAMPLES}', '--batch-size',
               str(BATCH), '--shards', '8', '--epochs', '100', '--set', 'validation=off']

    def setUp(self):
        super().setUp()
        self.put('net.yaml', NET)

    def bits(self, run, *arguments, **environment):
        done = self.run_program('train', *self.OPTIONS, '--run', run, *arguments,
                                environment=environment)
        self.stderr = done.stderr
        return self.sha256(run)

    def ledger(self, run, epochs):
        """Every sample of every epoch was counted once, in steps that follow one another."""
        steps = self.events(run, 'step')
        self.assertEqual([e['step'] for e in steps], list(range(1, len(steps) + 1)))
        self.assertEqual(sum(e['samples'] for e in steps), epochs * SAMPLES)
        for event in steps:
            there = [device for device in event['devices'] if device]
            self.assertEqual(sum(device['samples'] for device in there), event['samples'])
            self.assertAlmostEqual(sum(device['share'] for device in there), 1)

    def test_hundred_steps(self):
        one = self.bits('one', '--steps', '110')
        self.ledger('one', 10)
        cases = {'sub': ('0/2',), 'two': ('0*2',), 'three': ('0*3',), 'four': ('0*4',),
                 'weighted': ('0*3', '--split', '5:1:2'), 'idle': ('0*2', '--split', '1:0'),
                 'equal': ('0*4', '--split', 'equal', '--check-every', '1')}
        for name, options in cases.items():
            with self.subTest(name):
                self.assertEqual(self.bits(name, '--steps', '110', '--device', *options), one)
                self.ledger(name, 10)
                self.assertNotIn('is lost', self.stderr)
                self.assertNotIn('differ', self.stderr)

    def test_arranged(self):
        """The parts of images that are cut, put together, padded, enlarged, and scaled."""
        self.put('net.yaml', ARRANGED)
        more = '--steps', '40', '--lr', '0.003'
        one = self.bits('one', *more)
        losses = [event['loss'] for event in self.events('one', 'step')]
        self.assertLess(losses[-1], 0.8 * losses[0])
        self.assertEqual(self.bits('three', *more, '--device', '0*3'), one)
        self.assertEqual(self.bits('part', *more, '--device', '0/2'), one)
        self.assertNotIn('differ', self.stderr)

    def has_planes(self, run):
        with open(self.path(f'{run}/env.json'), encoding='utf-8') as file:
            return json.load(file)['plane_tiles']

    def test_few_samples_of_a_shard(self):
        """Images in plane tiles: whoever computes a shard, also one that is not full, and a run
        that goes on."""
        self.put('net.yaml', ARRANGED)
        more = '--batch-size', '8', '--shards', '4'
        one = self.bits('one', *more, '--steps', '131')
        self.assertTrue(self.has_planes('one'))
        self.assertEqual(self.bits('three', *more, '--steps', '131', '--device', '0*3'), one)
        self.bits('parts', *more, '--steps', '64')
        self.assertEqual(
            self.bits('parts', *more, '--steps', '131', '--device', '0/2'), one)
        self.assertNotIn('differ', self.stderr)
        asked = self.bits('asked', *more, '--steps', '131', '--set', 'tiles=planes')
        self.assertEqual(asked, one)

    def test_which_lie_in_plane_tiles(self):
        """Up to four samples of a shard, where nothing is frozen and no halves are stored."""
        self.put('net.yaml', ARRANGED)
        for has, batch, shards, *more in (
                (True, 4, 1), (False, 5, 1), (True, 15, 4), (False, 17, 4),
                (False, 4, 1, '--set', 'tiles=batch'), (True, 8, 1, '--set', 'tiles=planes'),
                (False, 4, 1, '--precision', 'mixed'), (False, 4, 1, '--train-last', '1')):
            self.bits('run', '--fresh', '--steps', '1', '--batch-size', str(batch), '--shards',
                      str(shards), *more)
            self.assertEqual(self.has_planes('run'), has, (batch, shards, more))

    def test_a_run_keeps_to_its_tiles(self):
        """One that was begun with a setting goes on without it."""
        self.put('net.yaml', ARRANGED)
        for tiles, batch in (('batch', '4'), ('planes', '8')):
            more = '--batch-size', batch, '--shards', '1'
            asked = '--set', 'tiles=' + tiles
            one = self.bits('one', '--fresh', *more, *asked, '--steps', '6')
            self.bits('parts', '--fresh', *more, *asked, '--steps', '3')
            self.assertEqual(self.bits('parts', *more, '--steps', '6'), one)
            self.assertEqual(self.has_planes('parts'), tiles == 'planes')

    def test_refuses_plane_tiles_by_name(self):
        self.put('net.yaml', ARRANGED)
        train = ['train', *self.OPTIONS, '--steps', '2', '--set']
        self.bits('batch', '--steps', '1')
        self.refused(2, 'has tiles batch, asked for is planes', *train, 'tiles=planes', '--run',
                     'batch')
        self.refused(2, 'for --precision float', *train, 'tiles=planes', '--precision', 'mixed',
                     '--run', 'half')
        self.refused(2, "'tiles': 'rows' is none of auto, batch, planes", *train, 'tiles=rows',
                     '--run', 'rows')

    def test_text(self):
        """Lines of other lengths, some of them longer than the model reads; with fewer samples
        a device walks their steps in another way."""
        self.put('text.yaml', TEXT)
        words = 'on', 'two', 'three', 'seventeen'
        lines = [f'{i % 4}\t' + ' '.join([words[i % 4]] * (1 + i % 6)) for i in range(256)]
        self.put('train.txt', '\n'.join(lines) + '\n')
        self.OPTIONS = ['text.yaml', '--data', 'text:train.txt,length=24', '--batch-size', '64',
                        '--shards', '4', '--epochs', '100', '--set', 'validation=off', '--lr',
                        '0.01', '--steps', '24']
        one = self.bits('one')
        losses = [event['loss'] for event in self.events('one', 'step')]
        self.assertLess(losses[-1], 0.7 * losses[0])
        for name, device in {'three': '0*3', 'part': '0/2'}.items():
            self.assertEqual(self.bits(name, '--device', device), one)
            self.assertNotIn('differ', self.stderr)

    def test_two_drivers(self):
        """Two devices of one platform, and two of its drivers."""
        one = self.bits('one', '--steps', '20')
        for drivers in 'pthread pthread', 'pthread basic':
            name = drivers.replace(' ', '-')
            self.assertEqual(self.bits(name, '--steps', '20', '--device', '0,1',
                                       POCL_DEVICES=drivers), one)

    def test_a_slow_device(self):
        """It gets fewer shards, which changes no bit."""
        one = self.bits('one', '--steps', '60')
        self.assertEqual(self.bits('slow', '--steps', '60', '--device', '0/2', '--split',
                                   'all', LOCKSTEP_SLOW='1:10'), one)
        shares = [device['share'] for device in self.events('slow', 'step')[-1]['devices']]
        self.assertGreater(shares[0], shares[1])

    def test_gone_on_elsewhere(self):
        """A run that began on one device goes on with several, and back."""
        one = self.bits('one', '--steps', '30')
        self.bits('moved', '--steps', '10')
        self.bits('moved', '--steps', '20', '--device', '0*3')
        self.assertEqual(self.bits('moved', '--steps', '30', '--device', '0/2'), one)

    def test_few_shards_at_a_time(self):
        """Four devices hold half of the shards each: with the others idle, one takes turns."""
        one = self.bits('one', '--steps', '10')
        self.assertEqual(self.bits('passes', '--steps', '10', '--device', '0*4', '--split',
                                   '0:1:0:0'), one)

    def test_copied_memory(self):
        """As with devices that share no memory with the host."""
        one = self.bits('one', '--steps', '20')
        copied = self.bits('copied', '--steps', '20', '--device', '0*3', '--split', 'all',
                           '--check-every', '1', LOCKSTEP_SHARED='copy')
        self.assertEqual(copied, one)
        self.assertNotIn('differ', self.stderr)
        self.assertNotIn('changed', self.stderr)

    def test_batch_per_device(self):
        self.bits('per', '--steps', '3', '--device', '0*2', '--split', 'equal')
        self.run_program('train', 'net.yaml', '--data', 'synthetic:digits,count=256',
                         '--batch-per-device', '64', '--epochs', '1', '--device', '0*2',
                         '--run', 'grown')
        self.assertEqual([e['samples'] for e in self.events('grown', 'step')], [128, 128])

    def test_scaled_rate(self):
        self.run_program('train', 'net.yaml', '--data', 'synthetic:digits,count=320',
                         '--batch-size', '64', '--epochs', '6', '--set', 'scale_lr=32',
                         '--lr', '0.002', '--run', 'scaled')
        rates = [e['lr'] for e in self.events('scaled', 'step')]
        self.assertTrue(math.isclose(rates[0], 0.004 / 25), rates[0])
        self.assertTrue(math.isclose(rates[-1], 0.004), rates[-1])

    def test_refusals(self):
        cases = {('--device', '0*9'): '9 devices for a batch of 96 in 8 shards: at most one '
                                      'device a shard; a larger batch or --shards 16 would',
                 ('--device', '0,0'): 'device 0 is named twice',
                 ('--device', '0,,1'): 'has an empty place',
                 ('--device', '0*2', '--split', '1:2:3'): 'split',
                 ('--device', '0*2', '--split', 'fair'): 'split'}
        for options, said in cases.items():
            with self.subTest(options):
                done = self.run_program('train', *self.OPTIONS, '--run', 'refused', *options,
                                        status=2)
                self.assertIn(said, done.stderr)


if __name__ == '__main__':
    program.main()
