"""Trainings that are stopped and killed end as those that were not: stops.py LOCKSTEP [all]

Stops: of a matrix of trainings, each with a feature that has a state of its own, at random
steps, in the middle of epochs and of evaluations, by Ctrl-C and by SIGKILL. Kills: a short
training at random moments from its start on. Both go on until they are done; then losses of all
steps, evaluations and the hash are compared."""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

EVERY = len(sys.argv) > 2
PROGRAM = os.path.abspath(sys.argv[1])
TIMES = 'samples_per_s', 'step_ms', 'devices', 'seconds'
TINY = 'name: tiny\ninput: [28, 28, 1]\nlayers: [flatten, {dense: {units: 10}}, softmax]\n'
NET = """name: net
input: [28, 28, 1]
layers:
  - {device: front, conv2d: {filters: 8, kernel: 3}}
  - batch_norm
  - relu
  - max_pool: {size: 4}
  - {name: middle, device: back, conv2d: {filters: 8, kernel: 3, activation: relu}}
  - flatten
  - dropout: {rate: 0.25}
  - dense: {units: 10}
  - softmax
"""
WORDS = """name: words
input: {tokens: {shape: [12], type: int32, length: true}}
layers:
  - embedding: {vocabulary: 256, units: 8}
  - lstm: {units: 8}
  - dropout: {rate: 0.3}
  - dense: {units: 2}
  - softmax
"""
DIGITS = ['--data', 'synthetic:digits,count=320', '--val', 'synthetic:digits,count=900,seed=5',
          '--batch-size', '32', '--epochs', '3', '--eval-every', '7steps', '--checkpoint-every',
          '4', '--lr', '0.01']
CALLBACKS = [word for text in ('csv_log', 'early_stopping patience=30 restore_best=true',
                               'checkpoint monitor=val_accuracy keep_best=2',
                               'reduce_on_plateau patience=1 factor=0.5 min_delta=0.1',
                               'tensorboard histograms=6 every=2')
             for word in ('--callback', text)]
MATRIX = {
    'augmentation': ['net.yaml', *DIGITS, '--augment', 'rotate=10 padding=3 brightness=0.2'],
    'callbacks': ['tiny.yaml', *DIGITS, *CALLBACKS],
    'text': ['words.yaml', '--data', 'text:lines.txt,val=0.3', '--batch-size', '16', '--epochs',
             '4', '--eval-every', '5steps', '--checkpoint-every', '3', '--set',
             'optimizer=adam lr=0.01', '--bucket', '4'],
    'average': ['net.yaml', *DIGITS, '--set', 'ema=0.9', '--set', 'optimizer=adam', '--set',
                'schedule=kind=cosine steps=30 warmup=9'],
    'plateau': ['tiny.yaml', *DIGITS, '--set',
                'schedule=kind=plateau patience=1 factor=0.5 min_delta=0.1'],
    'mixed': ['net.yaml', *DIGITS, '--precision', 'mixed'],
    'places': ['net.yaml', *DIGITS, '--device', '0*2', '--place', 'front=0,back=1'],
    'pieces': ['net.yaml', *DIGITS, '--set', 'accumulate=4', '--shards', '4'],
    'replicas': ['net.yaml', *DIGITS, '--device', '0*2', '--shards', '4'],
    'features': ['net.yaml', *DIGITS, '--train-last', '1', '--cache-features', 'memory',
                 '--augment', 'rotate=10 padding=3', '--set', 'cache_augmentations=2'],
}


def environment():
    kept = {k: v for k, v in os.environ.items()
            if not k.startswith('LOCKSTEP_') or k == 'LOCKSTEP_CACHE'}
    return {**kept, 'LC_ALL': 'C.UTF-8'}


def start(folder, arguments):
    return subprocess.Popen([PROGRAM, 'train', *arguments, '--log-format', 'jsonl'], cwd=folder,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            stdin=subprocess.DEVNULL, env=environment())


def finish(folder, arguments):
    done = subprocess.run([PROGRAM, 'train', *arguments], cwd=folder, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, env=environment(), timeout=600,
                          check=False)
    assert done.returncode == 0, (arguments, done.stderr)
    return done


def curve(run):
    """All lines but those that depend on when it was stopped; a torn one is none."""
    events = [json.loads(line) for line in (run / 'metrics.jsonl').read_text().splitlines()]
    return [{k: v for k, v in e.items() if k not in TIMES} for e in events
            if e['event'] in ('step', 'eval', 'end')]


def check_whole(run, whole, what):
    assert curve(run) == curve(whole), what
    left = [p.name for p in run.rglob('*') if '.tmp' in p.name or '.link' in p.name]
    assert not left, (what, left)
    known = {'config.yaml', 'env.json', 'metrics.jsonl', 'checkpoints', 'log.csv',
             'tensorboard'}
    assert {p.name for p in run.iterdir()} <= known, what


def write_models(folder):
    chance = random.Random(7)
    (folder / 'tiny.yaml').write_text(TINY)
    (folder / 'net.yaml').write_text(NET)
    (folder / 'words.yaml').write_text(WORDS)
    lines = []
    for _ in range(200):
        words = [f'w{chance.randrange(40)}' for _ in range(chance.randint(2, 12))]
        lines.append(f'{"even" if int(words[0][1:]) % 2 == 0 else "odd"}\t{" ".join(words)}\n')
    (folder / 'lines.txt').write_text(''.join(lines))


def stop_once(folder, arguments, chance):
    """Lets it train for some steps more, and a little; whether it was stopped."""
    how = chance.choice([signal.SIGINT, signal.SIGKILL])
    steps, wait = chance.randint(1, 12), chance.choice([0, chance.uniform(0, 0.05)])
    running = start(folder, arguments)
    said = []
    errors = threading.Thread(target=lambda: said.append(running.stderr.read()))
    errors.start()
    for line in running.stdout:
        if json.loads(line)['event'] == 'step':
            steps -= 1
            if steps == 0:
                time.sleep(wait)
                running.send_signal(how)
    running.stdout.close()
    status = running.wait(300)
    errors.join()
    running.stderr.close()
    assert status in (0, 130, -signal.SIGKILL), (status, said)
    return status != 0


def stop_and_compare(folder, name, stops, chance):
    """As many runs as it takes for so many stops."""
    whole = folder / f'{name}-whole'
    finish(folder, [*MATRIX[name], '--run', str(whole)])
    made = runs = 0
    while made < stops:
        run = [*MATRIX[name], '--run', f'{name}{runs}']
        while made < stops and stop_once(folder, run, chance):
            made += 1
        finish(folder, run)
        check_whole(folder / f'{name}{runs}', whole, name)
        runs += 1
    print(f'ok {name}: {made} stops of {runs} runs', flush=True)
    return made


KILLED = ['tiny.yaml', '--data', 'synthetic:digits,count=320', '--batch-size', '32', '--epochs',
          '30', '--eval-every', '15steps', '--checkpoint-every', '10', *CALLBACKS]


def kill_once(folder, run, longest, chance):
    """Kills it at a moment of its life: the last step and checkpoint that it told of; None:
    it was done."""
    running = start(folder, [*KILLED, '--run', run])
    killer = threading.Timer(chance.uniform(0, longest), running.kill)
    killer.start()
    told = {'start': 0, 'step': 0, 'checkpoint': 0}
    for line in running.stdout:
        if line.endswith('\n'):
            event = json.loads(line)
            if event['event'] in told:
                told[event['event']] = event['step']
    errors = running.stderr.read()
    running.stdout.close()
    running.stderr.close()
    status = running.wait(300)
    killer.cancel()
    assert status in (0, -signal.SIGKILL), (status, errors)
    return told if status != 0 else None


def kill_often(folder, kills, chance):
    """What is lost is at most an interval and what was done while a checkpoint was written."""
    began = time.monotonic()
    finish(folder, [*KILLED, '--run', 'whole'])
    longest = 1.2 * (time.monotonic() - began)
    made, lost, runs = 0, [], 0
    while made < kills:
        run, before = f'run{runs}', None
        while made < kills:
            told = kill_once(folder, run, longest, chance)
            if before and (told is None or told['step'] > 0 or told['start'] > 0):
                went_on = told['start'] if told else before['step']
                assert went_on >= before['checkpoint'], (before, told)
                assert before['step'] - went_on < 20, (before, told)
                lost.append(before['step'] - went_on)
            if told is None:
                break
            made += 1
            if told['start'] > 0 or told['step'] > 0:
                before = told
        finish(folder, [*KILLED, '--run', run])
        check_whole(folder / run, folder / 'whole', run)
        with open(folder / run / 'log.csv') as a, open(folder / 'whole/log.csv') as b:
            assert a.read() == b.read(), run
        runs += 1
    print(f'ok {made} kills of {runs} runs; steps lost: at most {max(lost, default=0)}',
          flush=True)


def main():
    seed = int(os.environ.get('SEED', '1'))
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix='lockstep-stops-') as name:
        folder = Path(name)
        write_models(folder)
        names = list(MATRIX) if EVERY else ['callbacks', 'text']
        stops = sum(stop_and_compare(folder, name, 5 if EVERY else 2, chance) for name in names)
        print(stops, 'stops')
        kill_often(folder, 300 if EVERY else 6, chance)


if __name__ == '__main__':
    main()
