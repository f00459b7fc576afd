"""facts calibrate: what an engine's errors say about the constants of the error model (docs/numerics.md, section 10).

The table has a row for each (sm, backend, dtype, pass, engine). `constants` holds what makes no bound wider and may be set at once. `proposed` holds what
would widen a bound, with its limit and the case that forces it: a person moves it to `constants`.
"""

import datetime
import json
import math
import os
import sys

from ..read import cases, files, reader, words
from . import asking
from .options import ENVIRONMENT, INCOMPLETE, NOTHING, OK
from .options import Command, Failed, UsageError, options

WILD = 4.0  # times its tolerance: a mistake, which no constant explains
LEAST_ROWS = 50  # rows of fill=gauss of each version before an engine is called calibrated
LOW, HIGH = 0.45, 0.75  # mean (E/sigma)^2 of a kernel with the model's roundings: 0.54
MISSING, EXTRA = 0.30, 1.0  # a rounding of the model does not happen; one more happens
STRICT = 1 / 1.05  # T1's ratio without the factor of constants that are not calibrated

# Tensors. dK and dV with GQA are separate: only there does a cast of partial sums show. {key: (tensor, grouped; None: either)}
POOLS = {"o": ("o", None), "dq": ("dq", None), "dk": ("dk", False), "dv": ("dv", False)}
POOLS |= {"dk_grouped": ("dk", True), "dv_grouped": ("dv", True)}


def _number(record, key):
    """Numbers that are not finite are words in a record."""
    value = record.get(key, 0.0)
    known = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if known else math.inf


def _object(record, key):
    value = record.get(key)
    return value if isinstance(value, dict) else {}


def _off(error):
    return abs(_number(error, "got") - _number(error, "want"))


def _is_refused(row, errors):
    """A gate of any tensor, or a check of the case, refused the answer."""
    return row["verdict"] == "wrong" or any(_number(e, "ratio") > 1 for e in errors.values())


class Peak:
    """The largest of something, and the case that shows it."""

    def __init__(self):
        self.value, self.got, self.want, self.bound, self.case = 0.0, 0.0, 0.0, 0.0, ""

    def note(self, value, error, case):
        if self.value < value < math.inf:
            self.value, self.case = value, case
            self.got, self.want, self.bound = (_number(error, k) for k in ("got", "want", "bound"))


def _is_wild(errors):
    for tensor, error in errors.items():
        gates = _object(error, "gates")
        is_far = max(_number(gates, "t1"), tensor != "stats" and _number(gates, "tl")) > WILD
        if is_far or error.keys() & {"not_finite", "unwritten", "overrun"}:
            return True
    # LSE may be further off: a row sum of rounded P is 1082 tau away, and O does not move.
    stats = errors.get("stats", {})
    return _number(_object(stats, "gates"), "tl") > 1 and not _off(stats) < 2**-7


class Engine:
    """What the rows of one engine, type and pass say."""

    def __init__(self, key):
        self.sm, self.backend, self.dtype, self.passes, self.number = key
        self.device, self.rows, self.wild, self.known = "", 0, 0, 0
        self.refused = []  # cases with an answer that a gate refuses
        # By version: rows of fill=gauss; by (version, pool).
        self.gauss, self.squares, self.elements = {}, {}, {}
        self.t1 = {key: Peak() for key in POOLS}
        # Of fill=unip: |LSE - ln n|; |1 - O| where V is 1.
        self.tl, self.stats_loss, self.sum_loss = Peak(), Peak(), Peak()

    def add(self, row, errors, get):
        if _object(row, "expectation").get("met"):  # a known failure is no rounding
            self.known += 1
            return
        if _is_wild(errors):
            self.wild += 1
            return
        self.rows += 1
        self.device = row["device"]
        gauss, unip, grouped = get("fill") == "gauss", get("fill") == "unip", "/" in get("h")
        case, version = row["case"], row["cudnn"]
        self.gauss[version] = self.gauss.get(version, 0) + gauss
        if _is_refused(row, errors):
            self.refused.append(case)
        for key, (tensor, pooled) in POOLS.items():
            if tensor in errors and pooled in (None, grouped):
                self._add_tensor(key, errors[tensor], version if gauss else None, case)
        stats, check = errors.get("stats", {}), _object(row, "check")
        self.tl.note(_number(_object(stats, "gates"), "tl"), stats, case)
        if unip:
            self.stats_loss.note(_off(stats), stats, case)
        if unip and check.get("tensor") == "o" and _number(check, "want") == 1:
            self.sum_loss.note(_off(check), check, case)

    def _add_tensor(self, key, error, version, case):
        """`version`: of a row of fill=gauss, which counts in the means; else None."""
        self.t1[key].note(_number(_object(error, "gates"), "t1"), error, case)
        rms, checked = _number(error, "rms"), _number(error, "checked")
        if version is not None and 0 < rms < math.inf:
            self.squares[version, key] = self.squares.get((version, key), 0.0) + rms * rms * checked
            self.elements[version, key] = self.elements.get((version, key), 0.0) + checked

    def means(self, *versions):
        """{pool: mean (E/sigma)^2} of these versions of cuDNN, or of all together."""
        found = {}
        for key in POOLS:
            asked = ((version, key) for version in versions or self.gauss)
            pools = [pool for pool in asked if pool in self.squares]
            elements = sum(self.elements[pool] for pool in pools)
            if pools:
                squares = sum(self.squares[pool] for pool in pools)
                found[key] = squares / elements if elements else 0.0
        return found

    def has_enough(self):
        return all(count >= LEAST_ROWS for count in self.gauss.values())

    def is_calibrated(self):
        """Of each version enough was measured, its means lie where the model says, and no gate refuses an answer."""
        means = [self.means(version) for version in self.gauss]
        return (
            all(means)
            and all(LOW <= mean <= HIGH for found in means for mean in found.values())
            and all(peak.value <= STRICT for peak in self.t1.values())
            and self.has_enough()
            and not self.wild
            and not self.refused
            and self.tl.value <= 1
        )

    def has_wide_partials(self):
        """dK with GQA is far below the model and dK without GQA is not: partial sums stay in fp32. This makes the bound narrower."""
        means = self.means()
        return LOW <= means.get("dk", 0.0) <= HIGH and means.get("dk_grouped", LOW) < LOW

    def proposals(self, limits):
        """[(constant, value, limit, peak)]. eps_exp is twice the largest residual, over min(1, 4 |P|_2 + 0.1), of which 1 is the most."""
        eps_exp, acc_pv = limits.get(self.dtype) or limits["f32"]
        found = []
        if self.tl.value > 1:
            found.append(("eps_exp", 2 * abs(self.tl.got - self.tl.want), eps_exp, self.tl))
        if self.sum_loss.value > self.sum_loss.bound:
            found.append(("acc_pv", self.sum_loss.value, acc_pv, self.sum_loss))
        return found

    def table_row(self, date, limits):
        peaks = {**self.t1, "stats": self.tl}
        largest = {key: peak.value for key, peak in peaks.items() if peak.value > 0}
        row = {
            "sm": self.sm,
            "backend": self.backend,
            "dtype": self.dtype,
            "pass": self.passes,
            "engine": self.number,
            "calibrated": self.is_calibrated(),
            "constants": {"partials_cast": False} if self.has_wide_partials() else {},
            "cudnn": list(self.gauss),
            "device": self.device,
            "date": date,
            "cases": self.rows,
            "rms": {key: math.sqrt(mean) for key, mean in self.means().items()},
            "largest": largest,
        }
        names = {"case": "case", "value": "ratio", "got": "got", "want": "want", "bound": "bound"}
        proposed = [
            {
                "constant": constant,
                "value": value,
                "limit": limit,
                "because": {said: getattr(peak, name) for name, said in names.items()},
            }
            for constant, value, limit, peak in self.proposals(limits)
        ]
        return {**row, "proposed": proposed} if proposed else row


class Measured(reader.Sink):
    """Takes the rows of records, as a store does for reader.read_file()."""

    def __init__(self):
        self.engines = {}

    def add_row(self, row):
        errors = dict(words.errors_of(row))
        if errors:
            get, engine = cases.asked_of(row["case"]), row.get("engine")
            number = -1 if engine is None else engine
            key = (row["sm"] or 0, row["backend"], get("dtype"), get("pass"), number)
            self.engines.setdefault(key, Engine(key)).add(row, errors, get)

    def rows(self):
        return sum(engine.rows for engine in self.engines.values())

    def table(self, date, limits):
        rows = [one.table_row(date, limits) for one in self.engines.values() if one.rows]
        return _rounded({"version": 1, "rows": rows})


def _rounded(value):
    """Six digits are enough for a constant."""
    if isinstance(value, dict):
        return {key: _rounded(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_rounded(member) for member in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _meaning(mean):
    if mean < MISSING:
        return "errors are far smaller than the model says: the engine lacks a rounding (P or partial sums in fp32), or thr or acc_pv of 8 bits is too wide"
    if mean < LOW:
        return "errors are smaller than the model says"
    if mean <= HIGH:
        return "errors are as the model says"
    if mean <= EXTRA:
        return "errors are larger than the model says"
    return "the engine rounds once more than the model"


def _shown(p):
    return f"got {p.got:.9g}, expected {p.want:.9g}, bound {p.bound:.3g}\n    case: {p.case}"


def describe(engine, limits):
    """The same for a person, line by line. No line starts with a record's text, which may look like a command to a CI runner."""
    few = f" (too few: {LEAST_ROWS} rows of fill=gauss of each cuDNN version are needed)"
    more = ", calibrated" * engine.is_calibrated() + few * (not engine.has_enough())
    yield f"backend {engine.backend} sm_{engine.sm} {engine.dtype} {engine.passes} engine {engine.number}: {engine.rows} rows{more}"
    if engine.known:
        yield f"  {engine.known} rows were left out: a known failure explains them"
    if engine.wild:
        yield f"  {engine.wild} rows were left out: no constants explain their answers"
    if engine.refused:
        yield f"  {len(engine.refused)} rows fail a gate, the first:\n    case: {engine.refused[0]}"
    means = engine.means()
    for key, peak in engine.t1.items():
        if key in means:
            yield f"  {key:10} mean (E/sigma)^2 {means[key]:.3f}, largest T1 {peak.value:.3f}: {_meaning(means[key])}"
        if peak.value > STRICT:
            yield f"  T1 has no room without its factor of 1.05: {_shown(peak)}"
    if engine.tl.value > 0:
        yield f"  {'stats':10} largest TL {engine.tl.value:.3f}"
    if engine.stats_loss.value > 0:
        yield f"  fill=unip: LSE - ln n is at most {engine.stats_loss.value:.3g}, bound {engine.stats_loss.bound:.3g}"
    if engine.sum_loss.value > 0:
        yield f"  fill=unip, V = 1: 1 - O is at most {engine.sum_loss.value:.3g}, bound {engine.sum_loss.bound:.3g}"
    if engine.has_wide_partials():
        yield f"  constants: partials_cast false (dk of GQA {means['dk_grouped']:.3f}, of single heads {means['dk']:.3f})"
    for constant, value, limit, peak in engine.proposals(limits):
        beyond = ", above which FACTS would miss a liar; no row may have it" * (value > limit)
        yield f"  proposed: {constant} {value:.3g}, limit {limit:.3g}{beyond}; the case that forces it: {_shown(peak)}"


COMMAND = Command(
    "calibrate",
    options(
        """
    cudnn device where with
    -o, --output PATH  write the table to this file
    jobs
    --overwrite        replace the table of -o
    timeout
    --from RECORD      use existing records instead of a run; may be given several times
    pinned-only
    """,
        many=["from"],
    ),
    (
        "facts calibrate calibrate --cudnn 9.27.0 --device 0",
        "facts calibrate --from old.jsonl --from new.jsonl",
    ),
)
# The largest eps_exp and acc_pv that a row of the table may have: harness/attention/numbers/judge/calibration.h; a test compares.
LIMITS = {
    **dict.fromkeys(("e4m3", "e5m2"), (2.0**-17, 2.0**-13)),
    **dict.fromkeys(("f16", "bf16", "f32"), (2.0**-17, 2.0**-17)),
}


def _run(args):
    if not args.device and not asking.gpus_here():
        said = "no GPU here; give --device cpu for the CPU backend"
        raise Failed(COMMAND.fail(said, ENVIRONMENT))
    words = ["--device", args.device or "0"]
    words += args.given("cudnn", "where", "with", "jobs", "timeout", "pinned-only")
    status, record = asking.run("run", args.words, *words, out=sys.stderr)
    if not record:
        raise Failed(status)
    return record


def run(args):
    given = getattr(args, "from")
    if given and (args.words or args.cudnn or args.device or args.where or getattr(args, "with")):
        raise UsageError("--from reads records; leave out cases, --cudnn and --device")
    if not given and not args.words:
        raise UsageError("CASES... is missing")
    if args.output and not args.overwrite and os.path.exists(args.output):
        raise UsageError(f"{args.output} exists already; --overwrite replaces it")
    record = "" if given else _run(args)
    measured = Measured()
    read = [reader.read_file(path, measured) for path in reader.find(given or [record])]
    reader.warn(read, "facts calibrate")
    if not measured.rows():
        return COMMAND.fail("no row has numbers to calibrate with", NOTHING)
    for engine in measured.engines.values():
        print("\n".join(describe(engine, LIMITS)))
    if args.output:
        date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        table = json.dumps(measured.table(date, LIMITS), indent=2, ensure_ascii=False)
        files.write(args.output, table + "\n")
    if record:
        print(f"\nrecord: {record}")
    return INCOMPLETE if any(file.unreadable for file in read) else OK
