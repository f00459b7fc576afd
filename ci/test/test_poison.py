"""Nothing that a record, log, case file, name or folder says reaches a terminal, the page, JUnit, Markdown or CSV as something that is obeyed.

Commands print what they can of poisoned files. All outputs are looked at byte by byte.
"""

import csv
import itertools
import json
import os
import re
import shlex
import shutil
import sys
import unittest
from xml.etree import ElementTree

from scripts import FACTS, HOME, OneFolder, start

MARKS = "\x1b]0;title\x07\x1b[31m \x9b2J \u202e\u2066\u200f\u061c\u2028\ufeff"
# Characters that a terminal, a page or a spreadsheet may obey: controls except line ends and tabs, C1 controls, marks of direction, line separators.
OBEYED = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)
NAME = "x\x1b[31m\u202e\u009b\u2028y"  # of a file or folder
CASE, OTHER = "pass=fwd dtype=bf16 d=64", "pass=bwd dtype=bf16 d=64"
BAD = f"=1+cmd|' /C calc'!A0 {MARKS} <script>alert(1)</script> ]]> `x` | [y](javascript:z)"


def poisoned(value):
    """Each text that begins with @ becomes a bad one that begins with what follows."""
    if isinstance(value, dict):
        return {poisoned(key): poisoned(item) for key, item in value.items()}
    if isinstance(value, list):
        return [poisoned(item) for item in value]
    return value[1:] + BAD if isinstance(value, str) and value[:1] == "@" else value


def record(better=False):
    """The lines of a record."""
    build, device, run = "9.20.0-jit-cu13", ("@" + BAD)[:60], {"run": "r", "cudnn": "9.20.0"}
    target = {"build": build, "device": device, "sm": 90}
    head = "facts started suite suite_hash host shard trusted_plans".split()
    yield {
        "run": {
            "id": "r",
            "command": ["facts", "@"],
            "planned": 9,
            "groups": {"@@": "@"},
            "targets": [{**target, "kind": "@"}],
            "environment": {"@": "@"},
            **dict.fromkeys(head, "@"),
        }
    }
    libraries = [{"path": "@/", "sha256": "@", "record": "@"}]
    more = {"driver": "@", "device_name": "@", "planned": "gpu0", "libraries": libraries}
    yield {"target": {**run, **target, **more}}
    chain = [dict.fromkeys(("engine", "status", "text", "condition"), "@")]
    error = {"ratio": 9.0, "gate": "@", "worst_index": ["@"], "got": "@", "want": "@"}
    engine = {"mode": "A", "index": "@", "config": 0, "knobs": {"@": "@"}, "notes": ["@"]}
    expectation = {"verdict": "@", "since": "@", "link": "@javascript:", "title": "@"}
    row = {
        **run,
        **target,
        "grade": "measured",
        "backend": "cudnn",
        "attempt": 1,
        "group": "@@",
        "supported": True,
        "engine": "@+",
        "reason": {**dict.fromkeys(("class", "status", "rule"), "@"), "text": "@-", "chain": chain},
        "engines": [engine],
        "errors": {"@": error},
        "expectation": expectation,
        "tensors": {"@": "@"},
        **dict.fromkeys(("stage", "inputs_from", "not_loaded"), "@"),
    }
    for case, verdict in (
        (CASE, "pass" if better else "wrong"),
        (OTHER, "crash"),
        (f"pass=fwd dtype=bf16 d=100 {MARKS}", "unsupported"),
        ("=1+1 " + MARKS, "inconclusive"),
        ("pass=fwd dtype=bf16 d=32", "pass" if better else "unsupported"),
    ):
        for name in (device, "h100-sxm"):
            yield {**row, "case": case, "device": name, "verdict": verdict}
    other = {"build": "@9.21.0", "device": "@-", "cudnn": "@+9"}
    yield {**row, "case": CASE, **other, "verdict": "wrong"}
    yield {"end": {"run": "r", "complete": True, "note": "@"}}


def dangerous_cells(path):
    """Cells of a CSV file that a spreadsheet would run."""
    with open(path, newline="", encoding="utf-8") as file:
        cells = itertools.chain.from_iterable(csv.reader(file))
        found = [cell for cell in cells if cell[:1] in ("=", "+", "-", "@", "\t", "\r")]
    return [cell for cell in found if not re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", cell)]


class Poison(OneFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.at = cls.at / NAME
        cls.home = cls.at / "home"
        for name in ("lib", "cases", "ci"):
            (cls.home / name).mkdir(parents=True)
        for folder in ("lib/devices", "cases/suites", "cases/known"):
            shutil.copytree(HOME / folder, cls.home / folder)
        for folder in ("reports", "build", "lib/nulldriver", "cases/golden", "ci/cudnn_lock.py"):
            (cls.home / folder).symlink_to(HOME / folder)
        log = (HOME / "harness/test/data/import/frontend-1.32-features.log").read_text()
        known = (HOME / "cases/known/bool-mask-wrong.known").read_text()
        device = json.loads((HOME / "lib/devices/h100-sxm.json").read_text())
        device = json.dumps({**device, **dict.fromkeys(("name", "source", "date"), BAD)})
        lines = [
            "".join(json.dumps(poisoned(line), ensure_ascii=ascii_only) + "\n" for line in made)
            for made, ascii_only in ((record(), True), (record(better=True), False))
        ]
        for name, text in {
            "a.jsonl": lines[0] + f"no JSON {MARKS}\n",
            "b.jsonl": lines[1],
            f"{NAME}.jsonl": lines[0],
            "x.log": f"[cudnn_frontend] {BAD}\n" + log.replace("ERROR", f"ERROR {BAD}"),
            "x.cases": f"# {BAD}\ngroup: {CASE}\nwhy: {BAD}\npass=fwd {BAD}\n",
            "why.cases": f"group:\nwhy: {BAD}\n{CASE}\n",
            "x.json": device,
            "bad.json": json.dumps({"name": BAD, "device": {"deviceVer": BAD}}),
            "home/cases/suites/zzz.cases": f"# {BAD}\n{CASE}\n",
            "home/lib/devices/zzz.json": device,
            f"home/lib/devices/{NAME}.json": "{}",
            "home/cases/known/zzz.known": known.replace("title: ", f"title: {BAD} "),
            "home/ci/cudnn.lock": f"{BAD}\n",
            f"cache/facts/cudnn/{NAME}/METADATA": f"Version: {BAD}\n",
            "cache/facts/cudnn/9.20.0-jit-cu13/METADATA": f"Name: nvidia-cudnn-jit-cu13\nVersion: {BAD}\n",
            "cache/facts/cudnn/9.20.0-jit-cu13/lib/libcudnn.so.9": BAD,
        }.items():
            (cls.at / name).parent.mkdir(parents=True, exist_ok=True)
            (cls.at / name).write_text(text)

    def ask(self, text, home=HOME):
        """Runs a command in the poisoned folder; checks what it printed, and each file that it wrote and people open. BAD and NAME are put in."""
        words = [word.replace("NAME", NAME).replace("BAD", BAD) for word in shlex.split(text)]
        out = self.at / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        add = {
            "FACTS_HOME": str(home),
            "XDG_CACHE_HOME": str(self.at / "cache"),
            "PIP_NO_INDEX": "1",
            "FACTS_PYTHON": os.environ.get("FACTS_PYTHON") or sys.executable,
        }
        done = start(FACTS, *words, cwd=self.at, timeout=120, add=add, errors="surrogateescape")
        with self.subTest(text):
            self.assertIn(done.returncode, range(6), done.stderr[-2000:])
            self.assertNotIn("Traceback", done.stderr)
            files = [path for path in sorted(out.rglob("*")) if path.is_file()]
            printed = {name: os.fsencode(getattr(done, name)) for name in ("stdout", "stderr")}
            for name, data in [*printed.items(), *((p.name, p.read_bytes()) for p in files)]:
                self.assertIsNone(OBEYED.search(data.decode()), name)
            for path in files:
                if path.suffix == ".csv":
                    self.assertEqual(dangerous_cells(path), [])
                if path.suffix == ".xml":
                    ElementTree.parse(path)
        return files

    def test_records(self):
        files = self.ask("report a.jsonl -o out/site --title BAD")
        self.assertIn("results.csv", [path.name for path in files])
        gate = "--junit out/x.xml --page out/page --annotations"
        for text in (
            "report a.jsonl b.jsonl --site out/site",
            f"report a.jsonl --issue '{CASE}'",
            "report a.jsonl --issue BAD",
            "report a.jsonl --decisions h100-sxm -BAD",
            "report . -o out/NAME",
            "merge -o out/out.jsonl a.jsonl NAME.jsonl --force",
            "merge -o NAME/NAME a.jsonl",
            f"diff a.jsonl b.jsonl {gate}",
            f"gate b.jsonl NAME.jsonl {gate}",
            "gate a.jsonl b.jsonl --markdown",
            "diff a.jsonl b.jsonl --json",
            "diff a.jsonl b.jsonl --where BAD",
            "gate a.jsonl --baseline 9.20.0 --candidate 9.21.0BAD --fail-on BAD",
            "calibrate --from a.jsonl",
            "audit 'pt/*' --from a.jsonl --markdown",
            "known check a.jsonl",
            "known propose a.jsonl",
        ):
            self.ask(text)
        shutil.copy(self.at / "a.jsonl", self.at / "resumed.jsonl")
        cpu = "'pass=fwd dtype=f32 b=1 h=1 s=16 d=16' --device cpu"
        self.ask(f"run {cpu} --resume -o resumed.jsonl")
        self.ask(f"run {cpu} --json -o NAME.new")

    def test_files_and_words(self):
        for text in (
            "list x.cases",
            "list why.cases --json",
            "list noneNAME.cases",
            "list 'pass=fwd BAD'",
            "list smoke --where BAD",
            "list smoke --with BAD",
            "BAD",
            "list --BAD",
            "keys BAD",
            "import x.log",
            "import x.log --json",
            "import noneNAME a.jsonl",
            *(f"decide pass=fwd --device {d} --cudnn BAD" for d in ("x.json", "bad.json", "BAD")),
            "repro 'pass=fwd d=16 BAD' --device cpu",
            "adopt BAD",
            "matrix --cudnn BAD",
            "known show BAD",
            *(f"cudnn {task} BAD" for task in ("install", "remove", "path", "lock")),
        ):
            self.ask(text)

    def test_folders_and_builds(self):
        known = "known list|known show zzz|cudnn list|cudnn install 9.20.0|cudnn remove NAME"
        texts = f"list|devices|doctor --json|doctor|{known}|decide pass=fwd --cudnn 9.20.0"
        for text in texts.split("|"):
            self.ask(text, home=self.home)


if __name__ == "__main__":
    unittest.main()
