"""The files of known failures: what they say, how ranges follow from observations, what is made of them, and each mistake with its place."""

import json
import re
import tempfile
import unittest
from pathlib import Path

import support
from facts_reports.known import expectations, guards, known, knowledge, observe, pages
from facts_reports.read import cases, predicate
from facts_reports.read.store import load

HOME = Path(__file__).resolve().parent.parent.parent
FOLDER = HOME / "cases/known"
FAMILIES = "general: 1, 7 from 9.15.0\nhopper: none, 5 from 9.13.0, 9 from 9.15.0\n"
FILE = (support.HERE / "something.known").read_text()


WRONG = "pass=bwd dtype=e4m3 s=200 guards=off"


class Temporary(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.put("engines.families", FAMILIES)

    def put(self, name, text):
        path = Path(self.folder.name) / name
        path.write_text(text, encoding="utf-8")
        return path

    def read(self, text=FILE, name="x.known"):
        self.put(name, text)
        return known.load(self.folder.name)[0]


class Ranges(unittest.TestCase):
    def test_a_failure_is_open_until_a_newer_version_was_seen_right(self):
        for seen, right, ranges in (
            ({91400}, set(), [(91400, 0)]),
            ({91400, 92800}, set(), [(91400, 0)]),
            ({91400}, {91900}, [(91400, 91900)]),
            ({91400}, {91300}, [(91400, 0)]),
            ({91400, 91900}, {91500}, [(91400, 91500), (91900, 0)]),
            ({91400, 91500}, {91900, 92000}, [(91400, 91900)]),
            ({0}, {90500}, [(0, 90500)]),
            (set(), {90500}, []),
        ):
            with self.subTest(seen=seen, right=right):
                self.assertEqual(known.failing_ranges(seen, right), ranges)

    def test_versions_are_numbers_as_cudnn_counts(self):
        for version, number in (("9.14.0", 91400), ("9.8", 90800), ("10.1.2", 100102)):
            self.assertEqual(known.number(version), number)
        self.assertEqual(known.word(92801), "9.28.1")


class Files(Temporary):
    def test_a_failure_becomes_a_guard_for_each_number_of_its_kernel(self):
        guard, suspected = self.read().failures[0].guard()
        keys = ("engine", "cudnn_from", "cudnn_to", "sm_from", "sm_to")
        found = [[getattr(rule, key) for key in keys] for rule in guard.rules]
        self.assertEqual(found, [[1, 91400, 91499, 90, 90], [7, 91500, 92699, 90, 90]])
        found = [(r.engine, r.sm_from, r.sm_to) for r in suspected.rules]
        self.assertEqual(found, [(1, 80, 89), (7, 80, 89)])
        self.assertIn("Suspected: it was seen on sm_90", suspected.why)
        self.assertNotIn("uspected", guard.why)
        self.assertIn("seq_q is", guards.emit([guard, suspected]))

    def test_a_kernel_that_a_version_does_not_offer_has_no_rule_there(self):
        text = FILE.replace("engine: general", "engine: hopper")
        text = text.replace("seen: 9.14.0", "seen: 9.12.0 9.14.0")
        guard = self.read(text).failures[0].guard()[0]
        self.assertEqual([(r.engine, r.cudnn_from) for r in guard.rules], [(5, 91300), (9, 91500)])

    def holds(self, where, case, **row):
        """Whether an expectation is of a row."""
        said = cases.parse(f"pass=bwd dtype=e4m3 {case}")
        tree = predicate.parse(where)
        return predicate.holds(tree, lambda key: row.get(key) or cases.value_of(said, key))

    def test_a_plan_that_does_not_compile_is_known_without_a_gpu_too(self):
        mixed = FILE.replace("failure:\nverdict: wrong\n", "failure:\nverdict: wrong/build_fail?\n")
        mixed = mixed.replace("\nverdict: wrong\n\n", "\nverdict: wrong build_fail\n\n", 1)
        where = self.read(mixed).failures[0].expectations()[0][0]
        for grade, verdict, holds in (
            ("measured", "wrong", True),
            ("measured", "pass", True),
            ("decided", "build_fail", True),
            ("decided", "supported", False),
        ):
            row = {"engine": "7", "cudnn": "9.19.0", "sm": "90", "grade": grade, "verdict": verdict}
            self.assertEqual(self.holds(where, "s=200 guards=off", **row), holds, row)

    def test_a_failure_becomes_expectations_that_hold_where_it_does(self):
        (where, suspected), (elsewhere, seldom) = self.read().failures[0].expectations()
        self.assertEqual((suspected, seldom), (False, True))
        for line in """1 9.14.0 90 200 off yes; 7 9.18.1 90 200 off yes; 7 9.26.1 90 200 off yes
7 9.27.0 90 200 off no; 7 9.30.0 90 200 off no; 7 9.14.0 90 200 off no; 1 9.13.0 90 200 off no
1 9.14.0 80 200 off no; 1 9.14.0 90 256 off no; 1 9.14.0 90 200 on no""".replace("\n", "; ").split(
            "; "
        ):
            engine, version, sm, s, word, holds = line.split()
            case = f"s={s}" + (" guards=off" if word == "off" else "")
            row = {"engine": engine, "cudnn": version, "sm": sm, "grade": "measured"}
            self.assertEqual(self.holds(where, case, **row), holds == "yes", line)
        self.assertIn("sm>=80 & sm<=89", elsewhere)

    def test_shows_narrows_or_replaces_or_leaves_out(self):
        for shows, want in (
            ("& fill=neglse", "pass=bwd & dtype=e4m3 & s.q%16!=0 & fill=neglse"),
            ("pass=bwd", "pass=bwd"),
            ("none", ""),
        ):
            entry = self.read(FILE.replace("engine: general", f"shows: {shows}\nengine: general"))
            self.assertEqual(entry.failures[0].shows, want)
            self.assertEqual(bool(entry.failures[0].expectations()), bool(want))

    def test_an_or_is_kept_together(self):
        entry = self.read(FILE.replace("when: pass=bwd", "when: pass=fwd | pass=bwd"))
        self.assertIn(
            "(pass=fwd | pass=bwd & dtype=e4m3 & s.q%16!=0) & (engine=1",
            entry.failures[0].expectations()[0][0],
        )

    def test_each_mistake_is_one_line_with_its_place(self):
        for old, new, place, words in (
            ("title: Something is wrong.\n", "", ":1:", "title is missing"),
            ("kind: failure", "kind: failur", ":2:", "none of"),
            ("kind: failure", "kind: failure\nabout: caller", ":3:", "about: want one of caller"),
            *(
                ("verdict: wrong\n\n", f"verdict: wrong\n{line}\n\n", ":4:", words)
                for line, words in (
                    ("contract: documented", "contract: want 'documented; SOURCE'"),
                    ("contract: promised; a page", "words: documented silent excluded unreleased"),
                    ("contract: silent excluded; a page", "contract: want"),
                    ("sent-by: somebody; a file", "sent-by: want 'pytorch; SOURCE'"),
                    ("frontend: refuses since ever; a file", "frontend: want 'accepts; SOURCE'"),
                    ("frontend: accepts;", "frontend: want"),
                )
            ),
            ("verdict: wrong\n\n", "verdict: wrng\n\n", ":3:", "verdict"),
            ("kind:", "kinds:", ":2:", "'kinds' is not a key here; did you mean kind?"),
            (
                "dtype=e4m3 & ",
                "dtyp=e4m3 & ",
                ":7:",
                "when: column 12: no key 'dtyp'; nearest: dtype",
            ),
            ("engine: general", "engine: generl", ":8:", "did you mean general?"),
            ("sm: 90\nsuspected: 80..89\n", "", ":5:", "sm: is missing"),
            ("sm: 90", "sm: sm_90", ":9:", "is not an architecture"),
            (" 9.19.0; H100, a record", "", ":11:", "what showed it is missing"),
            ("seen: 9.14.0 9.19.0;", "seen: newest;", ":11:", "'newest' is not a version"),
            (
                "right: 9.27.0;",
                "right: 9.19.0;",
                ":12:",
                "9.19.0 was seen failing and is also listed as right",
            ),
            ("date: 2026-11-22", "date: today", ":13:", "date"),
            ("instead: pad\n", "", ":14:", "belong together"),
            (f"cases:\n{WRONG}\n", "", ":1:", "no section 'cases:'"),
            ("kind: failure", "kind: failure\nkind: failure", ":3:", "given twice"),
            ("failure:\n", "failure: No Label\n", ":5:", "not a label"),
        ):
            with self.subTest(new or old):
                self.assertIn(old, FILE)
                with self.assertRaises(known.KnownError) as raised:
                    self.read(FILE.replace(old, new, 1))
                self.assertIn("x.known" + place, str(raised.exception))
                self.assertIn(words, str(raised.exception))
                self.assertNotIn("\n", str(raised.exception))

    def test_what_a_terminal_would_obey_is_refused_with_its_place(self):
        path = self.put("x.known", "")
        good, control = FILE.encode(), "a control character"
        words = ("\x1b[31m", "\x9b", "\u202e", "\ufeff", "a\rb", "\x00")
        bad = [(good.replace(b"\n\n", f"\n{w}\n".encode(), 1), f"4: {control}") for w in words]
        for data, said in (*bad, (good.replace(b"pad", b"p\xe4d"), "15: not UTF-8")):
            path.write_bytes(data)
            with self.assertRaisesRegex(known.KnownError, rf"x\.known:{said}"):
                known.load(self.folder.name)
        path.write_bytes(good.replace(b"\n", b"\r\n"))
        self.assertEqual(known.load(self.folder.name)[0].title, "Something is wrong.")

    def test_a_version_that_is_none_is_older_than_all(self):
        found = [known.number(v) for v in ("none", "x" * 99, "[[[", "9.20")]
        self.assertEqual(found, [0, 0, 0, 92000])

    def test_a_failure_is_the_problem_and_the_data(self):
        split = FILE.replace("when: pass=bwd & dtype=e4m3 &", "when: pass=bwd | pass=fwd\ndata:")
        failure = self.read(split).failures[0]
        self.assertEqual(failure.condition, "(pass=bwd | pass=fwd) & s.q%16!=0")
        self.assertEqual(failure.shows, failure.condition)
        self.assertIn("(pass=bwd | pass=fwd) & s.q%16!=0", failure.expectations()[0][0])
        self.assertEqual(failure.guard()[0].when, failure.condition)
        self.assertEqual(failure.guard()[0].tree, predicate.parse(failure.condition))
        narrowed = self.read(split.replace("engine: general", "shows: & b=1\nengine: general"))
        self.assertEqual(narrowed.failures[0].shows, failure.condition + " & b=1")
        self.assertIn("For such data: `s.q%16!=0`.", "\n".join(pages.section(narrowed)))

    def test_what_is_promised_who_sends_it_and_how_it_was_checked_is_printed(self):
        said = (
            "contract: documented; a page\nsent-by: jax vllm; a file\n"
            "frontend: refuses since 1.28.0; a check\nchecked: no\n"
        )
        entry = self.read(FILE.replace("verdict: wrong\n\n", f"verdict: wrong\n{said}\n", 1))
        self.assertEqual(entry.claim("sent-by"), (["jax", "vllm"], "a file"))
        page = pages.page(entry)
        for line in (
            "- Contract: documented; a page.",
            "- Sent by: jax vllm; a file.",
            "- cudnn-frontend: refuses since 1.28.0; a check.",
            "- Checked without FACTS: no.",
        ):
            self.assertIn(line, page)
        findings = pages.findings([entry])
        self.assertIn("| wrong | documented | jax vllm |", findings)
        self.assertIn("| failure | 1 | 0 | 0 | 0 | 1 |\n", findings)

    def test_only_a_failure_is_counted_as_a_failure(self):
        self.put("y.known", FILE.replace("kind: failure", "kind: should-be-refused"))
        self.put("z.known", FILE.replace("kind: failure", "kind: offered-not-built"))
        self.read()
        entries = known.load(self.folder.name)
        calls = "1 call that cuDNN should refuse"
        plans = "1 entry of the engine list that does not compile"
        self.assertEqual(pages.counted(entries), f"1 failure, {calls}, {plans}")
        self.assertEqual(pages.counted([]), "0 failures")
        tables = [line for line in pages.findings(entries).split("\n") if line.startswith("## ")]
        self.assertEqual(len(tables), 3)

    def test_the_versions_of_an_entry_go_on_where_one_of_its_failures_goes_on(self):
        other = FILE[FILE.index("failure:") : FILE.index("cases:")]
        other = other.replace("failure:", "failure: other").replace(
            "right: 9.27.0", "right: 9.13.0"
        )
        entry = self.read(FILE.replace("\ncases:", f"\n{other}\ncases:"))
        found = [pages.versions(f) for f in entry.failures]
        self.assertEqual(found, ["9.14.0 to before 9.27.0", "9.14.0 and newer"])
        self.assertEqual(pages.all_versions(entry.failures), "9.14.0 and newer")

    def test_a_mistake_in_the_families_has_its_place(self):
        for text in ("general 1\n", "general: 1, 7\n", "general: x\n", "general: 1, 7 from soon\n"):
            self.put("engines.families", text)
            with self.assertRaisesRegex(known.KnownError, "engines.families:1: want"):
                known.load(self.folder.name)


def answer(verdict, version="9.28.1", case=WRONG, **more):
    about = {"sm": 90, "grade": "measured", "engine": 7, "device": "h200", "config": 0, **more}
    return {"case": case, "verdict": verdict, "cudnn": version, "build": version, "run": 1} | about


class Rows:
    """As much of a store as is read here."""

    def __init__(self, *rows, do="run"):
        self.kept, self.runs, self.records = rows, {1: {"do": do}}, {1: "new.jsonl", 2: "x"}

    def rows(self, *_, **__):
        return [(i, row) for i, row in enumerate(self.kept)]


class Observations(Temporary):
    def seen(self, *rows, do="run", text=FILE):
        entry = self.read(text)
        return entry, observe.observe([entry], Rows(*rows, do=do))

    def words(self, *rows, **how):
        return [one.word for one in self.seen(*rows, **how)[1]]

    def test_one_failing_result_is_a_failing_version_and_only_right_ones_a_right_one(self):
        for verdicts, word in (("wrong", "seen"), ("pass wrong", "seen"), ("pass pass", "right")):
            self.assertEqual(self.words(*map(answer, verdicts.split())), [word], verdicts)

    def test_what_did_not_run_or_asked_with_guards_or_about_another_engine_shows_nothing(self):
        for row in (
            answer("inconclusive"),
            answer("unsupported"),
            answer("supported", grade="decided"),
            answer("pass", case=WRONG.replace(" guards=off", "")),
            answer("pass", engine=6),
            answer("pass", sm=100),
            answer("pass", case="pass=bwd dtype=e4m3 s=256 guards=off"),
        ):
            self.assertEqual(self.words(row), [], row)

    def test_a_crash_is_gone_only_when_what_is_accepted_also_compiles(self):
        text = FILE.replace("verdict: wrong", "verdict: crash").replace("engine: general\n", "")
        for verdict, do, words in (
            ("supported", "decide", []),
            ("supported", "plan", ["right"]),
            ("unsupported", "decide", ["right"]),
            ("crash", "decide", ["seen"]),
        ):
            engine = None if verdict == "crash" else 7
            row = answer(verdict, grade="decided", engine=engine)
            self.assertEqual(self.words(row, do=do, text=text), words, (verdict, do))

    def test_only_what_the_file_does_not_say_is_proposed(self):
        for line in """9.28.1 wrong 1 0, 9.28.1 pass 0 0, 9.20.0 pass 1 0
9.19.0 wrong 0 0, 9.19.0 pass 0 1, 9.27.0 wrong 0 1""".replace("\n", ", ").split(", "):
            version, verdict, *counts = line.split()
            news = observe.news(self.seen(answer(verdict, version))[1])
            self.assertEqual([str(len(one)) for one in news], counts, line)

    def test_a_proposal_stands_behind_the_last_observation_and_is_read_again(self):
        news, _ = observe.news(self.seen(answer("wrong"), {**answer("pass"), "run": 2})[1])
        ((path, (before, after)),) = observe.proposals(news, Rows()).items()
        line = "seen: 9.28.1; h200, new.jsonl"
        self.assertEqual([one for one in after if one not in before], [line])
        self.assertEqual(after[after.index(line) - 1], "right: 9.27.0; H100, another record")
        Path(path).write_text("\n".join(after), encoding="utf-8")
        ranges = known.load(self.folder.name)[0].failures[0].ranges
        self.assertEqual(ranges, [(91400, 92700), (92801, 0)])

    def observed(self, other, doubts=None):
        """What two files say of a result."""
        self.put("x.known", FILE)
        self.put("y.known", other)
        seen = observe.observe(known.load(self.folder.name), Rows(answer("wrong")), doubts)
        return [one.failure.entry.name for one in seen]

    def test_a_failure_that_holds_explains_a_result_that_another_one_would_fit_too(self):
        other = FILE.replace("right: 9.27.0; H100, another record\n", "")
        self.assertEqual(self.observed(other), ["y"])

    def test_a_result_that_is_new_to_several_failures_is_left_to_a_person(self):
        doubts = []
        self.assertEqual(self.observed(FILE, doubts), [])
        self.assertEqual(doubts, [(WRONG, "9.28.1", ["x", "y"])])

    def test_the_counts_are_of_failures_that_the_version_is_expected_to_have(self):
        for verdict, version, word in (
            ("wrong", "9.20.0", "still fails"),
            ("pass", "9.20.0", "no longer fails"),
            ("", "9.20.0", "no answer"),
            ("pass", "9.27.0", "is right, as its file says"),
            ("", "9.27.0", ""),
        ):
            entry, seen = self.seen(*([answer(verdict, version)] if verdict else []))
            self.assertEqual(observe.answered(entry, seen, [version]), word)

    def test_only_failures_are_said_to_fail_still(self):
        self.put("y.known", FILE.replace("kind: failure", "kind: should-be-refused"))
        self.read()
        x, y = known.load(self.folder.name)
        said = "1 known failure still fails, 0 no longer fail, 0 got no answer"
        told = observe.told_by_kind({x: "still fails", y: "no answer"})
        self.assertEqual(told, f"{said}; of 1 other entries 1 got no answer")
        told = observe.told_by_kind({x: "no longer fails"})
        self.assertEqual(told, "0 known failures still fail, 1 no longer fails, 0 got no answer")

    def test_an_entry_is_settled_when_the_last_row_of_its_cases_has_come(self):
        entry, said = self.read(), []
        run = {"id": "r", "do": "run", "guards": "off", "targets": [{"build": "b"}] * 2}
        other = WRONG.replace("s=200", "s=232")
        live = observe.Live([entry], {entry: {WRONG, other}}, lambda *what: said.append(what[:2]))
        report = observe.reader.FileReport("r.jsonl")

        def take(line):
            observe.reader.take(json.dumps(line).encode() + b"\n", report, live)

        take({"run": run})
        for case, device, more in (
            (WRONG, "h", True),
            (WRONG, "h", False),
            (WRONG, "h", False),  # asked again
            (other, "h", False),
            (other, "s", False),
        ):
            take(answer("wrong", "9.20.0", case) | {"device": device, "build": "b", "more": more})
        self.assertEqual(said, [])
        take(answer("pass", "9.20.0") | {"device": "s", "build": "b"})
        self.assertEqual(said, [(entry, "still fails")])


class TheProjectsOwn(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.entries = known.load(FOLDER)

    def test_no_failure_ends_at_a_version_that_was_only_the_last_one_tested(self):
        for entry in self.entries:
            for failure in entry.failures:
                for _, end in failure.ranges:
                    self.assertTrue(end == 0 or end in failure.versions("right"), failure.name)

    def test_every_guard_can_be_written_and_names_a_file(self):
        made = [g for e in self.entries for f in e.failures if f.guarded for g in f.guard()]
        self.assertGreater(len(made), 50)
        text = guards.emit(made)
        for guard in made:
            self.assertTrue((HOME / guard.file).exists(), guard.file)
            self.assertTrue(guard.rules, guard.name)
        self.assertIn("fattn_guard_count", text)

    def test_every_failure_has_a_line_and_other_entries_a_link(self):
        page = pages.findings(self.entries)
        for entry in self.entries:
            if entry.failures:
                self.assertIn(f"(known/{entry.name}.md)", page)
            elif not entry.is_text:
                self.assertTrue(entry.links, f"{entry.name}: neither a failure nor a link")

    def test_every_entry_says_its_contract_its_senders_the_frontend_and_the_check(self):
        for entry in self.entries:
            with self.subTest(entry=entry.name):
                for key in ("contract", "sent-by", "frontend"):
                    words, source = entry.claim(key)
                    self.assertTrue(words and source, key)
                    self.assertNotIn("to be written", source)
                self.assertTrue(entry.checked, "checked")
                if "nobody" in entry.claim("sent-by")[0]:
                    self.assertEqual(entry.claim("sent-by")[0], ["nobody"])

    def test_values_stand_in_data_and_problems_in_when(self):
        values = r"\b(fill|bias_fill|poison|slots)\b|\b(padding|lens)\b(?!!?=none\b)|\bcase~"
        for entry in self.entries:
            for failure in entry.failures:
                self.assertNotRegex(failure.when, values, failure.name)
                if failure.data:
                    self.assertRegex(failure.data, values, failure.name)

    def test_the_planner_alone_is_said_where_no_gpu_ran_it(self):
        for entry in self.entries:
            places = {f.fields.get("sm", "") for f in entry.failures}
            if places and places <= {"100", "120"}:
                self.assertIn("planner only, no device", entry.title, entry.name)

    def test_each_condition_on_data_has_words_and_each_failure_a_place_among_others(self):
        for one in knowledge.lines(self.entries):
            self.assertEqual(bool(one["data"]), bool(one["for"]), one["id"])
            self.assertEqual(one["serious"], not knowledge.rank(one)[0], one["id"])
        with self.assertRaises(KeyError):
            knowledge.data_words(predicate.parse("fill=gauss"))

    def test_each_line_has_the_members_of_the_schema_and_of_the_page(self):
        schema = json.loads((HOME / "cases/known/known.schema.json").read_text())
        types = {"string": str, "boolean": bool, "integer": int, "object": dict, "null": type(None)}

        def check(one, rule, where):
            names = rule.get("type", [])
            allowed = tuple(
                types.get(n, (list, tuple)) for n in [names] * isinstance(names, str) or names
            )
            if "enum" in rule:
                self.assertIn(one, rule["enum"], where)
            else:
                self.assertIsInstance(one, allowed, where)
            for name in rule.get("required", ()):
                self.assertIn(name, one, where)
            if rule.get("additionalProperties") is False:
                self.assertLessEqual(set(one), set(rule["properties"]), where)
            for name, inner in rule.get("properties", {}).items():
                check(one[name], inner, f"{where}.{name}")
            for part in one if "items" in rule else ():
                check(part, rule["items"], where)

        for one in knowledge.lines(self.entries):
            check(one, schema, one["id"])
        page = (
            (HOME / "docs/known.md")
            .read_text()
            .partition("## The JSON")[2]
            .partition("A member may")[0]
        )
        rows = re.findall(r"(?m)^\| (`[^|]*) \|", page)
        said = {name for row in rows for name in re.findall(r"\w+", row)}
        self.assertEqual(said, set(schema["properties"]))

    def test_what_is_guarded_and_shown_is_asked_without_guards(self):
        for entry in self.entries:
            asked = [line for kind, *_, lines in entry.groups if kind == "cases" for line in lines]
            if any(f.guarded and f.shows for f in entry.failures):
                self.assertTrue(any("guards=off" in line for line in asked), entry.name)

    def test_every_failing_row_is_explained_and_no_row_that_passes_is_said_to_fail(self):
        """Of the kept runs and of the newest searches; in the night the second of every record."""
        lines = expectations.lines_of(self.entries, before_guards=True)
        known_of = knowledge.Knowledge(knowledge.lines(self.entries))
        names = "h?00-known* h100-fuzz3* h100-nightly-9.14.0* h100-peers-9.14.0* h200-regress*"
        catalogue = HOME / "reports/catalogue"
        records = {path for name in names.split() for path in catalogue.glob(f"{name}.xz")}
        self.assertGreater(len(records), 9)
        more = set(HOME.glob("reports/*/*.xz")) if support.NIGHT else set()
        for record in sorted(records | more):
            rows, failed = expectations.unexplained(load([record]), lines)
            found = [(row["cudnn"], row["verdict"], row["case"]) for row in failed]
            self.assertEqual(found if record in records else [], [], record.name)
            passed = (row for row in rows if row["verdict"] == "pass")
            said = [(one, row) for row in passed for one in known_of.of_row(row)]
            said = [
                (one["id"], one["label"], row["cudnn"], row["case"])
                for one, row in said
                if one["sure"] == "seen" and one["such_data"] and not one["sometimes"]
            ]
            self.assertEqual(said, [], record.name)
