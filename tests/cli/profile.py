"""Traces of a training: their form, what is in them and when, and what they leave alone."""
import json
import os
import resource
import signal
import subprocess
from collections import Counter, defaultdict

import program
from program import DATA, PROGRAM, ProgramTest

NET = """name: net
input: [28, 28, 1]
layers:
  - conv2d: {filters: 8, kernel: 3, activation: relu}
  - max_pool: {size: 2}
  - flatten
  - dense: {units: 10}
  - softmax
"""
# Kernels that every step runs.
KERNELS = {'convert_images', 'convert_integers', 'logits_forward', 'shards_metrics',
           'adam_update'}
HOST = {'read batch', 'enqueue', 'wait'}


def no_number(word):
    raise ValueError(f'JSON has no {word}')


class Profile(ProgramTest):
    def setUp(self):
        super().setUp()
        self.put('net.yaml', NET)

    def start(self, *arguments, **more):
        return self.run_program('train', 'net.yaml', '--data', DATA, '--batch-size', '32',
                                *arguments, **more)

    def events(self, name='trace.json'):
        """(complete events, names of processes and threads) of a file."""
        with open(self.path(name), encoding='ascii') as file:
            trace = json.load(file, parse_constant=no_number)
        self.assertEqual(trace['otherData'], {'dropped_commands': 0})
        names = {(e['pid'], e['tid'] if e['name'] == 'thread_name' else None):
                 e['args']['name'] for e in trace['traceEvents'] if e['ph'] == 'M'}
        done = [e for e in trace['traceEvents'] if e['ph'] == 'X']
        self.assertEqual(len(done) + len(names), len(trace['traceEvents']))
        for e in done:
            self.assertIn((e['pid'], None), names)
            self.assertIn((e['pid'], e['tid']), names)
        return done, names

    def of_kind(self, done, *kinds):
        """Step -> its events of these kinds."""
        steps = defaultdict(list)
        for e in done:
            if e['cat'] in kinds:
                steps[e['args']['step']].append(e)
        return steps

    def assert_in_turn(self, done):
        """On no queue and no host thread are two things done at a time."""
        threads = defaultdict(list)
        for e in done:
            threads[e['tid']].append((round(1000 * e['ts']), round(1000 * e['dur'])))
        for spans in threads.values():
            spans.sort()
            for (begin, length), (following, _) in zip(spans, spans[1:]):
                self.assertLessEqual(begin + length, following)

    def test_every_step(self):
        done = self.start('--steps', '9', '--profile', 'trace.json')
        self.assertIn("events in 'trace.json'", done.stderr)
        done, names = self.events()
        self.assert_in_turn(done)
        self.assertEqual(names[1, None], 'host')
        self.assertRegex(names[2, None], '^device 0: .')
        self.assertIn('compute queue', names.values())
        kernels = self.of_kind(done, 'kernel')
        self.assertEqual(set(kernels), set(range(2, 10)))
        alike = [Counter(e['name'] for e in kernels[step]) for step in range(2, 9)]
        self.assertLessEqual(KERNELS, set(alike[0]))
        self.assertTrue(any(name.startswith('conv2d_') for name in alike[0]), alike[0])
        for count in alike:
            self.assertEqual(count, alike[0])
        # The last one has validation behind it: forward passes, no update.
        self.assertEqual(Counter(e['name'] for e in kernels[9])['adam_update'], 1)
        self.assertIn('softmax_forward', {e['name'] for e in kernels[9]})
        host = self.of_kind(done, 'host')
        for step in range(2, 9):
            self.assertEqual({e['name'] for e in host[step]}, HOST)
        self.assertEqual({e['name'] for e in host[9]}, HOST | {'evaluate'})
        for step in range(2, 10):
            self.assert_within_step(step, kernels[step], host[step])

    def assert_within_step(self, step, kernels, host):
        """The device works on a step between its enqueueing and the end of the wait for it."""
        span = {e['name']: e for e in host}
        update = next(e for e in kernels if e['name'] == 'adam_update')
        slack = 1000  # microseconds between the two clocks
        self.assertGreaterEqual(kernels[0]['ts'], span['enqueue']['ts'] - slack)
        self.assertLessEqual(update['ts'] + update['dur'],
                             span['wait']['ts'] + span['wait']['dur'] + slack)
        for e in kernels:
            self.assertGreaterEqual(e['args']['waited_us'], 0)

    def test_transfers(self):
        self.start('--steps', '4', '--profile', 'trace.json', '--val', 'off')
        done, _ = self.events()
        transfers = self.of_kind(done, 'transfer')
        self.assertEqual(set(transfers), {2, 3, 4})
        for found in transfers.values():
            sizes = {e['name']: e['args']['bytes'] for e in found}
            self.assertEqual(sizes['write 25.1 kB'], 32 * 28 * 28)
            self.assertEqual(sizes['write 128 B'], 32 * 4)
            self.assertTrue(any(name.startswith('read ') for name in sizes))
            for e in found:
                if e['dur'] > 0:
                    self.assertAlmostEqual(e['args']['GB/s'],
                                           e['args']['bytes'] / e['dur'] / 1000, delta=0.0006)

    def test_uploads(self):
        """A batch travels while the device computes on the one before."""
        self.put('net.yaml', NET.replace('filters: 8', 'filters: 96'))
        self.start('--steps', '12', '--profile', 'trace.json', '--val', 'off', '--batch-size',
                   '512', '--data', 'synthetic:digits,count=8192')
        done, names = self.events()
        begins, ends = {}, {}
        for e in done:
            step = e['args']['step']
            if names[e['pid'], e['tid']] == 'upload queue':
                self.assertRegex(e['name'], '^write ')
                begins.setdefault(step, e['ts'])
            elif e['name'] == 'adam_update':
                ends[step] = e['ts'] + e['dur']
        self.assertEqual(set(begins), set(range(2, 13)))
        beside = [step for step in range(3, 13) if begins[step] < ends[step - 1]]
        self.assertGreater(len(beside), 5, (begins, ends))

    def test_same_bits(self):
        self.start('--steps', '20', '--run', 'plain')
        self.start('--steps', '20', '--run', 'traced', '--profile', 'traced/trace.json',
                   '--set', 'profile_steps=0')
        self.assertEqual(self.sha256('plain'), self.sha256('traced'))
        self.assertEqual(*[[(e['loss'], e['accuracy']) for e in self.losses(run)]
                           for run in ('plain', 'traced')])
        kernels = self.of_kind(self.events('traced/trace.json')[0], 'kernel')
        self.assertEqual(set(kernels), set(range(2, 21)))
        with open(self.path('traced/config.yaml')) as file:
            self.assertNotIn('trace.json', file.read())

    def losses(self, run):
        return super().events(run, 'step')

    def sha256(self, run):
        return super().events(run, 'end')[-1]['parameters_sha256']

    def begin(self, *arguments):
        """Starts a training that is traced, and lets it run."""
        process = subprocess.Popen(
            [PROGRAM, 'train', 'net.yaml', '--data', DATA, '--batch-size', '32', '--epochs',
             '100000', '--profile', 'trace.json', '--log-format', 'jsonl', *arguments],
            cwd=self.folder, env=self.environment(), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_some_steps(self):
        """The file is there as soon as they are over; evaluation inside is in it."""
        self.put('trace.json', 'of an earlier day')
        process = self.begin('--set', 'profile_steps=20')
        for line in process.stdout:
            if json.loads(line).get('step') == 40:
                break
        done, _ = self.events()
        self.assert_in_turn(done)
        self.assertEqual(set(self.of_kind(done, 'kernel')), set(range(2, 22)))
        evaluated = [e['args']['step'] for e in done if e['name'] == 'evaluate']
        self.assertEqual(evaluated, [16])  # an epoch has 16 steps
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        self.assertEqual(process.wait(20), 130)
        self.assertEqual(os.listdir(self.folder).count('trace.json'), 1)
        self.assertFalse([n for n in os.listdir(self.folder) if n.endswith('.tmp')])

    def test_interrupted(self):
        process = self.begin('--set', 'profile_steps=0', '--run', 'run')
        last = 0
        for line in process.stdout:
            event = json.loads(line)
            if event['event'] == 'step':
                last = event['step']
            if last == 30:
                process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(20), 130)
        done, _ = self.events()
        self.assertEqual(set(self.of_kind(done, 'kernel')), set(range(2, last + 1)))
        self.assertIn('checkpoint', {e['name'] for e in done if e['cat'] == 'host'})
        self.start('--run', 'run', '--steps', str(last + 4), '--epochs', '100000', '--profile',
                   'trace.json')  # goes on; its own first step is left out
        done, _ = self.events()
        self.assertEqual(set(self.of_kind(done, 'kernel')), set(range(last + 2, last + 5)))

    def test_full_disk(self):
        """It ends no training, but the program says that the file is not there."""
        self.put('trace.json', 'of an earlier day')
        process = self.begin('--set', 'profile_steps=1000', '--steps', '1500', '--val', 'off')
        process.stdout.readline()
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (8192, 8192))
        steps = [json.loads(line)['event'] for line in process.stdout].count('step')
        self.assertEqual(process.wait(20), 3)
        self.assertEqual(steps, 1500)
        said = process.stderr.read()
        self.assertIn("warning: profile: cannot write 'trace.json': File too large", said)
        self.assertIn("'trace.json' could not be written", said)
        with open(self.path('trace.json')) as file:
            self.assertEqual(file.read(), 'of an earlier day')
        self.assertFalse([n for n in os.listdir(self.folder) if n.endswith('.tmp')])

    def test_wrong_places(self):
        """Said before there is a run directory or a step; the earlier file stays."""
        os.mkdir(self.path('folder'))
        self.put('trace.json', 'of an earlier day')
        for path, said in ('nix/trace.json', 'No such file'), ('folder', 'it is a folder'), (
                '/dev/null', 'a device'):
            done = self.refused(3, ['profile', f"'{path}'", said], 'train', 'net.yaml',
                                '--data', DATA, '--run', 'run', '--profile', path)
            self.assertNotIn('samples', done.stderr)
            self.assertFalse(os.path.exists(self.path('run')))
        self.refused(2, "'--profile' needs a value", 'train', 'net.yaml', '--profile')
        self.refused(3, 'nowhere', 'train', 'net.yaml', '--data', 'idx:nowhere', '--profile',
                     'trace.json')
        done = self.start('--steps', '1', '--profile', 'trace.json')
        self.assertIn('before its second step', done.stderr)
        with open(self.path('trace.json')) as file:
            self.assertEqual(file.read(), 'of an earlier day')
        self.assertEqual(sorted(os.listdir(self.folder)),
                         ['folder', 'net.yaml', 'tiny.yaml', 'trace.json'])


if __name__ == '__main__':
    program.main()
