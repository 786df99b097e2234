"""Jobs of several ranks: ranks.py PROGRAM yes|no LAYER. yes: PROGRAM was built with MPI; LAYER:
the OpenCL layer that makes devices fail, or none."""
import glob
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import unittest

HAS_MPI, LAYER = sys.argv.pop(2) == 'yes', sys.argv.pop(2)

import program  # noqa: E402: takes PROGRAM
from program import PROGRAM, ProgramTest  # noqa: E402

MPIRUN = shutil.which('mpirun')
OPTIONS = ['--allow-run-as-root', '--oversubscribe']
# For ranks of one host: about other interfaces Open MPI 5 warns on some machines.
LOCAL = [*OPTIONS, '--mca', 'btl_tcp_if_include', 'lo']

# Everything that sums over samples or draws numbers: convolution, dense layer, dropout.
NET = """name: net
input: [28, 28, 1]
layers:
  - conv2d: {filters: 8, kernel: 3, activation: relu}
  - max_pool: {size: 2}
  - flatten
  - dropout: {rate: 0.25}
  - dense: {units: 10}
  - softmax
"""
TRAIN = [PROGRAM, 'train', 'net.yaml', '--data', 'synthetic:digits,count=1036', '--batch-size',
         '64', '--shards', '8', '--epochs', '1000', '--set', 'validation=off']


def unlike(*commands):
    """mpirun's arguments for ranks of which each runs a command of its own. mpirun has ':' for
    it, at which that of Open MPI 5.0.7 dies."""
    cases = ''.join(f'{rank}) exec {shlex.join(command)} ;; '
                    for rank, command in enumerate(commands))
    return ['-np', str(len(commands)), 'sh', '-c', f'case $OMPI_COMM_WORLD_RANK in {cases}esac']


class RanksTest(ProgramTest):
    """An epoch is 17 batches; the last one has 12 samples of 64, so that some shards are empty.
    """

    def setUp(self):
        super().setUp()
        self.put('net.yaml', NET)

    def environment(self, **changes):
        inherited = super().environment(**changes)
        return {k: v for k, v in inherited.items() if not k.startswith(('OMPI_', 'PMI'))}

    def start(self, *command):
        process = subprocess.Popen(command, cwd=self.folder, env=self.environment(), text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def mpirun(self, *arguments, status=0):
        process = self.start(MPIRUN, *LOCAL, *arguments)
        stdout, stderr = process.communicate(timeout=200)
        self.assertEqual(process.returncode, status, f'stdout: {stdout}\nstderr: {stderr}')
        return stdout, stderr

    def job(self, ranks, run, *arguments, **more):
        return self.mpirun('-np', str(ranks), *TRAIN, '--run', run, *arguments, **more)

    def alone(self, run, *arguments):
        self.run_program(*TRAIN[1:], '--run', run, *arguments)
        return self.sha256(run)


@unittest.skipUnless(HAS_MPI and MPIRUN, 'needs a build with MPI, and mpirun')
class SameBits(RanksTest):
    def setUp(self):
        super().setUp()
        net = NET.replace('  - max_pool', '  - batch_norm\n  - max_pool')
        self.put('net.yaml', net.replace('dense: {units: 10}',
                                         '{dense: {units: 10}, l2: 0.01}'))

    def test_adjusted_updates(self):
        """The norm is that of all ranks' sums; rank 0's validation sets the rate for all."""
        train = [*TRAIN[:-4], '--epochs', '3', '--set', 'clip_norm=0.1', '--set', 'ema=0.9',
                 '--set', 'schedule=kind=plateau factor=0.5 patience=1 min_delta=0.9']
        self.run_program(*train[1:], '--run', 'one')
        self.mpirun('-np', '2', *train, '--run', 'two')
        rates = [[e['lr'] for e in self.events(run, 'step')] for run in ('one', 'two')]
        self.assertEqual(len(set(rates[0])), 2)
        self.assertEqual(rates[0], rates[1])
        self.assertEqual(self.sha256('one'), self.sha256('two'))

    def test_callbacks(self):
        """Rank 0 ends the training of all, also with an earlier state; a stop is agreed on."""
        train = [*TRAIN[:-4], '--epochs', '9', '--lr', '0.02', '--callback', 'csv_log']
        ends = ['--callback', 'early_stopping patience=1 min_delta=0.2 restore_best=true']
        self.run_program(*train[1:], *ends, '--run', 'one')
        self.assertLess(len(self.events('one', 'step')), 9 * 17)
        for run, stops in ('two', []), ('three', ['--callback', 'stop_at minutes=1e-5']):
            self.mpirun('-np', '2', *train, *ends, *stops, '--run', run,
                        status=130 if stops else 0)
            if stops:
                self.mpirun('-np', '2', *train, *ends, '--run', run)
            self.assertEqual(self.sha256(run), self.sha256('one'))
            logs = []
            for name in 'one', run:
                with open(self.path(name + '/log.csv')) as file:
                    logs.append(file.read())
            self.assertEqual(*logs)

    def test_any_number_of_ranks(self):
        common = '--steps', '40', '--seed', '3', '--set', 'check_every=4'
        wanted = self.alone('alone', *common)
        for ranks in 1, 2, 3, 4:
            stdout, stderr = self.job(ranks, f'run{ranks}', *common)
            self.assertEqual(self.sha256(f'run{ranks}'), wanted)
            self.assertEqual(stdout.count('sha256'), 1)  # rank 0 speaks alone
            self.assertNotIn('rank ', stderr)
            with open(self.path(f'run{ranks}/env.json')) as file:
                self.assertEqual(json.load(file)['ranks'], ranks)
        steps = [(e['step'], e['loss']) for e in self.events('alone', 'step')]
        self.assertEqual(steps, [(e['step'], e['loss']) for e in self.events('run3', 'step')])

    def test_images_as_the_weights_want_them(self):
        """Rank 0 alone reads the weights, and tells all how images are normalized."""
        self.alone('base', '--steps', '2', '--pipeline', 'normalize -1..1')
        common = '--steps', '3', '--init-from', 'base'
        wanted = self.alone('typed', *common, '--pipeline', 'normalize -1..1')
        said = self.job(2, 'taken', *common)[1]
        self.assertEqual(said.count("images are normalized as in 'base'"), 1)
        self.assertEqual(self.sha256('taken'), wanted)

    def test_devices_of_ranks(self):
        """Rank 0 has two devices, rank 1 one."""
        common = '--run', 'a', '--steps', '20', '--device'
        self.mpirun(*unlike([*TRAIN, *common, '0*2'], [*TRAIN, *common, '0']))
        self.assertEqual(self.sha256('a'), self.alone('b', '--steps', '20'))
        for event in self.events('a', 'step'):
            found = event['devices']
            self.assertEqual([device['rank'] for device in found], [0, 0, 1])
            self.assertEqual(sum(device['samples'] for device in found), event['samples'])
            self.assertAlmostEqual(sum(device['share'] for device in found), 1)
            self.assertTrue(all(d['compute_ms'] > 0 for d in found if d['share']))

    def test_groups(self):
        """A model divided among two devices of each rank, which has two such groups or one."""
        common = '--run', 'a', '--steps', '6', '--place', 'dense_1=1', '--device'
        self.mpirun(*unlike([*TRAIN, *common, '0*4'], [*TRAIN, *common, '0*2']))
        self.assertEqual(self.sha256('a'), self.alone('b', '--steps', '6'))

    def test_a_slow_rank(self):
        """It gets fewer shards of the next steps, which changes no bit."""
        common = '--run', 'a', '--steps', '60', '--set', 'check_every=10'
        self.mpirun(*unlike([*TRAIN, *common], ['env', 'LOCKSTEP_SLOW=0:8', *TRAIN, *common]))
        self.assertEqual(self.sha256('a'), self.alone('b', '--steps', '60'))
        steps = self.events('a', 'step')
        self.assertEqual([d['share'] for d in steps[0]['devices']], [0.5, 0.5])
        self.assertGreater(steps[-1]['devices'][0]['share'], 0.5)
        for event in steps:
            self.assertEqual(sum(d['samples'] for d in event['devices']), event['samples'])
            self.assertAlmostEqual(sum(d['share'] for d in event['devices']), 1)

    def test_weighted_ranks(self):
        """A weight for each device of all ranks: one of rank 1's has none, rank 2 has none."""
        common = '--run', 'a', '--steps', '20', '--split', '3:0:1:0'
        alone = [*TRAIN, *common]
        self.mpirun(*unlike(alone, [*alone, '--device', '0*2'], alone))
        self.assertEqual(self.sha256('a'), self.alone('b', '--steps', '20'))
        for event in self.events('a', 'step'):
            self.assertEqual([d['share'] for d in event['devices']], [0.75, 0, 0.25, 0])

    def test_gone_on_at_another_number(self):
        wanted = self.alone('whole', '--steps', '40')
        self.job(2, 'parts', '--steps', '10')
        self.job(3, 'parts', '--steps', '23')
        self.alone('parts', '--steps', '30')
        stdout, stderr = self.job(4, 'parts', '--steps', '40')
        self.assertIn('going on after step 30', stderr)
        self.assertIn(wanted, stdout)
        self.assertEqual([e['step'] for e in self.events('parts', 'step')], list(range(1, 41)))

    def test_features_of_a_frozen_part(self):
        """Each rank keeps those of all samples; a file is made by the first one alone."""
        self.put('net.yaml', NET.replace('conv2d:', 'batch_norm\n  - conv2d:'))
        frozen = ['--steps', '40', '--train-last', '1']
        wanted = self.alone('whole', *frozen)
        for where in 'memory', 'f.feats', 'f.feats':
            stdout, stderr = self.job(2, f'{where}-run', *frozen, '--fresh', '--cache-features',
                                      where)
            self.assertIn(wanted, stdout, where)
        self.assertEqual(stderr.count("features are there, in 'f.feats'"), 2, stderr)

    def test_all_reduce_of_mpi(self):
        """Other bits perhaps, but the same sums."""
        self.alone('alone', '--steps', '20')
        self.job(3, 'run', '--steps', '20', '--set', 'all_reduce=mpi')
        for a, b in zip(self.events('alone', 'step'), self.events('run', 'step'), strict=True):
            self.assertAlmostEqual(a['loss'], b['loss'], places=4)

    def test_validation(self):
        """Rank 0 validates while the others wait."""
        self.job(2, 'a', '--steps', '20', '--set', 'validation=synthetic:digits,count=300')
        self.run_program(*TRAIN[1:], '--run', 'b', '--steps', '20', '--set',
                         'validation=synthetic:digits,count=300')
        found = [[(e['step'], e['loss'], e['accuracy']) for e in self.events(run, 'eval')]
                 for run in 'ab']
        self.assertEqual(len(found[0]), 2)
        self.assertEqual(found[0], found[1])

    def test_batch_per_device(self):
        self.mpirun('-np', '2', PROGRAM, 'train', 'tiny.yaml', '--data', program.DATA,
                    '--batch-per-device', '64', '--run', 'run', '--epochs', '1')
        self.assertEqual(self.events('run', 'end')[0]['steps'], 4)

    def test_log_of_one(self):
        stdout, _ = self.job(2, 'run', '--steps', '5', '--log-format', 'jsonl')
        with open(self.path('run/metrics.jsonl')) as file:
            self.assertEqual(stdout, file.read())


@unittest.skipUnless(HAS_MPI and MPIRUN, 'needs a build with MPI, and mpirun')
class Refusals(RanksTest):
    def refused_job(self, status, said, *arguments):
        stdout, stderr = self.mpirun(*arguments, status=status)
        self.assertEqual(stdout, '')
        lines = [line for line in stderr.splitlines() if line.startswith('lockstep: ')]
        self.assertEqual(len(lines), 1, stderr)
        self.assertIn(said, lines[0])
        self.assertFalse(glob.glob(self.path('run/checkpoints/*')))

    def pair(self, *second):
        """The arguments of two ranks of which the second has others."""
        first = [*TRAIN, '--run', 'run']
        return unlike(first, [*first, *second])

    def test_other_settings(self):
        self.refused_job(2, "settings differ between ranks: rank 0 has '  seed: 0', rank 1 has "
                            "'  seed: 5'", *self.pair('--seed', '5'))

    def test_other_split(self):
        self.refused_job(2, 'settings differ between ranks: rank 0 has \'  split: "measured"\''
                            ', rank 1 has \'  split: "equal"\'', *self.pair('--split', 'equal'))

    def test_other_data(self):
        self.refused_job(2, "training data differ between ranks: rank 0 has '1036 samples",
                         *self.pair('--data', 'synthetic:digits,count=1000'))

    def test_other_model(self):
        self.put('other.yaml', NET.replace('rate: 0.25', 'rate: 0.5'))
        second = ['other.yaml' if a == 'net.yaml' else a for a in TRAIN]
        self.refused_job(2, 'models differ between ranks', *unlike(
            [*TRAIN, '--run', 'run'], [*second, '--run', 'run']))

    def test_other_groups(self):
        common = [*TRAIN, '--run', 'run', '--place', 'auto', '--device']
        self.refused_job(2, "groups differ between ranks: rank 0 has '2 devices for the parts",
                         *unlike([*common, '0*2'], [*common, '0']))

    def test_what_one_rank_lacks(self):
        self.refused_job(3, "rank 1: ", *self.pair('--data', 'idx:nowhere'))
        self.refused_job(4, "rank 1: ", *self.pair('--device', '77'))

    def test_more_ranks_than_shards(self):
        self.refused_job(2, '3 devices of 3 ranks for a batch of 64 in 2 shards: at most '
                            'one device a shard', '-np', '3', *TRAIN, '--run',
                         'run', '--shards', '2')

    def test_another_run(self):
        """What rank 0 finds in the run directory reaches all."""
        self.alone('run', '--steps', '2')
        _, stderr = self.job(2, 'run', '--steps', '4', '--seed', '9', status=2)
        self.assertEqual(stderr.count('has seed 0, asked for is 9'), 1)


def rank_of(pid):
    """None: no rank of a job."""
    try:
        with open(f'/proc/{pid}/environ', 'rb') as file:
            found = re.search(rb'OMPI_COMM_WORLD_RANK=(\d+)', file.read())
    except OSError:
        return None
    return int(found[1]) if found else None


@unittest.skipUnless(HAS_MPI and MPIRUN, 'needs a build with MPI, and mpirun')
class Disturbed(RanksTest):
    COMMON = ['--steps', '1500', '--checkpoint-every', '7']

    def wait_for_step(self, process, step):
        for line in process.stdout:
            if json.loads(line).get('step') == step:
                return
        self.fail(process.stderr.read())

    def start_job(self, ranks):
        process = self.start(MPIRUN, *LOCAL, '-np', str(ranks), *TRAIN, '--run', 'run',
                             *self.COMMON, '--log-format', 'jsonl')
        self.wait_for_step(process, 31)
        with open(f'/proc/{process.pid}/task/{process.pid}/children') as file:
            pids = {rank_of(pid): int(pid) for pid in file.read().split()}
        return process, pids

    def check_resumed(self, ranks):
        _, stderr = self.job(ranks, 'run', *self.COMMON)
        step = int(re.search(r'going on after step (\d+)', stderr)[1])
        self.assertLess(step, 1500)
        self.assertEqual(self.sha256('run'), self.alone('whole', *self.COMMON))
        return step

    def end(self, process):
        """What it says until its end: within 2 s, more where disks and cores are busy."""
        start = time.monotonic()
        process.stdout.read()
        process.wait(60)
        self.assertLess(time.monotonic() - start, 60)
        return process.stderr.read()

    def test_killed_rank(self):
        for rank, resumed in (1, 3), (0, 1):
            process, pids = self.start_job(2)
            os.kill(pids[rank], signal.SIGKILL)
            said = self.end(process)
            self.assertNotEqual(process.returncode, 0)
            self.assertRegex(said, rf'(?s)rank {rank} .*signal 9')
            self.assertEqual(self.check_resumed(resumed) % 7, 0)
            shutil.rmtree(self.path('run'))

    def check_stopped(self, process):
        said = self.end(process)
        self.assertEqual(process.returncode, 130, said)
        self.assertEqual(said.count('interrupted after step'), 1)
        step = int(re.search(r'interrupted after step (\d+)', said)[1])
        self.assertEqual(self.check_resumed(4), step)

    def test_stopped_job(self):
        process, _ = self.start_job(3)
        process.send_signal(signal.SIGUSR2)
        self.check_stopped(process)

    def test_stopped_rank(self):
        process, pids = self.start_job(2)
        os.kill(pids[1], signal.SIGINT)
        self.check_stopped(process)

    def faulty(self, fault, *arguments):
        """A job whose rank 1 has a device that fails."""
        command = [*TRAIN, '--run', 'run', *arguments]
        return self.start(MPIRUN, *LOCAL, *unlike(command, [
            'env', f'OPENCL_LAYERS={LAYER}', f'LOCKSTEP_FAULT={fault}', *command]))

    @unittest.skipIf(LAYER == 'none', 'needs CL/cl_layer.h')
    def test_no_device_left(self):
        """Rank 0 saves what it has."""
        process = self.faulty('call=clEnqueueNDRangeKernel,device=0,nth=900,times=0,kind=error,'
                              'code=-36', *self.COMMON)
        said = self.end(process)
        self.assertEqual(process.returncode, 4, said)
        self.assertIn('rank 1: no device is left', said)
        saved = self.events('run', 'checkpoint')[-1]['step']
        self.assertGreater(saved, 3)
        self.assertEqual(self.check_resumed(2), saved)

    @unittest.skipIf(LAYER == 'none', 'needs CL/cl_layer.h')
    def test_lost_device_of_a_rank(self):
        """Its shards are shared anew among all devices that are left, of every rank."""
        process = self.faulty('call=clEnqueueNDRangeKernel,device=1,nth=200,times=0,kind=error,'
                              'code=-36', '--steps', '40', '--split', 'equal', '--device',
                              '0*2')
        said = self.end(process)
        self.assertEqual(process.returncode, 0, said)
        self.assertIn('1 device is left', said)
        self.assertEqual(self.sha256('run'), self.alone('whole', '--steps', '40'))
        shares = [d['share'] if d else 0 for d in self.events('run', 'step')[-1]['devices']]
        self.assertEqual(shares, [0.375, 0.375, 0.25, 0])

    @unittest.skipIf(LAYER == 'none', 'needs CL/cl_layer.h')
    def test_other_parameters(self):
        """An update makes something else of a rank's weights than of others'; it gets rank 0's,
        and the run goes on."""
        process = self.faulty('call=clEnqueueNDRangeKernel,kernel=*adam*,arg=0,nth=3,'
                              'kind=corrupt,bit=20', '--steps', '12', '--set', 'check_every=5')
        said = self.end(process)
        self.assertEqual(process.returncode, 0, said)
        self.assertEqual(len(self.events('run', 'step')), 12)
        self.assertIn("the ranks' parameters differ after step 5", said)


if __name__ == '__main__':
    program.main()
