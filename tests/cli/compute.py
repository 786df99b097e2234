"""lockstep run computes what a model's text says, on arrays of any type, and refuses others."""
import glob
import json
import math
import os
import resource
import signal
import struct
import subprocess
import time
import unittest

import npy
import program
from program import ProgramTest

SMALL = """name: small
input: {shape: [3, 2, 2], type: uint8, scale: 0.5, shift: -1}
blocks:
  both:
    layers:
      - {name: $name_first, relu: }
      - {name: $name_second, square: {activation: tanh}}
layers:
  - {name: pair, both: }
  - {name: flat, flatten: }
  - {name: last, rescale: {scale: 3, shift: 1}}
output: last
"""
PIXELS = [(7 * i * i + 3 * i) % 256 for i in range(37 * 12)]


class ComputeTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.put('small.yaml', SMALL)
        npy.write(self.path('u.npy'), '|u1', (37, 3, 2, 2), PIXELS)

    def compute(self, *arguments, model='small.yaml', output='values', **more):
        return self.run_program('run', model, '--output', output, *arguments, **more)

    def value(self, name, output='values'):
        return npy.read(self.path(f'{output}/{name}.npy'))

    def assert_close(self, found, expected, tolerance=2e-6):
        self.assertEqual(len(found), len(expected))
        for i, (a, b) in enumerate(zip(found, expected)):
            self.assertLess(abs(a - b), tolerance * max(1, abs(b)), i)

    def assert_small(self, seen, output='values'):
        """All values of the small model, of what its first layer reads."""
        second = [math.tanh(max(x, 0)**2) for x in seen]
        self.assertEqual(self.value('image', output)[0], (37, 3, 2, 2))
        self.assert_close(self.value('image', output)[1], seen)
        self.assert_close(self.value('pair_first', output)[1], [max(x, 0) for x in seen])
        self.assert_close(self.value('pair_second', output)[1], second)
        self.assert_close(self.value('pair', output)[1], second)
        shape, flat = self.value('flat', output)
        self.assertEqual(shape, (37, 12))
        planes = [second[12 * n + 2 * p + c] for n in range(37) for c in range(2)
                  for p in range(6)]
        self.assert_close(flat, planes)
        self.assert_close(self.value('last', output)[1], [3 * x + 1 for x in planes])


VARIED = """name: varied
input: {shape: [3, 2, 2], type: uint8, scale: 1}
classes: 4
parameters: {twice: false}
blocks:
  double:
    layers:
      - {name: $name, rescale: {scale: 2}, when: $twice}
layers:
  - {name: doubled, double: }
  - {name: kept, flatten: }
  - {name: counted, dense: {units: $classes}}
output: counted
"""
TAPS = sum((['--tap', n] for n in ('image', 'pair', 'pair_first', 'pair_second', 'flat')), [])


class Settings(ComputeTest):
    def test_another_model_of_the_same_text(self):
        """Parameters, classes and input of a text that has them; a run has its own model."""
        self.put('varied.yaml', VARIED)
        self.compute('--input', 'u.npy', '--tap', 'kept', model='varied.yaml')
        self.compute('--input', 'u.npy', '--tap', 'kept', '--set', 'twice=true', '--set',
                     'classes=7', model='varied.yaml', output='doubled')
        self.assertEqual(self.value('counted')[0], (37, 4))
        self.assertEqual(self.value('counted', 'doubled')[0], (37, 7))
        self.assertEqual([2 * x for x in self.value('kept')[1]],
                         list(self.value('kept', 'doubled')[1]))
        self.refused(2, "'thrice'", 'run', 'varied.yaml', '--set', 'thrice=true',
                     '--input', 'u.npy', '--output', 'no')
        os.mkdir(self.path('folder'))
        self.put('folder/model.yaml', SMALL)
        self.refused(2, 'settings are for models of the zoo and model files', 'run', 'folder',
                     '--set', 'classes=3', '--input', 'u.npy', '--output', 'no')


    def test_an_output_has_its_name(self):
        """Also where an activation stands behind the entry, which nobody has named."""
        text = """name: named
input: {shape: [3, 2, 2], type: uint8, scale: 1}
layers:
  - {name: first, rescale: {scale: -3}}
  - {name: last, add: {activation: relu6}, from: [first, image]}
"""
        for i, output in enumerate(('', 'output: last', 'output: [last]', 'output: {it: last}',
                                    'output: [first, last]', 'output: relu6_1')):
            self.put('named.yaml', text + output)
            names = {3: ['it'], 4: ['first', 'last'], 5: ['relu6_1']}.get(i, ['last'])
            for taps in [], ['--tap', 'last', '--tap', 'relu6_1']:
                to = f'{i}-{len(taps)}'
                self.compute('--input', 'u.npy', *taps, model='named.yaml', output=to)
                self.assertEqual({name[:-4] for name in os.listdir(self.path(to))},
                                 {*names, *taps[1::2]}, output)

    def test_one_of_two_entries(self):
        """Of two entries of one name that which is there is meant, first or last."""
        self.put('either.yaml', """name: either
input: {shape: [3, 2, 2], type: uint8, scale: 1}
parameters: {large: true}
layers:
  - {name: part, rescale: {scale: 3}, when: $large}
  - {name: part, rescale: {scale: 2}, when: $(large == 0)}
  - {name: last, rescale: {scale: 5}}
""")
        for large, factor in ('true', 3), ('false', 2):
            self.compute('--input', 'u.npy', '--tap', 'part', '--set', 'large=' + large,
                         model='either.yaml', output=large)
            self.assert_close(self.value('part', large)[1], [factor * x for x in PIXELS])


class Values(ComputeTest):
    def test_pixels_are_scaled(self):
        done = self.compute('--input', 'image=u.npy', *TAPS, '--batch-size', '8')
        self.assertIn('values/last.npy [37, 12]\n', done.stdout)
        self.assertIn('values/image.npy [37, 3, 2, 2]\n', done.stdout)
        self.assert_small([x * 0.5 - 1 for x in PIXELS])
        self.compute('--input', 'u.npy', *TAPS, output='at-once')
        for name in 'last', 'pair', 'image':
            self.assert_close(self.value(name, 'at-once')[1], self.value(name)[1])

    def test_numbers_for_an_image_are_as_they_are(self):
        for kind, numbers in (('<f4', [x / 64 - 2 for x in PIXELS]),
                              ('<f8', [x / 64 - 2 for x in PIXELS]),
                              ('<i4', [x - 100 for x in PIXELS]),
                              ('<i8', [x - 100 for x in PIXELS])):
            npy.write(self.path('x.npy'), kind, (37, 3, 2, 2), numbers)
            self.compute('--input', 'x.npy', *TAPS, output=kind[1:])
            self.assert_small(numbers, kind[1:])

    def test_pools_of_another_shape(self):
        """What reads an image in another shape is no part of what makes it."""
        for shape in '[2, 2, 16]', '[2, 8, 4]', '[8, 2, 4]':
            self.put('net.yaml', f"""name: net
input: {{shape: [4, 4, 3], type: uint8}}
layers:
  - {{name: made, conv2d: {{filters: 4, kernel: 3, padding: same}}}}
  - {{name: other, reshape: {{shape: {shape}}}}}
  - {{name: pool, max_pool: {{size: 2}}}}
output: pool
""")
            npy.write(self.path('i.npy'), '|u1', (3, 4, 4, 3), PIXELS[:144])
            pools = []
            for taps in [], ['--tap', 'made']:
                self.compute('--input', 'i.npy', '--force', *taps, model='net.yaml')
                pools.append(self.value('pool'))
            self.assertEqual(pools[0][0], pools[1][0])
            self.assert_close(pools[0][1], pools[1][1])

    def test_images_too_large_for_the_caches(self):
        """Few of them are computed two by two, and alone: the same bits."""
        side = 300
        self.put('net.yaml', f"""name: net
input: {{shape: [{side}, {side}, 1], type: uint8}}
layers:
  - {{name: made, conv2d: {{filters: 4, kernel: 3, padding: same}}}}
  - {{name: mean, global_average_pool: }}
output: mean
""")
        pixels = [(i * i // 7 + i) % 251 for i in range(3 * side * side)]
        npy.write(self.path('all.npy'), '|u1', (3, side, side, 1), pixels)
        self.compute('--input', 'all.npy', '--batch-size', '3', model='net.yaml')
        means = self.value('mean')[1]
        for i in range(3):
            npy.write(self.path('one.npy'), '|u1', (1, side, side, 1),
                      pixels[i * side * side:(i + 1) * side * side])
            self.compute('--input', 'one.npy', '--batch-size', '3', '--force', model='net.yaml')
            self.assertEqual(self.value('mean')[1], means[4 * i:4 * i + 4])

    def test_inputs_of_numbers_have_their_scale(self):
        self.put('two.yaml', 'input: {a: {shape: [3], scale: 2, shift: 1}, b: [3]}\nlayers:\n'
                 '- {name: sum, from: [a, b], add: }\n')
        npy.write(self.path('a.npy'), '|u1', (2, 3), [1, 2, 3, 4, 5, 6])
        npy.write(self.path('b.npy'), '<i4', (2, 3), [10, 20, 30, 40, 50, 60])
        self.compute('--input', 'b=b.npy', '--input', 'a=a.npy', model='two.yaml')
        self.assertEqual(self.value('sum'), ((2, 3), [13, 25, 37, 49, 61, 73]))

    def test_weights_of_a_run_and_of_a_seed(self):
        self.train('--steps', '2', '--run', 'out')
        npy.write(self.path('x.npy'), '|u1', (5, 28, 28, 1), [x % 251 for x in range(5 * 784)])
        self.compute('--input', 'x.npy', '--tap', 'dense_1', model='out')
        checkpoint = sorted(glob.glob(self.path('out/checkpoints/*.safetensors')))[-1]
        with open(checkpoint, 'rb') as file:
            content = file.read()
        start = 8 + struct.unpack('<Q', content[:8])[0]
        header = json.loads(content[8:start])

        def array(name):
            begin, end = header[name]['data_offsets']
            return struct.unpack(f'<{(end - begin) // 4}f', content[start + begin:start + end])
        weight, bias = array('dense_1.weight'), array('dense_1.bias')
        logits = [bias[k] + sum((i + 784 * n) % 251 / 255 * weight[10 * i + k]
                                for i in range(784))
                  for n in range(5) for k in range(10)]
        self.assert_close(self.value('dense_1')[1], logits, 1e-5)
        sums = [sum(map(math.exp, logits[10 * n:10 * n + 10])) for n in range(5)]
        self.assert_close(self.value('softmax_1')[1],
                          [math.exp(x) / sums[i // 10] for i, x in enumerate(logits)])
        self.compute('--input', 'x.npy', model=checkpoint, output='file')
        self.assertEqual(self.value('softmax_1', 'file'), self.value('softmax_1'))
        self.compute('--input', 'x.npy', '--weights', checkpoint, model='tiny.yaml',
                     output='other')
        self.assertEqual(self.value('softmax_1', 'other'), self.value('softmax_1'))
        for seed in '1', '2':
            self.compute('--input', 'x.npy', '--seed', seed, model='tiny.yaml', output=seed)
        self.assertNotEqual(self.value('softmax_1', '1'), self.value('softmax_1', '2'))


class LongWork(ComputeTest):
    """The array has more samples than a machine computes in a minute."""

    def setUp(self):
        super().setUp()
        npy.write(self.path('many.npy'), '|u1', (40_000_000, 3, 2, 2), [])
        header = os.path.getsize(self.path('many.npy'))
        os.truncate(self.path('many.npy'), header + 40_000_000 * 12)

    def start(self, *arguments, **more):
        running = subprocess.Popen(
            [program.PROGRAM, 'run', 'small.yaml', '--input', 'many.npy', '--output', 'values',
             *arguments], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, env=self.environment(), **more)
        self.addCleanup(running.stderr.close)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        return running

    def test_an_interrupt_leaves_no_file(self):
        running = self.start()
        while not glob.glob(self.path('values/*')) and running.poll() is None:
            time.sleep(0.1)
        running.send_signal(signal.SIGINT)
        self.assertEqual(running.wait(timeout=60), 130)
        self.assertIn('interrupted', running.stderr.read())
        self.assertFalse(os.path.exists(self.path('values')))

    def test_a_full_disk_ends_it(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 20, 8 << 20))
        running = self.start(preexec_fn=limit)
        self.assertEqual(running.wait(timeout=60), 3)
        self.assertIn("cannot write the value 'last': File too large", running.stderr.read())
        self.assertFalse(os.path.exists(self.path('values')))

    def test_a_large_batch_takes_no_memory_for_samples_that_never_come(self):
        self.put('wide.yaml', 'name: wide\ninput: {shape: [32, 32, 3]}\n'
                 'layers:\n- {name: all, rescale: {scale: 2, shift: 0}}\n')
        npy.write(self.path('one.npy'), '|u1', (1, 32, 32, 3), [1] * 3072)
        self.compute('--input', 'one.npy', '--batch-size', '32768', model='wide.yaml')
        self.assertEqual(self.value('all')[0], (1, 32, 32, 3))
        largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        self.assertLess(largest, 400_000)  # kilobytes


class Refusals(ComputeTest):
    def wrong(self, status, said, *arguments, model='small.yaml'):
        self.refused(status, said, 'run', model, '--output', 'values', *arguments)
        self.assertFalse(glob.glob(self.path('values/**/*.npy'), recursive=True))

    def test_names(self):
        self.wrong(2, ["no entry and no input 'pair_frist'", "did you mean 'pair_first'?"],
                   '--input', 'u.npy', '--tap', 'pair_frist')
        self.wrong(2, "did you mean 'image'?", '--input', 'imaeg=u.npy')
        self.wrong(2, 'is given twice', '--input', 'u.npy', '--input', 'image=u.npy')
        self.wrong(2, 'needs --input')
        self.put('two.yaml', 'input: {a: [3], b: [3]}\nlayers:\n- {from: [a, b], add: }\n')
        npy.write(self.path('a.npy'), '<f4', (2, 3), range(6))
        self.wrong(2, "input 'b' is missing", '--input', 'a=a.npy', model='two.yaml')
        self.wrong(2, 'needs the name of its own', '--input', 'a.npy', model='two.yaml')
        npy.write(self.path('b.npy'), '<f4', (3, 3), range(9))
        self.wrong(3, "has 3 samples, another input has 2", '--input', 'a=a.npy', '--input',
                   'b=b.npy', model='two.yaml')

    def test_arrays(self):
        for shape, said in (((37, 2, 3, 2), 'takes [n, 3, 2, 2]'),
                            ((3, 2, 2), 'takes [n, 3, 2, 2]'),
                            ((0, 3, 2, 2), 'has no sample')):
            npy.write(self.path('x.npy'), '<f4', shape, [0] * math.prod(shape))
            self.wrong(3, said, '--input', 'x.npy')
        npy.write(self.path('x.npy'), '<f4', (1, 3, 2, 2), range(12), fortran=True)
        self.wrong(3, 'Fortran order', '--input', 'x.npy')
        npy.write(self.path('x.npy'), '<f4', (1, 3, 2, 2), [math.nan] + [0] * 11)
        self.wrong(3, 'expected finite', '--input', 'x.npy')
        npy.write(self.path('x.npy'), '<i8', (1, 3, 2, 2), [1 << 40] + [0] * 11)
        self.wrong(3, 'does not fit int32', '--input', 'x.npy')
        self.put('x.npy', b'no array')
        self.wrong(3, 'no .npy file', '--input', 'x.npy')
        self.wrong(3, 'absent.npy', '--input', 'absent.npy')

    def test_floats_for_tokens(self):
        self.put('tokens.yaml', 'input: {t: {shape: [3], type: int32}, x: [3]}\nlayers:\n'
                 '- {from: x, relu: }\n')
        npy.write(self.path('x.npy'), '<f4', (1, 3), range(3))
        self.wrong(3, 'takes whole numbers', '--input', 't=x.npy', '--input', 'x=x.npy',
                   model='tokens.yaml')

    def test_files_that_are_there(self):
        os.mkdir(self.path('values'))
        self.put('values/last.npy', 'mine')
        self.refused(3, 'is there already; --force replaces it', 'run', 'small.yaml',
                     '--output', 'values', '--input', 'u.npy')
        with open(self.path('values/last.npy')) as file:
            self.assertEqual(file.read(), 'mine')
        self.compute('--input', 'u.npy', '--force')
        self.assertEqual(self.value('last')[0], (37, 12))

    def test_outputs_stay_in_the_folder(self):
        self.put('out.yaml', SMALL.replace('output: last', 'output: {../../x: last}'))
        self.wrong(3, 'can be no file', '--input', 'u.npy', model='out.yaml')

    def test_a_folder_that_stays_empty_goes(self):
        """Of values that were begun, below one another too; not one that was there before."""
        self.put('deep.yaml', SMALL.replace('output: last', 'output: {a/b/c: last}'))
        self.put('w', b'no weights')
        for model in 'small.yaml', 'deep.yaml':
            self.wrong(3, 'w', '--input', 'u.npy', '--weights', 'w', model=model)
            self.assertFalse(os.path.exists(self.path('values')))
        os.mkdir(self.path('values'))
        self.wrong(3, 'w', '--input', 'u.npy', '--weights', 'w')
        self.assertEqual(os.listdir(self.path('values')), [])


if __name__ == '__main__':
    program.main()
