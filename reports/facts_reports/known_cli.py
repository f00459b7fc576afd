"""`facts known list | show | check | propose | note`: the known failures on the command line."""

import argparse
import json
import sys
from pathlib import Path

from . import files, known, known_observe, known_pages, propose, reader, text
from .predicate import nearest
from .store import load

OK, FINDINGS, BAD_INPUT, INCOMPLETE = 0, 1, 2, 4


def _parser():
    parser = argparse.ArgumentParser(
        prog="facts known", description="The known failures of cuDNN, one file each in cases/known."
    )
    parser.add_argument("--folder", required=True, help=argparse.SUPPRESS)
    tasks = parser.add_subparsers(dest="task", required=True)
    task = tasks.add_parser("list", help="one line for each failure")
    task.add_argument(
        "--cudnn", metavar="V", help="only failures that hold in this version, such as 9.28.1"
    )
    task.add_argument("--json", action="store_true", help="one JSON object a line")
    task = tasks.add_parser("show", help="everything that is known of one failure")
    task.add_argument("id", metavar="ID")
    task = tasks.add_parser(
        "check", help="what records show: new observations, as a diff of the files"
    )
    task.add_argument("records", metavar="RECORD", nargs="+")
    task.add_argument(
        "--write", action="store_true", help="change the files instead of printing the diff"
    )
    task = tasks.add_parser(
        "propose", help="a file for the failures in records that no file explains, as a diff"
    )
    task.add_argument("records", metavar="RECORD", nargs="+")
    task.add_argument("--write", action="store_true", help="also write cases/known/proposed.known")
    task = tasks.add_parser("note", help="add an observation by hand")
    task.add_argument("id", metavar="ID[/LABEL]")
    task.add_argument("word", choices=("seen", "right"))
    task.add_argument("versions", metavar="VERSION", nargs="+")
    task.add_argument("--source", required=True, help="the record or report that shows it")
    return parser


def _list(entries, args):
    shown = [
        e
        for e in entries
        if e.failures
        and (not args.cudnn or any(known_observe.holds(f, args.cudnn) for f in e.failures))
    ]
    for entry in shown:
        guarded = any(f.guarded for f in entry.failures)
        if args.json:
            print(
                json.dumps(
                    {
                        "id": entry.name,
                        "title": entry.title,
                        "links": entry.links,
                        "guarded": guarded,
                        "failures": [
                            {
                                "label": f.label,
                                "verdict": f.verdicts,
                                "when": f.when,
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
                f"{entry.name:46} {'guarded' if guarded else '       '}  {known_pages.all_versions(entry.failures)}\n    {entry.title}"
            )
    if not args.json:
        print(
            f"{len(shown)} known failures" + (f" hold in {args.cudnn}" if args.cudnn else ""),
            file=sys.stderr,
        )
    return OK


def _find(entries, name):
    for entry in entries:
        if entry.name == name:
            return entry
    raise known.KnownError(
        f"no known failure is called '{name}'; did you mean {nearest(name, [e.name for e in entries])}?"
    )


def _show(entries, args):
    entry = _find(entries, args.id)
    print("\n".join(known_pages.section(entry)).strip("\n"))
    print(f"\nFile: {entry.path}\nCases: facts list regress/{entry.name}")
    return OK


def _apply(changes, write):
    if not write:
        print(known_observe.diff(changes), end="")
        return
    for path, (_, after) in changes.items():
        files.write(path, "\n".join(after))
        print(f"changed: cases/known/{Path(path).name}")


def _check(entries, args):
    store = load(args.records)
    reader.warn(store.files, "facts known")
    doubts = []
    seen = known_observe.observe(entries, store, doubts)
    fresh, wrong = known_observe.news(seen)
    versions = sorted(
        {r["cudnn"] for _, r in store.rows("outcome<>'missing'") if r["cudnn"]}, key=known.number
    )
    _apply(
        known_observe.proposals(fresh, " or ".join(Path(record).name for record in args.records)),
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
    fails, right, unasked = known_observe.summary(entries, seen, versions)
    print(
        known_observe.told(fails, right, unasked)
        + (f" (cuDNN {', '.join(versions)})" if versions else "")
    )
    if right:
        print("no longer fails: " + " ".join(sorted(right)))
    if wrong:
        return FINDINGS
    return OK if store.complete() else INCOMPLETE


def _propose(entries, args):
    store = load(args.records)
    reader.warn(store.files, "facts known")
    return propose.propose(store, entries, args.folder, args.write) or (
        INCOMPLETE if any(file.unreadable for file in store.files) else OK
    )


def _note(entries, args):
    name, _, label = args.id.partition("/")
    entry = _find(entries, name)
    failure = next((f for f in entry.failures if f.label == label), None)
    if failure is None:
        raise known.KnownError(
            f"{name} has no failure called '{label}'; it has: {', '.join(f.label or '(no label)' for f in entry.failures) or 'none'}"
        )
    changes = {
        entry.path: (
            None,
            known_observe.edited(
                entry.path,
                [(failure.line, known_observe.line(args.word, args.versions, args.source))],
            ),
        )
    }
    before = Path(entry.path).read_text(encoding="utf-8")
    _apply(changes, True)
    try:
        known.load(args.folder)
    except known.KnownError:
        files.write(entry.path, before)
        raise
    return OK


def main(argv):
    args = _parser().parse_args(argv)
    try:
        entries = known.load(args.folder)
        return {"list": _list, "show": _show, "check": _check, "propose": _propose, "note": _note}[
            args.task
        ](entries, args)
    except (known.KnownError, reader.InputError) as error:
        print(f"facts known: {text.line(str(error), 1000)}", file=sys.stderr)
        return BAD_INPUT
