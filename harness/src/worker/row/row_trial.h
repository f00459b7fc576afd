/* What a trial found, in a row. Fields as in harness/PROTOCOL.md. */
#ifndef FACTS_ROW_TRIAL_H
#define FACTS_ROW_TRIAL_H

#include <jansson.h>

#include "worker/exec/trial.h"
#include "worker/memory/case_reference.h"

/* The reason; where the trial was prepared also the judgement of each answer, the times, and where the inputs came from. Returns
 * the verdict, which the caller sets. */
facts_verdict facts_row_trial(json_t *row, const facts_trial *trial, const facts_reference *reference);

#endif
