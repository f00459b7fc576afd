"""Times ragged sequences and paged keys in FACTS and cudnn-frontend on one GPU. Both use one cuDNN and take turns in one run.

usage: ci/bench.py frontend BENCH_DEVICE CUDNN_DIR [NVRTC]    (bench_device of lib/bench; needs PyTorch and the Python package cudnn of cudnn-frontend)
       BENCH_FRONTEND_SECONDS=N  no new case is begun after N seconds; BENCH_FRONTEND_ROUNDS=N  turns of a case (11)

Prints a Markdown table: the plan of each side, which is the first of its list; the median times; and the ratio peer / FACTS, as median and range over
the turns. If the two lists begin with different plans, cudnn-frontend is also timed with the plan of FACTS. Each time is between two events around 20
calls, on the stream of the calls. Inputs are equal on both sides. If the outputs differ, no ratio is printed.
Exit: 0 printed; 1 outputs differ, or a side failed; 3 no GPU, no PyTorch, no cudnn-frontend, or not the cuDNN of CUDNN_DIR.
"""

import collections
import ctypes
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

Problem = collections.namedtuple("Problem", "pas mask b h h_k s s_kv d page lens")
WANTED = 0.98  # of their time
SAME = 0.02  # |theirs - ours| / |ours|, of all outputs together
CALLS = 20

LENS = (2048, 1792, 1500, 1024, 777, 512, 300, 95)
KEYS = tuple(4096 - 37 * i for i in range(64))
PACKED = [
    Problem(pas, mask, 8, *heads, 2048, 2048, 128, 0, LENS)
    for pas in ("fwd", "bwd")
    for heads in ((16, 16), (32, 8))
    for mask in ("none", "causal")
]
PAGED = [Problem("fwd", "none", 64, 32, 8, 1, 4096, 128, page, KEYS) for page in (16, 64, 128)]
for size in (64, 128):
    PAGED.append(Problem("fwd", "causal_br", 8, 32, 8, 1024, 4096, 128, size, KEYS[:8]))
CASES = PAGED[1:] + PACKED[:4] + PAGED[:1] + PACKED[4:]  # the most asked about first


def named(p):
    kind = f"page {p.page}, " + ("decode" if p.s == 1 else "prefill") if p.page else "ragged"
    return f"{kind}: {p.pas} bf16 {p.mask} b{p.b} h{p.h}/{p.h_k} s{p.s}/{p.s_kv} d{p.d}"


def words(p):
    """The problem as bench_device's arguments."""
    page = [f"page={p.page}"] if p.page else []
    sizes = [*map(str, (p.b, p.h, p.s, p.d)), f"h_k={p.h_k}", f"s_kv={p.s_kv}"]
    return ["cudnn", p.pas, "bf16", p.mask, *sizes, "lens=" + ",".join(map(str, p.lens)), *page]


def shapes_of(p):
    """name: (shape of the graph's tensor, elements of a token) of each tensor that holds sequences; memory is b,s,h,d."""
    q, k = ((p.b, p.h, p.s, p.d), p.h * p.d), ((p.b, p.h_k, p.s_kv, p.d), p.h_k * p.d)
    found = {"q": q, "k": k, "v": k, "o": q}
    if p.pas == "bwd":
        found |= {"do": q, "stats": ((p.b, p.h, p.s, 1), p.h), "dq": q, "dk": k, "dv": k}
    return found


def pages_of(p):
    """Pages of an entry, pages of the pool: half of them are used."""
    table = -(-p.s_kv // p.page)
    return table, 2 * p.b * table


def graph_of(p, implementation, **where):
    """cudnn-frontend's graph of the problem and its tensors by name; `implementation` AUTO leaves one operation or many to it; `where` is handle=
    or device_property=."""
    import cudnn

    kinds, t = cudnn.data_type, {}
    where |= {"intermediate_data_type": kinds.FLOAT, "compute_data_type": kinds.FLOAT}
    g = cudnn.pygraph(io_data_type=kinds.BFLOAT16, **where)

    def integers(name, *dim):
        stride = [math.prod(dim[i + 1 :]) for i in range(4)]
        t[name] = g.tensor(name=name, dim=dim, stride=stride, data_type=kinds.INT32)
        return t[name]

    def layout(name):
        (b, h, s, d), token = shapes[name]
        if p.page and name in ("k", "v"):
            b, s = pages_of(p)[1], p.page
        more = {"ragged_offset": offsets[token]} if offsets else {}
        return {"dim": [b, h, s, d], "stride": [s * h * d, d, h * d, 1]} | more

    shapes = shapes_of(p)
    tokens = [] if p.page else sorted({token for _, token in shapes.values()})
    offsets = {token: integers(f"at{token}", p.b + 1, 1, 1, 1) for token in tokens}
    for name in shapes:
        if name not in OUTPUTS[p.pas]:
            kind = kinds.FLOAT if name == "stats" else kinds.BFLOAT16
            t[name] = g.tensor(name=name, data_type=kind, **layout(name))
    options = {name: t[name] for name in ("q", "k", "v")}
    options |= {"attn_scale": p.d**-0.5, "use_padding_mask": True}
    options["seq_len_q"] = integers("rows", p.b, 1, 1, 1)
    options["seq_len_kv"] = integers("keys", p.b, 1, 1, 1)
    if p.mask != "none":
        corner = "BOTTOM_RIGHT" if p.mask == "causal_br" else "TOP_LEFT"
        options["diagonal_alignment"] = getattr(cudnn.diagonal_alignment, corner)
        options["diagonal_band_right_bound"] = 0
    if p.page:
        table = integers("table", p.b, 1, pages_of(p)[0], 1)
        options |= {f"paged_attention_{side}_table": table for side in "kv"}
        options["paged_attention_max_seq_len_kv"] = p.s_kv
    if p.pas == "fwd":
        options["implementation"] = getattr(cudnn.attention_implementation, implementation)
        outputs = g.sdpa(name="forward", generate_stats=False, **options)[:1]
    else:
        options |= {f"max_total_seq_len_{side}": sum(p.lens) for side in ("q", "kv")}
        options |= {"o": t["o"], "dO": t["do"], "stats": t["stats"]}
        outputs = g.sdpa_backward(name="backward", **options)
    for name, out in zip(OUTPUTS[p.pas], outputs):
        like = layout(name)
        out = out.set_output(True).set_dim(like["dim"]).set_stride(like["stride"])
        out.set_data_type(kinds.BFLOAT16)
        if "ragged_offset" in like:
            out.set_ragged_offset(like["ragged_offset"])
        t[name] = out
    g.validate()
    g.build_operation_graph()
    g.create_execution_plans([cudnn.heur_mode.A])
    g.check_support()
    return g, t


OUTPUTS = {"fwd": ("o",), "bwd": ("dq", "dk", "dv")}


def parse_plan(name):
    """'eng7_k24=1_k30=2' -> (7, {24: 1, 30: 2}); None: no plan of cuDNN's."""
    engine = re.match(r"eng(\d+)", name)
    knobs = {int(k): int(v) for k, v in re.findall(r"k(\d+)=(\d+)", name)}
    return engine and (int(engine[1]), knobs)


def plans_of(g):
    """(index in their list, engine, knobs) of each plan of cuDNN's; cudnn-frontend lists engines of its own among them."""
    names = map(g.get_plan_name_at_index, range(g.get_execution_plan_count()))
    return [(i, *plan) for i, plan in enumerate(map(parse_plan, names)) if plan]


def words_of_plan(engine, knobs):
    return f"{engine}" + "".join(f" {k}={v}" for k, v in sorted(knobs.items()))


def samples(torch):
    """The million samples of bench_device: sums of four numbers of its generator, whose next L states are a multiple of the last L."""
    states, a, c = torch.tensor([1664525 + 1013904223], device="cuda"), 1664525, 1013904223
    while len(states) < 4 << 20:
        states = torch.cat([states, states * a + c & 0xFFFFFFFF])
        a, c = a * a & 0xFFFFFFFF, (a + 1) * c & 0xFFFFFFFF
    return ((states >> 8).view(-1, 4).sum(1) - (2 << 24)).to(torch.float32) * 2.0**-24 * 0.866


def tensors_of(p, torch):
    """Memory for every tensor of the graph, by name: bench_device's values, and zero in outputs."""

    def integers(values):
        return torch.tensor(values, dtype=torch.int32, device="cuda")

    made, total, given = {}, sum(p.lens), samples(torch)
    short = (given.view(torch.int32) >> 16).to(torch.int16).view(torch.bfloat16)  # towards zero
    ends = [sum(p.lens[:i]) for i in range(p.b + 1)]
    for name, ((b, h, s, d), token) in shapes_of(p).items():
        of_pool = p.page and name in ("k", "v")
        shape = (
            (pages_of(p)[1], p.page, h, d) if of_pool else (b, s, h, d) if p.page else (total, h, d)
        )
        values, count = given if name == "stats" else short, math.prod(shape)
        made[name] = values.repeat(-(-count // len(values)))[:count].view(shape)
        if name in OUTPUTS[p.pas]:
            made[name] = torch.zeros_like(made[name])
        if not p.page:
            made[f"at{token}"] = integers([end * token for end in ends])
    made["rows"] = integers([p.s] * p.b if p.page else p.lens)
    made["keys"] = integers(p.lens)
    if p.page:
        count = p.b * pages_of(p)[0]
        made["table"] = integers([2 * (i * 7919 % count) for i in range(count)])
    return made


def frontend_call(p, memory, handle, torch, want=None):
    """The call, its (engine, knobs): the first plan that builds, or the one that is wanted; None: it is not in their lists. Of one operation and of
    many, which cudnn-frontend chooses itself for a forward, engines have numbers of their own."""
    for implementation in ("AUTO",) if want is None or p.pas == "bwd" else ("COMPOSITE", "UNIFIED"):
        try:
            g, t = graph_of(p, implementation, handle=handle)
        except Exception as error:  # their words for "no" are of several types
            print(f"{named(p)}: {implementation}: {error}", file=sys.stderr)
            continue
        for index, engine, knobs in plans_of(g):
            if want not in (None, (engine, knobs)):
                continue
            try:
                g.select_plan(index)
                g.build_plans()
            except Exception as error:
                print(f"{named(p)}: plan {index} does not build: {error}", file=sys.stderr)
                continue
            pack = {t[name]: memory[name] for name in t}
            room = torch.empty(max(g.get_workspace_size(), 1), dtype=torch.uint8, device="cuda")
            return (lambda: g.execute(pack, room, handle=handle)), (engine, knobs)
    return None, None


def difference(theirs, ours, torch):
    """|theirs - ours| / |ours|, of lists of tensors in the same order; NaN counts as infinite."""
    theirs = torch.cat([t.reshape(-1) for t in theirs]).float()
    found = float((theirs - ours).norm() / ours.norm())
    return found if math.isfinite(found) else math.inf


def frontend_outputs(p, call, memory, torch):
    """What one call of theirs writes into cleared outputs."""
    outputs = [memory[name] for name in OUTPUTS[p.pas]]
    for out in outputs:
        out.zero_()
    call()
    torch.cuda.synchronize()
    return outputs


def device_us(call, repeats, stream, torch):
    """Microseconds of one call on `stream`, where the handle's calls go."""
    if torch.cuda.current_stream() != stream:
        raise RuntimeError("the current stream is not the handle's")
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record(stream)
    for _ in range(repeats):
        call()
    end.record(stream)
    torch.cuda.synchronize()
    return start.elapsed_time(end) * 1e3 / repeats


class Ours:
    """bench_device, which measures whenever it is asked; its first answer says that it is ready."""

    def __init__(self, program, p, folders, out):
        self.out = out
        command = [program, *words(p), f"out={out}", "turns=1", *folders]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"ours failed: exit {self.process.wait()}")
        return json.loads(line)

    def outputs(self, torch):
        """What its first call wrote; after its first answer."""
        size = os.path.getsize(self.out) // 2
        return torch.from_file(self.out, size=size, dtype=torch.bfloat16).to("cuda").float()

    def ask(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self):
        self.process.kill()
        self.process.communicate()


def in_turns(calls, ours, stream, torch, rounds):
    """name: their times; and ours, one of each in every round; the first round warms up."""
    times = collections.defaultdict(list)
    for turn in range(rounds + 1):
        for name, call in calls.items():
            us = device_us(call, CALLS, stream, torch)
            times[name] += [us] * (turn > 0)
        us = ours.ask()["device_us"]
        times["ours"] += [us] * (turn > 0)
    return times


def ratio_of(theirs, ours, differs):
    """The last column: of times that belong together, in turns."""
    if differs > SAME:
        return f"not compared: outputs differ by {differs:.2g}"
    ratios = [them / us for them, us in zip(theirs, ours)]
    ratio = statistics.median(ratios)
    more = "" if ratio >= WANTED else f" below {WANTED}"
    return f"{ratio:.3f} ({min(ratios):.3f} to {max(ratios):.3f}){more}"


def bench(p, args, handle, stream, torch, rounds):
    """Prints the rows of one case; false: as exit 1."""
    calls, plans, differs, times, mine = {}, {}, {}, {}, None
    with tempfile.TemporaryDirectory() as folder:
        ours = Ours(args[0], p, args[1:], os.path.join(folder, "out"))
        try:
            memory = tensors_of(p, torch)
            first = frontend_call(p, memory, handle, torch)  # while ours makes its plan
            ours.answer()
            right, asked = ours.outputs(torch), ours.ask()
            mine = (asked["engine"], {int(k): v for k, v in asked["knobs"].items()})
            both = {"frontend": first}
            if first[1] != mine:
                both["frontend, plan of FACTS"] = frontend_call(p, memory, handle, torch, mine)
            for name, (call, plan) in both.items():
                if call:
                    calls[name], plans[name] = call, plan
                    outputs = frontend_outputs(p, call, memory, torch)
                    differs[name] = difference(outputs, right, torch)
            times = in_turns(calls, ours, stream, torch, rounds)
        except Exception as error:  # of several types, all of them about this case
            print(f"{named(p)}: {(str(error) or repr(error)).splitlines()[0]}", file=sys.stderr)
            differs["failed"] = math.inf
        finally:
            ours.close()
    own = times.pop("ours", [])
    for name, theirs in times.items():
        both = f"{words_of_plan(*plans[name])} | {words_of_plan(*mine)}"
        both += f" | {statistics.median(theirs):,.1f} | {statistics.median(own):,.1f}"
        ratio = ratio_of(theirs, own, differs[name])
        print(f"| {named(p)} | {name} | {both} | {ratio} |", flush=True)
    if not own:
        print(f"| {named(p)} | failed | | | | | |", flush=True)
    torch.cuda.empty_cache()
    return all(value <= SAME for value in differs.values())


def load(folder, nvrtc):
    """One cuDNN for PyTorch and cudnn-frontend, mapped before either looks for its own; returns both modules."""
    names = [f"libcudnn{part}.so.9" for part in ("", "_graph", "_engines_runtime_compiled")]
    for path in [nvrtc] * bool(nvrtc) + [os.path.join(folder, name) for name in names]:
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    os.environ["LD_LIBRARY_PATH"] = folder  # where cudnn-frontend looks first, by itself
    import cudnn
    import torch

    return cudnn, torch


def foreign(folder):
    """Paths of mapped cuDNN libraries that are not of `folder`."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.split(maxsplit=5)[5].strip() for line in maps if "/libcudnn" in line}
    own = os.path.realpath(folder)
    return sorted(path for path in paths if os.path.dirname(os.path.realpath(path)) != own)


def main(args):
    if len(args) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 3
    since = time.monotonic()
    limit = float(os.environ.get("BENCH_FRONTEND_SECONDS", "1e9"))
    rounds = int(os.environ.get("BENCH_FRONTEND_ROUNDS", "11"))
    try:
        cudnn, torch = load(args[1], args[2] if len(args) > 2 else None)
    except (ImportError, OSError) as error:
        print(f"bench_frontend: {error}", file=sys.stderr)
        return 3
    if not torch.cuda.is_available():
        print("bench_frontend: no GPU", file=sys.stderr)
        return 3
    alone = not foreign(args[1])
    torch.zeros(1, device="cuda")
    handle, stream = cudnn.create_handle(), torch.cuda.current_stream()
    cudnn.set_stream(handle, stream.cuda_stream)
    names = f"cuDNN {cudnn.backend_version()}, cudnn-frontend {cudnn.__version__}, PyTorch {torch.__version__}"
    own = "" if alone else " (maps a cuDNN of its own)"
    print(f"{torch.cuda.get_device_name()}, {names}{own}\n")
    heads = (
        "case | peer | engine and knobs of the peer | of FACTS | peer us | FACTS us | peer / FACTS"
    )
    print(f"| {heads} |\n|---|---|---|---|---|---|---|")
    left, good = 0, True
    for p in CASES:
        if time.monotonic() - since > limit:
            left += 1
            continue
        good = bench(p, args, handle, stream, torch, rounds) and good
    if left:
        print(f"\n{left} cases were not begun: BENCH_FRONTEND_SECONDS={limit:g}")
    mapped = foreign(args[1])
    others = [path for path in mapped if alone or os.path.basename(path) != "libcudnn.so.9"]
    if others:
        print(f"bench_frontend: also mapped: {' '.join(others)}", file=sys.stderr)
    return 3 if others else 0 if good else 1
