"""python3 -m facts_reports --diff: what `facts diff` and `facts gate` start when there are records to compare."""

import argparse
import json
import sys
from pathlib import Path

from . import decision, diff, diff_files, diff_words, files, predicate, reader, sides, text
from .store import load
from .vocabulary import CHANGES

BAD_INPUT, ENVIRONMENT = 2, 3


def _parser():
    table = "\n".join(
        f"  {c.word:17} {'finding' if c.exit == 1 else f'exit {c.exit}' if c.exit else '-':8} {c.says}"
        for c in CHANGES
    )
    parser = argparse.ArgumentParser(
        prog="facts diff",
        add_help=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage=argparse.SUPPRESS,
        description="Classes of change, worst first, and their exit codes without --fail-on:\n"
        + table,
    )
    parser.add_argument("inputs", nargs="*", help=argparse.SUPPRESS)
    for name in (
        "--baseline",
        "--candidate",
        "--where",
        "--junit",
        "--errata",
        "--page",
        "--fail-on",
        "--command",
        "--unasked",
    ):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--slower", type=float, help=argparse.SUPPRESS)
    for name in ("--json", "--markdown", "--annotations", "--classes", "--bench"):
        parser.add_argument(name, action="store_true", help=argparse.SUPPRESS)
    return parser


def _fail(message, code, command="diff"):
    print(f"facts {command}: {message}", file=sys.stderr)
    return code


def _write_files(found, args):
    if args.junit:
        diff_files.write_junit(found, Path(args.junit))
    if args.errata:
        made = diff_files.errata(found)
        files.write(args.errata, json.dumps(made, indent=2, ensure_ascii=False) + "\n")
        print(
            f"{args.errata}: {text.count(len(made['rules']), 'rule')}; {diff_files.WARNING}",
            file=sys.stderr,
        )
    if args.page:
        from . import cli  # the one part that needs Jinja2

        cli.write_site(
            load(args.inputs),
            Path(args.page),
            f"{args.command or 'diff'}: {decision.decision(found)}",
            found,
        )
        print(f"page: {Path(args.page) / 'index.html'}", file=sys.stderr)


def main(argv):
    args = _parser().parse_args(argv)
    command = args.command or "diff"
    if args.classes:
        print(_parser().description)
        return 0
    if args.unasked:
        diff_files.unasked(args.unasked, args)
        return ENVIRONMENT
    try:
        found = diff.compare(
            args.inputs,
            args.baseline,
            args.candidate,
            args.where,
            args.slower,
            diff.classes(args.fail_on),
            command,
            args.bench,
        )
    except predicate.PredicateError as error:
        return _fail(f"--where: {error}", BAD_INPUT, command)
    except (reader.InputError, sides.SidesError) as error:
        return _fail(str(error), BAD_INPUT, command)
    for record in found.sides.records:
        reader.warn(record.files, f"facts {command}")
    if args.json:
        for line in diff_files.json_lines(found):
            print(line)
    elif args.markdown:
        print(diff_words.as_markdown(found), end="")
    else:
        print(diff_words.as_text(found), end="")
    if args.annotations:
        print(
            "\n".join(diff_files.annotations(found)),
            file=sys.stderr if args.json or args.markdown else sys.stdout,
        )
    try:
        _write_files(found, args)
    except ModuleNotFoundError as error:
        return _fail(
            f"--page: the Python package '{error.name}' is missing; install it (Debian: python3-jinja2)",
            ENVIRONMENT,
            command,
        )
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror or error}", ENVIRONMENT, command)
    return found.exit_code()
