"""Questions, refusals and bad input: one clear line each. What DLPack says of an array is read without a copy, and calls go to its library's stream."""

import ctypes
import inspect
import os
import pathlib
import subprocess
import sys
import types
import unittest

try:
    import numpy as np
except ImportError:
    print("[SKIP] test_answers: NumPy is not installed")
    sys.exit(0)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "ci/test"))
import needs
import fattn
from fattn import arrays

SHAPE = (1, 2, 16, 32)


def ones(*shape, dtype=np.float32):
    return np.ones(shape or SHAPE, dtype)


class Refused(unittest.TestCase):
    def refused(self, pattern, call, *arguments, status="bad_problem", **more):
        with self.assertRaisesRegex(fattn.Error, pattern) as seen:
            call(*arguments, **more)
        self.assertEqual(seen.exception.status, status)
        self.assertNotIn("\n", str(seen.exception))

    def test_problems(self):
        for pattern, fields in {
            r"^dtype: 'f17': one of bf16, f16": dict(dtype="f17"),
            r"^sequence: not a field of a problem; lib/include/fattn/problem\.h lists": dict(
                sequence=1
            ),
            r"^casual: .* did you mean causal\? lib/include": dict(casual=True),
            r"^d: .* did you mean dim_qk or dim_v\? .{,60}$": dict(d=5),
            r"^batch: 'two'": dict(batch="two"),
            r"^q_strides: \(1, 2, 3, 4, 5\)": dict(q_strides=(1, 2, 3, 4, 5)),
            r"^causal: the window": dict(causal=True, window=(3, 1)),
            r"^outputs: 'lse': one of": dict(outputs=("stats", "lse")),
            r"^dtype: one word": dict(dtype=("f16", "bf16")),
        }.items():
            self.refused(pattern, fattn.Problem, **fields)
        self.refused("^policy: 'cuda': one of cudnn, math, cpu", fattn.policy("cuda").__enter__)
        self.refused("dim_qk", fattn.Problem(batch=1, heads_q=1, seq_q=8, seq_kv=8).resolve)

    def test_wrong_types(self):
        q = ones()
        for pattern, more in {
            r"^window: 5: a pair \(left, right\) is needed": dict(window=5),
            r"^context: 3: a fattn\.Context is needed": dict(context=3),
            "^score_mod: 2: a fattn.ScoreMod or a function": dict(score_mod=2),
        }.items():
            for call in (fattn.attention, fattn.decide, fattn.plan):
                self.assertRaisesRegex(TypeError, pattern, call, q, q, q, **more)
        one = np.ones(1, np.int64)
        self.refused(
            "^dropout: seed and offset are needed, arrays of one i64 each: tensors=",
            fattn.attention,
            q,
            q,
            q,
            dropout=0.5,
        )
        self.refused(
            "^dropout: seed and offset",
            fattn.attention,
            q,
            q,
            q,
            dropout=0.5,
            tensors={"seed": one},
        )
        self.assertEqual(
            fattn.attention(q, q, q, dropout=0.5, tensors={"seed": one, "offset": one}).shape, SHAPE
        )

    def test_every_public_name_is_described(self):
        for owner in (fattn.Context, fattn.Plan, fattn.Problem, fattn.ScoreMod, fattn.Decision):
            for name, value in vars(owner).items():
                if name[0] != "_":
                    self.assertTrue(inspect.getdoc(value), f"{owner.__name__}.{name}")

    def test_the_module_has_the_version_of_the_library(self):
        library = pathlib.Path(arrays.__file__).parents[3] / "CMakeLists.txt"
        self.assertIn(f"project(facts VERSION {fattn.__version__} ", library.read_text())

    def test_arrays(self):
        q = ones()
        for pattern, given in {
            r"^k: a list": (q, [1.0], q),
            r"^q: shape \(16, 32\); four extents": (q[0, 0], q, q),
            "^q, k, v are of f32, f16, f32": (q, ones(dtype=np.float16), q),
            "^v: shape .* extent 2 differs": (q, q, q[:, :, :3]),
            "^k: .* extent 3 differs": (q, q[..., :8], q),
            "^q, k, v are of f64": (ones(dtype=np.float64),) * 3,
        }.items():
            self.refused(pattern, fattn.attention, *given)

    def test_calls(self):
        q = ones()
        plan = fattn.plan(q, q, q)
        frozen = ones()
        frozen.flags.writeable = False
        turned = np.ones((1, 16, 2, 32), np.float32).transpose(0, 2, 1, 3)
        for pattern, more in {
            r"^out: shape \(1, 2, 16, 8\); the plan is for \(1, 2, 16, 32\)": dict(out=q[..., :8]),
            "^out: the array is read-only": dict(out=frozen),
            "^out: f16; the plan is for f32": dict(out=ones(dtype=np.float16)),
            "^out: strides": dict(out=turned),
            "^stats: the plan does not write it": dict(stats=True),
            "^biass: not a tensor of a call": dict(biass=q),
            "^mod_tensors: 'x': the score modification has no tensors": dict(mod_tensors={"x": q}),
            "^workspace: f32": dict(workspace=q),
            "^o shares memory with q": dict(out=q),
        }.items():
            self.refused(pattern, plan.forward, q, q, q, **more)
        self.refused(
            r"^k: strides .*; the plan is for .*\. fattn\.plan\(q, k, v\) takes those of arrays",
            plan.forward,
            q,
            turned,
            q,
        )
        self.refused("^the plan is of pass fwd", plan.backward, q, q, q, q, q, q)
        slope = ones(1, 2, 1, 1)
        mod = fattn.ScoreMod(lambda s, b, h, q, k, slope: s * slope, tensors={"slope": slope})
        plan = fattn.plan(q, q, q, score_mod=mod)
        self.refused(
            r"^mod_tensors\['slope'\]: f32 \(1, 1, 1, 1\); recorded was",
            plan.forward,
            q,
            q,
            q,
            mod_tensors={"slope": ones(1, 1, 1, 1)},
        )
        self.refused("^mod_tensors: 'slope' is missing", plan.forward, q, q, q, mod_tensors={})
        lengths = np.ones(1, np.int64)
        self.refused(
            "^seq_len_q: i64; the plan is for i32",
            fattn.attention,
            q,
            q,
            q,
            seq_len_q=lengths,
            seq_len_kv=lengths,
        )

    def test_environments(self):
        self.refused("h999", fattn.Context, "h999", status="environment")
        self.refused(
            "no_such", fattn.Context, "h100-sxm", cudnn_dir="/no_such", status="environment"
        )
        self.refused(".", fattn.Context, "h100-sxm", status="environment")  # no cuDNN is mapped
        done = subprocess.run(
            [sys.executable, "-c", "import fattn; fattn.Context()"],
            capture_output=True,
            text=True,
            env={**os.environ, "FATTN_LIBRARY": "/no/libfattn.so"},
            check=False,
        )
        self.assertIn("set FATTN_LIBRARY to the path of libfattn.so", done.stderr.splitlines()[-1])


class Problems(unittest.TestCase):
    def test_a_problem_prints_as_it_is_made(self):
        made = fattn.Problem(
            pass_="bwd",
            dtype="bf16",
            batch=2,
            heads_q=4,
            seq_q=64,
            seq_kv=64,
            dim_qk=64,
            window=(7, 0),
            outputs=("stats", "max"),
            attn_scale=0.5,
            o_strides=(1, 2, 3, 4),
        )
        self.assertEqual(eval(repr(made)), made)
        self.assertEqual(made.replace(), made)
        self.assertEqual(made.replace(batch=3).batch, 3)
        self.assertEqual(
            (made.pass_, made.dtype, made.window_left, made.has_right), ("bwd", "bf16", 7, 1)
        )
        self.assertEqual(fattn.Problem(window=(7, 0)), fattn.Problem(window=(7, None), causal=True))
        self.assertEqual(eval(repr(fattn.Problem(attn_scale=0.0))).has_attn_scale, 1)

    def test_resolved(self):
        self.assertEqual(
            fattn.Problem(batch=1, heads_q=2, seq_q=8, seq_kv=8, dim_qk=16).resolve().q_strides,
            (256, 16, 32, 1),
        )


class Decisions(unittest.TestCase):
    def test_yes(self):
        q = ones()
        decision = fattn.decide(q, q, q, causal=True)
        self.assertTrue(decision)
        self.assertEqual((decision.problem.has_right, decision.problem.seq_q), (1, 16))
        self.assertEqual((decision.backend, decision.reason), ("cpu", "ok"))
        self.assertEqual(repr(decision), "supported: cpu on <fattn.Context cpu>\n  engine 0")

    def test_no(self):
        decision = fattn.decide(
            fattn.Problem(dtype="f32", batch=1, heads_q=3, heads_k=2, seq_q=8, seq_kv=8, dim_qk=16)
        )
        self.assertFalse(decision)
        self.assertEqual(decision.reason, "bad_problem")
        self.assertIn("heads_q", repr(decision))
        self.assertNotIn("explain()", repr(decision))  # nothing is near what is no problem
        with self.assertRaisesRegex(fattn.Error, "^heads_q: 3 is not a multiple"):
            decision.explain()

    def test_a_neighbour_is_one_line(self):
        near = fattn.decide(
            fattn.Problem(dtype="f32", batch=1, heads_q=1, seq_q=8, seq_kv=8, dim_qk=16)
        ).explain(budget=8)
        self.assertEqual(repr(near[0]), f"<fattn.Neighbour: {near[0].change}>")

    def test_a_described_gpu_says_why_not(self):
        cudnn = needs.need(needs.NEW).dir
        program = f"""if True:
            import fattn
            context = fattn.Context("h100-sxm", {cudnn!r})
            ask = dict(dtype="bf16", batch=2, heads_q=4, seq_q=256, seq_kv=256, dim_qk=128)
            print(fattn.decide(fattn.Problem(**ask), context=context))
            no = fattn.decide(fattn.Problem(**{{**ask, "dim_qk": 100}}), context=context)
            print(no)
            print(no.explain()[0].change)
            plan = fattn.plan(fattn.Problem(**ask), context=context)
            again = fattn.plan(fattn.Problem(**ask), context=context, load=plan.save())
            print(again.engine == plan.engine, plan.backend)
            context.verify()
            with fattn.policy("cudnn", "math"):
                allowed = bool(fattn.decide(no.problem, context=context))
            print(allowed == bool(context.info["math_kernels"]), bool(fattn.decide(no.problem, context=context)))
        """
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(
            done.stdout,
            r"(?s)^supported: cudnn on <fattn.Context h100-sxm: .*, sm_90, cuDNN 9.27.0>\n  engine \d+: workspace \d+ bytes \w+=",
        )
        self.assertRegex(
            done.stdout,
            r"\nunsupported: cudnn .*\n  why: CUDNN_STATUS_NOT_SUPPORTED_SHAPE: .*\n  remedy: pad the head dimension",
        )
        self.assertRegex(
            done.stdout, r"\n  engine \d+: CUDNN_STATUS_NOT_SUPPORTED_SHAPE: .* \(d_qk % 8 != 0\)\n"
        )
        self.assertIn("dim_qk and dim_v 104 instead of 100", done.stdout)
        self.assertTrue(done.stdout.endswith("True cudnn\nTrue False\n"), done.stdout)


def capsule(device, address, shape, offset=0):
    """A capsule of DLPack before 1.0, dense, as an older library exports it. Returns what has to stay alive too."""
    extents = (ctypes.c_int64 * len(shape))(*shape)
    tensor = arrays.DLTensor(
        data=address,
        device_type=device[0],
        device_id=device[1],
        ndim=len(shape),
        code=2,
        bits=32,
        lanes=1,
        shape=extents,
        byte_offset=offset,
    )
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    return new(ctypes.addressof(tensor), b"dltensor", None), (tensor, extents)


class FakeTensor:
    """Of a library that is not here, on a GPU that is not here."""

    def __init__(self, offset=0):
        self.offset, self.asked = offset, []

    def __dlpack_device__(self):
        return (2, 1)

    def __dlpack__(self, stream=None):  # no max_version: an older library
        self.asked.append(stream)
        made, self.kept = capsule((2, 1), 4096, SHAPE, self.offset)
        return made


class Interchange(unittest.TestCase):
    def test_an_array_is_not_copied(self):
        whole = np.zeros((2, 16, 4, 32), np.float32)
        part = whole.transpose(0, 2, 1, 3)[:, 1:3]
        read = arrays.Array("q", part)
        self.assertEqual(read.address, whole.ctypes.data + 32 * 4)
        self.assertEqual(
            (read.shape, read.strides, read.dtype, read.device),
            ((2, 2, 16, 32), (2048, 32, 128, 1), "f32", (arrays.CPU, 0)),
        )

    def test_a_capsule_of_an_older_library(self):
        given = FakeTensor(offset=64)
        read = arrays.Array("q", given)
        self.assertEqual(
            (read.address, read.strides, read.device, read.dtype),
            (4160, arrays.dense(SHAPE), (arrays.CUDA, 1), "f32"),
        )
        self.assertEqual(given.asked[-1], -1)  # the producer has nothing to wait for

    def test_memory_is_released(self):
        array = ones()
        before = sys.getrefcount(array)
        for _ in range(10):
            arrays.Array("q", array)
        self.assertEqual(sys.getrefcount(array), before)

    def test_an_array_of_a_gpu_does_not_reach_the_cpu_backend(self):
        q = ones()
        with self.assertRaisesRegex(fattn.Error, r"^k: lies on device \(2, 1\)"):
            fattn.plan(q, q, q).forward(q, FakeTensor(), q)

    def test_calls_go_to_the_current_stream_of_the_arrays_library(self):
        torch = types.ModuleType("torch")
        torch.cuda = types.SimpleNamespace(
            current_stream=lambda device: types.SimpleNamespace(cuda_stream=7000 + device)
        )
        tensor = type(
            "Tensor", (FakeTensor,), {"__module__": "torch", "detach": lambda self: self}
        )()
        sys.modules["torch"] = torch
        self.addCleanup(sys.modules.pop, "torch")
        read = arrays.Array("q", tensor)
        self.assertEqual(arrays.current_stream(read, None), 7001)
        self.assertEqual(arrays.current_stream(read, 42), 42)
        self.assertEqual(arrays.current_stream(read, types.SimpleNamespace(cuda_stream=43)), 43)
        self.assertIsNone(arrays.current_stream(arrays.Array("q", ones()), None))
        with self.assertRaisesRegex(fattn.Error, "give stream="):
            arrays.current_stream(arrays.Array("q", FakeTensor()), None)

    def test_arrays_of_another_library_get_outputs_of_numpy(self):
        class Array:  # JAX's, for example
            def __init__(self, values):
                self.values = values

            def __dlpack__(self, **more):
                return self.values.__dlpack__(**more)

            def __dlpack_device__(self):
                return self.values.__dlpack_device__()

        q = np.linspace(-1, 1, 1024, dtype=np.float32).reshape(SHAPE)
        other = Array(q)
        out, stats = fattn.attention(other, other, other, causal=True, stats=True)
        np.testing.assert_array_equal(out, fattn.attention(q, q, q, causal=True))
        gradients = fattn.attention_backward(other, other, other, out, out, stats, causal=True)
        for one, expected in zip(
            gradients, fattn.attention_backward(q, q, q, out, out, stats, causal=True)
        ):
            np.testing.assert_array_equal(one, expected)

    def test_new_arrays_follow_strides(self):
        like = arrays.Array("q", ones())
        made = arrays.empty("out", like, (2, 3, 4, 8), "f16", (96, 8, 24, 1))
        self.assertEqual(
            (made.dtype, made.shape, made.strides), (np.float16, (2, 3, 4, 8), (192, 16, 48, 2))
        )
        with self.assertRaisesRegex(
            fattn.Error, "^out: the problem's strides .* leave gaps; give out="
        ):
            arrays.empty("out", like, (2, 3, 4, 8), "f16", (192, 16, 48, 1))
        with self.assertRaisesRegex(fattn.Error, "^out: numpy has no array of bf16"):
            arrays.empty("out", like, (2, 3), "bf16")


if __name__ == "__main__":
    unittest.main()
