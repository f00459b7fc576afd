"""Which row counts when records hold several rows about one question. docs/records.md, "Going on, and joining", states the rule.

A question is a case on a (build, device); with engine=all also a configuration. Each reader puts its rows into the table `seen` of a Seen, and selects
from that_count().
"""

from . import text
from .vocabulary import OUTCOMES, RANK, is_finding

_QUESTION = "case_name, build, device, config"
_COLUMNS = f"id INTEGER PRIMARY KEY, {_QUESTION}, answered INT, started TEXT, worst INT, file INT, asked INT"
# `asked` is the number of a run's target; `stale` has those of other contents than the file's last run.
_HASHES = {  # of a run's target
    "build": ("libraries_hash", "libraries"),
    "device": ("description_hash", "descriptions"),
}
_STALE = "CREATE TABLE stale(asked INT)"
_ORDER = "answered DESC, latest DESC, worst DESC, id DESC"


def config(row):
    """With engine=all a configuration is a question of its own; otherwise the chosen engine's place is no identity."""
    if row.get("config") is not None and "engine=all" in row["case"].split():
        return row["config"]
    return -1


def is_answer(row):
    """False for a row without an answer: inconclusive because the worker timed out in FACTS's own code (`stage` names the code)."""
    return not (row["verdict"] == "inconclusive" and row.get("stage"))


def that_count(where="1"):
    """A table expression: of each question the row of `seen` that counts. `where` is ours, never input."""
    return (
        f"(SELECT * FROM seen WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY {_QUESTION} ORDER BY {_ORDER}) AS place"
        f" FROM (SELECT id, {_QUESTION}, answered, worst, max(started) OVER (PARTITION BY {_QUESTION}, file, answered) AS latest"
        f" FROM seen WHERE {where} AND asked NOT IN stale)) WHERE place = 1))"
    )


class Seen:
    """The table `seen` of a database, with the columns `more` of its reader. Give it every line of a file, then call end_of_file()."""

    def __init__(self, db, more):
        self._db, self._batch, self._file = db, [], 0
        db.execute(f"CREATE TABLE seen({_COLUMNS}, {more})")
        db.execute(_STALE)
        places = _COLUMNS.count(",") + more.count(",") + 1
        self._insert = f"INSERT INTO seen VALUES(NULL{',?' * places})"
        self._started = {}  # by run
        self._about = [{}]  # by number: what its run says of the target
        self._numbers, self._last = {}, {}  # of this file: by run and target; by target

    def note(self, word, value):
        """A line that is no row."""
        if word == "run":
            self._note_run(str(value.get("id") or ""), value)
        elif word == "end" and value.get("run") == "merge":
            self._last = {}  # the merge chose among these rows

    def _note_run(self, run, value):
        self._started[run] = str(value.get("started", ""))
        for about in text.objects(value, "targets"):
            device = "*" if about.get("kind") == "gpu" else str(about.get("device", ""))
            target = str(about.get("build", "")), device  # a plan does not know a GPU's product
            self._last[target] = self._numbers[(run, *target)] = len(self._about)
            self._about.append({**about, "run": run})

    def add(self, row, *more):
        """A row, and its values of `more`."""
        run, build, device = row["run"], row["build"], row["device"]
        at = self._numbers.get((run, build, device)) or self._numbers.get((run, build, "*"), 0)
        worst = len(OUTCOMES) - RANK[row["verdict"]] if is_finding(row["verdict"]) else 0
        worst += 0.5 * (row.get("group") != "fuzz/repeated")  # a repeat counts where it is worse
        rule = is_answer(row), self._started.get(run, ""), worst, self._file, at
        self._batch.append((row["case"], build, device, config(row), *rule, *more))
        if len(self._batch) >= 5000:
            self._flush()

    def _flush(self):
        self._db.executemany(self._insert, self._batch)
        self._batch = []

    def end_of_file(self):
        self._flush()
        for (_, *target), at in self._numbers.items():
            last = self._last.get(tuple(target), at)
            if self._about[at].get("content") != self._about[last].get("content"):
                self._db.execute("INSERT INTO stale VALUES(?)", (at,))
        self._file, self._numbers, self._last = self._file + 1, {}, {}

    def two_things(self, of, args=(), names=("build", "device")):
        """A sentence if rows of one build have different libraries, or rows of one device different descriptions; else "". `of`: FROM what these rows come."""
        found = {}
        for (at,) in self._db.execute(f"SELECT DISTINCT asked FROM {of} ORDER BY asked", args):
            for name in names:
                about, (member, _) = self._about[at], _HASHES[name]
                if about.get(member):
                    key = name, str(about.get(name))
                    found.setdefault(key, {})[str(about[member])] = about["run"]
        for (name, word), runs in found.items():
            if len(runs) > 1:
                first, second, *_ = (text.line(run, 60) for run in runs.values())
                return f"the runs {first} and {second} have different {_HASHES[name][1]} under the name {text.line(word, 60)}"
        return ""
