"""Training with activations kept as halves: --precision mixed."""
import json
import os
import struct

import program
from program import ProgramTest
from same_bits import NET


class Precision(ProgramTest):
    OPTIONS = ['net.yaml', '--data', 'synthetic:digits,count=1036', '--batch-size', '48',
               '--shards', '8', '--epochs', '1000']
    MIXED = ['--precision', 'mixed']

    def setUp(self):
        super().setUp()
        self.put('net.yaml', NET)

    def bits(self, run, *arguments):
        self.run_program('train', *self.OPTIONS, '--run', run, *arguments)
        return self.sha256(run)

    def test_same_bits(self):
        """On one device, on several, and gone on with; not those of float."""
        whole = self.bits('whole', *self.MIXED, '--steps', '30')
        for devices in '0*2', '0/2', '0*3':
            self.assertEqual(self.bits('on' + devices.replace('/', '_'), *self.MIXED,
                                       '--steps', '30', '--device', devices, '--split', 'all'),
                             whole)
        self.bits('parts', *self.MIXED, '--steps', '13')
        self.assertEqual(self.bits('parts', *self.MIXED, '--steps', '30', '--device', '0*2'),
                         whole)
        self.assertNotEqual(self.bits('float', '--steps', '30'), whole)

    def test_learns_as_floats_do(self):
        losses = []
        for run, options in ('float', []), ('mixed', self.MIXED):
            self.bits(run, *options, '--steps', '220')
            losses.append([e['loss'] for e in self.events(run, 'eval')])
        for one, other in zip(*losses):
            self.assertAlmostEqual(one, other, delta=0.05 * one)
        end = self.events('mixed', 'end')[-1]
        self.assertGreaterEqual(end['loss_scale'], 1)
        self.assertEqual(end['skipped_steps'], 0)
        self.assertNotIn('loss_scale', self.events('float', 'end')[-1])

    def test_overflow(self):
        """Steps that overflow change nothing, on all devices alike; the run says so."""
        huge = [*self.MIXED, '--set', 'loss_scale=16777216']
        before = self.bits('start', *huge, '--steps', '1')
        for run, devices in ('one', '0'), ('two', '0*2'):
            done = self.run_program('train', *self.OPTIONS, '--run', run, *huge, '--steps',
                                    '12', '--device', devices, '--split', 'all')
            self.assertIn('the last 12 steps have changed nothing', done.stderr)
            self.assertIn('12 steps left out', done.stdout)
            self.assertEqual(self.events(run, 'end')[-1]['skipped_steps'], 12)
        self.assertEqual(self.sha256('one'), self.sha256('two'))
        self.assertEqual(self.sha256('one'), before)

    def test_checkpoint(self):
        """The scale is kept, and evaluation is that of a model of floats."""
        self.bits('run', *self.MIXED, '--steps', '22')
        with open(self.path('run/checkpoints/step-00000022.safetensors'), 'rb') as file:
            header = json.loads(file.read(struct.unpack('<Q', file.read(8))[0]))
            begin, end = header['optimizer.scaling.loss.state']['data_offsets']
            file.seek(begin, os.SEEK_CUR)
            state = struct.unpack('<5f', file.read(end - begin))
        self.assertEqual(state, (4096, 1 / 4096, 0, 22, 0))
        self.assertEqual({about['dtype'] for name, about in header.items()
                          if name != '__metadata__'}, {'F32'})
        evaluation = self.events('run', 'eval')[-1]
        done = self.run_program('eval', 'run', '--json')
        self.assertEqual(json.loads(done.stdout)['accuracy'], evaluation['accuracy'])

    def test_refusals(self):
        self.bits('run', *self.MIXED, '--steps', '2')
        self.refused(2, 'has precision mixed, asked for is float', 'train', *self.OPTIONS,
                     '--run', 'run', '--steps', '4')
        self.refused(2, '--precision mixed is for --mode sync', 'train', *self.OPTIONS,
                     '--run', 'other', *self.MIXED, '--mode', 'async', '--device', '0*2')
        self.refused(2, 'is for --precision mixed', 'train', *self.OPTIONS, '--set',
                     'loss_scale=64')
        self.refused(2, 'a power of two', 'train', *self.OPTIONS, *self.MIXED, '--set',
                     'loss_scale=100')
        self.refused(2, 'float, mixed', 'train', *self.OPTIONS, '--precision', 'half')


if __name__ == '__main__':
    program.main()
