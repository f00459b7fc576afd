#include "naive_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef long double real;

#define E32_LONG 0x1p-23L /* e32 of docs/numerics.md */

static inline real square(real x)
{
    return x * x;
}

static inline real at_least_one(real x)
{
    return x < 1 ? 1 : x;
}

static inline real or_one(double scale)
{
    return scale != 0.0 ? (real)scale : 1;
}

/* Half the smallest subnormal step of what is multiplied by `scale` before its cast. */
static inline real eta_of(fref_type type, real scale)
{
    real eta = type == FREF_F16    ? 0x1p-25L
               : type == FREF_E4M3 ? 0x1p-10L
               : type == FREF_E5M2 ? 0x1p-17L
                                   : 0x1p-126L;
    return fmaxl(eta / scale, 0x1p-126L);
}

static inline real tiny_of(fref_type type)
{
    return type == FREF_F16 || type == FREF_E5M2 ? 0x1p-14L
           : type == FREF_E4M3                   ? 0x1p-6L
                                                 : 0x1p-126L;
}

/* What the last cast may lose. */
static inline real cast_of(fref_type type, real x, real scale)
{
    return (real)unit_roundoff_of(type) * fmaxl(fabsl(x), tiny_of(type) / scale);
}

static inline real saturated(fref_type type, real x, real scale)
{
    real max = (type == FREF_E4M3 ? 448 : type == FREF_E5M2 ? 57344 : INFINITY) / scale;
    return fmaxl(-max, fminl(max, x));
}

/* A modification, a bias or alibi: then a key whose P is 0 in any arithmetic says nothing. */
static inline bool is_scored(const fref_problem *p)
{
    return p->modify || p->bias || p->alibi;
}

/* keep / (1-p): what dropout multiplies P_ij with. */
static inline real kept(const fref_problem *p, int64_t b, int64_t h, int64_t i, int64_t j)
{
    if (!p->keep)
        return 1;
    return p->keep[((b * p->heads_q + h) * p->rows + i) * p->keys + j] ? (real)p->keep_scale : 0;
}

/* What a modification and a bias leave to know of one score. */
typedef struct detail {
    real slope, curvature, slope_extra, extra, pull;
    real kept;
} detail;

/* One query row: its keys and what the formulas of the error model need. */
typedef struct row {
    const data *d;
    const fref_rounding *r;
    int64_t b, h, hk, hv, i;
    int64_t n; /* keys */
    real *s;   /* scores; NAN: masked */
    detail *details;
    real s_mx, qk, nck, max, sum, lse; /* max and sum with the sink */
    real raw_mx, slope_mx, extra_mx;   /* s_mx and these: of the keys within reach */
} row;

/* What a row's error model needs in the backward pass. */
typedef struct back {
    real stats, delta, es, ew, ep, ez, ed, eo, u, u_ds, eta_p, eta_ds, floor, es_raw, ew_raw;
} back;

/* One entry of P and dS. */
typedef struct entry {
    real p, pk, dx, size_x, gp; /* pk: P'; gp: |slope| p */
    real ep, ez;                /* of dP */
    real off, worst_off;        /* what the slope is off by, times dX */
    real ds, cast_ds, size, er2, ebig, lost_ds, lost_p;
} entry;

/* All rows of one query head, [row][key]. */
typedef struct head_entries {
    row *rows;
    back *backs;
    entry *entries;
} head_entries;

/* The cast of P may come before dropout's factor. */
static real most_kept(const fref_problem *p)
{
    return p->keep ? fmaxl(1, (real)p->keep_scale) : 1;
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

static real dot(const fref_tensor *x, int64_t hx, int64_t sx, const fref_tensor *y, int64_t hy,
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

static void row_start(row *x, const data *d, const fref_rounding *r, int64_t b, int64_t h,
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
        s[j] = score_of(x, j, (real)p->scale * dot(&d->q, h, i, &d->k, x->hk, j, b, p->dim_qk),
                        &details[j]);
        x->max = fmaxl(x->max, s[j]);
        if (isinf(s[j]))
            s[j] = NAN;
        longest = fmaxl(longest, sqrtl(dot(&d->k, x->hk, j, &d->k, x->hk, j, b, p->dim_qk)));
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
            sqrtl(dot(&d->q, h, i, &d->q, h, i, b, p->dim_qk)) * longest;
    x->nck = at_least_one((real)p->dim_qk / (real)r->chunk);
}

/* Of a row sum that one lane adds, in e32. A sink alone adds nothing. */
static real added_error(const row *x)
{
    const real nt = at_least_one(ceill((real)x->n / 64)), top = 1 / x->sum,
               walk = 6 * sqrtl(nt) - fabsl(12 - 24 * top);
    if (x->r->discrete && x->n > 0)
        return 64 * nt / 6 + 64 * nt * top / 3;
    return sqrtl(nt) / 2 + (walk > 0 ? walk : 0) +
           (x->n > 0 && top > 0.5L ? 32 * nt * top - 16 * nt : 0);
}

static void forward_element(const row *x, naive_answers *out, int64_t at, int64_t c)
{
    const naive_tensor *o = &out->o;
    const fref_scales *sc = &x->d->problem.scales;
    const fref_rounding *r = x->r;
    real nt = at_least_one(ceill((real)x->n / 64)), up = (real)unit_roundoff_of(r->in),
         ua = (real)r->ua;
    real es = ua * sqrtl(x->nck) * x->qk + E32_LONG * (x->s_mx + x->extra_mx + 2);
    real ew = (real)r->cw * ua * x->nck * x->qk + E32_LONG * (2 * x->s_mx + 2 * x->extra_mx + 4);
    const real gamma = or_one(sc->scale_s) * or_one(sc->descale_s), to = or_one(sc->scale_o);
    real eta = gamma * most_kept(&x->d->problem) *
               eta_of(r->in, or_one(sc->scale_s) * exp2l(-(real)r->thr)) /
               (r->p_normalised ? 1 : x->sum),
         el = E32_LONG * (added_error(x) + sqrtl(nt) / 2 + 3);
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
    const real bound = up * pva + eta * va1 + 2 * ew * pva + el * fabsl(value) +
                       a * (r->acc_pv > 0 ? 2 : sqrtl(nt));
    o->value[at] = clamped;
    o->size[at] = pva;
    o->sigma[at] = sqrtl(variance);
    o->bound[at] = bound + so;
}

static void forward_row(const row *x, naive_answers *out, int64_t row_index)
{
    const fref_problem *p = &x->d->problem;
    const fref_rounding *r = x->r;
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
    }
    real ua = (real)r->ua;
    out->lse.bound[row_index] =
        E32_LONG * (fabsl(x->max) + fabsl(x->lse) + pe + 4 + added_error(x)) +
        (real)r->cl * ua * (x->nck / 2 * ps + 1.5L * sqrtl(x->nck) * x->qk * sqrtl(pp)) +
        (real)r->eps_exp * fminl(1, 4 * sqrtl(pp) + 0.1L);
    out->max.bound[row_index] = E32_LONG * (2 * fabsl(x->max) + 2 * x->extra_mx + 2) +
                                2 * (real)r->cl * ua * sqrtl(x->nck) * x->qk;
    for (int64_t c = 0; x->n > 0 && c < p->dim_v; c++)
        forward_element(x, out, row_index * p->dim_v + c, c);
}

static back back_of(const row *x)
{
    const data *d = x->d;
    const fref_problem *p = &d->problem;
    const fref_rounding *r = x->r;
    back y = { .stats = (real)element(&d->stats, x->b, x->h, x->i, 0),
               .u = (real)unit_roundoff_of(r->in),
               .u_ds = (real)unit_roundoff_of(r->ds),
               .eta_p = most_kept(p) * eta_of(r->in, or_one(p->scales.scale_s)),
               .eta_ds = eta_of(r->ds, or_one(p->scales.scale_dp)) };
    real longest = 0, sizes = 0, squares = 0, ua = (real)r->ua,
         nv = at_least_one((real)p->dim_v / 16);
    for (int64_t j = 0; j < p->keys; j++)
        if (naive_keeps(p, x->b, x->i, j))
            longest = fmaxl(longest, sqrtl(dot(&d->v, x->hv, j, &d->v, x->hv, j, x->b, p->dim_v)));
    for (int64_t c = 0; c < p->dim_v; c++) {
        real term =
            (real)element(&d->d_o, x->b, x->h, x->i, c) * (real)element(&d->o, x->b, x->h, x->i, c);
        y.delta += term;
        sizes += fabsl(term);
        squares += term * term;
    }
    real dov = sqrtl(dot(&d->d_o, x->h, x->i, &d->d_o, x->h, x->i, x->b, p->dim_v)) * longest;
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

static entry entry_of(const row *x, const back *y, int64_t j)
{
    const data *d = x->d;
    real dp = dot(&d->d_o, x->h, x->i, &d->v, x->hv, j, x->b, d->problem.dim_v),
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

static void dq_element(const row *x, const back *y, const entry *e, naive_answers *out, int64_t at,
                       int64_t c)
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
    dq->sigma[at] = sqrtl(all) + y->eo * mean;
    bound = sc * bound + 2 * y->ed * mean + aq * root + sqrtl(3 * (real)p->dim_v) * y->eo * mean;
    dq->bound[at] = bound + cast;
}

static void add_sink(const row *x, const back *y, naive_answers *out)
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
    out->sigma[at] += sc * sc * a->variance + acc * acc + cast * cast / 3; /* still a variance */
    out->lost[at] += sc * a->lost;
    out->bound[at] += sc * a->bound + acc * root + cast;
}

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
    (of_k ? &out->dk : &out->dv)->live[at] |= live;
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
static void add_bias(const head_entries *e, naive_answers *out)
{
    const row *first = &e->rows[0];
    const fref_problem *p = &first->d->problem;
    const int64_t *dim = out->dbias_dim;
    real squares, casts = casts_before_last(p, dim, &squares);
    int exponent;
    if (p->scale != 0 && fabs(frexp(p->scale, &exponent)) != 0.5)
        casts += 1, squares += 1; /* attn_scale dX is what is cast first */
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

static void finish_bias(naive_answers *a, const fref_problem *p, const fref_rounding *r)
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

static void add_keys(const head_entries *e, naive_answers *out)
{
    const row *x = &e->rows[0];
    const fref_problem *p = &x->d->problem;
    for (int64_t j = 0; j < p->keys; j++) {
        for (int64_t c = 0; c < p->dim_qk; c++)
            key_element(e, out, j, c, true);
        for (int64_t c = 0; c < p->dim_v; c++)
            key_element(e, out, j, c, false);
    }
}

/* The last cast of a gradient that was summed over heads; a dead key has none. */
static void finish_keys(const naive_tensor *t, fref_type out, real scale)
{
    for (int64_t at = 0; at < t->count; at++) {
        if (t->live[at]) {
            t->value[at] = saturated(out, t->value[at], scale);
            const real cast = cast_of(out, t->value[at], scale);
            t->sigma[at] = sqrtl(t->sigma[at] + square(t->lost[at]) + cast * cast / 3);
            t->bound[at] += cast;
        } else {
            t->sigma[at] = t->bound[at] = 0;
        }
    }
}

static void one_head(naive_answers *out, const data *d, const fref_rounding *r, int64_t b,
                     int64_t h, real *logits, detail *details, head_entries *e)
{
    const fref_problem *p = &d->problem;
    for (int64_t i = 0; i < p->rows; i++) {
        int64_t index = (b * p->heads_q + h) * p->rows + i;
        row *x = &e->rows[i];
        row_start(x, d, r, b, h, i, logits + i * p->keys, details + i * p->keys);
        forward_row(x, out, index);
        const bool padded = i >= (p->len_q ? p->len_q[b] : p->rows);
        const bool dead = padded || element(&d->stats, b, h, i, 0) == -INFINITY;
        for (int64_t j = 0; dead && j < p->keys; j++)
            x->s[j] = NAN;
        if (dead)
            continue;
        e->backs[i] = back_of(x);
        add_sink(x, &e->backs[i], out);
        for (int64_t j = 0; j < p->keys; j++)
            if (!isnan(x->s[j]))
                e->entries[i * p->keys + j] = entry_of(x, &e->backs[i], j);
        for (int64_t c = 0; x->n > 0 && c < p->dim_qk; c++)
            dq_element(x, &e->backs[i], e->entries + i * p->keys, out, index * p->dim_qk + c, c);
    }
    add_bias(e, out);
    add_keys(e, out);
}

static void *zeros(int64_t count, size_t size)
{
    void *memory = calloc((size_t)count + 1, size);
    if (!memory)
        abort();
    return memory;
}

static void tensor_create(naive_tensor *t, int64_t count)
{
    t->count = count;
    t->value = zeros(5 * count, sizeof *t->value);
    t->size = t->value + count;
    t->sigma = t->size + count;
    t->bound = t->sigma + count;
    t->lost = t->bound + count;
    t->live = zeros(count, sizeof *t->live);
}

static void start(naive_answers *out, const data *d)
{
    const fref_problem *p = &d->problem;
    const int64_t rows = p->batch * p->heads_q * p->rows, *dim = d->dbias_dim,
                  bias = dim[0] * dim[1] * dim[2] * dim[3];
    tensor_create(&out->o, rows * p->dim_v);
    tensor_create(&out->lse, rows);
    tensor_create(&out->max, rows);
    tensor_create(&out->sum_exp, rows);
    tensor_create(&out->dq, rows * p->dim_qk);
    tensor_create(&out->dk, p->batch * p->heads_k * p->keys * p->dim_qk);
    tensor_create(&out->dv, p->batch * p->heads_v * p->keys * p->dim_v);
    tensor_create(&out->dsink, p->heads_q);
    tensor_create(&out->dbias, bias);
    memcpy(out->dbias_dim, dim, sizeof out->dbias_dim);
    out->dbias_magnitude = zeros(bias, sizeof *out->dbias_magnitude);
}

void naive_create(naive_answers *out, const data *d, const fref_rounding *r)
{
    const fref_problem *p = &d->problem;
    const int64_t n = p->rows * p->keys;
    *out = (naive_answers){ 0 };
    start(out, d);
    real *logits = zeros(n, sizeof *logits);
    detail *details = zeros(n, sizeof *details);
    head_entries e = { .rows = zeros(p->rows, sizeof *e.rows),
                       .backs = zeros(p->rows, sizeof *e.backs),
                       .entries = zeros(n, sizeof *e.entries) };
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t h = 0; h < p->heads_q; h++)
            one_head(out, d, r, b, h, logits, details, &e);
    finish_keys(&out->dk, r->out, or_one(p->scales.scale_dk));
    finish_keys(&out->dv, r->out, or_one(p->scales.scale_dv));
    finish_bias(out, p, r);
    free(details);
    free(logits);
    free(e.rows);
    free(e.backs);
    free(e.entries);
}

void naive_destroy(naive_answers *a)
{
    naive_tensor *const owned[] = { &a->o,  &a->lse, &a->max,   &a->sum_exp, &a->dq,
                                    &a->dk, &a->dv,  &a->dbias, &a->dsink };
    free(a->dbias_magnitude);
    for (size_t n = 0; n < sizeof owned / sizeof owned[0]; n++) {
        free(owned[n]->value);
        free(owned[n]->live);
    }
}
