/* The findings at the end of a run: unexpected failures, case by case, each with its repro command.
 * Then known failures, in one line with their links. */
#include <stdlib.h>
#include <string.h>

#include "commands/session/tally.h"

#define LINKS_SHOWN 6

static void print_repro(const facts_target *target, const char *name, FILE *out)
{
    fprintf(out, "    facts repro '%s'", name);
    if (target->kind != FACTS_TARGET_CPU)
        fprintf(out, " --cudnn %s", target->build.name);
    if (target->kind == FACTS_TARGET_GPU)
        fprintf(out, " --device %d\n", target->ordinal);
    else
        fprintf(out, " --device %s\n", target->device);
}

static bool is_alike(const facts_cell *a, const facts_cell *b)
{
    return a->news == b->news && a->why == b->why;
}

/* A case with the same failure on several targets is printed once, with the repro command for the
 * first target. */
static bool is_reported(const facts_tally *tally, size_t target, size_t work)
{
    const facts_cell *cell = facts_tally_cell(tally, target, work);
    for (size_t t = 0; t < target; t++)
        if (is_alike(facts_tally_cell(tally, t, work), cell))
            return true;
    return false;
}

static void print_finding(const facts_tally *tally, size_t target, size_t work, FILE *out)
{
    const facts_cell *cell = facts_tally_cell(tally, target, work);
    const char *why = facts_intern_text(tally->texts, cell->why);
    fprintf(out, "  %s%s%.160s\n   ", facts_verdict_name(cell->news), *why ? ": " : "", why);
    for (size_t t = target; t < tally->target_count; t++) {
        const facts_target *at = &tally->targets[t];
        if (!is_alike(facts_tally_cell(tally, t, work), cell))
            continue;
        fprintf(out, " %s", at->build.version[0] ? at->build.version : at->build.name);
        bool last = true; /* of its device: then it is named */
        for (size_t u = t + 1; u < tally->target_count && last; u++)
            last = !is_alike(facts_tally_cell(tally, u, work), cell) ||
                   strcmp(tally->targets[u].device, at->device) != 0;
        if (last)
            fprintf(out, " on %s", at->device);
    }
    fputc('\n', out);
    print_repro(&tally->targets[target], tally->work[work].name, out);
}

static void print_known(const facts_tally *tally, FILE *out)
{
    const size_t all = facts_tally_known(tally, false), others = facts_tally_known(tally, true);
    facts_text_count *links = facts_tally_texts(tally, offsetof(facts_cell, known));
    fprintf(out, "\n%zu known failure%s", all, all == 1 ? "" : "s");
    if (others)
        fprintf(out, " and %zu other known result%s", others, others == 1 ? "" : "s");
    fputs(":\n", out);
    for (size_t i = 0; links[i].cells && i < LINKS_SHOWN; i++)
        fprintf(out, "  %6zu  %s\n", links[i].cells, facts_intern_text(tally->texts, links[i].id));
    free(links);
}

void facts_print_findings(const facts_tally *tally, size_t most, FILE *out)
{
    size_t all = facts_tally_unexpected(tally), printed = 0, more = 0;
    if (all)
        fprintf(out, "\n%zu finding%s:\n", all, all == 1 ? "" : "s");
    for (size_t work = 0; all && work < tally->work_count; work++)
        for (size_t t = 0; t < tally->target_count; t++) {
            if (facts_tally_cell(tally, t, work)->news == FACTS_VERDICT_COUNT ||
                is_reported(tally, t, work))
                continue;
            if (printed++ < most)
                print_finding(tally, t, work, out);
            else
                more++;
        }
    if (more)
        fprintf(out, "  and %zu more like these, in the record\n", more);
    if (tally->work_count > 1 && facts_tally_known(tally, false) + facts_tally_known(tally, true))
        print_known(tally, out);
}
