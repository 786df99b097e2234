#!/usr/bin/env python3
"""Prints the table of tests/io/resize.c: checksums of what Pillow makes of its images."""
import zlib

from PIL import Image

# height, width, channels, box (left, top, right, bottom; none: all), height, width
CASES = [
    (1, 1, 1, None, 5, 7), (2, 3, 1, None, 1, 1), (9, 13, 1, None, 4, 6),
    (9, 13, 3, None, 4, 6), (9, 13, 4, None, 20, 31), (150, 150, 3, None, 96, 96),
    (150, 150, 3, None, 150, 96), (150, 150, 3, None, 96, 150), (496, 512, 1, None, 224, 224),
    (496, 768, 1, None, 64, 64), (375, 500, 3, None, 224, 224), (33, 65, 3, None, 128, 129),
    (64, 64, 3, (8, 4, 40, 36), 32, 32), (64, 64, 3, (0.5, 3.25, 60.75, 63), 24, 17),
    (64, 64, 1, (10, 10, 11, 11), 8, 8), (300, 7, 3, None, 3, 70), (1000, 1000, 1, None, 3, 2),
]  # fmt: skip


def image(height, width, channels):
    state, pixels = 1, bytearray()
    for _ in range(height * width * channels):
        state = (state * 1103515245 + 12345) & 0xFFFFFFFF
        pixels.append(state >> 24)
    mode = {1: "L", 3: "RGB", 4: "CMYK"}[channels]
    return Image.frombytes(mode, (width, height), bytes(pixels))


for h, w, c, box, height, width in CASES:
    made = image(h, w, c).resize((width, height), Image.BILINEAR, box=box)
    left, top, right, bottom = box or (0, 0, w, h)
    print(f"    {{{h}, {w}, {c}, {{{left}, {top}, {right}, {bottom}}}, {height}, {width},"
          f" 0x{zlib.crc32(made.tobytes()):08x}}},")  # fmt: skip
