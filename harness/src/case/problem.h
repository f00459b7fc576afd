/* Everything that follows from a case, computed once, here: sizes, strides, storage, lengths, what to run and how to fill it. A new plain
 * value; nothing below the case language reads a case's text again. */
#ifndef FACTS_PROBLEM_H
#define FACTS_PROBLEM_H

#include <fattn/fattn.h>

#include "case.h"

/* The tensors of a call. X(SYMBOL, "word", is_output_of_forward, is_output_of_backward) */
#define FACTS_TENSOR_LIST(X)                                                                                                     \
    X(Q, "q", 0, 0) X(K, "k", 0, 0) X(V, "v", 0, 0) X(O, "o", 1, 0) X(STATS, "stats", 1, 0) X(MAX, "max", 1, 0)                     \
    X(SUM_EXP, "sum_exp", 1, 0) X(DO, "do", 0, 0) X(DQ, "dq", 0, 1) X(DK, "dk", 0, 1) X(DV, "dv", 0, 1)                            \
    X(BIAS, "bias", 0, 0) X(DBIAS, "dbias", 0, 1) X(MOD_A, "mod_a", 0, 0) X(MOD_B, "mod_b", 0, 0)

#define AS_ENUM(symbol, word, fwd, bwd) FACTS_TENSOR_##symbol,
typedef enum facts_tensor_id { FACTS_TENSOR_LIST(AS_ENUM) FACTS_TENSOR_COUNT } facts_tensor_id;
#undef AS_ENUM

/* One tensor in memory. Element (b,h,s,d) is at first + b*stride[0] + ... elements of the storage; storage holds `elements` elements and
 * starts 16-byte aligned (plus `skew_bytes`, for cases that misalign on purpose). */
typedef struct facts_tensor {
    bool present;
    int32_t dtype; /* fattn_dtype */
    int64_t dim[4], stride[4];
    int64_t first;    /* elements */
    int64_t elements; /* size of the storage, gaps included; of the whole storage when it is shared */
    int64_t skew_bytes;
    int32_t shares; /* packed layouts: 1 + the facts_tensor_id of the first tensor in the same storage (its `elements` is the size); 0: its own */
} facts_tensor;

/* What lies in the inputs (docs/numerics.md section 4). X(SYMBOL, "word") */
#define FACTS_FILL_LIST(X)                                                                                                        \
    X(GAUSS, "gauss") X(UNIFORM, "uniform") X(SPIKY, "spiky") X(NEEDLE, "needle") X(NEGLSE, "neglse") X(STAIR_UP, "stair_up")       \
    X(STAIR_DN, "stair_dn") X(BIGLOGIT, "biglogit") X(OFFSET_K, "offset_k") X(SPARSE_INT, "sparse_int") X(UNIP, "unip")             \
    X(BIAS_NEEDLE, "bias_needle") X(AMAX_PLANT, "amax_plant") X(CODEBOOK, "codebook") X(PAD_GARBAGE, "pad_garbage")             \
    X(HUGELOGIT, "hugelogit") X(OUTLIER, "outlier") X(POSLSE, "poslse") X(TE, "te")
#define AS_ENUM(symbol, word) FACTS_FILL_##symbol,
typedef enum facts_fill { FACTS_FILL_LIST(AS_ENUM) FACTS_FILL_OTHER } facts_fill;
#undef AS_ENUM

/* What is verified beside the reference (docs/numerics.md sections 5 to 7). X(SYMBOL, "word"): exact probes P1 to P6, laws between two runs of one
 * engine, identities of huge problems. */
#define FACTS_CHECK_LIST(X)                                                                                                       \
    X(NONE, "none") X(COUNT, "count") X(READOUT, "readout") X(KEEP, "keep") X(DS, "ds") X(POW2, "pow2") X(PERMUTE, "permute")        \
    X(SUM_ROWS, "sum_rows") X(LINEAR, "linear") X(SHIFT, "shift") X(REPEAT_HEADS, "repeat_heads") X(OTHERS, "others")              \
    X(KEY_ORDER, "key_order") X(SPLIT, "split") X(PREFIX, "prefix") X(LENGTH, "length") X(WINDOW, "window") X(IDENTITIES, "identities")
#define AS_ENUM(symbol, word) FACTS_CHECK_##symbol,
typedef enum facts_check { FACTS_CHECK_LIST(AS_ENUM) FACTS_CHECKS } facts_check;
#undef AS_ENUM

/* What bias holds. X(SYMBOL, "word", number of parameters): ordinary values; 0; 0 or -inf at random (key 0 always 0); 0 but for some rows
 * that are -inf throughout; 0 within the band L:R (top-left), -inf outside; 0 or the lowest finite number of the type (key 0 always 0). */
#define FACTS_BIAS_FILL_LIST(X)                                                                                                   \
    X(RANDN, "randn", 0) X(ZERO, "zero", 0) X(RANDOM, "random", 0) X(ROWS_MASKED, "rows_masked", 0) X(WINDOW, "window", 2)          \
    X(FINITE_MIN, "finite_min", 0)
#define AS_ENUM(symbol, word, parameters) FACTS_BIAS_##symbol,
typedef enum facts_bias_fill { FACTS_BIAS_FILL_LIST(AS_ENUM) FACTS_BIAS_FILL_COUNT } facts_bias_fill;
#undef AS_ENUM

typedef enum facts_poison { FACTS_POISON_FILL, FACTS_POISON_NAN, FACTS_POISON_INF, FACTS_POISON_BIG } facts_poison;

/* How the call is made. X(SYMBOL, "word") */
#define FACTS_EXEC_LIST(X)                                                                                                        \
    X(EAGER, "eager") X(GRAPH, "graph") X(GRAPH_UPDATE, "graph_update") X(GRAPH_NATIVE, "graph_native")                            \
    X(GRAPH_AFTER_DESTROY, "graph_after_destroy") X(AOT, "aot") X(MULTI_STREAM, "multi_stream") X(OVERRIDE_SHAPE, "override_shape") \
    X(INTERLEAVE, "interleave")
#define AS_ENUM(symbol, word) FACTS_EXEC_##symbol,
typedef enum facts_exec { FACTS_EXEC_LIST(AS_ENUM) FACTS_EXEC_COUNT } facts_exec;
#undef AS_ENUM

/* Which backends may answer on a GPU or a described device. X(SYMBOL, "word"): cuDNN alone; our own kernels alone; cuDNN, and where it says
 * no our kernels; the same with the rules of cases/errata.json. */
#define FACTS_POLICY_LIST(X) X(CUDNN, "cudnn") X(MATH, "math") X(ANY, "any") X(GUARD, "guard")
#define AS_ENUM(symbol, word) FACTS_POLICY_##symbol,
typedef enum facts_policy { FACTS_POLICY_LIST(AS_ENUM) FACTS_POLICY_COUNT } facts_policy;
#undef AS_ENUM

/* Named score modifications (mod.h). X(SYMBOL, "word", number of parameters) */
#define FACTS_MOD_LIST(X)                                                                                                         \
    X(NONE, "none", 0) X(CAUSAL, "causal", 0) X(WINDOW, "window", 2) X(SOFTCAP, "softcap", 1) X(TEMPERATURE, "temperature", 1)      \
    X(PREFIX_LM, "prefix", 1) X(POST_SCALE_BIAS, "post_scale_bias", 0) X(RELPOS, "relpos", 0) X(DOCUMENT, "document", 1)
#define AS_ENUM(symbol, word, parameters) FACTS_MOD_##symbol,
typedef enum facts_mod { FACTS_MOD_LIST(AS_ENUM) FACTS_MOD_COUNT } facts_mod;
#undef AS_ENUM

#define FACTS_ENGINE_AUTO (-1)
#define FACTS_ENGINE_ALL (-2)
#define FACTS_MAX_BATCH_LENS 512

typedef struct facts_problem {
    fattn_problem ask; /* what the library is asked: full, resolved */
    facts_tensor tensor[FACTS_TENSOR_COUNT];
    bool has_lengths;
    int32_t len_q[FACTS_MAX_BATCH_LENS], len_kv[FACTS_MAX_BATCH_LENS]; /* when has_lengths */
    facts_fill fill;
    double fill_parameter; /* of outlier */
    facts_check check;
    facts_poison poison;
    uint64_t seed;
    int64_t engine; /* FACTS_ENGINE_AUTO, FACTS_ENGINE_ALL, or a number */
    int32_t repeat;
    facts_exec exec;
    int32_t threads;           /* that call at once, each with its own outputs and workspace */
    int32_t workspace_offset;  /* bytes; the workspace starts there */
    facts_policy policy;
    bool own_forward;          /* of a backward: O and Stats come from its own forward, not from the reference; one case in five, by its name */
    facts_mod mod;             /* ask.score_mod is NULL here: facts_mod_create (mod.h) makes it, and its owner sets it */
    double mod_parameter[2];   /* INFINITY for an absent bound */
    int32_t mod_dtype;         /* fattn_dtype of post_scale_bias's bias */
    facts_bias_fill bias_fill; /* when ask.has_bias */
    double bias_parameter[2];
} facts_problem;

typedef enum facts_resolve_status {
    FACTS_RESOLVED,
    FACTS_NOT_IMPLEMENTED, /* a key (or value) that nothing implements yet: `error` starts with the key's name; ends as unsupported/internal */
    FACTS_BAD_PROBLEM      /* nobody could compute it: ends as unsupported/bad_problem */
} facts_resolve_status;

facts_resolve_status facts_problem_resolve(facts_problem *out, const facts_case *c, facts_error *error);

#endif
