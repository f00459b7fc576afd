"""Records into SQLite. A record from elsewhere is data: bounded, cleaned, counted, never executed or followed."""

import contextlib
import gzip
import json
import lzma
import re
import sys
import zlib
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from . import text
from .vocabulary import GRADES, VERDICTS

LINE_LIMIT = 8 << 20  # bytes of one line; a longer one is counted, not kept
FILE_LIMIT = 8 << 30  # bytes of one file, unpacked
PACKED = 200  # and of a packed one at most so many times its size: records are packed some 30 times; more than that is a bomb
PACKED_LEAST = 64 << 20
SAMPLES = 5
FORMAT = 1  # of the lines, in each run object; a greater one is of a newer FACTS


@dataclass
class FileReport:
    """What one file gave."""

    name: str
    lines: int = 0
    at: int = 0  # where the line begins that lines() yielded last, in the unpacked file
    rows: int = 0
    unreadable: int = 0
    samples: list = field(default_factory=list)
    targets: set = field(default_factory=set)  # (build, device) of its rows
    runs: int = 0
    run: str = ""  # the last run: rows that name none belong to it
    unguarded: set = field(default_factory=set)  # runs that asked without the library's guards
    closed: bool = False  # the last run reported complete: true
    truncated: bool = False

    def refuse(self, why):
        self.unreadable += 1
        if len(self.samples) < SAMPLES:
            self.samples.append(f"line {self.lines}: {why}")

    @property
    def complete(self):
        return self.unreadable == 0 and not self.truncated and self.closed


def warn(files, who):
    """Prints for `who` the lines that could not be read: some samples of each file, and the number of the others."""
    for report in files:
        for sample in report.samples:
            print(f"{who}: {report.name}: {sample}", file=sys.stderr)
        if report.unreadable > len(report.samples):
            print(
                f"{who}: {report.name}: {report.unreadable - len(report.samples):,} more unreadable lines",
                file=sys.stderr,
            )


class Sink:
    """What read_file() fills; a subclass has add_row(row)."""

    @staticmethod
    def only(item):
        """What of a row is kept, before it is cleaned: everything."""
        return item

    def note(self, word, value):
        """Lines that are no rows."""


class InputError(ValueError):
    """A file that cannot be read at all: one line for people."""


def find(inputs):
    """Files of the command line; a folder means its records."""
    files = []
    for item in inputs:
        path = Path(item)
        if path.is_dir():
            inside = sorted(p for p in path.iterdir() if re.search(r"\.jsonl(\.gz|\.xz)?$", p.name))
            if not inside:
                raise InputError(f"{item}: no *.jsonl, *.jsonl.gz or *.jsonl.xz in this folder")
            # nobody may write into a fifo: it is not waited for
            other = next((p for p in inside if not p.is_file()), None)
            if other:
                raise InputError(f"{other}: is no file")
            files += inside
        elif path.exists():
            files.append(path)
        else:
            raise InputError(f"{item}: no such file or folder")
    return files


def _open(path):
    if path.name.endswith(".gz"):
        return gzip.open(path, "rb")
    if path.name.endswith(".xz"):
        return lzma.open(path, "rb")
    return path.open("rb")


def refuse_newer(name, run):
    """Raises InputError for a run object that a newer FACTS wrote."""
    if isinstance(run.get("format"), int) and run["format"] > FORMAT:
        raise InputError(
            f"{name}: was written by a newer FACTS (format {run['format']}; this version reads {FORMAT}): read it with that version"
        )


def lines(stream, report, limit=FILE_LIMIT):
    """Lines of bounded length; the rest of an overlong one is read over. `limit`: bytes of the file."""
    seen = 0
    while True:
        line = stream.readline(LINE_LIMIT + 1)
        if not line:
            return
        report.at = seen
        seen += len(line)
        report.lines += 1
        if len(line) > LINE_LIMIT and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = stream.readline(1 << 20)
                seen += len(line)
            report.refuse(f"longer than {LINE_LIMIT >> 20} MiB")
        elif line.strip():
            yield line
        if seen > limit:
            report.truncated = True
            report.refuse(f"the file goes on after {limit >> 20:,} MiB; not read")
            return


def read_file(path, store):
    report = FileReport(text.line(path.name, 200))
    try:
        packed = path.name.endswith((".gz", ".xz"))
        most = PACKED * path.stat().st_size + PACKED_LEAST if packed else FILE_LIMIT
        with _open(path) as stream:
            for line in lines(stream, report, min(FILE_LIMIT, most)):
                take(line, report, store)
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error) as error:
        report.refuse(f"packed data ends or breaks here ({text.line(str(error), 100)})")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    return report


_decode = json.JSONDecoder(
    parse_constant=lambda word: word.lower().replace("infinity", "inf")
).decode


def take(line, report, store):
    """Gives a line of a record to a sink."""
    try:
        item = _decode(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        cut = "" if line.endswith(b"\n") else ", and cut off"
        report.refuse(f"not JSON{cut} ({text.line(str(error), 80)})")
        return
    if not isinstance(item, dict):
        report.refuse("not an object")
        return
    why = _dispatch(item, report, store)
    if why:
        report.refuse(why)


def _dispatch(item, report, store):
    for word in ("run", "target", "start", "time", "finding", "end"):
        if isinstance(item.get(word), dict):
            # The many `start`, `time` and `finding` objects are compared, never shown.
            short = word in ("start", "time", "finding")
            value = item[word] if short else text.clean_json(item[word])
            if word == "run":
                refuse_newer(report.name, value)
                report.runs, report.closed = report.runs + 1, False
                report.run = str(value.get("id") or "")
                if value.get("guards") == "off":
                    report.unguarded.add(report.run)
            if word == "end":
                report.closed = value.get("complete") is True
            store.note(word, value)
            return ""
    if "case" not in item:
        return "an object of no known kind"
    row, why = normal_row(store.only(item))
    if why:
        return why
    report.rows += 1
    report.targets.add((row["build"], row["device"]))
    row["run"] = row["run"] or report.run
    row["guards"] = "off" if row["run"] in report.unguarded else ""
    store.add_row(row)
    return ""


_line = lru_cache(maxsize=1024)(text.line)  # of builds, devices, runs and groups there are few


def normal_row(item):
    """A row whose fields have the types that others rely on; or why it is none."""
    row = text.clean_json(item, limit=8000)
    for name in ("case", "build", "device", "verdict"):
        if not isinstance(row.get(name), str) or not row[name].strip():
            return None, f"a row without '{name}'"
        row[name] = " ".join(row[name].split())
    if len(row["case"]) > 1500:
        return None, "a case name longer than 1500 characters"
    row["build"], row["device"] = _line(row["build"], 120), _line(row["device"], 120)
    if row["verdict"] not in VERDICTS:
        return None, f"no verdict '{_line(row['verdict'], 40)}'"
    if row.get("grade") not in GRADES:
        row["grade"] = None
    if row["verdict"] == "pass" and row["grade"] not in (None, "measured"):
        row["verdict"] = "supported"
    version = row.get("cudnn")
    row["cudnn"] = _line(version, 40) if isinstance(version, str) else row["build"].split("-")[0]
    row["sm"] = row["sm"] if isinstance(row.get("sm"), int) else None
    row["attempt"] = row["attempt"] if isinstance(row.get("attempt"), int) else 1
    row["config"] = row["config"] if isinstance(row.get("config"), int) else None
    row["supported"] = row["supported"] if isinstance(row.get("supported"), bool) else None
    for name in ("backend", "run", "group"):
        row[name] = _line(row[name], 120) if isinstance(row.get(name), str) else ""
    if not isinstance(row.get("engine"), (int, str, type(None))):
        row["engine"] = None
    for name, kind in (("reason", dict), ("errors", dict), ("engines", list), ("padded", dict)):
        if not isinstance(row.get(name), kind):
            row[name] = kind()
    return row, ""


def follow(path, before, ended):
    """The lines of a record that another process writes, once its first line is not `before`, until the event `ended`."""
    at, is_last = 0, False
    while not is_last:
        is_last = ended.wait(0.3)
        with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
            if at == 0 and file.readline() == before:
                continue
            file.seek(at)
            for line in file:
                if line.endswith(b"\n"):
                    at += len(line)
                    yield line


def is_record_name(word):
    return word.endswith((".jsonl", ".gz", ".xz"))
