"""`facts diff`, and what `facts gate` does with its records: compares, groups and prints."""

import sys
from pathlib import Path

from ..compare import accept, answer, diff, diff_files, diff_words, sides
from ..read import reader, text
from ..read.store import load
from ..read.vocabulary import CHANGES
from .options import FINDINGS, Command, folder, number, options


def _classes(said):
    try:
        return diff.classes(said)
    except sides.SidesError as error:
        raise ValueError(str(error).removeprefix("--fail-on: ")) from None


def _page(word):
    """A page needs Jinja2: without it the command ends before anything is asked."""
    from ..page import site  # noqa: F401

    return folder(word)


COMPARES = options(
    """
    where
    --baseline V           the build that is trusted (also of one record that holds both)
    --candidate V          the build that may replace it
    --fail-on CLASS,CLASS  changes that fail; default worse,changed-kind,lost; any; docs/gate.md
                           lists them
    --slower R             ratio of times above which a case is slower; default 1.10
    --accept FILE          losses that do not decide: lines of PREDICATE; REASON; DATE; UNTIL
    --write-accept         print the lines that accept what was found, instead of the answer
    --link URL             where the page will be: Markdown, JUnit and annotations name it
    --junit FILE           also write the answer as JUnit
    --page DIR             also write the report page there
    --annotations          also print the groups as GitHub annotations
    --json                 print one JSON object a line
    --markdown             print Markdown, for a pull request or an issue
    """,
    fail_on=_classes,
    slower=number(1, 1000),
    page=_page,
)
COMMAND = Command(
    "diff",
    COMPARES,
    (
        "facts diff old.jsonl new.jsonl",
        "facts diff old.jsonl new.jsonl --where pass=bwd --json",
    ),
    needs="A B",
    summary="Classes of change, worst first, and their exit codes without --fail-on:\n"
    + "\n".join(
        f"  {c.word:17} {'finding' if c.exit == 1 else f'exit {c.exit}' if c.exit else '-':8} {c.says}"
        for c in CHANGES
    ),
)


def _write_files(found, args, inputs, command):
    if args.junit:
        diff_files.write_junit(found, Path(args.junit))
    if args.page:
        from ..page import exports  # the one part that needs Jinja2

        title = f"{command.name}: {answer.of(found).decision}"
        exports.write_site(load(inputs), Path(args.page), title, found)
        print(f"page: {Path(args.page) / 'index.html'}", file=sys.stderr)


def show(args, inputs, command, measured=False):
    """Compares records and prints as the options ask. Returns an exit code."""
    try:
        accepted = accept.Accepted(args.accept) if args.accept else None
        keys = "baseline candidate where slower fail_on".split()
        how = {key: getattr(args, key) for key in keys}
        found = diff.compare(
            inputs, measured=measured, command=command.name, accept=accepted, **how
        )
    except (sides.SidesError, accept.AcceptError) as error:
        return command.fail(error)
    found.link = text.line(args.link or "", 500)
    for record in found.sides.records:
        reader.warn(record.files, f"facts {command.name}")
    if args.write_accept:
        print("".join(accept.proposed(found)), end="")
    elif args.json:
        for line in diff_files.json_lines(found):
            print(line)
    elif args.markdown:
        print(diff_words.as_markdown(found), end="")
    else:
        print(diff_words.as_text(found), end="")
    if args.annotations:
        out = sys.stderr if args.json or args.markdown else sys.stdout
        print("\n".join(diff_files.annotations(found)), file=out)
    code = answer.of(found).code
    try:
        _write_files(found, args, inputs, command)
    except OSError as error:
        if code != FINDINGS:
            raise
        command.fail(f"{error.filename}: {error.strerror or error}")  # a finding outranks it
    return code


def run(args):
    return show(args, args.words, COMMAND)
