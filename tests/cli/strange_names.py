"""Names of files that are not UTF-8, and other odd ones: they work everywhere."""
import json
import os
import shutil
import subprocess

import program
from program import MODEL, PROGRAM, ProgramTest

NAMES = [b'caf\xe9', b'\xff\xfe\x80', b'a b"c\'d', b'back\\xe9slash', b'\xc3\xa9\xe2\x82\xac']


class StrangeNames(ProgramTest):
    def run_bytes(self, *arguments, status=0):
        done = subprocess.run([os.fsencode(PROGRAM), *arguments], cwd=self.folder,
                              capture_output=True, timeout=100, stdin=subprocess.DEVNULL,
                              env=self.environment(), check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def put_images(self, folder, classes=(b'a', b'b')):
        for part in b'train', b'test':
            for i, name in enumerate(classes):
                path = os.path.join(os.fsencode(self.folder), folder, part, name)
                os.makedirs(path)
                for j in range(4):
                    with open(os.path.join(path, b'%d.png' % j), 'wb') as file:
                        file.write(program.png(28, 28, lambda x, y, i=i: 40 * i + x))

    def check_json(self, text):
        """Valid UTF-8, and JSON in each line."""
        return [json.loads(line) for line in text.decode().splitlines()]

    def test_everything(self):
        """Trained, evaluated from the checkpoint's own words, gone on with, read as a run
        file."""
        for name in NAMES:
            if b'"' in name:  # options of data are set apart by such characters
                continue
            self.put_images(name)
            spec = b'folder:' + name
            model = name + b'.yaml'
            with open(os.path.join(os.fsencode(self.folder), model), 'wb') as file:
                file.write(MODEL.replace('units: 10', 'units: 2').encode())
            run = b'run ' + name
            train = [b'train', model, b'--data', spec, b'--batch-size', b'4', b'--run', run]
            events = self.run_bytes(*train, b'--epochs', b'1', b'--log-format', b'jsonl').stdout
            self.assertEqual(self.check_json(events)[-1]['steps'], 2)
            self.run_bytes(*train, b'--epochs', b'2', b'--cache', name + b'.cache')
            found = json.loads(self.run_bytes(b'eval', run, b'--json').stdout.decode())
            self.assertEqual(found['samples'], 8)
            image = os.path.join(name, b'test/a/1.png')
            found = json.loads(self.run_bytes(b'predict', run, image, b'--json').stdout)
            self.assertIn('/test/a/1.png', json.dumps(found))
            path = os.path.join(os.fsencode(self.folder), run)
            for inner in b'metrics.jsonl', b'config.yaml', b'env.json':
                with open(os.path.join(path, inner), 'rb') as file:
                    file.read().decode()
            with open(os.path.join(path, b'metrics.jsonl'), 'rb') as file:
                self.assertEqual(self.check_json(file.read())[-1]['steps'], 4)
            shutil.copy(os.path.join(path, b'config.yaml'), self.path('again.yaml'))
            done = self.run_bytes(b'train', b'again.yaml', b'--fresh')
            self.assertIn(b'steps       4\n', done.stdout)
            json.loads(self.run_bytes(b'data', spec, b'--json').stdout.decode())

    def test_classes(self):
        """Folders of classes need not be UTF-8 either."""
        self.put_images(b'data', classes=NAMES)
        with open(self.path('five.yaml'), 'w') as file:
            file.write(MODEL.replace('units: 10', f'units: {len(NAMES)}'))
        self.run_bytes(b'train', b'five.yaml', b'--data', b'folder:data', b'--batch-size', b'4',
                       b'--run', b'run', b'--epochs', b'1')
        self.run_bytes(b'eval', b'run', b'--json').stdout.decode()
        self.run_bytes(b'data', b'folder:data', b'--json').stdout.decode()
        self.run_bytes(b'convert', b'folder:data', b'tfrecord:out')
        self.run_bytes(b'data', b'tfrecord:out/train*', b'--json').stdout.decode()

    def test_run_directories(self):
        for name in NAMES:
            self.run_bytes(b'train', b'tiny.yaml', b'--data', program.DATA.encode(), b'--steps',
                           b'3', b'--set', b'checkpoint_every=1', b'--run', name)
            self.run_bytes(b'train', b'tiny.yaml', b'--data', program.DATA.encode(), b'--steps',
                           b'4', b'--run', name)
            self.run_bytes(b'eval', name)


if __name__ == '__main__':
    program.main()
