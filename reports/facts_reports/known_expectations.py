"""What the build makes of the known failures for the harness: lines of expectations."""

_HEAD = "# Made from cases/known by ci/generate_known.py. Change the files there.\n"


def expectations(entries, before_guards=False):
    """The text of known.expect, as harness/src/case/suites/expectation_lines.c reads it. `before_guards`: see known.Failure."""
    lines = [_HEAD.rstrip("\n")]
    for entry in entries:
        for failure in entry.failures:
            for where, suspected in failure.expectations(before_guards):
                verdict = failure.fields["verdict"] + (
                    "?" if suspected and not failure.fields["verdict"].endswith("?") else ""
                )
                note = failure.fields.get("note", "")
                if suspected:
                    note = (
                        note + "; " if note else ""
                    ) + "suspected: seen on another architecture with the same engine"
                lines.append(f"# failure: {failure.name}")
                everywhere = before_guards and failure.guarded  # a guard refuses whatever was asked
                lines.append(
                    f"suites: {'all' if everywhere else failure.fields.get('suites', 'regress')}"
                )
                lines.append(
                    f"{failure.fields['date']} {verdict} {where} {failure.link.replace(' ', '_')}"
                    + (f" # {note}" if note else "")
                )
    return "\n".join(lines) + "\n"
