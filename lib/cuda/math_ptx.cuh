/* Instructions without a CUDA C function (bf16, f16, asynchronous copies, tensor cores) and their
 * types. Everything else in this folder is plain CUDA C, which lib/gpu/test/emulate.h can run
 * without a GPU. */
#pragma once
#include "math/math_params.h"

namespace fattn
{

struct bf16 {
    static constexpr int dtype = FATTN__BF16;
};
struct f16 {
    static constexpr int dtype = FATTN__F16;
};

#ifdef GPU_EMULATED
#include "test/tensor_instructions.h"
#else

__device__ __forceinline__ float from_f16(uint16_t x)
{
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
}

__device__ __forceinline__ uint32_t pack_bf16(float low, float high)
{
    uint32_t y;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
    return y;
}

__device__ __forceinline__ uint32_t pack_f16(float low, float high)
{
    uint32_t y;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
    return y;
}

/* The larger of two; NaN if one is NaN. */
__device__ __forceinline__ float larger(float a, float b)
{
    float y;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}

__device__ __forceinline__ uint32_t shared_address(const void *at)
{
    return (uint32_t)__cvta_generic_to_shared(at);
}

template <int BYTES>
__device__ __forceinline__ void copy_async(void *to, const void *from, int bytes)
{
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
                     "l"(from), "r"(bytes));
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(shared_address(to)),
                     "l"(from), "r"(bytes), "n"(BYTES));
}

/* One store to global memory. Without this the compiler splits a float4 near a branch, and a warp
 * then writes a quarter of each sector four times. */
__device__ __forceinline__ void write_16(void *to, const float x[4])
{
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(x[0]), "f"(x[1]),
                 "f"(x[2]), "f"(x[3])
                 : "memory");
}

__device__ __forceinline__ void write_8(void *to, uint32_t low, uint32_t high)
{
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(low), "r"(high) : "memory");
}

__device__ __forceinline__ void wait_for_copies()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* Four 8 x 8 matrices of 16 bits from shared memory, a row from each lane's address: lane l gets
 * elements 2 * (l % 4) and the next of row l / 4 of each. TRANSPOSED: of column l / 4. */
template <bool TRANSPOSED>
__device__ __forceinline__ void load_matrices(uint32_t out[4], const uint16_t *at)
{
    if (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                     : "r"(shared_address(at)));
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                     : "r"(shared_address(at)));
}

/* c (16 x 8) += a (16 x 16) b (16 x 8), spread over a warp as the instruction wants it. */
template <class T>
__device__ __forceinline__ void multiply(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    if (T::dtype == FATTN__BF16)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, "
                     "%5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    else
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, "
                     "%6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* c (16 x 8) = a (16 x 8) b (8 x 8), each of them the sum of two TF32 numbers, without the product
 * of the two low ones. */
__device__ __forceinline__ void multiply_split(float c[4], const uint32_t a_high[4],
                                               const uint32_t a_low[4], const uint32_t b_high[2],
                                               const uint32_t b_low[2])
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%8, %9, %10, %11}, "
        "{%12, %13}, {%16, %16, %16, %16};\n\t"
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%14, %15}, {%0, %1, %2, %3};\n\t"
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%12, %13}, {%0, %1, %2, %3};"
        : "=&f"(c[0]), "=&f"(c[1]), "=&f"(c[2]), "=&f"(c[3])
        : "r"(a_high[0]), "r"(a_high[1]), "r"(a_high[2]), "r"(a_high[3]), "r"(a_low[0]),
          "r"(a_low[1]), "r"(a_low[2]), "r"(a_low[3]), "r"(b_high[0]), "r"(b_high[1]),
          "r"(b_low[0]), "r"(b_low[1]), "f"(0.0f));
}

#endif

} // namespace fattn
