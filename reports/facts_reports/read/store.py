"""Rows in SQLite: the row that counts of every question (latest.py); what the plan names but nobody answered is there as `missing`."""

import json
import marshal
import math
import re
import sqlite3
from functools import lru_cache

from . import latest, reader, text
from .versions import build_key, version_key
from .vocabulary import NEWS, RANK, outcome_of, standing

# What questions are asked about is a column of its own: SQLite would read the whole row for it. `data` is the row as marshal packs it: our own bytes,
# written and read by one process, in a third of the time that JSON takes.
_COLUMNS = "run TEXT, cudnn TEXT, version BLOB, outcome TEXT, rank INT, finding INT, suite_group TEXT, sm INT, grade TEXT, wall_ms REAL, data BLOB"


def _target(about):
    return str(about.get("build", "")), str(about.get("device", ""))


def name_gpus(runs, target_lines):
    """Gives each planned GPU of `runs` ({id: run object}) the name that its rows have; returns {name: number, as --device wants it}.

    A plan names a GPU by its number. The target line has the number and the name. A target line without a number (the first records) is the one device
    of its build that the plan does not name.
    """
    numbers = {}
    for run, about in runs.items():
        plan = text.objects(about, "targets")
        named = set(map(_target, plan))
        said = [t for t in target_lines if str(t.get("run", "")) == run]
        said = [(*_target(t), t.get("planned")) for t in said]
        exact = {(build, str(number)): device for build, device, number in said if number}
        for t in plan:
            build, device = _target(t)
            rest = {d for b, d, number in said if b == build and not number}
            rest -= {d for b, d in named if b == build}
            if (build, device) in exact:
                t["device"] = exact[(build, device)]
            elif t.get("kind") == "gpu" and len(rest) == 1:
                t["device"] = rest.pop()
            if re.fullmatch(r"gpu\d{1,3}", device):
                numbers[str(t["device"])] = device[3:]
    return numbers


@lru_cache(maxsize=256)
def _version(cudnn):
    """A version as bytes that sort as versions do: 9.9.0 stands before 9.14.0."""
    return b"".join(part.to_bytes(4, "big") for part in version_key(cudnn))


def _most(run):
    """Cases times targets: a run cannot plan more."""
    cases, targets = run.get("cases"), text.objects(run, "targets")
    known = isinstance(cases, int) and cases > 0 and targets
    return cases * len(targets) if known else math.inf


def wall_ms(row):
    value = row.get("wall_ms")
    return value if isinstance(value, (int, float)) and 0 <= value < 1e12 else 0


class Store(reader.Sink):
    """Fill it with reader.read_file(), call finish(), then ask."""

    def __init__(self):
        self.db = sqlite3.connect("")  # a file of SQLite's own, gone at the end
        self.db.execute("PRAGMA cache_size=-65536")
        self._seen = latest.Seen(self.db, _COLUMNS)
        self.runs, self.targets, self.starts, self.records = {}, {}, {}, {}
        self.target_lines, self.files, self.turns = [], [], []
        self._answers = {}  # to what is asked often: nothing changes after finish()
        self._builds = self._totals = self.findings = None
        self.gpus = {}  # device: its number, as --device wants it
        self.superseded = self._planned_twice = 0

    # ---- filling ----

    def note(self, word, value):
        run = str(value.get("id") or value.get("run") or "")
        self._seen.note(word, value)
        if word == "run":
            self.runs[run] = {**self.runs.get(run, {}), **value}
        elif word == "target":
            self.targets[_target(value)] = value
            self.target_lines.append(value)
        elif word == "time":
            self.turns.append(value)
        elif word == "end":
            self.runs.setdefault(run, {})["end"] = value
        elif word == "start":
            key = tuple(str(value.get(name, "")) for name in ("case", "build", "device"))
            self.starts[key] = self.starts.get(key, 0) + 1

    def add_row(self, row):
        if self.starts:
            self.starts.pop((row["case"], row["build"], row["device"]), None)  # it has a row
        expectation = row.get("expectation")
        outcome = outcome_of(row["verdict"], row["grade"], row["supported"], expectation)
        found = (outcome, RANK[outcome], standing(outcome, row["verdict"], expectation))
        about = (row["group"], row["sm"], row["grade"], wall_ms(row), marshal.dumps(row))
        version = _version(row["cudnn"])
        self._seen.add(row, row["run"], row["cudnn"], version, *found, *about)

    def end_of_file(self):
        """Call it after every file."""
        self._seen.end_of_file()

    def finish(self):
        """Call once, when every file is read."""
        self.gpus = name_gpus(self.runs, self.target_lines + self._unnamed())
        self._planned_twice = self._count_planned_twice()
        self.superseded = self.db.execute(
            f"DELETE FROM seen WHERE id NOT IN (SELECT id FROM {latest.that_count()})"
        ).rowcount
        self.db.execute("ALTER TABLE seen RENAME TO row")
        self.db.execute("CREATE INDEX row_identity ON row(case_name, build, device, outcome)")
        self.db.execute("CREATE INDEX row_of_run ON row(run, case_name, suite_group)")
        self.two_things = self._seen.two_things("row")
        self._draw_missing()
        self.db.execute("CREATE INDEX row_of_finding ON row(finding)")
        self.db.execute("CREATE INDEX row_of_target ON row(build, device, rank, outcome, wall_ms)")
        self.db.execute("CREATE INDEX row_order ON row(rank, case_name, device, version, config)")

    def _unnamed(self):
        """The targets of rows whose run has no target line, as target lines: records that were made smaller."""
        named = {str(line.get("run", "")) for line in self.target_lines}
        if named.issuperset(self.runs):
            return []
        pairs = self.db.execute("SELECT DISTINCT run, build, device FROM seen").fetchall()
        names = ("run", "build", "device")
        return [dict(zip(names, at)) for at in pairs if at[0] not in named]

    @staticmethod
    def _plan(run):
        """A resumed or repeated run plans the same again; another shard or another target plans more."""
        targets = json.dumps(run.get("targets"), sort_keys=True)
        return str(run.get("suite_hash")), str(run.get("shard")), targets

    def _count_planned_twice(self):
        """Suites overlap: a case that two plans ask of one target is answered for both, and there is one answer."""
        plans = {run: self._plan(about) for run, about in self.runs.items()}
        if len(set(plans.values())) < 2:
            return 0
        shared = {}
        rows = self.db.execute("SELECT DISTINCT case_name, build, device, run FROM seen")
        for *at, run in rows:
            if run in plans:
                shared.setdefault(tuple(at), set()).add(plans[run])
        return sum(len(p) - 1 for p in shared.values())

    def _draw_missing(self):
        """A plan is cases times targets: a case that one target of its run answered is expected from the others."""
        for run, about in self.runs.items():
            for build, device in map(_target, text.objects(about, "targets")):
                if not build or not device:
                    continue
                version = self.targets.get((build, device), {}).get("cudnn")
                version = str(version or build.split("-")[0])
                due = self.db.execute(
                    "SELECT case_name, suite_group FROM (SELECT DISTINCT case_name, suite_group FROM row WHERE run=?) r WHERE NOT EXISTS"
                    " (SELECT 1 FROM row x WHERE x.case_name=r.case_name AND x.build=? AND x.device=?)",
                    (run, build, device),
                ).fetchall()
                groups = {}
                for case, group in due:
                    groups.setdefault(case, group)
                for case, group in groups.items():
                    self._add_missing(run, case, build, device, version, group)

    def _add_missing(self, run, case, build, device, version, group):
        tried = self.starts.get((case, build, device), 0)
        said = "in flight when the record ended" if tried else "the record ends before it"
        row = {"case": case, "build": build, "device": device, "cudnn": version}
        row |= {"verdict": "missing", "run": run, "group": group, "grade": None}
        row["reason"] = {"class": "", "text": said}
        values = (run, case, build, version, _version(version), device, RANK["missing"], group)
        self.db.execute(
            "INSERT INTO row(run, case_name, build, cudnn, version, device, config, outcome, rank, finding, suite_group, wall_ms, data)"
            " VALUES(?,?,?,?,?,?,-1,'missing',?,0,?,0,?)",
            (*values, marshal.dumps(row)),
        )

    # ---- asking ----

    def one(self, sql, args=()):
        return self.db.execute(sql, args).fetchone()[0]

    def _once(self, sql, args=()):
        if (sql, args) not in self._answers:
            self._answers[sql, args] = self.db.execute(sql, args).fetchall()
        return self._answers[sql, args]

    def rows(self, where="1", args=(), order="rank, case_name, device, version, config, id"):
        """(outcome, row) in order; `where` and `order` are ours, never input."""
        for outcome, data in self.db.execute(
            f"SELECT outcome, data FROM row WHERE {where} ORDER BY {order}", args
        ):
            yield outcome, marshal.loads(data)

    def builds(self):
        """[(build, version)] oldest first."""
        if self._builds is None:
            found = self.db.execute("SELECT DISTINCT build, cudnn FROM row").fetchall()
            self._builds = sorted(found, key=lambda b: build_key(*b))
        return self._builds

    def devices(self):
        """What ran beside what was only asked: by architecture, newest first, measured before decided; the CPU last."""
        order = "device='cpu', -coalesce(max(sm),0), max(grade='measured') IS NOT 1, device"
        found = self._once(f"SELECT device FROM row GROUP BY device ORDER BY {order}")
        return [device for (device,) in found]

    def counts(self, where="1", args=()):
        sql = f"SELECT outcome, count(*) FROM row WHERE {where} GROUP BY outcome ORDER BY min(rank)"
        return dict(self._once(sql, args))

    def pairs(self, finding):
        """{outcome: number of (case, build, device)} whose worst row of this standing ended so; worst first. What is news is not counted as known."""
        news = (
            " AND NOT EXISTS (SELECT 1 FROM row n WHERE n.case_name=row.case_name AND n.build=row.build"
            f" AND n.device=row.device AND n.finding={NEWS})"
        ) * (finding != NEWS)
        worst = f"SELECT outcome, min(rank) AS worst FROM row WHERE finding=?{news} GROUP BY case_name, build, device"
        sql = f"SELECT outcome, count(*) FROM ({worst}) GROUP BY outcome ORDER BY worst"
        return dict(self._once(sql, (finding,)))

    def totals(self):
        """planned = answered + missing, in (case, target) pairs; rows may be more (engine=all gives one for each configuration)."""
        if self._totals is None:
            self._totals = self._count_totals()
        return self._totals

    def _count_totals(self):
        pairs = "SELECT DISTINCT case_name, build, device FROM row WHERE outcome {} 'missing'"
        answered = self.one(f"SELECT count(*) FROM ({pairs.format('<>')})")
        named = self.one(f"SELECT count(*) FROM ({pairs.format('=')})")
        shards = {}
        for run in self.runs.values():
            planned = run.get("planned")
            if type(planned) is int and 0 <= planned < 1 << 40:
                shards[self._plan(run)] = min(planned, _most(run))
        said = sum(shards.values()) - self._planned_twice
        planned = max(said, answered + named)
        return {
            "planned": planned,
            "answered": answered,
            "missing": planned - answered,
            "missing_named": named,
            "rows": self.one("SELECT count(*) FROM row WHERE outcome <> 'missing'"),
            "superseded": self.superseded,
            "cases": self.one("SELECT count(DISTINCT case_name) FROM row"),
            "unreadable": sum(f.unreadable for f in self.files),
        }

    def complete(self):
        whole = bool(self.files) and all(f.complete for f in self.files)
        return whole and self.totals()["missing"] == 0


def load(inputs):
    """A store with everything that the inputs hold. Raises reader.InputError."""
    store = Store()
    for path in reader.find(inputs):
        store.files.append(reader.read_file(path, store))
        store.end_of_file()
        new = store.runs.keys() - store.records.keys()
        store.records.update(dict.fromkeys(new, str(path).rpartition("/")[2]))
    store.finish()
    return store
