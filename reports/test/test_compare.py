import unittest

import support
import synthetic

from facts_reports.read import findings, words

H100 = {"device": "h100-80gb-hbm3", "grade": "measured"}
SXM = {"device": "h100-sxm", "grade": "decided"}


def row(case="pass=fwd dtype=bf16", config=None, **change):
    return {
        "case": case,
        "build": "9.20.0-jit-cu13",
        "cudnn": "9.20.0",
        "sm": 90,
        "verdict": "pass",
        "supported": True,
        "attempt": 1,
        "run": "r1",
        "engines": [{"mode": "A", "index": 2, "knobs": {"TILE_M": 3}}, {"mode": "B", "index": 9}],
        **({} if config is None else {"config": config}),
        **H100,
        **change,
    }


def bits(**tensors):
    return {"errors": {t: {"ratio": 0.5, "bits": b} for t, b in tensors.items()}}


class Records(support.Folder):
    def write(self, name, *items):
        path = self.at / name
        path.write_text(
            synthetic.text(
                [
                    {"run": {"id": "r1", "started": "2026-11-21T00:00:00Z"}},
                    *items,
                    {"end": {"run": "r1", "complete": True}},
                ]
            )
        )
        return path

    def report(self, *args):
        code, out, _ = support.run(*args)
        return code, out


class Decisions(Records):
    def compare(self, *items):
        return self.report(
            "--decisions", "h100-80gb-hbm3", "h100-sxm", self.write("r.jsonl", *items)
        )

    def test_equal_decisions_are_counted_by_build(self):
        code, out = self.compare(
            row(),
            row(**SXM),
            row(build="9.27.0-jit-cu13"),
            row(build="9.27.0-jit-cu13", **SXM),
            row("pass=fwd dtype=f16"),
        )
        self.assertEqual(
            (code, out),
            (
                0,
                "9.20.0-jit-cu13: 1 of 1 decisions equal on h100-80gb-hbm3 and h100-sxm\n"
                "9.27.0-jit-cu13: 1 of 1 decisions equal on h100-80gb-hbm3 and h100-sxm\n",
            ),
        )

    def test_another_knob_engine_or_answer_is_a_difference(self):
        for change in (
            {"engines": [{"mode": "A", "index": 2, "knobs": {"TILE_M": 4}}]},
            {"engines": [{"mode": "A", "index": 1}]},
            {"supported": False, "engines": [], "verdict": "unsupported"},
        ):
            code, out = self.compare(row(), row(**SXM, **change))
            self.assertEqual(code, 1)
            self.assertIn("0 of 1 decisions equal", out)
            self.assertIn(
                "  pass=fwd dtype=bf16\n    h100-80gb-hbm3: yes, engines 2 TILE_M=3\n    h100-sxm: ",
                out,
            )

    def test_other_modes_and_what_only_a_run_knows_do_not_matter(self):
        code, _ = self.compare(row(), row(**SXM, engines=row()["engines"][:1], plan_ms=7))
        self.assertEqual(code, 0)

    def test_nothing_comparable_is_no_agreement(self):
        code, out = self.compare(
            row(),
            row("pass=bwd dtype=bf16", **SXM),
            row(verdict="inconclusive", supported=None, **SXM),
        )
        self.assertEqual(code, 5)
        self.assertIn("no case has an answer for both", out)


class Bits(Records):
    BWD = "pass=bwd dtype=bf16 engine=all"

    def compare(self, one, other):
        return self.report("--bits", self.write("a.jsonl", *one), self.write("b.jsonl", *other))

    def test_equal_bits_are_counted_by_tensor(self):
        rows = [
            row(self.BWD, 0, **bits(dq="1", dk="2", dv="3")),
            row(self.BWD, 1, **bits(dq="4", dk="5", dv="6")),
        ]
        code, out = self.compare(rows, [{**r, "plan_loaded": True} for r in rows])
        self.assertEqual(code, 0)
        self.assertIn("6 of 6 tensors equal", out)
        self.assertIn("plans loaded: 0 and 2", out)

    def test_a_difference_is_told_with_its_tensor_and_fails(self):
        code, out = self.compare(
            [row(self.BWD, 1, **bits(dk="2", dv="3"))], [row(self.BWD, 1, **bits(dk="2", dv="9"))]
        )
        self.assertEqual(code, 1)
        self.assertIn("1 of 2 tensors equal", out)
        self.assertIn(f"  differs: dv 3 9: {self.BWD} @ 9.20.0 configuration 1\n", out)

    def test_only_dq_that_was_not_asked_to_repeat_may_differ(self):
        for case, due in ((self.BWD, 0), ("pass=bwd dtype=bf16 deterministic=1", 1)):
            code, out = self.compare(
                [row(case, 0, **bits(dq="1", dk="2"))], [row(case, 0, **bits(dq="7", dk="2"))]
            )
            self.assertEqual(code, due, out)
            self.assertIn("dq 1 7", out)

    def test_a_configuration_that_only_one_record_has_is_no_agreement(self):
        code, out = self.compare(
            [row(self.BWD, 0, **bits(dk="2")), row(self.BWD, 1, **bits(dk="2"))],
            [row(self.BWD, 0, **bits(dk="2"))],
        )
        self.assertEqual(code, 4)
        self.assertIn("only in one record: " + self.BWD + " @ 9.20.0 configuration 1", out)

    def test_nothing_comparable_is_no_agreement(self):
        self.assertEqual(self.compare([row()], [row()])[0], 5)
        self.assertEqual(self.report("--bits", self.at / "a.jsonl", self.at / "none.jsonl")[0], 2)


class Findings(Records):
    KNOWN = {
        "verdict": "nan",
        "met": True,
        "date": "2026-11-21",
        "link": "NVIDIA/cudnn-frontend#1072",
        "note": "dK and dV",
    }
    UNMET = {**KNOWN, "met": False}

    @staticmethod
    def failing(case, config, build="9.20.0", **change):
        return row(
            case,
            config,
            build=f"{build}-jit-cu13",
            cudnn=build,
            verdict="nan",
            engine=6 + config,
            errors={"dq": {"ratio": "inf"}, "dk": {"ratio": 0.5}},
            **change,
        )

    def of(self, *items):
        return findings.of(support.store(self.at, synthetic.text(items)))

    def test_cases_that_fail_alike_are_one_finding_over_configurations_and_builds(self):
        cases = [f"pass=bwd dtype=bf16 b=1 s={s} engine=all fill=neglse" for s in (64, 192)]
        rows = [self.failing(c, i, b) for c in cases for i in (0, 1) for b in ("9.19.0", "9.20.0")]
        (one,) = self.of(*rows, row("pass=fwd dtype=bf16"))
        self.assertEqual(
            (one["outcome"], one["tensors"], one["cases"], one["pairs"], one["rows"]),
            ("nan", ["dq"], sorted(cases), 4, 8),
        )
        self.assertEqual(findings.history_words(one["history"]), "both builds ∅ nan")
        self.assertEqual(one["row"]["cudnn"], "9.20.0")

    def test_another_slice_or_another_tensor_is_another_finding(self):
        base, other = (
            "pass=bwd dtype=bf16 fill=neglse engine=all",
            "pass=bwd dtype=bf16 padding=random engine=all",
        )
        self.assertEqual(len(self.of(self.failing(base, 0), self.failing(other, 0))), 2)
        self.assertEqual(
            len(
                self.of(
                    self.failing(base, 0),
                    {
                        **self.failing(base.replace("fill", "s=64 fill"), 0),
                        "errors": {"dv": {"ratio": 9}},
                    },
                )
            ),
            2,
        )

    def test_the_history_says_which_engine_and_how_many_cases(self):
        a, b = ("pass=bwd dtype=bf16 %sengine=all fill=neglse" % s for s in ("", "s=64 "))
        (one,) = self.of(
            self.failing(a, 0),
            row(a, 1, engine=7),
            row(b, 0, engine=6),
            row(b, 1, engine=7),
            self.failing(b, 0, "9.27.0"),
        )
        self.assertEqual(
            findings.history_words(one["history"]),
            "9.20.0 ∅ nan (1 of 2 cases, engine 6), since 9.27.0 ∅ nan",
        )

    def test_what_was_expected_is_known_and_keeps_its_link(self):
        case = "pass=bwd dtype=bf16 engine=all fill=neglse"
        path = self.write(
            "r.jsonl", self.failing(case, 0, expectation=self.KNOWN), row("pass=fwd dtype=bf16")
        )
        code, out = self.report(path, "-o", self.at / "site")
        self.assertIn("No new findings: 1 known failure.", out)
        self.assertIn(
            "known: NVIDIA/cudnn-frontend#1072", (self.at / "site/summary.md").read_text()
        )
        self.assertIn(
            'failures="0" errors="0" skipped="1"', (self.at / "site/junit.xml").read_text()
        )
        self.assertIn(
            'data-link="NVIDIA/cudnn-frontend#1072"', (self.at / "site/index.html").read_text()
        )
        self.assertEqual(code, 0)

    def test_an_expected_failure_that_passes_is_news(self):
        path = self.write(
            "r.jsonl",
            row("pass=bwd dtype=bf16", expectation=self.UNMET),
            self.failing("pass=bwd dtype=f16", 0, expectation=self.KNOWN),
        )
        _, out = self.report(path, "-o", self.at / "site")
        self.assertIn("1 finding in 1 case: 1 unexpected; also 1 known failure.", out)
        self.assertIn('failures="1"', (self.at / "site/junit.xml").read_text())
        self.assertIn(
            "pass, expected nan NVIDIA/cudnn-frontend#1072",
            (self.at / "site/junit.xml").read_text(),
        )

    def test_news_in_one_configuration_is_not_hidden_by_what_is_known_of_another(self):
        case = "pass=bwd dtype=bf16 engine=all"
        _, out = self.report(
            self.write(
                "r.jsonl", self.failing(case, 0, expectation=self.KNOWN), self.failing(case, 1)
            ),
            "-o",
            self.at / "site",
        )
        self.assertIn("1 finding in 1 case: 1 nan.", out)


class Gpus(Records):
    def load(self, *items):
        return support.store(self.at, synthetic.text(items))

    @staticmethod
    def run_line(*targets, run="r1"):
        return {
            "run": {
                "id": run,
                "started": "2026-11-21T00:00:00Z",
                "planned": len(targets),
                "suite_hash": "x",
                "targets": [
                    {"build": "9.20.0-jit-cu13", "device": d, "kind": k} for d, k in targets
                ],
            }
        }

    @staticmethod
    def target_line(device, **more):
        return {"target": {"run": "r1", "build": "9.20.0-jit-cu13", "device": device, **more}}

    def test_a_planned_gpu_is_the_device_that_its_target_line_names(self):
        for more in ({"planned": "gpu0"}, {}):
            store = self.load(
                self.run_line(("gpu0", "gpu"), ("h100-sxm", "described")),
                self.target_line("h100-80gb-hbm3", **more),
                self.target_line("h100-sxm"),
                row(),
                row(**SXM),
            )
            self.assertEqual(
                (store.totals()["planned"], store.totals()["missing"], store.devices()),
                (2, 0, ["h100-80gb-hbm3", "h100-sxm"]),
                more,
            )

    def test_a_gpu_is_asked_again_by_its_number(self):
        store = self.load(
            self.run_line(("gpu1", "gpu"), ("h100-sxm", "described")),
            self.target_line("h100-80gb-hbm3", planned="gpu1"),
            row(),
            row(**SXM),
        )
        self.assertEqual(
            [words.repro(store, r).split()[-1] for _, r in store.rows(order="device")],
            ["1", "h100-sxm"],
        )

    def test_what_the_gpu_owes_is_missing_under_its_own_name(self):
        store = self.load(
            self.run_line(("gpu0", "gpu"), ("h100-sxm", "described")),
            self.target_line("h100-80gb-hbm3", planned="gpu0"),
            row(**SXM),
        )
        self.assertEqual(
            [(o, r["device"]) for o, r in store.rows("outcome='missing'")],
            [("missing", "h100-80gb-hbm3")],
        )

    def test_a_gpu_that_never_said_what_it_is_keeps_its_number(self):
        store = self.load(
            self.run_line(("gpu0", "gpu"), ("h100-sxm", "described")),
            self.target_line("h100-sxm"),
            row(**SXM),
        )
        self.assertEqual([r["device"] for _, r in store.rows("outcome='missing'")], ["gpu0"])


if __name__ == "__main__":
    unittest.main()
