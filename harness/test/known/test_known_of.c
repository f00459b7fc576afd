/* Which failures of cases/known speak of a case, and which results they explain. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "known/known.h"
#include "problem/case_problem.h"

static facts_error error;
static facts_knowledge knowledge;
static facts_text text;
static facts_case c;

static bool load(const char *lines)
{
    char path[] = "/tmp/known_of-XXXXXX";
    const int fd = mkstemp(path);
    cr_assert_eq(write(fd, lines, strlen(lines)), (ssize_t)strlen(lines));
    close(fd);
    const bool loaded = facts_knowledge_load(&knowledge, &facts_attention_language, path, &error);
    unlink(path);
    return loaded;
}

/* One object: `more` are members behind those that every failure needs. */
#define OBJECT(id, verdict, more)                                                                  \
    "{\"id\":\"" id "\",\"title\":\"T " id ".\",\"says\":\"to be wrong\",\"verdict\":" verdict     \
    ",\"ranges\":[{\"from\":\"9.14.0\",\"to\":\"9.26.0\",\"fixed\":\"9.26.0\"}],"                  \
    "\"seen\":[\"9.14.0\",\"9.19.0\"],\"sm\":[[90,90]],\"suspected\":[[80,89]]," more "}\n"

static void tear_down(void)
{
    facts_knowledge_free(&knowledge);
    facts_text_free(&text);
}

TestSuite(known_of, .fini = tear_down);

/* The sentences of the failures that speak of a case, with how sure and whether it has such data. */
static const char *said(const char *name, const char *cudnn, const char *sm, const char *engine)
{
    facts_known_answer found[300];
    cr_assert_lt(knowledge.count, sizeof found / sizeof *found);
    cr_assert(facts_case_parse(&c, name, &error), "%s", error.text);
    const facts_subject subject = { .c = &c, .cudnn = cudnn, .sm = sm, .engine = engine };
    const size_t count = facts_known_of(&knowledge, &subject, found);
    facts_text_clear(&text);
    facts_text_puts(&text, "");
    for (size_t i = 0; i < count; i++) {
        facts_text_format(&text, "%s%s %s ", i ? "\n" : "", found[i].sure,
                          found[i].such_data ? "yes" : "no");
        facts_known_sentence(&text, &found[i]);
    }
    return text.data;
}

Test(known_of, version_architecture_and_engine_decide)
{
    cr_assert(load(OBJECT("a", "[\"nan\"]",
                          "\"problem\":\"pass=bwd\",\"engines\":[{\"engine\":6,"
                          "\"from\":\"9.15.0\",\"to\":\"\"},{\"engine\":2,\"from\":\"9.14.0\","
                          "\"to\":\"9.15.0\"}]")),
              "%s", error.text);
#define SAYS "to be wrong: T a; fixed in 9.26.0 (a)"
    static const char *const asked[][4] = {
        { "9.19.0", "90", "6", "seen yes known " SAYS },
        { "9.19.0", "90", NULL, "seen yes known " SAYS },
        { "9.14.0", "90", "2", "seen yes known " SAYS },
        { "9.15.1", "90", "6", "between yes known " SAYS },
        { "9.25.1", "90", "6", "later yes known " SAYS },
        { "9.19.0", "86", "6", "suspected yes suspected " SAYS },
        { NULL, NULL, "6", "open yes known " SAYS },
        { "9.14.0", "90", "6", "" },
        { "9.26.0", "90", "6", "" },
        { "9.13.1", "90", "2", "" },
        { "9.19.0", "100", "6", "" },
    };
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        cr_expect_str_eq(said("pass=bwd", asked[i][0], asked[i][1], asked[i][2]), asked[i][3]);
    cr_expect_str_eq(said("pass=bwd engine=7", "9.19.0", "90", NULL), "");
    cr_expect_str_eq(said("pass=fwd", "9.19.0", "90", "6"), "");
}

Test(known_of, such_data_come_first_and_then_serious_ones)
{
#define HEAD "\"problem\":\"pass=bwd\",\"for\":\"low scores\",\"data\":\"fill=neglse\""
    cr_assert(load(OBJECT("a", "[\"nan\"]", HEAD) OBJECT("b", "[\"nan\"]", HEAD ",\"serious\":true")
                       OBJECT("c", "[\"nan\"]", "\"problem\":\"pass=bwd\"")
                           OBJECT("d", "[\"nan\"]", "\"label\":\"no problem\"")),
              "%s", error.text);
    const char *all = said("pass=bwd", "9.19.0", "90", NULL);
    cr_expect(strstr(all, "T c") < strstr(all, "T b") && strstr(all, "T b") < strstr(all, "T a"),
              "%s", all);
    cr_expect_not_null(strstr(all, "seen no known to be wrong for low scores: T b"), "%s", all);
    cr_expect_null(strstr(all, "T d"), "a case cannot tell");
    all = said("pass=bwd fill=neglse", "9.19.0", "90", NULL);
    cr_expect(strstr(all, "T b") < strstr(all, "T a") && strstr(all, "T a") < strstr(all, "T c"),
              "%s", all);
}

Test(known_of, an_answer_is_an_element_of_a_row)
{
    cr_assert(load(OBJECT("a", "[\"nan\",\"wrong\"]",
                          "\"kind\":\"failure\",\"problem\":\"pass=bwd\",\"remedy\":\"pad\"")));
    facts_known_answer found[1];
    cr_assert(facts_case_parse(&c, "pass=bwd", &error));
    facts_known_of(&knowledge, &(facts_subject){ .c = &c, .cudnn = "9.19.0", .sm = "90" }, found);
    facts_known_member(&text, found, 1);
    cr_expect_str_eq(text.data,
                     "\"known\":[{\"id\":\"a\",\"title\":\"T a.\",\"kind\":\"failure\","
                     "\"remedy\":\"pad\",\"verdict\":[\"nan\",\"wrong\"],\"such_data\":true,"
                     "\"sure\":\"seen\",\"fixed\":\"9.26.0\"}],");
}

Test(known_of, a_file_that_is_wrong_has_its_place)
{
    cr_expect_not(load("{\"id\":\"a\",\"verdict\":[\"nan\"]}\nno\n"));
    cr_expect_not_null(strstr(error.text, ":2:"), "%s", error.text);
    tear_down();
    cr_expect_not(load("{\"id\":\"a\"}\n"));
    tear_down();
    cr_expect_not(load("{\"verdict\":[\"nan\"],\"problem\":\"pas=bwd\"}\n"));
    cr_expect_not_null(strstr(error.text, "did you mean pass?"), "%s", error.text);
    tear_down();
    cr_expect(
        facts_knowledge_load(&knowledge, &facts_attention_language, "/nowhere/at/all", &error));
    cr_expect_eq(knowledge.count, 0);
}

static facts_expectation *expected(const char *name, const char *verdict)
{
    cr_assert(facts_case_parse(&c, name, &error), "%s", error.text);
    return facts_knowledge_expect(
        &knowledge, &(facts_subject){ .c = &c, .cudnn = "9.19.0", .verdict = verdict });
}

Test(known_of, the_first_expectation_that_names_the_verdict_counts)
{
    cr_assert(load(OBJECT("a", "[\"nan\"]", "\"expect\":[{\"where\":\"pass=bwd\"}]")
                       OBJECT("b", "[\"wrong\",\"hang\"]",
                              "\"expect\":[{\"where\":\"pass=bwd & cudnn<9.20.0\"}]")
                           OBJECT("c", "[\"nan\"]", "\"expect\":[{\"where\":\"s.q=1\"}]")),
              "%s", error.text);
    cr_expect_eq(expected("pass=bwd", "hang"), &knowledge.expected[1]);
    cr_expect_eq(expected("pass=bwd", "pass"), &knowledge.expected[0]);
    cr_expect_null(expected("pass=fwd", "nan"));
    cr_expect(knowledge.expected[0].used && knowledge.expected[1].used);
    cr_expect_not(knowledge.expected[2].used, "nobody needed it");
    facts_known_verdicts(&text, &knowledge.at[1]);
    cr_expect_str_eq(text.data, "wrong/hang");
}

Test(known_of, expectations_of_other_suites_do_not_count)
{
    static const struct {
        const char *suites;
        bool counts;
    } runs[] = { { "", true },
                 { "smoke", false },
                 { "smoke regress", true },
                 { "nightly/paged", true },
                 { "nightlyish", false } };
    cr_assert(load(OBJECT("a", "[\"nan\"]",
                          "\"suites\":\"regress nightly\",\"expect\":[{\"where\":\"pass=bwd\"}]")));
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        facts_knowledge_choose(&knowledge, runs[i].suites);
        cr_expect_eq(expected("pass=bwd", "nan") != NULL, runs[i].counts, "%s", runs[i].suites);
    }
}

Test(known_of, the_file_of_the_build_can_be_read)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/../known/known.jsonl", getenv("FACTS_BIN"));
    cr_assert(facts_knowledge_load(&knowledge, &facts_attention_language, path, &error), "%s",
              error.text);
    const char *all = said("pass=bwd b=1 h=1 s=704 d=64 fill=neglse", "9.20.0", "90", "6");
    cr_expect_eq(all,
                 strstr(all, "seen yes known to be wrong for very negative scores: dQ is NaN"));
    cr_expect_not_null(strstr(all, "fixed in 9.26.0 (bwd-nan-negative-lse"), "%s", all);
    cr_expect_null(strstr(said("pass=bwd b=1 h=1 s=704 d=64 fill=neglse", "9.27.0", "90", "6"),
                          "bwd-nan-negative-lse-skv-mod128-eq-64"));
    facts_subject s = {
        .c = &c, .cudnn = "9.20.0", .sm = "90", .engine = "6", .grade = "measured", .verdict = "nan"
    };
    const facts_expectation *e = facts_knowledge_expect(&knowledge, &s);
    cr_assert_not_null(e);
    cr_expect_str_eq(facts_known_text(&knowledge.at[e->known], "link"), "pytorch/pytorch#196678");
    s.grade = "decided";
    cr_expect_null(facts_knowledge_expect(&knowledge, &s), "a decision computes nothing");
}
