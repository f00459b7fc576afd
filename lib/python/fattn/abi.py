"""What the module uses of the headers of libfattn. A test compares each line with the headers."""

from ctypes import CFUNCTYPE, POINTER, Structure
from ctypes import c_bool, c_char, c_char_p, c_double, c_float, c_int, c_int32, c_int64
from ctypes import c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any


def _all(kind: Any, names: str) -> list[tuple[str, Any]]:
    return [(name, kind) for name in names.split()]


class fattn_problem(Structure):
    _fields_ = [
        *_all(c_size_t, "struct_size"),
        *_all(c_int32, "pass dtype o_dtype grad_dtype do_dtype stats_dtype training"),
        *_all(c_uint32, "outputs"),
        *_all(c_int64, "batch heads_q heads_k heads_v seq_q seq_kv dim_qk dim_v"),
        *_all(
            c_int64 * 4,
            """q_strides k_strides v_strides o_strides do_strides dq_strides
            dk_strides dv_strides stats_strides""",
        ),
        *_all(c_double, "attn_scale"),
        *_all(c_int64, "window_left window_right"),
        *_all(
            c_int32,
            """has_attn_scale scale_in_memory has_left has_right align block_mask
            padding""",
        ),
        *_all(c_uint32, "cumulative"),
        *_all(c_int32, "len_broadcast len_rank ragged_bits"),
        *_all(c_uint32, "ragged"),
        *_all(c_int32, "ragged_tokens packed_table"),
        *_all(c_int64, "total_q total_kv page_size_k page_size_v pages_k pages_v table_k table_v"),
        *_all(c_int64 * 4, "bias_dim bias_strides dbias_strides"),
        *_all(c_void_p, "score_mod"),
        *_all(c_int32, "has_bias bias_dtype dbias"),
        *_all(c_uint32, "mod_gradients"),
        *_all(c_double, "dropout"),
        *_all(c_int64, "rope_dim"),
        *_all(
            c_int32,
            """rng_bits dropout_mask alibi sink dsink rope scaling scale_format impl
            spelling unfuse_fma deterministic determinism capture guards_off reserved""",
        ),
    ]


class fattn_context_options(Structure):
    _fields_ = [
        *_all(c_size_t, "struct_size"),
        *_all(c_char_p, "cudnn_dir nvrtc driver device_json"),
        *_all(c_int32, "device_kind ordinal threads reserved"),
    ]


class fattn_context_info(Structure):
    _fields_ = [
        *_all(c_size_t, "struct_size"),
        *_all(c_int32, "cudnn_version sm driver_version multiprocessors"),
        *_all(c_char * 128, "device_name"),
        *_all(c_char * 48, "device_uuid"),
        *_all(c_int32, "math_kernels reserved"),
        *_all(c_char * 120, "math_about"),
        *_all(c_uint64, "build_id device_id"),
    ]


class fattn_library(Structure):
    _fields_ = [
        *_all(c_char_p, "path"),
        *_all(c_int64, "bytes"),
        *_all(c_bool, "in_build"),
    ]


class fattn_knob(Structure):
    _fields_ = [
        *_all(c_int32, "type reserved"),
        *_all(c_int64, "value"),
    ]


class fattn_engine(Structure):
    _fields_ = [
        *_all(c_int32, "mode config"),
        *_all(c_int64, "index workspace_bytes"),
        *_all(c_uint32, "numerical_notes behavior_notes"),
        *_all(c_int32, "knob_count removed"),
        *_all(fattn_knob * 24, "knobs"),
    ]


class fattn_refusal(Structure):
    _fields_ = [
        *_all(c_int64, "engine"),
        *_all(c_char_p, "status text condition"),
    ]


class fattn_answer(Structure):
    _fields_ = [
        *_all(c_int32, "backend reason"),
        *_all(c_char_p, "status text remedy rule"),
    ]


class fattn_neighbour(Structure):
    _fields_ = [
        *_all(fattn_problem, "problem"),
        *_all(c_char * 96, "change"),
        *_all(c_int32, "changes asked"),
    ]


class fattn_plan_options(Structure):
    _fields_ = [
        *_all(c_size_t, "struct_size"),
        *_all(c_int64, "engine"),
        *_all(c_int32, "config knob_count override_shapes reserved"),
        *_all(c_void_p, "knobs"),
    ]


class fattn_tensors(Structure):
    _fields_ = [
        *_all(c_size_t, "struct_size"),
        *_all(c_void_p, "q k v o stats max sum_exp seq_len_q seq_len_kv d_o dq dk dv workspace"),
        *_all(c_size_t, "workspace_bytes"),
        *_all(
            c_void_p,
            """bias dbias mod_tensors mod_gradients q_offsets k_offsets v_offsets
            o_offsets stats_offsets do_offsets dq_offsets dk_offsets dv_offsets page_table_k
            page_table_v table_offsets_k table_offsets_v attn_scale alibi_slopes sink dsink seed
            offset dropout_mask dropout_scale dropout_scale_inverse rng_dump block_mask rope_q
            rope_k descale_q descale_k descale_v descale_s scale_s scale_o descale_o descale_do
            descale_dp scale_dp scale_dq scale_dk scale_dv amax_s amax_o amax_dp amax_dq amax_dk
            amax_dv sf_q sf_k sf_v sf_do sf_q_t sf_k_t sf_do_t q_t k_t do_t do_16""",
        ),
    ]


class fattn_policy(Structure):
    _fields_ = [
        *_all(c_size_t, "struct_size"),
        *_all(c_int32 * 3, "order"),
        *_all(c_int32, "order_count"),
        *_all(c_void_p, "rules"),
        *_all(c_size_t, "rule_count"),
    ]


fattn_score_mod_callback = CFUNCTYPE(c_int32, c_void_p, c_int32, c_void_p)
fattn_score_mod_gradient_callback = CFUNCTYPE(c_int32, c_void_p, c_int32, c_int32, c_void_p)
_TYPES: dict[str, Any] = {
    **{kind.__name__: kind for kind in Structure.__subclasses__()},
    **dict(int=c_int, int32=c_int32, int64=c_int64, uint32=c_uint32, uint64=c_uint64),
    **dict(size_t=c_size_t, double=c_double, bool=c_bool, void=None),
    **{"void*": c_void_p, "char*": c_char_p, "callback": fattn_score_mod_callback},
    "gradient_callback": fattn_score_mod_gradient_callback,
}


def _type(word: str) -> Any:
    return _TYPES[word] if word in _TYPES else POINTER(_type(word[:-1]))


# Result, name and arguments of each function. A handle that only the library looks into is a void*.
PROTOTYPES = """
int fattn_backward void* fattn_tensors* void*
int fattn_context_create void** fattn_context_options*
void fattn_context_destroy void*
int fattn_context_info_get void* fattn_context_info*
size_t fattn_context_libraries void* fattn_library* size_t
int fattn_context_verify void*
int fattn_decide void** void* fattn_problem* uint32
fattn_answer* fattn_decision_answer void* size_t
size_t fattn_decision_answer_count void*
int fattn_decision_backend void*
void fattn_decision_destroy void*
fattn_engine* fattn_decision_engine void* int size_t
size_t fattn_decision_engine_count void* int
int fattn_decision_reason void*
fattn_refusal* fattn_decision_refusal void* size_t
size_t fattn_decision_refusal_count void*
char* fattn_decision_remedy void*
char* fattn_decision_status void*
bool fattn_decision_supported void*
char* fattn_decision_text void*
int fattn_explain void* fattn_problem* int fattn_neighbour* size_t*
int fattn_forward void* fattn_tensors* void*
void fattn_free void*
char* fattn_knob_name int32
char* fattn_last_error
int fattn_plan_backend void*
int fattn_plan_create void** void* fattn_problem* fattn_plan_options*
void fattn_plan_destroy void*
fattn_engine* fattn_plan_engine void*
int fattn_plan_get void** void* fattn_problem* fattn_plan_options*
int fattn_plan_load void** void* fattn_problem* char* size_t
double fattn_plan_ms void*
int fattn_plan_save void* void** size_t*
size_t fattn_plan_workspace_bytes void*
int fattn_policy_depth
void fattn_policy_pop int
int fattn_policy_push fattn_policy* int*
int fattn_problem_resolve fattn_problem* fattn_problem*
int32 fattn_record void* int int32 int32 int32
int32 fattn_record_constant void* double
int32 fattn_record_index void* int
int32 fattn_record_tensor void* char* int int64* int64*
int fattn_score_mod_create void** callback gradient_callback void*
void fattn_score_mod_destroy void*
int fattn_score_mod_evaluate void* double int64* void** double* double*
void fattn_score_mod_hash void* uint64*
bool fattn_score_mod_same void* void*
size_t fattn_score_mod_text void* char* size_t
char* fattn_status_name int
"""
FUNCTIONS = {  # name: (result, arguments)
    name: (_type(result), [_type(word) for word in arguments])
    for result, name, *arguments in map(str.split, PROTOTYPES.strip().split("\n"))
}
POINTEES = {  # what fields of fattn_tensors point to, where the type is fixed
    "float": """stats max sum_exp attn_scale alibi_slopes sink dsink dropout_scale
        dropout_scale_inverse rope_q rope_k descale_q descale_k descale_v descale_s scale_s scale_o
        descale_o descale_do descale_dp scale_dp scale_dq scale_dk scale_dv amax_s amax_o amax_dp
        amax_dq amax_dk amax_dv""",
    "int32_t": "seq_len_q seq_len_kv page_table_k page_table_v",
    "uint8_t": "block_mask sf_q sf_k sf_v sf_do sf_q_t sf_k_t sf_do_t",
}


def _from(first: int, words: str) -> dict[str, int]:
    return {word: number for number, word in enumerate(words.split(), first)}


WORDS = {
    "backend": _from(0, "cudnn math cpu"),
    "mode": _from(0, "A B fallback instant"),
    "action": _from(0, "deny pin"),
    "dtype": _from(1, "bf16 f16 f32 e4m3 e5m2 mxe4m3 mxe5m2"),
    "pass": _from(0, "fwd bwd"),
    "align": _from(0, "tl br"),
    "impl": _from(0, "auto composite unified"),
    "spelling": _from(0, "auto expanded single"),
    "format": _from(0, "unset bshd sbhd bhsd"),
    "determinism": _from(0, "auto form pin"),
    "scaling": _from(0, "none delayed current"),
    "mod_op": _from(
        1,
        """neg abs exp log tanh sigmoid erf sin cos tan sqrt rsqrt reciprocal relu softplus
        ceil floor add sub mul div max min pow mod eq ne lt le gt ge and or not select""",
    ),
}
# How many values an operation of a score modification takes.
INPUTS = {word: 2 for word in WORDS["mod_op"]}
INPUTS.update(
    dict.fromkeys(
        """neg abs exp log tanh sigmoid erf sin cos tan sqrt rsqrt reciprocal relu softplus ceil
    floor not""".split(),
        1,
    ),
    select=3,
)
CONSTANTS = {
    f"FATTN_{word}": int(value)
    for word, value in (
        one.split("=")
        for one in """
        ASK_A=1 BOOL=8 CUMULATIVE_KV=2 CUMULATIVE_Q=1 DEVICE_CPU=2 DEVICE_DESCRIBED=1
        DEVICE_FAULT=8 DEVICE_GPU=0 ENGINE_AUTO=-1 MAX_NEIGHBOURS=16 MODE_A=0 RAGGED_ALL=511
        RAGGED_DK=128 RAGGED_DO=32 RAGGED_DQ=64 RAGGED_DV=256 RAGGED_K=2 RAGGED_O=8 RAGGED_Q=1
        RAGGED_STATS=16 RAGGED_TENSORS=9 RAGGED_V=4 WANT_MAX=2 WANT_RNG_DUMP=16 WANT_STATS=1
        WANT_STATS_LOG2=8 WANT_SUM_EXP=4
    """.split()
    )
}
