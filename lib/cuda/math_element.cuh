/* Elements: bf16, f16 and f32 as fp32 and back (round to nearest even), without a header of the
 * toolkit's. */
#pragma once
#include "math_ptx.cuh"

namespace fattn
{

__device__ __forceinline__ float from_bf16(uint16_t x)
{
    return __uint_as_float((uint32_t)x << 16);
}

template <class T> __device__ __forceinline__ uint32_t pack(float low, float high)
{
    return T::dtype == FATTN__BF16 ? pack_bf16(low, high) : pack_f16(low, high);
}

__device__ __forceinline__ int bytes_of(int dtype)
{
    return dtype == FATTN__F32 ? 4 : 2;
}

__device__ __forceinline__ float load(const char *at, int dtype, int64_t i)
{
    if (dtype == FATTN__F32)
        return ((const float *)at)[i];
    const uint16_t x = ((const uint16_t *)at)[i];
    return dtype == FATTN__BF16 ? from_bf16(x) : from_f16(x);
}

__device__ __forceinline__ void store(char *at, int dtype, int64_t i, float x)
{
    if (dtype == FATTN__F32)
        ((float *)at)[i] = x;
    else
        ((uint16_t *)at)[i] = (uint16_t)(dtype == FATTN__BF16 ? pack_bf16(x, 0) : pack_f16(x, 0));
}

/* `x` after a store. */
__device__ __forceinline__ float rounded(int dtype, float x)
{
    if (dtype == FATTN__F32)
        return x;
    return dtype == FATTN__BF16 ? from_bf16((uint16_t)pack_bf16(x, 0))
                                : from_f16((uint16_t)pack_f16(x, 0));
}

/* Four neighbours, of which `count` exist; `whole`: at a multiple of their size. */
__device__ __forceinline__ void store4(char *at, int dtype, int64_t i, const float x[4], int count,
                                       bool whole)
{
    if (whole && count >= 4) {
        if (dtype == FATTN__F32)
            write_16((float *)at + i, x);
        else if (dtype == FATTN__BF16)
            write_8((uint16_t *)at + i, pack_bf16(x[0], x[1]), pack_bf16(x[2], x[3]));
        else
            write_8((uint16_t *)at + i, pack_f16(x[0], x[1]), pack_f16(x[2], x[3]));
        return;
    }
#pragma unroll
    for (int j = 0; j < 4; j++)
        if (j < count)
            store(at, dtype, i + j, x[j]);
}

__device__ __forceinline__ float minus_infinity()
{
    return __uint_as_float(0xff800000u);
}

__device__ __forceinline__ bool finite(float x)
{
    return (__float_as_uint(x) & 0x7f800000u) != 0x7f800000u;
}

/* exp(score - top) with full precision (expf: 2 ulp); 0 where nothing is seen, whatever `top` is.
 */
__device__ __forceinline__ float weight_of(float score, float top)
{
    const float weight = expf(score - top); /* of every score: no branch */
    return (int)(score == minus_infinity()) | (int)(top == minus_infinity()) ? 0.0f : weight;
}

} // namespace fattn
