import gzip
import json
import lzma

import support
import synthetic

from facts_reports.read import reader, words
from facts_reports.read.store import load


def row(**change):
    return synthetic.plain(**change)


class Records(support.Folder):
    def load(self, *items):
        return support.store(self.at, synthetic.text(items))

    def test_a_complete_record_adds_up(self):
        store = self.load(*synthetic.record())
        totals = store.totals()
        self.assertTrue(store.complete())
        found = totals["planned"], totals["missing"], totals["unreadable"]
        self.assertEqual(found, (76 * 8, 0, 0))
        self.assertEqual(sum(store.counts().values()), 76 * 8)

    def test_a_record_of_a_newer_facts_is_refused_in_one_line(self):
        self.load(synthetic.head(facts="9.0.0", format=1), row())
        said = r"newer FACTS \(format 2; this version reads 1\)"
        with self.assertRaisesRegex(reader.InputError, said):
            self.load(synthetic.head(facts="9.0.0", format=2), row())

    def test_findings_of_a_search_are_no_unreadable_lines(self):
        found = {"run": "r1", "rank": 1, "verdict": "nan", "text": "nan o", "forms": []}
        store = self.load(row(), {"finding": found})
        self.assertEqual((store.totals()["unreadable"], store.counts()), (0, {"pass": 1}))

    def test_rows_of_a_case_stand_in_the_order_of_versions(self):
        store = self.load(*(row(build=v) for v in ("9.14.0", "10.0.0", "9.9.1", "9.9.0")))
        found = [one["cudnn"] for _, one in store.rows()]
        self.assertEqual(found, ["9.9.0", "9.9.1", "9.14.0", "10.0.0"])

    def test_every_configuration_of_a_case_is_one_answer(self):
        case = "pass=fwd dtype=bf16 engine=all"
        store = self.load(
            *(row(case=case, config=i, verdict=v) for i, v in enumerate(("pass", "wrong")))
        )
        self.assertEqual((store.counts(), store.totals()["answered"]), ({"wrong": 1, "pass": 1}, 1))

    def test_yes_for_a_described_device_is_no_pass(self):
        store = self.load(row(grade="decided"), row(device="0"))
        self.assertEqual(store.counts(), {"supported": 1, "pass": 1})

    def test_what_the_plan_names_and_nobody_answered_is_drawn(self):
        store = self.load(*synthetic.record(drop=10))
        totals = store.totals()
        self.assertFalse(store.complete())
        self.assertEqual((totals["missing"], totals["missing_named"]), (10, 10))
        self.assertEqual(store.counts()["missing"], 10)
        self.assertEqual(totals["planned"], totals["answered"] + totals["missing"])

    def test_a_planned_gpu_without_a_target_line_is_the_device_of_its_rows(self):
        run = synthetic.head(cases=2, planned=6)
        run["run"]["targets"] = [{"build": "9.20.0-jit-cu13", "device": "gpu0", "kind": "gpu"}]
        store = self.load(run, row(), synthetic.end())
        self.assertEqual((store.devices(), store.gpus), (["h100-sxm"], {"h100-sxm": "0"}))
        found = [store.totals()[key] for key in ("planned", "missing", "missing_named")]
        self.assertEqual(found, [2, 1, 0], "planned is at most cases times targets")
        self.assertIn("1 pass and 1 missing.", words.answer(store)[1])

    def test_the_case_in_flight_is_named_as_such(self):
        last = [item for item in synthetic.record() if "case" in item][-1]
        store = self.load(*synthetic.record(drop=1), synthetic.started(last))
        ((_, one),) = store.rows("outcome='missing'")
        self.assertEqual(one["reason"]["text"], "in flight when the record ended")

    def test_shards_add_up_and_a_resumed_run_does_not_plan_twice(self):
        whole = list(synthetic.record())
        half = len(whole) // 2
        store = self.load(*whole[:half], {"run": {**whole[0]["run"], "id": "r2"}}, *whole[half:])
        self.assertEqual(store.totals()["planned"], 76 * 8)
        about = {"planned": 5, "suite_hash": "x"}
        shards = [synthetic.head(f"s{i}", shard=f"{i}/2", **about) for i in (1, 2)]
        self.assertEqual(self.load(*shards).totals()["planned"], 10)

    def test_a_cut_last_line_is_counted_and_never_complete(self):
        store = support.store(self.at, synthetic.text(synthetic.record()) + '{"case":"pass=fw')
        self.assertEqual(store.totals()["unreadable"], 1)
        self.assertIn("cut off", store.files[0].samples[0])
        self.assertFalse(store.complete())

    def test_hostile_lines_are_counted_and_the_rest_is_kept(self):
        store = support.store(self.at, synthetic.hostile())
        self.assertEqual((store.totals()["unreadable"], store.totals()["rows"]), (10, 5))
        hidden = "[\x00-\x08\x1b\u202e\ud800-\udfff\u2028]"
        for _, one in store.rows():
            self.assertNotRegex(json.dumps(one, ensure_ascii=False), hidden)

    def test_a_line_of_any_length_costs_bounded_memory_and_one_count(self):
        limit, reader.LINE_LIMIT = reader.LINE_LIMIT, 1 << 16
        self.addCleanup(setattr, reader, "LINE_LIMIT", limit)
        long = '{"case":"' + "x" * (1 << 20) + '"}\n'
        store = support.store(self.at, long.join(synthetic.text([row(device=d)]) for d in "01"))
        self.assertEqual((store.totals()["rows"], store.totals()["unreadable"]), (2, 1))

    def test_packed_files_and_folders_are_read(self):
        data = synthetic.text(synthetic.record()).encode()
        (self.at / "a.jsonl.gz").write_bytes(gzip.compress(data))
        (self.at / "b.jsonl.xz").write_bytes(lzma.compress(data))
        asked = "--issue", "pass=fwd dtype=bf16"
        for name in ("a.jsonl.gz", "b.jsonl.xz", "."):
            code, out, _ = support.run(self.at / name, *asked)
            self.assertEqual(code, 0)
            self.assertIn("sm80-spec", out)
        (self.at / "a.jsonl.gz").write_bytes(gzip.compress(data)[:2000])
        self.assertEqual(support.run(self.at / "a.jsonl.gz", *asked)[0], 4)

    def test_a_number_that_no_double_holds_is_inf(self):
        line = synthetic.text([row(plan_ms=7, exec_us=8)])
        line = line.replace(": 7", ": 1e999").replace(": 8", ": -1e999")
        path = self.at / "inf.jsonl"
        path.write_text(line)
        code, _, err = support.run(path, "-o", self.at / "page")
        self.assertEqual((code, err), (4, ""))
        ((_, one),) = load([path]).rows()
        self.assertEqual((one["plan_ms"], one["exec_us"]), ("inf", "-inf"))

    def test_packed_data_that_is_damaged_anywhere_is_counted(self):
        lines = synthetic.record(("9.20.0", "9.27.0"), synthetic.DEVICES[:1])
        whole = gzip.compress(synthetic.text(lines).encode())
        for at in range(20, len(whole), len(whole) // 60):
            damaged = whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]
            store = support.store(self.at, damaged, "a.jsonl.gz")
            self.assertFalse(store.complete(), at)
            self.assertGreater(store.totals()["unreadable"], 0, at)

    def test_a_packed_file_that_does_not_end_is_not_read_to_its_end(self):
        limit, reader.PACKED_LEAST = reader.PACKED_LEAST, 1 << 20
        self.addCleanup(setattr, reader, "PACKED_LEAST", limit)
        blank = (b" " * 65535 + b"\n") * (32 << 4)
        data = lzma.compress(synthetic.text(synthetic.record()).encode() + blank, preset=0)
        store = support.store(self.at, data, "a.jsonl.xz")
        self.assertIn("MiB; not read", store.files[0].samples[-1])
        self.assertGreater(store.totals()["rows"], 100)
