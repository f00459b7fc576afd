/* The second step of judging: what rows say together. docs/numerics.md section 3; a line of it stands above each formula. Two walks over the rows, each
 * (b,h) slice by one thread and the slices then joined in their order: the same bits on any number of threads. */
#include <math.h>
#include <stdlib.h>

#include "judge.h"

#define ALPHA 1e-8
#define GAIN_KEYS 16 /* TG: rows of at least so many effective keys ... */
#define GAIN_ROWS 32 /* ... and at least so many of them */
#define GAIN_SE 8    /* standard errors */
#define MANY_ROWS 4096 /* more threads than one from here on */

typedef struct court {
    const facts_tensor *tensor;
    const facts_expected *expected;
    const facts_judged_row *rows;
    bool gates, gains; /* T2 and T3; TG */
} court;

/* What some rows add up to. */
typedef struct sums {
    facts_judgement found; /* counts, and the largest ratio of each gate */
    int64_t at;            /* the row with the worst element; -1: none */
    int64_t weighed, live;
    double squares;
    double mean, inverse, largest;  /* T3: sums of q_i and 1/nu_i, the largest 1/nu_i, of live rows */
    int64_t gain_rows, gain_elements;
    double gain, power, model;      /* TG: sums of r_i, X_i and (dim/nu_i) X_i, of rows with many keys */
    double scatter, scatter_of_all; /* around the slice's beta; around that of all */
    int64_t furthest;               /* T2; -1: no row is live */
    double each;
} sums;

static bool is_live(const court *c, int64_t i)
{
    return c->rows[i].weighed > 0 && c->expected->nu[i] > 0;
}

static bool has_many_keys(const court *c, int64_t i)
{
    return is_live(c, i) && c->expected->neff[i] >= GAIN_KEYS;
}

/* q_i = mean_c (E/sigma)^2, of mean 1 at most where the model holds. */
static double mean_square(const facts_judged_row *row)
{
    return row->squares / (double)row->weighed;
}

/* NaN: a sum that is not a number passes nothing. */
static double ratio_of(double statistic, double threshold)
{
    double ratio = statistic / threshold;
    return isnan(ratio) ? INFINITY : ratio;
}

/* ---- the first walk ----------------------------------------------------------------------------------------------------------- */

static void add_found(facts_judgement *out, const facts_judged_row *row)
{
    out->checked += row->checked;
    out->not_finite += row->not_finite;
    out->unwritten += row->unwritten;
    out->wrong += row->wrong;
    out->padded_poison += row->padded_poison;
    out->padded_zero += row->padded_zero;
    out->padded_other += row->padded_other;
    if (row->worst >= 0)
        out->gates[row->gate] = fmax(out->gates[row->gate], row->ratio);
}

/* Earlier rows come first among equals. */
static bool is_worse(const court *c, int64_t i, int64_t than)
{
    if (than < 0)
        return true;
    const facts_judged_row *a = &c->rows[i], *b = &c->rows[than];
    return a->rank != b->rank ? a->rank > b->rank : a->ratio > b->ratio;
}

static void add_live(sums *out, const court *c, int64_t i)
{
    const facts_judged_row *row = &c->rows[i];
    const double inverse = 1 / c->expected->nu[i];
    out->live++;
    out->mean += mean_square(row);
    out->inverse += inverse;
    out->largest = fmax(out->largest, inverse);
    if (!c->gains || !has_many_keys(c, i))
        return;
    out->gain_rows++;
    out->gain_elements += row->weighed;
    out->gain += row->gain;
    out->power += row->power;
    out->model += (double)c->tensor->dim[3] / c->expected->nu[i] * row->power;
}

static sums sums_of(const court *c, int64_t from, int64_t to)
{
    sums out = { .at = -1, .furthest = -1 };
    for (int64_t i = from; i < to; i++) {
        const facts_judged_row *row = &c->rows[i];
        add_found(&out.found, row);
        out.squares += row->squares;
        out.weighed += row->weighed;
        if (row->worst >= 0 && is_worse(c, i, out.at))
            out.at = i;
        if (c->gates && is_live(c, i))
            add_live(&out, c, i);
    }
    return out;
}

static void join(sums *out, const court *c, const sums *part)
{
    facts_judgement *f = &out->found;
    f->checked += part->found.checked;
    f->not_finite += part->found.not_finite;
    f->unwritten += part->found.unwritten;
    f->wrong += part->found.wrong;
    f->padded_poison += part->found.padded_poison;
    f->padded_zero += part->found.padded_zero;
    f->padded_other += part->found.padded_other;
    for (int gate = 0; gate < FACTS_GATE_COUNT; gate++)
        f->gates[gate] = fmax(f->gates[gate], part->found.gates[gate]);
    if (part->at >= 0 && is_worse(c, part->at, out->at))
        out->at = part->at;
    out->squares += part->squares;
    out->weighed += part->weighed;
    out->live += part->live;
    out->mean += part->mean;
    out->inverse += part->inverse;
    out->largest = fmax(out->largest, part->largest);
    out->gain_rows += part->gain_rows;
    out->gain_elements += part->gain_elements;
    out->gain += part->gain;
    out->power += part->power;
    out->model += part->model;
}

/* ---- the second, and the gates ---------------------------------------------------------------------------------------------------- */

/* TG: beta = sum(E ref/sigma^2) / X, X = sum ref^2/sigma^2, is the factor by which the answer is too large, as least squares see it. With r_i and X_i
 * the sums of one row, se = max( sqrt(sum_i (r_i - beta X_i)^2), sqrt(sum_i (dim/nu_i) X_i) ) / X: what rows scatter, and what the model says they
 * may. abs(beta) <= 8 se + g0. 0: too few rows, or too small answers, to tell. */
static bool tells_gain(const sums *of)
{
    return of->gain_rows >= GAIN_ROWS && of->power > (double)of->gain_elements;
}

static double judge_gain(const sums *of, double scatter, double allowance)
{
    if (!tells_gain(of))
        return 0.0;
    return ratio_of(fabs(of->gain / of->power), GAIN_SE * sqrt(fmax(scatter, of->model)) / of->power + allowance);
}

/* T2: q_i <= h(ln(Nr/alpha), nu_i), h(x, nu) = 1 + 2 sqrt(x/nu) + 2 x/nu: Laurent and Massart's bound of a chi-square's upper tail with nu degrees of
 * freedom, for all Nr rows at once. */
static void judge_each(sums *out, const court *c, int64_t i, double x)
{
    const double nu = c->expected->nu[i], ratio = ratio_of(mean_square(&c->rows[i]), 1 + 2 * sqrt(x / nu) + 2 * x / nu);
    if (out->furthest < 0 || ratio > out->each) {
        out->furthest = i;
        out->each = ratio;
    }
}

static double squared(double x)
{
    return x * x;
}

static void look_again(sums *out, const court *c, int64_t from, int64_t to, const sums *all)
{
    const double x = log((double)all->live / ALPHA), own = tells_gain(out) ? out->gain / out->power : 0, shared = tells_gain(all) ? all->gain / all->power : 0;
    for (int64_t i = from; i < to; i++) {
        if (!is_live(c, i))
            continue;
        judge_each(out, c, i, x);
        if (!c->gains || !has_many_keys(c, i))
            continue;
        out->scatter += squared(c->rows[i].gain - own * c->rows[i].power);
        out->scatter_of_all += squared(c->rows[i].gain - shared * c->rows[i].power);
    }
}

/* T3: mean_i q_i <= 1 + 2 sqrt(x a) + 2 x m, a = (1/Nr^2) sum_i 1/nu_i, m = (1/Nr) max_i 1/nu_i: the same bound for a weighted sum of chi-squares. */
static double judge_mean(const sums *of, double alpha)
{
    const double live = (double)of->live, x = log(1 / alpha);
    return of->live == 0 ? 0.0 : ratio_of(of->mean / live, 1 + 2 * sqrt(x * of->inverse) / live + 2 * x * of->largest / live);
}

/* Shows the worst element of a row. */
static void show(facts_judgement *out, const court *c, int64_t i)
{
    const int64_t *dim = c->tensor->dim;
    out->worst[0] = i / (dim[2] * dim[1]);
    out->worst[1] = i / dim[2] % dim[1];
    out->worst[2] = i % dim[2];
    out->worst[3] = c->rows[i].worst;
    out->got = c->rows[i].got;
    out->want = c->rows[i].want;
    out->bound = c->rows[i].tolerance;
}

static bool take(facts_judgement *out, facts_gate gate, double ratio)
{
    out->gates[gate] = ratio;
    if (!(ratio > out->ratio))
        return false;
    out->ratio = ratio;
    out->gate = gate;
    return true;
}

/* T3 and TG of every slice and of all together: m tests, each at alpha/m. One slice alone is all together. */
static void judge_together(facts_judgement *out, const sums *all, const sums *part, int64_t slices, double allowance)
{
    int64_t tests = 1;
    double scatter = 0;
    for (int64_t n = 0; n < slices; n++) {
        tests += slices > 1 && part[n].live > 0;
        scatter += part[n].scatter_of_all;
    }
    double mean = judge_mean(all, ALPHA / (double)tests), gain = judge_gain(all, scatter, allowance);
    for (int64_t n = 0; tests > 1 && n < slices; n++) {
        mean = fmax(mean, judge_mean(&part[n], ALPHA / (double)tests));
        gain = fmax(gain, judge_gain(&part[n], part[n].scatter, allowance));
    }
    take(out, FACTS_GATE_T3, mean);
    take(out, FACTS_GATE_TG, gain);
}

static void judge_gates(facts_judgement *out, const court *c, const sums *all, sums *part, int64_t slices, double allowance)
{
    const int64_t rows = c->tensor->dim[2];
    int64_t furthest = -1;
    double each = 0.0;
#pragma omp parallel for schedule(static) if (slices * rows >= MANY_ROWS)
    for (int64_t n = 0; n < slices; n++)
        look_again(&part[n], c, n * rows, (n + 1) * rows, all);
    for (int64_t n = 0; n < slices; n++)
        if (part[n].furthest >= 0 && (furthest < 0 || part[n].each > each)) {
            furthest = part[n].furthest;
            each = part[n].each;
        }
    if (take(out, FACTS_GATE_T2, each))
        show(out, c, furthest);
    judge_together(out, all, part, slices, allowance);
}

facts_judgement facts_judge_rows(const facts_tensor *tensor, const facts_rule *rule, const facts_judged_row *rows)
{
    const int64_t slices = tensor->dim[0] * tensor->dim[1], of_slice = tensor->dim[2];
    const bool gates = rule->dense && rule->expected.nu;
    const court c = { tensor, &rule->expected, rows, gates, gates && rule->gain > 0 && rule->expected.neff };
    sums all = { .at = -1 }, *part = malloc((size_t)(slices + 1) * sizeof *part);
    if (!part)
        return (facts_judgement){ .no_memory = true };
#pragma omp parallel for schedule(static) if (slices * of_slice >= MANY_ROWS)
    for (int64_t n = 0; n < slices; n++)
        part[n] = sums_of(&c, n * of_slice, (n + 1) * of_slice);
    for (int64_t n = 0; n < slices; n++)
        join(&all, &c, &part[n]);
    facts_judgement out = all.found;
    out.rms = all.weighed ? sqrt(all.squares / (double)all.weighed) : 0.0;
    if (all.at >= 0) {
        show(&out, &c, all.at);
        out.gate = (facts_gate)rows[all.at].gate;
        out.ratio = rows[all.at].ratio;
    }
    if (gates)
        judge_gates(&out, &c, &all, part, slices, rule->gain);
    free(part);
    return out;
}
