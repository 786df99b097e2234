"""Texts as tokens: a run keeps its vocabulary and predicts texts; byte pairs are learned."""
import json
import os
import random
import unittest

import npy
import program
import records
from program import ProgramTest

# Tells short texts from long ones; the tokens themselves it only takes.
MODEL = """name: lengths
input: {tokens: {shape: [8], type: int32}, tokens_length: {shape: [1]}}
classes: 2
vocabulary: 60
layers:
  - {dense: {units: 8, activation: relu}, from: tokens_length}
  - dense: {units: $classes}
  - softmax
"""
# Does not say how large its vocabulary is, but has a table of rows for tokens.
TABLE = """name: table
input: {tokens: {shape: [8], type: int32}}
classes: 2
layers:
  - {name: rows, embedding: {vocabulary: 30, units: 4}}
  - flatten
  - dense: {units: $classes}
  - softmax
"""
WORDS = [f'word{i}' for i in range(40)]


class TextTest(ProgramTest):
    def setUp(self):
        super().setUp()
        chance = random.Random(1)
        for part, count in ('train', 200), ('test', 50):
            os.makedirs(self.path('set'), exist_ok=True)
            lines = []
            for _ in range(count):
                kind = chance.randrange(2)
                words = chance.choices(WORDS, k=chance.randint(1, 3) + 4 * kind)
                lines.append(f'{["short", "long"][kind]}\t{" ".join(words).title()}!\n')
            self.put(f'set/{part}.txt', ''.join(lines))
        self.put('model.yaml', MODEL)

    def train(self, *arguments, data='text:set,unit=word,length=8', model='model.yaml', **more):
        return self.run_program('train', model, '--data', data, '--batch-size', '32', '--lr',
                                '0.05', '--epochs', '4', *arguments, **more)

    def vocabulary(self, run):
        from glob import glob
        path = sorted(glob(self.path(f'{run}/checkpoints/*.safetensors')))[-1]
        with open(path, 'rb') as file:
            header = file.read(int.from_bytes(file.read(8), 'little'))
        return json.loads(json.loads(header)['__metadata__']['vocabulary'])

    def test_a_run_keeps_its_vocabulary(self):
        self.train('--run', 'run')
        kept = self.vocabulary('run')
        self.assertEqual((kept['unit'], kept['standardize']),
                         ('word', 'lower_and_strip_punctuation'))
        self.assertEqual(sorted(kept['words']), sorted(WORDS))

        # Of words that are all unknown there is still the number, by which it tells them apart.
        self.put('words.txt', 'a b\n\n\xff\na b c d e f g\n'.encode('latin-1'))
        done = self.run_program('predict', 'run', 'words.txt', '--text', 'One two!',
                                '--text', 'a b c d e f', '--json', status=3)
        self.assertIn("'words.txt', line 3", done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual([s['predictions'][0]['name'] for s in said],
                         ['short', 'long', 'short', 'long'])
        self.assertEqual(said[0]['text'], 'One two!')
        self.assertEqual((said[3]['file'], said[3]['line']), ('words.txt', 4))

        # Data without a unit, and evaluation, take the run's.
        first = self.run_program('eval', 'run', '--json').stdout
        again = self.run_program('eval', 'run', '--data', 'text:set/test.txt', '--json').stdout
        self.assertEqual(json.loads(first)['loss'], json.loads(again)['loss'])

        before = self.sha256('run')
        self.train('--run', 'run', '--epochs', '6')
        self.assertEqual(self.vocabulary('run'), kept)
        self.assertNotEqual(self.sha256('run'), before)
        self.train('--run', 'whole', '--epochs', '6')
        self.assertEqual(self.sha256('run'), self.sha256('whole'))
        self.refused(2, 'the vocabulary has unit word, asked for is char', 'train',
                     'model.yaml', '--data', 'text:set,unit=char,length=8', '--run', 'run',
                     '--batch-size', '32')
        self.put('other.txt', 'word1\nword0\n')
        self.refused(2, "'other.txt' is another one than the run's", 'train', 'model.yaml',
                     '--data', 'text:set,unit=word,length=8,vocabulary=other.txt', '--run',
                     'run', '--batch-size', '32')

        # Another run that begins with its weights has its vocabulary, whatever its texts are.
        self.put('new.txt', ''.join(f'{kind}\tnew words\n' for kind in ('short', 'long') * 40))
        self.train('--run', 'second', '--init-from', 'run',
                   data='text:new.txt,unit=word,length=8')
        self.assertEqual(self.vocabulary('second'), kept)

    def test_data_fit_the_model(self):
        self.put('small.yaml', MODEL.replace('vocabulary: 60', 'vocabulary: 20'))
        self.refused(3, "has a vocabulary of 42 tokens, model 'lengths' one of 20", 'train',
                     'small.yaml', '--data', 'text:set,unit=word,length=8', '--batch-size',
                     '32')
        self.train(data='text:set,unit=word,length=8,vocabulary=20', model='small.yaml')
        self.run_program('train', 'small.yaml', '--data', 'text:set,unit=word,length=8',
                         '--set', 'vocabulary=42', '--epochs', '1', '--batch-size', '32')
        self.refused(3, 'expects int32 [8]', 'train', 'model.yaml', '--data',
                     'text:set,unit=word,length=9', '--batch-size', '32')
        self.train('--set', 'length=9', data='text:set,unit=word')
        self.refused(3, "no input {shape: [LENGTH]", 'train', 'tiny.yaml', '--data', 'text:set',
                     '--set', 'length=9')
        self.refused(3, "no 'vocabulary:'", 'train', 'tiny.yaml', '--data', 'text:set',
                     '--set', 'vocabulary=9')
        self.put('word.yaml', MODEL.replace('vocabulary: 60\n', '').replace('$classes',
                                                                            '$vocabulary'))
        self.refused(3, "'vocabulary:' is missing", 'summary', 'word.yaml')

    def test_tokens_beyond_the_table(self):
        """A model need not say how large its vocabulary is; its tables say it too."""
        self.put('table.yaml', TABLE)
        train = ['train', 'table.yaml', '--epochs', '1', '--batch-size', '32', '--data']
        self.refused(3, "has a vocabulary of 42 tokens, 'rows' of model 'table' a table of 30 "
                        'rows', *train, 'text:set,unit=word,length=8')
        self.run_program(*train, 'text:set,unit=word,length=8,vocabulary=30')

        chance = random.Random(2)
        samples = [[chance.randrange(30) for _ in range(8)] for _ in range(200)]
        npy.write(self.path('y.npy'), '<i4', (200,), [row[0] % 2 for row in samples])

        def put():
            npy.write(self.path('x.npy'), '<i4', (200, 8), sum(samples, []))
            records.write_file(self.path('all.tfrecord'), [
                records.make_example({'tokens': row, 'label': [row[0] % 2]})
                for row in samples])

        put()
        table = 'tfrecord:all.tfrecord,fields=tokens,label=label'
        for data in 'npy:x.npy,y.npy', table:
            self.run_program(*train, data)
        samples[41][3] = 30
        samples[77][7] = -1
        put()
        for data in 'npy:x.npy,y.npy', table:
            said = self.run_program(*train, data, '--max-bad', '2').stderr
            for sample, token in (41, 30), (77, -1):
                self.assertRegex(said, f"broken sample {sample} is left out: .*'tokens' of "
                                       f"sample {sample} is {token}; the table of 'rows'")
            self.refused(3, '2 of 200 samples are broken, max_bad=1 allows 1', *train, data,
                         '--max-bad', '1')

    def test_a_parameter_may_be_called_vocabulary(self):
        self.put('own.yaml', 'name: own\ninput: [4]\nparameters: {vocabulary: 3, length: 5}\n'
                             'layers:\n  - dense: {units: $length}\n'
                             '  - dense: {units: $vocabulary}\n')
        said = self.run_program('summary', 'own.yaml', '--set', 'length=6', '--set',
                                'vocabulary=7').stdout
        self.assertRegex(said, r'79\b')  # 4 x 6 + 6 + 6 x 7 + 7

    def test_shows_texts(self):
        said = self.run_program('data', 'text:set,unit=word,length=5,vocabulary=30').stdout
        for line in (r'shortest +1 +1', r'longest +7 +7', r'longer than 5 +\d+ +\d+',
                     r'known tokens +\d\d\.\d\d % +\d\d', 'vocabulary: 30 tokens'):
            self.assertRegex(said, line)
        parts = json.loads(self.run_program('data', 'text:set,unit=word,length=5',
                                            '--json').stdout)['parts']
        self.assertEqual([p['texts']['unknown'] for p in parts], [0, 0])
        self.assertEqual([p['texts']['texts'] for p in parts], [200, 50])
        self.put('book.txt', 'In the beginning was a line.\n' * 60)
        said = self.run_program('data', 'text:book.txt,unit=char,length=32,val=0.1').stdout
        self.assertIn('samples of next i32 [32], tokens i32 [32]', said)
        self.assertNotIn('majority', said)

    def test_a_model_of_language_has_no_classes(self):
        self.put('book.txt', 'In the beginning was a line.\n' * 60)
        said = self.run_program('train', 'gpt-small', '--data',
                                'text:book.txt,unit=char,length=8', '--set', 'width=8', '--set',
                                'blocks=1', '--set', 'heads=1', '--steps', '1', '--batch-size',
                                '8').stderr
        self.assertIn('is made for the data: ', said)
        self.assertNotIn('classes', said)

    def test_learns_byte_pairs(self):
        self.put('book.txt', 'In the beginning was the word, and the word was long.\n' * 60)
        said = self.run_program('tokenize', 'book.txt', '-o', 'pairs.json', '--vocabulary',
                                '270').stdout
        self.assertIn('pairs.json: 270 tokens, from 3240 bytes', said)
        with open(self.path('pairs.json')) as file:
            made = file.read()
        self.assertEqual(len(json.loads(made)['joins']), 270 - 258)
        self.refused(2, 'there already', 'tokenize', 'book.txt', '-o', 'pairs.json')
        self.run_program('tokenize', 'book.txt', '-o', 'pairs.json', '--vocabulary', '270',
                         '--force')
        with open(self.path('pairs.json')) as file:
            self.assertEqual(file.read(), made)
        self.refused(2, 'at least one FILE', 'tokenize', '-o', 'x')
        self.refused(3, 'nix', 'tokenize', 'nix', '-o', 'x')
        said = self.run_program(
            'data', 'text:book.txt,unit=pairs,vocabulary=pairs.json,length=16').stdout
        self.assertIn('vocabulary: 270 tokens', said)


@unittest.skipUnless(os.path.isdir(os.environ.get('LOCKSTEP_DATA', '') + '/trec'), 'no trec')
class RealTextTest(ProgramTest):
    """What a test's environment leaves out, $LOCKSTEP_DATA, is given as a path."""
    FOLDER = os.environ.get('LOCKSTEP_DATA', '')

    def reach(self, spec):
        parts = json.loads(self.run_program('data', spec, '--json').stdout)['parts']
        return {p['part']: 1 - p['texts']['unknown'] / p['texts']['tokens'] for p in parts}

    def test_reaches_most_words(self):
        found = self.reach(f'text:{self.FOLDER}/trec,unit=word')
        self.assertEqual(found['train'], 1)
        self.assertAlmostEqual(found['test'], 1 - 311 / 3219, places=6)
        found = self.reach(f'text:{self.FOLDER}/snips,unit=word')
        self.assertGreater(found['test'], 0.9)
        self.assertGreater(found['val'], 0.9)


if __name__ == '__main__':
    program.main()
