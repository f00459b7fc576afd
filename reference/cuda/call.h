/* What the host says to the oracle's kernels: one plain struct by value, the same bytes for C and
 * CUDA C. Pointers are device addresses.
 *
 * A call works on a slice: `heads` query heads from head0 on, counted over batch and head together,
 * and of those on a chunk: `chunk_rows` rows from row0 on. Inputs of the slice lie decoded as
 * doubles, padded with zeros; scores of the chunk are [heads][chunk_rows][keys_padded]. A tile that
 * the mask hides completely is neither written nor read.
 */
#ifndef FREF_CUDA_CALL_H
#define FREF_CUDA_CALL_H

#include <fref/gpu.h>

enum {
    FREF__TILE = 64, /* rows or keys whose sums one block makes, and the columns */
    FREF__PAD = 128, /* rows and keys are padded to this; rows of a tile of scores */
    FREF__STEP = 16, /* keys or rows that are weighed at a time */
    FREF__DEPTH = 8, /* channels of scores at a time */
    FREF__SCORE_KEYS = 64,
    FREF__SCORE_STAGES = 3,
    FREF__OF_RELATION = 4504, /* doubles of shared memory, beside scores; relate.cuh */
    FREF__RELATED_ROWS = 256, /* that a block relates at least, */
    FREF__RELATED_SHARES =
        5120, /* and doubles that it then leaves for those that relate the others */
    FREF__THREADS = 256,
    FREF__SUM_THREADS = 512,
    FREF__DECODE_THREADS = 256,
    FREF__BIAS_ROWS = FREF__SUM_THREADS / 32, /* of a block of add_bias */
    FREF__WEIGHED_KEYS = 16,                  /* that a block of key_weights counts for */
    FREF__FINISHED_ROWS = 32,                 /* or keys, that a block of finish.cu makes */
    FREF__SUMS = 6,
    FREF__FACT_DOUBLES = 24, /* doubles that one row's facts fill */
};

typedef struct fref__limits {
    double unit_roundoff, eta, tiny, max;
} fref__limits;

/* Keys [first, last). Of a row: both 0 when no key may be read. */
typedef struct fref__span {
    int32_t first, last;
} fref__span;

/* What the weights of one row's keys are made of; docs/numerics.md section 2 and src/ref_forward.c,
 * src/backward/backward_rows.c. */
typedef struct fref__facts {
    double shift;      /* P = exp(x - shift) * per_sum: near Max; Stats */
    double per_sum;    /* near 1 / Sum_exp; 1 */
    double es, ew;     /* a score's error, rms and worst */
    double variance;   /* factor of P^2 or dS^2 in the variance */
    double eta, floor; /* forward: floor of P; THIRD eta^2 */
    double worst;      /* factor of P or |dS| in the bound */
    double lost;       /* forward: P below this may be flushed */
    double el, nt;     /* forward */
    double delta;      /* D_i */
    double es_raw, ew_raw;
    double ep, ez, edelta, eo;
    double variance_delta, worst_delta; /* of D_i, where it adds as a sum */
    double norm_q, norm_d_o, neff;
    int32_t keys; /* in the range */
    int32_t dead;
} fref__facts;

/* Of C, which says how channels are related, its diagonal all ones: tr(C^2), tr(C), or a part of
 * them. */
typedef struct fref__related {
    double squares, trace;
} fref__related;

/* dQ, dK or dV: its sums, and what becomes of those of keys. */
typedef struct fref__gradient {
    double *sum[FREF__SUMS]; /* as below; NULL: not wanted */
    uint8_t *lossy;
    double
        *total[4]; /* [heads of all][keys][dim]: value, variance, bound, lost of groups that a slice
                      leaves unfinished */
    uint8_t *read; /* [heads of all][keys] by a live row */
    double *key_weights; /* [heads of all][keys][2]: sums of w and w^2; NULL: nobody asks */
} fref__gradient;

typedef enum fref__kind {
    FREF__FORWARD,
    FREF__DQ,
    FREF__DK,
    FREF__DV,
    FREF__VALUES,       /* P against V alone */
    FREF__FORWARD_LOST, /* what may be flushed, where something may */
    FREF__DQ_LOST,
    FREF__DK_LOST,
    FREF__DV_LOST,
    FREF__KINDS
} fref__kind;

typedef struct fref__call {
    fref_problem problem; /* `bias` is below; `modify` is not read */
    fref_rounding rounding;
    fref_gpu_mod mod;
    fref_tensor q, k, v, o, stats, d_o, bias; /* data NULL: none */
    fref__limits in, bias_to;
    fref__limits of_p, of_ds;            /* of the casts of P and dS */
    double most_ds;                      /* of dS: what its cast leaves, over attn_scale */
    fref__limits to_o, to_q, to_k, to_v; /* of the answers */
    double gamma_p, gamma_ds;            /* scale times descale: in O and dV; in dQ and dK */
    double z_o, z_dp, z_dq, z_dk, z_dv;  /* of an amax's tolerance; src/amax.h */
    int32_t masked;                      /* by elements or tiles */
    int32_t scored;                      /* a modification, a bias, a mask or alibi */
    int32_t sloped;                      /* its slope is not 1 everywhere */
    int32_t judged;
    double floor_ds; /* of dS: eta over min(1, |scale|) */

    int64_t rows, keys, rows_padded, keys_padded;
    int64_t ld_qk, ld_v;      /* doubles from row to row */
    int64_t group_k, group_v; /* query heads that share a head */

    int64_t head0, heads;
    int64_t head_k0, heads_k, head_v0,
        heads_v; /* those that the slice reads, over batch and head */
    int64_t row0, chunk_rows;

    fref__span *range;         /* [heads][rows_padded] */
    fref__span *tile_range;    /* [heads][rows_padded / TILE] */
    int32_t *trouble;          /* on the host; not 0: a NaN or an infinity in what is read */
    double *rows_q, *rows_d_o; /* [heads][rows_padded][ld] */
    double *keys_k, *keys_v;   /* [heads_k or heads_v][keys_padded][ld] */
    double *norm_q, *norm_d_o;
    double *norm_k, *norm_v; /* [heads_k or heads_v][keys_padded] */
    double *peak_k, *peak_v; /* [heads_k or heads_v][keys_padded / TILE]: the longest */
    double *row_stats;       /* [heads][rows_padded] */

    double *
        x; /* scores; the facts make exp(score - shift) of them unless `keeps_scores`, -inf stays */
    double *dp;                              /* dO . v */
    double *extra, *pull;                    /* with `scored`; src/score.h */
    double *slope, *curvature, *slope_extra; /* with `sloped` */
    fref__facts *facts;                      /* [heads][rows_padded] */
    double *sum[FREF__SUMS];     /* [heads][rows_padded or keys_padded][ld]; of a forward [parts] of
                                    them, one behind the other */
    int32_t parts, keys_of_part; /* blocks that share the keys of a forward's tile; of each but
                                    the last, a multiple of TILE */
    uint8_t *lossy; /* [heads][rows_padded or keys_padded / TILE]: some weight may be flushed; else
                       there is no sum of them */
    int32_t first_chunk;  /* sums over rows start with this one */
    int32_t keeps_scores; /* of values alone: a backward may take them */

    uint8_t *read; /* of the gradient whose sums are made */
    fref__gradient gradient[3];
    double *bias_sum[4];

    int32_t freedom;
    double *channels[4]; /* 1 / nch of q [all heads of K] and d_o [all heads of V], the most of the
                            group, of k [heads_k], v [heads_v]; NULL: not wanted */
    int32_t relations;   /* blocks before those of the scores: they make channels */
    fref__related *related; /* of each relation: head and pair of tiles of channels */
    int32_t related_parts;  /* blocks that share a relation's rows */
    double *shares; /* [relations][related_parts][RELATED_SHARES]: what these have, where they are
                      more than one */
    uint32_t *related_blocks; /* [4][heads]: relations that are done of each group, at its first
                                 head; then of each relation, parts; all 0 before and after */
    double *key_weights;      /* of the gradient whose sums are made */
    int32_t counts;           /* the sums make neff, or key_weights, on their way */

    fref_forward_out forward;
    fref_backward_out backward;
} fref__call;

#endif
