#!/usr/bin/env python3
"""How fast is a run of a suite on a GPU, and what do kept plans save? Runs with an empty folder of plans, and again with what that left.

  executed cases a second, milliseconds of the GPU held for each
  --frontend DIR  a checkout of cudnn-frontend, whose test_mhas_v2.py is run in the same session: the ratio of executed cases a second. Wants a
                  Python (--python) with cudnn, torch, pytest and looseversion

usage: ci/bench.py [--suite peers-fe] [--cudnn 9.27.0] [--device 0] [--shard I/N] [--jobs N] [--plans DIR] [--frontend DIR] [--frontend-seconds N]
Exit: 0 printed; 3 a step could not be run.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NOT_EXECUTED = {"unsupported", "inconclusive", "build_fail"}


def give_up(why):
    print(f"bench.py: {why}", file=sys.stderr)
    sys.exit(3)


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        return [row for row in map(json.loads, file) if "case" in row]


def step(options, words, record, plans):
    """One command of facts: its rows, seconds, seconds of CPU of all its processes."""
    command = [os.path.join(options.bin, "facts"), *words, options.suite, "--overwrite"]
    command += ["--cudnn", options.cudnn, "--device", options.device, "-o", record]
    command += ["--plan-dir", plans]
    command += ["--shard", options.shard] if options.shard else []
    command += ["--jobs", str(options.jobs)] if options.jobs else []
    env = {**os.environ, "FACTS_HOME": HOME}
    started, quiet = time.monotonic(), subprocess.DEVNULL
    child = subprocess.Popen(command, stdout=quiet, stderr=subprocess.PIPE, text=True, env=env)
    said = child.stderr.read()
    _, status, used = os.wait4(child.pid, 0)
    seconds = time.monotonic() - started
    if os.waitstatus_to_exitcode(status) not in (0, 1):  # 1: findings are no matter here
        give_up(f"exit {os.waitstatus_to_exitcode(status)}: {' '.join(command)}\n{said[-1000:]}")
    return rows_of(record), seconds, used.ru_utime + used.ru_stime


def is_executed(row):
    return row["verdict"] not in NOT_EXECUTED


def counts(rows):
    made = sum(
        "plan_ms" in row and not row.get("plan_loaded") and row.get("backend") == "cudnn"
        for row in rows
    )
    return {
        "rows": len(rows),
        "refused": sum(row["verdict"] == "unsupported" for row in rows),
        "compiled": made,
        "loaded": sum(row.get("plan_loaded") is True for row in rows),
        "refusals": sum(row.get("refusal_loaded") is True for row in rows),
    }


def own_ms(rows):
    """Each row's own milliseconds in its worker: those of engine=all have the time since their request."""
    last, out = {}, []
    for row in rows:
        key = (row["case"], row["build"], row["device"])
        out.append(row["wall_ms"] - last.get(key, 0))
        last[key] = row["wall_ms"] if row.get("more") else 0
    return out


def line(title, rows, seconds, cpu):
    c, rate = counts(rows), len(rows) / seconds
    plans = f"plans {c['compiled']} compiled, {c['loaded']} loaded; refusals {c['refusals']} of {c['refused']} loaded"
    return f"  {title:<28}{seconds:8.1f} s {rate:8.0f} rows/s {cpu:8.1f} s of CPU   {plans}"


def executed_line(title, rows, seconds):
    executed = sum(map(is_executed, rows))
    both = zip(rows, own_ms(rows))
    refused = sum(ms for row, ms in both if row["verdict"] == "unsupported") * 1e-3
    rate = executed / seconds
    held = f"the GPU held {1e3 / max(rate, 1e-9):.1f} ms a case"
    more = f"refused {len(rows) - executed}: {refused:.1f} worker seconds"
    said = f"{executed} executed, {rate:.1f} a second; {held}; {more}"
    print(f"  {title:<28}{seconds:8.1f} s  {said}", flush=True)
    return rate


def measured(options, work):
    print(f"{options.suite} on GPU {options.device}, cuDNN {options.cudnn}, {os.cpu_count()} cores")
    empty, rates, rows = os.path.join(work, "plans"), {}, []
    folders = {"run, folder empty": empty, "run, with the folder": options.plans or empty}
    for title, plans in folders.items():
        rows, seconds, cpu = step(options, ["run"], os.path.join(work, "record"), plans)
        print(line(title, rows, seconds, cpu))
        rates[title] = executed_line(title, rows, seconds)
    if options.frontend:
        peer = frontend(options)
        for title, rate in rates.items():
            print(f"  {title}: {rate / peer:.1f} times test_mhas_v2.py")
    return 0


def passed_of(output):
    """(executed, seconds) out of pytest's last line. A test with an error, such as a module that cannot be imported, did not run: (0, 0.0)."""
    counted = re.findall(r"(\d+) (passed|failed|error|errors)\b", output)
    words = {word: int(number) for number, word in counted}
    seconds = re.search(r" in ([\d.]+)s", output)
    if not seconds or words.keys() & {"error", "errors"}:
        return 0, 0.0
    return sum(words.values()), float(seconds[1])


def frontend(options):
    folder = os.path.join(options.frontend, "test/python")
    command = [options.python, "-m", "pytest", "test_mhas_v2.py", "-m", "L0", "-q"]
    if options.frontend_seconds:
        command = ["timeout", "-s", "INT", str(options.frontend_seconds), *command]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    executed, seconds = passed_of(done.stdout[-2000:])
    if not executed or not seconds:
        give_up(f"{folder}: {(done.stdout + done.stderr)[-1000:]}")
    said = f"{seconds:8.1f} s  {executed} executed, {executed / seconds:.2f} a second"
    print(f"\n  test_mhas_v2.py -m L0        {said}", flush=True)
    return executed / seconds


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--suite", default="peers-fe")
    parser.add_argument("--cudnn", default="9.27.0")
    parser.add_argument("--device", default="0", help="the number of a GPU")
    parser.add_argument("--shard", help="I/N: only this part of the suite")
    parser.add_argument("--jobs", type=int, default=0)
    said = "plans that facts compile made ahead, for the second run"
    parser.add_argument("--plans", metavar="DIR", help=said)
    parser.add_argument("--frontend", metavar="DIR", help="a checkout of cudnn-frontend")
    said = "interrupt its tests after so many seconds: the rate is of what ran till then"
    parser.add_argument("--frontend-seconds", type=int, default=0, help=said)
    said = "with cudnn, torch, pytest and looseversion, for --frontend"
    parser.add_argument("--python", default=sys.executable, help=said)
    parser.add_argument("--bin", default=os.path.join(HOME, "build/release/bin"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        sys.exit(measured(options, work))


if __name__ == "__main__":
    main()
