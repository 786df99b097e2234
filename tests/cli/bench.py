"""lockstep bench: its figures as JSON and as a page; several of them side by side."""
import copy
import json
import os
import re

import program
from document import read
from program import ProgramTest

PASSES = {'forward', 'dgrad', 'wgrad'}


class Figures(ProgramTest):
    def bench(self, *arguments):
        """What it prints, and the figures it writes."""
        text = self.run_program('bench', *arguments, '--seconds', '0.01', '--batch-size', '16',
                                '--json', 'b.json', '--html', 'b.html').stdout
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
        self.assertEqual((figures['kernels'], figures['math']), ([], 'normal'))
        self.assertIsNone(figures['averaging'])
        model, = figures['models']
        self.assertEqual((model['name'], model['batch']), ('mlp', 16))
        for name in 'samples_per_s', 'step_ms', 'build_s', 'peak_bytes':
            self.assertGreater(model[name], 0, name)
        self.assertAlmostEqual(model['samples_per_s'] * model['step_ms'], 16e3, delta=1)
        self.assertIn('\nmlp ', text)
        root = read(self, self.path('b.html'))
        page = ''.join(root.itertext())
        for fact in device['name'], device['driver'], device['version'], figures['date']:
            self.assertIn(fact, page)
        self.assertEqual(len(list(root.iter('figure'))), 1)

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
            self.assertRegex(k['algorithm'], r'^[a-z]\w+( \S+)*$')
            self.assertEqual(k['algorithm'] == 'clblast', k['reference'])
            for name in 'ms', 'gflops', 'gbs', 'percent_of_peak', 'host_us':
                self.assertGreater(k[name], 0, name)
            self.assertAlmostEqual(k['flops'] / k['ms'] * 1e-6 / k['gflops'], 1, places=6)
            self.assertAlmostEqual(k['bytes'] / k['ms'] * 1e-6 / k['gbs'], 1, places=6)
        first = kernels[0]
        self.assertEqual(first['flops'], 2 * 784 * 1024 * 16)
        self.assertEqual(first['bytes'], 4 * (16 * (784 + 1024) + 785 * 1024))
        root = read(self, self.path('b.html'))
        roofline, *charts = root.iter('figure')
        points = [use for use in roofline.find('svg').iter('use')]
        self.assertEqual(len(points), 8)
        self.assertEqual(len(charts), 3)
        for chart in charts:
            self.assertIn(chart.find('figcaption').text.removeprefix('dense '),
                          {k['shape'] for k in kernels})
        bars = [r for c in charts for r in c.iter('rect') if r.get('class') != 'bed']
        self.assertEqual(len(bars), 11)
        rows = [[cell.text for cell in row] for row in root.iter('tr')]
        self.assertEqual(len([row for row in rows if row[0] == 'wgrad, matrix']), 3)
        self.assertEqual(len(re.findall(r'^dense .* GFLOPS .* GB/s .* %', text, re.M)), 11)

    def test_wrong_words(self):
        self.refused(2, "did you mean 'mlp'?", 'bench', 'mlq')
        self.refused(2, "did you mean 'densenet121'?", 'bench', 'densenet12')
        self.refused(2, "did you mean 'kernels:mlp'?", 'bench', 'kernels:mlpp')
        self.refused(2, "did you mean 'text-lstm'?", 'bench', 'text-lstn')
        self.refused(2, ["'--math'", "found 'exact'"], 'bench', 'mlp', '--math', 'exact')
        for seconds in '0', '-1', 'nan', 'inf', '1e9', 'x', '':
            self.refused(2, ["'--seconds'", f"found '{seconds}'"], 'bench', 'mlp',
                         '--seconds=' + seconds)

    def test_settings_of_a_model(self):
        """They are in its name, so that figures of two sizes are not taken for one another."""
        said = self.run_program('bench', 'text-lstm', '--set', 'width=32', '--set', 'units=16',
                                '--seconds', '0.01', '--batch-size', '16', '--json',
                                'b.json').stdout
        self.assertIn('text-lstm with width=32 units=16\n', said)
        with open(self.path('b.json')) as file:
            model, = json.load(file)['models']
        self.assertEqual(model['name'], 'text-lstm width=32 units=16')
        for words in (), ('mlp', 'vgg16'), ('kernels',), ('averaging',):
            self.refused(2, '--set needs one MODEL', 'bench', *words, '--set', 'classes=3')
        self.refused(2, "unknown option 'widht'", 'bench', 'text-lstm', '--set', 'widht=3')

    def test_what_fails_keeps_what_was_measured(self):
        """A batch that no device has room for, behind one that fits."""
        done = self.run_program('bench', 'mlp', 'vgg16', '--seconds', '0.01', '--batch-size',
                                '16384', '--json', 'b.json', status=4)
        self.assertIn('device memory', done.stderr)
        with open(self.path('b.json')) as file:
            self.assertEqual([m['name'] for m in json.load(file)['models']], ['mlp'])

    def test_unwritable(self):
        """Found before anything is measured; what is there stays as it is."""
        self.put('old.json', 'old')
        self.put('old.html', 'old')
        for json_file, page in (('none/b', 'new'), ('new', 'none/b'), ('old.json', 'none/b'),
                                ('none/b', 'old.html')):
            self.refused(3, 'none/b', 'bench', 'mlp', '--json', json_file, '--html', page)
        self.refused(3, 'it is a folder', 'bench', 'mlp', '--html', '.')
        self.refused(3, 'name is empty', 'bench', 'mlp', '--json', '')
        self.assertEqual(sorted(os.listdir(self.folder)), ['old.html', 'old.json', 'tiny.yaml'])
        for name in 'old.json', 'old.html':
            with open(self.path(name)) as file:
                self.assertEqual(file.read(), 'old')


def kernel(**changes):
    return {'set': 'mlp', 'op': 'dense', 'pass': 'forward', 'shape': '[8] units=3, n 4',
            'algorithm': 'direct', 'reference': False, 'memory_bound': False, 'flops': 192,
            'bytes': 284, 'ms': 2.0, 'gflops': 0.1, 'gbs': 0.2, 'percent_of_peak': 12.5,
            'host_us': 3.0, 'build_ms': 40.0, **changes}


def model(**changes):
    return {'name': 'mlp', 'batch': 64, 'samples_per_s': 1000.0, 'step_ms': 64.0,
            'build_s': 1.5, 'peak_bytes': 1 << 20, **changes}


def figures_of(name, **changes):
    return {'lockstep': '0.1.0', 'date': '2024-02-03T04:05:06Z',
            'device': {'name': name, 'driver': '1.2', 'fma_gflops': 100.0,
                       'bandwidth_gbs': 10.0, 'enqueue_us': 1.0, 'launch_us': 2.0,
                       'round_trip_us': 3.0},
            'models': [model()], 'kernels': [kernel()], 'averaging': None, **changes}


class Compare(ProgramTest):
    def put_figures(self, name, figures):
        self.put(name, json.dumps(figures))

    def put_two(self):
        """B does forward 8 times as fast and wgrad half as fast, and lacks dgrad."""
        passes = [kernel(), kernel(**{'pass': 'wgrad'}), kernel(**{'pass': 'dgrad'}),
                  kernel(algorithm='clblast', reference=True, ms=1.0)]
        self.put_figures('a.json', figures_of('first', kernels=passes))
        self.put_figures('b.json', figures_of('<b>second</b>\x1b[31m\x9b1m\u202e', kernels=[
            kernel(ms=0.25, algorithm='winograd2', percent_of_peak=250.0),
            kernel(**{'pass': 'wgrad', 'ms': 4.0}),
            kernel(algorithm='clblast', reference=True, ms=0.001)],
            models=[model(samples_per_s=3000.0), model(name='vgg16')]))

    def test_prints_ratios(self):
        self.put_two()
        text = self.run_program('bench', '--compare', 'a.json', 'b.json').stdout
        self.assertIn('A  first, driver 1.2  (a.json)', text)
        self.assertIn('B  <b>second</b>?[31m?1m?, driver 1.2  (b.json)', text)
        for row in (r'dense forward +2\.00 ms x1\.00 +0\.250 ms x8\.00 +\[8\] units=3, n 4',
                    r'dense wgrad +2\.00 ms x1\.00 +4\.00 ms x0\.50',
                    r'dense dgrad +2\.00 ms x1\.00 +-',
                    r'dense forward \* +1\.00 ms x1\.00 +0\.001\d* ms x1000',
                    r'geometric mean +of 3 x1\.00 +of 2 x2\.00',
                    r'mlp n 64 +1\.00k x1\.00 +3\.00k x3\.00', r'vgg16 n 64 +- +1\.00k\n',
                    r'geometric mean +of 1 x1\.00 +of 1 x3\.00'):
            self.assertRegex(text, '\n' + row)

    def test_prints_odd_numbers(self):
        """In their columns."""
        self.put_figures('a.json', figures_of('first'))
        self.put_figures('b.json', figures_of('second', kernels=[kernel(ms=1e-30)],
                                              models=[model(samples_per_s=1e18)]))
        text = self.run_program('bench', '--compare', 'a.json', 'b.json').stdout
        self.assertRegex(text, r'\ndense forward +2\.00 ms x1\.00 +1e-30 ms x2e\+30 ')
        self.assertRegex(text, r'\nmlp n 64 +1\.00k x1\.00 .* x1e\+15')

    def test_draws(self):
        self.put_two()
        self.put_figures('c.json', figures_of('third', kernels=[], models=[]))
        done = self.run_program('bench', '--compare', 'a.json', 'b.json', 'c.json', '--html',
                                'page.html')
        self.assertEqual(done.stderr, '')
        root = read(self, self.path('page.html'))
        page = ''.join(root.itertext())
        self.assertIn('B: <b>second</b>?[31m?1m?', page)
        rows = [[cell.text for cell in row] for row in root.iter('tr')]
        self.assertIn(['B: <b>second</b>?[31m?1m?', '100', '10.0', 'x2.00 (2)', 'x3.00 (1)'],
                      rows)
        self.assertIn(['forward', '2.00', '0.250', 'x8.00', '-', None], rows)
        # two models, three rooflines, one operation
        self.assertEqual(len(list(root.iter('figure'))), 6)
        self.assertEqual(sorted(os.listdir(self.folder)),
                         ['a.json', 'b.json', 'c.json', 'page.html', 'tiny.yaml'])

    def test_shows_one_file(self):
        self.put_two()
        text = self.run_program('bench', '--compare', 'b.json', '--html', 'p.html').stdout
        self.assertRegex(text, r'\ndense wgrad +4\.00 ms x1\.00 +\[8\] units=3, n 4\n')
        root = read(self, self.path('p.html'))
        rows = [[cell.text for cell in row] for row in root.iter('tr')]
        self.assertIn(['file', 'b.json'], rows)
        self.assertIn(['forward, winograd2', '0.250', '0.100', '0.200', '250', '0.676', '3.00',
                       '40.0'], rows)

    def test_replaces_the_page_only(self):
        self.put_two()
        self.put('page.html', 'old')
        self.run_program('bench', '--compare', 'a.json', 'b.json', '--html', 'page.html')
        read(self, self.path('page.html'))
        os.symlink('a.json', self.path('link.json'))
        for page in 'a.json', './a.json', 'link.json':
            self.refused(2, f"would replace '{page}'", 'bench', '--compare', 'a.json', 'b.json',
                         '--html', page)
        done = self.run_program('bench', '--compare', 'a.json', 'b.json', '--html',
                                'none/p.html', status=3)
        self.assertIn('none/p.html', done.stderr)

    def test_many_devices(self):
        for i in range(8):
            self.put_figures(f'{i}.json', figures_of(f'device {i}', kernels=[
                kernel(shape=f'[{n}] units=3, n 4', ms=1.0 + i) for n in range(40)]))
        names = [f'{i}.json' for i in range(8)]
        text = self.run_program('bench', '--compare', *names, '--html', 'p.html').stdout
        self.assertRegex(text, r'geometric mean +of 40 x1\.00 .* of 40 x0\.12')
        read(self, self.path('p.html'))
        self.refused(2, ['1 to 8 files', 'found 9'], 'bench', '--compare', *names, names[0])

    def test_wrong_usage(self):
        self.put_two()
        self.refused(2, ['1 to 8 files', 'found 0'], 'bench', '--compare')
        for option in ('--json=f', '--seconds=1', '--batch-size=3', '--device=0', '--size=3',
                       '--math=fast', '--set=classes=3'):
            self.refused(2, [option.split('=')[0], 'measures nothing'], 'bench', '--compare',
                         'a.json', 'b.json', option)
        self.refused(2, "same file 'f'", 'bench', 'mlp', '--json', 'f', '--html', 'f')

    def refused_file(self, content, *said):
        """Both as the first and as the second file, with its name."""
        self.put('bad.json', content)
        self.put_figures('a.json', figures_of('a'))
        for files in (['bad.json', 'a.json'], ['a.json', 'bad.json']):
            done = self.refused(3, ["'bad.json'", *said], 'bench', '--compare', *files,
                                '--html', 'p.html')
            self.assertEqual(done.stderr.count('\n'), 1)
            self.assertTrue(done.stderr[:-1].isprintable(), done.stderr)
            self.assertFalse(os.path.exists(self.path('p.html')))

    def test_files_that_are_no_json(self):
        whole = json.dumps(figures_of('a'))
        for content in ('', '{', whole[:-1], whole[:99], whole + '}', '\x1b[31m', '[' * 9999,
                        '\0' + whole, whole.replace('"driver"', '"name": "b", "driver"'),
                        '{"device": 1e999}', '{"a\x80": 1}'.encode('latin1')):
            self.refused_file(content, 'is not JSON: line 1, column')
        self.refused_file(' ' * (17 << 20), 'at most 16777216')
        self.put_figures('a.json', figures_of('a'))
        self.refused(3, 'none.json', 'bench', '--compare', 'a.json', 'none.json')
        self.refused(3, 'a folder', 'bench', '--compare', 'a.json', '.')

    def test_foreign_documents(self):
        self.refused_file('[]', 'the document: expected an object, found an array of 0')
        for scalar in '"x"', '3', 'null', 'true':
            self.refused_file(scalar, 'is not JSON')
        self.refused_file('{}', 'device: expected an object, found nothing')
        self.refused_file('{"device": {}, "models": [], "kernels": []}', 'device.name')

    def test_wrong_values(self):
        for path, value, expected in (
                (['device'], [], 'expected an object, found an array of 0'),
                (['device', 'name'], 7, 'expected a text of 1 to 512 bytes, found 7'),
                (['device', 'name'], '', 'found ""'),
                (['device', 'name'], 'x' * 513, 'found "xxx'),
                (['device', 'driver'], {}, 'expected a text of up to 512 bytes'),
                (['device', 'fma_gflops'], 0, 'expected a number above 0, found 0'),
                (['device', 'fma_gflops'], None, 'found null'),
                (['device', 'bandwidth_gbs'], '9\x1b[31m', 'found "9?[31m"'),
                (['device', 'launch_us'], -1, 'expected a number from 0 to 1e18, found -1'),
                (['device', 'clock_mhz'], 1e300, 'found 1e+300'),
                (['lockstep'], 3, 'found 3'), (['date'], True, 'found true'),
                (['kernels'], {}, 'expected an array of at most 1024, found an object'),
                (['kernels'], [kernel()] * 1025, 'found an array of 1025'),
                (['models'], None, 'found null'), (['models'], [model()] * 257, 'of 257'),
                (['kernels', 1], 5, 'expected an object, found 5'),
                (['kernels', 1, 'ms'], -2, 'expected a number above 0, found -2'),
                (['kernels', 1, 'ms'], 'fast', 'found "fast"'),
                (['kernels', 1, 'op'], None, 'expected a text'),
                (['kernels', 1, 'shape'], 3.5, 'found 3.5'),
                (['kernels', 1, 'reference'], 1, 'expected true or false, found 1'),
                (['kernels', 1, 'gflops'], [1], 'found an array of 1'),
                (['models', 0, 'batch'], 0, 'found 0'), (['models', 0, 'name'], '', 'found ""'),
                (['models', 0, 'peak_bytes'], 'x', 'found "x"')):
            figures = figures_of('a', kernels=[kernel(), kernel()])
            holder = figures
            for key in path[:-1]:
                holder = holder[key]
            holder[path[-1]] = value
            where = re.sub(r'\.(\d)', r'[\1]', '.'.join(map(str, path)))
            self.refused_file(json.dumps(figures), f' {where}: expected', expected)

    def test_missing_values(self):
        whole = figures_of('a')
        for path in ('device', 'models', 'kernels', 'device.name', 'device.fma_gflops',
                     'device.bandwidth_gbs', 'kernels.0.op', 'kernels.0.pass',
                     'kernels.0.shape', 'kernels.0.algorithm', 'kernels.0.ms',
                     'models.0.name', 'models.0.batch',
                     'models.0.samples_per_s', 'models.0.step_ms'):
            figures = copy.deepcopy(whole)
            holder, keys = figures, path.split('.')
            for key in keys[:-1]:
                holder = holder[int(key) if key.isdigit() else key]
            del holder[keys[-1]]
            self.refused_file(json.dumps(figures), re.sub(r'\.0', '[0]', path) + ': expected',
                              'found nothing')

    def test_what_may_lack(self):
        """Figures that only say what they have to, as earlier versions wrote them."""
        row = {'op': 'relu', 'pass': 'forward', 'shape': '[3]', 'algorithm': 'direct', 'ms': 1}
        few = {'device': {'name': 'a', 'fma_gflops': 1, 'bandwidth_gbs': 2}, 'kernels': [row],
               'models': [{'name': 'm', 'batch': 1, 'samples_per_s': 2, 'step_ms': 500}]}
        self.put_figures('few.json', few)
        text = self.run_program('bench', '--compare', 'few.json', 'few.json', '--html',
                                'p.html').stdout
        self.assertIn('A  a, driver unknown  (few.json)', text)
        self.assertRegex(text, r'\nlaunches in a row, us +- +-\n')
        read(self, self.path('p.html'))



if __name__ == '__main__':
    program.main()
