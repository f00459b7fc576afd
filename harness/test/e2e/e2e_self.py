"""facts self: what it prints, and how it ends."""

import json

import e2e

SMALL = "pass=fwd h=2 s=75/140 d=64"


class Self(e2e.TestCase):
    def test_a_fault_has_a_line_for_each_type_and_suite(self):
        done = e2e.facts("self", SMALL, "pass=bwd h=2 s=20 d=16", "--liar", "fwd.o_trunc", "--json")
        self.assertStatus(done, 0)
        lines = [json.loads(line) for line in done.out.splitlines()]
        self.assertEqual(lines[-1]["false_alarms"], 0)
        self.assertGreater(lines[-1]["clean"], 0)
        shown = {(line["fault"], line["dtype"], line["suite"]): line for line in lines[:-1]}
        self.assertEqual(len(shown), 2 * 6 * 2)  # fwd.o_trunc_tile too; f32 has no cast there
        line = shown["fwd.o_trunc", "bf16", SMALL]
        self.assertEqual(
            (line["able"], line["asked"], line["red"], line["gate"], line["tensor"]),
            (1, 1, 1, "tg", "o"),
        )
        self.assertGreater(line["ratio"], 1)
        line = shown["fwd.o_trunc", "bf16", "pass=bwd h=2 s=20 d=16"]
        self.assertEqual((line["able"], line["asked"], line["red"]), (0, 0, 0))

    def test_what_no_suite_shows_is_listed(self):
        done = e2e.facts("self", SMALL, "--liar", "bwd.no_delta", "--dtype", "bf16")
        self.assertStatus(done, 0)
        self.assertIn("no suite shows bwd.no_delta in bf16\n", done.out)
        self.assertIn("no case can show it", done.out)

    def test_bad_input_is_one_line(self):
        self.assertOneLine(e2e.facts("self", "--liar", "fwd.nonsense"), 2, "no fault has")
        self.assertOneLine(e2e.facts("self", "--dtype", "f64"), 2)
        self.assertOneLine(e2e.facts("self", "--clean", "many"), 2)
        self.assertOneLine(e2e.facts("self", "--json", "--liar", "fwd.nonsense"), 2)

    def test_what_would_be_ignored_is_refused(self):
        for words in (["--dtype", "bf16"], ["--liar", "bwd."], ["--markdown"], ["core"]):
            self.assertOneLine(e2e.facts("self", "--clean", "5", *words), 2, "--clean")

    def test_the_program_behind_it_helps_who_starts_it_by_hand(self):
        program = e2e.FACTS + "-self"
        for words, status in ((["--help"], 0), (["-h"], 0), ([], 2), (["--clean", "5"], 2)):
            done = e2e.started([program, *words], env=e2e.environment())
            self.assertEqual(done.returncode, status, words)
            self.assertIn("facts self", done.stderr if status else done.stdout)

    def test_clean_evaluations_alone(self):
        done = e2e.facts("self", "--clean", "20", "--seed", "5")
        self.assertStatus(done, 0)
        self.assertRegex(
            done.out, r"^20 clean evaluations, \d+ answers judged, 0 false alarms; worst  t1 0\."
        )


if __name__ == "__main__":
    e2e.main()
