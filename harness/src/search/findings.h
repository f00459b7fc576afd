/* What a fuzzer found: drawn cases that failed, each confirmed, shrunk, and put into its bucket. Pure: it asks through a callback
 * and goes on when the answers are there.
 *
 * A bucket is one way to fail (verdict, first tensor, gate, backend, engine, class of the reason) of the *shrunk* cases; it is
 * reported once, with how many drawn cases it stands for. Different smallest cases of one bucket are its forms. A drawn case that
 * has every feature of a form, and is nowhere smaller, is counted for it without being shrunk.
 */
#ifndef FACTS_FINDINGS_H
#define FACTS_FINDINGS_H

#include "shrink.h"

#define FACTS_MOST_FORMS 4 /* of one bucket; more are counted only */

typedef struct facts_asker {
    void *context;
    /* False: not known yet (it is asked for now). `alone`: in a worker of its own. */
    bool (*ask)(void *context, const facts_case *c, int attempt, bool alone, facts_answer *out);
} facts_asker;

typedef struct facts_form {
    facts_case best, start; /* smallest; as drawn */
    facts_evidence_text evidence;
    size_t cases;      /* drawn ones that it stands for */
    int failed, asked; /* of how many times */
    int steps;
    bool unfinished; /* not (or not wholly) shrunk: time or steps were over */
    facts_case control[FACTS_SHRINK_CONTROLS];
    size_t controls;
} facts_form;

typedef struct facts_bucket {
    facts_symptom symptom;
    facts_form form[FACTS_MOST_FORMS];
    size_t forms, cases; /* cases: of all forms, and those that were counted without one */
} facts_bucket;

typedef struct facts_findings facts_findings; /* owner; opaque */

typedef struct facts_findings_limits {
    int most_steps; /* of one shrinking; 0: 400 */
    int lookahead;  /* open questions of one shrinking */
    int at_once;    /* findings that are shrunk at the same time; 0: 4 */
} facts_findings_limits;

facts_findings *facts_findings_new(const facts_findings_limits *limits);
void facts_findings_free(facts_findings *findings);
/* A drawn case failed (each way is a finding; known ones are left out unless wanted, and what the data could not tell always: nothing
 * is known to be wrong). False: out of memory. */
bool facts_findings_add(facts_findings *findings, const facts_case *drawn, const facts_answer *answer, bool known_too);
/* Goes on as far as the answers reach. False: out of memory. */
bool facts_findings_advance(facts_findings *findings, const facts_asker *asker);
/* Findings that still wait for answers. */
size_t facts_findings_open(const facts_findings *findings);
/* No more questions: what is open becomes a form as it is. */
bool facts_findings_close(facts_findings *findings, const facts_asker *asker);
size_t facts_findings_count(const facts_findings *findings); /* buckets */
facts_bucket *facts_findings_at(facts_findings *findings, size_t i);

#endif
