/* Plans, as the rest of the library makes and shares them. */
#ifndef FATTN_PLAN_H
#define FATTN_PLAN_H

#include "engine.h"

/* Overwrites the defaults with the caller's options. `given` may be NULL. Returns FATTN_OK;
 * FATTN_BAD_PROBLEM. */
fattn_status fattn__plan_options_read(fattn_plan_options *out, const fattn_plan_options *given);

/* Tries the backends of this thread's policy, in its order, except those that a rule denies. The
 * first backend that succeeds computes. If all fail, status and message are those of the first.
 * `resolved` is a problem that the library implements; `options` come from
 * fattn__plan_options_read. */
fattn_status fattn__plan_build(fattn_plan **out, fattn_context *context,
                               const fattn_problem *resolved, const fattn_plan_options *options);

/* Adds a reference to the plan. Each reference is given back with fattn_plan_destroy. */
fattn_plan *fattn__plan_retain(fattn_plan *plan);

#endif
