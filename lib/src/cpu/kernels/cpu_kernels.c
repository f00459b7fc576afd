#include "cpu_kernels.h"

const fattn__kernels *fattn__cpu_kernels(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
        return &fattn__kernels_v4;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &fattn__kernels_v3;
#endif
    return &fattn__kernels_base;
}
