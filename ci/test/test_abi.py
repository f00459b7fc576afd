"""A program of the last release runs with this library: ci/abi.sh, and what it must find."""

import re
import shutil
import unittest

from scripts import BUILD, HOME, Folder, start

LIBRARY = (BUILD / "package/libfattn.so").resolve()
DESCRIPTION = HOME / "lib/package/libfattn.abi"
COUNTERS = "fattn_cache_counters"
GONE = "    <elf-symbol name='fattn_gone' version='FATTN_1.0' is-default-version='yes' type='func-type' is-defined='yes'/>\n"
MORE = "      <data-member layout-offset-in-bits='{}'>\n        <var-decl name='more' type-id='9c313c2d'/>\n      </data-member>\n"
LAST = r"      <data-member [^\n]*\n[^\n]*\n      </data-member>\n(?=    </class-decl>)"
SECOND = r"(?s)      <data-member layout-offset-in-bits='64'>.*?</data-member>\n"
DECIDE = r"(?s)    <function-decl name='fattn_decide' .*?</function-decl>\n|    <elf-symbol name='fattn_decide' [^\n]*\n"


def abi(*arguments):
    done = start(HOME / "ci/abi.sh", *arguments)
    return done.returncode, done.stdout + done.stderr


def of(text, kind, name):
    form = rf"(?s)    <{kind}-decl name='{name}'[^>]*[^/]>\n.*?</{kind}-decl>\n"
    return re.search(form, text)[0]


def fields(text):
    """{struct: [(bit, name)]} of a description."""
    structs = re.findall(
        r"(?s)<class-decl name='(fattn_\w+)' [^>]*size[^>]*>(.*?)</class-decl>", text
    )
    member = r"layout-offset-in-bits='(\d+)'>\s*<var-decl name='(\w+)'"
    return {name: re.findall(member, body) for name, body in structs}


def sized():
    """The structs of the headers that carry struct_size."""
    text = "".join(path.read_text() for path in (HOME / "lib/include/fattn").glob("*.h"))
    return set(re.findall(r"typedef struct fattn_(\w+) \{\s*size_t struct_size;", text))


class Abi(Folder):
    def setUp(self):
        super().setUp()
        if not shutil.which("abidiff"):
            raise unittest.SkipTest("needs abidiff: abigail-tools")
        self.text = DESCRIPTION.read_text(encoding="utf-8")

    def check(self, text, status, words=""):
        """What abi.sh says when the last release was described by `text`."""
        self.assertNotEqual(text, self.text)
        found, said = abi(LIBRARY, self.put("old.abi", text))
        self.assertEqual((found, words in said), (status, True), said)
        return said

    def resized(self, name, bits, change):
        """The description with a struct of another size, its text changed."""
        body = of(self.text, "class", name)
        size = int(re.search(r"size-in-bits='(\d+)'", body)[1])
        new = body.replace(f"size-in-bits='{size}'", f"size-in-bits='{size + bits}'", 1)
        return self.text.replace(body, change(new, size))

    def test_a_program_of_the_last_release_runs_and_no_field_moved(self):
        self.assertEqual(abi()[0], 2)
        status, said = abi(LIBRARY)
        self.assertEqual(status, 0, said)
        self.assertEqual(abi("--write", LIBRARY, self.at / "now")[0], 0)
        now, old = fields((self.at / "now").read_text()), fields(self.text)
        self.assertLessEqual({f"fattn_{name}" for name in sized()}, set(now))
        for name, members in old.items():  # a reserved member may get a name
            with self.subTest(name):
                for (bit, word), found in zip(members, now[name], strict=False):
                    self.assertIn((bit, word), (found, (found[0], "reserved")))
                self.assertGreaterEqual(len(now[name]), len(members))

    def test_a_struct_that_carries_its_size_may_grow_at_its_end_alone(self):
        def shorter(body, _):
            return re.sub(LAST, "", body)

        def longer(body, size):
            return body.replace("    </class-decl>", MORE.format(size) + "    </class-decl>")

        def without_second(body, _):
            moved = lambda m: f"offset-in-bits='{int(m[1]) - 64 * (int(m[1]) > 64)}'"
            return re.sub(r"offset-in-bits='(\d+)'", moved, re.sub(SECOND, "", body))

        self.check(self.resized(COUNTERS, -64, shorter), 0)
        self.check(self.resized(COUNTERS, 64, longer), 1, "1 data member deletion")
        self.check(self.resized(COUNTERS, -64, without_second), 1, "1 data member insertion")
        self.check(self.resized("fattn_knob", -64, shorter), 1)  # of an array, without struct_size

    def test_a_function_stays_and_a_new_one_has_a_version_of_its_own(self):
        text = re.sub(DECIDE, "", self.text)
        new = "a released version gets no new function"
        self.check(text, 1, f"FATTN_1.0 fattn_decide: {new}")
        said = abi(LIBRARY, self.put("old.abi", text.replace("FATTN_1.0", "FATTN_0.9")))[1]
        self.assertNotIn(new, said)
        parameter = r"(?s)(<function-decl name='fattn_decide' .*?<parameter type-id=')[^']*"
        self.check(re.sub(parameter, r"\g<1>b59d7dce", self.text, count=1), 1)

    def test_a_value_of_an_enumeration_stays(self):
        body = of(self.text, "enum", "fattn_status")
        first, *_, last = re.findall(r"      <enumerator [^\n]*\n", body)
        self.check(self.text.replace(body, body.replace(last, "")), 0)
        other = body.replace(first, first.replace("value='0'", "value='77'"))
        self.check(self.text.replace(body, other), 1)

    def test_a_break_needs_a_newer_major_version(self):
        broken = self.text.replace("  </elf-function-symbols>", GONE + "  </elf-function-symbols>")
        now = int(re.search(r"soname='libfattn\.so\.(\d+)'", self.text)[1])
        for major, status, words in (
            (now - 1, 0, "new major version"),
            (now, 1, "[D] fattn_gone"),
            (now + 1, 1, ""),
        ):
            said = self.check(broken.replace(f".so.{now}'", f".so.{major}'"), status, words)
            self.assertEqual("new major version" in said, status == 0, said)

    def test_every_struct_that_carries_its_size_is_tested_and_listed(self):
        tests = (HOME / "lib/test/plan/test_struct_size.c").read_text()
        lists = "".join(re.findall(r"#define (?:GIVEN|FILLED)\(X\)(.*?)\n\n", tests, re.S))
        self.assertEqual(set(re.findall(r"X\((\w+),", lists)), sized())
        listed = (HOME / "lib/package/libfattn.suppr").read_text()
        self.assertEqual(set(re.search(r"\^fattn_\((.*?)\)\$", listed)[1].split("|")), sized())


if __name__ == "__main__":
    unittest.main()
