"""What crosses between the devices of a group and changes on its way is noticed, and the step
computed again: by the host behind the sender, by the receiver behind the host."""
import os

import program
from program import ProgramTest

LAYER = os.environ['LOCKSTEP_FAULT_LAYER']
OBJECTS_LAYER = os.environ['LOCKSTEP_OBJECTS_LAYER']  # objects.c
NET = """name: net
input: [28, 28, 1]
layers:
  - {device: front, conv2d: {filters: 8, kernel: 3, activation: relu}}
  - max_pool: {size: 2}
  - {device: back, conv2d: {filters: 8, kernel: 3, activation: relu}}
  - flatten
  - dropout: {rate: 0.25}
  - dense: {units: 10}
  - softmax
"""
# The values that cross, [8, 13, 13] floats of 16 samples, and their gradients, are larger than
# all else that is transferred. So vectors hold 16 samples, whatever the processor has.
CROSSING = 'kind=corrupt,bytes=80000'
CHANGED = "changed on the way in step"
KERNEL = 'clEnqueueNDRangeKernel'
CREATES = ('clCreateKernel', 'clSetKernelArg', 'clCreateProgramWithSource',
           'clEnqueueMapBuffer', 'clCreateSubBuffer')
MAPPED = ('clEnqueueMapBuffer', 'clEnqueueUnmapMemObject')
COPIED = ('clEnqueueReadBuffer', 'clEnqueueWriteBuffer')
COPIES = (90, 91, 98, 130)  # behind those of the kernels' check, which has its own words


class Groups(ProgramTest):
    OPTIONS = ['net.yaml', '--data', 'synthetic:digits,count=300', '--batch-size', '64',
               '--shards', '8', '--epochs', '2', '--run', 'run', '--fresh']

    def setUp(self):
        super().setUp()
        self.put('net.yaml', NET)

    def train(self, *options, fault='', status=0, **environment):
        self.said = self.run_program('train', *self.OPTIONS, *options, status=status,
                                     environment={'OPENCL_LAYERS': LAYER,
                                                  'LOCKSTEP_VECTOR': '16',
                                                  'LOCKSTEP_FAULT': fault,
                                                  **environment}).stderr
        self.struck = 'fault: call' in self.said
        return [(event['event'], event.get('step'), event['loss'])
                for event in self.events('run') if event['event'] in ('step', 'eval')]

    def check_left(self, devices, left, fault, undisturbed):
        """The fault strikes, and the model is placed anew with the same bits."""
        self.train('--device', devices, '--place', 'auto', fault=fault)
        self.assertTrue(self.struck)
        self.assertIn(f'placed anew on what is left: --device {left}\n', self.said)
        self.assertEqual(self.sha256('run'), undisturbed)

    def test_error(self):
        """A device that answers with an error, and works again for whoever opens it anew, is
        left out: the model is placed on the others."""
        self.train('--device', '0', '--place', 'off')
        undisturbed = self.sha256('run')
        for devices, device, left in (('0*2', 0, '0'), ('0*3', 1, '0*2'),
                                      ('0/2.0,0/2.1', 1, '0/2.0')):
            for sticky in '', ',sticky=1':
                with self.subTest(devices, sticky=sticky):
                    fault = ('kind=error,code=-5,call=clEnqueueNDRangeKernel,nth=100,'
                             f'device={device}{sticky}')
                    self.check_left(devices, left, fault, undisturbed)

    def test_before_the_first_step(self):
        """Likewise where it fails while its kernels are measured, checked or built."""
        self.train('--device', '0', '--place', 'off')
        undisturbed = self.sha256('run')
        for devices, device, left in ('0*2', 0, '0'), ('0*3', 1, '0*2'):
            for call, nth in (*((KERNEL, n) for n in (1, 4, 12, 30)),
                              *((call, n) for call in CREATES for n in (1, 2))):
                fault = f'kind=error,code=-5,call={call},nth={nth},sticky=1,device={device}'
                with self.subTest(devices, call=call, nth=nth):
                    self.check_left(devices, left, fault, undisturbed)

    def test_miscompiled(self):
        """A device of the only group that computes wrongly is left out."""
        self.train('--device', '0', '--place', 'off')
        undisturbed = self.sha256('run')
        for device, kernel in (0, 'conv2d_gather_[0-9]*,arg=5'), (1, '*dense_product*,arg=3'):
            self.train('--device', '0*2', fault='call=clEnqueueNDRangeKernel,kind=corrupt,'
                       f'times=0,device={device},kernel={kernel}')
            self.assertIn('it computes wrongly', self.said)
            self.assertIn('placed anew on what is left: --device 0\n', self.said)
            self.assertEqual(self.sha256('run'), undisturbed)

    def test_once(self):
        """Losses and validation are those of an undisturbed run, wherever the fault strikes."""
        figures = self.train('--device', '0', '--place', 'off')
        undisturbed = self.sha256('run')
        copies = {'LOCKSTEP_SHARED': 'copy'}
        for calls, numbers, environment in ((MAPPED, (1, 2, 8, 40), {}),
                                            (COPIED, COPIES, copies)):
            for call in calls:
                noticed = 0
                for device in 0, 1:
                    for nth in numbers:
                        fault = f'call={call},nth={nth},device={device},{CROSSING}'
                        with self.subTest(fault=fault):
                            found = self.train('--device', '0*2', fault=fault, **environment)
                            self.assertEqual(found, figures)
                            self.assertEqual(self.sha256('run'), undisturbed)
                            noticed += self.struck and CHANGED in self.said
                            if CHANGED in self.said:
                                self.assertIn('devices 0 and 1 of a group', self.said)
                self.assertGreaterEqual(noticed, 2, call)

    def test_overtaking(self):
        """Values of a later micro-batch may cross before those of an earlier one: between the
        looks at both, both have arrived."""
        figures = self.train('--device', '0', '--place', 'off')
        for nth in range(2, 14):
            with self.subTest(nth=nth):
                fault = f'call=clGetEventInfo,kind=delay,ms=20,nth={nth}'
                self.assertEqual(self.train('--device', '0*2', fault=fault), figures)
                self.assertTrue(self.struck)

    def test_always(self):
        """A group whose devices cannot hand anything over is lost, and others go on."""
        self.train('--device', '0', '--place', 'off')
        undisturbed = self.sha256('run')
        for call in MAPPED:
            self.train('--device', '0*4', '--split', 'all',
                       fault=f'call={call},nth=20,times=0,device=0,{CROSSING}')
            self.assertIn('group 0 (', self.said)
            self.assertIn('is lost: what it sends does not arrive unchanged', self.said)
            self.assertEqual(self.sha256('run'), undisturbed)

    def test_no_other(self):
        """A lone group that cannot hand anything over: the model is placed anew on the device
        that is not to blame."""
        self.train('--device', '0', '--place', 'off')
        undisturbed = self.sha256('run')
        self.train('--device', '0*2',
                   fault=f'call={MAPPED[0]},nth=20,times=0,device=0,{CROSSING}')
        self.assertIn(CHANGED, self.said)
        self.assertIn('is lost: what it sends does not arrive unchanged', self.said)
        self.assertEqual(self.sha256('run'), undisturbed)

    def test_memory(self):
        """What a lost group has taken, on its healthy devices too, is free for the model that
        is placed anew: nothing of it is left at the end."""
        error = 'kind=error,code=-5,call=clEnqueueNDRangeKernel,sticky=1'
        changes = f'call={MAPPED[0]},nth=20,times=0,device=0,{CROSSING}'
        profile = ['--profile', self.path('trace.json')]
        for fault, *options in ([''], [f'{error},nth=100,device=1'],
                                [f'{error},nth=4,device=0'], [changes], [changes, *profile]):
            with self.subTest(fault, options=options):
                self.train('--device', '0*2', *options, fault=fault,
                           OPENCL_LAYERS=f'{LAYER}:{OBJECTS_LAYER}',
                           LOCKSTEP_OBJECTS=self.path('objects'))
                self.assertEqual('placed anew' in self.said, bool(fault))
                with open(self.path('objects'), encoding='utf-8') as file:
                    living = {line.split()[0]: int(line.split()[2]) for line in file}
                for kind in 'contexts', 'queues', 'buffers', 'kernels', 'events':
                    self.assertEqual(living[kind], 0, kind)

    def test_hangs_at_the_end(self):
        """A device of a lost group that hangs only when it is closed does not hold up the
        others: it is left behind."""
        self.train('--device', '0', '--place', 'off')
        undisturbed = self.sha256('run')
        for nth in 10, 11:  # before are those of building
            self.train('--device', '0*2', fault=f'kind=hang,call=clFinish,nth={nth},device=1',
                       LOCKSTEP_FAIL='0.1:5', LOCKSTEP_HANG_SECONDS='1')
            self.assertTrue(self.struck)
            self.assertIn('is lost: LOCKSTEP_FAIL asks for it', self.said)
            self.assertIn('placed anew on what is left: --device 0\n', self.said)
            self.assertEqual(self.sha256('run'), undisturbed)

    def test_asynchronous(self):
        self.train('--device', '0*4', '--mode', 'async',
                   fault=f'call={MAPPED[1]},nth=9,device=1,{CROSSING}')
        self.assertIn(CHANGED, self.said)
        self.assertEqual(self.events('run')[-1]['event'], 'end')


if __name__ == '__main__':
    program.main()
