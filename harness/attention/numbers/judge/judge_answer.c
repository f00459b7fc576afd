#include "judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "numbers/bits.h"
#include "numbers/dtype.h"
#include "numbers/fill/places.h"
#include "picture.h"

#define AS_WORD(symbol, word) word,
const char *const facts_gate_words[FACTS_GATE_COUNT] = { FACTS_GATE_LIST(AS_WORD) };
#undef AS_WORD

#define EARLY_ROWS 64     /* rows of a lie that are compared before all others */
#define UNCALIBRATED 1.05 /* T1's factor until an engine's constants are calibrated */
/* Terms below 2^-14 are subnormal in f16, and those below 2^-25 all become 0: this is not a random
 * rounding. Their sum may be larger than a term. */
#define LEAST_OF_F16 0x1p-10

/* The number of elements with an expected value: the N of T1. */
static int64_t expected_elements(const facts_tensor *t, const facts_row_expects *expects)
{
    int64_t rows = 0;
    for (int64_t b = 0; b < t->dim[0]; b++) {
        const int64_t there = t->live && t->live[b] < t->dim[2] ? t->live[b] : t->dim[2];
        rows += expects ? 0 : there;
        for (int64_t s = 0; s < there && expects; s++)
            rows += expects[b * t->dim[2] + s] == FACTS_EXPECTS_VALUE;
    }
    return rows * t->dim[1] * t->dim[3];
}

/* z sigma holds for all N elements at once but with probability alpha (Gaussian tail, union bound),
 * where roundings are independent. */
facts_limits facts_judge_limits(const facts_tensor *tensor, const facts_rule *rule)
{
    double n = fmax((double)expected_elements(tensor, rule->expects), 1);
    facts_limits limits = { .z = rule->coherent ? (double)INFINITY
                                                : sqrt(2 * log(2 * n / FACTS_ALPHA)),
                            .factor = rule->calibrated ? 1.0 : UNCALIBRATED,
                            .unit = rule->unit != 0 ? rule->unit : 1.0,
                            .dtype = tensor->dtype,
                            .has_sigma = rule->expected.sigma != NULL };
    limits.least = tensor->dtype == FATTN_F16 ? LEAST_OF_F16 * limits.unit : 0.0;
    limits.overflow = facts_dtype_bytes(tensor->dtype) == 1
                          ? INFINITY
                          : facts_dtype_max(tensor->dtype) * limits.unit;
    for (int64_t i = 0; i < FACTS_PATTERN_PERIOD; i++)
        limits.poison[i] = facts_pattern_code(tensor->dtype, rule->pattern, i);
    return limits;
}

/* ---- rows
 * --------------------------------------------------------------------------------------------------------------------
 */

typedef struct judging {
    const facts_tensor *tensor;
    const facts_rule *rule;
    const void *storage; /* NULL: of a lie */
    facts_lie lie;
    facts_limits limits;
} judging;

static facts_judged_element element_at(const judging *c, int64_t row, int64_t d)
{
    const facts_tensor *t = c->tensor;
    const facts_expected *e = &c->rule->expected;
    const facts_row at = facts_row_of(t->dim, row);
    const int64_t i = row * t->dim[3] + d;
    const facts_row_expects expects = !facts_row_exists(t, at.b, at.s) ? FACTS_EXPECTS_NOTHING
                                      : c->rule->expects ? c->rule->expects[at.b * t->dim[2] + at.s]
                                                         : FACTS_EXPECTS_VALUE;
    return (facts_judged_element){ .want = e->want[i],
                                   .sigma = e->sigma ? e->sigma[i] : 0.0,
                                   .bound = e->bound[i],
                                   .expects = (int32_t)expects,
                                   .channel = (int32_t)d,
                                   .place =
                                       facts_row_place(t, at.b, at.h, at.s) + d * t->stride[3] };
}

static void add_answer(facts_judged_row *out, const judging *c, int64_t row, int64_t d)
{
    facts_judged_element element = element_at(c, row, d);
    if (element.expects == FACTS_EXPECTS_NOTHING)
        return;
    element.code = facts_load(c->tensor->dtype, c->storage, element.place);
    facts_judged_row_add(out, &c->limits, &element);
}

static void add_lie(facts_judged_row *out, const judging *c, int64_t row, int64_t d)
{
    const facts_tensor *t = c->tensor;
    facts_judged_element element = element_at(c, row, d);
    int64_t slice = row / t->dim[2],
            from = facts_lie_from((int32_t)c->lie, row % t->dim[2], d, t->dim[2], t->dim[3]);
    facts_judged_row_add_lie(out, &c->limits, &element, (int32_t)c->lie,
                             c->rule->expected.want[slice * t->dim[2] * t->dim[3] + from]);
}

static void judge_row(facts_judged_row *out, const judging *c, int64_t row)
{
    facts_judged_row_begin(out);
    for (int64_t d = 0; d < c->tensor->dim[3]; d++)
        if (c->storage)
            add_answer(out, c, row, d);
        else
            add_lie(out, c, row, d);
}

/* Owned by the caller; NULL without memory. */
static facts_judged_row *rows_of(const judging *c)
{
    const int64_t n = facts_rows(c->tensor->dim);
    facts_judged_row *rows = malloc((size_t)(n + 1) * sizeof *rows);
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < n; row++)
        if (rows)
            judge_row(&rows[row], c, row);
    return rows;
}

facts_judgement facts_judge_tensor(const facts_tensor *tensor, const void *storage,
                                   const facts_rule *rule)
{
    judging c = { .tensor = tensor,
                  .rule = rule,
                  .storage = storage,
                  .limits = facts_judge_limits(tensor, rule) };
    facts_judged_row *rows = rows_of(&c);
    if (!rows)
        return (facts_judgement){ .no_memory = true };
    facts_judgement out = facts_judge_rows(tensor, rule, rows);
    free(rows);
    return out;
}

/* The finding of an element is that of a row with only this element. */
void facts_judge_marks(const facts_tensor *t, const void *storage, const facts_rule *rule,
                       facts_marks *marks)
{
    judging c = {
        .tensor = t, .rule = rule, .storage = storage, .limits = facts_judge_limits(t, rule)
    };
    memcpy(marks->dim, t->dim, sizeof marks->dim);
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < t->dim[0] * t->dim[1] * t->dim[2]; row++)
        for (int64_t d = 0; d < t->dim[3]; d++) {
            facts_judged_row one;
            facts_judged_row_begin(&one);
            add_answer(&one, &c, row, d);
            marks->at[row * t->dim[3] + d] =
                (unsigned char)(one.worst < 0 ? FACTS_RIGHT : one.rank);
        }
}

/* ---- verdicts
 * ----------------------------------------------------------------------------------------------------------------
 */

void facts_judgement_overrun(facts_judgement *judgement, int64_t changed)
{
    judgement->overrun += changed;
    if (changed) {
        judgement->gate = FACTS_GATE_GUARD;
        judgement->ratio = INFINITY;
    }
}

facts_verdict facts_judgement_verdict(const facts_judgement *j)
{
    if (j->overrun)
        return FACTS_VERDICT_OVERRUN;
    if (j->unwritten)
        return FACTS_VERDICT_UNWRITTEN;
    if (j->not_finite)
        return FACTS_VERDICT_NAN;
    if (j->wrong || j->ratio > 1)
        return FACTS_VERDICT_WRONG;
    return j->no_memory ? FACTS_VERDICT_INCONCLUSIVE : FACTS_VERDICT_PASS;
}

facts_verdict facts_verdict_worse(facts_verdict a, facts_verdict b)
{
    static const facts_verdict order[] = {
        FACTS_VERDICT_OVERRUN,      FACTS_VERDICT_UNWRITTEN,      FACTS_VERDICT_NAN,
        FACTS_VERDICT_WRONG,        FACTS_VERDICT_GRAPH_MISMATCH, FACTS_VERDICT_NONDETERMINISTIC,
        FACTS_VERDICT_INCONCLUSIVE, FACTS_VERDICT_MISTRUSTED
    };
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (a == order[i] || b == order[i])
            return order[i];
    return a;
}

/* ---- trust
 * -------------------------------------------------------------------------------------------------------------------
 */

facts_lie_end facts_judge_lie(const facts_judgement *found)
{
    if (found->checked == 0)
        return FACTS_LIE_SAME;
    return facts_judgement_verdict(found) == FACTS_VERDICT_PASS ? FACTS_LIE_PASSES
                                                                : FACTS_LIE_CAUGHT;
}

/* Does one of a few rows detect it already? Then the other rows cannot change the result. */
static bool caught_early(const judging *c)
{
    const int64_t rows = c->tensor->dim[0] * c->tensor->dim[1] * c->tensor->dim[2];
    for (int64_t i = 0; i < EARLY_ROWS && i < rows; i++) {
        facts_judged_row row;
        judge_row(&row, c, i * (rows / EARLY_ROWS + 1) % rows);
        if (row.checked > 0 && (row.wrong > 0 || row.not_finite > 0))
            return true;
    }
    return false;
}

/* Without memory the lie counts as not applicable, so the data is trusted. The judgement itself
 * then fails for the same reason. */
static facts_lie_end end_of_lie(const facts_tensor *tensor, const facts_rule *rule, facts_lie lie)
{
    judging c = {
        .tensor = tensor, .rule = rule, .lie = lie, .limits = facts_judge_limits(tensor, rule)
    };
    if (caught_early(&c))
        return FACTS_LIE_CAUGHT;
    facts_judged_row *rows = rows_of(&c);
    if (!rows)
        return FACTS_LIE_SAME;
    const facts_judgement found = facts_judge_rows(tensor, rule, rows);
    free(rows);
    return facts_judge_lie(&found);
}

bool facts_judge_trusts(const facts_tensor *tensor, const facts_rule *rule)
{
    if (end_of_lie(tensor, rule, FACTS_LIE_ZERO) == FACTS_LIE_PASSES)
        return false;
    facts_lie_end rolled = end_of_lie(tensor, rule, FACTS_LIE_ROW);
    if (rolled == FACTS_LIE_SAME)
        rolled = end_of_lie(tensor, rule, FACTS_LIE_CHANNEL);
    return rolled != FACTS_LIE_PASSES;
}

/* The second step of the comparison: tests over all rows (judge_sums.h). docs/numerics.md section
 * 3; the line above each formula is from there. Two passes over the rows: one thread takes a (b,h)
 * slice, on a GPU one block. The slices are then combined in their order, so any number of threads
 * gives the same bits. */

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

uint32_t facts_pattern_scalar(facts_pattern pattern)
{
    return pattern == FACTS_PATTERN_A ? facts_pattern_code(FATTN_F32, pattern, 0)
                                      : facts_encode(FATTN_F32, 1e30);
}

double facts_judge_largest(const facts_tensor *t, const void *storage,
                           const facts_row_expects *expects, double unit, bool *saturated)
{
    double largest = 0.0, end = facts_dtype_max(t->dtype);
#pragma omp parallel for schedule(static) reduction(max : largest)
    for (int64_t row = 0; row < facts_rows(t->dim); row++) {
        const facts_row at = facts_row_of(t->dim, row);
        if (!facts_row_exists(t, at.b, at.s) ||
            (expects && expects[at.b * t->dim[2] + at.s] != FACTS_EXPECTS_VALUE))
            continue;
        int64_t place = facts_row_place(t, at.b, at.h, at.s);
        for (int64_t d = 0; d < t->dim[3]; d++) {
            double x = fabs(
                facts_decode(t->dtype, facts_load(t->dtype, storage, place + d * t->stride[3])));
            largest = x <= end && x > largest ? x : largest;
        }
    }
    if (saturated)
        *saturated = largest >= end;
    return largest * unit;
}

/* |got - want| against the nearer of its two sides, which differ where a zero, or another element,
 * may come to lie above the largest. */
static double between(const facts_amax *rule, double got)
{
    double room = got >= rule->want ? rule->most - rule->want : rule->want - rule->least,
           off = fabs(got - rule->want);
    return off == 0 ? 0.0 : room > 0 ? off / room : INFINITY;
}

facts_judgement facts_judge_amax(const facts_amax *rule, uint32_t code, facts_pattern pattern)
{
    double got = facts_decode(FATTN_F32, code);
    facts_judgement out = { .gate = FACTS_GATE_AMAX, .got = got, .want = rule->want, .checked = 1 };
    out.bound = got >= rule->want ? rule->most - rule->want : rule->want - rule->least;
    if (code == facts_pattern_scalar(pattern) && !(got >= rule->least && got <= rule->most))
        out.unwritten = 1;
    else if (!isfinite(got))
        out.not_finite = 1;
    if (out.unwritten || out.not_finite) {
        out.gate = out.unwritten ? FACTS_GATE_POISON : FACTS_GATE_T0;
        out.ratio = out.gates[out.gate] = INFINITY;
        return out;
    }
    out.ratio = between(rule, got);
    if (!rule->saturated && !isnan(rule->stored) && got != rule->stored) {
        const double cast = fmax(rule->u * got, rule->half),
                     apart = cast > 0 ? fabs(got - rule->stored) / cast : INFINITY;
        if (apart > 1.0 &&
            apart > out.ratio) { /* the amax is not of this tensor: reports the tensor's own */
            out.want = rule->stored;
            out.bound = cast;
        }
        out.ratio = fmax(out.ratio, apart);
    }
    out.gates[FACTS_GATE_AMAX] = out.ratio;
    out.wrong = out.ratio > 1;
    return out;
}

static facts_row_expects expects_of(const facts_tensor *t, const facts_row_expects *expects,
                                    int64_t i)
{
    int64_t s = i / t->dim[3] % t->dim[2], b = i / (t->dim[3] * t->dim[2] * t->dim[1]);
    return !facts_row_exists(t, b, s) ? FACTS_EXPECTS_NOTHING
           : expects                  ? expects[b * t->dim[2] + s]
                                      : FACTS_EXPECTS_VALUE;
}

static int64_t place_of(const facts_tensor *t, int64_t i)
{
    int64_t at[4];
    facts_index_of(t->dim, i, at);
    return facts_element_place(t, at);
}

int64_t facts_judge_repeat(const facts_tensor *tensor, const void *a, const void *b,
                           const facts_row_expects *expects, int64_t first[4])
{
    return facts_judge_repeat_close(tensor, a, b, expects, NULL, first);
}

static double slack_at(const facts_slack *slack, int64_t i)
{
    return slack->share * slack->bound[i] + (slack->parts ? slack->parts[i] : 0.0);
}

int64_t facts_judge_repeat_close(const facts_tensor *tensor, const void *a, const void *b,
                                 const facts_row_expects *expects, const facts_slack *slack,
                                 int64_t first[4])
{
    int64_t n = facts_elements(tensor->dim), different = 0, least = n;
#pragma omp parallel for schedule(static) reduction(+ : different) reduction(min : least)
    for (int64_t i = 0; i < n; i++) {
        facts_row_expects is = expects_of(tensor, expects, i);
        if (is != FACTS_EXPECTS_VALUE &&
            (is != FACTS_EXPECTS_NUMBER || slack)) /* outside a sample the slack is unknown */
            continue;
        int64_t place = place_of(tensor, i);
        uint32_t x = facts_load(tensor->dtype, a, place), y = facts_load(tensor->dtype, b, place);
        if (x != y && !(slack && facts_judged_close(tensor->dtype, x, y, slack_at(slack, i)))) {
            different++;
            least = i < least ? i : least;
        }
    }
    if (different && first)
        facts_index_of(tensor->dim, least, first);
    return different;
}

uint64_t facts_judge_bits(const facts_tensor *tensor, const void *storage)
{
    int64_t n = facts_elements(tensor->dim);
    uint64_t sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        if (expects_of(tensor, NULL, i) == FACTS_EXPECTS_VALUE)
            sum += facts_bits_of(i, facts_load(tensor->dtype, storage, place_of(tensor, i)));
    return sum;
}
