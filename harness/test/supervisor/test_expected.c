/* What the expectations say of a row: what is known is no finding, a known failure that passes is
 * one, and a refusal says nothing of numbers. */
#include "../worker/running.h"

#include "commands/session/expected.h"
#include "problem/case_problem.h"

#define ROW "{\"case\":\"pass=bwd\",\"engine\":6}"

static facts_expectations *expectations;

static void load(const char *suites)
{
    facts_error message = { 0 };
    facts_expectations_free(expectations);
    cr_assert_eq(
        facts_expectations_load(&expectations, &facts_attention_language, suites, &message), 0,
        "%s", message.text);
}

static void put_known(const char *verdict, const char *where, const char *suites)
{
    char line[512];
    snprintf(line, sizeof line,
             "{\"verdict\":[\"%s\"],\"link\":\"a/b#1\",\"suites\":\"%s\","
             "\"expect\":[{\"where\":\"%s\"}]}\n",
             verdict, suites, where);
    put("cases/known/known.jsonl", line);
}

static void begin(void)
{
    set_up();
    put_folder("cases");
    put_folder("cases/known");
    put_known("nan", "pass=bwd & engine=6 & grade=measured", "");
    setenv("FACTS_HOME", folder, 1);
    load("");
}

static void end(void)
{
    facts_expectations_free(expectations);
    tear_down();
}

TestSuite(expected, .init = begin, .fini = end);

static facts_expected_row judged_row(facts_verdict verdict, const char *row)
{
    const facts_target target = { .kind = FACTS_TARGET_GPU, .build.version = "9.19.0" };
    const facts_work work = { .name = "pass=bwd", .group = "", .expect = "" };
    facts_expected_row out;
    facts_line line;
    facts_line_parse(&line, row, strlen(row));
    facts_expectations_judge(expectations, &target, 90, &work, true, verdict, &line, &out);
    return out;
}

static facts_expected_row judged(facts_verdict verdict)
{
    return judged_row(verdict, ROW);
}

Test(expected, a_known_failure_is_no_finding)
{
    facts_expected_row row = judged(FACTS_VERDICT_NAN);
    cr_expect(!row.unexpected && strstr(row.json, "\"met\":true") && strstr(row.json, "a/b#1"),
              "%s", row.json);
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

/* The same key may be a padded one in a case of the suite, and none in another case. */
Test(expected, a_failure_of_a_suite_is_certain_only_there)
{
    put_known("nan", "pass=bwd & engine=6", "smoke core");
    load("");
    cr_expect(!judged(FACTS_VERDICT_PASS).unexpected);
    cr_expect(!judged(FACTS_VERDICT_NAN).unexpected, "it explains a failure everywhere");
    cr_expect(judged(FACTS_VERDICT_WRONG).unexpected);
    load("core");
    cr_expect(judged(FACTS_VERDICT_PASS).unexpected);
    load("surface");
    cr_expect(judged(FACTS_VERDICT_NAN).unexpected, "in another suite it says nothing");
}

/* The row of a worker that died names no backend: the supervisor writes that of the target. */
Test(expected, a_known_hang_of_cudnn_is_no_finding)
{
    put_known("hang", "pass=bwd & backend=cudnn", "");
    load("");
    cr_expect(!judged_row(FACTS_VERDICT_HANG, "{\"verdict\":\"hang\"}").unexpected);
    cr_expect(
        judged_row(FACTS_VERDICT_HANG, "{\"verdict\":\"hang\",\"backend\":\"math\"}").unexpected,
        "a row says it better");
}

/* What is known of a case is said of a decided row too, unless cuDNN refuses it. */
Test(expected, a_row_has_what_is_known_of_its_case)
{
    static const struct {
        facts_verdict verdict;
        const char *row;
        bool known;
    } rows[] = { { FACTS_VERDICT_SUPPORTED, ROW, true },
                 { FACTS_VERDICT_SUPPORTED, "{\"engine\":7}", false },
                 { FACTS_VERDICT_SUPPORTED, "{\"engine\":6,\"backend\":\"math\"}", false },
                 { FACTS_VERDICT_UNSUPPORTED, "{\"engine\":6}", false },
                 { FACTS_VERDICT_UNSUPPORTED, "{\"reason\":{\"class\":\"policy\"}}", true } };
    put("cases/known/known.jsonl",
        "{\"id\":\"a\",\"title\":\"T.\",\"says\":\"to be wrong\",\"verdict\":[\"nan\"],"
        "\"remedy\":\"pad\",\"problem\":\"pass=bwd\",\"sm\":[[90,90]],"
        "\"ranges\":[{\"from\":\"\",\"to\":\"\",\"fixed\":\"\"}],"
        "\"engines\":[{\"engine\":6,\"from\":\"\",\"to\":\"\"}]}\n");
    load("");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const facts_expected_row out = judged_row(rows[i].verdict, rows[i].row);
        cr_expect_eq(out.known != NULL, rows[i].known, "%zu", i);
        cr_expect(!out.known || strstr(out.known, "\"known\":[{\"id\":\"a\""), "%s", out.known);
        cr_expect(!out.lines ||
                      !strcmp(out.lines,
                              "known to be wrong: T (a)\n  libfattn refuses it; instead: pad\n"),
                  "%s", out.lines);
    }
}
