"""Do two devices get the same decisions? A description stands for a real GPU only as far as this says so.

usage: python -m facts_reports.compare A B RECORD...     A, B: device names as in the records (0, h100-sxm)
Compares, for every case and build that both were asked: yes or no, and mode A's engines with their knobs. Prints one line a build, each difference
on a line of its own, and exits 0 when there is none, 1 otherwise, 5 when nothing could be compared.
"""
import sys
from pathlib import Path

from . import reader


def rows(files):
    for path in files:
        report = reader.FileReport(str(path))
        with reader._open(Path(path)) as stream:
            for line in reader.lines(stream, report):
                try:
                    item = reader.json.loads(line)
                except ValueError:
                    continue
                if isinstance(item, dict) and "case" in item and "verdict" in item:
                    yield item


def decision(row):
    """What was decided, without what only a run can know."""
    engines = [(e.get("index"), tuple(sorted((e.get("knobs") or {}).items()))) for e in row.get("engines") or [] if e.get("mode") == "A"]
    supported = row.get("supported")
    return (bool(supported), tuple(engines)) if supported is not None else None


def compare(files, first, second):
    seen = {first: {}, second: {}}
    for row in rows(files):
        device = str(row.get("device"))
        if device in seen and row.get("verdict") != "inconclusive":
            answer = decision(row)
            if answer is not None:
                seen[device][(row.get("build"), row["case"])] = answer
    result = {}
    for key in sorted(seen[first].keys() & seen[second].keys()):
        build = result.setdefault(key[0], {"equal": 0, "differences": []})
        if seen[first][key] == seen[second][key]:
            build["equal"] += 1
        else:
            build["differences"].append((key[1], seen[first][key], seen[second][key]))
    return result


def main(arguments):
    if len(arguments) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    first, second, *files = arguments
    result = compare(files, first, second)
    if not result:
        print(f"nothing was asked of both {first} and {second}", file=sys.stderr)
        return 5
    for build, answer in result.items():
        total = answer["equal"] + len(answer["differences"])
        print(f"{build}: {answer['equal']} of {total} decisions equal on {first} and {second}")
        for case, one, other in answer["differences"]:
            print(f"  {case}: {first} {one}, {second} {other}")
    return 1 if any(answer["differences"] for answer in result.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
