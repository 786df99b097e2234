"""Going on with a run: with other settings, with another model, and when it is finished."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import MODEL, ProgramTest, main  # noqa: E402


class GoingOnTest(ProgramTest):
    def read(self, name):
        with open(self.path(name)) as file:
            return file.read()

    def configs(self):
        return sorted(f for f in os.listdir(self.path('run')) if f.startswith('config'))

    def test_other_settings_are_said_and_kept(self):
        self.train('--run', 'run', '--steps', '2')
        first = self.read('run/config.yaml')
        said = self.train('--run', 'run', '--steps', '4', '--lr', '0.5').stderr
        line = ("going on with other settings: steps 4 (was 2), lr 0.5 (was the "
                "optimizer's own); config.1.yaml has the settings before\n")
        self.assertEqual(said.count(line), 1, said)
        self.assertEqual(self.configs(), ['config.1.yaml', 'config.yaml'])
        self.assertEqual(self.read('run/config.1.yaml'), first)
        self.assertIn('\n  lr: 0.5\n', self.read('run/config.yaml'))
        event, = self.events('run', 'settings')
        self.assertEqual(event['changes'], {'steps': {'was': '2', 'is': '4'},
                                            'lr': {'was': '0', 'is': '0.5'}})
        self.assertEqual(event['step'], 2)
        self.train('--run', 'run', '--steps', '6', '--optimizer', 'adam beta_1=0.8')
        self.assertEqual(self.configs(), ['config.1.yaml', 'config.2.yaml', 'config.yaml'])
        self.assertIn('\n  lr: 0.5\n', self.read('run/config.2.yaml'))
        self.assertEqual([sorted(e['changes']) for e in self.events('run', 'settings')],
                         [['lr', 'steps'], ['lr', 'optimizer', 'steps']])

    def test_nothing_is_said_where_nothing_differs(self):
        self.put('run.yaml', 'model:\n\n  ' + MODEL.replace('\n', '\n  ')
                 + f'\ndata: "synthetic:digits,count=512"\ntrain: {{batch_size: 32}}\n')
        self.run_program('train', 'run.yaml', '--run', 'run', '--steps', '2')
        before = os.stat(self.path('run/config.yaml'))
        for arguments in (['run.yaml'], ['run/config.yaml']):
            self.run_program('train', *arguments, '--run', './run', '--steps', '2')
            self.run_program('train', *arguments, '--run', 'run', '--set', 'steps=2',
                             '--profile', 'trace.json')
        after = os.stat(self.path('run/config.yaml'))
        self.assertEqual((before.st_ino, before.st_mtime_ns), (after.st_ino, after.st_mtime_ns))
        self.assertEqual(self.configs(), ['config.yaml'])
        self.assertEqual(self.events('run', 'settings'), [])

    def test_a_finished_run_keeps_its_settings(self):
        self.train('--run', 'run', '--steps', '2')
        before, hash_before = self.read('run/config.yaml'), self.sha256('run')
        said = self.train('--run', 'run', '--steps', '2', '--lr', '0.5').stderr
        self.assertIn('the run is finished after step 2, so these settings change nothing: '
                      "lr 0.5 (was the optimizer's own)", said)
        self.assertEqual(self.read('run/config.yaml'), before)
        self.assertEqual(self.sha256('run'), hash_before)
        self.assertEqual(self.configs(), ['config.yaml'])

    def test_a_config_that_cannot_be_read_is_kept(self):
        self.train('--run', 'run', '--steps', '2')
        self.put('run/config.yaml', 'model: [')
        said = self.train('--run', 'run', '--steps', '3').stderr
        self.assertIn('config.yaml cannot be read, so what it had is not known; config.1.yaml '
                      'has the settings before', said)
        self.assertEqual(self.read('run/config.1.yaml'), 'model: [')

    def test_fresh_begins_with_one_version(self):
        self.train('--run', 'run', '--steps', '2')
        self.train('--run', 'run', '--steps', '3', '--lr', '0.25')
        self.assertEqual(self.configs(), ['config.1.yaml', 'config.yaml'])
        self.train('--run', 'run', '--steps', '2', '--lr', '0.5', '--fresh')
        self.assertEqual(self.configs(), ['config.yaml'])

    def test_what_differs_in_another_model(self):
        net = MODEL.replace('units: 10', 'units: 12').replace(
            '  - softmax', '  - dense: {units: 10}\n  - softmax')
        self.put('net.yaml', net)
        command = ['train', 'net.yaml', '--data', 'synthetic:digits,count=64', '--batch-size',
                   '32', '--run', 'run', '--steps', '1']
        self.run_program(*command)
        for old, new, what in (
                ('units: 12', 'units: 13', "layer 'dense_1' has units 13 here, 12 there"),
                ('units: 12', 'units: 12, bias: false',
                 "layer 'dense_1' has bias false here, true there"),
                ('28, 28, 1', '28, 14, 2', "input 'image' is uint8 [28, 14, 2] here, uint8 "
                                           "[28, 28, 1] there"),
                ('  - softmax', '  - relu\n  - softmax', "layer 4 is 'relu_1' here, "
                                                         "'softmax_1' there")):
            self.put('net.yaml', net.replace(old, new))
            self.refused(2, [f"holds another model 'tiny' than the one asked for: {what}",
                             '--fresh'], *command)
        self.put('net.yaml', net.replace('name: tiny', 'name: other').replace('12', '13'))
        self.refused(2, "holds another model ('tiny', asked for is 'other')", *command)

    def test_from_a_copy_made_in_passing(self):
        """A checkpoint is copied while the next step runs. Where its device is lost
        then, the state is saved as soon as it can be; a run goes on from either."""
        options = ['--shards', '4', '--device', '0*2', '--checkpoint-every', '5', '--val',
                   'off', '--epochs', '9', '--run']
        self.train(*options, 'whole', '--steps', '18')
        for fails, first in ('', 5), ('0:6', 7):
            with self.subTest(fails):
                self.train(*options, 'run', '--steps', '8', '--fresh',
                           environment={'LOCKSTEP_FAIL': fails})
                saved = [e['step'] for e in self.events('run', 'checkpoint')]
                self.assertEqual(saved, [first, 8])
                os.remove(self.path('run/checkpoints/step-00000008.safetensors'))
                self.train(*options, 'run', '--steps', '18')
                self.assertEqual(self.sha256('run'), self.sha256('whole'))


if __name__ == '__main__':
    main()
