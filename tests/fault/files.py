"""The k-th call that writes to a run directory fails: files.py LOCKSTEP FILES [all]

FILES is the program that makes it fail (files.c). Training goes on where it can, what is said
names the file, and afterwards the run goes on from a checkpoint to the same bits and files."""
import csv
import errno
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

EVERY = len(sys.argv) > 3
PROGRAM, FILES = (os.path.abspath(path) for path in sys.argv[1:3])
TRAIN = [PROGRAM, 'train', 'tiny.yaml', '--data', 'synthetic:digits,count=128', '--batch-size',
         '32', '--run', 'run', '--steps', '12', '--checkpoint-every', '3', '--eval-every',
         '4steps', '--callback', 'csv_log', '--callback', 'time_history', '--callback',
         'checkpoint monitor=loss keep=2 file=best.safetensors', '--callback',
         'tensorboard histograms=4 every=2', '--quiet']
MODEL = 'name: tiny\ninput: [28, 28, 1]\nlayers: [flatten, {dense: {units: 10}}, softmax]\n'
ERRORS = [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EACCES, errno.EIO]
TIMES = 'samples_per_s', 'step_ms', 'devices', 'seconds'


def environment():
    kept = {k: v for k, v in os.environ.items()
            if not k.startswith('LOCKSTEP_') or k == 'LOCKSTEP_CACHE'}
    return {**kept, 'LC_ALL': 'C.UTF-8'}


def run(folder, *before):
    return subprocess.run([*before, *TRAIN], cwd=folder, capture_output=True, text=True,
                          timeout=300, stdin=subprocess.DEVNULL, env=environment(), check=False)


def new_folder(above, name):
    folder = Path(above, name)
    folder.mkdir()
    (folder / 'tiny.yaml').write_text(MODEL)
    return folder


def curve(folder):
    lines = (folder / 'run/metrics.jsonl').read_text().splitlines()
    events = [json.loads(line) for line in lines]
    return [{k: v for k, v in e.items() if k not in TIMES} for e in events
            if e['event'] in ('step', 'eval', 'end')]


def table(folder):
    with open(folder / 'run/log.csv', encoding='utf-8') as file:
        return [{k: v for k, v in row.items() if k not in ('seconds', 'epoch_seconds',
                                                           'steps_per_s')}
                for row in csv.DictReader(file)]


def check(above, whole, nth, error, mode):
    """One run with a fault, and the one that goes on; a line for people."""
    folder = new_folder(above, f'{mode}{nth}')
    log = Path(above, 'log')
    log.unlink(missing_ok=True)
    done = run(folder, FILES, f'{folder}/run', str(nth), str(error), mode, str(log))
    assert done.returncode in (0, 3), (done.returncode, done.stderr)
    _, call, path = log.read_text().split(' ', 2)
    name = re.sub(r'\.\d+-\d+\.tmp$', '', path.strip())
    told = done.stderr
    where = f'{mode} {nth}: {call} {name} ({errno.errorcode[error]}): status {done.returncode}'
    is_copied = call == 'link' or (call == 'rename' and name.endswith('best.safetensors'))
    is_there = call == 'mkdir' and done.returncode == 0
    if is_copied or is_there or name.endswith('/'):  # the last: of left-overs
        assert mode == 'on' or done.returncode == 0, (where, told)
    else:
        assert os.path.basename(name) in told, (where, told)
        assert os.strerror(error) in told, (where, told)
    missed = told.count('could not be saved, training goes on')
    assert missed <= 1, (where, told)  # a disk that stays full is told of once
    if done.returncode == 0:
        assert told.count('checkpoints are saved again') == missed, (where, told)
    if done.returncode == 0 and mode == 'once':
        assert curve(folder) == curve(whole), where
    left = list((folder / 'run/checkpoints').glob('*.tmp*')) if mode == 'once' else []
    assert not left, (where, left)
    again = run(folder)
    assert again.returncode == 0, (where, told, again.stderr)
    assert curve(folder)[-1] == curve(whole)[-1], where
    if 'lost from it' not in again.stderr: # a full disk takes no lines, which is said
        assert curve(folder) == curve(whole), (where, told, again.stderr)
    if 'bytes that the run has written' not in again.stderr:
        assert table(folder) == table(whole), (where, table(folder), table(whole))
    assert not [p for p in (folder / 'run').rglob('*') if '.tmp' in p.name], where
    print('ok', where, flush=True)


def main():
    with tempfile.TemporaryDirectory(prefix='lockstep-files-') as name:
        above = os.path.realpath(name)
        whole = new_folder(above, 'whole')
        log = Path(above, 'log')
        done = run(whole, FILES, f'{whole}/run', '0', '0', 'once', str(log))
        if 'seccomp' in done.stderr:
            print('this kernel does not let a program fail its calls:', done.stderr)
            return 77
        assert done.returncode == 0, done.stderr
        count = int(log.read_text().split()[0])
        assert count > 60, count
        chance = random.Random(count)
        some = {mode: range(1, count + 1) if EVERY else
                      sorted(chance.sample(range(1, count + 1), some))
                for mode, some in (('once', 10), ('on', 4))}
        failures = 0
        for mode, places in some.items():
            for nth in places:
                try:
                    check(above, whole, nth, ERRORS[nth % len(ERRORS)], mode)
                except AssertionError as error:
                    failures += 1
                    print('FAILED', mode, nth, error, flush=True)
        print(f'{count} calls, {failures} failures')
        return failures > 0


if __name__ == '__main__':
    sys.exit(main())
