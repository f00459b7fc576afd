/* The case language, held to harness/test/data/language.test: what a text is, or where its error
 * is. */
#include <unistd.h>

#include "../answer_lines.h"
#include "problem/case_problem.h"
#include "suites/planned_cases.h"
#include "suites/suite.h"

static facts_error error;

static const char *if_taken(bool taken)
{
    return taken ? "taken" : error.text;
}

static const char *name_of(const char *text)
{
    static char name[FACTS_NAME_MAX];
    facts_case c;
    return facts_case_parse(&c, text, &error) ? facts_case_name(&c, name) : error.text;
}

/* The names of an expansion; each loses what all begin with. */
static const char *expanded(const char *text, const facts_choice *choice)
{
    static char out[1 << 14];
    size_t used = 0;
    facts_cases *cases;
    if (facts_cases_expand(&facts_attention_language, &cases, &text, 1, NULL, choice, &error) != 0)
        return error.text;
    for (size_t i = 0; i < facts_cases_count(cases); i++)
        used += (size_t)snprintf(out + used, sizeof out - used, "%s|",
                                 facts_cases_at(cases, i).name + strlen("pass=fwd dtype=bf16 "));
    facts_cases_destroy(cases);
    return out;
}

static const char *members_of(const char *text)
{
    return expanded(text, &(facts_choice){ 0 });
}

static const char *with(const char *text)
{
    return expanded("s=64", &(facts_choice){ .with = text });
}

static const char *suite_of(const char *text)
{
    char path[] = "/tmp/facts-test-XXXXXX";
    const int fd = mkstemp(path);
    cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    const char *answer = members_of(path);
    unlink(path);
    return answer;
}

static const char *drawn(const char *text)
{
    facts_suite suite = { .language = &facts_attention_language };
    const bool taken = facts_suite_read(&suite, text, "w", &error);
    facts_suite_clear(&suite);
    return if_taken(taken);
}

static const char *asked(const char *text)
{
    facts_predicate *p;
    const bool taken = facts_predicate_parse(&facts_attention_language, &p, text, &error);
    cr_expect_eq(p != NULL, taken);
    facts_predicate_destroy(p);
    return if_taken(taken);
}

Test(case, is_answered_as_its_file_says)
{
    static const answerer kinds[] = { { "name", name_of },      { "bad", name_of },
                                      { "expand", members_of }, { "suite", suite_of },
                                      { "with", with },         { "draw", drawn },
                                      { "where", asked } };
    check_answers("language.test", kinds, sizeof kinds / sizeof *kinds, 128);
}
