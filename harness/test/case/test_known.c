/* The library's guards against the cases of the known failures that they come from: each guard
 * holds for a case of its file, in its versions and on its architectures alone, and for no control.
 */
#include <criterion/criterion.h>
#include <fattn/fattn.h>
#include <fattn/policy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numbers/fill/score_inputs.h"
#include "problem/case_problem.h"
#include "suites/planned_cases.h"

static facts_error error;
static facts_problem p;

static const char *cases_folder(void)
{
    static char folder[4096];
    const char *source = getenv("FACTS_SOURCE");
    snprintf(folder, sizeof folder, "%s/cases", source ? source : ".");
    return folder;
}

/* The cases of the failure that a guard is named after: "id" or "id/label". */
static facts_cases *cases_of(const char *guard)
{
    char text[200];
    const char *const texts[] = { text };
    facts_cases *cases;
    snprintf(text, sizeof text, "regress/%.*s", (int)strcspn(guard, "/"), guard);
    cr_assert_eq(facts_cases_expand(&facts_attention_language, &cases, texts, 1, cases_folder(),
                                    NULL, &error),
                 0, "%s", error.text);
    return cases;
}

static int32_t inside(int32_t from, int32_t to, int32_t otherwise)
{
    return from ? from : to ? to : otherwise;
}

/* Does the guard hold for this case, in the first of its versions and on the first of its
 * architectures? Leaves the problem in `p`.
 */
static bool holds(const fattn_rule *rule, const char *name)
{
    facts_case c;
    fattn_score_mod *mod = NULL; /* a test's program ends before anybody misses the memory */
    cr_assert(facts_case_parse(&c, name, &error), "%s", error.text);
    if (facts_problem_resolve(&p, &c, &error) != FACTS_RESOLVED ||
        facts_mod_create(&mod, &p) != FATTN_OK)
        return false;
    p.ask.score_mod = mod;
    return fattn_rule_holds(rule, &p.ask, inside(rule->cudnn_from, rule->cudnn_to, 92000),
                            inside(rule->sm_from, rule->sm_to, 90));
}

/* A group that shows the failure; of the others, "guarded" ones hold with guards on. */
static bool is_affected(const char *group)
{
    const char *last = strrchr(group, '/');
    return !last || (!strstr(last, "controls") && !strstr(last, "guarded"));
}

/* A neighbour that must be right. One that is asked without guards is right although a guard may
 * hold: lengths, say, are in memory, where no guard sees them. */
static bool is_control(const facts_planned *planned)
{
    const char *last = strrchr(planned->group, '/');
    return last && strstr(last, "controls") && !strstr(planned->name, "guards=off");
}

/* The case language has no bias of 8 bits. */
static bool has_no_case(const fattn_rule *rule)
{
    return strcmp(rule->name, "bool-mask-planner-crash/bias-8-bit") == 0;
}

static void check_edges(const fattn_rule *rule)
{
    const int32_t version = inside(rule->cudnn_from, rule->cudnn_to, 92000),
                  sm = inside(rule->sm_from, rule->sm_to, 90);
    cr_expect(fattn_rule_holds(rule, &p.ask, version, sm));
    if (rule->cudnn_from)
        cr_expect_not(fattn_rule_holds(rule, &p.ask, rule->cudnn_from - 1, sm), "%s: before %d",
                      rule->name, rule->cudnn_from);
    if (rule->cudnn_to)
        cr_expect_not(fattn_rule_holds(rule, &p.ask, rule->cudnn_to + 1, sm), "%s: behind %d",
                      rule->name, rule->cudnn_to);
    else
        cr_expect(fattn_rule_holds(rule, &p.ask, 999999, sm), "%s: a version that nobody has seen",
                  rule->name);
    if (rule->sm_from)
        cr_expect_not(fattn_rule_holds(rule, &p.ask, version, rule->sm_from - 1), "%s: sm below %d",
                      rule->name, rule->sm_from);
    if (rule->sm_to)
        cr_expect_not(fattn_rule_holds(rule, &p.ask, version, rule->sm_to + 1), "%s: sm above %d",
                      rule->name, rule->sm_to);
}

Test(guards, each_holds_for_a_case_of_its_failure_at_its_edges_and_for_no_control)
{
    cr_assert_gt(fattn_guard_count(), 50);
    for (size_t i = 0; i < fattn_guard_count(); i++) {
        const fattn_rule *rule = fattn_guard_at(i);
        facts_cases *cases = cases_of(rule->name);
        size_t affected = 0;
        for (size_t c = 0; c < facts_cases_count(cases); c++) {
            facts_planned planned = facts_cases_at(cases, c);
            if (!is_affected(planned.group) && !is_control(&planned))
                continue;
            bool held = holds(rule, planned.name);
            if (held && is_affected(planned.group) && affected++ == 0)
                check_edges(rule);
            cr_expect(!held || !is_control(&planned), "%s holds for a control: %s", rule->name,
                      planned.name);
        }
        cr_expect((affected > 0) != has_no_case(rule), "%s holds for no case of its file",
                  rule->name);
        facts_cases_destroy(cases);
    }
}

/* Without a mask and with full tiles it is right. */
Test(guards, a_bound_of_inf_is_no_mask)
{
    size_t seen = 0;
    for (size_t i = 0; i < fattn_guard_count(); i++) {
        const fattn_rule *rule = fattn_guard_at(i);
        if (strcmp(rule->name, "scale-not-positive/masked") != 0 &&
            strcmp(rule->name, "scale-not-positive/unified-forward") != 0)
            continue;
        seen++;
        cr_expect_not(holds(rule, "pass=fwd dtype=bf16 b=1 h=2 s=128 d=64 scale=-0.125"), "%s",
                      rule->name);
        cr_expect(holds(rule, "pass=fwd dtype=bf16 b=1 h=2 s=128 d=64 mask=causal scale=-0.125"),
                  "%s", rule->name);
    }
    cr_expect_geq(seen, 2);
}

Test(guards, hold_for_no_ordinary_problem)
{
    static const char *const ordinary[] = { "pass=fwd",
                                            "pass=bwd",
                                            "pass=fwd mask=causal d=64",
                                            "pass=bwd h=8/2 mask=causal dtype=f16",
                                            "pass=fwd padding=random",
                                            "pass=fwd layout=thd padding=random",
                                            "pass=fwd s=1/512" };
    for (size_t i = 0; i < fattn_guard_count(); i++)
        for (size_t o = 0; o < sizeof ordinary / sizeof ordinary[0]; o++) {
            const fattn_rule *rule = fattn_guard_at(i);
            if (rule->cudnn_from ==
                90400) /* builds of which an engine is wrong whatever it is asked */
                continue;
            cr_expect_not(holds(rule, ordinary[o]), "%s: %s", rule->name, ordinary[o]);
        }
}

/* Every engine's guard that is unasked or whole refuses a decision: asked with a version that
 * nobody has seen, the failure still holds. */
Test(guards, of_a_planner_that_ends_the_process_hold_in_a_version_that_nobody_has_seen)
{
    facts_case c;
    cr_assert(facts_case_parse(&c, "pass=bwd b=1 h=1 s=1", &error));
    cr_assert_eq(facts_problem_resolve(&p, &c, &error), FACTS_RESOLVED);
    bool held = false;
    for (size_t i = 0; i < fattn_guard_count() && !held; i++)
        held = fattn_guard_at(i)->unasked && fattn_rule_holds(fattn_guard_at(i), &p.ask, 99900, 90);
    cr_expect(held);
}

/* ---- files
 * --------------------------------------------------------------------------------------------------------------------
 */

Test(known, cases_keep_their_lines_and_a_group_without_a_reason_has_the_title)
{
    static const char text[] =
        "title: Something\n  is wrong.\nlink: a/b#1\nlink: c/d#2\nkind: failure\nfailure:\nwhen: "
        "pass=fwd\ncases:\npass=fwd\ncontrols:\nwhy: right\npass=bwd\n"
        "guarded: more\npass=fwd s=7\ntext:\npass=nothing\n";
    char *suite = facts_known_suite(text, "/some/where/id.known");
    cr_assert_not_null(suite);
    cr_expect_str_eq(suite, "\n\n\n\n\n\n\nname: id\npass=fwd\nname: id/controls\nwhy: "
                            "right\npass=bwd\nname: id/more\npass=fwd s=7\n");
    free(suite);
    cr_expect(facts_known_in_regress(text));
    cr_expect_not(facts_known_in_regress("title: x\nsize: big\ncases:\npass=fwd\n"), "a big one");
    cr_expect_not(facts_known_in_regress("title: x\ntext:\nnothing\n"), "without cases");
    cr_expect(facts_is_known("a/b.known"));
    cr_expect_not(facts_is_known(".known") || facts_is_known("a.cases"));
}

Test(known, the_first_group_says_the_title_and_the_links)
{
    facts_cases *cases = cases_of("bwd-stats-order-read-as-bhsd");
    facts_planned first = facts_cases_at(cases, 0);
    cr_expect_str_eq(first.group, "bwd-stats-order-read-as-bhsd");
    cr_expect(strstr(first.why, "(NVIDIA/cudnn-frontend#304, NVIDIA/cudnn-frontend#1023)") != NULL,
              "%s", first.why);
    facts_cases_destroy(cases);
}
