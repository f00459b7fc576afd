/* What happens to a score between its product and the softmax: bias, band, lengths. A warp has a row of a tile, a lane four neighbouring keys. */
#pragma once
#include "product.cuh"

namespace fattn {

/* A lane's four keys. Row and key are counted from the chunk's begin. */
struct seat {
    place at;
    band seen;
    int row, key;
};

__device__ __forceinline__ int64_t score_at(const fattn__call &c, const seat &t)
{
    return score_row(c, t.at.z, t.row) + t.key;
}

__device__ __forceinline__ int64_t row_slot(const fattn__call &c, const seat &t)
{
    return (int64_t)t.at.z * c.row_tiles * FATTN__TILE + t.row;
}

/* Adds the bias and hides what the row may not see. */
__device__ __forceinline__ void settle(const fattn__call &c, const seat &t, float four[4])
{
    const range k = t.seen.keys(c.row0 + t.row);
    const int key = c.key0 + t.key;
    const char *bias = c.bias.at != nullptr ? row_at(c.bias, t.at.batch, t.at.head, c.row0 + t.row) : nullptr;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const bool visible = key + j >= k.begin && key + j < k.end;
        if (!visible)
            four[j] = minus_infinity();
        else if (bias != nullptr)
            four[j] += load(bias, c.bias.dtype, (key + j) * c.bias.stride[3]);
    }
}

/* The maximum of a row of the tile and the sum of exponentials relative to it. */
__device__ __forceinline__ void keep_statistics(const fattn__call &c, const seat &t, const float four[4])
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
    const int64_t at = ((int64_t)t.at.z * c.key_tiles + t.key / FATTN__TILE) * c.row_tiles * FATTN__TILE + t.row;
    c.partial_max[at] = top;
    c.partial_sum[at] = sum;
}

__device__ __forceinline__ void write_four(float *at, const float four[4])
{
    *(float4 *)at = make_float4(four[0], four[1], four[2], four[3]);
}

__device__ __forceinline__ void read_four(float four[4], const float *at)
{
    const float4 x = *(const float4 *)at;
    four[0] = x.x, four[1] = x.y, four[2] = x.z, four[3] = x.w;
}

/* Final scores become probabilities (stored); dp, the products dO v, becomes the gradient of the final scores. */
__device__ __forceinline__ void differentiate(const fattn__call &c, const seat &t, const float score[4], float dp[4])
{
    const int row = c.row0 + t.row;
    const range k = t.seen.keys(row);
    float stats = minus_infinity(), dot = 0, p[4];
    if (k.begin < k.end) {
        stats = ((const float *)c.stats.at)[t.at.batch * c.stats.stride[0] + t.at.head * c.stats.stride[1] + row * c.stats.stride[2]];
        dot = c.row_dot[row_slot(c, t)];
    }
#pragma unroll
    for (int j = 0; j < 4; j++) {
        p[j] = weight_of(score[j], stats);
        dp[j] = p[j] == 0.0f ? 0.0f : p[j] * (dp[j] - dot);
    }
    store4(c.p, c.weight_dtype, score_at(c, t), p, 4, true);
}

/* A block's tile of scores. False: nothing of it is seen. */
struct tile {
    place at;
    band seen;
    int row, key; /* of the chunk */
};

__device__ __forceinline__ bool tile_of(const fattn__call &c, tile *out)
{
    const int key_tile = (int)(blockIdx.x % c.key_tiles), rest = (int)(blockIdx.x / c.key_tiles);
    out->at = place_of(c, rest / c.row_tiles);
    out->seen = band_of(c, out->at.batch);
    out->row = rest % c.row_tiles * FATTN__TILE;
    out->key = key_tile * FATTN__TILE;
    return out->seen.touches(c.row0 + out->row, c.key0 + out->key);
}

__device__ __forceinline__ void zero_tile(const fattn__call &c, const tile &t, float *scores)
{
    const float zero[4] = { 0, 0, 0, 0 };
    for (int i = (int)threadIdx.x; i < FATTN__TILE * 32; i += (int)blockDim.x)
        write_four(scores + score_row(c, t.at.z, t.row + i / 32) + t.key + i % 32 * 4, zero);
}

}
