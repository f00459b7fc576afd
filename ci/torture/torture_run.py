"""One command of FACTS with one fault: which call of which program does not go through, and how the command ended."""

import contextlib
import ctypes
import dataclasses
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import time

HERE = os.path.dirname(os.path.realpath(__file__))
SOURCE = os.environ.get("FACTS_SOURCE") or os.path.realpath(os.path.join(HERE, "../.."))
ORPHAN_SECONDS = 60.0  # it waits only while some are left
STOPPED_SECONDS = float(
    os.environ.get("TORTURE_STOPPED", "5")
)  # more than --timeout of the scenes that are stopped
WORKERS = ("facts-worker", "torture_device", "torture_gpu")
SANITIZERS = "exitcode=99:verify_asan_link_order=0:allocator_may_return_null=1:detect_leaks=1"


@dataclasses.dataclass(frozen=True)
class Fault:
    """Call `at` of `calls` in `program` does `do`; with `ever` all later ones too. at=0: the calls are counted."""

    program: str
    calls: str
    at: int = 0
    do: str = "ENOMEM"
    ever: bool = False

    def variables(self, count):
        found = {
            "TORTURE_PROGRAM": self.program,
            "TORTURE_CALLS": self.calls,
            "TORTURE_AT": str(self.at),
            "TORTURE_DO": self.do,
            "TORTURE_COUNT": count,
        }
        return {**found, "TORTURE_EVER": "1"} if self.ever else found


@dataclasses.dataclass
class Ended:
    status: int  # -N: signal N
    out: bytes
    err: str
    hung: bool
    orphans: int
    calls: int
    fired: int


def adopt_orphans():
    """A worker that outlives its supervisor becomes our child: it cannot hide."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


class Place:
    """A folder for one point, and the programs to start there."""

    def __init__(self, folder, programs, injector):
        self.folder, self.programs, self.injector = folder, programs, injector
        self.few = ""  # set: few points are asked, and this is their seed
        os.makedirs(folder, exist_ok=True)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def some(self, ways):
        """Few points need no count of every way: the first that has points is enough."""
        return random.Random(self.few).sample(ways, len(ways)) if self.few else ways

    def clear(self):
        for name in os.listdir(self.folder):
            path = self.path(name)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)

    def worker(self, fault, count):
        """A worker's environment is the supervisor's to make: a script puts the fault into it. The script stays the same with another fault and
        without one: --resume believes only rows of the very same worker."""
        script, faults = self.path("worker.sh"), self.path("fault.sh")
        found = fault.variables(count) if fault else {}
        if fault and fault.program == "facts-worker":
            found["LD_PRELOAD"] = self.injector
        if fault and os.environ.get("TORTURE_TRACE"):
            found["TORTURE_TRACE"] = "1"
        with open(faults, "w", encoding="utf-8") as file:
            file.writelines(f"export {name}='{value}'\n" for name, value in found.items())
        if fault:
            with open(script, "w", encoding="utf-8") as file:
                file.write(
                    f"#!/bin/sh\n. '{faults}'\nexec '{os.path.join(self.programs, fault.program)}'\n"
                )
            os.chmod(script, 0o700)
        return script

    def environment(self, fault, count, **more):
        ours = ("FACTS_", "LD_PRELOAD", *(f"TORTURE_{letter}" for letter in "ACDEP"))
        kept = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
        kept.update(FACTS_HOME=SOURCE, TMPDIR=self.folder, PIP_NO_INDEX="1", OMP_NUM_THREADS="1")
        kept.update(PYTHONDONTWRITEBYTECODE="1", ASAN_OPTIONS=SANITIZERS)
        kept.update(UBSAN_OPTIONS="print_stacktrace=1:exitcode=99", LSAN_OPTIONS="exitcode=99")
        if os.environ.get("FACTS_PYTHON"):
            kept["FACTS_PYTHON"] = os.environ["FACTS_PYTHON"]
        if fault and fault.program in WORKERS:
            kept["FACTS_WORKER"] = self.worker(fault, count)
        elif os.path.exists(self.path("worker.sh")):
            kept["FACTS_WORKER"] = self.worker(None, count)
        elif fault:
            kept.update(fault.variables(count), LD_PRELOAD=self.injector)
        kept.update(more)
        return kept

    def run_scene(self, scene, fault=None, again=False, **more):
        words = scene.next(self.folder) if again else scene.commands(self.folder)
        return self.run(words, fault, scene.seconds, **scene.environment(self.folder), **more)

    def run(self, arguments, fault=None, timeout=300.0, before=None, out=None, prefix=(), **more):
        """`before()` is called in the new process; `out` is another standard output; `prefix` are words before the command."""
        count = self.path("count")
        with open(count, "wb") as file:
            file.write(bytes(16))
        hung = False
        environment = self.environment(fault, count, **more)
        with open(self.path("out"), "wb") as printed, open(self.path("err"), "wb") as err:
            process = subprocess.Popen(
                [*prefix, os.path.join(self.programs, arguments[0]), *arguments[1:]],
                stdin=subprocess.DEVNULL,
                stdout=printed if out is None else out,
                stderr=err,
                cwd=self.folder,
                preexec_fn=before,
                env={k: v for k, v in environment.items() if v is not None},
                start_new_session=True,
            )
            if fault and fault.do == "stop":
                go_on(process)
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                hung = True
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        orphans = reap()
        with open(count, "rb") as counted:
            calls, fired = struct.unpack("QQ", counted.read(16))
        with open(self.path("out"), "rb") as printed, open(self.path("err"), "rb") as err:
            said = err.read().decode(errors="replace")
            return Ended(process.returncode, printed.read(), said, hung, orphans, calls, fired)


def go_on(process):
    """Lets what has stopped itself stand for STOPPED_SECONDS; of a worker its supervisor may have had enough before."""
    while process.poll() is None:
        stopped = [
            int(pid)
            for pid in os.listdir("/proc")
            if pid.isdigit() and stat(pid)[0] == "T" and descends(int(pid), process.pid)
        ]
        if stopped:
            time.sleep(STOPPED_SECONDS)
            with contextlib.suppress(ProcessLookupError):
                os.kill(stopped[0], signal.SIGCONT)
            return
        time.sleep(0.02)


def descends(pid, ancestor):
    while pid > 1 and pid != ancestor:
        pid = parent(pid)
    return pid == ancestor


def reap():
    """Waits for what the command left. Returns how many of its processes still ran after ORPHAN_SECONDS; they are killed."""
    late = time.monotonic() + ORPHAN_SECONDS
    while time.monotonic() < late:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.005)
        except ChildProcessError:
            return 0
    left = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and parent(pid) == os.getpid()]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return len(left)


def stat(pid):
    """State, parent ...; of a process that is gone none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()
    except OSError:
        return ["", "0"]


def parent(pid):
    return int(stat(pid)[1])


def rows(path):
    """What a record says: a sorted list of (case, build, device, config, verdict); how many lines are no JSON; does it say that it is complete?"""
    found, without, bad, complete = [], {}, 0, False
    if not os.path.exists(path):
        return found, bad, complete
    with open(path, "rb") as file:
        for text in filter(None, file.read().split(b"\n")):
            try:
                line = json.loads(text)
            except ValueError:
                bad += 1
                continue
            complete |= bool(line.get("end", {}).get("complete"))
            if "verdict" in line and line.get("group") != "fuzz/repeated":
                key = (line["case"], line.get("build", ""), line.get("device", ""))
                row = (*key, line.get("config", -1), line["verdict"])
                if line["verdict"] == "inconclusive" and line.get("stage"):
                    without[key] = row  # no answer: it is asked again, and the answer counts
                else:
                    without.pop(key, None)
                    found.append(row)
    return sorted([*found, *without.values()], key=repr), bad, complete
