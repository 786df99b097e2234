"""Devices that fail between steps: where validation takes its memory, and where a run goes on
from a checkpoint."""
import os

import program
from program import ProgramTest

LAYER = os.environ['LOCKSTEP_FAULT_LAYER']
NET = """name: net
input: [28, 28, 1]
layers:
  - average_pool: {size: 4}
  - flatten
  - dense: {units: 20, activation: relu}
  - dense: {units: 10}
  - softmax
"""


class Between(ProgramTest):
    OPTIONS = ['net.yaml', '--data', 'synthetic:digits,count=400', '--batch-size', '64',
               '--shards', '8', '--epochs', '4', '--split', 'all', '--run', 'run']

    def setUp(self):
        super().setUp()
        self.put('net.yaml', NET)

    def train_with(self, fault, *options, status=0, **environment):
        done = self.run_program('train', *self.OPTIONS, *options, status=status,
                                environment={'OPENCL_LAYERS': LAYER, 'LOCKSTEP_FAULT': fault,
                                             **environment})
        if fault:
            self.assertIn('fault: call', done.stderr)
        return done.stderr

    def evaluations(self):
        return [(e['step'], round(e['loss'], 6)) for e in self.events('run', 'eval')]

    def count_buffers(self, devices):
        """That device 0 creates without validation."""
        self.train_with('', '--fresh', '--device', devices, '--val', 'off', '--steps', '1',
                        LOCKSTEP_FAULT_COUNT=self.path('counts'))
        with open(self.path('counts')) as file:
            words = [line.split() for line in file]
        return next(int(n) for device, call, n in words
                    if (device, call) == ('0', 'clCreateBuffer'))

    def test_no_room_for_validation(self):
        """It takes fewer samples at a time, or another device; none is given up for it."""
        self.run_program('train', *self.OPTIONS)
        undisturbed, losses = self.sha256('run'), self.evaluations()
        for devices in '0*2', '0*3':
            nth = self.count_buffers(devices) + 1
            for times, message in ((1, 'validation takes 32 samples at a time'),
                                   (0, 'device 0 has no room for validation')):
                with self.subTest(devices=devices, times=times):
                    said = self.train_with(f'call=clCreateBuffer,device=0,nth={nth},'
                                           f'times={times},code=-4', '--fresh', '--device',
                                           devices)
                    self.assertIn(message, said)
                    self.assertNotIn('is lost', said)
                    self.assertEqual(self.sha256('run'), undisturbed)
                    self.assertEqual(self.evaluations(), losses)
                    last = self.events('run', 'step')[-1]['devices']
                    self.assertTrue(all(last), last)

    def test_no_room_anywhere(self):
        """Said before the first step."""
        nth = self.count_buffers('0') + 1
        said = self.train_with(f'call=clCreateBuffer,nth={nth},times=0,code=-4', '--fresh',
                               '--device', '0', status=4)
        self.assertIn('no device has room for validation', said)
        self.assertNotIn('step 1/', said)

    def test_going_on(self):
        """A device that cannot take a checkpoint is left behind, the first one too."""
        self.run_program('train', *self.OPTIONS)
        undisturbed = self.sha256('run')
        for device in 0, 1, 2:
            for nth in 1, 2, 3, 5, 8:
                with self.subTest(device=device, nth=nth):
                    self.run_program('train', *self.OPTIONS, '--fresh', '--steps', '10')
                    fault = (f'call=clEnqueueWriteBuffer,device={device},nth={nth},'
                             'code=-36,sticky=1')
                    said = self.train_with(fault, '--device', '0*3')
                    self.assertIn(f'device {device} (', said)
                    self.assertIn('2 devices are left', said)
                    self.assertEqual(self.sha256('run'), undisturbed)


if __name__ == '__main__':
    program.main()
