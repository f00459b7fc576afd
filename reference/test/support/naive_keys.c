#include "naive_parts.h"

/* One query head's part of dK or dV for (key j, channel c), summed over rows. */
typedef struct part {
    real value, size, variance, bound, lost, magnitude;
} part;

static void part_finish(const part *a, const naive_tensor *out, int64_t at, real scale,
                        bool cast_partial, const row *x)
{
    real root = sqrtl(at_least_one((real)x->d->problem.rows / 16)), sc = fabsl(scale),
         acc = E32_LONG * root * sc * a->magnitude;
    real cast = cast_partial ? cast_of(x->r->in, sc * a->value, 1) : 0;
    out->value[at] += scale * a->value;
    out->size[at] += sc * a->size;
    out->sigma[at] += sc * sc * a->variance + square(sc * a->lost) + acc * acc +
                      cast * cast / 3; /* still a variance */
    out->bound[at] += sc * a->bound + acc * root + cast;
}

static void key_element(const head_entries *e, naive_answers *out, int64_t j, int64_t c, bool of_k)
{
    const data *d = e->rows[0].d;
    const fref_problem *p = &d->problem;
    const row *x = &e->rows[0];
    part a = { 0 };
    for (int64_t i = 0; i < p->rows; i++) {
        if (isnan(e->rows[i].s[j]))
            continue;
        const entry *y = &e->entries[i * p->keys + j];
        const back *z = &e->backs[i];
        const bool kept = e->rows[i].details[j].kept > 0;
        real eo = z->eo * sqrtl(3 * (real)p->dim_v);
        real m = (real)element(of_k ? &d->q : &d->d_o, x->b, x->h, i, c),
             weight = of_k ? y->cast_ds : y->pk;
        a.value += weight * m;
        a.size += (of_k ? y->size : y->pk) * fabsl(m);
        a.magnitude += fabsl(weight * m);
        a.lost += (of_k ? y->lost_ds : y->lost_p) * m;
        a.variance += m * m *
                      (of_k ? y->er2 + square(y->gp) * (square(z->ed) + square(z->eo))
                            : square(z->u * y->pk) / 3 + square(z->es * y->pk) +
                                  (kept ? square(z->eta_p) / 3 : 0));
        a.bound += fabsl(m) * (of_k ? y->ebig + y->gp * (z->ed + eo)
                                    : (z->u + z->ew) * y->pk + (kept ? z->eta_p : 0));
    }
    const fref_scales *s = &p->scales;
    const real scale = of_k ? (real)p->scale * or_one(s->scale_dp) * or_one(s->descale_dp)
                            : or_one(s->scale_s) * or_one(s->descale_s);
    int64_t heads = of_k ? p->heads_k : p->heads_v, head = of_k ? x->hk : x->hv,
            dim = of_k ? p->dim_qk : p->dim_v;
    int64_t at = ((x->b * heads + head) * p->keys + j) * dim + c;
    part_finish(&a, of_k ? &out->dk : &out->dv, at, scale,
                p->heads_q > heads && x->r->partials_cast, x);
}

/* Casts of dBias before the last: of every part, and of what one dimension after the other leaves
 * of them. Of a partial sum of n parts the square is n times those of its parts at most. Answers
 * their number; *squares: what they are in sum, in squares of the parts. */
static real casts_before_last(const fref_problem *p, const int64_t dim[4], real *squares)
{
    const int64_t over_b = p->batch / dim[0], over_h = p->heads_q / dim[1],
                  over_rows = p->rows / dim[2];
    *squares =
        (real)((over_b > 1) + (over_h > 1 ? over_b : 0) + (over_rows > 1 ? over_b * over_h : 0));
    return (real)((over_b > 1) + (over_h > 1) + (over_rows > 1));
}

/* dBias of one head's rows: variance until finish_bias. */
void naive__add_bias(const head_entries *e, naive_answers *out)
{
    const row *first = &e->rows[0];
    const fref_problem *p = &first->d->problem;
    const int64_t *dim = out->dbias_dim;
    real squares, casts = casts_before_last(p, dim, &squares);
    int exponent;
    const bool scaled =
        casts == 0 && p->scale != 0 &&
        fabs(frexp(p->scale, &exponent)) != 0.5; /* attn_scale dX is what is cast first */
    if (scaled)
        casts = squares = 1;
    const bool cast_first = first->r->bias_parts_cast && casts > 0;
    const real by = p->scale != 0 && fabs(p->scale) < 1 ? (real)fabs(p->scale) : 1;
    for (int64_t i = 0; i < p->rows; i++)
        for (int64_t j = 0; j < p->keys; j++) {
            if (isnan(e->rows[i].s[j]))
                continue;
            const entry *y = &e->entries[i * p->keys + j];
            const back *z = &e->backs[i];
            int64_t b = dim[0] > 1 ? first->b : 0, h = dim[1] > 1 ? first->h : 0,
                    line = dim[2] > 1 ? i : 0;
            int64_t at = ((b * dim[1] + h) * dim[2] + line) * dim[3] + j;
            real worst_p = y->ez + z->ed + sqrtl(3 * (real)p->dim_v) * z->eo,
                 each = cast_first ? cast_of(first->r->bias, y->dx, by) : 0;
            out->dbias.value[at] += y->dx;
            out->dbias.size[at] += y->size_x;
            out->dbias_magnitude[at] += fabsl(y->dx);
            out->dbias.sigma[at] += square(z->es * y->dx) +
                                    square(y->p) * (square(y->ep) + square(z->ed) + square(z->eo)) +
                                    squares * each * each / 3;
            out->dbias.bound[at] += z->ew * fabsl(y->dx) + worst_p * y->p + casts * each +
                                    (y->p < exp2l(-125.9L) ? fabsl(y->dx) : 0);
        }
}

void naive__finish_bias(naive_answers *a, const fref_problem *p, const fref_rounding *r)
{
    const real by =
        r->bias_parts_cast && p->scale != 0 && fabs(p->scale) < 1 ? (real)fabs(p->scale) : 1;
    const int64_t *dim = a->dbias_dim;
    real n = (real)(p->batch * p->heads_q * p->rows) / (real)(dim[0] * dim[1] * dim[2]),
         root = sqrtl(at_least_one(n / 16));
    for (int64_t at = 0; at < a->dbias.count; at++) {
        if (a->dbias.bound[at] == 0)
            continue;
        real cast = cast_of(r->bias, a->dbias.value[at], by),
             sum = E32_LONG * root * a->dbias_magnitude[at];
        a->dbias.sigma[at] = sqrtl(a->dbias.sigma[at] + sum * sum + cast * cast / 3);
        a->dbias.bound[at] += sum * root + cast;
    }
}

static void add_weights(const head_entries *e, naive_answers *out, int64_t j, bool of_k,
                        real channels)
{
    const row *x = &e->rows[0];
    const data *d = x->d;
    const fref_problem *p = &d->problem;
    const fref_tensor *t = of_k ? &d->q : &d->d_o;
    const naive_tensor *to = of_k ? &out->dk : &out->dv;
    int64_t heads = of_k ? p->heads_k : p->heads_v, head = of_k ? x->hk : x->hv,
            dim = of_k ? p->dim_qk : p->dim_v;
    int64_t at = (x->b * heads + head) * p->keys + j;
    naive_line *line = &to->line[at];
    line->channels = line->channels == 0 || channels < line->channels ? channels : line->channels;
    for (int64_t i = 0; i < p->rows; i++) {
        if (isnan(e->rows[i].s[j]))
            continue;
        const entry *y = &e->entries[i * p->keys + j];
        line->live = true;
        to->weight[at * p->rows + i] +=
            square(of_k ? y->ds : y->pk) * naive__dot(t, x->h, i, t, x->h, i, x->b, dim);
    }
}

void naive__add_keys(const head_entries *e, naive_answers *out)
{
    const row *x = &e->rows[0];
    const fref_problem *p = &x->d->problem;
    const real of_q = naive__channels(&x->d->q, x->b, x->h, p->rows, p->dim_qk, e->live);
    const real of_d_o = naive__channels(&x->d->d_o, x->b, x->h, p->rows, p->dim_v, e->live);
    for (int64_t j = 0; j < p->keys; j++) {
        add_weights(e, out, j, true, of_q);
        add_weights(e, out, j, false, of_d_o);
        for (int64_t c = 0; c < p->dim_qk; c++)
            key_element(e, out, j, c, true);
        for (int64_t c = 0; c < p->dim_v; c++)
            key_element(e, out, j, c, false);
    }
}

/* The last cast of a gradient that was summed over heads; a dead key has none. */
void naive__finish_keys(const naive_tensor *t, const fref_problem *p, fref_type out, int64_t dim,
                        real scale, bool coherent, real amax[3])
{
    const real z = coherent ? INFINITY : z_of(t->count);
    for (int64_t n = 0; n < t->line_count; n++) {
        naive_line *line = &t->line[n];
        for (int64_t at = n * dim; at < (n + 1) * dim; at++) {
            if (!line->live)
                t->sigma[at] = t->bound[at] = 0;
            if (!line->live)
                continue;
            naive__take_amax(amax, t->value[at], fminl(t->bound[at], z * sqrtl(t->sigma[at])));
            t->value[at] = saturated(out, t->value[at], scale);
            real cast = cast_of(out, t->value[at], scale);
            line->single += t->sigma[at]; /* still a variance */
            line->cast += cast * cast / 3;
            t->sigma[at] = sqrtl(t->sigma[at] + cast * cast / 3);
            t->bound[at] += cast;
        }
        line->all = line->single + line->cast;
        for (int64_t i = 0; i < p->rows; i++)
            naive__add_weight(line, t->weight[n * p->rows + i]);
    }
}
