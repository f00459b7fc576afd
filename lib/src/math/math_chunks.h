/* How a problem is cut so that its scores fit in workspace: chunks of heads, of rows and of keys, all of one size but the last. A pure function
 * of the problem.
 *
 * Bound    the scores of a chunk (with what is kept beside each of them) take at most FATTN__MATH_SCORE_BYTES, or one tile of 128 x 128 of one
 *          head if that alone were more. The rest of the workspace is linear in the problem's tensors: fp32 sums of O, dQ, dK, dV, dbias where
 *          several chunks add up, the whole of a gradient that is to be summed over what its input broadcasts, and paged K and V of a chunk's
 *          batch entries, laid out: FATTN__MATH_SCORE_BYTES at most, or those of one entry.
 * Order    batch and head outermost, then rows, then keys. Within it every sum has one order: the same inputs give the same bits.
 */
#ifndef FATTN_MATH_CHUNKS_H
#define FATTN_MATH_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>

#include "fattn/fattn.h"

#define FATTN__MATH_SCORE_BYTES ((int64_t)512 << 20)

/* The parts of the workspace. X(SYMBOL) */
#define FATTN__MATH_PART_LIST(X)                                                                                                   \
    X(S) X(DP) X(P) X(DS) X(EXTRA) X(PARTIAL_MAX) X(PARTIAL_SUM) X(ROW_MAX) X(ROW_SUM) X(ROW_RESCALE) X(ROW_DOT)                   \
    X(ROW_SINK) X(PAGES_K) X(PAGES_V) X(SUM_O) X(SUM_DQ) X(SUM_DK) X(SUM_DV) X(WHOLE_DQ) X(WHOLE_DK) X(WHOLE_DV) X(OVER_KEY_AXIS) X(SUM_DBIAS)

#define FATTN__AS_PART_(symbol) FATTN__MATH_##symbol,
typedef enum fattn__math_part { FATTN__MATH_PART_LIST(FATTN__AS_PART_) FATTN__MATH_PARTS } fattn__math_part;
#undef FATTN__AS_PART_

typedef struct fattn__chunks {
    int64_t batches, heads; /* of a chunk; batches > 1 only with all heads */
    int64_t rows, keys;     /* of a chunk: multiples of 128 */
    int64_t slots_k, slots_v; /* heads of K and V that are being summed at one time; 0: one chunk has all of a head's rows */
    size_t offset[FATTN__MATH_PARTS]; /* from the workspace's first multiple of 256; SIZE_MAX: there is none */
    size_t bytes;           /* of workspace, alignment included */
} fattn__chunks;

void fattn__chunks_of(fattn__chunks *out, const fattn_problem *resolved);
/* The same with other limits: chunks of at most `score_bytes` of scores and, a multiple of 128, `most_keys` keys. */
void fattn__chunks_within(fattn__chunks *out, const fattn_problem *resolved, int64_t score_bytes, int64_t most_keys);

/* Do its scores leave the products as they are, for a score_mod, slopes, masks, dropout or a scale in memory to come? */
bool fattn__math_modified(const fattn_problem *resolved);

/* Elements from row to row of paged K and V as they are laid out: whole 16 bytes. */
int64_t fattn__math_pages_pitch(const fattn_problem *resolved, int64_t dim);

/* Strides of the sum into which the gradient of every score goes, b,h,s,s: 0 where it is summed. */
void fattn__dbias_strides(const fattn_problem *resolved, int64_t out[4]);

#endif
