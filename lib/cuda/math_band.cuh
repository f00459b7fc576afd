/* The keys that a row sees: band and lengths; and the position of a block's tile. */
#pragma once
#include "math_element.cuh"

namespace fattn
{

struct range {
    int begin, end;
};

struct band {
    int len_q, len_kv, low, high;

    /* Keys that row `row` sees. */
    __device__ __forceinline__ range keys(int row) const
    {
        const int begin = max(row + low, 0), end = min(row + high, len_kv);
        return row < len_q && begin < end ? range{ begin, end } : range{ 0, 0 };
    }
    /* From the first to the last key that a row of the tile may see. */
    __device__ __forceinline__ range keys_of_tile(int row) const
    {
        const int last = min(row + FATTN__TILE, len_q) - 1;
        const int begin = max(row + low, 0), end = min(last + high, len_kv);
        return row < len_q && begin < end ? range{ begin, end } : range{ 0, 0 };
    }
    /* Is the tile of scores computed? */
    __device__ __forceinline__ bool touches(int row, int key) const
    {
        const range k = keys_of_tile(row);
        return k.begin < k.end && k.begin < key + FATTN__TILE && k.end > key;
    }
};

__device__ __forceinline__ int clamp(int x, int most)
{
    return min(max(x, 0), most);
}

__device__ __forceinline__ int length_of(const int32_t *lengths, int step, int sums, int batch,
                                         int most)
{
    const int32_t *at = lengths + (int64_t)batch * step;
    return clamp(sums ? at[1] - at[0] : at[0], most);
}

__device__ __forceinline__ band band_of(const fattn__call &c, int batch)
{
    band r = { c.seq_q, c.seq_kv, c.low, c.high };
    if (c.lengths.q != nullptr) {
        r.len_q = length_of(c.lengths.q, c.lengths.step, c.lengths.sums_q, batch, c.seq_q);
        r.len_kv = length_of(c.lengths.kv, c.lengths.step, c.lengths.sums_kv, batch, c.seq_kv);
    }
    if (c.bottom_right) {
        r.low += r.len_kv - r.len_q;
        r.high += r.len_kv - r.len_q;
    }
    return r;
}

/* A query head of the chunk. */
struct place {
    int z, batch, head;
};

__device__ __forceinline__ place place_of(const fattn__call &c, int z)
{
    const int64_t both = c.head0 + z;
    return { z, (int)(both / c.heads_q), (int)(both % c.heads_q) };
}

__device__ __forceinline__ int64_t pitch_of(const fattn__call &c)
{
    return (int64_t)c.key_tiles * FATTN__TILE;
}

/* Place of a row of the chunk's scores. */
__device__ __forceinline__ int64_t score_row(const fattn__call &c, int z, int row_in_chunk)
{
    return ((int64_t)z * c.row_tiles * FATTN__TILE + row_in_chunk) * pitch_of(c);
}

__device__ __forceinline__ int64_t number_at(const void *at, int bits, int64_t i)
{
    return bits == 64 ? ((const int64_t *)at)[i] : ((const int32_t *)at)[i];
}

/* Where a batch entry begins, in elements. */
__device__ __forceinline__ int64_t begin_of(const fattn__matrix &m, int batch)
{
    return m.starts == nullptr ? batch * m.stride[0]
                               : number_at(m.starts, m.start_bits, batch) * m.start_step;
}

/* The grain of its rows. */
__device__ __forceinline__ int grain_at(const fattn__matrix &m, int64_t begin)
{
    const uint32_t bits = (uint32_t)m.grain | (uint32_t)(begin * bytes_of(m.dtype));
    return m.starts == nullptr ? m.grain : (int)(bits & (0u - bits));
}

__device__ __forceinline__ char *row_at(const fattn__matrix &m, int64_t begin, int head, int row)
{
    return m.at + (begin + head * m.stride[1] + row * m.stride[2]) * bytes_of(m.dtype);
}

/* One past the last row that is written: for a ragged matrix, the last existing row. */
__device__ __forceinline__ int rows_of(const fattn__matrix &m, int length, int most)
{
    return m.starts == nullptr ? most : length;
}

} // namespace fattn
