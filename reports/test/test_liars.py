"""The tables of `facts self`: from the lines that the program hands over."""

import json
import tempfile
import unittest
from pathlib import Path

import support


def found(dtype, size, result, **more):
    return {"liar": "fwd.x", "dtype": dtype, "size": size, "result": result, **more}


class Liars(unittest.TestCase):
    def show(self, *lines):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "lines"
            path.write_text("\n".join(map(json.dumps, lines)))
            code, out, _ = support.run("self", path)
        self.assertEqual(code, 0)
        return out

    def test_a_cell_has_the_weakest_ratio_and_the_sizes_that_find_nothing(self):
        killed = {"gate": "t1", "tensor": "o"}
        out = self.show(
            {"what": {"fwd.x": "one key too many"}},
            found("bf16", "s 200", "killed", ratio=12.34, **killed),
            found("bf16", "s 500", "killed", ratio=2.5, **killed),
            found("bf16", "long", "blind"),
            found("f16", "s 200", "killed", ratio="inf", **killed),
            found("f32", "s 200", "not_applicable"),
        )
        self.assertEqual(
            out,
            "| liar | what is wrong | bf16 | f16 | f32 |\n|---|---|---|---|---|\n| `fwd.x` | one key too many | 2.5 t1 o; blind at long | t1 o |  |\n",
        )
