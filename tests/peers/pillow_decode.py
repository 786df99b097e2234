"""Pillow decodes the JPEG files below a folder and resizes them to 224x224, with a process a
core: prints "... N /s"."""
import multiprocessing
import os
import sys
import time
from pathlib import Path

import PIL
from PIL import Image


def read(name):
    image = Image.open(name).convert('RGB').resize((224, 224), Image.BILINEAR)
    return len(image.tobytes())


if __name__ == '__main__':
    names = [str(p) for p in Path(sys.argv[1]).rglob('*.jpg')]
    cores = len(os.sched_getaffinity(0))
    with multiprocessing.Pool(cores) as pool:
        sum(pool.imap_unordered(read, names, 8))
        start = time.perf_counter()
        sum(pool.imap_unordered(read, names * 3, 8))
        seconds = time.perf_counter() - start
    print(f'Pillow {PIL.__version__}, {cores} processes: {3 * len(names) / seconds:.1f} /s')
