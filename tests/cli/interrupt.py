"""Ctrl-C: the first asks for a good end, the second ends the program at once, always."""
import fcntl
import json
import os
import signal
import subprocess
import threading
import time

import program
from program import DATA, PROGRAM, ProgramTest

FOR_EVER = ['--epochs', '1000000', '--set', 'validation=off', '--log-format', 'jsonl']


class Interrupt(ProgramTest):
    def start(self, *arguments, stderr=subprocess.PIPE, **environment):
        running = subprocess.Popen(
            [PROGRAM, *arguments], cwd=self.folder, stdout=subprocess.PIPE, stderr=stderr,
            text=True, env=self.environment(**environment))
        self.addCleanup(running.stdout.close)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        return running

    def train(self, *arguments, **more):
        return self.start('train', 'tiny.yaml', '--data', DATA, '--batch-size', '64',
                          *FOR_EVER, *arguments, **more)

    def until(self, running, event):
        for line in running.stdout:
            if json.loads(line)['event'] == event:
                return

    def ends_at_the_second(self, running):
        """Within a second; a busy machine is given more."""
        running.send_signal(signal.SIGINT)
        time.sleep(0.5)
        self.assertIsNone(running.poll(), 'the first one has ended it')
        running.send_signal(signal.SIGINT)
        self.assertEqual(running.wait(timeout=5), 130)

    def test_two_at_once(self):
        """A closing terminal's shell and kernel both tell; so does timeout(1)."""
        for pair in (signal.SIGHUP, signal.SIGHUP), (signal.SIGTERM, signal.SIGCONT,
                                                     signal.SIGTERM, signal.SIGINT):
            running = self.train('--run', 'run', '--fresh')
            self.addCleanup(running.stderr.close)
            self.until(running, 'step')
            for number in pair:
                running.send_signal(number)
                time.sleep(0.02)
            self.assertEqual(running.wait(timeout=30), 130)
            self.assertNotIn('stopped at once', running.stderr.read())
            self.assertTrue(os.listdir(self.path('run/checkpoints')))

    def test_slow_device(self):
        """The step would take minutes."""
        running = self.train('--device', '0*2', '--shards', '2', LOCKSTEP_SLOW='1:500000')
        self.addCleanup(running.stderr.close)
        self.until(running, 'start')
        time.sleep(1)
        self.ends_at_the_second(running)
        self.assertIn('stopped at once', running.stderr.read())

    def test_nobody_reads_stderr(self):
        """A pipe that is full, like a terminal that was stopped, takes no word."""
        end, full = os.pipe()
        self.addCleanup(os.close, end)
        fcntl.fcntl(full, fcntl.F_SETPIPE_SZ, 4096)
        os.write(full, b' ' * 4096)
        running = self.train('--quiet', stderr=full)
        os.close(full)
        self.until(running, 'step')
        reader = threading.Thread(target=lambda: [None for _ in running.stdout])
        reader.start()
        self.ends_at_the_second(running)
        reader.join()

    def test_nobody_reads_stdout(self):
        """The trainer waits a while for somebody to read its events."""
        running = self.train()
        self.addCleanup(running.stderr.close)
        fcntl.fcntl(running.stdout, fcntl.F_SETPIPE_SZ, 4096)
        self.until(running, 'step')
        time.sleep(1)
        self.ends_at_the_second(running)

    def test_before_training(self):
        """There is nothing to bring to a good end while kernels are built or data is read."""
        running = self.start('train', 'resnet50', '--data', 'synthetic:digits', '--set',
                             'input=[28,28,1]', LOCKSTEP_CACHE=self.path('cache'),
                             POCL_CACHE_DIR=self.path('pocl'))
        self.addCleanup(running.stderr.close)
        time.sleep(1)
        running.send_signal(signal.SIGINT)
        self.assertIn(running.wait(timeout=5), (130, -signal.SIGINT))


if __name__ == '__main__':
    program.main()
