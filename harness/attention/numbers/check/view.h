/* A view of one run: its problem and its memory. Checks read and change runs by it. Pure. */
#ifndef FACTS_VIEW_H
#define FACTS_VIEW_H

#include "numbers/expect/expectation.h"

typedef struct facts_view {
    const facts_problem *problem;
    void *at[FACTS_TENSOR_COUNT];      /* element 0 of each storage; for outputs, the results; NULL:
                                          absent */
    const facts_expectation *expected; /* the expected values of the outputs */
} facts_view;

double facts_view_get(const facts_view *view, facts_tensor_id id, const int64_t at[4]);
/* Writes a value, rounded to the tensor's type. */
void facts_view_put(const facts_view *view, facts_tensor_id id, const int64_t at[4], double value);

/* Is an element of an output compared? Its row must have a value: not padded, and in the sample. */
bool facts_view_owes(const facts_view *view, facts_tensor_id id, const int64_t at[4]);
/* The reference's value, and the largest error of a correct answer (tau). */
double facts_view_want(const facts_view *view, facts_tensor_id id, const int64_t at[4]);

/* The head of K or V that a head of Q reads. */
int64_t facts_key_head(const facts_problem *problem, int64_t h);
int64_t facts_value_head(const facts_problem *problem, int64_t h);
/* The smallest number of query heads that have their own heads of both K and V. */
int64_t facts_head_unit(const facts_problem *problem);

/* Visits every index of dim[]: for (facts_walk w = facts_walk_of(dim); facts_walk_on(&w);) with
 * w.at. */
typedef struct facts_walk {
    int64_t dim[4], at[4], left;
    bool begun;
} facts_walk;
facts_walk facts_walk_of(const int64_t dim[4]);
bool facts_walk_on(facts_walk *walk);

#endif
