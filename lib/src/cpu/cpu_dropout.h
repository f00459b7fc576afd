/* What dropout does to a tile of probabilities: by our generator (../dropout.h), or by the caller's mask. */
#ifndef FATTN_CPU_DROPOUT_H
#define FATTN_CPU_DROPOUT_H

#include "cpu_scores.h"
#include "problem/dropout.h"

typedef struct fattn__dropping {
    bool on;
    const void *mask; /* the caller's, dense b,h,s,s; NULL: the generator */
    fattn__dropout generator;
    float scale;    /* of what is kept */
    float of_slope; /* what D = dO.O is multiplied with: 1, or of a mask its scale times the scale's inverse, as they are given */
} fattn__dropping;

fattn__dropping fattn__dropping_of(const fattn_problem *p, const fattn_tensors *t);
/* x = scale x where it is kept, 0 elsewhere; the tile is laid out as `at` says. */
void fattn__dropping_apply(const fattn__dropping *dropping, const fattn__scores *at, float *x);
/* 1 or 0 for every score of the problem, dense b,h,s,s. */
void fattn__dropping_dump(const fattn__dropping *dropping, const fattn_problem *p, float *out, int threads);

#endif
