/* The table at the end of a run. For each target: cases by outcome, the most frequent reasons of
 * refusals, and answers that changed between builds. */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "commands/session/session.h"
#include "commands/session/tally.h"
#include "explain_row.h"

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

/* Which other projects refuse a case before cuDNN sees it. */

enum { CASES_SHOWN = 4 };

static bool is_same(const facts_text *a, const facts_text *b)
{
    return a->length == b->length && (!a->length || strcmp(a->data, b->data) == 0);
}

/* The targets that have the lines of `at`, unless all have them. False: an earlier one had them. */
static bool print_targets(const facts_session *s, const facts_text *lines, size_t at, FILE *out)
{
    size_t same = 0;
    for (size_t t = 0; t < s->targets.count; t++) {
        same += is_same(&lines[t], &lines[at]);
        if (t < at && is_same(&lines[t], &lines[at]))
            return false;
    }
    const char *before = "with ";
    for (size_t t = at; same < s->targets.count && t < s->targets.count; t++)
        if (is_same(&lines[t], &lines[at])) {
            char shown[176];
            fprintf(out, "%s%s on %s", before, s->targets.at[t].build.name,
                    facts_target_shown(shown, &s->targets.at[t]));
            before = ", ";
        }
    fputs(same < s->targets.count ? ":\n" : "", out);
    return true;
}

static void print_case(const facts_session *s, size_t work, FILE *out)
{
    facts_text *lines = calloc(s->targets.count, sizeof *lines);
    bool any = false;
    for (size_t t = 0; t < s->targets.count; t++) {
        facts_session_callers(s, t, work, "  ", &lines[t]);
        any |= lines[t].length > 0;
    }
    if (any)
        fprintf(out, "\n%s%s", s->work_count > 1 ? s->work[work].name : "",
                s->work_count > 1 ? "\n" : "");
    for (size_t t = 0; t < s->targets.count; t++)
        if (lines[t].length && print_targets(s, lines, t, out))
            fputs(lines[t].data, out);
    for (size_t t = 0; t < s->targets.count; t++)
        facts_text_free(&lines[t]);
    free(lines);
}

void facts_print_callers(const facts_session *s, FILE *out)
{
    for (size_t work = 0; s->work_count <= CASES_SHOWN && work < s->work_count; work++)
        print_case(s, work, out);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* Control bytes of foreign text must not reach a terminal; line ends stay, with an indent. */
static void put_clean(const char *text, FILE *out)
{
    for (; *text; text++)
        if (*text == '\n')
            fprintf(out, "\n%14s", "");
        else
            fputc((unsigned char)*text < 0x20 || *text == 0x7f ? ' ' : *text, out);
}

/* A value in one line: a list as [a,b], an object as key=value key=value, a nested object as
 * (key=value). */
static void put_value(const json_t *value, bool within, FILE *out)
{
    size_t i;
    const char *name, *before = "";
    json_t *part;
    if (json_is_string(value))
        put_clean(json_string_value(value), out);
    else if (json_is_integer(value))
        fprintf(out, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        fprintf(out, "%.6g", json_real_value(value));
    else if (json_is_boolean(value))
        fputs(json_is_true(value) ? "true" : "false", out);
    if (json_is_array(value)) {
        fputc('[', out);
        json_array_foreach(value, i, part)
        {
            fputs(i ? "," : "", out);
            put_value(part, true, out);
        }
        fputc(']', out);
    } else if (json_is_object(value)) {
        fputs(within ? "(" : "", out);
        json_object_foreach((json_t *)(uintptr_t)value, name, part)
        {
            fputs(before, out);
            put_clean(name, out);
            fputc('=', out);
            put_value(part, true, out);
            before = " ";
        }
        fputs(within ? ")" : "", out);
    }
}

/* A list of objects, or an object that contains objects: one line for each of them. */
static bool has_objects(const json_t *value)
{
    size_t i;
    const char *name;
    json_t *part;
    bool any = false;
    json_array_foreach(value, i, part) any |= json_is_object(part);
    json_object_foreach((json_t *)(uintptr_t)value, name, part) any |=
        json_is_object(part) || has_objects(part);
    return any;
}

static void put_line(const char *label, const char *name, const json_t *value, FILE *out)
{
    fprintf(out, "  %-11s ", label);
    put_clean(name, out);
    fputs(*name ? ": " : "", out);
    put_value(value, false, out);
    fputc('\n', out);
}

static void put_lines(const char *label, const char *name, const json_t *value, FILE *out)
{
    size_t i;
    json_t *part;
    if (!json_is_array(value) || !has_objects(value))
        put_line(label, name, value, out);
    else
        json_array_foreach(value, i, part) put_line(i ? "" : label, name, part, out);
}

static void put_member(const char *label, const json_t *value, FILE *out)
{
    const char *key;
    json_t *part;
    if (!json_is_object(value) || !has_objects(value)) {
        put_lines(label, "", value, out);
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)value, key, part)
    {
        put_lines(label, key, part, out);
        label = "";
    }
}

static void put_nearest(const json_t *row, FILE *out)
{
    size_t i;
    json_t *change;
    const json_t *nearest = json_object_get(row, "nearest");
    json_array_foreach(nearest, i, change)
    {
        const char *name = text_of(change, "case");
        fprintf(out, "  %-11s ", i ? "" : "accepted");
        put_clean(*name ? name : text_of(change, "change"), out);
        fputc('\n', out);
    }
    if (json_is_array(nearest) && !json_array_size(nearest))
        fprintf(out, "  %-11s none of %lld similar cases\n", "accepted",
                (long long)json_integer_value(json_object_get(row, "nearest_asked")));
}

static void put_text(const char *label, const char *text, FILE *out)
{
    if (!*text)
        return;
    fprintf(out, "  %-11s ", label);
    put_clean(text, out);
    fputc('\n', out);
}

bool facts_explain_nearest(const char *text, size_t length, const char *device, FILE *out)
{
    json_t *row = json_loadb(text, length, 0, NULL);
    const json_t *forward = json_object_get(row, "forward"),
                 *reason = json_object_get(forward ? forward : row, "reason");
    const bool found = forward || json_object_get(row, "nearest");
    if (found) {
        const char *meaning = text_of(reason, "meaning"), *remedy = text_of(reason, "remedy");
        const bool its_own = json_array_size(json_object_get(reason, "chain"));
        put_clean(text_of(row, "case"), out);
        fprintf(out, "\n  %s on %s: ", text_of(row, "build"), device);
        fputs(forward ? "the backward is accepted; its forward is not" : "", out);
        put_clean(meaning, out);
        fputc('\n', out);
        put_text("forward", text_of(forward, "case"), out);
        put_text(its_own ? "cuDNN:" : "libfattn:", text_of(reason, "text"), out);
        put_text("remedy", strncmp(remedy, "fattn_explain", 13) != 0 ? remedy : "", out);
        put_nearest(row, out);
    }
    json_decref(row);
    return found;
}

void facts_explain_row(const char *text, size_t length, FILE *out)
{
    static const char *const places[] = { "case",          "cudnn", "build",   "device", "sm",
                                          "run",           "group", "attempt", "more",   "nearest",
                                          "nearest_asked", "known", "forward" };
    const char *name;
    json_t *value, *row = json_loadb(text, length, 0, NULL);
    json_object_foreach(row, name, value)
    {
        bool is_place = false;
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
            is_place |= strcmp(name, places[i]) == 0;
        if (!is_place)
            put_member(name, value, out);
    }
    put_nearest(row, out);
    json_decref(row);
}
