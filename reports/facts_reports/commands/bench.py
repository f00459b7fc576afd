"""facts bench: the times of a record, for people (a table) and for programs (--json). times.py compares."""

import json
from collections import Counter

from ..compare import times
from ..read import reader, text
from ..read.cases import asked_of
from . import asking
from .options import ENVIRONMENT, NOTHING, OK, Command, Failed, options


def _number(value, unit=1.0, digits=0):
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{value / unit:,.{digits}f}"
    return "-"


def table(found):
    """Plain columns, a line for each case and target."""
    head = "µs|±|TFLOP/s|share|plan ms|MiB|engine|build|against the first|faster engine".split("|")
    body = []
    for line in found:
        width = None
        if line.us.middle and line.us.high < float("inf"):
            width = (line.us.high - line.us.low) / 2 / line.us.middle
        faster = ""
        if line.fastest_ratio:
            faster = f"{line.fastest}: {line.fastest_ratio.ratio.middle:.2f} times"
        cells = [
            f"{line.us.middle:,.1f}",
            "-" if width is None else f"{width:.1%}",
            f"{line.tflops:,.1f}",
            f"{line.share:.0%} {line.limit}" if line.limit else "-",
            _number(line.plan_ms),
            _number(line.workspace_bytes, 1 << 20, 1),
        ]
        cells += [line.engine or "-", line.build, line.change.text if line.change else "", faster]
        body.append((line.case, cells))
    widths = [max(map(len, column)) for column in zip(head, *(cells for _, cells in body))]

    def row(cells):
        padded = [c.rjust(w) for c, w in zip(cells[:6], widths)]
        padded += [c.ljust(w) for c, w in zip(cells[6:], widths[6:])]
        return "  " + "  ".join(padded).rstrip()

    out, last = [row(head)], None
    for case, cells in body:
        if case != last:
            out.append(case)
        out.append(row(cells))
        last = case
    return out


def summary(record, found):
    """A few sentences behind the table."""
    for device in dict.fromkeys(line.device for line in found):
        gemm, copy = record.peak(device, "gemm_tflops"), record.peak(device, "copy_gbs")
        said = "no GEMM (no libcublas was found; FACTS_CUBLAS names one)"
        said = f"bf16 GEMM {gemm:,.0f} TFLOP/s ({record.gemm(device)})" if gemm else said
        yield f"{device}: measured peak: {said}, {f'copy {copy:,.0f} GB/s' if copy else 'no copy'}"
    yield from _model(record, found)
    words = [line.change.word for line in found if line.change]
    order = [w for w in ("slower", "faster", "same", "unclear", "unsteady") if w in words]
    if words:
        yield "against the first: " + ", ".join(f"{words.count(word)} {word}" for word in order)
    beaten = [line.fastest_ratio.ratio.middle for line in found if line.fastest_ratio]
    if any(len(case.sides[s].us) > 1 for case in record.cases.values() for s in case.sides):
        more = f"; the fastest is up to {max(beaten):.2f} times as fast" if beaten else ""
        yield f"cuDNN's first choice is not its fastest engine: {len(beaten)} of {len(found)}{more}"
    silent = [name for name, case in record.cases.items() if not case.sides]
    if silent:
        yield f"not timed: {text.count(len(silent), 'case')} (refused, not right, or no answer): {_some(silent)}"
    dropped = [
        (f"{side.build} on {side.device}", name)
        for name, case in record.cases.items()
        for side in case.sides.values()
        if case.first_choice(side) is None
    ]
    if dropped:
        counted = Counter(target for target, _ in dropped).items()
        who = ", ".join(f"{target} {text.count(n, 'case')}" for target, n in counted)
        names = list(dict.fromkeys(name for _, name in dropped))
        yield f"no time of cuDNN's first choice (not right, or not readable): {who}: {_some(names)}"


def _model(record, found):
    """What the attention of a model takes, where its cases have the number of its calls."""
    us = {}  # of each target: {case: µs}
    for line in found:
        us.setdefault((line.side, line.build, line.device), {})[line.case] = line.us.middle
    calls = {name: n for name, n in record.calls.items() if all(name in one for one in us.values())}
    for (_, build, device), one in us.items() if calls else ():
        ms = sum(count * one[name] for name, count in calls.items()) / 1000
        of = f"{sum(calls.values()):,} of {sum(record.calls.values()):,} calls of the model"
        yield f"{of} take {ms:,.4g} ms with {build} on {device}"


def _some(names):
    return "; ".join(text.line(name, 100) for name in names[:5]) + (" …" if len(names) > 5 else "")


def _as_object(line):
    def of(found):
        if not found:
            return None
        one = found.ratio
        said = {"word": found.word, "ratio": one.middle, "low": one.low, "high": one.high}
        return {**said, "rounds": one.count, "left_out": found.left_out}

    same = "case build device side engine tflops share limit plan_ms workspace_bytes".split()
    us = line.us
    return {
        **{name: getattr(line, name) for name in same},
        **{"pass": asked_of(line.case)("pass"), "knobs": dict(line.knobs)},
        **{"us": us.middle, "us_low": us.low, "us_high": us.high, "rounds": us.count},
        "faster_engine": line.fastest,
        "first_choice_over_fastest": of(line.fastest_ratio),
        "change": of(line.change),
    }


COMMAND = Command(
    "bench",
    options("""
    cudnn device where with output overwrite timeout plan-dir
    --twice     two workers of each build: their difference is noise
    --rounds N  N turns of each build; default: 16 to 64, until the intervals are narrow
    --json      print one JSON object a line
    pinned-only
    """),
    (
        "facts bench --cudnn 9.20.0,9.27.0 --device 0",
        "facts bench 'pass=fwd s=4096 mask=causal' --cudnn 9.27.0 --with engine=auto",
    ),
)


def _measure(args):
    if not args.device and not asking.gpus_here():
        raise Failed(COMMAND.fail("no GPU here; --device cpu times the CPU backend", ENVIRONMENT))
    words = args.given("cudnn", "where", "output", "overwrite", "timeout", "plan-dir")
    words += args.given("twice", "rounds", "pinned-only")
    words += ["--turns", "--device", args.device or "0"]
    words += ["--with", getattr(args, "with") or "engine=all"]
    record = asking.asked("run", args.words or ["bench"], *words)[1]
    asking.say(record)
    return [record]


def run(args):
    given = args.words and all(map(reader.is_record_name, args.words))
    record, files = times.load(args.words if given else _measure(args))
    reader.warn(files, "facts bench")
    found = times.lines(record)
    if not found:
        return COMMAND.fail("no times in the record", NOTHING)
    shown = (json.dumps(_as_object(line), ensure_ascii=False) for line in found)
    print("\n".join(shown if args.json else [*table(found), "", *summary(record, found)]))
    return OK
