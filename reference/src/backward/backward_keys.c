/* dK and dV, key by key.
 *
 * For each query head, with er^2 and ebig the weights of backward_rows.c (w2 and w1 there) and u, eta of the cast of dS or P:
 *
 *   dK   variance = scale^2 sum_i (er^2 + (g P)^2 eD^2) q^2 + FK^2 + ak^2          g: the slope of the score modification
 *        bound    = scale sum_i (ebig + |g| P eD) |q| + ak sqrt(s_q/16)
 *   dV   variance = sum_i (THIRD (u P)^2 + (es P)^2 + THIRD eta^2) dO^2 + FV^2 + av^2
 *        bound    = sum_i (u P + ew P + eta) |dO| + av sqrt(s_q/16)
 *   FK, FV: the terms that may be flushed
 *   ak, av = e32 sqrt(s_q/16) (scale sum_i |dS| |q|, or sum_i P |dO|)
 *
 * The heads of a group add up, FK and FV as they are, with their signs: all small terms may become 0. If their partial sums are
 * cast to the input type first, each head adds R = THIRD (u |x|)^2 and u |x|. The sum is cast once: THIRD (uo |x|)^2, uo |x|. Here D's error differs from row to row, so it adds as squares. So does
 * eo, if O is not the engine's. */
#include <errno.h>
#include <math.h>
#include <omp.h>
#include <string.h>

#include "backward/ref_backward.h"

#define KEYS FREF__TILE_KEYS /* of one task */
#define ROWS 64              /* rows whose weights are computed together */

/* The weights of one row's contribution to one gradient, [ROWS, KEYS]. `magnitude` NULL: the
 * value's own, P is not negative. */
typedef struct weights {
    double *magnitude, *variance, *bound, *flushed;
} weights;

/* P' and dS of rows against keys, [rows, TILE_KEYS]. */
typedef struct entries {
    double *p, *ds;
} entries;

typedef struct total {
    double *value, *variance, *bound, *flushed;
    bool read[KEYS]; /* by a live row of the group */
    fref__weight_sums
        weights[KEYS]; /* w = dS^2 |q|^2 or P^2 |dO|^2 of a row, summed over the group's heads */
    double *weight;    /* [rows, KEYS]: so far; where there is more than one head */
    double channels;   /* effective number, the least of the group's heads */
} total;

typedef struct scratch {
    double *p, *ds; /* [ROWS, KEYS], where the slab does not keep them */
    double *slope, *curvature, *slope_extra, *bias; /* one row of a tile; score.h */
    weights k, v;
    fref__sums sums_k, sums_v; /* of one query head, [KEYS, ld] */
    total total_k, total_v;    /* of the group, [KEYS, ld] */
} scratch;

static int64_t cut_scratch(scratch *t, double *base, const fref__backward *x)
{
    const fref__shape *s = x->shape;
    int64_t weights_of_rows = x->freedom ? s->rows.count * KEYS : 0;
    int64_t tile = ROWS * KEYS, wide_k = KEYS * s->ld_qk, wide_v = KEYS * s->ld_v;
    const fref__part parts[] = {
        { &t->p, tile },
        { &t->ds, tile },
        { &t->slope, KEYS },
        { &t->curvature, KEYS },
        { &t->slope_extra, KEYS },
        { &t->bias, KEYS },
        { &t->k.magnitude, tile },
        { &t->k.variance, tile },
        { &t->k.bound, tile },
        { &t->k.flushed, tile },
        { &t->v.variance, tile },
        { &t->v.bound, tile },
        { &t->v.flushed, tile },
        { &t->sums_k.value, wide_k },
        { &t->sums_k.magnitude, wide_k },
        { &t->sums_k.variance, wide_k },
        { &t->sums_k.bound, wide_k },
        { &t->sums_k.flushed, wide_k },
        { &t->sums_v.value, wide_v },
        { &t->sums_v.magnitude, wide_v },
        { &t->sums_v.variance, wide_v },
        { &t->sums_v.bound, wide_v },
        { &t->sums_v.flushed, wide_v },
        { &t->total_k.value, wide_k },
        { &t->total_k.variance, wide_k },
        { &t->total_k.bound, wide_k },
        { &t->total_k.flushed, wide_k },
        { &t->total_v.value, wide_v },
        { &t->total_v.variance, wide_v },
        { &t->total_v.bound, wide_v },
        { &t->total_v.flushed, wide_v },
        { &t->total_k.weight, s->group_k > 1 ? weights_of_rows : 0 },
        { &t->total_v.weight, s->group_v > 1 ? weights_of_rows : 0 },
    };
    return fref__cut(parts, sizeof parts / sizeof parts[0], base);
}

/* A group of one head needs no memory between heads. */
static void add_weight(total *group, bool shared, int64_t i, int64_t c, double w)
{
    if (shared)
        group->weight[i * KEYS + c] += w;
    else
        fref__add_weight(&group->weights[c], w);
}

typedef struct flushes {
    bool k, v;
} flushes;

/* One row against `keys`: the logits p become P', dO.v in ds becomes dS, from keys.first on. */
static flushes weigh_row(const fref__backward *x, scratch *t, int64_t r, const fref__head *head,
                         int64_t i, double *p, double *ds, fref__range keys)
{
    const fref__row_facts *f = &x->facts[head->slot * x->shape->rows.count + i];
    double scale = x->shape->problem->scale, u = x->of_p.unit_roundoff,
           u_ds = x->of_ds.unit_roundoff, eta = x->of_p.eta, floor = fref__floor_of_ds(x);
    double *const tiles[] = { t->k.magnitude, t->k.variance, t->k.bound,  t->k.flushed,
                              t->v.variance,  t->v.bound,    t->v.flushed };
    for (size_t n = 0; n < sizeof tiles / sizeof tiles[0]; n++)
        memset(tiles[n] + r * KEYS, 0, (size_t)(keys.last - keys.first) * sizeof(double));
    fref__range own = head->range[i];
    int64_t place = fref__place(&x->shape->rows, i);
    int64_t first = own.first > keys.first ? own.first : keys.first,
            last = own.last < keys.last ? own.last : keys.last;
    double variance_delta = f->edelta * f->edelta + f->eo * f->eo;
    double worst_delta = f->edelta + sqrt(3.0 * (double)x->shape->problem->dim_v) * f->eo;
    double variance_p = THIRD * u * u + f->es * f->es,
           variance_ds = THIRD * u_ds * u_ds + f->es * f->es;
    double variance_floor_k = THIRD * floor * floor, variance_floor_v = THIRD * eta * eta;
    flushes any = { false, false };
    const uint8_t *keep = fref__keep_of(x->shape->problem, head->b, head->h, place);
    if (first < last)
        fref__multiply(p + (first - keys.first), last - first, scale);
    if (x->scored && first < last) {
        const fref__score_arrays arrays = { t->slope, t->curvature, t->slope_extra, NULL, NULL };
        fref__score(
            p + (first - keys.first), &arrays, t->bias, x->shape->problem, x->rounding->eps_mod,
            &(fref__row_place){ head->b, head->h, place, &x->shape->keys, first }, last - first);
    }
    for (int64_t j = first; j < last; j++) {
        int64_t c = j - keys.first, at = r * KEYS + c;
        double score = p[c], dov = ds[c];
        p[c] = ds[c] = 0.0;
        if (score == -INFINITY)
            continue;
        double kept =
                   fref__kept(keep, x->shape->problem->keep_scale, fref__place(&x->shape->keys, j)),
               one = exp(score - head->stats[i]), pk = one * kept;
        double dx = one * (kept * dov - f->delta), slope = 1.0, e_slope = 0.0, worst_slope = 0.0;
        if (x->scored) {
            slope = t->slope[j - first];
            e_slope = fabs(t->curvature[j - first]) * f->es_raw + E32 * t->slope_extra[j - first];
            worst_slope =
                fabs(t->curvature[j - first]) * f->ew_raw + 2.0 * E32 * t->slope_extra[j - first];
        }
        double size = fabs(slope * dx), slope_p = fabs(slope) * one;
        bool underflows = one < FREF__P_FLUSHED;
        p[c] = pk;
        ds[c] = fref__clamped(slope * dx, x->most_ds);
        t->k.magnitude[at] = fabs(ds[c]);
        t->k.variance[at] = variance_ds * size * size +
                            (kept * f->ep * kept * f->ep + variance_delta) * slope_p * slope_p +
                            e_slope * dx * e_slope * dx + variance_floor_k;
        t->k.bound[at] = (u_ds + f->ew) * size + slope_p * (kept * f->ez + worst_delta) +
                         worst_slope * fabs(dx) + floor + (underflows ? size : 0.0);
        t->v.variance[at] = variance_p * pk * pk + (kept > 0.0 ? variance_floor_v : 0.0);
        t->v.bound[at] = (u + f->ew) * pk + (kept > 0.0 ? eta : 0.0);
        if (size != 0.0 && (underflows || fabs(scale) * size < 1.01 * x->of_ds.eta)) {
            t->k.flushed[at] = ds[c];
            any.k = true;
        }
        if (pk > 0.0 && pk < 1.01 * eta) {
            t->v.flushed[at] = pk;
            any.v = true;
        }
        t->total_k.read[c] = t->total_v.read[c] = true;
        if (!x->freedom)
            continue;
        add_weight(&t->total_k, x->shape->group_k > 1, i, c, size * f->norm_q * (size * f->norm_q));
        add_weight(&t->total_v, x->shape->group_v > 1, i, c, pk * f->norm_d_o * (pk * f->norm_d_o));
    }
    return any;
}

/* The same for a plain problem, from P and dS; only sigma and bound need weights. */
static flushes weigh_plain(const fref__backward *x, scratch *t, int64_t r, const fref__head *head,
                           int64_t i, const double *p, const double *ds, fref__range keys)
{
    const fref__shape *shape = x->shape;
    const fref__row_facts *f = &x->facts[head->slot * shape->rows.count + i];
    double *const tiles[] = { t->k.magnitude, t->k.variance, t->k.bound,  t->k.flushed,
                              t->v.variance,  t->v.bound,    t->v.flushed };
    fref__range own = head->range[i];
    int64_t first = own.first > keys.first ? own.first : keys.first,
            last = own.last < keys.last ? own.last : keys.last;
    for (size_t n = 0; n < sizeof tiles / sizeof tiles[0] && x->judged; n++)
        fref__clear_outside(tiles[n] + r * KEYS - keys.first, own, keys);
    if (first >= last)
        return (flushes){ false, false };
    int64_t c0 = first - keys.first, at = r * KEYS + c0;
    memset(t->total_k.read + c0, true, (size_t)(last - first));
    memset(t->total_v.read + c0, true, (size_t)(last - first));
    for (int64_t c = c0; c < last - keys.first && x->freedom; c++) {
        double of_k = ds[c] * f->norm_q, of_v = p[c] * f->norm_d_o;
        add_weight(&t->total_k, shape->group_k > 1, i, c, of_k * of_k);
        add_weight(&t->total_v, shape->group_v > 1, i, c, of_v * of_v);
    }
    if (!x->judged)
        return (flushes){ false, false };
    fref__entry_terms terms = fref__entry_terms_of(x, f);
    terms.of_p += f->edelta + sqrt(3.0 * (double)shape->problem->dim_v) * f->eo;
    terms.var_p += f->edelta * f->edelta + f->eo * f->eo;
    fref__entry_weights to = { .size = t->k.magnitude + at,
                               .bound = t->k.bound + at,
                               .variance = t->k.variance + at,
                               .lost = t->k.flushed + at,
                               .v_bound = t->v.bound + at,
                               .v_variance = t->v.variance + at,
                               .v_lost = t->v.flushed + at };
    fref__weigh(&to, p + c0, ds + c0, last - first, &terms);
    return (flushes){ to.any_lost, to.any_v_lost };
}

/* sums += (weights of `rows` rows)^T f(x); x: the first of these rows in panels of `all` rows. */
static void add(double *sums, const double *weight, const double *x, int64_t all, int64_t ld,
                int64_t rows, int64_t keys, fref__of of)
{
    fref__operands product = { .rows = keys,
                               .columns = ld,
                               .inner = rows,
                               .a = weight,
                               .a_row = 1,
                               .a_inner = KEYS,
                               .b = x,
                               .b_panel = all * FREF__LANES,
                               .b_inner = FREF__LANES,
                               .c = sums,
                               .c_row = ld };
    fref__add_product(&product, of);
}

/* `value`: P' or dS; `weights` NULL: no sigma or bound is wanted. */
static void add_all(const fref__sums *sums, const double *value, const weights *w, const double *x,
                    int64_t all, int64_t ld, int64_t rows, int64_t keys, bool flushed)
{
    add(sums->value, value, x, all, ld, rows, keys, FREF__OF_VALUE);
    if (!w)
        return;
    add(sums->magnitude, w->magnitude ? w->magnitude : value, x, all, ld, rows, keys,
        FREF__OF_MAGNITUDE);
    add(sums->variance, w->variance, x, all, ld, rows, keys, FREF__OF_SQUARE);
    add(sums->bound, w->bound, x, all, ld, rows, keys, FREF__OF_MAGNITUDE);
    if (flushed)
        add(sums->flushed, w->flushed, x, all, ld, rows, keys, FREF__OF_VALUE);
}

static void clear(const fref__sums *sums, int64_t count, bool judged)
{
    double *const parts[] = { sums->value, sums->magnitude, sums->variance, sums->bound,
                              sums->flushed };
    for (size_t n = 0; n < (judged ? sizeof parts / sizeof parts[0] : 1); n++)
        memset(parts[n], 0, (size_t)count * sizeof(double));
}

/* P' and dS of rows i .. i+n-1 against `keys`: the kept ones or, for a plain problem, computed
 * again. Otherwise logits and dO.v, from which weigh_row computes them. */
static entries entries_of(const fref__backward *x, const scratch *t, const fref__head *head,
                          int64_t i, int64_t n, fref__range keys)
{
    const fref__shape *s = x->shape;
    int64_t kept = fref__entry_at(s, i, keys.first), from = keys.first % FREF__LANES;
    if (head->p)
        return (entries){ head->p + kept, head->ds + kept };
    fref__dot_panels(t->p, KEYS, head->q + i * s->ld_qk, s->ld_qk, n, s->problem->dim_qk,
                     head->k_panels, keys);
    fref__dot_panels(t->ds, KEYS, head->d_o + i * s->ld_v, s->ld_v, n, s->problem->dim_v,
                     head->v_panels, keys);
    const entries made = { t->p + from, t->ds + from };
    for (int64_t r = 0; r < n && x->plain; r++) {
        fref__range own = head->range[i + r];
        int64_t first = own.first > keys.first ? own.first : keys.first,
                last = own.last < keys.last ? own.last : keys.last;
        double *p = made.p + r * KEYS - keys.first, *ds = made.ds + r * KEYS - keys.first;
        const fref__entry_row row = { s->problem->scale, head->stats[i + r],
                                      x->facts[head->slot * s->rows.count + i + r].delta };
        if (first < last)
            fref__entries(p + first, ds + first, p + first, last - first, &row);
    }
    return made;
}

/* All rows of one query head against `keys`: fills sums_k and sums_v. */
static void sum_head(const fref__backward *x, scratch *t, const fref__head *head, fref__range keys)
{
    const fref__shape *s = x->shape;
    int64_t count = keys.last - keys.first, all = s->rows.count;
    clear(&t->sums_k, count * s->ld_qk, x->judged);
    clear(&t->sums_v, count * s->ld_v, x->judged);
    fref__range rows = fref__rows_of_keys(head, all, keys);
    for (int64_t i = rows.first; i < rows.last; i += ROWS) {
        int64_t n = rows.last - i < ROWS ? rows.last - i : ROWS;
        const entries e = entries_of(x, t, head, i, n, keys);
        flushes any = { false, false };
        for (int64_t r = 0; r < n; r++) {
            double *p = e.p + r * KEYS, *ds = e.ds + r * KEYS;
            fref__clear_outside(p - keys.first, head->range[i + r], keys);
            fref__clear_outside(ds - keys.first, head->range[i + r], keys);
            flushes one = x->plain ? weigh_plain(x, t, r, head, i + r, p, ds, keys)
                                   : weigh_row(x, t, r, head, i + r, p, ds, keys);
            any.k |= one.k;
            any.v |= one.v;
        }
        const double *q = head->q_panels + i * FREF__LANES,
                     *d_o = head->d_o_panels + i * FREF__LANES;
        add_all(&t->sums_k, e.ds, x->judged ? &t->k : NULL, q, all, s->ld_qk, n, count, any.k);
        add_all(&t->sums_v, e.p, x->judged ? &t->v : NULL, d_o, all, s->ld_v, n, count, any.v);
    }
}

/* Adds one query head's sums, times `scale`, to the group's. */
static void finish_head(const fref__backward *x, const total *group, const fref__sums *sums,
                        double scale, bool partials_cast, int64_t count)
{
    double sqrt_n = sqrt(fref__at_least_1((double)x->shape->problem->rows / 16.0));
    for (int64_t at = 0; at < count && !x->judged; at++)
        group->value[at] += scale * sums->value[at];
    for (int64_t at = 0; at < count && x->judged; at++) {
        double value = scale * sums->value[at];
        double accumulated = E32 * sqrt_n * fabs(scale) * sums->magnitude[at];
        double cast = partials_cast ? x->in.unit_roundoff * fmax(fabs(value), x->in.tiny) : 0.0;
        group->value[at] += value;
        group->variance[at] +=
            scale * scale * sums->variance[at] + accumulated * accumulated + THIRD * cast * cast;
        group->flushed[at] += scale * sums->flushed[at];
        group->bound[at] += fabs(scale) * sums->bound[at] + accumulated * sqrt_n + cast;
    }
}

/* Where a finished gradient goes. */
typedef struct destination {
    const fref_answer *out;
    int64_t key; /* the first, counted over batches and heads */
    int64_t dim, ld;
    const fref__precision *type;
    fref__amax *amax; /* read if out->amax is wanted */
    double z;
} destination;

static void write_freedom(const destination *to, const total *group, int64_t j,
                          const fref__row_variance *all)
{
    bool live = group->read[j];
    double neff = fref__effective_number(&group->weights[j]);
    if (to->out->neff)
        to->out->neff[to->key + j] = live ? neff : 0.0;
    if (to->out->nu)
        to->out->nu[to->key + j] =
            live ? fref__degrees_of_freedom(all, neff, group->channels, to->dim) : 0.0;
}

static void write_keys(const destination *to, const total *group, int64_t keys)
{
    bool judged = fref_has_errors(to->out);
    for (int64_t j = 0; j < keys; j++) {
        bool live = group->read[j];
        fref__row_variance all = { 0 };
        for (int64_t c = 0; c < to->dim; c++) {
            int64_t from = j * to->ld + c, at = (to->key + j) * to->dim + c;
            double value = fref__clamped(group->value[from], to->type->max);
            if (to->out->value)
                to->out->value[at] = live ? value : 0.0;
            if (!judged)
                continue;
            double cast = to->type->unit_roundoff * fmax(fabs(value), to->type->tiny);
            double variance = group->variance[from] + group->flushed[from] * group->flushed[from];
            all.single += variance;
            all.cast += THIRD * cast * cast;
            if (to->out->sigma)
                to->out->sigma[at] = live ? sqrt(variance + THIRD * cast * cast) : 0.0;
            if (to->out->bound)
                to->out->bound[at] = live ? group->bound[from] + cast : 0.0;
            if (to->out->amax && live)
                fref__amax_take(to->amax, fabs(group->value[from]),
                                fmin(group->bound[from], to->z * sqrt(variance)));
        }
        write_freedom(to, group, j, &all);
    }
}

static void start_group(total *group, int64_t count, int64_t rows)
{
    memset(group->read, 0, sizeof group->read);
    memset(group->weights, 0, sizeof group->weights);
    if (rows > 0)
        memset(group->weight, 0, (size_t)(rows * KEYS) * sizeof(double));
    group->channels = INFINITY;
    memset(group->value, 0, (size_t)count * sizeof(double));
    memset(group->variance, 0, (size_t)count * sizeof(double));
    memset(group->bound, 0, (size_t)count * sizeof(double));
    memset(group->flushed, 0, (size_t)count * sizeof(double));
}

/* The weights of rows that were kept until the last head of the group. */
static void finish_weights(total *group, int64_t rows, int64_t keys)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < keys; c++)
            fref__add_weight(&group->weights[c], group->weight[i * KEYS + c]);
}

/* All query heads of a unit against `keys`, in order; a key or value head is written when its last
 * query head is done. */
static void keys_tile(const fref__backward *x, scratch *t, const fref__slab *slab, int64_t unit,
                      fref__range keys)
{
    const fref__shape *s = x->shape;
    const fref_problem *p = s->problem;
    const fref_backward_out *out = x->out;
    int64_t count = keys.last - keys.first;
    fref__amax *amax = x->amax + omp_get_thread_num() * FREF__AMAX_COUNT;
    int64_t weighed_k = x->freedom && s->group_k > 1 ? s->rows.count : 0,
            weighed_v = x->freedom && s->group_v > 1 ? s->rows.count : 0;
    for (int64_t h = 0; h < s->span; h++) {
        fref__head head = fref__head_of(slab, s, unit, h);
        if (h % s->group_k == 0)
            start_group(&t->total_k, count * s->ld_qk, weighed_k);
        if (h % s->group_v == 0)
            start_group(&t->total_v, count * s->ld_v, weighed_v);
        sum_head(x, t, &head, keys);
        bool cast = x->rounding->partials_cast;
        t->total_k.channels = fmin(t->total_k.channels, head.channels_q);
        t->total_v.channels = fmin(t->total_v.channels, head.channels_d_o);
        finish_head(x, &t->total_k, &t->sums_k, x->gamma_ds * p->scale, cast && s->group_k > 1,
                    count * s->ld_qk);
        finish_head(x, &t->total_v, &t->sums_v, x->gamma_p, cast && s->group_v > 1,
                    count * s->ld_v);
        if ((h + 1) % s->group_k == 0) {
            finish_weights(&t->total_k, weighed_k, count);
            const destination to = {
                .out = &out->dk,
                .key = (head.b * p->heads_k + head.h / s->group_k) * s->keys.count + keys.first,
                .dim = p->dim_qk,
                .ld = s->ld_qk,
                .type = &x->to_k,
                .amax = &amax[FREF__AMAX_DK],
                .z = x->z_dk
            };
            write_keys(&to, &t->total_k, count);
        }
        if ((h + 1) % s->group_v == 0) {
            finish_weights(&t->total_v, weighed_v, count);
            const destination to = {
                .out = &out->dv,
                .key = (head.b * p->heads_v + head.h / s->group_v) * s->keys.count + keys.first,
                .dim = p->dim_v,
                .ld = s->ld_v,
                .type = &x->to_v,
                .amax = &amax[FREF__AMAX_DV],
                .z = x->z_dv
            };
            write_keys(&to, &t->total_v, count);
        }
    }
}

/* D and Stats of a row may be NaN or infinite although all decoded values are finite, because O is
 * not kept. */
static bool facts_are_finite(const fref__backward *x, int64_t unit)
{
    int64_t rows = x->shape->span * x->shape->rows.count;
    for (int64_t i = 0; i < rows; i++)
        if (!isfinite(x->facts[unit * rows + i].delta))
            return false;
    return true;
}

int fref__backward_keys(const fref__backward *x, const fref__slab *slab)
{
    const fref__shape *s = x->shape;
    const fref_backward_out *out = x->out;
    if (!fref_is_wanted(&out->dk) && !fref_is_wanted(&out->dv))
        return 0;
    scratch none = { 0 };
    int64_t size = cut_scratch(&none, NULL, x);
    double *memory = fref__allocate(size * omp_get_max_threads());
    if (!memory)
        return ENOMEM;
    int64_t tiles = (s->keys.count + KEYS - 1) / KEYS;
#pragma omp parallel for schedule(dynamic)
    for (int64_t task = 0; task < slab->count * tiles; task++) {
        scratch mine = { 0 };
        cut_scratch(&mine, memory + omp_get_thread_num() * size, x);
        int64_t unit = task / tiles, first = task % tiles * KEYS;
        int64_t last = first + KEYS < s->keys.count ? first + KEYS : s->keys.count;
        int64_t step = fref__slab_is_finite(slab, s, unit) && facts_are_finite(x, unit) ? KEYS : 1;
        for (int64_t j = first; j < last; j += step)
            keys_tile(x, &mine, slab, unit, (fref__range){ j, last - j < step ? last : j + step });
    }
    fref__release(memory);
    return 0;
}
