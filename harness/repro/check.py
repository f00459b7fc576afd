#!/usr/bin/env python3
"""Recomputes one attention call from the .npy files of a folder, with NumPy alone, in double precision.

usage: python3 check.py [FOLDER]        (default: the folder of this script)

The files are tensors, or buffers as they are in memory; case.json has the sizes. The script needs nothing else.
A backward is computed from the engine's inputs O and Stats. The script prints them beside those of a forward, without PASS or FAIL.

For each output: the largest error and its place (b,h,row,channel), the relative rms error, PASS or FAIL.
Tolerance. A correct kernel rounds P (backward: dS too) to the type of Q, and the output to its own type. Each rounding changes a
number by at most e = u |x| + min(|x|, eta) (u: unit roundoff, eta: half the smallest subnormal step). Such errors add up like independent ones, to
E = sqrt(sum of (e w)^2) + (u of P + u of the output) |output|; w is the factor of P or dS in the product.
An output passes if each error is at most 4 E, if the rms of all errors is at most the rms of E, and if every element past a length
is 0 or was not written.
Stats and Max: the error is at most 2^-17 (8-bit types: 2^-9) of 1 + |scale| |q| max|k| + the largest |score|, of each row.

Exit: 0 PASS, 1 FAIL, 2 files cannot be read, 3 the script cannot compute the case.
"""

import json
import os
import sys

import numpy as np

LOG2_E = 1.4426950408889634
FACTOR = 4.0  # of E, for one element
ROWS = 512  # rows of scores in memory at once
MX_BLOCK = 32
UNTOUCHED = {
    1: (0x7F, 0xFF),
    2: (0x7FA5, 0xFFFF),
    4: (0x7FA5A5A5, 0xFFFFFFFF),
}  # by size: in the outputs before the call
SIZES = ("batch", "heads_q", "heads_k", "heads_v", "seq_q", "seq_kv", "dim_qk", "dim_v")
# unit roundoff (of f32: 16 times that), half the smallest step or the smallest normal number (fp32 flushes to 0), largest number
TYPES = {
    "bf16": (2.0**-8, 2.0**-126, 3.39e38),
    "f16": (2.0**-11, 2.0**-25, 65504.0),
    "f32": (2.0**-20, 2.0**-126, 3.4e38),
    "e4m3": (2.0**-4, 2.0**-10, 448.0),
    "e5m2": (2.0**-3, 2.0**-17, 57344.0),
    "mxe4m3": (2.0**-4, 2.0**-10, 448.0),
    "mxe5m2": (2.0**-3, 2.0**-17, 57344.0),
}


class CannotSay(Exception):
    """This script cannot compute the case."""


# ---- numbers ----------------------------------------------------------------------------------------------------------------


@np.errstate(invalid="ignore")  # memory that was not written may hold any NaN
def decode(codes, dtype):
    """Bits as they are in memory, as doubles."""
    if dtype == "bf16":
        return (codes.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype in ("e5m2", "mxe5m2"):
        return (codes.astype(np.uint16) << 8).view(np.float16).astype(np.float64)
    if dtype in ("e4m3", "mxe4m3"):
        code = np.arange(256)
        exponent, fraction = code >> 3 & 15, (code & 7) / 8.0
        value = np.where(
            exponent == 0, np.ldexp(fraction, -6), np.ldexp(1.0 + fraction, exponent - 7)
        )
        value[code & 127 == 127] = np.nan
        return np.where(code >= 128, -value, value)[codes]
    return codes.astype(np.float64)


def cast(x, dtype):
    """To nearest even."""
    known = {"bf16": (7, -133), "f16": (10, -24), "f32": (23, -149)}
    if dtype not in known:
        raise CannotSay(f"a rotation that is rounded to {dtype}")
    fraction_bits, least = known[dtype]
    step = np.ldexp(1.0, np.maximum(np.frexp(x)[1] - 1 - fraction_bits, least))
    return np.rint(x / step) * step


def root(x):
    return np.sqrt(x)


# ---- files ------------------------------------------------------------------------------------------------------------------


class Files:
    """The call's memory: tensors as doubles [b,h,s,d], small arrays as they are."""

    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "case.json"), encoding="utf-8") as file:
            self.case = json.load(file)
        for key in SIZES:
            if type(self.case[key]) is not int or self.case[key] < 1:
                raise ValueError(f"case.json: {key} is {self.case[key]!r}, which is no size")
        if any(self.case["heads_q"] % self.case[key] for key in ("heads_k", "heads_v")):
            raise ValueError("case.json: heads_q is no multiple of heads_k and heads_v")
        if type(self.case["scale"]) not in (int, float):
            raise ValueError(f"case.json: scale is {self.case['scale']!r}, which is no number")
        self.tensors, self.arrays = self.case["tensors"], self.case["arrays"]
        self.batch, self.heads = self.case["batch"], self.case["heads_q"]
        self.len_q, self.len_kv = self.lengths("q"), self.lengths("kv")
        self.kept = {}

    def path(self, name):
        return os.path.join(self.folder, name + ".npy")

    def load(self, name):
        """As it is in the file; a storage of one dimension as the tensor that lies in it."""
        shared = name in self.tensors and not os.path.exists(self.path(name))
        raw = np.load(self.path(self.tensors[name]["storage_of"] if shared else name))
        return self.lying_in(raw, name) if raw.ndim == 1 and name in self.tensors else raw

    def lying_in(self, raw, name):
        """[b,h,s,d] out of a storage, by strides and offsets; rows outside a ragged sequence are 0."""
        about = self.tensors[name]
        dim, stride = list(about["dim"]), about["stride"]
        if about["page"]:
            dim[0], dim[2] = about["pages"], about["page"]
        starts, lengths = np.arange(dim[0]) * stride[0], np.full(dim[0], dim[2])
        if about["packed"]:
            offsets = self.load(
                ("stats" if name in ("max", "sum_exp") else name) + "_offsets"
            ).astype(np.int64)
            starts = offsets[:-1] * (stride[2] if self.case["ragged_tokens"] else 1)
            lengths = self.len_q if about["packed"] == "q" else self.len_kv
        inside = sum(
            (np.arange(extent) * step).reshape([-1 if axis == n else 1 for n in range(3)])
            for axis, (extent, step) in enumerate(zip(dim[1:], stride[1:]))
        )
        out = np.zeros(dim, raw.dtype)
        for b in range(dim[0]):
            out[b, :, : lengths[b]] = raw[about["first"] + starts[b] + inside[:, : lengths[b]]]
        return out

    def array(self, name):
        return self.load(name) if name in self.arrays else None

    def scalar(self, name):
        return float(self.load(name)[0]) if name in self.arrays else 1.0

    def lengths(self, side):
        full = self.case["seq_" + side]
        if "seq_len_" + side not in self.arrays:
            return np.full(self.batch, full)
        found = self.load("seq_len_" + side).astype(np.int64)
        if self.case["cumulative_" + side]:
            return np.diff(found)
        if found.size == 1:
            return np.maximum(np.broadcast_to(found, self.batch), 0)
        return np.maximum(found, 0)

    def has(self, name):
        return name in self.tensors

    def tensor(self, name):
        """Real numbers: descaled, block factors applied, pages gathered."""
        if name not in self.kept:
            about = self.tensors[name]
            value = decode(self.load(name), about["dtype"])
            if about["page"]:
                value = self.gathered(name, value)
            if about["dtype"].startswith("mx"):
                value = value * self.factors(name, value.shape)
            elif name in ("q", "k", "v", "o", "do") and "descale_" + name in self.arrays:
                value = value * self.scalar("descale_" + name)
            self.kept[name] = value
        return self.kept[name]

    def gathered(self, name, pool):
        """[pages,h,page,d] by the table of pages, as [b,h,s,d]."""
        table, page = self.load("page_table_" + name), self.tensors[name]["page"]
        starts = self.array("table_offsets_" + name)
        if starts is None:
            starts = np.arange(self.batch) * self.case["table_" + name]
        out = np.zeros((self.batch, pool.shape[1], self.case["seq_kv"], pool.shape[3]))
        for b in range(self.batch):
            for first in range(0, int(self.len_kv[b]), page):
                rows = min(page, int(self.len_kv[b]) - first)
                out[b, :, first : first + rows] = pool[table[starts[b] + first // page], :, :rows]
        return out

    def factors(self, name, shape):
        """Of 32 elements each, E8M0 in tiles of 128 x 4."""
        by_row = name.endswith("_t") or (name == "v" and self.case["pass"] == "fwd")
        lines, columns = (shape[3], shape[2]) if by_row else (shape[2], shape[3])
        blocks = -(-columns // MX_BLOCK)
        tiles = -(-blocks // 4)
        line, block = np.arange(lines)[:, None], np.arange(blocks)[None, :]
        place = (
            (line // 128 * tiles + block // 4) * 512
            + line % 32 * 16
            + line // 32 % 4 * 4
            + block % 4
        )
        codes = self.load("sf_" + name).reshape(shape[0], shape[1], -1)[:, :, place]
        factor = np.repeat(np.ldexp(1.0, codes.astype(np.int64) - 127), MX_BLOCK, axis=3)[
            ..., :columns
        ]
        return factor.swapaxes(2, 3) if by_row else factor

    def check_offsets(self):
        """Do the offsets of ragged tensors lead to the rows that TENSOR.npy shows?"""
        good = []
        for name, about in self.tensors.items():
            if (
                not about["packed"]
                or name + "_offsets" not in self.arrays
                or not os.path.exists(self.path(name + ".packed"))
            ):
                continue
            seen, stored = self.load(name), self.load(name + ".packed")
            unit = 1 if self.case["ragged_tokens"] else about["stride"][2]
            lengths = self.len_q if about["packed"] == "q" else self.len_kv
            for b, offset in enumerate(self.load(name + "_offsets")[:-1]):
                first, count = int(offset) // unit, int(lengths[b])
                if not np.array_equal(
                    seen[b, :, :count].view(np.uint8),
                    stored[0, :, first : first + count].view(np.uint8),
                ):
                    raise ValueError(f"{name}_offsets[{b}] does not lead to the rows of {name}.npy")
            good.append(name)
        if good:
            print("offsets lead to the rows of: " + " ".join(good))


# ---- scores -----------------------------------------------------------------------------------------------------------------


class Scores:
    """Rows of one head: x (masked: -inf), the slope of the score modification, and the size of the added terms."""

    def __init__(self, files):
        self.files, case = files, files.case
        self.case = case
        self.q, self.k = files.tensor("q"), files.tensor("k")
        if case["rope_dim"]:
            self.q = cast(self.rotated(self.q, files.load("rope_q"), 1.0), case["dtype"])
            self.k = cast(self.rotated(self.k, files.load("rope_k"), 1.0), case["dtype"])
        self.bias = files.load("bias") if files.has("bias") else None
        self.truth = files.has("bias") and files.tensors["bias"]["dtype"] == "bool"
        if files.has("bias") and not self.truth:
            self.bias = files.tensor("bias")
        self.slopes, self.sink = files.array("alibi_slopes"), files.array("sink")
        self.tiles = files.array("block_mask")
        if self.tiles is not None:
            shape = (files.batch, files.heads, -(-case["seq_q"] // 128), -1)
            self.tiles = np.unpackbits(self.tiles.reshape(shape), axis=3, bitorder="little")
        self.keep = files.load("keep") if case["dropout"] > 0 or files.has("dropout_mask") else None

    def rotated(self, x, angles, sign):
        """Rotates the last rope_dim channels: c together with c + half."""
        count = self.case["rope_dim"]
        half, out = count // 2, x.copy()
        angle = angles.reshape(-1, count)[:, :half].astype(np.float64)
        cosine, sine = np.cos(angle), sign * np.sin(angle)
        a, b = x[..., -count:-half], x[..., -half:]
        out[..., -count:-half], out[..., -half:] = a * cosine - b * sine, b * cosine + a * sine
        return out

    def modified(self, s, b, h, i, j):
        """The score modification, and its slope."""
        mod, parameter = self.case["mod"], self.case["mod_parameters"]
        one = np.ones_like(s)
        if mod == "none":
            return s, one
        if mod == "softcap":
            t = np.tanh(s / parameter[0])
            return parameter[0] * t, 1.0 - t * t
        if mod == "temperature":
            return s / parameter[0], one / parameter[0]
        if mod == "post_scale_bias":
            return s + self.beside(self.files.tensor("mod_a"), b, h, i, j), one
        if mod == "relpos":
            return s + self.files.tensor("mod_a")[0, h, 0, 0] * (j - i), one
        if mod == "causal":
            seen = j <= i
        elif mod == "window":
            left, right = parameter
            seen = ((j <= i + right) if right is not None else True) & (
                (j > i - left) if left is not None else True
            )
        elif mod == "prefix":
            seen = (j <= i) | (j < parameter[0])
        elif mod == "document":
            seen = self.files.tensor("mod_a")[b, 0, i, 0] == self.files.tensor("mod_b")[b, 0, 0, j]
        else:
            raise CannotSay(f"the score modification {mod}")
        return np.where(seen, s, -np.inf), np.where(seen, 1.0, 0.0)

    @staticmethod
    def beside(t, b, h, i, j):
        """A tensor of which dimensions may be 1, at rows i and keys j."""
        one = t[b if t.shape[0] > 1 else 0, h if t.shape[1] > 1 else 0]
        one = one[i[:, 0]] if one.shape[0] > 1 else one
        return one[:, j[0]] if one.shape[1] > 1 else one

    def seen(self, b, h, i, j):
        case = self.case
        shift = int(self.files.len_kv[b] - self.files.len_q[b]) if case["align"] == "br" else 0
        out = np.ones((i.shape[0], j.shape[1]), bool)
        if case["window_right"] is not None:
            out &= j <= i + shift + case["window_right"]
        if case["window_left"] is not None:
            out &= j > i + shift - case["window_left"]
        if self.tiles is not None:
            out &= self.tiles[b, h][i // 128, j // 128] != 0
        if self.truth:
            out &= self.beside(self.bias, b, h, i, j) != 0
        return out

    def of(self, b, h, first, last):
        """Of rows first..last-1 and the live keys. Returns x, slope, size [rows,1]."""
        case = self.case
        i, j = np.arange(first, last)[:, None], np.arange(int(self.files.len_kv[b]))[None, :]
        q = self.q[b, h, first:last]
        k = self.k[b, h * case["heads_k"] // case["heads_q"], : j.shape[1]]
        x, slope = self.modified(case["scale"] * (q @ k.T), b, h, i, j)
        if self.bias is not None and not self.truth:
            x = x + self.beside(self.bias, b, h, i, j)
        if self.slopes is not None:
            x = x + float(self.slopes[h]) * (j - i)
        x = np.where(self.seen(b, h, i, j), x, -np.inf)
        norms = root((q * q).sum(1, keepdims=True)) * (
            root((k * k).sum(1)).max() if k.size else 0.0
        )
        largest = np.where(np.isfinite(x), np.abs(x), 0.0).max(axis=1, initial=0.0, keepdims=True)
        return x, slope, 1.0 + abs(case["scale"]) * norms + largest

    def kept(self, b, h, first, last, keys):
        """The right-hand side of the product with P."""
        if self.keep is None:
            return 1.0
        return self.keep[b, h, first:last, :keys] * self.case["keep_scale"]


# ---- the two passes ---------------------------------------------------------------------------------------------------------


class Answer:
    """The expected values of one output, with E or, for Stats and Max, the tolerance itself."""

    def __init__(self, shape):
        self.want, self.error, self.due = np.zeros(shape), np.zeros(shape), np.zeros(shape, bool)


def softmax(x, sink):
    """P, LSE, Max, Sum_exp of rows; a row without a key has P = 0."""
    top = np.maximum(x.max(axis=1, initial=-np.inf, keepdims=True), sink)
    base = np.where(np.isfinite(top), top, 0.0)
    weights = np.exp(x - base)
    total = weights.sum(axis=1, keepdims=True) + np.exp(sink - base)
    with np.errstate(divide="ignore"):
        lse = top + np.log(np.where(np.isfinite(top), total, 1.0))
    return (
        weights / np.where(total > 0, total, 1.0),
        lse,
        top,
        np.where(np.isfinite(top), total, 0.0),
    )


def is_narrow(case):
    return case["dtype"] not in ("bf16", "f16", "f32")


def parts(files):
    """Every (b, h, first row, last row) of live rows."""
    for b in range(files.batch):
        for h in range(files.heads):
            for first in range(0, int(files.len_q[b]), ROWS):
                yield b, h, first, min(first + ROWS, int(files.len_q[b]))


def forward(files, only_rows=False):
    """{name: Answer} of O, lse, max, sum_exp, and the largest |P'|."""
    case, scores = files.case, Scores(files)
    v = files.tensor("v")
    u, eta, _ = TYPES[case["dtype"]]
    narrow = is_narrow(case)
    pieces = (
        16.0
        if case["dtype"].startswith("mx")
        else files.scalar("scale_s") / 16.0
        if narrow
        else 1.0
    )  # a rescale threshold of 2^4
    gamma = files.scalar("scale_s") * files.scalar("descale_s")
    rows = (files.batch, files.heads, case["seq_q"], 1)
    out = {name: Answer(rows) for name in ("lse", "max", "sum_exp")}
    out["o"] = Answer(rows[:3] + (case["dim_v"],))
    amax = 0.0
    for b, h, first, last in parts(files):
        x, _, size = scores.of(b, h, first, last)
        p, lse, top, total = softmax(x, -np.inf if scores.sink is None else float(scores.sink[h]))
        at = (b, h, slice(first, last))
        tolerance = size * (2.0**-9 if narrow else 2.0**-17)
        for name, value in (("lse", lse), ("max", top), ("sum_exp", total)):
            out[name].want[at], out[name].error[at], out[name].due[at] = value, tolerance, True
        p = p * scores.kept(b, h, first, last, p.shape[1])
        amax = max(amax, float(p.max(initial=0.0)))
        if only_rows:
            continue
        values = v[b, h * case["heads_v"] // case["heads_q"], : p.shape[1]]
        o = gamma * (p @ values)
        e = (u + size * (2.0**-11 if narrow else 2.0**-21)) * p + np.minimum(
            p, eta / pieces / np.maximum(total, 1.0)
        )
        out["o"].want[at], out["o"].due[at] = o, True
        out["o"].error[at] = (
            abs(gamma) * root((e * e) @ (values * values))
            + u * np.abs(o)
            + (abs(gamma) * 2.0**-11 * (p @ np.abs(values)) if narrow else 0.0)
        )
    return out, amax


class Gradients:
    """Sums of gradients, and of the squares of their errors."""

    def __init__(self, files):
        case = files.case
        keys = (files.batch, case["heads_k"], case["seq_kv"], case["dim_qk"])
        self.dq = Answer((files.batch, files.heads, case["seq_q"], case["dim_qk"]))
        self.dk = Answer(keys)
        self.dv = Answer((files.batch, case["heads_v"], case["seq_kv"], case["dim_v"]))
        self.dbias = None
        if files.has("dbias"):
            about = files.tensors["dbias"]
            self.dbias, u = Answer(about["dim"]), TYPES[about["dtype"]][0]
            casts, parts = casts_of_bias(
                about["dim"],
                (files.batch, files.heads, case["seq_q"], case["seq_kv"]),
                case["scale"],
            )
            self.u_dbias = u * root(float(casts))
            self.casts_dbias = 1.0 + root(float(casts * parts))
        self.dsink = np.zeros(files.heads)
        self.dsink_error = np.zeros(files.heads)
        self.amax_dp = 0.0


def add_to(answer, at, part, squares, u):
    """One part of a sum; a kernel may round each part."""
    answer.want[at] += part
    answer.error[at] += squares + (u * part) ** 2


def casts_of_bias(dim, full, scale):
    """(casts of a part before the last one, in casts of that part alone; parts of one element). An engine casts scale dX and each partial sum but the last."""
    casts, parts = 0, 1
    for extent in (whole // mine for whole, mine in zip(full, dim) if whole > mine):
        casts, parts = casts + parts, parts * extent
    return casts or int(np.frexp(abs(scale))[0] != 0.5), parts


def add_bias(answer, b, h, first, last, dx, near, u):
    """`near`: what dX is off by before its casts. `u`: of all of them but the last."""
    dim = answer.want.shape
    rows = slice(first, last) if dim[2] > 1 else slice(0, 1)
    at = (
        b if dim[0] > 1 else 0,
        h if dim[1] > 1 else 0,
        rows,
        slice(0, dx.shape[1]) if dim[3] > 1 else slice(0, 1),
    )
    axes = tuple(axis for axis, extent in enumerate(dim[2:]) if extent == 1)
    add_to(
        answer,
        at,
        dx.sum(axis=axes, keepdims=True),
        ((u * dx) ** 2 + near**2).sum(axis=axes, keepdims=True),
        0.0,
    )


def backward(files):
    case, scores = files.case, Scores(files)
    blocks = case["dtype"].startswith("mx")
    u, eta, _ = TYPES[case["dtype"]]
    u_ds, eta_ds, _ = TYPES[case["do_dtype"] if is_narrow(case) else case["dtype"]]
    if blocks:
        u_ds, eta_ds = 2 * u_ds, 0.0
    narrow = is_narrow(case)
    accumulated = 2.0**-11 if narrow else 2.0**-20
    scale_s = 256.0 if blocks else files.scalar("scale_s")
    gamma = files.scalar("scale_s") * files.scalar("descale_s")
    delta = files.scalar("scale_dp") * files.scalar("descale_dp")
    v, o, d_o = files.tensor("v"), files.tensor("o"), files.tensor("do")
    d_o_rows, d_o_wide = (files.tensor("do_t"), files.tensor("do_16")) if blocks else (d_o, d_o)
    q_rows, k_rows = (files.tensor("q_t"), files.tensor("k_t")) if blocks else (scores.q, scores.k)
    stats = files.tensor("stats")
    out = Gradients(files)
    group_k, group_v = case["heads_q"] // case["heads_k"], case["heads_q"] // case["heads_v"]
    u_parts = u if group_k > 1 or group_v > 1 else 0.0
    for b, h, first, last in parts(files):
        x, slope, size = scores.of(b, h, first, last)
        n, at = x.shape[1], (b, h, slice(first, last))
        lse = stats[at]
        p = np.where(
            np.isfinite(lse) & np.isfinite(x), np.exp(x - np.where(np.isfinite(lse), lse, 0.0)), 0.0
        )
        keep = scores.kept(b, h, first, last, n)
        values, dy, rows_of = v[b, h // group_v, :n], d_o[at], slice(0, n)
        dp = (dy @ values.T) * keep
        # O of a row without keys is arbitrary
        d = np.where(np.isfinite(lse), (d_o_wide[at] * o[at]).sum(axis=1, keepdims=True), 0.0)
        dx = p * (dp - d)
        ds = dx * slope * case["scale"]
        reach = root((dy * dy).sum(1, keepdims=True)) * (
            root((values * values).sum(1)).max() if values.size else 0.0
        )
        noise = size * (2.0**-11 if narrow else 2.0**-21)
        # of dX: dP and D may cancel, their errors cannot
        near = p * accumulated * (np.abs(dp) + np.abs(d) + reach)
        e = (
            (u_ds + noise) * np.abs(ds)
            + np.minimum(np.abs(ds), eta_ds / files.scalar("scale_dp"))
            + near * np.abs(slope * case["scale"])
        )
        keys, queries = k_rows[b, h // group_k, :n], q_rows[at]
        out.dq.want[at] = delta * (ds @ keys)
        out.dq.error[at] = (delta * delta) * ((e * e) @ (keys * keys))
        add_to(
            out.dk,
            (b, h // group_k, rows_of),
            delta * (ds.T @ queries),
            (delta * delta) * ((e * e).T @ (queries * queries)),
            u_parts,
        )
        dropped = p * keep
        e = (u + noise) * dropped + np.minimum(dropped, eta / scale_s)
        dy = d_o_rows[at]
        add_to(
            out.dv,
            (b, h // group_v, rows_of),
            gamma * (dropped.T @ dy),
            (gamma * gamma) * ((e * e).T @ (dy * dy)),
            u_parts,
        )
        out.amax_dp = max(out.amax_dp, float(np.abs(ds).max(initial=0.0)))
        if out.dbias is not None:
            add_bias(out.dbias, b, h, first, last, dx, noise * np.abs(dx) + near, out.u_dbias)
        if scores.sink is not None:
            with np.errstate(invalid="ignore"):
                term = -np.where(np.isfinite(lse), np.exp(float(scores.sink[h]) - lse), 0.0) * d
            out.dsink[h] += term.sum()
            out.dsink_error[h] += ((size * 2.0**-12) ** 2 * term**2).sum()
    for answer in (out.dq, out.dk, out.dv):
        answer.error = root(answer.error) + u * np.abs(answer.want)
        answer.due[:] = True
    turn_back(files, scores, out)
    return out


def turn_back(files, scores, out):
    """Gradients of rotated Q and K, as those of Q and K."""
    if not files.case["rope_dim"]:
        return
    for answer, angles in ((out.dq, "rope_q"), (out.dk, "rope_k")):
        count = files.case["rope_dim"]
        half = count // 2
        answer.want = scores.rotated(answer.want, files.load(angles), -1.0)
        both = answer.error[..., -count:-half] + answer.error[..., -half:]
        answer.error[..., -count:-half], answer.error[..., -half:] = both, both


# ---- the comparison ---------------------------------------------------------------------------------------------------------


class Report:
    def __init__(self):
        self.failed = False

    def line(self, name, got, want, allowed, due, rms_rule=True, given=False):
        """`allowed`: E where rms_rule, else the tolerance. `given`: an input, which is shown and not judged."""
        if not due.any():
            print(f"{name:12} no element is compared")
            return
        with np.errstate(invalid="ignore"):
            same = (got == want) | (np.isnan(got) & np.isnan(want))
            off = np.where(same, 0.0, np.abs(got - want))
        off = np.where(np.isnan(off), np.inf, off)
        off = np.where(due, off, 0.0)
        tolerance = np.where(due, (FACTOR if rms_rule else 1.0) * allowed, 1.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.where(off > 0, off / tolerance, 0.0)
        worst = np.unravel_index(np.argmax(ratio), ratio.shape)
        largest = np.unravel_index(np.argmax(off), off.shape)
        finite = due & np.isfinite(want)
        size = root(np.mean(want[finite] ** 2)) if finite.any() else 0.0
        rms = root(np.mean(off[finite] ** 2)) if finite.any() else 0.0
        bad = not np.all(ratio <= 1.0) or (rms_rule and rms > root(np.mean(allowed[finite] ** 2)))
        self.failed |= bool(bad) and not given
        verdict = (
            ("not " if bad else "") + "within the tolerance" if given else "FAIL" if bad else "PASS"
        )
        where = ",".join(str(int(n)) for n in largest)
        print(
            f"{name:12} largest error {off[largest]:.3g} at [{where}]: {got[largest]:.6g}, expected {want[largest]:.6g}; "
            f"worst error {ratio[worst]:.3g} of the tolerance; relative rms {rms / size if size else rms:.3g}: {verdict}"
        )

    def padded(self, name, got, untouched, due):
        """Elements past a length: 0, or unchanged by the call."""
        other = ~(due | (got == 0) | untouched)
        if other.any():
            self.failed = True
            where = ",".join(str(int(n)) for n in np.unravel_index(np.argmax(other), other.shape))
            print(
                f"{name:12} {other.sum()} elements behind a length were written, the first at [{where}]: {got[other][0]:.6g}: FAIL"
            )


def spread(answer, dim, u):
    """A gradient that is summed over what its input broadcasts: extent 1 of the output. Each part may be rounded first."""
    axes = tuple(axis for axis in range(4) if dim[axis] == 1 and answer.want.shape[axis] > 1)
    if not axes:
        return
    answer.error = root((answer.error**2 + (u * answer.want) ** 2).sum(axis=axes, keepdims=True))
    answer.want, answer.due = (
        answer.want.sum(axis=axes, keepdims=True),
        answer.due.any(axis=axes, keepdims=True),
    )


def compare(files, report, name, answer):
    """An output of tensors as large as Q, K or V; 8 bit types in real numbers."""
    about = files.tensors[name]
    u, eta, largest = TYPES[about["dtype"]]
    scale = files.scalar("scale_" + name)
    raw = files.load(name)
    got = decode(raw, about["dtype"]) / scale
    spread(answer, about["dim"], u)
    want = np.clip(answer.want, -largest / scale, largest / scale) if u > 2.0**-8 else answer.want
    report.line(name, got, want, answer.error + u * np.abs(want) + eta / abs(scale), answer.due)
    report.padded(
        name, got, np.isin(raw.view(f"u{raw.itemsize}"), UNTOUCHED[raw.itemsize]), answer.due
    )
    check_due(files, name, answer, want)


def check_due(files, name, answer, want):
    """Compares with the reference results that the folder may have."""
    try:
        theirs = files.load(name + ".want")
    except FileNotFoundError:
        return
    if theirs.shape != want.shape:
        return
    off = np.where(answer.due & np.isfinite(want), np.abs(theirs - want), 0.0)
    print(
        f"{'':12} the folder's reference results differ from these by {np.nanmax(off, initial=0.0):.3g} at most"
    )


def compare_arrays(files, report, due):
    """Numbers that the call writes: {name: (value, tolerance)}."""
    for name, (want, off) in due.items():
        if name in files.arrays:
            got, want = files.load(name).astype(np.float64), np.atleast_1d(np.asarray(want, float))
            report.line(
                name,
                got,
                want,
                np.broadcast_to(off, want.shape),
                np.ones(want.shape, bool),
                rms_rule=False,
            )


def compare_rows(files, report, rows):
    """Stats, Max and Sum_exp, if the call writes them."""
    if files.has("stats"):
        got = files.tensor("stats") / (LOG2_E if files.case["stats_log2"] else 1.0)
        report.line(
            "stats", got, rows["lse"].want, rows["lse"].error, rows["lse"].due, rms_rule=False
        )
    for name in ("max", "sum_exp"):
        if files.has(name):
            want, error = rows[name].want, rows[name].error
            with np.errstate(invalid="ignore", over="ignore"):
                # a kernel may keep an earlier Max, lower by up to 2^8
                if files.has("max") and files.has("sum_exp"):
                    lower = rows["max"].want - files.tensor("max")
                    lazy = (lower > rows["max"].error) & (lower < 8 / LOG2_E)
                    want = np.where(
                        lazy, files.tensor("max") if name == "max" else want * np.exp(lower), want
                    )
                error = np.abs(want) * np.expm1(2 * error) + 1e-30 if name == "sum_exp" else error
            report.line(name, files.tensor(name), want, error, rows[name].due, rms_rule=False)


def largest(answer):
    """An amax, before scale and cast, and E there."""
    at = np.unravel_index(np.argmax(np.abs(answer.want)), answer.want.shape)
    return abs(answer.want[at]), answer.error[at]


def run_forward(files, report):
    out, amax = forward(files)
    compare(files, report, "o", out["o"])
    compare_rows(files, report, out)
    compare_arrays(files, report, {"amax_s": (amax, amax * 2.0**-6), "amax_o": largest(out["o"])})
    if files.has("rng_dump"):
        compare_dump(files, report)


def compare_dump(files, report):
    scores, got = Scores(files), files.tensor("rng_dump")
    want, due = files.load("keep").astype(np.float64), np.zeros(got.shape, bool)
    for b, h, first, last in parts(files):
        x, _, _ = scores.of(b, h, first, last)
        due[b, h, first:last, : x.shape[1]] = np.isfinite(x)
    report.line(
        "rng_dump", got, (want != 0).astype(float), np.zeros(got.shape), due, rms_rule=False
    )


def run_backward(files, report):
    rows, _ = forward(files)
    inputs, lse = rows["o"], rows["lse"]
    print("given to the backward, beside what a forward gives:")
    u, eta, _ = TYPES[files.tensors["o"]["dtype"]]
    report.line(
        "o",
        files.tensor("o"),
        inputs.want,
        inputs.error + u * np.abs(inputs.want) + eta * files.scalar("descale_o"),
        live(lse, inputs),
        given=True,
    )
    report.line(
        "stats",
        files.tensor("stats"),
        lse.want,
        lse.error,
        live(lse, lse),
        rms_rule=False,
        given=True,
    )
    print("outputs:")
    out = backward(files)
    for name, answer in (("dq", out.dq), ("dk", out.dk), ("dv", out.dv)):
        of_packed = files.tensors[name[1]]["packed"]
        if of_packed:  # rows past a length are not compared
            lengths = files.len_q if of_packed == "q" else files.len_kv
            for b in range(files.batch):
                answer.due[b, :, int(lengths[b]) :] = False
        compare(files, report, name, answer)
    if out.dbias is not None:
        answer = out.dbias
        eta = TYPES[files.tensors["dbias"]["dtype"]][1] / (
            min(abs(files.case["scale"]), 1.0) or 1.0
        )  # an engine casts scale dX, and divides
        answer.due[:] = True
        answer.error = root(answer.error) + eta * out.casts_dbias
        compare(files, report, "dbias", answer)
    tops = {
        "amax_" + name: largest(answer)
        for name, answer in (("dq", out.dq), ("dk", out.dk), ("dv", out.dv))
    }
    tops["amax_dp"] = (out.amax_dp, out.amax_dp * 2.0**-4)
    tops["dsink"] = (out.dsink, FACTOR * root(out.dsink_error) + 2.0**-20 * np.abs(out.dsink))
    compare_arrays(files, report, tops)


def live(lse, answer):
    """Rows with at least one key; the others are not compared."""
    return np.broadcast_to(lse.due & np.isfinite(lse.want), answer.want.shape)


def main(words):
    if words[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return 0
    try:
        files = Files(words[0] if words else os.path.dirname(os.path.abspath(__file__)))
        report = Report()
        print(files.case["case"])
        if files.case["dropout"] > 0 and not os.path.exists(os.path.join(files.folder, "keep.npy")):
            raise CannotSay("what dropout kept: there is no keep.npy")
        files.check_offsets()
        (run_forward if files.case["pass"] == "fwd" else run_backward)(files, report)
    except CannotSay as error:
        print(f"check.py cannot say: {error}", file=sys.stderr)
        return 3
    except (
        OSError,
        EOFError,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        ArithmeticError,
        MemoryError,
    ) as error:
        said = " ".join(str(error).split()) or "the files do not fit into memory"
        print(f"check.py: {type(error).__name__}: {said}", file=sys.stderr)
        return 2
    print("FAIL" if report.failed else "PASS")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
