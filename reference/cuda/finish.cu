/* From the sums to the answers, their sigmas and bounds; as src/forward.c, src/backward_rows.c and src/backward_keys.c end. A warp for each row or
 * key.
 */
#include "weigh.cuh"

namespace fref {

__device__ __forceinline__ double at_least_one(double x)
{
    return x > 1.0 ? x : 1.0;
}

__device__ __forceinline__ void store(double *array, int64_t at, double value)
{
    if (array != nullptr)
        array[at] = value;
}

/* A row's variance, summed over its channels. */
struct row_variance {
    double single, cast, whole;
};

__device__ __forceinline__ double degrees_of_freedom(const row_variance &v, double neff, double per_channel, int64_t dim)
{
    const double all = v.single + v.cast + v.whole, single = v.single / all, cast = v.cast / all, whole = v.whole / all;
    const double nu = 1.0 / (single * single * (1.0 / neff + per_channel) + whole * whole + cast * cast / (double)dim);
    return nu > 0.5 ? nu : 0.5;
}

__device__ __forceinline__ void sum_variances(row_variance *v)
{
    v->single = sum_of_warp(v->single);
    v->cast = sum_of_warp(v->cast);
    v->whole = sum_of_warp(v->whole);
}

/* The sum of what may be flushed, of row or key `row`; there is none where nothing may. */
__device__ __forceinline__ double lost_sum(const fref__call &c, int64_t row, int64_t at)
{
    return c.lossy[row / FREF__TILE] ? c.sum[FREF__SUMS - 1][at] : 0.0;
}

/* What the sums of one row of the lot are made into. */
struct finished {
    int64_t head, at; /* in the lot; of (head, row) */
    int64_t out;      /* of the answers' row */
};

__device__ __forceinline__ bool find_finished(finished *f, const fref__call &c)
{
    const int64_t n = (int64_t)blockIdx.x * (FREF__THREADS / 32) + threadIdx.x / 32;
    f->head = n / c.rows;
    f->at = f->head * c.rows_padded + n % c.rows;
    f->out = (c.head0 + f->head) * c.rows + n % c.rows;
    return f->head < c.heads;
}

}

using namespace fref;

extern "C" __global__ void fref_finish_forward(const __grid_constant__ fref__call c)
{
    finished w;
    if (!find_finished(&w, c))
        return;
    const fref__facts f = c.facts[w.at];
    const int64_t dim = c.problem.dim_v;
    const double acc_pv = c.rounding.acc_pv;
    const double per_pv = acc_pv > 0.0 ? acc_pv : E32 * (sqrt(f.nt) + 1.0), worst = acc_pv > 0.0 ? 2.0 : sqrt(f.nt);
    row_variance all = { 0.0, 0.0, 0.0 };
    amax largest = {};
    for (int64_t n = threadIdx.x % 32; n < dim; n += 32) {
        const int64_t at = w.at * c.ld_v + n, out = w.out * dim + n;
        double o = 0.0, variance = 0.0, bound = 0.0;
        if (!f.dead && c.sum[1] == nullptr) { /* values alone */
            o = clamped(c.gamma_p * c.sum[0][at], c.to_o.max);
        } else if (!f.dead) {
            const double gamma = c.gamma_p, exact = gamma * c.sum[0][at], pv = gamma * c.sum[1][at], single = gamma * gamma * c.sum[2][at];
            const double kept = gamma * (c.kept ? c.sum[3][at] : c.kept_v[at]), lost = gamma * lost_sum(c, w.at, at);
            o = clamped(exact, c.to_o.max);
            const double so = c.to_o.unit_roundoff * fmax(fabs(o), c.to_o.tiny);
            const double a = per_pv * pv, el_o = f.el * exact, es_pv = f.es / 4.0 * pv;
            const double whole = es_pv * es_pv + el_o * el_o + a * a + lost * lost, cast = THIRD * so * so;
            all.single += single;
            all.cast += cast;
            all.whole += whole;
            variance = single + cast + whole;
            bound = f.worst * pv + f.eta * kept + fabs(el_o) + a * worst;
            take(&largest, fabs(exact), fmin(bound, c.z_o * sqrt(single + whole)));
            bound += so;
        }
        store(c.forward.o, out, o);
        store(c.forward.o_sigma, out, sqrt(variance));
        store(c.forward.o_bound, out, bound);
    }
    sum_variances(&all);
    join(c.forward.amax_o, largest);
    if (threadIdx.x % 32 != 0)
        return;
    store(c.forward.o_neff, w.out, f.dead ? 0.0 : f.neff);
    if (c.forward.o_nu != nullptr)
        c.forward.o_nu[w.out] = f.dead ? 0.0 : degrees_of_freedom(all, f.neff, c.channels[3][(c.head0 + w.head) / c.group_v - c.head_v0], dim);
}

extern "C" __global__ void fref_finish_dq(const __grid_constant__ fref__call c)
{
    finished w;
    if (!find_finished(&w, c))
        return;
    const fref__facts f = c.facts[w.at];
    const int64_t dim = c.problem.dim_qk;
    const double scale = c.gamma_ds * fabs(c.problem.scale), sqrt_n = sqrt(at_least_one((double)f.keys / 16.0));
    row_variance all = { 0.0, 0.0, 0.0 };
    amax largest = {};
    for (int64_t n = threadIdx.x % 32; n < dim; n += 32) {
        const int64_t at = w.at * c.ld_qk + n, out = w.out * dim + n;
        double dq = 0.0, sigma = 0.0, bound = 0.0;
        if (!f.dead) {
            const double exact = c.gamma_ds * c.problem.scale * c.sum[0][at];
            dq = clamped(exact, c.to_q.max);
            const double lost = scale * lost_sum(c, w.at, at), aq = E32 * sqrt_n * scale * c.sum[1][at];
            const double mean_key = scale * fabs(c.sum[4][at]), es_dq = f.es * exact;
            const double last_cast = c.to_q.unit_roundoff * fmax(fabs(dq), c.to_q.tiny), along = f.edelta * mean_key;
            const double single = scale * scale * c.sum[2][at], cast = THIRD * last_cast * last_cast;
            const double whole = lost * lost + along * along + es_dq * es_dq + aq * aq;
            all.single += single;
            all.cast += cast;
            all.whole += whole;
            sigma = sqrt(single + whole + cast) + f.eo * mean_key;
            bound = scale * c.sum[3][at] + 2.0 * along + aq * sqrt_n + sqrt(3.0 * (double)c.problem.dim_v) * f.eo * mean_key;
            take(&largest, fabs(exact), fmin(bound, c.z_dq * (sqrt(single + whole) + f.eo * mean_key)));
            bound += last_cast;
        }
        store(c.backward.dq, out, dq);
        store(c.backward.dq_sigma, out, sigma);
        store(c.backward.dq_bound, out, bound);
    }
    sum_variances(&all);
    join(c.backward.amax_dq, largest);
    if (threadIdx.x % 32 != 0)
        return;
    store(c.backward.dq_neff, w.out, f.dead ? 0.0 : f.neff);
    if (c.backward.dq_nu != nullptr) /* an error of O moves the whole row of dQ, whatever else does */
        c.backward.dq_nu[w.out] = f.dead               ? 0.0
                                  : c.rounding.own_o ? degrees_of_freedom(all, f.neff, c.channels[2][(c.head0 + w.head) / c.group_k - c.head_k0], dim)
                                                     : 1.0;
}

namespace fref {

/* Adds the lot's heads, one after the other, to their groups' totals. A thread for each element of a head of the lot's groups. */
__device__ __forceinline__ void add_heads(const fref__call &c, int64_t group, int64_t head0, int64_t heads, int64_t dim, int64_t ld, double factor)
{
    const int64_t n = (int64_t)blockIdx.x * FREF__THREADS + threadIdx.x, column = n % dim, key = n / dim % c.keys, slot = n / dim / c.keys;
    if (slot >= heads)
        return;
    const bool partials_cast = c.rounding.partials_cast && group > 1;
    const double sqrt_n = sqrt(at_least_one((double)c.problem.rows / 16.0)), size = fabs(factor);
    const int64_t to = ((head0 + slot) * c.keys + key) * dim + column;
    double total[3] = { 0.0, 0.0, 0.0 };
    int64_t first = (head0 + slot) * group - c.head0, last = first + group;
    for (int n_total = 0; n_total < 3 && first < 0; n_total++) /* an earlier lot began it */
        total[n_total] = c.total[n_total][to];
    first = larger(first, 0);
    last = smaller(last, c.heads);
    for (int64_t head = first; head < last; head++) {
        const int64_t at = (head * c.keys_padded + key) * ld + column;
        const double value = factor * c.sum[0][at], lost = factor * lost_sum(c, head * c.keys_padded + key, at), accumulated = E32 * sqrt_n * size * c.sum[1][at];
        const double cast = partials_cast ? c.in.unit_roundoff * fmax(fabs(value), c.in.tiny) : 0.0;
        total[0] += value;
        total[1] += factor * factor * c.sum[2][at] + lost * lost + accumulated * accumulated + THIRD * cast * cast;
        total[2] += size * c.sum[3][at] + accumulated * sqrt_n + cast;
    }
    for (int n_total = 0; n_total < 3; n_total++)
        c.total[n_total][to] = total[n_total];
}

/* Where a gradient of keys goes; each may be NULL. */
struct destination {
    double *value, *sigma, *bound, *nu, *neff, *largest;
    double z;
};

/* A warp for each key of all heads. */
__device__ __forceinline__ void write_keys(const fref__call &c, const destination &to, const fref__limits &type, const double *per_channel, int64_t heads, int64_t dim)
{
    const int64_t at = (int64_t)blockIdx.x * (FREF__THREADS / 32) + threadIdx.x / 32;
    if (at >= heads * c.keys)
        return;
    const bool live = c.read[at];
    row_variance all = { 0.0, 0.0, 0.0 };
    amax largest = {};
    for (int64_t n = threadIdx.x % 32; n < dim; n += 32) {
        const int64_t element = at * dim + n;
        const double exact = c.total[0][element], variance = c.total[1][element], worst = c.total[2][element];
        const double total = clamped(exact, type.max), cast = type.unit_roundoff * fmax(fabs(total), type.tiny);
        all.single += variance;
        all.cast += THIRD * cast * cast;
        store(to.value, element, live ? total : 0.0);
        store(to.sigma, element, live ? sqrt(variance + THIRD * cast * cast) : 0.0);
        store(to.bound, element, live ? worst + cast : 0.0);
        if (live)
            take(&largest, fabs(exact), fmin(worst, to.z * sqrt(variance)));
    }
    sum_variances(&all);
    join(to.largest, largest);
    if (threadIdx.x % 32 != 0 || !c.freedom)
        return;
    const double number = effective_number(c.key_weights[2 * at], c.key_weights[2 * at + 1]);
    store(to.neff, at, live ? number : 0.0);
    if (to.nu != nullptr)
        to.nu[at] = live ? degrees_of_freedom(all, number, per_channel[at / c.keys], dim) : 0.0;
}

}

extern "C" __global__ void fref_add_dk(const __grid_constant__ fref__call c)
{
    add_heads(c, c.group_k, c.head_k0, c.heads_k, c.problem.dim_qk, c.ld_qk, c.gamma_ds * c.problem.scale);
}

extern "C" __global__ void fref_add_dv(const __grid_constant__ fref__call c)
{
    add_heads(c, c.group_v, c.head_v0, c.heads_v, c.problem.dim_v, c.ld_v, c.gamma_p);
}

extern "C" __global__ void fref_finish_dk(const __grid_constant__ fref__call c)
{
    const fref_backward_out &out = c.backward;
    const destination to = { out.dk, out.dk_sigma, out.dk_bound, out.dk_nu, out.dk_neff, out.amax_dk, c.z_dk };
    write_keys(c, to, c.to_k, c.channels[0], c.problem.batch * c.problem.heads_k, c.problem.dim_qk);
}

extern "C" __global__ void fref_finish_dv(const __grid_constant__ fref__call c)
{
    const fref_backward_out &out = c.backward;
    const destination to = { out.dv, out.dv_sigma, out.dv_bound, out.dv_nu, out.dv_neff, out.amax_dv, c.z_dv };
    write_keys(c, to, c.to_v, c.channels[1], c.problem.batch * c.problem.heads_v, c.problem.dim_v);
}
