"""Puts the outputs of a dump (facts repro --dump) where a program finds them as its own.

usage: answers.py DUMP CASE_JSON OUT [--plant NAME]    --plant: one element of NAME has the wrong sign
Where CASE_JSON has a graph (--standalone --keep), OUT/UID.bin for each tensor that is written: for shims/fake_cudnn.c. Else OUT/BUFFER.npy, as the
script of --frontend leaves them for check.py.
"""

import json
import os
import sys

import numpy as np

WORDS = {"d_o": "do"}


def size_of(about):
    return {"bf16": 2, "f16": 2, "f32": 4}.get(about["dtype"], 1)


def lengths(dump, about, case):
    """Rows of each entry of a packed tensor."""
    side = about["packed"]
    given = np.load(os.path.join(dump, f"seq_len_{side}.npy")).astype(np.int64)
    return np.maximum(np.diff(given) if case[f"cumulative_{side}"] else given, 0)


def scatter(storage, dump, name, about, case, plant):
    """Writes the dumped tensor into a storage of bytes, element by element."""
    value = np.load(os.path.join(dump, f"{name}.npy"))
    if plant:
        numbers = np.load(os.path.join(dump, f"{name}_f32.npy")).reshape(-1)
        place = int(np.argmax(np.abs(np.where(np.isfinite(numbers), numbers, 0))))
        value.reshape(-1)[place : place + 1].view(np.uint8)[-1] ^= 0x80
    value, dim, stride = np.ascontiguousarray(value), about["dim"], about["stride"]
    starts, live = np.arange(dim[0]) * stride[0], np.full(dim[0], dim[2])
    if about["packed"]:
        offsets = np.load(
            os.path.join(dump, ("stats" if name in ("max", "sum_exp") else name) + "_offsets.npy")
        ).astype(np.int64)
        starts, live = (
            offsets[:-1] * (stride[2] if case["ragged_tokens"] else 1),
            lengths(dump, about, case),
        )
    elements = storage.view(value.dtype)
    h, s, d = (
        np.arange(n).reshape([-1 if axis == i else 1 for i in range(3)])
        for axis, n in enumerate(dim[1:])
    )
    for b in range(dim[0]):
        at = about["first"] + starts[b] + h * stride[1] + s * stride[2] + d * stride[3]
        elements[at[:, : live[b]]] = value[b, :, : live[b]]


def array(dump, name, plant):
    value = np.load(os.path.join(dump, f"{name}.npy"))
    return -value if plant == name else value


def put_buffers(out, dump, case, storages, plant):
    for owner, storage in storages.items():
        np.save(
            os.path.join(out, f"{owner}.npy"),
            storage.view(np.load(os.path.join(dump, f"{owner}.npy")).dtype),
        )
    for name, about in case["arrays"].items():
        if about["output"]:
            np.save(os.path.join(out, f"{name}.npy"), array(dump, name, plant))


def put_bound(out, dump, case, storages, plant):
    for binding in case["graph"]["bindings"]:
        name = WORDS.get(binding["slot"], binding["slot"])
        about = case["tensors"].get(name)
        if about and about["output"]:
            storages[about["storage_of"]][about["first"] * size_of(about) :].tofile(
                os.path.join(out, f"{binding['uid']}.bin")
            )
        elif name in case["arrays"] and case["arrays"][name]["output"]:
            array(dump, name, plant).tofile(os.path.join(out, f"{binding['uid']}.bin"))


def main(dump, described, out, plant=None):
    with open(described, encoding="utf-8") as file:
        case = json.load(file)
    storages = {}
    for name, about in case["tensors"].items():
        if about["output"]:
            owner = about["storage_of"]
            if owner not in storages:
                storages[owner] = np.full(
                    case["tensors"][owner]["elements"] * size_of(about), 0xFF, np.uint8
                )
            scatter(storages[owner], dump, name, about, case, plant == name)
    (put_bound if "graph" in case else put_buffers)(out, dump, case, storages, plant)


if __name__ == "__main__":
    main(*[word for word in sys.argv[1:] if word != "--plant"])
