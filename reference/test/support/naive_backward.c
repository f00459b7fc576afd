#include "naive_parts.h"

back naive__back_of(const row *x)
{
    const data *d = x->d;
    const fref_problem *p = &d->problem;
    const fref_rounding *r = x->r;
    back y = { .stats = (real)element(&d->stats, x->b, x->h, x->i, 0),
               .u = (real)unit_roundoff_of(r->in),
               .u_ds = (real)unit_roundoff_of(r->ds),
               .eta_p = eta_of(r->in, or_one(p->scales.scale_s)),
               .eta_ds = eta_of(r->ds, or_one(p->scales.scale_dp)) };
    real longest = 0, sizes = 0, squares = 0, ua = (real)r->ua,
         nv = at_least_one((real)p->dim_v / 16);
    for (int64_t j = 0; j < p->keys; j++)
        if (naive_keeps(p, x->b, x->i, j))
            longest =
                fmaxl(longest, sqrtl(naive__dot(&d->v, x->hv, j, &d->v, x->hv, j, x->b, p->dim_v)));
    for (int64_t c = 0; c < p->dim_v; c++) {
        real term =
            (real)element(&d->d_o, x->b, x->h, x->i, c) * (real)element(&d->o, x->b, x->h, x->i, c);
        y.delta += term;
        sizes += fabsl(term);
        squares += term * term;
    }
    real dov =
        sqrtl(naive__dot(&d->d_o, x->h, x->i, &d->d_o, x->h, x->i, x->b, p->dim_v)) * longest;
    y.es = ua * sqrtl(x->nck) * x->qk + E32_LONG * (x->s_mx + x->extra_mx + fabsl(y.stats) + 2);
    y.ew = (real)r->cw * ua * x->nck * x->qk +
           E32_LONG * (2 * x->s_mx + 2 * x->extra_mx + 2 * fabsl(y.stats) + 4);
    real raw_qk = x->slope_mx > 0 ? x->qk / x->slope_mx : 0;
    y.es_raw = ua * sqrtl(x->nck) * raw_qk + E32_LONG * x->raw_mx;
    y.ew_raw = (real)r->cw * ua * x->nck * raw_qk + E32_LONG * 2 * x->raw_mx;
    y.ep = ua * sqrtl(nv) * dov;
    y.ez = ua * nv * dov;
    y.ed = E32_LONG * sqrtl((real)p->dim_v) * sizes;
    y.eo = r->own_o ? 0 : y.u * sqrtl(squares / 3);
    y.floor = y.eta_ds / fminl(1, fabsl((real)p->scale));
    return y;
}

entry naive__entry_of(const row *x, const back *y, int64_t j)
{
    const data *d = x->d;
    real dp = naive__dot(&d->d_o, x->h, x->i, &d->v, x->hv, j, x->b, d->problem.dim_v),
         sc = fabsl((real)d->problem.scale);
    entry e = { .p = expl(x->s[j] - y->stats) };
    const detail *m = &x->details[j];
    dp *= m->kept;
    e.pk = e.p * m->kept;
    e.ep = y->ep * m->kept;
    e.ez = y->ez * m->kept;
    e.dx = e.p * (dp - y->delta);
    e.size_x = e.p * (fabsl(dp) + fabsl(y->delta));
    e.gp = fabsl(m->slope) * e.p;
    e.ds = m->slope * e.dx;
    e.cast_ds =
        sc > 0 ? saturated(x->r->ds, sc * e.ds, or_one(d->problem.scales.scale_dp)) / sc : e.ds;
    e.size = fabsl(m->slope) * e.size_x;
    e.off = e.dx * (fabsl(m->curvature) * y->es_raw + E32_LONG * m->slope_extra);
    e.worst_off = fabsl(e.dx) * (fabsl(m->curvature) * y->ew_raw + 2 * E32_LONG * m->slope_extra);
    bool tiny_p = e.p < exp2l(-125.9L);
    e.er2 = square(y->u_ds * e.ds) / 3 + square(y->es * e.ds) + square(e.gp * e.ep) +
            square(e.off) + square(y->floor) / 3;
    e.ebig = y->u_ds * fabsl(e.ds) + y->ew * fabsl(e.ds) + e.gp * e.ez + e.worst_off + y->floor +
             (tiny_p ? fabsl(e.ds) : 0);
    e.lost_ds = sc * fabsl(e.ds) < 1.01L * y->eta_ds || tiny_p ? e.ds : 0;
    e.lost_p = e.pk < 1.01L * y->eta_p ? e.pk : 0;
    return e;
}

static void dq_element(const row *x, const back *y, const entry *e, naive_answers *out,
                       naive_line *line, int64_t at, int64_t c)
{
    const fref_problem *p = &x->d->problem;
    const fref_scales *s = &p->scales;
    const naive_tensor *dq = &out->dq;
    const real gamma = or_one(s->scale_dp) * or_one(s->descale_dp), to = or_one(s->scale_dq);
    real sc = gamma * fabsl((real)p->scale), value = 0, size = 0, variance = 0, bound = 0, mean = 0,
         lost = 0, magnitude = 0;
    for (int64_t j = 0; j < p->keys; j++) {
        if (isnan(x->s[j]))
            continue;
        real k = (real)element(&x->d->k, x->b, x->hk, j, c);
        value += e[j].cast_ds * k;
        size += e[j].size * fabsl(k);
        variance += e[j].er2 * k * k;
        bound += e[j].ebig * fabsl(k);
        mean += x->details[j].slope * e[j].p * k;
        lost += e[j].lost_ds * k;
        magnitude += fabsl(e[j].cast_ds) * fabsl(k);
    }
    real root = sqrtl(at_least_one((real)x->n / 16)), aq = E32_LONG * root * sc * magnitude,
         cast = cast_of(x->r->out, saturated(x->r->out, sc * value, to), to);
    mean = sc * fabsl(mean);
    dq->value[at] = saturated(x->r->out, gamma * (real)p->scale * value, to);
    dq->size[at] = sc * size;
    real all = sc * sc * variance + square(sc * lost) + square(y->ed * mean) +
               square(y->es * sc * value) + aq * aq + cast * cast / 3;
    line->single += sc * sc * variance;
    line->cast += cast * cast / 3;
    line->all += all;
    dq->sigma[at] = sqrtl(all) + y->eo * mean;
    bound = sc * bound + 2 * y->ed * mean + aq * root + sqrtl(3 * (real)p->dim_v) * y->eo * mean;
    dq->bound[at] = bound + cast;
    const real z = x->r->coherent & FREF_GRADIENT_Q
                       ? INFINITY
                       : z_of(p->batch * p->heads_q * p->rows * p->dim_qk);
    naive__take_amax(out->amax_dq, sc * value,
                     fminl(bound, z * (sqrtl(all - cast * cast / 3) + y->eo * mean)));
}

static void take_amax_dp(const row *x, const back *y, const entry *e, naive_answers *out)
{
    const fref_problem *p = &x->d->problem;
    const real sc = fabsl((real)p->scale), z = z_of(p->batch * p->heads_q * p->rows * p->keys),
               root = sqrtl(3 * (real)p->dim_v);
    const real variance = square(y->es * e->ds) +
                          square(e->gp) * (square(e->ep) + square(y->ed) + square(y->eo)) +
                          square(e->off);
    const real bound = y->ew * fabsl(e->ds) + e->gp * (e->ez + y->ed + root * y->eo) + e->worst_off;
    const real flushed = e->gp < 0x1.125fbee250664p-126L ? fabsl(e->ds) : 0;
    naive__take_amax(out->amax_dp, sc * e->ds,
                     sc * (fminl(bound, z * sqrtl(variance)) + flushed) + 0x1p-126L);
}

void naive__dq_row(const row *x, const back *y, const entry *e, naive_answers *out,
                   int64_t row_index)
{
    const fref_problem *p = &x->d->problem;
    naive_line *line = &out->dq.line[row_index];
    line->live = true;
    line->nu = x->r->own_o ? 0 : 1;
    for (int64_t j = 0; j < p->keys; j++)
        if (!isnan(x->s[j])) {
            take_amax_dp(x, y, &e[j], out);
            naive__add_weight(line, square(e[j].ds) * naive__dot(&x->d->k, x->hk, j, &x->d->k,
                                                                 x->hk, j, x->b, p->dim_qk));
        }
    for (int64_t c = 0; c < p->dim_qk; c++)
        dq_element(x, y, e, out, line, row_index * p->dim_qk + c, c);
}

void naive__add_sink(const row *x, const back *y, naive_answers *out)
{
    const fref_problem *p = &x->d->problem;
    bool keeps = false;
    for (int64_t j = 0; j < p->keys; j++)
        keeps |= naive_keeps(p, x->b, x->i, j);
    if (!p->sink || !keeps)
        return;
    real sink = (real)p->sink[x->h], weight = expl(sink - y->stats);
    real off = weight > 0.0L ? 0x1p-20L + 2.0L * E32_LONG * (fabsl(sink) + fabsl(y->stats)) : 0.0L;
    out->dsink.value[x->h] -= weight * y->delta;
    out->dsink.size[x->h] += weight * y->ed / E32_LONG;
    out->dsink.bound[x->h] += weight * (off * fabsl(y->delta) + y->ed);
}
