/* Products of rows with rows: Q K^T and, backward, dO V^T. Each tile of 128 x 128 is one block's. */
#include "score.cuh"

namespace fattn {

/* Along the depth of two operands that both lie with it innermost. */
struct depth_steps {
    plane left, right;

    __device__ __forceinline__ bool more() const
    {
        return left.columns > 0;
    }
    template <class Core> __device__ __forceinline__ void fetch(Core &core, typename Core::shared &s, int stage)
    {
        core.fetch_left(s, stage, left);
        core.fetch_right(s, stage, right);
        left.at += Core::DEPTH * bytes_of(Core::simt ? left.dtype : Core::dtype), left.columns -= Core::DEPTH;
        right.at += Core::DEPTH * bytes_of(Core::simt ? right.dtype : Core::dtype), right.columns -= Core::DEPTH;
    }
    __device__ __forceinline__ void next()
    {
    }
    template <class Core> __device__ __forceinline__ void finish(Core &core, typename Core::shared &s, int stage)
    {
        core.finish_left(s, stage);
        core.finish_right(s, stage);
    }
};

struct operands {
    const fattn__matrix &left, &right;
    int group, depth;
};

template <class Core>
__device__ __forceinline__ void multiply_tile(const fattn__call &c, const tile &t, const operands &of, Core &core, typename Core::shared &s)
{
    const int row = c.row0 + t.row, key = c.key0 + t.key;
    depth_steps steps = { plane_of(of.left, t.at.batch, t.at.head, row, 0, c.seq_q - row, of.depth),
                          plane_of(of.right, t.at.batch, t.at.head / of.group, key, 0, c.seq_kv - key, of.depth) };
    accumulate(core, s, steps);
}

template <class Core> __device__ __forceinline__ void scores(const fattn__call &c)
{
    __shared__ __align__(16) typename Core::shared s;
    __shared__ tile_rows rows;
    tile t;
    if (!tile_of(c, &t))
        return;
    prepare_rows(c, t, rows, false);
    Core core;
    multiply_tile(c, t, { c.left, c.right, c.group, c.depth }, core, s);
    write_out(core, s, [&](int row, int column, const float product[4]) {
        const seat at = seat_of(c, t, rows, row, column);
        float four[4] = { product[0] * c.factor, product[1] * c.factor, product[2] * c.factor, product[3] * c.factor };
        if (!c.raw) {
            settle(c, at, four);
            keep_statistics(c, at, four);
        }
        write_four(c.s + at.slot, four);
    });
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
    prepare_rows(c, t, rows, true);
    Core core;
    if (c.fused) { /* what a thread writes here it will read itself, still in the cache */
        multiply_tile(c, t, { c.queries, c.keys, c.key_group, c.key_depth }, core, s);
        write_out(core, s, [&](int row, int column, const float product[4]) {
            const float four[4] = { product[0] * c.factor, product[1] * c.factor, product[2] * c.factor, product[3] * c.factor };
            write_four(c.s + seat_of(c, t, rows, row, column).slot, four);
        });
    }
    multiply_tile(c, t, { c.left, c.right, c.group, c.depth }, core, s);
    write_out(core, s, [&](int row, int column, const float product[4]) {
        const seat at = seat_of(c, t, rows, row, column);
        float score[4], dp[4] = { product[0], product[1], product[2], product[3] };
        if (c.raw) {
            write_four(c.dp + at.slot, dp);
            return;
        }
        read_four(score, c.s + at.slot);
        settle(c, at, score);
        differentiate(c, at, rows.facts[row], score, dp);
        store4(c.ds, c.weight_dtype, at.slot, dp, 4, true);
        if (c.extra != nullptr)
            write_four(c.extra + at.slot, dp);
    });
}

}

using namespace fattn;

#define DEFINE(name, ...)                                                                                                          \
    extern "C" __global__ void FATTN__KERNEL fattn_scores_##name(const __grid_constant__ fattn__call c)                            \
    {                                                                                                                              \
        scores<__VA_ARGS__>(c);                                                                                                    \
    }                                                                                                                              \
    extern "C" __global__ void FATTN__KERNEL fattn_gradients_##name(const __grid_constant__ fattn__call c)                         \
    {                                                                                                                              \
        gradients<__VA_ARGS__>(c);                                                                                                 \
    }
DEFINE(bf16, tensor_core<bf16, 128, false, false>)
DEFINE(f16, tensor_core<f16, 128, false, false>)
DEFINE(f32, simt_core<128, false, false>)
#undef DEFINE
