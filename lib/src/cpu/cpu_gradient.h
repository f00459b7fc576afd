/* What the gradients of a backward call have in common: tiles of probabilities and of d(loss)/d(score), recomputed. Each element of a gradient is
 * summed by one thread in one order, so results do not depend on the number of threads. */
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
    bool q_finite, d_o_finite, k_finite; /* what is loaded, in the copies that second products read */
    int32_t reduced_place;               /* what a reduction sums */
    float amax[FATTN__AMAX_COUNT];       /* 8-bit types: the largest so far */
} fattn__gradient;

fattn__gradient fattn__gradient_of(const fattn__call *call, char *scratch, int thread);
/* Loads rows of Q and dO, their Stats and D = sum_c dO O. Rows are those of the entry. */
void fattn__gradient_rows(fattn__gradient *g, int64_t b, int64_t h, int64_t row0, int64_t rows);
/* Loads the keys and values that query head `h` sees, also transposed. */
void fattn__gradient_keys(fattn__gradient *g, int64_t b, int64_t h, int64_t key0, int64_t keys);
/* The copies that second products read: with block-scaled types those quantised along the summed dimension. */
float *fattn__gradient_q(const fattn__gradient *g);
float *fattn__gradient_k(const fattn__gradient *g);
float *fattn__gradient_do(const fattn__gradient *g);
/* w.s becomes P', what dropout left of P. `place` says what w.dp becomes: d(loss)/d(modified score) = P (dO.v - D) of PLACE_MODIFIED, d(loss)/d(score) of PLACE_SCORE, or
 * a place of score_mod's gradient program. With `values_only` w.dp is not touched. */
void fattn__gradient_tile(fattn__gradient *g, const fattn__band *band, int64_t b, int64_t h, int64_t row0, int64_t rows, int64_t key0, int64_t keys,
                          int32_t place, bool values_only);

/* From where to where an output's index runs over an input's: all of it when it is summed, itself when not. */
typedef struct fattn__span {
    int64_t first, last;
} fattn__span;

static inline fattn__span fattn__span_of(bool summed, int64_t index, int64_t extent)
{
    return summed ? (fattn__span){ 0, extent } : (fattn__span){ index, index + 1 };
}

/* dbias, and the gradients of score_mod's tensors: sums of tiles over what the tensor broadcasts. */
typedef struct fattn__reduction {
    void *to;
    int32_t dtype;
    int32_t place; /* as above */
    int64_t dim[4], strides[4]; /* extents 1 are summed over, where the problem's are not 1 */
} fattn__reduction;

enum { FATTN__MOST_REDUCTIONS = 1 + FATTN_MOD_MAX_TENSORS };
int fattn__reductions_of(const fattn_problem *p, const fattn_tensors *t, fattn__reduction out[FATTN__MOST_REDUCTIONS]);
int64_t fattn__reduction_tasks(const fattn__reduction *r);
void fattn__reduction_run(fattn__gradient *g, const fattn__reduction *r, int64_t task);

/* The gradient of head `h`'s sink: minus the sum over all rows of exp(sink - Stats) D. */
void fattn__sink_run(fattn__gradient *g, int64_t h);

#endif
