"""Classes have names: data are judged, predicted and gone on with by them, whatever numbers
they give to their classes."""
import json
import os
import random
import shutil
import struct

import program
from program import ProgramTest, png

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
        self.teach('--steps', '10')
        self.teach('--steps', '5', '--fresh')
        again = self.data('all.csv', ',classes=names.txt')
        self.run_program('train', 'kinds.yaml', '--data', again, *TRAIN, '--run', 'run',
                         '--steps', '10')
        found = self.sha256('run')
        self.teach('--steps', '10', '--fresh')
        self.assertEqual(self.sha256('run'), found)

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
                         ['dark', 'gr\\xE4y', 'light'])
        self.assertEqual([c['samples'] for c in found['classes']], [0, 20, 20])
        self.assertGreater(found['accuracy'], 0.9)


if __name__ == '__main__':
    program.main()
