#!/usr/bin/env python3
"""Does the supervisor grow while it fuzzes for long? Many small cases on the cpu backend; needs no GPU.

usage: ci/life.py [--minutes 15] [--cases 1000000]

Prints the memory and the open files of `facts` and of its workers after each tenth of the cases or of the time, and the growth from the second tenth on. Exit: 0; 1 a file
was left open, or `facts` or a worker grew by more than 5 %.
"""

import argparse
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HOME = pathlib.Path(__file__).resolve().parent.parent
MOST = 1.05
WEIGHTS = """number small: 1 1..8
number dim: 1 8x1..8
pass: 1 fwd
dtype: 1 f32
b: 1 1
h: 1 1
s: 1 {small}/{small}
d: 1 {dim}
seed: 1 {1..1000000000}
"""


def state(pid):
    """(resident MB, open files) of a process."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        resident = next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS"))
    return resident, len(os.listdir(f"/proc/{pid}/fd"))


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--facts", default=HOME / "build/release/bin/facts")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return watch(options, pathlib.Path(folder))


def watch(options, folder):
    weights, record = folder / "small.weights", folder / "fuzz.jsonl"
    weights.write_text(WEIGHTS)
    words = [
        options.facts,
        "fuzz",
        "--weights",
        weights,
        "--cases",
        options.cases,
        "--minutes",
        options.minutes,
        "--device",
        "cpu",
        "-j",
        os.cpu_count(),
        "-o",
        record,
    ]  # a thread for each worker
    seen, ended, rows, until = [], 0, 0, 1
    with (
        open(folder / "out", "wb") as out,
        subprocess.Popen(
            [str(w) for w in words],
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, "FACTS_HOME": str(HOME)},
        ) as process,
    ):
        started = time.monotonic()
        while process.poll() is None:
            time.sleep(0.5)
            with open(record, "rb") if record.exists() else open(os.devnull, "rb") as file:
                file.seek(ended)
                rows += sum(b'"verdict"' in line for line in file)
                ended = file.tell()
            if (
                rows > until * options.cases / 10 * 0.99
                or time.monotonic() - started > until * options.minutes * 6 - 1
            ):
                until += 1
                with contextlib.suppress(OSError, StopIteration):  # it ends just now
                    workers = [state(pid) for pid in children(process.pid)] or [(0, 0)]
                    seen.append(
                        (rows, *state(process.pid), *(max(column) for column in zip(*workers)))
                    )
    print("| cases | MB of `facts` | files | MB of a worker | files |\n|---:|---:|---:|---:|---:|")
    for line in seen:
        print("| {:,} | {:.1f} | {} | {:.1f} | {} |".format(*line))
    if process.returncode or len(seen) < 3:
        print((folder / "out").read_text(errors="replace")[-500:], file=sys.stderr)
        return 1
    first, last = seen[1], seen[-1]
    print(
        f"\n{last[0]:,} cases; `facts` grew from {first[1]:.1f} to {last[1]:.1f} MB, a worker from {first[3]:.1f} to {last[3]:.1f} MB"
    )
    return int(
        last[2] > first[2]
        or last[4] > first[4]
        or last[3] > MOST * first[3]
        or last[1] > MOST * first[1]
    )


if __name__ == "__main__":
    sys.exit(main())
