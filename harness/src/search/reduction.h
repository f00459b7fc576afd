/* Inside shrinking: ways to make a case simpler. Each tries its candidates by facts_shrink_try, which says whether one was kept. */
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
    bool computable; /* the start is a problem that somebody can compute: so is every candidate */
    int open;        /* questions without an answer */
    int round;       /* of the sweeps over everything; from the second on most is known */
    bool over;       /* no more questions now */
} facts_shrinker;

/* Asks the candidate, unless it was asked before; true: it fails the same way and is `best` now. */
bool facts_shrink_try(facts_shrinker *s, const facts_case *candidate, const char *what);
/* The same with one key set; false also when that cannot be. */
bool facts_shrink_try_key(facts_shrinker *s, facts_key key, const char *value, const char *what);
/* How the candidate ended; FACTS_VERDICT_COUNT when it was not asked. */
facts_verdict facts_shrink_verdict(const facts_shrinker *s, const facts_case *candidate);
bool facts_is_size(facts_key key);               /* b h s d */
bool facts_is_feature(facts_key key);            /* neither a size nor the engine */
size_t facts_case_features(const facts_case *c); /* how many are not default */
/* The same without one key: it is back to its default. */
bool facts_case_without_key(facts_case *out, const facts_case *c, facts_key key);
/* The case without the keys of `left_out`. False when the rest makes no case. */
bool facts_case_without(facts_case *out, const facts_case *c, const bool left_out[FACTS_KEY_COUNT]);

/* Each returns whether something was kept. */
bool facts_reduce_features(facts_shrinker *s); /* keys back to their default */
bool facts_reduce_values(facts_shrinker *s);   /* simpler words, fewer parts, smaller numbers inside values */
bool facts_reduce_entries(facts_shrinker *s);  /* fewer batch entries where they have lengths of their own */
bool facts_reduce_sizes(facts_shrinker *s);    /* b, h, s, d */

/* A number is tried from small to large: `make` builds the candidate with it. Shared by sizes and values. */
typedef bool (*facts_make_candidate)(void *context, const facts_case *best, uint64_t number, facts_case *out);
bool facts_reduce_number(facts_shrinker *s, const char *name, uint64_t least, uint64_t now, facts_make_candidate make,
                         void *context);

#endif
