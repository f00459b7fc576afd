"""The module on the cpu backend against NumPy in float64: forward, backward, masks, GQA, strides, score modifications."""

import concurrent.futures
import contextlib
import io
import math
import operator
import pathlib
import re
import sys
import unittest

try:
    import ml_dtypes
    import numpy as np
except ImportError:
    print("[SKIP] test_attention: NumPy or ml_dtypes is not installed")
    sys.exit(0)
import numbers64
import fattn
from fattn.plan import MOST_PLANS

BATCH, HEADS, GROUPS, QUERIES, KEYS, CHANNELS = 2, 4, 2, 40, 56, 32
EPSILON = 2.0**-23  # of fp32
# Terms of the two sums, times the largest magnitude of what is added.
BOUND = (CHANNELS + KEYS) * EPSILON * 4


def random(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def inputs(groups=GROUPS, queries=QUERIES, channels=CHANNELS, **more):
    return {
        "q": random(BATCH, HEADS, queries, channels, **more),
        "k": random(BATCH, groups, KEYS, channels, seed=1, **more),
        "v": random(BATCH, groups, KEYS, CHANNELS, seed=2, **more),
    }


class Numbers(unittest.TestCase):
    def close(self, got, wanted, bound=BOUND):
        self.assertEqual(got.shape, wanted.shape)
        self.assertLess(float(np.abs(got - wanted).max()), bound)

    def same(self, given, seen=None, scale=None, bias=None, change=None, **fields):
        wanted, stats = numbers64.attention(
            **given, seen=seen, scale=scale, bias=bias, change=change
        )
        if scale is not None:
            fields["attn_scale"] = scale
        got, got_stats = fattn.attention(**given, stats=True, bias=bias, **fields)
        self.close(got, wanted)
        finite = np.isfinite(stats)
        self.close(got_stats[finite], stats[finite])
        return got


class Forward(Numbers):
    def test_masks_scales_groups_and_biases(self):
        bands = (
            ({"right": 0}, {"causal": True}),
            ({"right": 0, "shift": KEYS - QUERIES}, {"causal": True, "align": "br"}),
            ({"left": 7, "right": 3}, {"window": (7, 3)}),
            ({"left": 9, "right": 0}, {"window": (9, None), "causal": True}),
            ({"right": 5}, {"window": (None, 5)}),
        )
        for seen, fields in bands:
            with self.subTest(seen):
                self.same(inputs(), seen=numbers64.visible(QUERIES, KEYS, **seen), **fields)
        for given in ({"groups": HEADS}, {}, {"groups": 1}, {"channels": 64}):
            with self.subTest(given):
                self.same(inputs(**given))
        self.same(inputs(), scale=0.3)
        for shape in ((1, HEADS, QUERIES, KEYS), (BATCH, 1, 1, KEYS)):
            self.same(inputs(), bias=random(*shape, seed=3))

    def test_lengths(self):
        given, lengths = inputs(), (np.array([33, 40], np.int32), np.array([56, 11], np.int32))
        got = fattn.attention(**given, seq_len_q=lengths[0], seq_len_kv=lengths[1])
        seen = np.arange(KEYS)[None, None, None, :] < lengths[1][:, None, None, None]
        wanted, _ = numbers64.attention(**given, seen=seen)
        for entry, length in enumerate(lengths[0]):
            self.close(got[entry, :, :length], wanted[entry, :, :length])

    def test_f16_and_bf16(self):
        # P and O are rounded: f16 to 2^-11 of a magnitude of 4, bf16 to 2^-8, twice.
        for dtype, bound in ((np.float16, 4e-3), (ml_dtypes.bfloat16, 32e-3)):
            given = inputs(dtype=dtype)
            wanted, _ = numbers64.attention(**given)
            got = fattn.attention(**given)
            self.assertEqual(got.dtype, dtype)
            self.close(got.astype(np.float64), wanted, bound)
            self.assertTrue(fattn.decide(**given))

    def test_strides(self):
        """b,s,h,d in memory, a part of a larger array, and a batch that is broadcast: no copies, and O in the order of Q."""
        packed = random(BATCH, QUERIES, 3, HEADS, CHANNELS)
        q, k, v = (packed[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
        seen = numbers64.visible(QUERIES, QUERIES, right=0)
        got = self.same({"q": q, "k": k, "v": v}, seen=seen, causal=True)
        self.assertGreater(got.strides[2], got.strides[1])
        given = inputs()
        given["k"] = np.broadcast_to(given["k"][:1], given["k"].shape)
        self.same(given)

    def test_an_output_of_the_callers(self):
        given = inputs()
        room = np.zeros((BATCH, QUERIES, HEADS, 2 * CHANNELS), np.float32)
        out = room[..., :CHANNELS].transpose(0, 2, 1, 3)
        self.assertIs(fattn.attention(**given, out=out), out)
        self.close(out, numbers64.attention(**given)[0])
        self.assertFalse(room[..., CHANNELS:].any())

    def test_a_plan_is_shared(self):
        given = inputs()
        one, same, other = (fattn.plan(**given, causal=True, cache=c) for c in (True, True, False))
        self.assertEqual(one.handle.value, same.handle.value)
        self.assertNotEqual(one.handle.value, other.handle.value)

    def test_a_context_remembers_plans(self):
        context, given = fattn.Context("cpu"), inputs()
        for causal in (False, True, False):
            fattn.attention(**given, causal=causal, context=context)
        self.assertEqual(len(context.plans), 2)
        with fattn.policy("cpu"):
            fattn.attention(**given, window=(4, 4), context=context)
        self.assertEqual(len(context.plans), 2)
        for places in range(MOST_PLANS):
            fattn.attention(**given, window=(places + 1, 0), context=context)
        self.assertEqual(len(context.plans), MOST_PLANS)

    def test_threads(self):
        given, wanted = inputs(), numbers64.attention(**inputs())[0]
        plan = fattn.plan(**given)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for out in pool.map(lambda _: plan.forward(**given), range(4)):
                self.close(out, wanted)


def capped(score, *_):
    return 2 * fattn.score_mod.tanh(score / 2)


def capped64(scores):
    return 2 * np.tanh(scores / 2)


class ScoreMods(Numbers):
    def test_a_ready_expression_and_a_plain_function(self):
        ready = fattn.ScoreMod(capped)
        for mod in (ready, capped):
            self.same(inputs(), change=capped64, score_mod=mod)
        self.assertEqual(fattn.Problem(score_mod=capped).score_mod, ready)

    def test_a_mask(self):
        def band(score, b, h, q, k):
            return fattn.where((k <= q) & (q - k < 9), score, -float("inf"))

        seen = numbers64.visible(QUERIES, KEYS, left=9, right=0)
        self.same(inputs(), seen=seen, score_mod=fattn.ScoreMod(band))

    def test_tensors(self):
        def alibi(score, b, h, q, k, slope):
            return score + slope * (k - q)

        slopes = {"slope": random(1, HEADS, 1, 1, seed=4)}
        mod = fattn.ScoreMod(alibi, tensors=slopes)
        distance = np.arange(KEYS)[None, :] - np.arange(QUERIES)[:, None]
        got = fattn.attention(**inputs(), score_mod=mod, mod_tensors=slopes)
        wanted, _ = numbers64.attention(**inputs(), bias=slopes["slope"] * distance)
        self.close(got, wanted, BOUND * 16)  # scores of a magnitude of 64

    def test_every_operation(self):
        """Each operation of score_mod.h at one place, against Python's own."""
        names = "exp log tanh erf sin cos tan sqrt ceil floor".split()
        one = {name: getattr(math, name) for name in names}
        one |= {"neg": lambda x: -x, "abs": abs, "not": lambda x: float(not x)}
        one |= {"rsqrt": lambda x: x**-0.5, "reciprocal": lambda x: 1 / x}
        one |= {"sigmoid": lambda x: 1 / (1 + math.exp(-x)), "relu": lambda x: max(x, 0)}
        one["softplus"] = lambda x: math.log1p(math.exp(x))
        two = {name: getattr(operator, name) for name in "add sub mul eq ne lt le gt ge".split()}
        two |= {"div": operator.truediv, "max": max, "min": min, "pow": pow, "mod": math.fmod}
        two |= {"and": lambda x, y: bool(x and y), "or": lambda x, y: bool(x or y)}
        self.assertEqual({*one, *two, "select"}, set(fattn.score_mod.OPERATIONS))
        for name, wanted in {**one, **two}.items():
            operation = getattr(fattn.score_mod, name)
            rest = [] if name in one else [0.5]
            mod = fattn.ScoreMod(lambda score, *_: operation(score, *rest) + 0 * score)
            found, due = mod.evaluate(1.25)[0], float(wanted(1.25, *rest))
            self.assertAlmostEqual(found, due, places=6, msg=name)

    def test_operators(self):
        def value(function, at=1.5, place=(0, 0, 0, 0)):
            return fattn.ScoreMod(function).evaluate(at, place)[0]

        for name, function in {
            "neg": lambda s, *_: -s + 1,
            "rsub": lambda s, *_: 1 - s,
            "rdiv": lambda s, *_: 3 / s,
            "pow": lambda s, *_: s**2,
            "rpow": lambda s, *_: 2**s,
            "abs": lambda s, *_: abs(s) * 2,
            "mod": lambda s, *_: s % 2,
        }.items():
            self.assertAlmostEqual(value(function), function(1.5), places=6, msg=name)
        self.assertEqual(value(lambda s, *_: fattn.where(~(s > 1) | (s == 1), 2, s)), 1.5)
        places = value(lambda s, b, h, q, k: s + 1000 * b + 100 * h + 10 * q + k, 0, (1, 2, 3, 4))
        self.assertEqual(places, 1234)

    def test_equal_recordings_are_equal(self):
        one, other = fattn.ScoreMod(lambda s, *_: s + 1), fattn.ScoreMod(lambda t, *_: 1 + t)
        self.assertEqual(one, other)
        self.assertEqual(hash(one), hash(other))
        self.assertNotEqual(one, fattn.ScoreMod(lambda s, *_: s + 2))

    def test_a_gradient_of_the_users(self):
        floor = fattn.score_mod.floor
        straight = fattn.ScoreMod(lambda s, *_: floor(s), gradient=lambda s, g, *_: g)
        self.assertEqual(straight.evaluate(1.5), (1.0, 1.0))

    def test_what_cannot_be_recorded(self):
        for said, function in (
            ("use fattn.where", lambda s, b, h, q, k: s if k <= q else 0),
            ("'x' is no number", lambda s, *_: s + "x"),
        ):
            with self.assertRaisesRegex(fattn.Error, said):
                fattn.ScoreMod(function)
        with self.assertRaises(ZeroDivisionError):
            fattn.ScoreMod(lambda s, *_: s + 1 / 0)
        self.assertFalse(hasattr(fattn.score_mod, "no_such_operation"))


class Backward(unittest.TestCase):
    def gradients(self, given, seen=None, change=None, bias=None, **fields):
        d_out = random(BATCH, HEADS, given["q"].shape[2], CHANNELS, seed=5)
        out, stats = fattn.attention(**given, stats=True, bias=bias, **fields)
        more = {"out": out, "d_out": d_out, "stats": stats, "bias": bias}
        got = dict(zip("qkv", fattn.attention_backward(**given, **more, **fields)))
        how = {"seen": seen, "change": change, "bias": bias}
        for name, gradient in got.items():
            self.assertEqual(gradient.shape, given[name].shape)
            direction = random(*given[name].shape, seed=6).astype(np.float64)
            wanted = numbers64.slope(given, name, direction, d_out, **how)
            size = float(np.abs(gradient * direction).sum())  # of what is added up
            off = abs(float((gradient * direction).sum()) - wanted)
            self.assertLess(off, BOUND * size + 1e-6, name)
        return got

    def test_groups_masks_biases_and_score_mods(self):
        for groups in (HEADS, GROUPS, 1):
            self.gradients(inputs(groups=groups))
        causal = numbers64.visible(QUERIES, KEYS, right=0)
        self.gradients(inputs(), seen=causal, causal=True)
        band = numbers64.visible(QUERIES, KEYS, left=7, right=3)
        self.gradients(inputs(), seen=band, window=(7, 3))
        self.gradients(inputs(), bias=random(1, HEADS, QUERIES, KEYS, seed=3))
        self.gradients(inputs(), change=capped64, score_mod=fattn.ScoreMod(capped))

    def test_strides_follow_the_inputs(self):
        packed = random(BATCH, QUERIES, 3, HEADS, CHANNELS)
        given = dict(zip("qkv", (packed[:, :, i].transpose(0, 2, 1, 3) for i in range(3))))
        got = self.gradients(given)
        self.assertGreater(got["q"].strides[2], got["q"].strides[1])

    def test_gradients_of_the_callers(self):
        given, d_out = inputs(), random(BATCH, HEADS, QUERIES, CHANNELS, seed=5)
        out, stats = fattn.attention(**given, stats=True)
        more = {**given, "out": out, "d_out": d_out, "stats": stats}
        wanted = fattn.attention_backward(**more)[0]
        dq = np.zeros((BATCH, HEADS, QUERIES, CHANNELS), np.float32)
        turned = np.zeros((BATCH, QUERIES, HEADS, CHANNELS), np.float32).transpose(0, 2, 1, 3)
        backward = fattn.plan(**given, pass_="bwd").backward
        for call, room in ((backward, dq), (fattn.attention_backward, turned)):
            self.assertIs(call(**more, dq=room)[0], room)
            self.assertTrue(np.array_equal(room, wanted))


class Page(unittest.TestCase):
    def test_the_lines_of_the_page_run(self):
        page = pathlib.Path(__file__).resolve().parents[3] / "docs/install.md"
        text = page.read_text(encoding="utf-8")
        lines = re.search(r"```python\n(.*?)help\(fattn\)", text, re.S)[1]
        names, said = {}, io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(lines, names)  # pylint: disable=exec-used
        self.assertTrue(np.allclose(names["out"], 1, atol=BOUND))
        self.assertIn(said.getvalue().splitlines()[0], lines)


if __name__ == "__main__":
    unittest.main()
