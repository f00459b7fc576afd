/* Everything that facts-worker does: reads requests from stdin until it ends, and answers each. See
 * harness/PROTOCOL.md. */
#ifndef FACTS_ANSWER_REQUESTS_H
#define FACTS_ANSWER_REQUESTS_H

#include "driver/driver.h"

/* One request: the loop over the steps of its case and over its configurations, and a row for each answer. */
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

/* Returns the exit status: 0; 2 (an invalid request, or the supervisor has ended); 3 (the target
 * could not be opened). */
int facts_worker_run(const facts_worker_driver *driver);

/* A worker that cannot answer a request in this process replaces itself: it starts itself again and
 * passes on the requests that it has read. A case may need an environment variable that its process
 * reads once (facts_case_process). A request with `fresh` needs a process
 * that has launched no engine: a fault then belongs to the request's own case. */
/* The environment variable with the descriptor of the lines to read first. */
#define FACTS_REPLACED "FACTS_WORKER_LINES"

/* Does this request need another process? It does if it needs another environment than this
 * process has, or if it is `fresh` and this process has launched an engine. Never on the CPU. */
bool facts_replace_now(const facts_process *process, const facts_request *request);
/* The lines to pass on: the target's, the request's (both without their newlines), and what was
 * read after it. */
typedef struct facts_in_hand {
    const char *target, *request, *rest;
    size_t request_length, rest_length;
} facts_in_hand;

#endif
