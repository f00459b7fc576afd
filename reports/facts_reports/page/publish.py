"""facts report --site DIR: what a nightly job publishes. An index of runs, a page for each record, and one page of every case over all of them.

Addresses stay: runs/NAME/ for the record NAME.jsonl, cases/index.html?case=NAME for a case.
"""

import json
import re
from dataclasses import asdict, dataclass

from ..read import files, reader, text, words
from ..read.store import load
from . import exports, site


class PublishError(ValueError):
    """One line for people."""


@dataclass
class Run:
    """A line of the index."""

    name: str
    address: str
    started: str
    head: str
    clause: str
    tone: str
    builds: str
    devices: str
    suites: str
    rows: int
    complete: bool


def _name(path):
    """A record's folder: its file's name without what says how it is packed."""
    bare = re.sub(r"\.jsonl(\.gz|\.xz)?$", "", path.name)
    return re.sub(r"[^\w.+-]", "-", bare).strip(".") or "record"


def _run(path, folder, title):
    store, name = load([path]), _name(path)
    home = "../../cases/index.html"
    first = exports.write_site(store, folder / "runs" / name, title, home=home).first
    return Run(
        name,
        f"runs/{name}/index.html",
        max((str(r.get("started", "")) for r in store.runs.values()), default=""),
        first["head"],
        first["clause"],
        first["tone"],
        words.several(words.build_labels(store.builds()).values(), 4),
        words.several(words.shown_devices(store), 4),
        ", ".join(words.suites(store)),
        store.totals()["rows"],
        store.complete(),
    )


def write(inputs, folder, title):
    """[Run], newest first. Raises reader.InputError, PublishError."""
    paths = reader.find(inputs)
    names = [_name(path) for path in paths]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        said = "each needs a name of its own, which becomes its address"
        raise PublishError(f"two records are called {text.line(twice, 100)}: {said}")
    folder.mkdir(parents=True, exist_ok=True)
    runs = [_run(path, folder, title) for path in paths]
    runs.sort(key=lambda run: (run.started, run.name), reverse=True)
    (folder / "cases").mkdir(exist_ok=True)
    page = site.make(load(inputs), f"{title}: every case", home="index.html")
    files.write(folder / "cases" / "index.html", page.html)
    files.write(folder / "index.html", site.index(runs, title))
    said = json.dumps([asdict(run) for run in runs], indent=1, ensure_ascii=False)
    files.write(folder / "runs.json", said + "\n")
    return runs
