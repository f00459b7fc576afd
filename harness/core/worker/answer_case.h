/* One request: the loop over the steps of its case and over its configurations, and a row for each answer. */
#ifndef FACTS_ANSWER_CASE_H
#define FACTS_ANSWER_CASE_H

#include "driver/driver.h"

/* This process and the target that its driver has opened. */
typedef struct facts_process {
    const facts_worker_driver *driver;
    facts_worker *worker; /* NULL: none yet */
    facts_device device;
    facts_job *kept; /* the case that `time` launches again; NULL: none */
} facts_process;

/* Answers with exactly one reply that says "last", or with "again". */
void facts_answer_case(facts_process *process, const facts_request *request);
/* Releases the case that is kept. */
void facts_forget_case(facts_process *process);

#endif
