"""The page of many rows: how large it is, and what it draws of them. By day 5,000 rows, and a page says less from there on, not from 20,000. In the night 100,000, and the CPU time of loading them against that of parsing their data alone."""

import re
from unittest import mock

import support
import synthetic
from browser import PATIENCE, WithPages
from facts_reports.page import exports, payload, site
from support import NIGHT


class Large(WithPages):
    records = {}

    def load_time(self, name):
        """CPU seconds of the page's main thread, from its start until its script has run and its first frame is drawn."""
        context = self.browser.new_context(viewport={"width": 1366, "height": 768})
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        meter = context.new_cdp_session(page)
        meter.send("Performance.enable")
        page.goto((self.at / "large" / name).as_uri())
        page.wait_for_selector("html[data-ready]", state="attached")
        page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        metrics = meter.send("Performance.getMetrics")["metrics"]
        taken = next(one["value"] for one in metrics if one["name"] == "ThreadTime")
        context.close()
        return taken

    def loads_like_its_data(self, html):
        data = "".join(re.findall('<script type="application/json".*?</script>', html, re.S))
        (self.at / "large/plain.html").write_text(
            f"<!DOCTYPE html><meta charset=utf-8><title>plain</title>{data}<script>window.kept = [...document.querySelectorAll('[type=\"application/json\"]')].map((e) => JSON.parse(e.textContent));"
            "document.documentElement.dataset.ready = '1';</script>",
            encoding="utf-8",
        )
        plain = loaded = float("inf")
        for _ in range(7):  # in turns, and the least of each
            plain = min(plain, self.load_time("plain.html"))
            loaded = min(loaded, self.load_time("index.html"))
        print(f"\nloading takes {loaded:.3f} s of CPU, parsing the data {plain:.3f} s")
        self.assertLess(loaded, 1.5 * plain)

    def test_many_rows_stay_usable(self):
        if not NIGHT:
            for module, name in ((payload, "_ALL_DETAILS"), (exports, "JUNIT_ALL")):
                less = mock.patch.object(module, name, 5000)
                less.start()
                self.addCleanup(less.stop)
        lines = synthetic.record(extra=12500 if NIGHT else 600)
        store = support.store(self.at, synthetic.text(lines), "large.jsonl")
        rows = store.totals()["rows"]
        self.assertGreater(rows, 100000 if NIGHT else 5000)
        page_file, junit = self.at / "large/index.html", self.at / "large/junit.xml"
        page_file.parent.mkdir()
        html = site.render(store, "large")
        page_file.write_text(html, encoding="utf-8")
        exports.write_junit(store, junit, "large")
        page_bytes, junit_bytes = page_file.stat().st_size / rows, junit.stat().st_size / rows
        print(f"\n{rows:,} rows: {page_bytes:.0f} bytes a row, JUnit {junit_bytes:.0f}")
        self.assertLess(page_bytes, 150)
        self.assertLess(junit_bytes, 10)
        if NIGHT:  # the ratio of few rows says nothing: it is of pages, not of data
            self.loads_like_its_data(html)
        page = self.open("large")
        self.ask(page, "pass=bwd & d.qk>128 & cudnn<9.20")
        page.wait_for_function(
            "/ of [0-9,]+$/.test(document.getElementById('rows-count').textContent)"
        )
        self.assertIn("9.14.0", page.inner_text("#heat"))
        page.click("[data-level=pass]")
        self.assertLessEqual(page.locator("#rows tr.row").count(), 50)
        self.quiet()
