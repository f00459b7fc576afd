/* The counts of a run: one cell for each (case, target). Rows of a run or of a record fill it. */
#ifndef FACTS_TALLY_H
#define FACTS_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "record/reader.h"
#include "supervisor/order.h"
#include "words/intern.h"
#include "words/verdict.h"

typedef struct facts_cell {
    uint8_t verdict;   /* the worst of its rows; FACTS_VERDICT_COUNT: no row */
    uint8_t news;      /* the worst of its unexpected rows; FACTS_VERDICT_COUNT: none */
    bool by_facts;     /* a refusal by FACTS: a problem that nobody could compute, or a guard */
    uint16_t finished; /* the attempt whose last row has come; 0: none */
    uint32_t reason;   /* of a refusal or a finding: texts */
    uint32_t engines;  /* mode A's list, "6 8 10" */
    uint32_t why; /* of an unexpected row: the tensors, the reason, or what was expected instead */
    uint32_t known; /* the title of the known failure that was expected, or its link; 0: none */
    bool other;     /* that is known, and no failure by its kind (docs/known.md) */
    uint32_t
        says; /* what is known of the case, for people: lines if it is the only one, else the first,
                 and what to do instead */
    bool such_data; /* the first line is about the data that the case has */
    bool serious;   /* and its failure is serious */
} facts_cell;

typedef struct facts_tally {
    const facts_target *targets;
    size_t target_count;
    const facts_work *work;
    size_t work_count, room;
    facts_cell *cells; /* [target * work_count + work] */
    facts_intern *texts;
    size_t rows;
    size_t retired[FACTS_VERDICT_COUNT + 1]; /* cells by verdict whose place another case has now */
} facts_tally;

void facts_tally_init(facts_tally *out, const facts_target *targets, size_t target_count,
                      const facts_work *work, size_t work_count);
/* Adds work to a tally of one target. The counts so far stay. */
void facts_tally_grow(facts_tally *tally, const facts_work *work, size_t work_count);
/* The cell is another case's from now on; its verdict stays counted. Of a tally of one target. */
void facts_tally_retire(facts_tally *tally, size_t work);
void facts_tally_free(facts_tally *tally);
/* `expected` is the row's expectation. */
void facts_tally_add(facts_tally *tally, size_t target, size_t work, const facts_line *row,
                     facts_verdict verdict, const facts_expected_row *expected);
static inline const facts_cell *facts_tally_cell(const facts_tally *tally, size_t target,
                                                 size_t work)
{
    return &tally->cells[target * tally->work_count + work];
}

/* How many cells have each text, the most frequent first; the last entry has id 0. `member` is
 * offsetof(facts_cell, reason) or another text member. The caller frees it. */
typedef struct facts_text_count {
    uint32_t id;
    size_t cells;
} facts_text_count;
facts_text_count *facts_tally_texts(const facts_tally *tally, size_t member);

/* Prints the counts for people. `names[target]` is the device's name in records. */
void facts_print_counts(const facts_tally *tally, bool decided,
                        FILE *out); /* a line for each target: counts by verdict; first reasons */
/* Prints how many answers changed from each build to the next on a device, in at most ten lines,
 * and the command that groups them. */
void facts_print_changes(const facts_tally *tally, const char *record, FILE *out);
void facts_print_findings(
    const facts_tally *tally, size_t most,
    FILE *out); /* findings, each with its repro line; known failures are counted by link */
size_t facts_tally_unexpected(const facts_tally *tally);
/* Results that were expected: failures, or `other` entries of cases/known. */
size_t facts_tally_known(const facts_tally *tally, bool other);
size_t facts_tally_missing(const facts_tally *tally);
size_t facts_tally_of(const facts_tally *tally, facts_verdict verdict);

/* Shows progress on stderr: a bar on a terminal, otherwise a line from time to time. */
typedef struct facts_progress {
    bool terminal, quiet, drawn;
    double started_ms, last_ms;
    size_t first_done; /* there already when it began */
    size_t yes, no, findings;
    const char *group; /* of the suite, of the newest row; NULL: not known */
} facts_progress;

void facts_progress_start(facts_progress *progress, bool quiet);
void facts_progress_show(facts_progress *progress, size_t done, size_t planned, int live);
/* The same for work without a known end: shows the given line. */
void facts_progress_say(facts_progress *progress, const char *text);
void facts_progress_end(facts_progress *progress); /* wipes the bar */

#endif
