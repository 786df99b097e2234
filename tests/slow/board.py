"""TensorBoard's page of two short runs, in a headless Chromium: what it shows in each tab, and
that it reads the files without a warning: python3 board.py PROGRAM. With $LOCKSTEP_PICTURES, a
folder, pictures of the tabs are kept there. Exit status 77 where there is no Chromium or no
Python package tensorboard."""
import os
import re
import subprocess
import sys
import threading

import browser
import packages

packages.want('tensorboard')
import program  # takes the program's name from the arguments
from program import ProgramTest

NET = """name: net
input: [28, 28, 1]
layers:
  - {name: low, conv2d: {filters: 4, kernel: 3, activation: relu}}
  - max_pool: {size: 4}
  - flatten
  - dense: {units: 10}
  - softmax
"""
RATES = '0.01', '0.002'
RUNS = [f'lr-{rate}/tensorboard/{part}' for rate in RATES for part in ('train', 'validation')]
# Of each tab, texts that it has to have, and what must be drawn in it in several colours.
TABS = {
    'timeseries': ([], 'line-chart'),
    'scalars': (['batch_loss', 'epoch_loss', 'epoch_accuracy', 'epoch_learning_rate', *RUNS],
                'vz-line-chart2, line-chart'),
    'images': (['inputs', 'tag: inputs', 'sample: 2 of 6', 'mistakes', *RUNS], 'img'),
    'histograms': (['dense_1.bias', 'dense_1.weight', 'low.weight', 'gradients'],
                   'vz-histogram-timeseries'),
    'distributions': (['dense_1.weight', 'gradients'], 'vz-distribution-chart'),
    'graphs': (['Main Graph', 'image', 'low', 'flatten_1', 'dense_1', 'softmax_1'],
               '#svg, svg#svg'),
    'text': (['settings', 'mistakes_by_name', 'taken for'], 'table'),
    'hparams': (['batch_size', 'optimizer', 'adam', 'synthetic:digits', '0.0020000',
                 '0.010000'], 'table'),
}
OWN_WORDS = ('TensorFlow installation not found', 'NOTE: Using experimental fast data loading',
             '"--load_fast=false"', 'https://github.com/tensorflow/tensorboard/issues',
             'TensorBoard 2', 'Serving TensorBoard on localhost')


class Board(ProgramTest):
    def train(self):
        self.put('net.yaml', NET)
        for rate in RATES:
            self.run_program('train', 'net.yaml', '--data',
                             'synthetic:digits,count=512,val=0.2', '--batch-size', '64',
                             '--epochs', '3', '--lr', rate, '--augment', 'rotate=20',
                             '--callback', 'tensorboard histograms=3 images=6 every=2', '--run',
                             f'runs/lr-{rate}')

    def serve(self):
        """Its address; self.said grows by what it says."""
        server = subprocess.Popen(
            [sys.executable, '-m', 'tensorboard.main', '--logdir', self.path('runs'), '--host',
             '127.0.0.1', '--port', '0'], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
            text=True, cwd=self.folder)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.said = []
        found = None
        for line in server.stderr:
            self.said.append(line)
            found = re.search(r'http://127.0.0.1:\d+/', line)
            if found:
                break
        self.assertTrue(found, ''.join(self.said))
        reader = threading.Thread(target=lambda: self.said.extend(server.stderr), daemon=True)
        reader.start()
        return found[0]

    def look(self, page, address, tab):
        texts, selector = TABS[tab]
        text = ''

        def is_there():
            nonlocal text
            text = page.text()
            return all(t in text for t in texts) and page.boxes(selector)

        page.open('about:blank')
        page.open(f'{address}#{tab}')
        boxes = page.wait_for(is_there, 180)
        folder = os.environ.get('LOCKSTEP_PICTURES')
        if folder:
            with open(os.path.join(folder, tab + '.png'), 'wb') as file:
                file.write(page.picture())
        self.assertEqual([t for t in texts if t not in text], [], text)
        self.assertTrue(boxes, f'nothing of {selector} is seen')
        found = page.wait_for(lambda: self.drawn(page, selector), 60)
        self.assertTrue(found, f'{selector} is empty')

    def drawn(self, page, selector):
        """Whether it is more than a background: many colours, as lines are smoothed."""
        boxes = page.boxes(selector)
        return boxes and len(browser.colours(page.picture(boxes[0]))) > 8

    def test_tabs(self):
        self.train()
        address = self.serve()
        page = browser.Browser(1400, 1000)
        self.addCleanup(page.close)
        page.wait_for(lambda: self.has_loaded(page, address), 120)
        for tab in TABS:
            with self.subTest(tab):
                self.look(page, address, tab)
        self.assertEqual(page.errors, [])
        warnings = [line for line in self.said
                    if line.strip() and not any(word in line for word in OWN_WORDS)]
        self.assertEqual([w for w in warnings if 'To disable, pass' not in w], [])

    def has_loaded(self, page, address):
        """All runs are read: it reads them in the background."""
        page.open(f'{address}data/runs')
        text = page.text()
        return all(run in text for run in RUNS)


if __name__ == '__main__':
    if not browser.find():
        print('1..0 # SKIP there is no Chromium')
        sys.exit(77)
    try:
        import tensorboard  # noqa: F401
    except ImportError:
        print('1..0 # SKIP there is no Python package tensorboard')
        sys.exit(77)
    program.main()
