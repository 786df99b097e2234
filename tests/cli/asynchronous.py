"""One model on several devices that do not wait for one another."""
import json
import os
import shutil
import signal
import subprocess

import program
from program import PROGRAM, ProgramTest, png

NET = """name: net
input: [28, 28, 1]
layers:
  - conv2d: {filters: 8, kernel: 3, activation: relu}
  - max_pool: {size: 2}
  - dropout: {rate: 0.25}
  - flatten
  - dense: {units: 256, activation: relu}
  - dense: {units: 10}
  - softmax
"""
SAMPLES, BATCH = 1036, 96  # the last batch of an epoch has 76 samples
STEPS = 11  # of an epoch


class Asynchronous(ProgramTest):
    OPTIONS = ['net.yaml', '--data', f'synthetic:digits,count={SAMPLES}', '--batch-size',
               str(BATCH), '--shards', '8', '--mode', 'async']

    def setUp(self):
        super().setUp()
        self.put('net.yaml', NET)

    def run_async(self, run, *arguments, **environment):
        """Returns the end event."""
        done = self.run_program('train', *self.OPTIONS, '--run', run, *arguments,
                                environment=environment)
        self.stderr, self.stdout = done.stderr, done.stdout
        end, = self.events(run, 'end')
        return end

    def start(self, *arguments):
        """The program, whose stdout is its events."""
        process = subprocess.Popen(
            [PROGRAM, 'train', *arguments, '--log-format', 'jsonl'], cwd=self.folder,
            env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        return process

    def ledger(self, run, epochs):
        """Every sample of every epoch was counted once, in steps that follow one another."""
        steps = self.events(run, 'step')
        self.assertEqual([e['step'] for e in steps], list(range(1, epochs * STEPS + 1)))
        self.assertEqual(sum(e['samples'] for e in steps), epochs * SAMPLES)
        for event in steps:
            there = [device for device in event['devices'] if device]
            self.assertEqual(sum(device['samples'] for device in there), event['samples'])
            self.assertAlmostEqual(sum(device['share'] for device in there), 1)

    def test_learning(self):
        """Half of a batch an update with two devices, a quarter with three."""
        cases = {'one': ('0', 1, 2), 'replicas': ('0*2', 2, 4), 'halves': ('0/2', 2, 4),
                 'three': ('0*3', 4, 6)}
        self.run_program('train', *self.OPTIONS, '--mode', 'sync', '--run', 'sync', '--epochs',
                         '8')
        wanted = self.events('sync', 'eval')[-1]['accuracy'] - 0.1
        self.assertGreater(wanted, 0.4)
        for name, (devices, updates, most) in cases.items():
            with self.subTest(name):
                end = self.run_async(name, '--device', devices, '--epochs', '8')
                self.ledger(name, 8)
                self.assertEqual(end['updates'], 8 * updates * STEPS)
                self.assertEqual(sum(end['staleness']), end['updates'])
                self.assertEqual(len(end['staleness']), most + 1)
                self.assertGreater(self.events(name, 'eval')[-1]['accuracy'], wanted)
                self.assertIn('bits differ from run to run', self.stderr)
                self.assertIn('staleness', self.stdout)
                self.assertNotIn('is lost', self.stderr)
                self.assertNotIn('copied anew', self.stderr)

    def test_bound(self):
        """A device ten times slower: the others get ahead of it as far as they may."""
        for most in 0, 1, 2, 9:
            end = self.run_async(f'run{most}', '--device', '0*3', '--epochs', '3',
                                 '--max-staleness', str(most), LOCKSTEP_SLOW='1:10')
            self.ledger(f'run{most}', 3)
            self.assertEqual(len(end['staleness']), most + 1)
            self.assertEqual(sum(end['staleness']), end['updates'])
            self.assertGreater(end['staleness'][most], 0)

    def test_a_slow_device_holds_nobody_up(self):
        self.run_async('run', '--device', '0*2', '--epochs', '3', LOCKSTEP_SLOW='1:6')
        done = [sum(event['devices'][i]['samples'] for event in self.events('run', 'step'))
                for i in range(2)]
        self.assertGreater(done[0], 2 * done[1])
        self.assertGreater(done[1], 0)

    def test_without_a_run_directory(self):
        """Nothing is kept, so there is nothing to stop for within an epoch."""
        done = self.run_program('train', *self.OPTIONS, '--device', '0*2', '--epochs', '3',
                                environment={'LOCKSTEP_SLOW': '1:10'})
        self.assertIn('staleness of 0 to 4:', done.stdout)

    def test_gone_on(self):
        """On as many devices, on more, in lockstep, and back: updates are counted on."""
        first = self.run_async('run', '--device', '0*2', '--epochs', '9', '--steps', '13')
        self.assertEqual(first['updates'], 26)
        self.run_async('run', '--device', '0*2', '--epochs', '9', '--steps', '20')
        self.assertNotIn('updates a step', self.stderr)
        then = self.run_async('run', '--device', '0*3', '--epochs', '9', '--steps', '30')
        self.assertIn('2.0 updates a step so far, now it makes 4', self.stderr)
        self.assertEqual(then['updates'], 40 + 40)
        self.assertEqual(sum(then['staleness']), 40)  # since it was gone on with
        end = self.run_async('run', '--mode', 'sync', '--epochs', '9', '--steps', '31')
        self.assertIn('now it makes 1', self.stderr)
        self.assertNotIn('staleness', end)
        self.run_async('run', '--device', '0*2', '--epochs', '9')
        self.ledger('run', 9)

    def test_interrupted(self):
        arguments = [*self.OPTIONS, '--run', 'run', '--device', '0*2', '--epochs', '200',
                     '--set', 'validation=off']
        process = self.start(*arguments)
        for line in process.stdout:
            if json.loads(line).get('step') == 30:
                process.send_signal(signal.SIGINT)
                break
        for line in process.stdout:
            last = json.loads(line)
        self.assertEqual(process.wait(20), 130)
        self.assertEqual(last['event'], 'checkpoint')
        self.assertLess(last['step'], 60)
        arguments[arguments.index('200')] = '8'
        done = self.run_program('train', *arguments)
        self.assertIn(f"going on after step {last['step']}", done.stderr)
        self.ledger('run', 8)
        self.assertEqual(self.events('run', 'end')[0]['updates'], 2 * 8 * STEPS)

    def test_vanished_samples(self):
        """No device's fault: the run ends, and no thread is waited for."""
        for kind in 'train', 'test':
            for label in 'a', 'b':
                os.makedirs(self.path(f'images/{kind}/{label}'))
                for i in range(60):
                    self.put(f'images/{kind}/{label}/{i}.png',
                             png(28, 28, lambda x, y, i=i: x * y + i & 255))
        process = self.start(*self.OPTIONS, '--data', 'folder:images', '--device', '0*3',
                             '--batch-size', '16', '--epochs', '100000', '--set',
                             'validation=off')
        for line in process.stdout:
            if json.loads(line).get('step') == 5:
                break
        shutil.rmtree(self.path('images/train/b'))
        process.stdout.read()
        self.assertEqual(process.wait(20), 3)
        said = process.stderr.read()
        self.assertIn('images/train/b/', said)
        self.assertNotIn('is lost', said)

    def test_refusals(self):
        self.refused(2, 'is for --mode async', 'train', *self.OPTIONS, '--mode', 'sync',
                     '--max-staleness', '3')
        for wrong in '256', '-2', 'x':
            self.refused(2, 'max_staleness', 'train', *self.OPTIONS, '--max-staleness', wrong)
        self.refused(2, ['--split 2:1', 'no weights'], 'train', *self.OPTIONS, '--device',
                     '0*2', '--split', '2:1')


if __name__ == '__main__':
    program.main()
