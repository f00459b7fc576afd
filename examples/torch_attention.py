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
    from torch import Tensor
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


def room(q, k, v, causal):
    """For O and Stats."""
    return like_q(q, v.shape[-1]), q.new_empty(*q.shape[:3], 1, dtype=torch.float32)


def readable(x):
    """cuDNN wants the channels together, and a gradient that was expanded (of a sum, say) has strides of 0."""
    return x if x.stride(-1) == 1 and all(x.stride()) else x.contiguous()


@torch.library.custom_op("fattn_example::attention", mutates_args=())
def attention(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    """(O, Stats) of q [b,h,s,d], k and v [b,h_kv,s_kv,d]."""
    q, k, v = readable(q), readable(k), readable(v)
    out, stats = room(q, k, v, causal)
    fattn.attention(q, k, v, out=out, stats=stats, causal=causal, capture=1, **CONTEXT)
    return out, stats


attention.register_fake(room)


@torch.library.custom_op("fattn_example::attention_backward", mutates_args=())
def attention_backward(
    q: Tensor, k: Tensor, v: Tensor, out: Tensor, d_out: Tensor, stats: Tensor, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v, d_out = readable(q), readable(k), readable(v), readable(d_out)
    dq, dk, dv = (like_q(x, x.shape[-1]) for x in (q, k, v))
    more = {"dq": dq, "dk": dk, "dv": dv, "causal": causal, "capture": 1, **CONTEXT}
    fattn.attention_backward(q, k, v, out, d_out, stats, **more)
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
    sdpa, grouped = torch.nn.functional.scaled_dot_product_attention, q.shape[1] != k.shape[1]
    return sdpa(q, k, v, is_causal=causal, enable_gqa=grouped)


# ---- the checks ---------------------------------------------------------------------------------------------------------------------

FAILED = []


def verdict(name, value, bound):
    ok = value <= bound  # False for a NaN
    FAILED.extend([name] * (not ok))
    print(f"{'ok' if ok else 'FAILED':6}  {name:34} {value:.3g} (bound {bound:.3g})", flush=True)


def inputs(device, dtype, batch=2, heads=8, groups=2, sequence=192, channels=64, seed=0):
    """q, k, v and dO; dense b,s,h,d memory, as projections leave them."""
    torch.manual_seed(seed)
    shapes = [(batch, sequence, h, channels) for h in (heads, groups, groups, heads)]
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
        hidden = torch.ones_like(scores, dtype=torch.bool).triu(1) & causal
        return scores.masked_fill(hidden, -torch.inf).softmax(-1) @ v

    return with_gradients(spelled, *(x.double() for x in (q, k, v, d_out)), causal)


def error(got, wanted):
    return (got.double() - wanted).abs().max().item()


def bounds(given, causal):
    """For each of O, dQ, dK, dV: the truth, and how far an answer may be from it."""
    wanted, own = truth(*given, causal), with_gradients(by_torch, *given, causal)
    least = torch.finfo(given[0].dtype).eps / 2
    return wanted, [2 * error(a, x) + least * x.abs().max().item() for a, x in zip(own, wanted)]


def hold(name, got, wanted, bound):
    for part, *numbers in zip(("O", "dQ", "dK", "dV"), got, wanted, bound):
        verdict(f"{name} {part}", error(*numbers[:2]), numbers[2])


def check_numbers(device, dtype):
    given = inputs(device, dtype)
    for name, causal in (("full", False), ("causal", True)):
        hold(name, with_gradients(by_fattn, *given, causal), *bounds(given, causal))


def check_operator(device, dtype):
    q, k, v, _ = (x.detach().requires_grad_() for x in inputs(device, dtype))
    said = torch.library.opcheck(attention, (q, k, v, True), raise_exception=False)
    for name, result in said.items():
        verdict(f"opcheck {name} {result if result != 'SUCCESS' else ''}", result != "SUCCESS", 0)


def check_compile(device, dtype, backend):
    def plain(q, k, v, causal):
        return by_fattn(q * 1.0, k, v, causal) * 1.0

    compiled = torch.compile(plain, backend=backend, fullgraph=True)
    for sequence in (192, 256):
        given = inputs(device, dtype, sequence=sequence)
        got = with_gradients(compiled, *given, True)
        hold(f"torch.compile s={sequence}", got, *bounds(given, True))


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
        linear, norm = torch.nn.Linear, torch.nn.LayerNorm
        self.before, self.qkv, self.project = (
            norm(WIDTH),
            linear(WIDTH, 3 * WIDTH),
            linear(WIDTH, WIDTH),
        )
        layers = norm(WIDTH), linear(WIDTH, 4 * WIDTH), torch.nn.GELU(), linear(4 * WIDTH, WIDTH)
        self.wide = torch.nn.Sequential(*layers)

    def forward(self, x):
        parts = self.qkv(self.before(x)).to(self.dtype).unflatten(-1, (3, HEADS, -1)).unbind(2)
        out = self.attend(*(part.transpose(1, 2) for part in parts)).transpose(1, 2)
        x = x + self.project(out.flatten(2).to(x.dtype))
        return x + self.wide(x)


class Words(torch.nn.Embedding):
    def forward(self, text):
        words, places = self.weight.split([WORDS, SEQUENCE])
        return words[text] + places


def tiny(attend, dtype):
    blocks = [Block(attend, dtype) for _ in range(LAYERS)]
    words, read = Words(WORDS + SEQUENCE, WIDTH), torch.nn.Linear(WIDTH, WORDS)
    return torch.nn.Sequential(words, *blocks, read)


def texts(steps):
    """Each line counts up by 1, 2, 3 or 4, so the next word follows from the two before it."""
    generator = torch.Generator().manual_seed(7)
    for _ in range(steps):
        first, step = torch.randint(0, 4 * WORDS, (2, BATCH, 1), generator=generator)
        yield (first + (step % 4 + 1) * torch.arange(SEQUENCE + 1)) % WORDS


def train(attend, device, dtype, steps):
    torch.manual_seed(0)
    model = tiny(attend, dtype).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for text in texts(steps):
        given, wanted = text[:, :-1].to(device), text[:, 1:].to(device)
        loss = torch.nn.functional.cross_entropy(model(given).flatten(0, 1), wanted.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def check_training(device, dtype, steps):
    ours, theirs = (train(attend, device, dtype, steps) for attend in (by_fattn, by_torch))
    for name, losses in (("fattn", ours), ("SDPA", theirs)):
        print(f"loss, {name:5}", *(f"{loss:.3f}" for loss in losses[:: max(steps // 12, 1)]))
        verdict(f"{name} learns: last / first", losses[-1] / losses[0], LEARNED)
    apart = max(abs(a - b) for a, b in zip(ours, theirs))
    verdict(f"losses of {steps} steps differ by", apart, LOSS_BOUND)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--cudnn", metavar="FOLDER")
    backend = "inductor" if shutil.which("cc") or shutil.which("gcc") else "aot_eager"
    some = {"choices": ("inductor", "aot_eager", "none"), "default": backend}
    parser.add_argument("--compile", **some, help="inductor, the default, needs a C compiler")
    given = parser.parse_args()
    is_gpu = given.device == "cuda"
    if is_gpu and not torch.cuda.is_available():
        parser.exit(3, "torch_attention: no GPU; --device cpu uses the cpu backend\n")
    dtype = torch.bfloat16 if is_gpu else torch.float32
    if is_gpu:
        torch.cuda.init()
        CONTEXT["context"] = fattn.Context(torch.cuda.current_device(), given.cudnn)
        CONTEXT["context"].verify()
    print("PyTorch", torch.__version__, CONTEXT.get("context", ""), "compile:", given.compile)
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
