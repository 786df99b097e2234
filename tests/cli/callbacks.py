"""Callbacks of a training: what they do, and that runs go on as if they had not stopped."""
import csv
import json
import math
import os
import random
import signal
import struct
import subprocess
import time

import program
from program import DATA, PROGRAM, ProgramTest

EPOCH = 16  # steps


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    crc ^= 0xffffffff
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def fields(message):
    """The fields of a message of protocol buffers: (number, value)."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = number()
        if key & 7 == 0:
            value = number()
        else:
            length = {1: 8, 5: 4}.get(key & 7) or number()
            value = message[at:at + length]
            at += length
        yield key >> 3, value


def records(path):
    with open(path, 'rb') as file:
        data = file.read()
    at = 0
    while at < len(data):
        length, check = struct.unpack_from('<QI', data, at)
        assert check == crc32c(data[at:at + 8])
        body = data[at + 12:at + 12 + length]
        assert len(body) == length
        assert struct.unpack_from('<I', data, at + 12 + length)[0] == crc32c(body)
        yield body
        at += 16 + length


def events(path):
    """What an event file tells: (step, tag, number), without its first record."""
    found = []
    for i, record in enumerate(records(path)):
        event = dict(fields(record))
        if i == 0:
            assert event[3] == b'brain.Event:2'
            continue
        if 4 in event:  # the graph
            continue
        for _, value in fields(event[5]):
            parts = dict(fields(value))
            figure = struct.unpack('<f', parts[2])[0] if 2 in parts else None
            found.append((event[2], parts[1].decode(), figure))
    return found


class CallbackTest(ProgramTest):
    def fit(self, run, *callbacks, epochs=12, **more):
        options = [word for text in callbacks for word in ('--callback', text)]
        return self.train('--run', run, '--epochs', str(epochs), '--lr', '0.02', *options,
                          *more.pop('options', ()), **more)

    def rows(self, run):
        with open(self.path(run + '/log.csv')) as file:
            return list(csv.DictReader(file))

    def kept(self, run):
        return sorted(int(name[5:13]) for name in os.listdir(self.path(run + '/checkpoints'))
                      if name.startswith('step-'))

    def board(self, run, part):
        return events(self.path(f'{run}/tensorboard/{part}/events.out.tfevents.0.lockstep'))

    def metadata(self, run, step):
        with open(self.path(f'{run}/checkpoints/step-{step:08}.safetensors'), 'rb') as file:
            length, = struct.unpack('<Q', file.read(8))
            return json.loads(file.read(length))['__metadata__']


class Stopping(CallbackTest):
    def keras_epochs(self, losses, patience, min_delta=0, baseline=None, start=0):
        """How many epochs keras.callbacks.EarlyStopping lets a training have."""
        best, wait = math.inf, 0
        for epoch, loss in enumerate(losses):
            if epoch < start:
                continue
            wait += 1
            if loss < best - min_delta:
                best = loss
                if baseline is None or loss < baseline - min_delta:
                    wait = 0
                continue
            if wait >= patience and epoch > 0:
                return epoch + 1
        return len(losses)

    def test_early_stopping_counts_as_keras(self):
        self.fit('whole')
        losses = [e['loss'] for e in self.events('whole', 'eval')]
        self.assertEqual(len(losses), 12)
        stopped = set()
        for i, (text, options) in enumerate((
                ('patience=1', {'patience': 1}), ('', {'patience': 0}),
                ('patience=2 min_delta=0.1', {'patience': 2, 'min_delta': 0.1}),
                ('patience=2 baseline=0.5', {'patience': 2, 'baseline': 0.5}),
                ('patience=1 start_from_epoch=6', {'patience': 1, 'start': 6}))):
            self.fit(f'run{i}', 'early_stopping ' + text)
            steps = len(self.events(f'run{i}', 'step'))
            self.assertEqual(steps, EPOCH * self.keras_epochs(losses, **options), text)
            stopped.add(steps)
        self.assertGreater(len(stopped), 2)

    def test_an_output_that_is_called_like_a_metric(self):
        """The end of a figure's name says which way it is better, not what is in it."""
        self.put('two.csv', 'a,b,kind,auc\n' + ''.join(
            f'{i % 7 / 7},{i % 5 / 5},{i % 2},{i % 7 / 7 + i % 5 / 5}\n' for i in range(512)))
        self.put('two.yaml', """name: two
input: {numbers: [2]}
layers:
  - {name: kind_x, from: numbers, dense: {units: 2}}
  - {name: kind_y, softmax: }
  - {name: auc_y, from: numbers, dense: {units: 1}}
output: {kind: kind_y, auc: auc_y}
loss: {kind: cross_entropy, auc: mean_squared_error}
""")
        done = self.run_program('train', 'two.yaml', '--data',
                                'csv:two.csv,fields=numbers:a+b,label=kind:kind,auc:auc',
                                '--val', '10%', '--batch-size', '32', '--lr', '0.01',
                                '--epochs', '6', '--run', 'run', '--callback',
                                'early_stopping monitor=val_auc_loss patience=2')
        losses = [e['outputs']['auc']['loss'] for e in self.events('run', 'eval')]
        self.assertEqual(len(losses), 6, done.stderr)
        self.assertLess(losses[-1], losses[0])

    def test_restore_best(self):
        done = self.fit('run', 'early_stopping patience=3 min_delta=0.02 restore_best=true')
        evaluations = self.events('run', 'eval')
        last = evaluations[-1]['step']
        self.assertEqual([e['step'] for e in evaluations[-2:]], [last] * 2)
        best = evaluations[-5]
        self.assertEqual(evaluations[-1], {**best, 'step': last})
        self.assertIn(f"{best['loss']:.4f}", done.stdout)
        self.assertEqual(self.metadata('run', best['step'])['parameters_sha256'],
                         self.sha256('run'))
        self.assertEqual(self.metadata('run', last)['parameters_sha256'], self.sha256('run'))
        self.assertIn('is restored', done.stderr)
        again = self.fit('run', 'early_stopping patience=3 min_delta=0.02 restore_best=true')
        self.assertIn('early_stopping has ended the run', again.stderr)
        self.assertIn(self.sha256('run'), again.stdout)
        self.assertEqual(len(self.events('run', 'end')), 1)
        self.assertEqual(self.events('run', 'eval'), evaluations)
        self.assertIn(f"{best['loss']:.6f}", self.run_program('eval', 'run').stdout)

    def test_a_best_state_that_is_gone(self):
        """The run ends with its last state, which is said. No rate is better than the first."""
        name = 'run/checkpoints/step-00000016.safetensors'
        for damage in (lambda path: os.remove(path), lambda path: os.truncate(path, 1000)):
            running = subprocess.Popen(
                [program.PROGRAM, 'train', 'tiny.yaml', '--data', DATA, '--batch-size', '32',
                 '--run', 'run', '--fresh', '--log-format', 'jsonl', '--epochs', '400',
                 '--callback', 'early_stopping monitor=lr patience=200 restore_best=true'],
                cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env=self.environment())
            for line in running.stdout:
                event = json.loads(line)
                if event['event'] == 'checkpoint' and event['step'] == 16:
                    damage(self.path(name))
            said = running.stderr.read()
            running.stderr.close()
            running.stdout.close()
            self.assertEqual(running.wait(60), 0, said)
            self.assertIn('the state of step 16 cannot be restored, the run ends with that of '
                          'step 3216', said)
            self.assertEqual(self.metadata('run', 3216)['parameters_sha256'],
                             self.sha256('run'))
            self.run_program('eval', 'run')

    def test_restore_best_at_the_last_step(self):
        self.fit('run', 'early_stopping patience=30 min_delta=0.3 restore_best=true', epochs=4)
        end = self.events('run', 'eval')[-1]
        self.assertEqual(end['step'], 4 * EPOCH)
        self.assertIn(end['loss'], [e['loss'] for e in self.events('run', 'eval')[:-1]])

    def test_more_patience_goes_on(self):
        self.fit('run', 'early_stopping patience=1')
        steps = len(self.events('run', 'step'))
        self.fit('run', 'early_stopping patience=30')
        self.assertLess(steps, 12 * EPOCH)
        self.assertEqual(len(self.events('run', 'step')), 12 * EPOCH)

    def test_without_validation(self):
        self.fit('run', 'early_stopping monitor=loss min_delta=0.5 patience=1', 'csv_log',
                 options=['--val', 'off'])
        self.assertLess(len(self.rows('run')), 12)
        self.assertNotIn('val_loss', self.rows('run')[0])

    def test_stop_on_nan(self):
        """Its decay makes the weights grow without end."""
        self.put('grows.yaml', program.MODEL.replace(
            '- dense: {units: 10}', '- {dense: {units: 10}, l2: 1e6}'))
        start = ['train', 'grows.yaml', '--data', DATA, '--batch-size', '32', '--steps', '64',
                 '--optimizer', 'sgd', '--lr', '1e6', '--val', 'off', '--run']
        for every, run in ('1', 'a'), ('1000', 'b'):
            done = self.run_program(*start, run, '--callback', 'stop_on_nan',
                                    '--checkpoint-every', every, status=3)
            self.assertIn('not finite', done.stderr)
            self.assertLess(len(self.events(run, 'step')), 10)
        self.assertIn("the first is 'dense_1.weight', 7840 of its values", done.stderr)
        self.assertEqual(self.kept('b'), [])
        found = self.run_program('eval', 'a', '--data', DATA).stdout
        self.assertNotRegex(found, 'nan|inf')  # what was kept is good
        self.run_program(*start, 'c', '--checkpoint-every', '1')
        self.assertEqual(len(self.events('c', 'step')), 64)

    def test_stop_at(self):
        self.fit('whole')
        for i in range(100):
            done = subprocess.run(
                [PROGRAM, 'train', 'tiny.yaml', '--data', DATA, '--batch-size', '32', '--run',
                 'run', '--epochs', '12', '--lr', '0.02', '--callback',
                 'stop_at minutes=0.0002'], cwd=self.folder, capture_output=True, text=True,
                env=self.environment(), timeout=100)
            if done.returncode != 130:
                break
            self.assertIn('stop_at: it has trained for', done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(i, 0)
        self.assertEqual(self.sha256('run'), self.sha256('whole'))

    def test_stop_file(self):
        start = ['train', 'tiny.yaml', '--data', DATA, '--batch-size', '32', '--run', 'run',
                 '--epochs', '1000000', '--callback', 'stop_file file=HALT']
        running = subprocess.Popen([PROGRAM, *start], cwd=self.folder, stderr=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, text=True,
                                   env=self.environment())
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        while not os.path.exists(self.path('run/metrics.jsonl')):
            time.sleep(0.05)
        self.put('run/HALT', '')
        _, said = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 130, said)
        self.assertIn("'run/HALT' is there", said)
        self.refused(2, 'remove it', *start)


class Keeping(CallbackTest):
    def test_best_ones(self):
        self.fit('run', 'checkpoint monitor=val_loss best_only=true keep=2 '
                        'file="best-{epoch:02}-{val_loss:.3}.safetensors"', 'csv_log',
                 epochs=8)
        losses = {int(row['step']): float(row['val_loss']) for row in self.rows('run')}
        best = sorted(losses, key=losses.get)[:2]
        self.assertEqual(self.kept('run'), sorted({*best, 8 * EPOCH}))
        names = [name for name in os.listdir(self.path('run/checkpoints'))
                 if name.startswith('best-')]
        self.assertIn(f'best-{best[0] // EPOCH:02}-{losses[best[0]]:.3f}.safetensors', names)
        self.run_program('eval', 'run/checkpoints/' + max(names))

    def test_newest_and_best(self):
        self.fit('run', 'checkpoint monitor=val_accuracy keep_best=1 keep=4 every=8 '
                        'threshold=0.3', 'csv_log', epochs=4)
        accuracies = {int(row['step']): float(row['val_accuracy']) for row in self.rows('run')}
        best = max(sorted(accuracies), key=accuracies.get)
        self.assertEqual(self.kept('run'), sorted({40, 48, 56, 64, best}))

    def test_threshold(self):
        self.fit('run', 'checkpoint keep_best=3 keep=1 threshold=0.000001', epochs=3)
        self.assertEqual(self.kept('run'), [3 * EPOCH])

    def test_names_of_keras(self):
        for threshold, kept in (9, ['1-00016.safetensors']), (1e-6, []):
            done = self.fit(f'run{threshold}', 'checkpoint monitor=loss save_best_only=true '
                            f'initial_value_threshold={threshold} '
                            'file={epoch:d}-{step:05d}.safetensors', epochs=1)
            names = os.listdir(self.path(f'run{threshold}/checkpoints'))
            self.assertEqual([n for n in names if not n.startswith('step-')], kept, done.stderr)

    def test_minutes(self):
        self.train('--run', 'run', '--epochs', '4', '--checkpoint-every', '1000', '--callback',
                   'checkpoint minutes=1e-9')  # at every chance
        steps = [e['step'] for e in self.events('run', 'checkpoint')]
        self.assertEqual(steps, [EPOCH, 2 * EPOCH, 3 * EPOCH, 4 * EPOCH])

    def test_plateau_is_the_schedule(self):
        self.fit('a', 'reduce_on_plateau patience=1 factor=0.5 min_delta=0.05', epochs=10)
        self.fit('b', epochs=10, options=['--set', 'schedule=kind=plateau patience=1 factor=0.5'
                                                   ' min_delta=0.05'])
        self.assertEqual(self.sha256('a'), self.sha256('b'))
        rates = {e['lr'] for e in self.events('a', 'step')}
        self.assertGreater(len(rates), 1)


class Files(CallbackTest):
    def test_log(self):
        self.fit('run', 'csv_log', 'time_history', epochs=3)
        rows = self.rows('run')
        self.assertEqual(list(rows[0]), ['epoch', 'step', 'loss', 'accuracy', 'val_loss',
                                         'val_accuracy', 'lr', 'seconds', 'epoch_seconds',
                                         'steps_per_s'])
        self.assertEqual([(row['epoch'], row['step']) for row in rows],
                         [('0', '16'), ('1', '32'), ('2', '48')])
        steps = self.events('run', 'step')
        for i, (row, found) in enumerate(zip(rows, self.events('run', 'eval'))):
            mean = sum(e['loss'] for e in steps[i * EPOCH:(i + 1) * EPOCH]) / EPOCH
            self.assertAlmostEqual(float(row['loss']), mean, 6)
            self.assertAlmostEqual(float(row['val_loss']), found['loss'], 6)
            self.assertEqual(row['lr'], '0.02')

    def test_foreign_file_is_not_replaced(self):
        os.mkdir(self.path('run'))
        self.put('run/log.csv', 'name,price\n')
        self.refused(2, 'not of a run', 'train', 'tiny.yaml', '--data', DATA, '--run', 'run',
                     '--epochs', '1', '--callback', 'csv_log')
        with open(self.path('run/log.csv')) as file:
            self.assertEqual(file.read(), 'name,price\n')

    def test_event_files(self):
        self.fit('run', 'tensorboard histograms=10 every=8', 'csv_log', epochs=3)
        train = self.board('run', 'train')
        val = self.board('run', 'validation')
        rows = self.rows('run')
        for found, tag, column in ((train, 'epoch_loss', 'loss'),
                                   (val, 'epoch_loss', 'val_loss'),
                                   (val, 'epoch_accuracy', 'val_accuracy'),
                                   (train, 'epoch_learning_rate', 'lr')):
            numbers = [(step, value) for step, name, value in found if name == tag]
            self.assertEqual([step for step, _ in numbers], [0, 1, 2])
            for (_, value), row in zip(numbers, rows):
                self.assertAlmostEqual(value, float(row[column]), 5)
        self.assertEqual([step for step, name, _ in train if name == 'batch_loss'],
                         [8, 16, 24, 32, 40, 48])
        self.assertEqual([step for step, name, _ in train if name == 'dense_1.weight'],
                         [10, 20, 30, 40])
        self.assertIn((0, 'settings', None), train)

    def test_tensorboard_reads_them(self):
        python = os.environ.get('LOCKSTEP_TEST_PYTHON', 'python3')
        reader = ('import sys\n'
                  'from tensorboard.backend.event_processing.event_accumulator import '
                  'EventAccumulator\n'
                  'found = EventAccumulator(sys.argv[1], {"tensors": 0, "histograms": 0})\n'
                  'found.Reload()\n'
                  'print([s.step for s in found.Scalars("epoch_loss")])\n'
                  'print([h.step for h in found.Histograms("dense_1.weight")])\n'
                  'print([h.histogram_value.num for h in found.Histograms("dense_1.bias")])\n'
                  'text = found.Tensors("settings")[0].tensor_proto.string_val[0].decode()\n'
                  'print("batch_size: 32" in text)\n'
                  'for node in found.Graph().node:\n'
                  '    shape = node.attr["_output_shapes"].list.shape[0]\n'
                  '    print(node.name, node.op, *node.input, [d.size for d in shape.dim])\n')
        if subprocess.run([python, '-c', 'import tensorboard'], capture_output=True,
                          check=False).returncode != 0:
            self.skipTest('there is no Python package tensorboard')
        self.fit('run', 'tensorboard histograms=16', epochs=2)
        done = subprocess.run([python, '-W', 'error::UserWarning', '-c', reader,
                               self.path('run/tensorboard/train')], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.stdout, '[0, 1]\n[16, 32]\n[10.0, 10.0]\nTrue\n'
                         'image input [1, 28, 28]\nflatten_1 flatten image [784]\n'
                         'dense_1 dense flatten_1 [10]\nsoftmax_1 softmax dense_1 [10]\n',
                         done.stderr)


    def test_no_images(self):
        """Said once, where the data has none to show."""
        done = self.run_program('train', 'two-branch', '--data', 'synthetic:pairs,count=16',
                                '--batch-size', '8', '--epochs', '2', '--run', 'run',
                                '--callback', 'tensorboard images=3')
        self.assertEqual(done.stderr.count('images are left out'), 1, done.stderr)

    def test_gradients(self):
        """What sgd takes off the weights is the learning rate times the gradient."""
        python = os.environ.get('LOCKSTEP_TEST_PYTHON', 'python3')
        reader = ('import json, sys\n'
                  'from tensorboard.backend.event_processing.event_accumulator import '
                  'EventAccumulator\n'
                  'found = EventAccumulator(sys.argv[1], {"histograms": 0})\n'
                  'found.Reload()\n'
                  'print(json.dumps([h.histogram_value.sum_squares for h in '
                  'found.Histograms("gradients/dense_1.weight")]))\n')
        if subprocess.run([python, '-c', 'import tensorboard'], capture_output=True,
                          check=False).returncode != 0:
            self.skipTest('there is no Python package tensorboard')
        self.put('tiny.yaml', program.MODEL.replace(
            '  - dense: {units: 10}', '  - {name: hidden, dense: {units: 16}}\n'
            '  - {batch_norm: {activation: relu}}\n'
            '  - {name: dense_1, dense: {units: 10}}'))
        several = ['--device', '0*2', '--split', '1:1', '--shards', '4']
        for self.options in (['--shards', '4'], ['--precision', 'mixed'],
                             ['--shards', '4', '--set', 'accumulate=2'], several,
                             [*several, '--precision', 'mixed'],
                             ['--device', '0/2', '--split', '1:1', '--shards', '4'],
                             ['--device', '0*4', '--place', 'hidden=1,dense_1=0', '--split',
                              '1:1', '--shards', '4'],
                             ['--device', '0*2', '--place', 'hidden=1,dense_1=0']):
            self.train('--run', 'run', '--fresh', '--steps', '6', '--optimizer', 'sgd', '--lr',
                       '0.5', '--callback', 'tensorboard histograms=1', *self.options)
            done = subprocess.run([python, '-c', reader, self.path('run/tensorboard/train')],
                                  capture_output=True, text=True, check=True)
            squares = json.loads(done.stdout)
            self.assertEqual(len(squares), 6)
            first, second = (self.weights('run', step) for step in (5, 6))
            moved = sum((a - b) ** 2 for a, b in zip(first, second))
            self.assertAlmostEqual(squares[5] * 0.25 / moved, 1, 2, self.options)

    def test_images(self):
        """Of inputs and mistakes, as TensorBoard reads them; stopped or not, the same ones."""
        for run in 'run', 'stopped':
            options = ('--augment', 'rotate=20 brightness=0.5', '--device', '0*2',
                       '--shards', '4')
            board = 'tensorboard images=5'
            if run == 'stopped':
                self.fit(run, board, options=(*options, '--steps', '20'))
            self.fit(run, board, epochs=2, options=options)
        tensors = {}
        for run in 'run', 'stopped':
            for part in 'train', 'validation':
                for record in records(self.path(f'{run}/tensorboard/{part}/'
                                                'events.out.tfevents.0.lockstep')):
                    event = dict(fields(record))
                    for _, value in fields(event.get(5, b'')):
                        value = dict(fields(value))
                        if 8 in value:
                            tensors.setdefault((run, part), []).append(
                                (event[2], value[1].decode(), value[8], value[9]))
        self.assertEqual(tensors['run', 'train'][1:], tensors['stopped', 'train'][1:])
        self.assertEqual(tensors['run', 'validation'], tensors['stopped', 'validation'])
        inputs = [item for item in tensors['run', 'train'] if item[1] == 'inputs']
        self.assertEqual([step for step, *_ in inputs], [0, 1])
        self.assertNotEqual(inputs[0][2], inputs[1][2])
        worst = [item for item in tensors['run', 'validation'] if item[1] == 'mistakes']
        self.assertEqual([step for step, *_ in worst], [0, 1])
        for _, _, tensor, metadata in inputs + worst:
            texts = [value for number, value in fields(tensor) if number == 8]
            self.assertEqual(texts[:2], [b'28', b'28'])
            self.assertEqual(len(texts), 7)
            for image in texts[2:]:
                self.assertEqual(image[:8] + image[12:24],
                                 b'\x89PNG\r\n\x1a\nIHDR' + struct.pack('>II', 28, 28))
            self.assertEqual(dict(fields(dict(fields(metadata))[1])), {1: b'images'})
        names = [item for item in tensors['run', 'validation']
                 if item[1] == 'mistakes_by_name']
        table = dict(fields(names[1][2]))[8].decode().splitlines()
        self.assertEqual(len(table), 2 + 5)
        margins = [float(line.split('|')[4]) for line in table[2:]]
        self.assertEqual(margins, sorted(margins, reverse=True))

    def test_tensorboard_reads_settings(self):
        """As a session of hyper-parameters, which ends where the run does."""
        python = os.environ.get('LOCKSTEP_TEST_PYTHON', 'python3')
        reader = ('import json, sys\n'
                  'from tensorboard.backend.event_processing.event_accumulator import '
                  'EventAccumulator\n'
                  'from tensorboard.plugins.hparams import metadata\n'
                  'found = EventAccumulator(sys.argv[1])\n'
                  'found.Reload()\n'
                  'tags = found.PluginTagToContent("hparams")\n'
                  'begin = metadata.parse_session_start_info_plugin_data(\n'
                  '    tags["_hparams_/session_start_info"])\n'
                  'values = {k: v.string_value or v.number_value\n'
                  '          for k, v in begin.hparams.items()}\n'
                  'end = tags.get("_hparams_/session_end_info")\n'
                  'end = end and metadata.parse_session_end_info_plugin_data(end).status\n'
                  'print(json.dumps([values, end]))\n')
        if subprocess.run([python, '-c', 'import tensorboard'], capture_output=True,
                          check=False).returncode != 0:
            self.skipTest('there is no Python package tensorboard')
        self.fit('run', 'tensorboard', epochs=2)
        self.fit('half', 'tensorboard', epochs=2,
                 options=('--augment', 'rotate=20', '--callback',
                                   'stop_at time=2000-01-01T00:00'), status=130)
        for run, status in ('run', 1), ('half', None):
            done = subprocess.run([python, '-W', 'error::UserWarning', '-c', reader,
                                   self.path(run + '/tensorboard')], capture_output=True,
                                  text=True, check=True)
            values, end = json.loads(done.stdout)
            self.assertEqual(end, status)
            self.assertEqual((values['lr'], values['batch_size'], values['epochs']),
                             (0.02, 32, 2))
            self.assertEqual((values['optimizer'], values['data']), ('adam', DATA))
            self.assertEqual(values.get('pipeline'),
                             'rotate degrees=20' if run == 'half' else None)

    def test_tensorboard_reads_images(self):
        python = os.environ.get('LOCKSTEP_TEST_PYTHON', 'python3')
        reader = ('import sys\n'
                  'from tensorboard.backend.event_processing.event_accumulator import '
                  'EventAccumulator\n'
                  'from tensorboard.plugins.image import metadata\n'
                  'for part, tag in ("train", "inputs"), ("validation", "mistakes"):\n'
                  '    found = EventAccumulator(f"{sys.argv[1]}/{part}", {"tensors": 0})\n'
                  '    found.Reload()\n'
                  '    about = found.SummaryMetadata(tag)\n'
                  '    assert about.plugin_data.plugin_name == metadata.PLUGIN_NAME\n'
                  '    metadata.parse_plugin_metadata(about.plugin_data.content)\n'
                  '    events = found.Tensors(tag)\n'
                  '    print(tag, [e.step for e in events],\n'
                  '          [len(e.tensor_proto.string_val) for e in events])\n')
        if subprocess.run([python, '-c', 'import tensorboard'], capture_output=True,
                          check=False).returncode != 0:
            self.skipTest('there is no Python package tensorboard')
        self.fit('run', 'tensorboard images=5', epochs=2)
        done = subprocess.run([python, '-W', 'error::UserWarning', '-c', reader,
                               self.path('run/tensorboard')], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.stdout, 'inputs [0, 1] [7, 7]\nmistakes [0, 1] [7, 7]\n',
                         done.stderr)

    def weights(self, run, step):
        """All numbers of dense_1.weight after a step, of which a checkpoint is made."""
        self.train('--run', f'{run}-{step}', '--fresh', '--steps', str(step), '--optimizer',
                   'sgd', '--lr', '0.5', *self.options)
        name = f'{run}-{step}/checkpoints/step-{step:08}.safetensors'
        with open(self.path(name), 'rb') as file:
            data = file.read()
        length, = struct.unpack('<Q', data[:8])
        begin, end = json.loads(data[8:8 + length])['dense_1.weight']['data_offsets']
        numbers = data[8 + length + begin:8 + length + end]
        return struct.unpack(f'<{len(numbers) // 4}f', numbers)


class GoingOn(CallbackTest):
    """A run that was stopped anywhere ends as one that was not, with all that was written."""

    CALLBACKS = ('early_stopping patience=4 min_delta=0.04 restore_best=true',
                 'checkpoint monitor=val_accuracy keep_best=2 every=5',
                 'reduce_on_plateau patience=1 factor=0.5 min_delta=0.1', 'csv_log',
                 'tensorboard histograms=7 every=3', 'stop_on_nan')

    def written(self, run):
        """All that does not tell of times."""
        lines = [{k: v for k, v in e.items()
                  if k not in ('samples_per_s', 'step_ms', 'devices', 'seconds')}
                 for e in self.events(run)
                 if e['event'] in ('step', 'eval', 'end', 'callback')]
        with open(self.path(run + '/log.csv')) as file:
            table = file.read()
        boards = [[(step, tag, value) for step, tag, value in
                   events(self.path(f'{run}/tensorboard/{part}/events.out.tfevents.0.lockstep'))
                   if tag != 'batch_samples_per_second'] for part in ('train', 'validation')]
        return lines, table, boards, self.kept(run)

    def interrupt_until_done(self, run, moments, how, *extra):
        """Starts the run again and again, each time stopped after some steps more."""
        options = [word for text in self.CALLBACKS for word in ('--callback', text)]
        for steps in moments:
            running = subprocess.Popen(
                [PROGRAM, 'train', 'tiny.yaml', '--data', DATA, '--batch-size', '32', '--run',
                 run, '--epochs', '12', '--lr', '0.02', '--log-format', 'jsonl', *options,
                 *extra], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                text=True, env=self.environment())
            for line in running.stdout:
                if json.loads(line)['event'] == 'step':
                    steps -= 1
                    if steps == 0:
                        running.send_signal(how)
                        break
            running.stdout.read()
            running.stdout.close()
            if running.wait() == 0:
                return
        self.fit(run, *self.CALLBACKS, options=extra)

    def check(self, how, *extra):
        self.fit('whole', *self.CALLBACKS, options=extra)
        self.assertLess(len(self.events('whole', 'step')), 12 * EPOCH)
        chance = random.Random(how)
        for i in range(3):
            moments = [chance.randint(1, 40) for _ in range(5)]
            self.interrupt_until_done(f'run{i}', moments, how, *extra)
            for whole, found in zip(self.written('whole'), self.written(f'run{i}')):
                self.assertEqual(whole, found, moments)

    def test_after_interrupts(self):
        self.check(signal.SIGINT)

    def test_after_kills(self):
        self.check(signal.SIGKILL)

    def test_two_replicas_with_average(self):
        self.check(signal.SIGKILL, '--device', '0*2', '--set', 'ema=0.9', '--shards', '2')


class Shares(CallbackTest):
    def test_val_of_the_data(self):
        data = 'synthetic:digits,count=600'
        start = 'train', 'tiny.yaml', '--batch-size', '32', '--epochs', '2', '--data'
        self.run_program(*start, data, '--val', '10%', '--run', 'a')
        self.run_program(*start, data + ',val=0.1', '--run', 'b')
        self.assertEqual(self.sha256('a'), self.sha256('b'))
        self.assertEqual(self.events('a', 'eval'), self.events('b', 'eval'))
        self.run_program(*start, data, '--val', '10%', '--run', 'a')  # it is the same run
        self.run_program('eval', 'a')
        self.refused(2, 'holds a share out already', *start, data + ',val=0.1', '--val', '5%')
        self.refused(2, "val='120%'", *start, data, '--val', '120%')


class Runs(CallbackTest):
    def listed(self, *options):
        return json.loads(self.run_program('runs', '--json', *options).stdout)['runs']

    def test_lists_and_sorts(self):
        self.fit('all/a', epochs=2)
        self.fit('all/deep/b', epochs=4)
        self.train('--run', 'all/c', '--steps', '5', '--val', 'off', '--seed', '3')
        runs = self.listed('all')
        self.assertEqual([run['run'] for run in runs], ['all/a', 'all/c', 'all/deep/b'])
        for run in runs:
            self.assertEqual(run['model'], 'tiny.yaml')
            self.assertEqual(run['data'], DATA)
            self.assertEqual(run['state'], 'finished')
            found = self.events(run['run'], 'eval')
            self.assertEqual(run['best'], max((e['accuracy'] for e in found), default=None))
            self.assertEqual(run['steps'], len(self.events(run['run'], 'step')))
            seconds = sum(e['step_ms'] for e in self.events(run['run'], 'step')) / 1000
            self.assertAlmostEqual(run['seconds'], seconds, 3)
        self.assertEqual([run['run'] for run in self.listed('.', '--sort', 'steps')],
                         ['./all/deep/b', './all/a', './all/c'])
        best = [run['best'] for run in self.listed('all', '--sort', 'best')]
        self.assertEqual(best, sorted(best[:2], reverse=True) + [None])
        self.assertEqual([run['run'] for run in self.listed('all', '--filter', 'deep')],
                         ['all/deep/b'])
        shown = self.run_program('runs', 'all').stdout
        self.assertIn('all/deep/b', shown)
        self.assertIn(DATA, shown)  # whole, in a pipe
        self.refused(2, "found 'size'", 'runs', '--sort', 'size')
        self.refused(3, "'nowhere' is no folder", 'runs', 'nowhere')

    def test_states(self):
        running = subprocess.Popen(
            [PROGRAM, 'train', 'tiny.yaml', '--data', DATA, '--batch-size', '32', '--run',
             'run', '--epochs', '1000000', '--log-format', 'jsonl', '--val', 'off'],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=self.environment())
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        self.addCleanup(running.stdout.close)
        for line in running.stdout:
            if json.loads(line)['event'] == 'step':
                break
        self.assertEqual(self.listed()[0]['state'], 'training')
        running.kill()
        running.wait()
        self.assertEqual(self.listed()[0]['state'], 'stopped')


class Settings(CallbackTest):
    def test_run_file(self):
        self.put('run.yaml', f'model: tiny.yaml\ndata: "{DATA}"\n'
                             'train: {epochs: 2, batch_size: 32, lr: 0.02}\n'
                             'callbacks:\n  - csv_log\n'
                             '  - early_stopping: {monitor: val_loss, patience: 3}\n'
                             '  - stop_at: {time: "2999-01-31 08:00"}\n')
        self.run_program('train', 'run.yaml', '--run', 'a', '--callback', 'time_history')
        self.fit('b', 'csv_log', 'early_stopping patience=3 monitor=val_loss',
                 'stop_at time="2999-01-31 08:00"', 'time_history', epochs=2)
        configs = []
        for run in 'ab':
            with open(self.path(run + '/config.yaml')) as file:
                configs.append([line for line in file if 'callbacks:' in line])
        self.assertEqual(configs[0], configs[1])
        self.assertIn('early_stopping patience=3 | stop_at', configs[0][0])
        self.run_program('train', 'a/config.yaml', '--run', 'c')
        self.assertEqual(self.sha256('a'), self.sha256('c'))

    def test_refusals(self):
        for said, *callbacks in (
                (["'early_stoping'", "'early_stopping'"], 'early_stoping'),
                (["'early_stopping'", "'patience'"], 'early_stopping patiense=3'),
                (["'val_los'", "'val_loss'"], 'early_stopping monitor=val_los'),
                ("'val_f1'", 'checkpoint keep_best=1 monitor=val_f1'),
                ('factor', 'reduce_on_plateau factor=1'),
                ('at most 8', 'checkpoint best_only=true keep=9'),
                ("begin with 'step-'", 'checkpoint file=step-1.safetensors'),
                ("found '..'", 'checkpoint file=..'),
                ("'}' is missing", 'checkpoint file={epoch}-{val_loss'),
                ("'los'", 'checkpoint file={los}'), ('{epoch:x}', 'checkpoint file={epoch:x}'),
                ("found '-1:30'", 'stop_at time=-1:30'),
                ("'minutes' is missing", 'stop_at'), ("found '25:00'", 'stop_at time=25:00'),
                ('separator', 'csv_log separator=7'), ("'high'", 'checkpoint threshold=high'),
                ('is none of', 'early_stopping mode=up'),
                (["'metrics.jsonl'", 'of the run itself'], 'csv_log file=metrics.jsonl'),
                ('of the run itself', 'csv_log file=./checkpoints/step-00000009.safetensors'),
                ('of the run itself', 'stop_file file=config.yaml'),
                ('of the run itself', 'tensorboard folder=checkpoints'),
                ('of the run itself', 'tensorboard folder='),
                (["'./log.csv' is that of callback 'csv_log' too"], 'csv_log',
                 'csv_log file=./log.csv'),
                ("of callback 'csv_log' too", 'csv_log file=STOP', 'stop_file'),
                ("'x/..//log.csv' is that of callback 'csv_log' too", 'csv_log',
                 'csv_log file=x/..//log.csv'),
                ("of callback 'csv_log' too", 'csv_log',
                 'csv_log file=' + self.path('run/./log.csv')),
                ("of callback 'tensorboard' too", 'tensorboard',
                 'tensorboard folder=tensorboard/'),
                (["'.//a.csv'", "of callback 'csv_log' too"], 'csv_log file=a.csv',
                 'csv_log file=.//a.csv'),
                ('of the run itself', 'csv_log file=' + self.path('run/metrics.jsonl')),
                ('of the run itself', 'csv_log file=../run/env.json'),
                ('of the run itself', 'stop_file file=x/../../run'),
                ("of callback 'tensorboard' too", 'tensorboard', 'tensorboard'),
                ('of the run itself', 'stop_file file=./'),
                ("found '2027-02-30T08:00'", 'stop_at time=2027-02-30T08:00'),
                ("'nan' is not a number", 'checkpoint threshold=nan'),
                ("'val_f1'", 'checkpoint monitor=val_f1'),
                (["'zzz'", 'known are checkpoint, early_stopping'], 'zzz')):
            options = [word for text in callbacks for word in ('--callback', text)]
            self.refused(2, said, 'train', 'tiny.yaml', '--data', DATA, '--run', 'run',
                         *options)
            self.assertFalse(os.path.exists(self.path('run')), said)

    def test_one_file_by_a_link(self):
        os.makedirs(self.path('run'))
        os.symlink('log.csv', self.path('run/other.csv'))
        self.refused(2, "'run/log.csv' too, which another callback writes", 'train',
                     'tiny.yaml', '--data', DATA, '--run', 'run', '--epochs', '1',
                     '--callback', 'csv_log', '--callback', 'csv_log file=other.csv')

    def test_what_does_not_fit(self):
        start = 'train', 'tiny.yaml', '--data', DATA
        self.refused(2, 'no validation data', *start, '--val', 'off', '--callback',
                     'early_stopping')
        self.refused(2, 'a run directory', *start, '--callback', 'csv_log')
        self.refused(2, 'a run directory', *start, '--callback',
                     'early_stopping restore_best=true')
        self.refused(2, 'is one already', *start, '--callback', 'reduce_on_plateau', '--set',
                     'schedule=kind=cosine steps=9')
        self.refused(2, 'checkpoint_every is 5', *start, '--run', 'run', '--callback',
                     'checkpoint every=9', '--checkpoint-every', '5')
        self.put('run.yaml', f'model: tiny.yaml\ndata: "{DATA}"\ncallbacks:\n  - csv_log\n'
                             '  - early_stopping: {patience: few}\n')
        self.refused(3, ['run.yaml:5', "'patience'"], 'train', 'run.yaml')


if __name__ == '__main__':
    program.main()
