#!/usr/bin/env python3
"""Makes models of text with Keras, and what Keras computes of them: make_keras.py FOLDER

Needs keras, one of its backends and h5py. Beside NAME.safetensors, which has the arrays under
the names of a .keras archive and the configuration as metadata, there are NAME.x.npy,
NAME.n.npy, the lengths where tokens are masked, and NAME.y.npy.
"""
import os
import sys
import tempfile

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '-1')

import h5py
import keras
import numpy as np
from keras import Input, Model, Sequential
from keras import layers as L

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../keras_models'))
from write import write_safetensors

WORDS, STEPS = 11, 7
random = np.random.RandomState(1)


def recurrent():
    """All kinds of cells, and a type of tokens that only the embedding tells."""
    return Sequential([
        Input((STEPS,)), L.Embedding(WORDS, 6), L.LSTM(5, return_sequences=True),
        L.LayerNormalization(), L.GRU(4, return_sequences=True, go_backwards=True),
        L.GRU(5, reset_after=False, return_sequences=True, activation='relu'),
        L.TimeDistributed(L.Dense(4, activation='tanh')),
        L.SimpleRNN(5, use_bias=False), L.Dense(3, activation='softmax')])


def masked():
    """Texts of several lengths, both directions."""
    tokens = Input((STEPS,), dtype='int32', name='tokens')
    x = L.Embedding(WORDS, 6, mask_zero=True)(tokens)
    x = L.Bidirectional(L.LSTM(4, return_sequences=True))(x)
    a = L.Bidirectional(L.GRU(3), merge_mode='sum')(x)
    b = L.GlobalAveragePooling1D()(L.Dropout(.2)(x))
    return Model(tokens, L.Dense(4)(L.Concatenate()([a, b])))


def windows():
    x = i = Input((STEPS,), dtype='int64')
    x = L.Embedding(WORDS, 6)(x)
    x = L.Conv1D(5, 3, padding='causal', dilation_rate=2, activation='relu')(x)
    x = L.MaxPooling1D(2, strides=1, padding='same')(x)
    x = L.AveragePooling1D(3, strides=2, padding='same')(L.Conv1D(4, 2)(x))
    return Model(i, L.Concatenate()([L.GlobalMaxPooling1D()(x), L.Flatten()(x)]))


def attention():
    i = Input((STEPS,), dtype='int32')
    x = L.Embedding(WORDS, 6)(i)
    y = L.MultiHeadAttention(2, 3)(x, x, use_causal_mask=True)
    x = L.LayerNormalization()(L.Add()([x, y]))
    y = L.MultiHeadAttention(3, 2, value_dim=4, use_bias=False)(x, value=y, key=y)
    return Model(i, L.GlobalAveragePooling1D()(L.Add()([x, y])))


def arrays_of(model):
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'a.weights.h5')
        model.save_weights(path)
        with h5py.File(path) as file:
            file.visititems(lambda name, item: found.update({name: np.array(item)})
                            if isinstance(item, h5py.Dataset) and 'seed' not in name else None)
    return found


def main(folder):
    for make in recurrent, masked, windows, attention:
        keras.utils.clear_session()
        model, path = make(), f'{folder}/{make.__name__}'
        for v in model.weights:
            if 'seed' not in v.name:
                v.assign((random.rand(*v.shape) - .4) * 1.5)
        lengths = np.array([STEPS, 1, 4], 'i4')
        tokens = random.randint(1, WORDS, (3, STEPS)).astype('i4')
        if make is masked:
            tokens *= np.arange(STEPS)[None] < lengths[:, None]
            np.save(f'{path}.n.npy', lengths)
        np.save(f'{path}.x.npy', tokens)
        np.save(f'{path}.y.npy', keras.ops.convert_to_numpy(model(tokens)))
        write_safetensors(f'{path}.safetensors', arrays_of(model),
                          {'model_config': model.to_json(), 'keras_version': keras.__version__})


if __name__ == '__main__':
    main(sys.argv[1])
