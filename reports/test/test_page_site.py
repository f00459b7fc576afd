"""Several records as a site: an index, a page for each run, an address for each case."""

import json

import support
import synthetic
from browser import LAPTOP, PHONE, WithPages


def older():
    for one in synthetic.record(("9.20.0", "9.27.0"), (synthetic.DEVICES[0],), run="n1"):
        if "run" in one and "facts" in one["run"]:
            one["run"]["started"] = "2026-11-01T02:00:00Z"
        yield one


class Site(WithPages):
    records = {}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        gate = list(synthetic.gate())
        del gate[0]["run"]["suite"]
        gate[0]["run"]["suites"] = "smoke golden"  # as `facts` writes it
        for name, lines in (("2026-11-01", older()), ("2026-11-20", gate)):
            (cls.at / f"{name}.jsonl").write_text(synthetic.text(lines))
        cls.said = support.run("--site", cls.at / "site", cls.at)

    def test_the_index_lists_the_runs_newest_first(self):
        index = self.at / "site/index.html"
        self.assertEqual((self.said[0], self.said[1].splitlines()[1]), (0, f"2 runs: {index}"))
        page = self.tab(PHONE)
        page.goto(index.as_uri())
        self.assertEqual(page.evaluate("document.documentElement.scrollWidth"), PHONE[0])
        self.assertTrue(page.inner_text("h1").startswith("DO NOT MOVE"))
        rows = page.locator(".runs tbody tr").all_inner_texts()
        names = ("2026-11-20", "2026-11-01")
        for row, name, suites in zip(rows, names, ("smoke, golden", "smoke"), strict=True):
            self.assertEqual(row.split()[0], name)
            self.assertIn(name, row.split("\n", 1)[-1])
            self.assertTrue(row.endswith(suites), row)
        about = json.loads((self.at / "site/runs.json").read_text(encoding="utf-8"))
        found = [(run["name"], run["address"], run["complete"]) for run in about]
        self.assertEqual(found, [(name, f"runs/{name}/index.html", True) for name in names])
        self.follow(page, lambda: page.click(".runs a >> nth=1"))
        self.assertTrue(page.url.endswith("runs/2026-11-01/index.html"))

    def test_a_case_has_an_address_over_all_runs(self):
        page = self.tab(LAPTOP)
        run = (self.at / "site/runs/2026-11-20/index.html").as_uri()
        page.goto(run + "#q=stride=gap:8 %26 pass=bwd")
        page.wait_for_selector("html[data-ready]")
        page.click("#rows button.open >> nth=0")
        self.follow(page, lambda: page.click(".detail a >> text=the address of this case"))
        case = "pass=bwd dtype=bf16 stride=gap:8"
        quoted = "pass%3Dbwd%20dtype%3Dbf16%20stride%3Dgap%3A8"
        self.assertIn(f"/cases/index.html?case={quoted}", page.url)
        self.assertEqual(page.input_value("#query"), f'case="{case}"')
        self.assertTrue(self.rows(page).endswith(" of 2"), self.rows(page))
        page.goto((self.at / "site/index.html").as_uri())
        page.fill("#case", case)
        self.follow(page, lambda: page.press("#case", "Enter"))
        self.assertTrue(self.rows(page).endswith(" of 2"), self.rows(page))

    def test_two_records_of_one_name_are_refused(self):
        (self.at / "more").mkdir()
        (self.at / "more/2026-11-20.jsonl").write_text(synthetic.text(older()))
        code, _, error = support.run("--site", self.at / "other", self.at, self.at / "more")
        self.assertEqual(code, 2)
        self.assertIn("two records are called 2026-11-20", error)
