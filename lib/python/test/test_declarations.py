"""fattn/abi.py is what the headers declare: made anew it is the same, and a C compiler gives every struct the same layout."""

import ctypes
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]
import declare
from fattn import abi, problem


def structs():
    return {
        name: kind
        for name, kind in vars(abi).items()
        if isinstance(kind, type)
        and issubclass(kind, ctypes.Structure)
        and kind is not ctypes.Structure
    }


class Declarations(unittest.TestCase):
    def test_the_file_is_what_declare_prints(self):
        self.assertEqual(
            (HERE.parent / "fattn/abi.py").read_text(),
            declare.written(),
            "renew it: lib/python/declare.py > lib/python/fattn/abi.py",
        )

    def test_a_compiler_gives_the_same_layout_and_numbers(self):
        wanted, lines = [], []
        for name, kind in structs().items():
            wanted.append(ctypes.sizeof(kind))
            lines.append(f"sizeof({name})")
            for field, _ in kind._fields_:
                wanted += [getattr(kind, field).offset, getattr(kind, field).size]
                lines += [f"offsetof({name}, {field})", f"sizeof((({name} *)0)->{field})"]
        for name, value in abi.CONSTANTS.items():
            wanted.append(value)
            lines.append(name)
        self.assertGreater(len(lines), 500)
        includes = "".join(f"#include <fattn/{header.name}>\n" for header in declare.headers())
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "layout.c")
            source.write_text(
                f"#include <stdio.h>\n#include <stddef.h>\n{includes}int main(void)\n{{\n    long long all[] = {{ {', '.join(f'(long long)({line})' for line in lines)} }};\n"
                '    for (size_t i = 0; i < sizeof all / sizeof *all; i++)\n        printf("%lld\\n", all[i]);\n}\n'
            )
            subprocess.run(
                [
                    "cc",
                    "-std=c11",
                    "-I",
                    HERE.parent.parent / "include",
                    source,
                    "-o",
                    f"{folder}/layout",
                ],
                check=True,
            )
            said = subprocess.run(
                [f"{folder}/layout"], capture_output=True, text=True, check=True
            ).stdout
        self.assertEqual(dict(zip(lines, wanted)), dict(zip(lines, map(int, said.split()))))

    def test_every_function_of_the_headers_is_declared(self):
        text = "".join(
            re.sub(r"/\*.*?\*/", " ", header.read_text(), flags=re.S)
            for header in declare.headers()
        )
        text = re.sub(r"^\s*#.*(\\\n.*)*", "", text, flags=re.M)
        self.assertEqual(
            set(re.findall(r"\b(fattn_[a-z]\w*)\s*\((?!\*)", text)), set(abi.FUNCTIONS)
        )

    def test_words_of_fields(self):
        found = {field for field in problem.FIELDS if problem.words_of(field)}
        self.assertEqual(
            found,
            {
                "pass",
                "dtype",
                "o_dtype",
                "grad_dtype",
                "do_dtype",
                "stats_dtype",
                "bias_dtype",
                "align",
                "impl",
                "spelling",
                "determinism",
                "scaling",
                "scale_format",
                "outputs",
                "ragged",
                "cumulative",
            },
        )

    def test_the_package_needs_the_standard_library_alone(self):
        done = subprocess.run(
            [
                sys.executable,
                "-S",
                "-c",
                "import sys, fattn; print([name for name in ('numpy', 'torch', 'cffi') if name in sys.modules])",
            ],
            capture_output=True,
            text=True,
            cwd=HERE.parent,
            check=False,
        )
        self.assertEqual((done.stdout, done.stderr), ("[]\n", ""))


if __name__ == "__main__":
    unittest.main()
