/* The common part of the gradients of a backward call: tiles of probabilities and of
 * d(loss)/d(score), which are recomputed. One thread sums each element of a gradient, in one order,
 * so results do not depend on the number of threads. */
#ifndef FATTN_CPU_GRADIENT_H
#define FATTN_CPU_GRADIENT_H

#include "cpu_call.h"
#include "cpu_scores.h"
#include "cpu_scratch.h"
#include "fattn/score_mod.h"

enum { FATTN__PLACE_NONE = -1, FATTN__PLACE_SCORE = -2, FATTN__PLACE_MODIFIED = -3 };

typedef struct fattn__gradient {
    const fattn__call *c;
    fattn__scratch w;
    bool q_finite, d_o_finite, k_finite; /* no infinity or NaN in the loaded rows and keys, in the
                                            copies for the second products */
    int32_t reduced_place;               /* the node that a reduction sums */
    float amax[FATTN__AMAX_COUNT];       /* 8-bit types: the largest magnitudes so far */
} fattn__gradient;

fattn__gradient fattn__gradient_of(const fattn__call *call, char *scratch, int thread);
/* Loads the tile's rows of Q and dO, their Stats and D = sum_c dO O. */
void fattn__gradient_rows(fattn__gradient *g, const fattn__scores *at);
/* Loads the keys and values that the tile's query head sees, also transposed. */
void fattn__gradient_keys(fattn__gradient *g, const fattn__scores *at);
/* The copies for the second products; with block-scaled types they are quantised along the summed
 * dimension. */
float *fattn__gradient_q(const fattn__gradient *g);
float *fattn__gradient_k(const fattn__gradient *g);
float *fattn__gradient_do(const fattn__gradient *g);
/* w.s becomes P', P after dropout. `place` decides about w.dp. PLACE_MODIFIED: d(loss)/d(modified
 * score) = P (dO.v - D). PLACE_SCORE: d(loss)/d(score). Otherwise: a node of score_mod's gradient
 * program. With `values_only` w.dp is not touched. */
void fattn__gradient_tile(fattn__gradient *g, const fattn__scores *at, int32_t place,
                          bool values_only);

/* The range of an input's index for one index of an output: all of it if the dimension is summed,
 * otherwise the index itself. */
typedef struct fattn__span {
    int64_t first, last;
} fattn__span;

static inline fattn__span fattn__span_of(bool summed, int64_t index, int64_t extent)
{
    return summed ? (fattn__span){ 0, extent } : (fattn__span){ index, index + 1 };
}

/* dbias, and the gradients of score_mod's tensors: sums of tiles over the broadcast dimensions of
 * the tensor. */
typedef struct fattn__reduction {
    void *to;
    int32_t dtype;
    int32_t place;              /* as above */
    int64_t dim[4], strides[4]; /* an extent of 1 is summed over if the problem's is larger */
} fattn__reduction;

enum { FATTN__MOST_REDUCTIONS = 1 + FATTN_MOD_MAX_TENSORS };
int fattn__reductions_of(const fattn_problem *p, const fattn_tensors *t,
                         fattn__reduction out[FATTN__MOST_REDUCTIONS]);
int64_t fattn__reduction_tasks(const fattn__reduction *r);
void fattn__reduction_run(fattn__gradient *g, const fattn__reduction *r, int64_t task);

/* The gradient of head `h`'s sink: minus the sum over all rows of exp(sink - Stats) D. */
void fattn__sink_run(fattn__gradient *g, int64_t h);

#endif
