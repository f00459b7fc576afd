/* What happens to a tile of scores between Q K^T and the softmax, in this order: score_mod, bias or boolean mask, alibi, block mask, padding and
 * band; and the gradient of score_mod on the way back. */
#ifndef FATTN_CPU_SCORES_H
#define FATTN_CPU_SCORES_H

#include "cpu/kernels/cpu_kernels.h"
#include "cpu_tile.h"
#include "score_mod/mod_program.h"

/* A tile of scores: rows [row0, row0 + rows) of (b, h) against keys [key0, key0 + keys); element (i, j) is at i * row_step + j * key_step. */
typedef struct fattn__scores {
    const fattn_problem *p;
    const fattn_tensors *t;
    int64_t b, h, row0, rows, key0, keys;
    int64_t row_step, key_step;
} fattn__scores;

/* cpu_mod_row.c: evaluates a program for a row of `count` keys in fp32. out[k] is the value of node `place` for key `key0 + k`; scores and gradients are
 * arrays of `count`. `at` is b,h,row,key0. `tensors` are host addresses with the signatures of `mod`. Several places at once: `places` of
 * `place_count`, out is [place_count][count]. */
void fattn__score_mod_row(const fattn_score_mod *mod, const fattn__mod_program *program, const int64_t at[4], int64_t count,
                          const float *scores, const float *gradients, const void *const *tensors, const int32_t *places, int place_count,
                          float *out);

bool fattn__scores_are_plain(const fattn_problem *p); /* nothing before padding and band */
void fattn__scores_modify(const fattn__scores *at, float *s);
/* slope[i][j] = the gradient program's `place` for the scores before score_mod, `raw`, and d(loss)/d(modified score), `slope`. Where the
 * latter is 0 the result is 0. key_step is 1. */
void fattn__scores_gradient(const fattn__scores *at, const float *raw, float *slope, int32_t place);

/* acc[m][n] += factor * weight[m][k] b[k][n], strides as in fattn__product. A weight of 0 takes nothing: when b is not finite, 0 times it must not
 * reach the sum. */
void fattn__weigh(const fattn__kernels *kernels, const fattn__product *product, bool finite);

#endif
