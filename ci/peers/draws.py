"""What cudnn-frontend's test_mhas_v2 draws: the same random numbers in the same order, so that configuration N here is test N there.

Stated as data: 22 functions, each with how many configurations, the seed of its list, and the distributions in the order in which they are asked
for. A test's geometry comes from random.Random(abs(hash((number, count, data seed)))); hashes of whole numbers are the same in every 64-bit CPython
since 3.8. Read off cudnn-frontend 1.23's development branch of May 2026 (test/python/test_mhas_v2.py and sdpa/random_config.py).
"""

import math
import random

ALIGNS = ("tl", "br")


class Draw:
    """One generator; every method asks for as many numbers as upstream's does."""

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def weighted(self, weights):
        dice = self.rng.randint(0, sum(weights.values()) - 1)
        for value, weight in weights.items():
            if dice < weight:
                return value
            dice -= weight
        raise AssertionError("weights add up to nothing")

    def whole(self, least, most, often=None, powers=False):
        if often and self.rng.randint(0, 1):
            return often[self.rng.randint(0, len(often) - 1)]
        if powers:
            return 1 << self.rng.randint(math.ceil(math.log2(least)), math.floor(math.log2(most)))
        return self.rng.randint(least, most)

    def lengths(self, q, kv, weights):
        _, s_kv = self.rng.randint(*q), self.rng.randint(*kv)
        relation = self.weighted(weights)
        if relation == "one":
            return 1, s_kv
        return (s_kv, s_kv) if relation == "same" else (min(self.rng.randint(*q), s_kv), s_kv)

    def _eights(self, least, most):
        first = (least + 7) // 8 * 8
        return first + 8 * self.rng.randint(0, (most // 8 * 8 - first) // 8)

    def head_dims(self, qk, v, weights, often):
        if self.rng.randint(0, 1):
            return often[self.rng.randint(0, len(often) - 1)]
        d_qk, d_v = self._eights(*qk), self._eights(*v)
        return (d_qk, d_qk) if self.weighted(weights) == "same" else (max(d_qk, d_v), d_v)

    def heads(self, least, most, weights):
        kind = self.weighted(dict(zip(("mha", "gqa", "mqa"), weights)))
        h_q = self.rng.randint(least, most)
        if kind == "gqa":
            return h_q, h_q // self.rng.choice([i for i in range(1, h_q + 1) if h_q % i == 0])
        return h_q, h_q if kind == "mha" else 1

    def strides(self, shapes, bytes_of_element):
        """(order, gaps) of two tensors that share an order: outermost first; gaps in elements after each index of b, h, s; and wild: an extent of 1 got a
        huge stride."""
        order = [0, 1, 2]
        self.rng.shuffle(order)
        gaps = [[0, 0, 0, 0] for _ in shapes]
        if self.rng.randint(0, 1) == 0:
            rows = [[self.rng.randint(0, 8) for _ in range(3)] for _ in shapes]
            gaps = [row + [16 // bytes_of_element * self.rng.randint(0, 2)] for row in rows]
        found, wild = [], False
        for shape, gap in zip(shapes, gaps):
            stride, inner, after = 1, 3, [0, 0, 0]
            for dim in reversed(order):
                after[dim] = gap[inner] * stride
                stride, inner = (shape[inner] + gap[inner]) * stride, dim
                if shape[dim] == 1:
                    wild = max(stride, self.rng.choice([0, 3331333, 99990001])) > stride or wild
            found.append(after)
        return "".join("bhs"[i] for i in order) + "d", found, wild


HALF = dict(f16=1, bf16=2)
FP8 = dict(e4m3=2, e5m2=1)
MASKS = dict(causal=10, left=5, right=5, band=10, none=10)
UNMASKED = dict(none=10)
QUARTER = {1: 1, 0: 3}
THIRD = {1: 1, 0: 2}
EVEN = {1: 1, 0: 1}
BOTH = dict(tl=1, br=1)
TOP = dict(tl=1, br=0)
ONLY_TOP = dict(tl=1)
DIMS = [(64, 64), (128, 128), (192, 128)]
MORE_DIMS = DIMS + [(256, 256)]
TRAIN_DIMS = dict(qk=(1, 192), v=(1, 128), weights=dict(same=5, other=1), often=DIMS)
WIDE_DIMS = dict(qk=(1, 256), v=(1, 256), weights=dict(same=1, other=1), often=MORE_DIMS)
NARROW_DIMS = dict(qk=(1, 128), v=(1, 128), weights=dict(same=1, other=1), often=DIMS)
FP8_DIMS = dict(qk=(64, 192), v=(64, 128), weights=dict(same=1, other=0), often=DIMS)
FP8_SMALL_DIMS = dict(qk=(64, 128), v=(64, 128), weights=dict(same=1, other=0), often=DIMS[:2])
THOUSAND = dict(q=(1, 1024), kv=(1, 1024), weights=dict(one=0, same=5, other=10))
SHORT = dict(q=(64, 256), kv=(64, 512), weights=dict(one=0, same=5, other=5))
FEW = dict(least=1, most=8, often=[1, 4])
LOW = dict(least=1, most=4, often=[1, 2])
GROUPS = dict(least=1, most=8, weights=(1, 4, 1))


def without(dims, first):
    return dims | {"often": dims["often"][first:]}


# name: count, seed, then what is drawn. `flags` are drawn after the kind of lengths, in order; `fixed` is set afterwards.
TESTS = {
    "random_fwd": dict(
        count=128,
        seed=888,
        b=FEW,
        s=THOUSAND,
        d=WIDE_DIMS,
        h=GROUPS,
        dtype=HALF,
        mask=MASKS,
        align=BOTH,
        kind=dict(ragged=0, padded=1, full=1),
        flags=dict(max=QUARTER, sum_exp=QUARTER, sink=QUARTER),
    ),
    "random_fwd_unified": dict(
        count=128,
        seed=888,
        b=FEW,
        s=THOUSAND,
        d=WIDE_DIMS,
        h=GROUPS,
        dtype=HALF,
        mask=MASKS,
        align=BOTH,
        kind=dict(ragged=0, padded=1, full=1),
        flags=dict(
            bias=QUARTER,
            alibi=QUARTER,
            unfuse=EVEN,
            max=QUARTER,
            sum_exp=QUARTER,
            sink=QUARTER,
            dropout=QUARTER,
        ),
        fixed=dict(unified=1),
    ),
    "random_bwd": dict(
        count=256,
        seed=844,
        b=dict(least=8, most=16),
        s=THOUSAND,
        d=TRAIN_DIMS,
        h=GROUPS,
        dtype=HALF,
        mask=MASKS,
        align=BOTH,
        kind=dict(ragged=0, padded=4, full=1),
        deterministic={1: 3, 0: 1},
        flags=dict(sink=QUARTER),
        fixed=dict(bwd=1),
    ),
    "random_sq1": dict(
        count=128,
        seed=111,
        b=dict(least=1, most=32),
        s=dict(q=(1, 1), kv=(1, 1024), weights=dict(one=100, same=1, other=0)),
        d=without(NARROW_DIMS, 1),
        h=dict(least=1, most=32, weights=(1, 4, 1)),
        dtype=HALF,
        mask=UNMASKED,
        align=BOTH,
        kind=dict(ragged=0, padded=0, full=1),
        flags=dict(max=QUARTER, sum_exp=QUARTER),
    ),
    "random_sq1_unified": dict(
        count=32,
        seed=111,
        b=dict(least=1, most=32),
        s=dict(q=(1, 1), kv=(1, 1024), weights=dict(one=100, same=1, other=0)),
        d=NARROW_DIMS,
        h=dict(least=1, most=32, weights=(1, 4, 1)),
        dtype=HALF,
        mask=UNMASKED,
        align=TOP,
        kind=dict(ragged=0, padded=0, full=1),
        flags=dict(max=QUARTER, sum_exp=QUARTER),
        fixed=dict(unified=1),
    ),
    "random_lean_attn": dict(
        count=128,
        seed=222,
        b=dict(least=1, most=32),
        s=dict(q=(1, 1), kv=(513, 2048), weights=dict(one=100, same=0, other=0)),
        d=NARROW_DIMS,
        h=dict(least=1, most=32, weights=(1, 4, 1)),
        dtype=HALF,
        mask=UNMASKED,
        align=BOTH,
        kind=dict(ragged=0, padded=1, full=1),
        flags=dict(max=QUARTER, sum_exp=QUARTER),
    ),
    "random_lean_attn_unified": dict(
        count=128,
        seed=222,
        b=dict(least=1, most=32),
        s=dict(q=(1, 1), kv=(513, 2048), weights=dict(one=100, same=0, other=0)),
        d=without(NARROW_DIMS, 1),
        h=dict(least=1, most=32, weights=(1, 4, 1)),
        dtype=HALF,
        mask=UNMASKED,
        align=TOP,
        kind=dict(ragged=0, padded=1, full=1),
        flags=dict(max=QUARTER, sum_exp=QUARTER),
        fixed=dict(unified=1),
    ),
    "random_fwd_ragged": dict(
        count=128,
        seed=888,
        b=FEW,
        s=THOUSAND,
        d=WIDE_DIMS,
        h=GROUPS,
        dtype=HALF,
        mask=MASKS,
        align=BOTH,
        kind=dict(ragged=1, padded=0, full=0),
        flags=dict(max=QUARTER, sum_exp=QUARTER, sink=QUARTER),
    ),
    "random_fwd_ragged_unified": dict(
        count=128,
        seed=888,
        b=FEW,
        s=THOUSAND,
        d=without(WIDE_DIMS, 1),
        h=GROUPS,
        dtype=HALF,
        mask=UNMASKED,
        align=TOP,
        kind=dict(ragged=1, padded=0, full=0),
        flags=dict(max=QUARTER, sum_exp=QUARTER, sink=QUARTER, dropout=QUARTER),
        fixed=dict(unified=1),
    ),
    "random_bwd_ragged": dict(
        count=256,
        seed=888,
        b=dict(least=8, most=16),
        s=THOUSAND,
        d=TRAIN_DIMS,
        h=GROUPS,
        dtype=HALF,
        mask=MASKS,
        align=BOTH,
        kind=dict(ragged=1, padded=0, full=0),
        deterministic={1: 3, 0: 1},
        flags={},
        fixed=dict(bwd=1),
    ),
    "fwd_paged": dict(
        count=128,
        seed=888,
        b=FEW,
        s=dict(q=(1, 64), kv=(1, 512), weights=dict(one=0, same=5, other=10)),
        d=NARROW_DIMS,
        h=GROUPS,
        dtype=HALF,
        mask=MASKS,
        align=BOTH,
        kind=dict(ragged=0, padded=1, full=0),
        page=dict(least=1, most=1024, often=[1, 32, 128]),
        flags=dict(max=QUARTER, sum_exp=QUARTER, sink=QUARTER),
    ),
    "fwd_paged_unified": dict(
        count=128,
        seed=888,
        b=FEW,
        s=dict(q=(1, 64), kv=(1, 512), weights=dict(one=0, same=5, other=10)),
        d=without(NARROW_DIMS, 1),
        h=GROUPS,
        dtype=HALF,
        mask=UNMASKED,
        align=TOP,
        kind=dict(ragged=0, padded=1, full=0),
        page=dict(least=1, most=1024, often=[1, 32, 128]),
        flags={},
        fixed=dict(unified=1),
    ),
    "random_fwd_unified_block_mask": dict(
        count=32,
        seed=888,
        b=FEW,
        s=THOUSAND,
        d=without(NARROW_DIMS, 1),
        h=GROUPS,
        dtype=HALF,
        mask=UNMASKED,
        align=TOP,
        kind=dict(ragged=0, padded=0, full=1),
        flags={},
        fixed=dict(unified=1, blocks=1),
    ),
    "random_fwd_bias": dict(
        count=32,
        seed=888,
        b=FEW,
        s=THOUSAND,
        d=NARROW_DIMS,
        h=GROUPS,
        dtype=HALF,
        mask=dict(none=1),
        align=ONLY_TOP,
        kind=dict(ragged=0, padded=1, full=1),
        flags=dict(bias={1: 1}),
    ),
    "random_bwd_bias": dict(
        count=32,
        seed=888,
        b=dict(least=8, most=16),
        s=THOUSAND,
        d=TRAIN_DIMS,
        h=GROUPS,
        dtype=HALF,
        mask=UNMASKED,
        align=ONLY_TOP,
        kind=dict(ragged=0, padded=4, full=1),
        flags=dict(bias={1: 1}),
        fixed=dict(bwd=1),
    ),
    "fp8_fwd": dict(
        count=128,
        seed=999,
        b=dict(least=1, most=8, often=[4]),
        s=dict(q=(1, 2048), kv=(1, 2048), weights=dict(one=2, same=5, other=2)),
        d=FP8_DIMS | dict(weights=dict(same=2, other=1)),
        h=dict(least=1, most=16, weights=(1, 5, 2)),
        dtype=FP8,
        out=dict(e4m3=1, e5m2=1, f16=2),
        mask=MASKS,
        align=BOTH,
        kind=dict(ragged=0, padded=1, full=1),
        flags=dict(sink=THIRD),
        last=("unfuse", "rescale"),
    ),
    "fp8_bwd": dict(
        count=64,
        seed=998,
        b=LOW,
        s=dict(q=(64, 1024), kv=(64, 1024), weights=dict(one=0, same=5, other=5)),
        d=FP8_DIMS,
        h=GROUPS,
        dtype=dict(e4m3=1),
        out=dict(e4m3=1, f16=1),
        mask=MASKS,
        align=BOTH,
        kind=dict(ragged=0, padded=0, full=1),
        deterministic=EVEN,
        flags=dict(sink=THIRD),
        fixed=dict(bwd=1),
    ),
    "fp8_fwd_paged": dict(
        count=32,
        seed=997,
        b=LOW,
        s=SHORT,
        d=FP8_SMALL_DIMS,
        h=dict(least=1, most=4, weights=(1, 2, 0)),
        dtype=FP8,
        out=dict(e4m3=1, e5m2=1, f16=1),
        mask=UNMASKED,
        align=ONLY_TOP,
        kind=dict(ragged=0, padded=1, full=0),
        page=dict(least=16, most=128, often=[16, 32, 64]),
        flags={},
        last=("rescale",),
    ),
    "fp8_fwd_ragged": dict(
        count=32,
        seed=996,
        b=LOW,
        s=SHORT,
        d=FP8_SMALL_DIMS,
        h=GROUPS,
        dtype=FP8,
        out=dict(e4m3=1, e5m2=1, f16=2),
        mask=UNMASKED,
        align=ONLY_TOP,
        kind=dict(ragged=1, padded=0, full=0),
        flags={},
        last=("rescale",),
    ),
    "fp8_bwd_ragged": dict(
        count=32,
        seed=995,
        b=LOW,
        s=SHORT | dict(kv=(64, 256)),
        d=FP8_SMALL_DIMS,
        h=GROUPS,
        dtype=dict(e4m3=1),
        out=dict(e4m3=1, f16=1),
        mask=UNMASKED,
        align=ONLY_TOP,
        kind=dict(ragged=1, padded=0, full=0),
        deterministic=EVEN,
        flags={},
        fixed=dict(bwd=1),
    ),
    "mxfp8_fwd": dict(
        count=128,
        seed=1001,
        b=dict(least=1, most=4),
        s=dict(q=(128, 512), kv=(128, 512), weights=dict(one=0, same=1, other=1)),
        d=FP8_DIMS,
        h=GROUPS,
        dtype=dict(mxe4m3=3, mxe5m2=1),
        out=dict(f16=2, bf16=1),
        mask=MASKS,
        align=BOTH,
        kind=dict(ragged=0, padded=1, full=3),
        flags=dict(sink=THIRD),
        last=("unfuse", "rescale"),
    ),
    "mxfp8_bwd": dict(
        count=128,
        seed=1002,
        b=dict(least=1, most=4),
        s=dict(q=(256, 1024), kv=(256, 1024), weights=dict(one=0, same=1, other=1)),
        d=FP8_DIMS,
        h=GROUPS,
        dtype=dict(mxe4m3=2, mxe5m2=0),
        out=dict(f16=2, bf16=1),
        mask=MASKS,
        align=BOTH,
        kind=dict(ragged=0, padded=0, full=1),
        deterministic={1: 1, 0: 0},
        flags=dict(sink=THIRD),
        fixed=dict(bwd=1),
    ),
}


class NoConfiguration(ValueError):
    """Upstream's own generator stops here."""


def band(draw, kind, align, s_kv):
    """(left, right), None for no bound."""
    half = s_kv // 2
    if kind == "left":
        return draw.rng.randint(1, max(1, half)), 0
    if kind == "right":
        left = None if align == "br" else 1
        return left, draw.rng.randint(0, half)
    if kind == "band":
        if half < 1:
            raise NoConfiguration("its band is drawn from an empty range: one key")
        return draw.rng.randint(1, half), draw.rng.randint(1, half)
    return None, 0 if kind == "causal" else None


def configuration(test, number, data_seed):
    """Everything that test `number` of a function is about, as a dict. Raises NoConfiguration."""
    draw = Draw(abs(hash((number, test["count"], data_seed))))
    c = {"bwd": 0, "unified": 0, "blocks": 0} | test.get("fixed", {})
    c["s_q"], c["s_kv"] = draw.lengths(**test["s"])
    c["d_qk"], c["d_v"] = draw.head_dims(**test["d"])
    c["h_q"], c["h_kv"] = draw.heads(**test["h"])
    mask = draw.weighted(test["mask"])
    c["kind"] = draw.weighted(test["kind"])
    c["deterministic"] = draw.weighted(test["deterministic"]) if "deterministic" in test else 0
    c["b"] = draw.whole(**test["b"])
    c["dtype"] = draw.weighted(test["dtype"])
    c["out"] = draw.weighted(test["out"]) if "out" in test else c["dtype"]
    c["align"] = draw.weighted(test["align"])
    c["page"] = draw.whole(**test["page"], powers=True) if "page" in test else 0
    for flag, weights in test["flags"].items():
        c[flag] = draw.weighted(weights)
    c["len_q"] = c["len_kv"] = ()
    if c["kind"] != "full":
        c["len_q"] = [
            0 if draw.rng.random() < 0.1 else draw.rng.randint(1, c["s_q"]) for _ in range(c["b"])
        ]
        c["len_kv"] = [draw.rng.randint(1, c["s_kv"]) for _ in range(c["b"])]
    c["left"], c["right"] = band(draw, mask, c["align"], c["s_kv"])
    if c["kind"] != "ragged":
        size = 2 if c["dtype"] in HALF else 1
        c["q_strides"] = draw.strides(
            [(c["b"], c["h_q"], c["s_q"], d) for d in (c["d_qk"], c["d_v"])], size
        )
        c["k_strides"] = draw.strides(
            [(c["b"], c["h_kv"], c["s_kv"], d) for d in (c["d_qk"], c["d_v"])], size
        )
    for last in test.get("last", ()):
        c[last] = draw.rng.choice([1, 0]) if last == "unfuse" else draw.rng.choice([0, 2, 4])
    return c


def configurations(name):
    """[(number, configuration, or why there is none)] of one function."""
    test = TESTS[name]
    seeds = random.Random(test["seed"])
    found = []
    for number in range(1, test["count"] + 1):
        data_seed = seeds.randint(65536, 2147483647)
        try:
            found.append((number, configuration(test, number, data_seed)))
        except NoConfiguration as stop:
            found.append((number, str(stop)))
    return found
