/* Inside facts_problem_resolve: one resolution, in the files that make it. */
#ifndef FACTS_CASE_RESOLUTION_H
#define FACTS_CASE_RESOLUTION_H

#include "case/language/stride.h"
#include "case/words/case_text.h"
#include "case_problem.h"

/* The case, what comes out, and where to say no. */
typedef struct facts_resolution {
    const facts_case *c;
    facts_problem *out;
    facts_error *error;
    facts_stride stride;
    bool packs_q, packs_kv;      /* some tensor of queries, of keys holds packed sequences */
    int64_t tokens_q, tokens_kv; /* of their storages */
} facts_resolution;

/* The first word of an error is the key's name. */
facts_resolve_status facts_resolve_say(facts_error *error, facts_resolve_status status, facts_key key, const char *what);
facts_resolve_status facts_resolve_bad(facts_resolution *r, facts_key key, const char *what); /* nobody could compute it */
bool facts_key_is(const facts_case *c, facts_key key, const char *word);
/* The place of the key's value among what keys.h allows: the number in the value's enum (vocabulary.h, fattn.h). */
int facts_key_place(const facts_case *c, facts_key key);
bool facts_key_given(const facts_case *c, facts_key key); /* not its default */
/* The first of `keys` that is given although nothing is there that it speaks of: bad_problem, with `why`. */
facts_resolve_status facts_resolve_idle(facts_resolution *r, const facts_key *keys, size_t count, const char *why);
int32_t facts_key_dtype(const facts_case *c, facts_key key); /* fattn_dtype */

/* Types of the tensors, of another backward, and how 8 bit types are scaled (resolve_types.c). */
facts_resolve_status facts_resolve_types(facts_resolution *r);
/* Engines, knobs and thresholds (resolve_knobs.c). */
facts_resolve_status facts_resolve_knobs(facts_resolution *r);
/* What joins the softmax: slopes, sinks, dropout, masks of tiles, a scale in memory; rotation (resolve_softmax.c). */
facts_resolve_status facts_resolve_softmax(facts_resolution *r);
/* Which sides are packed; after the lengths: where each sequence starts (resolve_packed.c). */
void facts_resolve_sides(facts_resolution *r);
facts_resolve_status facts_resolve_packed(facts_resolution *r);
/* Pools of pages; lengths are known (resolve_paged.c). */
facts_resolve_status facts_resolve_paged(facts_resolution *r);
/* Places every tensor of the call (tensors.c); sizes, types, lengths and the mod are known by then. */
facts_resolve_status facts_resolve_tensors(facts_resolution *r);
/* Small arrays of the call, when everything else is known (call_arrays.c). */
facts_resolve_status facts_resolve_arrays(facts_resolution *r);

#endif
