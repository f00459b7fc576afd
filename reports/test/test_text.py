"""Markdown in lines of a width."""
import unittest

import support  # noqa: F401
from facts_reports.text import wrapped


class Wrapped(unittest.TestCase):
    def test_paragraphs_and_items_are_wrapped(self):
        self.assertEqual(wrapped("one two three four\n\n- five six seven\n  eight nine\n- ten", 12), "one two\nthree four\n\n- five six\n  seven\n  eight nine\n- ten")

    def test_tables_headings_and_code_stay(self):
        page = "# A heading that is long\n\n| a cell that is long |\n\n```text\nsome code that is long\n```\n\n    indented code that is long"
        self.assertEqual(wrapped(page, 12), page)

    def test_code_and_links_are_not_broken(self):
        self.assertEqual(wrapped("see `a b c d e f` and [some text](there) now", 12), "see\n`a b c d e f`\nand\n[some text](there)\nnow")

    def test_no_line_becomes_an_item(self):
        self.assertNotIn("\n- ", wrapped("one two - three four", 10))
        self.assertEqual(wrapped(wrapped("a " * 100, 30), 30), wrapped("a " * 100, 30))


if __name__ == "__main__":
    unittest.main()
