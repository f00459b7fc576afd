/* Applies dropout to a tile of probabilities, with the library's generator (problem/dropout.h) or
 * with the caller's mask. */
#ifndef FATTN_CPU_DROPOUT_H
#define FATTN_CPU_DROPOUT_H

#include "cpu_scores.h"
#include "problem/dropout.h"

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
