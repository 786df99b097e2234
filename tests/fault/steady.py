"""Ten thousand steps take no more memory, files, threads and OpenCL objects than the first."""
import json
import os
import subprocess

import program
from program import PROGRAM, ProgramTest

LAYER = os.environ['LOCKSTEP_OBJECTS_LAYER']  # objects.c


class Steady(ProgramTest):
    TRAIN = ['train', 'mlp', '--data', 'synthetic:digits,count=2048', '--batch-size', '32',
             '--epochs', '100000', '--eval-every', '500steps', '--checkpoint-every', '250',
             '--callback', 'csv_log', '--callback',
             'tensorboard every=50 histograms=500 images=4',
             '--log-format', 'jsonl', '--set', 'ema=0.9']

    def look(self, process):
        with open(f'/proc/{process}/status', encoding='utf-8') as file:
            lines = dict(line.split(':', 1) for line in file)
        return {'kib': int(lines['VmRSS'].split()[0]), 'threads': int(lines['Threads']),
                'files': len(os.listdir(f'/proc/{process}/fd'))}

    def train_and_look(self, run, steps, *at):
        """What the process has after the steps `at`, and which objects it has had."""
        running = subprocess.Popen(
            [PROGRAM, *self.TRAIN, '--run', run, '--steps', str(steps)], cwd=self.folder,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=self.environment(OPENCL_LAYERS=LAYER, LOCKSTEP_OBJECTS=self.path('objects')))
        self.addCleanup(running.stdout.close)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        seen = []
        for line in running.stdout:
            event = json.loads(line)
            if event['event'] == 'step' and event['step'] in at:
                seen.append(self.look(running.pid))
        self.assertEqual(running.wait(60), 0)
        with open(self.path('objects'), encoding='utf-8') as file:
            objects = {kind: tuple(int(number) for number in numbers) for kind, *numbers in
                       (line.split() for line in file)}
        return seen, objects

    def test_ten_thousand_steps(self):
        _, few = self.train_and_look('short', 1500)
        (early, late), many = self.train_and_look('long', 10000, 2020, 9980)
        made, living, most = many.pop('events')
        self.assertGreater(made, 4 * few.pop('events')[0])
        self.assertEqual(living, 0)
        self.assertLess(most, 1000)  # those of a few steps
        self.assertGreater(few['buffers'][0], 10)
        self.assertEqual(few, many)
        self.assertEqual(many['buffers'][1], 0)
        self.assertEqual(many['kernels'][1], 0)
        self.assertLess(late['kib'] - early['kib'], 2048)
        self.assertLessEqual(late['threads'], early['threads'] + 1)  # of a checkpoint
        self.assertLessEqual(late['files'], early['files'] + 1)


if __name__ == '__main__':
    program.main()
