/* Checks the values in the small arrays of a call: lengths, offsets, page tables, scales and scale
 * factors. */
#ifndef FATTN_CALL_CHECK_H
#define FATTN_CALL_CHECK_H

#include "fattn/fattn.h"

/* As fattn_call_check, but the addresses must have been checked before. Arrays on the host are read
 * directly. Arrays on a GPU are copied back, so all work launched before must be finished. Entries
 * that the lengths do not reach (pages, scale factors of padded rows) are not checked. */
fattn_status fattn__call_values_check(const fattn_plan *plan, const fattn_tensors *tensors,
                                      const int64_t elements[FATTN_RAGGED_TENSORS]);

#endif
