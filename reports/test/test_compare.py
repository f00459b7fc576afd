import json

import support
import synthetic

from facts_reports.read import findings, words

H100 = {"device": "h100-80gb-hbm3", "grade": "measured"}
SXM = {"device": "h100-sxm", "grade": "decided"}
BUILD = "9.20.0-jit-cu13"


def row(case="pass=fwd dtype=bf16", config=None, build="9.20.0", **change):
    made = synthetic.plain(case, build) | synthetic.engines(2, TILE_M=3)
    made["engines"].append({"mode": "B", "index": 9})
    return made | ({"config": config} if config is not None else {}) | H100 | change


def bits(**tensors):
    return {"errors": {t: {"ratio": 0.5, "bits": b} for t, b in tensors.items()}}


class Records(support.Folder):
    def write(self, name, *items):
        path = self.at / name
        path.write_text(synthetic.text([synthetic.head(), *items, synthetic.end()]))
        return path

    def load(self, *items):
        return support.store(self.at, synthetic.text(items))

    def report(self, *args):
        return support.run(*args)[:2]


class Decisions(Records):
    def compare(self, *items):
        names = H100["device"], SXM["device"]
        return self.report("--decisions", *names, self.write("r.jsonl", *items))

    def test_equal_decisions_are_counted_by_build(self):
        newer = row(build="9.27.0"), row(build="9.27.0", **SXM)
        items = row(), row(**SXM), *newer, row("pass=fwd dtype=f16")
        said = "%s-jit-cu13: 1 of 1 decisions equal on h100-80gb-hbm3 and h100-sxm\n"
        self.assertEqual(self.compare(*items), (0, said % "9.20.0" + said % "9.27.0"))

    def test_another_knob_engine_or_answer_is_a_difference(self):
        said = "  pass=fwd dtype=bf16\n    h100-80gb-hbm3: yes, engines 2 TILE_M=3\n    h100-sxm: "
        for change in (
            synthetic.engines(2, TILE_M=4),
            synthetic.engines(1),
            {"supported": False, "engines": [], "verdict": "unsupported"},
        ):
            code, out = self.compare(row(), row(**SXM, **change))
            self.assertEqual(code, 1)
            self.assertIn("0 of 1 decisions equal", out)
            self.assertIn(said, out)

    def test_other_modes_and_what_only_a_run_knows_do_not_matter(self):
        other = row(**SXM, engines=row()["engines"][:1], plan_ms=7)
        self.assertEqual(self.compare(row(), other)[0], 0)

    def test_nothing_comparable_is_no_agreement(self):
        silent = row(verdict="inconclusive", supported=None, **SXM)
        code, out = self.compare(row(), row("pass=bwd dtype=bf16", **SXM), silent)
        self.assertEqual(code, 5)
        self.assertIn("no case has an answer for both", out)


class Bits(Records):
    BWD = "pass=bwd dtype=bf16 engine=all"

    def compare(self, one, other):
        return self.report("--bits", self.write("a.jsonl", *one), self.write("b.jsonl", *other))

    def test_tensors_are_compared_bit_by_bit(self):
        three = [
            row(self.BWD, 0, **bits(dq="1", dk="2", dv="3")),
            row(self.BWD, 1, **bits(dq="4", dk="5", dv="6")),
        ]
        loaded = [{**r, "plan_loaded": True} for r in three]
        one, other = ([row(self.BWD, 1, **bits(dk="2", dv=dv))] for dv in "39")
        alone = [row(self.BWD, i, **bits(dk="2")) for i in (0, 1)]
        at = f"{self.BWD} @ 9.20.0 configuration 1"
        for a, b, code, said in (
            (three, loaded, 0, "6 of 6 tensors equal"),
            (three, loaded, 0, "plans loaded: 0 and 2"),
            (one, other, 1, "1 of 2 tensors equal"),
            (one, other, 1, f"  differs: dv 3 9: {at}\n"),
            (alone, alone[:1], 4, f"only in one record: {at}"),
            ([row()], [row()], 5, ""),
        ):
            with self.subTest(said):
                found, out = self.compare(a, b)
                self.assertEqual(found, code)
                self.assertIn(said, out)
        self.assertEqual(self.report("--bits", self.at / "a.jsonl", self.at / "none.jsonl")[0], 2)

    def test_only_dq_that_was_not_asked_to_repeat_may_differ(self):
        for case, due in ((self.BWD, 0), ("pass=bwd dtype=bf16 deterministic=1", 1)):
            code, out = self.compare(*([row(case, 0, **bits(dq=n, dk="2"))] for n in "17"))
            self.assertEqual(code, due, out)
            self.assertIn("dq 1 7", out)


class Findings(Records):
    LINK = "NVIDIA/cudnn-frontend#1072"
    KNOWN = {"expectation": {"verdict": "nan", "met": True, "date": "2026-11-21", "link": LINK}}
    UNMET = {"expectation": {**KNOWN["expectation"], "met": False}}
    FILL = "pass=bwd dtype=bf16 engine=all fill=neglse"

    @staticmethod
    def failing(case, config, build="9.20.0", **change):
        errors = {"dq": {"ratio": "inf"}, "dk": {"ratio": 0.5}}
        about = {"verdict": "nan", "engine": 6 + config, "errors": errors}
        return row(case, config, build, **{**about, **change})

    def of(self, *items):
        return findings.of(self.load(*items))

    def page(self, *items):
        """(exit code, text, folder) of a report"""
        site = self.at / "site"
        return *self.report(self.write("r.jsonl", *items), "-o", site), site

    def test_cases_that_fail_alike_are_one_finding_over_configurations_and_builds(self):
        cases = [f"pass=bwd dtype=bf16 b=1 s={s} engine=all fill=neglse" for s in (64, 192)]
        rows = [self.failing(c, i, b) for c in cases for i in (0, 1) for b in ("9.19.0", "9.20.0")]
        (one,) = self.of(*rows, row("pass=fwd dtype=bf16"))
        found = [one[key] for key in ("outcome", "tensors", "cases", "pairs", "rows")]
        self.assertEqual(found, ["nan", ["dq"], sorted(cases), 4, 8])
        self.assertEqual(findings.history_words(one["history"]), "both builds ∅ nan")
        self.assertEqual(one["row"]["cudnn"], "9.20.0")

    def test_another_slice_or_another_tensor_is_another_finding(self):
        one = self.failing(self.FILL, 0)
        other = self.failing("pass=bwd dtype=bf16 padding=random engine=all", 0)
        small = self.FILL.replace("engine", "s=64 engine")
        third = self.failing(small, 0, errors={"dv": {"ratio": 9}})
        for two in (other, third):
            self.assertEqual(len(self.of(one, two)), 2)

    def test_the_history_says_which_engine_and_how_many_cases(self):
        a, b = ("pass=bwd dtype=bf16 %sengine=all fill=neglse" % s for s in ("", "s=64 "))
        right = row(a, 1, engine=7), row(b, 0, engine=6), row(b, 1, engine=7)
        (one,) = self.of(self.failing(a, 0), *right, self.failing(b, 0, "9.27.0"))
        said = "9.20.0 ∅ nan (1 of 2 cases, engine 6), since 9.27.0 ∅ nan"
        self.assertEqual(findings.history_words(one["history"]), said)

    def test_what_was_expected_is_known_and_keeps_its_link(self):
        known = self.failing(self.FILL, 0, **self.KNOWN)
        code, out, site = self.page(known, row("pass=fwd dtype=bf16"))
        self.assertIn("No new findings: 1 known failure.", out)
        for name, said in (
            ("summary.md", f"known: {self.LINK}"),
            ("junit.xml", 'failures="0" errors="0" skipped="1"'),
            ("index.html", f'data-link="{self.LINK}"'),
        ):
            self.assertIn(said, (site / name).read_text())
        self.assertEqual(code, 0)

    def test_each_form_names_a_known_failure_by_its_title(self):
        case, build = "pass=bwd dtype=bf16 b=1 h=1 s=704 d=64 fill=neglse", "9.20.0"
        failing = self.failing(case, 0, build, **self.KNOWN)
        right = row(case.replace(" fill=neglse", ""), 0, build)
        crash = row("pass=bwd b=1 h=1 s=1/64 d=64 guards=off", 0, "9.28.1", grade="decided")
        site = self.page(failing, right, crash)[2]
        title = "dQ is NaN if s_kv fills half of its last tile of 128 keys"
        sentence = f"known to be wrong for very negative scores: {title}"
        escaped = sentence.replace("_", "\\_")
        for name, said in (
            ("summary.md", f", {escaped}"),
            ("summary.md", "2 serious failures are known of these cases"),
            ("junit.xml", f'message="xfail: nan; {sentence}'),
            ("junit.xml", "<system-out>known to crash: cuDNN ends the process"),
            ("junit.xml", "\n  instead: "),
        ):
            self.assertIn(said, (site / name).read_text())
        rows = json.loads((site / "results.json").read_text())["rows"]
        name = "bwd-nan-negative-lse-skv-mod128-eq-64"
        seen = [
            (one["sure"], one["such_data"])
            for row_ in rows
            for one in row_.get("known", ())
            if one["id"] == name
        ]
        self.assertEqual(sorted(seen), [("seen", False), ("seen", True)])
        body = self.report(site.parent / "r.jsonl", "--issue", case)[1]
        self.assertIn(f"- {escaped}", body)

    def test_an_expected_failure_that_passes_is_news(self):
        known = self.failing("pass=bwd dtype=f16", 0, **self.KNOWN)
        _, out, site = self.page(row("pass=bwd dtype=bf16", **self.UNMET), known)
        self.assertIn("1 finding in 1 case: 1 unexpected; also 1 known failure.", out)
        for said in ('failures="1"', f"pass, expected nan {self.LINK}"):
            self.assertIn(said, (site / "junit.xml").read_text())

    def test_news_in_one_configuration_is_not_hidden_by_what_is_known_of_another(self):
        known = self.failing(self.FILL, 0, **self.KNOWN)
        self.assertIn(
            "1 finding in 1 case: 1 nan.", self.page(known, self.failing(self.FILL, 1))[1]
        )


class Gpus(Records):
    """A plan of a GPU and of a described device, and what their target lines say."""

    def planned(self, number, targets, *rows):
        run = synthetic.head("r1", planned=2, suite_hash="x")
        kinds = ((f"gpu{number}", "gpu"), ("h100-sxm", "described"))
        run["run"]["targets"] = [{"build": BUILD, "device": d, "kind": k} for d, k in kinds]
        lines = [{"target": {"run": "r1", "build": BUILD, **target}} for target in targets]
        return self.load(run, *lines, *rows)

    def test_a_planned_gpu_is_the_device_that_its_target_line_names(self):
        for more in ({"planned": "gpu0"}, {}):
            gpu = {"device": "h100-80gb-hbm3", **more}
            store = self.planned(0, [gpu, {"device": "h100-sxm"}], row(), row(**SXM))
            totals = store.totals()
            found = totals["planned"], totals["missing"], store.devices()
            self.assertEqual(found, (2, 0, ["h100-80gb-hbm3", "h100-sxm"]), more)

    def test_a_gpu_is_asked_again_by_its_number(self):
        gpu = {"device": "h100-80gb-hbm3", "planned": "gpu1"}
        store = self.planned(1, [gpu], row(), row(**SXM))
        found = [words.repro(store, r).split()[-1] for _, r in store.rows(order="device")]
        self.assertEqual(found, ["1", "h100-sxm"])

    def test_what_the_gpu_owes_is_missing_under_its_own_name_or_its_number(self):
        gpu = {"device": "h100-80gb-hbm3", "planned": "gpu0"}
        for target, name in ((gpu, "h100-80gb-hbm3"), ({"device": "h100-sxm"}, "gpu0")):
            store = self.planned(0, [target], row(**SXM))
            self.assertEqual([r["device"] for _, r in store.rows("outcome='missing'")], [name])


class Examples(Records):
    """What the example records show when they are compared."""

    def examples(self, *words):
        folder = support.HERE.parent / "examples"
        named = [folder / f"{word}.xz" if word.endswith(".jsonl") else word for word in words]
        code, out = self.report(*named)
        self.assertEqual(code, 0, out)
        return out

    def test_the_card_decides_as_its_description(self):
        out = self.examples("--decisions", "h100-80gb-hbm3", "h100-sxm", "described.jsonl")
        self.assertEqual(out.count("600 of 600 decisions equal"), 3)

    def test_plans_compiled_without_a_gpu_give_the_same_bits(self):
        out = self.examples("--bits", "plans.jsonl", "loaded.jsonl")
        self.assertIn("plans loaded: 0 and 61", out)
