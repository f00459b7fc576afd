/* What an audit came to: the disagreements first, then what agrees, then what nobody could test here and why. */
#include <string.h>

#include "commands/audit.h"
#include "commands/commands.h"
#include "record/text.h"

/* Where a rule refuses nothing, that both sides are taken says little of it. */
static bool says(const facts_audit_row *row, facts_audit_word word)
{
    return row->verdict.said[word] && (word != FACTS_AUDIT_AGREES || row->verdict.refuses);
}

/* A rule's place in the answer: its worst word, or FACTS_AUDIT_COUNT when it has no row. */
static facts_audit_word worst(const facts_audit *audit, size_t claim)
{
    facts_audit_word found = FACTS_AUDIT_COUNT;
    for (size_t i = 0; i < audit->row_count; i++)
        for (int w = 0; w < FACTS_AUDIT_COUNT; w++)
            if (audit->rows[i].claim == claim && says(&audit->rows[i], (facts_audit_word)w) && (facts_audit_word)w < found)
                found = (facts_audit_word)w;
    return found;
}

/* What was not seen of a rule is worth a line only where nothing else was. */
static bool tells(const facts_audit *audit, const facts_audit_row *row, facts_audit_word word)
{
    return says(row, word) && audit->chosen[row->claim] && (word < FACTS_AUDIT_AGREES || worst(audit, row->claim) == word);
}

/* Why a rule has no row: its own word, or that no version and device asked are among those it refuses for. */
static const char *untestable(const facts_audit *audit, size_t claim, char out[400])
{
    const facts_claim *c = &audit->claims.claim[claim];
    char reach[200];
    if (*c->untestable)
        snprintf(out, 400, "%.390s", c->untestable);
    else if (audit->known)
        snprintf(out, 400, "the record has none of its edges, or none for a version and device that it refuses for");
    else
        snprintf(out, 400, "it refuses for %.180s; no such version and device was asked", facts_claim_reach(c, reach));
    return out;
}

static const char *name_of(const facts_audit *audit, const facts_audit_row *row, facts_audit_word word, char out[FACTS_NAME_MAX])
{
    facts_error error;
    return facts_claim_asked(out, audit->cases[row->trials + row->verdict.shows[word]].c, audit->measured, &error) ? out : "";
}

/* What the backend said of the case that shows a word: its reason, what it got wrong, or the engines it offers. */
static const char *said_of(const facts_audit *audit, const facts_audit_row *row, facts_audit_word word, char out[480])
{
    const facts_tally *tally = &audit->session.tally;
    const facts_cell *cell = facts_tally_cell(tally, row->first, audit->cases[row->trials + row->verdict.shows[word]].work);
    const char *reason = facts_intern_text(tally->texts, cell->reason), *engines = facts_intern_text(tally->texts, cell->engines);
    const char *verdict = cell->verdict < FACTS_VERDICT_COUNT ? facts_verdict_name(cell->verdict) : "no answer";
    if (cell->verdict == FACTS_VERDICT_UNSUPPORTED && *reason)
        snprintf(out, 480, "%.400s", reason);
    else if (cell->verdict == FACTS_VERDICT_PASS)
        snprintf(out, 480, "%sengine%s %.200s", audit->measured ? "right by " : "offered: ", strchr(engines, ' ') ? "s" : "",
                 engines);
    else
        snprintf(out, 480, "%s%s%.400s", verdict, *reason ? ": " : "", reason);
    return out;
}

static const char *versions_of(const facts_audit *audit, const facts_audit_row *row, char out[48])
{
    const facts_targets *t = &audit->session.targets;
    const char *first = t->at[row->first].build.version, *last = t->at[row->last].build.version;
    snprintf(out, 48, "%s%s%s", first, row->first == row->last ? "" : "..", row->first == row->last ? "" : last);
    return out;
}

typedef struct counts {
    size_t of[FACTS_AUDIT_COUNT + 1], rules; /* the last: untestable here */
} counts;

static counts count(const facts_audit *audit, size_t project)
{
    counts out = { .rules = 0 };
    for (size_t i = 0; i < audit->claims.count; i++)
        if (audit->chosen[i] && audit->claims.claim[i].project == project) {
            out.of[worst(audit, i)]++;
            out.rules++;
        }
    return out;
}

/* ---- for people ------------------------------------------------------------------------------------------------------------ */

static void print_counts(const facts_audit *audit, size_t project, FILE *out)
{
    const facts_project *p = &audit->claims.project[project];
    const counts n = count(audit, project);
    const char *before = "";
    if (!n.rules)
        return;
    fprintf(out, "%s %s: %zu rule%s: ", p->name, p->version, n.rules, n.rules == 1 ? "" : "s");
    for (int w = 0; w <= FACTS_AUDIT_COUNT; w++)
        if (n.of[w]) {
            fprintf(out, "%s%zu %s", before, n.of[w],
                    w < FACTS_AUDIT_COUNT ? facts_audit_name((facts_audit_word)w) : "untestable here");
            before = "; ";
        }
    fputc('\n', out);
}

/* The rules that a word is said of: each with a line for each device and run of versions. */
static void print_word(const facts_audit *audit, facts_audit_word word, FILE *out)
{
    const facts_claim *last = NULL;
    char said[480], name[FACTS_NAME_MAX], versions[48];
    for (const facts_audit_row *row = audit->rows; row < audit->rows + audit->row_count; row++) {
        const facts_claim *c = &audit->claims.claim[row->claim];
        if (!tells(audit, row, word))
            continue;
        if (!last)
            fprintf(out, "\n%s: %s\n", facts_audit_name(word), facts_audit_meaning(word));
        if (c != last)
            fprintf(out, "  %s (%s) %s\n      refuses %s\n", c->id, facts_claim_word(c->kind), c->says, c->refuses);
        if (c != last && *c->note)
            fprintf(out, "      note: %s\n", c->note);
        fprintf(out, "      %s %s: '%s': %s\n", audit->session.targets.at[row->first].device, versions_of(audit, row, versions),
                name_of(audit, row, word, name), said_of(audit, row, word, said));
        last = c;
    }
}

void facts_audit_print(const facts_audit *audit, FILE *out)
{
    char why[400];
    bool any = false;
    for (size_t p = 0; p < audit->claims.projects; p++)
        print_counts(audit, p, out);
    for (int w = 0; w < FACTS_AUDIT_COUNT; w++)
        if (w != FACTS_AUDIT_AGREES)
            print_word(audit, (facts_audit_word)w, out);
    for (size_t i = 0; i < audit->claims.count; i++) {
        if (!audit->chosen[i] || worst(audit, i) < FACTS_AUDIT_COUNT)
            continue;
        fprintf(out, "%s  %s: %s\n", any ? "" : "\nuntestable here\n", audit->claims.claim[i].id, untestable(audit, i, why));
        any = true;
    }
    if (audit->session.record[0])
        fprintf(out, "\nrecord: %s\n", audit->session.record);
}

/* ---- for programs ---------------------------------------------------------------------------------------------------------- */

static void open_json(facts_text *line, const facts_audit *audit, const facts_claim *c)
{
    facts_text_clear(line);
    facts_text_puts(line, "{");
    facts_text_member(line, "rule", c->id);
    facts_text_member(line, "project", audit->claims.project[c->project].name);
    facts_text_member(line, "version", audit->claims.project[c->project].version);
    facts_text_member(line, "kind", facts_claim_word(c->kind));
    facts_text_member(line, "says", c->says);
    facts_text_member(line, "refuses", c->refuses);
}

static void print_row_json(facts_text *line, const facts_audit *audit, const facts_audit_row *row, FILE *out)
{
    const facts_targets *t = &audit->session.targets;
    char said[480], name[FACTS_NAME_MAX];
    for (int w = 0; w < FACTS_AUDIT_COUNT; w++) {
        if (!row->verdict.said[w])
            continue;
        open_json(line, audit, &audit->claims.claim[row->claim]);
        facts_text_member(line, "verdict", facts_audit_name((facts_audit_word)w));
        facts_text_member(line, "device", t->at[row->first].device);
        facts_text_member(line, "first", t->at[row->first].build.name);
        facts_text_member(line, "last", t->at[row->last].build.name);
        facts_text_format(line, "\"refuses_here\":%s,", row->verdict.refuses ? "true" : "false");
        facts_text_member(line, "case", name_of(audit, row, (facts_audit_word)w, name));
        facts_text_member(line, "backend", said_of(audit, row, (facts_audit_word)w, said));
        facts_text_close(line);
        fprintf(out, "%s\n", line->data ? line->data : "");
    }
}

void facts_audit_print_json(const facts_audit *audit, FILE *out)
{
    facts_text line = { 0 };
    char why[400];
    for (size_t i = 0; i < audit->claims.count; i++) {
        for (size_t r = 0; r < audit->row_count && audit->chosen[i]; r++)
            if (audit->rows[r].claim == i)
                print_row_json(&line, audit, &audit->rows[r], out);
        if (!audit->chosen[i] || worst(audit, i) < FACTS_AUDIT_COUNT)
            continue;
        open_json(&line, audit, &audit->claims.claim[i]);
        facts_text_member(&line, "verdict", "untestable");
        facts_text_member(&line, "why", untestable(audit, i, why));
        facts_text_close(&line);
        fprintf(out, "%s\n", line.data ? line.data : "");
    }
    facts_text_free(&line);
}

/* ---- for the documentation -----------------------------------------------------------------------------------------------------
 */

/* What `facts_reports audit` reads: the words with their meanings, then the answer for programs. */
static void write_tables(const void *subject, FILE *out)
{
    facts_text line = { 0 };
    facts_text_puts(&line, "{\"verdicts\":{");
    for (int w = 0; w < FACTS_AUDIT_COUNT; w++)
        facts_text_member(&line, facts_audit_name((facts_audit_word)w), facts_audit_meaning((facts_audit_word)w));
    facts_text_close(&line);
    fprintf(out, "%s}\n", line.data ? line.data : "");
    facts_text_free(&line);
    facts_audit_print_json(subject, out);
}

int facts_audit_print_markdown(const facts_audit *audit)
{
    return facts_run_view("audit", write_tables, audit);
}
