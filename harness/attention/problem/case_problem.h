/* Everything that follows from a case, computed once: sizes, strides, storage, lengths, the plan's
 * problem and the fills. The result is a new plain value. Code below the case language never reads
 * a case's text again. */
#ifndef FACTS_PROBLEM_H
#define FACTS_PROBLEM_H

#include <fattn/fattn.h>

#include "keys/keys.h"

/* The language of these cases: the keys of keys.h, and which cases resolve to a problem. */
extern const facts_language facts_attention_language;
/* Parses one case of it (case.h). */
bool facts_case_parse(facts_case *out, const char *text, facts_error *error);

/* The tensors of a call. X(SYMBOL, "word", is_output_of_forward, is_output_of_backward) */
/* clang-format off */
#define FACTS_TENSOR_LIST(X)                                                                \
    X(Q, "q", 0, 0) X(K, "k", 0, 0) X(V, "v", 0, 0) X(O, "o", 1, 0) X(STATS, "stats", 1, 0) \
    X(MAX, "max", 1, 0) X(SUM_EXP, "sum_exp", 1, 0) X(DO, "do", 0, 0) X(DQ, "dq", 0, 1)     \
    X(DK, "dk", 0, 1) X(DV, "dv", 0, 1) X(BIAS, "bias", 0, 0) X(DBIAS, "dbias", 0, 1)       \
    X(MOD_A, "mod_a", 0, 0) X(MOD_B, "mod_b", 0, 0) X(RNG_DUMP, "rng_dump", 1, 1)           \
    X(DROPOUT_MASK, "dropout_mask", 0, 0) X(Q_T, "q_t", 0, 0) X(K_T, "k_t", 0, 0)           \
    X(DO_T, "do_t", 0, 0) X(DO_16, "do_16", 0, 0)
/* clang-format on */

#define AS_ENUM(symbol, word, fwd, bwd) FACTS_TENSOR_##symbol,
typedef enum facts_tensor_id { FACTS_TENSOR_LIST(AS_ENUM) FACTS_TENSOR_COUNT } facts_tensor_id;
#undef AS_ENUM

/* Small arrays of a call, one dimension each. X(SYMBOL, "word": the field of fattn_tensors,
 * is_output) */
/* clang-format off */
#define FACTS_ARRAY_LIST(X)                                                                    \
    X(Q_OFFSETS, q_offsets, 0) X(K_OFFSETS, k_offsets, 0) X(V_OFFSETS, v_offsets, 0)           \
    X(O_OFFSETS, o_offsets, 0) X(STATS_OFFSETS, stats_offsets, 0) X(DO_OFFSETS, do_offsets, 0) \
    X(DQ_OFFSETS, dq_offsets, 0) X(DK_OFFSETS, dk_offsets, 0) X(DV_OFFSETS, dv_offsets, 0)     \
    X(SEQ_LEN_Q, seq_len_q, 0) X(SEQ_LEN_KV, seq_len_kv, 0) X(PAGE_TABLE_K, page_table_k, 0)   \
    X(PAGE_TABLE_V, page_table_v, 0) X(TABLE_OFFSETS_K, table_offsets_k, 0)                    \
    X(TABLE_OFFSETS_V, table_offsets_v, 0) X(ATTN_SCALE, attn_scale, 0)                        \
    X(ALIBI_SLOPES, alibi_slopes, 0) X(SINK, sink, 0) X(DSINK, dsink, 1) X(SEED, seed, 0)      \
    X(OFFSET, offset, 0) X(DROPOUT_SCALE, dropout_scale, 0)                                    \
    X(DROPOUT_SCALE_INVERSE, dropout_scale_inverse, 0) X(BLOCK_MASK, block_mask, 0)            \
    X(ROPE_Q, rope_q, 0) X(ROPE_K, rope_k, 0) X(DESCALE_Q, descale_q, 0)                       \
    X(DESCALE_K, descale_k, 0) X(DESCALE_V, descale_v, 0) X(DESCALE_S, descale_s, 0)           \
    X(SCALE_S, scale_s, 0) X(SCALE_O, scale_o, 0) X(DESCALE_O, descale_o, 0)                   \
    X(DESCALE_DO, descale_do, 0) X(DESCALE_DP, descale_dp, 0) X(SCALE_DP, scale_dp, 0)         \
    X(SCALE_DQ, scale_dq, 0) X(SCALE_DK, scale_dk, 0) X(SCALE_DV, scale_dv, 0)                 \
    X(AMAX_S, amax_s, 1) X(AMAX_O, amax_o, 1) X(AMAX_DP, amax_dp, 1) X(AMAX_DQ, amax_dq, 1)    \
    X(AMAX_DK, amax_dk, 1) X(AMAX_DV, amax_dv, 1) X(SF_Q, sf_q, 0) X(SF_K, sf_k, 0)            \
    X(SF_V, sf_v, 0) X(SF_DO, sf_do, 0) X(SF_Q_T, sf_q_t, 0) X(SF_K_T, sf_k_t, 0)              \
    X(SF_DO_T, sf_do_t, 0)
/* clang-format on */

#define AS_ENUM(symbol, field, output) FACTS_ARRAY_##symbol,
typedef enum facts_array_id { FACTS_ARRAY_LIST(AS_ENUM) FACTS_ARRAY_COUNT } facts_array_id;
#undef AS_ENUM

typedef enum facts_array_type {
    FACTS_ARRAY_I32,
    FACTS_ARRAY_I64,
    FACTS_ARRAY_F32,
    FACTS_ARRAY_U8
} facts_array_type;

/* facts_array_fill fills it (numbers/fill/recipe.h). */
typedef struct facts_array {
    int64_t count; /* 0: the call has none */
    facts_array_type type;
    bool output;
    bool of_forward; /* of a backward: only its own forward has it, and nobody judges it */
} facts_array;

extern const char *const facts_array_words[FACTS_ARRAY_COUNT];
size_t facts_array_bytes(const facts_array *array);
/* Where an array of a call stands in fattn_tensors. */
size_t facts_array_place(facts_array_id id);

/* The side whose lengths and starts a dimension of a tensor has. */
typedef enum facts_packing { FACTS_PACKED_NOT, FACTS_PACKED_Q, FACTS_PACKED_KV } facts_packing;

/* One tensor in memory. A packed one (ragged) holds one sequence behind the other: dim[0] is the
 * batch, dim[2] the longest sequence, and token t of entry b is token start[b] + t of the storage,
 * start being problem.start_q or start_kv. A paged one (page
 * != 0) is a pool: row j of entry b is row j % page of the pool's page facts_page_of(problem, id,
 * b, j / page), pages being stride[0] apart. Otherwise element (b,h,s,d) is at first + b*stride[0]
 * + ... elements of the storage; storage holds `elements` elements and starts 16-byte aligned (plus
 * `skew_bytes`, for cases that misalign on purpose). */
typedef struct facts_tensor {
    bool present;
    int32_t dtype; /* fattn_dtype */
    int64_t dim[4], stride[4];
    int64_t first; /* elements */
    int64_t
        elements; /* size of the storage, gaps included; of the whole storage when it is shared */
    int64_t skew_bytes;
    facts_packing packed;
    int64_t tokens;      /* packed: rows of the storage, slots and tail included */
    int64_t page, pages; /* paged */
    const int64_t *
        start; /* NULL in a problem. In a view of a ragged tensor (facts_tensor_seen): the token where each entry begins,
                * and its number of tokens */
    const int32_t *live;
    int32_t
        shares; /* packed layouts: 1 + the facts_tensor_id of the first tensor in the same storage (its `elements` is the size);
                   0: its own */
} facts_tensor;

#define FACTS_ENGINE_AUTO (-1)
#define FACTS_ENGINE_ALL (-2)
#define FACTS_MAX_BATCH_LENS                                                                       \
    4096 /* a limit of FACTS, so that a problem is a plain value; neither the library nor cuDNN    \
            has it */

typedef struct facts_problem {
    fattn_problem ask; /* what the library is asked: full, resolved */
    facts_tensor tensor[FACTS_TENSOR_COUNT];
    bool has_lengths;
    int32_t len_q[FACTS_MAX_BATCH_LENS], len_kv[FACTS_MAX_BATCH_LENS]; /* when has_lengths */
    bool unused[FACTS_MAX_BATCH_LENS]; /* ragged: the call gives -1 for both lengths of this entry;
                                          they are 0 here */
    int64_t start_q[FACTS_MAX_BATCH_LENS + 1],
        start_kv[FACTS_MAX_BATCH_LENS + 1]; /* tokens; when something is packed */
    facts_array array[FACTS_ARRAY_COUNT];
    facts_table table;                 /* paged */
    facts_block_pattern block_pattern; /* when ask.block_mask */
    facts_scales scales;               /* 8 bit types */
    bool off_by_one;                   /* the sink holds 0 */
    bool given_slopes;                 /* alibi=custom */
    double drop; /* the share of scores that dropout drops: ask.dropout, or the share of zeros in
                    the given mask */
    uint64_t rng_seed, rng_offset; /* when ask.dropout */
    bool high_backward; /* bwd_dtype: the backward runs in a 16-bit type, on values that the 8-bit
                           type `narrow` can hold */
    int32_t narrow;     /* fattn_dtype */
    int32_t rescale;    /* log2 of the threshold; -1: cuDNN's own */
    int64_t memory_mib; /* of the GPU that are free for cuDNN; -1: all */
    int32_t knob_count;
    fattn_knob knob[FATTN_MAX_KNOBS]; /* with `engine`: a pin */
    facts_fill fill;
    facts_check check;
    facts_poison poison;
    uint64_t seed;
    int64_t engine; /* FACTS_ENGINE_AUTO, FACTS_ENGINE_ALL, or a number */
    int32_t repeat;
    facts_exec exec;
    facts_policy policy;
    bool
        own_forward; /* of a backward: O and Stats come from its own forward and not from the reference. One case in five, chosen
                      * by its name */
    facts_mod mod;   /* ask.score_mod is NULL here: facts_mod_create (mod.h) makes it, and its owner
                        sets it */
    double mod_parameter[2];   /* INFINITY for an absent bound */
    int32_t mod_dtype;         /* fattn_dtype of post_scale_bias's bias */
    facts_bias_fill bias_fill; /* when ask.has_bias */
    double bias_parameter[2];
} facts_problem;

/* Block-scaled types. */
static inline bool facts_is_mx(int32_t dtype)
{
    return dtype == FATTN_MXE4M3 || dtype == FATTN_MXE5M2;
}

static inline bool facts_is_fp8(int32_t dtype)
{
    return dtype == FATTN_E4M3 || dtype == FATTN_E5M2;
}

typedef enum facts_resolve_status {
    FACTS_RESOLVED,
    FACTS_NOT_IMPLEMENTED, /* a key or value that is not implemented: `error` starts with the key's name. The case ends as
                            * unsupported with class internal */
    FACTS_BAD_PROBLEM /* nobody could compute it: ends as unsupported/bad_problem */
} facts_resolve_status;

facts_resolve_status facts_problem_resolve(facts_problem *out, const facts_case *c,
                                           facts_error *error);

#endif
