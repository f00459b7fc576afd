"""Pages, help and messages keep to the rules of plain English that a script can check."""

import re
import subprocess
import sys
import unittest
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HOME / "ci"))
import check_prose  # noqa: E402

LONG = " ".join(["word"] * 26) + "."


def found(text):
    return [what for _, what in check_prose.page_findings(text, {"scoremod": "score modification"})]


class Prose(unittest.TestCase):
    def test_each_rule_finds_its_mistake(self):
        for text, word in (
            ("x " * 61, "line"),
            ("| a | " + "x" * 81 + " |", "cell"),
            (LONG, "sentence"),
            ("The scoremod of a query.", "glossary"),
            ("The answer is due now.", "expected"),
            ("- An item.\n- " + LONG, "sentence"),
            ("A line\nthat goes " + LONG, "sentence"),
        ):
            self.assertTrue(any(word in what for what in found(text)), text)

    def test_right_prose_passes(self):
        for text in (
            "A short sentence. Another one.",
            "| a | `x|y` |",
            "```text\n" + "x " * 90 + "\n```",
            "It fails due to `due`.",
            "<!-- " + "x " * 90 + " -->",
            "[a link](https://example.org/" + "x" * 130 + ")",
            "- `" + "x " * 70 + "`",
        ):
            self.assertEqual(found(text), [], text)

    def test_printed_texts_are_read_and_code_is_not(self):
        self.assertEqual(
            [
                text
                for _, text in check_prose.c_texts(
                    'f("one two " /* a b c */\n  "three\\n", "key"); // "no no no no"'
                )
            ],
            ["one two three\n"],
        )
        self.assertEqual(
            [
                text
                for _, text in check_prose.python_texts(
                    '"""A doc string here."""\nx = "one two three"\ny = "word"'
                )
            ],
            ["one two three"],
        )

    def test_each_banned_word_is_found_in_each_kind_of_file(self):
        texts = (
            "It is due.",
            "The court.",
            "It tells.",
            "It said so.",
            "A stretch.",
            "The hunt.",
            "A manner.",
            "It is lent.",
            "The truth.",
            "Graver.",
            "It was late through us.",
            "Packed sequences.",
            "Grouped heads.",
            "When we were late.",
            "A fault of somebody else's.",
            "It is asked of it.",
            "The judge.",
            "It is mended.",
            "All but for one.",
            "The end of it all.",
            "Which of it.",
            "It is made anew.",
            "The same holds.",
        )
        self.assertEqual(len(texts), len(check_prose.BANNED))
        for text, pattern in zip(texts, check_prose.BANNED):
            self.assertRegex(text.lower(), pattern)
            self.assertEqual(len(found(text)), 1, text)
            for name, source in (
                ("x.c", f"/* {text} */\n"),
                ("x.c", f"int f(void); // {text}\n"),
                ("x.h", f"/*\n * {text}\n */\n"),
                ("x.cu", f"/* {text} */\n"),
                ("x.cuh", f"/* {text} */\n"),
                ("x.c", f'f("A sentence. {text}");\n'),
                ("x.py", f"# {text}\n"),
                ("x.py", f'"""{text}"""\n'),
                ("x.py", f'print("A sentence. {text}")\n'),
                ("x.py", f'def f():\n    """{text}"""\n'),
                ("program.c.in", f"/* {text} */\n"),
                ("x.js", f"  // {text}\n"),
                ("x.sh", f"  # {text}\nls\n"),
                ("facts", f"ls # {text}\n"),
                ("x.sh", f"cat <<'END'\n{text}\nEND\n"),
                ("action.yml", f'  suite: {{ default: x, description: "{text}" }}\n'),
                ("x.j2", f"<p>{{% if a %}}{text}</p>\n"),
            ):
                self.assertEqual(
                    len(list(check_prose.source_findings(Path(name), source, {}))), 1, (name, text)
                )
        self.assertEqual(found("CANNOT TELL: it failed due to it."), [])

    def test_a_comment_in_a_string_and_an_example_are_not_read(self):
        self.assertEqual(
            list(check_prose.source_findings(Path("x.cu"), 'f("/* told */ // told");\n', {})), []
        )
        self.assertEqual(
            list(
                check_prose.source_findings(Path("x.py"), '"""A line.\n\n    told = 1\n"""\n', {})
            ),
            [],
        )
        self.assertEqual(
            list(
                check_prose.source_findings(
                    Path("x.j2"), "<p class='told'>{{ told }}<script>told</script></p>", {}
                )
            ),
            [],
        )
        long = "/* A short one.\n *\n * " + "word " * 30 + "\n *\n * " + "word " * 30 + "*/\n"
        self.assertEqual(
            list(check_prose.source_findings(Path("x.c"), long, {})),
            [],
            "an empty line ends a sentence",
        )
        self.assertEqual(
            [
                line
                for line, _ in check_prose.source_findings(
                    Path("x.c"), "int x;\n// " + "word " * 30 + "\n// " + "word " * 30 + "\n", {}
                )
            ],
            [2],
        )

    def test_comments_of_headers_are_read(self):
        header = "/* It does this\n * and that.\n *\n * Returns  0, or\n *          an errno.\n *     int x; // code\n */\nint f(void); /* told */\n"
        self.assertEqual(
            [
                text.split()
                for text in next(check_prose.c_comments(header))[1].split("\n")
                if text.split()
            ],
            [
                "It does this and that.".split(),
                "Returns 0, or an errno.".split(),
                "int x; // code".split(),
            ],
        )
        for name in (
            "harness/x.h",
            "lib/src/x.h",
            "lib/include/fattn/x.hpp",
            "reference/include/fref/x.h",
        ):
            self.assertEqual(
                [line for line, _ in check_prose.source_findings(Path(name), header, {})], [8], name
            )
        self.assertTrue(
            {
                "fattn.hpp",
                "fref.h",
                "judge.h",
                "context.h",
                "context.c",
                "fill_kernels.cu",
                "tile.cuh",
                "guard.c",
                "program.c.in",
                "check.py",
                "cookbook.py",
                "page.py",
                "facts",
                "release.sh",
                "comment.py",
                "action.yml",
                "cudnn-gate.yml",
            }
            <= {path.name for path in check_prose.files()}
        )

    def test_the_glossary_has_at_most_forty_words_and_those_that_are_seen(self):
        words = re.findall(
            r"(?m)^- \*\*([^*]+)\*\*", (HOME / "docs/glossary.md").read_text(encoding="utf-8")
        )
        self.assertTrue(30 <= len(words) <= 40, len(words))
        self.assertLessEqual(
            {
                "logsumexp",
                "oracle",
                "expected value",
                "device-resident",
                "liar",
                "guard",
                "grade",
                "fill",
                "golden matrix",
            },
            set(words),
        )
        self.assertNotIn("logsumexp", check_prose.glossary())

    def test_the_limit_of_a_page_with_longer_sentences_only_falls(self):
        for page, most in check_prose.LONGER.items():
            self.assertGreater(most, check_prose.WORDS, page)
            self.assertEqual(
                check_prose.longest((HOME / page).read_text(encoding="utf-8")),
                most,
                f"{page}: lower its number in check_prose.py",
            )

    def test_every_page_and_printed_text(self):
        done = subprocess.run(
            [sys.executable, "-B", HOME / "ci/check_prose.py"],
            capture_output=True,
            text=True,
            check=False,
        )
        print(done.stdout)
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
