"""NumPy files without NumPy: lists of numbers with a shape."""
import array
import ast
import struct

CODES = {'|u1': 'B', '<i4': 'i', '<i8': 'q', '<f4': 'f', '<f8': 'd'}


def write(path, kind, shape, numbers, fortran=False):
    text = f"{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': {tuple(shape)}, }}\n"
    with open(path, 'wb') as file:
        file.write(b'\x93NUMPY\1\0' + struct.pack('<H', len(text)) + text.encode() +
                   array.array(CODES[kind], numbers).tobytes())


def read(path):
    """The shape and the numbers, the last axis fastest."""
    with open(path, 'rb') as file:
        content = file.read()
    length = struct.unpack('<H', content[8:10])[0]
    header = ast.literal_eval(content[10:10 + length].decode())
    assert (10 + length) % 64 == 0 and content[10 + length - 1:10 + length] == b'\n', header
    assert not header['fortran_order'], header
    numbers = array.array(CODES[header['descr']])
    numbers.frombytes(content[10 + length:])
    return header['shape'], list(numbers)
