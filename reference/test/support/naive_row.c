#include "naive_parts.h"

bool naive_keeps(const fref_problem *p, int64_t b, int64_t i, int64_t j)
{
    int64_t len_q = p->len_q ? p->len_q[b] : p->rows, len_kv = p->len_kv ? p->len_kv[b] : p->keys;
    int64_t shift = p->bottom_right ? len_kv - len_q : 0;
    if (i >= len_q || j >= len_kv)
        return false;
    if (p->has_right && j > i + shift + p->right)
        return false;
    return !(p->has_left && j <= i + shift - p->left);
}

real naive__dot(const fref_tensor *x, int64_t hx, int64_t sx, const fref_tensor *y, int64_t hy,
                int64_t sy, int64_t b, int64_t dim)
{
    real sum = 0;
    for (int64_t c = 0; c < dim; c++)
        sum += (real)element(x, b, hx, sx, c) * (real)element(y, b, hy, sy, c);
    return sum;
}

/* x = modify(s) + bias. */
static real score_of(const row *x, int64_t j, real s, detail *out)
{
    const fref_problem *p = &x->d->problem;
    *out = (detail){ .slope = 1, .pull = fabsl(s), .kept = kept(p, x->b, x->h, x->i, j) };
    if (p->modify) {
        fref_modified m = p->modify(p->modify_owner, (double)s, (int64_t[]){ x->b, x->h, x->i, j });
        real ulps = (real)x->r->eps_mod / E32_LONG;
        out->slope = (real)m.slope;
        out->curvature = (real)m.curvature;
        out->pull = fabsl(out->slope * s);
        out->extra = out->pull + (real)m.rounded + ulps * (real)m.approximated;
        out->slope_extra = (real)m.slope_rounded + ulps * (real)m.slope_approximated;
        s = (real)m.value;
    }
    if (p->bias) {
        s += (real)element(p->bias, x->b, x->h, x->i, j);
        out->extra += isinf(s) ? 0 : fabsl(s);
    }
    if (p->alibi) {
        real added = (real)p->alibi[x->h] * (real)(j - x->i);
        s += added;
        out->extra += isinf(s) ? 0 : fabsl(added) + fabsl(s);
    }
    return s;
}

static void measure(row *x)
{
    const fref_problem *p = &x->d->problem;
    for (int64_t j = 0; j < p->keys; j++) {
        if (isnan(x->s[j]) || (is_scored(p) && x->s[j] < x->max - 200))
            continue;
        x->s_mx = fmaxl(x->s_mx, fabsl(x->s[j]));
        x->slope_mx = fmaxl(x->slope_mx, fabsl(x->details[j].slope));
        x->extra_mx = fmaxl(x->extra_mx, x->details[j].extra);
        if (x->details[j].slope != 0)
            x->raw_mx = fmaxl(x->raw_mx, x->details[j].pull / fabsl(x->details[j].slope));
    }
    if (p->sink && (real)p->sink[x->h] >= x->max - 200)
        x->s_mx = fmaxl(x->s_mx, fabsl((real)p->sink[x->h]));
}

void naive__row_start(row *x, const data *d, const fref_rounding *r, int64_t b, int64_t h,
                      int64_t i, real *s, detail *details)
{
    const fref_problem *p = &d->problem;
    *x = (row){
        .d = d, .r = r, .b = b, .h = h, .i = i, .s = s, .details = details, .max = -INFINITY
    };
    x->hk = h / (p->heads_q / p->heads_k);
    x->hv = h / (p->heads_q / p->heads_v);
    real longest = 0;
    for (int64_t j = 0; j < p->keys; j++) {
        s[j] = NAN;
        if (!naive_keeps(p, b, i, j))
            continue;
        x->n++;
        s[j] =
            score_of(x, j, (real)p->scale * naive__dot(&d->q, h, i, &d->k, x->hk, j, b, p->dim_qk),
                     &details[j]);
        x->max = fmaxl(x->max, s[j]);
        if (isinf(s[j]))
            s[j] = NAN;
        longest = fmaxl(longest, sqrtl(naive__dot(&d->k, x->hk, j, &d->k, x->hk, j, b, p->dim_qk)));
    }
    x->n = isinf(x->max) ? 0 : x->n;
    real sink = p->sink && i < (p->len_q ? p->len_q[b] : p->rows) ? (real)p->sink[h] : -INFINITY;
    x->max = fmaxl(x->max, sink);
    measure(x);
    x->sum = isinf(x->max) ? 0 : expl(sink - x->max);
    for (int64_t j = 0; j < p->keys; j++)
        if (!isnan(s[j]))
            x->sum += expl(s[j] - x->max);
    x->lse = isinf(x->max) ? -INFINITY : x->max + logl(x->sum);
    x->qk = x->slope_mx * fabsl((real)p->scale) *
            sqrtl(naive__dot(&d->q, h, i, &d->q, h, i, b, p->dim_qk)) * longest;
    x->nck = at_least_one((real)p->dim_qk / (real)r->chunk);
}
