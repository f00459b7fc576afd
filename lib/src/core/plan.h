/* Plans, as the rest of the library makes and shares them. */
#ifndef FATTN_PLAN_H
#define FATTN_PLAN_H

#include "engine.h"

/* The caller's options over the defaults. `given` may be NULL. Returns FATTN_OK; FATTN_BAD_PROBLEM. */
fattn_status fattn__plan_options_read(fattn_plan_options *out, const fattn_plan_options *given);

/* Tries the backends that this thread's policy names, in its order, leaving out those that a rule denies; the first that succeeds computes.
 * When all fail, the status and the sentence are those of the first. `resolved` is implemented, `options` are read. */
fattn_status fattn__plan_build(fattn_plan **out, fattn_context *context, const fattn_problem *resolved,
                               const fattn_plan_options *options);

/* One more holder; each gives it back with fattn_plan_destroy. */
fattn_plan *fattn__plan_retain(fattn_plan *plan);

#endif
