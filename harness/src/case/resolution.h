/* Inside facts_problem_resolve: one resolution, in the two files that make it. */
#ifndef FACTS_CASE_RESOLUTION_H
#define FACTS_CASE_RESOLUTION_H

#include "problem.h"
#include "stride.h"

/* The case, what comes out, and where to say no. */
typedef struct facts_resolution {
    const facts_case *c;
    facts_problem *out;
    facts_error *error;
    facts_stride stride;
} facts_resolution;

/* The first word of an error is the key's name. */
facts_resolve_status facts_resolve_say(facts_error *error, facts_resolve_status status, facts_key key, const char *what);
bool facts_key_is(const facts_case *c, facts_key key, const char *word);

/* Places every tensor of the call (tensors.c); sizes, types, lengths and the mod are known by then. */
facts_resolve_status facts_resolve_tensors(facts_resolution *r);

#endif
