"""Nothing that a record, log, case file, name or folder says reaches a terminal, the page, JUnit, Markdown or CSV as something that is obeyed.

Every command prints what it can of poisoned files; all outputs are looked at byte by byte. A command without a line here fails the test.
Half of the questions, each command among them; FACTS_ALL=1, as the night sets it, asks all.
"""

import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree

import needs

CI = pathlib.Path(__file__).resolve().parent.parent
SOURCE = pathlib.Path(os.environ.get("FACTS_SOURCE") or CI.parent)
FACTS = pathlib.Path(os.environ.get("FACTS_BIN") or SOURCE / "build/release/bin") / "facts"
MARKS = "\x1b]0;title\x07\x1b[31m \x9b2J \u202e\u2066\u200f\u061c\u2028\ufeff"
# Characters that a terminal, a page or a spreadsheet may obey: controls except line ends and tabs, C1 controls, marks of direction, line separators.
OBEYED = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)
NAME = "x\x1b[31m\u202e\u009b\u2028y"  # of a file or folder
CASE, OTHER = "pass=fwd dtype=bf16 d=64", "pass=bwd dtype=bf16 d=64"
CPU = "pass=fwd dtype=f32 b=1 h=1 s=16 d=16"


def text(start=""):
    return (
        f"{start}=1+cmd|' /C calc'!A0 {MARKS} <script>alert(1)</script> ]]> `x` | [y](javascript:z)"
    )


def row(case, build, device, **more):
    return {
        "case": case,
        "cudnn": "9.20.0",
        "build": build,
        "device": device,
        "sm": 90,
        "grade": "measured",
        "backend": "cudnn",
        "attempt": 1,
        "run": "r",
        "group": text("@"),
        "supported": True,
        "engine": text("+"),
        "reason": {
            "class": text(),
            "status": text(),
            "text": text("-"),
            "rule": text(),
            "chain": [{"engine": text(), "status": text(), "text": text(), "condition": text()}],
        },
        "engines": [
            {
                "mode": "A",
                "index": text(),
                "config": 0,
                "knobs": {text(): text()},
                "notes": [text()],
            }
        ],
        "errors": {
            text(): {
                "ratio": 9.0,
                "gate": text(),
                "worst_index": [text()],
                "got": text(),
                "want": text(),
            }
        },
        "expectation": {
            "verdict": text(),
            "since": text(),
            "link": "javascript:" + text(),
            "title": text(),
        },
        "stage": text(),
        "inputs_from": text(),
        "not_loaded": text(),
        "tensors": {text(): text()},
        **more,
    }


def record(build="9.20.0-jit-cu13", better=False):
    device = text("@h100")[:60]
    yield {
        "run": {
            "id": "r",
            "facts": text(),
            "started": text(),
            "command": ["facts", text()],
            "suite": text(),
            "suite_hash": text(),
            "host": text(),
            "planned": 9,
            "groups": {text("@"): text()},
            "targets": [{"build": build, "device": device, "kind": text()}],
            "shard": text(),
            "trusted_plans": text(),
            "environment": {text(): text()},
        }
    }
    yield {
        "target": {
            "run": "r",
            "build": build,
            "device": device,
            "cudnn": "9.20.0",
            "sm": 90,
            "driver": text(),
            "device_name": text(),
            "planned": "gpu0",
            "libraries": [{"path": text("/"), "sha256": text(), "record": text()}],
        }
    }
    for case, verdict in (
        (CASE, "pass" if better else "wrong"),
        (OTHER, "crash"),
        (f"pass=fwd dtype=bf16 d=100 {MARKS}", "unsupported"),
        ("=1+1 " + MARKS, "inconclusive"),
        ("pass=fwd dtype=bf16 d=32", "pass" if better else "unsupported"),
    ):
        for name in (device, "h100-sxm"):
            yield row(case, build, name, verdict=verdict)
    yield row(CASE, text("9.21.0"), text("-"), verdict="wrong", cudnn=text("+9"))
    yield {"end": {"run": "r", "complete": True, "note": text()}}


def dangerous_cells(path):
    """Cells of a CSV file that a spreadsheet would run."""
    with open(path, newline="", encoding="utf-8") as file:
        return [
            cell
            for line in csv.reader(file)
            for cell in line
            if cell[:1] in ("=", "+", "-", "@", "\t", "\r")
            and not re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", cell)
        ]


class Poison(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not FACTS.exists():
            raise unittest.SkipTest(f"{FACTS} is not built")
        cls.top = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.top)
        cls.at = cls.top / NAME
        cls.at.mkdir()
        for name, lines in (
            ("a.jsonl", record()),
            ("b.jsonl", record(better=True)),
            (f"{NAME}.jsonl", record()),
        ):
            (cls.at / name).write_text(
                "".join(json.dumps(line, ensure_ascii=len(name) % 2 == 0) + "\n" for line in lines)
                + f"no JSON {MARKS}\n"
            )
        (cls.at / "x.log").write_text(
            f"[cudnn_frontend] {text()}\n"
            + (SOURCE / "harness/test/data/import/frontend-1.32-features.log")
            .read_text()
            .replace("ERROR", f"ERROR {text()}")
            + '{"tag":"'
            + MARKS
        )
        (cls.at / "x.cases").write_text(
            f"# {text()}\ngroup: {CASE}\nwhy: {text()}\npass=fwd {text()}\n"
        )
        (cls.at / "why.cases").write_text(f"group:\nwhy: {text()}\n{CASE}\n")
        (cls.at / "draws.cases").write_text(f"draw 1\npass={text()}\n")
        device = json.loads((SOURCE / "lib/devices/h100-sxm.json").read_text())
        (cls.at / "x.json").write_text(
            json.dumps(
                {**device, "name": text(), "source": text(), "read_with": text(), "date": text()}
            )
        )
        (cls.at / "bad.json").write_text(
            json.dumps({"name": text(), "device": {"deviceVer": text()}}, ensure_ascii=False)
        )
        cls.home = cls.folders()

    @classmethod
    def folders(cls):
        """A project's folder with a poisoned suite, device, known failure and lock, below a poisoned name."""
        home = cls.at / "home"
        home.mkdir()
        for name in ("lib", "cases", "ci"):
            (home / name).mkdir()
        for whole in (
            "reports",
            "harness",
            "build",
            "lib/nulldriver",
            "cases/claims",
            "cases/golden",
            "cases/errata.json",
            "cases/fuzz.cases",
            "cases/calibration.json",
            "cases/reject",
            "ci/cudnn_lock.py",
            "ci/cudnn_install.py",
        ):
            (home / whole).symlink_to(SOURCE / whole)
        for folder in ("lib/devices", "cases/suites", "cases/known"):
            shutil.copytree(SOURCE / folder, home / folder)
        (home / "cases/suites/zzz.cases").write_text(f"# {text()}\n{CASE}\n")
        (home / "lib/devices/zzz.json").write_text((cls.at / "x.json").read_text())
        (home / f"lib/devices/{NAME}.json").write_text("{}")
        known = (SOURCE / "cases/known/bool-mask-wrong.known").read_text()
        (home / "cases/known/zzz.known").write_text(known.replace("title: ", f"title: {text()} "))
        (home / "ci/cudnn.lock").write_text(f"{text()}\n")
        return home

    def check(self, name, data):
        printed = data.decode()
        found = OBEYED.search(printed)
        before = printed[max(found.start() - 60, 0) : found.start()] if found else ""
        self.assertIsNone(found, f"{name}: after {before!r}")

    def ask(self, *words, home=None, cache="cache"):
        """Runs a command in the poisoned folder; checks what it printed, and each file that it wrote and people open."""
        self.count += 1
        if words[0] in self.asked and self.count % 2 and not needs.NIGHT:
            return
        out = self.at / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        kept = {k: v for k, v in os.environ.items() if k not in ("FACTS_WORKER", "FACTS_FAULT")}
        done = subprocess.run(
            [FACTS, *words],
            cwd=self.at,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=120,
            check=False,
            env={
                **kept,
                "FACTS_HOME": str(home or SOURCE),
                "XDG_CACHE_HOME": str(self.at / cache),
                "PIP_NO_INDEX": "1",
                "FACTS_PYTHON": os.environ.get("FACTS_PYTHON") or sys.executable,
                "TMPDIR": str(self.top),
            },
        )
        where = " ".join(words).encode("unicode_escape").decode()
        with self.subTest(where):
            self.look(where, done, out)
        self.asked.add(words[0])

    def look(self, where, done, out):
        self.assertIn(done.returncode, range(6), f"{where}: {done.stderr[-2000:]}")
        self.check(f"{where}, stdout", done.stdout)
        self.check(f"{where}, stderr", done.stderr)
        self.assertNotIn(b"Traceback", done.stderr, where)
        for path in sorted(
            p for p in out.rglob("*") if p.is_file() and p.suffix not in (".plan", ".npy")
        ):
            self.check(f"{where}: {path.name}", path.read_bytes())
            if path.suffix == ".csv":
                self.assertEqual(dangerous_cells(path), [], where)
            if path.suffix == ".xml":
                ElementTree.parse(path)

    def test_all_commands(self):
        self.asked, self.count = set(), 0
        self.records()
        self.files_and_words()
        self.folders_and_builds()
        listed = subprocess.run(
            [FACTS, "help", "markdown"], capture_output=True, text=True, check=True
        )
        commands = set(re.findall(r"^## facts (\S+)$", listed.stdout, re.M))
        self.assertEqual(commands - self.asked, set(), "commands that nothing here asks")

    def records(self):
        self.ask("report", "a.jsonl", "-o", "out/site")
        self.assertGreater((self.at / "out/site/results.csv").stat().st_size, 1000)
        self.ask("report", f"{NAME}.jsonl", "-o", "out/site", "--title", text())
        self.ask("report", "a.jsonl", "b.jsonl", "--site", "out/site")
        for words in (
            ("--issue", CASE),
            ("--issue", OTHER),
            ("--issue", text()),
            ("--decisions", "h100-sxm", text("-")),
        ):
            self.ask("report", "a.jsonl", *words)
        self.ask("report", "--bits", "a.jsonl", "b.jsonl")
        self.ask("report", f"none {text()}", "-o", "out/site")
        self.ask("report", ".", "-o", f"out/{NAME}")
        self.ask("merge", "-o", "out.jsonl", "a.jsonl", f"{NAME}.jsonl", "--force", "--overwrite")
        self.ask("merge", "-o", f"{NAME}/{NAME}", "a.jsonl")
        files = ("--junit", "out/x.xml", "--errata", "out/errata.json", "--page", "out/page")
        for one, other in (("a.jsonl", "b.jsonl"), ("b.jsonl", f"{NAME}.jsonl")):
            for command in ("diff", "gate"):
                for form in ((), ("--json",), ("--markdown",)):
                    self.ask(command, one, other, *form, "--annotations", *files)
        self.ask("diff", "a.jsonl", "b.jsonl", "--where", text())
        self.ask("diff", "a.jsonl", "--baseline", text(), "--candidate", text())
        self.ask(
            "gate",
            "a.jsonl",
            "--baseline",
            "9.20.0",
            "--candidate",
            text("9.21.0"),
            "--fail-on",
            text(),
        )
        self.ask("calibrate", "--from", "a.jsonl")
        for form in ((), ("--json",), ("--markdown",)):
            self.ask("audit", "pt/*", "--from", "a.jsonl", *form)
        for task in ("check", "propose"):
            self.ask("known", task, "a.jsonl")
        for words in (
            ("run", CPU),
            ("decide", CPU),
            ("fuzz", "--cases", "1"),
            ("shrink", CPU),
            ("bisect", CPU, "--by", "verdict"),
        ):
            shutil.copy(self.at / "a.jsonl", self.at / "resumed.jsonl")
            self.ask(*words, "--device", "cpu", "--resume", "-o", "resumed.jsonl")
        self.ask("run", CPU, "--device", "cpu", "--json", "-o", f"{NAME}.new", "--overwrite")
        self.ask("expect", "golden", "check", text(), "--cudnn", text())

    def files_and_words(self):
        for words in ((), ("--json",), ("--count",)):
            self.ask("list", "x.cases", *words)
            self.ask("list", "why.cases", *words)
        self.ask("list", f"none{NAME}.cases")
        self.ask("list", f"pass=fwd {text()}")
        self.ask("list", CASE, "--where", text())
        self.ask("list", CASE, "--with", text())
        self.ask(text())
        self.ask("list", f"--{text()}")
        self.ask("keys", text())
        for form in ((), ("--json",)):
            self.ask("import", "x.log", *form)
        self.ask("import", f"none{NAME}", "a.jsonl")
        self.ask("fuzz", "--draws", "draws.cases", "--cases", "1", "--device", "cpu")
        for device in ("x.json", "bad.json", text(), f"none{NAME}.json"):
            self.ask("decide", CASE, "--device", device, "--cudnn", text())
            self.ask("compile", CASE, "--device", device, "--plan-dir", f"out/{NAME}")
        self.ask("repro", f"pass=fwd {text()}", "--device", "cpu")
        self.ask("repro", CPU, "--device", "cpu", "--dump", f"{NAME}/{NAME}")
        self.ask("bench", CASE, "--device", text())
        self.ask("self", "--liar", text(), "--quick")
        self.ask("adopt", text())
        self.ask("matrix", "--cudnn", text())
        self.ask("audit", text())
        self.ask("known", "show", text())
        self.ask("cudnn", text())
        for task in ("install", "remove", "path", "lock"):
            self.ask("cudnn", task, text())

    def folders_and_builds(self):
        for words in (
            ("list",),
            ("list", "--json"),
            ("devices",),
            ("known", "list", "--json"),
            ("doctor", "--json"),
            ("known", "list"),
            ("known", "show", "zzz"),
            ("list", "regress", "--count"),
            ("cudnn", "list"),
            ("cudnn", "install", "9.20.0"),
            ("doctor",),
        ):
            self.ask(*words, home=self.home)
        for name in (NAME, f"9.20.0-jit-cu13{NAME}", "9.20.0-jit-cu13"):
            folder = self.at / "cache/facts/cudnn" / name
            (folder / "lib").mkdir(parents=True)
            (folder / "METADATA").write_text(
                f"Metadata-Version: 2.1\nName: nvidia-cudnn-jit-cu13\nVersion: {text('9.20.0.48')}\n"
            )
            (folder / "RECORD").write_text(text())
            for library in (
                "libcudnn.so.9",
                "libcudnn_graph.so.9",
                "libcudnn_engines_runtime_compiled.so.9",
            ):
                (folder / "lib" / library).write_text(text())
        for mode in (0o700, 0o777):
            (self.at / "cache/facts").chmod(mode)
            for words in (
                ("cudnn", "list"),
                ("doctor",),
                ("cudnn", "path", "9.20.0"),
                ("cudnn", "remove", NAME),
                ("decide", CASE, "--cudnn", str(folder)),
                ("decide", CASE, "--cudnn", "9.20.0"),
            ):
                self.ask(*words)


if __name__ == "__main__":
    unittest.main()
