"""The zoo's models of texts in PyTorch, with this project's names, shapes and starting
distributions of parameters: a checkpoint's arrays can be copied into state_dict() as they are.
"""
import math

import torch
from torch import nn

f = nn.functional


def there(tokens, lengths):
    """[n, t]: whether the text has this step."""
    return torch.arange(tokens.shape[1])[None] < lengths[:, None]


def glorot(shape, fan_in, fan_out):
    limit = math.sqrt(6 / (fan_in + fan_out))
    return nn.Parameter(torch.empty(shape).uniform_(-limit, limit))


class Embedding(nn.Module):
    def __init__(self, count, width):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(count, width).uniform_(-0.05, 0.05))

    def forward(self, tokens):
        return f.embedding(tokens, self.weight)


class Dense(nn.Module):
    def __init__(self, c, k, bias=True):
        super().__init__()
        self.weight = glorot((c, k), c, k)
        self.bias = nn.Parameter(torch.zeros(k)) if bias else None

    def forward(self, x):
        return f.linear(x, self.weight.T, self.bias)


class Norm(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(c))
        self.beta = nn.Parameter(torch.zeros(c))

    def forward(self, x):
        return f.layer_norm(x, self.gamma.shape, self.gamma, self.beta, 1e-5)


class Conv(nn.Module):
    """The strongest answer of each filter, of those whose middle is a step of the text."""

    def __init__(self, size, c, k):
        super().__init__()
        self.weight = glorot((size, c, k), size * c, size * k)
        self.bias = nn.Parameter(torch.zeros(k))

    def forward(self, x, mask):
        size = self.weight.shape[0]
        x = f.pad((x * mask[:, :, None]).transpose(1, 2), ((size - 1) // 2, size // 2))
        y = f.relu(f.conv1d(x, self.weight.permute(2, 1, 0), self.bias))
        return y.masked_fill(~mask[:, None], -math.inf).amax(2)


class Lstm(nn.Module):
    """PyTorch's layer of one direction, with parameters that are this project's turned."""

    def __init__(self, c, units, back=False):
        super().__init__()
        self.back = back
        self.weight = glorot((c, 4 * units), c, 4 * units)
        self.recurrent_weight = nn.Parameter(nn.init.orthogonal_(torch.empty(units, 4 * units)))
        self.bias = nn.Parameter(torch.zeros(4 * units))
        with torch.no_grad():
            self.bias[units:2 * units] = 1  # of the forget gate
        self.cell = [nn.LSTM(c, units, batch_first=True)]  # a list: its own are no parameters

    def forward(self, x, lengths):
        t = torch.arange(x.shape[1])[None]
        if self.back:  # each text turned around, as far as it goes
            at = torch.where(t < lengths[:, None], lengths[:, None] - 1 - t, t)
            x = x.gather(1, at[:, :, None].expand_as(x))
        weights = {'weight_ih_l0': self.weight.T, 'weight_hh_l0': self.recurrent_weight.T,
                   'bias_ih_l0': self.bias, 'bias_hh_l0': torch.zeros_like(self.bias)}
        y = torch.func.functional_call(self.cell[0], weights, (x,))[0]
        return y[torch.arange(len(y)), lengths - 1]  # what comes behind changed nothing before


class Classifier(nn.Module):
    def __init__(self, vocabulary, classes, width=128):
        super().__init__()
        self.embedding = Embedding(vocabulary, width)
        self.dense_1 = Dense(self.make(width), classes)

    def forward(self, tokens, lengths):
        return self.dense_1(self.features(self.embedding(tokens), tokens, lengths))


class TextLstm(Classifier):
    def make(self, width):
        self.lstm = Lstm(width, 128)
        return 128

    def features(self, x, tokens, lengths):
        return self.lstm(x, lengths)


class TextBilstm(Classifier):
    def make(self, width):
        self.ahead, self.back = Lstm(width, 128), Lstm(width, 128, back=True)
        return 256

    def features(self, x, tokens, lengths):
        return torch.cat([self.ahead(x, lengths), self.back(x, lengths)], 1)


class TextCnn(Classifier):
    def make(self, width):
        self.three_conv, self.four_conv, self.five_conv = (
            Conv(size, width, 100) for size in (3, 4, 5))
        return 300

    def features(self, x, tokens, lengths):
        mask = there(tokens, lengths)
        convs = self.three_conv, self.four_conv, self.five_conv
        return f.dropout(torch.cat([c(x, mask) for c in convs], 1), 0.5, self.training)


class Blocks(nn.Module):
    """Blocks of attention and dense layers, each named as the zoo names its layers."""

    def __init__(self, blocks, width, heads, wide, dropout):
        super().__init__()
        self.count, self.heads, self.rate = blocks, heads, dropout
        for n in range(1, blocks + 1):
            for name, made in (('norm_a', Norm(width)), ('qkv', Dense(width, 3 * width)),
                               ('joined', Dense(width, width)), ('norm_b', Norm(width)),
                               ('wide', Dense(width, wide)), ('narrow', Dense(wide, width))):
                self.add_module(f'block_{n}_{name}', made)
        self.norm = Norm(width)

    def drop(self, x):
        return f.dropout(x, self.rate, self.training)

    def run(self, x, seen, causal=False):
        def heads(y):
            return y.unflatten(2, (self.heads, -1)).transpose(1, 2)

        x = self.drop(x)
        for n in range(1, self.count + 1):
            of = {name: getattr(self, f'block_{n}_{name}')
                  for name in ('norm_a', 'qkv', 'joined', 'norm_b', 'wide', 'narrow')}
            q, k, v = map(heads, of['qkv'](of['norm_a'](x)).chunk(3, 2))
            y = f.scaled_dot_product_attention(q, k, v, seen, is_causal=causal)
            x = x + self.drop(of['joined'](y.transpose(1, 2).flatten(2)))
            x = x + self.drop(of['narrow'](f.gelu(of['wide'](of['norm_b'](x)))))
        return self.norm(x)


class TransformerEncoder(Blocks):
    def __init__(self, vocabulary, classes, width=64, blocks=2, heads=4, wide=128):
        super().__init__(blocks, width, heads, wide, 0.1)
        self.embedding = Embedding(vocabulary, width)
        self.last = f'dense_{4 * blocks + 1}'  # layers are counted, four dense ones a block
        self.add_module(self.last, Dense(width, classes))

    def forward(self, tokens, lengths):
        x, mask = self.embedding(tokens), there(tokens, lengths)
        t, c = torch.arange(x.shape[1])[:, None], torch.arange(x.shape[2])[None]
        angle = t * 10000.0 ** (-(c - c % 2) / x.shape[2])
        x = x + torch.where(c % 2 == 0, angle.sin(), angle.cos())
        y = self.run(x, mask[:, None, None])
        return getattr(self, self.last)((y * mask[:, :, None]).sum(1) / lengths[:, None])


class GptSmall(Blocks):
    def __init__(self, vocabulary, steps, width=128, blocks=2, heads=4):
        super().__init__(blocks, width, heads, 4 * width, 0.1)
        self.embedding = Embedding(vocabulary, width)
        self.position = Embedding(steps, width)
        self.head = Dense(width, vocabulary, bias=False)

    def forward(self, tokens, lengths):
        at = torch.arange(tokens.shape[1])
        return self.head(self.run(self.embedding(tokens) + self.position(at), None, True))


NETS = {'text-lstm': TextLstm, 'text-bilstm': TextBilstm, 'text-cnn': TextCnn,
        'transformer-encoder': TransformerEncoder, 'gpt-small': GptSmall}


def take(net, arrays):
    """Copies arrays of these names into the parameters; every one must be there."""
    own = dict(net.named_parameters())
    if set(own) != set(arrays):
        raise SystemExit(f'parameters differ: {sorted(set(own) ^ set(arrays))}')
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(torch.tensor(arrays[name]).reshape(parameter.shape))
