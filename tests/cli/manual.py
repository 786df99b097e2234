"""The manual and the completion of shells agree with the program and the files it writes."""
import fcntl
import json
import math
import os
import pty
import re
import shutil
import struct
import subprocess
import termios
import unittest

import program
from program import DATA, PROGRAM, ProgramTest

# Options that are those of other programs.
FOREIGN = {'cflags', 'data-binary', 'host', 'libs', 'mca', 'static'}

MODEL = """name: small
input: [28, 28, 1]
layers:
  - {name: two, conv2d: {filters: 2, kernel: 1}}
  - {name: grouped, conv2d: {filters: 6, kernel: [3, 5], stride: 4, groups: 2}}
  - {name: norm, batch_norm: }
  - flatten
  - {name: last, dense: {units: 10}}
  - softmax
"""


class ManualTest(ProgramTest):
    def commands(self):
        text = self.run_program('--help').stdout.split('\ncommands:\n')[1].split('\n\n')[0]
        return re.findall(r'^  ([a-z]+) ', text, re.M)

    def pages(self):
        """The pages as scdoc text, by name."""
        listed = self.run_program('help', '--help').stdout.split('TOPIC:')[1].split("'")[0]
        names = [name if name.startswith('lockstep') else 'lockstep-' + name
                 for name in listed.split()]
        return {name: self.run_program('help', '--source', name).stdout for name in names}

    def options(self, command):
        text = self.run_program(command, '--help').stdout
        return set(re.findall(r'^  (?:-\w, |    )--([a-z-]+)', text, re.M))


class Pages(ManualTest):
    def test_every_command_has_a_page_with_its_options(self):
        pages = self.pages()
        for command in self.commands():
            text = pages[f'lockstep-{command}.1']
            told = text.split('\n# OPTIONS\n')[1].split('\n# ')[0]
            found = set(re.findall(r'^(?:\*-\w\*, )?\*--([a-z-]+)\*', told, re.M))
            self.assertEqual(found - {'help'}, self.options(command), command)
            self.assertIn(f'\n```\nlockstep {command}', text.replace('source <(', ''), command)

    def test_options_that_are_named_exist(self):
        known = set().union(*(self.options(command) for command in self.commands()))
        for name, text in self.pages().items():
            for option in re.findall(r'(?<![\w-])--([a-z][a-z-]*)', text):
                self.assertIn(option, known | FOREIGN | {'help', 'version'}, name)

    def test_examples_parse(self):
        for command in self.commands():
            known = self.options(command)
            text = self.run_program(command, '--help').stdout.split('\nexamples:\n')[1]
            for line in re.findall(r'^  lockstep (.*)', text, re.M):
                for option in re.findall(r' --([a-z-]+)', line):
                    self.assertIn(option, known, line)

    def test_pages_that_are_named_exist(self):
        pages = self.pages()
        for name, text in pages.items():
            for other, section in re.findall(r'\b(lockstep(?:-[a-z]+)?)\((\d)\)', text):
                self.assertIn(f'{other}.{section}', pages, name)

    def test_names_every_stage(self):
        text = self.pages()['lockstep-data.7'].split('\n## Stages\n')[1].split('\n## ')[0]
        script = self.run_program('completion', 'bash').stdout
        stages = re.search(r'--pipeline\) COMPREPLY=\(\$\(compgen -W "([^"]*)"', script)[1]
        self.assertIn('standardize', stages.split())
        for stage in stages.split():
            self.assertRegex(text, fr'(?m)^\*[^\t]*\*{stage}\*|^\*{stage}\*')

    def test_names_words_of_the_library(self):
        pages = self.pages()
        for word in ('conv2d', 'filters', 'gelu', 'top_k', 'root_mean_squared_error',
                     'count_padding', 'delta'):
            self.assertIn(f'*{word}*', pages['lockstep-model.5'].replace('\\', ''))
        for word in ('batch_size', 'weight_decay', 'nesterov', 'warmup', 'all_reduce'):
            self.assertIn(f'*{word}*', pages['lockstep-train.1'].replace('\\', ''))

    @unittest.skipUnless(shutil.which('scdoc'), 'scdoc is not installed')
    def test_scdoc_takes_them(self):
        for name, text in self.pages().items():
            done = subprocess.run(['scdoc'], input=text, text=True, capture_output=True)
            self.assertEqual((done.returncode, done.stderr), (0, ''), name)
            self.assertNotIn('\n@', text, name)


class Files(ManualTest):
    def header(self, path):
        with open(self.path(path), 'rb') as file:
            return json.loads(file.read(struct.unpack('<Q', file.read(8))[0]))

    def names(self, page):
        """All that a page sets bold or underlined."""
        text = self.pages()[page]
        return set(re.findall(r'[*_]([a-z0-9_]+?)[*_](?![a-z0-9])', text))

    def keys(self, value):
        """All keys of objects within a value."""
        if isinstance(value, list):
            return set().union(*map(self.keys, value), set())
        if not isinstance(value, dict):
            return set()
        return set(value).union(*map(self.keys, value.values()), set())

    def test_names_what_a_run_writes(self):
        told = self.names('lockstep-run.5')
        self.train('--run', 'mixed', '--epochs', '1', '--precision', 'mixed')
        self.train('--run', 'async', '--epochs', '1', '--mode', 'async', '--device', '0*2',
                   '--shards', '2')
        for run in 'mixed', 'async':
            for event in self.events(run):
                self.assertIn(event['event'], told)
                self.assertLessEqual(self.keys(event), told | {'event'}, event)
        with open(self.path('mixed/env.json')) as file:
            about = json.load(file)
        del about['algorithms']
        self.assertLessEqual(self.keys(about), told)
        last = sorted(os.listdir(self.path('mixed/checkpoints')))[-1]
        metadata = self.header('mixed/checkpoints/' + last)['__metadata__']
        self.assertLessEqual(set(metadata), told)
        for name in sorted(os.listdir(self.path('mixed'))):
            self.assertIn(f'*{name}', self.pages()['lockstep-run.5'])

    def test_arrays_lie_as_is_told(self):
        self.put('small.yaml', MODEL)
        self.run_program('train', 'small.yaml', '--data', DATA, '--run', 'out', '--epochs', '1',
                         '--batch-size', '64')
        last = sorted(os.listdir(self.path('out/checkpoints')))[-1]
        header = self.header('out/checkpoints/' + last)
        shapes = {name: array['shape'] for name, array in header.items() if 'shape' in array}
        self.assertEqual(shapes['two.weight'], [1, 1, 1, 2])
        self.assertEqual(shapes['grouped.weight'], [1, 3, 5, 6])  # in / groups, r, s, out
        self.assertEqual(shapes['last.weight'], [6 * 7 * 6, 10])  # in, out
        self.assertEqual(shapes['norm.moving_mean'], [6])
        self.assertEqual(shapes['optimizer.m.last.weight'], [6 * 7 * 6, 10])
        self.assertEqual({array['dtype'] for array in header.values() if 'dtype' in array},
                         {'F32'})


class Arrays(ManualTest):
    """The layouts that lockstep-run(5) tells: with them plain sums give what predict gives."""

    def read(self, path):
        """The arrays of a checkpoint, by name: shape and numbers."""
        with open(self.path(path), 'rb') as file:
            header = json.loads(file.read(struct.unpack('<Q', file.read(8))[0]))
            data = file.read()
        arrays = {}
        for name, array in header.items():
            if name != '__metadata__':
                begin, end = array['data_offsets']
                arrays[name] = (array['shape'], struct.unpack(f'<{(end - begin) // 4}f',
                                                              data[begin:end]))
        return arrays

    def probabilities(self, arrays, image):
        (_, rows, columns, filters), taps = arrays['taps.weight']
        (inputs, units), weights = arrays['last.weight']
        places = [(y, x) for y in range(0, 28 - rows + 1, 8)
                  for x in range(0, 28 - columns + 1, 8)]
        values = [arrays['taps.bias'][1][k] + sum(
            taps[(r * columns + s) * filters + k] * image(x + s, y + r) / 255
            for r in range(rows) for s in range(columns))
            for k in range(filters) for y, x in places]  # channel by channel
        self.assertEqual(len(values), inputs)
        sums = [arrays['last.bias'][1][unit] + sum(
            value * weights[i * units + unit] for i, value in enumerate(values))
            for unit in range(units)]
        powers = [math.exp(value - max(sums)) for value in sums]
        return [power / sum(powers) for power in powers]

    def test_plain_sums_give_the_same(self):
        def image(x, y):
            return (x * x * 3 + y * 29 + x * y) % 256
        self.put('image.png', program.png(28, 28, image))
        self.put('sums.yaml', 'input: [28, 28, 1]\nlayers:\n'
                 '  - {name: taps, conv2d: {filters: 3, kernel: [3, 5], stride: 8}}\n'
                 '  - flatten\n  - {name: last, dense: {units: 10}}\n  - softmax\n')
        self.run_program('train', 'sums.yaml', '-d', DATA, '-o', 'out', '-e', '1', '-b', '64')
        found = json.loads(self.run_program('predict', 'out', 'image.png', '--top', '10',
                                            '--json').stdout)
        told = {row['class']: row['probability'] for row in
                found[0]['predictions']}
        checkpoint = sorted(os.listdir(self.path('out/checkpoints')))[-1]
        expected = self.probabilities(self.read('out/checkpoints/' + checkpoint), image)
        self.assertEqual(len(told), 10)
        for number, probability in enumerate(expected):
            self.assertAlmostEqual(told[number], probability, places=4)


class Terminal(ManualTest):
    def shown(self, columns, *arguments, **environment):
        """What a terminal of so many columns gets."""
        main, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
        process = subprocess.Popen([PROGRAM, *arguments], stdin=other, stdout=other,
                                   stderr=other, cwd=self.folder,
                                   env=self.environment(TERM='xterm', **environment))
        os.close(other)
        text = b''
        while True:
            try:
                more = os.read(main, 65536)
            except OSError:  # the other end is closed
                break
            if not more:
                break
            text += more
        os.close(main)
        self.assertEqual(process.wait(), 0)
        return text.decode().replace('\r\n', '\n')

    def test_width_follows_the_terminal(self):
        for columns in 50, 80:
            text = self.shown(columns, 'help', 'tune', PAGER='')
            self.assertIn('\x1b[1m', text)
            plain = re.sub(r'\x1b\[\dm', '', text)
            prose = [line for line in plain.split('\n') if not line.startswith(' ' * 8)]
            self.assertLessEqual(max(map(len, prose)), columns)
            self.assertGreater(max(map(len, prose)), columns - 12)
            help_text = self.shown(columns, 'tune', '--help').split('examples:')[0]
            self.assertLessEqual(max(map(len, help_text.split('\n'))), columns)

    def test_a_pipe_gets_plain_text(self):
        for topic in 'train', 'data', 'model', 'run':
            self.assertNotIn('\x1b', self.run_program('help', topic).stdout)

    def test_a_long_page_goes_to_the_pager(self):
        text = self.shown(80, 'help', 'train', PAGER="sed 's/^/paged: /'")
        self.assertTrue(text.startswith('paged: '))
        self.assertIn('lockstep-train', self.shown(80, 'help', 'train', PAGER='no-such-pager'))

    def test_topics(self):
        data = self.run_program('help', 'data').stdout
        self.assertIn('lockstep-data - show what is in a data set', data)
        self.assertIn(self.run_program('help', 'data.7').stdout, data)
        self.assertIn('[TOPIC]', self.run_program('help', 'help').stdout)
        self.refused(2, "no page 'modl'; did you mean 'model'?", 'help', 'modl')
        self.refused(2, 'found 2 words', 'help', 'train', 'eval')


class Completion(ManualTest):
    def script(self, shell):
        self.put('script', self.run_program('completion', shell).stdout)
        return self.path('script')

    def bash(self, *words):
        """The completions of the last word; bash has cut words at '=' and ':'."""
        code = ('compopt() { :; }; source "$1"; shift; COMP_WORDS=("$@"); '
                'COMP_CWORD=$(($# - 1)); _lockstep; printf "%s\\n" "${COMPREPLY[@]}"')
        folder = os.path.dirname(PROGRAM)
        done = subprocess.run(
            ['bash', '--norc', '-c', code, 'bash', self.script('bash'), *words], text=True,
            capture_output=True, cwd=self.folder,
            env={**self.environment(), 'PATH': folder + ':' + os.environ['PATH']})
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        return done.stdout.split()

    def test_bash(self):
        os.mkdir(self.path('photos'))
        self.assertEqual(self.bash('lockstep', 'tr'), ['train'])
        self.assertEqual(set(self.bash('lockstep', '')),
                         {*self.commands(), '--help', '--version'})
        self.assertIn('--precision', self.bash('lockstep', 'train', 'mlp', '--'))
        self.assertEqual(self.bash('lockstep', 'train', '--precision', 'm'), ['mixed'])
        self.assertEqual(self.bash('lockstep', 'train', '--precision', '=', 'm'), ['mixed'])
        self.assertEqual(self.bash('lockstep', 'train', 'mob'),
                         ['mobilenet-v2', 'mobilenet-v3-large'])
        self.assertEqual(self.bash('lockstep', 'train', 'tin'), ['tiny.yaml'])
        self.assertEqual(self.bash('lockstep', 'train', '-o', 'ph'), ['photos'])
        self.assertEqual(self.bash('lockstep', 'train', '-d', 'fol'), ['folder:'])
        self.assertEqual(self.bash('lockstep', 'train', '--data', 'folder', ':', 'ph'),
                         ['photos'])
        self.assertEqual(self.bash('lockstep', 'train', '--set', 'batch'), ['batch_size='])
        self.assertEqual(self.bash('lockstep', 'train', '--optimizer', 'adamw'), ['adamw'])
        self.assertIn('0', self.bash('lockstep', 'eval', 'out', '--device', ''))
        self.assertEqual(self.bash('lockstep', 'help', 'mod'), ['model'])
        self.assertEqual(self.bash('lockstep', 'bench', 'kernels', ':', 'vgg'), ['vgg16'])

    @unittest.skipUnless(shutil.which('fish'), 'fish is not installed')
    def test_fish(self):
        code = f'source {self.script("fish")}; complete -C $argv'

        def fish(line):
            done = subprocess.run(['fish', '--no-config', '-c', code, line], text=True,
                                  capture_output=True, cwd=self.folder,
                                  env=self.environment(HOME=self.folder))
            self.assertEqual((done.returncode, done.stderr), (0, ''))
            return [row.split('\t')[0] for row in done.stdout.splitlines()]
        self.assertEqual(fish('lockstep tr'), ['train'])
        self.assertEqual(fish('lockstep train --preci'), ['--precision'])
        self.assertEqual(fish('lockstep train --precision '), ['float', 'mixed'])
        self.assertEqual(fish('lockstep train mob'), ['mobilenet-v2', 'mobilenet-v3-large'])
        self.assertEqual(fish('lockstep train ti'), ['tiny.yaml'])

    @unittest.skipUnless(shutil.which('zsh'), 'zsh is not installed')
    def test_zsh(self):
        script = self.script('zsh')
        done = subprocess.run(['zsh', '-f', '-n', script], text=True, capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        # What _arguments gets it can take apart: NAME[TEXT]:VALUE:ACTION.
        code = ('_arguments() { print -rl -- "$@" }; source <(sed \'$d\' $1); '
                'for name in ${(k)functions[(I)_lockstep_[a-z]#]}; do $name; done')
        done = subprocess.run(['zsh', '-f', '-o', 'extendedglob', '-c', code, 'zsh', script],
                              text=True, capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        rows = [row for row in done.stdout.splitlines() if row != '-s']
        self.assertGreater(len(rows), 60)
        row = re.compile(r'(\([^)]*\))?\*?-{1,2}[a-z-]+=?\[(\\.|[^\]\\])*\]'
                         r'(:(\\.|[^:\\])+:_lockstep_[a-z_-]+)?|\*:word:_lockstep_[a-z]+_words')
        for text in rows:
            self.assertRegex(text, fr'^(?:{row.pattern})$')

    def test_refuses(self):
        self.refused(2, "found 'tcsh'", 'completion', 'tcsh')
        self.refused(2, 'bash, zsh or fish', 'completion')


program.main()
