"""The page's first screen, and what changed between two versions: in a real browser, on a laptop, a desktop and a phone, light and dark."""
import contextlib
import gzip
import io
import json
import lzma
import tempfile
import unittest

import support
import synthetic
import test_diff
from browser import CUT, DESKTOP, LAPTOP, PHONE, WithPages
from facts_reports import diff, diff_cli, findings
from facts_reports.page import opening, steps
from facts_reports.vocabulary import BY_CHANGE

DECIDED = (synthetic.DEVICES[1], ("h100-spec", 90, "decided"))
TAB_STOPS = """() => [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex]')].filter((e) => e.tabIndex >= 0 && !e.disabled && e.getClientRects().length
  && (document.getElementById('rows').compareDocumentPosition(e) & Node.DOCUMENT_POSITION_PRECEDING)).length"""
EVERYTHING = "#axes=Groups of the suite,Head dim,Heads,Mask,Pass&group=9.20.0-jit-cu13..9.27.0-jit-cu13.0&a=9.20.0&b=9.27.0&row=pass=bwd dtype=bf16 d=100@9.14.0-jit-cu13@sm80-spec@&q=d=100"


def calm(device=DECIDED[0]):
    """A gate in which nothing changes."""
    return synthetic.gate(device, "no such case")


def grown():
    """A matrix in which 9.19.0 gains a mask and 9.20.0 loses a head dim."""
    for one in synthetic.record(devices=DECIDED):
        case, version = one.get("case", ""), one.get("cudnn", "")
        if "verdict" in one and ("mask=causal_br" in case and version == "9.14.0" or "d=512" in case and version in ("9.20.0", "9.27.0")):
            one |= {"verdict": "unsupported", "supported": False, "engines": [], "reason": {"class": "unsupported", "status": "CUDNN_STATUS_NOT_SUPPORTED", "text": "not in this version"}}
        yield one


class Opening(unittest.TestCase):
    """What the first screen says, without a browser."""

    def first(self, rows):
        with tempfile.TemporaryDirectory() as folder:
            store = support.store(folder, test_diff.record(rows))
            return opening.of(store, steps.Steps(store, {}), findings.of(store))

    def test_steps_that_are_folded_count_their_engine_and_knob_changes(self):
        rows = [test_diff.row(name, version) for version in ("9.14.0", "9.15.0", "9.20.0", "9.27.0") for name in test_diff.NAMES]
        for one in rows:
            if one["cudnn"] == "9.14.0" and "d=64" in one["case"]:
                one["engines"] = one["engines"][:1]
            if one["cudnn"] in ("9.14.0", "9.15.0") and "d=128" in one["case"]:
                one["engines"] = [{**e, "knobs": {"KERNEL_CFG": 8}} for e in one["engines"]]
        (step,) = self.first(rows)["steps"]
        self.assertEqual((step["title"], step["rest"]), ("9.14.0 → 9.27.0", "3 steps with 8 engine changes and 8 knob changes"))

    def test_a_case_that_fails_on_two_devices_is_named_with_each(self):
        rows = [test_diff.row(n, test_diff.OLD, "crash" if n == test_diff.NAMES[0] or (d, n) == ("h100-sxm", test_diff.NAMES[5]) else "pass", d) for d in ("h100-sxm", "sm80-spec") for n in test_diff.NAMES]
        self.assertEqual({(f["case"], f["on"]) for f in self.first(rows)["findings"]}, {(test_diff.NAMES[0], "h100-sxm"), (test_diff.NAMES[0], "sm80-spec"), (test_diff.NAMES[5], "")})

    def test_each_device_of_a_step_has_its_own_headline(self):
        lost = {("h100-sxm", n) for n in test_diff.NAMES[:2]}
        rows = [test_diff.row(n, v, "unsupported" if v == test_diff.NEW and (d, n) in lost else "pass", d) for v in (test_diff.OLD, test_diff.NEW) for d in ("h100-sxm", "sm80-spec") for n in test_diff.NAMES]
        rows = [one for one in rows if one["device"] == "h100-sxm" or one["case"] != test_diff.NAMES[0]]
        with tempfile.TemporaryDirectory() as folder:
            (step,) = steps.Steps(support.store(folder, test_diff.record(rows)), {}).steps
            self.assertEqual(step["headline"], "REGRESSION: 2 accepted cases are refused now. 31 answers compared, 29 same.")
            self.assertEqual(step["headlines"], {"h100-sxm": "REGRESSION: 2 accepted cases are refused now. 16 answers compared, 14 same.", "sm80-spec": "NO REGRESSION: nothing got worse. 15 answers compared, 15 same."})
            (step,) = steps.Steps(support.store(folder, test_diff.record([one for one in rows if one["device"] == "h100-sxm"])), {}).steps
            self.assertEqual(step["headlines"], {"h100-sxm": step["headline"]})


class Glance(WithPages):
    records = {**WithPages.records, "gate": lambda: synthetic.text(synthetic.gate()), "calm": lambda: synthetic.text(calm()),
               "cut": lambda: synthetic.text(list(calm())[:-40]), "matrix": lambda: synthetic.text(grown())}

    def diffs(self, name, *options):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            diff_cli.main(["--json", *options, str(self.at / f"{name}.jsonl")])
        return [json.loads(line) for line in out.getvalue().splitlines()]

    def test_the_first_screen_needs_no_scrolling(self):
        for name in self.records:
            page = self.open(name)
            for screen in (LAPTOP, DESKTOP):
                self.show(page, screen=screen)
                self.assertLessEqual(page.evaluate("document.getElementById('glance').getBoundingClientRect().bottom"), screen[1], (name, screen))
                self.quiet()

    def test_a_gate_says_what_to_do(self):
        for name, word in (("gate", "DO NOT MOVE"), ("calm", "OK TO MOVE"), ("cut", "CANNOT TELL")):
            h1 = self.open(name).locator("h1")
            self.assertTrue(h1.inner_text().startswith(word), name)
            self.assertEqual(h1.get_attribute("class"), {"gate": "bad", "calm": "good", "cut": "open"}[name])
        page = self.open("gate", screen=LAPTOP)
        self.assertIn("2 accepted cases are refused now", page.locator("h1").inner_text())
        self.assertEqual([line.split("\n")[0] for line in page.locator("#news li").all_inner_texts()][:2], ["✗ 1 worse: pass=bwd & h.k=4 & s.q=257", "– 2 lost: stride=gap:8"])
        lost = page.locator("#news li", has_text="2 lost")
        self.assertIn("stride=gap:8", lost.inner_text())
        self.assertIn("strides with gaps are not supported", lost.inner_text())

    def test_a_gate_shows_the_builds_that_it_compared_and_others_when_asked(self):
        lines = list(synthetic.gate())
        more = [{**one, "build": "9.25.0-jit-cu13", "cudnn": "9.25.0"} for one in lines if "case" in one and one["cudnn"] == "9.20.0"]
        (self.at / "three.jsonl").write_text(synthetic.text([*lines[:-1], *more, lines[-1]]))
        support.run(self.at / "three.jsonl", "-o", self.at / "three")
        page = self.open("three", "#axes=Pass&view=columns")
        heads, many = page.locator("#heat thead th"), len(more)
        self.assertTrue(page.inner_text("h1").startswith("DO NOT MOVE"))
        self.assertEqual((heads.all_inner_texts(), self.rows(page).split()[-1]), (["9.20.0", "9.27.0"], str(2 * many)))
        self.assertNotIn("9.25.0", page.inner_text("#matrix"))
        self.assertNotIn("filtered away", page.inner_text("#matrix"))
        page.click("text=Also 9.25.0")
        self.assertEqual((heads.all_inner_texts(), self.rows(page).split()[-1]), (["9.20.0", "9.25.0", "9.27.0"], str(3 * many)))
        self.assertIn("all=1", page.url)
        self.assertFalse(self.open("gate").locator("#every").is_visible())
        self.quiet()

    def test_a_matrix_says_what_changed_newest_first(self):
        page = self.open("matrix")
        self.assertEqual(page.locator("h1").inner_text(), "cuDNN 9.27.0 accepts and refuses what 9.20.0 does. Support last changed with 9.20.0.")
        self.assertEqual(page.locator("#news h3").all_inner_texts(), ["9.20.0 → 9.27.0", "9.19.0 → 9.20.0", "9.14.0 → 9.19.0"])
        self.assertIn("8 lost: d.qk=512", page.locator("#news li").nth(0).inner_text())
        self.assertIn("8 gained: bottom-right", page.locator("#news li").nth(1).inner_text())

    def test_a_run_names_its_findings_and_folds_what_is_known(self):
        page = self.open()
        self.assertTrue(page.locator("h1").inner_text().startswith("5 findings"), page.locator("h1").inner_text())
        self.assertEqual(page.locator("#news [data-find]").count(), 3)
        self.assertIn("18 known and accepted", page.locator("#news").inner_text())
        self.assertFalse(page.locator("details.fold .findings").is_visible())
        page.click("#news [data-known]")
        self.assertTrue(page.locator("details.fold .findings").is_visible())
        self.assertEqual(page.evaluate("document.activeElement.closest('details').id"), "known")
        page.click("#news [data-find] >> nth=0")
        self.assertIn("case=", page.input_value("#query"))
        self.assertRegex(self.rows(page), " of [1-9]")

    def test_a_first_screen_that_is_full_shows_each_kind_of_finding(self):
        news = [{"outcome": outcome, "case": f"{outcome} {i}", "cases": [""], "device": "", "pairs": 1, "history": []} for outcome, n in (("overrun", 12), ("wrong", 9), ("nan", 1), ("build_fail", 3)) for i in range(n)]
        self.assertEqual([f["case"] for f in opening.various(news)], ["overrun 0", "overrun 1", "overrun 2", "wrong 0", "wrong 1", "wrong 2", "nan 0", "build_fail 0", "build_fail 1", "build_fail 2"])
        self.assertEqual([f["case"] for f in opening.various(news[:9])], [f"overrun {i}" for i in range(9)])

    def test_the_first_screen_of_all_examples_needs_no_scrolling(self):
        support.run(support.HERE.parent / "examples", "-o", self.at / "examples")
        page = self.open("examples", screen=LAPTOP)
        self.assertLessEqual(page.evaluate("document.getElementById('glance').getBoundingClientRect().bottom"), LAPTOP[1])
        self.assertGreater(page.locator("#heat .fails").count(), 0)
        self.quiet()

    def test_the_words_of_a_cell_move_nothing_and_are_whole(self):
        """Words of two lines, and of twelve."""
        places = "[document.getElementById('heat').getBoundingClientRect().top + scrollY, document.documentElement.scrollHeight]"
        for name in ("good", "gate", "matrix"):
            for screen in (LAPTOP, PHONE):
                page = self.open(name, screen=screen)
                before = page.evaluate(places)
                page.evaluate("document.querySelectorAll('#heat button.cell').forEach((e, i) => { if (i % 2) e.setAttribute('aria-label', 'many words '.repeat(60)); })")
                for place in range(0, page.locator("#heat button.cell").count(), 9):
                    page.hover(f"#heat button.cell >> nth={place}", timeout=5000)
                    page.focus(f"#heat button.cell >> nth={place}")
                    self.assertEqual(page.evaluate(places), before, (name, screen, place))
                    cut = page.evaluate("(() => { const tip = document.getElementById('heat-tip'), r = tip.getBoundingClientRect(); return tip.scrollWidth > tip.clientWidth || tip.scrollHeight > tip.clientHeight || r.right > innerWidth; })()")
                    self.assertFalse(cut, (name, screen, place, page.inner_text("#heat-tip")))

    def test_a_cell_of_the_map_is_legible_without_colour_and_counts_in_words(self):
        page = self.open("gate")
        cells = {b.get_attribute("aria-label"): b.inner_text().split() for b in page.locator("#heat button.cell").all()}
        found = next(label for label in cells if label.startswith("backward, 9.27.0"))
        self.assertRegex(found, r"^backward, 9\.27\.0: 1 wrong, \d+ unsupported, \d+ pass; since 9\.20\.0 1 worse, 1 lost, \d better$")
        self.assertIn("−2", cells[found])
        legend = page.evaluate("Object.fromEntries([...document.querySelectorAll('#heat-legend .cell')].map((e) => [e.className.split(' ')[1], e.textContent.trim()]))")
        self.assertEqual(set(legend), set(page.evaluate("[...document.querySelectorAll('#heat .cell')].flatMap((e) => [...e.classList].slice(1))")))
        signs = [sign for sign in legend.values() if sign]
        self.assertEqual((len(set(signs)), len(signs) >= 4), (len(signs), True), legend)
        page.hover("#heat button.cell >> nth=3")
        self.assertIn(page.get_attribute("#heat button.cell >> nth=3", "aria-label"), page.inner_text("#heat-tip"))

    def test_a_refusal_by_facts_itself_is_not_asked_in_the_map(self):
        lines = list(synthetic.record(("9.20.0", "9.27.0"), (synthetic.DEVICES[1],)))
        for one in lines:
            if one.get("cudnn") == "9.27.0" and "dtype=f16" in one.get("case", ""):
                one |= {"verdict": "unsupported", "supported": False, "engines": [], "reason": {"class": "policy", "text": "a guard", "rule": "some-guard"}}
        (self.at / "guarded.jsonl").write_text(synthetic.text(lines))
        support.run(self.at / "guarded.jsonl", "-o", self.at / "guarded")
        page = self.open("guarded")
        self.assertEqual(page.locator("#heat button[aria-label^='f16, 9.27.0']").get_attribute("aria-label"), "f16, 9.27.0: not asked, 8 refused by FACTS itself")
        self.assertEqual(page.locator("h1").inner_text(), "cuDNN 9.27.0 accepts and refuses what 9.20.0 does.")

    def test_what_a_query_hides_is_not_drawn_as_absent(self):
        page = self.open(fragment="#axes=Pass&view=columns&q=cudnn=9.20.0")
        self.assertIn("filtered away", page.inner_text("#matrix"))
        self.assertNotIn("no row", page.inner_text("#matrix"))
        cells = page.locator("#heat tbody tr").first.locator("button.cell")
        self.assertEqual([cells.nth(i).get_attribute("class") for i in range(4)], ["cell away", "cell away", "cell fails", "cell away"])
        self.assertRegex(cells.first.get_attribute("aria-label"), ": filtered away$")
        self.assertIn("▽ filtered away", page.inner_text("#heat-legend"))
        self.assertNotIn("not asked", page.inner_text("#heat-legend"))
        cells.first.hover()
        self.assertIn("filtered away", page.inner_text("#heat-tip"))
        self.show(page)
        self.assertNotIn("filtered away", page.inner_text("#heat-legend"))

    def test_the_map_opens_with_the_device_where_something_was_lost(self):
        lines = [*synthetic.gate(DECIDED[1], "no such case"), *synthetic.gate(DECIDED[0])]
        (self.at / "second.jsonl").write_text(synthetic.text(lines))
        support.run(self.at / "second.jsonl", "-o", self.at / "second")
        page = self.open("second")
        self.assertEqual(page.locator("#devices button").all_inner_texts()[0], "h100-spec")
        self.assertIn("on sm80-spec", page.locator("#heat caption").inner_text())
        self.assertIn("−2", page.inner_text("#heat"))

    def test_the_map_of_a_run_opens_with_a_device_that_has_findings(self):
        lines = [*synthetic.record(synthetic.BUILDS, DECIDED), *synthetic.record(("9.20.0", "9.27.0"), (synthetic.DEVICES[0],), run="r2")]
        (self.at / "green.jsonl").write_text(synthetic.text(lines))
        support.run(self.at / "green.jsonl", "-o", self.at / "green")
        page = self.open("green")
        self.assertIn("findings", page.inner_text("h1"))
        self.assertIn("on h100-sxm", page.locator("#heat caption").inner_text())

    def test_the_device_of_the_map_is_switched(self):
        page = self.open("matrix")
        page.click("#devices button >> text=sm80-spec")
        self.assertEqual(page.input_value("#device"), "sm80-spec")
        self.assertIn("on sm80-spec", page.locator("#heat caption").inner_text())

    def test_builds_of_one_version_share_a_column_unless_they_differ(self):
        lines = list(synthetic.record(("9.20.0", "9.27.0"), (synthetic.DEVICES[1],)))
        for kind, words in (("alike", "give the same answers"), ("differ", "differ in 4 cases"), ("other", "were asked different cases")):
            more = []
            for one in lines:
                if one.get("cudnn") == "9.20.0" and "case" in one:
                    bad = kind == "differ" and "mask=causal_br" in one["case"]
                    more.append({**one, "build": "9.20.0-full-cu13", "case": one["case"] + " seed=7" * (kind == "other"),
                                 **({"verdict": "unsupported", "supported": False, "reason": {"class": "unsupported", "status": "S", "text": "no"}} if bad else {})})
            name = f"builds-{kind}"
            (self.at / f"{name}.jsonl").write_text(synthetic.text([*lines[:-1], *more, lines[-1]]))
            support.run(self.at / f"{name}.jsonl", "-o", self.at / name)
            page = self.open(name)
            heads = page.locator("#heat thead th").all_inner_texts()
            self.assertEqual(heads, ["9.20.0-full-cu13", "9.20.0-jit-cu13", "9.27.0"] if kind == "differ" else ["9.20.0", "9.27.0"])
            self.assertIn(f"full-cu13 and jit-cu13 {words}.", page.inner_text("#heat-notes"))

    def test_two_versions_by_address(self):
        page = self.open(fragment="?a=9.14.0&b=9.27.0&device=h100-sxm")
        self.assertEqual((page.input_value("#from"), page.input_value("#to"), page.input_value("#device")), ("9.14.0-jit-cu13", "9.27.0-jit-cu13", "h100-sxm"))
        self.assertIn("9.14.0 → 9.27.0", page.inner_text("#compare-result"))
        self.assertNotIn("sm80-spec", page.inner_text("#compare-result"))
        page.click("button.group >> nth=0")
        beside = page.locator("table.beside")
        self.assertEqual(beside.locator("thead th").all_inner_texts(), ["Case", "Device", "9.14.0", "9.27.0"])
        self.assertRegex(beside.locator("tbody tr").first.inner_text(), "engines 2 1")
        address = page.url
        self.assertIn("a=9.14.0", address)
        again = page.context.new_page()
        again.goto(address)
        again.wait_for_selector("html[data-ready]")
        self.assertEqual(again.inner_text("main"), page.inner_text("main"))
        self.quiet()

    def dropped(self, page, files):
        """What the page says of two files: (headline, summaries of its groups, the text of them opened)."""
        page.set_input_files("#files", files)
        result = page.locator("#drop-result")
        result.locator("h3").wait_for()
        page.evaluate("document.querySelectorAll('#drop-result details').forEach((e) => { e.open = true; })")
        return result.locator("h3 .sub").inner_text(), result.locator("summary").all_text_contents(), result.locator(".inside").all_text_contents()

    def due(self, *files):
        """The same as `facts diff` has it, and its groups."""
        found = diff.compare(files)
        step = steps.as_object(found, {name: place for place, name in enumerate(dict.fromkeys(found.names))})
        said = [f"{BY_CHANGE[g['class']].mark} {g['cases']} {g['class']}{' (' + str(g['known']) + ' known)' if g['known'] else ''}: {g['words']}{g['on'] and ' on ' + g['on']}{g['before']} → {g['after']}" for g in step["groups"]]
        return step["headline"], said, step["groups"]

    def test_two_dropped_records_get_the_groups_of_facts_diff(self):
        """Of synthetic measurements, and of decisions of two versions for two devices."""
        families = {"9.9.0": [], "9.28.0": []}
        for line in lzma.open(support.HERE.parent / "examples/families-decided.jsonl.xz", "rt", encoding="utf-8"):
            one = json.loads(line)
            if "target" not in one and "start" not in one:
                for version in [one["cudnn"]] if "case" in one else families:
                    families.get(version, []).append(line)
        measured = {version: synthetic.text(synthetic.record((version,), (synthetic.DEVICES[0],))) for version in ("9.20.0", "9.27.0")}
        page, groups = self.open(), []
        for name, lines in (("families", families), ("measured", measured)):
            files = [self.at / f"{name}-{place}.jsonl" for place in range(2)]
            for file, text in zip(files, lines.values()):
                file.write_text("".join(text), encoding="utf-8")
            headline, summaries, inside = self.dropped(page, files)
            due, said, groups = self.due(*files)
            self.assertEqual((headline.strip(), summaries), (due, said))
            for text, group in zip(inside, groups):
                self.assertIn(f"{group['where'] and group['where'] + ': '}{group['exactness']}.{group['change'] and ' ' + group['change']}", text)
                self.assertIn(group["repro"], text)
            page.evaluate("document.getElementById('drop-result').replaceChildren()")
        self.assertEqual([g["class"] for g in groups], ["worse", "better"])
        self.quiet()

    def test_dropped_files_that_cannot_be_compared_are_named(self):
        lines = {version: synthetic.text(synthetic.record((version,), (synthetic.DEVICES[0],))).encode() for version in ("9.14.0", "9.20.0", "9.27.0")}
        files = [{"name": "b.jsonl", "mimeType": "text/plain", "buffer": lines["9.20.0"] + b"cut"}, {"name": "a.jsonl.gz", "mimeType": "application/gzip", "buffer": gzip.compress(lines["9.27.0"])}]
        page = self.open()
        self.assertIn("1 accepted case fails now", self.dropped(page, files)[0])   # the older version stands first, whatever the files are called
        self.assertIn("1 line could not be read.", page.inner_text("#drop-result"))
        self.assertIn("facts diff b.jsonl a.jsonl.gz", page.inner_text("#drop-result"))
        for wrong, said in (([files[0]], "Choose two records; this was 1."), ([files[0], {**files[1], "name": "b.jsonl.xz"}], "b.jsonl.xz is packed with xz"),
                            ([{**files[0], "buffer": lines["9.14.0"]}, {**files[0], "name": "two.jsonl", "buffer": lines["9.20.0"] + lines["9.27.0"]}], "which target is compared with which?"), ([files[0], {**files[0], "name": "c", "buffer": b"{}"}], "c holds no row of a record")):
            page.set_input_files("#files", wrong)
            page.wait_for_function("(said) => document.getElementById('drop-result').textContent.includes(said)", arg=said)
        self.quiet()

    def test_the_groups_are_those_of_facts_diff(self):
        page = self.open()
        data = json.loads(page.locator("#data").text_content())
        for step in data["steps"] + data["others"]:
            _, *groups = self.diffs("good", f"--baseline={step['a']}", f"--candidate={step['b']}")
            due = [(g["group"]["class"], g["group"]["where"], g["group"]["cases"], g["group"]["repro"]) for g in groups]
            self.assertEqual([(g["class"], g["where"], g["cases"], g["repro"]) for g in step["groups"]], [d for d in due if d[0] != "reason changed"])
        self.assertEqual(len(data["steps"] + data["others"]), 6)

    def test_versions_are_compared_by_the_cases_that_both_were_asked(self):
        runs = [synthetic.record((version,), (synthetic.DEVICES[1],), extra=extra, run=version) for version, extra in (("9.20.0", 0), ("9.27.0", 5))]
        (self.at / "uneven.jsonl").write_text("".join(map(synthetic.text, runs)))
        support.run(self.at / "uneven.jsonl", "-o", self.at / "uneven")
        (step,) = json.loads(self.open("uneven").locator("#data").text_content())["steps"]
        self.assertEqual((step["compared"], step["totals"].get("missing")), (76, None))

    def test_few_tab_stops_stand_before_the_rows(self):
        for name in self.records:
            page = self.open(name)
            self.assertLessEqual(page.evaluate(TAB_STOPS), 60, name)
            page.click("#unfold")
            page.evaluate("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
            self.assertLessEqual(page.evaluate(TAB_STOPS), 60, name)
            self.assertEqual(set(page.evaluate("[...document.querySelectorAll('.findings')].map((t) => [...t.querySelectorAll('a, button, summary')].filter((e) => e.tabIndex >= 0).length)")) - {1}, set(), name)
        page.keyboard.press("Home")
        page.reload()
        page.keyboard.press("Tab")
        self.assertEqual(page.evaluate("document.activeElement.textContent"), "Skip to what changed")
        self.ask(page, "pass=bwd")
        before = page.url, self.rows(page)
        page.focus(".skip >> nth=1")
        page.keyboard.press("Enter")
        self.assertEqual((page.url, self.rows(page), page.evaluate("document.activeElement.id")), (*before, "rows-title"))

    def test_arrow_keys_move_in_each_table(self):
        page = self.open(fragment="#axes=Heads,Pass")
        for selector, key in (("#heat button.cell", "ArrowDown"), ("#matrix button.segment", "ArrowDown"), ("#matrix button.fold", "ArrowDown"), ("#rows button.open", "ArrowDown"), ("#devices button", "ArrowRight"),
                              ("#news button.line", "ArrowDown"), (".findings button", "ArrowDown"), ("button.group", "ArrowDown")):
            page.focus(f"{selector} >> nth=0")
            before = page.evaluate("document.activeElement.outerHTML")
            page.keyboard.press(key)
            after = page.evaluate("document.activeElement.outerHTML")
            self.assertNotEqual(after, before, selector)
            self.assertIn("<button", after)

    def test_nothing_is_wider_than_a_phone(self):
        for name in self.records:
            page = self.open(name, screen=PHONE)
            for fragment in ("", EVERYTHING, EVERYTHING + "&view=columns"):
                self.show(page, fragment)
                self.assertEqual(page.evaluate("document.documentElement.scrollWidth"), PHONE[0], (name, fragment))
                self.assertLessEqual(page.evaluate("document.getElementById('bar').offsetHeight"), 48)
                if "columns" not in fragment:   # devices stand one under the other: nothing has to be pushed aside, and nothing overprints
                    self.assertEqual(page.evaluate("[...document.querySelectorAll('#matrix .segment, #rows > tbody > tr > td, #news *')].filter((e) => e.getBoundingClientRect().right > innerWidth).length"), 0, (name, fragment))
                    self.assertLessEqual(len(page.evaluate("[...new Set([...document.querySelectorAll('#matrix td')].map((e) => e.getBoundingClientRect().left))]")), 1, (name, fragment))
                self.quiet()

    def test_what_is_opened_is_legible_and_cut_nowhere(self):
        """A refusal with the long conditions that cuDNN writes, errors of a failure, known failures."""
        lines = list(synthetic.record())
        for one in lines:
            for said in one.get("reason", {}).get("chain", [])[:1] * 4:
                one["reason"]["chain"].append({**said, "condition": "!(" + " && ".join(f"is_supported_io_dtype({t}Type)" for t in "qkvo" * 4) + ")", "text": "check_sdpa_fwd_flash_mha_support(sdpa_node)_" * 6})
        (self.at / "wordy.jsonl").write_text(synthetic.text(lines))
        support.run(self.at / "wordy.jsonl", "-o", self.at / "wordy")
        page = self.open("wordy")
        for screen in (LAPTOP, PHONE, (1024, 768)):
            for query in ("d=100", "verdict=wrong"):
                self.show(page, f"#q={query}", screen)
                page.click("#rows button.open >> nth=0")
                page.evaluate("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
                self.assertEqual(page.evaluate(CUT), [], (screen, query))
                narrow = page.evaluate("[...document.querySelectorAll('.detail td')].filter((e) => e.textContent.length > 12 && e.clientWidth < 90).map((e) => [e.textContent, e.clientWidth])")
                self.assertEqual(narrow, [], (screen, query))
                wide = page.evaluate("[...document.querySelectorAll('.detail .scroll')].filter((e) => e.scrollWidth > e.clientWidth && getComputedStyle(e).overflowX !== 'auto').length")
                self.assertEqual(wide, 0, (screen, query))
                if screen == PHONE:
                    self.assertEqual(page.evaluate("[...document.querySelectorAll('.detail .scroll')].filter((e) => e.scrollWidth > e.clientWidth).length"), 0, query)
                if query == "d=100":
                    self.assertEqual(page.locator(".detail table >> nth=0 >> tbody tr").count(), 3)   # each answer once
                    self.assertLess(page.locator(".detail").bounding_box()["height"], 1.6 * screen[1])

    def test_a_phone_shows_the_cases_of_a_group_one_under_the_other(self):
        page = self.open("gate", screen=PHONE)
        page.click("#news [data-group] >> text=2 lost")
        for place in range(2):
            boxes = [page.locator(".beside tbody tr").nth(place).locator("td").nth(i).bounding_box() for i in range(4)]
            self.assertEqual({round(box["x"]) for box in boxes}, {round(boxes[0]["x"])})
            self.assertGreater(boxes[0]["width"], 300)
        self.assertEqual(page.evaluate("getComputedStyle(document.querySelectorAll('.beside td')[3], '::before').content"), '"9.27.0 "')

    def test_a_phone_shows_the_newest_versions_first(self):
        versions = [f"9.{minor}.0" for minor in range(2, 28)]
        (self.at / "long.jsonl").write_text(synthetic.text({**one, "plan_ms": 300, "workspace_bytes": 0} if "case" in one else one for one in synthetic.record(versions, (synthetic.DEVICES[1],))))
        support.run(self.at / "long.jsonl", "-o", self.at / "long")
        page = self.open("long", screen=PHONE)
        self.assertLessEqual(page.locator("#heat thead th").last.bounding_box()["x"], PHONE[0] - 20)
        self.assertEqual(page.locator("#heat th[scope=row]").first.bounding_box()["x"], 12)

    def test_it_prints_on_two_pages(self):
        for name in self.records:
            page = self.open(name, EVERYTHING)
            self.assertLessEqual(page.pdf(prefer_css_page_size=True).count(b"/Type /Page\n"), 2, name)

    def test_print_counts_what_it_has_no_room_for(self):
        """A comparison with seven groups, and an address that opens one of them."""
        lines = list(synthetic.gate())
        for one in lines:
            for place, where in enumerate(("layout=sbhd", "layout=bhsd", "layout=bs3hd", "d=512", "d=256", "h=8/1")):
                if one.get("cudnn") == "9.27.0" and where in one.get("case", ""):
                    one |= {"verdict": "unsupported", "supported": False, "engine": None, "engines": [], "errors": {}, "reason": {"class": "unsupported", "status": "S", "text": "abcdef"[place] * 300}}
        (self.at / "groups.jsonl").write_text(synthetic.text(lines))
        support.run(self.at / "groups.jsonl", "-o", self.at / "groups")
        page = self.open("groups", "#group=9.20.0-jit-cu13..9.27.0-jit-cu13.0&a=9.20.0&b=9.27.0")
        cut = "[...document.querySelectorAll('main > section')].filter((e) => e.scrollHeight > e.clientHeight + 1).map((e) => e.id)"
        many = page.locator("#compare-result button.group").count()
        self.assertGreater(many, 6)
        self.assertFalse(page.locator(".printed").first.is_visible())
        page.emulate_media(media="print")
        self.assertEqual(page.evaluate(cut), [])
        self.assertEqual(len([e for e in page.locator("#compare-result li").all() if e.is_visible()]), 6)
        self.assertIn(f"{many - 6} more group", page.inner_text("#compare-result"))
        page = self.open()
        page.emulate_media(media="print")
        self.assertEqual(page.evaluate(cut), [])

    def test_a_printed_map_of_every_version_is_whole(self):
        versions = [f"9.{minor}.{patch}" for minor in range(8, 25) for patch in (0, 1)]
        # The same times everywhere: what makes changes of noise would search 34 versions for predicates.
        lines = [{**one, "plan_ms": 300, "workspace_bytes": 0} if "case" in one else one for one in synthetic.record(versions, (synthetic.DEVICES[1],))]
        (self.at / "many.jsonl").write_text(synthetic.text(lines))
        support.run(self.at / "many.jsonl", "-o", self.at / "many")
        page = self.open("many", screen=(1045, 700))   # A4, landscape, without its margins
        page.emulate_media(media="print")
        self.assertEqual(page.locator("#heat thead th").count(), 34)
        self.assertLessEqual(page.evaluate("document.getElementById('heat').getBoundingClientRect().right"), 1045)
        page.emulate_media(media="screen")
        self.show(page, screen=LAPTOP)
        self.assertLessEqual(page.evaluate("document.getElementById('heat').getBoundingClientRect().right"), LAPTOP[0])
        self.assertLessEqual(page.evaluate("document.getElementById('glance').getBoundingClientRect().bottom"), LAPTOP[1])


if __name__ == "__main__":
    unittest.main()
