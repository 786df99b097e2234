"""What settings make of updates: learning rates and decay by parameter, clipping, averages of
weights, schedules that follow the validation, batches in pieces."""
import collections
import json
import struct
from pathlib import Path

import npy
import program
from program import ProgramTest

NET = """name: net
input: [28, 28, 1]
layers:
  - {conv2d: {filters: 8, kernel: 3}LR}
  - batch_norm: {activation: relu}
  - max_pool: {size: 2}
  - flatten
  - dropout: {rate: 0.25}
  - dense: {units: 10}
  - softmax
"""

TEXT = """name: text
input: {tokens: {shape: [6], type: int32, length: true}}
classes: 2
layers:
  - embedding: {vocabulary: 64, units: 12}
  - rnn: {units: 8}
  - dense: {units: 2}
  - softmax
"""

# All of it at once. An epoch is 11 steps.
ALL = ['--optimizer', 'adamw weight_decay=0.1 decay_of=weights', '--set', 'clip_norm=0.5',
       '--set', 'ema=0.9', '--set',
       'schedule=kind=plateau factor=0.5 patience=1 min_delta=0.5']


class UpdatesTest(ProgramTest):
    OPTIONS = ['--data', 'synthetic:digits,count=524', '--batch-size', '48', '--shards', '8']

    def setUp(self):
        super().setUp()
        self.put('net.yaml', NET.replace('LR', ''))
        self.put('slow.yaml', NET.replace('LR', ', lr_scale: 0.1'))
        self.put('still.yaml', NET.replace('LR', ', lr_scale: 0'))

    def net(self, run, *arguments, model='net.yaml', **more):
        return self.run_program('train', model, *self.OPTIONS, '--run', run, *arguments, **more)

    def bits(self, run, *arguments, **more):
        self.net(run, *arguments, **more)
        return self.sha256(run)

    def arrays(self, run):
        """The newest checkpoint's arrays, as bytes."""
        checkpoints = Path(self.path(run + '/checkpoints')).glob('*.safetensors')
        return self.read(sorted(checkpoints)[-1])

    def read(self, path):
        data = Path(path).read_bytes()
        end = 8 + struct.unpack('<Q', data[:8])[0]
        return {name: data[end + of['data_offsets'][0]:end + of['data_offsets'][1]]
                for name, of in json.loads(data[8:end]).items() if name != '__metadata__'}

    def floats(self, array):
        return struct.unpack(f'<{len(array) // 4}f', array)

    def rates(self, run):
        return [e['lr'] for e in self.events(run, 'step')]

    def test_a_rate_of_its_own(self):
        arrays = {}
        for model in 'net', 'slow', 'still':
            self.net(model, '--steps', '1', '--optimizer', 'sgd lr=0.5', model=model + '.yaml')
            arrays[model] = self.arrays(model)
        name = 'conv2d_1.weight'
        net, slow, still = (self.floats(arrays[m][name]) for m in ('net', 'slow', 'still'))
        self.assertGreater(max(abs(a - b) for a, b in zip(net, still)), 0.01)
        for a, b, c in zip(net, slow, still):
            self.assertAlmostEqual(b - c, 0.1 * (a - c), delta=1e-6)
        self.assertEqual(arrays['net']['dense_1.weight'], arrays['slow']['dense_1.weight'])
        self.refused(2, ["layer 'conv2d_1' has lr_scale 1 here, 0.1 there", '--fresh'], 'train',
                     'net.yaml', *self.OPTIONS, '--run', 'slow', '--steps', '2')

    def test_lazy(self):
        """Rows of words that a batch does not have stand still, on any devices and where a run
        goes on; each batch has few of the words."""
        self.put('net.yaml', TEXT)
        lines = [f'{i % 2}\tword{i % 23} word{i % 41} word{i % 2 + 50}' for i in range(128)]
        self.put('train.txt', '\n'.join(lines) + '\n')
        self.OPTIONS = ['--data', 'text:train.txt,unit=word,length=6', '--batch-size', '16',
                        '--shards', '4', '--set', 'validation=off', '--set', 'clip_norm=1']
        lazy = ['--optimizer', 'adamw lr=0.01 weight_decay=0.1 lazy=true', '--steps', '12']
        one = self.bits('one', *lazy)
        for name, device in {'three': '0*3', 'part': '0/2'}.items():
            self.assertEqual(self.bits(name, *lazy, '--device', device), one)
        self.net('again', *lazy[:2], '--steps', '5')
        self.assertEqual(self.bits('again', *lazy), one)
        self.assertNotEqual(self.bits('dense', '--optimizer', 'adamw lr=0.01 weight_decay=0.1',
                                      '--steps', '12'), one)

        # Rows that no text has: decay moves them, unless they stand still.
        self.net('start', *lazy[:2], '--steps', '1')
        start, end, dense = (self.arrays(run)['embedding_1.weight'][-48:]
                             for run in ('start', 'one', 'dense'))
        self.assertEqual(start, end)
        self.assertNotEqual(start, dense)

    def test_penalties(self):
        """l2 is half of sgd's weight decay of weights; l1 has the weights' signs."""
        plain = ['--optimizer', 'sgd lr=0.5', '--steps', '2']
        self.put('two.yaml', NET.replace('LR', ', l2: 0.25'))
        self.put('both.yaml', NET.replace('LR', ', l2: 0.25').replace(
            'dense: {units: 10}', '{dense: {units: 10}, l2: 0.25}'))
        self.put('one.yaml', NET.replace('LR', ', l1: 0.125'))
        decayed = self.bits('decayed', '--optimizer',
                            'sgd lr=0.5 weight_decay=0.5 decay_of=weights', '--steps', '2')
        self.assertEqual(self.bits('both', *plain, model='both.yaml'), decayed)
        self.assertNotEqual(self.bits('two', *plain, model='two.yaml'), decayed)
        self.assertEqual(self.bits('devices', *plain, '--device', '0/2', model='both.yaml'),
                         decayed)
        first = ['--optimizer', 'sgd lr=0.5', '--steps', '1']
        self.net('net', *first, '--set', 'seed=3')
        self.net('one', *first, '--set', 'seed=3', model='one.yaml')
        self.net('begin', '--optimizer', 'sgd lr=0', '--steps', '1', '--set', 'seed=3')
        of = {run: self.arrays(run) for run in ('net', 'one', 'begin')}
        name = 'conv2d_1.weight'
        for a, b, w in zip(*(self.floats(of[run][name]) for run in ('net', 'one', 'begin'))):
            self.assertAlmostEqual(a - b, 0.5 * 0.125 * ((w > 0) - (w < 0)), delta=1e-6)
        self.assertEqual(of['net']['conv2d_1.bias'], of['one']['conv2d_1.bias'])
        self.refused(2, ["layer 'conv2d_1' has penalties l1 0, l2 0 here, 0.125, 0 there"],
                     'train', 'net.yaml', *self.OPTIONS, '--run', 'one', '--steps', '2')

    def losses(self, run, kind='step'):
        return [e['loss'] for e in self.events(run, kind)]

    def test_penalties_are_told(self):
        """The loss of steps and validations has those of all weights that are trained, once,
        whoever computes it."""
        head = '{dense: {units: 10}, l1: 0.25, l2: 0.5}'
        self.put('two.yaml', NET.replace('LR', ', l2: 2').replace('dense: {units: 10}', head))
        self.put('one.yaml', NET.replace('LR', ', l2: 2, trainable: false').replace(
            'dense: {units: 10}', head))
        still = ['--optimizer', 'sgd lr=0', '--steps', '3', '--val',
                 'synthetic:digits,count=100']
        ways = {'alone': [], 'devices': ['--device', '0*2', '--split', 'all'],
                'pieces': ['--set', 'accumulate=4'], 'async': ['--mode', 'async', '--device',
                                                               '0*2']}
        self.net('net', *still)
        self.net('frozen', *still, model='one.yaml')
        arrays = self.arrays('net')
        w, v = (self.floats(arrays[n + '.weight']) for n in ('dense_1', 'conv2d_1'))
        penalty = 0.25 * sum(map(abs, w)) + 0.5 * sum(x * x for x in w)
        with_frozen = penalty + 2 * sum(x * x for x in v)
        self.assertGreater(with_frozen - penalty, 0.1)
        for way, options in ways.items():
            self.net(way, *still, *options, model='two.yaml')
            for kind in 'step', 'eval':
                for plain, told in zip(self.losses('net', kind), self.losses(way, kind),
                                       strict=True):
                    self.assertAlmostEqual(told - plain, with_frozen, delta=1e-4)
        for plain, told in zip(self.losses('net'), self.losses('frozen'), strict=True):
            self.assertAlmostEqual(told - plain, penalty, delta=1e-4)
        kernels = {'LOCKSTEP_CLASS': 'gpu'}
        self.net('plain_gpu', *still, environment=kernels)
        self.net('gpu', *still, model='two.yaml', environment=kernels)
        for plain, told in zip(self.losses('plain_gpu'), self.losses('gpu'), strict=True):
            self.assertAlmostEqual(told - plain, with_frozen, delta=1e-4)
        found = json.loads(self.run_program('eval', 'alone', '--json').stdout)
        self.assertAlmostEqual(found['loss'], self.losses('alone', 'eval')[-1], delta=1e-6)
        for way in 'devices', 'pieces':
            self.assertEqual(self.losses(way), self.losses('alone'))
            self.assertEqual(self.losses(way, 'eval'), self.losses('alone', 'eval'))

    def test_decay_spares_vectors(self):
        arrays = {}
        for of, optimizer in (('none', 'weight_decay=0'), ('all', 'weight_decay=0.5'),
                              ('weights', 'weight_decay=0.5 decay_of=weights')):
            for kind in 'sgd', 'adamw':
                self.net(of + kind, '--steps', '2', '--optimizer',
                         f'{kind} lr=0.01 {optimizer}', model='still.yaml')
                arrays[of, kind] = self.arrays(of + kind)
        for kind in 'sgd', 'adamw':
            none, every, weights = (arrays[of, kind] for of in ('none', 'all', 'weights'))
            self.assertNotEqual(none['dense_1.weight'], weights['dense_1.weight'])
            # Gradients of the second step differ a little with what has decayed in the first.
            gamma = [self.floats(a['batch_norm_1.gamma'])[0] for a in (none, every, weights)]
            self.assertLess(abs(gamma[2] - gamma[0]), 1e-3)
            self.assertGreater(abs(gamma[1] - gamma[0]), 5e-3)

    def test_decay_spares_scales_of_single_numbers(self):
        self.put('net.yaml', """name: net
input: [28, 28, 1]
layers:
  - {name: n, layer_norm: {axis: all}}
  - flatten
  - dense: {units: 10}
  - softmax
""")
        self.net('spared', '--steps', '1', '--optimizer',
                 'sgd lr=0.5 weight_decay=0.5 decay_of=weights', model='net.yaml')
        self.net('none', '--steps', '1', '--optimizer', 'sgd lr=0.5', model='net.yaml')
        spared, none = self.arrays('spared'), self.arrays('none')
        self.assertEqual(spared['n.gamma'], none['n.gamma'])
        self.assertNotEqual(spared['dense_1.weight'], none['dense_1.weight'])

    def test_clipping(self):
        plain = self.bits('plain', '--steps', '4', '--optimizer', 'sgd lr=0.1')
        for setting in 'clip_norm', 'clip_value':
            run = lambda limit: self.bits(f'{setting}{limit}', '--steps', '4', '--optimizer',
                                          'sgd lr=0.1', '--set', f'{setting}={limit}')
            self.assertEqual(run('1e20'), plain)
            self.assertNotEqual(run('0.01'), plain)
        self.net('one', '--steps', '1', '--optimizer', 'sgd lr=1', '--set', 'clip_norm=0.01',
                 model='still.yaml')
        self.net('none', '--steps', '1', '--optimizer', 'sgd lr=1', '--set', 'clip_norm=1e-9',
                 model='still.yaml')
        squares = 0
        one, none = self.arrays('one'), self.arrays('none')
        for name in one:
            if 'moving' not in name:
                squares += sum((a - b) ** 2 for a, b in zip(self.floats(one[name]),
                                                            self.floats(none[name])))
        self.assertLess(squares ** 0.5, 0.0101)  # conv2d's, which stay, are in the norm too
        self.assertGreater(squares ** 0.5, 0.001)
        self.refused(2, "'clip_norm': -1 is not in", 'train', 'net.yaml', *self.OPTIONS,
                     '--set', 'clip_norm=-1')

    def test_the_same_bits(self):
        """On one device, on several, in pieces, stopped and gone on."""
        whole = self.bits('whole', '--epochs', '3', *ALL, model='slow.yaml')
        self.assertEqual(self.rates('whole'), 22 * [0.001] + 11 * [0.0005])
        for run, more in (('twice', ['--device', '0*2', '--split', 'all']),
                          ('halves', ['--device', '0/2', '--split', '1:3']),
                          ('pieces', ['--set', 'accumulate=4']),
                          ('odd', ['--set', 'accumulate=3', '--device', '0*2'])):
            self.assertEqual(self.bits(run, '--epochs', '3', *ALL, *more, model='slow.yaml'),
                             whole, run)
        for stop in '5', '11', '22', '23':
            run = 'parts' + stop
            self.net(run, '--epochs', '3', '--steps', stop, *ALL, model='slow.yaml')
            self.assertEqual(self.bits(run, '--epochs', '3', *ALL, model='slow.yaml'), whole)
            self.assertEqual(self.rates(run), self.rates('whole'))
        self.assertEqual(self.arrays('parts5'), self.arrays('whole'))

    def test_averages(self):
        plain = self.bits('plain', '--epochs', '2')
        self.assertEqual(self.bits('run', '--epochs', '2', '--set', 'ema=0.9'), plain)
        found = {run: self.events(run, 'eval')[-1]['loss'] for run in ('plain', 'run')}
        self.assertNotEqual(found['plain'], found['run'])
        for run in found:
            done = self.run_program('eval', run, '--json')
            self.assertAlmostEqual(json.loads(done.stdout)['loss'], found[run], delta=1e-6)
            self.assertEqual('moving average' in done.stderr, run == 'run', done.stderr)
        arrays = self.arrays('run')
        self.assertNotEqual(arrays['optimizer.ema.dense_1.weight'], arrays['dense_1.weight'])
        self.assertNotIn('optimizer.ema.batch_norm_1.moving_mean', arrays)
        again = ['train', 'net.yaml', *self.OPTIONS, '--epochs', '3', '--run']
        self.refused(2, "checkpoint has a moving average of the weights, asked for is ema 0",
                     *again, 'run')
        self.refused(2, "checkpoint has no moving average of the weights, asked for is ema 0.5",
                     *again, 'plain', '--set', 'ema=0.5')

    def test_averages_are_exported_and_computed_with(self):
        self.net('run', '--steps', '5', '--set', 'ema=0.9')
        done = self.run_program('export', 'run', '--format', 'safetensors', '-o', 'exported')
        self.assertIn('moving average', done.stderr)
        arrays, exported = self.arrays('run'), self.read(self.path('exported'))
        for name in exported:
            self.assertEqual(exported[name], arrays.get('optimizer.ema.' + name, arrays[name]))
        self.assertNotEqual(exported['dense_1.weight'], arrays['dense_1.weight'])
        npy.write(self.path('x.npy'), '|u1', (2, 28, 28, 1), [x % 251 for x in range(2 * 784)])
        for model, weights, to in (('run', [], 'a'),
                                   ('net.yaml', ['--weights', 'exported'], 'b')):
            self.run_program('run', model, '--input', 'x.npy', '--output', to, *weights)
        self.assertEqual(npy.read(self.path('a/softmax_1.npy')),
                         npy.read(self.path('b/softmax_1.npy')))

    def test_a_run_begins_with_averages(self):
        """Of the run whose weights it takes, as its evaluation and its export do."""
        self.net('run', '--steps', '5', '--set', 'ema=0.9')
        self.net('next', '--steps', '1', '--optimizer', 'sgd lr=0', '--init-from', 'run')
        averaged, begun = self.arrays('run'), self.arrays('next')
        for name in 'conv2d_1.weight', 'dense_1.weight', 'dense_1.bias':
            self.assertEqual(begun[name], averaged['optimizer.ema.' + name])
            self.assertNotEqual(begun[name], averaged[name])

    def test_without_lockstep(self):
        self.net('run', '--mode', 'async', '--device', '0*2', '--epochs', '2', *ALL)
        self.assertIn('optimizer.ema.dense_1.weight', self.arrays('run'))
        self.assertEqual(len(self.events('run', 'eval')), 2)

    def test_mixed_precision(self):
        bits = {self.bits('run' + str(i), '--precision', 'mixed', '--epochs', '1', *ALL,
                          '--device', device)
                for i, device in enumerate(['0', '0*2'])}
        self.assertEqual(len(bits), 1)

    def test_plateau_needs_a_validation(self):
        self.refused(2, "'plateau' follows the validation, and there is no validation data",
                     'train', 'net.yaml', *self.OPTIONS, '--val', 'off', '--set',
                     'schedule=kind=plateau')

    def test_pieces(self):
        calls = {}
        for pieces in '1', '4':
            self.net('run' + pieces, '--steps', '4', '--profile', 'trace.json', '--set',
                     'profile_steps=2', '--set', 'accumulate=' + pieces)
            events = json.loads(Path(self.path('trace.json')).read_text())['traceEvents']
            names = collections.Counter(e['name'] for e in events)
            calls[pieces] = names['logits_forward'], names['adam_update']
        self.assertEqual(calls, {'1': (2, 2), '4': (8, 2)})
        self.refused(2, ['1 device that computes a batch of 48 in 16 pieces each (accumulate), '
                         'but only 8 shards', '--shards 16 would do'],
                     'train', 'net.yaml', *self.OPTIONS, '--set', 'accumulate=16')


class TablesAlone(ProgramTest):
    def test_nothing_else_is_trained(self):
        """All gradients are lists of rows, on one device and on two."""
        self.put('table.yaml', """name: table
input: {tokens: {shape: [2], type: int32}}
layers:
  - {name: e, embedding: {vocabulary: 64, units: 16}}
  - global_average_pool1d
  - {name: still, dense: {units: 2}, trainable: false}
  - softmax
""")
        npy.write(self.path('x.npy'), '<i4', (4, 2), [1, 2, 3, 4, 5, 6, 7, 8])
        npy.write(self.path('y.npy'), '<i8', (4,), [0, 1, 0, 1])
        for optimizer in 'sgd', 'adam', 'adam lazy=true':
            found = set()
            for devices in '0', '0*2':
                self.run_program('train', 'table.yaml', '--data', 'npy:x.npy,y.npy',
                                 '--batch-size', '2', '--shards', '2', '--steps', '4',
                                 '--device', devices, '--optimizer', optimizer, '--run', 'run',
                                 '--fresh')
                found.add(self.sha256('run'))
            self.assertEqual(len(found), 1, optimizer)


program.main()
