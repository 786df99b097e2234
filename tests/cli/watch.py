"""Runs that are watched while other processes write them: on a terminal, in a pipe, once."""
import fcntl
import json
import os
import pty
import random
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unicodedata

import program
from program import DATA, PROGRAM, ProgramTest

BLOCKS = '▁▂▃▄▅▆▇█'
ENTER, LEAVE = '\x1b[?1049h', '\x1b[?1049l'


def step(number, **more):
    return {'event': 'step', 'step': number, 'epoch': 0, 'loss': 1 / number, 'accuracy': None,
            'samples': 20, 'samples_per_s': 200.0, 'step_ms': 100.0, 'lr': 0.5, 'tries': 1,
            'devices': [], **more}


class WatchTest(ProgramTest):
    def write(self, run, lines, mode='w', ending='\n'):
        os.makedirs(self.path(run), exist_ok=True)
        with open(self.path(run + '/metrics.jsonl'), mode + 'b') as file:
            file.write(b''.join(
                (line if isinstance(line, bytes) else json.dumps(line).encode()) + b'\n'
                for line in lines)[:None if ending else -1])

    def hold(self, run):
        """As a process that trains into it does."""
        folder = os.open(self.path(run), os.O_RDONLY)
        self.addCleanup(os.close, folder)
        fcntl.flock(folder, fcntl.LOCK_EX)

    def once(self, *runs, **more):
        return self.run_program('watch', *runs, '--once', **more).stdout


class Once(WatchTest):
    def test_trained(self):
        self.train('--run', 'run', '--epochs', '2', '--val', '25%', '--device', '0*2',
                   '--split', 'all', '--shards', '8')
        shown = self.once('run')
        last = self.events('run', 'eval')[-1]
        steps = self.events('run', 'step')[-1]['step']
        self.assertRegex(shown, r'^run  finished\n')
        self.assertIn('tiny.yaml on synthetic:digits', shown)
        self.assertRegex(shown, f'100%  epoch 2/2  step {steps}/{steps}  ')
        self.assertRegex(shown, rf'\nloss +\d\.\d{{4}}  [{BLOCKS}]+\n')
        self.assertIn(f'validation  {100 * last["accuracy"]:8.2f} %', shown)
        self.assertRegex(shown, rf'\nsamples/s +\S+  [{BLOCKS}]+\n')
        self.assertEqual(re.findall(r'\ndevice (\d) +(\d+) %', shown),
                         [(str(i), f'{100 * d["share"]:.0f}') for i, d in
                          enumerate(self.events('run', 'step')[-1]['devices'])])
        self.assertIn(f'\nstep {steps:<7}validation loss {last["loss"]:.4f}', shown)
        self.assertIn('the end, sha256 ' + self.sha256('run')[:16], shown)
        for line in shown.split('\n'):
            self.assertLessEqual(len(line), 80)

    def test_states(self):
        self.write('run', [{'event': 'start', 'step': 0, 'steps': 100, 'epochs': 1,
                            'text': 'here'}])
        self.assertIn('run  begun', self.once('run'))
        self.write('run', [step(i) for i in range(1, 26)], 'a')
        self.assertIn('run  stopped', self.once('run'))
        self.assertNotIn('ETA', self.once('run'))
        self.hold('run')
        shown = self.once('run')
        self.assertIn('run  training', shown)
        self.assertIn(' 25%  ETA 0:08  epoch 1/1  step 25/100  0:03 done', shown)
        self.assertIn('        200  ', shown)
        os.utime(self.path('run/metrics.jsonl'), (1, time.time() - 130))
        self.assertRegex(self.once('run'), 'run  silent for 2:(09|1)')
        self.write('run', [{'event': 'devices', 'step': 25, 'text': 'device 1 is lost'}], 'a')
        self.assertIn('device 1 is lost', self.once('run'))

    def test_curve(self):
        """Low to high, by the logarithm where that is far; few points of many steps."""
        self.write('run', [step(i, loss=10 ** (i - 1)) for i in range(1, 9)])
        self.assertIn('  ' + BLOCKS + '\n', self.once('run'))
        self.assertIn('  _.:-=+*#\n', self.once('run', environment={'LC_ALL': 'C'}))
        self.write('run', [step(i, loss=1 + (i > 4000)) for i in range(1, 5001)])
        curve, = re.findall(r'\nloss .*  ([▁█]+[▁-█]?[▁█]+)\n', self.once('run'))
        self.assertEqual(len(curve), 56)
        self.assertAlmostEqual(curve.count('█') / len(curve), 0.2, delta=0.05)

    def test_not_there(self):
        done = self.run_program('watch', 'nowhere', '--once', status=3)
        self.assertIn('nowhere  not there yet', done.stdout)
        self.refused(2, 'needs 1 to 256 RUN directories, found 0', 'watch')
        self.refused(2, "'--every'", 'watch', 'run', '--every', '0')
        self.refused(3, 'less than 1024', 'watch', 'x' * 1024)

    def test_hostile(self):
        """Bytes of any kind, huge lines, wrong types; what is right is shown."""
        chance = random.Random(5)
        lines = [chance.randbytes(chance.randrange(300)) for _ in range(300)]
        lines += [b'x' * (3 << 20), b'[' * 100000, b'\0' * 5000, b'{"event": "step"',
                  b'{"event": "step", "step": 1e999, "epoch": -1e300, "loss": nan}',
                  {'event': 'start', 'step': 'x', 'steps': -1, 'epochs': 1e308, 'text': 'a'},
                  {'event': 'eval', 'step': [], 'loss': {}, 'accuracy': 1e308},
                  {'event': 'checkpoint', 'step': 3, 'file': None},
                  {'event': 'callback', 'step': 3, 'text': '\x1b[31m\u202e' + 'é' * 5000},
                  {'event': 5}, {'event': 'end', 'parameters_sha256': 7}, [1], 'x',
                  step(7, devices=[None, 7, {'share': 'x', 'compute_ms': -1e308,
                                             'wait_ms': 1e308}, {}] * 30)]
        self.write('run', lines)
        for columns in '200', '20':
            shown = self.once('run', environment={'COLUMNS': columns})
            self.assertRegex(shown, r'^run  stopped  \d+ damaged lines\n')
            self.assertIn('step 7', shown)
            self.assertIn('?[31m?éé', shown)
            self.assertNotIn('\x1b', shown)
        os.remove(self.path('run/metrics.jsonl'))
        os.mkdir(self.path('run/metrics.jsonl'))
        self.run_program('watch', 'run', '--once', status=3)


class Pipe(WatchTest):
    def start(self, *arguments):
        process = subprocess.Popen(
            [PROGRAM, 'watch', '--every', '0.1', *arguments], cwd=self.folder,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=self.environment())
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.rest = b''
        return process

    def expect(self, process, what):
        """Reads lines until one has it."""
        seen, end = [], time.monotonic() + 60
        while not any(what in line for line in seen) and time.monotonic() < end:
            while b'\n' in self.rest:
                line, _, self.rest = self.rest.partition(b'\n')
                seen.append(line.decode())
                if what in seen[-1]:
                    return seen
            if select.select([process.stdout], [], [], 1)[0]:
                piece = os.read(process.stdout.fileno(), 65536)
                self.assertTrue(piece, seen)
                self.assertNotIn(b'\x1b', piece)
                self.rest += piece
        self.fail(seen)

    def test_grows(self):
        """It comes, grows by halves of lines, starts over, is replaced, ends."""
        process = self.start('run')
        time.sleep(0.3)
        self.write('run', [{'event': 'start', 'step': 0, 'steps': 9, 'text': 'begins'},
                           step(1)])
        self.expect(process, 'begins')
        self.expect(process, 'step 1  ')
        self.write('run', [step(2), {'event': 'callback', 'step': 2, 'text': 'half'}], 'a',
                   ending='')
        self.assertNotIn('half', ''.join(self.expect(process, 'step 2  ')))
        self.write('run', [b'', {'event': 'eval', 'step': 2, 'loss': 3.25, 'accuracy': 0.5}],
                   'a')
        self.expect(process, 'half')
        self.expect(process, 'run  step 2  validation loss 3.2500  accuracy 50.00 %')
        self.write('run', [step(1, loss=7.5)])  # shorter
        self.expect(process, 'step 1  loss 7.5000')
        self.write('other', [step(1), step(2), step(3, loss=4.0)])  # longer
        os.rename(self.path('other/metrics.jsonl'), self.path('run/metrics.jsonl'))
        self.expect(process, 'step 3  ')
        os.truncate(self.path('run/metrics.jsonl'), 0)
        self.write('run', [step(i, loss=2.0) for i in range(1, 5)], 'r+')  # the same file
        self.expect(process, 'step 4  loss 2.0000')
        os.remove(self.path('run/metrics.jsonl'))
        time.sleep(0.3)
        self.write('run', [step(5, loss=8.0)])
        self.expect(process, 'step 5  loss 8.0000')
        self.write('run', [{'event': 'end', 'steps': 5, 'parameters_sha256': 'abc'}], 'a')
        self.expect(process, 'the end, sha256 abc')
        self.assertEqual(process.wait(60), 0)

    def test_training(self):
        """A real one, from before it begins to its end; all its evaluations are told."""
        process = self.start('run')
        self.train('--run', 'run', '--epochs', '3', '--val', '25%')
        told = process.communicate(timeout=60)[0].decode()
        self.assertEqual(process.returncode, 0)
        self.assertGreaterEqual(told.count('validation loss'), 2)
        self.assertIn('the end, sha256 ' + self.sha256('run')[:16], told)

    def test_lines_come_at_once(self):
        """Whoever reads metrics.jsonl sees each step when it is done. A line is written at
        once; one that goes over a page's end may be seen as far as that for a moment."""
        process = subprocess.Popen(
            [PROGRAM, 'train', 'tiny.yaml', '--data', 'synthetic:digits,count=20000',
             '--batch-size', '32', '--epochs', '1', '--run', 'run', '--quiet'],
            cwd=self.folder, stdout=subprocess.DEVNULL, env=self.environment())
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        path, seen = self.path('run/metrics.jsonl'), set()
        while process.poll() is None:
            if os.path.exists(path):
                with open(path) as file:
                    text = file.read()
                    if text[-1:] not in ('', '\n'):
                        self.assertEqual(len(text.encode()) % 4096, 0)
                        time.sleep(0.05)
                        self.assertIn('\n', file.read())
                seen.add(text.count('"event": "step"'))
            time.sleep(0.002)
        self.assertGreater(len(seen), 3)

    def test_waits(self):
        """In a pipe too it says for what."""
        process = subprocess.Popen([PROGRAM, 'watch', 'nowhere'], cwd=self.folder, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, env=self.environment())
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertIn("waiting for 'nowhere'", process.stderr.readline())

    def test_signals(self):
        self.write('run', [step(1)])
        process = self.start('run')
        self.expect(process, 'step 1')
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 130)


class Terminal(WatchTest):
    def start(self, *arguments, rows=24, columns=80, **environment):
        leader, follower = pty.openpty()
        self.resize(leader, rows, columns)
        self.before = termios.tcgetattr(follower)
        process = subprocess.Popen(
            [PROGRAM, 'watch', *arguments], cwd=self.folder, stdin=follower, stdout=follower,
            stderr=follower, start_new_session=True,
            env=self.environment(TERM='xterm', **environment))
        self.follower = follower
        self.addCleanup(os.close, follower)
        self.addCleanup(os.close, leader)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, leader

    def resize(self, terminal, rows, columns):
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))

    def frame(self, leader, what, rows=24):
        """The lines of the first view that has the text, and what came until then."""
        came, end, more = b'', time.monotonic() + 60, False
        while time.monotonic() < end:
            text = came.decode(errors='ignore')
            views = text.split('\x1b[H')[1:]
            for view in reversed(views[:-1] if more else views):
                lines = [re.sub(r'\x1b\[[0-9]*[mK]|\r', '', line)
                         for line in view.split('\n')]
                if len(lines) == rows and any(what in line for line in lines):
                    return lines, text
            more = bool(select.select([leader], [], [], 0.2)[0])  # the last one is not whole
            if more:
                came += os.read(leader, 65536)
        self.fail(text)

    def leaves(self, process, leader, status):
        text = ''
        while LEAVE not in text:
            text += os.read(leader, 65536).decode(errors='replace')
        self.assertEqual(process.wait(60), status)
        self.assertIn('\x1b[?25h', text)
        self.assertEqual(termios.tcgetattr(self.follower), self.before)

    def test_window(self):
        """Its size is followed, keys and signals leave, and the terminal is as before."""
        self.write('run', [step(i, accuracy=0.5, devices=[{'share': 1.0, 'compute_ms': 5.0}])
                           for i in range(1, 300)] +
                   [{'event': 'callback', 'step': i, 'text': f'news {i}'} for i in range(40)])
        self.hold('run')
        for ends, status in (b'q', 0), (signal.SIGINT, 130), (signal.SIGTERM, 130), (
                signal.SIGHUP, 0):
            process, leader = self.start('run', '--every', '60')
            lines, text = self.frame(leader, 'training')
            self.assertTrue(text.startswith(ENTER), text)
            self.assertEqual(len([line for line in lines if 'news' in line]), 12)
            self.assertFalse(termios.tcgetattr(self.follower)[3] & termios.ECHO)
            for rows, columns in (8, 40), (3, 20), (40, 130):
                self.resize(leader, rows, columns)
                os.killpg(process.pid, signal.SIGWINCH)
                lines, _ = self.frame(leader, 'run  ', rows)
                self.assertLessEqual(max(map(len, lines)), columns, lines)
                self.assertTrue(lines[0].startswith('lockstep watch'), lines)
                if rows == 8:
                    self.assertEqual([line.split(' ')[0] for line in lines],
                                     ['lockstep', 'run', '?', 'step',
                                      'loss', 'accuracy', 'samples/s', 'device'])
            if isinstance(ends, bytes):
                os.write(leader, ends)
            else:
                process.send_signal(ends)
            self.leaves(process, leader, status)

    def test_live(self):
        process, leader = self.start('run', '--every', '0.1')
        self.frame(leader, 'not there yet')
        self.write('run', [step(1)])
        self.frame(leader, 'stopped')
        self.write('run', [step(2, loss=0.125)] * 1000, 'a')
        self.frame(leader, '0.1250')
        os.rename(self.path('run'), self.path('moved'))
        self.frame(leader, 'gone')
        os.rename(self.path('moved'), self.path('run'))
        self.frame(leader, 'stopped')
        os.write(leader, b'q')
        self.leaves(process, leader, 0)

    def test_many(self):
        """A line each where the window is low, and how many are not shown."""
        names = [f'a/folder/of/trials/run{i:02}' for i in range(30)]
        for i, name in enumerate(names):
            self.write(name, [step(n + 1) for n in range(i + 1)])
        process, leader = self.start(*names, columns=60)
        lines, _ = self.frame(leader, '8 more')
        self.assertIn('  30 runs', lines[0])
        for i in range(22):
            self.assertRegex(lines[1 + i], rf'run{i:02}  stopped  step {i + 1}  loss ')
        process, leader = self.start(*names[:3], rows=30)
        lines, _ = self.frame(leader, 'stopped', 30)
        self.assertEqual(len([line for line in lines if line.startswith('loss')]), 3)

    def test_wide_characters(self):
        """They take two columns of a terminal each."""
        name = '長い名前の実行です、とても長いです'
        self.write(name, [step(1), step(2)])
        for columns in 20, 21, 25, 30, 31, 60:
            process, leader = self.start(name, columns=columns)
            lines, _ = self.frame(leader, name[-3:] if columns < 60 else name)
            for line in lines:
                width = sum(2 if unicodedata.east_asian_width(c) in 'WF' else 1 for c in line)
                self.assertLessEqual(width, columns, line)

    def test_colours(self):
        self.write('run', [step(1), step(2)])
        for environment, is_coloured in ({}, True), ({'NO_COLOR': '1'}, False), (
                {'NO_COLOR': ''}, True):
            process, leader = self.start('run', **environment)
            _, text = self.frame(leader, 'stopped')
            self.assertEqual('\x1b[36m' in text, is_coloured)
            process.kill()
        process, leader = self.start('run', '--once', **{'NO_COLOR': '1'})
        process.wait(60)
        self.assertNotIn('\x1b', os.read(leader, 65536).decode())

    def test_stopped_by_the_shell(self):
        """Ctrl-Z gives the terminal back; fg takes it again."""
        self.write('run', [step(1)])
        process, leader = self.start('run')
        self.frame(leader, 'stopped')
        process.send_signal(signal.SIGTSTP)
        os.waitpid(process.pid, os.WUNTRACED)
        self.assertEqual(termios.tcgetattr(self.follower), self.before)
        text = ''
        while LEAVE not in text:  # views that were drawn meanwhile come first
            self.assertTrue(select.select([leader], [], [], 60)[0], text)
            text += os.read(leader, 65536).decode(errors='replace')
        process.send_signal(signal.SIGCONT)
        _, text = self.frame(leader, 'stopped')
        self.assertIn(ENTER, text)


if __name__ == '__main__':
    program.main()
