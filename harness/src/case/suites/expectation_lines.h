/* Expectations: dated lines that say which verdict is known and accepted. The build makes them of cases/known (known.expect).
 *
 *   2026-11-21 nan case~'pass=bwd*fill=neglse*' & s.kv%128=64 & cudnn>=9.19.0 & cudnn<9.26.0 & sm=90  pytorch/pytorch#196678  #
 * note
 *
 * date, verdict, a predicate, the link (the last word), and a note after #. Of the lines that fit a result, one that names its
 * verdict counts. `nondeterministic?` with a question mark is what happens now and then: a pass beside it is no news. `wrong/nan`
 * is either: what lies in memory decides. A line `suites: regress surface` says which suites the
 * lines below it are about: in a run of other suites they do not count; `suites: all` ends it.
 */
#ifndef FACTS_CASE_EXPECT_H
#define FACTS_CASE_EXPECT_H

#include "predicate.h"

typedef struct facts_deviation {
    const char *date, *verdict, *where, *link, *note; /* live as long as the list; note may be "" */
    const char *suites;                               /* separated by blanks; "": all */
    const char *file;
    int line, column; /* of the predicate */
    bool sometimes;   /* the verdict had a question mark */
    bool used;        /* some result was asked about and fitted */
    bool met;         /* some such result had this verdict: the caller's */
} facts_deviation;

typedef struct facts_deviations facts_deviations; /* owner; opaque */

facts_deviations *facts_deviations_create(const facts_language *language);
/* Appends the lines of `text`; `file` is for errors. Pure. */
bool facts_deviations_read(facts_deviations *list, const char *text, const char *file,
                           facts_error *error);
/* Appends every .expect file of a folder. A missing folder has no lines. */
bool facts_deviations_load(facts_deviations *list, const char *folder, facts_error *error);
/* From now on only lines about one of `suites` apply (names separated by blanks; "": all lines). */
void facts_deviations_choose(facts_deviations *list, const char *suites);
/* Returns the line about this result, or NULL, and marks all lines that fit as used. Several may
 * fit, because several failures may meet in one case. The first line that names the verdict is
 * returned; without one, the first that fits. */
facts_deviation *facts_deviations_lookup(facts_deviations *list, const facts_subject *subject);
/* Can line `i` be about a result of which only these fields are known? See
 * facts_predicate_possible. */
bool facts_deviations_possible(const facts_deviations *list, size_t i,
                               const facts_subject *subject);
size_t facts_deviations_count(const facts_deviations *list);
const facts_deviation *facts_deviations_at(const facts_deviations *list, size_t i);
/* Is `verdict` the one that is expected, or one of them? */
bool facts_deviation_names(const facts_deviation *d, const char *verdict);
void facts_deviations_destroy(facts_deviations *list);

#endif
