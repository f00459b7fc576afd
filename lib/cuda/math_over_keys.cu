/* Sums over keys: O = softmax(S) V from scores, dQ = dS K from stored weights. A tile of 128 rows x
 * 64 or 128 channels is one block's. */
#include "math_score.cuh"

namespace fattn
{

/* Along the keys that a row tile sees. */
template <bool SOFTMAX> struct key_steps {
    plane left, right; /* left: the weights; of scores only `at` and `stride` count */
    const float *top;

    __device__ __forceinline__ bool more() const
    {
        return right.rows > 0;
    }
    template <class Core>
    __device__ __forceinline__ void fetch(Core &core, typename Core::shared &s, int stage)
    {
        if (SOFTMAX)
            core.fetch_scores((const float *)left.at, left.stride);
        else
            core.fetch_left(s, stage, left);
        core.fetch_right(s, stage, right);
        left.at += Core::DEPTH * (SOFTMAX ? 4 : bytes_of(Core::fp32 ? left.dtype : Core::dtype));
        right.at += Core::DEPTH * right.stride * bytes_of(Core::fp32 ? right.dtype : Core::dtype);
        right.rows -= Core::DEPTH;
    }
    __device__ __forceinline__ void next()
    {
    }
    template <class Core>
    __device__ __forceinline__ void finish(Core &core, typename Core::shared &s, int stage)
    {
        if (SOFTMAX)
            core.finish_scores(s, stage, top);
    }
};

template <class Core, bool SOFTMAX> __device__ __forceinline__ void over_keys(const fattn__call &c)
{
    __shared__ __align__(16) typename Core::shared s;
    __shared__ float top[FATTN__TILE];
    const int columns = (c.width + Core::BN - 1) / Core::BN;
    const int column0 = (int)(blockIdx.x % columns) * Core::BN, rest = (int)(blockIdx.x / columns);
    const place at = place_of(c, rest / c.row_tiles);
    const band seen = band_of(c, at.batch);
    const int row0 = rest % c.row_tiles * FATTN__TILE, head = at.head / c.group;
    const int64_t slot0 = ((int64_t)at.z * c.row_tiles) * FATTN__TILE + row0;
    if (SOFTMAX) {
        if (threadIdx.x < FATTN__TILE)
            top[threadIdx.x] = c.row_max[slot0 + threadIdx.x];
        __syncthreads();
    }
    range k = seen.keys_of_tile(c.row0 + row0);
    k.begin = max(k.begin, c.key0) / Core::DEPTH * Core::DEPTH;
    k.end = min(k.end, c.key0 + c.key_tiles * FATTN__TILE);
    const int bytes = SOFTMAX ? 4 : bytes_of(c.weight_dtype);
    const char *weights = (SOFTMAX ? (const char *)c.s : c.ds) +
                          (score_row(c, at.z, row0) + k.begin - c.key0) * bytes;
    key_steps<SOFTMAX> steps = {
        { weights, pitch_of(c), FATTN__TILE, Core::DEPTH, c.weight_dtype, 16 },
        plane_of(c.right, at.batch, head, k.begin, column0, k.end - k.begin, c.width - column0),
        top
    };
    Core core;
    accumulate(core, s, steps, c.width - column0);

    const int64_t begin = begin_of(c.out, at.batch);
    auto emit = [&](int row, int column, const float product[4], const float *) {
        const int absolute = c.row0 + row0 + row, n = column0 + column, count = c.width - n;
        if (absolute >= rows_of(c.out, seen.len_q, c.seq_q) || count <= 0)
            return;
        float four[4] = { product[0], product[1], product[2], product[3] };
        if (c.accumulator != nullptr &&
            !add_up(c.accumulator + (slot0 + row) * c.width + n, four, count,
                    SOFTMAX ? c.row_rescale[slot0 + row] : 1.0f, c.first, c.last))
            return;
        const float sum = SOFTMAX ? c.row_sum[slot0 + row] : 0.0f,
                    factor = !SOFTMAX      ? factor_of(c.factor, c.scale)
                             : sum == 0.0f ? 0.0f
                                           : 1.0f / sum;
#pragma unroll
        for (int j = 0; j < 4; j++)
            four[j] *= factor;
        store4(row_at(c.out, begin, at.head, absolute), c.out.dtype, n, four, count,
               in_fours(c.out, begin));
    };
    if (!__syncthreads_or(core.sums.bad())) {
        write_out<1>(core, s, read_nothing, emit);
        return;
    }
    write_carefully<Core>(
        [&](int row, int column, float four[4]) {
            const char *row_weights = weights + row * pitch_of(c) * bytes;
            for (int key = k.begin; key < k.end; key++) {
                const float x =
                    load(row_weights, SOFTMAX ? FATTN__F32 : c.weight_dtype, key - k.begin);
                const float weight = SOFTMAX ? rounded(Core::dtype, weight_of(x, top[row])) : x;
                add_row(four, weight, c.right,
                        row_at(c.right, begin_of(c.right, at.batch), head, key), column0 + column,
                        c.width);
            }
        },
        read_nothing, emit);
}

} // namespace fattn

using namespace fattn;

#define DEFINE(type, width, threads, ...)                                                          \
    extern "C" __global__ void FATTN__KERNEL(threads)                                              \
        fattn_output_##type##_##width(const __grid_constant__ fattn__call c)                       \
    {                                                                                              \
        over_keys<__VA_ARGS__, true>(c);                                                           \
    }                                                                                              \
    extern "C" __global__ void FATTN__KERNEL(threads)                                              \
        fattn_over_keys_##type##_##width(const __grid_constant__ fattn__call c)                    \
    {                                                                                              \
        over_keys<__VA_ARGS__, false>(c);                                                          \
    }
FATTN__EVERY_CORE(DEFINE, 64, false, true)
FATTN__EVERY_CORE(DEFINE, 128, false, true)
#undef DEFINE
