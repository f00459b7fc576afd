/* One value of one key: read, checked, and written in its one spelling. Pure. */
#ifndef FACTS_CASE_VALUE_H
#define FACTS_CASE_VALUE_H

#include "case.h"
#include "case/words/case_text.h"

#define FACTS_MAX_LENGTHS 4096 /* lengths in one list */

/* Writes the canonical spelling of `value` to out[FACTS_CASE_TEXT]. Returns false and fills *fault
 * when it is not a value of `key`.
 */
bool facts_value_canonical(facts_key key, facts_span value, char *out, facts_value_fault *fault);
/* Which of the templates (keys.h) spells `value`, counted from 0; -1: none. Writes the value
 * canonically to out[FACTS_CASE_TEXT].
 */
int facts_template_match(const char *templates, facts_span value, char *out);

/* Lengths of one side: "256+0x3". Returns how many, 0 when the text is none or has more than
 * `most`. */
size_t facts_lengths_read(facts_span text, int32_t *out, size_t most);

#endif
