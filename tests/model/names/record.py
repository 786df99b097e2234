#!/usr/bin/env python3
"""Records what torchvision and Keras call the weights of models that the zoo has too, and their
shapes, for the test beside this folder: record.py torchvision|keras, where that is installed.
"""
import os
import sys
from pathlib import Path

HERE = Path(__file__).parent


def write(name, arrays):
    lines = [f'{key} {" ".join(map(str, shape))}\n' for key, shape in arrays]
    (HERE / f'{name}.txt').write_text(''.join(lines))


def record_torchvision():
    import torchvision
    for ours, theirs, part in (
            ('densenet121', 'densenet121', ''), ('efficientnet-b0', 'efficientnet_b0', ''),
            ('inception-v3', 'inception_v3', ''), ('mobilenet-v2', 'mobilenet_v2', ''),
            ('mobilenet-v3-large', 'mobilenet_v3_large', ''), ('resnet18', 'resnet18', ''),
            ('resnet50', 'resnet50', ''), ('squeezenet', 'squeezenet1_0', ''),
            ('vgg16', 'vgg16', 'features.'), ('vgg19', 'vgg19', '')):
        state = getattr(torchvision.models, theirs)(weights=None).state_dict()
        write(f'{ours}.torchvision',
              [(key, value.shape) for key, value in state.items()
               if key.startswith(part) and value.ndim and not key.startswith('AuxLogits')])


def record_keras():
    os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
    import keras
    for ours, theirs in (('densenet121', 'DenseNet121'), ('efficientnet-b0', 'EfficientNetB0'),
                         ('inception-v3', 'InceptionV3'), ('mobilenet-v2', 'MobileNetV2'),
                         ('mobilenet-v3-large', 'MobileNetV3Large'), ('resnet50', 'ResNet50'),
                         ('xception', 'Xception'), ('vgg16', 'VGG16'), ('vgg19', 'VGG19')):
        keras.backend.clear_session()
        model = getattr(keras.applications, theirs)(weights=None)
        write(f'{ours}.keras', [(f'{layer.name}/{weight.name}', weight.shape)
                                for layer in model.layers for weight in layer.weights
                                if (theirs != 'VGG16' or 'block' in layer.name) and
                                layer.name != 'normalization'])


if __name__ == '__main__':
    {'torchvision': record_torchvision, 'keras': record_keras}[sys.argv[1]]()
