/* What the products of all kernels share: the loop over the depth in two stages, and the way out through shared memory. */
#pragma once
#include "simt.cuh"

namespace fattn {

/* `Steps` says what is multiplied: more(), next(), fetch(core, shared, stage) and finish(...), which follow each other in this order. */
template <class Core, class Steps> __device__ __forceinline__ void accumulate(Core &core, typename Core::shared &s, Steps &steps)
{
    core.clear();
    if (!steps.more())
        return;
    steps.fetch(core, s, 0);
    steps.finish(core, s, 0);
    Core::wait();
    __syncthreads();
    for (int stage = 0;; stage ^= 1) {
        steps.next();
        const bool more = steps.more();
        if (more)
            steps.fetch(core, s, stage ^ 1);
        core.compute(s, stage);
        if (more)
            steps.finish(core, s, stage ^ 1);
        Core::wait();
        __syncthreads();
        if (!more)
            return;
    }
}

/* Calls emit(row of the tile, first column of the tile, four sums) for all of the tile; a warp takes 128 neighbouring columns. */
template <class Core, class Emit> __device__ __forceinline__ void write_out(const Core &core, typename Core::shared &s, Emit emit)
{
    constexpr int ACROSS = Core::BN / 4;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        core.lay_out(s, half);
        __syncthreads();
#pragma unroll 1
        for (int k = 0; k < 64 * ACROSS / THREADS; k++) { /* a count that does not depend on the thread: warps stay together */
            const int i = (int)threadIdx.x + k * THREADS;
            const float4 x = *(const float4 *)(s.out + i / ACROSS * Core::OUT_PITCH + i % ACROSS * 4);
            const float four[4] = { x.x, x.y, x.z, x.w };
            emit(half * 64 + i / ACROSS, i % ACROSS * 4, four);
        }
        __syncthreads();
    }
}

/* The way of a tile whose sums are not all finite: `sum(row, column, four)` adds term by term and leaves out what has no weight, so that
 * what lies behind a mask (NaN too) stays there. What is not finite by right comes out the same. */
template <int BN, class Sum, class Emit> __device__ __forceinline__ void write_carefully(Sum sum, Emit emit)
{
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < FATTN__TILE * (BN / 4); i += THREADS) {
        float four[4] = { 0, 0, 0, 0 };
        sum(i / (BN / 4), i % (BN / 4) * 4, four);
        emit(i / (BN / 4), i % (BN / 4) * 4, four);
    }
}

/* four += weight * the columns of a row of `m` from `column` on, as many as exist. */
__device__ __forceinline__ void add_row(float four[4], float weight, const fattn__matrix &m, const char *row, int column, int width)
{
    if (weight == 0.0f)
        return;
    for (int j = 0; j < 4 && column + j < width; j++)
        four[j] = fmaf(weight, load(row, m.dtype, column + j), four[j]);
}

/* The part of a matrix from (batch, head, row, column) on. */
__device__ __forceinline__ plane plane_of(const fattn__matrix &m, int batch, int head, int row, int column, int rows, int columns)
{
    return { row_at(m, batch, head, row) + column * bytes_of(m.dtype), m.stride[2], rows, columns, m.dtype, m.grain };
}

/* The whole aligned fours of a row of `m` may be stored at once. */
__device__ __forceinline__ bool in_fours(const fattn__matrix &m)
{
    return m.grain >= 4 * bytes_of(m.dtype);
}

/* A sum over chunks: what the earlier ones gave is added; true when this is the last one and `four` is the whole. */
__device__ __forceinline__ bool add_up(float *kept, float four[4], int count, float rescale, bool first, bool last)
{
#pragma unroll
    for (int j = 0; j < 4; j++) {
        if (j >= count)
            continue;
        if (!first)
            four[j] = fmaf(kept[j], rescale, four[j]);
        if (!last)
            kept[j] = four[j];
    }
    return last;
}

}

/* One kernel for each type that the tensor cores know, and the one in fp32. */
#define FATTN__KERNEL __launch_bounds__(256, 2)
