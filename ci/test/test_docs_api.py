"""docs/api.md is what the headers say."""
import subprocess
import sys
import unittest
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]


class Api(unittest.TestCase):
    def test_the_page_is_what_the_headers_say(self):
        printed = subprocess.run([sys.executable, "-B", HOME / "ci/docs/api.py"], capture_output=True, text=True, check=True).stdout
        self.assertEqual((HOME / "docs/api.md").read_text(encoding="utf-8"), printed, "python3 ci/docs/api.py >docs/api.md")


if __name__ == "__main__":
    unittest.main()
