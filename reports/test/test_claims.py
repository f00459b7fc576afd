"""Claims: what may stand in a file of rules, where a bad line is, and what an edge is. What the harness says of patterns and predicates is in e2e_audit."""

import unittest

import support

from facts_reports.read import claims

HEAD = 'project: thing 1.0\nlink: https://example.org\nrule: t/1\nsays: file: "message"\nkind: decision\n'
FOLDER = support.HERE.parents[1] / "cases" / "claims"


def read(text, *members):
    """A file of rules; `members`: the names of each pattern, as the harness would give them."""
    reader = claims.Reader()
    reader.read(text, "x.claims")
    reader.join(members)
    return reader.claims


def edge(refuse, *names):
    """A rule with one pair of cases, or one case."""
    line = "edge: pass=fwd | x | y" if len(names) == 2 else "edge: pass=fwd"
    return read(f"{HEAD}refuse: {refuse}\n{line}\n", *([name] for name in names))


def case(text="", dtype="bf16"):
    return f"pass=fwd dtype={dtype} {text}".strip()


class Reading(unittest.TestCase):
    def test_a_rule_has_its_source_its_kind_its_predicate_and_its_edge(self):
        text = (
            HEAD
            + "refuse: d.qk%8!=0 # all of them\nnote: a note\nedge: pass=fwd dtype=bf16,f16 | d=100 | d=104\n"
        )
        (claim,) = read(
            text, [case("d=100"), case("d=100", "f16")], [case("d=104"), case("d=104", "f16")]
        )
        self.assertEqual(
            (claim.id, claim.says, claim.refuses, claim.note, claim.kind),
            ("t/1", 'file: "message"', "d.qk%8!=0", "a note", "decision"),
        )
        self.assertEqual(
            (claim.project.name, claim.project.version, claim.project.link),
            ("thing", "1.0", "https://example.org"),
        )
        self.assertEqual(
            claim.pairs,
            [(case("d=100"), case("d=104")), (case("d=100", "f16"), case("d=104", "f16"))],
        )

    def test_the_harness_gets_each_text_at_its_column(self):
        reader = claims.Reader()
        line = "edge: pass=fwd | d=100 | d=104"
        reader.read(f"{HEAD}refuse: sm=90 # why\n{line}\n", "x.claims")
        refused, let = reader.patterns()
        self.assertEqual([one[:2] for one in (refused, let)], [(7, "x.claims")] * 2)
        for word, text in (
            ("pass=fwd", refused[2]),
            ("d=100", refused[2]),
            ("pass=fwd", let[2]),
            ("d=104", let[2]),
        ):
            self.assertEqual(text.index(word), line.index(word))
        self.assertEqual(
            refused[2].split() + let[2].split(), ["pass=fwd", "d=100", "pass=fwd", "d=104"]
        )

    def test_a_rule_refuses_what_any_refuse_selects_and_no_unless(self):
        text = (
            HEAD
            + "refuse: d.qk>128 & sm=90\nrefuse: dtype=f32\nunless: d.qk=256 & cudnn>=9.23\nedge: pass=fwd | d=136 | d=128\n"
        )
        (claim,) = read(text, [case("d=136")], [case()])
        self.assertEqual(
            claim.refuses, "d.qk>128 & sm=90; or dtype=f32; unless d.qk=256 & cudnn>=9.23"
        )
        for name, cudnn, sm, refuses in (
            (case("d=256"), "9.22.0", "90", True),
            (case("d=256"), "9.23.0", "90", False),
            (case("d=136"), "9.23.0", "100", False),
            (case("d=136"), "9.23.0", "90", True),
            (case(dtype="f32"), "9.23.0", "100", True),
        ):
            with self.subTest(name, cudnn=cudnn, sm=sm):
                self.assertEqual(claim.refused(name, claims.Places([(cudnn, sm)])), int(refuses))

    def test_a_bad_line_is_named_with_its_place(self):
        for text, message in (
            ("", "x.claims:1:1: no rule is in this file"),
            ("rule: t/1\n", "x.claims:1:1: belongs to a project"),
            ("project: thing 1\nrule: t/\x1b[31m\n", "x.claims:2:1: a control character"),
            ("project: thing\n", "x.claims:1:10: project: takes a name and a version"),
            ("project: thing 1\nsays: x\n", "x.claims:2:1: belongs to a rule"),
            (
                "project: thing 1\nrul: t/1\n",
                "x.claims:2:1: rul begins no line of claims; allowed: project: link: rule: says: kind: refuse: unless: edge: "
                "untestable: note:; did you mean rule?",
            ),
            (
                "project: thing 1\nrule: t/1\nkind: decison\n",
                "x.claims:3:7: decison is not a kind; allowed: decision numbers caller; did you mean decision?",
            ),
            ("project: thing 1\nrule:\n", "x.claims:2:6: a value is missing after the colon"),
            (
                HEAD + "refuse: sm=90\nedge: pass=fwd d=100 | d=104\n",
                "x.claims:7:7: edge: takes COMMON | REFUSED | LET THROUGH",
            ),
            (
                HEAD + "refuse: sm=90\nedge: pass=fwd | d=1 |\n",
                "x.claims:7:7: edge: takes COMMON | REFUSED | LET THROUGH",
            ),
            (HEAD + "refuse: sm=90\nrule: t/2\n", "x.claims:3:1: the rule t/1 lacks edge:"),
            (HEAD + "edge: pass=fwd | d=100 | d=104\n", "x.claims:3:1: the rule t/1 lacks refuse:"),
            (
                HEAD + "untestable: why\nedge: pass=fwd | d=100 | d=104\n",
                "x.claims:3:1: the rule t/1 is untestable and has a predicate or an edge",
            ),
            (
                HEAD + "untestable: why\nrule: t/1\n",
                "x.claims:7:7: t/1 is there already: x.claims:3",
            ),
            (
                "project: thing 1\nrule: t/1\nsays: x\nkind: caller\nrefuse: sm=90\nedge: pass=fwd\n",
                "x.claims:2:1: the rule t/1 lacks untestable:",
            ),
            (
                "project: thing 1\nrule: t/1\nkind: decision\nuntestable: x\n",
                "x.claims:2:1: the rule t/1 lacks says:",
            ),
            (
                "project: thing 1\nrule: t/1\nsays: x\nuntestable: x\n",
                "x.claims:2:1: the rule t/1 lacks kind:",
            ),
        ):
            with self.subTest(text), self.assertRaises(claims.ClaimsError) as caught:
                read(text)
            self.assertTrue(str(caught.exception).startswith(message), caught.exception)

    def test_text_of_any_kind_is_read_or_refused(self):
        for text in (
            "\0",
            ":\n:",
            "project: a b\nrule: \xff",
            HEAD + "edge: |||",
            HEAD + "refuse: ((((",
            "x" * 20000,
            "project: a b\n" * 3,
            "#",
            "rule",
        ):
            with self.subTest(text[:40]):
                try:
                    read(text)
                except claims.ClaimsError as error:
                    self.assertRegex(str(error), r"^x\.claims:\d+:\d+: .")

    def test_every_shipped_rule_is_read(self):
        reader, chosen = claims.load([], FOLDER)
        self.assertEqual(len(reader.projects), 3)
        self.assertEqual(chosen, set(reader.claims))
        self.assertGreaterEqual(sum(not claim.untestable for claim in reader.claims), 140)


class Edges(unittest.TestCase):
    def test_an_edge_that_is_none_is_an_error(self):
        for refuse, names, what in (
            ("d.qk%8!=0", ("d=96", "d=104"), "is never refused by the rule"),
            ("d.qk%8!=0", ("d=100", "d=101"), "is refused on both sides"),
            (
                "d.qk%8!=0",
                ("d=104", "d=100"),
                "is refused on the side that the rule should let through",
            ),
            ("d.qk%8!=0", ("d=100",), "is refused by every version for every device"),
            ("cudnn<8", ("",), "is never refused by the rule"),
        ):
            with self.subTest(refuse, names=names), self.assertRaises(claims.ClaimsError) as caught:
                edge(refuse, *map(case, names))
            self.assertEqual(
                str(caught.exception),
                f"x.claims:7:1: t/1 has no edge here: {case(names[0])} {what}",
            )

    def test_the_sides_of_an_edge_are_as_many_cases_and_differ_in_one_key(self):
        for sides, what in (
            (
                ([case("d=100"), case("d=101")], [case("d=104")]),
                "both sides of an edge need the same number of cases",
            ),
            (
                ([case("d=100")], [case("s=64 d=104")]),
                "the two sides of an edge differ in exactly one key (mask, window and align are one); these differ in s d",
            ),
            (([case("d=100")] * 65, [case("d=104")] * 65), "a rule has at most 64 pairs of cases"),
        ):
            with self.subTest(what), self.assertRaises(claims.ClaimsError) as caught:
                read(HEAD + "refuse: d.qk%8!=0\nedge: pass=fwd | x | y\n", *sides)
            self.assertEqual(str(caught.exception), f"x.claims:7:1: {what}")

    def test_an_edge_between_versions_or_devices_needs_no_other_side(self):
        edge("cudnn>=9.10.0 & cudnn<=9.10.1", case())
        edge("sm<90", case(dtype="e4m3"))

    def test_a_band_is_one_axis_however_it_is_spelled(self):
        edge("align=br", case("mask=causal_br"), case())
        edge("align=br", case("window=64:0 align=br"), case("mask=causal"))
        edge("layout=thd", case("layout=thd"), case())  # whose Stats follow

    def test_reach_says_where_a_rule_refuses(self):
        self.assertEqual(
            edge("sm>=100 & sm<110 & cudnn<9.9.1", case())[0].reach(),
            "cudnn 9.0.0..9.9.0, sm 100, 103, 107",
        )
        self.assertEqual(edge("sm=90 & cudnn>=9.10", case())[0].reach(), "cudnn 9.10.0.., sm 90")

    def test_a_case_is_asked_without_guards_and_where_it_runs_of_every_engine(self):
        name = case("want=stats stats_dtype=bf16")
        self.assertEqual(
            claims.asked(name, False), "pass=fwd dtype=bf16 want=stats guards=off stats_dtype=bf16"
        )
        self.assertEqual(
            claims.asked("pass=fwd dtype=bf16 engine=6", True),
            "pass=fwd dtype=bf16 engine=6 guards=off",
        )


if __name__ == "__main__":
    unittest.main()
