#include "judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "numbers/dtype.h"
#include "numbers/fill/layout.h"
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
