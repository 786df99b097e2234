"""Image folders and IDX files to TFRecord shards and back: what is written, what is refused,
and that nothing is lost when a conversion ends in the middle."""
import glob
import gzip
import importlib.util
import json
import os
import random
import resource
import signal
import struct
import subprocess
import time

import program
import records
from program import PROGRAM, ProgramTest, png

MODEL = """name: small
input: [12, 12, 3]
layers:
  - conv2d: {filters: 4, kernel: 3, activation: relu}
  - flatten
  - dense: {units: 3}
  - softmax
"""


def noise(seed, side=12):
    """A PNG that does not shrink."""
    chance = random.Random(seed)
    return png(side, side, lambda x, y: chance.randrange(256))


class ConvertTest(ProgramTest):
    CLASSES = ['bird', 'cat', 'Hündchen']

    def put_image(self, name, data):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        self.put(name, data)

    def put_set(self, folder='set', parts=('train', 'test', 'val'), images=5):
        """{path below the folder: bytes}, in parts and classes, some nested."""
        made = {}
        for part in parts:
            for i, name in enumerate(self.CLASSES):
                for k in range(images):
                    where = os.path.join(part, name, ['', 'more'][k % 2], f'img{k}.png')
                    made[where] = noise(f'{part} {i} {k}', 12 + i)
                    self.put_image(os.path.join(folder, where), made[where])
        return made

    def convert(self, *arguments, **more):
        return self.run_program('convert', *arguments, **more)

    def examples(self, folder, part):
        """All examples of a part in the order of files and records."""
        return [records.example(r) for path in sorted(glob.glob(self.path(f'{folder}/{part}*')))
                for r in records.read_file(path)]

    def seen(self, folder):
        """Names in a folder, but hidden ones."""
        return sorted(n for n in os.listdir(self.path(folder)) if n[0] != '.')

    def tree(self, folder):
        """{path below the folder: bytes} of all files, but hidden ones."""
        found = {}
        for where, folders, names in os.walk(self.path(folder)):
            folders[:] = [f for f in folders if f[0] != '.']
            for name in (n for n in names if n[0] != '.'):
                path = os.path.join(where, name)
                with open(path, 'rb') as file:
                    found[os.path.relpath(path, self.path(folder))] = file.read()
        return found

    def hash_of(self, data, run):
        self.put('small.yaml', MODEL)
        self.run_program('train', 'small.yaml', '--data', data, '--run', run, '--batch-size',
                         '4', '--steps', '9', '--epochs', '9', '--quiet')
        return self.sha256(run)


class ToRecords(ConvertTest):
    def test_what_is_in_them(self):
        made = self.put_set()
        done = self.convert('folder:set', 'out', '--shards', '4')
        self.assertEqual(done.stderr, '')
        names = [f'{part}-{i:05}-of-00004.tfrecord' for part in ['test', 'train', 'val']
                 for i in range(4)]
        self.assertEqual(self.seen('out'), ['labels.txt', *names])
        for part in 'train', 'test', 'val':
            found = self.examples('out', part)
            paths = sorted(p for p in made if p.startswith(part + '/'))
            paths.sort(key=lambda p: (sorted(self.CLASSES).index(p.split('/')[1]), p))
            self.assertEqual(len(found), len(paths))
            for example, path in zip(found, paths):
                _, name, rest = path.split('/', 2)
                label = sorted(self.CLASSES).index(name)
                side = 12 + self.CLASSES.index(name)
                self.assertEqual(example, {
                    'image/encoded': made[path], 'image/format': b'png',
                    'image/filename': rest.encode(), 'image/class/label': label,
                    'image/class/text': name.encode(), 'image/height': side,
                    'image/width': side})
        with open(self.path('out/labels.txt'), encoding='utf-8') as file:
            self.assertEqual(file.read(), '0:Hündchen\n1:bird\n2:cat\n')
        self.assertRegex(done.stdout, r'class +train +test +val\n')
        self.assertRegex(done.stdout, r'\ncat +5 +5 +5\n')
        self.assertRegex(done.stdout, r'\nsamples +15 +15 +15\nshards +4 +4 +4\n')
        self.assertTrue(done.stdout.endswith(': tfrecord:out\n'))

    def test_trains_to_the_same_bits(self):
        self.put_set(images=7)
        wanted = self.hash_of('folder:set', 'a')
        self.convert('set', 'whole', '--shards', '3')
        self.convert('set', 'small', '--resize', '12x12')
        self.assertEqual(self.hash_of('tfrecord:whole', 'b'), wanted)
        self.assertEqual(self.hash_of('tfrecord:small', 'c'), wanted)
        self.assertEqual(self.examples('small', 'train')[0]['image/height'], 12)

    def test_classes_are_those_of_the_folder(self):
        """labels.txt is read where it fits: the last class may have no sample."""
        self.put_set()
        os.mkdir(self.path('set/train/zebra'))
        self.convert('set', 'out')
        found = json.loads(self.run_program('data', 'tfrecord:out', '--json').stdout)
        self.assertIn('zebra', json.dumps(found))
        self.put('out/labels.txt', '0:one\n1:two\n2:three\n')
        found = json.loads(self.run_program('data', 'tfrecord:out', '--json').stdout)
        self.assertNotIn('three', json.dumps(found))

    def test_threads_change_no_byte(self):
        self.put_set(images=40)
        for threads in '1', '7':
            self.convert('set', 'out' + threads, '--threads', threads, '--shards', '2')
        self.assertEqual(self.tree('out1'), self.tree('out7'))

    def test_keys_and_offset(self):
        self.put_set(parts=['train'])
        target = 'tfrecord:out,image=jpg,label=cls,offset=-1'
        self.convert('set', target)
        found = self.examples('out', 'train')
        self.assertEqual({e['cls'] for e in found}, {1, 2, 3})
        self.assertTrue(all('jpg' in e and 'image/encoded' not in e for e in found))
        self.assertEqual(self.hash_of(target, 'a'),
                         self.hash_of('folder:set', 'b'))
        for wrong in 'image=image/width', 'image=a,label=a', 'imag=a':
            self.refused(2, '', 'convert', 'set', 'tfrecord:other,' + wrong)
        self.assertFalse(os.path.exists(self.path('other')))

    def test_idx(self):
        os.mkdir(self.path('idx'))
        pixels = bytes(i % 251 for i in range(5 * 7 * 6))
        for part, mode in ('train', open), ('t10k', gzip.open):
            ending = '' if mode is open else '.gz'
            with mode(self.path(f'idx/{part}-images-idx3-ubyte{ending}'), 'wb') as file:
                file.write(struct.pack('>IIII', 0x803, 5, 7, 6) + pixels)
            with mode(self.path(f'idx/{part}-labels-idx1-ubyte{ending}'), 'wb') as file:
                file.write(struct.pack('>II', 0x801, 5) + bytes([0, 2, 1, 2, 0]))
        self.convert('idx', 'out')
        self.assertEqual([e['image/class/label'] for e in self.examples('out', 'test')],
                         [0, 2, 1, 2, 0])
        self.assertEqual(set(self.examples('out', 'train')[3]),
                         {'image/encoded', 'image/format', 'image/class/label', 'image/height',
                          'image/width', 'image/filename'})
        self.convert('out', 'files')
        self.assertEqual(sorted(self.tree('files/test')), [
            '0/00000.png', '0/00004.png', '1/00002.png', '2/00001.png', '2/00003.png'])
        self.put('flat.yaml', MODEL.replace('12, 12, 3', '7, 6, 1'))
        hashes = set()
        for data in 'idx:idx', 'tfrecord:out':
            run = data[:3]
            self.run_program('train', 'flat.yaml', '--data', data, '--run', run, '--batch-size',
                             '5', '--steps', '3', '--epochs', '3', '--quiet')
            hashes.add(self.sha256(run))
        self.assertEqual(len(hashes), 1)

    def test_tensorflow_reads_them(self):
        if not importlib.util.find_spec('tensorflow'):
            self.skipTest('TensorFlow is not there')
        os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
        import tensorflow as tf
        made = self.put_set()
        self.convert('set', 'out', '--shards', '2')
        keys = {'image/encoded': tf.string, 'image/format': tf.string,
                'image/filename': tf.string, 'image/class/label': tf.int64,
                'image/class/text': tf.string, 'image/height': tf.int64,
                'image/width': tf.int64}
        features = {k: tf.io.FixedLenFeature([], t) for k, t in keys.items()}
        files = sorted(glob.glob(self.path('out/train*')))
        count = 0
        for record in tf.data.TFRecordDataset(files):
            found = tf.io.parse_single_example(record, features)
            name = found['image/class/text'].numpy().decode()
            file = found['image/filename'].numpy().decode()
            self.assertEqual(made[f'train/{name}/{file}'], found['image/encoded'].numpy())
            self.assertEqual(sorted(self.CLASSES)[found['image/class/label']], name)
            shape = tf.io.decode_image(found['image/encoded']).shape
            self.assertEqual(tuple(shape[:2]), (found['image/height'], found['image/width']))
            count += 1
        self.assertEqual(count, 15)


class ToFolder(ConvertTest):
    def test_there_and_back(self):
        made = self.put_set()
        self.convert('set', 'out', '--shards', '2')
        done = self.convert('out', 'back')
        found = self.tree('back')
        self.assertIn('labels.txt', found)
        del found['labels.txt']
        self.assertEqual(found, made)
        self.assertRegex(done.stdout, r'\nsamples +15 +15 +15\n[0-9.]+ [kM]?B written')

    def test_one_part(self):
        made = self.put_set(parts=['train'])
        self.convert('folder:set', 'out')
        self.convert('tfrecord:out/train*', 'back')
        self.assertEqual({'train/' + p: d for p, d in self.tree('back').items()
                          if p != 'labels.txt'}, made)

    def test_names_that_are_no_paths(self):
        """Records of others: names twice, without ending, outside of the folder."""
        def field(number, data):
            return bytes([number << 3 | 2, len(data)]) + data

        def long_field(number, data):
            return bytes([number << 3 | 2, len(data) & 127 | 128, len(data) >> 7]) + data
        image = png(3, 3, lambda x, y: 9)
        file = b''
        for i, name in enumerate([b'a.png', b'a.png', b'../../b.png', b'/c.png', b'd', b'',
                                  b'.e', b'x/y.png']):
            entries = b''.join(field(1, field(1, key) + field(2, value)) for key, value in [
                (b'image/encoded', field(1, field(1, image))),
                (b'image/class/label', field(3, field(1, bytes([i % 2])))),
                (b'image/class/text', field(1, field(1, [b'../up', b'n/o'][i % 2]))),
                (b'image/filename', field(1, field(1, name)))])
            record = long_field(1, entries)
            header = struct.pack('<Q', len(record))
            file += header + struct.pack('<I', records.masked_crc32c(header))
            file += record + struct.pack('<I', records.masked_crc32c(record))
        self.put('odd.tfrecord', file)
        self.convert('odd.tfrecord', 'in/back')
        self.assertEqual(sorted(self.tree('in')), sorted('back/' + path for path in [
            'labels.txt', '_._up/a.png', '_._up/00002.png', '_._up/d.png', '_._up/00006.png',
            'n_o/a.png', 'n_o/00003.png', 'n_o/00005.png', 'n_o/x/y.png']))

    def test_same_names_in_one_class(self):
        for folder in 'a', 'b':
            self.put_image(f'{folder}/x.png', noise(folder))
        self.put('list.csv', 'a/x.png,0\nb/x.png,0\n')
        self.convert('csv:list.csv', 'folder:out')
        found = self.tree('out')
        self.assertEqual(found['0/x.png'], noise('a'))
        self.assertEqual(found['0/x~1.png'], noise('b'))


class Bad(ConvertTest):
    def test_broken_images(self):
        self.put_set(parts=['train'], images=20)
        self.put('set/train/cat/img3b.png', noise(1)[:100])
        os.symlink('nowhere', self.path('set/train/bird/gone.jpg'))
        self.refused(3, ['2 of 62', 'at most 1 '], 'convert', 'set', 'out', '--max-bad',
                            '2%')
        done = self.convert('set', 'ok', '--max-bad', '2')
        for said in 'img3b.png', 'gone.jpg', 'No such file':
            self.assertIn(said, done.stderr)
        self.assertRegex(done.stdout, r'\nsamples +60\nskipped +2\n')
        with open(self.path('ok/skipped.txt')) as file:
            lines = file.read().splitlines()
        self.assertEqual(len(lines), 2)
        self.assertIn('gone.jpg', lines[0])
        self.assertIn('img3b.png', lines[1])
        self.assertEqual(len(self.examples('ok', 'train')), 60)

    def test_empty_class(self):
        self.put_set(parts=['train'])
        os.mkdir(self.path('set/train/zebra'))
        done = self.convert('set', 'out')
        self.assertIn("zebra' has no image", done.stderr)
        self.assertRegex(done.stdout, r'\nzebra +0\n')

    def test_damaged_records(self):
        self.put_set(parts=['train'])
        self.convert('set', 'out')
        shard, = glob.glob(self.path('out/train*'))
        with open(shard, 'r+b') as file:
            file.seek(200)
            file.write(b'??')
        self.refused(3, 'checksum', 'convert', 'out', 'back')
        done = self.convert('out', 'more', '--max-bad', '1')
        self.assertIn('checksum', done.stderr)
        self.assertRegex(done.stdout, r'\nsamples +14\nskipped +1\n')

    def test_targets_in_the_way(self):
        self.put_set(parts=['train'])
        self.convert('set', 'out', '--shards', '2')
        before = self.tree('out')
        self.refused(2, ["'out' is there already", '--force'], 'convert', 'set', 'out')
        self.assertEqual(self.tree('out'), before)
        self.put('out/mine.txt', 'mine')
        self.convert('set', 'out', '--shards', '3', '--force')
        self.assertEqual(self.seen('out'), ['labels.txt', 'mine.txt'] + [
            f'train-{i:05}-of-00003.tfrecord' for i in range(3)])
        os.mkdir(self.path('out/train'))
        self.refused(2, "'out/train' is in the way", 'convert', 'set', 'out', '--force')
        self.put_image('full/own.png', 'mine')
        self.refused(2, "'own.png' in it", 'convert', 'tfrecord:out/train-*', 'full')
        self.assertEqual(self.tree('full'), {'own.png': b'mine'})
        self.convert('tfrecord:out/train-*', 'full', '--force')
        self.assertEqual(self.tree('full')['own.png'], b'mine')

    def test_source_as_target(self):
        """By whatever name: nothing is written into the source."""
        self.put_set()
        self.convert('set', 'records')
        os.symlink('set', self.path('link'))
        before = self.tree('set'), self.tree('records')
        for source, target in (('set', 'set'), ('set', 'set/'), ('folder:set', './set/new/out'),
                               ('set', self.path('set')), ('set', 'link'), ('link', 'set/x'),
                               ('folder:set/train', 'set/train'), ('records', 'records'),
                               ('tfrecord:records/train*', 'folder:records')):
            self.refused(2, 'the source', 'convert', source, target, '--force')
        self.assertEqual((self.tree('set'), self.tree('records')), before)
        self.convert('set', 'set2', '--shards', '2')
        self.convert('tfrecord:records/train*', 'folder:records/files')

    def test_again(self):
        """A conversion that is complete is no mistake; what was lost since is written anew."""
        self.put_set()
        self.put('set/train/cat/broken.png', noise(1)[:50])
        for target, more in ('out', ['--shards', '2']), ('files', []):
            source = 'set' if target == 'out' else 'out'
            common = ['convert', source, target, *more, '--max-bad', '1']
            self.run_program(*common)
            before = self.tree(target)
            self.assertRegex(self.run_program(*common).stdout, r'\nnothing to do\n0 B written')
            self.assertEqual(self.tree(target), before)
            lost = [name for name in before if 'labels' not in name][1]
            os.unlink(self.path(target + '/' + lost))
            self.assertNotIn('nothing to do', self.run_program(*common).stdout)
            self.assertEqual(self.tree(target), before)
        self.refused(2, "is there already", 'convert', 'set', 'out', '--shards', '3')
        with open(self.path('files/.lockstep-converted')):  # no folder, which were a class
            self.assertFalse(os.path.exists(self.path('files/.lockstep-convert')))

    def test_no_target(self):
        self.put_set(parts=['train'])
        self.put('file', '')
        self.refused(3, 'file/out', 'convert', 'set', 'file/out')
        self.refused(3, '/proc/out', 'convert', 'set', '/proc/out')
        self.refused(2, 'names no folder', 'convert', 'set', 'tfrecord:')

    def test_sources(self):
        self.refused(3, "no 'no/where'", 'convert', 'no/where', 'out')
        self.refused(3, "no folder 'where'", 'convert', 'folder:where', 'out')
        os.mkdir(self.path('empty'))
        self.refused(2, 'say which', 'convert', 'empty', 'out')
        self.put_set(parts=['train'])
        self.refused(2, '--resize', 'convert', 'folder:set,size=3x3', 'out')
        self.refused(2, "found '3'", 'convert', 'set', 'out', '--resize', '3')
        self.refused(2, 'needs SRC and DST', 'convert', 'set')
        self.assertFalse(os.path.exists(self.path('out')))


class Interrupted(ConvertTest):
    SOURCE = 'synthetic:digits,count=12000'

    def start(self, target):
        """A conversion that has put some shards in place and has others before it."""
        process = subprocess.Popen(
            [PROGRAM, 'convert', self.SOURCE, target, '--shards', '30'], cwd=self.folder,
            env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        end = time.monotonic() + 60
        while len(glob.glob(self.path(target + '/train*'))) < 3:
            self.assertIsNone(process.poll(), 'it ended before it was interrupted')
            self.assertLess(time.monotonic(), end)
            time.sleep(0.005)
        return process

    def expect_the_rest(self, target):
        """What is there is whole and stays; the same command makes the rest, to the same bytes
        as without an interruption."""
        there = sorted(glob.glob(self.path(target + '/t*.tfrecord')))
        self.assertGreater(len(there), 0)
        if len(there) < 30:  # of the first part
            for command, *more in ['data'], ['convert', 'folder:back']:
                self.refused(3, ['of 30 files', 'goes on'], command, 'tfrecord:' + target,
                             *more)
        records.read_file(there[-1])
        times = {path: os.stat(path).st_mtime_ns for path in there}
        done = self.convert(self.SOURCE, target, '--shards', '30')
        self.assertIn('going on', done.stderr)
        self.assertIn(f'{len(there)} shards were there', done.stdout)
        self.assertEqual({path: os.stat(path).st_mtime_ns for path in there}, times)
        self.convert(self.SOURCE, 'whole', '--shards', '30')
        self.assertEqual(self.tree(target), self.tree('whole'))

    def test_killed(self):
        process = self.start('out')
        process.kill()
        process.wait()
        self.expect_the_rest('out')

    def test_ctrl_c(self):
        process = self.start('out')
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(20), 130)
        self.assertIn('goes on from there', process.stderr.read())
        self.assertEqual([n for n in self.tree('out/.lockstep-convert')], ['plan'])
        self.expect_the_rest('out')

    def test_torn_meanwhile(self):
        """A shard that was damaged after all is written anew."""
        process = self.start('out')
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(20), 130)
        first = self.path('out/train-00000-of-00030.tfrecord')
        os.truncate(first, os.path.getsize(first) - 3)
        done = self.convert(self.SOURCE, 'out', '--shards', '30')
        self.assertIn('is not whole', done.stderr)
        self.convert(self.SOURCE, 'whole', '--shards', '30')
        self.assertEqual(self.tree('out'), self.tree('whole'))

    def test_other_options(self):
        process = self.start('out')
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(20), 130)
        before = self.tree('out')
        self.refused(2, ['interrupted', '--force'], 'convert', self.SOURCE, 'out', '--shards',
                     '41')
        self.assertEqual(self.tree('out'), before)
        self.convert(self.SOURCE, 'out', '--shards', '41', '--force')
        self.assertEqual(len(glob.glob(self.path('out/train*'))), 41)

    def test_one_at_a_time(self):
        process = self.start('out')
        process.send_signal(signal.SIGSTOP)
        self.refused(3, 'another process', 'convert', self.SOURCE, 'out', '--shards', '30')
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(60), 0)

    def put_growing_set(self):
        """The last shard of four is the largest by far; one image is broken."""
        for i in range(8):
            self.put_image(f'set/cat/{i}.png', noise(i, 120 if i > 5 else 10))
        self.put('set/cat/1.png', noise(1)[:50])

    def test_full_disk(self):
        self.put_growing_set()
        common = ['set', 'out', '--shards', '4', '--max-bad', '1']
        full = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 10, 8 << 10))
        self.refused(3, 'File too large', 'convert', *common, preexec_fn=full)
        names = sorted(n for n in os.listdir(self.path('out')) if n[0] != '.')
        self.assertEqual(names, [f'train-{i:05}-of-00004.tfrecord' for i in range(3)])
        for name in names:
            records.read_file(self.path('out/' + name))
        done = self.convert(*common)
        self.assertIn('1.png', done.stderr)
        self.assertRegex(done.stdout, r'\nsamples +7\nskipped +1\nshards +4\n3 shards were')
        self.convert('set', 'whole', *common[2:])
        self.assertEqual(self.tree('out'), self.tree('whole'))

    def test_full_disk_of_files(self):
        self.put_growing_set()
        self.convert('set', 'out', '--max-bad', '1')
        full = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 10, 8 << 10))
        self.refused(3, 'File too large', 'convert', 'out', 'back', preexec_fn=full)
        self.assertEqual(sorted(os.listdir(self.path('back/cat'))), [
            '0.png', '2.png', '3.png', '4.png', '5.png'])
        done = self.convert('out', 'back')
        self.assertIn('5 files were there', done.stdout)
        self.assertEqual(len(os.listdir(self.path('back/cat'))), 7)
        self.assertEqual(self.seen('back'), ['cat', 'labels.txt'])


class Progress(ConvertTest):
    def test_plain_lines(self):
        self.put_set(parts=['train'])
        done = self.convert('set', 'out', environment={'TERM': 'xterm'})
        self.assertNotIn('\x1b', done.stderr + done.stdout)

    def test_bar(self):
        import fcntl
        import pty
        import re
        import termios
        for columns in 20, 60, 200:
            leader, follower = pty.openpty()
            fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
            process = subprocess.Popen(
                [PROGRAM, 'convert', 'synthetic:digits,count=30000', f'out{columns}'],
                cwd=self.folder, stdin=follower, stdout=follower, stderr=follower,
                env=self.environment(TERM='xterm'))
            os.close(follower)
            text = b''
            try:
                while piece := os.read(leader, 65536):
                    text += piece
            except OSError:  # the other end is closed
                pass
            os.close(leader)
            self.assertEqual(process.wait(), 0, text)
            bars = re.findall(r'\r([^\r\n\x1b]+)\x1b\[J\r', text.decode())
            self.assertGreater(len(bars), 1)
            for bar in bars:
                self.assertLess(len(bar), columns, bar)
        self.assertRegex(bars[-1], r'^converting \w+  [━╸─]+  +\d+%  \d+/\d+  \S+/s  ETA \d+:')


if __name__ == '__main__':
    program.main()
