"""Short runs of everything that trains, and the parameters that they have always ended with:
hashes.py PROGRAM MPIRUN [--record]. A change that is not meant to change bits keeps them.

The tables beside this file, hashes.json, are of CPUs with fused multiply-adds whose vectors
hold 16 floats (AVX-512) or 8 (AVX2). Others sum in other orders; there the test is skipped.
--record writes this processor's table anew: only after a change that is meant to change bits.
"""
import json
import os
import random
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

MPIRUN = sys.argv.pop(2)
IS_RECORDING = '--record' in sys.argv and not sys.argv.remove('--record')

from program import PROGRAM, ProgramTest  # noqa: E402: takes PROGRAM
import program  # noqa: E402

FOLDER = Path(__file__).resolve().parent
TABLES = FOLDER / 'hashes.json'
DIGITS = ['--data', 'synthetic:digits,count=1000', '--batch-size', '128', '--steps', '10']
PAIRS = ['--data', 'synthetic:pairs,count=1000,timesteps=12,width=24', '--set', 'timesteps=12',
         '--set', 'width=24', '--batch-size', '128', '--steps', '10']
PHOTOS = ['--data', 'folder:photos', '--set', 'classes=3', '--batch-size', '16', '--steps', '3']


def photos_of(size):
    return [*PHOTOS, '--set', f'input=[{size},{size},3]']


# name -> arguments of train, and what the environment adds.
RUNS = {
    'fashion-convnet': (['fashion-convnet', *DIGITS], {}),
    'mlp': (['mlp', *DIGITS], {}),
    'mobilenet-v2': (['mobilenet-v2', *photos_of(64)], {}),
    'resnet50': (['resnet50', *photos_of(64)], {}),
    'two-branch': (['two-branch', *PAIRS], {}),
    'vgg16': (['vgg16', *photos_of(64)], {}),
    'vgg16tail': (['vgg16tail', *photos_of(64)], {}),
    'xception': (['xception', *photos_of(96)], {}),
    'strict': (['fashion-convnet', *DIGITS, '--math', 'strict'], {}),
    'mixed': (['fashion-convnet', *DIGITS, '--precision', 'mixed'], {}),
    'mixed batch_norm': (['mobilenet-v2', *photos_of(64), '--precision', 'mixed'], {}),
    'smoothed': (['fashion-convnet', *DIGITS, '--pipeline', 'one_hot smoothing=0.1'], {}),
    'sgd': (['fashion-convnet', *DIGITS, '--optimizer', 'sgd momentum=0.9 nesterov=true',
             '--set', 'schedule=kind=cosine steps=10 warmup=3'], {}),
    'rmsprop': (['fashion-convnet', *DIGITS, '--optimizer', 'rmsprop centered=true'], {}),
    'adamw': (['mlp', *DIGITS, '--optimizer', 'adamw weight_decay=0.01'], {}),
    'every operation': (['all.yaml', *DIGITS], {}),
    'augmented': (['fashion-convnet', *photos_of(40), '--pipeline',
                   'rotate 10 | crop 36x36 padding=4 | flip both | brightness 0.2 | '
                   'contrast 0.2 | saturation 0.2 | normalize -1..1',
                   '--set', 'input=[36,36,3]'], {}),
    'text': (['text.yaml', '--data', 'text:lines', '--batch-size', '32', '--steps', '10'], {}),
    'weights of attention dropped': ([
        'transformer-encoder', '--data', 'text:lines,unit=char,length=24', '--set', 'width=32',
        '--set', 'heads=2', '--set', 'blocks=2', '--set', 'wide=48', '--set',
        'attentiondropout=0.2', '--batch-size', '72', '--shards', '4', '--steps', '10'], {}),
    'gpu kernels': (['fashion-convnet', *DIGITS], {'LOCKSTEP_CLASS': 'gpu'}),
    'gpu kernels of batch_norm': (['mobilenet-v2', *photos_of(64)], {'LOCKSTEP_CLASS': 'gpu'}),
    'vectors of 8': (['fashion-convnet', *DIGITS], {'LOCKSTEP_VECTOR': '8'}),
    'vectors of 4': (['all.yaml', *DIGITS], {'LOCKSTEP_VECTOR': '4'}),
}

NET = """name: all
input: [28, 28, 1]
layers:
  - conv2d: {filters: 8, kernel: 5, stride: 2, padding: same}
  - elu
  - batch_norm: {activation: relu}
  - name: left
    conv2d: {filters: 8, kernel: 3, padding: same, groups: 2, activation: relu6}
  - from: left
    name: right
    conv2d: {filters: 8, kernel: 1, activation: tanh}
  - from: [left, right]
    add:
  - gelu
  - average_pool: {size: 2}
  - conv2d: {filters: 12, kernel: 2, dilation: 2, activation: silu}
  - max_pool: {size: 3, stride: 1, padding: same}
  - flatten
  - dropout: {rate: 0.25}
  - dense: {units: 20, activation: sigmoid}
  - dense: {units: 10}
  - softmax
"""

TEXT = """name: text
input: [1, 32, 1]
classes: 2
layers:
  - flatten
  - dense: {units: 16, activation: relu}
  - dense: {units: $classes}
  - softmax
"""


class HashesTest(ProgramTest):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        found = subprocess.run([PROGRAM, 'devices', '--json'], capture_output=True, text=True,
                               check=True)
        device = json.loads(found.stdout)['devices'][0]
        if device['class'] != 'cpu' or device['vector_width'] not in (8, 16):
            raise unittest.SkipTest('the tables are of CPUs with vectors of 8 or 16 floats, '
                                    f"not of {device['name']}")
        cls.device = device
        cls.tables = json.loads(TABLES.read_text())
        cls.table = cls.tables.setdefault(f"vectors of {device['vector_width']}", {})

    def setUp(self):
        super().setUp()
        self.put('all.yaml', NET)
        self.put('text.yaml', TEXT)
        self.draw_photos()
        chance = random.Random(1)
        for part in 'train', 'test':
            os.makedirs(self.path('lines'), exist_ok=True)
            self.put(f'lines/{part}.txt', ''.join(
                f'{kind}\t{"".join(chance.choices("abcdef "[kind:kind + 5], k=20))}\n'
                for kind in [0, 1] * 40))

    def draw_photos(self):
        """Classes differ in their mean colour; noise makes every pixel matter."""
        chance = random.Random(0)
        for part, each in ('train', 24), ('test', 4):
            for kind in range(3):
                folder = self.path(f'photos/{part}/kind{kind}')
                os.makedirs(folder)
                for i in range(each):
                    Path(folder, f'{i:02d}.png').write_bytes(program.png(
                        40, 40, lambda x, y, k=60 * kind: [k + chance.randrange(100)
                                                           for _ in range(3)]))

    def hold(self, name, found):
        if IS_RECORDING:
            self.table[name] = found
            TABLES.write_text(json.dumps(self.tables, indent=1, sort_keys=True) + '\n')
        self.assertEqual(self.table.get(name), found, name)

    def train_as(self, run, *arguments, environment=None):
        self.run_program('train', *arguments, '--run', run, '--set', 'validation=off',
                         '--tune', 'off', '--quiet', environment=environment, timeout=400)
        return self.sha256(run)

    def test_records(self):
        """Converted, the same photographs train to the same bits."""
        self.run_program('convert', 'photos', 'records', '--shards', '2')
        runs = [self.train_as(name, 'fashion-convnet', '--data', data, *photos_of(40)[2:])
                for name, data in (('one', 'folder:photos'), ('two', 'tfrecord:records'))]
        self.assertEqual(runs[0], runs[1])
        self.hold('records', runs[1])

    def test_devices(self):
        """Whatever shares the work: halves, replicas, and asynchronous mode of one device."""
        for name, options in (('halves', ['--device', '0/2']),
                              ('replicas', ['--device', '0*3', '--split', 'all']),
                              ('async', ['--mode', 'async', '--device', '0'])):
            with self.subTest(name):
                self.assertEqual(self.train_as(name, *RUNS['fashion-convnet'][0], *options),
                                 self.table['fashion-convnet'])
        arguments, _ = RUNS['weights of attention dropped']
        self.assertEqual(self.train_as('weights', *arguments, '--device', '0/2', '--split',
                                       'all'),
                         self.table['weights of attention dropped'])
        self.assertEqual(self.train_as('branches', 'two-branch', *PAIRS, '--device', '0/2'),
                         self.table['two-branch'])

    def test_ranks(self):
        if not shutil.which(MPIRUN):
            self.skipTest('mpirun is not there')
        clean = {k: v for k, v in self.environment().items() if not k.startswith('OMPI_')}
        subprocess.run([MPIRUN, '--allow-run-as-root', '--oversubscribe', '-np', '2', PROGRAM,
                        'train', *RUNS['fashion-convnet'][0], '--run', 'ranks', '--set',
                        'validation=off'], cwd=self.folder, env=clean, check=True,
                       capture_output=True, timeout=200)
        self.assertEqual(self.sha256('ranks'), self.table['fashion-convnet'])

    def test_demo(self):
        """The job of tools/demo."""
        folder = os.environ.get('LOCKSTEP_DATA', '')
        if not os.path.isdir(os.path.join(folder, 'fashion-mnist')):
            self.skipTest('no fashion-mnist in $LOCKSTEP_DATA')
        self.run_program('train', 'fashion-convnet', '--data', 'fashion-mnist', '--run', 'demo',
                         '--quiet', environment={'LOCKSTEP_DATA': folder}, timeout=900)
        self.hold('demo', self.sha256('demo'))

    def test_old_run(self):
        """A run that an older version began goes on with the algorithms that its checkpoint
        names, which are not those that today's rule takes."""
        about = json.loads((FOLDER / 'old_run/env.json').read_text())['devices'][0]
        if [about['name'], about['driver']] != [self.device['name'], self.device['driver']]:
            self.skipTest(f"its device is {about['name']}, {about['driver']}")
        shutil.copytree(FOLDER / 'old_run', self.path('old'))
        done = self.run_program('train', 'old/model.yaml', *DIGITS[:4], '--steps', '20',
                                '--set', 'validation=off', '--run', 'old')
        self.assertIn('going on after step 10', done.stderr)
        self.hold('old run', self.sha256('old'))


def add_test(name, arguments, environment):
    def test(self):
        self.hold(name, self.train_as('run', *arguments, environment=environment))
    setattr(HashesTest, 'test_a_' + name.replace(' ', '_').replace('-', '_'), test)


for run_name, (run_arguments, run_environment) in RUNS.items():
    add_test(run_name, run_arguments, run_environment)

if __name__ == '__main__':
    program.main()
