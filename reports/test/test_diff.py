"""Two records become one answer: by case and verdict, grouped by what separates, never green for what was not answered."""

import dataclasses
import json
import re
import unittest.mock
import xml.etree.ElementTree as ET
from pathlib import Path

import support
import synthetic
from facts_reports.compare import diff, diff_words
from facts_reports.known import knowledge
from facts_reports.read import cases, predicate, separate
from facts_reports.read.vocabulary import BY_CHANGE, CHANGES
from synthetic import engines, reason

OLD, NEW = "9.20.0", "9.27.0"
MOVED = "(cuDNN 9.20.0 -> 9.27.0)"
EURO = "\u20ac"


def row(case, build=OLD, verdict="pass", device="h100-sxm", **more):
    """One decided row with two engines."""
    made = synthetic.plain(case, build, verdict, device, run=f"r{build}", grade="decided")
    made["sm"] = 90 if device == "h100-sxm" else 100
    if verdict == "unsupported":
        return made | {"engines": []} | reason("no") | more
    if verdict == "inconclusive":
        made["supported"] = None
    made |= {"engine": 2, "config": 0, "workspace_bytes": 256, "reason": {}}
    return made | engines(2, 1) | more


NAMES = [
    f"pass=fwd dtype={t} s={s} d={d}{i}"
    for t in ("bf16", "f32")
    for s in ("1/512", "512")
    for d in (64, 128)
    for i in ("", " impl=unified")
]


def rows(build=OLD, bad=None, verdict="unsupported", names=NAMES, **more):
    """A row of each name. Those with `bad` in the name, or for which it says so, have the verdict."""
    chosen = bad if callable(bad) else lambda name: bad is not None and bad in name
    return [row(n, build, verdict if chosen(n) else "pass", **more) for n in names]


def record(rows, complete=True):
    lines = []
    for build in sorted({r["build"] for r in rows}):
        on = [(build, d) for d in sorted({r["device"] for r in rows if r["build"] == build})]
        about = {"facts": "0.3.0", "suite_hash": "5f0c", "planned": len(rows)}
        lines.append(synthetic.head(f"r{build.split('-')[0]}", *on, **about))
    return synthetic.text(lines + rows + [synthetic.end("r", rows=len(rows))] * complete)


class Case(support.Folder):
    def setUp(self):
        super().setUp()
        self.known()

    def known(self, *lines):
        """What is known of cases; the rest of cases/known is not looked at."""
        today = knowledge.Knowledge(lines)
        patch = unittest.mock.patch.object(knowledge, "today", lambda: today)
        patch.start()
        self.addCleanup(patch.stop)

    def write(self, name, data):
        """The path of a record: of rows, or of its text."""
        path = self.folder / name
        data = record(data) if isinstance(data, list) else data
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return str(path)

    def run_diff(self, *args):
        """(exit code, stdout, stderr)"""
        return support.called(support.commands.main, "diff", *args)

    def both(self, old, new, *args):
        """(exit code, text) of two lists of rows"""
        return self.run_diff(self.write("a.jsonl", old), self.write("b.jsonl", new), *args)[:2]

    def answer(self, old, new, *args):
        """What `facts diff --json` says of two lists of rows: (exit code, head, groups)"""
        code, out = self.both(old, new, "--json", *args)
        lines = [json.loads(line) for line in out.splitlines()]
        return code, lines[0]["diff"], [line["group"] for line in lines[1:]]

    def one(self, old, new, *args):
        """The class of one case that two builds answered so."""
        case = "pass=fwd dtype=bf16"
        code, _, groups = self.answer([row(case, **old)], [row(case, NEW, **new)], *args)
        return code, "+".join(g["class"] for g in groups) or "same"


def took(us):
    return {"grade": "measured", "exec_us": us}


class Classes(Case):
    def test_each_pair_of_verdicts_has_its_class_and_its_exit_code(self):
        for line in """pass pass same 0
            pass unsupported lost 1
            unsupported pass gained 0
            pass build_fail worse 1
            unsupported crash changed_kind 1
            build_fail crash changed_kind 1
            build_fail pass better 0
            crash unsupported better 0
            crash crash same 0
            unsupported unsupported same 0
            pass inconclusive inconclusive 3
            inconclusive inconclusive inconclusive 3
            mistrusted pass inconclusive 3""".splitlines():
            old, new, word, code = line.split()
            with self.subTest(line):
                found = self.one({"verdict": old}, {"verdict": new})
                self.assertEqual(found, (int(code), word.replace("_", " ")))

    def test_a_case_that_only_one_side_has_is_missing_and_never_the_same(self):
        code, head, groups = self.answer(rows(), rows(NEW)[:-1])
        found = code, head["same"], [g["class"] for g in groups]
        self.assertEqual(found, (4, len(NAMES) - 1, ["missing"]))
        said = f"CANNOT TELL {MOVED}: 1 case has an answer on one side only."
        self.assertTrue(head["answer"].startswith(said), head["answer"])

    def test_equal_totals_with_other_cases_are_both_lost_and_gained(self):
        two = NAMES[:2]
        code, head, groups = self.answer(
            rows(OLD, "unified", names=two), rows(NEW, lambda n: n == two[0], names=two)
        )
        found = code, head["same"], sorted(g["class"] for g in groups)
        self.assertEqual(found, (1, 0, ["gained", "lost"]))

    def test_accepted_answers_differ_by_engines_knobs_times_and_workspace(self):
        for old, new, word in (
            (engines(2, 1), engines(1, 2), "engine changed"),
            (engines(2, 1), engines(2), "engine changed"),
            (engines(2), engines(2, KERNEL_CFG=8), "knobs changed"),
            ({"backend": "math"}, {}, "engine changed"),
            (took(100.0), took(111.0), "slower"),
            (took(100.0), took(109.0), "same"),
            (took(1.0), took(2.0), "same"),
            ({"plan_ms": 200.0}, {"plan_ms": 500.0}, "plan slower"),
            ({"plan_ms": 2.0}, {"plan_ms": 90.0}, "same"),
            ({"workspace_bytes": 1 << 20}, {"workspace_bytes": 1 << 22}, "workspace larger"),
        ):
            self.assertEqual(self.one(old, new), (0, word), (old, new))
        self.assertEqual(self.one(took(100.0), took(120.0), "--slower", "1.3")[1], "same")
        found = self.one(engines(2, 1), engines(2), "--fail-on", "engine-changed")
        self.assertEqual(found, (1, "engine changed"))

    def test_another_reason_is_information_and_another_size_is_the_same_reason(self):
        odd, size, none = (
            {"verdict": "unsupported", **reason(text)}
            for text in ("d 100 is odd", "d 200 is odd", "no kernel")
        )
        self.assertEqual(self.one(odd, size), (0, "same"))
        name = "pass=fwd dtype=bf16"
        code, head, groups = self.answer([row(name, **odd)], [row(name, NEW, **none)])
        self.assertEqual((code, head["same"], groups[0]["class"]), (0, 1, "reason changed"))
        self.assertIn(f"NO REGRESSION {MOVED}: nothing got worse.", head["answer"])

    def test_a_refusal_by_facts_itself_on_one_side_is_no_change_of_cudnn(self):
        name = "pass=fwd dtype=bf16"
        late = "rope: the unified forward has it from cuDNN 9.24 on"
        for made, said in (
            ({"class": "policy", "text": "rule x: why", "rule": "x"}, "FACTS's guard x"),
            ({"class": "unsupported", "text": f"{late}; this is 9.20.0"}, late),
            ({"class": "internal", "text": "not implemented: x"}, "not implemented: x"),
        ):
            ours = {"verdict": "unsupported", "reason": made}
            for verdict in ("pass", "crash", "unsupported"):
                theirs = {"verdict": verdict}
                for old, new, side in ((ours, theirs, "baseline"), (theirs, ours, "candidate")):
                    _, head, groups = found = self.answer(
                        [row(name, **old), row(NAMES[0])],
                        [row(name, NEW, **new), row(NAMES[0], NEW)],
                    )
                    found = found[0], head["compared"], head["same"], groups, head["not_asked"]
                    self.assertEqual(found, (0, 1, 1, [], {f"{side}: {said}": 1}), (old, new))
            code, head, groups = self.answer([row(name, **ours)], [row(name, NEW, **ours)])
            self.assertEqual((code, head["same"], groups), (0, 1, []))
        code, out = self.both([row(name, **ours)], [row(name, NEW)])
        self.assertIn("FACTS did not ask one of the two builds about 1 case.", out)
        first = f"CANNOT TELL {MOVED}: FACTS itself refuses every case for one of the two sides."
        self.assertEqual((code, out.splitlines()[0]), (5, first))
        self.assertEqual(self.one(ours, {"verdict": "inconclusive"}), (3, "inconclusive"))

    def test_new_knobs_of_all_engines_are_one_line_and_the_answers_are_the_same(self):
        old, new = rows(), rows(NEW, **engines(2, 1, KERNEL_CFG=1, TILE_M=2))
        code, head, groups = self.answer(old, new)
        found = code, head["same"], groups, head["new_knobs"]
        self.assertEqual(found, (0, len(NAMES), [], {"TILE_M new": len(NAMES)}))
        said = "The engines have other knobs: TILE_M new (16 cases)."
        self.assertIn(said, self.both(old, new)[1])
        new[0] = row(NAMES[0], NEW, **engines(2, 1, KERNEL_CFG=1, STAGES=2))
        said = "TILE_M new (15 cases), STAGES new (1 case)"
        self.assertEqual(self.both(old, new)[1].count(said), 1)

    def test_one_answer_to_a_case_counts(self):
        old = [row(NAMES[0], verdict="unsupported"), row(NAMES[0], attempt=2)]
        self.assertEqual(self.answer(old, [row(NAMES[0], NEW)])[1]["same"], 1)


class Renumbered(Case):
    """Engines under new numbers are recognised and said in one line."""

    names = [n.replace("fwd", "bwd") for n in NAMES]

    @staticmethod
    def numbered(*indices):
        """Each engine with knobs of its own."""
        made = [engines(i, KERNEL_CFG=i % 4)["engines"][0] for i in indices]
        return {"engines": [{**one, "notes": ["TENSOR_CORE"]} for one in made]}

    def rows(self, build, *indices):
        return rows(build, names=self.names, **self.numbered(*indices))

    def test_they_are_the_same_answers(self):
        old, new = self.rows(OLD, 2, 1), self.rows(NEW, 6, 5)
        code, head, groups = self.answer(old, new)
        self.assertEqual((code, head["same"], groups), (0, len(self.names), []))
        found = [(r["old"], r["new"]) for r in head["renumbered"] if r["graph"] == "backward"]
        self.assertEqual(found, [("1", "5"), ("2", "6")])
        said = "cuDNN renumbered engines: backward 1 -> 5, 2 -> 6; unified backward 1 -> 5, 2 -> 6."
        self.assertIn(said, self.both(old, new)[1])

    def test_a_number_in_use_another_order_and_other_knobs_are_changes(self):
        in_use = self.rows(NEW, 6, 2)[:1] + self.rows(NEW, 6, 5)[1:]
        for new in in_use, self.rows(NEW, 1, 2), self.rows(NEW, 6, 4):
            groups = self.answer(self.rows(OLD, 2, 1), new)[2]
            self.assertIn("engine changed", {g["class"] for g in groups})

    def test_one_case_that_differs_counts_for_what_it_says(self):
        """How many cases have other engines when the first ones answer so."""
        swapped = [engines(3, 4), engines(4, 3)]
        for what, (old, new), count in (
            ("another order in one case says nothing of the others", swapped, 1),
            (
                "the candidate still has engine 2: of this graph no number is another's",
                (self.numbered(2, 1), self.numbered(6, 2, 5)),
                len(self.names) // 2,
            ),
        ):
            first = [row(self.names[0], OLD, **old), *self.rows(OLD, 2, 1)[1:]]
            second = [row(self.names[0], NEW, **new), *self.rows(NEW, 6, 5)[1:]]
            groups = [g for g in self.answer(first, second)[2] if g["class"] == "engine changed"]
            self.assertEqual(sum(g["cases"] for g in groups), count, what)

    def test_a_configuration_and_a_new_engine_are_named_by_the_new_numbers(self):
        def every(build, pair, last):
            name, has = f"{self.names[0]} engine=all", self.numbered(*pair)
            both = enumerate(zip(pair, ("crash", last)))
            return [row(name, build, v, config=i, engine=e, **has) for i, (e, v) in both]

        old, new = self.rows(OLD, 2, 1), self.rows(NEW, 6, 5)
        group = self.answer(old + every(OLD, (2, 1), "pass"), new + every(NEW, (6, 5), "crash"))[2][
            0
        ]
        found = group["class"], group["configuration"], group["baseline"]["answer"]
        self.assertEqual(found, ("worse", "engine 5 KERNEL_CFG=1", "supported by engine 1"))
        new[0] = row(self.names[0], NEW, **self.numbered(6, 5, 3))
        found = [(g["class"], g["change"], g["cases"]) for g in self.answer(old, new)[2]]
        self.assertEqual(found, [("engine changed", "engine 3 new, last", 1)])


class Known(Case):
    def test_what_is_known_is_counted_and_excuses_only_what_did_not_work_before(self):
        def three(build, *verdicts, **more):
            both = zip(NAMES, verdicts)
            return [
                row(n, build, v, grade="measured", **more if v == "wrong" else {}) for n, v in both
            ]

        known = {"expectation": {"verdict": "wrong", "met": True, "link": "a/b#1"}}
        new = three(NEW, "wrong", "wrong", "pass", **known)
        code, head, groups = self.answer(three(OLD, "pass", "pass", "pass"), new)
        found = code, head["classes"]["worse"], groups[0]["known"], groups[0]["fails"]
        self.assertEqual(found, (1, {"cases": 2, "known": 2, "fails": True}, 2, True))
        old = three(OLD, "nan", "nan", "pass")
        code, head, groups = self.answer(old, new)
        found = code, head["classes"]["changed kind"], groups[0]["fails"]
        self.assertEqual(found, (0, {"cases": 2, "known": 2, "fails": True}, False))
        code, head, _ = self.answer(old, [new[0], *three(NEW, "wrong", "wrong", "pass")[1:]])
        self.assertEqual((code, head["classes"]["changed kind"]["known"]), (1, 1))

    def test_with_every_engine_the_worst_counts_and_a_hidden_configuration_is_named(self):
        def every(build, *verdicts, **first):
            about = {"grade": "measured", **engines(1, 2)}
            name = "pass=fwd dtype=bf16 engine=all"
            made = [
                row(name, build, v, **about, config=i, engine=i + 1) for i, v in enumerate(verdicts)
            ]
            made[0] |= first
            return made

        groups = self.answer(every(OLD, "pass", "pass"), every(NEW, "pass", "wrong"))[2]
        self.assertEqual(groups[0]["class"], "worse")
        old = every(OLD, "wrong", "pass")
        code, _, groups = self.answer(old, every(NEW, "wrong", "wrong"))
        found = code, groups[0]["class"], groups[0]["configuration"]
        self.assertEqual(found, (1, "worse", "engine 2 KERNEL_CFG=7"))
        self.assertEqual(self.answer(old, every(NEW, "wrong", "pass"))[1]["same"], 1)
        guard = reason("engine 1 is removed", kind="policy", rule="x")
        old, new = (every(b, "unsupported", v, **guard) for b, v in ((OLD, "pass"), (NEW, "crash")))
        self.assertEqual(self.answer(old, new)[2][0]["class"], "worse", "a guard hides nothing")


class Pairing(Case):
    def test_which_axis_differs_is_found_and_said(self):
        for build, device, axes in (
            (NEW, "h100-sxm", ["build"]),
            (OLD, "sm100-spec", ["device"]),
            (NEW, "sm100-spec", ["build", "device"]),
            (OLD, "h100-sxm", []),
        ):
            new = row(NAMES[0], build, device=device)
            self.assertEqual(self.answer([row(NAMES[0])], [new])[1]["axes"], axes)

    def test_one_record_of_several_builds_is_compared_by_device(self):
        made = [
            one for b in (OLD, NEW) for d in ("h100-sxm", "sm100-spec") for one in rows(b, device=d)
        ]
        path, many = self.write("r.jsonl", made), 2 * len(NAMES)
        for words in ((path,), (path, path)):
            code, out, err = self.run_diff(*words, "--baseline", OLD, "--candidate", "9.27")
            self.assertEqual((code, err), (0, ""), out)
            self.assertIn(f"NO REGRESSION {MOVED}: nothing got worse.", out)
            said = f"\n{many} answers compared, {many} same.\n"
            self.assertIn(said, out)

    def test_what_is_not_clear_is_one_line_that_says_what_to_add(self):
        both, other = (
            self.write(
                name,
                [row(NAMES[0], b, device=d) for b in builds for d in ("h100-sxm", "sm100-spec")],
            )
            for name, builds in (("r.jsonl", (OLD, NEW)), ("o.jsonl", ("9.28.0",)))
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
        code, head, _ = self.answer(rows() + rows(device="sm100-spec"), rows(NEW))
        self.assertEqual((code, head["same"]), (4, len(NAMES)))
        self.assertIn("sm100-spec", " ".join(head["notes"]))

    def test_two_groups_with_one_predicate_name_their_devices(self):
        made = []
        for device, text in (("h100-sxm", "too large"), ("sm80-spec", "not aligned")):
            made += rows(device=device) + rows(NEW, device=device)[1:]
            made.append(row(NAMES[0], NEW, "unsupported", device, **reason(text, "S")))
        found = diff.compare([self.write("r.jsonl", made)], OLD, NEW)
        for group in found.groups:
            self.assertIn(group.where.rpartition(" & ")[2], ("sm=90", "sm=100"))
            self.assertEqual(diff_words.on(found, group), "")
            group.where = "d.qk=64"  # as where no exact predicate is found
        lost = re.findall("^– 1 lost: .*", diff_words.as_text(found), re.M)
        self.assertEqual(
            lost, [f"– 1 lost: head dim 64, forward on {d}" for d in ("sm80-spec", "h100-sxm")]
        )
        self.assertIn("`d.qk=64` on sm80-spec<br>", diff_words.as_markdown(found))

    def test_a_record_that_was_asked_with_guards_cannot_be_green(self):
        def guarded(*words, **more):
            return record(rows(*words, **more)).replace('"guards": "off"', '"guards": "on"')

        code, out = self.both(guarded(), guarded(NEW))
        said = f"CANNOT TELL {MOVED}: 16 cases were asked with the library's guards on. Ask again: facts gate --baseline 9.20.0 --candidate 9.27.0."
        self.assertEqual((code, out[: len(said)]), (3, said))
        code, out = self.both(guarded(), guarded(NEW, "f32"))
        self.assertEqual((code, out[:10]), (1, "REGRESSION"), "what got worse is worse")
        names = [f"{n} guards=off" for n in NAMES]
        self.assertEqual(self.both(guarded(names=names), guarded(NEW, names=names))[0], 0)
        code, _ = self.both(guarded(), guarded(device="sm100-spec"))
        self.assertEqual(code, 0, "one version")

    def test_an_incomplete_record_is_said_in_the_first_line(self):
        for broken, code, said in (
            (record(rows(NEW), complete=False), 4, f"CANNOT TELL {MOVED}: a record is incomplete."),
            (
                record(rows(NEW)) + '{"case":"pass=fwd',
                4,
                f"CANNOT TELL {MOVED}: a record is incomplete.",
            ),
            (
                record(rows(NEW, "f32"), complete=False),
                1,
                f"REGRESSION {MOVED}: 8 accepted cases are refused now. Numbers were not computed.\n"
                "No known failure of these cases begins or ends.\n"
                "16 answers compared, 8 same. A record is incomplete.\n",
            ),
        ):
            found, out = self.both(rows(), broken)
            self.assertEqual((found, out[: len(said)]), (code, said))

    def test_where_keeps_cases_and_nothing_kept_is_5(self):
        old, new, half = rows(), rows(NEW, "f32"), len(NAMES) // 2
        kept = {"dtype=bf16": (0, half), "verdict=unsupported": (1, half), "d.qk>4000": (5, 0)}
        for where, due in kept.items():
            found, head, _ = self.answer(old, new, "--where", where)
            self.assertEqual((found, head["compared"]), due, where)


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
                sm = str(found.sides.records[0].targets[slot.first]["sm"])
                about = {"device": slot.first[1], "sm": sm}
                said = cases.parse(name)

                def get(key, about=about, said=said):
                    return about[key] if key in about else cases.value_of(said, key)

                if predicate.holds(tree, get):
                    holds.add(i)
            kinds = [set(pairs) for pairs in found.classes[group.word].values()]
            changed = set().union(*kinds)
            others = set(found.among[BY_CHANGE[group.word].among]) - changed
            mine = set(separate.members(group.members, size))
            self.assertTrue(mine <= holds, group)
            self.assertEqual((group.others, group.among), (len(holds & others), len(others)), group)
            alike = set().union(*(kind for kind in kinds if mine & kind))
            self.assertEqual(group.also, len((holds & changed) - alike), group)

    def compare(self, old, new):
        """The comparison of two lists of rows, checked."""
        found = diff.compare([self.write("a.jsonl", old), self.write("b.jsonl", new)])
        self.check(found)
        return found

    def lost(self, bad, names=NAMES):
        return self.compare(rows(names=names), rows(NEW, bad, names=names))

    def test_the_predicate_that_separates_is_found(self):
        for bad, where in (
            (lambda n: "f32" in n and "unified" in n, "dtype=f32 & impl=unified"),
            (lambda n: "1/512" in n, "s.q=1"),
            (lambda n: True, ""),
        ):
            found = self.lost(bad)
            self.assertEqual([(g.word, g.others) for g in found.groups], [("lost", 0)])
            self.assertEqual(found.groups[0].where.replace("s.q<512", "s.q=1"), where)

    def test_no_term_of_a_predicate_says_what_is_not(self):
        names = [f"pass=fwd dtype={t} s={s}" for t in ("bf16", "f16", "f32") for s in (64, 72, 128)]
        for bad, where in (
            (lambda n: "f32" not in n, "dtype in (bf16, f16)"),
            (lambda n: "s=72" in n, "s.q%64>0"),
        ):
            group = self.lost(bad, names).groups[0]
            self.assertEqual(group.where.replace("s.kv", "s.q").replace("=72", "%64>0"), where)
        groups = self.lost(lambda n: not ("f32" in n and "64" in n and "unified" in n)).groups
        self.assertNotRegex(" ".join(g.where for g in groups), "!")

    def test_two_reasons_with_a_predicate_each_are_two_rows_though_one_predicate_would_do(self):
        new = []
        for n in NAMES:
            if "f32" in n and ("unified" in n or "d=128" in n):
                text = "unified" if "unified" in n else "wide"
                new.append(row(n, NEW, "unsupported", **reason(text, "NO")))
            elif "bf16" in n:
                new.append(row(n, NEW))
        found = self.compare([row(r["case"]) for r in new], new)
        due = ["dtype=f32 & impl=auto", "dtype=f32 & impl=unified"]
        self.assertEqual(sorted(g.where for g in found.groups), due)

    def test_two_causes_are_two_rows_and_what_nothing_explains_is_said(self):
        names = [
            f"pass=fwd dtype=bf16 s={s} d={d} seed={i}"
            for s in range(64, 1024, 64)
            for d in (64, 128, 192)
            for i in (2, 3)
        ]
        bad = {n for n in names if "s=64 " in n or "d=192" in n}
        found = self.lost(bad.__contains__, names)
        self.assertEqual(sum(g.hits for g in found.groups), len(bad))
        self.assertEqual([g.others for g in found.groups], [0] * len(found.groups))
        odd = set(names[::7])
        found = self.lost(odd.__contains__, names)
        self.assertEqual(sum(g.hits for g in found.groups), len(odd))
        self.assertIn("no predicate found", diff_words.as_text(found))

    def test_a_predicate_that_holds_for_what_changed_otherwise_too_says_so(self):
        names = [
            f"pass=fwd dtype=bf16 s={s} d={d} seed={s * 7919 % 97 + 2}"
            for s in range(64, 2048, 64)
            for d in (64, 128)
        ]
        odd = {n for i, n in enumerate(names) if i * 2654435761 % 11 < 2}
        new = rows(NEW, lambda n: n in odd or "d=64" in n, names=names)
        for one in new:
            if one["verdict"] == "unsupported":
                one |= reason("odd" if one["case"] in odd else "plain", "NO")
        found = self.compare(rows(names=names), new)
        plain = found.groups[0]
        also = sum("d=64" in n for n in odd)
        self.assertEqual((plain.where, plain.others, plain.also), ("d.qk=64", 0, also))
        said = f"it also fits {also} cases that changed in another way"
        self.assertIn(said, diff_words.exactness(found, plain))

    def test_numbers_are_cut_where_they_are_round_and_residues_are_found(self):
        names = [f"pass=fwd dtype=bf16 s={s} d=64" for s in range(64, 1025, 32)]
        for bad, where in ((lambda s: s > 512, "s.q>512"), (lambda s: s % 128 == 64, "s.q%128=64")):
            found = self.lost(lambda n: bad(int(n.split(" s=")[1].split()[0])), names)
            self.assertEqual(found.groups[0].where.replace("s.kv", "s.q"), where)

    def test_a_device_is_an_axis_like_any_other(self):
        old = rows() + rows(device="sm100-spec")
        found = self.compare(old, rows(NEW) + rows(NEW, "1/512", device="sm100-spec"))
        self.assertEqual(found.groups[0].where, "s.q=1 & sm=100")

    def test_the_synthetic_record_s_claims_hold(self):
        path = self.write("r.jsonl", synthetic.text(synthetic.record()))
        for build in ("9.14.0", "9.20.0"):
            found = diff.compare([path], build, NEW)
            self.assertTrue(found.groups)
            self.check(found)


class Output(Case):
    def test_the_first_line_is_the_answer_and_every_row_repeats_itself(self):
        why = "8 accepted cases are refused now. Numbers were not computed."
        said = f"REGRESSION {MOVED}: {why}"
        code, out = self.both(rows(), rows(NEW, "f32"))
        self.assertEqual((code, out.splitlines()[0]), (1, said))
        for words in (
            "dtype=f32",
            "the predicate fits all 8 cases, and none of the 8 other cases accepted before",
            "--cudnn 9.20.0,9.27.0 --device h100-sxm",
            "facts bisect 'pass=fwd dtype=f32",
            "a convolution or RNN regression",
        ):
            self.assertIn(words, out)
        code, out = self.both(rows(), rows(NEW, "f32"), "--markdown")
        said = f"**FACTS: REGRESSION (cuDNN 9.20.0 → 9.27.0 on h100-sxm): {why}**"
        self.assertEqual((code, out.splitlines()[0]), (1, said))

    def test_markdown_says_the_whole_answer(self):
        found = diff.compare([self.write("r.jsonl", rows() + rows(NEW))], OLD, NEW)
        known = "17 known failures begin: " + 600 * "x"
        said = dataclasses.replace(diff_words.answer.of(found), known=known)
        with unittest.mock.patch.object(diff_words.answer, "of", lambda _: said):
            self.assertIn(known, diff_words.as_markdown(found))

    def test_markdown_fits_a_comment_whatever_the_cases(self):
        names = [f"pass=fwd dtype=bf16 seed={i} note=" + EURO * 1400 for i in range(2, 40)]
        verdicts = (
            "crash wrong nan unsupported hang overrun exec_fail unwritten build_fail exit_crash"
            " nondeterministic graph_mismatch"
        ).split()
        many = rows(NEW, names=names, reason={"text": "x" * 5000})
        for i, one in enumerate(many):
            one |= {"verdict": verdicts[i % 12], "supported": verdicts[i % 12] != "unsupported"}
        code, out = self.both(rows(names=names), many, "--markdown")
        self.assertEqual(code, 1)
        self.assertLess(len(out.encode()), 64000)
        self.assertIn("more group", out)
        _, out = self.both(rows(names=names), many, "--annotations")
        self.assertEqual(len(re.findall("^::", out, re.M)), 10)

    def test_junit_json_and_annotations_are_well_formed(self):
        junit = self.folder / "j.xml"
        wrong = rows(NEW, "f32", "wrong", grade="measured")
        code, out, _ = self.run_diff(
            self.write("a.jsonl", rows()),
            self.write("b.jsonl", wrong),
            *("--annotations", "--junit", junit),
        )
        self.assertEqual((code, out[:10]), (1, "REGRESSION"))
        self.assertEqual(support.junit_breaches(junit), [])
        root = ET.parse(junit).getroot()
        failures = root.findall("testsuite[@name='worse']/testcase/failure")
        self.assertEqual((root.get("failures"), len(failures)), ("2", 1))
        names = [case.get("name") for case in root.iter("testcase")]
        self.assertEqual(names, ["decision", "worse: fp32 inputs, forward: supported -> wrong"])
        said = "::error title=FACTS%3A REGRESSION::FACTS: REGRESSION (cuDNN 9.20.0 → 9.27.0 on h100-sxm): 8 accepted cases fail now."
        self.assertIn(said, out)
        self.assertEqual(len(re.findall("^::error title=FACTS%3A 8 worse::", out, re.M)), 1)

    def test_a_hostile_record_breaks_neither_markdown_nor_xml_nor_annotations(self):
        bad = self.write("h.jsonl", synthetic.hostile())
        names = (
            "fwd dtype=bf16",
            "bwd dtype=bf16 h=8/2",
            f"fwd dtype=bf16 d=64 {synthetic.MARKUP}",
        )
        good = self.write("g.jsonl", rows(names=[f"pass={name}" for name in names]))
        where = ("--where", "device=h100-sxm")
        for words in ((bad, good), (good, bad)):
            junit = self.folder / "j.xml"
            code, out, _ = self.run_diff(*words, *where, "--markdown", "--junit", junit)
            self.assertIn(code, (1, 3, 4))
            ET.parse(junit)
            self.assertNotRegex("".join(out.split("`")[::2]), r"(?<!\\)<(?!br>)")
            code, out, _ = self.run_diff(*words, *where, "--annotations")
            self.assertNotRegex(out, "[\x00-\x08\x0b-\x1f\x7f]")
            self.assertNotRegex(out, re.compile("^(?!::).*::(error|warning)", re.M))

    def test_every_class_is_in_the_table_of_the_documentation(self):
        page = (Path(__file__).resolve().parents[2] / "docs/gate.md").read_text(encoding="utf-8")
        for change in CHANGES:
            self.assertIn(f"| {change.word} |", page)
