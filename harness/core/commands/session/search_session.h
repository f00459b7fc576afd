/* A search: cases are asked of one build on one device, and each answer decides the next cases.
 * fuzz and shrink use it. Each question goes to a worker once. Answers are kept in the memo; a
 * resumed record fills the memo first. */
#ifndef FACTS_SEARCH_SESSION_H
#define FACTS_SEARCH_SESSION_H

#include "inputs.h"
#include "search/findings.h"
#include "search/memo.h"
#include "session.h"
#include "words/clock.h"

/* The groups of a search's rows in the record: drawn cases, cases that the search asks, and cases
 * that it asks once more. */
#define FACTS_SEARCH_DRAWN "fuzz/drawn"
#define FACTS_SEARCH_ASKED "fuzz/asked"
#define FACTS_SEARCH_REPEATED "fuzz/repeated"

typedef struct facts_search {
    facts_session session;
    facts_memo *memo;
    facts_asker asker;
    facts_memo_entry **entries; /* by work */
    int jobs;
    const facts_by *by; /* NULL: the search is about failures. Otherwise it compares any answer by
                           this (facts_memo_compare) */
    double deadline_ms; /* of facts_now_ms; 0: none */
    bool foreign;       /* the GPU is another than the record's */
    char device[112];   /* as the record calls it; empty: not known yet */
    size_t given_up;    /* cases of the record that are not asked again, because each start of them
                           ended the whole run */
    size_t inconclusive, asked;
    /* Adds cases; false if there are none now. */
    bool (*more)(struct facts_search *search);
    /* Called when a case of FACTS_SEARCH_DRAWN has its answer, from a worker or from the record. May be NULL. `before` is the
     * earlier verdict of a case whose worker ended badly afterwards, otherwise FACTS_VERDICT_COUNT. */
    void (*drawn)(struct facts_search *search, const char *name, const facts_answer *answer,
                  facts_verdict before);
    void *context;
} facts_search;

/* Prepares one target, its task, and the record that is resumed. `search` must be zero except for
 * more, drawn and context. Returns an exit code, with a line on stderr. */
int facts_search_open(facts_search *search, const facts_invocation *call);
/* Asks the case, unless it is answered or already asked. True: *out is the answer. */
bool facts_search_ask(facts_search *search, const facts_case *c, int attempt, const char *group,
                      bool alone, facts_answer *out);
/* Runs until there are no more questions. Returns exit code 0, or 2, 3 or 130 if the run ended
 * early. */
int facts_search_run(facts_search *search);
bool facts_search_time_is_up(const facts_search *search);
/* Writes what a case was shrunk to as a line `finding` of the record. `by`: of --by, or NULL. */
void facts_search_record(facts_search *search, const facts_form *form, const char *by);
/* Prints the findings of the record, and writes their files. Returns an exit code. */
int facts_search_print(const facts_search *search, const char *record);
/* Writes the options that repeat a case on this target: "--cudnn 9.19.0-full-cu13 --device 0". */
void facts_search_flags(const facts_search *search, char *out, size_t capacity);
void facts_search_close(facts_search *search);

#endif
