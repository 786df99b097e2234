"""lockstep tune, and training with what it found: no bit depends on blockings."""
import glob
import json
import os
import re
import signal
import subprocess
import unittest

import program
from program import PROGRAM, ProgramTest

LAYER = os.environ.get('LOCKSTEP_FAULT_LAYER')
LOST = {'OPENCL_LAYERS': LAYER or '', 'LOCKSTEP_FAULT':
        'call=clEnqueueNDRangeKernel,nth=1,device=0,code=-36,sticky=1'}
NET = """name: net
input: [28, 28, 1]
layers:
  - conv2d: {filters: 8, kernel: 3, activation: relu}
  - conv2d: {filters: 16, kernel: 3}
  - flatten
  - dense: {units: 10}
  - softmax
"""


class Tune(ProgramTest):
    TRAIN = ['net.yaml', '--data', 'synthetic:digits,count=512', '--batch-size', '48',
             '--epochs', '100000', '--set', 'validation=off']

    def setUp(self):
        super().setUp()
        self.put('net.yaml', NET)
        os.mkdir(self.path('cache'))

    def environment(self, **changes):
        return super().environment(LOCKSTEP_CACHE=self.path('cache'), **changes)

    def tune(self, *arguments, **more):
        return self.run_program('tune', 'net.yaml', '--batch-size', '64', *arguments, **more)

    def kept(self, kind=''):
        """What the cache has: algorithms by key."""
        found = glob.glob(self.path(f'cache/tuning/*-normal{kind}.txt'))
        if not found:
            return {}
        with open(found[0], encoding='utf-8') as file:
            self.assertEqual(file.readline(), 'math normal\n')
            return dict(line.rstrip('\n').split('\t') for line in file)

    def algorithms(self, run):
        with open(self.path(f'{run}/env.json'), encoding='utf-8') as file:
            return json.load(file)['algorithms']

    def test_settings_change_what_is_measured(self):
        self.put('own.yaml', NET.replace('layers:', 'parameters: {width: 8}\nlayers:')
                 .replace('filters: 8', 'filters: $width'))
        self.run_program('tune', 'own.yaml', '--batch-size', '8')
        first = self.kept()
        self.run_program('tune', 'own.yaml', '--batch-size', '8', '--set', 'width=24')
        self.assertFalse(any('filters=24' in key for key in first), first)
        self.assertTrue(any('filters=24' in key for key in self.kept()))
        self.refused(2, 'widht', 'tune', 'own.yaml', '--set', 'widht=24')
        self.refused(2, "needs KEY=VALUE, found 'width'", 'tune', 'own.yaml', '--set', 'width')

    def test_results_are_kept(self):
        first = self.tune().stdout
        kept = self.kept()
        self.assertIn('    winograd4 ', first)
        self.assertGreaterEqual(len(kept), 3)  # both forward passes and one data gradient
        for key, algorithm in kept.items():
            self.assertRegex(key, r'^conv2d (forward|dgrad|wgrad) \[')
            self.assertIn(f'-> {algorithm}\n', first)
        self.assertIn(f'{len(kept)} choices measured', first)
        self.assertIn('0 choices measured', self.tune().stdout)
        self.assertIn(f'{len(kept)} choices measured', self.tune('--again').stdout)

    def test_halves_are_measured_apart(self):
        """Of stored halves, whose kernels are others; a run of them takes what was found."""
        mixed = '--precision', 'mixed'
        said = self.tune(*mixed).stdout
        self.assertNotIn('wrong numbers', said)
        kept = self.kept()
        self.assertGreaterEqual(len(kept), 3)
        for key in kept:
            self.assertIn(' float16 lanes=', key)
        self.run_program('train', *self.TRAIN, *mixed, '--run', 'halves', '--steps', '2')
        taken = self.algorithms('halves')
        self.assertEqual({key: taken[key] for key in kept}, kept)
        self.run_program('train', *self.TRAIN, '--run', 'floats', '--steps', '2')
        self.assertFalse(set(self.algorithms('floats')) & set(kept))
        self.assertIn('0 choices measured', self.tune(*mixed).stdout)

    def test_training_takes_them_and_keeps_its_bits(self):
        self.run_program('train', *self.TRAIN, '--run', 'rule', '--steps', '20', '--tune',
                         'off')
        rule = self.algorithms('rule')
        other = re.search(r'direct \w+ \d+x\d+', self.tune().stdout).group()
        path = glob.glob(self.path('cache/tuning/*-normal.txt'))[0]
        with open(path, 'w', encoding='utf-8') as file:
            file.write('math normal\n')
            for key, algorithm in rule.items():
                if ' wgrad ' not in key and algorithm.startswith('direct'):
                    file.write(f'{key}\t{other}\n')
        self.run_program('train', *self.TRAIN, '--run', 'tuned', '--steps', '10')
        self.assertIn(other, self.algorithms('tuned').values())
        os.remove(path)  # a run keeps what it began with
        self.run_program('train', *self.TRAIN, '--run', 'tuned', '--steps', '20')
        self.assertIn(other, self.algorithms('tuned').values())
        self.assertEqual(self.sha256('tuned'), self.sha256('rule'))

    def test_what_was_found_quickly_changes_no_bit(self):
        """Whatever algorithms the cache names: a run of another size may have left them."""
        self.run_program('train', *self.TRAIN, '--run', 'rule', '--steps', '10', '--tune',
                         'off')
        rule = self.algorithms('rule')
        self.assertRegex(' '.join(rule.values()), 'winograd4 ')
        self.tune('--seconds', '1')
        path = glob.glob(self.path('cache/tuning/*-normal.txt'))[0]
        os.rename(path, path.replace('-normal.txt', '-normal-quick.txt'))
        with open(path.replace('-normal.txt', '-normal-quick.txt'), 'w',
                  encoding='utf-8') as file:
            file.write('math normal\n')
            for key, algorithm in rule.items():
                other = 'winograd4' if algorithm.startswith('direct') else 'direct 12x2'
                file.write(f'{key}\t{other}\n')
        self.run_program('train', *self.TRAIN, '--run', 'quick', '--steps', '10')
        self.assertEqual(self.algorithms('quick'), rule)
        self.assertEqual(self.sha256('quick'), self.sha256('rule'))

    def test_what_was_not_measured_whole_is_not_kept(self):
        said = self.tune('--seconds', '1').stdout
        self.assertEqual(len(self.kept()), said.count('-> '), said)

    def test_a_foreign_file_is_left_aside(self):
        """And so is one that a crash has cut; env.json names what the rule took instead."""
        self.run_program('train', *self.TRAIN, '--run', 'rule', '--steps', '1', '--tune', 'off')
        self.tune()
        path = glob.glob(self.path('cache/tuning/*-normal.txt'))[0]
        for content in b'', b'math strict\n', b'math normal\nno tab\n', b'\xff\xfe\0\0', \
                b'math normal\n' + b'k' * 5000:
            with open(path, 'wb') as file:
                file.write(content)
            done = self.run_program('train', *self.TRAIN, '--run', 'run', '--fresh', '--steps',
                                    '2')
            self.assertIn('results of tuning are left aside: ' + path, done.stderr)
            self.assertEqual(self.algorithms('run'), self.algorithms('rule'))
        with open(path, 'w', encoding='utf-8') as file:
            file.write('math normal\nconv2d of something else\tmagic\n')
        done = self.run_program('train', *self.TRAIN, '--run', 'run', '--fresh', '--steps', '2')
        self.assertNotIn('left aside', done.stderr)
        for key in self.algorithms('run'):
            with open(path, 'a', encoding='utf-8') as file:
                file.write(f'{key}\tmagic\n')
        done = self.run_program('train', *self.TRAIN, '--run', 'run', '--fresh', '--steps', '2')
        self.assertIn("'magic' cannot be had for conv2d", done.stderr)
        self.assertNotIn('magic', self.algorithms('run').values())

    def test_changed_kernels_are_measured_anew(self):
        """The file's name has version, kernels and math in it."""
        self.tune()
        path = glob.glob(self.path('cache/tuning/*-normal.txt'))[0]
        name = os.path.basename(path)
        self.assertRegex(name, r'^\d+\.\d+\.\d+-[0-9a-f]{12}-normal\.txt$')
        os.rename(path, path.replace(name.split('-')[1], '0123456789ab'))
        self.assertNotIn('0 choices measured', self.tune().stdout)

    def test_two_at_once(self):
        """Neither loses what the other has found."""
        self.put('other.yaml', NET.replace('filters: 16', 'filters: 24'))
        running = [subprocess.Popen([PROGRAM, 'tune', model, '--batch-size', '32'],
                                    cwd=self.folder, env=self.environment(),
                                    stdout=subprocess.PIPE, text=True)
                   for model in ('net.yaml', 'other.yaml')]
        said = [process.communicate(timeout=100)[0] for process in running]
        self.assertEqual([process.returncode for process in running], [0, 0])
        kept = self.kept()
        for model in 'filters=16', 'filters=24':
            self.assertTrue(any(model in key for key in kept), (model, kept, said))

    def test_long_runs_begin_with_a_quick_one(self):
        self.check_quick_tuning('float')

    def test_long_runs_of_halves_do_too(self):
        for key in self.check_quick_tuning('mixed'):
            self.assertIn(' float16 ', key)

    def begin_long_run(self, run, *options, environment=None):
        """One that is worth some seconds of tuning; what it says until it is stopped."""
        process = subprocess.Popen(
            [PROGRAM, 'train', *self.TRAIN, '--run', run, '--steps', '100000000',
             '--log-format', 'jsonl', *options], cwd=self.folder, text=True,
            env=self.environment(**(environment or {})), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        for line in process.stdout:
            if json.loads(line).get('step') == 3:
                break
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 130)
        return said

    def check_quick_tuning(self, precision):
        """What it found, which the run has taken."""
        self.begin_long_run('long', '--precision', precision)
        quick = self.kept('-quick')
        self.assertGreaterEqual(len(quick), 1)
        for key, algorithm in quick.items():
            self.assertEqual(self.algorithms('long')[key], algorithm)
        return quick

    def test_a_device_that_is_gone(self):
        """What was found on it is for no other one."""
        found = self.tune('--seconds', '30').stdout
        kept = self.kept()
        self.assertGreaterEqual(len(kept), 1, found)
        self.refused(4, 'device', 'train', *self.TRAIN, '--run', 'none', '--device', '99')
        done = self.run_program('train', *self.TRAIN, '--run', 'other', '--steps', '2',
                                environment={'LOCKSTEP_VECTOR': '8', 'POCL_DEVICES': 'basic'})
        self.assertNotIn('warning', done.stderr)
        with open(self.path('other/env.json'), encoding='utf-8') as file:
            about = json.load(file)
        [device] = about['devices']
        self.assertFalse(set(about['algorithms']) & set(kept))
        for key in about['algorithms']:
            self.assertIn(' on ' + device['name'], key)

    @unittest.skipUnless(LAYER, 'no layer that makes devices fail')
    def test_a_device_that_is_lost_after_tuning(self):
        """The others go on with what was found on it, or the run says that none is left."""
        self.tune()
        kept = self.kept()
        train = [*self.TRAIN, '--steps', '6', '--shards', '2']
        self.run_program('train', *train, '--run', 'whole')
        done = self.run_program('train', *train, '--run', 'lost', '--device', '0*2', '--split',
                                'all', environment=LOST)
        self.assertIn('is lost', done.stderr)
        self.assertEqual(self.sha256('lost'), self.sha256('whole'))
        for run in 'lost', 'whole':
            algorithms = self.algorithms(run)
            self.assertEqual({key: algorithms[key] for key in kept}, kept)
        done = self.run_program('train', *train, '--run', 'alone', status=4, environment=LOST)
        self.assertIn('0 devices are left', done.stderr)

    @unittest.skipUnless(LAYER, 'no layer that makes devices fail')
    def test_a_device_that_is_lost_while_it_is_tuned(self):
        """The others go on, to the same bits."""
        self.run_program('train', *self.TRAIN, '--steps', '3', '--run', 'whole', '--shards',
                         '2', '--tune', 'off')
        said = self.begin_long_run('lost', '--device', '0*2', '--split', 'all', '--shards', '2',
                                   environment=LOST)
        self.assertIn('is lost', said)
        whole, lost = (self.events(run, 'step')[:3] for run in ('whole', 'lost'))
        self.assertEqual([e['loss'] for e in lost], [e['loss'] for e in whole])

    @unittest.skipUnless(LAYER, 'no layer that makes devices fail')
    def test_wrong_numbers_are_not_taken(self):
        """A bit of what the device gives back changes: of the second candidate's results."""
        environment = {'OPENCL_LAYERS': LAYER, 'LOCKSTEP_FAULT':
                       'call=clEnqueueReadBuffer,nth=2,times=1,kind=corrupt'}
        done = self.tune(environment=environment)
        wrong = [line.split() for line in done.stdout.splitlines() if 'wrong numbers' in line]
        self.assertEqual(len(wrong), 1, done.stdout)
        first = done.stdout.split('->')[1].split('\n')[0].strip()
        self.assertNotEqual(first, ' '.join(wrong[0][:-2]))

    @unittest.skipUnless(LAYER, 'no layer that makes devices fail')
    def test_a_kernel_that_the_device_cannot_run(self):
        """For its registers or local memory: the others are measured all the same."""
        environment = {'OPENCL_LAYERS': LAYER, 'LOCKSTEP_FAULT':
                       'call=clEnqueueNDRangeKernel,kernel=*winograd*,times=0,code=-54'}
        said = self.tune(environment=environment).stdout
        self.assertRegex(said, r'\n    winograd4 \w+ +cannot run here\n')
        self.assertEqual(len(self.kept()), said.count('-> '))
        for algorithm in self.kept().values():
            self.assertRegex(algorithm, '^direct')

    def keep(self, lines):
        """As if it had been found by tuning, by keys; returns the file."""
        if not glob.glob(self.path('cache/tuning/*-normal.txt')):
            self.tune('--seconds', '1', environment={'LOCKSTEP_CLASS': 'gpu'})
        [path] = glob.glob(self.path('cache/tuning/*-normal.txt'))
        with open(path, 'w', encoding='utf-8') as file:
            file.write('math normal\n')
            file.writelines(f'{key}\t{algorithm}\n' for key, algorithm in lines.items())
        return path

    def keep_clblast(self, **more):
        """For a layer of single taps on a GPU's kernels, to which no rule leaves it."""
        self.put('one.yaml', NET.replace('filters: 16, kernel: 3', 'filters: 16, kernel: 1'))
        if not os.path.exists(self.path('rule')):
            self.run_program('train', 'one.yaml', *self.TRAIN[1:], '--run', 'rule', '--tune',
                             'off', '--steps', '1', environment={'LOCKSTEP_CLASS': 'gpu'})
        keys = [key for key in self.algorithms('rule') if ' [8, 26, 26] ' in key]
        self.assertEqual(len(keys), 3)
        return self.keep({**{key: 'clblast' for key in keys}, **more})

    @unittest.skipUnless(LAYER, 'no layer that makes devices fail')
    def test_clblast_that_multiplies_wrongly_is_not_used(self):
        """What its known answer is compared with changes: another algorithm stands in."""
        self.keep_clblast()
        train = ['one.yaml', *self.TRAIN[1:], '--steps', '3']
        gpu = {'LOCKSTEP_CLASS': 'gpu'}
        self.run_program('train', *train, '--run', 'right', environment=gpu)
        self.assertIn('clblast', self.algorithms('right').values())
        wrong = {**gpu, 'OPENCL_LAYERS': LAYER, 'LOCKSTEP_FAULT':
                 'call=clEnqueueReadBuffer,nth=1,times=1,kind=corrupt'}
        done = self.run_program('train', *train, '--run', 'wrong', environment=wrong)
        self.assertIn('CLBlast multiplies wrongly', done.stderr)
        self.assertIn('instead of clblast', done.stderr)
        self.assertNotIn('clblast', self.algorithms('wrong').values())
        losses = [[e['loss'] for e in self.events(run, 'step')] for run in ('right', 'wrong')]
        for a, b in zip(*losses):
            self.assertAlmostEqual(a, b, places=3)

    @unittest.skipUnless(LAYER, 'no layer that counts calls')
    def test_a_step_of_clblast_allocates_nothing(self):
        """Products that CLBlast copies matrices for have scratch of the memory plan."""
        self.put('wide.yaml', """input: [28, 28, 1]
layers:
  - conv2d: {filters: 192, kernel: 1}
  - conv2d: {filters: 224, kernel: 1}
  - global_average_pool
  - dense: {units: 10}
  - softmax
""")
        train = ['wide.yaml', *self.TRAIN[1:], '--batch-size', '32']
        gpu = {'LOCKSTEP_CLASS': 'gpu'}
        self.run_program('train', *train, '--run', 'rule', '--steps', '1', '--tune', 'off',
                         environment=gpu)
        keys = [key for key in self.algorithms('rule') if '[192, 28, 28]' in key]
        self.assertEqual(len(keys), 3)
        self.keep({key: 'clblast' for key in keys})
        made = []
        for steps in '1', '3':
            count = {'OPENCL_LAYERS': LAYER, 'LOCKSTEP_FAULT_COUNT': self.path('count' + steps)}
            self.run_program('train', *train, '--run', 'run' + steps, '--steps', steps,
                             '--val', 'off', environment={**gpu, **count})
            for key in keys:
                self.assertEqual(self.algorithms('run' + steps)[key], 'clblast')
            with open(self.path('count' + steps), encoding='utf-8') as file:
                counts = [line.split() for line in file]
            made.append({name: int(n) for device, name, n in counts if 'Buffer' in name and
                         'Create' in name})
        self.assertEqual(set(made[0]), {'clCreateBuffer', 'clCreateSubBuffer'})
        self.assertEqual(made[0], made[1])

    def clblast_run(self, run, steps, *options, **environment):
        """Trains on a GPU's kernels, of which CLBlast's are some; the tiles they took."""
        done = self.run_program('train', 'one.yaml', *self.TRAIN[1:], '--run', run, '--steps',
                                steps, '--shards', '2', *options,
                                environment={'LOCKSTEP_CLASS': 'gpu', **environment})
        algorithms = self.algorithms(run)
        self.assertIn('clblast', algorithms.values())
        [key] = [key for key in algorithms if key.startswith('clblast tiles float32 on ')]
        return done, key, algorithms[key]

    def test_tiles_of_clblast(self):
        """A run keeps those it began with; no bit depends on them."""
        path = self.keep_clblast()
        _, key, tiles = self.clblast_run('own', '8')
        self.assertEqual(tiles, 'own')
        self.keep_clblast(**{key: 'plain'})
        self.assertEqual(self.clblast_run('plain', '4')[2], 'plain')
        two = self.clblast_run('two', '8', '--device', '0*2', '--split', 'all')
        self.assertEqual(two[2], 'plain')
        os.remove(path)
        self.assertEqual(self.clblast_run('plain', '8')[2], 'plain')
        for run in 'plain', 'two':
            self.assertEqual(self.sha256(run), self.sha256('own'))
        self.keep_clblast(**{key: '16x16x16'})
        done, _, tiles = self.clblast_run('foreign', '1')
        self.assertIn("'16x16x16' cannot be had for clblast tiles", done.stderr)
        self.assertEqual(tiles, 'own')
        if LAYER:  # a bit of what is compared with the known answer changes
            self.keep_clblast(**{key: '64x64x16'})
            done, _, tiles = self.clblast_run(
                'wrong', '8', OPENCL_LAYERS=LAYER,
                LOCKSTEP_FAULT='call=clEnqueueReadBuffer,nth=1,times=1,kind=corrupt')
            self.assertIn('CLBlast multiplies wrongly', done.stderr)
            self.assertIn('plain tiles instead of 64x64x16', done.stderr)
            self.assertEqual(tiles, 'plain')
            self.assertEqual(self.sha256('wrong'), self.sha256('own'))

    def test_interrupted(self):
        """What was measured is kept, a choice of which some candidates were not is not."""
        process = subprocess.Popen([PROGRAM, 'tune', 'net.yaml', '--batch-size', '64'],
                                   cwd=self.folder, env=self.environment(),
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        for line in process.stdout:
            if '-> ' in line:  # the first choice is made
                process.send_signal(signal.SIGINT)
                break
        said = line + process.communicate(timeout=100)[0]
        self.assertEqual(process.returncode, 130)
        self.assertEqual(len(self.kept()), said.count('-> '), said)

    def test_refusals(self):
        self.refused(3, 'no-such-model', 'tune', 'no-such-model')
        self.refused(2, "math 'exact' is none of", 'tune', 'net.yaml', '--math', 'exact')
        self.refused(2, "precision 'half' is none of float, mixed", 'tune', 'net.yaml',
                     '--precision', 'half')
        self.refused(2, 'needs one MODEL', 'tune')
        self.refused(2, '--seconds', 'tune', 'net.yaml', '--seconds', '0')


if __name__ == '__main__':
    program.main()
