#!/usr/bin/env python3
"""Makes a model of Keras 2 with an input and what Keras computes of it: make_keras_2.py FOLDER

Needs tf_keras. References to a model in a model are counted as Keras 3 does not.
"""
import os
import sys

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '-1')

import numpy as np
from tf_keras import Input, Model, Sequential
from tf_keras import layers as L

random = np.random.RandomState(1)


def shared():
    """Models in a model, called twice, also as an output."""
    vector, first = Input((4,)), Input((4,))
    a = Model(first, L.Dense(4, activation='tanh')(first), name='a')
    b = Sequential([Input((4,)), L.Dense(4), L.LeakyReLU(.25)], name='b')
    y = a(vector)
    z = b(y)
    return Model(vector, [y, L.Dense(3)(b(z)), L.Dense(2)(a(z))])


def main(folder):
    model, path = shared(), f'{folder}/shared'
    for w in model.weights:
        w.assign((random.rand(*w.shape) - .4) * .9)
    x = random.randn(3, 4).astype('f4')
    model.save(f'{path}.h5', include_optimizer=False)
    np.save(f'{path}.x0.npy', x)
    for i, y in enumerate(model(x)):
        np.save(f'{path}.y{i}.npy', y.numpy())


main(sys.argv[1])
