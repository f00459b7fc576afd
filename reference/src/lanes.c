#include "lanes.h"

#include <math.h>
#include <string.h>

/* Eight doubles; narrower machines take them in pieces. */
typedef double eight __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t eight_bits __attribute__((vector_size(64), aligned(8), may_alias));

#define INLINE static inline __attribute__((always_inline))
#define AT(p) (*(eight *)(p))
#define OF(p) (*(const eight *)(p))
/* `yes` where the comparison held. */
#define CHOOSE(held, yes, no) ((eight)(((held) & (eight_bits)(yes)) | (~(held) & (eight_bits)(no))))
#define ALL(x) ((eight){ x, x, x, x, x, x, x, x })
#define MAGNITUDE(x) ((eight)((eight_bits)(x) & INT64_MAX))

#define ROUNDER                                                                                    \
    0x1.8p52 /* x + ROUNDER - ROUNDER is x rounded to an integer, which is in the low bits of the  \
                sum */
#define LOG2_E 0x1.71547652b82fep+0
#define LN2_HIGH 0x1.62e42fefa3800p-1
#define LN2_LOW 0x1.ef35793c76730p-45

/* The weights of eight entries; the largest loss of any of them so far. */
typedef struct weights {
    eight size, bound, variance, lost, v_bound, v_variance, v_lost;
    eight_bits any, any_v;
} weights;

/* The coefficients of the series of e^r, from r^13 down to 1. */
static const double exp_terms[] = { 1.0 / 6227020800.0,
                                    1.0 / 479001600.0,
                                    1.0 / 39916800.0,
                                    1.0 / 3628800.0,
                                    1.0 / 362880.0,
                                    1.0 / 40320.0,
                                    1.0 / 5040.0,
                                    1.0 / 720.0,
                                    1.0 / 120.0,
                                    1.0 / 24.0,
                                    1.0 / 6.0,
                                    0.5,
                                    1.0,
                                    1.0 };

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512dq")))
#define NAME(x) x##_avx512
#define WIDTH 8
#define LOAD(p) _mm512_loadu_pd(p)
#define STORE(p, x) _mm512_storeu_pd(p, x)
#define FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
#include "lanes_body.h"

#define TARGET __attribute__((target("avx2,fma")))
#define NAME(x) x##_avx2
#define WIDTH 4
#define LOAD(p) _mm256_loadu_pd(p)
#define STORE(p, x) _mm256_storeu_pd(p, x)
#define FMA(a, b, c) _mm256_fmadd_pd(a, b, c)
#include "lanes_body.h"
#endif

#define TARGET
#define NAME(x) x##_any
#define WIDTH 1
#define LOAD(p) (*(p))
#define STORE(p, x) (*(p) = (x))
#define FMA(a, b, c) fma(a, b, c)
#include "lanes_body.h"

/* X(FUNCTION, (parameters), (arguments)): the machine's is called. */
#define FUNCTIONS(X)                                                                               \
    X(exp_all, (double *out, const double *x, int64_t n), (out, x, n))                             \
    X(scale_all, (fref__extremes * out, double *x, int64_t n, double scale), (out, x, n, scale))   \
    X(exponentiate_all, (fref__exp_sums * out, double *x, int64_t n, double max),                  \
      (out, x, n, max))                                                                            \
    X(multiply_all, (double *x, int64_t n, double by), (x, n, by))                                 \
    X(weigh_forward_all,                                                                           \
      (bool *out, double *variance, double *flushed, const double *p, int64_t n,                   \
       const fref__forward_terms *t),                                                              \
      (out, variance, flushed, p, n, t))                                                           \
    X(entries_all,                                                                                 \
      (double *p, double *ds, const double *s, int64_t n, const fref__entry_row *row),             \
      (p, ds, s, n, row))                                                                          \
    X(weigh_all,                                                                                   \
      (fref__entry_weights * out, const double *p, const double *ds, int64_t n,                    \
       const fref__entry_terms *t),                                                                \
      (out, p, ds, n, t))

#if defined(__x86_64__)
#define DEFINE(name, parameters, arguments)                                                        \
    static void name##_here parameters                                                             \
    {                                                                                              \
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))               \
            name##_avx512 arguments;                                                               \
        else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))                  \
            name##_avx2 arguments;                                                                 \
        else                                                                                       \
            name##_any arguments;                                                                  \
    }
#else
#define DEFINE(name, parameters, arguments)                                                        \
    static void name##_here parameters                                                             \
    {                                                                                              \
        name##_any arguments;                                                                      \
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

bool fref__weigh_forward(double *variance, double *flushed, const double *p, int64_t n,
                         const fref__forward_terms *terms)
{
    bool any;
    weigh_forward_all_here(&any, variance, flushed, p, n, terms);
    return any;
}

void fref__entries(double *p, double *ds, const double *s, int64_t n, const fref__entry_row *row)
{
    entries_all_here(p, ds, s, n, row);
}

void fref__weigh(fref__entry_weights *out, const double *p, const double *ds, int64_t n,
                 const fref__entry_terms *terms)
{
    weigh_all_here(out, p, ds, n, terms);
}
