"""Attention in NumPy float64, as in a textbook: what the tests hold the module against. Shares nothing with the module."""

import numpy as np


def repeated(x, heads):
    return np.repeat(x, heads // x.shape[1], axis=1)


def visible(seq_q, seq_kv, left=None, right=None, shift=0):
    """A query at row i sees the key at column j."""
    row, col = np.arange(seq_q)[:, None], np.arange(seq_kv)[None, :]
    seen = np.ones((seq_q, seq_kv), bool)
    if right is not None:
        seen &= col <= row + shift + right
    if left is not None:
        seen &= col > row + shift - left
    return seen


def attention(q, k, v, seen=None, scale=None, bias=None, change=None):
    """(out, stats). seen: boolean, broadcast to the scores; change: a function of the scaled scores."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    k, v = repeated(k, q.shape[1]), repeated(v, q.shape[1])
    scores = q @ k.swapaxes(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if change is not None:
        scores = change(scores)
    if bias is not None:
        scores = scores + np.asarray(bias, np.float64)
    if seen is not None:
        scores = np.where(seen, scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)  # a row that sees nothing
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        stats = np.log(total) + top
    return np.where(total > 0, weights / np.where(total > 0, total, 1), 0) @ v, stats


def slope(inputs, which, direction, d_out, step=1e-5, **options):
    """d(sum(out * d_out)) along `direction` of one input, by a central difference."""

    def loss(sign):
        moved = {name: np.asarray(x, np.float64) for name, x in inputs.items()}
        moved[which] = moved[which] + sign * step * direction
        return float((attention(**moved, **options)[0] * d_out).sum())

    return (loss(1) - loss(-1)) / (2 * step)
