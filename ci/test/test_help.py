"""Help has one source for each command: the man page and the completion of bash are what the program prints."""

import os
import re
import unittest
from pathlib import Path

from scripts import run, start

HOME = Path(__file__).resolve().parents[2]
FACTS = Path(os.environ.get("FACTS_BIN", HOME / "build/release/bin")) / "facts"


def facts(*words):
    return run(FACTS, *words, add={"FACTS_HOME": str(HOME)})


@unittest.skipUnless(FACTS.exists(), f"{FACTS} is not built")
class Help(unittest.TestCase):
    maxDiff = None

    def test_every_form_has_each_command_and_option(self):
        """Options of C come from its table, those of Python from the parsers of its commands."""
        names = re.findall(r"(?m)^  facts ([a-z]+)", facts("--help").split("Examples:")[0])
        forms = [facts("help", "bash"), facts("help", "man").replace("\\-", "-")]
        self.assertIn("gate", names)
        self.assertGreater(len(names), 20)
        for name in names:
            said = facts("help", name)
            self.assertTrue(said.startswith(f"facts {name}"), said)
            if name != "cudnn":
                self.assertEqual(said, facts(name, "--help"))
            options = set(re.findall(r"(?m)^  (?:-\w, |    )--([a-z-]+)", said))
            self.assertIn("help", options, name)
            for text in forms:
                self.assertRegex(text, rf"\b{name}\b")
                self.assertEqual({o for o in options if f"--{o}" not in text}, set(), name)
                self.assertNotIn("None", text)

    def test_what_there_is_can_be_listed(self):
        suites = {line.split()[0]: int(line.split()[1]) for line in facts("list").splitlines()}
        self.assertGreater(suites["core"], suites["smoke"])
        self.assertIn("models/llama-3.1-8b", suites)
        self.assertIn("causal_br", facts("keys", "mask"))
        self.assertIn("B200", facts("devices"))

    def test_a_product_is_answered_with_its_description(self):
        for product, name in (("h100", "h100-sxm"), ("A100", "sm80-spec"), ("b200", "sm100-spec")):
            done = start(FACTS, "decide", "pass=fwd", "--device", product)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f" {name} ", done.stdout)


if __name__ == "__main__":
    unittest.main()
