"""Fused attention on cuDNN, from Python. Arrays by DLPack (PyTorch, CuPy; NumPy and JAX for the cpu backend), without copies, on the caller's stream.

    import fattn
    out = fattn.attention(q, k, v, causal=True)                  # q, k, v: [batch, heads, sequence, channels]
    print(fattn.decide(q, k, v, causal=True))                    # which engines; or why not, and what to do
    plan = fattn.plan(q, k, v, causal=True, training=1)
    out, stats = plan.forward(q, k, v, stats=True)
    dq, dk, dv = fattn.attention_backward(q, k, v, out, d_out, stats, causal=True)
    fattn.why(q, k, v, attn_mask=mask, is_causal=False)          # why PyTorch does not use cuDNN, or gets NaN
    with fattn.watch("model.cases"): model(batch)                # the calls of a PyTorch model, for facts gate
    capped = fattn.ScoreMod(lambda score, b, h, q, k: 20 * fattn.score_mod.tanh(score / 20))

A failure is a fattn.Error with the library's sentence and `.status`. fattn.h is the manual; Problem has the fields of problem.h.
"""

from . import score_mod
from .context import Context, default_context
from .decision import Decision, Engine, Neighbour, Refusal, decide, explain
from .known import Known
from .library import Error
from .plan import Plan, attention, attention_backward, plan
from .policy import policy
from .problem import Problem
from .score_mod import ScoreMod, where
from .watch import Watch, watch
from .why import Why, why

__all__ = [
    "Context",
    "Decision",
    "Engine",
    "Error",
    "Known",
    "Neighbour",
    "Plan",
    "Problem",
    "Refusal",
    "ScoreMod",
    "Watch",
    "Why",
    "attention",
    "attention_backward",
    "decide",
    "default_context",
    "explain",
    "plan",
    "policy",
    "score_mod",
    "watch",
    "where",
    "why",
]
__version__ = "1.0.0"
