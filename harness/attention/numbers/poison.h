/* The contents of memory before a run. Compiled by C and by CUDA C++. docs/numerics.md, section 8.
 */
#ifndef FACTS_POISON_H
#define FACTS_POISON_H

#include "dtype.h"

/* A: NaN patterns (7FA5 ...). B: finite values 2^10 + index mod 7 (8-bit types: 2^6). An expected
 * element that still holds poison was never written. An answer that differs between A and B depends
 * on memory that the kernel must not read. */
typedef enum facts_pattern { FACTS_PATTERN_A, FACTS_PATTERN_B } facts_pattern;

#define FACTS_GUARD_ELEMENTS 512
#define FACTS_GUARD_BYTES 1024
#define FACTS_GUARD_FILLER 0xA5 /* bytes of a skew that are no whole element */

/* The poison of element `index` of a storage (negative in the guard before it). It repeats after 7.
 */
FACTS_BOTH uint32_t facts_pattern_code(int32_t dtype, facts_pattern pattern, int64_t index)
{
    if (pattern == FACTS_PATTERN_A)
        return facts_dtype_bytes(dtype) == 4   ? UINT32_C(0x7FA5A5A5)
               : facts_dtype_bytes(dtype) == 2 ? 0x7FA5
                                               : 0x7F;
    int64_t step = (index % 7 + 7) % 7;
    return facts_encode(dtype, (facts_dtype_bytes(dtype) == 1 ? 64.0 : 1024.0) + (double)step);
}

/* The poison of a byte of workspace: A5 or 3C. */
FACTS_BOTH unsigned char facts_pattern_byte(facts_pattern pattern)
{
    return pattern == FACTS_PATTERN_A ? 0xA5 : 0x3C;
}

#endif
