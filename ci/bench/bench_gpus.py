"""How much faster is a run on all GPUs of a host (--device all) than on one of them? Plans are made before, and the same cases are run in turn on GPU 0
and on all, with as many workers for each GPU in both. Prints seconds and executed cases a second of each run, how the cases were spread over the GPUs,
and the ratio of the best runs.

usage: ci/bench.py gpus [--suite peers-fe] [--cudnn 9.27.0] [--jobs N] [--turns 2] [--plans DIR]
  --jobs N   workers for each GPU (default: the cores, divided by the GPUs)
Exit: 0 printed; 1 the rows of one GPU and of all say something else; 3 a run could not be made.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter

HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NOT_EXECUTED = {"unsupported", "inconclusive", "build_fail"}


def give_up(why):
    print(f"bench_gpus.py: {why}", file=sys.stderr)
    sys.exit(3)


def read(path):
    """The rows of a record by case and configuration, on which GPU how many cases began, and how many GPUs there are."""
    rows, begun, gpus = {}, Counter(), 1
    with open(path, encoding="utf-8") as file:
        for line in map(json.loads, file):
            if "case" in line:
                rows[line["case"], line.get("config")] = line["verdict"]
            elif "start" in line:
                begun[line["start"].get("gpu", 0)] += 1
            elif "target" in line:
                gpus = line["target"].get("gpus", 1)
    return rows, begun, gpus


def run(options, device, jobs, record):
    command = [
        os.path.join(options.bin, "facts"),
        "run",
        options.suite,
        "--cudnn",
        options.cudnn,
        "--device",
        device,
        "--jobs",
        str(jobs),
        "--plan-dir",
        options.plans,
        "--overwrite",
        "-o",
        record,
    ]
    started = time.monotonic()
    done = subprocess.run(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "FACTS_HOME": HOME},
        check=False,
    )
    seconds = time.monotonic() - started
    if done.returncode not in (0, 1):  # 1: findings are no matter here
        give_up(f"exit {done.returncode}: {' '.join(command)}\n{done.stderr[-1000:]}")
    return (seconds, *read(record))


def main(args):
    parser = argparse.ArgumentParser(usage=__doc__.partition("usage: ")[2])
    parser.add_argument("--suite", default="peers-fe")
    parser.add_argument("--cudnn", default="9.27.0")
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--plans", default="")
    parser.add_argument(
        "--bin", default=os.environ.get("FACTS_BIN") or os.path.join(HOME, "build/release/bin")
    )
    options = parser.parse_args(args)
    with tempfile.TemporaryDirectory() as folder:
        options.plans = options.plans or os.path.join(folder, "plans")
        _, rows, _, gpus = run(
            options, "all", len(os.sched_getaffinity(0)), os.path.join(folder, "first")
        )
        jobs = options.jobs or max(1, len(os.sched_getaffinity(0)) // gpus)
        print(
            f"{options.suite}, cuDNN {options.cudnn}: {len(rows)} rows, {gpus} GPUs, workers for each: {jobs}; plans made before",
            flush=True,
        )
        best, said = {}, {"0": {}, "all": {}}
        for _ in range(options.turns):
            for device, workers in (("0", jobs), ("all", jobs * gpus)):
                seconds, rows, begun, _ = run(
                    options, device, workers, os.path.join(folder, "timed")
                )
                executed = sum(verdict not in NOT_EXECUTED for verdict in rows.values())
                spread = ", ".join(f"{begun[gpu]} on GPU {gpu}" for gpu in sorted(begun))
                print(
                    f"--device {device}: {seconds:.1f} s, {executed} executed, {executed / seconds:.1f} a second; {spread}",
                    flush=True,
                )
                best[device] = min(seconds, best.get(device, seconds))
                for key, verdict in rows.items():
                    said[device].setdefault(key, set()).add(verdict)
        print(f"all GPUs: {best['0'] / best['all']:.2f} times the speed of one")
        unlike = [
            key
            for key in said["0"].keys() | said["all"].keys()
            if said["0"].get(key) != said["all"].get(key)
        ]
        varies = [
            key
            for key in unlike
            if any(
                len(s.get(key, ())) > 1 or "nondeterministic" in s.get(key, ())
                for s in said.values()
            )
        ]
        unlike = sorted(set(unlike) - set(varies), key=str)
        print(
            f"{len(varies)} rows vary from run to run; {len(unlike)} others differ"
            + (f"; the first one: {unlike[0]}" if unlike else "")
        )
        return 1 if unlike else 0
