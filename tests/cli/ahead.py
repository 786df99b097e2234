"""Kernels compiled ahead by a second process, where PoCL compiles one at a time."""
import glob
import os
import signal
import socket
import subprocess
import time
import unittest

import program
from program import PROGRAM, ProgramTest

# Large enough to take some seconds, so that the second process is seen.
MODEL = """name: deep
input: [28, 28, 1]
layers:
""" + ''.join(f"""  - conv2d: {{filters: {4 + 4 * i}, kernel: {kernel}, activation: {function}}}
  - batch_norm
""" for i, (kernel, function) in enumerate([(3, 'relu'), (5, 'tanh'), (1, 'gelu')])) + """\
  - flatten
  - dense: {units: 10}
  - softmax
"""
TRAIN = ['train', 'deep.yaml', '--data', program.DATA, '--steps', '2', '--set', 'tune=off',
         '--batch-size', '32']
SOURCE = """struct numbers { int n[5]; };
kernel void first(global int *x, int n, struct numbers s, local int *l)
{
    l[0] = s.n[n];
    barrier(CLK_LOCAL_MEM_FENCE);
    x[1 / n] = l[0];
}
kernel void second(global int *x, float y) { *x = y; }
kernel void third(global int *x) { *x = 1; }
"""


def pocl_device():
    """Its name as PoCL 3.1 tells it; None where there is another platform, or one core."""
    listed = subprocess.run([PROGRAM, 'devices', '--json'], capture_output=True, text=True)
    device = program.json.loads(listed.stdout)['devices'][0] if listed.returncode == 0 else {}
    fits = (device.get('name', '').startswith('pthread') and os.cpu_count() > 1
            and device.get('driver', '').startswith('3.1')
            and os.environ.get('LOCKSTEP_BUILD_THREADS') != '1')
    return device['name'] if fits else None


@unittest.skipUnless(pocl_device(), 'needs PoCL 3.1 and two cores')
class Ahead(ProgramTest):
    def setUp(self):
        super().setUp()
        self.put('deep.yaml', MODEL)

    def cold(self, name):
        return {'LOCKSTEP_CACHE': self.path(name), 'POCL_CACHE_DIR': self.path(name + '-pocl')}

    def compiled(self, name):
        found = {}
        for path in glob.glob(self.path(name + '-pocl') + '/*/*/*/*/*.so'):
            with open(path, 'rb') as file:
                found[path.split('-pocl/')[1]] = file.read()
        return found

    def start(self, name, *more):
        running = subprocess.Popen([PROGRAM, *TRAIN, '--run', name, *more], cwd=self.folder,
                                   env=self.environment(**self.cold(name)),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(running.kill)
        return running

    def second(self, running):
        """The process that the running one has started."""
        while running.poll() is None:
            for listed in glob.glob(f'/proc/{running.pid}/task/*/children'):
                try:
                    with open(listed) as file:
                        pids = file.read().split()
                    for pid in pids:
                        with open(f'/proc/{pid}/cmdline') as file:
                            if 'compile-ahead' in file.read():
                                return int(pid)
                except OSError:
                    pass  # it ended meanwhile
            time.sleep(0.01)
        return None

    def ends(self, pid):
        """The process is gone, or is dead and waits for its parent."""
        for _ in range(1000):
            try:
                with open(f'/proc/{pid}/stat') as file:
                    if file.read().rsplit(')', 1)[1].split()[0] == 'Z':
                        return True
            except OSError:
                return True
            time.sleep(0.01)
        return False

    def test_compiles_and_runs_nothing(self):
        """The kernels would end the process if they ran: their arguments are null and 0."""
        words = [pocl_device(), '-DA=1', SOURCE, 'first', 'absent', 'second', 'third', '']
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.sendall(''.join(word + '\0' for word in words).encode())
            done = subprocess.run([PROGRAM, 'compile-ahead'], stdin=theirs, timeout=100,
                                  env=self.environment(**self.cold('a')))
        self.assertEqual(done.returncode, 0)
        self.assertEqual(sorted(os.path.basename(path) for path in self.compiled('a')),
                         ['first.so', 'second.so', 'third.so'])

    def test_cut_requests(self):
        for text in b'', b'\0', b'pthread\0-DA', b'\0\0', b'pthread\0\0', b'a\0b\0c\0d\0\0':
            done = subprocess.run([PROGRAM, 'compile-ahead'], input=text, timeout=20,
                                  capture_output=True, env=self.environment(**self.cold('b')))
            self.assertEqual((done.returncode, done.stdout), (0, b''), text)

    def test_same_code(self):
        """A second process compiles, and what it makes is the same to the byte."""
        with_second = self.start('two')
        self.assertTrue(self.second(with_second))
        self.assertEqual(with_second.wait(timeout=200), 0)
        self.run_program(*TRAIN, '--run', 'one', timeout=200,
                         environment={**self.cold('one'), 'LOCKSTEP_BUILD_THREADS': '1'})
        two, one = self.compiled('two'), self.compiled('one')
        self.assertGreater(len(one), 10)
        self.assertEqual({path: two.get(path) for path in one}, one)
        self.assertEqual(self.sha256('one'), self.sha256('two'))

    def test_second_process_dies(self):
        running = self.start('left')
        os.kill(self.second(running), signal.SIGKILL)
        self.assertEqual(running.wait(timeout=200), 0)
        self.assertEqual(self.events('left', 'end')[-1]['steps'], 2)

    def test_second_process_hangs(self):
        """It is ended with the device, though it is stopped and reads nothing."""
        running = self.start('held')
        pid = self.second(running)
        os.kill(pid, signal.SIGSTOP)
        self.assertEqual(running.wait(timeout=200), 0)
        self.assertTrue(self.ends(pid))

    def test_none_is_left_behind(self):
        for number in signal.SIGKILL, signal.SIGINT:
            with self.subTest(number):
                running = self.start(f'killed{number}')
                pid = self.second(running)
                running.send_signal(number)
                running.wait(timeout=100)
                self.assertTrue(self.ends(pid))


if __name__ == '__main__':
    program.main()
