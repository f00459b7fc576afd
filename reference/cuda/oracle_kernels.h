/* Every kernel, in the order of its number. X(name, dynamic shared memory in doubles, arguments
 * beside the call) */
#ifndef FREF_ORACLE_KERNELS_H
#define FREF_ORACLE_KERNELS_H

#include "call.h"

/* tile.cuh: two steps of the right-hand side and of the weights. Over rows: two steps of their
 * facts. */
#define FREF__OF_SUMS(weights, size) (2 * FREF__STEP * (FREF__TILE + 4) + 2 * (weights) * (size))
#define FREF__BY_ROW(weights) FREF__OF_SUMS(weights, FREF__TILE *(FREF__STEP + 4))
#define FREF__BY_KEY(weights)                                                                      \
    (FREF__OF_SUMS(weights, FREF__STEP * (FREF__TILE + 4)) + 2 * FREF__STEP * FREF__FACT_DOUBLES)

/* scores.cu: steps of so many rows. */
#define FREF__OF_STEPS(rows) (FREF__SCORE_STAGES * ((rows) + FREF__SCORE_KEYS) * (FREF__DEPTH + 4))
#define FREF__OF_SCORES(rows)                                                                      \
    (FREF__OF_STEPS(rows) > FREF__OF_RELATION ? FREF__OF_STEPS(rows) : FREF__OF_RELATION)

/* clang-format off */
#define FREF__KERNEL_LIST(X)                                                                      \
    X(decode, 0)                                                                                  \
    X(scores, FREF__OF_SCORES(FREF__PAD)) X(scores_half, FREF__OF_SCORES(FREF__PAD / 2))          \
    X(modify, 0) X(forward_facts, 0) X(backward_facts, 0)                                         \
    X(sum_forward, FREF__BY_ROW(3)) X(sum_dq, FREF__BY_ROW(4)) X(sum_dk, FREF__BY_KEY(3))          \
    X(sum_dv, FREF__BY_KEY(3)) X(sum_values, FREF__BY_ROW(1))                                     \
    X(sum_forward_lost, FREF__BY_ROW(1)) X(sum_dq_lost, FREF__BY_ROW(1))                          \
    X(sum_dk_lost, FREF__BY_KEY(1)) X(sum_dv_lost, FREF__BY_KEY(1))                               \
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
