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

/* Of the right-hand side. */
template <int KIND>
__device__ __forceinline__ const double *extent_of(const fref__call &c, int64_t head)
{
    switch (KIND) {
    case FREF__DQ:
        return c.extent[2] + 2 * ((c.head0 + head) / c.group_k - c.head_k0);
    case FREF__DK:
        return c.extent[0] + 2 * head;
    case FREF__DV:
        return c.extent[1] + 2 * head;
    default:
        return c.extent[3] + 2 * ((c.head0 + head) / c.group_v - c.head_v0);
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
template <int KIND, bool WIDE>
__device__ __forceinline__ void make_sums(const fref__call &c, double *shared)
{
    using K = kind<KIND>;
    using W = worker<KIND, WIDE>;
    W w(c);
    w.right = nullptr;
    int64_t ld;
    right_of<KIND>(c, 0, &ld);
    const unsigned columns = (unsigned)ld / W::WIDTH,
                   tiles = tiles_of<K::OVER_ROWS>(c) * (FREF__TILE / W::HEIGHT);
    w.ld = (int)ld;
    w.column = (int)(blockIdx.x % columns * W::WIDTH);
    w.tile = (int)((tiles - 1 - blockIdx.x / columns % tiles) * W::HEIGHT);
    w.head = blockIdx.x / columns / tiles;
    w.at_first = (w.head * c.chunk_rows + w.row_of_thread(0)) * c.keys_padded + w.key_of_thread(0);
    w.right = right_of<KIND>(c, w.head, &ld) + w.column;
    w.any = false;
    w.read = 0;
    w.unit = bring_below(c.largest[K::OF_DS][w.head], BITS_OF_WEIGHT, -300);
    const double *extent = extent_of<KIND>(c, w.head);
    w.unit_right = (float)bring_below(extent[0], 0, -100);
    w.flushed = extent[0] * extent[1] < DEEPEST ? FLUSHED : FLUSHED_SQUARES;
    w.counts = K::ROUGH > 2 && KIND != FREF__FORWARD_KEPT && c.counts && w.column == 0;
    w.norm_k = c.norm_k + ((c.head0 + w.head) / c.group_k - c.head_k0) * c.norms;
    w.first_moment[0] = w.first_moment[1] = w.second_moment[0] = w.second_moment[1] = 0.0;
    const int64_t flag = (K::OVER_ROWS ? w.head * c.keys_padded + w.tile
                                       : w.head * c.rows_padded + c.row0 + w.tile) /
                         FREF__TILE;
    if (is_lost_kind<KIND> && !c.lossy[flag])
        return;
    int first = 0, last = (int)c.chunk_rows;
    if (K::OVER_ROWS) {
        w.keys = keys_of_tile(c, w.tile, W::HEIGHT);
    } else {
        const fref__span range =
            c.tile_range[(w.head * c.rows_padded + c.row0 + w.tile) / FREF__TILE];
        first = range.first / W::STEP * W::STEP;
        last = range.last;
        if (W::IN_PARTS) {
            first = (int)larger(first, W::part() * c.keys_of_part);
            last = (int)smaller(last, (W::part() + 1) * c.keys_of_part);
        }
    }
    if (W::OWN_FACTS)
        w.own = c.facts[w.head * c.rows_padded + c.row0 + w.tile + threadIdx.x / W::LANES];
    const bool add = K::OVER_ROWS && !c.first_chunk;
    w.first = first;
    w.heavy[0] = w.heavy[1] = 0;
    __shared__ uint8_t weighs[W::HEIGHT];
    if (threadIdx.x < W::HEIGHT)
        weighs[threadIdx.x] = 0;
    do {
        typename W::T total = {};
        w.last = (int)smaller(w.first + FREF__SEGMENT, last);
        w.run(&total, shared);
        __syncthreads();
        w.note_heavy(weighs);
        __syncthreads();
        w.put_all(total, weighs, add || w.first > first);
        w.first = w.last;
        __syncthreads();
    } while (w.first < last);
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

#define SUMS_KERNEL(name, kind, wide)                                                              \
    extern "C" __global__ __launch_bounds__(FREF__SUM_THREADS, 1) void fref_##name(                \
        const __grid_constant__ fref__call c)                                                      \
    {                                                                                              \
        FREF_SHARED(shared);                                                                       \
        make_sums<kind, wide>(c, shared);                                                          \
    }
#define BOTH_KERNELS(name, kind) SUMS_KERNEL(name, kind, false) SUMS_KERNEL(name##_wide, kind, true)
BOTH_KERNELS(sum_forward, FREF__FORWARD)
BOTH_KERNELS(sum_forward_kept, FREF__FORWARD_KEPT)
BOTH_KERNELS(sum_dq, FREF__DQ)
BOTH_KERNELS(sum_dk, FREF__DK)
BOTH_KERNELS(sum_dv, FREF__DV)
BOTH_KERNELS(sum_values, FREF__VALUES)
SUMS_KERNEL(sum_forward_lost, FREF__FORWARD_LOST, false)
SUMS_KERNEL(sum_dq_lost, FREF__DQ_LOST, false)
SUMS_KERNEL(sum_dk_lost, FREF__DK_LOST, false)
SUMS_KERNEL(sum_dv_lost, FREF__DV_LOST, false)
