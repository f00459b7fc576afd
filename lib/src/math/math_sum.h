/* The gradient of a broadcast input is the sum over its broadcast dimensions. These functions
 * compute that sum for an engine whose kernels give the gradient of every element. */
#ifndef FATTN_MATH_SUM_H
#define FATTN_MATH_SUM_H

#include "core/context.h"
#include "fattn/fattn.h"
#include "math_kernel_list.h"
#include <gpu/gpu_module.h>

/* `to` becomes the sum of `from` over every dimension of extent > 1 in which to_strides is 0. Both
 * are addresses of the context's GPU and must not overlap. Each is bf16, f16 or f32. */
typedef struct fattn__sum {
    const void *from;
    void *to;
    int64_t dim[4];                    /* of `from` */
    int64_t strides[4], to_strides[4]; /* in elements; 0 in to_strides if the dimension is summed */
    int32_t dtype, to_dtype;           /* fattn_dtype */
    /* With to_starts, `to` is ragged: entry b begins at to_starts[b] * to_start_step elements (to_strides[0] is not read). It has
     * lengths[b * length_step] rows, or with length_sums lengths[b + 1] - lengths[b]. Rows past them are not written. */
    const void *to_starts;
    int64_t to_start_step;
    const int32_t *lengths;
    int32_t to_start_bits, length_step, length_sums, reserved;
} fattn__sum;

/* Loads the kernels of this context, once. Every plan that will launch one of them calls this function when it is made. For a
 * described device nothing is loaded. Threads: any.
 * Returns  FATTN_OK; FATTN_UNSUPPORTED (built without a CUDA compiler, or the device is older than sm_80); FATTN_ENVIRONMENT (the
 * driver
 *          refuses the kernels: its reason is in the message). */
fattn_status fattn__math_open(fattn_context *context);
/* Frees the kernels. The GPU's context must be current. Part of fattn_context_destroy. */
void fattn__math_close(fattn_context *context);

/* Enqueues the sum: fp32 accumulation in an order that depends only on the extents, so it repeats bit for bit. It needs no
 * workspace, allocates nothing, does not synchronise and can be captured. The GPU's context must be current
 * (cuDNN's engine: after fattn__enter). Returns  FATTN_OK; FATTN_INTERNAL (fattn__math_open was not called); FATTN_DEVICE_FAULT. */
fattn_status fattn__math_sum(const fattn_context *context, const fattn__sum *sum,
                             struct CUstream_st *stream);

/* fattn__math_sum. With `first` false the sum is added to the values in `to`, which must be f32 then
 * for the result to be the sum of all calls. */
fattn_status fattn__math_reduce(const fattn_context *context, const fattn__sum *sum, bool first,
                                struct CUstream_st *stream);

/* The kernels of a context, by name: loaded once, launched from many threads. */
#define FATTN__AS_KERNEL_(name) FATTN__KERNEL_##name,
typedef enum fattn__kernel {
    FATTN__KERNEL_LIST(FATTN__AS_KERNEL_) FATTN__KERNEL_COUNT
} fattn__kernel;
#undef FATTN__AS_KERNEL_

/* The kernels of lib/cuda, embedded in the library when it is built; empty without a CUDA compiler.
 */
extern const gpu_image fattn__math_image;

/* NULL, or one clause: the reason why this device cannot run the kernels. */
const char *fattn__math_lacks(const fattn_context *context);

/* Enqueues blocks of `threads`. `arguments` are those of cuLaunchKernel. The GPU's context must be
 * current. With 0 blocks nothing is launched. Returns FATTN_OK; FATTN_INTERNAL (not loaded);
 * FATTN_DEVICE_FAULT. */
fattn_status fattn__math_launch(const fattn_context *context, fattn__kernel which, int64_t blocks,
                                int threads, void **arguments, struct CUstream_st *stream);

#endif
