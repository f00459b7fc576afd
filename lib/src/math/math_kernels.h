/* The kernels of a context, by name: loaded once, launched from many threads. */
#ifndef FATTN_MATH_KERNELS_H
#define FATTN_MATH_KERNELS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "fattn/fattn.h"
#include "math_kernel_list.h"

#define FATTN__AS_KERNEL_(name) FATTN__KERNEL_##name,
typedef enum fattn__kernel { FATTN__KERNEL_LIST(FATTN__AS_KERNEL_) FATTN__KERNEL_COUNT } fattn__kernel;
#undef FATTN__AS_KERNEL_

struct CUmod_st;
struct CUfunc_st;

/* A member of fattn_context. All zero: not loaded. */
typedef struct fattn__kernels {
    _Atomic bool loaded;
    struct CUmod_st *module;
    struct CUfunc_st *functions[FATTN__KERNEL_COUNT];
} fattn__kernels;

/* NULL, or why this device cannot run the kernels: one clause. */
const char *fattn__math_lacks(const fattn_context *context);
bool fattn__math_image_present(void);

/* Enqueues blocks of `threads`; `arguments` as cuLaunchKernel's. The GPU's context is current. Nothing is launched for 0 blocks.
 * Returns FATTN_OK; FATTN_INTERNAL (not loaded); FATTN_DEVICE_FAULT. */
fattn_status fattn__math_launch(const fattn_context *context, fattn__kernel which, int64_t blocks, int threads, void **arguments,
                                struct CUstream_st *stream);

#endif
