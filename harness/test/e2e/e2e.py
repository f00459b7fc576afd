"""What the end-to-end tests share: the programs, started as a user or as the supervisor starts them, and the cuDNN builds that are installed here.

ci/test/needs.py says which builds tests may ask, and skips a test whose build is not installed.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
SOURCE = os.environ.get("FACTS_SOURCE") or os.path.realpath(os.path.join(HERE, "../../.."))
BIN = os.environ.get("FACTS_BIN") or os.path.join(SOURCE, "build/release/bin")
FACTS = os.path.join(BIN, "facts")
WORKER = os.path.join(BIN, "facts-worker")
NULL_DRIVER = os.path.join(BIN, "nulldriver/libcuda.so.1")
CONTROL = "pass=fwd dtype=bf16 b=1 h=1 s=128"

sys.path.insert(0, os.path.join(SOURCE, "ci/test"))
import needs  # noqa: E402
from needs import NEW, OLD, Build, need, night  # noqa: E402,F401

CI_BUILDS = (OLD, NEW)
LIARS = os.path.join(BIN, "facts-worker-liars")


def environment(**more):
    """Ours, without what would lead a test astray."""
    astray = "FACTS_FAULT FACTS_WORKER LD_LIBRARY_PATH LD_PRELOAD CUDNN_LIB_CONFIG".split()
    kept = {k: v for k, v in os.environ.items() if k not in astray}
    kept.setdefault("FACTS_HOME", SOURCE)
    kept["PIP_NO_INDEX"] = "1"  # no test asks a package index
    kept.update(more)
    return kept


class Done:
    def __init__(self, process):
        self.status, self.out, self.err = process.returncode, process.stdout, process.stderr
        self.text = self.out + self.err


def started(command, timeout=300, **more):
    """A program that has ended, with what it said as text."""
    return subprocess.run(
        command, capture_output=True, text=True, errors="replace", timeout=timeout, **more
    )


def facts(*arguments, timeout=300, cwd=None, **more):
    return Done(started([FACTS, *arguments], timeout, cwd=cwd, env=environment(**more)))


def description(name="h100-sxm", without=(), **changes):
    """The device object of a shipped description, changed."""
    with open(os.path.join(SOURCE, "lib/devices", name + ".json"), encoding="utf-8") as file:
        device = json.load(file)["device"]
    for key in without:
        del device[key]
    device.update(changes)
    return device


class Answer:
    """What a worker said."""

    def __init__(self, process):
        self.status, self.err = process.returncode, process.stderr
        self.lines = [json.loads(line) for line in process.stdout.splitlines()]
        self.ready = next((line["ready"] for line in self.lines if "ready" in line), None)
        self.failed = next((line["failed"] for line in self.lines if "failed" in line), None)
        self.rows = [line["row"] for line in self.lines if "row" in line]


def worker_environment(**more):
    """The supervisor's, for one thread. (Threads that spin while they wait cost several times the work.)"""
    path = os.environ.get("PATH", "/usr/bin:/bin")
    return {"PATH": path, "OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "1", **more}


CPU = {"device": {"kind": "cpu"}, "threads": 1}


def target(build, device=None, gpu=None):
    """The target line of a build, for a described device or a GPU."""
    described = {"kind": "described", "name": "test", "json": json.dumps(device or description())}
    about = {"cudnn_dir": build.dir, "nvrtc": build.nvrtc, "driver": NULL_DRIVER, "threads": 1}
    about |= {"version": build.version, "build": build.name}
    return about | {"device": described if gpu is None else {"kind": "gpu", "ordinal": gpu}}


def drive(target, asked, command=(WORKER,), **environment):
    """What a worker says of requests: (case, what else the request says)."""
    lines = [{"target": target}]
    lines += [{"id": i, "case": case, **more} for i, (case, more) in enumerate(asked)]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    return Answer(started(command, input=text, env=worker_environment(**environment)))


def run_on_cpu(dumps):
    """Rows of one worker on the CPU backend; each (case, folder) of `dumps` is dumped into its folder."""
    return drive(CPU, [(case, {"do": "run", "dump": folder}) for case, folder in dumps]).rows


def ask(
    build,
    *cases,
    do="decide",
    device=None,
    gpu=None,
    explain=False,
    plan_dir="",
    standalone="",
    expected=False,
    env=None,
    **changes,
):
    """Drives a worker with a target line of our own. Its environment is the supervisor's, but for what `env` changes. `standalone`: a folder, or one
    for each case."""
    first = {**target(build, device, gpu), "plans": True, **changes}
    folders = [standalone] * len(cases) if isinstance(standalone, str) else standalone
    how = {"do": do, "explain": explain, "plan_dir": plan_dir, "expected": expected}
    asked = [(case, {**how, "standalone": folder}) for case, folder in zip(cases, folders)]
    clean = {"CUDNN_LIB_CONFIG": "GRAPH_JIT_ONLY"}
    clean.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
    return drive(first, asked, **{**clean, **(env or {})})


def some(items, first=0, of=2):
    """One in `of` of a long list, unless FACTS_ALL asks for all of it: the night does."""
    items = list(items)
    return items if needs.NIGHT else items[first::of]


class Between:
    """A worker for FACTS_WORKER that passes everything on, except at the moment that the test sets (between.py)."""

    def __init__(self, folder, command):
        os.makedirs(folder)
        self.folder, self.worker = folder, os.path.join(folder, "worker")
        program = os.path.join(SOURCE, "harness/test/e2e/between.py")
        with open(self.worker, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nexec {sys.executable} -B {program} {folder} {command}\n")
        os.chmod(self.worker, 0o755)

    def set(self, what=None, at=0):
        """Forgets the requests so far; `what` happens at request `at`."""
        for name in ("when", "asked", "held"):
            if os.path.exists(os.path.join(self.folder, name)):
                os.unlink(os.path.join(self.folder, name))
        if what:
            with open(os.path.join(self.folder, "when"), "w", encoding="ascii") as file:
                file.write(f"{what} {at}")

    def release(self):
        os.unlink(os.path.join(self.folder, "held"))

    def wait_until_held(self, process):
        """True when the request was reached; False when the process ended before."""
        return wait_for(lambda: os.path.exists(os.path.join(self.folder, "held")), process)


def wait_for(happened, process):
    """Waits until it happened, or the process has ended. The time-out catches a hang."""
    until = time.monotonic() + 300
    while not happened():
        if process.poll() is not None:
            return happened()
        if time.monotonic() > until:
            process.kill()
            raise AssertionError("it did not happen in 300 s")
        time.sleep(0.01)
    return True


class Record:
    """A record file, sorted by kind of line."""

    def __init__(self, path):
        self.runs, self.targets, self.starts, self.times = [], [], [], []
        self.rows, self.ends, self.findings, self.bad = [], [], [], 0
        kinds = {"run": self.runs, "target": self.targets, "start": self.starts}
        kinds |= {"time": self.times, "end": self.ends, "finding": self.findings}
        with open(path, encoding="utf-8", errors="replace") as file:
            for text in file:
                try:
                    line = json.loads(text)
                except ValueError:
                    self.bad += 1
                    continue
                kind = next((kind for kind in kinds if isinstance(line.get(kind), dict)), None)
                kinds[kind].append(line[kind]) if kind else self.rows.append(line)

    def by(self, *keys):
        return {tuple(row.get(k) for k in keys): row for row in self.rows}


def data(name):
    """The text of a file of harness/test/data."""
    with open(os.path.join(SOURCE, "harness/test/data", name), encoding="utf-8") as file:
        return file.read()


def library(folder, name, source="", soname=None):
    """Compiles a small shared library for a test; returns its path."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name)
    flags = ["-o", path, *"-shared -fPIC -x c -".split(), f"-Wl,-soname,{soname or name}", "-ldl"]
    started([os.environ.get("FACTS_CC") or "cc", *flags], input=source + "\n", check=True)
    return path


def read(*names):
    with open(os.path.join(*names), encoding="utf-8") as file:
        return file.read()


def copy_file(source, folder, name=None):
    """A file of its own in another folder: a link's real path would lead back."""
    path = os.path.join(folder, name or os.path.basename(source))
    os.makedirs(folder, exist_ok=True)
    try:
        os.link(os.path.realpath(source), path)
    except OSError:
        shutil.copyfile(source, path)
    return path


class TestCase(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="facts-e2e-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text if isinstance(text, str) else json.dumps(text))
        return self.path(name)

    def asked(self, command, *words, cudnn=NEW, device="h100-sxm", **more):
        """A command of facts, with builds (by name, or a folder) and a device."""
        names = [cudnn] if isinstance(cudnn, str) else cudnn
        names = ",".join(name if "/" in name else need(name).name for name in names)
        return facts(command, *words, "--cudnn", names, "--device", device, **more)

    def record(self, name="r"):
        return Record(self.path(name))

    def assertStatus(self, done, status):
        self.assertEqual(done.status, status, done.text[-2000:])

    def assertNoTrace(self, words):
        """The programs of a user hold none of these words."""
        for program in (WORKER, FACTS):
            with open(program, "rb") as file:
                content = file.read()
            for word in words:
                self.assertNotIn(word.encode(), content, f"{word} in {program}")

    def assertEnvironment(self, answer, *words):
        """The target was refused as a whole: no row, exit 3, class environment, one line that holds the words."""
        self.assertIsNone(answer.ready, answer.lines)
        self.assertEqual(answer.rows, [])
        self.assertEqual(answer.status, 3)
        self.assertEqual(answer.failed["class"], "environment")
        self.assertNotIn("\n", answer.failed["text"])
        for word in words:
            self.assertIn(word, answer.failed["text"])

    def assertOneLine(self, done, status, *words):
        """Bad input: this status, nothing on stdout, one line on stderr that says where and what."""
        self.assertStatus(done, status)
        self.assertEqual(done.out, "")
        self.assertEqual(len(done.err.splitlines()), 1, done.err)
        for word in words:
            self.assertIn(word, done.err)


def main():
    unittest.main(module="__main__", verbosity=2)
