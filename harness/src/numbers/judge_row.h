/* What one row (b,h,s) of an answer adds up to: the first of two steps of judging. A row depends on nothing but itself, so rows are judged here by
 * OpenMP and on a GPU by one warp each, with the same inline functions; facts_judge_rows (judge.h) makes a judgement of them.
 *
 * Compiled by C and by CUDA C++.
 */
#ifndef FACTS_JUDGE_ROW_H
#define FACTS_JUDGE_ROW_H

#include <stdint.h>

typedef struct facts_row {
    double squares;      /* sum of (E/sigma)^2 */
    double gain, power;  /* sums of E want/sigma^2 and want^2/sigma^2 */
    double ratio;        /* of the worst element */
    double got, want, tolerance;
    int32_t weighed;     /* elements in the sums */
    int32_t worst;       /* its channel; -1: nothing was compared */
    int32_t rank, gate;  /* of the worst: finding (judge_row's enum), facts_gate */
    int32_t checked, not_finite, unwritten, wrong;
    int32_t padded_poison, padded_zero, padded_other;
} facts_row;

#endif
