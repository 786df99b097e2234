"""Writes safetensors files, for the scripts that record what other programs compute."""
import json
import struct

import numpy as np


def write_safetensors(path, arrays, metadata):
    header, data = {'__metadata__': metadata}, b''
    for name, array in arrays.items():
        content = np.ascontiguousarray(array, '<f4').tobytes()
        header[name] = {'dtype': 'F32', 'shape': list(array.shape),
                        'data_offsets': [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as file:
        file.write(struct.pack('<Q', len(text)) + text + data)
