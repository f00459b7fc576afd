/* What makes a case of a language simpler: the table that shrink works through. Beside it shrink sets keys to their defaults and
 * makes numbers smaller. */
#ifndef FACTS_SIMPLER_H
#define FACTS_SIMPLER_H

#include "case.h"

#define FACTS_SIMPLER_TEXT 96
#define FACTS_SIZE_PARTS 3 /* numbers of one size */

/* A size: a key that is no feature, but a number or numbers that become smaller. */
typedef struct facts_size {
    facts_key key;
    int parts;  /* numbers in a value */
    bool apart; /* its numbers become smaller alone also where they are equal */
} facts_size;

typedef struct facts_simpler {
    facts_key engine; /* which kernel answers; no feature either */
    const facts_size *sizes;
    size_t size_count;
    /* Keys that are set to their defaults with another: { key, follower }. */
    const facts_key (*followers)[2];
    size_t follower_count;
    /* Simpler values of a key where its default does not fail, the simplest first. */
    const struct facts_simpler_value {
        facts_key key;
        const char *value;
    } *values;
    size_t value_count;
    /* Keys whose values are parts that a letter joins. */
    const struct facts_joined {
        facts_key key;
        char joint;
    } *joined;
    size_t joined_count;
    /* Keys with numbers in their values. `least` is the smallest first number. */
    const struct facts_numbered {
        facts_key key;
        uint64_t least;
    } *numbered;
    size_t numbered_count;
    /* Candidate `n` that no table says, and what it is in `what`. False: no such candidate; *more says if a later one may be. */
    bool (*candidate)(const facts_case *best, size_t n, facts_case *out,
                      char what[FACTS_SIMPLER_TEXT], bool *more);
    /* After a size became smaller: makes other values fit. */
    bool (*settle)(facts_case *c, facts_key size);
    /* Does `size` stay as it is, because candidate() takes care of it? */
    bool (*keeps)(const facts_case *c, facts_key size);
    /* One bit for the kernels that may compute the case: failures of different kernels are not one. */
    unsigned (*kernels)(const facts_case *c);
} facts_simpler;

/* Neither a size nor the engine. */
bool facts_is_feature(const facts_language *language, facts_key key);
/* How many features are not at their default. */
size_t facts_case_features(const facts_case *c);

#endif
