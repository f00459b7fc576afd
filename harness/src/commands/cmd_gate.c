/* facts gate: may CI move from one cuDNN to another? Asks both builds the same cases in one run, or
 * reads existing records. The report package compares the answers, as for `facts diff`. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "builds/print_line.h"
#include "commands.h"

#define SUITE "smoke"
#define BENCH_SUITE "bench"
#define DESCRIBED "h100-sxm,sm100-spec"

/* A folder of cases/, or of its suites, by its name only. */
static bool is_suite(const char *word)
{
    char part[FACTS_PATH], path[FACTS_PATH];
    static const char *const above[] = { "cases", "cases/suites" };
    for (size_t i = 0; i < 2 && !strchr(word, '/'); i++)
        if (facts_join(part, above[i], word) && facts_home_path(part, path))
            return true;
    return false;
}

/* A record, or a folder of records: a path that is neither a case nor a suite. A record is JSON
 * Lines, packed or not. */
static bool is_record(const char *word)
{
    struct stat info;
    if (stat(word, &info) != 0)
        return false;
    if (S_ISDIR(info.st_mode))
        return !is_suite(word);
    if (facts_is_record_name(word))
        return true;
    FILE *file = fopen(word, "r");
    int first = file ? getc(file) : EOF;
    if (file)
        fclose(file);
    return first == '{';
}

static const char *devices_of(const facts_options *o)
{
    return o->device ? o->device : facts_gpus_here() ? "0" : DESCRIBED;
}

static int say_how(const facts_options *o)
{
    if (o->word_count == 2 && facts_is_version(o->words[0]) && facts_is_version(o->words[1]))
        return facts_complain(
            FACTS_EXIT_BAD_INPUT,
            "facts gate: name both versions with options: facts gate --baseline %s --candidate %s",
            o->words[0], o->words[1]);
    return facts_complain(FACTS_EXIT_BAD_INPUT,
                          "facts gate: %s%s%s missing. Example: facts gate --baseline 9.20.0 "
                          "--candidate 9.27.0. Or give two records",
                          o->baseline ? "" : "--baseline V",
                          !o->baseline && !o->candidate ? " and " : "",
                          !o->baseline && !o->candidate ? "--candidate V are"
                          : !o->baseline                ? " is"
                                                        : "--candidate V is");
}

/* ---- mistakes, found before anything is installed or asked
 * ----------------------------------------------------------------- */

/* The devices of a gate have cuDNN; *described: one of them at least is a description. */
static int check_devices(const facts_options *o, const char *devices, bool *described)
{
    facts_target target;
    facts_error message = { 0 };
    char *words = strdup(devices), *rest = words, *word;
    int status = words ? FACTS_EXIT_OK : facts_no_memory();
    while (status == FACTS_EXIT_OK && (word = strsep(&rest, ",")) != NULL) {
        if (*word && (status = facts_target_device(&target, word, &message)) != 0)
            facts_complain(status, "facts gate: %s", message.text);
        else if (*word && target.kind == FACTS_TARGET_CPU)
            status = facts_complain(
                FACTS_EXIT_BAD_INPUT,
                "facts gate: --device cpu runs no cuDNN; give a GPU or a described device");
        *described |= *word && status == FACTS_EXIT_OK && target.kind == FACTS_TARGET_DESCRIBED;
    }
    free(words);
    if (status == FACTS_EXIT_OK && *described && o->bench)
        return facts_complain(
            FACTS_EXIT_BAD_INPUT,
            "facts gate --bench: a described device runs nothing; give --device 0");
    return status;
}

/* One build, which can read a description if there is one. */
static int check_build(const facts_options *o, const char *option, const char *word, bool described)
{
    facts_builds builds = { 0 };
    int status = FACTS_EXIT_OK;
    const unsigned flags = FACTS_RESOLVE_INSTALLABLE | (o->pinned_only ? FACTS_RESOLVE_PINNED : 0);
    facts_builds_resolve(&builds, word, flags, NULL,
                         NULL); /* find_build asks the index too, and reports a failure */
    const char *version = builds.count ? builds.at[0].version : word;
    char *end;
    const long major = strtol(version, &end, 10),
               minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    if (builds.count > 1)
        status = facts_complain(FACTS_EXIT_BAD_INPUT, "facts gate: %s %s: is %zu builds; give one",
                                option, word, builds.count);
    else if (described && major == 9 && minor < 8)
        status = facts_complain(FACTS_EXIT_BAD_INPUT,
                                "facts gate: %s %s: cuDNN before 9.8 cannot read a described "
                                "device; use 9.8 or newer, or a GPU",
                                option, word);
    facts_builds_free(&builds);
    return status;
}

static int check(const facts_options *o)
{
    bool described = false;
    facts_session s = { .options = o };
    if (!o->baseline || !o->candidate)
        return say_how(o);
    int status = facts_check_folder("facts gate: --page", o->page);
    if (status == FACTS_EXIT_OK)
        status = o->word_count ? facts_session_cases(&s, o->words, o->word_count) : FACTS_EXIT_OK;
    facts_session_free(&s);
    if (status == FACTS_EXIT_OK)
        status = check_devices(o, devices_of(o), &described);
    if (status == FACTS_EXIT_OK)
        status = check_build(o, "--baseline", o->baseline, described);
    return status == FACTS_EXIT_OK ? check_build(o, "--candidate", o->candidate, described)
                                   : status;
}

/* ---- asking
 * ----------------------------------------------------------------------------------------------------------------
 */

/* One build for one word of --baseline or --candidate: installed when it is not here. `why`: why it
 * cannot be asked. */
static int find_build(char name[40], const facts_options *o, const char *option, const char *word,
                      char why[FACTS_PATH])
{
    facts_builds builds = { 0 };
    facts_error note = { 0 }, message = { 0 };
    int status = facts_builds_ensure(&builds, word, o->pinned_only ? FACTS_RESOLVE_PINNED : 0,
                                     &note, &message);
    if (status == 0 && note.text[0])
        fprintf(stderr, "facts gate: %s %s\n", option, note.text);
    if (status == 0)
        strcpy(name, builds.at[0].name);
    else if (message.text[0])
        facts_print_line(stderr, "facts gate: %s %s: %s", option, word, message.text);
    if (status == FACTS_EXIT_ENVIRONMENT)
        snprintf(why, FACTS_PATH, "cuDNN %s could not be asked (%s)", word,
                 message.text[0] ? message.text : "the message on stderr says why");
    facts_builds_free(&builds);
    return status;
}

/* The names of the builds; `asked` has the words for --cudnn. A folder keeps its path, because its
 * name alone does not lead to it. */
static int choose_builds(const facts_options *o, char names[2][40], const char *asked[2],
                         char why[FACTS_PATH])
{
    int status = find_build(names[0], o, "--baseline", o->baseline, why);
    if (status == 0)
        status = find_build(names[1], o, "--candidate", o->candidate, why);
    if (status != 0)
        return status;
    if (strcmp(names[0], names[1]) == 0)
        return facts_complain(FACTS_EXIT_BAD_INPUT,
                              "facts gate: --baseline and --candidate are both %s", names[0]);
    asked[0] = strchr(o->baseline, '/') ? o->baseline : names[0];
    asked[1] = strchr(o->candidate, '/') ? o->candidate : names[1];
    return 0;
}

/* Asks both builds. Here only a difference is a finding, not a failure. */
static int ask(const facts_invocation *call, const facts_options *o, const char *first,
               const char *second, char record[FACTS_PATH])
{
    const char *const suite[] = { o->bench ? BENCH_SUITE : SUITE };
    char cudnn[2 * FACTS_PATH];
    snprintf(cudnn, sizeof cudnn, "%s,%s", first, second);
    facts_session s = { .options = o,
                        .task = FACTS_TASK_RUN,
                        .argc = call->argc,
                        .argv = call->argv,
                        .keep_record = true };
    int status = facts_session_prepare(&s, o->word_count ? o->words : suite,
                                       o->word_count ? o->word_count : 1, cudnn, devices_of(o));
    if (status == FACTS_EXIT_OK) {
        size_t described = facts_targets_of(&s.targets, FACTS_TARGET_DESCRIBED);
        if (described == s.targets.count)
            s.task = o->plan ? FACTS_TASK_PLAN : FACTS_TASK_DECIDE;
        else if (o->plan && described)
            fputs("facts gate: --plan compiles for described devices only without a GPU\n", stderr);
        status = o->bench ? facts_bench(&s, false) : facts_session_run(&s);
    }
    if (status == FACTS_EXIT_OK)
        status = facts_session_broken(&s);
    strcpy(record, s.record);
    facts_session_free(&s);
    return status;
}

/* A second record beside the first, for the cases of the same suite that may be slower. */
static int ask_again(const facts_invocation *call, const facts_options *o, const char *asked[2],
                     const char *suite, char record[FACTS_PATH])
{
    facts_options options = *o;
    char *output = NULL;
    options.words = &suite;
    options.word_count = 1;
    options.where = NULL;
    if (o->output && asprintf(&output, "%s.again.jsonl", o->output) < 0)
        return FACTS_EXIT_ENVIRONMENT;
    options.output = output;
    int status = ask(call, &options, asked[1], asked[0], record);
    free(output);
    return status;
}

/* Cases that may be slower are measured again: other workers have other memory, and twice in a row
 * is no accident. */
static int confirm(const facts_invocation *call, const facts_options *o, char names[2][40],
                   const char *asked[2], const char *record, char again[FACTS_PATH])
{
    char suite[FACTS_PATH], into[FACTS_PATH + 16], baseline[64], candidate[64], least[32];
    FILE *file = facts_open_temporary(suite);
    struct stat info = { 0 };
    if (!file)
        return FACTS_EXIT_ENVIRONMENT;
    fclose(file);
    snprintf(into, sizeof into, "--slower-into=%s", suite);
    snprintf(baseline, sizeof baseline, "--baseline=%.39s", names[0]);
    snprintf(candidate, sizeof candidate, "--candidate=%.39s", names[1]);
    snprintf(least, sizeof least, "--least=%.6g", o->slower);
    const char *const words[] = { "bench", record, into, baseline, candidate, least };
    int status = facts_run_report(words, o->slower > 0 ? 6 : 5);
    if (status == FACTS_EXIT_OK && stat(suite, &info) == 0 && info.st_size > 0) {
        fputs("facts gate: measuring again the cases that may be slower\n", stderr);
        status = ask_again(call, o, asked, suite, again);
    }
    unlink(suite);
    return status;
}

static int ask_and_compare(const facts_invocation *call)
{
    char names[2][40], record[FACTS_PATH] = "", again[FACTS_PATH] = "", why[FACTS_PATH] = "",
                       plans[FACTS_PATH];
    const char *asked[2] = { NULL };
    facts_options options = *call->options;
    int status = check(&options);
    options.json = false;                     /* only the answer goes to stdout */
    options.with = "guards=off policy=cudnn"; /* cuDNN answers: no guards, no kernels of FACTS */
    if (status == FACTS_EXIT_OK)
        status = facts_open_plan_dir(plans, &options);
    if (status == FACTS_EXIT_OK)
        status = choose_builds(&options, names, asked, why);
    if (status == FACTS_EXIT_OK)
        status = ask(call, &options, asked[0], asked[1], record);
    if (status == FACTS_EXIT_OK && options.bench)
        status = confirm(call, &options, names, asked, record, again);
    options.json = call->options->json;
    if (status == FACTS_EXIT_NOTHING)
        strcpy(why, "no case is selected");
    else if (status == FACTS_EXIT_ENVIRONMENT && !why[0])
        strcpy(why, "the two builds could not be asked (the message on stderr says why)");
    if (status == FACTS_EXIT_NOTHING || status == FACTS_EXIT_ENVIRONMENT) {
        facts_run_diff("gate", &options, why, NULL, 0);
        return status;
    }
    if (status != FACTS_EXIT_OK)
        return status;
    facts_print_line(stderr, "record: %s", record);
    options.where = NULL; /* it has chosen the cases */
    options.baseline = names[0];
    options.candidate = names[1];
    if (again[0])
        facts_print_line(stderr, "record: %s", again);
    const char *const records[] = { record, again };
    return facts_run_diff("gate", &options, NULL, records, again[0] ? 2 : 1);
}

int facts_command_gate(const facts_invocation *call)
{
    const facts_options *o = call->options;
    size_t records = 0;
    for (size_t i = 0; i < o->word_count; i++) {
        if (facts_is_record_name(o->words[i]) && access(o->words[i], F_OK) != 0)
            return facts_complain(FACTS_EXIT_BAD_INPUT, "facts gate: %s: no such file",
                                  o->words[i]);
        records += is_record(o->words[i]);
    }
    if (records && records < o->word_count)
        return facts_complain(FACTS_EXIT_BAD_INPUT, "facts gate: give records or cases, not both");
    if (records && facts_check_folder("facts gate: --page", o->page) != FACTS_EXIT_OK)
        return FACTS_EXIT_BAD_INPUT;
    return records ? facts_run_diff("gate", o, NULL, o->words, o->word_count)
                   : ask_and_compare(call);
}
