"""The table of `facts self`: from the lines that the program hands over."""

import json
import tempfile
import unittest
from pathlib import Path

import support


def shown(dtype, suite, able, red, **more):
    about = {"fault": "fwd.x", "dtype": dtype, "suite": suite}
    return {**about, "able": able, "asked": able, "red": red, **more}


class Liars(unittest.TestCase):
    def show(self, *lines):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "lines"
            path.write_text("\n".join(map(json.dumps, lines)))
            code, out, _ = support.run("self", path)
        self.assertEqual(code, 0)
        return out

    def test_a_cell_has_each_suite_with_its_red_cases(self):
        of = {"gate": "t1", "tensor": "o"}
        out = self.show(
            {"what": {"fwd.x": "one key too many"}},
            shown("bf16", "core", 4, 3, ratio=12.34, **of),
            shown("bf16", "smoke", 2, 0, ratio=0.5, **of),
            shown("f16", "core", 1, 1, ratio="inf", **of),
            shown("f32", "core", 0, 0),
        )
        self.assertEqual(
            out[out.index("| core") :],
            "| core | 1 | 0 |\n| smoke | 0 | 0 |\n| together | 1 | 0 |\n\n| fault | what is wrong | bf16 | f16 | f32 |\n|---|---|---|---|---|\n"
            "| `fwd.x` | one key too many | core 3 of 4: 12.3 t1 o; smoke 0 of 2 | core 1 of 1: t1 o | no case |\n",
        )
