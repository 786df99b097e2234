"""Readers of a training's output who stop reading: a pipe that is full, a terminal that was
stopped by Ctrl-S. Training goes on, what nobody reads is left out, and that is said."""
import fcntl
import json
import os
import pty
import re
import subprocess
import threading
import time

import program
from program import DATA, PROGRAM, ProgramTest

PATIENCE = 5  # seconds; OUTLET_PATIENCE
EPOCHS = ['--epochs', '30', '--eval-every', '100000steps', '--run', 'run']


class Readers(ProgramTest):
    def start(self, *arguments, **streams):
        running = subprocess.Popen(
            [PROGRAM, 'train', 'tiny.yaml', '--data', DATA, '--batch-size', '16', *EPOCHS,
             *arguments], cwd=self.folder, stdin=subprocess.DEVNULL, text=True,
            env=self.environment(), **streams)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        return running

    def small_pipe(self):
        """Its ends; it has room for a page."""
        ends = os.pipe()
        fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, 4096)
        return ends

    def steps(self):
        try:
            with open(self.path('run/metrics.jsonl')) as file:  # a line may be coming
                lines = [line for line in file if line.endswith('\n')]
            return sum(json.loads(line)['event'] == 'step' for line in lines)
        except FileNotFoundError:
            return 0

    def test_stdout(self):
        """Nobody reads events: then somebody does, and reads whole lines."""
        end, full = self.small_pipe()
        with open(self.path('said'), 'w', encoding='utf-8') as said:
            running = self.start('--log-format', 'jsonl', '--epochs', '1000000', stdout=full,
                                 stderr=said)
        os.close(full)
        before = time.monotonic()
        while 'events are left out' not in self.read('said') or self.steps() < 500:
            self.assertIsNone(running.poll(), self.read('said'))
            time.sleep(0.2)
        self.assertGreater(time.monotonic() - before, PATIENCE - 1)
        lines = []
        with open(end, encoding='utf-8') as reader:
            for line in reader:
                lines.append(json.loads(line))
                if len(lines) == 200:
                    running.send_signal(2)
        self.assertEqual(running.wait(60), 130)
        lost = re.search(r'stdout is read again: (\d+) events were left out',
                         self.read('said'))
        self.assertGreater(int(lost[1]), 0)
        self.assertEqual(len(lines) + int(lost[1]), len(self.events('run')))

    def read(self, name):
        with open(self.path(name), encoding='utf-8') as file:
            return file.read()

    def test_stderr(self):
        """Nobody reads messages: the training ends as ever."""
        end, full = self.small_pipe()
        os.write(full, b'-' * 4096)
        running = self.start(stdout=subprocess.PIPE, stderr=full)
        self.addCleanup(running.stdout.close)
        self.assertIn('sha256', running.stdout.read())
        self.assertEqual(running.wait(60), 0)
        os.close(full)
        with open(end, encoding='utf-8') as reader:
            self.assertEqual(reader.read(), '-' * 4096)

    def test_stopped_terminal(self):
        """After Ctrl-S training goes on; after Ctrl-Q it is said what was left out."""
        near, far = pty.openpty()
        self.addCleanup(os.close, near)
        shown = []

        def look():
            while True:
                try:
                    shown.append(os.read(near, 65536).decode(errors='replace'))
                except OSError:
                    return

        looker = threading.Thread(target=look)
        looker.start()
        running = self.start('--epochs', '1000000', '--eval-every', '40steps',
                             stdout=subprocess.DEVNULL, stderr=far)
        os.close(far)
        while self.steps() < 100:
            time.sleep(0.1)
        os.write(near, b'\x13')
        time.sleep(1)
        at, before = self.steps(), len(''.join(shown))
        time.sleep(2 * PATIENCE)
        self.assertGreater(self.steps(), at + 100)
        self.assertEqual(len(''.join(shown)), before)
        os.write(near, b'\x11')
        while not re.search(r'\d+ messages were left out', ''.join(shown)):
            self.assertIsNone(running.poll(), ''.join(shown))
            time.sleep(0.1)
        running.send_signal(2)
        self.assertEqual(running.wait(60), 130)
        looker.join()


if __name__ == '__main__':
    program.main()
