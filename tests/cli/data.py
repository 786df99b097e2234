"""lockstep data: figures against a reckoning of their own, broken files, the grid."""
import fcntl
import json
import os
import pty
import random
import re
import statistics
import struct
import subprocess
import termios
import zlib

import program
from program import PROGRAM, ProgramTest, png


def read_png(path):
    """Width, height and rows of RGB tuples of an RGB PNG, without the program's reader."""
    with open(path, 'rb') as file:
        data = file.read()
    assert data[:8] == b'\x89PNG\r\n\x1a\n'
    at, packed = 8, b''
    while at < len(data):
        size, kind = struct.unpack('>I4s', data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        assert zlib.crc32(kind + body) == int.from_bytes(data[at + 8 + size:][:4], 'big')
        if kind == b'IHDR':
            width, height, *rest = struct.unpack('>IIBBBBB', body)
            assert rest == [8, 2, 0, 0, 0]
        packed += body if kind == b'IDAT' else b''
        at += 12 + size
    raw, stride, above, rows = zlib.decompress(packed), 3 * width, bytes(3 * width), []
    for y in range(height):
        kind, row = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:][:stride])
        for i in range(stride):
            a, b, c = (row[i - 3], above[i], above[i - 3]) if i > 2 else (0, above[i], 0)
            near = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            row[i] = row[i] + [0, a, b, (a + b) // 2, near][kind] & 255
        rows.append([tuple(row[i:i + 3]) for i in range(0, stride, 3)])
        above = row
    return width, height, rows


class DataTest(ProgramTest):
    def put_image(self, name, image):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        self.put(name, image)

    def report(self, spec, *arguments, **more):
        done = self.run_program('data', spec, '--json', *arguments, **more)
        return json.loads(done.stdout)


class Figures(DataTest):
    def setUp(self):
        """Two classes with random pixels in both parts, and one without an image."""
        super().setUp()
        chance = random.Random(1)
        self.values = {'train': [], 'test': []}
        self.counts = {'train': [5, 0, 11], 'test': [3, 0, 2]}
        for part, counts in self.counts.items():
            os.makedirs(self.path(f'set/{part}/empty'))
            for label, count in zip(['Käse & Öl', 'empty', 'z'], counts):
                for i in range(count):
                    pixels = [[chance.randrange(256) for _ in range(9)] for _ in range(7)]
                    self.values[part] += sum(pixels, [])
                    self.put_image(f'set/{part}/{label}/ü{i:02}.png',
                                   png(9, 7, lambda x, y: pixels[y][x]))

    def test_json(self):
        for threads in '1', '5':
            report = self.report('folder:set', '--data-threads', threads)
            self.assertEqual(report['name'], 'set')
            self.assertEqual(report['shape'], [7, 9, 1])
            self.assertEqual(report['classes'], ['Käse & Öl', 'empty', 'z'])
            self.assertEqual([p['part'] for p in report['parts']], ['train', 'test'])
            for part in report['parts']:
                counts, values = self.counts[part['part']], self.values[part['part']]
                self.assertEqual(part['class_counts'], counts)
                self.assertEqual(part['samples'], sum(counts))
                self.assertEqual(part['good'], sum(counts))
                self.assertEqual(part['majority_class'], counts.index(max(counts)))
                self.assertAlmostEqual(part['majority_share'], max(counts) / sum(counts))
                self.assertEqual(part['files']['PNG'], sum(counts))
                self.assertEqual(part['files']['channels']['grey'], sum(counts))
                self.assertEqual(part['files']['largest'], [7, 9])
                mean, deviation = statistics.fmean(values), statistics.pstdev(values)
                for key, figure, scale in (('mean', mean, 1), ('deviation', deviation, 1),
                                           ('scaled_mean', mean, 255),
                                           ('scaled_deviation', deviation, 255)):
                    self.assertAlmostEqual(part[key][0], figure / scale, delta=1e-6)
                self.assertTrue(all(rate > 0 for rate in part['samples_per_s'].values()))
                self.assertEqual((part['bad_count'], part['bad']), (0, []))

    def test_json_says_how_images_are_normalized(self):
        self.assertIsNone(self.report('folder:set')['normalization'])
        said = self.report('folder:set', '--pipeline', 'normalize -1..1')['normalization']
        self.assertIs(said['reversed'], False)
        self.assertEqual((len(said['scale']), len(said['shift'])), (1, 1))
        self.assertAlmostEqual(said['scale'][0], 2 / 255, delta=1e-9)
        self.assertAlmostEqual(said['shift'][0], -1, delta=1e-9)
        said = self.report('folder:set,channels=3', '--pipeline',
                           'normalize keras-caffe')['normalization']
        self.assertIs(said['reversed'], True)
        for shift, mean in zip(said['shift'], (103.939, 116.779, 123.68)):
            self.assertAlmostEqual(shift, -mean, delta=1e-4)

    def test_text(self):
        done = self.run_program('data', 'folder:set')
        mean, deviation = (f(self.values['train']) for f in (statistics.fmean,
                                                             statistics.pstdev))
        for line in ('set: 3 classes, samples of 7x9x1',
                     'Käse & Öl           5  31.25 %          3  60.00 %',
                     'empty               0   0.00 %          0   0.00 %',
                     'z                  11  68.75 %          2  40.00 %',
                     'all                16                   5',
                     'majority class: train z 68.75 %, test Käse & Öl 60.00 %',
                     'PNG                             16             5',
                     'smallest, h x w                7x9           7x9',
                     f'train, grey         {mean:12.3f}{deviation:12.3f}{mean / 255:15.6f}'
                     f'{deviation / 255:15.6f}'):
            self.assertIn('\n' + line + '\n', '\n' + done.stdout)
        for line in done.stdout.split('\n'):
            self.assertLessEqual(len(line), 80)
            self.assertEqual(line, line.rstrip())
        self.assertNotIn('broken', done.stdout)
        self.assertIn("empty' has no image", done.stderr)

    def test_some_samples(self):
        part = self.report('folder:set', '--samples', '4')['parts'][0]
        self.assertEqual((part['looked_at'], part['samples']), (4, 16))
        self.assertEqual(part['class_counts'], self.counts['train'])
        values = [v for i in (0, 4, 8, 12) for v in self.values['train'][63 * i:63 * (i + 1)]]
        self.assertAlmostEqual(part['mean'][0], statistics.fmean(values), delta=1e-6)
        self.assertIn('\nlooked at 4 of 16 train, 4 of 5 test\n',
                      self.run_program('data', 'folder:set', '--samples', '4').stdout)

    def test_three_parts(self):
        """The validation part is shown beside the test part; samples may be held out."""
        for i in range(6):
            self.put_image(f'set/val/{"Käse & Öl" if i < 2 else "z" * 40}/{i}.png',
                           png(9, 7, lambda x, y: i))
            self.put_image(f'set/train/{"z" * 40}/{i}.png', png(9, 7, lambda x, y: i))
        parts = self.report('folder:set')['parts']
        self.assertEqual([p['part'] for p in parts], ['train', 'val', 'test'])
        self.assertEqual(parts[1]['class_counts'], [2, 0, 0, 4])
        self.assertEqual(parts[2]['class_counts'], [*self.counts['test'], 0])
        for line in self.run_program('data', 'folder:set').stdout.split('\n'):
            self.assertLessEqual(len(line), 80)
        held, = (p for p in self.report('folder:set/train,val=0.25')['parts']
                 if p['part'] == 'val')
        self.assertEqual(held['class_counts'], [1, 0, 3, 2])
        done = self.run_program('data', 'folder:set,val=0.25')
        self.assertIn("'set/val' is not used: val= holds out a share of the training part "
                      'instead', done.stderr)
        done = self.run_program('data', 'folder:set/train,val=0.25')
        self.assertNotIn('is not used', done.stderr)

    def test_columns(self):
        """Numbers of a table are shown by the names of their columns, and fields=* takes those
        of numbers alone."""
        self.put('t.csv', 'width,kind,height\n1,a,4\n2,b,\n3,a,8\n')
        done = self.run_program('data', 'csv:t.csv,fields=*,max_bad=1')
        self.assertIn("'t.csv': column 'kind' has no number; fields=* leaves it out",
                      done.stderr)
        for name, mean in ('width', '2 '), ('height', '6 '):
            self.assertRegex(done.stdout, rf'\nall, {name} +2 +{mean}')
        report = self.report('csv:t.csv,fields=*,label=kind,max_bad=1')
        self.assertEqual([n['name'] for n in report['parts'][0]['numbers']],
                         ['width', 'height'])
        self.put('words.csv', 'a,b\nx,y\n')
        self.refused(3, "'words.csv' has no column of numbers but labels", 'data',
                     'csv:words.csv,fields=*,label=a')

    def test_one_part(self):
        done = self.run_program('data', 'folder:set/train', '--json')
        self.assertEqual([p['part'] for p in json.loads(done.stdout)['parts']], ['all'])
        self.assertIn('one part only: ', done.stderr)
        part, = self.report('folder:set,part=test')['parts']
        self.assertEqual(part['class_counts'], self.counts['test'])

    def test_refusals(self):
        self.refused(2, 'needs one SPEC', 'data')
        self.refused(2, "found 'x'", 'data', 'folder:set', '--samples', 'x')
        self.refused(2, "found '9x'", 'data', 'folder:set', '--crop', '9x')
        self.refused(2, '99x9', 'data', 'folder:set', '--crop', '99x9')
        self.refused(2, 'augment', 'data', 'folder:set', '--augment', 'spin=1')
        self.refused(2, 'max_bad', 'data', 'folder:set', '--max-bad', 'all')
        self.refused(2, 'unknown data', 'data', 'fodler:set')
        self.refused(3, 'there is no folder', 'data', 'folder:nowhere')
        self.refused(3, 'no/grid.png', 'data', 'folder:set', '--grid', 'no/grid.png')


class Broken(DataTest):
    def setUp(self):
        super().setUp()
        for i in range(40):
            self.put_image(f'set/{"ab"[i % 2]}/{i:02}.png',
                           png(4 + i, 30, lambda x, y: 3 * i))
        whole = png(4, 4, lambda x, y: 9)
        self.put('set/a/04.png', b'')
        self.put('set/a/08.png', whole[:50])
        self.put('set/b/07.png', b'GIF89a' + bytes(30))
        os.remove(self.path('set/b/09.png'))
        os.symlink('gone.png', self.path('set/b/09.png'))  # listed, but not there
        os.rename(self.path('set/a/02.png'), self.path('set/a/02.jpeg'))
        self.broken = ['a/04.png', 'a/08.png', 'b/07.png', 'b/09.png']

    def check(self, part):
        self.assertEqual(part['bad_count'], 4)
        self.assertEqual(part['class_counts'], [20, 20])
        self.assertEqual(part['good'], 36)
        for name, said, note in zip(self.broken, ['found nothing', '', 'found GIF', 'No such'],
                                    part['bad'], strict=True):
            self.assertIn(name, note['text'])
            self.assertIn(said, note['text'])
        self.assertEqual([(n['sample'], 'a/02.jpeg' in n['text']) for n in part['misnamed']],
                         [(1, True)])
        self.assertEqual(part['files']['smallest'], [30, 4])
        self.assertEqual(part['files']['median'], [30, 25])  # the 18th of 36
        self.assertEqual(part['files']['largest'], [30, 43])
        left = [3 * i for i in range(40) if i not in (4, 8, 7, 9)]
        self.assertAlmostEqual(part['mean'][0], statistics.fmean(left), delta=1e-6)
        self.assertAlmostEqual(part['deviation'][0], statistics.pstdev(left), delta=1e-6)

    def test_allowed(self):
        for most in '4', '10%':
            done = self.run_program('data', 'folder:set', '--json', '--max-bad', most)
            self.check(json.loads(done.stdout)['parts'][0])
            self.assertNotIn('are broken', done.stderr)

    def test_too_many(self):
        for arguments in ['folder:set'], ['folder:set', '--max-bad', '3']:
            done = self.run_program('data', *arguments, '--json', status=3)
            self.check(json.loads(done.stdout)['parts'][0])
            self.assertIn('all: 4 of 40 samples are broken; --max-bad allows ', done.stderr)
        self.run_program('data', 'folder:set,max_bad=3', status=3)

    def test_text(self):
        text = self.run_program('data', 'folder:set', '--max-bad=4').stdout
        self.assertRegex(text, r'\nbroken +4\n')
        self.assertIn('\nbroken: all, 4 of 40\n', text)
        for name in self.broken:
            self.assertRegex(text, fr"\n +\d+  [^\n]*{name}': ")
        self.assertIn('\nnamed as another format: all, 1 of 40\n', text)

    def test_nothing_whole(self):
        self.put_image('junk/a/1.png', b'junk')
        self.refused(3, 'junk/a/1.png', 'data', 'folder:junk')
        done = self.run_program('data', 'folder:junk,size=4x4,channels=1', '--grid', 'g.png',
                                status=3)
        self.assertIn('1 of 1 samples are broken', done.stderr)
        self.assertFalse(os.path.exists(self.path('g.png')))

    def test_names_of_codes(self):
        """A terminal gets none of its own, nor bytes that are no UTF-8; of messages neither."""
        odd = os.fsencode(self.path('odd'))
        for name in b'\xff\x1b[2J', b'\x9b2J\x7f', 'é\x9b2J \u202etxt.\u2069'.encode():
            os.makedirs(odd + b'/' + name)
            with open(odd + b'/' + name + b'/\x1b[1m.png', 'wb') as file:
                file.write(png(3, 3, lambda x, y: 1))
        os.makedirs(odd + b'/none\x1b[2J\x9b')
        with open(odd + b'/\xff\x1b[2J/2\x1b[2J.png', 'wb') as file:
            file.write(b'broken')
        self.assertEqual(self.report('folder:odd', '--max-bad', '1')['classes'],
                         ['none\x1b[2J\\x9b', '\\x9b2J\x7f', 'é\x9b2J \u202etxt.\u2069',
                          '\\xff\x1b[2J'])
        done = self.run_program('data', 'folder:odd', '--max-bad', '1', '--grid', 'g.png')
        for line in r'none\?\[2J\? ', r'é\?2J \?txt\.\? ', r'\?2J\? ', r'\?\?\[2J ':
            self.assertRegex(done.stdout, '\n' + line)
        self.assertIn("/??[2J/2?[2J.png': expected", done.stdout)
        self.assertIn("/none?[2J?' has no image", done.stderr)
        for text in done.stdout, done.stderr:
            self.assertNotRegex(text, '[^\n -~é]')
        read_png(self.path('g.png'))


class Grid(DataTest):
    GAP, PAPER = 16, (246, 246, 246)

    def tiles(self, path, side):
        """(colour of the tile's middle, the picture below it) of each of the sheet's tiles."""
        width, height, rows = read_png(path)
        step, top = side + self.GAP, 2 * 8 + 2 * self.GAP
        row_height = side + 2 * 8 + self.GAP + self.GAP // 2
        self.assertEqual((width - self.GAP) % step, 0)
        self.assertEqual((height - top) % row_height, 0)
        self.assertTrue(any(p != self.PAPER for row in rows[:top] for p in row))  # the title
        for y in range(top, height, row_height):
            for x in range(self.GAP, width - step + 1, step):
                tile = {p for row in rows[y:y + side] for p in row[x:x + side]}
                below = tuple(tuple(row[x - 4:x + side + 4])
                              for row in rows[y + side:y + row_height])
                if tile != {self.PAPER}:
                    yield tile, below

    def test_labels(self):
        """Images of one colour a class stand above one name a class, however turned."""
        names = ['bird', 'cat', 'Żółw']
        for i in range(70):
            self.put_image(f'set/{names[i % 3]}/{i}.png',
                           png(40, 40, lambda x, y: i % 3 * 90))
        self.run_program('data', 'folder:set', '--grid', 'g.png', '--crop', '32x32',
                         '--augment', 'flip=both rotate=20 padding=2')
        found = list(self.tiles(self.path('g.png'), 4 * 32))
        self.assertEqual(len(found), 48)
        names = {}
        for tile, below in found:
            self.assertEqual(len(tile), 1)
            names.setdefault(tile.pop(), set()).add(below)
        self.assertEqual(set(names), {(v, v, v) for v in (0, 90, 180)})
        self.assertTrue(all(len(pictures) == 1 for pictures in names.values()))
        self.assertEqual(len(set.union(*names.values())), 3)
        for colour, below in names.items():
            self.assertTrue(any(p != self.PAPER for row in min(below) for p in row), colour)

    def test_is_what_the_seed_says(self):
        for seed in '1', '1', '2':
            self.run_program('data', 'synthetic:digits,count=99', '--grid', f'{seed}.png',
                             '--seed', seed, '--augment', 'rotate=10')
            with open(self.path(f'{seed}.png'), 'rb') as file:
                if seed == '1':
                    first = file.read()
                else:
                    self.assertNotEqual(file.read(), first)
        self.run_program('data', 'synthetic:digits,count=99', '--grid', 'same.png', '--seed',
                         '1', '--augment', 'rotate=10', '--data-threads', '3')
        with open(self.path('same.png'), 'rb') as file:
            self.assertEqual(file.read(), first)

    def test_any_shape(self):
        for width, height, count in (1, 200, 1), (300, 7, 9), (700, 600, 2):
            for i in range(count):
                self.put_image(f'{width}/class with a very long name {i % 2}/{i}.png',
                               png(width, height, lambda x, y: x % 256))
            self.run_program('data', f'folder:{width}', '--grid', 'g.png')
            found = read_png(self.path('g.png'))
            self.assertLess(found[0], 3000)


class Progress(DataTest):
    def test_on_a_terminal(self):
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 40, 0, 0))
        process = subprocess.Popen([PROGRAM, 'data', 'synthetic:digits,count=200000'],
                                   cwd=self.folder, stdin=follower, stdout=subprocess.PIPE,
                                   stderr=follower, env=self.environment(TERM='xterm'))
        os.close(follower)
        text = b''
        try:
            while piece := os.read(leader, 65536):
                text += piece
        except OSError:  # the other end is closed
            pass
        os.close(leader)
        process.stdout.read()
        process.stdout.close()
        self.assertEqual(process.wait(), 0)
        lines = re.findall(r'\r([^\r\n\x1b]+)\x1b\[J\r', text.decode())
        self.assertGreater(len(lines), 0)
        for line in lines:
            self.assertLess(len(line), 40)
            self.assertRegex(line, r'^(train|test): \d+ of \d+ sam')
        self.assertTrue(text.endswith(b'\r\x1b[J\r'), text[-80:])


if __name__ == '__main__':
    program.main()
