/* The steps of a score between its product and the softmax: bias, band, lengths. A warp has a row
 * of a tile, a lane four neighbouring keys. */
#pragma once
#include "math_product.cuh"

namespace fattn
{

/* A lane's four keys. Row and key are counted from the chunk's begin. */
struct seat {
    place at;
    int row, key;
    range seen;   /* by the row, keys of the whole sequence */
    int64_t slot; /* of the scores */
};

__device__ __forceinline__ int64_t row_slot(const fattn__call &c, const seat &t)
{
    return (int64_t)t.at.z * c.row_tiles * FATTN__TILE + t.row;
}

/* Adds the bias and applies the mask. */
__device__ __forceinline__ void settle(const fattn__call &c, const seat &t, float four[4])
{
    const int key = c.key0 + t.key;
    const bool biased = c.bias.at != nullptr;
    if (!biased && t.seen.begin <= key && t.seen.end >= key + 4)
        return;
    const char *bias =
        biased ? row_at(c.bias, t.at.batch * c.bias.stride[0], t.at.head, c.row0 + t.row) : nullptr;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const bool visible = key + j >= t.seen.begin && key + j < t.seen.end;
        if (!visible)
            four[j] = minus_infinity();
        else if (biased)
            four[j] += load(bias, c.bias.dtype, (key + j) * c.bias.stride[3]);
    }
}

/* The maximum of a row of the tile and the sum of exponentials relative to it. */
__device__ __forceinline__ void keep_statistics(const fattn__call &c, const seat &t,
                                                const float four[4])
{
    float top = larger(larger(four[0], four[1]), larger(four[2], four[3])), sum = 0;
#pragma unroll
    for (int i = 16; i > 0; i /= 2)
        top = larger(top, __shfl_xor_sync(0xffffffffu, top, i));
#pragma unroll
    for (int j = 0; j < 4; j++)
        sum += weight_of(four[j], top);
#pragma unroll
    for (int i = 16; i > 0; i /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, i);
    if (threadIdx.x % 32 != 0)
        return;
    const int64_t at =
        ((int64_t)t.at.z * c.key_tiles + t.key / FATTN__TILE) * c.row_tiles * FATTN__TILE + t.row;
    c.partial_max[at] = top;
    c.partial_sum[at] = sum;
}

__device__ __forceinline__ void read_four(float four[4], const float *at)
{
    const float4 x = *(const float4 *)at;
    four[0] = x.x, four[1] = x.y, four[2] = x.z, four[3] = x.w;
}

/* Stats and D of a row; a row without keys has none to read. */
struct row_facts {
    float stats, dot;
};

__device__ __forceinline__ row_facts facts_of(const fattn__call &c, const seat &t)
{
    const int row = c.row0 + t.row;
    if (t.seen.begin >= t.seen.end)
        return { minus_infinity(), 0 };
    const float *stats = (const float *)c.stats.at;
    return { stats[begin_of(c.stats, t.at.batch) + t.at.head * c.stats.stride[1] +
                   row * c.stats.stride[2]],
             c.row_dot[row_slot(c, t)] };
}

/* Final scores become probabilities. */
__device__ __forceinline__ void weigh(const row_facts &of, float four[4])
{
#pragma unroll
    for (int j = 0; j < 4; j++)
        four[j] = weight_of(four[j], of.stats);
}

/* dp, the products dO v, becomes the gradient of the final scores. */
__device__ __forceinline__ void differentiate(const row_facts &of, const float p[4], float dp[4])
{
#pragma unroll
    for (int j = 0; j < 4; j++)
        dp[j] = p[j] == 0.0f ? 0.0f : p[j] * (dp[j] - of.dot);
}

/* A block's tile of scores. */
struct tile {
    place at;
    band seen;
    int row, key; /* of the chunk */
    int64_t slot; /* of the first score */
};

/* False: nothing of the tile is seen. */
__device__ __forceinline__ bool tile_of(const fattn__call &c, tile *out)
{
    const int key_tile = (int)(blockIdx.x % c.key_tiles), rest = (int)(blockIdx.x / c.key_tiles);
    out->at = place_of(c, rest / c.row_tiles);
    out->seen = band_of(c, out->at.batch);
    out->row = rest % c.row_tiles * FATTN__TILE;
    out->key = key_tile * FATTN__TILE;
    out->slot = score_row(c, out->at.z, out->row) + out->key;
    return out->seen.touches(c.row0 + out->row, c.key0 + out->key);
}

__device__ __forceinline__ seat seat_of(const fattn__call &c, const tile &t, int row, int column)
{
    return { t.at, t.row + row, t.key + column, t.seen.keys(c.row0 + t.row + row),
             t.slot + row * pitch_of(c) + column };
}

/* Values that an epilogue needs for each row of the tile, computed once. */
struct tile_rows {
    range seen[FATTN__TILE];
    row_facts facts[FATTN__TILE];
};

/* True: every row sees all of the tile. */
__device__ __forceinline__ bool prepare_rows(const fattn__call &c, const tile &t, tile_rows &out,
                                             bool facts)
{
    const int row = (int)threadIdx.x, key = c.key0 + t.key;
    bool hidden = false;
    if (row < FATTN__TILE) {
        const seat first = seat_of(c, t, row, 0);
        out.seen[row] = first.seen;
        hidden = first.seen.begin > key || first.seen.end < key + FATTN__TILE;
        if (facts)
            out.facts[row] = facts_of(c, first);
    }
    return !__syncthreads_or(hidden);
}

__device__ __forceinline__ seat seat_of(const fattn__call &c, const tile &t, const tile_rows &rows,
                                        int row, int column)
{
    return { t.at, t.row + row, t.key + column, rows.seen[row],
             t.slot + row * c.key_tiles * FATTN__TILE + column };
}

__device__ __forceinline__ void zero_tile(const fattn__call &c, const tile &t, float *scores)
{
    const float zero[4] = { 0, 0, 0, 0 };
    for (int i = (int)threadIdx.x; i < FATTN__TILE * 32; i += (int)blockDim.x)
        write_16(scores + t.slot + i / 32 * pitch_of(c) + i % 32 * 4, zero);
}

} // namespace fattn
