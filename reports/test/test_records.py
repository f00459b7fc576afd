import gzip
import json
import lzma
import unittest

import support
import synthetic

from facts_reports.read import reader, words
from facts_reports.read.store import load


class Records(support.Folder):
    def row(self, **change):
        return {
            "case": "pass=fwd dtype=bf16",
            "build": "9.20.0-jit-cu13",
            "cudnn": "9.20.0",
            "device": "h100-sxm",
            "sm": 90,
            "grade": "measured",
            "verdict": "pass",
            "supported": True,
            "attempt": 1,
            "run": "r1",
            **change,
        }

    def load(self, *items):
        return support.store(self.at, synthetic.text(items))

    def test_a_complete_record_adds_up(self):
        store = support.store(self.at, synthetic.text(synthetic.record()))
        totals = store.totals()
        self.assertTrue(store.complete())
        self.assertEqual(
            (totals["planned"], totals["missing"], totals["unreadable"]), (76 * 8, 0, 0)
        )
        self.assertEqual(sum(store.counts().values()), 76 * 8)

    def test_a_record_of_a_newer_facts_is_refused_in_one_line(self):
        self.load({"run": {"id": "r1", "facts": "9.0.0", "format": 1}}, self.row())
        with self.assertRaisesRegex(
            reader.InputError, r"newer FACTS \(format 2; this version reads 1\)"
        ):
            self.load({"run": {"id": "r1", "facts": "9.0.0", "format": 2}}, self.row())

    def test_findings_of_a_search_are_no_unreadable_lines(self):
        store = self.load(
            self.row(),
            {"finding": {"run": "r1", "rank": 1, "verdict": "nan", "text": "nan o", "forms": []}},
        )
        self.assertEqual((store.totals()["unreadable"], store.counts()), (0, {"pass": 1}))

    def test_the_latest_attempt_wins_and_order_in_the_file_does_not(self):
        store = self.load(
            self.row(attempt=2, verdict="nan"),
            self.row(attempt=1),
            self.row(attempt=3, verdict="wrong"),
            self.row(attempt=2),
        )
        self.assertEqual(store.counts(), {"wrong": 1})
        self.assertEqual(store.totals()["superseded"], 3)

    def test_a_later_run_wins_over_an_earlier_one(self):
        store = self.load(
            {"run": {"id": "old", "started": "2026-01-01T00:00:00Z"}},
            {"run": {"id": "new", "started": "2026-02-01T00:00:00Z"}},
            self.row(run="new"),
            self.row(run="old", attempt=9, verdict="wrong"),
        )
        self.assertEqual(store.counts(), {"pass": 1})

    def test_rows_of_a_case_stand_in_the_order_of_versions(self):
        versions = ("9.9.0", "9.9.1", "9.14.0", "10.0.0")
        store = self.load(
            *(
                self.row(cudnn=v, build=f"{v}-jit-cu13")
                for v in ("9.14.0", "10.0.0", "9.9.1", "9.9.0")
            )
        )
        self.assertEqual(tuple(row["cudnn"] for _, row in store.rows()), versions)

    def test_engine_all_keeps_a_row_for_each_configuration_and_others_do_not(self):
        case = "pass=fwd dtype=bf16 engine=all"
        store = self.load(
            self.row(case=case, config=0),
            self.row(case=case, config=1, verdict="wrong"),
            self.row(config=0),
            self.row(config=1, attempt=2),
        )
        self.assertEqual(store.counts(), {"wrong": 1, "pass": 2})
        self.assertEqual(store.totals()["answered"], 2)

    def test_yes_for_a_described_device_is_no_pass(self):
        store = self.load(
            self.row(grade="decided"),
            self.row(grade="measured", device="0"),
        )
        self.assertEqual(store.counts(), {"supported": 1, "pass": 1})

    def test_what_the_plan_names_and_nobody_answered_is_drawn(self):
        store = support.store(self.at, synthetic.text(synthetic.record(drop=10)))
        totals = store.totals()
        self.assertFalse(store.complete())
        self.assertEqual((totals["missing"], totals["missing_named"]), (10, 10))
        self.assertEqual(store.counts()["missing"], 10)
        self.assertEqual(totals["planned"], totals["answered"] + totals["missing"])

    def test_a_planned_gpu_without_a_target_line_is_the_device_of_its_rows(self):
        run = {
            "run": {
                "id": "r",
                "cases": 2,
                "planned": 6,
                "targets": [{"build": "9.20.0-jit-cu13", "device": "gpu0", "kind": "gpu"}],
            }
        }
        store = self.load(
            run, self.row(run="r", device="h100-sxm"), {"end": {"run": "r", "complete": True}}
        )
        self.assertEqual((store.devices(), store.gpus), (["h100-sxm"], {"h100-sxm": "0"}))
        totals = store.totals()
        self.assertEqual(
            (totals["planned"], totals["missing"], totals["missing_named"]),
            (2, 1, 0),
            "planned is at most cases times targets",
        )
        self.assertIn("1 pass and 1 missing.", words.answer(store)[1])

    def test_the_case_in_flight_is_named_as_such(self):
        lines = list(synthetic.record(drop=1))
        last = next(item for item in list(synthetic.record())[::-1] if "case" in item)
        lines.append(
            {
                "start": {
                    "run": "r1",
                    "case": last["case"],
                    "build": last["build"],
                    "device": last["device"],
                    "attempt": 1,
                    "config": 0,
                }
            }
        )
        store = self.load(*lines)
        ((outcome, row),) = store.rows("outcome='missing'")
        self.assertEqual(row["reason"]["text"], "in flight when the record ended")

    def test_shards_add_up_and_a_resumed_run_does_not_plan_twice(self):
        whole = list(synthetic.record())
        half = len(whole) // 2
        resumed = [
            whole[0],
            *whole[1:half],
            {**whole[0], "run": {**whole[0]["run"], "id": "r2"}},
            *whole[half:],
        ]
        self.assertEqual(self.load(*resumed).totals()["planned"], 76 * 8)
        shards = [
            {"run": {"id": f"s{i}", "planned": 5, "shard": f"{i}/2", "suite_hash": "x"}}
            for i in (1, 2)
        ]
        self.assertEqual(self.load(*shards).totals()["planned"], 10)

    def test_a_cut_last_line_is_counted_and_never_complete(self):
        data = synthetic.text(synthetic.record()).encode()
        store = support.store(self.at, data + b'{"case":"pass=fw')
        self.assertEqual(store.totals()["unreadable"], 1)
        self.assertIn("cut off", store.files[0].samples[0])
        self.assertFalse(store.complete())

    def test_hostile_lines_are_counted_and_the_rest_is_kept(self):
        store = support.store(self.at, synthetic.hostile())
        self.assertEqual(store.totals()["unreadable"], 10)
        self.assertEqual(store.totals()["rows"], 5)
        for _, row in store.rows():
            self.assertNotRegex(
                json.dumps(row, ensure_ascii=False), "[\x00-\x08\x1b\u202e\ud800-\udfff\u2028]"
            )

    def test_a_line_of_any_length_costs_bounded_memory_and_one_count(self):
        limit, reader.LINE_LIMIT = reader.LINE_LIMIT, 1 << 16
        self.addCleanup(setattr, reader, "LINE_LIMIT", limit)
        store = support.store(
            self.at,
            synthetic.text([self.row()]).encode()
            + b'{"case":"'
            + b"x" * (1 << 20)
            + b'"}\n'
            + synthetic.text([self.row(device="1")]).encode(),
        )
        self.assertEqual((store.totals()["rows"], store.totals()["unreadable"]), (2, 1))

    def test_packed_files_and_folders_are_read(self):
        data = synthetic.text(synthetic.record()).encode()
        (self.at / "a.jsonl.gz").write_bytes(gzip.compress(data))
        (self.at / "b.jsonl.xz").write_bytes(lzma.compress(data))
        for name in ("a.jsonl.gz", "b.jsonl.xz", "."):
            code, out, _ = support.run(self.at / name, "--issue", "pass=fwd dtype=bf16")
            self.assertEqual(code, 0)
            self.assertIn("sm80-spec", out)
        (self.at / "a.jsonl.gz").write_bytes(gzip.compress(data)[:2000])
        self.assertEqual(
            support.run(self.at / "a.jsonl.gz", "--issue", "pass=fwd dtype=bf16")[0], 4
        )

    def test_a_number_that_no_double_holds_is_inf(self):
        line = synthetic.text([self.row(plan_ms=7)]).replace(
            '"plan_ms": 7', '"plan_ms": 1e999, "exec_us": -1e999'
        )
        path = self.at / "inf.jsonl"
        path.write_text(line)
        code, _, err = support.run(path, "-o", self.at / "page")
        self.assertEqual((code, err), (4, ""))
        ((_, row),) = load([path]).rows()
        self.assertEqual((row["plan_ms"], row["exec_us"]), ("inf", "-inf"))

    def test_packed_data_that_is_damaged_anywhere_is_counted(self):
        whole = gzip.compress(
            synthetic.text(synthetic.record(("9.20.0", "9.27.0"), synthetic.DEVICES[:1])).encode()
        )
        for at in range(20, len(whole), len(whole) // 60):
            store = support.store(
                self.at, whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :], "a.jsonl.gz"
            )
            self.assertFalse(store.complete(), at)
            self.assertGreater(store.totals()["unreadable"], 0, at)

    def test_a_packed_file_that_does_not_end_is_not_read_to_its_end(self):
        limit, reader.PACKED_LEAST = reader.PACKED_LEAST, 1 << 20
        self.addCleanup(setattr, reader, "PACKED_LEAST", limit)
        store = support.store(
            self.at,
            lzma.compress(
                synthetic.text(synthetic.record()).encode() + (b" " * 65535 + b"\n") * (32 << 4),
                preset=0,
            ),
            "a.jsonl.xz",
        )
        self.assertIn("MiB; not read", store.files[0].samples[-1])
        self.assertGreater(store.totals()["rows"], 100)


if __name__ == "__main__":
    unittest.main()
