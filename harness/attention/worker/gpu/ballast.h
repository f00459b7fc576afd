/* memory=N: takes memory of the GPU until N MiB are free, so that cuDNN has no more than a program
 * that holds the rest in its cache would leave it. */
#ifndef FACTS_BALLAST_H
#define FACTS_BALLAST_H

#include "worker_gpu.h"

#define FACTS_BALLAST_PIECES 64

typedef struct facts_ballast {
    void *piece[FACTS_BALLAST_PIECES];
    int pieces;
} facts_ballast;

/* Leaves `mib` MiB free, as near as the driver's granularity allows; -1: takes nothing. False: more
 * stayed free, and `why` says how much. Drop it in any case. */
bool facts_ballast_take(facts_ballast *out, facts_gpu *gpu, int64_t mib, char why[160]);
void facts_ballast_drop(facts_ballast *ballast, facts_gpu *gpu);

#endif
