#include "self_print.h"

#include <math.h>
#include <stdio.h>

#include "commands/session/report_package.h"
#include "record/text.h"

static void print_found(const facts_found *f, FILE *out)
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
    fprintf(out, "%s\n", line.data ? line.data : "");
    facts_text_free(&line);
}

/* One line for each liar and type: the result of each size. */
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
        printf("    %-5s %-7s %-9s", facts_survey_type_word(f->type),
               facts_size_word(f->size, f->liar), facts_end_word(f->end));
        if (f->ratio > 0.0)
            printf(" %10.4g  %s %s of %s", f->ratio, f->fill, f->gate, f->tensor);
        if (f->why)
            printf("  (%s%s)", f->news ? "new: it was listed as blind: " : "", f->why);
        putchar('\n');
    }
}

void facts_self_print_json(const facts_survey *s, FILE *out)
{
    for (size_t i = 0; i < s->count; i++)
        print_found(&s->found[i], out);
}

/* The input of `facts_reports self`. */
static void write_survey(const void *subject, FILE *out)
{
    const facts_survey *s = subject;
    facts_text line = { 0 };
    facts_text_puts(&line, "{\"what\":{");
    for (size_t i = 0; i < s->count; i++)
        if (!i || s->found[i].liar != s->found[i - 1].liar)
            facts_text_member(&line, facts_liar_words[s->found[i].liar],
                              facts_liar_what[s->found[i].liar]);
    facts_text_close(&line);
    fprintf(out, "%s}\n", line.data ? line.data : "");
    facts_text_free(&line);
    facts_self_print_json(s, out);
}

int facts_self_print_markdown(const facts_survey *s)
{
    return facts_run_view("self", write_survey, s);
}
