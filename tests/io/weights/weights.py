#!/usr/bin/env python3
"""Makes the small files of weights that tests/io/arrays_files.c reads, and beside each a .txt
that says what is in it. Needs PyTorch for one half, Keras, TensorFlow and h5py for the other.

weights.py torch|keras: writes these files again. weights.py FILE: prints what is in any file,
as the test's program does for that file.
"""
import io
import json
import re
import sys
import zipfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
SHOWN = 32
TYPES = {"float32": "F32", "float64": "F64", "float16": "F16", "bfloat16": "BF16",
         "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8",
         "bool": "BOOL", "uint16": "U16", "uint32": "U32", "uint64": "U64",
         "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"}  # fmt: skip


def line(name, kind, shape, values):
    doubles = np.ascontiguousarray(values, dtype="<f8").ravel()
    text = f"{name} {kind} [{', '.join(str(n) for n in shape)}]"
    if doubles.size <= SHOWN:
        return text + "".join(f" {x:.17g}" for x in doubles)
    places = np.arange(doubles.size, dtype=np.uint64) % np.uint64(1009) + np.uint64(1)
    return f"{text} sum {(doubles.view(np.uint64) * places).sum()}"


def torch_lines(values, name=""):
    import torch

    for key, value in values.items():
        if not isinstance(key, (str, int)):
            continue
        full = f"{name}.{key}" if name else str(key)
        if isinstance(value, torch.Tensor):
            kind = TYPES[str(value.dtype).removeprefix("torch.")]
            yield line(full, kind, value.shape, value.detach().double().numpy())
        elif isinstance(value, dict):
            yield from torch_lines(value, full)


def torch_listing(path, trusted=False):
    import torch

    values = torch.load(path, map_location="cpu", weights_only=not trusted)
    return "\n".join(["torch", *torch_lines(values), ""])


def torch_files():
    import torch

    net = torch.nn.Sequential(torch.nn.Conv2d(2, 3, (1, 2)), torch.nn.BatchNorm2d(3))
    numbers = torch.arange(40.0) / 8
    with torch.no_grad():
        for i, weights in enumerate(net.parameters()):
            weights.copy_(numbers[i : i + weights.numel()].reshape(weights.shape))
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(1, 2, 3, 3)).sum().backward()
    optimizer.step()
    cube = numbers[:24].reshape(2, 3, 4)
    checkpoint = {
        "epoch": 3, "best": 0.5, "arch": "net", "history": [1, (2, [3])], "none": None,
        "large": -(2**70), "negative": -5, "wide": -70000, "state_dict": net.state_dict(),
        "optimizer": optimizer.state_dict(), "turned": cube.permute(2, 0, 1), "part": cube[1],
        "every_second": numbers[1:20:2], "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 3),
        "f64": numbers[:3].double(), "f16": numbers[:3].half(), "bf16": numbers[:3].bfloat16(),
        "i64": torch.tensor([2**40, -1]), "i32": torch.tensor([1, -2], dtype=torch.int32),
        "i16": torch.tensor([1, -2], dtype=torch.int16),
        "i8": torch.tensor([1, -2], dtype=torch.int8),
        "u8": torch.tensor([1, 200], dtype=torch.uint8), "bool": torch.tensor([True, False]),
        "parameter": torch.nn.Parameter(numbers[3:5]), "size": torch.Size([1, 2]),
        "set": {1, 2}, "device": torch.device("cpu"), "dtype": torch.float32, (1, 2): cube,
    }  # fmt: skip
    newer = {"u16": numbers[:3].to(torch.uint16), "u32": numbers[:3].to(torch.uint32),
             "e4m3": numbers[:9].to(torch.float8_e4m3fn),
             "e5m2": numbers[:9].to(torch.float8_e5m2)}  # fmt: skip
    torch.save(checkpoint, HERE / "stream.pt", _use_new_zipfile_serialization=False)
    torch.save(checkpoint, HERE / "stream4.pt", _use_new_zipfile_serialization=False,
               pickle_protocol=4)  # fmt: skip
    torch.save(checkpoint, HERE / "archive.pt")
    torch.save({**newer, "name": "x"}, HERE / "newer_archive.pt", pickle_protocol=4)
    for path in sorted(HERE.glob("*.pt")):
        path.with_suffix(".pt.txt").write_text(torch_listing(path, trusted=True))


def text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def counted(name):
    return [(0, int(part), "") if part.isdigit() else (1, 0, part)
            for part in re.split(r"(\d+)", name) if part]  # fmt: skip


def array_line(name, array):
    if array.attrs.get("dtype") == "bfloat16":
        bits = np.frombuffer(array[()].tobytes(), "<u2").astype("<u4") << 16
        return line(name, "BF16", array.shape, bits.view("<f4"))
    return line(name, TYPES[array.dtype.name], array.shape, array[()])


def keras_2_lines(weights):
    layers = [text(n) for n in names_in(weights, "layer_names")]
    layers += [n for n in ["top_level_model_weights"] if n in weights]
    for layer in layers:
        names = [text(n) for n in names_in(weights[layer], "weight_names")]
        last = [n.split("/")[-1] for n in names]
        if len(set(last)) < len(last):
            last = [n.removeprefix(layer + "/") for n in names]
        for name, short in zip(names, last):
            yield array_line(f"{layer}/{short}", weights[layer][name])


def names_in(group, key):
    names = list(group.attrs.get(key, []))
    part = 0
    while f"{key}{part}" in group.attrs:
        names += list(group.attrs[f"{key}{part}"])
        part += 1
    return names


def keras_3_lines(group, path=""):
    for name in sorted(group, key=counted):
        full = f"{path}/{name}" if path else name
        if hasattr(group[name], "keys"):
            yield from keras_3_lines(group[name], full)
        else:
            yield array_line(full, group[name])


def hdf5_listing(file, texts=()):
    import h5py

    keys = ["model_config", "training_config", "keras_version", "backend"]
    with h5py.File(file, "r") as root:
        weights = root.get("model_weights", root)
        found = {k: text(g.attrs[k]) for g in (weights, root) for k in keys if k in g.attrs}
        ordered = sorted((k for k in keys if k in found), key=lambda k: k not in root.attrs)
        said = [*texts, *((k, found[k]) for k in ordered)]
        old = any(k.startswith("layer_names") for k in weights.attrs)
        lines = keras_2_lines(weights) if old else keras_3_lines(root)
        said = [f"{key}: {value}" for key, value in said]
        return "\n".join(["keras 2" if old else "keras 3", *said, *lines, ""])


def keras_listing(path):
    with zipfile.ZipFile(path) as archive:
        version = json.loads(archive.read("metadata.json"))["keras_version"]
        texts = [("model_config", archive.read("config.json").decode()),
                 ("keras_version", version)]  # fmt: skip
        return hdf5_listing(io.BytesIO(archive.read("model.weights.h5")), texts)


def keras_files():
    import keras

    def numbered(model):
        numbers = np.arange(4000) % 251 / 64
        model.set_weights([numbers[i : i + w.size].reshape(w.shape)
                           for i, w in enumerate(model.get_weights())])  # fmt: skip

    inner = keras.Sequential([keras.Input((3,)), keras.layers.Dense(3), keras.layers.Dense(2)],
                             name="inner")  # fmt: skip
    x = keras.Input((4, 4, 1), name="image")
    y = keras.layers.Conv2D(2, (1, 2), name="block1_conv1")(x)
    y = keras.layers.BatchNormalization()(y)
    y = keras.layers.GlobalAveragePooling2D()(y)
    for _ in range(11):
        y = keras.layers.Dense(3, use_bias=False)(y)
    model = keras.Model(x, inner(y))
    model.compile("sgd", "mse")
    numbered(model)
    model.save(HERE / "model.keras")
    model.save(HERE / "model.h5")
    model.save_weights(HERE / "model.weights.h5")
    keras.config.set_dtype_policy("bfloat16")
    brain = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    numbered(brain)
    brain.save_weights(HERE / "bfloat16.weights.h5")
    hdf5_types()


def hdf5_types():
    """Types and forms that Keras seldom writes, and names of layers in parts."""
    import h5py

    numbers = np.array([1, 0, 100, 2])
    with h5py.File(HERE / "types.h5", "w") as file:
        for name in ["<f2", ">f4", ">f8", "<i2", ">i4", ">i8", "u1", "<u2", ">u8", "?"]:
            file[f"vars/{name}"] = numbers.astype(name)
        file["vars/empty"] = np.zeros((0, 3), "f4")
        file["vars/scalar"] = np.float64(2.5)
        for i in range(300):  # more than a tree of one level holds
            file[f"many/{i}"] = file[f"many/{i % 3}"] if i > 2 else np.float32(i)
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((4,))
        made = h5py.h5d.create(file.id, b"compact", h5py.h5t.IEEE_F32LE, space, compact)
        made.write(space, space, numbers.astype("<f4"))
    with h5py.File(HERE / "layers.h5", "w") as file:
        file.attrs["layer_names0"] = [b"dense", b"outer"]
        file.attrs["layer_names1"] = [b"none"]
        file.attrs["keras_version"] = b"2.4.0"
        layers = {"dense": ["dense/kernel:0", "dense/bias:0"], "none": [],
                  "outer": ["outer/forward/kernel:0", "outer/backward/kernel:0"],
                  "top_level_model_weights": ["temperature:0"]}  # fmt: skip
        for layer, names in layers.items():
            group = file.create_group(layer)
            group.attrs["weight_names"] = [n.encode() for n in names]
            for i, name in enumerate(names):
                group[name] = numbers.astype("f4") + i


def hdf5_refused():
    """Well-formed files with what is not read; some of them would make libhdf5 open others."""
    import h5py

    place = HERE / "refused"
    place.mkdir(exist_ok=True)
    numbers = np.arange(100, dtype="<f4")
    with h5py.File(place / "packed.h5", "w") as file:
        file.create_dataset("a/packed", data=numbers, compression="gzip")
    with h5py.File(place / "chunks.h5", "w") as file:
        file.create_dataset("chunks", data=numbers, chunks=(50,))
    with h5py.File(place / "soft.h5", "w") as file:
        file["soft"] = h5py.SoftLink("/one")
    with h5py.File(place / "external.h5", "w") as file:
        file.create_dataset("x", (8,), "u1", external=[("/etc/passwd", 0, 8)])
    with h5py.File(place / "link.h5", "w") as file:
        file["x"] = h5py.ExternalLink("/etc/passwd", "/")
    with h5py.File(place / "latest.h5", "w", libver="latest") as file:
        file["x"] = numbers
    with h5py.File(place / "ordered.h5", "w") as file:
        file.create_group("g", track_order=True)["x"] = numbers
    with h5py.File(place / "unwritten.h5", "w") as file:
        file.create_dataset("x", (3,), "f4")
    with h5py.File(place / "words.h5", "w") as file:
        file["x"] = np.array([b"one", b"two"])
    with h5py.File(place / "loop.h5", "w") as file:
        file["a/b"] = file["/"]


def listing(path):
    with open(path, "rb") as file:
        begin = file.read(8)
    if begin[:4] == b"\x89HDF":
        return hdf5_listing(path)
    if begin[:4] == b"PK\3\4" and "model.weights.h5" in zipfile.ZipFile(path).namelist():
        return keras_listing(path)
    return torch_listing(path)


if sys.argv[1:] == ["torch"]:
    torch_files()
elif sys.argv[1:] == ["keras"]:
    keras_files()
    hdf5_refused()
    for path in sorted([*HERE.glob("*.h5"), *HERE.glob("*.keras")]):
        path.with_name(path.name + ".txt").write_text(listing(path))
else:
    print(listing(sys.argv[1]), end="")
