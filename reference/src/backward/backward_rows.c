/* dQ, row by row, and the facts of each row.
 *
 * u, eta: of the cast of dS; uo: of dQ; nck = max(1, d/chunk), nv = max(1, dv/16), n keys in the row; f = min(1, |scale|).
 *
 *   es = m ua sqrt(nck) qk + e32 (|x|_mx + X + |Stats| + 2)
 *   ew = m cw ua nck qk + e32 (2 |x|_mx + 2 X + 2 |Stats| + 4)       m, X as in ref_forward.c
 *   ep = ua sqrt(nv) |dO_i| max_j |v_j|                    ez = ua nv |dO_i| max_j |v_j|
 *   eD = e32 sqrt(dv) sum_c |dO O|: the same for every key, so it enters along sum_j P k, not as a sum of squares
 *
 *   sigma^2 = scale^2 sum_j w2 k^2 + FQ^2 + (scale eD |sum_j P k|)^2 + (es dQ)^2 + aq^2 + THIRD (uo |dQ|)^2
 *       w2 = THIRD (u dS)^2 + (es dS)^2 + (g P ep)^2 + (g' dX)^2 + THIRD (eta/f)^2
 *   bound = scale (sum_j w1 |k| + 2 eD |sum_j P k|) + aq sqrt(n/16) + uo |dQ|
 *       w1 = u|dS| + ew|dS| + |g| P ez + 2 g' |dX| + eta/f + |dS| where P may be flushed
 *   dX = P (dP - D), dS = g dX: g the slope of the modification (1 without), taken at a score that is off by es_raw:
 *   g' = |curvature| es_raw + e32 slope_extra. For P read |g| P in sum_j P k.
 *   FQ = scale sum dS k over what may be flushed           aq = e32 sqrt(n/16) scale sum_j |dS| |k|
 *
 * When the engine's own O is not at hand its D differs from ours by the rounding of O: eo = uo sqrt(sum_c dO^2 O^2 / 3), of O's
 * type. It enters dQ along the mean key, where the true dQ has nothing, so it cannot be left out.
 */
#include <errno.h>
#include <math.h>
#include <omp.h>
#include <string.h>

#include "backward/ref_backward.h"

typedef struct scratch {
    double *s, *o; /* scores of whole rows, key j in column j; one row of O */
    double *slope, *curvature, *slope_extra; /* as s; score.h */
    double *extra, *pull, *bias;             /* one row */
    double *p, *ds;                  /* [TILE_ROWS, TILE_KEYS], where the slab does not keep them */
    double *ds_abs, *w1, *w2, *lost; /* [TILE_ROWS, TILE_KEYS] */
    double *mean_key;                /* sum_j P k */
    fref__sums sums;                 /* [TILE_ROWS, ld_qk] */
    fref__weight_sums *keys;         /* [TILE_ROWS]: w = dS^2 |k|^2 */
} scratch;

static int64_t cut_scratch(scratch *t, double *base, const fref__shape *s)
{
    int64_t tile = FREF__TILE_ROWS * FREF__TILE_KEYS, wide = FREF__TILE_ROWS * s->ld_qk;
    double *keys;
    int64_t row = fref__is_scored(s->problem) ? fref__ld_entries(s) : 0;
    const fref__part parts[] = {
        { &t->s, FREF__TILE_ROWS * fref__ld_entries(s) },
        { &t->o, s->ld_v },
        { &t->slope, FREF__TILE_ROWS * row },
        { &t->curvature, FREF__TILE_ROWS * row },
        { &t->slope_extra, FREF__TILE_ROWS * row },
        { &t->extra, row },
        { &t->pull, row },
        { &t->bias, row },
        { &t->p, tile },
        { &t->ds, tile },
        { &t->ds_abs, tile },
        { &t->w1, tile },
        { &t->w2, tile },
        { &t->lost, tile },
        { &t->mean_key, wide },
        { &t->sums.value, wide },
        { &t->sums.magnitude, wide },
        { &t->sums.variance, wide },
        { &t->sums.bound, wide },
        { &t->sums.flushed, wide },
        { &keys, 2 * FREF__TILE_ROWS },
    };
    int64_t size = fref__cut(parts, sizeof parts / sizeof parts[0], base);
    t->keys = (fref__weight_sums *)keys;
    return size;
}

fref__entry_terms fref__entry_terms_of(const fref__backward *x, const fref__row_facts *f)
{
    double u = x->of_p.unit_roundoff, u_ds = x->of_ds.unit_roundoff, floor = fref__floor_of_ds(x),
           of_score = f->es * f->es;
    return (fref__entry_terms){
        .relative = u_ds + f->ew,
        .of_p = f->ez,
        .floor = floor,
        .var_ds = THIRD * u_ds * u_ds + of_score,
        .var_p = f->ep * f->ep,
        .var_floor = THIRD * floor * floor,
        .limit = 1.01 * x->of_ds.eta / fabs(x->shape->problem->scale),
        .v_relative = u + f->ew,
        .v_floor = x->of_p.eta,
        .v_var = THIRD * u * u + of_score,
        .v_var_floor = THIRD * x->of_p.eta * x->of_p.eta,
        .v_limit = 1.01 * x->of_p.eta,
    };
}

/* `s` are the row's logits, s[j] for key j; they become scores. `r` is the row in the tile. */
static fref__score_row score_row(const fref__backward *x, const scratch *t, const fref__head *head,
                                 int64_t i, int64_t r, double *s)
{
    fref__range keys = head->range[i];
    int64_t ld = fref__ld_entries(x->shape), n = keys.last - keys.first,
            place = fref__place(&x->shape->rows, i);
    const fref_problem *p = x->shape->problem;
    double sink = fref__sink_of(p, head->b, head->h, place);
    if (!x->scored)
        return fref__score_plain(s + keys.first, n, p->scale, sink);
    const fref__score_arrays arrays = { t->slope + r * ld, t->curvature + r * ld,
                                        t->slope_extra + r * ld, t->extra, t->pull };
    fref__multiply(s + keys.first, n, p->scale);
    fref__score(s + keys.first, &arrays, t->bias, p, x->rounding->eps_mod,
                &(fref__row_place){ head->b, head->h, place, &x->shape->keys, keys.first }, n);
    return fref__score_measure(s + keys.first, &arrays, n, sink);
}

static fref__row_facts facts_of_row(const fref__backward *x, const fref__head *head, int64_t i,
                                    const fref__score_row *scores, double *o)
{
    const fref_problem *p = x->shape->problem;
    const fref_rounding *r = x->rounding;
    int64_t place = fref__place(&x->shape->rows, i);
    fref__range keys;
    fref_keys_of_row(p, head->b, place, &keys.first, &keys.last);
    double longest_k = fref__longest(&head->norms_k, keys),
           longest_v = fref__longest(&head->norms_v, keys);
    const double *q = head->q + i * x->shape->ld_qk, *d_o = head->d_o + i * x->shape->ld_v;
    double norm_q = 0.0, norm_d_o = 0.0, delta = 0.0, delta_abs = 0.0, delta_squares = 0.0;
    fref__read_row(o, x->inputs->o, head->b, head->h, place, p->dim_v);
    for (int64_t c = 0; c < p->dim_qk; c++)
        norm_q += q[c] * q[c];
    for (int64_t c = 0; c < p->dim_v; c++) {
        double term = d_o[c] * o[c];
        norm_d_o += d_o[c] * d_o[c];
        delta += term;
        delta_abs += fabs(term);
        delta_squares += term * term;
    }
    double nck = fref__at_least_1((double)p->dim_qk / r->chunk),
           nv = fref__at_least_1((double)p->dim_v / 16.0);
    double qk = fabs(p->scale) * sqrt(norm_q) * longest_k, dov = sqrt(norm_d_o) * longest_v,
           stats = fabs(head->stats[i]);
    double edelta = E32 * sqrt((double)p->dim_v) * delta_abs;
    double eo = r->own_o ? 0.0 : x->in.unit_roundoff * sqrt(delta_squares * THIRD);
    return (fref__row_facts){
        .delta = delta,
        .es = scores->slope * r->ua * sqrt(nck) * qk +
              E32 * (scores->largest_x + scores->extra + stats + 2.0),
        .ew = scores->slope * r->cw * r->ua * nck * qk +
              E32 * (2.0 * scores->largest_x + 2.0 * scores->extra + 2.0 * stats + 4.0),
        .es_raw = r->ua * sqrt(nck) * qk + E32 * scores->largest_s,
        .ew_raw = r->cw * r->ua * nck * qk + E32 * 2.0 * scores->largest_s,
        .ep = r->ua * sqrt(nv) * dov,
        .ez = r->ua * nv * dov,
        .edelta = edelta,
        .eo = eo,
        .norm_q = sqrt(norm_q),
        .norm_d_o = sqrt(norm_d_o),
        .dead = scores->dead,
    };
}

/* Of scale dS, before its cast. */
static void take_amax_dp(const fref__backward *x, const fref__row_facts *f, double slope_p,
                         double kept, double off, double worst_off, double ds)
{
    const fref_problem *p = x->shape->problem;
    double size = fabs(ds), of_dp = kept * f->ep * slope_p, of_delta = f->edelta * slope_p,
           of_o = f->eo * slope_p;
    double sigma = sqrt(f->es * size * f->es * size + of_dp * of_dp + off * off +
                        of_delta * of_delta + of_o * of_o);
    double bound = f->ew * size + kept * f->ez * slope_p + fabs(worst_off) + of_delta +
                   sqrt(3.0 * (double)p->dim_v) * of_o;
    double scale = fabs(p->scale), flushed = slope_p < FREF__P_FLUSHED ? size : 0.0;
    fref__amax_take(&x->amax[omp_get_thread_num() * FREF__AMAX_COUNT + FREF__AMAX_DP], scale * size,
                    scale * (fmin(bound, x->z_dp * sigma) + flushed) + 0x1p-126);
}

/* Keys j0 .. j1-1 of a row. p[j] becomes slope P, from the score s[j]; ds[j] becomes dS, from dO.v.
 * Their weights are written to the row's tiles; zeros for masked keys. `slopes` start at the row's
 * first key. True: some of dS may be flushed. */
static bool weigh_row(const fref__backward *x, const scratch *t, int64_t row,
                      const fref__row_facts *f, double stats, const double *s, double *p,
                      double *ds, const double *norm_k, const uint8_t *keep,
                      const fref__score_arrays *slopes, fref__range keys, int64_t j0, int64_t j1)
{
    double scale = fabs(x->shape->problem->scale), u = x->of_ds.unit_roundoff, eta = x->of_ds.eta,
           floor = fref__floor_of_ds(x);
    double *const tiles[] = { t->ds_abs, t->w1, t->w2, t->lost };
    for (size_t n = 0; n < sizeof tiles / sizeof tiles[0]; n++)
        memset(tiles[n] + row * FREF__TILE_KEYS, 0, (size_t)(j1 - j0) * sizeof(double));
    memset(p + j0, 0, (size_t)(j1 - j0) * sizeof *p);
    fref__clear_outside(ds, keys, (fref__range){ j0, j1 });
    int64_t first = keys.first > j0 ? keys.first : j0, last = keys.last < j1 ? keys.last : j1;
    double variance_ds = THIRD * u * u + f->es * f->es, variance_p = f->ep * f->ep,
           variance_floor = THIRD * floor * floor;
    bool any = false;
    for (int64_t j = first; j < last; j++) {
        int64_t at = row * FREF__TILE_KEYS + j - j0;
        double kept = fref__kept(keep, x->shape->problem->keep_scale, j), dov = ds[j];
        ds[j] = 0.0;
        if (s[j] == -INFINITY)
            continue;
        double one = exp(s[j] - stats), dx = one * (kept * dov - f->delta);
        double slope = 1.0, e_slope = 0.0, worst_slope = 0.0;
        if (slopes->slope) {
            int64_t n = j - keys.first;
            slope = slopes->slope[n];
            e_slope = fabs(slopes->curvature[n]) * f->es_raw + E32 * slopes->slope_extra[n];
            worst_slope =
                fabs(slopes->curvature[n]) * f->ew_raw + 2.0 * E32 * slopes->slope_extra[n];
        }
        double size = fabs(slope * dx), slope_p = fabs(slope) * one;
        bool underflows = one < FREF__P_FLUSHED;
        p[j] = slope * one;
        ds[j] = slope * dx;
        if (x->out->amax_dp)
            take_amax_dp(x, f, slope_p, kept, e_slope * dx, worst_slope * dx, ds[j]);
        ds[j] = fref__clamped(ds[j], x->most_ds);
        t->ds_abs[at] = fabs(ds[j]);
        fref__add_weight(&t->keys[row], size * norm_k[j] * (size * norm_k[j]));
        t->w1[at] = (u + f->ew) * size + slope_p * kept * f->ez + worst_slope * fabs(dx) + floor +
                    (underflows ? size : 0.0);
        t->w2[at] = variance_ds * size * size + variance_p * (kept * slope_p * (kept * slope_p)) +
                    e_slope * dx * e_slope * dx + variance_floor;
        if (size != 0.0 && (underflows || scale * size < 1.01 * eta)) {
            t->lost[at] = ds[j];
            any = true;
        }
    }
    return any;
}

/* The same for a plain problem; only sigma and bound need weights. */
static bool weigh_plain(const fref__backward *x, const scratch *t, int64_t row,
                        const fref__row_facts *f, double stats, const double *s, double *p,
                        double *ds, const double *norm_k, fref__range own, int64_t j0, int64_t j1,
                        bool judged)
{
    const fref__entry_row entries = { x->measured ? 1.0 : x->shape->problem->scale, stats,
                                      f->delta }; /* measured: already scaled */
    int64_t first = own.first > j0 ? own.first : j0, last = own.last < j1 ? own.last : j1,
            at = row * FREF__TILE_KEYS;
    double *const tiles[] = { t->ds_abs, t->w1, t->w2, t->lost };
    for (size_t n = 0; n < 4 && judged; n++)
        fref__clear_outside(tiles[n] + at - j0, own, (fref__range){ j0, j1 });
    fref__clear_outside(p, own, (fref__range){ j0, j1 });
    fref__clear_outside(ds, own, (fref__range){ j0, j1 });
    if (first >= last)
        return false;
    fref__entries(p + first, ds + first, s + first, last - first, &entries);
    for (int64_t j = first; j < last && x->out->amax_dp; j++)
        take_amax_dp(x, f, p[j], 1.0, 0.0, 0.0, ds[j]);
    for (int64_t j = first; j < last && x->freedom; j++)
        fref__add_weight(&t->keys[row], ds[j] * norm_k[j] * (ds[j] * norm_k[j]));
    if (!judged)
        return false;
    const fref__entry_terms terms = fref__entry_terms_of(x, f);
    at += first - j0;
    fref__entry_weights to = {
        .size = t->ds_abs + at, .bound = t->w1 + at, .variance = t->w2 + at, .lost = t->lost + at
    };
    fref__weigh(&to, p + first, ds + first, last - first, &terms);
    return to.any_lost;
}

static void add(const fref__shape *s, double *sums, const double *weights, const double *k,
                int64_t rows, int64_t keys, fref__of of)
{
    fref__operands product = { .rows = rows,
                               .columns = s->ld_qk,
                               .inner = keys,
                               .a = weights,
                               .a_row = FREF__TILE_KEYS,
                               .a_inner = 1,
                               .b = k,
                               .b_panel = s->keys.count * FREF__LANES,
                               .b_inner = FREF__LANES,
                               .c = sums,
                               .c_row = s->ld_qk };
    fref__add_product(&product, of);
}

static void write_row(const fref__backward *x, const scratch *t, const fref__head *head, int64_t i,
                      int64_t r, bool judged)
{
    const fref_problem *p = x->shape->problem;
    const fref__row_facts *f = &x->facts[head->slot * x->shape->rows.count + i];
    fref__range keys = head->range[i];
    double scale = x->gamma_ds * fabs(p->scale),
           sqrt_n = sqrt(fref__at_least_1((double)(keys.last - keys.first) / 16.0));
    int64_t row = ((head->b * p->heads_q + head->h) * x->shape->rows.count + i) * p->dim_qk;
    bool dead = f->dead;
    fref__row_variance all = { 0 };
    for (int64_t c = 0; c < p->dim_qk; c++) {
        int64_t at = r * x->shape->ld_qk + c;
        double exact = dead ? 0.0 : x->gamma_ds * p->scale * t->sums.value[at],
               dq = fref__clamped(exact, x->to_q.max);
        if (x->out->dq.value)
            x->out->dq.value[row + c] = dq;
        if (!judged)
            continue;
        double lost = scale * t->sums.flushed[at],
               aq = E32 * sqrt_n * scale * t->sums.magnitude[at];
        double mean_key = scale * fabs(t->mean_key[at]), es_dq = f->es * exact;
        double last_cast = x->to_q.unit_roundoff * fmax(fabs(dq), x->to_q.tiny);
        double single = scale * scale * t->sums.variance[at], cast = THIRD * last_cast * last_cast;
        double whole =
            lost * lost + f->edelta * mean_key * f->edelta * mean_key + es_dq * es_dq + aq * aq;
        double variance = single + whole + cast;
        all.single += single;
        all.cast += cast;
        all.whole += whole;
        double bound = scale * t->sums.bound[at] + 2.0 * f->edelta * mean_key + aq * sqrt_n +
                       sqrt(3.0 * (double)p->dim_v) * f->eo * mean_key;
        if (x->out->dq.sigma)
            x->out->dq.sigma[row + c] = dead ? 0.0 : sqrt(variance) + f->eo * mean_key;
        if (x->out->dq.bound)
            x->out->dq.bound[row + c] = dead ? 0.0 : bound + last_cast;
        if (x->out->dq.amax && !dead)
            fref__amax_take(&x->amax[omp_get_thread_num() * FREF__AMAX_COUNT + FREF__AMAX_DQ],
                            fabs(exact),
                            fmin(bound, x->z_dq * (sqrt(single + whole) + f->eo * mean_key)));
    }
    double neff = fref__effective_number(&t->keys[r]);
    int64_t at = row / p->dim_qk;
    if (x->out->dq.neff)
        x->out->dq.neff[at] = dead ? 0.0 : neff;
    if (x->out->dq.nu) /* an error of O moves the whole row of dQ, whatever else does */
        x->out->dq.nu[at] = dead ? 0.0
                            : x->rounding->own_o
                                ? fref__degrees_of_freedom(&all, neff, head->channels_k, p->dim_qk)
                                : 1.0;
}

/* Facts of the rows, from their scores. */
static void measure_rows(const fref__backward *x, const scratch *t, const fref__head *head,
                         int64_t i, int64_t rows)
{
    int64_t ld = fref__ld_entries(x->shape);
    fref__row_facts *facts = &x->facts[head->slot * x->shape->rows.count + i];
    for (int64_t r = 0; r < rows; r++) {
        fref__score_row scores = { 0 };
        facts[r] = (fref__row_facts){ .dead = true };
        if (head->range[i + r].first == head->range[i + r].last)
            continue;
        if (x->measured || !x->plain)
            scores = score_row(x, t, head, i + r, r, t->s + r * ld);
        facts[r] = facts_of_row(x, head, i + r, &scores, t->o);
    }
}

/* Keys j .. j+n-1, of one tile of keys. */
static void add_keys(const fref__backward *x, const scratch *t, const fref__head *head, int64_t i,
                     int64_t rows, int64_t j, int64_t n, bool judged)
{
    const fref__shape *s = x->shape;
    const fref__row_facts *facts = &x->facts[head->slot * s->rows.count + i];
    int64_t ld = fref__ld_entries(s), kept = fref__entry_at(s, i, j), column = j % FREF__TILE_KEYS;
    double *tile_p = head->p ? head->p + kept : t->p + column,
           *tile_ds = head->ds ? head->ds + kept : t->ds + column;
    fref__dot_panels(tile_ds - j % FREF__LANES, FREF__TILE_KEYS, head->d_o + i * s->ld_v, s->ld_v,
                     rows, s->problem->dim_v, head->v_panels, (fref__range){ j, j + n });
    bool flushes = false;
    for (int64_t r = 0; r < rows; r++) {
        const double *scores = t->s + r * ld;
        double *p = tile_p + r * FREF__TILE_KEYS - j, *ds = tile_ds + r * FREF__TILE_KEYS - j;
        fref__range own = head->range[i + r];
        if (x->plain) {
            flushes |= weigh_plain(x, t, r, &facts[r], head->stats[i + r], scores, p, ds,
                                   head->norms_k.of, own, j, j + n, judged);
            continue;
        }
        fref__score_arrays slopes = { 0 };
        if (x->scored)
            slopes = (fref__score_arrays){ t->slope + r * ld, t->curvature + r * ld,
                                           t->slope_extra + r * ld, NULL, NULL };
        flushes |=
            weigh_row(x, t, r, &facts[r], head->stats[i + r], scores, p, ds, head->norms_k.of,
                      fref__keep_of(s->problem, head->b, head->h, fref__place(&s->rows, i + r)),
                      &slopes, own, j, j + n);
    }
    const double *k = head->k + j * FREF__LANES;
    add(s, t->sums.value, tile_ds, k, rows, n, FREF__OF_VALUE);
    if (!judged)
        return;
    add(s, t->mean_key, tile_p, k, rows, n, FREF__OF_VALUE);
    add(s, t->sums.magnitude, t->ds_abs, k, rows, n, FREF__OF_MAGNITUDE);
    add(s, t->sums.bound, t->w1, k, rows, n, FREF__OF_MAGNITUDE);
    add(s, t->sums.variance, t->w2, k, rows, n, FREF__OF_SQUARE);
    if (flushes)
        add(s, t->sums.flushed, t->lost, k, rows, n, FREF__OF_VALUE);
}

static void rows_tile(const fref__backward *x, const scratch *t, const fref__head *head, int64_t i,
                      int64_t rows)
{
    const fref__shape *s = x->shape;
    const fref_backward_out *out = x->out;
    fref__range keys = fref__keys_of_rows(head, i, rows);
    bool judged = fref_has_errors(&out->dq), wanted = fref_is_wanted(&out->dq) || out->amax_dp;
    int64_t ld = fref__ld_entries(s), from = keys.first / FREF__LANES * FREF__LANES;
    if (wanted || x->measured || !x->plain)
        fref__dot_panels(t->s + from, ld, head->q + i * s->ld_qk, s->ld_qk, rows,
                         s->problem->dim_qk, head->k_panels, keys);
    measure_rows(x, t, head, i, rows);
    if (!wanted)
        return;
    memset(t->keys, 0, (size_t)rows * sizeof *t->keys);
    double *const sums[] = { t->sums.value,    t->mean_key,   t->sums.magnitude,
                             t->sums.variance, t->sums.bound, t->sums.flushed };
    for (size_t n = 0; n < (judged ? sizeof sums / sizeof sums[0] : 1); n++)
        memset(sums[n], 0, (size_t)(rows * s->ld_qk) * sizeof(double));
    for (int64_t j = keys.first, n; j < keys.last; j += n) {
        n = FREF__TILE_KEYS - j % FREF__TILE_KEYS;
        n = n < keys.last - j ? n : keys.last - j;
        add_keys(x, t, head, i, rows, j, n, judged);
    }
    for (int64_t r = 0; r < rows; r++)
        write_row(x, t, head, i + r, r, judged);
}

int fref__backward_rows(const fref__backward *x, const fref__slab *slab)
{
    const fref__shape *s = x->shape;
    scratch none;
    int64_t size = cut_scratch(&none, NULL, s);
    double *memory = fref__allocate(size * omp_get_max_threads());
    if (!memory)
        return ENOMEM;
    int64_t tiles = (s->rows.count + FREF__TILE_ROWS - 1) / FREF__TILE_ROWS;
#pragma omp parallel for schedule(dynamic)
    for (int64_t task = 0; task < slab->count * s->span * tiles; task++) {
        scratch mine;
        cut_scratch(&mine, memory + omp_get_thread_num() * size, s);
        int64_t unit = task / tiles / s->span, first = task % tiles * FREF__TILE_ROWS;
        fref__head head = fref__head_of(slab, s, unit, task / tiles % s->span);
        int64_t last =
            first + FREF__TILE_ROWS < s->rows.count ? first + FREF__TILE_ROWS : s->rows.count;
        int64_t step = fref__slab_is_finite(slab, s, unit) ? FREF__TILE_ROWS : 1;
        for (int64_t i = first; i < last; i += step)
            rows_tile(x, &mine, &head, i, last - i < step ? last - i : step);
    }
    fref__release(memory);
    return 0;
}
