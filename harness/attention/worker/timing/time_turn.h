/* Plans that are launched repeatedly for `facts bench`: one turn measures each of them.
 * docs/bench.md says how the times are used. */
#ifndef FACTS_TIME_TURN_H
#define FACTS_TIME_TURN_H

#include "worker/memory/case_reference.h"

#define FACTS_TIMED_PLANS 64
#define FACTS_TURN_SAMPLES 5

typedef struct facts_timed_plan {
    fattn_plan *plan; /* owned */
    int32_t config;   /* its index in mode A's list; -1: the library chose */
    int launches;     /* launches of one sample; 0: not measured yet */
    double us[FACTS_TURN_SAMPLES];
} facts_timed_plan;

/* The plans of a case that a worker keeps, with its memory. */
typedef struct facts_timed_plans {
    facts_timed_plan at[FACTS_TIMED_PLANS];
    int count;
    bool ready; /* the workspace is large enough for each plan */
} facts_timed_plans;

/* Measures each plan: warm-up, then FACTS_TURN_SAMPLES means of `launches` launches. The outputs of
 * the case are overwritten. Its inputs are those that the last run left on the device. */
fattn_status facts_take_turn(facts_timed_plans *plans, facts_reference *reference);
/* The multiplications and additions that the case needs: the two products of a forward, or the five
 * of a backward, for the keys that each query sees. Other work of an engine does not count. */
double facts_flops(const facts_problem *problem);
/* The bytes that must be read and written once: inputs and outputs of the pass, for the queries and
 * keys that are not padding. Masks, statistics, scales and biases do not count. */
double facts_bytes(const facts_problem *problem);
void facts_timed_plans_destroy(facts_timed_plans *plans);

#endif
