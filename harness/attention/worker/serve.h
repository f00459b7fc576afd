/* Answers one request: resolve, decide, plan, run, rows. */
#ifndef FACTS_SERVE_H
#define FACTS_SERVE_H

#include "driver/driver.h"

/* Attention, for core/worker. */
extern const facts_worker_driver facts_attention_worker;

/* Every request ends with exactly one reply that says "last". When worker->lost is set on return,
 * the process must end. */
void facts_serve(facts_worker *worker, const facts_request *request);

/* Releases the case that is kept, before the target is closed. */
void facts_serve_forget(facts_worker *worker);

#endif
