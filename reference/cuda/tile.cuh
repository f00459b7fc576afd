/* A block's tile of the weighted sums: over keys for the rows (O, dQ), over rows for the keys (dK,
 * dV). The tile has TILE rows (keys) and TILE columns of all sums of a kind; a warp has 16 by 16 of
 * it. STEP keys (rows) at a time are weighted into shared memory and multiplied there with the
 * right-hand side. Every block of a row computes the weights of its keys again. The order of each
 * sum is fixed. */
#pragma once
#include "oracle_kernels.h"
#include "weigh.cuh"

namespace fref
{

/* 16 warps; two weights of a step for each thread. */
template <int KIND> struct worker {
    using K = kind<KIND>;
    static constexpr int HEIGHT = FREF__TILE, WIDTH = FREF__TILE, STEP = FREF__STEP;
    static_assert(HEIGHT * WIDTH == 256 * FREF__SUM_THREADS / 32 &&
                      HEIGHT * STEP == 2 * FREF__SUM_THREADS && FREF__TILE % STEP == 0,
                  "");
    /* A thread's part of the tile: of value, magnitude, variance, bound and mean. */
    static constexpr int SUMS = K::WEIGHTS > 1 ? K::WEIGHTS + 1 : 1;
    using T = double[SUMS][2][4];
    /* The right-hand side: [STEP][OF_SIDE]. Each of the weights: [HEIGHT / 2][OF_WEIGHTS], or over
     * rows [STEP][OF_WEIGHTS]. What one lane multiplies lies side by side: rows (over rows: keys) m
     * and m + 8 of every sixteen, for the same key (row). When they are read no lanes meet in a
     * bank. */
    static constexpr int OF_SIDE = WIDTH + 4, SIDE = STEP * OF_SIDE,
                         LINES = K::OVER_ROWS ? STEP : HEIGHT / 2;
    static constexpr int OF_WEIGHTS = K::OVER_ROWS ? HEIGHT + 4 : 2 * STEP + 8,
                         SIZE = LINES * OF_WEIGHTS, WEIGHTS = K::WEIGHTS * SIZE;
    static constexpr int LANES =
        (K::OVER_ROWS ? HEIGHT : STEP) / 2; /* threads of one row's pairs of keys */
    static constexpr bool OWN_FACTS = !K::OVER_ROWS && !K::OF_DS; /* registers hold them */
    static constexpr bool IN_PARTS = OWN_FACTS;
    static constexpr int APART = K::OVER_ROWS ? 8 : LANES; /* keys of a pair */
    static constexpr int FACTS = K::OVER_ROWS ? STEP * FREF__FACT_DOUBLES : 0;
    static_assert(sizeof(fref__facts) == FREF__FACT_DOUBLES * sizeof(double), "");
    static_assert(2 * SIDE + 2 * WEIGHTS + 2 * FACTS ==
                      (K::OVER_ROWS ? FREF__BY_KEY(K::WEIGHTS) : FREF__BY_ROW(K::WEIGHTS)),
                  "");
    const fref__call &c;
    int64_t head;
    int column, ld;
    int tile;                     /* first row (of the chunk) or key of the block's tile */
    const double *right;          /* of step 0 */
    int first, last;              /* of the steps' keys, or rows of the chunk */
    int64_t at_first;             /* of the thread's first score of step 0 */
    fref__span keys;              /* over rows: the tile's */
    double held_x[2], held_dp[2]; /* the next step's, of this thread: two keys of one row */
    const double *norm_k;
    fref__facts own;                          /* of the thread's row, over keys */
    double first_moment[2], second_moment[2]; /* of w: over keys both are of the thread's row, over
                                                 rows each of one of its keys */
    bool any, counts;
    uint32_t read;

    __device__ __forceinline__ explicit worker(const fref__call &call) : c(call)
    {
    }

    /* Of the keys. */
    static __device__ __forceinline__ int64_t part()
    {
        return IN_PARTS ? blockIdx.y : 0;
    }

    __device__ __forceinline__ bool tile_meets(int row) const
    {
        return meet(c.tile_range[(head * c.rows_padded + c.row0 + row) / FREF__TILE], keys);
    }

    /* The first step at or after n. */
    __device__ __forceinline__ int step_from(int n) const
    {
        if (K::OVER_ROWS)
            while (n < last && n % FREF__TILE == 0 && !tile_meets(n))
                n += FREF__TILE;
        return n;
    }

    __device__ __forceinline__ int row_of_thread(int n) const
    {
        return (K::OVER_ROWS ? n : tile) + (int)threadIdx.x / LANES;
    }

    __device__ __forceinline__ int key_of_thread(int n) const
    {
        return (K::OVER_ROWS ? tile : n) + first_key();
    }

    __device__ __forceinline__ int64_t at_step(int n) const
    {
        return at_first + (K::OVER_ROWS ? n * c.keys_padded : n);
    }

    /* The first of the thread's two keys, in the tile or step. */
    static __device__ __forceinline__ int first_key()
    {
        const int pair = (int)threadIdx.x % LANES;
        return pair / APART * 2 * APART + pair % APART;
    }

    /* Where the first of its weights lies; over keys the second lies 2 * APART further. */
    static __device__ __forceinline__ int place_of_weights()
    {
        const int line = (int)threadIdx.x / LANES, pair = (int)threadIdx.x % LANES;
        return K::OVER_ROWS ? line * OF_WEIGHTS + 2 * pair
                            : (line / 16 * 8 + line % 8) * OF_WEIGHTS + 2 * pair + line % 16 / 8;
    }

    /* Fetches step n and starts to fetch later ones: memory takes longer than one step. */
    __device__ __forceinline__ void load_scores(int n)
    {
        constexpr int AHEAD = 5 * STEP;
        const int64_t at = at_step(n);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            held_x[i] = c.x[at + i * APART];
            held_dp[i] = K::OF_DS ? c.dp[at + i * APART] : 0.0;
        }
        if (n + AHEAD >= last)
            return;
        const int64_t further = at + (K::OVER_ROWS ? AHEAD * c.keys_padded : AHEAD);
        prefetch(c.x + further);
        if (K::OF_DS)
            prefetch(c.dp + further);
    }

    /* docs/numerics.md, degrees of freedom: dS^2 |k|^2, dS^2 |q|^2 or P^2 |dO|^2. */
    __device__ __forceinline__ void count(int i, double value, const fref__facts &facts, int key)
    {
        const double term = value * (KIND == FREF__DQ   ? norm_k[key]
                                     : KIND == FREF__DK ? facts.norm_q
                                                        : facts.norm_d_o),
                     w = term * term;
        first_moment[i] += w;
        second_moment[i] += w * w;
    }

    /* Of the step whose scores are held; over rows `staged` are its facts. */
    __device__ __forceinline__ void weigh(double *to, const double *staged, int n)
    {
        const int row = row_of_thread(n), key = key_of_thread(n);
        const fref__facts &facts = K::OVER_ROWS ? ((const fref__facts *)staged)[threadIdx.x / LANES]
                                   : OWN_FACTS  ? own
                                                : c.facts[head * c.rows_padded + c.row0 + row];
        double all[4][2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            score s = { held_x[i], held_dp[i], 1.0,
                        0.0,       0.0,        keep_of(c, head, c.row0 + row, key + i * APART) };
            if (c.sloped) {
                const int64_t from = at_step(n) + i * APART;
                s.slope = c.slope[from];
                s.curvature = c.curvature[from];
                s.slope_extra = c.slope_extra[from];
            }
            weights w = {};
            if (is_key(s.x)) {
                any |= K::weigh(&w, c, s, facts);
                read |= 1u << i;
                if (counts) /* dS before it saturates, as the variance takes it */
                    count(i, K::OF_DS ? gradient_of(s, facts).ds : w.value, facts, key + i * APART);
            }
            all[0][i] = w.value;
            all[1][i] = w.variance;
            all[2][i] = w.bound;
            all[3][i] = w.mean;
        }
#pragma unroll
        for (int which = 0; which < K::WEIGHTS; which++) {
            double *const place = to + which * SIZE + place_of_weights();
            if (K::OVER_ROWS) {
                *(double2 *)place = { all[which][0], all[which][1] };
            } else {
                place[0] = all[which][0];
                place[2 * APART] = all[which][1];
            }
        }
    }

    __device__ __forceinline__ void stage_right(double *to, int n) const
    {
#pragma unroll
        for (int i = 0; i < STEP * WIDTH / 2 / FREF__SUM_THREADS; i++) {
            const int t = (int)threadIdx.x + i * FREF__SUM_THREADS, row = t / (WIDTH / 2),
                      pair = t % (WIDTH / 2) * 2;
            copy_async(to + row * OF_SIDE + pair, right + (int64_t)(n + row) * ld + pair);
        }
    }

    /* Over rows each step has other facts: they are fetched two steps before. */
    __device__ __forceinline__ void stage_facts(double *to, int n) const
    {
        const int t = 2 * (int)threadIdx.x;
        if (K::OVER_ROWS && n < last && t < FACTS)
            copy_async(to + t, (const double *)(c.facts + head * c.rows_padded + c.row0 + n) + t);
    }

    /* Of the tile of 16 rows (keys) from m on the lane's four weights of eight steps from k on. */
    static __device__ __forceinline__ void take_weights(double a[4], const double *weights, int m,
                                                        int k)
    {
        const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
        for (int n = 0; n < 2; n++) {
            const int step = k + t + 4 * n;
            const double2 pair =
                *(const double2 *)(weights + (K::OVER_ROWS ? step * OF_WEIGHTS + m + 2 * g
                                                           : (m / 2 + g) * OF_WEIGHTS + 2 * step));
            a[2 * n] = pair.x;
            a[2 * n + 1] = pair.y;
        }
    }

    /* Of the tile, the warp's first row (key), and its first column. */
    static __device__ __forceinline__ int first_row()
    {
        return (int)threadIdx.x / 32 / (WIDTH / 16) * 16;
    }

    static __device__ __forceinline__ int first_column()
    {
        return (int)threadIdx.x / 32 % (WIDTH / 16) * 16;
    }

    /* Eight keys (rows) at a time. */
    static __device__ __forceinline__ void add(T &total, const double *weights, const double *side)
    {
        const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, column = first_column() + g;
#pragma unroll
        for (int k = 0; k < STEP; k += 8) {
            double x[2][2], size[2][2], square[2][2];
#pragma unroll
            for (int n = 0; n < 4; n++) {
                const double one = side[(k + t + n % 2 * 4) * OF_SIDE + column + n / 2 * 8];
                x[n / 2][n % 2] = one;
                size[n / 2][n % 2] = fabs(one);
                square[n / 2][n % 2] = one * one;
            }
#pragma unroll
            for (int sum = 0; sum < SUMS; sum++) {
                double a[4];
                take_weights(a, weights + (sum < 2 ? 0 : sum - 1) * SIZE, first_row(), k);
                if (sum == 1)
#pragma unroll
                    for (int n = 0; n < 4; n++)
                        a[n] = fabs(a[n]);
                const double (*side_of)[2] = sum == 0 || sum == 4 ? x : sum == 2 ? square : size;
                multiply(total[sum][0], a, side_of[0]);
                multiply(total[sum][1], a, side_of[1]);
            }
        }
    }

    /* All steps. Half the warps compute weights before they multiply, half after: so the tensor
     * cores and the other units work at the same time. */
    __device__ __forceinline__ void run(T &total, double *shared)
    {
        double *side = shared, *weights = shared + 2 * SIDE, *facts = weights + 2 * WEIGHTS;
        int now = step_from(first);
        if (now >= last)
            return;
        int next = step_from(now + STEP);
        load_scores(now);
        stage_right(side, now);
        stage_facts(facts, now);
        stage_facts(facts + FACTS, next);
        commit_copies();
        if (K::OVER_ROWS) {
            wait_for_copies<0>();
            __syncthreads();
        }
        weigh(weights, facts, now);
        if (next < last)
            load_scores(next);
        const bool early = threadIdx.x / 32 >= FREF__SUM_THREADS / 64;
        for (int buffer = 0; now < last; buffer ^= 1) {
            wait_for_copies<0>();
            __syncthreads();
            const int after = next < last ? step_from(next + STEP) : last;
            if (next < last)
                stage_right(side + (buffer ^ 1) * SIDE, next);
            stage_facts(facts + buffer * FACTS, after);
            commit_copies();
            const int other = buffer ^ 1;
            if (early && next < last) {
                weigh(weights + other * WEIGHTS, facts + other * FACTS, next);
                if (after < last)
                    load_scores(after);
            }
            add(total, weights + buffer * WEIGHTS, side + buffer * SIDE);
            if (!early && next < last) {
                weigh(weights + other * WEIGHTS, facts + other * FACTS, next);
                if (after < last)
                    load_scores(after);
            }
            now = next;
            next = after;
        }
    }

    /* The thread's part of one sum. */
    __device__ __forceinline__ void put(double *out, const double total[2][4], bool add) const
    {
        const int lane = threadIdx.x % 32, line = first_row() + lane / 4;
        const int64_t height = K::OVER_ROWS ? c.keys_padded : c.rows_padded,
                      row = (K::OVER_ROWS ? 0 : c.row0) + tile;
        double *to = out + ((part() * c.heads + head) * height + row + line) * ld + column +
                     first_column() + lane % 4 * 2;
#pragma unroll
        for (int n = 0; n < 2; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                double *one = to + (int64_t)(i / 2 * 8) * ld + n * 8 + i % 2;
                *one = add ? *one + total[n][i] : total[n][i];
            }
    }

    __device__ __forceinline__ void put_all(const T &total, bool add) const
    {
#pragma unroll
        for (int n = 0; n < SUMS; n++)
            put(c.sum[is_lost_kind<KIND> ? FREF__SUMS - 1 : n], total[n], add);
    }

    /* The counts of the threads' rows. */
    __device__ __forceinline__ void put_counts_of_rows() const
    {
        const double a = sum_of_lanes<LANES>(first_moment[0] + first_moment[1]),
                     b = sum_of_lanes<LANES>(second_moment[0] + second_moment[1]);
        if (threadIdx.x % LANES == 0)
            c.facts[head * c.rows_padded + c.row0 + tile + threadIdx.x / LANES].neff =
                effective_number(a, b);
    }

    /* Of their keys, in the order of their lines. */
    __device__ __forceinline__ void put_counts_of_keys(double *shared) const
    {
        double *mine = shared + (threadIdx.x / LANES * HEIGHT + first_key()) * 2;
        for (int i = 0; i < 2; i++) {
            mine[2 * i * APART] = first_moment[i];
            mine[2 * i * APART + 1] = second_moment[i];
        }
        __syncthreads();
        const int key = (int)threadIdx.x / 2, moment = (int)threadIdx.x % 2;
        if (key >= HEIGHT || tile + key >= c.keys)
            return;
        double sum = 0.0;
        for (int n = 0; n < FREF__SUM_THREADS / LANES; n++)
            sum += shared[(n * HEIGHT + key) * 2 + moment];
        double *to = c.key_weights + 2 * ((c.head0 + head) * c.keys + tile + key) + moment;
        *to = c.first_chunk ? sum : *to + sum;
    }
};

} // namespace fref
