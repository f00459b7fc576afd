"""What a rule is worth: its word on each case against the backend's."""

import unittest

import support  # noqa: F401  (the path of the package)

from facts_reports.commands import audit


def pair(refused, let):
    return [audit.Trial(True, False, refused), audit.Trial(False, False, let)]


def said(trials):
    return " + ".join(audit.judge(trials))


class Judging(unittest.TestCase):
    def test_a_rule_agrees_when_one_side_is_refused_and_the_other_taken(self):
        for replies in (
            ("refused", "accepted"),
            ("refused", "passed"),
            ("unbuilt", "accepted"),
            ("broken", "passed"),
        ):
            self.assertEqual(said(pair(*replies)), "agrees", replies)

    def test_accepted_is_too_strict_only_after_the_numbers_of_every_engine_passed(self):
        self.assertEqual(said(pair("accepted", "accepted")), "accepted, numbers not known")
        self.assertEqual(said(pair("passed", "passed")), "too strict")
        for a, b, both in (
            ("passed", "unbuilt", "accepted"),
            ("unbuilt", "passed", "accepted"),
            ("passed", "passed", "passed"),
            ("passed", "broken", "broken"),
            ("passed", "unknown", "unknown"),
            (None, "passed", "passed"),
        ):
            self.assertEqual(audit.join(a, b), both, (a, b))

    def test_what_is_let_through_and_refused_or_wrong_is_too_loose(self):
        self.assertEqual(said(pair("refused", "refused")), "too loose")
        self.assertEqual(said(pair("refused", "broken")), "too loose")
        self.assertEqual(said(pair("passed", "unbuilt")), "too strict + too loose")

    def test_another_rule_of_the_project_may_refuse_the_other_side(self):
        blind = [audit.Trial(True, False, "refused"), audit.Trial(False, True, "refused")]
        self.assertEqual(said(blind), "both sides refused")
        self.assertEqual(said(blind + pair("refused", "accepted")), "agrees")

    def test_what_was_not_answered_is_never_agreement(self):
        for replies, word in (
            (("unknown", "accepted"), "not answered"),
            (("refused", "unknown"), "not answered"),
            ((None, "accepted"), "not answered"),
            (("ours", "accepted"), "not asked"),
            (("refused", "ours"), "not asked"),
        ):
            self.assertEqual(said(pair(*replies)), word, replies)
        self.assertEqual(said([]), "")

    def test_where_a_gate_is_open_both_sides_are_taken(self):
        found = audit.judge(
            [audit.Trial(False, False, "accepted"), audit.Trial(False, False, "passed")]
        )
        self.assertEqual(list(found), ["agrees"])
        self.assertFalse(
            audit.Found(None, (), (), found, refuses=False).says("agrees")
        )  # the rule refuses nothing here

    def test_the_first_case_that_shows_a_word_is_named(self):
        found = audit.judge(
            pair("refused", "accepted") + [audit.Trial(True, False, "accepted")] * 2
        )
        self.assertEqual(found, {"accepted, numbers not known": 2})

    def test_a_row_is_cudnns_word_or_ours(self):
        for row, reply in (
            (("pass", False, False), "accepted"),
            (("pass", True, False), "passed"),
            (("unsupported", False, True), "refused"),
            (("unsupported", False, False), "ours"),
            (("build_fail", False, False), "unbuilt"),
            (("wrong", True, False), "broken"),
            (("crash", False, False), "broken"),
            (("mistrusted", True, False), "unknown"),
            (("inconclusive", False, False), "unknown"),
        ):
            self.assertEqual(audit.reply_of(*row), reply, row)


class Answers(unittest.TestCase):
    @staticmethod
    def row(verdict, attempt=1, reason="", **more):
        return {
            "verdict": verdict,
            "attempt": attempt,
            "reason": {"text": reason} if reason else {},
            "engines": [],
            **more,
        }

    def answer(self, *rows):
        found = audit.Answer()
        for row in rows:
            found.add(row, True)
        return found

    def test_the_worst_row_speaks_for_a_case(self):
        found = self.answer(
            self.row("pass", more=True),
            self.row("wrong", reason="dk", more=True),
            self.row("unsupported", reason="no"),
        )
        self.assertEqual(
            (found.verdict, found.reason, found.words(True)), ("wrong", "dk", "wrong: dk")
        )

    def test_a_case_that_is_asked_again_speaks_anew(self):
        found = self.answer(
            self.row("crash", reason="it died"),
            self.row(
                "pass",
                2,
                engines=[{"mode": "A", "index": 8}, {"mode": "B", "index": 3}, {"index": 1}],
            ),
        )
        self.assertEqual(found.words(True), "right by engines 8 1")
        self.assertEqual(found.reply, "broken")  # but its reply is of all rows

    def test_a_case_without_a_row_has_no_answer(self):
        self.assertEqual(self.answer().words(False), "no answer")


if __name__ == "__main__":
    unittest.main()
