"""Every model of the zoo as ONNX: onnx.checker accepts it, and onnxruntime's outputs on
1,000 samples are those of lockstep run to 1e-4, with the same class first unless two classes
are equally likely to 1e-6. Images are as small as the model takes."""
import importlib.util
import unittest

import packages

packages.want('onnx', 'onnxruntime', 'numpy')
import program  # takes the program's name from the arguments
from program import ProgramTest

NEAR, EQUAL, SAMPLES, AT_ONCE = 1e-4, 1e-6, 1000, 100
IMAGES = {'mlp': None, 'fashion-convnet': None, 'vgg16': 32, 'vgg19': 32, 'vgg16tail': 32,
          'resnet18': 32, 'resnet50': 32, 'mobilenet-v2': 32, 'mobilenet-v3-large': 32,
          'efficientnet-b0': 32, 'xception': 71, 'inception-v3': 75, 'densenet121': 32,
          'squeezenet': 32, 'amoebanet-d': 32}
FEWER = {'amoebanet-d': ['--set', 'cells=3', '--set', 'filters=32'],
         'gpt-small': ['--set', 'blocks=2', '--set', 'length=64']}
WORDS = ['red', 'blue', 'green', 'sky', 'tree', 'ant', 'house', 'far']


@unittest.skipUnless(importlib.util.find_spec('onnxruntime') and
                     importlib.util.find_spec('onnx'), 'needs onnx and onnxruntime')
class Zoo(ProgramTest):
    def setUp(self):
        super().setUp()
        import numpy
        self.numbers = numpy.random.default_rng(11)

    def train(self, model, data, *more):
        self.run_program('train', model, '--data', data, '--batch-size', '8', '--steps', '2',
                         '--lr', '0.0001', '--run', 'run', '--no-progress',
                         *FEWER.get(model, []), *more, timeout=3000)

    def draw(self, given):
        shape = [AT_ONCE, *given.shape[1:]]
        if 'int' not in given.type:
            return self.numbers.normal(size=shape).astype('float32')
        high = 64 if len(shape) == 1 else len(WORDS) + 2
        return self.numbers.integers(0, high, shape).astype('int32')

    def compare(self, *options):
        import numpy
        import onnx
        import onnxruntime
        self.run_program('export', 'run', '-o', 'm.onnx', *options, timeout=300)
        onnx.checker.check_model(self.path('m.onnx'), full_check=True)
        session = onnxruntime.InferenceSession(self.path('m.onnx'),
                                               providers=['CPUExecutionProvider'])
        for _ in range(SAMPLES // AT_ONCE):
            feed = {i.name: self.draw(i) for i in session.get_inputs()}
            files = []
            for name, value in feed.items():
                ours = value.transpose(0, 2, 3, 1) if value.ndim == 4 else value
                numpy.save(self.path(name + '.npy'), numpy.ascontiguousarray(ours))
                files += ['--input', f'{name}={name}.npy']
            self.run_program('run', 'run', *files, '--output', 'values', '--force',
                             timeout=3000)
            for output, found in zip(session.get_outputs(), session.run(None, feed)):
                expected = numpy.load(self.path(f'values/{output.name}.npy'))
                self.assertEqual(found.shape, expected.shape)
                self.assertLess(abs(found - expected).max(), NEAR)
                if expected.shape[-1] > 1:
                    best = numpy.sort(expected, axis=-1)[..., -2:]
                    clear = best[..., 1] - best[..., 0] > EQUAL
                    same = found.argmax(-1) == expected.argmax(-1)
                    self.assertTrue(same[clear].all())


def add_tests():
    def of_images(model, size):
        def test(self):
            import numpy
            if size is None:
                self.train(model, 'synthetic:digits,count=64')
            else:
                numpy.save(self.path('x.npy'), self.numbers.integers(
                    0, 256, (16, size, size, 3), numpy.uint8))
                numpy.save(self.path('y.npy'), numpy.arange(16, dtype='int32') % 10)
                self.train(model, 'npy:x.npy,y.npy', '--set', f'input=[{size},{size},3]')
            self.compare()
            self.compare('--fold', '--opset', '28')
        return test

    def of_texts(model, data):
        def test(self):
            texts = [' '.join(self.numbers.choice(WORDS, 1 + i % 30)) for i in range(90)]
            self.put('texts.txt', ''.join(f'{"abcdef"[i % 6]}\t{text}\n'
                                          for i, text in enumerate(texts)))
            self.put('book.txt', ' '.join(texts))
            self.train(model, data)
            self.compare()
            self.compare('--opset', '28')
        return test

    for model, size in IMAGES.items():
        setattr(Zoo, 'test_' + model.replace('-', '_'), of_images(model, size))
    words = 'text:texts.txt,unit=word,val=0.2'
    for model in 'text-lstm', 'text-bilstm', 'text-gru', 'text-cnn', 'transformer-encoder':
        setattr(Zoo, 'test_' + model.replace('-', '_'), of_texts(model, words))
    Zoo.test_gpt_small = of_texts('gpt-small', 'text:book.txt,unit=char,val=0.1')
    Zoo.test_two_branch_text = of_texts('two-branch-text', words + ',pairs=40')
    Zoo.test_two_branch = of_texts('two-branch', 'synthetic:pairs,count=60')


add_tests()

if __name__ == '__main__':
    program.main()
