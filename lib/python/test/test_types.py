"""A program with types passes a type checker, and runs: fattn has `py.typed`."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy
except ImportError:
    print("[SKIP] test_types: NumPy is not installed")
    sys.exit(0)

HOME = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = """
from typing import Any, Optional
import fattn
from fattn.score_mod import Value

def near(score: Value, b: Value, h: Value, q: Value, k: Value) -> Value:
    capped = 20 * fattn.score_mod.tanh(score / 20) - abs(q - k) ** 2 % 7
    return fattn.where((k <= q) & (q - k < 16) | ~(b != 0), -capped + 1, -float("inf"))

def first(found: fattn.Decision) -> Optional[fattn.Engine]:
    return found.engines[0] if found.supported else None

def both(q: Any) -> Any:
    plan: fattn.Plan = fattn.plan(q, q, q, score_mod=fattn.ScoreMod(near), training=1, context=fattn.Context("cpu"))
    out, stats = plan.forward(q, q, q, stats=True)
    return fattn.attention_backward(q, q, q, out, out, stats, score_mod=near)[0]

asked = fattn.Problem(score_mod=near)
engine = first(fattn.decide(fattn.Problem(dtype="f32", batch=1, heads_q=2, seq_q=16, seq_kv=16, dim_qk=32)))
number: int = engine.number if engine else -1
"""


WRONG = {"engine.number": "engine.nummer", "score / 20": 'score / "20"', "** 2": "** None"}
WRONG |= {'Context("cpu")': "Context(1.5)", "training=1": "trainin=1", "heads_q=2": 'heads_q="2"'}
WRONG |= {"Problem(score_mod": "Problem(score_mode", "score_mod=near)[0]": "scor=near)[0]"}


class Types(unittest.TestCase):
    def test_a_program_with_types(self):
        wrong = PROGRAM
        for right, other in WRONG.items():
            wrong = wrong.replace(right, other)
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("right", PROGRAM), ("wrong", wrong)):
                pathlib.Path(folder, f"{name}.py").write_text(text)
            words = "-m mypy --follow-imports=silent right.py wrong.py --cache-dir".split()
            environment = {**os.environ, "MYPYPATH": str(HOME / "lib/python")}
            more = {"env": environment, "cwd": folder, "capture_output": True, "text": True}
            done = subprocess.run([sys.executable, *words, folder], check=False, **more)
        self.assertNotIn("right.py", done.stdout + done.stderr)
        self.assertGreaterEqual(done.stdout.count("wrong.py"), len(WRONG))

    def test_the_program_runs(self):
        names = {}
        exec(PROGRAM, names)
        shape = names["both"](numpy.ones((1, 2, 16, 32), "float32")).shape
        self.assertEqual((shape, names["number"]), ((1, 2, 16, 32), 0))


if __name__ == "__main__":
    if not importlib.util.find_spec("mypy"):
        print("[SKIP] test_types: mypy is not installed")
        sys.exit(0)
    unittest.main()
