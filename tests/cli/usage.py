"""Wrong command lines, missing files and devices: exit status and what the message names."""
import json
import os
import re
import resource
import shutil
import subprocess

import program
from program import DATA, MODEL, PROGRAM, ProgramTest

COMMANDS = ['train', 'eval', 'predict', 'generate', 'summary', 'data', 'devices', 'bench',
            'scale', 'selftest', 'serve', 'convert', 'tune', 'weights', 'export', 'runs',
            'report', 'help', 'completion']


class Help(ProgramTest):
    def test_lists_commands(self):
        text = self.run_program('--help').stdout
        for command in COMMANDS:
            self.assertIn(f'\n  {command} ', text)
        self.assertEqual(self.run_program('help').stdout, text)

    def test_tells_of_each_command(self):
        for command in COMMANDS:
            text = self.run_program(command, '--help').stdout
            self.assertTrue(text.startswith(f'usage: lockstep {command} '))
            self.assertEqual(self.run_program(command, '-h').stdout, text)
            self.assertIn('\nexamples:\n', text)
            self.assertIn(f'lockstep {command}', self.run_program('help', command).stdout)

    def test_tells_of_every_setting(self):
        text = self.run_program('help', 'train').stdout
        for name in ['--batch-size', '--log-format', 'batch_size', 'checkpoint_every']:
            self.assertIn(name, text)

    def test_version(self):
        text = self.run_program('--version').stdout
        self.assertRegex(text, r'^lockstep \d+\.\d+\.\d+\n$')
        self.assertEqual(self.run_program('-V').stdout, text)


class CommandLine(ProgramTest):
    def test_no_command(self):
        self.run_program(status=2)

    def test_unknown_command(self):
        self.refused(2, ["'tain'", "did you mean 'train'?"], 'tain')

    def test_unknown_option(self):
        self.refused(2, "'--bach-size'; did you mean '--batch-size'?", 'train', 'mlp',
                     '--bach-size', '3')
        self.refused(2, "'-x'", 'devices', '-x')

    def test_letters(self):
        runs = []
        for run, options in (('a', ['--data', DATA, '--run', 'a', '--epochs', '1',
                                    '--batch-size', '32', '--quiet']),
                             ('b', ['-d', DATA, '-o', 'b', '-e1', '-qb', '32'])):
            done = self.run_program('train', 'tiny.yaml', *options)
            self.assertEqual(done.stderr, '')
            runs.append(self.sha256(run))
        self.assertEqual(runs[0], runs[1])
        self.refused(2, "'-e' needs a value: -e N", 'train', 'mlp', '-e')
        self.refused(2, "'-e' needs a value: -e N", 'train', 'mlp', '-qe', '--fresh')
        self.refused(2, "unknown option '-e'", 'eval', 'a', '-e', '3')
        self.refused(2, "begin with '--'", 'train', 'mlp', '-lr', '3')

    def test_values(self):
        self.refused(2, "'--lr' needs a value", 'train', 'mlp', '--lr')
        self.refused(2, "'--lr' needs a value", 'train', 'mlp', '--lr', '--fresh')
        self.refused(2, "'--fresh' takes no value, found '1'", 'train', 'mlp', '--fresh=1')
        self.refused(2, "found 'xml'", 'train', 'mlp', '--log-format', 'xml')
        self.refused(2, "found '3x'", 'summary', 'mlp', '--batch-size', '3x')
        self.refused(2, "found '99999999999999999999'", 'summary', 'mlp',
                     '--batch-size=99999999999999999999')

    def test_settings(self):
        self.refused(2, "'many'", 'train', 'mlp', '--data', DATA, '--epochs', 'many')
        self.refused(2, ["'--batch-size 0'", '0 is not in 1..16777216'], 'train', 'mlp',
                     '--data', DATA, '--batch-size', '0')
        self.refused(2, "'ssync'", 'train', 'mlp', '--data', DATA, '--mode', 'ssync')
        self.refused(2, "did you mean 'batch_size'?", 'train', 'mlp', '--set', 'batch_sise=3')
        self.refused(2, "found 'lr'", 'train', 'mlp', '--set', 'lr')
        self.refused(2, 'exclude one another', 'train', 'mlp', '--batch-size', '8',
                     '--batch-per-device', '8')
        self.refused(2, ['LOCKSTEP_EPOCHS', "'many'"], 'train', 'mlp', '--data', DATA,
                     environment={'LOCKSTEP_EPOCHS': 'many'})
        self.refused(2, 'adam', 'train', 'mlp', '--data', DATA, '--optimizer', 'adma')

    def test_useless_settings(self):
        """What has no use for this data must make sense all the same."""
        for command in ['train', 'tiny.yaml', '--data', DATA], ['data', DATA]:
            self.refused(2, "'zzz'", *command, '--max-bad', 'zzz')
        self.refused(2, "max_bad 'zzz'", 'train', 'tiny.yaml', '--data', DATA, '--set',
                     'max_bad=zzz')
        for cache in ['--set', 'data_cache=zzz'], ['--cache', 'zzz']:
            self.refused(2, ["cache 'zzz'", 'synthetic'], 'train', 'tiny.yaml', '--data', DATA,
                         *cache)
        self.refused(2, ["cache 'zzz'", 'synthetic'], 'train', 'mlp', '--data', DATA,
                     '--cache', 'zzz')
        self.train('--steps', '1', '--cache', 'memory')

    def test_run_file_that_cannot_be_read(self):
        """What is wrong with it is said, not that it has no data."""
        start = f'model: tiny.yaml\ndata: "{DATA}"\n'
        self.put('bad.yaml', start + 'train: {epochs: 2, epochs: 3}\n')
        self.refused(3, ['bad.yaml:3', "'epochs'", 'twice'], 'train', 'bad.yaml')
        self.put('bad.yaml', start + 'train: {epochs: 2\n')
        self.refused(3, 'bad.yaml:', 'train', 'bad.yaml')
        self.refused(3, ["cannot open 'absent.yaml'", 'No such file'], 'train', 'absent.yaml')

    def test_run_directory_as_model(self):
        self.train('--steps', '1', '--run', 'out')
        self.refused(2, "'lockstep train out/config.yaml' goes on", 'train', 'out')
        self.run_program('train', 'out/config.yaml')
        os.rename(self.path('out'), self.path('moved'))
        done = self.run_program('train', 'moved/config.yaml', '--steps', '6')
        self.assertIn("no run directory 'out': going on in 'moved'", done.stderr)
        self.assertFalse(os.path.exists(self.path('out')))
        self.assertEqual(self.events('moved', 'step')[-1]['step'], 6)
        shutil.copytree(self.path('moved'), self.path('out'))
        self.assertIn("names run directory 'moved', which is used", self.run_program(
            'train', 'out/config.yaml', '--steps', '6').stderr)

    def test_paths_without_a_kind(self):
        os.mkdir(self.path('photos'))
        for path, kind in ('photos', 'folder'), ('photos,size=8x8', 'folder'), ('t.csv', 'csv'):
            self.refused(2, f"did you mean '{kind}:{path}'?", 'data', path)

    def test_environment(self):
        for name, values in {'LOCKSTEP_SLOW': ['garbage', '1', '1:', '1:x', '1:3x', '-1:3',
                                               '0:nan', '0:0.5'],
                             'LOCKSTEP_FAIL': ['garbage', '1', '1:0', '1:5:hung', '1:5,,'],
                             'LOCKSTEP_HANG_SECONDS': ['garbage', '0', '-1', '5s', 'nan']
                             }.items():
            for value in values:
                self.refused(2, [name, f"'{value}'", 'expected'], 'train', 'tiny.yaml',
                             '--data', DATA, environment={name: value})
        self.train('--steps', '2', environment={
            'LOCKSTEP_SLOW': '0:1.5', 'LOCKSTEP_FAIL': '1:5,2:6:hang',
            'LOCKSTEP_HANG_SECONDS': '7.5'})

    def test_words_in_the_environment(self):
        """What is read deep inside is checked before a device is used."""
        for name, good in {'MATRIX': 'emulated', 'SHARED': 'copy', 'SUBGROUPS': '0',
                           'BUILD_THREADS': '2', 'PROGRAM_CACHE': '1', 'WIDE': '0'}.items():
            name = 'LOCKSTEP_' + name
            self.refused(2, [name + "='zzz' in the environment: expected"], 'devices',
                         environment={name: 'zzz'})
            self.run_program('devices', environment={name: good})
        self.refused(2, "LOCKSTEP_BUILD_THREADS='0'", 'train', 'tiny.yaml', '--data', DATA,
                     environment={'LOCKSTEP_BUILD_THREADS': '0'})

    def test_errors_come_first(self):
        """Nothing is said of what is kept where nothing is trained."""
        done = self.refused(3, 'no model', 'train', 'nothing', '--data', DATA)
        self.assertNotIn('no run directory', done.stderr)

    def test_words(self):
        self.refused(2, 'MODEL', 'train')
        self.refused(2, 'found 2 words', 'train', 'mlp', 'vgg16')
        self.refused(2, 'RUN', 'eval')
        self.refused(2, 'image', 'predict', 'run')
        self.refused(2, "found 'x'", 'devices', 'x')

    def test_scale(self):
        for devices in ('0..4', '4..1', '4,2', '2,2', '1..', '..4', 'two', '1..300', '1,', '',
                        '-1'):
            self.refused(2, ["'--devices'", f"found '{devices}'"], 'scale', 'mlp',
                         '--devices=' + devices)
        for rate in '-1', '0', 'fast', 'nan', 'inf', '3x', '':
            self.refused(2, ["'--link'", f"found '{rate}'"], 'scale', 'mlp', '--link=' + rate)
            self.refused(2, ["'--net'", f"found '{rate}'"], 'scale', 'mlp', '--hosts', '2',
                         '--net=' + rate)
        self.refused(2, 'needs --net', 'scale', 'mlp', '--hosts', '2')
        self.refused(2, "'--hosts'", 'scale', 'mlp', '--hosts', '0')
        self.refused(2, 'exclude one another', 'scale', 'mlp', '--batch-size', '8',
                     '--batch-per-device', '8')
        self.refused(2, 'power of two', 'scale', 'mlp', '--shards', '6')
        self.refused(2, 'MODEL', 'scale')
        self.refused(3, "'nix'", 'scale', 'nix')

    def test_without_data(self):
        self.refused(2, ['no data', '--data synthetic:digits', '--data idx:DIR'], 'train',
                     'mlp')


class Files(ProgramTest):
    def test_missing_model(self):
        self.refused(3, ["'nix'", 'mlp'], 'train', 'nix', '--data', DATA)
        self.refused(3, "'nix.yaml'", 'train', 'nix.yaml', '--data', DATA)
        self.refused(3, "'nix'", 'summary', 'nix')

    def test_unknown_layer(self):
        self.put('bad.yaml', MODEL.replace('dense', 'dnese'))
        for command in (['summary', 'bad.yaml'], ['train', 'bad.yaml', '--data', DATA]):
            self.refused(3, ['bad.yaml', '5', "'dnese'", "'dense'"], *command)

    def test_bad_run_file(self):
        self.put('run.yaml', 'model: tiny.yaml\ndata: ' + DATA + '\ntrain:\n  epohcs: 3\n')
        self.refused(3, ['run.yaml', '4', "'epohcs'", "'epochs'"], 'train', 'run.yaml')
        self.refused(3, "'nix.yaml'", 'train', 'mlp', '--config', 'nix.yaml', '--data', DATA)
        self.put('run.yaml', 'data: ' + DATA + '\nmodel:\n  input: [28, 28, 1]\n  layers:\n'
                             '    - flatten\n    - dnese: {units: 10}\n')
        self.refused(3, "run.yaml:6: ", 'train', 'run.yaml')

    def test_lines_of_options_in_run_files(self):
        """What stands below a setting is refused with its own line, before anything begins."""
        begin = f'model: tiny.yaml\ndata: {DATA}\ntrain:\n'
        for text, line, said in (
                ('  schedule: {kind: cosin, steps: 9}\n', 4, "'cosin' is none of"),
                ('  schedule:\n    kind: cosine\n    step: 9\n', 6, "unknown option 'step'"),
                ('  schedule:\n    cosine:\n      steps: x\n', 6, "'x' is not a whole number"),
                ('  schedule: kind=step\n', 4, 'needs every=STEPS'),
                ('  optimizer:\n    adam:\n      epsilon: 1e-7\n      beta1: 3\n', 7,
                 "unknown option 'beta1'")):
            self.put('run.yaml', begin + text)
            self.refused(3, [f'run.yaml:{line}: ', said], 'train', 'run.yaml')
        self.refused(2, "'cosin' is none of", 'train', 'tiny.yaml', '--data', DATA, '--set',
                     'schedule=kind=cosin')

    def test_missing_data(self):
        self.refused(3, self.path('nix'), 'train', 'tiny.yaml', '--data',
                     'idx:' + self.path('nix'))
        self.refused(2, "'nix'", 'train', 'tiny.yaml', '--data', 'nix')

    def test_unwritable_run_directory(self):
        self.refused(3, 'tiny.yaml/run', 'train', 'tiny.yaml', '--data', DATA, '--run',
                     'tiny.yaml/run')

    def test_no_trained_model(self):
        self.refused(3, "nix", 'eval', 'nix')
        self.refused(3, "tiny.yaml", 'eval', 'tiny.yaml')
        self.refused(3, "nix", 'predict', 'nix', 'a.png')

    def test_full_stdout(self):
        with open('/dev/full', 'w') as full:
            done = subprocess.run([PROGRAM, '--help'], stdout=full, stderr=subprocess.PIPE,
                                  text=True, env=self.environment(), check=False)
        self.assertEqual(done.returncode, 3)
        self.assertIn('stdout', done.stderr)


class Devices(ProgramTest):
    def test_lists_them(self):
        text = self.run_program('devices').stdout
        found = json.loads(self.run_program('devices', '--json').stdout)['devices']
        self.assertGreater(len(found), 0)
        for index, device in enumerate(found):
            self.assertEqual(device['index'], index)
            self.assertIn(device['class'], ['cpu', 'gpu'])
            self.assertGreater(device['memory_bytes'], 0)
            self.assertGreater(device['compute_units'], 0)
            self.assertIn(f"{index}  {device['name']}\n", text)

    def test_no_platform(self):
        environment = {'OCL_ICD_VENDORS': self.folder}
        for command in (['devices'], ['train', 'tiny.yaml', '--data', DATA], ['selftest'],
                        ['bench', 'mlp']):
            self.refused(4, 'pocl-opencl-icd', *command, environment=environment)
        done = self.run_program('summary', 'tiny.yaml', environment=environment)
        self.assertIn('7,850', done.stdout)

    def test_too_little_memory(self):
        """The driver is installed, and cannot be loaded."""
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (150 << 20, 150 << 20))
        done = self.run_program('devices', status=4, preexec_fn=limit)
        self.assertIn('the 150 MiB that the process may map (ulimit -v) are too few',
                      done.stderr)
        self.assertNotIn('install a driver', done.stderr)

    def test_unknown_device(self):
        self.refused(4, '99', 'train', 'tiny.yaml', '--data', DATA, '--device', '99')
        self.refused(2, 'nonsense', 'train', 'tiny.yaml', '--data', DATA, '--device',
                     'nonsense')


    def test_drills(self):
        """On two replicas that fail, hang, are stopped and killed; settings do not matter."""
        text = self.run_program('selftest', '--faults', '--device', '0',
                                environment={'LOCKSTEP_EPOCHS': '1', 'TMPDIR': self.folder})
        self.assertIn('\n  7 of 7 disturbed runs ended with the parameters of', text.stdout)
        self.assertEqual([name for name in os.listdir(self.folder) if 'drill' in name], [])

    def test_selftest(self):
        count = len(json.loads(self.run_program('devices', '--json').stdout)['devices'])
        text = self.run_program('selftest').stdout
        answers = re.findall(r'\n  (\d+) of (\d+) known answers were found\n', text)
        self.assertEqual(len(answers), count)
        for found, wanted in answers:
            self.assertEqual(found, wanted)
            self.assertGreater(int(wanted), 0)


    def test_scale(self):
        self.run_program('scale', 'tiny.yaml', '--batch-size', '64', '--devices', '1..3,16..64',
                         '--shards', '4', '--hosts', '2', '--net', '1.25', '--json', 's.json')
        with open(self.path('s.json')) as file:
            found = json.load(file)
        rows = found['rows']
        self.assertEqual([row['devices'] for row in rows], [1, 2, 3, 16, 32, 64])
        self.assertEqual(rows[0]['efficiency_percent'], 100)
        self.assertEqual(rows[-1]['bottleneck'], 'too few shards')
        for row in rows:
            self.assertEqual((row['batch'], row['shards']), (64, 4))
            self.assertAlmostEqual(sum(row['ms'].values()), row['step_ms'], places=6)
        text = self.run_program('scale', 'tiny.yaml', '--batch-per-device', '16', '--devices',
                                '1,2,40', '--link', '12').stdout
        # Sentences below the table are whole lines in a pipe.
        table = [line for line in text.splitlines() if not line.endswith('.')]
        self.assertLessEqual(max(map(len, table)), 80)
        # Behind the table stands a reason, where other work made an efficiency exceed 100 %.
        self.assertRegex(text, r'\n +40 +640 .* too few shards, 32 idle\n($|\n)')


class Summary(ProgramTest):
    def test_counts(self):
        text = self.run_program('summary', 'fashion-convnet', '--batch-size', '64').stdout
        self.assertRegex(text, r'conv2d_1 +\(26, 26, 32\) +320 ')
        self.assertIn('93,322 (93,322 trainable)', text)
        self.assertIn('of device memory', text)

    def test_precision(self):
        """Halves take half the memory; parameters stay what they are."""
        def of(what, *options):
            text = self.run_program('summary', 'fashion-convnet', *options).stdout
            return re.findall(rf'^ *{what} +([0-9.]+ .iB)', text, re.M)
        mixed = '--precision', 'mixed'
        self.assertEqual(of(r'conv2d_1 .* 389k'), ['42.2 MiB'])
        self.assertEqual(of(r'conv2d_1 .* 389k', *mixed), ['21.1 MiB'])
        whole, half = of('activations'), of('activations', *mixed)
        self.assertEqual((whole[0], half[0]), ('75.0 MiB', '37.5 MiB'))
        self.assertLess(float(half[1].split()[0]), 0.7 * float(whole[1].split()[0]))
        self.assertEqual(of('weights', *mixed), of('weights'))
        self.assertEqual(of('activations', '--precision', 'float'), whole)
        self.refused(2, "'half' is none of float, mixed", 'summary', 'mlp', '--precision',
                     'half')

    def test_json(self):
        done = json.loads(self.run_program('summary', 'fashion-convnet', '--json',
                                           '--batch-size', '64').stdout)
        self.assertEqual((done['model'], done['batch_size'], done['parameters']),
                         ('fashion-convnet', 64, 93322))
        layer = done['layers'][1]
        self.assertEqual((layer['name'], layer['operation'], layer['shape'],
                          layer['parameters'], layer['activation_bytes']),
                         ('conv2d_1', 'conv2d', [26, 26, 32], 320, 4 * 26 * 26 * 32 * 64))
        memory = done['memory']
        self.assertEqual(memory['total'], sum(memory[k] for k in (
            'weights', 'gradients', 'activations', 'inputs', 'optimizer')))

    def test_settings(self):
        """Any setting of a training; of data a zoo model takes its size."""
        text = self.run_program('summary', 'mlp', '--set', 'input=[12,10,3]', '--set',
                                'classes=7').stdout
        self.assertRegex(text, r'image +\(12, 10, 3\)')
        self.assertRegex(text, r'dense_3 +\(7\)')
        text = self.run_program('summary', 'resnet50', '--set', 'batch_size=2', '--set',
                                'data=synthetic:digits').stdout
        self.assertRegex(text, r'image +\(28, 28, 1\)')
        self.assertIn('at batch size 2', text)
        self.refused(2, "'inputs'", 'summary', 'mlp', '--set', 'inputs=3')

    def test_runs(self):
        """Run files, run directories and checkpoints; a run keeps the model it was trained
        with."""
        self.put('run.yaml', f'model: tiny.yaml\ndata: {DATA}\ntrain:\n  batch_size: 96\n')
        self.assertIn('at batch size 96', self.run_program('summary', 'run.yaml').stdout)
        self.run_program('train', 'run.yaml', '--run', 'run', '--steps', '1')
        self.put('tiny.yaml', MODEL.replace('units: 10', 'units: 20'))
        checkpoint, = os.listdir(self.path('run/checkpoints'))
        for name, batch in ('run', 96), ('run/checkpoints/' + checkpoint, 512):
            text = self.run_program('summary', name).stdout
            self.assertRegex(text, r'dense_1 +\(10\)')
            self.assertIn(f'at batch size {batch}', text)
        self.assertRegex(self.run_program('summary', 'run', '--set', 'batch_size=8').stdout,
                         r'dense_1 +\(20\)')
        os.remove(self.path('run/checkpoints/' + checkpoint))
        self.assertRegex(self.run_program('summary', 'run').stdout, r'dense_1 +\(20\)')
        self.put('run.yaml', 'model: mlp\ndata: folder:nix\n')
        done = self.run_program('summary', 'run.yaml')
        self.assertIn('is shown in its own size: ', done.stderr)
        self.assertRegex(done.stdout, r'image +\(28, 28, 1\)')

    def test_no_plan(self):
        """The output is a map: no loss fits, the table does."""
        self.put('map.yaml', 'input: [8, 8, 1]\nlayers:\n  - {relu: , name: labels}\n')
        done = self.run_program('summary', 'map.yaml')
        self.assertRegex(done.stdout, r'labels +\(8, 8, 1\)')
        self.assertIn("no memory plan of training: model 'map': the output 'labels'",
                      done.stderr)
        self.assertRegex(done.stdout, r'outputs on .* takes .* of device memory:\n'
                         r'  weights +0 B\n  activations +\d.*\n  inputs +\d')
        found = json.loads(self.run_program('summary', 'map.yaml', '--json').stdout)
        self.assertIsNone(found['memory'])
        self.assertGreater(found['memory_inference']['inputs'], 0)
        self.assertIsNone(json.loads(self.run_program('summary', 'tiny.yaml', '--json')
                                     .stdout)['memory_inference'])


if __name__ == '__main__':
    program.main()
