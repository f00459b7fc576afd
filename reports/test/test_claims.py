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
        line = "edge: pass=fwd dtype=bf16,f16 | d=100 | d=104\n"
        text = HEAD + "refuse: d.qk%8!=0 # all of them\nnote: a note\n" + line
        sides = [[case(d), case(d, "f16")] for d in ("d=100", "d=104")]
        (claim,) = read(text, *sides)
        found = claim.id, claim.says, claim.refuses, claim.note, claim.kind
        self.assertEqual(found, ("t/1", 'file: "message"', "d.qk%8!=0", "a note", "decision"))
        found = claim.project.name, claim.project.version, claim.project.link
        self.assertEqual(found, ("thing", "1.0", "https://example.org"))
        self.assertEqual(claim.pairs, list(zip(*sides)))

    def test_the_harness_gets_each_text_at_its_column(self):
        reader = claims.Reader()
        line = "edge: pass=fwd | d=100 | d=104"
        reader.read(f"{HEAD}refuse: sm=90 # why\n{line}\n", "x.claims")
        for (*place, text), words in zip(reader.patterns(), ("pass=fwd d=100", "pass=fwd d=104")):
            self.assertEqual((place, text.split()), ([7, "x.claims"], words.split()))
            for word in words.split():
                self.assertEqual(text.index(word), line.index(word))

    def test_a_rule_refuses_what_any_refuse_selects_and_no_unless(self):
        rules = "refuse: d.qk>128 & sm=90\nrefuse: dtype=f32\nunless: d.qk=256 & cudnn>=9.23\n"
        (claim,) = read(f"{HEAD}{rules}edge: pass=fwd | d=136 | d=128\n", [case("d=136")], [case()])
        said = "d.qk>128 & sm=90; or dtype=f32; unless d.qk=256 & cudnn>=9.23"
        self.assertEqual(claim.refuses, said)
        for name, cudnn, sm, refuses in (
            (case("d=256"), "9.22.0", "90", 1),
            (case("d=256"), "9.23.0", "90", 0),
            (case("d=136"), "9.23.0", "100", 0),
            (case("d=136"), "9.23.0", "90", 1),
            (case(dtype="f32"), "9.23.0", "100", 1),
        ):
            with self.subTest(name, cudnn=cudnn, sm=sm):
                self.assertEqual(claim.refused(name, claims.Places([(cudnn, sm)])), refuses)

    def test_a_bad_line_is_named_with_its_place(self):
        thing, rule = "project: thing 1\n", "project: thing 1\nrule: t/1\n"
        words = "project: link: rule: says: kind: refuse: unless: edge: untestable: note:"
        kinds = "decision numbers caller order; did you mean decision?"
        sides = "7:7: edge: takes COMMON | REFUSED | LET THROUGH"
        edge = "edge: pass=fwd | d=100 | d=104\n"
        both = "3:1: the rule t/1 is untestable and has a predicate or an edge"
        for text, message in (
            ("", "1:1: no rule is in this file"),
            ("rule: t/1\n", "1:1: belongs to a project"),
            (thing + "rule: t/\x1b[31m\n", "2:1: a control character"),
            ("project: thing\n", "1:10: project: takes a name and a version"),
            (thing + "says: x\n", "2:1: belongs to a rule"),
            (
                thing + "rul: t/1\n",
                f"2:1: rul begins no line of claims; allowed: {words}; did you mean rule?",
            ),
            (rule + "kind: decison\n", f"3:7: decison is not a kind; allowed: {kinds}"),
            (thing + "rule:\n", "2:6: a value is missing after the colon"),
            (HEAD + "refuse: sm=90\nedge: pass=fwd d=100 | d=104\n", sides),
            (HEAD + "refuse: sm=90\nedge: pass=fwd | d=1 |\n", sides),
            (HEAD + "refuse: sm=90\nrule: t/2\n", "3:1: the rule t/1 lacks edge:"),
            (HEAD + edge, "3:1: the rule t/1 lacks refuse:"),
            (HEAD + "untestable: why\n" + edge, both),
            (HEAD + "untestable: why\nrule: t/1\n", "7:7: t/1 is there already: x.claims:3"),
            (
                rule + "says: x\nkind: caller\nrefuse: sm=90\nedge: pass=fwd\n",
                "2:1: the rule t/1 lacks untestable:",
            ),
            (rule + "kind: decision\nuntestable: x\n", "2:1: the rule t/1 lacks says:"),
            (rule + "says: x\nuntestable: x\n", "2:1: the rule t/1 lacks kind:"),
        ):
            with self.subTest(text), self.assertRaises(claims.ClaimsError) as caught:
                read(text)
            self.assertTrue(
                str(caught.exception).startswith(f"x.claims:{message}"), caught.exception
            )

    def test_text_of_any_kind_is_read_or_refused(self):
        odd = ["\0", ":\n:", "project: a b\nrule: \xff", "x" * 20000, "project: a b\n" * 3]
        for text in (*odd, "#", "rule", HEAD + "edge: |||", HEAD + "refuse: (((("):
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

    def test_a_project_stands_for_its_rules(self):
        for word in ("pytorch", "PyTorch", "transformer-engine", "cudnn-frontend"):
            _, chosen = claims.load([word], FOLDER)
            names = {claim.project.name for claim in chosen}
            self.assertEqual([claims._bare(name) for name in names], [claims._bare(word)])

    def test_the_programs_read_one_predicate_of_a_rule(self):
        rules = "refuse: d.qk>128 & sm=90\nrefuse: dtype=f32\nunless: d.qk=256\n"
        reader = claims.Reader()
        reader.read(f"{HEAD}{rules}edge: pass=fwd\n", "x.claims")
        said = reader.claims[0].caller()
        self.assertEqual(said["refuse"], "((d.qk>128 & sm=90) | (dtype=f32)) & !((d.qk=256))")
        self.assertEqual((said["rule"], said["project"], said["version"]), ("t/1", "thing", "1.0"))


class Edges(unittest.TestCase):
    def bad(self, what, make, *args):
        with self.subTest(what), self.assertRaises(claims.ClaimsError) as caught:
            make(*args)
        self.assertEqual(str(caught.exception), f"x.claims:7:1: {what}")

    def test_an_edge_that_is_none_is_an_error(self):
        for refuse, names, what in (
            ("d.qk%8!=0", "d=96 d=104", "never refused by the rule"),
            ("d.qk%8!=0", "d=100 d=101", "refused on both sides"),
            ("d.qk%8!=0", "d=104 d=100", "refused on the side that the rule should let through"),
            ("d.qk%8!=0", "d=100", "refused by every version for every device"),
            ("cudnn<8", "d=64", "never refused by the rule"),
        ):
            names = [case(name) for name in names.split()]
            self.bad(f"t/1 has no edge here: {names[0]} is {what}", edge, refuse, *names)

    def test_the_sides_of_an_edge_are_as_many_cases_and_differ_in_one_key(self):
        keys = "(mask, window and align are one); these differ in s d"
        for refused, let, what in (
            ("d=100 d=101", case("d=104"), "both sides of an edge need the same number of cases"),
            (
                "d=100",
                case("s=64 d=104"),
                f"the two sides of an edge differ in exactly one key {keys}",
            ),
        ):
            text = HEAD + "refuse: d.qk%8!=0\nedge: pass=fwd | x | y\n"
            self.bad(what, read, text, [case(d) for d in refused.split()], [let])
        many = [case("d=100")] * 65, [case("d=104")] * 65
        self.bad("a rule has at most 64 pairs of cases", read, text, *many)

    def test_an_edge_between_versions_or_devices_needs_no_other_side(self):
        edge("cudnn>=9.10.0 & cudnn<=9.10.1", case())
        edge("sm<90", case(dtype="e4m3"))

    def test_a_band_is_one_axis_however_it_is_spelled(self):
        edge("align=br", case("mask=causal_br"), case())
        edge("align=br", case("window=64:0 align=br"), case("mask=causal"))
        edge("layout=thd", case("layout=thd"), case())  # whose Stats follow

    def test_reach_says_where_a_rule_refuses(self):
        for refuse, said in (
            ("sm>=100 & sm<110 & cudnn<9.9.1", "cudnn 9.0.0..9.9.0, sm 100, 103, 107"),
            ("sm=90 & cudnn>=9.10", "cudnn 9.10.0.., sm 90"),
        ):
            self.assertEqual(edge(refuse, case())[0].reach(), said)

    def test_a_case_is_asked_without_guards_and_where_it_runs_of_every_engine(self):
        base = "pass=fwd dtype=bf16 "
        for name, runs, asked in (
            ("want=stats stats_dtype=bf16", False, "want=stats guards=off stats_dtype=bf16"),
            ("engine=6", True, "engine=6 guards=off"),
        ):
            self.assertEqual(claims.asked(base + name, runs), base + asked)
