/* A pattern: a case whose values may be lists and ranges. Commas make a product; a..b:step and
 * a..b*factor are ranges, also inside a value (1/64..512:64), and {NAME} is a list that has a name.
 * Members are numbered; nothing is expanded before it is asked for. */
#ifndef FACTS_CASE_PATTERN_H
#define FACTS_CASE_PATTERN_H

#include "case.h"
#include "dice.h"
#include "draft.h"

typedef struct facts_pattern facts_pattern; /* owner; opaque */
typedef struct facts_list facts_list;       /* named values, and those named before */

/* Reads "NAME=VALUES" and puts the list in front of *lists. `text` must live as long as it. */
bool facts_list_read(const facts_language *language, const facts_list **lists, facts_span text,
                     facts_place place, facts_error *error);
void facts_lists_destroy(const facts_list *lists);

/* `text` must live as long as the pattern, `place.where` and `lists` (may be NULL) too. */
bool facts_pattern_read(const facts_language *language, facts_pattern **out, facts_span text,
                        facts_place place, const facts_list *lists, facts_error *error);
/* Members of the product; UINT64_MAX when there are more. */
uint64_t facts_pattern_count(const facts_pattern *pattern);
/* The column of the first weight (VALUE@WEIGHT); 0: there is none. */
int facts_pattern_weight(const facts_pattern *pattern);
/* Member `index`: the last key turns fastest. False when its values contradict each other. */
bool facts_pattern_at(const facts_pattern *pattern, uint64_t index, facts_case *out,
                      facts_error *error);
void facts_pattern_destroy(facts_pattern *pattern);

/* A permutation of 0..count-1 that depends on the seed alone: member `i` of a draw without
 * replacement. */
uint64_t facts_pattern_draw(uint64_t count, uint64_t seed, uint64_t i);

/* Draws a value for each key, in their order and by their weights, and sets it in *c. The numbers
 * of a value are drawn again until it fits; if none fits, the key keeps its value. */
void facts_pattern_draw_keys(const facts_pattern *pattern, facts_dice *dice,
                             bool (*fits)(void *context, const facts_case *c), void *context,
                             facts_case *c);

#endif
