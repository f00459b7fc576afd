"""The keywords of problems and calls, for type checkers and editors alone: fields of fattn_problem and tensors of fattn_tensors, with the words of abi.py."""

from typing import Any, Callable, Literal, Optional, Sequence, TypedDict, Union

from .score_mod import Number, ScoreMod

Pass = Union[Literal["fwd", "bwd"], str]
Dtype = Union[Literal["bf16", "f16", "f32", "e4m3", "e5m2", "mxe4m3", "mxe5m2"], str]
Align = Union[Literal["tl", "br"], str]
BiasDtype = Union[Literal["bf16", "f16", "f32", "e4m3", "e5m2", "mxe4m3", "mxe5m2", "bool"], str]
Scaling = Union[Literal["none", "delayed", "current"], str]
ScaleFormat = Union[Literal["unset", "bshd", "sbhd", "bhsd"], str]
Impl = Union[Literal["auto", "composite", "unified"], str]
Spelling = Union[Literal["auto", "expanded", "single"], str]
Determinism = Union[Literal["auto", "form", "pin"], str]
Output = Union[Literal["max", "rng_dump", "stats", "stats_log2", "sum_exp"], str]
Cumulative = Union[Literal["kv", "q"], str]
Ragged = Union[Literal["all", "dk", "do", "dq", "dv", "k", "o", "q", "stats", "v"], str]

class Fields(TypedDict, total=False):
    """The fields of a problem. None: as if it were not given."""

    pass_: Union[Pass, int, None]
    dtype: Union[Dtype, int, None]
    o_dtype: Union[Dtype, int, None]
    grad_dtype: Union[Dtype, int, None]
    do_dtype: Union[Dtype, int, None]
    stats_dtype: Union[Dtype, int, None]
    training: Optional[int]
    outputs: Union[Output, Sequence[Output], int, None]
    batch: Optional[int]
    heads_q: Optional[int]
    heads_k: Optional[int]
    heads_v: Optional[int]
    seq_q: Optional[int]
    seq_kv: Optional[int]
    dim_qk: Optional[int]
    dim_v: Optional[int]
    q_strides: Optional[Sequence[int]]
    k_strides: Optional[Sequence[int]]
    v_strides: Optional[Sequence[int]]
    o_strides: Optional[Sequence[int]]
    do_strides: Optional[Sequence[int]]
    dq_strides: Optional[Sequence[int]]
    dk_strides: Optional[Sequence[int]]
    dv_strides: Optional[Sequence[int]]
    stats_strides: Optional[Sequence[int]]
    attn_scale: Optional[float]
    window_left: Optional[int]
    window_right: Optional[int]
    has_attn_scale: Optional[int]
    scale_in_memory: Optional[int]
    has_left: Optional[int]
    has_right: Optional[int]
    align: Union[Align, int, None]
    block_mask: Optional[int]
    padding: Optional[int]
    cumulative: Union[Cumulative, Sequence[Cumulative], int, None]
    len_broadcast: Optional[int]
    len_rank: Optional[int]
    ragged_bits: Optional[int]
    ragged: Union[Ragged, Sequence[Ragged], int, None]
    ragged_tokens: Optional[int]
    packed_table: Optional[int]
    total_q: Optional[int]
    total_kv: Optional[int]
    page_size_k: Optional[int]
    page_size_v: Optional[int]
    pages_k: Optional[int]
    pages_v: Optional[int]
    table_k: Optional[int]
    table_v: Optional[int]
    bias_dim: Optional[Sequence[int]]
    bias_strides: Optional[Sequence[int]]
    dbias_strides: Optional[Sequence[int]]
    has_bias: Optional[int]
    bias_dtype: Union[BiasDtype, int, None]
    dbias: Optional[int]
    mod_gradients: Optional[int]
    dropout: Optional[float]
    rope_dim: Optional[int]
    rng_bits: Optional[int]
    dropout_mask: Optional[int]
    alibi: Optional[int]
    sink: Optional[int]
    dsink: Optional[int]
    rope: Optional[int]
    scaling: Union[Scaling, int, None]
    scale_format: Union[ScaleFormat, int, None]
    impl: Union[Impl, int, None]
    spelling: Union[Spelling, int, None]
    unfuse_fma: Optional[int]
    deterministic: Optional[int]
    determinism: Union[Determinism, int, None]
    capture: Optional[int]
    guards_off: Optional[int]

class Keywords(Fields, total=False):
    """fattn.attention and Problem.replace: also what a Problem takes besides the fields."""

    causal: bool
    window: Optional[tuple[Optional[int], Optional[int]]]
    score_mod: Union[ScoreMod, Callable[..., Number], None]

class Question(Keywords, total=False):
    """fattn.decide, explain and plan: also what fattn.attention takes, and PyTorch's words."""

    out: Any
    stats: Any
    bias: Any
    seq_len_q: Any
    seq_len_kv: Any
    d_out: Any
    dq: Any
    dk: Any
    dv: Any
    mod_tensors: Any
    tensors: Any
    stream: Any
    attn_mask: Any
    dropout_p: float
    is_causal: bool
    scale: Optional[float]
    enable_gqa: bool

class Tensors(TypedDict, total=False):
    """Plan.forward and Plan.backward: the names of fattn_tensors."""

    max: Any
    sum_exp: Any
    seq_len_q: Any
    seq_len_kv: Any
    dq: Any
    dk: Any
    dv: Any
    bias: Any
    dbias: Any
    mod_tensors: Any
    mod_gradients: Any
    q_offsets: Any
    k_offsets: Any
    v_offsets: Any
    o_offsets: Any
    stats_offsets: Any
    do_offsets: Any
    dq_offsets: Any
    dk_offsets: Any
    dv_offsets: Any
    page_table_k: Any
    page_table_v: Any
    table_offsets_k: Any
    table_offsets_v: Any
    attn_scale: Any
    alibi_slopes: Any
    sink: Any
    dsink: Any
    seed: Any
    offset: Any
    dropout_mask: Any
    dropout_scale: Any
    dropout_scale_inverse: Any
    rng_dump: Any
    block_mask: Any
    rope_q: Any
    rope_k: Any
    descale_q: Any
    descale_k: Any
    descale_v: Any
    descale_s: Any
    scale_s: Any
    scale_o: Any
    descale_o: Any
    descale_do: Any
    descale_dp: Any
    scale_dp: Any
    scale_dq: Any
    scale_dk: Any
    scale_dv: Any
    amax_s: Any
    amax_o: Any
    amax_dp: Any
    amax_dq: Any
    amax_dk: Any
    amax_dv: Any
    sf_q: Any
    sf_k: Any
    sf_v: Any
    sf_do: Any
    sf_q_t: Any
    sf_k_t: Any
    sf_do_t: Any
    q_t: Any
    k_t: Any
    do_t: Any
    do_16: Any
