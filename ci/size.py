#!/usr/bin/env python3
"""How much memory and time do many cases take? Each command on the cpu backend, with the smallest cases. Needs no GPU.

usage: ci/size.py [--cases 1000000] [--work DIR] [STEP...]      steps: list decide run merge report diff; all unless given;
       merge, report and diff take the record of run, or of decide where there is none; compare, only when it is given, is a report of as many
       rows of 4 builds on 2 devices, which the page compares (reports/test/synthetic.py)

`run` computes one query on one key; decide is the cpu backend's, not cuDNN's: what is measured is FACTS. A record in --work is not made again. One line
of the table is one command: the seconds, the CPU seconds of all its processes, the peak of its largest process, and of `facts` itself.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

HOME = pathlib.Path(__file__).resolve().parent.parent
MOST = {"facts": 500, "report": 1536}  # megabytes
SECONDS = {
    ("report", 100_000): 15,
    ("report", 1_000_000): 120,
    ("compare", 100_000): 25,
}  # of the processor


def peak(pid):
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            return next(
                (int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM")), 0
            )
    except (OSError, ValueError):
        return 0


def measure(words, out):
    """(exit, seconds, CPU seconds, MB of the largest process, MB of `facts` while it is `facts`)."""
    own = [0]
    with open(out, "wb") as file:
        started = time.monotonic()
        process = subprocess.Popen(
            [str(word) for word in words],
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, "FACTS_HOME": str(HOME)},
        )
        over = threading.Event()

        def watch():
            while not over.wait(0.2):
                own[0] = max(own[0], peak(process.pid))

        thread = threading.Thread(target=watch)
        thread.start()
        _, state, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(state)
        over.set()
        thread.join()
    return process.returncode, wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, own[0]


def synthetic_record(path, rows):
    sys.path[:0] = [str(HOME / "reports/test"), str(HOME / "reports")]
    import synthetic

    each = len(synthetic.BUILDS) * len(synthetic.DEVICES)
    path.write_text(synthetic.text(synthetic.record(extra=rows // each)), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--facts", default=HOME / "build/release/bin/facts")
    parser.add_argument("steps", nargs="*", metavar="STEP")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as aside:
        return table(options, options.work or pathlib.Path(aside))


def table(options, work):
    work.mkdir(exist_ok=True)
    cases = f"pass=fwd dtype=f32 b=1 h=1 s=1 d=8,16 seed=1..{options.cases // 2}"
    decided, ran, merged, page, several = (
        work / "decide.jsonl",
        work / "run.jsonl",
        work / "merged.jsonl",
        work / "page",
        work / "several.jsonl",
    )
    steps = {
        "list": ("list", cases),
        "decide": ("decide", cases, "--device", "cpu", "-o", decided),
        "run": ("run", cases, "--device", "cpu", "-o", ran),
        "merge": ("merge", "-o", merged, "RECORD", "--overwrite"),
        "report": ("report", "RECORD", "-o", page),
        "diff": ("diff", "RECORD", merged),
        "compare": ("report", several, "-o", work / "several"),
    }
    print(
        f"| {options.cases:,} cases | s | CPU s | MB | MB of `facts` |\n|---|---:|---:|---:|---:|"
    )
    failed = []
    for step in options.steps or list(steps)[:-1]:
        if step == "compare":
            synthetic_record(several, options.cases)
        record = {"decide": decided, "run": ran}.get(step)
        if record and record.exists():
            continue
        words = [
            (ran if ran.exists() else decided) if word == "RECORD" else word for word in steps[step]
        ]
        status, wall, cpu, most, own = measure((options.facts, *words), work / f"{step}.out")
        print(
            f"| {step} | {wall:.1f} | {cpu:.1f} | {most:.0f} | {own:.0f} |"
            if step in ("decide", "run")
            else f"| {step} | {wall:.1f} | {cpu:.1f} | {most:.0f} | |",
            flush=True,
        )
        said = (work / f"{step}.out").read_bytes()[-300:].decode(errors="replace")
        if status:
            failed.append(f"{step}: exit {status}: {said}")
        if own > MOST["facts"] if step in ("decide", "run") else most > MOST["report"]:
            failed.append(f"{step}: {max(own, most):.0f} MB")
        if cpu > SECONDS.get((step, options.cases), 1e9):
            failed.append(f"{step}: {cpu:.0f} s of CPU")
    if page.exists():
        print(
            "\n"
            + ", ".join(
                f"{path.name} {path.stat().st_size / 1e6:.1f} MB" for path in sorted(page.iterdir())
            )
        )
    print("\n".join(failed), file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
