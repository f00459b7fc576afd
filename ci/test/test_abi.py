"""A program of the last release runs with this library: ci/abi.sh, and what it must find."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

HOME = Path(os.environ.get("FACTS_SOURCE") or Path(__file__).resolve().parents[2])
BUILD = Path(os.environ.get("FACTS_BIN") or HOME / "build/release/bin").parent
LIBRARY = (BUILD / "package/libfattn.so").resolve()
DESCRIPTION = HOME / "lib/package/libfattn.abi"
COUNTERS = "fattn_cache_counters"


def abi(*arguments):
    done = subprocess.run(
        [HOME / "ci/abi.sh", *arguments], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def of(text, kind, name):
    return re.search(rf"    <{kind}-decl name='{name}'[^>]*[^/]>\n.*?</{kind}-decl>\n", text, re.S)[
        0
    ]


def fields(text):
    """{struct: [(bit, name)]} of a description."""
    found = {}
    for name, body in re.findall(
        r"<class-decl name='(fattn_\w+)' [^>]*size[^>]*>(.*?)</class-decl>", text, re.S
    ):
        found[name] = re.findall(r"layout-offset-in-bits='(\d+)'>\s*<var-decl name='(\w+)'", body)
    return found


def sized():
    """The structs of the headers that carry struct_size."""
    text = "".join(path.read_text() for path in (HOME / "lib/include/fattn").glob("*.h"))
    return {
        name.removeprefix("fattn_")
        for name in re.findall(r"typedef struct (\w+) \{\s*size_t struct_size;", text)
    }


class Abi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("abidiff"):
            raise unittest.SkipTest("needs abidiff: abigail-tools")
        cls.text = DESCRIPTION.read_text(encoding="utf-8")

    def against(self, text):
        """What abi.sh says when the last release was described by `text`."""
        self.assertNotEqual(text, self.text)
        with tempfile.TemporaryDirectory() as folder:
            old = Path(folder, "old.abi")
            old.write_text(text, encoding="utf-8")
            return abi(LIBRARY, old)

    def resized(self, bits, change):
        """The description with a struct of another size, its text changed."""
        body = of(self.text, "class", COUNTERS)
        size = re.search(r"size-in-bits='(\d+)'", body)[1]
        return self.text.replace(
            body,
            change(
                body.replace(f"size-in-bits='{size}'", f"size-in-bits='{int(size) + bits}'", 1),
                int(size),
            ),
        )

    def test_wrong_usage(self):
        self.assertEqual(abi()[0], 2)

    def test_a_program_of_the_last_release_runs(self):
        self.assertEqual(abi(LIBRARY)[0], 0, abi(LIBRARY)[1])

    def test_no_field_of_the_last_release_has_another_name_or_place(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(abi("--write", LIBRARY, Path(folder, "now"))[0], 0)
            now = fields(Path(folder, "now").read_text())
        old = fields(self.text)
        self.assertEqual(
            set(now) & {f"fattn_{name}" for name in sized()}, {f"fattn_{name}" for name in sized()}
        )
        self.assertEqual({name: now[name][: len(list_)] for name, list_ in old.items()}, old)

    def test_a_struct_that_carries_its_size_may_grow_at_its_end_alone(self):
        last = r"      <data-member [^\n]*\n[^\n]*\n      </data-member>\n(?=    </class-decl>)"
        self.assertEqual(
            self.against(self.resized(-64, lambda body, _: re.sub(last, "", body)))[0], 0
        )
        more = "      <data-member layout-offset-in-bits='{}'>\n        <var-decl name='more' type-id='9c313c2d'/>\n      </data-member>\n    </class-decl>"
        status, said = self.against(
            self.resized(
                64, lambda body, size: body.replace("    </class-decl>", more.format(size))
            )
        )
        self.assertEqual((status, "1 data member deletion" in said), (1, True), said)

        def without_second(body, _):
            body = re.sub(
                r"      <data-member layout-offset-in-bits='64'>.*?</data-member>\n",
                "",
                body,
                flags=re.S,
            )
            return re.sub(
                r"offset-in-bits='(\d+)'",
                lambda m: f"offset-in-bits='{int(m[1]) - 64 * (int(m[1]) > 64)}'",
                body,
            )

        status, said = self.against(self.resized(-64, without_second))
        self.assertEqual((status, "1 data member insertion" in said), (1, True), said)
        knob = of(self.text, "class", "fattn_knob")  # of an array, without struct_size
        size = int(re.search(r"size-in-bits='(\d+)'", knob)[1])
        short = re.sub(last, "", knob).replace(
            f"size-in-bits='{size}'", f"size-in-bits='{size - 64}'", 1
        )
        self.assertEqual(self.against(self.text.replace(knob, short))[0], 1)

    def test_a_function_stays_and_a_new_one_has_a_version_of_its_own(self):
        gone = "    <elf-symbol name='fattn_gone' version='FATTN_1.0' is-default-version='yes' type='func-type' is-defined='yes'/>\n  </elf-function-symbols>"
        status, said = self.against(self.text.replace("  </elf-function-symbols>", gone))
        self.assertEqual((status, "[D] fattn_gone" in said), (1, True), said)
        text = re.sub(
            r"    <function-decl name='fattn_decide' .*?</function-decl>\n",
            "",
            self.text,
            flags=re.S,
        )
        text = re.sub(r"    <elf-symbol name='fattn_decide' [^\n]*\n", "", text)
        status, said = self.against(text)
        self.assertEqual(
            (status, "FATTN_1.0 fattn_decide: a released version gets no new function" in said),
            (1, True),
            said,
        )
        text = re.sub(r"FATTN_1\.0", "FATTN_0.9", text)
        self.assertNotIn("gets no new function", self.against(text)[1])
        text = re.sub(
            r"(<function-decl name='fattn_decide' .*?<parameter type-id=')[^']*",
            r"\g<1>b59d7dce",
            self.text,
            count=1,
            flags=re.S,
        )
        self.assertEqual(self.against(text)[0], 1)

    def test_a_value_of_an_enumeration_stays(self):
        body = of(self.text, "enum", "fattn_status")
        first, *_, last = re.findall(r"      <enumerator [^\n]*\n", body)
        self.assertEqual(self.against(self.text.replace(body, body.replace(last, "")))[0], 0)
        self.assertEqual(
            self.against(
                self.text.replace(
                    body, body.replace(first, first.replace("value='0'", "value='77'"))
                )
            )[0],
            1,
        )

    def test_a_break_needs_a_newer_major_version(self):
        gone = "    <elf-symbol name='fattn_gone' version='FATTN_1.0' is-default-version='yes' type='func-type' is-defined='yes'/>\n  </elf-function-symbols>"
        broken = self.text.replace("  </elf-function-symbols>", gone)
        now = int(re.search(r"soname='libfattn\.so\.(\d+)'", self.text)[1])
        for major, status in ((now - 1, 0), (now, 1), (now + 1, 1)):
            found, said = self.against(
                broken.replace(f"soname='libfattn.so.{now}'", f"soname='libfattn.so.{major}'")
            )
            self.assertEqual((found, "new major version" in said), (status, status == 0), said)

    def test_every_struct_that_carries_its_size_is_tested_and_listed(self):
        tests = (HOME / "lib/test/plan/test_struct_size.c").read_text()
        lists = "".join(re.findall(r"#define (?:GIVEN|FILLED)\(X\)(.*?)\n\n", tests, re.S))
        self.assertEqual(set(re.findall(r"X\((\w+),", lists)), sized())
        self.assertEqual(
            set(
                re.search(
                    r"\^fattn_\((.*?)\)\$", (HOME / "lib/package/libfattn.suppr").read_text()
                )[1].split("|")
            ),
            sized(),
        )


if __name__ == "__main__":
    unittest.main()
