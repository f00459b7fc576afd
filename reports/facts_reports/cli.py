"""python3 -m facts_reports IN... -o DIR: the same records as a page, CSV, JSON, Markdown and JUnit."""

import argparse
import collections
import contextlib
import sys
from pathlib import Path

from . import compare, exports, files, markdown, reader, text, words
from .store import load

OK, FINDINGS, BAD_INPUT, ENVIRONMENT, INCOMPLETE = 0, 1, 2, 3, 4
_WHO = "facts report"


def _parser():
    parser = argparse.ArgumentParser(
        prog="facts report",
        description="Shows FACTS records. Every verdict is the record's own.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Exit: 0 written, or equal; 1 something differs that should not; 2 bad input; 3 the environment cannot do it;\n"
        "4 written, but a record is incomplete; 5 nothing could be compared.\n\n"
        "Examples:\n  facts report r.jsonl -o page\n  facts report r.jsonl --issue 'pass=bwd s=192 d=64'",
    )
    parser.add_argument(
        "inputs",
        metavar="IN",
        nargs="*",
        help="a record (.jsonl, .jsonl.gz, .jsonl.xz) or a folder of them",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="folder for index.html, results.csv, results.json, summary.md, junit.xml",
    )
    parser.add_argument(
        "--site",
        metavar="DIR",
        help="several records as a site: an index over the runs, a page for each record, and one of every case (cases/?case=NAME)",
    )
    parser.add_argument(
        "--title",
        default="cuDNN fused attention: what is supported, and is it right",
        help="title of the page",
    )
    parser.add_argument(
        "--issue", metavar="CASE", help="print the body of an issue about this case, in Markdown"
    )
    parser.add_argument(
        "--decisions",
        metavar=("A", "B"),
        nargs=2,
        help="do devices A and B (names as in the records) get the same decisions? Compares yes or no and "
        "mode A's engines with their knobs, of every case and build that both were asked; each difference is printed",
    )
    parser.add_argument(
        "--bits",
        metavar=("A", "B"),
        nargs=2,
        help="do records A and B hold the same answers, bit for bit? Compares the hashes of the tensors of every case, "
        "build and configuration; each difference is printed. dQ without deterministic=1 need not repeat: listed, not counted",
    )
    return parser


def _fail(message, code):
    print(f"{_WHO}: {message}", file=sys.stderr)
    return code


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
    try:
        from . import publish

        runs = publish.write(args.inputs, Path(args.site), title)
    except ModuleNotFoundError as error:
        return _fail(
            f"the Python package '{error.name}' is missing; install it (Debian: python3-jinja2)",
            ENVIRONMENT,
        )
    except OSError as error:
        return _fail(f"{error.filename or args.site}: {error.strerror or error}", ENVIRONMENT)
    except ValueError as error:
        return _fail(str(error), BAD_INPUT)
    print(
        f"{runs[0].head} {runs[0].clause}".strip()
        + f"\n{text.count(len(runs), 'run')}: {Path(args.site) / 'index.html'}"
    )
    return OK if all(run.complete for run in runs) else INCOMPLETE


def _bits(names):
    try:
        one, other = load(names[:1]), load(names[1:])
    except reader.InputError as error:
        return _fail(str(error), BAD_INPUT)
    for store in (one, other):
        reader.warn(store.files, _WHO)
    return compare.print_bits(one, other, names)


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    if argv and argv[0] in (
        "audit",
        "bench",
        "bisect",
        "calibrate",
        "fuzz",
        "golden",
        "known",
        "merge",
        "self",
    ):
        from . import audit, bench, bisection, calibrate, fuzzed, golden, known_cli, liars, merge

        return {
            "audit": audit,
            "bench": bench,
            "bisect": bisection,
            "calibrate": calibrate,
            "fuzz": fuzzed,
            "golden": golden,
            "known": known_cli,
            "merge": merge,
            "self": liars,
        }[argv[0]].main(argv[1:])
    parser = _parser()
    try:
        args = parser.parse_args(argv)
    except SystemExit as stop:
        return stop.code
    if args.bits:
        return _bits(args.bits)
    if not args.inputs:
        return _fail("give a record, or a folder of records", BAD_INPUT)
    if not (args.output or args.site or args.issue or args.decisions):
        return _fail(
            "give -o DIR (or --site DIR, --issue CASE, --decisions A B, --bits A B)", BAD_INPUT
        )
    title = text.line(args.title, 200)
    if args.site:
        return _publish(args, title)
    try:
        store = load(args.inputs)
    except reader.InputError as error:
        return _fail(str(error), BAD_INPUT)
    reader.warn(store.files, _WHO)
    if not store.one("SELECT EXISTS(SELECT 1 FROM row)") and not store.runs:
        return _fail("no record in " + ", ".join(args.inputs), BAD_INPUT)
    if args.issue:
        body = markdown.issue(store, args.issue)
        if body is None:
            return _fail(f"no row has the case '{text.line(args.issue, 200)}'", BAD_INPUT)
        print(body, end="")
    if args.decisions:
        differ = compare.print_decisions(store, *args.decisions)
        if differ or not args.output:
            return differ or (OK if store.complete() else INCOMPLETE)
    if args.output:
        try:
            page = write_site(store, Path(args.output), title)
        except ModuleNotFoundError as error:
            return _fail(
                f"the Python package '{error.name}' is missing; install it (Debian: python3-jinja2)",
                ENVIRONMENT,
            )
        except OSError as error:
            return _fail(f"{error.filename or args.output}: {error.strerror or error}", ENVIRONMENT)
        head, sentence = words.answer(store)
        print(f"{head} {sentence}\n{Path(args.output) / 'index.html'}")
        if page.most:
            print(
                f"{_WHO}: too many rows for one page, which shows at most {page.most:,}: results.csv has all; for pages, report the records of shards one by one",
                file=sys.stderr,
            )
    return OK if store.complete() else INCOMPLETE
