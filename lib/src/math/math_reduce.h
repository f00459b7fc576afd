/* fattn__math_sum, with the choice to add to the existing values. */
#ifndef FATTN_MATH_REDUCE_H
#define FATTN_MATH_REDUCE_H

#include "math_sum.h"

/* With `first` false the sum is added to the values in `to`. `to` must be f32 then for the result
 * to be the sum of all calls. */
fattn_status fattn__math_reduce(const fattn_context *context, const fattn__sum *sum, bool first,
                                struct CUstream_st *stream);

#endif
