/* The result of a trial, in a row. Fields as in harness/PROTOCOL.md. */
#ifndef FACTS_ROW_TRIAL_H
#define FACTS_ROW_TRIAL_H

#include <jansson.h>

#include "worker/exec/trial.h"
#include "worker/memory/case_reference.h"

/* Adds the reason. If the trial was prepared, also adds the judgement of each answer, the times,
 * and the source of the inputs. Returns the verdict, which the caller sets. */
facts_verdict facts_row_trial(json_t *row, const facts_trial *trial,
                              const facts_reference *reference);

#endif
