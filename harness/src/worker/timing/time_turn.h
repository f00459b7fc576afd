/* Plans that are launched again: one turn measures each of them. docs/bench.md says how the times are used. */
#ifndef FACTS_TIME_TURN_H
#define FACTS_TIME_TURN_H

#include "worker/memory/case_reference.h"

#define FACTS_TIMED_PLANS 64
#define FACTS_TURN_SAMPLES 5

typedef struct facts_timed_plan {
    fattn_plan *plan; /* owned */
    int32_t config;   /* its place in mode A's list; -1: the library chose */
    int launches;     /* of one sample; 0: not measured yet */
    double us[FACTS_TURN_SAMPLES];
} facts_timed_plan;

/* What a worker keeps of a case beside its memory. */
typedef struct facts_timed_plans {
    facts_timed_plan at[FACTS_TIMED_PLANS];
    int count;
    bool ready; /* the workspace is large enough for each */
} facts_timed_plans;

/* Measures each plan: warm-up, then FACTS_TURN_SAMPLES means of `launches` launches. The outputs of the case are overwritten, its
 * inputs lie on the device as the last run left them. */
fattn_status facts_take_turn(facts_timed_plans *plans, facts_reference *reference);
/* Multiplications and additions that the case needs: the two products of a forward, the five of a backward, of the keys that each
 * query sees. What an engine computes beside that does not count. */
double facts_flops(const facts_problem *problem);
/* Bytes that have to be read and written once: the inputs and outputs of the pass, of the queries and keys that take part. Masks,
 * statistics, scales and biases do not count. */
double facts_bytes(const facts_problem *problem);
void facts_timed_plans_destroy(facts_timed_plans *plans);

#endif
