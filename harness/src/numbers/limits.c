/* Apart from the table, which asks the reference for its starting values: who proposes a row computes no attention. */
#include "calibration.h"
#include "dtype.h"

facts_constants facts_constants_limit(int32_t dtype)
{
    const size_t bytes = facts_dtype_bytes(dtype);
    facts_constants out = { .calibrated = true };
#define AS_LIMIT(field, narrowest, limit8, limit16, limit32) out.field = bytes == 1 ? limit8 : bytes == 2 ? limit16 : limit32;
    FACTS_CONSTANT_LIST(AS_LIMIT)
#undef AS_LIMIT
#define AS_LIMIT(field, limit8, limit16, limit32) out.field = bytes == 1 ? limit8 : bytes == 2 ? limit16 : limit32;
    FACTS_TRAIT_LIST(AS_LIMIT)
#undef AS_LIMIT
    return out;
}
