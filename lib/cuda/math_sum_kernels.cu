/* Sums of a tensor over some of its dimensions: the gradient of a broadcast tensor. `lanes` threads
 * take the terms of a result in turn and add their sums as a tree: the order depends only on the
 * extents. */
#include "math_band.cuh"

namespace fattn
{

/* Place of the i-th element of the kept part along one of its dimensions. */
__device__ __forceinline__ int64_t index_of(const fattn__sum_call &c, int64_t i, int wanted)
{
    if (c.summed[wanted])
        return 0;
#pragma unroll
    for (int axis = 3; axis > wanted; axis--)
        i /= c.summed[axis] ? 1 : c.dim[axis];
    return i % c.dim[wanted];
}

/* Offset of the i-th element of the kept (or summed) part, innermost dimension fastest. */
__device__ __forceinline__ int64_t offset_of(const fattn__sum_call &c, const int64_t stride[4],
                                             bool summed, int64_t i)
{
    int64_t offset = 0;
#pragma unroll
    for (int axis = 3; axis >= 0; axis--) {
        if ((c.summed[axis] != 0) != summed || c.dim[axis] == 1)
            continue;
        offset += i % c.dim[axis] * stride[axis];
        i /= c.dim[axis];
    }
    return offset;
}

__device__ __forceinline__ void sum(const fattn__sum_call &c)
{
    __shared__ float part[256];
    const int results = 256 / c.lanes; /* of a block, neighbours in neighbouring threads */
    const int lane = (int)threadIdx.x / results;
    const int64_t i = blockIdx.x * (int64_t)results + threadIdx.x % results;
    float total[4] = { 0, 0, 0, 0 };
    if (i < c.kept) {
        const int64_t from = offset_of(c, c.from.stride, false, i);
        int64_t k = lane;
        for (; k + 3 * c.lanes < c.terms; k += 4 * c.lanes)
#pragma unroll
            for (int j = 0; j < 4; j++)
                total[j] += load(c.from.at, c.from.dtype,
                                 from + offset_of(c, c.from.stride, true, k + j * c.lanes));
        for (; k < c.terms; k += c.lanes)
            total[0] += load(c.from.at, c.from.dtype, from + offset_of(c, c.from.stride, true, k));
    }
    part[threadIdx.x] = (total[0] + total[1]) + (total[2] + total[3]);
    __syncthreads();
    for (int half = c.lanes / 2; half > 0; half /= 2) {
        if (lane < half)
            part[threadIdx.x] += part[threadIdx.x + half * results];
        __syncthreads();
    }
    if (lane != 0 || i >= c.kept)
        return;
    int64_t to = offset_of(c, c.to.stride, false, i);
    if (c.to.starts != nullptr) { /* its stride of b is 0 */
        const int b = (int)index_of(c, i, 0);
        if (index_of(c, i, 2) >= length_of(c.lengths, c.length_step, c.length_sums, b, 1 << 30))
            return;
        to += begin_of(c.to, b);
    }
    const float before = c.first ? 0.0f : load(c.to.at, c.to.dtype, to);
    store(c.to.at, c.to.dtype, to, before + part[threadIdx.x]);
}

} // namespace fattn

extern "C" __global__ void __launch_bounds__(256)
    fattn_sum(const __grid_constant__ fattn__sum_call c)
{
    fattn::sum(c);
}
