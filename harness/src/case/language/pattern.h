/* A pattern: a case whose values may be lists and ranges. Commas make a product; a..b:step and
 * a..b*factor are ranges, also inside a value (1/64..512:64). Members are numbered; nothing is
 * expanded before it is asked for. */
#ifndef FACTS_CASE_PATTERN_H
#define FACTS_CASE_PATTERN_H

#include "case.h"
#include "token.h"

typedef struct facts_pattern facts_pattern; /* owner; opaque */

/* `text` must live as long as the pattern, `place.where` too. */
bool facts_pattern_read(facts_pattern **out, facts_span text, facts_place place,
                        facts_error *error);
/* Members of the product; UINT64_MAX when there are more. */
uint64_t facts_pattern_count(const facts_pattern *pattern);
/* Member `index`: the last key turns fastest. False when its values contradict each other. */
bool facts_pattern_at(const facts_pattern *pattern, uint64_t index, facts_case *out,
                      facts_error *error);
void facts_pattern_destroy(facts_pattern *pattern);

/* A permutation of 0..count-1 that depends on the seed alone: member `i` of a draw without
 * replacement. */
uint64_t facts_pattern_draw(uint64_t count, uint64_t seed, uint64_t i);

#endif
