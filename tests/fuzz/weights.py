#!/usr/bin/env python3
"""Writes the corpus of files of weights that fuzzing begins with. Needs h5py and numpy, no
PyTorch: classes of the same names stand for its own."""
import io
import json
import pickle
import struct
import sys
import types
import zipfile
from collections import OrderedDict
from pathlib import Path

import h5py
import numpy as np

HERE = Path(__file__).parent / "corpus"


def put(target, name, data):
    (HERE / target).mkdir(parents=True, exist_ok=True)
    (HERE / target / name).write_bytes(data)


def module(name, **contents):
    made = sys.modules[name] = types.ModuleType(name)
    for key, value in contents.items():
        value.__module__, value.__qualname__ = name, key
        setattr(made, key, value)
    return made


def rebuild(*_):
    pass


def rebuild_parameter(*_):
    pass


torch = module("torch", FloatStorage=type("FloatStorage", (), {}),
               LongStorage=type("LongStorage", (), {}), Size=type("Size", (tuple,), {}))
utils = module("torch._utils", _rebuild_tensor_v2=rebuild, _rebuild_parameter=rebuild_parameter)
ORDER = {"FloatStorage": "f", "LongStorage": "q"}


class Storage:
    def __init__(self, key, kind, count):
        self.key, self.kind, self.count = key, kind, count

    def data(self):
        return struct.pack(f"<{self.count}{ORDER[self.kind.__name__]}", *range(self.count))


class Tensor:
    def __init__(self, storage, offset, shape, strides):
        self.given = storage, offset, shape, strides, False, OrderedDict()

    def __reduce__(self):
        return utils._rebuild_tensor_v2, self.given


class Parameter:
    def __init__(self, tensor):
        self.tensor = tensor

    def __reduce__(self):
        return utils._rebuild_parameter, (self.tensor, True, OrderedDict())


class Pickler(pickle.Pickler):
    def persistent_id(self, value):
        if isinstance(value, Storage):
            return "storage", value.kind, value.key, "cpu", value.count
        return None


def pickled(value, protocol=2):
    data = io.BytesIO()
    Pickler(data, protocol).dump(value)
    return data.getvalue()


first = Storage("0", torch.FloatStorage, 24)
second = Storage("1", torch.LongStorage, 2)
plain = OrderedDict(a=Tensor(first, 0, (2, 3, 4), (12, 4, 1)))
mixed = {"state": OrderedDict(w=Tensor(first, 0, (4, 2), (1, 4)), n=Tensor(second, 1, (), ())),
         "p": Parameter(Tensor(first, 3, (2,), (2,))), "epoch": 3, "wide": -70000, "big": 2**70,
         "lr": 0.1, "list": [1, (2, 3)], "size": torch.Size((1, 2)), 5: None, "bytes": b"ab",
         "set": {1}, "flag": True, "text": "x" * 300}  # fmt: skip
cycle = {}
cycle["self"] = cycle
laughs = {}
for _ in range(30):
    laughs = {"a": laughs, "b": laughs}


def stream(value, storages, protocol=2):
    system = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"int": 4}}
    head = [0x1950A86A20F9469CFC6C, 1001, system, value, [s.key for s in storages]]
    return (b"".join(pickled(part, protocol) for part in head)
            + b"".join(struct.pack("<q", s.count) + s.data() for s in storages))  # fmt: skip


def archive(entries, method=zipfile.ZIP_STORED):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as made:
        for name, content in entries.items():
            made.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, method)
    return data.getvalue()


def torch_archive(value, storages, **options):
    entries = {"m/data.pkl": pickled(value), "m/byteorder": b"little", "m/version": b"3\n"}
    return archive({**entries, **{f"m/data/{s.key}": s.data() for s in storages}}, **options)


for protocol in 2, 4:
    put("pickle", f"mixed{protocol}", pickled(mixed, protocol))
    put("torch_stream", f"mixed{protocol}", stream(mixed, [first, second], protocol))
put("pickle", "cycle", pickled(cycle))
put("pickle", "two", pickled(plain) + pickled(["0"]))
put("torch_stream", "plain", stream(plain, [first]))
put("torch_stream", "cycle", stream(cycle, []))
put("torch_stream", "laughs", stream(laughs, []))
put("torch_archive", "plain", torch_archive(plain, [first]))
put("torch_archive", "mixed", torch_archive(mixed, [first, second]))
put("torch_archive", "deflated", torch_archive(plain, [first], method=zipfile.ZIP_DEFLATED))


def hdf5(fill):
    data = io.BytesIO()
    with h5py.File(data, "w", meta_block_size=16) as file:
        fill(file)
    return data.getvalue()


def keras_2(file):
    file.attrs["layer_names"] = [b"d", b"e"]
    file.attrs["backend"] = np.bytes_("tensorflow")
    for layer in "d", "e":
        group = file.create_group(layer)
        group.attrs["weight_names"] = [f"{layer}/{n}:0".encode() for n in ("kernel", "bias")]
        group[f"{layer}/kernel:0"] = np.ones((2, 3), "<f4")
        group[f"{layer}/bias:0"] = np.zeros(3, ">f8")


def whole(file):
    file.attrs["model_config"] = '{"class_name": "Sequential"}'
    keras_2(file.create_group("model_weights"))


def keras_3(file):
    file["layers/dense/vars/0"] = np.ones((2, 3), "<f4")
    file["layers/dense_1/vars/0"] = np.ones(2, "<f2")
    brain = file["layers/dense_1/vars"].create_dataset("1", data=np.array([b"ab"], "V2"))
    brain.attrs["dtype"] = np.bytes_("bfloat16")


def others(file):
    file["soft"] = h5py.SoftLink("/one")
    file["one"] = np.array([True, False])
    file.create_dataset("packed", data=np.zeros(99), compression="gzip")


def loop(file):
    file["a/b"] = file["/"]


for fill in keras_2, whole, keras_3, others, loop:
    put("hdf5", fill.__name__, hdf5(fill))
texts = {"metadata.json": json.dumps({"keras_version": "3.1.0"}), "config.json": "{}"}
put("keras_archive", "model", archive({**texts, "model.weights.h5": hdf5(keras_3)}))
put("keras_archive", "deflated", archive({"model.weights.h5": hdf5(keras_3), **texts},
                                         method=zipfile.ZIP_DEFLATED))  # fmt: skip


def safetensors(header, data):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


entry = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
half = {"dtype": "F16", "shape": [1, 2], "data_offsets": [8, 12]}
texts = {"format": "pt", "header_sha256": "0" * 64}
put("safetensors", "two", safetensors({"a": entry, "b": half}, bytes(12)))
put("safetensors", "texts", safetensors({"__metadata__": texts, "a": entry}, bytes(8)))
