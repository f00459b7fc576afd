"""Which row counts when records hold several rows about one question. docs/records.md, "Going on, and joining", states the rule.

A question is a case on a (build, device); with engine=all also a configuration. Each reader puts its rows into a table `seen` with the columns of
COLUMNS, and selects from that_count().
"""

COLUMNS = "id INTEGER PRIMARY KEY, case_name TEXT, build TEXT, device TEXT, config INT, answered INT, started TEXT, attempt INT"


def columns(row, started):
    """The values of COLUMNS after `id`. `started`: when the row's run began."""
    return (
        row["case"],
        row["build"],
        row["device"],
        config(row),
        is_answer(row),
        started,
        row["attempt"],
    )


def config(row):
    """With engine=all a configuration is a question of its own; otherwise the chosen engine's place is no identity."""
    if row.get("config") is not None and "engine=all" in row["case"].split():
        return row["config"]
    return -1


def is_answer(row):
    """False for a row without an answer: inconclusive because the worker timed out in FACTS's own code (`stage` names the code)."""
    return not (row["verdict"] == "inconclusive" and row.get("stage"))


# columns() of a question, and of what chooses among its rows: the greatest counts, and of equal ones the last.
_QUESTION, _CHOICE = ("case_name", "build", "device", "config"), ("answered", "started", "attempt")


def that_count(where="1"):
    """A table expression: of each question the row of `seen` that counts. `where` is ours, never input."""
    return (
        f"(SELECT * FROM seen WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY {', '.join(_QUESTION)}"
        f" ORDER BY {', '.join(f'{name} DESC' for name in (*_CHOICE, 'id'))}) AS place FROM seen WHERE {where}) WHERE place = 1))"
    )
