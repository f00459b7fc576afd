/* fattn.h: fused attention on cuDNN's backend API, in plain C.
 *
 * A problem says everything about one attention call. The same problem is asked (fattn_decide), compiled
 * (fattn_plan_create) and run (fattn_forward, fattn_backward), so that what was promised is what is launched.
 *
 * Shapes   b batch, h head, s row (query) or key, d channel; every tensor is rank 4 in the order b,h,s,d, with any strides
 *          whose last is 1:
 *            Q, dQ [batch, heads_q, seq_q,  dim_qk]     O, dO [batch, heads_q, seq_q,  dim_v]
 *            K, dK [batch, heads_k, seq_kv, dim_qk]     V, dV [batch, heads_v, seq_kv, dim_v]
 *            Stats, Max, Sum_exp [batch, heads_q, seq_q, 1], fp32
 * Errors   every function that can fail returns a fattn_status, which is the contract; fattn_last_error() is the sentence for
 *          people, valid until this thread's next failure. Owners are NULL after a failure.
 * Threads  a context, a plan and a decision may be used from many threads at once; creating and destroying one handle may not
 *          overlap with its use.
 * Quiet    the library never prints, exits, reads the environment, or synchronises behind the caller's back.
 */
#ifndef FATTN_H
#define FATTN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* cudaStream_t and CUstream, without a CUDA header */

typedef enum fattn_status {
    FATTN_OK = 0,
    FATTN_BAD_PROBLEM = 1,  /* nobody could compute this, or an argument is wrong: the message names the field */
    FATTN_UNSUPPORTED = 2,  /* this target refuses; the decision holds cuDNN's own reason */
    FATTN_ENVIRONMENT = 3,  /* driver, NVRTC or libraries are missing or mixed: the target could not be asked */
    FATTN_POLICY = 4,       /* a rule of ours refuses what is known to fail (problem.guards_off asks all the same) */
    FATTN_INTERNAL = 5,     /* this library lacks it, or is wrong */
    FATTN_NO_MEMORY = 6,
    FATTN_BUILD_FAILED = 7, /* heuristics offered the configuration; compiling it failed */
    FATTN_DEVICE_FAULT = 8, /* a launch or copy failed; the context is not usable any more */
    FATTN_BAD_PLAN = 9      /* a saved plan is damaged, or of another build or device */
} fattn_status;

/* Why a target said no. Same numbers as the statuses that carry them. */
typedef enum fattn_reason {
    FATTN_REASON_NONE = FATTN_OK,
    FATTN_REASON_BAD_PROBLEM = FATTN_BAD_PROBLEM,
    FATTN_REASON_UNSUPPORTED = FATTN_UNSUPPORTED,
    FATTN_REASON_ENVIRONMENT = FATTN_ENVIRONMENT,
    FATTN_REASON_POLICY = FATTN_POLICY,
    FATTN_REASON_INTERNAL = FATTN_INTERNAL
} fattn_reason;

/* The words, one list each; 0 is always the default. X(SYMBOL, value, "word") */
#define FATTN_DTYPE_LIST(X)                                                                                       \
    X(BF16, 1, "bf16") X(F16, 2, "f16") X(F32, 3, "f32") X(E4M3, 4, "e4m3") X(E5M2, 5, "e5m2")                     \
    X(MXE4M3, 6, "mxe4m3") X(MXE5M2, 7, "mxe5m2") /* e4m3 and e5m2 with an E8M0 scale for each block of 32 */
#define FATTN_PASS_LIST(X)   X(FORWARD, 0, "fwd") X(BACKWARD, 1, "bwd")
#define FATTN_ALIGN_LIST(X)  X(TOP_LEFT, 0, "tl") X(BOTTOM_RIGHT, 1, "br")
#define FATTN_IMPL_LIST(X)   X(IMPL_AUTO, 0, "auto") X(IMPL_COMPOSITE, 1, "composite") X(IMPL_UNIFIED, 2, "unified")
#define FATTN_SPELLING_LIST(X) X(SPELLING_AUTO, 0, "auto") X(SPELLING_EXPANDED, 1, "expanded") X(SPELLING_SINGLE, 2, "single")
#define FATTN_MODE_LIST(X)   X(MODE_A, 0, "A") X(MODE_B, 1, "B") X(MODE_FALLBACK, 2, "fallback") X(MODE_INSTANT, 3, "instant")
#define FATTN_BACKEND_LIST(X) X(BACKEND_CUDNN, 0, "cudnn") X(BACKEND_MATH, 1, "math") X(BACKEND_CPU, 2, "cpu")
#define FATTN_FORMAT_LIST(X) X(FORMAT_UNSET, 0, "unset") X(FORMAT_BSHD, 1, "bshd") X(FORMAT_SBHD, 2, "sbhd") X(FORMAT_BHSD, 3, "bhsd")
#define FATTN_DETERMINISM_LIST(X) X(DETERMINISM_AUTO, 0, "auto") X(DETERMINISM_FORM, 1, "form") X(DETERMINISM_PIN, 2, "pin")
#define FATTN_SCALING_LIST(X) X(SCALING_NONE, 0, "none") X(SCALING_DELAYED, 1, "delayed") X(SCALING_CURRENT, 2, "current")

#define FATTN_AS_ENUM_(symbol, value, word) FATTN_##symbol = (value),
typedef enum fattn_dtype {
    FATTN_DTYPE_DEFAULT = 0,
    FATTN_DTYPE_LIST(FATTN_AS_ENUM_) FATTN_BOOL = 8 /* bias_dtype alone: one byte, 0 masks the score */
} fattn_dtype;
typedef enum fattn_pass { FATTN_PASS_LIST(FATTN_AS_ENUM_) } fattn_pass;
typedef enum fattn_align { FATTN_ALIGN_LIST(FATTN_AS_ENUM_) } fattn_align;
typedef enum fattn_impl { FATTN_IMPL_LIST(FATTN_AS_ENUM_) } fattn_impl;
typedef enum fattn_spelling { FATTN_SPELLING_LIST(FATTN_AS_ENUM_) } fattn_spelling;
typedef enum fattn_mode { FATTN_MODE_LIST(FATTN_AS_ENUM_) } fattn_mode;
typedef enum fattn_backend { FATTN_BACKEND_LIST(FATTN_AS_ENUM_) } fattn_backend;
typedef enum fattn_format { FATTN_FORMAT_LIST(FATTN_AS_ENUM_) } fattn_format;
typedef enum fattn_determinism { FATTN_DETERMINISM_LIST(FATTN_AS_ENUM_) } fattn_determinism;
typedef enum fattn_scaling { FATTN_SCALING_LIST(FATTN_AS_ENUM_) } fattn_scaling;
#undef FATTN_AS_ENUM_

/* Bits of fattn_problem.outputs: what forward writes beside O. */
#define FATTN_WANT_STATS 1u   /* log-sum-exp of every row, fp32, natural log */
#define FATTN_WANT_MAX 2u
#define FATTN_WANT_SUM_EXP 4u
#define FATTN_WANT_STATS_LOG2 8u /* Stats in base 2 (natural * log2 e) in place of natural ones; no backward reads them */
#define FATTN_WANT_RNG_DUMP 16u  /* what dropout kept: 1 or 0 for each score; forward and backward */

/* Bits of fattn_problem.ragged: which tensors hold packed sequences. */
#define FATTN_RAGGED_LIST(X)                                                                                          \
    X(Q, q, 0) X(K, k, 1) X(V, v, 2) X(O, o, 3) X(STATS, stats, 4) X(DO, do, 5) X(DQ, dq, 6) X(DK, dk, 7) X(DV, dv, 8)
#define FATTN_AS_RAGGED_(symbol, name, bit) FATTN_RAGGED_##symbol = 1u << (bit),
enum { FATTN_RAGGED_LIST(FATTN_AS_RAGGED_) FATTN_RAGGED_ALL = 0x1ffu };
#undef FATTN_AS_RAGGED_
#define FATTN_RAGGED_TENSORS 9

/* Bits of fattn_problem.cumulative. */
#define FATTN_CUMULATIVE_Q 1u
#define FATTN_CUMULATIVE_KV 2u

typedef struct fattn_score_mod fattn_score_mod; /* score_mod.h */

/* One attention problem; a plain value. Zero means the default of every field; FATTN_PROBLEM_INIT sets the size.
 *
 * Strides  in elements, order b,h,s,d. All four zero: derived. Q, K, V are then dense b,s,h,d; O follows Q's memory order, dO
 *          follows O, dQ follows Q, dK follows K, dV follows V; Stats is dense b,h,s (ragged: b,s,h). Stride 0 in b, h or s broadcasts an input.
 * Band     a key is visible iff  col <= row + shift + window_right  (when has_right)  and
 *          col > row + shift - window_left  (when has_left): the left bound counts the diagonal, the right one does not.
 *          shift is 0 top-left and len_kv - len_q bottom-right, per batch entry. Causal is has_right with window_right 0.
 * Sums     a gradient whose stride is 0 in a dimension where its input has stride 0 too (dQ for Q, dK for K, dV for V, dbias for
 *          bias) is the sum over that dimension; its extent there is 1. With other strides it is the gradient of each element.
 * Bias     added to the scaled score (after score_mod); bias_dim is 1 or the full extent in b, h, s_q and s_kv.
 * Bool     bias_dtype FATTN_BOOL: a mask in the bias's place, one byte an element: 0 makes the score -inf. It has no gradient. cuDNN is wrong
 *          with it on sm_90 (refused: docs/findings.md); a bias of 0 and -inf says the same.
 * Padding  when set, lengths per batch entry are given at the call; rows and keys at and past them do not take part.
 * Ragged   sequences packed one behind the other (with padding): entry b of a ragged tensor starts at its offsets[b], in elements
 *          (ragged_tokens: in tokens, one of which is the tensor's stride of s); its stride of b is not read. seq_q and seq_kv are the most
 *          rows and keys of an entry. A stats tensor has a token of heads_q numbers (strides 1 of h) or lies head by head (stride 1 of s).
 * Paged    page_size_k (page_size_v) set: K (V) is a pool [pages_k, heads_k, page_size_k, dim_qk], k_strides are the pool's (stride of b: from
 *          page to page), and key j of entry b is row j % page_size of page table[b][j / page_size]. With padding alone; forward alone.
 * Dropout  of P after the softmax, with probability dropout, by cuDNN's Philox from a seed and an offset in device memory; or dropout_mask:
 *          by the caller's own mask, 1 or 0 in dtype, and the factor of what is kept. Backward drops what its forward dropped. The cpu and the
 *          math backend have one generator, not cuDNN's (lib/src/dropout.h): what they keep of a score is a function of seed, offset, b, h, row
 *          and key alone. Both are read when the call runs, so that a replayed graph sees new ones.
 * Sink     one number for each query head joins its rows' denominators (softmax off by one: a sink of 0). Stats, Max and Sum_exp see it.
 * ALiBi    slope[h] * (col - row) is added to the score (row + shift for no alignment: the slope's distance counts from the top left).
 * 8 bit    E4M3 and E5M2: value = code * descale. Every product is descaled, and P, dS and 8 bit outputs are scaled before their casts, by
 *          numbers in device memory: descale_q, _k, _v (backward: _o, _do) of what is read; scale_s and descale_s of P, scale_dp and descale_dp
 *          of dS, a descale being the inverse of its scale; scale_o, scale_dq, _dk, _dv of outputs, which those of 16 bits do not have:
 *          their descale_o is given all the same and holds 1 (cuDNN wants the pointer and does not use the number). The
 *          largest magnitudes before the scales come back: amax_s (of P), amax_o; amax_dp (of dS), amax_dq, _dk, _dv. `scaling` says whether
 *          scales are of an earlier call (delayed) or of this one (current): the graph is the same. Backward: dO has the type of O, or a
 *          do_dtype of its own (E5M2 beside an O of E4M3), and dS is cast to dO's. A bias and a dropout_mask have 16 bits unless said
 *          otherwise, never 8. cuDNN wants head dims that are multiples of 16.
 * MX       MXE4M3, MXE5M2: value = code * factor of its block of 32 along the dimension that a product sums, a factor being E8M0. The factors
 *          of a head are rows x blocks, padded to 128 x 4, in the order F8_128x4, heads one behind the other (scale_format: other strides
 *          are declared). O and the gradients are of o_dtype and grad_dtype (default bf16). A backward sums along rows and keys too: q_t, k_t
 *          and do_t are Q, K and dO quantised again in that direction, with factors of their own, channels x blocks of rows; dO and do_t are of
 *          do_dtype; do_16 is dO in o_dtype. Each lies as Q, K or dO does. sf_v is along the keys in the forward and along the channels in the backward.
 * Math     the math backend's kernels do all of this, forward and backward, in bf16, f16 and f32. Not: 8 bit types, rope, unfuse_fma, a
 *          stats_dtype other than f32, impl unified and spelling single, which it refuses (FATTN_UNSUPPORTED) with a sentence each.
 * Grows    at the end only. An older, smaller struct_size is understood: absent fields mean what they meant then. A larger one
 *          is refused if a byte that this library does not know is not zero.
 */
typedef struct fattn_problem {
    size_t struct_size; /* sizeof(fattn_problem) of the caller */
    int32_t pass;       /* fattn_pass */
    int32_t dtype;      /* of Q, K, V; 0 means bf16 */
    int32_t o_dtype;    /* of O, and of dO (8 bit types: do_dtype); 0: dtype */
    int32_t grad_dtype; /* of dQ, dK, dV; 0: dtype */
    int64_t batch;
    int64_t heads_q; /* a multiple of heads_k and of heads_v */
    int64_t heads_k; /* 0: heads_q */
    int64_t heads_v; /* 0: heads_k */
    int64_t seq_q;   /* rows; the maximum when lengths vary */
    int64_t seq_kv;
    int64_t dim_qk;
    int64_t dim_v; /* 0: dim_qk */
    int64_t q_strides[4], k_strides[4], v_strides[4], o_strides[4];
    int64_t do_strides[4], dq_strides[4], dk_strides[4], dv_strides[4];
    int64_t stats_strides[4]; /* of Stats, Max and Sum_exp */
    double attn_scale;        /* read when has_attn_scale; otherwise 1/sqrt(dim_qk) */
    int64_t window_left;      /* read when has_left */
    int64_t window_right;     /* read when has_right */
    int32_t has_attn_scale;
    int32_t has_left;
    int32_t has_right;
    int32_t align;    /* fattn_align */
    int32_t padding;  /* 1: seq_len_q and seq_len_kv are given at the call */
    uint32_t outputs; /* FATTN_WANT_ bits; forward only */
    int32_t impl;     /* fattn_impl */
    int32_t spelling; /* fattn_spelling */
    int32_t deterministic; /* 1: backward repeats bit for bit */
    int32_t capture;       /* 1: the call will be captured in a CUDA graph */
    int32_t guards_off;    /* 1: our refusals of what is known to fail are off; the backend is asked as it is */
    int32_t reserved;      /* 0 */
    /* since 0.2 */
    int32_t training;      /* forward: 1 writes Stats also when outputs does not say so, for a backward to come; backward: 1 */
    int32_t determinism;   /* fattn_determinism: how, when deterministic */
    int32_t scaling;       /* fattn_scaling; 8 bit types only */
    int32_t scale_format;  /* fattn_format of scale factors; block-scaled types only */
    int32_t ragged_bits;   /* 0; 32 or 64: packed sequences with offsets of that width */
    int32_t len_broadcast; /* padding: 1: seq_len_q and seq_len_kv hold one length for every batch entry. Not by cuDNN, which reads one for each: a guard refuses it */
    int32_t has_bias;
    int32_t bias_dtype;     /* 0: dtype; of 8 bit types bf16 */
    int32_t dbias;          /* backward: 1: dbias is written, in bias_dtype */
    uint32_t mod_gradients; /* backward: bit i: the gradient of the score_mod's tensor i is written, fp32 */
    int64_t bias_dim[4];    /* all zero: [1, heads_q, seq_q, seq_kv] */
    int64_t bias_strides[4], dbias_strides[4]; /* all zero: dense b,h,s,s of bias_dim; dbias follows bias_dim */
    const fattn_score_mod *score_mod; /* NULL: none. Borrowed: a plan keeps its own reference. Identity is the recording, not the address */
    int64_t reserved2[4]; /* 0 */
    /* since 0.3 */
    uint32_t ragged;       /* with ragged_bits: FATTN_RAGGED_ bits; 0: all */
    int32_t ragged_tokens; /* 1: offsets count tokens */
    /* ragged: tokens of the buffers, declared to cuDNN: a backward's workspace is then no larger than they need. 0: not declared. What is known
     * to give wrong gradients by it (dims that are no multiple of 16; sm_8x and sm_12x from 9.18.1) is not declared, unless guards_off. */
    int64_t total_q, total_kv;
    uint32_t cumulative;   /* padding: FATTN_CUMULATIVE_ bits: that side's lengths are given as batch + 1 prefix sums from 0 */
    int32_t len_rank;      /* of the length tensors: 0 or 4: [batch,1,1,1]; 1: [batch] */
    int64_t page_size_k, page_size_v; /* 0: not paged */
    int64_t pages_k, pages_v;         /* of the pool */
    int64_t table_k, table_v;         /* pages of an entry in its table; 0: as many as seq_kv needs */
    int32_t packed_table;  /* 1: the tables are ragged: entry b's pages start at its table_offsets[b] */
    int32_t alibi;         /* 1: slopes are given at the call (fattn_alibi_slopes: the usual ones) */
    int32_t sink;          /* 1: given at the call */
    int32_t dsink;         /* backward: its gradient is written */
    double dropout;        /* 0 <= p < 1 */
    int32_t rng_bits;      /* of seed and offset: 0 or 64: int64; 32: int32 */
    int32_t dropout_mask;  /* 1: the mask is an input, [batch, heads_q, seq_q, seq_kv] dense; dropout is 0 */
    int32_t scale_in_memory; /* 1: the attention scale is fp32 in device memory; attn_scale is not read */
    int32_t stats_dtype;   /* 0 or f32; others are for asking alone */
    int32_t block_mask;    /* 1: a bit for each tile of 128 x 128 scores is given: 0 masks it */
    int32_t unfuse_fma;    /* 1: the softmax's multiplication and addition are rounded apart (impl unified) */
    int32_t rope;          /* 1: Q and K are rotated first, by angles given at the call. cuDNN 9.28.0 reads Q's for both */
    int32_t do_dtype;      /* 8 bit types: of dO, and what dS is cast to; 0: o_dtype (of block-scaled types: dtype). Without 8 bit types dO is of o_dtype */
    int64_t rope_dim;      /* the last lanes that rotate; 0: all */
    int64_t reserved4[8];  /* 0 */
} fattn_problem;

#define FATTN_PROBLEM_INIT { .struct_size = sizeof(fattn_problem) }

/* Fills in every derived field: *out has no defaults left (dtypes, heads, dim_v, strides, scale) and the full struct_size.
 * Returns FATTN_OK; FATTN_BAD_PROBLEM (field and range in the message). */
fattn_status fattn_problem_resolve(const fattn_problem *problem, fattn_problem *out);

/* The strides of an output of `dim` that follow the memory order of an input with `like_strides`: dimensions sorted by the input's
 * strides, broadcast (stride 0) and extent-1 dimensions outermost in b,h,s order, the last stride always 1. out[4] in elements. */
void fattn_match_layout(const int64_t dim[4], const int64_t like_strides[4], int64_t out[4]);

/* ---- context: one build on one device -------------------------------------------------------------------------------------- */

typedef enum fattn_device_kind {
    FATTN_DEVICE_GPU = 0,       /* a GPU of this machine */
    FATTN_DEVICE_DESCRIBED = 1, /* a description; decides and compiles, executes nothing */
    FATTN_DEVICE_CPU = 2        /* the cpu backend; needs no build */
} fattn_device_kind;

/* What a context is made of. Paths are absolute; nothing is searched for, and nothing is read from the environment.
 * Memory   strings are copied. */
typedef struct fattn_context_options {
    size_t struct_size;
    const char *cudnn_dir;   /* folder that holds libcudnn.so.9, libcudnn_graph.so.9, libcudnn_engines_runtime_compiled.so.9 */
    const char *nvrtc;       /* libnvrtc.so.N, mapped before cuDNN (needed below 9.21); NULL: none */
    const char *driver;      /* libcuda.so.1 to map; NULL: the system's. For a described device: the null driver */
    const char *device_json; /* described device: the JSON text (not a path) */
    int32_t device_kind;     /* fattn_device_kind */
    int32_t ordinal;         /* GPU number */
    int32_t threads;         /* cpu backend; 0: all */
    int32_t reserved;        /* 0 */
} fattn_context_options;

#define FATTN_CONTEXT_OPTIONS_INIT { .struct_size = sizeof(fattn_context_options) }

typedef struct fattn_context fattn_context;

/* Maps the libraries and prepares the device. A process holds one cuDNN: a second context with another cudnn_dir is refused.
 * Order    creates (or retains) the device's primary context and makes it current on this thread.
 * Returns  FATTN_OK; FATTN_ENVIRONMENT (a library is missing, mixed, or from elsewhere; no device; the description is refused);
 *          FATTN_NO_MEMORY (here or on the GPU, whose memory others may give back). */
fattn_status fattn_context_create(fattn_context **out, const fattn_context_options *options);

/* Releases. May be called from any thread, also from exit handlers and destructors, with the CUDA context alive or gone; drops the context's
 * plans from the cache. NULL is fine. Nothing is destroyed at exit.
 * Memory   plans that are still held keep what they need of the context: contexts and plans may be destroyed in either order, and a plan
 *          still runs after its context was destroyed. Buffers, streams and graphs need the context itself.
 *          What was made in a CUDA context that is gone (a device reset, the driver's end) is leaked: it cannot be freed any more. */
void fattn_context_destroy(fattn_context *context);
/* Forgets without asking cuDNN or the driver for anything, now or when its plans are destroyed: for callers whose CUDA context is torn down
 * already. Our own memory is freed, theirs is leaked. */
void fattn_context_abandon(fattn_context *context);

/* One mapped library of this process that matters for an answer. Strings live as long as the context. */
typedef struct fattn_library {
    const char *path;
    int64_t bytes;
    bool in_build; /* lies in cudnn_dir */
} fattn_library;

typedef struct fattn_context_info {
    size_t struct_size;
    int32_t cudnn_version; /* cudnnGetVersion(), e.g. 92000; 0 for the cpu */
    int32_t sm;            /* 90 for sm_90; 0 for the cpu */
    int32_t driver_version; /* cuDriverGetVersion(), e.g. 13000; 0: none */
    int32_t multiprocessors;
    char device_name[128];
    char device_uuid[48]; /* "GPU-…" or empty */
    /* since 0.2 */
    int32_t math_kernels;  /* 1: this library holds the kernels of the math backend */
    int32_t reserved;
    char math_about[120]; /* what compiled them and for what: "nvcc 13.0.88: sm_80 …"; or why there are none */
} fattn_context_info;

fattn_status fattn_context_info_get(const fattn_context *context, fattn_context_info *out);

/* Every libcudnn*, libnvrtc*, libcublasLt* and libcuda.so* mapped now. Returns the number; fills at most `capacity`. */
size_t fattn_context_libraries(fattn_context *context, fattn_library *out, size_t capacity);

/* Proves from the process's memory map that every cuDNN library came from cudnn_dir and that a needed NVRTC is the one given.
 * Returns FATTN_OK or FATTN_ENVIRONMENT (the foreign path in the message). */
fattn_status fattn_context_verify(fattn_context *context);

/* The device as cuDNN describes it (DEVICEPROP JSON), for writing a description. Copies at most `capacity` bytes with a final NUL.
 * Returns FATTN_OK; FATTN_ENVIRONMENT; FATTN_UNSUPPORTED (below 9.8). */
fattn_status fattn_context_describe(fattn_context *context, char *out, size_t capacity);

/* ---- decision: heuristics only, no compile ---------------------------------------------------------------------------------- */

#define FATTN_MAX_KNOBS 24

typedef struct fattn_knob {
    int32_t type; /* cudnnBackendKnobType_t */
    int32_t reserved;
    int64_t value;
} fattn_knob;

/* One engine configuration that the heuristics returned. */
typedef struct fattn_engine {
    int32_t mode;   /* fattn_mode */
    int32_t config; /* its place in that mode's list, from 0 */
    int64_t index;  /* engine number; a name only together with the cuDNN version */
    int64_t workspace_bytes; /* as stated before compiling; -1: not stated */
    uint32_t numerical_notes; /* bit i: cudnnBackendNumericalNote_t i */
    uint32_t behavior_notes;  /* bit i: cudnnBackendBehaviorNote_t i */
    int32_t knob_count;
    int32_t removed; /* 1: a rule of a policy or a guard takes it out (fattn_answer.rule names it): it is listed and never used */
    fattn_knob knobs[FATTN_MAX_KNOBS];
} fattn_engine;

/* One step of cuDNN's own refusal: the engine tried, its status, its sentence, the failed condition. */
typedef struct fattn_refusal {
    int64_t engine; /* -1: not of one engine */
    const char *status; /* "CUDNN_STATUS_NOT_SUPPORTED_SHAPE" */
    const char *text;
    const char *condition; /* "d_qk % 8 != 0"; may be empty */
} fattn_refusal;

#define FATTN_ASK_A 1u
#define FATTN_ASK_B 2u
#define FATTN_ASK_FALLBACK 4u
#define FATTN_ASK_INSTANT 8u

typedef struct fattn_decision fattn_decision;

/* May this target run this problem, by which engines, and if not why not? A probe is cheap: it never compiles, asks one pass (a forward never
 * asks the backward), and costs cuDNN 2 to 5 ms of one core. Each backend that this thread's policy names answers (fattn_decision_answer); the
 * first yes is the decision, otherwise the first no. Mode A decides; the other modes of `ask`
 * (FATTN_ASK_ bits; A is always asked) are recorded only.
 * Returns  FATTN_OK when the question was answered, yes or no; FATTN_BAD_PROBLEM also answers (a decision is made, reason class
 *          bad_problem). FATTN_NO_MEMORY and FATTN_INTERNAL leave *out NULL. */
fattn_status fattn_decide(fattn_decision **out, fattn_context *context, const fattn_problem *problem, uint32_t ask);
void fattn_decision_destroy(fattn_decision *decision);

bool fattn_decision_supported(const fattn_decision *decision);
fattn_backend fattn_decision_backend(const fattn_decision *decision); /* who would compute, or who refused */
fattn_reason fattn_decision_reason(const fattn_decision *decision);   /* NONE when supported */
/* Strings below live as long as the decision; never NULL. */
const char *fattn_decision_status(const fattn_decision *decision); /* cuDNN's status name of the reason, or empty */
const char *fattn_decision_text(const fattn_decision *decision);   /* the reason in one line */
const char *fattn_decision_remedy(const fattn_decision *decision); /* what to do about it, or empty */
size_t fattn_decision_refusal_count(const fattn_decision *decision);
const fattn_refusal *fattn_decision_refusal(const fattn_decision *decision, size_t i);
size_t fattn_decision_engine_count(const fattn_decision *decision, fattn_mode mode);
const fattn_engine *fattn_decision_engine(const fattn_decision *decision, fattn_mode mode, size_t i);

/* Names in words; "?" when unknown. Static strings. */
const char *fattn_knob_name(int32_t type);             /* "TILE_M" */
bool fattn_knob_find(int32_t *type, const char *word); /* by its name in lower case, "tile_m"; false: there is none */
const char *fattn_numerical_note_name(int32_t bit);    /* "TENSOR_CORE" */
const char *fattn_behavior_note_name(int32_t bit);     /* "RUNTIME_COMPILATION" */
const char *fattn_status_name(fattn_status status);    /* "bad_problem" */

/* ---- plan: compiled ---------------------------------------------------------------------------------------------------------- */

#define FATTN_ENGINE_AUTO (-1)

typedef struct fattn_plan_options {
    size_t struct_size;
    int64_t engine; /* FATTN_ENGINE_AUTO: the first of mode A that compiles; N: the first configuration of engine N */
    int32_t config; /* FATTN_ENGINE_AUTO, or the place in mode A's list (then `engine` is not read) */
    int32_t reserved;
    /* since 0.3 */
    const fattn_knob *knobs; /* with `engine`, not NULL: a pin, past the heuristics: that engine with exactly these knobs. Which of its
                              * knobs an engine wants cuDNN says itself. Read during the call alone */
    int32_t knob_count;      /* 0 to FATTN_MAX_KNOBS */
    int32_t override_shapes; /* 1: fattn_forward_as may run the plan with other extents and strides; cuDNN has it from 9.21, impl unified */
} fattn_plan_options;

#define FATTN_PLAN_OPTIONS_INIT { .struct_size = sizeof(fattn_plan_options), .engine = FATTN_ENGINE_AUTO, .config = FATTN_ENGINE_AUTO }

typedef struct fattn_plan fattn_plan;

/* Compiles (cudnn: 0.25 to 2 s). `options` may be NULL.
 * Order    the backends that this thread's policy names, in its order; the first that succeeds computes (fattn_plan_backend). When all fail,
 *          status and sentence are those of the first.
 * Memory   the plan keeps what it needs, of the context and of the score_mod too.
 * Returns  FATTN_OK; FATTN_UNSUPPORTED, FATTN_POLICY, FATTN_BAD_PROBLEM as decided; FATTN_BUILD_FAILED; FATTN_ENVIRONMENT. */
fattn_status fattn_plan_create(fattn_plan **out, fattn_context *context, const fattn_problem *problem, const fattn_plan_options *options);

/* The plan as bytes (cuDNN's JSON with a header of ours); a plan built for a described device loads on the real one.
 * Memory   *bytes is malloc'ed; free with fattn_free.
 * Returns  FATTN_OK; FATTN_UNSUPPORTED (the cpu has nothing to save); FATTN_NO_MEMORY. */
fattn_status fattn_plan_save(const fattn_plan *plan, char **bytes, size_t *count);
/* The same problem must be given again; its hash, the cuDNN version and the device's sm are checked before cuDNN sees a byte.
 * A plan is executable code: load only what you trust.
 * Returns  FATTN_OK; FATTN_BAD_PLAN. */
fattn_status fattn_plan_load(fattn_plan **out, fattn_context *context, const fattn_problem *problem, const char *bytes, size_t count);
void fattn_plan_destroy(fattn_plan *plan);
void fattn_free(void *memory);

/* Bytes of workspace for every call of this plan; constant over the plan's life. */
size_t fattn_plan_workspace_bytes(const fattn_plan *plan);
fattn_backend fattn_plan_backend(const fattn_plan *plan);
const fattn_engine *fattn_plan_engine(const fattn_plan *plan); /* the configuration that was compiled; lives as long as the plan */
double fattn_plan_ms(const fattn_plan *plan);                  /* time to compile or load it */
/* May `problem` be run with this plan? True only when every field that the graph bakes in is the same. Not baked in are capture, training (it
 * has become a bit of outputs), the layouts and types of tensors that the pass does not touch, total_q and total_kv of a forward, and
 * deterministic where the plan is and the problem need not be.
 * Batch    is baked in, as every extent is: another batch is another plan. What it costs in the middle of a run is a decision (1 to 3 ms) and a
 *          compile (0.5 to 1 s forward, 0.7 to 1 s backward), so plans for the batches to come are made before it, or saved and loaded.
 *          cuDNN's dynamic shapes with a kernel cache would make the second compile 0.1 ms, and are not used: of the versions that were asked
 *          (9.13 to 9.28) only 9.19 and 9.20 offer an engine for them, only forward; the others answer "does not support dynamic shape". */
bool fattn_plan_covers(const fattn_plan *plan, const fattn_problem *problem);

/* ---- call --------------------------------------------------------------------------------------------------------------------- */

/* Addresses for one call: device addresses (host addresses for the cpu backend), 16-byte aligned. What the problem does not use is not read.
 * seq_len_q, seq_len_kv: int32 [batch] on the device, when the problem has padding. A ragged problem may have -1 for both lengths of an entry:
 * the sequence is unused, as one of length 0. Another length outside 0..seq is refused by the cpu; on a GPU
 * nobody can look at it without waiting, and what such a call computes or touches is not defined.
 * Outputs and the workspace share no byte with one another or with an input; interleaved tensors (packed layouts) do not share any. */
typedef struct fattn_tensors {
    size_t struct_size;
    const void *q, *k, *v;
    void *o;         /* forward: written; backward: read */
    float *stats;    /* forward: written when wanted; backward: read */
    float *max;      /* forward only, when wanted */
    float *sum_exp;
    const int32_t *seq_len_q, *seq_len_kv;
    const void *d_o; /* backward */
    void *dq, *dk, *dv;
    void *workspace; /* at least fattn_plan_workspace_bytes(plan); may be dirty */
    size_t workspace_bytes;
    /* since 0.2 */
    const void *bias;
    void *dbias;
    const void *const *mod_tensors; /* one address for each tensor of the score_mod, in the order of its recording */
    void *const *mod_gradients;     /* backward: as many, NULL where mod_gradients has no bit */
    /* since 0.3; each where the problem says so */
    const void *q_offsets, *k_offsets, *v_offsets, *o_offsets, *stats_offsets; /* int32 or int64 [batch + 1] */
    const void *do_offsets, *dq_offsets, *dk_offsets, *dv_offsets;
    const int32_t *page_table_k, *page_table_v; /* [batch, table_k]; packed: entry by entry */
    const void *table_offsets_k, *table_offsets_v; /* int32 or int64 as ragged_bits (int32 without) [batch + 1] */
    const float *attn_scale;  /* [1] */
    const float *alibi_slopes; /* [heads_q] */
    const float *sink;        /* [heads_q] */
    float *dsink;             /* [heads_q] */
    const void *seed, *offset; /* [1] */
    const void *dropout_mask; /* dense b,h,s,s of dtype; of 8 bit types bf16 */
    const float *dropout_scale, *dropout_scale_inverse; /* [1]; the inverse: backward; cuDNN's graph has the first alone */
    void *rng_dump;           /* dense b,h,s,s, fp32: written where a row may see the key. cuDNN skips tiles that the band or the lengths
                               * mask completely and leaves their numbers as they were; how many tiles differs from engine to engine */
    const uint8_t *block_mask; /* [batch, heads_q, ceil(seq_q/128), ceil(ceil(seq_kv/128) / 8)]: bit i % 8 of byte i / 8 is tile i */
    const float *rope_q, *rope_k; /* angles: [seq_q, rope_dim], [seq_kv, rope_dim]; for cuDNN the same ones (docs/findings.md#rope-more-keys-than-rows) */
    const float *descale_q, *descale_k, *descale_v, *descale_s, *scale_s, *scale_o; /* [1] each; scale_o: of an O of 8 bits */
    const float *descale_o, *descale_do, *descale_dp, *scale_dp, *scale_dq, *scale_dk, *scale_dv; /* descale_o: 1 for an O of 16 bits */
    float *amax_s, *amax_o, *amax_dp, *amax_dq, *amax_dk, *amax_dv;
    const uint8_t *sf_q, *sf_k, *sf_v, *sf_do;       /* E8M0 in F8_128x4, along the channels; forward: V's along the keys */
    const uint8_t *sf_q_t, *sf_k_t, *sf_do_t;        /* backward: along rows or keys */
    const void *q_t, *k_t, *do_t;                    /* backward: the same tensors, quantised along rows or keys */
    const void *do_16;                               /* backward: dO in o_dtype */
} fattn_tensors;

#define FATTN_TENSORS_INIT { .struct_size = sizeof(fattn_tensors) }

/* Enqueues O = softmax(scale * Q K^T + mask) V.
 * Memory   the caller owns every buffer. Nothing is allocated; inputs are not written.
 * Order    asynchronous on `stream`; never synchronises; may be captured in a CUDA graph, which then refers to these addresses and
 *          must not outlive the plan. The cpu backend computes before it returns and ignores `stream`.
 * Threads  one plan may be launched from many threads at once, each with its own workspace.
 * Returns  FATTN_OK; FATTN_BAD_PROBLEM (a pointer is NULL, misaligned, or nothing that the plan's GPU reaches by that address; an output
 *          shares memory; the workspace is too small: nothing was launched or written. With guards_off only NULL and the workspace are
 *          looked at. A set of addresses that passed with this plan is known: whoever gives such memory back must not call with it); FATTN_DEVICE_FAULT.
 * Source   cuDNN backend API, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR. */
fattn_status fattn_forward(const fattn_plan *plan, const fattn_tensors *tensors, struct CUstream_st *stream);

/* The same with a plan that was made with override_shapes, for a problem that differs from the plan's in batch, seq_q, seq_kv (each at most the
 * plan's) and strides alone; the tensors are the other problem's. No second compile, and no promise of the best engine.
 * Returns  as fattn_forward; FATTN_UNSUPPORTED (what the graph bakes in differs with the extents: the message names the field; a backend other
 *          than cuDNN, or cuDNN itself: nothing was launched); FATTN_POLICY (a stride that is not a multiple of 16 bytes; strides other than
 *          the plan's, which cuDNN 9.28.0 takes and does not use: docs/findings.md#override-strides). Rows of O and Stats behind seq_q, up
 *          to the plan's, may be written.
 * Source   cuDNN backend API, CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES and _STRIDES. */
fattn_status fattn_forward_as(const fattn_plan *plan, const fattn_problem *problem, const fattn_tensors *tensors, struct CUstream_st *stream);

/* Enqueues dQ, dK, dV from dO, with O and Stats of a forward call. The rest as fattn_forward. */
fattn_status fattn_backward(const fattn_plan *plan, const fattn_tensors *tensors, struct CUstream_st *stream);

/* What nobody can see at a launch without waiting: reads lengths, offsets, page tables, scale factors and scales of a call back from the device and
 * looks at them. `elements`: how many each buffer of FATTN_RAGGED_LIST holds, 0 where unknown; NULL: none is known.
 * Order    waits for `stream`; launches nothing. Not for a stream that is being captured.
 * Returns  FATTN_OK; FATTN_BAD_PROBLEM (argument, index, value and what is allowed in the message); FATTN_DEVICE_FAULT. */
fattn_status fattn_call_check(const fattn_plan *plan, const fattn_tensors *tensors, const int64_t elements[FATTN_RAGGED_TENSORS],
                              struct CUstream_st *stream);

/* The usual slopes of ALiBi for `heads` heads: 2^(-8i/n) for the first n (the largest power of two), then every other one of 2n. out[heads]. */
void fattn_alibi_slopes(int64_t heads, float *out);

/* ---- memory and order, for programs without a CUDA runtime; on the CPU these are host operations ------------------------------ */

fattn_status fattn_buffer_create(void **out, fattn_context *context, size_t bytes); /* 256-byte aligned, not cleared */
void fattn_buffer_destroy(fattn_context *context, void *buffer);
fattn_status fattn_buffer_write(fattn_context *context, void *to, const void *from_host, size_t bytes); /* synchronous */
fattn_status fattn_buffer_read(fattn_context *context, void *to_host, const void *from, size_t bytes);  /* synchronous */
fattn_status fattn_stream_create(struct CUstream_st **out, fattn_context *context); /* NULL stream on the CPU */
void fattn_stream_destroy(fattn_context *context, struct CUstream_st *stream);
/* Waits. FATTN_DEVICE_FAULT when anything launched before has failed; the driver's words are in fattn_last_error(). */
fattn_status fattn_stream_synchronize(fattn_context *context, struct CUstream_st *stream);
/* Makes the GPU's context current on this thread, for a program that launches kernels of its own beside the library's; leave puts back what was
 * current before. Nothing to do on other devices. */
struct CUctx_st;
fattn_status fattn_context_enter(struct CUctx_st **previous, fattn_context *context);
void fattn_context_leave(fattn_context *context, struct CUctx_st *previous);
/* Runs `launch(argument, stream)` `repeats` times between two events; *out_us is the mean in microseconds. Synchronises. */
fattn_status fattn_stream_time(fattn_context *context, struct CUstream_st *stream, fattn_status (*launch)(void *, struct CUstream_st *),
                               void *argument, int repeats, double *out_us);

/* The sentence of this thread's last failure; "" when there was none. Valid until this thread's next failure. */
const char *fattn_last_error(void);

#ifdef __cplusplus
}
#endif

#include "cache.h"
#include "graph.h"
#include "policy.h"
#include "score_mod.h"
#endif
