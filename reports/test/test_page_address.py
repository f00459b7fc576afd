"""What an address of the page asks for: two builds, a device, a case. In a real browser."""

import json
import unittest
from unittest import mock

import support
import synthetic
from browser import LAPTOP, PHONE, WithPages
from facts_reports import diff, sides, store
from facts_reports.page import steps

# Each group is opened, read and closed: each click makes the list anew.
EACH_GROUP = """() => [...document.querySelectorAll('#compare-result button.group')].map((_, place) => {
  const click = () => document.querySelectorAll('#compare-result button.group')[place].click();
  click();
  const inside = [...document.querySelectorAll('#compare-result .inside')].map((e) => e.textContent).join('|');
  click();
  return inside; })"""
FULL, JIT = "9.14.0-full-cu13", "9.14.0-jit-cu13"


def uneven():
    """9.14.0 in two builds. On h100-sxm only the full one answered cases of 9.27.0; 9.19.0 answered none of them."""
    here = [one for one in synthetic.record(("9.14.0", "9.27.0")) if "end" not in one]
    for one in here:
        about = one.get("target", one)
        if about.get("cudnn") == "9.14.0" and about.get("device") == "h100-sxm":
            about["build"] = FULL
        if (
            "verdict" in one
            and one["cudnn"] == "9.27.0"
            and one["device"] == "h100-sxm"
            and "stride=gap:8" in one["case"]
        ):
            one |= {
                "verdict": "unsupported",
                "supported": False,
                "engines": [],
                "reason": {"class": "unsupported", "status": "S", "text": "no"},
            }
        yield one
    for version, build in (("9.14.0", JIT), ("9.19.0", "9.19.0-jit-cu13")):
        yield {
            "case": f"pass=fwd dtype=f16 b={version[2:4]}",
            "cudnn": version,
            "build": build,
            "device": "h100-sxm",
            "sm": 90,
            "grade": "measured",
            "backend": "cudnn",
            "verdict": "pass",
            "supported": True,
        }


class Address(WithPages):
    records = {
        "matrix": lambda: synthetic.text(synthetic.grown()),
        "good": lambda: synthetic.text(synthetic.record()),
        "uneven": lambda: synthetic.text(uneven()),
    }

    def result(self, page):
        page.wait_for_selector("#compare-result[aria-busy=false]")
        return page.inner_text("#compare-result")

    def test_the_pair_of_builds_is_the_one_that_the_device_has(self):
        page = self.open("uneven", "?a=9.14.0&b=9.27.0&device=h100-sxm")
        self.assertIn("1 accepted case is refused now", self.result(page))
        self.assertEqual(
            (page.input_value("#from"), page.input_value("#to")), (FULL, "9.27.0-jit-cu13")
        )
        page = self.open("uneven", "?a=9.14.0&b=9.27.0&device=sm80-spec")
        self.assertEqual(page.input_value("#from"), JIT)
        self.assertNotIn("refused now", self.result(page))
        self.quiet()

    def test_builds_without_a_case_in_common_are_not_called_unchanged(self):
        page = self.open("uneven", "?a=9.19.0&b=9.27.0&device=h100-sxm")
        said = self.result(page)
        self.assertIn("9.19.0 and 9.27.0 are not compared on h100-sxm", said)
        self.assertIn("facts gate --baseline 9.19.0 --candidate 9.27.0 --device h100-sxm", said)
        self.assertNotIn("Nothing changed", said)
        self.quiet()

    def test_the_page_compares_what_python_did_not_and_finds_the_same(self):
        """Of every pair of versions that are no neighbours; by day of each in one of two records."""
        pairs = ("9.14.0", "9.20.0"), ("9.19.0", "9.27.0"), ("9.14.0", "9.27.0")
        for name, some in (("good", pairs[2:]), ("matrix", pairs[:2])):
            with mock.patch.object(steps.Steps.__init__, "__defaults__", (None, 0)):
                support.run(self.at / f"{name}.jsonl", "-o", self.at / f"{name}-few")
            page = self.open(f"{name}-few")
            self.assertEqual(json.loads(page.locator("#data").text_content())["others"], [])
            both = sides.Stored(store.load([self.at / f"{name}.jsonl"]))
            targets = both.records[0].targets
            builds, devices = sorted({b for b, _ in targets}), sorted({d for _, d in targets})
            for old, new in pairs if support.NIGHT else some:
                found = diff.of_targets(
                    both, [((f"{old}-jit-cu13", d), (f"{new}-jit-cu13", d)) for d in devices]
                )
                due = steps.as_object(
                    found, {case: place for place, case in enumerate(dict.fromkeys(found.names))}
                )
                self.show(page, f"#a={old}&b={new}")
                self.assertIn(f"{old} → {new} {due['headline']}", self.result(page), builds)
                said = page.locator("#compare-result li").all_text_contents()
                self.assertEqual(
                    [text[2:] for text in said],
                    [
                        f"{g['cases']} {g['class']}{' (' + str(g['known']) + ' known)' if g['known'] else ''}: {g['words']}{' on ' + g['on'] if g['on'] else ''}{g['before']} → {g['after']}"
                        for g in due["groups"]
                    ],
                )
                opened = page.evaluate(EACH_GROUP)
                self.assertEqual(len(opened), len(due["groups"]))
                for inside, group in zip(opened, due["groups"]):
                    for word in filter(None, (group["repro"], group["bisect"], group["exactness"])):
                        self.assertIn(word, inside)
            self.quiet()

    def test_counts_are_of_the_device_of_the_address(self):
        for device, worse in (("h100-sxm", True), ("sm80-spec", False)):
            for fragment in (f"?a=9.20.0&b=9.27.0&device={device}", f"#device={device}"):
                said = self.result(self.open("good", fragment)).splitlines()[0]
                self.assertRegex(said, f"^9.20.0 → 9.27.0 On {device}: ")
                self.assertEqual(("1 worse" in said, "compared" in said), (worse, False), said)
        page = self.open("good", "?device=nosuch")
        self.assertEqual(
            page.inner_text("#absent"),
            'No device "nosuch" here. These records have h100-sxm, sm80-spec.',
        )
        page.click("#all")
        self.assertEqual(page.inner_text("#absent"), "")
        self.quiet()

    def test_versions_in_the_wrong_order_or_absent(self):
        page = self.open("good", "?a=9.27.0&b=9.20.0")
        self.assertEqual(
            (page.input_value("#from"), page.input_value("#to")),
            ("9.20.0-jit-cu13", "9.27.0-jit-cu13"),
        )
        self.assertIn("9.20.0 → 9.27.0", self.result(page))
        page = self.open("good", "?a=9.99&b=9.27.0")
        self.assertIn(
            "No build 9.99 here. These records have 9.14.0, 9.19.0, 9.20.0, 9.27.0.",
            self.result(page),
        )

    def test_an_address_opens_on_its_answer(self):
        seen = "(selector) => { const r = document.querySelector(selector).getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight; }"
        for screen in (LAPTOP, PHONE):
            page = self.open("good", "?a=9.20.0&b=9.27.0", screen)
            self.assertTrue(page.evaluate(seen, "#compare-result h3"), screen)
            self.assertEqual(page.evaluate("document.activeElement.id"), "compare-title")
            page = self.open("good", "?case=pass=bwd dtype=bf16 s=192 d=64 fill=neglse", screen)
            self.assertTrue(page.evaluate(seen, "#rows .detail .timeline"), screen)
            self.assertEqual(
                page.evaluate("document.activeElement.getAttribute('aria-expanded')"), "true"
            )
        self.assertEqual(self.open("good").evaluate("scrollY"), 0)

    def test_a_case_that_is_not_here_gets_one_line(self):
        page = self.open("good", "?case=nosuch")
        self.assertEqual(page.inner_text("#problem"), 'No case "nosuch" here.')
        self.assertTrue(
            page.evaluate(
                "document.getElementById('problem').getBoundingClientRect().bottom <= innerHeight"
            )
        )

    def test_back_closes_a_cell(self):
        page = self.open("good")
        before = page.url
        page.focus("#heat button.cell >> nth=1")
        label = page.get_attribute("#heat button.cell >> nth=1", "aria-label")
        page.keyboard.press("Enter")
        self.assertNotEqual(page.inner_text("#cell-name"), "")
        page.go_back()
        page.wait_for_function("!document.getElementById('cell-name').textContent")
        self.assertEqual(
            (page.url, page.evaluate("document.activeElement.getAttribute('aria-label')")),
            (before, label),
        )
        page.go_forward()
        page.wait_for_function("document.getElementById('cell-name').textContent")
        self.quiet()


if __name__ == "__main__":
    unittest.main()
