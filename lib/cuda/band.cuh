/* Who sees whom: the band, the lengths, and where a block's tile lies. */
#pragma once
#include "element.cuh"

namespace fattn {

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

__device__ __forceinline__ band band_of(const fattn__call &c, int batch)
{
    band r = { c.seq_q, c.seq_kv, c.low, c.high };
    if (c.len_q != nullptr) {
        r.len_q = clamp(c.len_q[(int64_t)batch * c.len_step], c.seq_q);
        r.len_kv = clamp(c.len_kv[(int64_t)batch * c.len_step], c.seq_kv);
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

__device__ __forceinline__ const char *row_at(const fattn__matrix &m, int batch, int head, int row)
{
    return m.at + (batch * m.stride[0] + head * m.stride[1] + row * m.stride[2]) * bytes_of(m.dtype);
}

}
