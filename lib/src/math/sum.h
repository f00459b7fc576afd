/* Sums over what an input broadcasts, and changes of type: a kernel that other backends borrow. */
#ifndef FATTN_MATH_SUM_H
#define FATTN_MATH_SUM_H

#include "../context.h"

/* to[i] = the sum over those j where to_strides is 0 of from[i, j], accumulated in fp32 in a fixed order, then rounded to to_dtype. Strides in
 * elements; dtypes bf16, f16, f32. Where nothing is summed it copies. The two do not overlap. */
typedef struct fattn__sum {
    const void *from;
    void *to;
    int64_t dim[4], strides[4]; /* of from */
    int64_t to_strides[4];      /* 0 where it is summed */
    int32_t dtype, to_dtype;
} fattn__sum;

/* Enqueues; the device's context is current. Returns FATTN_OK; FATTN_DEVICE_FAULT; FATTN_INTERNAL (built without a CUDA compiler). */
fattn_status fattn__math_sum(const fattn_context *context, const fattn__sum *sum, struct CUstream_st *stream);

#endif
