"""Help has one source: docs/commands.md, the man pages and the shell completions are what the program prints."""
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
FACTS = Path(os.environ.get("FACTS_BIN", HOME / "build/release/bin")) / "facts"


def facts(*words):
    return subprocess.run([FACTS, *words], capture_output=True, text=True, check=True, env={**os.environ, "FACTS_HOME": str(HOME)}).stdout


@unittest.skipUnless(FACTS.exists(), f"{FACTS} is not built")
class Help(unittest.TestCase):
    def test_the_reference_page_is_what_the_program_prints(self):
        self.assertEqual((HOME / "docs/commands.md").read_text(encoding="utf-8"), facts("help", "markdown"), "facts help markdown >docs/commands.md")

    def test_every_command_has_a_man_page_that_roff_takes(self):
        names = facts("help", "names").split()
        self.assertIn("gate", names)
        for name in names:
            page = facts("help", "man", name)
            for section in ("NAME", "SYNOPSIS", "EXAMPLES", "EXIT STATUS"):
                self.assertIn(f"\n.SH {section}\n", page, name)
            self.assertEqual([line for line in page.splitlines() if line.startswith("'")], [], name)
            if shutil.which("groff"):
                done = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-z"], input=page, capture_output=True, text=True, check=True)
                self.assertEqual(done.stderr, "", name)

    def test_every_help_ends_with_two_examples(self):
        for command in facts("help", "names").split():
            last = facts(command, "--help").rstrip().splitlines()[-3:]
            self.assertEqual([line.split()[0] for line in last], ["Examples:", "facts", "facts"], command)

    def test_bash_completes_commands_and_options(self):
        script = facts("help", "bash") + '\nask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _facts; echo "${COMPREPLY[*]}"; }\n'
        for words, answer in (("facts ga", "gate"), ("facts gate --base", "--baseline"), ("facts decide --expl", "--explain"), ("facts list --base", "")):
            done = subprocess.run(["bash", "-c", f"{script}ask {words}"], capture_output=True, text=True, check=True)
            self.assertEqual((done.stdout.strip(), done.stderr), (answer, ""), words)

    def test_zsh_and_fish_can_read_theirs(self):
        for shell in ("zsh", "fish"):
            if shutil.which(shell):
                with tempfile.NamedTemporaryFile("w", suffix=f".{shell}") as file:
                    file.write(facts("help", shell))
                    file.flush()
                    subprocess.run([shell, "-n", file.name], check=True)
            self.assertEqual(facts("help", shell).count("'") % 2, 0, shell)

    def test_what_there_is_can_be_listed(self):
        suites = {line.split()[0]: int(line.split()[1]) for line in facts("list").splitlines()}
        self.assertGreater(suites["core"], suites["smoke"])
        self.assertIn("models/llama-3.1-8b", suites)
        self.assertIn("causal_br", facts("keys", "mask"))
        self.assertIn("B200", facts("devices"))

    def test_a_product_is_answered_with_its_description(self):
        for product, name in (("h100", "h100-sxm"), ("A100", "sm80-spec"), ("b200", "sm100-spec")):
            done = subprocess.run([FACTS, "decide", "pass=fwd", "--device", product], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"did you mean {name}?", done.stderr)


if __name__ == "__main__":
    unittest.main()
