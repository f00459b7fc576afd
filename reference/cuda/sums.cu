/* The weighted sums: over keys for the rows (O, dQ), over rows for the keys (dK, dV). A block makes a tile of HEIGHT rows (keys) and WIDTH columns
 * of all sums of a kind, a warp 16 by 16 of it; STEP keys (rows) at a time are weighed into shared memory and multiplied there with the right-hand
 * side. Every block of a row weighs its keys anew: where the columns allow it a tile is wide. Each sum runs in one order whatever else runs.
 */
#include "weigh.cuh"

namespace fref {

/* 16 warps; two weights of a step for each thread. */
template <bool WIDE> struct shape {
    static constexpr int HEIGHT = WIDE ? FREF__WIDE_HEIGHT : FREF__TILE, WIDTH = WIDE ? FREF__WIDE : FREF__TILE;
    static constexpr int STEP = WIDE ? FREF__WIDE_STEP : FREF__STEP;
    static_assert(HEIGHT * WIDTH == 256 * FREF__SUM_THREADS / 32 && HEIGHT * STEP == 2 * FREF__SUM_THREADS && FREF__TILE % STEP == 0, "");
};

template <int KIND, bool WIDE> struct worker : shape<WIDE> {
    using K = kind<KIND>;
    using shape<WIDE>::HEIGHT;
    using shape<WIDE>::WIDTH;
    using shape<WIDE>::STEP;
    /* The right-hand side: [STEP][OF_SIDE]. The weights: [HEIGHT][OF_WEIGHTS], or over rows [STEP][OF_WEIGHTS]. No lanes meet in a bank. */
    static constexpr int OF_SIDE = WIDTH + 4, SIDE = STEP * OF_SIDE;
    static constexpr int OF_WEIGHTS = (K::OVER_ROWS ? HEIGHT : STEP) + 4, WEIGHTS = (K::OVER_ROWS ? STEP : HEIGHT) * OF_WEIGHTS;
    static constexpr int LANES = (K::OVER_ROWS ? HEIGHT : STEP) / 2; /* threads of one row's pairs of keys */
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

    __device__ __forceinline__ explicit worker(const fref__call &call) : c(call) {}

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
        *row = (K::OVER_ROWS ? n : tile) + t / LANES;
        *key = (K::OVER_ROWS ? tile : n) + t % LANES * 2;
    }

    static constexpr bool OF_DS = KIND == FREF__DQ || KIND == FREF__DK || KIND == FREF__DQ_LOST || KIND == FREF__DK_LOST;

    /* Of step n; those some steps further are on their way from then on: memory is farther than one step lasts. */
    __device__ __forceinline__ void load_scores(int64_t n)
    {
        constexpr int AHEAD = WIDE ? 3 * STEP : 5 * STEP;
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
        const int t = (int)threadIdx.x, at = t / LANES * OF_WEIGHTS + t % LANES * 2;
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
                weights[n_tile * WEIGHTS + at + i] = w[n_tile];
        }
    }

    __device__ __forceinline__ void stage_right(double *to, int64_t n) const
    {
#pragma unroll
        for (int i = 0; i < STEP * WIDTH / 2 / FREF__SUM_THREADS; i++) {
            const int t = (int)threadIdx.x + i * FREF__SUM_THREADS, row = t / (WIDTH / 2), pair = t % (WIDTH / 2) * 2;
            copy_async(to + row * OF_SIDE + pair, right + (n + row) * ld + pair);
        }
    }

    static __device__ __forceinline__ double weight_at(const double *weights, int m, int k)
    {
        return K::OVER_ROWS ? weights[k * OF_WEIGHTS + m] : weights[m * OF_WEIGHTS + k];
    }

    static __device__ __forceinline__ double changed(of f, double x)
    {
        return f == OF_VALUE ? x : f == OF_MAGNITUDE ? fabs(x) : x * x;
    }

    /* Eight keys (rows) at a time. */
    static __device__ __forceinline__ void add(double total[K::SUMS][2][4], const double *weights, const double *side)
    {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
        const int m0 = warp / (WIDTH / 16) * 16, n0 = warp % (WIDTH / 16) * 16;
#pragma unroll
        for (int k0 = 0; k0 < STEP; k0 += 8) {
            double x[2][2];
#pragma unroll
            for (int n = 0; n < 4; n++)
                x[n / 2][n % 2] = side[(k0 + t + n % 2 * 4) * OF_SIDE + n0 + n / 2 * 8 + g];
#pragma unroll
            for (int n_tile = 0; n_tile < K::TILES; n_tile++) {
                double a[4];
#pragma unroll
                for (int n = 0; n < 4; n++)
                    a[n] = weight_at(weights + n_tile * WEIGHTS, m0 + g + n % 2 * 8, k0 + t + n / 2 * 4);
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
        const int size = K::TILES * WEIGHTS;
        int64_t now = step_from(first);
        if (now >= last)
            return;
        load_scores(now);
        stage_right(side, now);
        commit_copies();
        weigh(weights, now);
        int64_t next = step_from(now + STEP);
        if (next < last)
            load_scores(next);
        const bool early = threadIdx.x / 32 >= FREF__SUM_THREADS / 64;
        for (int buffer = 0; now < last; buffer ^= 1) {
            wait_for_copies<0>();
            __syncthreads();
            const int64_t after = next < last ? step_from(next + STEP) : last;
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
template <int KIND, bool WIDE> __device__ __forceinline__ void make_sums(const fref__call &c, double *shared)
{
    using K = kind<KIND>;
    using W = worker<KIND, WIDE>;
    W w(c);
    w.right = nullptr;
    int64_t ld;
    right_of<KIND>(c, 0, &ld);
    const int64_t columns = ld / W::WIDTH, tiles = (K::OVER_ROWS ? c.keys_padded : c.chunk_rows) / W::HEIGHT;
    w.ld = ld;
    w.column = blockIdx.x % columns * W::WIDTH;
    w.tile = (tiles - 1 - blockIdx.x / columns % tiles) * W::HEIGHT;
    w.head = blockIdx.x / columns / tiles;
    w.right = right_of<KIND>(c, w.head, &ld) + w.column;
    w.any = false;
    w.read = 0;
    const int64_t flag = (w.head * tiles * W::HEIGHT + w.tile) / FREF__TILE;
    if (is_lost_kind<KIND> && !c.lossy[flag])
        return;
    if (K::OVER_ROWS) {
        w.keys = keys_of_tile(c, w.tile, W::HEIGHT);
        w.first = 0;
        w.last = c.chunk_rows;
    } else {
        const fref__span range = c.tile_range[(w.head * c.rows_padded + c.row0 + w.tile) / FREF__TILE];
        w.first = range.first / W::STEP * W::STEP;
        w.last = range.last;
    }
    double sum[K::SUMS][2][4] = {};
    w.run(sum, shared);
    const bool any = __syncthreads_or(w.any);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (!is_lost_kind<KIND> && any && threadIdx.x == 0)
        c.lossy[flag] = 1;
    if (KIND == FREF__DK || KIND == FREF__DV) {
        const int64_t group = KIND == FREF__DK ? c.group_k : c.group_v, key = w.tile + lane % W::LANES * 2;
        for (int i = 0; i < 2; i++)
            if (w.read >> i & 1)
                c.read[(c.head0 + w.head) / group * c.keys + key + i] = 1;
    }
    const int64_t height = K::OVER_ROWS ? c.keys_padded : c.rows_padded, row = (K::OVER_ROWS ? 0 : c.row0) + w.tile;
    const bool add = K::OVER_ROWS && (is_lost_kind<KIND> || !c.first_chunk);
#pragma unroll
    for (int s = 0; s < K::SUMS; s++) {
        double *to = c.sum[is_lost_kind<KIND> ? FREF__SUMS - 1 : s] + (w.head * height + row + warp / (W::WIDTH / 16) * 16 + lane / 4) * ld + w.column + warp % (W::WIDTH / 16) * 16 + lane % 4 * 2;
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

#define SUMS_KERNEL(name, kind, wide)                                                                                                            \
    extern "C" __global__ __launch_bounds__(FREF__SUM_THREADS, 1) void fref_##name(const __grid_constant__ fref__call c)                         \
    {                                                                                                                                            \
        FREF_SHARED(shared);                                                                                                                     \
        make_sums<kind, wide>(c, shared);                                                                                                        \
    }
#define BOTH_KERNELS(name, kind) SUMS_KERNEL(name, kind, false) SUMS_KERNEL(name##_wide, kind, true)
BOTH_KERNELS(sum_forward, FREF__FORWARD)
BOTH_KERNELS(sum_forward_kept, FREF__FORWARD_KEPT)
BOTH_KERNELS(sum_dq, FREF__DQ)
BOTH_KERNELS(sum_dk, FREF__DK)
BOTH_KERNELS(sum_dv, FREF__DV)
SUMS_KERNEL(sum_forward_lost, FREF__FORWARD_LOST, false)
SUMS_KERNEL(sum_dq_lost, FREF__DQ_LOST, false)
SUMS_KERNEL(sum_dk_lost, FREF__DK_LOST, false)
SUMS_KERNEL(sum_dv_lost, FREF__DV_LOST, false)
