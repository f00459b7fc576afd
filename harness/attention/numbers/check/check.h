/* The checks beside the reference (check=). A check makes further runs of the same plan on inputs
 * that are changed in a known way, and looks at their answers (docs/numerics.md, sections 5 to 7).
 * Pure: worker/exec/run_trial.c makes the runs.
 *
 * A check consists of facts_check_runs runs. For each run:
 *   1. The memory is filled with the fill of the case.
 *   2. facts_check_write changes the inputs.
 *   3. A backward gets O and Stats of the reference, or those that facts_check_give writes.
 *   4. The engine runs.
 * At the end facts_check_hold looks at the runs. Each run is also compared with the reference, as
 * every answer is. */
#ifndef FACTS_CHECK_H
#define FACTS_CHECK_H

#include "numbers/expect/expectation.h"

/* A view of one run: its problem and its memory. Checks read and change runs by it. Pure. */
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

#define FACTS_CHECK_RUNS 4

/* The result of a check, and its worst element. */
typedef struct facts_held {
    int64_t compared, wrong;
    double ratio;
    const char *law; /* what must hold for the worst element: "I4: <dQ,Q> = <dK,K>" */
    facts_tensor_id id;
    int64_t at[4];
    double got, want, bound;
} facts_held;

int facts_check_runs(const facts_problem *base);
/* The reference does not compare the runs of this check, because their answers have no known bound.
 * Only the check itself does. */
bool facts_check_only_records(const facts_problem *base);
/* The problem of a run: the base's, without its check. */
void facts_check_ask(facts_problem *out, const facts_problem *base);
/* `run` has the contents of its fill. check: the base's. */
void facts_check_write(const facts_view *run, facts_check check, int number);
/* For a backward, called after the reference's O and Stats were written. */
void facts_check_give(const facts_view *run, const facts_view *base);
void facts_check_hold(facts_held *out, const facts_view *base, const facts_view run[]);

/* ---- for the implementations of the checks */

/* Records one comparison: |got - want| <= bound; a bound of 0 asks for equality. */
void facts_held_note(facts_held *held, const char *law, facts_tensor_id id, const int64_t at[4],
                     double got, double want, double bound);

/* One check. */
typedef struct facts_check_rule {
    int (*runs)(const facts_problem *base); /* NULL: one */
    void (*put)(const facts_view *run, int number);
    void (*hold)(facts_held *out, const facts_view *base, const facts_view run[]);
    bool records; /* facts_check_only_records; a backward gets the base's O and Stats */
} facts_check_rule;

extern const facts_check_rule facts_probe_keep;

#endif
