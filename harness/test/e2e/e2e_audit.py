"""facts audit, as people start it: two real versions, described devices, a few rules."""

import json
import os
import re
import shutil
import tempfile

import e2e

ASKED = ("--cudnn", f"{e2e.OLD},{e2e.NEW}")
RULES = e2e.data("audit.claims")


class Audit(e2e.TestCase):
    @classmethod
    def setUpClass(cls):
        """Asks cuDNN about RULES once; the tests judge copies of that record."""
        for build in (e2e.OLD, e2e.NEW):
            e2e.need(build)
        cls.kept = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.kept)
        cls.rules, record = os.path.join(cls.kept, "x.claims"), os.path.join(cls.kept, "asked")
        with open(cls.rules, "w", encoding="utf-8") as file:
            file.write(RULES)
        words = (*ASKED, "--device", "h100-sxm,sm100-spec", "-o", record)
        cls.asked = e2e.facts("audit", cls.rules, "--json", *words)

    def setUp(self):
        super().setUp()
        self.record = self.path("r.jsonl")
        shutil.copy(os.path.join(self.kept, "asked"), self.record)

    def judged(self, *words, rules="", records=()):
        """What is said of records, of this test's unless others are named."""
        named = [word for record in records or (self.record,) for word in ("--from", record)]
        return e2e.facts("audit", rules or self.rules, *words, *named)

    def audit(self, *words, devices="h100-sxm"):
        record = self.path("new.jsonl")
        return e2e.facts("audit", *words, *ASKED, "--device", devices, "-o", record, "--overwrite")

    def lines(self):
        with open(self.record, encoding="utf-8") as file:
            return file.readlines()

    def test_each_rule_gets_the_word_that_the_versions_give_it(self):
        done = self.asked
        self.assertEqual(done.status, 1, done.text)  # t/loose is a finding
        lines = [json.loads(line) for line in done.out.splitlines()]
        said = {(x["rule"], x.get("device", ""), x["verdict"]) for x in lines}
        for device in ("h100-sxm", "sm100-spec"):
            self.assertIn(("t/8", device, "agrees"), said)
            self.assertIn(("t/strict", device, "accepted, numbers not known"), said)
        self.assertIn(("t/loose", "sm100-spec", "too loose"), said)
        self.assertIn(("t/loose", "h100-sxm", "agrees"), said)
        self.assertIn(("t/api", "", "untestable"), said)
        old = next(x for x in lines if x["rule"] == "t/old")
        self.assertIn("it refuses for cudnn 9.0.0..9.5.2", old["why"])
        loose = next(x for x in lines if x["verdict"] == "too loose")
        self.assertEqual((loose["first"], loose["last"]), (e2e.OLD, e2e.OLD))
        self.assertIn("Embedding dim per head", loose["backend"])
        self.assertIn("guards=off", loose["case"])

    def test_shipped_rules_are_chosen_by_name(self):
        done = self.audit("fe/H04", "fe/B06", "pt/multiple-of-8", devices="sm100-spec")
        self.assertEqual(done.status, 0, done.text)
        self.assertIn("cudnn-frontend 1.32.0: 2 rules: 2 agree", done.out)
        self.assertIn("PyTorch main@001f694a: 1 rule: 1 agrees", done.out)

    def test_markdown_counts_and_names_what_disagrees(self):
        done = self.judged("--markdown")
        self.assertIn("| test 1.0 | 5 | 0 | 1 | 1 | 0 | 1 | 0 | 0 | 2 |", done.out)
        self.assertIn("## Too loose", done.out)
        self.assertIn("- **t/loose** (decision): ", done.out)

    def test_its_page_has_the_rules_that_disagree_beside_the_decisions(self):
        done = self.judged("--page", self.path("page"))
        self.assertIn(f"page: {self.folder}/page/index.html", done.text)
        with open(self.path("page", "index.html"), encoding="utf-8") as file:
            form = '<script type="application/json" id="data">(.*?)</script>'
            data = json.loads(re.search(form, file.read(), re.S)[1])
        found = {(one["id"], one["word"]): len(one["shown"]) for one in data["audit"]}
        strict = ("t/strict", "accepted, numbers not known")
        self.assertEqual(found, {strict: 4, ("t/loose", "too loose"): 1})

    def test_a_record_is_judged_as_the_run_that_made_it(self):
        keys = ("rule", "device", "first", "last", "verdict", "case", "backend")
        again = self.judged("--json")
        found = [
            [[one.get(key) for key in keys] for one in map(json.loads, done.out.splitlines())]
            for done in (self.asked, again)
        ]
        self.assertEqual(again.status, self.asked.status, again.text)
        asked, judged = ([one for one in words if one[4] != "untestable"] for words in found)
        self.assertEqual(asked, judged)

    def test_several_records_are_judged_as_one(self):
        lines = self.lines()
        rows = [line for line in lines if '"verdict"' in line]
        parts = []
        for i in range(2):
            kept = [line for line in lines if line not in rows or rows.index(line) % 2 == i]
            parts.append(self.write(f"part{i}.jsonl", "".join(kept)))
        whole, again = self.judged("--json"), self.judged("--json", records=parts)
        self.assertEqual((again.status, again.out), (whole.status, whole.out), again.text)
        self.assertNotEqual(self.judged("--json", records=parts[1:]).out, whole.out)

    def test_what_ran_and_was_right_is_too_strict(self):
        text = "".join(self.lines()).replace('"grade":"decided"', '"grade":"measured"')
        self.write("r.jsonl", text.replace(" guards=off", " engine=all guards=off"))
        done = self.judged()
        self.assertStatus(done, 1)
        strict = "too strict: the rule refuses a case that every offered engine computes right"
        self.assertIn(strict + "\n  t/strict (decision)", done.out)

    def test_a_record_without_these_rules_or_of_nothing_is_said(self):
        self.assertStatus(self.judged(rules="fe/C12"), 5)
        self.assertStatus(self.judged(records=[self.rules]), 2)  # no record
        self.assertStatus(e2e.facts("audit", "--from", self.record, "--cudnn", e2e.NEW), 2)
        for command in ("audit", "calibrate"):  # as merge, report and diff
            self.assertStatus(e2e.facts(command, "--from", self.record + ".not"), 2)

    def test_bad_input_is_one_line_with_its_place(self):
        dims = "d.qk%8!=0"
        for refuse, edge, place in (
            ("mas=causal", "", ":5:9: no key 'mas'"),
            (dims + " & sm=90 &", "", ":5:28: expected a key"),
            ("sm=90", "pass=fwd | d=100 | dd=104", ":6:26: dd is not a key"),
            (
                dims,
                "pass=fwd s=1..65 | d=100 | d=104",
                ":6:1: a rule has at most 64 pairs of cases",
            ),
            (
                dims,
                "pass=fwd | d=100,101 | d=104",
                ":6:1: both sides of an edge need the same number",
            ),
            ("d.qk>128", "pass=fwd | d=64 | d=32", ":6:1: x/1 has no edge here: pass=fwd"),
        ):
            edge = f"edge: {edge}\n" if edge else ""
            rule = f"project: x 1\nrule: x/1\nsays: x\nkind: decision\nrefuse: {refuse}\n{edge}"
            bad = self.write("x.claims", rule)
            self.assertOneLine(self.audit(bad), 2, bad + place)

    def test_what_selects_nothing_or_is_unknown_is_said(self):
        self.assertStatus(self.audit("fe/H04", "--where", "mask=causal"), 5)
        self.assertStatus(self.audit("fe/H04", "--where", "mas=causal"), 2)
        self.assertOneLine(self.audit("fe/H4"), 2, "did you mean fe/H04?")
        self.assertStatus(e2e.facts("audit", "fe/H04", "--cudnn", "9.99.0"), 3)
        for devices in ("cpu", "h100-sxm,0"):
            self.assertStatus(self.audit("fe/H04", devices=devices), 2)


if __name__ == "__main__":
    e2e.main()
