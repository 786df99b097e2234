#!/usr/bin/env python3
"""Makes the small files of weights that tests/io/arrays_files.c reads, and beside each a .txt
that says what is in it. Needs PyTorch, h5py, Keras and TensorFlow, or some of them.

weights.py: writes the files again. weights.py FILE: prints what is in any file, as the test's
program does for that file.
"""
import sys
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


def listing(path):
    with open(path, "rb") as file:
        begin = file.read(8)
    if begin[:4] in (b"PK\3\4", b"\x80\2\x8a\n"):
        return torch_listing(path)
    raise SystemExit(f"{path}: begins with {begin}")


if len(sys.argv) > 1:
    print(listing(sys.argv[1]), end="")
else:
    torch_files()
