#include "naive.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef long double real;

static const real e32 = 0x1p-23L;

static real square(real x)
{
    return x * x;
}

static real at_least_one(real x)
{
    return x < 1 ? 1 : x;
}

static real eta_of(fref_type type)
{
    return type == FREF_F16 ? 0x1p-25L : 0x1p-126L;
}

static real tiny_of(fref_type type)
{
    return type == FREF_F16 ? 0x1p-14L : 0x1p-126L;
}

/* What the last cast may lose. */
static real cast_of(fref_type type, real x)
{
    return (real)unit_roundoff_of(type) * fmaxl(fabsl(x), tiny_of(type));
}

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

/* What a modification and a bias leave to know of one score. */
typedef struct detail {
    real slope, curvature, slope_extra, extra, pull;
} detail;

/* One query row: its keys and what the formulas of the error model need. */
typedef struct row {
    const data *d;
    const fref_rounding *r;
    int64_t b, h, hk, hv, i;
    int64_t n; /* keys */
    real *s;   /* scores; NAN: masked */
    detail *details;
    real s_mx, qk, nck, max, sum, lse;
    real raw_mx, slope_mx, extra_mx; /* s_mx and these: of the keys within reach */
} row;

static real dot(const fref_tensor *x, int64_t hx, int64_t sx, const fref_tensor *y, int64_t hy, int64_t sy, int64_t b, int64_t dim)
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
    *out = (detail){ .slope = 1, .pull = fabsl(s) };
    if (p->modify) {
        fref_modified m = p->modify(p->modify_owner, (double)s, (int64_t[]){ x->b, x->h, x->i, j });
        real ulps = (real)x->r->eps_mod / e32;
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
    return s;
}

static void measure(row *x)
{
    const fref_problem *p = &x->d->problem;
    for (int64_t j = 0; j < p->keys; j++) {
        if (isnan(x->s[j]) || ((p->modify || p->bias) && x->s[j] < x->max - 200))
            continue;
        x->s_mx = fmaxl(x->s_mx, fabsl(x->s[j]));
        x->slope_mx = fmaxl(x->slope_mx, fabsl(x->details[j].slope));
        x->extra_mx = fmaxl(x->extra_mx, x->details[j].extra);
        if (x->details[j].slope != 0)
            x->raw_mx = fmaxl(x->raw_mx, x->details[j].pull / fabsl(x->details[j].slope));
    }
}

static void row_start(row *x, const data *d, const fref_rounding *r, int64_t b, int64_t h, int64_t i, real *s, detail *details)
{
    const fref_problem *p = &d->problem;
    *x = (row){ .d = d, .r = r, .b = b, .h = h, .i = i, .s = s, .details = details, .max = -INFINITY };
    x->hk = h / (p->heads_q / p->heads_k);
    x->hv = h / (p->heads_q / p->heads_v);
    real longest = 0;
    for (int64_t j = 0; j < p->keys; j++) {
        s[j] = NAN;
        if (!naive_keeps(p, b, i, j))
            continue;
        x->n++;
        s[j] = score_of(x, j, (real)p->scale * dot(&d->q, h, i, &d->k, x->hk, j, b, p->dim_qk), &details[j]);
        x->max = fmaxl(x->max, s[j]);
        if (isinf(s[j]))
            s[j] = NAN;
        longest = fmaxl(longest, sqrtl(dot(&d->k, x->hk, j, &d->k, x->hk, j, b, p->dim_qk)));
    }
    x->n = isinf(x->max) ? 0 : x->n;
    measure(x);
    for (int64_t j = 0; j < p->keys; j++)
        if (!isnan(s[j]))
            x->sum += expl(s[j] - x->max);
    x->lse = x->n ? x->max + logl(x->sum) : -INFINITY;
    x->qk = x->slope_mx * fabsl((real)p->scale) * sqrtl(dot(&d->q, h, i, &d->q, h, i, b, p->dim_qk)) * longest;
    x->nck = at_least_one((real)p->dim_qk / (real)r->chunk);
}

static void forward_element(const row *x, const naive_tensor *o, int64_t at, int64_t c)
{
    const fref_rounding *r = x->r;
    real nt = at_least_one(ceill((real)x->n / 64)), up = (real)unit_roundoff_of(r->in), ua = (real)r->ua;
    real es = ua * sqrtl(x->nck) * x->qk + e32 * (x->s_mx + x->extra_mx + 2);
    real ew = (real)r->cw * ua * x->nck * x->qk + e32 * (2 * x->s_mx + 2 * x->extra_mx + 4);
    real eta = eta_of(r->in) / x->sum, el = e32 * (sqrtl(nt) + 3);
    real value = 0, pva = 0, p2va2 = 0, va1 = 0, va2 = 0, flushed = 0;
    for (int64_t j = 0; j < x->d->problem.keys; j++) {
        real p = isnan(x->s[j]) ? 0 : expl(x->s[j] - x->max) / x->sum;
        bool never = (x->d->problem.modify || x->d->problem.bias) && (double)p == 0;
        if (isnan(x->s[j]) || never)
            continue;
        real v = (real)element(&x->d->v, x->b, x->hv, j, c), va = fabsl(v);
        value += p * v;
        pva += p * va;
        p2va2 += square(p * va);
        va1 += va;
        va2 += va * va;
        if (p < 1.01L * eta)
            flushed += p * v;
    }
    real so = cast_of(r->out, value), a = (r->acc_pv > 0 ? (real)r->acc_pv : e32 * (sqrtl(nt) + 1)) * pva;
    real variance = (square(up) * p2va2 + square(eta) * va2 + square(so)) / 3 + 4 * square(es) * p2va2 + square(es / 4 * pva) +
                    square(el * value) + square(a) + square(flushed);
    o->value[at] = value;
    o->size[at] = pva;
    o->sigma[at] = sqrtl(variance);
    o->bound[at] = up * pva + eta * va1 + so + 2 * ew * pva + el * fabsl(value) + a * (r->acc_pv > 0 ? 2 : sqrtl(nt));
}

static void forward_row(const row *x, naive_answers *out, int64_t row_index)
{
    const fref_problem *p = &x->d->problem;
    const fref_rounding *r = x->r;
    real ps = 0, pp = 0, pe = 0;
    out->lse.value[row_index] = x->lse;
    out->max.value[row_index] = x->max;
    out->sum_exp.value[row_index] = x->sum;
    if (x->n == 0)
        return;
    for (int64_t j = 0; j < p->keys; j++) {
        if (isnan(x->s[j]))
            continue;
        real P = expl(x->s[j] - x->lse);
        ps += P * x->details[j].pull;
        pe += P * x->details[j].extra;
        pp += P * P;
    }
    real nt = at_least_one(ceill((real)x->n / 64)), ua = (real)r->ua;
    out->lse.bound[row_index] = e32 * (fabsl(x->max) + fabsl(x->lse) + pe + 4 + sqrtl(nt) / 2) +
                                (real)r->cl * ua * (x->nck / 2 * ps + 1.5L * sqrtl(x->nck) * x->qk * sqrtl(pp)) +
                                (real)r->eps_exp * fminl(1, 4 * sqrtl(pp) + 0.1L);
    out->max.bound[row_index] = e32 * (2 * fabsl(x->max) + 2 * x->extra_mx + 2) + 2 * (real)r->cl * ua * sqrtl(x->nck) * x->qk;
    for (int64_t c = 0; c < p->dim_v; c++)
        forward_element(x, &out->o, row_index * p->dim_v + c, c);
}

/* What a row's error model needs in the backward pass. */
typedef struct back {
    real stats, delta, es, ew, ep, ez, ed, eo, u, eta, floor, es_raw, ew_raw;
} back;

static back back_of(const row *x)
{
    const data *d = x->d;
    const fref_problem *p = &d->problem;
    const fref_rounding *r = x->r;
    back y = { .stats = (real)element(&d->stats, x->b, x->h, x->i, 0), .u = (real)unit_roundoff_of(r->in), .eta = eta_of(r->in) };
    real longest = 0, sizes = 0, squares = 0, ua = (real)r->ua, nv = at_least_one((real)p->dim_v / 16);
    for (int64_t j = 0; j < p->keys; j++)
        if (naive_keeps(p, x->b, x->i, j))
            longest = fmaxl(longest, sqrtl(dot(&d->v, x->hv, j, &d->v, x->hv, j, x->b, p->dim_v)));
    for (int64_t c = 0; c < p->dim_v; c++) {
        real term = (real)element(&d->d_o, x->b, x->h, x->i, c) * (real)element(&d->o, x->b, x->h, x->i, c);
        y.delta += term;
        sizes += fabsl(term);
        squares += term * term;
    }
    real dov = sqrtl(dot(&d->d_o, x->h, x->i, &d->d_o, x->h, x->i, x->b, p->dim_v)) * longest;
    y.es = ua * sqrtl(x->nck) * x->qk + e32 * (x->s_mx + x->extra_mx + fabsl(y.stats) + 2);
    y.ew = (real)r->cw * ua * x->nck * x->qk + e32 * (2 * x->s_mx + 2 * x->extra_mx + 2 * fabsl(y.stats) + 4);
    real raw_qk = x->slope_mx > 0 ? x->qk / x->slope_mx : 0;
    y.es_raw = ua * sqrtl(x->nck) * raw_qk + e32 * x->raw_mx;
    y.ew_raw = (real)r->cw * ua * x->nck * raw_qk + e32 * 2 * x->raw_mx;
    y.ep = ua * sqrtl(nv) * dov;
    y.ez = ua * nv * dov;
    y.ed = e32 * sqrtl((real)p->dim_v) * sizes;
    y.eo = r->own_o ? 0 : y.u * sqrtl(squares / 3);
    y.floor = y.eta / fminl(1, fabsl((real)p->scale));
    return y;
}

/* One entry of P and dS. */
typedef struct entry {
    real p, dx, size_x, gp; /* gp: |slope| p */
    real ds, size, er2, ebig, lost_ds, lost_p;
} entry;

static entry entry_of(const row *x, const back *y, int64_t j)
{
    const data *d = x->d;
    real dp = dot(&d->d_o, x->h, x->i, &d->v, x->hv, j, x->b, d->problem.dim_v), sc = fabsl((real)d->problem.scale);
    entry e = { .p = expl(x->s[j] - y->stats) };
    const detail *m = &x->details[j];
    e.dx = e.p * (dp - y->delta);
    e.size_x = e.p * (fabsl(dp) + fabsl(y->delta));
    e.gp = fabsl(m->slope) * e.p;
    e.ds = m->slope * e.dx;
    e.size = fabsl(m->slope) * e.size_x;
    real off = e.dx * (fabsl(m->curvature) * y->es_raw + e32 * m->slope_extra);
    real worst_off = fabsl(e.dx) * (fabsl(m->curvature) * y->ew_raw + 2 * e32 * m->slope_extra);
    bool tiny_p = e.p < exp2l(-125.9L);
    e.er2 = square(y->u * e.ds) / 3 + square(y->es * e.ds) + square(e.gp * y->ep) + square(off) + square(y->floor) / 3;
    e.ebig = y->u * fabsl(e.ds) + y->ew * fabsl(e.ds) + e.gp * y->ez + worst_off + y->floor + (tiny_p ? fabsl(e.ds) : 0);
    e.lost_ds = sc * fabsl(e.ds) < 1.01L * y->eta || tiny_p ? e.ds : 0;
    e.lost_p = e.p < 1.01L * y->eta ? e.p : 0;
    return e;
}

static void dq_element(const row *x, const back *y, const entry *e, const naive_tensor *dq, int64_t at, int64_t c)
{
    const fref_problem *p = &x->d->problem;
    real sc = fabsl((real)p->scale), value = 0, size = 0, variance = 0, bound = 0, mean = 0, lost = 0, magnitude = 0;
    for (int64_t j = 0; j < p->keys; j++) {
        if (isnan(x->s[j]))
            continue;
        real k = (real)element(&x->d->k, x->b, x->hk, j, c);
        value += e[j].ds * k;
        size += e[j].size * fabsl(k);
        variance += e[j].er2 * k * k;
        bound += e[j].ebig * fabsl(k);
        mean += x->details[j].slope * e[j].p * k;
        lost += e[j].lost_ds * k;
        magnitude += fabsl(e[j].ds) * fabsl(k);
    }
    real root = sqrtl(at_least_one((real)x->n / 16)), aq = e32 * root * sc * magnitude, cast = cast_of(x->r->out, sc * value);
    mean = sc * fabsl(mean);
    dq->value[at] = (real)p->scale * value;
    dq->size[at] = sc * size;
    dq->sigma[at] = sqrtl(sc * sc * variance + square(sc * lost) + square(y->ed * mean) + square(y->es * sc * value) + aq * aq +
                          cast * cast / 3) +
                    y->eo * mean;
    dq->bound[at] = sc * bound + 2 * y->ed * mean + aq * root + cast + sqrtl(3 * (real)p->dim_v) * y->eo * mean;
}

/* One query head's part of dK or dV for (key j, channel c), summed over rows. */
typedef struct part {
    real value, size, variance, bound, lost, magnitude;
} part;

static void part_finish(const part *a, const naive_tensor *out, int64_t at, real scale, bool cast_partial, const row *x)
{
    real root = sqrtl(at_least_one((real)x->d->problem.rows / 16)), sc = fabsl(scale), acc = e32 * root * sc * a->magnitude;
    real cast = cast_partial ? cast_of(x->r->in, sc * a->value) : 0;
    out->value[at] += scale * a->value;
    out->size[at] += sc * a->size;
    out->sigma[at] += sc * sc * a->variance + square(sc * a->lost) + acc * acc + cast * cast / 3; /* still a variance */
    out->bound[at] += sc * a->bound + acc * root + cast;
}

/* All rows of one query head, [row][key]. */
typedef struct head_entries {
    row *rows;
    back *backs;
    entry *entries;
} head_entries;

static void key_element(const head_entries *e, naive_answers *out, int64_t j, int64_t c, bool of_k)
{
    const data *d = e->rows[0].d;
    const fref_problem *p = &d->problem;
    const row *x = &e->rows[0];
    part a = { 0 };
    bool live = false;
    for (int64_t i = 0; i < p->rows; i++) {
        if (isnan(e->rows[i].s[j]))
            continue;
        live = true;
        const entry *y = &e->entries[i * p->keys + j];
        const back *z = &e->backs[i];
        real eo = z->eo * sqrtl(3 * (real)p->dim_v);
        real m = (real)element(of_k ? &d->q : &d->d_o, x->b, x->h, i, c), weight = of_k ? y->ds : y->p;
        a.value += weight * m;
        a.size += (of_k ? y->size : y->p) * fabsl(m);
        a.magnitude += fabsl(weight * m);
        a.lost += (of_k ? y->lost_ds : y->lost_p) * m;
        a.variance += m * m *
                      (of_k ? y->er2 + square(y->gp) * (square(z->ed) + square(z->eo))
                            : square(z->u * y->p) / 3 + square(z->es * y->p) + square(z->eta) / 3);
        a.bound += fabsl(m) * (of_k ? y->ebig + y->gp * (z->ed + eo) : z->u * y->p + z->ew * y->p + z->eta);
    }
    if (!live)
        return;
    int64_t heads = of_k ? p->heads_k : p->heads_v, head = of_k ? x->hk : x->hv, dim = of_k ? p->dim_qk : p->dim_v;
    int64_t at = ((x->b * heads + head) * p->keys + j) * dim + c;
    part_finish(&a, of_k ? &out->dk : &out->dv, at, of_k ? (real)p->scale : 1, p->heads_q > heads && x->r->partials_cast, x);
}

/* dBias of one head's rows: variance until finish_bias. */
static void bias_elements(const head_entries *e, naive_answers *out)
{
    const row *first = &e->rows[0];
    const fref_problem *p = &first->d->problem;
    const int64_t *dim = out->dbias_dim;
    const bool summed = first->r->bias_parts_cast && dim[0] * dim[1] * dim[2] < p->batch * p->heads_q * p->rows;
    for (int64_t i = 0; i < p->rows; i++)
        for (int64_t j = 0; j < p->keys; j++) {
            if (isnan(e->rows[i].s[j]))
                continue;
            const entry *y = &e->entries[i * p->keys + j];
            const back *z = &e->backs[i];
            int64_t b = dim[0] > 1 ? first->b : 0, h = dim[1] > 1 ? first->h : 0, line = dim[2] > 1 ? i : 0;
            int64_t at = ((b * dim[1] + h) * dim[2] + line) * dim[3] + j;
            real worst_p = z->ez + z->ed + sqrtl(3 * (real)p->dim_v) * z->eo, each = summed ? cast_of(first->r->bias, y->dx) : 0;
            out->dbias.value[at] += y->dx;
            out->dbias.size[at] += y->size_x;
            out->dbias_magnitude[at] += fabsl(y->dx);
            out->dbias.sigma[at] += square(z->es * y->dx) + square(y->p) * (square(z->ep) + square(z->ed) + square(z->eo)) + each * each / 3;
            out->dbias.bound[at] += z->ew * fabsl(y->dx) + worst_p * y->p + each + (y->p < exp2l(-125.9L) ? fabsl(y->dx) : 0);
        }
}

static void finish_bias(naive_answers *a, const fref_problem *p, fref_type type)
{
    const int64_t *dim = a->dbias_dim;
    real n = (real)(p->batch * p->heads_q * p->rows) / (real)(dim[0] * dim[1] * dim[2]), root = sqrtl(at_least_one(n / 16));
    for (int64_t at = 0; at < a->dbias.count; at++) {
        if (a->dbias.bound[at] == 0)
            continue;
        real cast = cast_of(type, a->dbias.value[at]), sum = e32 * root * a->dbias_magnitude[at];
        a->dbias.sigma[at] = sqrtl(a->dbias.sigma[at] + sum * sum + cast * cast / 3);
        a->dbias.bound[at] += sum * root + cast;
    }
}

static void one_head(naive_answers *out, const data *d, const fref_rounding *r, int64_t b, int64_t h, real *logits, detail *details,
                     head_entries *e)
{
    const fref_problem *p = &d->problem;
    for (int64_t i = 0; i < p->rows; i++) {
        int64_t index = (b * p->heads_q + h) * p->rows + i;
        row *x = &e->rows[i];
        row_start(x, d, r, b, h, i, logits + i * p->keys, details + i * p->keys);
        forward_row(x, out, index);
        if (element(&d->stats, b, h, i, 0) == -INFINITY)
            for (int64_t j = 0; j < p->keys; j++)
                x->s[j] = NAN;
        e->backs[i] = back_of(x);
        for (int64_t j = 0; j < p->keys; j++)
            if (!isnan(x->s[j]))
                e->entries[i * p->keys + j] = entry_of(x, &e->backs[i], j);
        bool live = x->n > 0 && element(&d->stats, b, h, i, 0) != -INFINITY;
        for (int64_t c = 0; live && c < p->dim_qk; c++)
            dq_element(x, &e->backs[i], e->entries + i * p->keys, &out->dq, index * p->dim_qk + c, c);
    }
    bias_elements(e, out);
    for (int64_t j = 0; j < p->keys; j++) {
        for (int64_t c = 0; c < p->dim_qk; c++)
            key_element(e, out, j, c, true);
        for (int64_t c = 0; c < p->dim_v; c++)
            key_element(e, out, j, c, false);
    }
}

static void tensor_create(naive_tensor *t, int64_t count)
{
    t->count = count;
    t->value = calloc((size_t)(4 * count + 1), sizeof *t->value);
    if (!t->value)
        abort();
    t->size = t->value + count;
    t->sigma = t->size + count;
    t->bound = t->sigma + count;
}

/* The last cast of a gradient that was summed over heads; a dead key has none. */
static void finish_keys(const naive_tensor *t, fref_type out)
{
    for (int64_t at = 0; at < t->count; at++) {
        if (t->bound[at] == 0)
            continue;
        real cast = cast_of(out, t->value[at]);
        t->sigma[at] = sqrtl(t->sigma[at] + cast * cast / 3);
        t->bound[at] += cast;
    }
}

void naive_create(naive_answers *out, const data *d, const fref_rounding *r)
{
    const fref_problem *p = &d->problem;
    int64_t rows = p->batch * p->heads_q * p->rows;
    tensor_create(&out->o, rows * p->dim_v);
    tensor_create(&out->lse, rows);
    tensor_create(&out->max, rows);
    tensor_create(&out->sum_exp, rows);
    tensor_create(&out->dq, rows * p->dim_qk);
    tensor_create(&out->dk, p->batch * p->heads_k * p->keys * p->dim_qk);
    tensor_create(&out->dv, p->batch * p->heads_v * p->keys * p->dim_v);
    memcpy(out->dbias_dim, d->dbias_dim, sizeof out->dbias_dim);
    int64_t bias_count = d->dbias_dim[0] * d->dbias_dim[1] * d->dbias_dim[2] * d->dbias_dim[3];
    tensor_create(&out->dbias, bias_count);
    out->dbias_magnitude = calloc((size_t)bias_count + 1, sizeof *out->dbias_magnitude);
    size_t n = (size_t)(p->rows * p->keys);
    real *logits = malloc(n * sizeof *logits);
    detail *details = calloc(n, sizeof *details);
    head_entries e = { .rows = malloc((size_t)p->rows * sizeof *e.rows),
                       .backs = malloc((size_t)p->rows * sizeof *e.backs),
                       .entries = malloc(n * sizeof *e.entries) };
    if (!logits || !details || !out->dbias_magnitude || !e.rows || !e.backs || !e.entries)
        abort();
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t h = 0; h < p->heads_q; h++)
            one_head(out, d, r, b, h, logits, details, &e);
    finish_keys(&out->dk, r->out);
    finish_keys(&out->dv, r->out);
    finish_bias(out, p, r->bias);
    free(details);
    free(logits);
    free(e.rows);
    free(e.backs);
    free(e.entries);
}

void naive_destroy(naive_answers *a)
{
    naive_tensor *const owned[] = { &a->o, &a->lse, &a->max, &a->sum_exp, &a->dq, &a->dk, &a->dv, &a->dbias };
    free(a->dbias_magnitude);
    for (size_t n = 0; n < sizeof owned / sizeof owned[0]; n++)
        free(owned[n]->value);
}
