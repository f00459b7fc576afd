/* The problems that a target accepts near one that it refused. */
#ifndef FACTS_WORKER_NEAREST_H
#define FACTS_WORKER_NEAREST_H

#include <fattn/fattn.h>
#include <jansson.h>

/* Adds nearest[]: the changes that would make the problem accepted, smallest first ("dim_qk 104
 * instead of 100"); empty: no near problem is accepted. Asks the target up to 200 times
 * (fattn_explain). Adds nothing if the target could not be asked. */
void facts_row_nearest(json_t *row, fattn_context *context, const fattn_problem *refused);

#endif
