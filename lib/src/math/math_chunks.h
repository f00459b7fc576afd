/* How a problem is divided so that its scores fit in the workspace: into chunks of heads, of rows and of keys. All have one size,
 * except the last. The chunks depend only on the problem.
 *
 * Bound    the scores of a chunk, with the values kept for each of them, take at most FATTN__MATH_SCORE_BYTES, or one tile of 128 x
 * 128 of one
 *          head if that is more. The rest of the workspace is linear in the problem's tensors. It has the fp32 sums of O, dQ, dK,
 * dV and dbias if several chunks add up. It has a whole gradient if that is summed over the broadcast dimensions of its input. It
 * has dense copies of paged K and V for the batch entries of a chunk: at most FATTN__MATH_SCORE_BYTES, or those of one entry. Order
 * batch and head outermost, then rows, then keys. Every sum has one fixed order: the same inputs give the same bits. */
#ifndef FATTN_MATH_CHUNKS_H
#define FATTN_MATH_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>

#include "fattn/fattn.h"

#define FATTN__MATH_SCORE_BYTES ((int64_t)512 << 20)

/* The parts of the workspace. X(SYMBOL) */
/* clang-format off */
#define FATTN__MATH_PART_LIST(X)                                                         \
    X(S) X(DP) X(P) X(DS) X(EXTRA) X(PARTIAL_MAX) X(PARTIAL_SUM) X(ROW_MAX) X(ROW_SUM)   \
    X(ROW_RESCALE) X(ROW_DOT)                                                            \
    X(ROW_SINK) X(PAGES_K) X(PAGES_V) X(SUM_O) X(SUM_DQ) X(SUM_DK) X(SUM_DV) X(WHOLE_DQ) \
    X(WHOLE_DK) X(WHOLE_DV) X(OVER_KEY_AXIS) X(SUM_DBIAS)
/* clang-format on */

#define FATTN__AS_PART_(symbol) FATTN__MATH_##symbol,
typedef enum fattn__math_part {
    FATTN__MATH_PART_LIST(FATTN__AS_PART_) FATTN__MATH_PARTS
} fattn__math_part;
#undef FATTN__AS_PART_

typedef struct fattn__chunks {
    int64_t batches, heads;   /* of a chunk; batches > 1 only if it has all heads */
    int64_t rows, keys;       /* of a chunk: multiples of 128 */
    int64_t slots_k, slots_v; /* heads of K and V that are summed at one time; 0: one chunk has all
                                 rows of a head */
    size_t offset[FATTN__MATH_PARTS]; /* from the workspace's first multiple of 256; SIZE_MAX: no
                                         such part */
    size_t bytes;                     /* of the workspace, with the bytes for its alignment */
} fattn__chunks;

void fattn__chunks_of(fattn__chunks *out, const fattn_problem *resolved);
/* The same with other limits: chunks with at most `score_bytes` of scores and at most `most_keys`
 * keys (a multiple of 128). */
void fattn__chunks_within(fattn__chunks *out, const fattn_problem *resolved, int64_t score_bytes,
                          int64_t most_keys);

/* Do the products write raw scores, because a score_mod, slopes, masks, dropout or a scale in
 * memory comes later? */
bool fattn__math_modified(const fattn_problem *resolved);

/* The row stride, in elements, of the dense copy of paged K and V: a multiple of 16 bytes. */
int64_t fattn__math_pages_pitch(const fattn_problem *resolved, int64_t dim);

/* The strides b,h,s,s of dbias for the gradient of every score: 0 in dimensions that are summed. */
void fattn__dbias_strides(const fattn_problem *resolved, int64_t out[4]);

#endif
