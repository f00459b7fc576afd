"""The headers of libfattn for ctypes: what the module uses. Made by declare.py; do not edit."""

from ctypes import CFUNCTYPE, POINTER, Structure
from ctypes import c_bool, c_char, c_char_p, c_double, c_float, c_int, c_int32, c_int64
from ctypes import c_size_t, c_uint32, c_uint64, c_void_p


def _all(kind, names):
    return [(name, kind) for name in names.split()]


class fattn_problem(Structure):
    _fields_ = [
        *_all(c_size_t, "struct_size"),
        *_all(c_int32, "pass dtype o_dtype grad_dtype do_dtype stats_dtype training"),
        *_all(c_uint32, "outputs"),
        *_all(c_int64, "batch heads_q heads_k heads_v seq_q seq_kv dim_qk dim_v"),
        *_all(c_int64 * 4, """q_strides k_strides v_strides o_strides do_strides dq_strides
            dk_strides dv_strides stats_strides"""),
        *_all(c_double, "attn_scale"),
        *_all(c_int64, "window_left window_right"),
        *_all(c_int32, """has_attn_scale scale_in_memory has_left has_right align block_mask
            padding"""),
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
        *_all(c_int32, """rng_bits dropout_mask alibi sink dsink rope scaling scale_format impl
            spelling unfuse_fma deterministic determinism capture guards_off reserved"""),
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
        *_all(c_int32, "changes reserved"),
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
        *_all(c_void_p, """bias dbias mod_tensors mod_gradients q_offsets k_offsets v_offsets
            o_offsets stats_offsets do_offsets dq_offsets dk_offsets dv_offsets page_table_k
            page_table_v table_offsets_k table_offsets_v attn_scale alibi_slopes sink dsink seed
            offset dropout_mask dropout_scale dropout_scale_inverse rng_dump block_mask rope_q
            rope_k descale_q descale_k descale_v descale_s scale_s scale_o descale_o descale_do
            descale_dp scale_dp scale_dq scale_dk scale_dv amax_s amax_o amax_dp amax_dq amax_dk
            amax_dv sf_q sf_k sf_v sf_do sf_q_t sf_k_t sf_do_t q_t k_t do_t do_16"""),
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

FUNCTIONS = {  # name: result, arguments
    "fattn_backward": (c_int, [c_void_p, POINTER(fattn_tensors), c_void_p]),
    "fattn_context_create": (c_int, [POINTER(c_void_p), POINTER(fattn_context_options)]),
    "fattn_context_destroy": (None, [c_void_p]),
    "fattn_context_info_get": (c_int, [c_void_p, POINTER(fattn_context_info)]),
    "fattn_context_libraries": (c_size_t, [c_void_p, POINTER(fattn_library), c_size_t]),
    "fattn_context_verify": (c_int, [c_void_p]),
    "fattn_decide": (c_int, [POINTER(c_void_p), c_void_p, POINTER(fattn_problem), c_uint32]),
    "fattn_decision_answer": (POINTER(fattn_answer), [c_void_p, c_size_t]),
    "fattn_decision_answer_count": (c_size_t, [c_void_p]),
    "fattn_decision_backend": (c_int, [c_void_p]),
    "fattn_decision_destroy": (None, [c_void_p]),
    "fattn_decision_engine": (POINTER(fattn_engine), [c_void_p, c_int, c_size_t]),
    "fattn_decision_engine_count": (c_size_t, [c_void_p, c_int]),
    "fattn_decision_reason": (c_int, [c_void_p]),
    "fattn_decision_refusal": (POINTER(fattn_refusal), [c_void_p, c_size_t]),
    "fattn_decision_refusal_count": (c_size_t, [c_void_p]),
    "fattn_decision_remedy": (c_char_p, [c_void_p]),
    "fattn_decision_status": (c_char_p, [c_void_p]),
    "fattn_decision_supported": (c_bool, [c_void_p]),
    "fattn_decision_text": (c_char_p, [c_void_p]),
    "fattn_explain": (c_int, [c_void_p, POINTER(fattn_problem), c_int, POINTER(fattn_neighbour),
        POINTER(c_size_t)]),
    "fattn_forward": (c_int, [c_void_p, POINTER(fattn_tensors), c_void_p]),
    "fattn_free": (None, [c_void_p]),
    "fattn_knob_name": (c_char_p, [c_int32]),
    "fattn_last_error": (c_char_p, []),
    "fattn_plan_backend": (c_int, [c_void_p]),
    "fattn_plan_create": (c_int, [POINTER(c_void_p), c_void_p, POINTER(fattn_problem),
        POINTER(fattn_plan_options)]),
    "fattn_plan_destroy": (None, [c_void_p]),
    "fattn_plan_engine": (POINTER(fattn_engine), [c_void_p]),
    "fattn_plan_get": (c_int, [POINTER(c_void_p), c_void_p, POINTER(fattn_problem),
        POINTER(fattn_plan_options)]),
    "fattn_plan_load": (c_int, [POINTER(c_void_p), c_void_p, POINTER(fattn_problem), c_char_p,
        c_size_t]),
    "fattn_plan_ms": (c_double, [c_void_p]),
    "fattn_plan_save": (c_int, [c_void_p, POINTER(c_void_p), POINTER(c_size_t)]),
    "fattn_plan_workspace_bytes": (c_size_t, [c_void_p]),
    "fattn_policy_depth": (c_int, []),
    "fattn_policy_pop": (None, [c_int]),
    "fattn_policy_push": (c_int, [POINTER(fattn_policy), POINTER(c_int)]),
    "fattn_problem_resolve": (c_int, [POINTER(fattn_problem), POINTER(fattn_problem)]),
    "fattn_record": (c_int32, [c_void_p, c_int, c_int32, c_int32, c_int32]),
    "fattn_record_constant": (c_int32, [c_void_p, c_double]),
    "fattn_record_index": (c_int32, [c_void_p, c_int]),
    "fattn_record_tensor": (c_int32, [c_void_p, c_char_p, c_int, POINTER(c_int64),
        POINTER(c_int64)]),
    "fattn_score_mod_create": (c_int, [POINTER(c_void_p), fattn_score_mod_callback,
        fattn_score_mod_gradient_callback, c_void_p]),
    "fattn_score_mod_destroy": (None, [c_void_p]),
    "fattn_score_mod_evaluate": (c_int, [c_void_p, c_double, POINTER(c_int64), POINTER(c_void_p),
        POINTER(c_double), POINTER(c_double)]),
    "fattn_score_mod_hash": (None, [c_void_p, POINTER(c_uint64)]),
    "fattn_score_mod_same": (c_bool, [c_void_p, c_void_p]),
    "fattn_score_mod_text": (c_size_t, [c_void_p, c_char_p, c_size_t]),
    "fattn_status_name": (c_char_p, [c_int]),
}
POINTEES = {  # of the fields of fattn_tensors
    "void": """q k v o d_o dq dk dv workspace bias dbias q_offsets k_offsets v_offsets o_offsets
        stats_offsets do_offsets dq_offsets dk_offsets dv_offsets table_offsets_k table_offsets_v
        seed offset dropout_mask rng_dump q_t k_t do_t do_16""",
    "float": """stats max sum_exp attn_scale alibi_slopes sink dsink dropout_scale
        dropout_scale_inverse rope_q rope_k descale_q descale_k descale_v descale_s scale_s scale_o
        descale_o descale_do descale_dp scale_dp scale_dq scale_dk scale_dv amax_s amax_o amax_dp
        amax_dq amax_dk amax_dv""",
    "int32_t": "seq_len_q seq_len_kv page_table_k page_table_v",
    "void *": "mod_tensors mod_gradients",
    "uint8_t": "block_mask sf_q sf_k sf_v sf_do sf_q_t sf_k_t sf_do_t",
}
WORDS = {
    'backend': {'cudnn': 0, 'math': 1, 'cpu': 2},
    'mode': {'A': 0, 'B': 1, 'fallback': 2, 'instant': 3},
    'action': {'deny': 0, 'pin': 1},
    'dtype': {'bf16': 1, 'f16': 2, 'f32': 3, 'e4m3': 4, 'e5m2': 5, 'mxe4m3': 6, 'mxe5m2': 7},
    'pass': {'fwd': 0, 'bwd': 1},
    'align': {'tl': 0, 'br': 1},
    'impl': {'auto': 0, 'composite': 1, 'unified': 2},
    'spelling': {'auto': 0, 'expanded': 1, 'single': 2},
    'format': {'unset': 0, 'bshd': 1, 'sbhd': 2, 'bhsd': 3},
    'determinism': {'auto': 0, 'form': 1, 'pin': 2},
    'scaling': {'none': 0, 'delayed': 1, 'current': 2},
    'mod_op': {'neg': 1, 'abs': 2, 'exp': 3, 'log': 4, 'tanh': 5, 'sigmoid': 6, 'erf': 7, 'sin': 8,
        'cos': 9, 'tan': 10, 'sqrt': 11, 'rsqrt': 12, 'reciprocal': 13, 'relu': 14, 'softplus': 15,
        'ceil': 16, 'floor': 17, 'add': 18, 'sub': 19, 'mul': 20, 'div': 21, 'max': 22, 'min': 23,
        'pow': 24, 'mod': 25, 'eq': 26, 'ne': 27, 'lt': 28, 'le': 29, 'gt': 30, 'ge': 31, 'and': 32,
        'or': 33, 'not': 34, 'select': 35},
}
INPUTS = {
    'neg': 1, 'abs': 1, 'exp': 1, 'log': 1, 'tanh': 1, 'sigmoid': 1, 'erf': 1, 'sin': 1, 'cos': 1,
        'tan': 1, 'sqrt': 1, 'rsqrt': 1, 'reciprocal': 1, 'relu': 1, 'softplus': 1, 'ceil': 1,
        'floor': 1, 'add': 2, 'sub': 2, 'mul': 2, 'div': 2, 'max': 2, 'min': 2, 'pow': 2, 'mod': 2,
        'eq': 2, 'ne': 2, 'lt': 2, 'le': 2, 'gt': 2, 'ge': 2, 'and': 2, 'or': 2, 'not': 1, 'select':
        3
}
CONSTANTS = {
    'FATTN_ASK_A': 1,
    'FATTN_BOOL': 8,
    'FATTN_CUMULATIVE_KV': 2,
    'FATTN_CUMULATIVE_Q': 1,
    'FATTN_DEVICE_CPU': 2,
    'FATTN_DEVICE_DESCRIBED': 1,
    'FATTN_DEVICE_FAULT': 8,
    'FATTN_DEVICE_GPU': 0,
    'FATTN_ENGINE_AUTO': -1,
    'FATTN_MAX_NEIGHBOURS': 16,
    'FATTN_MODE_A': 0,
    'FATTN_RAGGED_ALL': 511,
    'FATTN_RAGGED_DK': 128,
    'FATTN_RAGGED_DO': 32,
    'FATTN_RAGGED_DQ': 64,
    'FATTN_RAGGED_DV': 256,
    'FATTN_RAGGED_K': 2,
    'FATTN_RAGGED_O': 8,
    'FATTN_RAGGED_Q': 1,
    'FATTN_RAGGED_STATS': 16,
    'FATTN_RAGGED_TENSORS': 9,
    'FATTN_RAGGED_V': 4,
    'FATTN_WANT_MAX': 2,
    'FATTN_WANT_RNG_DUMP': 16,
    'FATTN_WANT_STATS': 1,
    'FATTN_WANT_STATS_LOG2': 8,
    'FATTN_WANT_SUM_EXP': 4,
}
