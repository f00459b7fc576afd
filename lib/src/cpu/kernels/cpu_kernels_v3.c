/* x86-64-v3: AVX2 and fused multiply-add, 16 registers of 8. */
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#endif
#define WIDTH 8
#define TALL 6
#define WIDE 2
#define KERNELS fattn__kernels_v3
#include "cpu_kernels_body.h"
#if defined(__x86_64__) && defined(__clang__)
#pragma clang attribute pop
#endif
