/* Every kernel, in the order of its number. X(name, dynamic shared memory in doubles, arguments
 * beside the call) */
#ifndef FREF_ORACLE_KERNELS_H
#define FREF_ORACLE_KERNELS_H

#include "call.h"

/* tile.cuh: two steps of the right-hand side and of the weights, exact ones as doubles, rough ones
 * as floats. The wide kernels stand in the order of the others. Over rows: two steps of their
 * facts. */
#define FREF__OF_SUMS(step, width, exact_weights, rough_weights, exact, rough)                     \
    (2 * (step) * ((width) + 4) + 2 * (exact) * (exact_weights) + (rough) * (rough_weights))
#define FREF__BY_ROW(exact, rough)                                                                 \
    FREF__OF_SUMS(FREF__STEP, FREF__TILE, FREF__TILE *(FREF__STEP + 4),                            \
                  FREF__TILE *(FREF__STEP + 4), exact, rough)
#define FREF__BY_KEY(exact, rough)                                                                 \
    (FREF__OF_SUMS(FREF__STEP, FREF__TILE, FREF__STEP * (FREF__TILE + 4),                          \
                   FREF__STEP * (FREF__TILE + 8), exact, rough) +                                  \
     2 * FREF__STEP * FREF__FACT_DOUBLES)
#define FREF__WIDE_BY_ROW(exact, rough)                                                            \
    FREF__OF_SUMS(FREF__WIDE_STEP, FREF__WIDE, FREF__WIDE_HEIGHT *(FREF__WIDE_STEP + 4),           \
                  FREF__WIDE_HEIGHT *(FREF__WIDE_STEP + 4), exact, rough)
#define FREF__WIDE_BY_KEY(exact, rough)                                                            \
    (FREF__OF_SUMS(FREF__WIDE_STEP, FREF__WIDE, FREF__WIDE_STEP * (FREF__WIDE_HEIGHT + 4),         \
                   FREF__WIDE_STEP * (FREF__WIDE_HEIGHT + 8), exact, rough) +                      \
     2 * FREF__WIDE_STEP * FREF__FACT_DOUBLES)

/* scores.cu: steps of so many rows. */
#define FREF__OF_STEPS(rows) (FREF__SCORE_STAGES * ((rows) + FREF__SCORE_KEYS) * (FREF__DEPTH + 4))
#define FREF__OF_SCORES(rows)                                                                      \
    (FREF__OF_STEPS(rows) > FREF__OF_RELATION ? FREF__OF_STEPS(rows) : FREF__OF_RELATION)

/* clang-format off */
#define FREF__KERNEL_LIST(X)                                                                      \
    X(decode, 0)                                                                                  \
    X(scores, FREF__OF_SCORES(FREF__PAD)) X(scores_half, FREF__OF_SCORES(FREF__PAD / 2))          \
    X(modify, 0) X(forward_facts, 0) X(backward_facts, 0)                                         \
    X(sum_forward, FREF__BY_ROW(1, 2)) X(sum_forward_kept, FREF__BY_ROW(1, 3))                    \
    X(sum_dq, FREF__BY_ROW(2, 3))                                                                 \
    X(sum_dk, FREF__BY_KEY(1, 3)) X(sum_dv, FREF__BY_KEY(1, 3)) X(sum_values, FREF__BY_ROW(1, 0)) \
    X(sum_forward_wide, FREF__WIDE_BY_ROW(1, 2))                                                  \
    X(sum_forward_kept_wide, FREF__WIDE_BY_ROW(1, 3)) X(sum_dq_wide, FREF__WIDE_BY_ROW(2, 3))     \
    X(sum_dk_wide, FREF__WIDE_BY_KEY(1, 3))                                                       \
    X(sum_dv_wide, FREF__WIDE_BY_KEY(1, 3)) X(sum_values_wide, FREF__WIDE_BY_ROW(1, 0))           \
    X(sum_forward_lost, FREF__BY_ROW(1, 0)) X(sum_dq_lost, FREF__BY_ROW(1, 0))                    \
    X(sum_dk_lost, FREF__BY_KEY(1, 0)) X(sum_dv_lost, FREF__BY_KEY(1, 0))                         \
    X(finish_forward, 0) X(finish_backward, 0) X(add_bias, 0) X(finish_bias, 0)                   \
    X(row_weights, 0) X(key_weights, 0) X(sink, 0)
/* clang-format on */

typedef enum fref__kernel {
#define FREF__AS_KERNEL(name, shared) FREF__kernel_##name,
    FREF__KERNEL_LIST(FREF__AS_KERNEL)
#undef FREF__AS_KERNEL
        FREF__KERNEL_COUNT
} fref__kernel;

#endif
