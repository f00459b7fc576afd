/* The weighted sums over keys (O, dQ) and over rows (dK, dV): which tile a block makes, of what;
 * tile.cuh makes it. */
#include "tile.cuh"

namespace fref
{

template <int KIND>
__device__ __forceinline__ const double *right_of(const fref__call &c, int64_t head, int64_t *ld)
{
    const int64_t head_k = (c.head0 + head) / c.group_k - c.head_k0,
                  head_v = (c.head0 + head) / c.group_v - c.head_v0;
    const int64_t row = head * c.rows_padded + c.row0;
    switch (KIND) {
    case FREF__DQ:
    case FREF__DQ_LOST:
        *ld = c.ld_qk;
        return c.keys_k + head_k * c.keys_padded * c.ld_qk;
    case FREF__DK:
    case FREF__DK_LOST:
        *ld = c.ld_qk;
        return c.rows_q + row * c.ld_qk;
    case FREF__DV:
    case FREF__DV_LOST:
        *ld = c.ld_v;
        return c.rows_d_o + row * c.ld_v;
    default:
        *ld = c.ld_v;
        return c.keys_v + head_v * c.keys_padded * c.ld_v;
    }
}

/* Of keys; or of the chunk's rows, without those that are padding alone. */
template <bool OVER_ROWS> __device__ __forceinline__ unsigned tiles_of(const fref__call &c)
{
    return (unsigned)((OVER_ROWS ? c.keys_padded
                                 : smaller(c.chunk_rows, c.rows - c.row0) + FREF__TILE - 1) /
                      FREF__TILE);
}

/* Columns innermost, then tiles (those with most keys first), then heads; parts of the keys are
 * blockIdx.y. */
template <int KIND> __device__ __forceinline__ void make_sums(const fref__call &c, double *shared)
{
    using K = kind<KIND>;
    using W = worker<KIND>;
    W w(c);
    int64_t ld;
    right_of<KIND>(c, 0, &ld);
    const unsigned columns = (unsigned)ld / FREF__TILE, tiles = tiles_of<K::OVER_ROWS>(c);
    w.ld = (int)ld;
    w.column = (int)(blockIdx.x % columns * FREF__TILE);
    w.tile = (int)((tiles - 1 - blockIdx.x / columns % tiles) * FREF__TILE);
    w.head = blockIdx.x / columns / tiles;
    w.at_first = (w.head * c.chunk_rows + w.row_of_thread(0)) * c.keys_padded + w.key_of_thread(0);
    w.right = right_of<KIND>(c, w.head, &ld) + w.column;
    w.any = false;
    w.read = 0;
    w.counts = K::WEIGHTS > 1 && KIND != FREF__FORWARD && c.counts && w.column == 0;
    w.norm_k = c.norm_k + ((c.head0 + w.head) / c.group_k - c.head_k0) * c.keys_padded;
    w.first_moment[0] = w.first_moment[1] = w.second_moment[0] = w.second_moment[1] = 0.0;
    const int64_t flag = (K::OVER_ROWS ? w.head * c.keys_padded + w.tile
                                       : w.head * c.rows_padded + c.row0 + w.tile) /
                         FREF__TILE;
    if (is_lost_kind<KIND> && !c.lossy[flag])
        return;
    w.first = 0;
    w.last = (int)c.chunk_rows;
    if (K::OVER_ROWS) {
        w.keys = keys_of_tile(c, w.tile, FREF__TILE);
    } else {
        const fref__span range =
            c.tile_range[(w.head * c.rows_padded + c.row0 + w.tile) / FREF__TILE];
        w.first = range.first / FREF__STEP * FREF__STEP;
        w.last = range.last;
        if (W::IN_PARTS) {
            w.first = (int)larger(w.first, W::part() * c.keys_of_part);
            w.last = (int)smaller(w.last, (W::part() + 1) * c.keys_of_part);
        }
    }
    if (W::OWN_FACTS)
        w.own = c.facts[w.head * c.rows_padded + c.row0 + w.tile + threadIdx.x / W::LANES];
    typename W::T total = {};
    w.run(total, shared);
    w.put_all(total, K::OVER_ROWS && !c.first_chunk);
    const bool any = __syncthreads_or(w.any);
    if (!is_lost_kind<KIND> && any && threadIdx.x == 0)
        c.lossy[flag] = 1;
    if (w.counts && K::OVER_ROWS)
        w.put_counts_of_keys(shared);
    else if (w.counts)
        w.put_counts_of_rows();
    if (KIND == FREF__DK || KIND == FREF__DV) {
        const int64_t group = KIND == FREF__DK ? c.group_k : c.group_v,
                      key = w.tile + W::first_key();
        for (int i = 0; i < 2; i++)
            if (w.read >> i & 1)
                c.read[(c.head0 + w.head) / group * c.keys + key + i * W::APART] = 1;
    }
}

} // namespace fref

using namespace fref;

#define SUMS_KERNEL(name, kind)                                                                    \
    extern "C" __global__ __launch_bounds__(FREF__SUM_THREADS, 1) void fref_##name(                \
        const __grid_constant__ fref__call c)                                                      \
    {                                                                                              \
        FREF_SHARED(shared);                                                                       \
        make_sums<kind>(c, shared);                                                                \
    }
SUMS_KERNEL(sum_forward, FREF__FORWARD)
SUMS_KERNEL(sum_dq, FREF__DQ)
SUMS_KERNEL(sum_dk, FREF__DK)
SUMS_KERNEL(sum_dv, FREF__DV)
SUMS_KERNEL(sum_values, FREF__VALUES)
SUMS_KERNEL(sum_forward_lost, FREF__FORWARD_LOST)
SUMS_KERNEL(sum_dq_lost, FREF__DQ_LOST)
SUMS_KERNEL(sum_dk_lost, FREF__DK_LOST)
SUMS_KERNEL(sum_dv_lost, FREF__DV_LOST)
