#!/usr/bin/env python3
"""Writes the corpus that fuzzing begins with: small files of each kind. Needs Pillow."""
import gzip
import io
import struct
import zlib
from pathlib import Path

from PIL import Image

HERE = Path(__file__).parent / "corpus"


def put(target, name, data):
    (HERE / target).mkdir(parents=True, exist_ok=True)
    (HERE / target / name).write_bytes(data)


def crc(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    value ^= 0xFFFFFFFF
    return struct.pack("<I", ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data):
    length = struct.pack("<Q", len(data))
    return length + crc(length) + data + crc(data)


def field(number, data):
    return bytes([number << 3 | 2, len(data)]) + data


def feature(key, kind, values):
    return field(1, field(1, field(1, key) + field(2, field(kind, values))))


def image(kind, mode="RGB", **options):
    picture = Image.new("RGB", (24, 16))
    for i in range(24 * 16):
        picture.putpixel((i % 24, i // 24), (i * 7 % 256, i * 3 % 256, i % 256))
    data = io.BytesIO()
    picture.convert(mode).save(data, kind, **options)
    return data.getvalue()


example = (feature(b"label", 3, field(1, b"\x07")) + feature(b"image", 1, field(1, b"pixels"))
           + feature(b"reals", 2, field(1, struct.pack("<2f", 1, 2))))  # fmt: skip
put("example", "three", b"\x05label" + example)
put("example", "bytes", b"\x05image" + example)
put("example", "floats", b"\x05reals" + example)
put("example", "unpacked", b"\x01n" + feature(b"n", 3, b"\x08\x05\x08\x96\x01"))
records = record(example) + record(b"") + record(b"abc")
put("tfrecord", "plain", records)
put("tfrecord", "cut", records[:-3])
put("tfrecord", "gzip", gzip.compress(records, mtime=0))
put("tfrecord", "zlib", zlib.compress(records))


def labelled(label, name, picture=b"\xff\xd8\xff"):
    text = feature(b"image/class/text", 1, field(1, name)) if name else b""
    return (feature(b"image/class/label", 3, field(1, bytes([label]))) + text
            + feature(b"image/encoded", 1, field(1, picture)))  # fmt: skip


def table(numbers, values, label, name, packed=True):
    reals = field(1, struct.pack(f"<{len(numbers)}f", *numbers)) if packed else b"".join(
        bytes([1 << 3 | 5]) + struct.pack("<f", n) for n in numbers)
    return (feature(b"reals", 2, reals) + feature(b"ints", 3, field(1, bytes(values)))
            + feature(b"image/class/label", 3, field(1, bytes([label])))
            + feature(b"name", 1, field(1, name)))  # fmt: skip


dot = io.BytesIO()
Image.new("L", (1, 1), 9).save(dot, "PNG")
for name, first, second in (("one", labelled(0, b"cat", dot.getvalue()), b""),
                            ("two", labelled(1, b"dog"), labelled(0, b"cat")),
                            ("same", labelled(1, b"dog"), labelled(0, b"dog")),
                            ("nameless", labelled(7, b""), labelled(2, b"emu")),
                            ("named", feature(b"image/class/label", 1, field(1, b"cat")), b"")):
    put("records", name, bytes([len(first)]) + first + second)
for name, second in (("table", table([3, 4], [5, 6], 1, b"dog", False)),
                     ("longer", table([3, 4, 5], [5, 6], 2, b"cat")),
                     ("unlike", table([3, float("nan")], [5], 2, b"")),
                     ("alone", b"")):
    first = table([1, 2], [3, 4], 0, b"cat")
    put("records", name, bytes([len(first)]) + first + second)
put("gzip", "text", gzip.compress(b"some text, some text, some text", mtime=0))
put("gzip", "two", gzip.compress(b"one", mtime=0) + gzip.compress(b"two", mtime=0))
put("gzip", "zlib", zlib.compress(bytes(1000)))
labels = struct.pack(">II", 0x801, 3) + b"\0\1\2"
images = struct.pack(">IIII", 0x803, 3, 2, 2) + bytes(range(12))
put("idx", "three", struct.pack("<H", len(labels)) + labels + images)
put("csv", "names", b'path,label\n"a, b.png",cat\nc.jpg,"the ""dog"""\r\n')
put("csv", "table", b"\xef\xbb\xbfa,b,c\r\n1,2.5,x\r\n,3,y\r\n\"7\",-1e3,\"z \"\"q\"\"\"\n")
put("csv", "classes", b"b,a,c\n1,2,3\n4,5\n6,nan,1\n0,0,0")
put("csv", "numbers", b"a.png,1\n/b.png,0\n")
def npy(shape, kind, data, version=1, order="False"):
    text = f"{{'descr': '{kind}', 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + data


def arrays(labels, images):
    return struct.pack("<H", len(labels)) + labels + images


three = npy("(3,)", "<i8", struct.pack("<3q", 2, 0, 1))
put("npy", "grey", arrays(three, npy("(3, 2, 2)", "|u1", bytes(range(12)))))
one = npy("(1,)", "|u1", b"\1", 2)
put("npy", "colours", arrays(one, npy("(1, 2, 1, 3)", "|u1", bytes(6))))
two = npy("(2,1)", ">i2", b"\0\1\0\0", 3)
put("npy", "rows", arrays(two, npy("(2, 4)", "|u1", bytes(8))))
put("npy", "columns", arrays(three, npy("(3, 2, 2)", "|u1", bytes(12), order="True")))
put("npy", "floats", arrays(three, npy("(3, 2)", "<f4", bytes(24))))
reals = npy("(3,)", "<f4", struct.pack("<3f", 1, 2, 3))
put("npy", "reals", arrays(reals, npy("(3, 2)", "<f8", struct.pack("<6d", *range(6)))))
put("npy", "tokens", arrays(npy("(3, 2)", "<i8", struct.pack("<6q", *range(6))),
                            npy("(3, 2)", "<i4", struct.pack("<6i", *range(6)))))
put("npy", "wide", arrays(three, npy("(3,)", "<i8", struct.pack("<3q", 1, 2**40, -1))))
put("text", "names", b"cat\tpurrs\nthe dog\tbarks\tloudly\r\n\ncat\t\xff\xe4\n")
put("text", "numbers", b"3\tlong enough to be cut\n0\tshort")
put("tokens", "lines", b"0\tA cat, a dog.\n1\t\xc3\x84rger?\nno label\n1\tbro\xffken\n")
put("tokens", "long", b"One long text\nwithout tabs.\n")
put("tokens", "empty", b"\n\n\t\n")
put("tokens", "pairs.json", b'{"unit":"pairs","standardize":"none","truncate":"end",'
    b'"joins":[[99,118],[258,2],[34,259]]}')
put("tokens", "beyond.json", b'{"unit":"pairs","standardize":"none","joins":[[2,258]]}')
put("tokens", "words.json", b'{"unit":"word","standardize":"lower","words":["a","b"]}')
put("tokens", "words.txt", b"\n[UNK]\nthe\na\n")
put("model", "plain", b"""input: [8, 8, 1]
classes: 3
layers:
  - {conv2d: {filters: 2, kernel: 3, activation: tanh}, name: a}
  - max_pool
  - flatten
  - {dense: {units: $classes}, trainable: no}
  - softmax
""")
put("model", "frozen", b"""train_last: 1
input: [2, 2, 1]
layers: [{conv2d: {filters: 2, kernel: 1}, name: a}, flatten, {dense: {units: 3}}, softmax]
""")
put("model", "branches", b"""name: two
input: {a: [4, 4, 2], b: {shape: [4, 4, 2], scale: 0.5, shift: -1}}
layers:
- {relu: , from: a, name: x}
- {tanh: , from: b}
- {add: , from: [x, tanh_1, a]}
output: x
""")
put("model", "blocks", b"""input: [8, 8, 2]
blocks:
  stage:
    parameters: {n: , wide: $(4*channels), project: false}
    layers:
    - {name: $name_$number, unit: {filters: $wide}, repeat: $(n-1)}
    - {name: $name_skip, from: $input, when: $project, unit: {filters: $wide}}
    - {name: $name, when: $(n > 1), from: [$name_1, $name_skip], add: }
  unit:
    parameters: {filters: , size: [1, 1]}
    layers:
    - conv2d: {filters: $filters, kernel: $size}
layers:
- {name: s, stage: {n: 2, project: true}}
- {stage: {n: 3, wide: 8}, trainable: no}
""")
put("model", "parameters", b"""input: [8, 8, 1]
classes: 3
parameters: {top: true, wide: 4}
layers:
  - flatten
  - {dense: {units: $(2*wide)}, when: $top}
  - {name: head, dense: {units: $classes}, when: $(top == 0)}
  - {dense: {units: $classes}, when: $top}
  - softmax
""")
put("model", "weights", b"""input: {a: [4, 4, 1], b: [4, 4, 1]}
blocks: {t: {layers: [{name: $name_c, conv2d: {filters: 2}}, {relu: },
                      {name: $name, weights: $name_c, from: $input, conv2d: {filters: 2}}]}}
layers:
- {name: x, from: a, t: }
- {name: y, from: b, t: , weights: x}
- {multiply: , from: [x, y]}
- flatten
- {name: d, dense: {units: 8}}
- {dense: {units: 8}, weights: d, repeat: 3}
""")
put("model", "laughs", b"""input: [8, 8, 1]
blocks:
  a: {layers: [{b: , repeat: 2000}]}
  b: {layers: [{c: , repeat: 2000}]}
  c: {layers: [{relu: , when: no}, {a: }]}
layers: [a]
""")
put("image", "rgb.jpg", image("JPEG", quality=40))
put("image", "grey.jpg", image("JPEG", "L", quality=40))
put("image", "cmyk.jpg", image("JPEG", "CMYK", quality=40))
put("image", "progressive.jpg", image("JPEG", quality=40, progressive=True))
put("image", "restart.jpg", image("JPEG", quality=40, restart_marker_blocks=1))
put("image", "rgb.png", image("PNG"))
put("image", "palette.png", image("PNG", "P"))
put("image", "grey.png", image("PNG", "L"))
put("image", "alpha.png", image("PNG", "RGBA"))
put("image", "bits.png", image("PNG", "1"))
put("image", "wide.png", image("PNG", "I"))

row = b'{"image": [[[0],[255]],[[1],[2]]], "numbers": [1, -2.5e-3, NaN]}'
put("serve", "rows", b'\x00\x00{"signature_name": "serving_default", "instances": [' + row
    + b", " + row + b"]}")  # fmt: skip
put("serve", "columns", b'\x00\x00{"inputs": {"image": [[[[0],[1]],[[2],[3]]]], '
    b'"numbers": [[Infinity, -Infinity, 0.1]]}}')  # fmt: skip
put("serve", "flat_pixels", b'\x00\x00{"inputs": {"image": [[[0,1],[2,3]]], "numbers": '
    b"[[1,2,3]]}}")  # fmt: skip
put("serve", "base64", b'\x00\x00{"instances": [{"image": {"b64": "iVBORw0KGgo="}, "numbers": '
    b"[1,2,3]}]}")  # fmt: skip
put("serve", "texts", b'\x04\x00{"instances": ["a \\u00e9 \\ud83d\\ude00", [3, 4], '
    b'{"tokens": "b"}]}')  # fmt: skip
put("serve", "examples", b'\x01\x00{"examples": [' + row
    + b'], "context": {"x": [true, null]}}')  # fmt: skip
put("serve", "infer", b'\x02\x00{"id": "7", "inputs": [{"name": "image", "shape": [1,2,2,1], '
    b'"datatype": "UINT8", "data": [0,1,2,3]}, {"name": "numbers", "data": [[1,2,3]], "shape": '
    b'[1,3], "datatype": "FP32"}], "outputs": [{"name": "class", "parameters": '
    b'{"binary_data": true}}]}')  # fmt: skip
put("serve", "binary", b'\x03\x10{"inputs": [{"name": "image", "shape": [1,2,2,1], "datatype": '
    b'"UINT8", "parameters": {"binary_data_size": 4}}, {"name": "numbers", "shape": [1,3], '
    b'"datatype": "FP32", "parameters": {"binary_data_size": 12}}]}'
    + bytes(4) + struct.pack("<3f", 1, 2, 3))  # fmt: skip
put("serve", "bytes", b'\x07\x09{"inputs": [{"name": "tokens", "shape": [2], "datatype": '
    b'"BYTES", "parameters": {"binary_data_size": 9}}]}\1\0\0\0a\0\0\0\0')  # fmt: skip
put("serve", "deep", b'\x00\x00{"x": ' + b"[" * 40 + b"]" * 40 + b"}")
put("serve", "long_number", b'\x00\x00{"instances": [' + b"9" * 500 + b"]}")
GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n\r\n"
POST = b"POST /v1/models/a:predict HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n"
put("http", "get", GET)
put("http", "pipelined", GET + GET.replace(b"metrics", b"v2/health/live") + POST +
    b"Content-Length: 2\r\n\r\n{}" + GET)
put("http", "chunked", POST + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde"
    b"\r\n0\r\nTrailer: z\r\n\r\n" + GET)
put("http", "bad_chunk", POST + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\nabc")
put("http", "two_lengths", POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ")
put("http", "large", POST + b"Content-Length: 99999999999999999999\r\n\r\n{}")
put("http", "expect", POST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}")
put("http", "flood", POST + b"".join(b"X-%d: y\r\n" % i for i in range(300)) + b"\r\n")
put("http", "folded", b"GET /%2f%00?a=%zz&b HTTP/1.0\r\nHost: x\r\n folded\r\n\tmore\r\n\r\n")
put("http", "cookies", b"HEAD / HTTP/1.1\nHost: x\nCookie: a=b; c=\"d;e\"; f\n\n")
put("http", "upgrade", b"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\n"
    b"Upgrade: h2c\r\n\r\nPRI * HTTP/2.0\r\n\r\n")
put("http", "no_http", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03nonsense")
