"""The page's first screen, and what changed between two versions: in a real browser."""

import contextlib
import io
import json
import tempfile
import unittest

import support
import synthetic
import test_diff
from browser import LAPTOP, WithPages
from facts_reports.commands import diff
from facts_reports.read import findings
from facts_reports.page import opening, steps


class Opening(unittest.TestCase):
    """What the first screen says, without a browser."""

    def first(self, rows):
        with tempfile.TemporaryDirectory() as folder:
            store = support.store(folder, test_diff.record(rows))
            return opening.of(store, steps.Steps(store, {}), findings.of(store))

    def test_steps_that_are_folded_count_their_engine_and_knob_changes(self):
        rows = [
            test_diff.row(name, version)
            for version in ("9.14.0", "9.15.0", "9.20.0", "9.27.0")
            for name in test_diff.NAMES
        ]
        for one in rows:
            if one["cudnn"] == "9.14.0" and "d=64" in one["case"]:
                one["engines"] = one["engines"][:1]
            if one["cudnn"] in ("9.14.0", "9.15.0") and "d=128" in one["case"]:
                one["engines"] = [{**e, "knobs": {"KERNEL_CFG": 8}} for e in one["engines"]]
        (step,) = self.first(rows)["steps"]
        self.assertEqual(
            (step["title"], step["rest"]),
            ("9.14.0 → 9.27.0", "3 steps with 8 engine changes and 8 knob changes"),
        )

    def test_a_case_that_fails_on_two_devices_is_named_with_each(self):
        rows = [
            test_diff.row(
                n,
                test_diff.OLD,
                "crash"
                if n == test_diff.NAMES[0] or (d, n) == ("h100-sxm", test_diff.NAMES[5])
                else "pass",
                d,
            )
            for d in ("h100-sxm", "sm80-spec")
            for n in test_diff.NAMES
        ]
        self.assertEqual(
            {(f["case"], f["on"]) for f in self.first(rows)["findings"]},
            {
                (test_diff.NAMES[0], "h100-sxm"),
                (test_diff.NAMES[0], "sm80-spec"),
                (test_diff.NAMES[5], ""),
            },
        )

    def test_each_device_of_a_step_has_its_own_headline(self):
        lost = {("h100-sxm", n) for n in test_diff.NAMES[:2]}
        rows = [
            test_diff.row(
                n, v, "unsupported" if v == test_diff.NEW and (d, n) in lost else "pass", d
            )
            for v in (test_diff.OLD, test_diff.NEW)
            for d in ("h100-sxm", "sm80-spec")
            for n in test_diff.NAMES
        ]
        rows = [
            one for one in rows if one["device"] == "h100-sxm" or one["case"] != test_diff.NAMES[0]
        ]
        with tempfile.TemporaryDirectory() as folder:
            (step,) = steps.Steps(support.store(folder, test_diff.record(rows)), {}).steps
            self.assertEqual(
                step["headline"],
                "REGRESSION: 2 accepted cases are refused now. 31 answers compared, 29 same.",
            )
            self.assertEqual(
                step["headlines"],
                {
                    "h100-sxm": "REGRESSION: 2 accepted cases are refused now. 16 answers compared, 14 same.",
                    "sm80-spec": "NO REGRESSION: nothing got worse. 15 answers compared, 15 same.",
                },
            )
            (step,) = steps.Steps(
                support.store(
                    folder, test_diff.record([one for one in rows if one["device"] == "h100-sxm"])
                ),
                {},
            ).steps
            self.assertEqual(step["headlines"], {"h100-sxm": step["headline"]})


class Glance(WithPages):
    records = {
        **WithPages.records,
        "gate": lambda: synthetic.text(synthetic.gate()),
        "calm": lambda: synthetic.text(synthetic.calm()),
        "cut": lambda: synthetic.text(list(synthetic.calm())[:-40]),
        "matrix": lambda: synthetic.text(synthetic.grown()),
    }

    def diffs(self, name, *options):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            diff.main(["--json", *options, str(self.at / f"{name}.jsonl")])
        return [json.loads(line) for line in out.getvalue().splitlines()]

    def test_a_gate_says_what_to_do(self):
        for name, word in (("gate", "DO NOT MOVE"), ("calm", "OK TO MOVE"), ("cut", "CANNOT TELL")):
            h1 = self.kept(name).locator("h1")
            self.assertTrue(h1.inner_text().startswith(word), name)
            self.assertEqual(
                h1.get_attribute("class"), {"gate": "bad", "calm": "good", "cut": "open"}[name]
            )
        page = self.kept("gate", screen=LAPTOP)
        self.assertIn("2 accepted cases are refused now", page.locator("h1").inner_text())
        self.assertEqual(
            [line.split("\n")[0] for line in page.locator("#news li").all_inner_texts()][:2],
            ["✗ 1 worse: pass=bwd & h.k=4 & s.q=257", "– 2 lost: stride=gap:8"],
        )
        lost = page.locator("#news li", has_text="2 lost")
        self.assertIn("stride=gap:8", lost.inner_text())
        self.assertIn("strides with gaps are not supported", lost.inner_text())

    def test_a_gate_shows_the_builds_that_it_compared_and_others_when_asked(self):
        lines = list(synthetic.gate())
        more = [
            {**one, "build": "9.25.0-jit-cu13", "cudnn": "9.25.0"}
            for one in lines
            if "case" in one and one["cudnn"] == "9.20.0"
        ]
        self.make("three", synthetic.text([*lines[:-1], *more, lines[-1]]))
        page = self.open("three", "#axes=Pass&view=columns")
        heads, many = page.locator("#heat thead th"), len(more)
        self.assertTrue(page.inner_text("h1").startswith("DO NOT MOVE"))
        self.assertEqual(
            (heads.all_inner_texts(), self.rows(page).split()[-1]),
            (["9.20.0", "9.27.0"], str(2 * many)),
        )
        self.assertNotIn("9.25.0", page.inner_text("#matrix"))
        self.assertNotIn("filtered away", page.inner_text("#matrix"))
        page.click("text=Also 9.25.0")
        self.assertEqual(
            (heads.all_inner_texts(), self.rows(page).split()[-1]),
            (["9.20.0", "9.25.0", "9.27.0"], str(3 * many)),
        )
        self.assertIn("all=1", page.url)
        self.quiet()
        self.assertFalse(self.kept("gate").locator("#every").is_visible())

    def test_a_matrix_says_what_changed_newest_first(self):
        page = self.kept("matrix")
        self.assertEqual(
            page.locator("h1").inner_text(),
            "cuDNN 9.27.0 accepts and refuses what 9.20.0 does. Support last changed with 9.20.0.",
        )
        self.assertEqual(
            page.locator("#news h3").all_inner_texts(),
            ["9.20.0 → 9.27.0", "9.19.0 → 9.20.0", "9.14.0 → 9.19.0"],
        )
        self.assertIn("8 lost: d.qk=512", page.locator("#news li").nth(0).inner_text())
        self.assertIn("8 gained: bottom-right", page.locator("#news li").nth(1).inner_text())

    def test_a_run_names_its_findings_and_folds_what_is_known(self):
        page = self.open()
        self.assertTrue(
            page.locator("h1").inner_text().startswith("5 findings"),
            page.locator("h1").inner_text(),
        )
        self.assertEqual(page.locator("#news [data-find]").count(), 3)
        self.assertIn("18 known and accepted", page.locator("#news").inner_text())
        self.assertFalse(page.locator("details.fold .findings").is_visible())
        page.click("#news [data-known]")
        self.assertTrue(page.locator("details.fold .findings").is_visible())
        self.assertEqual(page.evaluate("document.activeElement.closest('details').id"), "known")
        page.click("#news [data-find] >> nth=0")
        self.assertIn("case=", page.input_value("#query"))
        self.assertRegex(self.rows(page), " of [1-9]")

    def test_a_first_screen_that_is_full_shows_each_kind_of_finding(self):
        news = [
            {
                "outcome": outcome,
                "case": f"{outcome} {i}",
                "cases": [""],
                "device": "",
                "pairs": 1,
                "history": [],
            }
            for outcome, n in (("overrun", 12), ("wrong", 9), ("nan", 1), ("build_fail", 3))
            for i in range(n)
        ]
        self.assertEqual(
            [f["case"] for f in opening.various(news)],
            [
                "overrun 0",
                "overrun 1",
                "overrun 2",
                "wrong 0",
                "wrong 1",
                "wrong 2",
                "nan 0",
                "build_fail 0",
                "build_fail 1",
                "build_fail 2",
            ],
        )
        self.assertEqual(
            [f["case"] for f in opening.various(news[:9])], [f"overrun {i}" for i in range(9)]
        )

    def test_a_cell_of_the_map_is_legible_without_colour_and_counts_in_words(self):
        page = self.kept("gate")
        cells = dict(
            page.evaluate(
                "[...document.querySelectorAll('#heat button.cell')].map((e) => [e.getAttribute('aria-label'), e.innerText.split(/\\s+/)])"
            )
        )
        found = next(label for label in cells if label.startswith("backward, 9.27.0"))
        self.assertRegex(
            found,
            r"^backward, 9\.27\.0: 1 wrong, \d+ unsupported, \d+ pass; since 9\.20\.0 1 worse, 1 lost, \d better$",
        )
        self.assertIn("−2", cells[found])
        legend = page.evaluate(
            "Object.fromEntries([...document.querySelectorAll('#heat-legend .cell')].map((e) => [e.className.split(' ')[1], e.textContent.trim()]))"
        )
        self.assertEqual(
            set(legend),
            set(
                page.evaluate(
                    "[...document.querySelectorAll('#heat .cell')].flatMap((e) => [...e.classList].slice(1))"
                )
            ),
        )
        signs = [sign for sign in legend.values() if sign]
        self.assertEqual((len(set(signs)), len(signs) >= 4), (len(signs), True), legend)
        page.hover("#heat button.cell >> nth=3")
        self.assertIn(
            page.get_attribute("#heat button.cell >> nth=3", "aria-label"),
            page.inner_text("#heat-tip"),
        )

    def test_a_refusal_by_facts_itself_is_not_asked_in_the_map(self):
        lines = list(synthetic.record(("9.20.0", "9.27.0"), (synthetic.DEVICES[1],)))
        for one in lines:
            if one.get("cudnn") == "9.27.0" and "dtype=f16" in one.get("case", ""):
                synthetic.refused(one, "a guard", "", **{"class": "policy", "rule": "some-guard"})
        self.make("guarded", synthetic.text(lines))
        page = self.open("guarded")
        self.assertEqual(
            page.locator("#heat button[aria-label^='f16, 9.27.0']").get_attribute("aria-label"),
            "f16, 9.27.0: not asked, 8 refused by FACTS itself",
        )
        self.assertEqual(
            page.locator("h1").inner_text(), "cuDNN 9.27.0 accepts and refuses what 9.20.0 does."
        )

    def test_what_a_query_hides_is_not_drawn_as_absent(self):
        page = self.kept(fragment="#axes=Pass&view=columns&q=cudnn=9.20.0")
        self.assertIn("filtered away", page.inner_text("#matrix"))
        self.assertNotIn("no row", page.inner_text("#matrix"))
        cells = page.locator("#heat tbody tr").first.locator("button.cell")
        self.assertEqual(
            [cells.nth(i).get_attribute("class") for i in range(4)],
            ["cell away", "cell away", "cell fails", "cell away"],
        )
        self.assertRegex(cells.first.get_attribute("aria-label"), ": filtered away$")
        self.assertIn("▽ filtered away", page.inner_text("#heat-legend"))
        self.assertNotIn("not asked", page.inner_text("#heat-legend"))
        cells.first.hover()
        self.assertIn("filtered away", page.inner_text("#heat-tip"))
        self.show(page)
        self.assertNotIn("filtered away", page.inner_text("#heat-legend"))

    def test_the_map_opens_with_the_device_where_something_was_lost(self):
        lines = [
            *synthetic.gate(synthetic.DECIDED[1], "no such case"),
            *synthetic.gate(synthetic.DECIDED[0]),
        ]
        self.make("second", synthetic.text(lines))
        page = self.open("second")
        self.assertEqual(page.locator("#devices button").all_inner_texts()[0], "h100-spec")
        self.assertIn("on sm80-spec", page.locator("#heat caption").inner_text())
        self.assertIn("−2", page.inner_text("#heat"))

    def test_the_map_of_a_run_opens_with_a_device_that_has_findings(self):
        lines = [
            *synthetic.record(synthetic.BUILDS, synthetic.DECIDED),
            *synthetic.record(("9.20.0", "9.27.0"), (synthetic.DEVICES[0],), run="r2"),
        ]
        self.make("green", synthetic.text(lines))
        page = self.open("green")
        self.assertIn("findings", page.inner_text("h1"))
        self.assertIn("on h100-sxm", page.locator("#heat caption").inner_text())

    def test_the_device_of_the_map_is_switched(self):
        page = self.open("matrix")
        page.click("#devices button >> text=sm80-spec")
        self.assertEqual(page.input_value("#device"), "sm80-spec")
        self.assertIn("on sm80-spec", page.locator("#heat caption").inner_text())

    def test_builds_of_one_version_share_a_column_unless_they_differ(self):
        lines = list(synthetic.record(("9.20.0", "9.27.0"), (synthetic.DEVICES[1],)))
        for kind, words in (
            ("alike", "give the same answers"),
            ("differ", "differ in 4 cases"),
            ("other", "were asked different cases"),
        ):
            more = []
            for one in lines:
                if one.get("cudnn") == "9.20.0" and "case" in one:
                    bad = kind == "differ" and "mask=causal_br" in one["case"]
                    more.append(
                        {
                            **one,
                            "build": "9.20.0-full-cu13",
                            "case": one["case"] + " seed=7" * (kind == "other"),
                            **(
                                {
                                    "verdict": "unsupported",
                                    "supported": False,
                                    "reason": {"class": "unsupported", "status": "S", "text": "no"},
                                }
                                if bad
                                else {}
                            ),
                        }
                    )
            name = f"builds-{kind}"
            self.make(name, synthetic.text([*lines[:-1], *more, lines[-1]]))
            page = self.open(name)
            heads = page.locator("#heat thead th").all_inner_texts()
            self.assertEqual(
                heads,
                ["9.20.0-full-cu13", "9.20.0-jit-cu13", "9.27.0"]
                if kind == "differ"
                else ["9.20.0", "9.27.0"],
            )
            self.assertIn(f"full-cu13 and jit-cu13 {words}.", page.inner_text("#heat-notes"))

    def test_two_versions_by_address(self):
        page = self.open(fragment="?a=9.14.0&b=9.27.0&device=h100-sxm")
        self.assertEqual(
            (page.input_value("#from"), page.input_value("#to"), page.input_value("#device")),
            ("9.14.0-jit-cu13", "9.27.0-jit-cu13", "h100-sxm"),
        )
        self.assertIn("9.14.0 → 9.27.0", page.inner_text("#compare-result"))
        self.assertNotIn("sm80-spec", page.inner_text("#compare-result"))
        page.click("button.group >> nth=0")
        beside = page.locator("table.beside")
        self.assertEqual(
            beside.locator("thead th").all_inner_texts(), ["Case", "Device", "9.14.0", "9.27.0"]
        )
        self.assertRegex(beside.locator("tbody tr").first.inner_text(), "engines 2 1")
        address = page.url
        self.assertIn("a=9.14.0", address)
        again = page.context.new_page()
        again.goto(address)
        again.wait_for_selector("html[data-ready]")
        self.assertEqual(again.inner_text("main"), page.inner_text("main"))
        self.quiet()

    def test_the_groups_are_those_of_facts_diff(self):
        page = self.kept()
        data, others = (
            json.loads(page.locator(where).text_content())
            for where in ("#data", "[data-column=others]")
        )
        for step in data["steps"] + others:
            _, *groups = self.diffs("good", f"--baseline={step['a']}", f"--candidate={step['b']}")
            due = [
                (g["group"]["class"], g["group"]["where"], g["group"]["cases"], g["group"]["repro"])
                for g in groups
            ]
            self.assertEqual(
                [(g["class"], g["where"], g["cases"], g["repro"]) for g in step["groups"]],
                [d for d in due if d[0] != "reason changed"],
            )
        self.assertEqual(len(data["steps"] + others), 6)

    def test_versions_are_compared_by_the_cases_that_both_were_asked(self):
        runs = [
            synthetic.record((version,), (synthetic.DEVICES[1],), extra=extra, run=version)
            for version, extra in (("9.20.0", 0), ("9.27.0", 5))
        ]
        self.make("uneven", "".join(map(synthetic.text, runs)))
        (step,) = json.loads(self.open("uneven").locator("#data").text_content())["steps"]
        self.assertEqual((step["compared"], step["totals"].get("missing")), (76, None))


if __name__ == "__main__":
    unittest.main()
