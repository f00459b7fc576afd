/* The values with one number per row: the softmax's maximum and sum, Stats, D = sum of dO * O, and
 * a sink's gradient. */
#include "math_score.cuh"

namespace fattn
{

/* Combines the row's tiles, in their order, with the result of earlier chunks of keys. One thread
 * per row. */
__device__ __forceinline__ void statistics(const fattn__call &c)
{
    const int64_t rows = (int64_t)c.row_tiles * FATTN__TILE,
                  i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i >= rows * c.heads)
        return;
    const int z = (int)(i / rows), row = (int)(i % rows),
              row_tile = row / FATTN__TILE * FATTN__TILE;
    const place at = place_of(c, z);
    const band seen = band_of(c, at.batch);
    const fattn__adjustments &m = c.adjustments;
    const bool sinks = m.sink != nullptr && c.row0 + row < seen.len_q;
    const float before = !c.first ? c.row_max[i] : sinks ? m.sink[at.head] : minus_infinity();
    float top = before, sum = 0;
    for (int tile = 0; tile < c.key_tiles; tile++)
        if (seen.touches(c.row0 + row_tile, c.key0 + tile * FATTN__TILE))
            top = larger(top, c.partial_max[((int64_t)z * c.key_tiles + tile) * rows + row]);
    const float rescale = weight_of(before, top);
    if (!c.first)
        sum = c.row_sum[i] * rescale;
    else if (sinks)
        sum = rescale;
    for (int tile = 0; tile < c.key_tiles; tile++)
        if (seen.touches(c.row0 + row_tile, c.key0 + tile * FATTN__TILE)) {
            const int64_t slot = ((int64_t)z * c.key_tiles + tile) * rows + row;
            sum = fmaf(c.partial_sum[slot], weight_of(c.partial_max[slot], top), sum);
        }
    c.row_max[i] = top;
    c.row_sum[i] = !c.last             ? sum
                   : m.kept != nullptr ? sum / *m.kept_factor
                   : m.seed != nullptr ? sum / m.factor
                                       : sum;
    c.row_rescale[i] = rescale;
    if (!c.last || c.row0 + row >= rows_of(c.stats, seen.len_q, c.seq_q))
        return;
    const int64_t to = begin_of(c.stats, at.batch) + at.head * c.stats.stride[1] +
                       (c.row0 + row) * c.stats.stride[2];
    if (c.stats_out != nullptr)
        c.stats_out[to] = top == minus_infinity() ? top
                          : c.base_2              ? fmaf(top, 1.44269504f, log2f(sum))
                                                  : top + logf(sum);
    if (c.max_out != nullptr)
        c.max_out[to] = top;
    if (c.sum_exp_out != nullptr)
        c.sum_exp_out[to] = sum;
}

/* D = sum of left * right along a row of `depth`. One warp a row. */
__device__ __forceinline__ void dot(const fattn__call &c)
{
    const int64_t rows = (int64_t)c.row_tiles * FATTN__TILE,
                  i = (blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / 32;
    if (i >= rows * c.heads)
        return;
    const place at = place_of(c, (int)(i / rows));
    const int row = c.row0 + (int)(i % rows), lane = (int)threadIdx.x % 32;
    float sum = 0;
    if (row < band_of(c, at.batch).len_q) {
        const char *left = row_at(c.left, begin_of(c.left, at.batch), at.head, row);
        const char *right = row_at(c.right, begin_of(c.right, at.batch), at.head, row);
        for (int d = lane; d < c.depth; d += 32)
            sum = fmaf(load(left, c.left.dtype, d), load(right, c.right.dtype, d), sum);
    }
#pragma unroll
    for (int k = 16; k > 0; k /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, k);
    if (lane == 0)
        c.row_dot[i] = sum;
}

/* d(loss)/d(sink) of each row: the sink has a weight but no value. */
__device__ __forceinline__ void sink(const fattn__call &c)
{
    const int64_t rows = (int64_t)c.row_tiles * FATTN__TILE,
                  i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i >= rows * c.heads)
        return;
    const place at = place_of(c, (int)(i / rows));
    const int row = c.row0 + (int)(i % rows);
    float gradient = 0;
    if (row < band_of(c, at.batch).len_q) {
        const float *stats =
            (const float *)c.stats.at + begin_of(c.stats, at.batch) + at.head * c.stats.stride[1];
        gradient =
            -weight_of(c.adjustments.sink[at.head], stats[row * c.stats.stride[2]]) * c.row_dot[i];
    }
    c.row_sink[i] = gradient;
}

} // namespace fattn

extern "C" __global__ void FATTN__KERNEL(FATTN__THREADS)
    fattn_statistics(const __grid_constant__ fattn__call c)
{
    fattn::statistics(c);
}

extern "C" __global__ void FATTN__KERNEL(FATTN__THREADS)
    fattn_sink(const __grid_constant__ fattn__call c)
{
    fattn::sink(c);
}

extern "C" __global__ void FATTN__KERNEL(FATTN__THREADS)
    fattn_dot(const __grid_constant__ fattn__call c)
{
    fattn::dot(c);
}
