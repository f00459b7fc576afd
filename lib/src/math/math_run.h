/* One call of a plan: a loop over the chunks, which launches every kernel for each. */
#ifndef FATTN_MATH_RUN_H
#define FATTN_MATH_RUN_H

#include "core/engine.h"
#include "fattn/fattn.h"
#include "math_params.h"
#include "math_sum.h"
#include "problem/resolved_problem.h"
#include <stdbool.h>
#include <stddef.h>

/* How a problem is divided so that its scores fit in the workspace: into chunks of heads, of rows and of keys. All have one size,
 * except the last. The chunks depend only on the problem.
 *
 * Bound    the scores of a chunk, with the values kept for each of them, take at most FATTN__MATH_SCORE_BYTES, or one tile of 128 x
 * 128 of one
 *          head if that is more. The rest of the workspace is linear in the problem's tensors. It has the fp32 sums of O, dQ, dK,
 * dV and dbias if several chunks add up. It has a whole gradient if that is summed over the broadcast dimensions of its input. It
 * has dense copies of paged K and V for the batch entries of a chunk: at most FATTN__MATH_SCORE_BYTES, or those of one entry. Order
 * batch and head outermost, then rows, then keys. Every sum has one fixed order: the same inputs give the same bits. */
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

/* A plan's state. */
typedef struct fattn__math_state {
    fattn__chunks chunks;
    int32_t tensor_count; /* of the score_mod */
    fattn__program score; /* empty without a score_mod, like the next members */
    fattn__program gradient;
    fattn__program
        tensors[]; /* backward: tensor_count programs, filled if a gradient is asked for */
} fattn__math_state;

/* The data of a call, and its current chunk. */
typedef struct fattn__math_run {
    const fattn_plan *plan;
    const fattn_problem *p;
    const fattn_tensors *t;
    const fattn__math_state *state;
    char *workspace; /* aligned */
    struct CUstream_st *stream;
    fattn__program_tensors tensors; /* of the score_mod */
    fattn__matrix q, k, v, o, d_o, dq, dk, dv, bias, mask;

    int64_t batch, batches, head, heads, row, rows, key,
        keys;          /* the chunk; its extents without the padding of tiles */
    fattn__call chunk; /* parameters that all launches of the chunk share */
} fattn__math_run;

/* Makes the kernels' matrices from the addresses of a call. */
fattn_status fattn__math_matrices(fattn__math_run *r);
fattn__matrix fattn__math_stats(const fattn__math_run *r);
fattn__lengths fattn__math_lengths(const fattn__math_run *r);
fattn__adjustments fattn__math_adjustments(const fattn__math_run *r);
void fattn__math_pack_sum(fattn__sum *sum, const fattn__math_run *r,
                          fattn__role gradient); /* if `sum` writes a ragged tensor */

/* Copies the paged tensors of the chunk's batch entries into dense ones. */
fattn_status fattn__math_lay_out(fattn__math_run *r);
fattn_status fattn__math_dump(const fattn__math_run *r);

void *fattn__math_part_at(const fattn__math_run *r, fattn__math_part part); /* NULL: no such part */

/* Launches the kernels of the chunk that is set in `r`. */
fattn_status fattn__math_forward_keys(fattn__math_run *r);
fattn_status fattn__math_backward_rows(fattn__math_run *r);
fattn_status fattn__math_backward_keys(fattn__math_run *r);
fattn_status fattn__math_backward_end(fattn__math_run *r);

/* The gradients of the bias and of the score_mod's tensors, from the kept value of each score. */
fattn_status fattn__math_added(const fattn__math_run *r);
fattn_status fattn__math_added_end(const fattn__math_run *r);

fattn_status fattn__math_run_plan(const fattn_plan *plan, const fattn_tensors *tensors,
                                  struct CUstream_st *stream);

#endif
