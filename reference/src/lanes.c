#include "lanes.h"

#include <math.h>
#include <string.h>

#include "backward.h"

/* Eight doubles; narrower machines take them in pieces. */
typedef double eight __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t eight_bits __attribute__((vector_size(64), aligned(8), may_alias));

#define INLINE static inline __attribute__((always_inline))
#define AT(p) (*(eight *)(p))
#define OF(p) (*(const eight *)(p))
/* `yes` where the comparison held. */
#define CHOOSE(held, yes, no) ((eight)(((held) & (eight_bits)(yes)) | (~(held) & (eight_bits)(no))))
#define ALL(x) ((eight){ x, x, x, x, x, x, x, x })
#define MAGNITUDE(x) ((eight)((eight_bits)(x)&INT64_MAX))

/* Loads fewer than eight, the rest `fill`. */
INLINE void load_some(eight *out, const double *x, int64_t n, double fill)
{
    double some[8] = { fill, fill, fill, fill, fill, fill, fill, fill };
    memcpy(some, x, (size_t)n * sizeof *some);
    *out = OF(some);
}

INLINE void store_some(double *out, const eight *x, int64_t n)
{
    memcpy(out, x, (size_t)n * sizeof *out);
}

INLINE double added_up(const eight *x)
{
    return (((*x)[0] + (*x)[1]) + ((*x)[2] + (*x)[3])) + (((*x)[4] + (*x)[5]) + ((*x)[6] + (*x)[7]));
}

#define ROUNDER 0x1.8p52 /* x + ROUNDER - ROUNDER is x to the nearest integer, which stands in the low bits of the sum */
#define LOG2_E 0x1.71547652b82fep+0
#define LN2_HIGH 0x1.62e42fefa3800p-1
#define LN2_LOW 0x1.ef35793c76730p-45

/* e^x = 2^k e^r, |r| <= ln 2 / 2: the Taylor series to r^13 is good to 4e-18. 2^k in two steps, as k may leave the exponents. */
INLINE void exp_of(eight *out, const eight *in)
{
    static const double term[] = { 1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0,
                                   1.0 / 362880.0,     1.0 / 40320.0,     1.0 / 5040.0,     1.0 / 720.0,
                                   1.0 / 120.0,        1.0 / 24.0,        1.0 / 6.0,        0.5 };
    eight x = CHOOSE(*in > 800.0, ALL(800.0), *in);
    x = CHOOSE(x < -800.0, ALL(-800.0), x);
    eight k = (x * LOG2_E + ROUNDER) - ROUNDER;
    eight r = (x - k * LN2_HIGH) - k * LN2_LOW;
    eight sum = ALL(term[0]);
    for (int n = 1; n < 12; n++)
        sum = sum * r + term[n];
    sum = (sum * (r * r) + r) + 1.0;
    eight half = k * 0.5 + ROUNDER, rest = (k - (half - ROUNDER)) + ROUNDER;
    eight_bits one = (eight_bits)ALL(1.0);
    *out = sum * (eight)(((eight_bits)half << 52) + one) * (eight)(((eight_bits)rest << 52) + one);
}

INLINE void exp_all(double *out, const double *x, int64_t n)
{
    eight e;
    int64_t k = 0;
    for (; k + 8 <= n; k += 8)
        exp_of(&AT(out + k), &OF(x + k));
    if (k == n)
        return;
    load_some(&e, x + k, n - k, 0.0);
    exp_of(&e, &e);
    store_some(out + k, &e, n - k);
}

INLINE void scale_some(eight *x, double scale, eight *max, eight *magnitude)
{
    *x *= scale;
    eight size = MAGNITUDE(*x);
    *max = CHOOSE((*x > *max) | (*x != *x), *x, *max);
    *magnitude = CHOOSE(size > *magnitude, size, *magnitude);
}

INLINE void scale_all(fref__extremes *out, double *x, int64_t n, double scale)
{
    eight max = ALL(-INFINITY), magnitude = ALL(0.0);
    int64_t k = 0;
    for (; k + 8 <= n; k += 8)
        scale_some(&AT(x + k), scale, &max, &magnitude);
    *out = (fref__extremes){ .max = -INFINITY };
    for (int64_t rest = k; rest < n; rest++) {
        x[rest] *= scale;
        out->max = x[rest] > out->max || x[rest] != x[rest] ? x[rest] : out->max;
        out->magnitude = fabs(x[rest]) > out->magnitude ? fabs(x[rest]) : out->magnitude;
    }
    for (int l = 0; l < 8; l++) {
        out->max = max[l] > out->max || max[l] != max[l] ? max[l] : out->max;
        out->magnitude = magnitude[l] > out->magnitude ? magnitude[l] : out->magnitude;
    }
}

INLINE void exponentiate_some(eight *x, double max, eight sums[3])
{
    eight size = MAGNITUDE(*x), e = *x - max;
    exp_of(&e, &e);
    sums[0] += e;
    sums[1] += e * e;
    sums[2] += e * size;
    *x = e;
}

INLINE void exponentiate_all(fref__exp_sums *out, double *x, int64_t n, double max)
{
    eight sums[3] = { ALL(0.0), ALL(0.0), ALL(0.0) }, rest;
    int64_t k = 0;
    for (; k + 8 <= n; k += 8)
        exponentiate_some(&AT(x + k), max, sums);
    if (k < n) {
        load_some(&rest, x + k, n - k, -1e5); /* exp: 0 */
        exponentiate_some(&rest, max, sums);
        store_some(x + k, &rest, n - k);
    }
    *out = (fref__exp_sums){ added_up(&sums[0]), added_up(&sums[1]), added_up(&sums[2]) };
}

INLINE void multiply_all(double *x, int64_t n, double by)
{
    int64_t k = 0;
    for (; k + 8 <= n; k += 8)
        AT(x + k) *= by;
    for (; k < n; k++)
        x[k] *= by;
}

INLINE void weigh_forward_some(eight *variance, eight *flushed, const eight *p, const fref__forward_terms *t, eight_bits *any)
{
    eight_bits lost = (*p < t->limit) & (*p > 0.0);
    *variance = *p * *p * t->variance_p + t->variance_floor;
    *flushed = (eight)(lost & (eight_bits)*p);
    *any |= lost;
}

INLINE bool any_of(const eight_bits *x)
{
    int64_t all = 0;
    for (int l = 0; l < 8; l++)
        all |= (*x)[l];
    return all != 0;
}

INLINE void weigh_forward_all(bool *out, double *variance, double *flushed, const double *p, int64_t n,
                              const fref__forward_terms *t)
{
    eight_bits any = { 0 };
    eight of_p, rest[2];
    int64_t k = 0;
    for (; k + 8 <= n; k += 8)
        weigh_forward_some(&AT(variance + k), &AT(flushed + k), &OF(p + k), t, &any);
    if (k < n) {
        load_some(&of_p, p + k, n - k, 0.0);
        weigh_forward_some(&rest[0], &rest[1], &of_p, t, &any);
        store_some(variance + k, &rest[0], n - k);
        store_some(flushed + k, &rest[1], n - k);
    }
    *out = any_of(&any);
}

/* What becomes of eight entries. */
typedef struct entries {
    eight ds, p, size, bound, variance, lost, v_bound, v_variance, v_lost;
    eight_bits any, any_v;
} entries;

INLINE void weigh_some(entries *e, const eight *s, const eight *dp, const fref__entry_terms *t, const bool judged)
{
    eight x = *s * t->scale - t->stats, p;
    exp_of(&p, &x);
    eight ds = p * (*dp - t->delta);
    e->p = p;
    e->ds = ds;
    if (!judged)
        return;
    eight size = MAGNITUDE(ds);
    eight_bits underflows = p < FREF__P_FLUSHED, lost = (ds != 0.0) & (underflows | (size < t->limit));
    e->size = size;
    e->bound = (size * t->relative + p * t->of_p) + t->floor + (eight)(underflows & (eight_bits)size);
    e->variance = (ds * ds * t->var_ds + p * p * t->var_p) + t->var_floor;
    e->lost = (eight)(lost & (eight_bits)ds);
    e->any |= lost;
    eight_bits v_lost = (p > 0.0) & (p < t->v_limit);
    e->v_bound = p * t->v_relative + t->v_floor;
    e->v_variance = p * p * t->v_var + t->v_var_floor;
    e->v_lost = (eight)(v_lost & (eight_bits)p);
    e->any_v |= v_lost;
}

INLINE void store_entries(const fref__entry_weights *out, const entries *e, int64_t at, int64_t n, const bool judged)
{
    store_some(out->ds + at, &e->ds, n);
    store_some(out->p + at, &e->p, n);
    if (!judged)
        return;
    store_some(out->size + at, &e->size, n);
    store_some(out->bound + at, &e->bound, n);
    store_some(out->variance + at, &e->variance, n);
    store_some(out->lost + at, &e->lost, n);
    if (!out->v_bound)
        return;
    store_some(out->v_bound + at, &e->v_bound, n);
    store_some(out->v_variance + at, &e->v_variance, n);
    store_some(out->v_lost + at, &e->v_lost, n);
}

INLINE void weigh_entries(fref__entry_weights *out, const double *s, const double *dp, int64_t n, const fref__entry_terms *t,
                          const bool judged)
{
    entries e = { 0 };
    eight some_s, some_dp;
    int64_t k = 0;
    for (; k + 8 <= n; k += 8) {
        weigh_some(&e, &OF(s + k), &OF(dp + k), t, judged);
        store_entries(out, &e, k, 8, judged);
    }
    if (k < n) {
        load_some(&some_s, s + k, n - k, 0.0);
        load_some(&some_dp, dp + k, n - k, t->delta); /* dS: 0 */
        entries rest = { .any = { 0 } };
        weigh_some(&rest, &some_s, &some_dp, t, judged);
        store_entries(out, &rest, k, n - k, judged);
        for (int64_t l = 0; l < n - k; l++) {
            e.any[l] |= rest.any[l];
            e.any_v[l] |= rest.any_v[l];
        }
    }
    out->any_lost = any_of(&e.any);
    out->any_v_lost = any_of(&e.any_v);
}

INLINE void weigh_entries_all(fref__entry_weights *out, const double *s, const double *dp, int64_t n, const fref__entry_terms *t)
{
    if (out->size)
        weigh_entries(out, s, dp, n, t, true);
    else
        weigh_entries(out, s, dp, n, t, false);
}

/* X(FUNCTION, (parameters), (arguments)): each is compiled for every instruction set, and the machine's is called. */
#define FUNCTIONS(X)                                                                                                               \
    X(exp_all, (double *out, const double *x, int64_t n), (out, x, n))                                                             \
    X(scale_all, (fref__extremes * out, double *x, int64_t n, double scale), (out, x, n, scale))                                   \
    X(exponentiate_all, (fref__exp_sums * out, double *x, int64_t n, double max), (out, x, n, max))                                \
    X(multiply_all, (double *x, int64_t n, double by), (x, n, by))                                                                 \
    X(weigh_forward_all, (bool *out, double *variance, double *flushed, const double *p, int64_t n, const fref__forward_terms *t), \
      (out, variance, flushed, p, n, t))                                                                                           \
    X(weigh_entries_all, (fref__entry_weights * out, const double *s, const double *dp, int64_t n, const fref__entry_terms *t),    \
      (out, s, dp, n, t))

#if defined(__x86_64__)
#define DEFINE(name, parameters, arguments)                                                                                        \
    __attribute__((target("avx512f"))) static void name##_avx512 parameters                                                        \
    {                                                                                                                              \
        name arguments;                                                                                                            \
    }                                                                                                                              \
    __attribute__((target("avx2"))) static void name##_avx2 parameters                                                             \
    {                                                                                                                              \
        name arguments;                                                                                                            \
    }                                                                                                                              \
    static void name##_here parameters                                                                                             \
    {                                                                                                                              \
        if (__builtin_cpu_supports("avx512f"))                                                                                     \
            name##_avx512 arguments;                                                                                               \
        else if (__builtin_cpu_supports("avx2"))                                                                                   \
            name##_avx2 arguments;                                                                                                 \
        else                                                                                                                       \
            name arguments;                                                                                                        \
    }
#else
#define DEFINE(name, parameters, arguments)                                                                                        \
    static void name##_here parameters                                                                                             \
    {                                                                                                                              \
        name arguments;                                                                                                            \
    }
#endif
FUNCTIONS(DEFINE)
#undef DEFINE

void fref__exp(double *out, const double *x, int64_t n)
{
    exp_all_here(out, x, n);
}

fref__extremes fref__scale(double *x, int64_t n, double scale)
{
    fref__extremes out;
    scale_all_here(&out, x, n, scale);
    return out;
}

fref__exp_sums fref__exponentiate(double *x, int64_t n, double max)
{
    fref__exp_sums out;
    exponentiate_all_here(&out, x, n, max);
    return out;
}

void fref__multiply(double *x, int64_t n, double by)
{
    multiply_all_here(x, n, by);
}

bool fref__weigh_forward(double *variance, double *flushed, const double *p, int64_t n, const fref__forward_terms *terms)
{
    bool any;
    weigh_forward_all_here(&any, variance, flushed, p, n, terms);
    return any;
}

void fref__weigh_entries(fref__entry_weights *out, const double *s, const double *dp, int64_t n, const fref__entry_terms *terms)
{
    weigh_entries_all_here(out, s, dp, n, terms);
}
