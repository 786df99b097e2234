"""Reads TFRecord files of tf.train.Example with nothing but the Python library, strictly.
source: tensorflow/core/lib/io/record_writer.h; protobuf.dev, Encoding; RFC 3720, B.4"""
import struct

TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82f63b78 if byte & 1 else 0)
    TABLE.append(byte)


def masked_crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    crc ^= 0xffffffff
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def read_file(path):
    """The records of a file: every checksum is right, nothing stands behind the last."""
    with open(path, 'rb') as file:
        data = file.read()
    records, at = [], 0
    while at < len(data):
        length, check = struct.unpack_from('<QI', data, at)
        assert check == masked_crc32c(data[at:at + 8]), f'{path}: length at {at}'
        record = data[at + 12:at + 12 + length]
        check, = struct.unpack_from('<I', data, at + 12 + length)
        assert check == masked_crc32c(record), f'{path}: record at {at}'
        records.append(record)
        at += 16 + length
    return records


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of each field: a number, or bytes."""
    found, at = [], 0
    while at < len(data):
        tag, at = varint(data, at)
        value, at = varint(data, at)
        if tag & 7 == 2:
            value, at = data[at:at + value], at + value
            assert at <= len(data)
        else:
            assert tag & 7 == 0, tag
        found.append((tag >> 3, value))
    return found


def example(record):
    """{key: bytes or number} of an Example whose lists have one item each."""
    (number, features), = fields(record)
    assert number == 1
    found = {}
    for number, entry in fields(features):
        (one, key), (two, feature) = fields(entry)
        (kind, items), = fields(feature)
        (item, value), = fields(items)
        assert (number, one, two, item) == (1, 1, 2, 1)
        if kind == 3:
            value, end = (value, 0) if isinstance(value, int) else varint(value, 0)
            value -= (value >> 63) << 64
        else:
            assert kind == 1
        assert key.decode() not in found
        found[key.decode()] = value
    return found


def as_varint(value):
    value &= (1 << 64) - 1
    text = b''
    while value > 127:
        text += bytes([value & 127 | 128])
        value >>= 7
    return text + bytes([value])


def field(number, data):
    return as_varint(number << 3 | 2) + as_varint(len(data)) + data


def make_example(features):
    """An Example of {key: bytes, or a list of floats or of whole numbers}."""
    entries = b''
    for key, value in features.items():
        if isinstance(value, bytes):
            kind = field(1, field(1, value))
        elif isinstance(value[0], float):
            kind = field(2, field(1, struct.pack(f'<{len(value)}f', *value)))
        else:
            kind = field(3, field(1, b''.join(map(as_varint, value))))
        entries += field(1, field(1, key.encode()) + field(2, kind))
    return field(1, entries)


def write_file(path, records):
    with open(path, 'wb') as file:
        for record in records:
            length = struct.pack('<Q', len(record))
            file.write(length + struct.pack('<I', masked_crc32c(length)) + record +
                       struct.pack('<I', masked_crc32c(record)))
