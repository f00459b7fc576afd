/* A case under construction: a value for each key, NULL for a key that is not given. Values point to other memory. `room` holds
 * the values that a language makes when it replaces two spellings of one setting by one. */
#ifndef FACTS_CASE_DRAFT_H
#define FACTS_CASE_DRAFT_H

#include "case.h"

typedef struct facts_draft {
    const facts_language *language;
    const char *value[FACTS_KEYS_MOST];
    char room[2][64];
} facts_draft;

facts_draft facts_draft_of(const facts_case *c);
/* What absence of `key` means in this draft. */
const char *facts_draft_default(const facts_draft *draft, facts_key key);
/* The value of a key, or what its absence means. */
const char *facts_draft_get(const facts_draft *draft, facts_key key);
/* Removes values that are given twice or are the default. Returns NULL, or why the values contradict each other, with the key in
 * *at. */
const char *facts_draft_normalise(facts_draft *draft, facts_key *at);
/* False: the case would be longer than a case may be. */
bool facts_draft_store(const facts_draft *draft, facts_case *out);

#endif
