/* Sums of |V| over the keys of a row; the sums of whole tiles are computed where V is decoded. */
#pragma once
#include "element.cuh"

namespace fref
{

/* sum |V| over the keys [first, last), one column; whole tiles in the range give their sums. */
__device__ __forceinline__ double kept_sum(const double *v, const double *tiles, int64_t ld,
                                           int first, int last)
{
    const int from = (first + FREF__TILE - 1) / FREF__TILE, to = last / FREF__TILE;
    const int before = from <= to ? from * FREF__TILE : last,
              after = from <= to ? to * FREF__TILE : last;
    double sum = 0.0;
#pragma unroll 4
    for (int n = first; n < before; n++)
        sum += fabs(v[n * ld]);
#pragma unroll 8
    for (int tile = from; tile < to; tile++)
        sum += tiles[tile * ld];
#pragma unroll 4
    for (int n = after; n < last; n++)
        sum += fabs(v[n * ld]);
    return sum;
}

enum { KEPT_ROWS = FREF__TILE / (FREF__THREADS / FREF__TILE) };

/* The same over each row's range, written to kept_v. A block for each tile of columns, of rows and
 * head, columns innermost; a thread for one column of KEPT_ROWS rows: their common part is added up
 * once. */
__device__ __forceinline__ void make_kept_sums(const fref__call &c, uint32_t block)
{
    __shared__ fref__span ranges[FREF__TILE];
    const uint32_t columns = (uint32_t)(c.ld_v / FREF__TILE),
                   tiles = (uint32_t)(c.rows_padded / FREF__TILE);
    const uint32_t column = block % columns * FREF__TILE + threadIdx.x % FREF__TILE,
                   tile = block / columns % tiles;
    const uint32_t head = block / columns / tiles;
    const int64_t head_v = (uint32_t)(c.head0 + head) / (uint32_t)c.group_v - c.head_v0,
                  row = head * c.rows_padded + tile * FREF__TILE;
    if (threadIdx.x < FREF__TILE)
        ranges[threadIdx.x] = c.range[row + threadIdx.x];
    __syncthreads();
    const int r0 = (int)threadIdx.x / FREF__TILE * KEPT_ROWS;
    const fref__span *range = ranges + r0;
    int first = 0, last = INT32_MAX;
    for (int r = 0; r < KEPT_ROWS; r++)
        if (range[r].first < range[r].last) {
            first = range[r].first > first ? range[r].first : first;
            last = range[r].last < last ? range[r].last : last;
        }
    const double *v = c.keys_v + head_v * c.keys_padded * c.ld_v + column;
    const double *sums = c.tile_v + head_v * (c.keys_padded / FREF__TILE) * c.ld_v + column;
    const bool shared = last < INT32_MAX && first < last;
    const double common = shared ? kept_sum(v, sums, c.ld_v, first, last) : 0.0;
    double *to = c.kept_v + (row + r0) * c.ld_v + column;
    for (int r = 0; r < KEPT_ROWS; r++) {
        const fref__span own = range[r];
        double sum = common;
        if (own.first >= own.last)
            sum = 0.0;
        else if (own.first != first || own.last != last)
            sum = shared ? common + kept_sum(v, sums, c.ld_v, own.first, first) +
                               kept_sum(v, sums, c.ld_v, last, own.last)
                         : kept_sum(v, sums, c.ld_v, own.first, own.last);
        to[r * c.ld_v] = sum;
    }
}

} // namespace fref
