/* The summary at the end of a run: what nobody expected comes first, with its repro; what is known
 * is counted, with its links. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/session/tally.h"

#define KNOWN                                                                                      \
    "{\"verdict\":\"nan\",\"met\":true,\"date\":\"2026-11-21\",\"link\":\"NVIDIA/"                 \
    "cudnn-frontend#1072\"}"
#define UNMET                                                                                      \
    "{\"verdict\":\"nan\",\"met\":false,\"date\":\"2026-11-21\",\"link\":\"NVIDIA/"                \
    "cudnn-frontend#1072\"}"
#define NAN_ROW                                                                                    \
    "{\"case\":\"x\",\"verdict\":\"nan\",\"errors\":{\"dq\":{\"ratio\":\"inf\"},\"dk\":{"          \
    "\"ratio\":0.5},\"dv\":{\"ratio\":7.5}}}"
#define PASS_ROW "{\"case\":\"x\",\"verdict\":\"pass\"}"

static const facts_work work[] = { { .name = "a", .group = "", .expect = "" },
                                   { .name = "b", .group = "", .expect = "" } };
static facts_target targets[3];
static facts_tally tally;
static char *reported;

static void set_up(void)
{
    static const char *const versions[] = { "9.14.0", "9.19.0", "9.27.0" };
    for (size_t t = 0; t < 3; t++) {
        targets[t] = (facts_target){ .kind = FACTS_TARGET_GPU };
        strcpy(targets[t].device, "h100");
        strcpy(targets[t].build.version, versions[t]);
        sscanf(versions[t], "%d.%d.%d", &targets[t].build.major, &targets[t].build.minor,
               &targets[t].build.patch);
        snprintf(targets[t].build.name, sizeof targets[t].build.name, "%s-jit-cu13", versions[t]);
    }
    facts_tally_init(&tally, targets, 3, work, 2);
}

static void tear_down(void)
{
    facts_tally_free(&tally);
    free(reported);
}

TestSuite(tally, .init = set_up, .fini = tear_down);

static void add(size_t target, size_t case_, const char *row, facts_verdict verdict,
                const char *expectation, bool unexpected)
{
    facts_line line;
    facts_expected_row expected = { .unexpected = unexpected };
    snprintf(expected.json, sizeof expected.json, "%s", expectation);
    facts_line_parse(&line, row, strlen(row));
    facts_tally_add(&tally, target, case_, &line, verdict, &expected);
}

static const char *changes(void)
{
    size_t length;
    FILE *out = open_memstream(&reported, &length);
    facts_print_changes(&tally, "r.jsonl", out);
    fclose(out);
    return reported;
}

static const char *findings(size_t most)
{
    size_t length;
    FILE *out = open_memstream(&reported, &length);
    facts_print_findings(&tally, most, out);
    fclose(out);
    return reported;
}

Test(tally, a_case_that_several_builds_fail_alike_is_told_once)
{
    for (size_t t = 0; t < 3; t++)
        add(t, 0, NAN_ROW, FACTS_VERDICT_NAN, "", true);
    cr_expect_str_eq(findings(20),
                     "\n3 findings:\n  nan: dq, dv\n    9.14.0 9.19.0 9.27.0 on h100\n"
                     "    facts repro 'a' --cudnn 9.14.0-jit-cu13 --device 0\n");
}

Test(tally, what_is_known_is_counted_after_what_is_not)
{
    add(0, 0, NAN_ROW, FACTS_VERDICT_NAN, KNOWN, false);
    add(1, 0, NAN_ROW, FACTS_VERDICT_NAN, KNOWN, false);
    add(2, 1, NAN_ROW, FACTS_VERDICT_NAN, "", true);
    cr_expect_eq(facts_tally_unexpected(&tally), 1);
    cr_expect_eq(facts_tally_known(&tally, false), 2);
    cr_expect_eq(facts_tally_known(&tally, true), 0);
    cr_expect_str_eq(findings(20), "\n1 finding:\n  nan: dq, dv\n    9.27.0 on h100\n"
                                   "    facts repro 'b' --cudnn 9.27.0-jit-cu13 --device 0\n"
                                   "\n2 known failures:\n       2  NVIDIA/cudnn-frontend#1072\n");
}

Test(tally, news_of_one_configuration_is_not_hidden_by_what_is_known_of_another)
{
    add(0, 0, NAN_ROW, FACTS_VERDICT_NAN, KNOWN, false);
    add(0, 0, PASS_ROW, FACTS_VERDICT_PASS, UNMET, true);
    cr_expect_eq(facts_tally_cell(&tally, 0, 0)->verdict, FACTS_VERDICT_NAN);
    cr_expect(strstr(findings(20), "  pass: expected nan (NVIDIA/cudnn-frontend#1072)\n") != NULL,
              "%s", reported);
}

#define ROW(verdict, attempt, more)                                                                \
    "{\"case\":\"x\",\"verdict\":\"" verdict "\",\"attempt\":" attempt more "}"

Test(tally, what_is_asked_again_counts_alone)
{
    add(0, 0, ROW("inconclusive", "1", ",\"more\":true"), FACTS_VERDICT_INCONCLUSIVE, "", true);
    add(0, 0, ROW("pass", "2", ""), FACTS_VERDICT_PASS, "", false);
    cr_expect_eq(facts_tally_cell(&tally, 0, 0)->verdict, FACTS_VERDICT_INCONCLUSIVE,
                 "another worker went on behind it");
    add(0, 0, ROW("pass", "3", ",\"more\":true"), FACTS_VERDICT_PASS, "", false);
    add(0, 0, ROW("unsupported", "4", ""), FACTS_VERDICT_UNSUPPORTED, "", false);
    cr_expect_eq(facts_tally_cell(&tally, 0, 0)->verdict, FACTS_VERDICT_UNSUPPORTED);
    cr_expect_eq(facts_tally_unexpected(&tally), 0);
    add(0, 0, ROW("crash", "5", ",\"more\":true"), FACTS_VERDICT_CRASH, "", true);
    add(0, 0, ROW("inconclusive", "5", ""), FACTS_VERDICT_INCONCLUSIVE, "", true);
    add(0, 0, ROW("pass", "6", ""), FACTS_VERDICT_PASS, "", false);
    cr_expect_eq(facts_tally_cell(&tally, 0, 0)->verdict, FACTS_VERDICT_CRASH, "it stays");
}

Test(tally, what_does_not_fit_is_counted)
{
    add(0, 0, NAN_ROW, FACTS_VERDICT_NAN, "", true);
    add(0, 1, PASS_ROW, FACTS_VERDICT_PASS, UNMET, true);
    cr_expect(strstr(findings(1), "and 1 more like these") != NULL, "%s", reported);
}

#define ENGINES(list) "{\"case\":\"x\",\"verdict\":\"pass\",\"engines\":[" list "]}"
#define ENGINE(index) "{\"mode\":\"A\",\"index\":" index "}"

Test(tally, changes_are_counted_from_each_build_to_the_next_older_one)
{
    add(2, 0, PASS_ROW, FACTS_VERDICT_PASS, "", false);
    cr_expect_str_eq(changes(), "\nnothing changed between the builds\n",
                     "a case without a row has not changed");
    free(reported);
    for (size_t t = 0; t < 3; t++)
        add(t, 0, t == 1 ? NAN_ROW : PASS_ROW, t == 1 ? FACTS_VERDICT_NAN : FACTS_VERDICT_PASS, "",
            false);
    for (size_t t = 0; t < 3; t++)
        add(t, 1, t == 0 ? ENGINES(ENGINE("6")) : ENGINES(ENGINE("6") "," ENGINE("8")),
            FACTS_VERDICT_PASS, "", false);
    cr_expect_str_eq(changes(), "\nchanged between builds:\n"
                                "  9.14.0-jit-cu13 -> 9.19.0-jit-cu13 on h100: 1 case with another "
                                "verdict, 1 with other engines\n"
                                "  9.19.0-jit-cu13 -> 9.27.0-jit-cu13 on h100: 1 case with another "
                                "verdict, 0 with other engines\n"
                                "  which cases: facts diff r.jsonl --baseline 9.14.0-jit-cu13 "
                                "--candidate 9.19.0-jit-cu13\n");
}
