/* The backward pass: D_i = sum_c dO O, P_ij = exp(s_ij - Stats_i) from the Stats that are given, dP_ij = dO_i . v_j,
 * dX = P (dP - D), dS = slope dX where the score is modified (x = modify(s) + bias); dBias = sums of dX; dQ = scale dS K, dK =
 * scale dS^T Q, dV = P^T dO. */
#include "backward.h"

#include <errno.h>
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
    fref__backward x = { .shape = &shape,
                         .rounding = rounding,
                         .inputs = &inputs,
                         .out = out,
                         .in = fref__precision_of(rounding->in),
                         .to = fref__precision_of(rounding->out),
                         .facts = calloc(rows ? rows : 1, sizeof *x.facts),
                         .judged = out->dk_sigma || out->dk_bound || out->dv_sigma || out->dv_bound || out->dk_nu || out->dv_nu,
                         .freedom = inputs.freedom,
                         .scored = fref__is_scored(problem) };
    int status = x.facts && start_bias(&x) ? 0 : ENOMEM;
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
    free(x.bias_sums[0]);
    free(x.facts);
    fref__slab_destroy(&slab);
    return status;
}
