/* Finds the simplest case that fails in the same way. Pure: every question goes through `ask`, and
 * equal answers give the same path.
 *
 * First it removes features: it sets keys to their defaults, all at once and one by one, and it
 * removes parts of values and lengths. Then it tries smaller and rounder numbers: 1, powers of two,
 * the same residue modulo 128, 64, 16 and 8, and a bisection. It ends when no candidate fails.
 *
 * The search can run ahead of the answers. Up to `lookahead` questions are open at once, as if each
 * answer were "does not fail", which most are. The function is called again when answers have come.
 * Only the path up to the first open question counts; a repeated call takes it again. */
#ifndef FACTS_SHRINK_H
#define FACTS_SHRINK_H

#include "reported.h"

#define FACTS_SHRINK_MOST_STEPS 5000

/* One question that was asked and what became of it. */
typedef struct facts_shrink_step {
    int number;          /* from 1 */
    const char *what;    /* was done: "mask default", "s.kv 192" */
    const facts_case *c; /* that was asked */
    facts_verdict verdict;
    bool kept;
} facts_shrink_step;

typedef struct facts_shrink_order {
    facts_case start;
    facts_symptom symptom; /* of the start */
    int most_steps;        /* 0: FACTS_SHRINK_MOST_STEPS */
    int lookahead;         /* open questions at once; 0: 1 */
    bool features_alone;   /* only set keys to their defaults */
    void *context;
    /* False: not known yet (it is asked for now). */
    bool (*ask)(void *context, const facts_case *c, facts_answer *out);
    void (*step)(void *context, const facts_shrink_step *step); /* may be NULL */
} facts_shrink_order;

typedef struct facts_shrink_result {
    bool waiting; /* open questions: `best` is as far as it got */
    bool out_of_steps;
    facts_case best;
    int steps, kept;
} facts_shrink_result;

void facts_shrink(facts_shrink_result *out, const facts_shrink_order *order);

#endif
