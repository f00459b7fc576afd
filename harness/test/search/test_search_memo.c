/* What a search remembers when it asks for ever: the failures, and of the rest only that they were asked. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "search/memo.h"

#define CASES 20000
#define IN_HAND 50

static const char *name_of(int i)
{
    static char name[32];
    snprintf(name, sizeof name, "case %d", i);
    return name;
}

static facts_memo_id answer(facts_memo *memo, int i, const char *verdict)
{
    facts_line line;
    char row[100];
    snprintf(row, sizeof row, "{\"case\":\"%s\",\"build\":\"none\",\"device\":\"cpu\",\"verdict\":\"%s\"}", name_of(i), verdict);
    facts_memo_id id = facts_memo_ask(memo, name_of(i), 1);
    cr_assert_neq(id, FACTS_MEMO_NONE);
    facts_line_parse(&line, row, strlen(row));
    cr_assert(facts_memo_row(memo, id, &line, true));
    return id;
}

static facts_memo_state state_of(const facts_memo *memo, int i)
{
    facts_answer out;
    return facts_memo_get(memo, name_of(i), 1, &out);
}

Test(memo, forgets_what_passed_and_needs_no_more_room)
{
    facts_memo *memo = facts_memo_new();
    facts_memo_id ids[IN_HAND], most = 0;
    for (int i = 0; i < CASES; i++) {
        if (i >= IN_HAND)
            facts_memo_forget(memo, ids[i % IN_HAND]);
        ids[i % IN_HAND] = answer(memo, i, "pass");
        most = ids[i % IN_HAND] > most ? ids[i % IN_HAND] : most;
    }
    cr_expect_lt(most, 2 * IN_HAND, "places are used again: %u", most);
    cr_expect_eq(facts_memo_answered(memo), CASES);
    for (int i = 0; i < CASES; i++) {
        bool in_hand = i >= CASES - IN_HAND;
        cr_expect_eq(state_of(memo, i), in_hand ? FACTS_MEMO_ANSWERED : FACTS_MEMO_UNKNOWN, "%d", i);
        cr_expect_eq(facts_memo_forgot(memo, name_of(i)), !in_hand, "%d", i);
        cr_expect_not(facts_memo_forgot(memo, name_of(CASES + i)), "%d was never asked", CASES + i);
    }
    facts_memo_free(memo);
}

/* Entries share places of the table: one that is taken out must not hide another. */
Test(memo, finds_the_others_after_some_are_forgotten)
{
    facts_memo *memo = facts_memo_new();
    static facts_memo_id ids[CASES];
    for (int i = 0; i < CASES; i++)
        ids[i] = answer(memo, i, i % 5 ? "pass" : "wrong");
    for (int i = 0; i < CASES; i++)
        if (i % 3)
            facts_memo_forget(memo, ids[i]);
    for (int i = 0; i < CASES; i++)
        cr_expect_eq(state_of(memo, i), i % 3 && i % 5 ? FACTS_MEMO_UNKNOWN : FACTS_MEMO_ANSWERED, "%d", i);
    facts_memo_free(memo);
}

Test(memo, does_not_forget_a_question_without_its_answer)
{
    facts_memo *memo = facts_memo_new();
    facts_memo_forget(memo, facts_memo_ask(memo, "a", 1));
    cr_expect_eq(state_of(memo, 0), FACTS_MEMO_UNKNOWN);
    facts_answer out;
    cr_expect_eq(facts_memo_get(memo, "a", 1, &out), FACTS_MEMO_ASKED);
    cr_expect_not(facts_memo_forgot(memo, "a"));
    facts_memo_free(memo);
}
