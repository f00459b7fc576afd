#include "comparison.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "drawn.h"

/* What is allowed: of the sums' magnitude for answers, of the value for sigmas, bounds and what else only adds up. Beyond it, what
 * double arithmetic makes of the conditioning: 2^-52 of the largest |q||k| in every probability, 2^-52 over the slope where a soft
 * cap saturates, and 2^-29 of an answer's bound, which is at least 2^-23 of what cancels in it. */
#define ALLOWED 1e-12
/* Sigmas and bounds of O, dQ, dK and dV are made of rough sums (weigh.cuh): what adds up to them may be above, never below. What is
 * made of their quotients may differ either way. */
#define ABOVE 0.005

/* ---- device memory
 * ------------------------------------------------------------------------------------------------------------------ */

enum { MOST_PIECES = 128 };

typedef struct device {
    const fref__driver *driver;
    fref__address piece[MOST_PIECES];
    int count;
} device;

static void *device_array(device *d, const void *from, size_t bytes)
{
    fref__address at = 0;
    if (d->count == MOST_PIECES || d->driver->memory_alloc(&at, bytes ? bytes : 1) != 0)
        abort();
    d->piece[d->count++] = at;
    if (from && (d->driver->copy_to_device(at, from, bytes, NULL) != 0 || d->driver->stream_synchronize(NULL) != 0))
        abort();
    return (void *)(uintptr_t)at;
}

static void device_free(device *d)
{
    for (int n = 0; n < d->count; n++)
        d->driver->memory_free(d->piece[n]);
    d->count = 0;
}

/* Where element (b,h,s,0) of a tensor lies whose `first` and `pages` are on the host. */
static int64_t place_of(const fref_tensor *t, int64_t b, int64_t h, int64_t s)
{
    const int64_t batch = t->first   ? t->first[b]
                          : t->pages ? t->pages[b * t->pages_of_batch + s / t->page_size] * t->stride[0]
                                     : b * t->stride[0];
    return batch + h * t->stride[1] + (t->pages ? s % t->page_size : s) * t->stride[2];
}

/* Copies to where `out` says, NaN everywhere else, and brings it and its tables to the device. */
static fref_tensor place_tensor(device *d, const fref_tensor *t, fref_tensor out, int64_t elements, const int64_t dim[4],
                                const int32_t *len)
{
    const size_t size = bytes_of(t->type);
    unsigned char *copy = malloc((size_t)elements * size);
    if (!copy)
        abort();
    memset(copy, 0xff, (size_t)elements * size);
    for (int64_t b = 0; b < dim[0]; b++)
        for (int64_t h = 0; h < dim[1]; h++)
            for (int64_t s = 0; s < dim[2]; s++)
                for (int64_t c = 0; c < dim[3] && !(len && s >= len[b]); c++)
                    memcpy(copy + (size_t)(place_of(&out, b, h, s) + c * out.stride[3]) * size,
                           (const unsigned char *)t->data + (size_t)offset_of(t, b, h, s, c) * size, size);
    out.data = device_array(d, copy, (size_t)elements * size);
    if (out.first)
        out.first = device_array(d, out.first, (size_t)dim[0] * sizeof *out.first);
    if (out.pages)
        out.pages = device_array(d, out.pages, (size_t)(dim[0] * out.pages_of_batch) * sizeof *out.pages);
    free(copy);
    return out;
}

/* b,s,h,c with batch entries anywhere; nothing past a length. */
static fref_tensor ragged_tensor(device *d, const fref_tensor *t, const int64_t dim[4], const int32_t *len, uint64_t *state)
{
    int64_t first[8], at = 0;
    fref_tensor out = *t;
    out.stride[3] = 1;
    out.stride[1] = dim[3];
    out.stride[2] = dim[1] * dim[3];
    for (int64_t b = dim[0] - 1; b >= 0; b--) {
        at += (int64_t)(random_bits(state) % 4);
        first[b] = at;
        at += (len ? len[b] : dim[2]) * out.stride[2];
    }
    out.first = first;
    return place_tensor(d, t, out, at + 1, dim, len);
}

static fref_tensor paged_tensor(device *d, const fref_tensor *t, const int64_t dim[4], const int32_t *len, uint64_t *state)
{
    int32_t pages[1024];
    fref_tensor out = *t;
    out.page_size = 1 + (int64_t)(random_bits(state) % 20);
    out.pages_of_batch = (dim[2] + out.page_size - 1) / out.page_size;
    const int64_t count = dim[0] * out.pages_of_batch;
    if (count > 1024)
        return ragged_tensor(d, t, dim, len, state);
    for (int64_t n = 0; n < count; n++)
        pages[n] = (int32_t)n;
    for (int64_t n = count - 1; n > 0; n--) {
        const int64_t other = (int64_t)(random_bits(state) % (uint64_t)(n + 1));
        const int32_t page = pages[n];
        pages[n] = pages[other];
        pages[other] = page;
    }
    out.stride[3] = 1;
    out.stride[2] = dim[3];
    out.stride[1] = out.page_size * dim[3];
    out.stride[0] = dim[1] * out.stride[1];
    out.pages = pages;
    return place_tensor(d, t, out, count * out.stride[0], dim, len);
}

/* The tensor [b,h,s,c] in another layout, with gaps between; rows at or past len[b] (NULL: none) hold NaN. */
static fref_tensor device_tensor(device *d, const fref_tensor *t, const int64_t dim[4], const int32_t *len, uint64_t *state)
{
    static const int orders[4][4] = { { 0, 1, 2, 3 }, { 0, 2, 1, 3 }, { 2, 0, 1, 3 }, { 1, 0, 2, 3 } };
    const int *order = orders[random_bits(state) % 4];
    const int64_t gap = (int64_t)(random_bits(state) % 3) * 8;
    fref_tensor out = *t;
    int64_t step = 1;
    for (int n = 3; n >= 0; n--) {
        out.stride[order[n]] = step;
        step = step * dim[order[n]] + gap;
    }
    return place_tensor(d, t, out, step, dim, len);
}

/* ---- comparison
 * --------------------------------------------------------------------------------------------------------------------- */

/* One array of the answers: `bound` (NULL: none) of the same element tells the magnitude of the sum. */
typedef struct array {
    const char *name;
    double *expected, *got; /* on the host; got: NULL, then read from the device */
    const double *bound;
    int64_t count;
    bool above;             /* made of rough sums */
    double floor;           /* what these may add, absolute, where all weights are small beside what they are made of */
    double either_way;      /* what these may make of it, relative; of an amax: absolute */
    const struct array *of; /* what it says the degrees of freedom of: a row is `width` elements, */
    const struct array *sigma;
    int64_t width;
} array;

static double allowed_of(const array *a, int64_t n, double unit, double conditioning)
{
    const double size = fabs(a->expected[n]), sums = a->bound ? fmax(size, a->bound[n] / unit) : size;
    return (ALLOWED + conditioning) * sums + (a->bound ? 0x1p-29 * a->bound[n] : 0.0) + a->floor + 1e-300; /* where doubles are subnormal */
}

/* What rounding may do to the weights of a row, relative: a gradient that cancels is made of noise. */
static double noise(const array *a, int64_t row)
{
    double largest = 0.0, bound = 0.0;
    for (int64_t n = 0; a->of && n < a->width; n++) {
        largest = fmax(largest, fabs(a->of->expected[row * a->width + n]));
        bound = fmax(bound, a->of->bound[row * a->width + n]);
    }
    return a->of ? 1e-8 * bound / largest : 0.0;
}

/* Of what is made of rough sums: what lies above the value within what they may add counts for nothing. Theirs is 2^-80 of the
 * largest of what they add up, of which nothing is known here but the largest that came of it. */
static double beyond_rough(const array *a, double e, double g, double largest, tally *t)
{
    if (!a->above || !(g > e))
        return fabs(g - e);
    const double floor = 0x1p-60 * largest;
    t->above = fmax(t->above, (g - e - floor) / e);
    return fmax(0.0, g - e * (1.0 + ABOVE) - floor);
}

/* Degrees of freedom are quotients of variances. Where all of a row's are of the size that rough sums may add they may be anything,
 * but of a row that nothing weighs in: there is no variance but the last cast's, and nothing may be added. */
static bool anything(const array *a, int64_t row)
{
    double most = 0.0, largest = 0.0;
    if (!a->sigma || fabs(a->expected[row] / (double)a->width - 1.0) < 1e-9)
        return false;
    for (int64_t n = 0; n < a->width; n++)
        most = fmax(most, a->sigma->expected[row * a->width + n]);
    for (int64_t n = 0; n < a->sigma->count; n++)
        largest = fmax(largest, a->sigma->expected[n]);
    return most <= 0x1p-60 * largest && a->got[row] >= 0.5;
}

static void compare_array(const array *a, double unit, double conditioning, uint64_t seed, tally *t)
{
    double worst = 0.0, largest = 0.0;
    int64_t at = -1;
    for (int64_t n = 0; n < a->count && a->above; n++)
        largest = fmax(largest, a->expected[n]);
    for (int64_t n = 0; n < a->count; n++) {
        double e = a->expected[n], g = a->got[n], ratio = 0.0;
        if (isinf(e) || g == e)
            ratio = g == e ? 0.0 : INFINITY;
        else
            ratio = beyond_rough(a, e, g, largest, t) /
                    (allowed_of(a, n, unit, conditioning) + noise(a, n) * fabs(e) + a->either_way * (a->bound ? 1.0 : fabs(e)));
        if (ratio > 1.0 && anything(a, n))
            continue;
        if (!(ratio <= worst)) {
            worst = ratio;
            at = n;
        }
        if (isnan(ratio))
            break;
    }
    t->worst = isnan(worst) || worst > t->worst ? worst : t->worst;
    if (worst <= 1.0)
        return;
    t->wrong++;
    printf("seed %llu: %s[%lld of %lld]: %.17g, not %.17g (%.3g times what is allowed)\n", (unsigned long long)seed, a->name,
           (long long)at, (long long)a->count, a->got[at], a->expected[at], worst);
}

static double longest_row(const fref_tensor *t, int64_t batch, int64_t heads, int64_t rows, int64_t dim)
{
    double longest = 0.0;
    for (int64_t b = 0; b < batch; b++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t s = 0; s < rows; s++) {
                double squares = 0.0;
                for (int64_t c = 0; c < dim; c++)
                    squares += pow(element(t, b, h, s, c), 2.0);
                longest = fmax(longest, sqrt(squares));
            }
    return longest;
}

/* Relative, of a probability and of a slope; of a gradient's errors, where that of the score, ew, weighs a dP - D that cancels. */
static double conditioning_of(const drawn *x, bool gradient)
{
    const fref_problem *p = &x->data.problem;
    const double qk = fabs(p->scale) * longest_row(&x->data.q, p->batch, p->heads_q, p->rows, p->dim_qk) *
                      longest_row(&x->data.k, p->batch, p->heads_k, p->keys, p->dim_qk);
    const double steepest = qk / x->mod.parameter[0];
    /* 1 - tanh^2 */
    const double nck = fmax(1.0, (double)p->dim_qk / x->rounding.chunk),
                 of_score = gradient ? x->rounding.cw * nck * (qk + 4.0) / 2.0 : 0.0;
    return 0x1p-52 * (qk + of_score + (x->mod.kind == FREF_MOD_SOFTCAP ? fmin(exp(2.0 * steepest), 1e8) : 0.0));
}

#define PART(out, member, size, magnitude)                                                                                         \
    {                                                                                                                              \
        .name = #member, .expected = (out)->member, .bound = magnitude, .count = size                                              \
    }

static void bring(device *d, array *parts, double *const *device_at, size_t count)
{
    for (size_t n = 0; n < count; n++) {
        parts[n].got = malloc((size_t)(parts[n].count + 1) * sizeof(double));
        if (d->driver->copy_to_host(parts[n].got, (fref__address)(uintptr_t)device_at[n], (size_t)parts[n].count * sizeof(double),
                                    NULL) != 0 ||
            d->driver->stream_synchronize(NULL) != 0)
            abort();
    }
}

/* O asked for without its errors is made by other kernels. */
static int forward_values(fref_gpu *gpu, device *d, const fref_problem *problem, const drawn *x, const fref_gpu_mod *mod,
                          const fref_tensor in[6], array *o, double *on_device, char error[256])
{
    const fref_forward_out out = { .o = on_device };
    if (d->driver->memory_set((fref__address)(uintptr_t)on_device, 0xff, (size_t)o->count * sizeof(double), NULL) != 0)
        abort();
    fref_gpu_run_ahead(gpu, true);
    const int status = fref_gpu_forward(gpu, problem, mod, &in[0], &in[1], &in[2], &x->rounding, &out, NULL, error);
    fref_gpu_run_ahead(gpu, false);
    o->name = "o alone";
    if (status == 0)
        bring(d, o, &on_device, 1);
    return status;
}

static int compare_forward(fref_gpu *gpu, device *d, const fref_problem *problem, const drawn *x, const fref_gpu_mod *mod,
                           const fref_tensor in[6], uint64_t seed, tally *t)
{
    const fref_problem *p = &x->data.problem;
    const int64_t rows = p->batch * p->heads_q * (p->row_sample ? p->row_count : p->rows), count = rows * p->dim_v;
    fref_forward_out c = { 0 }, g = { 0 };
    double amax[6];
    double *memory = malloc((size_t)(3 * count + 7 * rows + 1) * sizeof *memory),
           **of_c[] = { &c.o,       &c.o_sigma, &c.o_bound, &c.lse,    &c.lse_tau, &c.max,
                        &c.max_tau, &c.sum_exp, &c.o_nu,    &c.o_neff, &c.amax_s,  &c.amax_o },
           **of_g[] = { &g.o,       &g.o_sigma, &g.o_bound, &g.lse,    &g.lse_tau, &g.max,
                        &g.max_tau, &g.sum_exp, &g.o_nu,    &g.o_neff, &g.amax_s,  &g.amax_o },
           *at = memory, *on_device[12];
    char error[256] = "";
    const double conditioning = conditioning_of(x, false);
    for (int n = 0; n < 12; n++) {
        *of_c[n] = n < 10 ? at : amax + 3 * (n - 10);
        at += n < 3 ? count : n < 10 ? rows : 0;
        on_device[n] = *of_g[n] = device_array(d, NULL, (size_t)(n < 3 ? count : n < 10 ? rows : 3) * sizeof(double));
    }
    if (fref_forward(p, &x->data.q, &x->data.k, &x->data.v, &x->rounding, &c) != 0)
        abort();
    const int status = fref_gpu_forward(gpu, problem, mod, &in[0], &in[1], &in[2], &x->rounding, &g, NULL, error);
    array parts[] = { PART(&c, o, count, c.o_bound), PART(&c, o_sigma, count, NULL), PART(&c, o_bound, count, NULL),
                      PART(&c, lse, rows, NULL),     PART(&c, lse_tau, rows, NULL),  PART(&c, max, rows, NULL),
                      PART(&c, max_tau, rows, NULL), PART(&c, sum_exp, rows, NULL),  PART(&c, o_nu, rows, NULL),
                      PART(&c, o_neff, rows, NULL),  PART(&c, amax_s, 3, NULL),      PART(&c, amax_o, 3, NULL) };
    double *tau = malloc((size_t)(rows + 1) * sizeof *tau); /* lse and max: differences of what is as large as the scores */
    for (int64_t n = 0; n < rows; n++)
        tau[n] = c.lse_tau[n];
    parts[3].bound = tau;
    parts[5].bound = c.max_tau;
    double largest[3] = { 0 };
    for (int64_t n = 0; n < count; n++)
        largest[0] = fmax(largest[0], c.o_bound[n]);
    largest[1] = largest[2] = largest[0];
    parts[1].above = parts[2].above = true;
    parts[8].either_way = 4.0 * ABOVE;
    parts[8].sigma = &parts[1];
    parts[8].width = p->dim_v;
    parts[11].bound = largest;
    parts[11].either_way = ABOVE * largest[0];
    if (status == 0) {
        bring(d, parts, on_device, 12);
        for (int n = 0; n < 12; n++) {
            compare_array(&parts[n], n == 0 ? unit_roundoff_of(x->data.type) : 0x1p-23, conditioning, seed, t);
            free(parts[n].got);
        }
        if (forward_values(gpu, d, problem, x, mod, in, &parts[0], on_device[0], error) != 0) {
            printf("seed %llu: O alone: %s\n", (unsigned long long)seed, error);
            t->wrong++;
        } else {
            compare_array(&parts[0], unit_roundoff_of(x->data.type), conditioning, seed, t);
            free(parts[0].got);
        }
    } else {
        printf("seed %llu: forward: %s\n", (unsigned long long)seed, error);
        t->wrong += status != ENOTSUP;
    }
    free(tau);
    free(memory);
    return status;
}

/* dK and dV without degrees of freedom: then a lot need not hold whole groups of heads. parts and on_device: from dk on. */
static int backward_of_keys(fref_gpu *gpu, device *d, const fref_problem *problem, const drawn *x, const fref_gpu_mod *mod,
                            const fref_tensor in[6], array parts[6], double *const on_device[6], char error[256])
{
    const fref_backward_out out = { .dk = on_device[0],
                                    .dk_sigma = on_device[1],
                                    .dk_bound = on_device[2],
                                    .dv = on_device[3],
                                    .dv_sigma = on_device[4],
                                    .dv_bound = on_device[5] };
    for (int n = 0; n < 6; n++)
        if (d->driver->memory_set((fref__address)(uintptr_t)on_device[n], 0xff, (size_t)parts[n].count * sizeof(double), NULL) != 0)
            abort();
    const int status =
        fref_gpu_backward(gpu, problem, mod, &in[0], &in[1], &in[2], &in[3], &in[4], &in[5], &x->rounding, &out, 0, NULL, error);
    if (status == 0)
        bring(d, parts, on_device, 6);
    return status;
}

static int compare_backward(fref_gpu *gpu, device *d, const fref_problem *problem, const drawn *x, const fref_gpu_mod *mod,
                            const fref_tensor in[6], uint64_t scores, uint64_t seed, tally *t)
{
    const fref_problem *p = &x->data.problem;
    const int64_t keys = p->key_sample ? p->key_count : p->keys,
                  rows = p->batch * p->heads_q * (p->row_sample ? p->row_count : p->rows);
    const int64_t of_k = p->batch * p->heads_k * keys, of_v = p->batch * p->heads_v * keys, *dim = x->data.dbias_dim;
    const int64_t bias = dim[0] * dim[1] * dim[2] * dim[3];
    const int64_t counts[] = { rows * p->dim_qk, of_k * p->dim_qk, of_v * p->dim_v, bias };
    fref_backward_out c = { 0 }, g = { 0 };
    double **of_c[] = {
        &c.dq,       &c.dq_sigma, &c.dq_bound,    &c.dk,          &c.dk_sigma, &c.dk_bound, &c.dv,      &c.dv_sigma,
        &c.dv_bound, &c.dbias,    &c.dbias_sigma, &c.dbias_bound, &c.dq_nu,    &c.dq_neff,  &c.dk_nu,   &c.dk_neff,
        &c.dv_nu,    &c.dv_neff,  &c.dsink,       &c.dsink_bound, &c.amax_dp,  &c.amax_dq,  &c.amax_dk, &c.amax_dv
    };
    double **of_g[] = {
        &g.dq,       &g.dq_sigma, &g.dq_bound,    &g.dk,          &g.dk_sigma, &g.dk_bound, &g.dv,      &g.dv_sigma,
        &g.dv_bound, &g.dbias,    &g.dbias_sigma, &g.dbias_bound, &g.dq_nu,    &g.dq_neff,  &g.dk_nu,   &g.dk_neff,
        &g.dv_nu,    &g.dv_neff,  &g.dsink,       &g.dsink_bound, &g.amax_dp,  &g.amax_dq,  &g.amax_dk, &g.amax_dv
    };
    static const char *const names[] = { "dq",    "dq_sigma",    "dq_bound", "dk",      "dk_sigma",    "dk_bound",
                                         "dv",    "dv_sigma",    "dv_bound", "dbias",   "dbias_sigma", "dbias_bound",
                                         "dq_nu", "dq_neff",     "dk_nu",    "dk_neff", "dv_nu",       "dv_neff",
                                         "dsink", "dsink_bound", "amax_dp",  "amax_dq", "amax_dk",     "amax_dv" };
    array parts[24];
    double *on_device[24];
    char error[256] = "";
    const double conditioning = conditioning_of(x, true);
    memcpy(c.dbias_dim, dim, sizeof c.dbias_dim);
    memcpy(g.dbias_dim, dim, sizeof g.dbias_dim);
    for (int n = 0; n < 24; n++) {
        const int64_t lone[] = { rows, of_k, of_v, p->heads_q, 3, 3 }, count = n < 12 ? counts[n / 3] : lone[(n - 12) / 2];
        double *memory = malloc((size_t)(count + 1) * sizeof *memory);
        on_device[n] = device_array(d, NULL, (size_t)count * sizeof(double));
        parts[n] = (array){ .name = names[n], .expected = memory, .count = count };
        *of_c[n] = memory;
        *of_g[n] = on_device[n];
    }
    for (int n = 0; n < 12; n += 3)
        parts[n].bound = parts[n + 2].expected;
    parts[18].bound = parts[19].expected;
    /* dP - D may cancel. */
    const double of_dp = unit_roundoff_of(x->data.type) * longest_row(&x->data.d_o, p->batch, p->heads_q, p->rows, p->dim_v) *
                         longest_row(&x->data.v, p->batch, p->heads_v, p->keys, p->dim_v),
                 dp[3] = { of_dp, of_dp, of_dp };
    parts[20].bound = dp;
    double largest[3][3] = { { 0 } }; /* an amax is as well conditioned as the worst element */
    for (int n = 0; n < 9; n++) {
        parts[n].above = n % 3 != 0;
        parts[n].floor = parts[n].above ? 0x1p-92 * of_dp / unit_roundoff_of(x->data.type) * conditioning * 0x1p52 : 0.0;
    }
    for (int n = 12; n < 18; n += 2) {
        parts[n].either_way = 4.0 * ABOVE;
        parts[n].sigma = &parts[(n - 12) / 2 * 3 + 1];
    }
    for (int n = 12; n < 18; n++) {
        parts[n].of = &parts[(n - 12) / 2 * 3];
        parts[n].width = n < 16 ? p->dim_qk : p->dim_v;
    }
    if (fref_backward(p, &x->data.q, &x->data.k, &x->data.v, &x->data.o, &x->data.stats, &x->data.d_o, &x->rounding, &c) != 0)
        abort();
    const int status =
        fref_gpu_backward(gpu, problem, mod, &in[0], &in[1], &in[2], &in[3], &in[4], &in[5], &x->rounding, &g, scores, NULL, error);
    for (int n = 0; n < 3; n++) {
        const array *bounds = &parts[3 * n + 2];
        for (int64_t i = 0; i < bounds->count; i++)
            largest[n][0] = fmax(largest[n][0], bounds->expected[i]);
        largest[n][1] = largest[n][2] = largest[n][0];
        parts[21 + n].bound = largest[n];
        parts[21 + n].either_way = ABOVE * largest[n][0];
        parts[21 + n].floor = parts[3 * n + 1].floor;
    }
    if (status == 0) {
        bring(d, parts, on_device, 24);
        for (int n = 0; n < 24; n++) {
            compare_array(&parts[n], unit_roundoff_of(x->data.type), conditioning, seed, t);
            free(parts[n].got);
        }
        const bool grouped = p->heads_q > p->heads_k || p->heads_q > p->heads_v;
        if (grouped && backward_of_keys(gpu, d, problem, x, mod, in, parts + 3, on_device + 3, error) != 0) {
            printf("seed %llu: keys alone: %s\n", (unsigned long long)seed, error);
            t->wrong++;
        }
        for (int n = 3; n < 9 && grouped; n++) {
            compare_array(&parts[n], unit_roundoff_of(x->data.type), conditioning, seed, t);
            free(parts[n].got);
        }
    } else {
        printf("seed %llu: backward: %s\n", (unsigned long long)seed, error);
        t->wrong += status != ENOTSUP;
    }
    for (int n = 0; n < 24; n++)
        free(parts[n].expected);
    return status;
}

/* The problem with device addresses. */
static fref_problem on_device(device *d, const drawn *x, fref_tensor *bias, fref_gpu_mod *mod)
{
    fref_problem p = x->data.problem;
    const size_t batch = (size_t)p.batch, heads = (size_t)p.heads_q, scores = batch * heads * (size_t)p.rows * (size_t)p.keys;
    p.len_q = p.len_q ? device_array(d, p.len_q, batch * sizeof *p.len_q) : NULL;
    p.len_kv = p.len_kv ? device_array(d, p.len_kv, batch * sizeof *p.len_kv) : NULL;
    p.keep = p.keep ? device_array(d, p.keep, scores) : NULL;
    p.sink = p.sink ? device_array(d, p.sink, heads * sizeof *p.sink) : NULL;
    p.alibi = p.alibi ? device_array(d, p.alibi, heads * sizeof *p.alibi) : NULL;
    p.row_sample = p.row_sample ? device_array(d, p.row_sample, (size_t)p.row_count * sizeof *p.row_sample) : NULL;
    p.key_sample = p.key_sample ? device_array(d, p.key_sample, (size_t)p.key_count * sizeof *p.key_sample) : NULL;
    *mod = x->mod;
    mod->a = x->mod_a;
    mod->b = x->mod_b;
    if (x->mod_memory) {
        const size_t size = heads * (size_t)p.rows * (size_t)p.keys + batch * (size_t)(p.rows + p.keys);
        const float *memory = device_array(d, x->mod_memory, size * sizeof *memory);
        mod->a.data = memory;
        mod->b.data = memory + batch * (size_t)p.rows;
    }
    mod->seen = x->seen;
    mod->seen.data = x->seen_memory ? device_array(d, x->seen_memory, scores) : NULL;
    mod->tiles =
        x->tiles ? device_array(d, x->tiles, batch * heads * (size_t)((p.rows + 127) / 128 * ((p.keys + 127) / 128))) : NULL;
    p.bias = x->bias;
    if (p.bias) {
        const int64_t *dim = x->data.dbias_dim;
        *bias = *p.bias;
        bias->data = device_array(d, p.bias->data, (size_t)(dim[0] * dim[1] * dim[2] * dim[3]) * bytes_of(bias->type));
        p.bias = bias;
    }
    return p;
}

void compare_problem(fref_gpu *gpu, const fref__driver *driver, feature with, uint64_t seed, const size_limits *most, tally *t)
{
    drawn x;
    device d = { .driver = driver };
    fref_tensor bias;
    fref_gpu_mod mod;
    drawn_create(&x, with, seed, most);
    const fref_problem *host = &x.data.problem;
    const fref_problem p = on_device(&d, &x, &bias, &mod);
    const int64_t dims[6][4] = { { p.batch, p.heads_q, p.rows, p.dim_qk }, { p.batch, p.heads_k, p.keys, p.dim_qk },
                                 { p.batch, p.heads_v, p.keys, p.dim_v },  { p.batch, p.heads_q, p.rows, p.dim_v },
                                 { p.batch, p.heads_q, p.rows, 1 },        { p.batch, p.heads_q, p.rows, p.dim_v } };
    const fref_tensor *const from[] = { &x.data.q, &x.data.k, &x.data.v, &x.data.o, &x.data.stats, &x.data.d_o };
    fref_tensor in[6];
    uint64_t state = seed;
    for (int n = 0; n < 6; n++) {
        const bool of_keys = n == 1 || n == 2, apart = with == FEATURE_APART;
        const int32_t *len = of_keys ? host->len_kv : host->len_q;
        in[n] = (!apart ? device_tensor : of_keys ? paged_tensor : ragged_tensor)(&d, from[n], dims[n], len, &state);
    }
    const int before = t->wrong;
    const int forward = compare_forward(gpu, &d, &p, &x, x.mod.kind || x.masked_memory ? &mod : NULL, in, seed, t);
    const uint64_t scores = seed % 2 == 0 ? fref_gpu_scores(gpu) : 0;
    const int backward = compare_backward(gpu, &d, &p, &x, x.mod.kind || x.masked_memory ? &mod : NULL, in, scores, seed, t);
    t->problems++;
    t->refused += (forward == ENOTSUP) + (backward == ENOTSUP);
    if (t->wrong > before)
        printf("  b=%lld hq=%lld hk=%lld hv=%lld rows=%lld keys=%lld d=%lld dv=%lld type=%d mod=%d bias=%d keep=%d sink=%d "
               "alibi=%d len=%d left=%d right=%d\n",
               (long long)p.batch, (long long)p.heads_q, (long long)p.heads_k, (long long)p.heads_v, (long long)p.rows,
               (long long)p.keys, (long long)p.dim_qk, (long long)p.dim_v, (int)x.data.type, (int)x.mod.kind, p.bias != NULL,
               p.keep != NULL, p.sink != NULL, p.alibi != NULL, p.len_q != NULL, p.has_left, p.has_right);
    device_free(&d);
    drawn_destroy(&x);
}
