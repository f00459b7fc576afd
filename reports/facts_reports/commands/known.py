"""`facts known CASE | list | show | check | propose | note`: the known failures on the command line."""

import contextlib
import json
import sys
import threading
from pathlib import Path

from ..known import known, knowledge, observe, pages, propose
from ..read import files, reader, text
from ..read.predicate import nearest
from ..read.store import load
from . import asking
from .options import BAD_INPUT, FINDINGS, INCOMPLETE, OK, Command, UsageError, options

TASKS = ("list", "show", "check", "propose", "note")
COMMAND = Command(
    "known",
    options("""
    cudnn device output jobs overwrite timeout pinned-only
    --between A B  what begins and what ends from one version to another
    --json         print one JSON object a line
    --write        check, propose: write into cases/known instead of printing the difference
    --source TEXT  note: the record or report that shows the observation
    """),
    (
        "facts known 'pass=bwd s=704 d=64 fill=neglse' --cudnn 9.20.0",
        "facts known check --cudnn 9.28.1 --device 0 --write",
    ),
)


def _sm(args):
    """The architecture of --device, 0: not given."""
    if not args.device:
        return 0
    device, *_ = asking.rows("devices", "--device", args.device)
    if not device[2].isdigit():
        raise UsageError(f"--device {args.device[:60]}: give a described device, such as h100-sxm")
    return int(device[2])


def _version(word, what):
    if not word[:1].isdigit():
        raise UsageError(f"{what} {word[:60]}: give a version, such as 9.28.1")
    return known.number(word)


def _holds(failure, version, sm):
    return knowledge.holds(knowledge.line(failure), version, sm)


def _list(entries, args):
    if args.words:
        word = args.words[0][:60]
        raise UsageError(
            f'`facts known list` takes no "{word}"; one failure: facts known show {word}'
        )
    version, sm = _version(args.cudnn, "list: --cudnn") if args.cudnn else 0, _sm(args)
    shown = {e.name: [f for f in e.failures if _holds(f, version, sm)] for e in entries}
    entries = [e for e in entries if shown[e.name]]
    if args.json:
        for failure in (f for e in entries for f in shown[e.name]):
            print(json.dumps(knowledge.line(failure), ensure_ascii=False))
        return OK
    for entry in entries:
        guarded = any(f.guarded for f in entry.failures)
        print(
            f"{entry.name:46} {'guarded' if guarded else '       '}  {pages.all_versions(entry.failures)}\n    {_kind(entry)}{entry.title}"
        )
    where = f": known in {args.cudnn}" if args.cudnn else ""
    print(
        pages.counted(entries) + where + (f" on {args.device}" if args.device else ""),
        file=sys.stderr,
    )
    return OK


def _between(entries, args):
    """What begins and what ends from one version to another."""
    before, after = (_version(word, "--between") for word in args.between)
    sm, changed = _sm(args), {"begins": [], "ends": []}
    for entry in entries:
        old, new = (any(_holds(f, v, sm) for f in entry.failures) for v in (before, after))
        if old != new:
            changed["begins" if new else "ends"].append(entry)
    for change, some in changed.items():
        some.sort(key=lambda e: min(map(_rank, e.failures)))
        if not args.json:
            print(f"{change} from {' to '.join(args.between)}: {pages.counted(some)}")
        for entry in some:
            if args.json:
                verdicts = list(dict.fromkeys(v for f in entry.failures for v in f.verdicts))
                said = {"change": change, "id": entry.name, "title": entry.title}
                print(json.dumps({**said, "kind": entry.kind, "verdict": verdicts}))
            else:
                print(
                    f"  {entry.name:46} {pages.all_versions(entry.failures)}\n      {_kind(entry)}{entry.title}"
                )
    return OK


def _of(entries, args):
    """What is known of cases, of each version and device that is asked."""
    known_of = knowledge.Knowledge(knowledge.lines(entries))
    words = args.given("cudnn", "jobs", "timeout", "pinned-only", "output", "overwrite")
    device = args.device or "h100-sxm"
    _, record = asking.asked("decide", args.words, *words, "--device", device)
    store = load([record])
    for _, row in store.rows("outcome<>'missing'"):
        speak = known_of.of_row(row)
        if args.json:
            for one in speak:
                where = {key: row[key] for key in ("case", "cudnn", "device", "verdict")}
                print(json.dumps({**where, "known": one}, ensure_ascii=False))
            continue
        print(f"{row['case']}\n  cuDNN {row['cudnn']} on {row['device']}: {row['verdict']}")
        for one in speak:
            print(f"    {knowledge.sentence(one)}\n      {knowledge.about(one)}")
            if one["remedy"]:
                print(f"      libfattn refuses it; instead: {one['remedy']}")
        if not speak:
            print("    nothing is known of it")
    return OK


def _kind(entry):
    """ "(behaviour) ": before the title of what is no failure."""
    return "" if entry.is_failure else f"({entry.kind}) "


def _find(entries, name):
    for entry in entries:
        if entry.name == name:
            return entry
    raise UsageError(
        f"no known failure is called {name[:100]}; did you mean {nearest(name, [e.name for e in entries])}? (`facts known list` lists them)"
    )


def _show(entries, args):
    entry = _find(entries, _words(args, "ID")[0])
    print("\n".join(pages.section(entry)).strip("\n"))
    print(f"\nFile: {entry.path}\nCases: facts list regress/{entry.name}")
    return OK


def _apply(changes, write):
    if not write:
        print(observe.diff(changes), end="")
        return
    for path, (_, after) in changes.items():
        files.write(path, "\n".join(after))
        print(f"changed: cases/known/{Path(path).name}")


def _words(args, *names):
    """As many words as names, or more."""
    if len(args.words) < len(names):
        raise UsageError(f"{' '.join(names[len(args.words) :])} is missing")
    return args.words


def _chosen(entries, args, described):
    """(entries to ask, the words that name them): crashes come first."""
    if args.words:
        return [_find(entries, word.partition("/")[0]) for word in args.words], args.words
    some = [e for e in entries if e.failures and e.groups and e.size != "big"]
    has = {e.name: {v for f in e.failures for v in f.verdicts} for e in some}
    if described:  # what a described device can show
        some = [e for e in some if has[e.name] & set(known.DECIDED)]
    # A case that hangs can disable the GPU, so those come last.
    some.sort(key=lambda e: ("hang" in has[e.name], "crash" not in has[e.name]))
    return some, [e.name for e in some]


class _Said:
    """Prints the answer of each entry, once, and again if it changes."""

    def __init__(self, asked, args):
        self.asked, self.is_json, self.words = asked, args.json, {}

    def place(self, entry):
        if entry not in self.asked:
            return ""
        return f"{self.asked.index(entry) + 1}/{len(self.asked)} "

    def __call__(self, entry, word, rows):
        if self.words.get(entry) == word:
            return
        self.words[entry] = word
        why = observe.why_none(entry, rows) if word == "no answer" else ""
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)  # the bar of the run
        if self.is_json:
            said = {"id": entry.name, "title": entry.title, "kind": entry.kind, "answer": word}
            print(json.dumps({**said, "why": why}, ensure_ascii=False), flush=True)
            return
        why = f" ({why})" if why else ""
        print(
            f"{self.place(entry)}{word}: {entry.name}: {_kind(entry)}{entry.title}{why}", flush=True
        )


def _ask(entries, args):
    """(_Said, records) of the cases of entries, which have guards off, and their controls. Described devices only decide and compile; a GPU runs every
    engine."""
    devices = asking.devices("known", args.device)
    described = asking.are_described(devices)
    chosen, names = _chosen(entries, args, described)
    names = [f"regress/{name}" for name in names]
    all_engines = ("--with", "engine=all")
    cases = {e: set() for e in chosen}
    for entry, name in zip(chosen, names):
        cases[entry].update(asking.view("list", name, *all_engines).splitlines())
    print(f"asking {text.count(len(chosen), 'entry', 'entries')}", file=sys.stderr)
    words = args.given("cudnn", "jobs", "overwrite", "timeout", "pinned-only")
    words += ["--device", devices, *all_engines, *(["--plan"] if described else [])]
    path = Path(args.output or asking.new_record("known"))
    before = path.open("rb").readline() if path.exists() else b""
    said, ended = _Said(chosen, args), threading.Event()
    live, report = observe.Live(entries, cases, said), reader.FileReport(path.name)

    def listen():
        for line in reader.follow(path, before, ended):
            reader.take(line, report, live)

    listener = threading.Thread(target=listen)
    listener.start()
    try:
        asking.asked("decide" if described else "run", names, *words, "-o", str(path))
    finally:
        ended.set()
        listener.join()
    asking.say(path)
    return said, [path]


def _rank(failure):
    return knowledge.rank(knowledge.line(failure))


def _check(entries, args):
    records = [word for word in args.words if reader.is_record_name(word)]
    if records and len(records) < len(args.words):
        raise UsageError("check: give records, or names of failures, not both")
    said, records = (_Said([], args), records) if records else _ask(entries, args)
    store = load(records)
    reader.warn(store.files, "facts known")
    doubts = []
    seen = observe.observe(entries, store, doubts)
    fresh, wrong = observe.news(seen)
    rows = {}
    for _, row in store.rows("outcome<>'missing'"):
        rows.setdefault(row["group"].partition("/")[0], []).append(row)
    versions = sorted({r["cudnn"] for some in rows.values() for r in some}, key=known.number)
    answers = {e: observe.answered(e, seen, versions) for e in entries}
    for entry in sorted(entries, key=lambda e: min(map(_rank, e.failures), default=())):
        if entry in said.asked or entry.name in rows or answers[entry] in observe.WORDS[:2]:
            said(entry, answers[entry] or "no answer", rows.get(entry.name, []))
    with contextlib.redirect_stdout(sys.stderr if args.json else sys.stdout):
        _apply(observe.proposals(fresh, store), args.write)
        need = sum(answers[e] == "no answer" and e not in said.words for e in entries)
        is_part = args.words or not asking.are_described(asking.devices("known", args.device))
        print(
            observe.told_by_kind(said.words)
            + ("" if is_part or not need else f"; {text.count(need, 'needs', 'need')} a GPU")
            + (f" (cuDNN {', '.join(versions)})" if versions else "")
        )
    for one in wrong:
        print(
            f"cases/known/{one.failure.entry.name}.known:{one.failure.line}: cuDNN {one.version} on {one.device} "
            + (
                f"fails ({one.fails} results), and the file says that it is right"
                if one.fails
                else f"is right ({one.right} results), and the file says that it fails"
            ),
            file=sys.stderr,
        )
    for case, version, names in doubts:
        print(
            f"'{case}' fails with cuDNN {version}: {' or '.join(names)}? Decide, then write it with facts known note",
            file=sys.stderr,
        )
    for one in seen:
        if one.suspected:
            print(
                f"{one.failure.name}: suspected on {one.device}, and cuDNN {one.version} {'fails' if one.fails else 'is right'} there: move the architecture in the file",
                file=sys.stderr,
            )
    if wrong:
        return FINDINGS
    return OK if store.complete() else INCOMPLETE


def _propose(entries, args):
    store = load(_words(args, "RECORD"))
    reader.warn(store.files, "facts known")
    return propose.propose(store, entries, folder(), args.write) or (
        INCOMPLETE if any(file.unreadable for file in store.files) else OK
    )


def _note(entries, args):
    given, word, *versions = _words(args, "ID[/LABEL]", "seen|right", "VERSION")
    if word not in ("seen", "right"):
        raise UsageError(f'note: "{word[:60]}" is neither seen nor right')
    if not args.source:
        raise UsageError("note: --source TEXT is missing: the record or report that shows it")
    name, _, label = given.partition("/")
    entry = _find(entries, name)
    failure = next((f for f in entry.failures if f.label == label), None)
    if failure is None:
        raise known.KnownError(
            f"{name} has no failure called '{label}'; it has: {', '.join(f.label or '(no label)' for f in entry.failures) or 'none'}"
        )
    changes = {
        entry.path: (
            None,
            observe.edited(
                entry.path,
                [(failure.line, observe.line(word, versions, args.source))],
            ),
        )
    }
    before = Path(entry.path).read_text(encoding="utf-8")
    _apply(changes, True)
    try:
        known.load(folder())
    except known.KnownError:
        files.write(entry.path, before)
        raise
    return OK


def folder():
    return str(asking.home("cases/known"))


def _known(args):
    task = args.words[0] if args.words else "list"
    given = args.between or args.cudnn or args.device or args.json
    if not args.words and not given:
        raise UsageError(f"CASE|{'|'.join(TASKS)} is missing")
    if args.between and args.words:
        raise UsageError(f'--between takes no "{task[:60]}"')
    if task not in TASKS and "=" not in task:
        raise UsageError(
            f'"{task[:60]}" is no case and none of {", ".join(TASKS)}; did you mean {nearest(task, TASKS)}?'
        )
    run = {"list": _list, "show": _show, "check": _check, "propose": _propose, "note": _note}
    if args.between:
        run = {"list": _between}
    if task in run:
        args.words = args.words[1:]
    try:
        return run.get(task, _of)(known.load(folder()), args)
    except (known.KnownError, reader.InputError) as error:
        return COMMAND.fail(text.line(str(error), 1000), BAD_INPUT)


def main(argv):
    return COMMAND.main(argv, _known)
