"""A page's blocks become what its commands print; the rest of it stays."""

import sys
import unittest

from scripts import FACTS, HOME, run

sys.path.insert(0, str(HOME / "ci"))
import cookbook  # noqa: E402
import needs  # noqa: E402

PAGE = """# A page

<!-- facts list 'pass=fwd d=64' -->
```text
$ facts list 'pass=fwd d=64'
old
```

between

<!-- 2 lines: facts doctor -->
```text
```
<!-- a comment -->
```text
stays
```
"""


class Cookbook(unittest.TestCase):
    def test_blocks_are_what_the_commands_print(self):
        asked = []
        after = cookbook.renew(PAGE, lambda command: asked.append(command) or "one\ntwo\nthree\n")
        self.assertEqual(asked, ["facts list 'pass=fwd d=64'", "facts doctor"])
        self.assertIn(
            "```text\n$ facts list 'pass=fwd d=64'\none\ntwo\nthree\n```\n\nbetween", after
        )
        self.assertIn(
            "```text\n$ facts doctor\none\ntwo\n[1 more line]\n```\n<!-- a comment -->\n```text\nstays\n```\n",
            after,
        )
        self.assertEqual(
            cookbook.renew(after, lambda command: "one\ntwo\nthree\n"),
            after,
            "renewing again changes nothing",
        )

    def test_only_commands_of_these_versions_run(self):
        page = PAGE.replace("facts doctor", "facts decide x --cudnn 9.20.0-jit-cu13,9.27.0")
        asked = []
        cookbook.renew(page, lambda command: asked.append(command) or "x", {"9.20.0"})
        self.assertEqual(asked, ["facts list 'pass=fwd d=64'"])
        cookbook.renew(page, lambda command: asked.append(command) or "x", {"9.20.0", "9.27.0"})
        self.assertEqual(len(asked), 3)

    def test_no_page_is_stale(self):
        """Of the commands that need no other versions than those that ./facts test installs; the searches of docs/fuzz.md in the night."""
        pages = [page for page in sorted((HOME / "docs").glob("*.md")) if page.name != "fuzz.md"]
        pages += [HOME / "docs/fuzz.md"] * needs.NIGHT
        pages = [page for page in pages if cookbook.BLOCK.search(page.read_text(encoding="utf-8"))]
        self.assertGreater(len(pages), 4)
        for name in (needs.OLD, needs.NEW):
            needs.need(name)
        words = ("--check", "--cudnn", "9.20.0,9.27.0", *pages)
        add = {"FACTS": str(FACTS), "FACTS_HOME": str(HOME)}
        run(sys.executable, HOME / "ci/cookbook.py", *words, add=add)


if __name__ == "__main__":
    unittest.main()
