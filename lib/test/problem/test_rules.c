/* Rules: where they hold, and what they say. */
#include "fattn/policy.h"
#include "policy/rules.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fattn_problem control(void)
{
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.batch = 2, p.heads_q = 8, p.seq_q = p.seq_kv = 512, p.dim_qk = 128;
    return p;
}

static fattn_problem resolved(void)
{
    fattn_problem p = control(), out;
    cr_assert_eq(fattn_problem_resolve(&p, &out), FATTN_OK, "%s", fattn_last_error());
    return out;
}

static bool has_the_head_dim_of(const char *when, const fattn_problem *p)
{
    return p->dim_qk == atoi(when);
}

/* heads_k is 0 until the problem is resolved. */
static bool has_as_many_heads(const char *when, const fattn_problem *p)
{
    return when == NULL && p->heads_k == p->heads_q;
}

/* Both ends belong to a range, and an open end has no edge. */
Test(holds, in_its_versions_architectures_pass_and_condition)
{
    static const struct {
        bool want;
        int cudnn_from, cudnn_to, sm_from, sm_to, version, sm;
    } rows[] = {
        { true, 91400, 92599, 90, 100, 91400, 90 },  { true, 91400, 92599, 90, 100, 92599, 100 },
        { false, 91400, 92599, 90, 100, 91399, 90 }, { false, 91400, 92599, 90, 100, 92600, 90 },
        { false, 91400, 92599, 90, 100, 91400, 89 }, { false, 91400, 92599, 90, 100, 91400, 103 },
        { true, 0, 91500, 0, 0, 90000, 90 },         { true, 0, 91500, 0, 0, 91500, 90 },
        { false, 0, 91500, 0, 0, 91501, 90 },        { false, 91500, 0, 0, 0, 91499, 90 },
        { true, 91500, 0, 0, 0, 99999, 90 },         { true, 0, 0, 0, 100, 92000, 80 },
        { false, 0, 0, 0, 100, 92000, 101 },         { false, 0, 0, 100, 0, 92000, 99 },
        { true, 0, 0, 100, 0, 92000, 120 },
    };
    fattn_rule rule = FATTN_RULE_INIT;
    fattn_problem p = control();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rule.cudnn_from = rows[i].cudnn_from, rule.cudnn_to = rows[i].cudnn_to;
        rule.sm_from = rows[i].sm_from, rule.sm_to = rows[i].sm_to;
        cr_expect_eq(fattn_rule_holds(&rule, &p, rows[i].version, rows[i].sm), rows[i].want,
                     "row %zu", i);
    }
    rule = (fattn_rule)FATTN_RULE_INIT;
    rule.pass = FATTN_FORWARD, rule.when = "128", rule.holds = has_the_head_dim_of;
    cr_expect(fattn_rule_holds(&rule, &p, 91400, 90));
    p.pass = FATTN_BACKWARD;
    cr_expect_not(fattn_rule_holds(&rule, &p, 91400, 90));
    p = control(), p.dim_qk = 64;
    cr_expect_not(fattn_rule_holds(&rule, &p, 91400, 90));
}

Test(holds, by_a_condition_that_sees_the_resolved_problem)
{
    fattn_rule rule = FATTN_RULE_INIT;
    rule.holds = has_as_many_heads;
    fattn_problem p = control();
    cr_expect(fattn_rule_holds(&rule, &p, 92000, 90));
    p.heads_k = 2;
    cr_expect_not(fattn_rule_holds(&rule, &p, 92000, 90));
}

Test(holds, never_for_what_is_no_rule_or_no_problem)
{
    fattn_rule rule = FATTN_RULE_INIT;
    fattn_problem p = control();
    cr_expect(fattn_rule_holds(&rule, &p, 92000, 90));
    cr_expect_not(fattn_rule_holds(NULL, &p, 92000, 90));
    cr_expect_not(fattn_rule_holds(&rule, NULL, 92000, 90));
    p.batch = 0;
    cr_expect_not(fattn_rule_holds(&rule, &p, 92000, 90));
    p = control();
    rule.when = "128";
    cr_expect_not(fattn_rule_holds(&rule, &p, 92000, 90), "words without a function");
    rule.when = NULL, rule.struct_size = 4;
    cr_expect_not(fattn_rule_holds(&rule, &p, 92000, 90));
}

/* ---- configurations
 * -----------------------------------------------------------------------------------------------------------
 */

/* ---- sentences
 * ----------------------------------------------------------------------------------------------------------------
 */

static void say_queries(char *out, size_t capacity, const char *why, const fattn_problem *p)
{
    snprintf(out, capacity, "%s: %d queries", why, (int)p->seq_q);
}

static void say_nothing(char *out, size_t capacity, const char *why, const fattn_problem *p)
{
    (void)out, (void)capacity, (void)why, (void)p;
}

static void say_much(char *out, size_t capacity, const char *why, const fattn_problem *p)
{
    (void)why, (void)p;
    memset(out, 'x', capacity - 1);
    out[capacity - 1] = '\0';
}

Test(text, is_why_or_what_the_rule_says_of_the_problem)
{
    const fattn_problem p = resolved();
    fattn_rule rule = FATTN_RULE_INIT;
    char text[768];
    rule.name = "n", rule.why = "why {seq_q} 100%";
    fattn__rule_text(text, sizeof text, &rule, &p);
    cr_expect_str_eq(text, "rule n: why {seq_q} 100%");
    rule.link = "l";
    fattn__rule_text(text, sizeof text, &rule, &p);
    cr_expect_str_eq(text, "rule n: why {seq_q} 100% (l)");
    rule.say = say_queries, rule.why = "why";
    fattn__rule_text(text, sizeof text, &rule, &p);
    cr_expect_str_eq(text, "rule n: why: 512 queries (l)");
    rule.say = say_nothing;
    fattn__rule_text(text, sizeof text, &rule, &p);
    cr_expect_str_eq(text, "rule n:  (l)");
}

Test(text, is_cut_where_there_is_no_room)
{
    const fattn_problem p = resolved();
    fattn_rule rule = FATTN_RULE_INIT;
    char text[768], narrow[10];
    rule.name = "n", rule.why = "why", rule.say = say_much;
    fattn__rule_text(text, sizeof text, &rule, &p);
    cr_expect_eq(strlen(text), strlen("rule n: ") + 511);
    fattn__rule_text(narrow, sizeof narrow, &rule, &p);
    cr_expect_str_eq(narrow, "rule n: x");
}

/* ---- copies
 * -------------------------------------------------------------------------------------------------------------------
 */
