"""fattn.why and the words of PyTorch: what a call of scaled_dot_product_attention becomes, and the whole answer to it. With PyTorch and JAX where they are installed."""

import contextlib
import io
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "ci/test"))
import needs
import fattn
from fattn import case, sdpa

SHAPE = (2, 16, 1000, 64)


class Fake:
    """A tensor of PyTorch on the meta device: a shape, a type and strides, no memory."""

    is_nested = False

    def __init__(self, *shape, dtype="torch.bfloat16", stride=None, grad=False):
        self.shape, self.dtype, self.requires_grad = shape, dtype, grad
        self.steps = stride or fattn.arrays.dense(shape)

    def stride(self):
        return self.steps


class Nested(Fake):
    is_nested = True

    def unbind(self):
        heads, channels = self.shape[1], self.shape[3]
        return [Fake(heads, tokens, channels) for tokens in (100, 300)]


def program(test):
    """These tests need the program facts."""
    return unittest.skipUnless(needs.FACTS.exists(), "the program facts is not built")(test)


class Words(unittest.TestCase):
    def problem(self, *given, **more):
        return fattn.decide(*given, **more).problem

    def test_words_of_pytorch_are_fields(self):
        q = Fake(*SHAPE)
        more = {"is_causal": True, "dropout_p": 0.5, "scale": 0.25, "enable_gqa": True}
        made = self.problem(q, q, q, attn_mask=None, **more)
        found = made.has_right, made.dropout, made.attn_scale, made.has_bias
        self.assertEqual(found, (1, 0.5, 0.25, 0))

    def test_a_question_takes_what_attention_takes(self):
        q, bias = Fake(*SHAPE), Fake(1, 1, 1000, 1000)
        more = {"bias": bias, "stats": True, "out": q, "stream": None, "tensors": {}}
        made = self.problem(q, q, q, **more)
        self.assertEqual((made.has_bias, made.training, made.o_dtype), (1, 1, "bf16"))
        self.assertEqual(made.bias_dim, (1, 1, 1000, 1000))

    def test_words_that_are_not_understood_name_the_right_one(self):
        for word, right in {"attn_mask": "bias", "is_causal": "causal", "scale": "attn_sc"}.items():
            with self.assertRaisesRegex(fattn.Error, f"^{word}: .* did you mean {right}"):
                fattn.Problem(**{word: 1})

    def test_a_mask_is_expanded_over_the_batch_in_the_type_of_the_query(self):
        q, k = Fake(*SHAPE), Fake(2, 16, 900, 64)
        for shape, heads, steps in (
            ((1000, 900), 1, (0, 0, 900, 1)),
            ((1, 1000, 900), 1, (0, 0, 900, 1)),
            ((2, 1, 1, 900), 1, (900, 900, 0, 1)),
            ((1, 16, 1000, 900), 16, (0, 900000, 900, 1)),
        ):
            made = self.problem(q, k, k, attn_mask=Fake(*shape, dtype="torch.bool"))
            self.assertEqual(made.bias_dtype, "bf16")
            self.assertEqual(made.bias_dim, (2, heads, 1000, 900))
            steps = tuple(s for s, extent in zip(steps, made.bias_dim) if extent > 1)
            found = tuple(s for s, n in zip(made.bias_strides, made.bias_dim) if n > 1)
            self.assertEqual(found, steps)
        for shape in ((900,), (1000, 800), (3, 1, 1000, 900), (1, 4, 1000, 900)):
            with self.assertRaisesRegex(fattn.Error, "^attn_mask: shape"):
                self.problem(q, k, k, attn_mask=Fake(*shape, dtype="torch.bool"))

    def test_a_nested_tensor_is_packed(self):
        q = Nested(2, 8, 300, 64)
        made = self.problem(q, q, q)
        self.assertEqual((made.ragged_bits, made.padding, made.seq_q), (32, 1, 300))
        self.assertEqual(made.q_strides[1:], (64, 512, 1))

    def test_notes(self):
        def notes(mask=None, causal=False, gqa=False, q=Fake(*SHAPE), k=Fake(2, 4, 900, 64)):
            given = {"attn_mask": mask, "is_causal": causal}
            return " ".join(sdpa.notes({"q": q, "k": k, "v": k}, given, gqa))

        self.assertIn("enable_gqa=True", notes())
        self.assertNotIn("enable_gqa", notes(gqa=True))
        self.assertIn("-65504", notes(mask=Fake(1, dtype="torch.bool")))
        with self.assertRaisesRegex(fattn.Error, "PyTorch takes one of them"):
            notes(mask=Fake(1), causal=True)
        q = fattn.arrays.Shape("q", Fake(*SHAPE, dtype="torch.float32"))
        self.assertIn("f16 and bf16 alone", notes(q=q))


@program
class Cases(unittest.TestCase):
    def test_a_decision_has_the_line_for_the_program(self):
        q = Fake(*SHAPE)
        for more, tokens in (
            ({}, ""),
            ({"is_causal": True}, " mask=causal"),
            ({"window": (7, 0)}, " window=7:0"),
            ({"attn_mask": Fake(1000, 1000)}, " stride=broadcast:bias.b bias=b1ss"),
            ({"stats": True}, " want=stats"),
            ({"scale": 0.3}, " scale=0.3"),
            ({"sink": 1}, " softmax=sink"),
            ({"dropout_p": 0.25}, " dropout=0.25"),
        ):
            name = fattn.decide(q, q, q, **more).case
            self.assertEqual(name, f"pass=fwd dtype=bf16 h=16 s=1000 d=64 layout=bhsd{tokens}")
        sizes = dict(batch=2, heads_q=8, seq_q=512, seq_kv=512, dim_qk=128, dtype="f16")
        for more, tokens in (
            ({"pass_": "bwd"}, ""),
            ({"ragged_bits": 32, "padding": 1}, " layout=thd padding=random"),
            ({"heads_k": 2, "impl": "unified"}, " impl=unified"),
            ({"outputs": ("max", "sum_exp")}, " want=max+sum_exp"),
        ):
            made = fattn.Problem(**{**sizes, **more})
            word = more.get("pass_", "fwd")
            heads = " h=8/2" if "heads_k" in more else ""
            self.assertEqual(case.names(made), [f"pass={word} dtype=f16{heads}{tokens}"])
        with self.assertRaisesRegex(fattn.Error, "^rope: decision.case does not say it"):
            case.names(fattn.Problem(**sizes, rope=1))

    def test_expanded_heads_are_a_stride(self):
        k = Fake(2, 16, 1000, 64, stride=(64000, 0, 64, 1))
        q = Fake(*SHAPE)
        self.assertIn(" stride=broadcast:k.h+v.h", fattn.decide(q, k, k).case)


@program
class Answers(unittest.TestCase):
    def why(self, *given, **more):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            answer = fattn.why(*given, cudnn=needs.need(needs.NEW).version, **more)
        self.assertEqual(str(answer) + "\n", said.getvalue())
        return answer

    def test_a_refused_call_has_its_rule_the_nearest_and_the_next_command(self):
        q, k = Fake(2, 16, 100, 100, grad=True), Fake(2, 4, 90, 100)
        answer = self.why(q, k, k, is_causal=True, device="h100")
        self.assertFalse(answer.supported)
        said = str(answer)
        for part in (
            "PyTorch does not give this call to cuDNN (pt/multiple-of-8).\n",
            "forward: pass=fwd dtype=bf16 h=16/4 s=100/90 d=100 layout=bhsd mask=causal want=stats",
            "backward: pass=bwd dtype=bf16 h=16/4 s=100/90 d=100 layout=bhsd mask=causal\n",
            "unsupported: d=100 is refused here; accepted: d=104 d=112",
            "cuDNN: Embedding dim per head for q and k is not a multiple of 8",
            "enable_gqa=True",
            "facts bisect 'pass=fwd ",
        ):
            self.assertIn(part, said)

    def test_an_accepted_call_names_what_is_known_and_who_tries_first(self):
        q = Fake(1, 8, 128, 64, dtype="torch.float16")
        answer = self.why(q, q, q, device="sm120-spec")
        self.assertTrue(answer.supported)
        self.assertIn("pt/preference", str(answer))
        self.assertNotIn("pt/preference", str(self.why(q, q, q)))
        self.assertIsNone(answer.backward)
        self.assertEqual(self.why(q, q, q, backward=True).backward["verdict"], "supported")

    def test_a_packed_call_needs_a_switch_of_pytorch(self):
        q = Nested(2, 8, 300, 64)
        rules = [one["rule"] for one in self.why(q, q, q).callers]
        self.assertIn("pt/nested-switch", rules)

    def test_environments(self):
        q = Fake(*SHAPE)
        with self.assertRaisesRegex(fattn.Error, "h999") as seen:
            self.why(q, q, q, device="h999")
        self.assertEqual(seen.exception.status, "environment")

    def test_pytorch_itself(self):
        try:
            import torch
        except ImportError:
            self.skipTest("PyTorch is not installed")
        q = torch.empty(2, 100, 16, 64, dtype=torch.bfloat16, device="meta", requires_grad=True)
        q = q.transpose(1, 2)
        mask = torch.ones(100, 100, dtype=torch.bool)
        answer = self.why(q, q, q, mask)
        end = "s=100 d=64 stride=broadcast:bias.b bias=b1ss"
        self.assertEqual(answer.case, f"pass=fwd dtype=bf16 h=16 {end} want=stats")
        self.assertEqual(answer.backward_case, f"pass=bwd dtype=bf16 h=16 {end}")
        parts = [torch.empty(n, 8, 64, dtype=torch.bfloat16) for n in (100, 300)]
        q = torch.nested.nested_tensor(parts, layout=torch.jagged).transpose(1, 2)
        self.assertIn("s=300 d=64 layout=thd padding=random", self.why(q, q, q).case)

    def test_jax_itself(self):
        try:
            import jax
        except ImportError:
            self.skipTest("JAX is not installed")
        q = jax.ShapeDtypeStruct((2, 100, 16, 64), jax.numpy.bfloat16)
        self.assertIn(" h=100 s=16 d=64 layout=bhsd", self.why(q, q, q).case)


if __name__ == "__main__":
    unittest.main()
