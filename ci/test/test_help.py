"""Help has one source: docs/commands.md, the man pages and the shell completions are what the program prints."""
import os
import pty
import re
import select
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
FACTS = Path(os.environ.get("FACTS_BIN", HOME / "build/release/bin")) / "facts"


def facts(*words):
    return subprocess.run([FACTS, *words], capture_output=True, text=True, check=True, env={**os.environ, "FACTS_HOME": str(HOME)}).stdout


SETUP = {"bash": "PS1='> '; bind 'set enable-bracketed-paste off'; source ./_facts", "zsh": "PS1='> '; fpath=($PWD $fpath); autoload -Uz compinit; compinit -D -u"}


def completed(shell, folder, lines):
    """{line: what the shell makes of it}. fish prints that; in bash and zsh a function of the name `facts` prints the words of a line that is typed at a terminal."""
    if shell == "fish":
        def ask(line):
            done = subprocess.run(["fish", "--no-config", "-c", f"source ./_facts; complete -C '{line}'"], cwd=folder, capture_output=True, text=True, check=True, env={**os.environ, "HOME": str(folder)})
            words = [answer.split("\t")[0] for answer in done.stdout.splitlines()]
            return " ".join([*line.split()[:-1], *words]) if len(words) == 1 else line
        return {line: ask(line) for line in lines}
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(folder)
        os.execvpe(shell, [shell, *(["--norc", "--noprofile"] if shell == "bash" else ["-f"]), "-i"], {"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "dumb"})

    def say(text, end):
        os.write(terminal, text.encode())
        said = ""
        while not (found := re.search(end, said)):
            if not select.select([terminal], [], [], 20)[0]:
                raise AssertionError(f"{shell}: {text!r}: {said!r}")
            said += os.read(terminal, 4096).decode(errors="replace")
        return found
    try:
        say(f"{SETUP[shell]}; facts() {{ echo \"GOT($*)\"; }}; stty columns 500; echo READY$((1 + 1))\n", "READY2")
        return {line: "facts " + say(f"{line}\t\n", r"GOT\((.*?)\)")[1] for line in lines}
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)


@unittest.skipUnless(FACTS.exists(), f"{FACTS} is not built")
class Help(unittest.TestCase):
    maxDiff = None

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

    def test_shells_complete_commands_words_and_options(self):
        """What each shell makes of these lines when Tab is pressed at their end. A word of two that fit stays as it was typed."""
        lines = {"facts ga": "facts gate", "facts gate --base": "facts gate --baseline", "facts decide --expl": "facts decide --explain", "facts cudnn rem": "facts cudnn remove",
                 "facts expect go": "facts expect golden", "facts list --base": "facts list --base", "facts cudnn list --whe": "facts cudnn list --whe",
                 "facts report rec": "facts report record.jsonl", "facts decide -o rec": "facts decide -o record.jsonl", "facts run --where x --shar": "facts run --where x --shard"}
        for shell in ("bash", "zsh", "fish"):
            if not shutil.which(shell):
                self.assertFalse(os.environ.get("FACTS_CI"), f"{shell} is not installed")
                continue
            with self.subTest(shell), tempfile.TemporaryDirectory() as folder:
                Path(folder, "_facts").write_text(facts("help", shell), encoding="utf-8")
                Path(folder, "record.jsonl").touch()
                self.assertEqual(completed(shell, Path(folder), lines), lines)

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
