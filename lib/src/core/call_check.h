/* What the small arrays of a call hold: lengths, offsets, page tables, scales, scale factors. */
#ifndef FATTN_CALL_CHECK_H
#define FATTN_CALL_CHECK_H

#include "fattn/fattn.h"

/* fattn_call_check without the checks of addresses, which must have been made: reads at once what lies on the host, and copies back what lies on a
 * GPU; there everything launched before must be done. Entries past what the lengths reach (pages, factors of padded rows) are not looked at. */
fattn_status fattn__call_values_check(const fattn_plan *plan, const fattn_tensors *tensors, const int64_t elements[FATTN_RAGGED_TENSORS]);

#endif
