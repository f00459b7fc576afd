/* Expectations: which verdicts are known and accepted (cases/expect), and what reject cases must be refused with. */
#ifndef FACTS_EXPECTED_H
#define FACTS_EXPECTED_H

#include "../supervisor/order.h"

typedef struct facts_expectations facts_expectations;

/* Loads cases/expect. Returns 0, or 2 with a line in *message. A missing folder is no expectations. */
int facts_expectations_load(facts_expectations **out, facts_message *message);
/* What they say of one row: fills the row's `expectation` object and whether it is a finding. */
void facts_expectations_judge(const facts_expectations *expectations, const facts_target *target, int sm, const facts_work *work,
                              bool measured, facts_verdict verdict, const facts_line *row, facts_expected_row *out);
void facts_expectations_free(facts_expectations *expectations);

#endif
