"""The page's rows, queries and addresses in a real browser. Needs chromium and Python's playwright; skipped with a word where one is missing, but not in CI."""

import csv
import json
import random
import re
import unittest
from collections import Counter

import support
import synthetic
from browser import LAPTOP, WithPages
from test_predicate import getter, lines

QUERIES = (
    "pass=bwd",
    "d.qk>128",
    "cudnn<9.20 & device=h100-sxm",
    "verdict in (nan, wrong)",
    "layout~bs*",
    "!(dtype=bf16)",
    "grade=decided & h~*/*",
    "class=unsupported",
    "engine=2",
    "s.kv<=192 | mask=causal",
    "s.kv%128=64 & s.q<=s.kv",
    "engine!=2",
    "fill=neglse & sm=90",
)


class Page(WithPages):
    records = {**WithPages.records, "bad": synthetic.hostile}

    def test_predicates_answer_as_the_file_that_every_evaluator_answers(self):
        """Each row with every key of its case spelled out: the page's own reading of names is tested by its rows."""
        page = self.open()
        source = (support.HERE.parent / "facts_reports/page/scripts/predicate.js").read_text(
            encoding="utf-8"
        )
        data = json.loads(page.locator("#data").text_content())
        asked = [
            (word, text, {k: getter(row)(k) for k in data["query_keys"]})
            for word, text, row in lines()
        ]
        said = page.evaluate(
            """([source, asked, keys, list]) => {
            const numbers = new Set(list);
            const P = new Function(source + '; return Predicate;')();
            const holds = (t, row) => t.op === 'and' ? t.terms.every((x) => holds(x, row)) : t.op === 'or' ? t.terms.some((x) => holds(x, row)) : t.op === 'not' ? !holds(t.term, row) : P.compare(t, row[t.key] ?? null, t.other ? row[t.value] : t.value);
            const column = (text) => { try { P.parse(text, keys, numbers); return 'parsed'; } catch (e) { return `${/^column ([0-9]+): ./.exec(e.message)[1]} ${text}`; } };
            return asked.map(([word, text, row]) => word === 'bad' ? column(text.slice(text.indexOf(' ') + 1)) : holds(P.parse(text, keys, numbers), row) ? 'yes' : 'no'); }""",
            [source, asked, data["query_keys"], data["numbers"]],
        )
        for (word, text, _), answer in zip(asked, said):
            self.assertEqual(answer, text if word == "bad" else word, text)

    def test_a_query_filters_to_the_rows_that_python_finds(self):
        from facts_reports.known import expectations
        from facts_reports.read import predicate

        store = support.store(self.at, (self.at / "good.jsonl").read_bytes(), "copy.jsonl")
        page = self.open()
        for text in QUERIES:
            tree = predicate.parse(text)
            due = 0
            for _, row in store.rows():
                due += predicate.holds(tree, expectations.row_get(row))
            self.ask(page, text)
            self.assertTrue(self.rows(page).endswith(f" of {due}"), (text, due, self.rows(page)))
        self.quiet()

    def test_words_are_searched_for_in_cases_reasons_and_links(self):
        store = support.store(self.at, (self.at / "good.jsonl").read_bytes(), "copy.jsonl")
        page = self.open()
        for text in ("neglse", "gauss", "bwd neglse", "unsupported", "no such word"):
            due = 0
            for outcome, row in store.rows():
                said = [
                    row["case"],
                    *map(str, (row.get("reason") or {}).values()),
                    json.dumps(row.get("expectation") or ""),
                ]
                due += all(
                    word == outcome or any(word in one.lower() for one in said)
                    for word in text.split()
                )
            self.ask(page, text)
            self.assertTrue(
                self.rows(page).endswith(f" of {due}")
                if due
                else self.rows(page) == "No row matches.",
                (text, due, self.rows(page)),
            )
        self.quiet()

    def test_columns_of_the_csv_are_keys_of_a_query(self):
        page = self.open()
        for text, same in (
            ("outcome=wrong", "verdict=wrong"),
            ("supported=false & outcome=unsupported", "outcome=unsupported & supported!=true"),
            ("reason~*", "class~* | reason~*"),
            ("reason_status~*SHAPE*", "d=100"),
            ("group=layouts", "layout!=bshd | stride!=dense | padding!=none"),
            ("config=0", "outcome!=unsupported"),
            ("workspace_bytes>=0", "outcome!=unsupported"),
            ("known~http*", "fill=neglse & verdict=nan"),
            ("run=r1", "cudnn>0"),
            ("supported=0", "supported=false"),
            ("supported!=1", "supported!=true"),
            ("supported in (1)", "supported=true"),
            ("suite_hash=5f0c3a9e12d47b68 & asked~2026-11-20*", 'tolerance="FACTS 0.1.0"'),
            (
                "exec_us>0 & plan_ms>0 & decide_us>0 & attempt=1 & ratio<=1",
                "grade=measured & verdict=pass",
            ),
        ):
            self.ask(page, text)
            mine = self.rows(page)
            self.assertRegex(mine, " of [1-9]", text)
            self.ask(page, same)
            self.assertEqual(self.rows(page), mine, text)
        with (self.at / "good/results.csv").open(newline="") as cells:
            table = list(csv.DictReader(cells))
        self.ask(page, " | ".join(f"{name}~*" for name in table[0]))
        self.assertEqual(page.locator("#problem").inner_text(), "")
        for why, due in Counter(row["worst"] for row in table).most_common():
            self.ask(page, f'worst="{why}"')
            self.assertTrue(self.rows(page).endswith(f" of {due}"), (why, due, self.rows(page)))
        self.quiet()

    def test_the_files_beside_the_page_are_linked(self):
        for link in self.open().locator("#source-title ~ p a").all():
            self.assertTrue((self.at / "good" / link.get_attribute("href")).exists())
        self.assertEqual(
            self.open().locator("#source-title ~ p a").all_inner_texts(),
            ["results.csv", "results.json", "junit.xml"],
        )

    def test_a_misspelled_key_gets_one_line_and_the_view_stays(self):
        page = self.open()
        before = self.rows(page)
        self.ask(page, "dtpye=bf16")
        self.assertEqual(
            page.locator("#problem").inner_text(), "column 1: no key 'dtpye'; nearest: dtype"
        )
        self.assertEqual(self.rows(page), before)
        self.assertTrue(
            page.locator("#shown").inner_text().startswith("still of the query before: ")
        )
        self.assertEqual(page.locator("body.stale").count(), 1)
        self.ask(page, "pass=bw")
        self.assertEqual(page.locator("body.stale").count(), 0)
        self.assertEqual(
            page.locator("#problem").inner_text(), "No row has pass=bw; here: bwd, fwd."
        )
        self.quiet()

    def test_levels_hide_and_show_and_nothing_is_hidden_at_first(self):
        page = self.open()
        self.assertTrue(self.rows(page).endswith(" of 608"))
        page.click("#unfold")
        page.click("[data-level=pass]")
        self.assertTrue(self.rows(page).endswith(" of 343"))
        self.assertEqual(page.get_attribute("[data-level=pass]", "aria-pressed"), "false")
        self.assertEqual(page.locator("#matrix .tally", has_text=" pass").count(), 0)
        page.click("#findings-only")
        self.assertTrue(self.rows(page).endswith(" of 23"))
        page.click("#all")
        self.assertTrue(self.rows(page).endswith(" of 608"))
        self.quiet()

    def test_a_cell_leads_to_its_rows_and_its_boundary(self):
        page = self.open()
        page.click("[data-axis='Groups of the suite']")
        cell = (
            page.locator("#matrix tr", has_text="very negative rows")
            .locator("button.segment")
            .first
        )
        self.assertIn("9.14.0 – 9.20.0", cell.inner_text())
        cell.click()
        self.assertTrue(self.rows(page).endswith(" of 24"))
        self.assertIn("nan (18) where s.q%128=64", page.locator("#boundary").inner_text())
        page.locator("#boundary button").first.click()
        self.assertTrue(self.rows(page).endswith(" of 18"), self.rows(page))
        self.quiet()

    def test_a_row_opens_to_why_and_how_to_repeat_it(self):
        page = self.open(fragment="#q=d=100%26device=sm80-spec")
        page.locator("#rows button.open").first.click()
        text = page.locator("#rows .detail").inner_text()
        for word in (
            "NOT_SUPPORTED_SHAPE",
            "d_qk % 8 != 0",
            "d=64 instead of 100",
            "facts repro 'pass=bwd dtype=bf16 d=100' --cudnn 9.14.0 --device sm80-spec",
            "Evidence: decided",
            "all 4 builds",
        ):
            self.assertIn(word, text)
        self.quiet()

    def test_everything_is_reached_with_the_keyboard(self):
        page = self.open()
        page.focus("#heat button.cell >> nth=0")
        before = page.locator("#heat-tip").inner_text()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowRight")
        self.assertIn("9.19.0: ", page.locator("#heat-tip").inner_text())
        self.assertNotEqual(page.locator("#heat-tip").inner_text(), before)
        page.keyboard.press("Enter")
        self.assertIn("Pass: backward, h100-sxm, 9.19.0", page.locator("#cell-name").inner_text())
        self.assertEqual(page.evaluate("document.activeElement.id"), "rows-title")
        page.focus("#rows button.open >> nth=0")
        page.keyboard.press("Enter")
        self.assertEqual(page.locator("#rows .detail").count(), 1)
        self.assertEqual(
            page.evaluate("document.activeElement.getAttribute('aria-expanded')"), "true"
        )

    def test_a_view_comes_back_from_its_address(self):
        """Eight views, which have each word of an address; in the night twenty more."""
        rng = random.Random(1)
        page, words = self.open(), set()
        for i in range(28 if support.NIGHT else 8):
            page.click("#all")
            if rng.random() < 0.6:
                self.ask(page, rng.choice(QUERIES))
            for level in rng.sample(
                ("pass", "supported", "nan", "unsupported", "crash"), rng.randint(0, 3)
            ):
                page.click(f"[data-level={level}]")
            if rng.random() < 0.4:
                page.select_option("#device", rng.choice(("h100-sxm", "sm80-spec")))
            if rng.random() < 0.5:
                page.click(f"[data-view={rng.choice(('columns', 'ranges'))}]")
            if rng.random() < 0.5:
                page.click("#split")
            if rng.random() < 0.5:
                page.click("#unfold")
            if rng.random() < 0.5:
                page.select_option("#from", rng.choice(("9.14.0-jit-cu13", "9.19.0-jit-cu13")))
                groups = page.locator("button.group")
                if groups.count():
                    groups.nth(rng.randrange(groups.count())).click()
            cells = page.locator(
                rng.choice(("#matrix button.segment", "#heat button.cell:not(.none)"))
            )
            if rng.random() < 0.5 and cells.count():
                cells.nth(rng.randrange(cells.count())).click()
            if not page.locator("#after").is_disabled() and rng.random() < 0.5:
                page.click("#after")
            opened = page.locator("#rows button.open")
            if opened.count() and rng.random() < 0.6:
                opened.nth(rng.randrange(min(opened.count(), 20))).click()
            before = page.inner_text("main"), page.evaluate("location.hash")
            self.assertEqual(self.beside(page, page.url)[:2], before, f"view {i}: {before[1]}")
            words |= set(re.findall(r"[#&](\w+)=", before[1]))
        self.assertEqual(
            words,
            {
                "q",
                "off",
                "axes",
                "device",
                "view",
                "split",
                "cell",
                "row",
                "page",
                "a",
                "b",
                "group",
            },
        )

    def test_an_address_from_elsewhere_is_data_too(self):
        for fragment in (
            "#q=" + "(" * 3000,
            "#cell=%E0%A4%A",
            "#cell=a|b|c|d|e&row=x&page=-9&device=__proto__&off=,,toString",
            "#page=99999999999",
            "#q=%3Cimg%20src=x%20onerror=alert(1)%3E",
        ):
            page = self.open(fragment=fragment)
            self.assertEqual(
                page.title(), "cuDNN fused attention: what is supported, and is it right"
            )
            self.quiet()

    def test_a_hostile_record_is_only_text(self):
        page = self.open("bad")
        self.assertEqual(page.locator("body img, #rows script").count(), 0)
        for i in range(page.locator("#rows button.open").count()):
            page.locator("#rows button.open").nth(i).click()
            self.assertEqual(page.locator("main a:not(#source-title ~ p a)").count(), 0)
        self.assertNotEqual(page.title(), "taken")
        self.quiet()

    def test_a_laptop_is_wide_enough(self):
        page = self.open()
        page.click("#unfold")
        for view in ("ranges", "columns"):
            page.click(f"[data-view={view}]")
            self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), 1366)

    def test_totals_are_there_without_scripts(self):
        page = self.tab(LAPTOP, java_script_enabled=False)
        page.goto((self.at / "good/index.html").as_uri())
        self.assertIn("6 nan", page.inner_text("body"))


if __name__ == "__main__":
    unittest.main()
