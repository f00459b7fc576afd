"""The pages of the API are what the headers say."""

import re
import subprocess
import sys
import unittest
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]


class Api(unittest.TestCase):
    def test_the_pages_are_what_the_headers_say(self):
        for page, word in (
            ("api.md", "c"),
            ("api-cpp.md", "cpp"),
            ("api-reference.md", "reference"),
            ("api-python.md", "python"),
        ):
            printed = subprocess.run(
                [sys.executable, "-B", HOME / "ci/docs/api.py", word],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            self.assertEqual(
                (HOME / "docs" / page).read_text(encoding="utf-8"),
                printed,
                f"python3 ci/docs/api.py {word} >docs/{page}",
            )

    def test_the_pages_name_every_function(self):
        for page, folder, pattern in (
            ("api.md", "lib/include/fattn", r"(?m)^[a-z].*?\b(fattn_\w+)\("),
            ("api-reference.md", "reference/include/fref", r"(?m)^[a-z].*?\b(fref_\w+)\("),
            ("api-cpp.md", "lib/include/fattn", r"\b(try_\w+)\("),
        ):
            text = (HOME / "docs" / page).read_text(encoding="utf-8")
            names = {
                name
                for path in (HOME / folder).glob("*.hpp" if page == "api-cpp.md" else "*.h")
                for name in re.findall(pattern, path.read_text(encoding="utf-8"))
            }
            self.assertGreater(len(names), 5)
            self.assertEqual({name for name in names if f"{name}(" not in text}, set(), page)
        text = (HOME / "docs/api-python.md").read_text(encoding="utf-8")
        names = re.findall(
            r'"(\w+)"',
            (HOME / "lib/python/fattn/__init__.py").read_text(encoding="utf-8").split("__all__")[1],
        )
        self.assertEqual(
            [
                name
                for name in names
                if not re.search(rf"### `{name}`\n\n```\w+\n(.*\n)?[^`]+", text)
            ],
            [],
        )


if __name__ == "__main__":
    unittest.main()
