"""lockstep tune finds tiles for CLBlast's kernels on a device of the GPU class, which a run
then takes, to the same bits: python3 tiles.py PROGRAM. On PoCL each of them takes half a
minute to build."""
import glob
import json

import program
from program import ProgramTest

NET = """name: net
input: [28, 28, 1]
layers:
  - conv2d: {filters: 24, kernel: 1, activation: relu}
  - conv2d: {filters: 16, kernel: 1}
  - flatten
  - dense: {units: 10}
  - softmax
"""


class Tiles(ProgramTest):
    GPU = {'LOCKSTEP_CLASS': 'gpu'}

    def environment(self, **changes):
        return super().environment(LOCKSTEP_CACHE=self.path('cache'), **changes)

    def train(self, run):
        self.run_program('train', 'net.yaml', '--data', 'synthetic:digits,count=512',
                         '--batch-size', '64', '--epochs', '9', '--steps', '6', '--val', 'off',
                         '--run', run, environment=self.GPU)
        with open(self.path(f'{run}/env.json'), encoding='utf-8') as file:
            return json.load(file)['algorithms']

    def test_tuning(self):
        self.put('net.yaml', NET)
        done = self.run_program('tune', 'net.yaml', '--batch-size', '64', timeout=1500,
                                environment=self.GPU)
        print(done.stdout)
        if '\nclblast tiles float32\n' not in done.stdout:
            self.skipTest('CLBlast takes twice the time of others in all passes')
        said = done.stdout.split('\nclblast tiles float32\n')[1].splitlines()
        self.assertEqual([line.split()[0] for line in said[:5]],
                         ['own', '64x64x16', '128x32x16', '128x64x16', '128x128x16'])
        sums = {line.split()[0]: float(line.split()[1]) for line in said[:5]}
        fastest = said[5].split('-> ')[1]
        self.assertLessEqual(sums[fastest], 1.04 * min(sums.values()))
        [path] = glob.glob(self.path('cache/tuning/*-normal.txt'))
        with open(path, encoding='utf-8') as file:
            lines = file.read().splitlines()[1:]
        kept = dict(line.split('\t') for line in lines)
        [tiles] = [key for key in kept if key.startswith('clblast tiles float32 on ')]
        self.assertEqual(kept[tiles], fastest)
        with open(path, 'w', encoding='utf-8') as file:  # of all passes that can, and no others
            file.write('math normal\n')
            for key in kept:
                if '[24, 28, 28]' in key:
                    file.write(f'{key}\tclblast\n')
            file.write(f'{tiles}\t128x32x16\n')
        taken = self.train('taken')
        self.assertEqual(taken[tiles], '128x32x16')
        with open(path, encoding='utf-8') as file:
            text = file.read()
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text.replace('128x32x16', 'own'))
        self.assertEqual(self.train('own')[tiles], 'own')
        self.assertEqual(self.sha256('taken'), self.sha256('own'))


if __name__ == '__main__':
    program.main()
