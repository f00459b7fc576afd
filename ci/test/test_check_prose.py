"""Pages, help and messages keep to the rules of plain English that a script can check."""

import re
import sys
import unittest
from pathlib import Path

from scripts import start

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

    def test_each_banned_word_is_found_in_each_kind_of_file(self):
        sentences = (
            "It is due. The court. It tells. It said so. A stretch. The hunt. A manner. "
            "It is lent. The truth. Graver. It was late through us. Packed sequences. "
            "Grouped heads. When we were late. A fault of somebody else's. It is asked of it. "
            "The judge. It is mended. All but for one. The end of it all. Which of it. "
            "It is made anew. The same holds."
        )
        texts = re.findall(r"[^.]+\.", sentences)
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

    def test_the_limit_of_a_page_with_longer_sentences_only_falls(self):
        for page, most in check_prose.LONGER.items():
            self.assertGreater(most, check_prose.WORDS, page)
            self.assertEqual(
                check_prose.longest((HOME / page).read_text(encoding="utf-8")),
                most,
                f"{page}: lower its number in check_prose.py",
            )

    def test_every_page_and_printed_text(self):
        done = start(sys.executable, HOME / "ci/check_prose.py")
        print(done.stdout)
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
