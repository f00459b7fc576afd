/* The table at the end of a run. For each target: cases by outcome, the most frequent reasons of
 * refusals, and answers that changed between builds. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "commands/session/session.h"
#include "commands/session/tally.h"

enum { CASES_NAMED = 20 };

/* The findings at the end of a run: unexpected failures, case by case, each with its repro command.
 * Then known failures, in one line with their links. */

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
    char shown[176];
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
            fprintf(out, " on %s", facts_target_shown(shown, at));
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

/* A refusal by cuDNN has one word for people; a yes without numbers is "yes", not "pass". */
static const char *word_of(facts_verdict verdict, bool decided)
{
    if (decided && facts_verdict_is_good(verdict))
        return "yes";
    if (decided && verdict == FACTS_VERDICT_UNSUPPORTED)
        return "no";
    return facts_verdict_name(verdict);
}

/* Each line behind the first begins with `indent`. */
static void print_lines(const char *line, const char *indent, FILE *out)
{
    while (*line) {
        const size_t letters = strcspn(line, "\n");
        fprintf(out, "%.*s", (int)letters, line);
        line += letters + (line[letters] != '\0');
        fprintf(out, "%s%s", *line ? "\n" : "", *line ? indent : "");
    }
}

/* What is known of the only case: behind its answer, then line by line. */
static void print_said(const facts_tally *tally, const facts_cell *cell, FILE *out)
{
    const char *line = cell->says ? facts_intern_text(tally->texts, cell->says) : "";
    const bool but = cell->such_data && facts_verdict_is_good((facts_verdict)cell->verdict);
    if (*line)
        fputs(but ? ", but " : "; ", out);
    print_lines(line, "      ", out);
}

static void print_device(const facts_target *target, FILE *out)
{
    char name[176];
    fprintf(out, "  %-20s %-14s", target->build.name, facts_target_shown(name, target));
}

/* Which of a few cases were not accepted. */
static void print_others(const facts_tally *tally, size_t t, bool decided, FILE *out)
{
    const bool few = tally->work_count > 1 && tally->work_count <= CASES_NAMED;
    size_t good = 0;
    for (size_t work = 0; few && work < tally->work_count; work++)
        good += facts_verdict_is_good((facts_verdict)facts_tally_cell(tally, t, work)->verdict);
    for (size_t work = 0; good && work < tally->work_count; work++) {
        const facts_verdict v = (facts_verdict)facts_tally_cell(tally, t, work)->verdict;
        if (v < FACTS_VERDICT_COUNT && !facts_verdict_is_good(v))
            fprintf(out, "      %s: %s\n", word_of(v, decided), tally->work[work].name);
    }
}

static void print_target(const facts_tally *tally, size_t t, bool decided, FILE *out)
{
    decided = decided || tally->targets[t].kind == FACTS_TARGET_DESCRIBED;
    size_t counts[FACTS_VERDICT_COUNT + 1] = { 0 }, by_facts = 0;
    for (size_t work = 0; work < tally->work_count; work++) {
        counts[facts_tally_cell(tally, t, work)->verdict]++;
        by_facts += facts_tally_cell(tally, t, work)->by_facts;
    }
    print_device(&tally->targets[t], out);
    for (facts_verdict v = 0; v < FACTS_VERDICT_COUNT; v++)
        if (counts[v]) {
            fprintf(out, "  %s %zu", word_of(v, decided), counts[v]);
            if (v == FACTS_VERDICT_UNSUPPORTED && by_facts)
                fprintf(out, " (%zu refused by FACTS)", by_facts);
        }
    if (counts[FACTS_VERDICT_COUNT])
        fprintf(out, "  without a row %zu", counts[FACTS_VERDICT_COUNT]);
    if (tally->work_count == 1)
        print_said(tally, facts_tally_cell(tally, t, 0), out);
    fputc('\n', out);
    print_others(tally, t, decided, out);
}

static bool is_serious(const facts_tally *tally, uint32_t says)
{
    for (size_t i = 0; i < tally->target_count * tally->work_count; i++)
        if (tally->cells[i].says == says && tally->cells[i].serious)
            return true;
    return false;
}

/* What is known of the cases: the first failure of each. The serious ones whose data a case has
 * come first, and among these the most frequent. */
static void print_titles(const facts_tally *tally, FILE *out)
{
    facts_text_count *says = facts_tally_texts(tally, offsetof(facts_cell, says));
    size_t shown = 0;
    if (says[0].cells)
        fputs("\nwhat is known of these cases, the serious failures first:\n", out);
    for (int other = 0; other < 2; other++)
        for (size_t i = 0; shown < 5 && says[i].cells; i++) {
            if (is_serious(tally, says[i].id) == other)
                continue;
            fprintf(out, "  %6zu  ", says[i].cells);
            print_lines(facts_intern_text(tally->texts, says[i].id), "          ", out);
            fputc('\n', out);
            shown++;
        }
    free(says);
}

static void print_reasons(const facts_tally *tally, FILE *out)
{
    facts_text_count *reasons = facts_tally_texts(tally, offsetof(facts_cell, reason));
    if (reasons[0].cells)
        fputs("\nreasons, most frequent first:\n", out);
    for (size_t i = 0; i < 5 && reasons[i].cells; i++)
        fprintf(out, "  %6zu  %.*s\n", reasons[i].cells, tally->work_count == 1 ? 400 : 140,
                facts_intern_text(tally->texts, reasons[i].id));
    free(reasons);
}

void facts_print_counts(const facts_tally *tally, bool decided, FILE *out)
{
    fprintf(out, "\n%zu case%s\n", tally->work_count, tally->work_count == 1 ? "" : "s");
    for (size_t t = 0; t < tally->target_count; t++)
        print_target(tally, t, decided, out);
    print_reasons(tally, out);
    if (tally->work_count > 1)
        print_titles(tally, out);
}

/* ---- changes between builds
 * -------------------------------------------------------------------------------------------------
 */

#define CHANGES_SHOWN 10

/* Older builds first; builds of one version in the order given. */
static bool is_older(const facts_target *a, const facts_target *b)
{
    const int x[] = { a->build.major, a->build.minor, a->build.patch },
              y[] = { b->build.major, b->build.minor, b->build.patch };
    for (size_t i = 0; i < 3; i++)
        if (x[i] != y[i])
            return x[i] < y[i];
    return a < b;
}

/* The next older target on the same device; NULL: none. */
static const facts_target *predecessor(const facts_tally *tally, const facts_target *after)
{
    const facts_target *best = NULL;
    for (const facts_target *t = tally->targets; t < tally->targets + tally->target_count; t++)
        if (strcmp(t->device, after->device) == 0 && is_older(t, after) &&
            (!best || is_older(best, t)))
            best = t;
    return best;
}

/* Of the cases that both answered: the number with another verdict, and of those that pass on both,
 * the number with other engines. */
static void count_changes(const facts_tally *tally, size_t before, size_t after, size_t *verdicts,
                          size_t *engines)
{
    *verdicts = *engines = 0;
    for (size_t work = 0; work < tally->work_count; work++) {
        const facts_cell *a = facts_tally_cell(tally, before, work),
                         *b = facts_tally_cell(tally, after, work);
        if (a->verdict == FACTS_VERDICT_COUNT || b->verdict == FACTS_VERDICT_COUNT)
            continue;
        *verdicts += a->verdict != b->verdict;
        *engines += a->verdict == b->verdict && facts_verdict_is_good(a->verdict) &&
                    a->engines != b->engines;
    }
}

void facts_print_changes(const facts_tally *tally, const char *record, FILE *out)
{
    const facts_target *first[2] = { NULL, NULL };
    size_t shown = 0, pairs = 0, verdicts, engines;
    char name[176];
    for (size_t t = 0; t < tally->target_count; t++) {
        const facts_target *after = &tally->targets[t], *before = predecessor(tally, after);
        if (!before)
            continue;
        pairs++;
        count_changes(tally, (size_t)(before - tally->targets), t, &verdicts, &engines);
        if (!(verdicts + engines) || shown++ >= CHANGES_SHOWN)
            continue;
        if (shown == 1)
            fputs("\nchanged between builds:\n", out);
        fprintf(out, "  %s -> %s on %s: %zu case%s with another verdict, %zu with other engines\n",
                before->build.name, after->build.name, facts_target_shown(name, after), verdicts,
                verdicts == 1 ? "" : "s", engines);
        if (!first[0]) {
            first[0] = before;
            first[1] = after;
        }
    }
    if (shown > CHANGES_SHOWN)
        fprintf(out, "  and %zu more pairs of builds\n", shown - CHANGES_SHOWN);
    if (first[0])
        fprintf(out, "  which cases: facts diff %s --baseline %s --candidate %s\n", record,
                first[0]->build.name, first[1]->build.name);
    else if (pairs)
        fputs("\nnothing changed between the builds\n", out);
}
