"""lockstep bench: its figures as JSON."""
import json
import re

import program
from program import ProgramTest

PASSES = {'forward', 'dgrad', 'wgrad'}


class Figures(ProgramTest):
    def bench(self, *arguments):
        """What it prints, and the figures it writes."""
        text = self.run_program('bench', *arguments, '--seconds', '0.01', '--batch-size', '16',
                                '--json', 'b.json').stdout
        with open(self.path('b.json')) as file:
            return text, json.load(file)

    def test_models(self):
        text, figures = self.bench('mlp')
        device = figures['device']
        for name in ('fma_gflops', 'bandwidth_gbs', 'enqueue_us', 'launch_us', 'round_trip_us'):
            self.assertGreater(device[name], 0, name)
        for name in 'name', 'driver', 'version', 'platform', 'class':
            self.assertTrue(device[name])
        self.assertRegex(figures['lockstep'], r'^\d+\.\d+\.\d+$')
        self.assertRegex(figures['date'], r'^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$')
        self.assertEqual(figures['kernels'], [])
        self.assertIsNone(figures['averaging'])
        model, = figures['models']
        self.assertEqual((model['name'], model['batch']), ('mlp', 16))
        for name in 'samples_per_s', 'step_ms', 'build_s', 'peak_bytes':
            self.assertGreater(model[name], 0, name)
        self.assertAlmostEqual(model['samples_per_s'] * model['step_ms'], 16e3, delta=1)
        self.assertIn('\nmlp ', text)

    def test_operations(self):
        text, figures = self.bench('kernels:mlp')
        self.assertEqual(figures['models'], [])
        kernels = figures['kernels']
        self.assertEqual(len(kernels), 11)
        self.assertEqual({k['pass'] for k in kernels}, PASSES)
        self.assertEqual(sum(k['reference'] for k in kernels), 3)
        for k in kernels:
            self.assertEqual((k['set'], k['op'], k['memory_bound']), ('mlp', 'dense', False))
            self.assertRegex(k['shape'], r'^\[\d+\] units=\d+.*, n 16$')
            self.assertRegex(k['algorithm'], r'^[a-z]\w+$')
            self.assertEqual(k['algorithm'] == 'clblast', k['reference'])
            for name in 'ms', 'gflops', 'gbs', 'percent_of_peak', 'host_us':
                self.assertGreater(k[name], 0, name)
            self.assertAlmostEqual(k['flops'] / k['ms'] * 1e-6 / k['gflops'], 1, places=6)
            self.assertAlmostEqual(k['bytes'] / k['ms'] * 1e-6 / k['gbs'], 1, places=6)
        first = kernels[0]
        self.assertEqual(first['flops'], 2 * 784 * 1024 * 16)
        self.assertEqual(first['bytes'], 4 * (16 * (784 + 1024) + 785 * 1024))
        self.assertEqual(len(re.findall(r'^dense .* GFLOPS .* GB/s .* %', text, re.M)), 11)

    def test_wrong_words(self):
        self.refused(2, "did you mean 'mlp'?", 'bench', 'mlq')
        self.refused(2, "did you mean 'kernels:mlp'?", 'bench', 'kernels:mlpp')
        for model in 'resnet50', 'xception', 'mobilenet-v2':
            self.refused(2, [model, 'batch normalization'], 'bench', model)
        self.refused(2, ['lstm', 'LSTM'], 'bench', 'lstm')
        for seconds in '0', '-1', 'nan', 'inf', '1e9', 'x', '':
            self.refused(2, ["'--seconds'", f"found '{seconds}'"], 'bench', 'mlp',
                         '--seconds=' + seconds)

    def test_unwritable(self):
        done = self.run_program('bench', 'mlp', '--seconds', '0.001', '--batch-size', '16',
                                '--json', 'none/b.json', status=3)
        self.assertIn('none/b.json', done.stderr)


if __name__ == '__main__':
    program.main()
