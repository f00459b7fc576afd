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
FOUND = shutil.which("chromium") or shutil.which("chromium-browser")
CHROMIUM = os.environ.get("FACTS_CHROMIUM") or FOUND
MISSING = "" if CHROMIUM else "chromium (FACTS_CHROMIUM) is missing"
MISSING = MISSING if sync_playwright else "Python's playwright is missing"
# A browser lays out what is far below the screen only when it comes near, and says no text of it before. The tests see all of it at once, cut where a reader sees it cut.
WHOLE = "{ const all = new CSSStyleSheet(); all.replaceSync('main > section, footer { content-visibility: visible !important; contain: layout paint style }'); document.adoptedStyleSheets = [all]; }"
# Texts of each section that a reader cannot reach: wider than the section, and in nothing that scrolls.
CUT = """() => [...document.querySelectorAll('main > section *, main > details *')].filter((e) => e.getClientRects().length && !e.closest('.scroll, .hidden, option') && e.getBoundingClientRect().right > e.closest('main > *').getBoundingClientRect().right + 1)
  .map((e) => e.outerHTML.slice(0, 120))"""
PATIENCE = 300_000  # milliseconds: other tests run beside these
# An address that opens as much as there is.
EVERYTHING = "#axes=Groups of the suite,Head dim,Heads,Mask,Pass&group=9.20.0-jit-cu13..9.27.0-jit-cu13.0&a=9.20.0&b=9.27.0&row=pass=bwd dtype=bf16 d=100@9.14.0-jit-cu13@sm80-spec@&q=d=100"
LAPTOP, DESKTOP, PHONE = (1366, 768), (1400, 900), (390, 844)


class WithPages(unittest.TestCase):
    """`records`: {name of the page: text or bytes of its record}. Without a browser the whole class is one skipped test."""

    records = {"good": lambda: synthetic.text(synthetic.record())}
    missing = MISSING

    @classmethod
    def setUpClass(cls):
        if cls.missing:
            raise unittest.SkipTest(f"no browser test: {cls.missing}")
        cls.folder = tempfile.TemporaryDirectory()
        cls.at = Path(cls.folder.name)
        (cls.at / "empty.html").write_text("<!DOCTYPE html><title>empty</title>")
        for name, made in cls.records.items():
            cls.make(name, made())
        cls.play = sync_playwright().start()
        flags = "no-sandbox disable-gpu disable-background-networking disable-component-update"
        flags = [f"--{flag}" for flag in flags.split()]
        cls.browser = cls.play.chromium.launch(executable_path=CHROMIUM, args=flags)
        cls.tabs, cls.noise, cls.requests = {}, [], []

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.play.stop()
        cls.folder.cleanup()

    def setUp(self):
        self.noise.clear()

    def tearDown(self):
        self.assertEqual(self.noise, [])  # errors of the page, and warnings

    @classmethod
    def make(cls, name, data):
        """The page of a record, for open(name)."""
        (cls.at / f"{name}.jsonl").write_bytes(data if isinstance(data, bytes) else data.encode())
        support.run(cls.at / f"{name}.jsonl", "-o", cls.at / name)

    def new_tab(self, **options):
        context = self.browser.new_context(**options)
        context.set_default_timeout(PATIENCE)
        context.add_init_script(WHOLE)
        page = context.new_page()
        page.on("console", lambda m: self.noise.append(m.text))
        page.on("pageerror", lambda e: self.noise.append(str(e)))
        page.on("request", lambda r: self.requests.append(r.url))
        return page

    def tab(self, screen, **options):
        """A tab without a page, on a screen. It is the same tab again for the same options: a new one costs as much as half of a page."""
        key = tuple(sorted(options.items()))
        page = self.tabs[key] = self.tabs.get(key) or self.new_tab(**options)
        page.goto((self.at / "empty.html").as_uri())
        page.emulate_media(media="null", color_scheme="null")
        page.set_viewport_size({"width": screen[0], "height": screen[1]})
        page.mouse.move(0, 0)
        self.requests.clear()
        return page

    @staticmethod
    def follow(page, do):
        """Does what leads to another page, and waits until that page is ready: the page before may be ready too."""
        with page.expect_navigation():
            do()
        page.wait_for_selector("html[data-ready]")

    def open(self, name="good", fragment="", screen=(1366, 900), **options):
        """A page as an address opens it. It takes the place of the page that was opened before."""
        page = self.tab(screen, **options)
        page.goto((self.at / name / "index.html").as_uri() + fragment)
        page.wait_for_selector("html[data-ready]")
        return page

    def kept(self, name="good", fragment="", screen=(1366, 900)):
        """A page that is loaded once for all tests of the class. A test may move to other addresses and screens; what an address does not say it leaves as it was."""
        if name not in self.tabs:
            self.tabs[name] = self.new_tab()
            self.tabs[name].goto((self.at / name / "index.html").as_uri())
            self.tabs[name].wait_for_selector("html[data-ready]")
        page = self.tabs[name]
        self.show(page, fragment, screen)
        return page

    def beside(self, page, address):
        """(text, fragment, rows, problem) of an address, opened in another tab beside a page."""
        if "beside" not in self.tabs:
            self.tabs["beside"] = page.context.new_page()
        other = self.tabs["beside"]
        other.set_viewport_size(page.viewport_size)
        other.goto((self.at / "empty.html").as_uri())
        other.goto(address)
        other.wait_for_selector("html[data-ready]")
        rows, problem = self.rows(other), other.inner_text("#problem")
        return other.inner_text("main"), other.evaluate("location.hash"), rows, problem

    def show(self, page, fragment="", screen=None):
        """Another view of a page that is open: quicker than open()."""
        if screen:
            page.set_viewport_size({"width": screen[0], "height": screen[1]})
        page.goto(page.url.split("#")[0] + (fragment or "#"))
        page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")

    def quiet(self):
        """The page asked for nothing but itself."""
        self.assertTrue(all(u.startswith("file:") for u in self.requests), self.requests)
        self.assertEqual(len(self.requests), 1)

    @staticmethod
    def active(page, name):
        """An attribute of what has the focus."""
        return page.evaluate(f"document.activeElement.getAttribute('{name}')")

    @staticmethod
    def rows(page):
        return page.locator("#rows-count").inner_text()

    def ask(self, page, text):
        page.fill("#query", text)
        page.press("#query", "Enter")
