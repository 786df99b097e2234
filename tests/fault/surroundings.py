"""What happens round a training: its directory is moved or removed, the clock is set back,
nobody reads its output any more, the terminal is closed."""
import glob
import json
import os
import shutil
import signal
import subprocess
import time
import unittest

import program
from program import DATA, PROGRAM, ProgramTest

CLOCK = os.environ['LOCKSTEP_CLOCK']  # clock.c


class Surroundings(ProgramTest):
    TRAIN = ['train', 'tiny.yaml', '--data', DATA, '--batch-size', '32', '--checkpoint-every',
             '8', '--callback', 'csv_log', '--run', 'run', '--log-format', 'jsonl']

    def start(self, *arguments, **environment):
        running = subprocess.Popen(
            [PROGRAM, *self.TRAIN, *arguments], cwd=self.folder, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=self.environment(**environment))
        self.addCleanup(running.stderr.close)
        self.addCleanup(running.stdout.close)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        return running

    def until(self, running, event):
        for line in running.stdout:
            if json.loads(line)['event'] == event:
                return

    def end(self, running, status=0):
        for _ in running.stdout:
            pass
        said = running.stderr.read()
        self.assertEqual(running.wait(60), status, said)
        return said

    def whole(self, steps):
        self.train('--run', 'whole', '--epochs', '1000', '--steps', steps)
        return self.sha256('whole')

    def test_moved(self):
        running = self.start('--epochs', '1000', '--steps', '400')
        self.until(running, 'checkpoint')
        os.rename(self.path('run'), self.path('moved'))
        said = self.end(running)
        self.assertRegex(said, "run directory 'run' was moved to '.*/moved' and is used there")
        self.assertFalse(os.path.exists(self.path('run')))
        self.assertEqual(len(self.events('moved', 'step')), 400)
        self.assertEqual(self.sha256('moved'), self.whole('400'))
        self.assertTrue(os.path.exists(
            self.path('moved/checkpoints/step-00000400.safetensors')))

    def test_moved_and_told(self):
        """What people read at the end names the place where it is now."""
        running = self.start('--epochs', '1000', '--steps', '400', '--log-format', 'text')
        # any one: the first is removed again while this process may wait for a core
        while not glob.glob(self.path('run/checkpoints/step-*.safetensors')):
            self.assertIsNone(running.poll())
            time.sleep(0.01)
        os.rename(self.path('run'), self.path('moved'))
        said = running.stdout.read()
        self.assertEqual(running.wait(60), 0, running.stderr.read())
        self.assertRegex(said, r'run +/.*/moved\n')

    def test_removed(self):
        running = self.start('--epochs', '1000', '--steps', '400')
        self.until(running, 'checkpoint')
        running.send_signal(signal.SIGSTOP)
        shutil.rmtree(self.path('run'))
        running.send_signal(signal.SIGCONT)
        said = self.end(running)
        self.assertIn("run directory 'run' was removed: it is made again", said)
        self.assertEqual(self.sha256('run'), self.whole('400'))
        self.assertEqual([e['step'] for e in self.events('run', 'step')], [*range(1, 401)])
        with open(self.path('run/log.csv')) as file:
            self.assertEqual(len(file.readlines()), 26)
        self.run_program('eval', 'run')
        self.run_program(*self.TRAIN, '--epochs', '1000', '--steps', '410')
        self.assertEqual(self.sha256('run'), self.bits_of_410())

    def bits_of_410(self):
        self.train('--run', 'more', '--epochs', '1000', '--steps', '410')
        return self.sha256('more')

    def test_files_removed(self):
        """Its files alone, not the directory: they are whole again with the next checkpoint."""
        running = self.start('--epochs', '1000', '--steps', '400', '--callback', 'tensorboard')
        self.until(running, 'checkpoint')
        running.send_signal(signal.SIGSTOP)
        events = 'run/tensorboard/train/events.out.tfevents.0.lockstep'
        gone = {}
        for name in ('run/metrics.jsonl', 'run/log.csv', events, 'run/config.yaml',
                     'run/env.json'):
            with open(self.path(name), 'rb') as file:
                gone[name] = file.read()
            os.remove(self.path(name))
        running.send_signal(signal.SIGCONT)
        said = self.end(running)
        for name, before in gone.items():
            self.assertIn(f"'{name}' was removed: it is written again", said)
            with open(self.path(name), 'rb') as file:
                self.assertEqual(file.read(len(before)), before)
        self.assertEqual([e['step'] for e in self.events('run', 'step')], [*range(1, 401)])
        self.assertEqual(self.sha256('run'), self.whole('400'))

    def test_a_table_cut_in_its_place(self):
        """As `: > log.csv` does: it has its columns again, and the run goes on with it."""
        running = self.start('--epochs', '1000', '--steps', '400')
        self.until(running, 'eval')
        self.until(running, 'checkpoint')
        running.send_signal(signal.SIGSTOP)
        with open(self.path('run/log.csv'), 'r+') as file:
            columns = file.readline()
            file.truncate(0)
        running.send_signal(signal.SIGCONT)
        self.assertIn("'run/log.csv' was cut to 0 of its ", self.end(running))
        self.run_program(*self.TRAIN, '--epochs', '1000', '--steps', '416')
        with open(self.path('run/log.csv')) as file:
            lines = file.readlines()
        self.assertEqual((lines[0], lines.count(columns)), (columns, 1))
        self.assertRegex(lines[-1], r'^25,416,')

    def test_cut_in_the_middle(self):
        """Of a line or a record: what is torn goes, and no later one is glued to it."""
        running = self.start('--epochs', '1000', '--steps', '400', '--callback', 'tensorboard')
        self.until(running, 'eval')
        self.until(running, 'checkpoint')
        running.send_signal(signal.SIGSTOP)
        events = 'run/tensorboard/train/events.out.tfevents.0.lockstep'
        for name in 'run/metrics.jsonl', 'run/log.csv', events:
            os.truncate(self.path(name), os.path.getsize(self.path(name)) - 7)
        running.send_signal(signal.SIGCONT)
        said = self.end(running)
        self.assertEqual(said.count(' was cut to '), 3)
        with open(self.path('run/metrics.jsonl')) as file:
            steps = [json.loads(line).get('step') for line in file]
        self.assertEqual(max(step for step in steps if step), 400)
        with open(self.path('run/log.csv')) as file:
            self.assertEqual({line.count(',') for line in file}, {6})
        with open(self.path(events), 'rb') as file:
            content = file.read()
        while content:
            length = int.from_bytes(content[:8], 'little')
            self.assertLessEqual(length + 16, len(content))
            content = content[length + 16:]
        self.assertEqual(self.sha256('run'), self.whole('400'))

    def test_removed_and_no_device_left(self):
        """What is kept in host memory is written where the run is now, or again."""
        for tidy in (lambda: shutil.rmtree(self.path('run')),
                     lambda: shutil.rmtree(self.path('run/checkpoints')),
                     lambda: os.rename(self.path('run'), self.path('moved'))):
            running = self.start('--epochs', '1000', '--steps', '400', '--fresh',
                                 LOCKSTEP_FAIL='0:380', LOCKSTEP_SLOW='0:4')
            self.until(running, 'checkpoint')
            running.send_signal(signal.SIGSTOP)
            tidy()
            running.send_signal(signal.SIGCONT)
            said = self.end(running, 4)
            self.assertNotIn('the state could not be saved', said)
            run = 'moved' if os.path.exists(self.path('moved')) else 'run'
            self.run_program('train', run + '/config.yaml', '--run', run)
            self.assertEqual(self.sha256(run), self.whole('400'))

    @unittest.skipIf(os.geteuid() == 0 and not shutil.which('setpriv'), 'needs setpriv')
    def test_a_directory_that_takes_no_files(self):
        """Its checkpoints folder does: they go on, and one warning is said."""
        self.run_program(*self.TRAIN, '--epochs', '1000', '--steps', '8')
        for path, _, files in os.walk(self.folder):
            for name in ['.', *files]:
                os.chown(os.path.join(path, name), 65534, 65534)
        os.chmod(self.folder, 0o777)
        as_nobody = (['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups']
                     if os.geteuid() == 0 else [])
        running = subprocess.Popen(
            [*as_nobody, PROGRAM, *self.TRAIN, '--epochs', '1000', '--steps', '400'],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=self.environment(HOME=self.folder, POCL_CACHE_DIR=self.path('kernels'),
                                 LOCKSTEP_CACHE=self.path('cache')))
        self.until(running, 'checkpoint')
        running.send_signal(signal.SIGSTOP)
        os.remove(self.path('run/env.json'))
        os.chmod(self.path('run'), 0o555)
        running.send_signal(signal.SIGCONT)
        said = self.end(running)
        os.chmod(self.path('run'), 0o755)
        self.assertEqual(said.count('checkpoints are written without it'), 1)
        self.assertEqual(self.sha256('run'), self.whole('400'))
        self.assertTrue(os.path.exists(self.path('run/checkpoints/step-00000400.safetensors')))

    def test_pipes_in_place_of_files(self):
        """Nobody waits for what may never come."""
        os.makedirs(self.path('runs/a'))
        os.mkfifo(self.path('runs/a/metrics.jsonl'))
        self.put('runs/a/config.yaml', 'model: m\n')
        self.assertIn('begun', self.run_program('runs', 'runs', timeout=20).stdout)
        os.mkfifo(self.path('table'))
        self.refused(3, 'it is a device or a pipe', *self.TRAIN, '--epochs', '1', '--callback',
                     'csv_log file=' + self.path('table'))

    def test_folders_removed(self):
        """Of checkpoints and of TensorBoard's files, not the directory."""
        running = self.start('--epochs', '1000', '--steps', '400', '--callback', 'tensorboard')
        self.until(running, 'checkpoint')
        running.send_signal(signal.SIGSTOP)
        shutil.rmtree(self.path('run/checkpoints'))
        shutil.rmtree(self.path('run/tensorboard'))
        running.send_signal(signal.SIGCONT)
        said = self.end(running)
        self.assertIn("'run/checkpoints' was removed: it is made again", said)
        self.assertIn("events.out.tfevents.0.lockstep' was removed: it is written again", said)
        self.assertTrue(os.path.exists(self.path('run/tensorboard/train')))
        self.assertEqual(self.sha256('run'), self.whole('400'))
        self.run_program('eval', 'run')

    def test_a_file_of_somebody_in_the_place_of_one(self):
        """It is told of once, and is whole after training, also where that goes on."""
        for name, said_then in (('log.csv', "file 'run/log.csv' is there and not of a run"),
                                ('metrics.jsonl', "file 'run/metrics.jsonl' is there and not")):
            running = self.start('--epochs', '1000', '--steps', '400', '--fresh')
            self.until(running, 'checkpoint')
            running.send_signal(signal.SIGSTOP)
            os.remove(self.path('run/' + name))
            self.put('run/' + name, 'notes of mine\n' * 2000)
            running.send_signal(signal.SIGCONT)
            said = self.end(running)
            self.assertEqual(said.count(f"'run/{name}' was removed, and another file is there"),
                             1)
            self.refused(2, said_then, *self.TRAIN, '--epochs', '1000', '--steps', '410')
            with open(self.path('run/' + name)) as file:
                self.assertEqual(file.read(), 'notes of mine\n' * 2000)
            os.remove(self.path('run/' + name))

    def test_another_one_is_there(self):
        running = self.start('--epochs', '1000', '--steps', '400')
        self.until(running, 'checkpoint')
        running.send_signal(signal.SIGSTOP)
        os.rename(self.path('run'), self.path('gone'))
        shutil.rmtree(self.path('gone'))
        os.mkdir(self.path('run'))
        running.send_signal(signal.SIGCONT)
        said = self.end(running, 3)
        self.assertIn("run directory 'run' was removed, and another one is there now", said)
        self.assertEqual(os.listdir(self.path('run')), [])

    def test_clock(self):
        said = self.end(self.start('--epochs', '1000', '--steps', '400', '--eval-every',
                                   '0.0001minutes', '--callback', 'tensorboard every=2',
                                   '--callback', 'time_history', LD_PRELOAD=CLOCK))
        self.assertEqual(self.sha256('run'), self.whole('400'), said)
        for event in self.events('run', 'step'):
            self.assertGreater(event['step_ms'], 0)
            self.assertLess(event['step_ms'], 60000)

    def test_reader_has_gone(self):
        """It trains on; that nobody got its events is said at the end."""
        running = self.start('--epochs', '1000', '--steps', '400')
        self.until(running, 'step')
        running.stdout.close()
        said = running.stderr.read()
        self.assertEqual(running.wait(60), 3, said)
        self.assertIn('stdout', said)
        self.assertEqual(self.sha256('run'), self.whole('400'))

    def test_closed_terminal(self):
        running = self.start('--epochs', '100000')
        self.until(running, 'step')
        running.send_signal(signal.SIGHUP)
        said = self.end(running, 130)
        self.assertIn('interrupted after step', said)
        last = self.events('run', 'step')[-1]['step']
        self.assertEqual(self.events('run', 'checkpoint')[-1]['step'], last)


if __name__ == '__main__':
    program.main()
