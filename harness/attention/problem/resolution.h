/* The state of facts_problem_resolve, shared by the files that implement it. */
#ifndef FACTS_CASE_RESOLUTION_H
#define FACTS_CASE_RESOLUTION_H

#include "case_problem.h"
#include "keys/stride.h"
#include "words/case_text.h"

/* The case, what comes out, and where to say no. */
typedef struct facts_resolution {
    const facts_case *c;
    facts_problem *out;
    facts_error *error;
    facts_stride stride;
    bool packs_q, packs_kv;      /* some tensor of queries, or of keys, is ragged */
    int64_t tokens_q, tokens_kv; /* of their storages */
} facts_resolution;

/* The first word of an error is the key's name. */
facts_resolve_status facts_resolve_say(facts_error *error, facts_resolve_status status,
                                       facts_key key, const char *what);
facts_resolve_status facts_resolve_bad(facts_resolution *r, facts_key key,
                                       const char *what); /* nobody could compute it */
bool facts_key_is(const facts_case *c, facts_key key, const char *word);
/* The index of the key's value in the allowed values of keys.h. It is the number of the value's
 * enum (vocabulary.h, fattn.h). */
int facts_key_place(const facts_case *c, facts_key key);
bool facts_key_given(const facts_case *c, facts_key key); /* not its default */
/* Refuses the case with bad_problem and `why`, if one of `keys` is given that has no effect here.
 */
facts_resolve_status facts_resolve_idle(facts_resolution *r, const facts_key *keys, size_t count,
                                        const char *why);
int32_t facts_key_dtype(const facts_case *c, facts_key key); /* fattn_dtype */

/* Decides which sides are ragged. After the lengths: where each sequence starts (lengths.c).
 */
void facts_resolve_sides(facts_resolution *r);
facts_resolve_status facts_resolve_packed(facts_resolution *r);
/* Pools of pages; lengths are known (lengths.c). */
facts_resolve_status facts_resolve_paged(facts_resolution *r);
/* Places every tensor of the call (tensors.c). Sizes, types, lengths and the score modification
 * must be known. */
facts_resolve_status facts_resolve_tensors(facts_resolution *r);
/* Makes the small arrays of the call, after everything else (call_arrays.c). */
facts_resolve_status facts_resolve_arrays(facts_resolution *r);

#endif
