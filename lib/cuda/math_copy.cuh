/* Copies a part of an operand from global to shared memory. cp.async copies 16 bytes at once, or as
 * many as the alignment of the rows allows. Elements of another type than the core's, or with less
 * alignment, are copied one by one. */
#pragma once
#include "math_band.cuh"

namespace fattn
{

/* A part of an operand in global memory: `rows` of `columns` exist; elements outside read as zero.
 */
struct plane {
    const char *at;
    int64_t stride; /* elements */
    int rows, columns;
    int dtype, grain;
};

/* 16 bytes to shared memory, the first `count` elements of them from global memory and the rest
 * zero. */
template <int BYTES, class E>
__device__ __forceinline__ void copy_16(E *to, const E *from, const void *safe, int count)
{
    constexpr int EACH = BYTES / (int)sizeof(E), ALL = 16 / (int)sizeof(E);
    if (count == ALL) {
#pragma unroll
        for (int i = 0; i < ALL; i += EACH)
            copy_async<BYTES>(to + i, from + i, BYTES);
        return;
    }
#pragma unroll
    for (int i = 0; i < ALL; i += EACH) {
        const int here = min(max(count - i, 0), EACH);
        copy_async<BYTES>(to + i, here > 0 ? (const void *)(from + i) : safe,
                          here * (int)sizeof(E));
    }
}

/* The same for elements of 16 bits as they are, and for `from` of any type as fp32; `from` counts
 * in the plane's elements. */
__device__ __forceinline__ void copy_16_slowly(uint16_t *to, const plane &p, int64_t from,
                                               int count)
{
    uint32_t x[4] = { 0, 0, 0, 0 };
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (i < count)
            x[i / 2] |= (uint32_t)((const uint16_t *)p.at)[from + i] << (i % 2 * 16);
    *(uint4 *)to = make_uint4(x[0], x[1], x[2], x[3]);
}

__device__ __forceinline__ void copy_16_slowly(float *to, const plane &p, int64_t from, int count)
{
    float x[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        x[i] = i < count ? load(p.at, p.dtype, from + i) : 0.0f;
    *(float4 *)to = make_float4(x[0], x[1], x[2], x[3]);
}

/* ROWS x COLUMNS elements to shared memory, in their order, by THREADS threads. */
template <int THREADS, int ROWS, int COLUMNS, int PITCH, class E>
__device__ __forceinline__ void fetch(E *to, const plane &p)
{
    constexpr int EACH = 16 / (int)sizeof(E), ACROSS = COLUMNS / EACH,
                  STEP = THREADS / ACROSS; /* rows that are copied at once */
    const int grain = sizeof(E) == 4 && p.dtype != FATTN__F32 ? 2 : p.grain;
    const int row0 = (int)threadIdx.x / ACROSS, column = (int)threadIdx.x % ACROSS * EACH;
    const int64_t from0 = row0 * p.stride + column;
    to += row0 * PITCH + column;
    if (grain >= 16 && p.rows >= ROWS &&
        p.columns >= COLUMNS) { /* nothing is missing, as nearly always */
#pragma unroll
        for (int i = 0; i < ROWS; i += STEP)
            copy_async<16>(to + i * PITCH, (const E *)p.at + from0 + i * p.stride, 16);
        return;
    }
#pragma unroll 1
    for (int i = 0; i < ROWS; i += STEP) {
        const int count = row0 + i < p.rows ? min(max(p.columns - column, 0), EACH) : 0;
        const int64_t from = from0 + i * p.stride;
        E *at = to + i * PITCH;
        if (grain >= 16)
            copy_16<16>(at, (const E *)p.at + from, p.at, count);
        else if (grain == 8)
            copy_16<8>(at, (const E *)p.at + from, p.at, count);
        else if (grain == 4)
            copy_16<4>(at, (const E *)p.at + from, p.at, count);
        else
            copy_16_slowly(at, p, from, count);
    }
}

} // namespace fattn
