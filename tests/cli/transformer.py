"""A transformer on texts: the same bits however devices share it, and what it learns."""
import json
import random
import struct

import program
from program import ProgramTest

MODEL = """name: small
input: {tokens: {shape: [12], type: int32, length: true}}
vocabulary: 64
classes: 2
blocks:
  encoder:
    layers:
      - {name: $name_norm, layer_norm: }
      - {name: $name_qkv, dense: {units: 48}}
      - {name: $name_turned, rotary: {heads: 2, packed: true}}
      - {name: $name_heads, attention: {heads: 2, causal: true}}
      - {name: $name_joined, dense: {units: 16, activation: gelu_tanh}}
      - {name: $name, from: [$input, $name_joined], add: }
layers:
  - embedding: {vocabulary: $vocabulary, units: 16}
  - position: {kind: learned}
  - {name: block_$number, encoder: , repeat: 2}
  - {name: norm, layer_norm: }
  - global_average_pool1d
  - dense: {units: $classes}
  - softmax
"""
CHARACTERS = """name: characters
input: {tokens: {shape: [16], type: int32, length: true}}
vocabulary: 64
layers:
  - {embedding: {vocabulary: $vocabulary, units: 32}}
  - {position: {kind: sines}}
  - {name: body, dense: {units: 96}}
  - {attention: {heads: 2, causal: true}}
  - {name: sum, from: [position_1, attention_1], add: }
  - {dense: {units: 64, activation: relu}}
  - {dense: {units: $vocabulary}}
  - softmax
loss: cross_entropy
metrics: [perplexity, bits_per_token]
"""
RECURRENT = """name: recurrent
input: {tokens: {shape: [8], type: int32, length: true}}
vocabulary: 64
layers:
  - {embedding: {vocabulary: $vocabulary, units: 1}}
  - {rnn: {units: 1, activation: relu, return_sequences: true}}
  - {dense: {units: $vocabulary}}
  - softmax
loss: cross_entropy
"""
WORDS = ['red', 'green', 'blue', 'black', 'white', 'pink', 'grey', 'brown']


class Transformer(ProgramTest):
    def setUp(self):
        super().setUp()
        chance = random.Random(1)
        with open(self.path('small.yaml'), 'w') as file:
            file.write(MODEL)
        with open(self.path('characters.yaml'), 'w') as file:
            file.write(CHARACTERS)
        with open(self.path('order.txt'), 'w') as file:
            for _ in range(320):  # which of two words comes first decides
                words = [chance.choice(WORDS[2:]) for _ in range(chance.randrange(1, 9))]
                pair = chance.sample(WORDS[:2], 2)
                at = sorted(chance.sample(range(len(words) + 2), 2))
                words.insert(at[0], pair[0])
                words.insert(at[1], pair[1])
                file.write(f'{"first" if pair[0] == WORDS[0] else "second"}\t'
                           f'{" ".join(words)}\n')

    def small(self, run, *arguments):
        self.run_program('train', 'small.yaml', '--data',
                         'text:order.txt,unit=word,length=12,val=0.2', '--batch-size', '32',
                         '--shards', '2',
                         '--optimizer', 'adam', '--lr', '0.01', '--run', run, *arguments)
        return self.sha256(run)

    def test_the_same_bits_on_halves_of_a_device(self):
        one = self.small('one', '--steps', '12', '--device', '0')
        self.assertEqual(self.small('two', '--steps', '12', '--device', '0/2'), one)

    def test_learns_the_order_of_words(self):
        self.small('run', '--epochs', '30')
        judged = json.loads(self.run_program('eval', 'run', '--json').stdout)
        self.assertGreater(judged['accuracy'], 0.9)

    def test_goes_on_with_a_text(self):
        self.put('book.txt', 'one two three four five six seven. ' * 200)
        self.run_program('train', 'characters.yaml', '--data',
                         'text:book.txt,unit=char,val=0.2', '--run', 'book', '--epochs', '40',
                         '--batch-size', '32', '--optimizer', 'adam', '--lr', '0.01')
        judged = json.loads(self.run_program('eval', 'book', '--json').stdout)
        found = judged['outputs'][0]['metrics']
        self.assertLess(found['bits_per_token'], 0.5)
        self.assertAlmostEqual(found['perplexity'], 2 ** found['bits_per_token'], 5)
        # more characters than the model looks at
        generate = ('generate', 'book', '--prompt', 'one two ', '--length')
        done = self.run_program(*generate, '40', '--temperature', '0').stdout
        self.assertEqual(done, 'three four five six seven. one two three'[:40] + '\n')
        self.assertEqual(self.run_program(*generate, '40', '--top-k', '1').stdout, done)
        self.expects_next(done[0])
        drawn = [self.run_program(*generate, '40', '--temperature', '5', '--seed', seed).stdout
                 for seed in ('1', '1', '2')]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])

    def expects_next(self, wanted):
        """predict tells the same likeliest token as text, before others, and knows the end of a
        text that is too long."""
        told = json.loads(self.run_program('predict', 'book', '--text', 'one two ', '--top',
                                           '100', '--json').stdout)[0]['predictions']
        self.assertEqual(told[0]['name'], wanted)
        self.assertGreater(told[0]['probability'], 0.9)
        self.assertEqual(sorted((-t['probability'], t['class']) for t in told),
                         [(-t['probability'], t['class']) for t in told])
        self.assertEqual(len({t['name'] for t in told}), len(told))  # and never padding
        self.assertEqual({t['name'] for t in told},
                         set('one two three four five six seven. ') | {'[UNK]'})
        self.put('lines.txt', 'one two \n\n' + 'x' * 100 + 'four five six \n')
        lines = self.run_program('predict', 'book', 'lines.txt', '--top', '2').stdout
        first, second = lines.splitlines()
        self.assertRegex(first, rf'^one two : "{wanted}", probability 0\.\d{{4}}; "."'
                                r', probability 0\.\d{4}$')
        self.assertIn('xfour five six : "s", probability', second)

    def test_tells_bytes_that_cannot_be_seen(self):
        with open(self.path('lines.txt'), 'wb') as file:
            file.write(b'ab\ncd"\xff\x1b\n' * 100)
        self.put('bytes.yaml', CHARACTERS.replace('vocabulary: 64', 'vocabulary: 256'))
        self.run_program('train', 'bytes.yaml', '--data',
                         'text:lines.txt,unit=byte,labels=next', '--run', 'run', '--epochs',
                         '30', '--batch-size', '16', '--optimizer', 'adam', '--lr', '0.02')
        for text, shown, name in ('ab', r'"\n"', '\n'), ('cd', r'"\""', '"'), \
                ('cd"', r'"\xff"', r'\xff'), (b'cd"\xff', r'"\x1b"', '\x1b'):
            asked = ('predict', 'run', '--text', text)
            said = self.run_program(*asked).stdout
            self.assertIn(f': {shown}, probability ', said)
            told, = json.loads(self.run_program(*asked, '--json').stdout)
            self.assertEqual(told['predictions'][0]['name'], name)

    def test_a_carried_state_forgets_nothing(self):
        """A layer that counts every a, and says a for ever once it saw one, far behind its
        window of 8 characters."""
        self.put('book.txt', 'bab' * 40)
        self.put('recurrent.yaml', RECURRENT)
        train = ('train', 'recurrent.yaml',
                 '--data', 'text:book.txt,unit=char,length=8,val=0.2',
                 '--steps', '1', '--optimizer', 'sgd', '--lr', '1e-30', '--run')
        self.run_program(*train, 'run')
        self.run_program('export', 'run', '-o', 'w.safetensors', '--format', 'safetensors')
        with open(self.path('w.safetensors'), 'rb') as file:
            data = bytearray(file.read())
        begin = 8 + int.from_bytes(data[:8], 'little')
        data[begin:] = bytes(len(data) - begin)
        header = json.loads(data[8:begin])
        b, a = 2, 3  # tokens: the most frequent character is the first

        def put(name, at, value):
            entry = header[name]
            self.assertLess(at, (entry['data_offsets'][1] - entry['data_offsets'][0]) // 4)
            struct.pack_into('<f', data, begin + entry['data_offsets'][0] + 4 * at, value)

        put('embedding_1.weight', a, 1)
        put('rnn_1.weight', 0, 1)
        put('rnn_1.recurrent_weight', 0, 1)
        put('dense_1.weight', a, 10)
        put('dense_1.bias', b, 5)
        with open(self.path('w.safetensors'), 'wb') as file:
            file.write(data)
        self.run_program(*train, 'counts', '--weights', 'w.safetensors')
        for prompt, said in ('a' + 12 * 'b', 'a'), (13 * 'b', 'b'):
            done = self.run_program('generate', 'counts', '--prompt', prompt, '--length', '20',
                                    '--temperature', '0').stdout
            self.assertEqual(done, 20 * said + '\n')

    def test_refuses_to_go_on(self):
        self.small('run', '--steps', '1')
        self.refused(2, 'needs --prompt', 'generate', 'run')
        self.refused(2, "'-1'", 'generate', 'run', '--prompt', 'red', '--temperature', '-1')
        self.refused(2, 'is no language model', 'generate', 'run', '--prompt', 'red')


if __name__ == '__main__':
    program.main()
