/* fattn.h: fused attention on cuDNN's backend API, in plain C. From examples/first_call.c:
 *
 *     fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
 *     options.device_kind = FATTN_DEVICE_CPU; // a GPU: FATTN_DEVICE_GPU, options.cudnn_dir, and
 *                                             // addresses of device memory
 *     CHECK(fattn_context_create(&context, &options));
 *     fattn_problem problem = FATTN_PROBLEM_INIT; // a field that is 0 has its default: dense b,s,h,d,
 *                                                 // scale 1/sqrt(dim_qk)
 *     problem.dtype = FATTN_F32, problem.batch = 2, problem.heads_q = 8, problem.heads_k = 2;
 *     problem.seq_q = problem.seq_kv = 128, problem.dim_qk = 64, problem.has_right = 1; // causal
 *     CHECK(fattn_plan_create(&plan, context, &problem, NULL));
 *     fattn_tensors tensors = FATTN_TENSORS_INIT;
 *     tensors.q = q, tensors.k = k, tensors.v = v, tensors.o = o;
 *     tensors.workspace_bytes = fattn_plan_workspace_bytes(plan),
 *     tensors.workspace = malloc(tensors.workspace_bytes);
 *     CHECK(fattn_forward(plan, &tensors, NULL));
 *
 * A problem describes one attention call completely. fattn_decide asks about it, fattn_plan_create compiles it, and fattn_forward and
 * fattn_backward run it. So the library launches exactly the call that it decided about.
 *
 * Shapes   b batch, h head, s query or key, d channel. Every tensor has rank 4 in the order b,h,s,d, with any strides whose last is 1:
 *            Q, dQ [batch, heads_q, seq_q,  dim_qk]     O, dO [batch, heads_q, seq_q,  dim_v]
 *            K, dK [batch, heads_k, seq_kv, dim_qk]     V, dV [batch, heads_v, seq_kv, dim_v]
 *            Stats, Max, Sum_exp [batch, heads_q, seq_q, 1], fp32
 * Errors   Every function that can fail returns a fattn_status. fattn_last_error() has the sentence for people. Owners are NULL after a
 *          failure. A NULL for an argument that is no option is FATTN_BAD_PROBLEM.
 * Threads  A context, a plan and a decision may be used from many threads at once. Creating and destroying one handle may not overlap
 *          with its use.
 * Quiet    The library never prints, exits, reads the environment, or synchronises behind the caller's back.
 * Headers  This one includes problem.h (the problem) and status.h (errors). Include the others where you need them. Shared plans are in
 *          cache.h, CUDA graphs in graph.h, and changes of the score in score_mod.h. The backends and engines that
 *          may be used are in policy.h. Buffers, streams and time for programs without a CUDA runtime are in device.h.
 */
#ifndef FATTN_H
#define FATTN_H

#include "problem.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* cudaStream_t and CUstream, without a CUDA header */

/* ---- context: one cuDNN on one device
 * ------------------------------------------------------------------------------------- */

typedef enum fattn_device_kind {
    FATTN_DEVICE_GPU = 0,       /* a GPU of this machine */
    FATTN_DEVICE_DESCRIBED = 1, /* a description; decides and compiles, executes nothing */
    FATTN_DEVICE_CPU = 2        /* the cpu backend; needs no cuDNN */
} fattn_device_kind;

/* The parts of a context. Paths are absolute. The library searches for nothing and does not read the environment.
 * Memory   the library copies the strings. */
typedef struct fattn_context_options {
    size_t struct_size;
    const char *
        cudnn_dir; /* folder that holds libcudnn.so.9, libcudnn_graph.so.9, libcudnn_engines_runtime_compiled.so.9;
                    * NULL: that of the libcudnn.so.9 that this process has mapped, with its NVRTC (PyTorch's own, say) */
    const char *nvrtc;  /* libnvrtc.so.N, mapped before cuDNN (needed below 9.21); NULL: none */
    const char *driver; /* libcuda.so.1 to map; NULL: the system's. For a described device: the null
                           driver */
    const char *device_json; /* described device: the JSON text (not a path) */
    int32_t device_kind;     /* fattn_device_kind */
    int32_t ordinal;         /* GPU number */
    int32_t threads;         /* cpu backend, at most 4096; 0: all */
    int32_t reserved;        /* 0 */
} fattn_context_options;

#define FATTN_CONTEXT_OPTIONS_INIT { .struct_size = sizeof(fattn_context_options) }

typedef struct fattn_context fattn_context;

/* Maps the libraries and prepares the device. A process holds one cuDNN: a second context with another cudnn_dir is refused.
 * Order    creates (or retains) the device's primary context and makes it current on this thread.
 * Returns  FATTN_OK; FATTN_ENVIRONMENT (a library is missing, mixed, or from another folder; no device; the description is refused);
 *          FATTN_NO_MEMORY (on the host or on the GPU; another program may free the GPU's memory later). */
fattn_status fattn_context_create(fattn_context **out, const fattn_context_options *options);

/* Destroys the context and drops its plans from the cache. NULL is allowed. The library destroys nothing at exit.
 * Threads  any thread, also from exit handlers and destructors, with the CUDA context alive or gone.
 * Memory   plans that still exist keep the parts of the context that they need. Contexts and plans may be destroyed in either order. A
 *          plan still runs after its context was destroyed. Buffers, streams and graphs need the context itself, so destroy them first.
 *          Objects of a destroyed CUDA context (after a device reset or at the driver's end) are leaked, because nobody can free them. */
void fattn_context_destroy(fattn_context *context);
/* As fattn_context_destroy, but calls neither cuDNN nor the driver, now or when its plans are
 * destroyed. For callers whose CUDA context is gone already. Frees the library's own memory;
 * cuDNN's and the driver's memory is leaked. */
void fattn_context_abandon(fattn_context *context);

typedef struct fattn_context_info {
    size_t struct_size;
    int32_t cudnn_version;  /* cudnnGetVersion(), e.g. 92000; 0 for the cpu */
    int32_t sm;             /* 90 for sm_90; 0 for the cpu */
    int32_t driver_version; /* cuDriverGetVersion(), e.g. 13000; 0: none */
    int32_t multiprocessors;
    char device_name[128];
    char device_uuid[48]; /* "GPU-…" or empty */
    int32_t math_kernels; /* 1: this library holds the kernels of the math backend */
    int32_t reserved;     /* 0 */
    char math_about[120]; /* the compiler and architectures: "nvcc 13.0.88: sm_80 …"; or why there
                             are none */
    uint64_t build_id; /* hash of every byte of cuDNN's libraries, in any folder; 0 for the cpu, and
                          when a library was changed since */
    uint64_t device_id; /* hash of cuDNN's description of the device, without its place, driver and
                           memory; 0 for the cpu */
} fattn_context_info;

/* Fills the fields that the caller's struct_size has room for. The first call that fills build_id reads the libraries: 20 ms for 180 MB in
 * memory.
 * Returns  FATTN_OK; FATTN_BAD_PROBLEM (struct_size is not set). */
fattn_status fattn_context_info_get(const fattn_context *context, fattn_context_info *out);

/* A library of this process on which an answer depends. Strings live as long as the context. */
typedef struct fattn_library {
    const char *path;
    int64_t bytes;
    bool in_build; /* lies in cudnn_dir */
} fattn_library;

/* Every libcudnn*, libnvrtc*, libcublasLt* and libcuda.so* mapped now. Returns the number; fills at
 * most `capacity`. */
size_t fattn_context_libraries(fattn_context *context, fattn_library *out, size_t capacity);

/* Proves from the process's memory map that every cuDNN library came from cudnn_dir and that a
 * needed NVRTC is the one given. Returns FATTN_OK or FATTN_ENVIRONMENT (the foreign path in the
 * message). */
fattn_status fattn_context_verify(fattn_context *context);

/* The device as cuDNN describes it (DEVICEPROP JSON), for writing a description. Copies at most
 * `capacity` bytes with a final NUL. Returns FATTN_OK; FATTN_BAD_PROBLEM (`capacity` is too small);
 * FATTN_ENVIRONMENT; FATTN_UNSUPPORTED (below 9.8; the cpu). */
fattn_status fattn_context_describe(fattn_context *context, char *out, size_t capacity);

/* ---- decision: heuristics only, no compile
 * --------------------------------------------------------------------------------- */

/* X(SYMBOL, value, "word") */
#define FATTN_BACKEND_LIST(X)                                                                      \
    X(BACKEND_CUDNN, 0, "cudnn") X(BACKEND_MATH, 1, "math") X(BACKEND_CPU, 2, "cpu")
#define FATTN_MODE_LIST(X)                                                                         \
    X(MODE_A, 0, "A")                                                                              \
    X(MODE_B, 1, "B") X(MODE_FALLBACK, 2, "fallback") X(MODE_INSTANT, 3, "instant")
#define FATTN_AS_ENUM_(symbol, value, word) FATTN_##symbol = (value),
typedef enum fattn_backend { FATTN_BACKEND_LIST(FATTN_AS_ENUM_) } fattn_backend; /* who computes */
typedef enum fattn_mode { FATTN_MODE_LIST(FATTN_AS_ENUM_) } fattn_mode; /* of cuDNN's heuristics */
#undef FATTN_AS_ENUM_
#define FATTN_BACKEND_COUNT 3

/* Why a target refuses. The numbers are those of fattn_status. */
typedef enum fattn_reason {
    FATTN_REASON_NONE = FATTN_OK,
    FATTN_REASON_BAD_PROBLEM = FATTN_BAD_PROBLEM,
    FATTN_REASON_UNSUPPORTED = FATTN_UNSUPPORTED,
    FATTN_REASON_ENVIRONMENT = FATTN_ENVIRONMENT,
    FATTN_REASON_POLICY = FATTN_POLICY,
    FATTN_REASON_INTERNAL = FATTN_INTERNAL
} fattn_reason;

#define FATTN_MAX_KNOBS 24

typedef struct fattn_knob {
    int32_t type;     /* cudnnBackendKnobType_t */
    int32_t reserved; /* 0 */
    int64_t value;
} fattn_knob;

/* One engine configuration that the heuristics returned. */
typedef struct fattn_engine {
    int32_t mode;             /* fattn_mode */
    int32_t config;           /* its index in that mode's list, from 0 */
    int64_t index;            /* engine number; it means something only with the cuDNN version */
    int64_t workspace_bytes;  /* as cuDNN states it before compiling; -1: not stated */
    uint32_t numerical_notes; /* bit i: cudnnBackendNumericalNote_t i */
    uint32_t behavior_notes;  /* bit i: cudnnBackendBehaviorNote_t i */
    int32_t knob_count;
    int32_t removed; /* 1: a policy or a guard removed it (fattn_answer.rule names the rule):
                        listed, never used */
    fattn_knob knobs[FATTN_MAX_KNOBS];
} fattn_engine;

/* One step of cuDNN's refusal: the engine that it tried, the status, the sentence, the failed
 * condition. */
typedef struct fattn_refusal {
    int64_t engine;     /* -1: no single engine */
    const char *status; /* "CUDNN_STATUS_NOT_SUPPORTED_SHAPE" */
    const char *text;
    const char *condition; /* "d_qk % 8 != 0"; may be empty */
} fattn_refusal;

/* The answer of one backend. */
typedef struct fattn_answer {
    int32_t backend;                    /* fattn_backend */
    int32_t reason;                     /* fattn_reason; NONE: accepted */
    const char *status, *text, *remedy; /* as those of the decision */
    const char *rule; /* the rule that refused the problem or removed an engine; or "" */
} fattn_answer;

#define FATTN_ASK_A 1u
#define FATTN_ASK_B 2u
#define FATTN_ASK_FALLBACK 4u
#define FATTN_ASK_INSTANT 8u

typedef struct fattn_decision fattn_decision;

/* Can this target run this problem, by which engines, and if not, why? A decision is cheap: it compiles nothing, asks about one pass, and takes
 * cuDNN 2 to 5 ms on one core. Each backend of this thread's policy answers. The first backend that accepts makes the decision; if none
 * accepts, the first refusal does. Mode A decides. The other modes of `ask` (FATTN_ASK_ bits) are only recorded.
 * Returns  FATTN_OK when the target answered, yes or no; FATTN_BAD_PROBLEM also answers (a decision is made, reason class
 *          bad_problem). FATTN_NO_MEMORY and FATTN_INTERNAL leave *out NULL. */
fattn_status fattn_decide(fattn_decision **out, fattn_context *context,
                          const fattn_problem *problem, uint32_t ask);
void fattn_decision_destroy(fattn_decision *decision);

bool fattn_decision_supported(const fattn_decision *decision);
fattn_backend fattn_decision_backend(
    const fattn_decision *decision); /* the backend that would compute, or that refused */
fattn_reason fattn_decision_reason(const fattn_decision *decision); /* NONE when supported */
/* Strings below live as long as the decision; never NULL. */
const char *fattn_decision_status(
    const fattn_decision *decision); /* cuDNN's status name of the reason, or empty */
const char *fattn_decision_text(const fattn_decision *decision); /* the reason in one line */
const char *
fattn_decision_remedy(const fattn_decision *decision); /* what to do about it, or empty */
/* Element i of a list; NULL past the end. */
size_t fattn_decision_answer_count(const fattn_decision *decision);
const fattn_answer *fattn_decision_answer(const fattn_decision *decision,
                                          size_t i); /* in the order of the policy */
size_t fattn_decision_refusal_count(const fattn_decision *decision);
const fattn_refusal *fattn_decision_refusal(const fattn_decision *decision, size_t i);
size_t fattn_decision_engine_count(const fattn_decision *decision, fattn_mode mode);
const fattn_engine *fattn_decision_engine(const fattn_decision *decision, fattn_mode mode,
                                          size_t i);

#define FATTN_MAX_NEIGHBOURS 16

/* A problem near a refused one that the target accepts. */
typedef struct fattn_neighbour {
    fattn_problem problem;
    char change[96]; /* "dim_qk 104 instead of 100" */
    int32_t changes; /* number of fields changed: 1, or 2 */
    int32_t asked;   /* problems that were asked until this one; without a neighbour, all: out[0] */
} fattn_neighbour;
/* Finds problems near a refused one that the target accepts, nearest first. It calls fattn_decide and compiles nothing. It changes one field
 * (or both head dims, if they are equal), and two only if no single change helps. `budget`: most decisions (0: 200).
 * Returns  the status of fattn_decide; *count neighbours in out[FATTN_MAX_NEIGHBOURS]. */
fattn_status fattn_explain(fattn_context *context, const fattn_problem *problem, int budget,
                           fattn_neighbour *out, size_t *count);

/* cuDNN's numbers in words; "?" when unknown. Static strings. */
const char *fattn_knob_name(int32_t type);          /* "TILE_M" */
const char *fattn_numerical_note_name(int32_t bit); /* "TENSOR_CORE" */
const char *fattn_behavior_note_name(int32_t bit);  /* "RUNTIME_COMPILATION" */

/* ---- plan: compiled
 * ----------------------------------------------------------------------------------------------------------
 */

#define FATTN_ENGINE_AUTO (-1)

typedef struct fattn_plan_options {
    size_t struct_size;
    int64_t engine; /* FATTN_ENGINE_AUTO: the first of mode A that compiles; N: the first
                       configuration of engine N */
    int32_t
        config; /* FATTN_ENGINE_AUTO, or the index in mode A's list (then `engine` is not read) */
    int32_t knob_count;      /* of knobs: 0 to FATTN_MAX_KNOBS */
    int32_t override_shapes; /* 1: fattn_forward_as may run the plan with other extents and strides;
                                cuDNN has it from 9.21, impl unified */
    int32_t reserved;        /* 0 */
    const fattn_knob *
        knobs; /* with `engine`, not NULL: pin this engine with exactly these knobs, without the heuristics. cuDNN refuses
                * unknown or missing knobs. Read only during the call */
} fattn_plan_options;

#define FATTN_PLAN_OPTIONS_INIT                                                                    \
    { .struct_size = sizeof(fattn_plan_options),                                                   \
      .engine = FATTN_ENGINE_AUTO,                                                                 \
      .config = FATTN_ENGINE_AUTO }

typedef struct fattn_plan fattn_plan;

/* Compiles (cudnn: 0.25 to 2 s). `options` may be NULL.
 * Order    the backends of this thread's policy, in its order. The first that succeeds computes (fattn_plan_backend). If all fail, status
 *          and sentence are those of the first.
 * Memory   the plan keeps the parts of the context and of the score_mod that it needs.
 * Returns  FATTN_OK; FATTN_UNSUPPORTED, FATTN_POLICY, FATTN_BAD_PROBLEM as fattn_decide; FATTN_BUILD_FAILED; FATTN_ENVIRONMENT. */
fattn_status fattn_plan_create(fattn_plan **out, fattn_context *context,
                               const fattn_problem *problem, const fattn_plan_options *options);

/* The key of a saved plan: 32 hexadecimal digits and a NUL. The key hashes the problem, the options, the build of cuDNN, the device and
 * the sources of this library. It also hashes the rules of this thread's policy that hold for the problem. It is equal in every process,
 * and for a GPU and its description. Another version of the library has another key.
 * Returns  FATTN_OK; FATTN_BAD_PROBLEM; FATTN_ENVIRONMENT (a library of cuDNN was changed since it was mapped). */
fattn_status fattn_plan_key(fattn_context *context, const fattn_problem *problem,
                            const fattn_plan_options *options, char key[33]);

/* Writes the plan as bytes: a header of the library and cuDNN's JSON. A plan for a described device loads on the GPU that it describes.
 * Memory   *bytes is malloc'ed; free with fattn_free.
 * Returns  FATTN_OK; FATTN_UNSUPPORTED (the cpu has nothing to save); FATTN_NO_MEMORY; FATTN_ENVIRONMENT (as fattn_plan_key). */
fattn_status fattn_plan_save(const fattn_plan *plan, char **bytes, size_t *count);
/* Makes a plan from saved bytes. `problem` must be the problem of the saved plan. Before cuDNN gets a byte, the library checks the
 * checksums, the problem, its graph, the build of cuDNN (build_id) and the device (device_id). It also checks that no rule of this thread's
 * policy removes the plan's engine.
 * A plan is executable code: load only files that you trust.
 * Returns  FATTN_OK; FATTN_BAD_PLAN. */
fattn_status fattn_plan_load(fattn_plan **out, fattn_context *context, const fattn_problem *problem,
                             const char *bytes, size_t count);
void fattn_plan_destroy(fattn_plan *plan); /* NULL is allowed */
void fattn_free(void *memory);

/* Bytes of workspace for every call of this plan; constant over the plan's life. */
size_t fattn_plan_workspace_bytes(const fattn_plan *plan);
fattn_backend fattn_plan_backend(const fattn_plan *plan);
const fattn_engine *fattn_plan_engine(
    const fattn_plan *plan); /* the configuration that was compiled; lives as long as the plan */
double fattn_plan_ms(const fattn_plan *plan); /* time to compile or load it */
/* Can this plan run `problem`? True only if every field is equal that the graph contains. The graph does not contain: capture; training (it
 * became a bit of outputs); layouts and types of tensors that the pass does not use; total_q and total_kv of a forward; deterministic, if the
 * plan repeats and the problem need not.
 * Batch    The graph contains every extent: another batch needs another plan. That costs a decision (1 to 3 ms) and a compile (0.5 to 1 s
 *          forward, 0.7 to 1 s backward), so make the plans of later batches before, or save and load them. The library does not use cuDNN's
 *          dynamic shapes with a kernel cache: of 9.13 to 9.28 only 9.19 and 9.20 offer an engine for them, and only forward. */
bool fattn_plan_covers(const fattn_plan *plan, const fattn_problem *problem);

/* ---- call
 * ---------------------------------------------------------------------------------------------------------------------
 */

/* Addresses for one call: device addresses (host addresses for the cpu backend), 16-byte aligned. The library does not read addresses that
 * the problem does not use.
 * Lengths  int32 [batch] on the device, when the problem has padding (cumulative: batch + 1). Both lengths of an entry of a ragged problem may
 *          be -1: the sequence is unused. The cpu refuses any other length outside 0..seq. On a GPU such a call is undefined, because a
 *          launch cannot check a length without waiting. fattn_call_check of device.h can.
 * Overlap  outputs and the workspace must not share a byte with each other or with an input. Interleaved tensors share none. */
typedef struct fattn_tensors {
    size_t struct_size;
    const void *q, *k, *v;
    void *o;      /* forward: written; backward: read */
    float *stats; /* forward: written when wanted; backward: read */
    float *max;   /* forward only, when wanted */
    float *sum_exp;
    const int32_t *seq_len_q, *seq_len_kv;
    const void *d_o; /* backward */
    void *dq, *dk, *dv;
    void *workspace; /* at least fattn_plan_workspace_bytes(plan); may be dirty */
    size_t workspace_bytes;
    const void *bias;
    void *dbias;
    const void *const *mod_tensors; /* one address for each tensor of the score_mod, in the order of
                                       its recording */
    void *const *mod_gradients;     /* backward: as many, NULL where mod_gradients has no bit */
    /* Each only if the problem asks for it. */
    const void *q_offsets, *k_offsets, *v_offsets, *o_offsets,
        *stats_offsets; /* int32 or int64 [batch + 1] */
    const void *do_offsets, *dq_offsets, *dk_offsets, *dv_offsets;
    const int32_t *page_table_k, *page_table_v; /* [batch, table_k]; packed: entry by entry */
    const void *table_offsets_k,
        *table_offsets_v;      /* int32 or int64 as ragged_bits (int32 without) [batch + 1] */
    const float *attn_scale;   /* [1] */
    const float *alibi_slopes; /* [heads_q] */
    const float *sink;         /* [heads_q] */
    float *dsink;              /* [heads_q] */
    const void *seed, *offset; /* [1] */
    const void *dropout_mask;  /* dense b,h,s,s of dtype; of 8-bit types bf16 */
    const float *dropout_scale,
        *dropout_scale_inverse; /* [1]; the inverse: backward; cuDNN's graph has the first alone */
    void *
        rng_dump; /* dense b,h,s,s, fp32: written where a query may see the key. cuDNN skips tiles that the window or the lengths
                   * mask completely and leaves their numbers unchanged; engines skip different tiles */
    const uint8_t *block_mask; /* [batch, heads_q, ceil(seq_q/128), ceil(ceil(seq_kv/128) / 8)]: bit
                                  i % 8 of byte i / 8 is tile i */
    /* Angles: [seq_q, rope_dim], [seq_kv, rope_dim]; for cuDNN the same ones
     * (cases/known/rope-more-keys-than-rows.known). */
    const float *rope_q, *rope_k;
    const float *descale_q, *descale_k, *descale_v, *descale_s, *scale_s,
        *scale_o; /* [1] each; scale_o: of an O of 8 bits */
    const float *descale_o, *descale_do, *descale_dp, *scale_dp, *scale_dq, *scale_dk,
        *scale_dv; /* descale_o: 1 for an O of 16 bits */
    float *amax_s, *amax_o, *amax_dp, *amax_dq, *amax_dk, *amax_dv;
    const uint8_t *sf_q, *sf_k, *sf_v,
        *sf_do; /* E8M0 in F8_128x4, along the channels; forward: V's along the keys */
    const uint8_t *sf_q_t, *sf_k_t, *sf_do_t; /* backward: along queries or keys */
    const void *q_t, *k_t, *do_t; /* backward: the same tensors, quantised along queries or keys */
    const void *do_16;            /* backward: dO in o_dtype */
} fattn_tensors;

#define FATTN_TENSORS_INIT { .struct_size = sizeof(fattn_tensors) }

/* Enqueues O = softmax(scale * Q K^T + mask) V.
 * Memory   the caller owns every buffer. Nothing is allocated; inputs are not written.
 * Order    asynchronous on `stream`; never synchronises; may be captured in a CUDA graph, which then refers to these addresses and
 *          must not outlive the plan. The cpu backend computes before it returns and ignores `stream`.
 * Threads  one plan may be launched from many threads at once, each with its own workspace.
 * Returns  FATTN_OK; FATTN_BAD_PROBLEM (nothing was launched or written); FATTN_DEVICE_FAULT; FATTN_NO_MEMORY (on the GPU). A problem is
 *          bad if a pointer is NULL, misaligned, or no memory of the plan's GPU. It is also bad if an output shares memory or the
 *          workspace is too small. With guards_off the library checks only NULL and the workspace. The plan remembers addresses that
 *          passed: do not call with freed memory.
 * Source   cuDNN backend API, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR. */
fattn_status fattn_forward(const fattn_plan *plan, const fattn_tensors *tensors,
                           struct CUstream_st *stream);

/* Runs a plan with override_shapes for another problem. The problem may differ only in batch, seq_q, seq_kv (each at most the plan's) and
 * strides. The tensors belong to the other problem. Nothing is compiled, and the engine need not be the best one.
 * Returns  as fattn_forward; FATTN_UNSUPPORTED (a field that the graph contains differs: the message names it; or a backend other than cuDNN,
 *          or cuDNN itself, refuses: nothing was launched); FATTN_POLICY (a stride that is not a multiple of 16 bytes; strides other than the
 *          plan's, which cuDNN 9.28.0 accepts and ignores: cases/known/override-strides.known). Rows of O and Stats beyond seq_q, up to the
 *          plan's, may be written.
 * Source   cuDNN backend API, CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES and _STRIDES. */
fattn_status fattn_forward_as(const fattn_plan *plan, const fattn_problem *problem,
                              const fattn_tensors *tensors, struct CUstream_st *stream);

/* Enqueues dQ, dK, dV from dO, with O and Stats of a forward call. Everything else as for
 * fattn_forward. */
fattn_status fattn_backward(const fattn_plan *plan, const fattn_tensors *tensors,
                            struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
#endif
