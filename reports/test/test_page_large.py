"""The page of 100,000 rows: how large it is, how long it takes to load, to filter and to draw."""
import os
import time
import unittest

import support
import synthetic
from browser import WithPages
from facts_reports import exports, site


class Large(WithPages):
    records = {}

    def load_time(self, name):
        """Seconds until the script of a page has run."""
        context = self.browser.new_context(viewport={"width": 1366, "height": 768})
        page = context.new_page()
        start = time.monotonic()
        page.goto((self.at / "large" / name).as_uri())
        page.wait_for_selector("html[data-ready]", state="attached")
        taken = time.monotonic() - start
        context.close()
        return taken

    def test_a_hundred_thousand_rows_stay_usable(self):
        store = support.store(self.at, synthetic.text(synthetic.record(extra=12500)), "large.jsonl")
        (self.at / "large").mkdir()
        html = site.render(store, "large")
        (self.at / "large/index.html").write_text(html, encoding="utf-8")
        data = html[html.index('<script type="application/json"'):html.index("</script>", html.index('<script type="application/json"'))]
        (self.at / "large/plain.html").write_text(f"<!DOCTYPE html><meta charset=utf-8><title>plain</title>{data}</script><script>JSON.parse(document.getElementById('data').textContent);"
                                                  "document.documentElement.dataset.ready = '1';</script>", encoding="utf-8")
        exports.write_junit(store, self.at / "large/junit.xml", "large")
        self.assertLess((self.at / "large/index.html").stat().st_size, 15e6)
        self.assertLess((self.at / "large/junit.xml").stat().st_size, 30 << 20)
        # In turns, and the best of each: what others do on the machine is in both. A bound would be a timed test: FACTS_BENCH=1 asks for it.
        plain = loaded = float("inf")
        for _ in range(5):
            plain, loaded = min(plain, self.load_time("plain.html")), min(loaded, self.load_time("index.html"))
        page = self.open("large")
        start = time.monotonic()
        self.ask(page, "pass=bwd & d.qk>128 & cudnn<9.20")
        page.wait_for_function("/ of [0-9,]+$/.test(document.getElementById('rows-count').textContent)")
        self.assertIn("9.14.0", page.inner_text("#heat"))
        asked = time.monotonic() - start
        start = time.monotonic()
        page.click("[data-level=pass]")
        levels = time.monotonic() - start
        self.assertLessEqual(page.locator("#rows tr.row").count(), 50)
        print(f"\nloaded in {loaded / plain:.2f} of the time that parsing its data takes. 100,608 rows: {(self.at / 'large/index.html').stat().st_size / 1e6:.1f} MB, its data alone parsed in {plain:.2f} s, loaded {loaded:.2f} s, first filter {asked:.2f} s, level {levels:.2f} s")
        if os.environ.get("FACTS_BENCH"):
            self.assertLess(loaded, 1.5 * plain)
            self.assertLess(asked, 3 * plain)
        self.quiet()


if __name__ == "__main__":
    unittest.main()
