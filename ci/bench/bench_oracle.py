"""Times the work of a case in addition to its kernels on a GPU: fill, reference results in double precision with every bound, comparison. In the same run it
times a plain PyTorch reference in fp32 of the same problem.

usage: ci/bench.py oracle FACTS CUDNN [CASE...]
       (FACTS: the front door or a bundle's facts; CUDNN as for --cudnn)

Prints Markdown tables: PyTorch's time, the time of FACTS (fill + oracle + judge), and their ratio. Without CASE: 8 forward and 8 backward cases of the suite core,
then large ones. All times are medians. PyTorch: 20 runs (large: 3) after 3 warm-up runs (large: 1), with a wait after each; first in a row, then with
30 ms of other work before each. FACTS: 6 seeds (large: 1) after one warm-up, all in one worker, which builds a plan before each. So the table compares FACTS
with PyTorch after other work; the ratio to PyTorch's time in a row is in the next column. The median and the worst of the core cases follow their table.
Exit: 0 printed; 3 no GPU or no PyTorch; otherwise the exit status of FACTS.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import torch
except ImportError:
    torch = None

LARGE = [
    "pass=fwd dtype=bf16 b=2 h=16 s=4096 d=128 want=stats",
    "pass=bwd dtype=bf16 b=2 h=16 s=4096 d=128",
    "pass=fwd dtype=bf16 b=2 h=16 s=2048 d=128 mask=causal want=stats",
    "pass=bwd dtype=bf16 b=2 h=16 s=2048 d=128 mask=causal",
    "pass=fwd dtype=bf16 b=2 h=8 s=512 d=128 want=stats",
    "pass=bwd dtype=bf16 b=2 h=8 s=512 d=128",
    "pass=fwd dtype=bf16 b=1 h=8/2 s=65536 d=128 mask=causal want=stats",
]
STAGES = ("fill_ms", "oracle_ms", "judge_ms")
PLAIN_KEYS = {"pass", "dtype", "b", "h", "s", "d", "mask", "want"}
COMMON = "d.qk%8=0 & d.v%8=0 & d.qk<=128 & d.v<=128 & dtype in (bf16, f16) & mask in (none, causal)"


def core_cases(facts, each=8):
    """Of the core cases that a few lines of PyTorch can express and every cuDNN accepts, `each` of either pass, evenly spaced in the suite's order."""
    listed = subprocess.run(
        [facts, "list", "core", "--where", COMMON], capture_output=True, text=True
    )
    if listed.returncode:
        sys.exit(print(listed.stderr.strip(), file=sys.stderr) or listed.returncode)
    plain = [
        case
        for case in listed.stdout.splitlines()
        if {token.split("=")[0] for token in case.split()} <= PLAIN_KEYS
    ]
    of_pass = [
        [case for case in plain if case.startswith(f"pass={word} ")] for word in ("fwd", "bwd")
    ]
    return [cases[(2 * i + 1) * len(cases) // (2 * each)] for cases in of_pass for i in range(each)]


def numbers(case, key, usual, count):
    """The parts of key=A/B/C in a case, so many of them: each that is missing is the one before it."""
    found = re.search(rf"(?:^| ){key}=([\d/]+)", case)
    parts = [int(part) for part in found.group(1).split("/")] if found else [usual]
    return parts + parts[-1:] * (count - len(parts))


def plain_reference(case):
    """Scores, softmax, product in fp32, and autograd for a backward: a function that does it once."""
    (b,), (hq, hk, hv), (sq, sk), (dq, dv) = (
        numbers(case, *key) for key in (("b", 2, 1), ("h", 8, 3), ("s", 512, 2), ("d", 128, 2))
    )
    backward, causal = "pass=bwd" in case, "mask=causal" in case
    q, k, v, g = (
        torch.randn(b, h, s, d, device="cuda", requires_grad=backward and n < 3)
        for n, (h, s, d) in enumerate(((hq, sq, dq), (hk, sk, dq), (hv, sk, dv), (hq, sq, dv)))
    )

    def run():
        keys = k if hk == hq else k.repeat_interleave(hq // hk, 1)
        values = v if hv == hq else v.repeat_interleave(hq // hv, 1)
        x = q @ keys.transpose(-1, -2) * dq**-0.5
        if causal:
            x = x.masked_fill(
                torch.ones(sq, sk, device="cuda", dtype=torch.bool).triu(1), float("-inf")
            )
        o = torch.softmax(x, -1) @ values
        if backward:
            torch.autograd.grad(o, (q, k, v), g)

    return run


def work_on_something_else():
    """What building a plan does to a processor's caches and to a GPU that waits: 30 ms of it."""
    until = time.perf_counter() + 0.03
    while time.perf_counter() < until:
        sorted(range(20000), key=lambda n: n * 7919 % 20011)


def plain_reference_ms(case, warm, runs):
    """Medians, in a row and after other work; None when it does not fit the card."""
    times = {None: [], work_on_something_else: []}
    try:
        run = plain_reference(case)
        for before, of in times.items():
            for _ in range(warm + runs):
                if before:
                    before()
                since = time.perf_counter()
                run()
                torch.cuda.synchronize()
                of.append((time.perf_counter() - since) * 1e3)
        return [statistics.median(of[warm:]) for of in times.values()]
    except torch.cuda.OutOfMemoryError:
        return None
    finally:
        torch.cuda.empty_cache()


def ours(facts, cudnn, cases, seeds):
    """Rows by case, of every seed but the first; another seed makes it another case."""
    with tempfile.TemporaryDirectory() as folder:
        record, suite = os.path.join(folder, "r.jsonl"), os.path.join(folder, "s.cases")
        with open(suite, "w", encoding="utf-8") as file:
            file.write(
                "name: bench\nwhy: what judging costs\n"
                + "".join(f"{case} seed={2 + n}\n" for case in cases for n in range(seeds + 1))
            )
        done = subprocess.run(
            [facts, "run", suite, "--cudnn", cudnn, "--device", "0", "-j", "1", "-o", record],
            capture_output=True,
            text=True,
        )
        if done.returncode not in (0, 1):
            sys.exit(print(done.stderr.strip(), file=sys.stderr) or done.returncode)
        with open(record, encoding="utf-8") as file:
            rows = [row for row in map(json.loads, file) if "verdict" in row]
    by_case = {}
    for row in rows:
        by_case.setdefault(re.sub(r" seed=\d+", "", row["case"]), []).append(row)
    return {case: of[1:] for case, of in by_case.items()}


def text_of(ms):
    return f"{ms * 1e3:,.0f} us" if ms < 10 else f"{ms:,.1f} ms"


def print_table(rows_of_case, warm, runs):
    """A line for each case; answers the ratios: after other work, and in a row."""
    ratios = []
    print(
        "| case | verdict, reference | fill | reference | compare | FACTS | PyTorch | PyTorch alone | FACTS / PyTorch | FACTS / PyTorch alone |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for case, rows in rows_of_case.items():
        judged = [row for row in rows if all(stage in row for stage in STAGES)]
        if not judged:
            print(
                f"| `{case}` | {rows[0]['verdict'] if rows else 'no row'} | | | | | | | | |",
                flush=True,
            )
            continue
        theirs = plain_reference_ms(case, warm, runs)
        mine = statistics.median(sum(row[stage] for stage in STAGES) for row in judged)
        of_case = [mine / theirs[1], mine / theirs[0]] if theirs else []
        ratios += [of_case] if theirs else []
        cells = [f"{judged[0]['verdict']}, {judged[0].get('oracle', 'none')}"] + [
            text_of(statistics.median(row[stage] for row in judged)) for stage in STAGES
        ]
        cells += [text_of(mine)] + (
            [text_of(ms) for ms in reversed(theirs)] if theirs else ["does not fit", ""]
        )
        print(
            f"| `{case}` | "
            + " | ".join(cells + [f"{ratio:.2f}" for ratio in of_case] + [""] * (2 - len(of_case)))
            + " |",
            flush=True,
        )
    return ratios


def main(args):
    if len(args) < 2 or torch is None or not torch.cuda.is_available():
        print("bench_oracle: FACTS and CUDNN, on a machine with a GPU and PyTorch", file=sys.stderr)
        return 2 if len(args) < 2 else 3
    torch.backends.cuda.matmul.allow_tf32 = False
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n")
    cases = args[2:] or core_cases(args[0])
    ratios = print_table(ours(args[0], args[1], cases, 6), 3, 20)
    if ratios:
        for word, of in zip(("", " alone"), zip(*ratios)):
            print(
                f"\n{len(of)} cases: FACTS / PyTorch{word} {statistics.median(of):.2f} in the median, {max(of):.2f} at worst",
                flush=True,
            )
        print()
    if len(args) == 2:
        print_table(ours(args[0], args[1], LARGE, 1), 1, 3)
    return 0
