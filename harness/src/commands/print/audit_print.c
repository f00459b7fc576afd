/* What an audit came to: the disagreements first, then what agrees, then what nobody could test here and why. */
#include <string.h>

#include "commands/audit.h"
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

bool facts_audit_has_row(const facts_audit *audit, size_t claim)
{
    return worst(audit, claim) < FACTS_AUDIT_COUNT;
}

const char *facts_audit_untestable(const facts_audit *audit, size_t claim, char out[400])
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
    return facts_audit_asked(out, audit->cases[row->trials + row->verdict.shows[word]].c, audit->measured, &error) ? out : "";
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

static void versions_of(const facts_audit *audit, const facts_audit_row *row, char out[48])
{
    const facts_targets *t = &audit->session.targets;
    const char *first = t->at[row->first].build.version, *last = t->at[row->last].build.version;
    snprintf(out, 48, "%s%s%s", first, row->first == row->last ? "" : "..", row->first == row->last ? "" : last);
}

/* Whether two rows show a word of one rule by the same case. */
static bool same_case(const facts_audit *audit, const facts_audit_row *a, const facts_audit_row *b, facts_audit_word word)
{
    return a->claim == b->claim && says(a, word) && says(b, word) &&
           (word == FACTS_AUDIT_AGREES ||
            audit->cases[a->trials + a->verdict.shows[word]].work == audit->cases[b->trials + b->verdict.shows[word]].work);
}

static bool same_versions(const facts_audit *audit, const facts_audit_row *a, const facts_audit_row *b)
{
    char one[48], two[48];
    versions_of(audit, a, one);
    versions_of(audit, b, two);
    return strcmp(one, two) == 0;
}

/* "h100-sxm, sm80-spec 9.8.0..9.28.0; sm89-spec 9.27.0": where rows like this one are. */
static void print_where(const facts_audit *audit, const facts_audit_row *like, facts_audit_word word, FILE *out)
{
    const facts_audit_row *end = audit->rows + audit->row_count;
    bool first = true;
    char versions[48];
    for (const facts_audit_row *row = like; row < end; row++) {
        bool told = false;
        if (!same_case(audit, like, row, word))
            continue;
        for (const facts_audit_row *before = like; before < row && !told; before++)
            told = same_case(audit, like, before, word) && same_versions(audit, before, row);
        if (told)
            continue;
        fputs(first ? "" : "; ", out);
        const char *comma = "";
        for (const facts_audit_row *with = row; with < end; with++)
            if (same_case(audit, like, with, word) && same_versions(audit, with, row)) {
                fprintf(out, "%s%s", comma, audit->session.targets.at[with->first].device);
                comma = ", ";
            }
        versions_of(audit, row, versions);
        fprintf(out, " %s", versions);
        first = false;
    }
}

/* Rows that are told with an earlier one: same rule, same case. */
static bool is_told(const facts_audit *audit, size_t row, facts_audit_word word)
{
    bool told = !tells(audit, &audit->rows[row], word);
    for (size_t k = 0; k < row && !told; k++)
        told = same_case(audit, &audit->rows[k], &audit->rows[row], word);
    return told;
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

/* ---- for people ---------------------------------------------------------------------------------------------------------------
 */

static void print_rule(const facts_audit *audit, size_t claim, facts_audit_word word, FILE *out)
{
    char said[480], name[FACTS_NAME_MAX];
    const facts_claim *c = &audit->claims.claim[claim];
    fprintf(out, "  %s (%s) %s\n      refuses %s\n", c->id, facts_claim_word(c->kind), c->says, c->refuses);
    if (*c->note)
        fprintf(out, "      note: %s\n", c->note);
    for (size_t i = 0; i < audit->row_count; i++) {
        const facts_audit_row *row = &audit->rows[i];
        if (row->claim != claim || is_told(audit, i, word))
            continue;
        fputs("      ", out);
        print_where(audit, row, word, out);
        fprintf(out, ": '%s': %s\n", name_of(audit, row, word, name), said_of(audit, row, word, said));
    }
}

static void print_word(const facts_audit *audit, facts_audit_word word, FILE *out)
{
    bool any = false;
    for (size_t i = 0; i < audit->claims.count; i++) {
        bool has = false;
        for (size_t r = 0; r < audit->row_count && audit->chosen[i]; r++)
            has |= audit->rows[r].claim == i && tells(audit, &audit->rows[r], word);
        if (!has)
            continue;
        if (!any)
            fprintf(out, "\n%s: %s\n", facts_audit_name(word), facts_audit_meaning(word));
        any = true;
        print_rule(audit, i, word, out);
    }
}

void facts_audit_print(const facts_audit *audit, FILE *out)
{
    char why[400];
    for (size_t p = 0; p < audit->claims.projects; p++) {
        counts n = count(audit, p);
        if (!n.rules)
            continue;
        fprintf(out, "%s %s: %zu rule%s:", audit->claims.project[p].name, audit->claims.project[p].version, n.rules,
                n.rules == 1 ? "" : "s");
        const char *comma = " ";
        for (int w = 0; w <= FACTS_AUDIT_COUNT; w++)
            if (n.of[w]) {
                fprintf(out, "%s%zu %s", comma, n.of[w],
                        w < FACTS_AUDIT_COUNT ? facts_audit_name((facts_audit_word)w) : "untestable here");
                comma = "; ";
            }
        fputc('\n', out);
    }
    for (int w = 0; w < FACTS_AUDIT_COUNT; w++)
        if (w != FACTS_AUDIT_AGREES)
            print_word(audit, (facts_audit_word)w, out);
    bool any = false;
    for (size_t i = 0; i < audit->claims.count; i++) {
        if (!audit->chosen[i] || facts_audit_has_row(audit, i))
            continue;
        fprintf(out, "%s  %s: %s\n", any ? "" : "\nuntestable here\n", audit->claims.claim[i].id,
                facts_audit_untestable(audit, i, why));
        any = true;
    }
    if (audit->session.record[0])
        fprintf(out, "\nrecord: %s\n", audit->session.record);
}

/* ---- for programs -------------------------------------------------------------------------------------------------------------
 */

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
        if (!audit->chosen[i] || facts_audit_has_row(audit, i))
            continue;
        open_json(&line, audit, &audit->claims.claim[i]);
        facts_text_member(&line, "verdict", "untestable");
        facts_text_member(&line, "why", facts_audit_untestable(audit, i, why));
        facts_text_close(&line);
        fprintf(out, "%s\n", line.data ? line.data : "");
    }
    facts_text_free(&line);
}

/* ---- for the documentation ----------------------------------------------------------------------------------------------------
 */

/* Text of a table's cell. */
static void cell(FILE *out, const char *text, bool code)
{
    if (code && *text)
        fputc('`', out);
    for (; *text; text++) {
        if (*text == '|')
            fputc('\\', out);
        if (!code && (*text == '<' || *text == '*' || *text == '_'))
            fputc('\\', out);
        fputc(*text == '`' || *text == '\n' ? ' ' : *text, out);
    }
    if (code)
        fputc('`', out);
}

static void print_counts(const facts_audit *audit, FILE *out)
{
    fputs("| rules of | rules |", out);
    for (int w = 0; w < FACTS_AUDIT_COUNT; w++)
        fprintf(out, " %s |", facts_audit_name((facts_audit_word)w));
    fputs(" untestable here |\n|---|---:|", out);
    for (int w = 0; w <= FACTS_AUDIT_COUNT; w++)
        fputs("---:|", out);
    for (size_t p = 0; p < audit->claims.projects; p++) {
        counts n = count(audit, p);
        if (!n.rules)
            continue;
        fprintf(out, "\n| %s %s | %zu |", audit->claims.project[p].name, audit->claims.project[p].version, n.rules);
        for (int w = 0; w <= FACTS_AUDIT_COUNT; w++)
            fprintf(out, " %zu |", n.of[w]);
    }
    fputs("\n\n", out);
    for (int w = 0; w < FACTS_AUDIT_COUNT; w++)
        fprintf(out, "- *%s*: %s\n", facts_audit_name((facts_audit_word)w), facts_audit_meaning((facts_audit_word)w));
}

static void print_word_table(const facts_audit *audit, facts_audit_word word, FILE *out)
{
    char said[480], name[FACTS_NAME_MAX];
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < audit->row_count; i++) {
        const facts_audit_row *row = &audit->rows[i];
        const facts_claim *c = &audit->claims.claim[row->claim];
        if (is_told(audit, i, word))
            continue;
        if (last == SIZE_MAX)
            fprintf(out, "\n## %c%s\n\n| rule | kind | says | where | case | the backend |\n|---|---|---|---|---|---|\n",
                    facts_audit_name(word)[0] - 'a' + 'A', facts_audit_name(word) + 1);
        bool again = last == row->claim;
        last = row->claim;
        fprintf(out, "| %s | %s | ", again ? "" : c->id, again ? "" : facts_claim_word(c->kind));
        cell(out, again ? "" : c->says, false);
        fputs(" | ", out);
        print_where(audit, row, word, out);
        fputs(" | ", out);
        cell(out, name_of(audit, row, word, name), true);
        fputs(" | ", out);
        cell(out, said_of(audit, row, word, said), false);
        fputs(" |\n", out);
    }
}

static void print_agreements(const facts_audit *audit, FILE *out)
{
    fputs("\n## Agrees\n\n| rule | kind | refuses | where |\n|---|---|---|---|\n", out);
    for (size_t i = 0; i < audit->row_count; i++) {
        const facts_audit_row *row = &audit->rows[i];
        const facts_claim *c = &audit->claims.claim[row->claim];
        if (worst(audit, row->claim) != FACTS_AUDIT_AGREES || is_told(audit, i, FACTS_AUDIT_AGREES))
            continue;
        fprintf(out, "| %s | %s | ", c->id, facts_claim_word(c->kind));
        cell(out, c->refuses, true);
        fputs(" | ", out);
        print_where(audit, row, FACTS_AUDIT_AGREES, out);
        fputs(" |\n", out);
    }
}

void facts_audit_print_markdown(const facts_audit *audit, FILE *out)
{
    char why[400];
    print_counts(audit, out);
    for (int w = 0; w < FACTS_AUDIT_COUNT; w++)
        if (w != FACTS_AUDIT_AGREES)
            print_word_table(audit, (facts_audit_word)w, out);
    print_agreements(audit, out);
    fputs("\n## Untestable here\n\n| rule | kind | says | why |\n|---|---|---|---|\n", out);
    for (size_t i = 0; i < audit->claims.count; i++) {
        const facts_claim *c = &audit->claims.claim[i];
        if (!audit->chosen[i] || facts_audit_has_row(audit, i))
            continue;
        fprintf(out, "| %s | %s | ", c->id, facts_claim_word(c->kind));
        cell(out, c->says, false);
        fputs(" | ", out);
        cell(out, facts_audit_untestable(audit, i, why), false);
        fputs(" |\n", out);
    }
}
