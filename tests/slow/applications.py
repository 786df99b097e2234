"""Models of Keras's applications and of torchvision, there and back: python3 applications.py
PROGRAM. What needs TensorFlow, or PyTorch with torchvision, is skipped where that is missing;
exit status 77 where neither is installed."""
import importlib.util
import os
import sys
import unittest

import program
from program import ProgramTest, png

# A test beside program.py is called profile.py, as is a module of Python that PyTorch imports.
sys.path.remove(os.path.dirname(os.path.abspath(program.__file__)))
os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
SIZE = 96  # of images; Xception takes none below 71


def has(*modules):
    return all(importlib.util.find_spec(m) for m in modules)


class Compared(ProgramTest):
    def computed(self, model, x, name, *arguments):
        """The value of that name, of a model with an input x."""
        import numpy
        numpy.save(self.path('x.npy'), x.astype('float32'))
        self.run_program('run', model, '--input', 'x.npy', '--output', 'y', '--force',
                         *arguments, timeout=1800)
        return numpy.load(self.path(f'y/{name}.npy'))

    def compare(self, name, mine, theirs, tolerance=1e-5):
        self.assertEqual(mine.shape, theirs.shape)
        worst = abs(mine - theirs).max()
        print(f'{name}: {worst:.2g} of {abs(theirs).max():.3g}', file=sys.stderr)
        self.assertGreater(theirs.max() - theirs.min(), 0.01 * theirs.max())
        self.assertLess(worst, tolerance * abs(theirs).max())

    def train(self, model, *arguments):
        """Trains a step on some pictures, so that no array is as it was initialized."""
        for i in range(8):
            os.makedirs(self.path(f'photos/{i % 4}'), exist_ok=True)
            self.put(f'photos/{i % 4}/{i}.png',
                     png(SIZE, SIZE, lambda x, y: (2 * x, 2 * y, 30 * i)))
        self.run_program('train', model, '--data', 'folder:photos', '--set',
                         f'input={SIZE},{SIZE},3', '--batch-size', '8',
                         '--steps', '1', '--val', 'off', '--run', 'run', *arguments,
                         timeout=1800)

    def images(self):
        import numpy
        return numpy.random.default_rng(1).random((2, SIZE, SIZE, 3), dtype='float32')


@unittest.skipUnless(has('tensorflow'), 'needs TensorFlow')
class Keras(Compared):
    def fill(self, model):
        """Numbers with which values stay neither tiny nor huge, norms' vectors among them."""
        import numpy
        random = numpy.random.default_rng(0)
        for w in model.weights:
            if 'variance' in w.path or 'gamma' in w.path:
                w.assign(random.uniform(0.5, 1.5, w.shape))
            elif 'kernel' in w.path:
                spread = 1 / max(1, numpy.prod(w.shape[:-1])) ** 0.5
                w.assign(random.normal(0, spread, w.shape))
            else:
                w.assign(random.normal(0, 0.1, w.shape))

    def check(self, model, files=('m.keras', 'm.h5', 'm.json')):
        """As an archive, as a whole HDF5 file, and as JSON with the weights apart."""
        import numpy
        self.fill(model)
        random = numpy.random.default_rng(1)
        x = random.normal(0, 1, (2, *model.input_shape[1:])).astype('float32')
        y = model.predict(x, verbose=0)
        model.save(self.path('m.keras'))
        model.save(self.path('m.h5'))
        model.save_weights(self.path('m.weights.h5'))
        self.put('m.json', model.to_json())
        for file in files:
            self.run_program('import', file, '-o', 'net', '--force')
            weights = ['--weights', 'm.weights.h5'] if file == 'm.json' else []
            found = self.computed('net', x, model.layers[-1].name, *weights)
            self.compare(f'{model.name} by {file}', found, y)

    def test_layers_that_are_not_in_the_applications(self):
        import keras
        from keras import layers
        image = keras.Input((12, 10, 4), name='image')
        x = layers.Conv2D(8, 3, padding='same', activation='selu', name='first')(image)
        x = layers.GroupNormalization(4, name='groups')(x)
        x = layers.PReLU(shared_axes=[1, 2], name='slopes')(x)
        x = layers.Conv2DTranspose(6, 3, strides=2, padding='same', name='wider')(x)
        x = layers.LayerNormalization(name='channels')(x)
        x = layers.Conv2DTranspose(6, 2, strides=2, activation='selu', name='widest')(x)
        x = layers.GlobalAveragePooling2D(name='mean')(x)
        self.check(keras.Model(image, layers.Dense(5, activation='softmax', name='last')(x)))

    def test_applications(self):
        from keras import applications
        shape = {'weights': None, 'input_shape': (64, 64, 3), 'classes': 10}
        for make in (applications.MobileNetV2, applications.VGG16, applications.ResNet50,
                     applications.MobileNetV3Small):
            self.check(make(**shape))
        # Normalization is a norm among others here, which names of Keras 3 do not count
        for make in applications.EfficientNetB0, applications.EfficientNetV2B0:
            self.check(make(**shape), ('m.keras', 'm.h5'))

    def test_an_application_within_a_model(self):
        """What transfer learning in Keras makes is read by the zoo's model."""
        import keras
        base = keras.applications.MobileNetV2(weights=None, include_top=False,
                                              input_shape=(SIZE, SIZE, 3))
        model = keras.Sequential([
            keras.Input((SIZE, SIZE, 3)), keras.layers.RandomFlip(), base,
            keras.layers.GlobalAveragePooling2D(), keras.layers.Dropout(0.2),
            keras.layers.Dense(6, activation='softmax')])
        self.fill(model)
        x = self.images()
        model.save(self.path('m.keras'))
        model.save(self.path('m.h5'))
        model.save_weights(self.path('m.weights.h5'))
        for file in 'm.keras', 'm.h5', 'm.weights.h5':
            found = self.computed('mobilenet-v2', x, 'softmax_1', '--set', 'classes=6', '--set',
                                  f'input=[{SIZE},{SIZE},3]', '--set', 'keras=true',
                                  '--weights', file)
            self.compare(f'within a model by {file}', found, model.predict(x, verbose=0))

    def test_export(self):
        """Keras loads by name what was exported, and computes the same."""
        import keras
        self.train('xception')
        self.run_program('export', 'run', '--format', 'keras-h5', '-o', 'out.h5')
        theirs = keras.applications.Xception(weights=None, classes=4,
                                             input_shape=(SIZE, SIZE, 3))
        theirs.load_weights(self.path('out.h5'))
        x = self.images()
        found = self.computed('run', x, 'softmax_1')
        self.compare('xception for Keras', found, theirs.predict(x, verbose=0))


@unittest.skipUnless(has('torch', 'torchvision', 'safetensors'),
                     'needs PyTorch, torchvision and safetensors')
class Torchvision(Compared):
    def check(self, model, make):
        import torch
        from safetensors.torch import load_file
        self.train(model)
        self.run_program('export', 'run', '--format', 'safetensors', '--names', 'torchvision',
                         '-o', 'out.safetensors')
        theirs = make(weights=None, num_classes=4).eval()
        left = theirs.load_state_dict(load_file(self.path('out.safetensors')), strict=False)
        self.assertEqual(left.unexpected_keys, [])
        self.assertEqual([n for n in left.missing_keys if 'num_batches_tracked' not in n], [])
        x = self.images()
        with torch.no_grad():
            y = theirs(torch.from_numpy(x).permute(0, 3, 1, 2)).softmax(1).numpy()
        found = self.computed('run', x, 'softmax_1')
        self.compare(model + ' for torchvision', found, y)
        # And back: what torchvision saves is taken, and is the same.
        torch.save(theirs.state_dict(), self.path('back.pth'))
        back = self.computed('run', x, 'softmax_1', '--weights', 'back.pth')
        self.assertTrue((back == found).all())

    def test_mobilenet(self):
        import torchvision
        self.check('mobilenet-v2', torchvision.models.mobilenet_v2)

    def test_resnet(self):
        import torchvision
        self.check('resnet50', torchvision.models.resnet50)


if __name__ == '__main__':
    if not has('tensorflow') and not has('torch', 'torchvision'):
        print('neither TensorFlow nor PyTorch with torchvision is installed')
        sys.exit(77)
    program.main()
