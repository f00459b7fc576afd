/* The table at the end of a run: for each target how many cases ended how, and what the refusals said most. */
#include <stdlib.h>
#include <string.h>

#include "commands/session/tally.h"

/* A refusal by cuDNN is one word of people's; without numbers behind it a yes is "yes", not "pass". */
static const char *word_of(facts_verdict verdict, bool decided)
{
    if (decided && verdict == FACTS_VERDICT_PASS)
        return "yes";
    if (decided && verdict == FACTS_VERDICT_UNSUPPORTED)
        return "no";
    return facts_verdict_name(verdict);
}

static void print_target(const facts_tally *tally, size_t t, bool decided, FILE *out)
{
    decided = decided || tally->targets[t].kind == FACTS_TARGET_DESCRIBED;
    size_t counts[FACTS_VERDICT_COUNT + 1] = { 0 };
    for (size_t work = 0; work < tally->work_count; work++)
        counts[facts_tally_cell(tally, t, work)->verdict]++;
    fprintf(out, "  %-20s %-14s", tally->targets[t].build.name, tally->targets[t].device);
    for (facts_verdict v = 0; v < FACTS_VERDICT_COUNT; v++)
        if (counts[v])
            fprintf(out, "  %s %zu", word_of(v, decided), counts[v]);
    if (counts[FACTS_VERDICT_COUNT])
        fprintf(out, "  without a row %zu", counts[FACTS_VERDICT_COUNT]);
    fputc('\n', out);
}

static void print_reasons(const facts_tally *tally, FILE *out)
{
    facts_text_count *reasons = facts_tally_texts(tally, offsetof(facts_cell, reason));
    if (reasons && reasons[0].cells)
        fputs("\nwhy not, most frequent first:\n", out);
    for (size_t i = 0; reasons && i < 5 && reasons[i].cells; i++)
        fprintf(out, "  %6zu  %.140s\n", reasons[i].cells, facts_intern_text(tally->texts, reasons[i].id));
    free(reasons);
}

void facts_print_counts(const facts_tally *tally, bool decided, FILE *out)
{
    fprintf(out, "\n%zu case%s\n", tally->work_count, tally->work_count == 1 ? "" : "s");
    for (size_t t = 0; t < tally->target_count; t++)
        print_target(tally, t, decided, out);
    print_reasons(tally, out);
}
