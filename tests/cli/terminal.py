"""What a terminal is shown, and what is not sent where there is none."""
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios

import program
from program import DATA, PROGRAM, ProgramTest

TASK = r'(building|checking|measuring) kernels \d+/\d+|evaluating \d+/\d+'
LONG = ['--steps', '2000', '--epochs', '1000', '--set', 'validation=off']


# Kernels of its own for each layer, so that building them takes a while.
DEEP = """name: deep
input: [28, 28, 1]
layers:
""" + ''.join(f'  - conv2d: {{filters: {4 + 4 * i}, kernel: 3, activation: relu}}\n'
              for i in range(3)) + """  - flatten
  - dense: {units: 10}
  - softmax
"""
BAR = r'\r([^\r\n\x1b]+)\x1b\[J\r'  # and the cursor goes back to where the line began


class Terminal(ProgramTest):
    def start(self, *arguments, columns=80, **environment):
        """The program on a terminal that many columns wide, and the terminal's other end."""
        leader, follower = pty.openpty()
        self.resize(follower, columns)
        process = subprocess.Popen(
            [PROGRAM, *arguments], cwd=self.folder, stdin=follower, stdout=follower,
            stderr=follower, env=self.environment(**{'TERM': 'xterm', **environment}))
        os.close(follower)
        self.addCleanup(os.close, leader)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, leader

    def resize(self, terminal, columns):
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))

    def read(self, leader, until=None):
        """What comes until the text is there; without one, all."""
        text = b''
        try:
            while until is None or not re.search(until.encode(), text):
                piece = os.read(leader, 65536)
                if not piece:
                    break
                text += piece
        except OSError:  # the other end is closed
            self.assertIsNone(until, text)
        return text.decode()

    def on_terminal(self, *arguments, model='tiny.yaml', **more):
        """Everything the program sends to a terminal while it trains."""
        process, leader = self.start('train', model, '--data', DATA, '--batch-size', '32',
                                     *arguments, **more)
        text = self.read(leader)
        self.assertEqual(process.wait(), 0, text)
        return text

    def bars(self, text):
        """The successive status lines, but those of slow work."""
        return [bar for bar in re.findall(BAR, text) if not re.match(TASK, bar)]

    def test_bar(self):
        for columns in 20, 40, 80, 200:
            bars = self.bars(self.on_terminal(*LONG, columns=columns))
            self.assertGreater(len(bars), 1)
            for bar in bars:
                self.assertLess(len(bar), columns, bar)
                self.assertRegex(bar, r'^(epoch \d+/1000  )?[━╸─]+ ')
                self.assertRegex(bar, r' \d+%')
        self.assertRegex(bars[-1], r'^epoch \d+/1000  [━╸─]+  +\d+%  loss \d\.\d{4}  '
                                   r'acc \d+\.\d%  \S+ samples/s  ETA \d+:\d\d')

    def test_bar_goes_away(self):
        text = self.on_terminal(*LONG)
        last = text.rindex('ETA')
        self.assertRegex(text[last:], r'^ETA [^\r\n]*\x1b\[J\r\r\x1b\[J\rsteps +2000\r\n')

    def test_redraws_are_few(self):
        text = self.on_terminal(*LONG, '--run', 'run')
        seconds = self.events('run', 'end')[0]['seconds']
        self.assertLess(len(self.bars(text)), 10 * seconds + 3)

    def test_ascii(self):
        bars = self.bars(self.on_terminal(*LONG, LC_ALL='C'))
        self.assertGreater(len(bars), 1)
        for bar in bars:
            self.assertRegex(bar, r'^epoch \d+/1000  =*>?-*  ')

    def test_window_changes(self):
        """The line is redrawn where it began, though no step ends: one hangs."""
        process, leader = self.start('train', 'tiny.yaml', '--data', DATA, *LONG, '--device',
                                     '0*2', '--split', 'all', LOCKSTEP_FAIL='0:3:hang',
                                     LOCKSTEP_HANG_SECONDS='600')
        self.read(leader, until=r'first step[\s\S]*ETA')
        for columns in 31, 60:
            self.resize(leader, columns)
            text = self.read(leader, until=BAR)
            self.assertLess(len(self.bars(text)[-1]), columns)
        self.assertGreater(len(self.bars(text)[-1]), 31)

    def on_window(self, columns, *arguments):
        """What a command shows in a window of so many columns, line by line."""
        process, leader = self.start(*arguments, columns=columns)
        text = self.read(leader)
        self.assertEqual(process.wait(), 0, text)
        text = re.sub(BAR, '', text).replace('\r\x1b[J\r', '').replace('\r\x1b[J', '')
        return [line for line in text.replace('\r\n', '\n').split('\n') if line]

    def check_narrow(self, columns, *arguments):
        """Its lines in a window, which they fit, and those in a pipe, which do not."""
        lines = self.on_window(columns, *arguments)
        for line in lines:
            self.assertLessEqual(len(line), columns, line)
        wide = self.run_program(*arguments).stdout.split('\n')
        self.assertGreater(max(map(len, wide)), columns, arguments)
        return lines, wide

    def test_narrow_tables(self):
        """Tables fit a window: names lose their middle, some columns go, headings break."""
        lines, wide = self.check_narrow(50, 'summary', 'mobilenet-v2', '--batch-size', '8')
        self.assertRegex(lines[0], r'^layer +output shape +parameters$')
        self.assertRegex(wide[0], r'^layer +output shape +parameters +FLOPs +activations$')
        self.assertEqual(len([line for line in lines if '(7, 7, 320)' in line]), 2)
        self.assertIn('block17_narrow_norm   (7, 7, 320)         1,280', lines)
        lines, _ = self.check_narrow(40, 'summary', 'mobilenet-v2', '--batch-size', '8')
        self.assertTrue(any(re.match('block17…w_norm +', line) for line in lines), lines)
        lines, _ = self.check_narrow(50, 'devices')
        lines, _ = self.check_narrow(50, 'scale', 'mlp', '--devices', '1,2')
        self.assertRegex(' '.join(lines), r'devices .* samples/s +efficiency +bottleneck')
        self.assertNotIn('lets more of them work', ' '.join(lines))
        lines, _ = self.check_narrow(50, 'scale', 'mlp', '--devices', '1,2', '--batch-size',
                                     '8')
        self.assertRegex(' '.join(lines).replace('   ', ' '),
                         r'A batch of 8 has 1 shard, .* --batch-per-device, +lets more')
        self.assertRegex(' '.join(self.on_window(30, 'scale', 'mlp', '--devices', '1,2')),
                         r'devices samples/s efficiency')

    def test_narrow_figures(self):
        """Those of bench come row by row and stand below one another."""
        options = 'bench', 'kernels:mlp', 'mlp', '--seconds', '0.01'
        lines, _ = self.check_narrow(50, *options, '--json', 'b.json')
        rows = [line for line in lines if re.match('dense +(forward|dgrad|wgrad)', line)]
        self.assertGreater(len(rows), 4)
        self.assertEqual({line.index(' ms') for line in rows}, {rows[0].index(' ms')})
        self.assertTrue(any(re.match('model +batch +samples/s', line) for line in lines))
        lines, _ = self.check_narrow(50, 'bench', '--compare', 'b.json', 'b.json')
        self.assertTrue(any(re.match('geometric mean .*x1.00', line) for line in lines))

    def test_narrow_classes(self):
        """Names of classes that begin alike stay apart; counts stay, percents go."""
        for kind in 'a bird of a northern forest, young', 'a bird of a northern forest, old':
            os.makedirs(self.path(f'set/{kind}'))
            for k in range(6):
                self.put(f'set/{kind}/{k}.png', program.png(8, 8, lambda x, y: k))
        lines, wide = self.check_narrow(50, 'data', 'folder:set,val=0.4', '--pipeline',
                                        'normalize 0..1')
        self.assertTrue(any(line.startswith('a bird of ') and ', young ' in line
                            for line in lines), lines)
        self.assertIn('normalized', '\n'.join(lines))
        self.assertIn('train, grey               0.0000      1.0000         0.0123         '
                      '0.0063', '\n'.join(wide))
        self.put('small.yaml', program.MODEL.replace('[28, 28, 1]', '[8, 8, 1]')
                 .replace('units: 10', 'units: 2'))
        self.run_program('train', 'small.yaml', '--data', 'folder:set,val=0.4', '--steps', '2',
                         '--batch-size', '4', '--run', 'run')
        lines, _ = self.check_narrow(40, 'eval', 'run')
        self.assertTrue(any(re.match(r'a bird of .*….*, old +\d', line) for line in lines),
                        lines)

    def test_wide_classes(self):
        """Two columns for pictures and Japanese, none for marks that stand over a letter."""
        columns = {'ab': 2, '\u26a1\u2705': 4, '\u304b\u3099': 2, '\u6f22': 2, 'e\u0301': 1}
        for kind in columns:
            os.makedirs(self.path(f'set/{kind}'))
            self.put(f'set/{kind}/0.png', program.png(8, 8, lambda x, y: 0))
        lines = self.run_program('data', 'folder:set').stdout.splitlines()
        ends = {columns[kind] + len(line) - len(kind) for line in lines for kind in columns
                if re.match(kind + ' +1 ', line)}
        self.assertEqual(len(ends), 1, lines)
        self.assertEqual(sum(bool(re.match(f"({'|'.join(columns)}) +1 ", line))
                             for line in lines), 5)

    def test_narrow_messages(self):
        """Messages break between words."""
        for columns in 50, 80:
            text = self.on_terminal('--steps', '4', '--device', '0*2', '--shards', '8',
                                    columns=columns, NO_COLOR='1')
            text = re.sub(BAR, '', text).replace('\r\x1b[J', '')  # shown, and taken away
            lines = [line for line in text.split('\r\n') if '\x1b' not in line]
            self.assertGreater(len(lines), 8)
            for line in lines:
                if not line.startswith('sha256'):
                    self.assertLessEqual(len(line), columns)
            said = ' '.join(' '.join(lines).split())
            self.assertIn('no run directory, nothing is kept: --run DIR keeps checkpoints and '
                          'metrics', said)
            self.assertIn('shards', said)

    def test_tables(self):
        """Settings, devices and memory at the start, a row for each evaluation."""
        options = '--epochs', '3', '--val', '25%', '--lr', '0.01', '--run', 'run'
        for columns in 80, 40:
            text = self.on_terminal(*options, '--fresh', columns=columns, NO_COLOR='1')
            lines = re.sub(BAR, '', text).replace('\r\x1b[J', '').split('\r\n')
            table = [line for line in lines if re.match(
                r'(model|data|training|optimizer|device \d|run) {2,}', line)]
            self.assertIn('model      tiny.yaml, 7850 parameters', table)
            self.assertIn('run        run', table)
            rows = [line.split() for line in lines
                    if re.match(r' *(epoch +)?step |^ +\d+ +[\d.]+ ', line)]
            evaluated = self.events('run', 'eval')
            self.assertEqual(len(rows), 1 + len(evaluated))
            if columns == 40:
                self.assertEqual(rows[0], ['step', 'val', 'loss', 'val', 'acc'])
                self.assertLess(max(map(len, table)), 40)
                continue
            self.assertEqual(rows[0], ['epoch', 'step', 'loss', 'accuracy', 'val', 'loss',
                                       'val', 'acc', 'time'])
            self.assertRegex('\n'.join(table), r'training   3 epochs, 36 steps, batches of '
                             r'32 in 1 shard\noptimizer  adam, learning rate 0.01\n'
                             r'device 0   \S+ [KMG]B of \S+ [KMGT]B taken, ')
            for row, found in zip(rows[1:], evaluated):
                self.assertEqual(row[1], str(found['step']))
                self.assertEqual(row[5], f'{found["loss"]:.4f}')
                self.assertEqual(row[6], f'{100 * found["accuracy"]:.2f}')
        self.assertIn('\x1b[2mmodel', self.on_terminal(*options, '--fresh'))
        self.assertIn('nothing is left to train', self.on_terminal(*options))

    def test_interrupts(self):
        for number in signal.SIGINT, signal.SIGTERM:
            for run, said in ([], 'finishing the step; once more stops at once'), (
                    ['--run', 'run'], 'finishing the step and writing a checkpoint; once more '
                    'stops at once'):
                process, leader = self.start('train', 'tiny.yaml', '--data', DATA, '--steps',
                                             '1000000', '--epochs', '1000000', *run)
                self.read(leader, until='ETA')
                process.send_signal(number)
                text = self.read(leader)
                self.assertIn(f'\r\x1b[Jlockstep: {said}\r\n', text)
                self.assertEqual('a checkpoint is in' in text, bool(run))
                self.assertEqual(process.wait(), 130)

    def cold(self):
        """An environment in which no kernel was ever compiled."""
        return {'LOCKSTEP_CACHE': self.path('cache'), 'POCL_CACHE_DIR': self.path('pocl')}

    def test_building_is_shown(self):
        self.put('deep.yaml', DEEP)
        text = self.on_terminal('--steps', '2', '--set', 'tune=off', model='deep.yaml',
                                **self.cold())
        lines = [bar for bar in re.findall(BAR, text) if re.match(TASK, bar)]
        built = [[int(n) for n in found] for found in
                 re.findall(r'building kernels (\d+)/(\d+)  \d+ s', '\n'.join(lines))]
        self.assertGreater(len(built), 0, text)
        for done, count in built:
            self.assertLessEqual(done, count)
        self.assertGreater(max(count for _, count in built), 5)
        self.assertRegex('\n'.join(lines), r'checking kernels \d+/4')
        self.assertNotIn('...', text)  # lines are for pipes

    def test_dumb_terminal(self):
        self.assertNotIn('\x1b', self.on_terminal(*LONG, TERM='dumb'))


class Pipe(ProgramTest):
    def test_building_is_told(self):
        self.put('deep.yaml', DEEP)
        cold = {'LOCKSTEP_CACHE': self.path('cache'), 'POCL_CACHE_DIR': self.path('pocl')}
        done = self.run_program('train', 'deep.yaml', '--data', DATA, '--steps', '1', '--set',
                                'tune=off', environment=cold)
        told = re.findall(r'(?:building|checking) kernels \((\d+) (?:programs|operations)\) '
                          r'\.\.\.\nlockstep: kernels (?:built|checked) in \d+\.\d s\n',
                          done.stderr)
        # What takes less than a second is not told.
        self.assertIn(len(told), (1, 2), done.stderr)
        for count in told:
            self.assertGreater(int(count), 3)
        again = self.run_program('train', 'deep.yaml', '--data', DATA, '--steps', '1', '--set',
                                 'tune=off', environment=cold)
        self.assertNotIn('kernels', again.stderr)

    def test_plain(self):
        done = self.train(*LONG, environment={'TERM': 'xterm'})
        for text in done.stdout, done.stderr:
            self.assertNotIn('\x1b', text)
            self.assertNotIn('\r', text)
        self.assertRegex(done.stderr, r'\nepoch 1/1000  step \d+/2000  loss \d\.\d{4}  '
                                      r'acc \d+\.\d%  \S+ samples/s  ETA ')
        self.assertRegex(done.stdout, r'^steps +2000\n')

    def test_device_without_samples(self):
        """The last batch is too small for the second device, which has worked before."""
        done = self.train('--epochs', '1', '--device', '0*2', '--split', 'equal', '--shards',
                          '8', '--data', 'synthetic:digits,count=515')
        rates = re.findall(r'  device (\d)  (\S+) samples/s', done.stderr)
        self.assertEqual({device for device, _ in rates}, {'0', '1'})
        self.assertNotIn('0', {rate for _, rate in rates})

    def test_fewer_steps_than_are_done(self):
        self.train('--steps', '7', '--run', 'run')
        done = self.train('--steps', '3', '--run', 'run')
        self.assertIn('nothing is left to train: 7 steps are done, 3 are asked for',
                      done.stderr)
        self.assertRegex(done.stderr, r'\nstep 7/7  validation loss ')
        self.assertEqual(len(self.events('run', 'eval')), 1)

    def test_reading_ahead_is_silent(self):
        for part in 'train', 'test':
            for name in 'a', 'b':
                os.makedirs(self.path(f'images/{part}/{name}'))
                for i in range(40):
                    self.put(f'images/{part}/{name}/{i}.png',
                             program.png(28, 28, lambda x, y: (x * y + i) % 256))
        done = self.run_program('data', 'folder:images')
        self.assertEqual(done.stderr, '')

    def test_scale_says_why(self):
        """An efficiency above 100 % stands beside its reason; others need none."""
        for devices in '1..8', '1':
            done = self.run_program('scale', 'tiny.yaml', '--batch-size', '512', '--shards',
                                    '8', '--devices', devices, '--link', '1000', '--json',
                                    'f.json')
            with open(self.path('f.json')) as file:
                rows = json.load(file)['rows']
            self.assertTrue(all(row['noise_percent'] >= 0 for row in rows))
            most = max(row['efficiency_percent'] for row in rows)
            self.assertEqual('\nMore than 100 %' in done.stdout, most >= 100.05, done.stdout)

    def test_scale_takes_settings(self):
        self.put('own.yaml', 'name: own\ninput: [4]\nparameters: {units: 3}\nlayers:\n'
                             '  - dense: {units: $units}\n  - softmax\n')
        sizes = []
        for more in [], ['--set', 'units=3'], ['--set', 'units=300']:
            self.run_program('scale', 'own.yaml', '--batch-size', '8', '--devices', '1',
                             '--json', 'own.json', *more)
            with open(self.path('own.json')) as file:
                sizes.append(json.load(file)['gradient_bytes'])
        self.assertEqual(sizes[0], sizes[1])
        self.assertGreater(sizes[2], sizes[1])
        self.refused(2, 'unitz', 'scale', 'own.yaml', '--devices', '1', '--set', 'unitz=3')

    def test_no_progress(self):
        done = self.train('--epochs', '2', '--no-progress')
        self.assertNotIn('ETA', done.stderr)
        self.assertEqual(done.stderr.count('validation loss'), 2)

    def test_quiet(self):
        done = self.train('--epochs', '2', '--quiet')
        self.assertEqual(done.stderr, '')
        self.assertRegex(done.stdout, r'\nsha256 +[0-9a-f]{64}\n')


if __name__ == '__main__':
    program.main()
