"""What facts fuzz and facts shrink left in a record: smallest cases (lines `finding`), joined into findings and sorted.

Smallest cases are one finding if they fail alike (verdict, backend, engine, class, a wrong tensor in common) and are neighbours: they set the same
keys, or one has every feature of the other and is nowhere smaller. A finding has at most four forms, the most ordinary first.

Each finding is printed as two texts: a file for cases/known (docs/known.md), and a paragraph. fuzz writes both into RECORD.findings, ID.known and ID.md,
with a README.md that lists them. shrink prints the paragraph.
"""

import json
import re
import sys
from datetime import datetime, timezone
from pathlib import Path

from ..read import cases, files, predicate, text
from ..read.vocabulary import is_good

SIZES = ("b", "h", "s", "d")
_NO_FEATURE = {*SIZES, "engine"}
MOST_FORMS = 4
_COUNTS = ("wrong", "not_finite", "unwritten", "overrun")
# What many users have: failures of such cases are listed first.
_ORDINARY = predicate.of_attention(
    " & ".join(
        (
            "s.q<4096 & s.kv<4096 & stride=dense & stats=bhs1",
            "layout=bshd & q=bshd & k=bshd & v=bshd",
            "o in (auto, bshd) & do in (auto, bshd) & dqkv in (auto, bshd)",
            "exec=eager & impl=auto & spelling=auto & guards=auto",
            "engine=auto & knob=none & rescale=auto & scale=auto",
            "deterministic in (0, 1) & bwd_dtype=same",
            "(dtype=bf16 & out=bf16 & grad=bf16 & bias_dtype=bf16"
            " | dtype=f16 & out=f16 & grad=f16 & bias_dtype=f16)",
        )
    )
)


class Record:
    """The lines of a search."""

    def __init__(self, path):
        self.run, self.findings, self.rows, self.drawn = {}, {}, {}, {}
        with open(path, encoding="utf-8", errors="replace") as lines:
            for text in lines:
                try:
                    self._take(json.loads(text))
                except ValueError:  # half a line, of a killed run
                    continue

    def _take(self, line):
        if "run" in line and isinstance(line["run"], dict):
            self.run = line["run"]
        elif "finding" in line:
            one = line["finding"]
            if "best" in one:  # the lines of FACTS 1.0 have several forms
                self.findings[one["best"], one["start"], one["text"]] = one
        elif "verdict" in line and "case" in line:
            self.rows.setdefault(line["case"], []).append(line)
            if line.get("group") == "fuzz/drawn":
                self.drawn.setdefault(line["case"], []).append(line)


def features(name):
    return {key for key in cases.parse(name) if key not in _NO_FEATURE | {"pass", "dtype"}} | {
        key for key, usual in (("pass", "fwd"), ("dtype", "bf16")) if _value(name, key) != usual
    }


def _value(name, key):
    return cases.value_of(cases.parse(name), key)


def _kernels(name):
    """The pass and the family of types: they decide which kernels run."""
    dtype = _value(name, "dtype") or ""
    family = dtype if dtype == "f32" else dtype[:1] if dtype[:1] in "em" else "16"
    return _value(name, "pass"), family


def _numbers(name):
    said = cases.parse(name)
    return [
        int(cases.value_of(said, key) or 0) for key in ("b", "h.q", "s.q", "s.kv", "d.qk", "d.v")
    ]


def covers(small, large, kernels):
    """Has the larger case every feature of the smaller one, and is it nowhere smaller?"""
    if _kernels(large) not in kernels:
        return False
    free = {"pass", "dtype"} if _kernels(small) != _kernels(large) else set()
    return all(_value(small, key) == _value(large, key) for key in features(small) - free) and all(
        a <= b for a, b in zip(_numbers(small), _numbers(large))
    )


def neighbours(a, b):
    if _kernels(a) != _kernels(b):
        return False
    alike = features(a) - {"dtype"} == features(b) - {"dtype"}
    return alike or covers(a, b, {_kernels(a)}) or covers(b, a, {_kernels(b)})


def _alike(a, b):
    if any(a[key] != b[key] for key in ("verdict", "engine", "known", "backend", "class")):
        return False
    one, other = set(a["tensors"].split()), set(b["tensors"].split())
    return bool(one & other) if one and other else one == other


def _at_fault(row):
    """{tensor: its errors}, in the row's order."""
    errors = row["errors"] if isinstance(row.get("errors"), dict) else {}

    def is_wrong(error):
        return any(key in error for key in _COUNTS) or float(error.get("ratio", 0)) > 1

    found = {tensor: error for tensor, error in errors.items() if isinstance(error, dict)}
    return {tensor: error for tensor, error in found.items() if is_wrong(error)}


def _same(symptom, row):
    """Does the row fail in this way?"""
    backend = row.get("backend", "")
    engine = row.get("engine", -1) if backend == "cudnn" else -1
    known = bool((row.get("expectation") or {}).get("met"))
    tensor = symptom["tensors"].partition(" ")[0]
    if symptom["known"] < known or tensor and tensor not in _at_fault(row):
        return False
    about = (symptom["verdict"], symptom["engine"], symptom["backend"])
    return about == (row["verdict"], engine, backend)


def _text(value):
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _form(record, one):
    """A smallest case with what its rows say of it."""
    rows = record.rows.get(one["best"], [])
    row = next((row for row in rows if _same(one, row)), rows[0] if rows else {})
    error = next(iter(_at_fault(row).values()), {}) if row else {}
    counts = ", ".join(f"{error[key]} {key}" for key in _COUNTS if key in error)
    form = {key: one[key] for key in ("best", "start", "failed", "asked", "unfinished")}
    for key in ("cudnn", "build", "device", "sm"):
        form[key] = str(row.get(key, ""))
    for key in ("ratio", "got", "want", "bound"):
        form[key] = _text(error.get(key, ""))
    form["index"] = _text(error.get("worst_index", ""))
    form["counts"] = f"{counts} of {error['checked']}" if counts and "checked" in error else counts
    form["reason"] = " ".join(str((row.get("reason") or {}).get("text", "")).split())
    form["controls"] = _controls(record, one["best"])
    form["ordinary"] = not _ORDINARY or predicate.holds(_ORDINARY, cases.asked_of(one["best"]))
    if "known_as" in one:
        form["known_as"] = one["known_as"]
        met = (row.get("expectation") or {} for row in record.rows.get(one["known_as"], ()))
        form["link"] = next((str(known["link"]) for known in met if known.get("link")), "")
    return form


def _controls(record, best):
    """Cases that pass and differ from the smallest one in one key: first features, then sizes."""
    said, found = cases.parse(best), []
    for name, rows in record.rows.items():
        other = cases.parse(name)
        differ = [key for key in {*said, *other} if said.get(key) != other.get(key)]
        if len(differ) == 1 and differ[0] != "engine" and is_good(rows[0]["verdict"]):
            key = differ[0]
            if key not in SIZES and key in other and key not in ("pass", "dtype"):
                continue  # it has another feature, and not one fewer
            away = sum(abs(a - b) for a, b in zip(_numbers(best), _numbers(name)))
            found.append((key in SIZES, away, name))
    return [name for _, _, name in sorted(found)][:MOST_FORMS]


def _order(form):
    return not form["ordinary"], len(features(form["best"])), form["best"]


def _bucket(record, group):
    """One finding out of the lines of its smallest cases."""
    forms = {}
    for one in group:
        forms.setdefault(one["best"], _form(record, one))
    symptom = min(group, key=lambda one: _order(forms[one["best"]]))
    kernels = {}
    for one in group:
        here = kernels.setdefault(one["best"], set())
        here |= {_kernels(one["best"]), _kernels(one["start"])}
    bucket = {key: symptom[key] for key in ("verdict", "text", "tensors", "gate", "backend")}
    return {
        **bucket,
        **{key: symptom[key] for key in ("class", "engine", "known")},
        "explained": "known_as" in symptom,
        "forms": sorted(forms.values(), key=_order)[:MOST_FORMS],
        "ordinary": any(form["ordinary"] for form in forms.values()),
        "kernels": kernels,
        "starts": {one["start"] for one in group},
        "symptoms": group,
        "cases": 0,
    }


def _groups(findings):
    groups = []
    for one in findings:

        def is_near(other, one=one):
            explained = ("known_as" in other) == ("known_as" in one)
            return explained and _alike(other, one) and neighbours(other["best"], one["best"])

        near = [group for group in groups if any(map(is_near, group))]
        joined = [other for group in near for other in group]
        groups = [group for group in groups if group not in near] + [[*joined, one]]
    return groups


def _count(record, buckets):
    """The drawn cases of each finding: a form stands for them, or forms that set only keys that they set too."""
    for name, rows in record.drawn.items():
        for bucket in buckets:
            if any(_same(one, row) for one in bucket["symptoms"] for row in rows) and (
                name in bucket["starts"]
                or any(covers(best, name, kernels) for best, kernels in bucket["kernels"].items())
                or sum(features(best) <= features(name) for best in bucket["kernels"]) >= MOST_FORMS
            ):
                bucket["cases"] += 1
                break


def buckets_of(record):
    """The findings in the order of their ranking; explained ones come last."""
    found = [_bucket(record, group) for group in _groups(record.findings.values())]
    found.sort(key=lambda one: (one["explained"], _order(one["forms"][0])))
    _count(record, found)

    def place(one):
        best = one["forms"][0]["best"]
        return one["explained"], not one["ordinary"], len(features(best)), -one["cases"], best

    found.sort(key=place)
    for rank, one in enumerate(found, 1):
        one["rank"] = rank
    return found


def only(record, one):
    """The record as if this were its only finding."""
    record.findings = {"": one}
    return record


def head_of(record, path, flags):
    path, head = Path(path), {"version": record.run.get("facts", ""), "flags": flags.strip()}
    if record.run.get("command", ["", ""])[1:2] == ["shrink"]:
        return {**head, "origin": "facts shrink", "folder": ""}
    at = path.with_suffix("") if path.suffix == ".jsonl" else path
    origin = f"facts fuzz --seed {record.run.get('seed')}"
    return {**head, "origin": origin, "folder": f"{at}.findings"}


# ---- the two texts of a finding ----

_SIZES = ("pass", "dtype", "b", "h", "s", "d")
_TO_DO = "# To do: write the title and what is expected; add the link of the report; replace the cases in `when` by a condition."


def ident(bucket):
    """ "nan-dq-e6-t0-fill": names the files of a bucket. The keys of its smallest case distinguish it from another bucket with the same failure."""
    engine = f"e{bucket['engine']}" if bucket["engine"] >= 0 else bucket["backend"]
    best = cases.parse(bucket["forms"][0]["best"])
    dtype = best.get("dtype", "") if best.get("dtype") not in ("bf16", "f16") else ""
    words = [bucket["verdict"], _tensor(bucket), engine, bucket["gate"], bucket["class"]]
    words += [best.get("pass", ""), dtype]
    words += [key for key in best if key not in _SIZES + ("engine",)]
    words += ["known"] * bool(bucket["known"])
    return "-".join(re.sub(r"[^A-Za-z0-9_]", "-", word) for word in words if word)


def _tensor(bucket):
    return bucket["tensors"].partition(" ")[0]


def _of_cudnn(bucket):
    """Is it a failure of cuDNN, and not of another backend?"""
    return bool(bucket["forms"][0]["cudnn"]) and bucket["backend"] in ("", "cudnn")


def _device(form):
    return form["device"] or "an unknown device"


def _where(form):
    cudnn, sm = f"cuDNN {form['cudnn']} (build {form['build']})", form["sm"]
    sm = f" (sm_{sm})" if sm not in ("", "0") else ""
    return f"{cudnn if form['cudnn'] else 'our own backend'} on {_device(form)}{sm}"


def _worst(bucket, form):
    parts = []
    if _tensor(bucket):
        counts = f"; {form['counts']}" if form["counts"] else ""
        numbers = f"got {form['got']}, want {form['want']}, bound {form['bound']}"
        ratio = f"{form['ratio']} times what gate {bucket['gate'] or '?'} allows{counts}"
        said = f"The worst element is {_tensor(bucket)}{form['index']}: {numbers} ({ratio})."
        parts.append(said)
    reason = form["reason"].rstrip(" .")[:300]
    # FACTS describes the end of a worker
    whose = "Reason" if bucket["verdict"] in ("crash", "hang", "exit_crash") else "cuDNN's message"
    return " ".join(parts + [f"{whose}: {reason}."] if reason else parts)


def difference(one, other):
    """ "fill=neglse instead of gauss": one key that differs. The engine only when nothing else does: a control keeps the engine that fails."""
    keys = [key for key in cases.defaults() if key != "engine"] + ["engine"]
    before, after = cases.parse(one), cases.parse(other)
    values = ((key, cases.value_of(before, key), cases.value_of(after, key)) for key in keys)
    return next((f"{key}={new} instead of {old}" for key, old, new in values if old != new), "")


def _failure(bucket, head):
    """What fails where. `when` names the cases: a condition is a person's to find."""
    form = bucket["forms"][0]
    yield f"\nfailure:\nverdict: {bucket['verdict']}"
    yield "when: " + " | ".join(f'case="{one["best"]}"' for one in bucket["forms"])
    if bucket["engine"] >= 0:
        yield f"engine: {bucket['engine']}"
    yield f"sm: {form['sm'] if form['sm'] not in ('', '0') else 'any'}"
    yield f"seen: {form['cudnn']}; {_device(form)}, {head['origin']}"
    yield f"date: {datetime.now(timezone.utc):%Y-%m-%d}"
    if bucket["tensors"]:
        yield f"note: {bucket['tensors']}"


def known(bucket, head):
    """The lines of a file for cases/known."""
    kind = "failure"
    if not _of_cudnn(bucket):
        kind = "behaviour\nabout: caller"
    elif bucket["verdict"] == "build_fail":
        kind = "offered-not-built"
    yield f"# Found by `{head['origin']}` (FACTS {head['version']})."
    yield f"# {_worst(bucket, bucket['forms'][0])}"
    yield f"# {text.count(bucket['cases'], 'drawn case')} failed like this. The first one: {bucket['forms'][0]['start']}"
    yield _TO_DO
    if bucket["known"]:
        yield "# Another file in cases/known already expects this failure."
    yield f"title: {bucket['text']}, with {_where(bucket['forms'][0])}."
    yield f"kind: {kind}\nverdict: {bucket['verdict']}\nexpected: to be written"
    yield "contract: silent; to be written\nsent-by: nobody; to be written"
    yield "frontend: accepts; to be written\nchecked: no"
    if _of_cudnn(bucket):
        yield from _failure(bucket, head)
    yield "\ncases:"
    yield from (form["best"] for form in bucket["forms"])
    controls = [name for form in bucket["forms"] for name in form["controls"]]
    if controls:
        yield "\ncontrols:\nwhy: one key is different, and the result is right"
        yield from controls


def _problem(name):
    """The sizes in words, then what is not as usual; "" for another operation than attention."""
    said = cases.parse(name)
    if not set(_SIZES) <= set(cases.defaults()):
        return ""
    way, dtype, b, h, s, d = (cases.value_of(said, key) for key in _SIZES)
    way = "backward" if way == "bwd" else "forward"
    words = [f"{way}, {dtype}, batch {b}, heads {h}, queries/keys {s}, head dim {d}"]
    words += [f"{key}={value}" for key, value in said.items() if key not in _SIZES]
    return f"({', '.join(words)}) "


def _form_words(bucket, form, head):
    controls = ", ".join(difference(form["best"], name) for name in form["controls"])
    return (
        f"The smallest case found {_problem(form['best'])}{'so far is' if form['unfinished'] else 'is'} `{form['best']}`. {_worst(bucket, form)} "
        f"It failed {form['failed']} of {form['asked']} times it was asked."
        + (f" It passes with {controls}." if controls else "")
        + f" Reproduce: `facts repro '{form['best']}' {head['flags']}`.\n"
    )


def _place(bucket, of):
    """ "Finding 2 of 5, an ordinary case": where it stands in the ranking."""
    if of:
        return f"Finding {bucket['rank']} of {of}, {'an ordinary case' if bucket['ordinary'] else 'no ordinary case'}. "
    return ""


def paragraph(bucket, head, of=0):
    count = text.count(bucket["cases"], "drawn case")
    count = f"; {count} failed this way" if bucket["cases"] else ""
    forms = "".join(_form_words(bucket, form, head) for form in bucket["forms"])
    first = f"**{bucket['text']}** with {_where(bucket['forms'][0])}. {_place(bucket, of)}"
    return f"{first}{forms}Found by FACTS {head['version']}, `{head['origin']}`{count}.\n"


def ranking(buckets, head):
    """The page of the folder: the findings in their order, then what a known failure explains."""
    news = [bucket for bucket in buckets if not bucket["explained"]]
    ordinary = sum(bucket["ordinary"] for bucket in news)
    yield f"# What `{head['origin']}` found\n\n{text.count(len(news), 'finding')}, {ordinary} of them ordinary (docs/fuzz.md). The most ordinary one comes first."
    if news:
        yield "\n| | ordinary | finding | drawn cases | smallest case | files |\n|---|---|---|---|---|---|"
    for bucket in news:
        usual, best = "yes" if bucket["ordinary"] else "no", bucket["forms"][0]["best"]
        said = f"{bucket['rank']} | {usual} | {bucket['text']} | {bucket['cases']} | `{best}`"
        yield f"| {said} | `{ident(bucket)}.known`, `.md` |"
    known_ones = (bucket for bucket in buckets if bucket["explained"])
    explained = [(bucket, form) for bucket in known_ones for form in bucket["forms"]]
    if explained:
        yield "\n## Known once features are left out\n\nThese are no findings.\n\n| failure | smallest case | the known failure | link |\n|---|---|---|---|"
    for bucket, form in explained:
        yield f"| {bucket['text']} | `{form['best']}` | `{form['known_as']}` | {form['link']} |"


def _clear(folder, names):
    """Removes the files of findings that have been folded into others since, unless somebody has edited them."""
    for path in folder.glob("*.known"):
        if path.stem not in names and _TO_DO in path.read_text(encoding="utf-8", errors="replace"):
            path.unlink()
            path.with_suffix(".md").unlink(missing_ok=True)


def _write_all(folder, buckets, head):
    news = [bucket for bucket in buckets if not bucket["explained"]]
    folder.mkdir(exist_ok=True)
    for bucket in news:
        files.write(folder / f"{ident(bucket)}.known", "\n".join(known(bucket, head)) + "\n")
        files.write(folder / f"{ident(bucket)}.md", paragraph(bucket, head, len(news)))
    files.write(folder / "README.md", "\n".join(ranking(buckets, head)) + "\n")
    _clear(folder, {ident(bucket) for bucket in news})


def _listed(buckets, head):
    """The lines for a terminal."""
    for bucket in buckets:
        number = f"{bucket['rank']}{', ordinary' * bucket['ordinary']}"
        number = "known" if bucket["explained"] else number
        yield f"\n{number}: {bucket['text']}: {text.count(bucket['cases'], 'drawn case')}"
        for form in bucket["forms"]:
            whole = "not wholly shrunk:" if form["unfinished"] else "smallest:"
            flaky = form["failed"] < form["asked"]
            yield f"  {'does not fail each time:' if flaky else whole}"
            yield f"    facts repro '{form['best']}' {head['flags']}"
            if bucket["explained"]:
                yield f"  this known failure, which has fewer features, explains it:\n    {form['known_as']}  {form['link']}"


def _summary(buckets, head):
    news = [bucket for bucket in buckets if not bucket["explained"]]
    explained = len(buckets) - len(news)
    if explained == 1:
        yield "1 more case is a known failure with additional features, not a finding"
    elif explained:
        yield f"{explained} more cases are known failures with additional features, not findings"
    ordinary = sum(bucket["ordinary"] for bucket in news)
    said = f"{text.count(len(news), 'finding')}, {ordinary} of them ordinary; files for cases/known and paragraphs for a report: {head['folder']}/"
    yield said if news else "0 findings"


def _print_shrunk(record, head):
    """The last finding of a record of shrink."""
    one = list(record.findings.values())[-1]
    (bucket,) = buckets_of(only(record, one))
    if "by" not in one:
        print(paragraph(bucket, head), end="")
    for name in bucket["forms"][0]["controls"] if "by" in one else ():
        print(f"  accepted with {difference(one['best'], name)}: '{name}'")


def main(argv):
    """RECORD FLAGS"""
    try:
        record = Record(argv[0])
        head = head_of(record, *argv)
        if not head["folder"] and record.findings:
            _print_shrunk(record, head)
        if head["folder"]:
            buckets = buckets_of(record)
            print("\n".join([*_listed(buckets, head), "", *_summary(buckets, head)]))
            if buckets:
                _write_all(Path(head["folder"]), buckets, head)
    except OSError as error:
        print(f"facts: {error.filename or argv[0]}: {error.strerror or error}", file=sys.stderr)
        return 3
    return 0
