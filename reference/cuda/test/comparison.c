#include "comparison.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "device_problem.h"
#include "drawn.h"

#define AS_PLACE(out, member, name, count) AT_##name,
enum { ANSWER_LIST(AS_PLACE) COUNT };
#undef AS_PLACE

/* One array of the answers. `bound` (NULL: none) of the same element, or one for all, tells the
 * magnitude of the sum. */
typedef struct array {
    const char *name;
    const double *expected, *bound;
    bool one_bound;
    double unit, conditioning; /* roundoff: bound over it is the magnitude; relative, of sums */
    int64_t count;
    const struct array *of; /* what it says the degrees of freedom of: a row is `width` elements */
    int64_t width;
} array;

/* One problem on both sides. */
typedef struct comparison {
    fref_gpu *gpu;
    const gpu_driver *driver;
    const drawn *x;
    const fref_problem *problem; /* with device addresses, */
    const fref_gpu_mod *mod;     /* NULL: none, */
    const fref_tensor *in;       /* q, k, v, o, stats, d_o */
    answers here, there;         /* there: the arrays are a device's */
    double *memory;              /* a device's, `there` begins at it */
    array parts[COUNT];
    double dp, largest[4]; /* what sums are made of that may cancel: o, dq, dk, dv */
    uint64_t seed;
    tally *tally;
} comparison;

static double longest_row(const fref_tensor *t, int64_t batch, int64_t heads, int64_t rows,
                          int64_t dim)
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

/* Relative, of a probability and of a slope; of a gradient's errors, where that of the score, ew,
 * weighs a dP - D that cancels. */
static double conditioning_of(const drawn *x, bool gradient)
{
    const fref_problem *p = &x->data.problem;
    const double qk = fabs(p->scale) *
                      longest_row(&x->data.q, p->batch, p->heads_q, p->rows, p->dim_qk) *
                      longest_row(&x->data.k, p->batch, p->heads_k, p->keys, p->dim_qk);
    const double steepest = qk / x->mod.parameter[0];
    /* 1 - tanh^2 */
    const double nck = fmax(1.0, (double)p->dim_qk / x->rounding.chunk),
                 of_score = gradient ? x->rounding.cw * nck * (qk + 4.0) / 2.0 : 0.0;
    return 0x1p-52 * (qk + of_score +
                      (x->mod.kind == FREF_MOD_SOFTCAP ? fmin(exp(2.0 * steepest), 1e8) : 0.0));
}

/* ---- what may lie between two arrays
 */

/* What is allowed: of the sums' magnitude for answers, of the value for sigmas, bounds and what
 * else only adds up. Beyond it, what double arithmetic makes of the conditioning: 2^-52 of the
 * largest |q||k| in every probability, 2^-52 over the slope where a soft cap saturates, and 2^-29
 * of an answer's bound, which is at least 2^-23 of what cancels in it. */
#define ALLOWED 1e-12

static double allowed_of(const array *a, int64_t n)
{
    const double size = fabs(a->expected[n]),
                 bound = a->bound ? a->bound[a->one_bound ? 0 : n] : 0.0,
                 sums = a->bound ? fmax(size, bound / a->unit) : size;
    return (ALLOWED + a->conditioning) * sums + 0x1p-29 * bound +
           1e-300; /* where doubles are subnormal */
}

/* What rounding may do to the weights of a row, relative: a gradient that cancels is made of noise.
 */
static double noise(const array *a, int64_t row)
{
    double largest = 0.0, bound = 0.0;
    for (int64_t n = 0; a->of && n < a->width; n++) {
        largest = fmax(largest, fabs(a->of->expected[row * a->width + n]));
        bound = fmax(bound, a->of->bound[row * a->width + n]);
    }
    return a->of ? 1e-8 * bound / largest : 0.0;
}

static void compare_array(const comparison *c, const array *a, const double *got)
{
    tally *t = c->tally;
    double worst = 0.0;
    int64_t at = -1;
    for (int64_t n = 0; n < a->count; n++) {
        double e = a->expected[n], g = got[n], ratio = 0.0;
        if (isinf(e) || g == e)
            ratio = g == e ? 0.0 : INFINITY;
        else
            ratio = fabs(g - e) / (allowed_of(a, n) + noise(a, n) * fabs(e));
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
    printf("seed %llu: %s[%lld of %lld]: %.17g, not %.17g (%.3g times what is allowed)\n",
           (unsigned long long)c->seed, a->name, (long long)at, (long long)a->count, got[at],
           a->expected[at], worst);
}

/* ---- both sides
 */

/* Everything there is a NaN again. */
static void spoil(const comparison *c)
{
    if (c->driver->memory_set((gpu_address)(uintptr_t)c->memory, 0xff, c->here.bytes, NULL) != 0)
        abort();
}

/* The arrays from `first` to `last`; a refusal of a whole pass is counted by whoever asked. */
static void compare(const comparison *c, int first, int last, int status, const char *error)
{
    double *got = malloc(c->here.bytes + 1);
    if (status != 0) {
        printf("seed %llu: from %s: %s\n", (unsigned long long)c->seed, c->parts[first].name,
               error);
        c->tally->wrong += status != ENOTSUP;
    } else if (!got ||
               c->driver->fetch(got, (gpu_address)(uintptr_t)c->memory, c->here.bytes, NULL) != 0 ||
               c->driver->stream_synchronize(NULL) != 0) {
        abort();
    }
    for (int n = first; n <= last && status == 0; n++)
        compare_array(c, &c->parts[n], got + (c->parts[n].expected - c->here.memory));
    free(got);
}

static int forward(const comparison *c, const fref_forward_out *out, char error[256])
{
    return fref_gpu_forward(c->gpu, c->problem, c->mod, &c->in[0], &c->in[1], &c->in[2],
                            &c->x->rounding, out, NULL, error);
}

static int backward(const comparison *c, const fref_backward_out *out, uint64_t scores,
                    char error[256])
{
    const fref_tensor *in = c->in;
    return fref_gpu_backward(c->gpu, c->problem, c->mod, &in[0], &in[1], &in[2], &in[3], &in[4],
                             &in[5], &c->x->rounding, out, scores, NULL, error);
}

static void place(comparison *c)
{
    const drawn *x = c->x;
    const fref_problem *p = &x->data.problem;
    const double unit = unit_roundoff_of(x->data.type), before = conditioning_of(x, false),
                 after = conditioning_of(x, true);
    answers *a = &c->here;
    array *parts = c->parts;
#define PLACE(out, member, word, of_answers)                                                       \
    parts[AT_##word] = (array){ .name = #word,                                                     \
                                .expected = a->out.member,                                         \
                                .unit = AT_##word == AT_o || AT_##word >= AT_dq ? unit : 0x1p-23,  \
                                .conditioning = AT_##word < AT_dq ? before : after,                \
                                .count = a->of_answers };
    ANSWER_LIST(PLACE)
#undef PLACE
    /* lse and max: differences of what is as large as the scores; dP - D may cancel */
    c->dp = unit * longest_row(&x->data.d_o, p->batch, p->heads_q, p->rows, p->dim_v) *
            longest_row(&x->data.v, p->batch, p->heads_v, p->keys, p->dim_v);
    parts[AT_o].bound = a->f.o.bound, parts[AT_lse].bound = a->f.lse_tau;
    parts[AT_max].bound = a->f.max_tau, parts[AT_dsink].bound = a->g.dsink_bound;
    parts[AT_dbias].bound = a->g.dbias.bound, parts[AT_amax_dp].bound = &c->dp;
    parts[AT_amax_dp].one_bound = true;
    for (int n = 0; n < 4; n++) { /* O, dQ, dK, dV */
        array *values = &parts[n == 0 ? AT_o : AT_dq + 3 * (n - 1)],
              *amax = &parts[n == 0 ? AT_amax_o : AT_amax_dq + n - 1];
        values->bound = values[2].expected;
        for (int64_t i = 0; i < values->count; i++)
            c->largest[n] = fmax(c->largest[n], values->bound[i]);
        amax->bound = &c->largest[n]; /* as well conditioned as the worst element */
        amax->one_bound = true;
        array *nu = &parts[AT_dq_nu + 2 * (n - 1)];
        if (n > 0)
            nu[0].of = nu[1].of = values, nu[0].width = nu[1].width = n < 3 ? p->dim_qk : p->dim_v;
    }
}

static int compare_forward(comparison *c)
{
    char error[256] = "";
    int status = forward(c, &c->there.f, error);
    compare(c, AT_o, AT_amax_o, status, error);
    if (status != 0)
        return status;
    /* O asked for without its errors is made by other kernels. */
    const fref_forward_out alone = { .o.value = c->there.f.o.value };
    spoil(c);
    fref_gpu_run_ahead(c->gpu, true);
    status = forward(c, &alone, error);
    fref_gpu_run_ahead(c->gpu, false);
    c->parts[AT_o].name = "o alone";
    compare(c, AT_o, AT_o, status ? EIO : 0, error);
    return 0;
}

static int compare_backward(comparison *c, uint64_t scores)
{
    const fref_problem *p = &c->x->data.problem;
    const fref_backward_out *all = &c->there.g;
    char error[256] = "";
    const int status = backward(c, all, scores, error);
    compare(c, AT_dq, AT_amax_dv, status, error);
    if (status != 0 || (p->heads_q == p->heads_k && p->heads_q == p->heads_v))
        return status;
    /* dK and dV without degrees of freedom: then a slice need not hold whole groups of heads. */
    const fref_backward_out keys = {
        .dk = { .value = all->dk.value, .sigma = all->dk.sigma, .bound = all->dk.bound },
        .dv = { .value = all->dv.value, .sigma = all->dv.sigma, .bound = all->dv.bound }
    };
    spoil(c);
    compare(c, AT_dk, AT_dv_bound, backward(c, &keys, 0, error) ? EIO : 0, error);
    return 0;
}

void compare_problem(fref_gpu *gpu, const gpu_driver *driver, feature with, uint64_t seed,
                     const size_limits *most, tally *t)
{
    drawn x;
    device d = { .driver = driver };
    fref_tensor bias;
    fref_gpu_mod mod;
    drawn_create(&x, with, seed, most);
    const fref_problem *host = &x.data.problem;
    const fref_problem p = device_problem(&d, &x, &bias, &mod);
    const int64_t dims[6][4] = {
        { p.batch, p.heads_q, p.rows, p.dim_qk }, { p.batch, p.heads_k, p.keys, p.dim_qk },
        { p.batch, p.heads_v, p.keys, p.dim_v },  { p.batch, p.heads_q, p.rows, p.dim_v },
        { p.batch, p.heads_q, p.rows, 1 },        { p.batch, p.heads_q, p.rows, p.dim_v }
    };
    const fref_tensor *const from[] = { &x.data.q, &x.data.k,     &x.data.v,
                                        &x.data.o, &x.data.stats, &x.data.d_o };
    fref_tensor in[6];
    uint64_t state = seed;
    for (int n = 0; n < 6; n++) {
        const bool of_keys = n == 1 || n == 2, apart = with == FEATURE_APART;
        const int32_t *len = of_keys ? host->len_kv : host->len_q;
        in[n] = (!apart    ? device_tensor
                 : of_keys ? device_paged
                           : device_ragged)(&d, from[n], dims[n], len, &state);
    }
    comparison c = { .gpu = gpu,
                     .driver = driver,
                     .x = &x,
                     .problem = &p,
                     .mod = x.mod.kind || x.masked_memory ? &mod : NULL,
                     .in = in,
                     .seed = seed,
                     .tally = t };
    answers_create(&c.here, &x.data, &x.rounding);
    c.there = c.here;
    c.memory = device_array(&d, NULL, c.here.bytes);
    answers_at(&c.there, c.memory);
    place(&c);
    const int before = t->wrong, status = compare_forward(&c);
    const uint64_t scores = seed % 2 == 0 ? fref_gpu_scores(gpu) : 0;
    t->problems++;
    t->refused += (status == ENOTSUP) + (compare_backward(&c, scores) == ENOTSUP);
    if (t->wrong > before)
        printf("  b=%lld hq=%lld hk=%lld hv=%lld rows=%lld keys=%lld d=%lld dv=%lld type=%d mod=%d "
               "bias=%d keep=%d sink=%d "
               "alibi=%d len=%d left=%d right=%d\n",
               (long long)p.batch, (long long)p.heads_q, (long long)p.heads_k, (long long)p.heads_v,
               (long long)p.rows, (long long)p.keys, (long long)p.dim_qk, (long long)p.dim_v,
               (int)x.data.type, (int)x.mod.kind, p.bias != NULL, p.keep != NULL, p.sink != NULL,
               p.alibi != NULL, p.len_q != NULL, p.has_left, p.has_right);
    answers_destroy(&c.here);
    device_free(&d);
    drawn_destroy(&x);
}
