"""Starts the program facts, which asks cuDNN. It writes a record, or prints a plain view of its own rows.

The only module of the package that starts a process. C never starts Python to get an answer back: data goes from C to Python.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from .options import INTERRUPTED, Failed

CAUGHT = subprocess.PIPE  # its messages are for the caller
_HOW = {"stdin": subprocess.DEVNULL, "stdout": CAUGHT, "text": True, "errors": "replace"}
_ALL = "h100-sxm,sm80-spec,sm89-spec,sm100-spec,sm120-spec"
# The described devices that a command asks without --device.
DEVICES = {
    "audit": _ALL,
    "expect": _ALL,
    "gate": "h100-sxm,sm100-spec",
    "known": "h100-sxm,sm100-spec,sm120-spec,sm80-spec",
    "matrix": "h100-sxm,sm80-spec",
}


def home(part):
    """A file of the project: of $FACTS_HOME, or beside this package. (Not resolved: reports/ may be a link into another home.)"""
    roots = [Path(os.environ.get("FACTS_HOME") or "/"), Path(__file__).parents[3]]
    return next((root / part for root in roots if (root / part).exists()), roots[1] / part)


def gpus_here():
    """Does this machine show a GPU? (device files; nothing is loaded)"""
    return any(name[:6] == "nvidia" and name[6:7].isdigit() for name in os.listdir("/dev"))


def described(command, given):
    """The words of --device: given ones, or descriptions."""
    return given or DEVICES[command]


def devices(command, given):
    """The words of --device: given ones, the first GPU, or descriptions."""
    return given or ("0" if gpus_here() else DEVICES[command])


def are_described(words):
    return not any(word.isdigit() or word in ("cpu", "all") for word in words.split(",") if word)


def program():
    return os.environ.get("FACTS_PROGRAM") or "facts"


def ended(*words, quiet=True):
    """A program that has ended. Not quiet: its messages go to our standard error at once."""
    return subprocess.run(words, stderr=CAUGHT if quiet else None, check=False, **_HOW)


def view(*words, stderr=None):
    """What the program prints, as text. Failed if its exit code is not 0."""
    done = subprocess.run([program(), *words], stderr=stderr, check=False, **_HOW)
    if done.returncode:
        raise Failed(done.returncode, done.stdout, done.stderr)
    return done.stdout


def fed(given, *words):
    """The exit code of the program, which reads `given` and prints for people."""
    return subprocess.run([program(), *words], input=given, text=True, check=False).returncode


def rows(*words, quiet=False):
    """The lines of a plain view, split at tabs. quiet: without its message on standard error."""
    said = view(*words, stderr=subprocess.DEVNULL if quiet else None)
    return [line.split("\t") for line in said.splitlines()]


def expand(pattern_texts):
    """[[name]]: the cases of each pattern. ValueError: (index, column, what is wrong)."""
    try:
        said = view("list", "--each", "--", *pattern_texts, stderr=CAUGHT)
    except Failed as failed:
        _, said, error = failed.args
        _, _, column, what = error.split(":", 3)  # case:1:COLUMN: what is wrong
        raise ValueError(said.count("\n\n"), int(column), what.strip()) from None
    return [group.splitlines() for group in said.split("\n\n")[:-1]]


def run(task, cases, *words, out=None):
    """(exit code, record or ""): runs cases into a record. `out`: a stream for the summary. An interrupt goes to the program, which ends its record."""
    child = subprocess.Popen(
        [program(), task, *words, "--", *cases],
        **_HOW,
        start_new_session=True,  # a terminal's Ctrl-C reaches this process alone, which passes it on once
        env={**os.environ, "FACTS_ENDS_WITH_PARENT": "1"},
    )
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {n: signal.signal(n, lambda number, _: child.send_signal(number)) for n in numbers}
    record = ""
    try:
        for line in child.stdout:
            if line.startswith("record: "):
                record = line[len("record: ") :].rstrip("\n")
            elif out:
                out.write(line)
                out.flush()
        status = child.wait()
    finally:
        for n, handler in before.items():
            signal.signal(n, handler)
    return (INTERRUPTED if -status in numbers else status), record


def asked(task, cases, *words):
    """The record of a run that could start and was not interrupted; Failed otherwise. A finding or a gap in it is for the caller to see."""
    status, record = run(task, cases, *words)
    if status == INTERRUPTED or not record:
        raise Failed(status or 3)
    return status, record


def new_record(name):
    """A new file beside the records that the program makes."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    runs = Path(given if given[:1] == "/" else Path.home() / ".cache") / "facts/runs"
    runs.mkdir(parents=True, exist_ok=True)
    return runs / f"{name}-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.jsonl"


def say(record):
    print(f"record: {record}", file=sys.stderr)
