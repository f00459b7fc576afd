/* The weights of a key's score in each sum; the formulas are in src/ref_forward.c,
 * src/backward/backward_rows.c and src/backward/backward_keys.c. */
#pragma once
#include "element.cuh"

namespace fref
{

/* A probability below this may be flushed to zero by fp32 arithmetic. */
constexpr double P_FLUSHED = 0x1.125fbee250664p-126; /* 2^-125.9 */
constexpr double E32 = 0x1p-23, THIRD = 1.0 / 3.0;

/* The weights of one key. `value` and `mean` are multiplied with the right-hand side, `variance` with
 * its squares, `bound` and the magnitude of `value` with its magnitudes. */
struct weights {
    double value, variance, bound, mean;
};

/* 0 < p < limit, both not negative, without the units that multiply. */
__device__ __forceinline__ bool between_0_and(double p, double limit)
{
    return (unsigned long long)(__double_as_longlong(p) - 1) <
           (unsigned long long)(__double_as_longlong(limit) - 1);
}

__device__ __forceinline__ bool is_key(double x)
{
    return (unsigned long long)__double_as_longlong(x) != 0xfff0000000000000ULL;
}

struct score {
    double x; /* exp(score - shift) once the facts of the row are known; kernels that keep their
                 scores do not use this: call.h */
    double dp, slope, curvature, slope_extra;
    double keep; /* the factor of a kept key's weight; 0: dropped */
};

__device__ __forceinline__ double probability(const score &s, const fref__facts &f)
{
    return s.x * f.per_sum;
}

/* The factor of a kept key's probability; 0: dropped. */
__device__ __forceinline__ double keep_of(const fref__call &c, int64_t head, int64_t r, int64_t n)
{
    if (c.problem.keep == nullptr || r >= c.rows || n >= c.keys)
        return 1.0;
    const int64_t at = ((c.head0 + head) * c.problem.rows + r) * c.problem.keys + n;
    return c.problem.keep[at] != 0 ? c.problem.keep_scale : 0.0;
}

/* The sink of a row; none at or past len_q. */
__device__ __forceinline__ double sink_of(const fref__call &c, int64_t b, int64_t h, int64_t i)
{
    const bool has =
        c.problem.sink != nullptr && (c.problem.len_q == nullptr || i < c.problem.len_q[b]);
    return has ? (double)c.problem.sink[h] : -infinity();
}

/* The largest magnitude, and the smallest and the largest that a correct kernel may report. */
struct amax {
    double value, least, most;
};

__device__ __forceinline__ void take(amax *a, double size, double tolerance)
{
    a->value = fmax(a->value, size);
    a->least = fmax(a->least, size - tolerance);
    a->most = fmax(a->most, size + tolerance);
}

/* Raises the number at `at` to x if x is larger: numbers that are not negative have the order of
 * their bits. */
__device__ __forceinline__ void raise(double *at, double x)
{
    atomicMax((unsigned long long *)at, (unsigned long long)__double_as_longlong(x));
}

/* Combines the lanes' values in out[3]; NULL: not wanted. */
__device__ __forceinline__ void join(double *out, const amax &a)
{
    if (out == nullptr)
        return;
    const double all[3] = { largest_of_warp(a.value), largest_of_warp(a.least),
                            largest_of_warp(a.most) };
    for (int n = 0; n < 3; n++)
        if (threadIdx.x % 32 == 0)
            raise(out + n, all[n]);
}

__device__ __forceinline__ double clamped(double x, double most)
{
    return x > most ? most : x < -most ? -most : x;
}

/* For weights with this sum and sum of squares. */
__device__ __forceinline__ double effective_number(double first, double second)
{
    const double number = first < 0x1p-400 ? 1.0 : first * first / second;
    return number < 1.0 ? 1.0 : number;
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

__device__ __forceinline__ bool is_lost(const fref__call &c, const gradient &g)
{
    return g.ds != 0.0 && (g.underflows || fabs(c.problem.scale) * g.size < 1.01 * c.of_ds.eta);
}

/* dS: the common part of dQ and dK. worst_p: the part that enters as a sum, not along the mean key.
 */
__device__ __forceinline__ bool weigh_ds(weights *w, const fref__call &c, const score &s,
                                         const fref__facts &f, double variance_p, double worst_p)
{
    const gradient g = gradient_of(s, f);
    double e_slope = 0.0, worst_slope = 0.0;
    if (c.sloped) {
        e_slope = fabs(s.curvature) * f.es_raw + E32 * s.slope_extra;
        worst_slope = fabs(s.curvature) * f.ew_raw + 2.0 * E32 * s.slope_extra;
    }
    const double part = e_slope * g.dx;
    w->value = clamped(g.ds, c.most_ds);
    w->bound = f.worst * g.size + g.slope_p * worst_p + worst_slope * fabs(g.dx) + c.floor_ds +
               (g.underflows ? g.size : 0.0);
    w->variance = f.variance * g.ds * g.ds + variance_p * g.slope_p * g.slope_p + part * part +
                  THIRD * c.floor_ds * c.floor_ds;
    w->mean = s.slope * g.p;
    return is_lost(c, g);
}

/* Of each kind: OVER_ROWS: sums over rows, for keys; OF_DS: its weights are made of dS, else of P;
 * WEIGHTS: 1: `value` alone, 3: and `variance` and `bound`, 4: and `mean`. `weigh` is called for live
 * scores only and says whether the weight may be flushed. */
template <int KIND> struct kind;

template <bool over_rows, bool of_ds, int weights> struct sums_of {
    static constexpr bool OVER_ROWS = over_rows, OF_DS = of_ds;
    static constexpr int WEIGHTS = weights;
};

/* The bound's weight is 1 for a kept key, otherwise 0. */
template <> struct kind<FREF__FORWARD> : sums_of<false, false, 3> {
    static __device__ __forceinline__ bool weigh(weights *w, const fref__call &c, const score &s,
                                                 const fref__facts &f)
    {
        const double p = probability(s, f) * s.keep;
        if (s.keep == 0.0 || (c.scored && p == 0.0))
            return false; /* dropped, or beyond any arithmetic */
        w->value = p;
        w->variance = f.variance * p * p + f.floor;
        w->bound = 1.0;
        return between_0_and(p, f.lost);
    }
};

template <> struct kind<FREF__VALUES> : sums_of<false, false, 1> {
    static __device__ __forceinline__ bool weigh(weights *w, const fref__call &, const score &s,
                                                 const fref__facts &f)
    {
        w->value = exp(s.x - f.shift) * f.per_sum * s.keep;
        return false;
    }
};

template <> struct kind<FREF__DQ> : sums_of<false, true, 4> {
    static __device__ __forceinline__ bool weigh(weights *w, const fref__call &c, const score &s,
                                                 const fref__facts &f)
    {
        return weigh_ds(w, c, s, f, s.keep * f.ep * (s.keep * f.ep), s.keep * f.ez);
    }
};

template <> struct kind<FREF__DK> : sums_of<true, true, 3> {
    static __device__ __forceinline__ bool weigh(weights *w, const fref__call &c, const score &s,
                                                 const fref__facts &f)
    {
        const double ep = s.keep * f.ep;
        return weigh_ds(w, c, s, f, ep * ep + f.variance_delta, s.keep * f.ez + f.worst_delta);
    }
};

template <> struct kind<FREF__DV> : sums_of<true, false, 3> {
    static __device__ __forceinline__ bool weigh(weights *w, const fref__call &c, const score &s,
                                                 const fref__facts &f)
    {
        const double p = probability(s, f) * s.keep, eta = c.of_p.eta, u = c.of_p.unit_roundoff;
        if (s.keep == 0.0)
            return false;
        w->value = p;
        w->variance = (THIRD * u * u + f.es * f.es) * p * p + THIRD * eta * eta;
        w->bound = (u + f.ew) * p + eta;
        return between_0_and(p, 1.01 * eta);
    }
};

/* Only the weight, if it may be flushed. */
template <int FROM> struct lost : sums_of<kind<FROM>::OVER_ROWS, kind<FROM>::OF_DS, 1> {
    static __device__ __forceinline__ bool weigh(weights *w, const fref__call &c, const score &s,
                                                 const fref__facts &f)
    {
        const bool flushed = kind<FROM>::weigh(w, c, s, f);
        w->value = flushed ? w->value : 0.0;
        return flushed;
    }
};

template <> struct kind<FREF__FORWARD_LOST> : lost<FREF__FORWARD> {};
template <> struct kind<FREF__DQ_LOST> : lost<FREF__DQ> {};
template <> struct kind<FREF__DK_LOST> : lost<FREF__DK> {};
template <> struct kind<FREF__DV_LOST> : lost<FREF__DV> {};

template <int KIND> constexpr bool is_lost_kind = KIND >= FREF__FORWARD_LOST;

} // namespace fref
