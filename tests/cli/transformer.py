"""A transformer on texts: the same bits however devices share it, and what it learns."""
import json
import random

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
BYTES = """name: bytes
input: {tokens: {shape: [24], type: int32, length: true}}
classes: 2
layers:
  - {embedding: {vocabulary: 256, units: 16}}
  - {position: {kind: sines}}
  - {dense: {units: 48}}
  - {attention: {heads: 2, causal: true}, name: body}
  - {dense: {units: 256}}
  - {softmax: , name: next_p}
  - {from: body, global_average_pool1d: }
  - {dense: {units: $classes}}
  - {softmax: , name: order_p}
output: {next: next_p, order: order_p}
loss: {order: cross_entropy}
"""
WORDS = ['red', 'green', 'blue', 'black', 'white', 'pink', 'grey', 'brown']


class Transformer(ProgramTest):
    def setUp(self):
        super().setUp()
        chance = random.Random(1)
        with open(self.path('small.yaml'), 'w') as file:
            file.write(MODEL)
        with open(self.path('bytes.yaml'), 'w') as file:
            file.write(BYTES)
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

    def likeliest(self, text):
        """The byte that the model thinks most likely behind a text, by its predictions."""
        found = json.loads(self.run_program('predict', 'run', '--text', text, '--json').stdout)
        values = found[0]['outputs']['next'][256 * (len(text) - 1):256 * len(text)]
        return chr(max(range(2, 256), key=lambda token: values[token]))

    def test_goes_on_with_a_text(self):
        self.run_program('train', 'bytes.yaml', '--data', 'text:order.txt,val=0.2', '--run',
                         'run', '--steps', '2', '--batch-size', '32')
        generate = ('generate', 'run', '--prompt', 'red', '--length')
        text = 'red'
        for _ in range(3):
            text += self.likeliest(text)
        shown = ''.join(c if ' ' <= c < '\x7f' or c in '\n\t' else '?' for c in text[3:])
        done = self.run_program(*generate, '3', '--temperature', '0', text=False)
        self.assertEqual(done.stdout.decode('latin-1'), shown + '\n')
        # one of one is the likeliest; more tokens than the model takes at a time
        self.assertEqual(self.run_program(*generate, '3', '--top-k', '1', text=False).stdout,
                         done.stdout)
        drawn = [self.run_program(*generate, '40', '--seed', seed, text=False).stdout
                 for seed in ('1', '1', '2')]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])

    def test_refuses_to_go_on(self):
        self.small('run', '--steps', '1')
        self.refused(2, 'needs --prompt', 'generate', 'run')
        self.refused(2, "'-1'", 'generate', 'run', '--prompt', 'red', '--temperature', '-1')
        self.refused(2, 'is no language model', 'generate', 'run', '--prompt', 'red')


if __name__ == '__main__':
    program.main()
