/* The table at the end of a run: for each target how many cases ended how, and what the refusals said most. */
#include <stdlib.h>
#include <string.h>

#include "tally.h"

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

typedef struct reason_count {
    uint32_t id;
    size_t cases;
} reason_count;

static int by_count(const void *a, const void *b)
{
    const reason_count *x = a, *y = b;
    return x->cases != y->cases ? (x->cases < y->cases ? 1 : -1) : (x->id > y->id) - (x->id < y->id);
}

static void print_reasons(const facts_tally *tally, FILE *out)
{
    uint32_t n = facts_intern_count(tally->texts);
    reason_count *reasons = calloc((size_t)n + 1, sizeof *reasons);
    if (!reasons)
        return;
    for (uint32_t id = 0; id <= n; id++)
        reasons[id].id = id;
    for (size_t i = 0; i < tally->target_count * tally->work_count; i++)
        if (tally->cells[i].reason)
            reasons[tally->cells[i].reason].cases++;
    qsort(reasons, (size_t)n + 1, sizeof *reasons, by_count);
    if (reasons[0].cases)
        fputs("\nwhy not, most frequent first:\n", out);
    for (uint32_t i = 0; i <= n && i < 5 && reasons[i].cases; i++)
        fprintf(out, "  %6zu  %.140s\n", reasons[i].cases, facts_intern_text(tally->texts, reasons[i].id));
    free(reasons);
}

void facts_print_counts(const facts_tally *tally, bool decided, FILE *out)
{
    fprintf(out, "\n%zu case%s\n", tally->work_count, tally->work_count == 1 ? "" : "s");
    for (size_t t = 0; t < tally->target_count; t++)
        print_target(tally, t, decided, out);
    print_reasons(tally, out);
}
