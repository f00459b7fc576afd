"""Times that builds measured in turns: intervals and comparisons. docs/bench.md says what they mean.

A turn is one visit to the device: some samples of each configuration, of which the median counts. Round r of two sides lies next to each other in time, so
that what drifts (clocks, temperature, somebody else) is in both. A comparison looks at the ratios of rounds alone, and assumes of the noise only that it
is as likely to be in one side's favour as in the other's.
"""

from dataclasses import dataclass, field
from statistics import median

from ..read import reader, text
from .sides import knobs_of, note_calls

# of a comparison of a build with itself: how often it may be called slower or faster
ERROR = 1 / 1000
LEAST = 1.02  # a ratio below it is no finding, however sure it is
CLOCK = 0.05  # a turn whose SM clock is further than this from the median of its side is left out
MOST_OUT = 0.25  # with a larger share of rounds left out there is no answer
# NVML's nvmlClocksThrottleReasons that are the machine's doing: HW slowdown, SW thermal, HW thermal, HW power brake. The power cap is not: it is the load's.
MACHINE = 0x8 | 0x20 | 0x40 | 0x80


def outside(count, share):
    """The largest k with P(fewer than k of `count` coins show heads) <= share."""
    term, k = 0.5**count, 0
    total = term
    while total <= share and k < count:
        term *= (count - k) / (k + 1)
        k += 1
        total += term
    return k


# rounds: with fewer there is no interval
FEWEST = next(n for n in range(1, 100) if outside(n, ERROR / 2))


@dataclass(frozen=True)
class Interval:
    """A median and the order statistics around it; low and high are 0 and inf where there are too few values."""

    middle: float
    low: float
    high: float
    count: int


def interval(values, share):
    """Of the median; it lies below, or above, with a probability of `share` each, whatever the distribution."""
    k, ordered = outside(len(values), share), sorted(values)
    if not ordered:
        return Interval(0.0, 0.0, float("inf"), 0)
    low, high = (ordered[k - 1], ordered[-k]) if k else (0.0, float("inf"))
    return Interval(median(ordered), low, high, len(ordered))


@dataclass
class Side:
    """The turns of one target with one case."""

    build: str
    device: str
    us: dict = field(default_factory=dict)  # config: {round: µs}
    gpu: dict = field(default_factory=dict)  # round: NVML's answer
    flops: float = 0.0
    bytes: float = 0.0

    def add(self, number, turn):
        """A turn as the record has it; what is no number is not taken."""
        configs = turn.get("configs")
        for config in configs if isinstance(configs, list) else []:
            us = config.get("us") if isinstance(config, dict) else None
            samples = []
            if isinstance(us, list):
                samples = [x for x in us if type(x) in (int, float) and 0 < x < 1e12]
            if samples and isinstance(config.get("config"), int):
                self.us.setdefault(config["config"], {})[number] = median(samples)
        self.gpu[number] = turn["gpu"] if isinstance(turn.get("gpu"), dict) else {}
        for name in ("flops", "bytes"):
            value = turn.get(name)
            known = isinstance(value, (int, float)) and 0 < value < 1e30
            setattr(self, name, float(value) if known else 0.0)

    def disturbed(self):
        """Rounds that are left out: the machine slowed the card down, or its clock was another."""

        def known(name):
            return [(n, gpu[name]) for n, gpu in self.gpu.items() if isinstance(gpu.get(name), int)]

        clocks = {n: mhz for n, mhz in known("sm_mhz") if mhz > 0}
        usual = median(clocks.values()) if clocks else 0
        out = {n for n, mhz in clocks.items() if abs(mhz - usual) > CLOCK * usual}
        return out | {n for n, why in known("throttled") if why & MACHINE}


@dataclass(frozen=True)
class Comparison:
    """Candidate over baseline."""

    word: str  # slower, faster, same, unclear, unsteady
    ratio: Interval
    left_out: int

    def is_slower(self, least):
        """None: the rounds do not show it."""
        if self.word == "unsteady" or self.ratio.low <= least <= self.ratio.high:
            return None
        return self.ratio.low > least

    def why_open(self, least):
        """Of a comparison that shows neither."""
        if self.word == "unsteady":
            return "the clocks changed"
        if self.ratio.count < FEWEST:
            return f"fewer than {FEWEST} rounds"
        return f"the interval reaches across {least:g}"

    @property
    def text(self):
        one = self.ratio
        if one.count == 0:
            return self.word
        if one.high == float("inf"):
            return f"{one.middle:.3f} (too few rounds)"
        return f"{one.middle:.3f} ({one.low:.3f} to {one.high:.3f}) {self.word}"


def compare(first, second, config_of_first, config_of_second, least=LEAST):
    """Is the second side slower? Paired by round."""
    ours, theirs = first.us.get(config_of_first, {}), second.us.get(config_of_second, {})
    both, bad = ours.keys() & theirs.keys(), first.disturbed() | second.disturbed()
    kept = sorted(both - bad)
    found = interval([theirs[n] / ours[n] for n in kept], ERROR / 2)
    if len(kept) < (1 - MOST_OUT) * len(both):
        return Comparison("unsteady", found, len(both) - len(kept))
    if found.low > least:
        word = "slower"
    elif found.high < 1 / least:
        word = "faster"
    else:
        word = "same" if found.low > 1 / least and found.high < least else "unclear"
    return Comparison(word, found, len(both) - len(kept))


def microseconds(side, config):
    """The time of one configuration, with an interval of 95 %."""
    bad, us = side.disturbed(), side.us.get(config, {})
    return interval([x for n, x in us.items() if n not in bad] or list(us.values()), 0.025)


@dataclass
class Case:
    """One case of a record."""

    name: str
    runs: dict = field(default_factory=dict)  # run: {place of the target: Side}
    rows: dict = field(default_factory=dict)  # (build, device): {config: row}

    @property
    def sides(self):
        """Of the first run that timed it."""
        return next(iter(self.runs.values()), {})

    def engine(self, side, config):
        """(engine, ((knob, value), ...)) of a configuration."""
        row = self.rows.get((side.build, side.device), {}).get(config, {})
        same = [one for one in text.offered(row) if one.get("config") == row.get("config")]
        engine = "" if row.get("engine") is None else str(row["engine"])
        return engine, knobs_of(same[0].get("knobs")) if same else ()

    def first_choice(self, side):
        """cuDNN's first: the lowest place of mode A's list that was timed, when nothing before it is missing; else None."""
        return min(side.us) if side.us and min(side.us) <= 0 else None

    def fastest(self, side):
        return min(side.us, key=lambda config: microseconds(side, config).middle, default=None)


class Record(reader.Sink):
    """What reader.read_file fills."""

    def __init__(self):
        self.cases, self.peaks, self.groups, self.devices = {}, {}, {}, {}
        self.calls = {}  # case: how often a model makes it

    def note(self, word, value):
        if word == "run" and isinstance(value.get("groups"), dict):
            self.groups.update(value["groups"])
        if word == "target":
            self.devices[str(value.get("device", ""))] = str(value.get("device_name", ""))
        if word == "time" and isinstance(value.get("turn"), dict):
            self._add_turn(value)

    def _add_turn(self, value):
        name = " ".join(str(value.get("case", "")).split())
        number = value.get("round")
        place = value.get("side")
        if not isinstance(number, int) or not isinstance(place, int) or not 0 < len(name) <= 1500:
            return
        build = text.line(str(value.get("build", "")), 120)
        device = text.line(str(value.get("device", "")), 120)
        sides = self._case(name).runs.setdefault(str(value.get("run", "")), {})
        sides.setdefault(place, Side(build, device)).add(number, value["turn"])
        peak = value["turn"].get("peak")
        if isinstance(peak, dict):
            self.peaks.setdefault(device, []).append(peak)

    def _case(self, name):
        return self.cases.setdefault(name, Case(name))

    def add_row(self, row):
        config = -1 if row["config"] is None else row["config"]
        note_calls(self.calls, row)
        rows = self._case(row["case"]).rows.setdefault((row["build"], row["device"]), {})
        rows[config] = row
        rows.setdefault(-1, row)  # what is timed without a place in a list

    def peak(self, device, name):
        """The most that a worker measured; 0: nobody did."""
        found = (peak.get(name) for peak in self.peaks.get(device, ()))
        return max((x for x in found if type(x) in (int, float) and 0 < x < 1e9), default=0.0)

    def gemm(self, device):
        """Whose GEMM was timed."""
        named = [peak["gemm"] for peak in self.peaks.get(device, ()) if peak.get("gemm")]
        return text.line(str(named[0]), 200) if named else ""


def load(inputs):
    """A Record of all files, and their reader.FileReports. Raises reader.InputError."""
    record = Record()
    return record, [reader.read_file(path, record) for path in reader.find(inputs)]


@dataclass(frozen=True)
class Line:
    """One case on one target."""

    case: str
    build: str
    device: str
    side: int
    engine: str
    knobs: tuple
    us: Interval
    tflops: float
    share: float  # of the card's GEMM or copy, whichever is the larger share; 0: not measured
    limit: str  # gemm, copy
    plan_ms: object
    workspace_bytes: object
    fastest: str  # the engine that is faster than the first choice, and by how much; "": none is
    fastest_ratio: object  # Comparison of the first choice with it; None
    change: object  # Comparison with the first target; None of the first


def share_of(record, side, us):
    seconds = us.middle * 1e-6
    found = {
        "gemm": record.peak(side.device, "gemm_tflops") * 1e12,
        "copy": record.peak(side.device, "copy_gbs") * 1e9,
    }
    work = {"gemm": side.flops, "copy": side.bytes}
    shares = {name: work[name] / seconds / found[name] for name in found if found[name] and seconds}
    limit = max(shares, key=shares.get, default="")
    return shares.get(limit, 0.0), limit


def name_of(engine):
    """'8 tile_m=2' in the words of the case language."""
    return " ".join([engine[0] or "-", *(f"{k.lower()}={v}" for k, v in engine[1])])


def lines(record, least=LEAST):
    """[Line] of every case and target, in the order of the record."""
    out = []
    for case in record.cases.values():
        places = sorted(case.sides)
        base = case.sides[places[0]] if places else None
        for place in places:
            side = case.sides[place]
            chosen = case.first_choice(side)
            if chosen is None:
                continue
            us, fastest = microseconds(side, chosen), case.fastest(side)
            beaten = compare(side, side, fastest, chosen, least) if fastest != chosen else None
            if beaten and beaten.word != "slower":
                beaten = None
            other = case.first_choice(base) if side is not base else None
            row = case.rows.get((side.build, side.device), {}).get(chosen, {})
            share, limit = share_of(record, side, us)
            engine, knobs = case.engine(side, chosen)
            out.append(
                Line(
                    case.name,
                    side.build,
                    side.device,
                    place,
                    engine,
                    knobs,
                    us,
                    side.flops / us.middle * 1e-6 if us.middle else 0.0,
                    share,
                    limit,
                    row.get("plan_ms"),
                    row.get("workspace_bytes"),
                    name_of(case.engine(side, fastest)) if beaten else "",
                    beaten,
                    compare(base, side, other, chosen, least) if other is not None else None,
                )
            )
    return out


def pairs(case, first, second):
    """[(run, (Side, configuration), (Side, configuration))] of each run that timed the first choices of both targets; (build, device) each."""
    out = []
    for run, sides in case.runs.items():
        found = {(side.build, side.device): side for side in sides.values()}
        both = [found.get(target) for target in (first, second)]
        chosen = [side and case.first_choice(side) for side in both]
        if None not in chosen:
            out.append((run, *zip(both, chosen)))
    return out


@dataclass(frozen=True)
class Answer:
    """Is a case slower? None: no run shows it, and why."""

    is_slower: object
    ratio: float = 0
    why: str = ""


def slower(case, first, second, least=LEAST):
    """Answer of all runs that timed both targets: slower where every run says so, not slower where one run says so. `case`: None where nobody timed it."""
    both = pairs(case, first, second) if case else []
    found = [compare(a, b, config, other, least) for _, (a, config), (b, other) in both]
    if not found:
        return Answer(None, why=_who_lacks_times(case, first, second))
    said = [comparison.is_slower(least) for comparison in found]
    if False in said:
        return Answer(False)
    if None in said:
        return Answer(None, why=found[said.index(None)].why_open(least))
    return Answer(True, found[-1].ratio.middle)


def _who_lacks_times(case, first, second):
    sides = [side for run in case.runs.values() for side in run.values()] if case else []
    timed = {(side.build, side.device) for side in sides if case.first_choice(side) is not None}
    both = (("the baseline", first), ("the candidate", second))
    lacks = [name for name, target in both if target not in timed] or ["both builds in one run"]
    return f"no time of {lacks[0] if len(lacks) == 1 else 'either build'}"


def may_be_slower(path, baseline, candidate, least):
    """The names of the cases that may be slower: the gate asks them again."""
    record, names = load([path])[0], {}
    for case in record.cases.values():
        for device in dict.fromkeys(side.device for side in case.sides.values()):
            targets = (baseline, device), (candidate, device)
            if pairs(case, *targets) and slower(case, *targets, least).is_slower is not False:
                names[case.name] = True
    return list(names)
