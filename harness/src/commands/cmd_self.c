/* facts self: are liars found, and is nobody else accused? */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "../emulation/survey.h"
#include "../record/text.h"
#include "commands.h"

static void print_found_json(const facts_found *f)
{
    facts_text line = { 0 };
    facts_text_puts(&line, "{");
    facts_text_member(&line, "liar", facts_liar_words[f->liar]);
    facts_text_member(&line, "dtype", facts_survey_type_word(f->type));
    facts_text_member(&line, "size", facts_size_word(f->size, f->liar));
    facts_text_member(&line, "result", facts_end_word(f->end));
    if (f->end != FACTS_END_NOT_APPLICABLE) {
        facts_text_member(&line, "fill", f->fill);
        facts_text_member(&line, "gate", f->gate);
        facts_text_member(&line, "tensor", f->tensor);
        if (isfinite(f->ratio))
            facts_text_format(&line, "\"ratio\":%.4g,", f->ratio);
        else
            facts_text_member(&line, "ratio", "inf");
    }
    if (f->why)
        facts_text_member(&line, "why", f->why);
    facts_text_close(&line);
    puts(line.data ? line.data : "");
    facts_text_free(&line);
}

/* One line a liar and type: what each size came to. */
static void print_table(const facts_survey *s)
{
    facts_liar liar = FACTS_LIAR_NONE;
    for (size_t i = 0; i < s->count; i++) {
        const facts_found *f = &s->found[i];
        if (f->end == FACTS_END_NOT_APPLICABLE)
            continue;
        if (f->liar != liar)
            printf("%-22s %s\n", facts_liar_words[f->liar], facts_liar_what[f->liar]);
        liar = f->liar;
        printf("    %-5s %-7s %-9s", facts_survey_type_word(f->type), facts_size_word(f->size, f->liar), facts_end_word(f->end));
        if (f->ratio > 0.0)
            printf(" %10.4g  %s %s of %s", f->ratio, f->fill, f->gate, f->tensor);
        if (f->why)
            printf("  (%s%s)", f->news ? "news: it was listed as blind: " : "", f->why);
        putchar('\n');
    }
}

typedef struct counts {
    size_t killed, blind, survived, news;
    const facts_found *weakest; /* of those that were killed */
} counts;

static counts count(const facts_survey *s)
{
    counts c = { 0 };
    for (size_t i = 0; i < s->count; i++) {
        const facts_found *f = &s->found[i];
        c.killed += f->end == FACTS_END_KILLED;
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
    printf("%zu killed, %zu blind, %zu survived", c.killed, c.blind, c.survived);
    if (c.news)
        printf(", %zu listed as blind and found", c.news);
    if (c.weakest)
        printf("; the weakest %s %s %s, ratio %.3g by %s on %s", facts_liar_words[c.weakest->liar],
               facts_survey_type_word(c.weakest->type), facts_size_word(c.weakest->size, c.weakest->liar), c.weakest->ratio,
               c.weakest->gate, c.weakest->fill);
    printf("\n%zu clean, %zu false alarms\n", s->honest, s->false_alarms);
    if (s->false_alarms)
        printf("the first: %s\n", s->alarm);
}

int facts_command_self(const facts_invocation *call)
{
    const facts_options *o = call->options;
    const facts_survey_choice choice = { o->liar, o->dtype, o->quick, o->seed < 0 ? 1 : (uint64_t)o->seed };
    char error[512];
    facts_survey survey;
    int status = facts_survey_run(&survey, &choice, error);
    if (status != 0) {
        fprintf(stderr, "facts self: %s\n", status == ENOMEM ? "out of memory" : error);
        facts_survey_free(&survey);
        return status == EINVAL ? FACTS_EXIT_BAD_INPUT : FACTS_EXIT_ENVIRONMENT;
    }
    counts c = count(&survey);
    if (o->json) {
        for (size_t i = 0; i < survey.count; i++)
            print_found_json(&survey.found[i]);
        printf("{\"clean\":%zu,\"false_alarms\":%zu}\n", survey.honest, survey.false_alarms);
    } else {
        print_table(&survey);
        print_counts(&survey, c);
    }
    bool bad = c.survived || c.news || survey.false_alarms > 0;
    facts_survey_free(&survey);
    return bad ? FACTS_EXIT_FINDINGS : FACTS_EXIT_OK;
}
