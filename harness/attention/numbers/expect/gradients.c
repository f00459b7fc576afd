#include "gradients.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "numbers/dtype.h"

#define E32 0x1p-23

/* The extents before a sum: those of the input. */
static void full_dim(const facts_problem *p, facts_tensor_id id, int64_t dim[4])
{
    static const facts_tensor_id input[FACTS_TENSOR_COUNT] = { [FACTS_TENSOR_DQ] = FACTS_TENSOR_Q,
                                                               [FACTS_TENSOR_DK] = FACTS_TENSOR_K,
                                                               [FACTS_TENSOR_DV] = FACTS_TENSOR_V,
                                                               [FACTS_TENSOR_DBIAS] =
                                                                   FACTS_TENSOR_BIAS };
    memcpy(dim, p->tensor[input[id]].dim, 4 * sizeof *dim);
}

static int64_t count_of(const int64_t dim[4])
{
    return dim[0] * dim[1] * dim[2] * dim[3];
}

bool facts_gradients_take(facts_gradients *out, const facts_problem *p, facts_tensor_id id,
                          facts_answer *to)
{
    facts_gradient *g = &out->at[out->count++];
    *g = (facts_gradient){ .id = id };
    full_dim(p, id, g->dim);
    facts_answer where = *to;
    if (memcmp(g->dim, p->tensor[id].dim, sizeof g->dim) != 0) {
        size_t n = (size_t)count_of(g->dim) + 1;
        to->parts = calloc((size_t)count_of(p->tensor[id].dim) + 1, sizeof *to->parts);
        where = g->each = (facts_answer){ .want = calloc(n, sizeof(double)),
                                          .sigma = calloc(n, sizeof(double)),
                                          .bound = calloc(n, sizeof(double)) };
        if (!where.want || !where.sigma || !where.bound || !to->parts)
            return false;
    }
    if (p->ask.rope && id == FACTS_TENSOR_DQ && !to->parts) { /* cast, then rotated */
        to->parts = calloc((size_t)count_of(p->tensor[id].dim) + 1, sizeof *to->parts);
        if (!to->parts)
            return false;
    }
    g->to = *to;
    fref_backward_out *r = &out->out;
    struct {
        double **want, **sigma, **bound, **nu, **neff;
    } part = { &r->dbias, &r->dbias_sigma, &r->dbias_bound, NULL, NULL };
    if (id == FACTS_TENSOR_DQ)
        part.want = &r->dq, part.sigma = &r->dq_sigma, part.bound = &r->dq_bound,
        part.nu = &r->dq_nu, part.neff = &r->dq_neff;
    else if (id == FACTS_TENSOR_DK)
        part.want = &r->dk, part.sigma = &r->dk_sigma, part.bound = &r->dk_bound,
        part.nu = &r->dk_nu, part.neff = &r->dk_neff;
    else if (id == FACTS_TENSOR_DV)
        part.want = &r->dv, part.sigma = &r->dv_sigma, part.bound = &r->dv_bound,
        part.nu = &r->dv_nu, part.neff = &r->dv_neff;
    else
        memcpy(r->dbias_dim, g->dim, sizeof r->dbias_dim);
    if (part.nu) {
        *part.nu = where.nu;
        *part.neff = where.neff;
    }
    *part.want = where.want;
    *part.sigma = where.sigma;
    *part.bound = where.bound;
    return true;
}

/* One element of the sum. */
static void sum_element(const facts_gradient *g, const facts_tensor *t, int64_t n)
{
    int64_t at[4], from[4], to[4];
    for (int64_t d = 3, rest = n; d >= 0; d--) {
        at[d] = rest % t->dim[d];
        rest /= t->dim[d];
        from[d] = g->dim[d] == t->dim[d] ? at[d] : 0;
        to[d] = g->dim[d] == t->dim[d] ? at[d] + 1 : g->dim[d];
    }
    double value = 0.0, size = 0.0, variance = 0.0, bound = 0.0, rounded = 0.0, steps = 0.0;
    const double u = facts_dtype_roundoff(t->dtype), /* and the smallest normal number */
        tiny = ldexp(1.0, 1 - facts_format_bias(facts_format_of(t->dtype)));
    for (int64_t h = from[1]; h < to[1]; h++)
        for (int64_t s = from[2]; s < to[2]; s++) {
            double over_batch = 0.0;
            for (int64_t b = from[0]; b < to[0]; b++) {
                int64_t k = ((b * g->dim[1] + h) * g->dim[2] + s) * g->dim[3] + at[3];
                over_batch += g->each.want[k];
                size += fabs(g->each.want[k]);
                variance += g->each.sigma[k] * g->each.sigma[k];
                bound += g->each.bound[k];
                steps += 2.0 * u *
                         fmax(fabs(g->each.want[k]), tiny); /* a step of x is 2 u |x| at most */
            }
            value += over_batch;
            if (g->id != FACTS_TENSOR_DBIAS)
                continue;
            /* cuDNN itself sums dBias over the batch, and casts its result before any further sum.
             */
            double between = u * fmax(fabs(over_batch), tiny);
            variance += between * between / 3.0;
            rounded += between;
        }
    double terms = (double)((to[0] - from[0]) * (to[1] - from[1]) * (to[2] - from[2])),
           root = sqrt(fmax(1.0, terms / 16.0));
    double cast = u * fmax(fabs(value), tiny), sum = E32 * root * size;
    bool exact = bound == 0.0;
    g->to.want[n] = value;
    g->to.sigma[n] = exact ? 0.0 : sqrt(variance + sum * sum + cast * cast / 3.0);
    g->to.parts[n] = steps;
    g->to.bound[n] = exact ? 0.0 : bound + rounded + sum * root + cast;
}

void facts_gradients_sum(facts_gradients *gradients, const facts_problem *p)
{
    for (int i = 0; i < gradients->count; i++) {
        const facts_gradient *g = &gradients->at[i];
        const facts_tensor *t = &p->tensor[g->id];
        if (!g->each.want)
            continue;
#pragma omp parallel for schedule(static)
        for (int64_t n = 0; n < count_of(t->dim); n++)
            sum_element(g, t, n);
    }
}

void facts_gradients_destroy(facts_gradients *gradients)
{
    for (int i = 0; i < gradients->count; i++) {
        free(gradients->at[i].each.want);
        free(gradients->at[i].each.sigma);
        free(gradients->at[i].each.bound);
    }
    *gradients = (facts_gradients){ 0 };
}
