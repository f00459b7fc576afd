/* Words for memory orders. A word names the axes from the outermost to the innermost; 3 is the axis
 * of packed Q, K, V, 2 that of packed K, V; t stands for the tokens of all sequences one after
 * another. */
#ifndef FACTS_CASE_LAYOUT_H
#define FACTS_CASE_LAYOUT_H

#include "keys.h"
#include "words/case_text.h"

typedef struct facts_layout {
    facts_span q, k, v;
} facts_layout;

/* Splits a layout: one word for all three, or Q's and K/V's joined by _ (a third part must repeat
 * the second). False: not a layout.
 */
bool facts_layout_read(facts_span text, facts_layout *out);
/* The layout that has these words for Q and for K and V; false when there is none. */
bool facts_layout_write(facts_span q, facts_span kv, char out[24]);

/* How many tensors share one storage: 1, 2 or 3. */
int facts_layout_packs(facts_span word);
bool facts_layout_ragged(facts_span word);

#endif
