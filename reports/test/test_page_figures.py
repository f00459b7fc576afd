"""What the page draws and says of numbers, times, versions and dates: in a real browser."""

import csv
import json
from urllib.parse import quote

import synthetic
from browser import CUT, PHONE, WithPages
from test_bench import CASE, NEW, OLD, record_of, timed

PICTURE = (
    "  head 1, from column 64 on\n  12 of 96 elements, 2 of them NaN or Inf\n  . none   - below 10 %   + below half   # half and more   @ all\n"
    "  batches down, heads across\n              0 |.@|\n  rows down, columns across; a sign is 2 rows by 16 columns\n            0-1 |..#@|\n            2-3 |..-+|\n"
)


def drawn():
    """A record with a picture, and an older one of a build that is asked again later."""
    old = list(synthetic.record(("9.14.0",), (synthetic.DEVICES[0],), run="old"))
    old[0]["run"]["started"] = "2026-10-01T09:30:00Z"
    for one in old:
        if one.get("case") == "pass=fwd dtype=f16":
            one["case"] += " b=7"
            yield one
            break
    found = False
    for one in synthetic.record():
        if one.get("verdict") == "wrong" and not found:
            one["pictures"], found = {"dk": PICTURE}, True
        yield one
    yield old[0]


def bisected():
    command = "facts bisect CASE --cudnn 9.20.0..9.27.0".split()
    for one in synthetic.gate():
        if "run" in one and "facts" in one["run"]:
            case = "pass=bwd dtype=bf16 stride=gap:8"
            one["run"]["command"] = [case if word == "CASE" else word for word in command]
        yield one


ENGINES = {OLD: {0: 2000.0, 1: 1500.0}, NEW: {0: 2000.0, 1: 1999.0, 2: 2500.0}}
FIRST = "#rows button.open >> nth=0"


class Figures(WithPages):
    records = {
        "good": lambda: synthetic.text(drawn()),
        "bench": lambda: record_of(timed(CASE, (2000.0, 2200.0))),
        "engines": lambda: record_of(timed(CASE, ENGINES)),
        "bisect": lambda: synthetic.text(bisected()),
    }

    def row(self, fragment, name="good"):
        """A page with the first row of a query open."""
        page = self.open(name, f"#q={fragment}")
        page.click(FIRST)
        return page

    def test_every_error_of_the_record_is_in_a_distribution(self):
        page = self.open()
        data = json.loads(page.text_content("#data"))
        due = sum(len(d["errors"]) for d in data["details"].values() if "errors" in d)
        self.assertEqual(sum(sum(one["bins"]) for one in data["figures"]["errors"]["tensors"]), due)
        dk = page.locator("svg.bars[aria-label^='dk, gate t1']")
        said = "1 above the bound, the largest 2^2 to 2^3 of it"
        self.assertIn(said, dk.get_attribute("aria-label"))
        self.assertEqual(dk.locator("rect.above title", has_text=": 1").count(), 1)
        self.quiet()

    def test_the_map_of_an_error_is_drawn_as_it_is_written(self):
        page = self.row("verdict=wrong")
        said = "head 1, from column 64 on; 12 of 96 elements, 2 of them NaN or Inf"
        self.assertIn(said, page.inner_text(".pictures"))
        maps = page.locator("svg.where")
        self.assertEqual([one.locator("rect").count() for one in maps.all()], [2, 8])
        shades = [r.get_attribute("fill-opacity") for r in maps.nth(1).locator("rect.wrong").all()]
        self.assertEqual(shades, ["0.7", "1", "0.25", "0.45"])

    def test_times_stand_beside_the_peak_of_the_card(self):
        page = self.open("bench")
        rows = page.locator("#numbers tbody tr").all_inner_texts()
        self.assertEqual(len(rows), 2)
        self.assertRegex(rows[0], r"2,000\s+500\s+71 % of its gemm")
        self.assertIn("slower", rows[1])
        self.assertIn("gpu: 700 TFLOP/s", page.inner_text("#numbers caption"))
        part = page.evaluate(
            "parseFloat(document.querySelector('.speed .bar').style.getPropertyValue('--part'))"
        )
        self.assertAlmostEqual(part, 500 / 7, delta=0.5)

    def test_every_engine_that_was_timed_has_its_row_and_the_fastest_is_marked(self):
        page = self.open("engines")
        rows = [row.split("\t") for row in page.locator("#numbers tbody tr").all_inner_texts()]
        found = [f"{build[:6]} {engine}" for _, build, _, engine, *_ in rows]
        due = """9.20.0 10 tile_m=0
            9.20.0 11 tile_m=1 fastest, 1.33 times as fast
            9.27.0 10 tile_m=0 fastest
            9.27.0 11 tile_m=1
            9.27.0 12 tile_m=2"""
        self.assertEqual(found, [line.strip() for line in due.splitlines()])
        self.assertIn("Times of 1 case.", page.inner_text("#numbers caption"))
        self.quiet()

    def test_a_phone_shows_times_without_scrolling(self):
        page = self.open("bench", screen=PHONE)
        widths = page.evaluate(
            "(() => { const e = document.querySelector('#numbers .scroll'); return [e.scrollWidth, e.clientWidth]; })()"
        )
        self.assertEqual(*widths)
        self.assertEqual(page.evaluate(CUT), [])
        label = page.evaluate(
            "getComputedStyle(document.querySelectorAll('#numbers tbody td')[5], '::before').content"
        )
        self.assertEqual(label, '"TFLOP/s "')

    def test_a_case_has_a_line_of_versions_with_its_edges(self):
        page = self.row("fill=neglse %26 s=192 %26 d=64 %26 device=h100-sxm")
        boxes = page.locator(".detail .timeline li")
        versions = [b.split("\n")[0] for b in boxes.all_inner_texts()]
        self.assertEqual(versions, list(synthetic.BUILDS))
        edges = ["edge" in (b.get_attribute("class") or "") for b in boxes.all()]
        self.assertEqual(edges, [False, False, False, True])
        self.assertRegex(boxes.last.inner_text(), r"e2\s+\d+(\.\d+)? µs")
        self.assertIn("since 9.27.0 ✓ pass; 9.14.0 – 9.20.0 ∅ nan", page.inner_text(".detail"))
        self.assertEqual(page.locator(".timeline .found").count(), 0)

    def test_an_edge_that_bisect_found_is_marked(self):
        page = self.row("stride=gap:8 %26 pass=bwd", "bisect")
        self.assertEqual(page.locator(".detail .timeline .edge .found").count(), 1)

    def test_rows_and_cells_say_when_they_were_asked_and_what_is_stale(self):
        page = self.row("b=7")
        ago = r"(today|[\d,]+ days? ago)"
        stale = r"older than the newest record of 9\.14\.0-jit-cu13 \(2026-11-20\)"
        said = page.inner_text(".detail .lead")
        self.assertRegex(said, rf"asked 2026-10-01, {ago}; stale: {stale}")
        page.click("#all")
        for cell, said in (
            (0, f"asked 2026-10-01 to 2026-11-20, up to {ago}, 1 stale"),
            (1, f"asked 2026-11-20, {ago}$"),
        ):
            page.hover(f"#heat button.cell >> nth={cell}")
            self.assertRegex(page.inner_text("#heat-tip"), said)

    def test_a_rule_of_another_project_that_says_otherwise_stands_beside_the_decision(self):
        rule = "PyTorch main@001f694a refuses this (pt/head-dim"
        page = self.row("pass=fwd %26 d=512 %26 device=h100-sxm %26 mask=none")
        self.assertIn(rule, page.inner_text(".detail"))
        plain = "pass=fwd %26 dtype=f16 %26 device=h100-sxm %26 mask=none"
        page = self.row(f"{plain} %26 window=inf:inf %26 b=2")
        self.assertNotIn("refuses this", page.inner_text(".detail"))
        page = self.open(fragment="#q=pt/head-dim")
        self.assertRegex(self.rows(page), " of [1-9]")
        for note in page.locator("#rows .note").all_inner_texts():
            self.assertIn(f"but {rule}", note)

    def test_what_an_audit_found_stands_beside_the_decision(self):
        from facts_reports.commands import audit
        from facts_reports.page import exports
        from facts_reports.read import claims, store

        project = claims.Project("Other", "1.0", "https://example.com/rules")
        rule = claims.Claim("my/rule", project, "f", 1, says="no gaps")
        found = audit.Audit([rule], {rule}, [], True, {})
        case, at = "pass=bwd dtype=bf16", ("h100-sxm", "9.27.0-jit-cu13", "9.27.0", "90")
        found.against = [(rule, f"{case} stride=gap:8", at, "too loose")]
        found.against.append((rule, case, at, "too strict"))
        exports.write_site(
            store.load([self.at / "bisect.jsonl"]), self.at / "audit", "audit", audit=found
        )
        page = self.open("audit", "#q=my/rule")
        notes = page.locator("#rows .note .claimed")
        loose = "but Other 1.0 lets this through (my/rule)"
        strict = "but Other 1.0 refuses this (my/rule)"
        self.assertEqual(notes.all_inner_texts(), [loose, strict])
        self.ask(page, "my/rule strict")
        self.assertEqual(notes.all_inner_texts(), [strict])
        self.ask(page, "my/rule")
        page.click(FIRST)
        said = "Claimed otherwise Other 1.0 lets this through (my/rule, audit: too loose): no gaps https://example.com/rules"
        self.assertIn(said, page.text_content(".detail"))
        self.quiet()

    @staticmethod
    def saved(page, kind):
        """The text of a download."""
        with page.expect_download() as got:
            page.click(f"[data-save={kind}]")
        return got.value.path().read_text(encoding="utf-8")

    def test_downloads_name_query_suite_tolerance_and_date(self):
        page = self.open(fragment="#q=verdict=wrong")
        asked, suite, tolerance = "2026-11-20T09:30:00Z", "5f0c3a9e12d47b68", "FACTS 0.1.0"
        table, text = self.saved(page, "csv"), self.saved(page, "md")
        self.assertIn("asked,tolerance,suite_hash,query", table)
        self.assertIn(f"{asked},{tolerance},{suite},verdict=wrong", table)
        words = (
            "query `verdict=wrong`",
            f"suite {suite}",
            f"tolerance {tolerance}",
            f"asked {asked}",
        )
        for word in words:
            self.assertIn(word, text)
        about = json.loads(self.saved(page, "json"))
        found = [about[key] for key in ("query", "suites", "tolerances", "asked")]
        self.assertEqual(found, ["verdict=wrong", [suite], [tolerance], asked])
        self.assertIn("rows", about)

    def test_the_query_of_a_download_finds_its_rows_again(self):
        """With an outcome left out, a device, a cell of the map, a cell of a group of the suite."""
        page = self.open(fragment="#q=pass=fwd | d=64&device=h100-sxm&off=pass,unsupported")
        for make in (
            lambda: None,
            lambda: self.show(page, "#axes=Groups of the suite&q=pass=bwd&off=crash"),
            lambda: page.click("#matrix tr:has-text('grouped heads') button.segment >> nth=0"),
            lambda: page.click("#all"),
            lambda: page.click("#heat tbody tr:nth-child(2) button.cell >> nth=1"),
            lambda: page.click("[data-level=pass]"),
        ):
            make()
            self.assertRegex(self.rows(page), " of [1-9]")
            due = self.rows(page).split()[-1]
            table = csv.DictReader(self.saved(page, "csv").splitlines())
            (query,) = {row["query"] for row in table}
            _, _, rows, problem = self.beside(page, page.url.split("#")[0] + "#q=" + quote(query))
            self.assertEqual((rows.split()[-1], problem), (due, ""), query)
