/* What a fuzzer found: drawn cases that failed, each confirmed, shrunk, and put into its bucket. Pure: it asks through a callback
 * and goes on when the answers are there.
 *
 * A bucket is one finding: smallest cases that fail alike (verdict, engine, backend, class of the reason, a tensor at fault) and
 * set the same keys, or one of them has every feature of the other. It is reported once, with how many drawn cases it stands for;
 * its smallest cases are its forms, the most ordinary first. A drawn case that has every feature of a form, and is nowhere smaller,
 * is counted for it without being shrunk.
 *
 * A smallest case that turns into a known failure when features are left out of it is explained by that one: it is no finding, and
 * listed after all of them.
 */
#ifndef FACTS_FINDINGS_H
#define FACTS_FINDINGS_H

#include "buckets.h"

typedef struct facts_asker {
    void *context;
    /* False: not known yet (it is asked for now). `alone`: in a worker of its own. */
    bool (*ask)(void *context, const facts_case *c, int attempt, bool alone, facts_answer *out);
} facts_asker;

typedef struct facts_findings facts_findings; /* owner; opaque */

typedef struct facts_findings_limits {
    int most_steps; /* of one shrinking; 0: 400 */
    int lookahead;  /* open questions of one shrinking */
    int at_once;    /* findings that are shrunk at the same time; 0: 4 */
    /* Is it a case that many users have? Such cases are shrunk and listed first. NULL: none is. */
    bool (*ordinary)(const void *context, const facts_case *c);
    const void *context;
} facts_findings_limits;

facts_findings *facts_findings_new(const facts_findings_limits *limits);
void facts_findings_free(facts_findings *findings);
/* A drawn case failed (each way is a finding; known ones are left out unless wanted, and what the data could not show an error
 * always: nothing is known to be wrong). False: out of memory. */
bool facts_findings_add(facts_findings *findings, const facts_case *drawn, const facts_answer *answer, bool known_too);
/* Goes on as far as the answers reach. False: out of memory. */
bool facts_findings_advance(facts_findings *findings, const facts_asker *asker);
/* Findings that still wait for answers. */
size_t facts_findings_open(const facts_findings *findings);
/* No more questions: what is open becomes a form as it is. */
bool facts_findings_close(facts_findings *findings, const facts_asker *asker);
/* The ranking: ordinary ones first, then those of fewest features, then those of most cases; what is explained comes last. */
void facts_findings_rank(facts_findings *findings);
size_t facts_findings_count(const facts_findings *findings); /* buckets */
size_t facts_findings_news(const facts_findings *findings);  /* of those: not explained */
facts_bucket *facts_findings_at(facts_findings *findings, size_t i);
/* How often a bucket was made or got another form: what was written of them before is out of date. */
size_t facts_findings_changes(const facts_findings *findings);

#endif
