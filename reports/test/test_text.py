"""Markdown in lines of a width."""

import unittest

import support  # noqa: F401
from facts_reports.read.text import line, wrapped


class Clean(unittest.TestCase):
    def test_what_nobody_sees_is_replaced(self):
        codes = "1b 9b ad 61c 200b 200e 2028 202e 2060 2064 2066 feff fff9 fffb e0000 e0041 e007f"
        for code in codes.split():
            self.assertEqual(line(f"a{chr(int(code, 16))}b", 9), "a\ufffdb", code)
        joined = "a\u200d\u200cb \u2013\u00e4"
        self.assertEqual(line(joined, 9), joined, "joiners belong to words")


class Wrapped(unittest.TestCase):
    def test_paragraphs_and_items_are_wrapped(self):
        self.assertEqual(
            wrapped("one two three four\n\n- five six seven\n  eight nine\n- ten", 12),
            "one two\nthree four\n\n- five six\n  seven\n  eight nine\n- ten",
        )

    def test_tables_headings_and_code_stay(self):
        page = "# A heading that is long\n\n| a cell that is long |\n\n```text\nsome code that is long\n```\n\n    indented code that is long"
        self.assertEqual(wrapped(page, 12), page)

    def test_code_and_links_are_not_broken(self):
        self.assertEqual(
            wrapped("see `a b c d e f` and [some text](there) now", 12),
            "see\n`a b c d e f`\nand\n[some text](there)\nnow",
        )

    def test_no_line_becomes_an_item(self):
        self.assertNotIn("\n- ", wrapped("one two - three four", 10))
        self.assertEqual(wrapped(wrapped("a " * 100, 30), 30), wrapped("a " * 100, 30))
