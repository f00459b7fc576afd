#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem/case_problem.h"
#include "suites/predicate.h"

static bool holds(const char *text, const facts_subject *subject)
{
    facts_predicate *p;
    facts_error error = { 0 };
    cr_assert(facts_predicate_parse(&facts_attention_language, &p, text, &error), "%s: %s", text,
              error.text);
    bool result = facts_predicate_holds(p, subject);
    facts_predicate_destroy(p);
    return result;
}

static const char *const keys[] = { "cudnn",   "sm",     "build",  "backend", "grade",
                                    "verdict", "engine", "config", "class" };

/* A line "row CASE | KEY=VALUE ...", without its first word. */
static void read_row(char *text, facts_case *c, facts_subject *s)
{
    facts_error error = { 0 };
    char *known = strstr(text, " |");
    cr_assert(known != NULL, "%s", text);
    *known = '\0';
    cr_assert(facts_case_parse(c, text, &error), "%s: %s", text, error.text);
    *s = (facts_subject){ .c = c };
    const char **fields[] = { &s->cudnn,   &s->sm,     &s->build,  &s->backend,     &s->grade,
                              &s->verdict, &s->engine, &s->config, &s->reason_class };
    for (char *word = strtok(known + 2, " "); word != NULL; word = strtok(NULL, " ")) {
        char *value = strchr(word, '=');
        cr_assert(value != NULL, "%s", word);
        *value = '\0';
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (strcmp(word, keys[i]) == 0)
                *fields[i] = value + 1;
    }
}

static void is_refused(const char *text, int column)
{
    facts_predicate *p;
    facts_error error = { 0 };
    cr_expect_not(facts_predicate_parse(&facts_attention_language, &p, text, &error), "%s is taken",
                  text);
    char place[32];
    snprintf(place, sizeof place, "where:1:%d: ", column);
    cr_expect(strncmp(error.text, place, strlen(place)) == 0, "%s gives %s", text, error.text);
}

Test(predicate, answers_as_the_file_that_every_evaluator_answers)
{
    char path[4096], line[1024], row[1024];
    snprintf(path, sizeof path, "%s/cases/predicates.test", getenv("FACTS_SOURCE"));
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL, "%s", path);
    facts_case c;
    facts_subject s = { 0 };
    int asked = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *text = strchr(line, ' ');
        if (line[0] == '#' || text == NULL)
            continue;
        *text++ = '\0';
        if (strcmp(line, "row") == 0) {
            read_row(strcpy(row, text), &c, &s);
        } else if (strcmp(line, "bad") == 0) {
            int column = (int)strtol(text, &text, 10);
            is_refused(text + 1, column);
        } else {
            cr_expect(holds(text, &s) == (strcmp(line, "yes") == 0), "%s: %s", line, text);
        }
        asked++;
    }
    fclose(file);
    cr_expect(asked > 100, "%d lines", asked);
}

Test(predicate, without_a_case_nothing_holds_of_one)
{
    cr_expect_not(holds("pass=fwd", &(facts_subject){ 0 }));
    cr_expect_not(holds("b!=3", &(facts_subject){ 0 }));
}

Test(predicate, depth_and_length_are_bounded)
{
    char deep[4096];
    memset(deep, '(', 2000);
    strcpy(deep + 2000, "b=1");
    facts_predicate *p;
    facts_error error;
    cr_expect_not(facts_predicate_parse(&facts_attention_language, &p, deep, &error));
    cr_expect(strstr(error.text, "nested too deep") != NULL, "%s", error.text);
    static char longest[20000];
    for (int i = 0; i < 2500; i++)
        strcat(longest + i * 4, "b=1|");
    strcat(longest, "b=1");
    cr_expect_not(facts_predicate_parse(&facts_attention_language, &p, longest, &error));
    longest[8192 - 1] = '\0';
    cr_expect_not(facts_predicate_parse(&facts_attention_language, &p, longest, &error),
                  "more tests than a predicate may hold");
}
