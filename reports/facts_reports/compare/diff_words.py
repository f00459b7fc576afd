"""All of a diff in words, after its answer: for a terminal, and as Markdown for a pull request."""

import re

from ..known import knowledge
from ..read import features, text, words
from ..read.separate import members
from ..read.vocabulary import BY_CHANGE, JOINED, OUTCOMES
from . import answer, times
from . import diff as d
from .changes import state_words
from .sides import worst

SCOPE = "FACTS gates fused attention; a convolution or RNN regression will pass it."
MARKDOWN_BYTES = 60000  # a comment of a pull request may have 65,536 characters
_TARGETS, _NAMED = 12, 6
NEXT = "Next: facts bisect finds the version; --write-accept prints the lines for --accept; docs/gate.md, After DO NOT MOVE."


# ---- what follows ----


def _some(parts, between=", ", most=_NAMED):
    parts = list(parts)
    return between.join(parts[:most]) + (" …" if len(parts) > most else "")


def _most_first(ways):
    return sorted(ways.items(), key=lambda item: -item[1])


def notes(diff):
    """What the numbers alone do not say, a sentence each."""
    if diff.fail_both:
        yield f"{text.count(diff.fail_both, 'case fails', 'cases fail')} alike on both sides ({diff.known_both:,} known)."
    if diff.total("reason changed"):
        yield f"{text.count(diff.total('reason changed'), 'case is', 'cases are')} refused for another reason."
    if diff.unmet:
        do, their = ("does", "its") if diff.unmet == 1 else ("do", "their")
        yield f"{text.count(diff.unmet, 'case')} of the second side {do} not meet {their} expectation (facts expect check)."
    grades = [
        {g for slot in diff.sides.slots for g in diff.record(side).targets[slot[side]]["grades"]}
        for side in (0, 1)
    ]
    if "measured" in grades[1] and grades[0] == {"decided"}:
        yield "The first side was only decided, the second was measured. A case that fails now may have failed before."
    for side, alone in zip(("first", "second"), diff.alone):
        if alone:
            yield f"Only the {side} side has {_some(f'{b} on {v}' for b, v in alone)}."
    cut = [
        f"{text.line(f.name, 120)}: {text.count(f.unreadable, 'unreadable line') if f.unreadable else 'the record has no end'}"
        for f in diff.incomplete()
    ]
    if cut:
        yield f"Incomplete: {_some(cut, '; ')}."
    yield from diff.accept.notes() if diff.accept else []
    runs = [record.runs.values() for record in diff.sides.records]
    hashes = [{str(run.get("suite_hash")) for run in some} for some in runs]
    if len(hashes) == 2 and hashes[0] != hashes[1]:
        yield "The records have different suites or shards: cases of only one record are missing."


def not_asked(diff):
    """Why FACTS asked only one of two builds, a line each."""
    ways = _most_first(diff.ways("not asked"))
    if ways:
        yield f"FACTS did not ask one of the two builds about {text.count(diff.total('not asked'), 'case')}. FACTS itself refuses them there, so they show no change of cuDNN:"
    for way, cases in ways[:_NAMED]:
        yield f"    {cases:,} on the {way}"
    if len(ways) > _NAMED:
        yield f"    and {len(ways) - _NAMED:,} more reasons"


def engines_words(diff):
    """Changes of all engines alike: other numbers, new knobs. A line each."""
    moved = {}
    for graph, old, new in sorted(diff.numbers):
        moved.setdefault(graph, []).append(f"{old} -> {new}")
    if moved:
        said = "; ".join(f"{graph} {', '.join(some)}" for graph, some in moved.items())
        yield f"cuDNN renumbered engines: {said}. Their knobs and notes are the same, so they count as the same engines."
    ways = _most_first(diff.ways("new knobs"))
    said = [f"{way} ({text.count(cases, 'case')})" for way, cases in ways]
    if said:
        yield f"The engines have other knobs: {_some(said, most=_NAMED // 2)}. FACTS cannot compare the old and the new settings."


def exactness(diff, group):
    """How well the predicate separates: both ways. Of an entry: what is known of it."""
    if group.word in JOINED:
        one = diff.entries[group.alike]
        return f"{knowledge.known_words(one)}; {knowledge.about(one)}"
    among = BY_CHANGE[group.word].among
    if group.where is None:
        return f"no predicate separates these {group.hits:,} of {text.count(group.total, 'case')} from the {text.count(group.among, 'other case')} {among}"
    if group.where == "":
        return f"all {text.count(group.total, 'case')} {among}"
    hits = f"the predicate fits {'all ' if group.hits == group.total > 1 else f'{group.hits:,} of ' if group.hits < group.total else ''}{text.count(group.total, 'case')}"
    also = f"; it also fits {text.count(group.also, 'case')} that changed in another way"
    also = also if group.also else ""
    if not group.among:
        return f"{hits}; there are no other cases {among}{also}"
    if group.among == 1:
        return f"{hits}, and {'' if group.others else 'not '}the other case {among}{also}"
    return f"{hits}, and {'none' if not group.others else f'{group.others:,}'} of the {text.count(group.among, 'other case')} {among}{also}"


def _ratio(group):
    said = "from nothing" if group.ratio == float("inf") else f"up to {group.ratio:.3g} times"
    return said if group.ratio else ""


def detail(group):
    """How it changed, where the example does not say it better (its reason has its own numbers, or names types)."""
    is_named = " -> " in group.alike and re.findall(r"#|[A-Za-z_]\d", group.alike)
    alike = "" if group.word in JOINED or is_named else group.alike
    return "; ".join(filter(None, (alike, group.engine, _ratio(group))))


def _indented(line):
    return [f"    {line}"] if line else []


def on(diff, group):
    """The devices of a group, where others were compared too and its predicate names none."""
    slots = diff.sides.slots
    pairs = members(group.members, len(diff.names))
    mine = dict.fromkeys(slots[diff.slots[pair]].second[1] for pair in pairs)
    named = {"device", "sm"} & set(re.findall(r"\w+", group.where or ""))
    shown = (words.shown(diff.record(1).runs, device) for device in mine)
    return "" if named or len(mine) == len(slots) else ", ".join(shown)


def in_words(diff, group):
    """Where a group is, in words; with the pass where all of its cases have one, which those around it may not show."""
    if group.word in JOINED:
        one = diff.entries[group.alike]
        return f"{one['title'].rstrip('.')} ({one['id']})"
    passes = {c[5:8] for c in diff.cases_of(group) if c.startswith("pass=")}
    about = passes.pop() if len(passes) == 1 else ""
    said = features.words_of(group.where, about)
    is_open = about and group.where and "ward" not in said
    return said + {"fwd": ", forward", "bwd": ", backward"}[about] if is_open else said


def _counted(group):
    mark, word = BY_CHANGE[group.word].mark, group.word
    if word in JOINED:
        return f"{mark} {word} in {text.count(group.hits, 'case')}"
    return f"{mark} {group.hits:,} {word}"


def _predicate(group):
    return f"{group.where}: " if group.where else ""


_MEASURES = {"slower": ("exec_us", "µs"), "plan slower": ("plan_ms", "ms")}
_MEASURES["workspace larger"] = ("workspace_bytes", "bytes")


def before_after(diff, group):
    """The answer to the example on each side."""
    first, second = diff.sides.answers(group.slot, group.case)
    ends = [worst(answers) if answers else None for answers in (first, second)]
    if group.engine:
        same = d.renumbered(diff, group.slot, group.case, first)
        ends = _configuration(first, same, second, group) or ends
    said = [state_words(end) if end else "no answer" for end in ends]
    if group.word in ("engine changed", "knobs changed"):
        said = [_offered_words(answers[0]) for answers in (first, second)]
    is_time = group.word in ("slower", "time unknown") and diff.times
    timed = d.timed(diff, group.slot, group.case) if is_time else []
    if timed:
        said = [f"{times.microseconds(side, config).middle:,.6g} µs" for side, config in timed]
    elif group.ratio:
        name, unit = _MEASURES[group.word]
        said = [f"{getattr(answers[0], name):,.6g} {unit}" for answers in (first, second)]
    return said


def _configuration(first, renumbered, second, group):
    """The configuration of engine=all that a group names, before and after."""
    for before, same in zip(first, renumbered):
        knobs = "".join(f" {k}={v}" for k, v in same.chosen[2])
        if group.engine == f"engine {same.chosen[1]}{knobs}":
            for after in second:
                if after.chosen[1:] == same.chosen[1:]:
                    return before, after
    return None


def _offered_words(answer):
    indices = list(dict.fromkeys(index for index, *_ in answer.offered))
    knobs = " ".join(f"{k}={v}" for k, v in answer.offered[0][1]) if answer.offered else ""
    said = f"{answer.chosen[0]} engines {' '.join(indices) or 'none'}"
    return f"{said} ({knobs})" if knobs else said


def targets_words(diff):
    """What was compared with what, a line for each pair of targets."""
    for slot, pair in enumerate(diff.sides.slots[:_TARGETS]):
        grades = [
            "/".join(sorted(diff.record(side).targets[t]["grades"])) or "nothing answered"
            for side, t in enumerate(pair)
        ]
        old, new = (diff.counts.get((slot, side), {}) for side in (0, 1))
        counts = [(o.word, old.get(o.word, 0), new.get(o.word, 0)) for o in reversed(OUTCOMES)]
        yield pair, grades, [(word, *both) for word, *both in counts if any(both)]


def _counts(counts, arrow):
    """How many cases ended how: 'pass 12 -> 11'."""
    return ", ".join(
        f"{word} {old:,}" + f" {arrow} {new:,}" * (old != new) for word, old, new in counts
    )


def provenance(diff):
    """Where the answers come from: one line a side."""
    for side in (0, 1):
        record = diff.record(side)
        builds, every = {slot[side][0] for slot in diff.sides.slots}, list(record.runs.values())
        asked = [{t.get("build") for t in text.objects(run, "targets")} for run in every]
        runs = [run for run, some in zip(every, asked) if some & builds] or every

        def said(key, limit=40):
            values = sorted({text.line(str(r.get(key)), limit) for r in runs if r.get(key)})
            return _some(values, most=3) or "unknown"

        checked = {
            str(lib.get("record"))
            for t, about in record.targets.items()
            if t[0] in builds
            for lib in text.objects(about.get("line", {}), "libraries")
            if lib.get("in_build") is not False
        }
        proof = "match their package" if checked <= {"ok"} else "not verified"
        proof = f", libraries {proof}" if checked else ""
        yield f"{', '.join(text.line(b, 60) for b in sorted(builds))}: suite {said('suite_hash')}, {said('started')[:60]}, FACTS {said('facts')}{proof}"


def _more_words(rest):
    return f"and {text.count(len(rest), 'more group')} ({text.count(sum(g.hits for g in rest), 'case')}). The same command with --json lists all of them."


def _axes_words(diff):
    if len(diff.axes) > 1:
        return "Build and device differ: either may be the cause."
    return f"The {diff.axes[0]} differs." if diff.axes else "The same targets were asked twice."


def as_text(diff):
    found = answer.of(diff)
    lines = [found.first, *filter(None, (found.known, found.counts, *found.model.split("\n"))), ""]
    for pair, grades, counts in targets_words(diff):
        build, other = (target[0] for target in pair)
        device, last = (d.shown(diff, target, side) for side, target in enumerate(pair))
        name = f"{build}{f' on {device}' * (device != last)} -> {other} on {last}"
        lines += [f"{name} ({' -> '.join(dict.fromkeys(grades))}): {_counts(counts, '->')}"]
    if len(diff.sides.slots) > _TARGETS:
        lines.append(f"and {len(diff.sides.slots) - _TARGETS} more pairs of targets")
    for group in diff.groups[: d.ROWS]:
        before, after = before_after(diff, group)
        known = f", {group.known:,} known" if group.known else ""
        where = f" on {devices}" if (devices := on(diff, group)) else ""
        lines += [
            "",
            f"{_counted(group)}{known}: {in_words(diff, group)}{where}",
            f"    {_predicate(group)}{exactness(diff, group)}",
            *_indented(detail(group)),
            f"    e.g. {before}  ->  {after}",
            f"    {d.repro(diff, group)}",
            *_indented(d.bisect(diff, group)),
        ]
    if rest := diff.groups[d.ROWS :]:
        lines += ["", _more_words(rest)]
    lines += ["", NEXT] if found.code == 1 else []
    asked = list(not_asked(diff))
    lines += ["", *asked] if asked else []
    lines += ["", " ".join([_axes_words(diff), *notes(diff)])]
    lines += [*engines_words(diff), *provenance(diff), SCOPE]
    return "".join(text.line(line, 4000) + "\n" for line in lines)


def as_markdown(diff):
    """Fits a comment of a pull request, always."""
    for most in range(d.ROWS, -1, -1):
        body = _markdown(diff, most)
        if len(body.encode()) <= MARKDOWN_BYTES:
            return body
    return text.line(answer.of(diff).titled, 1000) + "\n\n" + SCOPE + "\n"


def _markdown(diff, most):
    shown, rest, found = diff.groups[:most], diff.groups[most:], answer.of(diff)
    linked = f" [Page]({diff.link})" if diff.link else ""
    out = [f"**{text.markdown(found.titled, 2000)}**{linked}", ""]
    said = (found.known, found.counts, *found.model.split("\n"))
    out += [text.markdown(line, 2000) + "\n" for line in said if line]
    if shown:
        out += ["| | change | cases | where | before → after (one case) |", "|---|---|---|---|---|"]
        for i, group in enumerate(shown, 1):
            before, after = before_after(diff, group)
            where = text.markdown(in_words(diff, group))
            where += f"<br>{text.code(group.where)}" if group.where else ""
            where += f" on {text.markdown(devices)}" if (devices := on(diff, group)) else ""
            what = f"{BY_CHANGE[group.word].mark} **{group.word}**"
            what += f" ({group.known:,} known)" if group.known else ""
            what += f": {text.markdown(detail(group))}" if detail(group) else ""
            out += [
                f"| {i} | {what} | {group.hits:,} | {where}<br>{text.markdown(exactness(diff, group))} | {text.markdown(before)} → {text.markdown(after)} |"
            ]
        out.append("")
    out += [_more_words(rest), ""] if rest else []
    if shown:
        commands = []
        for i, group in enumerate(shown, 1):
            commands += filter(None, (f"# {i}", d.repro(diff, group), d.bisect(diff, group)))
        fence = text.ticks("\n".join(commands), 3)
        out += [f"{fence}sh", *(text.line(c, 3500) for c in commands), fence, ""]
    out += [NEXT, ""] if found.code == 1 else []
    if asked := list(not_asked(diff)):
        out += [asked[0], "", *(f"- {text.markdown(line.strip())}" for line in asked[1:]), ""]
    out += ["| compared | | before → after |", "|---|---|---|"]
    for pair, grades, counts in targets_words(diff):
        shown = (d.shown(diff, one, side) for side, one in enumerate(pair))
        named = ([build for build, _ in pair], shown)
        target = " on ".join(text.markdown(" → ".join(dict.fromkeys(both))) for both in named)
        grade = " → ".join(dict.fromkeys(grades))
        out.append(f"| {target} | {grade} | {_counts(counts, '→')} |")
    if len(diff.sides.slots) > _TARGETS:
        out.append(f"| and {len(diff.sides.slots) - _TARGETS} more | | |")
    said = [_axes_words(diff), *notes(diff), *engines_words(diff), *provenance(diff)]
    return "\n".join([*out, "", *(f"- {text.markdown(one)}" for one in said), "", SCOPE]) + "\n"
