/* The rules of policy=guard: cases/errata.json, read from its text and chosen for a case.
 * docs/cases.md, "Errata", describes both forms of a rule: the form of FACTS, and cudnn-frontend's
 * form as its include/cudnn_frontend_Errata.h reads it. Knobs are compared by value: k2=1 does not
 * block k2=13. */
#ifndef FACTS_WORKER_ERRATA_H
#define FACTS_WORKER_ERRATA_H

#include <fattn/policy.h>

#include "case/language/case.h"
#include "case/words/fail.h"

typedef struct facts_errata facts_errata;

/* False: one line in `error`, with the rule, the key and what is wrong. */
bool facts_errata_read(facts_errata **out, const char *json, facts_error *error);
void facts_errata_destroy(facts_errata *errata);
size_t facts_errata_count(const facts_errata *errata);
/* Fills `chosen` (room for facts_errata_count) with the rules whose `when` holds for the case, in
 * the order of the file. Returns their number. Their texts and knobs belong to the errata. */
size_t facts_errata_choose(const facts_errata *errata, const facts_case *c, fattn_rule *chosen);

#endif
