/* The command line: one table. What help prints is tested by ci/test/test_help.py. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "case/words/case_text.h"
#include "commands/options/options.h"

static char reported[4096];

/* Parses words; what was said on stderr is in `said`. */
static bool parse(facts_options *out, facts_command command, int argc, char **argv)
{
    FILE *err = fmemopen(reported, sizeof reported, "w");
    memset(reported, 0, sizeof reported);
    bool ok = facts_options_parse(out, command, argc, argv, err);
    fclose(err);
    return ok;
}

#define PARSE(out, command, ...)                                                                   \
    parse(out, FACTS_COMMAND_##command, (int)(sizeof((char *[]){ __VA_ARGS__ }) / sizeof(char *)), \
          (char *[]){ __VA_ARGS__ })

/* A line as a shell takes it: words, and words in single quotes. */
static int split(char *line, char *words[32])
{
    int count = 0;
    while (*(line += strspn(line, " ")) && count < 32) {
        bool quoted = *line == '\'';
        words[count++] = line += quoted;
        line += strcspn(line, quoted ? "'" : " ");
        if (*line)
            *line++ = '\0';
    }
    return count;
}

static void expect_parsed(const char *example)
{
    char line[256], *words[32];
    facts_options o;
    snprintf(line, sizeof line, "%s", example);
    int count = split(line, words);
    cr_assert_str_eq(words[0], "facts");
    facts_command command = facts_command_parse(words[1], stderr);
    if (command == FACTS_COMMAND_CUDNN)
        return; /* its own parser */
    cr_expect(facts_options_parse(&o, command, count - 2, words + 2, stderr), "%s", example);
    facts_options_free(&o);
}

Test(options, values_come_beside_or_behind_an_equals_sign)
{
    facts_options o;
    cr_assert(PARSE(&o, DECIDE, "smoke", "--cudnn=9.20.0", "--device", "h100-sxm", "-o", "r", "-j4",
                    "--shard", "2/3", "--timeout", "1.5"));
    cr_expect_str_eq(o.words[0], "smoke");
    cr_expect_str_eq(o.cudnn, "9.20.0");
    cr_expect_str_eq(o.device, "h100-sxm");
    cr_expect_str_eq(o.output, "r");
    cr_expect_eq(o.jobs, 4);
    cr_expect(o.shard == 2 && o.shards == 3);
    cr_expect_float_eq(o.timeout_s, 1.5, 1e-12);
    facts_options_free(&o);
}

Test(options, a_misspelled_option_names_the_nearest)
{
    facts_options o;
    cr_expect_not(PARSE(&o, DECIDE, "smoke", "--cudn", "9"));
    cr_expect(strstr(reported, "did you mean --cudnn?") != NULL, "%s", reported);
    facts_options_free(&o);
}

Test(options, an_option_of_another_command_is_unknown)
{
    facts_options o;
    cr_expect_not(PARSE(&o, LIST, "smoke", "--cudnn", "9.20.0"));
    facts_options_free(&o);
    cr_expect_not(PARSE(&o, KEYS, "a", "--json"));
    facts_options_free(&o);
}

Test(options, wrong_values_say_what_is_allowed)
{
    static char *const wrong[][2] = { { "--jobs", "0" },     { "--jobs", "x" },
                                      { "--jobs", "1000" },  { "--shard", "4/3" },
                                      { "--shard", "0/3" },  { "--shard", "1" },
                                      { "--timeout", "-1" }, { "--timeout", "nan" },
                                      { "--timeout", "1x" }, { "--cudnn", "" } };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        facts_options o;
        cr_expect_not(PARSE(&o, DECIDE, "smoke", wrong[i][0], wrong[i][1]), "%s %s", wrong[i][0],
                      wrong[i][1]);
        cr_expect(strstr(reported, "allowed is") != NULL, "%s", reported);
        facts_options_free(&o);
    }
}

Test(options, a_value_that_is_missing_is_named)
{
    facts_options o;
    cr_expect_not(PARSE(&o, DECIDE, "smoke", "--cudnn"));
    cr_expect(strstr(reported, "--cudnn needs V,V") != NULL, "%s", reported);
    facts_options_free(&o);
}

Test(options, words_are_asked_for_where_they_are_due_and_refused_where_not)
{
    facts_options o;
    cr_expect_not(PARSE(&o, DECIDE, "--json"));
    facts_options_free(&o);
    cr_expect_not(PARSE(&o, DOCTOR, "smoke"));
    facts_options_free(&o);
    cr_expect(PARSE(&o, LIST, "--", "--not-an-option"));
    cr_expect_str_eq(o.words[0], "--not-an-option");
    facts_options_free(&o);
}

/* Every example of the help is a line that the parser takes. */
Test(options, the_examples_of_the_help_parse)
{
    for (facts_command command = 0; command < FACTS_COMMAND_COUNT; command++) {
        const char *const *examples = facts_options_examples(command);
        for (size_t i = 0; i < 2 && examples; i++) /* the others are Python's */
            expect_parsed(examples[i]);
    }
}

Test(options, help_names_the_nearest_command)
{
    static char text[1 << 12];
    FILE *err = fmemopen(text, sizeof text, "w");
    cr_expect_eq(facts_command_parse("gaet", err), FACTS_COMMAND_COUNT);
    fclose(err);
    cr_expect(strstr(text, "did you mean gate") != NULL, "%s", text);
}

Test(options, an_option_is_given_once)
{
    facts_options o;
    cr_expect_not(PARSE(&o, DECIDE, "smoke", "--cudnn", "9.20.0", "--cudnn=9.27.0"));
    cr_expect(strstr(reported, "write --cudnn 9.20.0,9.27.0") != NULL, "%s", reported);
    facts_options_free(&o);
    cr_expect_not(PARSE(&o, DECIDE, "smoke", "-j1", "--jobs", "2"));
    cr_expect(strstr(reported, "--jobs is given twice; give it once") != NULL, "%s", reported);
    facts_options_free(&o);
    cr_expect(PARSE(&o, LIST, "smoke", "--json", "--json"));
    facts_options_free(&o);
}

Test(nearest, fewest_mistakes_win_and_what_is_not_near_is_not_named)
{
    static const struct {
        const char *asked, *near;
    } words[] = { { "lst", "list" },      { "docter", "doctor" }, { "maks", "mask" },
                  { "gaet", "gate" },     { "bweditch", NULL },   { "foo", NULL },
                  { "", NULL },           { "x", NULL },          { "retry", NULL },
                  { "decdie", "decide" }, { "decode", "decide" }, { "dcoide", "decide" },
                  { "pasm", "pass" },     { "runn", "run" } };
    static const char *const known[] = { "decide", "doctor", "list", "pass", "mask",
                                         "gate",   "run",    "o",    "where" };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const char *near =
            facts_nearest_word(words[i].asked, known, sizeof known / sizeof known[0]);
        cr_expect(near == words[i].near ||
                      (near && words[i].near && strcmp(near, words[i].near) == 0),
                  "%s: %s", words[i].asked, near ? near : "none");
    }
}
