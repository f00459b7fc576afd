"""facts self: what it prints, how it ends, and that the documentation says what it says."""

import json
import os
import subprocess

import e2e

NUMBERS = os.path.join(e2e.SOURCE, "docs", "numerics.md")


def rows_of(text, first):
    """The cells of a Markdown table whose first heading starts with `first`."""
    lines = text[text.index(f"| {first}") :].splitlines()
    return [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in lines[
            : next((i for i, said in enumerate(lines) if not said.startswith("|")), None)
        ]
    ]


class Self(e2e.TestCase):
    def test_a_liar_has_a_line_for_each_type_and_size(self):
        done = e2e.facts("self", "--quick", "--liar", "fwd.o_gain_1e3", "--json")
        self.assertStatus(done, 0)
        lines = [json.loads(line) for line in done.out.splitlines()]
        self.assertEqual(set(lines[-1]), {"clean", "false_alarms"})
        self.assertEqual(lines[-1]["false_alarms"], 0)
        self.assertGreater(lines[-1]["clean"], 0)
        found = {(line["liar"], line["dtype"]): line for line in lines[:-1]}
        self.assertEqual(len(found), 7)
        line = found["fwd.o_gain_1e3", "bf16"]
        self.assertEqual(
            (line["result"], line["fill"], line["gate"], line["tensor"]),
            ("killed", "gauss", "tg", "o"),
        )
        self.assertGreater(line["ratio"], 1)
        done = e2e.facts("self", "--quick", "--liar", "fwd.o_trunc", "--dtype", "f32", "--json")
        self.assertStatus(done, 0)
        line = json.loads(done.out.splitlines()[0])
        self.assertEqual(
            (line["liar"], line["dtype"], line["result"]), ("fwd.o_trunc", "f32", "not_applicable")
        )
        self.assertIn("why", line)

    def test_bad_input_is_one_line(self):
        self.assertOneLine(e2e.facts("self", "--liar", "fwd.nonsense"), 2)
        self.assertOneLine(e2e.facts("self", "--dtype", "f64"), 2)
        self.assertOneLine(e2e.facts("self", "--clean", "many"), 2)
        self.assertOneLine(e2e.facts("self", "--json", "--liar", "fwd.nonsense"), 2)

    def test_what_would_be_ignored_is_refused(self):
        for words in (["--dtype", "bf16"], ["--liar", "bwd."], ["--markdown"]):
            self.assertOneLine(e2e.facts("self", "--clean", "5", *words), 2, "--clean")

    def test_the_program_behind_it_helps_who_starts_it_by_hand(self):
        program = e2e.FACTS + "-self"
        for words, status in ((["--help"], 0), (["-h"], 0), ([], 2), (["--clean", "5"], 2)):
            done = subprocess.run(
                [program, *words],
                env=e2e.environment(),
                capture_output=True,
                text=True,
                check=False,
                timeout=300,
            )
            self.assertEqual(done.returncode, status, words)
            self.assertIn("facts self", done.stderr if status else done.stdout)

    def test_clean_evaluations_alone(self):
        done = e2e.facts("self", "--clean", "20", "--seed", "5")
        self.assertStatus(done, 0)
        self.assertRegex(
            done.out, r"^20 clean evaluations, \d+ answers judged, 0 false alarms; worst  t1 0\."
        )

    def test_the_documentation_has_the_comparison_that_is_printed(self):
        program = os.path.join(e2e.BIN, "bench_criteria")
        self.assertEqual(
            subprocess.run(
                [program, "--quick", "--liar"], capture_output=True, check=False, timeout=300
            ).returncode,
            2,
        )
        words = (
            [] if os.environ.get("FACTS_ALL") else ["--quick"]
        )  # all columns take minutes: the night
        done = e2e.Done(
            subprocess.run(
                [program, *words],
                capture_output=True,
                text=True,
                check=False,
                timeout=3600 if not words else 300,
            )
        )
        self.assertStatus(done, 0)
        with open(NUMBERS, encoding="utf-8") as file:
            documented = rows_of(file.read(), "criterion (fill)")
        printed = rows_of(done.out, "criterion (fill)")
        columns = 2 if words else None
        self.assertEqual([row[:columns] for row in printed], [row[:columns] for row in documented])


if __name__ == "__main__":
    e2e.main()
