/* The weighted sums: over keys for the rows (O, dQ), over rows for the keys (dK, dV). A block makes a tile of TILE rows (keys) and TILE columns of
 * all sums of a kind, a warp 16 by 16 of it; STEP keys (rows) at a time are weighed into shared memory and multiplied there with the right-hand
 * side. Each sum runs in one order whatever else runs.
 */
#include "weigh.cuh"

namespace fref {

/* Weights of a step: [TILE][STEP + 4], or over rows [STEP][TILE + 4]; so no lanes meet in a bank. */
enum { BY_ROW = FREF__STEP + 4, BY_KEY = FREF__TILE + 4, SIDE = FREF__STEP * BY_KEY };

template <int KIND> constexpr int weights_of_tile = kind<KIND>::OVER_ROWS ? FREF__STEP * BY_KEY : FREF__TILE * BY_ROW;

template <int KIND> struct worker {
    using K = kind<KIND>;
    const fref__call &c;
    int64_t head, column;
    int64_t tile;        /* first row (of the chunk) or key of the block's tile */
    const double *right; /* of step 0 */
    int64_t ld;
    int64_t first, last; /* of the steps' keys, or rows of the chunk */
    fref__span keys;     /* over rows: the tile's */
    double held_x[2], held_dp[2]; /* the next step's, of this thread: two keys of one row */
    bool any;
    uint32_t read;

    __device__ __forceinline__ bool tile_meets(int64_t row) const
    {
        return meet(c.tile_range[(head * c.rows_padded + c.row0 + row) / FREF__TILE], keys);
    }

    /* The first step at or after n. */
    __device__ __forceinline__ int64_t step_from(int64_t n) const
    {
        if (K::OVER_ROWS)
            while (n < last && n % FREF__TILE == 0 && !tile_meets(n))
                n += FREF__TILE;
        return n;
    }

    __device__ __forceinline__ void place_of_thread(int64_t n, int64_t *row, int64_t *key) const
    {
        const int t = (int)threadIdx.x;
        *row = K::OVER_ROWS ? n + t / 32 : tile + t / 8;
        *key = K::OVER_ROWS ? tile + t % 32 * 2 : n + t % 8 * 2;
    }

    static constexpr bool OF_DS = KIND == FREF__DQ || KIND == FREF__DK || KIND == FREF__DQ_LOST || KIND == FREF__DK_LOST;

    /* Of step n; those some steps further are on their way from then on: memory is farther than one step lasts. */
    __device__ __forceinline__ void load_scores(int64_t n)
    {
        enum { AHEAD = 5 * FREF__STEP };
        int64_t row, key;
        place_of_thread(n, &row, &key);
        const int64_t at = (head * c.chunk_rows + row) * c.keys_padded + key;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            held_x[i] = c.x[at + i];
            held_dp[i] = OF_DS ? c.dp[at + i] : 0.0;
        }
        if (n + AHEAD >= last)
            return;
        const int64_t further = at + (K::OVER_ROWS ? AHEAD * c.keys_padded : AHEAD);
        prefetch(c.x + further);
        if (OF_DS)
            prefetch(c.dp + further);
    }

    /* Of the step whose scores are held. */
    __device__ __forceinline__ void weigh(double *weights, int64_t n)
    {
        int64_t row, key;
        place_of_thread(n, &row, &key);
        const fref__facts &facts = c.facts[head * c.rows_padded + c.row0 + row];
        const int t = (int)threadIdx.x, at = K::OVER_ROWS ? t / 32 * BY_KEY + t % 32 * 2 : t / 8 * BY_ROW + t % 8 * 2;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            score s = { held_x[i], held_dp[i], 1.0, 0.0, 0.0, keep_of(c, head, c.row0 + row, key + i) };
            if (c.sloped) {
                const int64_t from = (head * c.chunk_rows + row) * c.keys_padded + key + i;
                s.slope = c.slope[from];
                s.curvature = c.curvature[from];
                s.slope_extra = c.slope_extra[from];
            }
            double w[K::TILES] = {};
            if (is_key(s.x)) {
                any |= K::weigh(w, c, s, facts);
                read |= 1u << i;
            }
#pragma unroll
            for (int n_tile = 0; n_tile < K::TILES; n_tile++)
                weights[n_tile * weights_of_tile<KIND> + at + i] = w[n_tile];
        }
    }

    __device__ __forceinline__ void stage_right(double *to, int64_t n) const
    {
        const int t = (int)threadIdx.x, row = t / 32, pair = t % 32 * 2;
        copy_async(to + row * BY_KEY + pair, right + (n + row) * ld + pair);
    }

    static __device__ __forceinline__ double weight_at(const double *weights, int m, int k)
    {
        return K::OVER_ROWS ? weights[k * BY_KEY + m] : weights[m * BY_ROW + k];
    }

    static __device__ __forceinline__ double changed(of f, double x)
    {
        return f == OF_VALUE ? x : f == OF_MAGNITUDE ? fabs(x) : x * x;
    }

    /* Eight keys (rows) at a time. */
    static __device__ __forceinline__ void add(double total[K::SUMS][2][4], const double *weights, const double *side)
    {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
        const int m0 = warp / 4 * 16, n0 = warp % 4 * 16;
#pragma unroll
        for (int k0 = 0; k0 < FREF__STEP; k0 += 8) {
            double x[2][2];
#pragma unroll
            for (int n = 0; n < 4; n++)
                x[n / 2][n % 2] = side[(k0 + t + n % 2 * 4) * BY_KEY + n0 + n / 2 * 8 + g];
#pragma unroll
            for (int n_tile = 0; n_tile < K::TILES; n_tile++) {
                double a[4];
#pragma unroll
                for (int n = 0; n < 4; n++)
                    a[n] = weight_at(weights + n_tile * weights_of_tile<KIND>, m0 + g + n % 2 * 8, k0 + t + n / 2 * 4);
#pragma unroll
                for (int s = 0; s < K::SUMS; s++)
                    if (K::sum(s).tile == n_tile)
                        add_one(total[s], a, x, K::sum(s));
            }
        }
    }

    static __device__ __forceinline__ void add_one(double total[2][4], const double a[4], const double x[2][2], const summand s)
    {
        const double left[4] = { changed(s.g, a[0]), changed(s.g, a[1]), changed(s.g, a[2]), changed(s.g, a[3]) };
#pragma unroll
        for (int n = 0; n < 2; n++) {
            const double b[2] = { changed(s.f, x[n][0]), changed(s.f, x[n][1]) };
            multiply(total[n], left, b);
        }
    }

    /* All steps. Half the warps weigh before they multiply, half after: so the tensor cores and the rest work at the same time. */
    __device__ __forceinline__ void run(double total[K::SUMS][2][4], double *shared)
    {
        double *side = shared, *weights = shared + 2 * SIDE;
        const int size = K::TILES * weights_of_tile<KIND>;
        int64_t now = step_from(first);
        if (now >= last)
            return;
        load_scores(now);
        stage_right(side, now);
        commit_copies();
        weigh(weights, now);
        int64_t next = step_from(now + FREF__STEP);
        if (next < last)
            load_scores(next);
        const bool early = threadIdx.x / 32 >= FREF__SUM_THREADS / 64;
        for (int buffer = 0; now < last; buffer ^= 1) {
            wait_for_copies<0>();
            __syncthreads();
            const int64_t after = next < last ? step_from(next + FREF__STEP) : last;
            if (next < last)
                stage_right(side + (buffer ^ 1) * SIDE, next);
            commit_copies();
            double *to = weights + (buffer ^ 1) * size;
            if (early && next < last) {
                weigh(to, next);
                if (after < last)
                    load_scores(after);
            }
            add(total, weights + buffer * size, side + buffer * SIDE);
            if (!early && next < last) {
                weigh(to, next);
                if (after < last)
                    load_scores(after);
            }
            now = next;
            next = after;
        }
    }
};

template <int KIND> __device__ __forceinline__ const double *right_of(const fref__call &c, int64_t head, int64_t *ld)
{
    const int64_t head_k = (c.head0 + head) / c.group_k - c.head_k0, head_v = (c.head0 + head) / c.group_v - c.head_v0;
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

/* Columns innermost, then tiles (those with most keys first), then heads. */
template <int KIND> __device__ __forceinline__ void make_sums(const fref__call &c, double *shared)
{
    using K = kind<KIND>;
    worker<KIND> w = { c };
    w.right = nullptr;
    int64_t ld;
    right_of<KIND>(c, 0, &ld);
    const int64_t columns = ld / FREF__TILE, tiles = (K::OVER_ROWS ? c.keys_padded : c.chunk_rows) / FREF__TILE;
    w.ld = ld;
    w.column = blockIdx.x % columns * FREF__TILE;
    w.tile = (tiles - 1 - blockIdx.x / columns % tiles) * FREF__TILE;
    w.head = blockIdx.x / columns / tiles;
    w.right = right_of<KIND>(c, w.head, &ld) + w.column;
    w.any = false;
    w.read = 0;
    const int64_t flag = w.head * tiles + w.tile / FREF__TILE;
    if (is_lost_kind<KIND> && !c.lossy[flag])
        return;
    if (K::OVER_ROWS) {
        w.keys = keys_of_tile(c, w.tile, FREF__TILE);
        w.first = 0;
        w.last = c.chunk_rows;
    } else {
        const fref__span range = c.tile_range[(w.head * c.rows_padded + c.row0 + w.tile) / FREF__TILE];
        w.first = range.first / FREF__STEP * FREF__STEP;
        w.last = range.last;
    }
    double sum[K::SUMS][2][4] = {};
    w.run(sum, shared);
    const bool any = __syncthreads_or(w.any);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (!is_lost_kind<KIND> && any && threadIdx.x == 0)
        c.lossy[flag] = 1;
    if (KIND == FREF__DK || KIND == FREF__DV) {
        const int64_t group = KIND == FREF__DK ? c.group_k : c.group_v, key = w.tile + lane * 2;
        for (int i = 0; i < 2; i++)
            if (w.read >> i & 1)
                c.read[(c.head0 + w.head) / group * c.keys + key + i] = 1;
    }
    const int64_t height = K::OVER_ROWS ? c.keys_padded : c.rows_padded, row = (K::OVER_ROWS ? 0 : c.row0) + w.tile;
    const bool add = K::OVER_ROWS && (is_lost_kind<KIND> || !c.first_chunk);
#pragma unroll
    for (int s = 0; s < K::SUMS; s++) {
        double *to = c.sum[is_lost_kind<KIND> ? FREF__SUMS - 1 : s] + (w.head * height + row + warp / 4 * 16 + lane / 4) * ld + w.column + warp % 4 * 16 + lane % 4 * 2;
#pragma unroll
        for (int n = 0; n < 2; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                double *one = to + i / 2 * 8 * ld + n * 8 + i % 2;
                *one = add ? *one + sum[s][n][i] : sum[s][n][i];
            }
    }
}

}

using namespace fref;

#define SUMS_KERNEL(name, kind)                                                                                                                  \
    extern "C" __global__ __launch_bounds__(FREF__SUM_THREADS, 1) void fref_##name(const __grid_constant__ fref__call c)                             \
    {                                                                                                                                            \
        FREF_SHARED(shared);                                                                                                                     \
        make_sums<kind>(c, shared);                                                                                                              \
    }
SUMS_KERNEL(sum_forward, FREF__FORWARD)
SUMS_KERNEL(sum_forward_kept, FREF__FORWARD_KEPT)
SUMS_KERNEL(sum_dq, FREF__DQ)
SUMS_KERNEL(sum_dk, FREF__DK)
SUMS_KERNEL(sum_dv, FREF__DV)
SUMS_KERNEL(sum_forward_lost, FREF__FORWARD_LOST)
SUMS_KERNEL(sum_dq_lost, FREF__DQ_LOST)
SUMS_KERNEL(sum_dk_lost, FREF__DK_LOST)
SUMS_KERNEL(sum_dv_lost, FREF__DV_LOST)
