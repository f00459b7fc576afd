/* One run to look at: its problem, and what lies in its memory. For checks, which compare runs with one another. Pure. */
#ifndef FACTS_VIEW_H
#define FACTS_VIEW_H

#include "numbers/expect/expectation.h"

typedef struct facts_view {
    const facts_problem *problem;
    void *at[FACTS_TENSOR_COUNT];      /* element 0 of each storage; of outputs what came back; NULL: absent */
    const facts_expectation *expected; /* the expected values of the outputs */
} facts_view;

static inline bool facts_view_has(const facts_view *v, facts_tensor_id id)
{
    return v->problem->tensor[id].present && v->at[id];
}

double facts_view_get(const facts_view *view, facts_tensor_id id, const int64_t at[4]);
/* Rounded to the tensor's type. */
void facts_view_put(const facts_view *view, facts_tensor_id id, const int64_t at[4], double value);
uint32_t facts_view_bits(const facts_view *view, facts_tensor_id id, const int64_t at[4]);

/* An element of an output that somebody looked at: of a row that owes a value (not padded, not left out of a sample). */
bool facts_view_owes(const facts_view *view, facts_tensor_id id, const int64_t at[4]);
/* What the reference says, and how far a right answer may be: T1's tolerance, or tau. */
double facts_view_want(const facts_view *view, facts_tensor_id id, const int64_t at[4]);
double facts_view_tolerance(const facts_view *view, const facts_limits *limits, facts_tensor_id id, const int64_t at[4]);
facts_limits facts_view_limits(const facts_view *view, facts_tensor_id id);
double facts_view_bound(const facts_view *view, facts_tensor_id id, const int64_t at[4]);

/* The statistics of a row as a log-sum-exp: Stats, or Max + ln(Sum_exp). False when the run has neither. */
bool facts_view_lse(const facts_view *view, const int64_t at[4], double *lse, double *tau);

/* Heads of Q that read a head of K or V. */
int64_t facts_key_head(const facts_problem *problem, int64_t h);
int64_t facts_value_head(const facts_problem *problem, int64_t h);
/* The least number of query heads after which K's and V's heads are new ones both. */
int64_t facts_head_unit(const facts_problem *problem);

/* Visits every index of dim[]: for (facts_walk w = facts_walk_of(dim); facts_walk_on(&w);) with w.at. */
typedef struct facts_walk {
    int64_t dim[4], at[4], left;
    bool begun;
} facts_walk;
facts_walk facts_walk_of(const int64_t dim[4]);
bool facts_walk_on(facts_walk *walk);

#endif
