/* The second step of the comparison: tests over all rows (judge_sums.h). docs/numerics.md section
 * 3; the line above each formula is from there. Two passes over the rows: one thread takes a (b,h)
 * slice, on a GPU one block. The slices are then combined in their order, so any number of threads
 * gives the same bits. */
#include <math.h>
#include <stdlib.h>

#include "judge.h"

#define GAIN_SE 8      /* standard errors */
#define MANY_ROWS 4096 /* more threads than one from here on */

/* All slices in their order; the worst row is the worst of `*worst`, a slice's (-1: none). */
static facts_judged_sums joined(const facts_judged_slice *slice, int64_t slices, int64_t *worst)
{
    facts_judged_sums all;
    facts_judged_sums_begin(&all);
    *worst = -1;
    for (int64_t n = 0; n < slices; n++) {
        const facts_judged_sums *part = &slice[n].sums;
        facts_judged_sums_join(&all, part);
        if (part->at >= 0 && (*worst < 0 || facts_judged_is_worse(&slice[n].worst, part->at,
                                                                  &slice[*worst].worst, all.at))) {
            *worst = n;
            all.at = part->at;
        }
    }
    return all;
}

/* ---- the gates
 * ----------------------------------------------------------------------------------------------------------------
 */

/* With r_i and X_i the sums of one row, se = max( sqrt(sum_i (r_i - beta X_i)^2), sqrt(sum_i
 * (dim/nu_i) X_i) ) / X: what rows scatter, and what the model says they may. abs(beta) <= 8 se +
 * g0. */
static double judge_gain(const facts_judged_sums *of, double scatter, double allowance)
{
    if (!facts_judged_detects_gain(of))
        return 0.0;
    return facts_judged_ratio(fabs(facts_judged_beta(of)),
                              GAIN_SE * sqrt(fmax(scatter, of->model)) / of->power + allowance);
}

/* The excess of each row, r_i/X_i, scatters as the model expects:
 *   sum_i (r_i - beta X_i)^2 <= m + 2 sqrt(x m w) + 2 x w + t^2 w sum_i X_i
 * m is the sum of (dim/nu_i) X_i and w its largest term; t is the part of g0 that may differ between rows. This is again Laurent
 * and Massart's bound: the squares of the weights add up to at most m w. */
static double judge_scatter(const facts_judged_sums *of, double scatter, double by_row,
                            double alpha)
{
    const double x = log(1 / alpha), m = of->model, w = of->heaviest;
    if (!facts_judged_detects_gain(of))
        return 0.0;
    return facts_judged_ratio(scatter, m + 2 * sqrt(x * m * w) + 2 * x * w +
                                           by_row * by_row * w * of->power);
}

/* TS: abs(sum E/sigma) <= 8 sqrt(sum_i dim^2/nu_i) + g0 sum_i abs(sum_c want/sigma). */
static double judge_sign(const facts_judged_sums *of, double allowance)
{
    if (of->gain_rows < FACTS_GAIN_ROWS)
        return 0.0;
    return facts_judged_ratio(fabs(of->shift), GAIN_SE * sqrt(of->spread) + allowance * of->level);
}

/* The limit of TG if all rows share the roundings of the last cast: 8 times its rms over that many
 * channels. */
static double shared_cast(const facts_rule *rule, int64_t channels)
{
    return rule->shared > 0 ? GAIN_SE * rule->shared / sqrt((double)channels) : 0.0;
}

/* T3: mean_i q_i <= 1 + 2 sqrt(x a) + 2 x m, a = (1/Nr^2) sum_i 1/nu_i, m = (1/Nr) max_i 1/nu_i:
 * the same bound for a weighted sum of chi-squares. */
static double judge_mean(const facts_judged_sums *of, double alpha)
{
    const double live = (double)of->live, x = log(1 / alpha);
    return of->live == 0
               ? 0.0
               : facts_judged_ratio(of->mean / live, 1 + 2 * sqrt(x * of->inverse) / live +
                                                         2 * x * of->largest / live);
}

/* Shows the worst element of a row. */
static void show(facts_judgement *out, const facts_tensor *t, int64_t i,
                 const facts_judged_row *row)
{
    out->worst[0] = i / (t->dim[2] * t->dim[1]);
    out->worst[1] = i / t->dim[2] % t->dim[1];
    out->worst[2] = i % t->dim[2];
    out->worst[3] = row->worst;
    out->got = row->got;
    out->want = row->want;
    out->bound = row->tolerance;
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

/* T3, TG and TS of every slice and of all together: m tests, each at alpha/m. One slice alone is
 * all together. */
static void judge_together(facts_judgement *out, const facts_tensor *t,
                           const facts_judged_sums *all, const facts_judged_slice *slice,
                           int64_t slices, const facts_rule *rule)
{
    int64_t tests = 1;
    double scatter = 0;
    for (int64_t n = 0; n < slices; n++) {
        tests += slices > 1 && slice[n].sums.live > 0;
        scatter += slice[n].sums.scatter_of_all;
    }
    const double alpha = FACTS_ALPHA / (double)tests,
                 of_slice = rule->gain + shared_cast(rule, t->dim[3]),
                 of_all = rule->gain + shared_cast(rule, t->dim[3] * rule->means);
    double mean = judge_mean(all, alpha),
           gain = fmax(judge_gain(all, scatter, of_all),
                       judge_scatter(all, scatter, rule->by_row, alpha)),
           sign = rule->shared > 0 ? 0.0 : judge_sign(all, rule->gain);
    for (int64_t n = 0; tests > 1 && n < slices; n++) {
        const facts_judged_sums *of = &slice[n].sums;
        mean = fmax(mean, judge_mean(of, alpha));
        gain = fmax(gain, fmax(judge_gain(of, of->scatter, of_slice),
                               judge_scatter(of, of->scatter, rule->by_row, alpha)));
        sign = fmax(sign, rule->shared > 0 ? 0.0 : judge_sign(of, rule->gain));
    }
    take(out, FACTS_GATE_T3, mean);
    take(out, FACTS_GATE_TG, gain);
    take(out, FACTS_GATE_TS, sign);
}

static void judge_gates(facts_judgement *out, const facts_tensor *t, const facts_judged_sums *all,
                        const facts_judged_slice *slice, int64_t slices, const facts_rule *rule)
{
    int64_t furthest = -1;
    for (int64_t n = 0; n < slices; n++)
        if (slice[n].sums.furthest >= 0 &&
            (furthest < 0 || slice[n].sums.each > slice[furthest].sums.each))
            furthest = n;
    if (take(out, FACTS_GATE_T2, furthest < 0 ? 0.0 : slice[furthest].sums.each))
        show(out, t, slice[furthest].sums.furthest, &slice[furthest].furthest);
    judge_together(out, t, all, slice, slices, rule);
}

facts_judged_rows facts_judge_weights(const facts_tensor *tensor, const facts_rule *rule)
{
    const bool gates = rule->dense && rule->expected.nu;
    return (facts_judged_rows){ .nu = rule->expected.nu,
                                .neff = rule->expected.neff,
                                .channels = tensor->dim[3],
                                .gates = gates,
                                .aligned = rule->means > 0,
                                .gains = gates && rule->gain > 0 && rule->expected.neff };
}

facts_judgement facts_judge_slices(const facts_tensor *tensor, const facts_rule *rule,
                                   const facts_judged_slice *slice)
{
    const int64_t slices = tensor->dim[0] * tensor->dim[1];
    int64_t worst;
    const facts_judged_sums all = joined(slice, slices, &worst);
    facts_judgement out = { .checked = all.checked,
                            .not_finite = all.not_finite,
                            .unwritten = all.unwritten,
                            .wrong = all.wrong,
                            .padded_poison = all.padded_poison,
                            .padded_zero = all.padded_zero,
                            .padded_other = all.padded_other,
                            .rms = all.weighed ? sqrt(all.squares / (double)all.weighed) : 0.0 };
    for (int gate = 0; gate < FACTS_GATE_COUNT; gate++)
        out.gates[gate] = all.gates[gate];
    if (worst >= 0) {
        show(&out, tensor, all.at, &slice[worst].worst);
        out.gate = (facts_gate)slice[worst].worst.gate;
        out.ratio = slice[worst].worst.ratio;
    }
    if (facts_judge_weights(tensor, rule).gates)
        judge_gates(&out, tensor, &all, slice, slices, rule);
    return out;
}

/* ---- the walks, here
 * ----------------------------------------------------------------------------------------------------------
 */

static void walk(facts_judged_slice *out, const facts_judged_rows *c, int64_t from, int64_t to)
{
    facts_judged_sums_begin(&out->sums);
    for (int64_t i = from; i < to; i++)
        facts_judged_sums_add(&out->sums, c, i);
    if (out->sums.at >= 0)
        out->worst = c->row[out->sums.at];
}

static void walk_again(facts_judged_slice *out, const facts_judged_rows *c, int64_t from,
                       int64_t to, const facts_judged_sums *all)
{
    const double x = log((double)all->live / FACTS_ALPHA), own = facts_judged_beta(&out->sums),
                 shared = facts_judged_beta(all);
    for (int64_t i = from; i < to; i++)
        facts_judged_sums_look_again(&out->sums, c, i, x, own, shared);
    if (out->sums.furthest >= 0)
        out->furthest = c->row[out->sums.furthest];
}

facts_judgement facts_judge_rows(const facts_tensor *tensor, const facts_rule *rule,
                                 const facts_judged_row *rows)
{
    const int64_t slices = tensor->dim[0] * tensor->dim[1], of_slice = tensor->dim[2];
    facts_judged_rows c = facts_judge_weights(tensor, rule);
    facts_judged_slice *slice = malloc((size_t)(slices + 1) * sizeof *slice);
    int64_t worst;
    if (!slice)
        return (facts_judgement){ .no_memory = true };
    c.row = rows;
#pragma omp parallel for schedule(static) if (slices * of_slice >= MANY_ROWS)
    for (int64_t n = 0; n < slices; n++)
        walk(&slice[n], &c, n * of_slice, (n + 1) * of_slice);
    const facts_judged_sums all = joined(slice, slices, &worst);
#pragma omp parallel for schedule(static) if (slices * of_slice >= MANY_ROWS)
    for (int64_t n = 0; n < slices; n++)
        if (c.gates)
            walk_again(&slice[n], &c, n * of_slice, (n + 1) * of_slice, &all);
    const facts_judgement out = facts_judge_slices(tensor, rule, slice);
    free(slice);
    return out;
}
