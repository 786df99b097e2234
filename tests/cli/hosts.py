"""A job of two hosts, each a network namespace with a name of its own: takes ranks.py's
arguments. Skipped where namespaces cannot be made."""
import json
import os
import shutil
import signal
import subprocess
import time
import unittest

from ranks import HAS_MPI, MPIRUN, OPTIONS, TRAIN, RanksTest

import program

NETWORK = '10.93.7'
# Only the cable between the two is used; a host that is silent for 10 s is given up.
HOSTS = ['--host', f'{NETWORK}.1:1,{NETWORK}.2:1', '-np', '2', '--mca', 'btl', 'tcp,self',
         '--mca', 'btl_tcp_if_include', f'{NETWORK}.0/24',
         '--mca', 'oob_tcp_if_include', f'{NETWORK}.0/24',
         '--mca', 'oob_tcp_keepalive_time', '4', '--mca', 'oob_tcp_keepalive_intvl', '2',
         '--mca', 'oob_tcp_keepalive_probes', '3']
NAMES = [f'lockstep{os.getpid()}{host}' for host in 'ab']


def ip(*arguments, check=True):
    return subprocess.run(['ip', *arguments], capture_output=True, text=True, check=check)


def make_hosts():
    for name in NAMES:
        ip('netns', 'add', name)
    ip('link', 'add', 'cable', 'netns', NAMES[0], 'type', 'veth', 'peer', 'name', 'cable',
       'netns', NAMES[1])
    for number, name in enumerate(NAMES, 1):
        ip('-n', name, 'address', 'add', f'{NETWORK}.{number}/24', 'dev', 'cable')
        ip('-n', name, 'link', 'set', 'lo', 'up')
        ip('-n', name, 'link', 'set', 'cable', 'up')


def remove_hosts():
    for name in NAMES:
        for pid in ip('netns', 'pids', name, check=False).stdout.split():
            os.kill(int(pid), signal.SIGKILL)
        ip('netns', 'delete', name, check=False)


def on_host(name, command):
    """A command line that runs a shell's command on a host."""
    return ['ip', 'netns', 'exec', name, 'unshare', '--uts', 'sh', '-c',
            f'hostname {name}; {command}']


@unittest.skipUnless(HAS_MPI and MPIRUN, 'needs a build with MPI, and mpirun')
@unittest.skipUnless(shutil.which('ip') and shutil.which('unshare'), 'needs ip and unshare')
class Hosts(RanksTest):
    COMMON = ['--steps', '1500', '--checkpoint-every', '7']

    def setUp(self):
        super().setUp()
        self.addCleanup(remove_hosts)
        try:
            make_hosts()
        except subprocess.CalledProcessError as error:
            self.skipTest(f'no network namespaces here: {error.stderr.strip()}')
        # As ssh: HOST COMMAND...
        second = ' '.join(on_host(NAMES[1], '')[:-1])
        self.put('agent', f'#!/bin/sh\nshift\nexec {second} "hostname {NAMES[1]}; $*"\n')
        os.chmod(self.path('agent'), 0o755)

    def start_hosts(self, *arguments):
        job = [MPIRUN, *OPTIONS, *HOSTS, '--mca', 'plm_rsh_agent', self.path('agent'), *TRAIN,
               '--run', 'run', *arguments, '--log-format', 'jsonl']
        return self.start(*on_host(NAMES[0], 'exec "$@"'), 'sh', *job)

    def start_and_wait(self):
        process = self.start_hosts(*self.COMMON)
        for line in process.stdout:
            if json.loads(line).get('step') == 31:
                return process
        self.fail(process.stderr.read())

    def check_ended(self, process):
        """The job is over within 30 s and goes on elsewhere."""
        start = time.monotonic()
        process.stdout.read()
        process.wait(60)
        said = process.stderr.read()
        self.assertLess(time.monotonic() - start, 30, said)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn('daemon', said)  # of mpirun, on the other host
        self.job(3, 'run', *self.COMMON)
        self.assertEqual(self.sha256('run'), self.alone('whole', *self.COMMON))

    def test_same_bits(self):
        process = self.start_hosts('--steps', '40')
        _, stderr = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 0, stderr)
        self.assertEqual(self.sha256('run'), self.alone('alone', '--steps', '40'))
        sent = ip('-n', NAMES[1], '-s', '-j', 'link', 'show', 'cable').stdout
        self.assertGreater(json.loads(sent)[0]['stats64']['tx']['bytes'], 40 * 13610 * 4 / 2)

    def test_lost_host(self):
        process = self.start_and_wait()
        for pid in ip('netns', 'pids', NAMES[1]).stdout.split():
            os.kill(int(pid), signal.SIGKILL)
        self.check_ended(process)

    def test_pulled_cable(self):
        process = self.start_and_wait()
        ip('-n', NAMES[1], 'link', 'set', 'cable', 'down')
        self.check_ended(process)


if __name__ == '__main__':
    program.main()
