"""Runs the `lockstep` program for the tests beside this file: python3 TEST.py PROGRAM"""
import hashlib
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

PROGRAM = os.path.abspath(sys.argv.pop(1))

MODEL = """name: tiny
input: [28, 28, 1]
layers:
  - flatten
  - dense: {units: 10}
  - softmax
"""
DATA = 'synthetic:digits,count=512'


class ProgramTest(unittest.TestCase):
    """Each test has an empty folder to itself and is run in it."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='lockstep-cli-')
        self.addCleanup(shutil.rmtree, self.folder)
        self.put('tiny.yaml', MODEL)

    def path(self, name):
        return os.path.join(self.folder, name)

    def put(self, name, content):
        with open(self.path(name), 'wb') as file:
            file.write(content.encode() if isinstance(content, str) else content)

    def environment(self, **changes):
        kept = {k: v for k, v in os.environ.items()
                if not k.startswith('LOCKSTEP_') or k == 'LOCKSTEP_CACHE'}
        return {**kept, 'LC_ALL': 'C.UTF-8', **changes}

    def run_program(self, *arguments, status=0, environment=None, timeout=800, **more):
        """Runs it to its end; the exit status must be `status` (None: any). timeout: only for
        what hangs, since compilers on a busy machine can take minutes."""
        done = subprocess.run([PROGRAM, *arguments], cwd=self.folder, capture_output=True,
                              text=True, timeout=timeout, stdin=subprocess.DEVNULL,
                              env=self.environment(**(environment or {})), **more)
        if status is not None:
            self.assertEqual(done.returncode, status,
                             f'{arguments}\nstdout: {done.stdout}\nstderr: {done.stderr}')
        return done

    def refused(self, status, said, *arguments, **more):
        """It fails with `status`, says all of `said` on stderr and prints no result."""
        done = self.run_program(*arguments, status=status, **more)
        for text in [said] if isinstance(said, str) else said:
            self.assertIn(text, done.stderr)
        self.assertEqual(done.stdout, '')
        self.assertTrue(done.stderr.startswith('lockstep: '), done.stderr)
        return done

    def train(self, *arguments, **more):
        return self.run_program('train', 'tiny.yaml', '--data', DATA, '--batch-size', '32',
                                *arguments, **more)

    def events(self, run, kind=None):
        """The lines of a run's metrics.jsonl, of one kind or all."""
        with open(self.path(run + '/metrics.jsonl')) as file:
            events = [json.loads(line) for line in file]
        return [e for e in events if kind in (None, e['event'])]

    def sha256(self, run):
        return self.events(run, 'end')[-1]['parameters_sha256']


def png(width, height, pixel):
    """A PNG file, grey where pixel(x, y) gives 0..255, in colours where it gives three."""
    def chunk(kind, data):
        return struct.pack('>I', len(data)) + kind + data + struct.pack(
            '>I', zlib.crc32(kind + data))
    is_grey = isinstance(pixel(0, 0), int)
    rows = b''.join(b'\0' + b''.join(bytes([pixel(x, y)] if is_grey else pixel(x, y))
                                     for x in range(width)) for y in range(height))
    header = struct.pack('>IIBBBBB', width, height, 8, 0 if is_grey else 2, 0, 0, 0)
    return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', header) + chunk(b'IDAT', zlib.compress(rows))
            + chunk(b'IEND', b''))


def sum_up(checkpoint):
    """A checkpoint whose header was changed, with the sum that the header now has."""
    end = 8 + struct.unpack('<Q', checkpoint[:8])[0]
    key = b'"header_sha256":"'
    at = checkpoint.index(key) + len(key)
    blank = checkpoint[:at] + b'0' * 64 + checkpoint[at + 64:]
    found = hashlib.sha256(blank[8:end]).hexdigest().encode()
    return checkpoint[:at] + found + checkpoint[at + 64:]


def main():
    # nohup, and a script's &, have these ignored by all that is started behind them.
    for number in signal.SIGHUP, signal.SIGINT, signal.SIGQUIT:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    unittest.main(verbosity=2)
