/* What a key's score weighs in each sum; the formulas stand in src/forward.c, src/backward_rows.c and src/backward_keys.c. */
#pragma once
#include "element.cuh"

namespace fref {

/* A probability below this may be flushed to zero by fp32 arithmetic. */
constexpr double P_FLUSHED = 0x1.125fbee250664p-126; /* 2^-125.9 */
constexpr double E32 = 0x1p-23, THIRD = 1.0 / 3.0;

/* What is done to an element of the right-hand side. */
enum of { OF_VALUE, OF_MAGNITUDE, OF_SQUARE };

/* A sum is g(weights[tile]) times f(right). */
struct summand {
    int tile;
    of f;
    of g;
};

/* 0 < p < limit, both not negative, without the units that multiply. */
__device__ __forceinline__ bool between_0_and(double p, double limit)
{
    return (unsigned long long)(__double_as_longlong(p) - 1) < (unsigned long long)(__double_as_longlong(limit) - 1);
}

__device__ __forceinline__ bool is_key(double x)
{
    return (unsigned long long)__double_as_longlong(x) != 0xfff0000000000000ULL;
}

struct score {
    double x, dp, slope, curvature, slope_extra;
    double keep; /* what the weight of a kept key is multiplied with; 0: dropped */
};

__device__ __forceinline__ double probability(const score &s, const fref__facts &f)
{
    return exp(s.x - f.shift) * f.per_sum;
}

/* What a kept key's probability is multiplied with; 0: dropped. */
__device__ __forceinline__ double keep_of(const fref__call &c, int64_t head, int64_t r, int64_t n)
{
    if (c.problem.keep == nullptr || r >= c.rows || n >= c.keys)
        return 1.0;
    const int64_t at = ((c.head0 + head) * c.problem.rows + row_of(c, r)) * c.problem.keys + key_of(c, n);
    return c.problem.keep[at] != 0 ? c.problem.keep_scale : 0.0;
}

/* The sink of a row; none at or past len_q. */
__device__ __forceinline__ double sink_of(const fref__call &c, int64_t b, int64_t h, int64_t i)
{
    const bool has = c.problem.sink != nullptr && (c.problem.len_q == nullptr || i < c.problem.len_q[b]);
    return has ? (double)c.problem.sink[h] : -infinity();
}

/* The largest magnitude, and the least and the most that a right kernel may say it is. */
struct amax {
    double value, least, most;
};

__device__ __forceinline__ void take(amax *a, double size, double tolerance)
{
    a->value = fmax(a->value, size);
    a->least = fmax(a->least, size - tolerance);
    a->most = fmax(a->most, size + tolerance);
}

/* Joins the lanes' to out[3], NULL: not wanted. Numbers that are not negative are in the order of their bits. */
__device__ __forceinline__ void join(double *out, const amax &a)
{
    if (out == nullptr)
        return;
    const double all[3] = { largest_of_warp(a.value), largest_of_warp(a.least), largest_of_warp(a.most) };
    for (int n = 0; n < 3; n++)
        if (threadIdx.x % 32 == 0)
            atomicMax((unsigned long long *)out + n, (unsigned long long)__double_as_longlong(all[n]));
}

__device__ __forceinline__ double clamped(double x, double most)
{
    return x > most ? most : x < -most ? -most : x;
}

struct gradient {
    double p, dx, ds, size, slope_p;
    bool underflows;
};

__device__ __forceinline__ gradient gradient_of(const score &s, const fref__facts &f)
{
    gradient g;
    g.p = probability(s, f);
    g.dx = g.p * (s.dp * s.keep - f.delta);
    g.ds = s.slope * g.dx;
    g.size = fabs(g.ds);
    g.slope_p = fabs(s.slope) * g.p;
    g.underflows = g.p < P_FLUSHED;
    return g;
}

__device__ __forceinline__ double floor_of_ds(const fref__call &c)
{
    const double scale = fabs(c.problem.scale);
    return c.of_ds.eta / (scale > 0.0 && scale < 1.0 ? scale : 1.0);
}

__device__ __forceinline__ bool is_lost(const fref__call &c, const gradient &g)
{
    return g.ds != 0.0 && (g.underflows || fabs(c.problem.scale) * g.size < 1.01 * c.of_ds.eta);
}

/* dS: what dQ and dK have in common. worst_delta: what enters as a sum, not along the mean key. */
__device__ __forceinline__ bool weigh_ds(double *value, double *bound, double *variance, const fref__call &c,
                                         const score &s, const fref__facts &f, const gradient &g, double variance_p, double worst_p)
{
    double e_slope = 0.0, worst_slope = 0.0;
    if (c.sloped) {
        e_slope = fabs(s.curvature) * f.es_raw + E32 * s.slope_extra;
        worst_slope = fabs(s.curvature) * f.ew_raw + 2.0 * E32 * s.slope_extra;
    }
    const double floor = floor_of_ds(c), part = e_slope * g.dx;
    *value = g.ds;
    *bound = f.worst * g.size + g.slope_p * worst_p + worst_slope * fabs(g.dx) + floor + (g.underflows ? g.size : 0.0);
    *variance = f.variance * g.ds * g.ds + variance_p * g.slope_p * g.slope_p + part * part + THIRD * floor * floor;
    return is_lost(c, g);
}

/* Of each kind: TILES weights of one key, from which SUMS sums are made with the right-hand side; OVER_ROWS: sums over rows, for keys. `weigh`
 * is called for live scores only and says whether the weight may be flushed. */
template <int KIND> struct kind;

template <> struct kind<FREF__FORWARD> {
    static constexpr bool OVER_ROWS = false;
    static constexpr int TILES = 2, SUMS = 3;
    static constexpr __device__ summand sum(int s)
    {
        constexpr summand all[SUMS] = { { 0, OF_VALUE }, { 0, OF_MAGNITUDE }, { 1, OF_SQUARE } };
        return all[s];
    }
    static __device__ __forceinline__ bool weigh(double *w, const fref__call &, const score &s, const fref__facts &f)
    {
        const double p = probability(s, f);
        w[0] = p;
        w[1] = f.variance * p * p + f.floor;
        return between_0_and(p, f.lost);
    }
};

template <> struct kind<FREF__FORWARD_KEPT> {
    static constexpr bool OVER_ROWS = false;
    static constexpr int TILES = 3, SUMS = 4;
    static constexpr __device__ summand sum(int s)
    {
        constexpr summand all[SUMS] = { { 0, OF_VALUE }, { 0, OF_MAGNITUDE }, { 1, OF_SQUARE }, { 2, OF_MAGNITUDE } };
        return all[s];
    }
    static __device__ __forceinline__ bool weigh(double *w, const fref__call &c, const score &s, const fref__facts &f)
    {
        const double p = probability(s, f) * s.keep;
        w[0] = w[1] = w[2] = 0.0;
        if (s.keep == 0.0 || (c.scored && p == 0.0))
            return false; /* dropped, or beyond any arithmetic */
        w[0] = p;
        w[1] = f.variance * p * p + f.floor;
        w[2] = 1.0;
        return p < f.lost && p > 0.0;
    }
};

template <> struct kind<FREF__DQ> {
    static constexpr bool OVER_ROWS = false;
    static constexpr int TILES = 4, SUMS = 5;
    static constexpr __device__ summand sum(int s)
    {
        constexpr summand all[SUMS] = { { 0, OF_VALUE }, { 0, OF_MAGNITUDE, OF_MAGNITUDE }, { 1, OF_SQUARE }, { 2, OF_MAGNITUDE }, { 3, OF_VALUE } };
        return all[s];
    }
    static __device__ __forceinline__ bool weigh(double *w, const fref__call &c, const score &s, const fref__facts &f)
    {
        const gradient g = gradient_of(s, f);
        w[3] = s.slope * g.p;
        return weigh_ds(&w[0], &w[2], &w[1], c, s, f, g, s.keep * f.ep * (s.keep * f.ep), s.keep * f.ez);
    }
};

template <> struct kind<FREF__DK> {
    static constexpr bool OVER_ROWS = true;
    static constexpr int TILES = 3, SUMS = 4;
    static constexpr __device__ summand sum(int s)
    {
        constexpr summand all[SUMS] = { { 0, OF_VALUE }, { 0, OF_MAGNITUDE, OF_MAGNITUDE }, { 1, OF_SQUARE }, { 2, OF_MAGNITUDE } };
        return all[s];
    }
    static __device__ __forceinline__ bool weigh(double *w, const fref__call &c, const score &s, const fref__facts &f)
    {
        const gradient g = gradient_of(s, f);
        const double ep = s.keep * f.ep;
        return weigh_ds(&w[0], &w[2], &w[1], c, s, f, g, ep * ep + f.variance_delta, s.keep * f.ez + f.worst_delta);
    }
};

template <> struct kind<FREF__DV> {
    static constexpr bool OVER_ROWS = true;
    static constexpr int TILES = 3, SUMS = 4;
    static constexpr __device__ summand sum(int s)
    {
        constexpr summand all[SUMS] = { { 0, OF_VALUE }, { 0, OF_MAGNITUDE }, { 1, OF_SQUARE }, { 2, OF_MAGNITUDE } };
        return all[s];
    }
    static __device__ __forceinline__ bool weigh(double *w, const fref__call &c, const score &s, const fref__facts &f)
    {
        const double p = probability(s, f) * s.keep, eta = c.of_p.eta;
        w[0] = w[1] = w[2] = 0.0;
        if (s.keep == 0.0)
            return false;
        w[0] = p;
        w[1] = f.variance * p * p + THIRD * eta * eta;
        w[2] = f.worst * p + eta;
        return between_0_and(p, 1.01 * eta);
    }
};

/* The weight alone, where it may be flushed. */
template <int FROM> struct lost {
    static constexpr bool OVER_ROWS = kind<FROM>::OVER_ROWS;
    static constexpr int TILES = 1, SUMS = 1;
    static constexpr __device__ summand sum(int s)
    {
        constexpr summand all[SUMS] = { { 0, OF_VALUE } };
        return all[s];
    }
    static __device__ __forceinline__ bool weigh(double *w, const fref__call &c, const score &s, const fref__facts &f)
    {
        double all[kind<FROM>::TILES];
        const bool flushed = kind<FROM>::weigh(all, c, s, f);
        w[0] = flushed ? all[0] : 0.0;
        return flushed;
    }
};

template <> struct kind<FREF__FORWARD_LOST> : lost<FREF__FORWARD_KEPT> {};
template <> struct kind<FREF__DQ_LOST> : lost<FREF__DQ> {};
template <> struct kind<FREF__DK_LOST> : lost<FREF__DK> {};
template <> struct kind<FREF__DV_LOST> : lost<FREF__DV> {};

template <int KIND> constexpr bool is_lost_kind = KIND >= FREF__FORWARD_LOST;

}
