"""Several records as a site: an index, a page for each run, an address for each case."""

import json
import unittest

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
        self.assertEqual(
            (self.said[0], self.said[1].splitlines()[1]),
            (0, f"2 runs: {self.at / 'site' / 'index.html'}"),
        )
        page = self.tab(PHONE)
        page.goto((self.at / "site/index.html").as_uri())
        self.assertEqual(page.evaluate("document.documentElement.scrollWidth"), PHONE[0])
        self.assertTrue(page.inner_text("h1").startswith("DO NOT MOVE"))
        rows = page.locator(".runs tbody tr").all_inner_texts()
        self.assertEqual([row.split()[0] for row in rows], ["2026-11-20", "2026-11-01"])
        self.assertEqual(
            [
                ("2026-11-20" in rows[0].split("\n", 1)[-1], rows[0].endswith("smoke, golden")),
                ("2026-11-01" in rows[1].split("\n", 1)[-1], rows[1].endswith("smoke")),
            ],
            [(True, True)] * 2,
            rows,
        )
        about = json.loads((self.at / "site/runs.json").read_text(encoding="utf-8"))
        self.assertEqual(
            [(run["name"], run["address"], run["complete"]) for run in about],
            [
                ("2026-11-20", "runs/2026-11-20/index.html", True),
                ("2026-11-01", "runs/2026-11-01/index.html", True),
            ],
        )
        self.follow(page, lambda: page.click(".runs a >> nth=1"))
        self.assertTrue(page.url.endswith("runs/2026-11-01/index.html"))

    def test_a_case_has_an_address_over_all_runs(self):
        page = self.tab(LAPTOP)
        page.goto(
            (self.at / "site/runs/2026-11-20/index.html").as_uri() + "#q=stride=gap:8 %26 pass=bwd"
        )
        page.wait_for_selector("html[data-ready]")
        page.click("#rows button.open >> nth=0")
        self.follow(page, lambda: page.click(".detail a >> text=the address of this case"))
        self.assertIn(
            "/cases/index.html?case=pass%3Dbwd%20dtype%3Dbf16%20stride%3Dgap%3A8", page.url
        )
        self.assertEqual(page.input_value("#query"), 'case="pass=bwd dtype=bf16 stride=gap:8"')
        self.assertTrue(self.rows(page).endswith(" of 2"), self.rows(page))
        page.goto((self.at / "site/index.html").as_uri())
        page.fill("#case", "pass=bwd dtype=bf16 stride=gap:8")
        self.follow(page, lambda: page.press("#case", "Enter"))
        self.assertTrue(self.rows(page).endswith(" of 2"), self.rows(page))

    def test_two_records_of_one_name_are_refused(self):
        (self.at / "more").mkdir()
        (self.at / "more/2026-11-20.jsonl").write_text(synthetic.text(older()))
        code, _, error = support.run("--site", self.at / "other", self.at, self.at / "more")
        self.assertEqual(code, 2)
        self.assertIn("two records are called 2026-11-20", error)


if __name__ == "__main__":
    unittest.main()
