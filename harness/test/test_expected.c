/* What cases/expect says of a row: what is known is no finding, a known failure that passes is one, and a refusal says nothing of numbers. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "commands/expected.h"

#define ROW "{\"case\":\"pass=bwd\",\"engine\":6}"

static char home[] = "/tmp/facts-expected-XXXXXX";
static facts_expectations *expectations;

static void set_up(void)
{
    char path[128];
    cr_assert(mkdtemp(home));
    snprintf(path, sizeof path, "%s/cases", home);
    cr_assert_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/cases/expect", home);
    cr_assert_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/cases/expect/x.expect", home);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs("2026-11-22 nan pass=bwd & engine=6 & grade=measured a/b#1 # dQ\n", file);
    fclose(file);
    cr_assert_eq(setenv("FACTS_HOME", home, 1), 0);
    facts_message message = { 0 };
    cr_assert_eq(facts_expectations_load(&expectations, "", &message), 0);
}

static void tear_down(void)
{
    static const char *const parts[] = { "cases/expect/x.expect", "cases/expect", "cases", "" };
    for (size_t n = 0; n < sizeof parts / sizeof parts[0]; n++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", home, parts[n]);
        cr_expect_eq(remove(path), 0, "%s", path);
    }
    facts_expectations_free(expectations);
}

TestSuite(expected, .init = set_up, .fini = tear_down);

static facts_expected_row judged(facts_verdict verdict)
{
    const facts_target target = { .kind = FACTS_TARGET_GPU };
    const facts_work work = { .name = "pass=bwd", .group = "", .expect = "" };
    facts_expected_row out;
    facts_line line;
    facts_line_parse(&line, ROW, strlen(ROW));
    facts_expectations_judge(expectations, &target, 90, &work, true, verdict, &line, &out);
    return out;
}

Test(expected, a_known_failure_is_no_finding)
{
    facts_expected_row row = judged(FACTS_VERDICT_NAN);
    cr_expect(!row.unexpected && strstr(row.json, "\"met\":true") && strstr(row.json, "a/b#1"), "%s", row.json);
}

Test(expected, a_known_failure_that_passes_is_a_finding)
{
    facts_expected_row row = judged(FACTS_VERDICT_PASS);
    cr_expect(row.unexpected && strstr(row.json, "\"met\":false"), "%s", row.json);
}

Test(expected, a_refusal_does_not_contradict_a_known_failure)
{
    facts_expected_row row = judged(FACTS_VERDICT_UNSUPPORTED);
    cr_expect(!row.unexpected && !*row.json, "%s", row.json);
}
