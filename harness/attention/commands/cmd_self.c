/* facts self: which suite shows which planted fault, and is a right kernel never called wrong? */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"
#include "commands/session/report_package.h"
#include "record/text.h"
#include "self/self_survey.h"

/* What `facts self` prints of a survey. */

/* Does one of the suites show that fault in that type? */
static bool facts_self_is_shown(const facts_survey *s, const facts_shown *of)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->shown[i].fault == of->fault && s->shown[i].type == of->type && s->shown[i].red)
            return true;
    return false;
}

static void print_shown(const facts_shown *f, FILE *out)
{
    facts_text line = { 0 };
    facts_text_puts(&line, "{");
    facts_text_member(&line, "fault", f->fault->word);
    facts_text_member(&line, "dtype", facts_self_type_word(f->type));
    facts_text_member(&line, "suite", f->suite);
    facts_text_format(&line, "\"able\":%zu,\"asked\":%zu,\"red\":%zu,", f->able, f->asked, f->red);
    if (f->asked) {
        facts_text_member(&line, "case", f->name);
        facts_text_member(&line, "gate", f->gate);
        facts_text_member(&line, "tensor", f->tensor);
        if (isfinite(f->ratio))
            facts_text_format(&line, "\"ratio\":%.4g,", f->ratio);
        else
            facts_text_member(&line, "ratio", "inf");
    }
    if (f->blind)
        facts_text_member(&line, "blind", f->blind);
    facts_text_close(&line);
    fprintf(out, "%s\n", line.data ? line.data : "");
    facts_text_free(&line);
}

static void print_line(const facts_shown *f)
{
    printf("    %-11s %-10s", facts_self_type_word(f->type), f->suite);
    if (!f->able) {
        printf(" no case can show it\n");
        return;
    }
    printf(" red in %zu of %zu (%zu can show it)", f->red, f->asked, f->able);
    if (f->ratio > 0.0)
        printf("  %.4g  %s of %s", f->ratio, f->gate, f->tensor);
    printf("%s%s%s\n", f->blind ? "  (" : "", f->blind ? f->blind : "", f->blind ? ")" : "");
}

/* A line for each fault, type and suite. */
static void facts_self_print_table(const facts_survey *s)
{
    const fattn__fault *fault;
    for (int n = 0; (fault = fattn__fault_at(n)) != NULL; n++) {
        bool first = true;
        for (size_t i = 0; i < s->count; i++) {
            if (s->shown[i].fault != fault)
                continue;
            if (first)
                printf("%-22s %s\n", fault->word, fault->what);
            first = false;
            print_line(&s->shown[i]);
        }
    }
}

static void facts_self_print_json(const facts_survey *s, FILE *out)
{
    for (size_t i = 0; i < s->count; i++)
        print_shown(&s->shown[i], out);
}

/* The input of `facts_reports self`. */
static void write_survey(const void *subject, FILE *out)
{
    facts_text line = { 0 };
    const fattn__fault *fault;
    facts_text_puts(&line, "{\"what\":{");
    for (int n = 0; (fault = fattn__fault_at(n)) != NULL; n++)
        facts_text_member(&line, fault->word, fault->what);
    facts_text_close(&line);
    fprintf(out, "%s}\n", line.data ? line.data : "");
    facts_text_free(&line);
    facts_self_print_json(subject, out);
}

/* Returns an exit code. */
static int facts_self_print_markdown(const facts_survey *s)
{
    return facts_run_view("self", write_survey, s);
}

#define DEFAULT_SEED 1
#define DEFAULT_CLEAN 500
#define DEFAULT_SAMPLE 20 /* cases of a suite for each fault and type */

/* Faults that no suite shows and that are not listed as blind. */
static size_t print_unseen(const facts_survey *s, FILE *out)
{
    size_t unseen = 0;
    for (size_t i = 0; i < s->count; i++) {
        const facts_shown *f = &s->shown[i];
        if (strcmp(f->suite, s->shown[0].suite) != 0 || facts_self_is_shown(s, f))
            continue;
        unseen += !f->blind;
        fprintf(out, "no suite shows %s in %s%s%s\n", f->fault->word, facts_self_type_word(f->type),
                f->blind ? ": " : "", f->blind ? f->blind : "");
    }
    return unseen;
}

static void print_clean(const facts_clean *c)
{
    printf("%zu clean evaluations, %zu answers judged, %zu false alarms; worst", c->evaluations,
           c->answers, c->false_alarms);
    for (facts_gate gate = 0; gate < FACTS_GATE_COUNT; gate++)
        if (c->worst[gate] > 0.0)
            printf("  %s %.3f", facts_gate_words[gate], c->worst[gate]);
    printf("\n%s", c->alarms);
}

/* Returns the exit code of a failure, else FACTS_EXIT_OK. */
static int report(int status, const facts_error *error)
{
    if (status != 0)
        fprintf(stderr, "facts self: %s\n", status == ENOMEM ? "out of memory" : error->text);
    return status == 0        ? FACTS_EXIT_OK
           : status == EINVAL ? FACTS_EXIT_BAD_INPUT
                              : FACTS_EXIT_ENVIRONMENT;
}

static int run_survey(const facts_options *o, uint64_t seed, size_t alarms[2])
{
    static const char *const own[] = { "planted" };
    char folder[FACTS_PATH];
    if (!facts_suite_dir(folder))
        return FACTS_EXIT_ENVIRONMENT;
    const bool named = o->word_count > 0;
    const facts_survey_choice choice = { .suites = named ? (const char *const *)o->words : own,
                                         .suite_count = named ? o->word_count : 1,
                                         .suite_dir = folder,
                                         .fault = o->liar,
                                         .type = o->dtype,
                                         .sample = named ? DEFAULT_SAMPLE : 0,
                                         .quick = o->quick,
                                         .seed = seed };
    facts_error error = { 0 };
    facts_survey survey;
    int status = report(facts_survey_run(&survey, &choice, &error), &error);
    if (status == FACTS_EXIT_OK) {
        if (o->json)
            facts_self_print_json(&survey, stdout);
        else if (o->markdown)
            status = facts_self_print_markdown(&survey);
        else
            facts_self_print_table(&survey);
        FILE *said = o->json || o->markdown ? stderr : stdout;
        const size_t unseen = print_unseen(&survey, said);
        if (said == stdout)
            printf("the right kernel: %zu cases, %zu false alarms\n", survey.honest,
                   survey.false_alarms);
        fputs(survey.alarms, said);
        alarms[0] += survey.honest;
        alarms[1] += survey.false_alarms;
        /* Other suites and other data need not show every fault. */
        if (status == FACTS_EXIT_OK &&
            ((unseen && !named && seed == DEFAULT_SEED) || survey.false_alarms))
            status = FACTS_EXIT_FINDINGS;
    }
    facts_survey_free(&survey);
    return status;
}

static int run_clean(const facts_options *o, uint64_t seed, size_t alarms[2])
{
    facts_error error;
    facts_clean clean;
    size_t n = o->clean < 0 ? DEFAULT_CLEAN : (size_t)o->clean;
    int status = report(facts_clean_run(&clean, seed, (uint64_t)o->first, n, &error), &error);
    if (status != FACTS_EXIT_OK)
        return status;
    if (!o->json)
        print_clean(&clean);
    else
        fputs(clean.alarms, stderr);
    alarms[0] += clean.evaluations;
    alarms[1] += clean.false_alarms;
    return clean.false_alarms ? FACTS_EXIT_FINDINGS : FACTS_EXIT_OK;
}

static int check(const facts_options *o)
{
    if (o->clean >= 0 && (o->liar || o->dtype || o->markdown || o->word_count))
        return facts_complain(FACTS_EXIT_BAD_INPUT,
                              "facts self: --clean draws problems over all types: not with a "
                              "suite, --liar, --dtype or --markdown");
    if (o->first > 0 && o->clean < 0)
        return facts_complain(FACTS_EXIT_BAD_INPUT,
                              "facts self: --first needs --clean: facts self --clean 1 --first %d",
                              o->first);
    return FACTS_EXIT_OK;
}

int facts_command_self(const facts_invocation *call)
{
    const facts_options *o = call->options;
    int status = check(o);
    if (status != FACTS_EXIT_OK)
        return status;
    uint64_t seed = o->seed < 0 ? DEFAULT_SEED : (uint64_t)o->seed;
    bool alone = o->clean >= 0 && !o->quick; /* --clean N: only these */
    size_t alarms[2] = { 0 };
    status = alone ? FACTS_EXIT_OK : run_survey(o, seed, alarms);
    if ((status == FACTS_EXIT_OK || status == FACTS_EXIT_FINDINGS) &&
        (alone || !(o->liar || o->dtype || o->markdown || o->word_count))) {
        int clean = run_clean(o, seed, alarms);
        status = clean == FACTS_EXIT_OK ? status : clean;
    }
    if (o->json && (status == FACTS_EXIT_OK || status == FACTS_EXIT_FINDINGS))
        printf("{\"clean\":%zu,\"false_alarms\":%zu}\n", alarms[0], alarms[1]);
    return status;
}
