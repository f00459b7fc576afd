"""Two records become one answer: by case and verdict, grouped by what separates, never green for what was not answered."""

import json
import re
import unittest
import xml.etree.ElementTree as ET
from pathlib import Path

import support
import synthetic
from facts_reports.commands import diff as command
from facts_reports.compare import diff, diff_files, diff_words
from facts_reports.read import cases, predicate, separate
from facts_reports.read.vocabulary import BY_CHANGE, CHANGES

OLD, NEW = "9.20.0", "9.27.0"
EURO = "\u20ac"


def row(case, build=OLD, verdict="pass", device="h100-sxm", **more):
    """One decided row with two engines."""
    refused = verdict == "unsupported"
    made = {
        "case": case,
        "cudnn": build,
        "build": f"{build}-jit-cu13",
        "device": device,
        "sm": {"h100-sxm": 90}.get(device, 100),
        "grade": "decided",
        "backend": "cudnn",
        "verdict": verdict,
        "supported": None if verdict == "inconclusive" else not refused,
        "run": f"r{build}",
        "attempt": 1,
        "engines": [],
        "reason": {},
    }
    if refused:
        made["reason"] = {
            "class": "unsupported",
            "status": "CUDNN_STATUS_NOT_SUPPORTED",
            "text": "no",
        }
    else:
        made |= {
            "engine": 2,
            "config": 0,
            "workspace_bytes": 256,
            "engines": [{"mode": "A", "index": i, "knobs": {"KERNEL_CFG": 7}} for i in (2, 1)],
        }
    return made | more


def record(rows, complete=True):
    builds = sorted({r["build"] for r in rows})
    lines = [
        {
            "run": {
                "id": f"r{b.split('-')[0]}",
                "facts": "0.3.0",
                "started": "2026-11-21T10:00:00Z",
                "suite_hash": "5f0c",
                "planned": len(rows),
                "targets": [
                    {"build": b, "device": d}
                    for d in sorted({r["device"] for r in rows if r["build"] == b})
                ],
            }
        }
        for b in builds
    ]
    return synthetic.text(
        lines
        + rows
        + ([{"end": {"run": "r", "complete": True, "rows": len(rows)}}] if complete else [])
    )


NAMES = [
    f"pass=fwd dtype={t} s={s} d={d}{i}"
    for t in ("bf16", "f32")
    for s in ("1/512", "512")
    for d in (64, 128)
    for i in ("", " impl=unified")
]


class Case(support.Folder):
    def write(self, name, data):
        path = self.folder / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return str(path)

    def run_diff(self, *args):
        """(exit code, stdout, stderr)"""
        return support.called(command.main, *args)

    def answer(self, old, new, *args):
        """What `facts diff --json` says of two lists of rows: (exit code, head, groups)"""
        code, out, err = self.run_diff(
            self.write("a.jsonl", record(old)), self.write("b.jsonl", record(new)), "--json", *args
        )
        self.assertEqual(err, "")
        lines = [json.loads(line) for line in out.splitlines()]
        return code, lines[0]["diff"], [line["group"] for line in lines[1:]]

    def one(self, old, new, *args):
        """The class of one case that two builds answered so."""
        case = "pass=fwd dtype=bf16"
        code, head, groups = self.answer([row(case, **old)], [row(case, NEW, **new)], *args)
        return code, "+".join(g["class"] for g in groups) or "same"


class Classes(Case):
    def test_each_pair_of_verdicts_has_its_class_and_its_exit_code(self):
        for old, new, word, code in (
            ("pass", "pass", "same", 0),
            ("pass", "unsupported", "lost", 1),
            ("unsupported", "pass", "gained", 0),
            ("pass", "build_fail", "worse", 1),
            ("unsupported", "crash", "changed kind", 1),
            ("build_fail", "crash", "changed kind", 1),
            ("build_fail", "pass", "better", 0),
            ("crash", "unsupported", "better", 0),
            ("crash", "crash", "same", 0),
            ("unsupported", "unsupported", "same", 0),
            ("pass", "inconclusive", "inconclusive", 3),
            ("inconclusive", "inconclusive", "inconclusive", 3),
            ("mistrusted", "pass", "inconclusive", 3),
        ):
            self.assertEqual(self.one({"verdict": old}, {"verdict": new}), (code, word), (old, new))

    def test_a_case_that_only_one_side_has_is_missing_and_never_the_same(self):
        code, head, groups = self.answer([row(n) for n in NAMES], [row(n, NEW) for n in NAMES[:-1]])
        self.assertEqual(
            (code, head["same"], [g["class"] for g in groups]), (4, len(NAMES) - 1, ["missing"])
        )
        self.assertTrue(
            head["answer"].startswith("CANNOT TELL: 1 case has an answer on one side only."),
            head["answer"],
        )

    def test_equal_totals_with_other_cases_are_both_lost_and_gained(self):
        names = NAMES[:2]
        code, head, groups = self.answer(
            [row(names[0]), row(names[1], verdict="unsupported")],
            [row(names[0], NEW, "unsupported"), row(names[1], NEW)],
        )
        self.assertEqual(
            (code, head["same"], sorted(g["class"] for g in groups)), (1, 0, ["gained", "lost"])
        )

    def test_accepted_answers_differ_by_engines_knobs_times_and_workspace(self):
        def engines(*indices, **knobs):
            return {
                "engines": [
                    {"mode": "A", "index": i, "knobs": knobs or {"KERNEL_CFG": 7}} for i in indices
                ]
            }

        measured = {"grade": "measured"}
        for old, new, word in (
            (engines(2, 1), engines(1, 2), "engine changed"),
            (engines(2, 1), engines(2), "engine changed"),
            (engines(2), engines(2, KERNEL_CFG=8), "knobs changed"),
            ({"backend": "math"}, {}, "engine changed"),
            ({**measured, "exec_us": 100.0}, {**measured, "exec_us": 111.0}, "slower"),
            ({**measured, "exec_us": 100.0}, {**measured, "exec_us": 109.0}, "same"),
            ({**measured, "exec_us": 1.0}, {**measured, "exec_us": 2.0}, "same"),
            ({"plan_ms": 200.0}, {"plan_ms": 500.0}, "plan slower"),
            ({"plan_ms": 2.0}, {"plan_ms": 90.0}, "same"),
            ({"workspace_bytes": 1 << 20}, {"workspace_bytes": 1 << 22}, "workspace larger"),
        ):
            self.assertEqual(self.one(old, new), (0, word), (old, new))
        self.assertEqual(
            self.one(
                {**measured, "exec_us": 100.0}, {**measured, "exec_us": 120.0}, "--slower", "1.3"
            )[1],
            "same",
        )
        self.assertEqual(
            self.one(engines(2, 1), engines(2), "--fail-on", "engine-changed"),
            (1, "engine changed"),
        )

    def test_another_reason_is_information_and_another_size_is_the_same_reason(self):
        def said(words):
            return {
                "verdict": "unsupported",
                "reason": {
                    "class": "unsupported",
                    "status": "CUDNN_STATUS_NOT_SUPPORTED",
                    "text": words,
                },
            }

        self.assertEqual(self.one(said("d 100 is odd"), said("d 200 is odd")), (0, "same"))
        code, head, groups = self.answer(
            [row("pass=fwd dtype=bf16", **said("d is odd"))],
            [row("pass=fwd dtype=bf16", NEW, **said("no kernel"))],
        )
        self.assertEqual((code, head["same"], groups[0]["class"]), (0, 1, "reason changed"))
        self.assertTrue(
            head["answer"].startswith("NO REGRESSION: nothing got worse."), head["answer"]
        )

    def test_a_refusal_by_facts_itself_on_one_side_is_no_change_of_cudnn(self):
        guard = {
            "verdict": "unsupported",
            "reason": {"class": "policy", "text": "rule x: why", "rule": "x"},
        }
        table = {
            "verdict": "unsupported",
            "reason": {
                "class": "unsupported",
                "text": "rope: the unified forward has it from cuDNN 9.24 on; this is 9.20.0",
            },
        }
        internal = {
            "verdict": "unsupported",
            "reason": {"class": "internal", "text": "not implemented: x"},
        }
        for ours, said in (
            (guard, "FACTS's guard x"),
            (table, "rope: the unified forward has it from cuDNN 9.24 on"),
            (internal, "not implemented: x"),
        ):
            for verdict in ("pass", "crash", "unsupported"):
                for old, new, side in (
                    (ours, {"verdict": verdict}, "baseline"),
                    ({"verdict": verdict}, ours, "candidate"),
                ):
                    code, head, groups = self.answer(
                        [row("pass=fwd dtype=bf16", **old), row(NAMES[0])],
                        [row("pass=fwd dtype=bf16", NEW, **new), row(NAMES[0], NEW)],
                    )
                    self.assertEqual(
                        (code, head["compared"], head["same"], groups, head["not_asked"]),
                        (0, 1, 1, [], {f"{side}: {said}": 1}),
                        (old, new),
                    )
            code, head, groups = self.answer(
                [row("pass=fwd dtype=bf16", **ours)], [row("pass=fwd dtype=bf16", NEW, **ours)]
            )
            self.assertEqual((code, head["same"], groups), (0, 1, []))
        code, out, _ = self.run_diff(
            self.write("a.jsonl", record([row("pass=fwd dtype=bf16", **table)])),
            self.write("b.jsonl", record([row("pass=fwd dtype=bf16", NEW)])),
        )
        self.assertIn("FACTS did not ask one of the two builds about 1 case.", out)
        self.assertEqual(
            (code, out.splitlines()[0]),
            (5, "CANNOT TELL: FACTS itself refuses every case for one of the two sides."),
        )
        self.assertEqual(self.one(guard, {"verdict": "inconclusive"}), (3, "inconclusive"))

    def test_with_every_engine_a_configuration_that_a_guard_removes_hides_nothing(self):
        def rows(build, last):
            guard = {"reason": {"class": "policy", "text": "engine 1 is removed", "rule": "x"}}
            return [
                row(
                    "pass=fwd dtype=bf16 engine=all",
                    build,
                    "unsupported",
                    config=0,
                    engine=1,
                    **guard,
                ),
                row("pass=fwd dtype=bf16 engine=all", build, last, config=1, engine=2),
            ]

        self.assertEqual(self.answer(rows(OLD, "pass"), rows(NEW, "crash"))[2][0]["class"], "worse")

    def test_new_knobs_of_all_engines_are_one_line_and_the_answers_are_the_same(self):
        old, new = (
            [
                row(n, b, engines=[{"mode": "A", "index": i, "knobs": knobs} for i in (2, 1)])
                for n in NAMES
            ]
            for b, knobs in ((OLD, {"KERNEL_CFG": 7}), (NEW, {"KERNEL_CFG": 1, "TILE_M": 2}))
        )
        code, head, groups = self.answer(old, new)
        self.assertEqual(
            (code, head["same"], groups, head["new_knobs"]),
            (0, len(NAMES), [], {"TILE_M new": len(NAMES)}),
        )
        _, out, _ = self.run_diff(self.folder / "a.jsonl", self.folder / "b.jsonl")
        self.assertIn("The engines have other knobs: TILE_M new (16 cases).", out)
        new[0] = row(
            NAMES[0],
            NEW,
            engines=[
                {"mode": "A", "index": i, "knobs": {"KERNEL_CFG": 1, "STAGES": 2}} for i in (2, 1)
            ],
        )
        _, out, _ = self.run_diff(self.folder / "a.jsonl", self.write("b.jsonl", record(new)))
        self.assertEqual(
            len(
                [
                    line
                    for line in out.splitlines()
                    if "TILE_M new (15 cases), STAGES new (1 case)" in line
                ]
            ),
            1,
        )

    def test_engines_under_new_numbers_are_recognised_and_said_in_one_line(self):
        def engines(*indices):
            return {
                "engines": [
                    {
                        "mode": "A",
                        "index": i,
                        "knobs": {"KERNEL_CFG": i % 4},
                        "notes": ["TENSOR_CORE"],
                    }
                    for i in indices
                ]
            }

        names = [n.replace("fwd", "bwd") for n in NAMES]
        old = [row(n, **engines(2, 1)) for n in names]
        code, head, groups = self.answer(old, [row(n, NEW, **engines(6, 5)) for n in names])
        self.assertEqual((code, head["same"], groups), (0, len(names), []))
        self.assertEqual(
            [(r["old"], r["new"]) for r in head["renumbered"] if r["graph"] == "backward"],
            [("1", "5"), ("2", "6")],
        )
        _, out, _ = self.run_diff(self.folder / "a.jsonl", self.folder / "b.jsonl")
        self.assertIn(
            "cuDNN renumbered engines: backward 1 -> 5, 2 -> 6; unified backward 1 -> 5, 2 -> 6.",
            out,
        )
        for new in (
            [
                row(n, NEW, **engines(*((6, 5) if i else (6, 2)))) for i, n in enumerate(names)
            ],  # the old number is still in use
            [row(n, NEW, **engines(1, 2)) for n in names],
            [row(n, NEW, **engines(6, 4)) for n in names],
        ):  # another order; other knobs
            code, head, groups = self.answer(old, new)
            self.assertIn("engine changed", {g["class"] for g in groups})

        def changed(*answers):
            """How many cases have other engines when the last ones answer so."""
            first, second = (
                [row(n, b, **engines(*numbers)) for n in names]
                for b, numbers in ((OLD, (2, 1)), (NEW, (6, 5)))
            )
            first[0], second[0] = (
                row(names[0], b, **answer) for b, answer in zip((OLD, NEW), answers)
            )
            return sum(
                g["cases"] for g in self.answer(first, second)[2] if g["class"] == "engine changed"
            )

        swapped = [
            {"engines": [{"mode": "A", "index": i, "knobs": {}} for i in order]}
            for order in ((3, 4), (4, 3))
        ]
        self.assertEqual(
            changed(*swapped), 1, "another order in one case says nothing of the others"
        )
        self.assertEqual(
            changed(engines(2, 1), engines(6, 2, 5)),
            len(names) // 2,
            "the candidate still has engine 2: of this graph no number is another's",
        )

        def every(build, first, second, last):
            return [
                row(
                    f"{names[0]} engine=all",
                    build,
                    v,
                    config=i,
                    engine=(first, second)[i],
                    **engines(first, second),
                )
                for i, v in enumerate(("crash", last))
            ]

        group = self.answer(
            old + every(OLD, 2, 1, "pass"),
            [row(n, NEW, **engines(6, 5)) for n in names] + every(NEW, 6, 5, "crash"),
        )[2][0]
        self.assertEqual(
            (group["class"], group["configuration"], group["baseline"]["answer"]),
            ("worse", "engine 5 KERNEL_CFG=1", "supported by engine 1"),
        )
        new = [row(n, NEW, **engines(6, 5)) for n in names[1:]] + [
            row(names[0], NEW, **engines(6, 5, 3))
        ]
        self.assertEqual(
            [(g["class"], g["change"], g["cases"]) for g in self.answer(old, new)[2]],
            [("engine changed", "engine 3 new, last", 1)],
        )

    def test_what_is_known_is_counted_and_excuses_only_what_did_not_work_before(self):
        known = {
            "expectation": {"verdict": "wrong", "met": True, "link": "a/b#1"},
            "grade": "measured",
        }
        new = [
            row(NAMES[0], NEW, "wrong", **known),
            row(NAMES[1], NEW, "wrong", **known),
            row(NAMES[2], NEW, grade="measured"),
        ]
        code, head, groups = self.answer([row(n, grade="measured") for n in NAMES[:3]], new)
        self.assertEqual(
            (code, head["classes"]["worse"], groups[0]["known"], groups[0]["fails"]),
            (1, {"cases": 2, "known": 2, "fails": True}, 2, True),
        )
        old = [row(n, verdict="nan", grade="measured") for n in NAMES[:2]] + [
            row(NAMES[2], grade="measured")
        ]
        code, head, groups = self.answer(old, new)
        self.assertEqual(
            (code, head["classes"]["changed kind"], groups[0]["fails"]),
            (0, {"cases": 2, "known": 2, "fails": True}, False),
        )
        new[1] = row(NAMES[1], NEW, "wrong", grade="measured")
        code, head, _ = self.answer(old, new)
        self.assertEqual((code, head["classes"]["changed kind"]["known"]), (1, 1))

    def test_with_every_engine_the_worst_counts_and_a_configuration_that_the_case_hides_is_named(
        self,
    ):
        def rows(build, *verdicts):
            return [
                row(
                    "pass=fwd dtype=bf16 engine=all",
                    build,
                    v,
                    grade="measured",
                    config=i,
                    engine=i + 1,
                    engines=[
                        {"mode": "A", "index": j + 1, "knobs": {"KERNEL_CFG": 7}} for j in range(2)
                    ],
                )
                for i, v in enumerate(verdicts)
            ]

        self.assertEqual(
            self.answer(rows(OLD, "pass", "pass"), rows(NEW, "pass", "wrong"))[2][0]["class"],
            "worse",
        )
        code, head, groups = self.answer(rows(OLD, "wrong", "pass"), rows(NEW, "wrong", "wrong"))
        self.assertEqual(
            (code, groups[0]["class"], groups[0]["configuration"]),
            (1, "worse", "engine 2 KERNEL_CFG=7"),
        )
        self.assertEqual(
            self.answer(rows(OLD, "wrong", "pass"), rows(NEW, "wrong", "pass"))[1]["same"], 1
        )

    def test_the_latest_answer_to_a_case_counts(self):
        old = [row(NAMES[0], verdict="crash"), row(NAMES[0], attempt=2)]
        self.assertEqual(self.answer(old, [row(NAMES[0], NEW)])[1]["same"], 1)


class Pairing(Case):
    def test_which_axis_differs_is_found_and_said(self):
        for old, new, axes in (
            (row(NAMES[0]), row(NAMES[0], NEW), ["build"]),
            (row(NAMES[0]), row(NAMES[0], device="sm100-spec"), ["device"]),
            (row(NAMES[0]), row(NAMES[0], NEW, device="sm100-spec"), ["build", "device"]),
            (row(NAMES[0]), row(NAMES[0]), []),
        ):
            self.assertEqual(self.answer([old], [new])[1]["axes"], axes)

    def test_one_record_of_several_builds_is_compared_by_device(self):
        rows = [
            row(n, b, device=d)
            for b in (OLD, NEW)
            for d in ("h100-sxm", "sm100-spec")
            for n in NAMES
        ]
        path = self.write("r.jsonl", record(rows))
        for words in ((path,), (path, path)):
            code, out, err = self.run_diff(*words, "--baseline", OLD, "--candidate", "9.27")
            self.assertEqual((code, err), (0, ""), out)
            self.assertIn(
                f"NO REGRESSION: nothing got worse. {2 * len(NAMES)} answers compared, {2 * len(NAMES)} same.",
                out,
            )

    def test_what_is_not_clear_is_one_line_that_says_what_to_add(self):
        both = self.write(
            "r.jsonl",
            record(
                [row(NAMES[0], b, device=d) for b in (OLD, NEW) for d in ("h100-sxm", "sm100-spec")]
            ),
        )
        other = self.write(
            "o.jsonl",
            record([row(NAMES[0], "9.28.0", device=d) for d in ("h100-sxm", "sm100-spec")]),
        )
        for words, said in (
            ((both, other), "--baseline V --candidate V"),
            ((both,), "--baseline V --candidate V"),
            ((both, both, "--baseline", "9.1.0"), "no build of"),
            ((both, both, "--baseline", OLD, "--candidate", OLD), "both 9.20.0-jit-cu13"),
            ((both, self.folder / "none"), "no such file"),
            ((both, other, "--where", "dtpe=f32"), "dtype"),
            ((both, other, "--fail-on", "worze"), "nearest: worse"),
        ):
            code, out, err = self.run_diff(*words)
            self.assertEqual((code, out, len(err.splitlines())), (2, "", 1), err)
            self.assertIn(said, err)
        code, out, _ = self.run_diff(both, other, "--baseline", OLD, "--candidate", "9.28.0")
        self.assertEqual(code, 0, out)

    def test_a_target_that_one_side_lacks_is_said_and_not_green(self):
        code, head, _ = self.answer(
            [row(n, device=d) for d in ("h100-sxm", "sm100-spec") for n in NAMES],
            [row(n, NEW) for n in NAMES],
        )
        self.assertEqual((code, head["same"]), (4, len(NAMES)))
        self.assertIn("sm100-spec", " ".join(head["notes"]))

    def test_two_groups_with_one_predicate_name_their_devices(self):
        words = {"h100-sxm": "too large", "sm80-spec": "not aligned"}
        rows = [
            row(
                n,
                b,
                "unsupported",
                d,
                reason={"class": "unsupported", "status": "S", "text": words[d]},
            )
            if (b, n) == (NEW, NAMES[0])
            else row(n, b, device=d)
            for b in (OLD, NEW)
            for d in words
            for n in NAMES
        ]
        found = diff.compare([self.write("r.jsonl", record(rows))], OLD, NEW)
        for group in found.groups:
            self.assertEqual(
                (
                    group.where.rpartition(" & ")[2] in ("sm=90", "sm=100"),
                    diff_words.on(found, group),
                ),
                (True, ""),
            )
            group.where = "d.qk=64"  # as where no exact predicate is found
        lost = [
            line for line in diff_words.as_text(found).splitlines() if line.startswith("– 1 lost: ")
        ]
        self.assertEqual(lost, ["– 1 lost: d.qk=64 on sm80-spec", "– 1 lost: d.qk=64 on h100-sxm"])
        self.assertIn("`d.qk=64` on sm80-spec<br>", diff_words.as_markdown(found))

    def test_an_incomplete_record_is_never_nothing_to_see(self):
        for broken in (
            record([row(n, NEW) for n in NAMES], complete=False),
            record([row(n, NEW) for n in NAMES]) + '{"case":"pass=fwd',
        ):
            code, out, _ = self.run_diff(
                self.write("a.jsonl", record([row(n) for n in NAMES])),
                self.write("b.jsonl", broken),
            )
            self.assertEqual(code, 4)
            self.assertTrue(out.startswith("CANNOT TELL: a record is incomplete."), out[:200])

    def test_findings_of_an_incomplete_record_say_in_the_first_line_that_it_is(self):
        new = self.write(
            "b.jsonl",
            record(
                [row(n, NEW, "unsupported" if "f32" in n else "pass") for n in NAMES],
                complete=False,
            ),
        )
        code, out, _ = self.run_diff(self.write("a.jsonl", record([row(n) for n in NAMES])), new)
        self.assertEqual(
            (code, out.splitlines()[0]),
            (
                1,
                "REGRESSION: 8 accepted cases are refused now. A record is incomplete. 16 answers compared, 8 same.",
            ),
        )

    def test_where_keeps_cases_and_nothing_kept_is_5(self):
        old, new = (
            [row(n) for n in NAMES],
            [row(n, NEW, "unsupported" if "f32" in n else "pass") for n in NAMES],
        )
        self.assertEqual(self.answer(old, new, "--where", "dtype=bf16")[:2][0], 0)
        self.assertEqual(
            self.answer(old, new, "--where", "dtype=bf16")[1]["compared"], len(NAMES) // 2
        )
        self.assertEqual(
            self.answer(old, new, "--where", "verdict=unsupported")[1]["compared"], len(NAMES) // 2
        )
        self.assertEqual(self.answer(old, new, "--where", "d.qk>4000")[0], 5)


class Separating(Case):
    def check(self, found):
        """What a group claims of its predicate is what the predicate of the reports says of the cases."""
        size = len(found.names)
        for group in found.groups:
            if not group.where:
                continue
            tree = predicate.parse(group.where)
            holds = set()
            for i, name in enumerate(found.names):
                slot = found.sides.slots[found.slots[i]]
                about = {
                    "device": slot.first[1],
                    "sm": str(found.sides.records[0].targets[slot.first]["sm"]),
                }
                said = cases.parse(name)
                if predicate.holds(
                    tree, lambda key: about[key] if key in about else cases.value_of(said, key)
                ):
                    holds.add(i)
            changed = {i for pairs in found.classes[group.word].values() for i in pairs}
            others = (set(found.among[BY_CHANGE[group.word].among]) | changed) - changed
            self.assertTrue(set(separate.members(group.members, size)) <= holds, group)
            self.assertEqual((group.others, group.among), (len(holds & others), len(others)), group)
            mine = set(separate.members(group.members, size))
            self.assertEqual(
                group.also,
                len(
                    (holds & changed)
                    - {
                        i
                        for pairs in found.classes[group.word].values()
                        if mine & set(pairs)
                        for i in pairs
                    }
                ),
                group,
            )

    def compare(self, old, new):
        return diff.compare(
            [self.write("a.jsonl", record(old)), self.write("b.jsonl", record(new))]
        )

    def test_the_predicate_that_separates_is_found_in_both_polarities(self):
        for lost, where in (
            (lambda n: "f32" in n and "unified" in n, "dtype=f32 & impl=unified"),
            (lambda n: "1/512" in n, "s.q=1"),
            (
                lambda n: not ("f32" in n and "d=64" in n and "unified" in n),
                "!(dtype=f32 & impl=unified & d.qk=64)",
            ),
            (lambda n: True, ""),
        ):
            found = self.compare(
                [row(n) for n in NAMES],
                [row(n, NEW, "unsupported" if lost(n) else "pass") for n in NAMES],
            )
            self.assertEqual([(g.word, g.others) for g in found.groups], [("lost", 0)])
            self.assertEqual(found.groups[0].where.replace("s.q<512", "s.q=1"), where)
            self.check(found)

    def test_two_reasons_with_a_predicate_each_are_two_rows_though_one_predicate_would_do(self):
        def said(n):
            return {
                "reason": {
                    "class": "unsupported",
                    "status": "NO",
                    "text": "unified" if "unified" in n else "wide",
                }
            }

        lost = [n for n in NAMES if "f32" in n and ("unified" in n or "d=128" in n)]
        new = [
            row(n, NEW, "unsupported", **said(n)) if n in lost else row(n, NEW)
            for n in NAMES
            if n in lost or "bf16" in n
        ]
        found = self.compare([row(r["case"]) for r in new], new)
        self.assertEqual(
            sorted(g.where for g in found.groups),
            ["dtype=f32 & impl=auto", "dtype=f32 & impl=unified"],
        )
        self.check(found)

    def test_two_causes_are_two_rows_and_what_nothing_explains_is_said(self):
        names = [
            f"pass=fwd dtype=bf16 s={s} d={d} seed={i}"
            for s in range(64, 1024, 64)
            for d in (64, 128, 192)
            for i in (2, 3)
        ]
        lost = {n for n in names if "s=64 " in n or "d=192" in n}
        found = self.compare(
            [row(n) for n in names],
            [row(n, NEW, "unsupported" if n in lost else "pass") for n in names],
        )
        self.assertEqual(sum(g.hits for g in found.groups), len(lost))
        self.assertEqual([g.others for g in found.groups], [0] * len(found.groups))
        self.check(found)
        odd = set(names[::7])
        found = self.compare(
            [row(n) for n in names],
            [row(n, NEW, "unsupported" if n in odd else "pass") for n in names],
        )
        self.assertEqual(sum(g.hits for g in found.groups), len(odd))
        self.check(found)
        self.assertIn("no predicate found", diff_words.as_text(found))

    def test_a_predicate_that_holds_for_what_changed_otherwise_too_says_so(self):
        names = [
            f"pass=fwd dtype=bf16 s={s} d={d} seed={s * 7919 % 97 + 2}"
            for s in range(64, 2048, 64)
            for d in (64, 128)
        ]
        odd = {n for i, n in enumerate(names) if i * 2654435761 % 11 < 2}
        new = [
            row(
                n,
                NEW,
                "unsupported",
                reason={
                    "class": "unsupported",
                    "status": "NO",
                    "text": "odd" if n in odd else "plain",
                },
            )
            if n in odd or "d=64" in n
            else row(n, NEW)
            for n in names
        ]
        found = self.compare([row(n) for n in names], new)
        self.check(found)
        plain = found.groups[0]
        self.assertEqual(
            (plain.where, plain.others, plain.also), ("d.qk=64", 0, sum("d=64" in n for n in odd))
        )
        self.assertIn(
            f"it also fits {plain.also} cases that changed in another way",
            diff_words.exactness(plain),
        )

    def test_numbers_are_cut_where_they_are_round_and_residues_are_found(self):
        names = [f"pass=fwd dtype=bf16 s={s} d=64" for s in range(64, 1025, 32)]
        for lost, where in (
            (lambda s: s > 512, "s.q>512"),
            (lambda s: s % 128 == 64, "s.q%128=64"),
        ):
            found = self.compare(
                [row(n) for n in names],
                [
                    row(n, NEW, "unsupported" if lost(int(n.split("s=")[2].split()[0])) else "pass")
                    for n in names
                ],
            )
            self.assertEqual(found.groups[0].where.replace("s.kv", "s.q"), where)
            self.check(found)

    def test_a_device_is_an_axis_like_any_other(self):
        rows = [(n, d) for n in NAMES for d in ("h100-sxm", "sm100-spec")]
        found = self.compare(
            [row(n, device=d) for n, d in rows],
            [
                row(n, NEW, "unsupported" if d == "sm100-spec" and "1/512" in n else "pass", d)
                for n, d in rows
            ],
        )
        self.assertEqual(found.groups[0].where, "s.q=1 & sm=100")
        self.check(found)

    def test_the_synthetic_record_s_claims_hold(self):
        lines = list(synthetic.record())
        for build in ("9.14.0", "9.20.0"):
            found = diff.compare([self.write("r.jsonl", synthetic.text(lines))], build, NEW)
            self.assertTrue(found.groups)
            self.check(found)


class Output(Case):
    def setUp(self):
        super().setUp()
        self.old = self.write("a.jsonl", record([row(n) for n in NAMES]))
        self.new = self.write(
            "b.jsonl", record([row(n, NEW, "unsupported" if "f32" in n else "pass") for n in NAMES])
        )

    def test_the_first_line_is_the_answer_and_every_row_repeats_itself(self):
        code, out, _ = self.run_diff(self.old, self.new)
        self.assertEqual(
            (code, out.splitlines()[0]),
            (1, "REGRESSION: 8 accepted cases are refused now. 16 answers compared, 8 same."),
        )
        for words in (
            "dtype=f32",
            "the predicate fits all 8 cases, and none of the 8 other cases accepted before",
            "--cudnn 9.20.0,9.27.0 --device h100-sxm",
            "facts bisect 'pass=fwd dtype=f32",
            "a convolution or RNN regression",
        ):
            self.assertIn(words, out)

    def test_markdown_starts_with_the_answer_and_fits_a_comment_whatever_the_cases(self):
        code, out, _ = self.run_diff(self.old, self.new, "--markdown")
        self.assertEqual(
            (code, out.splitlines()[0]),
            (1, "**REGRESSION: 8 accepted cases are refused now. 16 answers compared, 8 same.**"),
        )
        names = [f"pass=fwd dtype=bf16 seed={i} note=" + EURO * 1400 for i in range(2, 40)]
        verdicts = (
            "crash",
            "wrong",
            "nan",
            "unsupported",
            "hang",
            "overrun",
            "exec_fail",
            "unwritten",
            "build_fail",
            "exit_crash",
            "nondeterministic",
            "graph_mismatch",
        )
        many = self.write(
            "m.jsonl",
            record(
                [
                    row(n, NEW, verdicts[i % 12], reason={"text": "x" * 5000})
                    for i, n in enumerate(names)
                ]
            ),
        )
        code, out, _ = self.run_diff(
            self.write("l.jsonl", record([row(n) for n in names])), many, "--markdown"
        )
        self.assertEqual(code, 1)
        self.assertLess(len(out.encode()), 64000)
        self.assertIn("more group", out)
        _, out, _ = self.run_diff(self.folder / "l.jsonl", many, "--annotations")
        self.assertEqual(len([line for line in out.splitlines() if line.startswith("::")]), 10)

    def test_junit_json_annotations_and_errata_are_well_formed(self):
        wrong = self.write(
            "w.jsonl",
            record(
                [row(n, NEW, "wrong" if "f32" in n else "pass", grade="measured") for n in NAMES]
            ),
        )
        code, out, err = self.run_diff(
            self.old,
            wrong,
            "--annotations",
            "--junit",
            self.folder / "j.xml",
            "--errata",
            self.folder / "e.json",
        )
        self.assertEqual(code, 1)
        self.assertEqual(support.junit_breaches(self.folder / "j.xml"), [])
        root = ET.parse(self.folder / "j.xml").getroot()
        self.assertEqual(
            (root.get("failures"), len(root.findall("testsuite[@name='worse']/testcase/failure"))),
            ("2", 1),
        )
        self.assertEqual(
            [case.get("name") for case in root.iter("testcase")],
            ["decision", "worse: dtype=f32: supported -> wrong"],
        )
        self.assertEqual(out.splitlines()[0][:10], "REGRESSION")
        self.assertIn(
            "::error title=FACTS%3A REGRESSION::REGRESSION: 8 accepted cases fail now.", out
        )
        self.assertEqual(
            len(
                [
                    line
                    for line in out.splitlines()
                    if line.startswith("::error title=FACTS%3A 8 worse::")
                ]
            ),
            1,
        )
        made = json.loads((self.folder / "e.json").read_text())
        self.assertEqual(
            [
                (
                    r["operation"],
                    r["engine"],
                    r["knob"],
                    r["cudnn_version_start"],
                    r["cudnn_version_end"],
                )
                for r in made["rules"]
            ],
            [("Matmul_Matmul", 2, [], 92700, 92701)],
        )
        self.assertIn("no SM", err)

    def test_a_hostile_record_breaks_neither_markdown_nor_xml_nor_annotations(self):
        bad = self.write("h.jsonl", synthetic.hostile())
        good = self.write(
            "g.jsonl",
            record(
                [
                    row("pass=fwd dtype=bf16"),
                    row("pass=bwd dtype=bf16 h=8/2"),
                    row(f"pass=fwd dtype=bf16 d=64 {synthetic.MARKUP}"),
                ]
            ),
        )
        for words in ((bad, good), (good, bad)):
            code, out, _ = self.run_diff(
                *words, "--markdown", "--junit", self.folder / "j.xml", "--where", "device=h100-sxm"
            )
            self.assertIn(code, (1, 3, 4))
            ET.parse(self.folder / "j.xml")
            outside = [part for i, part in enumerate(out.split("`")) if i % 2 == 0]
            self.assertFalse(any(re.search(r"(?<!\\)<(?!br>)", part) for part in outside), out)
            code, out, _ = self.run_diff(*words, "--where", "device=h100-sxm", "--annotations")
            self.assertNotRegex(out, "[\x00-\x08\x0b-\x1f\x7f]")
            self.assertTrue(
                all(
                    line.startswith("::")
                    for line in out.splitlines()
                    if "::error" in line or "::warning" in line
                )
            )

    def test_every_class_is_in_the_table_of_the_documentation(self):
        page = (Path(__file__).resolve().parents[2] / "docs" / "gate.md").read_text(
            encoding="utf-8"
        )
        for change in CHANGES:
            self.assertIn(f"| {change.word} |", page)
        self.assertIn(diff_files.WARNING.split(":")[0], page)


if __name__ == "__main__":
    unittest.main()
