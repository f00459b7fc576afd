/* The values of attention's keys that templates do not spell: lengths, knobs, layouts, strides. Each function reads one and
 * writes its one spelling (language.h). */
#ifndef FACTS_KEY_VALUES_H
#define FACTS_KEY_VALUES_H

#include "language/case.h"

#define FACTS_MAX_LENGTHS 4096 /* lengths in one list */

/* Lengths of one side: "256+0x3". Returns how many, 0 when the text is none or has more than `most`. */
size_t facts_lengths_read(facts_span text, int32_t *out, size_t most);

bool facts_lengths_canonical(const facts_key_row *row, facts_span value, char *out,
                             facts_value_fault *fault);
bool facts_knobs_canonical(const facts_key_row *row, facts_span value, char *out,
                           facts_value_fault *fault);
bool facts_layout_canonical(const facts_key_row *row, facts_span value, char *out,
                            facts_value_fault *fault);
bool facts_stride_canonical(const facts_key_row *row, facts_span value, char *out,
                            facts_value_fault *fault);

#endif
