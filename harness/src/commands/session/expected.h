/* Expectations: which verdicts are known and accepted (made of cases/known), and what reject cases must be refused with. */
#ifndef FACTS_EXPECTED_H
#define FACTS_EXPECTED_H

#include "tally.h"

#define FACTS_SUITES_MAX 512

typedef struct facts_expectations facts_expectations;

/* The suites that CASES names, separated by blanks; "" when something else is among them: then every line counts. */
void facts_expectations_suites(const char *const *texts, size_t count, char out[FACTS_SUITES_MAX]);
/* Loads the expectations that the build made; only lines about one of `suites` count, and none that expired. Returns 0, or 2 with a
 * line in *message. A missing folder is no expectations. */
int facts_expectations_load(facts_expectations **out, const char *suites, facts_error *message);
/* What they say of one row: fills the row's `expectation` object and whether it is a finding. */
void facts_expectations_judge(const facts_expectations *expectations, const facts_target *target, int sm, const facts_work *work,
                              bool measured, facts_verdict verdict, const facts_line *row, facts_expected_row *out);
/* After a run of whole suites: a line on `out` for each expectation whose suites were all run, that could have come true here (its
 * targets and its cases were asked, all of them answered) and did not. Their number. Lines without `suites:` are left alone. */
size_t facts_expectations_stale(const facts_expectations *expectations, const facts_tally *tally, const int *sms, facts_task task,
                                FILE *out);
void facts_expectations_free(facts_expectations *expectations);

#endif
