"""Devices that compute wrong numbers, or none. No numbers: where another one has some, the
device is out of order; where none has, training has diverged."""
import os

import program
from program import ProgramTest

LAYER = os.environ['LOCKSTEP_FAULT_LAYER']
SAMPLES, STEPS = 400, 26  # 13 batches an epoch, the last of 16 samples
NET = """name: net
input: [28, 28, 1]
layers:
  - average_pool: {size: 4}
  - flatten
  - dense: {units: 20}
  - dense: {units: 10}
  - softmax
"""
# From a launch on, all of them: in the loss, in a gradient.
FAULTS = ('call=clEnqueueNDRangeKernel,kernel=*shards_metrics*,arg=1,kind=nan,times=0',
          'call=clEnqueueNDRangeKernel,kernel=*dense_weight*,arg=2,kind=nan,times=0')
CONVOLUTIONS = """input: [28, 28, 1]
layers:
  - conv2d: {filters: 8, kernel: 3, activation: relu}
  - conv2d: {filters: 16, kernel: 3, activation: relu}
  - average_pool: {size: 6}
  - flatten
  - dense: {units: 10}
  - softmax
"""
# A quarter of what a kernel has written, as if it were compiled wrongly.
WRONG = {'conv2d_gather_[0-9]*,arg=5': 'conv2d_1', 'conv2d_winograd_[0-9]*,arg=7': 'conv2d_2',
         '*dense_product*,arg=3': 'dense_1', '*dense_weight*,arg=2': 'dense_1',
         '*average_backward*,arg=2': 'average_pool_1'}
WRONG_PLANES = {'planes_convolve_[0-9]*,arg=5': 'conv2d_2'}  # of four samples a shard
UPDATE = 'call=clEnqueueNDRangeKernel,kernel=*adam*,arg=0,times=1'
CHANGED = 'were changed on the way: they are written again'
OUT_OF_ORDER = 'is lost: it computes no numbers where others do'
DIVERGED = 'training has diverged'


class Numbers(ProgramTest):
    OPTIONS = ['net.yaml', '--data', f'synthetic:digits,count={SAMPLES}', '--batch-size', '32',
               '--shards', '8', '--epochs', '2', '--set', 'validation=off', '--run', 'run',
               '--fresh']

    def setUp(self):
        super().setUp()
        self.put('net.yaml', NET)

    def train_with(self, fault, *options, **environment):
        done = self.run_program('train', *self.OPTIONS, *options,
                                environment={'OPENCL_LAYERS': LAYER, 'LOCKSTEP_FAULT': fault,
                                             **environment})
        if fault:
            self.assertIn('fault: call', done.stderr)
        steps = self.events('run', 'step')
        self.assertEqual([e['step'] for e in steps], list(range(1, len(steps) + 1)))
        return done.stderr

    def test_one_of_several(self):
        self.run_program('train', *self.OPTIONS)
        undisturbed = self.sha256('run')
        for devices in 2, 3:
            for device in range(devices):
                for nth, fault in enumerate(FAULTS):
                    with self.subTest(devices=devices, device=device, fault=fault):
                        said = self.train_with(f'{fault},nth={5 * nth + 1},device={device}',
                                               '--device', f'0*{devices}', '--split', 'all')
                        self.assertIn(OUT_OF_ORDER, said)
                        self.assertIn(f'device {device} (', said)
                        self.assertNotIn(DIVERGED, said)
                        self.assertEqual(self.sha256('run'), undisturbed)
                        steps = self.events('run', 'step')
                        self.assertEqual(sum(e['samples'] for e in steps), 2 * SAMPLES)

    def test_once(self):
        """By chance: whoever's shards give numbers elsewhere is not trusted again."""
        fault = FAULTS[0].replace('times=0', 'nth=9,device=1')
        self.assertIn(OUT_OF_ORDER, self.train_with(fault, '--device', '0*2', '--split', 'all'))

    def test_alone(self):
        """One that went on alone is compared with those that were idle."""
        more = ['--set', 'epochs=30']
        self.run_program('train', *self.OPTIONS, *more)
        undisturbed = self.sha256('run')
        fault = FAULTS[1] + ',nth=400,device=0'
        said = self.train_with(fault, *more, '--device', '0*2', LOCKSTEP_SLOW='1:20')
        self.assertIn('it goes on alone', said)
        self.assertIn(OUT_OF_ORDER, said)
        self.assertEqual(self.sha256('run'), undisturbed)

    def test_halves(self):
        """Their gradients may overflow, but not for ever."""
        for nth, fault in enumerate(FAULTS):
            with self.subTest(fault=fault):
                said = self.train_with(f'{fault},nth={5 * nth + 1},device=1', '--device', '0*2',
                                       '--split', 'all', '--precision', 'mixed', '--set',
                                       'epochs=6')
                self.assertIn(OUT_OF_ORDER, said)
                self.assertIn('device 1 (', said)
                end = self.events('run', 'end')[-1]
                self.assertEqual(end['skipped_steps'], 40 if nth else 0)

    def test_asynchronous(self):
        said = self.train_with(FAULTS[0] + ',nth=4,device=1', '--device', '0*2', '--mode',
                               'async')
        self.assertIn(OUT_OF_ORDER, said)
        self.assertNotIn(DIVERGED, said)

    def test_miscompiled(self):
        """A device that computes wrongly is found before the first step."""
        for tiles, kernels in ('batch', WRONG), ('auto', WRONG_PLANES):
            self.check_miscompiled(kernels, '--set', 'tiles=' + tiles)

    def check_miscompiled(self, kernels, *more):
        self.put('convolutions.yaml', CONVOLUTIONS)
        options = ['convolutions.yaml', *self.OPTIONS[1:], *more]
        self.run_program('train', *options)
        undisturbed = self.sha256('run')
        for kernel, layer in kernels.items():
            fault = f'call=clEnqueueNDRangeKernel,kernel={kernel},kind=corrupt,times=0'
            with self.subTest(kernel=kernel):
                done = self.run_program('train', *options, status=4,
                                        environment={'OPENCL_LAYERS': LAYER,
                                                     'LOCKSTEP_FAULT': fault})
                self.assertIn(f"\nlockstep: it computes wrongly: '{layer}'", done.stderr)
                self.assertEqual(self.sha256('run'), undisturbed)  # which is still there
                done = self.run_program('train', *options, '--device', '0*2',
                                        environment={'OPENCL_LAYERS': LAYER, 'LOCKSTEP_FAULT':
                                                     fault + ',device=1'})
                self.assertIn('device 1 (', done.stderr)
                self.assertIn('is lost: it computes wrongly', done.stderr)
                self.assertEqual(self.sha256('run'), undisturbed)

    def test_weights_changed_on_the_way(self):
        """They are read back: every write of them arrives, or the device is lost. The 5th to
        the 14th call write tables for probes, then the weights, then samples."""
        self.run_program('train', *self.OPTIONS)
        undisturbed = self.sha256('run')
        fault = 'call=clEnqueueWriteBuffer,kind=corrupt'
        changed = 0
        for nth in range(5, 15):
            for devices in '0', '0*2':
                with self.subTest(devices=devices, nth=nth):
                    said = self.train_with(f'{fault},nth={nth},device=0', '--device', devices,
                                           '--split', 'all')
                    if CHANGED in said:
                        changed += 1
                        self.assertEqual(self.sha256('run'), undisturbed)
        self.assertEqual(changed, 2 * 4)  # weights and biases of two layers
        often = f'{fault},bytes=3000,times=0'
        said = self.train_with(often + ',device=1', '--device', '0*2', '--split', 'all')
        self.assertIn('device 1 (', said)
        self.assertIn('changed on the way 2 times', said)
        self.assertEqual(self.sha256('run'), undisturbed)
        self.run_program('train', *self.OPTIONS, status=4,
                         environment={'OPENCL_LAYERS': LAYER, 'LOCKSTEP_FAULT': often})

    def test_wrong_update(self):
        """The last one too is compared before the weights are called final."""
        self.run_program('train', *self.OPTIONS)
        undisturbed = self.sha256('run')
        for fault in 'corrupt', 'nan':
            for mode in 'sync', 'async':
                with self.subTest(fault=fault, mode=mode):
                    said = self.train_with(UPDATE + f',nth={STEPS},kind={fault},device=0',
                                           '--device', '0*3', '--split', 'all', '--mode', mode)
                    if mode == 'sync':
                        self.assertIn("device 0's parameters differ", said)
                        self.assertEqual(self.sha256('run'), undisturbed)
                    else:
                        self.assertRegex(said, "device 0('s parameters differ| .* is lost)")

    def test_wrong_update_of_two(self):
        """Nobody knows which one is right, and that is said."""
        said = self.train_with(UPDATE + f',nth={STEPS},kind=corrupt,device=0', '--device',
                               '0*2', '--split', 'all')
        self.assertIn('parameters differ', said)
        self.assertIn('nobody knows which is right', said)

    def test_diverged(self):
        """By nature: as on one device."""
        for devices in '0', '0*2', '0*3':
            for mode in ('sync', 'async') if devices != '0' else ('sync',):
                with self.subTest(devices=devices, mode=mode):
                    said = self.train_with('', '--device', devices, '--lr', '1e6', '--mode',
                                           mode, '--optimizer', 'sgd')
                    self.assertIn(DIVERGED, said)
                    self.assertNotIn('is lost', said)
                    self.assertEqual(len(self.events('run', 'step')), STEPS)

    def test_one_device(self):
        said = self.train_with(FAULTS[1] + ',nth=9', '--device', '0')
        self.assertIn(DIVERGED, said)


if __name__ == '__main__':
    program.main()
