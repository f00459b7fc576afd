"""Questions, refusals and bad input: one clear line each. What DLPack says of an array is read without a copy, and calls go to its library's stream."""

import ctypes
import inspect
import os
import pathlib
import pickle
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


def python(program, **environment):
    """What a program says."""
    command, environment = [sys.executable, "-c", program], {**os.environ, **environment}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=200, check=False, env=environment
    )


class Refused(unittest.TestCase):
    def refused(self, pattern, call, *arguments, status="bad_problem", **more):
        with self.assertRaisesRegex(fattn.Error, pattern) as seen:
            call(*arguments, **more)
        self.assertEqual(seen.exception.status, status)
        self.assertNotIn("\n", str(seen.exception))

    def test_problems(self):
        for pattern, fields in {
            r"^dtype: 'f17': one of bf16, f16": {"dtype": "f17"},
            r"^sequence: not a field of a problem; lib/include/fattn/problem\.h": {"sequence": 1},
            r"^casual: .* did you mean causal\? lib/include": {"casual": True},
            r"^d: .* did you mean dim_qk or dim_v\? .{,60}$": {"d": 5},
            r"^batch: 'two'": {"batch": "two"},
            r"^q_strides: \(1, 2, 3, 4, 5\)": {"q_strides": (1, 2, 3, 4, 5)},
            r"^causal: the window": {"causal": True, "window": (3, 1)},
            r"^outputs: 'lse': one of": {"outputs": ("stats", "lse")},
            r"^dtype: one word": {"dtype": ("f16", "bf16")},
        }.items():
            self.refused(pattern, fattn.Problem, **fields)
        self.refused("^policy: 'cuda': one of cudnn, math, cpu", fattn.policy("cuda").__enter__)
        self.refused("dim_qk", fattn.Problem(batch=1, heads_q=1, seq_q=8, seq_kv=8).resolve)

    def test_wrong_types(self):
        qkv = [ones()] * 3
        for pattern, more in {
            r"^window: 5: a pair \(left, right\) is needed": {"window": 5},
            r"^context: 3: a fattn\.Context is needed": {"context": 3},
            "^score_mod: 2: a fattn.ScoreMod or a function": {"score_mod": 2},
        }.items():
            for call in (fattn.attention, fattn.decide, fattn.plan):
                self.assertRaisesRegex(TypeError, pattern, call, *qkv, **more)
        one = np.ones(1, np.int64)
        said = "^dropout: seed and offset are needed, arrays of one i64 each: tensors="
        for more in ({}, {"tensors": {"seed": one}}):
            self.refused(said, fattn.attention, *qkv, dropout=0.5, **more)
        both = {"seed": one, "offset": one}
        self.assertEqual(fattn.attention(*qkv, dropout=0.5, tensors=both).shape, SHAPE)

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
            r"^out: shape \(1, 2, 16, 8\); the plan is for \(1, 2, 16, 32\)": {"out": q[..., :8]},
            "^out: the array is read-only": {"out": frozen},
            "^out: f16; the plan is for f32": {"out": ones(dtype=np.float16)},
            "^out: strides": {"out": turned},
            "^stats: the plan does not write it": {"stats": True},
            "^biass: not a tensor of a call": {"biass": q},
            "^mod_tensors: 'x': the score modification has no tensors": {"mod_tensors": {"x": q}},
            "^workspace: f32": {"workspace": q},
            "^o shares memory with q": {"out": q},
        }.items():
            self.refused(pattern, plan.forward, q, q, q, **more)
        said = r"^k: strides .*; the plan is for .*\. fattn\.plan\(q, k, v\) takes those of arrays"
        self.refused(said, plan.forward, q, turned, q)
        self.refused("^the plan is of pass fwd", plan.backward, q, q, q, q, q, q)
        slope = ones(1, 2, 1, 1)
        mod = fattn.ScoreMod(lambda s, b, h, q, k, slope: s * slope, tensors={"slope": slope})
        plan = fattn.plan(q, q, q, score_mod=mod)
        said = r"^mod_tensors\['slope'\]: f32 \(1, 1, 1, 1\); recorded was"
        self.refused(said, plan.forward, q, q, q, mod_tensors={"slope": ones(1, 1, 1, 1)})
        self.refused("^mod_tensors: 'slope' is missing", plan.forward, q, q, q, mod_tensors={})
        lengths = dict.fromkeys(("seq_len_q", "seq_len_kv"), np.ones(1, np.int64))
        self.refused("^seq_len_q: i64; the plan is for i32", fattn.attention, q, q, q, **lengths)

    def test_environments(self):
        for said, *arguments in (("h999", "h999"), (".", "h100-sxm")):  # no cuDNN is mapped
            self.refused(said, fattn.Context, *arguments, status="environment")
        folder = {"cudnn_dir": "/no_such", "status": "environment"}
        self.refused("no_such", fattn.Context, "h100-sxm", **folder)
        done = python("import fattn; fattn.Context()", FATTN_LIBRARY="/no/libfattn.so")
        self.assertIn("set FATTN_LIBRARY to the path of libfattn.so", done.stderr.splitlines()[-1])


class Problems(unittest.TestCase):
    def test_a_problem_prints_as_it_is_made(self):
        sizes = {"batch": 2, "heads_q": 4, "seq_q": 64, "seq_kv": 64, "dim_qk": 64}
        more = {"outputs": ("stats", "max"), "attn_scale": 0.5, "o_strides": (1, 2, 3, 4)}
        made = fattn.Problem(pass_="bwd", dtype="bf16", **sizes, window=(7, 0), **more)
        self.assertEqual(eval(repr(made)), made)
        self.assertEqual(made.replace(), made)
        self.assertEqual(pickle.loads(pickle.dumps(made)), made)
        with self.assertRaisesRegex(TypeError, "score_mod"):
            pickle.dumps(made.replace(score_mod=lambda score, b, h, q, k: score))
        self.assertEqual(made.replace(batch=3).batch, 3)
        found = made.pass_, made.dtype, made.window_left, made.has_right
        self.assertEqual(found, ("bwd", "bf16", 7, 1))
        self.assertEqual(fattn.Problem(window=(7, 0)), fattn.Problem(window=(7, None), causal=True))
        self.assertEqual(eval(repr(fattn.Problem(attn_scale=0.0))).has_attn_scale, 1)

    def test_resolved(self):
        made = fattn.Problem(batch=1, heads_q=2, seq_q=8, seq_kv=8, dim_qk=16).resolve()
        self.assertEqual(made.q_strides, (256, 16, 32, 1))


class Decisions(unittest.TestCase):
    def test_yes(self):
        q = ones()
        decision = fattn.decide(q, q, q, causal=True)
        self.assertTrue(decision)
        self.assertEqual((decision.problem.has_right, decision.problem.seq_q), (1, 16))
        self.assertEqual((decision.backend, decision.reason), ("cpu", "ok"))
        self.assertEqual(repr(decision), "supported: cpu on <fattn.Context cpu>\n  engine 0")

    SIZE = {"dtype": "f32", "batch": 1, "seq_q": 8, "seq_kv": 8, "dim_qk": 16}

    def test_no(self):
        decision = fattn.decide(fattn.Problem(**self.SIZE, heads_q=3, heads_k=2))
        self.assertFalse(decision)
        self.assertEqual(decision.reason, "bad_problem")
        self.assertIn("heads_q", repr(decision))
        self.assertNotIn("explain()", repr(decision))  # nothing is near what is no problem
        with self.assertRaisesRegex(fattn.Error, "^heads_q: 3 is not a multiple"):
            decision.explain()

    def test_a_neighbour_is_one_line(self):
        near = fattn.decide(fattn.Problem(**self.SIZE, heads_q=1)).explain(budget=8)
        self.assertEqual(repr(near[0]), f"<fattn.Neighbour: {near[0].change}>")

    def test_a_described_gpu_says_why_not(self):
        cudnn = needs.need(needs.NEW).dir
        program = f"""if True:
            import fattn
            context = fattn.Context("h100-sxm", cudnn={needs.NEW!r})
            assert any(path.startswith({cudnn!r}) for path in context.libraries())
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
        done = python(program)
        self.assertEqual(done.returncode, 0, done.stderr)
        for said in (
            r"(?s)^supported: cudnn on <fattn.Context h100-sxm: .*, sm_90, cuDNN 9.27.0>\n  engine \d+: workspace \d+ bytes \w+=",
            r"\nunsupported: cudnn .*\n  why: CUDNN_STATUS_NOT_SUPPORTED_SHAPE: .*\n  remedy: pad the head dimension",
            r"\n  engine \d+: CUDNN_STATUS_NOT_SUPPORTED_SHAPE: .* \(d_qk % 8 != 0\)\n",
            "dim_qk and dim_v 104 instead of 100",
            "True cudnn\nTrue False\n$",
        ):
            self.assertRegex(done.stdout, said)


def capsule(device, address, shape, offset=0):
    """A capsule of DLPack before 1.0, dense, as an older library exports it. Returns what has to stay alive too."""
    extents = (ctypes.c_int64 * len(shape))(*shape)
    tensor = arrays.DLTensor(address, *device, len(shape))
    tensor.code, tensor.bits, tensor.lanes = 2, 32, 1
    tensor.shape, tensor.byte_offset = extents, offset
    new, text = ctypes.pythonapi.PyCapsule_New, ctypes.c_char_p
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, text, ctypes.c_void_p]
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
        read = arrays.Array("q", whole.transpose(0, 2, 1, 3)[:, 1:3])
        self.assertEqual(read.address, whole.ctypes.data + 32 * 4)
        found = read.shape, read.strides, read.dtype, read.device
        self.assertEqual(found, ((2, 2, 16, 32), (2048, 32, 128, 1), "f32", (arrays.CPU, 0)))

    def test_a_capsule_of_an_older_library(self):
        given = FakeTensor(offset=64)
        read = arrays.Array("q", given)
        found = read.address, read.strides, read.device, read.dtype
        self.assertEqual(found, (4160, arrays.dense(SHAPE), (arrays.CUDA, 1), "f32"))
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
        def stream(number):
            return types.SimpleNamespace(cuda_stream=number)

        torch = types.ModuleType("torch")
        torch.cuda = types.SimpleNamespace(current_stream=lambda device: stream(7000 + device))
        members = {"__module__": "torch", "detach": lambda self: self}
        sys.modules["torch"] = torch
        self.addCleanup(sys.modules.pop, "torch")
        read = arrays.Array("q", type("Tensor", (FakeTensor,), members)())
        for given, used in ((None, 7001), (42, 42), (stream(43), 43)):
            self.assertEqual(arrays.current_stream(read, given), used)
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
        gradients, expected = (
            fattn.attention_backward(x, x, x, out, out, stats, causal=True) for x in (other, q)
        )
        for one, due in zip(gradients, expected):
            np.testing.assert_array_equal(one, due)

    def test_new_arrays_follow_strides(self):
        like, shape = arrays.Array("q", ones()), (2, 3, 4, 8)
        made = arrays.empty("out", like, shape, "f16", (96, 8, 24, 1))
        found = made.dtype, made.shape, made.strides
        self.assertEqual(found, (np.float16, shape, (192, 16, 48, 2)))
        for said, *more in (
            ("^out: the problem's strides .* leave gaps; give out=", "f16", (192, 16, 48, 1)),
            ("^out: numpy has no array of bf16", "bf16"),
        ):
            with self.assertRaisesRegex(fattn.Error, said):
                arrays.empty("out", like, shape, *more)


if __name__ == "__main__":
    unittest.main()
