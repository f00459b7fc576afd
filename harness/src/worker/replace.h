/* A worker that needs another environment becomes one: it starts itself again, with what it was asked in hand. cuDNN reads its
 * rescale threshold from the environment, and a process that has read it is not asked with another one. */
#ifndef FACTS_REPLACE_H
#define FACTS_REPLACE_H

#include "worker/target/loaded_target.h"
#include "worker/target/request.h"

/* The environment variable that says where the lines to begin with are; a descriptor. */
#define FACTS_REPLACED "FACTS_WORKER_LINES"

/* Does this request need another threshold (rescale=) than this process has? Never on the cpu. */
bool facts_replace_now(const facts_worker *worker, const facts_request *request);
/* Lines in hand: the target's, the request's (both without their newlines), and what was read after it. */
typedef struct facts_in_hand {
    const char *target, *request, *rest;
    size_t request_length, rest_length;
} facts_in_hand;

/* Releases the target and becomes the worker of that request; what is in hand is read again, then stdin. Returns only where that
 * failed. */
void facts_replace(facts_worker *worker, const facts_request *request, const facts_in_hand *in_hand);
/* The descriptor that lines come from first; -1: this process replaces none. */
int facts_replaced_lines(void);

#endif
