"""What an address of the page asks for: two builds, a device, a case. In a real browser."""

import shlex

import synthetic
from browser import LAPTOP, PHONE, WithPages
from facts_reports.compare import diff

FULL, JIT = "9.14.0-full-cu13", "9.14.0-jit-cu13"


def uneven():
    """9.14.0 in two builds. On h100-sxm only the full one answered cases of 9.27.0; 9.19.0 answered none of them."""
    here = [one for one in synthetic.record(("9.14.0", "9.27.0")) if "end" not in one]
    for one in here:
        about = one.get("target", one)
        if about.get("cudnn") == "9.14.0" and about.get("device") == "h100-sxm":
            about["build"] = FULL
        newest = one.get("cudnn") == "9.27.0" and one.get("device") == "h100-sxm"
        if "verdict" in one and newest and "stride=gap:8" in one["case"]:
            synthetic.refused(one, "no")
        yield one
    for version, build in (("9.14.0", JIT), ("9.19.0", "9.19.0-jit-cu13")):
        yield synthetic.head(version, (build, "h100-sxm"))
        case = f"pass=fwd dtype=f16 b={version[2:4]}"
        yield synthetic.plain(case, version, run=version) | {"build": build}


class Address(WithPages):
    records = {
        "many": lambda: synthetic.text(synthetic.many()),
        "good": lambda: synthetic.text(synthetic.record()),
        "uneven": lambda: synthetic.text(uneven()),
    }

    @staticmethod
    def result(page):
        return page.inner_text("#compare-result")

    @staticmethod
    def pair(page):
        return page.input_value("#from"), page.input_value("#to")

    def test_the_pair_of_builds_is_the_one_that_the_device_has(self):
        for device, build in (("h100-sxm", FULL), ("sm80-spec", JIT)):
            page = self.open("uneven", f"?a=9.14.0&b=9.27.0&device={device}")
            self.assertEqual(self.pair(page), (build, "9.27.0-jit-cu13"))
            self.assertEqual("1 accepted case is refused now" in self.result(page), build == FULL)
        self.quiet()

    def test_builds_without_a_case_in_common_are_not_called_unchanged(self):
        said = self.result(self.open("uneven", "?a=9.19.0&b=9.27.0&device=h100-sxm"))
        self.assertIn("9.19.0 and 9.27.0 are not compared on h100-sxm", said)
        self.assertIn("facts gate --baseline 9.19.0 --candidate 9.27.0 --device h100-sxm", said)
        self.assertNotIn("Nothing changed", said)
        self.quiet()

    def test_of_many_versions_the_page_holds_neighbours_and_the_newest_and_names_the_command(self):
        self.assertIn("9.8.0 → 9.24.1", self.result(self.open("many", "?a=9.8.0&b=9.24.1")))
        page = self.open("many", "?a=9.8.0&b=9.9.0&device=sm80-spec")
        self.assertIn("does not hold the comparison of 9.8.0 and 9.9.0", self.result(page))
        command = shlex.split(page.inner_text("#compare-result code"))
        self.assertEqual(command[3:6:2], ["--baseline", "--candidate"])
        found = diff.compare([self.at / command[2]], command[4], command[6], command[8])
        self.assertEqual(found.compared(), 76)
        self.quiet()

    def test_counts_are_of_the_device_of_the_address(self):
        for device, worse in (("h100-sxm", True), ("sm80-spec", False)):
            for fragment in (f"?a=9.20.0&b=9.27.0&device={device}", f"#device={device}"):
                said = self.result(self.open("good", fragment)).splitlines()[0]
                self.assertRegex(said, f"^9.20.0 → 9.27.0 On {device}: ")
                self.assertEqual("): 1 accepted case fails now" in said, worse, said)
        page = self.open("good", "?device=nosuch")
        said = 'No device "nosuch" here. These records have h100-sxm, sm80-spec.'
        self.assertEqual(page.inner_text("#absent"), said)
        page.click("#all")
        self.assertEqual(page.inner_text("#absent"), "")
        self.quiet()

    def test_versions_in_the_wrong_order_or_absent(self):
        page = self.open("good", "?a=9.27.0&b=9.20.0")
        self.assertEqual(self.pair(page), ("9.20.0-jit-cu13", "9.27.0-jit-cu13"))
        self.assertIn("9.20.0 → 9.27.0", self.result(page))
        page = self.open("good", "?a=9.99&b=9.27.0")
        said = "No build 9.99 here. These records have 9.14.0, 9.19.0, 9.20.0, 9.27.0."
        self.assertIn(said, self.result(page))

    def test_an_address_opens_on_its_answer(self):
        seen = "(selector) => { const r = document.querySelector(selector).getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight; }"
        for screen in (LAPTOP, PHONE):
            page = self.open("good", "?a=9.20.0&b=9.27.0", screen)
            self.assertTrue(page.evaluate(seen, "#compare-result h3"), screen)
            self.assertEqual(page.evaluate("document.activeElement.id"), "compare-title")
            page = self.open("good", "?case=pass=bwd dtype=bf16 s=192 d=64 fill=neglse", screen)
            self.assertTrue(page.evaluate(seen, "#rows .detail .timeline"), screen)
            self.assertEqual(self.active(page, "aria-expanded"), "true")
        self.assertEqual(self.open("good").evaluate("scrollY"), 0)

    def test_a_case_that_is_not_here_gets_one_line(self):
        page = self.open("good", "?case=nosuch")
        self.assertEqual(page.inner_text("#problem"), 'No case "nosuch" here.')
        box = page.locator("#problem").bounding_box()
        self.assertLessEqual(box["y"] + box["height"], page.viewport_size["height"])

    def test_back_closes_a_cell(self):
        page = self.open("good")
        before = page.url
        page.focus("#heat button.cell >> nth=1")
        label = page.get_attribute("#heat button.cell >> nth=1", "aria-label")
        page.keyboard.press("Enter")
        self.assertNotEqual(page.inner_text("#cell-name"), "")
        page.go_back()
        page.wait_for_function("!document.getElementById('cell-name').textContent")
        self.assertEqual((page.url, self.active(page, "aria-label")), (before, label))
        page.go_forward()
        page.wait_for_function("document.getElementById('cell-name').textContent")
        self.quiet()
