"""Times measured in turns: the intervals, the error rate of a comparison by simulation, the table, and the class `slower` of facts gate --bench."""

import contextlib
import io
import json
import math
import random
import unittest

import support
import synthetic
from facts_reports.commands import bench
from facts_reports.compare import times
from facts_reports.read import store
from facts_reports.page import steps
from test_diff import MOVED, NEW, OLD, Case as Base, row

LEAST, MOST, NARROW = 16, 64, 0.003  # commands/bench/rounds.h
CASE = "pass=fwd dtype=bf16 engine=all"


def noisy_turns(rng, rounds, ratio=1.0, bias=0.004):
    """Turns of two sides in microseconds. What drifts is in both: clocks, temperature. A turn has its own noise, and one in thirty a spike. A worker has a
    bias of its own for all of its life: where its memory lies."""
    drift, mean = 1.0, rng.uniform(5, 5000)
    biases = [1 + rng.gauss(0, bias), ratio * (1 + rng.gauss(0, bias))]
    sides = ([], [])
    for _ in range(rounds):
        drift *= 1 + rng.gauss(0, 0.002) + (rng.choice((-0.03, 0.03)) if rng.random() < 0.02 else 0)
        for side, own in zip(sides, biases):
            spike = 1 + rng.expovariate(10) if rng.random() < 1 / 30 else 1
            side.append(mean * drift * own * (1 + abs(rng.gauss(0, 0.004))) * spike)
    return sides


def is_narrow(values):
    found = times.interval(values, 0.025)
    return (found.high - found.low) / 2 / found.middle <= NARROW


def compared(rng, least=times.LEAST, **how):
    """One comparison, with as many rounds as the harness would make."""
    first, second = noisy_turns(rng, MOST, **how)
    made = LEAST
    while made < MOST and not (is_narrow(first[:made]) and is_narrow(second[:made])):
        made += 2
    sides = [
        times.Side("b", "d", us={0: dict(enumerate(values[:made]))}) for values in (first, second)
    ]
    return times.compare(*sides, 0, 0, least)


def flagged(count, seed, **how):
    rng = random.Random(seed)
    return sum(compared(rng, **how).word in ("slower", "faster") for _ in range(count))


class Interval(unittest.TestCase):
    def test_the_ranks_are_those_of_coins(self):
        pairs = [(5, 0.025), (6, 0.025), *((n, 0.0005) for n in (10, 11, 16, 64))]
        for count, share in pairs:
            k = times.outside(count, share)
            tails = [sum(math.comb(count, i) for i in range(n)) / 2**count for n in (k, k + 1)]
            self.assertTrue(tails[0] <= share < tails[1], (count, share, k))
        self.assertEqual([times.outside(n, 0.0005) for n in (10, 11, 16)], [0, 1, 2])

    def test_too_few_values_leave_it_open(self):
        self.assertEqual(
            times.interval([1.0, 2.0, 3.0], 0.0005), times.Interval(2.0, 0.0, float("inf"), 3)
        )
        self.assertEqual(times.interval([], 0.025).count, 0)


MANY = 10000 if support.NIGHT else 4000  # comparisons


class ErrorRate(unittest.TestCase):
    """A build against itself."""

    def test_at_most_one_in_a_thousand_is_called_slower_or_faster(self):
        self.assertLessEqual(flagged(MANY, 1), MANY // 1000)

    def test_the_statistics_alone_keep_the_rate_where_two_workers_are_alike(self):
        self.assertLessEqual(
            flagged(MANY, 2, least=1.0, bias=0.0), MANY // 500, "twice what is expected at most"
        )

    def test_two_workers_whose_memory_makes_them_differ_need_the_second_measurement_of_the_gate(
        self,
    ):
        rng = random.Random(5)
        words = [compared(rng, bias=0.008).word for _ in range(3000)]
        share = words.count("slower") / len(words)
        self.assertGreater(share, 0.001, "one measurement is not enough")
        again = sum(
            compared(rng, bias=0.008).word == compared(rng, bias=0.008).word == "slower"
            for _ in range(3000)
        )
        self.assertLessEqual(again, 6, "expected at most 3 of 3000")

    def test_what_is_slower_is_found(self):
        rng = random.Random(4)
        words = [compared(rng, ratio=1.06).word for _ in range(500)]
        self.assertGreaterEqual(words.count("slower"), 475)
        self.assertEqual(words.count("faster"), 0)
        self.assertGreaterEqual(
            [compared(rng, ratio=0.94).word for _ in range(200)].count("faster"), 190
        )


class Comparing(unittest.TestCase):
    def sides(self, second=1.0, **clocks):
        """Two sides of 20 rounds; clocks: {round: mhz} of the second."""
        made = []
        for factor in (1.0, second):
            side = times.Side("b", "d")
            for n in range(20):
                config = {"config": 0, "us": [factor * (100 + n % 3 * 0.1)] * 5}
                side.add(n, {"configs": [config], "gpu": {"sm_mhz": 1980, "throttled": 0}})
            made.append(side)
        for n, mhz in clocks.items():
            made[1].gpu[int(n[1:])] = {"sm_mhz": mhz}
        return made

    def test_a_ratio_is_a_finding_only_outside_its_interval_and_the_least_effect(self):
        for ratio, word in ((1.0, "same"), (1.01, "same"), (1.05, "slower"), (0.95, "faster")):
            self.assertEqual(times.compare(*self.sides(ratio), 0, 0).word, word, ratio)
        self.assertEqual(times.compare(*self.sides(1.05), 0, 0, 1.10).word, "same")
        few = self.sides(1.5)
        for side in few:
            side.us[0] = {n: us for n, us in side.us[0].items() if n < 8}
        found = times.compare(*few, 0, 0)
        self.assertEqual((found.word, found.text), ("unclear", "1.500 (too few rounds)"))

    def test_rounds_with_another_clock_are_left_out_and_many_of_them_say_nothing(self):
        found = times.compare(*self.sides(1.0, r3=1700, r7=1200), 0, 0)
        self.assertEqual((found.word, found.left_out, found.ratio.count), ("same", 2, 18))
        many = self.sides(1.5, **{f"r{n}": 1200 for n in range(6)})
        self.assertEqual(times.compare(*many, 0, 0).word, "unsteady")
        slowed = self.sides()
        slowed[0].gpu[5] = {"sm_mhz": 1980, "throttled": 0x40}
        slowed[0].gpu[6] = {"sm_mhz": 1980, "throttled": 0x4}  # the power cap: the load's doing
        self.assertEqual(times.compare(*slowed, 0, 0).left_out, 1)

    def test_rounds_that_one_side_lacks_are_not_paired(self):
        first, second = self.sides()
        second.us[0] = {n: us for n, us in second.us[0].items() if n % 2}
        self.assertEqual(times.compare(first, second, 0, 0).ratio.count, 10)
        self.assertEqual(times.compare(first, second, 0, 9).text, "unclear")


def timed(case, factors, rounds=16, seed=1, run="r"):
    """Rows and turns of a case. factors: {build: {config: µs}}, or the µs of OLD and of NEW"""
    if not isinstance(factors, dict):
        factors = {build: {0: us} for build, us in zip((OLD, NEW), factors)}
    rng = random.Random(seed)
    out = []
    for build, us in factors.items():
        engines = [{"mode": "A", "index": 10 + c, "config": c, "knobs": {"TILE_M": c}} for c in us]
        about = {"grade": "measured", "engines": engines, "plan_ms": 900, "device": "gpu"}
        for c in us:
            out.append(row(case, build, **about, engine=10 + c, config=c, exec_us=us[c]))
    for n in range(rounds):
        for side, (build, us) in enumerate(factors.items()):
            configs = [
                {"config": c, "launches": 1, "us": [x * (1 + rng.gauss(0, 0.001))] * 5}
                for c, x in us.items()
            ]
            turn = {"configs": configs, "flops": 1e12, "bytes": 1e6}
            if n == 0:
                turn["peak"] = {"gemm_tflops": 700.0, "copy_gbs": 3000.0, "gemm": "libcublas.so.13"}
            at = {"case": case, "build": f"{build}-jit-cu13", "device": "gpu"}
            out.append({"time": {"run": run, **at, "side": side, "round": n, "turn": turn}})
    return out


def record_of(lines, **about):
    on = [(f"{build}-jit-cu13", "gpu") for build in (OLD, NEW)]
    head = synthetic.head("r", *on, facts="0", planned=1, **about)
    lines = [{**line, "run": "r"} if "verdict" in line else line for line in lines]
    return synthetic.text([head, *lines, synthetic.end("r", rows=1)])


class Table(Base):
    def bench(self, lines, *words):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            words = [self.write("r.jsonl", record_of(lines)), *words]
            code = bench.COMMAND.main(words, bench.run)
        return code, out.getvalue()

    def test_each_target_has_its_time_its_share_and_its_ratio(self):
        lines = timed(CASE, {OLD: {0: 2000.0, 1: 1500.0}, NEW: {0: 2200.0, 1: 1500.0}})
        code, out = self.bench(lines, "--json")
        old, new = map(json.loads, out.splitlines())
        found = code, old["engine"], old["change"], old["limit"]
        self.assertEqual(found, (0, "10", None, "gemm"))
        for key, due, delta in (("us", 2000, 5), ("tflops", 500, 2), ("share", 5 / 7, 0.01)):
            self.assertAlmostEqual(old[key], due, delta=delta)
        found = (
            new["change"]["word"],
            new["faster_engine"],
            new["first_choice_over_fastest"]["word"],
        )
        self.assertEqual(found, ("slower", "11 tile_m=1", "slower"))
        self.assertAlmostEqual(new["change"]["ratio"], 1.1, delta=0.005)
        lines[0]["calls"] = 7
        _, out = self.bench(lines)
        self.assertRegex(out, "7 of 7 calls of the model take 1[34][.0-9]* ms with 9.20.0")
        for said in (
            "cuDNN's first choice is not its fastest engine: 2 of 2; the fastest is up to 1.47 times as fast",
            "against the first: 1 slower",
            "bf16 GEMM 700 TFLOP/s (libcublas.so.13), copy 3,000 GB/s",
        ):
            self.assertIn(said, out)

    def test_a_case_that_was_not_timed_is_named(self):
        other = "pass=fwd dtype=f16 engine=all"
        refused = [row(other, OLD, "unsupported", device="gpu")]
        _, out = self.bench(timed(CASE, (10.0, 10.0)) + refused)
        self.assertIn(f"not timed: 1 case (refused, not right, or no answer): {other}", out)
        self.assertEqual(self.bench(refused)[0], bench.NOTHING)

    def test_a_build_whose_times_cannot_be_read_is_named(self):
        lines = timed(CASE, (10.0, 10.0))
        for line in lines:
            if line.get("time", {}).get("side") == 1:
                line["time"]["turn"]["configs"][0]["us"] = [-1.0]
        said = "no time of cuDNN's first choice (not right, or not readable):"
        self.assertIn(f"{said} {NEW}-jit-cu13 on gpu 1 case: {CASE}\n", self.bench(lines)[1])

    def test_a_peak_that_is_no_positive_finite_number_is_no_peak(self):
        for peak in (-1, 0, math.nan, math.inf, 1e300, True, "5", None):
            lines = timed(CASE, {OLD: {0: 10.0}})
            lines[-16]["time"]["turn"]["peak"].update(gemm_tflops=peak, copy_gbs=peak)
            found = json.loads(self.bench(lines, "--json")[1])
            self.assertEqual((found["share"], found["limit"]), (0, ""), peak)
            self.assertRegex(self.bench(lines)[1], "no GEMM .*, no copy")

    def test_what_is_no_time_is_not_taken(self):
        bad = [{"time": {"case": CASE, "side": "0"}}]
        for configs in (3, [{"config": 0, "us": ["x", -1, 1e99]}], [7]):
            at = {"case": CASE, "build": "b", "device": "gpu", "side": 0, "round": 0}
            bad.append({"time": {**at, "turn": {"configs": configs}}})
        self.assertEqual(self.bench(bad)[0], bench.NOTHING)


class Gate(Base):
    def gate(self, lines, *words):
        path = self.write("r.jsonl", record_of(lines))
        code, out, _ = support.run("gate", path, "--baseline", OLD, "--candidate", NEW, *words)
        return code, out

    def first(self, lines, *words):
        """(exit code, first line) of a gate with times"""
        code, out = self.gate(lines, "--bench", *words)
        return code, out.splitlines()[0]

    def test_slower_is_a_finding_of_measured_turns_alone(self):
        slow = timed(CASE, (100.0, 107.0))
        self.assertEqual(self.gate(slow)[0], 0)
        found = self.first(slow)
        self.assertEqual(found, (1, f"DO NOT MOVE {MOVED}: 1 case is slower."))
        self.assertRegex(self.gate(slow, "--bench")[1], r"100(\.\d+)? µs  ->  10[67](\.\d+)? µs")
        for words in (["--slower=1.10"], ["--fail-on", "worse"]):
            self.assertEqual(self.first(slow, *words)[0], 0)

    def page(self, lines, *words):
        """The first line of the page of a gate's record whose command had these words."""
        command = ["facts", "gate", f"--baseline={OLD}", "--candidate", NEW, *words]
        path = self.write("page.jsonl", record_of(lines, command=command))
        found = steps.Steps(store.load([path]), {})
        return found.gate["code"], found.gate["headline"]

    def test_the_page_gives_the_answer_of_the_gate(self):
        slow = timed(CASE, (100.0, 107.0))
        lost = [row(CASE, OLD, device="gpu"), row(CASE, NEW, "unsupported", device="gpu")]
        pages = [(slow, "--bench" + more) for more in ("", " --slower=1.10", " --fail-on worse")]
        pages += [(lost, f"--fail-on {words}") for words in ("worse,changed-kind", "any")]
        for lines, words in (*pages, (slow, ""), (lost, "")):
            code, out = self.gate(lines, *words.split())
            self.assertEqual(self.page(lines, *words.split()), (code, out.splitlines()[0]), words)
        words = ["--bench", "--fail-on", "no such class", "--slower", "x"]
        self.assertEqual(self.page(slow, *words)[0], 1, "a record from elsewhere may say anything")

    def test_two_measurements_that_do_not_agree(self):
        """Slower, not confirmed; slower, and not to be told; maybe slower."""
        for first, second, rounds, code in (
            (107.0, 100.0, 16, 0),
            (107.0, 108.0, 16, 1),
            (107.0, 107.0, 8, 3),
            (102.0, 100.0, 16, 0),
            (102.0, 107.0, 16, 3),
        ):
            again = timed(CASE, (100.0, second), rounds, run="again")
            lines = timed(CASE, (100.0, first)) + [line for line in again if "time" in line]
            self.assertEqual(self.first(lines)[0], code, (first, second, rounds))

    def test_what_seems_to_be_slower_is_asked_again(self):
        def found(lines, least=times.LEAST):
            path = self.write("r.jsonl", record_of(lines))
            return times.may_be_slower(path, f"{OLD}-jit-cu13", f"{NEW}-jit-cu13", least)

        other = "pass=bwd dtype=bf16"
        lines = timed(CASE, (100.0, 107.0)) + timed(other, (100.0, 100.0))
        self.assertEqual((found(lines), found(lines, 1.1)), ([CASE], []))
        why = "what may be slower too; a case that only one build ran is none"
        lines = timed(CASE, (100.0, 102.0)) + timed(other, (100.0,))
        self.assertEqual(found(lines), [CASE], why)

    def test_times_of_one_run_are_not_looked_at_beside_turns(self):
        same = timed(CASE, (100.0, 100.0))
        for line in same:
            if line.get("cudnn") == NEW:
                line["exec_us"] = 200.0
        self.assertIn("1 case is slower", self.gate(same)[1])
        self.assertNotIn("slower", self.first(same)[1])

    def test_a_case_whose_times_cannot_be_compared_is_never_the_same(self):
        slow = timed(CASE, (100.0, 150.0))

        def changed(edit, side=None):
            lines = json.loads(json.dumps(slow))
            for line in lines:
                if "time" in line and side in (None, line["time"]["side"]):
                    edit(line["time"]["turn"])
            return lines

        def samples(value):
            return changed(lambda turn: [config.update(us=value) for config in turn["configs"]], 1)

        def rounds(count):
            return [line for line in slow if "time" not in line or line["time"]["round"] < count]

        def of(side):
            return [line for line in slow if line.get("time", {}).get("side") in (None, side)]

        bad = ([math.nan] * 5, [None] * 5, [0], [-100.0], [1e308], ["5"], "5", 5, [True], [])
        throttled = changed(lambda turn: turn.update(gpu={"throttled": 0x40}))
        for lines, why in (
            (rounds(0), "no time of either build: 1"),
            (rounds(1), "fewer than 11 rounds: 1"),
            (rounds(10), "fewer than 11 rounds: 1"),
            *((samples(value), "no time of the candidate: 1") for value in bad),
            (of(0), "no time of the candidate: 1"),
            (of(1), "no time of the baseline: 1"),
            (throttled, "the clocks changed: 1"),
            (timed(CASE, (100.0, 102.0)), "the interval reaches across 1.02: 1"),
        ):
            said = f"CANNOT TELL {MOVED}: 1 case could not be compared by time ({why})."
            self.assertEqual(self.first(lines), (3, said))
        self.assertEqual(self.first(rounds(11))[0], 1)
        said = r"\? 1 time unknown: every case\n.*\n    fewer than 11 rounds\n    e\.g\. [\d.]+ µs  ->  [\d.]+ µs\n    facts bench 'pass=fwd "
        self.assertRegex(self.gate(rounds(10), "--bench")[1], said)

    def test_a_ratio_below_the_least_is_an_answer_though_it_may_be_faster_or_the_same(self):
        said = f"OK TO MOVE {MOVED}: nothing got worse."
        self.assertEqual(self.first(timed(CASE, (102.0, 100.0))), (0, said))

    def test_some_cases_without_times_are_counted(self):
        def untimed(case, *verdicts):
            pairs = zip((OLD, NEW), verdicts)
            return [row(case, b, v, device="gpu", grade="measured") for b, v in pairs]

        more = untimed("pass=fwd dtype=f16", "pass", "pass")
        more += untimed("pass=bwd dtype=bf16", "wrong", "pass")
        fine, slow = timed(CASE, (100.0, 100.0)) + more, timed(CASE, (100.0, 150.0)) + more
        said = "1 case could not be compared by time (no time of either build: 1)"
        self.assertEqual(self.first(fine), (3, f"CANNOT TELL {MOVED}: {said}."))
        self.assertEqual(self.first(slow), (1, f"DO NOT MOVE {MOVED}: 1 case is slower."))
        rest = f"3 answers compared, 0 same. {said}. 1 case no longer fails.\n"
        self.assertIn(rest, self.gate(slow, "--bench")[1])
        why = "times are no finding, so nobody misses them"
        self.assertEqual(self.first(slow, "--fail-on", "worse")[0], 0, why)
        self.assertEqual(self.gate(fine)[0], 0)
