/* The kernels of a context, by name: loaded once, launched from many threads. */
#ifndef FATTN_MATH_KERNELS_H
#define FATTN_MATH_KERNELS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "fattn/fattn.h"

/* Every kernel of lib/cuda, once. A family's members follow each other as the types do (bf16, f16, f32) and then as the widths (64, 128). */
#define FATTN__KERNEL_LIST(X)                                                                                                      \
    X(scores_bf16) X(scores_f16) X(scores_f32)                                                                                     \
    X(gradients_bf16) X(gradients_f16) X(gradients_f32)                                                                            \
    X(output_bf16_64) X(output_bf16_128) X(output_f16_64) X(output_f16_128) X(output_f32_64) X(output_f32_128)                     \
    X(over_keys_bf16_64) X(over_keys_bf16_128) X(over_keys_f16_64) X(over_keys_f16_128) X(over_keys_f32_64) X(over_keys_f32_128)   \
    X(over_rows_bf16_64) X(over_rows_bf16_128) X(over_rows_f16_64) X(over_rows_f16_128) X(over_rows_f32_64) X(over_rows_f32_128)   \
    X(statistics) X(dot) X(modify) X(modify_weights) X(modify_gradients) X(sum)

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
