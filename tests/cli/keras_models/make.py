#!/usr/bin/env python3
"""Makes models of Keras with inputs and what Keras computes of them: make.py FOLDER

Needs keras and one of its backends. Beside NAME.keras there is NAME.safetensors, with the same
arrays and the configuration as metadata, which Lockstep reads without libhdf5 and libzip.
"""
import os
import sys

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '-1')

import keras
import numpy as np
from keras import Input, Model, Sequential
from keras import layers as L
from keras.src.utils import naming
from write import write_safetensors

random = np.random.RandomState(1)


def sequential():
    return Sequential([
        Input((12, 10, 3)), L.Rescaling(0.5, -0.25),
        L.Conv2D(5, 3, strides=2, padding='same', activation='relu'), L.BatchNormalization(),
        L.MaxPooling2D(), L.Flatten(), L.Dropout(.5), L.Dense(7, activation='tanh'),
        L.Dense(4, activation='softmax', name='out: 1')], name='my model')


def functional():
    """Shared layers, several inputs and outputs, activations that differ from Keras 2's."""
    a, b = Input((9, 11, 4), name='left'), Input((9, 11, 4), name='right')
    v = Input((5,), name='v')
    shared = L.Conv2D(6, (3, 2), padding='same', dilation_rate=2, use_bias=False)
    x = L.LeakyReLU(negative_slope=.1)(L.Add()([shared(a), shared(b)]))
    y = L.DepthwiseConv2D(3, depth_multiplier=2, strides=2, padding='same',
                          activation='hard_sigmoid')(x)
    z = L.SeparableConv2D(4, 3, depth_multiplier=3, activation='leaky_relu')(x)
    z = L.AveragePooling2D((3, 2), strides=2, padding='same')(z)
    u = L.Dense(8, activation='elu')(v)
    q = L.Dense(8, activation='silu')(L.GlobalAveragePooling2D()(y))
    w = L.Dense(3)(L.Dense(6, activation='gelu')(L.Flatten()(z)))
    return Model([a, b, v], [w, L.Multiply()([u, q])])


def nested():
    """Models in a model, each called twice; one with two outputs."""
    image, other = Input((8, 8, 2)), Input((6, 6, 2))
    inner = Sequential([Input((8, 8, 2)), L.Conv2D(3, 3, activation='relu'), L.Conv2D(2, 1)])
    two = Model(other, [L.Flatten()(other), L.Conv2D(4, 3, groups=2)(other)])
    p, q = two(inner(image))
    q = L.Flatten()(L.GlobalAveragePooling2D(keepdims=True)(q))
    _, r = two(L.ReLU(max_value=6)(inner(L.Activation('softsign')(image))))
    return Model(image, [L.Dense(5)(p), q, L.ReLU()(r)])


def towers():
    """A model in a model in a model, and one whose only layer with arrays is called twice; a
    .h5 file names their arrays in two ways."""
    image = Input((6, 6, 2))
    low = Sequential([Input((6, 6, 2)), L.Conv2D(3, 3), L.BatchNormalization()])
    inside = Input((6, 6, 2))
    high = Model(inside, L.Conv2D(2, 3)(low(inside)))
    alone = Sequential([Input((6, 6, 2)), L.Conv2D(2, 3, activation='tanh')])
    both = L.Add()([alone(image), alone(L.ReLU()(image))])
    return Model(image, L.Dense(3)(L.Concatenate()([L.Flatten()(high(image)),
                                                    L.Flatten()(both)])))


def decoder():
    """A vector that becomes an image."""
    code = Input((10,))
    x = L.LeakyReLU()(L.BatchNormalization(scale=False)(L.Dense(4 * 3 * 5)(code)))
    return Model(code, L.Conv2D(3, 3, padding='same', activation='sigmoid')(
        L.Reshape((4, 3, 5))(x)))


def arranged():
    image = Input((8, 6, 4))
    x = L.Conv2D(6, 3)(L.ZeroPadding2D(((1, 0), (2, 1)))(image))
    x = L.Concatenate()([L.UpSampling2D(2)(x),
                         L.UpSampling2D((2, 2), interpolation='bilinear')(x)])
    x = L.Cropping2D(((1, 2), (0, 1)))(x)
    s = L.Dense(12, activation='sigmoid')(L.GlobalMaxPooling2D(keepdims=True)(x))
    x = L.Multiply()([x, s])
    x = L.Concatenate()([L.Flatten()(x), L.GlobalAveragePooling2D()(x)])
    return Model(image, L.Softmax()(L.Dense(5)(x)))


def bounded():
    """Functions with bounds, norms over whole images, one frozen norm for two branches."""
    image = Input((5, 7, 3))
    norm = L.BatchNormalization()
    norm.trainable = False
    x = norm(L.Conv2D(4, 2, activation='softmax')(image))
    y = norm(L.ReLU(max_value=0.75, negative_slope=0.25)(L.Conv2D(4, 2)(image)))
    z = L.LayerNormalization(axis=[1, 2, 3])(L.Add()([x, y]))
    return Model(image, [L.Softmax()(z), L.ReLU(max_value=2)(z)])


def fixed():
    """Numbers of the configuration for each channel, sums with numbers, dropouts of more than
    single numbers."""
    image = Input((6, 5, 3))
    x = L.Rescaling([2., .5, 1.5], offset=-.25)(image)
    x = L.Normalization(mean=[.5, -.25, 1.], variance=[4., 0., 2.])(x)
    x = L.Rescaling([1., 1e-7, 1.])(x)
    x = L.SpatialDropout2D(.5)(L.Conv2D(4, 3, padding='same')(x))
    x = L.Dropout(.25, noise_shape=(None, 1, 1, 1))(L.ReLU(6.)(x + 3.) * (1. / 6.))
    x = L.Flatten()(L.Dropout(.25, noise_shape=(None, 1, 1, 4))((1 - x) / 2 - .75))
    x = L.Normalization(mean=[k / 99 for k in range(120)],
                        variance=[1 + k / 50 for k in range(120)])(x)
    return Model(image, L.Dense(3)(L.Rescaling([k / 60 for k in range(120)])(x)))


def alike():
    """Layers of the same shapes in models in a model, of which nothing but names tells which is
    which; one of the models is called twice, also as an output; shared parts of layers."""
    def block(name, *layers):
        x = first = Input((6, 6, 3))
        for layer in layers:
            x = layer(x)
        return Model(first, x, name=name)

    image = Input((6, 6, 3))
    deep = Sequential([Input((6, 6, 3)), L.Conv2D(3, 1, name='e')], name='deep')
    b = block('b', L.Conv2D(3, 1, activation='tanh'), deep, L.Conv2D(3, 1, name='f'))
    a = block('a', L.Conv2D(3, 1, activation='softsign'), L.Conv2D(3, 1, use_bias=False))
    apart = L.SeparableConv2D(3, 3, padding='same', activation='relu', name='apart')
    x = a(b(image))
    y = L.Subtract()([a(apart(apart(x))), L.Conv2D(3, 1, name='c')(x)])
    return Model(image, [x, L.Dense(2)(L.Flatten()(y))])


def plain():
    """Layers of one shape, of which nobody has named any."""
    return Sequential([Input((4,)), L.Dense(4, activation='tanh'), L.Dense(4)])


def arrays_of(model, prefix=''):
    """The arrays by the names that they have in a .keras archive."""
    used, found = {}, {}
    for layer in model._layers if isinstance(model, Sequential) else model.layers:
        name = naming.to_snake_case(type(layer).__name__)
        used[name] = used.get(name, -1) + 1
        path = f'{prefix}layers/{name}' + (f'_{used[name]}' if used[name] else '')
        if isinstance(layer, Model):
            found.update(arrays_of(layer, path + '/'))
            continue
        for i, v in enumerate(layer._trainable_variables + layer._non_trainable_variables):
            if 'seed' not in v.name:
                found[f'{path}/vars/{i}'] = keras.ops.convert_to_numpy(v)
    return found


def fill(model):
    for v in model.weights:
        if 'variance' in v.name:
            v.assign(random.rand(*v.shape) + .5)
        elif 'seed' not in v.name:
            v.assign((random.rand(*v.shape) - .4) * .9)


def main(folder):
    for make in (sequential, functional, nested, decoder, arranged, bounded, towers, fixed,
                 alike, plain):
        keras.utils.clear_session()
        model, path = make(), f'{folder}/{make.__name__}'
        fill(model)
        x = [random.randn(3, *t.shape[1:]).astype('f4') for t in model.inputs]
        y = model(x[0] if len(x) == 1 else x)
        write_safetensors(f'{path}.safetensors', arrays_of(model),
                          {'model_config': model.to_json(), 'keras_version': keras.__version__})
        model.save(f'{path}.keras')
        model.save(f'{path}.h5')
        model.save_weights(f'{path}.weights.h5')
        for i, array in enumerate(x):
            np.save(f'{path}.x{i}.npy', array)
        for i, array in enumerate(y if isinstance(y, (list, tuple)) else [y]):
            np.save(f'{path}.y{i}.npy', keras.ops.convert_to_numpy(array))


main(sys.argv[1])
