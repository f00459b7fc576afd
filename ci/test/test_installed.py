"""The library as a user of it has it: installed to a folder, found by CMake and by pkg-config, in C and in C++, and nothing of its inside shows."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import needs

HOME = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("FACTS_BIN", HOME / "build/release/bin")).parent
EXAMPLES = (
    "first_call",
    "decide_explain",
    "forward_backward",
    "modify_score",
    "graph_capture",
    "guard",
    "old_entry_point",
)
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]


def run(*command, **more):
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **more
    )
    if done.returncode:
        raise AssertionError(
            f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def here(*names):
    return [name for name in names if shutil.which(name)]


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.at = pathlib.Path(cls.folder.name)
        first = cls.at / "first"
        run("cmake", "--install", BUILD, "--prefix", first)
        cls.prefix = cls.at / "moved"  # what was installed may be moved
        first.rename(cls.prefix)
        cls.lib = next(cls.prefix.rglob("libfattn.a")).parent
        cls.headers = sorted((cls.prefix / "include/fattn").glob("*.h"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def environment(self, **more):
        return {**os.environ, "PKG_CONFIG_PATH": str(self.lib / "pkgconfig"), **more}

    def flags(self, *options):
        return run("pkg-config", *options, "fattn", env=self.environment()).split()

    def functions(self):
        """What the headers declare."""
        text = "".join(without_comments(header.read_text()) for header in self.headers)
        text = re.sub(r"^\s*#.*(\\\n.*)*", "", text, flags=re.M)
        return set(re.findall(r"\b(fattn_[a-z]\w*)\s*\((?!\*)", text))

    def test_man_pages_and_completions_are_installed(self):
        for name in (
            "man/man1/facts.1",
            "bash-completion/completions/facts",
        ):
            self.assertIn("gate", (self.prefix / "share" / name).read_text(encoding="utf-8"), name)

    def test_the_program_finds_its_tree_where_it_was_moved(self):
        alone = {"PATH": "/usr/bin:/bin", "HOME": str(self.at)}
        self.assertGreater(
            len(run(self.prefix / "bin/facts", "list", "smoke", env=alone).splitlines()), 50
        )
        self.assertIn(
            "pass 1",
            run(
                self.prefix / "bin/facts",
                "run",
                "pass=fwd s=64 d=32",
                "--device",
                "cpu",
                env=alone,
                cwd=self.at,
            ),
        )
        self.assertEqual(
            [
                path
                for path in self.prefix.rglob("*")
                if path.is_symlink() and not path.resolve().is_relative_to(self.prefix)
            ],
            [],
        )

    def test_each_header_compiles_alone_in_every_language(self):
        self.assertGreaterEqual(len(self.headers), 5)
        languages = [(cc, "c", std) for cc in here("gcc", "clang") for std in ("c11", "c17")]
        languages += [
            (cc, "c++", std) for cc in here("g++", "clang++") for std in ("c++17", "c++20")
        ]
        self.assertGreaterEqual(len(languages), 4)
        for header in self.headers:
            for compiler, language, std in languages:
                source = self.at / f"alone.{language.replace('+', 'p')}"
                source.write_text(f"#include <fattn/{header.name}>\n#include <fattn/fattn.h>\n")
                run(
                    compiler,
                    "-x",
                    language,
                    f"-std={std}",
                    *STRICT,
                    "-fsyntax-only",
                    f"-I{self.prefix}/include",
                    source,
                )

    def test_the_functions_of_the_headers_and_nothing_else_are_visible(self):
        shared = [
            line.split()[-1].split("@@")
            for line in run("nm", "-D", "--defined-only", self.lib / "libfattn.so").splitlines()
        ]
        self.assertEqual({node[0] for _, *node in shared if node}, {"FATTN_1.0"})
        shared = {name for name, *_ in shared} - {"FATTN_1.0"}
        static = {
            line.split()[-1]
            for line in run("nm", "-g", "--defined-only", self.lib / "libfattn.a").splitlines()
            if len(line.split()) == 3
        }
        self.assertEqual(shared, self.functions())
        self.assertEqual(static, self.functions())

    def test_nothing_of_third_parties_is_needed(self):
        said = run("objdump", "-p", self.lib / "libfattn.so")
        needed = re.findall(r"NEEDED\s+(\S+)", said)
        self.assertEqual(
            [n for n in needed if not re.match(r"(lib(c|m|dl|pthread|gomp|omp)\.so|ld-linux)", n)],
            [],
        )
        self.assertRegex(said, r"SONAME\s+libfattn\.so\.\d+")
        self.assertTrue((self.lib / re.search(r"SONAME\s+(\S+)", said)[1]).exists())

    def test_devices_and_the_null_driver_are_where_the_packages_say(self):
        for variable, name in (("devices", "h100-sxm.json"), ("nulldriver", "")):
            self.assertTrue(
                pathlib.Path(self.flags(f"--variable={variable}")[0], name).resolve().is_file(),
                variable,
            )

    def test_examples_with_find_package(self):
        for form in ("fattn", "static"):
            build = self.at / f"cmake-{form}"
            run(
                "cmake",
                "-G",
                "Ninja",
                "-S",
                HOME / "examples",
                "-B",
                build,
                f"-DCMAKE_PREFIX_PATH={self.prefix}",
                f"-DFATTN_FORM={form}",
                f"-DCMAKE_C_FLAGS={' '.join(STRICT)}",
            )
            run("cmake", "--build", build)
            for name in EXAMPLES:
                run(
                    build / f"example_{name}",
                    "--device",
                    "cpu",
                    env=self.environment(OMP_NUM_THREADS="2"),
                )
            run(build / "example_first_call_cpp")
            linked = run("objdump", "-p", build / "example_guard")
            self.assertEqual("libfattn.so" in linked, form == "fattn")

    def test_examples_with_pkg_config(self):
        for compiler in here("gcc", "clang"):
            for form in ("shared", "static"):
                libraries = (
                    self.flags("--libs") if form == "shared" else self.flags("--static", "--libs")
                )
                if form == "static":
                    libraries = [
                        "-l:libfattn.a" if part == "-lfattn" else part for part in libraries
                    ]
                for name in EXAMPLES:
                    program = self.at / f"{compiler}-{form}-{name}"
                    run(
                        compiler,
                        "-std=c11",
                        "-D_GNU_SOURCE",
                        *STRICT,
                        *self.flags("--cflags"),
                        HOME / f"examples/{name}.c",
                        *libraries,
                        "-lm",
                        "-lpthread",
                        "-o",
                        program,
                    )
                run(
                    self.at / f"{compiler}-{form}-guard",
                    env=self.environment(LD_LIBRARY_PATH=str(self.lib)),
                )

    def test_pkg_config_has_what_a_program_needs_to_run(self):
        for variable, runs in (("rpath", True), ("devices", False)):
            program = self.at / f"runs-{variable}"
            run(
                "gcc",
                "-std=c11",
                "-D_GNU_SOURCE",
                *self.flags("--cflags"),
                HOME / "examples/first_call.c",
                *self.flags("--libs"),
                *(self.flags("--variable=rpath") if runs else []),
                "-lm",
                "-o",
                program,
            )
            done = subprocess.run(
                [program], capture_output=True, text=True, check=False, env={"PATH": "/usr/bin"}
            )
            self.assertEqual(
                (done.returncode == 0, "libfattn" in done.stderr), (runs, not runs), done.stderr
            )

    def test_the_example_of_the_header_is_a_program(self):
        """The lines at the top of fattn.h and fattn.hpp are those of the first calls in examples/, which the tests build and run."""
        for header, example in (("fattn.h", "first_call.c"), ("fattn.hpp", "first_call.cpp")):
            shown = re.search(
                rf"{example}:\n \*\n((?: \*     .*\n)+) \*\n",
                (self.prefix / "include/fattn" / header).read_text(),
            )[1]
            lines = re.search(
                r"/\* begin \*/\n(.*?) */\* end \*/",
                (HOME / "examples" / example).read_text(),
                flags=re.S,
            )[1]
            self.assertEqual(
                [line.removeprefix(" *").strip() for line in shown.splitlines()],
                [line.strip() for line in lines.splitlines()],
            )

    def test_a_program_in_cpp(self):
        for compiler in here("g++", "clang++"):
            for std in ("c++17", "c++20"):
                program = self.at / f"program-{compiler}-{std}"
                run(
                    compiler,
                    f"-std={std}",
                    *STRICT,
                    *self.flags("--cflags"),
                    HOME / "examples/first_call.cpp",
                    *self.flags("--libs"),
                    "-o",
                    program,
                )
            run(program, env=self.environment(LD_LIBRARY_PATH=str(self.lib)))

    def test_every_call_of_the_header_for_cpp(self):
        for compiler in here("g++", "clang++"):
            program = self.at / f"every-{compiler}"
            run(
                compiler,
                "-std=c++17",
                "-fsanitize=address,undefined",
                "-fno-sanitize-recover",
                *STRICT,
                *self.flags("--cflags"),
                HOME / "lib/package/every_call.cpp",
                *self.flags("--libs"),
                "-o",
                program,
            )
            run(program, env=self.environment(LD_LIBRARY_PATH=str(self.lib)))

    def test_the_header_for_cpp_works_without_exceptions(self):
        source = self.at / "noexcept.cpp"
        source.write_text(
            "#include <fattn/fattn.hpp>\nint main() { return fattn::context::try_create(fattn::context_options()) ? 1 : 0; }\n"
        )
        for compiler in here("g++", "clang++"):
            program = self.at / f"noexcept-{compiler}"
            run(
                compiler,
                "-std=c++17",
                "-fno-exceptions",
                *STRICT,
                *self.flags("--cflags"),
                source,
                *self.flags("--libs"),
                "-o",
                program,
            )
            run(program, env=self.environment(LD_LIBRARY_PATH=str(self.lib)))

    def test_examples_with_a_described_device(self):
        cudnn = needs.need(needs.NEW).dir
        device, driver = (
            self.flags("--variable=devices")[0] + "/h100-sxm.json",
            self.flags("--variable=nulldriver")[0],
        )
        for name in EXAMPLES:
            said = run(
                BUILD / f"bin/example_{name}",
                "--device",
                device,
                "--driver",
                os.path.realpath(driver),
                "--cudnn",
                cudnn,
            )
            if name == "decide_explain":
                self.assertIn("instead: dim_qk and dim_v 104 instead of 100", said)
            if name == "guard":
                self.assertIn("guarded: math", said)


if __name__ == "__main__":
    unittest.main()
