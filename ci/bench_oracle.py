#!/usr/bin/env python3
"""Times what a case costs beside its kernels on a GPU (fill, oracle in double precision with every bound, judge) against a plain PyTorch reference
in fp32 of the same problem, in one run.

usage: ci/bench_oracle.py FACTS CUDNN [CASE...]    (FACTS: the front door or a bundle's facts; CUDNN as for --cudnn)

Prints a Markdown table: PyTorch's time, ours (fill + oracle + judge), ours / PyTorch's. Each case runs twice in one worker, the second counts.
Exit: 0 printed; 3 no GPU or no PyTorch; otherwise what FACTS said.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

try:
    import torch
except ImportError as error:
    sys.exit(print(f"bench_oracle: {error}", file=sys.stderr) or 3)

CASES = [
    "pass=fwd dtype=bf16 b=2 h=16 s=4096 d=128 want=stats",
    "pass=bwd dtype=bf16 b=2 h=16 s=4096 d=128",
    "pass=fwd dtype=bf16 b=2 h=16 s=2048 d=128 mask=causal want=stats",
    "pass=bwd dtype=bf16 b=2 h=16 s=2048 d=128 mask=causal",
    "pass=fwd dtype=bf16 b=2 h=8 s=512 d=128 want=stats",
    "pass=bwd dtype=bf16 b=2 h=8 s=512 d=128",
    "pass=fwd dtype=bf16 b=1 h=8/2 s=65536 d=128 mask=causal want=stats",
]
STAGES = ("fill_ms", "oracle_ms", "judge_ms")


def number(case, key, otherwise):
    found = re.search(rf"(?:^| ){key}=(\d+)", case)
    return int(found.group(1)) if found else otherwise


def plain_reference_ms(case):
    """Scores, softmax, product in fp32, and autograd for a backward; None when it does not fit the card."""
    b, h, s, d = (number(case, key, value) for key, value in (("b", 2), ("h", 8), ("s", 512), ("d", 128)))
    backward = case.startswith("pass=bwd")
    q, k, v = (torch.randn(b, h, s, d, device="cuda", requires_grad=backward) for _ in range(3))
    g = torch.randn(b, h, s, d, device="cuda")

    def run():
        x = q @ k.transpose(-1, -2) * d ** -0.5
        if "mask=causal" in case:
            x = x.masked_fill(torch.ones(s, s, device="cuda", dtype=torch.bool).triu(1), float("-inf"))
        o = torch.softmax(x, -1) @ v
        if backward:
            torch.autograd.grad(o, (q, k, v), g)

    try:
        run()
        torch.cuda.synchronize()
        since = time.perf_counter()
        run()
        run()
        torch.cuda.synchronize()
        return (time.perf_counter() - since) / 2 * 1e3
    except torch.cuda.OutOfMemoryError:
        return None
    finally:
        torch.cuda.empty_cache()


def ours(facts, cudnn, cases):
    """The rows of the second time that each case ran; seed=2 makes it another case."""
    with tempfile.TemporaryDirectory() as folder:
        record, suite = os.path.join(folder, "r.jsonl"), os.path.join(folder, "s.cases")
        with open(suite, "w", encoding="utf-8") as file:
            file.write("name: bench\nwhy: what judging costs\n" + "".join(f"{case} seed={seed}\n" for case in cases for seed in (1, 2)))
        done = subprocess.run([facts, "run", suite, "--cudnn", cudnn, "--device", "0", "-j", "1", "-o", record], capture_output=True, text=True)
        if done.returncode not in (0, 1):
            sys.exit(print(done.stderr.strip(), file=sys.stderr) or done.returncode)
        with open(record, encoding="utf-8") as file:
            rows = [row for row in map(json.loads, file) if "verdict" in row]
        return {row["case"].replace(" seed=2", ""): row for row in rows if " seed=2" in row["case"]}


def main(args):
    if len(args) < 2 or not torch.cuda.is_available():
        print("bench_oracle: FACTS and CUDNN, on a machine with a GPU", file=sys.stderr)
        return 2 if len(args) < 2 else 3
    torch.backends.cuda.matmul.allow_tf32 = False
    cases = args[2:] or CASES
    rows = ours(args[0], args[1], cases)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n\n| case | verdict, oracle | fill | oracle | judge | PyTorch fp32 | ours / PyTorch's |\n|---|---|---|---|---|---|---|")
    for case, row in rows.items():
        theirs, mine = plain_reference_ms(case), [row.get(stage, 0.0) for stage in STAGES]
        ratio = "does not fit | |" if theirs is None else f"{theirs:,.1f} ms | {sum(mine) / theirs:.2f} |"
        print(f"| `{case}` | {row['verdict']}, {row.get('oracle', 'none')} | " + " | ".join(f"{x:,.1f} ms" for x in mine) + f" | {ratio}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
