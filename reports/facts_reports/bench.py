"""facts bench: the times of a record, for people (a table) and for programs (--json). times.py compares."""

import json
from collections import Counter
from dataclasses import dataclass, field

from . import asking, reader, text, times
from .cases import asked_of
from .options import ENVIRONMENT, NOTHING, OK, Command, Failed, Option, passed


@dataclass
class Case:
    """One case of a record."""

    name: str
    runs: dict = field(default_factory=dict)  # run: {place of the target: times.Side}
    rows: dict = field(default_factory=dict)  # (build, device): {config: row}

    @property
    def sides(self):
        """Of the first run that timed it."""
        return next(iter(self.runs.values()), {})

    def engine(self, side, config):
        """(engine, ((knob, value), ...)) of a configuration."""
        row = self.rows.get((side.build, side.device), {}).get(config, {})
        offered = [
            e
            for e in row.get("engines", ())
            if isinstance(e, dict) and e.get("mode") == "A" and e.get("config") == row.get("config")
        ]
        knobs = offered[0].get("knobs") if offered else None
        return ("" if row.get("engine") is None else str(row["engine"])), tuple(
            sorted((str(k), str(v)) for k, v in knobs.items())
        ) if isinstance(knobs, dict) else ()

    def first_choice(self, side):
        """cuDNN's first: the lowest place of mode A's list that was timed, when nothing before it is missing; else None."""
        return min(side.us) if side.us and min(side.us) <= 0 else None

    def fastest(self, side):
        return (
            min(side.us, key=lambda config: times.microseconds(side, config).middle)
            if side.us
            else None
        )


class Record:
    """What reader.read_file fills."""

    def __init__(self):
        self.cases, self.peaks, self.groups, self.devices = {}, {}, {}, {}

    def only(self, item):
        return item

    def note(self, word, value):
        if word == "run" and isinstance(value.get("groups"), dict):
            self.groups.update(value["groups"])
        if word == "target":
            self.devices[str(value.get("device", ""))] = str(value.get("device_name", ""))
        if word == "time" and isinstance(value.get("turn"), dict):
            self._add_turn(value)

    def _add_turn(self, value):
        name, number, place = (
            " ".join(str(value.get("case", "")).split()),
            value.get("round"),
            value.get("side"),
        )
        if not isinstance(number, int) or not isinstance(place, int) or not 0 < len(name) <= 1500:
            return
        build, device = (
            text.line(str(value.get("build", "")), 120),
            text.line(str(value.get("device", "")), 120),
        )
        side = (
            self._case(name)
            .runs.setdefault(str(value.get("run", "")), {})
            .setdefault(place, times.Side(build, device))
        )
        side.add(number, value["turn"])
        peak = value["turn"].get("peak")
        if isinstance(peak, dict):
            self.peaks.setdefault(device, []).append(peak)

    def _case(self, name):
        return self.cases.setdefault(name, Case(name))

    def add_row(self, row):
        config = -1 if row["config"] is None else row["config"]
        rows = self._case(row["case"]).rows.setdefault((row["build"], row["device"]), {})
        rows[config] = row
        rows.setdefault(-1, row)  # what is timed without a place in a list

    def peak(self, device, name):
        """The most that a worker measured; 0: nobody did."""
        return max(
            (
                p[name]
                for p in self.peaks.get(device, ())
                if type(p.get(name)) in (int, float) and 0 < p[name] < 1e9
            ),
            default=0.0,
        )

    def gemm(self, device):
        """Whose GEMM was timed."""
        return next(
            (text.line(str(p["gemm"]), 200) for p in self.peaks.get(device, ()) if p.get("gemm")),
            "",
        )


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
    us: times.Interval
    tflops: float
    share: float  # of the card's GEMM or copy, whichever is the larger share; 0: not measured
    limit: str  # gemm, copy
    plan_ms: object
    workspace_bytes: object
    fastest: str  # the engine that is faster than the first choice, and by how much; "": none is
    fastest_ratio: object  # times.Comparison of the first choice with it; None
    change: object  # times.Comparison with the first target; None of the first


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


def lines(record, least=times.LEAST):
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
            us, fastest = times.microseconds(side, chosen), case.fastest(side)
            beaten = (
                times.compare(side, side, fastest, chosen, least) if fastest != chosen else None
            )
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
                    times.compare(base, side, other, chosen, least) if other is not None else None,
                )
            )
    return out


def _number(value, unit=1.0, digits=0):
    return (
        f"{value / unit:,.{digits}f}"
        if isinstance(value, (int, float)) and not isinstance(value, bool)
        else "-"
    )


def table(found):
    """Plain columns, a line for each case and target."""
    head = (
        "µs",
        "±",
        "TFLOP/s",
        "share",
        "plan ms",
        "MiB",
        "engine",
        "build",
        "against the first",
        "faster engine",
    )
    body = []
    for line in found:
        width = (
            (line.us.high - line.us.low) / 2 / line.us.middle
            if line.us.middle and line.us.high < float("inf")
            else None
        )
        faster = (
            f"{line.fastest}: {line.fastest_ratio.ratio.middle:.2f} times"
            if line.fastest_ratio
            else ""
        )
        body.append(
            (
                line.case,
                (
                    f"{line.us.middle:,.1f}",
                    "-" if width is None else f"{width:.1%}",
                    f"{line.tflops:,.1f}",
                    f"{line.share:.0%} {line.limit}" if line.limit else "-",
                    _number(line.plan_ms),
                    _number(line.workspace_bytes, 1 << 20, 1),
                    line.engine or "-",
                    line.build,
                    line.change.text if line.change else "",
                    faster,
                ),
            )
        )
    widths = [
        max(len(cells[i]) for cells in [head, *(cells for _, cells in body)])
        for i in range(len(head))
    ]

    def row(cells):
        return (
            "  "
            + "  ".join(
                c.rjust(w) if i < 6 else c.ljust(w) for i, (c, w) in enumerate(zip(cells, widths))
            ).rstrip()
        )

    out, last = [row(head)], None
    for case, cells in body:
        if case != last:
            out.append(case)
        out.append(row(cells))
        last = case
    return out


def summary(record, found):
    """A few sentences behind the table."""
    out = []
    for device in dict.fromkeys(line.device for line in found):
        gemm, copy = record.peak(device, "gemm_tflops"), record.peak(device, "copy_gbs")
        said = [
            f"bf16 GEMM {gemm:,.0f} TFLOP/s ({record.gemm(device)})"
            if gemm
            else "no GEMM (no libcublas was found; FACTS_CUBLAS names one)",
            f"copy {copy:,.0f} GB/s" if copy else "no copy",
        ]
        out.append(f"{device}: measured peak: " + ", ".join(said))
    words = [line.change.word for line in found if line.change]
    if words:
        out.append(
            "against the first: "
            + ", ".join(
                f"{words.count(word)} {word}"
                for word in ("slower", "faster", "same", "unclear", "unsteady")
                if word in words
            )
        )
    beaten = [line.fastest_ratio.ratio.middle for line in found if line.fastest_ratio]
    if any(len(case.sides[s].us) > 1 for case in record.cases.values() for s in case.sides):
        out.append(
            f"cuDNN's first choice is not its fastest engine: {len(beaten)} of {len(found)}"
            + (f"; the fastest is up to {max(beaten):.2f} times as fast" if beaten else "")
        )
    silent = [name for name, case in record.cases.items() if not case.sides]
    if silent:
        out.append(
            f"not timed: {text.count(len(silent), 'case')} (refused, not right, or no answer): {_some(silent)}"
        )
    dropped = [
        (f"{side.build} on {side.device}", name)
        for name, case in record.cases.items()
        for side in case.sides.values()
        if case.first_choice(side) is None
    ]
    if dropped:
        who = ", ".join(
            f"{target} {text.count(n, 'case')}"
            for target, n in Counter(target for target, _ in dropped).items()
        )
        out.append(
            f"no time of cuDNN's first choice (not right, or not readable): {who}: {_some(list(dict.fromkeys(name for _, name in dropped)))}"
        )
    return out


def _some(names):
    return "; ".join(text.line(name, 100) for name in names[:5]) + (" …" if len(names) > 5 else "")


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


def slower(case, first, second, least=times.LEAST):
    """Answer of all runs that timed both targets: slower where every run says so, not slower where one run says so. `case`: None where nobody timed it."""
    found = (
        [
            times.compare(ours, theirs, config, other, least)
            for _, (ours, config), (theirs, other) in pairs(case, first, second)
        ]
        if case
        else []
    )
    if not found:
        return Answer(None, why=_who_lacks_times(case, first, second))
    said = [comparison.is_slower(least) for comparison in found]
    if False in said:
        return Answer(False)
    if None in said:
        return Answer(None, why=found[said.index(None)].why_open(least))
    return Answer(True, found[-1].ratio.middle)


def _who_lacks_times(case, first, second):
    timed = (
        {
            (side.build, side.device)
            for sides in case.runs.values()
            for side in sides.values()
            if case.first_choice(side) is not None
        }
        if case
        else set()
    )
    lacks = [
        name
        for name, target in (("the baseline", first), ("the candidate", second))
        if target not in timed
    ]
    return "no time of " + (
        lacks[0] if len(lacks) == 1 else "either build" if lacks else "both builds in one run"
    )


def may_be_slower(path, baseline, candidate, least):
    """The names of the cases that may be slower: the gate asks them again."""
    record, names = load([path])[0], {}
    for case in record.cases.values():
        for device in dict.fromkeys(side.device for side in case.sides.values()):
            targets = (baseline, device), (candidate, device)
            if pairs(case, *targets) and slower(case, *targets, least).is_slower is not False:
                names[case.name] = True
    return list(names)


def is_record_name(word):
    return word.endswith((".jsonl", ".gz", ".xz"))


def _as_object(line):
    def of(found):
        return (
            {
                "word": found.word,
                "ratio": found.ratio.middle,
                "low": found.ratio.low,
                "high": found.ratio.high,
                "rounds": found.ratio.count,
                "left_out": found.left_out,
            }
            if found
            else None
        )

    return {
        "case": line.case,
        "pass": asked_of(line.case)("pass"),
        "build": line.build,
        "device": line.device,
        "side": line.side,
        "engine": line.engine,
        "knobs": dict(line.knobs),
        "us": line.us.middle,
        "us_low": line.us.low,
        "us_high": line.us.high,
        "rounds": line.us.count,
        "tflops": line.tflops,
        "share": line.share,
        "limit": line.limit,
        "plan_ms": line.plan_ms,
        "workspace_bytes": line.workspace_bytes,
        "faster_engine": line.fastest,
        "first_choice_over_fastest": of(line.fastest_ratio),
        "change": of(line.change),
    }


COMMAND = Command(
    "bench",
    (
        *passed("cudnn", "device", "where", "with", "output", "overwrite", "timeout"),
        *passed("plan-dir", "trust-plans"),
        Option("twice", help="two workers of each build: their difference is noise"),
        Option(
            "rounds",
            "N",
            "N turns of each build; default: 16 to 64, until the intervals are narrow",
        ),
        Option("json", help="print one JSON object a line"),
        *passed("pinned-only"),
    ),
    (
        "facts bench --cudnn 9.20.0,9.27.0 --device 0",
        "facts bench 'pass=fwd s=4096 mask=causal' --cudnn 9.27.0 --with engine=auto",
    ),
)


def _measure(args):
    if not args.device and not asking.gpus_here():
        raise Failed(COMMAND.fail("no GPU here; --device cpu times the CPU backend", ENVIRONMENT))
    words = args.given("cudnn", "where", "output", "overwrite", "timeout", "plan-dir")
    words += args.given("trust-plans", "twice", "rounds", "pinned-only")
    words += [
        "--turns",
        "--device",
        args.device or "0",
        "--with",
        getattr(args, "with") or "engine=all",
    ]
    record = asking.asked("run", args.words or ["bench"], *words)[1]
    asking.say(record)
    return [record]


def _bench(args):
    given = args.words and all(map(is_record_name, args.words))
    try:
        record, files = load(args.words if given else _measure(args))
    except reader.InputError as error:
        return COMMAND.fail(error)
    reader.warn(files, "facts bench")
    found = lines(record)
    if not found:
        return COMMAND.fail("no times in the record", NOTHING)
    print(
        "\n".join(
            [json.dumps(_as_object(line), ensure_ascii=False) for line in found]
            if args.json
            else [*table(found), "", *summary(record, found)]
        )
    )
    return OK


def main(argv):
    return COMMAND.main(argv, _bench)
