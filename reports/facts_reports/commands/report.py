"""python3 -m facts_reports IN... -o DIR: the same records as a page, CSV, JSON, Markdown and JUnit."""

import os
import sys
from pathlib import Path

from ..compare import agree
from ..page import exports, markdown
from ..read import reader, text, words
from ..read.store import load
from . import asking
from .options import INCOMPLETE, OK, Command, Failed, UsageError, options

_WHO = "facts report"

_NEEDED = "give -o DIR (or --site DIR, --issue CASE, --decisions A B, --bits A B)"


COMMAND = Command(
    "report",
    options("""
    -o, --output DIR  folder for index.html, results.csv, results.json, summary.md, junit.xml
    --site DIR        several records as a site: an index, a page for each, a page of each case
    --title TEXT      title of the page
    --issue CASE      print the body of an issue about this case, in Markdown
    --decisions A B   compare the decisions for devices A and B; print each difference
    --bits A B        compare the tensors of records A and B bit for bit; print each difference
    """),
    ("facts report r.jsonl -o page", "facts report r.jsonl --issue 'pass=bwd s=192 d=64'"),
)
_TITLE = "cuDNN fused attention: what is supported, and is it right"


def _publish(args, title):
    from ..page import publish

    try:
        runs = publish.write(args.words, Path(args.site), title)
    except ValueError as error:
        return COMMAND.fail(error)
    print(f"{runs[0].head} {runs[0].clause}".strip())
    print(f"{text.count(len(runs), 'run')}: {Path(args.site) / 'index.html'}")
    return OK if all(run.complete for run in runs) else INCOMPLETE


def _bits(names):
    one, other = load(names[:1]), load(names[1:])
    for store in (one, other):
        reader.warn(store.files, _WHO)
    return agree.print_bits(one, other, names)


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


def run(args):
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
    if store.two_things:
        print(f"{_WHO}: {store.two_things}", file=sys.stderr)
    if not store.one("SELECT EXISTS(SELECT 1 FROM row)") and not store.runs:
        raise UsageError("no record in " + ", ".join(args.words))
    if args.issue:
        _issue(store, args.issue)
    if args.decisions:
        differ = agree.print_decisions(store, *args.decisions)
        if differ or not args.output:
            return differ or (OK if store.complete() else INCOMPLETE)
    if args.output:
        page = exports.write_site(store, Path(args.output), title)
        head, sentence = words.answer(store)
        print(f"{head} {sentence}\n{Path(args.output) / 'index.html'}")
        if page.most:
            said = f"too many rows for one page, which shows at most {page.most}: results.csv has all; for pages, report the records of shards one by one"
            print(f"{_WHO}: {said}", file=sys.stderr)
    return OK if store.complete() else INCOMPLETE
