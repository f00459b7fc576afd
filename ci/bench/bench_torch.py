"""Times FACTS beside PyTorch on one GPU, in one run. Every figure is a ratio of two times, measured one after the other. With the same cuDNN, device times
are medians of alternating runs, and their ratio has the interval of facts bench (docs/bench.md).

usage: ci/bench.py torch [--same] BENCH_DEVICE [CUDNN_DIR [NVRTC]]    (bench_device of lib/bench; CUDNN_DIR should be
       PyTorch's own: then both sides have the same cuDNN; --same changes nothing)

Prints a Markdown table: PyTorch's time, the time of FACTS, and their ratio. A host time is the time of one call in its thread; a device time is between two events.
Exit: 0 printed; 3 no GPU or no PyTorch.
"""

import json
import pathlib
import subprocess
import sys
import time
from statistics import median

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "reports"))
from facts_reports.compare import times  # noqa: E402

try:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention as sdpa
except ImportError as error:
    sys.exit(print(f"bench_torch: {error}", file=sys.stderr) or 3)

ROUNDS, CALLS = 16, 20
TYPES = {"bf16": torch.bfloat16, "f16": torch.float16}


def tensors(dtype, b, h, s, d, grad):
    """q, k, v as b,h,s,d views of dense b,s,h,d memory, as ours."""
    made = ((torch.randn(b, s, h, d, device="cuda") * 0.5).to(TYPES[dtype]) for _ in range(3))
    return [one.transpose(1, 2).requires_grad_(grad) for one in made]


def device_us(call, repeats):
    for _ in range(3):
        call()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(repeats):
        call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) * 1e3 / repeats


def host_us(call, batches=20, calls=50):
    best = 1e30
    for _ in range(batches):
        torch.cuda.synchronize()
        since = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - since) * 1e6 / calls)
    return best


def torch_call(pas, dtype, mask, b, h, s, d):
    q, k, v = tensors(dtype, b, h, s, d, pas == "bwd")

    def forward():
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return sdpa(q, k, v, is_causal=mask == "causal")

    if pas == "fwd":

        def call():
            with torch.no_grad():
                return forward()

        return call
    o = forward()
    g = torch.randn_like(o)
    return lambda: torch.autograd.grad(o, (q, k, v), g, retain_graph=True)


def ours(args, *shape):
    command = [args[0], "cudnn", *map(str, shape), *args[1:]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"cudnn {shape}: {done.stderr.strip()}", file=sys.stderr)
        return None
    return json.loads(done.stdout)


def in_turns(args, shape, call):
    """Medians of PyTorch's and our device time, and the ratio with its interval; None: ours failed."""
    command = [args[0], "cudnn", *map(str, shape), "turns=1", *args[1:]]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
    theirs, mine = [], []
    try:
        process.stdout.readline()  # it is ready
        for turn in range(ROUNDS + 1):
            us = device_us(call, CALLS)
            process.stdin.write("\n")
            process.stdin.flush()
            own = json.loads(process.stdout.readline())["device_us"]
            if turn:  # the first warms up
                theirs.append(us)
                mine.append(own)
    except (OSError, ValueError):
        return None
    finally:
        process.kill()
        process.communicate()
    ratio = times.interval([us / them for us, them in zip(mine, theirs)], times.ERROR / 2)
    return median(theirs), median(mine), ratio


def row(what, theirs, mine):
    said = "failed | |" if mine is None else f"{mine:,.1f} | {mine / theirs:.3f} |"
    print(f"| {what} | {theirs:,.1f} | {said}", flush=True)


SAME = [
    ("fwd", "bf16", "none", 4, 16, 4096, 128),
    ("fwd", "bf16", "causal", 4, 16, 4096, 128),
    ("fwd", "bf16", "none", 2, 16, 4096, 256),
    ("fwd", "f16", "none", 4, 16, 2048, 64),
    ("fwd", "bf16", "none", 2, 8, 512, 128),
    ("bwd", "bf16", "none", 4, 16, 4096, 128),
    ("bwd", "bf16", "causal", 4, 16, 4096, 128),
    ("bwd", "f16", "none", 4, 16, 2048, 64),
]


def main(args):
    if not args or not torch.cuda.is_available():
        print("bench_torch: no GPU" if args else __doc__, file=sys.stderr)
        return 3
    print(
        f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, its cuDNN {torch.backends.cudnn.version()}\n"
    )
    args = args[args[0] == "--same" :]
    print("| case | PyTorch us | FACTS us | ratio |\n|---|---|---|---|")
    for shape in SAME:
        name = "{} {} {} b{} h{} s{} d{}".format(*shape)
        call = torch_call(*shape)
        found = in_turns(args, shape, call)
        if found:
            theirs, mine, one = found
            ratio = f"{one.middle:.3f} ({one.low:.3f} to {one.high:.3f})"
            print(f"| device, cuDNN: {name} | {theirs:,.1f} | {mine:,.1f} | {ratio} |", flush=True)
        else:
            row(f"device, cuDNN: {name}", device_us(call, CALLS), None)
        if shape[5] <= 512:
            mine = ours(args, *shape)
            row(f"host, cuDNN: {name}", host_us(call), mine and mine["host_us"])
    return 0
