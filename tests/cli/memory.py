"""A limit of device memory: a run that fits by computing activations again, or in pieces, has
the bits of one that has all the memory, and what fits in no way is refused."""
import json
import re

import program
from program import ProgramTest

NET = """name: net
input: [28, 28, 1]
layers:
""" + 4 * """  - {conv2d: {filters: 24, kernel: 3, padding: same}}
  - batch_norm: {activation: relu}
  - dropout: {rate: 0.1}
""" + """  - max_pool: {size: 2}
  - flatten
  - dense: {units: 10}
  - softmax
"""
LIMIT = '40M'


class MemoryTest(ProgramTest):
    OPTIONS = ['--data', 'synthetic:digits,count=256', '--batch-size', '64', '--shards', '4',
               '--steps', '3', '--tune', 'off']

    def setUp(self):
        super().setUp()
        self.put('net.yaml', NET)

    def net(self, run, *arguments):
        return self.run_program('train', 'net.yaml', *self.OPTIONS, '--run', run, *arguments)

    def summary(self, *arguments):
        done = self.run_program('summary', 'net.yaml', '--batch-size', '64', '--json',
                                *arguments)
        return json.loads(done.stdout)['memory']

    def test_the_same_bits(self):
        self.net('kept')
        self.assertNotIn('computes', self.events('kept', 'start')[-1]['text'])
        kept = self.sha256('kept')
        for run, more in (('sqrt', ['--recompute', 'sqrt']),
                          ('both', ['--recompute', 'sqrt', '--device', '0/2']),
                          ('limit', ['--memory-limit', LIMIT]),
                          ('halves', ['--memory-limit', LIMIT, '--device', '0*2'])):
            self.net(run, *more)
            self.assertEqual(self.sha256(run), kept, run)
            self.assertEqual(len(self.events(run, 'eval')), 1)  # beside it there is no room
        for run in 'sqrt', 'both', 'limit':
            self.assertRegex(self.events(run, 'start')[-1]['text'],
                             r'; to save memory, backward computes \d+ % of forward again')

    def test_halves(self):
        self.net('kept', '--precision', 'mixed')
        self.net('sqrt', '--precision', 'mixed', '--recompute', 'sqrt')
        self.assertEqual(self.sha256('sqrt'), self.sha256('kept'))

    def test_without_lockstep(self):
        self.net('run', '--mode', 'async', '--device', '0*2', '--recompute', 'sqrt')
        self.assertEqual(self.events('run', 'step')[-1]['step'], 3)
        self.assertIn('computes', self.events('run', 'start')[-1]['text'])

    def test_pieces(self):
        """Where nothing that is computed again would be enough, one device takes pieces."""
        self.net('kept')
        done = self.net('pieces', '--memory-limit', '28M')
        self.assertRegex(done.stderr, r'device 0 computes [12] of 4 shards at a time: batch '
                         r'size 64( in 2 micro-batches)? needs ')
        self.assertEqual(self.sha256('pieces'), self.sha256('kept'))

    def test_summary(self):
        kept, sqrt = self.summary('--recompute', 'off'), self.summary('--recompute', 'sqrt')
        limited = self.summary('--memory-limit', LIMIT)
        self.assertEqual(self.summary(), kept)
        self.assertEqual(kept['again'], 0)
        self.assertTrue(0 < limited['again'] < sqrt['again'] < 1, (limited, sqrt))
        self.assertLess(limited['total'], 40 << 20)
        self.assertLess(sqrt['activations'], kept['activations'])
        self.assertEqual({**sqrt, 'again': 0, 'activations': 0, 'total': 0},
                         {**kept, 'again': 0, 'activations': 0, 'total': 0})
        text = self.run_program('summary', 'net.yaml', '--batch-size', '64', '--memory-limit',
                                LIMIT).stdout
        self.assertRegex(text, r'\nbackward computes \d+ % of forward again\n')

    def test_summary_of_pieces(self):
        """They are planned as training takes them."""
        said = self.summary('--set', 'shards=4', '--memory-limit', '28M')
        self.assertIn(said['pieces'], (2, 4))
        self.assertLess(said['total'], 28 << 20)
        self.assertEqual(self.summary()['pieces'], 1)
        text = self.run_program('summary', 'net.yaml', '--batch-size', '64', '--set',
                                'shards=4', '--memory-limit', '28M').stdout
        self.assertIn(f'a batch is computed in {said["pieces"]} pieces, one after the other',
                      text)
        self.refused(2, '3 shards for a batch size of 64', 'summary', 'net.yaml',
                     '--batch-size', '64', '--set', 'shards=3')

    def test_refusals(self):
        done = self.refused(4, 'of device memory', 'train', 'net.yaml', *self.OPTIONS, '--run',
                            'none', '--memory-limit', '4M')
        self.assertEqual(len(re.findall('of device memory', done.stderr)), 1, done.stderr)
        self.refused(4, 'of device memory', 'train', 'net.yaml', *self.OPTIONS, '--run', 'none',
                     '--memory-limit', '28M', '--recompute', 'off', '--shards', '1')
        for limit in '0', '4X', '4GB', '-1', 'G', '99999999999999999999', '99999999999999999G':
            self.refused(2, f"a memory limit of '{limit}': expected bytes, such as 4G",
                         'train', 'net.yaml', *self.OPTIONS, '--run', 'none', '--set',
                         'memory_limit=' + limit)
        self.refused(2, "'some'", 'train', 'net.yaml', *self.OPTIONS, '--run', 'none',
                     '--recompute', 'some')


program.main()
