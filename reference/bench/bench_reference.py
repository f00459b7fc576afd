"""The reference against plain NumPy in double: attention forward and backward, as ratios of one run.

    python bench_reference.py PATH/bench_reference [--rounds N] [--heads H] [--rows S] [--dim D]

Both take turns, and the best of each counts, so that what else the machine does touches both. NumPy computes values alone; a head at a
time or all at once, whichever is faster. The reference is timed for values alone and with sigma and bound of every element.
"""
import argparse
import os
import subprocess
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("program")
parser.add_argument("--rounds", type=int, default=10)
parser.add_argument("--heads", type=int, default=4)
parser.add_argument("--rows", type=int, default=1024)
parser.add_argument("--dim", type=int, default=128)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--cpu", action="store_true", help="processor time, for a machine that is busy; with --threads 1, as waiting counts too")
options = parser.parse_args()
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(options.threads)
os.environ["OMP_WAIT_POLICY"] = "passive"

import numpy as np  # noqa: E402  (it reads the number of threads when it is loaded)


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


def seconds(work):
    clock = time.process_time if options.cpu else time.perf_counter
    began = clock()
    work()
    return clock() - began


def main():
    rng = np.random.default_rng(1)
    q, k, v, d_o = (rng.standard_normal((options.heads, options.rows, options.dim)) for _ in range(4))
    scale = options.dim**-0.5
    o, stats = forward(q, k, v, scale)
    heads = range(options.heads)
    ways = {
        "forward": (lambda: forward(q, k, v, scale), lambda: [forward(q[h], k[h], v[h], scale) for h in heads]),
        "backward": (
            lambda: backward(q, k, v, o, stats, d_o, scale),
            lambda: [backward(q[h], k[h], v[h], o[h], stats[h], d_o[h], scale) for h in heads],
        ),
    }
    best = {"forward": [], "backward": []}
    ours = []
    sizes = [str(n) for n in (options.heads, options.rows, options.dim)] + ["cpu"] * options.cpu
    with subprocess.Popen([options.program, *sizes], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        for _ in range(options.rounds):
            for name, both in ways.items():
                best[name] += [1e3 * seconds(way) / options.heads for way in both]
            child.stdin.write("\n")
            child.stdin.flush()
            ours.append([float(word) for word in child.stdout.readline().split()])
    least = [min(column) for column in zip(*ours)]
    print(f"{options.threads} threads, s = {options.rows}, d = {options.dim}; ms{' of processor time' * options.cpu} a head, best of {options.rounds}")
    for n, name in enumerate(("forward", "backward")):
        numpy = min(best[name])
        value, bounds = least[2 * n], least[2 * n + 1]
        print(
            f"{name:9} NumPy {numpy:7.2f}   values {value:7.2f} ({numpy / value:.2f} times as fast)"
            f"   with sigma and bound {bounds:7.2f} ({numpy / bounds:.2f} times as fast)"
        )


main()
