"""Devices that fail while others do not wait for them: nothing is lost or counted twice."""
import os

import program
from program import ProgramTest

LAYER = os.environ['LOCKSTEP_FAULT_LAYER']
SAMPLES, BATCH, STEPS = 1036, 96, 33  # three epochs of 11 batches, the last of 76 samples
NET = """name: net
input: [28, 28, 1]
layers:
  - conv2d: {filters: 8, kernel: 3, activation: relu}
  - max_pool: {size: 2}
  - flatten
  - dense: {units: 10}
  - softmax
"""


class Faults(ProgramTest):
    OPTIONS = ['net.yaml', '--data', f'synthetic:digits,count={SAMPLES}', '--batch-size',
               str(BATCH), '--shards', '8', '--epochs', '3', '--mode', 'async', '--set',
               'validation=off', '--run', 'run', '--fresh']

    def setUp(self):
        super().setUp()
        self.put('net.yaml', NET)
        self.run_program('train', *self.OPTIONS, '--steps', '1')  # compiles kernels

    def strike(self, devices, fault, status=0):
        done = self.run_program('train', *self.OPTIONS, '--device', f'0*{devices}',
                                status=status,
                                environment={'OPENCL_LAYERS': LAYER, 'LOCKSTEP_FAULT': fault,
                                             'LOCKSTEP_HANG_SECONDS': '3'})
        self.assertIn('fault: call', done.stderr)
        return done.stderr

    def ledger(self):
        """All steps, each of all its samples, and an update for each group of them."""
        steps = self.events('run', 'step')
        self.assertEqual([e['step'] for e in steps], list(range(1, STEPS + 1)))
        self.assertEqual(sum(e['samples'] for e in steps), 3 * SAMPLES)
        for event in steps:
            self.assertEqual(sum(device['samples'] for device in event['devices'] if device),
                             event['samples'])
        end, = self.events('run', 'end')
        return end['updates']

    def check(self, devices, fault, said):
        with self.subTest(fault=fault, devices=devices):
            self.assertIn(said, self.strike(devices, fault))
            self.assertEqual(self.ledger(), STEPS * (2 if devices == 2 else 4))

    def test_lost(self):
        for kind in 'code=-5,sticky=1', 'code=-36,sticky=1', 'kind=hang':
            for call, nth in ('clEnqueueNDRangeKernel', 600), ('clWaitForEvents', 80):
                self.check(2, f'call={call},device=1,nth={nth},{kind}', 'device 1 (')
        self.check(2, 'call=clEnqueueUnmapMemObject,device=0,nth=60,kind=event_error',
                   'device 0 (')
        self.check(3, 'call=clEnqueueNDRangeKernel,device=0,nth=500,sticky=1;'
                      'call=clWaitForEvents,device=2,nth=60,kind=hang', '1 device is left')

    def test_changed_gradients(self):
        """Once they are computed again; twice the device is no longer trusted."""
        for kind in 'corrupt', 'nan':
            self.check(2, f'call=clEnqueueMapBuffer,device=1,nth=20,kind={kind},bytes=1000',
                       'gradients were changed on their way')
        self.check(2, 'call=clEnqueueMapBuffer,device=1,nth=20,times=2,kind=corrupt,bytes=1000',
                   'device 1 (')

    def test_changed_updates(self):
        """The replica that got another update than the log has is copied from one that did."""
        for device in 0, 1:
            self.check(2, f'call=clEnqueueUnmapMemObject,device={device},nth=30,kind=corrupt,'
                          f'bytes=1000', f"device {device}'s parameters differ")
            self.assertIn('1 replicas mended', self.events('run', 'devices')[-1]['text'])

    def test_none_left(self):
        """What was kept last is saved, and the run goes on from it."""
        fault = 'call=clEnqueueNDRangeKernel,nth=600,sticky=1,device='
        said = self.strike(2, f'{fault}0;{fault}1', status=4)
        self.assertIn('no device is left', said)
        arguments = [word for word in self.OPTIONS if word != '--fresh']
        self.run_program('train', *arguments, '--device', '0*2')
        self.assertEqual(self.ledger(), STEPS * 2)


if __name__ == '__main__':
    program.main()
