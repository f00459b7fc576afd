#include "check.h"

#include <math.h>
#include <string.h>

static const facts_check_rule *rule_of(const facts_problem *p)
{
    static const facts_check_rule *const rules[FACTS_CHECKS] = {
        [FACTS_CHECK_COUNT] = &facts_probe_count,
        [FACTS_CHECK_READOUT] = &facts_probe_readout,
        [FACTS_CHECK_KEEP] = &facts_probe_keep,
        [FACTS_CHECK_DS] = &facts_probe_ds,
        [FACTS_CHECK_POW2] = &facts_probe_pow2,
        [FACTS_CHECK_PERMUTE] = &facts_probe_permute,
        [FACTS_CHECK_SUM_ROWS] = &facts_law_sum_rows,
        [FACTS_CHECK_LINEAR] = &facts_law_linear,
        [FACTS_CHECK_SHIFT] = &facts_law_shift,
        [FACTS_CHECK_REPEAT_HEADS] = &facts_law_repeat_heads,
        [FACTS_CHECK_OTHERS] = &facts_law_others,
        [FACTS_CHECK_KEY_ORDER] = &facts_law_key_order,
        [FACTS_CHECK_SPLIT] = &facts_law_split,
        [FACTS_CHECK_PREFIX] = &facts_law_prefix,
        [FACTS_CHECK_LENGTH] = &facts_law_length,
        [FACTS_CHECK_WINDOW] = &facts_law_window,
        [FACTS_CHECK_OFF_BY_ONE] = &facts_law_off_by_one,
        [FACTS_CHECK_DROPOUT_ZERO] = &facts_law_dropout_zero,
        [FACTS_CHECK_RAGGED] = &facts_law_ragged,
        [FACTS_CHECK_PAGED] = &facts_law_paged,
        [FACTS_CHECK_NONFINITE] = &facts_law_nonfinite,
        [FACTS_CHECK_IDENTITIES] = &facts_identities,
    };
    return rules[p->check];
}

int facts_check_runs(const facts_problem *base)
{
    const facts_check_rule *rule = rule_of(base);
    return !rule ? 0 : rule->runs ? rule->runs(base) : 1;
}

bool facts_check_only_records(const facts_problem *base)
{
    const facts_check_rule *rule = rule_of(base);
    return rule && rule->records;
}

bool facts_check_takes_another_kernel(const facts_problem *base)
{
    const facts_check_rule *rule = rule_of(base);
    return rule && !rule->bits;
}

void facts_check_ask(facts_problem *out, const facts_problem *base, int number)
{
    const facts_check_rule *rule = rule_of(base);
    *out = *base;
    out->check = FACTS_CHECK_NONE;
    out->exec = FACTS_EXEC_EAGER;
    out->ask.capture = base->ask.capture;
    out->threads = out->repeat = 1;
    out->own_forward = false;
    if (rule->ask)
        rule->ask(out, base, number);
}

void facts_check_write(const facts_view *run, const facts_view *base, const facts_view before[],
                       int number)
{
    const facts_check_rule *rule = rule_of(base->problem);
    if (rule->put)
        rule->put(run, base, before, number);
}

void facts_check_give(const facts_view *run, const facts_view *base, const facts_view before[],
                      int number)
{
    const facts_check_rule *rule = rule_of(base->problem);
    if (rule->give)
        rule->give(run, base, before, number);
}

void facts_check_hold(facts_held *out, const facts_view *base, const facts_view run[])
{
    *out = (facts_held){ .law = "" };
    rule_of(base->problem)->hold(out, base, run);
}

/* ---- comparing
 * ------------------------------------------------------------------------------------------------------------
 */

void facts_held_note(facts_held *held, const char *law, facts_tensor_id id, const int64_t at[4],
                     double got, double want, double bound)
{
    double off = fabs(got - want), ratio = got == want ? 0.0 : bound > 0 ? off / bound : INFINITY;
    if (isnan(ratio))
        ratio = INFINITY;
    held->compared++;
    held->wrong += ratio > 1.0;
    if (held->compared > 1 && ratio <= held->ratio)
        return;
    held->ratio = ratio;
    held->law = law;
    held->id = id;
    memcpy(held->at, at, sizeof held->at);
    held->got = got;
    held->want = want;
    held->bound = bound;
}

bool facts_repeats(const facts_problem *p, facts_tensor_id id)
{
    return (id != FACTS_TENSOR_DQ && id != FACTS_TENSOR_DBIAS) || p->ask.deterministic;
}

/* A kernel that rescales lazily reports a Max below the true one, and its value may depend on
 * everything. For such a pair, the log-sum-exp is compared. */
static void hold_pair(facts_held *held, const facts_same *same)
{
    const facts_view *a = same->a, *b = same->b;
    for (facts_walk w = facts_walk_of(a->problem->tensor[FACTS_TENSOR_MAX].dim);
         facts_walk_on(&w);) {
        int64_t to[4] = { w.at[0], w.at[1], w.at[2], w.at[3] };
        double lse[2], tau[2];
        if ((same->to && !same->to(same, w.at, to)) ||
            !facts_view_owes(a, FACTS_TENSOR_MAX, w.at) ||
            !facts_view_owes(b, FACTS_TENSOR_MAX, to) ||
            !facts_view_lse(a, w.at, &lse[0], &tau[0]) || !facts_view_lse(b, to, &lse[1], &tau[1]))
            continue;
        facts_held_note(held, same->law, FACTS_TENSOR_SUM_EXP, to, lse[1], lse[0], tau[0] + tau[1]);
    }
}

void facts_held_same(facts_held *held, const facts_same *same)
{
    const facts_view *a = same->a, *b = same->b;
    double factor = same->factor != 0 ? same->factor : 1.0;
    if (!facts_view_has(a, same->id) || !facts_view_has(b, same->id))
        return;
    bool bitwise = same->bitwise && facts_repeats(a->problem, same->id),
         lazy = same->id == FACTS_TENSOR_MAX || same->id == FACTS_TENSOR_SUM_EXP;
    if (lazy && !bitwise && facts_view_has(a, FACTS_TENSOR_MAX) &&
        facts_view_has(a, FACTS_TENSOR_SUM_EXP)) {
        if (same->id == FACTS_TENSOR_SUM_EXP)
            hold_pair(held, same);
        return;
    }
    facts_limits limits_a = facts_view_limits(a, same->id),
                 limits_b = facts_view_limits(b, same->id);
    for (facts_walk w = facts_walk_of(a->problem->tensor[same->id].dim); facts_walk_on(&w);) {
        int64_t to[4] = { w.at[0], w.at[1], w.at[2], w.at[3] };
        if (same->to && !same->to(same, w.at, to))
            continue;
        if (!facts_view_owes(a, same->id, w.at) || !facts_view_owes(b, same->id, to))
            continue;
        double want = factor * facts_view_get(a, same->id, w.at),
               got = facts_view_get(b, same->id, to);
        if (bitwise && fabs(want) < fabs(factor) * same->least)
            continue;
        double bound = bitwise ? 0.0
                               : fabs(factor) * facts_view_tolerance(a, &limits_a, same->id, w.at) +
                                     facts_view_tolerance(b, &limits_b, same->id, to);
        held->bits += !bitwise && got != want;
        facts_held_note(held, same->law, same->id, to, got, want, bound);
    }
}

void facts_held_all(facts_held *held, const facts_view *a, const facts_view *b, facts_same same)
{
    same.a = a;
    same.b = b;
    for (same.id = 0; same.id < FACTS_TENSOR_COUNT; same.id++)
        if (facts_tensor_is_output(a->problem, same.id) && same.id != FACTS_TENSOR_RNG_DUMP)
            facts_held_same(held, &same);
}
