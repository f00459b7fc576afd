/* What a rule is worth: its word on each case against the backend's. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "audit/audit_verdict.h"

#define COUNT(trials) (sizeof(trials) / sizeof *(trials))

/* The words said, joined, in the order of the list. */
static const char *said(const facts_trial *trials, size_t count)
{
    static char out[200];
    facts_audit_verdict v;
    facts_audit_judge(&v, trials, count);
    out[0] = '\0';
    for (int w = 0; w < FACTS_AUDIT_COUNT; w++)
        if (v.said[w])
            snprintf(out + strlen(out), sizeof out - strlen(out), "%s%s", *out ? " + " : "", facts_audit_name((facts_audit_word)w));
    return out;
}

#define PAIR(refused, let) ((const facts_trial[]){ { true, false, FACTS_REPLY_##refused }, { false, false, FACTS_REPLY_##let } })

Test(audit, a_rule_agrees_when_one_side_is_refused_and_the_other_taken)
{
    cr_expect_str_eq(said(PAIR(REFUSED, ACCEPTED), 2), "agrees");
    cr_expect_str_eq(said(PAIR(REFUSED, PASSED), 2), "agrees");
    cr_expect_str_eq(said(PAIR(UNBUILT, ACCEPTED), 2), "agrees");
    cr_expect_str_eq(said(PAIR(BROKEN, PASSED), 2), "agrees");
}

Test(audit, accepted_is_too_strict_only_after_the_numbers_of_every_engine_passed)
{
    cr_expect_str_eq(said(PAIR(ACCEPTED, ACCEPTED), 2), "accepted, numbers not known");
    cr_expect_str_eq(said(PAIR(PASSED, PASSED), 2), "too strict");
    facts_reply some = facts_reply_join(FACTS_REPLY_PASSED, FACTS_REPLY_UNBUILT);
    cr_expect_eq(some, FACTS_REPLY_ACCEPTED);
    cr_expect_eq(facts_reply_join(FACTS_REPLY_UNBUILT, FACTS_REPLY_PASSED), FACTS_REPLY_ACCEPTED);
    cr_expect_eq(facts_reply_join(FACTS_REPLY_PASSED, FACTS_REPLY_PASSED), FACTS_REPLY_PASSED);
    cr_expect_eq(facts_reply_join(FACTS_REPLY_PASSED, FACTS_REPLY_BROKEN), FACTS_REPLY_BROKEN);
    cr_expect_eq(facts_reply_join(FACTS_REPLY_PASSED, FACTS_REPLY_UNKNOWN), FACTS_REPLY_UNKNOWN);
    cr_expect_eq(facts_reply_join(FACTS_REPLY_NONE, FACTS_REPLY_PASSED), FACTS_REPLY_PASSED);
}

Test(audit, what_is_let_through_and_refused_or_wrong_is_too_loose)
{
    cr_expect_str_eq(said(PAIR(REFUSED, REFUSED), 2), "too loose");
    cr_expect_str_eq(said(PAIR(REFUSED, BROKEN), 2), "too loose");
    cr_expect_str_eq(said(PAIR(PASSED, UNBUILT), 2), "too strict + too loose");
}

Test(audit, another_rule_of_the_project_may_refuse_the_other_side)
{
    const facts_trial blind[] = { { true, false, FACTS_REPLY_REFUSED }, { false, true, FACTS_REPLY_REFUSED } };
    const facts_trial seen[] = { { true, false, FACTS_REPLY_REFUSED },
                                 { false, true, FACTS_REPLY_REFUSED },
                                 { true, false, FACTS_REPLY_REFUSED },
                                 { false, false, FACTS_REPLY_ACCEPTED } };
    cr_expect_str_eq(said(blind, COUNT(blind)), "both sides refused");
    cr_expect_str_eq(said(seen, COUNT(seen)), "agrees");
}

Test(audit, what_was_not_answered_is_never_agreement)
{
    cr_expect_str_eq(said(PAIR(UNKNOWN, ACCEPTED), 2), "not answered");
    cr_expect_str_eq(said(PAIR(REFUSED, UNKNOWN), 2), "not answered");
    cr_expect_str_eq(said(PAIR(NONE, ACCEPTED), 2), "not answered");
    cr_expect_str_eq(said(PAIR(OURS, ACCEPTED), 2), "not asked");
    cr_expect_str_eq(said(PAIR(REFUSED, OURS), 2), "not asked");
    cr_expect_str_eq(said(NULL, 0), "");
}

Test(audit, where_a_gate_is_open_both_sides_are_taken)
{
    const facts_trial open[] = { { false, false, FACTS_REPLY_ACCEPTED }, { false, false, FACTS_REPLY_PASSED } };
    facts_audit_verdict v;
    facts_audit_judge(&v, open, COUNT(open));
    cr_expect(v.said[FACTS_AUDIT_AGREES]);
    cr_expect_not(v.refuses);
}

Test(audit, the_first_case_that_shows_a_word_is_named)
{
    const facts_trial trials[] = { { true, false, FACTS_REPLY_REFUSED },
                                   { false, false, FACTS_REPLY_ACCEPTED },
                                   { true, false, FACTS_REPLY_ACCEPTED },
                                   { true, false, FACTS_REPLY_ACCEPTED } };
    facts_audit_verdict v;
    facts_audit_judge(&v, trials, COUNT(trials));
    cr_expect(v.refuses);
    cr_expect(v.said[FACTS_AUDIT_ACCEPTED] && !v.said[FACTS_AUDIT_AGREES]);
    cr_expect_eq(v.shows[FACTS_AUDIT_ACCEPTED], 2);
}

Test(audit, a_row_is_cudnns_word_or_ours)
{
    cr_expect_eq(facts_reply_of(FACTS_VERDICT_PASS, false, false), FACTS_REPLY_ACCEPTED);
    cr_expect_eq(facts_reply_of(FACTS_VERDICT_PASS, true, false), FACTS_REPLY_PASSED);
    cr_expect_eq(facts_reply_of(FACTS_VERDICT_UNSUPPORTED, false, true), FACTS_REPLY_REFUSED);
    cr_expect_eq(facts_reply_of(FACTS_VERDICT_UNSUPPORTED, false, false), FACTS_REPLY_OURS);
    cr_expect_eq(facts_reply_of(FACTS_VERDICT_BUILD_FAIL, false, false), FACTS_REPLY_UNBUILT);
    cr_expect_eq(facts_reply_of(FACTS_VERDICT_WRONG, true, false), FACTS_REPLY_BROKEN);
    cr_expect_eq(facts_reply_of(FACTS_VERDICT_CRASH, false, false), FACTS_REPLY_BROKEN);
    cr_expect_eq(facts_reply_of(FACTS_VERDICT_MISTRUSTED, true, false), FACTS_REPLY_UNKNOWN);
    cr_expect_eq(facts_reply_of(FACTS_VERDICT_INCONCLUSIVE, false, false), FACTS_REPLY_UNKNOWN);
}
