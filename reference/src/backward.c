/* The backward pass: D_i = sum_c dO O, P_ij = exp(s_ij - Stats_i) from the Stats that are given, dP_ij = dO_i . v_j,
 * dX = P (dP - D), dS = slope dX where the score is modified (x = modify(s) + bias); dBias = sums of dX; dQ = scale dS K, dK =
 * scale dS^T Q, dV = P^T dO. */
#include "backward.h"

#include <errno.h>
#include <omp.h>
#include <stdlib.h>

int64_t fref__cut(const fref__part *parts, size_t count, double *base)
{
    int64_t used = 0;
    for (size_t n = 0; n < count; n++) {
        *parts[n].out = base ? base + used : NULL;
        used += parts[n].size;
    }
    return used;
}

/* One piece of memory for the four sums, zero. */
static bool start_bias(fref__backward *x)
{
    const int64_t *dim = x->out->dbias_dim;
    if (!x->out->dbias && !x->out->dbias_sigma && !x->out->dbias_bound)
        return true;
    size_t count = (size_t)(dim[0] * dim[1] * dim[2] * dim[3]);
    x->bias_sums[0] = calloc(4 * count + 1, sizeof *x->bias_sums[0]);
    for (size_t n = 1; n < 4 && x->bias_sums[0]; n++)
        x->bias_sums[n] = x->bias_sums[0] + n * count;
    return x->bias_sums[0] != NULL;
}

static bool wants_freedom(const fref_backward_out *out)
{
    return out->dq_nu || out->dq_neff || out->dk_nu || out->dk_neff || out->dv_nu || out->dv_neff;
}

static fref__backward start(const fref__shape *shape, const fref__inputs *inputs, const fref_rounding *r, const fref_backward_out *out)
{
    const fref_problem *p = shape->problem;
    const fref_scales *scales = &p->scales;
    return (fref__backward){
        .shape = shape,
        .rounding = r,
        .inputs = inputs,
        .out = out,
        .in = fref__precision_of(r->in),
        .of_p = fref__precision_scaled(r->in, scales->scale_s),
        .of_ds = fref__precision_scaled(r->in, scales->scale_dp),
        .to_q = fref__precision_scaled(r->out, scales->scale_dq),
        .to_k = fref__precision_scaled(r->out, scales->scale_dk),
        .to_v = fref__precision_scaled(r->out, scales->scale_dv),
        .gamma_p = fref__or_1(scales->scale_s) * fref__or_1(scales->descale_s),
        .gamma_ds = fref__or_1(scales->scale_dp) * fref__or_1(scales->descale_dp),
        .amax = calloc((size_t)(FREF__AMAX_COUNT * omp_get_max_threads()), sizeof(fref__amax)),
        .z_dp = fref__z_of(p->batch * p->heads_q * p->rows * p->keys),
        .z_dq = fref__z_of(p->batch * p->heads_q * p->rows * p->dim_qk),
        .z_dk = fref__z_of(p->batch * p->heads_k * p->keys * p->dim_qk),
        .z_dv = fref__z_of(p->batch * p->heads_v * p->keys * p->dim_v),
        .judged = out->dk_sigma || out->dk_bound || out->dv_sigma || out->dv_bound || out->dk_nu || out->dv_nu || out->amax_dk || out->amax_dv,
        .freedom = inputs->freedom,
        .scored = fref__is_scored(p),
    };
}

static void write_amax(const fref__backward *x)
{
    double *const to[FREF__AMAX_COUNT] = { x->out->amax_dp, x->out->amax_dq, x->out->amax_dk, x->out->amax_dv };
    for (int n = 0; n < FREF__AMAX_COUNT; n++)
        fref__amax_write(to[n], x->amax + n, FREF__AMAX_COUNT, omp_get_max_threads());
}

int fref_backward(const fref_problem *problem, const fref_tensor *q, const fref_tensor *k, const fref_tensor *v,
                  const fref_tensor *o, const fref_tensor *stats, const fref_tensor *d_o, const fref_rounding *rounding,
                  const fref_backward_out *out)
{
    fref__shape shape = fref__shape_of(problem);
    fref__inputs inputs = { .q = q, .k = k, .v = v, .o = o, .stats = stats, .d_o = d_o, .freedom = wants_freedom(out) };
    fref__slab slab;
    if (fref__slab_create(&slab, &shape, &inputs) != 0)
        return ENOMEM;
    size_t rows = (size_t)(slab.capacity * shape.span * problem->rows);
    fref__backward x = start(&shape, &inputs, rounding, out);
    x.facts = calloc(rows ? rows : 1, sizeof *x.facts);
    int status = x.facts && x.amax && start_bias(&x) ? 0 : ENOMEM;
    if (status == 0)
        status = fref__backward_sink(&shape, &inputs, out);
    for (int64_t first = 0; first < shape.units && status == 0; first += slab.capacity) {
        fref__slab_load(&slab, &shape, &inputs, first);
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
