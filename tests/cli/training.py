"""Training, going on after an interruption, evaluating and predicting with the program."""
import ctypes
import fcntl
import json
import os
import resource
import signal
import subprocess
import time

import program
from program import DATA, MODEL, PROGRAM, ProgramTest, png


class Run(ProgramTest):
    def test_run_directory(self):
        done = self.train('--run', 'run', '--epochs', '2', '--lr', '0.01')
        steps = self.events('run', 'step')
        self.assertEqual([e['step'] for e in steps], list(range(1, 33)))
        self.assertEqual([e['epoch'] for e in steps], [0] * 16 + [1] * 16)
        for event in steps:
            self.assertEqual(set(event), {'event', 'step', 'epoch', 'loss', 'accuracy',
                                          'samples', 'samples_per_s', 'step_ms', 'lr', 'tries',
                                          'devices'})
            self.assertEqual(set(event['devices'][0]),
                             {'rank', 'samples_per_s', 'share', 'samples', 'compute_ms',
                              'transfer_ms', 'reduce_ms', 'wait_ms', 'input_ms'})
            self.assertEqual(event['lr'], 0.01)
        self.assertLess(steps[-1]['loss'], steps[0]['loss'])
        self.assertEqual([set(e) for e in self.events('run', 'eval')],
                         [{'event', 'step', 'loss', 'accuracy'}] * 2)
        for event in self.events('run', 'checkpoint'):
            self.assertEqual(set(event), {'event', 'step', 'file'})
        end = self.events('run')[-1]
        self.assertEqual(set(end), {'event', 'steps', 'seconds', 'parameters_sha256'})
        self.assertEqual(end['steps'], 32)
        self.assertRegex(end['parameters_sha256'], '^[0-9a-f]{64}$')
        self.assertIn(end['parameters_sha256'], done.stdout)
        with open(self.path('run/env.json')) as file:
            self.assertIn('devices', json.load(file))
        checkpoints = os.listdir(self.path('run/checkpoints'))
        self.assertTrue(checkpoints)
        for name in checkpoints:
            self.assertTrue(name.endswith('.safetensors'), name)

    def test_jsonl_is_the_metrics(self):
        done = self.train('--run', 'run', '--steps', '5', '--log-format', 'jsonl')
        with open(self.path('run/metrics.jsonl')) as file:
            self.assertEqual(done.stdout, file.read())
        self.assertEqual(done.stderr, '')

    def test_same_seed_same_bits(self):
        for run, seed in ('a', '7'), ('b', '7'), ('c', '8'):
            self.train('--run', run, '--steps', '5', '--seed', seed)
        self.assertEqual(self.sha256('a'), self.sha256('b'))
        self.assertNotEqual(self.sha256('a'), self.sha256('c'))

    def test_precedence(self):
        """The command line goes before the environment, that before the run file."""
        self.put('run.yaml', f'model: tiny.yaml\ndata: "{DATA}"\n'
                             'train:\n  batch_size: 8\n  steps: 2\n  lr: 0.5\n  seed: 3\n')
        self.run_program('train', 'run.yaml', '--run', 'run', '--set', 'batch_size=16',
                         environment={'LOCKSTEP_BATCH_SIZE': '4', 'LOCKSTEP_LR': '0.25',
                                      'LOCKSTEP_DATA': self.folder})
        with open(self.path('run/config.yaml')) as file:
            config = file.read()
        for line in 'batch_size: 16', 'lr: 0.25', 'seed: 3':
            self.assertIn(line, config)
        self.assertIn(DATA, config)

    def test_config_is_a_run_file(self):
        self.train('--run', 'a', '--steps', '3', '--seed', '5')
        self.run_program('train', 'a/config.yaml', '--run', 'b')
        self.assertEqual(self.sha256('a'), self.sha256('b'))

    def test_run_file_in_flow_style(self):
        self.put('run.yaml', f'{{model: tiny.yaml, data: "{DATA}", train: {{batch_size: 32, '
                             'steps: 3, schedule: {cosine: {steps: 3}}}}\n')
        self.run_program('train', 'run.yaml', '--run', 'a')
        with open(self.path('a/config.yaml')) as file:
            self.assertIn('schedule: "kind=cosine steps=3"', file.read())
        self.train('--run', 'b', '--steps', '3', '--set', 'schedule=kind=cosine steps=3')
        self.assertEqual(self.sha256('a'), self.sha256('b'))

    def test_batch_per_device(self):
        self.run_program('train', 'tiny.yaml', '--data', DATA, '--batch-per-device', '128',
                         '--run', 'run', '--epochs', '1')
        self.assertEqual(self.events('run', 'end')[0]['steps'], 4)

    def test_another_model(self):
        self.train('--run', 'run', '--steps', '2')
        self.put('other.yaml', MODEL.replace('flatten', 'flatten\n  - dense: {units: 4}'))
        done = self.refused(2, 'run', 'train', 'other.yaml', '--data', DATA, '--batch-size',
                            '32', '--run', 'run', '--steps', '2')
        self.assertIn('model', done.stderr)
        self.run_program('train', 'other.yaml', '--data', DATA, '--batch-size', '32', '--run',
                         'run', '--steps', '2', '--fresh')

    def test_other_settings(self):
        """What would give other bits is refused, with both values; nothing is changed."""
        self.train('--run', 'run', '--steps', '2', '--checkpoint-every', '2')
        before = self.snapshot('run')
        start = 'train', 'tiny.yaml', '--run', 'run', '--steps', '4', '--data'
        for said, *changes in (
                (['batch size 32', '16'], DATA, '--batch-size', '16'),
                (['seed 0', '9'], DATA, '--batch-size', '32', '--seed', '9'),
                (['shards 1', '2'], DATA, '--batch-size', '32', '--shards', '2'),
                (["'adam'", "'sgd'"], DATA, '--batch-size', '32', '--optimizer', 'sgd'),
                (['other data', 'count=96'], 'synthetic:digits,count=96', '--batch-size',
                 '32')):
            done = self.refused(2, said, *start, *changes)
            self.assertIn('--fresh', done.stderr)
            self.assertEqual(self.snapshot('run'), before)
        done = self.train('--run', 'run', '--steps', '4', environment={'LOCKSTEP_VECTOR': '4'})
        self.assertIn('vectors of', done.stderr)

    def snapshot(self, run):
        """Names and bytes of all files of a run."""
        found = {}
        for folder, _, names in os.walk(self.path(run)):
            for name in names:
                with open(os.path.join(folder, name), 'rb') as file:
                    found[name] = file.read()
        return found

    def test_fresh_keeps_what_others_made(self):
        self.train('--run', 'run', '--steps', '2')
        self.put('run/checkpoints/best.safetensors', 'mine')
        self.put('run/checkpoints/step-00000001.safetensors.1-1.tmp', 'left over')
        self.train('--run', 'run', '--steps', '3', '--fresh')
        self.assertEqual(sorted(os.listdir(self.path('run/checkpoints'))),
                         ['best.safetensors', 'step-00000003.safetensors'])

    def test_damaged_checkpoints_are_set_aside(self):
        self.train('--run', 'run', '--steps', '4', '--checkpoint-every', '2')
        self.put('run/checkpoints/step-00000004.safetensors', 'torn')
        done = self.train('--run', 'run', '--steps', '6', '--checkpoint-every', '2')
        self.assertIn('passed over', done.stderr)
        self.assertIn('after step 2', done.stderr)
        names = os.listdir(self.path('run/checkpoints'))
        self.assertIn('step-00000004.safetensors.damaged', names)
        self.assertIn('step-00000006.safetensors', names)

    def test_bad_data_leaves_no_directory(self):
        self.refused(3, 'nowhere', 'train', 'tiny.yaml', '--data', 'idx:nowhere', '--run',
                     'run')
        self.assertFalse(os.path.exists(self.path('run')))

    def test_more_classes_than_names(self):
        self.put('wide.yaml', MODEL.replace('units: 10', 'units: 40'))
        self.run_program('train', 'wide.yaml', '--data', DATA, '--batch-size', '32', '--run',
                         'run', '--steps', '2')
        done = self.run_program('eval', 'run', '--json')
        self.assertEqual(len(json.loads(done.stdout)['confusion']), 40)
        self.run_program('eval', 'run')

    def test_a_batch_that_does_not_fit(self):
        """That is said once, in bytes, and is no failure of a device."""
        self.put('wide.yaml', MODEL.replace('- flatten', '- flatten\n  - dense: {units: 4000}'))
        for devices, shards in ('0', '1'), ('0/2', '2'):  # more shards could be taken in turns
            done = self.refused(4, 'would fit', 'train', 'wide.yaml', '--data', DATA,
                                '--batch-size', '16777216', '--shards', shards, '--run', 'run',
                                '--device', devices)
            self.assertRegex(done.stderr, r'batch size 16777216( in 2 micro-batches)? needs '
                             r'[\d.]+ [GTP]B of device memory, .* has [\d.]+ [MG]B free and '
                             r'.* a batch size of [1-9]\d* would fit\n')
            self.assertEqual(done.stderr.count('would fit'), 1, done.stderr)
            self.assertNotIn('device 0 ', done.stderr)

    def test_finished_run(self):
        """Nothing is left to train: the same parameters, and no figures of training."""
        self.train('--run', 'run', '--steps', '4')
        done = self.train('--run', 'run', '--steps', '4')
        self.assertIn('all 4 steps are done, nothing is left to train', done.stderr)
        self.assertRegex(done.stderr, r'\nstep 4/4  validation loss ')
        self.assertEqual(len(self.events('run', 'end')), 1)
        self.assertEqual(len(self.events('run', 'eval')), 1)

    def test_data_of_another_shape(self):
        self.put('wide.yaml', MODEL.replace('28, 28, 1', '32, 32, 3'))
        self.refused(3, ['32', '28'], 'train', 'wide.yaml', '--data', DATA)


class Interrupt(ProgramTest):
    STEPS = '3000'

    def start(self, *arguments):
        process = subprocess.Popen(
            [PROGRAM, 'train', *arguments, '--log-format', 'jsonl'], cwd=self.folder,
            env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        for line in process.stdout:
            event = json.loads(line)
            if event['event'] == 'step':
                return process
        self.fail(process.stderr.read())

    def test_once_then_the_same_bits(self):
        common = ['--steps', self.STEPS, '--epochs', '1000', '--set', 'validation=off']
        self.train('--run', 'whole', *common)
        process = self.start('tiny.yaml', '--data', DATA, '--batch-size', '32', '--run', 'cut',
                             *common)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(20), 130)
        said = process.stderr.read()
        self.assertIn('interrupted after step', said)
        self.assertIn("'cut'", said)
        saved = self.events('cut', 'checkpoint')[-1]
        self.assertLess(saved['step'], int(self.STEPS))
        self.assertEqual(self.events('cut', 'end'), [])
        done = self.train('--run', 'cut', *common)
        self.assertIn(f"going on after step {saved['step']}", done.stderr)
        self.assertEqual(self.sha256('cut'), self.sha256('whole'))
        self.assertEqual([e['step'] for e in self.events('cut', 'step')],
                         list(range(1, int(self.STEPS) + 1)))

    def test_reader_gone(self):
        """The log's reader stops reading; the training goes on and says so at its end."""
        process = self.start('tiny.yaml', '--data', DATA, '--batch-size', '32', '--run', 'run',
                             '--steps', self.STEPS, '--epochs', '1000')
        process.stdout.close()
        self.assertEqual(process.wait(40), 3)
        self.assertIn('stdout', process.stderr.read())
        self.assertEqual(self.events('run', 'end')[0]['steps'], int(self.STEPS))

    def test_two_at_once_are_one(self):
        """Both signals are there before the program can act on either."""
        process = self.start('tiny.yaml', '--data', DATA, '--batch-size', '32', '--run', 'run',
                             '--steps', self.STEPS, '--epochs', '1000')
        for number in signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT:
            process.send_signal(number)
        self.assertEqual(process.wait(20), 130)
        said = process.stderr.read()
        self.assertIn('interrupted after step', said)
        self.assertNotIn('stopped at once', said)

    def test_signal_to_another_thread(self):
        """Whichever thread is given the signal, the training stops and saves."""
        process = self.start('tiny.yaml', '--data', DATA, '--batch-size', '32', '--run', 'run',
                             '--steps', self.STEPS, '--epochs', '1000')
        threads = [int(t) for t in os.listdir(f'/proc/{process.pid}/task')]
        others = [t for t in threads if t != process.pid]
        if not others:
            self.skipTest('this device works in the one thread')
        self.assertEqual(ctypes.CDLL(None).tgkill(process.pid, others[-1], signal.SIGINT), 0)
        self.assertEqual(process.wait(20), 130)
        self.assertIn('interrupted after step', process.stderr.read())

    def test_full_disk(self):
        """Once it trains no file may pass 80 KiB; a checkpoint of the model needs 90."""
        process = self.start('tiny.yaml', '--data', DATA, '--batch-size', '32', '--run', 'run',
                             '--steps', self.STEPS, '--checkpoint-every', '2000', '--epochs',
                             '1000', '--set', 'validation=off')
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (80 << 10, 80 << 10))
        process.stdout.read()
        self.assertEqual(process.wait(20), 3)
        self.assertIn('File too large', process.stderr.read())
        self.assertEqual(os.listdir(self.path('run/checkpoints')), [])


class Held(ProgramTest):
    """A run directory that another process holds, as one does that was just killed."""

    SAID = "another process trains into run directory 'run': waiting up to 10 s for it"

    def setUp(self):
        super().setUp()
        os.mkdir(self.path('run'))
        self.lock = os.open(self.path('run'), os.O_RDONLY)
        fcntl.flock(self.lock, fcntl.LOCK_EX)

    def test_released(self):
        process = subprocess.Popen(
            [PROGRAM, 'train', 'tiny.yaml', '--data', DATA, '--run', 'run', '--steps', '1'],
            cwd=self.folder, env=self.environment(), stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        said = process.stderr.readline()
        os.close(self.lock)
        said += process.communicate(timeout=100)[1]
        self.assertEqual(process.returncode, 0, said)
        self.assertEqual(said.count(self.SAID), 1, said)
        self.assertEqual(self.events('run', 'end')[0]['steps'], 1)

    def test_kept(self):
        self.addCleanup(os.close, self.lock)
        start = time.monotonic()
        done = self.train('--run', 'run', status=3)
        self.assertGreater(time.monotonic() - start, 10)
        self.assertEqual(done.stderr.count(self.SAID), 1, done.stderr)
        self.assertIn("run directory 'run': another process trains into it", done.stderr)
        self.assertEqual(os.listdir(self.path('run/checkpoints')), [])
        self.assertEqual(os.listdir(self.path('run')), ['checkpoints'])


class Trained(ProgramTest):
    def setUp(self):
        super().setUp()
        self.train('--run', 'run', '--epochs', '4', '--lr', '0.01')

    def checkpoint(self):
        return self.events('run', 'checkpoint')[-1]['file']

    def test_eval(self):
        wanted = self.events('run', 'eval')[-1]
        found = json.loads(self.run_program('eval', 'run', '--json').stdout)
        self.assertAlmostEqual(found['accuracy'], wanted['accuracy'], places=6)
        self.assertAlmostEqual(found['loss'], wanted['loss'], places=5)
        self.assertGreater(found['accuracy'], 0.5)
        self.assertEqual(len(found['classes']), 10)
        confusion = found['confusion']
        self.assertEqual(sum(map(sum, confusion)), found['samples'])
        for i, figures in enumerate(found['classes']):
            column = sum(row[i] for row in confusion)
            self.assertEqual(figures['samples'], sum(confusion[i]))
            self.assertAlmostEqual(figures['recall'], confusion[i][i] / sum(confusion[i]))
            self.assertAlmostEqual(figures['precision'],
                                   confusion[i][i] / column if column else 0)
        text = self.run_program('eval', self.checkpoint(), '--batch-size', '7').stdout
        self.assertIn(f"accuracy  {100 * wanted['accuracy']:.2f} %", text)
        self.assertIn('precision', text)

    def test_eval_of_other_data(self):
        found = json.loads(self.run_program('eval', 'run', '--json', '--data',
                                            'synthetic:digits,count=64').stdout)
        self.assertGreater(found['samples'], 0)
        for name in '0123456789':
            os.makedirs(self.path(f'set/test/é\x1b[1m{name}'))
            self.put(f'set/test/é\x1b[1m{name}/1.png', png(28, 28, lambda x, y: 0))
        text = self.run_program('eval', 'run', '--data', 'folder:set,part=test').stdout
        self.assertRegex(text, r'\nclass     samples  ')
        self.assertRegex(text, r'\né\?\[1m9          1  ')
        self.refused(3, 'nix', 'eval', 'run', '--data', 'idx:nix')

    def test_predict(self):
        self.put('a.png', png(28, 28, lambda x, y: 255 if 12 <= x <= 15 and 4 < y < 24 else 0))
        self.put('b.png', png(28, 28, lambda x, y: 0))
        found = json.loads(self.run_program('predict', 'run', 'a.png', 'b.png', '--json',
                                            '--top', '10').stdout)
        self.assertEqual([f['file'] for f in found], ['a.png', 'b.png'])
        for file in found:
            chances = [p['probability'] for p in file['predictions']]
            self.assertAlmostEqual(sum(chances), 1, places=4)
            self.assertEqual(chances, sorted(chances, reverse=True))
            self.assertEqual(sorted(p['class'] for p in file['predictions']), list(range(10)))
        best = found[0]['predictions'][0]
        text = self.run_program('predict', self.checkpoint(), 'a.png').stdout
        self.assertEqual(text, f"a.png: class {best['class']}, probability "
                               f"{best['probability']:.4f}\n")

    def test_predict_of_bad_files(self):
        self.put('cut.png', png(28, 28, lambda x, y: 0)[:60])
        self.put('good\x1b[1m.png', png(28, 28, lambda x, y: 0))
        done = self.run_program('predict', 'run', 'cut.png', 'nix\x1b[1m.png', 'tiny.yaml',
                                'good\x1b[1m.png', status=3)
        for said in "'cut.png'", "'nix?[1m.png'", "'tiny.yaml'":
            self.assertIn(said, done.stderr)
        self.assertTrue(done.stdout.startswith('good?[1m.png: class '))


if __name__ == '__main__':
    program.main()
