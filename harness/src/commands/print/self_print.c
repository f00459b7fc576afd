#include "self_print.h"

#include <math.h>
#include <stdio.h>

#include "record/text.h"

static void print_found(const facts_found *f)
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
void facts_self_print_table(const facts_survey *s)
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

void facts_self_print_json(const facts_survey *s)
{
    for (size_t i = 0; i < s->count; i++)
        print_found(&s->found[i]);
}

/* Of one liar and type: found[from] .. found[to-1]. */
static void print_cell(const facts_survey *s, size_t from, size_t to)
{
    const facts_found *weakest = NULL;
    const char *before = " ";
    for (size_t i = from; i < to; i++) {
        const facts_found *f = &s->found[i];
        if (f->end == FACTS_END_KILLED && (!weakest || f->ratio < weakest->ratio))
            weakest = f;
    }
    if (weakest && isfinite(weakest->ratio))
        printf(" %.3g %s %s", weakest->ratio, weakest->gate, weakest->tensor);
    else if (weakest)
        printf(" %s %s", weakest->gate, weakest->tensor);
    if (weakest)
        before = "; ";
    for (size_t i = from; i < to; i++) {
        const facts_found *f = &s->found[i];
        if (f->end != FACTS_END_BLIND && f->end != FACTS_END_SURVIVED)
            continue;
        printf("%s%s at %s", before, facts_end_word(f->end), facts_size_word(f->size, f->liar));
        before = ", ";
    }
    printf(" |");
}

void facts_self_print_markdown(const facts_survey *s)
{
    facts_liar liar = FACTS_LIAR_NONE;
    printf("| liar | what is wrong |");
    for (size_t i = 0; i < s->count && s->found[i].liar == s->found[0].liar; i++)
        if (i == 0 || s->found[i].type != s->found[i - 1].type)
            printf(" %s |", facts_survey_type_word(s->found[i].type));
    printf("\n|---|---|");
    for (size_t i = 0; i < s->count && s->found[i].liar == s->found[0].liar; i++)
        if (i == 0 || s->found[i].type != s->found[i - 1].type)
            printf("---|");
    for (size_t from = 0, to; from < s->count; from = to) {
        const facts_found *first = &s->found[from];
        for (to = from; to < s->count && s->found[to].liar == first->liar && s->found[to].type == first->type;)
            to++;
        if (first->liar != liar)
            printf("\n| `%s` | %s |", facts_liar_words[first->liar], facts_liar_what[first->liar]);
        liar = first->liar;
        print_cell(s, from, to);
    }
    putchar('\n');
}
