/* Finds where an answer changes along a list of versions. Pure: every question goes through `ask`,
 * and equal answers give equal edges.
 *
 * The two ends are asked first, then a binary search runs between them. With `all` every version is
 * asked. A version without an answer is skipped, and its neighbours are asked. Both sides of an
 * edge are asked a second time (attempt 2). A version that then answers differently is treated as
 * one without an answer, and the search continues.
 *
 * The search can run ahead of the answers. Up to `lookahead` questions are open at once: first
 * those that every outcome needs, then the likely ones. The function is called again when answers
 * have come. */
#ifndef FACTS_BISECT_H
#define FACTS_BISECT_H

#include <stdbool.h>
#include <stddef.h>

#define FACTS_BISECT_MOST 256
#define FACTS_BISECT_NO_VALUE (-1) /* the value of a version that could not be asked */

typedef struct facts_bisect_order {
    size_t versions; /* oldest first, at most FACTS_BISECT_MOST */
    int good;        /* the value to search for; FACTS_BISECT_NO_VALUE: no value is preferred */
    bool all;
    int lookahead;    /* open questions at once; 0: 1. With `all` there is no limit */
    const bool *dear; /* by version, may be NULL: true: ask this version only if no other is left
                         between the two sides */
    void *context;
    /* False: the answer is not known yet; it has been asked for. Values are 0 and above; equal
     * answers have equal values. */
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
    FACTS_BISECT_EQUAL,   /* the ends are equal (with `all`: every version that answered is) */
    FACTS_BISECT_FOUND
} facts_bisect_outcome;

/* The answer changes between these two versions. No version between them answered. */
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
    bool whole; /* the answer is complete: both ends, all versions inside each edge, and with `all`
                   every version answered */
} facts_bisect_result;

void facts_bisect(facts_bisect_result *out, const facts_bisect_order *order);

#endif
