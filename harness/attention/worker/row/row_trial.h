/* The result of a trial, in a row. Fields as in harness/PROTOCOL.md. */
#ifndef FACTS_ROW_TRIAL_H
#define FACTS_ROW_TRIAL_H

#include <jansson.h>

#include "worker/exec/trial.h"
#include "worker/memory/case_reference.h"

/* If the trial was prepared, adds the judgement of each answer, the times, and the source of the
 * inputs. */
void facts_row_trial(json_t *row, const facts_trial *trial, const facts_reference *reference);

#endif
