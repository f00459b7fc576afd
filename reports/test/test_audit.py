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
        """Pairs of replies: of the side that the rule refuses, and of the side that it lets through."""
        for line in """agrees: refused accepted, refused passed, unbuilt accepted, broken passed
            accepted; numbers not known: accepted accepted
            too strict: passed passed
            too loose: refused refused, refused broken
            too strict + too loose: passed unbuilt
            not answered: unknown accepted, refused unknown, None accepted
            not asked: ours accepted, refused ours""".splitlines():
            word, _, pairs = line.strip().replace(";", ",").rpartition(": ")
            for replies in pairs.split(", "):
                replies = [None if reply == "None" else reply for reply in replies.split()]
                self.assertEqual(said(pair(*replies)), word, replies)
        self.assertEqual(said([]), "")

    def test_accepted_is_too_strict_only_after_the_numbers_of_every_engine_passed(self):
        for a, b, both in (
            ("passed", "unbuilt", "accepted"),
            ("unbuilt", "passed", "accepted"),
            ("passed", "passed", "passed"),
            ("passed", "broken", "broken"),
            ("passed", "unknown", "unknown"),
            (None, "passed", "passed"),
        ):
            self.assertEqual(audit.join(a, b), both, (a, b))

    def test_another_rule_of_the_project_may_refuse_the_other_side(self):
        blind = [audit.Trial(True, False, "refused"), audit.Trial(False, True, "refused")]
        self.assertEqual(said(blind), "both sides refused")
        self.assertEqual(said(blind + pair("refused", "accepted")), "agrees")

    def test_where_a_gate_is_open_both_sides_are_taken(self):
        found = audit.judge([audit.Trial(False, False, word) for word in ("accepted", "passed")])
        self.assertEqual(list(found), ["agrees"])
        here = audit.Found(None, (), (), found, refuses=False)
        self.assertFalse(here.says("agrees"))  # the rule refuses nothing here

    def test_the_first_case_that_shows_a_word_is_named(self):
        more = [audit.Trial(True, False, "accepted")] * 2
        found = audit.judge(pair("refused", "accepted") + more)
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
    def row(verdict, attempt=1, text="", **more):
        reason = {"text": text} if text else {}
        return {"verdict": verdict, "attempt": attempt, "reason": reason, "engines": [], **more}

    def answer(self, *rows):
        found = audit.Answer()
        for row in rows:
            found.add(row, True)
        return found

    def test_the_worst_row_speaks_for_a_case(self):
        wrong = self.row("wrong", text="dk", more=True)
        found = self.answer(self.row("pass", more=True), wrong, self.row("unsupported", text="no"))
        found = found.verdict, found.reason, found.words(True)
        self.assertEqual(found, ("wrong", "dk", "wrong: dk"))

    def test_a_case_that_is_asked_again_speaks_anew(self):
        engines = [{"mode": "A", "index": 8}, {"mode": "B", "index": 3}, {"index": 1}]
        rows = self.row("crash", text="it died"), self.row("pass", 2, engines=engines)
        found = self.answer(*rows)
        self.assertEqual(found.words(True), "right by engines 8 1")
        self.assertEqual(found.reply, "broken")  # but its reply is of all rows

    def test_a_case_without_a_row_has_no_answer(self):
        self.assertEqual(self.answer().words(False), "no answer")
