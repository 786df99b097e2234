"""One model divided among the devices of a group has the bits of one device."""
import json
import os

import program
from program import ProgramTest

NET = """name: net
input: [28, 28, 1]
layers:
  - {device: front, conv2d: {filters: 8, kernel: 3}}
  - batch_norm
  - relu
  - max_pool: {size: 2}
  - {name: middle, device: back, conv2d: {filters: 8, kernel: 3, activation: relu}}
  - flatten
  - dropout: {rate: 0.25}
  - {name: wide, dense: {units: 64, activation: relu}}
  - dense: {units: 10}
  - softmax
"""

# Two branches of one image, one of which other text would put elsewhere.
BRANCHES = """name: branches
input: [28, 28, 1]
layers:
  - {name: left, conv2d: {filters: 8, kernel: 3, activation: relu}}
  - {name: small, max_pool: {size: 2}}
  - {name: right, from: image, conv2d: {filters: 8, kernel: 3, activation: tanh}}
  - {name: less, max_pool: {size: 2}}
  - {from: [small, less], concat: {axis: c}}
  - flatten
  - dense: {units: 10}
  - softmax
"""


# Weights of two places, whose gradients come last, behind those that others send before: of
# another bucket, for what is tracked or since there are so many.
SHARED = """name: shared
input: [28, 28, 1]
layers:
  - {device: front, batch_norm: }
  - flatten
  - {dense: {units: %d}}
  - {name: hidden, dense: {units: 16, activation: relu}}
  - {name: once, dense: {units: 16, activation: tanh}}
  - {device: back, weights: once, dense: {units: 16, activation: tanh}}
  - dense: {units: 10}
  - softmax
"""


# One layer used five times in a row.
OFTEN = """name: often
input: [28, 28, 1]
layers:
  - flatten
  - {name: wide, dense: {units: 64}}
  - {name: first, dense: {units: 64, activation: tanh}}
  - {name: second, weights: first, dense: {units: 64, activation: tanh}}
  - {name: third, weights: first, dense: {units: 64, activation: tanh}}
  - {name: fourth, weights: first, dense: {units: 64, activation: tanh}}
  - {name: last, weights: first, dense: {units: 64, activation: tanh}}
  - dense: {units: 10}
  - softmax
"""


class Places(ProgramTest):
    OPTIONS = ['--data', 'synthetic:digits,count=1036', '--batch-size', '96', '--shards', '8',
               '--epochs', '100', '--set', 'optimizer=adam beta_1=0.8', '--set', 'ema=0.9']

    def setUp(self):
        super().setUp()
        self.put('net.yaml', NET)
        self.put('branches.yaml', BRANCHES)

    def bits(self, run, *arguments, model='net.yaml', **environment):
        done = self.run_program('train', model, *self.OPTIONS, '--run', run, *arguments,
                                environment=environment)
        self.stderr = done.stderr
        return self.sha256(run)

    def test_same_bits(self):
        """Losses, validation and parameters are those of one device."""
        one = self.bits('one', '--steps', '26', '--device', '0', '--place', 'off')
        figures = self.figures('one')
        cases = {'text': ('--device', '0*2'), 'groups': ('--device', '0*4'),
                 'back': ('--device', '0*2', '--place', 'front=1,back=0'),
                 'entry': ('--device', '0*3', '--place', 'front=0,back=1,wide=2'),
                 'auto': ('--device', '0*2', '--place', 'auto'),
                 'pieces': ('--device', '0*2', '--set', 'accumulate=8')}
        for run, arguments in cases.items():
            self.assertEqual(self.bits(run, '--steps', '26', *arguments), one, run)
            self.assertEqual(self.figures(run), figures, run)
        self.assertIn('2 groups of 2 devices', self.first_event('groups'))
        for device in self.events('groups', 'step')[-1]['devices']:
            first, second = device['places']
            self.assertGreater(min(first['compute_ms'], second['compute_ms']), 0)
            self.assertGreaterEqual(min(first['idle_ms'], second['idle_ms']), 0)
            # what the first one makes, [8, 13, 13] floats in batch tiles, and its gradient
            self.assertEqual(first['crossing_bytes'], second['crossing_bytes'])
            self.assertGreaterEqual(first['crossing_bytes'],
                                    4 * 8 * 13 * 13 * device['samples'])
        with open(self.path('groups/env.json')) as file:
            self.assertEqual(len(json.load(file)['devices']), 4)

    def figures(self, run):
        return [(event['event'], event['loss']) for event in self.events(run)
                if event['event'] in ('step', 'eval')]

    def first_event(self, run):
        return self.events(run)[0]['text']

    def test_branches(self):
        """Both branches read the image, which is read once and drawn for once."""
        for more in (), ('--augment', 'flip=horizontal padding=2 brightness=0.2'):
            options = '--fresh', '--steps', '20', *more
            one = self.bits('one', *options, '--device', '0', model='branches.yaml')
            for place in 'auto', 'left=0,right=1':
                self.assertEqual(self.bits(place, *options, '--device', '0*2', '--place',
                                           place, model='branches.yaml'), one, (place, more))

    def test_shared_weights(self):
        for units in 32, 512:
            self.put('net.yaml', SHARED % units)
            one, two = (self.bits(f'{name}{units}', '--steps', '6', '--device', device)
                        for name, device in (('one', '0'), ('two', '0*2')))
            self.assertEqual(two, one, units)

    def test_weights_used_often(self):
        """Gradients of all uses are added in their order, wherever each is."""
        self.put('often.yaml', OFTEN)
        for more in (), ('--precision', 'mixed'):
            options = '--fresh', '--steps', '6', *more
            one = self.bits('one', *options, '--device', '0', '--place', 'off',
                            model='often.yaml')
            for devices, place in (('0*2', 'auto'), ('0*2', 'wide=1,third=0'),
                                   ('0*3', 'first=0,second=1,last=2'),
                                   ('0*4', 'first=0,third=1')):
                self.assertEqual(self.bits('several', *options, '--device', devices, '--place',
                                           place, model='often.yaml'), one, (place, more))
            self.assertEqual(self.bits('pieces', *options, '--device', '0*2', '--place',
                                       'first=0,third=1', '--set', 'accumulate=8',
                                       model='often.yaml'), one)
        place = '--device', '0*2', '--place', 'first=0,third=1'
        self.run_program('scale', 'often.yaml', *place, '--batch-size', '96', '--shards', '8')
        told = json.loads(self.run_program('summary', 'often.yaml', *place, '--json').stdout)
        [weights] = [c for c in told['division']['crossings'] if c['weights']]
        self.assertEqual(weights['forward'] / 3, 4 * (64 * 64 + 128))

    def test_two_losses(self):
        """Their sum is where nobody waits for it: on the side branch's device, or the other."""
        rows = [f'{i % 7},{i % 5},{i % 3},{i % 11 / 10}' for i in range(40)]
        self.put('rows.csv', '\n'.join(['a,b,kind,size', *rows, '']))
        net = """name: two
input: {x: [2]}
layers:
  - {name: stem, dense: {units: 4}, device: a}
  - {name: size, from: stem, dense: {units: 1}, device: %s}
  - {name: kind, from: stem, dense: {units: 3}, device: %s}
  - {name: chance, from: kind, softmax: }
output: {kind: chance, size: size}
loss: {kind: cross_entropy, size: huber}
"""
        data = ('--data', 'csv:rows.csv,fields=x:a+b,label=kind:kind,size:size', '--batch-size',
                '16', '--steps', '3', '--val', 'off')
        found = set()
        for run, devices, place in (('one', ('b', 'a'), ('--device', '0', '--place', 'off')),
                                    ('side', ('b', 'a'), ('--device', '0*2')),
                                    ('main', ('a', 'b'), ('--device', '0*2'))):
            self.put('net.yaml', net % devices)
            self.run_program('train', 'net.yaml', *data, *place, '--run', run)
            found.add(self.sha256(run))
        self.assertEqual(len(found), 1, found)

    def test_few_samples(self):
        """Images of few samples of a shard lie in plane tiles, and cross so."""
        few = '--fresh', '--steps', '9', '--batch-size', '28'
        cases = {'net.yaml': ('front=0,back=1', 'front=1,back=0', 'auto'),
                 'branches.yaml': ('left=0,right=1', 'left=1,right=0', 'auto')}
        for model, places in cases.items():
            one = self.bits('one', *few, '--device', '0', '--place', 'off', model=model)
            with open(self.path('one/env.json'), encoding='utf-8') as file:
                self.assertTrue(json.load(file)['plane_tiles'])
            for place in places:
                self.assertEqual(self.bits('two', *few, '--device', '0*2', '--place', place,
                                           model=model), one, (model, place))
                [device] = self.events('two', 'step')[-1]['devices']
                self.assertTrue(all(p['compute_ms'] > 0 for p in device['places']))

    def test_sums_over_places(self):
        """The norm of a gradient and penalties are sums over the parameters of all places."""
        penalized = NET.replace('{filters: 8, kernel: 3}', '{filters: 8, kernel: 3}, l2: 0.01')
        self.put('penalized.yaml', penalized.replace('dense: {units: 10}',
                                                       '{dense: {units: 10}, l1: 0.001}'))
        for model, *options in (('net.yaml', '--set', 'clip_norm=0.5'),
                                ('penalized.yaml', '--set', 'clip_norm=0.5'),
                                ('penalized.yaml', '--set', 'clip_norm=0'),
                                ('penalized.yaml', '--precision', 'mixed', '--set',
                                 'clip_norm=0.5'),
                                # every step overflows
                                ('net.yaml', '--precision', 'mixed', '--set',
                                 'loss_scale=16777216')):
            options = '--fresh', '--steps', '9', *options
            one = self.bits('one', *options, '--device', '0', '--place', 'off', model=model)
            losses = self.figures('one')
            for devices, place in (('0*2', ''), ('0*4', 'front=1,back=0'),
                                   ('0*3', 'front=0,back=2,max_pool_1=1')):
                placed = ('--place', place) if place else ()
                self.assertEqual(self.bits('several', *options, '--device', devices, *placed,
                                           model=model), one, (options, devices, place))
                self.assertEqual(self.figures('several'), losses)

    def test_nothing_to_train(self):
        """A device of a group may have no parameter that is trained."""
        checked = '--steps', '8', '--set', 'check_every=2'
        one = self.bits('one', *checked, '--device', '0', '--place', 'off')
        last = self.bits('last', *checked, '--device', '0', '--place', 'off', '--train-last',
                         '1')
        self.assertEqual(self.bits('bare', *checked, '--device', '0*3', '--place',
                                   'front=0,back=2,max_pool_1=1'), one)
        self.assertEqual(self.bits('two groups', *checked, '--device', '0*6', '--place',
                                   'front=0,back=2,max_pool_1=1'), one)
        self.assertEqual(self.bits('frozen', *checked, '--device', '0*2', '--train-last', '1'),
                         last)

    def test_row_lists(self):
        """The gradient of a large table comes as a list of the rows that were read."""
        words = [f'word{i}' for i in range(400)]
        self.put('texts.txt', ''.join(f'{"ab"[i % 2]}\t{" ".join(words[i % 390:i % 390 + 5])}\n'
                                      for i in range(600)))
        self.put('words.yaml', 'input: {tokens: {shape: [5], type: int32, length: true}}\n'
                 'vocabulary: 4000\nclasses: 2\nlayers:\n'
                 '  - embedding: {vocabulary: $vocabulary, units: 128}\n'
                 '  - lstm: {units: 16}\n  - dense: {units: $classes}\n  - softmax\n')
        train = ('train', 'words.yaml', '--data', 'text:texts.txt,unit=word,length=5',
                 '--batch-size', '32', '--shards', '8', '--steps', '4', '--run')
        self.run_program(*train, 'one', '--device', '0')
        self.run_program(*train, 'two', '--device', '0*2', '--place', 'dense_1=1')
        self.assertEqual(self.sha256('two'), self.sha256('one'))

    def test_other_places(self):
        """A run goes on with its model divided otherwise."""
        one = self.bits('one', '--steps', '24', '--device', '0', '--place', 'off')
        self.bits('moved', '--steps', '7', '--device', '0*2')
        self.bits('moved', '--steps', '13', '--device', '0', '--place', 'off')
        self.bits('moved', '--steps', '18', '--device', '0*4', '--place', 'wide=1')
        self.assertEqual(self.bits('moved', '--steps', '24', '--device', '0*2', '--place',
                                   'auto'), one)
        evaluated = self.run_program('eval', 'moved', '--device', '0', '--json')
        self.assertEqual(evaluated.returncode, 0)

    def test_memory(self):
        """What one device has no room for trains on two."""
        self.put('deep.yaml', 'input: [28, 28, 1]\nlayers:\n  - flatten\n' +
                 4 * '  - dense: {units: 1024, activation: relu}\n' +
                 '  - dense: {units: 10}\n  - softmax\n')
        one = self.bits('one', '--steps', '3', '--device', '0', model='deep.yaml')
        limit = '--steps', '3', '--memory-limit', '100M'
        refused = self.run_program('train', 'deep.yaml', *self.OPTIONS, '--run', 'no', *limit,
                                   '--device', '0', status=4)
        self.assertIn('of device memory', refused.stderr)
        self.assertEqual(self.bits('two', *limit, '--device', '0*2', '--place', 'auto',
                                   model='deep.yaml'), one)
        self.refused(4, ['place: auto', 'none fits'], 'train', 'deep.yaml', *self.OPTIONS,
                     '--run', 'no', '--memory-limit', '40M', '--device', '0*2', '--place',
                     'auto')

    def test_few_shards(self):
        """Where memory is short, fewer shards are computed at a time, and fewer are on their
        way."""
        self.put('wide.yaml', 'input: [28, 28, 1]\nlayers:\n' +
                 4 * '  - conv2d: {filters: 32, kernel: 3, activation: relu}\n' +
                 '  - flatten\n  - dense: {units: 10}\n  - softmax\n')
        options = ['--steps', '2', '--set', 'batch_size=256', '--set', 'shards=64']
        one = self.bits('one', *options, '--device', '0', model='wide.yaml')
        options += ['--device', '0*2', '--memory-limit', '40M', '--place']
        for place in 'auto', 'conv2d_1=0,conv2d_3=1':
            self.assertEqual(self.bits(place, *options, place, model='wide.yaml'), one)
            self.assertIn('shards at a time', self.stderr)

    def test_lost_group(self):
        """Where a device of a group fails the others go on."""
        one = self.bits('one', '--steps', '20', '--device', '0', '--place', 'off')
        self.assertEqual(self.bits('lost', '--steps', '20', '--device', '0*4', '--split', 'all',
                                   LOCKSTEP_FAIL='1:5'), one)
        self.assertIn('group 1', self.stderr)
        self.assertIn('1 group is left', self.stderr)

    def test_placed_anew(self):
        """Where no group is left the model is placed on those devices that are."""
        one = self.bits('one', '--steps', '20', '--device', '0', '--place', 'off')
        for run, devices, fails, left in (('two', '0/2.0,0/2.1', '0.1:7', '0/2.0'),
                                          ('first', '0*3', '0.0:7', '0*2'),
                                          ('three', '0*3', '0.2:7', '0*2')):
            self.assertEqual(self.bits(run, '--steps', '20', '--device', devices, '--place',
                                       'auto', LOCKSTEP_FAIL=fails), one, run)
            self.assertIn('placed anew on what is left: --device ' + left + '\n', self.stderr)
        failed = self.run_program('train', 'net.yaml', *self.OPTIONS, '--run', 'no', '--steps',
                                  '20', '--device', '0*2', status=4,
                                  environment={'LOCKSTEP_FAIL': '0:7'})
        self.assertIn('no group is left: group 0: ', failed.stderr)
        self.assertEqual(self.bits('no', '--steps', '20', '--device', '0*2', '--fresh'), one)

    def test_async(self):
        self.bits('async', '--steps', '12', '--device', '0*4', '--mode', 'async')
        self.assertEqual(self.events('async')[-1]['event'], 'end')

    def test_refused(self):
        def refused(words, *arguments, model='net.yaml', **more):
            self.refused(2, words, 'train', model, *self.OPTIONS, '--run', 'no', '--steps', '2',
                         *arguments, **more)
        refused(['3 devices', 'divided among 2', '--place off'], '--device', '0*3')
        refused(['1 device', 'divided among 2'], '--device', '0', '--place', 'front=0,back=1')
        refused(["'other'"], '--device', '0*2', '--place', 'other=1')
        refused(['wait for each other'], '--device', '0*2', '--place',
                'front=0,back=1,wide=0')
        refused(['does not say', "'back'"], '--device', '0*2', '--place', 'front=0,wide=1')
        for words, said in (('AUTO', "'AUTO' is not NAME=NUMBER"),
                            ('front', "'front' is not NAME=NUMBER"),
                            ('front=x', "'front=x' is not NAME=NUMBER"),
                            ('front=0,back=-1', "'back=-1' is not NAME=NUMBER"),
                            ('front=0,back=99999999999', ' devices, counted from 0'),
                            ('front=0,front=0', "'front' stands in"),
                            ('other=0', "'other'"),
                            ('front=0', "'front=0' does not say where 'back' is"),
                            ('front=0,back=0', 'device 1 of a group of 2 has nothing'),
                            ('middle=0', 'device 1 of a group of 2 has nothing')):
            for command in (('train', 'net.yaml', '--run', 'no', *self.OPTIONS),
                            ('summary', 'net.yaml', '--json')):
                self.refused(2, said, *command, '--device', '0*2', '--place', words)
        three = {'POCL_DEVICES': 'pthread pthread pthread'}
        refused(['groups of devices differ', 'basic'], '--device', '0+1,2+3',
                environment={'POCL_DEVICES': 'pthread pthread pthread basic'})
        refused(['one size'], '--device', '0+1,2', '--place', 'auto', environment=three)
        refused(['are groups', '--place auto'], '--device', '0+1', model='branches.yaml',
                environment=three)
        refused(['are groups'], '--device', '0+1', '--place', 'off', environment=three)

    def test_scale(self):
        """A step of a divided model is predicted from its operations alone."""
        self.run_program('scale', 'net.yaml', '--place', 'auto', '--device', '0*2',
                         '--batch-size', '96', '--shards', '8', '--json', 'scale.json')
        with open(self.path('scale.json')) as file:
            said = json.load(file)
        self.assertEqual((said['shards'], len(said['places'])), (8, 2))
        self.assertEqual(said['shards_at_once'] * said['micro_batches'], 8)
        for place in said['places']:
            self.assertGreater(min(place['compute_ms'], place['crossing_ms']), 0)
            self.assertAlmostEqual(sum(place.values()), said['step_ms'], places=6)
        self.assertGreater(said['alone_ms'], 0)
        self.assertEqual(said['reading_ms'], 0)
        self.refused(2, '--place and --devices', 'scale', 'net.yaml', '--place', 'auto',
                     '--devices', '1,2')
        self.refused(2, 'a group of 1 device', 'scale', 'net.yaml', '--place', 'auto',
                     '--device', '0', '--batch-size', '96')
        self.refused(2, 'wait for each other', 'scale', 'net.yaml', '--place',
                     'front=0,back=1,wide=0', '--device', '0*2')
        self.refused(2, '--data names no data', 'scale', 'net.yaml', '--data', '')

    def test_scale_of_few_samples(self):
        """Where images lie in plane tiles, so that others stand between them."""
        self.run_program('scale', 'branches.yaml', '--place', 'auto', '--device', '0*2',
                         '--batch-size', '8', '--shards', '4', '--json', 'scale.json')
        with open(self.path('scale.json')) as file:
            places = json.load(file)['places']
        for place in places:
            self.assertGreater(place['compute_ms'], 0)

    def test_scale_with_reading(self):
        """Samples are read by the cores that a step is computed on: they need time for both."""
        scale = 'scale', 'net.yaml', '--batch-size', '96', '--json', 'scale.json'
        group = *scale, '--place', 'auto', '--device', '0*2'
        self.run_program(*group, '--data', 'synthetic:digits,count=1000')
        with open(self.path('scale.json')) as file:
            said = json.load(file)
        self.assertGreater(said['reading_ms'], 0)
        for place in said['places']:
            self.assertLessEqual(place['reading_ms'], said['reading_ms'])
            self.assertAlmostEqual(sum(place.values()), said['step_ms'], places=6)
        busy = sum(place['compute_ms'] + place['crossing_ms'] for place in said['places']) / 2
        self.assertGreaterEqual(said['step_ms'] + 1e-6,
                                busy + said['reading_ms'] / os.cpu_count())
        self.run_program(*scale, '--devices', '1,2', '--data', 'synthetic:digits,count=1000')
        with open(self.path('scale.json')) as file:
            said = json.load(file)
        self.assertGreater(said['reading_ms_per_sample'], 0)
        self.assertGreaterEqual(said['rows'][0]['ms']['reading samples'], 0)
        self.refused(3, "'nowhere'", *group, '--data', 'idx:nowhere')

    def test_scale_of_texts(self):
        """Operations that take lengths are measured with all steps: else all estimates would be
        scaled by the small rest."""
        self.put('net.yaml', 'input: {tokens: {shape: [24], type: int32, length: true}}\n'
                 'vocabulary: 100\nclasses: 2\nlayers:\n'
                 '  - embedding: {vocabulary: 100, units: 16}\n'
                 '  - lstm: {units: 64, return_sequences: true}\n  - lstm: {units: 64}\n'
                 '  - dense: {units: 2}\n  - softmax\n')
        self.run_program('scale', 'net.yaml', '--place', 'auto', '--device', '0*2',
                         '--batch-size', '64', '--shards', '4', '--json', 'scale.json')
        with open(self.path('scale.json')) as file:
            said = json.load(file)
        self.assertLess(said['step_ms'], 20 * said['alone_ms'])
        self.assertGreater(20 * said['step_ms'], said['alone_ms'])

    def test_list(self):
        """Groups of a list, on PoCL made of one device."""
        one = self.bits('one', '--steps', '20', '--device', '0', '--place', 'off')
        self.assertEqual(self.bits('four', '--steps', '20', '--device', '0+1,2+3',
                                   POCL_DEVICES='pthread pthread pthread pthread'), one)
        self.assertIn('2 groups of 2 devices', self.first_event('four'))


if __name__ == '__main__':
    program.main()
