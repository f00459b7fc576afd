#!/usr/bin/env python3
"""Compares the outputs in a folder with the expected values beside them. Needs NumPy.

usage: python3 check.py [FOLDER]        (default: the folder of this script)

NAME.npy: the bits of an output, as a tensor [b,h,s,d] or as it lies in memory. NAME.want.npy: its
expected values, computed in double precision. NAME.tolerance.npy: the largest error that a correct
kernel can have; NaN: not compared. case.json: types, strides and lengths.
For each output: the largest error over its tolerance, where it is [b,h,row,channel], got, expected.
Exit: 0 PASS, 1 FAIL, 2 a file cannot be read.
"""

import json
import pathlib
import sys

import numpy as np


def e4m3():
    """The value of each code."""
    exponent, fraction = np.arange(256) >> 3 & 15, (np.arange(256) & 7) / 8
    value = np.ldexp(fraction + (exponent > 0), np.maximum(exponent, 1) - 7)
    value[127::128] = np.nan
    return value * np.where(np.arange(256) < 128, 1.0, -1.0)


@np.errstate(invalid="ignore")  # memory that was not written may hold any NaN
def decode(codes, dtype):
    """Bits as they are in memory, as doubles."""
    if dtype == "bf16":
        return (codes.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype.endswith("e5m2"):
        return (codes.astype(np.uint16) << 8).view(np.float16).astype(np.float64)
    return e4m3()[codes] if dtype.endswith("e4m3") else codes.astype(np.float64)


class Folder:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.case = json.loads((self.path / "case.json").read_text(encoding="utf-8"))

    def load(self, name):
        return np.load(self.path / f"{name}.npy")

    def lengths(self, side):
        given = self.load("seq_len_" + side).astype(np.int64)
        return np.diff(given) if self.case["cumulative_" + side] else np.maximum(given, 0)

    def lying_in(self, raw, name, about):
        """[b,h,s,d] out of a storage; 0 in rows that a ragged sequence does not have."""
        dim, stride = about["dim"], about["stride"]
        starts, lengths = np.arange(dim[0]) * stride[0], [dim[2]] * dim[0]
        if about["packed"]:
            offsets = self.load(("stats" if name in ("max", "sum_exp") else name) + "_offsets")
            starts = offsets.astype(np.int64) * (stride[2] if self.case["ragged_tokens"] else 1)
            lengths = self.lengths(about["packed"])
        h, s, d = np.ogrid[: dim[1], : dim[2], : dim[3]]
        inside = about["first"] + h * stride[1] + s * stride[2] + d * stride[3]
        out = np.zeros(dim, raw.dtype)
        for b in range(dim[0]):
            out[b, :, : lengths[b]] = raw[starts[b] + inside[:, : lengths[b]]]
        return out

    def answer(self, name):
        """What the call wrote, as numbers."""
        about = self.case["tensors"].get(name)
        if not about:
            return self.load(name).astype(np.float64)
        own = (self.path / f"{name}.npy").exists()
        raw = self.load(name if own else about["storage_of"])
        value = decode(self.lying_in(raw, name, about) if raw.ndim == 1 else raw, about["dtype"])
        scaled = "scale_" + name in self.case["arrays"]
        return value / float(self.load("scale_" + name)[0]) if scaled else value

    def names(self):
        found = sorted(path.name.split(".")[0] for path in self.path.glob("*.want.npy"))
        if not found:
            raise OSError("no file *.want.npy: there are no expected values")
        return found


def settle_max(got, want, tolerance):
    """A kernel may report an earlier Max, lower by up to 8 ln 2: Sum_exp then belongs to that Max."""
    with np.errstate(invalid="ignore", over="ignore"):
        lower = want["max"] - got["max"]
        lazy = (lower > tolerance["max"]) & (lower < 8 * np.log(2))
        got["sum_exp"] = np.where(lazy, got["sum_exp"] * np.exp(-lower), got["sum_exp"])
        got["max"] = np.where(lazy, want["max"], got["max"])


def compare(name, got, want, tolerance):
    """Prints a line. Returns whether each error is within its tolerance."""
    with np.errstate(invalid="ignore", divide="ignore"):
        same = np.isnan(tolerance) | (got == want) | (np.isnan(got) & np.isnan(want))
        ratio = np.where(same, 0.0, np.abs(got - want) / tolerance)
        judged = np.isfinite(tolerance) & np.isfinite(want) & np.isfinite(got)
        over = np.sum(got * want, where=judged) / (np.sum(want * want, where=judged) or 1)
    ratio = np.where(np.isnan(ratio), np.inf, ratio)
    at = np.unravel_index(np.argmax(ratio), ratio.shape)
    where, good = ",".join(str(int(n)) for n in at), bool(ratio[at] <= 1)
    print(
        f"{name:12} largest error {ratio[at]:.3g} of its tolerance {tolerance[at]:.3g} at [{where}]:"
        f" got {got[at]:.6g}, expected {want[at]:.6g}; got over expected {over:.4f}:"
        f" {'PASS' if good else 'FAIL'}"
    )
    return good


def main(words):
    if words[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return 0
    try:
        folder = Folder(words[0] if words else pathlib.Path(__file__).resolve().parent)
        names = folder.names()
        got = {name: folder.answer(name) for name in names}
        want = {name: folder.load(name + ".want") for name in names}
        tolerance = {name: folder.load(name + ".tolerance") for name in names}
        if {"max", "sum_exp"} <= set(names):
            settle_max(got, want, tolerance)
        good = all([compare(name, got[name], want[name], tolerance[name]) for name in names])
    except (OSError, EOFError, ValueError, TypeError, LookupError, AttributeError) as error:
        print(f"check.py: {type(error).__name__}: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    print("PASS" if good else "FAIL")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
