"""The page about runs: what it shows, of hostile, torn and missing files too."""
import base64
import fcntl
import json
import os
import re
import shutil
import struct

import program
from document import read
from program import ProgramTest

NASTY = '<script>alert(\'"&"\')</script>\u202e]]>'


class ReportTest(ProgramTest):
    def report(self, *words, status=0, **more):
        """The page as text, and its root."""
        done = self.run_program('report', *words, '-o', 'page.html', status=status, **more)
        self.assertEqual(done.stdout, '')
        root = read(self, self.path('page.html'))
        return ''.join(root.find('body').itertext()), root

    def figures(self, root):
        """The drawings by their titles."""
        return {f.find('figcaption').text: f for f in root.iter('figure')}

    def rows(self, root, caption):
        """A table's rows as lists of texts."""
        table, = [t for t in root.iter('table') if t.find('caption').text == caption]
        return [[''.join(cell.itertext()) for cell in row] for row in table.iter('tr')]

    def facts(self, root, caption):
        return {row[0]: row[1] for row in self.rows(root, caption)}

    def legend(self, figure):
        return [item[0].tail for item in figure.iter('li')]

    def lines(self, run, lines, ending='\n'):
        """A run directory with this metrics.jsonl only."""
        os.makedirs(self.path(run), exist_ok=True)
        self.put(run + '/metrics.jsonl', '\n'.join(
            line if isinstance(line, str) else json.dumps(line) for line in lines) + ending)

    def step(self, step, ms=10.0, **more):
        return {'event': 'step', 'step': step, 'epoch': 0, 'loss': 1 / step, 'accuracy': None,
                'samples': 20, 'samples_per_s': 20000 / ms, 'step_ms': ms, 'lr': 0.5,
                'tries': 1, **more}


class Page(ReportTest):
    def test_one_run(self):
        self.train('--run', 'run', '--epochs', '3', '--val', '25%', '--seed', '4')
        text, root = self.report('run')
        figures = self.figures(root)
        self.assertEqual(list(figures)[:4], ['Loss', 'Accuracy', 'Learning rate', 'Throughput'])
        self.assertTrue(list(figures)[4].startswith('How long steps took'))
        self.assertEqual(list(figures)[5:], ['run: ms of a step, by device'])
        self.assertEqual(self.legend(figures['Loss']), ['training', 'validation'])
        steps, evaluations = self.events('run', 'step'), self.events('run', 'eval')
        training, validation = figures['Loss'].iter('polyline')
        self.assertEqual(len(training.get('points').split()), len(steps))
        self.assertEqual(len(validation.get('points').split()), len(evaluations))
        marks = [u for u in figures['Loss'].find('svg').iter('use')]
        self.assertEqual(len(marks), len(evaluations))
        best = max(e['accuracy'] for e in evaluations)
        self.assertEqual(self.rows(root, 'The run')[1][:5], [
            'run', f'accuracy {100 * best:.2f} %', 'finished', 'tiny.yaml',
            program.DATA + ',val=25%'])
        chosen = self.facts(root, 'Chosen')
        self.assertEqual((chosen['seed'], chosen['batch_size']), ('4', '32'))
        self.assertEqual(self.facts(root, 'At their defaults')['optimizer'], 'adam')
        environment = self.facts(root, 'Program, devices, algorithms')
        with open(self.path('run/env.json')) as file:
            told = json.load(file)
        self.assertEqual(environment['build'], told['build'])
        self.assertEqual(environment['device 0: driver'], told['devices'][0]['driver'])
        self.assertIn(self.events('run', 'start')[0]['text'], text)
        self.assertNotIn('cannot be read', text)
        self.assertNotIn('differs', text)

    def test_several_runs(self):
        self.train('--run', 'a', '--steps', '6')
        self.train('--run', 'b', '--steps', '4', '--lr', '0.5')
        text, root = self.report('a', 'b')
        rows = [row for row in self.rows(root, 'Settings and environment') if len(row) > 1]
        self.assertEqual({row[0]: row[1:] for row in rows},
                         {'': ['a', 'b'], 'steps': ['6', '4'], 'lr': ['0', '0.5']})
        self.assertEqual([row[0] for row in self.rows(root, 'The runs')], ['run', 'a', 'b'])
        loss = self.figures(root)['Loss']
        self.assertEqual({n.split(':')[0] for n in self.legend(loss)}, {'a', 'b'})
        colours = {line.get('class')[:2] for line in loss.iter('polyline')}
        self.assertEqual(colours, {'s0', 's1'})
        shared = self.facts(root, 'Chosen')
        self.assertEqual(shared['batch_size'], '32')
        self.assertFalse({'lr', 'steps'} & set(shared))
        shutil.copytree(self.path('a'), self.path('same'))
        self.assertIn('Nothing: all settings', self.report('a', 'same')[0])

    def test_times(self):
        """Numbers that are known: quantiles, parts of devices, the first step left out."""
        part = {'rank': 0, 'samples': 20, 'compute_ms': 6, 'transfer_ms': 1, 'reduce_ms': 0,
                'wait_ms': 2, 'input_ms': 1,
                'places': [{'compute_ms': 3, 'idle_ms': 1, 'crossing_ms': 0}] * 2}
        lost = {**part, 'rank': 1, 'compute_ms': 16}
        steps = [self.step(i, ms=i, devices=[part, lost if i < 50 else None])
                 for i in range(1, 101)]
        steps[0]['devices'] = [{**part, 'compute_ms': 9999}, None]
        self.lines('run', [{'event': 'start', 'step': 0, 'text': 'x'}] + steps)
        text, root = self.report('run')
        table = self.rows(root, 'Times of steps in ms; samples/s by the median')
        self.assertEqual(table[1], ['run', '100', '400', '50', '50.5', '90', '99', '100'])
        figures = self.figures(root)
        histogram = next(f for n, f in figures.items() if n.startswith('How long'))
        self.assertIn('without 2 longer ones', histogram.find('figcaption').text)
        bars = figures['run: ms of a step, by device']
        widths = [r.get('width') for r in bars.iter('rect') if r.get('class') not in (
            'bed', None)]
        self.assertEqual(widths, ['30.00%', '5.00%', '0.00%', '10.00%', '5.00%',
                                  '80.00%', '5.00%', '0.00%', '10.00%', '5.00%'])
        self.assertEqual([t.text for t in bars.iter('text')],
                         ['0', '10 ms', '1, rank 1', '20 ms'])
        self.assertIn('computing 16 ms', text)
        places = figures['run: ms of a step, by device of group 0']
        self.assertEqual([t.text for t in places.iter('text')], ['0.0', '4 ms', '0.1', '4 ms'])

    def test_evaluation(self):
        self.train('--run', 'run', '--steps', '20', '--val', '25%')
        self.lines('none', [self.step(1)])
        self.assertNotIn('Evaluation', self.report('run')[0])
        told = json.loads(self.run_program('eval', 'run', '--json').stdout)
        text, root = self.report('run', '--eval', '--batch-size', '64')
        rows = self.rows(root, 'Rows: the class; columns: what it was taken for')
        self.assertEqual([[int(cell) for cell in row[1:]] for row in rows[1:]],
                         told['confusion'])
        names = [c['name'] for c in told['classes']]
        self.assertEqual([row[0] for row in rows[1:]], names)
        self.assertEqual(self.rows(root, 'Classes')[1:], [
            [c['name'], str(c['samples']), f"{100 * c['precision']:.2f} %",
             f"{100 * c['recall']:.2f} %"] for c in told['classes']])
        wrong = sorted((-count, i, j) for i, row in enumerate(told['confusion'])
                       for j, count in enumerate(row) if count and i != j)[:20]
        pairs = self.rows(root, 'What was taken for what, the most frequent first')[1:]
        self.assertEqual([row[:3] for row in pairs],
                         [[names[i], names[j], str(-count)] for count, i, j in wrong])
        self.assertIn(f"{told['samples']} samples: loss {told['loss']:.4f}", text)
        worst = [f for f in root.iter('figure') if f.find('img') is not None]
        seen = {(names[i], names[j]): count for i, row in enumerate(told['confusion'])
                for j, count in enumerate(row) if count and i != j}
        self.assertEqual(len(worst), min(24, sum(seen.values())))
        for figure in worst:
            said = re.fullmatch(r'(.*), taken for (.*) \(sample \d+\)',
                                figure.find('figcaption').text)
            self.assertIn(said.groups(), seen)
            bitmap = base64.b64decode(figure.find('img').get('src').partition(',')[2],
                                      validate=True)
            self.assertEqual(struct.unpack_from('<2sI4xIIiiHH', bitmap),
                             (b'BM', len(bitmap), 54, 40, 28, 28, 1, 24))
            self.assertEqual(len(bitmap), 54 + 28 * 28 * 3)
            self.assertGreater(max(bitmap[54:]), 100)
        text, root = self.report('none', 'run', '--eval', status=3)
        self.assertIn('It cannot be evaluated: ', text)
        self.assertEqual(len(self.rows(root, 'Classes')), 11)
        self.refused(2, "'--batch-size'", 'report', 'run', '--eval', '--batch-size', '0')

    def test_texts(self):
        """The worst mistakes of texts, with blanks between their words."""
        texts = {f'{word} word number {i} of many': label for i in range(40)
                 for word, label in (('yes', 'right'), ('no', 'wrong'))}
        self.put('all.txt', ''.join(f'{label}\t{text}\n' for text, label in texts.items()))
        self.run_program('train', 'text-cnn', '--data', 'text:all.txt,val=0.5', '--batch-size',
                         '16', '--steps', '1', '--lr', '0', '--run', 'words')
        rows = self.rows(self.report('words', '--eval')[1],
                         'The worst mistakes, the worst first')[1:]
        self.assertGreater(len(rows), 0)
        for truth, taken, text in rows:
            self.assertNotEqual(truth, taken)
            self.assertRegex(text, '^(yes|no) word number ')

    def test_long_run(self):
        """Means over steps, of no more points than a screen can show."""
        self.lines('run', [self.step(i) for i in range(1, 5001)])
        text, root = self.report('run')
        loss = self.figures(root)['Loss (points are means of up to 13 steps)']
        points = next(loss.iter('polyline')).get('points').split()
        self.assertEqual(len(points), -(-5000 // 13))
        self.assertLess(os.path.getsize(self.path('page.html')), 100000)


class Strange(ReportTest):
    def test_hostile_names(self):
        name = NASTY.replace('/', '|')
        self.put('model.yaml', program.MODEL)
        os.rename(self.path('model.yaml'), self.path(name + '.yaml'))
        self.run_program('train', name + '.yaml', '--data', program.DATA, '--batch-size', '32',
                         '--steps', '2', '--run', name)
        with open(self.path(name + '/metrics.jsonl'), 'a') as file:
            file.write(json.dumps({'event': 'devices', 'step': 2, 'text': NASTY}) + '\n')
        self.put(name + '/env.json', json.dumps({NASTY: NASTY, 'devices': [{NASTY: [NASTY]}]}))
        for words in [name], [name, name]:
            text, root = self.report(*words)
            self.assertIn("<script>alert('\"&\"')</script>?]]>", text)
            self.assertIn(name.replace('\u202e', '?') + '.yaml', text)

    def test_torn_and_damaged_lines(self):
        lines = [self.step(1), '{"event": "step", "step": 2, "lo', '\x00', '[1, 2]', '7',
                 '{"event": 5}', '{"event": "step"}', '{"event": "eval", "step": "x"}',
                 '{"event": "step", "step": 1e300, "loss": 1}',
                 {**self.step(3), 'loss': 1e300, 'lr': 'high', 'devices': 3},
                 {**self.step(4), 'devices': [7, None, {'samples': 'all'}]},
                 {'event': 'devices', 'step': None, 'text': ['x']}, '[' * 100000,
                 '{"event": "step", "step": 5, "loss": 0.2']
        self.lines('run', lines, ending='')
        text, root = self.report('run')
        self.assertIn('5 lines of metrics.jsonl of run cannot be read', text)
        self.assertIn('Those of run cannot be read: ', text)
        self.assertIn('That of run cannot be read: it has no env.json', text)
        points = next(self.figures(root)['Loss'].iter('polyline')).get('points').split()
        self.assertEqual(len(points), 2)
        self.assertEqual(self.rows(root, 'The run')[1][1:5], ['-', 'stopped', '?', '?'])
        self.assertEqual(self.rows(root, 'The run')[1][6], '4')

    def test_more_than_is_shown(self):
        """Devices, places of a group, messages."""
        place = {'compute_ms': 1, 'idle_ms': 0, 'crossing_ms': 0}
        device = {'rank': 0, 'samples': 1, 'compute_ms': 1e90, 'places': [place] * 20}
        told = [{'event': 'devices', 'step': 1, 'text': 'é' * 3000}] * 103
        self.lines('run', [{**self.step(i), 'devices': [device] * 67} for i in (1, 2)] + told)
        text, root = self.report('run')
        self.assertIn('It has 3 devices more.', text)
        self.assertIn('3 more are in its metrics.jsonl.', text)
        figures = self.figures(root)
        self.assertEqual(len(list(figures['run: ms of a step, by device'].iter('rect'))),
                         64 * 6)
        places = figures['run: ms of a step, by device of group 63']
        self.assertEqual(len([t for t in places.iter('text') if t.text == '1 ms']), 16)

    def test_run_that_is_written(self):
        self.train('--run', 'run', '--steps', '5')
        before = {name: os.stat(self.path('run/' + name)).st_mtime_ns
                  for name in os.listdir(self.path('run'))}
        folder = os.open(self.path('run'), os.O_RDONLY)
        self.addCleanup(os.close, folder)
        fcntl.flock(folder, fcntl.LOCK_EX)
        with open(self.path('run/metrics.jsonl'), 'a') as file:
            file.write('{"event": "step", "step": 6, "epo')
        text, root = self.report('run')
        self.assertEqual(self.rows(root, 'The run')[1][2], 'training')
        self.assertIn('1 line of metrics.jsonl of run cannot be read', text)
        self.assertEqual(set(before), set(os.listdir(self.path('run'))))

    def test_little_is_there(self):
        self.train('--run', 'run', '--steps', '2')
        os.remove(self.path('run/metrics.jsonl'))
        self.put('run/env.json', '{"devices": ')
        text, root = self.report('run')
        self.assertIn('run has no metrics.jsonl', text)
        self.assertIn('No step is done yet.', text)
        self.assertIn('a damaged one', text)
        self.assertEqual(self.facts(root, 'Chosen')['steps'], '2')
        self.assertEqual(self.figures(root), {})
        self.lines('empty', [], ending='')
        self.assertIn('No step is done yet.', self.report('empty')[0])
        self.assertEqual(self.figures(self.report('empty', 'run')[1]), {})

    def test_refused(self):
        os.mkdir(self.path('folder'))
        self.lines('run', [self.step(1)])
        self.refused(2, 'needs 1 to 8 RUN directories, found 0', 'report')
        self.refused(2, 'needs 1 to 8 RUN directories, found 9', 'report', *['run'] * 9)
        self.refused(3, "'nowhere' is no folder", 'report', 'run', 'nowhere')
        self.refused(3, 'neither config.yaml nor metrics.jsonl', 'report', 'folder')
        self.refused(3, 'tiny.yaml', 'report', 'tiny.yaml')
        self.refused(3, 'less than 1024', 'report', 'x' * 1024)
        self.assertFalse(os.path.exists(self.path('report.html')))
        self.refused(3, 'no/where', 'report', 'run', '-o', 'no/where.html')
        self.run_program('report', 'run')
        read(self, self.path('report.html'))


if __name__ == '__main__':
    program.main()
