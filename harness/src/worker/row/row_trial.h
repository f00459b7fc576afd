/* What a trial found, in a row. Fields as in harness/PROTOCOL.md. */
#ifndef FACTS_ROW_TRIAL_H
#define FACTS_ROW_TRIAL_H

#include <jansson.h>

#include "worker/exec/trial.h"
#include "worker/memory/truth.h"

/* The verdict with its reason. */
void facts_row_outcome(json_t *row, const facts_trial *trial);
/* That, what each answer was judged to be, what took how long, and where the inputs came from. */
void facts_row_trial(json_t *row, const facts_trial *trial, const facts_truth *truth);

#endif
