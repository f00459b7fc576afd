"""fattn/abi.py says what the headers declare: the words, the arguments of functions; a C compiler gives every struct the same layout."""

import ctypes
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]
from fattn import abi, problem
from fattn.plan import TENSORS

HEADERS = sorted((HERE.parent.parent / "include/fattn").glob("*.h"))
TEXT = "".join(re.sub(r"/\*.*?\*/", " ", path.read_text(), flags=re.S) for path in HEADERS)
ALIASES = {name: kind for kind, name in re.findall(r"typedef (\w+) (\w+);", TEXT)}
CALLBACKS = {"callback": "callback", "gradient": "gradient_callback"}
SCALARS = {"int", "int32_t", "int64_t", "uint32_t", "uint64_t", "size_t", "double", "bool", "char"}


def word(declared):
    """A type as abi.py has it: an enum is an int, a handle that only the library looks into a void."""
    base = re.sub(r"\bconst\b|[*\[]", " ", declared).split()[0]
    base = ALIASES.get(base, base)
    stars = "*" * (declared.count("*") + declared.count("["))
    if base.startswith("fattn_score_mod_") and not stars:
        return CALLBACKS[base.removeprefix("fattn_score_mod_").removesuffix("_callback")]
    if base in SCALARS and (base, stars) != ("char", "**"):  # bytes, not a text
        return (base if base == "size_t" else base.removesuffix("_t")) + stars
    return (base if base in structs() else "void" if stars or base == "void" else "int") + stars


def structs():
    kinds = {name: kind for name, kind in vars(abi).items() if isinstance(kind, type)}
    kinds = {name: kind for name, kind in kinds.items() if issubclass(kind, ctypes.Structure)}
    return {name: kind for name, kind in kinds.items() if kind is not ctypes.Structure}


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
        includes = "".join(f"#include <fattn/{header.name}>\n" for header in HEADERS)
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "layout.c")
            all_ = ", ".join(f"(long long)({line})" for line in lines)
            source.write_text(PROGRAM % (includes, all_))
            include, program = HERE.parent.parent / "include", f"{folder}/layout"
            subprocess.run(["cc", "-std=c11", "-I", include, source, "-o", program], check=True)
            said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
        self.assertEqual(dict(zip(lines, wanted)), dict(zip(lines, map(int, said.split()))))

    def test_type_checkers_know_every_field_and_tensor(self):
        stub = (HERE.parent / "fattn/fields.pyi").read_text().partition("class Tensors")
        for text, names in ((stub[0], problem.FIELDS), (stub[2], TENSORS)):
            known = set(re.findall(r"^    (\w+):", text, re.M)) | {
                "pass",
                "q",
                "k",
                "v",
                "o",
                "d_o",
            }
            self.assertEqual(set(names) - known - {"stats"}, set())

    def test_every_function_that_the_module_calls_is_declared(self):
        texts = (
            path.read_text()
            for path in (HERE.parent / "fattn").glob("*.py")
            if path.name != "abi.py"
        )
        called = set(re.findall(r"\b(fattn_[a-z_]+[a-z])\b(?!_)", "".join(texts)))
        declared = {*abi.FUNCTIONS, *vars(abi)}
        self.assertEqual(called - declared, set())
        self.assertGreater(len(abi.FUNCTIONS), 30)

    def test_functions_have_the_arguments_of_the_headers(self):
        for prototype in abi.PROTOTYPES.strip().split("\n"):
            result, name, *_ = prototype.split()
            found = re.search(rf"([\w ]+[ *\n]+){name}\(([^;]*?)\);", TEXT)
            self.assertTrue(found, name)
            given = [word(part) for part in found[2].split(",") if part.strip() != "void"]
            self.assertEqual(" ".join([word(found[1]), name, *given]), prototype)

    def test_every_function_that_can_fail_refuses_null(self):
        """Without all arguments, and with the first of those that have an output there."""
        names = re.findall(r"^fattn_status\s+(fattn_\w+)\(([^;]*?)\);", TEXT, re.M)
        calls = [(name, False) for name, _ in names]
        calls += [(name, True) for name, given in names if re.match(r"[\w ]+\*\*out,", given)]
        script = (
            "import ctypes, sys; from fattn import library; lib = ctypes.CDLL(library.path())\n"
            "lib.fattn_last_error.restype = ctypes.c_char_p; out = ctypes.c_void_p(7)\n"
            f"for name, some in {calls}:\n"
            "  print(name, some, flush=True); given = [ctypes.byref(out)] * some + [None] * 8\n"
            "  status = getattr(lib, name)(*given)\n"
            "  made = some and status == 0 and 'score_mod' in name  # of numbers that may be 0\n"
            "  if not made and (status != 1 or not lib.fattn_last_error()): sys.exit(f'{name}: {status}')"
        )
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, cwd=HERE.parent
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout[-100:])
        self.assertGreater(len(calls), 50)

    def test_words_are_those_of_the_headers(self):
        text = TEXT.replace("\\\n", " ")
        lists = re.findall(r"#define FATTN_(\w+)_LIST\(X\)([^\n]*)", text)
        words = {name.lower(): re.findall(r'X\(\w+, (\d+), "(\w+)"', said) for name, said in lists}
        made = {name: {word: int(n) for n, word in found} for name, found in words.items() if found}
        self.assertEqual(abi.WORDS, made)
        taken = re.findall(r'X\(\w+, \d+, "(\w+)", (\d)\)', text)
        self.assertEqual(abi.INPUTS, {word: int(count) for word, count in taken})
        for kind, names in abi.POINTEES.items():
            for name in names.split():
                self.assertRegex(text, rf"\b{kind} \*[^;]*\b{name}\b")

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
