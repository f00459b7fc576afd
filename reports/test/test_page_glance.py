"""The page's first screen, and what changed between two versions: in a real browser."""

import json
import tempfile
import unittest

import support
import synthetic
import test_diff
from browser import LAPTOP, WithPages
from facts_reports.read import findings
from facts_reports.page import opening, steps

from test_diff import MOVED, NAMES, NEW, OLD


class Opening(unittest.TestCase):
    """What the first screen says, without a browser."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def steps(self, rows):
        store = support.store(self.folder, test_diff.record(rows))
        return store, steps.Steps(store, {})

    def first(self, rows):
        store, found = self.steps(rows)
        return opening.of(store, found, findings.of(store))

    def test_steps_that_are_folded_count_their_engine_and_knob_changes(self):
        rows = []
        for version in ("9.14.0", "9.15.0", "9.20.0", "9.27.0"):
            rows += test_diff.rows(version)
        for one in rows:
            if one["cudnn"] == "9.14.0" and "d=64" in one["case"]:
                one["engines"] = one["engines"][:1]
            if one["cudnn"] in ("9.14.0", "9.15.0") and "d=128" in one["case"]:
                one["engines"] = [{**e, "knobs": {"KERNEL_CFG": 8}} for e in one["engines"]]
        (step,) = self.first(rows)["steps"]
        said = "3 steps with 8 engine changes and 8 knob changes"
        self.assertEqual((step["title"], step["rest"]), ("9.14.0 → 9.27.0", said))

    def test_a_case_that_fails_on_two_devices_is_named_with_each(self):
        one, other = NAMES[0], NAMES[5]
        rows = test_diff.rows(OLD, lambda n: n in (one, other), "crash")
        rows += test_diff.rows(OLD, lambda n: n == one, "crash", device="sm80-spec")
        found = {(f["case"], f["on"]) for f in self.first(rows)["findings"]}
        self.assertEqual(found, {(one, "h100-sxm"), (one, "sm80-spec"), (other, "")})

    def test_each_device_of_a_step_has_its_own_headline(self):
        here = test_diff.rows() + test_diff.rows(NEW, lambda n: n in NAMES[:2])
        there = [one for b in (OLD, NEW) for one in test_diff.rows(b, device="sm80-spec")[1:]]
        lost, same = (
            f"DO NOT MOVE {MOVED}: 2 accepted cases are refused now. Numbers were not computed.",
            f"OK TO MOVE {MOVED}: nothing got worse. Numbers were not computed.",
        )
        (step,) = self.steps(here + there)[1].steps
        self.assertEqual((step["headline"], step["compared"]), (lost, 31))
        each = {"h100-sxm": lost}
        (alone,) = self.steps(here)[1].steps
        self.assertEqual((alone["headline"], alone["headlines"]), (each["h100-sxm"], each))
        each["sm80-spec"] = same
        self.assertEqual(step["headlines"], each)

    def test_a_first_screen_that_is_full_shows_each_kind_of_finding(self):
        news = []
        for outcome, n in (("overrun", 12), ("wrong", 9), ("nan", 1), ("build_fail", 3)):
            one = {"outcome": outcome, "cases": [""], "device": "", "pairs": 1, "history": []}
            news += [{**one, "shown": "", "case": f"{outcome} {i}"} for i in range(n)]
        kinds = (("overrun", 3), ("wrong", 3), ("nan", 1), ("build_fail", 3))
        due = [f"{outcome} {i}" for outcome, n in kinds for i in range(n)]
        self.assertEqual([f["case"] for f in opening.various(news)], due)
        due = [f"overrun {i}" for i in range(9)]
        self.assertEqual([f["case"] for f in opening.various(news[:9])], due)


class Glance(WithPages):
    records = {
        **WithPages.records,
        "gate": lambda: synthetic.text(synthetic.gate()),
        "calm": lambda: synthetic.text(synthetic.calm()),
        "cut": lambda: synthetic.text(list(synthetic.calm())[:-40]),
        "matrix": lambda: synthetic.text(synthetic.grown()),
    }

    def diffs(self, name, *options):
        _, out, _ = support.called(
            support.commands.main, "diff", "--json", *options, str(self.at / f"{name}.jsonl")
        )
        return [json.loads(line) for line in out.splitlines()]

    def made(self, name, lines):
        self.make(name, synthetic.text(lines))
        return self.open(name)

    def test_a_gate_says_what_to_do(self):
        for name, word, mood in (
            ("gate", "DO NOT MOVE", "bad"),
            ("calm", "OK TO MOVE", "good"),
            ("cut", "CANNOT TELL", "open"),
        ):
            h1 = self.kept(name).locator("h1")
            self.assertTrue(h1.inner_text().startswith(word), name)
            self.assertEqual(h1.get_attribute("class"), mood)
        page = self.kept("gate", screen=LAPTOP)
        self.assertIn("2 accepted cases are refused now", page.inner_text("h1"))
        news = page.locator("#news li").all_inner_texts()
        first = [line.split("\n")[0] for line in news][:2]
        self.assertEqual(
            first, ["✗ 1 worse: backward with heads of K 4, queries 257", "– 2 lost: stride gap:8"]
        )
        self.assertIn("strides with gaps are not supported", news[1])

    def test_a_gate_shows_the_builds_that_it_compared_and_others_when_asked(self):
        lines = list(synthetic.gate())
        more = [one for one in lines if "case" in one and one["cudnn"] == "9.20.0"]
        more = [{**one, "build": "9.25.0-jit-cu13", "cudnn": "9.25.0"} for one in more]
        self.make("three", synthetic.text([*lines[:-1], *more, lines[-1]]))
        page = self.open("three", "#axes=Pass&view=columns")

        def shown():
            return page.locator("#heat thead th:not(.issues)").all_inner_texts(), self.rows(
                page
            ).split()[-1]

        self.assertTrue(page.inner_text("h1").startswith("DO NOT MOVE"))
        self.assertEqual(shown(), (["9.20.0", "9.27.0"], str(2 * len(more))))
        for word in ("9.25.0", "filtered away"):
            self.assertNotIn(word, page.inner_text("#matrix"))
        page.click("text=Also 9.25.0")
        self.assertEqual(shown(), (["9.20.0", "9.25.0", "9.27.0"], str(3 * len(more))))
        self.assertIn("all=1", page.url)
        self.quiet()
        self.assertFalse(self.kept("gate").locator("#every").is_visible())

    def test_a_matrix_says_what_changed_newest_first(self):
        page = self.kept("matrix")
        self.assertTrue(page.inner_text("h1").startswith("OK TO MOVE"), page.inner_text("h1"))
        self.assertIn("cuDNN 9.20.0 → 9.27.0 on 2 devices", page.inner_text("p.scope"))
        heads = page.locator("#news h3").all_inner_texts()
        self.assertEqual(heads, ["9.20.0 → 9.27.0", "9.19.0 → 9.20.0", "9.14.0 → 9.19.0"])
        for line, said in enumerate(("8 lost: head dim 512", "8 gained: bottom-right")):
            self.assertIn(said, page.locator("#news li").nth(line).inner_text())

    def test_a_run_names_its_findings_and_folds_what_is_known(self):
        page = self.open()
        self.assertTrue(page.inner_text("h1").startswith("5 findings"), page.inner_text("h1"))
        self.assertEqual(page.locator("#news [data-find]").count(), 3)
        self.assertIn("18 known and accepted", page.inner_text("#news"))
        self.assertFalse(page.locator("details.fold .findings").is_visible())
        page.click("#news [data-known]")
        self.assertTrue(page.locator("details.fold .findings").is_visible())
        self.assertEqual(page.evaluate("document.activeElement.closest('details').id"), "known")
        page.click("#news [data-find] >> nth=0")
        self.assertIn("case=", page.input_value("#query"))
        self.assertRegex(self.rows(page), " of [1-9]")

    def test_a_cell_of_the_map_is_legible_without_colour_and_counts_in_words(self):
        page = self.kept("gate")
        words = "(e) => [e.getAttribute('aria-label'), e.innerText.split(/\\s+/)]"
        cells = dict(
            page.evaluate(f"[...document.querySelectorAll('#heat button.cell')].map({words})")
        )
        found = next(label for label in cells if label.startswith("backward, 9.27.0"))
        counts = r"1 wrong, \d+ unsupported, \d+ pass; since 9\.20\.0 1 worse, 1 lost, \d better"
        self.assertRegex(found, rf"^backward, 9\.27\.0: {counts}; \d+ known issues?")
        self.assertIn("−2", cells[found])
        legend = page.evaluate(
            "Object.fromEntries([...document.querySelectorAll('#heat-legend .cell')].map((e) => [e.className.split(' ')[1], e.textContent.trim()]))"
        )
        drawn = page.evaluate(
            "[...document.querySelectorAll('#heat .cell')].flatMap((e) => [...e.classList].slice(1))"
        )
        self.assertEqual(set(legend), set(drawn))
        signs = [sign for sign in legend.values() if sign]
        self.assertEqual((len(set(signs)), len(signs) >= 4), (len(signs), True), legend)
        fourth = "#heat button.cell >> nth=3"
        page.hover(fourth)
        self.assertIn(page.get_attribute(fourth, "aria-label"), page.inner_text("#heat-tip"))

    def test_a_refusal_by_facts_itself_is_not_asked_in_the_map(self):
        lines = list(synthetic.record(("9.20.0", "9.27.0"), (synthetic.DEVICES[1],)))
        for one in lines:
            if one.get("cudnn") == "9.27.0" and "dtype=f16" in one.get("case", ""):
                synthetic.refused(one, "a guard", "", kind="policy", rule="some-guard")
        page = self.made("guarded", lines)
        label = page.get_attribute("#heat button[aria-label^='f16, 9.27.0']", "aria-label")
        said = "f16, 9.27.0: not asked, 8 refused by FACTS itself"
        self.assertEqual(label.partition(";")[0], said)
        self.assertTrue(page.inner_text("h1").startswith("OK TO MOVE"), page.inner_text("h1"))

    def test_what_a_query_hides_is_not_drawn_as_absent(self):
        page = self.kept(fragment="#axes=Pass&view=columns&q=cudnn=9.20.0")
        self.assertIn("filtered away", page.inner_text("#matrix"))
        self.assertNotIn("no row", page.inner_text("#matrix"))
        cells = page.locator("#heat tbody tr").first.locator("button.cell")
        kinds = [cells.nth(i).get_attribute("class") for i in range(4)]
        self.assertEqual(kinds, ["cell away", "cell away", "cell fails issue", "cell away"])
        self.assertRegex(cells.first.get_attribute("aria-label"), ": filtered away$")
        self.assertIn("▽ filtered away", page.inner_text("#heat-legend"))
        self.assertNotIn("not asked", page.inner_text("#heat-legend"))
        cells.first.hover()
        self.assertIn("filtered away", page.inner_text("#heat-tip"))
        self.show(page)
        self.assertNotIn("filtered away", page.inner_text("#heat-legend"))

    def test_the_map_opens_with_the_device_that_has_most_to_say(self):
        """Where something was lost; with findings. And it is switched."""
        lost = *synthetic.gate(synthetic.DECIDED[1], "none"), *synthetic.gate(synthetic.DECIDED[0])
        page = self.made("second", lost)
        self.assertEqual(page.locator("#devices button").all_inner_texts()[0], "h100-spec")
        self.assertIn("on sm80-spec", page.inner_text("#heat caption"))
        self.assertIn("−2", page.inner_text("#heat"))
        measured = synthetic.record(("9.20.0", "9.27.0"), (synthetic.DEVICES[0],), run="r2")
        lines = *synthetic.record(synthetic.BUILDS, synthetic.DECIDED), *measured
        page = self.made("green", lines)
        self.assertIn("findings", page.inner_text("h1"))
        self.assertIn("on h100-sxm", page.inner_text("#heat caption"))
        page = self.open("matrix")
        page.click("#devices button >> text=sm80-spec")
        self.assertEqual(page.input_value("#device"), "sm80-spec")
        self.assertIn("on sm80-spec", page.inner_text("#heat caption"))

    def test_builds_of_one_version_share_a_column_unless_they_differ(self):
        lines = list(synthetic.record(("9.20.0", "9.27.0"), (synthetic.DEVICES[1],)))
        for kind, heads, words in (
            ("alike", ["9.20.0"], "give the same answers"),
            ("differ", ["9.20.0-full-cu13", "9.20.0-jit-cu13"], "differ in 4 cases"),
            ("other", ["9.20.0"], "were asked different cases"),
        ):
            more = [one for one in lines if one.get("cudnn") == "9.20.0" and "case" in one]
            more = [{**one, "build": "9.20.0-full-cu13"} for one in more]
            for one in more:
                if kind == "differ" and "mask=causal_br" in one["case"]:
                    synthetic.refused(one, "no", "S")
                one["case"] += " seed=7" * (kind == "other")
            page = self.made(f"builds-{kind}", [*lines[:-1], *more, lines[-1]])
            self.assertEqual(
                page.locator("#heat thead th:not(.issues)").all_inner_texts(), [*heads, "9.27.0"]
            )
            self.assertIn(f"full-cu13 and jit-cu13 {words}.", page.inner_text("#heat-notes"))

    def test_two_versions_by_address(self):
        page = self.open(fragment="?a=9.14.0&b=9.27.0&device=h100-sxm")
        found = [page.input_value(field) for field in ("#from", "#to", "#device")]
        self.assertEqual(found, ["9.14.0-jit-cu13", "9.27.0-jit-cu13", "h100-sxm"])
        self.assertIn("9.14.0 → 9.27.0", page.inner_text("#compare-result"))
        self.assertNotIn("sm80-spec", page.inner_text("#compare-result"))
        page.click("button.group >> nth=0")
        heads = page.locator("table.beside thead th").all_inner_texts()
        self.assertEqual(heads, ["Case", "Device", "9.14.0", "9.27.0"])
        self.assertRegex(page.locator("table.beside tbody tr").first.inner_text(), "engines 2 1")
        self.assertIn("a=9.14.0", page.url)
        self.assertEqual(self.beside(page, page.url)[0], page.inner_text("main"))
        self.quiet()

    def test_the_groups_are_those_of_facts_diff(self):
        page = self.kept()
        data, others = (
            json.loads(page.text_content(where)) for where in ("#data", "[data-column=others]")
        )
        self.assertEqual(len(data["steps"] + others), 6)
        keys = ("class", "where", "cases", "repro")
        for step in data["steps"] + others:
            _, *groups = self.diffs("good", f"--baseline={step['a']}", f"--candidate={step['b']}")
            due = [[one["group"][key] for key in keys] for one in groups]
            found = [[group[key] for key in keys] for group in step["groups"]]
            self.assertEqual(found, [one for one in due if one[0] != "reason changed"])

    def test_versions_are_compared_by_the_cases_that_both_were_asked(self):
        lines = []
        for version, extra in (("9.20.0", 0), ("9.27.0", 5)):
            lines += synthetic.record((version,), synthetic.DEVICES[1:], extra=extra, run=version)
        (step,) = json.loads(self.made("uneven", lines).text_content("#data"))["steps"]
        self.assertEqual((step["compared"], step["totals"].get("missing")), (76, None))

    def test_known_issues_are_marked_counted_and_listed(self):
        case, title = "pass=bwd dtype=bf16 b=1 h=1 s=704 d=64", "dQ is NaN if s_kv fills half of"
        about = {"verdict": "supported", "grade": "decided"}
        builds = [(f"{version}-jit-cu13", "h100-sxm") for version in ("9.20.0", "9.27.0")]
        rows = [synthetic.plain(case, version, **about) for version in ("9.20.0", "9.27.0")]
        page = self.made("issues", [synthetic.head("r1", *builds), *rows, synthetic.end()])
        label = "backward, 9.20.0: 1 supported; 1 known issue, 1 serious: Known to be wrong for"
        cells = page.locator("#heat button[aria-label^='backward, ']")
        self.assertIn(
            f"{label} very negative scores: {title}", cells.first.get_attribute("aria-label")
        )
        marks = [cells.nth(i).get_attribute("class").endswith(" issue") for i in range(2)]
        self.assertEqual(marks, [True, False], "it is fixed in 9.26.0")
        page.click("#heat [data-issues='Pass: backward']")
        self.assertTrue(
            page.inner_text("#issues").startswith("backward on h100-sxm: 1 known issue")
        )
        for words in (title, "fixed in 9.26.0", "Seen with this version", "contract: documented"):
            self.assertIn(words, page.inner_text("#issues li"))
        self.show(page, f"#{page.url.partition('#')[2]}")
        self.assertIn(title, page.inner_text("#issues"), "the address holds the list")
        page.click("#issues button")
        self.assertFalse(page.locator("#issues").is_visible())
        ends = page.locator("#compare-result table", has_text="known issues end between 9.20.0")
        self.assertIn("bwd-nan-negative-lse-skv-mod128-eq-64", ends.inner_text())
        self.assertNotIn(
            "bwd-nan-negative-lse-skv-mod128", page.inner_text("table:has-text('begin between')")
        )
        page.click("#heat button.cell >> nth=0")
        page.click("#rows button.open >> nth=0")
        self.assertIn(title, page.inner_text("#rows .detail"))
