/* A case under construction: a value for each key, NULL for a key that is not given. Values point to other memory. `room` holds
 * the values that a language makes when it replaces two spellings of one setting by one. */
#ifndef FACTS_CASE_DRAFT_H
#define FACTS_CASE_DRAFT_H

#include "case.h"
#include "language.h"

/* Where a text lies, for errors: file (or "case"), line, and the column of its first letter. */
typedef struct facts_place {
    const char *where;
    int line, column;
} facts_place;

typedef struct facts_token {
    facts_key key;
    facts_span value;
    int column, value_column;
} facts_token;

/* Splits on blanks and finds the keys; each key at most once. `out` has room for FACTS_KEYS_MOST.
 */
bool facts_tokens_read(const facts_language *language, facts_span text, facts_place place,
                       facts_token *out, size_t *count, facts_error *error);

/* A case under construction: a value for each key, NULL for a key that is not given. Values point to other memory. `room` holds
 * the values that a language makes when it replaces two spellings of one setting by one. */
typedef struct facts_draft {
    const facts_language *language;
    const char *value[FACTS_KEYS_MOST];
    char room[2][64];
} facts_draft;

/* The value of a key, or what its absence means. */
const char *facts_draft_get(const facts_draft *draft, facts_key key);
/* Removes values that are given twice or are the default. Returns NULL, or why the values contradict each other, with the key in
 * *at. */
const char *facts_draft_normalise(facts_draft *draft, facts_key *at);
/* False: the case would be longer than a case may be. */
bool facts_draft_store(const facts_draft *draft, facts_case *out);

#endif
