/* Attention as a framework computes it: one operation after the other, each result cast to the
 * input type. */
#ifndef FACTS_BENCH_EAGER_H
#define FACTS_BENCH_EAGER_H

#include "emulation/scene.h"

/* Its largest error of O in live rows. False without memory. */
bool facts_eager_error(double *out, const facts_scene *scene);

#endif
