/* Expectations: dated lines that say which verdict is known and accepted, in cases/expect/ (one file for each cause or product).
 *
 *   2026-11-21 nan case~'pass=bwd*fill=neglse*' & s.kv%128=64 & cudnn>=9.19.0 & cudnn<9.26.0 & sm=90  pytorch/pytorch#196678  # note
 *
 * date, verdict, a predicate, the link (the last word), and a note after #. The first line that fits a result counts. `nondeterministic?` with a
 * question mark is what happens now and then: a pass beside it is no news.
 */
#ifndef FACTS_CASE_EXPECT_H
#define FACTS_CASE_EXPECT_H

#include "predicate.h"

typedef struct facts_deviation {
    const char *date, *verdict, *where, *link, *note; /* live as long as the list; note may be "" */
    const char *file;
    int line;
    bool sometimes; /* the verdict had a question mark */
    bool used; /* some result was asked about and fitted */
} facts_deviation;

typedef struct facts_deviations facts_deviations; /* owner; opaque */

facts_deviations *facts_deviations_create(void);
/* Appends the lines of `text`; `file` is for errors. Pure. */
bool facts_deviations_read(facts_deviations *list, const char *text, const char *file, facts_error *error);
/* Appends every .expect file of a folder; a folder that is not there has none. */
bool facts_deviations_load(facts_deviations *list, const char *folder, facts_error *error);
/* What is known of this result, or NULL; marks it as used. `verdict` of the subject is not looked at unless the predicate asks. */
const facts_deviation *facts_deviations_lookup(facts_deviations *list, const facts_subject *subject);
size_t facts_deviations_count(const facts_deviations *list);
const facts_deviation *facts_deviations_at(const facts_deviations *list, size_t i);
void facts_deviations_destroy(facts_deviations *list);

#endif
