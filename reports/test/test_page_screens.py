"""The page on its screens: a laptop, a desktop, a phone, paper, the keyboard. In a real browser."""

import support
import synthetic
from browser import CUT, DESKTOP, EVERYTHING, LAPTOP, PHONE, WithPages

TAB_STOPS = """() => [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex]')].filter((e) => e.tabIndex >= 0 && !e.disabled && e.getClientRects().length
  && (document.getElementById('rows').compareDocumentPosition(e) & Node.DOCUMENT_POSITION_PRECEDING)).length"""
SHAPES = ("good", "gate", "matrix")  # a run, a gate, a matrix of versions


GLANCE = "document.getElementById('glance').getBoundingClientRect().bottom"
UNFOLD = "document.querySelectorAll('details').forEach((e) => { e.open = true; })"


class Screens(WithPages):
    records = {
        **WithPages.records,
        "gate": lambda: synthetic.text(synthetic.gate()),
        "calm": lambda: synthetic.text(synthetic.calm()),
        "cut": lambda: synthetic.text(list(synthetic.calm())[:-40]),
        "matrix": lambda: synthetic.text(synthetic.grown()),
        "many": lambda: synthetic.text(synthetic.many()),
    }

    def test_the_first_screen_needs_no_scrolling(self):
        for name in self.records:
            for screen in (LAPTOP, DESKTOP):
                page = self.kept(name, screen=screen)
                self.assertLessEqual(page.evaluate(GLANCE), screen[1], (name, screen))

    def test_the_first_screen_of_the_examples_needs_no_scrolling(self):
        """Of the one that has most findings; in the night of all."""
        examples = support.HERE.parent / "examples"
        one = examples if support.NIGHT else examples / "audit.jsonl.xz"
        support.run(one, "-o", self.at / "examples")
        page = self.open("examples", screen=LAPTOP)
        self.assertLessEqual(page.evaluate(GLANCE), LAPTOP[1])
        self.assertGreater(page.locator("#heat .fails").count(), 0)
        self.quiet()

    @staticmethod
    def point(page, selector):
        """hover() would wait for a place that never stands still where words move it."""
        page.locator(selector).scroll_into_view_if_needed()
        box = page.locator(selector).bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    def test_the_words_of_a_cell_move_nothing_and_are_whole(self):
        """Words of two lines, and of twelve."""
        places = "[document.getElementById('heat').getBoundingClientRect().top + scrollY, document.documentElement.scrollHeight]"
        for name in SHAPES:
            for screen in (LAPTOP, PHONE):
                page = self.open(name, screen=screen)
                before = page.evaluate(places)
                page.evaluate(
                    "document.querySelectorAll('#heat button.cell').forEach((e, i) => { if (i % 2) e.setAttribute('aria-label', 'many words '.repeat(60)); })"
                )
                cells = page.locator("#heat button.cell").count()
                every = range(0, cells, 9)
                for place in every if support.NIGHT else (0, cells // 2 | 1, cells - 1):
                    cell = f"#heat button.cell >> nth={place}"
                    self.point(page, cell)
                    page.focus(cell)
                    self.assertEqual(page.evaluate(places), before, (name, screen, place))
                    cut = page.evaluate(
                        "(() => { const tip = document.getElementById('heat-tip'), r = tip.getBoundingClientRect(); return tip.scrollWidth > tip.clientWidth || tip.scrollHeight > tip.clientHeight || r.right > innerWidth; })()"
                    )
                    self.assertFalse(cut, (name, screen, place, page.inner_text("#heat-tip")))

    def test_few_tab_stops_stand_before_the_rows(self):
        for name in SHAPES:
            page = self.open(name)
            self.assertLessEqual(page.evaluate(TAB_STOPS), 60, name)
            self.quiet()
            page.click("#unfold")
            page.evaluate(UNFOLD)
            self.assertLessEqual(page.evaluate(TAB_STOPS), 60, name)
            stops = page.evaluate(
                "[...document.querySelectorAll('.findings')].map((t) => [...t.querySelectorAll('a, button, summary')].filter((e) => e.tabIndex >= 0).length)"
            )
            self.assertLessEqual(set(stops), {1}, name)
        page.keyboard.press("Home")
        page.reload()
        page.keyboard.press("Tab")
        words = page.evaluate("document.activeElement.textContent")
        self.assertEqual(words, "Skip to what changed")
        self.ask(page, "pass=bwd")
        before = page.url, self.rows(page)
        page.focus(".skip >> nth=1")
        page.keyboard.press("Enter")
        after = page.url, self.rows(page), self.active(page, "id")
        self.assertEqual(after, (*before, "rows-title"))

    def test_arrow_keys_move_in_each_table(self):
        page = self.open(fragment="#axes=Heads,Pass")
        tables = "#heat button.cell, #matrix button.segment, #matrix button.fold, #rows button.open"
        tables += ", #devices button, #news button.line, .findings button, button.group"
        for selector in tables.split(", "):
            key = "ArrowRight" if "devices" in selector else "ArrowDown"
            page.focus(f"{selector} >> nth=0")
            before = page.evaluate("document.activeElement.outerHTML")
            page.keyboard.press(key)
            after = page.evaluate("document.activeElement.outerHTML")
            self.assertNotEqual(after, before, selector)
            self.assertIn("<button", after)

    def test_nothing_is_wider_than_a_phone(self):
        for name in self.records if support.NIGHT else (*SHAPES, "many"):
            for fragment in ("", EVERYTHING, EVERYTHING + "&view=columns"):
                page, view = self.kept(name, fragment, PHONE), (name, fragment)
                width = page.evaluate("document.documentElement.scrollWidth")
                self.assertEqual(width, PHONE[0], view)
                height = page.evaluate("document.getElementById('bar').offsetHeight")
                self.assertLessEqual(height, 48)
                if "columns" in fragment:
                    continue
                # Devices stand one under the other: nothing has to be pushed aside, and nothing overprints.
                wide = page.evaluate(
                    "[...document.querySelectorAll('#matrix .segment, #rows > tbody > tr > td, #news *')].filter((e) => e.getBoundingClientRect().right > innerWidth).length"
                )
                lefts = page.evaluate(
                    "[...new Set([...document.querySelectorAll('#matrix td')].map((e) => e.getBoundingClientRect().left))].length"
                )
                self.assertEqual((wide, lefts <= 1), (0, True), view)

    def test_what_is_opened_is_legible_and_cut_nowhere(self):
        """A refusal with the long conditions that cuDNN writes, errors of a failure, known failures."""
        lines = list(synthetic.record())
        types = " && ".join(f"is_supported_io_dtype({t}Type)" for t in "qkvo" * 4)
        text = "check_sdpa_fwd_flash_mha_support(sdpa_node)_" * 6
        for one in lines:
            for said in one.get("reason", {}).get("chain", [])[:1] * 4:
                long = {**said, "condition": f"!({types})", "text": text}
                one["reason"]["chain"].append(long)
        self.make("wordy", synthetic.text(lines))
        page = self.open("wordy")
        for screen in (LAPTOP, PHONE, (1024, 768)):
            for query in ("d=100", "verdict=wrong"):
                self.show(page, f"#q={query}", screen)
                page.click("#rows button.open >> nth=0")
                page.evaluate(UNFOLD)
                self.assertEqual(page.evaluate(CUT), [], (screen, query))
                narrow = page.evaluate(
                    "[...document.querySelectorAll('.detail td')].filter((e) => e.textContent.length > 12 && e.clientWidth < 90).map((e) => [e.textContent, e.clientWidth])"
                )
                self.assertEqual(narrow, [], (screen, query))
                wide = page.evaluate(
                    "[...document.querySelectorAll('.detail .scroll')].filter((e) => e.scrollWidth > e.clientWidth).map((e) => getComputedStyle(e).overflowX)"
                )
                self.assertLessEqual(set(wide), set() if screen == PHONE else {"auto"}, query)
                if query == "d=100":
                    answers = page.locator(".detail table >> nth=0 >> tbody tr").count()
                    self.assertEqual(answers, 3)  # each answer once
                    height = page.locator(".detail").bounding_box()["height"]
                    self.assertLess(height, 1.6 * screen[1])

    def test_a_phone_shows_the_cases_of_a_group_one_under_the_other(self):
        page = self.open("gate", screen=PHONE)
        page.click("#news [data-group] >> text=2 lost")
        for row in page.locator(".beside tbody tr").all()[:2]:
            boxes = [cell.bounding_box() for cell in row.locator("td").all()[:4]]
            self.assertEqual(len({round(box["x"]) for box in boxes}), 1)
            self.assertGreater(boxes[0]["width"], 300)
        label = page.evaluate(
            "getComputedStyle(document.querySelectorAll('.beside td')[3], '::before').content"
        )
        self.assertEqual(label, '"9.27.0 "')

    def test_a_phone_shows_the_newest_versions_first(self):
        page = self.open("many", screen=PHONE)
        self.assertLessEqual(
            page.locator("#heat thead th:not(.issues)").last.bounding_box()["x"], PHONE[0] - 20
        )
        self.assertEqual(page.locator("#heat th[scope=row]").first.bounding_box()["x"], 12)
