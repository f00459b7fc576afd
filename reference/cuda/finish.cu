/* From the sums to the answers, their sigmas and bounds; as src/ref_forward.c,
 * src/backward/backward_rows.c and src/backward/backward_keys.c end. */
#include "weigh.cuh"

namespace fref
{

/* LANES make a row or key, each the channels that lie LANES apart: it loads BATCH of them before it
 * stores any. Rows are padded, so that what is beyond the last one or its last channel can be
 * loaded, too. */
enum { LANES = FREF__THREADS / FREF__FINISHED_ROWS, BATCH = 4 };
static_assert(FREF__TILE % (LANES * BATCH) == 0 && FREF__TILE % FREF__FINISHED_ROWS == 0, "");

__device__ __forceinline__ double at_least(double least, double x)
{
    return x > least ? x : least;
}

/* What the sums of one row or key of the slice are made into. */
struct finished {
    uint32_t slot; /* its head in the slice */
    int64_t n;
    bool has; /* it is one */
    int lane;
};

__device__ __forceinline__ finished find_finished(uint32_t block, int64_t count)
{
    const uint32_t of_head = (uint32_t)((count + FREF__FINISHED_ROWS - 1) / FREF__FINISHED_ROWS),
                   slot = block / of_head;
    const int64_t n = (int64_t)(block - slot * of_head) * FREF__FINISHED_ROWS + threadIdx.x / LANES;
    return { slot, n, n < count, (int)threadIdx.x % LANES };
}

template <int COUNT> struct batch {
    double sum[COUNT][BATCH];
    double lost[BATCH]; /* of what may be flushed; there is none where nothing may */
};

template <int COUNT>
__device__ __forceinline__ batch<COUNT> load_batch(const double *const sum[COUNT],
                                                   const double *lost, bool lossy, int64_t at)
{
    batch<COUNT> b;
#pragma unroll
    for (int k = 0; k < COUNT; k++)
#pragma unroll
        for (int i = 0; i < BATCH; i++)
            b.sum[k][i] = sum[k][at + i * LANES];
#pragma unroll
    for (int i = 0; i < BATCH; i++)
        b.lost[i] = lossy ? lost[at + i * LANES] : 0.0;
    return b;
}

template <int COUNT> __device__ __forceinline__ void add(batch<COUNT> *b, const batch<COUNT> &other)
{
#pragma unroll
    for (int i = 0; i < BATCH; i++) {
#pragma unroll
        for (int k = 0; k < COUNT; k++)
            b->sum[k][i] += other.sum[k][i];
        b->lost[i] += other.lost[i];
    }
}

struct answer {
    double value, sigma, bound;
};

__device__ __forceinline__ void store_value(double *array, int64_t at, double value)
{
    if (array != nullptr)
        array[at] = value;
}

/* Channels n, n + LANES, ... of the row at `at`. */
__device__ __forceinline__ void store_batch(const fref_answer &to, const answer e[BATCH],
                                            int64_t at, int n, int dim)
{
#pragma unroll
    for (int i = 0; i < BATCH; i++) {
        if (n + i * LANES >= dim)
            return;
        store_value(to.value, at + n + i * LANES, e[i].value);
        store_value(to.sigma, at + n + i * LANES, e[i].sigma);
        store_value(to.bound, at + n + i * LANES, e[i].bound);
    }
}

/* A row's variance, summed over its channels. */
struct row_variance {
    double single, cast, whole;
};

/* Over the row's lanes. */
__device__ __forceinline__ double degrees_of_freedom(const row_variance &mine, double neff,
                                                     double per_channel, int64_t dim)
{
    const row_variance v = { sum_of_lanes<LANES>(mine.single), sum_of_lanes<LANES>(mine.cast),
                             sum_of_lanes<LANES>(mine.whole) };
    const double per_all = 1.0 / (v.single + v.cast + v.whole), single = v.single * per_all,
                 cast = v.cast * per_all, whole = v.whole * per_all;
    return at_least(0.5, 1.0 / (single * single * (1.0 / neff + per_channel) + whole * whole +
                                cast * cast / (double)dim));
}

/* ---- rows ---- */

/* What the sums of a row are made into: of O or dQ. */
struct of_rows {
    const double *const *sum;
    const double *lost;
    const uint8_t *lossy;
    fref_answer to;
    int64_t row, out, ld; /* where the row's sums are; where its answers go */
    int dim, parts;       /* of all sums, */
    int64_t apart;        /* so many doubles from one to the next */
    double per_channel;
    bool as_one; /* an error moves the whole row */
};

/* element(row's variance, largest, sums, i): of element i of a batch. */
template <int COUNT, class ELEMENT>
__device__ __forceinline__ void finish_row(const finished &w, const fref__facts &f,
                                           const of_rows &o, const ELEMENT &element)
{
    const bool lossy = o.lossy[o.row / FREF__TILE] != 0, live = w.has && !f.dead;
    row_variance all = { 0.0, 0.0, 0.0 };
    amax largest = {};
    for (int n = w.lane; n < o.dim; n += LANES * BATCH) {
        const int64_t at = o.row * o.ld + n;
        batch<COUNT> b = load_batch<COUNT>(o.sum, o.lost, lossy, at);
#pragma unroll 2
        for (int part = 1; part < o.parts; part++)
            add(&b, load_batch<COUNT>(o.sum, o.lost, lossy, at + part * o.apart));
        answer e[BATCH] = {};
#pragma unroll
        for (int i = 0; i < BATCH; i++)
            if (live && n + i * LANES < o.dim)
                e[i] = element(&all, &largest, b, i);
        if (w.has)
            store_batch(o.to, e, o.out * o.dim, n, o.dim);
    }
    join(o.to.amax, largest);
    const double nu = degrees_of_freedom(all, f.neff, o.per_channel, o.dim);
    if (w.lane != 0 || !w.has)
        return;
    store_value(o.to.neff, o.out, f.dead ? 0.0 : f.neff);
    store_value(o.to.nu, o.out, f.dead ? 0.0 : o.as_one ? 1.0 : nu);
}

/* What one row's elements of O have in common. */
struct row_of_o {
    double gamma, per_pv, worst, el, es, bound, eta;
};

__device__ __forceinline__ row_of_o common_of_o(const fref__call &c, const fref__facts &f)
{
    const double acc_pv = c.rounding.acc_pv, sqrt_nt = sqrt(f.nt);
    return { c.gamma_p,
             acc_pv > 0.0 ? acc_pv : E32 * (sqrt_nt + 1.0),
             acc_pv > 0.0 ? 2.0 : sqrt_nt,
             f.el,
             f.es / 4.0,
             f.worst,
             f.eta };
}

/* Of the sums of value, magnitude, variance and kept keys. */
__device__ __forceinline__ answer element_of_o(row_variance *all, amax *largest,
                                               const fref__call &c, const row_of_o &r,
                                               const batch<4> &b, int i)
{
    const double exact = r.gamma * b.sum[0][i], pv = r.gamma * b.sum[1][i],
                 single = r.gamma * r.gamma * b.sum[2][i];
    const double kept = r.gamma * b.sum[3][i], lost = r.gamma * b.lost[i],
                 o = clamped(exact, c.to_o.max);
    const double so = c.to_o.unit_roundoff * at_least(c.to_o.tiny, fabs(o)), a = r.per_pv * pv,
                 el_o = r.el * exact, es_pv = r.es * pv;
    const double whole = es_pv * es_pv + el_o * el_o + a * a + lost * lost, cast = THIRD * so * so;
    const double bound = r.bound * pv + r.eta * kept + fabs(el_o) + a * r.worst;
    all->single += single;
    all->cast += cast;
    all->whole += whole;
    if (c.forward.o.amax != nullptr)
        take(largest, fabs(exact), fmin(bound, c.z_o * sqrt(single + whole)));
    return { o, sqrt(single + cast + whole), bound + so };
}

/* Doubles from one part of a forward's sums to the next. */
__device__ __forceinline__ int64_t apart_of(const fref__call &c)
{
    return c.heads * c.rows_padded * c.ld_v;
}

/* Of values alone. */
__device__ __forceinline__ void finish_values(const fref__call &c, const finished &w, bool dead)
{
    const int dim = (int)c.problem.dim_v;
    const double *from = c.sum[0] + (w.slot * c.rows_padded + w.n) * c.ld_v;
    double *to = c.forward.o.value + ((c.head0 + w.slot) * c.rows + w.n) * dim;
#pragma unroll 4
    for (int n = w.lane; n < dim && w.has; n += LANES) {
        double sum = from[n];
#pragma unroll 4
        for (int part = 1; part < c.parts; part++)
            sum += from[part * apart_of(c) + n];
        to[n] = dead ? 0.0 : clamped(c.gamma_p * sum, c.to_o.max);
    }
}

__device__ __forceinline__ void finish_o(const fref__call &c, const finished &w,
                                         const fref__facts &f)
{
    const fref_answer &to = c.forward.o;
    const int64_t head = c.head0 + w.slot;
    of_rows o = { c.sum, c.sum[FREF__SUMS - 1], c.lossy, to };
    o.row = w.slot * c.rows_padded + w.n;
    o.out = head * c.rows + w.n;
    o.ld = c.ld_v;
    o.dim = (int)c.problem.dim_v;
    o.parts = c.parts;
    o.apart = apart_of(c);
    o.per_channel =
        to.nu != nullptr ? c.channels[3][(uint32_t)head / (uint32_t)c.group_v - c.head_v0] : 1.0;
    const row_of_o r = common_of_o(c, f);
    finish_row<4>(w, f, o, [&](row_variance *all, amax *largest, const batch<4> &b, int i) {
        return element_of_o(all, largest, c, r, b, i);
    });
}

/* What one row's elements of dQ have in common. */
struct row_of_dq {
    double scale, sqrt_n, accumulated, es, edelta, eo, worst_eo;
};

__device__ __forceinline__ row_of_dq common_of_dq(const fref__call &c, const fref__facts &f)
{
    const double scale = c.gamma_ds * fabs(c.problem.scale),
                 sqrt_n = sqrt(at_least(1.0, (double)f.keys / 16.0));
    return { scale,
             sqrt_n,
             E32 * sqrt_n * scale,
             f.es,
             f.edelta,
             f.eo,
             sqrt(3.0 * (double)c.problem.dim_v) * f.eo };
}

/* Of the sums of value, magnitude, variance, bound and mean key. */
__device__ __forceinline__ answer element_of_dq(row_variance *all, amax *largest,
                                                const fref__call &c, const row_of_dq &r,
                                                const batch<5> &b, int i)
{
    const double exact = c.gamma_ds * c.problem.scale * b.sum[0][i],
                 dq = clamped(exact, c.to_q.max);
    const double lost = r.scale * b.lost[i], aq = r.accumulated * b.sum[1][i],
                 mean_key = r.scale * fabs(b.sum[4][i]), es_dq = r.es * exact;
    const double last_cast = c.to_q.unit_roundoff * at_least(c.to_q.tiny, fabs(dq)),
                 along = r.edelta * mean_key;
    const double single = r.scale * r.scale * b.sum[2][i], cast = THIRD * last_cast * last_cast;
    const double whole = lost * lost + along * along + es_dq * es_dq + aq * aq,
                 of_o = r.eo * mean_key;
    const double bound =
        r.scale * b.sum[3][i] + 2.0 * along + aq * r.sqrt_n + r.worst_eo * mean_key;
    all->single += single;
    all->cast += cast;
    all->whole += whole;
    if (c.backward.dq.amax != nullptr)
        take(largest, fabs(exact), fmin(bound, c.z_dq * (sqrt(single + whole) + of_o)));
    return { dq, sqrt(single + whole + cast) + of_o, bound + last_cast };
}

__device__ __forceinline__ void finish_dq(const fref__call &c, const finished &w)
{
    const fref_answer &to = c.backward.dq;
    const fref__gradient &g = c.gradient[0];
    const int64_t head = c.head0 + w.slot;
    of_rows o = { g.sum, g.sum[FREF__SUMS - 1], g.lossy, to };
    o.row = w.slot * c.rows_padded + w.n;
    o.out = head * c.rows + w.n;
    o.ld = c.ld_qk;
    o.dim = (int)c.problem.dim_qk;
    o.parts = 1;
    o.per_channel =
        to.nu != nullptr ? c.channels[2][(uint32_t)head / (uint32_t)c.group_k - c.head_k0] : 1.0;
    o.as_one = !c.rounding.own_o; /* an error of O */
    const fref__facts f = c.facts[o.row];
    const row_of_dq r = common_of_dq(c, f);
    finish_row<5>(w, f, o, [&](row_variance *all, amax *largest, const batch<5> &b, int i) {
        return element_of_dq(all, largest, c, r, b, i);
    });
}

/* ---- keys ---- */

/* Of one element of dK or dV, over the heads of a group. */
struct total {
    double value, variance, bound, lost;
};

/* What the sums of a gradient of keys are made into. */
struct of_keys {
    const fref__limits *type;
    fref_answer to;
    double z, factor;
    int64_t group, head0, ld; /* of K or V; the slice's first of its heads */
    int dim, of_v;
};

__device__ __forceinline__ of_keys of_keys_of(const fref__call &c, int of_v)
{
    const fref_problem &p = c.problem;
    return of_v ? of_keys{ &c.to_v,   c.backward.dv, c.z_dv,       c.gamma_p, c.group_v,
                           c.head_v0, c.ld_v,        (int)p.dim_v, 1 }
                : of_keys{ &c.to_k,   c.backward.dk, c.z_dk,  c.gamma_ds * p.scale,
                           c.group_k, c.head_k0,     c.ld_qk, (int)p.dim_qk,
                           0 };
}

/* Adds what the slice's heads [first, last) of a group have at channels n, n + LANES, ... */
__device__ __forceinline__ void add_heads(total t[BATCH], const fref__call &c, const of_keys &k,
                                          int64_t first, int64_t last, int64_t key, int n)
{
    const fref__gradient &g = c.gradient[1 + k.of_v];
    const bool partials_cast = c.rounding.partials_cast && k.group > 1;
    const double sqrt_n = sqrt(at_least(1.0, (double)c.problem.rows / 16.0)), size = fabs(k.factor),
                 accumulated = E32 * sqrt_n * size;
    for (int64_t head = first; head < last; head++) {
        const int64_t at = head * c.keys_padded + key;
        const batch<4> b = load_batch<4>(g.sum, g.sum[FREF__SUMS - 1],
                                         g.lossy[at / FREF__TILE] != 0, at * k.ld + n);
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            const double value = k.factor * b.sum[0][i], a = accumulated * b.sum[1][i];
            const double cast =
                partials_cast ? c.in.unit_roundoff * at_least(c.in.tiny, fabs(value)) : 0.0;
            t[i].value += value;
            t[i].variance += k.factor * k.factor * b.sum[2][i] + a * a + THIRD * cast * cast;
            t[i].lost += k.factor * b.lost[i];
            t[i].bound += size * b.sum[3][i] + a * sqrt_n + cast;
        }
    }
}

__device__ __forceinline__ answer element_of_keys(row_variance *all, amax *largest,
                                                  const of_keys &k, const total &t)
{
    const double value = clamped(t.value, k.type->max),
                 cast = k.type->unit_roundoff * at_least(k.type->tiny, fabs(value));
    const double of_cast = THIRD * cast * cast, variance = t.variance + t.lost * t.lost;
    all->single += variance;
    all->cast += of_cast;
    if (k.to.amax != nullptr)
        take(largest, fabs(t.value), fmin(t.bound, k.z * sqrt(variance)));
    return { value, sqrt(variance + of_cast), t.bound + cast };
}

/* Of a group that goes on in the next slice, or has begun in an earlier one. */
__device__ __forceinline__ void store_totals(const fref__gradient &g, const total t[BATCH],
                                             int64_t at, int n, int dim)
{
    for (int i = 0; i < BATCH && n + i * LANES < dim; i++) {
        g.total[0][at + n + i * LANES] = t[i].value;
        g.total[1][at + n + i * LANES] = t[i].variance;
        g.total[2][at + n + i * LANES] = t[i].bound;
        g.total[3][at + n + i * LANES] = t[i].lost;
    }
}

__device__ __forceinline__ void load_totals(total t[BATCH], const fref__gradient &g, int64_t at,
                                            int n, int dim)
{
    for (int i = 0; i < BATCH && n + i * LANES < dim; i++)
        t[i] = { g.total[0][at + n + i * LANES], g.total[1][at + n + i * LANES],
                 g.total[2][at + n + i * LANES], g.total[3][at + n + i * LANES] };
}

__device__ __forceinline__ void finish_keys(const fref__call &c, const finished &w,
                                            const of_keys &k)
{
    const fref__gradient &g = c.gradient[1 + k.of_v];
    const int64_t head = k.head0 + w.slot, first = head * k.group - c.head0, last = first + k.group,
                  out = head * c.keys + w.n;
    const bool begins = first >= 0, ends = last <= c.heads,
               live = w.has && ends && g.read[out] != 0;
    row_variance all = { 0.0, 0.0, 0.0 };
    amax largest = {};
    for (int n = w.lane; n < k.dim; n += LANES * BATCH) {
        total t[BATCH] = {};
        answer e[BATCH] = {};
        if (!begins && w.has)
            load_totals(t, g, out * k.dim, n, k.dim);
        add_heads(t, c, k, larger(first, 0), smaller(last, c.heads), w.n, n);
        if (!ends && w.has)
            store_totals(g, t, out * k.dim, n, k.dim);
#pragma unroll
        for (int i = 0; i < BATCH; i++)
            if (live && n + i * LANES < k.dim)
                e[i] = element_of_keys(&all, &largest, k, t[i]);
        if (ends && w.has)
            store_batch(k.to, e, out * k.dim, n, k.dim);
    }
    join(k.to.amax, largest);
    if (g.key_weights == nullptr) /* whole groups, where there are some */
        return;
    const double neff =
        live ? effective_number(g.key_weights[2 * out], g.key_weights[2 * out + 1]) : 1.0;
    const double nu = degrees_of_freedom(all, neff, c.channels[k.of_v][head], k.dim);
    if (w.lane != 0 || !w.has)
        return;
    store_value(k.to.neff, out, live ? neff : 0.0);
    store_value(k.to.nu, out, live ? nu : 0.0);
}

} // namespace fref

using namespace fref;

extern "C" __global__
__launch_bounds__(FREF__THREADS) void fref_finish_forward(const __grid_constant__ fref__call c)
{
    const finished w = find_finished(blockIdx.x, c.rows);
    const fref__facts f = c.facts[w.slot * c.rows_padded + w.n];
    if (c.sum[1] == nullptr)
        finish_values(c, w, f.dead != 0);
    else
        finish_o(c, w, f);
}

/* Those of dQ, dK and dV that are wanted, one behind the other. */
extern "C" __global__
__launch_bounds__(FREF__THREADS) void fref_finish_backward(const __grid_constant__ fref__call c)
{
    const uint32_t of_rows = (uint32_t)((c.rows + FREF__FINISHED_ROWS - 1) / FREF__FINISHED_ROWS);
    const uint32_t of_keys = (uint32_t)((c.keys + FREF__FINISHED_ROWS - 1) / FREF__FINISHED_ROWS);
    const uint32_t dq = c.gradient[0].sum[0] != nullptr ? (uint32_t)c.heads * of_rows : 0;
    const uint32_t dk = c.gradient[1].sum[0] != nullptr ? (uint32_t)c.heads_k * of_keys : 0;
    if (blockIdx.x < dq)
        finish_dq(c, find_finished(blockIdx.x, c.rows));
    else if (blockIdx.x - dq < dk)
        finish_keys(c, find_finished(blockIdx.x - dq, c.keys), of_keys_of(c, 0));
    else
        finish_keys(c, find_finished(blockIdx.x - dq - dk, c.keys), of_keys_of(c, 1));
}
