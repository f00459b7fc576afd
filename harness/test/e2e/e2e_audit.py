"""facts audit, as people start it: two real versions, described devices, a few rules."""

import json
import os
import re
import shutil
import tempfile
import unittest

import e2e

BUILDS = f"{e2e.OLD},{e2e.NEW}"
RULES = """
project: test 1.0
rule: t/8
says: nowhere: dims
kind: decision
refuse: d.qk%8!=0
edge: pass=fwd | d=100 | d=104
rule: t/strict
says: nowhere: grouped heads are said to be refused
kind: decision
refuse: h.q!=h.k
edge: pass=fwd | h=8/2 | h=8
rule: t/loose
says: nowhere: 256 is said to go backward everywhere
kind: decision
refuse: pass=bwd & d.qk>256
edge: pass=bwd | d=264 | d=256
rule: t/old
says: nowhere: an old gate
kind: decision
refuse: cudnn<9.6
edge: pass=fwd
rule: t/api
says: nowhere: an argument
kind: caller
untestable: no case can say it
"""


class Audit(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Asks cuDNN about RULES once; the tests judge copies of that record."""
        for build in (e2e.OLD, e2e.NEW):
            e2e.need(build)
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.rules, cls.asked_record = (
            os.path.join(folder.name, "x.claims"),
            os.path.join(folder.name, "asked.jsonl"),
        )
        with open(cls.rules, "w", encoding="utf-8") as file:
            file.write(RULES)
        cls.asked = e2e.facts(
            "audit",
            cls.rules,
            "--json",
            "--cudnn",
            BUILDS,
            "--device",
            "h100-sxm,sm100-spec",
            "-o",
            cls.asked_record,
        )

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.record = os.path.join(self.folder.name, "r.jsonl")
        shutil.copy(self.asked_record, self.record)

    def audit(self, *more, devices="h100-sxm,sm100-spec"):
        return e2e.facts(
            "audit", *more, "--cudnn", BUILDS, "--device", devices, "-o", self.record, "--overwrite"
        )

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
        done = e2e.facts("audit", self.rules, "--markdown", "--from", self.record)
        self.assertIn("| test 1.0 | 5 | 0 | 1 | 1 | 0 | 1 | 0 | 0 | 2 |", done.out)
        self.assertIn("## Too loose", done.out)
        self.assertIn("- **t/loose** (decision): ", done.out)

    def test_its_page_has_the_rules_that_disagree_beside_the_decisions(self):
        done = e2e.facts(
            "audit",
            self.rules,
            "--from",
            self.record,
            "--page",
            os.path.join(self.folder.name, "page"),
        )
        self.assertIn(f"page: {self.folder.name}/page/index.html", done.text)
        with open(os.path.join(self.folder.name, "page", "index.html"), encoding="utf-8") as file:
            data = json.loads(
                re.search(
                    '<script type="application/json" id="data">(.*?)</script>', file.read(), re.S
                )[1]
            )
        found = {(one["id"], one["word"]): len(one["shown"]) for one in data["audit"]}
        self.assertEqual(
            found, {("t/strict", "accepted, numbers not known"): 4, ("t/loose", "too loose"): 1}
        )

    def test_a_record_is_judged_as_the_run_that_made_it(self):
        asked, again = self.asked, e2e.facts("audit", self.rules, "--json", "--from", self.record)
        words = [
            [
                {
                    k: x.get(k)
                    for k in ("rule", "device", "first", "last", "verdict", "case", "backend")
                }
                for x in map(json.loads, done.out.splitlines())
                if x["verdict"] != "untestable"
            ]
            for done in (asked, again)
        ]
        self.assertEqual(again.status, asked.status, again.text)
        self.assertEqual(words[0], words[1])

    def test_several_records_are_judged_as_one(self):
        with open(self.record, encoding="utf-8") as file:
            lines = file.readlines()
        parts = [os.path.join(self.folder.name, f"part{i}.jsonl") for i in range(2)]
        rows = [line for line in lines if '"verdict"' in line]
        for i, part in enumerate(parts):
            with open(part, "w", encoding="utf-8") as file:
                file.writelines(
                    line for line in lines if '"verdict"' not in line or rows.index(line) % 2 == i
                )
        whole = e2e.facts("audit", self.rules, "--json", "--from", self.record)
        again = e2e.facts("audit", self.rules, "--json", "--from", parts[0], "--from", parts[1])
        self.assertEqual((again.status, again.out), (whole.status, whole.out), again.text)
        self.assertNotEqual(
            e2e.facts("audit", self.rules, "--json", "--from", parts[1]).out, whole.out
        )

    def test_what_ran_and_was_right_is_too_strict(self):
        with open(self.record, encoding="utf-8") as file:
            lines = (
                file.read()
                .replace('"grade":"decided"', '"grade":"measured"')
                .replace(" guards=off", " engine=all guards=off")
            )
        with open(self.record, "w", encoding="utf-8") as file:
            file.write(lines)
        done = e2e.facts("audit", self.rules, "--from", self.record)
        self.assertEqual(done.status, 1, done.text)
        self.assertIn(
            "too strict: the rule refuses a case that every offered engine computes right\n  t/strict (decision)",
            done.out,
        )

    def test_a_record_without_these_rules_or_of_nothing_is_said(self):
        self.assertEqual(e2e.facts("audit", "fe/C12", "--from", self.record).status, 5)
        self.assertEqual(
            e2e.facts("audit", self.rules, "--from", self.rules).status, 2
        )  # no record
        self.assertEqual(e2e.facts("audit", "--from", self.record, "--cudnn", e2e.NEW).status, 2)
        for command in ("audit", "calibrate"):  # as merge, report and diff
            self.assertEqual(e2e.facts(command, "--from", self.record + ".not").status, 2, command)

    def test_bad_input_is_one_line_with_its_place(self):
        for text, place in (
            (
                "project: x 1\nrule: x/1\nsays: x\nkind: decision\nrefuse: mas=causal\n",
                ":5:9: no key 'mas'",
            ),
            (
                "project: x 1\nrule: x/1\nsays: x\nkind: decision\nrefuse: d.qk%8!=0 & sm=90 &\n",
                ":5:28: expected a key",
            ),
            (
                "project: x 1\nrule: x/1\nsays: x\nkind: decision\nrefuse: sm=90\nedge: pass=fwd | d=100 | dd=104\n",
                ":6:26: dd is not a key",
            ),
            (
                "project: x 1\nrule: x/1\nsays: x\nkind: decision\nrefuse: d.qk%8!=0\nedge: pass=fwd s=1..65 | d=100 | d=104\n",
                ":6:1: a rule has at most 64 pairs of cases",
            ),
            (
                "project: x 1\nrule: x/1\nsays: x\nkind: decision\nrefuse: d.qk%8!=0\nedge: pass=fwd | d=100,101 | d=104\n",
                ":6:1: both sides of an edge need the same number of cases",
            ),
            (
                "project: x 1\nrule: x/1\nsays: x\nkind: decision\nrefuse: d.qk>128\nedge: pass=fwd | d=64 | d=32\n",
                ":6:1: x/1 has no edge here: pass=fwd dtype=bf16 d=64 is never refused by the rule",
            ),
        ):
            bad = os.path.join(self.folder.name, "x.claims")
            with open(bad, "w", encoding="utf-8") as file:
                file.write(text)
            done = self.audit(bad)
            self.assertEqual((done.status, done.out, done.err.count("\n")), (2, "", 1))
            self.assertTrue(done.err.startswith(bad + place), done.err)

    def test_what_selects_nothing_or_is_unknown_is_said(self):
        self.assertEqual(self.audit("fe/H04", "--where", "mask=causal").status, 5)
        self.assertEqual(self.audit("fe/H04", "--where", "mas=causal").status, 2)
        unknown = self.audit("fe/H4")
        self.assertEqual(unknown.status, 2)
        self.assertIn("did you mean fe/H04?", unknown.err)
        self.assertEqual(e2e.facts("audit", "fe/H04", "--cudnn", "9.99.0").status, 2)
        self.assertEqual(self.audit("fe/H04", devices="cpu").status, 2)
        self.assertEqual(self.audit("fe/H04", devices="h100-sxm,0").status, 2)


if __name__ == "__main__":
    e2e.main()
