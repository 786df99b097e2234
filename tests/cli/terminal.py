"""What a terminal is shown, and what is not sent where there is none."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

import program
from program import DATA, PROGRAM, ProgramTest

LONG = ['--steps', '2000', '--epochs', '1000', '--set', 'validation=off']


class Terminal(ProgramTest):
    def on_terminal(self, *arguments, columns=80, **environment):
        """Everything the program sends to a terminal that many columns wide."""
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
        process = subprocess.Popen(
            [PROGRAM, 'train', 'tiny.yaml', '--data', DATA, '--batch-size', '32', *arguments],
            cwd=self.folder, stdin=follower, stdout=follower, stderr=follower,
            env=self.environment(**{'TERM': 'xterm', **environment}))
        os.close(follower)
        text = b''
        try:
            while piece := os.read(leader, 65536):
                text += piece
        except OSError:  # the other end is closed
            pass
        os.close(leader)
        self.assertEqual(process.wait(), 0, text)
        return text.decode()

    def bars(self, text):
        """The successive status lines."""
        return re.findall(r'\r([^\r\n\x1b]+)\x1b\[K', text)

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
        self.assertRegex(text[last:], r'^ETA [^\r\n]*\x1b\[K\r\x1b\[Ksteps +2000\r\n')

    def test_redraws_are_few(self):
        text = self.on_terminal(*LONG, '--run', 'run')
        seconds = self.events('run', 'end')[0]['seconds']
        self.assertLess(len(self.bars(text)), 10 * seconds + 3)

    def test_ascii(self):
        bars = self.bars(self.on_terminal(*LONG, LC_ALL='C'))
        for bar in bars:
            self.assertRegex(bar, r'^epoch \d+/1000  =*>?-*  ')

    def test_dumb_terminal(self):
        self.assertNotIn('\x1b', self.on_terminal(*LONG, TERM='dumb'))


class Pipe(ProgramTest):
    def test_plain(self):
        done = self.train(*LONG, environment={'TERM': 'xterm'})
        for text in done.stdout, done.stderr:
            self.assertNotIn('\x1b', text)
            self.assertNotIn('\r', text)
        self.assertRegex(done.stderr, r'\nepoch 1/1000  step \d+/2000  loss \d\.\d{4}  '
                                      r'acc \d+\.\d%  \S+ samples/s  ETA ')
        self.assertRegex(done.stdout, r'^steps +2000\n')

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
