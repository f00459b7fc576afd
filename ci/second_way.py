#!/usr/bin/env python3
"""What ci/second_way.sh starts: chooses the cases, judges their programs, writes records, packages and `checked:` of cases/known.

usage: second_way.py --run VERSION OUT [ID...] | --package DIR OUT... | --checked RECORD...
A record is JSON lines: the machine, a line for each claim (what was shown), a line for each factor of O (`over`).
"""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from facts_reports.known import expectations, known, knowledge, observe
from facts_reports.known.guards import FACTS
from facts_reports.read import predicate

HOME = Path(__file__).resolve().parent.parent
KNOWN, UPSTREAM, SM = HOME / "cases/known", HOME / "docs/upstream.md", 90
MEAN = "fp8-values-with-a-mean"  # {kernel: (case of the table, the output that is too small)}
EIGHT = "dtype=e4m3 b=1 h=2 d=128 guards=off"
ENGINES = {
    "forward": (f"pass=fwd {EIGHT} s=256/{{}} want=stats engine=2", "o"),
    "unified": (f"pass=fwd {EIGHT} s=256/{{}} want=stats impl=unified", "o"),
    "backward": (f"pass=bwd {EIGHT} s={{}}/256", "dv"),
}
KEYS, FILLS = (512, 2048, 8192, 32768), {"a mean": " fill=offset_v", "mean 0": ""}
FORMS = {"c": "C", "python": "Python"}
NONE = ("none", "")
# (word, does the file say that it fails?): what a record says is shorter for readers
SHORT = {("shows, no control", True): "shows", ("does not show", False): "right"}
RUNS = {"PASS", "refused", "compiles", "made"}  # a program that does not fail
WHY = re.compile(r".*--frontend: |; wrote .*")  # what stands around the reason of `facts repro`
OF_ROWS = re.compile(rf"\b({'|'.join(['engine', 'config', *FACTS])})\b")


def fits(failure, case, version):
    """Does the case have what shows the failure? What only a row or the library knows is left out."""
    parts = knowledge._conjuncts(failure.shows or failure.condition)
    text = " & ".join(part for part in parts if not OF_ROWS.search(part)) or "any"
    get = expectations.row_get({"case": case, "cudnn": version, "sm": SM, "backend": "cudnn"})
    return predicate.holds(predicate.parse(text), get)


def claims(entry, cases, version):
    """(label, failure, its cases) of one file; with no failure, the file says that this version is right."""
    here = [f for f in entry.failures if observe._within(f.architectures[0], SM)]
    failing = [f for f in here if observe.holds(f, version)]
    for f in failing:
        yield f.label, f, [case for case in cases if fits(f, case, version)][:3]
    if here and not failing:
        right = [case for case in cases if not of_others(entry, case, version)] or cases
        yield here[0].label, None, right[:1]


def of_others(entry, case, version):
    """The failures of other files that a case may show."""
    return [one for one in knowledge.today().of(case, version, SM) if one["such_data"] and one["id"] != entry.name]  # fmt: skip


class Run:
    """The programs of the cases that are asked. Each case is made and run once."""

    def __init__(self, version, out):
        self.version, self.out, self.lock, self.asked = version, out, threading.Lock(), {}
        self.pool = ThreadPoolExecutor(int(os.environ["JOBS"]))

    def ask(self, case):
        with self.lock:
            if case not in self.asked:
                folder = self.out / f"{len(self.asked):03}"
                self.asked[case] = self.pool.submit(self._ask, folder, case)
        return self.asked[case].result()

    @staticmethod
    def _ask(folder, case):
        shutil.rmtree(folder, ignore_errors=True)
        words = ["bash", HOME / "ci/second_way.sh", "--case", folder, case]
        done = subprocess.run(words, stdout=subprocess.PIPE, check=False)
        lines = (line.split("\t") for line in done.stdout.decode(errors="replace").splitlines())
        return {"facts": NONE} | {line[0]: line[1:] for line in lines if len(line) == 3} | {"folder": folder}  # fmt: skip

    def first(self, cases, good, words):
        """(case, its programs): the first with one of these verdicts, or not run, whose programs end with these words; else the first."""
        for case in cases:
            got = self.ask(case)
            ends = {got[form][0] for form in FORMS if form in got}
            if got["facts"][0] in (*good, "accepted") and ends <= words:
                return case, got
        return (cases[0], self.ask(cases[0])) if cases else (None, {})

    def show(self, entry, label, failure, cases, controls):
        """The row of one claim. Its control differs in the fewest words, and none of its programs fails."""
        case, got = self.first(cases, failure.verdicts if failure else ["pass"], {"FAIL", *RUNS})
        words = set(case.split())
        near = sorted(controls, key=lambda other: len(words ^ set(other.split())))[:5]
        control, beside = self.first(near, ["pass"], RUNS)
        words = {form: judged(got.get(form, NONE)[0], beside.get(form, NONE)[0]) for form in FORMS}
        shown = any(word.startswith("shows") for word in words.values())
        seldom = failure is not None and failure.fields["verdict"].endswith("?")
        others = of_others(entry, case, self.version)
        explained = not failure and any(got["facts"][0] in one["verdict"] for one in others)
        open_ = seldom or explained or set(words.values()) <= {"no program", "compiles", "made"}
        return {
            "id": entry.name, "label": label, "fails": failure is not None, "verdict": got["facts"][0],
            "case": case, "control": control, **words, "good": open_ or shown == (failure is not None),
            "line": {form: WHY.sub("", got.get(form, got["facts"])[1]) for form in FORMS},
            "folders": [one["folder"].name for one in (got, beside) if one],
        }  # fmt: skip

    def over(self, kernel, fill, keys):
        """The factor between an output and its expected value."""
        case, output = ENGINES[kernel]
        got = self.ask(case.format(keys) + FILLS[fill])
        row = {"over": kernel, "fill": fill, "keys": keys}
        for form in FORMS:
            log = got["folder"] / f"{form}.log"
            text = log.read_text(errors="replace") if log.exists() else ""
            if found := re.search(rf"(?m)^{output} .*got over expected ([\d.]+)", text):
                row[form] = float(found[1])
        return row


def judged(word, control):
    """What a program showed, beside its control."""
    if word != "FAIL":
        return {"PASS": "does not show", "none": "no program"}.get(word, word)
    return {"PASS": "shows", "FAIL": "control fails"}.get(control, "shows, no control")


def listed(entries):
    """{id: (cases, controls)}, one case each."""
    words = [os.environ["FACTS"], "list", "--json", *(f"regress/{e.name}" for e in entries)]
    found = {entry.name: ([], []) for entry in entries}
    for one in map(json.loads, subprocess.check_output(words, text=True).splitlines()):
        name, _, group = one["group"].partition("/")
        if not group.startswith("guarded"):
            is_control = "controls" in group
            own = one["case"] + " guards=on" * (is_control and "guards=" not in one["case"])
            found[name][is_control].append(own)
    return found


def is_asked(entry, ids):
    documented = entry.is_failure and entry.claim("contract")[0] == ["documented"]
    return any(kind == "cases" for kind, *_ in entry.groups) and (
        entry.name in ids if ids else documented or entry.name in os.environ["MORE"].split()
    )


def run_all(version, out, *ids):
    out = Path(out).absolute()
    entries, todo = [e for e in known.load(KNOWN) if is_asked(e, ids)], []
    if lost := set(ids) - {entry.name for entry in entries}:
        print(f"second_way: {min(lost)}: no file of cases/known with cases", file=sys.stderr)
        return 2
    run, every = Run(version, out), listed(entries)
    judges = ThreadPoolExecutor(200)  # they only wait
    for entry in entries:
        for claim in claims(entry, every[entry.name][0], version):
            if not claim[2]:
                print(f"{entry.name}/{claim[0]}: its file has no case of it")
            elif not (claim[1] and "hang" in claim[1].verdicts):  # a hang can block the GPU
                todo.append(judges.submit(run.show, entry, *claim, every[entry.name][1]))
        if entry.name == MEAN:
            todo += [judges.submit(run.over, *x) for x in ((e, f, k) for e in ENGINES for f in FILLS for k in KEYS)]  # fmt: skip
    rows, form = [], "{:56} {:12} {:17} {:17} {}"
    record = (out / f"{version}.jsonl").open("w", encoding="utf-8")
    print(os.environ["MACHINE"], file=record, flush=True)
    for row in (one.result() for one in todo):
        rows.append(row)
        print(json.dumps(row), file=record, flush=True)
        words = [MEAN, f"{row['over']}, {row['fill']}, {row['keys']}"] if "over" in row else [f"{row['id']}/{row['label']}".rstrip("/"), row["verdict"]]  # fmt: skip
        told = "" if row.get("good", True) else "<-- "
        told += next(filter(None, row.get("line", {}).values()), "")[:100]
        print(form.format(*words, *(row.get(name, "-") for name in FORMS), told), flush=True)
    rows = [row for row in rows if "id" in row]
    for row in (bad := [row for row in rows if not row["good"]]):
        print(f"second_way: {row['id']}: its file says that {version} {'fails' if row['fails'] else 'is right'}: {row['case']}", row["line"])  # fmt: skip
    print(f"{len(rows) - len(bad)} of {len(rows)} claims are shown, or no program can make the call; record: {out}/{version}.jsonl")  # fmt: skip
    return 1 if bad else 0


# ---- from records -----------------------------------------------------------------------------------------------------------


def read(paths):
    """[(machine, rows, folder)] of records, the oldest version first."""
    records = []
    for path in map(Path, paths):
        about, *rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        records.append((about, rows, path.parent))
    return sorted(records, key=lambda record: known.number(record[0]["cudnn"]))


def together(name, form, records):
    """What a form showed of a file: 'shows with 9.19.0 (2 of 3), right with 9.28.1'. Cases that must be right count if no other does."""
    words = {}
    for about, rows, _ in records:
        rows = [row for row in rows if row.get("id") == name]
        rows = [row for row in rows if row[form] not in ("no program", "error", "stopped")]
        fails = any(row["fails"] for row in rows)
        own = [SHORT.get((row[form], fails), row[form]) for row in rows if row["fails"] == fails]
        shown = own.count("shows")
        for word in sorted(own, reverse=not fails)[:1]:  # "does not show" or "right" first
            some = f" ({shown} of {len(own)})" if 0 < shown < len(own) else ""
            words.setdefault("shows" if shown else word, []).append(about["cudnn"] + some)
    return ", ".join(f"{word} with {' and '.join(found)}" for word, found in words.items())


def write_checked(*paths):
    records = read(paths)
    about = records[-1][0]
    for path in sorted(KNOWN.glob("*.known")):
        text = path.read_text(encoding="utf-8")
        old = re.search(r"(?m)^checked: (.*(?:\n  .*)*)\n", text)
        found = {}
        for form, what in (("c", "C program"), ("python", f"cudnn-frontend {about['frontend']}")):
            found.setdefault(together(path.stem, form, records), []).append(what)
        if not any(found) or not old:
            continue
        new = "; ".join(f"{' and '.join(whats)}: {word}" for word, whats in found.items() if word)
        by_hand = " ".join(old[1].split()).rpartition("by hand: ")[2]
        new = f"checked: {new} ({about['gpu']}, reports/second_way)"
        if not re.match(r"no(;|$)|C program|cudnn-frontend.*second_way\)", by_hand):
            new += f"; by hand: {by_hand}"
        lines = textwrap.fill(new, 118, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)  # fmt: skip
        path.write_text(text.replace(old[0], lines + "\n"), encoding="utf-8")
    UPSTREAM.write_text(page_of(records), encoding="utf-8")
    return 0


def page_of(records):
    """docs/upstream.md with the tables of these records."""
    page = UPSTREAM.read_text(encoding="utf-8")
    for mark, lines in (("shown", shown_table(records)), ("mean", mean_table(records))):
        table = "\n".join([f"<!-- {mark} -->", *lines, "", ""])
        page = re.sub(rf"<!-- {mark} -->\n(?s:.*?)\n\n", lambda _, new=table: new, page)
    return page


def findings(page):
    """[(title, ids, paragraphs)] of docs/upstream.md: `## 1. Title`, then `ID`: and the text."""
    page = page.partition("\n## Not among")[0]
    for part in re.split(r"(?m)^## \d+\. ", page)[1:]:
        title, files, text = re.match(r"(.*)\n\n(`[^:]*`): ([^\0]*)", part).groups()
        yield title, re.findall(r"`([^`]+)`", files), text.strip()


def shown_table(records):
    every = [(one, form) for one in records for form in FORMS]
    yield "| | file |" + "".join(f" {FORMS[form]}, {one[0]['cudnn']} |" for one, form in every)
    yield "|--:|---|" + "---|" * len(every)
    for number, (_, ids, _) in enumerate(findings(UPSTREAM.read_text(encoding="utf-8")), 1):
        for name in ids:
            told = (together(name, form, [one]).partition(" with ")[0] or "-" for one, form in every)  # fmt: skip
            yield f"| {number} | {name} | {' | '.join(told)} |"


def mean_table(records):
    yield f"| kernel, values | cuDNN | {' | '.join(f'{keys:,}' for keys in KEYS)} |"
    yield "|---|---|" + "--:|" * len(KEYS)
    for want in ((kernel, fill) for kernel in ENGINES for fill in FILLS):
        found = {}  # versions of the same factors have one row
        for about, rows, _ in records:
            own = [row for row in rows if (row.get("over"), row.get("fill")) == want]
            cells = [f"{row.get('python', row.get('c', 0)):.3f}" for row in own]
            found.setdefault(" | ".join(cells), []).append(about["cudnn"])
        for cells, versions in found.items():
            if float(cells[:5] or 0):
                yield f"| {', '.join(want)} | {', '.join(versions)} | {cells} |"


def package(target, *outs):
    """A folder for each finding of docs/upstream.md, out of the folders of runs."""
    entries = {entry.name: entry for entry in known.load(KNOWN)}
    records = read(path for out in outs for path in Path(out).glob("*.jsonl"))
    for number, (title, ids, text) in enumerate(findings(page_of(records)), 1):
        folder = Path(target) / f"{number:02}-{ids[0]}"
        shutil.rmtree(folder, ignore_errors=True)
        lines = [f"# {title}", "", text, ""]
        for name in ids:
            lines += about_file(entries[name], records, folder)
        lines += ["## Environment", ""]
        lines += ["- " + ", ".join(f"{key} {value}" for key, value in about.items()) for about, *_ in records]  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(folder)
    return 0


def not_sent(folder, names):
    """What the programs do not read, or what they compute themselves."""
    paths = [Path(folder) / name for name in names]
    big = sum(path.stat().st_size for path in paths if "want" not in path.name) > 8 << 20
    return [
        path.name for path in paths
        if path.name in ("facts.log", "repro") or path.suffix == ".npy" and (big or ".want." in path.name and path.stat().st_size > 4096)
    ]  # fmt: skip


def about_file(entry, records, folder):
    """The lines of one file of cases/known. Copies its programs."""
    words, source = entry.claim("contract")
    yield from (f"## {entry.title}", "", f"Contract ({words[0]}): {source}.", "")
    told = {"right": "is right", "seen": "fails"}
    versions = {v: told[key] for key in told for f in entry.failures for o in f.observations[key] for v in o.versions}  # fmt: skip
    yield from ("| cuDNN | |", "|---|---|")
    yield from (f"| {v} | {versions[v]} |" for v in sorted(versions, key=known.number))
    yield from ("", f"Expected: {entry.expected or 'an answer within the tolerance.'}", "")
    own = [(about["cudnn"], row, out) for about, rows, out in records for row in rows if row.get("id") == entry.name]  # fmt: skip
    for version, row, _ in own:
        seen = (f"{FORMS[form]} {row[form]}: {row['line'][form]}".rstrip(": ") for form in FORMS)
        yield f"- cuDNN {version}, {row['label'] or entry.name}: {'; '.join(seen)}"
    for row, out in {row["label"]: (row, out) for _, row, out in own if row["fails"]}.values():
        for what, source in zip(("case", "control"), row["folders"]):
            name = "-".join(filter(None, (entry.name, row["label"], what)))
            shutil.copytree(out / source, folder / name, ignore=not_sent)
    yield ""


if __name__ == "__main__":
    WAYS = {"--run": run_all, "--package": package, "--checked": write_checked}
    sys.exit(WAYS[sys.argv[1]](*sys.argv[2:]))
