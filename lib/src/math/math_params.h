/* What the host says to the kernels of the math backend: plain structs, the same bytes for C and CUDA C. Every kernel but the sum takes one
 * fattn__call by value; it stays below the 4 KiB that every driver passes.
 *
 * A call works on a chunk: `heads` query heads from head0 (counted over batch and head together), `row_tiles` tiles of 128 rows from row0,
 * `key_tiles` tiles of 128 keys from key0. Scores of a chunk lie in workspace as [heads][row_tiles * 128][key_tiles * 128]. A tile that the
 * band and the lengths mask completely is neither written nor read.
 *
 * Packed   a matrix with `starts` holds its batch entries one behind the other: rows at and past an entry's length are another's, so that nobody reads
 * or writes them.
 */
#ifndef FATTN_CUDA_PARAMS_H
#define FATTN_CUDA_PARAMS_H

#include <stdint.h>

/* A block's threads; _F32: of the products of fp32, each of whose warps has more to do. */
enum { FATTN__TILE = 128, FATTN__THREADS = 256, FATTN__THREADS_F32 = 128 };

/* The numbers of fattn_dtype, held against fattn.h where the host fills these structs. */
enum { FATTN__BF16 = 1, FATTN__F16 = 2, FATTN__F32 = 3 };

/* A tensor. `grain`: every row (the elements of one b,h,s) begins at a multiple of so many bytes: 16, 8, 4 or 2; with `starts` counted from its
 * entry's start. */
typedef struct fattn__matrix {
    char *at;
    int64_t stride[4]; /* elements; b,h,s,d. 0 in the dimensions that are broadcast */
    const void *starts; /* NULL, or packed: entry b begins at starts[b] * start_step elements */
    int64_t start_step;
    int32_t start_bits; /* 32 or 64 */
    int32_t dtype;
    int32_t grain;
    int32_t reserved;
} fattn__matrix;

/* How long the batch entries are. `step` 0: one length for all. `sums`: prefix sums from 0, of batch + 1. */
typedef struct fattn__lengths {
    const int32_t *q, *kv; /* NULL: seq_q, seq_kv */
    int32_t step;
    int32_t sums_q, sums_kv;
    int32_t reserved;
} fattn__lengths;

/* What else happens to a score between its product and the softmax; all zero: nothing. Everything but the sink is modify.cu's. */
typedef struct fattn__adjustments {
    const float *slopes;        /* ALiBi, [heads_q] */
    const float *sink;          /* [heads_q] */
    fattn__matrix mask;         /* at NULL, or bytes: 0 masks */
    const uint8_t *tiles;       /* NULL, or a bit for each tile of 128 x 128: [batch, heads_q, tile_rows, tile_bytes] */
    int32_t tile_rows, tile_bytes;
    const char *kept;           /* NULL, or dense b,h,s,s of kept_dtype: 0 drops */
    const float *kept_factor;   /* with `kept`: what is kept is multiplied with it */
    const void *seed, *offset;  /* NULL, or dropout by dropout.h, from these */
    int32_t rng_bits;
    uint32_t threshold;
    float factor;               /* with `seed`: what is kept is multiplied with it */
    int32_t kept_dtype;
} fattn__adjustments;

/* One of the sums over rows: `weights` transposed times `right`, in the type `weight_dtype`. */
typedef struct fattn__row_sum {
    const char *weights;
    fattn__matrix right, out;
    float *accumulator; /* [slots][seq_kv][width]; NULL: one chunk is all */
    const float *scale; /* NULL, or what `factor` is multiplied with */
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
    int32_t base_2; /* Stats are written so */
    fattn__lengths lengths;

    /* The product: left x right, `depth` elements each in the products of rows and keys; `width` columns of `out` in the others. */
    fattn__matrix left, right, out;
    int32_t group; /* query heads that share a head of `right` */
    int32_t depth, width;
    float factor;
    int32_t reserved;
    const float *scale; /* NULL, or what `factor` is multiplied with; of raw scores: by who modifies them */
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
    fattn__adjustments adjustments;

    /* Rows of the chunk: [heads][row_tiles * 128]. */
    float *partial_max, *partial_sum; /* [heads][key_tiles][row_tiles * 128] */
    float *row_max, *row_sum, *row_rescale, *row_dot;
    float *row_sink; /* the sink's gradient, of each row */
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

/* Pages as a dense tensor: row s of `to` is row s % page of page table[b][s / page] of `from`; past the length it is zero. */
typedef struct fattn__gather_call {
    fattn__matrix from, to;
    const int32_t *table;
    const void *table_starts; /* NULL: entry b's pages are at b * pages */
    int64_t rows; /* of `to` that are written: whole entries, from `batch` on */
    int32_t table_bits, pages, page;
    int32_t batch, heads, seq, width;
    int32_t reserved;
    fattn__lengths lengths;
} fattn__gather_call;

/* What dropout keeps, 1 or 0 for each score: dense b,h,s,s. */
typedef struct fattn__dump_call {
    float *to;
    fattn__adjustments adjustments;
    int64_t rows;  /* batch * heads_q * seq_q */
    int32_t heads_q, seq_q, seq_kv;
    int32_t reserved;
} fattn__dump_call;

/* `to` = (first ? 0 : to) + the sum of `from` over the dimensions where `summed`. Packed: rows of `to` past the lengths are left alone. */
typedef struct fattn__sum_call {
    fattn__matrix from, to;
    int64_t dim[4];
    int64_t kept;  /* product of the kept extents */
    int64_t terms; /* product of the summed ones */
    int32_t summed[4];
    int32_t lanes; /* threads of a block's 256 that share one result: a power of two */
    int32_t first;
    const int32_t *lengths; /* of a packed `to` */
    int32_t length_step, length_sums;
} fattn__sum_call;

#endif
