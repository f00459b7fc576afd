#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case/language/keys.h"
#include "case/words/case_text.h"
#include "search/said.h"

typedef enum kind { FLAG, TEXT, COUNT, NUMBER, SECONDS, MINUTES, RATIO, SHARD, ORACLE, BY, RECORDS } kind;

#define ON(symbol) (1u << FACTS_COMMAND_##symbol)
#define CASES (ON(LIST) | ON(DECIDE) | ON(COMPILE) | ON(RUN) | ON(REPRO))
#define ASKS (ON(DECIDE) | ON(COMPILE) | ON(RUN) | ON(REPRO))
#define BATCH (ON(DECIDE) | ON(COMPILE) | ON(RUN))
#define MEASURES (ON(CALIBRATE) | ON(BENCH))
#define HUNTS (ON(SHRINK) | ON(FUZZ))
#define COMPARES (ON(GATE) | ON(DIFF))
#define VERSIONS (ON(GATE) | ON(BISECT) | ON(IMPORT) | ON(AUDIT) | ON(EXPECT) | ON(KNOWN)) /* ask builds, keep a record */
#define EVERY ((1u << FACTS_COMMAND_COUNT) - 1u)

/* X("name", 'letter', KIND, field, "ARGUMENT", commands, "help") */
#define OPTION_LIST(X)                                                                                                             \
    X("cudnn", 0, TEXT, cudnn, "V,V", ASKS | HUNTS | ON(MATRIX) | MEASURES | (VERSIONS & ~ON(GATE)),                               \
      "builds: 9.20.0, 9.20.0-jit-cu13, 9.12..9.27, a folder, default, latest")                                                    \
    X("device", 0, TEXT, device, "D,D", ASKS | HUNTS | ON(MATRIX) | MEASURES | VERSIONS,                                           \
      "GPU numbers, all (one target on every GPU here), cpu, names of lib/devices, JSON files")                                    \
    X("where", 0, TEXT, where, "EXPR", CASES | ON(FUZZ) | MEASURES | COMPARES | ON(AUDIT),                                         \
      "keep the cases that satisfy a predicate: 'd.qk>128 & pass=bwd'")                                                            \
    X("with", 0, TEXT, with, "KEY=VALUE", BATCH | ON(LIST) | ON(FUZZ) | MEASURES,                                                  \
      "every case gets these instead of its own: 'engine=all'")                                                                    \
    X("output", 'o', TEXT, output, "PATH", BATCH | HUNTS | ON(MATRIX) | ON(MERGE) | MEASURES | VERSIONS,                           \
      "where the record (matrix: the folder) goes")                                                                                \
    X("json", 0, FLAG, json, NULL, CASES | ON(MATRIX) | ON(DOCTOR) | ON(SELF) | ON(BENCH) | COMPARES | (VERSIONS & ~ON(EXPECT)),   \
      "one JSON object a line on stdout")                                                                                          \
    X("count", 0, FLAG, count, NULL, ON(LIST), "only how many")                                                                    \
    X("plan", 0, FLAG, plan, NULL, ON(DECIDE) | HUNTS | (VERSIONS & ~ON(EXPECT)), "also compile what was accepted")                \
    X("explain", 0, FLAG, explain, NULL, ON(DECIDE), "of what was refused, also the nearest that is accepted")                     \
    X("jobs", 'j', COUNT, jobs, "N", ASKS | HUNTS | ON(MATRIX) | ON(CALIBRATE) | VERSIONS,                                         \
      "workers at once (default: one for each core, and on a GPU for each 4 GB of its free memory; 1 times a launch alone)")       \
    X("shard", 0, SHARD, shard, "I/N", BATCH | ON(LIST), "only this part of N, by the hash of the case's name")                    \
    X("resume", 0, FLAG, resume, NULL, BATCH | HUNTS | ON(GATE) | ON(BISECT),                                                      \
      "go on with the record of -o: only what has no row, or where we were late")                                                  \
    X("overwrite", 0, FLAG, overwrite, NULL, BATCH | HUNTS | ON(MERGE) | MEASURES | VERSIONS, "replace the record of -o")          \
    X("timeout", 0, SECONDS, timeout_s, "S", ASKS | HUNTS | ON(MATRIX) | MEASURES | VERSIONS,                                      \
      "seconds for one case (default: decide and fuzz 60, compile and run 300)")                                                   \
    X("fail-fast", 0, FLAG, fail_fast, NULL, BATCH, "stop at the first finding")                                                   \
    X("first-bad-only", 0, FLAG, first_bad_only, NULL, ON(RUN) | ON(REPRO), "of each case, compare only until something is wrong") \
    X("plan-dir", 0, TEXT, plan_dir, "DIR", BATCH | ON(BENCH) | ON(GATE),                                                          \
      "keep plans and cuDNN's refusals here, and load them from here")                                                             \
    X("trust-plans", 0, TEXT, trust_plans, "DIR", BATCH | ON(BENCH) | ON(GATE),                                                    \
      "as --plan-dir, and load what others compiled: that is native code; the record says so")                                     \
    X("dump", 0, TEXT, dump, "DIR", ON(REPRO), "write every tensor as .npy, and check.py beside them")                             \
    X("standalone", 0, TEXT, standalone, "DIR", ON(REPRO),                                                                         \
      "write a C program on cuDNN's backend API alone that runs and checks the case")                                              \
    X("frontend", 0, FLAG, frontend, NULL, ON(REPRO), "of --standalone: a Python script on cudnn-frontend instead")                \
    X("trace", 0, FLAG, trace, NULL, ON(REPRO), "one launch and nothing else, for a profiler")                                     \
    X("oracle", 0, ORACLE, oracle, "cpu|gpu|both", ON(RUN) | ON(REPRO),                                                            \
      "who computes what is due (default: a GPU where there is one); both: and compare")                                           \
    X("force", 0, FLAG, force, NULL, ON(MERGE), "join records of different suites all the same")                                   \
    X("liar", 0, TEXT, liar, "ID", ON(SELF), "only this liar, or those with this in their id: bwd.")                               \
    X("dtype", 0, TEXT, dtype, "TYPE", ON(SELF), "only this type: bf16 f16 f32 e4m3 e5m2 e4m3-hopper e5m2-hopper")                 \
    X("quick", 0, FLAG, quick, NULL, ON(SELF), "the smallest size alone")                                                          \
    X("clean", 0, NUMBER, clean, "N", ON(SELF),                                                                                    \
      "only evaluations of a right kernel, N of them (without it: the liars, then 2000)")                                          \
    X("first", 0, NUMBER, first, "I", ON(SELF), "of --clean: begin with this one (--clean 1 --first I repeats a false alarm)")     \
    X("seed", 0, NUMBER, seed, "N", ON(SELF) | ON(FUZZ), "of the data and of what is drawn (default 1)")                           \
    X("markdown", 0, FLAG, markdown, NULL, ON(SELF) | COMPARES | ON(AUDIT),                                                        \
      "the answer as Markdown: for a pull request, an issue, the documentation")                                                   \
    X("minutes", 0, MINUTES, minutes, "N", HUNTS, "stop after so many; with -o FILE, --resume goes on")                            \
    X("cases", 0, NUMBER, cases, "N", ON(FUZZ), "draw so many cases")                                                              \
    X("steps", 0, NUMBER, steps, "N", HUNTS, "questions for one shrinking (default 400)")                                          \
    X("weights", 0, TEXT, weights, "FILE", ON(FUZZ), "what is drawn, how often (default: cases/fuzz.weights)")                     \
    X("from", 0, RECORDS, from, "RECORD", ON(CALIBRATE) | ON(AUDIT), "of rows that are there, instead of a run; several are one")  \
    X("write", 0, FLAG, write, NULL, ON(KNOWN), "check, propose: write into cases/known instead of printing the diff")             \
    X("source", 0, TEXT, source, "TEXT", ON(KNOWN), "note: the record or report that shows the observation")                       \
    X("known", 0, FLAG, known, NULL, ON(FUZZ), "also known failures (cases/known)")                                                \
    X("baseline", 0, TEXT, baseline, "V", COMPARES, "what is trusted: a build (of two records, or of one that holds both)")        \
    X("candidate", 0, TEXT, candidate, "V", COMPARES, "what may replace it")                                                       \
    X("fail-on", 0, TEXT, fail_on, "CLASS,CLASS", COMPARES,                                                                        \
      "which classes of change are findings (default worse,changed-kind,lost; any: docs/gate.md lists them)")                      \
    X("slower", 0, RATIO, slower, "R", COMPARES, "the ratio of times from which a case is slower (default 1.10)")                  \
    X("bench", 0, FLAG, bench, NULL, ON(GATE), "measure the times, the builds in turns: slower is then a finding (docs/gate.md)")  \
    X("twice", 0, FLAG, twice, NULL, ON(BENCH), "two workers of each build: what they differ by is noise")                         \
    X("junit", 0, TEXT, junit, "FILE", COMPARES, "the answer as JUnit too")                                                        \
    X("errata", 0, TEXT, errata, "FILE", COMPARES, "the engines to leave out, in cudnn-frontend's form")                           \
    X("annotations", 0, FLAG, annotations, NULL, COMPARES, "the rows as GitHub annotations too")                                   \
    X("by", 0, BY, by, "WHAT", ON(BISECT) | ON(SHRINK),                                                                            \
      "what is compared: verdict (bisect's default), class, engine, engines, knobs, reason; shrink without it: failures")          \
    X("all", 0, FLAG, all, NULL, ON(BISECT), "every edge: ask all versions, not only those that a search needs")                   \
    X("decide", 0, FLAG, decide, NULL, ON(IMPORT), "also ask --cudnn about them")                                                  \
    X("run", 0, FLAG, run, NULL, ON(IMPORT), "also run them")                                                                      \
    X("pinned-only", 0, FLAG, pinned_only, NULL, ASKS | HUNTS | ON(MATRIX) | MEASURES | VERSIONS,                                  \
      "refuse a downloaded cuDNN that is not in ci/cudnn.lock")                                                                    \
    X("help", 'h', FLAG, help, NULL, EVERY, "this text")

typedef struct option {
    const char *name;
    char letter;
    kind kind;
    size_t offset;
    const char *argument;
    unsigned commands;
    const char *help;
} option;

#define AS_ROW(name, letter, kind, field, argument, commands, help)                                                                \
    { name, letter, kind, offsetof(facts_options, field), argument, commands, help },
static const option options[] = { OPTION_LIST(AS_ROW) };
#undef AS_ROW
#define OPTION_COUNT (sizeof options / sizeof options[0])

typedef struct command_words {
    const char *name, *rest, *help;
} command_words;

#define AS_WORDS(symbol, name, rest, help) [FACTS_COMMAND_##symbol] = { name, rest, help },
static const command_words commands[FACTS_COMMAND_COUNT] = { FACTS_COMMAND_LIST(AS_WORDS) };
#undef AS_WORDS

facts_command facts_command_parse(const char *word, FILE *err)
{
    const char *names[FACTS_COMMAND_COUNT];
    for (facts_command c = 0; c < FACTS_COMMAND_COUNT; c++) {
        names[c] = commands[c].name;
        if (strcmp(word, commands[c].name) == 0)
            return c;
    }
    fprintf(err, "facts: no command \"%.60s\"; did you mean %s? (`facts --help` lists them)\n", word,
            facts_nearest_word(word, names, FACTS_COMMAND_COUNT));
    return FACTS_COMMAND_COUNT;
}

static bool unknown(facts_command command, const char *word, FILE *err)
{
    if (command == FACTS_COMMAND_GATE && strncmp(word, "--cudnn", strlen("--cudnn")) == 0) {
        fputs("facts gate: no option \"--cudnn\": name both versions: facts gate --baseline 9.20.0 --candidate 9.27.0\n", err);
        return false;
    }
    const char *names[OPTION_COUNT];
    size_t n = 0;
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (options[i].commands & (1u << command))
            names[n++] = options[i].name;
    fprintf(err, "facts %s: no option \"%.60s\"; did you mean --%s? (`facts %s --help` lists them)\n", commands[command].name, word,
            facts_nearest_word(word + strspn(word, "-"), names, n), commands[command].name);
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
    return read_int(first, 1000000, &out->shard) && read_int(text + n + 1, 1000000, &out->shards) && out->shard <= out->shards;
}

/* Sets one option. Returns what is allowed when the value is not, otherwise NULL. */
static const char *set(facts_options *out, const option *o, const char *value)
{
    char *field = (char *)out + o->offset;
    char *end;
    switch (o->kind) {
    case FLAG:
        *(bool *)field = true;
        return NULL;
    case TEXT:
        *(const char **)field = value;
        return *value ? NULL : "something that is not empty";
    case RECORDS:
        out->records[out->record_count++] = value;
        out->from = out->records[0];
        return *value ? NULL : "something that is not empty";
    case COUNT:
        return read_int(value, 256, (int *)field) ? NULL : "a number from 1 to 256";
    case NUMBER:
        return read_number(value, (int *)field) ? NULL : "a number from 0 to 1000000000";
    case ORACLE:
        *(const char **)field = value;
        return strcmp(value, "cpu") == 0 || strcmp(value, "gpu") == 0 || strcmp(value, "both") == 0 ? NULL : "cpu, gpu or both";
    case BY:
        *(const char **)field = value;
        return facts_by_parse(value) != FACTS_BY_COUNT ? NULL : "verdict, class, engine, engines, knobs or reason";
    case SHARD:
        return read_shard(value, out) ? NULL : "I/N with 1 <= I <= N";
    case MINUTES:
        *(double *)field = strtod(value, &end);
        return end != value && !*end && isfinite(*(double *)field) && *(double *)field > 0 && *(double *)field <= 100000
                   ? NULL
                   : "minutes above 0, at most 100000";
    case RATIO:
        *(double *)field = strtod(value, &end);
        return end != value && !*end && *(double *)field > 1 && *(double *)field <= 1000 ? NULL : "a ratio above 1, at most 1000";
    case SECONDS:
        *(double *)field = strtod(value, &end);
        return end != value && !*end && isfinite(*(double *)field) && *(double *)field > 0 && *(double *)field <= 86400
                   ? NULL
                   : "seconds above 0, at most 86400";
    }
    return NULL;
}

typedef struct arguments {
    int argc, at;
    char **argv;
} arguments;

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
        if (options[i].letter && options[i].letter == name[0] && (options[i].commands & (1u << command)))
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
    const char *allowed = set(out, o, value);
    if (allowed)
        fprintf(err, "facts %s: --%s \"%.80s\": allowed is %s\n", commands[command].name, o->name, value ? value : "", allowed);
    return !allowed;
}

bool facts_options_parse(facts_options *out, facts_command command, int argc, char **argv, FILE *err)
{
    arguments a = { .argc = argc, .argv = argv };
    bool only_words = false;
    *out = (facts_options){ .clean = -1, .seed = -1 };
    out->words = calloc((size_t)argc + 1, sizeof *out->words);
    out->records = calloc((size_t)argc + 1, sizeof *out->records);
    if (!out->words || !out->records) {
        fputs("facts: out of memory\n", err);
        return false;
    }
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
    if (out->resume && (!out->output || out->overwrite)) {
        fputs(out->output ? "facts: --resume and --overwrite exclude each other\n"
                          : "facts: --resume needs the record to go on with: -o FILE\n",
              err);
        return false;
    }
    bool takes_words = *commands[command].rest != '\0';
    if (takes_words && commands[command].rest[0] != '[' && !out->word_count && !out->from) {
        fprintf(err, "facts %s: %s is missing\n", commands[command].name, commands[command].rest);
        return false;
    }
    if (!takes_words && out->word_count) {
        fprintf(err, "facts %s: takes no \"%.60s\"\n", commands[command].name, out->words[0]);
        return false;
    }
    return true;
}

void facts_options_free(facts_options *out)
{
    free(out->words);
    free(out->records);
    out->words = out->records = NULL;
}

static void help_one(facts_command command, FILE *out)
{
    fprintf(out, "facts %s %s\n  %s\n\n", commands[command].name, commands[command].rest, commands[command].help);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        char left[64];
        const option *o = &options[i];
        if (!(o->commands & (1u << command)))
            continue;
        int n = snprintf(left, sizeof left, "%c%c%s --%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
                         o->letter ? "," : " ", o->name, o->argument ? " " : "", o->argument ? o->argument : "");
        fprintf(out, "  %s%*s  %s\n", left, n < 24 ? 24 - n : 0, "", o->help);
    }
    if (command == FACTS_COMMAND_LIST) {
        fputs("\nThe keys of a case:\n", out);
        facts_keys_help(out);
    }
    if (command <= FACTS_COMMAND_REPRO && commands[command].rest[0])
        fputs("\nCASES is a case or pattern in quotes ('pass=fwd d=64,128 mask=causal'), a suite (smoke core reject regress), or a "
              "file.\n",
              out);
}

void facts_options_help(facts_command command, FILE *out)
{
    if (command < FACTS_COMMAND_COUNT) {
        help_one(command, out);
        return;
    }
    fputs("facts: fused attention of cuDNN: accepted or why not, by which engine, and is it right\n\n", out);
    for (facts_command c = 0; c < FACTS_COMMAND_COUNT; c++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", commands[c].name, commands[c].rest);
        fprintf(out, "  facts %-32s %s\n", left, commands[c].help);
    }
    fputs("\n`facts COMMAND --help` lists its options.\n"
          "Exit: 0 as expected, 1 findings, 2 bad input, 3 the environment cannot do it, 4 incomplete, 5 nothing selected, 130 "
          "interrupted.\n",
          out);
}
