"""The page's rows, queries and addresses in a real browser. Needs chromium and Python's playwright; skipped with a word where one is missing, but not in CI."""

import csv
import json
import random
import re
from collections import Counter

import support
import synthetic
from browser import LAPTOP, WithPages
from test_predicate import getter, lines

QUERIES = """pass=bwd; d.qk>128; cudnn<9.20 & device=h100-sxm; verdict in (nan, wrong); layout~bs*
!(dtype=bf16); grade=decided & h~*/*; class=unsupported; engine=2; s.kv<=192 | mask=causal
s.kv%128=64 & s.q<=s.kv; engine!=2; fill=neglse & sm=90""".replace("\n", "; ").split("; ")


class Page(WithPages):
    records = {**WithPages.records, "bad": synthetic.hostile}

    def test_predicates_answer_as_the_file_that_every_evaluator_answers(self):
        """Each row with every key of its case spelled out: the page's own reading of names is tested by its rows."""
        page = self.open()
        source = (support.HERE.parent / "facts_reports/page/scripts/predicate.js").read_text(
            encoding="utf-8"
        )
        data = json.loads(page.text_content("#data"))
        keys = data["query_keys"]
        asked = [(word, text, {k: getter(row)(k) for k in keys}) for word, text, row in lines()]
        said = page.evaluate(
            """([source, asked, keys, list]) => {
            const numbers = new Set(list);
            const P = new Function(source + '; return Predicate;')();
            const holds = (t, row) => t.op === 'and' ? t.terms.every((x) => holds(x, row)) : t.op === 'or' ? t.terms.some((x) => holds(x, row)) : t.op === 'not' ? !holds(t.term, row) : P.compare(t, row[t.key] ?? null, t.other ? row[t.value] : t.value);
            const column = (text) => { try { P.parse(text, keys, numbers); return 'parsed'; } catch (e) { return `${/^column ([0-9]+): ./.exec(e.message)[1]} ${text}`; } };
            return asked.map(([word, text, row]) => word === 'bad' ? column(text.slice(text.indexOf(' ') + 1)) : holds(P.parse(text, keys, numbers), row) ? 'yes' : 'no'); }""",
            [source, asked, keys, data["numbers"]],
        )
        for (word, text, _), answer in zip(asked, said):
            self.assertEqual(answer, text if word == "bad" else word, text)

    def found(self, page, text, due):
        """A query shows so many rows."""
        self.ask(page, text)
        rows = self.rows(page)
        self.assertTrue(
            rows.endswith(f" of {due}") if due else rows == "No row matches.", (text, due, rows)
        )

    def test_a_query_filters_to_the_rows_that_python_finds_and_words_are_searched_for(self):
        """In cases, reasons and links."""
        from facts_reports.known import expectations
        from facts_reports.read import predicate

        store = support.store(self.at, (self.at / "good.jsonl").read_bytes(), "copy.jsonl")
        rows = list(store.rows())
        page = self.open()
        for text in QUERIES:
            tree = predicate.parse(text)
            due = sum(predicate.holds(tree, expectations.row_get(row)) for _, row in rows)
            self.found(page, text, due)
        for text in ("neglse", "gauss", "bwd neglse", "unsupported", "no such word"):
            due = 0
            for outcome, row in rows:
                said = [
                    *(row.get("reason") or {}).values(),
                    json.dumps(row.get("expectation") or ""),
                ]
                said = "\n".join(map(str, [row["case"], *said])).lower()
                due += all(word == outcome or word in said for word in text.split())
            self.found(page, text, due)
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
            self.found(page, f'worst="{why}"', due)
        self.quiet()

    def test_the_files_beside_the_page_are_linked(self):
        links = self.open().locator("#source-title ~ p a")
        for link in links.all():
            self.assertTrue((self.at / "good" / link.get_attribute("href")).exists())
        self.assertEqual(links.all_inner_texts(), ["results.csv", "results.json", "junit.xml"])

    def test_a_misspelled_key_gets_one_line_and_the_view_stays(self):
        page = self.open()
        before = self.rows(page)
        self.ask(page, "dtpye=bf16")
        said = "column 1: no key 'dtpye'; nearest: dtype"
        self.assertEqual((page.inner_text("#problem"), self.rows(page)), (said, before))
        self.assertTrue(page.inner_text("#shown").startswith("still of the query before: "))
        self.assertEqual(page.locator("body.stale").count(), 1)
        self.ask(page, "pass=bw")
        self.assertEqual(page.locator("body.stale").count(), 0)
        self.assertEqual(page.inner_text("#problem"), "No row has pass=bw; here: bwd, fwd.")
        self.quiet()

    def test_levels_hide_and_show_and_nothing_is_hidden_at_first(self):
        page = self.open()
        self.assertTrue(self.rows(page).endswith(" of 608"))
        page.click("#unfold")
        for click, rows in (("[data-level=pass]", 343), ("#findings-only", 23), ("#all", 608)):
            page.click(click)
            self.assertTrue(self.rows(page).endswith(f" of {rows}"))
            pressed = page.get_attribute("[data-level=pass]", "aria-pressed")
            self.assertEqual(pressed, str(rows == 608).lower())
            if rows != 608:
                self.assertEqual(page.locator("#matrix .tally", has_text=" pass").count(), 0)
        self.quiet()

    def test_a_cell_leads_to_its_rows_and_its_boundary(self):
        page = self.open()
        page.click("[data-axis='Groups of the suite']")
        row = page.locator("#matrix tr", has_text="very negative rows")
        cell = row.locator("button.segment").first
        self.assertIn("9.14.0 – 9.20.0", cell.inner_text())
        cell.click()
        self.assertTrue(self.rows(page).endswith(" of 24"))
        self.assertIn("nan (18) where s.q%128=64", page.inner_text("#boundary"))
        page.locator("#boundary button").first.click()
        self.assertTrue(self.rows(page).endswith(" of 18"), self.rows(page))
        self.quiet()

    def test_a_row_opens_to_why_and_how_to_repeat_it(self):
        page = self.open(fragment="#q=d=100%26device=sm80-spec")
        page.locator("#rows button.open").first.click()
        text = page.inner_text("#rows .detail")
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
        before = page.inner_text("#heat-tip")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowRight")
        self.assertIn("9.19.0: ", page.inner_text("#heat-tip"))
        self.assertNotEqual(page.inner_text("#heat-tip"), before)
        page.keyboard.press("Enter")
        self.assertIn("Pass: backward, h100-sxm, 9.19.0", page.inner_text("#cell-name"))
        self.assertEqual(self.active(page, "id"), "rows-title")
        page.focus("#rows button.open >> nth=0")
        page.keyboard.press("Enter")
        self.assertEqual(page.locator("#rows .detail").count(), 1)
        self.assertEqual(self.active(page, "aria-expanded"), "true")

    def test_a_view_comes_back_from_its_address(self):
        """Four views, which have each word of an address; in the night twenty more."""
        rng = random.Random(7)
        page, words = self.open(), set()
        for i in range(24 if support.NIGHT else 4):
            page.click("#all")
            if rng.random() < 0.6:
                self.ask(page, rng.choice(QUERIES))
            levels = ("pass", "supported", "nan", "unsupported", "crash")
            for level in rng.sample(levels, rng.randint(0, 3)):
                page.click(f"[data-level={level}]")
            if rng.random() < 0.4:
                page.select_option("#device", rng.choice(("h100-sxm", "sm80-spec")))
            view = f"[data-view={rng.choice(('columns', 'ranges'))}]"
            for click in (view, "#split", "#unfold"):
                if rng.random() < 0.5:
                    page.click(click)
            if rng.random() < 0.5:
                page.select_option("#from", rng.choice(("9.14.0-jit-cu13", "9.19.0-jit-cu13")))
                self.any(rng, page.locator("button.group"))
            cells = rng.choice(("#matrix button.segment", "#heat button.cell:not(.none)"))
            if rng.random() < 0.5:
                self.any(rng, page.locator(cells))
            if not page.locator("#after").is_disabled() and rng.random() < 0.5:
                page.click("#after")
            if rng.random() < 0.6:
                self.any(rng, page.locator("#rows button.open"), 20)
            before = page.inner_text("main"), page.evaluate("location.hash")
            self.assertEqual(self.beside(page, page.url)[:2], before, f"view {i}: {before[1]}")
            words |= set(re.findall(r"[#&](\w+)=", before[1]))
        self.assertEqual(words, set("q off axes device view split cell row page a b group".split()))

    @staticmethod
    def any(rng, places, most=1000):
        """Clicks one of them, if there are any."""
        count = min(places.count(), most)
        if count:
            places.nth(rng.randrange(count)).click()

    def test_an_address_from_elsewhere_is_data_too(self):
        for fragment in (
            "#q=" + "(" * 3000,
            "#cell=%E0%A4%A",
            "#cell=a|b|c|d|e&row=x&page=-9&device=__proto__&off=,,toString",
            "#page=99999999999",
            "#q=%3Cimg%20src=x%20onerror=alert(1)%3E",
        ):
            page = self.open(fragment=fragment)
            title = "cuDNN fused attention: what is supported, and is it right"
            self.assertEqual(page.title(), title)
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
