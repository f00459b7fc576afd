"""README's table of results: a row for each cuDNN version, the worst answer of each case counted."""

from facts_reports.page import issues
from facts_reports.read import text
from facts_reports.read.vocabulary import BY_WORD, KNOWN

_NAMED = 3
COLUMNS = ("pass", "unsupported", "known failures", "new failures", "not answered")


def _column(outcome, finding):
    kind = BY_WORD[outcome].kind
    if kind in ("failure", "error"):
        return "known failures" if finding == KNOWN else "new failures"
    return {"good": "pass", "refused": "unsupported"}.get(kind, "not answered")


def _failures(store):
    """How many files of cases/known explain the known failures, and the documented ones with the most cases."""
    files = {}
    for _, row in store.rows("finding=?", (KNOWN,)):
        for one in issues.of_row(row)[:1]:
            title = one["title"] if one["contract"] == "documented" else ""
            files.setdefault((one["id"], title), set()).add(row["case"])
    most = sorted(files.items(), key=lambda item: (-len(item[1]), item[0]))
    if most:
        yield f"\n{text.count(len(files), 'file')} of cases/known explain the known failures. The documented ones with the most cases:\n"
    for (name, title), cases in [item for item in most if item[0][1]][:_NAMED]:
        yield text.wrapped(f"- {text.markdown(title)} `{name}`, {text.count(len(cases), 'case')}")


def table(store, inputs):
    """The table of the project's README, with the day of the newest run and the command that prints it."""
    day = max((str(r.get("started", "")) for r in store.runs.values()), default="")[:10]
    worst = {}
    for case, version, device, *how in store.db.execute(
        "SELECT case_name, cudnn, device, outcome, finding FROM row ORDER BY rank DESC, finding"
    ):
        # the worst of a case's configurations comes last
        worst[case, version, device] = _column(*how)
    versions = dict.fromkeys(version for _, version in store.builds())
    devices = ", ".join(store.devices())
    lines = [
        f"{text.markdown(devices)}, {text.markdown(day) or 'not dated'}. Printed by",
        "",
        f"    python3 ci/docs/page.py readme {' '.join(text.shell(i) for i in inputs)}",
        "",
        "| cuDNN | cases | " + " | ".join(COLUMNS) + " |",
        "|---" + "|--:" * (len(COLUMNS) + 1) + "|",
    ]
    for version in versions:
        counts = [column for (_, of, _), column in worst.items() if of == version]
        cells = [f"{n:,}" for n in (len(counts), *(counts.count(c) for c in COLUMNS))]
        lines.append(f"| {text.markdown(version)} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, *_failures(store)]) + "\n"
