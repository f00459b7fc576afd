#include "naive_parts.h"

static void forward_element(const row *x, naive_answers *out, naive_line *line, int64_t at,
                            int64_t c)
{
    const naive_tensor *o = &out->o;
    const fref_scales *sc = &x->d->problem.scales;
    const fref_rounding *r = x->r;
    real nt = at_least_one(ceill((real)x->n / 64)), up = (real)unit_roundoff_of(r->in),
         ua = (real)r->ua;
    real es = ua * sqrtl(x->nck) * x->qk + E32_LONG * (x->s_mx + x->extra_mx + 2);
    real ew = (real)r->cw * ua * x->nck * x->qk + E32_LONG * (2 * x->s_mx + 2 * x->extra_mx + 4);
    const real gamma = or_one(sc->scale_s) * or_one(sc->descale_s), to = or_one(sc->scale_o);
    real eta = gamma * eta_of(r->in, or_one(sc->scale_s) * exp2l(-(real)r->thr)) /
               (r->p_normalised ? 1 : x->sum),
         el = E32_LONG * (sqrtl(nt) + 3);
    const real run = 64 * nt < (real)r->acc_run ? 64 * nt : (real)r->acc_run;
    if (r->acc_pv > 0)
        el += (real)r->acc_pv * (run / 8 + sqrtl(run / 3));
    real value = 0, pva = 0, p2va2 = 0, va1 = 0, va2 = 0, flushed = 0;
    for (int64_t j = 0; j < x->d->problem.keys; j++) {
        real p = isnan(x->s[j]) ? 0 : expl(x->s[j] - x->max) / x->sum;
        bool never = is_scored(&x->d->problem) && (double)p == 0;
        if (isnan(x->s[j]) || never || x->details[j].kept == 0)
            continue;
        p *= x->details[j].kept * gamma;
        real v = (real)element(&x->d->v, x->b, x->hv, j, c), va = fabsl(v);
        value += p * v;
        pva += p * va;
        p2va2 += square(p * va);
        va1 += va;
        va2 += va * va;
        if (p < 1.01L * eta)
            flushed += p * v;
    }
    const real clamped = saturated(r->out, value, to);
    real so = cast_of(r->out, clamped, to),
         a = (r->acc_pv > 0 ? (real)r->acc_pv : E32_LONG * (sqrtl(nt) + 1)) * pva;
    real variance = (square(up) * p2va2 + square(eta) * va2 + square(so)) / 3 +
                    4 * square(es) * p2va2 + square(es / 4 * pva) + square(el * value) + square(a) +
                    square(flushed);
    line->single += (square(up) * p2va2 + square(eta) * va2) / 3 + 4 * square(es) * p2va2;
    line->cast += square(so) / 3;
    line->all += variance;
    const real exact = value, bound = up * pva + eta * va1 + 2 * ew * pva + el * fabsl(value) +
                                      a * (r->acc_pv > 0 ? 2 : sqrtl(nt));
    const fref_problem *problem = &x->d->problem;
    const real z = z_of(problem->batch * problem->heads_q * problem->rows * problem->dim_v);
    naive__take_amax(out->amax_o, exact, fminl(bound, z * sqrtl(variance - so * so / 3)));
    o->value[at] = clamped;
    o->size[at] = pva;
    o->sigma[at] = sqrtl(variance);
    o->bound[at] = bound + so;
}

void naive__forward_row(const row *x, naive_answers *out, int64_t row_index)
{
    const fref_problem *p = &x->d->problem;
    const fref_rounding *r = x->r;
    naive_line *line = &out->o.line[row_index];
    line->live = x->n > 0;
    real ps = 0, pp = 0, pe = 0;
    out->lse.value[row_index] = x->lse;
    out->max.value[row_index] = x->max;
    out->max.size[row_index] = out->lse.size[row_index] = x->qk;
    out->sum_exp.value[row_index] = x->sum;
    if (isinf(x->max))
        return;
    for (int64_t j = 0; j < p->keys; j++) {
        if (isnan(x->s[j]))
            continue;
        real P = expl(x->s[j] - x->lse);
        ps += P * x->details[j].pull;
        pe += P * x->details[j].extra;
        pp += P * P;
        const real es =
            (real)r->ua * sqrtl(x->nck) * x->qk + E32_LONG * (x->s_mx + x->extra_mx + 2);
        naive__take_amax(out->amax_s, P * x->details[j].kept,
                         P * x->details[j].kept * (0x1p-19L + (real)r->cl * es) + 0x1p-126L);
        naive__add_weight(line,
                          square(P * x->details[j].kept) *
                              naive__dot(&x->d->v, x->hv, j, &x->d->v, x->hv, j, x->b, p->dim_v));
    }
    real nt = at_least_one(ceill((real)x->n / 64)), ua = (real)r->ua;
    out->lse.bound[row_index] =
        E32_LONG * (fabsl(x->max) + fabsl(x->lse) + pe + 4 + sqrtl(nt) / 2) +
        (real)r->cl * ua * (x->nck / 2 * ps + 1.5L * sqrtl(x->nck) * x->qk * sqrtl(pp)) +
        (real)r->eps_exp * fminl(1, 4 * sqrtl(pp) + 0.1L);
    out->max.bound[row_index] = E32_LONG * (2 * fabsl(x->max) + 2 * x->extra_mx + 2) +
                                2 * (real)r->cl * ua * sqrtl(x->nck) * x->qk;
    for (int64_t c = 0; x->n > 0 && c < p->dim_v; c++)
        forward_element(x, out, line, row_index * p->dim_v + c, c);
}
