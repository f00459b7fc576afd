"""Numbers that people look at: errors against their bounds as a distribution, and times with the card's peak beside them."""

import math

from ..compare import times
from ..read import words

_LOW, _HIGH = -10, 4  # powers of two of error / bound; one bin for each, and one beyond each end
BINS = _HIGH - _LOW + 2


def _bin(ratio):
    if ratio <= 0:
        return 0
    if math.isinf(ratio):
        return BINS - 1
    return min(max(math.floor(math.log2(ratio)) - _LOW + 1, 0), BINS - 1)


class Errors:
    """How far from its bound each tensor was, by the gate that came nearest."""

    def __init__(self):
        self.found = {}

    def add(self, row):
        for tensor, e in words.errors_of(row):
            ratio = words.ratio_of(e.get("ratio"))
            if ratio is not None and not math.isnan(ratio):
                key = str(tensor)[:40], str(e.get("gate") or "none")[:40]
                self.found.setdefault(key, [0] * BINS)[_bin(ratio)] += 1

    def as_object(self):
        """The most common first."""
        most = sorted(self.found.items(), key=lambda item: (-sum(item[1]), item[0]))[:24]
        found = [{"tensor": tensor, "gate": gate, "bins": bins} for (tensor, gate), bins in most]
        return {"low": _LOW, "tensors": found}


def turns(store):
    """The times.Record of a store's rows and times."""
    record = times.Record()
    for value in store.target_lines:
        record.note("target", value)
    for value in store.turns:
        record.note("time", value)
    for outcome, row in store.rows(order="id"):
        if outcome != "missing":
            record.add_row(row)
    return record


def _engines(record, line):
    """A line for cuDNN's first choice, and one for the fastest configuration of each engine. `mark`: the fastest of several."""
    case = record.cases[line.case]
    side = case.sides[line.side]
    first = case.first_choice(side)
    us = {config: times.microseconds(side, config) for config in side.us}
    best = {}
    for config in sorted(us, key=lambda config: us[config].middle):
        best.setdefault(case.engine(side, config)[0], config)
    fastest = case.fastest(side) if line.fastest_ratio else first
    if line.fastest_ratio:
        faster = f"fastest, {line.fastest_ratio.ratio.middle:.2f} times as fast"
    else:
        faster = "fastest" if len(us) > 1 else ""
    for config in dict.fromkeys((first, *best.values())):
        share, limit = times.share_of(record, side, us[config])
        yield {
            "case": line.case,
            "build": line.build,
            "device": line.device,
            "engine": times.name_of(case.engine(side, config)),
            "mark": faster if config == fastest else "",
            "us": us[config].middle,
            "tflops": side.flops / us[config].middle * 1e-6 if us[config].middle else 0.0,
            "share": share,
            "limit": limit,
            "change": line.change.text if line.change and config == first else "",
        }


def speeds(store):
    """{"peaks": {device: TFLOP/s}, "lines": [...]} of a record of `facts bench`; no lines where nobody measured."""
    if not store.turns:
        return {"peaks": {}, "lines": []}
    record = turns(store)
    found = times.lines(record)
    devices = dict.fromkeys(line.device for line in found)
    peaks = {device: record.peak(device, "gemm_tflops") for device in devices}
    return {"peaks": peaks, "lines": [one for line in found for one in _engines(record, line)]}
