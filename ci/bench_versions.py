#!/usr/bin/env python3
"""How fast are many versions, and how much memory do many cases take? Needs no GPU. Wants bench_decide: cmake --build build/release --target benches

  versions   N cases of suite core on every build of a range, as one described device, beside a bare loop over cuDNN's heuristics
             (bench_decide) on three of the builds. Seconds of CPU and the ratios hold on a machine that others use too.
  million    a pattern of a million cases: the memory of `facts list --count`, `facts list` and `facts decide` on the cpu backend

usage: bench_versions.py [--cudnn 9.12..9.27] [--device h100-sxm] [--cases 2000] [--bin build/release/bin] [versions] [million]
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time

HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MILLION = "pass=fwd b=1..100 s=64..6400:64 d=8..800:8"


def measure(command, out):
    """Runs it with stdout to a file: exit status, seconds, seconds of CPU with all its workers, MB of its largest process."""
    started = time.monotonic()
    with open(out, "w", encoding="utf-8") as file:
        child = subprocess.Popen(
            command, stdout=file, stderr=subprocess.DEVNULL, env={**os.environ, "FACTS_HOME": HOME}
        )
        _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):  # 1: findings are no matter here
        sys.exit(f"bench_versions.py: exit {child.returncode}: {' '.join(command)}")
    return time.monotonic() - started, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def count(record):
    """Rows of a record."""
    with open(record, encoding="utf-8") as file:
        return sum(line.startswith('{"case":') for line in file)


def draw(options, work):
    """The same N cases each time."""
    names = subprocess.run(
        [options.facts, "list", "core"],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "FACTS_HOME": HOME},
    ).stdout.splitlines()
    path = os.path.join(work, "drawn.cases")
    chosen = random.Random(1).sample(names, min(options.cases, len(names)))
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(chosen) + "\n")
    return path, len(chosen)


def bare(options, cases, builds):
    """CPU seconds of one case in a bare loop, and with fattn_decide around it: the mean of three builds of the range."""
    sums = [0.0, 0.0]
    chosen = sorted({builds[0], builds[len(builds) // 2], builds[-1]})
    for name in chosen:
        words = (
            subprocess.run(
                [options.facts, "cudnn", "install", name],
                check=True,
                capture_output=True,
                text=True,
                env={**os.environ, "FACTS_HOME": HOME},
            )
            .stdout.strip()
            .split("\t")
        )
        with open(cases, encoding="utf-8") as file:
            done = subprocess.run(
                [
                    os.path.join(options.bin, "bench_decide"),
                    words[1],
                    words[2] if len(words) > 2 and words[2] else "-",
                    os.path.join(options.bin, "nulldriver/libcuda.so.1"),
                    os.path.join(HOME, f"lib/devices/{options.device}.json"),
                ],
                stdin=file,
                check=True,
                capture_output=True,
                text=True,
                env={**os.environ, "CUDNN_LIB_CONFIG": "GRAPH_JIT_ONLY"},
            )
        said = json.loads(done.stdout)
        sums[0] += 1 / said["bare_per_s"] / len(chosen)
        sums[1] += 1 / said["decide_per_s"] / len(chosen)
    return sums


def versions(options, work):
    cases, drawn = draw(options, work)
    ask = [
        options.facts,
        "decide",
        cases,
        "--cudnn",
        options.cudnn,
        "--device",
        options.device,
        "-j",
        "2",
        "--overwrite",
        "-o",
    ]
    record = os.path.join(work, "record.jsonl")
    wall, cpu, _ = measure(ask + [record], os.path.join(work, "out"))
    rows = count(record)
    with open(record, encoding="utf-8") as file:
        builds = [target["build"] for target in json.loads(file.readline())["run"]["targets"]]
    alone, decide = (each * drawn * len(builds) for each in bare(options, cases, builds))
    print(
        f"{drawn} cases x {len(builds)} builds ({builds[0]} to {builds[-1]}) as {options.device}, {os.cpu_count()} cores, 2 workers: {rows} rows\n"
        f"  bare loop over heuristics      {alone:7.1f} s of CPU\n"
        f"  fattn_decide, the same loop    {decide:7.1f} s of CPU, {decide / alone:.2f} of bare\n"
        f"  facts decide                   {cpu:7.1f} s of CPU, {cpu / alone:.2f} of bare; {wall:.1f} s"
    )


def million(options, work):
    record = os.path.join(work, "million.jsonl")
    for title, words in (
        ("facts list --count", ["list", MILLION, "--count"]),
        ("facts list", ["list", MILLION]),
        (
            "facts decide, cpu",
            ["decide", MILLION, "--device", "cpu", "-j", "1", "--overwrite", "-o", record],
        ),
    ):
        wall, cpu, memory = measure([options.facts, *words], os.path.join(work, "out"))
        print(
            f"a million cases: {title:20} {memory:5.0f} MB, {cpu:6.1f} s of CPU, {wall:.1f} s",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cudnn", default="9.12..9.27")
    parser.add_argument("--device", default="h100-sxm")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--bin", default=os.path.join(HOME, "build/release/bin"))
    parser.add_argument(
        "what", nargs="*", metavar="versions|million", default=["versions", "million"]
    )
    options = parser.parse_args()
    if set(options.what) - {"versions", "million"}:
        parser.error(f"{options.what[0]}: versions or million")
    options.facts = os.path.join(options.bin, "facts")
    with tempfile.TemporaryDirectory() as work:
        for what in options.what:
            {"versions": versions, "million": million}[what](options, work)


if __name__ == "__main__":
    main()
