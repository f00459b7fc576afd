/* A block's tile of the weighted sums: over keys for the rows (O, dQ), over rows for the keys (dK,
 * dV). The tile has HEIGHT rows (keys) and WIDTH columns of all sums of a kind; a warp has 16 by 16
 * of it. STEP keys (rows) at a time are weighted into shared memory and multiplied there with the
 * right-hand side. Values are computed in double, the parts of sigmas and bounds roughly
 * (weigh.cuh). Every block of a row computes the weights of its keys again, so a tile is wide if
 * the columns allow it. The order of each sum is fixed. */
#pragma once
#include "oracle_kernels.h"
#include "weigh.cuh"

namespace fref
{

/* 16 warps; two weights of a step for each thread. */
template <bool WIDE> struct shape {
    static constexpr int HEIGHT = WIDE ? FREF__WIDE_HEIGHT : FREF__TILE,
                         WIDTH = WIDE ? FREF__WIDE : FREF__TILE;
    static constexpr int STEP = WIDE ? FREF__WIDE_STEP : FREF__STEP;
    static_assert(HEIGHT * WIDTH == 256 * FREF__SUM_THREADS / 32 &&
                      HEIGHT * STEP == 2 * FREF__SUM_THREADS && FREF__TILE % STEP == 0,
                  "");
};

/* A thread's part of the tile: of `value` and `mean`; of magnitude, variance and bound. */
template <int EXACT, int ROUGH> struct totals {
    double exact[EXACT][2][4];
    float rough[ROUGH == 0 ? 1 : ROUGH][2][4];
};

template <int KIND, bool WIDE> struct worker : shape<WIDE> {
    using K = kind<KIND>;
    using shape<WIDE>::HEIGHT;
    using shape<WIDE>::WIDTH;
    using shape<WIDE>::STEP;
    using T = totals<K::EXACT, K::ROUGH>;
    /* The right-hand side: [STEP][OF_SIDE]. The weights: [HEIGHT / 2][OF_EXACT], or over rows [STEP][OF_EXACT]; the rough ones' likewise, the first
     * of them the magnitudes of the exact ones. What one lane multiplies lies side by side: rows (over rows: keys) m and m + 8 of every sixteen, for
     * the same key (row). When they are read no lanes meet in a bank. */
    static constexpr int OF_SIDE = WIDTH + 4, SIDE = STEP * OF_SIDE,
                         LINES = K::OVER_ROWS ? STEP : HEIGHT / 2;
    static constexpr int OF_EXACT = K::OVER_ROWS ? HEIGHT + 4 : 2 * STEP + 8,
                         EXACT_SIZE = LINES * OF_EXACT;
    static constexpr int OF_ROUGH = K::OVER_ROWS ? HEIGHT + 8 : 2 * STEP + 8,
                         ROUGH_SIZE = LINES * OF_ROUGH;
    static constexpr int LANES =
        (K::OVER_ROWS ? HEIGHT : STEP) / 2; /* threads of one row's pairs of keys */
    static constexpr bool OWN_FACTS = !K::OVER_ROWS && !K::OF_DS; /* registers hold them */
    static constexpr bool IN_PARTS = OWN_FACTS && !WIDE;
    static constexpr int APART = K::OVER_ROWS ? 8 : LANES; /* keys of a pair */
    static constexpr int FACTS = K::OVER_ROWS ? STEP * FREF__FACT_DOUBLES : 0;
    static_assert(sizeof(fref__facts) == FREF__FACT_DOUBLES * sizeof(double), "");
    static_assert(2 * SIDE + 2 * K::EXACT * EXACT_SIZE + K::ROUGH * ROUGH_SIZE + 2 * FACTS ==
                      (WIDE ? (K::OVER_ROWS ? FREF__WIDE_BY_KEY(K::EXACT, K::ROUGH)
                                            : FREF__WIDE_BY_ROW(K::EXACT, K::ROUGH))
                            : (K::OVER_ROWS ? FREF__BY_KEY(K::EXACT, K::ROUGH)
                                            : FREF__BY_ROW(K::EXACT, K::ROUGH))),
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
    double unit;                  /* that weights are multiplied with, */
    float unit_right;             /* and the right-hand side of rough sums, */
    double flushed;               /* and the largest loss of these */
    const double *norm_k;
    fref__facts own;                          /* of the thread's row, over keys */
    double first_moment[2], second_moment[2]; /* of w: over keys both are of the thread's row, over
                                                 rows each of one of its keys */
    bool any, counts;
    uint32_t read;
    uint32_t heavy[2]; /* bits of all rough weights; over keys the first alone, of the thread's row,
                          over rows each of one of its keys */

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
    static __device__ __forceinline__ int place_of_weights(int ld)
    {
        const int line = (int)threadIdx.x / LANES, pair = (int)threadIdx.x % LANES;
        return K::OVER_ROWS ? line * ld + 2 * pair
                            : (line / 16 * 8 + line % 8) * ld + 2 * pair + line % 16 / 8;
    }

    /* Fetches step n and starts to fetch later ones: memory takes longer than one step. */
    __device__ __forceinline__ void load_scores(int n)
    {
        constexpr int AHEAD = WIDE ? 3 * STEP : 5 * STEP;
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
    __device__ __forceinline__ void weigh(double *exact, float *rough, const double *staged, int n)
    {
        const int row = row_of_thread(n), key = key_of_thread(n);
        const fref__facts &facts = K::OVER_ROWS ? ((const fref__facts *)staged)[threadIdx.x / LANES]
                                   : OWN_FACTS  ? own
                                                : c.facts[head * c.rows_padded + c.row0 + row];
        double values[2], means[2];
        float magnitudes[2], variances[2], bounds[2];
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
            values[i] = w.value * unit;
            means[i] = w.mean * unit;
            magnitudes[i] = cut(fabsf((float)values[i]));
            variances[i] = as_rough(w.variance * unit * unit);
            bounds[i] = as_rough(w.bound * unit);
            heavy[K::OVER_ROWS ? i : 0] |= __float_as_uint(variances[i]);
        }
        double *const of_exact = exact + place_of_weights(OF_EXACT);
        float *const of_rough = rough + place_of_weights(OF_ROUGH);
        put_pair<double2>(of_exact, values);
        if (K::EXACT > 1)
            put_pair<double2>(of_exact + EXACT_SIZE, means);
        if (K::ROUGH > 0) {
            put_pair<float2>(of_rough, magnitudes);
            put_pair<float2>(of_rough + ROUGH_SIZE, variances);
        }
        if (K::ROUGH > 2)
            put_pair<float2>(of_rough + 2 * ROUGH_SIZE, bounds);
    }

    template <class PAIR, class X>
    static __device__ __forceinline__ void put_pair(X *to, const X x[2])
    {
        if (K::OVER_ROWS) {
            *(PAIR *)to = { x[0], x[1] };
        } else {
            to[0] = x[0];
            to[2 * APART] = x[1];
        }
    }

    static __device__ __forceinline__ float as_rough(double w)
    {
        return w > 0.0 ? cut(fmaxf((float)w, 0x1p-126f)) : 0.0f;
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
    template <int LD, class X, class PAIR>
    static __device__ __forceinline__ void take_weights(X a[4], const X *weights, int m, int k)
    {
        const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
        for (int n = 0; n < 2; n++) {
            const int step = k + t + 4 * n;
            const PAIR pair =
                *(const PAIR *)(weights + (K::OVER_ROWS ? step * LD + m + 2 * g
                                                        : (m / 2 + g) * LD + 2 * step));
            a[2 * n] = pair.x;
            a[2 * n + 1] = pair.y;
        }
    }

    static __device__ __forceinline__ void take_exact(double a[4], const double *weights, int m,
                                                      int k)
    {
        take_weights<OF_EXACT, double, double2>(a, weights, m, k);
    }

    static __device__ __forceinline__ void take_rough(float a[4], const float *weights, int m,
                                                      int k)
    {
        take_weights<OF_ROUGH, float, float2>(a, weights, m, k);
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
    static __device__ __forceinline__ void add(T *total, const double *exact, const float *rough,
                                               const double *side, float unit_right)
    {
        const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, column = first_column() + g;
#pragma unroll
        for (int k0 = 0; k0 < STEP; k0 += 8) {
            double a[4], x[2][2];
#pragma unroll
            for (int n = 0; n < 4; n++)
                x[n / 2][n % 2] = side[(k0 + t + n % 2 * 4) * OF_SIDE + column + n / 2 * 8];
#pragma unroll
            for (int n = 0; n < K::EXACT; n++) {
                take_exact(a, exact + n * EXACT_SIZE, first_row(), k0);
                multiply(total->exact[n][0], a, x[0]);
                multiply(total->exact[n][1], a, x[1]);
            }
            if (K::ROUGH > 0)
                add_roughly(total, x, rough, k0, unit_right);
        }
    }

    static __device__ __forceinline__ void add_roughly(T *total, const double x[2][2],
                                                       const float *rough, int k, float unit_right)
    {
        float a[4], size[2][2], square[2][2];
#pragma unroll
        for (int n = 0; n < 4; n++) {
            const float one = fabsf((float)x[n / 2][n % 2]) * unit_right;
            size[n / 2][n % 2] = cut(one);
            square[n / 2][n % 2] = cut(one * one);
        }
#pragma unroll
        for (int n = 0; n < K::ROUGH; n++) {
            take_rough(a, rough + n * ROUGH_SIZE, first_row(), k);
            multiply_roughly(total->rough[n][0], a, n == 1 ? square[0] : size[0]);
            multiply_roughly(total->rough[n][1], a, n == 1 ? square[1] : size[1]);
        }
    }

    /* All steps. Half the warps compute weights before they multiply, half after: so the tensor cores and the other units work
     * at the same time. */
    __device__ __forceinline__ void run(T *total, double *shared)
    {
        double *side = shared, *exact = shared + 2 * SIDE;
        float *rough = (float *)(exact + 2 * K::EXACT * EXACT_SIZE);
        double *facts = (double *)(rough + 2 * K::ROUGH * ROUGH_SIZE);
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
        weigh(exact, rough, facts, now);
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
                weigh(exact + other * K::EXACT * EXACT_SIZE, rough + other * K::ROUGH * ROUGH_SIZE,
                      facts + other * FACTS, next);
                if (after < last)
                    load_scores(after);
            }
            add(total, exact + buffer * K::EXACT * EXACT_SIZE,
                rough + buffer * K::ROUGH * ROUGH_SIZE, side + buffer * SIDE, unit_right);
            if (!early && next < last) {
                weigh(exact + other * K::EXACT * EXACT_SIZE, rough + other * K::ROUGH * ROUGH_SIZE,
                      facts + other * FACTS, next);
                if (after < last)
                    load_scores(after);
            }
            now = next;
            next = after;
        }
    }

    /* The rows (keys) of the tile with a weight other than 0: in the others nothing is lost. */
    __device__ __forceinline__ void note_heavy(uint8_t *weighs) const
    {
        const int line = (int)threadIdx.x / LANES;
        for (int i = 0; i < 2; i++)
            if (heavy[K::OVER_ROWS ? i : 0] != 0)
                weighs[K::OVER_ROWS ? first_key() + i * APART : line] = 1;
    }

    /* The thread's part of one sum, times `by`, after `flushed` was added to it where something
     * weighs (NULL: nothing is ever added). */
    template <class X>
    __device__ __forceinline__ void put(double *out, const X total[2][4], const uint8_t *weighs,
                                        double by, bool add) const
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
                const int below = i / 2 * 8;
                double *one = to + (int64_t)below * ld + n * 8 + i % 2;
                const bool misses = weighs != nullptr && weighs[line + below] != 0;
                const double sum = ((double)total[n][i] + (misses ? flushed : 0.0)) * by;
                *one = add ? *one + sum : sum;
            }
    }

    __device__ __forceinline__ void put_all(const T &total, const uint8_t *weighs, bool add) const
    {
        const double by = 1.0 / unit, rough = SURPLUS / (unit * (double)unit_right);
        put(c.sum[is_lost_kind<KIND> ? FREF__SUMS - 1 : 0], total.exact[0], nullptr, by, add);
        if (K::EXACT > 1)
            put(c.sum[4], total.exact[K::EXACT - 1], nullptr, by, add);
        if (K::ROUGH == 0)
            return;
        put(c.sum[1], total.rough[0], weighs, rough, add);
        put(c.sum[2], total.rough[K::ROUGH > 1], weighs, rough / (unit * (double)unit_right), add);
        if (K::ROUGH > 2)
            put(c.sum[3], total.rough[K::ROUGH > 2 ? 2 : 0], weighs, rough, add);
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
