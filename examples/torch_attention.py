#!/usr/bin/env python3
"""fattn as an operator of PyTorch: a torch.library custom op with autograd, for eager mode, torch.compile and CUDA graphs. It checks itself.

usage: examples/torch_attention.py [--device cuda|cpu] [--steps N] [--cudnn FOLDER] [--compile inductor|aot_eager|none]

Run it on a machine with a GPU, PyTorch 2.11 or newer, and the wheel of FACTS (ci/package/wheel.py), in PyTorch's environment:

    pip install --no-deps facts_cudnn-*.whl
    python examples/torch_attention.py

or out of a bundle that was made with --tests, or with a build of FACTS:

    PYTHONPATH=facts/lib/python python facts/examples/torch_attention.py
    PYTHONPATH=lib/python FATTN_LIBRARY=build/release/package/libfattn.so python examples/torch_attention.py

The cuDNN is the one that PyTorch has mapped; --cudnn FOLDER names its folder where PyTorch has mapped none. --device cpu uses the cpu backend in fp32.

Checks, each one line with its number and its bound:
  forward, gradients   against attention in float64. Bound: twice the error of PyTorch's own scaled_dot_product_attention (SDPA) in the same type, and one
                       rounding of the largest value
  opcheck              torch.library.opcheck: schema, fake kernel, autograd, ahead-of-time dispatch with static and dynamic shapes
  compile              the same outputs from torch.compile, without a graph break, for two sequence lengths
  graph                a CUDA graph of forward and backward, replayed with new values in place: the same bounds
  training             a tiny transformer, trained with fattn and with SDPA from one seed: the curves of loss, their largest difference (LOSS_BOUND), and
                       that both learn
Exit: 0 every check holds, 1 one does not, 3 no PyTorch or no GPU.
"""

import argparse
import shutil
import sys

try:
    import torch
    from torch.nn.functional import scaled_dot_product_attention as sdpa
except ImportError as why:
    sys.exit(print(f"torch_attention: {why}", file=sys.stderr) or 3)
import fattn

LOSS_BOUND = 0.02  # nats; a model that guesses has a loss of ln(64) = 4.16
LEARNED = 0.5  # the last loss is below this part of the first
CONTEXT = {}  # --cudnn: the context; otherwise fattn's own for the device


# ---- the operator -------------------------------------------------------------------------------------------------------------------


def like_q(x, channels):
    """Room for O, dQ, dK or dV: b,h,s,d over dense b,s,h,d memory, in the eager kernel and in the fake one."""
    batch, heads, sequence, _ = x.shape
    return x.new_empty(batch, sequence, heads, channels).transpose(1, 2)


def room_for_stats(q):
    return q.new_empty(*q.shape[:3], 1, dtype=torch.float32)


def readable(x):
    """cuDNN wants the channels together, and a gradient that was expanded (of a sum, say) has strides of 0."""
    return x if x.stride(-1) == 1 and all(x.stride()) else x.contiguous()


@torch.library.custom_op("fattn_example::attention", mutates_args=())
def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """(O, Stats) of q [b,h,s,d], k and v [b,h_kv,s_kv,d]."""
    q, k, v = readable(q), readable(k), readable(v)
    out, stats = like_q(q, v.shape[-1]), room_for_stats(q)
    fattn.attention(
        q, k, v, out=out, stats=stats, causal=causal, capture=1, context=CONTEXT.get("context")
    )
    return out, stats


@attention.register_fake
def _(q, k, v, causal):
    return like_q(q, v.shape[-1]), room_for_stats(q)


@torch.library.custom_op("fattn_example::attention_backward", mutates_args=())
def attention_backward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    d_out: torch.Tensor,
    stats: torch.Tensor,
    causal: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    q, k, v, d_out = readable(q), readable(k), readable(v), readable(d_out)
    dq, dk, dv = (like_q(x, x.shape[-1]) for x in (q, k, v))
    fattn.attention_backward(
        q,
        k,
        v,
        out,
        d_out,
        stats,
        dq=dq,
        dk=dk,
        dv=dv,
        causal=causal,
        capture=1,
        context=CONTEXT.get("context"),
    )
    return dq, dk, dv


@attention_backward.register_fake
def _(q, k, v, out, d_out, stats, causal):
    return tuple(like_q(x, x.shape[-1]) for x in (q, k, v))


def remember(ctx, inputs, output):
    q, k, v, ctx.causal = inputs
    ctx.save_for_backward(q, k, v, *output)


def differentiate(ctx, d_out, d_stats):
    """Stats are for the backward alone: their own gradient is not defined here."""
    q, k, v, out, stats = ctx.saved_tensors
    return *attention_backward(q, k, v, out, d_out, stats, ctx.causal), None


attention.register_autograd(differentiate, setup_context=remember)


def by_fattn(q, k, v, causal=True):
    return attention(q, k, v, causal)[0]


def by_torch(q, k, v, causal=True):
    return sdpa(q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1])


# ---- the checks ---------------------------------------------------------------------------------------------------------------------

FAILED = []


def verdict(name, value, bound):
    ok = value <= bound  # False for a NaN
    if not ok:
        FAILED.append(name)
    print(f"{'ok' if ok else 'FAILED':6}  {name:34} {value:.3g} (bound {bound:.3g})", flush=True)


def inputs(device, dtype, batch=2, heads=8, groups=2, sequence=192, channels=64, seed=0):
    """q, k, v and dO; dense b,s,h,d memory, as projections leave them."""
    torch.manual_seed(seed)
    shapes = [
        (batch, sequence, heads, channels),
        *[(batch, sequence, groups, channels)] * 2,
        (batch, sequence, heads, channels),
    ]
    return [torch.randn(shape, device=device).to(dtype).transpose(1, 2) for shape in shapes]


def with_gradients(function, q, k, v, d_out, causal):
    """[O, dQ, dK, dV]"""
    q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
    out = function(q, k, v, causal)
    return [out.detach(), *torch.autograd.grad(out, (q, k, v), d_out)]


def truth(q, k, v, d_out, causal):
    """The same in float64, spelled out."""

    def spelled(q, k, v, causal):
        k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], dim=1) for x in (k, v))
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        if causal:
            scores = scores.masked_fill(
                torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf
            )
        return scores.softmax(-1) @ v

    return with_gradients(spelled, *(x.double() for x in (q, k, v, d_out)), causal)


def error(got, wanted):
    return (got.double() - wanted).abs().max().item()


def bounds(given, causal):
    """For each of O, dQ, dK, dV: the truth, and how far an answer may be from it."""
    wanted, own = truth(*given, causal), with_gradients(by_torch, *given, causal)
    rounding = torch.finfo(given[0].dtype).eps / 2
    return wanted, [
        2 * error(theirs, x) + rounding * x.abs().max().item() for theirs, x in zip(own, wanted)
    ]


def hold(name, got, wanted, bound):
    for part, *numbers in zip(("O", "dQ", "dK", "dV"), got, wanted, bound):
        verdict(f"{name} {part}", error(*numbers[:2]), numbers[2])


def check_numbers(device, dtype):
    for causal in (False, True):
        given = inputs(device, dtype)
        hold(
            f"{'causal' if causal else 'full'}",
            with_gradients(by_fattn, *given, causal),
            *bounds(given, causal),
        )


def check_operator(device, dtype):
    q, k, v, _ = (x.detach().requires_grad_() for x in inputs(device, dtype))
    said = torch.library.opcheck(attention, (q, k, v, True), raise_exception=False)
    for name, result in said.items():
        verdict(f"opcheck {name}", float(result != "SUCCESS"), 0)
        if result != "SUCCESS":
            print(result)


def check_compile(device, dtype, backend):
    compiled = torch.compile(
        lambda q, k, v, causal: by_fattn(q * 1.0, k, v, causal) * 1.0,
        backend=backend,
        fullgraph=True,
    )
    for sequence in (192, 256):
        given = inputs(device, dtype, sequence=sequence)
        hold(
            f"torch.compile s={sequence}",
            with_gradients(compiled, *given, True),
            *bounds(given, True),
        )


def check_graph(dtype):
    """One graph of forward and backward, replayed with values that it was not captured with."""
    held = inputs("cuda", dtype)

    def both():
        q, k, v, d_out = held
        out, stats = attention(q, k, v, True)
        return [out, *attention_backward(q, k, v, out, d_out, stats, True)]

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    # plans and cuDNN's handle of this stream are made, and kernels loaded, before the capture
    with torch.cuda.stream(side):
        both()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        got = both()
    fresh = inputs("cuda", dtype, seed=1)
    for old, new in zip(held, fresh):
        old.copy_(new)
    graph.replay()
    torch.cuda.synchronize()
    hold("graph", got, *bounds(fresh, True))


# ---- training -----------------------------------------------------------------------------------------------------------------------

WORDS, WIDTH, HEADS, LAYERS, BATCH, SEQUENCE = 64, 128, 4, 2, 8, 128


class Block(torch.nn.Module):
    def __init__(self, attend, dtype):
        super().__init__()
        self.attend, self.dtype = attend, dtype
        self.before, self.between = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.qkv, self.project = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.wide = torch.nn.Sequential(
            torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.GELU(), torch.nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x):
        batch, sequence, _ = x.shape
        q, k, v = (
            part.transpose(1, 2)
            for part in self.qkv(self.before(x))
            .to(self.dtype)
            .view(batch, sequence, 3, HEADS, -1)
            .unbind(2)
        )
        x = x + self.project(
            self.attend(q, k, v).transpose(1, 2).reshape(batch, sequence, WIDTH).to(x.dtype)
        )
        return x + self.wide(self.between(x))


class Tiny(torch.nn.Module):
    def __init__(self, attend, dtype):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        self.places = torch.nn.Embedding(SEQUENCE, WIDTH)
        self.blocks = torch.nn.Sequential(*(Block(attend, dtype) for _ in range(LAYERS)))
        self.read = torch.nn.Linear(WIDTH, WORDS)

    def forward(self, text):
        return self.read(self.blocks(self.words(text) + self.places.weight))


def texts(steps):
    """Each line counts up by 1, 2, 3 or 4, so the next word follows from the two before it."""
    generator = torch.Generator().manual_seed(7)
    for _ in range(steps):
        first, step = (
            torch.randint(low, high, (BATCH, 1), generator=generator)
            for low, high in ((0, WORDS), (1, 5))
        )
        yield (first + step * torch.arange(SEQUENCE + 1)) % WORDS


def train(attend, device, dtype, steps):
    torch.manual_seed(0)
    model = Tiny(attend, dtype).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for text in texts(steps):
        text = text.to(device)
        loss = torch.nn.functional.cross_entropy(
            model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def check_training(device, dtype, steps):
    ours, theirs = (train(attend, device, dtype, steps) for attend in (by_fattn, by_torch))
    print("step    fattn     SDPA")
    for i in range(0, steps, max(steps // 12, 1)):
        print(f"{i:4}  {ours[i]:7.4f}  {theirs[i]:7.4f}")
    verdict(
        f"losses of {steps} steps differ by",
        max(abs(a - b) for a, b in zip(ours, theirs)),
        LOSS_BOUND,
    )
    verdict("fattn learns: last / first", ours[-1] / ours[0], LEARNED)
    verdict("SDPA learns: last / first", theirs[-1] / theirs[0], LEARNED)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--cudnn", metavar="FOLDER")
    parser.add_argument(
        "--compile",
        choices=("inductor", "aot_eager", "none"),
        default="inductor" if shutil.which("cc") or shutil.which("gcc") else "aot_eager",
        help="inductor, which is the default, needs a C compiler",
    )
    given = parser.parse_args()
    if given.device == "cuda" and not torch.cuda.is_available():
        sys.exit(
            print("torch_attention: no GPU; --device cpu uses the cpu backend", file=sys.stderr)
            or 3
        )
    dtype = torch.bfloat16 if given.device == "cuda" else torch.float32
    if given.device == "cuda":
        torch.cuda.init()
        CONTEXT["context"] = fattn.Context(torch.cuda.current_device(), given.cudnn)
        CONTEXT["context"].verify()
    print(
        f"PyTorch {torch.__version__}, {CONTEXT.get('context') or fattn.default_context('cpu')}, compile: {given.compile}"
    )
    check_numbers(given.device, dtype)
    check_operator(given.device, dtype)
    if given.compile != "none":
        check_compile(given.device, dtype, given.compile)
    if given.device == "cuda":
        check_graph(dtype)
    check_training(given.device, dtype, given.steps)
    print(f"{len(FAILED)} failed: {', '.join(FAILED)}" if FAILED else "every check holds")
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
