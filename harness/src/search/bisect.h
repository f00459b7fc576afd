/* Where an answer changes along a row of versions. Pure: every question goes through `ask`, and the same answers give the same
 * edges.
 *
 * The ends first, then a binary search between them; with `all` every version. A version that gives no answer is passed over and
 * its neighbours are taken. Both sides of an edge are asked a second time (attempt 2): a version that then answers otherwise is
 * never part of an edge; it is passed over like one that gave no answer, and the search goes on.
 *
 * An answer that is not there yet need not stop it: up to `lookahead` questions go out, those that the search will need whatever
 * the open ones say before the likely ones, and the whole is called again when they are answered.
 */
#ifndef FACTS_BISECT_H
#define FACTS_BISECT_H

#include <stdbool.h>
#include <stddef.h>

#define FACTS_BISECT_MOST 256
#define FACTS_BISECT_NO_VALUE (-1) /* the value of a version that could not be asked */

typedef struct facts_bisect_order {
    size_t versions; /* oldest first, at most FACTS_BISECT_MOST */
    int good;        /* the value that is looked for; FACTS_BISECT_NO_VALUE: none is better than another */
    bool all;
    int lookahead;    /* open questions at once, 0: 1; with `all` there is no limit */
    const bool *dear; /* by version, may be NULL: asked only where there is no other left between the sides */
    void *context;
    /* False: not known yet (it is asked for now). Values are 0 and more; equal answers have equal values. */
    bool (*ask)(void *context, size_t version, int attempt, int *value);
} facts_bisect_order;

typedef enum facts_bisect_state {
    FACTS_BISECT_UNASKED,
    FACTS_BISECT_ANSWERED,
    FACTS_BISECT_SILENT, /* it could not be asked */
    FACTS_BISECT_FLAKY   /* its second answer was another */
} facts_bisect_state;

typedef enum facts_bisect_outcome {
    FACTS_BISECT_WAITING, /* open questions */
    FACTS_BISECT_NOTHING, /* fewer than two versions answered: nothing to compare */
    FACTS_BISECT_EQUAL,   /* the ends are alike (with `all`: every version that answered is) */
    FACTS_BISECT_FOUND
} facts_bisect_outcome;

/* Between these two the answer changes; what lies between them did not answer. */
typedef struct facts_bisect_edge {
    size_t before, after;
} facts_bisect_edge;

typedef struct facts_bisect_result {
    facts_bisect_outcome outcome;
    size_t first, last; /* the outermost that answered */
    size_t edges;
    facts_bisect_edge edge[FACTS_BISECT_MOST];
    facts_bisect_state state[FACTS_BISECT_MOST];
    int value[FACTS_BISECT_MOST]; /* of the first attempt */
    bool whole;                   /* nothing is missing from the answer: no end, no version inside an edge, with `all` no version */
} facts_bisect_result;

void facts_bisect(facts_bisect_result *out, const facts_bisect_order *order);

#endif
