#include "self_print.h"

#include <math.h>
#include <stdio.h>

#include "commands/session/report_package.h"
#include "record/text.h"

bool facts_self_is_shown(const facts_survey *s, const facts_shown *of)
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

void facts_self_print_table(const facts_survey *s)
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

void facts_self_print_json(const facts_survey *s, FILE *out)
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

int facts_self_print_markdown(const facts_survey *s)
{
    return facts_run_view("self", write_survey, s);
}
