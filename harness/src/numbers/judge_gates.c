/* The second step of judging: what rows say together. docs/numerics.md section 3; a line of it stands above each formula. */
#include <math.h>

#include "judge.h"

#define ALPHA 1e-8
#define GAIN_KEYS 16 /* TG: rows of at least so many effective keys ... */
#define GAIN_ROWS 32 /* ... and at least so many of them */
#define GAIN_SE 8    /* standard errors */

/* The rows [from, to) of a tensor: one (b,h) slice, or all. */
typedef struct span {
    const facts_tensor *tensor;
    const facts_expected *expected;
    const facts_judged_row *rows;
    int64_t from, to;
} span;

static bool is_live(const span *s, int64_t i)
{
    return s->rows[i].weighed > 0 && s->expected->nu[i] > 0;
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

static int64_t live_rows(const span *s)
{
    int64_t n = 0;
    for (int64_t i = s->from; i < s->to; i++)
        n += is_live(s, i);
    return n;
}

/* T2: q_i <= h(ln(Nr/alpha), nu_i), h(x, nu) = 1 + 2 sqrt(x/nu) + 2 x/nu: Laurent and Massart's bound of a chi-square's upper tail with nu degrees of
 * freedom, for all Nr rows at once. Answers the row that is furthest; -1: none. */
static int64_t judge_each(const span *s, int64_t live, double *worst)
{
    int64_t at = -1;
    double x = log((double)live / ALPHA);
    *worst = 0.0;
    for (int64_t i = s->from; i < s->to; i++) {
        if (!is_live(s, i))
            continue;
        double nu = s->expected->nu[i], ratio = ratio_of(mean_square(&s->rows[i]), 1 + 2 * sqrt(x / nu) + 2 * x / nu);
        if (at < 0 || ratio > *worst) {
            at = i;
            *worst = ratio;
        }
    }
    return at;
}

/* T3: mean_i q_i <= 1 + 2 sqrt(x a) + 2 x m, a = (1/Nr^2) sum_i 1/nu_i, m = (1/Nr) max_i 1/nu_i: the same bound for a weighted sum of chi-squares. */
static double judge_mean(const span *s, double alpha)
{
    double live = 0, sum = 0, inverse = 0, largest = 0, x = log(1 / alpha);
    for (int64_t i = s->from; i < s->to; i++) {
        if (!is_live(s, i))
            continue;
        live++;
        sum += mean_square(&s->rows[i]);
        inverse += 1 / s->expected->nu[i];
        largest = fmax(largest, 1 / s->expected->nu[i]);
    }
    return live == 0 ? 0.0 : ratio_of(sum / live, 1 + 2 * sqrt(x * inverse) / live + 2 * x * largest / live);
}

static bool has_many_keys(const span *s, int64_t i)
{
    return is_live(s, i) && s->expected->neff[i] >= GAIN_KEYS;
}

/* TG: beta = sum(E ref/sigma^2) / X, X = sum ref^2/sigma^2, is the factor by which the answer is too large, as least squares see it. With r_i and X_i
 * the sums of one row, se = max( sqrt(sum_i (r_i - beta X_i)^2), sqrt(sum_i (dim/nu_i) X_i) ) / X: what rows scatter, and what the model says they
 * may. abs(beta) <= 8 se + g0. 0: too few rows, or too small answers, to tell. */
static double judge_gain(const span *s, double allowance)
{
    double sum = 0, power = 0, scatter = 0, model = 0, dim = (double)s->tensor->dim[3];
    int64_t rows = 0, elements = 0;
    for (int64_t i = s->from; i < s->to; i++) {
        if (!has_many_keys(s, i))
            continue;
        rows++;
        elements += s->rows[i].weighed;
        sum += s->rows[i].gain;
        power += s->rows[i].power;
        model += dim / s->expected->nu[i] * s->rows[i].power;
    }
    if (rows < GAIN_ROWS || power <= (double)elements)
        return 0.0;
    double beta = sum / power;
    for (int64_t i = s->from; i < s->to; i++)
        if (has_many_keys(s, i)) {
            double rest = s->rows[i].gain - beta * s->rows[i].power;
            scatter += rest * rest;
        }
    return ratio_of(fabs(beta), GAIN_SE * sqrt(fmax(scatter, model)) / power + allowance);
}

/* ---- together ---------------------------------------------------------------------------------------------------------------- */

static void add_row(facts_judgement *out, const facts_judged_row *row)
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

/* Shows the worst element of a row. */
static void show(facts_judgement *out, const facts_tensor *t, const facts_judged_row *rows, int64_t i)
{
    out->worst[0] = i / (t->dim[2] * t->dim[1]);
    out->worst[1] = i / t->dim[2] % t->dim[1];
    out->worst[2] = i % t->dim[2];
    out->worst[3] = rows[i].worst;
    out->got = rows[i].got;
    out->want = rows[i].want;
    out->bound = rows[i].tolerance;
}

/* Earlier rows come first among equals. */
static bool is_worse(const facts_judged_row *a, const facts_judged_row *b)
{
    return a->rank != b->rank ? a->rank > b->rank : a->ratio > b->ratio;
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
static void judge_spans(facts_judgement *out, const span *all, const facts_rule *rule)
{
    int64_t slice = all->tensor->dim[2], tests = 1;
    span part = *all;
    for (part.from = 0; part.from < all->to && all->to > slice; part.from += slice) {
        part.to = part.from + slice;
        tests += live_rows(&part) > 0;
    }
    bool gains = rule->gain > 0 && rule->expected.neff;
    double mean = judge_mean(all, ALPHA / (double)tests), gain = gains ? judge_gain(all, rule->gain) : 0.0;
    for (part.from = 0; tests > 1 && part.from < all->to; part.from += slice) {
        part.to = part.from + slice;
        mean = fmax(mean, judge_mean(&part, ALPHA / (double)tests));
        gain = gains ? fmax(gain, judge_gain(&part, rule->gain)) : 0.0;
    }
    take(out, FACTS_GATE_T3, mean);
    take(out, FACTS_GATE_TG, gain);
}

facts_judgement facts_judge_rows(const facts_tensor *tensor, const facts_rule *rule, const facts_judged_row *rows)
{
    facts_judgement out = { 0 };
    span all = { tensor, &rule->expected, rows, 0, tensor->dim[0] * tensor->dim[1] * tensor->dim[2] };
    int64_t at = -1, weighed = 0;
    double squares = 0;
    for (int64_t i = 0; i < all.to; i++) {
        add_row(&out, &rows[i]);
        squares += rows[i].squares;
        weighed += rows[i].weighed;
        if (rows[i].worst >= 0 && (at < 0 || is_worse(&rows[i], &rows[at])))
            at = i;
    }
    out.rms = weighed ? sqrt(squares / (double)weighed) : 0.0;
    if (at >= 0) {
        show(&out, tensor, rows, at);
        out.gate = (facts_gate)rows[at].gate;
        out.ratio = rows[at].ratio;
    }
    if (!rule->dense || !rule->expected.nu)
        return out;
    int64_t live = live_rows(&all);
    double each = 0.0;
    int64_t furthest = live ? judge_each(&all, live, &each) : -1;
    if (take(&out, FACTS_GATE_T2, each))
        show(&out, tensor, rows, furthest);
    judge_spans(&out, &all, rule);
    return out;
}
