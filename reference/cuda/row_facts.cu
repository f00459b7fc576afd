/* What is known of each row beside its scores: Max, Sum_exp, LSE and their tolerances, D_i, and
 * what the errors of its weights depend on. A warp for each row of the chunk.
 */
#include "weigh.cuh"

namespace fref
{

/* A key whose x lies this far below the maximum has P = 0 in any arithmetic: its magnitude says
 * nothing of the others' errors. */
constexpr double OUT_OF_REACH = 200.0;

__device__ __forceinline__ double at_least_1(double x)
{
    return x > 1.0 ? x : 1.0;
}

/* A row, as the lanes of a warp see it: lane l has the keys first + l, first + l + 32, ... */
struct row {
    int64_t head;    /* in the slice */
    int64_t b, h, i; /* in the problem */
    int64_t at;      /* of (head, i) */
    int64_t score;   /* of key 0 in the chunk's scores */
    fref__span keys;
    const double *norm_k, *norm_v, *peak_k, *peak_v;
};

__device__ __forceinline__ bool find_row(row *out, const fref__call &c)
{
    const int64_t n = (int64_t)blockIdx.x * (FREF__THREADS / 32) + threadIdx.x / 32;
    out->head = n / c.chunk_rows;
    out->i = c.row0 + n % c.chunk_rows;
    if (out->head >= c.heads || out->i >= c.rows)
        return false;
    out->b = (c.head0 + out->head) / c.problem.heads_q;
    out->h = (c.head0 + out->head) % c.problem.heads_q;
    out->at = out->head * c.rows_padded + out->i;
    out->score = n * c.keys_padded;
    out->keys = c.range[out->at];
    const int64_t head_k = (c.head0 + out->head) / c.group_k - c.head_k0,
                  head_v = (c.head0 + out->head) / c.group_v - c.head_v0;
    out->norm_k = c.norm_k + head_k * c.keys_padded;
    out->norm_v = c.norm_v + head_v * c.keys_padded;
    out->peak_k = c.peak_k + head_k * (c.keys_padded / FREF__TILE);
    out->peak_v = c.peak_v + head_v * (c.keys_padded / FREF__TILE);
    return true;
}

/* Over the keys within reach; src/score.h. */
struct measure {
    double max, largest_x, largest_s, slope, extra;
    double sink;
    double longest_k;
    fref__span readable; /* keys */
    bool dead;           /* no key: all of x is -inf */
};

/* The longest of norm[first], ... norm[last - 1] that is the lane's, or `longest`. */
__device__ __forceinline__ double longest_from(double longest, const double *norm, int first,
                                               int last)
{
#pragma unroll 1
    for (int n = first + (int)(threadIdx.x % 32); n < last; n += 32)
        longest = larger_of(longest, norm[n]);
    return longest;
}

/* The longest of the keys [first, last). */
__device__ __forceinline__ double longest_of(const double *norm, const double *peak,
                                             fref__span keys)
{
    const int from = (keys.first + FREF__TILE - 1) / FREF__TILE, to = keys.last / FREF__TILE;
    double longest = longest_from(0.0, peak, from, to);
    longest = longest_from(longest, norm, keys.first, from <= to ? from * FREF__TILE : keys.last);
    longest = longest_from(longest, norm, from <= to ? to * FREF__TILE : keys.last, keys.last);
    return largest_of_warp(longest);
}

/* From the largest of the scores, and with plain scores of their magnitudes, to what the sink and
 * all keys add. */
__device__ __forceinline__ void finish_measure(measure *m, const fref__call &c, const row &w)
{
    m->readable = keys_of_row(c.problem, w.b, w.i);
    m->dead = m->max == -infinity();
    m->max = fmax(m->max, m->sink);
    m->largest_s = m->largest_x;
    if (m->sink != -infinity() && m->sink >= m->max - OUT_OF_REACH)
        m->largest_x = fmax(m->largest_x, fabs(m->sink));
    m->longest_k = longest_of(w.norm_k, w.peak_k, m->readable);
}

__device__ __forceinline__ measure measure_row(const fref__call &c, const row &w)
{
    const double *x = c.x + w.score;
    const int first = w.keys.first + (int)(threadIdx.x % 32), last = w.keys.last;
    measure m = { -infinity(), 0.0, 0.0,  c.scored ? 0.0 : 1.0, 0.0, sink_of(c, w.b, w.h, w.i),
                  0.0,         {},  false };
#pragma unroll 4
    for (int j = first; j < last; j += 32) {
        m.max = larger_of(m.max, x[j]);
        if (!c.scored)
            m.largest_x = larger_of(m.largest_x, fabs(x[j]));
    }
    m.max = largest_of_warp(m.max);
    m.largest_x = largest_of_warp(m.largest_x);
    finish_measure(&m, c, w);
    if (!c.scored)
        return m;
    double largest_s = 0.0;
    for (int j = first; j < last; j += 32) {
        if (x[j] < m.max - OUT_OF_REACH || x[j] == -infinity())
            continue;
        const double slope = c.sloped ? fabs(c.slope[w.score + j]) : 1.0;
        m.largest_x = fmax(m.largest_x, fabs(x[j]));
        if (slope > 0.0)
            largest_s = fmax(largest_s, c.pull[w.score + j] / slope);
        m.slope = fmax(m.slope, slope);
        m.extra = fmax(m.extra, c.extra[w.score + j]);
    }
    m.largest_x = largest_of_warp(m.largest_x);
    m.largest_s = largest_of_warp(largest_s);
    m.slope = largest_of_warp(m.slope);
    m.extra = largest_of_warp(m.extra);
    return m;
}

/* Sums of a row weighted by e = exp(x - max). */
struct exponentials {
    double sum, squares, pull, extra;
    double largest;                  /* of what is kept */
    double weights, weights_squared; /* of e^2 |v|^2 */
};

template <bool SCORED>
__device__ __forceinline__ void add_exponential(exponentials *e, const fref__call &c, const row &w,
                                                int j, double x, double one, double norm_v)
{
    e->sum += one;
    e->squares += one * one;
    if (!SCORED) {
        e->pull += one * fabs(x);
    } else if (one > 0.0) {
        e->pull += one * c.pull[w.score + j];
        e->extra += one * c.extra[w.score + j];
    }
    if (c.freedom || c.forward.amax_s != nullptr) {
        const double kept = one * keep_of(c, w.head, w.i, j);
        e->largest = larger_of(e->largest, kept);
        const double term = kept * norm_v, weight = term * term;
        e->weights += weight;
        e->weights_squared += weight * weight;
    }
}

__device__ __forceinline__ void scale_by(exponentials *e, double by)
{
    const double squared = by * by;
    e->sum *= by;
    e->squares *= squared;
    e->pull *= by;
    e->extra *= by;
    e->largest *= by;
    e->weights *= squared;
    e->weights_squared *= squared * squared;
}

enum { AT_ONCE = 4 };

/* Of the lane's keys j, j + 32, ...; -inf: none. */
__device__ __forceinline__ void load_scores(double x[AT_ONCE], const fref__call &c, const row &w,
                                            int j)
{
#pragma unroll
    for (int n = 0; n < AT_ONCE; n++)
        x[n] = j + 32 * n < w.keys.last ? c.x[w.score + j + 32 * n] : -infinity();
}

/* Makes exp(x - shift) of AT_ONCE of the lane's scores, in memory too; they hide each other's
 * latency. */
__device__ __forceinline__ void raise_scores(double one[AT_ONCE], const fref__call &c, const row &w,
                                             int j, const double x[AT_ONCE], double shift)
{
#pragma unroll
    for (int n = 0; n < AT_ONCE; n++)
        one[n] = exp(x[n] - shift);
    if (c.keeps_scores)
        return;
#pragma unroll
    for (int n = 0; n < AT_ONCE; n++)
        if (is_key(x[n]))
            c.x[w.score + j + 32 * n] = one[n];
}

template <bool SCORED>
__device__ __forceinline__ void add_exponentials(exponentials *e, const fref__call &c, const row &w,
                                                 int j, const double x[AT_ONCE], double shift)
{
    double one[AT_ONCE], norm_v[AT_ONCE]; /* loaded while exponentials are made */
#pragma unroll
    for (int n = 0; n < AT_ONCE; n++)
        norm_v[n] = w.norm_v[j + 32 * n < w.keys.last ? j + 32 * n : w.keys.first];
    raise_scores(one, c, w, j, x, shift);
#pragma unroll
    for (int n = 0; n < AT_ONCE; n++)
        if (j + 32 * n < w.keys.last)
            add_exponential<SCORED>(e, c, w, j + 32 * n, x[n], one[n], norm_v[n]);
}

__device__ __forceinline__ void finish_exponentials(exponentials *e, const measure &m)
{
    e->sum = sum_of_warp(e->sum) + exp(m.sink - m.max);
    e->squares = sum_of_warp(e->squares);
    e->largest = largest_of_warp(e->largest);
    e->pull = sum_of_warp(e->pull);
    e->extra = sum_of_warp(e->extra);
    e->weights = sum_of_warp(e->weights);
    e->weights_squared = sum_of_warp(e->weights_squared);
}

__device__ __forceinline__ exponentials exponentiate(const fref__call &c, const row &w,
                                                     const measure &m)
{
    exponentials e = {};
    for (int j = w.keys.first + (int)(threadIdx.x % 32); j < w.keys.last; j += 32 * AT_ONCE) {
        double x[AT_ONCE];
        load_scores(x, c, w, j);
        add_exponentials<true>(&e, c, w, j, x, m.max);
    }
    finish_exponentials(&e, m);
    return e;
}

__device__ __forceinline__ void raise_row(const fref__call &c, const row &w, double shift)
{
    for (int j = w.keys.first + (int)(threadIdx.x % 32); j < w.keys.last; j += 32 * AT_ONCE) {
        double x[AT_ONCE], one[AT_ONCE];
        load_scores(x, c, w, j);
        raise_scores(one, c, w, j, x, shift);
    }
}

/* The row's exponentials so far, of the lane's keys before j, belong to another shift. */
__device__ __forceinline__ void shift_row(exponentials *e, const fref__call &c, const row &w, int j,
                                          double by)
{
    scale_by(e, by);
    for (int n = w.keys.first + (int)(threadIdx.x % 32); n < j && !c.keeps_scores; n += 32)
        c.x[w.score + n] *= by;
}

/* Measure and exponentials of a plain row in one pass, relative to the largest of its first scores
 * until some other is far above it: `shift`. e^(4 SLACK), of the squares' squares, is far from the
 * largest double. */
__device__ __forceinline__ exponentials exponentiate_plain(measure *m, double *shift,
                                                           const fref__call &c, const row &w)
{
    constexpr double SLACK = 64.0;
    const int lane = (int)(threadIdx.x % 32);
    exponentials e = {};
    double max = -infinity(), largest_x = 0.0, next[AT_ONCE];
    *shift = -infinity();
    load_scores(next, c, w, w.keys.first + lane);
    for (int j = w.keys.first + lane; j - lane < w.keys.last; j += 32 * AT_ONCE) {
        double x[AT_ONCE];
#pragma unroll
        for (int n = 0; n < AT_ONCE; n++)
            x[n] = next[n];
        load_scores(next, c, w, j + 32 * AT_ONCE);
#pragma unroll
        for (int n = 0; n < AT_ONCE; n++) {
            max = larger_of(max, x[n]);
            largest_x = larger_of(largest_x, is_key(x[n]) ? fabs(x[n]) : 0.0);
        }
        if (__any_sync(0xffffffff, max > *shift + SLACK)) {
            const double before = *shift;
            *shift = largest_of_warp(max);
            shift_row(&e, c, w, j, exp(before - *shift));
        }
        add_exponentials<false>(&e, c, w, j, x, *shift);
    }
    *m = { largest_of_warp(max),
           largest_of_warp(largest_x),
           0.0,
           1.0,
           0.0,
           sink_of(c, w.b, w.h, w.i),
           0.0,
           {},
           false };
    finish_measure(m, c, w);
    if (m->dead)
        return e;
    scale_by(&e, exp(*shift - m->max));
    finish_exponentials(&e, *m);
    return e;
}

__device__ __forceinline__ void put(double *array, int64_t at, double value)
{
    if (array != nullptr)
        array[at] = value;
}

/* As in src/ref_forward.c. */
__device__ __forceinline__ double lane_error(double nt, double top, bool discrete)
{
    if (discrete)
        return 64.0 * nt * (1.0 + 2.0 * top) / 6.0;
    return sqrt(nt) / 2.0 + 6.0 * fmax(0.0, sqrt(nt) - 2.0 * fabs(1.0 - 2.0 * top)) +
           16.0 * nt * fmax(0.0, 2.0 * top - 1.0);
}

__device__ __forceinline__ void write_statistics(const fref__call &c, const row &w,
                                                 const fref__facts &f, const measure &m,
                                                 const exponentials &e, double qk, double nck)
{
    const fref_rounding &r = c.rounding;
    const int64_t at = (w.b * c.problem.heads_q + w.h) * c.rows + w.i;
    const double lse = m.max + log(e.sum), norm_p = sqrt(e.squares) / e.sum;
    put(c.forward.lse, at, lse);
    put(c.forward.max, at, m.max);
    put(c.forward.sum_exp, at, e.sum);
    put(c.forward.lse_tau, at,
        E32 * (fabs(m.max) + fabs(lse) + e.extra / e.sum + 4.0 +
               lane_error(f.nt, 1.0 / e.sum, r.discrete)) +
            r.cl * r.ua * (nck / 2.0 * e.pull / e.sum + 1.5 * sqrt(nck) * qk * norm_p) +
            r.eps_exp * fmin(1.0, 4.0 * norm_p + 0.1));
    put(c.forward.max_tau, at,
        E32 * (2.0 * fabs(m.max) + 2.0 * m.extra + 2.0) + 2.0 * r.cl * r.ua * sqrt(nck) * qk);
}

/* Of a row without a key: the sink is all there is, then. */
__device__ __forceinline__ void write_dead_statistics(const fref__call &c, const row &w,
                                                      double sink)
{
    const int64_t at = (w.b * c.problem.heads_q + w.h) * c.rows + w.i;
    const bool none = sink == -infinity();
    put(c.forward.lse, at, sink);
    put(c.forward.max, at, sink);
    put(c.forward.sum_exp, at, none ? 0.0 : 1.0);
    put(c.forward.lse_tau, at,
        none ? 0.0 : E32 * (2.0 * fabs(sink) + 4.5) + c.rounding.eps_exp * 0.1);
    put(c.forward.max_tau, at, none ? 0.0 : E32 * (2.0 * fabs(sink) + 2.0));
}

} // namespace fref

using namespace fref;

extern "C" __global__
__launch_bounds__(FREF__THREADS, 3) void fref_forward_facts(const __grid_constant__ fref__call c)
{
    row w;
    if (!find_row(&w, c))
        return;
    fref__facts f = {};
    measure m;
    exponentials e;
    if (c.scored)
        m = measure_row(c, w);
    else
        e = exponentiate_plain(&m, &f.shift, c, w);
    f.dead = m.dead;
    if (f.dead) {
        if (threadIdx.x % 32 == 0) {
            write_dead_statistics(c, w, m.sink);
            c.facts[w.at] = f;
        }
        return;
    }
    if (c.scored) {
        e = exponentiate(c, w, m);
        f.shift = m.max;
    }
    const fref_rounding &r = c.rounding;
    const double nck = at_least_1((double)c.problem.dim_qk / r.chunk);
    const double qk = m.slope * fabs(c.problem.scale) * c.norm_q[w.at] * m.longest_k;
    f.keys = w.keys.last - w.keys.first;
    f.nt = at_least_1(ceil((double)f.keys / 64.0));
    f.es = r.ua * sqrt(nck) * qk + E32 * (m.largest_x + m.extra + 2.0);
    f.ew = r.cw * r.ua * nck * qk + E32 * (2.0 * m.largest_x + 2.0 * m.extra + 4.0);
    f.eta = r.p_normalised ? c.of_p.eta : c.of_p.eta / e.sum;
    f.floor = THIRD * f.eta * f.eta;
    f.lost = 1.01 * f.eta;
    const double run = fmin(64.0 * f.nt, r.acc_run);
    f.el = E32 * (lane_error(f.nt, 1.0 / e.sum, r.discrete) + sqrt(f.nt) / 2.0 + 3.0) +
           (r.acc_pv > 0.0 ? r.acc_pv * (run / 8.0 + sqrt(run / 3.0)) : 0.0);
    f.per_sum = exp(f.shift - m.max) / e.sum;
    f.variance = THIRD * c.in.unit_roundoff * c.in.unit_roundoff + 4.0 * f.es * f.es;
    f.worst = c.in.unit_roundoff + 2.0 * f.ew;
    f.neff = effective_number(e.weights / (e.sum * e.sum),
                              e.weights_squared / (e.sum * e.sum) / (e.sum * e.sum));
    amax a = {};
    take(&a, e.largest / e.sum, e.largest / e.sum * (0x1p-19 + r.cl * f.es) + 0x1p-126);
    join(c.forward.amax_s, a);
    if (threadIdx.x % 32 == 0) {
        write_statistics(c, w, f, m, e, qk, nck);
        c.facts[w.at] = f;
    }
}

extern "C" __global__ void fref_backward_facts(const __grid_constant__ fref__call c)
{
    row w;
    if (!find_row(&w, c))
        return;
    fref__facts f = {};
    const measure m = measure_row(c, w);
    f.dead = m.dead;
    if (f.dead) {
        if (threadIdx.x % 32 == 0)
            c.facts[w.at] = f;
        return;
    }
    const double *d_o = c.rows_d_o + w.at * c.ld_v;
    double absolute = 0.0, squares = 0.0;
    for (int64_t n = threadIdx.x % 32; n < c.problem.dim_v; n += 32) {
        const double term = d_o[n] * element(c.o, w.b, w.h, w.i, n);
        f.delta += term;
        absolute += fabs(term);
        squares += term * term;
    }
    f.delta = sum_of_warp(f.delta);
    absolute = sum_of_warp(absolute);
    squares = sum_of_warp(squares);
    if (!(fabs(f.delta) < infinity()))
        *c.trouble = 1;
    const fref_rounding &r = c.rounding;
    const double nck = at_least_1((double)c.problem.dim_qk / r.chunk),
                 nv = at_least_1((double)c.problem.dim_v / 16.0);
    const double qk = fabs(c.problem.scale) * c.norm_q[w.at] * m.longest_k,
                 dov = c.norm_d_o[w.at] * longest_of(w.norm_v, w.peak_v, m.readable);
    const double u = c.of_ds.unit_roundoff, stats = fabs(c.row_stats[w.at]);
    f.keys = w.keys.last - w.keys.first;
    f.shift = c.row_stats[w.at];
    raise_row(c, w, f.shift);
    f.per_sum = 1.0;
    f.es = m.slope * r.ua * sqrt(nck) * qk + E32 * (m.largest_x + m.extra + stats + 2.0);
    f.ew = m.slope * r.cw * r.ua * nck * qk +
           E32 * (2.0 * m.largest_x + 2.0 * m.extra + 2.0 * stats + 4.0);
    f.es_raw = r.ua * sqrt(nck) * qk + E32 * m.largest_s;
    f.ew_raw = r.cw * r.ua * nck * qk + E32 * 2.0 * m.largest_s;
    f.ep = r.ua * sqrt(nv) * dov;
    f.ez = r.ua * nv * dov;
    f.edelta = E32 * sqrt((double)c.problem.dim_v) * absolute;
    f.eo = r.own_o ? 0.0 : c.in.unit_roundoff * sqrt(squares * THIRD);
    f.variance_delta = f.edelta * f.edelta + f.eo * f.eo;
    f.worst_delta = f.edelta + sqrt(3.0 * (double)c.problem.dim_v) * f.eo;
    f.variance = THIRD * u * u + f.es * f.es;
    f.worst = u + f.ew;
    f.norm_q = c.norm_q[w.at];
    f.norm_d_o = c.norm_d_o[w.at];
    if (threadIdx.x % 32 == 0)
        c.facts[w.at] = f;
}
