#include "comparison.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "array.h"
#include "device_problem.h"
#include "drawn.h"

/* clang-format off */
#define FORWARD_LIST(X)                                                                         \
    X(o) X(o_sigma) X(o_bound) X(lse) X(lse_tau) X(max) X(max_tau) X(sum_exp) X(o_nu) X(o_neff) \
    X(amax_s) X(amax_o)
/* clang-format off */
#define BACKWARD_LIST(X)                                                                      \
    X(dq) X(dq_sigma) X(dq_bound) X(dk) X(dk_sigma) X(dk_bound) X(dv) X(dv_sigma) X(dv_bound) \
    X(dbias) X(dbias_sigma) X(dbias_bound) X(dq_nu) X(dq_neff) X(dk_nu) X(dk_neff) X(dv_nu)   \
    X(dv_neff) X(dsink) X(dsink_bound) X(amax_dp) X(amax_dq) X(amax_dk) X(amax_dv)
/* clang-format on */
/* clang-format on */
#define AS_PLACE(member) AT_##member,
enum { FORWARD_LIST(AS_PLACE) FORWARD_COUNT };
enum { BACKWARD_LIST(AS_PLACE) BACKWARD_COUNT };
#undef AS_PLACE

/* One problem on both sides. */
typedef struct comparison {
    fref_gpu *gpu;
    device *device;
    const drawn *x;
    const fref_problem *problem; /* with device addresses, */
    const fref_gpu_mod *mod;     /* NULL: none, */
    const fref_tensor *in;       /* q, k, v, o, stats, d_o */
    double unit;                 /* roundoff of the inputs' type */
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

static array place(const comparison *c, const char *name, int64_t count, double **here,
                   double **there)
{
    double *expected = malloc((size_t)(count + 1) * sizeof *expected);
    *here = expected;
    *there = device_array(c->device, NULL, (size_t)count * sizeof(double));
    return (array){
        .name = name, .expected = expected, .on_device = *there, .unit = c->unit, .count = count
    };
}

static void spoil(const comparison *c, const array *parts, int count)
{
    for (int n = 0; n < count; n++)
        if (c->device->driver->memory_set((gpu_address)(uintptr_t)parts[n].on_device, 0xff,
                                          (size_t)parts[n].count * sizeof(double), NULL) != 0)
            abort();
}

static void compare(const comparison *c, array *parts, int count, double conditioning)
{
    const gpu_driver *driver = c->device->driver;
    for (int n = 0; n < count; n++) {
        const size_t bytes = (size_t)parts[n].count * sizeof(double);
        parts[n].got = malloc(bytes + 1);
        if (driver->fetch(parts[n].got, (gpu_address)(uintptr_t)parts[n].on_device, bytes, NULL) !=
                0 ||
            driver->stream_synchronize(NULL) != 0)
            abort();
        compare_array(&parts[n], conditioning, c->seed, c->tally);
        free(parts[n].got);
    }
}

/* A refusal of a whole pass is counted by whoever asked. */
static void report(const comparison *c, const char *what, int status, const char *error)
{
    printf("seed %llu: %s: %s\n", (unsigned long long)c->seed, what, error);
    c->tally->wrong += status != ENOTSUP;
}

static double largest_of(const array *a)
{
    double largest = 0.0;
    for (int64_t n = 0; n < a->count; n++)
        largest = fmax(largest, a->expected[n]);
    return largest;
}

static void set_all(double three[3], double value)
{
    three[0] = three[1] = three[2] = value;
}

/* O asked for without its errors is made by other kernels. */
static void compare_values(const comparison *c, array *o, double conditioning)
{
    const fref_forward_out out = { .o = o->on_device };
    char error[256] = "";
    spoil(c, o, 1);
    fref_gpu_run_ahead(c->gpu, true);
    const int status = fref_gpu_forward(c->gpu, c->problem, c->mod, &c->in[0], &c->in[1], &c->in[2],
                                        &c->x->rounding, &out, NULL, error);
    fref_gpu_run_ahead(c->gpu, false);
    o->name = "o alone";
    if (status == 0)
        compare(c, o, 1, conditioning);
    else
        report(c, o->name, EIO, error);
}

static int compare_forward(const comparison *c)
{
    const drawn *x = c->x;
    const fref_problem *p = &x->data.problem;
    const int64_t rows = p->batch * p->heads_q * p->rows, count = rows * p->dim_v;
    const double conditioning = conditioning_of(x, false);
    fref_forward_out here = { 0 }, there = { 0 };
    array parts[FORWARD_COUNT];
    double largest[3];
    char error[256] = "";
#define PLACE(member)                                                                              \
    parts[AT_##member] = place(c, #member,                                                         \
                               AT_##member <= AT_o_bound ? count                                   \
                               : AT_##member < AT_amax_s ? rows                                    \
                                                         : 3,                                      \
                               &here.member, &there.member);
    FORWARD_LIST(PLACE)
#undef PLACE
    if (fref_forward(p, &x->data.q, &x->data.k, &x->data.v, &x->rounding, &here) != 0)
        abort();
    const int status = fref_gpu_forward(c->gpu, c->problem, c->mod, &c->in[0], &c->in[1], &c->in[2],
                                        &x->rounding, &there, NULL, error);
    for (int n = AT_o + 1; n < FORWARD_COUNT; n++)
        parts[n].unit = 0x1p-23;
    parts[AT_o].bound = here.o_bound;
    parts[AT_lse].bound =
        here.lse_tau; /* lse and max: differences of what is as large as the scores */
    parts[AT_max].bound = here.max_tau;
    set_all(largest, largest_of(&parts[AT_o_bound]));
    parts[AT_amax_o].bound = largest;
    if (status == 0) {
        compare(c, parts, FORWARD_COUNT, conditioning);
        compare_values(c, &parts[AT_o], conditioning);
    } else {
        report(c, "forward", status, error);
    }
    for (int n = 0; n < FORWARD_COUNT; n++)
        free(parts[n].expected);
    return status;
}

static int backward(const comparison *c, const fref_backward_out *out, uint64_t scores,
                    char error[256])
{
    const fref_tensor *in = c->in;
    return fref_gpu_backward(c->gpu, c->problem, c->mod, &in[0], &in[1], &in[2], &in[3], &in[4],
                             &in[5], &c->x->rounding, out, scores, NULL, error);
}

/* dK and dV without degrees of freedom: then a slice need not hold whole groups of heads. */
static void compare_keys(const comparison *c, array parts[BACKWARD_COUNT],
                         const fref_backward_out *all, double conditioning)
{
    const fref_backward_out out = { .dk = all->dk,
                                    .dk_sigma = all->dk_sigma,
                                    .dk_bound = all->dk_bound,
                                    .dv = all->dv,
                                    .dv_sigma = all->dv_sigma,
                                    .dv_bound = all->dv_bound };
    char error[256] = "";
    const int count = AT_dv_bound + 1 - AT_dk;
    spoil(c, &parts[AT_dk], count);
    if (backward(c, &out, 0, error) == 0)
        compare(c, &parts[AT_dk], count, conditioning);
    else
        report(c, "keys alone", EIO, error);
}

static void place_backward(const comparison *c, array parts[BACKWARD_COUNT],
                           fref_backward_out *here, fref_backward_out *there)
{
    const fref_problem *p = &c->x->data.problem;
    const int64_t keys = p->keys, *dim = c->x->data.dbias_dim;
    const int64_t rows = p->batch * p->heads_q * p->rows, of_k = p->batch * p->heads_k * keys,
                  of_v = p->batch * p->heads_v * keys;
    const int64_t wide[] = { rows * p->dim_qk, of_k * p->dim_qk, of_v * p->dim_v,
                             dim[0] * dim[1] * dim[2] * dim[3] };
    const int64_t lone[] = { rows, of_k, of_v, p->heads_q, 3, 3 };
    memcpy(here->dbias_dim, dim, sizeof here->dbias_dim);
    memcpy(there->dbias_dim, dim, sizeof there->dbias_dim);
#define PLACE(member)                                                                              \
    parts[AT_##member] =                                                                           \
        place(c, #member,                                                                          \
              AT_##member < AT_dq_nu ? wide[AT_##member / 3] : lone[(AT_##member - AT_dq_nu) / 2], \
              &here->member, &there->member);
    BACKWARD_LIST(PLACE)
#undef PLACE
}

/* What sums are made of that may cancel. */
typedef struct magnitudes {
    double dp[3], largest[3][3];
} magnitudes;

/* Of answers that are known on one side. */
static void condition_backward(const comparison *c, array parts[BACKWARD_COUNT], magnitudes *m)
{
    const fref_problem *p = &c->x->data.problem;
    const double of_dp = longest_row(&c->x->data.d_o, p->batch, p->heads_q, p->rows, p->dim_v) *
                         longest_row(&c->x->data.v, p->batch, p->heads_v, p->keys, p->dim_v);
    set_all(m->dp, c->unit * of_dp);
    parts[AT_amax_dp].bound = m->dp; /* dP - D may cancel */
    parts[AT_dsink].bound = parts[AT_dsink_bound].expected;
    parts[AT_dbias].bound = parts[AT_dbias_bound].expected;
    for (int n = 0; n < 3; n++) { /* dQ, dK, dV */
        array *values = &parts[AT_dq + 3 * n], *bound = values + 2, *nu = &parts[AT_dq_nu + 2 * n],
              *neff = nu + 1, *amax = &parts[AT_amax_dq + n];
        values->bound = bound->expected;
        nu->of = neff->of = values;
        nu->width = neff->width = n < 2 ? p->dim_qk : p->dim_v;
        set_all(m->largest[n],
                largest_of(bound)); /* an amax is as well conditioned as the worst element */
        amax->bound = m->largest[n];
    }
}

static int compare_backward(const comparison *c, uint64_t scores)
{
    const drawn *x = c->x;
    const fref_problem *p = &x->data.problem;
    const double conditioning = conditioning_of(x, true);
    fref_backward_out here = { 0 }, there = { 0 };
    array parts[BACKWARD_COUNT];
    magnitudes m;
    char error[256] = "";
    place_backward(c, parts, &here, &there);
    if (fref_backward(p, &x->data.q, &x->data.k, &x->data.v, &x->data.o, &x->data.stats,
                      &x->data.d_o, &x->rounding, &here) != 0)
        abort();
    condition_backward(c, parts, &m);
    const int status = backward(c, &there, scores, error);
    if (status == 0) {
        compare(c, parts, BACKWARD_COUNT, conditioning);
        if (p->heads_q > p->heads_k || p->heads_q > p->heads_v)
            compare_keys(c, parts, &there, conditioning);
    } else {
        report(c, "backward", status, error);
    }
    for (int n = 0; n < BACKWARD_COUNT; n++)
        free(parts[n].expected);
    return status;
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
    const comparison c = { .gpu = gpu,
                           .device = &d,
                           .x = &x,
                           .problem = &p,
                           .mod = x.mod.kind || x.masked_memory ? &mod : NULL,
                           .in = in,
                           .unit = unit_roundoff_of(x.data.type),
                           .seed = seed,
                           .tally = t };
    const int before = t->wrong, forward = compare_forward(&c);
    const uint64_t scores = seed % 2 == 0 ? fref_gpu_scores(gpu) : 0;
    t->problems++;
    t->refused += (forward == ENOTSUP) + (compare_backward(&c, scores) == ENOTSUP);
    if (t->wrong > before)
        printf("  b=%lld hq=%lld hk=%lld hv=%lld rows=%lld keys=%lld d=%lld dv=%lld type=%d mod=%d "
               "bias=%d keep=%d sink=%d "
               "alibi=%d len=%d left=%d right=%d\n",
               (long long)p.batch, (long long)p.heads_q, (long long)p.heads_k, (long long)p.heads_v,
               (long long)p.rows, (long long)p.keys, (long long)p.dim_qk, (long long)p.dim_v,
               (int)x.data.type, (int)x.mod.kind, p.bias != NULL, p.keep != NULL, p.sink != NULL,
               p.alibi != NULL, p.len_q != NULL, p.has_left, p.has_right);
    device_free(&d);
    drawn_destroy(&x);
}
