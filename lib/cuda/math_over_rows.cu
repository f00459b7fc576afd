/* Sums over rows: dV = P^T dO and dK = dS^T Q, over the rows and over the query heads that share a
 * head of K or V. A tile of 128 keys x 64 or 128 channels is one block's, so that no two blocks add
 * to one place and the order of a sum is always the same. */
#include "math_score.cuh"

namespace fattn
{

/* The row tiles that see a tile of keys, head after head. */
struct row_tiles {
    const fattn__call *c;
    const fattn__row_sum *of;
    band seen;
    int z, z_end, row, key; /* of the chunk; key: the tile's first */

    __device__ __forceinline__ bool visible() const
    {
        return seen.touches(c->row0 + row, c->key0 + key);
    }
    __device__ __forceinline__ bool done() const
    {
        return z >= z_end;
    }
    __device__ __forceinline__ void step()
    {
        row += FATTN__TILE;
        if (row >= c->row_tiles * FATTN__TILE)
            row = 0, z++;
    }
    __device__ __forceinline__ void settle()
    {
        while (!done() && !visible())
            step();
    }
    /* Rows of the tile that take part. */
    __device__ __forceinline__ int rows() const
    {
        return min(seen.len_q - c->row0 - row, FATTN__TILE);
    }
    __device__ __forceinline__ const char *weights() const
    {
        return of->weights + (score_row(*c, z, row) + key) * bytes_of(c->weight_dtype);
    }
};

template <class Core> struct row_steps {
    row_tiles tiles;
    int column; /* first one of the block */
    plane left, right;

    /* At the beginning of a row tile. */
    __device__ __forceinline__ void begin()
    {
        tiles.settle();
        if (tiles.done())
            return;
        const fattn__call &c = *tiles.c;
        const place at = place_of(c, tiles.z);
        left = { tiles.weights(), pitch_of(c), Core::DEPTH, FATTN__TILE, c.weight_dtype, 16 };
        right = plane_of(tiles.of->right, at.batch, at.head, c.row0 + tiles.row, column,
                         tiles.rows(), tiles.of->width - column);
    }
    __device__ __forceinline__ bool more() const
    {
        return !tiles.done();
    }
    __device__ __forceinline__ void next()
    {
        left.at += Core::DEPTH * left.stride * bytes_of(Core::fp32 ? left.dtype : Core::dtype);
        right.at += Core::DEPTH * right.stride * bytes_of(Core::fp32 ? right.dtype : Core::dtype);
        right.rows -= Core::DEPTH;
        if (right.rows > 0)
            return;
        tiles.step();
        begin();
    }
    __device__ __forceinline__ void fetch(Core &core, typename Core::shared &s, int stage)
    {
        core.fetch_left(s, stage, left);
        core.fetch_right(s, stage, right);
    }
    __device__ __forceinline__ void finish(Core &, typename Core::shared &, int)
    {
    }
};

template <class Core> __device__ __forceinline__ void over_rows(const fattn__call &c)
{
    __shared__ __align__(16) typename Core::shared s;
    const int columns_0 = (c.row_sums[0].width + Core::BN - 1) / Core::BN,
              blocks_0 = c.row_sums[0].blocks * columns_0;
    const bool second = (int)blockIdx.x >= blocks_0;
    const fattn__row_sum &of = c.row_sums[second];
    const int columns = (of.width + Core::BN - 1) / Core::BN,
              block = (int)blockIdx.x - (second ? blocks_0 : 0);
    const int column0 = block % columns * Core::BN, rest = block / columns,
              key0 = rest % c.key_tiles * FATTN__TILE;
    /* Heads of K or V, counted over batch and head together: a group of query heads never crosses a
     * batch entry. */
    const int64_t head = c.head0 / of.group + rest / c.key_tiles, begin = head * of.group - c.head0,
                  end = begin + of.group;
    const int heads = c.heads_q / of.group, batch = (int)(head / heads),
              within = (int)(head % heads);
    const row_tiles tiles_at_first = {
        &c, &of, band_of(c, batch), (int)max(begin, (int64_t)0), (int)min(end, (int64_t)c.heads),
        0,  key0
    };
    row_steps<Core> steps = { tiles_at_first, column0, {}, {} };
    steps.begin();
    Core core;
    accumulate(core, s, steps, of.width - column0);

    const int64_t out_begin = begin_of(of.out, batch);
    const bool first = c.first && begin >= 0, last = c.last && end <= c.heads;
    auto emit = [&](int row, int column, const float product[4], const float *) {
        const int key = c.key0 + key0 + row, n = column0 + column, count = of.width - n;
        if (key >= rows_of(of.out, tiles_at_first.seen.len_kv, c.seq_kv) || count <= 0)
            return;
        float four[4] = { product[0], product[1], product[2], product[3] };
        if (of.accumulator != nullptr &&
            !add_up(of.accumulator + (head % of.slots * c.seq_kv + key) * of.width + n, four, count,
                    1.0f, first, last))
            return;
#pragma unroll
        for (int j = 0; j < 4; j++)
            four[j] *= factor_of(of.factor, of.scale);
        store4(row_at(of.out, out_begin, within, key), of.out.dtype, n, four, count,
               in_fours(of.out, out_begin));
    };
    if (!__syncthreads_or(core.sums.bad())) {
        write_out<1>(core, s, read_nothing, emit);
        return;
    }
    write_carefully<Core>(
        [&](int row, int column, float four[4]) {
            row_tiles t = tiles_at_first;
            for (t.settle(); !t.done(); t.step(), t.settle()) {
                const place at = place_of(c, t.z);
                for (int r = 0; r < t.rows(); r++)
                    add_row(
                        four, load(t.weights(), c.weight_dtype, r * pitch_of(c) + row), of.right,
                        row_at(of.right, begin_of(of.right, at.batch), at.head, c.row0 + t.row + r),
                        column0 + column, of.width);
            }
        },
        read_nothing, emit);
}

} // namespace fattn

using namespace fattn;

#define DEFINE(type, width, threads, ...)                                                          \
    extern "C" __global__ void FATTN__KERNEL(threads)                                              \
        fattn_over_rows_##type##_##width(const __grid_constant__ fattn__call c)                    \
    {                                                                                              \
        over_rows<__VA_ARGS__>(c);                                                                 \
    }
FATTN__EVERY_CORE(DEFINE, 64, true, true)
FATTN__EVERY_CORE(DEFINE, 128, true, true)
#undef DEFINE
