"""fattn.watch: the calls of a model become a file of cases. With PyTorch where it is installed."""

import sys
import tempfile
import types
import unittest
import unittest.mock

import fattn
from fattn.watch import _of_call, _of_engine
from test_why import Fake, program


class Quiet(types.SimpleNamespace):
    """As much of PyTorch as a call needs."""

    is_autocast_enabled = staticmethod(lambda device: False)
    get_autocast_dtype = staticmethod(lambda device: None)
    is_grad_enabled = staticmethod(lambda: True)
    dtype = type("dtype", (), {"__repr__": lambda _: "torch.bfloat16"})


def tensor(*shape, **more):
    made = Fake(*shape, **more)
    made.device = types.SimpleNamespace(type="cuda")
    return made


ENGINE = {  # what TransformerEngine says of a call
    **{"qkv_layout": "bshd_bshd_bshd", "batch_size": 4, "num_heads": 8, "num_gqa_groups": 2},
    **{
        "max_seqlen_q": 64,
        "max_seqlen_kv": 64,
        "head_dim_qk": 64,
        "head_dim_v": 64,
        "fp8_meta": {},
    },
}


@program
class Watched(unittest.TestCase):
    def calls(self, seen):
        return [line for line in seen.cases().splitlines() if not line.startswith("# ")]

    def test_calls_become_cases_with_their_number(self):
        q, k = tensor(2, 8, 128, 64), tensor(2, 2, 128, 64, grad=True)
        nested, mask, seen = tensor(1), tensor(2, 1, 1, 128, dtype="torch.bool"), fattn.Watch()
        nested.is_nested = True
        with unittest.mock.patch.dict(sys.modules, torch=Quiet()):
            for _ in range(3):
                seen._see(_of_call, q, k, k, is_causal=True, enable_gqa=True, scale=0.5)
            seen._see(_of_call, q, q, q, mask, 0.25)
            seen._see(_of_call, nested, q, q)
            seen._see(
                _of_engine,
                types.SimpleNamespace(**ENGINE, qkv_dtype=Quiet.dtype(), is_training=True),
            )
        tail = "h=8/2 s=128 d=64 layout=bhsd mask=causal scale=0.5"
        masked = "s=128 d=64 layout=bhsd stride=broadcast:bias.s bias=b1ss dropout=0.25"
        engine = "b=4 h=8/2 s=64 d=64"
        self.assertEqual(
            self.calls(seen),
            [
                f"calls 3 pass=fwd dtype=bf16 {tail} want=stats",
                f"calls 3 pass=bwd dtype=bf16 {tail}",
                f"calls 1 pass=fwd dtype=bf16 {masked}",
                f"calls 1 pass=fwd dtype=bf16 {engine} want=stats",
                f"calls 1 pass=bwd dtype=bf16 {engine}",
            ],
        )
        self.assertEqual(list(seen.unread.values()), [1])
        self.assertIn("\n# could not be read: nested tensors", seen.cases())

    def test_pytorch_itself(self):
        try:
            import torch
            from torch.nn.functional import scaled_dot_product_attention as bound
        except ImportError:
            self.skipTest("PyTorch is not installed")
        functional, engine = torch.nn.functional, types.ModuleType("transformer_engine.utils")
        original = functional.scaled_dot_product_attention
        about = {"__module__": engine.__name__}
        made = engine.AttentionParams = type("AttentionParams", (types.SimpleNamespace,), about)
        x, q = torch.randn(2, 16, 64), torch.randn(2, 16, 4, 32).transpose(1, 2)
        attention = torch.nn.MultiheadAttention(64, 4, batch_first=True)
        compiled = torch.compile(
            lambda q: functional.scaled_dot_product_attention(q, q, q, scale=2)
        )
        with (
            tempfile.NamedTemporaryFile() as file,
            unittest.mock.patch.dict(sys.modules, {engine.__name__: engine}),
        ):
            with fattn.watch(file.name) as seen:
                bound(q, q, q)
                attention(x, x, x, need_weights=False)
                compiled(q)
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    functional.scaled_dot_product_attention(q, q, q, is_causal=True)
                with self.assertRaises(TypeError):
                    functional.scaled_dot_product_attention(q, q, q, is_casual=True)
                engine.AttentionParams(**ENGINE)
            self.assertEqual(file.read().decode(), seen.cases())
        found = " | ".join(self.calls(seen))
        for said in (
            "calls 1 pass=fwd dtype=f32 h=4 s=16 d=32 | ",
            "calls 1 pass=bwd dtype=f32 h=4 s=16 d=16 layout=sbhd",
            "calls 1 pass=fwd dtype=f32 h=4 s=16 d=32 scale=2 | ",
            "calls 1 pass=fwd dtype=bf16 h=4 s=16 d=32 mask=causal",
            "calls 1 pass=fwd dtype=bf16 b=4 h=8/2 s=64 d=64",
        ):
            self.assertIn(said, found)
        self.assertEqual(len(seen._calls), 5)
        self.assertIs(functional.scaled_dot_product_attention, original)
        self.assertIs(engine.AttentionParams, made)


if __name__ == "__main__":
    unittest.main()
