/* Separate from the table, which asks the reference for its starting values: a program that
 * proposes a row computes no attention. */
#include "calibration.h"
#include "numbers/dtype.h"

facts_constants facts_constants_limit(int32_t dtype)
{
    static const facts_constants limits[] = {
#define AS_8(field, narrowest, limit8, limit16, limit32) .field = limit8,
#define AS_16(field, narrowest, limit8, limit16, limit32) .field = limit16,
#define AS_32(field, narrowest, limit8, limit16, limit32) .field = limit32,
#define TRAIT_8(field, limit8, limit16, limit32) .field = limit8,
#define TRAIT_16(field, limit8, limit16, limit32) .field = limit16,
#define TRAIT_32(field, limit8, limit16, limit32) .field = limit32,
        { .calibrated = true, FACTS_CONSTANT_LIST(AS_8) FACTS_TRAIT_LIST(TRAIT_8) },
        { .calibrated = true, FACTS_CONSTANT_LIST(AS_16) FACTS_TRAIT_LIST(TRAIT_16) },
        { .calibrated = true, FACTS_CONSTANT_LIST(AS_32) FACTS_TRAIT_LIST(TRAIT_32) },
    };
    const size_t bytes = facts_dtype_bytes(dtype);
    return limits[bytes == 1 ? 0 : bytes == 2 ? 1 : 2];
}
