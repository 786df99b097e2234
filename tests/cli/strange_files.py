"""Pipes, sockets, folders and other people's files where a run expects its own."""
import os
import shutil
import socket
import subprocess

import program
from program import DATA, PROGRAM, ProgramTest


class NoFiles(ProgramTest):
    """What is no file is refused; nothing waits for somebody to write into a pipe."""

    def make(self, name, kind):
        path = self.path(name)
        if kind == 'pipe':
            os.mkfifo(path)
        elif kind == 'folder':
            os.mkdir(path)
        else:
            server = socket.socket(socket.AF_UNIX)
            self.addCleanup(server.close)
            server.bind(path)

    def test_data(self):
        for kind in 'pipe', 'folder', 'socket':
            self.make(kind, kind)
            for spec in (f'npy:{kind},{kind}', f'csv:{kind}', f'tfrecord:{kind}',
                         f'text:{kind}'):
                if kind == 'folder' and spec.startswith('text'):
                    continue
                self.refused(3, kind, 'train', 'tiny.yaml', '--data', spec, timeout=20)

    def test_models_and_checkpoints(self):
        for kind in 'pipe', 'socket':
            self.make(kind, kind)
            self.make(kind + '.yaml', kind)
            self.refused(3, kind, 'summary', kind + '.yaml', timeout=20)
            self.refused(3, kind, 'train', 'tiny.yaml', '--config', kind + '.yaml', '--data',
                         DATA, timeout=20)
            self.refused(3, kind, 'eval', kind, timeout=20)
        for command in ['summary', 'pipe'], ['train', 'pipe', '--data', DATA]:
            self.refused(3, "cannot read 'pipe': it is a device or a pipe, not a file",
                         *command, timeout=20)

    def test_cache(self):
        os.mkdir(self.path('images'))
        for name in 'a', 'b':
            os.mkdir(self.path('images/' + name))
            for i in range(2):
                self.put(f'images/{name}/{i}.png', program.png(28, 28, lambda x, y: 7 * x))
        for kind in 'pipe', 'folder', 'socket':
            self.make(kind, kind)
            self.refused(3, kind, 'train', 'tiny.yaml', '--data', 'folder:images', '--cache',
                         kind, '--batch-size', '2', timeout=20)

    def test_run_directory(self):
        """Found before data is read or a device is opened, and before anything is written."""
        for i, kind in enumerate(['pipe', 'folder', 'socket']):
            for name in 'metrics.jsonl', 'config.yaml', 'env.json':
                run = f'run-{i}-{name}'
                os.mkdir(self.path(run))
                self.make(f'{run}/{name}', kind)
                self.refused(3, [name, 'not a file'], 'train', 'tiny.yaml', '--data', DATA,
                             '--run', run, timeout=20)
                self.assertEqual(os.listdir(self.path(run)), [name])


class ClosedStreams(ProgramTest):
    def test_nothing_gets_into_files(self):
        """The first files that are opened take the places of closed streams."""
        for closed in '2>&-', '>&- 2>&-', '<&- >&- 2>&-', '<&- 2>&-':
            command = (f'exec {PROGRAM} train tiny.yaml --data {DATA} --batch-size 32 --steps '
                       f'3 --fresh --run run {closed}')
            done = subprocess.run(['sh', '-c', command], cwd=self.folder, check=False,
                                  env=self.environment(), stdout=subprocess.PIPE, timeout=100)
            self.assertEqual(done.returncode, 3 if '>&- 2' in closed else 0, closed)
            self.assertEqual(len(self.events('run', 'step')), 3)
            self.run_program('eval', 'run')


class OtherPeoplesFiles(ProgramTest):
    def test_foreign_files(self):
        """Only a run's own files are replaced, with --fresh too."""
        for name in 'config.yaml', 'metrics.jsonl', 'env.json':
            os.mkdir(self.path('mine'))
            self.put('mine/' + name, 'my own\n')
            for more in [], ['--fresh']:
                self.refused(2, [name, 'not written by a run'], 'train', 'tiny.yaml', '--data',
                             DATA, '--run', 'mine', *more)
            with open(self.path('mine/' + name)) as file:
                self.assertEqual(file.read(), 'my own\n')
            self.assertEqual(os.listdir(self.path('mine')), [name])
            shutil.rmtree(self.path('mine'))

    def test_other_files_stay(self):
        os.mkdir(self.path('mine'))
        self.put('mine/notes.txt', 'my own\n')
        self.train('--steps', '2', '--run', 'mine')
        self.assertTrue(os.path.exists(self.path('mine/notes.txt')))

    def test_run_without_a_checkpoint(self):
        """As one that was killed early leaves it."""
        self.train('--steps', '2', '--run', 'run')
        shutil.rmtree(self.path('run/checkpoints'))
        self.train('--steps', '3', '--run', 'run')
        self.assertEqual(len(self.events('run', 'step')), 3)

    def test_lost_metrics(self):
        self.train('--steps', '4', '--run', 'run')
        self.assertNotIn('lost', self.train('--steps', '6', '--run', 'run').stderr)
        with open(self.path('run/metrics.jsonl')) as file:
            lines = file.readlines()
        for kept in lines[:3], lines[:1] + lines[3:], []:
            self.put('run/metrics.jsonl', ''.join(kept))
            found = sum('"event": "step"' in line for line in kept)
            said = self.train('--steps', '7', '--run', 'run').stderr
            self.assertIn(f'tells of {found} of the 6 steps', said)
            self.train('--steps', '6', '--run', 'run', '--fresh')
        os.unlink(self.path('run/metrics.jsonl'))
        said = self.train('--steps', '8', '--run', 'run').stderr
        self.assertIn('tells of 0 of the 6 steps', said)


if __name__ == '__main__':
    program.main()
