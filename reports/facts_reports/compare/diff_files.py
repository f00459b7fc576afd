"""The answer of a diff for programs: JSON, JUnit, and GitHub annotations."""

import json
import sys
from pathlib import Path

from ..read import files, junit, text
from ..read.separate import members
from ..read.vocabulary import BY_CHANGE, CHANGES, JOINED
from . import answer, diff_words
from . import diff as d

ANNOTATIONS = 10
_CASES = 20  # named for each group, in JUnit


def about(diff, group):
    """A group as an object."""
    before, after = diff_words.before_after(diff, group)
    pair = diff.sides.slots[group.slot]
    return {
        "class": group.word,
        "fails": group.word in diff.fail_on and group.news > 0,
        "change": group.alike,
        "where": group.where,
        "words": diff_words.in_words(diff, group),
        "entry": diff.entries[group.alike] if group.word in JOINED else None,
        "cases": group.hits,
        "of": group.total,
        "others": group.others,
        "of_others": group.among,
        "among": BY_CHANGE[group.word].among,
        "also": group.also,
        "known": group.known,
        "example": group.case,
        "baseline": {"build": pair.first[0], "device": pair.first[1], "answer": before},
        "candidate": {"build": pair.second[0], "device": pair.second[1], "answer": after},
        "configuration": group.engine or None,
        "ratio": round(group.ratio, 4) if 0 < group.ratio < 1e300 else None,
        "repro": d.repro(diff, group),
        "bisect": d.bisect(diff, group) or None,
    }


def json_lines(diff):
    """The answer, then every group, one object a line."""
    targets = [
        {"baseline": pair.first, "candidate": pair.second, "grades": grades}
        | {"counts": {w: [a, b] for w, a, b in counts}}
        for pair, grades, counts in diff_words.targets_words(diff)
    ]
    found = answer.of(diff)
    words = [c.word for c in CHANGES if diff.total(c.word)]
    classes = {
        w: {"cases": diff.total(w), "known": diff.known(w), "fails": w in diff.fail_on}
        for w in words
    }
    head = {
        "decision": found.decision,
        "answer": found.first,
        "known": found.known,
        "counts": found.counts,
        "model": [vars(one) for one in diff.models.values()],
        "exit": found.code,
        "compared": diff.compared(),
        "same": diff.same,
        "axes": diff.axes,
        "classes": classes,
        "complete": diff.complete(),
        "unreadable": [record.unreadable() for record in diff.sides.records],
        "fail_on_both": diff.fail_both,
        "notes": list(diff_words.notes(diff)),
        "not_asked": diff.ways("not asked"),
        "new_knobs": diff.ways("new knobs"),
        "renumbered": [
            {"graph": graph, "old": old, "new": new, "cases": cases}
            for (graph, old, new), cases in sorted(diff.numbers.items())
        ],
        "targets": targets,
        "provenance": list(diff_words.provenance(diff)),
        "scope": diff_words.SCOPE,
    }
    yield json.dumps({"diff": head}, ensure_ascii=False)
    for group in diff.groups:
        yield json.dumps({"group": about(diff, group)}, ensure_ascii=False)


def write_junit(diff, path):
    """A suite for each class, a test case for each group; what is the same is counted."""
    suites, total, failed = [], 0, 0
    for change in CHANGES:
        groups = [g for g in diff.groups if g.word == change.word]
        if not groups:
            continue
        fails, open_class = change.word in diff.fail_on, diff.code_of(change) > 1
        bad, other = sum(g.news > 0 for g in groups), "error" if open_class else ""
        tags = ["failure" if fails and g.news else other for g in groups]
        body = "".join(_junit_case(diff, g, tag) for g, tag in zip(groups, tags))
        counts = {"tests": len(groups), "failures": bad if fails else 0}
        counts["errors"] = len(groups) if open_class else 0
        about_it = {"cases": diff.total(change.word), "known": diff.known(change.word)}
        taken = sum(_seconds(diff, g) for g in groups)
        suites.append(junit.suite(change.word, taken, counts, about_it, body))
        total, failed = total + len(groups), failed + bad * fails
    found = answer.of(diff)
    sides = [sorted({slot[side][0] for slot in diff.sides.slots}) for side in (0, 1)]
    properties = dict(zip(("baseline", "candidate"), map(", ".join, sides)))
    properties |= {"devices": found.devices, "link": diff.link or ""}
    properties |= {"compared": diff.compared(), "same": diff.same}
    about = found.titled, found.code, diff.command
    _write_suites(path, about, properties, suites, total, failed, sum(diff.seconds))


def _seconds(diff, group):
    """What asking about a group's cases took, on both sides."""
    return sum(diff.seconds[i] for i in members(group.members, len(diff.names)))


def _write_suites(path, about, properties=(), suites=(), total=0, failed=0, seconds=0.0):
    """The decision as a test of its own, then the other suites. `about`: first line, exit code, command; `seconds`: what all took."""
    headline, code, command = about
    said, bad = text.line(headline, 500), int(code == 1)
    tag = {0: "", 1: "failure"}.get(code, "error")
    case = junit.case("facts.diff", "decision", seconds, tag, said, "", "" if code else said)
    counts = {"tests": 1, "failures": bad, "errors": int(code > 1)}
    answer = junit.suite("decision", seconds, counts, dict(properties), case)
    head = f'{junit.HEAD}<testsuites name="facts {command}" tests="{total + 1}" failures="{failed + bad}">\n'
    files.write(path, head + "".join([answer, *suites]) + "</testsuites>\n")


def _junit_case(diff, group, tag):
    before, after = diff_words.before_after(diff, group)
    where = diff_words.in_words(diff, group)
    message = text.line(f"{group.hits:,} {group.word}: {where}: {group.alike}", 500)
    # without a count: the same test from run to run
    name = text.line(": ".join(x for x in (group.word, group.engine, where, group.name) if x), 500)
    cases = diff.cases_of(group)[:_CASES]
    rest = group.hits - len(cases)
    detail = [
        group.where or "",
        diff_words.exactness(diff, group),
        f"{before} -> {after}",
        d.repro(diff, group),
        d.bisect(diff, group),
        *cases,
        f"and {rest:,} more" if rest else "",
    ]
    details = "\n".join(text.line(line, 3500) for line in detail if line)
    classname = "facts.diff." + group.word.replace(" ", "_")
    return junit.case(classname, name, _seconds(diff, group), tag, message, group.word, details)


def _workflow(value, title=False):
    """Text of a GitHub workflow command: it ends at a newline, a property also at , and :."""
    value = text.line(value, 900).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return value.replace(":", "%3A").replace(",", "%2C") if title else value


def decided(words, headline, code):
    """The decision as an annotation."""
    return f"::{'error' if code else 'notice'} title={_workflow('FACTS: ' + words, True)}::{_workflow(headline)}"


def annotations(diff):
    """At most ten lines ::error, ::warning or ::notice: the decision, then the worst groups."""
    found = answer.of(diff)
    out = [decided(found.decision, f"{found.titled} {diff.link or ''}".rstrip(), found.code)]
    for group in diff.groups[: ANNOTATIONS - 1]:
        fails = group.word in diff.fail_on and group.news > 0
        kind = "warning" if BY_CHANGE[group.word].exit or group.known else "notice"
        kind = "error" if fails else kind
        title = f"FACTS: {group.hits:,} {group.word}"
        title += f" ({group.known:,} known)" if group.known else ""
        where = f"{diff_words.in_words(diff, group)} ({diff_words.exactness(diff, group)})"
        said = f"{where}: {group.alike}. {d.repro(diff, group)}"
        out.append(f"::{kind} title={_workflow(title, True)}::{_workflow(said)}")
    return out


# ---- no comparison ----


def unasked(why, args):
    """CANNOT TELL in the form that the options want: the builds could not be asked, so there is no record."""
    sides = f"cuDNN {args.baseline} -> {args.candidate}"
    headline = f"{answer.CANNOT_TELL} ({sides}): {text.line(why, 500)}."
    said, titled = headline, f"FACTS: {headline}"
    if args.json:
        about = {"diff": {"decision": answer.CANNOT_TELL, "answer": headline}}
        said = json.dumps(about, ensure_ascii=False)
    elif args.markdown:
        said = f"**{text.markdown(titled, 2000)}**"
    print(said)
    if args.annotations:
        out = sys.stderr if args.json or args.markdown else sys.stdout
        print(decided(answer.CANNOT_TELL, titled, 3), file=out)
    if args.junit:
        _write_suites(Path(args.junit), (titled, 3, "gate"))
