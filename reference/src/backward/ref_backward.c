/* The backward pass.
 *
 *   D_i = sum_c dO O
 *   P_ij = exp(s_ij - Stats_i), from the given Stats
 *   dP_ij = dO_i . v_j
 *   dX = P (dP - D)
 *   dS = slope dX if the score is modified (x = modify(s) + bias)
 *   dBias = sums of dX
 *   dQ = scale dS K, dK = scale dS^T Q, dV = P^T dO */
#include "backward/ref_backward.h"

#include <errno.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

static bool wants_rows(const fref_backward_out *out)
{
    return fref_is_wanted(&out->dq) || out->amax_dp;
}

static bool wants_keys(const fref_backward_out *out)
{
    return fref_is_wanted(&out->dk) || fref_is_wanted(&out->dv);
}

static bool wants_judged_keys(const fref_backward_out *out)
{
    return fref_has_errors(&out->dk) || fref_has_errors(&out->dv);
}

/* One piece of memory for the four sums, zero. */
static bool start_bias(fref__backward *x)
{
    const int64_t *dim = x->out->dbias_dim;
    if (!fref_is_wanted(&x->out->dbias))
        return true;
    size_t count = (size_t)(dim[0] * dim[1] * dim[2] * dim[3]);
    x->bias_sums[0] = calloc(4 * count + 1, sizeof *x->bias_sums[0]);
    for (size_t n = 1; n < 4 && x->bias_sums[0]; n++)
        x->bias_sums[n] = x->bias_sums[0] + n * count;
    return x->bias_sums[0] != NULL;
}

/* Fills everything that follows from the arguments; nothing is allocated. */
/* No bias, dropout or clipping: the case of lanes.h. */
static bool is_plain(const fref_problem *p, const fref_rounding *r)
{
    return !fref__is_scored(p) && !p->keep && fref__precision_of(r->ds).max == (double)INFINITY;
}

static fref__backward backward_of(const fref__shape *shape, const fref__inputs *inputs,
                                  const fref_rounding *r, const fref_backward_out *out)
{
    const fref_problem *p = shape->problem;
    const fref_scales *scales = &p->scales;
    const fref__precision of_ds = fref__precision_scaled(r->ds, scales->scale_dp);
    return (fref__backward){
        .shape = shape,
        .rounding = r,
        .inputs = inputs,
        .out = out,
        .in = fref__precision_of(r->in),
        .of_p = fref__precision_of_p(p, r->in, scales->scale_s),
        .of_ds = of_ds,
        .to_q = fref__precision_scaled(r->out, scales->scale_dq),
        .to_k = fref__precision_scaled(r->out, scales->scale_dk),
        .to_v = fref__precision_scaled(r->out, scales->scale_dv),
        .most_ds = p->scale != 0.0 ? of_ds.max / fabs(p->scale) : INFINITY,
        .gamma_p = fref__or_1(scales->scale_s) * fref__or_1(scales->descale_s),
        .gamma_ds = fref__or_1(scales->scale_dp) * fref__or_1(scales->descale_dp),
        .z_dp = fref__z_of(p->batch * p->heads_q * shape->rows.count * p->keys),
        .z_dq = fref__z_of_gradient(r, FREF_GRADIENT_Q,
                                    p->batch * p->heads_q * shape->rows.count * p->dim_qk),
        .z_dk = fref__z_of_gradient(r, FREF_GRADIENT_K,
                                    p->batch * p->heads_k * shape->keys.count * p->dim_qk),
        .z_dv = fref__z_of_gradient(r, FREF_GRADIENT_V,
                                    p->batch * p->heads_v * shape->keys.count * p->dim_v),
        .judged = wants_judged_keys(out),
        .freedom = inputs->freedom,
        .measured = fref_has_errors(&out->dq) || out->amax_dp || wants_judged_keys(out) ||
                    fref_is_wanted(&out->dbias),
        .scored = fref__is_scored(p),
        .plain = is_plain(p, r),
    };
}

static void write_amax(const fref__backward *x)
{
    double *const to[FREF__AMAX_COUNT] = { x->out->amax_dp, x->out->dq.amax, x->out->dk.amax,
                                           x->out->dv.amax };
    for (int n = 0; n < FREF__AMAX_COUNT; n++)
        fref__amax_write(to[n], x->amax + n, FREF__AMAX_COUNT, omp_get_max_threads());
}

/* The values that `out` requests, for the listed rows and keys. */
static int run(const fref__shape *shape, fref__inputs *inputs, const fref_rounding *rounding,
               const fref_backward_out *out)
{
    fref__slab slab;
    inputs->freedom =
        fref_has_freedom(&out->dq) || fref_has_freedom(&out->dk) || fref_has_freedom(&out->dv);
    inputs->entries = wants_rows(out) && wants_keys(out) && is_plain(shape->problem, rounding);
    if (fref__slab_create(&slab, shape, inputs) != 0)
        return ENOMEM;
    size_t rows = (size_t)(slab.capacity * shape->span * shape->rows.count);
    fref__backward x = backward_of(shape, inputs, rounding, out);
    x.amax = calloc(FREF__AMAX_COUNT * (size_t)omp_get_max_threads(), sizeof *x.amax);
    x.facts = calloc(rows ? rows : 1, sizeof *x.facts);
    int status = x.facts && x.amax && start_bias(&x) ? 0 : ENOMEM;
    for (int64_t first = 0; first < shape->units && status == 0; first += slab.capacity) {
        fref__slab_load(&slab, shape, inputs, first);
        status = fref__backward_rows(&x, &slab);
        if (status == 0)
            status = fref__backward_keys(&x, &slab);
        if (status == 0 && x.bias_sums[0])
            status = fref__backward_bias(&x, &slab);
    }
    if (status == 0 && x.bias_sums[0])
        fref__backward_bias_write(&x);
    if (status == 0)
        write_amax(&x);
    free(x.amax);
    free(x.bias_sums[0]);
    free(x.facts);
    fref__slab_destroy(&slab);
    return status;
}

/* dQ of sampled rows reads all keys; dK and dV of sampled keys all rows; dBias all of both. */
static int run_samples(const fref_problem *p, fref__inputs *inputs, const fref_rounding *rounding,
                       const fref_backward_out *out)
{
    const fref_backward_out of_rows = { .dq = out->dq, .amax_dp = out->amax_dp };
    fref_backward_out of_keys = *out, of_bias = { .dbias = out->dbias };
    of_keys.dq = of_keys.dbias = (fref_answer){ 0 };
    of_keys.amax_dp = NULL;
    memcpy(of_bias.dbias_dim, out->dbias_dim, sizeof of_bias.dbias_dim);
    const fref__list rows = fref__sample(p->row_sample, p->row_count, p->rows),
                     keys = fref__sample(p->key_sample, p->key_count, p->keys);
    const fref__shape by_row = fref__shape_of(p, rows, fref__all(p->keys)),
                      by_key = fref__shape_of(p, fref__all(p->rows), keys),
                      whole = fref__shape_of(p, fref__all(p->rows), fref__all(p->keys));
    int status = 0;
    if (wants_rows(out))
        status = run(&by_row, inputs, rounding, &of_rows);
    if (status == 0 && wants_keys(out))
        status = run(&by_key, inputs, rounding, &of_keys);
    if (status == 0 && fref_is_wanted(&out->dbias))
        status = run(&whole, inputs, rounding, &of_bias);
    return status;
}

int fref_backward(const fref_problem *problem, const fref_tensor *q, const fref_tensor *k,
                  const fref_tensor *v, const fref_tensor *o, const fref_tensor *stats,
                  const fref_tensor *d_o, const fref_rounding *rounding,
                  const fref_backward_out *out)
{
    const fref__shape whole =
        fref__shape_of(problem, fref__all(problem->rows), fref__all(problem->keys));
    fref__inputs inputs = { .q = q, .k = k, .v = v, .o = o, .stats = stats, .d_o = d_o };
    int status = fref__backward_sink(&whole, &inputs, out);
    if (status != 0)
        return status;
    if (problem->row_sample || problem->key_sample)
        return run_samples(problem, &inputs, rounding, out);
    return run(&whole, &inputs, rounding, out);
}
