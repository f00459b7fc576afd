/* The parameters of the math backend's kernels: plain structs, with the same bytes in C and CUDA C. Every kernel except the sum
 * takes one fattn__call by value. Its size stays below the 4 KiB of parameters that every driver passes.
 *
 * A call works on a chunk: `heads` query heads from head0 (counted over batch and head together), `row_tiles` tiles of 128 rows
 * from row0, `key_tiles` tiles of 128 keys from key0. The scores of a chunk are in the workspace as
 * [heads][row_tiles * 128][key_tiles * 128]. A tile that the band and the lengths mask completely is neither written nor read.
 *
 * Ragged   a matrix with `starts` has its batch entries one after the other. Rows at and past the length of an entry belong to
 * another entry, so no kernel reads or writes them. */
#ifndef FATTN_CUDA_PARAMS_H
#define FATTN_CUDA_PARAMS_H

#include <stdint.h>

/* The threads of a block. _F32: of the fp32 products, whose warps have more work each. */
enum { FATTN__TILE = 128, FATTN__THREADS = 256, FATTN__THREADS_F32 = 128 };

/* The numbers of fattn_dtype. The host code that fills these structs asserts that they equal
 * fattn.h's. */
enum { FATTN__BF16 = 1, FATTN__F16 = 2, FATTN__F32 = 3 };

/* A tensor. `grain`: every row (the elements of one b,h,s) begins at a multiple of 16, 8, 4 or 2
 * bytes; with `starts`, counted from the start of its entry. */
typedef struct fattn__matrix {
    char *at;
    int64_t stride[4];  /* elements; b,h,s,d. 0 in the dimensions that are broadcast */
    const void *starts; /* NULL, or ragged: entry b begins at starts[b] * start_step elements */
    int64_t start_step;
    int32_t start_bits; /* 32 or 64 */
    int32_t dtype;
    int32_t grain;
    int32_t reserved;
} fattn__matrix;

/* The lengths of the batch entries. `step` 0: one length for all. `sums`: prefix sums from 0, batch
 * + 1 of them. */
typedef struct fattn__lengths {
    const int32_t *q, *kv; /* NULL: seq_q, seq_kv */
    int32_t step;
    int32_t sums_q, sums_kv;
    int32_t reserved;
} fattn__lengths;

/* Changes of a score between its product and the softmax; all zero: none. math_modify.cu applies
 * all of them except the sink. */
typedef struct fattn__adjustments {
    const float *slopes;  /* ALiBi, [heads_q] */
    const float *sink;    /* [heads_q] */
    fattn__matrix mask;   /* at NULL, or bytes: 0 masks */
    const uint8_t *tiles; /* NULL, or a bit for each tile of 128 x 128: [batch, heads_q, tile_rows,
                             tile_bytes] */
    int32_t tile_rows, tile_bytes;
    const char *kept;          /* NULL, or dense b,h,s,s of kept_dtype: 0 drops */
    const float *kept_factor;  /* with `kept`: factor of a kept score */
    const void *seed, *offset; /* NULL, or the seed and offset of dropout by dropout.h */
    int32_t rng_bits;
    uint32_t threshold;
    float factor; /* with `seed`: factor of a kept score */
    int32_t kept_dtype;
} fattn__adjustments;

/* A sum over rows: `weights` transposed times `right`, in the type `weight_dtype`. */
typedef struct fattn__row_sum {
    const char *weights;
    fattn__matrix right, out;
    float *accumulator; /* [slots][seq_kv][width]; NULL: one chunk has all rows */
    const float *scale; /* NULL, or another factor of `factor` */
    int32_t group;      /* query heads that share a head of `out` */
    int32_t width, slots;
    float factor;
    int32_t blocks; /* heads of `out` times tiles of keys; columns are not counted */
    int32_t reserved;
} fattn__row_sum;

typedef struct fattn__call {
    int64_t head0;
    int32_t heads, heads_q;
    int32_t seq_q, seq_kv;
    int32_t row0, row_tiles;
    int32_t key0, key_tiles;
    /* The band: row r sees the keys [r + shift + low, r + shift + high). shift is len_kv - len_q
     * with bottom_right, otherwise 0. */
    int32_t low, high;
    int32_t bottom_right;
    int32_t base_2; /* Stats are written in base 2 */
    fattn__lengths lengths;

    /* The product: left x right. In the products of rows and keys, `depth` elements each; in the others, `width` columns of
     * `out`. */
    fattn__matrix left, right, out;
    int32_t group; /* query heads that share a head of `right` */
    int32_t depth, width;
    float factor;
    int32_t reserved;
    const float
        *scale; /* NULL, or another factor of `factor`; for raw scores, math_modify.cu applies it */
    fattn__row_sum row_sums[2]; /* dV and dK in one launch, or only one of the two */
    /* Gradients with `fused`: the same block first computes the scores, from these. */
    fattn__matrix queries, keys;
    int32_t fused, key_group, key_depth;

    /* Scores of the chunk. */
    float *s;     /* scaled scores */
    float *dp;    /* dO V^T, if a score_mod needs it separately */
    char *p, *ds; /* probabilities, and gradient of the scaled scores, in the type `weight_dtype` */
    float *extra; /* NULL, or the gradient of the bias or of a score_mod's tensor, fp32; complete, 0
                     where masked */
    int32_t weight_dtype;
    int32_t raw; /* 1: the product writes raw scores; a score_mod, bias and mask come later */
    fattn__matrix bias; /* at NULL: none */
    fattn__adjustments adjustments;

    /* Rows of the chunk: [heads][row_tiles * 128]. */
    float *partial_max, *partial_sum; /* [heads][key_tiles][row_tiles * 128] */
    float *row_max, *row_sum, *row_rescale, *row_dot;
    float *row_sink;                          /* the sink's gradient, of each row */
    fattn__matrix stats;                      /* read by backward; the layout of the next three */
    float *stats_out, *max_out, *sum_exp_out; /* NULL: not wanted */

    /* Sums over several chunks, fp32. NULL: one chunk has all. */
    float *accumulator; /* over keys: [heads][row_tiles * 128][width] */
    int32_t first,
        last; /* first or last chunk: over keys, of the key chunks; over rows, of the row chunks */
} fattn__call;

/* The program of a score_mod, with 8 bytes a node. Values are in slots. The host uses a slot again
 * when its value is no longer needed. */
enum {
    FATTN__PROGRAM_NODES = 256,
    FATTN__PROGRAM_SLOTS = 92,
    FATTN__PROGRAM_THREADS = 128,
    FATTN__PROGRAM_TENSORS = 8
};

typedef struct fattn__node {
    uint8_t op, out, a, b; /* slots; of an index or tensor, `a` is its number */
    union {
        float constant;
        uint8_t c;
    } more;
} fattn__node;

typedef struct fattn__program {
    int32_t count;
    int32_t result; /* slot of the result */
    fattn__node node[FATTN__PROGRAM_NODES];
} fattn__program;

/* The tensors of a program, in the order of its recording. They are kernel parameters: global
 * memory would be slower and would need a copy for each call. */
typedef struct fattn__program_tensors {
    fattn__matrix at[FATTN__PROGRAM_TENSORS];
} fattn__program_tensors;

/* Copies pages into a dense tensor: row s of `to` is row s % page of page table[b][s / page] of
 * `from`. Rows past the length are zero. */
typedef struct fattn__gather_call {
    fattn__matrix from, to;
    const int32_t *table;
    const void *table_starts; /* NULL: entry b's pages are at b * pages */
    int64_t rows;             /* rows of `to` that are written: whole entries, from `batch` on */
    int32_t table_bits, pages, page;
    int32_t batch, heads, seq, width;
    int32_t reserved;
    fattn__lengths lengths;
} fattn__gather_call;

/* Writes the keep mask of dropout, 1 or 0 for each score: dense b,h,s,s. */
typedef struct fattn__dump_call {
    float *to;
    fattn__adjustments adjustments;
    int64_t rows; /* batch * heads_q * seq_q */
    int32_t heads_q, seq_q, seq_kv;
    int32_t reserved;
} fattn__dump_call;

/* `to` = (first ? 0 : to) + the sum of `from` over the dimensions that are `summed`. Ragged: rows
 * of `to` past the lengths are not written. */
typedef struct fattn__sum_call {
    fattn__matrix from, to;
    int64_t dim[4];
    int64_t kept;  /* product of the kept extents */
    int64_t terms; /* product of the summed ones */
    int32_t summed[4];
    int32_t lanes; /* threads of a block's 256 that share one result: a power of two */
    int32_t first;
    const int32_t *lengths; /* of a ragged `to` */
    int32_t length_step, length_sums;
} fattn__sum_call;

#endif
