"""Networks with weights of other people compute on photographs what PyTorch and TensorFlow
compute: python3 pretrained.py PROGRAM. What needs $LOCKSTEP_DATA/pretrained, PyTorch with
torchvision, or TensorFlow is skipped where that is missing; exit status 77 where nothing is
there."""
import glob
import importlib.util
import os
import sys
import unittest

import program
from program import ProgramTest

# A test beside program.py is called profile.py, as is a module of Python that PyTorch imports.
sys.path.remove(os.path.dirname(os.path.abspath(program.__file__)))

DATA = os.environ.get('LOCKSTEP_DATA', '')
MOBILENET = os.path.join(DATA, 'pretrained', 'mobilenet-v2-imagenet.pt')
VGG16 = os.path.join(DATA, 'pretrained', 'vgg16-hed.weights.h5')
PHOTOS = sorted(glob.glob(os.path.join(DATA, 'trashnet', 'test', '*', '*')))[::60]
HED = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'hed.yaml')
CAFFE_MEAN = 104.00698793, 116.66876762, 122.67891434
CONVOLUTIONS = 2, 2, 3, 3, 3


def has(*modules):
    return all(importlib.util.find_spec(m) for m in modules)


class Pretrained(ProgramTest):
    def computed(self, model, x, taps, *arguments):
        """The values of `lockstep run` on x by name; its output is among them."""
        import numpy
        numpy.save(self.path('x.npy'), x.astype('float32'))
        named = sum((['--tap', t] for t in taps), [])
        self.run_program('run', model, *arguments, '--input', 'x.npy', *named, '--output', 'y',
                         timeout=3600)
        return {os.path.basename(f)[:-4]: numpy.load(f)
                for f in glob.glob(self.path('y/*.npy'))}

    def compare(self, name, mine, theirs, tolerance=1e-4):
        self.assertEqual(mine.shape, theirs.shape)
        largest = abs(theirs).max()
        worst = abs(mine - theirs).max() / largest
        print(f'{name}: {worst:.2g} of the largest value, {largest:.4g}', file=sys.stderr)
        self.assertGreater(largest, 0)
        self.assertLess(worst, tolerance)


@unittest.skipUnless(has('torch', 'torchvision', 'PIL') and os.path.exists(MOBILENET),
                     'needs PyTorch, torchvision and the weights')
class MobileNet(Pretrained):
    def test_features(self):
        """The 1280 features of photographs. Measured: 2.8e-6 of the largest."""
        import numpy
        import torch
        import torchvision
        from PIL import Image
        theirs = torchvision.models.mobilenet_v2(weights=None).eval()
        # The file has the names of an older port with the same layers in the same order.
        values = torch.load(MOBILENET, weights_only=True)
        names = [n for n in theirs.state_dict() if n.startswith('features.')]
        self.assertEqual(len(names), len(values))
        theirs.load_state_dict(dict(zip(names, values.values())), strict=False)
        pixels = [numpy.asarray(Image.open(p).convert('RGB').resize((224, 224), 2))
                  for p in PHOTOS]
        x = ((numpy.stack(pixels) / 255 - (0.485, 0.456, 0.406)) /
             (0.229, 0.224, 0.225)).astype('float32')
        with torch.no_grad():
            y = theirs.features(torch.from_numpy(x).permute(0, 3, 1, 2)).mean((2, 3)).numpy()
        layer = 'global_average_pool_1'
        mine = self.computed('mobilenet-v2', x, [layer], '--weights', MOBILENET)
        self.compare('mobilenet-v2', mine[layer], y)


@unittest.skipUnless(has('tensorflow', 'h5py') and os.path.exists(VGG16),
                     'needs TensorFlow, h5py and the weights')
class Vgg16(Pretrained):
    def setUp(self):
        super().setUp()
        import h5py
        self.file = h5py.File(VGG16)
        self.addCleanup(self.file.close)

    def photos(self, height, width):
        """As the weights want them: blue first, minus the mean."""
        import tensorflow as tf
        pixels = [tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(p), channels=3),
                                  (height, width)) for p in PHOTOS[:4]]
        return tf.stack(pixels).numpy()[..., ::-1] - CAFFE_MEAN

    def arrays(self, layer):
        return [self.file[layer]['vars'][n][()] for n in '01']

    def blocks(self, x):
        """The outputs of Keras's VGG16 behind the last convolution of each block."""
        import keras
        vgg16 = keras.applications.VGG16(weights=None, include_top=False,
                                         input_shape=x.shape[1:])
        for b, count in enumerate(CONVOLUTIONS, 1):
            for i in range(count):
                name = f'block{b}/layers/conv2d' + (f'_{i}' if i else '')
                vgg16.get_layer(f'block{b}_conv{i + 1}').set_weights(self.arrays(name))
        ends = [vgg16.get_layer(f'block{b}_conv{c}').output
                for b, c in enumerate(CONVOLUTIONS, 1)]
        return [y.numpy() for y in keras.Model(vgg16.input, ends)(x.astype('float32'))]

    def test_blocks(self):
        """All five blocks' outputs. Measured: at most 4.2e-6 of the largest."""
        x = self.photos(224, 224)
        taps = [f'block{b}_conv{c}' for b, c in enumerate(CONVOLUTIONS, 1)]
        mine = self.computed('vgg16', x, taps, '--weights', VGG16)
        for tap, theirs in zip(taps, self.blocks(x)):
            self.compare('vgg16 ' + tap, mine[tap], theirs)

    def test_edges(self):
        """The whole detector draws the same map of edges. Measured: 1.9e-6 of the largest."""
        import numpy
        import tensorflow as tf
        x = self.photos(160, 224)
        sides = []
        for b, block in enumerate(self.blocks(x), 1):
            weight, bias = self.arrays(f'dsn{b}')
            side = tf.nn.conv2d(block, weight, 1, 'SAME') + bias
            sides.append(tf.image.resize(side, x.shape[1:3], method='bilinear').numpy())
        weight, bias = self.arrays('fuse')
        fused = tf.nn.conv2d(numpy.concatenate(sides, -1), weight, 1, 'SAME') + bias
        edges = tf.sigmoid(fused).numpy()
        self.assertGreater(edges.max(), 0.5)
        self.assertLess(numpy.median(edges), 0.2)
        taps = ['dsn1', 'side2', 'side3', 'side4', 'side5', 'fuse']
        mine = self.computed(HED, x, taps, '--weights', VGG16 + ',by=order')
        for tap, theirs in zip(taps, [*sides, fused.numpy()]):
            self.compare('hed ' + tap, mine[tap], theirs)
        self.compare('hed edges', mine['edges'], edges)


@unittest.skipUnless(has('safetensors', 'h5py') and os.path.exists(VGG16),
                     'needs safetensors, h5py and the weights')
class Frozen(Pretrained):
    """VGG16 as in the tutorial of transfer learning: all but the last four layers frozen."""

    def check(self, data, classes):
        import h5py
        import numpy
        from safetensors.numpy import load_file
        for run, device in ('one', '0'), ('two', '0/2'):
            self.run_program('train', 'vgg16', '--set', f'classes={classes}', '--set',
                             'input=[96,96,3]', '--weights', VGG16, '--train-last', '4',
                             '--pipeline', 'normalize keras-caffe', '--device', device,
                             '--data', 'folder:' + os.path.join(DATA, data), '--val', 'off',
                             '--batch-size', '16', '--shards', '2', '--lr', '0.0001',
                             '--steps', '4', '--run', run, timeout=3600)
        self.assertEqual(self.sha256('one'), self.sha256('two'))
        mine = load_file(glob.glob(self.path('one/checkpoints/*.safetensors'))[0])
        frozen = trained = 0
        with h5py.File(VGG16) as file:
            for b, count in enumerate(CONVOLUTIONS, 1):
                for i in range(count):
                    found = file[f'block{b}/layers/conv2d' + (f'_{i}' if i else '')]['vars']
                    for part, theirs in ('weight', found['0'][()]), ('bias', found['1'][()]):
                        ours = mine[f'block{b}_conv{i + 1}.{part}']
                        if theirs.ndim == 4:
                            theirs = theirs.transpose(2, 0, 1, 3)
                        same = numpy.array_equal(ours.view('u4'),
                                                 numpy.ascontiguousarray(theirs).view('u4'))
                        self.assertEqual(same, b < 5, (b, i, part))
                        frozen, trained = frozen + same, trained + (not same)
        self.assertEqual((frozen, trained), (20, 6))

    def test_trashnet(self):
        self.check('trashnet', 6)

    def test_gray_scans(self):
        self.check('oct2017-sample', 4)


if __name__ == '__main__':
    if not PHOTOS or not os.path.exists(VGG16):
        print('pretrained and trashnet are not in $LOCKSTEP_DATA: nothing was compared')
        sys.exit(77)
    program.main()
