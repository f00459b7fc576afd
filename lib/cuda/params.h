/* What the host says to the kernels of the math backend: plain structs, the same bytes for C and CUDA C. Every kernel but the sum takes one
 * fattn__call by value; it stays below the 4 KiB that every driver passes.
 *
 * A call works on a chunk: `heads` query heads from head0 (counted over batch and head together), `row_tiles` tiles of 128 rows from row0,
 * `key_tiles` tiles of 128 keys from key0. Scores of a chunk lie in workspace as [heads][row_tiles * 128][key_tiles * 128]. A tile that the
 * band and the lengths mask completely is neither written nor read.
 */
#ifndef FATTN_CUDA_PARAMS_H
#define FATTN_CUDA_PARAMS_H

#include <stdint.h>

/* A block's threads; _F32: of the products of fp32, each of whose warps has more to do. */
enum { FATTN__TILE = 128, FATTN__THREADS = 256, FATTN__THREADS_F32 = 128 };

/* The numbers of fattn_dtype, held against fattn.h where the host fills these structs. */
enum { FATTN__BF16 = 1, FATTN__F16 = 2, FATTN__F32 = 3 };

/* A tensor. `grain`: every row (the elements of one b,h,s) begins at a multiple of so many bytes: 16, 8, 4 or 2. */
typedef struct fattn__matrix {
    char *at;
    int64_t stride[4]; /* elements; b,h,s,d. 0 in the dimensions that are broadcast */
    int32_t dtype;
    int32_t grain;
} fattn__matrix;

/* One of the sums over rows: `weights` transposed times `right`, in the type `weight_dtype`. */
typedef struct fattn__row_sum {
    const char *weights;
    fattn__matrix right, out;
    float *accumulator; /* [slots][seq_kv][width]; NULL: one chunk is all */
    int32_t group;      /* query heads that share a head of `out` */
    int32_t width, slots;
    float factor;
    int32_t blocks; /* heads of `out` times tiles of keys, without the columns */
    int32_t reserved;
} fattn__row_sum;

typedef struct fattn__call {
    int64_t head0;
    int32_t heads, heads_q;
    int32_t seq_q, seq_kv;
    int32_t row0, row_tiles;
    int32_t key0, key_tiles;
    /* The band: row r sees the keys [r + shift + low, r + shift + high), shift being len_kv - len_q with bottom_right, otherwise 0. */
    int32_t low, high;
    int32_t bottom_right;
    int32_t len_step; /* 0: one length for every batch entry */
    const int32_t *len_q, *len_kv; /* NULL: seq_q, seq_kv */

    /* The product: left x right, `depth` elements each in the products of rows and keys; `width` columns of `out` in the others. */
    fattn__matrix left, right, out;
    int32_t group; /* query heads that share a head of `right` */
    int32_t depth, width;
    float factor;
    fattn__row_sum row_sums[2]; /* dV and dK in one launch, or one of them */
    /* Gradients, when `fused`: the scores are computed first, by the same block, from these. */
    fattn__matrix queries, keys;
    int32_t fused, key_group, key_depth;

    /* Scores of the chunk. */
    float *s;        /* scaled scores */
    float *dp;       /* dO V^T, where a score_mod needs it apart */
    char *p, *ds;    /* probabilities and gradient of the scaled scores, in the type `weight_dtype` */
    float *extra;    /* NULL, or the gradient of what was added to the scores, fp32; complete, 0 where masked */
    int32_t weight_dtype;
    int32_t raw;     /* 1: scores leave the product as they are; a score_mod, bias and mask come later */
    fattn__matrix bias; /* at NULL: none */

    /* Rows of the chunk: [heads][row_tiles * 128]. */
    float *partial_max, *partial_sum; /* [heads][key_tiles][row_tiles * 128] */
    float *row_max, *row_sum, *row_rescale, *row_dot;
    fattn__matrix stats;              /* read by backward; the layout of the next three */
    float *stats_out, *max_out, *sum_exp_out; /* NULL: not wanted */

    /* Sums over several chunks, fp32. NULL: one chunk is all. */
    float *accumulator;  /* over keys: [heads][row_tiles * 128][width] */
    int32_t first, last; /* over keys: of the key chunks; over rows: of the row chunks */
} fattn__call;

/* A score_mod's program, packed: 8 bytes a node. Values lie in slots, which the host hands out anew when nothing needs a value any more. */
enum { FATTN__PROGRAM_NODES = 256, FATTN__PROGRAM_SLOTS = 92, FATTN__PROGRAM_THREADS = 128, FATTN__PROGRAM_TENSORS = 8 };

typedef struct fattn__node {
    uint8_t op, out, a, b; /* slots; of an index or tensor, `a` is its number */
    union {
        float constant;
        uint8_t c;
    } more;
} fattn__node;

typedef struct fattn__program {
    int32_t count;
    int32_t result; /* slot of the value that is wanted */
    fattn__node node[FATTN__PROGRAM_NODES];
} fattn__program;

/* The tensors of a program, in the order of its recording; in global memory would be slower and a copy at every call. */
typedef struct fattn__program_tensors {
    fattn__matrix at[FATTN__PROGRAM_TENSORS];
} fattn__program_tensors;

/* `to` = (first ? 0 : to) + the sum of `from` over the dimensions where `summed`. */
typedef struct fattn__sum_call {
    fattn__matrix from, to;
    int64_t dim[4];
    int64_t kept;  /* product of the kept extents */
    int64_t terms; /* product of the summed ones */
    int32_t summed[4];
    int32_t lanes; /* threads of a block's 256 that share one result: a power of two */
    int32_t first;
} fattn__sum_call;

#endif
