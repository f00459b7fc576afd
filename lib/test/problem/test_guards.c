/* The table of guards is complete and readable, and the facts that guards ask for are right. What
 * each guard holds for is in test_guarded.c. */
#include <criterion/criterion.h>
#include <string.h>

#include "fattn/policy.h"
#include "policy/guard_facts.h"
#include "policy/rules.h"

static fattn_problem resolved(const fattn_problem *p)
{
    fattn_problem out;
    cr_assert_eq(fattn_problem_resolve(p, &out), FATTN_OK, "%s", fattn_last_error());
    return out;
}

static fattn_problem plain(void)
{
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.batch = 2, p.heads_q = 8, p.seq_q = p.seq_kv = 512, p.dim_qk = 64;
    return p;
}

Test(guards, are_rules_that_say_why_where_and_what_instead)
{
    const fattn_problem p = plain(), whole = resolved(&p);
    fattn__rule_list copy;
    cr_expect_gt(fattn_guard_count(), 0);
    cr_expect_null(fattn_guard_at(fattn_guard_count()));
    for (size_t i = 0; i < fattn_guard_count(); i++) {
        const fattn_rule *rule = fattn_guard_at(i);
        cr_expect_eq(fattn__rules_copy(&copy, rule, 1), FATTN_OK, "%s", fattn_last_error());
        fattn__rules_free(&copy);
        cr_assert(rule->name && rule->why && rule->link && rule->when && rule->holds &&
                      rule->remedy,
                  "guard %zu", i);
        cr_expect_eq(rule->action, FATTN_DENY);
        cr_expect_eq(strchr(rule->why, '{') != NULL, rule->say != NULL,
                     "%s: a sentence with values needs `say`", rule->name);
        char text[768];
        fattn__rule_text(text, sizeof text, rule, &whole);
        cr_expect_null(strchr(text, '{'), "%s", text);
    }
}

/* One guard may have a row for each engine and each range of versions. They share the condition,
 * and no two are the same. */
Test(guards, with_one_name_are_one_condition)
{
    for (size_t i = 0; i < fattn_guard_count(); i++) {
        for (size_t other = 0; other < i; other++) {
            const fattn_rule *a = fattn_guard_at(i), *b = fattn_guard_at(other);
            if (strcmp(a->name, b->name) != 0)
                continue;
            cr_expect(a->holds == b->holds && strcmp(a->when, b->when) == 0 &&
                          a->knob_count == b->knob_count,
                      "%s", a->name);
            cr_expect(a->engine != b->engine || a->cudnn_from != b->cudnn_from ||
                          a->sm_from != b->sm_from,
                      "%s: twice", a->name);
        }
    }
}

/* ---- facts
 * --------------------------------------------------------------------------------------------------------------------
 */

Test(facts, an_order_of_memory_ignores_gaps)
{
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.batch = 2, p.heads_q = 4, p.seq_q = p.seq_kv = 32, p.dim_qk = 64;
    memcpy(p.q_strides, (int64_t[4]){ 3 * 4 * 64 * 32, 64, 3 * 4 * 64, 1 },
           32); /* interleaved with K and V */
    memcpy(p.k_strides, (int64_t[4]){ 4 * 64, 64, 2 * 4 * 64, 1 }, 32);
    memcpy(p.v_strides, (int64_t[4]){ 0, 64, 4 * 64, 1 }, 32);
    p = resolved(&p);
    cr_expect_str_eq(fattn__fact_order_word(&p, FATTN__ROLE_Q), "bshd");
    cr_expect_str_eq(fattn__fact_order_word(&p, FATTN__ROLE_K), "sbhd");
    cr_expect_str_eq(fattn__fact_order_word(&p, FATTN__ROLE_V), "unset",
                     "a broadcast axis has no place");
    p = (fattn_problem)FATTN_PROBLEM_INIT;
    p.batch = 2, p.heads_q = 1, p.seq_q = p.seq_kv = 32, p.dim_qk = 64;
    p = resolved(&p);
    cr_expect(fattn__fact_order(&p, FATTN__ROLE_Q, FATTN_FORMAT_BSHD));
    cr_expect(fattn__fact_order(&p, FATTN__ROLE_Q, FATTN_FORMAT_BHSD),
              "one head: both orders hold");
    cr_expect_not(fattn__fact_order(&p, FATTN__ROLE_Q, FATTN_FORMAT_SBHD));
}
