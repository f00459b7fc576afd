/* The failures that a fuzzer found: drawn cases that failed are confirmed and shrunk. Pure: it asks
 * through a callback and continues when the answers have come.
 *
 * What is left of a drawn case, its smallest case, is a form. A drawn case that has every feature
 * of a form, is smaller in no size and fails in the same way is not shrunk: the form stands for it.
 * So do four forms that set only keys which the case sets too. Reports join the forms into findings
 * and sort them (facts_reports/commands/fuzz.py).
 *
 * A form is explained if it becomes a known failure when some of its features are removed. */
#ifndef FACTS_FINDINGS_H
#define FACTS_FINDINGS_H

#include "shrink.h"

typedef struct facts_asker {
    void *context;
    /* False: the answer is not known yet; it has been asked for. `alone`: in a worker that runs
     * nothing else. */
    bool (*ask)(void *context, const facts_case *c, int attempt, bool alone, facts_answer *out);
} facts_asker;

typedef struct facts_form {
    facts_case best, start; /* smallest; as drawn */
    facts_symptom symptom;
    unsigned kernels;  /* the pass and the family of types, of both: a bit for each */
    int failed, asked; /* of how many times */
    bool unfinished;   /* shrinking ended early: out of time or steps */
    bool again;        /* an earlier form has the same smallest case */
    bool explained;
    facts_case known; /* of an explained form: the case without some features, a known failure */
} facts_form;

typedef struct facts_findings facts_findings; /* owner; opaque */

typedef struct facts_findings_limits {
    int most_steps; /* of one shrinking; 0: 400 */
    int lookahead;  /* open questions of one shrinking */
    int at_once;    /* cases that are shrunk at the same time; 0: 4 */
} facts_findings_limits;

facts_findings *facts_findings_new(const facts_findings_limits *limits);
void facts_findings_free(facts_findings *findings);
/* Adds a drawn case that failed. Known failures are left out unless they are wanted. Data that
 * could not show an error are always left out. */
void facts_findings_add(facts_findings *findings, const facts_case *drawn,
                        const facts_answer *answer, bool known_too);
/* Continues as far as the answers allow. */
void facts_findings_advance(facts_findings *findings, const facts_asker *asker);
/* Failures that still wait for answers. */
size_t facts_findings_open(const facts_findings *findings);
/* Ends the search: each open case becomes a form as it is. */
void facts_findings_close(facts_findings *findings, const facts_asker *asker);
/* The forms, in the order in which they were found; each drawn case that was shrunk has one. */
size_t facts_findings_count(const facts_findings *findings);
size_t facts_findings_news(const facts_findings *findings); /* of those: not explained */
const facts_form *facts_findings_at(const facts_findings *findings, size_t i);

#endif
