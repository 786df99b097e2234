"""Searches over settings: what is tried, stopped early, gone on with, and refused."""
import fcntl
import json
import math
import os
import re
import signal
import subprocess
import time

import program
from program import PROGRAM, ProgramTest

RUN = """  model: tiny.yaml
  data: synthetic:digits,count=512
  validation: 25%
  train: {epochs: 4, batch_size: 64, tune: off}
"""
RANDOM = """run:
""" + RUN + """search: random
trials: 5
seed: 3
over:
  train.lr: {log: [1e-4, 1e-1]}
  batch_size: [32, 64]
halving: {metric: val_accuracy, first: 1, factor: 2}
"""
GRID = """run: run.yaml
over:
  lr: {log: [0.001, 0.1], points: 3}
  seed: [1, 2]
metric: val_loss
"""


class SweepTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.put('run.yaml', re.sub('^  ', '', RUN, flags=re.M).replace('epochs: 4',
                                                                       'epochs: 1'))
        self.put('random.yaml', RANDOM)
        self.put('grid.yaml', GRID)

    def sweep(self, file, *more, **options):
        options.setdefault('timeout', 300)
        return json.loads(self.run_program('sweep', file, '--json', *more, **options).stdout)

    def by_number(self, found):
        return sorted(found['trials'], key=lambda trial: trial['trial'])


class Sweep(SweepTest):
    def test_halving(self):
        found = self.sweep('random.yaml', '--device', '0*2')
        self.assertEqual(found['epochs'], [1, 2, 4])
        trials = self.by_number(found)
        self.assertEqual(len(trials), 5)
        for rung, kept in enumerate([5, 3, 2]):
            on_it = [t for t in trials if len(t['values']) > rung]
            self.assertEqual(len(on_it), kept)
            if rung < 2:  # those that go on were the best
                best = sorted((-t['values'][rung], t['trial']) for t in on_it)
                self.assertEqual({t['trial'] for t in trials if len(t['values']) > rung + 1},
                                 {number for _, number in best[:[3, 2][rung]]})
        for t in trials:
            run = f'random/trial-{t["trial"]:04}'
            self.assertEqual(t['run'], run)
            self.assertEqual(t['state'],
                             'finished' if len(t['values']) == 3 else 'stopped early')
            evaluated = self.events(run, 'eval')
            self.assertEqual(len(evaluated), [0, 1, 2, 4][len(t['values'])])
            self.assertAlmostEqual(max(e['accuracy'] for e in evaluated), t['values'][-1])
            self.assertTrue(1e-4 <= float(t['settings']['lr']) <= 0.1)
            with open(self.path(run + '/config.yaml')) as file:
                text = file.read()
            self.assertIn(f'  lr: {t["settings"]["lr"]}\n', text)
            self.assertIn(f'  batch_size: {t["settings"]["batch_size"]}\n', text)
        self.assertEqual(found['trials'][0]['values'][-1],
                         max(t['values'][-1] for t in trials if len(t['values']) == 3))
        self.assertTrue(os.path.exists(self.path('random/report.html')))
        shown = self.run_program('sweep', 'random.yaml').stdout
        self.assertRegex(shown, r'^trial  lr +batch_size +epochs +val_accuracy  state\n'
                                rf' +{found["trials"][0]["trial"]}  ')
        self.assertEqual(shown.count('stopped early'), 3)
        runs = json.loads(self.run_program('runs', 'random', '--json').stdout)['runs']
        self.assertEqual({r['run']: r['state'] for r in runs},
                         {t['run']: t['state'] for t in trials})
        with open(self.path(found['trials'][-1]['run'] + '/metrics.jsonl')) as file:
            self.assertEqual(file.read().count('"dropped"'), 1)  # the second sweep adds none
        # More trials of the same seed begin with the same ones.
        self.put('more.yaml', RANDOM.replace('trials: 5', 'trials: 7').replace(
            'epochs: 4', 'epochs: 1'))
        again = self.by_number(self.sweep('more.yaml'))
        self.assertEqual([t['settings'] for t in again[:5]], [t['settings'] for t in trials])

    def test_grid(self):
        found = self.sweep('grid.yaml', '-o', 'there')
        self.assertEqual([(t['settings']['lr'], t['settings']['seed'])
                          for t in self.by_number(found)],
                         [(lr, seed) for lr in ('0.001', '0.01', '0.1') for seed in '12'])
        values = [t['values'][0] for t in found['trials']]
        self.assertEqual(values, sorted(values))  # the lowest loss first
        times = [os.stat(self.path(t['run'] + '/metrics.jsonl')).st_mtime_ns
                 for t in found['trials']]
        self.assertEqual(self.sweep('grid.yaml', '-o', 'there'), found)
        self.assertEqual([os.stat(self.path(t['run'] + '/metrics.jsonl')).st_mtime_ns
                          for t in found['trials']], times)  # nothing has run again
        self.put('grid.yaml', GRID.replace('[1, 2]', '[1, 3]'))
        self.refused(2, 'of another sweep', 'sweep', 'grid.yaml', '-o', 'there')

    def test_one_fails(self):
        """A trial whose data is missing and one that is killed end no other."""
        self.put('grid.yaml', GRID.replace('seed: [1, 2]', "data: ['folder:nowhere', "
                                           "'synthetic:digits,count=512']"))
        done = self.run_program('sweep', 'grid.yaml', '--json', timeout=300)
        found = json.loads(done.stdout)
        self.assertEqual([t['state'] for t in found['trials']],
                         ['finished'] * 3 + ['failed'] * 3)
        self.assertEqual([t['status'] for t in self.by_number(found)], [3, 0] * 3)
        with open(self.path('grid/trial-0001/log.txt')) as file:
            self.assertIn('nowhere', file.read())
        self.assertIn('failed (status 3), see grid/trial-0001/log.txt', done.stderr)
        self.put('grid.yaml', GRID.replace('seed: [1, 2]', "data: ['folder:nowhere']"))
        done = self.run_program('sweep', 'grid.yaml', '-o', 'all', status=1)
        self.assertIn('all trials have failed', done.stderr)

    def start(self, *arguments):
        process = subprocess.Popen([PROGRAM, 'sweep', *arguments], cwd=self.folder,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, env=self.environment())
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_killed(self):
        """At many moments, and stopped: the same result as undisturbed, nothing twice."""
        wanted = self.sweep('random.yaml', '-o', 'undisturbed')
        for moment in range(6):
            process = self.start('random.yaml', '-o', 'there')
            time.sleep(0.4 + 0.35 * moment)
            process.send_signal(signal.SIGKILL if moment % 2 else signal.SIGINT)
            status = process.wait(100)
            self.assertIn(status, (0, -9) if moment % 2 else (0, 130, -2))
        found = self.sweep('random.yaml', '-o', 'there')
        for a, b in zip(found['trials'], wanted['trials']):
            self.assertEqual((a['trial'], a['values'], a['state']),
                             (b['trial'], b['values'], b['state']))
            there, before = (self.events(t['run'], 'step') for t in (a, b))
            self.assertEqual([e['step'] for e in there], [e['step'] for e in before])
            self.assertEqual([e['loss'] for e in there], [e['loss'] for e in before])
        for t in found['trials'][:2]:
            self.assertEqual(self.sha256(t['run']),
                             self.sha256(t['run'].replace('there', 'undisturbed')))

    def test_trial_is_killed(self):
        """It goes on from its checkpoint."""
        self.put('one.yaml', 'run:\n' + RUN.replace('epochs: 4', 'epochs: 400') +
                 'over:\n  seed: [5]\n')
        process = self.start('one.yaml')
        events = self.path('one/trial-0001/metrics.jsonl')
        seen = b''
        while b'checkpoint' not in seen:
            self.assertIsNone(process.poll())
            time.sleep(0.02)
            if os.path.exists(events):
                with open(events, 'rb') as file:
                    seen = file.read()
        listed = subprocess.run(['ps', '-o', 'pid=', '--ppid', str(process.pid)],
                                capture_output=True, text=True)
        os.kill(int(listed.stdout.split()[0]), signal.SIGKILL)
        self.assertEqual(process.wait(300), 0)
        self.assertEqual(len(self.events('one/trial-0001', 'start')), 2)
        self.assertEqual(len(self.events('one/trial-0001', 'eval')), 400)

    def test_lock_is_handed_over(self):
        """Who starts a training may have locked its run directory for it."""
        os.mkdir(self.path('run'))
        folder = os.open(self.path('run'), os.O_RDONLY)
        self.addCleanup(os.close, folder)
        fcntl.flock(folder, fcntl.LOCK_EX)
        done = subprocess.run([PROGRAM, 'train', 'tiny.yaml', '--data', program.DATA, '--steps',
                               '2', '--run', 'run'], cwd=self.folder, capture_output=True,
                              text=True, pass_fds=[folder], check=False,
                              env=self.environment(LOCKSTEP_RUN_LOCK=str(folder)))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn('another process', done.stderr)

    def test_trial_of_an_earlier_sweep(self):
        """What another process trains is not begun before that has ended."""
        os.makedirs(self.path('grid/trial-0001'))
        folder = os.open(self.path('grid/trial-0001'), os.O_RDONLY)
        fcntl.flock(folder, fcntl.LOCK_EX)
        process = self.start('grid.yaml')
        while not os.path.exists(self.path('grid/trial-0004/config.yaml')):
            self.assertIsNone(process.poll())
            time.sleep(0.05)
        self.assertEqual(os.listdir(self.path('grid/trial-0001')), [])
        os.close(folder)
        self.assertEqual(process.wait(100), 0)
        self.assertTrue(os.path.exists(self.path('grid/trial-0001/config.yaml')))

    def test_two_at_once(self):
        os.mkdir(self.path('grid'))
        folder = os.open(self.path('grid'), os.O_RDONLY)
        self.addCleanup(os.close, folder)
        fcntl.flock(folder, fcntl.LOCK_EX)
        self.refused(3, "another process sweeps in 'grid'", 'sweep', 'grid.yaml')


class Drawing(SweepTest):
    def test_ranges(self):
        """What is drawn lies in its range, spread as it should be."""
        self.put('draw.yaml', 'run: run.yaml\nsearch: random\ntrials: 1000\nover:\n'
                 '  lr: {log: [1e-4, 1e-1]}\n  ema: {uniform: [0.5, 0.9]}\n'
                 '  batch_size: {int: [3, 6]}\n  optimizer: [adam, sgd, rmsprop]\n')
        process = subprocess.Popen([PROGRAM, 'sweep', 'draw.yaml'], cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env=self.environment())
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        numbers = {}
        end = time.monotonic() + 60
        while len(numbers) < 3 and time.monotonic() < end:
            for name in os.listdir(self.path('draw')) if os.path.isdir(
                    self.path('draw')) else []:
                config = self.path(f'draw/{name}/config.yaml')
                if os.path.exists(config):
                    with open(config) as file:
                        numbers[name] = dict(re.findall(r'^  (\w+): (.*)$', file.read(),
                                                        re.M))
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.wait(60)
        self.assertEqual(len({n['lr'] for n in numbers.values()}), len(numbers))
        for found in numbers.values():
            self.assertTrue(-4 <= math.log10(float(found['lr'])) <= -1)
            self.assertTrue(0.5 <= float(found['ema']) <= 0.9)
            self.assertIn(found['batch_size'], ('3', '4', '5', '6'))
            self.assertIn(found['optimizer'].strip('"'), ('adam', 'sgd', 'rmsprop'))

    def test_figure_that_no_run_has(self):
        """Known once the first trial was evaluated, and then none would be the best."""
        self.put('grid.yaml', GRID.replace('val_loss', 'val_acc'))
        for _ in range(2):
            said = self.refused(2, "no 'val_acc'", 'sweep', 'grid.yaml', timeout=300).stderr
            self.assertEqual(said.count("no 'val_acc'"), 1)
        self.assertEqual([t for t in os.listdir(self.path('grid')) if t.startswith('trial-')],
                         ['trial-0001'])

    def test_refused(self):
        """With the line or the name, before anything runs."""
        for old, new, said in (
                ('  seed: [1, 2]', '  seeed: [1, 2]', ["grid.yaml:4", "'seeed'"]),
                ('  seed: [1, 2]', '  learning_rate: [1, 2]',
                 ["grid.yaml:4", "'learning_rate'"]),
                ('  seed: [1, 2]', '  seed: []', ["grid.yaml:4", '0 values']),
                ('  seed: [1, 2]', '  seed: [1, x]', ["grid.yaml:4", "'x'"]),
                ('  seed: [1, 2]', '  seed: [1, [2]]', ["grid.yaml:4", 'a list']),
                ('  seed: [1, 2]', '  train.lr: [1, 2]', ["grid.yaml:4", 'twice']),
                ('  seed: [1, 2]', '  seed: 3', ["grid.yaml:4", 'list of values or a range']),
                ('  seed: [1, 2]', '  run: [a, b]', ["grid.yaml:4", 'itself']),
                ('[0.001, 0.1]', '[0.1, 0.1]', ['grid.yaml:3', 'empty']),
                ('[0.001, 0.1]', '[0, 0.1]', ['grid.yaml:3', 'above 0']),
                ('[0.001, 0.1]', '[0.1]', ['grid.yaml:3', '[lowest, highest]']),
                ('[0.001, 0.1]', '[0.1, nan]', ['grid.yaml:3', "a number, found 'nan'"]),
                ('[0.001, 0.1]', '[0.1, 1e9]', ['grid.yaml:3', "'lr'"]),
                ('log: [0.001, 0.1], points: 3', 'log: [0.001, 0.1]',
                 ['grid.yaml:3', 'points']),
                ('points: 3', 'points: 1', ['grid.yaml:3', '2..1000']),
                ('points: 3', 'points: 600', ['grid.yaml:4', 'more than 1000']),
                ('points: 3', 'pointz: 3', ['grid.yaml:3', "'pointz'"]),
                ('log: [0.001', 'int: [0.001', ['grid.yaml:3', 'whole numbers']),
                ('metric: val_loss', 'metrik: val_loss', ['grid.yaml:5', "'metrik'"]),
                ('metric: val_loss', 'metric: loss', ['grid.yaml:5', 'val_loss']),
                ('metric: val_loss', 'trials: 3', ['grid.yaml:5', 'random']),
                ('metric: val_loss', 'search: all', ['grid.yaml:5', 'grid or random']),
                ('metric: val_loss', 'halving: {first: 2}', ['grid.yaml:5', 'the run has 1']),
                ('metric: val_loss', 'halving: {factor: 1}', ['grid.yaml:5', '2..100']),
                ('metric: val_loss', 'halving: {mode: best, metric: val_loss}', ['max or min']),
                ('metric: val_loss', 'mode: bogus', ['max or min']),
                ('metric: val_loss', 'metric: val_', ['a figure of evaluations']),
                ('run: run.yaml', 'run: nowhere.yaml', ['grid.yaml:1', 'nowhere.yaml']),
                ('run: run.yaml', 'run: tiny.yaml', ['tiny.yaml']),
                ('run: run.yaml', 'run: {model: mlp}', ["'data'"]),
                ('run: run.yaml', 'run: {model: mlp, data: x, epochz: 3}',
                 ['grid.yaml:1', "'epochz'"]),
                ('run: run.yaml\n', '', ["'run'"]),
                (GRID, '- 1', ['grid.yaml:1']), (GRID, '', ['grid.yaml']),
                (GRID, '\0\xff', ['grid.yaml'])):
            self.assertIn(old, GRID)
            self.put('grid.yaml', GRID.replace(old, new))
            self.refused(3, said, 'sweep', 'grid.yaml')
            self.assertFalse(os.path.exists(self.path('grid')))
        self.refused(2, 'needs one FILE.yaml', 'sweep')
        self.refused(3, 'nowhere.yaml', 'sweep', 'nowhere.yaml')
        self.put('grid.yaml', GRID)
        self.refused(4, '99', 'sweep', 'grid.yaml', '--device', '99')
        self.put('grid', 'a file')
        self.refused(3, "'grid'", 'sweep', 'grid.yaml')


if __name__ == '__main__':
    program.main()
