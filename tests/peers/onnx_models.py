"""Models of PyTorch and Keras with random weights, and the files that their exporters write:
make() for onnx_imports.py. Needs PyTorch, torchvision and transformers, or TensorFlow, Keras
and tf2onnx."""
import os

import numpy as np

CNNS = {'resnet18': 64, 'resnet50': 64, 'mobilenet_v2': 64, 'mobilenet_v3_small': 64,
        'efficientnet_b0': 64, 'densenet121': 64, 'inception_v3': 139, 'squeezenet1_1': 64,
        'convnext_tiny': 64}
TEXTS = 'lstm', 'gru', 'rnn', 'bilstm', 'bigru', 'birnn', 'lstm2'
PADDED = 'lstm_padded', 'gru_padded', 'rnn_padded', 'bilstm_padded'
ENCODERS = 'vit_tiny', 'bert', 'bert_mask', 'bert_sdpa', 'bert_sdpa_mask', 'encoder_mask'
TORCH = [*CNNS, *TEXTS, *PADDED, *ENCODERS]
KERAS_CNNS = {'mobilenet': 'MobileNetV2', 'mobilenetv1': 'MobileNet',
              'mobilenetv3': 'MobileNetV3Small', 'resnet': 'ResNet50',
              'resnetv2': 'ResNet50V2', 'efficientnet': 'EfficientNetB0',
              'densenet': 'DenseNet121', 'inception': 'InceptionV3',
              'xception': 'Xception'}  # tf2onnx writes ConvNeXt's gelu as no operator of ONNX
KERAS_TEXTS = 'lstm', 'gru', 'rnn', 'bilstm', 'bigru'
KERAS_PADDED = tuple(f'{each}_padded' for each in (
    'lstm', 'gru', 'gru-before', 'rnn', 'bilstm', 'bigru', 'lstm2', 'bigru2', 'lstm-steps',
    'bilstm-mean'))
KERAS = [f'keras_{name}' for name in (*KERAS_CNNS, 'convnet', *KERAS_TEXTS, *KERAS_PADDED,
                                      'bert', 'bert_mask')]
CLASSES, WORDS, LENGTH, BATCH = 10, 50, 12, 4


def tokens_of(seed=1):
    """Tokens, and how many of each row count, the longest one first."""
    numbers = np.random.default_rng(seed)
    lengths = np.array([LENGTH, 9, 5, 1])
    tokens = numbers.integers(1, WORDS, (BATCH, LENGTH))
    return tokens, lengths, (np.arange(LENGTH) < lengths[:, None]).astype(np.int64)


# --- PyTorch ------------------------------------------------------------------------------

def torch_text(kind):
    import torch
    from torch import nn
    made = {'lstm': nn.LSTM, 'gru': nn.GRU, 'rnn': nn.RNN}
    layer, two = kind.split('_')[0].rstrip('2'), kind.startswith('bi')
    layer = layer[2:] if two else layer

    class Text(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(WORDS, 16)
            self.layer = made[layer](16, 32, 2 if kind.endswith('2') else 1, batch_first=True,
                                     bidirectional=two)
            self.top = nn.Linear(64 if two else 32, CLASSES)

        def forward(self, tokens, lengths=None):
            if lengths is None:
                return self.top(self.layer(self.table(tokens))[0][:, -1])
            packed = nn.utils.rnn.pack_padded_sequence(self.table(tokens), lengths, True)
            steps, last = self.layer(packed)
            steps, _ = nn.utils.rnn.pad_packed_sequence(steps, True)
            last = last[0] if layer == 'lstm' else last
            return self.top(steps.sum(1) + torch.cat(last.unbind(0), -1))

    tokens, lengths, _ = tokens_of()
    given = [torch.tensor(tokens)]
    return Text(), given + [torch.tensor(lengths)] if kind.endswith('padded') else given


def torch_bert(name):
    import torch
    import transformers
    made = transformers.BertForSequenceClassification(transformers.BertConfig(
        vocab_size=WORDS, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=128, max_position_embeddings=32, num_labels=CLASSES,
        attn_implementation='sdpa' if 'sdpa' in name else 'eager'))

    class Bert(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = made

        def forward(self, tokens, mask=None):
            return self.bert(input_ids=tokens, attention_mask=mask).logits

    return Bert()


def torch_encoder():
    """PyTorch's own layers; the mask is of the places that count."""
    import torch
    from torch import nn

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(WORDS, 64)
            self.places = nn.Parameter(torch.randn(LENGTH, 64))
            self.blocks = nn.TransformerEncoder(nn.TransformerEncoderLayer(
                64, 4, 128, batch_first=True, activation='gelu'), 2)
            self.top = nn.Linear(64, CLASSES)

        def forward(self, tokens, mask):
            y = self.blocks(self.table(tokens) + self.places, src_key_padding_mask=mask == 0)
            counted = mask.unsqueeze(-1).float()
            return self.top((y * counted).sum(1) / counted.sum(1))

    return Encoder()


def torch_model(name):
    """The model, in training mode as it was made, and its inputs."""
    import torch
    import torchvision
    torch.manual_seed(1)
    if name in (*TEXTS, *PADDED):
        return torch_text(name)
    if name == 'vit_tiny':
        model = torchvision.models.VisionTransformer(
            image_size=64, patch_size=16, num_layers=12, num_heads=3, hidden_dim=192,
            mlp_dim=768, num_classes=CLASSES)
        torch.nn.init.normal_(model.heads.head.weight, std=0.05)
        return model, [torch.randn(BATCH, 3, 64, 64)]
    if name in ENCODERS:
        tokens, _, mask = tokens_of()
        model = torch_encoder() if name.startswith('encoder') else torch_bert(name)
        given = [torch.tensor(tokens)]
        return model, given + [torch.tensor(mask)] if name.endswith('mask') else given
    more = {'init_weights': True, 'aux_logits': False} if name == 'inception_v3' else {}
    model = getattr(torchvision.models, name)(num_classes=CLASSES, **more)
    return model, [torch.randn(BATCH, 3, CNNS[name], CNNS[name])]


def settle_norms(model, x):
    """Averages of norms that are those of the data, so that values stay in a sensible range."""
    import torch
    if any(isinstance(m, torch.nn.BatchNorm2d) for m in model.modules()):
        for m in model.modules():
            if isinstance(m, torch.nn.BatchNorm2d):
                m.momentum = None
        model.train()
        with torch.no_grad():
            for _ in range(2):
                model(torch.randn(4 * BATCH, *x.shape[1:]))
    model.eval()


def make_torch(folder, name, exporter, is_fixed):
    import torch
    model, given = torch_model(name)
    settle_norms(model, given[0])
    place = os.path.join(folder, f'{name}_{exporter}{"-fixed" if is_fixed else ""}')
    torch.save(model.state_dict(), os.path.join(folder, name + '.pt'))
    inputs = [f'x{i}' for i in range(len(given))]
    names = {'input_names': inputs, 'output_names': ['y0']}
    with torch.no_grad():
        if exporter != 'dynamo':
            kind = torch.onnx.TrainingMode
            axes = {} if is_fixed else {n: {0: 'n'} for n in [*inputs, 'y0']}
            torch.onnx.export(model, tuple(given), place + '.onnx', dynamo=False,
                              opset_version=17, dynamic_axes=axes,
                              training=kind.PRESERVE if exporter == 'norms' else kind.EVAL,
                              **names)
        else:
            n = torch.export.Dim('n')
            shapes = None if is_fixed else tuple({0: n} for _ in given)
            torch.onnx.export(model, tuple(given), place + '.onnx', dynamo=True,
                              dynamic_shapes=shapes, **names)
    return place, [x.numpy() for x in given]


# --- Keras --------------------------------------------------------------------------------

def keras_text(kind):
    """Of padded ones the last row has no token, but where a mean of none would be taken."""
    import keras
    layers = keras.layers
    what, _, head = kind.removesuffix('_padded').partition('-')
    two, stacked, is_padded = what.startswith('bi'), what.endswith('2'), kind.endswith('padded')
    made = {'lstm': layers.LSTM, 'gru': layers.GRU, 'rnn': layers.SimpleRNN}[
        what.removeprefix('bi').rstrip('2')]
    tokens = keras.Input((LENGTH,), dtype='int32')
    y = layers.Embedding(WORDS, 16, mask_zero=is_padded)(tokens)
    for left in range(stacked, -1, -1):
        layer = made(32, return_sequences=left > 0 or head in ('steps', 'mean'),
                     **({'reset_after': False} if head == 'before' else {}))
        y = (layers.Bidirectional(layer) if two else layer)(y)
    if head == 'mean':
        y = layers.GlobalAveragePooling1D()(y)
    x, _, mask = tokens_of()
    if head != 'mean':
        mask[-1] = 0
    return keras.Model(tokens, layers.Dense(CLASSES)(y)), [x * mask if is_padded else x]


def keras_bert(has_mask):
    import keras
    layers = keras.layers
    tokens = keras.Input((LENGTH,), dtype='int32')
    mask = keras.Input((LENGTH,), dtype='int32')

    class Places(layers.Layer):
        def build(self, _):
            self.table = self.add_weight(shape=(LENGTH, 64), initializer='normal')

        def call(self, x):
            return x + self.table

    y = layers.LayerNormalization()(Places()(layers.Embedding(WORDS, 64)(tokens)))
    counts = keras.ops.cast(mask, 'bool')[:, None, :] if has_mask else None
    for _ in range(2):
        seen = layers.MultiHeadAttention(4, 16)(y, y, attention_mask=counts)
        y = layers.LayerNormalization(epsilon=1e-6)(y + seen)
        wide = keras.activations.gelu(layers.Dense(128)(y), approximate=True)
        y = layers.LayerNormalization(epsilon=1e-6)(y + layers.Dense(64)(wide))
    y = layers.Dense(CLASSES)(layers.Dense(64, activation='tanh')(y[:, 0]))
    x, _, m = tokens_of()
    return (keras.Model([tokens, mask], y), [x, m]) if has_mask else (keras.Model(tokens, y),
                                                                     [x])


def keras_convnet():
    import keras
    layers = keras.layers
    return keras.Sequential([
        keras.Input((64, 64, 3)), layers.Conv2D(16, 3, strides=2, activation='relu'),
        layers.BatchNormalization(), layers.MaxPooling2D(2),
        layers.SeparableConv2D(32, 3, padding='same', activation='relu'),
        layers.GlobalAveragePooling2D(), layers.Dropout(0.1),
        layers.Dense(CLASSES, activation='softmax')])


def keras_model(name):
    """The model and its inputs; norms have the averages of random images."""
    import keras
    keras.utils.set_random_seed(1)
    kind = name.split('_', 1)[1]
    if kind in (*KERAS_TEXTS, *KERAS_PADDED):
        model, given = keras_text(kind)
        return model, [x.astype(np.int32) for x in given]
    if kind.startswith('bert'):
        model, given = keras_bert(kind.endswith('mask'))
        return model, [x.astype(np.int32) for x in given]
    size = {'inception': 139, 'xception': 71}.get(kind, 64)
    model = keras_convnet() if kind == 'convnet' else getattr(
        keras.applications, KERAS_CNNS[kind])(weights=None, classes=CLASSES,
                                              input_shape=(size, size, 3),
                                              classifier_activation=None)
    if kind == 'efficientnet':  # tf2onnx makes inputs of the numbers of a Normalization
        model = keras.Model(model.get_layer('stem_conv_pad').input, model.output)
    x = np.random.standard_normal((4 * BATCH, size, size, 3)).astype(np.float32) * 50 + 100
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0
    model(x, training=True)
    return model, [x[:BATCH]]


def make_keras(folder, name, exporter, is_fixed):
    import tensorflow as tf
    model, given = keras_model(name)
    place = os.path.join(folder, f'{name}_{exporter}{"-fixed" if is_fixed else ""}')
    model(given if len(given) > 1 else given[0])
    n = BATCH if is_fixed else None
    if exporter == 'keras':
        import keras
        spec = [keras.InputSpec(dtype=x.dtype.name, shape=(n, *x.shape[1:])) for x in given]
        model.export(place + '.onnx', format='onnx', verbose=False,
                     **({'input_signature': [spec if len(spec) > 1 else spec[0]]} if is_fixed
                        else {}))
    else:
        import tf2onnx
        spec = [tf.TensorSpec([n, *x.shape[1:]], tf.as_dtype(x.dtype), name=f'x{i}')
                for i, x in enumerate(given)]

        def computed(*x):
            return model(list(x) if len(x) > 1 else x[0], training=False)

        tf2onnx.convert.from_function(tf.function(computed), spec, opset=17,
                                      output_path=place + '.onnx')
    return place, given


def make(folder, name, exporter):
    """FOLDER/NAME_EXPORTER.onnx, and its inputs .x0.npy, .x1.npy; 'torch-fixed' and its like
    have the number of samples in the file."""
    exporter, *fixed = exporter.split('-')
    place, given = (make_torch if name in TORCH else make_keras)(folder, name, exporter,
                                                                 bool(fixed))
    for i, x in enumerate(given):
        np.save(f'{place}.x{i}.npy', x)
