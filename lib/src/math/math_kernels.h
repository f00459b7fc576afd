/* The kernels of a context, by name: loaded once, launched from many threads. */
#ifndef FATTN_MATH_KERNELS_H
#define FATTN_MATH_KERNELS_H

#include <gpu/gpu_module.h>

#include "fattn/fattn.h"
#include "math_kernel_list.h"

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
