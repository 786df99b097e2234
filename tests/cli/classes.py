"""Classes have names: data are judged, predicted and gone on with by them, whatever numbers
they give to their classes."""
import json
import os
import random
import shutil
import struct

import program
from program import ProgramTest, png, sum_up

KINDS = ['adelie', 'chinstrap', 'gentoo']
MODEL = """name: kinds
input: [2]
classes: 3
layers:
  - dense: {units: $classes}
  - softmax
"""
PICTURES = """name: pictures
input: [8, 8, 1]
classes: 3
layers:
  - flatten
  - dense: {units: $classes}
  - softmax
"""
TRAIN = ['--pipeline', 'standardize', '--batch-size', '32', '--lr', '0.2']


def metadata(path):
    with open(path, 'rb') as file:
        header = file.read(struct.unpack('<Q', file.read(8))[0])
    return json.loads(header)['__metadata__']


class Classes(ProgramTest):
    def setUp(self):
        super().setUp()
        self.put('kinds.yaml', MODEL)
        self.put('all.csv', self.table(KINDS, 300))
        self.put('some.csv', self.table(['gentoo', 'chinstrap'], 90))
        self.put('other.csv', self.table(['emperor', 'gentoo'], 30))

    @staticmethod
    def table(kinds, count, chance=random.Random(11)):
        rows = [(kind := chance.choice(kinds), 10 * KINDS.index(kind) if kind in KINDS else 50)
                for _ in range(count)]
        return 'x,y,kind\n' + ''.join(
            f'{x + chance.gauss(0, 1):.3f},{x % 20 + chance.gauss(0, 1):.3f},{kind}\n'
            for kind, x in rows)

    @staticmethod
    def data(name, more=''):
        return f'csv:{name},fields=x,y,label=kind{more}'

    def teach(self, *more, model='kinds.yaml', **options):
        return self.run_program('train', model, '--data', self.data('all.csv'), *TRAIN, '--run',
                                'run', *more, **options)

    def checkpoint(self):
        return max(os.path.join(root, name) for root, _, names in
                   os.walk(self.path('run/checkpoints')) for name in names)

    def test_other_data(self):
        """Two of the three classes have other numbers where one is missing."""
        self.teach('--epochs', '8', '--val', self.data('some.csv'))
        self.assertGreater(self.events('run', 'eval')[-1]['accuracy'], 0.95)
        found = json.loads(self.run_program('eval', 'run', '--data', self.data('some.csv'),
                                            '--json').stdout)
        self.assertGreater(found['accuracy'], 0.95)
        self.assertEqual([c['name'] for c in found['classes']], KINDS)
        self.assertEqual(found['classes'][0]['samples'], 0)
        said = json.loads(self.run_program('predict', 'run', 'csv:some.csv,fields=x,y',
                                           '--json').stdout)
        with open(self.path('some.csv')) as file:
            truth = [line.split(',')[2].strip() for line in file][1:]
        best = [sample['predictions'][0]['name'] for sample in said]
        self.assertGreater(sum(a == b for a, b in zip(best, truth)), 0.95 * len(truth))
        self.assertEqual(json.loads(metadata(self.checkpoint())['classes']),
                         {'softmax_1': KINDS})

    def test_order_of_a_file(self):
        """A list of names in another order changes no label, so that a run goes on."""
        self.put('names.txt', '\n'.join(reversed(KINDS)) + '\n')
        self.teach('--steps', '5')
        again = self.data('all.csv', ',classes=names.txt')
        self.run_program('train', 'kinds.yaml', '--data', again, *TRAIN, '--run', 'run',
                         '--steps', '10')
        found = self.sha256('run')
        self.teach('--steps', '10', '--fresh')
        self.assertEqual(self.sha256('run'), found)

    def begin(self, data, run, *more):
        """A step from the weights of 'run' that is too short to change them."""
        spec = self.data(data, *more)
        done = self.run_program('train', 'kinds.yaml', '--init-from', 'run', '--set',
                                'classes=3', '--data', spec, '--val', spec, '--steps', '1',
                                '--lr', '1e-30', '--run', run)
        self.assertEqual(self.sha256(run), self.sha256('run'))
        return self.events(run, 'eval')[-1]['accuracy'], done.stderr

    def test_weights_of_a_run_keep_their_classes(self):
        """By name, with fewer of them, in another order; others have numbers of their own."""
        self.teach('--epochs', '8')
        self.put('names.txt', '\n'.join(reversed(KINDS)) + '\n')
        for i, (data, more) in enumerate([('some.csv', []),
                                          ('all.csv', [',classes=names.txt'])]):
            accuracy, said = self.begin(data, f'begun{i}', *more)
            self.assertGreater(accuracy, 0.95)
            self.assertIn("numbers that they have in 'run', whose first is 'adelie'", said)
            found = json.loads(self.run_program('eval', f'begun{i}', '--data',
                                                self.data(data), '--json').stdout)
            self.assertEqual([c['name'] for c in found['classes']], KINDS)
        self.assertNotIn('have the numbers', self.begin('all.csv', 'same')[1])
        accuracy, said = self.begin('other.csv', 'other')
        self.assertLess(accuracy, 0.95)
        self.assertIn("data 'other.csv' has other classes than 'run': the head of output "
                      "'softmax_1' was trained for those", said)

    def test_unknown(self):
        """A class that the model does not know is named, before anything is computed."""
        said = "class 'emperor' is none of the 3 that the model was trained on"
        self.teach('--steps', '5')
        other = self.data('other.csv')
        self.refused(3, said, 'eval', 'run', '--data', other)
        self.refused(3, said, 'train', 'kinds.yaml', '--data', self.data('all.csv'), *TRAIN,
                     '--val', other, '--steps', '1')
        with open(self.path('all.csv')) as file:
            self.put('all.csv', file.read().replace('gentoo', 'emperor'))
        self.refused(3, said, 'train', 'kinds.yaml', '--data', self.data('all.csv'), *TRAIN,
                     '--run', 'run', '--steps', '10')

    def test_numbers(self):
        """Classes that are numbers keep them, whatever the model calls its classes."""
        self.teach('--epochs', '8')
        with open(self.path('all.csv')) as file:
            text = file.read()
        for number, kind in enumerate(KINDS):
            text = text.replace(kind, str(number))
        self.put('numbers.csv', text)
        found = [json.loads(self.run_program('eval', 'run', '--data', self.data(name),
                                             '--json').stdout)
                 for name in ('all.csv', 'numbers.csv')]
        self.assertEqual(found[0]['confusion'], found[1]['confusion'])
        self.assertEqual([c['name'] for c in found[1]['classes']], KINDS)

    def test_checkpoint_without_names(self):
        """As checkpoints were: the data's own names are shown if they are as many."""
        self.teach('--epochs', '8')
        path = self.checkpoint()
        with open(path, 'rb') as file:
            text = file.read()
        end = 8 + struct.unpack('<Q', text[:8])[0]
        header = json.loads(text[8:end])
        for key in 'classes', 'header_sha256':
            header['__metadata__'].pop(key, None)
        header['__metadata__']['format'] = 'lockstep-checkpoint-1'
        header = json.dumps(header).encode()
        header += b' ' * (-len(header) % 8)
        with open(path, 'wb') as file:
            file.write(struct.pack('<Q', len(header)) + header + text[end:])
        names = {name: [c['name'] for c in json.loads(self.run_program(
            'eval', 'run', '--data', self.data(name), '--json').stdout)['classes']]
            for name in ('all.csv', 'some.csv')}
        self.assertEqual(names, {'all.csv': KINDS, 'some.csv': ['0', '1', '2']})
        self.teach('--epochs', '9')
        self.assertEqual(json.loads(metadata(self.checkpoint())['classes']),
                         {'softmax_1': KINDS})

    def test_folders(self):
        """A folder a class; a name that is no UTF-8 is kept and found again."""
        kinds = [b'dark', b'gr\xe4y', b'light']
        for i, kind in enumerate(kinds):
            os.makedirs(os.path.join(self.folder.encode(), b'photos', kind))
            for k in range(20):
                with open(os.path.join(self.folder.encode(), b'photos', kind,
                                       b'%d.png' % k), 'wb') as file:
                    file.write(png(8, 8, lambda x, y, at=100 * i + k: at + (x + y) % 2))
        self.put('pictures.yaml', PICTURES)
        self.run_program('train', 'pictures.yaml', '--data', 'folder:photos', '--epochs', '40',
                         '--batch-size', '20', '--lr', '0.03', '--run', 'run', '--pipeline',
                         'normalize -1..1')
        shutil.rmtree(self.path('photos/dark'))
        found = json.loads(self.run_program('eval', 'run', '--data', 'folder:photos',
                                            '--json').stdout)
        self.assertEqual([c['name'] for c in found['classes']],
                         ['dark', 'gr\\xe4y', 'light'])
        self.assertEqual([c['samples'] for c in found['classes']], [0, 20, 20])
        self.assertGreater(found['accuracy'], 0.9)
        path = self.checkpoint()  # older ones have such bytes in capitals
        with open(path, 'rb') as file:
            text = file.read()
        self.assertEqual(text.count(b'xe4y'), 1)
        with open(path, 'wb') as file:
            file.write(sum_up(text.replace(b'xe4y', b'xE4y')))
        again = json.loads(self.run_program('eval', path, '--data', 'folder:photos',
                                            '--json').stdout)
        self.assertEqual(again['confusion'], found['confusion'])
        self.assertEqual(again['classes'][1]['name'], 'gr\\xE4y')

    def test_broken_photographs(self):
        """As many broken files as training allowed are allowed when it is evaluated; files that
        are no images are told of once."""
        for name, file in (('left', 'notes.txt'), ('right', 'more.txt')):
            os.makedirs(self.path(f'photos/{name}'))
            self.put(f'photos/{name}/{file}', 'no image')
            self.put(f'photos/{name}/junk.png', 'junk')
            for k in range(8):
                self.put(f'photos/{name}/{k}.png',
                         png(8, 8, lambda x, y, at=k: 30 * at + x + y))
        self.put('pictures.yaml', PICTURES.replace('classes: 3', 'classes: 2'))
        common = ['train', 'pictures.yaml', '--data', 'folder:photos,val=0.4', '--epochs', '1',
                  '--batch-size', '4', '--run', 'run']
        self.refused(3, "max_bad=1% allows 0 (--max-bad, or ',max_bad=' behind the data, "
                     'allows more)', *common)
        done = self.run_program(*common, '--max-bad', '2')
        self.assertEqual(done.stderr.count('2 files below'), 1, done.stderr)
        self.assertEqual(metadata(self.checkpoint())['max_bad'], '2')
        self.run_program('eval', 'run')
        self.run_program('eval', 'run', '--data', 'folder:photos')
        self.refused(3, 'max_bad=1 allows 1', 'eval', 'run', '--data',
                     'folder:photos,max_bad=1')

    def photographs(self, sizes):
        """Images whose left or right half is bright, in train and test, of other sizes."""
        chance = random.Random(5)
        for part in 'train', 'test':
            for side in 'left', 'right':
                os.makedirs(self.path(f'halves/{part}/{side}'))
                for k in range(24):
                    w, h = chance.choice(sizes)
                    grain = [chance.randrange(60) for _ in range(w * h)]
                    self.put(f'halves/{part}/{side}/{k:02}.png', png(w, h, lambda x, y: grain[
                        y * w + x] + 150 * ((2 * x >= w) == (side == 'right'))))

    def test_predicts_photographs(self):
        """As the evaluation sees them: of any size, resized, and cropped to their middle; by
        name, by folder, by pattern and as a data set."""
        self.photographs([(40, 28), (30, 36), (64, 50), (16, 16)])
        self.put('pictures.yaml', PICTURES.replace('classes: 3', 'classes: 2'))
        for run, data, stages in (('plain', '', 'normalize -1..1'),
                                  ('sized', ',size=12x14', 'normalize -1..1'),
                                  ('resized', '', 'resize 12x10 | crop 8x8 | normalize -1..1'),
                                  ('part', '', 'center_crop 15x12 | resize 8x8')):
            self.run_program('train', 'pictures.yaml', '--data', 'folder:halves' + data,
                             '--epochs', '20', '--batch-size', '16', '--lr', '0.03', '--run',
                             run, '--pipeline', stages)
            def say(*words, run=run):
                return json.loads(self.run_program('predict', run, *words, '--json').stdout)
            found = say('halves/test')
            names = [f'halves/test/{side}/{k:02}.png' for side in ('left', 'right')
                     for k in range(24)]
            self.assertEqual([f['file'] for f in found], names)
            as_data = say('folder:halves' + data)
            self.assertEqual([f['predictions'] for f in found],
                             [s['predictions'] for s in as_data])
            right = sum(f['predictions'][0]['name'] in f['file'] for f in found)
            judged = json.loads(self.run_program('eval', run, '--json').stdout)
            self.assertEqual(right / len(found), judged['accuracy'])
            self.assertGreater(right, 40)
            self.assertEqual(say('halves/test/right/0*.png', names[0]),
                             [f for f in found if 'right/0' in f['file']] + found[:1])
        said = self.run_program('predict', 'plain', names[0], '--top', '5').stdout
        self.assertRegex(said, r'^halves/test/left/00.png: left, probability [\d.]+; '
                               r'right, probability [\d.]+\n$')

    def test_predicts_the_rest(self):
        """What cannot be predicted is named, and does not keep the rest from it."""
        self.photographs([(20, 20)])
        self.put('pictures.yaml', PICTURES.replace('classes: 3', 'classes: 2'))
        self.run_program('train', 'pictures.yaml', '--data', 'folder:halves', '--steps', '2',
                         '--batch-size', '16', '--run', 'run')
        self.put('bad.png', b'no image')
        os.mkdir(self.path('empty'))
        done = self.run_program('predict', 'run', 'nix.png', 'bad.png', 'empty', '*.jpg',
                                'halves/test/left/00.png', 'csv:nix', status=3)
        self.assertEqual(len(done.stdout.splitlines()), 1)
        for said in ("'nix.png'", "'bad.png'", "no .png, .jpg or .jpeg file below 'empty'",
                     "no file matches '*.jpg'", "'nix'"):
            self.assertIn(said, done.stderr)


if __name__ == '__main__':
    program.main()
