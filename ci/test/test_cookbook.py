"""A page's blocks become what its commands print; the rest of it stays."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HOME / "ci"))
import cookbook  # noqa: E402

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
        self.assertIn("```text\n$ facts list 'pass=fwd d=64'\none\ntwo\nthree\n```\n\nbetween", after)
        self.assertIn("```text\n$ facts doctor\none\ntwo\n[1 more line]\n```\n<!-- a comment -->\n```text\nstays\n```\n", after)
        self.assertEqual(cookbook.renew(after, lambda command: "one\ntwo\nthree\n"), after, "renewing again changes nothing")

    def test_a_command_that_answers_nothing_ends_it_and_the_page_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            page, facts = Path(folder) / "page.md", Path(folder) / "facts"
            for script, code in (("echo the reason >&2; exit 3", 3), ("echo half; exit 2", 2), ("exit 0", 3)):
                page.write_text(PAGE, encoding="utf-8")
                facts.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
                facts.chmod(0o755)
                done = subprocess.run([sys.executable, HOME / "ci" / "cookbook.py", page], capture_output=True, text=True, env={"FACTS": str(facts)}, check=False)
                self.assertEqual((done.returncode, page.read_text(encoding="utf-8")), (code, PAGE), script)
                self.assertIn(f"{page}: exit", done.stderr)
                self.assertIn("facts list 'pass=fwd d=64'", done.stderr)

    def test_the_pages_show_commands(self):
        for name in ("bisect", "cookbook"):
            page = (HOME / f"docs/{name}.md").read_text(encoding="utf-8")
            self.assertGreaterEqual(len(cookbook.BLOCK.findall(page)), 3)
            for _, command in cookbook.BLOCK.findall(page):
                self.assertIn(f"```text\n$ {command}\n", page, "python3 ci/cookbook.py docs/*.md")


if __name__ == "__main__":
    unittest.main()
