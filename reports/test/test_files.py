import csv
import json
import os
import resource
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import support
import synthetic
from facts_reports.page import markdown, site
from facts_reports.read import files


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.at = Path(cls.folder.name)
        (cls.at / "good.jsonl").write_text(synthetic.text(synthetic.record()))
        (cls.at / "bad.jsonl").write_bytes(synthetic.hostile())
        cls.good, cls.bad = cls.at / "good", cls.at / "bad"
        cls.said = [support.run(cls.at / f"{n}.jsonl", "-o", cls.at / n) for n in ("good", "bad")]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def rows(self):
        """(rows of the CSV, all of the JSON)"""
        with (self.good / "results.csv").open(encoding="utf-8") as f:
            rows = list(csv.DictReader(f))
        return rows, json.loads((self.good / "results.json").read_text(encoding="utf-8"))

    def test_exit_codes_say_what_happened_and_bad_input_is_one_line(self):
        self.assertEqual([c for c, _, _ in self.said], [0, 4])
        (self.at / "empty.jsonl").write_text("")
        good, out = self.at / "good.jsonl", ("-o", self.at / "x")
        for code, *args in (
            (2, good),
            (2, good, "--nonsense"),
            (2, self.at / "empty.jsonl", *out),
            (3, good, "-o", "/dev/null"),
            (2, self.at / "nothing.jsonl", *out),
        ):
            found, _, err = support.run(*args)
            self.assertEqual(found, code, args)
        self.assertEqual(err.count("\n"), 1)
        self.assertIn("nothing.jsonl", err)

    def test_every_file_has_every_row_and_says_when_it_was_asked_and_of_which_suite(self):
        rows, whole = self.rows()
        cases = ElementTree.parse(self.good / "junit.xml").getroot().iter("testcase")
        self.assertEqual([len(rows), len(whole["rows"]), len(list(cases))], [608] * 3)
        self.assertEqual(whole["totals"]["planned"], 608)
        nan = [r for r in rows if r["outcome"] == "nan"]
        self.assertEqual((len(nan), {r["ratio"] for r in nan}), (18, {"inf"}))
        self.assertIn("got nan", nan[0]["worst"])
        due = ("2026-11-20T09:30:00Z", "FACTS 0.1.0", "5f0c3a9e12d47b68")
        found = [whole[key] for key in ("asked", "tolerances", "suites")]
        self.assertEqual(found, [due[0], [due[1]], [due[2]]])
        for row in (*rows, *whole["rows"]):
            self.assertEqual(tuple(row[key] for key in ("asked", "tolerance", "suite_hash")), due)
        ratios = [str(row["ratio"] or "") for row in whole["rows"]]
        self.assertEqual(ratios, [row["ratio"] for row in rows])

    def test_a_spreadsheet_runs_nothing(self):
        with (self.bad / "results.csv").open(encoding="utf-8") as f:
            for row in csv.reader(f):
                for cell in row:
                    self.assertFalse(cell.startswith(("=", "@", "+")), cell)

    def test_junit_tells_failures_errors_and_skips_apart(self):
        root = ElementTree.parse(self.good / "junit.xml").getroot()
        suite = next(s for s in root if s.get("name") == "9.14.0 on h100-sxm")
        found = [suite.get(k) for k in ("tests", "failures", "errors", "skipped")]
        self.assertEqual(found, ["76", "1", "1", "10"])
        failure = next(c for c in suite if c.find("failure") is not None)
        self.assertEqual(failure.get("classname"), "facts.fwd.sm90.cudnn9.14.0")
        self.assertIn("facts repro", failure.find("failure").text)
        skips = [c.find("skipped").get("message") for c in suite if c.find("skipped") is not None]
        self.assertTrue(any("multiple of 8" in s for s in skips))
        self.assertTrue(any(s.startswith("xfail") for s in skips))
        self.assertEqual(support.junit_breaches(self.good / "junit.xml"), [])
        self.assertGreater(float(suite.get("time")), 1)

    def test_names_of_junit_stay_when_only_the_counts_differ(self):
        from facts_reports.page import exports

        all_, exports.JUNIT_ALL = exports.JUNIT_ALL, 10
        self.addCleanup(setattr, exports, "JUNIT_ALL", all_)
        named, junit = [], self.at / "some.xml"
        for extra in (0, 3):
            lines = synthetic.text(synthetic.record(extra=extra))
            exports.write_junit(support.store(self.at, lines, "some.jsonl"), junit, "some")
            self.assertEqual(support.junit_breaches(junit), [])
            named.append([s.get("name") for s in ElementTree.parse(junit).getroot()])
        self.assertEqual(*named)

    def test_hostile_text_makes_valid_xml_and_json(self):
        ElementTree.parse(self.bad / "junit.xml")
        text = (self.bad / "results.json").read_text(encoding="utf-8")
        json.loads(text, parse_constant=self.fail)

    def test_the_overview_is_small(self):
        for folder in (self.good, self.bad):
            size = (folder / "summary.md").stat().st_size
            self.assertLessEqual(size, 4096)
            self.assertGreater(size, 300)
        text = (self.good / "summary.md").read_text(encoding="utf-8")
        said = "5 findings in 3 cases: 1 crash, 1 wrong and 3 unwritten; also 18 known failures."
        self.assertIn(said, text)
        self.assertIn("and 5 cases like it", text)

    def test_the_page_holds_no_markup_of_the_record_and_asks_nobody(self):
        known = "#compare-title #rows-title results.csv results.json junit.xml".split()

        class Reader(HTMLParser):
            tags = []

            def handle_starttag(self, tag, attrs):
                self.tags.append(tag)
                for name, value in attrs:
                    asks = name in ("src", "href", "srcset") and value not in known
                    assert not asks and not name.startswith("on"), (tag, attrs)

        reader = Reader()
        page = (self.bad / "index.html").read_text(encoding="utf-8")
        reader.feed(page)
        script = '<script type="application/json" '
        # Columns are data too, and nobody else's: a '<' of the record is escaped.
        columns = page.count(f'\n{script}data-column="')
        counts = [reader.tags.count(tag) for tag in ("script", "img", "link")]
        # The data, and the page's own script.
        self.assertEqual((counts, page.count("\n<script>")), ([2 + columns, 0, 0], 1))
        data = page.split(f'{script}id="data">')[1].split("</script>")[0]
        self.assertNotIn("<", data)
        data = json.dumps(json.loads(data), ensure_ascii=False).replace('\\"', '"')
        self.assertIn(synthetic.MARKUP, data)
        self.assertIn("Content-Security-Policy", page)

    def test_the_same_records_make_the_same_bytes(self):
        support.run(self.at / "good.jsonl", "-o", self.at / "again")
        for name in ("index.html", "results.csv", "results.json", "summary.md", "junit.xml"):
            one, other = (self.at / folder / name for folder in ("good", "again"))
            self.assertEqual(one.read_bytes(), other.read_bytes(), name)

    def issue(self, name, case):
        code, out, _ = support.run(self.at / f"{name}.jsonl", "--issue", case)
        return code, out

    def test_an_issue_body_has_all_that_its_reader_asks(self):
        code, out = self.issue("good", "dtype=bf16 pass=bwd fill=neglse s=192")
        self.assertEqual(code, 0)
        for word in (
            "## nan: `pass=bwd dtype=bf16 s=192 fill=neglse`",
            "| dq | inf |",
            "facts repro 'pass=bwd dtype=bf16 s=192 fill=neglse' --cudnn 9.14.0 --device h100-sxm",
            "sha256",
            "9.27.0",
            "Expected: the reference results, within the tolerance.",
            "--device h100-sxm --standalone program",
        ):
            self.assertIn(word, out)
        self.assertEqual(self.issue("good", "pass=fwd dtype=f32")[0], 2)

    def test_a_described_device_is_no_card_in_an_issue(self):
        target = {"device_name": "NVIDIA H100 80GB HBM3", "driver": 0, "described_from": "a card"}
        row = {"sm": 90, "device": "h100-sxm"}
        said = markdown._device(SimpleNamespace(runs={}), row, target)
        self.assertEqual(said, ["described sm_90 (h100-sxm), no GPU needed"])
        rows = [
            (verdict, {"verdict": verdict, "device": "d", "cudnn": version})
            for version, verdict in (("9.9.0", "supported"), ("9.10.0", "crash"), ("9.8.0", "pass"))
        ]
        last = "Expected: cuDNN answers, and the process lives. Last good version: 9.9.0; first bad: 9.10.0."
        self.assertEqual(markdown._expected(rows, rows[1][1])[-1], last)

    def test_a_copied_command_is_quoted_for_the_shell(self):
        _, out = self.issue("bad", "pass=bwd dtype=bf16 b=1'; touch /tmp/owned; '")
        self.assertIn("facts repro 'pass=bwd dtype=bf16 b=1'\\''; touch /tmp/owned; '\\'''", out)

    def test_more_rows_than_a_page_can_hold_are_in_the_files_and_the_page_says_so(self):
        for limit in ("MOST_ROWS", "MOST_CASES"):
            with mock.patch.object(site, limit, 10):
                code, _, err = support.run(self.at / "good.jsonl", "-o", self.at / "page")
            html = (self.at / "page/index.html").read_text()
            self.assertEqual((code, "too many rows for one page" in err), (0, True))
            self.assertRegex(html, r"\d+ rows of \d+ cases are too many for one page")
            self.assertNotIn("application/json", html)
        lines = (self.at / "page/results.csv").read_text().splitlines()
        self.assertEqual(len(lines), 1 + len(self.rows()[0]))

    def test_a_disk_without_room_leaves_the_old_file_and_is_named(self):
        path = self.at / "kept" / "some.known"
        path.parent.mkdir()
        path.write_text("old")
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        # As a full disk, an error that names no file.
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        try:
            with self.assertRaises(OSError) as caught:
                files.write(path, 100000 * "x")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        self.assertEqual(caught.exception.filename, str(path))
        self.assertEqual((path.read_text(), os.listdir(path.parent)), ("old", ["some.known"]))
