#!/usr/bin/env python3
"""test_report.py LOG: what a run of ctest leaves to say: the 20 dearest tests, each test that was skipped with its reason, and ctest's summary line.

LOG is build/Testing/Temporary/LastTest.log. The test programs print a skip as Criterion does with --verbose ("[SKIP] suite::test: reason") or as Python's
unittest does with -v ("test (case) ... skipped 'reason'").
Exit: 0; 1 where CI is set and a test was skipped that ci/skips.allowed does not name.
"""

import os
import pathlib
import re
import sys

ALLOWED = pathlib.Path(__file__).resolve().with_name("skips.allowed")
TEST = re.compile(r"^\d+/\d+ Testing: (.*)\n((?:.*\n)*?)\"\1\" time elapsed: .*\n", re.M)
SKIPPED = re.compile(r"\[SKIP\] (.*?): (.*)|(.*?) \.\.\. skipped ['\"](.*)['\"]")
DEAREST = 20
SHOWN = 3  # names of tests with one reason


def tests(text):
    """(program, its output) of each test, in the order of the log."""
    return TEST.findall(text)


def seconds(output):
    found = re.search(r"^Test time = +([\d.]+) sec", output, re.M)
    return float(found[1]) if found else 0.0


def skips(program, output):
    """ "PROGRAM TEST: REASON" of each skipped test. A description that Python prints between a test and its result is left out."""
    lines, found = output.splitlines(), []
    for number, line in enumerate(lines):
        hit = SKIPPED.search(line)
        # Criterion's word for what the test's own --filter leaves out
        if hit and hit[2] != "Test is disabled":
            name = hit[1] or hit[3]
            if hit[3] is not None and " (" not in name and number:
                name = lines[number - 1]
            found.append(f"{program} {name.split(' (')[0]}: {hit[2] or hit[4]}")
    return found


def allowed(path=ALLOWED):
    """(pattern, why) of each line: two or more blanks stand between them."""
    lines = [
        line
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip() and not line.startswith("#")
    ]
    return [
        (re.compile(pattern), why)
        for pattern, why in (re.split(r" {2,}", line, maxsplit=1) for line in lines)
    ]


def report(text, rules, out=sys.stdout):
    """Prints it; the skips that no rule names."""
    found = tests(text)
    print(f"\nThe {DEAREST} dearest of {len(found)} tests:", file=out)
    for took, program in sorted(
        ((seconds(output), program) for program, output in found), reverse=True
    )[:DEAREST]:
        print(f"  {took:7.1f} s  {program}", file=out)
    skipped = [
        (program, *skip.split(": ", 1))
        for program, output in found
        for skip in skips(program, output)
    ]
    groups = {}  # {why: {(program, reason): [test]}}
    for program, test, reason in skipped:
        why = next((why for pattern, why in rules if pattern.search(f"{test}: {reason}")), None)
        groups.setdefault(why, {}).setdefault((program, reason), []).append(
            test.removeprefix(program + " ")
        )
    print(f"\n{len(skipped)} tests were skipped.", file=out)
    for why, of_why in sorted(groups.items(), key=lambda item: (item[0] is None, item[0])):
        print(
            f"{sum(map(len, of_why.values()))} skipped: {why or 'NOT ALLOWED: no line of ci/skips.allowed names these'}",
            file=out,
        )
        for (program, reason), names in of_why.items():
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            print(f"  {program}: {', '.join(names[:SHOWN])}{more}: {reason}", file=out)
    return groups.get(None, {})


def main():
    log = pathlib.Path(sys.argv[1])
    unknown = report(log.read_text(encoding="utf-8", errors="replace"), allowed())
    return 1 if unknown and os.environ.get("CI") else 0


if __name__ == "__main__":
    sys.exit(main())
