"""Evaluation every so many steps, epochs or minutes, and what follows from it."""
import csv
import json
import math
import signal
import subprocess

import program
from program import DATA, PROGRAM, ProgramTest

EPOCH = 16  # steps
TIMES = 'samples_per_s', 'step_ms', 'devices', 'seconds'


class PeriodTest(ProgramTest):
    def fit(self, run, *options, **more):
        return self.train('--run', run, '--epochs', '6', '--lr', '0.02', *options, **more)

    def evaluated(self, run):
        return [e['step'] for e in self.events(run, 'eval')]

    def rows(self, run):
        with open(self.path(run + '/log.csv')) as file:
            return list(csv.DictReader(file))

    def curve(self, run):
        """All that does not tell of times, in its order."""
        return [{k: v for k, v in e.items() if k not in TIMES} for e in self.events(run)
                if e['event'] in ('step', 'eval', 'end')]


class Periods(PeriodTest):
    def test_steps_and_epochs(self):
        self.fit('whole')
        self.assertEqual(self.evaluated('whole'), list(range(16, 97, 16)))
        for run, period, steps in (('a', '10steps', [*range(10, 97, 10), 96]),
                                   ('b', '2epochs', [32, 64, 96]), ('c', '4 epoch', [64, 96]),
                                   ('d', '1000steps', [96]), ('e', '1step', range(1, 97))):
            self.fit(run, '--eval-every', period)
            self.assertEqual(self.evaluated(run), list(steps), period)
            self.assertEqual(self.sha256(run), self.sha256('whole'))
        ends = {e['step']: e for e in self.events('e', 'eval')}
        for found in self.events('whole', 'eval'):
            self.assertEqual(found, ends[found['step']])

    def test_in_a_run_file(self):
        self.put('run.yaml', f'model: tiny.yaml\ndata: "{DATA}"\n'
                             'train: {epochs: 2, batch_size: 32, eval_every: 12steps}\n')
        self.run_program('train', 'run.yaml', '--run', 'a')
        self.assertEqual(self.evaluated('a'), [12, 24, 32])
        self.run_program('train', 'a/config.yaml', '--run', 'b')
        self.assertEqual(self.evaluated('b'), [12, 24, 32])

    def test_minutes(self):
        """By the clock, so here after almost every step; the weights are those without."""
        self.fit('whole', '--val', 'off')
        self.fit('run', '--eval-every', '0.00001minutes')
        self.assertGreater(len(self.evaluated('run')), 6)
        self.assertEqual(self.evaluated('run'), sorted(set(self.evaluated('run'))))
        self.assertEqual(self.sha256('run'), self.sha256('whole'))
        self.fit('rare', '--eval-every', '60minutes')
        self.assertEqual(self.evaluated('rare'), [96])

    def test_devices_and_groups(self):
        options = ['--eval-every', '7steps', '--set', 'ema=0.9', '--shards', '4']
        self.fit('one', '--device', '0', *options)
        for run, *more in (('two', '--device', '0*2'),
                           ('async', '--device', '0*2', '--mode', 'async')):
            self.fit(run, *options, *more)
            self.assertEqual(self.evaluated(run), self.evaluated('one'))
            if run != 'async':
                self.assertEqual(self.events(run, 'eval'), self.events('one', 'eval'))
        self.put('placed.yaml', program.MODEL.replace('- dense: {units: 10}',
                                                      '- {device: back, dense: {units: 10}}'))
        self.run_program('train', 'placed.yaml', '--data', DATA, '--batch-size', '32', '--run',
                         'group', '--epochs', '6', '--lr', '0.02', *options, '--device', '0*2')
        for found, one in zip(self.events('group', 'eval'), self.events('one', 'eval')):
            self.assertEqual(found, one)

    def test_refusals(self):
        for period in ('200', 'steps', '0steps', '1.5epochs', '-1epochs', '5hours', '0minutes',
                       '1e300steps', '1e3steps', '0x10steps', 'nan minutes', '', '2epochs3'):
            self.refused(2, "200steps, 2epochs or 5minutes is expected, found "
                            f"'{period}'", 'train', 'tiny.yaml', '--data', DATA, '--eval-every',
                         period)
        for what in (['--callback', 'reduce_on_plateau'], ['--set', 'schedule=kind=plateau']):
            self.refused(2, 'eval_every 5minutes', 'train', 'tiny.yaml', '--data', DATA,
                         '--eval-every', '5minutes', *what)


class Monitors(PeriodTest):
    def keras_evaluations(self, losses, patience, min_delta):
        best, wait = math.inf, 0
        for count, loss in enumerate(losses):
            wait += 1
            if loss < best - min_delta:
                best, wait = loss, 0
            elif wait >= patience and count > 0:
                return count + 1
        return len(losses)

    def test_they_count_evaluations(self):
        for i, period in enumerate((3, 20, 32)):
            self.fit(f'whole{i}', '--eval-every', f'{period}steps', '--epochs', '12')
            losses = [e['loss'] for e in self.events(f'whole{i}', 'eval')
                      if e['step'] % period == 0]
            self.fit(f'run{i}', '--eval-every', f'{period}steps', '--epochs', '12',
                     '--callback', 'early_stopping patience=2 min_delta=0.05')
            expected = period * self.keras_evaluations(losses, 2, 0.05)
            self.assertEqual(len(self.events(f'run{i}', 'step')), expected)
            self.assertLess(expected, 12 * EPOCH)

    def test_table_has_a_row_for_each(self):
        self.fit('run', '--eval-every', '12steps', '--callback', 'csv_log')
        rows, steps = self.rows('run'), self.events('run', 'step')
        self.assertEqual([int(row['step']) for row in rows], list(range(12, 97, 12)))
        self.assertEqual([int(row['epoch']) for row in rows], [0, 1, 2, 2, 3, 4, 5, 5])
        for i, (row, found) in enumerate(zip(rows, self.events('run', 'eval'))):
            mean = sum(e['loss'] for e in steps[12 * i:12 * i + 12]) / 12
            self.assertAlmostEqual(float(row['loss']), mean, 6)
            self.assertAlmostEqual(float(row['val_loss']), found['loss'], 6)

    def test_plateau(self):
        self.fit('run', '--eval-every', '4steps', '--callback',
                 'reduce_on_plateau patience=1 factor=0.5 min_delta=0.05')
        steps = self.events('run', 'step')
        falls = [b['step'] for a, b in zip(steps, steps[1:]) if a['lr'] != b['lr']]
        self.assertTrue(falls)
        self.assertEqual({step % 4 for step in falls}, {1})

    def test_by_minutes_they_may_end_the_run(self):
        self.fit('whole')
        self.fit('run', '--eval-every', '0.00001minutes', '--callback', 'csv_log', '--callback',
                 'early_stopping patience=3 min_delta=9')
        steps, whole = self.events('run', 'step'), self.events('whole', 'step')
        self.assertLess(len(steps), 6 * EPOCH)
        self.assertEqual([e['loss'] for e in steps], [e['loss'] for e in whole[:len(steps)]])


class Interrupted(PeriodTest):
    """In the middle of an evaluation, which is then repeated."""
    VALIDATION = ['--val', 'synthetic:digits,count=8000,seed=7']

    def stop_in_evaluation(self, run, how, step, *options):
        """Stops it just when the step has ended after which it evaluates."""
        running = subprocess.Popen(
            [PROGRAM, 'train', 'tiny.yaml', '--data', DATA, '--batch-size', '32', '--run', run,
             '--epochs', '6', '--lr', '0.02', '--log-format', 'jsonl', *options],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=self.environment())
        self.addCleanup(running.stdout.close)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        for line in running.stdout:
            event = json.loads(line)
            if event['event'] == 'step' and event['step'] == step:
                running.send_signal(how)
        return running.wait(60)

    def check(self, how, *options):
        options = [*self.VALIDATION, *options]
        self.fit('whole', *options)
        stopped = 0
        for step in 8, 16, 64, 96:
            status = self.stop_in_evaluation('run', how, step, *options)
            stopped += self.evaluated('run')[-1:] != [step] and status != 0
        self.assertGreater(stopped, 1, 'none was stopped in an evaluation')
        self.fit('run', *options)
        self.assertEqual(self.curve('run'), self.curve('whole'))

    FOLLOWING = ['--eval-every', '8steps', '--checkpoint-every', '8', '--callback', 'csv_log',
                 '--callback', 'reduce_on_plateau patience=1 factor=0.5 min_delta=0.05',
                 '--callback', 'early_stopping patience=50 restore_best=true']

    def test_interrupt(self):
        self.check(signal.SIGINT, '--eval-every', '8steps')

    def test_interrupt_where_callbacks_follow(self):
        self.check(signal.SIGINT, *self.FOLLOWING)
        whole, run = self.rows('whole'), self.rows('run')
        self.assertEqual(whole, run)

    def test_kill(self):
        self.check(signal.SIGKILL, '--eval-every', '8steps', '--checkpoint-every', '8')

    def test_kill_where_callbacks_follow(self):
        self.check(signal.SIGKILL, *self.FOLLOWING)
        self.assertEqual(self.rows('whole'), self.rows('run'))

    def test_nothing_is_lost(self):
        """Asked to stop in an evaluation that no checkpoint came before."""
        status = self.stop_in_evaluation('run', signal.SIGINT, 8, *self.VALIDATION,
                                         '--eval-every', '8steps')
        self.assertEqual(status, 130)
        step = self.events('run', 'step')[-1]['step']
        self.assertEqual(self.events('run', 'checkpoint')[-1]['step'], step)


if __name__ == '__main__':
    program.main()
