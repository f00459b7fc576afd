"""Times FACTS beside PyTorch on one GPU, in one run. Every figure is a ratio of two times, measured one after the other. With the same cuDNN, device times
are medians of alternating runs, and their ratio has the interval of facts bench (docs/bench.md).

usage: ci/bench.py torch [--same] BENCH_DEVICE [CUDNN_DIR [NVRTC]]    (--same: cuDNN beside cuDNN alone; bench_device of
       lib/bench; CUDNN_DIR should be PyTorch's own for the comparison with the same cuDNN)

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
TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


def tensors(dtype, b, h, s, d, device="cuda", grad=False):
    """q, k, v as b,h,s,d views of dense b,s,h,d memory, as ours."""
    return [
        (torch.randn(b, s, h, d, device=device) * 0.5)
        .to(TYPES[dtype])
        .transpose(1, 2)
        .requires_grad_(grad)
        for _ in range(3)
    ]


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


def torch_call(backend, pas, dtype, mask, b, h, s, d):
    q, k, v = tensors(dtype, b, h, s, d, grad=pas == "bwd")
    causal = mask == "causal"

    def forward():
        with sdpa_kernel(backend):
            return sdpa(q, k, v, is_causal=causal)

    if pas == "fwd":

        def call():
            with torch.no_grad():
                return forward()

        return call
    o = forward()
    g = torch.randn_like(o)
    return lambda: torch.autograd.grad(o, (q, k, v), g, retain_graph=True)


def ours(args, backend, *shape):
    done = subprocess.run(
        [args[0], backend, *map(str, shape), *args[1:]], capture_output=True, text=True
    )
    if done.returncode:
        print(f"{backend} {shape}: {done.stderr.strip()}", file=sys.stderr)
        return None
    return json.loads(done.stdout)


def in_turns(args, shape, call):
    """Medians of PyTorch's and our device time, and the ratio with its interval; None: ours failed."""
    process = subprocess.Popen(
        [args[0], "cudnn", *map(str, shape), "turns=1", *args[1:]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
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
    return (
        median(theirs),
        median(mine),
        times.interval([us / them for us, them in zip(mine, theirs)], times.ERROR / 2),
    )


def row(what, theirs, mine):
    print(
        f"| {what} | {theirs:,.1f} | "
        + ("failed | |" if mine is None else f"{mine:,.1f} | {mine / theirs:.3f} |"),
        flush=True,
    )


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
F32 = (
    [(4, 16, 4096, 128)]
    + [(2, 16, s, 128) for s in (512, 1024, 2048)]
    + [(2, 16, s, d) for d in (64, 75, 100, 256) for s in (512, 4096)]
)
MATH = (
    [
        (pas, dtype, "none", *shape, 128)
        for pas in ("fwd", "bwd")
        for dtype in ("bf16", "f16")
        for shape in ((4, 16, 4096), (2, 8, 512))
    ]
    + [("fwd", "bf16", "causal", 4, 16, 4096, 128), ("fwd", "bf16", "none", 2, 8, 1024, 100)]
    + [(pas, "f32", "none", *shape) for pas in ("fwd", "bwd") for shape in F32]
)


def main(args):
    if not args or not torch.cuda.is_available():
        print("bench_torch: no GPU" if args else __doc__, file=sys.stderr)
        return 3
    torch.backends.cuda.matmul.allow_tf32 = False
    print(
        f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, its cuDNN {torch.backends.cudnn.version()}\n"
    )
    same_only = args[0] == "--same"
    args = args[same_only:]
    print("| case | PyTorch us | FACTS us | ratio |\n|---|---|---|---|")
    for shape in SAME:
        name = "{} {} {} b{} h{} s{} d{}".format(*shape)
        call = torch_call(SDPBackend.CUDNN_ATTENTION, *shape)
        found = in_turns(args, shape, call)
        if found:
            theirs, mine, ratio = found
            print(
                f"| device, cuDNN: {name} | {theirs:,.1f} | {mine:,.1f} | {ratio.middle:.3f} ({ratio.low:.3f} to {ratio.high:.3f}) |",
                flush=True,
            )
        else:
            row(f"device, cuDNN: {name}", device_us(call, CALLS), None)
        if shape[5] <= 512:
            mine = ours(args, "cudnn", *shape)
            row(f"host, cuDNN: {name}", host_us(call), mine and mine["host_us"])
    if same_only:
        return 0
    for shape in MATH:
        theirs, mine = device_us(torch_call(SDPBackend.MATH, *shape), 5), ours(args, "math", *shape)
        row(
            "device, math: {} {} {} b{} h{} s{} d{}".format(*shape),
            theirs,
            mine and mine["device_us"],
        )
        torch.cuda.empty_cache()
    for s, d in ((1024, 64), (1024, 128)):
        q, k, v = tensors("f32", 1, 8, s, d, "cpu")
        since, n = time.perf_counter(), 0
        with torch.no_grad():
            sdpa(q, k, v)
            since = time.perf_counter()
            while n < 20:
                sdpa(q, k, v)
                n += 1
        theirs = (time.perf_counter() - since) * 1e6 / n
        mine = ours(args[:1], "cpu", "fwd", "f32", "none", 1, 8, s, d)
        row(
            f"cpu f32, {torch.get_num_threads()} threads: b1 h8 s{s} d{d}",
            theirs,
            mine and mine["device_us"],
        )
    return 0
