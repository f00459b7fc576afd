/* Numbers as bits: encoding and decoding of the element types, with integer operations only, so that every machine agrees.
 *
 * Encoding rounds to nearest even, keeps subnormals, and saturates in the 8 bit types alone (448, 57344); elsewhere overflow is Inf.
 * Decoding is exact. `bits` holds the code in its low bits.
 */
#ifndef FACTS_DTYPE_H
#define FACTS_DTYPE_H

#include <fattn/fattn.h>

/* Bytes of one element; 0 for a dtype that is none. */
size_t facts_dtype_bytes(int32_t dtype);
uint32_t facts_encode(int32_t dtype, double value);
double facts_decode(int32_t dtype, uint32_t bits);
/* The largest finite value. */
double facts_dtype_max(int32_t dtype);
/* Inf where the type has one, else the largest value; the canonical NaN. */
uint32_t facts_dtype_inf(int32_t dtype);
uint32_t facts_dtype_nan(int32_t dtype);

/* Element i of `memory`, which need not be aligned. */
uint32_t facts_load(int32_t dtype, const void *memory, int64_t i);
void facts_store(int32_t dtype, void *memory, int64_t i, uint32_t bits);

#endif
