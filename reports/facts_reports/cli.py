"""python3 -m facts_reports IN... -o DIR: the same records as a page, CSV, JSON, Markdown and JUnit."""

import collections
import contextlib
import importlib
import os
import sys
from pathlib import Path

from . import asking, compare, exports, files, markdown, reader, text, words
from .options import INCOMPLETE, OK, Command, Failed, Option, UsageError
from .store import load

_WHO = "facts report"

# The module of each command, and of the views that C gives its own lines to.
_MODULES = {
    "adopt": "adopt",
    "audit": "audit",
    "bench": "bench",
    "bisect": "bisection",
    "calibrate": "calibrate",
    "diff": "diff_cli",
    "expect": "golden",
    "fuzz": "fuzzed",
    "gate": "gate",
    "help": "manual",
    "known": "known_cli",
    "matrix": "matrix",
    "merge": "merge",
    "report": "cli",
    "self": "liars",
}
_NEEDED = "give -o DIR (or --site DIR, --issue CASE, --decisions A B, --bits A B)"


COMMAND = Command(
    "report",
    (
        Option(
            "output",
            "DIR",
            "folder for index.html, results.csv, results.json, summary.md, junit.xml",
            letter="o",
        ),
        Option(
            "site",
            "DIR",
            "several records as a site: an index, a page for each, a page of each case",
        ),
        Option("title", "TEXT", "title of the page"),
        Option("issue", "CASE", "print the body of an issue about this case, in Markdown"),
        Option(
            "decisions",
            "A B",
            "compare the decisions for devices A and B; print each difference",
        ),
        Option(
            "bits",
            "A B",
            "compare the tensors of records A and B bit for bit; print each difference",
        ),
    ),
    ("facts report r.jsonl -o page", "facts report r.jsonl --issue 'pass=bwd s=192 d=64'"),
)
_TITLE = "cuDNN fused attention: what is supported, and is it right"


def _module(name):
    return importlib.import_module(f".{_MODULES[name]}", __package__)


def command(name):
    """The options.Command of a command that is Python."""
    return _module(name).COMMAND


def write_site(store, folder, title, compared=None, home="", audit=None):
    """`compared`: the diff.Diff that the page is about; else the page finds out from the record. `audit`: an audit.Audit of these rows. Returns the site.Page."""
    from . import site  # the one part that needs Jinja2

    folder.mkdir(parents=True, exist_ok=True)
    about = {
        "title": title,
        "answer": words.answer(store),
        "complete": store.complete(),
        "totals": store.totals(),
        "runs": store.runs,
        "targets": list(store.targets.values()),
    }
    with contextlib.closing(exports.written_rows(store, folder, about)) as rows:
        page = site.make(store, title, compared, home, audit, rows)
        collections.deque(
            rows, 0
        )  # those that the page did not ask for: all, where there are too many for a page
    files.write(folder / "index.html", page.html)
    files.write(folder / "summary.md", markdown.summary(store, title))
    exports.write_junit(store, folder / "junit.xml", title)
    return page


def _publish(args, title):
    from . import publish

    try:
        runs = publish.write(args.words, Path(args.site), title)
    except ValueError as error:
        return COMMAND.fail(error)
    print(
        f"{runs[0].head} {runs[0].clause}".strip()
        + f"\n{text.count(len(runs), 'run')}: {Path(args.site) / 'index.html'}"
    )
    return OK if all(run.complete for run in runs) else INCOMPLETE


def _bits(names):
    one, other = load(names[:1]), load(names[1:])
    for store in (one, other):
        reader.warn(store.files, _WHO)
    return compare.print_bits(one, other, names)


def _issue(store, case):
    """Records have canonical names; the program knows the name of a case."""
    if os.environ.get("FACTS_PROGRAM"):
        try:
            case = asking.view("list", "--", case, stderr=asking.CAUGHT).rstrip("\n")
        except Failed as failed:
            raise UsageError(f"--issue: {failed.args[2].strip()}") from None
    body = markdown.issue(store, case)
    if body is None:
        raise UsageError(f"no row has the case '{text.line(case, 200)}'")
    print(body, end="")


def _report(args):
    if args.bits:
        return _bits(args.bits)
    if not args.words:
        raise UsageError("give a record, or a folder of records")
    if not (args.output or args.site or args.issue or args.decisions):
        raise UsageError(_NEEDED)
    title = text.line(args.title or _TITLE, 200)
    if args.site:
        return _publish(args, title)
    store = load(args.words)
    reader.warn(store.files, _WHO)
    if not store.one("SELECT EXISTS(SELECT 1 FROM row)") and not store.runs:
        raise UsageError("no record in " + ", ".join(args.words))
    if args.issue:
        _issue(store, args.issue)
    if args.decisions:
        differ = compare.print_decisions(store, *args.decisions)
        if differ or not args.output:
            return differ or (OK if store.complete() else INCOMPLETE)
    if args.output:
        page = write_site(store, Path(args.output), title)
        head, sentence = words.answer(store)
        print(f"{head} {sentence}\n{Path(args.output) / 'index.html'}")
        if page.most:
            print(
                f"{_WHO}: too many rows for one page, which shows at most {page.most:,}: results.csv has all; for pages, report the records of shards one by one",
                file=sys.stderr,
            )
    return OK if store.complete() else INCOMPLETE


def _checked(args):
    try:
        return _report(args)
    except reader.InputError as error:
        return COMMAND.fail(error)


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    if argv and argv[0] in _MODULES and argv[0] != "report":
        return _module(argv[0]).main(argv[1:])
    return COMMAND.main(argv[1:] if argv[:1] == ["report"] else argv, _checked)
