/* The sums over rows: the second step of the comparison. The rows of each (b,h) slice are added to
 * facts_judged_sums in two passes. One thread on the host, or one block on a GPU, adds a slice,
 * with the same inline functions. facts_judge_slices (judge.h) makes a judgement from the slices.
 * The order of adding changes the last bits of the sums, but no count and no worst row.
 *
 * Compiled by C and by CUDA C++. docs/numerics.md, section 3; a line of it stands above each
 * formula. */
#ifndef FACTS_JUDGE_SUMS_H
#define FACTS_JUDGE_SUMS_H

#include "judge_row.h"

#define FACTS_ALPHA 1e-8
#define FACTS_GAIN_KEYS 16 /* TG, TS: rows with at least this number of effective keys ... */
#define FACTS_GAIN_ROWS 32 /* ... and at least this number of such rows */

/* The rows of a tensor, and their properties beside the expected values. */
typedef struct facts_judged_rows {
    const facts_judged_row *row;
    const double *nu, *neff;
    int64_t channels;
    int32_t gates, gains; /* gates: T2 and T3 apply; gains: TG and TS apply */
    int32_t aligned;      /* the answers have the direction in which their errors are largest */
} facts_judged_rows;

/* The sums of some rows. */
typedef struct facts_judged_sums {
    double gates[FACTS_GATE_COUNT]; /* the largest ratio of each gate */
    int64_t checked, not_finite, unwritten, wrong, padded_poison, padded_zero, padded_other;
    uint64_t bits; /* for rows that kernels compared: the tensor's hash */
    int64_t at;    /* the row with the worst element; -1: none */
    int64_t weighed, live;
    double squares;
    double mean, inverse,
        largest; /* T3, for live rows: sums of q_i and 1/nu_i, and the largest 1/nu_i */
    int64_t gain_rows, gain_elements;
    double gain, power,
        model;       /* TG, for rows with many keys: sums of r_i, X_i and (dim/nu_i) X_i */
    double heaviest; /* the largest (dim/nu_i) X_i */
    double shift, level, spread; /* TS, for the same rows: sums of E/sigma, of |sum_c want/sigma|,
                                    of the variances of the first */
    double scatter, scatter_of_all; /* from the second pass: scatter around the beta of the slice,
                                       and around that of all slices */
    int64_t furthest;               /* T2, from the second pass; -1: no row is live */
    double each;
} facts_judged_sums;

/* A slice: its sums, and the rows that they refer to. */
typedef struct facts_judged_slice {
    facts_judged_sums sums;
    facts_judged_row worst, furthest;
} facts_judged_slice;

/* The values of a row that the passes use. They are read at once, so that a GPU waits once. */
typedef struct facts_weighed_row {
    double nu, neff; /* nu 0: not live; neff 0: few keys, or not needed */
} facts_weighed_row;

FACTS_BOTH facts_weighed_row facts_judged_weights(const facts_judged_rows *c, int64_t i)
{
    facts_weighed_row out;
    out.nu = c->gates ? c->nu[i] : 0.0;
    out.neff = c->gains ? c->neff[i] : 0.0;
    return out;
}

FACTS_BOTH int facts_judged_is_live(const facts_judged_row *row, const facts_weighed_row *as)
{
    return row->weighed > 0 && as->nu > 0;
}

FACTS_BOTH int facts_judged_has_many_keys(const facts_weighed_row *as)
{
    return as->neff >= FACTS_GAIN_KEYS;
}

/* q_i = mean_c (E/sigma)^2. Its mean is at most 1 if the error model is right. */
FACTS_BOTH double facts_judged_mean_square(const facts_judged_row *row)
{
    return row->squares / (double)row->weighed;
}

/* A sum that is NaN fails every gate. */
FACTS_BOTH double facts_judged_ratio(double statistic, double threshold)
{
    double ratio = statistic / threshold;
    return ratio == ratio ? ratio : (double)INFINITY;
}

/* Of equal rows, the earlier one is the worse. */
FACTS_BOTH int facts_judged_is_worse(const facts_judged_row *a, int64_t at_a,
                                     const facts_judged_row *b, int64_t at_b)
{
    if (a->rank != b->rank)
        return a->rank > b->rank;
    return a->ratio != b->ratio ? a->ratio > b->ratio : at_a < at_b;
}

FACTS_BOTH void facts_judged_sums_begin(facts_judged_sums *out)
{
    memset(out, 0, sizeof *out);
    out->at = out->furthest = -1;
}

/* ---- the first pass
 * ---------------------------------------------------------------------------------------------------------
 */

/* TG, TS: the factor of the variance of a row's errors. Each error is divided by its sigma,
 * multiplied by a weight, and summed. The variance is at most this factor times the sum of the
 * squared weights. The factor is dim/nu if the errors do not follow the weights, and dim/sqrt(nu)
 * for any weights. nu is at most dim^2 / tr(C^2). C is the covariance of the errors with diagonal
 * 1; its largest eigenvalue is below sqrt(tr(C^2)). */
FACTS_BOTH double facts_judged_spread(const facts_judged_rows *c, const facts_weighed_row *as)
{
    return (double)c->channels / (c->aligned ? sqrt(as->nu) : as->nu);
}

FACTS_BOTH void facts_judged_sums_add_live(facts_judged_sums *out, const facts_judged_rows *c,
                                           const facts_judged_row *row, const facts_weighed_row *as)
{
    const double inverse = 1 / as->nu;
    out->live++;
    out->mean += facts_judged_mean_square(row);
    out->inverse += inverse;
    out->largest = fmax(out->largest, inverse);
    if (!facts_judged_has_many_keys(as))
        return;
    out->gain_rows++;
    out->gain_elements += row->weighed;
    out->gain += row->gain;
    out->power += row->power;
    const double may = facts_judged_spread(c, as) * row->power;
    out->model += may;
    out->heaviest = fmax(out->heaviest, may);
    out->shift += row->shift;
    out->level += fabs(row->level);
    out->spread += facts_judged_spread(c, as) * (double)c->channels;
}

FACTS_BOTH void facts_judged_sums_add(facts_judged_sums *out, const facts_judged_rows *c, int64_t i)
{
    const facts_judged_row row = c->row[i];
    const facts_weighed_row as = facts_judged_weights(c, i);
    out->checked += row.checked;
    out->not_finite += row.not_finite;
    out->unwritten += row.unwritten;
    out->wrong += row.wrong;
    out->padded_poison += row.padded_poison;
    out->padded_zero += row.padded_zero;
    out->padded_other += row.padded_other;
    out->bits += row.bits;
    out->squares += row.squares;
    out->weighed += row.weighed;
#define AS_LARGEST(symbol, word)                                                                   \
    if (row.worst >= 0 && row.gate == FACTS_GATE_##symbol)                                         \
        out->gates[FACTS_GATE_##symbol] = fmax(out->gates[FACTS_GATE_##symbol], row.ratio);
    FACTS_GATE_LIST(AS_LARGEST) /* not gates[row.gate]: registers of a GPU have no index */
#undef AS_LARGEST
    if (row.worst >= 0 &&
        (out->at < 0 || facts_judged_is_worse(&row, i, &c->row[out->at], out->at)))
        out->at = i;
    if (facts_judged_is_live(&row, &as))
        facts_judged_sums_add_live(out, c, &row, &as);
}

/* Adds `part`, except for the worst row. */
FACTS_BOTH void facts_judged_sums_join(facts_judged_sums *out, const facts_judged_sums *part)
{
    int gate;
    for (gate = 0; gate < FACTS_GATE_COUNT; gate++)
        out->gates[gate] = fmax(out->gates[gate], part->gates[gate]);
    out->checked += part->checked;
    out->not_finite += part->not_finite;
    out->unwritten += part->unwritten;
    out->wrong += part->wrong;
    out->padded_poison += part->padded_poison;
    out->padded_zero += part->padded_zero;
    out->padded_other += part->padded_other;
    out->bits += part->bits;
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
    out->heaviest = fmax(out->heaviest, part->heaviest);
    out->shift += part->shift;
    out->level += part->level;
    out->spread += part->spread;
}

/* ---- the second pass
 * --------------------------------------------------------------------------------------------------------
 */

/* TG: beta = sum(E ref/sigma^2) / X, with X = sum ref^2/sigma^2, is the least-squares factor by
 * which the answer is too large. False: too few rows, or too small answers, to detect a gain. */
FACTS_BOTH int facts_judged_detects_gain(const facts_judged_sums *of)
{
    return of->gain_rows >= FACTS_GAIN_ROWS && of->power > (double)of->gain_elements;
}

FACTS_BOTH double facts_judged_beta(const facts_judged_sums *of)
{
    return facts_judged_detects_gain(of) ? of->gain / of->power : 0.0;
}

/* T2: q_i <= h(ln(Nr/alpha), nu_i), h(x, nu) = 1 + 2 sqrt(x/nu) + 2 x/nu: Laurent and Massart's
 * bound of a chi-square's upper tail with nu degrees of freedom, for all Nr rows at once. `x`:
 * ln(Nr/alpha); own and shared: beta of the slice, and of all. */
FACTS_BOTH void facts_judged_sums_look_again(facts_judged_sums *out, const facts_judged_rows *c,
                                             int64_t i, double x, double own, double shared)
{
    const facts_judged_row *row = &c->row[i];
    const facts_weighed_row as = facts_judged_weights(c, i);
    const double gain = row->gain, power = row->power;
    if (!facts_judged_is_live(row, &as))
        return;
    const double nu = as.nu, ratio = facts_judged_ratio(facts_judged_mean_square(row),
                                                        1 + 2 * sqrt(x / nu) + 2 * x / nu);
    if (out->furthest < 0 || ratio > out->each) {
        out->furthest = i;
        out->each = ratio;
    }
    if (!facts_judged_has_many_keys(&as))
        return;
    const double from_own = gain - own * power, from_shared = gain - shared * power;
    out->scatter += from_own * from_own;
    out->scatter_of_all += from_shared * from_shared;
}

#endif
