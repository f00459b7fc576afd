/* Slopes, masks and dropout: what a problem may do to a score beside its bias and band. */
#pragma once
#include "math_score.cuh"
#include "problem/dropout.h"

namespace fattn
{

/* A bit for each tile of 128 x 128 scores. */
__device__ __forceinline__ bool tile_kept(const fattn__call &c, const tile &t)
{
    const fattn__adjustments &m = c.adjustments;
    if (m.tiles == nullptr)
        return true;
    const int row = (c.row0 + t.row) / FATTN__TILE, key = (c.key0 + t.key) / FATTN__TILE;
    const int64_t head = (int64_t)t.at.batch * c.heads_q + t.at.head;
    return (m.tiles[(head * m.tile_rows + row) * m.tile_bytes + key / 8] >> key % 8 & 1) != 0;
}

/* After the bias and the band: ALiBi, and all other masks. */
__device__ __forceinline__ void shade(const fattn__call &c, const tile &t, const seat &at,
                                      float four[4])
{
    const fattn__adjustments &m = c.adjustments;
    const int row = c.row0 + at.row, key = c.key0 + at.key;
    if (m.slopes != nullptr) {
        const float slope = m.slopes[at.at.head];
#pragma unroll
        for (int j = 0; j < 4; j++)
            four[j] += slope * (float)(key + j - row);
    }
    if (m.mask.at != nullptr) {
        const char *mask = m.mask.at + at.at.batch * m.mask.stride[0] +
                           at.at.head * m.mask.stride[1] + row * m.mask.stride[2];
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (key + j >= at.seen.begin && key + j < at.seen.end &&
                mask[(key + j) * m.mask.stride[3]] == 0)
                four[j] = minus_infinity();
    }
    if (!tile_kept(c, t))
#pragma unroll
        for (int j = 0; j < 4; j++)
            four[j] = minus_infinity();
}

/* A thread's dropout values of a call. */
struct dropping {
    bool any;
    float factor; /* of kept elements */
    fattn__dropout generator;
};

__device__ __forceinline__ fattn__dropout generator_of(const fattn__adjustments &m)
{
    return fattn__dropout_of(number_at(m.seed, m.rng_bits, 0), number_at(m.offset, m.rng_bits, 0),
                             m.threshold);
}

__device__ __forceinline__ dropping dropping_of(const fattn__adjustments &m)
{
    if (m.kept != nullptr)
        return { true, *m.kept_factor, {} };
    if (m.seed != nullptr)
        return { true, m.factor, generator_of(m) };
    return { false, 1.0f, {} };
}

/* Bit j: does dropout keep the seat's j-th key? Any value for masked keys. */
__device__ __forceinline__ unsigned kept_of(const fattn__call &c, const dropping &drops,
                                            const seat &t)
{
    const fattn__adjustments &m = c.adjustments;
    const int row = c.row0 + t.row, key = c.key0 + t.key;
    if (m.kept == nullptr)
        return fattn__dropout_four(&drops.generator, (uint32_t)t.at.batch, (uint32_t)t.at.head,
                                   (uint32_t)row, (uint32_t)key / 4);
    const int64_t at =
        (((int64_t)t.at.batch * c.heads_q + t.at.head) * c.seq_q + row) * c.seq_kv + key;
    unsigned bits = 0;
#pragma unroll
    for (int j = 0; j < 4; j++)
        if (key + j >= t.seen.begin && key + j < t.seen.end)
            bits |= (unsigned)(load(m.kept, m.kept_dtype, at + j) != 0.0f) << j;
    return bits;
}

} // namespace fattn
