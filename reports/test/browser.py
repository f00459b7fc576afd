"""Tests of the page in a real browser: pages of synthetic records, opened on a screen that the test chooses."""
import os
import shutil
import tempfile
import unittest
from pathlib import Path

import support
import synthetic

try:
    from playwright.sync_api import sync_playwright
except ImportError:
    sync_playwright = None
CHROMIUM = os.environ.get("FACTS_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
MISSING = "" if sync_playwright and CHROMIUM else ("chromium (FACTS_CHROMIUM)" if sync_playwright else "Python's playwright") + " is missing"
# A browser lays out what is far below the screen only when it comes near, and says no text of it before. The tests see all of it at once, cut where a reader sees it cut.
WHOLE = "{ const all = new CSSStyleSheet(); all.replaceSync('main > section, footer { content-visibility: visible !important; contain: layout paint style }'); document.adoptedStyleSheets = [all]; }"
# Texts of each section that a reader cannot reach: wider than the section, and in nothing that scrolls.
CUT = """() => [...document.querySelectorAll('main > section *, main > details *')].filter((e) => e.getClientRects().length && !e.closest('.scroll, .hidden, option') && e.getBoundingClientRect().right > e.closest('main > *').getBoundingClientRect().right + 1)
  .map((e) => e.outerHTML.slice(0, 120))"""
PATIENCE = 120_000   # milliseconds: other tests run beside these
LAPTOP, DESKTOP, PHONE = (1366, 768), (1400, 900), (390, 844)


@unittest.skipIf(MISSING, f"no browser test: {MISSING}")
class WithPages(unittest.TestCase):
    """`records`: {name of the page: text or bytes of its record}."""
    records = {"good": lambda: synthetic.text(synthetic.record())}

    @classmethod
    def setUpClass(cls):
        if cls is WithPages:
            raise unittest.SkipTest("the base of the others")
        cls.folder = tempfile.TemporaryDirectory()
        cls.at = Path(cls.folder.name)
        for name, made in cls.records.items():
            data = made()
            (cls.at / f"{name}.jsonl").write_bytes(data if isinstance(data, bytes) else data.encode())
            support.run(cls.at / f"{name}.jsonl", "-o", cls.at / name)
        cls.play = sync_playwright().start()
        cls.browser = cls.play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"])

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.play.stop()
        cls.folder.cleanup()

    def tab(self, screen, **options):
        """An empty page on a screen."""
        context = self.browser.new_context(viewport={"width": screen[0], "height": screen[1]}, **options)
        self.addCleanup(context.close)
        context.set_default_timeout(PATIENCE)
        context.add_init_script(WHOLE)
        return context.new_page()

    @staticmethod
    def follow(page, do):
        """Does what leads to another page, and waits until that page is ready: the page before may be ready too."""
        with page.expect_navigation():
            do()
        page.wait_for_selector("html[data-ready]")

    def open(self, name="good", fragment="", screen=(1366, 900), **options):
        page = self.tab(screen, **options)
        self.noise, self.requests = [], []
        page.on("console", lambda m: self.noise.append(m.text))
        page.on("pageerror", lambda e: self.noise.append(str(e)))
        page.on("request", lambda r: self.requests.append(r.url))
        page.goto((self.at / name / "index.html").as_uri() + fragment)
        page.wait_for_selector("html[data-ready]")
        return page

    def show(self, page, fragment="", screen=None):
        """Another view of a page that is open: quicker than open()."""
        if screen:
            page.set_viewport_size({"width": screen[0], "height": screen[1]})
        page.goto(page.url.split("#")[0] + (fragment or "#"))
        page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")

    def quiet(self):
        self.assertEqual(self.noise, [])
        self.assertTrue(all(u.startswith("file:") for u in self.requests), self.requests)
        self.assertEqual(len(self.requests), 1)

    @staticmethod
    def rows(page):
        return page.locator("#rows-count").inner_text()

    def ask(self, page, text):
        page.fill("#query", text)
        page.press("#query", "Enter")
