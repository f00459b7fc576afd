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


PROGRAM = r"""#include <stdio.h>
#include <stddef.h>
%s
int main(void)
{
    long long all[] = { %s };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        printf("%%lld\n", all[i]);
}
"""


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
        self.assertGreater(len(lines), 300)
        includes = "".join(f"#include <fattn/{header.name}>\n" for header in declare.headers())
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "layout.c")
            all_ = ", ".join(f"(long long)({line})" for line in lines)
            source.write_text(PROGRAM % (includes, all_))
            include, program = HERE.parent.parent / "include", f"{folder}/layout"
            subprocess.run(["cc", "-std=c11", "-I", include, source, "-o", program], check=True)
            said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
        self.assertEqual(dict(zip(lines, wanted)), dict(zip(lines, map(int, said.split()))))

    def test_every_function_that_the_module_calls_is_declared(self):
        texts = (path.read_text() for path in declare.MODULE.glob("*.py") if path.name != "abi.py")
        called = set(re.findall(r"\b(fattn_[a-z_]+[a-z])\b(?!_)", "".join(texts)))
        declared = {*abi.FUNCTIONS, *vars(abi)}
        self.assertEqual(called - declared, set())
        self.assertGreater(len(abi.FUNCTIONS), 30)

    def test_words_of_fields(self):
        found = {field for field in problem.FIELDS if problem.words_of(field)}
        dtypes = "dtype o_dtype grad_dtype do_dtype stats_dtype bias_dtype"
        others = (
            "pass align impl spelling determinism scaling scale_format outputs ragged cumulative"
        )
        self.assertEqual(found, {*dtypes.split(), *others.split()})

    def test_the_package_needs_the_standard_library_alone(self):
        names = "[name for name in ('numpy', 'torch', 'cffi') if name in sys.modules]"
        command = [sys.executable, "-S", "-c", f"import sys, fattn; print({names})"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parent, check=False)
        self.assertEqual((done.stdout, done.stderr), ("[]\n", ""))


if __name__ == "__main__":
    unittest.main()
