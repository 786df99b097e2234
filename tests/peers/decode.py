#!/usr/bin/env python3
"""JPEG files decoded and resized to 224x224 on all cores, side by side:

    decode.py PROGRAM PHOTOS [--rounds N] [COMMAND...]

takes the photographs below the folder PHOTOS, writes each as a JPEG file of 640x480 into a
folder of its own, and has them read by `PROGRAM data`, decoding all of a file and decoding it
scaled, and by each COMMAND, a quoted word for the shell to which the folder is added, whose
last "1234.5 /s" counts. Prints medians. Needs Pillow.
"""
import argparse
import json
import re
import statistics
import subprocess
import tempfile
from pathlib import Path

from PIL import Image

RATE = re.compile(r'([0-9.]+) */s\b')


def write_photos(source, folder, most=400):
    names = sorted(p for p in Path(source).rglob('*') if p.suffix.lower() in ('.jpg', '.jpeg'))
    for number, name in enumerate(names[::max(1, len(names) // most)]):
        inner = Path(folder, str(number % 4))
        inner.mkdir(exist_ok=True)
        photo = Image.open(name).convert('RGB').resize((640, 480), Image.BICUBIC)
        photo.save(inner / f'{number}.jpg', quality=92)


def measure_program(program, folder, decode):
    done = subprocess.run([program, 'data', f'folder:{folder},size=224x224,decode={decode}',
                           '--samples', '1', '--json'], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL)
    return json.loads(done.stdout)['parts'][0]['samples_per_s']['batches']


def measure_command(command, folder):
    done = subprocess.run(f'{command} {folder}', shell=True, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return float(RATE.findall(done.stdout)[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('program')
    parser.add_argument('photos')
    parser.add_argument('commands', nargs='*', metavar='COMMAND')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_photos(options.photos, folder)
        runs = {f'lockstep, {decode}': (measure_program, options.program, folder, decode)
                for decode in ('full', 'scaled')}
        runs.update({c: (measure_command, c, folder) for c in options.commands})
        found = {name: [] for name in runs}
        for _ in range(options.rounds):
            for name, (measure, *arguments) in runs.items():
                found[name].append(measure(*arguments))
    for name, rates in found.items():
        print(f'{statistics.median(rates):8.0f} images/s  {min(rates):6.0f}..{max(rates):.0f}'
              f'  {name}')


if __name__ == '__main__':
    main()
