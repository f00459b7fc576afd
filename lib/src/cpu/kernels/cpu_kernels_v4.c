/* x86-64-v4: AVX-512, 32 registers of 16. */
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(                                                                      \
    __attribute__((target("avx2,fma,avx512f,avx512vl,avx512dq,avx512bw"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,avx512f,avx512vl,avx512dq,avx512bw")
#endif
#endif
#define WIDTH 16
#define TALL 6
#define WIDE 4
#define KERNELS fattn__kernels_v4
#include "cpu_kernels_body.h"
#if defined(__x86_64__) && defined(__clang__)
#pragma clang attribute pop
#endif
