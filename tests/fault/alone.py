"""A device that goes on alone since it is faster, and fails then: the others, which were idle,
are called back and end with what it would have ended with."""
import os

import program
from program import ProgramTest

LAYER = os.environ['LOCKSTEP_FAULT_LAYER']
SAMPLES, BATCH, STEPS = 1000, 64, 320  # 16 batches an epoch, the last of 40 samples
NET = """name: net
input: [28, 28, 1]
layers:
  - average_pool: {size: 4}
  - conv2d: {filters: 4, kernel: 3, activation: relu}
  - flatten
  - dropout: {rate: 0.25}
  - dense: {units: 10}
  - softmax
"""


class Alone(ProgramTest):
    OPTIONS = ['net.yaml', '--data', f'synthetic:digits,count={SAMPLES}', '--batch-size',
               str(BATCH), '--shards', '8', '--epochs', '20', '--run', 'run', '--fresh']

    def setUp(self):
        super().setUp()
        self.put('net.yaml', NET)
        self.run_program('train', *self.OPTIONS)
        self.undisturbed = self.sha256('run')

    def strike(self, devices, fault, status=0):
        """Device 1 is slow, so that another one goes on alone, which the fault strikes. Where
        the machine is busy it may be found the fastest all the same: then all is done again."""
        for _ in range(6):
            done = self.run_program('train', *self.OPTIONS, '--device', f'0*{devices}',
                                    status=None,
                                    environment={'OPENCL_LAYERS': LAYER,
                                                 'LOCKSTEP_FAULT': fault,
                                                 'LOCKSTEP_SLOW': '1:4',
                                                 'LOCKSTEP_HANG_SECONDS': '2'})
            if 'device 1 alone' not in done.stderr:
                break
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertIn('fault: call', done.stderr)
        self.assertIn('it goes on alone', done.stderr)
        self.assertIn('called back', done.stderr)
        return done.stderr

    def check_run(self):
        self.assertEqual(self.sha256('run'), self.undisturbed)
        steps = self.events('run', 'step')
        self.assertEqual([e['step'] for e in steps], list(range(1, STEPS + 1)))
        self.assertEqual(sum(e['samples'] for e in steps), 20 * SAMPLES)

    def test_lost(self):
        """In a step, where the host waits, while it is evaluated or its state is read."""
        for fault in ('call=clEnqueueNDRangeKernel,nth=2500,kind=error,code=-36,sticky=1',
                      'call=clEnqueueNDRangeKernel,nth=4000,kind=event_error,code=-5',
                      'call=clWaitForEvents,nth=500,kind=hang',
                      'call=clEnqueueReadBuffer,nth=180,kind=error,code=-5',
                      'call=clEnqueueReadBuffer,nth=181,kind=error,code=-5',
                      'call=clEnqueueReadBuffer,nth=182,kind=error,code=-5,sticky=1'):
            with self.subTest(fault=fault):
                self.strike(2, f'{fault},device=0')
                self.check_run()

    def test_tried_again(self):
        """All take part in another trial after a while, from where the one alone has got to."""
        more = [word if word != '20' else '90' for word in self.OPTIONS]
        self.run_program('train', *more)
        undisturbed = self.sha256('run')
        done = self.run_program('train', *more, '--device', '0*2',
                                environment={'LOCKSTEP_SLOW': '1:4'})
        self.assertIn('it goes on alone', done.stderr)
        self.assertNotIn('is lost', done.stderr)
        self.assertEqual(self.sha256('run'), undisturbed)
        steps = self.events('run', 'step')
        self.assertEqual([e['step'] for e in steps], list(range(1, len(steps) + 1)))
        takes_part = [e['devices'][1] is not None for e in steps]
        self.assertIn(True, takes_part[takes_part.index(False):])

    def test_two_lost(self):
        """The one that is alone, and a second one after it was called back."""
        fault = 'call=clEnqueueNDRangeKernel,nth=3000,code=-36,sticky=1,device='
        self.assertIn('1 device is left', self.strike(3, f'{fault}0;{fault}2'))
        self.check_run()

    def test_none_left(self):
        """The state that was kept last is saved, and the run goes on from it."""
        fault = 'call=clEnqueueNDRangeKernel,nth=3000,sticky=1,device=0'
        also = 'call=clEnqueueNDRangeKernel,nth=2600,sticky=1,device=1'
        self.assertIn('no device is left', self.strike(2, f'{fault};{also}', status=4))
        arguments = [word for word in self.OPTIONS if word != '--fresh']
        self.run_program('train', *arguments, '--device', '0*2')
        self.check_run()


if __name__ == '__main__':
    program.main()
