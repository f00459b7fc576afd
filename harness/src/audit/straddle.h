/* Does a rule have both sides that its edges say? Looked at over the versions and devices that rules speak of. */
#ifndef FACTS_AUDIT_STRADDLE_H
#define FACTS_AUDIT_STRADDLE_H

#include "claims.h"

/* Of a pair: somewhere the rule refuses the refused case and lets the other through, and nowhere the other way round. Of a single
 * case: some version or device refuses it and some other does not. False: *error has the place of the first edge that is none. */
bool facts_claim_straddles(const facts_claim *claim, facts_error *error);

#endif
