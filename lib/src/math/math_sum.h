/* The gradient of a broadcast input is the sum over what it broadcasts. An engine whose kernels give the gradient of every element has
 * it summed here. */
#ifndef FATTN_MATH_SUM_H
#define FATTN_MATH_SUM_H

#include "core/context.h"

/* `to` becomes the sum of `from` over every dimension of extent > 1 where to_strides is 0. Addresses of the context's GPU. The two may not
 * overlap. bf16, f16 or f32 each. */
typedef struct fattn__sum {
    const void *from;
    void *to;
    int64_t dim[4]; /* of `from` */
    int64_t strides[4], to_strides[4]; /* elements; any, 0 in `to` where summed */
    int32_t dtype, to_dtype;           /* fattn_dtype */
    /* Packed `to` when to_starts is not NULL: entry b begins at to_starts[b] * to_start_step elements (to_strides[0] is not read) and has
     * lengths[b * length_step] rows, or with length_sums lengths[b + 1] - lengths[b]; rows past them are left alone. */
    const void *to_starts;
    int64_t to_start_step;
    const int32_t *lengths;
    int32_t to_start_bits, length_step, length_sums, reserved;
} fattn__sum;

/* Loads the kernels of this context, once; every plan that will launch one of them calls it when it is made. On a described device there
 * is nothing to load. Threads: any.
 * Returns  FATTN_OK; FATTN_UNSUPPORTED (built without a CUDA compiler, or the device is older than sm_80); FATTN_ENVIRONMENT (the driver
 *          refuses the kernels: its words are in the message). */
fattn_status fattn__math_open(fattn_context *context);
/* Frees them; the GPU's context is current. Part of fattn_context_destroy. */
void fattn__math_close(fattn_context *context);

/* Enqueues the sum: fp32 accumulation in an order that only the extents decide, so that it repeats bit for bit; no workspace, nothing
 * allocated, no synchronisation, capturable. The GPU's context is current (cuDNN's engine: after fattn__enter).
 * Returns  FATTN_OK; FATTN_INTERNAL (fattn__math_open was not called); FATTN_DEVICE_FAULT. */
fattn_status fattn__math_sum(const fattn_context *context, const fattn__sum *sum, struct CUstream_st *stream);

#endif
