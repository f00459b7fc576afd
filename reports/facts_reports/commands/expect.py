"""The golden support matrix: case group x version range x device, as a text that people review.

Each group lists its cases, then has one line for each device and range of versions that answer alike: how many of the cases are taken, and for each, in
that order, the engine that comes first. A total would hide a swap; this row of engines does not.
"""

import json
import re
import sys
import tempfile
from pathlib import Path

from ..read import files, reader, text
from ..read.store import load
from ..read.versions import segments, version_key
from ..read.vocabulary import is_good
from . import asking
from .options import FINDINGS, OK, Command, Failed, UsageError, options

_REFUSED, _DIED, _OPEN = "-", "!", "?"
_HEAD = """\
# The cases of suite golden that cuDNN accepts, and the first engine. Made by `facts expect golden`, never edited by hand; docs/expectations.md.
# group  device  versions  accepted  the first engine of each case of the group, as listed above it (- refused, ! the process died, * accepted, engine not known)
"""


def _mark(row):
    """One word for what became of a case."""
    if row["verdict"] == "inconclusive":
        return _OPEN
    if row["verdict"] in ("crash", "hang", "exit_crash"):
        return _DIED
    if row["supported"] is not True and not is_good(row["verdict"]):
        return _REFUSED
    offered = text.offered(row)
    first = offered[0].get("index") if offered else row.get("engine")
    return "*" if first is None else str(first)


def _by_number(name):
    """Orders names, numbers in them by their size."""
    return [(int(p), "") if p.isdigit() else (-1, p) for p in re.split(r"(\d+)", name)]


class Matrix:
    """What a record holds: cases[group] in order, answers[(group, device)][version] = their marks."""

    def __init__(self, store):
        self.builds, marks = {}, {}
        for _, row in store.rows("1", order="id"):
            at = row["group"].removeprefix("golden."), row["device"]
            marked = marks.setdefault(at, {}).setdefault(row["cudnn"], {})
            marked[row["case"]] = _mark(row)
            self.builds[row["cudnn"]] = row["build"]
        self.hashes = {version: _hash(store, build) for version, build in self.builds.items()}
        self._order(store, marks)
        self.answers = {
            at: {
                version: [said.get(case, _OPEN) for case in self.cases[at[0]]]
                for version, said in by.items()
            }
            for at, by in marks.items()
        }

    @property
    def versions(self):
        return sorted(self.builds, key=version_key)

    def rows(self, version):
        """(group, device, marks) of a version, in the order of the text."""
        for group in self.groups:
            for device in self.devices:
                marks = self.answers.get((group, device), {}).get(version)
                if marks:
                    yield group, device, marks

    def _order(self, store, marks):
        """Groups as the run lists them, cases by name inside (workers answer in any order), devices as planned."""
        run = _run_of(store)
        told = [g.removeprefix("golden.") for g in run.get("groups") or {}]
        members = {}
        for (group, _), by in marks.items():
            members.setdefault(group, set()).update(*by.values())
        self.groups = [g for g in told if g in members] + sorted(members.keys() - told)
        self.cases = {group: sorted(names, key=_by_number) for group, names in members.items()}
        planned = [str(t.get("device")) for t in text.objects(run, "targets")]
        self.devices = list(dict.fromkeys([*planned, *store.devices()]))


def _line(group, device, versions, marks):
    taken = sum(m not in (_REFUSED, _DIED, _OPEN) for m in marks)
    return (
        f"{group:<22} {device:<11} {versions:<16} {taken:>2} of {len(marks):<2}  {' '.join(marks)}"
    )


def _span(versions, a, z):
    return versions[a] if a == z else f"{versions[a]}..{versions[z]}"


def render(matrix, store):
    """The whole text."""
    return "\n".join(_rendered(matrix, _run_of(store))) + "\n"


def _rendered(matrix, run):
    yield f"{_HEAD}# facts {run.get('facts', '?')}, {str(run.get('started', ''))[:10]}, suite {run.get('suite_hash', '?')}"
    for version in matrix.versions:
        yield f"# build {version:<8} {matrix.builds[version]:<18} {matrix.hashes[version]}"
    for group in matrix.groups:
        yield ""
        yield from (f"# {i:>2} {case}" for i, case in enumerate(matrix.cases[group], 1))
        for device in matrix.devices:
            by = matrix.answers.get((group, device), {})
            versions = [v for v in matrix.versions if v in by]
            for a, z in segments([tuple(by[v]) for v in versions]):
                yield _line(group, device, _span(versions, a, z), by[versions[a]])


def _hash(store, build):
    """The first twelve digits of the sha256 of the build's libcudnn_graph."""
    for target in store.target_lines:
        for library in text.objects(target, "libraries") if target.get("build") == build else []:
            if "libcudnn_graph" in str(library.get("path")):
                return str(library.get("sha256", ""))[:12]
    return ""


class GoldenError(ValueError):
    """One line for people."""


def parse(text, name):
    """(suite hash, {version: (build, hash)}, {(group, device): [(first, last, marks, line number)]}). Raises GoldenError."""
    suite, versions, lines = "", {}, {}
    for number, said in enumerate(text.split("\n"), 1):
        words = said.split()
        if said.startswith("# build ") and len(words) > 2:
            versions[words[2]] = tuple([*words, "", ""][3:5])
        elif said.startswith("# facts ") and "suite" in words:
            suite = words[-1]
        elif words and not said.startswith("#"):
            if len(words) < 6 or words[4] != "of":
                raise GoldenError(
                    f"{name}:{number}:1: not a line of the matrix; renew it with `facts expect golden -o {name} --overwrite`"
                )
            first, _, last = words[2].partition("..")
            lines.setdefault((words[0], words[1]), []).append(
                (first, last or first, words[6:], number)
            )
    if not suite or not versions:
        raise GoldenError(f"{name}:1:1: not a matrix: its head has no suite or no build")
    return suite, versions, lines


def _run_of(store):
    return next(iter(store.runs.values()), {})


def _stale(store, suite, name):
    """A line where the matrix is of other cases."""
    if _run_of(store).get("suite_hash") == suite:
        return ""
    return f"{name}:1:1: the matrix is of another state of cases/suites/golden.cases; renew it with `facts expect golden -o {name} --overwrite`"


def compare(matrix, store, text, name):
    """Lines that say where the answers differ from the matrix. Versions that it does not have are left out: propose()."""
    suite, versions, lines = parse(text, name)
    if stale := _stale(store, suite, name):
        return [stale]
    return [
        said
        for version in matrix.versions
        for row in (matrix.rows(version) if version in versions else [])
        for said in _compare_one(lines.get(row[:2], []), *row, version, name, matrix)
    ]


def _line_of(lines, version):
    """What the text has for a version, of the lines of one group and device; None: nothing."""
    key = version_key(version)
    return next((one for one in lines if version_key(one[0]) <= key <= version_key(one[1])), None)


def _marks_of(lines, version):
    found = _line_of(lines, version)
    return found and found[2]


def propose(matrix, text, name):
    """(lines to print, lines that name a lost feature) for the versions that the matrix does not have, each held against the newest version before it."""
    _, versions, lines = parse(text, name)
    shown, lost = [], []
    for version in matrix.versions:
        if version in versions:
            continue
        before = [v for v in versions if version_key(v) < version_key(version)]
        near = max(before, key=version_key) if before else min(versions, key=version_key)
        rows = list(matrix.rows(version))
        changed = []
        for group, device, marks in rows:
            old = _marks_of(lines.get((group, device), []), near)
            if old == marks:
                continue
            changed += [
                f"  {group} {device}: {near} {' '.join(old or ['has no row'])}, {version} {' '.join(marks)}"
            ]
            lost += [
                f"golden: {group} {device}: {version} does not take '{case}', which {near} takes by engine {was}"
                for case, was, now in zip(matrix.cases[group], old or [], marks)
                if was not in (_REFUSED, _DIED) and now in (_REFUSED, _DIED)
            ]
        shown += [
            f"{version} is new: {len(rows)} rows proposed, {len(rows) - len(changed)} answer as {near} does",
            *changed,
            f"  to add them: facts expect golden add --cudnn {version}",
        ]
    return shown, lost


def add(matrix, store, text, name):
    """The whole text with the versions that it does not have yet. Versions that it has stay as they are."""
    suite, versions, lines = parse(text, name)
    if stale := _stale(store, suite, name):
        raise GoldenError(stale)
    missing = sorted({device for _, device in lines} - set(matrix.devices))
    if missing:
        raise GoldenError(
            f"the matrix also has {', '.join(missing)}: a version is added for all of its devices; leave --device out"
        )
    for at, spans in lines.items():
        answers = matrix.answers.setdefault(at, {})
        for version in versions:
            if marks := _marks_of(spans, version):
                answers[version] = marks
    for version, (build, digits) in versions.items():
        matrix.builds[version], matrix.hashes[version] = build, digits
    return render(matrix, store)


def _compare_one(lines, group, device, marks, version, name, matrix):
    found = _line_of(lines, version)
    if not found:
        return [f"{name}:1:1: no line for {group} {device} {version}; renew it"]
    _, _, due, number = found
    if due == marks:
        return []
    places = [i for i, (a, b) in enumerate(zip(due, marks)) if a != b]
    return [
        f"{name}:{number}:1: {group} {device} {version}: golden {' '.join(due)}, answered {' '.join(marks)}"
        + (f"; first '{matrix.cases[group][places[0]]}'" if places else "")
    ]


# ---- for other programs ----

_CASE = re.compile(r"^# +(\d+) (\S.*)$")
_JSON = {"-": False, "!": "crash", "*": True}


def _sm(device, folder):
    """The architecture of a described device, as its name or its description has it."""
    if named := re.match(r"sm(\d+)", device):
        return int(named[1])
    try:
        text = (folder / f"{device}.json").read_text(encoding="utf-8")
        return json.loads(text)["device"]["deviceVer"] // 10
    except (OSError, ValueError, KeyError, TypeError):
        return None


def as_json(text, name, devices):
    """The matrix as an object; docs/expectations.md has its fields. `devices`: the folder of descriptions."""
    suite, versions, lines = parse(text, name)
    made = re.search(r"^# facts (\S+), (\S+), suite", text, re.M)
    cases, told = {}, []
    for line in text.split("\n"):
        if found := _CASE.match(line):
            told = told + [found[2]] if found[1] != "1" else [found[2]]
        elif line and not line.startswith("#"):
            cases.setdefault(line.split()[0], told)
    groups = {group: {"name": group, "cases": cases[group], "answers": {}} for group, _ in lines}
    for (group, device), spans in lines.items():
        groups[group]["answers"][device] = [
            {
                "from": first,
                "to": last,
                "engines": [_JSON.get(m, int(m) if m.isdigit() else None) for m in marks],
            }
            for first, last, marks, _ in spans
        ]
    return {
        "format": 1,
        "facts": made[1] if made else "",
        "made": made[2] if made else "",
        "suite": suite,
        "builds": [
            {"cudnn": version, "build": build, "libcudnn_graph": digits}
            for version, (build, digits) in versions.items()
        ],
        "devices": [{"name": d, "sm": _sm(d, devices)} for d in sorted({d for _, d in lines})],
        "groups": list(groups.values()),
    }


COMMAND = Command(
    "expect",
    options("""
    cudnn device
    -o, --output PATH  write the matrix to this file
    --json             print the golden matrix of this checkout as one JSON document; ask nothing
    jobs overwrite timeout pinned-only
    """),
    ("facts expect golden check --cudnn 9.27.0", "facts expect golden add --cudnn 9.28.1"),
    needs="golden [check|add]",
)
_EVERY_BUILD = "9.8..9.999"


def _decided(args):
    """The answers of the suite, in a Store."""
    with tempfile.TemporaryDirectory() as scratch:
        words = ["--guards", "on", "--cudnn", args.cudnn or _EVERY_BUILD]
        words += ["--device", asking.described("expect", args.device)]
        words += args.given("jobs", "timeout", "pinned-only")
        record = str(Path(scratch) / "golden.jsonl")
        status, _ = asking.run("decide", ["golden"], *words, "-o", record)
        if status not in (OK, FINDINGS):  # a crash is an answer here: the matrix has it
            raise Failed(status)
        return load([record])


def _checked(args):
    first, task, *more = [*args.words, "print"][: max(2, len(args.words))]
    if first != "golden":
        raise UsageError(f'"{first[:60]}" is not golden; known failures are `facts known`')
    if len(args.words) > 2 or task not in ("print", "check", "add"):
        raise UsageError(f'golden: "{(more or [task])[0][:60]}": expected check or add')
    asks = len(args.words) == 2
    if asks and args.output:
        raise UsageError(
            f"golden {task} takes no -o: check writes nothing, and add changes cases/golden/support.txt"
        )
    if task == "add" and not args.cudnn:
        raise UsageError("golden add: give the version: --cudnn 9.28.1")
    if args.json and asks:
        raise UsageError(f"golden {task}: leave --json out: it prints the matrix as it is")
    return task


def run(args):
    task = _checked(args)
    path = asking.home("cases/golden/support.txt")
    args.golden = str(path)
    try:
        if args.json:
            text = path.read_text(encoding="utf-8")
            made = as_json(text, args.golden, path.resolve().parents[2] / "lib/devices")
            return _written(json.dumps(made, indent=1, ensure_ascii=False) + "\n", args)
        return show(task, _decided(args), args)
    except (reader.InputError, GoldenError) as error:
        return COMMAND.fail(f"golden: {error}")


def show(task, store, args):
    """Prints, checks or adds what a record answers."""
    matrix = Matrix(store)
    is_open = any(_OPEN in marks for by in matrix.answers.values() for marks in by.values())
    if is_open or not store.complete():
        raise GoldenError("some questions have no answer; the matrix must be complete")
    return {"check": _check, "add": _add, "print": _print}[task](matrix, store, args)


def _check(matrix, store, args):
    text = Path(args.golden).read_text(encoding="utf-8")
    differ = compare(matrix, store, text, args.golden)
    if not _stale(store, parse(text, args.golden)[0], args.golden):
        shown, lost = propose(matrix, text, args.golden)
        differ += lost
        print("".join(f"{line}\n" for line in shown), end="")
    for line in differ[:40]:
        print(line, file=sys.stderr)
    if len(differ) > 40:
        print(f"... and {len(differ) - 40} more", file=sys.stderr)
    asked = sum(len(by) for by in matrix.answers.values())
    of = f"{len(matrix.versions)} versions on {len(matrix.devices)} devices"
    print(f"golden: {asked} answers of {of}, {len(differ)} differ")
    return FINDINGS if differ else OK


def _add(matrix, store, args):
    path = Path(args.golden)
    before = path.read_text(encoding="utf-8")
    _, versions, _ = parse(before, args.golden)
    new = [version for version in matrix.versions if version not in versions]
    if not new:
        print(f"{path}: has {', '.join(matrix.versions)} already")
        return OK
    files.write(path, add(matrix, store, before, args.golden))
    print(f"{path}: added {', '.join(new)}; review the change like code")
    return OK


def _print(matrix, store, args):
    return _written(render(matrix, store), args)


def _written(shown, args):
    if not args.output:
        print(shown, end="")
        return OK
    path = Path(args.output)
    if path.exists() and not args.overwrite:
        raise GoldenError(f"{path}: is there already; --overwrite replaces it")
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write(path, shown)
    print(f"{path}: {shown.count(chr(10))} lines")
    return OK
