#!/usr/bin/env python3
"""Ranks under mpirun: ranks.py PROGRAM yes|no, whether PROGRAM was built with MPI."""
import os
import shutil
import subprocess
import sys
import time
import unittest

MPIRUN = shutil.which('mpirun')
PROGRAM, HAS_MPI = os.path.abspath(sys.argv[1]), sys.argv[2] == 'yes'
LAUNCHERS = ('OMPI_', 'PMI', 'MV2_')


def run(ranks, *arguments, timeout=100, **environment):
    """As `mpirun -np ranks`, ranks sharing the cores there are; 0: without mpirun."""
    # About other interfaces than the host's own Open MPI 5 warns on some machines.
    start = [MPIRUN, '--allow-run-as-root', '--oversubscribe', '--mca', 'btl_tcp_if_include',
             'lo', '-np', str(ranks)]
    kept = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHERS)}
    return subprocess.run([*(start if ranks else []), PROGRAM, *arguments],
                          capture_output=True, text=True, timeout=timeout,
                          env={**kept, **environment})


class Alone(unittest.TestCase):
    def test_without_a_launcher(self):
        for command in ('sums', 'several', 'any-order', 'share', 'add', 'refusals'):
            done = run(0, command)
            self.assertEqual((done.returncode, done.stderr), (0, ''))
            self.assertEqual(done.stdout, f'{command}: rank 0 of 1\n')

    def test_a_job_of_one(self):
        """Where the launcher says that it started one rank, MPI is not needed."""
        self.assertEqual(run(0, 'add', OMPI_COMM_WORLD_SIZE='1', PMIX_RANK='0').returncode, 0)

    @unittest.skipIf(HAS_MPI, 'built with MPI')
    def test_without_mpi(self):
        for variables in ({'OMPI_COMM_WORLD_SIZE': '2'}, {'PMI_SIZE': '3'}, {'PMIX_RANK': '1'}):
            done = run(0, 'add', **variables)
            self.assertEqual(done.returncode, 1)
            self.assertIn('this build has no MPI', done.stderr)


@unittest.skipUnless(HAS_MPI and MPIRUN, 'needs a build with MPI, and mpirun')
class Ranks(unittest.TestCase):
    def check(self, command, ranks):
        done = run(ranks, command)
        self.assertEqual((done.returncode, done.stderr), (0, ''), f'{command}, {ranks} ranks')
        self.assertEqual(sorted(done.stdout.splitlines()),
                         [f'{command}: rank {i} of {ranks}' for i in range(ranks)])

    def test_sums(self):
        for ranks in 1, 2, 3, 4:
            self.check('sums', ranks)

    def test_several(self):
        for ranks in 2, 3, 4:
            self.check('several', ranks)

    def test_the_rest(self):
        for command in 'any-order', 'share', 'add', 'refusals':
            self.check(command, 3)

    def said(self, command, ranks):
        """What each rank said."""
        done = run(ranks, command)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = [line for line in done.stderr.splitlines() if line.startswith('[')]
        self.assertEqual(len(said), ranks, done.stderr)
        return set(said)

    def test_different_texts(self):
        self.assertEqual(self.said('equal', 3), {
            "[invalid argument: settings differ between ranks: rank 0 has 'lr: 0.5', rank 2 "
            "has 'lr: 0.25']"})

    def test_failure_is_told(self):
        self.assertEqual(self.said('fails', 4), {'[device failed: rank 1: device 3 is lost]'})
        self.assertEqual(self.said('disagrees', 3),
                         {"[malformed data: rank 2: no labels in 'train']"})

    def test_a_killed_rank_ends_the_job(self):
        start = time.monotonic()
        done = run(3, 'killed')
        self.assertLess(time.monotonic() - start, 30)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r'(?s)rank 1 .*signal 9')


if __name__ == '__main__':
    del sys.argv[1:]
    unittest.main(verbosity=2)
