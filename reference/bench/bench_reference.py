"""The reference against plain NumPy, and PyTorch where there is one, in double on a CPU: attention forward and backward, as ratios of one run.

    python bench_reference.py PATH/bench_reference [--rounds N] [--heads H] [--rows S] [--dim D]

All take turns, and the best of each counts, so that what else the machine does touches all. NumPy and PyTorch compute values alone; a head at a
time or all at once, whichever is faster. The reference is timed for values alone and with sigma and bound of every element. What their products
alone take (two forward, five backward) says how much faster than they anything can be that has to make the same products.
"""

import argparse
import os
import subprocess
import time

parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("program")
parser.add_argument("--rounds", type=int, default=10)
parser.add_argument("--heads", type=int, default=4)
parser.add_argument("--rows", type=int, default=1024)
parser.add_argument("--dim", type=int, default=128)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument(
    "--cpu",
    action="store_true",
    help="processor time, for a machine that is busy; with --threads 1, as waiting counts too",
)
options = parser.parse_args()
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(options.threads)
os.environ["OMP_WAIT_POLICY"] = "passive"

import numpy as np  # noqa: E402  (it reads the number of threads when it is loaded)

try:
    import torch  # noqa: E402
except ImportError:
    torch = None


def transposed(x):
    return np.swapaxes(x, -1, -2)


def forward(q, k, v, scale):
    x = (q @ transposed(k)) * scale
    top = x.max(-1, keepdims=True)
    p = np.exp(x - top)
    total = p.sum(-1, keepdims=True)
    return (p @ v) / total, top + np.log(total)


def backward(q, k, v, o, stats, d_o, scale):
    p = np.exp((q @ transposed(k)) * scale - stats)
    delta = (d_o * o).sum(-1, keepdims=True)
    ds = p * (d_o @ transposed(v) - delta) * scale
    return ds @ k, transposed(ds) @ q, transposed(p) @ d_o


def torch_forward(q, k, v, scale):
    x = (q @ k.transpose(-1, -2)) * scale
    return torch.softmax(x, -1) @ v, torch.logsumexp(x, -1, keepdim=True)


def torch_backward(q, k, v, o, stats, d_o, scale):
    p = torch.exp((q @ k.transpose(-1, -2)) * scale - stats)
    ds = p * (d_o @ v.transpose(-1, -2) - (d_o * o).sum(-1, keepdim=True)) * scale
    return ds @ k, ds.transpose(-1, -2) @ q, p.transpose(-1, -2) @ d_o


def products(q, k, s, backward):
    """The products of either pass and nothing else; `s` stands for P and dS."""
    x = (q @ transposed(k), s @ k)
    return (*x, q @ transposed(k), transposed(s) @ q, transposed(s) @ k) if backward else x


def torch_products(q, k, s, backward):
    x = (q @ k.transpose(-1, -2), s @ k)
    return (
        (*x, q @ k.transpose(-1, -2), s.transpose(-1, -2) @ q, s.transpose(-1, -2) @ k)
        if backward
        else x
    )


def both_ways(work, tensors, scale, heads):
    """All heads at once, and one after the other."""
    return (
        lambda: work(*tensors, scale),
        lambda: [work(*(x[h] for x in tensors), scale) for h in range(heads)],
    )


def seconds(work):
    clock = time.process_time if options.cpu else time.perf_counter
    began = clock()
    work()
    return clock() - began


def main():
    rng = np.random.default_rng(1)
    q, k, v, d_o = (
        rng.standard_normal((options.heads, options.rows, options.dim)) for _ in range(4)
    )
    scale = options.dim**-0.5
    o, stats = forward(q, k, v, scale)
    inputs = {"forward": (q, k, v), "backward": (q, k, v, o, stats, d_o)}
    makers = {"NumPy": {"forward": forward, "backward": backward}}
    if torch:
        torch.set_num_threads(options.threads)
        makers["PyTorch"] = {"forward": torch_forward, "backward": torch_backward}
    ways = {
        (maker, name): both_ways(
            work,
            tensors if maker == "NumPy" else [torch.from_numpy(x) for x in tensors],
            scale,
            options.heads,
        )
        for maker, of in makers.items()
        for (name, work), tensors in zip(of.items(), inputs.values())
    }
    s = rng.standard_normal((options.heads, options.rows, options.rows))
    for maker, work in {"NumPy": products, "PyTorch": torch_products}.items():
        if maker in makers:
            tensors = (q, k, s) if maker == "NumPy" else [torch.from_numpy(x) for x in (q, k, s)]
            ways |= {
                (maker, f"{name}'s products"): both_ways(
                    work, tensors, name == "backward", options.heads
                )
                for name in inputs
            }
    best = {way: [] for way in ways}
    ours = []
    sizes = [str(n) for n in (options.heads, options.rows, options.dim)] + ["cpu"] * options.cpu
    with subprocess.Popen(
        [options.program, *sizes], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        for _ in range(options.rounds):
            for name, both in ways.items():
                best[name] += [1e3 * seconds(way) / options.heads for way in both]
            child.stdin.write("\n")
            child.stdin.flush()
            ours.append([float(word) for word in child.stdout.readline().split()])
    least = [min(column) for column in zip(*ours)]
    print(
        f"{options.threads} threads, s = {options.rows}, d = {options.dim}; ms{' of processor time' * options.cpu} a head, best of {options.rounds}"
    )
    for n, name in enumerate(("forward", "backward")):
        value, bounds = least[2 * n], least[2 * n + 1]
        for maker in makers:
            theirs, alone = min(best[maker, name]), min(best[maker, f"{name}'s products"])
            print(
                f"{name:9} {maker:8} {theirs:7.2f} (its products alone {alone:6.2f})   values {value:7.2f} ({theirs / value:.2f} times as fast)"
                f"   with sigma and bound {bounds:7.2f} ({theirs / bounds:.2f} times as fast)"
            )


main()
