/* Copies pages into a dense tensor, and dumps the dropout mask. */
#include "math_adjustments.cuh"

namespace fattn
{

/* A warp a row, neighbouring rows in neighbouring warps. */
__device__ __forceinline__ void gather(const fattn__gather_call &c)
{
    const int lane = (int)threadIdx.x % 32;
    const int64_t i = (blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / 32,
                  per_entry = (int64_t)c.heads * c.seq;
    const int entry = (int)(i / per_entry), head = (int)(i % per_entry / c.seq),
              row = (int)(i % c.seq), b = c.batch + entry;
    if (i >= c.rows)
        return;
    char *to = row_at(c.to, b * c.to.stride[0], head, row);
    const int bytes = bytes_of(c.from.dtype), count = c.width * bytes;
    if (row >= length_of(c.lengths.kv, c.lengths.step, c.lengths.sums_kv, b, c.seq)) {
        for (int n = lane * 2; n < count; n += 64)
            *(uint16_t *)(to + n) = 0;
        return;
    }
    const int64_t pages = c.table_starts != nullptr ? number_at(c.table_starts, c.table_bits, b)
                                                    : (int64_t)b * c.pages;
    const int64_t page = c.table[pages + row / c.page];
    const char *from = row_at(c.from, page * c.from.stride[0], head, row % c.page);
    if (c.from.grain >= 16 && c.to.grain >= 16 && count % 16 == 0) {
        for (int n = lane * 16; n < count; n += 512)
            *(uint4 *)(to + n) = *(const uint4 *)(from + n);
        return;
    }
    for (int n = lane * 2; n < count; n += 64)
        *(uint16_t *)(to + n) = *(const uint16_t *)(from + n);
}

/* A thread four keys of a row. */
__device__ __forceinline__ void dump(const fattn__dump_call &c)
{
    const int quads = (c.seq_kv + 3) / 4;
    const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x, row = i / quads,
                  head = row / c.seq_q;
    const int key = (int)(i % quads) * 4;
    if (row >= c.rows)
        return;
    const fattn__dropout generator = generator_of(c.adjustments);
    const unsigned kept =
        fattn__dropout_four(&generator, (uint32_t)(head / c.heads_q), (uint32_t)(head % c.heads_q),
                            (uint32_t)(row % c.seq_q), (uint32_t)key / 4);
    for (int j = 0; j < 4 && key + j < c.seq_kv; j++)
        c.to[row * c.seq_kv + key + j] = (float)(kept >> j & 1u);
}

} // namespace fattn

extern "C" __global__ void __launch_bounds__(FATTN__THREADS)
    fattn_gather(const __grid_constant__ fattn__gather_call c)
{
    fattn::gather(c);
}

extern "C" __global__ void __launch_bounds__(FATTN__THREADS)
    fattn_dump(const __grid_constant__ fattn__dump_call c)
{
    fattn::dump(c);
}
