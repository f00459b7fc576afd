#include "option_table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "builds/print_line.h"
#include "search/reported.h"
#include "words/case_text.h"

facts_command facts_command_parse(const char *word, FILE *err)
{
    const char *names[FACTS_COMMAND_COUNT];
    for (facts_command c = 0; c < FACTS_COMMAND_COUNT; c++) {
        names[c] = commands[c].name;
        if (strcmp(word, commands[c].name) == 0)
            return c;
    }
    const char *near = facts_nearest_word(word, names, FACTS_COMMAND_COUNT);
    facts_print_line(err, "facts: no command \"%.60s\"%s%s%s (`facts --help` lists them)", word,
                     near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    return FACTS_COMMAND_COUNT;
}

static bool unknown(facts_command command, const char *word, FILE *err)
{
    const char *names[OPTION_COUNT];
    size_t n = 0;
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (options[i].commands & (1u << command))
            names[n++] = options[i].name;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + strspn(word, "-"), "="),
             word + strspn(word, "-"));
    const char *near = facts_nearest_word(name, names, n);
    facts_print_line(err, "facts %s: no option \"%.60s\"%s%s%s (`facts %s --help` lists them)",
                     commands[command].name, word, near ? "; did you mean --" : "",
                     near ? near : "", near ? "?" : "", commands[command].name);
    return false;
}

static const option *find(facts_command command, const char *name, size_t length)
{
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if ((options[i].commands & (1u << command)) && strlen(options[i].name) == length &&
            memcmp(options[i].name, name, length) == 0)
            return &options[i];
    return NULL;
}

static bool read_int(const char *text, long most, int *out)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (end == text || *end || errno || value < 1 || value > most)
        return false;
    *out = (int)value;
    return true;
}

static bool read_number(const char *text, int *out)
{
    return strcmp(text, "0") == 0 ? (*out = 0, true) : read_int(text, 1000000000, out);
}

static bool read_shard(const char *text, facts_options *out)
{
    char first[16];
    size_t n = strcspn(text, "/");
    if (text[n] != '/' || n >= sizeof first)
        return false;
    memcpy(first, text, n);
    first[n] = '\0';
    return read_int(first, 1000000, &out->shard) && read_int(text + n + 1, 1000000, &out->shards) &&
           out->shard <= out->shards;
}

/* Sets one option. For a value that is not allowed, returns the allowed values; otherwise NULL. */
static const char *set(facts_options *out, const option *o, const char *value)
{
    char *field = (char *)out + o->offset;
    char *end;
    switch (o->kind) {
    case ELSEWHERE:
        return NULL;
    case FLAG:
        *(bool *)field = true;
        return NULL;
    case TEXT:
        *(const char **)field = value;
        return *value ? NULL : "something that is not empty";
    case COUNT:
        return read_int(value, 256, (int *)field) ? NULL : "a number from 1 to 256";
    case NUMBER:
        return read_number(value, (int *)field) ? NULL : "a number from 0 to 1000000000";
    case ORACLE:
        *(const char **)field = value;
        return strcmp(value, "cpu") == 0 || strcmp(value, "gpu") == 0 ? NULL : "cpu or gpu";
    case BY:
        *(const char **)field = value;
        return facts_by_parse(value) != FACTS_BY_COUNT
                   ? NULL
                   : "verdict, class, engine, engines, knobs or reason";
    case SHARD:
        return read_shard(value, out) ? NULL : "I/N with 1 <= I <= N";
    case MINUTES:
        *(double *)field = strtod(value, &end);
        return end != value && !*end && isfinite(*(double *)field) && *(double *)field > 0 &&
                       *(double *)field <= 100000
                   ? NULL
                   : "minutes above 0, at most 100000";
    case SECONDS:
        *(double *)field = strtod(value, &end);
        return end != value && !*end && isfinite(*(double *)field) && *(double *)field > 0 &&
                       *(double *)field <= 86400
                   ? NULL
                   : "seconds above 0, at most 86400";
    }
    return NULL;
}

typedef struct arguments {
    int argc, at;
    char **argv;
    const char *given[OPTION_COUNT]; /* the value of each option that was given */
} arguments;

/* A second value would replace the first one without a message. */
static bool refuse_twice(facts_command command, const option *o, const char *first,
                         const char *second, FILE *err)
{
    const bool list = strchr(o->argument, ',') != NULL;
    facts_print_line(err, "facts %s: --%s is given twice; %s%s%s%.200s%s%.200s",
                     commands[command].name, o->name, list ? "write --" : "give it once",
                     list ? o->name : "", list ? " " : "", list ? first : "", list ? "," : "",
                     list ? second : "");
    return false;
}

/* One --name, --name=value or -x. */
static bool parse_option(facts_options *out, facts_command command, arguments *a, FILE *err)
{
    const char *word = a->argv[a->at];
    bool is_long = word[1] == '-';
    const char *name = word + (is_long ? 2 : 1);
    const char *value = is_long ? strchr(name, '=') : NULL;
    const option *o = NULL;
    if (is_long)
        o = find(command, name, value ? (size_t)(value - name) : strlen(name));
    for (size_t i = 0; !is_long && i < OPTION_COUNT; i++)
        if (options[i].letter && options[i].letter == name[0] &&
            (options[i].commands & (1u << command)))
            o = &options[i];
    if (!o)
        return unknown(command, word, err);
    if (value)
        value++;
    else if (!is_long && name[1])
        value = name + 1;
    if (o->kind == FLAG && value) {
        fprintf(err, "facts %s: --%s takes no value\n", commands[command].name, o->name);
        return false;
    }
    if (o->kind != FLAG && !value && ++a->at < a->argc)
        value = a->argv[a->at];
    if (o->kind != FLAG && !value) {
        fprintf(err, "facts %s: --%s needs %s\n", commands[command].name, o->name, o->argument);
        return false;
    }
    const char **given = &a->given[o - options];
    if (*given)
        return refuse_twice(command, o, *given, value, err);
    *given = value;
    const char *allowed = set(out, o, value);
    if (allowed)
        facts_print_line(err, "facts %s: --%s \"%.80s\": allowed is %s", commands[command].name,
                         o->name, value ? value : "", allowed);
    return !allowed;
}

bool facts_options_parse(facts_options *out, facts_command command, int argc, char **argv,
                         FILE *err)
{
    arguments a = { .argc = argc, .argv = argv };
    bool only_words = false;
    *out = (facts_options){ .clean = -1, .seed = -1 };
    out->words = calloc((size_t)argc + 1, sizeof *out->words);
    for (; a.at < argc; a.at++) {
        const char *word = argv[a.at];
        if (!only_words && strcmp(word, "--") == 0)
            only_words = true;
        else if (only_words || word[0] != '-' || !word[1])
            out->words[out->word_count++] = word;
        else if (!parse_option(out, command, &a, err))
            return false;
    }
    if (out->help)
        return true;
    if ((out->resume || out->overwrite) && !out->output) {
        fprintf(err, "facts: --%s needs the record: -o FILE\n",
                out->resume ? "resume" : "overwrite");
        return false;
    }
    if (out->resume && out->overwrite) {
        fputs("facts: --resume and --overwrite exclude each other\n", err);
        return false;
    }
    bool takes_words = *commands[command].rest != '\0';
    if (takes_words && commands[command].rest[0] != '[' && !out->word_count) {
        fprintf(err, "facts %s: %s is missing\n", commands[command].name, commands[command].rest);
        return false;
    }
    if (!takes_words && out->word_count) {
        facts_print_line(err, "facts %s: takes no \"%.60s\"", commands[command].name,
                         out->words[0]);
        return false;
    }
    return true;
}

void facts_options_free(facts_options *out)
{
    free(out->words);
    out->words = NULL;
}
