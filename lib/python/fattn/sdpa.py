"""PyTorch's words for attention (torch.nn.functional.scaled_dot_product_attention) as the fields of a Problem."""

import sys
from typing import Any, Mapping

from .arrays import Shape, dense, look
from .library import refuse

ARRAYS = ("out", "d_out", "dq", "dk", "dv", "bias", "seq_len_q", "seq_len_kv")
OF_A_CALL = ("mod_tensors", "tensors", "stream", "enable_gqa")  # a question does not read them
RENAMED = {"is_causal": "causal", "dropout_p": "dropout", "scale": "attn_scale"}


def read(
    q: Any, k: Any, v: Any, given: Mapping[str, Any]
) -> tuple[dict[str, Shape], dict[str, Any]]:
    """The arrays of a call as shapes, and the fields of its problem. `given`: what fattn.attention takes, or PyTorch's words."""
    fields = {
        RENAMED.get(name, name): value for name, value in given.items() if name not in OF_A_CALL
    }
    if fields.pop("stats", False) is not False:
        fields.setdefault("training", 1)
    arrays = {"q": q, "k": k, "v": v, **{name: fields.pop(name, None) for name in ARRAYS}}
    mask = fields.pop("attn_mask", None)
    nested = any(getattr(one, "is_nested", False) for one in (q, k, v))
    shapes = {
        name: packed(name, owner) if nested and name in ("q", "k", "v") else look(name, owner)
        for name, owner in arrays.items()
        if owner is not None
    }
    if nested:
        fields = {"ragged_bits": 32, "padding": 1, **fields}
    if mask is not None:
        fields = {**bias(look("attn_mask", mask), shapes["q"], shapes["k"]), **fields}
    return shapes, fields


def bias(mask: Shape, q: Shape, k: Shape) -> dict[str, Any]:
    """What PyTorch sends for a mask: a bias over the whole batch, without a copy; 0 and -inf in the type of q for a boolean one."""
    missing = 4 - len(mask.shape)
    if not 0 <= missing <= 2 or len(q.shape) != 4:
        refuse(f"attn_mask: shape {mask.shape}; two to four extents are needed, and four of q")
    shape, strides = (1,) * missing + mask.shape, (0,) * missing + mask.strides
    full = (q.shape[0], 1 if missing else shape[1], q.shape[2], k.shape[2])
    for axis, (one, whole) in enumerate(zip(shape, full)):
        if one not in (1, whole) or (axis == 1 and one not in (1, q.shape[1])):
            refuse(f"attn_mask: shape {mask.shape} does not fit q {q.shape}, k {k.shape}")
    steps = tuple(0 if one != whole else step for one, whole, step in zip(shape, full, strides))
    dtype = q.dtype if mask.dtype == "bool" else mask.dtype
    return {"has_bias": 1, "bias_dtype": dtype, "bias_dim": full, "bias_strides": steps}


def packed(name: str, owner: Any) -> Shape:
    """A nested tensor [batch, heads, sequences, channels]: sequences one behind the other, the longest of them as the extent."""
    parts = owner.unbind()
    heads, _, channels = parts[0].shape
    out = Shape(name, parts[0])
    out.shape = (len(parts), heads, max(part.shape[1] for part in parts), channels)
    out.strides = (dense(out.shape)[0], channels, heads * channels, 1)
    return out


def notes(shapes: Mapping[str, Shape], given: Mapping[str, Any], enable_gqa: bool) -> list[str]:
    """What PyTorch does with such a call before any rule of its gate; autocast, which casts q, k and v here."""
    out, torch = [], sys.modules.get("torch")
    q, k = shapes["q"], shapes["k"]
    if q.dtype == "f32" and torch is not None and (word := autocast(torch)):
        for name in "qkv":
            shapes[name].dtype = word
        out.append(f"autocast is on: PyTorch casts query, key and value to {word}")
    elif q.dtype == "f32":
        out.append("PyTorch gives cuDNN f16 and bf16 alone: cast, or use torch.autocast")
    if len(q.shape) == 4 and q.shape[1] != k.shape[1] and not enable_gqa:
        out.append("the heads of query and key differ: PyTorch needs enable_gqa=True")
    mask = given["attn_mask"]
    if mask is not None and given["is_causal"]:
        refuse("attn_mask and is_causal: PyTorch takes one of them")
    if mask is not None and str(getattr(mask, "dtype", "")).endswith("bool"):
        out.append(
            "PyTorch makes 0 and -inf of a boolean mask; until March 2026 (pytorch#177868) -65504, which a row without keys ignores"
        )
    if torch is not None and not torch.backends.cuda.cudnn_sdp_enabled():
        out.append(
            "cuDNN is off in this process (pt/switches): torch.backends.cuda.enable_cudnn_sdp(True)"
        )
    if torch is not None and torch.are_deterministic_algorithms_enabled():
        out.append("deterministic algorithms are on: PyTorch does not use cuDNN (pt/deterministic)")
    return out


def autocast(torch: Any, device: str = "cuda") -> str:
    """The type that autocast gives to query, key and value; "": it is off."""
    try:
        on, dtype = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
    except (TypeError, AttributeError):  # before PyTorch 2.4
        on, dtype = torch.is_autocast_enabled(), torch.get_autocast_gpu_dtype()
    return Shape("autocast", torch.empty(0, dtype=dtype, device="meta")).dtype if on else ""
