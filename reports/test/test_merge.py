"""facts merge joins records; it, the report and the comparison agree on the row that counts."""

import json

import support

from facts_reports.compare import sides
from facts_reports.read import reader

CASE = "pass=fwd dtype=bf16"


PLAN = {"build": "B", "device": "D", "kind": "described"}


def run(name="1", suite="s", started="2026-01-01", **more):
    about = {"id": name, "suite_hash": suite, "started": started, "cases": 1, "targets": [PLAN]}
    return {"run": {**about, **more}}


def row(verdict="pass", case=CASE, run_id="1", device="D", **more):
    return {"case": case, "build": "B", "device": device, "verdict": verdict, "run": run_id, **more}


def rows_of(lines):
    return [line for line in lines if "case" in line]


LATE = {"verdict": "inconclusive", "stage": "reference"}
LATE["reason"] = {"class": "internal", "text": "the reference was not ready in time"}
START = {"start": {"case": CASE, "build": "B", "device": "D"}}


class Merging(support.Folder):
    def put(self, *lines, name="r.jsonl"):
        path = self.at / name
        path.write_text(
            "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines),
            encoding="utf-8",
        )
        return path

    def call(self, *arguments):
        """(exit code, stdout, stderr)"""
        return support.called(support.commands.main, "merge", *arguments)

    def join(self, *lines, code=0, force=()):
        """Merges a record of these lines; (the output's lines, stdout, stderr)."""
        found, out, err = self.call(*force, "--overwrite", "-o", self.at / "out", self.put(*lines))
        self.assertEqual(found, code, err)
        made = (self.at / "out").read_text(encoding="utf-8").splitlines() if code in (0, 4) else []
        return [json.loads(line) for line in made], out, err


class TheRowThatCounts(Merging):
    """One rule, in latest.py, for the merge, the report and the comparison."""

    # rows of one case, in the order of the file; the index of the one that counts
    RECORDS = (
        ("a crash, whatever the repeats say", 0, row("crash"), row(attempt=2), row(attempt=3)),
        ("a crash of an earlier run", 0, row("crash"), row(run_id="2")),
        ("the worst failure", 1, row("wrong"), row("crash", attempt=2), row("nan", run_id="2")),
        ("a failure that comes later", 1, row(), row("exit_crash", attempt=1)),
        ("the last line of the others", 1, row(run_id="2"), row("inconclusive", run_id="1")),
        ("an answer before a time-out in FACTS", 0, row("wrong"), row(**LATE, run_id="2")),
        ("an answer after a time-out in FACTS", 1, row(**LATE, attempt=2), row(attempt=1)),
        ("the latest without an answer", 1, row(**LATE, attempt=1), row(**LATE, attempt=2)),
        ("a hang is an answer", 1, row(attempt=1), row("hang", stage="exec", attempt=2)),
    )

    def reported(self, record):
        store = support.load([record])
        return [r["verdict"] for _, r in store.rows()], store.superseded

    def compared(self, record):
        both = sides.Sides()
        both.read([record])
        both.pair([((0, "B", "D"), (0, "B", "D"))])
        return [answer.verdict for _, _, first, _ in both.pairs() for answer in first]

    def test_merge_report_and_comparison_choose_the_same_row(self):
        for what, which, *rows in self.RECORDS:
            with self.subTest(what):
                lines = [run(), run("2", started="2026-02-01"), *rows]
                self.assertEqual(rows_of(self.join(*lines)[0]), [rows[which]])
                record, due = self.put(*lines), [rows[which]["verdict"]]
                self.assertEqual(self.reported(record), (due, len(rows) - 1))
                self.assertEqual(self.compared(record), due)
                self.assertEqual(self.reported(self.at / "out"), (due, 0), "after the merge")

    def all_say(self, lines):
        """The verdicts of the rows that count, as each reader has them."""
        record = self.put(*lines)
        said = sorted(self.reported(record)[0])
        self.assertEqual(sorted(self.compared(record)), said)
        code = 0 if said else 4
        joined = [line["verdict"] for line in rows_of(self.join(*lines, code=code)[0])]
        self.assertEqual(sorted(joined), said)
        self.assertEqual(sorted(self.reported(self.at / "out")[0]), said, "after the merge")
        return said

    def test_rows_of_another_content_than_the_last_run_never_count(self):
        asked = CASE + " engine=all"
        first = [run(targets=[{**PLAN, "content": "x"}]), row(case=asked, config=0)]
        first.append(row("crash", case=asked, config=1))
        for started in ("2026-02-01", "2025-02-01"):  # the clock may be set back
            second = run("2", started=started, targets=[{**PLAN, "content": "y"}])
            refused = row("unsupported", case=asked, run_id="2")
            self.assertEqual(self.all_say([*first, second, refused]), ["unsupported"])
            late = row(**LATE, case=asked, run_id="2")
            self.assertEqual(self.all_say([*first, second, late]), ["inconclusive"])
            self.assertEqual(self.all_say([*first, second]), [])
            back = run("3", targets=[{**PLAN, "content": "x"}])
            self.assertEqual(self.all_say([*first, second, refused, back]), ["crash", "pass"])

    def test_the_content_of_a_gpu_is_known_before_its_name(self):
        plan = {"build": "B", "device": "gpu0", "kind": "gpu"}
        named = {"target": {"run": "1", "build": "B", "device": "D", "planned": "gpu0"}}
        lines = run(targets=[{**plan, "content": "x"}]), row("crash")
        lines += named, run("2", targets=[{**plan, "content": "y"}]), row(run_id="2")
        lines += ({"target": {**named["target"], "run": "2"}},)
        self.assertEqual(self.all_say(lines), ["pass"])

    def test_of_several_records_the_later_run_counts(self):
        new = self.put(run("2", started="2026-02-01"), row("crash", run_id="2"), name="a.jsonl")
        old = self.put(run(), row("wrong"), row(attempt=2), name="b.jsonl")
        for records in ((new, old), (old, new)):
            self.assertEqual(self.call("--overwrite", "-o", self.at / "out", *records)[0], 0)
            self.assertEqual(self.reported(self.at / "out")[0], ["crash"])

    def test_one_name_for_two_things_is_refused(self):
        for member, said in (("libraries_hash", "libraries"), ("description_hash", "descriptions")):
            parts = [
                self.put(
                    run(name, shard=[at, 2], cases=2, targets=[{**PLAN, member: value}]),
                    row(case=f"d={at}", run_id=name),
                    name=f"{at}.jsonl",
                )
                for at, name, value in ((1, "1", "x"), (2, "2", "y"))
            ]
            code, _, err = self.call("--overwrite", "-o", self.at / "out", *parts)
            self.assertEqual(code, 2)
            self.assertIn(f"the runs 1 and 2 have different {said} under the name", err)
            self.assertEqual(
                self.call("--force", "--overwrite", "-o", self.at / "out", *parts)[0], 0
            )
            both = sides.Sides()
            both.read(parts[:1])
            both.read(parts[1:])
            slots = [((0, "B", "D"), (1, "B", "D"))]
            if said == "libraries":
                both.pair(slots)  # two builds may be compared, whatever they are called
            else:
                with self.assertRaisesRegex(sides.SidesError, "different descriptions"):
                    both.pair(slots)

    def test_configurations_are_questions_of_their_own_only_with_engine_all(self):
        for case, count in ((CASE + " engine=all", 2), (CASE, 1)):
            lines = run(), row(case=case, config=0), row(case=case, config=1)
            record = self.put(*lines)
            found = self.reported(record)[0], self.compared(record), rows_of(self.join(*lines)[0])
            self.assertEqual([len(one) for one in found], [count] * 3)

    def test_a_row_that_names_no_run_is_of_the_run_before_it(self):
        lines = run("2", started="2026-02-01"), row("wrong", run_id=""), run(), row()
        made = rows_of(self.join(*lines)[0])
        self.assertEqual([line["verdict"] for line in made], ["wrong"])
        self.assertEqual(self.reported(self.put(*lines)), (["wrong"], 1))


class Joining(Merging):
    def test_the_output_has_runs_by_time_then_other_lines_then_rows_then_one_end(self):
        target = {"target": {"run": "1", "build": "B", "device": "D"}}
        finding, later = {"finding": {"what": "x"}}, run("2", started="2026-02-01")
        end = {"end": {"run": "1", "complete": True}}
        made, out, _ = self.join(
            later, target, START, row("unsupported"), run(), finding, row(), end
        )
        end = {"end": {"run": "merge", "complete": True, "rows": 1}}
        self.assertEqual(made, [run(), later, target, finding, row(), end])
        self.assertEqual(out, f"{self.at / 'out'}: 1 row, 1 older one left out\n")

    def test_lines_are_copied_as_they_are(self):
        odd = '{"case":"a" , "build":"B","device":"D","verdict":"pass", "exec_us":1.50}'
        self.join(run(), odd + "\r")
        self.assertIn(odd, (self.at / "out").read_text(encoding="utf-8").splitlines())

    def test_other_suites_are_refused_unless_forced(self):
        lines = run(), row(case="a"), run("2", "t", "2"), row(case="b", run_id="2")
        self.assertIn("--force joins them anyway", self.join(*lines, code=2)[2])
        self.assertEqual(len(rows_of(self.join(*lines, force=["--force"])[0])), 2)

    def test_what_could_not_be_read_or_has_no_row_makes_it_incomplete(self):
        bad = '{"case":"b","build":"B","device":"D","verdict":NaN}'
        unread = "1 lines could not be parsed"
        for lines, said in (
            ((run(), row(), "garbage"), unread),
            ((run(), row(), '{"case":"b","verdict":"pass"}'), unread),
            ((run(), row(), row("great", case="b")), unread),
            ((run(), row(), bad), unread),
            ((run(), START), "1 planned row; 1 case was started and has no row"),
            ((run(),), "1 planned row"),
        ):
            made, _, err = self.join(*lines, code=4)
            found = made[-1]["end"]["complete"], made[-1]["end"]["missing"]
            self.assertEqual(found, (False, said))
            self.assertEqual(err, f"facts merge: incomplete: {said}\n")
        self.assertIn("not a record", self.join("garbage", code=2)[2])

    def test_a_line_of_any_length_costs_one_count(self):
        limit, reader.LINE_LIMIT = reader.LINE_LIMIT, 1 << 16
        self.addCleanup(setattr, reader, "LINE_LIMIT", limit)
        made, _, err = self.join(run(), "x" * (1 << 17), row(), code=4)
        self.assertIn("1 lines could not be parsed", err)
        self.assertIn(row(), made)

    def test_what_cannot_be_used_is_one_line_and_leaves_the_output_alone(self):
        self.put("kept", name="out")
        (self.at / "packed").write_bytes(b"\xfd7zXZ")
        good = self.put(run(), row())
        newer = self.put({"run": {"id": "x", "format": 2}}, name="newer")
        for path, said in (
            (self.at / "nowhere", "No such file"),
            (self.at, "Is a directory"),
            (self.put(name="empty"), "not a record"),
            (self.at / "packed", "is compressed: unpack it first"),
            (newer, "newer FACTS (format 2; this version reads 1)"),
        ):
            code, out, err = self.call("--overwrite", "-o", self.at / "out", good, path)
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
            self.assertIn(f"{path}: ", err)
            self.assertIn(said, err)
        self.assertEqual((self.at / "out").read_text(encoding="utf-8"), "kept\n")

    def test_an_output_that_exists_or_is_an_input_is_refused(self):
        record = self.put(run(), row())
        self.assertIn("is also the output", self.call("--overwrite", "-o", record, record)[2])
        out = self.put("kept", name="out")
        code, _, err = self.call("-o", out, record)
        self.assertEqual((code, out.read_text(encoding="utf-8")), (2, "kept\n"))
        self.assertIn("--overwrite replaces it", err)
        self.assertEqual(self.call("--overwrite", "-o", out, record)[0], 0)
        self.assertNotIn("kept", out.read_text(encoding="utf-8"))

    def test_an_output_that_cannot_be_written_is_exit_3(self):
        folder = self.at / "no" / "folder"
        for out, said in (("/dev/full", "No space left"), (folder, "No such file")):
            code, _, err = self.call("-o", out, self.put(run(), row()))
            self.assertEqual((code, err.count("\n")), (3, 1))
            self.assertIn(f"{out}: {said}", err)


class Planned(Merging):
    """A GPU is planned by its number and answers by its name."""

    def gpu_run(self, name="1", **more):
        targets = [{"build": "B", "device": "gpu0", "kind": "gpu"}]
        return run(name, started=name, cases=2, targets=targets, **more)

    def target(self, device="h100", name="1", **more):
        return {"target": {"run": name, "build": "B", "device": device, **more}}

    def missing(self, *lines, code=4):
        return self.join(*lines, code=code)[0][-1]["end"].get("missing", "")

    def test_by_the_number_of_its_target_line_or_as_the_only_gpu(self):
        named, unnamed = self.target(planned="gpu0"), self.target()
        one, two = rows = [row(case=case, device="h100") for case in "ab"]
        for lines, said in (
            ([named, *rows], ""),
            ([named, one], "1 planned row"),
            ([named], "2 planned rows"),
            ([], "2 planned rows"),
            ([unnamed, *rows], ""),
            ([unnamed, self.target("h200"), *rows], "2 planned rows"),
        ):
            self.assertEqual(self.missing(self.gpu_run(), *lines, code=4 * bool(said)), said, lines)

    def test_shards_of_one_kind_of_gpu_are_one_target(self):
        def shard(name, case):
            target = self.target(name=name, planned="gpu0")
            answered = row(case=case, device="h100", run_id=name)
            return [self.gpu_run(name, shard=[int(name), 2]), target, answered]

        first = shard("1", "a")
        self.missing(*first, *shard("2", "b"), code=0)
        self.assertEqual(self.missing(*first), "shard 2/2 of B on h100; 1 planned row")

    def test_a_shard_without_a_case_has_no_record(self):
        one = [run(cases=2, shard=[1, 3]), row(case="a")]
        two = [run("2", cases=2, shard=[2, 3]), row(case="b", run_id="2")]
        self.missing(*one, *two, code=0)
        said = "shard 2/3 of B on D; shard 3/3 of B on D; 1 planned row"
        self.assertEqual(self.missing(*one), said)
        for line in (one[0], two[0]):
            del line["run"]["cases"]  # an old record: nobody knows
        self.assertEqual(self.missing(*one, *two), "shard 3/3 of B on D")
