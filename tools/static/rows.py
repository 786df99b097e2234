"""The table of products, as far as scripts have to know it."""
import re

ROW = re.compile(r"\bROW\(([\w/]+), \w+,\s*[^,]+, \w+, (\w+),")
CLASSES = {"CPU": {"cpu"}, "GPU": {"gpu"}, "ANY": {"cpu", "gpu"}}
# What has no row: what packs for one of them, and further kernels of plane tiles.
BESIDE = {"products/winograd/pack": {"cpu"}, "products/planes/pack": {"cpu"},
          "products/planes/gradient": {"cpu"}, "products/planes/winograd_pack": {"cpu"},
          "ops/pool_planes": {"cpu"}, "tensor/planes": {"cpu"}}  # fmt: skip


def kernel_classes(root):
    """File below cl/, without its suffix -> the classes of devices that it is built for."""
    found = {file: set(classes) for file, classes in BESIDE.items()}
    rows = ROW.findall((root / "src/products/kernel/rows.h").read_text())
    assert len(rows) > 20, rows
    for file, kind in rows:
        found.setdefault("products/" + file, set()).update(CLASSES[kind])
    return found
