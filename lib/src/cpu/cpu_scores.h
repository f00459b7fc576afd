/* The steps on a tile of scores between Q K^T and the softmax, in this order: score_mod, bias or
 * boolean mask, ALiBi, block mask, padding and band. Also the gradient of score_mod. */
#ifndef FATTN_CPU_SCORES_H
#define FATTN_CPU_SCORES_H

#include "cpu/kernels/cpu_kernels.h"
#include "cpu_tile.h"
#include "problem/dropout.h"
#include "score_mod/mod_program.h"

/* cpu_mod_row.c: evaluates a program in fp32 for one row and `count` keys from key0 on. `places`
 * are the `place_count` nodes whose values are wanted; `out` is [place_count][count]. Scores and
 * gradients are arrays of `count`. `at` is b,h,row,key0. `tensors` are host addresses; `mod` has
 * their shapes. */
void fattn__score_mod_row(const fattn_score_mod *mod, const fattn__mod_program *program,
                          const int64_t at[4], int64_t count, const float *scores,
                          const float *gradients, const void *const *tensors, const int32_t *places,
                          int place_count, float *out);

bool fattn__scores_are_plain(const fattn_problem *p); /* no step before padding and band */
void fattn__scores_modify(const fattn__scores *at, float *s);
/* slope[i][j] = node `place` of the gradient program, from `raw`, the scores before score_mod, and
 * `slope`, d(loss)/d(modified score). If the latter is 0 the result is 0. key_step is 1. */
void fattn__scores_gradient(const fattn__scores *at, const float *raw, float *slope, int32_t place);

/* acc[m][n] += factor * weight[m][k] b[k][n], with the strides of fattn__product. A weight of 0
 * skips its term: if b is not finite, 0 times b must not reach the sum. */
void fattn__weigh(const fattn__kernels *kernels, const fattn__product *product, bool finite);

/* Applies dropout to a tile of probabilities, with the library's generator (problem/dropout.h) or
 * with the caller's mask. */
typedef struct fattn__dropping {
    bool on;
    const void *mask; /* the caller's, dense b,h,s,s; NULL: the generator */
    fattn__dropout generator;
    float scale;    /* factor of a kept score */
    float of_slope; /* factor of D = dO.O: 1; with the caller's mask, the product of the given scale
                       and the given inverse */
} fattn__dropping;

fattn__dropping fattn__dropping_of(const fattn_problem *p, const fattn_tensors *t);
/* x = scale x if it is kept, otherwise 0. `at` has the layout of the tile. */
void fattn__dropping_apply(const fattn__dropping *dropping, const fattn__scores *at, float *x);
/* 1 or 0 for every score of the problem, dense b,h,s,s. */
void fattn__dropping_dump(const fattn__dropping *dropping, const fattn_problem *p, float *out,
                          int threads);

#endif
