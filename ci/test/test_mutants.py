"""Each mistake that the nightly run plants still has its place: ci/mutants.list."""

import unittest
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]


class Mutants(unittest.TestCase):
    def test_every_mistake_has_its_place(self):
        lines = [
            line
            for line in (HOME / "ci/mutants.list").read_text(encoding="utf-8").splitlines()
            if line.strip() and not line.startswith("#")
        ]
        self.assertGreater(len(lines), 40)
        for line in lines:
            file, text, mistake, _ = (part.strip() for part in line.split(" ~ "))
            self.assertNotEqual(text, mistake, line)
            source = (HOME / file).read_text(encoding="utf-8")
            # As ci/mutants.sh looks: a formatter may break the lines elsewhere.
            self.assertIn(" ".join(text.split()), " ".join(source.split()), line)


if __name__ == "__main__":
    unittest.main()
