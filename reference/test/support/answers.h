/* All that the reference says about one problem, in memory of one owner. */
#ifndef FREF_TESTING_ANSWERS_H
#define FREF_TESTING_ANSWERS_H

#include "problems.h"

typedef struct answers {
    fref_forward_out f;
    fref_backward_out g;
    int64_t rows, count_o, count_dq, count_dk, count_dv, count_dbias;
    double *memory;
    size_t bytes;
} answers;

/* Forward and backward (from the data's o and stats). Every array starts as NaN, so that what is
 * not written shows. */
void answers_create(answers *out, const data *d, const fref_rounding *rounding);
void answers_destroy(answers *a);

#endif
