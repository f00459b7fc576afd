"""The page, and the index of several pages: templates filled with what page/ computed."""

import base64
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from ..read import findings as wrong
from ..read import text, words
from ..read.vocabulary import OUTCOMES
from . import opening
from .payload import payload
from .steps import Steps

# of a page, which then has some 35 MB; what it needs of memory is in docs/torture.md
MOST_ROWS, MOST_CASES = 250_000, 50_000
_HERE = Path(__file__).parent
_SCRIPTS = (
    "predicate.js data.js document.js state.js keys.js issues.js matrix.js heat.js boundary.js "
    "trust.js timeline.js numbers.js detail.js rows.js compare.js save.js app.js"
).split()
_STYLES = ("page.css", "tables.css", "heat.css", "narrow.css")


def embedded(value):
    """JSON that may stand inside a script element: no '<', so no '</script' and no '<!--'."""
    said = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for c in "<>&\u2028\u2029":
        said = said.replace(c, f"\\u{ord(c):04x}")
    return said


def _digest(source):
    return "'sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode() + "'"


def provenance(store):
    """What the head of the page shows of runs, targets and files."""
    labels = words.build_labels(store.builds())
    order = {b: i for i, (b, _) in enumerate(store.builds())}
    targets = []
    for target in sorted(store.targets, key=lambda t: (order.get(t[0], 999), t)):
        build, about = target[0], store.targets[target]
        proofs = []
        for lib in text.objects(about, "libraries"):
            name, digits = str(lib.get("path", "")).rsplit("/", 1)[-1], lib.get("sha256") or ""
            record = str(lib.get("record") or "unknown")
            proofs.append({"name": name, "sha256": str(digits), "record": record})
        targets.append(
            {
                "build": build,
                "device": words.shown(store.runs, target[1]),
                "about": about,
                "proofs": proofs,
            }
        )
        targets[-1]["label"] = labels.get(build, build)
    runs = []
    for name, run in store.runs.items():
        runs.append({"id": name, **run, "words": " ".join(text.texts(run, "command"))})
    return {"runs": runs, "targets": targets, "files": store.files}


@dataclass
class Page:
    html: str
    first: dict  # its first screen: opening.of
    known: tuple = ()  # the answers of issues.Issues about its rows
    most: str = ""  # what a page can hold, where there is more


def _filled(template, **values):
    how = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(loader=FileSystemLoader(_HERE), **how)
    style = "\n".join((_HERE / "styles" / name).read_text(encoding="utf-8") for name in _STYLES)
    values |= {"style": style, "style_digest": _digest(style)}
    return environment.get_template(template).render(**values)


def _too_large(store, title):
    """A page that says where the rows are: a browser cannot hold them."""
    first = opening.of(store, Steps.none(), wrong.of(store))
    most = f"{MOST_ROWS:,} rows of {MOST_CASES:,} cases"
    about = {"title": title, "first": first, "most": most, "complete": store.complete()}
    html = _filled("large.html.j2", totals=store.totals(), **about)
    return Page(html, first, most=most)


def make(store, title, compared=None, home="", audit=None, rows=None):
    """A Page. `compared`: the diff.Diff that it is about; else the records say. `home`, `audit`, `rows`: of payload()."""
    if store.totals()["rows"] > MOST_ROWS or store.totals()["cases"] > MOST_CASES:
        return _too_large(store, title)
    scripts = [(_HERE / "scripts" / name).read_text(encoding="utf-8") for name in _SCRIPTS]
    script = '"use strict";\n(() => {\n' + "\n".join(scripts) + "})();\n"
    findings = wrong.of(store)
    labels = words.build_labels(store.builds())
    for f in findings:
        f["repro"], f["why"] = words.repro(store, f["row"]), words.why(f["row"])
    every = [(build, device) for build, _ in store.builds() for device in store.devices()]
    targets = [
        (labels[b], words.shown(store.runs, d), store.counts("build=? AND device=?", (b, d)))
        for b, d in every
    ]
    data, later, changed = payload(store, title, compared, home, audit, rows)
    first = opening.of(store, changed, findings)
    html = _filled(
        "index.html.j2",
        title=title,
        first=first,
        home=home,
        totals=store.totals(),
        complete=store.complete(),
        provenance=provenance(store),
        findings=[f for f in findings if not f["known"]],
        known=[f for f in findings if f["known"]],
        target_counts=[t for t in targets if t[2]],
        outcomes={o.word: o for o in OUTCOMES},
        script=script,
        script_digest=_digest(script),
        still=", ".join(data["still"]).lower(),
        data=embedded(data),
        later={name: embedded(column) for name, column in later.items()},
    )
    return Page(html, first, data["issues"]["answers"])


def render(store, title, compared=None):
    return make(store, title, compared).html


def index(runs, title):
    """The index of several pages; `runs`: of publish.write."""
    return _filled("runs.html.j2", runs=runs, title=title)
