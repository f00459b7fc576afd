/* Expectations: the failures that are known (made from cases/known), and the refusals that reject
 * cases must get. */
#ifndef FACTS_EXPECTED_H
#define FACTS_EXPECTED_H

#include "tally.h"

#define FACTS_SUITES_MAX 512

typedef struct facts_expectations facts_expectations;

/* Writes the suites that CASES names, separated by blanks. "": CASES also names something else, and
 * every expectation applies. */
void facts_expectations_suites(const char *const *texts, size_t count, char out[FACTS_SUITES_MAX]);
/* Loads the expectations that the build made. It keeps only those about one of `suites` that have
 * not expired. Returns 0, or 2 with a line in *message. Without the folder there are no
 * expectations. */
int facts_expectations_load(facts_expectations **out, const facts_language *language,
                            const char *suites, facts_error *message);
/* Cases are read as the language's `unguard` leaves them. */
void facts_expectations_unguard(facts_expectations *expectations, bool unguarded);
/* Compares one row with the expectations. Fills the row's `expectation` object and decides whether
 * the row is a finding. */
void facts_expectations_judge(facts_expectations *expectations, const facts_target *target, int sm,
                              const facts_work *work, bool measured, facts_verdict verdict,
                              const facts_line *row, facts_expected_row *out);
/* After a run of whole suites: prints a line on `out` for each expectation that should have come
 * true and did not. All suites, targets and cases of that expectation must have been asked and
 * answered. Expectations without `suites:` are skipped. Returns their number. */
size_t facts_expectations_stale(const facts_expectations *expectations, const facts_tally *tally,
                                const int *sms, facts_task task, FILE *out);
void facts_expectations_free(facts_expectations *expectations);

#endif
