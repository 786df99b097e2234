#!/usr/bin/env python3
"""Models of texts trained by the program and by PyTorch with the same settings:

    text_accuracy.py PROGRAM DATA FOLDER [--sets trec,snips] [--models text-lstm] [--seeds 3]

trains the zoo's classifiers on data sets in DATA (trec, snips, banking77), and gpt-small on
--book FILE, and prints the medians over seeds of test accuracy, or of bits per character, of
both. Optimizer, rate, batches, epochs, sizes, lengths, dropout and the distributions that
parameters start from are the same, and so are tokens: PyTorch is given the vocabulary that the
run has kept. Starting values and what is dropped are not, nor the order of samples (but for
gpt-small, which both train on the same batches).

The column "carried" is what PyTorch's net finds with the program's trained parameters: the same
as the program, unless tokens, masks or formulas differ. What FOLDER/results.jsonl has already
is not computed again. Needs torch; figures are in tests/reports/figures.md.
"""
import argparse
import csv
import json
import math
import statistics
import string
import struct
import subprocess
import unicodedata
from pathlib import Path

import numpy as np
import torch

from text_nets import NETS, take

CLASSIFIERS = 'text-lstm', 'text-bilstm', 'text-cnn', 'transformer-encoder'
SETS = {  # how the program reads it, tokens of a sample, epochs
    'trec': ('text:{}/trec', 24, 6),
    'snips': ('text:{}/snips', 24, 3),
    'banking77': ('csv:{}/banking77,text=text,label=category', 32, 10),
    'book': ('text:{},unit=char,labels=next', 128, 1),
}
SIZES = {'transformer-encoder': 'width=64 heads=4 blocks=2 wide=128',
         'gpt-small': 'width=128 heads=4 blocks=2'}
RATE, BATCH, BOOK_BATCH, BOOK_STEPS = 0.001, 64, 32, 400


def train_ours(options, name, model, seed):
    """Returns the run's test figures and its newest checkpoint."""
    spec, length, epochs = SETS[name]
    where = Path(options.folder, 'book') if name == 'book' else options.data
    run = Path(options.folder, f'{name}-{model}-{seed}')
    command = [options.program, 'train', model, '--data', spec.format(where), '--val', 'off',
               '--set', f'length={length}', '--epochs', epochs, '--lr', RATE, '--seed', seed,
               '--batch-size', BOOK_BATCH if name == 'book' else BATCH, '--tune', 'off',
               '--run', run, '--fresh', '--quiet']
    command += ['--set', f'parameters={SIZES[model]}'] if model in SIZES else []
    command += ['--steps', BOOK_STEPS, '--set', 'shuffle=false'] if name == 'book' else []
    subprocess.run([str(c) for c in command], check=True, stdout=subprocess.DEVNULL)
    found = subprocess.run([options.program, 'eval', run, '--part', 'test', '--json'],
                           check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(found), sorted(Path(run, 'checkpoints').glob('*.safetensors'))[-1]


def read_checkpoint(path):
    """Its notes, and its parameters by their names."""
    content = path.read_bytes()
    size = struct.unpack('<Q', content[:8])[0]
    header = json.loads(content[8:8 + size])
    notes, arrays = header.pop('__metadata__'), {}
    for name, entry in header.items():
        if entry['dtype'] == 'F32' and not name.startswith('optimizer.'):
            first, stop = entry['data_offsets']
            arrays[name] = np.frombuffer(content[8 + size + first:8 + size + stop],
                                         np.float32).reshape(entry['shape'])
    return notes, arrays


def is_punctuation(letter):
    return letter in string.punctuation or unicodedata.category(letter).startswith('P')


def words(text):
    return ''.join(c for c in text.lower() if not is_punctuation(c)).split()


def read_labelled(folder, part):
    """Pairs of a label and a text; lines that are no UTF-8 are left out, as ours are."""
    path = Path(folder, part + '.csv')
    if path.exists():
        with open(path, encoding='utf-8', newline='') as file:
            return [(row['category'], row['text']) for row in csv.DictReader(file)]
    found = []
    for line in Path(folder, part + '.txt').read_bytes().split(b'\n'):
        try:
            label, text = line.decode().split('\t', 1)
        except ValueError:  # the empty line behind the last one too
            continue
        found.append((label, text))
    return found


def to_tensors(samples, notes, length):
    """(tokens [n, length], lengths [n], labels [n])"""
    numbers = {w: i for i, w in enumerate(json.loads(notes['vocabulary'])['words'], 2)}
    (classes,) = json.loads(notes['classes']).values()
    tokens = torch.zeros(len(samples), length, dtype=torch.long)
    lengths = torch.zeros(len(samples), dtype=torch.long)
    for i, (_, text) in enumerate(samples):
        found = [numbers.get(w, 1) for w in words(text)][:length]
        tokens[i, :len(found)] = torch.tensor(found, dtype=torch.long)
        lengths[i] = max(1, len(found))
    return tokens, lengths, torch.tensor([classes.index(label) for label, _ in samples])


def read_book(path, notes, length):
    """Stretches of a long text; the label of each token is the next one, -1 behind the end."""
    numbers = {w: i for i, w in enumerate(json.loads(notes['vocabulary'])['words'], 2)}
    text = torch.tensor([numbers.get(c, 1) for c in path.read_text(encoding='utf-8')])
    count = -(-(len(text) - 1) // length)
    tokens = torch.zeros(count * length, dtype=torch.long)
    labels = torch.full_like(tokens, -1)
    tokens[:len(text) - 1], labels[:len(text) - 1] = text[:-1], text[1:]
    lengths = (len(text) - 1 - torch.arange(count) * length).clamp(max=length)
    return tokens.view(count, length), lengths, labels.view(count, length)


def mean_loss(found, labels):
    """Of a sample with several labels the mean over those that it has."""
    each = torch.nn.functional.cross_entropy(found.movedim(-1, 1), labels, ignore_index=-1,
                                             reduction='none')
    if each.dim() > 1:
        each = each.sum(1) / (labels >= 0).sum(1).clamp(min=1)
    return each.mean()


def batches_of(data, order, size):
    """Cut to the longest text among them: what stands behind changes nothing."""
    for at in order.split(size):
        tokens, lengths, labels = (x[at] for x in data)
        longest = int(lengths.max())
        yield tokens[:, :longest], lengths, labels[:, :longest] if labels.dim() > 1 else labels


def train_peer(net, data, epochs, steps, size, seed):
    torch.manual_seed(1000 + seed)
    optimizer = torch.optim.Adam(net.parameters(), lr=RATE, eps=1e-7)
    done = 0
    for _ in range(epochs):
        count = len(data[0])
        order = torch.arange(count) if steps else torch.randperm(count)
        for tokens, lengths, labels in batches_of(data, order, size):
            if steps and done == steps:
                return
            optimizer.zero_grad()
            mean_loss(net(tokens, lengths), labels).backward()
            optimizer.step()
            done += 1


def measure(net, data):
    """Accuracy in percent, or bits per token."""
    net.eval()
    hits = bits = 0.0
    with torch.no_grad():
        for tokens, lengths, labels in batches_of(data, torch.arange(len(data[0])), 256):
            found = net(tokens, lengths)
            if labels.dim() == 1:
                hits += float((found.argmax(1) == labels).sum())
            else:
                bits += float(mean_loss(found, labels)) * len(tokens) / math.log(2)
    net.train()
    return bits / len(data[0]) if data[2].dim() > 1 else 100 * hits / len(data[0])


def compare(options, name, model, seed):
    """One seed: figures of the program, of PyTorch, and of both together."""
    ours, checkpoint = train_ours(options, name, model, seed)
    notes, arrays = read_checkpoint(checkpoint)
    _, length, epochs = SETS[name]
    if name == 'book':
        train, test = (read_book(Path(options.folder, 'book', part + '.txt'), notes, length)
                       for part in ('train', 'test'))
    else:
        train, test = (to_tensors(read_labelled(Path(options.data, name), part), notes, length)
                       for part in ('train', 'test'))
    torch.manual_seed(seed)
    rows = arrays['embedding.weight'].shape[0]
    net = NETS[model](rows, length if name == 'book' else len(ours['classes']))
    fresh = {k: v.detach().numpy().copy() for k, v in net.named_parameters()}
    take(net, arrays)
    carried = measure(net, test)
    take(net, fresh)
    train_peer(net, train, epochs, BOOK_STEPS if name == 'book' else 0,
               BOOK_BATCH if name == 'book' else BATCH, seed)
    found = (ours['outputs'][0]['metrics']['bits_per_token'] if name == 'book'
             else 100 * ours['accuracy'])
    return {'set': name, 'model': model, 'seed': seed, 'ours': found, 'carried': carried,
            'peer': measure(net, test)}


def cut_book(options):
    """The last twentieth of the text is the test part."""
    lines = Path(options.book).read_text(encoding='utf-8').splitlines(keepends=True)
    folder = Path(options.folder, 'book')
    folder.mkdir(exist_ok=True)
    first = len(lines) * 19 // 20
    for part, some in (('train', lines[:first]), ('test', lines[first:])):
        Path(folder, part + '.txt').write_text(''.join(some), encoding='utf-8')


def print_table(results):
    print('data       model                    ours    torch   differ  ours, torch: seeds')
    for name, model in sorted({(r['set'], r['model']) for r in results}):
        of = [r for r in results if (r['set'], r['model']) == (name, model)]
        ours, peer = ([r[who] for r in of] for who in ('ours', 'peer'))
        a, b = statistics.median(ours), statistics.median(peer)
        apart = max(abs(r['carried'] - r['ours']) for r in of)
        digits = 3 if name == 'book' else 2
        each = ', '.join(' '.join(f'{x:.{digits}f}' for x in who) for who in (ours, peer))
        print(f'{name:10} {model:20} {a:8.{digits}f} {b:8.{digits}f} {a - b:+8.{digits}f}  '
              f'{each}; carried differs by at most {apart:.2g}')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('program')
    parser.add_argument('data', help='folder of the data sets')
    parser.add_argument('folder', help='for runs and results')
    parser.add_argument('--sets', default='trec,snips,banking77')
    parser.add_argument('--models', default=','.join(CLASSIFIERS))
    parser.add_argument('--seeds', type=int, default=3)
    parser.add_argument('--book', help='text for gpt-small')
    parser.add_argument('--threads', type=int, default=1, help="PyTorch's")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    Path(options.folder).mkdir(parents=True, exist_ok=True)
    kept = Path(options.folder, 'results.jsonl')
    lines = kept.read_text(encoding='utf-8').splitlines() if kept.exists() else []
    results = [json.loads(line) for line in lines]
    pairs = [(name, model) for name in filter(None, options.sets.split(','))
             for model in options.models.split(',')]
    if options.book:
        cut_book(options)
        pairs.append(('book', 'gpt-small'))
    wanted = [(*pair, seed) for seed in range(options.seeds) for pair in pairs]
    for case in wanted:
        if case not in [(r['set'], r['model'], r['seed']) for r in results]:
            results.append(compare(options, *case))
            with open(kept, 'a', encoding='utf-8') as file:
                print(json.dumps(results[-1]), file=file)
            print('{set} {model} seed {seed}: ours {ours:.4g}, carried {carried:.4g}, '
                  'torch {peer:.4g}'.format(**results[-1]), flush=True)
    print_table(results)


if __name__ == '__main__':
    main()
