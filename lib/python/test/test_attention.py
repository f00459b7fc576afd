"""The module on the cpu backend against NumPy in float64: forward, backward, masks, GQA, strides, score modifications."""

import contextlib
import io
import math
import pathlib
import re
import sys
import threading
import unittest

try:
    import numpy as np
except ImportError:
    print("[SKIP] test_attention: NumPy is not installed")
    sys.exit(0)
import numbers64
import fattn
from fattn.plan import MOST_PLANS

BATCH, HEADS, GROUPS, QUERIES, KEYS, CHANNELS = 2, 4, 2, 40, 56, 32
EPSILON = 2.0**-23  # of fp32
BOUND = (
    (CHANNELS + KEYS) * EPSILON * 4
)  # terms of the two sums, times the largest magnitude of what is added


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
    def test_plain(self):
        self.same(inputs(groups=HEADS))

    def test_gqa(self):
        self.same(inputs())

    def test_a_query_head_for_one_key_head(self):
        self.same(inputs(groups=1))

    def test_scale(self):
        self.same(inputs(), scale=0.3)

    def test_causal(self):
        self.same(inputs(), seen=numbers64.visible(QUERIES, KEYS, right=0), causal=True)

    def test_causal_from_the_bottom(self):
        self.same(
            inputs(),
            seen=numbers64.visible(QUERIES, KEYS, right=0, shift=KEYS - QUERIES),
            causal=True,
            align="br",
        )

    def test_window(self):
        self.same(inputs(), seen=numbers64.visible(QUERIES, KEYS, left=7, right=3), window=(7, 3))

    def test_window_that_is_open_on_one_side(self):
        self.same(
            inputs(),
            seen=numbers64.visible(QUERIES, KEYS, left=9, right=0),
            window=(9, None),
            causal=True,
        )
        self.same(inputs(), seen=numbers64.visible(QUERIES, KEYS, right=5), window=(None, 5))

    def test_bias_with_broadcast_extents(self):
        for shape in ((1, HEADS, QUERIES, KEYS), (BATCH, 1, 1, KEYS)):
            self.same(inputs(), bias=random(*shape, seed=3))

    def test_lengths(self):
        given, lengths = inputs(), (np.array([33, 40], np.int32), np.array([56, 11], np.int32))
        got = fattn.attention(**given, seq_len_q=lengths[0], seq_len_kv=lengths[1])
        seen = np.arange(KEYS)[None, None, None, :] < lengths[1][:, None, None, None]
        wanted, _ = numbers64.attention(**given, seen=seen)
        for entry, length in enumerate(lengths[0]):
            self.close(got[entry, :, :length], wanted[entry, :, :length])

    def test_f16(self):
        given = inputs(dtype=np.float16)
        wanted, _ = numbers64.attention(**given)
        got = fattn.attention(**given)
        self.assertEqual(got.dtype, np.float16)
        self.close(
            got.astype(np.float64), wanted, 4e-3
        )  # P and O are rounded to f16: 2^-11 of a magnitude of 4, twice

    def test_strides(self):
        """b,s,h,d in memory, a part of a larger array, and a batch that is broadcast: no copies, and O in the order of Q."""
        packed = random(BATCH, QUERIES, 3, HEADS, CHANNELS)
        q, k, v = (packed[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
        got = self.same(
            {"q": q, "k": k, "v": v}, seen=numbers64.visible(QUERIES, QUERIES, right=0), causal=True
        )
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

    def test_wider_queries_than_values(self):
        self.same(inputs(channels=64))

    def test_a_plan_is_shared(self):
        given = inputs()
        one, other = fattn.plan(**given, causal=True), fattn.plan(**given, causal=True)
        self.assertEqual(one.handle.value, other.handle.value)
        self.assertNotEqual(
            one.handle.value, fattn.plan(**given, causal=True, cache=False).handle.value
        )

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
        got = [None] * 4
        plan = fattn.plan(**given)

        def one(i):
            got[i] = plan.forward(**given)

        threads = [threading.Thread(target=one, args=(i,)) for i in range(len(got))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for out in got:
            self.close(out, wanted)


class ScoreMods(Numbers):
    def test_a_ready_expression(self):
        cap = fattn.ScoreMod(lambda score, b, h, q, k: 2 * fattn.score_mod.tanh(score / 2))
        self.same(inputs(), change=lambda scores: 2 * np.tanh(scores / 2), score_mod=cap)

    def test_a_plain_function(self):
        cap = lambda score, *_: 2 * fattn.score_mod.tanh(score / 2)  # noqa: E731
        self.same(inputs(), change=lambda scores: 2 * np.tanh(scores / 2), score_mod=cap)
        self.assertEqual(fattn.Problem(score_mod=cap).score_mod, fattn.ScoreMod(cap))

    def test_a_mask(self):
        causal = fattn.ScoreMod(
            lambda score, b, h, q, k: fattn.where((k <= q) & (q - k < 9), score, -float("inf"))
        )
        self.same(
            inputs(), seen=numbers64.visible(QUERIES, KEYS, left=9, right=0), score_mod=causal
        )

    def test_tensors(self):
        slopes = random(1, HEADS, 1, 1, seed=4)
        alibi = fattn.ScoreMod(
            lambda score, b, h, q, k, slope: score + slope * (k - q), tensors={"slope": slopes}
        )
        distance = np.arange(KEYS)[None, :] - np.arange(QUERIES)[:, None]
        got = fattn.attention(**inputs(), score_mod=alibi, mod_tensors={"slope": slopes})
        self.close(
            got, numbers64.attention(**inputs(), bias=slopes * distance)[0], BOUND * 16
        )  # scores of a magnitude of 64

    def test_every_operation(self):
        """Each operation of score_mod.h at one place, against Python's own."""
        one = {
            "neg": lambda x: -x,
            "abs": abs,
            "exp": math.exp,
            "log": math.log,
            "tanh": math.tanh,
            "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
            "erf": math.erf,
            "sin": math.sin,
            "cos": math.cos,
            "tan": math.tan,
            "sqrt": math.sqrt,
            "rsqrt": lambda x: x**-0.5,
            "reciprocal": lambda x: 1 / x,
            "relu": lambda x: max(x, 0),
            "softplus": lambda x: math.log1p(math.exp(x)),
            "ceil": math.ceil,
            "floor": math.floor,
            "not": lambda x: float(not x),
        }
        two = {
            "add": lambda x, y: x + y,
            "sub": lambda x, y: x - y,
            "mul": lambda x, y: x * y,
            "div": lambda x, y: x / y,
            "max": max,
            "min": min,
            "pow": pow,
            "mod": math.fmod,
            "eq": lambda x, y: x == y,
            "ne": lambda x, y: x != y,
            "lt": lambda x, y: x < y,
            "le": lambda x, y: x <= y,
            "gt": lambda x, y: x > y,
            "ge": lambda x, y: x >= y,
            "and": lambda x, y: bool(x and y),
            "or": lambda x, y: bool(x or y),
        }
        self.assertEqual({*one, *two, "select"}, set(fattn.score_mod.OPERATIONS))
        for name, wanted in {**one, **two}.items():
            operation = getattr(fattn.score_mod, name)
            mod = fattn.ScoreMod(
                lambda score, *_: operation(*[score, 0.5][: 1 if name in one else 2]) + 0 * score
            )
            self.assertAlmostEqual(
                mod.evaluate(1.25)[0],
                float(wanted(*[1.25, 0.5][: 1 if name in one else 2])),
                places=6,
                msg=name,
            )

    def test_operators(self):
        mods = [
            lambda s: -s + 1,
            lambda s: 1 - s,
            lambda s: 3 / s,
            lambda s: s**2,
            lambda s: 2**s,
            lambda s: abs(s) * 2,
            lambda s: s % 2,
        ]
        for function in mods:
            self.assertAlmostEqual(
                fattn.ScoreMod(lambda score, *_: function(score)).evaluate(1.5)[0],
                function(1.5),
                places=6,
            )
        self.assertEqual(
            fattn.ScoreMod(lambda s, *_: fattn.where(~(s > 1) | (s == 1), 2, s)).evaluate(1.5)[0],
            1.5,
        )
        self.assertEqual(
            fattn.ScoreMod(lambda s, b, h, q, k: s + 1000 * b + 100 * h + 10 * q + k).evaluate(
                0, (1, 2, 3, 4)
            )[0],
            1234,
        )

    def test_equal_recordings_are_equal(self):
        one, other = fattn.ScoreMod(lambda s, *_: s + 1), fattn.ScoreMod(lambda t, *_: 1 + t)
        self.assertEqual(one, other)
        self.assertEqual(hash(one), hash(other))
        self.assertNotEqual(one, fattn.ScoreMod(lambda s, *_: s + 2))

    def test_a_gradient_of_the_users(self):
        straight = fattn.ScoreMod(
            lambda s, *_: fattn.score_mod.floor(s), gradient=lambda s, g, *_: g
        )
        self.assertEqual(straight.evaluate(1.5), (1.0, 1.0))

    def test_what_cannot_be_recorded(self):
        with self.assertRaisesRegex(fattn.Error, "use fattn.where"):
            fattn.ScoreMod(lambda s, b, h, q, k: s if k <= q else 0)
        with self.assertRaises(ZeroDivisionError):
            fattn.ScoreMod(lambda s, *_: s + 1 / 0)
        with self.assertRaisesRegex(fattn.Error, "'x' is no number"):
            fattn.ScoreMod(lambda s, *_: s + "x")
        with self.assertRaises(AttributeError):
            fattn.score_mod.no_such_operation


class Backward(unittest.TestCase):
    def gradients(self, given, seen=None, change=None, bias=None, **fields):
        d_out = random(BATCH, HEADS, given["q"].shape[2], CHANNELS, seed=5)
        out, stats = fattn.attention(**given, stats=True, bias=bias, **fields)
        got = dict(
            zip(
                "qkv",
                fattn.attention_backward(
                    **given, out=out, d_out=d_out, stats=stats, bias=bias, **fields
                ),
            )
        )
        for name, gradient in got.items():
            self.assertEqual(gradient.shape, given[name].shape)
            direction = random(*given[name].shape, seed=6).astype(np.float64)
            wanted = numbers64.slope(
                given, name, direction, d_out, seen=seen, change=change, bias=bias
            )
            size = float(np.abs(gradient * direction).sum())  # of what is added up
            self.assertLess(
                abs(float((gradient * direction).sum()) - wanted), BOUND * size + 1e-6, name
            )
        return got

    def test_plain_and_gqa(self):
        for groups in (HEADS, GROUPS, 1):
            self.gradients(inputs(groups=groups))

    def test_masks(self):
        self.gradients(inputs(), seen=numbers64.visible(QUERIES, KEYS, right=0), causal=True)
        self.gradients(
            inputs(), seen=numbers64.visible(QUERIES, KEYS, left=7, right=3), window=(7, 3)
        )

    def test_bias(self):
        self.gradients(inputs(), bias=random(1, HEADS, QUERIES, KEYS, seed=3))

    def test_score_mod(self):
        self.gradients(
            inputs(),
            change=lambda scores: 2 * np.tanh(scores / 2),
            score_mod=fattn.ScoreMod(lambda s, *_: 2 * fattn.score_mod.tanh(s / 2)),
        )

    def test_strides_follow_the_inputs(self):
        packed = random(BATCH, QUERIES, 3, HEADS, CHANNELS)
        given = dict(zip("qkv", (packed[:, :, i].transpose(0, 2, 1, 3) for i in range(3))))
        got = self.gradients(given)
        self.assertGreater(got["q"].strides[2], got["q"].strides[1])

    def test_gradients_of_the_callers(self):
        given, d_out = inputs(), random(BATCH, HEADS, QUERIES, CHANNELS, seed=5)
        out, stats = fattn.attention(**given, stats=True)
        plan = fattn.plan(**given, pass_="bwd")
        dq = np.zeros((BATCH, HEADS, QUERIES, CHANNELS), np.float32)
        wanted = fattn.attention_backward(**given, out=out, d_out=d_out, stats=stats)[0]
        self.assertIs(plan.backward(**given, out=out, d_out=d_out, stats=stats, dq=dq)[0], dq)
        self.assertTrue(np.array_equal(dq, wanted))
        turned = np.zeros((BATCH, QUERIES, HEADS, CHANNELS), np.float32).transpose(0, 2, 1, 3)
        self.assertIs(
            fattn.attention_backward(**given, out=out, d_out=d_out, stats=stats, dq=turned)[0],
            turned,
        )
        self.assertTrue(np.array_equal(turned, wanted))


class Page(unittest.TestCase):
    def test_the_lines_of_the_page_run(self):
        page = pathlib.Path(__file__).resolve().parents[3] / "docs/install.md"
        lines = re.search(r"```python\n(.*?)help\(fattn\)", page.read_text(encoding="utf-8"), re.S)[
            1
        ]
        names, said = {}, io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(lines, names)  # pylint: disable=exec-used
        self.assertTrue(np.allclose(names["out"], 1, atol=BOUND))
        self.assertIn(said.getvalue().splitlines()[0], lines)


if __name__ == "__main__":
    unittest.main()
