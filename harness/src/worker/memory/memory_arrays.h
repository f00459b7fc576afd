/* Shared by memory*.c: the small arrays of a call (FACTS_ARRAY_LIST). */
#ifndef FACTS_MEMORY_ARRAYS_H
#define FACTS_MEMORY_ARRAYS_H

#include "case/words/fail.h"
#include "case_memory.h"

/* Makes the input arrays on the host. */
fattn_status facts_arrays_begin(facts_memory *memory, facts_error *error);
void facts_arrays_end(facts_memory *memory);

/* Makes the arrays of a set. */
fattn_status facts_arrays_create(facts_set *set, facts_memory *memory);
void facts_arrays_drop(facts_set *set, const facts_memory *memory);
/* Sets the addresses of the current set. */
void facts_arrays_bind(const facts_memory *memory, fattn_tensors *out);

/* Sends other contents for the input arrays (facts_array_fill_other). */
fattn_status facts_arrays_send_other(facts_memory *memory);

/* As the functions of facts_side, for all arrays. */
fattn_status facts_arrays_arm(facts_memory *memory, facts_pattern pattern);
/* In two steps: on a GPU the arrays are on the host only after facts_gpu_watch_end. */
fattn_status facts_arrays_read(facts_memory *memory);
fattn_status facts_arrays_fetch(facts_memory *memory, facts_pattern pattern,
                                int64_t overrun[FACTS_ARRAY_COUNT]);
fattn_status facts_arrays_spoil(facts_memory *memory);
fattn_status facts_arrays_untouched(facts_memory *memory, int64_t *changed); /* adds to *changed */

#endif
