"""Runs that must end with the same parameters, bit for bit, and runs that must not."""
import json
import re
import signal
import subprocess
from pathlib import Path

import program
from program import PROGRAM, ProgramTest

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


class SameBits(ProgramTest):
    """An epoch is 22 batches; the last one has 28 samples of 48."""

    OPTIONS = ['net.yaml', '--data', 'synthetic:digits,count=1036', '--batch-size', '48',
               '--epochs', '1000', '--set', 'validation=off']

    def setUp(self):
        super().setUp()
        self.put('net.yaml', NET)

    def bits(self, run, *arguments, **environment):
        self.run_program('train', *self.OPTIONS, '--run', run, *arguments,
                         environment=environment)
        return self.sha256(run)

    def test_seeds(self):
        bits = [self.bits(f'run{i}', '--steps', '30', '--seed', str(seed))
                for i, seed in enumerate([1, 1, 2, 3])]
        self.assertEqual(bits[0], bits[1])
        self.assertEqual(len(set(bits)), 3)

    def test_threads(self):
        """However many cores the device may use; PoCL is told, others use what they have."""
        bits = {self.bits(f'run{count}', '--steps', '30', '--shards', '4',
                          POCL_MAX_PTHREAD_COUNT=str(count)) for count in (1, 2, 3)}
        self.assertEqual(len(bits), 1)

    def test_gone_on(self):
        whole = self.bits('whole', '--steps', '40')
        for stop in '10', '22', '23':  # within an epoch, at its end, behind it
            first = self.bits('parts' + stop, '--steps', stop)
            self.assertNotEqual(first, whole)
            self.assertEqual(self.bits('parts' + stop, '--steps', '40'), whole)
            self.assertEqual([e['step'] for e in self.events('parts' + stop, 'step')],
                             list(range(1, 41)))

    def test_another_build(self):
        """It may order sums in another way, and says so once: checkpoints are its own then."""
        def go_on(steps):
            return self.run_program('train', *self.OPTIONS, '--run', 'run', '--steps',
                                    steps).stderr

        self.assertNotIn('written by build', go_on('5') + go_on('10'))
        with open(self.path('run/env.json'), encoding='utf-8') as file:
            build = json.load(file)['build']
        self.assertRegex(build, '^[0-9a-f]{12}$')
        [path] = Path(self.path('run/checkpoints')).glob('*10.safetensors')
        data = path.read_bytes()
        self.assertEqual(data.count(build.encode()), 1)
        path.write_bytes(program.sum_up(data.replace(build.encode(), b'0123456789ab')))
        self.assertEqual(go_on('15').count(f'written by build 0123456789ab of this version, '
                                           f'this is {build}: weights may differ'), 1)
        self.assertNotIn('written by build', go_on('20'))

    def test_math(self):
        """Algorithms are the run's own: kept, named, and not changed on the way."""
        self.bits('strict', '--steps', '10', '--math', 'strict')
        with open(self.path('strict/env.json'), encoding='utf-8') as file:
            about = json.load(file)
        self.assertEqual(about['math'], 'strict')
        self.assertEqual(len(about['algorithms']), 2)  # the first layer has no data gradient
        for key, algorithm in about['algorithms'].items():
            self.assertRegex(key, r'^conv2d (forward|wgrad) .* on ')
            self.assertRegex(algorithm, '^direct ')
        self.refused(2, 'made with math strict, asked for is normal', 'train', *self.OPTIONS,
                     '--run', 'strict', '--steps', '20')
        self.assertEqual(self.bits('strict', '--steps', '20', '--math', 'strict'),
                         self.bits('whole', '--steps', '20', '--math', 'strict'))

    def test_killed(self):
        """Killed between two checkpoints; the steps behind the last one are done again."""
        common = ['--steps', '1000', '--checkpoint-every', '7']
        process = subprocess.Popen(
            [PROGRAM, 'train', *self.OPTIONS, '--run', 'killed', *common, '--log-format',
             'jsonl'], cwd=self.folder, env=self.environment(), stdout=subprocess.PIPE,
            text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        for line in process.stdout:
            if json.loads(line).get('step') == 31:
                process.send_signal(signal.SIGKILL)
                break
        self.assertEqual(process.wait(20), -signal.SIGKILL)
        self.assertEqual(self.events('killed', 'end'), [])
        done = self.run_program('train', *self.OPTIONS, '--run', 'killed', *common)
        step = int(re.search(r'going on after step (\d+)', done.stderr)[1])
        self.assertEqual(step % 7, 0)
        self.assertLess(step, 1000)
        self.assertEqual(self.sha256('killed'), self.bits('whole', *common))


if __name__ == '__main__':
    program.main()
