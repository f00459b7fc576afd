/* The instructions that CUDA C has no word for. Everything else in this folder is plain CUDA C,
 * which lib/gpu/test/emulate.h can run without a GPU. */
#pragma once
#include "call.h"

namespace fref
{

#ifdef GPU_EMULATED
#include "test/double_instructions.h"
#else

/* Dynamic shared memory; oracle_kernels.h says how much. */
#define FREF_SHARED(name) extern __shared__ __align__(16) double name[]

__device__ __forceinline__ void copy_async(double *to, const double *from)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from));
}

__device__ __forceinline__ void commit_copies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* All but the newest `n` groups have come. */
template <int n> __device__ __forceinline__ void wait_for_copies()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory");
}

/* Brings what lies there nearer, into the L2 cache. */
__device__ __forceinline__ void prefetch(const double *from)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
}

/* c (16 x 8) += a (16 x 8) b (8 x 8), spread over a warp: with g = lane / 4 and t = lane % 4, a
 * holds (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4); b (t, g), (t + 4, g); c (g, 2t), (g, 2t +
 * 1), (g + 8, 2t), (g + 8, 2t + 1). */
__device__ __forceinline__ void multiply(double c[4], const double a[4], const double b[2])
{
#if __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, "
                 "%7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
    for (int half = 0; half < 2; half++)
        for (int k = 0; k < 2; k++)
            asm volatile(
                "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                : "+d"(c[2 * half]), "+d"(c[2 * half + 1])
                : "d"(a[half + 2 * k]), "d"(b[k]));
#endif
}

#endif

} // namespace fref
