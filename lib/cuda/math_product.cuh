/* Shared by the products of all kernels: the loop over the depth in two stages, and the output
 * through shared memory. */
#pragma once
#include "math_split_core.cuh"

namespace fattn
{

/* `Steps` says what is multiplied: more(), next(), fetch(core, shared, stage) and finish(...),
 * which follow each other in this order. Elements of a matrix are of the core's type, or of any
 * where that is fp32. Only the first `columns` of the product need be right. */
template <class Core, class Steps>
__device__ __forceinline__ void accumulate(Core &core, typename Core::shared &s, Steps &steps,
                                           int columns)
{
    core.sums.clear();
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
        core.compute(s, stage, columns);
        if (more)
            steps.finish(core, s, stage ^ 1);
        Core::wait();
        __syncthreads();
        if (!more)
            return;
    }
}

/* Calls emit(row of the tile, first column of the tile, four sums, result of read) for the whole
 * tile; a warp takes 128 neighbouring columns, or twice 64. read(row, column, four) runs earlier:
 * it may load the values that emit replaces. AT_ONCE rows of a thread overlap in time if neither
 * function has a branch. */
template <int AT_ONCE, class Core, class Read, class Emit>
__device__ __forceinline__ void write_out(const Core &core, typename Core::shared &s, Read read,
                                          Emit emit)
{
    constexpr int ACROSS = Core::BN / 4, ROWS = Core::THREADS / ACROSS;
    const int column = (int)threadIdx.x % ACROSS * 4;
    int row = (int)threadIdx.x / ACROSS;
    float next[AT_ONCE][4];
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++)
        read(row + u * ROWS, column, next[u]);
#pragma unroll 1
    for (int half = 0; half < 2; half++) {
        core.sums.lay_out(s.out, half);
        __syncthreads();
#pragma unroll 1
        for (int k = 0; k < 64 / ROWS;
             k += AT_ONCE) { /* a count that does not depend on the thread: warps stay together */
            float four[AT_ONCE][4], now[AT_ONCE][4];
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++) {
                const float4 x =
                    *(const float4 *)(s.out + (row + u * ROWS) % 64 * Core::block::OUT_PITCH +
                                      column);
                four[u][0] = x.x, four[u][1] = x.y, four[u][2] = x.z, four[u][3] = x.w;
#pragma unroll
                for (int j = 0; j < 4; j++)
                    now[u][j] = next[u][j];
                if (half == 0 || k + AT_ONCE < 64 / ROWS)
                    read(row + (u + AT_ONCE) * ROWS, column, next[u]);
            }
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++)
                emit(row + u * ROWS, column, four[u], now[u]);
            row += AT_ONCE * ROWS;
        }
        __syncthreads();
    }
}

__device__ __forceinline__ void read_nothing(int, int, float four[4])
{
#pragma unroll
    for (int j = 0; j < 4; j++)
        four[j] = 0;
}

/* For a tile with sums that are not finite. `sum(row, column, four)` adds term by term and skips
 * terms with weight 0, so that masked values (NaN too) do not reach the sum. A sum that must not be
 * finite has the same result. */
template <class Core, class Sum, class Read, class Emit>
__device__ __forceinline__ void write_carefully(Sum sum, Read read, Emit emit)
{
    constexpr int ACROSS = Core::BN / 4;
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < FATTN__TILE * ACROSS; i += Core::THREADS) {
        float four[4] = { 0, 0, 0, 0 }, before[4] = { 0, 0, 0, 0 };
        read(i / ACROSS, i % ACROSS * 4, before);
        sum(i / ACROSS, i % ACROSS * 4, four);
        emit(i / ACROSS, i % ACROSS * 4, four, before);
    }
}

/* four += weight * the columns of a row of `m` from `column` on, as many as exist. */
__device__ __forceinline__ void add_row(float four[4], float weight, const fattn__matrix &m,
                                        const char *row, int column, int width)
{
    if (weight == 0.0f)
        return;
    for (int j = 0; j < 4 && column + j < width; j++)
        four[j] = fmaf(weight, load(row, m.dtype, column + j), four[j]);
}

/* The part of a matrix from (batch, head, row, column) on. */
__device__ __forceinline__ plane plane_of(const fattn__matrix &m, int batch, int head, int row,
                                          int column, int rows, int columns)
{
    const int64_t begin = begin_of(m, batch);
    return { row_at(m, begin, head, row) + column * bytes_of(m.dtype),
             m.stride[2],
             rows,
             columns,
             m.dtype,
             grain_at(m, begin) };
}

/* The whole aligned fours of a row of an entry of `m` may be stored at once. */
__device__ __forceinline__ bool in_fours(const fattn__matrix &m, int64_t begin)
{
    return grain_at(m, begin) >= 4 * bytes_of(m.dtype);
}

__device__ __forceinline__ float factor_of(float factor, const float *scale)
{
    return scale == nullptr ? factor : factor * *scale;
}

/* A sum over chunks: adds the sums of earlier chunks. True if this is the last chunk and `four` is
 * complete. */
__device__ __forceinline__ bool add_up(float *kept, float four[4], int count, float rescale,
                                       bool first, bool last)
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

} // namespace fattn

#define FATTN__KERNEL(threads) __launch_bounds__(threads, 2)
/* A kernel for each core: DEFINE(type, width, threads, core). */
#define FATTN__EVERY_CORE(DEFINE, width, ...)                                                      \
    DEFINE(bf16, width, FATTN__THREADS, tensor_core<bf16, width, __VA_ARGS__>)                     \
    DEFINE(f16, width, FATTN__THREADS, tensor_core<f16, width, __VA_ARGS__>)                       \
    DEFINE(f32, width, FATTN__THREADS_F32, split_core<width, __VA_ARGS__>)
