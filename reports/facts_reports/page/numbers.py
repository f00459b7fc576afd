"""Numbers that people look at: errors against their bounds as a distribution, and times with the card's peak beside them."""
import math

from .. import bench, words

_LOW, _HIGH = -10, 4   # powers of two of error / bound; one bin for each, and one beyond each end
BINS = _HIGH - _LOW + 2


def _bin(ratio):
    if ratio <= 0:
        return 0
    return BINS - 1 if math.isinf(ratio) else min(max(math.floor(math.log2(ratio)) - _LOW + 1, 0), BINS - 1)


class Errors:
    """How far from its bound each tensor was, by the gate that came nearest."""

    def __init__(self):
        self.found = {}

    def add(self, row):
        for tensor, e in row["errors"].items() if isinstance(row.get("errors"), dict) else ():
            ratio = words.ratio_of(e.get("ratio")) if isinstance(e, dict) else None
            if ratio is not None and not math.isnan(ratio):
                self.found.setdefault((str(tensor)[:40], str(e.get("gate") or "none")[:40]), [0] * BINS)[_bin(ratio)] += 1

    def as_object(self):
        """The most common first."""
        most = sorted(self.found.items(), key=lambda item: (-sum(item[1]), item[0]))[:24]
        return {"low": _LOW, "tensors": [{"tensor": tensor, "gate": gate, "bins": bins} for (tensor, gate), bins in most]}


def turns(store):
    """The bench.Record of a store's rows and times."""
    record = bench.Record()
    for value in store.target_lines:
        record.note("target", value)
    for value in store.turns:
        record.note("time", value)
    for outcome, row in store.rows(order="id"):
        if outcome != "missing":
            record.add_row(row)
    return record


def speeds(store):
    """{"peaks": {device: TFLOP/s}, "lines": [...]} of a record of `facts bench`; no lines where nobody measured."""
    if not store.turns:
        return {"peaks": {}, "lines": []}
    record = turns(store)
    found = bench.lines(record)
    return {"peaks": {d: record.peak(d, "gemm_tflops") for d in dict.fromkeys(line.device for line in found)},
            "lines": [{"case": line.case, "build": line.build, "device": line.device, "engine": line.engine, "us": line.us.middle, "tflops": line.tflops, "share": line.share, "limit": line.limit,
                       "change": line.change.text if line.change else ""} for line in found]}
