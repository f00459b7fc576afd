/* The findings of a fuzzer: drawn cases that failed are confirmed, shrunk, and put into buckets.
 * Pure: it asks through a callback and continues when the answers have come.
 *
 * A bucket is one finding. Its smallest cases fail alike: same verdict, engine, backend, class of
 * the reason, and one tensor at fault in common. They also set the same keys, or one case has every
 * feature of the other. A bucket is reported once, with the number of drawn cases that belong to
 * it. Its smallest cases are its forms, the most ordinary first. A drawn case that has every
 * feature of a form, and is not smaller in any size, is counted for that form and not shrunk.
 *
 * A smallest case is explained if it becomes a known failure when some of its features are removed.
 * It is then no finding, and it is listed last. */
#ifndef FACTS_FINDINGS_H
#define FACTS_FINDINGS_H

#include "buckets.h"

typedef struct facts_asker {
    void *context;
    /* False: the answer is not known yet; it has been asked for. `alone`: in a worker that runs
     * nothing else. */
    bool (*ask)(void *context, const facts_case *c, int attempt, bool alone, facts_answer *out);
} facts_asker;

typedef struct facts_findings facts_findings; /* owner; opaque */

typedef struct facts_findings_limits {
    int most_steps; /* of one shrinking; 0: 400 */
    int lookahead;  /* open questions of one shrinking */
    int at_once;    /* findings that are shrunk at the same time; 0: 4 */
    /* Is this a case that many users have? Such cases are shrunk and listed first. NULL: no case
     * is. */
    bool (*ordinary)(const void *context, const facts_case *c);
    const void *context;
} facts_findings_limits;

facts_findings *facts_findings_new(const facts_findings_limits *limits);
void facts_findings_free(facts_findings *findings);
/* Adds a drawn case that failed. Each way in which it failed is a finding. Known failures are left
 * out unless they are wanted. Data that could not show an error are always left out. False: out of
 * memory. */
bool facts_findings_add(facts_findings *findings, const facts_case *drawn,
                        const facts_answer *answer, bool known_too);
/* Continues as far as the answers allow. False: out of memory. */
bool facts_findings_advance(facts_findings *findings, const facts_asker *asker);
/* Findings that still wait for answers. */
size_t facts_findings_open(const facts_findings *findings);
/* Ends the search: each open case becomes a form as it is. */
bool facts_findings_close(facts_findings *findings, const facts_asker *asker);
/* Sorts the findings: ordinary cases first, then fewest features, then most cases. Explained ones
 * come last. */
void facts_findings_rank(facts_findings *findings);
size_t facts_findings_count(const facts_findings *findings); /* buckets */
size_t facts_findings_news(const facts_findings *findings);  /* of those: not explained */
facts_bucket *facts_findings_at(facts_findings *findings, size_t i);
/* Counts changes: new buckets and new forms. If it grew, files that were written earlier are out of
 * date. */
size_t facts_findings_changes(const facts_findings *findings);

#endif
