#include "eager.h"

#include <math.h>
#include <stdlib.h>

#include "flash/flash_head.h"

/* One row: Q scaled and cast first, then the product, bias, softmax and P V, each cast. */
static double row_error(const facts_scene *x, const facts_head *h, int64_t i, double *s)
{
    const fref_problem *p = &x->asked;
    facts_range keys = facts_head_keys(h, i);
    double max = -INFINITY, sum = 0.0, most = 0.0,
           descale_v = facts_or_1(x->in[FACTS_TENSOR_V].descale);
    facts_grid out = facts_grid_of(x->out[FACTS_SLOT_O].slot.type);
    for (int64_t j = keys.first; j < keys.last; j++) {
        double dot = 0.0;
        for (int64_t c = 0; c < p->dim_qk; c++)
            dot += facts_cast(h->in, h->q[i * h->ld_qk + c] * (double)h->scale) *
                   h->kt[c * h->ld_key + j];
        s[j] = facts_cast(h->in, dot);
        if (p->bias)
            s[j] = facts_cast(h->in, s[j] + (double)facts_head_score(h, i, j, 0.0F, NULL));
        max = fmax(max, s[j]);
    }
    for (int64_t j = keys.first; j < keys.last; j++)
        sum += s[j] = exp(s[j] - max);
    if (p->sink)
        sum += exp((double)p->sink[h->h] - max);
    for (int64_t j = keys.first; j < keys.last; j++)
        s[j] = facts_cast(h->in, facts_cast(h->in, s[j] / sum) * (double)facts_head_keep(h, i, j));
    const double *want =
        x->out[FACTS_SLOT_O].answer.want + ((h->b * p->heads_q + h->h) * p->rows + i) * p->dim_v;
    double gamma = facts_or_1(p->scales.scale_s) * facts_or_1(p->scales.descale_s);
    for (int64_t c = 0; c < p->dim_v; c++) {
        double o = 0.0;
        for (int64_t j = keys.first; j < keys.last; j++)
            o += s[j] * h->v[j * h->ld_v + c];
        most = fmax(most, fabs(facts_cast(out, o * gamma * descale_v) - want[c]));
    }
    return most;
}

bool facts_eager_error(double *out, const facts_scene *x)
{
    const facts_kernel right = { .tile = 64 };
    const facts_launch launch = facts_scene_launch(x);
    double *s = malloc((size_t)(x->asked.keys + 64) * sizeof *s);
    bool ok = s != NULL;
    *out = 0.0;
    for (int64_t b = 0; ok && b < x->asked.batch; b++)
        for (int64_t h = 0; ok && h < x->asked.heads_q; h++) {
            facts_head head;
            ok = facts_head_create(&head, &right, &launch, b, h);
            for (int64_t i = 0; ok && i < head.len_q; i++)
                *out = fmax(*out, row_error(x, &head, i, s));
            facts_head_destroy(&head);
        }
    free(s);
    return ok;
}
