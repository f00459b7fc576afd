"""facts merge: the records of shards, of machines and of attempts become one. latest.py says which rows stay.

The rows are copied as they are. The tables hold where each row lies in its file: a record may be larger than memory.
"""

import contextlib
import errno
import fcntl
import json
import math
import os
import sqlite3
import stat
import sys

from ..read import latest, reader, text
from ..read.store import name_gpus
from ..read.vocabulary import VERDICTS
from .options import BAD_INPUT, ENVIRONMENT, INCOMPLETE, OK, Command, UsageError, options

_NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR)
_NO_SYNC = (errno.EINVAL, errno.EROFS)  # a pipe or a terminal
_SCHEMA = """
PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA temp_store=FILE;
CREATE TABLE start(case_name TEXT, build TEXT, device TEXT);
CREATE TABLE run(id TEXT, suite TEXT, cases INT);
CREATE TABLE pair(suite TEXT, build TEXT, device TEXT, shard INT, shards INT);
"""


class MergeError(ValueError):
    """Why nothing was written, or not all of it: one line for people, and the exit code."""

    def __init__(self, path, why, status):
        super().__init__(f"{path}: {why}")
        self.status = status


def _no_number(word):
    raise ValueError(word)


_decode = json.JSONDecoder(parse_constant=_no_number).decode


def _object(line):
    """The JSON object of a line; None: there is none."""
    try:
        item = _decode(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return item if isinstance(item, dict) else None


def _number(value, otherwise):
    return value if isinstance(value, int) and abs(value) < 1 << 62 else otherwise


def _key(item):
    """(case, build, device); None: one is missing."""
    key = tuple(item.get(name) for name in ("case", "build", "device"))
    return key if all(isinstance(part, str) for part in key) else None


class Merge:
    """read() every input, then write() the output once."""

    def __init__(self, force=False):
        """`force`: records of different suites are joined all the same."""
        self.db = sqlite3.connect("", isolation_level=None)  # a file of SQLite's own
        self.db.executescript(_SCHEMA)
        self.db.execute("BEGIN")
        self._seen = latest.Seen(self.db, "run TEXT, part INT, at INT, length INT")
        self.force = force
        self.names, self.files = [], []  # the inputs
        self.runs, self.run_places = {}, {}
        self.target_lines, self.others = [], []
        self.suite = ""  # of the first run that names one
        self.rows = self.older = self.bad = 0
        self._starts = []  # not yet in the table

    def close(self):
        for stream in self.files:
            stream.close()
        self.db.close()

    # ---- reading ----

    def read(self, path):
        """Raises MergeError or reader.InputError where `path` is no record, or is of another suite than the records before it."""
        report = reader.FileReport(path)
        objects = 0
        try:
            stream = open(path, "rb")  # pylint: disable=consider-using-with
            self.names.append(path)
            self.files.append(stream)
            if stream.peek(2)[:2] in (b"\xfd\x37", b"\x1f\x8b"):
                raise MergeError(path, "is compressed: unpack it first", BAD_INPUT)
            for line in reader.lines(stream, report, math.inf):
                item = _object(line)
                if item is None:
                    report.refuse("not an object")
                    continue
                objects += 1
                if objects % 5000 == 0:
                    self._flush()
                length = len(line.rstrip(b"\n").removesuffix(b"\r"))
                self._take(item, (len(self.files) - 1, report.at, length), report)
        except OSError as error:
            status = BAD_INPUT if error.errno in _NO_FILE else ENVIRONMENT
            raise MergeError(path, error.strerror, status) from None
        if not objects:
            raise MergeError(path, "is not a record (no line could be read)", BAD_INPUT)
        self._seen.end_of_file()
        self.bad += report.unreadable

    def _take(self, item, place, report):
        """`place`: file, offset and length of the line."""
        if "case" in item and "verdict" in item:
            self._take_row(item, place, report)
        elif isinstance(item.get("run"), dict):
            self._take_run(item["run"], place, report)
        elif isinstance(item.get("start"), dict):
            key = _key(item["start"])
            if key:
                self._starts.append(key)
        elif isinstance(item.get("end"), dict):  # the output has an end of its own
            self._seen.note("end", item["end"])
        else:
            if isinstance(item.get("target"), dict):
                self.target_lines.append(item["target"])
            self.others.append(place)

    def _take_run(self, run, place, report):
        reader.refuse_newer(report.name, run)
        report.run = str(run.get("id") or "?")
        suite = str(run.get("suite_hash") or "")
        if self.suite and suite != self.suite and not self.force:
            what = "belongs to another suite than the earlier records; --force joins them anyway"
            raise MergeError(report.name, what, BAD_INPUT)
        self.suite = self.suite or suite
        self._seen.note("run", {**run, "id": report.run})
        self.runs.setdefault(report.run, run)
        self.run_places.setdefault(report.run, place)

    def _take_row(self, item, place, report):
        if not _key(item) or str(item["verdict"]) not in VERDICTS:
            report.refuse("a row without case, build, device or a known verdict")
            return
        words = ("case", "build", "device", "verdict", "stage", "group")
        row = {name: item.get(name) for name in words}
        row["attempt"] = _number(item.get("attempt"), 1)
        row["config"] = _number(item.get("config"), None)
        run = item["run"] if isinstance(item.get("run"), str) and item["run"] else report.run
        row["run"] = run
        self._seen.add(row, run, *place)

    def _flush(self):
        self.db.executemany("INSERT INTO start VALUES(?,?,?)", self._starts)
        self._starts = []

    # ---- what is missing ----

    def _finish(self):
        """Chooses the rows that stay, and writes down what each run planned."""
        self._flush()
        self.db.execute(f"CREATE TABLE kept AS SELECT * FROM {latest.that_count()}")
        self.db.execute("CREATE INDEX kept_key ON kept(case_name, build, device)")
        self.db.execute("CREATE INDEX kept_target ON kept(build, device)")
        self.rows = self._one("SELECT count(*) FROM kept")
        self.older = self._one("SELECT count(*) FROM seen") - self.rows
        name_gpus(self.runs, self.target_lines)
        for name, run in self.runs.items():
            suite, shard = str(run.get("suite_hash") or ""), run.get("shard")
            part = shard if isinstance(shard, list) and len(shard) == 2 else (1, 1)
            self.db.execute(
                "INSERT INTO run VALUES(?,?,?)", (name, suite, _number(run.get("cases"), 0))
            )
            for target in text.objects(run, "targets"):
                at = target.get("build"), target.get("device")
                if all(isinstance(name, str) for name in at):
                    values = (suite, *at, *(_number(n, 1) for n in part))
                    self.db.execute("INSERT INTO pair VALUES(?,?,?,?,?)", values)

    def _one(self, query):
        return self.db.execute(query).fetchone()[0] or 0

    def _missing_shards(self):
        """The first five shards that no file holds. A shard without a case writes no record: where every planned row is there, none is missing."""
        return [
            f"shard {n}/{shards} of {build:.40} on {device:.40}"
            for n, shards, build, device in self.db.execute(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000),"
                " part AS (SELECT suite, build, device, max(shards) AS shards FROM pair GROUP BY suite, build, device)"
                " SELECT n.i, part.shards, part.build, part.device FROM part JOIN n ON n.i <= part.shards WHERE NOT EXISTS"
                " (SELECT 1 FROM pair p WHERE p.suite = part.suite AND p.build = part.build AND p.device = part.device"
                "  AND (p.shards = 1 OR (p.shards = part.shards AND p.shard = n.i)))"
                " AND (SELECT coalesce(nullif(max(cases), 0), 1 << 62) FROM run WHERE run.suite = part.suite) > (SELECT count(DISTINCT k.case_name)"
                "  FROM kept k JOIN run ON run.id = k.run WHERE run.suite = part.suite AND k.build = part.build AND k.device = part.device) LIMIT 5"
            )
        ]

    def _missing_rows(self):
        """How many planned (case, build, device) no file answers: of targets with rows, then of targets without any."""
        if self.force and self._one("SELECT count(DISTINCT suite) FROM run") > 1:
            return 0  # a run says how many cases its own suite has
        return self._one(
            "SELECT sum(max(0, planned - there)) FROM (SELECT count(DISTINCT k.case_name) AS there, max(run.cases) AS planned"
            " FROM kept k JOIN run ON run.id = k.run GROUP BY run.suite, k.build, k.device)"
        ) + self._one(
            "SELECT sum(cases) FROM (SELECT DISTINCT p.suite, p.build, p.device, (SELECT max(cases) FROM run WHERE run.suite = p.suite)"
            " AS cases FROM pair p WHERE NOT EXISTS (SELECT 1 FROM kept WHERE kept.build = p.build AND kept.device = p.device))"
        )

    def missing(self):
        """What is missing, in words; "" when nothing is."""
        said = self._missing_shards()
        rows = self._missing_rows()
        started = self._one(
            "SELECT count(*) FROM (SELECT DISTINCT * FROM start) s WHERE NOT EXISTS (SELECT 1 FROM kept k WHERE k.case_name = s.case_name"
            " AND k.build = s.build AND k.device = s.device)"
        )
        if rows:
            said.append(f"{rows} planned row{'' if rows == 1 else 's'}")
        if started:
            said.append(
                f"{text.count(started, 'case was', 'cases were')} started and {'has' if started == 1 else 'have'} no row"
            )
        if self.bad:
            said.append(f"{self.bad} lines could not be parsed")
        return "; ".join(said)

    # ---- writing ----

    def _line(self, file, at, length):
        data = os.pread(self.files[file].fileno(), length, at)
        if len(data) != length:
            raise MergeError(self.names[file], "changed while it was read", ENVIRONMENT)
        return data + b"\n"

    def write(self, path, overwrite=False):
        """Writes the runs, other lines, the rows that stay, and an end. Returns what is missing."""
        self._finish()
        two = self._seen.two_things("kept")
        if two and not self.force:
            raise MergeError(path, f"{two}; --force joins them anyway", BAD_INPUT)
        missing = self.missing()
        end = {"run": "merge", "complete": not missing, "rows": self.rows}
        end |= {"missing": missing} if missing else {}
        runs = sorted(self.runs, key=lambda name: (str(self.runs[name].get("started", "")), name))
        try:
            with _open_output(path, overwrite) as stream:
                for place in [self.run_places[name] for name in runs] + self.others:
                    stream.write(self._line(*place))
                for place in self.db.execute("SELECT part, at, length FROM kept ORDER BY id"):
                    stream.write(self._line(*place))
                said = json.dumps({"end": end}, separators=(",", ":"), ensure_ascii=False)
                stream.write(said.encode() + b"\n")
                stream.flush()
                _sync(stream)
        except OSError as error:
            raise MergeError(path, error.strerror, ENVIRONMENT) from None
        return missing


def _open_output(path, overwrite):
    """Only one process writes a record at a time: `flock`, as the supervisor does."""
    device = str(path).startswith("/dev/")  # /dev/stdout, and what `>(...)` of a shell stands for
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | (0 if device else os.O_NOFOLLOW)
    try:
        stream = os.fdopen(os.open(path, flags, 0o666), "wb", 1 << 20)
    except OSError as error:
        link = "is a link; give the file itself"
        why = link if error.errno == errno.ELOOP else error.strerror
        raise MergeError(path, why, ENVIRONMENT) from None
    with contextlib.ExitStack() as undo:
        undo.callback(stream.close)
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise MergeError(path, "another run is writing this record", ENVIRONMENT) from None
        about = os.fstat(stream.fileno())
        if not (device or stat.S_ISREG(about.st_mode) or stat.S_ISCHR(about.st_mode)):
            raise MergeError(path, "is no file; give another name", ENVIRONMENT)
        if stat.S_ISREG(about.st_mode) and about.st_nlink > 1:
            what = "has a second name (a hard link), and its contents would change too; give another file"
            raise MergeError(path, what, ENVIRONMENT)
        if stat.S_ISREG(about.st_mode) and about.st_size:
            if not overwrite:
                raise MergeError(path, "exists; --overwrite replaces it", BAD_INPUT)
            stream.truncate(0)
        undo.pop_all()
    return stream


def _sync(stream):
    try:
        os.fsync(stream.fileno())
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def _same_file(one, other):
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


COMMAND = Command(
    "merge",
    options("""
    -o, --output PATH  write the record to this file
    --overwrite        replace the record of -o
    --force            join records of different suites, too
    """),
    ("facts merge a.jsonl b.jsonl -o all.jsonl", "facts merge records -o all.jsonl --force"),
    needs="IN...",
)


def run(args):
    if not args.output:
        raise UsageError("-o OUT is missing")
    try:
        with contextlib.closing(Merge(args.force)) as merge:
            for path in args.words:
                if _same_file(path, args.output):
                    raise MergeError(path, "is also the output", BAD_INPUT)
                merge.read(path)
            missing = merge.write(args.output, args.overwrite)
    except MergeError as error:
        return COMMAND.fail(error, error.status)
    print(
        f"{args.output}: {text.count(merge.rows, 'row')}, {text.count(merge.older, 'older one')} left out"
    )
    if missing:
        sys.stdout.flush()
        print(f"facts merge: incomplete: {missing}", file=sys.stderr)
    return INCOMPLETE if missing else OK
