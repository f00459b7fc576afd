/* fattn__math_sum, and the same added to what is there. */
#ifndef FATTN_MATH_REDUCE_H
#define FATTN_MATH_REDUCE_H

#include "math_sum.h"

/* `first` false: `to` keeps what it has and the sum is added; it must be f32 then for the result to be the sum of all. */
fattn_status fattn__math_reduce(const fattn_context *context, const fattn__sum *sum, bool first, struct CUstream_st *stream);

#endif
