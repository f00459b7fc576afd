/* Questions asked as the answers come, of one build on one device: what fuzz and shrink are made of. Every question goes to the
 * workers once; its rows are the memo, and a record that is resumed answers what it holds. */
#ifndef FACTS_SEARCH_SESSION_H
#define FACTS_SEARCH_SESSION_H

#include "inputs.h"
#include "search/findings.h"
#include "search/memo.h"
#include "session.h"

/* The groups that rows of a hunt have in the record. */
#define FACTS_SEARCH_DRAWN "fuzz/drawn"
#define FACTS_SEARCH_ASKED "fuzz/asked"

typedef struct facts_search {
    facts_session session;
    facts_memo *memo;
    facts_asker asker;
    facts_memo_id *ids; /* by work */
    int jobs;
    const facts_by *by; /* NULL: it is about failures; otherwise about what is compared of any answer (facts_memo_compare) */
    double deadline_s;  /* on CLOCK_MONOTONIC; 0: none */
    bool failed;        /* out of memory */
    bool foreign;       /* the GPU is another than the record's */
    char device[112];   /* as the record calls it; empty: not known yet */
    size_t given_up;    /* of the record: what took everything down with it */
    size_t inconclusive, asked;
    /* Makes more questions; false when there are none now. */
    bool (*more)(struct facts_search *search);
    /* A case of FACTS_SEARCH_DRAWN has its answer (from a worker, or from the record); may be NULL. `before`: what it had already,
     * when its worker has ended badly since; otherwise FACTS_VERDICT_COUNT. */
    void (*drawn)(struct facts_search *search, const char *name, const facts_answer *answer, facts_verdict before);
    void *context;
} facts_search;

/* One target, the task that suits it, the record when it is resumed. `hunt` is zero but for more, drawn and context.
 * Returns an exit code; says why on stderr. */
int facts_search_open(facts_search *search, const facts_invocation *call);
/* Asks unless it is answered or on its way. The answer when there is one. */
bool facts_search_ask(facts_search *search, const facts_case *c, int attempt, const char *group, bool alone, facts_answer *out);
/* Runs until nothing is left to ask. An exit code: 0, or 2, 3, 130 when it could not go on. */
int facts_search_run(facts_search *search);
bool facts_search_time_is_up(const facts_search *search);
double facts_search_now_s(void);
/* "--cudnn 9.19.0-full-cu13 --device 0": what repeats a case on this target. */
void facts_search_flags(const facts_search *search, char *out, size_t capacity);
void facts_search_close(facts_search *search);

#endif
