/* Everything that facts-worker does: reads requests from stdin until it ends, and answers each. See
 * harness/PROTOCOL.md. */
#ifndef FACTS_ANSWER_REQUESTS_H
#define FACTS_ANSWER_REQUESTS_H

#include "driver/driver.h"

/* Returns the exit status: 0; 2 (an invalid request, or the supervisor has ended); 3 (the target
 * could not be opened). */
int facts_worker_run(const facts_worker_driver *driver);

#endif
