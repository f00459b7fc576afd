/* facts self: does FACTS find the liars, and no correct kernel? */
#include <errno.h>
#include <string.h>

#include "commands.h"
#include "commands/print/self_print.h"
#include "emulation/clean.h"
#include "emulation/survey.h"

#define DEFAULT_SEED 1
#define DEFAULT_CLEAN 2000

typedef struct counts {
    size_t killed, near, blind, survived, news;
    const facts_found *weakest; /* of the killed ones */
} counts;

static counts count(const facts_survey *s)
{
    counts c = { 0 };
    for (size_t i = 0; i < s->count; i++) {
        const facts_found *f = &s->found[i];
        c.killed += f->end == FACTS_END_KILLED;
        c.near += f->end == FACTS_END_NEAR;
        c.blind += f->end == FACTS_END_BLIND;
        c.survived += f->end == FACTS_END_SURVIVED;
        c.news += f->news;
        if (f->end == FACTS_END_KILLED && (!c.weakest || f->ratio < c.weakest->ratio))
            c.weakest = f;
    }
    return c;
}

static void print_counts(const facts_survey *s, counts c)
{
    printf("%zu killed, %zu near, %zu blind, %zu survived", c.killed, c.near, c.blind, c.survived);
    if (c.news)
        printf(", %zu listed as blind and found", c.news);
    if (c.weakest)
        printf("; the weakest %s %s %s, ratio %.3g by %s on %s", facts_liar_words[c.weakest->liar],
               facts_survey_type_word(c.weakest->type),
               facts_size_word(c.weakest->size, c.weakest->liar), c.weakest->ratio, c.weakest->gate,
               c.weakest->fill);
    printf("\nthe correct kernel: %zu trials, %zu false alarms\n%s", s->honest, s->false_alarms,
           s->alarms);
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
    const facts_survey_choice choice = {
        .liar = o->liar, .type = o->dtype, .quick = o->quick, .seed = seed
    };
    facts_error error;
    facts_survey survey;
    int status = report(facts_survey_run(&survey, &choice, &error), &error);
    if (status == FACTS_EXIT_OK) {
        counts c = count(&survey);
        if (o->json)
            facts_self_print_json(&survey, stdout);
        else if (o->markdown)
            status = facts_self_print_markdown(&survey);
        else
            facts_self_print_table(&survey);
        if (!o->json && !o->markdown)
            print_counts(&survey, c);
        else
            fputs(survey.alarms, stderr);
        alarms[0] += survey.honest;
        alarms[1] += survey.false_alarms;
        /* A change counts only for the listed data: for other data, a ratio near 1 may fall on
         * either side. */
        if (status == FACTS_EXIT_OK &&
            (c.survived || (c.news && seed == DEFAULT_SEED) || survey.false_alarms))
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
    if (o->clean >= 0 && (o->liar || o->dtype || o->markdown))
        return facts_complain(
            FACTS_EXIT_BAD_INPUT,
            "facts self: --clean draws over all types: not with --liar, --dtype or --markdown");
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
        (alone || !(o->liar || o->dtype || o->markdown))) {
        int clean = run_clean(o, seed, alarms);
        status = clean == FACTS_EXIT_OK ? status : clean;
    }
    if (o->json && (status == FACTS_EXIT_OK || status == FACTS_EXIT_FINDINGS))
        printf("{\"clean\":%zu,\"false_alarms\":%zu}\n", alarms[0], alarms[1]);
    return status;
}
