/* The state of facts_problem_resolve, shared by the files that implement it. */
#ifndef FACTS_CASE_RESOLUTION_H
#define FACTS_CASE_RESOLUTION_H

#include "case_problem.h"
#include "keys/key_values.h"
#include "words/case_text.h"

/* Fills has_lengths, len_q and len_kv from the case; *problem already has sizes and seed. Returns
 * NULL or the mistake. Random lengths come from Philox (tensor 9, the seed), so they are the same
 * on every machine. */
const char *facts_lengths_resolve(facts_problem *problem, const facts_case *c);

/* From a layout word and the forms of `stride=` to strides. Pure. */
/* One tensor to place: its extents in the order b,h,s,d, and its position in the call. */
typedef struct facts_place_request {
    int64_t dim[4];
    char order[6];  /* axes, outermost first; 2 or 3 for a shared storage, t for ragged tokens */
    int64_t tokens; /* t: rows of the storage */
    int slice;      /* which of the 2 or 3 it is */
    const facts_stride_form *form,
        *plain;         /* `plain` may be NULL: the plain forms do not apply to this tensor */
    bool takes_offsets; /* of the plain forms (Q, K, V) */
    bool takes_order;   /* of the plain forms (Q, K, V) */
    bool wild;
} facts_place_request;

/* Fills dim, stride, first, elements and skew_bytes. Returns NULL or the mistake. */
const char *facts_place_tensor(const facts_place_request *request, facts_tensor *out);

/* Which checks (check=) apply to which problem. numbers/check/check.h describes them. Pure. */
extern const char *const facts_check_words[FACTS_CHECKS];

/* Returns why the check does not apply to this problem; NULL if it applies. */
const char *facts_check_refuses(const facts_problem *problem);

/* The state of facts_problem_resolve, shared by the files that implement it. */
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
int facts_key_index(const facts_case *c, facts_key key);
bool facts_key_given(const facts_case *c, facts_key key); /* not its default */
/* Refuses the case with bad_problem and `why`, if one of `keys` is given that has no effect here.
 */
facts_resolve_status facts_resolve_idle(facts_resolution *r, const facts_key *keys, size_t count,
                                        const char *why);

/* Decides which sides are ragged. After the lengths: where each sequence starts (lengths.c).
 */
void facts_resolve_sides(facts_resolution *r);
facts_resolve_status facts_resolve_packed(facts_resolution *r);
/* Pools of pages; lengths are known (lengths.c). */
facts_resolve_status facts_resolve_paged(facts_resolution *r);
/* Places every tensor of the call (tensors.c). Sizes, types, lengths and the score modification
 * must be known. */
facts_resolve_status facts_resolve_tensors(facts_resolution *r);
/* Makes the small arrays of the call, after everything else (lengths.c). */
facts_resolve_status facts_resolve_arrays(facts_resolution *r);

#endif
