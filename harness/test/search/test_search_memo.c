/* What a search remembers, and the record that it is read back from. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "search/memo.h"

#define CASES 20000

/* Entries share lists. */
Test(memo, finds_each_of_many)
{
    facts_memo *memo = facts_memo_new();
    facts_answer out;
    char name[32], row[100];
    for (int i = 0; i < CASES; i++) {
        facts_line line;
        snprintf(name, sizeof name, "case %d", i);
        snprintf(row, sizeof row,
                 "{\"case\":\"%s\",\"build\":\"none\",\"device\":\"cpu\",\"verdict\":\"%s\"}", name,
                 i % 5 ? "pass" : "wrong");
        facts_line_parse(&line, row, strlen(row));
        facts_memo_row(memo, facts_memo_ask(memo, name, 1), &line);
        facts_memo_end(memo, facts_memo_ask(memo, name, 1));
    }
    cr_expect_eq(facts_memo_answered(memo), CASES);
    for (int i = 0; i < CASES; i++) {
        snprintf(name, sizeof name, "case %d", i);
        cr_assert_eq(facts_memo_get(memo, name, 1, &out), FACTS_MEMO_ANSWERED, "%d", i);
        cr_assert_eq(out.verdict, i % 5 ? FACTS_VERDICT_PASS : FACTS_VERDICT_WRONG);
    }
    (void)facts_memo_ask(memo, "a", 1);
    cr_expect_eq(facts_memo_get(memo, "a", 1, &out), FACTS_MEMO_ASKED);
    facts_memo_free(memo);
}

/* ---- the record that is read back
 * ------------------------------------------------------------------------------------------ */

#define OF_TARGET "\"build\":\"none\",\"device\":\"cpu\""

static void load(facts_memo_load *l, const char *text)
{
    facts_line line;
    facts_line_parse(&line, text, strlen(text));
    facts_memo_load_line(l, &line);
}

static void count_drawn(void *context, const char *name, const facts_answer *answer,
                        facts_verdict before)
{
    (void)before;
    (void)name;
    (void)answer;
    ++*(int *)context;
}

Test(memo, a_record_answers_what_it_holds_and_nothing_else)
{
    int drawn = 0;
    facts_answer answer;
    facts_memo *memo = facts_memo_new();
    facts_memo_load l = { .memo = memo,
                          .build = "none",
                          .device = "cpu",
                          .group = "fuzz/drawn",
                          .context = &drawn,
                          .drawn = count_drawn };
    load(&l, "{\"start\":{\"case\":\"a\"," OF_TARGET "}}");
    load(&l, "{\"case\":\"a\",\"verdict\":\"pass\",\"group\":\"fuzz/drawn\"," OF_TARGET "}");
    load(&l, "{\"case\":\"b\",\"verdict\":\"wrong\",\"group\":\"fuzz/"
             "drawn\",\"backend\":\"cpu\",\"errors\":{\"o\":{\"ratio\":0.5},\"stats\":{\"ratio\":7,"
             "\"gate\":\"t1\"}}," OF_TARGET "}");
    load(&l, "{\"case\":\"b\",\"verdict\":\"pass\",\"group\":\"fuzz/asked\"," OF_TARGET "}");
    load(&l,
         "{\"case\":\"c\",\"verdict\":\"inconclusive\",\"group\":\"fuzz/drawn\"," OF_TARGET "}");
    load(&l, "{\"case\":\"d\",\"verdict\":\"pass\",\"build\":\"none\",\"device\":\"other\"}");
    load(&l, "{\"start\":{\"case\":\"e\"," OF_TARGET "}}");
    load(&l, "not a line of ours");
    cr_expect_eq(facts_memo_load_end(memo, 3), 0);
    cr_expect_eq(drawn, 2);
    cr_expect_eq(facts_memo_get(memo, "a", 1, &answer), FACTS_MEMO_ANSWERED);
    cr_expect_eq(answer.verdict, FACTS_VERDICT_PASS);
    cr_expect_eq(facts_memo_get(memo, "b", 1, &answer), FACTS_MEMO_ANSWERED);
    cr_assert_eq(answer.count, 1);
    cr_expect_str_eq(answer.failing[0].tensors, "stats");
    cr_expect_str_eq(answer.failing[0].gate, "t1");
    cr_expect_eq(facts_memo_get(memo, "b", 2, &answer), FACTS_MEMO_ANSWERED,
                 "a repeat is an attempt of its own");
    cr_expect_eq(answer.verdict, FACTS_VERDICT_PASS);
    cr_expect_eq(facts_memo_get(memo, "b", 3, &answer), FACTS_MEMO_UNKNOWN);
    cr_expect_eq(facts_memo_get(memo, "c", 1, &answer), FACTS_MEMO_UNKNOWN,
                 "what could not be asked is asked again");
    cr_expect_eq(facts_memo_get(memo, "d", 1, &answer), FACTS_MEMO_UNKNOWN, "another target");
    cr_expect_eq(facts_memo_get(memo, "e", 1, &answer), FACTS_MEMO_UNKNOWN, "started, killed");
    facts_memo_free(memo);
}

Test(memo, by_reason_every_answer_is_told_apart_by_its_sentence)
{
    static const char *const rows[] = {
        "{\"case\":\"a\",\"verdict\":\"unsupported\",\"reason\":{\"class\":\"unsupported\","
        "\"text\":\"d 100 is odd\"}," OF_TARGET "}",
        "{\"case\":\"b\",\"verdict\":\"unsupported\",\"reason\":{\"class\":\"unsupported\","
        "\"text\":\"d 36 is odd\"}," OF_TARGET "}",
        "{\"case\":\"c\",\"verdict\":\"unsupported\",\"reason\":{\"class\":\"unsupported\","
        "\"text\":\"s 36 is odd\"}," OF_TARGET "}",
        "{\"case\":\"d\",\"verdict\":\"pass\",\"engines\":[{\"mode\":\"A\",\"index\":4}]," OF_TARGET
        "}",
    };
    facts_memo *memo = facts_memo_new();
    facts_memo_load l = { .memo = memo, .build = "none", .device = "cpu", .group = "" };
    facts_answer answer[4];
    facts_memo_compare(memo, FACTS_BY_REASON);
    for (size_t i = 0; i < 4; i++)
        load(&l, rows[i]);
    for (size_t i = 0; i < 4; i++) {
        cr_assert_eq(facts_memo_get(memo, (const char *[]){ "a", "b", "c", "d" }[i], 1, &answer[i]),
                     FACTS_MEMO_ANSWERED);
        cr_assert_eq(answer[i].count, 1);
    }
    cr_expect_not_null(facts_answer_find(&answer[1], &answer[0].failing[0]),
                       "numbers in a reason do not count");
    cr_expect_null(facts_answer_find(&answer[2], &answer[0].failing[0]));
    cr_expect_null(facts_answer_find(&answer[3], &answer[0].failing[0]));
    cr_expect_str_eq(answer[0].value, "unsupported: d 100 is odd");
    facts_memo_free(memo);
}

Test(memo, with_engine_all_it_goes_on_after_the_last_row)
{
    facts_answer answer;
    facts_memo *memo = facts_memo_new();
    facts_memo_load l = { .memo = memo, .build = "none", .device = "cpu", .group = "" };
    load(&l, "{\"case\":\"a\",\"verdict\":\"pass\",\"config\":0,\"more\":true," OF_TARGET "}");
    load(&l, "{\"case\":\"a\",\"verdict\":\"nan\",\"config\":1,\"engine\":6,\"backend\":\"cudnn\","
             "\"more\":true," OF_TARGET "}");
    facts_memo_load_end(memo, 3);
    cr_expect_eq(facts_memo_get(memo, "a", 1, &answer), FACTS_MEMO_UNKNOWN);
    facts_memo_entry *entry = facts_memo_ask(memo, "a", 1);
    cr_expect_eq(facts_memo_config(entry), 2);
    facts_line line;
    const char *last = "{\"case\":\"a\",\"verdict\":\"pass\",\"config\":2}";
    facts_line_parse(&line, last, strlen(last));
    facts_memo_row(memo, entry, &line);
    facts_memo_end(memo, entry);
    cr_expect_eq(facts_memo_get(memo, "a", 1, &answer), FACTS_MEMO_ANSWERED);
    cr_expect_eq(answer.verdict, FACTS_VERDICT_NAN);
    cr_assert_eq(answer.count, 1);
    cr_expect_eq(answer.failing[0].engine, 6);
    facts_memo_free(memo);
}

Test(memo, what_takes_everything_down_three_times_is_left_alone)
{
    facts_answer answer;
    facts_memo *memo = facts_memo_new();
    facts_memo_load l = { .memo = memo, .build = "none", .device = "cpu", .group = "" };
    for (int i = 0; i < 3; i++)
        load(&l, "{\"start\":{\"case\":\"a\"," OF_TARGET "}}");
    load(&l, "{\"start\":{\"case\":\"b\"," OF_TARGET "}}");
    cr_expect_eq(facts_memo_load_end(memo, 3), 1);
    cr_expect_eq(facts_memo_get(memo, "a", 1, &answer), FACTS_MEMO_ANSWERED);
    cr_expect_eq(answer.verdict, FACTS_VERDICT_INCONCLUSIVE);
    cr_expect_eq(facts_memo_get(memo, "b", 1, &answer), FACTS_MEMO_UNKNOWN);
    facts_memo_free(memo);
}
