/* Products of rows with rows: Q K^T and, backward, dO V^T. Each tile of 128 x 128 is one block's.
 */
#include "math_score.cuh"

namespace fattn
{

/* Along the depth of two operands; the depth is the innermost dimension of both. */
struct depth_steps {
    plane left, right;

    __device__ __forceinline__ bool more() const
    {
        return left.columns > 0;
    }
    template <class Core>
    __device__ __forceinline__ void fetch(Core &core, typename Core::shared &s, int stage)
    {
        core.fetch_left(s, stage, left);
        core.fetch_right(s, stage, right);
        left.at += Core::DEPTH * bytes_of(Core::fp32 ? left.dtype : Core::dtype),
            left.columns -= Core::DEPTH;
        right.at += Core::DEPTH * bytes_of(Core::fp32 ? right.dtype : Core::dtype),
            right.columns -= Core::DEPTH;
    }
    __device__ __forceinline__ void next()
    {
    }
    template <class Core>
    __device__ __forceinline__ void finish(Core &, typename Core::shared &, int)
    {
    }
};

struct operands {
    const fattn__matrix &left, &right;
    int group, depth;
};

template <bool PLAIN> struct way {
    static constexpr bool plain = PLAIN;
};

/* Calls emit(way, ...), the rest as write_out does, in every way with the same seats for a thread.
 * `plain` ones have no branch. */
template <class Core, class Read, class Emit>
__device__ __forceinline__ void multiply_tile(const fattn__call &c, const tile &t,
                                              const operands &of, typename Core::shared &s,
                                              bool plain, Read read, Emit emit)
{
    Core core;
    const int row = c.row0 + t.row, key = c.key0 + t.key;
    depth_steps steps = {
        plane_of(of.left, t.at.batch, t.at.head, row, 0, t.seen.len_q - row, of.depth),
        plane_of(of.right, t.at.batch, t.at.head / of.group, key, 0, t.seen.len_kv - key, of.depth)
    };
    accumulate(core, s, steps, FATTN__TILE);
    auto general = [&](int i, int j, const float product[4], const float before[4]) {
        emit(way<false>(), i, j, product, before);
    };
    if (!Core::fp32 || !__syncthreads_or(core.sums.bad())) {
        if (Core::fp32 && plain)
            write_out<4>(core, s, read,
                         [&](int i, int j, const float product[4], const float p[4]) {
                             emit(way<true>(), i, j, product, p);
                         });
        else
            write_out<1>(core, s, read, general);
        return;
    }
    write_carefully<Core>(/* an infinity has no two parts */
                          [&](int i, int j, float four[4]) {
                              if (row + i >= t.seen.len_q)
                                  return;
                              const char *left = row_at(of.left, begin_of(of.left, t.at.batch),
                                                        t.at.head, row + i);
                              for (int end = min(j + 4, t.seen.len_kv - key), n = j; n < end; n++) {
                                  const char *right =
                                      row_at(of.right, begin_of(of.right, t.at.batch),
                                             t.at.head / of.group, key + n);
                                  for (int d = 0; d < of.depth; d++)
                                      four[n - j] =
                                          fmaf(load(left, of.left.dtype, d),
                                               load(right, of.right.dtype, d), four[n - j]);
                              }
                          },
                          read, general);
}

template <class Core> __device__ __forceinline__ void scores(const fattn__call &c)
{
    __shared__ __align__(16) typename Core::shared s;
    __shared__ tile_rows rows;
    tile t;
    if (!tile_of(c, &t))
        return;
    prepare_rows(c, t, rows, false);
    auto emit = [&](auto, int row, int column, const float product[4], const float *) {
        const seat at = seat_of(c, t, rows, row, column);
        float four[4] = { product[0] * c.factor, product[1] * c.factor, product[2] * c.factor,
                          product[3] * c.factor };
        if (!c.raw) {
            settle(c, at, four);
            keep_statistics(c, at, four);
        }
        write_16(c.s + at.slot, four);
    };
    multiply_tile<Core>(c, t, { c.left, c.right, c.group, c.depth }, s, false, read_nothing, emit);
}

template <class Core> __device__ __forceinline__ void gradients(const fattn__call &c)
{
    __shared__ __align__(16) typename Core::shared s;
    __shared__ tile_rows rows;
    tile t;
    if (!tile_of(c, &t)) {
        if (c.extra != nullptr)
            zero_tile(c, t, c.extra);
        return;
    }
    const bool whole = prepare_rows(c, t, rows, true), stored = c.fused && (char *)c.s == c.p;
    const bool plain = whole && stored && c.bias.at == nullptr && c.extra == nullptr;
    if (c.fused) { /* the same thread reads this again, from the cache */
        auto emit = [&](auto way, int row, int column, const float product[4], const float *) {
            const seat at = seat_of(c, t, rows, row, column);
            float four[4] = { product[0] * c.factor, product[1] * c.factor, product[2] * c.factor,
                              product[3] * c.factor };
            if (!way.plain)
                settle(c, at, four);
            weigh(rows.facts[row], four);
            write_16(c.s + at.slot, four);
        };
        multiply_tile<Core>(c, t, { c.queries, c.keys, c.key_group, c.key_depth }, s, plain,
                            read_nothing, emit);
    }
    auto read = [&](int row, int column, float four[4]) {
        if (!c.raw)
            read_four(four, c.s + seat_of(c, t, rows, row, column).slot);
    };
    auto emit = [&](auto way, int row, int column, const float product[4], const float before[4]) {
        const seat at = seat_of(c, t, rows, row, column);
        float p[4] = { before[0], before[1], before[2], before[3] },
              dp[4] = { product[0], product[1], product[2], product[3] };
        if (way.plain) {
            differentiate(rows.facts[row], p, dp);
            write_16((float *)c.ds + at.slot, dp);
            return;
        }
        if (c.raw) {
            write_16(c.dp + at.slot, dp);
            return;
        }
        if (!c.fused) {
            settle(c, at, p);
            weigh(rows.facts[row], p);
        }
        differentiate(rows.facts[row], p, dp);
        if (!stored)
            store4(c.p, c.weight_dtype, at.slot, p, 4, true);
        store4(c.ds, c.weight_dtype, at.slot, dp, 4, true);
        if (c.extra != nullptr)
            write_16(c.extra + at.slot, dp);
    };
    multiply_tile<Core>(c, t, { c.left, c.right, c.group, c.depth }, s, plain, read, emit);
}

} // namespace fattn

using namespace fattn;

#define DEFINE(type, width, threads, ...)                                                          \
    extern "C" __global__ void FATTN__KERNEL(threads)                                              \
        fattn_scores_##type(const __grid_constant__ fattn__call c)                                 \
    {                                                                                              \
        scores<__VA_ARGS__>(c);                                                                    \
    }                                                                                              \
    extern "C" __global__ void FATTN__KERNEL(threads)                                              \
        fattn_gradients_##type(const __grid_constant__ fattn__call c)                              \
    {                                                                                              \
        gradients<__VA_ARGS__>(c);                                                                 \
    }
FATTN__EVERY_CORE(DEFINE, 128, false, false)
#undef DEFINE
