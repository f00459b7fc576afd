"""What facts fuzz and facts shrink found (searched.py), in two texts for each finding: a file for cases/known (docs/known.md), and a paragraph.

fuzz writes both into RECORD.findings, ID.known and ID.md, with a README.md that lists them. shrink prints the paragraph.
"""

import re
import sys
from datetime import datetime, timezone
from pathlib import Path

from . import cases, files, searched, text

_SIZES = ("pass", "dtype", "b", "h", "s", "d")
_TO_DO = "# To do: write the title and what is expected; add the link of the report; replace the cases in `when` by a condition."
_ASKING = ("crash", "build_fail", "exit_crash")  # what cuDNN shows without numbers


def ident(bucket):
    """ "nan-dq-e6-t0-fill": names the files of a bucket. The keys of its smallest case distinguish it from another bucket with the same failure."""
    engine = f"e{bucket['engine']}" if bucket["engine"] >= 0 else bucket["backend"]
    best = cases.parse(bucket["forms"][0]["best"])
    dtype = best["dtype"] if best["dtype"] not in ("bf16", "f16") else ""
    words = (
        bucket["verdict"],
        _tensor(bucket),
        engine,
        bucket["gate"],
        bucket["class"],
        best["pass"],
        dtype,
        *(key for key in best if key not in _SIZES + ("engine",)),
        "known" if bucket["known"] else "",
    )
    return "-".join(re.sub(r"[^A-Za-z0-9_]", "-", word) for word in words if word)


def _tensor(bucket):
    return bucket["tensors"].partition(" ")[0]


def _of_cudnn(bucket):
    """Is it a failure of cuDNN, and not of another backend?"""
    return bool(bucket["forms"][0]["cudnn"]) and bucket["backend"] in ("", "cudnn")


def _device(form):
    return form["device"] or "an unknown device"


def _where(form):
    library = (
        f"cuDNN {form['cudnn']} (build {form['build']})" if form["cudnn"] else "our own backend"
    )
    return f"{library} on {_device(form)}" + (
        f" (sm_{form['sm']})" if form["sm"] not in ("", "0") else ""
    )


def _worst(bucket, form):
    parts = []
    if _tensor(bucket):
        counts = f"; {form['counts']}" if form["counts"] else ""
        parts.append(
            f"The worst element is {_tensor(bucket)}{form['index']}: got {form['got']}, want {form['want']}, bound {form['bound']} "
            f"({form['ratio']} times what gate {bucket['gate'] or '?'} allows{counts})."
        )
    reason = form["reason"].rstrip(" .")[:300]
    whose = (
        "Reason" if bucket["verdict"] in ("crash", "hang", "exit_crash") else "cuDNN's message"
    )  # FACTS describes the end of a worker
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
    kind = (
        "caller"
        if not _of_cudnn(bucket)
        else "decision"
        if bucket["verdict"] in _ASKING
        else "number"
    )
    yield f"# Found by `{head['origin']}` (FACTS {head['version']})."
    yield f"# {_worst(bucket, bucket['forms'][0])}"
    yield f"# {text.count(bucket['cases'], 'drawn case')} failed like this. The first one: {bucket['forms'][0]['start']}"
    yield _TO_DO
    if bucket["known"]:
        yield "# Another file in cases/known already expects this failure."
    yield f"title: {bucket['text']}, with {_where(bucket['forms'][0])}."
    yield f"kind: {kind}\nverdict: {bucket['verdict']}\nexpected: to be written"
    if _of_cudnn(bucket):
        yield from _failure(bucket, head)
    yield "\ncases:"
    yield from (form["best"] for form in bucket["forms"])
    controls = [name for form in bucket["forms"] for name in form["controls"]]
    if controls:
        yield "\ncontrols:\nwhy: one key is different, and the result is right"
        yield from controls


def _problem(name):
    """The sizes in words, then what is not as usual."""
    said = cases.parse(name)
    way, dtype, b, h, s, d = (cases.value_of(said, key) for key in _SIZES)
    words = [
        f"{'backward' if way == 'bwd' else 'forward'}, {dtype}, batch {b}, heads {h}, queries/keys {s}, head dim {d}"
    ]
    return ", ".join(words + [f"{key}={value}" for key, value in said.items() if key not in _SIZES])


def _form(bucket, form, head):
    controls = ", ".join(difference(form["best"], name) for name in form["controls"])
    return (
        f"The smallest case found ({_problem(form['best'])}) {'so far is' if form['unfinished'] else 'is'} `{form['best']}`. {_worst(bucket, form)} "
        f"It failed {form['failed']} of {form['asked']} times it was asked."
        + (f" It passes with {controls}." if controls else "")
        + f" Reproduce: `facts repro '{form['best']}' {head['flags']}`.\n"
    )


def _place(bucket, of):
    """ "Finding 2 of 5, an ordinary case": where it stands in the ranking."""
    return (
        f"Finding {bucket['rank']} of {of}, {'an ordinary case' if bucket['ordinary'] else 'no ordinary case'}. "
        if of
        else ""
    )


def paragraph(bucket, head, of=0):
    count = (
        f"; {text.count(bucket['cases'], 'drawn case')} failed this way" if bucket["cases"] else ""
    )
    return (
        f"**{bucket['text']}** with {_where(bucket['forms'][0])}. {_place(bucket, of)}"
        + "".join(_form(bucket, form, head) for form in bucket["forms"])
        + f"Found by FACTS {head['version']}, `{head['origin']}`{count}.\n"
    )


def ranking(buckets, head):
    """The page of the folder: the findings in their order, then what a known failure explains."""
    news = [bucket for bucket in buckets if not bucket["explained"]]
    ordinary = sum(bucket["ordinary"] for bucket in news)
    yield f"# What `{head['origin']}` found\n\n{text.count(len(news), 'finding')}, {ordinary} of them ordinary (docs/fuzz.md). The most ordinary one comes first."
    if news:
        yield "\n| | ordinary | finding | drawn cases | smallest case | files |\n|---|---|---|---|---|---|"
    for bucket in news:
        yield (
            f"| {bucket['rank']} | {'yes' if bucket['ordinary'] else 'no'} | {bucket['text']} | {bucket['cases']} | `{bucket['forms'][0]['best']}` | "
            f"`{ident(bucket)}.known`, `.md` |"
        )
    explained = [
        (bucket, form) for bucket in buckets if bucket["explained"] for form in bucket["forms"]
    ]
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
        number = "known" if bucket["explained"] else bucket["rank"]
        yield (
            f"\n{number}{', ordinary' if bucket['ordinary'] and not bucket['explained'] else ''}: {bucket['text']}: {text.count(bucket['cases'], 'drawn case')}"
        )
        for form in bucket["forms"]:
            whole = "not wholly shrunk:" if form["unfinished"] else "smallest:"
            flaky = form["failed"] < form["asked"]
            yield (
                f"  {'does not fail each time:' if flaky else whole}\n    facts repro '{form['best']}' {head['flags']}"
            )
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
    yield (
        f"{text.count(len(news), 'finding')}, {ordinary} of them ordinary; files for cases/known and paragraphs for a report: {head['folder']}/"
        if news
        else "0 findings"
    )


def _print_shrunk(record, head):
    """The last finding of a record of shrink."""
    one = list(record.findings.values())[-1]
    (bucket,) = searched.buckets(searched.only(record, one))
    if "by" not in one:
        print(paragraph(bucket, head), end="")
    for name in bucket["forms"][0]["controls"] if "by" in one else ():
        print(f"  accepted with {difference(one['best'], name)}: '{name}'")


def main(argv):
    """RECORD FLAGS"""
    try:
        record = searched.Record(argv[0])
        head = searched.head(record, *argv)
        if not head["folder"] and record.findings:
            _print_shrunk(record, head)
        if head["folder"]:
            buckets = searched.buckets(record)
            print("\n".join([*_listed(buckets, head), "", *_summary(buckets, head)]))
            if buckets:
                _write_all(Path(head["folder"]), buckets, head)
    except OSError as error:
        print(f"facts: {error.filename or argv[0]}: {error.strerror or error}", file=sys.stderr)
        return 3
    return 0
