"""The library as a user of it has it: installed to a folder, found by CMake and by pkg-config, and nothing of its inside shows."""

import os
import pathlib
import re
import shutil
import unittest

import needs
from scripts import BUILD, HOME, OneFolder, run, start

EXAMPLES = [path.stem for path in (HOME / "examples").glob("*.c")]
STRICT = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror".split()
C = ["-std=c11", "-D_GNU_SOURCE", *STRICT]


def here(*names):
    return [name for name in names if shutil.which(name)]


class Installed(OneFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        first = cls.at / "first"
        run("cmake --install", BUILD, "--prefix", first)
        cls.prefix = cls.at / "moved"  # what was installed may be moved
        first.rename(cls.prefix)
        cls.lib = next(cls.prefix.rglob("libfattn.a")).parent
        cls.headers = sorted((cls.prefix / "include/fattn").glob("*.h"))
        cls.found = {"LD_LIBRARY_PATH": str(cls.lib)}

    def flags(self, *options):
        add = {"PKG_CONFIG_PATH": str(self.lib / "pkgconfig")}
        return run("pkg-config", *options, "fattn", add=add).split()

    def built(self, compiler, source, *flags, libraries=()):
        """A program with what pkg-config says."""
        program = self.at / "program"
        libraries = libraries or self.flags("--libs")
        run(compiler, *flags, *self.flags("--cflags"), source, *libraries, "-lm", "-o", program)
        return program

    def test_the_program_its_page_and_its_tree_are_where_they_were_moved(self):
        for name in ("man/man1/facts.1", "bash-completion/completions/facts"):
            self.assertIn("gate", (self.prefix / "share" / name).read_text(encoding="utf-8"), name)
        alone = {"PATH": "/usr/bin:/bin", "HOME": str(self.at)}
        facts = self.prefix / "bin/facts"
        self.assertGreater(len(run(facts, "list", "smoke", env=alone).splitlines()), 50)
        words = ("pass=fwd s=64 d=32", "--device", "cpu")
        self.assertIn("pass 1", run(facts, "run", *words, env=alone, cwd=self.at))
        links = [path for path in self.prefix.rglob("*") if path.is_symlink()]
        self.assertTrue(all(path.resolve().is_relative_to(self.prefix) for path in links), links)
        for variable, name in (("devices", "h100-sxm.json"), ("nulldriver", "")):
            path = pathlib.Path(self.flags(f"--variable={variable}")[0], name)
            self.assertTrue(path.resolve().is_file(), variable)

    def test_each_header_compiles_alone_in_every_language(self):
        self.assertGreaterEqual(len(self.headers), 5)
        languages = [(cc, "c", std) for cc in here("gcc", "clang") for std in ("c11", "c17")]
        languages += [
            (cc, "c++", std) for cc in here("g++", "clang++") for std in ("c++17", "c++20")
        ]
        self.assertGreaterEqual(len(languages), 4)
        sources = [self.at / f"alone-{header.stem}" for header in self.headers]
        for source, header in zip(sources, self.headers):
            source.write_text(f"#include <fattn/{header.name}>\n#include <fattn/fattn.h>\n")
        for compiler, language, std in languages:
            flags = (f"-std={std}", *STRICT, "-fsyntax-only", f"-I{self.prefix}/include")
            run(compiler, "-x", language, *flags, *sources)

    def test_the_functions_of_the_headers_and_nothing_else_are_visible(self):
        text = "".join(header.read_text() for header in self.headers)
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        text = re.sub(r"^\s*#.*(\\\n.*)*", "", text, flags=re.M)
        declared = set(re.findall(r"\b(fattn_[a-z]\w*)\s*\((?!\*)", text))
        shared = run("nm -D --defined-only", self.lib / "libfattn.so").split()[2::3]
        self.assertEqual(set(shared), {f"{name}@@FATTN_1.0" for name in declared} | {"FATTN_1.0"})
        static = run("nm -g --defined-only", self.lib / "libfattn.a")
        self.assertEqual(set(re.findall(r"(?m)^\w+ \w (\S+)$", static)), declared)

    def test_nothing_of_third_parties_is_needed(self):
        said = run("objdump -p", self.lib / "libfattn.so")
        for name in re.findall(r"NEEDED\s+(\S+)", said):
            self.assertRegex(name, r"(lib(c|m|dl|pthread|gomp|omp)\.so|ld-linux)")
        (name,) = re.findall(r"SONAME\s+(libfattn\.so\.\d+)", said)
        self.assertTrue((self.lib / name).exists())

    def test_examples_with_find_package(self):
        for form in ("fattn", "static"):
            build = self.at / f"cmake-{form}"
            prefix, flags = f"-DCMAKE_PREFIX_PATH={self.prefix}", " ".join(STRICT)
            options = (prefix, f"-DFATTN_FORM={form}", f"-DCMAKE_C_FLAGS={flags}")
            run("cmake -G Ninja -S", HOME / "examples", "-B", build, *options)
            run("cmake --build", build)
            for name in EXAMPLES:
                run(build / f"example_{name}", "--device", "cpu", add={"OMP_NUM_THREADS": "2"})
            linked = run("objdump -p", build / "example_guard")
            self.assertEqual("libfattn.so" in linked, form == "fattn")

    def test_examples_with_pkg_config(self):
        sources = [*(HOME / "examples").glob("*.c")]
        guard = HOME / "examples/guard.c"
        static = " ".join(self.flags("--static", "--libs")).replace("-lfattn", "-l:libfattn.a")
        for compiler in here("gcc", "clang"):
            run(compiler, *C, "-fsyntax-only", *self.flags("--cflags"), *sources)
            for libraries in (self.flags("--libs"), static.split()):
                run(self.built(compiler, guard, *C, libraries=libraries), add=self.found)

    def test_pkg_config_has_what_a_program_needs_to_run(self):
        for rpath, runs in ((self.flags("--variable=rpath"), True), ([], False)):
            libraries = [*self.flags("--libs"), *rpath]
            program = self.built("gcc", HOME / "examples/first_call.c", *C, libraries=libraries)
            done = start(program, env={"PATH": "/usr/bin"})
            found = (done.returncode == 0, "libfattn" in done.stderr)
            self.assertEqual(found, (runs, not runs), done.stderr)

    def test_the_example_of_the_header_is_a_program(self):
        """The lines at the top of fattn.h are those of the first call in examples/, which the tests build and run."""
        text = (self.prefix / "include/fattn/fattn.h").read_text()
        shown = re.search(r"first_call.c:\n \*\n((?: \*     .*\n)+) \*\n", text)[1]
        text = (HOME / "examples/first_call.c").read_text()
        lines = re.search(r"(?s)/\* begin \*/\n(.*?) */\* end \*/", text)[1]
        shown = [line.removeprefix(" *").strip() for line in shown.splitlines()]
        self.assertEqual(shown, [line.strip() for line in lines.splitlines()])

    def test_examples_with_a_described_device(self):
        device = self.flags("--variable=devices")[0] + "/h100-sxm.json"
        driver = os.path.realpath(self.flags("--variable=nulldriver")[0])
        words = ("--device", device, "--driver", driver, "--cudnn", needs.need(needs.NEW).dir)
        said = {name: run(BUILD / f"bin/example_{name}", *words) for name in EXAMPLES}
        self.assertIn("instead: dim_qk and dim_v 104 instead of 100", said["decide_explain"])
        self.assertIn("guarded: math", said["guard"])


if __name__ == "__main__":
    unittest.main()
