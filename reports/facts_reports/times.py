"""Times that builds measured in turns: intervals and comparisons. docs/bench.md says what they mean.

A turn is one visit to the device: some samples of each configuration, of which the median counts. Round r of two sides lies next to each other in time, so
that what drifts (clocks, temperature, somebody else) is in both. A comparison looks at the ratios of rounds alone, and assumes of the noise only that it
is as likely to be in one side's favour as in the other's.
"""

from dataclasses import dataclass, field
from statistics import median

ERROR = (
    1 / 1000
)  # of a comparison of a build with itself: how often it may be called slower or faster
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


FEWEST = next(
    n for n in range(1, 100) if outside(n, ERROR / 2)
)  # rounds: with fewer there is no interval


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
    return Interval(
        median(ordered),
        ordered[k - 1] if k else 0.0,
        ordered[-k] if k else float("inf"),
        len(ordered),
    )


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
            samples = (
                [x for x in us if type(x) in (int, float) and 0 < x < 1e12]
                if isinstance(us, list)
                else []
            )
            if samples and isinstance(config.get("config"), int):
                self.us.setdefault(config["config"], {})[number] = median(samples)
        self.gpu[number] = turn["gpu"] if isinstance(turn.get("gpu"), dict) else {}
        for name in ("flops", "bytes"):
            value = turn.get(name)
            setattr(
                self,
                name,
                float(value) if isinstance(value, (int, float)) and 0 < value < 1e30 else 0.0,
            )

    def disturbed(self):
        """Rounds that are left out: the machine slowed the card down, or its clock was another."""
        clocks = {
            n: gpu["sm_mhz"]
            for n, gpu in self.gpu.items()
            if isinstance(gpu.get("sm_mhz"), int) and gpu["sm_mhz"] > 0
        }
        usual = median(clocks.values()) if clocks else 0
        out = {n for n, mhz in clocks.items() if abs(mhz - usual) > CLOCK * usual}
        return out | {
            n
            for n, gpu in self.gpu.items()
            if isinstance(gpu.get("throttled"), int) and gpu["throttled"] & MACHINE
        }


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
        return (
            f"fewer than {FEWEST} rounds"
            if self.ratio.count < FEWEST
            else f"the interval reaches across {least:g}"
        )

    @property
    def text(self):
        if self.ratio.count == 0:
            return self.word
        if self.ratio.high == float("inf"):
            return f"{self.ratio.middle:.3f} (too few rounds)"
        return (
            f"{self.ratio.middle:.3f} ({self.ratio.low:.3f} to {self.ratio.high:.3f}) {self.word}"
        )


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
