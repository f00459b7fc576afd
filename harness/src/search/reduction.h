/* The steps of shrinking. Each step tries simpler cases with facts_shrink_try, which says whether
 * one was kept. */
#ifndef FACTS_REDUCTION_H
#define FACTS_REDUCTION_H

#include "case/problem/case_problem.h"
#include "shrink.h"

typedef struct facts_tried {
    uint64_t name; /* hash; 0: free */
    uint8_t verdict;
} facts_tried;

typedef struct facts_shrinker {
    const facts_shrink_order *order;
    facts_shrink_result *result;
    facts_problem *problem; /* scratch */
    facts_tried *tried;
    size_t capacity, used;
    bool computable; /* the CPU can compute the first case, so every candidate must be computable
                        too */
    int open;        /* questions without an answer */
    int round; /* the number of the sweep over all steps; from the second sweep on most answers are
                  known */
    bool over; /* no more questions now */
} facts_shrinker;

/* Asks the candidate, unless it was asked before. True: it fails in the same way and is now `best`.
 */
bool facts_shrink_try(facts_shrinker *s, const facts_case *candidate, const char *what);
/* The same with one key set. False also if that key cannot have the value. */
bool facts_shrink_try_key(facts_shrinker *s, facts_key key, const char *value, const char *what);
/* The verdict of the candidate; FACTS_VERDICT_COUNT if it was not asked. */
facts_verdict facts_shrink_verdict(const facts_shrinker *s, const facts_case *candidate);
bool facts_is_size(facts_key key);               /* b h s d */
bool facts_is_feature(facts_key key);            /* neither a size nor the engine */
size_t facts_case_features(const facts_case *c); /* how many are not default */
/* The same case with one key at its default. */
bool facts_case_without_key(facts_case *out, const facts_case *c, facts_key key);
/* The case without the keys of `left_out`. False: the other keys make no valid case. */
bool facts_case_without(facts_case *out, const facts_case *c, const bool left_out[FACTS_KEY_COUNT]);

/* Each returns whether something was kept. */
bool facts_reduce_features(facts_shrinker *s); /* keys back to their default */
bool facts_reduce_values(
    facts_shrinker *s); /* simpler words, fewer parts, smaller numbers inside values */
bool facts_reduce_entries(
    facts_shrinker *s); /* fewer batch entries where they have lengths of their own */
bool facts_reduce_sizes(facts_shrinker *s); /* b, h, s, d */

/* Tries a number from small to large; `make` builds the candidate. Sizes and values share it. */
typedef bool (*facts_make_candidate)(void *context, const facts_case *best, uint64_t number,
                                     facts_case *out);
bool facts_reduce_number(facts_shrinker *s, const char *name, uint64_t least, uint64_t now,
                         facts_make_candidate make, void *context);

#endif
