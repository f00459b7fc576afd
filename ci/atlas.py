#!/usr/bin/env python3
"""Draws records of `facts bench` as an atlas: how the time of each case moved from version to version, and which engine is the fastest.

usage: ci/atlas.py RECORD... -o DIR    (records of `facts bench --cudnn 9.12.0,9.14.0,… -o RECORD`)

Writes DIR/atlas.md, and an SVG for each group of the suite: a panel for each case, versions from left to right. A line is an engine with its best knobs,
the thick one cuDNN's first choice; bars are intervals of 95 %. The page names what got slower between neighbouring versions, by cuDNN's first choice and by
the same engine with the same knobs, and where the first choice is not the fastest engine. Exit: 0 written; 2 bad input; 5 no times.
"""

import argparse
import collections
import html
import math
import pathlib
import re
import statistics
import sys
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "reports"))
from facts_reports import bench, reader, text, times  # noqa: E402
from facts_reports.versions import version_key  # noqa: E402

COLUMNS, MOST_ROWS, CELL = 4, 60, 74
COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#17becf")


def version_of(side):
    return side.build.split("-")[0]


def ordered(case):
    """Sides of a case, by version; of a build against itself the first."""
    sides = {}
    for place in sorted(case.sides):
        sides.setdefault(case.sides[place].build, case.sides[place])
    return sorted(sides.values(), key=lambda side: version_key(version_of(side)))


def steps(record, least=times.LEAST):
    """[(case, version before, after, Comparison, engine before, engine after)] of cuDNN's first choice, between neighbouring versions."""
    out = []
    for case in record.cases.values():
        timed = [(side, case.first_choice(side)) for side in ordered(case)]
        timed = [(side, config) for side, config in timed if config is not None]
        for (a, i), (b, j) in zip(timed, timed[1:]):
            found = times.compare(a, b, i, j, least)
            out.append(
                (
                    case.name,
                    version_of(a),
                    version_of(b),
                    found,
                    bench.name_of(case.engine(a, i)),
                    bench.name_of(case.engine(b, j)),
                )
            )
    return out


def same_engine_steps(record, least=times.LEAST):
    """The same of each engine with the same knobs that both versions offer."""
    out = []
    for case in record.cases.values():
        sides = ordered(case)
        for a, b in zip(sides, sides[1:]):
            theirs = {case.engine(b, config): config for config in b.us if config >= 0}
            for config in sorted(a.us):
                engine = case.engine(a, config)
                if config >= 0 and engine in theirs:
                    out.append(
                        (
                            case.name,
                            version_of(a),
                            version_of(b),
                            times.compare(a, b, config, theirs[engine], least),
                            bench.name_of(engine),
                            bench.name_of(engine),
                        )
                    )
    return out


def first_choices(record, least=times.LEAST):
    """{version: [cases with several engines, [(first over fastest, case, first, fastest)] where another is faster]}"""
    out = collections.OrderedDict()
    for case in record.cases.values():
        for side in ordered(case):
            chosen = case.first_choice(side)
            if chosen is None or len(side.us) < 2:
                continue
            counted = out.setdefault(version_of(side), [0, []])
            counted[0] += 1
            fastest = case.fastest(side)
            if fastest == chosen:
                continue
            found = times.compare(side, side, fastest, chosen, least)
            if found.word == "slower":
                counted[1].append(
                    (
                        found.ratio.middle,
                        case.name,
                        bench.name_of(case.engine(side, chosen)),
                        bench.name_of(case.engine(side, fastest)),
                    )
                )
    return collections.OrderedDict(sorted(out.items(), key=lambda item: version_key(item[0])))


def series(case, versions):
    """{engine number: [interval or None for each version]} with the best knobs, and the same of cuDNN's first choice."""
    lines, first = {}, [None] * len(versions)
    for side in ordered(case):
        at = versions.index(version_of(side))
        chosen = case.first_choice(side)
        for config in side.us:
            us, number = times.microseconds(side, config), case.engine(side, config)[0] or "-"
            line = lines.setdefault(number, [None] * len(versions))
            if line[at] is None or us.middle < line[at].middle:
                line[at] = us
            if config == chosen:
                first[at] = us
    return lines, first


def short(name):
    """A case in few words."""
    return " ".join(
        word for word in name.split() if not re.match(r"(engine=all|dtype=bf16|want=stats)$", word)
    )


def draw(group, cases, versions):
    """The SVG of a group: a panel for each case."""
    wide, high, left, top = 330, 220, 46, 28  # of a panel; the plot begins at (left, top) in it
    plot_wide, plot_high = wide - left - 10, high - top - 58
    rows = math.ceil(len(cases) / COLUMNS)
    found = {case.name: series(case, versions) for case in cases}
    numbers = sorted({n for lines, _ in found.values() for n in lines}, key=lambda n: (len(n), n))
    colours = dict(zip(numbers, COLOURS * len(numbers)))
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{COLUMNS * wide}" height="{rows * high + 30}" font-family="sans-serif" font-size="9">',
        f'<rect width="100%" height="100%" fill="white"/><text x="8" y="19" font-size="13">{html.escape(group)}</text>',
    ]
    for i, n in enumerate(numbers):
        out.append(f'<text x="{200 + 80 * i}" y="19" fill="{colours[n]}">engine {n}</text>')
    out.append(f'<text x="{200 + 80 * len(numbers)}" y="19" fill="#888">grey: first choice</text>')
    for place, case in enumerate(cases):
        lines, first = found[case.name]
        most = 1.08 * max(us.middle for line in lines.values() for us in line if us)

        def at(i, us, most=most):
            x = left + plot_wide * (i + 0.5) / len(versions)
            return f"{x:.1f},{top + plot_high * (1 - min(us, most) / most):.1f}"

        def path(line, draw, at=at):
            points = " ".join(at(i, us.middle) for i, us in enumerate(line) if us)
            return f'<polyline points="{points}" fill="none" {draw}/>'

        x, y = place % COLUMNS * wide, 30 + place // COLUMNS * high
        out += [
            f'<g transform="translate({x},{y})"><text x="{left}" y="18">{html.escape(text.line(short(case.name), 56))}</text>',
            f'<rect x="{left}" y="{top}" width="{plot_wide}" height="{plot_high}" fill="none" stroke="#bbb"/>',
            *(
                f'<text x="{left - 4}" y="{top + plot_high * (1 - share) + 3:.1f}" text-anchor="end">{most * share:,.{0 if most > 99 else 1}f}</text>'
                for share in (0, 0.5, 1)
            ),
            f'<text x="4" y="{top - 6}">µs</text>',
            path(first, 'stroke="black" stroke-opacity="0.25" stroke-width="5"'),
        ]
        for number, line in sorted(lines.items()):
            stroke = f'stroke="{colours[number]}"'
            out.append(path(line, stroke))
            for i, us in enumerate(line):
                if us:
                    (cx, low), high_end = at(i, us.low).split(","), at(i, us.high).split(",")[1]
                    out.append(f'<path d="M{cx} {low}V{high_end}" {stroke}/>')
                    out.append(
                        f'<circle cx="{cx}" cy="{at(i, us.middle).split(",")[1]}" r="2" fill="{colours[number]}"/>'
                    )
        for i, version in enumerate(versions):
            cx = at(i, 0).split(",")[0]
            out.append(
                f'<text transform="translate({cx},{top + plot_high + 8})rotate(60)">{version}</text>'
            )
        out.append("</g>")
    return "\n".join([*out, "</svg>", ""])


def _cell(name):
    """A case in a table, as above its plot."""
    name = short(name)
    return f"`{name if len(name) <= CELL else name[: CELL - 1] + '…'}`"


def _ratio(found):
    return f"{found.ratio.middle:.3f} ({found.ratio.low:.3f} to {found.ratio.high:.3f})"


def _table(head, rows):
    shown = rows[:MOST_ROWS]
    return [
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *("| " + " | ".join(cells) + " |" for cells in shown),
        *([f"\n{len(rows) - len(shown):,} more."] if len(rows) > len(shown) else []),
    ]


def _moved(found, word):
    """Rows of a table: steps with this word, the largest first."""
    kept = sorted(
        (step for step in found if step[3].word == word),
        key=lambda step: -abs(math.log(step[3].ratio.middle)),
    )
    return [
        [
            _cell(name),
            f"{a} → {b}",
            _ratio(ratio),
            before if before == after else f"{before} → {after}",
        ]
        for name, a, b, ratio, before, after in kept
    ]


def page(record, figures):
    """The Markdown of the atlas."""
    versions = sorted(
        {version_of(s) for c in record.cases.values() for s in c.sides.values()}, key=version_key
    )
    devices = list(dict.fromkeys(s.device for c in record.cases.values() for s in c.sides.values()))
    own, same, choices = steps(record), same_engine_steps(record), first_choices(record)
    head = ["case", "versions", "after / before", "engine"]
    about = f"{text.count(len(record.cases), 'case')} on {', '.join(devices)}, cuDNN {', '.join(versions)}; made by `ci/atlas.py`."
    out = [
        "# Atlas of times",
        "",
        *textwrap.wrap(about, 120, break_on_hyphens=False),
        "Every engine that cuDNN offers was timed. `docs/bench.md` says how times are measured and compared. A ratio",
        "is named only where its whole interval lies beyond 1.02. A case without `dtype=` is bf16.",
        "",
        "## Where cuDNN's first choice got slower",
        "",
    ]
    slower = _moved(own, "slower")
    out += _table(head, slower) if slower else ["Nowhere."]
    words = collections.Counter((a, b, found.word) for _, a, b, found, _, _ in own)
    pairs = sorted(
        {(a, b) for _, a, b, _, _, _ in own}, key=lambda p: (version_key(p[0]), version_key(p[1]))
    )
    out += [
        "",
        "All steps:",
        "",
        *_table(
            ["versions", "slower", "faster", "same", "unclear", "unsteady"],
            [
                [
                    f"{a} → {b}",
                    *(
                        str(words[a, b, w])
                        for w in ("slower", "faster", "same", "unclear", "unsteady")
                    ),
                ]
                for a, b in pairs
            ],
        ),
    ]
    out += ["", "## Where an engine with the same knobs got slower", ""]
    slower = _moved(same, "slower")
    out += _table(head, slower) if slower else ["Nowhere."]
    out += ["", "## Where the first choice got faster", ""]
    faster = _moved(own, "faster")
    out += _table(head, faster) if faster else ["Nowhere."]
    out += [
        "",
        "## Is cuDNN's first choice its fastest engine?",
        "",
        "Of the cases for which cuDNN offers more than one configuration that is right.",
        "",
    ]
    out += _table(
        ["cuDNN", "cases", "another is faster", "first / fastest, median", "most"],
        [
            [
                v,
                str(count),
                f"{len(found)} ({len(found) / count:.0%})",
                f"{statistics.median(r for r, *_ in found):.2f}" if found else "",
                f"{max(found)[0]:.2f}" if found else "",
            ]
            for v, (count, found) in choices.items()
        ],
    )
    if choices:
        newest = list(choices)[-1]
        rows = [
            [_cell(name), f"{ratio:.2f}", chosen, fastest]
            for ratio, name, chosen, fastest in sorted(choices[newest][1], reverse=True)
        ]
        out += [
            "",
            f"With {newest}:",
            "",
            *(
                _table(["case", "first / fastest", "first choice", "fastest"], rows)
                if rows
                else ["Everywhere."]
            ),
        ]
    out += ["", "## Plots", "", *(f"![{group}]({name})" for group, name in figures), ""]
    return "\n".join(out)


def groups_of(record):
    """{group: [cases]} as the rows name them."""
    out = collections.OrderedDict()
    for case in record.cases.values():
        if not case.sides:
            continue
        rows = [row for rows in case.rows.values() for row in rows.values()]
        out.setdefault(next((row["group"] for row in rows if row["group"]), "cases"), []).append(
            case
        )
    return out


def main(argv):
    parser = argparse.ArgumentParser(description="An atlas of the times in records of facts bench.")
    parser.add_argument("inputs", nargs="+", metavar="RECORD")
    parser.add_argument("-o", "--output", required=True, metavar="DIR")
    args = parser.parse_args(argv)
    try:
        record, files = bench.load(args.inputs)
    except reader.InputError as error:
        print(f"atlas.py: {error}", file=sys.stderr)
        return 2
    reader.warn(files, "atlas.py")
    if not any(case.sides for case in record.cases.values()):
        print("atlas.py: no times in these records", file=sys.stderr)
        return 5
    folder = pathlib.Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    versions = sorted(
        {version_of(s) for c in record.cases.values() for s in c.sides.values()}, key=version_key
    )
    figures = []
    for group, cases in groups_of(record).items():
        name = re.sub(r"[^A-Za-z0-9.-]+", "-", group) + ".svg"
        (folder / name).write_text(draw(group, cases, versions), encoding="utf-8")
        figures.append((group, name))
    (folder / "atlas.md").write_text(page(record, figures), encoding="utf-8")
    print(folder / "atlas.md")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
