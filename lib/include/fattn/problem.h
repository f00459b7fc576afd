/* problem.h: one attention problem, for deciding, compiling and running. fattn.h includes it. */
#ifndef FATTN_PROBLEM_H
#define FATTN_PROBLEM_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the values of its fields; 0 is always the default. X(SYMBOL, value, "word")
 * ----------------------------------------------- */

/* clang-format off */
#define FATTN_DTYPE_LIST(X)                                                                    \
    X(BF16, 1, "bf16") X(F16, 2, "f16") X(F32, 3, "f32") X(E4M3, 4, "e4m3") X(E5M2, 5, "e5m2") \
    X(MXE4M3, 6, "mxe4m3") X(MXE5M2, 7, "mxe5m2")                                              \
    /* e4m3 and e5m2 with an E8M0 scale for each block of 32 */
/* clang-format on */
#define FATTN_PASS_LIST(X) X(FORWARD, 0, "fwd") X(BACKWARD, 1, "bwd")
#define FATTN_ALIGN_LIST(X) X(TOP_LEFT, 0, "tl") X(BOTTOM_RIGHT, 1, "br")
#define FATTN_IMPL_LIST(X)                                                                         \
    X(IMPL_AUTO, 0, "auto") X(IMPL_COMPOSITE, 1, "composite") X(IMPL_UNIFIED, 2, "unified")
#define FATTN_SPELLING_LIST(X)                                                                     \
    X(SPELLING_AUTO, 0, "auto") X(SPELLING_EXPANDED, 1, "expanded") X(SPELLING_SINGLE, 2, "single")
#define FATTN_FORMAT_LIST(X)                                                                       \
    X(FORMAT_UNSET, 0, "unset")                                                                    \
    X(FORMAT_BSHD, 1, "bshd") X(FORMAT_SBHD, 2, "sbhd") X(FORMAT_BHSD, 3, "bhsd")
#define FATTN_DETERMINISM_LIST(X)                                                                  \
    X(DETERMINISM_AUTO, 0, "auto") X(DETERMINISM_FORM, 1, "form") X(DETERMINISM_PIN, 2, "pin")
#define FATTN_SCALING_LIST(X)                                                                      \
    X(SCALING_NONE, 0, "none") X(SCALING_DELAYED, 1, "delayed") X(SCALING_CURRENT, 2, "current")

#define FATTN_AS_ENUM_(symbol, value, word) FATTN_##symbol = (value),
typedef enum fattn_dtype {
    FATTN_DTYPE_DEFAULT = 0,
    FATTN_DTYPE_LIST(FATTN_AS_ENUM_) FATTN_BOOL =
        8 /* bias_dtype alone: one byte, 0 masks the score */
} fattn_dtype;
typedef enum fattn_pass { FATTN_PASS_LIST(FATTN_AS_ENUM_) } fattn_pass;
typedef enum fattn_align { FATTN_ALIGN_LIST(FATTN_AS_ENUM_) } fattn_align;
typedef enum fattn_impl { FATTN_IMPL_LIST(FATTN_AS_ENUM_) } fattn_impl;
typedef enum fattn_spelling { FATTN_SPELLING_LIST(FATTN_AS_ENUM_) } fattn_spelling;
typedef enum fattn_format { FATTN_FORMAT_LIST(FATTN_AS_ENUM_) } fattn_format;
typedef enum fattn_determinism { FATTN_DETERMINISM_LIST(FATTN_AS_ENUM_) } fattn_determinism;
typedef enum fattn_scaling { FATTN_SCALING_LIST(FATTN_AS_ENUM_) } fattn_scaling;
#undef FATTN_AS_ENUM_

/* Bits of fattn_problem.outputs: the outputs of forward beside O. */
#define FATTN_WANT_STATS 1u   /* log-sum-exp of every query, fp32, natural log */
#define FATTN_WANT_MAX 2u     /* largest score of every query, fp32 */
#define FATTN_WANT_SUM_EXP 4u /* sum of exp(score - max) of every query, fp32 */
#define FATTN_WANT_STATS_LOG2                                                                      \
    8u /* Stats in base 2 (natural * log2 e) instead of natural logarithms; no backward reads them \
        */
#define FATTN_WANT_RNG_DUMP                                                                        \
    16u /* the scores that dropout kept: 1 or 0 each; forward and backward */

/* Bits of fattn_problem.ragged: the ragged tensors. X(SYMBOL, name, bit) */
#define FATTN_RAGGED_LIST(X)                                                                       \
    X(Q, q, 0)                                                                                     \
    X(K, k, 1)                                                                                     \
    X(V, v, 2) X(O, o, 3) X(STATS, stats, 4) X(DO, do, 5) X(DQ, dq, 6) X(DK, dk, 7) X(DV, dv, 8)
#define FATTN_AS_RAGGED_(symbol, name, bit) FATTN_RAGGED_##symbol = 1u << (bit),
enum { FATTN_RAGGED_LIST(FATTN_AS_RAGGED_) FATTN_RAGGED_ALL = 0x1ffu };
#undef FATTN_AS_RAGGED_
#define FATTN_RAGGED_TENSORS 9

/* Bits of fattn_problem.cumulative. */
#define FATTN_CUMULATIVE_Q 1u
#define FATTN_CUMULATIVE_KV 2u

typedef struct fattn_score_mod fattn_score_mod; /* score_mod.h */

/* ---- the problem
 * ---------------------------------------------------------------------------------------------------------------
 */

/* A plain value: copy it, print it, compare it. Start from FATTN_PROBLEM_INIT, which sets the size; a field that is 0 has its default.
 * Math     The math backend supports all of this, forward and backward, in bf16, f16 and f32. It refuses 8-bit types, rope, unfuse_fma, a
 *          stats_dtype other than f32, impl unified and spelling single (FATTN_UNSUPPORTED, with a sentence each).
 * Grows    New fields come at the end. With an older, smaller struct_size absent fields are 0. With a larger one the library refuses the
 *          problem if a byte that it does not know is not zero. */
typedef struct fattn_problem {
    size_t struct_size; /* sizeof(fattn_problem) of the caller */

    /* What is computed. */
    int32_t pass;  /* fattn_pass */
    int32_t dtype; /* of Q, K, V; 0: bf16 */
    int32_t
        o_dtype; /* of O, and of dO (8-bit types: do_dtype); 0: dtype (block-scaled types: bf16) */
    int32_t grad_dtype; /* of dQ, dK, dV; 0: dtype (block-scaled types: bf16) */
    int32_t do_dtype; /* 8-bit types: of dO, and what dS is cast to; 0: o_dtype (block-scaled types:
                         dtype). Others: dO is of o_dtype */
    int32_t stats_dtype; /* 0 or f32; other types can only be asked about */
    int32_t training;    /* forward: 1 also writes Stats without FATTN_WANT_STATS, for a later
                            backward; backward: always 1 */
    uint32_t outputs;    /* FATTN_WANT_ bits; backward: only FATTN_WANT_RNG_DUMP counts */

    /* Extents. */
    int64_t batch;
    int64_t heads_q; /* a multiple of heads_k and of heads_v */
    int64_t heads_k; /* 0: heads_q */
    int64_t heads_v; /* 0: heads_k */
    int64_t seq_q;   /* queries; the maximum when lengths vary */
    int64_t seq_kv;  /* keys; the maximum when lengths vary */
    int64_t dim_qk;
    int64_t dim_v; /* 0: dim_qk */

    /* Strides in elements, order b,h,s,d. All four 0: derived, as noted. Stride 0 in b, h or s broadcasts an input.
     * A gradient whose stride is 0 where its input has stride 0 too (dQ for Q, dK for K, dV for V, dbias for bias) is the sum over that
     * dimension; its extent there is 1. With other strides it is the gradient of each element. */
    int64_t q_strides[4], k_strides[4], v_strides[4];    /* derived: dense b,s,h,d */
    int64_t o_strides[4], do_strides[4];                 /* derived: the memory order of Q; of O */
    int64_t dq_strides[4], dk_strides[4], dv_strides[4]; /* derived: the memory order of Q, K, V */
    int64_t stats_strides[4]; /* of Stats, Max and Sum_exp. Derived: dense b,h,s; ragged: b,s,h */

    /* Scale and mask. A key is visible iff  col <= row + shift + window_right  (when has_right)  and
     * col > row + shift - window_left  (when has_left): the left bound counts the diagonal, the right one does not.
     * shift is 0 top-left, and len_kv - len_q of each batch entry bottom-right. Causal is has_right with window_right 0. */
    double attn_scale;    /* read when has_attn_scale; otherwise 1/sqrt(dim_qk) */
    int64_t window_left;  /* read when has_left */
    int64_t window_right; /* read when has_right */
    int32_t has_attn_scale;
    int32_t scale_in_memory; /* 1: the attention scale is fp32 in device memory; attn_scale is not
                                read */
    int32_t has_left;
    int32_t has_right;
    int32_t align;      /* fattn_align */
    int32_t block_mask; /* 1: a bit for each tile of 128 x 128 scores is given: 0 masks it */

    /* Lengths. */
    int32_t padding; /* 1: the call gives lengths of batch entries; queries and keys beyond them do
                        not take part */
    uint32_t cumulative;   /* padding: FATTN_CUMULATIVE_ bits: lengths of this side are batch + 1
                              prefix sums from 0 */
    int32_t len_broadcast; /* padding: 1: seq_len_q and seq_len_kv hold one length for all entries.
                              cuDNN reads one for each entry: guarded */
    int32_t len_rank;      /* of the length tensors: 0 or 4: [batch,1,1,1]; 1: [batch] */

    /* Ragged (THD): sequences without gaps between them; needs padding. Entry b of a ragged tensor starts at its offsets[b]; its stride of
     * b is not read. A stats tensor has a token of heads_q numbers (stride 1 of h), or is stored head by head (stride 1 of s). */
    int32_t ragged_bits;   /* 0: nothing is ragged; 32 or 64: width of the offsets */
    uint32_t ragged;       /* FATTN_RAGGED_ bits; 0: all */
    int32_t ragged_tokens; /* unit of offsets: 0: elements; 1: tokens of the tensor's stride of s */
    int32_t packed_table;  /* pages: 1: the tables are ragged: entry b's pages start at its
                              table_offsets[b] */
    /* Tokens of the buffers, declared to cuDNN, so that a backward's workspace is as small as possible. 0: not declared. The library does
     * not declare them where cuDNN then computes wrong gradients (dims that are no multiple of 16; sm_8x and sm_12x from 9.18.1), unless
     * guards_off. */
    int64_t total_q, total_kv;

    /* Paged K (V): a pool [pages_k, heads_k, page_size_k, dim_qk]. k_strides are the pool's (stride of b: from page to page). Key j of entry b
     * is in line j % page_size of page table[b][j / page_size]. Needs padding; forward only. */
    int64_t page_size_k, page_size_v; /* 0: not paged */
    int64_t pages_k, pages_v;         /* of the pool */
    int64_t table_k, table_v; /* pages of an entry in its table; 0: as many as seq_kv needs */

    /* Bias: added to the scaled score, after score_mod. bias_dtype FATTN_BOOL is a boolean mask, one byte an element: 0 makes the score -inf. It
     * has no gradient. cuDNN computes it wrongly on sm_90 (refused: cases/known); use a bias of 0 and -inf. */
    int64_t bias_dim[4]; /* 1 or the full extent in b, h, s_q and s_kv; all 0: [1, heads_q, seq_q,
                            seq_kv] */
    int64_t bias_strides[4],
        dbias_strides[4];             /* derived: dense b,h,s,s of bias_dim; dbias as bias_dim */
    const fattn_score_mod *score_mod; /* NULL: none. Borrowed: a plan keeps its own reference. Two
                                         recordings that are equal are one modification */
    int32_t has_bias;
    int32_t bias_dtype;     /* 0: dtype; with 8-bit types bf16 */
    int32_t dbias;          /* backward: 1: dbias is written, in bias_dtype */
    uint32_t mod_gradients; /* backward: bit i: the gradient of the score_mod's tensor i is written,
                               fp32 */

    /* Dropout of P after the softmax. Backward drops the scores that its forward dropped, if the same backend computes both
     * (fattn_plan_backend): a policy that allows several may give them to two. The generator is cuDNN's Philox. Seed and offset are
     * in device memory, and the call reads them when it runs, so a replayed graph reads new ones. The cpu and the math backend share another
     * generator (lib/src/problem/dropout.h) that depends only on seed, offset, b, h, row and key. */
    double dropout;       /* 0 <= p < 1 */
    int64_t rope_dim;     /* rope: the last channels that rotate; 0: all */
    int32_t rng_bits;     /* of seed and offset: 0 or 64: int64; 32: int32 */
    int32_t dropout_mask; /* 1: the caller gives the mask, 1 or 0 in dtype (8-bit types: bf16), and
                             the factor of kept scores; dropout is 0 */
    int32_t alibi;        /* 1: slope[h] * (col - row) is added to the score, whatever `align` is
                             (fattn_alibi_slopes: the usual slopes) */
    int32_t sink; /* 1: the denominator contains one more number for each query head (0: softmax off
                     by one), also in Stats, Max, Sum_exp */
    int32_t dsink; /* backward: 1: the sink's gradient is written */
    int32_t rope; /* 1: Q and K are rotated first, by angles that the call gives. cuDNN 9.28.0 reads
                     Q's angles for both */

    /* 8-bit types. cuDNN wants head dims that are multiples of 16.
     * E4M3, E5M2   value = code * descale. Every product is descaled. P, dS and 8-bit outputs are scaled before their casts. The factors are in
     *              device memory. Inputs: descale_q, _k, _v (backward: _o, _do). P: scale_s and descale_s. dS: scale_dp and descale_dp. A
     *              descale is the inverse of its scale. 8-bit outputs: scale_o, scale_dq, _dk, _dv. A backward with an O of 16 bits also gets
     *              descale_o, which holds 1: cuDNN needs the pointer and ignores the number. The largest magnitudes before scaling are
     *              outputs: amax_s (of P), amax_o; amax_dp (of dS), amax_dq, _dk, _dv.
     * MX           MXE4M3, MXE5M2: value = code * factor. Each block of 32 along the summed dimension has a factor in E8M0. The factors of a
     *              head are rows x blocks, padded to 128 x 4, in the order F8_128x4, head after head. A backward also sums along queries and
     *              keys. q_t, k_t and do_t are Q, K and dO quantised again in that direction, with their own factors (channels x blocks of
     *              rows). do_t is of do_dtype; do_16 is dO in o_dtype. Their layouts are those of Q, K and dO. sf_v is along the keys in the
     *              forward and along the channels in the backward. */
    int32_t scaling; /* fattn_scaling: scales of an earlier call (delayed) or of this one (current);
                        the graph is the same */
    int32_t scale_format; /* fattn_format: the declared strides of scale factors; block-scaled types
                             only */

    /* How it is computed. */
    int32_t impl;     /* fattn_impl: cuDNN's composite graph or its unified operation */
    int32_t spelling; /* fattn_spelling: the softmax of a composite graph, as several operations or
                         as one */
    int32_t unfuse_fma;    /* 1: the softmax's multiplication and addition are rounded apart (impl
                              unified) */
    int32_t deterministic; /* 1: backward repeats bit for bit */
    int32_t determinism;   /* fattn_determinism: how, when deterministic */
    int32_t capture;       /* 1: the call will be captured in a CUDA graph */
    int32_t guards_off;    /* 1: the library does not refuse problems that are known to fail */
    int32_t reserved;      /* 0 */
} fattn_problem;

#define FATTN_PROBLEM_INIT { .struct_size = sizeof(fattn_problem) }

/* Fills in every derived field: *out has no defaults left (dtypes, heads, dim_v, strides, scale)
 * and the full struct_size. Returns FATTN_OK; FATTN_BAD_PROBLEM (field and range in the message).
 */
fattn_status fattn_problem_resolve(const fattn_problem *problem, fattn_problem *out);

/* The strides of an output of `dim` that follow the memory order of an input with `like_strides`.
 * Dimensions are sorted by the input's strides. Broadcast (stride 0) and extent-1 dimensions are
 * outermost, in b,h,s order. The last stride is always 1. out[4] in elements. */
void fattn_match_layout(const int64_t dim[4], const int64_t like_strides[4], int64_t out[4]);

/* The usual slopes of ALiBi for `heads` heads: 2^(-8i/n) for the first n (the largest power of
 * two), then every other one of 2n. out[heads]. */
void fattn_alibi_slopes(int64_t heads, float *out);

#ifdef __cplusplus
}
#endif
#endif
