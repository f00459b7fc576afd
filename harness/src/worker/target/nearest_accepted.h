/* What a target accepts near a problem that it refused. */
#ifndef FACTS_WORKER_NEAREST_H
#define FACTS_WORKER_NEAREST_H

#include <fattn/fattn.h>
#include <jansson.h>

/* nearest[]: what would have to change, nearest first ("dim_qk 104 instead of 100"); empty: nothing near is accepted. Asks the
 * target up to 200 times (fattn_explain). Nothing is added when it could not be asked. */
void facts_row_nearest(json_t *row, fattn_context *context, const fattn_problem *refused);

#endif
