/* The command line: one table. What help prints is tested by ci/test/test_help.py. */
#include <jansson.h>

#include "../answer_lines.h"
#include "commands/options/options.h"
#include "record/reader.h"
#include "words/case_text.h"

static char reported[4096];

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

/* What is wrong with a command line. */
static const char *error_of(const char *text)
{
    char line[256], *words[32];
    facts_options o;
    snprintf(line, sizeof line, "%s", text);
    const int count = split(line, words);
    memset(reported, 0, sizeof reported);
    FILE *err = fmemopen(reported, sizeof reported, "w");
    const bool taken =
        facts_options_parse(&o, facts_command_parse(words[0], err), count - 1, words + 1, err);
    fclose(err);
    facts_options_free(&o);
    reported[strcspn(reported, "\n")] = '\0';
    return taken ? "taken" : reported;
}

static const char *nearest(const char *word)
{
    static const char *const known[] = { "decide", "doctor", "list", "pass", "mask",
                                         "gate",   "run",    "o",    "where" };
    const char *near = facts_nearest_word(word, known, sizeof known / sizeof known[0]);
    return near ? near : "none";
}

static const char *is_object(const char *text)
{
    facts_member members[8];
    size_t count;
    const bool taken = facts_scan_object(text, strlen(text), members, 8, &count);
    json_t *json = json_loads(text, 0, NULL);
    cr_expect_eq(taken, json_is_object(json), "a JSON library says otherwise: %s", text);
    json_decref(json);
    return taken ? "yes" : "no";
}

Test(options, answers_are_as_their_file_says)
{
    static const answerer kinds[] = { { "option", error_of },
                                      { "nearest", nearest },
                                      { "object", is_object } };
    check_answers("options.test", kinds, 3, 60);
}

Test(options, values_come_beside_or_behind_an_equals_sign)
{
    char *words[] = { "smoke", "--cudnn=9.20.0", "--device", "h100-sxm",  "-o", "r",
                      "-j4",   "--shard",        "2/3",      "--timeout", "1.5" };
    facts_options o;
    cr_assert(
        facts_options_parse(&o, FACTS_COMMAND_DECIDE, sizeof words / sizeof *words, words, stderr));
    cr_expect_str_eq(o.words[0], "smoke");
    cr_expect_str_eq(o.cudnn, "9.20.0");
    cr_expect_str_eq(o.device, "h100-sxm");
    cr_expect_str_eq(o.output, "r");
    cr_expect(o.jobs == 4 && o.shard == 2 && o.shards == 3);
    cr_expect_float_eq(o.timeout_s, 1.5, 1e-12);
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
