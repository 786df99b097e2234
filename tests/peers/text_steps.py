#!/usr/bin/env python3
"""The same steps of models of texts by the program and by PyTorch, on real data:

    text_steps.py PROGRAM DATA FOLDER [--models text-lstm,gpt-small] [--book FILE]

Both start from the same parameters, take the same batches in the same order, past a batch at
the end of an epoch that is not full, and drop nothing. Prints how far the elements of an
array moved and how far apart they are then, in the mean, of the worst array. Unlike
accuracies this depends on no seed, so that seconds are enough to find a wrong rate, epsilon,
mask or mean. Of models with attention the worst array is qkv.bias: a bias of all keys changes
no score, and Adam makes steps of the rounding errors that are its gradient. Needs torch.
"""
import argparse
import subprocess
from pathlib import Path

import numpy as np
import torch

from text_accuracy import (BATCH, BOOK_BATCH, CLASSIFIERS, RATE, SETS, SIZES, cut_book,
                           read_book, read_checkpoint, read_labelled, to_tensors, train_peer)
from text_nets import NETS, take


def train_ours(options, model, name, steps, start=None):
    """Returns the notes and the parameters of the run's last checkpoint."""
    run = Path(options.folder, f'steps-{model}-{"on" if start else "start"}')
    where = Path(options.folder, 'book') if name == 'book' else options.data
    settings = SIZES.get(model, '').split()
    settings += [] if model.endswith('lstm') else ['dropout=0']
    command = [options.program, 'train', model, '--data', SETS[name][0].format(where),
               '--val', 'off', '--set', f'length={SETS[name][1]}', '--lr', RATE,
               '--set', 'shuffle=false',
               '--steps', steps, '--epochs', 99, '--tune', 'off', '--run', run, '--fresh',
               '--batch-size', BOOK_BATCH if name == 'book' else BATCH, '--quiet']
    command += ['--set', 'parameters=' + ' '.join(settings)] if settings else []
    command += ['--weights', start] if start else []
    subprocess.run([str(c) for c in command], check=True, stdout=subprocess.DEVNULL)
    if not start:
        subprocess.run([options.program, 'export', run, '--format', 'safetensors', '--names',
                        'lockstep', '-o', f'{run}.safetensors'],
                       check=True, stdout=subprocess.DEVNULL)
    newest = sorted(Path(run, 'checkpoints').glob('*.safetensors'))[-1]
    return read_checkpoint(newest)


def compare(options, model, name):
    """The worst array's (mean distance apart, mean distance moved, name); samples."""
    notes, start = train_ours(options, model, name, 1)
    _, ours = train_ours(options, model, name, options.steps,
                         Path(options.folder, f'steps-{model}-start.safetensors'))
    length = SETS[name][1]
    if name == 'book':
        data, outputs = read_book(Path(options.folder, 'book/train.txt'), notes, length), length
    else:
        data = to_tensors(read_labelled(Path(options.data, name), 'train'), notes, length)
        outputs = int(data[2].max()) + 1
    net = NETS[model](start['embedding.weight'].shape[0], outputs)
    take(net, start)
    net.eval()  # nothing is dropped
    train_peer(net, data, 99, options.steps, BOOK_BATCH if name == 'book' else BATCH, 0)
    found = []
    for key, p in net.named_parameters():
        apart, moved = p.detach().numpy() - ours[key], ours[key] - start[key]
        found.append((float(np.abs(apart).mean()), float(np.abs(moved).mean()), key))
    return max(found, key=lambda each: each[0] / max(each[1], 1e-30)), len(data[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('program')
    parser.add_argument('data', help='folder of the data sets; trec is read')
    parser.add_argument('folder', help='for runs')
    parser.add_argument('--models', default=','.join(CLASSIFIERS))
    parser.add_argument('--steps', type=int, default=90)
    parser.add_argument('--book', help='text for gpt-small')
    options = parser.parse_args()
    torch.set_num_threads(1)
    Path(options.folder).mkdir(parents=True, exist_ok=True)
    if options.book:
        cut_book(options)
    for model in options.models.split(','):
        name = 'book' if model == 'gpt-small' else 'trec'
        (apart, moved, key), count = compare(options, model, name)
        print(f'{model:20} {options.steps} steps over {count} samples: moved {moved:.2e}, '
              f'apart {apart:.2e}, {apart / moved:.1e} of it ({key})', flush=True)


main()
