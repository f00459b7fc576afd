/* The forward pass and its error model.
 *
 * A right kernel rounds three things that matter: the logit (fp32 accumulation), the probability (one cast before P V) and the
 * answer (one cast). Roundings are independent, of zero mean, and at most u, so their variance is at most u^2/3 (THIRD below). With
 * p = P_ij, v = V_jc, n keys in the row, nt = ceil(n/64) tiles, up and uo the unit roundoffs of the two casts, e32 = 2^-23:
 *
 *   es  = m ua sqrt(nck) qk + e32 (|x|_mx + X + 2)   a score's error, rms       qk = |scale| |q_i| max_j |k_j|, nck = d/chunk
 *   ew  = m cw ua nck qk + e32 (2 |x|_mx + 2 X + 4)  and at worst
 *         m the largest slope of the score modification, X the largest `extra` of score.h; without modification and bias 1 and 0
 *   eta = subnormal floor of P / Sum_exp [1]         el = e32 (w + sqrt(nt)/2 + 3)  row sum (w: lane_error), division
 *         with acc_pv > 0 and n = min(64 nt, acc_run): + acc_pv (n/8 + sqrt(n/3))    what one run of the accumulator cuts off
 *   a   = e32 (sqrt(nt) + 1) sum p|v|, or acc_pv sum p|v|                       accumulator
 *   F   = sum of p v where p < 1.01 eta              what may be flushed; all of one sign at worst, so it adds as a whole
 *
 *   sigma^2 = sum_j w2_j v^2 + THIRD (uo |O|)^2 + (es/4 sum p|v|)^2 + (el O)^2 + a^2 + F^2
 *       w2  = THIRD (up^2 p^2 + eta^2) + 4 es^2 p^2
 *   bound   = sum_j w1_j |v| + uo |O| + el |O| + a (sqrt(nt), or 2)
 *       w1  = (up + 2 ew) p + eta
 *
 * [1] times dropout's factor, which may come after the cast of P.
 *
 * 8 bit types: P is cast after it was multiplied with scale_s 2^-thr, so its floor is less by that; gamma = scale_s descale_s is in
 * the answer, and in all of its errors but that of the last cast. O stops where its cast saturates.
 *
 * sum p|v|, not |O|: the sum may cancel to zero, its rounding error cannot.
 */
#include <errno.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "amax.h"
#include "freedom.h"
#include "lanes.h"
#include "score.h"

/* What the error of a row's answers depends on. */
typedef struct row_facts {
    double max, sum, lse;
    double es, ew, eta, el, nt;
    double qk;
    double neff; /* effective number of keys */
    bool dead;   /* every key's score is -INFINITY */
} row_facts;

/* What one thread works in. */
typedef struct scratch {
    double *p;                             /* [TILE_ROWS, keys]: logits, then probabilities */
    double *slope, *extra, *pull, *bias;   /* [keys], of one row; score.h */
    double *w1, *w2, *flush;               /* [TILE_ROWS, TILE_KEYS] */
    double *o, *pv, *bound, *variance, *f; /* [TILE_ROWS, ld_v]; pv: sum p|v| */
    double *sizes;                         /* [ld_v]: sum |v| */
} scratch;

typedef struct pass {
    const fref__shape *shape;
    const fref_rounding *rounding;
    const fref_forward_out *out;
    fref__precision in, to;
    int64_t ld_keys;
    double gamma;                /* scale_s descale_s */
    double z;                    /* amax.h */
    fref__amax *amax_s, *amax_o; /* [thread] */
    bool judged;                 /* sigma, bound or degrees of freedom are wanted */
    bool freedom;                /* degrees of freedom, or the effective number of keys */
    bool scored;                 /* a modification, a bias or alibi */
    bool plain;                  /* not scored, and nothing is dropped */
} pass;

static double at_least_1(double x)
{
    return x > 1.0 ? x : 1.0;
}

/* Sums of a row weighted by P before it is divided by Sum_exp. */
typedef struct row_sums {
    double pull, extra, squares;
} row_sums;

/* x becomes exp(x - max). */
static row_sums exponentiate(double *x, row_facts *f, fref__range keys, const scratch *t,
                             bool scored)
{
    row_sums sums = { 0 };
    if (!scored) {
        const fref__exp_sums plain =
            fref__exponentiate(x + keys.first, keys.last - keys.first, f->max);
        f->sum = plain.sum;
        return (row_sums){ .pull = plain.pull, .squares = plain.squares };
    }
    for (int64_t j = keys.first; j < keys.last; j++) {
        double e = exp(x[j] - f->max);
        f->sum += e;
        sums.squares += e * e;
        if (e > 0.0) {
            sums.pull += e * t->pull[j - keys.first];
            sums.extra += e * t->extra[j - keys.first];
        }
        x[j] = e;
    }
    return sums;
}

/* The row's logits become scores. */
static fref__score_row score(double *s, fref__range keys, const pass *x, const scratch *t,
                             const fref__head *head, int64_t i)
{
    const fref_problem *p = x->shape->problem;
    const fref__score_arrays arrays = { .slope = t->slope, .extra = t->extra, .pull = t->pull };
    int64_t n = keys.last - keys.first;
    double sink = fref__sink_of(p, head->b, head->h, i);
    if (!x->scored)
        return fref__score_plain(s + keys.first, n, p->scale, sink);
    fref__multiply(s + keys.first, n, p->scale);
    fref__score(s + keys.first, &arrays, t->bias, p, x->rounding->eps_mod,
                &(fref__row_place){ head->b, head->h, i, &x->shape->keys, keys.first }, n);
    return fref__score_measure(s + keys.first, &arrays, n, sink);
}

/* What one lane's sum of nt tiles of 64 keys is off by, in E32; the largest weight is `top` of it
 * (docs/numerics.md, section 2). Each of n additions rounds by at most half an ulp of the sum so
 * far. The rms is 0.125 sqrt(n) if the sum grows from 0, and 0.16 sqrt(n) if a sink is half of it:
 * 6.5 sqrt(nt) allows 5 to 6 times that. With like weights the other terms of tau_LSE have 12 to
 * spare, since |Max| + |LSE| is at least ln Sum_exp. That is only ln 2 if `top` is 1/2, so nothing
 * is taken off. Toward a `top` of 1 the last term takes over. */
static double lane_error(double nt, double top, bool discrete)
{
    if (discrete)
        return 64.0 * nt * (1.0 + 2.0 * top) / 6.0;
    return sqrt(nt) / 2.0 + 6.0 * fmax(0.0, sqrt(nt) - 2.0 * fabs(1.0 - 2.0 * top)) +
           16.0 * nt * fmax(0.0, 2.0 * top - 1.0);
}

/* The rms of the logit errors, weighted by P, moves the LSE; the polynomial of a fast exp2 moves it
 * coherently in a peaked row. */
static void write_statistics(const pass *x, const row_facts *f, const fref__score_row *row,
                             const row_sums *sums, double nck, int64_t at)
{
    const fref_rounding *r = x->rounding;
    const fref_forward_out *out = x->out;
    double norm_p = sqrt(sums->squares) / f->sum;
    if (out->lse)
        out->lse[at] = f->lse;
    if (out->max)
        out->max[at] = f->max;
    if (out->sum_exp)
        out->sum_exp[at] = f->sum;
    if (out->lse_tau)
        out->lse_tau[at] =
            E32 * (fabs(f->max) + fabs(f->lse) + sums->extra / f->sum + 4.0 +
                   lane_error(f->nt, 1.0 / f->sum, r->discrete)) +
            r->cl * r->ua * (nck / 2.0 * sums->pull / f->sum + 1.5 * sqrt(nck) * f->qk * norm_p) +
            r->eps_exp * fmin(1.0, 4.0 * norm_p + 0.1);
    if (out->max_tau)
        out->max_tau[at] = E32 * (2.0 * fabs(f->max) + 2.0 * row->extra + 2.0) +
                           2.0 * r->cl * r->ua * sqrt(nck) * f->qk;
}

/* Turns the row's logits into probabilities, writes its statistics, and says what its errors depend
 * on. */
static row_facts normalise_row(double *s, fref__range keys, const pass *x, const scratch *t,
                               const fref__head *head, int64_t row_listed)
{
    const fref_problem *p = x->shape->problem;
    const fref_rounding *r = x->rounding;
    int64_t i = fref__place(&x->shape->rows, row_listed);
    const fref__score_row row = score(s, keys, x, t, head, i);
    double longest_k = fref__longest(&head->norms_k, keys);
    row_facts f = { .max = row.max, .dead = row.dead };
    if (f.dead)
        return f;
    const row_sums sums = exponentiate(s, &f, keys, t, x->scored);
    f.sum += exp(fref__sink_of(p, head->b, head->h, i) - f.max);
    fref__multiply(s + keys.first, keys.last - keys.first, 1.0 / f.sum);
    f.lse = f.max + log(f.sum);

    double norm_q = 0.0;
    for (int64_t c = 0; c < p->dim_qk; c++)
        norm_q +=
            head->q[row_listed * x->shape->ld_qk + c] * head->q[row_listed * x->shape->ld_qk + c];
    double nck = at_least_1((double)p->dim_qk / r->chunk);
    f.qk = row.slope * fabs(p->scale) * sqrt(norm_q) * longest_k;
    f.nt = at_least_1(ceil((double)(keys.last - keys.first) / 64.0));
    f.es = r->ua * sqrt(nck) * f.qk + E32 * (row.largest_x + row.extra + 2.0);
    f.ew = r->cw * r->ua * nck * f.qk + E32 * (2.0 * row.largest_x + 2.0 * row.extra + 4.0);
    f.eta = r->p_normalised ? x->in.eta : x->in.eta / f.sum;
    const double run = fmin(64.0 * f.nt, r->acc_run);
    f.el = E32 * (lane_error(f.nt, 1.0 / f.sum, r->discrete) + sqrt(f.nt) / 2.0 + 3.0) +
           (r->acc_pv > 0.0 ? r->acc_pv * (run / 8.0 + sqrt(run / 3.0)) : 0.0);

    write_statistics(x, &f, &row, &sums, nck,
                     (head->b * p->heads_q + head->h) * x->shape->rows.count + row_listed);
    return f;
}

/* The weights of the error terms for keys j0 .. j1-1 of a row whose probabilities are p[j0..].
 * True: some may be flushed to zero.
 */
static bool weigh(double *w1, double *w2, double *flush, const double *p, const uint8_t *keep,
                  fref__range keys, int64_t j0, int64_t j1, const row_facts *f, double up,
                  bool scored)
{
    bool any = false;
    size_t bytes = (size_t)(j1 - j0) * sizeof *w1;
    memset(w1, 0, bytes);
    memset(w2, 0, bytes);
    memset(flush, 0, bytes);
    int64_t first = keys.first > j0 ? keys.first : j0, last = keys.last < j1 ? keys.last : j1;
    double variance_p = THIRD * up * up + 4.0 * f->es * f->es,
           variance_floor = THIRD * f->eta * f->eta;
    for (int64_t j = first; j < last; j++) {
        if ((scored && p[j] == 0.0) || (keep && !keep[j]))
            continue; /* not a key, or beyond any arithmetic, or dropped */
        w1[j - j0] = (up + 2.0 * f->ew) * p[j] + f->eta;
        w2[j - j0] = variance_p * p[j] * p[j] + variance_floor;
        if (p[j] < 1.01 * f->eta && p[j] > 0.0) {
            flush[j - j0] = p[j];
            any = true;
        }
    }
    return any;
}

/* The same if no key is masked, without w1: its part of P follows from sum p|v|, and the part of
 * the floor is eta sum |v|. `p` is p[j] for key j. */
static bool weigh_plain(double *w2, double *flush, const double *p, fref__range own, int64_t j0,
                        int64_t j1, const row_facts *f, double up)
{
    int64_t first = own.first > j0 ? own.first : j0, last = own.last < j1 ? own.last : j1;
    const fref__forward_terms terms = { .variance_p = THIRD * up * up + 4.0 * f->es * f->es,
                                        .variance_floor = THIRD * f->eta * f->eta,
                                        .limit = 1.01 * f->eta };
    if (last - first < j1 - j0) {
        memset(w2, 0, (size_t)(j1 - j0) * sizeof *w2);
        memset(flush, 0, (size_t)(j1 - j0) * sizeof *flush);
    }
    return first < last && fref__weigh_forward(w2 + (first - j0), flush + (first - j0), p + first,
                                               last - first, &terms);
}

/* out += factor sum |v| over keys [first, last). */
static void add_sizes(double *out, const double *v, const fref__shape *s, int64_t first,
                      int64_t last, double factor)
{
    for (int64_t panel = 0; panel < s->ld_v; panel += FREF__LANES)
        for (int64_t j = first; j < last; j++)
            for (int64_t c = 0; c < FREF__LANES; c++)
                out[panel + c] +=
                    factor * fabs(v[(panel / FREF__LANES * s->keys.count + j) * FREF__LANES + c]);
}

/* The floor's part of the bound for keys j0 .. j1-1, of rows that mostly read them all. */
static void add_floors(const pass *x, const scratch *t, const fref__head *head, int64_t i,
                       int64_t rows, int64_t j0, int64_t j1, const row_facts *facts)
{
    const fref__shape *s = x->shape;
    memset(t->sizes, 0, (size_t)s->ld_v * sizeof(double));
    add_sizes(t->sizes, head->v, s, j0, j1, 1.0);
    for (int64_t r = 0; r < rows; r++) {
        fref__range own = facts[r].dead ? (fref__range){ 0, 0 } : head->range[i + r];
        double *bound = t->bound + r * s->ld_v;
        if (own.first <= j0 && own.last >= j1)
            for (int64_t c = 0; c < s->ld_v; c++)
                bound[c] += facts[r].eta * t->sizes[c];
        else
            add_sizes(bound, head->v, s, own.first > j0 ? own.first : j0,
                      own.last < j1 ? own.last : j1, facts[r].eta);
    }
}

static void add(const pass *x, double *sums, const double *weights, int64_t ld, const double *v,
                int64_t rows, int64_t keys, fref__of of)
{
    fref__operands product = { .rows = rows,
                               .columns = x->shape->ld_v,
                               .inner = keys,
                               .a = weights,
                               .a_row = ld,
                               .a_inner = 1,
                               .b = v,
                               .b_panel = x->shape->keys.count * FREF__LANES,
                               .b_inner = FREF__LANES,
                               .c = sums,
                               .c_row = x->shape->ld_v };
    fref__add_product(&product, of);
}

/* P becomes P' = P keep / (1-p). */
static void drop(double *p, const fref_problem *problem, const fref__head *head, int64_t i,
                 fref__range keys)
{
    const uint8_t *keep = fref__keep_of(problem, head->b, head->h, i);
    for (int64_t j = keys.first; keep && j < keys.last; j++)
        p[j] = keep[j] ? p[j] * problem->keep_scale : 0.0;
}

/* w = p^2 |v|^2. */
static double effective_keys(const double *p, const double *norm_v, fref__range keys)
{
    fref__weight_sums sums = { 0 };
    for (int64_t j = keys.first; j < keys.last; j++)
        fref__add_weight(&sums, p[j] * norm_v[j] * (p[j] * norm_v[j]));
    return fref__effective_number(&sums);
}

/* Of P', before it is scaled. As one logit's error is all that it has, it is as coherent as the
 * LSE's. */
static void take_amax_s(const pass *x, const double *p, fref__range keys, double es)
{
    double largest = 0.0;
    for (int64_t j = keys.first; j < keys.last; j++)
        largest = fref__larger_or_nan(largest, p[j]);
    fref__amax_take(&x->amax_s[omp_get_thread_num()], largest,
                    largest * (0x1p-19 + x->rounding->cl * es) + 0x1p-126);
}

static void write_row(const pass *x, const scratch *t, const fref__head *head, int64_t i, int64_t r,
                      const row_facts *f)
{
    const fref_problem *p = x->shape->problem;
    const fref_forward_out *out = x->out;
    int64_t row = ((head->b * p->heads_q + head->h) * x->shape->rows.count + i) * p->dim_v;
    double acc_pv = x->rounding->acc_pv;
    double per_pv = acc_pv > 0.0 ? acc_pv : E32 * (sqrt(f->nt) + 1.0);
    double worst = acc_pv > 0.0 ? 2.0 : sqrt(f->nt);
    fref__row_variance all = { 0 };
    for (int64_t c = 0; c < p->dim_v; c++) {
        int64_t at = r * x->shape->ld_v + c;
        double exact = x->gamma * t->o[at], o = fref__clamped(exact, x->to.max),
               pv = x->gamma * t->pv[at];
        if (out->o.value)
            out->o.value[row + c] = o;
        if (!x->judged)
            continue;
        double single = x->gamma * x->gamma * t->variance[at], lost = x->gamma * t->f[at];
        double so = x->to.unit_roundoff * fmax(fabs(o), x->to.tiny);
        double a = per_pv * pv, el_o = f->el * exact, es_pv = f->es / 4.0 * pv;
        double whole = es_pv * es_pv + el_o * el_o + a * a + lost * lost;
        all.single += single;
        all.cast += THIRD * so * so;
        all.whole += whole;
        if (out->o.sigma)
            out->o.sigma[row + c] = sqrt(single + THIRD * so * so + whole);
        double bound = x->gamma * t->bound[at] +
                       (x->plain ? (x->in.unit_roundoff + 2.0 * f->ew) * pv : 0.0) + fabs(el_o) +
                       a * worst;
        if (out->o.bound)
            out->o.bound[row + c] = bound + so;
        if (out->o.amax)
            fref__amax_take(&x->amax_o[omp_get_thread_num()], fabs(exact),
                            fmin(bound, x->z * sqrt(single + whole)));
    }
    int64_t at = row / p->dim_v;
    if (out->o.neff)
        out->o.neff[at] = f->neff;
    if (out->o.nu)
        out->o.nu[at] = fref__degrees_of_freedom(&all, f->neff, head->channels_v, p->dim_v);
}

static void write_dead_row(const pass *x, const fref__head *head, int64_t i)
{
    const fref_problem *p = x->shape->problem;
    const fref_forward_out *out = x->out;
    int64_t at = (head->b * p->heads_q + head->h) * x->shape->rows.count + i;
    double *const zero_rows[] = { out->o.value, out->o.sigma, out->o.bound };
    for (size_t n = 0; n < 3; n++)
        if (zero_rows[n])
            memset(zero_rows[n] + at * p->dim_v, 0, (size_t)p->dim_v * sizeof(double));
    double *const zeros[] = { out->lse_tau, out->max_tau, out->sum_exp, out->o.nu, out->o.neff };
    for (size_t n = 0; n < sizeof zeros / sizeof zeros[0]; n++)
        if (zeros[n])
            zeros[n][at] = 0.0;
    double sink = fref__sink_of(p, head->b, head->h,
                                fref__place(&x->shape->rows, i)); /* all there is, then */
    if (out->lse)
        out->lse[at] = sink;
    if (out->max)
        out->max[at] = sink;
    if (sink == -INFINITY)
        return;
    if (out->sum_exp)
        out->sum_exp[at] = 1.0;
    if (out->lse_tau)
        out->lse_tau[at] = E32 * (2.0 * fabs(sink) + 4.5) + x->rounding->eps_exp * 0.1;
    if (out->max_tau)
        out->max_tau[at] = E32 * (2.0 * fabs(sink) + 2.0);
}

/* Error terms of keys j .. j+n-1; p[j - from] is the first row's key j. */
static void judge_keys(const pass *x, const scratch *t, const fref__head *head, int64_t i,
                       int64_t rows, int64_t from, int64_t j, int64_t n, const row_facts *facts)
{
    const fref__shape *s = x->shape;
    const double *v = head->v + j * FREF__LANES;
    double up = x->in.unit_roundoff;
    bool flushes = false;
    for (int64_t r = 0; r < rows; r++) {
        int64_t at = r * FREF__TILE_KEYS;
        fref__range own = facts[r].dead ? (fref__range){ 0, 0 } : head->range[i + r];
        const double *p = t->p + r * x->ld_keys - from;
        const uint8_t *keep =
            fref__keep_of(s->problem, head->b, head->h, fref__place(&s->rows, i + r));
        flushes |= x->plain
                       ? weigh_plain(t->w2 + at, t->flush + at, p, own, j, j + n, &facts[r], up)
                       : weigh(t->w1 + at, t->w2 + at, t->flush + at, p, keep, own, j, j + n,
                               &facts[r], up, x->scored);
    }
    add(x, t->pv, t->p + (j - from), x->ld_keys, v, rows, n, FREF__OF_MAGNITUDE);
    add(x, t->variance, t->w2, FREF__TILE_KEYS, v, rows, n, FREF__OF_SQUARE);
    if (x->plain)
        add_floors(x, t, head, i, rows, j, j + n, facts);
    else
        add(x, t->bound, t->w1, FREF__TILE_KEYS, v, rows, n, FREF__OF_MAGNITUDE);
    if (flushes)
        add(x, t->f, t->flush, FREF__TILE_KEYS, v, rows, n, FREF__OF_VALUE);
}

/* Rows i .. i+rows-1 of one head. Products run over the union of their keys; where a row may not
 * read, its weight is zero. */
static void forward_tile(const pass *x, const scratch *t, const fref__head *head, int64_t i,
                         int64_t rows)
{
    const fref__shape *s = x->shape;
    fref__range keys = fref__keys_of_rows(head, i, rows);
    row_facts facts[FREF__TILE_ROWS] = { { 0 } };
    int64_t from = fref__dot_panels(t->p, x->ld_keys, head->q + i * s->ld_qk, s->ld_qk, rows,
                                    s->problem->dim_qk, head->k_panels, keys);
    double *sums[] = { t->o, t->pv, t->bound, t->variance, t->f };
    for (size_t n = 0; n < (x->judged ? sizeof sums / sizeof sums[0] : 1); n++)
        memset(sums[n], 0, (size_t)(rows * s->ld_v) * sizeof(double));
    for (int64_t r = 0; r < rows; r++) {
        fref__range own = head->range[i + r];
        double *row = t->p + r * x->ld_keys - from; /* row[j]: key j */
        facts[r].dead = own.first == own.last;
        if (!facts[r].dead)
            facts[r] = normalise_row(row, own, x, t, head, i + r);
        if (facts[r].dead)
            own = (fref__range){ keys.last, keys.last };
        drop(row, s->problem, head, fref__place(&s->rows, i + r), own);
        if (x->freedom && !facts[r].dead)
            facts[r].neff = effective_keys(row, head->norms_v.of, own);
        if (x->out->amax_s && !facts[r].dead)
            take_amax_s(x, row, own, facts[r].es);
        for (int64_t j = from; j < own.first; j++)
            row[j] = 0.0;
        for (int64_t j = own.last; j < keys.last; j++)
            row[j] = 0.0;
    }
    for (int64_t j = keys.first; j < keys.last; j += FREF__TILE_KEYS) {
        int64_t n = keys.last - j < FREF__TILE_KEYS ? keys.last - j : FREF__TILE_KEYS;
        add(x, t->o, t->p + (j - from), x->ld_keys, head->v + j * FREF__LANES, rows, n,
            FREF__OF_VALUE);
        if (x->judged)
            judge_keys(x, t, head, i, rows, from, j, n, facts);
    }
    for (int64_t r = 0; r < rows; r++) {
        if (facts[r].dead)
            write_dead_row(x, head, i + r);
        else
            write_row(x, t, head, i + r, r, &facts[r]);
    }
}

/* One piece of memory for each thread; memory.h. */
static int64_t cut_scratch(scratch *out, double *base, const pass *x)
{
    const fref__part parts[] = { { &out->p, FREF__TILE_ROWS * x->ld_keys },
                                 { &out->slope, x->scored ? x->ld_keys : 0 },
                                 { &out->extra, x->scored ? x->ld_keys : 0 },
                                 { &out->pull, x->scored ? x->ld_keys : 0 },
                                 { &out->bias, x->scored ? x->ld_keys : 0 },
                                 { &out->w1, FREF__TILE_ROWS * FREF__TILE_KEYS },
                                 { &out->w2, FREF__TILE_ROWS * FREF__TILE_KEYS },
                                 { &out->flush, FREF__TILE_ROWS * FREF__TILE_KEYS },
                                 { &out->o, FREF__TILE_ROWS * x->shape->ld_v },
                                 { &out->pv, FREF__TILE_ROWS * x->shape->ld_v },
                                 { &out->bound, FREF__TILE_ROWS * x->shape->ld_v },
                                 { &out->variance, FREF__TILE_ROWS * x->shape->ld_v },
                                 { &out->f, FREF__TILE_ROWS * x->shape->ld_v },
                                 { &out->sizes, x->shape->ld_v } };
    return fref__cut(parts, sizeof parts / sizeof parts[0], base);
}

static void forward_slab(const pass *x, const fref__slab *slab, double *memory,
                         int64_t memory_of_thread)
{
    const fref__shape *s = x->shape;
    int64_t tiles = (s->rows.count + FREF__TILE_ROWS - 1) / FREF__TILE_ROWS;
#pragma omp parallel for schedule(dynamic)
    for (int64_t task = 0; task < slab->count * s->span * tiles; task++) {
        scratch mine;
        cut_scratch(&mine, memory + omp_get_thread_num() * memory_of_thread, x);
        int64_t unit = task / tiles / s->span, first = task % tiles * FREF__TILE_ROWS;
        fref__head head = fref__head_of(slab, s, unit, task / tiles % s->span);
        int64_t last =
            first + FREF__TILE_ROWS < s->rows.count ? first + FREF__TILE_ROWS : s->rows.count;
        int64_t step = fref__slab_is_finite(slab, s, unit) ? FREF__TILE_ROWS : 1;
        for (int64_t i = first; i < last; i += step)
            forward_tile(x, &mine, &head, i, last - i < step ? last - i : step);
    }
}

int fref_forward(const fref_problem *problem, const fref_tensor *q, const fref_tensor *k,
                 const fref_tensor *v, const fref_rounding *rounding, const fref_forward_out *out)
{
    fref__shape shape = fref__shape_of(
        problem, fref__sample(problem->row_sample, problem->row_count, problem->rows),
        fref__all(problem->keys));
    fref__inputs inputs = { .q = q, .k = k, .v = v, .freedom = fref_has_freedom(&out->o) };
    const fref_scales *scales = &problem->scales;
    int threads = omp_get_max_threads();
    pass x = { .shape = &shape,
               .rounding = rounding,
               .out = out,
               .in = fref__precision_of_p(problem, rounding->in,
                                          fref__or_1(scales->scale_s) * exp2(-rounding->thr)),
               .to = fref__precision_scaled(rounding->out, scales->scale_o),
               .gamma = fref__or_1(scales->scale_s) * fref__or_1(scales->descale_s),
               .z = fref__z_of(problem->batch * problem->heads_q * shape.rows.count *
                               problem->dim_v),
               .ld_keys = shape.keys_padded + FREF__LANES,
               .judged = fref_has_errors(&out->o),
               .freedom = inputs.freedom,
               .scored = fref__is_scored(problem),
               .plain = !fref__is_scored(problem) && !problem->keep };
    scratch none;
    int64_t memory_of_thread = cut_scratch(&none, NULL, &x);
    double *memory = fref__allocate(memory_of_thread * threads);
    x.amax_s = calloc(2 * (size_t)threads, sizeof *x.amax_s);
    x.amax_o = x.amax_s + threads;
    fref__slab slab = { 0 };
    int status = memory && x.amax_s ? fref__slab_create(&slab, &shape, &inputs) : ENOMEM;
    for (int64_t first = 0; first < shape.units && status == 0; first += slab.capacity) {
        fref__slab_load(&slab, &shape, &inputs, first);
        forward_slab(&x, &slab, memory, memory_of_thread);
    }
    if (status == 0) {
        fref__amax_write(out->amax_s, x.amax_s, 1, threads);
        fref__amax_write(out->o.amax, x.amax_o, 1, threads);
        fref__slab_destroy(&slab);
    }
    free(x.amax_s);
    fref__release(memory);
    return status;
}
