"""`facts known list | show | check | propose | note`: the known failures on the command line."""

import json
import sys
from pathlib import Path

from ..known import known, observe, pages, propose
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
    --json         list: print one JSON object a line
    --write        check, propose: write into cases/known instead of printing the difference
    --source TEXT  note: the record or report that shows the observation
    """),
    ("facts known list --cudnn 9.27.0", "facts known check --cudnn 9.28.1 --device 0 --write"),
    needs="|".join(TASKS),
)


def _list(entries, args):
    if args.words:
        word = args.words[0][:60]
        raise UsageError(
            f'`facts known list` takes no "{word}"; one failure: facts known show {word}'
        )
    if args.cudnn and not args.cudnn[0].isdigit():
        raise UsageError(f"list: --cudnn {args.cudnn[:60]}: give a version, such as 9.28.1")
    shown = [
        e
        for e in entries
        if e.failures and (not args.cudnn or any(observe.holds(f, args.cudnn) for f in e.failures))
    ]
    for entry in shown:
        guarded = any(f.guarded for f in entry.failures)
        if args.json:
            print(
                json.dumps(
                    {
                        "id": entry.name,
                        "title": entry.title,
                        "kind": entry.kind,
                        "contract": " ".join(entry.claim("contract")[0]),
                        "sent_by": entry.claim("sent-by")[0],
                        "links": entry.links,
                        "guarded": guarded,
                        "failures": [
                            {
                                "label": f.label,
                                "verdict": f.verdicts,
                                "when": f.when,
                                "data": f.data,
                                "engine": f.fields.get("engine", "any"),
                                "sm": f.fields.get("sm", ""),
                                "suspected": f.fields.get("suspected", ""),
                                "ranges": [
                                    [known.word(a), known.word(b) if b else ""] for a, b in f.ranges
                                ],
                            }
                            for f in entry.failures
                        ],
                    }
                )
            )
        else:
            print(
                f"{entry.name:46} {'guarded' if guarded else '       '}  {pages.all_versions(entry.failures)}\n    {_kind(entry)}{entry.title}"
            )
    if not args.json:
        print(
            pages.counted(shown) + (f": known in {args.cudnn}" if args.cudnn else ""),
            file=sys.stderr,
        )
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


def _ask(entries, args):
    """The record of the failures' cases, which have guards off, and their controls. Described devices only decide and compile; a GPU runs every engine."""
    devices = asking.devices("known", args.device)
    described = asking.are_described(devices)
    chosen = [_find(entries, word.partition("/")[0]) for word in args.words]
    if chosen:
        names = args.words
    else:
        chosen = [e for e in entries if e.failures and e.groups and e.size != "big"]
        if described:  # what a described device can show
            chosen = [
                e for e in chosen if any(set(f.verdicts) & set(known.DECIDED) for f in e.failures)
            ]
        # A case that hangs can disable the GPU, so those come last.
        chosen.sort(key=lambda e: any("hang" in f.verdicts for f in e.failures))
        names = [e.name for e in chosen]
    words = args.given("cudnn", "output", "jobs", "overwrite", "timeout", "pinned-only")
    words += ["--device", devices, "--with", "engine=all", *(["--plan"] if described else [])]
    _, record = asking.asked(
        "decide" if described else "run", [f"regress/{name}" for name in names], *words
    )
    asking.say(record)
    return [record]


def _check(entries, args):
    records = [word for word in args.words if reader.is_record_name(word)]
    if records and len(records) < len(args.words):
        raise UsageError("check: give records, or names of failures, not both")
    records = records or _ask(entries, args)
    store = load(records)
    reader.warn(store.files, "facts known")
    doubts = []
    seen = observe.observe(entries, store, doubts)
    fresh, wrong = observe.news(seen)
    versions = sorted(
        {r["cudnn"] for _, r in store.rows("outcome<>'missing'") if r["cudnn"]}, key=known.number
    )
    _apply(
        observe.proposals(fresh, " or ".join(Path(record).name for record in records)),
        args.write,
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
    fails, right, unasked = observe.summary(entries, seen, versions)
    print(
        observe.told_by_kind(entries, fails, right, unasked)
        + (f" (cuDNN {', '.join(versions)})" if versions else "")
    )
    if right:
        print("no longer fails: " + " ".join(sorted(right)))
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
    task = args.words.pop(0)
    if task not in TASKS:
        raise UsageError(
            f'"{task[:60]}" is none of {", ".join(TASKS)}; did you mean {nearest(task, TASKS)}?'
        )
    try:
        run = {"list": _list, "show": _show, "check": _check, "propose": _propose, "note": _note}
        return run[task](known.load(folder()), args)
    except (known.KnownError, reader.InputError) as error:
        return COMMAND.fail(text.line(str(error), 1000), BAD_INPUT)


def main(argv):
    return COMMAND.main(argv, _known)
