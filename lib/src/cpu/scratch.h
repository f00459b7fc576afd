/* One thread's scratch, carved out of the caller's workspace. */
#ifndef FATTN_CPU_SCRATCH_H
#define FATTN_CPU_SCRATCH_H

#include "tile.h"

typedef struct fattn__scratch {
    float *q, *d_o, *o, *acc_q;     /* [ROWS][dim] */
    float *k, *v, *acc_k, *acc_v;   /* [KEYS][dim] */
    float *s, *dp;                  /* [ROWS][KEYS] */
    float *max, *sum, *stats, *row; /* [ROWS] */
} fattn__scratch;

fattn__scratch fattn__scratch_at(const fattn_problem *p, char *base, int thread);

#endif
