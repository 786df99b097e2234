"""A recurrent model and a transformer of the zoo, smaller, on texts of many lengths, with
dropout: the same parameters, bit for bit, whoever computes what:
same_texts.py PROGRAM yes|no LAYER (see ranks.py)."""
import random
import shutil
import subprocess
import sys
import unittest

HAS_MPI, LAYER = sys.argv.pop(2) == 'yes', sys.argv.pop(2)

import program  # noqa: E402: takes PROGRAM
from program import PROGRAM, ProgramTest  # noqa: E402

MPIRUN = shutil.which('mpirun')
SAMPLES, BATCH = 236, 48  # 5 batches an epoch; of the last one 44 samples are there
MODELS = {
    'text-lstm': ['--set', 'width=16', '--set', 'units=20'],
    'transformer-encoder': ['--set', 'width=16', '--set', 'heads=2', '--set', 'blocks=1',
                            '--set', 'wide=24', '--set', 'attentiondropout=0.2'],
}
LAZY = ['--optimizer', 'adam lazy=true']
LENGTHS = 14, 40, 160
# One table for the words that are read and for what is made of them.
TIED = """name: tied
input: {tokens: {shape: [%d], type: int32, length: true}}
vocabulary: 256
classes: 3
layers:
  - {name: words, embedding: {vocabulary: $vocabulary, units: 32}}
  - {dense: {units: 32, activation: tanh}}
  - prelu
  - {weights: words, dense_transpose: {units: $vocabulary}}
  - {gru: {units: 24, return_sequences: true}}
  - global_average_pool1d
  - dense: {units: $classes}
  - softmax
"""


class SameTexts(ProgramTest):
    def setUp(self):
        super().setUp()
        chance = random.Random(1)
        with open(self.path('texts.txt'), 'w') as file:
            for i in range(SAMPLES):
                words = [chance.choice('abcdefghijkl') for _ in range(chance.randrange(0, 13))]
                rare = [f'rare{i % 5}'] if i % 40 == 0 else []
                words = words[:6] + ['qrs'[i % 3]] + words[6:] + rare
                file.write(f'{i % 3}\t{" ".join(words)}\n')

    def arguments(self, model, run, length):
        return ['train', model, *MODELS.get(model, []), '--data',
                f'text:texts.txt,unit=word,length={length}', '--batch-size', str(BATCH),
                '--shards', '4', '--epochs', '100', '--val', 'off', '--tune', 'off', '--lr',
                '0.01', '--run', run]

    def bits(self, model, run, *arguments, length=14, **environment):
        done = self.run_program(*self.arguments(model, run, length), *arguments,
                                environment=environment)
        self.stderr = done.stderr
        self.assertNotRegex(self.stderr, 'differ(?! from run to run)')
        return self.sha256(run)

    def check(self, model, cases):
        """All of them end with the bits of the first run, which has learned something."""
        one = self.bits(model, 'one', '--steps', '12')
        losses = [e['loss'] for e in self.events('one', 'step')]
        self.assertLess(losses[-1], 0.97 * losses[0])
        for name, (arguments, more) in cases.items():
            with self.subTest(name, model=model):
                self.assertEqual(self.bits(model, name, '--steps', '12', *arguments, **more),
                                 one)

    def check_halves(self, model, *more):
        """On halves of a device, and stopped within the second epoch."""
        one = self.bits(model, 'one', '--steps', '12', *more)
        self.bits(model, 'parts', '--steps', '7', *more)
        self.assertEqual(self.bits(model, 'parts', '--steps', '12', '--device', '0/2',
                                   '--split', 'all', *more), one)
        self.assertIn('going on after step 7', self.stderr)
        return one

    def test_one_device_or_two(self):
        """A run that does not wait for other devices, too, where there are none."""
        for model in MODELS:
            self.check(model, {
                f'{model} halves': (['--device', '0/2', '--split', 'all'], {}),
                f'{model} async': (['--device', '0', '--mode', 'async'], {})})
            shutil.rmtree(self.path('one'))

    def test_padding(self):
        """However far texts are padded, on devices of both classes."""
        for length in LENGTHS:
            self.put(f'tied{length}.yaml', TIED % length)
        for kernels in 'cpu', 'gpu':
            for model in *MODELS, 'tied%d.yaml':
                with self.subTest(model, kernels=kernels):
                    one, *others = (self.bits(model % length if '%' in model else model, 'run',
                                              '--steps', '3', '--fresh', length=length,
                                              LOCKSTEP_CLASS=kernels) for length in LENGTHS)
                    self.assertEqual(others, [one] * len(others))

    def test_mixed_precision_and_going_on(self):
        for model in MODELS:
            with self.subTest(model):
                floats = self.check_halves(model)
                for run in 'one', 'parts':
                    shutil.rmtree(self.path(run))
                self.assertNotEqual(self.check_halves(model, '--precision', 'mixed'), floats)
                for run in 'one', 'parts':
                    shutil.rmtree(self.path(run))

    def test_rows_without_gradient_stand_still(self):
        """The table has 20,000 rows, of which a batch reads at most 672: its gradient is a list
        of them. Without waiting for other devices it is as large as the table: the same
        bits."""
        for model in MODELS:
            one = self.check_halves(model, *LAZY)
            self.assertEqual(self.bits(model, 'dense', '--steps', '12', '--mode', 'async',
                                       '--device', '0', *LAZY), one)
            self.assertNotEqual(self.bits(model, 'all', '--steps', '12'), one)
            for run in 'one', 'parts', 'dense', 'all':
                shutil.rmtree(self.path(run))

    def test_batches_of_similar_length(self):
        """Another order than without, and the same one on halves of a device, with threads
        that read ahead, and in a run that was stopped within an epoch."""
        for model in MODELS:
            with self.subTest(model):
                plain = self.bits(model, f'{model} plain', '--steps', '12')
                one = self.bits(model, f'{model} one', '--steps', '12', '--bucket', '3')
                self.assertNotEqual(one, plain)
                self.assertEqual(self.bits(
                    model, f'{model} halves', '--steps', '12', '--bucket', '3', '--device',
                    '0/2', '--split', 'all', '--data-threads', '3'), one)
                self.bits(model, f'{model} parts', '--steps', '7', '--bucket', '3')
                self.assertEqual(self.bits(model, f'{model} parts', '--steps', '12',
                                           '--bucket', '3'), one)
                self.assertIn('going on after step 7', self.stderr)
        self.refused(2, 'checkpoint has bucket 3, asked for is 0',
                     *self.arguments(model, f'{model} parts', 14), '--steps', '14')
        self.refused(2, "bucket: the samples of 'digits' have no length", 'train', 'mlp',
                     '--data', 'synthetic:digits,count=64', '--bucket', '2', '--steps', '1')

    def test_batches_of_similar_length_by_features(self):
        """Features of texts, which have no length themselves, come in the same order."""
        frozen = ['--steps', '12', '--bucket', '3', '--train-last', '1']
        self.assertEqual(
            self.bits('text-lstm', 'kept', *frozen, '--cache-features', 'memory'),
            self.bits('text-lstm', 'fresh', *frozen))

    @unittest.skipIf(LAYER == 'none', 'needs CL/cl_layer.h')
    def test_a_lost_device(self):
        fault = 'call=clEnqueueNDRangeKernel,device=1,nth=200,kind=error,code=-36,sticky=1'
        for model in MODELS:
            with self.subTest(model):
                one = self.bits(model, f'{model} one', '--steps', '12')
                self.assertEqual(self.bits(
                    model, f'{model} two', '--steps', '12', '--device', '0/2', '--split',
                    'all', OPENCL_LAYERS=LAYER, LOCKSTEP_FAULT=fault), one)
                self.assertIn('1 device is left', self.stderr)
                steps = self.events(f'{model} two', 'step')
                self.assertTrue(all(steps[0]['devices']))  # it had a share before
                self.assertFalse(all(steps[-1]['devices']))

    @unittest.skipUnless(HAS_MPI and MPIRUN, 'needs a build with MPI, and mpirun')
    def test_two_ranks(self):
        clean = {k: v for k, v in self.environment().items()
                 if not k.startswith(('OMPI_', 'PMI'))}
        for model, more in [(m, o) for m in MODELS for o in ([], LAZY)]:
            with self.subTest(model, more=more):
                subprocess.run([MPIRUN, '--allow-run-as-root', '--oversubscribe', '-np', '2',
                                PROGRAM, *self.arguments(model, 'ranks', 14), '--steps', '12',
                                '--fresh', *more], cwd=self.folder, env=clean, check=True,
                               capture_output=True, timeout=200)
                self.assertEqual(self.sha256('ranks'),
                                 self.bits(model, f'{model} one', '--steps', '12', '--fresh',
                                           *more))


if __name__ == '__main__':
    program.main()
